/*
 * Keys split over instances: a worker without sockets and threads, whose connections answer when
 * the test says so. In whatever order instances answer, every operation goes to the instance of its
 * key, none is lost and none is made twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/issue.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

extern const struct wb_protocol wb_protocol_null;

struct bench {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_worker w;
};

static void open_split(struct bench *b, const char *split, uint32_t instances, int64_t conns,
                       int64_t depth)
{
    struct wb_err err = WB_ERR_INIT;

    memset(b, 0, sizeof *b);
    wb_load_job_init(&b->job);
    b->job.target = wb_strdup("null://");
    b->job.split_text = wb_strdup(split);
    b->job.mix_text = wb_strdup("get=50,set=50");
    b->job.keys = 1000;
    b->job.depth = depth;
    b->job.connections = conns;
    assert_int_equal(wb_load_job_check(&b->job, &err), 0);
    b->plan.job = &b->job;
    b->plan.target.protocol = &wb_protocol_null;
    b->plan.target.n = instances;
    b->plan.nops = 2;
    b->plan.rows_to = 1000;
    b->plan.sample = 100;
    wb_keys_init(&b->plan.data.keys, &b->job);
    assert_int_equal(wb_mix_init(&b->plan.mix, &b->job, &wb_protocol_null, &err), 0);
    b->w.plan = &b->plan;
    b->w.protocol = &wb_protocol_null;
    b->w.timeout_ns = WB_SEC;
    b->w.request_max = 1;
    b->w.pack = 1;
    b->w.stride = 1;
    b->w.cur = wb_calloc(1, sizeof *b->w.cur);
    wb_stats_init(b->w.cur, 2);
    b->w.nconns = (size_t)conns;
    b->w.conns = wb_calloc(b->w.nconns, sizeof *b->w.conns);
    wb_shards_init(&b->w);
    for (size_t i = 0; i < b->w.nconns; i++) {
        wb_conn_init(&b->w.conns[i], &b->job, 1, 1);
        b->w.conns[i].target = i % instances;
        b->w.conns[i].state = WB_CONN_UP;
    }
}

static void open_bench(struct bench *b, uint32_t instances, int64_t conns, int64_t depth)
{
    open_split(b, "keys", instances, conns, depth);
}

static void close_bench(struct bench *b)
{
    for (size_t i = 0; i < b->w.nconns; i++)
        wb_conn_release(&b->w.conns[i]);
    wb_shards_release(&b->w);
    free(b->w.conns);
    free(b->w.retry);
    wb_stats_release(b->w.cur);
    free(b->w.cur);
    wb_load_job_release(&b->job);
}

static void begin(struct bench *b, enum wb_stage stage)
{
    struct wb_worker *w = &b->w;

    w->stage = stage;
    w->over = false;
    w->open = stage == WB_STAGE_RUN && b->job.model == WB_LOAD_OPEN;
    w->now = w->start = w->warm_end = 1000;
    w->end = WB_SEC;
    w->next = 0;
    w->limit = stage == WB_STAGE_LOAD ? 1000 : b->plan.sample;
    w->step = 1;
    w->quota = UINT64_MAX;
    wb_shards_begin(w);
    for (size_t i = 0; i < w->nconns; i++)
        wb_worker_update_ready(w, &w->conns[i]);
}

/* Answers the oldest operation of a connection; its index. */
static uint64_t answer(struct wb_worker *w, struct wb_conn *c)
{
    const struct wb_slot *s = &c->slots[c->head & c->mask];
    uint64_t index = s->index;

    assert_true(wb_conn_in_flight(c) > 0);
    if (wb_shard_of_key(w, wb_worker_key(w, s), s->index) != c->target)
        fail_msg("key %llu is not of instance %zu", (unsigned long long)wb_worker_key(w, s),
                 c->target);
    c->stamped = c->tail;
    c->out_len = c->out_sent = 0;
    wb_worker_reply(w, c, WB_REPLY_OK);
    wb_worker_update_ready(w, c);
    return index;
}

