/* `stats compare` and `stats adjust` against published data and hostile input. */
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

#define DATA "tests/data/analysis/"

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

static wb_json *answer_to(const wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_stats_compare(in, &out, &err) < 0)
        fail_msg("%s", err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_string(wb_json_get(out, "method")));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_non_null(wb_json_get(out, "n"));
    return out;
}

static wb_json *answer(const char *text)
{
    WB_AUTO_JSON wb_json *in = parsed(text);

    return answer_to(in);
}

static bool warned(const wb_json *out, const char *code)
{
    const wb_json *warnings = wb_json_get(out, "warnings");

    for (size_t i = 0; i < wb_json_len(warnings); i++)
        if (strcmp(wb_json_str_or(wb_json_at(warnings, i), "code", ""), code) == 0)
            return true;
    return false;
}

/* The figure at both paths is the same number, or null at both (then with a reason). */
static void same_figure(const char *file, const wb_json *want, const char *want_path,
                        const wb_json *got, const char *got_path, double relative)
{
    const wb_json *w = wb_json_path(want, want_path), *g = wb_json_path(got, got_path);
    double a = wb_json_number(w, NAN), b = wb_json_number(g, NAN);

    if (w == NULL)
        return; /* the file does not say */
    if (wb_json_type(w) == WB_JSON_NULL) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", got_path);
        if (wb_json_type(g) != WB_JSON_NULL || wb_json_string(wb_json_path(got, reason)) == NULL)
            fail_msg("%s: %s must be null with a reason", file, got_path);
        return;
    }
    if (!(fabs(a - b) <= relative * fabs(a) + 1e-12))
        fail_msg("%s: %s is %.12g, must be %.12g", file, got_path, b, a);
}

static void published_cases(void **state)
{
    static const struct {
        const char *file, *verdicts; /* allowed words */
    } cases[] = {
        {"benchstat-gob", "equivalent inconclusive"},
        {"benchstat-issue19565-A", "equivalent inconclusive"},
        {"benchstat-issue19634", "better"},
        {"benchstat-json", "better"},
        {"benchstat-smallsample", "insufficient"},
        {"benchstat-umath-mixed4", "equivalent inconclusive"},
        {"benchstat-umath-sep3", "insufficient"},
        {"compare-ties-onesided-trap", "inconclusive"},
    };
    static const struct {
        const char *want, *got;
        double relative;
    } keys[] = {
        {"median_base", "median_base", 0},
        {"median_new", "median_new", 0},
        {"delta_percent_of_medians", "delta_percent", 1e-7},
        {"median_ci95_base", "median_ci95_base", 0},
        {"median_ci95_base.lo", "median_ci95_base.lo", 0},
        {"median_ci95_base.hi", "median_ci95_base.hi", 0},
        {"median_ci95_base.coverage", "median_ci95_base.coverage", 1e-7},
        {"median_ci95_new.lo", "median_ci95_new.lo", 0},
        {"median_ci95_new.hi", "median_ci95_new.hi", 0},
        {"p_exact_two_sided", "p", 1e-9},
        {"prob_new_greater_A12", "a12", 1e-12},
        {"cliffs_delta", "cliffs_delta", 1e-12},
        {"hodges_lehmann_ratio.estimate", "ratio.estimate", 1e-7},
        {"hodges_lehmann_ratio.ci95_lo", "ratio.lo", 1e-7},
        {"hodges_lehmann_ratio.ci95_hi", "ratio.hi", 1e-7},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *path = wb_strf(DATA "%s.json", cases[i].file);
        wb_json *doc = NULL, *out, *want;
        const char *verdict;
        assert_int_equal(wb_json_read_file(path, 1 << 20, &doc, NULL), 0);
        want = wb_json_get(doc, "expected");
        out = answer_to(wb_json_get(doc, "input"));
        assert_true(wb_json_equal(wb_json_get(want, "n"), wb_json_get(out, "n")));
        for (size_t k = 0; k < WB_LEN(keys); k++) {
            /* whole objects are looked at only where they must be null */
            const wb_json *w = wb_json_path(want, keys[k].want);
            if (wb_json_type(w) != WB_JSON_OBJECT)
                same_figure(cases[i].file, want, keys[k].want, out, keys[k].got, keys[k].relative);
        }
        verdict = wb_json_str_or(out, "verdict", "?");
        if (strstr(cases[i].verdicts, verdict) == NULL)
            fail_msg("%s: verdict %s", cases[i].file, verdict);
        wb_json_free(out);
        wb_json_free(doc);
    }
}

