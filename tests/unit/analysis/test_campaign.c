/* The report of a campaign: which runs count, how they are paired, what is said about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/base/mem.h"

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

static wb_json *two_arms(bool accept_noisy)
{
    WB_AUTO_FREE char *text = wb_strf(
        "{\"campaign\":\"cmp_1\",\"study\":\"forms\",\"rounds\":8,\"threshold_percent\":2,"
        "\"accept_noisy\":%s,\"arms\":[{\"label\":\"native x1\"},{\"label\":\"docker x1\"}],"
        "\"contrasts\":[{\"name\":\"docker x1 against native x1\",\"arm\":\"docker x1\","
        "\"against\":\"native x1\",\"metric\":\"max.throughput\",\"better\":\"higher\","
        "\"primary\":true}]}",
        accept_noisy ? "true" : "false");

    return parsed(text);
}

struct fact {
    const char *arm;
    int round, attempt;
    double throughput;
    const char *outcome, *validity;
};

static wb_json *summary(const struct fact *f)
{
    wb_json *s = wb_json_object(), *metrics = wb_json_object(), *m = wb_json_object();
    WB_AUTO_FREE char *id = wb_strf("run_%s_%d_%d", f->arm, f->round, f->attempt);

    wb_json_set_str(s, "id", id);
    wb_json_set_str(s, "campaign", "cmp_1");
    wb_json_set_str(s, "arm", f->arm);
    wb_json_set_int(s, "round", f->round);
    wb_json_set_int(s, "attempt", f->attempt);
    wb_json_set_str(s, "outcome", f->outcome ? f->outcome : "ok");
    wb_json_set_str(s, "validity", f->validity ? f->validity : "valid");
    wb_json_set_real(m, "value", f->throughput);
    wb_json_set_str(m, "unit", "ops/s");
    wb_json_set_str(m, "better", "higher");
    wb_json_set(metrics, "max.throughput", m);
    m = wb_json_object();
    wb_json_set_real(m, "value", 1e5 / f->throughput);
    wb_json_set_str(m, "unit", "ms");
    wb_json_set_str(m, "better", "lower");
    wb_json_set(metrics, "max.p99_ms", m);
    wb_json_set(s, "metrics", metrics);
    return s;
}

/* Eight rounds in which docker is 10 % slower, while the host drifts. */
static wb_json *eight_rounds(void)
{
    wb_json *list = wb_json_array();

    for (int round = 1; round <= 8; round++) {
        double host = 100000 * (1 + 0.05 * round), wiggle = 1 + 0.001 * (round * 5 % 7);
        struct fact native = {"native x1", round, 1, host, NULL, NULL};
        struct fact docker = {"docker x1", round, 1, host * 0.9 * wiggle, NULL, NULL};
        wb_json_push(list, summary(round % 2 ? &native : &docker));
        wb_json_push(list, summary(round % 2 ? &docker : &native));
    }
    return list;
}

static wb_json *report_of(const wb_json *plan, const wb_json *runs)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_campaign_report(plan, runs, &out, &err) < 0)
        fail_msg("%s", err.root);
    return out;
}

static const char *text_at(const wb_json *j, const char *path)
{
    const char *s = wb_json_string(wb_json_path(j, path));

    return s ? s : "";
}

static const wb_json *warning(const wb_json *report, const char *code)
{
    const wb_json *list = wb_json_get(report, "warnings");

    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(text_at(wb_json_at(list, i), "code"), code) == 0)
            return wb_json_at(list, i);
    return NULL;
}

