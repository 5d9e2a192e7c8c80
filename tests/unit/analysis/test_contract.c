/*
 * The contract of `stats`: for every topic each key that other programs rely on, with its type,
 * from JSON and from CSV, on healthy input and on input with nothing in it to answer from. A key is
 * "path:type": n number, s text, b truth, a list, o object, p list of two numbers; in capitals it
 * may be null with its reason beside it.
 */
#include "tests/unit/analysis/topic_check.h"

#include <ctype.h>

#include "server/base/buf.h"

#define KEYS_MAX 24
struct contract {
    const char *topic, *input; /* JSON or CSV */
    const char *keys[KEYS_MAX];
};

#define COMPARE_KEYS                                                                               \
    "n:p", "median_base:N", "median_new:N", "delta_percent:N", "median_ci95_base:O",               \
        "median_ci95_new:O", "p:N", "ratio:O", "a12:N", "cliffs_delta:N", "paired:b", "verdict:S", \
        "rounds_needed:N"
#define FITTED_KEYS                                                                                \
    "sigma:N", "kappa:N", "lambda:N", "rss:N", "peak_concurrency:N", "peak_throughput:N",          \
        "peak_concurrency_integer:N", "peak_throughput_integer:N", "peak_inside_measured_range:B", \
        "asymptote_throughput:N", "amdahl:O", "amdahl.sigma:N", "amdahl.lambda:N", "amdahl.rss:N", \
        "interval:O", "interval.sigma:P", "dropped_rows:n", "usable:b", "points:a",                \
        "points.0.n:n", "points.0.measured:N", "points.0.fitted:N"
#define CHANGES_KEYS                                                                             \
    "change_points:a", "outliers:a", "last_point:S", "flags:a", "drift_percent:N", "baseline:O", \
        "status:s"
#define STEADY_KEYS "class:s", "traits:a", "cut:N", "mser5:O", "mean_after_cut:N", "last_quarter:O"
#define HISTOGRAM_KEYS                                                                      \
    "count:n", "min:N", "max:N", "mean:N", "stddev:N", "percentiles:O", "percentiles.50:N", \
        "start_time:N", "tags:a", "bad_lines:a", "entries:N"
#define SPREAD_KEYS                                                                              \
    "median:N", "mean:N", "stdev:N", "cv_percent:N", "mad:N", "mad_scaled:N", "range_percent:N", \
        "robust_z:A", "outliers:a", "median_ci95:O"

