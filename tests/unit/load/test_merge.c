/*
 * Two results are merged and compared with the one that all their values make; what does not belong
 * together is refused by name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/merge.h"
#include "runners/load/report.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define START 1780000000000LL /* Unix ms */

static const char *const ops[] = {"get", "set", NULL};
static const char *const names[] = {"a.json", "b.json", "c.json"};

struct half {
    struct wb_load_job job;
    struct wb_load_outcome o;
    struct wb_thread_use before[1], after[1];
};

/* An operation of op that took service and was sent lag late. */
static void record(struct half *h, int op, int64_t service, int64_t lag)
{
    struct wb_phase_stats *ph = &h->o.total.phase[WB_PHASE_MEASURE];
    struct wb_op_stats *s = &ph->op[op];

    s->issued++;
    s->ok++;
    ph->done_in_window++;
    h->o.scheduled++;
    wb_hist_record(&s->service, service);
    wb_hist_record(&s->lag, lag);
    wb_hist_record(&s->response, service + lag);
    wb_hist_record(&ph->own_lag, lag);
}

static void half_up(struct half *h, const char *part, int64_t start)
{
    *h = (struct half){0};
    wb_load_job_init(&h->job);
    h->job.target = wb_strdup("resp://127.0.0.1:1");
    h->job.part_text = wb_strdup(part);
    h->job.rate_text = wb_strdup("2000/s");
    assert_int_equal(wb_load_job_check(&h->job, NULL), 0);
    h->o = (struct wb_load_outcome){.job = &h->job,
                                    .ops = ops,
                                    .nops = 2,
                                    .measured = true,
                                    .window_unix_ms = start,
                                    .window_ns = 10 * WB_SEC};
    wb_stats_init(&h->o.total, 2);
    h->o.from = (struct wb_client_sample){.at = WB_SEC, .jiffies = 1, .thread = h->before, .n = 1};
    h->o.to =
        (struct wb_client_sample){.at = 11 * WB_SEC, .jiffies = 999, .thread = h->after, .n = 1};
    h->after[0].cpu_ns = WB_SEC;
    h->o.to.cpu_ns = WB_SEC;
}

static void half_down(struct half *h)
{
    wb_stats_release(&h->o.total);
    wb_load_job_release(&h->job);
}

/* n random operations from 1 us to 1 s, into one or two outcomes. */
static void fill(struct half *h, struct half *both, uint64_t seed, int n)
{
    struct wb_rng rng;

    wb_rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) {
        int op = (int)wb_rng_below(&rng, 2);
        int64_t service = 1000 + (int64_t)(wb_rng_u64(&rng) >> (35 + wb_rng_below(&rng, 10)));
        int64_t lag = (int64_t)wb_rng_below(&rng, 100000);
        record(h, op, service, lag);
        record(both, op, service, lag);
    }
}

/* Documents of part 1 and 2 and of both together. */
static void make(wb_json *doc[3])
{
    struct half a, b, both;
    const char *word;

    half_up(&a, "1/2", START);
    half_up(&b, "2/2", START + 3);
    half_up(&both, "1/1", START);
    fill(&a, &both, 1, 5000);
    fill(&b, &both, 2, 7000);
    a.o.total.phase[WB_PHASE_MEASURE].errors[WB_REPLY_TIMEOUT] = 2;
    a.o.total.phase[WB_PHASE_MEASURE].errors[WB_REPLY_SERVER] = 1;
    b.o.total.phase[WB_PHASE_MEASURE].errors[WB_REPLY_TIMEOUT] = 5;
    a.o.total.phase[WB_PHASE_MEASURE].op[0].failed = 3;
    b.o.total.phase[WB_PHASE_MEASURE].op[0].failed = 5;
    both.o.total.phase[WB_PHASE_MEASURE].op[0].failed = 8;
    for (int i = 1; i <= 8; i++) {
        wb_hist_record(&(i <= 3 ? &a : &b)->o.total.phase[WB_PHASE_MEASURE].failed, i * WB_MS);
        wb_hist_record(&both.o.total.phase[WB_PHASE_MEASURE].failed, i * WB_MS);
    }
    doc[0] = wb_load_report(&a.o, &word);
    doc[1] = wb_load_report(&b.o, &word);
    doc[2] = wb_load_report(&both.o, &word);
    half_down(&a);
    half_down(&b);
    half_down(&both);
}

