#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/report.h"
#include "runners/load/transactions.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

static void test_texts(void **state)
{
    static const char *const bad[][2] = {
        {"", "is not NAME=STEP"},
        {"login", "is not NAME=STEP"},
        {"=get", "is not NAME=STEP"},
        {"login=", "not the name of an operation"},
        {"login=get,", "not the name of an operation"},
        {"login=0*get", "out of range"},
        {"login=10001*get", "out of range"},
        {"login=5..4*get", "out of range"},
        {"login=5..*get", "not an integer"},
        {"login=x&get", "not an integer"},
        {"login=get@other", "stands derived"},
        {"login=get@", "stands derived"},
        {"login=2*", "not the name"},
        {"login=get;login=set", "stands there twice"},
        {"login=get;", "is not NAME=STEP"},
        {"a=x,x,x,x,x,x,x,x,x", "more than 8 steps"},
        {"a=x;b=x;c=x;d=x;e=x;f=x;g=x;h=x;i=x", "more than 8"},
        {"averyveryverylongname=x", "is not NAME=STEP"},
        {"a=averyveryverylongname", "not the name"},
    };
    struct wb_txn_kind k[WB_TXN_KINDS_MAX];
    int n = 0;

    (void)state;
    assert_int_equal(
        wb_txn_parse("login=get,10..100*get@derived; up=set,3&get,set@derived", k, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_string_equal(k[0].name, "login");
    assert_int_equal(k[0].nsteps, 2);
    assert_int_equal(k[0].step[0].least, 1);
    assert_int_equal(k[0].step[0].most, 1);
    assert_false(k[0].step[0].derived);
    assert_int_equal(k[0].step[1].least, 10);
    assert_int_equal(k[0].step[1].most, 100);
    assert_true(k[0].step[1].derived);
    assert_false(k[0].step[1].at_once);
    assert_int_equal(k[1].nsteps, 3);
    assert_true(k[1].step[1].at_once);
    assert_int_equal(k[1].step[1].most, 3);
    assert_string_equal(k[1].step[2].op, "set");
    assert_true(k[1].step[2].derived);
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        n = -7;
        assert_true(wb_txn_parse(bad[i][0], k, &n, &err) < 0);
        assert_int_equal(n, -7);
        if (!strstr(wb_err_text(&err, text, sizeof(text)), bad[i][1]))
            fail_msg("%s: '%s' does not say '%s'", bad[i][0], text, bad[i][1]);
    }
}

/* Repetitions are even over their range and follow from the index; derived keys follow from the own
 * key, are spread over the key space, and differ from repetition to repetition. */
static void test_drawn(void **state)
{
    enum { N = 91000, KEYS = 1000 };
    struct wb_txn_kind k[WB_TXN_KINDS_MAX];
    struct wb_txn_plan p;
    double chi = 0, keys[20] = {0};
    int n = 0, count[101] = {0}, same = 0;

    (void)state;
    assert_int_equal(wb_txn_parse("login=get,10..100*get@derived", k, &n, NULL), 0);
    assert_int_equal(wb_txn_plan_init(&p, k, n, 5, &wb_protocol_null, NULL), 0);
    for (uint64_t i = 0; i < N; i++) {
        int64_t r = wb_txn_repeats(&p, 0, 1, i);
        uint64_t a = wb_txn_key(&p, 0, 1, 0, i % KEYS, KEYS);
        assert_true(r >= 10 && r <= 100);
        assert_int_equal(r, wb_txn_repeats(&p, 0, 1, i));
        assert_int_equal(wb_txn_repeats(&p, 0, 0, i), 1);
        assert_int_equal(wb_txn_key(&p, 0, 0, 0, i % KEYS, KEYS), i % KEYS);
        assert_int_equal(a, wb_txn_key(&p, 0, 1, 0, i % KEYS, KEYS));
        assert_true(a < KEYS);
        same += a == wb_txn_key(&p, 0, 1, 1, i % KEYS, KEYS);
        count[r]++;
    }
    for (int r = 10; r <= 100; r++)
        chi += pow(count[r] - N / 91.0, 2) / (N / 91.0);
    assert_true(chi < 90 + 4 * sqrt(2.0 * 90));
    assert_true(same < N / 200);
    for (uint64_t own = 0; own < KEYS; own++)
        for (int64_t r = 0; r < 100; r++)
            keys[wb_txn_key(&p, 0, 1, r, own, KEYS) / 50]++;
    for (int b = 0; b < 20; b++)
        assert_true(fabs(keys[b] - 5000) < 5 * sqrt(5000));
    assert_int_equal(wb_txn_parse("login=nosuch", k, &n, NULL), 0);
    assert_int_equal(wb_txn_plan_init(&p, k, n, 5, &wb_protocol_null, NULL), -WB_INVALID);
}

static void on_begin(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms)
{
    (void)ctx;
    (void)o;
    (void)start_unix_ms;
}

static void on_interval(void *ctx, const struct wb_load_interval *i)
{
    (void)ctx;
    (void)i;
}

static void job_of(struct wb_load_job *job, const char *text, const char *mix)
{
    wb_load_job_init(job);
    job->target = wb_strdup("null://");
    job->keys = 1000;
    job->txn_text = wb_strdup(text);
    job->mix_text = mix ? wb_strdup(mix) : NULL;
}

static void run(struct wb_load_job *job, struct wb_load_outcome *o)
{
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_load_job_check(job, &err), 0);
    assert_int_equal(wb_load_run(job, c, &watch, o, &err), 0);
    assert_int_equal(o->end, WB_LOAD_DONE);
    wb_cancel_free(c);
}