static const struct contract contracts[] = {
    {"compare",
     "{\"base\":[10,11,12,10,11,12,13],\"new\":[9,8,9,8,9,8,7],\"better\":\"higher\"}",
     {COMPARE_KEYS, "median_ci95_base.lo:n", "median_ci95_base.hi:n", "ratio.estimate:n",
      "ratio.lo:n", "ratio.hi:n"}},
    {"compare", "base,new\n10,9\n11,8\n12,9\n10,8\n", {COMPARE_KEYS}},
    {"compare",
     "{\"rounds_base\":[10,11,null,10,11,12,13],\"rounds_new\":[9,8,9,8,9,8,7]}",
     {COMPARE_KEYS}},
    {"compare", "rounds_base,rounds_new,better\n10,9,lower\n,8,\n12,9,\n", {COMPARE_KEYS}},
    {"compare", "{\"base\":[],\"new\":[],\"better\":\"lower\"}", {COMPARE_KEYS}},
    {"compare", "{\"base\":[0,0,0,0],\"new\":[0,0,0,0]}", {COMPARE_KEYS}},
    {"compare", "{\"base\":[5,5,5,5,5,5],\"new\":[5,5,5,5,5,5]}", {COMPARE_KEYS}},
    {"compare", "{\"base\":[-1,-2,-3,0,1],\"new\":[-5,-6,-7,-8]}", {COMPARE_KEYS}},
    {"compare",
     "{\"rows\":[{\"name\":\"a\",\"base\":[1,2],\"new\":[2,3],\"better\":\"lower\"},"
     "{\"name\":\"a\",\"base\":[0],\"new\":[]}]}",
     {"rows:a", "rows.0.name:s", "rows.0.q:N", "rows.0.p:N", "rows.0.verdict:s", "rows.1.q:N",
      "geomean:o", "geomean.ratio:N", "geomean.of:n", "geomean.left_out:a"}},
    {"compare",
     "name,base,new,better\na,1,2,lower\na,1,2,\nb,3,3,higher\n",
     {"rows:a", "rows.0.name:s", "rows.0.q:N", "rows.1.verdict:s", "geomean.ratio:N",
      "geomean.of:n"}},
    {"adjust", "{\"p\":[0.01,0.5,1,0,null]}", {"q:a", "rejected:a"}},
    {"adjust", "p\n0.01\n\n1\n", {"q:a", "rejected:a"}},
    {"adjust", "{\"p\":[]}", {"q:a", "rejected:a"}},
    {"spread",
     "{\"values\":[1,2,3,4,5,6,100]}",
     {SPREAD_KEYS, "median_ci95.lo:n", "median_ci95.hi:n"}},
    {"spread", "values\n7\n", {SPREAD_KEYS}},
    {"spread", "{\"values\":[]}", {SPREAD_KEYS}},
    {"spread", "{\"values\":[0,0,0]}", {SPREAD_KEYS}},
    {"spread", "{\"values\":[-3,3]}", {SPREAD_KEYS}},
    {"variance",
     "{\"runs\":[[1,3],[5,7]],\"cost_iteration_s\":1,\"cost_new_run_s\":4}",
     {"grand_mean:N", "within:N", "of_run_means:N", "between:N", "ci95_mean:P",
      "iterations_per_run:N"}},
    {"variance",
     "run,value\n1,1\n1,3\n2,5\n",
     {"grand_mean:N", "within:N", "of_run_means:N", "between:N", "ci95_mean:P",
      "iterations_per_run:N"}},
    {"variance",
     "{\"runs\":[[1]]}",
     {"grand_mean:N", "within:N", "of_run_means:N", "between:N", "ci95_mean:P",
      "iterations_per_run:N"}},
    {"power", "{\"effect_percent\":2,\"cv_percent\":1}", {"rounds_needed:N"}},
    {"power", "effect_percent,cv_percent\n0.001,100\n", {"rounds_needed:N"}},
    {"power", "{\"n\":4,\"m\":5}", {"smallest_p:N"}},
    {"power", "n,m\n1,1\n", {"smallest_p:N"}},
    {"scaling",
     "{\"concurrency\":[1,2,4,8,16,32],\"throughput\":[10,19,35,60,80,70]}",
     {FITTED_KEYS}},
    {"scaling", "concurrency,throughput\n1,5\n2,10\n4,20\n8,40\n4,\n", {FITTED_KEYS}},
    {"scaling",
     "{\"concurrency\":[1,2,4,8],\"throughput\":[10,10,10,10]}", /* constant */
     {FITTED_KEYS}},
    {"scaling",
     "{\"sigma\":0.1,\"kappa\":0.01,\"lambda\":100,\"at\":[1,4]}",
     {"throughput_at:o", "latency_at:o", "efficiency_at:o", "dominant_at:o", "peak_concurrency:N",
      "peak_throughput:N", "peak_concurrency_integer:N", "peak_throughput_integer:N",
      "throughput_at.4:n"}},
    {"scaling",
     "{\"sigma\":0,\"kappa\":0,\"lambda\":1,\"at\":[1]}",
     {"throughput_at:o", "peak_concurrency:N", "asymptote_throughput:N"}},
    {"changes",
     "{\"values\":[10,10,10,11,10,10,10,11,10,10,20,20,21,20,20,20,21,20,20,20],\"better\":"
     "\"higher\"}",
     {CHANGES_KEYS, "change_points.0.id:s", "change_points.0.index:n",
      "change_points.0.after_index:n", "change_points.0.before:n", "change_points.0.after:n",
      "change_points.0.change_percent:n", "change_points.0.kind:s", "change_points.0.p:n",
      "change_points.0.state:s", "baseline.from:n", "baseline.to:n"}},
    {"changes", "values\n1\n\n2\n", {CHANGES_KEYS}},
    {"changes", "{\"values\":[]}", {CHANGES_KEYS}},
    {"changes", "{\"values\":[null,null,null,null,null,null,null,null,null]}", {CHANGES_KEYS}},
    {"changes", "{\"values\":[0,0,0,0,0,0,0,0,0,0]}", {CHANGES_KEYS}},
    {"steady", "{\"interval_s\":1,\"throughput\":[1,2,3]}", {STEADY_KEYS}},
    {"steady", "t_s,seconds,ops\n0,1,100\n1,1,100\n2,4,100\n", {STEADY_KEYS}},
    {"steady", "{\"throughput\":[]}", {STEADY_KEYS}},
    {"histogram", "{\"digits\":3,\"values\":[1,2,3,1000]}", {HISTOGRAM_KEYS}},
    {"histogram", "{\"digits\":3,\"values\":[]}", {HISTOGRAM_KEYS}},
    {"histogram",
     "{\"lowest\":1,\"highest\":3600000,\"digits\":3,\"records\":[[1000,9],[100000,1]],"
     "\"expected_interval\":1000}",
     {HISTOGRAM_KEYS, "corrected:o", "corrected.count:n", "corrected.percentiles.50:n"}},
    {"queue",
     "{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.1,\"think_time_s\":0}",
     {"implied_in_flight:N", "ratio:N", "verdict:s"}},
    {"queue",
     "clients,throughput_per_s,p99_ms\n512,148000,2.19\n",
     {"verdict:s", "mean_latency_if_all_busy_s:n"}},
    {"queue",
     "{\"target_per_s\":100,\"achieved_per_s\":99,\"service_p99_ms\":1,\"response_p99_ms\":2,"
     "\"duration_s\":10}",
     {"kept_up:b", "achieved_percent:N", "backlog_per_s:N", "verdict:s"}},
    {"queue",
     "{\"servers\":4,\"service_ms\":1,\"arrival_per_s\":1000}",
     {"utilisation:N", "mean_response_ms:N", "p99_response_ms:N"}},
    {"queue",
     "{\"servers\":1,\"service_ms\":1,\"arrival_per_s\":2000}", /* no steady state */
     {"utilisation:N", "mean_response_ms:N", "p99_response_ms:N"}},
    {"price",
     "{\"items\":[{\"name\":\"a\",\"usd_per_hour\":1,\"throughput_per_s\":1000,\"p99_ms\":4,"
     "\"throughput_ci95\":[900,1100]},{\"name\":\"b\",\"usd_per_hour\":0,\"throughput_per_s\":0}],"
     "\"slo_p99_ms\":5}",
     {"items:a", "items.0.name:s", "items.0.usd_per_million_ops:N",
      "items.0.usd_per_million_ops_ci95:P", "items.0.ops_per_usd:N",
      "items.0.usd_per_month_per_1000_ops_s:N", "items.1.usd_per_million_ops:N",
      "items.1.ops_per_usd:N", "items.1.reason:s", "cheapest:S", "cheapest_at_slo:S", "pareto:a",
      "pareto_latency:a"}},
    {"price",
     "name,usd_per_hour,throughput_per_s\na,0,1000\na,1,\n",
     {"items:a", "items.0.usd_per_million_ops:N", "items.0.ops_per_usd:N",
      "items.1.usd_per_million_ops:N", "cheapest:S", "pareto:a", "pareto_latency:a"}},
    {"price",
     "{\"purchase_usd\":8760,\"years\":1,\"power_w\":100,\"usd_per_kwh\":0.5}",
     {"usd_per_hour:n"}},
    {"composite",
     "{\"metrics\":[{\"name\":\"a\",\"base\":1,\"new\":2,\"better\":\"higher\"},"
     "{\"name\":\"b\",\"base\":0,\"new\":2,\"better\":\"lower\"}]}",
     {"geomean_ratio:N", "left_out:a", "left_out.0.name:s", "left_out.0.reason:s"}},
    {"composite", "name,base,new,better\na,0,0,higher\n", {"geomean_ratio:N", "left_out:a"}},
    {"validity",
     "{\"env\":{\"steal_percent\":0.1,\"foreign_cpu_cores\":0,\"client_cpu_percent\":50,"
     "\"governor\":\"powersave\"}}",
     {"verdict:s", "reasons:a"}},
    {"validity", "{\"env\":{}}", {"verdict:s", "reasons:a"}},
    {"validity",
     "{\"proc_stat\":{\"before\":\"cpu 100 0 100 800 0 0 0 0 0 0\\n\",\"after\":\"cpu 200 0 200 "
     "1600 0 0 0 10 0 0\\n\"}}",
     {"steal_percent:N", "iowait_percent:N", "busy_percent:N"}},
    {"validity",
     "{\"cpu_stat\":{\"before\":\"nr_periods 10\\nnr_throttled 1\\nthrottled_usec 100\\n\","
     "\"after\":\"nr_periods 110\\nnr_throttled 11\\nthrottled_usec 200100\\n\"}}",
     {"throttled_percent:N", "throttled_s:N", "limited:b"}},
};

