/*
 * A small CQL server for tests and benchmarks of load generators: speaks versions 4 and 5
 * (segments, LZ4), prepares statements on a table of keys and values, keeps what is written, tells
 * of a made-up cluster, and misbehaves as asked: answers late, not at all during a known pause,
 * with errors, or forgets statements. It counts what it was sent, so that a client's own counts can
 * be checked.
 *
 *     cql_responder [--address A] [--port N] [--cluster A,B,...] [--version 4|5] [--user U:P]
 *                   [--value BYTES] [--delay-us N] [--slow-every N --slow-us N] [--rate N]
 *                   [--pause-at MS --pause-for MS] [--error-every N] [--error-code N]
 *                   [--silent-every N] [--close-every N] [--forget-every N] [--report FILE]
 *
 * Prints "port N" when it listens. Without --value it keeps what is written; with it every key has
 * a value of so many bytes. --cluster: addresses of all its servers on the same port, each with 8
 * tokens, evenly. --slow-every N: each N-th answer takes --slow-us instead. --rate: most answers a
 * second. --pause-at counts from the first operation. --silent-every N: the N-th operation is never
 * answered. --forget-every N: at the N-th operation its statement is no longer prepared. On SIGTERM
 * or SIGINT it writes its report and ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "runners/load/protocols/cql_message.h"
#include "runners/load/protocols/cql_murmur.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "server/base/units.h"
#include "tests/support/cql_system.h"
#include "tests/support/serving.h"
#include "tests/support/store.h"

#define EVENTS 64
#define READ_SIZE (256u << 10)
#define OUT_MAX (512u << 20)

enum statement { SELECT, INSERT, UPDATE, DELETE, STATEMENTS };

struct peer {
    int fd;
    bool in, dirty, end; /* in: logged in */
    struct wb_cql_reader reader;
    struct wb_buf envelopes, out; /* to be framed; ready to send */
    struct peer *next_dirty, *next;
};

struct answer { /* waits for its time */
    struct peer *to;
    size_t len;
    char envelope[];
};

struct options {
    int64_t port, version, value, delay_us, slow_every, slow_us, rate, pause_at_ms, pause_for_ms,
        error_every, error_code, silent_every, close_every, forget_every;
    const char *address, *cluster, *user, *report;
};

struct responder {
    struct options o;
    int epfd, listen_fd, signal_fd;
    struct made_up cluster;
    struct wb_strv system; /* texts of prepared statements on system tables */
    struct dues queue;
    struct peer *dirty, *peers;
    struct store store;
    char *canned; /* the value of every key */
    bool forgotten[STATEMENTS];
    int64_t first, last_due;
    int64_t ops, selects, writes, batches, errors, swallowed, closed, unprepared, connections,
        prepares, strays;
    bool paused, end;
    char *rbuf;
};

/* --- answers --- */

static size_t begin(struct wb_buf *b, const struct peer *p, const struct wb_cql_envelope *e,
                    unsigned opcode)
{
    char head[WB_CQL_HEADER];
    size_t at = b->len;

    wb_cql_put_header(head, p->reader.version | WB_CQL_REPLY, (uint16_t)e->stream, opcode, 0);
    wb_buf_add(b, head, sizeof(head));
    return at;
}

static void end(struct wb_buf *b, size_t at)
{
    wb_cql_put32(b->data + at + 5, (uint32_t)(b->len - at - WB_CQL_HEADER));
}

static void mark_dirty(struct responder *r, struct peer *p)
{
    if (p->dirty)
        return;
    p->dirty = true;
    p->next_dirty = r->dirty;
    r->dirty = p;
}

static void fail(struct peer *p, const struct wb_cql_envelope *e, unsigned code, const char *text)
{
    size_t at = begin(&p->envelopes, p, e, WB_CQL_ERROR);

    add32(&p->envelopes, code);
    add_string(&p->envelopes, text);
    if (code == 0x1000) { /* unavailable: level, required, alive */
        add16(&p->envelopes, 1);
        add32(&p->envelopes, 1);
        add32(&p->envelopes, 0);
    }
    end(&p->envelopes, at);
}

