#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/protocols/cql_message.h"
#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define VALUE 10
#define ID "0123456789abcdef"
#define RESULT_ID "RRRRRRRR"

enum { SELECT, INSERT, UPDATE, DELETE, BATCH };

/* A worker without threads and sockets: one connection that was greeted. */
struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_worker w;
    struct wb_conn c;
    struct wb_stats stats;
    unsigned version;
    bool framed;
};

static char *text(const char *s)
{
    return wb_strdup(s);
}

/* Feeds an answer; framed where the connection is. */
static int answer(struct rig *r, unsigned version, int stream, unsigned opcode, const char *body,
                  size_t n, size_t step)
{
    struct wb_buf e = WB_BUF_INIT(1 << 20), out = WB_BUF_INIT(1 << 20);
    struct wb_cql_reader framer;
    char head[WB_CQL_HEADER];
    int rc = 0;

    wb_cql_put_header(head, version | WB_CQL_REPLY, (uint16_t)stream, opcode, (uint32_t)n);
    wb_buf_add(&e, head, sizeof(head));
    wb_buf_add(&e, body, n);
    wb_cql_reader_init(&framer, version, false);
    framer.framed = r->framed;
    wb_cql_wrap(&framer, &e, &out);
    for (size_t at = 0; at < out.len && rc == 0;) {
        size_t k = step == 0 || out.len - at < step ? out.len - at : step;
        char *piece = wb_calloc(k, 1);
        memcpy(piece, out.data + at, k);
        rc = wb_protocol_cql.feed(r->w.context, &r->w, &r->c, piece, k);
        free(piece);
        at += k;
    }
    wb_cql_reader_release(&framer);
    wb_buf_release(&e);
    wb_buf_release(&out);
    return rc;
}

static void add_column(struct wb_buf *b, const char *name)
{
    char n[4];

    wb_cql_put16(n, (unsigned)strlen(name));
    wb_buf_add(b, n, 2);
    wb_buf_adds(b, name);
    wb_cql_put16(n, WB_CQL_BLOB);
    wb_buf_add(b, n, 2);
}

static void add32(struct wb_buf *b, uint32_t v)
{
    char n[4];

    wb_cql_put32(n, v);
    wb_buf_add(b, n, 4);
}

static void add_ids(struct wb_buf *b, unsigned version)
{
    wb_buf_add(b, "\0\x10" ID, 18);
    if (version >= 5)
        wb_buf_add(b, "\0\x08" RESULT_ID, 10);
}

static int answer_prepared(struct rig *r, int stream, int op)
{
    struct wb_buf b = WB_BUF_INIT(4096);
    int rc;

    add32(&b, WB_CQL_PREPARED);
    add_ids(&b, r->version);
    add32(&b, WB_CQL_GLOBAL_TABLE);
    add32(&b, op == INSERT || op == UPDATE ? 2 : 1);
    add32(&b, 1);
    wb_buf_add(&b, "\0\0", 2);
    wb_buf_add(&b, "\0\2wb\0\2kv", 8);
    add_column(&b, "key");
    if (op == INSERT || op == UPDATE)
        add_column(&b, "value");
    add32(&b, op == SELECT ? WB_CQL_GLOBAL_TABLE : WB_CQL_NO_METADATA);
    add32(&b, op == SELECT ? 1 : 0);
    if (op == SELECT) {
        wb_buf_add(&b, "\0\2wb\0\2kv", 8);
        add_column(&b, "value");
    }
    rc = answer(r, r->version, stream, WB_CQL_RESULT, b.data, b.len, 0);
    wb_buf_release(&b);
    return rc;
}

