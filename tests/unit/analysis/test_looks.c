/* Planned looks of a campaign: when they are taken, what they decide, that decisions stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/base/mem.h"

#define FOUR_LOOKS                                                       \
    "[{\"rounds\":8,\"alpha\":0.0125},{\"rounds\":12,\"alpha\":0.0125}," \
    "{\"rounds\":19,\"alpha\":0.0125},{\"rounds\":30,\"alpha\":0.0125}]"

static wb_json *plan_with(const char *looks)
{
    WB_AUTO_FREE char *text =
        wb_strf("{\"campaign\":\"cmp_1\",\"study\":\"forms\",\"rounds\":30,\"looks\":%s,"
                "\"arms\":[{\"label\":\"a\"},{\"label\":\"b\"}],"
                "\"contrasts\":[{\"name\":\"b against a\",\"arm\":\"b\",\"against\":\"a\","
                "\"metric\":\"max.throughput\",\"better\":\"higher\",\"primary\":true}]}",
                looks);
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

static void add_run(wb_json *list, const char *arm, int round, double throughput)
{
    wb_json *s = wb_json_object(), *metrics = wb_json_object(), *m = wb_json_object();

    wb_json_set_str(s, "id", arm);
    wb_json_set_str(s, "campaign", "cmp_1");
    wb_json_set_str(s, "arm", arm);
    wb_json_set_int(s, "round", round);
    wb_json_set_str(s, "outcome", "ok");
    wb_json_set_str(s, "validity", "valid");
    wb_json_set_real(m, "value", throughput);
    wb_json_set_str(m, "unit", "ops/s");
    wb_json_set_str(m, "better", "higher");
    wb_json_set(metrics, "max.throughput", m);
    wb_json_set(s, "metrics", metrics);
    wb_json_push(list, s);
}

/* Rounds from..to in which b is `ratio` times a, with a wiggle of at most `noise`. */
static void add_rounds(wb_json *list, int from, int to, double ratio, double noise)
{
    for (int r = from; r <= to; r++) {
        double host = 1000 + 7 * (r % 3);
        add_run(list, "a", r, host);
        add_run(list, "b", r, host * ratio * (1 + noise * ((r * 5 % 7) - 3) / 3.0));
    }
}

static wb_json *report_of(const char *looks, const wb_json *runs)
{
    WB_AUTO_JSON wb_json *plan = plan_with(looks);
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_campaign_report(plan, runs, &out, &err) < 0)
        fail_msg("%s", err.root);
    return out;
}

static const wb_json *contrast(const wb_json *report)
{
    return wb_json_at(wb_json_get(report, "contrasts"), 0);
}

static bool warned(const wb_json *report, const char *code)
{
    const wb_json *list = wb_json_get(report, "warnings");

    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(wb_json_str_or(wb_json_at(list, i), "code", ""), code) == 0)
            return true;
    return false;
}

static void check(const wb_json *report, const char *verdict, int64_t look, int64_t taken)
{
    const wb_json *c = contrast(report), *looks = wb_json_get(report, "looks");

    assert_string_equal(wb_json_str_or(c, "verdict", ""), verdict);
    assert_int_equal(wb_json_int_or(wb_json_get(c, "look"), "number", 0), look);
    assert_int_equal(wb_json_int_or(looks, "taken", -1), taken);
}

static void a_large_difference_is_decided_at_the_first_look(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL;
    const wb_json *c, *look, *looks;

    add_rounds(runs, 1, 8, 0.9, 0.01);
    report = report_of(FOUR_LOOKS, runs);
    c = contrast(report);
    look = wb_json_get(c, "look");
    looks = wb_json_get(report, "looks");
    check(report, "worse", 1, 1);
    assert_true(wb_json_real_or(c, "p", 1) == 2.0 / 256);
    assert_true(fabs(wb_json_real_or(look, "p", 1) - 8.0 / 256) < 1e-15); /* 4 looks */
    assert_true(fabs(wb_json_real_or(c, "q", 1) - 8.0 / 256) < 1e-15);
    assert_true(wb_json_real_or(wb_json_get(c, "ratio"), "level_percent", 0) == 98.75);
    /* 98.75 % of eight rounds: the least and the largest of all Walsh averages. */
    assert_true(fabs(wb_json_real_or(wb_json_get(c, "ratio"), "lo", 0) - 0.891) < 1e-9);
    assert_true(fabs(wb_json_real_or(wb_json_get(c, "ratio"), "hi", 0) - 0.909) < 1e-9);
    assert_non_null(strstr(wb_json_str_or(c, "sentence", ""), "98.75 % interval"));
    assert_true(wb_json_bool_or(look, "decided", false));
    assert_int_equal(wb_json_int_or(looks, "decided", 0), 1);
    assert_int_equal(wb_json_int_or(looks, "contrasts", 0), 1);
    assert_int_equal(wb_json_int_or(looks, "next", 0), 12);
    assert_string_equal(wb_json_str_or(looks, "sentence", ""),
                        "look 1 of 4, after round 8 of at most 30: 1 of 1 contrasts decided; the "
                        "campaign is decided");
    assert_false(warned(report, "after-look"));
}

static void nothing_is_judged_before_the_first_look(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL, *half = NULL;
    const wb_json *c;

    add_rounds(runs, 1, 7, 0.9, 0.01);
    report = report_of(FOUR_LOOKS, runs);
    c = contrast(report);
    check(report, "insufficient", 0, 0);
    assert_int_equal(wb_json_type(wb_json_get(c, "look")), WB_JSON_NULL);
    assert_int_equal(wb_json_int_or(c, "rounds_needed", 0), 8);
    assert_string_equal(wb_json_str_or(c, "sentence", ""),
                        "no verdict: 7 complete rounds, at least 8 are needed");
    assert_true(fabs(wb_json_real_or(wb_json_get(c, "ratio"), "estimate", 0) - 0.9) < 0.003);
    add_run(runs, "a", 8, 1000); /* b of round 8 is still to come */
    half = report_of(FOUR_LOOKS, runs);
    check(half, "insufficient", 0, 0);
}