/* Rounds on the data of one loading say so; others, and plans from before, do not. */
static void reused_data(void **state)
{
    static const struct {
        const char *plan, *says;
        bool warned;
    } rows[] = {{NULL, "deployment", false},
                {"deployment", "deployment", false},
                {"restart", "restart", true}};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds(), *report = NULL;

        if (rows[i].plan)
            wb_json_set_str(plan, "repetition", rows[i].plan);
        report = report_of(plan, runs);
        assert_string_equal(text_at(report, "repetition"), rows[i].says);
        assert_true((warning(report, "reused-data") != NULL) == rows[i].warned);
        assert_string_equal(text_at(wb_json_at(wb_json_get(report, "contrasts"), 0), "verdict"),
                            "worse");
    }
}

static void pairs_within_rounds(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds(),
                         *report = report_of(plan, runs);
    const wb_json *contrasts = wb_json_get(report, "contrasts"), *c = wb_json_at(contrasts, 0);
    const wb_json *other = wb_json_at(contrasts, 1),
                  *arm = wb_json_at(wb_json_get(report, "arms"), 1);

    assert_int_equal(wb_json_len(contrasts), 2);
    assert_true(wb_json_bool_or(c, "primary", false));
    assert_true(wb_json_bool_or(c, "paired", false));
    assert_string_equal(text_at(c, "verdict"), "worse");
    assert_true(wb_json_real_or(c, "p", 1) == 2.0 / 256);
    assert_true(wb_json_real_or(c, "q", 1) == 2.0 / 256);
    assert_true(fabs(wb_json_real_or(wb_json_get(c, "ratio"), "estimate", 0) - 0.9027) < 0.001);
    assert_string_equal(text_at(other, "metric"), "max.p99_ms");
    assert_false(wb_json_bool_or(other, "primary", true));
    assert_string_equal(text_at(other, "verdict"), "worse");
    assert_true(wb_json_real_or(other, "threshold_percent", 0) == 5); /* tails vary more */
    assert_string_equal(text_at(arm, "label"), "docker x1");
    assert_int_equal(wb_json_int_or(arm, "n", 0), 8);
    assert_int_equal(wb_json_int_or(wb_json_get(arm, "runs"), "planned", 0), 8);
    assert_true(wb_json_is_number(wb_json_path(arm, "metrics.max.throughput.lo")));
    assert_null(warning(report, "left-out"));
    assert_string_equal(text_at(report, "headline.throughput"), "max.throughput");
    assert_string_equal(text_at(report, "headline.p99"), "max.p99_ms");
}