/* Published answers: the check value of CRC-16/XMODEM, and slots that Redis gives. */
static void test_slots(void **state)
{
    static const struct {
        const char *text;
        uint32_t slot;
    } known[] = {{"123456789", 0x31c3 % WB_SLOTS},
                 {"foo", 12182},
                 {"bar", 5061},
                 {"", 0},
                 {"k000000000000000", 0}};
    struct bench b;

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(wb_crc16(0, known[i].text, strlen(known[i].text)) % WB_SLOTS,
                         known[i].slot);
    open_split(&b, "slots", 3, 3, 1);
    for (uint64_t k = 0; k < 1000; k++) {
        char text[16];

        wb_keys_text(&b.plan.data.keys, k, text);
        assert_int_equal(wb_slot_of(&b.plan.data.keys, k), wb_crc16(0, text, 16) % WB_SLOTS);
    }
    close_bench(&b);
    /* Equal ranges, none left out: 3 x 5461 and one more. */
    for (uint32_t n = 1; n <= 64; n++) {
        uint32_t last = 0;

        for (uint32_t slot = 0; slot < WB_SLOTS; slot++) {
            uint32_t t = wb_shard_of_slot(slot, n);

            assert_true(t == last || t == last + 1);
            assert_true(slot >= (WB_SLOTS * t + n - 1) / n);
            assert_true(slot < (WB_SLOTS * (t + 1) + n - 1) / n);
            last = t;
        }
        assert_int_equal(last, n - 1);
    }
}

static void test_which(void **state)
{
    size_t count[7] = {0};

    for (uint64_t k = 0; k < 7000; k++) {
        assert_int_equal(wb_shard_of(k, 1), 0);
        assert_true(wb_shard_of(k, 7) < 7);
        count[wb_shard_of(k, 7)]++;
    }
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(count[i], 1000);
}

/* Rows and the sample: each once, on its instance, in any order of answers. */
static void test_rows(void **state)
{
    static const struct {
        uint32_t instances;
        int64_t conns, depth, from, to;
    } rows[] = {{2, 2, 1, 0, 1000},  {2, 5, 3, 0, 1000},  {3, 7, 16, 1, 999},
                {4, 4, 2, 997, 999}, {4, 9, 1, 500, 501}, {5, 5, 4, 0, 3}};

    for (size_t i = 0; i < 2 * WB_LEN(rows); i++) {
        size_t r = i / 2;
        struct bench b;
        uint8_t seen[1000] = {0};
        struct wb_rng rng;
        size_t done = 0;

        open_split(&b, i % 2 ? "slots" : "keys", rows[r].instances, rows[r].conns, rows[r].depth);
        begin(&b, WB_STAGE_LOAD);
        b.w.next = (uint64_t)rows[r].from;
        b.w.limit = (uint64_t)rows[r].to;
        wb_shards_begin(&b.w);
        wb_rng_seed(&rng, r);
        while (!wb_worker_exhausted(&b.w) || b.w.live > 0) {
            struct wb_conn *c = &b.w.conns[wb_rng_below(&rng, b.w.nconns)];

            wb_worker_refill(&b.w, c);
            if (wb_conn_in_flight(c) > 0) {
                seen[answer(&b.w, c)]++;
                done++;
            }
        }
        assert_int_equal(done, rows[r].to - rows[r].from);
        for (int64_t k = rows[r].from; k < rows[r].to; k++)
            assert_int_equal(seen[k], 1);
        begin(&b, WB_STAGE_CHECK);
        for (done = 0; !wb_worker_exhausted(&b.w) || b.w.live > 0;) {
            struct wb_conn *c = &b.w.conns[wb_rng_below(&rng, b.w.nconns)];

            wb_worker_refill(&b.w, c);
            if (wb_conn_in_flight(c) > 0) {
                assert_int_equal(c->slots[c->head & c->mask].flags, WB_SLOT_VERIFY);
                answer(&b.w, c);
                done++;
            }
        }
        assert_int_equal(done, 100);
        close_bench(&b);
    }
}

