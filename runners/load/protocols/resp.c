/*
 * RESP 2 (Redis, Valkey, KeyDB...): GET and SET, pipelined. Replies come in the order of the
 * requests and are parsed where they lie; of a reply that is cut by the end of a read only its
 * state is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/protocol.h"
#include "runners/load/worker.h"
#include "server/base/mem.h"

#define LINE_MAX_BYTES 65536 /* of a line; longer ones break the protocol */
#define LINE_KEPT 192        /* bytes kept of a cut line */
#define BULK_MAX (512LL << 20)

enum { OP_GET, OP_SET };
static const char *const ops[] = {"get", "set", NULL};

struct resp {
    const struct wb_load_data *data;
    /* Request text up to the value, with key 0; only the key's digits differ. */
    char *get, *set;
    size_t get_len, set_len;
    size_t get_key_end, set_key_end; /* where the key's digits end */
};

struct resp_conn {
    /* A line that has not ended: what was received of it. line_len counts all, kept or not. */
    size_t line_len;
    char line[LINE_KEPT];
    /* A bulk reply that has not ended. */
    bool in_bulk;
    int64_t left;       /* bytes still to come, with the closing CRLF */
    const char *expect; /* where its next byte must be equal; NULL: not compared */
    bool differs;
    char scratch[WB_VALUE_SMALL + 8]; /* a small value to compare with */
};

/* Owned by the caller; at least WB_BUILD_SLACK bytes, so that a copy of that size is possible. */
static char *template(const struct wb_load_data *data, const char *head, const char *tail,
                      size_t *len, size_t *key_end)
{
    size_t n = strlen(head) + data->keys.bytes + strlen(tail);
    char *text = wb_calloc(n + WB_BUILD_SLACK, 1);

    memcpy(text, head, strlen(head));
    wb_keys_text(&data->keys, 0, text + strlen(head));
    *key_end = strlen(head) + data->keys.bytes;
    memcpy(text + *key_end, tail, strlen(tail));
    *len = n;
    return text;
}

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    struct resp *r = wb_calloc(1, sizeof(*r));
    WB_AUTO_FREE char *get = wb_strf("*2\r\n$3\r\nGET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *set = wb_strf("*3\r\n$3\r\nSET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *value = wb_strf("\r\n$%u\r\n", data->values.bytes);

    (void)err;
    r->data = data;
    r->get = template(data, get, "\r\n", &r->get_len, &r->get_key_end);
    r->set = template(data, set, value, &r->set_len, &r->set_key_end);
    *context = r;
    return 0;
}

static void end(void *context)
{
    struct resp *r = context;

    if (!r)
        return;
    free(r->get);
    free(r->set);
    free(r);
}

static size_t request_max(const void *context)
{
    const struct resp *r = context;

    return r->set_len + r->data->values.bytes + 2;
}

static void reset(void *context, void *conn_state)
{
    struct resp_conn *rc = conn_state;

    (void)context;
    rc->line_len = 0;
    rc->in_bulk = false;
}

/* Both sides have slack for a copy of fixed size, which is a few instructions. */
static inline void copy_head(char *out, const char *from, size_t n)
{
    if (n <= WB_BUILD_SLACK)
        memcpy(out, from, WB_BUILD_SLACK);
    else
        memcpy(out, from, n);
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    const struct resp *r = context;
    const struct wb_load_data *d = r->data;

    (void)c;
    if (s->op == OP_GET) {
        copy_head(out, r->get, r->get_len);
        wb_keys_digits(&d->keys, key, out + r->get_key_end);
        return out + r->get_len;
    }
    copy_head(out, r->set, r->set_len);
    wb_keys_digits(&d->keys, key, out + r->set_key_end);
    out += r->set_len;
    wb_values_write(&d->values, key, out);
    out += d->values.bytes;
    memcpy(out, "\r\n", 2);
    return out + 2;
}

/* Digits of a length up to the CR; -1 stands for "-1". False when it is none in range. */
static bool parse_length(const char *p, const char *cr, int64_t *out)
{
    int64_t v = 0;

    if (cr - p == 2 && p[0] == '-' && p[1] == '1') {
        *out = -1;
        return true;
    }
    if (p == cr || cr - p > 9)
        return false;
    for (; p < cr; p++) {
        if (*p < '0' || *p > '9')
            return false;
        v = v * 10 + (*p - '0');
    }
    *out = v;
    return v <= BULK_MAX;
}

/* The whole reply is a line, or its first line opens a bulk. p..cr is the line without CRLF (of a
 * cut long one its beginning). Returns -1 when it breaks the protocol. */
static int take_line(struct resp *r, struct wb_worker *w, struct wb_conn *c, const char *p,
                     const char *cr)
{
    struct resp_conn *rc = c->proto;
    struct wb_slot *s = wb_worker_expects(c);
    int64_t n = 0;

    if (!s || cr == p)
        return -1;
    switch (*p) {
    case '+':
        if (s->op == OP_SET && cr - p == 3 && p[1] == 'O' && p[2] == 'K')
            wb_worker_reply(w, c, WB_REPLY_OK);
        else
            wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
        return 0;
    case '-':
        wb_worker_error_text(w, p + 1, (size_t)(cr - p - 1));
        wb_worker_reply(w, c, WB_REPLY_SERVER);
        return 0;
    case ':': /* well formed, but the answer to neither operation */
        wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
        return 0;
    case '$':
        if (!parse_length(p + 1, cr, &n))
            return -1;
        if (n < 0) {
            wb_worker_reply(w, c, s->op == OP_GET ? WB_REPLY_MISS : WB_REPLY_PROTOCOL);
            return 0;
        }
        rc->in_bulk = true;
        rc->left = n + 2;
        rc->expect = NULL;
        rc->differs = false;
        if (s->flags & WB_SLOT_VERIFY) {
            rc->expect = wb_values_expect(&r->data->values, wb_worker_key(w, s), rc->scratch);
            rc->differs = n != (int64_t)r->data->values.bytes;
        }
        return 0;
    default:
        return -1;
    }
}

