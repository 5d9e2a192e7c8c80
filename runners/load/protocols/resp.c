/*
 * RESP 2 and 3 (Redis, Valkey, KeyDB...): GET and SET, pipelined. Replies come in the order of the
 * requests and are parsed where they lie; of a reply that is cut by the end of a read only its
 * state is kept. A connection begins with HELLO 3 or AUTH where it is asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/password.h"
#include "runners/load/protocols/resp_cluster.h"
#include "runners/load/protocols/textual.h"
#include "runners/load/worker.h"
#include "server/base/mem.h"

#define BULK_MAX (512LL << 20)
#define PASSED_MAX 1000000 /* values of one greeting or push */

enum { OP_GET, OP_SET };

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

struct resp {
    const struct wb_load_data *data;
    struct wb_resp_cluster *cluster; /* NULL: none */
    struct wb_template get, set;     /* the latter up to the value */
    bool three;                      /* version 3 */
    struct wb_buf hello;             /* what a connection begins with; empty: nothing */
};

struct resp_conn {
    struct wb_pieces pieces;
    bool greeting;   /* the answer to the greeting is due */
    bool error_text; /* the block is the text of an error */
    int64_t pass;    /* values to pass over: of the answer to a greeting, of a push */
};

static void add_word(struct wb_buf *b, const char *word)
{
    wb_buf_addf(b, "$%zu\r\n%s\r\n", strlen(word), word);
}

static int make_hello(struct resp *r, const struct wb_load_job *job, struct wb_err *err)
{
    WB_AUTO_FREE char *password = NULL;
    int rc = wb_load_password(job->cql.password_file, &password, err), words;

    if (rc < 0)
        return rc;
    if (job->cql.user && !password)
        return wb_fail(err, WB_INVALID,
                       "user: no password; give --password-file or set WB_LOAD_PASSWORD");
    if (!r->three && !password)
        return 0;
    words = (r->three ? 2 : 0) + (password ? 2 : 0) + (job->cql.user || r->three) * !!password;
    wb_buf_addf(&r->hello, "*%d\r\n", words);
    if (r->three) {
        add_word(&r->hello, "HELLO");
        add_word(&r->hello, "3");
    }
    if (password) {
        add_word(&r->hello, "AUTH");
        if (job->cql.user || r->three) /* the name of who has none */
            add_word(&r->hello, job->cql.user ? job->cql.user : "default");
        add_word(&r->hello, password);
    }
    return wb_hello_check(&r->hello, err);
}

static void end(void *context)
{
    struct resp *r = context;

    if (!r)
        return;
    wb_resp_cluster_free(r->cluster);
    wb_template_release(&r->get);
    wb_template_release(&r->set);
    wb_buf_release(&r->hello);
    free(r);
}

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    struct resp *r = wb_calloc(1, sizeof(*r));
    WB_AUTO_FREE char *get = wb_strf("*2\r\n$3\r\nGET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *set = wb_strf("*3\r\n$3\r\nSET\r\n$%u\r\n", data->keys.bytes);
    WB_AUTO_FREE char *value =
        data->values.fixed ? wb_strf("\r\n$%u\r\n", data->values.most) : wb_strdup("\r\n$");

    int rc;

    r->data = data;
    r->hello = (struct wb_buf)WB_BUF_INIT(WB_HELLO_MAX);
    r->three = data->job->resp_version == 3;
    rc = make_hello(r, data->job, err);
    if (rc < 0) {
        end(r);
        return rc;
    }
    if (data->job->split == WB_LOAD_SPLIT_CLUSTER)
        r->cluster = wb_resp_cluster_new(&r->hello, data->tls);
    wb_template_init(&r->get, &data->keys, get, "\r\n");
    wb_template_init(&r->set, &data->keys, set, value);
    *context = r;
    return 0;
}

static int prepare(void *context, struct wb_target *target, const struct wb_cancel *cancel,
                   struct wb_err *err)
{
    struct resp *r = context;

    return r->cluster ? wb_resp_cluster_find(r->cluster, target, cancel, err) : 0;
}

static bool routed(const void *context)
{
    const struct resp *r = context;

    return r->cluster != NULL;
}

static uint32_t route(const void *context, uint64_t key, uint64_t index, unsigned attempt)
{
    const struct resp *r = context;

    (void)index;
    if (attempt == 0)
        return wb_resp_cluster_node(r->cluster, wb_slot_of(&r->data->keys, key));
    wb_resp_cluster_lost(r->cluster);
    return UINT32_MAX;
}

static void refresh(void *context, const struct wb_cancel *cancel)
{
    struct resp *r = context;

    if (r->cluster)
        wb_resp_cluster_refresh(r->cluster, cancel);
}