/* A row that failed is tried again on its own instance, whatever stands before it in the list. */
static void test_rows_again(void **state)
{
    struct bench b;
    struct wb_conn *c;
    size_t lost = 0, tried = 0;

    open_bench(&b, 3, 3, 4);
    begin(&b, WB_STAGE_LOAD);
    b.w.limit = 30;
    for (int turn = 0; turn < 400 && (!wb_worker_exhausted(&b.w) || b.w.live > 0); turn++) {
        c = &b.w.conns[turn % 3];
        b.w.now += 10 * WB_MS;
        wb_worker_refill(&b.w, c);
        if (wb_conn_in_flight(c) == 0)
            continue;
        if (c->slots[c->head & c->mask].attempt < 2 && c->slots[c->head & c->mask].index % 5 == 0) {
            uint64_t key = c->slots[c->head & c->mask].index;

            assert_int_equal(wb_shard_of(key, 3), c->target);
            c->stamped = c->tail;
            c->out_len = 0;
            wb_worker_reply(&b.w, c, WB_REPLY_SERVER);
            lost++;
        } else {
            answer(&b.w, c);
            tried++;
        }
    }
    assert_int_equal(lost, 12);
    assert_int_equal(tried, 30);
    assert_int_equal(b.w.rows_lost, 0);
    close_bench(&b);
}

/* Closed loop: the stream of one thread, cut by instance; nothing of it is skipped. */
static void test_closed(void **state)
{
    static const char *const laws[] = {"uniform", "sequential", "zipf", "absent:50%"};

    for (size_t i = 0; i < 2 * WB_LEN(laws); i++) {
        size_t l = i / 2;
        struct bench b;
        struct wb_err err = WB_ERR_INIT;
        struct wb_rng rng;
        uint8_t *seen = wb_calloc(40000, 1);
        uint64_t last[4] = {0};
        size_t done = 0, missing = 0;

        open_split(&b, i % 2 ? "slots" : "keys", 4, 8, 3);
        b.job.key_choice_text = wb_strdup(laws[l]);
        assert_int_equal(wb_load_job_check(&b.job, &err), 0);
        wb_keys_init(&b.plan.data.keys, &b.job);
        begin(&b, WB_STAGE_RUN);
        wb_rng_seed(&rng, l);
        while (done < 20000) {
            struct wb_conn *c = &b.w.conns[wb_rng_below(&rng, 8)];

            wb_worker_refill(&b.w, c);
            wb_shards_kick(&b.w);
            if (wb_conn_in_flight(c) == 0)
                continue;
            uint64_t index = answer(&b.w, c);
            assert_true(index < 40000);
            assert_int_equal(seen[index]++, 0);
            last[c->target] = index > last[c->target] ? index : last[c->target];
            done++;
        }
        /* What was not done yet is in flight or waits: at most a queue and the slots each. */
        for (uint64_t k = 0; k < b.w.next; k++)
            missing += !seen[k];
        uint64_t waits = 0;
        for (uint32_t t = 0; t < 4; t++)
            waits += b.w.shard[t].tail - b.w.shard[t].head;
        assert_int_equal(missing, waits + b.w.live);
        assert_int_equal(b.w.next, done + missing);
        assert_true(waits <= 3 * 1024);
        free(seen);
        close_bench(&b);
    }
}

/* An instance that does not answer holds the stream back, but only when its queue is full; when it
 * answers again, all go on. */