static void add_void(struct wb_buf *b, const struct peer *p, const struct wb_cql_envelope *e)
{
    size_t at = begin(b, p, e, WB_CQL_RESULT);

    add32(b, WB_CQL_VOID);
    end(b, at);
}

/* --- statements --- */

static void make_id(enum statement s, char id[16])
{
    memset(id, 'a' + s, 16);
}

static int statement_of(const char *text, size_t n)
{
    static const char *const words[STATEMENTS] = {"SELECT", "INSERT", "UPDATE", "DELETE"};

    for (int s = 0; s < STATEMENTS; s++)
        if (n > 6 && strncasecmp(text, words[s], 6) == 0)
            return s;
    return -1;
}

static void add_columns(struct wb_buf *b, const char *const *names)
{
    add_string(b, "wb");
    add_string(b, "kv");
    for (; *names; names++) {
        add_string(b, *names);
        add16(b, strcmp(*names, "key") == 0 ? WB_CQL_VARCHAR : WB_CQL_BLOB);
    }
}

static bool is_system(const char *text)
{
    return strncasecmp(text, "SELECT ", 7) == 0 && strcasestr(text, " from system");
}

/* Its id is its number behind a letter that no other statement has. */
static void prepare_system(struct responder *r, struct peer *p, const struct wb_cql_envelope *e,
                           const char *text)
{
    struct wb_buf *b = &p->envelopes;
    size_t at = begin(b, p, e, WB_CQL_RESULT);

    wb_strv_add(&r->system, text);
    add32(b, WB_CQL_PREPARED);
    for (int i = 0; i < (p->reader.version >= 5 ? 2 : 1); i++) {
        add16(b, 5);
        wb_buf_addc(b, 'z');
        add32(b, (uint32_t)r->system.n - 1);
    }
    add32(b, WB_CQL_GLOBAL_TABLE);
    add32(b, 0);
    add32(b, 0);
    add_string(b, "system");
    add_string(b, "table");
    add_system_prepared(b, text);
    end(b, at);
}

static void prepare(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    static const char *const bind[STATEMENTS][3] = {
        {"key"}, {"key", "value"}, {"value", "key"}, {"key"}};
    static const char *const value[] = {"value", NULL};
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    struct wb_cql_view text = wb_cql_take_bytes(&c);
    WB_AUTO_FREE char *copy = text.p ? wb_strndup(text.p, text.n) : wb_strdup("");
    int s = text.p ? statement_of(text.p, text.n) : -1;
    struct wb_buf *b = &p->envelopes;
    char id[16];
    size_t at;

    r->prepares++;
    if (is_system(copy)) {
        prepare_system(r, p, e, copy);
        return;
    }
    if (s < 0) {
        fail(p, e, 0x2000, "line 1:0 no viable alternative");
        return;
    }
    r->forgotten[s] = false;
    make_id((enum statement)s, id);
    at = begin(b, p, e, WB_CQL_RESULT);
    add32(b, WB_CQL_PREPARED);
    add16(b, sizeof(id));
    wb_buf_add(b, id, sizeof(id));
    if (p->reader.version >= 5) {
        add16(b, sizeof(id));
        wb_buf_add(b, id, sizeof(id));
    }
    add32(b, WB_CQL_GLOBAL_TABLE);
    add32(b, bind[s][1] ? 2 : 1);
    add32(b, 1);
    add16(b, s == UPDATE);
    add_columns(b, bind[s]);
    if (s == SELECT) {
        add32(b, WB_CQL_GLOBAL_TABLE);
        add32(b, 1);
        add_columns(b, value);
    } else {
        add32(b, WB_CQL_NO_METADATA);
        add32(b, 0);
    }
    end(b, at);
}

static void add_row(struct responder *r, struct wb_buf *b, const struct peer *p,
                    const struct wb_cql_envelope *e, struct wb_cql_view key)
{
    struct entry *found = r->canned || r->store.size == 0 ? NULL : store_find(&r->store, key);
    const char *value = r->canned ? r->canned : found ? found->value : NULL;
    size_t n = r->canned ? (size_t)r->o.value : found ? found->value_len : 0;
    size_t at = begin(b, p, e, WB_CQL_RESULT);

    add32(b, WB_CQL_ROWS);
    add32(b, WB_CQL_NO_METADATA);
    add32(b, 1);
    add32(b, value != NULL);
    if (value)
        add_bytes(b, value, n);
    end(b, at);
}

