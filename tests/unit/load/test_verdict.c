/*
 * One quiet run, disturbed in one way at a time: which word and which reason come out.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define WINDOW (10 * WB_SEC)

struct rig {
    struct wb_load_job job;
    struct wb_load_outcome o;
    struct wb_thread_use before[2], after[2];
    struct wb_op_stats *op;
    struct wb_phase_stats *ph;
};

/* 10 s, 2 threads at 40 % of a CPU, 100,000 operations of 1 ms: 10 in flight on 10 connections. */
static void quiet(struct rig *r, bool open)
{
    *r = (struct rig){0};
    wb_load_job_init(&r->job);
    r->job.threads = 2;
    r->job.connections = 10;
    r->job.depth = 1;
    r->job.ncpu = 2;
    r->job.model = open ? WB_LOAD_OPEN : WB_LOAD_CLOSED;
    r->job.rate_per_s = open ? 10000 : 0;
    r->o = (struct wb_load_outcome){
        .job = &r->job, .nops = 1, .measured = true, .window_ns = WINDOW, .scheduled = 100000};
    wb_stats_init(&r->o.total, 1);
    r->ph = &r->o.total.phase[WB_PHASE_MEASURE];
    r->op = r->ph->op;
    r->op->ok = r->op->issued = r->ph->done_in_window = 100000;
    wb_hist_record_n(&r->op->service, WB_MS, 100000);
    if (open) {
        wb_hist_record_n(&r->op->response, WB_MS, 100000);
        wb_hist_record_n(&r->ph->own_lag, 20 * WB_US, 100000);
    }
    r->o.from =
        (struct wb_client_sample){.at = WB_SEC, .jiffies = 1000, .thread = r->before, .n = 2};
    r->o.to = (struct wb_client_sample){
        .at = WB_SEC + WINDOW, .jiffies = 3000, .periods = 100, .thread = r->after, .n = 2};
    r->after[0].cpu_ns = r->after[1].cpu_ns = WINDOW * 4 / 10;
}

static void check(struct rig *r, const char *word, const char *code)
{
    wb_json *reasons = NULL;
    const char *got = wb_load_verdict(&r->o, &reasons);
    bool found = code == NULL && wb_json_len(reasons) == 0;

    for (size_t i = 0; i < wb_json_len(reasons); i++) {
        const wb_json *one = wb_json_at(reasons, i);
        assert_true(strlen(wb_json_str_or(one, "text", "")) > 10);
        assert_non_null(wb_json_get(one, "evidence"));
        if (code && strcmp(wb_json_str_or(one, "code", ""), code) == 0)
            found = true;
    }
    if (strcmp(got, word) != 0 || !found) {
        struct wb_buf b = WB_BUF_INIT(1 << 16);
        wb_json_line(reasons, &b);
        fail_msg("wanted %s because of %s, got %s: %s", word, code ? code : "nothing", got,
                 wb_buf_str(&b));
    }
    wb_json_free(reasons);
    free(r->o.end_text);
    wb_stats_release(&r->o.total);
}

#define CASE(open, word, code, change) \
    do {                               \
        struct rig r;                  \
        quiet(&r, open);               \
        change;                        \
        check(&r, word, code);         \
    } while (0)

static void test_quiet(void **state)
{
    (void)state;
    CASE(true, "valid", NULL, (void)0);
    CASE(false, "server-bound", "server-bound", (void)0);
}

static void test_client(void **state)
{
    (void)state;
    CASE(true, "client-bound", "client-cpu",
         r.after[0].cpu_ns = r.after[1].cpu_ns = WINDOW * 97 / 100);
    CASE(true, "one-thread-bound", "one-thread-cpu", r.after[1].cpu_ns = WINDOW * 97 / 100);
    CASE(true, "noisy", "client-cpu", r.after[0].cpu_ns = WINDOW * 85 / 100);
    CASE(true, "noisy", "run-queue", r.after[1].wait_ns = WINDOW * 11 / 100);
    CASE(true, "valid", NULL, r.after[1].wait_ns = WINDOW * 9 / 100);
    CASE(true, "valid", NULL, r.after[1].wait_ns = -1); /* unknown is not noisy */
    /* late by its own fault: a host's if the thread had time, else the client's */
    CASE(true, "noisy", "schedule-lag", wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100));
    CASE(true, "valid", NULL, wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 900));
    CASE(
        true, "client-bound", "schedule-lag",
        (wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100), r.after[0].cpu_ns = WINDOW * 85 / 100));
    /* others had the CPU, or the own control group's quota held it back, however busy it was */
    CASE(true, "noisy", "schedule-lag",
         (wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100), r.after[0].cpu_ns = WINDOW * 85 / 100,
          r.after[0].wait_ns = WINDOW * 12 / 100));
    CASE(true, "noisy", "schedule-lag",
         (wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100), r.after[0].cpu_ns = WINDOW * 85 / 100,
          r.o.to.steal = 30));
    CASE(true, "client-bound", "schedule-lag",
         (wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100), r.o.to.throttled_periods = 2));
    CASE(true, "valid", NULL, /* 2 ms is little beside a response of 30 ms */
         (wb_hist_record_n(&r.ph->own_lag, 2 * WB_MS, 1100),
          wb_hist_record_n(&r.op->response, 30 * WB_MS, 200000)));
}