static void rig_up(struct rig *r, const char *version)
{
    *r = (struct rig){.version = version[0] == '4' ? 4 : 5};
    wb_load_job_init(&r->job);
    r->job.depth = 4;
    r->job.value_bytes = VALUE;
    free(r->job.target);
    r->job.target = text("cql://127.0.0.1");
    r->job.cql.native_protocol = text(version);
    r->job.cql.batch = text("logged:2");
    free(r->job.mix_text);
    r->job.mix_text = text("select=1,insert=1,update=1,delete=1,batch=1");
    r->job.key_choice_text = text("sequential");
    assert_int_equal(wb_load_job_check(&r->job, NULL), 0);
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    r->plan.job = r->plan.data.job = &r->job;
    r->w.plan = &r->plan;
    r->w.protocol = &wb_protocol_cql;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 5 * WB_MS;
    wb_stats_init(&r->stats, BATCH + 1);
    r->w.cur = &r->stats;
    assert_int_equal(wb_protocol_cql.setup(&r->plan.data, &r->w.context, NULL), 0);
    r->w.request_max = wb_protocol_cql.request_max(r->w.context);
    wb_conn_init(&r->c, &r->job, r->w.request_max, wb_protocol_cql.conn_size);
    wb_conn_extend(&r->c, &wb_protocol_cql);
    r->c.state = WB_CONN_GREETING;
    wb_protocol_cql.reset(r->w.context, r->c.proto);
    wb_protocol_cql.greet(r->w.context, &r->w, &r->c);
}

/* READY and the answers to PREPARE. */
static void greeted(struct rig *r)
{
    assert_int_equal(answer(r, r->version, 0, WB_CQL_READY, "", 0, 0), 0);
    r->framed = r->version >= 5;
    for (int op = SELECT; op <= DELETE; op++) {
        assert_int_equal(r->c.state, WB_CONN_GREETING);
        assert_int_equal(answer_prepared(r, op, op), 0);
    }
    assert_int_equal(r->c.state, WB_CONN_UP);
    r->c.out_len = 0;
}

static void rig_down(struct rig *r)
{
    wb_protocol_cql.end(r->w.context);
    wb_protocol_cql.conn_end(r->c.proto);
    wb_conn_release(&r->c);
    wb_stats_release(&r->stats);
    wb_values_release(&r->plan.data.values);
    wb_load_job_release(&r->job);
}

/* Issues an operation as the worker does and sends it; returns its number. */
static uint16_t issue(struct rig *r, uint8_t op, uint64_t key, uint8_t flags)
{
    struct wb_conn *c = &r->c;
    struct wb_slot *s = &c->slots[c->tail & c->mask];
    uint16_t stream = wb_conn_stream(c, s);
    char *end;

    *s = (struct wb_slot){
        .written = 3 * WB_MS, .index = key, .op = op, .phase = WB_PHASE_MEASURE, .flags = flags};
    end = wb_protocol_cql.build(r->w.context, c, s, key, c->out + c->out_len);
    c->out_len = (size_t)(end - c->out);
    c->tail++;
    r->w.live++;
    wb_protocol_cql.seal(r->w.context, c);
    c->stamped = c->tail;
    return stream;
}

static const struct wb_phase_stats *measured(const struct rig *r)
{
    return &r->stats.phase[WB_PHASE_MEASURE];
}

/* --- requests --- */

/* "k000000000000042" and ten bytes of value follow from the seed; the rest is written out. */
#define KEY      \
    "\0\0\0\x10" \
    "k000000000000042"

