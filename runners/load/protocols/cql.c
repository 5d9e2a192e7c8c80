/*
 * CQL (Cassandra and what speaks its native protocol, versions 4 and 5): prepared statements on one
 * table with a key and a value column. Requests are copied from a template of the connection, which
 * has the ids that its server gave; answers are read where they lie.
 */
#include <stdlib.h>

#include "runners/load/protocols/cql_murmur.h"
#include "runners/load/protocols/cql_setup.h"
#include "runners/load/target.h"
#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

/* Numbers of own requests of a connection that is up; operations have lower ones. */
#define OWN_STREAM 0x7f00
#define CONTROL_MAX 16384 /* bytes of own requests at a time */
#define HEAD_MAX 192      /* of a template */

/* How a request begins, up to its values. */
struct head {
    uint16_t len;
    char text[HEAD_MAX + WB_BUILD_SLACK];
};

enum step { STEP_HELLO, STEP_PREPARE, STEP_UP };

struct cql_conn {
    struct wb_cql_reader reader;
    enum step step;
    unsigned waiting; /* answers to PREPARE */
    size_t segment;   /* where in the connection's buffer a segment is open, plus 1; 0: none */
    char *scratch;    /* to compress */
    int64_t last_us;  /* timestamp of the last write */
    unsigned parked;  /* operations to be sent again once their statement is prepared */
    struct head head[WB_CQL_OPS];
    char id[WB_CQL_ID_MAX]; /* of INSERT, for batches */
    uint8_t id_len;
};

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    struct wb_cql *q = NULL;
    int rc = wb_cql_setup(data, &q, err);

    *context = q;
    return rc;
}

static void end(void *context)
{
    wb_cql_end(context);
}

/* Whether another address may do better. */
static bool again(int rc)
{
    return rc == -WB_UNAVAILABLE || rc == -WB_TIMEOUT;
}

static int prepare(void *context, struct wb_target *target, const struct wb_cancel *cancel,
                   struct wb_err *err)
{
    struct wb_cql *q = context;
    struct wb_cql_session s = WB_CQL_SESSION_INIT;
    struct sockaddr_storage at = {0};
    socklen_t len = 0;
    int rc = -WB_UNAVAILABLE;

    for (size_t i = 0; i < target->n && again(rc); i++) {
        const struct wb_target_addr *a = &target->addr[i];
        for (unsigned way = 0; way < a->ways && again(rc); way++) {
            at = a->addr[way];
            len = a->len[way];
            const struct wb_cql_where where = {.name = a->name,
                                               .addr = (const struct sockaddr *)&at,
                                               .len = len,
                                               .tls = q->data->tls,
                                               .cancel = cancel};
            rc = wb_cql_session_open(&s, &where, &q->hello, q->lower, err);
        }
    }
    if (rc == 0)
        rc = wb_cql_find(q, &s, (const struct sockaddr *)&at, len, target, err);
    if (rc == 0 && q->data->job->load)
        rc = wb_cql_create(q, &s, err);
    if (rc == 0)
        rc = wb_cql_make_ring(q, &s, target->n, err);
    if (rc == 0)
        rc = wb_cql_check(q, &s, err);
    wb_cql_session_close(&s);
    return rc;
}

static wb_json *describe(const void *context)
{
    return wb_cql_describe(context);
}

static bool routed(const void *context)
{
    const struct wb_cql *q = context;

    return q->route;
}

static uint32_t route(const void *context, uint64_t key, uint64_t index, unsigned attempt)
{
    const struct wb_cql *q = context;
    const struct wb_keys *k = &q->data->keys;
    char text[WB_KEY_BYTES_MAX];

    memcpy(text, q->key_text, k->bytes);
    wb_keys_digits(k, key, text + k->bytes);
    return wb_cql_ring_route(&q->ring, wb_cql_token(text, k->bytes), wb_keys_hash(k->seed, index),
                             attempt);
}

static size_t request_max(const void *context)
{
    const struct wb_cql *q = context;

    return q->request_max;
}

/* --- requests --- */

static inline char *put_key(const struct wb_cql *q, uint64_t key, char *out)
{
    const struct wb_keys *k = &q->data->keys;

    out = wb_cql_put32(out, k->bytes);
    if (k->bytes <= WB_BUILD_SLACK)
        memcpy(out, q->key_text, WB_BUILD_SLACK);
    else
        memcpy(out, q->key_text, k->bytes);
    wb_keys_digits(k, key, out + k->bytes);
    return out + k->bytes;
}

