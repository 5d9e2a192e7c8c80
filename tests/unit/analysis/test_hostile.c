/*
 * Records whose figures are not to be believed: zeros, equal ones, negative ones, the ends of what
 * a number can be, gaps, one round only. Whatever the answers are, they hold no number that is
 * none, tell why a figure is not given, print as text, claim no difference of equal arms, and do
 * not depend on the order of the runs.
 */
#include "tests/unit/analysis/topic_check.h"

#include <float.h>

#include "server/analysis/campaign_scaling.h"
#include "server/analysis/campaign_value.h"
#include "server/analysis/explain.h"
#include "server/analysis/gate.h"
#include "server/analysis/trend.h"
#include "server/base/rng.h"
#include "tests/support/sample_record.h"

#define ARMS 3
static const char *const labels[ARMS] = {"native x1", "native x2", "docker x1"};

enum kind { ZERO, EQUAL, NEGATIVE, HUGE_, GREATEST, TINY, LEAST, MIXED, SIGNS, USUAL, KINDS };
static const char *const kind_names[KINDS] = {"zero", "equal", "negative", "huge",  "greatest",
                                              "tiny", "least", "mixed",    "signs", "usual"};

static double figure(enum kind kind, int arm, struct wb_rng *rng)
{
    double noise = 1 + 0.01 * wb_rng_unit(rng), one = arm == 2 ? 0.9 : 1 + arm;

    switch (kind) {
    case ZERO:
        return 0;
    case EQUAL:
        return 5;
    case NEGATIVE:
        return -1000 * one * noise;
    case HUGE_:
        return 1e300 * one * noise;
    case GREATEST:
        return DBL_MAX;
    case TINY:
        return 1e-300 * one * noise;
    case LEAST:
        return 5e-324;
    case MIXED:
        return ((const double[]){1e300, 1e-300, 0, -1e300, 1})[wb_rng_below(rng, 5)];
    case SIGNS:
        return wb_rng_below(rng, 2) ? DBL_MAX : -DBL_MAX;
    default:
        return 1000 * one * noise;
    }
}

static wb_json *plan_of(int rounds)
{
    wb_json *plan = topic_parsed(
        "{\"study\":\"forms\",\"campaign\":\"cmp_000\",\"threshold_percent\":2,\"accept_noisy\":"
        "false,"
        "\"contrasts\":[{\"name\":\"c\",\"arm\":\"docker x1\",\"against\":\"native x1\",\"metric\":"
        "\"max.throughput\",\"better\":\"higher\",\"primary\":true}]}");
    wb_json *arms = wb_json_array();

    for (int i = 0; i < ARMS; i++)
        wb_json_push(arms, sample_arm(labels[i], i == 2 ? "docker" : "native", i == 1 ? 2 : 1));
    wb_json_set(plan, "arms", arms);
    wb_json_set_int(plan, "rounds", rounds);
    return plan;
}

static wb_json *metric_of(double value, const char *unit, const char *better)
{
    wb_json *m = wb_json_object();

    wb_json_set_real(m, "value", value);
    wb_json_set_str(m, "unit", unit);
    wb_json_set_str(m, "better", better);
    return m;
}

static wb_json *run_of(int night, int arm, int round, enum kind kind, struct wb_rng *rng)
{
    WB_AUTO_FREE char *id = wb_strf("run_%03d_%d_%d", night, arm, round);
    WB_AUTO_FREE char *campaign = wb_strf("cmp_%03d", night);
    WB_AUTO_FREE char *at = wb_strf("2026-10-%02dT%02d:%02d:00.000Z", 1 + night, round, arm);
    WB_AUTO_FREE char *key = wb_strf("5e%d", arm);
    wb_json *s = topic_parsed("{\"outcome\":\"ok\",\"validity\":\"valid\",\"attempt\":1,\"study\":"
                              "\"forms\",\"host\":{\"class\":\"c\"},\"headline\":{\"throughput\":"
                              "\"max.throughput\",\"p99\":\"max.p99_ms\"},\"recipe\":{\"name\":"
                              "\"redis\",\"version\":\"7\"}}");
    wb_json *metrics = wb_json_object();

    wb_json_set_str(s, "id", id);
    wb_json_set_str(s, "campaign", campaign);
    wb_json_set_str(s, "arm", labels[arm]);
    wb_json_set_int(s, "round", round + 1);
    wb_json_set_str(s, "started_at", at);
    wb_json_set_str(s, "series_key", key);
    wb_json_set(metrics, "max.throughput", metric_of(figure(kind, arm, rng), "ops/s", "higher"));
    wb_json_set(metrics, "max.p99_ms", metric_of(figure(kind, arm, rng), "ms", "lower"));
    wb_json_set(s, "metrics", metrics);
    return s;
}