static void test_requests(void **state)
{
    static const struct {
        const char *version;
        uint8_t op;
        const char *head, *tail;
        size_t head_len, tail_len;
        int order; /* 0: key, 1: key value, 2: value key, 3: batch */
    } rows[] = {
#define ROW(v, op, head, tail, order) {v, op, head, tail, sizeof(head) - 1, sizeof(tail) - 1, order}
        ROW("4", SELECT, "\x04\0\0\0\x0a\0\0\0\x2f\0\x10" ID "\0\x0a\x07\0\1", "\0\0\x13\x88", 0),
        ROW("4", INSERT, "\x04\0\0\0\x0a\0\0\0\x41\0\x10" ID "\0\x0a\x21\0\2", "", 1),
        ROW("4", UPDATE, "\x04\0\0\0\x0a\0\0\0\x41\0\x10" ID "\0\x0a\x21\0\2", "", 2),
        ROW("4", DELETE, "\x04\0\0\0\x0a\0\0\0\x33\0\x10" ID "\0\x0a\x21\0\1", "", 0),
        ROW("5", SELECT,
            "\x05\0\0\0\x0a\0\0\0\x3c\0\x10" ID "\0\x08" RESULT_ID "\0\x0a\0\0\0\x07\0\1",
            "\0\0\x13\x88", 0),
        ROW("5", INSERT,
            "\x05\0\0\0\x0a\0\0\0\x4e\0\x10" ID "\0\x08" RESULT_ID "\0\x0a\0\0\0\x21\0\2", "", 1),
        ROW("4", BATCH, "\x04\0\0\0\x0d\0\0\0\x7c\0\0\2", "\0\x0a\x20", 3),
        ROW("5", BATCH, "\x05\0\0\0\x0d\0\0\0\x7f\0\0\2", "\0\x0a\0\0\0\x20", 3),
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct rig r;
        struct wb_buf want = WB_BUF_INIT(4096);
        char value[VALUE + 8], next[VALUE + 8];
        const char *got;
        size_t left;
        rig_up(&r, rows[i].version);
        greeted(&r);
        assert_int_equal(issue(&r, rows[i].op, 42, 0), 0);
        wb_values_write(&r.plan.data.values, 42, value);
        wb_values_write(&r.plan.data.values, 43, next);
        wb_buf_add(&want, rows[i].head, rows[i].head_len);
        for (int row = 0; row < (rows[i].order == 3 ? 2 : 1); row++) {
            if (rows[i].order == 3)
                wb_buf_add(&want, "\1\0\x10" ID "\0\2", 21);
            if (rows[i].order == 2)
                wb_buf_add(&want, "\0\0\0\x0a", 4);
            if (rows[i].order == 2)
                wb_buf_add(&want, value, VALUE);
            wb_buf_add(&want, row ? "\0\0\0\x10k000000000000043" : KEY, 20);
            if (rows[i].order == 1 || rows[i].order == 3) {
                wb_buf_add(&want, "\0\0\0\x0a", 4);
                wb_buf_add(&want, row ? next : value, VALUE);
            }
        }
        wb_buf_add(&want, rows[i].tail, rows[i].tail_len);
        got = r.c.out;
        left = r.c.out_len;
        if (r.framed) { /* the segment around it is tested elsewhere */
            assert_int_equal(left, 6 + 4 + want.len + (rows[i].op == SELECT ? 0 : 8));
            got += 6;
            left -= 10;
        }
        assert_memory_equal(got, want.data, want.len);
        if (rows[i].op != SELECT) { /* ends with the timestamp: now, within a minute */
            uint64_t be;
            int64_t us;
            memcpy(&be, got + want.len, 8);
            us = (int64_t)__builtin_bswap64(be);
            assert_int_equal(left, want.len + 8);
            assert_true(llabs(us - wb_now_unix_ms(NULL) * 1000 + wb_now_ns(NULL) / 1000) <
                        60 * 1000000LL);
        } else {
            assert_int_equal(left, want.len);
        }
        wb_buf_release(&want);
        rig_down(&r);
    }
}

/* What is sent between two sends shares a segment; timestamps of a connection only grow. */
static void test_segment_of_many(void **state)
{
    struct rig r;
    struct wb_slot *s;
    char *end;

    (void)state;
    rig_up(&r, "5");
    greeted(&r);
    for (int i = 0; i < 3; i++) {
        s = &r.c.slots[r.c.tail++ & r.c.mask];
        *s = (struct wb_slot){.written = 3 * WB_MS, .op = INSERT};
        end = wb_protocol_cql.build(r.w.context, &r.c, s, 7, r.c.out + r.c.out_len);
        r.c.out_len = (size_t)(end - r.c.out);
    }
    wb_protocol_cql.seal(r.w.context, &r.c);
    /* 3 x (9 + body of 78), 6 in front, 4 behind */
    assert_int_equal(r.c.out_len, 6 + 3 * 87 + 4);
    for (int i = 0; i < 2; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, r.c.out + 6 + 87 * (i + 1) - 8, 8);
        memcpy(&b, r.c.out + 6 + 87 * (i + 2) - 8, 8);
        assert_true(__builtin_bswap64(b) == __builtin_bswap64(a) + 1);
        assert_int_equal(r.c.out[6 + 87 * (i + 1) + 3], i + 1); /* its number */
    }
    end = r.c.out + r.c.out_len;
    wb_protocol_cql.seal(r.w.context, &r.c); /* nothing is open */
    assert_ptr_equal(r.c.out + r.c.out_len, end);
    rig_down(&r);
}

