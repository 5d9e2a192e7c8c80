/*
 * Whole runs against the null protocol: sums, partitions, the report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/load/report.h"
#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

struct seen {
    uint64_t ok, scheduled, intervals;
    const char *last_phase;
};

static void on_begin(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms)
{
    (void)ctx;
    (void)o;
    (void)start_unix_ms;
}

static void on_interval(void *ctx, const struct wb_load_interval *i)
{
    struct seen *s = ctx;

    for (int p = 0; p < WB_PHASES; p++)
        s->ok += wb_phase_total(i->stats, (enum wb_load_phase)p).ok;
    s->scheduled += i->scheduled;
    s->intervals++;
    s->last_phase = i->phase;
}

static int run(struct wb_load_job *job, struct wb_load_outcome *out, struct seen *seen)
{
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval, .ctx = seen};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_load_job_check(job, &err);

    *seen = (struct seen){0};
    return rc < 0 ? rc : wb_load_run(job, NULL, &watch, out, &err);
}

static struct wb_load_job null_job(void)
{
    struct wb_load_job job;

    wb_load_job_init(&job);
    job.target = wb_strdup("null://");
    job.connections = 8;
    return job;
}

static void test_closed_by_operations(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct wb_load_job job = null_job();
        struct wb_load_outcome o;
        struct seen seen;
        job.threads = threads;
        job.ops = 100001;
        job.depth = 7;
        job.mix_text = wb_strdup("get=3,set=1");
        assert_int_equal(run(&job, &o, &seen), 0);
        assert_int_equal(o.end, WB_LOAD_DONE);
        assert_int_equal(o.scheduled, 100001);
        assert_int_equal(wb_phase_total(&o.total, WB_PHASE_MEASURE).ok, 100001);
        assert_int_equal(o.total.phase[WB_PHASE_MEASURE].done_in_window, 100001);
        assert_int_equal(seen.ok, 100001); /* every completion is in one interval */
        assert_int_equal(seen.scheduled, 100001);
        wb_load_outcome_release(&o);
        wb_load_job_release(&job);
    }
}

/* Operations by kind do not depend on threads or parts, as they follow from the index. */
static void test_same_operations_however_cut(void **state)
{
    static const struct {
        int threads, parts;
    } rows[] = {{1, 1}, {2, 1}, {1, 2}, {2, 3}};
    uint64_t gets = 0;

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        uint64_t sum = 0;
        for (int part = 1; part <= rows[i].parts; part++) {
            struct wb_load_job job = null_job();
            struct wb_load_outcome o;
            struct seen seen;
            job.threads = rows[i].threads;
            job.ops = 60000;
            job.part_text = wb_strf("%d/%d", part, rows[i].parts);
            job.mix_text = wb_strdup("get=1,set=1");
            assert_int_equal(run(&job, &o, &seen), 0);
            sum += o.total.phase[WB_PHASE_MEASURE].op[0].ok;
            wb_load_outcome_release(&o);
            wb_load_job_release(&job);
        }
        if (i == 0)
            gets = sum;
        assert_int_equal(sum, gets);
        assert_true(sum > 29000 && sum < 31000);
    }
}

static void test_open(void **state)
{
    static const char *const laws[] = {"constant", "poisson"};

    (void)state;
    for (size_t i = 0; i < WB_LEN(laws); i++) {
        struct wb_load_job job = null_job();
        struct wb_load_outcome o;
        struct wb_phase_sum sum;
        struct seen seen;
        job.threads = 2;
        job.rate_per_s = 20000;
        job.arrivals_text = wb_strdup(laws[i]);
        job.for_ns = 250 * WB_MS;
        job.warm_up_ns = 100 * WB_MS;
        job.interval_ns = 100 * WB_MS;
        assert_int_equal(run(&job, &o, &seen), 0);
        sum = wb_phase_total(&o.total, WB_PHASE_MEASURE);
        assert_int_equal(o.end, WB_LOAD_DONE);
        if (i == 0)
            assert_int_equal(o.scheduled, 5000);
        assert_int_equal(sum.ok + sum.censored, o.scheduled);
        assert_int_equal(sum.ok, o.scheduled);
        assert_int_equal(o.window_ns, 250 * WB_MS);
        assert_int_equal(o.warm_up_ns, 100 * WB_MS);
        assert_int_equal(seen.ok, sum.ok + wb_phase_total(&o.total, WB_PHASE_WARM_UP).ok);
        assert_int_equal(seen.scheduled, seen.ok);
        assert_int_equal(o.total.phase[WB_PHASE_MEASURE].op[0].lag.total, o.scheduled);
        wb_load_outcome_release(&o);
        wb_load_job_release(&job);
    }
}