/* As many transactions as were asked for, each with exactly its operations, however the stream is
 * cut into threads and parts, in sequence and at once. */
static void test_exact(void **state)
{
    static const struct {
        int threads, parts;
        const char *sign;
    } rows[] = {{1, 1, "*"}, {2, 1, "*"}, {1, 3, "*"}, {1, 1, "&"}, {2, 2, "&"}};
    enum { N = 2001 };
    uint64_t gets = 0, sets = 0, logins = 0;

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *text =
            wb_strf("login=get,10..30%sget@derived;up=set,get,set", rows[i].sign);
        uint64_t sum[2] = {0}, login = 0, all = 0;
        for (int part = 1; part <= rows[i].parts; part++) {
            struct wb_load_job job;
            struct wb_load_outcome o;
            const struct wb_phase_stats *ph = &o.total.phase[WB_PHASE_MEASURE];
            job_of(&job, text, "login=1,up=2");
            job.threads = rows[i].threads;
            job.connections = 3;
            job.depth = 2;
            job.ops = N;
            job.part_text = wb_strf("%d/%d", part, rows[i].parts);
            run(&job, &o);
            assert_int_equal(o.txn_scheduled, ph->txn[0].ok + ph->txn[1].ok);
            assert_int_equal(ph->txn_done_in_window, o.txn_scheduled);
            assert_int_equal(ph->op[1].ok, 2 * ph->txn[1].ok);
            assert_int_equal(ph->txn[0].service.total, ph->txn[0].ok);
            assert_int_equal(ph->txn[0].response.total, 0); /* closed */
            sum[0] += ph->op[0].ok;
            sum[1] += ph->op[1].ok;
            login += ph->txn[0].ok;
            all += o.txn_scheduled;
            wb_load_outcome_release(&o);
            wb_load_job_release(&job);
        }
        assert_int_equal(all, N);
        if (i == 0) {
            gets = sum[0];
            sets = sum[1];
            logins = login;
            assert_true(login > 550 && login < 780);
        }
        assert_int_equal(sum[0], gets);
        assert_int_equal(sum[1], sets);
        assert_int_equal(login, logins);
    }
}