static inline char *put_value(const struct wb_cql *q, uint64_t key, char *out)
{
    uint32_t n = wb_values_write(&q->data->values, key, out + 4);

    return wb_cql_put32(out, n) + n;
}

/* Microseconds of wall clock, larger for each write of a connection. */
static inline char *put_timestamp(const struct wb_cql *q, struct cql_conn *cc,
                                  const struct wb_slot *s, char *out)
{
    int64_t us = q->unix_us + s->written / 1000;

    if (!q->timestamps)
        return out;
    cc->last_us = us > cc->last_us ? us : cc->last_us + 1;
    return wb_cql_put64(out, (uint64_t)cc->last_us);
}

static char *put_batch(const struct wb_cql *q, struct cql_conn *cc, const struct wb_slot *s,
                       uint64_t key, char *out)
{
    uint64_t n = q->data->keys.n;
    unsigned flags = q->timestamps ? WB_CQL_TIMESTAMP : 0;

    out = wb_cql_put_header(out, q->hello.version, 0, WB_CQL_BATCH, 0);
    out = wb_cql_put8(out, q->batch);
    out = wb_cql_put16(out, q->batch_rows);
    for (uint32_t i = 0; i < q->batch_rows; i++) {
        uint64_t row = key < n ? (key + i) % n : key;
        out = wb_cql_put8(out, 1); /* prepared */
        out = wb_cql_put16(out, cc->id_len);
        memcpy(out, cc->id, WB_CQL_ID_MAX);
        out = wb_cql_put16(out + cc->id_len, 2);
        out = put_key(q, row, out);
        out = put_value(q, row, out);
    }
    out = wb_cql_put16(out, q->consistency[WB_CQL_INSERTS]);
    out = q->hello.version >= 5 ? wb_cql_put32(out, flags) : wb_cql_put8(out, flags);
    return put_timestamp(q, cc, s, out);
}

/* One bare envelope with an uncompressed body. */
static inline char *put_envelope(const struct wb_cql *q, struct wb_conn *c, const struct wb_slot *s,
                                 uint64_t key, char *out)
{
    struct cql_conn *cc = c->proto;
    const struct head *h = &cc->head[s->op];
    char *from = out;

    if (h->len <= WB_BUILD_SLACK)
        memcpy(out, h->text, WB_BUILD_SLACK);
    else
        memcpy(out, h->text, h->len);
    out += h->len;
    switch (s->op) {
    case WB_CQL_SELECT:
        out = wb_cql_put32(put_key(q, key, out), q->page_rows);
        break;
    case WB_CQL_INSERT:
        out = put_timestamp(q, cc, s, put_value(q, key, put_key(q, key, out)));
        break;
    case WB_CQL_UPDATE:
        out = put_timestamp(q, cc, s, put_key(q, key, put_value(q, key, out)));
        break;
    case WB_CQL_DELETE:
        out = put_timestamp(q, cc, s, put_key(q, key, out));
        break;
    default:
        out = put_batch(q, cc, s, key, from);
        break;
    }
    wb_cql_put16(from + 2, wb_conn_stream(c, s));
    wb_cql_put32(from + 5, (uint32_t)(out - from - WB_CQL_HEADER));
    return out;
}

/* Closes the segment that is open in the connection's buffer and ends at `end`. */
static char *close_segment(struct wb_conn *c, char *end)
{
    struct cql_conn *cc = c->proto;
    char *seg = c->out + cc->segment - 1;
    size_t n = (size_t)(end - seg) - wb_cql_segment_head(cc->reader.lz4);

    cc->segment = 0;
    return wb_cql_segment_close(seg, n, true, cc->reader.lz4, cc->scratch);
}

/* An envelope that may be longer than a segment. */
static char *build_long(const struct wb_cql *q, struct wb_conn *c, const struct wb_slot *s,
                        uint64_t key, char *out)
{
    struct cql_conn *cc = c->proto;
    size_t most = wb_cql_segments_max(q->envelope_max), n;
    char *at = out + most - q->envelope_max;

    n = (size_t)(put_envelope(q, c, s, key, at) - at);
    if (n <= WB_CQL_SEGMENT_MAX) {
        memmove(out + wb_cql_segment_head(cc->reader.lz4), at, n);
        return wb_cql_segment_close(out, n, true, cc->reader.lz4, cc->scratch);
    }
    memmove(out + wb_cql_segments_max(n) - n, at, n);
    return wb_cql_segments_cut(out, n, cc->reader.lz4, cc->scratch);
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    const struct wb_cql *q = context;
    struct cql_conn *cc = c->proto;
    char *end;

    if (!cc->reader.framed) {
        end = put_envelope(q, c, s, key, out);
        return q->hello.lz4 ? wb_cql_envelope_pack(out, (size_t)(end - out), cc->scratch) : end;
    }
    if (q->envelope_max > WB_CQL_SEGMENT_MAX) {
        if (cc->segment)
            out = close_segment(c, out);
        return build_long(q, c, s, key, out);
    }
    if (cc->segment &&
        (size_t)(out - c->out) - (cc->segment - 1) + q->envelope_max > WB_CQL_SEGMENT_MAX)
        out = close_segment(c, out);
    if (!cc->segment) {
        cc->segment = (size_t)(out - c->out) + 1;
        out += wb_cql_segment_head(cc->reader.lz4);
    }
    return put_envelope(q, c, s, key, out);
}