/* --- answers --- */

#define VOID "\0\0\0\1"
#define ROWS "\0\0\0\2\0\0\0\4\0\0\0\1" /* no metadata, one column */

struct want {
    const char *name;
    uint8_t op, flags;
    unsigned opcode;
    const char *body;
    size_t len;
    int rc;
    enum wb_reply reply; /* when rc is 0; OK and MISS are none of the errors */
};

#define ANSWER(name, op, opcode, body, rc, reply)              \
    {                                                          \
        name, op, 0, opcode, body, sizeof(body) - 1, rc, reply \
    }
#define FAILED(code, reply) ANSWER(#reply, SELECT, WB_CQL_ERROR, code "\0\1x", 0, reply)

static const struct want answers[] = {
    ANSWER("write", INSERT, WB_CQL_RESULT, VOID, 0, WB_REPLY_OK),
    ANSWER("more than asked", INSERT, WB_CQL_RESULT, VOID "new", 0, WB_REPLY_OK),
    ANSWER("row", SELECT, WB_CQL_RESULT, ROWS "\0\0\0\1\0\0\0\1x", 0, WB_REPLY_OK),
    ANSWER("null", SELECT, WB_CQL_RESULT, ROWS "\0\0\0\1\xff\xff\xff\xff", 0, WB_REPLY_OK),
    ANSWER("no row", SELECT, WB_CQL_RESULT, ROWS "\0\0\0\0", 0, WB_REPLY_MISS),
    ANSWER("named", SELECT, WB_CQL_RESULT, "\0\0\0\2\0\0\0\1\0\0\0\1\0\2wb\0\2kv\0\1v\0\3\0\0\0\0",
           0, WB_REPLY_MISS),
    ANSWER("pages", SELECT, WB_CQL_RESULT, "\0\0\0\2\0\0\0\6\0\0\0\1\0\0\0\2ab\0\0\0\0", 0,
           WB_REPLY_MISS),
    FAILED("\0\0\0\0", WB_REPLY_SERVER),
    FAILED("\0\0\0\x0a", WB_REPLY_PROTOCOL),
    FAILED("\0\0\1\0", WB_REPLY_UNAUTHORIZED),
    FAILED("\0\0\x10\0", WB_REPLY_UNAVAILABLE),
    FAILED("\0\0\x10\1", WB_REPLY_OVERLOADED),
    FAILED("\0\0\x10\2", WB_REPLY_BOOTSTRAPPING),
    FAILED("\0\0\x10\3", WB_REPLY_SERVER),
    FAILED("\0\0\x11\0", WB_REPLY_WRITE_TIMEOUT),
    FAILED("\0\0\x12\0", WB_REPLY_READ_TIMEOUT),
    FAILED("\0\0\x13\0", WB_REPLY_READ_FAILURE),
    FAILED("\0\0\x14\0", WB_REPLY_SERVER),
    FAILED("\0\0\x15\0", WB_REPLY_WRITE_FAILURE),
    FAILED("\0\0\x16\0", WB_REPLY_WRITE_FAILURE),
    FAILED("\0\0\x17\0", WB_REPLY_WRITE_TIMEOUT),
    FAILED("\0\0\x20\0", WB_REPLY_INVALID),
    FAILED("\0\0\x21\0", WB_REPLY_UNAUTHORIZED),
    FAILED("\0\0\x22\0", WB_REPLY_INVALID),
    FAILED("\0\0\x23\0", WB_REPLY_INVALID),
    FAILED("\x12\x34\x56\x78", WB_REPLY_SERVER),
    /* what breaks the protocol */
    ANSWER("opcode", SELECT, 0x77, "", -1, WB_REPLY_OK),
    ANSWER("ready", SELECT, WB_CQL_READY, "", -1, WB_REPLY_OK),
    ANSWER("short", SELECT, WB_CQL_RESULT, "\0\0\0", -1, WB_REPLY_OK),
    ANSWER("kind", SELECT, WB_CQL_RESULT, "\0\0\0\7", -1, WB_REPLY_OK),
    ANSWER("void for select", SELECT, WB_CQL_RESULT, VOID, -1, WB_REPLY_OK),
    ANSWER("rows for insert", INSERT, WB_CQL_RESULT, ROWS "\0\0\0\0", -1, WB_REPLY_OK),
    ANSWER("no count", SELECT, WB_CQL_RESULT, ROWS, -1, WB_REPLY_OK),
    ANSWER("columns", SELECT, WB_CQL_RESULT, "\0\0\0\2\0\0\0\4\xff\xff\xff\xff\0\0\0\0", -1,
           WB_REPLY_OK),
    ANSWER("error cut", SELECT, WB_CQL_ERROR, "\0\0\x10\0\0\5x", -1, WB_REPLY_OK),
    ANSWER("error short", SELECT, WB_CQL_ERROR, "\0\0", -1, WB_REPLY_OK),
    ANSWER("unprepared cut", SELECT, WB_CQL_ERROR, "\0\0\x25\0\0\1x\0", -1, WB_REPLY_OK),
};

