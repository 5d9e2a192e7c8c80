/*
 * The text protocol of memcached (its doc/protocol.txt), pipelined: replies come in the order of
 * the requests.
 *
 *     get KEY           VALUE KEY FLAGS BYTES, the value, END; or END: a miss
 *     mg KEY v          VA BYTES, the value; or EN: a miss
 *     set KEY 0 0 BYTES STORED
 *     add KEY 0 0 BYTES STORED, or NOT_STORED when the key is there: both are what was asked for
 *     delete KEY        DELETED, or NOT_FOUND: the same
 *
 * and in place of any of these ERROR, CLIENT_ERROR text or SERVER_ERROR text. A connection to a
 * server that asks for a password begins with a set of "USER PASSWORD" under any key.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/password.h"
#include "runners/load/protocols/textual.h"
#include "runners/load/worker.h"
#include "server/base/mem.h"

#define KEY_MOST 250 /* bytes of a key */
#define BLOCK_MAX (1LL << 30)

enum { OP_GET, OP_SET, OP_ADD, OP_DELETE, OP_MG, OPS };

struct memcached {
    const struct wb_load_data *data;
    struct wb_template request[OPS]; /* set, add: up to the value */
    struct wb_buf hello;             /* what a connection begins with; empty: nothing */
};

struct memcached_conn {
    struct wb_pieces pieces;
    bool end_due;  /* the value of a get was received, its END was not */
    bool greeting; /* the answer to the greeting is due */
};

static int make_hello(struct memcached *m, const struct wb_load_job *job, struct wb_err *err)
{
    WB_AUTO_FREE char *password = NULL;
    int rc = wb_load_password(job->cql.password_file, &password, err);

    if (rc < 0 || (!password && !job->cql.user))
        return rc;
    if (!password || !job->cql.user)
        return wb_fail(err, WB_INVALID,
                       "memcached wants a user and a password: give --user, and "
                       "--password-file or WB_LOAD_PASSWORD");
    wb_buf_addf(&m->hello, "set wb 0 0 %zu\r\n%s %s\r\n",
                strlen(job->cql.user) + 1 + strlen(password), job->cql.user, password);
    return wb_hello_check(&m->hello, err);
}

static void end(void *context)
{
    struct memcached *m = context;

    if (!m)
        return;
    for (int i = 0; i < OPS; i++)
        wb_template_release(&m->request[i]);
    wb_buf_release(&m->hello);
    free(m);
}

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    WB_AUTO_FREE char *size =
        data->values.fixed ? wb_strf(" 0 0 %u\r\n", data->values.most) : wb_strdup(" 0 0 ");
    const struct {
        const char *head, *tail;
    } text[OPS] = {
        [OP_GET] = {"get ", "\r\n"}, [OP_SET] = {"set ", size},         [OP_ADD] = {"add ", size},
        [OP_MG] = {"mg ", " v\r\n"}, [OP_DELETE] = {"delete ", "\r\n"},
    };
    struct memcached *m;
    int rc;

    if (data->keys.bytes > KEY_MOST)
        return wb_fail(err, WB_INVALID, "key-bytes: %u is more than memcached's %d",
                       data->keys.bytes, KEY_MOST);
    m = wb_calloc(1, sizeof(*m));
    m->data = data;
    m->hello = (struct wb_buf)WB_BUF_INIT(WB_HELLO_MAX);
    rc = make_hello(m, data->job, err);
    if (rc < 0) {
        end(m);
        return rc;
    }
    for (int i = 0; i < OPS; i++)
        wb_template_init(&m->request[i], &data->keys, text[i].head, text[i].tail);
    *context = m;
    return 0;
}

static size_t request_max(const void *context)
{
    const struct memcached *m = context;

    return m->request[OP_SET].len + (m->data->values.fixed ? 0 : WB_VALUE_DIGITS + 2) +
           m->data->values.most + 2;
}

static void reset(void *context, void *conn_state)
{
    struct memcached_conn *mc = conn_state;

    (void)context;
    wb_pieces_reset(&mc->pieces);
    mc->end_due = mc->greeting = false;
}

static void greet(void *context, struct wb_worker *w, struct wb_conn *c)
{
    const struct memcached *m = context;
    struct memcached_conn *mc = c->proto;

    if (m->hello.len == 0) {
        wb_conn_greeted(w, c);
        return;
    }
    mc->greeting = true;
    (void)wb_conn_say(w, c, m->hello.data, m->hello.len); /* there is room: see control_max */
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    const struct memcached *m = context;
    const struct wb_load_data *d = m->data;

    (void)c;
    out = wb_template_write(&m->request[s->op], &d->keys, key, out);
    if (s->op != OP_SET && s->op != OP_ADD)
        return out;
    if (__builtin_expect(!d->values.fixed, 0)) {
        out = wb_values_digits(wb_values_size(&d->values, key), out);
        memcpy(out, "\r\n", 2);
        out += 2;
    }
    out += wb_values_write(&d->values, key, out);
    memcpy(out, "\r\n", 2);
    return out + 2;
}

