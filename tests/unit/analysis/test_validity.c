/* `stats validity`: every limit of the table from both sides, kernel texts, the client's cases. */
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
#include "server/analysis/validity.h"
#include "server/base/file.h"
#include "server/base/mem.h"

static wb_json *answer_to(const wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    wb_json *out = NULL;

    if (wb_stats_validity(in, &out, &err) < 0)
        fail_msg("%s", err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_string(wb_json_get(out, "method")));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_non_null(wb_json_get(out, "n"));
    wb_stats_validity_print(out, 80, &text);
    assert_true(text.len > 5 && !text.failed);
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

static wb_json *answer(const char *text)
{
    WB_AUTO_JSON wb_json *in = parsed(text);

    return answer_to(in);
}

/* What is added to an env of a quiet host, and what it makes of it. */
static void limits(void **state)
{
    static const struct {
        const char *more, *verdict, *reason; /* reason: begin of the first one */
    } rows[] = {
        {"\"cpus\":4", "valid", NULL},
        {"\"steal_percent\":1", "valid", NULL},
        {"\"steal_percent\":1.01", "noisy", "steal: "},
        {"\"steal_percent\":5.01", "invalid", "steal: "},
        {"\"steal_percent\":null", "unverified", "steal: "},
        {"\"foreign_cpu_cores\":0.25", "valid", NULL},
        {"\"foreign_cpu_cores\":0.26", "noisy", "foreign-cpu: "},
        {"\"foreign_cpu_cores\":1.01", "invalid", "foreign-cpu: "},
        {"\"foreign_cpu_cores\":0.51,\"cpus\":4", "invalid", "foreign-cpu: "},
        {"\"foreign_cpu_cores\":null", "unverified", "foreign-cpu: "},
        {"\"client_cpu_percent\":80", "valid", NULL},
        {"\"client_cpu_percent\":80.5", "noisy", "load-cpu: "},
        {"\"client_cpu_percent\":95.5", "client-limited", "load-cpu: "},
        {"\"client_cpu_percent\":null", "unverified", "load-cpu: "},
        {"\"errors\":0.01", "valid", NULL},
        {"\"errors\":0.02", "noisy", "errors: "},
        {"\"errors\":1.5", "invalid", "errors: "},
        {"\"governor\":\"performance\"", "valid", NULL},
        {"\"governor\":\"powersave\"", "noisy", "governor: "},
        {"\"governor\":\"performance x30, powersave x2\"", "noisy",
         "governor: 2 of 32 CPUs use governor powersave"},
        {"\"governor\":\"performance\",\"governor_after\":\"powersave\"", "invalid",
         "governor: the CPU governor changed"},
        {"\"swap_in_pages\":0", "valid", NULL},
        {"\"swap_in_pages\":8600", "invalid", "swap-in: 8600 pages"},
        {"\"ntp_offset_ms\":-10", "valid", NULL},
        {"\"ntp_offset_ms\":-10.5", "noisy", "clock-offset: "},
        {"\"throttled_percent\":1", "valid", NULL},
        {"\"throttled_percent\":1.5", "noisy", "database-throttled: "},
        {"\"run_queue_percent\":11", "noisy", "load-run-queue: "},
        {"\"cpu_canary_before_ns\":1e7,\"cpu_canary_after_ns\":1.03e7", "noisy", "cpu-canary: "},
        {"\"cpu_canary_before_ns\":1e7,\"cpu_canary_after_ns\":1.06e7", "invalid", "cpu-canary: "},
        {"\"steal_percent\":6,\"client_cpu_percent\":99", "invalid", "steal: "},
        {"\"steal_percent\":null,\"client_cpu_percent\":99", "unverified", "steal: "},
        {"\"steal_percent\":3,\"client_cpu_percent\":99", "client-limited", "load-cpu: "},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *more = wb_strf("{%s}", rows[i].more);
        WB_AUTO_JSON wb_json *in = parsed("{\"env\":{\"steal_percent\":0,\"foreign_cpu_cores\":0,"
                                          "\"client_cpu_percent\":10}}");
        WB_AUTO_JSON wb_json *added = parsed(more);
        const wb_json *reasons;
        wb_json *out;
        for (void *it = wb_json_first(added); it != NULL; it = wb_json_next(added, it))
            wb_json_set(wb_json_get(in, "env"), wb_json_iter_key(it),
                        wb_json_ref(wb_json_iter_value(it)));
        out = answer_to(in);
        reasons = wb_json_get(out, "reasons");
        if (strcmp(wb_json_str_or(out, "verdict", ""), rows[i].verdict) != 0)
            fail_msg("%s: %s", rows[i].more, wb_json_str_or(out, "verdict", ""));
        if (rows[i].reason == NULL)
            assert_int_equal(wb_json_len(reasons), 0);
        else if (strncmp(wb_json_string(wb_json_at(reasons, 0)), rows[i].reason,
                         strlen(rows[i].reason)) != 0)
            fail_msg("%s: %s", rows[i].more, wb_json_string(wb_json_at(reasons, 0)));
        wb_json_free(out);
    }
}

/* A missing key is as good as an unreadable one. */
static void missing_is_unverified(void **state)
{
    wb_json *out = answer("{\"env\":{}}");

    assert_string_equal(wb_json_str_or(out, "verdict", ""), "unverified");
    assert_int_equal(wb_json_len(wb_json_get(out, "reasons")), 3);
    wb_json_free(out);
}

static void client_cases(void **state)
{
    static const struct {
        const char *file, *verdict, *by;
    } rows[] = {{"client-bound", "client-limited", "client-bound"},
                {"one-thread-bound", "client-limited", "one-thread-bound"},
                {"link-bound", "client-limited", "network-bound"},
                {"server-bound", "valid", NULL}};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *path = wb_strf("tests/data/cases/010-%s.csv", rows[i].file);
        WB_AUTO_FREE char *text = NULL;
        WB_AUTO_JSON wb_json *in = NULL;
        const char *by;
        size_t n;
        wb_json *out;
        assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, NULL), 0);
        assert_int_equal(wb_csv_columns(text, n, &in, NULL), 0);
        out = answer_to(in);
        assert_string_equal(wb_json_str_or(out, "verdict", ""), rows[i].verdict);
        by = wb_json_str_or(out, "limited_by", NULL);
        assert_true((by == NULL) == (rows[i].by == NULL));
        if (by != NULL) {
            assert_string_equal(by, rows[i].by);
            assert_non_null(strstr(wb_json_string(wb_json_at(wb_json_get(out, "reasons"), 0)), by));
        } else {
            assert_int_equal(wb_json_len(wb_json_get(out, "reasons")), 0);
        }
        wb_json_free(out);
    }
}