static void test_closed_stall(void **state)
{
    struct bench b;
    size_t done[2] = {0}, again[2] = {0};

    open_bench(&b, 2, 2, 2);
    begin(&b, WB_STAGE_RUN);
    for (int i = 0; i < 100000; i++) {
        wb_worker_refill(&b.w, &b.w.conns[0]);
        wb_worker_refill(&b.w, &b.w.conns[1]);
        wb_shards_kick(&b.w);
        if (wb_conn_in_flight(&b.w.conns[0]) > 0) {
            answer(&b.w, &b.w.conns[0]);
            done[0]++;
        }
    }
    /* About as many as wait for the other: 1024 of it, 2 in flight. */
    assert_in_range(done[0], 900, 1150);
    assert_int_equal(b.w.shard[1].tail - b.w.shard[1].head, 1024);
    for (int i = 0; i < 1000; i++) {
        for (size_t k = 0; k < 2; k++) {
            wb_shards_kick(&b.w); /* no refill: the connection of the first was left without work */
            if (wb_conn_in_flight(&b.w.conns[k]) > 0) {
                answer(&b.w, &b.w.conns[k]);
                again[k]++;
            }
        }
    }
    assert_true(again[0] > 500);
    assert_true(again[1] == 1000);
    close_bench(&b);
}

static void test_closed_quota(void **state)
{
    struct bench b;
    size_t done = 0;

    open_bench(&b, 3, 6, 2);
    begin(&b, WB_STAGE_RUN);
    b.w.quota = 1000;
    for (int i = 0; i < 100000 && (!wb_worker_exhausted(&b.w) || b.w.live > 0); i++) {
        struct wb_conn *c = &b.w.conns[i % 6];

        wb_worker_refill(&b.w, c);
        if (wb_conn_in_flight(c) > 0) {
            answer(&b.w, c);
            done++;
        }
    }
    assert_int_equal(done, 1000);
    assert_int_equal(b.w.quota, 0);
    close_bench(&b);
}

static void begin_open(struct bench *b, const char *catch_up)
{
    struct wb_err err = WB_ERR_INIT;

    b->job.rate_per_s = 1000;
    b->job.catch_up_text = wb_strdup(catch_up);
    assert_int_equal(wb_load_job_check(&b->job, &err), 0);
    b->plan.schedule = (struct wb_schedule){.rate_per_s = 1000, .stride = 1};
    begin(b, WB_STAGE_RUN);
    wb_arrivals_start(&b->w.due, &b->plan.schedule, 0);
    b->w.budget_at = b->w.start;
}

/* Open loop: one instance does not answer. The other's arrivals go when they are due, its own wait
 * in order and go when it answers; what never went is censored; the sum is what was due. */
static void test_open_stall(void **state)
{
    struct bench b;
    uint64_t own = 0, others = 0, before;
    int64_t last = 0;

    open_bench(&b, 2, 2, 2);
    begin_open(&b, "immediate");
    for (int ms = 0; ms < 500; ms++) {
        b.w.now = b.w.start + ms * WB_MS + 1;
        wb_worker_issue_due(&b.w);
        while (wb_conn_in_flight(&b.w.conns[0]) > 0) {
            const struct wb_slot *s = &b.w.conns[0].slots[b.w.conns[0].head & b.w.conns[0].mask];

            assert_true(b.w.now - s->scheduled < 2 * WB_MS);
            assert_int_equal(s->flags, 0);
            answer(&b.w, &b.w.conns[0]);
            others++;
        }
    }
    before = b.w.taken_total;
    assert_int_equal(before, others + 2);
    own = b.w.shard[1].tail - b.w.shard[1].head;
    assert_int_equal(own + before, 500);
    assert_in_range(own, 180, 320);
    /* It answers a hundred times; those that waited longest go first. */
    for (int i = 0; i < 100; i++) {
        struct wb_conn *c = &b.w.conns[1];
        const struct wb_slot *s = &c->slots[c->head & c->mask];

        assert_true(s->scheduled >= last);
        last = s->scheduled;
        if (i >= 2)
            assert_int_equal(s->flags, WB_SLOT_WAITED);
        answer(&b.w, c);
        wb_worker_issue_due(&b.w);
    }
    assert_int_equal(b.w.shard[1].tail - b.w.shard[1].head, own - 100);
    assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].cap_waits, 100);
    /* The window ends: nothing more is issued, all that was due is counted. */
    b.w.end = b.w.start + 500 * WB_MS;
    b.w.over = true;
    wb_worker_censor(&b.w);
    assert_int_equal(b.w.taken_total, 500);
    assert_int_equal(b.w.backlog_at_end, own - 100);
    struct wb_phase_sum sum = wb_phase_total(b.w.cur, WB_PHASE_MEASURE);
    assert_int_equal(sum.ok, others + 100);
    assert_int_equal(sum.ok + sum.censored + sum.failed + sum.dropped, 500);
    close_bench(&b);
}