static void free_all(wb_json *doc[3])
{
    for (int i = 0; i < 3; i++)
        wb_json_free(doc[i]);
}

static void same_latency(const wb_json *got, const wb_json *want, const char *path)
{
    static const char *const exact[] = {"count",  "min_ms",   "p50_ms",    "p90_ms", "p95_ms",
                                        "p99_ms", "p99_9_ms", "p99_99_ms", "max_ms", "censored"};
    const wb_json *g = wb_json_path(got, path), *w = wb_json_path(want, path);

    assert_non_null(w);
    for (size_t i = 0; i < WB_LEN(exact); i++) {
        const wb_json *a = wb_json_get(g, exact[i]), *b = wb_json_get(w, exact[i]);
        if (!a || !wb_json_equal(a, b))
            fail_msg("%s.%s: %.9g, wanted %.9g", path, exact[i], wb_json_number(a, -1),
                     wb_json_number(b, -1));
    }
    assert_float_equal(wb_json_real_or(g, "mean_ms", 0), wb_json_real_or(w, "mean_ms", 1), 1e-9);
}

static void test_union(void **state)
{
    static const char *const paths[] = {
        "operations.all.response", "operations.all.service", "operations.all.lag",
        "operations.get.response", "operations.get.service", "operations.get.lag",
        "operations.set.response", "operations.set.service", "operations.set.lag",
        "failed_replies",
    };
    wb_json *doc[3], *merged = NULL;
    const char *verdict = NULL;

    (void)state;
    make(doc);
    assert_int_equal(wb_load_merge((const wb_json *const *)doc, names, 2, &merged, &verdict, NULL),
                     0);
    for (size_t i = 0; i < WB_LEN(paths); i++)
        same_latency(merged, doc[2], paths[i]);
    assert_int_equal(wb_json_int_or(merged, "ok", 0), 12000);
    assert_int_equal(wb_json_int_or(merged, "failed", 0), 8);
    assert_int_equal(wb_json_integer(wb_json_path(merged, "errors.timeout")), 7);
    assert_int_equal(wb_json_integer(wb_json_path(merged, "errors.server")), 1);
    assert_int_equal(wb_json_integer(wb_json_path(merged, "operations.get.failed")), 8);
    /* from the begin of the first to the end of the last */
    assert_float_equal(wb_json_number(wb_json_path(merged, "window.seconds"), 0), 10.003, 1e-9);
    assert_float_equal(wb_json_real_or(merged, "achieved_per_s", 0), 12000 / 10.003, 1e-6);
    assert_float_equal(wb_json_real_or(merged, "offered_per_s", 0), 2000, 1e-9);
    assert_float_equal(wb_json_real_or(merged, "start_skew_ms", 0), 3, 1e-9);
    assert_float_equal(wb_json_number(wb_json_path(merged, "client.cpu_s"), 0), 2, 1e-9);
    assert_int_equal(wb_json_len(wb_json_path(merged, "client.threads")), 2);
    assert_int_equal(wb_json_len(wb_json_get(merged, "parts")), 2);
    assert_null(wb_json_path(merged, "job.part"));
    wb_json_free(merged);
    free_all(doc);
}

