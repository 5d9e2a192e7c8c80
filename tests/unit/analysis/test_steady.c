/* `stats steady` on made-up runs of every class, the interval case, and hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/csv.h"
#include "server/analysis/segment.h"
#include "server/analysis/steady.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

static wb_json *answer_to(const wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    wb_json *out = NULL;

    if (wb_stats_steady(in, &out, &err) < 0)
        fail_msg("%s", err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_string(wb_json_get(out, "method")));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_non_null(wb_json_get(out, "n"));
    wb_stats_steady_print(out, 60, &text);
    assert_true(text.len > 10 && !text.failed);
    wb_buf_release(&text);
    return out;
}

static wb_json *parsed(const char *text)
{
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, NULL) < 0)
        fail_msg("%s", text);
    return j;
}

static bool listed(const wb_json *list, const char *word)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(wb_json_string(wb_json_at(list, i)), word) == 0)
            return true;
    return false;
}

static bool warned(const wb_json *out, const char *code)
{
    const wb_json *warnings = wb_json_get(out, "warnings");

    for (size_t i = 0; i < wb_json_len(warnings); i++)
        if (strcmp(wb_json_str_or(wb_json_at(warnings, i), "code", ""), code) == 0)
            return true;
    return false;
}

static double normal(struct wb_rng *r)
{
    return sqrt(-2 * log(1 - wb_rng_unit(r))) * cos(2 * M_PI * wb_rng_unit(r));
}

/* A part of a run: seconds at a level with 2 % of noise, a slope and a wave on it. */
struct part {
    int seconds;
    double level, slope_per_s, wave, period;
};

static wb_json *run_of(const struct part *parts, uint64_t seed, double interval)
{
    wb_json *doc = wb_json_object(), *rates = wb_json_array();
    struct wb_rng r;

    wb_rng_seed(&r, seed);
    for (; parts->seconds > 0; parts++)
        for (int i = 0; i < parts->seconds; i++) {
            double v = parts->level + parts->slope_per_s * i;
            if (parts->period > 0)
                v *= 1 + parts->wave * sin(2 * M_PI * i / parts->period);
            wb_json_push(rates, wb_json_real(v * (1 + 0.02 * normal(&r))));
        }
    wb_json_set_real(doc, "interval_s", interval);
    wb_json_set(doc, "throughput", rates);
    return doc;
}

static void classes(void **state)
{
    static const struct {
        const char *class;
        const char *trait; /* one more that must be there, or NULL */
        double cut, within, mean;
        struct part parts[6];
    } cases[] = {
        {"flat", NULL, 0, 0, 1000, {{300, 1000, 0, 0, 0}}},
        {"warmup", NULL, 60, 3, 1000, {{60, 600, 0, 0, 0}, {240, 1000, 0, 0, 0}}},
        {"warmup", NULL, 40, 12, 1000, {{40, 600, 10, 0, 0}, {260, 1000, 0, 0, 0}}},
        {"slowdown", NULL, NAN, 0, NAN, {{200, 1000, 0, 0, 0}, {100, 700, 0, 0, 0}}},
        {"periodic", NULL, 0, 0, 1000, {{400, 1000, 0, 0.15, 40}}},
        {"warmup", "periodic", 60, 40, 1000, {{60, 500, 0, 0.15, 40}, {340, 1000, 0, 0.15, 40}}},
        {"stall", NULL, 0, 0, 980, {{120, 1000, 0, 0, 0}, {6, 20, 0, 0, 0}, {174, 1000, 0, 0, 0}}},
        {"warmup",
         "stall",
         60,
         3,
         967,
         {{60, 600, 0, 0, 0}, {60, 1000, 0, 0, 0}, {8, 20, 0, 0, 0}, {172, 1000, 0, 0, 0}}},
        {"none", NULL, NAN, 0, NAN, {{240, 1000, 0, 0, 0}, {60, 800, 0, 0, 0}}},
        {"none", NULL, NAN, 0, NAN, {{300, 1000, -0.5, 0, 0}}},
        {"none",
         NULL,
         NAN,
         0,
         NAN,
         {{100, 1000, 0, 0, 0}, {60, 600, 0, 0, 0}, {140, 1000, 0, 0, 0}}},
        {"insufficient", NULL, NAN, 0, NAN, {{59, 1000, 0, 0, 0}}},
        {"flat", NULL, 0, 0, 1000, {{60, 1000, 0, 0, 0}}},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            wb_json *doc = run_of(cases[i].parts, seed, 1), *out = answer_to(doc);
            const wb_json *traits = wb_json_get(out, "traits");
            double cut = wb_json_real_or(out, "cut", NAN);
            double mean = wb_json_real_or(out, "mean_after_cut", NAN);
            if (strcmp(wb_json_str_or(out, "class", ""), cases[i].class) != 0)
                fail_msg("case %zu seed %d: class %s", i, (int)seed,
                         wb_json_str_or(out, "class", ""));
            assert_true(listed(traits, cases[i].class));
            assert_true(cases[i].trait == NULL || listed(traits, cases[i].trait));
            if (isnan(cases[i].cut)) {
                assert_true(isnan(cut) && isnan(mean));
                assert_non_null(wb_json_string(wb_json_get(out, "cut_reason")));
                assert_non_null(wb_json_string(wb_json_get(out, "mean_after_cut_reason")));
            } else {
                assert_true(fabs(cut - cases[i].cut) <= cases[i].within);
                assert_true(fabs(mean - cases[i].mean) <= 0.02 * cases[i].mean);
            }
            wb_json_free(out);
            wb_json_free(doc);
        }
}