/* When the answer to the newest operation is due; 0: at once. */
static int64_t due_at(struct responder *r)
{
    int64_t us = r->o.delay_us, at;

    if (every(r->o.slow_every, r->ops))
        us = r->o.slow_us;
    if (us == 0 && r->o.rate == 0)
        return 0;
    at = wb_now_ns(NULL) + us * WB_US;
    if (r->o.rate > 0) {
        int64_t next = r->last_due + WB_SEC / r->o.rate;
        at = at > next ? at : next;
        r->last_due = at;
    }
    return at;
}

/* Counts an operation and says whether it gets an answer. */
static bool admit(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    r->ops++;
    if (r->first == 0)
        r->first = wb_now_ns(NULL);
    if (every(r->o.close_every, r->ops)) {
        r->closed++;
        p->end = true;
        return false;
    }
    if (every(r->o.silent_every, r->ops)) {
        r->swallowed++;
        return false;
    }
    if (every(r->o.error_every, r->ops)) {
        r->errors++;
        fail(p, e, (unsigned)r->o.error_code, "planted");
        return false;
    }
    return true;
}

/* Sends what was added to the peer's envelopes since `from`, at its time. */
static void time_answer(struct responder *r, struct peer *p, size_t from)
{
    int64_t at = due_at(r);
    size_t n = p->envelopes.len - from;
    struct answer *a;

    if (at == 0)
        return;
    a = wb_calloc(1, sizeof(*a) + n);
    *a = (struct answer){.to = p, .len = n};
    memcpy(a->envelope, p->envelopes.data + from, n);
    p->envelopes.len = from;
    due_add(&r->queue, at, a);
}

static bool is_prepared(struct responder *r, struct peer *p, const struct wb_cql_envelope *e, int s,
                        struct wb_cql_view id)
{
    size_t at;

    if (every(r->o.forget_every, r->ops))
        r->forgotten[s] = true;
    if (!r->forgotten[s])
        return true;
    r->unprepared++;
    at = begin(&p->envelopes, p, e, WB_CQL_ERROR);
    add32(&p->envelopes, WB_CQL_CODE_UNPREPARED);
    add_string(&p->envelopes, "prepared query not found");
    add16(&p->envelopes, (unsigned)id.n);
    wb_buf_add(&p->envelopes, id.p, id.n);
    end(&p->envelopes, at);
    return false;
}

/* Whose a key is: the first of all tokens, which are evenly spread, at its own or behind. */
static int owner_of(const struct responder *r, struct wb_cql_view key)
{
    uint64_t n = (uint64_t)r->cluster.n, step = UINT64_MAX / (n * TOKENS);
    uint64_t at = (uint64_t)wb_cql_token(key.p, key.n) + (1ull << 63);

    return (int)((at / step + (at % step > 0)) % (n * TOKENS) % n);
}

static void select_system(struct responder *r, struct peer *p, const struct wb_cql_envelope *e,
                          const char *text);

static int execute(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    struct wb_cql_view id = wb_cql_take_string(&c), v[2] = {{0}};
    size_t from = p->envelopes.len;
    int s = id.n == 16 ? id.p[0] - 'a' : -1;
    unsigned n;

    if (id.n == 5 && id.p[0] == 'z' && wb_cql_get32(id.p + 1) < r->system.n) {
        select_system(r, p, e, r->system.v[wb_cql_get32(id.p + 1)]);
        return 0;
    }
    if (p->reader.version >= 5)
        (void)wb_cql_take_string(&c);
    (void)wb_cql_take16(&c); /* consistency */
    (void)(p->reader.version >= 5 ? wb_cql_take32(&c) : wb_cql_take8(&c));
    n = wb_cql_take16(&c);
    for (unsigned i = 0; i < n && i < 2; i++)
        v[i] = wb_cql_take_bytes(&c);
    if (c.bad || s < 0 || s >= STATEMENTS || n != (s == INSERT || s == UPDATE ? 2u : 1u))
        return -1;
    r->strays += owner_of(r, v[s == UPDATE]) != r->cluster.self;
    if (!admit(r, p, e) || !is_prepared(r, p, e, s, id))
        return 0;
    if (s == SELECT) {
        r->selects++;
        add_row(r, &p->envelopes, p, e, v[0]);
    } else {
        r->writes++;
        if (!r->canned)
            store_keep(&r->store, v[s == UPDATE],
                       s == DELETE ? (struct wb_cql_view){0} : v[s == INSERT]);
        add_void(&p->envelopes, p, e);
    }
    time_answer(r, p, from);
    return 0;
}

