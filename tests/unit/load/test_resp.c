#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define VALUE 10

/* A worker without threads and sockets: one connection with operations in flight. */
struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_worker w;
    struct wb_conn c;
    struct wb_stats stats;
};

static void rig_up(struct rig *r)
{
    *r = (struct rig){0};
    wb_load_job_init(&r->job);
    r->job.depth = 64;
    r->job.value_bytes = VALUE;
    r->job.key_choice = WB_LOAD_SEQUENTIAL;
    r->job.zipf_exponent = 1;
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    r->plan.job = &r->job;
    r->w.plan = &r->plan;
    r->w.protocol = &wb_protocol_resp;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 5 * WB_MS;
    wb_stats_init(&r->stats, 2);
    r->w.cur = &r->stats;
    assert_int_equal(wb_protocol_resp.setup(&r->plan.data, &r->w.context, NULL), 0);
    wb_conn_init(&r->c, &r->job, wb_protocol_resp.request_max(r->w.context),
                 wb_protocol_resp.conn_size);
    wb_protocol_resp.reset(r->w.context, r->c.proto);
}

static void rig_down(struct rig *r)
{
    wb_protocol_resp.end(r->w.context);
    wb_conn_release(&r->c);
    wb_stats_release(&r->stats);
    wb_values_release(&r->plan.data.values);
}

/* g: get, s: set, v: verified get. */
static void in_flight(struct rig *r, const char *ops)
{
    for (; *ops; ops++) {
        struct wb_slot *s = &r->c.slots[r->c.tail & r->c.mask];
        *s = (struct wb_slot){.written = 1 * WB_MS,
                              .index = r->c.tail,
                              .op = *ops == 's',
                              .phase = WB_PHASE_MEASURE,
                              .flags = *ops == 'v' ? WB_SLOT_VERIFY : 0};
        r->c.tail++;
        r->c.stamped++;
        r->w.live++;
    }
}

/* Feeds text in pieces of n bytes (0: at once), each from a buffer of its own size, so that a
 * read past its end is seen by the sanitizer. */
static int feed(struct rig *r, const char *text, size_t len, size_t n)
{
    int rc = 0;

    for (size_t at = 0; at < len && rc == 0;) {
        size_t k = n == 0 || len - at < n ? len - at : n;
        char *piece = wb_calloc(k, 1);
        memcpy(piece, text + at, k);
        rc = wb_protocol_resp.feed(r->w.context, &r->w, &r->c, piece, k);
        free(piece);
        at += k;
    }
    return rc;
}

struct want {
    const char *ops, *text;
    int rc;
    unsigned ok, misses, server, protocol, mismatch, left;
};

static void check(const struct want *want, const char *text, size_t len)
{
    for (size_t n = 0; n <= len && n < 40; n++) {
        struct rig r;
        const struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];
        struct wb_phase_sum sum;
        rig_up(&r);
        in_flight(&r, want->ops);
        assert_int_equal(feed(&r, text, len, n), want->rc);
        sum = wb_phase_total(&r.stats, WB_PHASE_MEASURE);
        assert_int_equal(sum.ok, want->ok);
        assert_int_equal(sum.misses, want->misses);
        assert_int_equal(ph->errors[WB_REPLY_SERVER], want->server);
        assert_int_equal(ph->errors[WB_REPLY_PROTOCOL], want->protocol);
        assert_int_equal(ph->errors[WB_REPLY_MISMATCH], want->mismatch);
        assert_int_equal(wb_conn_in_flight(&r.c), want->left);
        assert_int_equal(r.w.live, want->left);
        rig_down(&r);
    }
}