static void slowdown_has_two_means(void **state)
{
    static const struct part parts[] = {{200, 1000, 0, 0, 0}, {100, 700, 0, 0, 0}, {0}};
    WB_AUTO_JSON wb_json *doc = run_of(parts, 7, 1);
    wb_json *out = answer_to(doc);
    const wb_json *s = wb_json_get(out, "slowdown");

    assert_true(fabs(wb_json_real_or(s, "at", 0) - 200) <= 2);
    assert_true(fabs(wb_json_real_or(s, "before", 0) - 1000) < 10);
    assert_true(fabs(wb_json_real_or(s, "after", 0) - 700) < 10);
    assert_true(fabs(wb_json_real_or(s, "change_percent", 0) + 30) < 2);
    wb_json_free(out);
}

static void stall_is_listed(void **state)
{
    static const struct part parts[] = {
        {120, 1000, 0, 0, 0}, {6, 20, 0, 0, 0}, {174, 1000, 0, 0, 0}, {0}};
    WB_AUTO_JSON wb_json *doc = run_of(parts, 8, 1);
    wb_json *out = answer_to(doc);
    const wb_json *stall = wb_json_at(wb_json_get(out, "stalls"), 0);

    assert_int_equal(wb_json_len(wb_json_get(out, "stalls")), 1);
    assert_true(wb_json_real_or(stall, "from", 0) == 120);
    assert_true(wb_json_real_or(stall, "to", 0) == 126);
    /* MSER-5 would have cut it away. */
    assert_true(wb_json_number(wb_json_path(out, "mser5.cut"), 0) >= 120);
    wb_json_free(out);
}

static void period_is_told(void **state)
{
    static const struct part parts[] = {{400, 1000, 0, 0.15, 50}, {0}};
    WB_AUTO_JSON wb_json *doc = run_of(parts, 9, 2);
    wb_json *out = answer_to(doc);

    assert_true(fabs(wb_json_real_or(out, "period_s", 0) - 100) <= 4);
    wb_json_free(out);
}

static void cool_down_is_told(void **state)
{
    static const struct part parts[] = {{290, 1000, 0, 0, 0}, {10, 100, 0, 0, 0}, {0}};
    WB_AUTO_JSON wb_json *doc = run_of(parts, 10, 1);
    wb_json *out = answer_to(doc);

    assert_string_equal(wb_json_str_or(out, "class", ""), "flat");
    assert_true(warned(out, "cool-down"));
    wb_json_free(out);
}

/* MSER-5 against the definition. */
static void mser(void **state)
{
    static const double v[] = {10, 10, 10, 10, 10, 50,  50, 50,  50,  50,
                               90, 90, 90, 90, 90, 100, 99, 101, 100, 100};
    wb_json *doc = wb_json_object(), *rates = wb_json_array(), *out;

    for (size_t k = 0; k < 8; k++)
        for (size_t i = k == 0 ? 0 : 15; i < WB_LEN(v); i++)
            wb_json_push(rates, wb_json_real(v[i] + (i >= 15 ? (double)(k % 2) / 100 : 0)));
    wb_json_set(doc, "throughput", rates);
    wb_json_set_real(doc, "interval_s", 4);
    out = answer_to(doc);
    assert_true(wb_json_number(wb_json_path(out, "mser5.cut"), 0) == 60);
    assert_false(wb_json_is_true(wb_json_path(out, "mser5.hits_half")));
    wb_json_free(out);
    wb_json_free(doc);
}

/* ---- intervals of uneven length ---- */

static void add_list(wb_json *doc, const char *key, const double *v, size_t n)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < n; i++)
        wb_json_push(list, wb_json_real(v[i]));
    wb_json_set(doc, key, list);
}

static wb_json *case_columns(void)
{
    char *text;
    size_t n;
    wb_json *columns = NULL;

    assert_int_equal(wb_file_read("tests/data/cases/008-intervals.csv", 1 << 20, &text, &n, NULL),
                     0);
    assert_int_equal(wb_csv_columns(text, n, &columns, NULL), 0);
    free(text);
    return columns;
}