static void only_runs_that_may_be_believed_count(void **state)
{
    static const struct {
        const char *outcome, *validity;
        bool accept_noisy, counts;
        const char *why;
    } cases[] = {
        {"ok", "valid", false, true, NULL},
        {"target-missed", "valid", false, true, NULL},
        {"ok", "noisy", true, true, NULL},
        {"target-missed", "noisy", true, true, NULL},
        {"ok", "noisy", false, false, "validity noisy (the study accepts only valid runs)"},
        {"ok", "client-limited", true, false, "validity client-limited"},
        {"ok", "invalid", true, false, "validity invalid"},
        {"ok", "unverified", true, false, "validity unverified"},
        {"not-steady", "valid", true, false, "outcome not-steady"},
        {"inconsistent", "valid", true, false, "outcome inconsistent"},
        {"sut-error", "valid", true, false, "outcome sut-error"},
        {"infra-error", "valid", true, false, "outcome infra-error"},
        {"capacity", "valid", true, false, "outcome capacity"},
        {"cancelled", "valid", true, false, "outcome cancelled"},
        {"harness-error", "valid", true, false, "outcome harness-error"},
        {"OK", "valid", true, false, "outcome OK"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *plan = two_arms(cases[i].accept_noisy), *runs = eight_rounds();
        wb_json *changed = wb_json_at(runs, 4), *report;
        const wb_json *arm, *left;
        wb_json_set_str(changed, "outcome", cases[i].outcome);
        wb_json_set_str(changed, "validity", cases[i].validity);
        report = report_of(plan, runs);
        arm = wb_json_at(wb_json_get(report, "arms"), 0);
        left = wb_json_path(arm, "runs.left_out");
        assert_int_equal(wb_json_int_or(arm, "n", 0), cases[i].counts ? 8 : 7);
        assert_int_equal(wb_json_len(left), !cases[i].counts);
        if (!cases[i].counts) {
            assert_string_equal(text_at(wb_json_at(left, 0), "why"), cases[i].why);
            assert_string_equal(text_at(wb_json_at(left, 0), "run"), "run_native x1_3_1");
            assert_non_null(warning(report, "left-out"));
        }
        /* and the pair is gone with it */
        assert_int_equal(wb_json_integer(wb_json_at(
                             wb_json_get(wb_json_at(wb_json_get(report, "contrasts"), 0), "n"), 1)),
                         cases[i].counts ? 8 : 7);
        if (cases[i].counts && strcmp(cases[i].validity, "noisy") == 0)
            assert_non_null(warning(report, "noisy"));
        wb_json_free(report);
    }
}

static void reasons_and_evidence_are_named(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(true), *runs = eight_rounds();
    wb_json *a = wb_json_at(runs, 0), *b = wb_json_at(runs, 1), *report;
    const wb_json *left;

    wb_json_set_str(a, "outcome", "sut-error");
    wb_json_set(a, "reasons", parsed("[\"redis-server was killed for memory\"]"));
    wb_json_set_str(b, "validity", "invalid");
    wb_json_set(b, "evidence",
                parsed("[{\"name\":\"steal\",\"verdict\":\"invalid\","
                       "\"text\":\"steal 7.1 % of the time\"}]"));
    report = report_of(plan, runs);
    left = wb_json_path(report, "runs.left_out");
    assert_string_equal(text_at(wb_json_at(left, 0), "why"),
                        "outcome sut-error: redis-server was killed for memory");
    assert_string_equal(text_at(wb_json_at(left, 1), "why"),
                        "validity invalid: steal 7.1 % of the time");
    wb_json_free(report);
}

static void last_attempt_of_a_round_counts(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds();
    struct fact again = {"native x1", 3, 2, 99, NULL, NULL}; /* a figure that would show */
    const wb_json *arms, *c;
    wb_json *report;

    /* Round 3 was repeated, but only one arm of the second attempt was reached. */
    wb_json_push(runs, summary(&again));
    report = report_of(plan, runs);
    arms = wb_json_get(report, "arms");
    c = wb_json_at(wb_json_get(report, "contrasts"), 0);
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(c, "n"), 0)), 7);
    assert_int_equal(wb_json_int_or(wb_json_at(arms, 0), "n", 0), 8);
    assert_int_equal(wb_json_int_or(wb_json_at(arms, 1), "n", 0), 7);
    assert_string_equal(
        text_at(wb_json_at(wb_json_path(wb_json_at(arms, 1), "runs.left_out"), 0), "why"),
        "the round was repeated as attempt 2");
    wb_json_free(report);

    /* Now the other arm too: the pair is complete again, from attempt 2 alone. */
    again = (struct fact){"docker x1", 3, 2, 99 * 0.9, NULL, NULL};
    wb_json_push(runs, summary(&again));
    report = report_of(plan, runs);
    c = wb_json_at(wb_json_get(report, "contrasts"), 0);
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(c, "n"), 0)), 8);
    assert_int_equal(wb_json_len(wb_json_path(report, "runs.left_out")), 2);
    wb_json_free(report);
}