static bool is_type(const wb_json *j, char type)
{
    switch (type) {
    case 'n':
        return wb_json_is_number(j);
    case 's':
        return wb_json_type(j) == WB_JSON_STRING;
    case 'b':
        return wb_json_type(j) == WB_JSON_BOOL;
    case 'a':
        return wb_json_type(j) == WB_JSON_ARRAY;
    case 'p':
        return wb_json_type(j) == WB_JSON_ARRAY && wb_json_len(j) == 2 &&
               wb_json_is_number(wb_json_at(j, 0)) && wb_json_is_number(wb_json_at(j, 1));
    default:
        return wb_json_type(j) == WB_JSON_OBJECT;
    }
}

/* The value at a path whose parts are keys or indices; *holder is the object of the last key. */
static const wb_json *at(const wb_json *out, char *path, const wb_json **holder, const char **key)
{
    const wb_json *j = out;

    for (char *part = path, *end; part != NULL; part = end) {
        end = strchr(part, '.');
        if (end != NULL)
            *end++ = '\0';
        *holder = j;
        *key = part;
        j = wb_json_type(j) == WB_JSON_ARRAY ? wb_json_at(j, (size_t)strtol(part, NULL, 10))
                                             : wb_json_get(j, part);
    }
    return j;
}

/* Tells and counts what is not so. */
static size_t check_key(const struct contract *c, const wb_json *out, const char *row)
{
    WB_AUTO_FREE char *path = wb_strdup(row);
    char *colon = strchr(path, ':');
    const wb_json *holder = NULL, *value;
    const char *key = "";
    char type = colon[1];

    *colon = '\0';
    value = at(out, path, &holder, &key);
    if (is_type(value, (char)tolower((unsigned char)type)))
        return 0;
    if (isupper((unsigned char)type) && wb_json_type(value) == WB_JSON_NULL) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", key);

        /* What is inside of something null is null with it. */
        if (wb_json_type(holder) == WB_JSON_NULL)
            return 0;
        if (wb_json_get(holder, key) != NULL && wb_json_str_or(holder, reason, NULL) != NULL)
            return 0;
    }
    print_error("%s of %s: %s is not so\n", c->topic, c->input, row);
    return 1;
}

static void every_key_is_there(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < WB_LEN(contracts); i++) {
        const struct contract *c = &contracts[i];
        const struct wb_topic *t = wb_topic_find(c->topic);
        const struct wb_topic_file file = {"input", c->input, strlen(c->input)};
        WB_AUTO_JSON wb_json *doc = NULL, *out = NULL;
        struct wb_err err = WB_ERR_INIT;

        if (wb_topic_read(t, &file, 1, NULL, &doc, &err) < 0)
            fail_msg("%s of %s: %s", c->topic, c->input, err.root);
        out = topic_ask_json(c->topic, doc);
        for (size_t k = 0; k < KEYS_MAX && c->keys[k] != NULL; k++)
            wrong += check_key(c, out, c->keys[k]);
    }
    assert_int_equal(wrong, 0);
}

/* Every topic has a row of its own here. */
static void no_topic_is_forgotten(void **state)
{
    (void)state;
    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        size_t rows = 0;

        for (size_t i = 0; i < WB_LEN(contracts); i++)
            rows += strcmp(contracts[i].topic, t->name) == 0;
        if (rows < 2)
            fail_msg("%s has %zu rows", t->name, rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_there),
        cmocka_unit_test(no_topic_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