static bool is(const char *line, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(line, word, len) == 0;
}

static bool begins(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && memcmp(line, word, n) == 0;
}

/* The next of words parted by one blank; false at the end. */
static bool next_word(const char **p, const char *stop, const char **word, size_t *n)
{
    const char *blank;

    if (*p >= stop)
        return false;
    blank = memchr(*p, ' ', (size_t)(stop - *p));
    *word = *p;
    *n = (size_t)((blank ? blank : stop) - *p);
    *p = blank ? blank + 1 : stop;
    return *n > 0;
}

/* Whether the key of a value is the one that was asked for. */
static bool right_key(const struct memcached *m, const struct wb_worker *w, const struct wb_slot *s,
                      const char *key, size_t n)
{
    char want[KEY_MOST];

    if (n != m->data->keys.bytes)
        return false;
    wb_keys_text(&m->data->keys, wb_worker_key(w, s), want);
    return memcmp(key, want, n) == 0;
}

/* "VALUE KEY FLAGS BYTES[ CAS]" or "VA BYTES[ FLAG...]" opens a block. -1: it does not. */
static int open_block(const struct memcached *m, struct wb_worker *w, struct wb_conn *c,
                      const struct wb_slot *s, const char *line, size_t len)
{
    struct memcached_conn *mc = c->proto;
    const char *p = line, *stop = line + len, *word = NULL, *key = NULL;
    bool verify = s->flags & WB_SLOT_VERIFY;
    size_t n = 0, key_len = 0;
    int64_t bytes = 0, flags = 0;

    if (!next_word(&p, stop, &word, &n))
        return -1;
    if (s->op == OP_GET &&
        (!next_word(&p, stop, &key, &key_len) || !next_word(&p, stop, &word, &n) || n > 10))
        return -1;
    if (s->op == OP_GET && n < 10 && !wb_pieces_number(word, n, &flags)) /* 10: 32 bits */
        return -1;
    if (!next_word(&p, stop, &word, &n) || !wb_pieces_number(word, n, &bytes) || bytes > BLOCK_MAX)
        return -1;
    wb_pieces_block(&mc->pieces, bytes, verify ? &m->data->values : NULL,
                    verify ? wb_worker_key(w, s) : 0);
    mc->pieces.differs |= verify && s->op == OP_GET && !right_key(m, w, s, key, key_len);
    mc->end_due = s->op == OP_GET;
    return 0;
}

/* A reply of the classes that stand in place of any other. */
static bool failed(struct wb_worker *w, struct wb_conn *c, const char *line, size_t len)
{
    enum wb_reply class;

    if (is(line, len, "ERROR") || begins(line, len, "CLIENT_ERROR"))
        class = begins(line, len, "CLIENT_ERROR unauth") ? WB_REPLY_UNAUTHORIZED : WB_REPLY_INVALID;
    else if (begins(line, len, "SERVER_ERROR"))
        class = WB_REPLY_SERVER;
    else
        return false;
    wb_worker_error_text(w, line, len);
    wb_worker_reply(w, c, class);
    return true;
}

/* What a line means for the operation: OK, MISS, or that it is none of its answers. */
static enum wb_reply judge(uint8_t op, const char *line, size_t len)
{
    static const struct {
        uint8_t op, reply;
        const char *line;
    } answers[] = {
        {OP_GET, WB_REPLY_MISS, "END"},      {OP_MG, WB_REPLY_MISS, "EN"},
        {OP_SET, WB_REPLY_OK, "STORED"},     {OP_SET, WB_REPLY_SERVER, "NOT_STORED"},
        {OP_ADD, WB_REPLY_OK, "STORED"},     {OP_ADD, WB_REPLY_OK, "NOT_STORED"},
        {OP_DELETE, WB_REPLY_OK, "DELETED"}, {OP_DELETE, WB_REPLY_OK, "NOT_FOUND"},
    };

    for (size_t i = 0; i < WB_LEN(answers); i++)
        if (answers[i].op == op && is(line, len, answers[i].line))
            return (enum wb_reply)answers[i].reply;
    return WB_REPLY_PROTOCOL;
}

/* Whether a line is an answer at all, to whatever: then the operation fails and the connection
 * lives; after anything else nobody knows what comes next. */