static void test_open_drop(void **state)
{
    struct bench b;
    struct wb_phase_sum sum;

    open_bench(&b, 2, 2, 2);
    begin_open(&b, "drop");
    for (int ms = 0; ms < 500; ms++) {
        b.w.now = b.w.start + ms * WB_MS + 1;
        wb_worker_issue_due(&b.w);
        while (wb_conn_in_flight(&b.w.conns[0]) > 0)
            answer(&b.w, &b.w.conns[0]);
    }
    sum = wb_phase_total(b.w.cur, WB_PHASE_MEASURE);
    assert_int_equal(b.w.taken_total, 500);
    assert_int_equal(b.w.shard[1].tail - b.w.shard[1].head, 0);
    assert_int_equal(sum.ok + 2 + sum.dropped, 500);
    assert_in_range(sum.dropped, 180, 320);
    close_bench(&b);
}

/* A pause of the whole client: capped catch-up lets the arrivals go at the rate it allows. */
static void test_open_capped(void **state)
{
    struct bench b;
    uint64_t at_once;

    open_bench(&b, 2, 2, 400);
    begin_open(&b, "capped:2");
    b.w.now = b.w.start + 200 * WB_MS + 1;
    wb_worker_issue_due(&b.w);
    at_once = b.w.taken_total;
    assert_in_range(at_once, 1, 25); /* 10 ms of budget, and what is on time */
    b.w.now += 10 * WB_MS;
    wb_worker_issue_due(&b.w);
    assert_in_range(b.w.taken_total - at_once, 15, 25);
    close_bench(&b);
}

/* Queues grow while they wait, around their end, and keep their order. */
static void test_long_queue(void **state)
{
    struct bench b;
    int64_t last = 0;
    size_t n = 0;

    open_bench(&b, 2, 2, 1);
    begin_open(&b, "immediate");
    b.w.end = 100 * WB_SEC;
    for (int round = 0; round < 3; round++) {
        for (int ms = 0; ms < 10000; ms += 100) {
            b.w.now += 100 * WB_MS;
            wb_worker_issue_due(&b.w);
            while (wb_conn_in_flight(&b.w.conns[0]) > 0) {
                answer(&b.w, &b.w.conns[0]);
                wb_worker_issue_due(&b.w);
            }
        }
        for (int i = 0; i < 3000; i++) {
            struct wb_conn *c = &b.w.conns[1];

            assert_true(c->slots[c->head & c->mask].scheduled > last);
            last = c->slots[c->head & c->mask].scheduled;
            c->slots[c->head & c->mask].written = b.w.now;
            answer(&b.w, c);
            wb_worker_issue_due(&b.w);
            n++;
        }
    }
    assert_int_equal(n, 9000);
    assert_true(b.w.shard[1].size >= 4096);
    close_bench(&b);
}

static void test_last_up(void **state)
{
    struct bench b;

    open_bench(&b, 3, 3, 1);
    begin(&b, WB_STAGE_LOAD);
    b.w.shard[0].last_up = 30;
    b.w.shard[1].last_up = 10;
    b.w.shard[2].last_up = 20;
    assert_int_equal(wb_shards_last_up(&b.w), 10);
    close_bench(&b);
}