static int batch(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    size_t from = p->envelopes.len;
    unsigned n;

    (void)wb_cql_take8(&c);
    n = wb_cql_take16(&c);
    for (unsigned i = 0; i < n && !c.bad; i++) {
        struct wb_cql_view id, key, value;
        if (wb_cql_take8(&c) != 1)
            return -1;
        id = wb_cql_take_string(&c);
        if (wb_cql_take16(&c) != 2 || id.n != 16)
            return -1;
        key = wb_cql_take_bytes(&c);
        value = wb_cql_take_bytes(&c);
        if (!c.bad && !r->canned)
            store_keep(&r->store, key, value);
    }
    if (c.bad)
        return -1;
    if (!admit(r, p, e))
        return 0;
    r->batches++;
    add_void(&p->envelopes, p, e);
    time_answer(r, p, from);
    return 0;
}

static void select_system(struct responder *r, struct peer *p, const struct wb_cql_envelope *e,
                          const char *text)
{
    size_t at = begin(&p->envelopes, p, e, WB_CQL_RESULT);

    add_system_rows(&r->cluster, &p->envelopes, text);
    end(&p->envelopes, at);
}

static void use_keyspace(struct peer *p, const struct wb_cql_envelope *e)
{
    size_t at = begin(&p->envelopes, p, e, WB_CQL_RESULT);

    add32(&p->envelopes, WB_CQL_KEYSPACE);
    add_string(&p->envelopes, "wb");
    end(&p->envelopes, at);
}

static int query(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    struct wb_cql_view v = wb_cql_take_bytes(&c);
    WB_AUTO_FREE char *text = v.p ? wb_strndup(v.p, v.n) : NULL;

    if (!text)
        return -1;
    if (is_system(text))
        select_system(r, p, e, text);
    else if (strncasecmp(text, "USE ", 4) == 0)
        use_keyspace(p, e);
    else if (strncasecmp(text, "CREATE ", 7) == 0)
        add_void(&p->envelopes, p, e);
    else
        fail(p, e, 0x2200, "unconfigured table");
    return 0;
}

/* --- dialogue --- */

static void supported(struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_buf *b = &p->envelopes;
    size_t at = begin(b, p, e, WB_CQL_SUPPORTED);

    add16(b, 3);
    add_string(b, "CQL_VERSION");
    add16(b, 1);
    add_string(b, "3.4.7");
    add_string(b, "COMPRESSION");
    add16(b, 1);
    add_string(b, "lz4");
    add_string(b, "PROTOCOL_VERSIONS");
    add16(b, 2);
    add_string(b, "4/v4");
    add_string(b, "5/v5");
    end(b, at);
}

static void flush_peer(struct responder *r, struct peer *p);

static int startup(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    size_t at;

    for (unsigned n = wb_cql_take16(&c); n > 0 && !c.bad; n--) {
        struct wb_cql_view key = wb_cql_take_string(&c), value = wb_cql_take_string(&c);
        if (wb_cql_view_is(key, "COMPRESSION") && wb_cql_view_is(value, "lz4"))
            p->reader.lz4 = true;
    }
    if (r->o.user) {
        at = begin(&p->envelopes, p, e, WB_CQL_AUTHENTICATE);
        add_string(&p->envelopes, "org.apache.cassandra.auth.PasswordAuthenticator");
        end(&p->envelopes, at);
    } else {
        p->in = true;
        end(&p->envelopes, begin(&p->envelopes, p, e, WB_CQL_READY));
    }
    flush_peer(r, p); /* bare; framed from here on */
    p->reader.framed = p->reader.version >= 5;
    return c.bad ? -1 : 0;
}

