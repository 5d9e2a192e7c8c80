/* `stats scaling` and `stats queue` against published data, with the tolerances of the files. */
#include "tests/unit/analysis/topic_check.h"

#define DATA "tests/data/analysis/"

/* "rel 1e-3 or abs 1e-6": true when one of them is kept. */
static bool within(const char *tolerance, double got, double want)
{
    const char *rel = strstr(tolerance, "rel "), *abso = strstr(tolerance, "abs ");

    if (rel == NULL && abso == NULL)
        fail_msg("no tolerance in '%s'", tolerance);
    return (rel != NULL && fabs(got - want) <= strtod(rel + 4, NULL) * fabs(want)) ||
           (abso != NULL && fabs(got - want) <= strtod(abso + 4, NULL)) || got == want;
}

static void check_figure(const char *file, const wb_json *expected, const char *key,
                         const char *tolerance, const wb_json *out, const char *path)
{
    const wb_json *want = wb_json_path(expected, key), *got = wb_json_path(out, path);

    if (want == NULL)
        return;
    if (wb_json_type(want) == WB_JSON_NULL) {
        if (got == NULL || wb_json_type(got) != WB_JSON_NULL)
            fail_msg("%s: %s must be null", file, path);
        return;
    }
    if (!wb_json_is_number(got) ||
        !within(tolerance, wb_json_number(got, NAN), wb_json_number(want, NAN)))
        fail_msg("%s: %s is %.10g, must be %.10g (%s)", file, path, wb_json_number(got, NAN),
                 wb_json_number(want, NAN), tolerance);
}

static void check_scaling_file(const char *file)
{
    static const char *const keys[][3] = {
        /* in the file, in the answer, tolerance of the file */
        {"sigma", "sigma", "sigma"},
        {"kappa", "kappa", "kappa"},
        {"lambda", "lambda", "lambda"},
        {"peak_concurrency", "peak_concurrency", "peak_concurrency"},
        {"peak_throughput", "peak_throughput", "peak_throughput"},
        {"peak_concurrency_integer", "peak_concurrency_integer", NULL},
        {"peak_throughput_integer", "peak_throughput_integer", "peak_throughput"},
        {"amdahl_limit_throughput", "asymptote_throughput", "peak_throughput"},
        {"amdahl_only_fit.sigma", "amdahl.sigma", "sigma"},
        {"amdahl_only_fit.lambda", "amdahl.lambda", "lambda"},
    };
    WB_AUTO_FREE char *path = wb_strf(DATA "%s.json", file);
    WB_AUTO_JSON wb_json *doc = NULL, *out = NULL;
    const wb_json *expected, *tolerance, *y;
    double squares = 0, rss, inside;

    assert_int_equal(wb_json_read_file(path, 1 << 20, &doc, NULL), 0);
    expected = wb_json_get(doc, "expected");
    tolerance = wb_json_get(doc, "tolerance");
    y = wb_json_path(doc, "input.throughput");
    assert_true(wb_json_len(y) >= 6);
    out = topic_ask_json("scaling", wb_json_get(doc, "input"));
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const char *allowed = keys[i][2] ? wb_json_str_or(tolerance, keys[i][2], "") : "abs 0";
        check_figure(file, expected, keys[i][0], allowed, out, keys[i][1]);
    }
    for (size_t i = 0; i < wb_json_len(y); i++)
        squares += wb_json_number(wb_json_at(y, i), 0) * wb_json_number(wb_json_at(y, i), 0);
    rss = topic_figure(out, "rss");
    assert_true(rss <= 1.001 * wb_json_real_or(expected, "rss", NAN) + 1e-9 * squares);
    /* the least squares are the least: ours are not above those of the file beyond its digits */
    assert_true(rss <= wb_json_real_or(expected, "rss", NAN) * (1 + 1e-6) + 1e-12 * squares);
    if (wb_json_get(expected, "peak_inside_measured_range") != NULL)
        assert_int_equal(wb_json_bool_or(out, "peak_inside_measured_range", false),
                         wb_json_bool_or(expected, "peak_inside_measured_range", false));
    assert_int_equal(wb_json_int_or(out, "n", 0), wb_json_len(y));
    assert_true(wb_json_bool_or(out, "usable", false));
    /* no concurrency above the peak is ever recommended */
    inside = topic_figure(out, "peak_concurrency");
    assert_false(topic_figure(out, "knee_concurrency") > inside);
}