/* An operation that is sent on is the same operation: it counts once, keeps its first time, goes to
 * the place that was named, and no further than a few times. */
static void test_sent_on(void **state)
{
    struct bench b;
    struct wb_conn *a, *other;
    struct wb_slot *s;
    unsigned hops = 0;

    open_bench(&b, 2, 2, 4);
    b.w.stage = WB_STAGE_RUN;
    b.w.open = true;
    a = &b.w.conns[0];
    other = &b.w.conns[1];
    b.w.now = 100;
    s = wb_issue_next_slot(a);
    *s = (struct wb_slot){.scheduled = 50, .index = 7, .phase = WB_PHASE_MEASURE};
    wb_issue_put(&b.w, a, s);
    a->stamped = a->tail;
    for (struct wb_conn *at = a; b.w.cur->phase[WB_PHASE_MEASURE].errors[WB_REPLY_REDIRECTED] == 0;
         hops++) {
        assert_true(hops < 10);
        b.w.now += 1000;
        wb_shard_redirect(&b.w, at, at == a ? 1 : 0, hops == 2);
        at = at == a ? other : a;
        assert_int_equal(wb_conn_in_flight(a) + wb_conn_in_flight(other), 0);
        if (b.w.cur->phase[WB_PHASE_MEASURE].errors[WB_REPLY_REDIRECTED])
            break;
        assert_int_equal(b.w.live, 1);
        wb_worker_update_ready(&b.w, at);
        wb_shards_send_on(&b.w);
        assert_int_equal(wb_conn_in_flight(at), 1);
        s = &at->slots[at->head & at->mask];
        assert_int_equal(s->index, 7);
        assert_int_equal(s->scheduled, 50);
        assert_int_equal(s->written, 100);
        assert_int_equal(!!(s->flags & WB_SLOT_ASK), hops == 2);
        at->stamped = at->tail;
    }
    assert_int_equal(hops, 5);
    assert_int_equal(b.w.live, 0);
    assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].op[0].issued, 1);
    assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].op[0].failed, 1);
    assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].redirects, 6);

    /* Where nothing has room it waits, and ends by its time-out, or censored. */
    for (int end = 0; end < 2; end++) {
        struct wb_slot out;

        s = wb_issue_next_slot(a);
        *s = (struct wb_slot){.scheduled = 50, .index = 7, .phase = WB_PHASE_MEASURE};
        wb_issue_put(&b.w, a, s);
        a->stamped = a->tail;
        other->state = WB_CONN_DOWN;
        wb_worker_update_ready(&b.w, other);
        wb_shard_redirect(&b.w, a, 1, false);
        wb_shards_send_on(&b.w);
        assert_int_equal(b.w.live, 1);
        if (end == 0) {
            b.w.now += b.w.timeout_ns + 1;
            wb_shards_expire(&b.w);
            assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].errors[WB_REPLY_TIMEOUT], 1);
            assert_int_equal(b.w.live, 0);
        } else {
            wb_worker_censor(&b.w);
            assert_int_equal(b.w.cur->phase[WB_PHASE_MEASURE].op[0].censored, 1);
            assert_int_equal(b.w.live, 0);
        }
        assert_false(wb_shards_take_again(&b.w, &out));
    }
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent_on),      cmocka_unit_test(test_slots),
        cmocka_unit_test(test_which),        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_again),   cmocka_unit_test(test_closed),
        cmocka_unit_test(test_closed_stall), cmocka_unit_test(test_closed_quota),
        cmocka_unit_test(test_open_stall),   cmocka_unit_test(test_open_drop),
        cmocka_unit_test(test_open_capped),  cmocka_unit_test(test_long_queue),
        cmocka_unit_test(test_last_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