static void seal(const void *context, struct wb_conn *c)
{
    struct cql_conn *cc = c->proto;

    (void)context;
    if (cc->segment)
        c->out_len = (size_t)(close_segment(c, c->out + c->out_len) - c->out);
}

/* --- beginning --- */

/* Sends own envelopes. They are few and small: that there is no room is a fault of this program. */
static void say(struct wb_worker *w, struct wb_conn *c, struct wb_buf *envelope)
{
    struct cql_conn *cc = c->proto;
    struct wb_buf out = WB_BUF_INIT(CONTROL_MAX);

    seal(w->context, c);
    wb_cql_wrap(&cc->reader, envelope, &out);
    if (out.failed || !wb_conn_say(w, c, out.data, out.len))
        abort();
    wb_buf_release(&out);
    wb_buf_release(envelope);
}

static void reset(void *context, void *conn_state)
{
    const struct wb_cql *q = context;
    struct cql_conn *cc = conn_state;

    wb_cql_reader_release(&cc->reader);
    wb_cql_reader_init(&cc->reader, q->hello.version, q->hello.lz4);
    if (q->hello.lz4 && !cc->scratch)
        cc->scratch = wb_calloc(
            q->envelope_max > WB_CQL_SEGMENT_MAX ? q->envelope_max : WB_CQL_SEGMENT_MAX, 1);
    cc->step = STEP_HELLO;
    cc->segment = 0;
    cc->parked = cc->waiting = 0;
}

static void conn_end(void *conn_state)
{
    struct cql_conn *cc = conn_state;

    wb_cql_reader_release(&cc->reader);
    free(cc->scratch);
    cc->scratch = NULL;
}

static void greet(void *context, struct wb_worker *w, struct wb_conn *c)
{
    const struct wb_cql *q = context;
    struct wb_buf b = WB_BUF_INIT(CONTROL_MAX);

    wb_cql_put_startup(&b, &q->hello, 0);
    say(w, c, &b);
}

static void ask_prepare(struct wb_worker *w, struct wb_conn *c, unsigned stream, int op)
{
    const struct wb_cql *q = w->context;
    struct wb_buf b = WB_BUF_INIT(CONTROL_MAX);

    wb_cql_put_prepare(&b, q->hello.version, stream, q->text[op]);
    say(w, c, &b);
}

/* What was prepared becomes the head of requests: header, ids, parameters up to the values. */
static void make_head(const struct wb_cql *q, struct cql_conn *cc, int op,
                      const struct wb_cql_prepared *p)
{
    struct head *h = &cc->head[op];
    bool write = op != WB_CQL_SELECT, v5 = q->hello.version >= 5;
    unsigned flags = WB_CQL_VALUES;
    char *out = wb_cql_put_header(h->text, q->hello.version, 0, WB_CQL_EXECUTE, 0);

    flags |=
        write ? (q->timestamps ? WB_CQL_TIMESTAMP : 0) : WB_CQL_SKIP_METADATA | WB_CQL_PAGE_SIZE;
    out = wb_cql_put16(out, (unsigned)p->id.n);
    memcpy(out, p->id.p, p->id.n);
    out += p->id.n;
    if (v5) {
        out = wb_cql_put16(out, (unsigned)p->result_id.n);
        if (p->result_id.n > 0)
            memcpy(out, p->result_id.p, p->result_id.n);
        out += p->result_id.n;
    }
    out = wb_cql_put16(out, q->consistency[op]);
    out = v5 ? wb_cql_put32(out, flags) : wb_cql_put8(out, flags);
    out = wb_cql_put16(out, p->nbind);
    h->len = (uint16_t)(out - h->text);
    if (op == WB_CQL_INSERT) {
        memcpy(cc->id, p->id.p, p->id.n);
        cc->id_len = (uint8_t)p->id.n;
    }
}