static void test_answers(void **state)
{
    static const char *const versions[] = {"4", "5"};

    (void)state;
    for (size_t i = 0; i < 2 * WB_LEN(answers); i++) {
        const struct want *want = &answers[i / 2];
        for (size_t step = 0; step < 30; step++) {
            struct rig r;
            struct wb_phase_sum sum;
            uint16_t stream;
            int rc;
            rig_up(&r, versions[i % 2]);
            greeted(&r);
            stream = issue(&r, want->op, 1, 0);
            rc = answer(&r, r.version, stream, want->opcode, want->body, want->len, step);
            if (rc != want->rc)
                fail_msg("%s: %d", want->name, rc);
            sum = wb_phase_total(&r.stats, WB_PHASE_MEASURE);
            if (rc == 0) {
                assert_int_equal(wb_conn_in_flight(&r.c), 0);
                assert_int_equal(r.w.live, 0);
                assert_int_equal(sum.ok, want->reply < WB_REPLY_FAILED);
                assert_int_equal(sum.misses, want->reply == WB_REPLY_MISS);
                if (want->reply >= WB_REPLY_FAILED)
                    assert_int_equal(measured(&r)->errors[want->reply], 1);
            } else {
                assert_int_equal(sum.ok + sum.failed, 0);
            }
            rig_down(&r);
        }
    }
}

/* Any order; each answer belongs to its own request; numbers that are not asked break. */
static void test_order(void **state)
{
    struct rig r;
    uint16_t stream[4];

    (void)state;
    rig_up(&r, "4");
    greeted(&r);
    for (int i = 0; i < 4; i++)
        stream[i] = issue(&r, i % 2 ? SELECT : INSERT, (uint64_t)i, 0);
    assert_int_equal(wb_conn_free(&r.c), 0);
    assert_int_equal(answer(&r, 4, stream[3], WB_CQL_RESULT, ROWS "\0\0\0\0", 16, 0), 0);
    assert_int_equal(answer(&r, 4, stream[2], WB_CQL_RESULT, VOID, 4, 0), 0);
    assert_int_equal(wb_conn_free(&r.c), 2);
    assert_int_equal(answer(&r, 4, -1, WB_CQL_EVENT, "", 0, 0), 0);
    assert_int_equal(answer(&r, 4, stream[0], WB_CQL_RESULT, VOID, 4, 0), 0);
    assert_int_equal(measured(&r)->op[INSERT].ok, 2);
    assert_int_equal(measured(&r)->op[SELECT].misses, 1);
    /* free numbers are taken, the one in flight is not */
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(issue(&r, INSERT, 9, 0), stream[1]);
    assert_int_equal(answer(&r, 4, stream[1], WB_CQL_RESULT, ROWS "\0\0\0\0", 16, 0), 0);
    assert_int_equal(answer(&r, 4, stream[1], WB_CQL_RESULT, VOID, 4, 0), -1); /* again */
    rig_down(&r);
}