static void auth_response(struct responder *r, struct peer *p, const struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    struct wb_cql_view v = wb_cql_take_bytes(&c);
    WB_AUTO_FREE char *want = wb_strf(":%s", r->o.user);
    size_t at;

    p->in = v.p && v.n == strlen(want);
    for (size_t i = 0; i < v.n && p->in; i++)
        p->in = v.p[i] == (want[i] == ':' ? 0 : want[i]);
    if (!p->in) {
        fail(p, e, 0x0100, "Provided username and/or password are incorrect");
        return;
    }
    at = begin(&p->envelopes, p, e, WB_CQL_AUTH_SUCCESS);
    add32(&p->envelopes, UINT32_MAX);
    end(&p->envelopes, at);
}

struct taking {
    struct responder *r;
    struct peer *p;
};

static int take_request(void *arg, const struct wb_cql_envelope *e)
{
    const struct taking *t = arg;
    struct responder *r = t->r;
    struct peer *p = t->p;

    mark_dirty(r, p);
    if (p->end)
        return 0;
    if (e->version > r->o.version || e->version < 4) {
        p->reader.version = (uint8_t)r->o.version;
        fail(p, e, WB_CQL_CODE_PROTOCOL, "Invalid or unsupported protocol version");
        p->end = true;
        return 0;
    }
    p->reader.version = e->version;
    switch (e->opcode) {
    case WB_CQL_OPTIONS:
        supported(p, e);
        return 0;
    case WB_CQL_STARTUP:
        return startup(r, p, e);
    case WB_CQL_AUTH_RESPONSE:
        auth_response(r, p, e);
        return 0;
    default:
        break;
    }
    if (!p->in) {
        fail(p, e, 0x0100, "not logged in");
        return 0;
    }
    switch (e->opcode) {
    case WB_CQL_REGISTER:
        end(&p->envelopes, begin(&p->envelopes, p, e, WB_CQL_READY));
        return 0;
    case WB_CQL_QUERY:
        return query(r, p, e);
    case WB_CQL_PREPARE:
        prepare(r, p, e);
        return 0;
    case WB_CQL_EXECUTE:
        return execute(r, p, e);
    case WB_CQL_BATCH:
        return batch(r, p, e);
    default:
        return -1;
    }
}

/* --- sockets --- */

static void hang_up(struct peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
    wb_cql_reader_release(&p->reader);
    wb_buf_release(&p->envelopes);
    wb_buf_release(&p->out);
}

/* Frames what is to be answered: as many whole envelopes as go into a segment. */
static void frame(struct peer *p)
{
    size_t at = 0;

    while (at < p->envelopes.len) {
        const char *from = p->envelopes.data + at;
        size_t n = 0, one, room;
        char *out, *scratch, *stop;
        while (at + n < p->envelopes.len) {
            one = WB_CQL_HEADER + wb_cql_get32(from + n + 5);
            if (n > 0 && n + one > WB_CQL_SEGMENT_MAX)
                break;
            n += one;
        }
        room = wb_cql_segments_max(n);
        out = wb_buf_room(&p->out, room);
        if (!out)
            die("too much to send");
        scratch = wb_calloc(p->reader.lz4 ? WB_CQL_SEGMENT_MAX : 1, 1);
        if (n > WB_CQL_SEGMENT_MAX) {
            memcpy(out + room - n, from, n);
            stop = wb_cql_segments_cut(out, n, p->reader.lz4, scratch);
        } else {
            memcpy(out + wb_cql_segment_head(p->reader.lz4), from, n);
            stop = wb_cql_segment_close(out, n, true, p->reader.lz4, scratch);
        }
        free(scratch);
        wb_buf_commit(&p->out, (size_t)(stop - out));
        at += n;
    }
}