/* Values that a statement of ours has. */
static unsigned values_of(int op)
{
    return op == WB_CQL_INSERT || op == WB_CQL_UPDATE ? 2 : 1;
}

static int refuse(struct wb_worker *w, const char *what, const struct wb_cql_envelope *e)
{
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];

    (void)wb_cql_fail(&err, WB_PROTOCOL, e);
    (void)wb_wrap(&err, "%s", what);
    (void)wb_err_text(&err, text, sizeof(text));
    wb_worker_refused(w, text, strlen(text));
    return -1;
}

static int take_hello(struct wb_worker *w, struct wb_conn *c, const struct wb_cql_envelope *e)
{
    const struct wb_cql *q = w->context;
    struct cql_conn *cc = c->proto;
    struct wb_buf next = WB_BUF_INIT(CONTROL_MAX);
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc;

    cc->reader.framed = q->hello.version >= 5; /* from the answer to STARTUP on */
    rc = wb_cql_hello_take(&q->hello, e, &next, &err);
    if (rc < 0) {
        (void)wb_err_text(&err, text, sizeof(text));
        wb_worker_refused(w, text, strlen(text));
        return -1;
    }
    if (rc == 0) {
        say(w, c, &next);
        return 0;
    }
    cc->step = STEP_PREPARE;
    for (int op = 0; op < WB_CQL_OPS; op++) {
        if (!q->used[op])
            continue;
        ask_prepare(w, c, (unsigned)op, op);
        cc->waiting++;
    }
    return 0;
}

static int take_prepared(struct wb_worker *w, struct wb_conn *c, const struct wb_cql_envelope *e,
                         int op)
{
    const struct wb_cql *q = w->context;
    struct wb_cql_prepared p;

    if (op < 0 || op >= WB_CQL_OPS || !q->used[op] || !wb_cql_take_prepared(e, &p) ||
        p.nbind != values_of(op))
        return refuse(w, "preparing a statement", e);
    make_head(q, c->proto, op, &p);
    return 0;
}

static int take_preparing(struct wb_worker *w, struct wb_conn *c, const struct wb_cql_envelope *e)
{
    struct cql_conn *cc = c->proto;

    if (take_prepared(w, c, e, e->stream) < 0)
        return -1;
    if (--cc->waiting == 0) {
        cc->step = STEP_UP;
        wb_conn_greeted(w, c);
    }
    return 0;
}

/* --- answers --- */

/* The server has lost a statement while the connection was up: it is prepared again, and what was
 * to execute it is sent again, once. */
static void park(struct wb_worker *w, struct wb_conn *c, struct wb_slot *s)
{
    struct cql_conn *cc = c->proto;
    enum wb_cql_op op = wb_cql_statement((enum wb_cql_op)s->op);

    s->flags |= WB_SLOT_PARKED | WB_SLOT_AGAIN;
    if (cc->parked++ == 0) {
        ask_prepare(w, c, OWN_STREAM + op, op);
        cc->waiting = 1u << op;
    } else if (!(cc->waiting & 1u << op)) {
        ask_prepare(w, c, OWN_STREAM + op, op);
        cc->waiting |= 1u << op;
    }
}

static void send_parked(struct wb_worker *w, struct wb_conn *c)
{
    struct cql_conn *cc = c->proto;

    for (uint32_t k = c->head; k != c->stamped && cc->parked > 0; k++) {
        struct wb_slot *s = &c->slots[k & c->mask];
        if (!(s->flags & WB_SLOT_PARKED))
            continue;
        if (c->out_len + w->request_max > c->out_cap)
            return; /* the rest when answers to these have come */
        c->out_len =
            (size_t)(build(w->context, c, s, wb_worker_key(w, s), c->out + c->out_len) - c->out);
        s->flags &= (uint8_t)~WB_SLOT_PARKED;
        cc->parked--;
        wb_worker_mark_dirty(w, c);
    }
}

static int take_own(struct wb_worker *w, struct wb_conn *c, const struct wb_cql_envelope *e)
{
    struct cql_conn *cc = c->proto;
    int op = e->stream - OWN_STREAM;

    if (op < 0 || op >= WB_CQL_OPS || !(cc->waiting & 1u << op))
        return -1;
    cc->waiting &= ~(1u << op);
    return take_prepared(w, c, e, op);
}

static int take_error(struct wb_worker *w, struct wb_conn *c, struct wb_slot *s,
                      const struct wb_cql_envelope *e)
{
    struct wb_cql_error x;

    if (!wb_cql_take_error(e, &x))
        return -1;
    if (x.class == WB_REPLY_UNPREPARED && !(s->flags & WB_SLOT_AGAIN)) {
        park(w, c, s);
        return 0;
    }
    wb_worker_error_text(w, x.text.p, x.text.n);
    wb_worker_reply(w, c, x.class);
    return 0;
}