/* Compares and passes bytes of a bulk reply; returns how many, 0 when its end is broken. */
static size_t take_bulk(struct wb_worker *w, struct wb_conn *c, const char *p, size_t n)
{
    struct resp_conn *rc = c->proto;
    int64_t data = rc->left > 2 ? rc->left - 2 : 0;
    size_t whole = (size_t)data < n ? (size_t)data : n, used;
    struct wb_slot *s = &c->slots[c->head & c->mask];

    if (rc->expect && !rc->differs) {
        rc->differs = memcmp(rc->expect, p, whole) != 0;
        rc->expect += whole;
    }
    rc->left -= (int64_t)whole;
    used = whole;
    for (; rc->left > 0 && used < n; used++, rc->left--)
        if (p[used] != (rc->left == 2 ? '\r' : '\n'))
            return 0;
    if (rc->left == 0) {
        rc->in_bulk = false;
        if (s->op != OP_GET)
            wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
        else
            wb_worker_reply(w, c, rc->differs ? WB_REPLY_MISMATCH : WB_REPLY_OK);
    }
    return used;
}

/* Adds to a cut line. Returns the bytes used, 0 when the line breaks the protocol. */
static size_t take_cut_line(struct resp *r, struct wb_worker *w, struct wb_conn *c, const char *p,
                            size_t n)
{
    struct resp_conn *rc = c->proto;
    const char *lf = memchr(p, '\n', n);
    size_t used = lf ? (size_t)(lf - p) + 1 : n;
    size_t keep = rc->line_len < LINE_KEPT ? LINE_KEPT - rc->line_len : 0, len;

    memcpy(rc->line + (LINE_KEPT - keep), p, used < keep ? used : keep);
    rc->line_len += used;
    if (rc->line_len > LINE_MAX_BYTES)
        return 0;
    if (!lf)
        return used;
    len = LINE_KEPT;
    if (rc->line_len <= LINE_KEPT) {
        if (rc->line_len < 2 || rc->line[rc->line_len - 2] != '\r')
            return 0;
        len = rc->line_len - 2;
    }
    rc->line_len = 0;
    return take_line(r, w, c, rc->line, rc->line + len) < 0 ? 0 : used;
}

/* The usual replies when they are whole: +OK, and a short or long bulk that is not compared.
 * Returns where the reply ends, p when it is not one of these (the careful way then decides). */
static inline const char *take_usual(struct wb_worker *w, struct wb_conn *c, const char *p,
                                     const char *stop)
{
    const struct wb_slot *s = wb_worker_expects(c);
    const char *q = p + 1;
    int64_t n;

    if (!s || stop - p < 5)
        return p;
    if (*p == '+') {
        if (s->op != OP_SET || memcmp(p, "+OK\r\n", 5) != 0)
            return p;
        wb_worker_reply_ok(w, c, s);
        return p + 5;
    }
    if (*p != '$' || s->op != OP_GET || (s->flags & WB_SLOT_VERIFY) || *q < '0' || *q > '9')
        return p;
    for (n = 0; *q >= '0' && *q <= '9'; q++) { /* at most 7 digits, then there is a CR */
        n = n * 10 + (*q - '0');
        if (q - p > 7 || stop - q < 5)
            return p;
    }
    if (q[0] != '\r' || q[1] != '\n' || stop - q < n + 4 || q[n + 2] != '\r' || q[n + 3] != '\n')
        return p;
    wb_worker_reply_ok(w, c, s);
    return q + n + 4;
}

/* One line, or the beginning of one. Returns the bytes used, 0 when it breaks the protocol. */
static size_t take_text(struct resp *r, struct wb_worker *w, struct wb_conn *c, const char *p,
                        size_t n)
{
    const struct resp_conn *rc = c->proto;
    const char *lf = rc->line_len == 0 ? memchr(p, '\n', n) : NULL;

    if (!lf)
        return take_cut_line(r, w, c, p, n);
    if (lf == p || lf[-1] != '\r' || lf - p > LINE_MAX_BYTES || take_line(r, w, c, p, lf - 1) < 0)
        return 0;
    return (size_t)(lf - p) + 1;
}

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    struct resp_conn *rc = c->proto;
    const char *p = data, *stop = data + n;

    while (p < stop) {
        size_t used;
        if (!rc->in_bulk && rc->line_len == 0) {
            const char *after = take_usual(w, c, p, stop);
            if (after != p) {
                p = after;
                continue;
            }
        }
        used = rc->in_bulk ? take_bulk(w, c, p, (size_t)(stop - p))
                           : take_text(context, w, c, p, (size_t)(stop - p));
        if (used == 0)
            return -1;
        p += used;
    }
    return 0;
}

const struct wb_protocol wb_protocol_resp = {
    .name = "resp",
    .summary = "Redis protocol, version 2",
    .port = 6379,
    .ops = ops,
    .write_op = OP_SET,
    .read_op = OP_GET,
    .conn_size = sizeof(struct resp_conn),
    .setup = setup,
    .end = end,
    .request_max = request_max,
    .reset = reset,
    .build = build,
    .feed = feed,
};