static void published_geomean(void **state)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    wb_json *out;

    assert_int_equal(wb_json_read_file(DATA "benchstat-geomean.json", 1 << 20, &doc, NULL), 0);
    out = answer_to(wb_json_get(doc, "input"));
    same_figure("geomean", wb_json_get(doc, "expected"), "geomean_of_ratios", out, "geomean.ratio",
                1e-9);
    assert_int_equal(wb_json_int_or(wb_json_get(out, "geomean"), "of", 0), 2);
    assert_int_equal(wb_json_len(wb_json_get(out, "rows")), 2);
    wb_json_free(out);
}

static void zeros_as_published(void **state)
{
    WB_AUTO_JSON wb_json *out =
        answer("{\"better\":\"lower\",\"rows\":[{\"name\":\"same zero\",\"base\":[0],\"new\":[0]},"
               "{\"name\":\"from zero\",\"base\":[0],\"new\":[100]},"
               "{\"name\":\"tiny up\",\"base\":[171717171716],\"new\":[171717171717]},"
               "{\"name\":\"only base\",\"base\":[5]},{\"name\":\"only new\",\"new\":[5]}]}");
    const wb_json *rows = wb_json_get(out, "rows"), *left;

    assert_true(wb_json_real_or(wb_json_at(rows, 0), "delta_percent", 9) == 0);
    assert_int_equal(wb_json_type(wb_json_get(wb_json_at(rows, 1), "delta_percent")), WB_JSON_NULL);
    assert_non_null(wb_json_string(wb_json_get(wb_json_at(rows, 1), "delta_percent_reason")));
    assert_true(wb_json_real_or(wb_json_at(rows, 2), "delta_percent", 0) > 0);
    assert_true(wb_json_real_or(wb_json_at(rows, 2), "delta_percent", 1) < 1e-9);
    assert_string_equal(wb_json_str_or(wb_json_at(rows, 3), "verdict", ""), "insufficient");
    assert_int_equal(wb_json_type(wb_json_get(wb_json_at(rows, 3), "median_new")), WB_JSON_NULL);
    left = wb_json_path(out, "geomean.left_out");
    assert_int_equal(wb_json_len(left), 3);
    assert_string_equal(wb_json_str_or(wb_json_at(left, 0), "name", ""), "from zero");
    assert_int_equal(wb_json_int_or(wb_json_get(out, "geomean"), "of", 0), 2);
    assert_true(warned(out, "rows-differ"));
}

static void paired_takes_out_the_drift(void **state)
{
    /* 2 % slower in every round while the host drifts by 30 %: unpaired sees nothing. */
    static const char *const base = "[100,105,110,115,120,125,130,135]";
    static const char *const slow = "[95,99.8,104.6,109.3,114.1,118.6,123.4,128.2]";
    WB_AUTO_FREE char *a =
        wb_strf("{\"rounds_base\":%s,\"rounds_new\":%s,\"better\":\"higher\"}", base, slow);
    WB_AUTO_FREE char *b = wb_strf("{\"base\":%s,\"new\":%s,\"better\":\"higher\"}", base, slow);
    WB_AUTO_JSON wb_json *paired = answer(a), *plain = answer(b);

    assert_true(wb_json_bool_or(paired, "paired", false));
    assert_string_equal(wb_json_str_or(paired, "method", ""), "signed-rank-exact");
    assert_true(wb_json_real_or(paired, "p", 1) == 2.0 / 256);
    assert_string_equal(wb_json_str_or(paired, "verdict", ""), "worse");
    assert_false(wb_json_bool_or(plain, "paired", true));
    assert_string_equal(wb_json_str_or(plain, "verdict", ""), "inconclusive");
    assert_true(wb_json_real_or(plain, "rounds_needed", 0) > 8);
}