static void test_unknown_numbers(void **state)
{
    static const int numbers[] = {1, 7, 8, 1000, 0x7eff, 0x7f00, 0x7f05, 0x7fff};

    (void)state;
    for (size_t i = 0; i < WB_LEN(numbers); i++) {
        struct rig r;
        rig_up(&r, "4");
        greeted(&r);
        (void)issue(&r, INSERT, 1, 0);
        assert_int_equal(answer(&r, 4, numbers[i], WB_CQL_RESULT, VOID, 4, 0), -1);
        assert_int_equal(r.w.live, 1);
        rig_down(&r);
    }
    for (int sent = 0; sent < 2; sent++) { /* not yet sent, so it cannot be answered */
        struct rig r;
        uint16_t stream;
        rig_up(&r, "4");
        greeted(&r);
        stream = issue(&r, INSERT, 1, 0);
        r.c.stamped -= !sent;
        assert_int_equal(answer(&r, 4, stream, WB_CQL_RESULT, VOID, 4, 0), sent ? 0 : -1);
        rig_down(&r);
    }
}

/* A number whose answer is late is not used before it came; others go on meanwhile. */
static void test_late(void **state)
{
    struct rig r;
    uint16_t late, other;

    (void)state;
    rig_up(&r, "4");
    greeted(&r);
    other = issue(&r, INSERT, 1, 0);
    late = issue(&r, INSERT, 2, 0);
    r.c.slots[0].written = 900 * WB_MS;
    r.w.now = r.c.heard = 1100 * WB_MS;
    wb_conn_scan(&r.w, &r.c);
    assert_int_equal(measured(&r)->errors[WB_REPLY_TIMEOUT], 1);
    assert_int_equal(r.c.expired, 1);
    assert_int_equal(wb_conn_free(&r.c), 3);
    for (int i = 0; i < 40; i++) {
        uint16_t s = issue(&r, INSERT, 3, 0);
        r.c.slots[(r.c.tail - 1) & r.c.mask].written = r.w.now;
        assert_int_not_equal(s, late);
        assert_int_not_equal(s, other);
        assert_int_equal(answer(&r, 4, s, WB_CQL_RESULT, VOID, 4, 0), 0);
    }
    assert_int_equal(answer(&r, 4, other, WB_CQL_RESULT, VOID, 4, 0), 0);
    assert_int_equal(answer(&r, 4, late, WB_CQL_RESULT, VOID, 4, 0), 0);
    assert_int_equal(measured(&r)->late, 1);
    assert_int_equal(measured(&r)->op[INSERT].ok, 41);
    assert_int_equal(r.c.expired, 0);
    assert_int_equal(r.w.live, 0);
    assert_int_equal(wb_conn_in_flight(&r.c), 0);
    rig_down(&r);
}

/* Nothing at all for the whole time-out: the connection is given up, each operation counted once.
 */
static void test_silent(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, "4");
    greeted(&r);
    (void)issue(&r, INSERT, 1, 0);
    (void)issue(&r, INSERT, 2, 0);
    r.c.slots[1].written = 500 * WB_MS;
    r.c.heard = 2 * WB_MS; /* before they were written */
    r.w.now = 1100 * WB_MS;
    wb_conn_scan(&r.w, &r.c);
    assert_int_equal(r.c.state, WB_CONN_DOWN);
    assert_int_equal(measured(&r)->errors[WB_REPLY_TIMEOUT], 1);
    assert_int_equal(measured(&r)->errors[WB_REPLY_CLOSED], 1);
    assert_int_equal(r.w.live, 0);
    rig_down(&r);
}

