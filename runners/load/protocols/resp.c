/*
 * RESP 2 (Redis, Valkey, KeyDB...): GET and SET, pipelined. Replies come in the order of the
 * requests and are parsed where they lie; of a reply that is cut by the end of a read only its
 * state is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/protocols/textual.h"
#include "runners/load/worker.h"
#include "server/base/mem.h"

#define BULK_MAX (512LL << 20)

enum { OP_GET, OP_SET };
static const char *const ops[] = {"get", "set", NULL};

struct resp {
    const struct wb_load_data *data;
    struct wb_template get, set; /* the latter up to the value */
};

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    struct resp *r = wb_calloc(1, sizeof(*r));
    WB_AUTO_FREE char *get = wb_strf("*2\r\n$3\r\nGET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *set = wb_strf("*3\r\n$3\r\nSET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *value =
        data->values.fixed ? wb_strf("\r\n$%u\r\n", data->values.most) : wb_strdup("\r\n$");

    (void)err;
    r->data = data;
    wb_template_init(&r->get, &data->keys, get, "\r\n");
    wb_template_init(&r->set, &data->keys, set, value);
    *context = r;
    return 0;
}

static void end(void *context)
{
    struct resp *r = context;

    if (!r)
        return;
    wb_template_release(&r->get);
    wb_template_release(&r->set);
    free(r);
}

static size_t request_max(const void *context)
{
    const struct resp *r = context;

    return r->set.len + (r->data->values.fixed ? 0 : WB_VALUE_DIGITS + 2) + r->data->values.most +
           2;
}

static void reset(void *context, void *conn_state)
{
    (void)context;
    wb_pieces_reset(conn_state);
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    const struct resp *r = context;
    const struct wb_load_data *d = r->data;

    (void)c;
    if (s->op == OP_GET)
        return wb_template_write(&r->get, &d->keys, key, out);
    out = wb_template_write(&r->set, &d->keys, key, out);
    if (__builtin_expect(!d->values.fixed, 0)) {
        out = wb_values_digits(wb_values_size(&d->values, key), out);
        memcpy(out, "\r\n", 2);
        out += 2;
    }
    out += wb_values_write(&d->values, key, out);
    memcpy(out, "\r\n", 2);
    return out + 2;
}

/* The whole reply is a line, or its first line opens a bulk. p..cr is the line without CRLF (of a
 * cut long one its beginning). Returns -1 when it breaks the protocol. */
static int take_line(struct resp *r, struct wb_worker *w, struct wb_conn *c, const char *p,
                     const char *cr)
{
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
        if (cr - p == 3 && p[1] == '-' && p[2] == '1') {
            wb_worker_reply(w, c, s->op == OP_GET ? WB_REPLY_MISS : WB_REPLY_PROTOCOL);
            return 0;
        }
        if (!wb_pieces_number(p + 1, (size_t)(cr - p - 1), &n) || n > BULK_MAX)
            return -1;
        if (s->flags & WB_SLOT_VERIFY)
            wb_pieces_block(c->proto, n, &r->data->values, wb_worker_key(w, s));
        else
            wb_pieces_block(c->proto, n, NULL, 0);
        return 0;
    default:
        return -1;
    }
}

/* A bulk reply has ended. */
static void end_bulk(struct wb_worker *w, struct wb_conn *c)
{
    const struct wb_pieces *p = c->proto;

    if (c->slots[c->head & c->mask].op != OP_GET)
        wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
    else
        wb_worker_reply(w, c, p->differs ? WB_REPLY_MISMATCH : WB_REPLY_OK);
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

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    struct wb_pieces *pieces = c->proto;
    const char *p = data, *stop = data + n, *line;
    size_t used, len;

    while (p < stop) {
        if (wb_pieces_whole(pieces)) {
            const char *after = take_usual(w, c, p, stop);
            if (after != p) {
                p = after;
                continue;
            }
        }
        if (pieces->in_block) {
            used = wb_pieces_pass(pieces, p, (size_t)(stop - p));
            if (used > 0 && !pieces->in_block)
                end_bulk(w, c);
        } else {
            used = wb_pieces_line(pieces, p, (size_t)(stop - p), &line, &len);
            if (used > 0 && line && take_line(context, w, c, line, line + len) < 0)
                return -1;
        }
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
    .conn_size = sizeof(struct wb_pieces),
    .setup = setup,
    .end = end,
    .request_max = request_max,
    .reset = reset,
    .build = build,
    .feed = feed,
};