static void flush_peer(struct responder *r, struct peer *p)
{
    ssize_t n;

    if (p->fd < 0)
        return;
    if (p->reader.framed)
        frame(p);
    else
        wb_buf_add(&p->out, wb_buf_str(&p->envelopes), p->envelopes.len);
    wb_buf_clear(&p->envelopes);
    n = p->out.len ? send(p->fd, p->out.data, p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        hang_up(p);
        return;
    }
    if (n > 0)
        wb_buf_consume(&p->out, (size_t)n);
    if (p->out.len > 0) {
        struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = p};
        (void)epoll_ctl(r->epfd, EPOLL_CTL_MOD, p->fd, &ev);
    } else if (p->end) {
        hang_up(p);
    }
}

static void flush_all(struct responder *r)
{
    struct peer *p = r->dirty, *next;

    r->dirty = NULL;
    for (; p; p = next) {
        next = p->next_dirty;
        p->dirty = false;
        flush_peer(r, p);
    }
}

static void accept_all(struct responder *r)
{
    for (;;) {
        struct epoll_event ev = {.events = EPOLLIN};
        struct peer *p;
        int one = 1, fd = accept4(r->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        p = wb_calloc(1, sizeof(*p));
        *p =
            (struct peer){.fd = fd, .envelopes = WB_BUF_INIT(OUT_MAX), .out = WB_BUF_INIT(OUT_MAX)};
        wb_cql_reader_init(&p->reader, 4, false);
        p->reader.server = true;
        p->next = r->peers;
        r->peers = p;
        ev.data.ptr = p;
        if (epoll_ctl(r->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
            die("epoll_ctl");
        r->connections++;
    }
}

static void read_peer(struct responder *r, struct peer *p, uint32_t events)
{
    struct taking t = {.r = r, .p = p};
    ssize_t n;

    if (p->fd >= 0 && (events & EPOLLOUT)) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
        (void)epoll_ctl(r->epfd, EPOLL_CTL_MOD, p->fd, &ev);
        flush_peer(r, p);
    }
    if (p->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    n = recv(p->fd, r->rbuf, READ_SIZE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && wb_cql_read(&p->reader, r->rbuf, (size_t)n, take_request, &t) < 0) {
        fprintf(stderr, "cql_responder: %s\n",
                p->reader.why ? p->reader.why : "a request that does not fit");
        n = 0;
    }
    if (n <= 0)
        hang_up(p);
}

/* Answers whose time has come; how long until the next, in ms, -1 when there is none. */
static int answer_due(struct responder *r)
{
    int64_t now = wb_now_ns(NULL);

    while (r->queue.n > 0 && r->queue.v[0].at <= now) {
        struct answer *a = due_take(&r->queue);
        if (a->to->fd >= 0) {
            wb_buf_add(&a->to->envelopes, a->envelope, a->len);
            mark_dirty(r, a->to);
        }
        free(a);
    }
    if (r->queue.n == 0)
        return -1;
    return r->queue.v[0].at - now < WB_MS ? 0 : (int)((r->queue.v[0].at - now) / WB_MS);
}

/* The pause: nothing is read or answered. */
static void pause_if_due(struct responder *r)
{
    int64_t now = wb_now_ns(NULL), from = r->first + r->o.pause_at_ms * WB_MS;
    struct timespec until;

    if (r->paused || r->o.pause_for_ms == 0 || r->first == 0 || now < from)
        return;
    r->paused = true;
    from = now + r->o.pause_for_ms * WB_MS;
    until = (struct timespec){.tv_sec = from / WB_SEC, .tv_nsec = from % WB_SEC};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void serve(struct responder *r)
{
    struct epoll_event ev[EVENTS];

    while (!r->end) {
        int wait = answer_due(r), n;
        flush_all(r);
        if (r->o.pause_for_ms > 0 && !r->paused && (wait < 0 || wait > 1))
            wait = 1;
        n = epoll_wait(r->epfd, ev, EVENTS, wait);
        pause_if_due(r);
        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr == &r->signal_fd)
                r->end = true;
            else if (ev[i].data.ptr == &r->listen_fd)
                accept_all(r);
            else
                read_peer(r, ev[i].data.ptr, ev[i].events);
        }
    }
}

static void report(const struct responder *r)
{
    const struct {
        const char *key;
        int64_t v;
    } rows[] = {{"ops", r->ops},           {"selects", r->selects},
                {"writes", r->writes},     {"batches", r->batches},
                {"errors", r->errors},     {"swallowed", r->swallowed},
                {"closed", r->closed},     {"unprepared", r->unprepared},
                {"prepares", r->prepares}, {"stored", (int64_t)r->store.n},
                {"strays", r->strays},     {"connections", r->connections}};
    struct rusage use;
    struct wb_buf b = WB_BUF_INIT(4096);
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = wb_json_object();

    for (size_t i = 0; i < WB_LEN(rows); i++)
        wb_json_set_int(j, rows[i].key, rows[i].v);
    (void)getrusage(RUSAGE_SELF, &use);
    wb_json_set_real(j, "cpu_s",
                     (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
    wb_json_pretty(j, &b);
    if (r->o.report && wb_file_write(r->o.report, b.data, b.len, 0644, &err) < 0)
        fprintf(stderr, "cql_responder: %s\n", err.root);
    wb_json_free(j);
    wb_buf_release(&b);
}

static void read_arguments(struct options *o, int argc, char **argv)
{
    const struct option_row rows[] = {{"--port", &o->port, NULL},
                                      {"--version", &o->version, NULL},
                                      {"--value", &o->value, NULL},
                                      {"--delay-us", &o->delay_us, NULL},
                                      {"--slow-every", &o->slow_every, NULL},
                                      {"--slow-us", &o->slow_us, NULL},
                                      {"--rate", &o->rate, NULL},
                                      {"--pause-at", &o->pause_at_ms, NULL},
                                      {"--pause-for", &o->pause_for_ms, NULL},
                                      {"--error-every", &o->error_every, NULL},
                                      {"--error-code", &o->error_code, NULL},
                                      {"--silent-every", &o->silent_every, NULL},
                                      {"--close-every", &o->close_every, NULL},
                                      {"--forget-every", &o->forget_every, NULL},
                                      {"--address", NULL, &o->address},
                                      {"--cluster", NULL, &o->cluster},
                                      {"--user", NULL, &o->user},
                                      {"--report", NULL, &o->report}};

    read_option_rows(rows, WB_LEN(rows), argc, argv);
}

static void release(struct responder *r)
{
    while (r->queue.n > 0)
        free(due_take(&r->queue));
    free(r->queue.v);
    for (struct peer *p = r->peers, *next; p; p = next) {
        next = p->next;
        hang_up(p);
        free(p);
    }
    store_release(&r->store);
    wb_strv_release(&r->system);
    free(r->canned);
    free(r->rbuf);
    for (int i = 0; i < r->cluster.n; i++)
        free(r->cluster.server[i]);
}

int main(int argc, char **argv)
{
    struct responder r = {.o = {.version = 5, .error_code = 0x1001, .address = "127.0.0.1"}};

    read_arguments(&r.o, argc, argv);
    for (const char *s = r.o.cluster ? r.o.cluster : r.o.address; r.cluster.n < CLUSTER_MAX;) {
        size_t n = strcspn(s, ",");
        r.cluster.server[r.cluster.n] = wb_strndup(s, n);
        if (strcmp(r.cluster.server[r.cluster.n], r.o.address) == 0)
            r.cluster.self = r.cluster.n;
        r.cluster.n++;
        s += n;
        if (*s++ != ',')
            break;
    }
    r.rbuf = wb_calloc(READ_SIZE, 1);
    if (r.o.value > 0) {
        r.canned = wb_calloc((size_t)r.o.value, 1);
        memset(r.canned, 'v', (size_t)r.o.value);
    }
    r.listen_fd = listen_at(r.o.address, &r.o.port);
    r.cluster.port = r.o.port;
    r.signal_fd = ending_signals();
    r.epfd = epoll_create1(EPOLL_CLOEXEC);
    if (r.epfd < 0)
        die("epoll");
    watch(r.epfd, r.signal_fd, &r.signal_fd);
    watch(r.epfd, r.listen_fd, &r.listen_fd);
    printf("port %lld\n", (long long)r.o.port);
    fflush(stdout);
    serve(&r);
    report(&r);
    release(&r);
    return 0;
}