static void strangers_and_doubles_are_listed(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds();
    struct fact stranger = {"vm x1", 1, 1, 5, NULL, NULL},
                twin = {"native x1", 1, 1, 5, NULL, NULL};
    wb_json *report, *no_round = summary(&twin);
    const wb_json *left;

    wb_json_push(runs, summary(&stranger));
    wb_json_push(runs, summary(&twin));
    wb_json_del(no_round, "round");
    wb_json_push(runs, no_round);
    wb_json_push(runs, parsed("{\"id\":\"run_x\",\"damaged\":\"summary.json is cut short\"}"));
    report = report_of(plan, runs);
    left = wb_json_path(report, "runs.left_out");
    assert_int_equal(wb_json_len(left), 4);
    assert_string_equal(text_at(wb_json_at(left, 0), "why"), "its arm is not in the plan");
    assert_string_equal(text_at(wb_json_at(left, 1), "why"),
                        "a second run of the same arm, round and attempt");
    assert_string_equal(text_at(wb_json_at(left, 2), "why"), "its record names no round");
    assert_string_equal(text_at(wb_json_at(left, 3), "why"),
                        "its record is damaged: summary.json is cut short");
    assert_int_equal(wb_json_int_or(report, "n", 0), 16);
    wb_json_free(report);
}

static void a_verdict_needs_six_rounds(void **state)
{
    for (size_t keep = 0; keep <= 6; keep++) {
        WB_AUTO_JSON wb_json *plan = two_arms(false), *all = eight_rounds(),
                             *runs = wb_json_array();
        wb_json *report;
        const wb_json *c;
        for (size_t i = 0; i < 2 * keep; i++)
            wb_json_push(runs, wb_json_ref(wb_json_at(all, i)));
        report = report_of(plan, runs);
        c = wb_json_at(wb_json_get(report, "contrasts"), 0);
        assert_string_equal(text_at(c, "verdict"), keep < 6 ? "insufficient" : "worse");
        assert_int_equal(warning(report, "few-rounds") != NULL, keep < 6);
        assert_int_equal(warning(report, "no-runs") != NULL, keep == 0);
        if (keep < 6)
            assert_int_equal(wb_json_int_or(c, "rounds_needed", 0), 6);
        wb_json_free(report);
    }
}

static void a_limited_figure_is_never_equivalent(void **state)
{
    static const struct {
        const char *by, *verdict;
        double ratio;
    } cases[] = {
        {"client", "inconclusive", 1},
        {"network", "inconclusive", 1},
        {"database", "equivalent", 1},
        {"client", "worse", 0.8}, /* a difference is a difference still */
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = wb_json_array();
        wb_json *report;
        const wb_json *c;
        for (int round = 1; round <= 8; round++) {
            double wiggle = 1 + 0.001 * (round % 3 - 1);
            struct fact native = {"native x1", round, 1, 1000, NULL, NULL};
            struct fact docker = {"docker x1", round, 1, 1000 * cases[i].ratio * wiggle,
                                  NULL,        NULL};
            wb_json_push(runs, summary(&native));
            wb_json_push(runs, summary(&docker));
        }
        wb_json_set(wb_json_at(runs, 3), "limits",
                    parsed("[{\"metric\":\"max.throughput\",\"text\":\"thread at 97 %\"}]"));
        wb_json_set_str(wb_json_at(wb_json_get(wb_json_at(runs, 3), "limits"), 0), "by",
                        cases[i].by);
        report = report_of(plan, runs);
        c = wb_json_at(wb_json_get(report, "contrasts"), 0);
        assert_string_equal(text_at(c, "verdict"), cases[i].verdict);
        if (strcmp(cases[i].by, "database") != 0) {
            assert_string_equal(text_at(wb_json_at(wb_json_get(c, "limited"), 0), "by"),
                                cases[i].by);
            assert_non_null(strstr(text_at(warning(report, "limited"), "text"),
                                   "in 1 of 8 runs: thread at 97 %"));
        } else {
            assert_int_equal(wb_json_len(wb_json_get(c, "limited")), 0);
        }
        wb_json_free(report);
    }
}