static void cpu_times(void **state)
{
    /* 900 ticks in all: 160 busy, 30 stolen, 10 waiting; guest (50) is inside of user. */
    wb_json *out =
        answer("{\"proc_stat\":{\"before\":\"cpu  100 0 100 1000 10 0 0 0 0 0\\ncpu0 1\\n\","
               "\"after\":\"cpu  200 0 150 1700 20 0 10 30 50 0\\ncpu0 1\\n\"}}");

    assert_true(fabs(wb_json_real_or(out, "steal_percent", 0) - 30.0 / 9) < 1e-9);
    assert_true(fabs(wb_json_real_or(out, "iowait_percent", 0) - 10.0 / 9) < 1e-9);
    assert_true(fabs(wb_json_real_or(out, "busy_percent", 0) - 160.0 / 9) < 1e-9);
    assert_string_equal(wb_json_str_or(out, "verdict", ""), "noisy");
    wb_json_free(out);
}

static void throttling(void **state)
{
    static const struct {
        const char *before, *after, *more;
        bool limited;
        double percent, seconds;
        const char *verdict;
    } rows[] = {
        {"usage_usec 5\\nnr_periods 10\\nnr_throttled 1\\nthrottled_usec 5000\\n",
         "usage_usec 15\\nnr_periods 110\\nnr_throttled 21\\nthrottled_usec 1005000\\n", "", true,
         20, 1, "noisy"},
        {"nr_periods 10\\nnr_throttled 1\\nthrottled_time 5000000\\n",
         "nr_periods 110\\nnr_throttled 21\\nthrottled_time 1005000000\\n", "", true, 20, 1,
         "noisy"},
        {"usage_usec 5\\nnr_periods 10\\nnr_throttled 1\\nthrottled_usec 5000\\n",
         "usage_usec 15\\nnr_periods 110\\nnr_throttled 21\\nthrottled_usec 1005000\\n",
         ",\"cpu_quota\":true", true, 20, 1, "valid"},
        {"usage_usec 5\\nnr_periods 10\\n", "usage_usec 15\\nnr_periods 110\\n", "", true, 0, 0,
         "valid"},
        {"usage_usec 5\\nnr_periods 10\\n", "usage_usec 15\\nnr_periods 10\\n", "", true, NAN, 0,
         "valid"},
        {"usage_usec 5\\nnr_periods 0\\n", "usage_usec 15\\nnr_periods 0\\n", "", false, NAN, NAN,
         "valid"},
        {"usage_usec 5\\n", "usage_usec 15\\n", "", false, NAN, NAN, "valid"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *text = wb_strf("{\"cpu_stat\":{\"before\":\"%s\",\"after\":\"%s\"}%s}",
                                          rows[i].before, rows[i].after, rows[i].more);
        wb_json *out = answer(text);
        double percent = wb_json_real_or(out, "throttled_percent", NAN);
        double seconds = wb_json_real_or(out, "throttled_s", NAN);
        assert_int_equal(wb_json_bool_or(out, "limited", !rows[i].limited), rows[i].limited);
        assert_true(isnan(rows[i].percent) ? isnan(percent)
                                           : fabs(percent - rows[i].percent) < 1e-9);
        assert_true(isnan(rows[i].seconds) ? isnan(seconds)
                                           : fabs(seconds - rows[i].seconds) < 1e-9);
        assert_string_equal(wb_json_str_or(out, "verdict", ""), rows[i].verdict);
        wb_json_free(out);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *text, *begin;
    } cases[] = {
        {"[]", "the input must be an object"},
        {"{}", "the input must have env"},
        {"{\"env\":[]}", "/env: must be an object"},
        {"{\"env\":{\"steal_percent\":\"5\"}}", "/env/steal_percent: must be a number"},
        {"{\"env\":{\"steal_percent\":-1}}", "/env/steal_percent: must be a number"},
        {"{\"env\":{\"governor\":5}}", "/env/governor: must be a word"},
        {"{\"proc_stat\":{}}", "/proc_stat: must have before and after"},
        {"{\"proc_stat\":{\"before\":\"x\",\"after\":\"y\"}}", "/proc_stat/before: is no text"},
        {"{\"proc_stat\":{\"before\":\"cpu  1 1 1 1 1 1 1 1\",\"after\":\"cpu  1 1 1 1\"}}",
         "/proc_stat/after: is no text"},
        {"{\"proc_stat\":{\"before\":\"cpu  9 9 9 9 9 9 9 9\",\"after\":\"cpu  1 1 1 1 1 1 1 1\"}}",
         "/proc_stat/after: the counters do not go on"},
        {"{\"proc_stat\":{\"before\":\"cpu  1 1 1 1 1 1 1 1\","
         "\"after\":\"cpu  99999999999999999999 1 1 1 1 1 1 1\"}}",
         "/proc_stat/after: counter 1 is out of range"},
        {"{\"cpu_stat\":5}", "/cpu_stat: must have"},
        {"{\"cpu_stat\":{\"before\":\"x\",\"after\":\"nr_periods 5\"}}",
         "/cpu_stat/before: is no text"},
        {"{\"cpu_stat\":{\"before\":\"nr_periods 9\",\"after\":\"nr_periods 5\"}}",
         "/cpu_stat/after: the counters do not go on"},
        {"{\"load_busiest_thread_pct\":[\"x\"]}", "/load_busiest_thread_pct/0: must be"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *in = parsed(cases[i].text);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        assert_int_equal(wb_stats_validity(in, &out, &err), -WB_INVALID);
        assert_null(out);
        if (strncmp(err.root, cases[i].begin, strlen(cases[i].begin)) != 0)
            fail_msg("%s: %s", cases[i].text, err.root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),       cmocka_unit_test(missing_is_unverified),
        cmocka_unit_test(client_cases), cmocka_unit_test(cpu_times),
        cmocka_unit_test(throttling),   cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
