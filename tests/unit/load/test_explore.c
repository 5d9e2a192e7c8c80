#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/load/explore.h"
#include "runners/load/report.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

struct seen {
    int runs, intervals;
};

static void on_begin(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms)
{
    struct seen *s = ctx;

    (void)o;
    (void)start_unix_ms;
    s->runs++;
}

static void on_interval(void *ctx, const struct wb_load_interval *i)
{
    struct seen *s = ctx;

    (void)i;
    s->intervals++;
}

static void job_of(struct wb_load_job *job, const char *sweep, const char *search)
{
    wb_load_job_init(job);
    job->target = wb_strdup("null://");
    job->keys = 500;
    job->for_ns = 20 * WB_MS;
    job->sweep_text = sweep ? wb_strdup(sweep) : NULL;
    job->search_text = search ? wb_strdup(search) : NULL;
}

static void explore(struct wb_load_job *job, struct wb_load_exploration *out, struct seen *seen)
{
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval, .ctx = seen};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;

    *seen = (struct seen){0};
    assert_int_equal(wb_load_job_check(job, &err), 0);
    assert_true(wb_load_explores(job));
    assert_int_equal(wb_load_explore(job, c, &watch, out, &err), 0);
    wb_cancel_free(c);
}

/* The whole curve is kept in the order of the rates; data is loaded once and told. */
static void test_sweep(void **state)
{
    struct wb_load_job job;
    struct wb_load_exploration x;
    struct seen seen;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    static const double rates[] = {500, 2000, 1000};

    (void)state;
    job_of(&job, "500,2k,1k/s", NULL);
    job.load = true;
    explore(&job, &x, &seen);
    assert_int_equal(seen.runs, 3);
    assert_int_equal(x.end, WB_LOAD_DONE);
    assert_int_equal(wb_json_len(wb_json_get(x.result, "curve")), 3);
    for (size_t i = 0; i < 3; i++) {
        const wb_json *c = wb_json_at(wb_json_get(x.result, "curve"), i);
        assert_true(wb_json_real_or(c, "offered_per_s", 0) == rates[i]);
        assert_true(wb_json_real_or(c, "achieved_per_s", -1) >= 0);
        assert_int_equal(wb_json_int_or(wb_json_get(c, "response"), "count", -1),
                         (int64_t)(rates[i] * 0.02));
        assert_string_equal(wb_json_str_or(c, "stage", ""), "sweep");
        assert_true(strlen(wb_json_str_or(c, "verdict", "")) > 0);
        assert_null(wb_json_get(c, "holds"));
    }
    assert_null(wb_json_get(x.result, "curve_reason"));
    assert_int_equal(wb_json_int_or(wb_json_get(x.result, "data"), "rows", 0), 500);
    assert_string_equal(wb_json_str_or(x.result, "sustained_per_s_reason", ""),
                        "no limit was asked for");
    assert_string_equal(wb_json_str_or(wb_json_get(x.result, "job"), "sweep", ""), "500,2k,1k/s");
    assert_string_equal(wb_json_str_or(x.result, "verdict", ""), x.verdict);
    wb_load_report_text(x.result, &text);
    assert_non_null(strstr(wb_buf_str(&text), "offered/s"));
    wb_buf_release(&text);
    wb_json_free(x.result);
    wb_load_job_release(&job);
}

/* A limit that nothing can hold: down to the lowest rate, and the end says so. */
static void test_nothing_holds(void **state)
{
    struct wb_load_job job;
    struct wb_load_exploration x;
    struct seen seen;
    const wb_json *curve;

    (void)state;
    job_of(&job, NULL, "max<1us");
    job.rate_per_s = 100;
    job.for_ns = 5 * WB_MS;
    explore(&job, &x, &seen);
    curve = wb_json_get(x.result, "curve");
    assert_int_equal(wb_json_len(curve), 11); /* 100, 50, ... 0.195, 0.1 */
    assert_int_equal(seen.runs, 11);
    for (size_t i = 0; i < wb_json_len(curve); i++) {
        assert_false(wb_json_bool_or(wb_json_at(curve, i), "holds", true));
        assert_string_equal(wb_json_str_or(wb_json_at(curve, i), "stage", ""), "bracket");
    }
    assert_int_equal(wb_json_type(wb_json_get(x.result, "sustained_per_s")), WB_JSON_NULL);
    assert_non_null(wb_json_string(wb_json_get(x.result, "sustained_per_s_reason")));
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(x.result, "reasons"), 0), "code", ""),
                        "no-rate-holds");
    assert_string_equal(x.verdict, "server-bound");
    /* The document that is kept is of the lowest rate, not of the overload that was tried first. */
    assert_true(wb_json_real_or(x.result, "offered_per_s", 0) ==
                wb_json_real_or(wb_json_at(curve, 10), "offered_per_s", -1));
    wb_json_free(x.result);
    wb_load_job_release(&job);
}

/* Points of a sweep are judged by a limit: above the first that fails nothing is sustained. */
static void test_judged_sweep(void **state)
{
    struct wb_load_job job;
    struct wb_load_exploration x;
    struct seen seen;

    (void)state;
    job_of(&job, "100,200/s", "max<1us");
    explore(&job, &x, &seen);
    assert_int_equal(seen.runs, 2);
    assert_false(wb_json_bool_or(wb_json_at(wb_json_get(x.result, "curve"), 0), "holds", true));
    assert_string_equal(wb_json_str_or(x.result, "sustained_per_s_reason", ""),
                        "no rate that was tried held the limit");
    wb_json_free(x.result);
    wb_load_job_release(&job);
}

static void test_cancelled(void **state)
{
    struct wb_load_job job;
    struct wb_load_exploration x;
    struct seen seen = {0};
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval, .ctx = &seen};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    job_of(&job, NULL, "p99<1s");
    job.for_ns = 3600 * WB_SEC;
    wb_cancel_set(c, 2);
    assert_int_equal(wb_load_job_check(&job, &err), 0);
    assert_int_equal(wb_load_explore(&job, c, &watch, &x, &err), 0);
    assert_int_equal(x.end, WB_LOAD_INTERRUPTED);
    assert_string_equal(x.verdict, "failed");
    assert_int_equal(seen.runs, 1);
    assert_string_equal(wb_json_str_or(x.result, "sustained_per_s_reason", ""),
                        "ended before it was found");
    wb_json_free(x.result);
    wb_load_job_release(&job);
    wb_cancel_free(c);
}

/* A target that cannot be used is an error before anything is measured. */
static void test_cannot_begin(void **state)
{
    struct wb_load_job job;
    struct wb_load_exploration x;
    struct seen seen = {0};
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval, .ctx = &seen};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    job_of(&job, "10/s", NULL);
    job.mix_text = wb_strdup("nosuch=1");
    assert_int_equal(wb_load_job_check(&job, &err), 0);
    assert_int_equal(wb_load_explore(&job, c, &watch, &x, &err), -WB_INVALID);
    wb_load_job_release(&job);
    wb_cancel_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep),        cmocka_unit_test(test_nothing_holds),
        cmocka_unit_test(test_judged_sweep), cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cannot_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