static void contrasts_are_a_family(void **state)
{
    WB_AUTO_JSON wb_json *plan =
        parsed("{\"rounds\":8,\"arms\":[{\"label\":\"a\"}],\"contrasts\":[]}");
    WB_AUTO_JSON wb_json *runs = wb_json_array();
    wb_json *report;
    const wb_json *c;

    /* Seven arms against a; only the first differs: p = 1/128, q = 7/128 > 0.05. */
    for (int k = 0; k < 7; k++) {
        WB_AUTO_FREE char *arm = wb_strf("b%d", k);
        WB_AUTO_FREE char *contrast = wb_strf(
            "{\"name\":\"\",\"arm\":\"%s\",\"against\":\"a\",\"metric\":\"max.throughput\"}", arm);
        WB_AUTO_FREE char *planned = wb_strf("{\"label\":\"%s\"}", arm);
        wb_json_push(wb_json_get(plan, "arms"), parsed(planned));
        wb_json_push(wb_json_get(plan, "contrasts"), parsed(contrast));
    }
    for (int round = 1; round <= 8; round++) {
        struct fact f = {"a", round, 1, 1000, NULL, NULL};
        wb_json_push(runs, summary(&f));
        for (int k = 0; k < 7; k++) {
            WB_AUTO_FREE char *arm = wb_strf("b%d", k);
            f.arm = arm;
            f.throughput = k == 0 ? 900 + round : 1000 + (round % 2 ? 20 : -20) * (k + round);
            wb_json_push(runs, summary(&f));
        }
    }
    report = report_of(plan, runs);
    c = wb_json_at(wb_json_get(report, "contrasts"), 0);
    assert_true(wb_json_real_or(c, "p", 1) == 2.0 / 256);
    assert_true(fabs(wb_json_real_or(c, "q", 0) - 7.0 / 128) < 1e-12);
    assert_string_equal(text_at(c, "verdict"), "inconclusive");
    assert_string_equal(text_at(warning(report, "family-too-large"), "text"),
                        "with 7 contrasts and 8 rounds a single difference cannot be told from "
                        "chance: that takes 9 rounds");
    wb_json_free(report);
}

static void unpaired_across_campaigns(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds();
    wb_json *report;
    const wb_json *c;

    for (size_t i = 0; i < wb_json_len(runs); i++)
        if (strcmp(text_at(wb_json_at(runs, i), "arm"), "docker x1") == 0)
            wb_json_set_str(wb_json_at(runs, i), "campaign", "cmp_2");
    report = report_of(plan, runs); /* rounds of two campaigns are no pairs */
    c = wb_json_at(wb_json_get(report, "contrasts"), 0);
    assert_string_equal(text_at(c, "verdict"), "insufficient");
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(c, "n"), 0)), 0);
    wb_json_free(report);
    wb_json_set_bool(wb_json_at(wb_json_get(plan, "contrasts"), 0), "paired", false);
    report = report_of(plan, runs);
    c = wb_json_at(wb_json_get(report, "contrasts"), 0);
    assert_string_equal(text_at(c, "method"), "mann-whitney-exact");
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(c, "n"), 0)), 8);
    wb_json_free(report);
}

static void mixed_series_are_said(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(false), *runs = eight_rounds();
    wb_json *report;

    for (size_t i = 0; i < wb_json_len(runs); i++)
        wb_json_set_str(wb_json_at(runs, i), "series_key", i == 5 ? "bb" : "aa");
    report = report_of(plan, runs);
    assert_non_null(warning(report, "mixed-series"));
    wb_json_free(report);
}

