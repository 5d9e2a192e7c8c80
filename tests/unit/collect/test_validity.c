/* The table of DESIGN.md section 14: every row at, below and above its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "server/study/study.h"
#include "server/collect/collect.h"
#include "tests/unit/collect/fixture.h"

static const struct wb_validity_limits limits = {
    .steal_noisy = 1,
    .steal_invalid = 5,
    .foreign_noisy = 0.25,
    .foreign_invalid = 1,
    .canary_noisy = 2,
    .canary_invalid = 5,
    .throttled_noisy = 1,
    .client_cpu_noisy = 80,
    .client_cpu_limited = 95,
    .run_queue_noisy = 10,
    .errors_noisy = 0.01,
    .errors_fail = 1,
};

/* A window with nothing wrong, on 32 CPUs. */
static wb_json *good_window(const char *model)
{
    static const char text[] =
        "{\"phase\":\"max\",\"in_flight\":100,"
        "\"samples\":{\"samples\":10,\"seconds\":10,\"cpus\":32,"
        "\"steal_percent\":{\"mean\":0,\"max\":0},\"foreign_cores\":{\"mean\":0.01,\"max\":0.1},"
        "\"database_throttled_percent\":{\"mean\":0,\"max\":0},"
        "\"load_throttled_percent\":{\"mean\":0,\"max\":0},"
        "\"net_rx_bytes_per_s\":{\"mean\":0,\"max\":0},\"net_tx_bytes_per_s\":{\"mean\":0,\"max\":"
        "0},"
        "\"swap_in_pages\":0,\"swap_in_samples\":0},"
        "\"load\":{\"verdict\":\"valid\",\"reasons\":[],\"achieved_per_s\":100000,"
        "\"scheduled\":1000000,\"ok\":1000000,\"failed\":0,\"errors\":{},"
        "\"operations\":{\"all\":{\"service\":{\"mean_ms\":1},\"response\":{\"p50_ms\":2}}},"
        "\"client\":{\"lag_p99_ms\":0.1,\"threads\":["
        "{\"cpu_percent\":40,\"run_queue_percent\":1},{\"cpu_percent\":30,\"run_queue_percent\":2}]"
        "}}}";
    wb_json *w = NULL;

    assert_int_equal(wb_json_parse(text, sizeof(text) - 1, &w, NULL), 0);
    wb_json_set_str(w, "model", model);
    return w;
}

/* Sets a dotted path of objects ("samples.steal_percent.mean") to a value; takes it. */
static void set_path(wb_json *w, const char *dotted, wb_json *value)
{
    const char *dot = strrchr(dotted, '.');
    WB_AUTO_FREE char *parent = dot ? wb_strndup(dotted, (size_t)(dot - dotted)) : NULL;

    wb_json_set(parent ? wb_json_path(w, parent) : w, dot ? dot + 1 : dotted, value);
}

static const wb_json *entry(const wb_json *evidence, const char *name)
{
    for (size_t i = 0; i < wb_json_len(evidence); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(evidence, i), "name", ""), name))
            return wb_json_at(evidence, i);
    fail_msg("no evidence '%s'", name);
    return NULL;
}

/* Judges one window (taken) and gives the evidence, owned by the caller. */
static enum wb_validity judge(wb_json *window, wb_json **evidence)
{
    WB_AUTO_JSON wb_json *windows = wb_json_array();

    wb_json_push(windows, window);
    *evidence = wb_json_array();
    return wb_validity_judge(windows, NULL, NULL, NULL, &limits, *evidence);
}