/* Each answer whole and in pieces of every size. */
static void test_replies(void **state)
{
    static const struct want rows[] = {
        {.ops = "s", .text = "+OK\r\n", .ok = 1},
        {.ops = "g", .text = "$3\r\nabc\r\n", .ok = 1},
        {.ops = "g", .text = "$0\r\n\r\n", .ok = 1},
        {.ops = "g", .text = "$-1\r\n", .ok = 1, .misses = 1},
        {.ops = "ggs", .text = "$1\r\nx\r\n$2\r\n\r\n\r\n+OK\r\n", .ok = 3},
        {.ops = "gg", .text = "$5\r\n+OK\r\n\r\n", .ok = 1, .left = 1},
        {.ops = "g", .text = "-ERR no\r\n", .server = 1},
        {.ops = "s", .text = "-\r\n", .server = 1},
        {.ops = "gs", .text = "-LOADING x\r\n+OK\r\n", .ok = 1, .server = 1},
        /* well formed, but not the answer to the question */
        {.ops = "g", .text = "+OK\r\n", .protocol = 1},
        {.ops = "s", .text = "+QUEUED\r\n", .protocol = 1},
        {.ops = "s", .text = "$2\r\nOK\r\n", .protocol = 1},
        {.ops = "s", .text = "$-1\r\n", .protocol = 1},
        {.ops = "gg", .text = ":1\r\n$1\r\nx\r\n", .protocol = 1, .ok = 1},
        /* a value that was never written */
        {.ops = "v", .text = "$10\r\n0123456789\r\n", .mismatch = 1},
        {.ops = "v", .text = "$0\r\n\r\n", .mismatch = 1},
        /* cut */
        {.ops = "g", .text = "$3\r\nabc\r", .left = 1},
        {.ops = "g", .text = "$3\r\n", .left = 1},
        {.ops = "g", .text = "$", .left = 1},
        {.ops = "s", .text = "+OK\r", .left = 1},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        check(&rows[i], rows[i].text, strlen(rows[i].text));
}

/* What breaks the protocol is refused wherever it is cut; what came before counts. */
static void test_hostile(void **state)
{
    static const struct want rows[] = {
        {.ops = "g", .text = "x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "+OK\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$-2\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$-\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$+1\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$1x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$536870913\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$9999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$18446744073709551617\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$99999999999999999999999999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$3\r\nabcd\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$3\r\nabc\rx", .rc = -1, .left = 1},
        {.ops = "g", .text = "*1\r\n$1\r\nx\r\n", .rc = -1, .left = 1},
        {.ops = "gg", .text = "$1\r\nx\r\n?", .rc = 0, .ok = 1, .left = 1},
        {.ops = "gg", .text = "$1\r\nx\r\n?\r\n", .rc = -1, .ok = 1, .left = 1},
        /* more answers than questions */
        {.ops = "s", .text = "+OK\r\n+OK\r\n", .rc = -1, .ok = 1},
        {.ops = "", .text = "$1\r\nx\r\n", .rc = -1},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        check(&rows[i], rows[i].text, strlen(rows[i].text));
}

/* NUL and high bytes are data like all others. */
static void test_binary_value(void **state)
{
    static const char text[] = "$6\r\n\0\r\n\xff+\0\r\n+OK\r\n";
    struct want want = {.ops = "gs", .ok = 2};

    (void)state;
    check(&want, text, sizeof(text) - 1);
}

/* The right value passes whole and in pieces; one flipped bit anywhere does not. */
static void test_verify(void **state)
{
    struct rig r;
    char text[5 + VALUE + 2], scratch[WB_VALUE_SMALL + 8];
    struct want good = {.ops = "v", .ok = 1}, bad = {.ops = "v", .mismatch = 1};

    (void)state;
    rig_up(&r);
    memcpy(text, "$10\r\n", 5);
    memcpy(text + 5, wb_values_expect(&r.plan.data.values, 0, scratch), VALUE);
    memcpy(text + 5 + VALUE, "\r\n", 2);
    rig_down(&r);
    check(&good, text, sizeof(text));
    for (int i = 0; i < VALUE; i++) {
        text[5 + i] ^= 4;
        check(&bad, text, sizeof(text));
        text[5 + i] ^= 4;
    }
}

/* Lines longer than what is kept of them, up to the bound and past it. */
static void test_long_lines(void **state)
{
    static const size_t sizes[] = {150, 189, 190, 191, 192, 193, 194, 5000, 65000, 70000};
    static const size_t pieces[] = {0, 1, 7, 100, 192, 4096};

    (void)state;
    for (size_t i = 0; i < WB_LEN(sizes); i++) {
        for (size_t p = 0; p < WB_LEN(pieces); p++) {
            char *text = wb_calloc(sizes[i] + 9, 1);
            bool fits = sizes[i] < 65536;
            struct rig r;
            memset(text, 'e', sizes[i]);
            text[0] = '-';
            memcpy(text + sizes[i], "\r\n+OK\r\n", 7);
            rig_up(&r);
            in_flight(&r, "gs");
            assert_int_equal(feed(&r, text, sizes[i] + 7, pieces[p]), fits ? 0 : -1);
            assert_int_equal(r.stats.phase[WB_PHASE_MEASURE].errors[WB_REPLY_SERVER], fits);
            assert_int_equal(wb_phase_total(&r.stats, WB_PHASE_MEASURE).ok, fits);
            if (fits)
                assert_int_equal(r.w.sample[0].text[0], 'e');
            rig_down(&r);
            free(text);
        }
    }
}

/* Replies to operations whose time-out has passed are late, not successes. */
static void test_late(void **state)
{
    struct rig r;
    struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];

    (void)state;
    rig_up(&r);
    in_flight(&r, "ggg");
    r.c.slots[0].flags |= WB_SLOT_EXPIRED; /* as the scan does */
    r.c.expired = 1;
    r.w.live--;
    r.c.slots[1].written = r.w.now - 2 * WB_SEC; /* not yet seen by a scan */
    assert_int_equal(feed(&r, "$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n", 21, 0), 0);
    assert_int_equal(ph->late, 2);
    assert_int_equal(ph->errors[WB_REPLY_TIMEOUT], 1);
    assert_int_equal(ph->op[0].ok, 1);
    assert_int_equal(ph->failed.max, WB_SEC); /* at its age, not later */
    assert_int_equal(r.c.expired, 0);
    assert_int_equal(r.w.live, 0);
    rig_down(&r);
}

static void test_requests(void **state)
{
    struct rig r;
    const struct wb_slot get = {.op = 0}, set = {.op = 1};
    char out[256], scratch[WB_VALUE_SMALL + 8], *stop;

    (void)state;
    rig_up(&r);
    stop = wb_protocol_resp.build(r.w.context, &r.c, &get, 42, out);
    assert_int_equal(stop - out, 36);
    assert_memory_equal(out, "*2\r\n$3\r\nGET\r\n$16\r\nk000000000000042\r\n", 36);
    stop = wb_protocol_resp.build(r.w.context, &r.c, &set, 42, out);
    assert_true((size_t)(stop - out) == wb_protocol_resp.request_max(r.w.context));
    assert_memory_equal(out, "*3\r\n$3\r\nSET\r\n$16\r\nk000000000000042\r\n$10\r\n", 41);
    assert_memory_equal(stop - 12, wb_values_expect(&r.plan.data.values, 42, scratch), VALUE);
    assert_memory_equal(stop - 2, "\r\n", 2);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_binary_value), cmocka_unit_test(test_verify),
        cmocka_unit_test(test_long_lines),   cmocka_unit_test(test_late),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