static void test_verify(void **state)
{
    (void)state;
    for (int damage = 0; damage < 4; damage++) {
        struct rig r;
        char body[64], *out = body;
        uint16_t stream;
        rig_up(&r, "5");
        greeted(&r);
        stream = issue(&r, SELECT, 5, WB_SLOT_VERIFY);
        memcpy(out, ROWS, 12);
        out = wb_cql_put32(out + 12, damage == 3 ? 2 : 1);
        out = wb_cql_put32(out, VALUE - (damage == 2));
        wb_values_write(&r.plan.data.values, 5, out);
        out[3] = (char)(out[3] ^ (damage == 1));
        assert_int_equal(answer(&r, 5, stream, WB_CQL_RESULT, body, 20 + VALUE, 0), 0);
        assert_int_equal(measured(&r)->op[SELECT].ok, damage == 0);
        assert_int_equal(measured(&r)->errors[WB_REPLY_MISMATCH], damage != 0);
        rig_down(&r);
    }
}

/* --- statements that the server forgot --- */

#define UNPREPARED "\0\0\x25\0\0\1x\0\x10" ID

static void test_unprepared(void **state)
{
    static const char *const versions[] = {"4", "5"};

    (void)state;
    for (int again = 0; again < 4; again++) {
        struct rig r;
        uint16_t a, b;
        size_t prepare, first;
        rig_up(&r, versions[again % 2]);
        greeted(&r);
        a = issue(&r, INSERT, 1, 0);
        b = issue(&r, INSERT, 2, 0);
        first = r.c.out_len;
        assert_int_equal(
            answer(&r, r.version, b, WB_CQL_ERROR, UNPREPARED, sizeof(UNPREPARED) - 1, 0), 0);
        prepare = r.c.out_len;
        assert_true(prepare > first); /* it is prepared again */
        assert_int_equal(
            answer(&r, r.version, a, WB_CQL_ERROR, UNPREPARED, sizeof(UNPREPARED) - 1, 0), 0);
        assert_int_equal(r.c.out_len, prepare); /* once */
        assert_int_equal(r.w.live, 2);
        assert_int_equal(answer_prepared(&r, 0x7f00 + INSERT, INSERT), 0);
        wb_protocol_cql.seal(r.w.context, &r.c);
        assert_true(r.c.out_len > prepare); /* and both are sent again */
        if (again < 2) {
            assert_int_equal(answer(&r, r.version, a, WB_CQL_RESULT, VOID, 4, 0), 0);
            assert_int_equal(answer(&r, r.version, b, WB_CQL_RESULT, VOID, 4, 0), 0);
            assert_int_equal(measured(&r)->op[INSERT].ok, 2);
            assert_true(measured(&r)->op[INSERT].service.max >= 2 * WB_MS); /* from the first try */
        } else { /* a server that forgets at once is not asked for ever */
            assert_int_equal(
                answer(&r, r.version, a, WB_CQL_ERROR, UNPREPARED, sizeof(UNPREPARED) - 1, 0), 0);
            assert_int_equal(measured(&r)->errors[WB_REPLY_UNPREPARED], 1);
        }
        rig_down(&r);
    }
}

/* --- greeting --- */

static void test_greeting_bytes(void **state)
{
    static const char startup[] = "\0\3\0\x0b"
                                  "CQL_VERSION\0\5"
                                  "3.0.0\0\x0b"
                                  "DRIVER_NAME\0\7wb-load\0\x0e"
                                  "DRIVER_VERSION";
    char head[WB_CQL_HEADER];
    struct rig r;

    (void)state;
    rig_up(&r, "4");
    wb_cql_put_header(head, 4, 0, WB_CQL_STARTUP,
                      (uint32_t)(sizeof(startup) - 1 + 2 + strlen(WB_VERSION)));
    assert_int_equal(r.c.out_len, sizeof(head) + sizeof(startup) - 1 + 2 + strlen(WB_VERSION));
    assert_memory_equal(r.c.out, head, sizeof(head));
    assert_memory_equal(r.c.out + sizeof(head), startup, sizeof(startup) - 1);
    rig_down(&r);
}