/* The schedule is of the transactions; the warm-up is apart; the document has both. */
static void test_open(void **state)
{
    struct wb_load_job job;
    struct wb_load_outcome o;
    const struct wb_phase_stats *ph = &o.total.phase[WB_PHASE_MEASURE];
    const char *verdict = NULL;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    const wb_json *t;
    wb_json *r;

    (void)state;
    job_of(&job, "login=get,4*get@derived", NULL);
    job.rate_per_s = 1000;
    job.warm_up_ns = 50 * WB_MS;
    job.for_ns = 200 * WB_MS;
    run(&job, &o);
    assert_int_equal(o.txn_scheduled, 200);
    assert_int_equal(ph->txn[0].ok, 200);
    assert_int_equal(ph->txn[0].response.total, 200);
    assert_int_equal(ph->txn[0].lag.total, 200);
    assert_int_equal(ph->op[0].ok, 1000);
    assert_int_equal(o.scheduled, 1000);
    assert_int_equal(o.total.phase[WB_PHASE_WARM_UP].txn[0].ok, 50);
    r = wb_load_report(&o, &verdict);
    t = wb_json_get(r, "transactions");
    assert_int_equal(wb_json_int_or(t, "scheduled", 0), 200);
    assert_true(wb_json_real_or(t, "offered_per_s", 0) == 1000);
    assert_int_equal(wb_json_int_or(wb_json_path(r, "transactions.login.response"), "count", 0),
                     200);
    assert_int_equal(wb_json_type(wb_json_path(r, "operations.all.response")), WB_JSON_NULL);
    assert_int_equal(wb_json_int_or(r, "ok", 0), 1000);
    wb_load_report_text(r, &text);
    assert_non_null(strstr(wb_buf_str(&text), "200 transactions"));
    wb_buf_release(&text);
    wb_json_free(r);
    wb_load_outcome_release(&o);
    wb_load_job_release(&job);
}

/* A worker without threads and sockets on one connection that speaks RESP. */
struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_worker w;
    struct wb_conn c;
    struct wb_stats stats;
};

static void rig_up(struct rig *r, const char *text, int depth)
{
    struct wb_err err = WB_ERR_INIT;

    *r = (struct rig){0};
    wb_load_job_init(&r->job);
    r->job.target = wb_strdup("resp://x");
    r->job.txn_text = wb_strdup(text);
    r->job.rate_per_s = 1000;
    r->job.depth = depth;
    assert_int_equal(wb_load_job_check(&r->job, &err), 0);
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    r->plan.job = r->plan.data.job = &r->job;
    assert_int_equal(
        wb_txn_plan_init(&r->plan.txn, r->job.txn, r->job.ntxn, 1, &wb_protocol_resp, &err), 0);
    assert_int_equal(wb_mix_init(&r->plan.mix, &r->job, &wb_protocol_resp, &err), 0);
    r->plan.schedule = (struct wb_schedule){.rate_per_s = 1000, .stride = 1};
    r->w.plan = &r->plan;
    r->w.protocol = &wb_protocol_resp;
    r->w.timeout_ns = WB_SEC;
    r->w.stage = WB_STAGE_RUN;
    r->w.open = true;
    r->w.end = WB_SEC;
    r->w.waiting_since = INT64_MIN;
    r->w.window_ns = UINT64_MAX;
    r->w.in_window = true;
    r->w.conns = &r->c;
    r->w.nconns = 1;
    wb_arrivals_start(&r->w.due, &r->plan.schedule, 0);
    wb_stats_init(&r->stats, 2);
    wb_stats_add_transactions(&r->stats, r->job.ntxn);
    r->w.cur = &r->stats;
    assert_int_equal(wb_protocol_resp.setup(&r->plan.data, &r->w.context, NULL), 0);
    r->w.request_max = wb_protocol_resp.request_max(r->w.context);
    wb_conn_init(&r->c, &r->job, r->w.request_max, wb_protocol_resp.conn_size);
    wb_protocol_resp.reset(r->w.context, r->c.proto);
    r->w.txns = wb_txns_new(&r->plan, 2);
    wb_txns_begin(&r->w);
    r->c.state = WB_CONN_UP;
    wb_worker_update_ready(&r->w, &r->c);
}

static void rig_down(struct rig *r)
{
    wb_txns_free(r->w.txns);
    wb_protocol_resp.end(r->w.context);
    wb_conn_release(&r->c);
    wb_stats_release(&r->stats);
    wb_values_release(&r->plan.data.values);
    wb_load_job_release(&r->job);
}

/* Time passes, what is in flight is answered, and the next turn issues. */
static void step(struct rig *r, const char *replies)
{
    r->c.stamped = r->c.tail;
    r->c.out_len = 0;
    r->w.now += 100;
    assert_int_equal(wb_protocol_resp.feed(r->w.context, &r->w, &r->c, replies, strlen(replies)),
                     0);
    wb_worker_update_ready(&r->w, &r->c);
    wb_txns_go(&r->w);
}

/* One after the other: each step begins when the one before is over, and all of it is one
 * transaction whose response counts from its arrival. */