static void published_curves(void **state)
{
    static const char *const files[] = {
        "usl-cisco",       "usl-cisco-first10",    "usl-oracledb",
        "usl-pods-issue7", "usl-raytracer-first6", "usl-raytracer",
        "usl-specsdm91",   "usl-toy-rcoef",
    };

    for (size_t i = 0; i < WB_LEN(files); i++)
        check_scaling_file(files[i]);
}

static void published_latencies(void **state)
{
    static const char *const at[] = {"throughput_at_concurrency", "latency_at_concurrency"};
    static const char *const ours[] = {"throughput_at", "latency_at"};
    WB_AUTO_JSON wb_json *doc = NULL, *in = wb_json_object(), *out = NULL;
    wb_json *places = topic_parsed("[1,20,35]");
    const wb_json *published;

    assert_int_equal(wb_json_read_file(DATA "usl-cisco.json", 1 << 20, &doc, NULL), 0);
    published = wb_json_get(doc, "published");
    wb_json_set(in, "sigma", wb_json_ref(wb_json_get(published, "sigma")));
    wb_json_set(in, "kappa", wb_json_ref(wb_json_get(published, "kappa")));
    wb_json_set(in, "lambda", wb_json_ref(wb_json_get(published, "lambda")));
    wb_json_set(in, "at", places);
    out = topic_ask_json("scaling", in);
    for (size_t k = 0; k < WB_LEN(at); k++) {
        const wb_json *want = wb_json_get(published, at[k]), *got = wb_json_get(out, ours[k]);
        assert_int_equal(wb_json_len(want), 3);
        for (void *it = wb_json_first(want); it != NULL; it = wb_json_next(want, it))
            topic_near(wb_json_iter_key(it), wb_json_real_or(got, wb_json_iter_key(it), NAN),
                       wb_json_number(wb_json_iter_value(it), NAN), 2e-4);
    }
    topic_near("efficiency", topic_figure(out, "efficiency_at.20"),
               topic_figure(out, "throughput_at.20") / topic_figure(out, "throughput_at.1") / 20,
               1e-12);
    assert_string_equal(wb_json_str_or(wb_json_get(out, "dominant_at"), "1", ""), "none");
    assert_string_equal(wb_json_str_or(wb_json_get(out, "dominant_at"), "20", ""), "contention");
    assert_string_equal(wb_json_str_or(wb_json_get(out, "dominant_at"), "35", ""), "coherency");
}

static void published_queue(void **state)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    const wb_json *cases;
    const char *tolerance;

    assert_int_equal(
        wb_json_read_file(DATA "queue-little-law-public-case.json", 1 << 20, &doc, NULL), 0);
    cases = wb_json_get(doc, "cases");
    tolerance = wb_json_str_or(doc, "tolerance", "");
    assert_int_equal(wb_json_len(cases), 3);
    for (size_t i = 0; i < wb_json_len(cases); i++) {
        const wb_json *c = wb_json_at(cases, i), *expected = wb_json_get(c, "expected");
        WB_AUTO_JSON wb_json *out = topic_ask_json("queue", c);
        const char *verdict = wb_json_str_or(expected, "verdict", "");
        double want = wb_json_real_or(expected, "mean_latency_if_all_clients_busy_ms", NAN);
        if (!within(tolerance, 1e3 * topic_figure(out, "mean_latency_if_all_busy_s"), want))
            fail_msg("case %zu: %g s", i, topic_figure(out, "mean_latency_if_all_busy_s"));
        assert_string_equal(wb_json_str_or(out, "verdict", ""),
                            strncmp(verdict, "in", 2) == 0 ? "impossible" : "consistent");
        if (i == 0)
            topic_near("in flight", topic_figure(out, "most_in_flight"), 326.1, 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_curves),
        cmocka_unit_test(published_latencies),
        cmocka_unit_test(published_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