static void test_good(void **state)
{
    static const char *const models[] = {"open", "closed"};

    (void)state;
    for (size_t m = 0; m < WB_LEN(models); m++) {
        WB_AUTO_JSON wb_json *evidence = NULL;

        assert_int_equal(judge(good_window(models[m]), &evidence), WB_VALID);
        assert_int_equal(wb_json_len(evidence), 13);
        assert_null(wb_evidence_outcome(evidence));
        for (size_t i = 0; i < wb_json_len(evidence); i++) {
            const wb_json *e = wb_json_at(evidence, i);
            static const char *const keys[] = {"name",  "phase", "value",   "unit",
                                               "noisy", "worse", "verdict", "text"};

            for (size_t k = 0; k < WB_LEN(keys); k++)
                assert_non_null(wb_json_get(e, keys[k]));
            if (wb_json_type(wb_json_get(e, "value")) == WB_JSON_NULL)
                assert_non_null(wb_json_get(e, "value_reason"));
        }
        assert_string_equal(wb_json_str_or(entry(evidence, "governor"), "verdict", ""),
                            "not-applicable");
        assert_string_equal(wb_json_str_or(entry(evidence, "steal"), "text", ""),
                            "CPU time taken by the hypervisor: 0.00 % (noisy above 1.00 %, invalid "
                            "above 5.00 %)");
    }
}

static void test_limits(void **state)
{
    static const struct {
        const char *name, *model, *path;
        double value;
        enum wb_validity verdict;
    } rows[] = {
        {"steal", "open", "samples.steal_percent.mean", 1, WB_VALID},
        {"steal", "open", "samples.steal_percent.mean", 1.001, WB_NOISY},
        {"steal", "open", "samples.steal_percent.mean", 5, WB_NOISY},
        {"steal", "open", "samples.steal_percent.mean", 5.001, WB_INVALID_RUN},
        {"foreign-cpu", "open", "samples.foreign_cores.mean", 0.25, WB_VALID},
        {"foreign-cpu", "open", "samples.foreign_cores.mean", 0.26, WB_NOISY},
        {"foreign-cpu", "open", "samples.foreign_cores.mean", 1, WB_NOISY},
        {"foreign-cpu", "open", "samples.foreign_cores.mean", 1.01, WB_INVALID_RUN},
        {"database-throttled", "open", "samples.database_throttled_percent.mean", 1, WB_VALID},
        {"database-throttled", "open", "samples.database_throttled_percent.mean", 100, WB_NOISY},
        {"load-throttled", "open", "samples.load_throttled_percent.mean", 1.1, WB_NOISY},
        {"schedule-lag", "open", "load.client.lag_p99_ms", 1, WB_VALID},
        {"schedule-lag", "open", "load.client.lag_p99_ms", 1.001, WB_NOISY},
        {"little-ratio", "closed", "load.achieved_per_s", 95000, WB_VALID},
        {"little-ratio", "closed", "load.achieved_per_s", 94000, WB_NOISY},
        {"little-ratio", "closed", "load.achieved_per_s", 81000, WB_NOISY},
        {"little-ratio", "closed", "load.achieved_per_s", 79000, WB_CLIENT_LIMITED},
        {"little-ratio", "closed", "load.achieved_per_s", 104900, WB_VALID},
        {"little-ratio", "closed", "load.achieved_per_s", 106000, WB_INVALID_RUN},
        {"errors", "open", "load.failed", 100, WB_VALID},
        {"errors", "open", "load.failed", 101, WB_NOISY},
        {"errors", "open", "load.failed", 20000, WB_NOISY},
        {"swap-in", "open", "samples.swap_in_pages", 5000, WB_VALID},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window(rows[i].model);
        enum wb_validity v;

        set_path(w, rows[i].path, wb_json_real(rows[i].value));
        v = judge(w, &evidence);
        if (v != rows[i].verdict)
            fail_msg("row %zu: %s", i, wb_validity_name(v));
        assert_string_equal(wb_json_str_or(entry(evidence, rows[i].name), "verdict", ""),
                            wb_validity_name(rows[i].verdict));
    }
}