static size_t request_max(const void *context)
{
    const struct resp *r = context;

    return r->set.len + (r->data->values.fixed ? 0 : WB_VALUE_DIGITS + 2) + r->data->values.most +
           2 + (r->cluster ? sizeof(asking) - 1 : 0);
}

static void reset(void *context, void *conn_state)
{
    struct resp_conn *rc = conn_state;

    (void)context;
    wb_pieces_reset(&rc->pieces);
    rc->greeting = rc->error_text = false;
    rc->pass = 0;
}

static void greet(void *context, struct wb_worker *w, struct wb_conn *c)
{
    const struct resp *r = context;
    struct resp_conn *rc = c->proto;

    if (r->hello.len == 0) {
        wb_conn_greeted(w, c);
        return;
    }
    rc->greeting = true;
    rc->pass = 1;
    (void)wb_conn_say(w, c, r->hello.data, r->hello.len); /* there is room: see control_max */
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    const struct resp *r = context;
    const struct wb_load_data *d = r->data;

    (void)c;
    if (__builtin_expect(s->flags & WB_SLOT_ASK, 0)) {
        memcpy(out, asking, sizeof(asking) - 1);
        out += sizeof(asking) - 1;
    }
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

/* A value was passed over; after the last one of the answer to the greeting work begins. */
static void passed(struct resp_conn *rc, struct wb_worker *w, struct wb_conn *c)
{
    if (--rc->pass > 0 || !rc->greeting)
        return;
    rc->greeting = false;
    wb_conn_greeted(w, c);
}

/* A line of values that are not looked at. -1: the peer refuses the greeting, or it is none. */
static int pass_line(struct resp_conn *rc, struct wb_worker *w, struct wb_conn *c, const char *p,
                     const char *cr)
{
    bool null = cr - p == 3 && p[1] == '-' && p[2] == '1';
    int64_t n = 0;

    if (rc->greeting && (*p == '-' || *p == '!')) {
        wb_worker_refused(w, p + 1, (size_t)(cr - p - 1));
        return -1;
    }
    if (strchr("$=!*~>%|", *p) && !null &&
        (!wb_pieces_number(p + 1, (size_t)(cr - p - 1), &n) || n > BULK_MAX))
        return -1;
    switch (*p) {
    case '$':
    case '=':
    case '!':
        if (!null) {
            wb_pieces_block(&rc->pieces, n, NULL, 0);
            return 0;
        }
        break;
    case '%':
    case '|': /* a value follows that the attributes belong to */
        n = 2 * n + (*p == '|');
        __attribute__((fallthrough));
    case '*':
    case '~':
    case '>':
        rc->pass += n;
        if (rc->pass > PASSED_MAX)
            return -1;
        break;
    case '+':
    case '-':
    case ':':
    case ',':
    case '#':
    case '(':
    case '_':
        break;
    default:
        return -1;
    }
    passed(rc, w, c);
    return 0;
}

/* The class of an error by its first word. */
static enum wb_reply error_class(const char *text, size_t n)
{
    static const struct {
        const char *word;
        enum wb_reply class;
    } words[] = {
        {"NOAUTH ", WB_REPLY_UNAUTHORIZED},    {"NOPERM ", WB_REPLY_UNAUTHORIZED},
        {"LOADING ", WB_REPLY_UNAVAILABLE},    {"CLUSTERDOWN ", WB_REPLY_UNAVAILABLE},
        {"MASTERDOWN ", WB_REPLY_UNAVAILABLE}, {"NOREPLICAS ", WB_REPLY_UNAVAILABLE},
        {"TRYAGAIN ", WB_REPLY_UNAVAILABLE},   {"MOVED ", WB_REPLY_REDIRECTED},
        {"ASK ", WB_REPLY_REDIRECTED},         {"BUSY ", WB_REPLY_OVERLOADED},
        {"WRONGTYPE ", WB_REPLY_INVALID},
    };

    for (size_t i = 0; i < WB_LEN(words); i++)
        if (n >= strlen(words[i].word) && memcmp(text, words[i].word, strlen(words[i].word)) == 0)
            return words[i].class;
    return WB_REPLY_SERVER;
}

/* "MOVED SLOT HOST:PORT" or "ASK SLOT HOST:PORT": the operation is sent on. Returns 1 when it is
 * neither, 0, or WB_FEED_LEFT: the place of this node was given to the one that it names. */
static int send_on(struct resp *r, struct wb_worker *w, struct wb_conn *c, const char *text,
                   size_t n)
{
    bool ask = n > 4 && memcmp(text, "ASK ", 4) == 0;
    size_t word = ask ? 4 : 6;
    uint32_t t;

    if (!r->cluster || !w->shard || (!ask && (n <= 6 || memcmp(text, "MOVED ", 6) != 0)))
        return 1;
    t = wb_resp_cluster_moved(r->cluster, text + word, n - word, (uint32_t)c->target, ask);
    if (t == UINT32_MAX)
        wb_worker_error_text(w, text, n);
    wb_shard_redirect(w, c, t, ask);
    return t == c->target ? WB_FEED_LEFT : 0;
}

/* The whole reply is a line, or its first line opens a bulk. The line is without CRLF (of a
 * cut long one its beginning). Returns what feed is to return when that is negative. */
static int take_line(void *context, struct wb_worker *w, struct wb_conn *c, const char *p,
                     size_t len)
{
    struct resp *r = context;
    struct resp_conn *rc = c->proto;
    const char *cr = p + len;
    struct wb_slot *s = wb_worker_expects(c);
    int64_t n = 0;
    int rest;

    if (cr == p)
        return -1;
    if (r->three && *p == '>' && rc->pass == 0)
        rc->pass = 1;
    if (rc->pass > 0)
        return pass_line(rc, w, c, p, cr);
    if (!s)
        return -1;
    if (__builtin_expect(s->flags & WB_SLOT_ASK, 0)) { /* the answer to ASKING comes first */
        s->flags &= (uint8_t)~WB_SLOT_ASK;
        return *p == '+' || *p == '-' ? 0 : -1;
    }
    switch (*p) {
    case '+':
        if (s->op == OP_SET && cr - p == 3 && p[1] == 'O' && p[2] == 'K')
            wb_worker_reply(w, c, WB_REPLY_OK);
        else
            wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
        return 0;
    case '-':
        if ((rest = send_on(r, w, c, p + 1, (size_t)(cr - p - 1))) <= 0)
            return rest;
        wb_worker_error_text(w, p + 1, (size_t)(cr - p - 1));
        wb_worker_reply(w, c, error_class(p + 1, (size_t)(cr - p - 1)));
        return 0;
    case '_':
        if (!r->three || cr - p != 1)
            return -1;
        wb_worker_reply(w, c, s->op == OP_GET ? WB_REPLY_MISS : WB_REPLY_PROTOCOL);
        return 0;
    case '!':
        if (!r->three || !wb_pieces_number(p + 1, (size_t)(cr - p - 1), &n))
            return -1;
        rc->error_text = true;
        wb_pieces_block(&rc->pieces, n, NULL, 0);
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
            wb_pieces_block(&rc->pieces, n, &r->data->values, wb_worker_key(w, s));
        else
            wb_pieces_block(&rc->pieces, n, NULL, 0);
        return 0;
    default:
        return -1;
    }
}

/* A bulk reply has ended. */
static void end_bulk(void *context, struct wb_worker *w, struct wb_conn *c)
{
    struct resp_conn *rc = c->proto;
    const struct wb_pieces *p = &rc->pieces;

    (void)context;
    if (rc->pass > 0) {
        passed(rc, w, c);
    } else if (rc->error_text) {
        rc->error_text = false;
        wb_worker_error_text(w, "an error of several lines", 25);
        wb_worker_reply(w, c, WB_REPLY_SERVER);
    } else if (c->slots[c->head & c->mask].op != OP_GET) {
        wb_worker_reply(w, c, WB_REPLY_PROTOCOL);
    } else {
        wb_worker_reply(w, c, p->differs ? WB_REPLY_MISMATCH : WB_REPLY_OK);
    }
}

/* The usual replies when they are whole: +OK, and a short or long bulk that is not compared.
 * Returns where the reply ends, p when it is not one of these (the careful way then decides). */
static inline const char *take_usual(struct wb_worker *w, struct wb_conn *c, const char *p,
                                     const char *stop)
{
    const struct wb_slot *s = wb_worker_expects(c);
    const char *q = p + 1;
    int64_t n;

    if (!s || stop - p < 5 || (s->flags & WB_SLOT_ASK))
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

static inline const char *usual(void *context, struct wb_worker *w, struct wb_conn *c,
                                const char *p, const char *stop)
{
    const struct resp_conn *state = c->proto;

    (void)context;
    return state->pass == 0 ? take_usual(w, c, p, stop) : p;
}

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    static const struct wb_textual parts = {.usual = usual, .line = take_line, .block = end_bulk};
    struct resp_conn *state = c->proto;

    return wb_textual_feed(&parts, &state->pieces, context, w, c, data, n);
}

const struct wb_protocol wb_protocol_resp = {
    .name = "resp",
    .summary = "Redis protocol, version 2 or 3",
    .port = 6379,
    .ops = wb_ops_resp,
    .write_op = OP_SET,
    .read_op = OP_GET,
    .conn_size = sizeof(struct resp_conn),
    .control_max = WB_HELLO_MAX,
    .setup = setup,
    .end = end,
    .prepare = prepare,
    .routed = routed,
    .route = route,
    .refresh = refresh,
    .request_max = request_max,
    .reset = reset,
    .greet = greet,
    .build = build,
    .feed = feed,
};