static bool is_answer(const char *line, size_t len)
{
    static const char *const words[] = {"STORED", "NOT_STORED", "DELETED", "NOT_FOUND", "END", "EN",
                                        "HD",     "EXISTS",     "NF",      "NS",        "EX"};

    for (size_t i = 0; i < WB_LEN(words); i++)
        if (is(line, len, words[i]))
            return true;
    return false;
}

/* One line without its CRLF. -1: it breaks the protocol. */
static int take_line(void *context, struct wb_worker *w, struct wb_conn *c, const char *line,
                     size_t len)
{
    const struct memcached *m = context;
    struct memcached_conn *mc = c->proto;
    struct wb_slot *s = wb_worker_expects(c);
    enum wb_reply reply;

    if (mc->greeting) {
        mc->greeting = false;
        if (!is(line, len, "STORED")) {
            wb_worker_refused(w, line, len);
            return -1;
        }
        wb_conn_greeted(w, c);
        return 0;
    }
    if (!s)
        return -1;
    if (mc->end_due) {
        mc->end_due = false;
        if (!is(line, len, "END"))
            return -1;
        wb_worker_reply(w, c, mc->pieces.differs ? WB_REPLY_MISMATCH : WB_REPLY_OK);
        return 0;
    }
    if ((s->op == OP_GET && begins(line, len, "VALUE ")) ||
        (s->op == OP_MG && begins(line, len, "VA ")))
        return open_block(m, w, c, s, line, len);
    if (failed(w, c, line, len))
        return 0;
    reply = judge(s->op, line, len);
    if (reply == WB_REPLY_PROTOCOL && !is_answer(line, len))
        return -1;
    if (reply == WB_REPLY_SERVER)
        wb_worker_error_text(w, line, len);
    wb_worker_reply(w, c, reply);
    return 0;
}

/* The usual replies when they are whole: STORED, and a value that is not compared. Returns where
 * the reply ends, p when it is not one of these (the careful way then decides). */
static inline const char *take_usual(const struct memcached *m, struct wb_worker *w,
                                     struct wb_conn *c, const char *p, const char *stop)
{
    const struct wb_slot *s = wb_worker_expects(c);
    size_t key = m->data->keys.bytes;
    const char *q;
    int64_t n;

    if (!s || stop - p < 8)
        return p;
    if (s->op == OP_SET || s->op == OP_ADD) {
        if (memcmp(p, "STORED\r\n", 8) != 0)
            return p;
        wb_worker_reply_ok(w, c, s);
        return p + 8;
    }
    if (s->op != OP_GET || (s->flags & WB_SLOT_VERIFY) || (size_t)(stop - p) < key + 18 ||
        memcmp(p, "VALUE ", 6) != 0 || memcmp(p + 6 + key, " 0 ", 3) != 0)
        return p;
    q = p + key + 9;
    for (n = 0; *q >= '0' && *q <= '9'; q++) {
        n = n * 10 + (*q - '0');
        if (q - p > (ptrdiff_t)key + 16 || stop - q < 9)
            return p;
    }
    if (q == p + key + 9 || stop - q < n + 9 || memcmp(q, "\r\n", 2) != 0 ||
        memcmp(q + n + 2, "\r\nEND\r\n", 7) != 0)
        return p;
    wb_worker_reply_ok(w, c, s);
    return q + n + 9;
}

static inline const char *usual(void *context, struct wb_worker *w, struct wb_conn *c,
                                const char *p, const char *stop)
{
    const struct memcached_conn *mc = c->proto;

    return mc->end_due ? p : take_usual(context, w, c, p, stop);
}

/* Of a get, END follows. */
static void end_block(void *context, struct wb_worker *w, struct wb_conn *c)
{
    const struct memcached_conn *mc = c->proto;

    (void)context;
    if (!mc->end_due)
        wb_worker_reply(w, c, mc->pieces.differs ? WB_REPLY_MISMATCH : WB_REPLY_OK);
}

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    static const struct wb_textual parts = {.usual = usual, .line = take_line, .block = end_block};
    struct memcached_conn *mc = c->proto;

    return wb_textual_feed(&parts, &mc->pieces, context, w, c, data, n);
}

const struct wb_protocol wb_protocol_memcached = {
    .name = "memcached",
    .summary = "memcached's text protocol",
    .port = 11211,
    .ops = wb_ops_memcached,
    .write_op = OP_SET,
    .read_op = OP_GET,
    .conn_size = sizeof(struct memcached_conn),
    .control_max = WB_HELLO_MAX,
    .setup = setup,
    .end = end,
    .request_max = request_max,
    .reset = reset,
    .greet = greet,
    .build = build,
    .feed = feed,
};