static void test_greeting_refused(void **state)
{
    static const struct {
        unsigned opcode;
        const char *body;
        size_t n;
        const char *why;
    } rows[] = {{WB_CQL_ERROR, "\0\0\1\0\0\5wrong", 11, "the server said: wrong (error 0x0100)"},
                {WB_CQL_AUTHENTICATE, "\0\1p", 3, "wants a user and password (p)"},
                {WB_CQL_AUTH_CHALLENGE, "", 0, "wants more than"},
                {WB_CQL_RESULT, VOID, 4, "opcode 0x08"},
                {WB_CQL_ERROR, "\0\0", 2, "opcode 0x00"}};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct rig r;
        rig_up(&r, "4");
        assert_int_equal(answer(&r, 4, 0, rows[i].opcode, rows[i].body, rows[i].n, 0), -1);
        if (!strstr(r.w.refusal, rows[i].why))
            fail_msg("%s", r.w.refusal);
        rig_down(&r);
    }
}

/* Statements that cannot be prepared, or are answered with something else. */
static void test_preparing_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rig r;
        rig_up(&r, "5");
        assert_int_equal(answer(&r, 5, 0, WB_CQL_READY, "", 0, 0), 0);
        r.framed = true;
        if (i == 0)
            assert_int_equal(answer(&r, 5, SELECT, WB_CQL_ERROR, "\0\0\x22\0\0\2no", 8, 0), -1);
        else if (i == 1)
            assert_int_equal(answer_prepared(&r, SELECT, INSERT), -1); /* two values */
        else
            assert_int_equal(answer_prepared(&r, 9, SELECT), -1);
        assert_int_equal(r.c.state, WB_CONN_GREETING);
        assert_non_null(strstr(r.w.refusal, "preparing a statement"));
        rig_down(&r);
    }
}

/* --- options --- */

static void test_options(void **state)
{
    static const struct {
        size_t member;
        const char *value, *why;
    } rows[] = {
#define BAD(m, value, why) {offsetof(struct wb_load_job, cql.m), value, why}
        BAD(keyspace, "a b", "keyspace: 'a b'"),
        BAD(keyspace, "", "keyspace: ''"),
        BAD(table, "1t", "table: '1t'"),
        BAD(table, "x\"; DROP", "table: "),
        BAD(key_column, "k-", "key-column"),
        BAD(value_column, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "value-column"),
        BAD(consistency, "quorumm", "'quorumm' is not one of: any, one"),
        BAD(consistency, "", "'' is not one of"),
        BAD(consistency, "read=one,wrote=one", "'wrote' is not read, write"),
        BAD(consistency, "any", "any is for writes only"),
        BAD(consistency, "write=", "'' is not one of"),
        BAD(batch, "logged", "'logged' is not logged:ROWS"),
        BAD(batch, "logged:0", "1 to 1000 rows"),
        BAD(batch, "big:3", "'big:3'"),
        BAD(compression, "snappy", "'snappy' is not one of: lz4, none"),
        BAD(timestamps, "none", "client, server"),
        BAD(native_protocol, "3", "auto, 4, 5"),
        BAD(routing, "random", "token, round-robin"),
        BAD(nodes, "all", "found, given"),
        BAD(password_file, "/dev/null", "there is no --user"),
#undef BAD
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_load_job job;
        struct wb_load_data data = {.job = &job};
        struct wb_err err = WB_ERR_INIT;
        void *context = NULL;
        wb_load_job_init(&job);
        wb_keys_init(&data.keys, &job);
        memcpy((char *)&job + rows[i].member, &(char *){text(rows[i].value)}, sizeof(char *));
        assert_int_equal(wb_protocol_cql.setup(&data, &context, &err), -WB_INVALID);
        if (!strstr(err.root, rows[i].why))
            fail_msg("%s: %s", rows[i].value, err.root);
        wb_load_job_release(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),         cmocka_unit_test(test_segment_of_many),
        cmocka_unit_test(test_answers),          cmocka_unit_test(test_order),
        cmocka_unit_test(test_unknown_numbers),  cmocka_unit_test(test_late),
        cmocka_unit_test(test_silent),           cmocka_unit_test(test_verify),
        cmocka_unit_test(test_unprepared),       cmocka_unit_test(test_greeting_bytes),
        cmocka_unit_test(test_greeting_refused), cmocka_unit_test(test_preparing_refused),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