static void test_course(void **state)
{
    struct rig r;
    const struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];

    (void)state;
    rig_up(&r, "t=get,2&get@derived,set", 8);
    wb_txns_go(&r.w);
    assert_int_equal(wb_conn_in_flight(&r.c), 1);
    step(&r, "$1\r\nx\r\n");
    assert_int_equal(wb_conn_in_flight(&r.c), 2); /* at once */
    step(&r, "$1\r\nx\r\n");
    assert_int_equal(wb_conn_in_flight(&r.c), 1); /* the step is not over */
    step(&r, "$-1\r\n");
    assert_int_equal(wb_conn_in_flight(&r.c), 1);
    assert_int_equal(r.c.slots[r.c.head & r.c.mask].op, 1);
    assert_true(wb_txns_active(&r.w));
    step(&r, "+OK\r\n");
    assert_false(wb_txns_active(&r.w));
    assert_int_equal(ph->txn[0].ok, 1);
    assert_int_equal(ph->op[0].ok, 3);
    assert_int_equal(ph->op[0].misses, 1);
    assert_int_equal(ph->op[1].ok, 1);
    assert_int_equal(ph->txn[0].response.max, 400);
    assert_int_equal(ph->op[0].response.total, 0);
    rig_down(&r);
}

/* A step that fails ends the transaction: nothing more is issued, and it waits for what is still in
 * flight. What was not over at the end is censored. */
static void test_failure(void **state)
{
    struct rig r;
    const struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];

    (void)state;
    rig_up(&r, "t=2&get,set", 8);
    wb_txns_go(&r.w);
    assert_int_equal(wb_conn_in_flight(&r.c), 2);
    step(&r, "-ERR no\r\n");
    assert_int_equal(wb_conn_in_flight(&r.c), 1);
    assert_true(wb_txns_active(&r.w));
    step(&r, "$1\r\nx\r\n");
    assert_false(wb_txns_active(&r.w));
    assert_int_equal(ph->txn[0].failed, 1);
    assert_int_equal(ph->txn[0].ok, 0);
    assert_int_equal(ph->txn[0].response.total, 0); /* a failed one is never a fast one */
    assert_int_equal(ph->op[1].issued, 0);
    r.w.now = 1 * WB_MS; /* the second arrival: its connection breaks */
    wb_txns_go(&r.w);
    assert_int_equal(wb_conn_in_flight(&r.c), 2);
    r.c.stamped = r.c.tail;
    wb_conn_break(&r.w, &r.c, WB_REPLY_CLOSED);
    assert_int_equal(ph->txn[0].failed, 2);
    assert_int_equal(ph->errors[WB_REPLY_CLOSED], 2);
    r.c.state = WB_CONN_UP;
    wb_worker_update_ready(&r.w, &r.c);
    r.w.now = 4 * WB_MS; /* two of three fit: there is room for two transactions */
    wb_txns_go(&r.w);
    assert_int_equal(wb_conn_in_flight(&r.c), 4);
    r.w.end = r.w.now + 1;
    wb_worker_censor(&r.w);
    assert_int_equal(ph->txn[0].issued, 4);
    assert_int_equal(ph->txn[0].censored, 3);
    assert_int_equal(ph->op[0].censored, 4);
    assert_int_equal(r.w.backlog_at_end, 1);
    assert_int_equal(r.w.live, 0);
    assert_false(wb_txns_active(&r.w));
    rig_down(&r);
}

/* More at once than there is room for: the rest goes when there is. */
static void test_full(void **state)
{
    struct rig r;
    const struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];

    (void)state;
    rig_up(&r, "t=5&get", 2);
    r.w.now = 1 * WB_MS; /* two arrivals are due */
    wb_txns_go(&r.w);
    assert_int_equal(wb_conn_in_flight(&r.c), 2);
    for (int i = 0; i < 4; i++) {
        step(&r, "$1\r\nx\r\n$1\r\nx\r\n");
        assert_int_equal(wb_conn_in_flight(&r.c), 2);
    }
    assert_int_equal(ph->txn[0].ok, 1);
    step(&r, "$1\r\nx\r\n$1\r\nx\r\n");
    assert_int_equal(ph->txn[0].ok, 2);
    assert_int_equal(ph->op[0].issued, 10);
    assert_int_equal(wb_conn_in_flight(&r.c), 0);
    assert_false(wb_txns_active(&r.w));
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts), cmocka_unit_test(test_drawn),  cmocka_unit_test(test_exact),
        cmocka_unit_test(test_open),  cmocka_unit_test(test_course), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