static void verdicts_by_interval_and_threshold(void **state)
{
    static const struct {
        const char *text, *verdict;
    } cases[] = {
        /* +10 %: direction decides the word */
        {"{\"base\":[100,101,99,100,102,98],\"new\":[110,111,109,110,112,108],\"better\":"
         "\"higher\"}",
         "better"},
        {"{\"base\":[100,101,99,100,102,98],\"new\":[110,111,109,110,112,108],\"better\":"
         "\"lower\"}",
         "worse"},
        /* the same change is below a threshold of 20 %, but real */
        {"{\"base\":[100,101,99,100,102,98],\"new\":[110,111,109,110,112,108],\"better\":\"lower\","
         "\"threshold_percent\":20}",
         "negligible"},
        /* 1 % apart with little noise: real and negligible at 2 % */
        {"{\"base\":[100,100.1,99.9,100,100.2,99.8],\"new\":[101,101.1,100.9,101,101.2,100.8],"
         "\"better\":\"higher\"}",
         "negligible"},
        {"{\"base\":[100,100.1,99.9,100,100.2,99.8],\"new\":[100,100.1,99.9,100,100.2,99.7],"
         "\"better\":\"higher\"}",
         "equivalent"},
        {"{\"base\":[100,130,80,100,120],\"new\":[100,125,85,110,120],\"better\":\"higher\"}",
         "inconclusive"},
        {"{\"base\":[1,2,3],\"new\":[101,102,103],\"better\":\"higher\"}", "insufficient"},
        {"{\"base\":[],\"new\":[101,102,103,104],\"better\":\"higher\"}", "insufficient"},
        {"{\"rounds_base\":[1,2,3,4,5],\"rounds_new\":[2,4,6,8,10],\"better\":\"higher\"}",
         "insufficient"},
        {"{\"rounds_base\":[1,2,3,4,5,6],\"rounds_new\":[2,4,6,8,10,12],\"better\":\"higher\"}",
         "better"},
        /* differences: errors from 0 to 5 */
        {"{\"base\":[0,0,0,0,0,0],\"new\":[5,6,5,4,5,5],\"better\":\"lower\"}", "worse"},
        {"{\"base\":[0,0,0,0],\"new\":[0,0,0,0],\"better\":\"lower\"}", "equivalent"},
        {"{\"base\":[-10,-10.1,-9.9,-10],\"new\":[-10,-10.1,-9.9,-10.05],\"better\":\"lower\"}",
         "equivalent"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *out = answer(cases[i].text);
        if (strcmp(wb_json_str_or(out, "verdict", "?"), cases[i].verdict) != 0)
            fail_msg("case %zu: %s, must be %s", i, wb_json_str_or(out, "verdict", "?"),
                     cases[i].verdict);
    }
}

static void without_direction_no_better_or_worse(void **state)
{
    WB_AUTO_JSON wb_json *out = answer("{\"base\":[1,1,1,1],\"new\":[2,2,2,2.1]}");

    assert_int_equal(wb_json_type(wb_json_get(out, "verdict")), WB_JSON_NULL);
    assert_non_null(wb_json_string(wb_json_get(out, "verdict_reason")));
    assert_true(warned(out, "no-direction"));
}

static void rows_are_judged_as_a_family(void **state)
{
    /* Alone p = 0.0286 would do; among 4 rows with nothing in them it does not. */
    static const char *const one = "{\"base\":[100,101,102,103],\"new\":[110,111,112,113]}";
    static const char *const null_row = "{\"base\":[100,101,102,103],\"new\":[100,101,102,103.5]}";
    WB_AUTO_FREE char *text = wb_strf("{\"better\":\"higher\",\"rows\":[%s,%s,%s,%s]}", one,
                                      null_row, null_row, null_row);
    WB_AUTO_JSON wb_json *alone = answer(one), *family = answer(text);
    const wb_json *row = wb_json_at(wb_json_get(family, "rows"), 0);

    assert_true(fabs(wb_json_real_or(alone, "p", 1) - 2.0 / 70) < 1e-12);
    assert_true(fabs(wb_json_real_or(row, "q", 1) - 8.0 / 70) < 1e-12);
    assert_string_equal(wb_json_str_or(row, "verdict", ""), "inconclusive");
    assert_string_equal(wb_json_str_or(row, "name", ""), "/rows/0");
}

static void nulls_are_left_out_and_said(void **state)
{
    WB_AUTO_JSON wb_json *paired =
        answer("{\"rounds_base\":[1,null,3,4,5,6,7,8],\"rounds_new\":[2,4,6,null,10,12,14,16],"
               "\"better\":\"higher\",\"treshold_percent\":5}");
    WB_AUTO_JSON wb_json *plain =
        answer("{\"base\":[1,null,3],\"new\":[null,null],\"better\":\"higher\"}");

    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(paired, "n"), 0)), 6);
    assert_true(warned(paired, "dropped"));
    assert_true(warned(paired, "unknown-key"));
    assert_string_equal(wb_json_str_or(paired, "verdict", ""), "better");
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(plain, "n"), 0)), 2);
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(plain, "n"), 1)), 0);
    assert_string_equal(wb_json_str_or(plain, "verdict", ""), "insufficient");
}