static void test_host(void **state)
{
    (void)state;
    CASE(true, "noisy", "steal", r.o.to.steal = 30);
    CASE(true, "valid", NULL, r.o.to.steal = 20);
    CASE(true, "valid", NULL, r.o.to.steal = -1);
    CASE(true, "noisy", "throttled", r.o.to.throttled_periods = 2);
    CASE(true, "valid", NULL, r.o.to.throttled_ns = -1);
    CASE(true, "network-bound", "network",
         (r.o.from.links = (struct wb_links){.n = 1, .link = {{"eth0", 0, 0, 1000}}},
          r.o.to.links = (struct wb_links){.n = 1, .link = {{"eth0", 0, 1150000000, 1000}}}));
}

static void test_errors(void **state)
{
    (void)state;
    CASE(true, "noisy", "errors", r.op->failed = 500);
    CASE(true, "valid", NULL, r.op->failed = 9);
    CASE(true, "failed", "errors", r.op->failed = 1100);
    CASE(true, "failed", "no-success", r.op->ok = 0);
    CASE(true, "failed", "connection-lost", r.o.connections_down = 10);
    CASE(true, "noisy", "connection-lost", r.o.connections_down = 1);
    CASE(false, "failed", "load-incomplete",
         r.o.data = ((struct wb_load_rows){.done = true, .wanted = 10, .rows = 9}));
    CASE(false, "failed", "load-mismatch",
         r.o.data = ((struct wb_load_rows){
             .done = true, .wanted = 10, .rows = 10, .checked = 10, .mismatched = 1}));
    CASE(true, "failed", "interrupted",
         (r.o.end = WB_LOAD_INTERRUPTED, r.o.end_text = wb_strdup("stopped by signal 2")));
    CASE(true, "failed", "no-connection",
         (r.o.end = WB_LOAD_NO_CONNECTION, r.o.end_text = wb_strdup("connecting to x: refused")));
}

static void test_rate(void **state)
{
    (void)state;
    /* not served although nothing held the client back: its own fault */
    CASE(true, "client-bound", "rate-not-reached", r.ph->done_in_window = 90000);
    CASE(true, "noisy", "rate-not-reached",
         (r.ph->done_in_window = 90000, r.after[0].wait_ns = WINDOW / 2));
    CASE(true, "client-bound", "rate-not-reached",
         (r.ph->done_in_window = 90000, r.o.to.throttled_periods = 20));
    CASE(true, "server-bound", "server-bound",
         (r.ph->done_in_window = 90000, r.op->ok = 90000, r.op->censored = 10000,
          r.o.backlog_at_end = 9000, r.after[0].wait_ns = WINDOW / 2));
    CASE(true, "server-bound", "server-bound",
         (r.ph->done_in_window = 90000, r.op->ok = 90000, r.op->censored = 10000));
    CASE(true, "server-bound", "server-bound", (r.ph->done_in_window = 90000, r.ph->cap_waits = 1));
    CASE(true, "valid", NULL, r.ph->done_in_window = 99100);
}

static void test_start(void **state)
{
    (void)state;
    CASE(true, "noisy", "start-skew",
         (r.o.start_planned_unix_ms = 1000000, r.o.start_unix_ms = 1000011));
    CASE(true, "noisy", "start-skew",
         (r.o.start_planned_unix_ms = 1000000, r.o.start_unix_ms = 999989));
    CASE(true, "valid", NULL, (r.o.start_planned_unix_ms = 1000000, r.o.start_unix_ms = 1000010));
    CASE(true, "valid", NULL, (r.o.start_planned_unix_ms = 0, r.o.start_unix_ms = 1000011));
}

static void test_little(void **state)
{
    struct rig full;

    (void)state;
    quiet(&full, false);
    assert_true(fabs(wb_load_little_ratio(&full.o) - 1) < 1e-3);
    wb_stats_release(&full.o.total);
    CASE(false, "noisy", "little", r.ph->done_in_window = 90000);
    CASE(false, "client-bound", "little", r.ph->done_in_window = 70000);
    CASE(false, "noisy", "little", r.ph->done_in_window = 110000);
    CASE(false, "noisy", "server-bound", r.o.to.steal = 30); /* the limit is told beside */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),  cmocka_unit_test(test_client), cmocka_unit_test(test_host),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_rate),   cmocka_unit_test(test_little),
        cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