/* Rows whose limit depends on something else in the window. */
static void test_dependent_limits(void **state)
{
    static const struct {
        const char *model, *path1;
        double v1;
        const char *path2;
        double v2;
        enum wb_validity verdict;
        const char *outcome;
    } rows[] = {
        /* 12.5 % of a small host is tighter than one core, and than the noisy limit. */
        {"open", "samples.cpus", 4, "samples.foreign_cores.mean", 0.5, WB_NOISY, NULL},
        {"open", "samples.cpus", 4, "samples.foreign_cores.mean", 0.51, WB_INVALID_RUN, NULL},
        {"open", "samples.cpus", 2, "samples.foreign_cores.mean", 0.25, WB_VALID, NULL},
        {"open", "samples.cpus", 2, "samples.foreign_cores.mean", 0.26, WB_INVALID_RUN, NULL},
        {"open", "samples.cpus", 1, "samples.foreign_cores.mean", 0.13, WB_INVALID_RUN, NULL},
        /* Throttling that was meant. */
        {"open", "samples.database_throttled_percent.mean", 60, "cpu_quota", -1, WB_VALID, NULL},
        {"open", "samples.load_throttled_percent.mean", 60, "cpu_quota", -1, WB_NOISY, NULL},
        /* A tenth of the response p50, and whose fault the lag is. */
        {"open", "load.client.lag_p99_ms", 4, "load.operations.all.response.p50_ms", 40, WB_VALID,
         NULL},
        {"open", "load.client.lag_p99_ms", 4.1, "load.operations.all.response.p50_ms", 40, WB_NOISY,
         NULL},
        {"closed", "load.client.lag_p99_ms", 900, "in_flight", 100, WB_VALID, NULL},
        /* Sustained swapping: in enough samples and in enough of them. */
        {"open", "samples.swap_in_pages", 9, "samples.swap_in_samples", 2, WB_VALID, NULL},
        {"open", "samples.swap_in_pages", 9, "samples.swap_in_samples", 3, WB_INVALID_RUN, NULL},
        {"open", "samples.samples", 100, "samples.swap_in_samples", 19, WB_VALID, NULL},
        {"open", "samples.samples", 100, "samples.swap_in_samples", 20, WB_INVALID_RUN, NULL},
        /* A link that is full in either direction. */
        {"open", "link_bytes_per_s", 1000, "samples.net_tx_bytes_per_s.mean", 950, WB_VALID, NULL},
        {"open", "link_bytes_per_s", 1000, "samples.net_tx_bytes_per_s.mean", 951,
         WB_CLIENT_LIMITED, NULL},
        {"open", "link_bytes_per_s", 1000, "samples.net_rx_bytes_per_s.mean", 999,
         WB_CLIENT_LIMITED, NULL},
        /* What also is an outcome. */
        {"open", "load.failed", 10000, "load.scheduled", 1000000, WB_NOISY, NULL},
        {"open", "load.failed", 10001, "load.scheduled", 1000000, WB_NOISY, "sut-error"},
        {"open", "load.failed", 0, "load.scheduled", 0, WB_INVALID_RUN, "harness-error"},
        {"closed", "load.achieved_per_s", 106000, "in_flight", 100, WB_INVALID_RUN, "inconsistent"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window(rows[i].model);
        const char *outcome;
        enum wb_validity v;

        set_path(w, rows[i].path1, wb_json_real(rows[i].v1));
        set_path(w, rows[i].path2, rows[i].v2 < 0 ? wb_json_bool(true) : wb_json_real(rows[i].v2));
        v = judge(w, &evidence);
        outcome = wb_evidence_outcome(evidence);
        if (v != rows[i].verdict ||
            strcmp(outcome ? outcome : "", rows[i].outcome ? rows[i].outcome : "") != 0)
            fail_msg("row %zu: %s, outcome %s", i, wb_validity_name(v), outcome ? outcome : "-");
    }
}

/* What began before a short window and ended in it adds to Little's ratio, by no more than the
 * longest operation's part of the window. */
static void test_edge_of_window(void **state)
{
    static const struct {
        double seconds, longest_ms, rate;
        enum wb_validity verdict;
        const char *outcome;
    } rows[] = {
        {10, 500, 105000, WB_VALID, ""},
        {10, 500, 109900, WB_NOISY, ""},
        {10, 500, 110100, WB_INVALID_RUN, "inconsistent"},
        {0.5, 600, 216000, WB_NOISY, ""},
        {0.5, 600, 226000, WB_INVALID_RUN, "inconsistent"},
        {10, -1, 106000, WB_INVALID_RUN, "inconsistent"},
        {0, 500, 106000, WB_INVALID_RUN, "inconsistent"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window("closed"), *window = wb_json_object();
        const char *outcome;
        enum wb_validity v;

        wb_json_set_real(window, "seconds", rows[i].seconds);
        set_path(w, "load.window", window);
        set_path(w, "load.operations.all.service.max_ms", wb_json_real(rows[i].longest_ms));
        set_path(w, "load.achieved_per_s", wb_json_real(rows[i].rate));
        v = judge(w, &evidence);
        outcome = wb_evidence_outcome(evidence);
        if (v != rows[i].verdict || strcmp(outcome ? outcome : "", rows[i].outcome) != 0)
            fail_msg("row %zu: %s, outcome %s", i, wb_validity_name(v), outcome ? outcome : "-");
    }
}

static void set_thread(wb_json *window, const char *key, double v)
{
    wb_json_set_real(wb_json_at(wb_json_path(window, "load.client.threads"), 1), key, v);
}

static void test_threads(void **state)
{
    static const struct {
        double cpu, queue, lag;
        enum wb_validity verdict;
    } rows[] = {
        {80, 10, 0.1, WB_VALID},           {80.1, 1, 0.1, WB_NOISY},  {95, 1, 0.1, WB_NOISY},
        {95.1, 1, 0.1, WB_CLIENT_LIMITED}, {50, 10.1, 0.1, WB_NOISY}, {80, 1, 2, WB_NOISY},
        {81, 1, 2, WB_CLIENT_LIMITED},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window("open");
        enum wb_validity v;

        set_thread(w, "cpu_percent", rows[i].cpu);
        set_thread(w, "run_queue_percent", rows[i].queue);
        set_path(w, "load.client.lag_p99_ms", wb_json_real(rows[i].lag));
        v = judge(w, &evidence);
        if (v != rows[i].verdict)
            fail_msg("row %zu: %s", i, wb_validity_name(v));
    }
}

/* Mandatory evidence that is null makes unverified; other evidence does not. */
static void test_unreadable(void **state)
{
    static const struct {
        const char *path;
        enum wb_validity verdict;
    } rows[] = {
        {"samples.steal_percent", WB_UNVERIFIED},
        {"samples.foreign_cores", WB_UNVERIFIED},
        {"samples.database_throttled_percent", WB_UNVERIFIED},
        {"samples.load_throttled_percent", WB_UNVERIFIED},
        {"samples", WB_UNVERIFIED},
        {"load.client.threads", WB_UNVERIFIED},
        {"load.client", WB_UNVERIFIED},
        {"load.operations", WB_VALID},
        {"load.client.lag_p99_ms", WB_VALID},
        {"samples.swap_in_pages", WB_VALID},
        {"samples.cpus", WB_VALID},
        {"load", WB_INVALID_RUN},
        {"load.verdict", WB_INVALID_RUN},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window("open");
        enum wb_validity v;

        set_path(w, rows[i].path, wb_json_null());
        v = judge(w, &evidence);
        if (v != rows[i].verdict)
            fail_msg("row %zu (%s): %s", i, rows[i].path, wb_validity_name(v));
    }
}

/* The reason why a column is null reaches the reader. */
static void test_reason(void **state)
{
    WB_AUTO_JSON wb_json *evidence = NULL;
    wb_json *w = good_window("open");

    (void)state;
    wb_json_set_reason(wb_json_get(w, "samples"), "foreign_cores", "hidepid");
    assert_int_equal(judge(w, &evidence), WB_UNVERIFIED);
    assert_string_equal(wb_json_str_or(entry(evidence, "foreign-cpu"), "value_reason", ""),
                        "hidepid");
    assert_non_null(
        strstr(wb_json_str_or(entry(evidence, "foreign-cpu"), "text", ""), "unknown (hidepid)"));
}

static void test_load_verdicts(void **state)
{
    static const struct {
        const char *word;
        int64_t failed;
        enum wb_validity verdict;
        const char *outcome;
    } rows[] = {
        {"valid", 0, WB_VALID, NULL},
        {"server-bound", 0, WB_VALID, NULL},
        {"client-bound", 0, WB_CLIENT_LIMITED, NULL},
        {"one-thread-bound", 0, WB_CLIENT_LIMITED, NULL},
        {"network-bound", 0, WB_CLIENT_LIMITED, NULL},
        {"noisy", 0, WB_NOISY, NULL},
        {"failed", 0, WB_INVALID_RUN, "harness-error"},
        {"failed", 5, WB_INVALID_RUN, "sut-error"},
        {"", 0, WB_INVALID_RUN, "harness-error"},
        {"Valid", 0, WB_INVALID_RUN, "harness-error"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window("open");
        const char *outcome;

        set_path(w, "load.verdict", wb_json_str(rows[i].word));
        set_path(w, "load.failed", wb_json_int(rows[i].failed));
        assert_int_equal(judge(w, &evidence), rows[i].verdict);
        outcome = wb_evidence_outcome(evidence);
        assert_string_equal(outcome ? outcome : "", rows[i].outcome ? rows[i].outcome : "");
    }
}

static void test_whole_run(void **state)
{
    static const struct {
        double before, after;
        const char *g1, *g2;
        enum wb_validity verdict;
        const char *name, *says;
    } rows[] = {
        {1e6, 1.02e6, NULL, NULL, WB_VALID, "cpu-canary", "2.00 % apart"},
        {1e6, 1.021e6, NULL, NULL, WB_NOISY, "cpu-canary", "2.10 % apart"},
        {1.021e6, 1e6, NULL, NULL, WB_NOISY, "cpu-canary", "2.10 % apart"},
        {1e6, 1.06e6, NULL, NULL, WB_INVALID_RUN, "cpu-canary", "invalid above 5.00 %"},
        {-1, 1e6, NULL, NULL, WB_VALID, "cpu-canary", "not measured"},
        {1e6, 1e6, "performance", "performance", WB_VALID, "governor", "governor performance"},
        {1e6, 1e6, "powersave", "powersave", WB_NOISY, "governor",
         "all CPUs use governor powersave"},
        {1e6, 1e6, "performance x30, powersave x2", "performance x30, powersave x2", WB_NOISY,
         "governor", "2 of 32 CPUs use governor powersave"},
        {1e6, 1e6, "ondemand x1, performance x2, schedutil x1",
         "ondemand x1, performance x2, schedutil x1", WB_NOISY, "governor",
         "1 of 4 CPUs use governor ondemand, 1 of 4 CPUs use governor schedutil"},
        {1e6, 1e6, "performance", "powersave", WB_INVALID_RUN, "governor",
         "changed during the run"},
        {1e6, 1e6, "performance", NULL, WB_INVALID_RUN, "governor", "none after"},
        {1e6, 1e6, NULL, NULL, WB_VALID, "governor", "not applicable"},
        {1e6, 1e6, "x x x", "x x x", WB_NOISY, "governor", "governor x"}, /* odd, but bounded */
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = wb_json_array(), *windows = wb_json_array(),
                             *canary = wb_json_object();
        enum wb_validity v;

        wb_json_push(windows, good_window("closed"));
        wb_json_set_real(canary, "before_ns", rows[i].before);
        wb_json_set_real(canary, "after_ns", rows[i].after);
        v = wb_validity_judge(windows, canary, rows[i].g1, rows[i].g2, &limits, evidence);
        if (v != rows[i].verdict ||
            !strstr(wb_json_str_or(entry(evidence, rows[i].name), "text", ""), rows[i].says))
            fail_msg("row %zu: %s: %s", i, wb_validity_name(v),
                     wb_json_str_or(entry(evidence, rows[i].name), "text", ""));
    }
}

static void test_worst_wins(void **state)
{
    WB_AUTO_JSON wb_json *evidence = NULL, *windows = wb_json_array(), *all = wb_json_array();
    wb_json *a = good_window("open"), *b = good_window("closed");

    (void)state;
    set_path(a, "samples.steal_percent.mean", wb_json_real(2));
    set_path(b, "load.verdict", wb_json_str("client-bound"));
    wb_json_push(windows, a);
    wb_json_push(windows, b);
    assert_int_equal(wb_validity_judge(windows, NULL, NULL, NULL, &limits, all), WB_CLIENT_LIMITED);
    assert_int_equal(wb_json_len(all), 2 * 11 + 2);
    set_path(a, "samples.foreign_cores", wb_json_null());
    evidence = wb_json_array();
    assert_int_equal(wb_validity_judge(windows, NULL, NULL, NULL, &limits, evidence),
                     WB_UNVERIFIED);
    set_path(b, "samples.steal_percent.mean", wb_json_real(6));
    assert_int_equal(wb_validity_judge(windows, NULL, NULL, NULL, &limits, evidence),
                     WB_INVALID_RUN);
    wb_json_free(evidence);
    evidence = wb_json_array();
    assert_int_equal(wb_validity_judge(NULL, NULL, NULL, NULL, &limits, evidence), WB_UNVERIFIED);
    assert_int_equal(wb_validity_worse(WB_UNVERIFIED, WB_INVALID_RUN), WB_INVALID_RUN);
    assert_int_equal(wb_validity_worse(WB_CLIENT_LIMITED, WB_NOISY), WB_CLIENT_LIMITED);
    assert_int_equal(wb_validity_worse(WB_VALID, WB_VALID), WB_VALID);
}

/* Means of the columns of one of the recorded series. */
static void read_case(const char *file, double mean[6])
{
    WB_AUTO_FREE char *path = wb_strf("tests/data/cases/%s", file);
    FILE *f = fopen(path, "r");
    char line[256];
    int rows = 0;

    assert_non_null(f);
    memset(mean, 0, 6 * sizeof(*mean));
    assert_non_null(fgets(line, sizeof(line), f));
    while (fgets(line, sizeof(line), f)) {
        char *p = line;

        for (int c = 0; c < 6; c++) {
            char *end;

            mean[c] += strtod(p, &end);
            assert_true(end != p);
            p = end + (*end == ',');
        }
        rows++;
    }
    (void)fclose(f);
    assert_int_equal(rows, 24);
    for (int c = 0; c < 6; c++)
        mean[c] /= rows;
}

static void test_recorded_bottlenecks(void **state)
{
    static const struct {
        const char *file;
        enum wb_validity verdict;
        const char *cause; /* the only evidence that is not valid */
    } rows[] = {
        {"010-client-bound.csv", WB_CLIENT_LIMITED, "load-cpu"},
        {"010-one-thread-bound.csv", WB_CLIENT_LIMITED, "load-cpu"},
        {"010-link-bound.csv", WB_CLIENT_LIMITED, "network"},
        {"010-server-bound.csv", WB_VALID, NULL},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *evidence = NULL;
        wb_json *w = good_window("closed");
        double mean[6];

        read_case(rows[i].file, mean);
        set_thread(w, "cpu_percent", mean[2]);
        set_path(w, "samples.net_tx_bytes_per_s.mean", wb_json_real(mean[4] * 1e6 / 8));
        set_path(w, "link_bytes_per_s", wb_json_real(mean[5] * 1e6 / 8));
        assert_int_equal(judge(w, &evidence), rows[i].verdict);
        for (size_t k = 0; k < wb_json_len(evidence); k++) {
            const wb_json *e = wb_json_at(evidence, k);
            const char *name = wb_json_str_or(e, "name", "");

            if (!strcmp(wb_json_str_or(e, "verdict", ""), "client-limited"))
                assert_true(rows[i].cause && !strcmp(name, rows[i].cause));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_dependent_limits),
        cmocka_unit_test(test_edge_of_window),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_reason),
        cmocka_unit_test(test_load_verdicts),
        cmocka_unit_test(test_whole_run),
        cmocka_unit_test(test_worst_wins),
        cmocka_unit_test(test_recorded_bottlenecks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