/* A ramp and a step: what falls into the window is what their integral says. */
static void test_profile(void **state)
{
    struct wb_load_job job = null_job();
    struct wb_load_outcome o;
    struct seen seen;

    (void)state;
    job.threads = 2;
    job.rate_text = wb_strdup("1k..3k/s,500/s");
    job.warm_up_ns = 100 * WB_MS;
    job.for_ns = 400 * WB_MS;
    assert_int_equal(run(&job, &o, &seen), 0);
    assert_int_equal(o.end, WB_LOAD_DONE);
    assert_int_equal(o.scheduled, 500);
    assert_int_equal(wb_phase_total(&o.total, WB_PHASE_MEASURE).ok, 500);
    assert_int_equal(wb_phase_total(&o.total, WB_PHASE_WARM_UP).ok, 100);
    wb_load_outcome_release(&o);
    wb_load_job_release(&job);
}

/* A far too low rate for the connections is as valid as any. */
static void test_low_rate(void **state)
{
    struct wb_load_job job = null_job();
    struct wb_load_outcome o;
    struct seen seen;

    (void)state;
    job.rate_per_s = 2.5;
    job.connections = 100;
    job.for_ns = 900 * WB_MS;
    assert_int_equal(run(&job, &o, &seen), 0);
    assert_int_equal(o.scheduled, 3); /* at 0, 400 and 800 ms */
    assert_int_equal(wb_phase_total(&o.total, WB_PHASE_MEASURE).ok, 3);
    wb_load_outcome_release(&o);
    wb_load_job_release(&job);
}

static void test_cancelled_before(void **state)
{
    struct wb_load_job job = null_job();
    struct wb_load_outcome o;
    struct seen seen = {0};
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval, .ctx = &seen};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;
    const char *verdict = NULL;
    wb_json *r;

    (void)state;
    job.for_ns = 3600 * WB_SEC;
    wb_cancel_set(c, 2);
    assert_int_equal(wb_load_job_check(&job, &err), 0);
    assert_int_equal(wb_load_run(&job, c, &watch, &o, &err), 0);
    assert_int_equal(o.end, WB_LOAD_INTERRUPTED);
    r = wb_load_report(&o, &verdict);
    assert_string_equal(verdict, "failed");
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(r, "reasons"), 0), "code", ""),
                        "interrupted");
    wb_json_free(r);
    wb_load_outcome_release(&o);
    wb_load_job_release(&job);
    wb_cancel_free(c);
}

/* Every key of the contract is there, null ones with their reason, whatever happened. */
static void test_report_is_complete(void **state)
{
    static const char *const keys[] = {
        "version",    "seed",          "model",          "verdict",         "reasons",
        "window",     "offered_per_s", "achieved_per_s", "misses",          "scheduled",
        "ok",         "failed",        "dropped",        "censored",        "errors",
        "operations", "transactions",  "curve",          "sustained_per_s", "steady",
        "client",     "data",          "warm_up",        "failed_replies"};
    wb_json *schema = wb_load_report_schema();

    (void)state;
    for (int model = 0; model < 3; model++) {
        struct wb_load_job job = null_job();
        struct wb_load_outcome o;
        struct seen seen;
        const char *verdict = NULL;
        struct wb_buf text = WB_BUF_INIT(1 << 20);
        wb_json *r;
        job.for_ns = 20 * WB_MS;
        job.rate_per_s = model == 1 ? 1000 : 0;
        job.load_only = model == 2;
        job.keys = 500;
        assert_int_equal(run(&job, &o, &seen), 0);
        r = wb_load_report(&o, &verdict);
        for (size_t i = 0; i < WB_LEN(keys); i++) {
            WB_AUTO_FREE char *why = wb_strf("%s_reason", keys[i]);
            const wb_json *v = wb_json_get(r, keys[i]);
            assert_non_null(v);
            if (wb_json_type(v) == WB_JSON_NULL)
                assert_non_null(wb_json_string(wb_json_get(r, why)));
        }
        for (void *it = wb_json_first(wb_json_get(schema, "properties")); it;
             it = wb_json_next(wb_json_get(schema, "properties"), it))
            assert_non_null(wb_json_get(r, wb_json_iter_key(it)));
        if (model == 0) {
            assert_string_equal(wb_json_str_or(r, "model", ""), "closed");
            assert_int_equal(wb_json_type(wb_json_path(r, "operations.all.response")),
                             WB_JSON_NULL);
            assert_true(wb_json_real_or(r, "little_ratio", -1) >= 0);
        } else if (model == 1) {
            assert_int_equal(wb_json_int_or(wb_json_path(r, "operations.all.response"), "count", 0),
                             20);
            assert_int_equal(wb_json_int_or(wb_json_path(r, "operations.get.lag"), "count", 0), 20);
        } else {
            assert_int_equal(wb_json_int_or(wb_json_get(r, "data"), "rows", 0), 500);
            assert_int_equal(wb_json_int_or(wb_json_get(r, "data"), "checked", 0), 500);
            assert_string_equal(verdict, "valid");
        }
        wb_load_report_text(r, &text);
        assert_non_null(strstr(wb_buf_str(&text), "verdict   "));
        wb_buf_release(&text);
        wb_json_free(r);
        wb_load_outcome_release(&o);
        wb_load_job_release(&job);
    }
    wb_json_free(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_by_operations),
        cmocka_unit_test(test_same_operations_however_cut),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_low_rate),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_cancelled_before),
        cmocka_unit_test(test_report_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