static void test_verdict(void **state)
{
    static const struct {
        const char *a, *b, *want;
        int64_t skew_ms;
    } rows[] = {
        {"valid", "valid", "valid", 0},
        {"valid", "valid", "valid", 10},
        {"valid", "valid", "noisy", 11},
        {"noisy", "valid", "noisy", 0},
        {"valid", "server-bound", "server-bound", 0},
        {"client-bound", "server-bound", "client-bound", 0},
        {"one-thread-bound", "network-bound", "one-thread-bound", 0},
        {"server-bound", "valid", "server-bound", 500},
        {"valid", "failed", "failed", 0},
        {"valid", "what is this", "failed", 0},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        wb_json *doc[3], *merged = NULL;
        const char *verdict = NULL;
        struct wb_buf start = WB_BUF_INIT(64);
        make(doc);
        wb_json_set_str(doc[0], "verdict", rows[i].a);
        wb_json_set_str(doc[1], "verdict", rows[i].b);
        wb_format_time(START + rows[i].skew_ms, &start);
        wb_json_set_str(wb_json_get(doc[1], "window"), "start", wb_buf_str(&start));
        assert_int_equal(
            wb_load_merge((const wb_json *const *)doc, names, 2, &merged, &verdict, NULL), 0);
        assert_string_equal(verdict, rows[i].want);
        assert_string_equal(wb_json_str_or(merged, "verdict", ""), rows[i].want);
        wb_buf_release(&start);
        wb_json_free(merged);
        free_all(doc);
    }
}

static void set_job(wb_json *doc, const char *key, wb_json *value)
{
    wb_json_set(wb_json_get(doc, "job"), key, value);
}

static void spoil(wb_json *doc[3], int how)
{
    wb_json *job = wb_json_get(doc[1], "job"), *h = wb_json_get(doc[1], "histograms");

    switch (how) {
    case 0:
        set_job(doc[1], "value_bytes", wb_json_int(64));
        break;
    case 1:
        wb_json_set_int(doc[1], "seed", 2);
        break;
    case 2:
        wb_json_del(job, "depth");
        break;
    case 3:
        set_job(doc[1], "new", wb_json_bool(true));
        break;
    case 4:
        set_job(doc[1], "part", wb_json_str("1/2"));
        break;
    case 5:
        set_job(doc[1], "part", wb_json_str("2/3"));
        break;
    case 6:
        set_job(doc[0], "part", wb_json_str("1/3"));
        set_job(doc[1], "part", wb_json_str("2/3"));
        break;
    case 7:
        set_job(doc[0], "part", wb_json_str("1/1"));
        set_job(doc[1], "part", wb_json_str("1/1"));
        break;
    case 8:
        wb_json_del(doc[1], "histograms");
        break;
    case 9:
        wb_json_set_reason(doc[1], "window", "x");
        break;
    case 10:
        wb_json_set_str(wb_json_path(h, "operations.get"), "service", "HISTFAAAgarbage");
        break;
    case 11:
        wb_json_set_int(wb_json_path(doc[1], "operations.get.service"), "count", 5);
        break;
    case 12:
        set_job(doc[1], "part", wb_json_str("two"));
        break;
    case 13:
        wb_json_del(doc[1], "job");
        break;
    default:
        wb_json_set_str(wb_json_get(doc[1], "window"), "start", "yesterday");
        break;
    }
}

static void test_refused(void **state)
{
    static const char *const want[] = {
        "job.value_bytes is 1024 in a.json and 64 in b.json",
        "seed is 1 in a.json and 2 in b.json",
        "job.depth is 4096 in a.json and not there in b.json",
        "job.new is not there in a.json and true in b.json",
        "a.json and b.json are both part 1/2",
        "job.part is \"1/2\" in a.json and \"2/3\" in b.json",
        "part 3/3 is not among the files",
        "each offered the whole rate",
        "b.json has no histograms",
        "b.json has no measured window",
        "b.json: histograms.operations.get.service",
        "b.json: histograms.operations.get.service does not have the 5 values",
        "b.json: job.part 'two' is not h/H",
        "b.json is not a result of wb-load",
        "b.json: window is not {start, seconds}",
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(want); i++) {
        wb_json *doc[3], *merged = NULL;
        const char *verdict = NULL;
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        make(doc);
        spoil(doc, (int)i);
        assert_true(wb_load_merge((const wb_json *const *)doc, names, 2, &merged, &verdict, &err) <
                    0);
        assert_null(merged);
        if (!strstr(wb_err_text(&err, text, sizeof(text)), want[i]))
            fail_msg("wanted '%s', got '%s'", want[i], text);
        free_all(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