static void wrong_plans_are_refused(void **state)
{
    static const struct {
        const char *plan, *want;
    } cases[] = {
        {"{}", "/arms: the plan has no arms"},
        {"{\"arms\":[]}", "/arms: the plan has no arms"},
        {"{\"arms\":[{}]}", "/arms/0/label: is missing"},
        {"{\"arms\":[{\"label\":\"a\"},{\"label\":\"a\"}]}", "/arms/1/label: 'a' is there twice"},
        {"{\"arms\":[{\"label\":\"a\"}],\"contrasts\":[{\"arm\":\"a\",\"against\":\"z\"}]}",
         "/contrasts/0: arm 'a' against 'z'"},
        {"{\"arms\":[{\"label\":\"a\"}],\"contrasts\":[{\"arm\":\"a\",\"against\":\"a\"}]}",
         "/contrasts/0/metric: is missing"},
    };
    WB_AUTO_JSON wb_json *none = wb_json_array(), *plan = two_arms(false), *word = wb_json_str("x");
    wb_json *out = NULL;

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *bad = parsed(cases[i].plan);
        struct wb_err err = WB_ERR_INIT;
        assert_int_equal(wb_campaign_report(bad, none, &out, &err), -WB_INVALID);
        assert_null(out);
        assert_memory_equal(err.root, cases[i].want, strlen(cases[i].want));
    }
    assert_int_equal(wb_campaign_report(plan, word, &out, NULL), -WB_INVALID);
}

static void check_width(const char *text, int width)
{
    while (*text != '\0') {
        int n = 0;
        for (; *text != '\n'; text++) {
            assert_int_not_equal(*text, '\0'); /* ends with a newline */
            assert_true((unsigned char)*text >= 0x20);
            n += ((unsigned char)*text & 0xc0) != 0x80;
        }
        text++;
        assert_true(n <= width);
    }
}

static void prints_eighty_columns(void **state)
{
    WB_AUTO_JSON wb_json *plan = two_arms(true), *runs = eight_rounds();
    struct wb_buf b = WB_BUF_INIT(100000);
    wb_json *report;

    wb_json_set_str(wb_json_at(runs, 2), "validity", "noisy");
    wb_json_set(wb_json_at(runs, 4), "limits",
                parsed("[{\"metric\":\"max.throughput\",\"by\":\"client\",\"text\":\"busiest load "
                       "thread at 96 % of its CPU\"}]"));
    wb_json_set_str(wb_json_at(runs, 15), "outcome", "cancelled");
    report = report_of(plan, runs);
    wb_campaign_report_print(report, 80, &b);
    assert_string_equal(
        wb_buf_str(&b),
        "forms: cmp_1, 8 rounds of 2 arms, 15 of 16 runs counted, 1 of them noisy\n"
        "\n"
        "arm        throughput     95 % interval  p50     p99  p99.9  n\n"
        "---------  ----------  ----------------  ---  ------  -----  -\n"
        "native x1   120.0k/s*  105.0k to 135.0k    -  833 us      -  7\n"
        "docker x1    110.8k/s   95.0k to 126.6k    -  903 us      -  8\n"
        "Medians over the runs. Throughput is of phase 'max', latency of phase 'max'.\n"
        "\n"
        "contrast          ratio   95 % interval      q  verdict\n"
        "----------------  -----  --------------  -----  -------\n"
        "docker x1 against native x1\n"
        "  max.throughput  0.903  0.901 to 0.904  0.016  worse *\n"
        "  max.p99_ms      1.108  1.106 to 1.110  0.016  worse\n"
        "\n"
        "Worse: max.throughput of docker x1 against native x1: 9.7 % lower (95 % interval\n"
        "  9.6 % to 9.9 % lower).\n"
        "\n"
        "Notes\n"
        "  - noisy, and accepted by the study: 1 of 15 runs\n"
        "  - not counted: 1 of 16 runs\n"
        "  * max.throughput of native x1 was limited by the client in 1 of 7 runs:\n"
        "    busiest load thread at 96 % of its CPU\n"
        "\n"
        "Runs that are not counted\n"
        "  - run_native x1_8_1 (native x1, round 8, attempt 1): outcome cancelled\n");
    check_width(wb_buf_str(&b), 80);
    wb_buf_release(&b);
    wb_json_free(report);
}