/* The one cell of a row against what was written. */
static bool same_value(struct wb_worker *w, const struct wb_slot *s, struct wb_cql_view v)
{
    const struct wb_cql *q = w->context;
    const struct wb_values *values = &q->data->values;
    char scratch[WB_VALUE_SMALL + 8];

    return v.p && v.n == wb_values_size(values, wb_worker_key(w, s)) &&
           memcmp(v.p, wb_values_expect(values, wb_worker_key(w, s), scratch), v.n) == 0;
}

/* Rows of a SELECT: none, or the one of the key. */
static int take_rows(struct wb_worker *w, struct wb_conn *c, const struct wb_slot *s,
                     const struct wb_cql_envelope *e)
{
    struct wb_cql_rows rows;

    if (!wb_cql_take_rows(e, &rows) || s->op != WB_CQL_SELECT)
        return -1;
    if (rows.nrows == 0) {
        wb_worker_reply(w, c, WB_REPLY_MISS);
    } else if (s->flags & WB_SLOT_VERIFY) {
        bool same = rows.nrows == 1 && rows.ncolumns == 1 &&
                    same_value(w, s, wb_cql_take_bytes(&rows.cells));
        wb_worker_reply(w, c, same && !rows.cells.bad ? WB_REPLY_OK : WB_REPLY_MISMATCH);
    } else {
        wb_worker_reply_ok(w, c, s);
    }
    return 0;
}

static int take_answer(struct wb_worker *w, struct wb_conn *c, const struct wb_cql_envelope *e)
{
    struct wb_slot *s;
    uint32_t kind;

    if (e->stream < 0) /* an event that nobody asked for */
        return 0;
    if (__builtin_expect(e->stream >= OWN_STREAM, 0))
        return take_own(w, c, e);
    if (!wb_conn_find(c, (uint32_t)e->stream))
        return -1;
    s = wb_worker_expects(c);
    if (__builtin_expect(s->flags & WB_SLOT_PARKED, 0))
        return -1; /* it was answered already */
    if (e->opcode == WB_CQL_ERROR)
        return take_error(w, c, s, e);
    if (e->opcode != WB_CQL_RESULT || e->n < 4)
        return -1;
    kind = wb_cql_get32(e->body);
    if (kind == WB_CQL_ROWS)
        return take_rows(w, c, s, e);
    if (kind != WB_CQL_VOID || s->op == WB_CQL_SELECT)
        return -1;
    wb_worker_reply_ok(w, c, s);
    return 0;
}

struct feeding {
    struct wb_worker *w;
    struct wb_conn *c;
};

static int on_envelope(void *arg, const struct wb_cql_envelope *e)
{
    const struct feeding *f = arg;
    const struct cql_conn *cc = f->c->proto;

    if (__builtin_expect(cc->step == STEP_UP, 1))
        return take_answer(f->w, f->c, e);
    if (e->stream < 0)
        return 0;
    return cc->step == STEP_HELLO ? take_hello(f->w, f->c, e) : take_preparing(f->w, f->c, e);
}

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    struct cql_conn *cc = c->proto;
    struct feeding f = {.w = w, .c = c};

    (void)context;
    cc->reader.why = NULL;
    if (wb_cql_read(&cc->reader, data, n, on_envelope, &f) < 0) {
        const char *why = cc->reader.why;
        if (why && cc->step == STEP_UP)
            wb_worker_error_text(w, why, strlen(why));
        else if (why)
            wb_worker_refused(w, why, strlen(why));
        return -1;
    }
    if (__builtin_expect(cc->parked > 0, 0) && cc->step == STEP_UP && cc->waiting == 0)
        send_parked(w, c);
    return 0;
}

const struct wb_protocol wb_protocol_cql = {
    .name = "cql",
    .summary = "CQL native protocol, versions 4 and 5 (Cassandra)",
    .port = 9042,
    .streams = true,
    .ops = wb_ops_cql,
    .write_op = WB_CQL_INSERT,
    .read_op = WB_CQL_SELECT,
    .conn_size = sizeof(struct cql_conn),
    .control_max = CONTROL_MAX,
    .setup = setup,
    .end = end,
    .prepare = prepare,
    .describe = describe,
    .routed = routed,
    .route = route,
    .request_max = request_max,
    .reset = reset,
    .conn_end = conn_end,
    .greet = greet,
    .build = build,
    .seal = seal,
    .feed = feed,
};