static void rounds_after_a_look_wait_for_the_next(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *early = NULL, *late = NULL;

    /* At 5 % noise eight rounds do not tell whether 1.5 % matter. */
    add_rounds(runs, 1, 8, 1.015, 0.05);
    early = report_of(FOUR_LOOKS, runs);
    check(early, "inconclusive", 1, 1);
    add_rounds(runs, 9, 11, 3, 0.01);
    late = report_of(FOUR_LOOKS, runs);
    check(late, "inconclusive", 1, 1);
    assert_true(warned(late, "after-look"));
    assert_true(
        wb_json_equal(wb_json_get(contrast(early), "ratio"), wb_json_get(contrast(late), "ratio")));
    assert_int_equal(wb_json_int_or(wb_json_get(contrast(late), "all_rounds"), "n", 0), 11);
    assert_true(wb_json_real_or(wb_json_get(contrast(late), "all_rounds"), "estimate", 0) > 1.02);
}

static void what_a_look_decided_stays(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL;

    add_rounds(runs, 1, 8, 0.9, 0.01);
    add_rounds(runs, 9, 30, 1.5, 0.01);
    report = report_of(FOUR_LOOKS, runs);
    check(report, "worse", 1, 4);
    assert_int_equal(wb_json_int_or(wb_json_get(contrast(report), "all_rounds"), "n", 0), 30);
    assert_non_null(
        strstr(wb_json_str_or(wb_json_get(report, "looks"), "sentence", ""), "look 4 of 4"));
}

static void no_difference_is_a_decision_too(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL;

    add_rounds(runs, 1, 8, 1, 0.01);
    report = report_of(FOUR_LOOKS, runs);
    check(report, "equivalent", 1, 1);
    assert_int_equal(wb_json_int_or(wb_json_get(report, "looks"), "decided", 0), 1);
}

static void the_budget_is_spent(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    const char *line;

    add_rounds(runs, 1, 30, 1.02, 0.05); /* on the threshold itself */
    report = report_of(FOUR_LOOKS, runs);
    check(report, "inconclusive", 4, 4);
    assert_string_equal(wb_json_str_or(wb_json_get(report, "looks"), "sentence", ""),
                        "look 4 of 4, after round 30 of at most 30: 0 of 1 contrasts decided; the "
                        "budget is spent");
    wb_campaign_report_print(report, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "Look 4 of 4, after round 30 of at most 30: 0 of 1"));
    assert_non_null(strstr(wb_buf_str(&text), "Inconclusive, after 30 rounds: "));
    for (line = wb_buf_str(&text); *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    wb_buf_release(&text);
}

/* Runs that do not count leave fewer pairs than the look's interval needs. */
static void a_look_with_too_few_pairs_decides_nothing(void **state)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array(), *report = NULL;

    add_rounds(runs, 1, 8, 0.9, 0.01);
    wb_json_set_str(wb_json_at(runs, 3), "validity", "invalid");
    report = report_of(FOUR_LOOKS, runs);
    check(report, "insufficient", 1, 1);
    assert_int_equal(wb_json_int_or(contrast(report), "rounds_needed", 0), 8);
    assert_int_equal(wb_json_int_or(wb_json_get(report, "looks"), "decided", -1), 0);
}

static void wrong_looks_are_refused(void **state)
{
    static const char *const bad[] = {
        "7",
        "{}",
        "[7]",
        "[{\"rounds\":8}]",
        "[{\"rounds\":0,\"alpha\":0.01}]",
        "[{\"rounds\":-1,\"alpha\":0.01}]",
        "[{\"rounds\":8,\"alpha\":0}]",
        "[{\"rounds\":8,\"alpha\":-0.01}]",
        "[{\"rounds\":8,\"alpha\":0.06}]",
        "[{\"rounds\":8,\"alpha\":0.03},{\"rounds\":12,\"alpha\":0.03}]",
        "[{\"rounds\":8,\"alpha\":0.01},{\"rounds\":8,\"alpha\":0.01}]",
        "[{\"rounds\":8,\"alpha\":0.01},{\"rounds\":6,\"alpha\":0.01}]",
        "[{\"rounds\":9007199254740993,\"alpha\":0.01}]",
        "[{\"rounds\":8,\"alpha\":\"0.01\"}]",
    };
    WB_AUTO_JSON wb_json *runs = wb_json_array();

    add_rounds(runs, 1, 8, 0.9, 0.01);
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        WB_AUTO_JSON wb_json *plan = plan_with(bad[i]), *out = NULL;
        struct wb_err err = WB_ERR_INIT;
        if (wb_campaign_report(plan, runs, &out, &err) != -WB_INVALID)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(err.root, "/looks"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_difference_is_decided_at_the_first_look),
        cmocka_unit_test(nothing_is_judged_before_the_first_look),
        cmocka_unit_test(rounds_after_a_look_wait_for_the_next),
        cmocka_unit_test(what_a_look_decided_stays),
        cmocka_unit_test(no_difference_is_a_decision_too),
        cmocka_unit_test(the_budget_is_spent),
        cmocka_unit_test(a_look_with_too_few_pairs_decides_nothing),
        cmocka_unit_test(wrong_looks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