/* Long names and control characters from records must not break the lines or drive the terminal. */
static void prints_hostile_names(void **state)
{
    static const char *const long_label = "docker x4/row_cache_size=512MiB/key=uniform/a\x1b[2Jb";
    WB_AUTO_JSON wb_json *plan = two_arms(true), *runs = eight_rounds();
    struct wb_buf b = WB_BUF_INIT(100000);
    wb_json *report;

    wb_json_set_str(wb_json_at(wb_json_get(plan, "arms"), 1), "label", long_label);
    wb_json_set_str(wb_json_at(wb_json_get(plan, "contrasts"), 0), "arm", long_label);
    for (size_t i = 0; i < wb_json_len(runs); i++)
        if (strcmp(text_at(wb_json_at(runs, i), "arm"), "docker x1") == 0)
            wb_json_set_str(wb_json_at(runs, i), "arm", long_label);
    wb_json_set_str(wb_json_at(runs, 0), "outcome", "sut-error");
    wb_json_set(wb_json_at(runs, 0), "reasons", parsed("[\"bad\\u001b]0;title\\u0007\\nnews\"]"));
    report = report_of(plan, runs);
    wb_campaign_report_print(report, 80, &b);
    check_width(wb_buf_str(&b), 80);
    assert_non_null(strstr(wb_buf_str(&b), "bad?]0;title??news"));
    wb_buf_release(&b);
    wb_json_free(report);
}

/* What a container costs and what more instances do stand in tables of their own, whatever the
 * order of the plan. */
static void never_mixes_subjects(void **state)
{
    static const char *const order[] = {
        "\nContainer cost\n", "docker x1 against native x1", "docker x2 against native x2",
        "\nMore instances\n", "native x2 against native x1", "Insufficient:"};
    WB_AUTO_JSON wb_json *report = parsed(
        "{\"campaign\": \"c\", \"rounds\": 1, \"arms\": [], \"runs\": {}, \"contrasts\": ["
        "{\"about\": \"container cost\", \"name\": \"\", \"arm\": \"docker x1\", \"against\": "
        "\"native x1\", \"metric\": \"max.throughput\", \"primary\": true, \"verdict\": "
        "\"insufficient\"},"
        "{\"about\": \"more instances\", \"name\": \"\", \"arm\": \"native x2\", \"against\": "
        "\"native x1\", \"metric\": \"max.throughput\", \"primary\": true, \"verdict\": "
        "\"insufficient\"},"
        "{\"about\": \"container cost\", \"name\": \"\", \"arm\": \"docker x2\", \"against\": "
        "\"native x2\", \"metric\": \"max.throughput\", \"primary\": true, \"verdict\": "
        "\"insufficient\"}]}");
    struct wb_buf b = WB_BUF_INIT(100000);
    const char *at;

    wb_campaign_report_print(report, 80, &b);
    at = wb_buf_str(&b);
    for (size_t i = 0; i < WB_LEN(order); i++) {
        const char *found = strstr(at, order[i]);

        if (!found)
            fail_msg("'%s' is not where it should be in\n%s", order[i], wb_buf_str(&b));
        at = found + strlen(order[i]) - 1;
    }
    check_width(wb_buf_str(&b), 80);
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reused_data),
        cmocka_unit_test(pairs_within_rounds),
        cmocka_unit_test(only_runs_that_may_be_believed_count),
        cmocka_unit_test(reasons_and_evidence_are_named),
        cmocka_unit_test(last_attempt_of_a_round_counts),
        cmocka_unit_test(strangers_and_doubles_are_listed),
        cmocka_unit_test(a_verdict_needs_six_rounds),
        cmocka_unit_test(a_limited_figure_is_never_equivalent),
        cmocka_unit_test(contrasts_are_a_family),
        cmocka_unit_test(unpaired_across_campaigns),
        cmocka_unit_test(mixed_series_are_said),
        cmocka_unit_test(wrong_plans_are_refused),
        cmocka_unit_test(prints_eighty_columns),
        cmocka_unit_test(prints_hostile_names),
        cmocka_unit_test(never_mixes_subjects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