static void wrong_input_is_named(void **state)
{
    static const struct {
        const char *text, *want; /* beginning of the message */
    } cases[] = {
        {"[]", "the input must be an object"},
        {"{}", "/base: is missing"},
        {"{\"base\":[1]}", "/new: is missing"},
        {"{\"base\":[1,\"2\"],\"new\":[1]}", "/base/1: must be a number or null"},
        {"{\"base\":[1],\"new\":{\"a\":1}}", "/new: must be a list of numbers"},
        {"{\"base\":[1],\"new\":[true]}", "/new/0: must be a number or null"},
        {"{\"base\":[1e300],\"new\":[1]}", "/base/0: 1e+300 is out of range"},
        {"{\"base\":[1],\"new\":[1e-300]}", "/new/0: 1e-300 is out of range"},
        {"{\"base\":[1],\"new\":[1],\"better\":\"bigger\"}",
         "/better: must be 'higher' or 'lower'"},
        {"{\"base\":[1],\"new\":[1],\"better\":1}", "/better: must be 'higher' or 'lower'"},
        {"{\"base\":[1],\"new\":[1],\"threshold_percent\":-1}", "/threshold_percent: must be"},
        {"{\"base\":[1],\"new\":[1],\"threshold_percent\":\"2%\"}", "/threshold_percent: must be"},
        {"{\"rounds_base\":[1,2],\"rounds_new\":[1]}",
         "/rounds_new: has 1 values, rounds_base has 2"},
        {"{\"rounds_base\":[1]}", "/rounds_new: is missing"},
        {"{\"rounds_base\":[1],\"rounds_new\":[1],\"base\":[1]}", "/rounds_base: base and new"},
        {"{\"rows\":{}}", "/rows: must be a list"},
        {"{\"rows\":[1]}", "/rows/0: must be an object"},
        {"{\"rows\":[{\"base\":[1],\"new\":[1]},{\"base\":[1],\"new\":[\"x\"]}]}",
         "/rows/1/new/0: must be a number or null"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *in = parsed(cases[i].text);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        assert_int_equal(wb_stats_compare(in, &out, &err), -WB_INVALID);
        assert_null(out);
        if (strncmp(err.root, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("case %zu: '%s', must begin with '%s'", i, err.root, cases[i].want);
    }
}

static void too_many_values_are_refused(void **state)
{
    WB_AUTO_JSON wb_json *in = wb_json_object();
    struct wb_err err = WB_ERR_INIT;
    wb_json *list = wb_json_array(), *out = NULL;

    for (int i = 0; i < 1000; i++)
        wb_json_push(list, wb_json_int(i + 1));
    wb_json_set(in, "base", list);
    wb_json_set(in, "new", wb_json_copy(list));
    assert_int_equal(wb_stats_compare(in, &out, &err), 0); /* the bound itself works */
    assert_true(warned(out, "approximate"));
    assert_true(wb_json_real_or(out, "p", 0) == 1);
    wb_json_free(out);
    out = NULL;
    wb_json_push(list, wb_json_int(7));
    assert_int_equal(wb_stats_compare(in, &out, &err), -WB_INVALID);
    assert_string_equal(err.root, "/base: has 1001 values, at most 1000 are taken");
}

/* Nothing in an answer depends on the order of the runs or on the unit they are given in. */
static void answers_do_not_depend_on_order_or_unit(void **state)
{
    static const char *const same[] = {
        "{\"base\":[3,1,2,5,4],\"new\":[7,8,6,9,10],\"better\":\"higher\"}",
        "{\"base\":[5,4,3,2,1],\"new\":[10,9,8,7,6],\"better\":\"higher\"}",
        ("{\"base\":[2048,1024,3072,5120,4096],\"new\":[7168,8192,6144,9216,10240],"
         "\"better\":\"higher\"}"),
    };
    static const char *const keys[] = {"p", "ratio", "a12", "verdict", "delta_percent"};
    WB_AUTO_JSON wb_json *first = answer(same[0]);

    for (size_t i = 1; i < WB_LEN(same); i++) {
        WB_AUTO_JSON wb_json *out = answer(same[i]);
        for (size_t k = 0; k < WB_LEN(keys); k++)
            assert_true(wb_json_equal(wb_json_get(first, keys[k]), wb_json_get(out, keys[k])));
    }
}

static void adjust_follows_the_contract(void **state)
{
    static const struct {
        const char *text, *want;
    } wrong[] = {
        {"[]", "the input must be"},         {"{}", "/p: is missing"},
        {"{\"p\":1}", "/p: must be a list"}, {"{\"p\":[0.1,2]}", "/p/1: must be a number from 0"},
        {"{\"p\":[-0.1]}", "/p/0: must be"}, {"{\"p\":[\"x\"]}", "/p/0: must be"},
    };
    WB_AUTO_JSON wb_json *in = parsed("{\"p\":[0.04,0.001,null,0.9]}");
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf b = WB_BUF_INIT(10000);
    wb_json *out = NULL;

    assert_int_equal(wb_stats_adjust(in, &out, &err), 0);
    wb_json_line(wb_json_get(out, "rejected"), &b);
    assert_string_equal(wb_buf_str(&b), "[1]");
    wb_buf_clear(&b);
    wb_json_line(wb_json_get(out, "q"), &b);
    assert_string_equal(wb_buf_str(&b), "[0.06,0.003,null,0.9]");
    assert_int_equal(wb_json_int_or(out, "n", 0), 3);
    assert_true(warned(out, "untested"));
    wb_json_free(out);
    wb_buf_release(&b);
    for (size_t i = 0; i < WB_LEN(wrong); i++) {
        WB_AUTO_JSON wb_json *bad = parsed(wrong[i].text);
        out = NULL;
        assert_int_equal(wb_stats_adjust(bad, &out, &err), -WB_INVALID);
        assert_null(out);
        assert_memory_equal(err.root, wrong[i].want, strlen(wrong[i].want));
    }
}

static void prints_for_people(void **state)
{
    WB_AUTO_JSON wb_json *out =
        answer("{\"base\":[1726,1723,1707,1707,1713,1729,1736,1707,1705,1774],"
               "\"new\":[1423,1416,1411,1413,1412,1426,1422,1424,1447,1425],\"better\":\"lower\"}");
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_stats_compare_print(out, 80, &b);
    assert_string_equal(wb_buf_str(&b),
                        "row            n  base     new  ratio   95 % interval       p  verdict\n"
                        "---------  -----  ----  ------  -----  --------------  ------  -------\n"
                        "base, new  10+10  1718  1422.5  0.827  0.820 to 0.834  <0.001  better\n"
                        "\n17.3 % lower (95 % interval 16.6 % to 18.0 % lower)\n");
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_cases),
        cmocka_unit_test(published_geomean),
        cmocka_unit_test(zeros_as_published),
        cmocka_unit_test(paired_takes_out_the_drift),
        cmocka_unit_test(verdicts_by_interval_and_threshold),
        cmocka_unit_test(without_direction_no_better_or_worse),
        cmocka_unit_test(rows_are_judged_as_a_family),
        cmocka_unit_test(nulls_are_left_out_and_said),
        cmocka_unit_test(wrong_input_is_named),
        cmocka_unit_test(too_many_values_are_refused),
        cmocka_unit_test(answers_do_not_depend_on_order_or_unit),
        cmocka_unit_test(adjust_follows_the_contract),
        cmocka_unit_test(prints_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