static wb_json *runs_of(int nights, int rounds, enum kind kind)
{
    wb_json *runs = wb_json_array();
    struct wb_rng rng;

    wb_rng_seed(&rng, 7 + kind);
    for (int n = nights; n-- > 0;)
        for (int r = rounds; r-- > 0;)
            for (int a = 0; a < ARMS; a++)
                wb_json_push(runs, run_of(n, a, r, kind, &rng));
    return runs;
}

/* ---- what every answer must be ---- */

/* Members that may be null as they are: texts that there are none of. */
static bool may_be_null(const char *key)
{
    static const char *const keys[] = {"factors", "commit",   "built",      "digest",    "unit",
                                       "recipe",  "last_at",  "host_class", "better",    "version",
                                       "next",    "campaign", "p99",        "throughput"};

    for (size_t i = 0; i < WB_LEN(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static size_t count_bare_nulls(const char *what, const wb_json *j)
{
    size_t wrong = 0;

    for (size_t i = 0; wb_json_type(j) == WB_JSON_ARRAY && i < wb_json_len(j); i++)
        wrong += count_bare_nulls(what, wb_json_at(j, i));
    if (wb_json_type(j) != WB_JSON_OBJECT)
        return wrong;
    for (void *it = wb_json_first(j); it != NULL; it = wb_json_next(j, it)) {
        const char *key = wb_json_iter_key(it);
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", key);

        if (wb_json_type(wb_json_iter_value(it)) == WB_JSON_NULL && !may_be_null(key) &&
            wb_json_str_or(j, reason, NULL) == NULL) {
            print_error("%s: %s is null without a reason\n", what, key);
            wrong++;
        }
        wrong += count_bare_nulls(what, wb_json_iter_value(it));
    }
    return wrong;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == text || strchr(" \n\t-(+", at[-1]) != NULL;
        if (begins && strchr(" \n\t,.)%:", at[n]) != NULL)
            return true;
    }
    return false;
}

/* Checks an answer and its print; both are done with. */
static size_t check(const char *name, enum kind kind, wb_json *out, struct wb_buf *text)
{
    WB_AUTO_FREE char *what = wb_strf("%s of %s figures", name, kind_names[kind]);
    size_t wrong = count_bare_nulls(what, out);

    if (text->failed || has_word(wb_buf_str(text), "nan") || has_word(wb_buf_str(text), "inf")) {
        print_error("%s prints\n%s\n", what, wb_buf_str(text));
        wrong++;
    }
    wb_buf_release(text);
    wb_json_free(out);
    return wrong;
}

#define TEXT WB_BUF_INIT(4u << 20)

static size_t report_and_gate(const wb_json *plan, const wb_json *runs, enum kind kind)
{
    const struct wb_gate_rules rules = {.all_metrics = true};
    struct wb_buf text = TEXT, judged = TEXT;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL, *gate = NULL;
    const char *verdict;
    size_t wrong = 0;

    if (wb_campaign_report(plan, runs, &out, &err) < 0)
        fail_msg("report of %s: %s", kind_names[kind], err.root);
    verdict = wb_json_str_or(wb_json_at(wb_json_get(out, "contrasts"), 0), "verdict", "");
    if ((kind == ZERO || kind == EQUAL || kind == GREATEST || kind == LEAST) &&
        (strcmp(verdict, "better") == 0 || strcmp(verdict, "worse") == 0)) {
        print_error("equal arms of %s are %s\n", kind_names[kind], verdict);
        wrong++;
    }
    wb_campaign_report_print(out, 80, &text);
    (void)wb_gate(out, &rules, &gate);
    wb_gate_print(gate, 80, &judged);
    wb_gate_junit(gate, &judged);
    wb_gate_markdown(gate, &judged);
    wrong += check("gate", kind, gate, &judged);
    return wrong + check("report", kind, out, &text);
}

static size_t curves(const wb_json *plan, const wb_json *runs, enum kind kind)
{
    struct wb_book_host hosts[] = {{(char *)(uintptr_t) "c", 1.5, false}};
    const struct wb_book book = {(char *)(uintptr_t) "b",
                                 (char *)(uintptr_t) "2026-01-01",
                                 (char *)(uintptr_t) "EUR",
                                 (char *)(uintptr_t) "s",
                                 hosts,
                                 1};
    const struct wb_scaling_question scaling = {.over = "instances"};
    const struct wb_value_question value = {.book = &book, .slo_p99_ms = 5};
    const struct wb_value_source source = {.plan = plan, .summaries = runs};
    struct wb_buf text = TEXT, priced = TEXT;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL, *money = NULL;
    size_t wrong = 0;

    if (wb_campaign_scaling(plan, runs, &scaling, &out, &err) == 0) {
        wb_campaign_scaling_print(out, 80, &text);
        wrong += check("scaling", kind, out, &text);
    }
    if (wb_campaign_value(&source, 1, &value, &money, &err) < 0)
        fail_msg("value of %s: %s", kind_names[kind], err.root);
    wb_campaign_value_print(money, 80, &priced);
    return wrong + check("value", kind, money, &priced);
}

static size_t histories(const wb_json *runs, enum kind kind)
{
    struct wb_trend_question q = {.series = "5e0", .min_percent = NAN};
    struct wb_buf text = TEXT, found = TEXT;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL, *list = NULL;
    size_t wrong;

    if (wb_trend(runs, &q, &out, &err) < 0)
        fail_msg("trend of %s: %s", kind_names[kind], err.root);
    wb_trend_print(out, 80, &text);
    if ((kind == ZERO || kind == EQUAL || kind == GREATEST) &&
        wb_json_len(wb_json_get(out, "change_points")) > 0)
        fail_msg("%s figures change", kind_names[kind]);
    wrong = check("trend", kind, out, &text);
    q.series = NULL;
    if (wb_findings(runs, &q, &list, &err) < 0)
        fail_msg("findings of %s: %s", kind_names[kind], err.root);
    wb_findings_print(list, 80, &found);
    return wrong + check("findings", kind, list, &found);
}

static size_t explained(const wb_json *plan, const wb_json *runs, enum kind kind)
{
    struct wb_explain_side sides[2];
    struct wb_explain_run *all[2];
    const struct wb_explain_question q = {"max.throughput", "higher", 2};
    struct wb_buf text = TEXT;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;
    size_t wrong = 0;

    for (size_t s = 0; s < 2; s++) {
        all[s] = wb_calloc(wb_json_len(runs), sizeof(*all[s]));
        sides[s] = (struct wb_explain_side){.name = labels[2 * s],
                                            .arm = wb_json_at(wb_json_get(plan, "arms"), 2 * s),
                                            .runs = all[s]};
        for (size_t i = 0; i < wb_json_len(runs); i++)
            if (strcmp(wb_json_str_or(wb_json_at(runs, i), "arm", ""), labels[2 * s]) == 0)
                all[s][sides[s].n++].summary = wb_json_at(runs, i);
    }
    if (wb_explain(sides, &q, &out, &err) < 0)
        fail_msg("explain of %s: %s", kind_names[kind], err.root);
    wb_explain_print(out, 80, &text);
    wrong = check("explain", kind, out, &text);
    free(all[0]);
    free(all[1]);
    return wrong;
}

static void answers_hold_whatever_the_figures_are(void **state)
{
    static const int rounds[] = {1, 2, 8};
    size_t wrong = 0;

    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < WB_LEN(rounds); i++) {
            WB_AUTO_JSON wb_json *plan = plan_of(rounds[i]);
            WB_AUTO_JSON wb_json *one = runs_of(1, rounds[i], (enum kind)kind);
            WB_AUTO_JSON wb_json *nights = runs_of(20, rounds[i], (enum kind)kind);

            wrong += report_and_gate(plan, one, (enum kind)kind);
            wrong += curves(plan, one, (enum kind)kind);
            wrong += histories(nights, (enum kind)kind);
            wrong += explained(plan, one, (enum kind)kind);
        }
    assert_int_equal(wrong, 0);
}

/* The runs in another order are the same runs. */
static void order_does_not_matter(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        WB_AUTO_JSON wb_json *plan = plan_of(8), *runs = runs_of(1, 8, (enum kind)kind);
        WB_AUTO_JSON wb_json *shuffled = wb_json_array(), *a = NULL, *b = NULL;
        struct wb_err err = WB_ERR_INIT;
        int *order = wb_calloc(wb_json_len(runs), sizeof(*order));
        struct wb_rng rng;

        wb_rng_seed(&rng, 11);
        for (size_t i = 0; i < wb_json_len(runs); i++)
            order[i] = (int)i;
        wb_rng_shuffle(&rng, order, wb_json_len(runs));
        for (size_t i = 0; i < wb_json_len(runs); i++)
            wb_json_push(shuffled, wb_json_ref(wb_json_at(runs, (size_t)order[i])));
        assert_int_equal(wb_campaign_report(plan, runs, &a, &err), 0);
        assert_int_equal(wb_campaign_report(plan, shuffled, &b, &err), 0);
        assert_true(wb_json_equal(wb_json_get(a, "contrasts"), wb_json_get(b, "contrasts")));
        assert_true(wb_json_equal(wb_json_get(a, "arms"), wb_json_get(b, "arms")));
        free(order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_hold_whatever_the_figures_are),
        cmocka_unit_test(order_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