static void warm_up_case(void **state)
{
    static const struct {
        double warm_up, measured; /* NaN: not given */
        const char *class;
        double cut, mean;
    } cases[] = {
        {NAN, NAN, "warmup", 60, 6016000.0 / 244},
        {60, NAN, "flat", 60, 6016000.0 / 244},
        {60, 240, "flat", 60, 25000},
        {400, NAN, "insufficient", NAN, NAN},
        {290, NAN, "insufficient", 290, 266000.0 / 14},
        {55, 240, "flat", 55, 25000},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        for (int shape = 0; shape < 3; shape++) {
            wb_json *doc = case_columns(), *out;
            size_t n = wb_json_len(wb_json_get(doc, "t_s"));
            double begin[40], seconds[40], ops[40], end = 0;
            assert_int_equal(n, 31);
            for (size_t k = 0; k < n; k++) {
                double t = wb_json_number(wb_json_at(wb_json_get(doc, "t_s"), k), NAN);
                begin[k] = end;
                seconds[k] = t - end;
                ops[k] =
                    seconds[k] * wb_json_number(wb_json_at(wb_json_get(doc, "ops_per_s"), k), NAN);
                end = t;
            }
            if (shape > 0) { /* as counts, by ends and by begins */
                wb_json_del(doc, "ops_per_s");
                add_list(doc, "ops", ops, n);
                add_list(doc, "seconds", seconds, n);
            }
            if (shape == 2)
                add_list(doc, "t_s", begin, n);
            if (!isnan(cases[i].warm_up))
                wb_json_set_real(doc, "warm_up_s", cases[i].warm_up);
            if (!isnan(cases[i].measured))
                wb_json_set_real(doc, "measured_s", cases[i].measured);
            out = answer_to(doc);
            assert_string_equal(wb_json_str_or(out, "class", ""), cases[i].class);
            assert_true(fabs(wb_json_real_or(out, "mean", NAN) - 6616000.0 / 304) < 1e-6);
            if (isnan(cases[i].mean)) {
                assert_int_equal(wb_json_type(wb_json_get(out, "mean_after_cut")), WB_JSON_NULL);
                assert_non_null(strstr(wb_json_str_or(out, "mean_after_cut_reason", ""),
                                       "no samples left after the warm-up"));
            } else {
                assert_true(fabs(wb_json_real_or(out, "cut", NAN) - cases[i].cut) < 1e-9);
                assert_true(fabs(wb_json_real_or(out, "mean_after_cut", NAN) - cases[i].mean) <
                            1e-6);
            }
            wb_json_free(out);
            wb_json_free(doc);
        }
}

static void nulls_are_gaps(void **state)
{
    WB_AUTO_JSON wb_json *doc = parsed("{\"throughput\":[5,null,7],\"interval_s\":[10,10,10]}");
    wb_json *out = answer_to(doc);

    assert_int_equal(wb_json_int_or(out, "n", 0), 2);
    assert_true(wb_json_real_or(out, "mean", 0) == 6);
    assert_true(wb_json_real_or(out, "seconds", 0) == 30);
    wb_json_free(out);
}

static void refusals(void **state)
{
    static const struct {
        const char *text, *begin;
    } cases[] = {
        {"[]", "the input must be an object"},
        {"{}", "/throughput: give throughput"},
        {"{\"ops\":[1]}", "/seconds: is missing"},
        {"{\"ops\":[1],\"throughput\":[1],\"seconds\":[1]}", "/throughput: give"},
        {"{\"throughput\":[-1]}", "/throughput/0: must not be below 0"},
        {"{\"throughput\":[\"x\"]}", "/throughput/0: must be a number"},
        {"{\"throughput\":[1],\"interval_s\":0}", "/interval_s: must be"},
        {"{\"throughput\":[1],\"interval_s\":\"x\"}", "/interval_s: must be"},
        {"{\"throughput\":[1],\"t_s\":[1,2]}", "/t_s: has 2 values, throughput has 1"},
        {"{\"throughput\":[1,2],\"t_s\":[2,1]}", "/t_s/1: must be later"},
        {"{\"throughput\":[1,2],\"t_s\":[2,null]}", "/t_s/1: must be a number"},
        {"{\"ops\":[1],\"seconds\":[0]}", "/seconds/0: must be a number from"},
        {"{\"ops\":[1],\"seconds\":[null]}", "/seconds/0: must be"},
        {"{\"throughput\":[1],\"warm_up_s\":-1}", "/warm_up_s: must be"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *in = parsed(cases[i].text);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        assert_int_equal(wb_stats_steady(in, &out, &err), -WB_INVALID);
        assert_null(out);
        if (strncmp(err.root, cases[i].begin, strlen(cases[i].begin)) != 0)
            fail_msg("%s: %s", cases[i].text, err.root);
    }
}

static void extremes(void **state)
{
    static const char *const texts[] = {"{\"throughput\":[]}", "{\"throughput\":[null]}",
                                        "{\"throughput\":[1],\"t_s\":[5]}", "{\"throughput\":5}"};

    for (size_t i = 0; i < WB_LEN(texts); i++) {
        WB_AUTO_JSON wb_json *in = parsed(texts[i]);
        wb_json *out = answer_to(in);
        assert_string_equal(wb_json_str_or(out, "class", ""), "insufficient");
        wb_json_free(out);
    }
    for (int zero = 0; zero < 2; zero++) { /* more than one pass takes, and no noise at all */
        wb_json *doc = wb_json_object(), *rates = wb_json_array(), *out;
        for (int i = 0; i < 20000; i++)
            wb_json_push(rates, wb_json_real(zero ? 0 : 1e140));
        wb_json_set(doc, "throughput", rates);
        out = answer_to(doc);
        assert_string_equal(wb_json_str_or(out, "class", ""), "flat");
        wb_json_free(out);
        wb_json_free(doc);
    }
}

static void scaling_changes_nothing(void **state)
{
    static const struct part parts[] = {
        {60, 600, 0, 0, 0}, {60, 1000, 0, 0, 0}, {8, 20, 0, 0, 0}, {172, 1000, 0, 0, 0}, {0}};
    WB_AUTO_JSON wb_json *doc = run_of(parts, 11, 1);
    wb_json *a = answer_to(doc), *rates = wb_json_get(doc, "throughput"), *b;
    wb_json *scaled = wb_json_array();

    for (size_t i = 0; i < wb_json_len(rates); i++)
        wb_json_push(scaled, wb_json_real(1e-7 * wb_json_number(wb_json_at(rates, i), 0)));
    wb_json_set(doc, "throughput", scaled);
    b = answer_to(doc);
    assert_true(wb_json_equal(wb_json_get(a, "traits"), wb_json_get(b, "traits")));
    assert_true(wb_json_real_or(a, "cut", 0) == wb_json_real_or(b, "cut", 1));
    assert_true(fabs(1e-7 * wb_json_real_or(a, "mean_after_cut", 0) /
                         wb_json_real_or(b, "mean_after_cut", 1) -
                     1) < 1e-12);
    wb_json_free(a);
    wb_json_free(b);
}

/* The division into levels against all divisions. */
static double best_cost(const double *v, size_t n, size_t least, double penalty)
{
    double best = HUGE_VAL;

    if (n == 0)
        return 0;
    for (size_t b = 0; b + least <= n; b++) {
        double mean = 0, rest = 0, before = b > 0 ? best_cost(v, b, least, penalty) : 0;
        if (b > 0 && b < least)
            continue;
        for (size_t i = b; i < n; i++)
            mean += v[i] / (double)(n - b);
        for (size_t i = b; i < n; i++)
            rest += (v[i] - mean) * (v[i] - mean);
        best = fmin(best, before + rest + penalty);
    }
    return best;
}

static void levels_are_the_best(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 12);
    for (int t = 0; t < 50; t++) {
        double v[12], w[12], cost = 0, penalty = 0.5;
        size_t n = 4 + (size_t)wb_rng_below(&r, 9), least = 1 + (size_t)wb_rng_below(&r, 3);
        size_t starts[12], parts;
        for (size_t i = 0; i < n; i++) {
            v[i] = (double)wb_rng_below(&r, 3) + 0.3 * normal(&r);
            w[i] = 1;
        }
        parts = wb_segment(v, w, n, least, penalty, starts);
        assert_int_equal(starts[0], 0);
        for (size_t k = 0; k < parts; k++) {
            size_t end = k + 1 < parts ? starts[k + 1] : n;
            double mean = 0;
            assert_true(end - starts[k] >= least);
            for (size_t i = starts[k]; i < end; i++)
                mean += v[i] / (double)(end - starts[k]);
            for (size_t i = starts[k]; i < end; i++)
                cost += (v[i] - mean) * (v[i] - mean);
            cost += penalty;
        }
        assert_true(fabs(cost - best_cost(v, n, least, penalty)) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),
        cmocka_unit_test(slowdown_has_two_means),
        cmocka_unit_test(stall_is_listed),
        cmocka_unit_test(period_is_told),
        cmocka_unit_test(cool_down_is_told),
        cmocka_unit_test(mser),
        cmocka_unit_test(warm_up_case),
        cmocka_unit_test(nulls_are_gaps),
        cmocka_unit_test(refusals),
        cmocka_unit_test(extremes),
        cmocka_unit_test(scaling_changes_nothing),
        cmocka_unit_test(levels_are_the_best),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
