/*
 * A server that misbehaves as asked, for tests of load generators: answers at once, after one or
 * two constant delays, not at all during known pauses, no faster than a cap, with planted errors,
 * or falls silent. It counts what it was sent, so that a client's own counts can be checked.
 *
 *     responder [--protocol resp|memcached] [--port N] [--value BYTES] [--report FILE]
 *               [--delay-us N] [--slow-every N --slow-us N] [--pause-at MS --pause-for MS]
 *               [--rate N] [--error-every N] [--silent-every N] [--close-every N]
 *               [--cut-every N] [--huge-every N] [--trickle 1] [--arrivals FILE]
 *
 * Prints "port N" when it listens. Times of --pause-at count from the first request. Every N-th
 * request: --slow-every is answered after --slow-us instead; --silent-every: its connection stops
 * answering for good; --close-every: is closed; --cut-every: is closed after half an answer;
 * --huge-every: is answered with the longest length that can be written. --trickle: one byte a
 * send.
 * --rate: most answers a second. --arrivals: when each request was read, ns since the first, a line
 * each. On SIGTERM or SIGINT it writes its report and ends.
 */
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
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "tests/support/serving.h"

#define IN_MAX (128u << 20)
#define READ_SIZE (256u << 10)
#define EVENTS 64
#define KEY_KEPT 64 /* longer keys are not answered by a memcached */

enum protocol { RESP, MEMCACHED };
enum kind { GET, SET, META_GET, DELETE };
enum fault { NONE, ERROR, CUT, HUGE_LENGTH };

struct peer {
    int fd;
    bool silent, dirty, end; /* end: closed when what is there is sent */
    int64_t last_due;        /* answers of one connection keep their order */
    struct wb_buf in, out;
    struct peer *next_dirty, *next;
};

struct answer {
    struct peer *to;
    enum kind kind;
    enum fault fault;
    char key[KEY_KEPT];
};

struct options {
    int64_t port, value, delay_us, slow_every, slow_us, pause_at_ms, pause_for_ms, error_every,
        silent_every, close_every, cut_every, huge_every, trickle, rate;
    const char *report, *arrivals;
    enum protocol protocol;
};

struct responder {
    struct options o;
    int epfd, listen_fd, signal_fd;
    char *value;       /* with its closing CRLF */
    struct dues queue; /* what waits for its time */
    int64_t *arrival;
    size_t arrivals, arrivals_cap;
    struct peer *dirty, *peers; /* to be sent; all that ever were: answers may wait for them */
    int64_t first_request, pause_from, pause_to; /* ns monotonic; 0: not yet */
    int64_t requests, gets, sets, errors, swallowed, closed, connections, answered, cut, huge, slow;
    int64_t rate_from, rate_done;
    bool paused, end;
};

static void mark_dirty(struct responder *r, struct peer *p)
{
    if (p->dirty)
        return;
    p->dirty = true;
    p->next_dirty = r->dirty;
    r->dirty = p;
}

static void put_value(const struct responder *r, struct wb_buf *out, const struct answer *a)
{
    long long n = r->o.value;

    if (r->o.protocol == RESP)
        wb_buf_addf(out, "$%lld\r\n", n);
    else if (a->kind == META_GET)
        wb_buf_addf(out, "VA %lld\r\n", n);
    else
        wb_buf_addf(out, "VALUE %s 0 %lld\r\n", a->key, n);
    wb_buf_add(out, r->value, (size_t)n + 2);
    if (r->o.protocol == MEMCACHED && a->kind == GET)
        wb_buf_adds(out, "END\r\n");
}

static void put_answer(const struct responder *r, struct wb_buf *out, const struct answer *a)
{
    bool resp = r->o.protocol == RESP;

    if (a->fault == ERROR)
        wb_buf_adds(out, resp ? "-ERR planted\r\n" : "SERVER_ERROR planted\r\n");
    else if (a->fault == HUGE_LENGTH)
        wb_buf_adds(out, resp ? "$9223372036854775807\r\n" : "VALUE k 0 18446744073709551615\r\n");
    else if (a->kind == GET || a->kind == META_GET)
        put_value(r, out, a);
    else if (resp)
        wb_buf_adds(out, "+OK\r\n");
    else
        wb_buf_adds(out, a->kind == DELETE ? "DELETED\r\n" : "STORED\r\n");
}

static void answer(struct responder *r, const struct answer *a)
{
    struct peer *p = a->to;
    size_t before = p->out.len;

    if (p->fd < 0 || p->end)
        return;
    put_answer(r, &p->out, a);
    if (a->fault == CUT) {
        p->out.len = before + (p->out.len - before) / 2;
        p->end = true;
    }
    r->answered++;
    mark_dirty(r, p);
}

static void hang_up(struct peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
    wb_buf_release(&p->in);
    wb_buf_release(&p->out);
}

static void count(struct responder *r, enum kind kind)
{
    int64_t now = r->o.arrivals || r->first_request == 0 ? wb_now_ns(NULL) : 0;

    r->requests++;
    if (kind == GET || kind == META_GET)
        r->gets++;
    else
        r->sets++;
    if (r->first_request == 0)
        r->first_request = now;
    if (!r->o.arrivals)
        return;
    wb_grow(&r->arrival, &r->arrivals_cap, r->arrivals + 1, sizeof(*r->arrival));
    r->arrival[r->arrivals++] = now - r->first_request;
}

static void request(struct responder *r, struct peer *p, enum kind kind, const char *key, size_t n)
{
    struct answer a = {.to = p, .kind = kind}, *later;
    int64_t at;
    bool slow;

    count(r, kind);
    if (r->o.protocol == MEMCACHED)
        memcpy(a.key, key, n < KEY_KEPT ? n : KEY_KEPT - 1);
    if (every(r->o.silent_every, r->requests))
        p->silent = true;
    if (p->silent) {
        r->swallowed++;
        return;
    }
    if (every(r->o.close_every, r->requests)) {
        r->closed++;
        hang_up(p);
        return;
    }
    if (every(r->o.error_every, r->requests))
        a.fault = ERROR;
    else if (every(r->o.cut_every, r->requests))
        a.fault = CUT;
    else if (every(r->o.huge_every, r->requests))
        a.fault = HUGE_LENGTH;
    r->errors += a.fault == ERROR;
    r->cut += a.fault == CUT;
    r->huge += a.fault == HUGE_LENGTH;
    slow = every(r->o.slow_every, r->requests);
    r->slow += slow;
    if (r->o.delay_us == 0 && r->o.rate == 0 && r->o.slow_every == 0) {
        answer(r, &a);
        return;
    }
    at = wb_now_ns(NULL) + (slow ? r->o.slow_us : r->o.delay_us) * WB_US;
    if (at < p->last_due)
        at = p->last_due;
    p->last_due = at;
    later = wb_calloc(1, sizeof(*later));
    *later = a;
    due_add(&r->queue, at, later);
}

/* --- requests --- */

/* Number of a line "<type>N\r\n" at p; its length, 0 when it is not complete, -1 when it is none.
 */
static int header(const char *p, size_t n, char type, int64_t *out)
{
    const char *lf = memchr(p, '\n', n < 24 ? n : 24);
    int64_t v = 0;

    if (n > 0 && p[0] != type)
        return -1;
    if (!lf)
        return n < 24 ? 0 : -1;
    for (const char *q = p + 1; q < lf - 1; q++) {
        if (*q < '0' || *q > '9')
            return -1;
        v = v * 10 + (*q - '0');
    }
    *out = v;
    return (int)(lf - p) + 1;
}

struct found {
    enum kind kind;
    const char *key;
    size_t key_len;
};

/* Bytes of the first whole request in the buffer, 0 when it is not complete, -1 when it is none. */
static int64_t resp_request(const char *p, size_t n, struct found *f)
{
    int64_t parts = 0, at = header(p, n, '*', &parts);

    if (at <= 0)
        return at;
    for (int64_t i = 0; i < parts; i++) {
        int64_t len = 0;
        int used = header(p + at, n - (size_t)at, '$', &len);
        if (used <= 0)
            return used;
        at += used;
        if (at + len + 2 > (int64_t)n)
            return 0;
        if (i == 0)
            f->kind = p[at] == 'G' || p[at] == 'g' ? GET : SET;
        at += len + 2;
    }
    return at;
}

static int64_t memcached_request(const char *p, size_t n, struct found *f)
{
    static const struct {
        const char *word;
        enum kind kind;
        bool value;
    } verbs[] = {{"get ", GET, false},
                 {"mg ", META_GET, false},
                 {"set ", SET, true},
                 {"add ", SET, true},
                 {"delete ", DELETE, false}};
    const char *lf = memchr(p, '\n', n < 512 ? n : 512);
    int64_t line = lf ? lf - p + 1 : 0, value = 0;
    size_t v = 0;

    if (!lf)
        return n < 512 ? 0 : -1;
    while (v < WB_LEN(verbs) && strncmp(p, verbs[v].word, strlen(verbs[v].word)) != 0)
        v++;
    if (v == WB_LEN(verbs))
        return -1;
    f->kind = verbs[v].kind;
    f->key = p + strlen(verbs[v].word);
    f->key_len = strcspn(f->key, " \r");
    if (!verbs[v].value)
        return line;
    for (const char *q = memrchr(p, ' ', (size_t)line); *++q >= '0' && *q <= '9';)
        value = value * 10 + (*q - '0');
    return line + value + 2 <= (int64_t)n ? line + value + 2 : 0;
}

static void take_input(struct responder *r, struct peer *p)
{
    size_t used = 0;

    while (p->fd >= 0) {
        struct found f = {0};
        const char *at = wb_buf_str(&p->in) + used;
        int64_t n = r->o.protocol == RESP ? resp_request(at, p->in.len - used, &f)
                                          : memcached_request(at, p->in.len - used, &f);
        if (n == 0)
            break;
        if (n < 0) {
            fprintf(stderr, "responder: not a request\n");
            hang_up(p);
            return;
        }
        used += (size_t)n;
        request(r, p, f.kind, f.key, f.key_len);
    }
    if (p->fd >= 0)
        wb_buf_consume(&p->in, used);
}

static void flush_peer(struct responder *r, struct peer *p)
{
    ssize_t n;

    p->dirty = false;
    if (p->fd < 0 || p->out.len == 0)
        return;
    n = send(p->fd, p->out.data, r->o.trickle ? 1 : p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
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
        *p = (struct peer){.fd = fd, .in = WB_BUF_INIT(IN_MAX), .out = WB_BUF_INIT(IN_MAX)};
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
    char *room;
    ssize_t n;

    if (p->fd < 0)
        return;
    if (events & EPOLLOUT) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
        (void)epoll_ctl(r->epfd, EPOLL_CTL_MOD, p->fd, &ev);
        flush_peer(r, p);
    }
    if (p->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    room = wb_buf_room(&p->in, READ_SIZE);
    if (!room)
        die("a request is too long");
    n = recv(p->fd, room, READ_SIZE, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        hang_up(p);
        return;
    }
    if (n < 0)
        return;
    wb_buf_commit(&p->in, (size_t)n);
    take_input(r, p);
}

/* Answers what is due; returns ns until the next one, -1 when nothing waits. */
static int64_t answer_due(struct responder *r, int64_t now)
{
    while (r->queue.n > 0) {
        struct answer *a;
        if (r->queue.v[0].at > now)
            return r->queue.v[0].at - now;
        if (r->o.rate > 0) {
            if (r->rate_from == 0)
                r->rate_from = now;
            int64_t at = r->rate_from + r->rate_done * WB_SEC / r->o.rate;
            if (at > now)
                return at - now;
            /* Idle time is saved up for a moment only. */
            if (now - at > 20 * WB_MS) {
                r->rate_from = now;
                r->rate_done = 0;
            }
            r->rate_done++;
        }
        a = due_take(&r->queue);
        answer(r, a);
        free(a);
    }
    return -1;
}

static void take_signal(struct responder *r)
{
    struct signalfd_siginfo info;

    if (read(r->signal_fd, &info, sizeof(info)) > 0)
        r->end = true;
}

/* During a pause only signals are listened to. */
static void pause_now(struct responder *r, int64_t now)
{
    int64_t until = now + r->o.pause_for_ms * WB_MS;

    r->paused = true;
    r->pause_from = now;
    while (now < until && !r->end) {
        struct timespec ts = {.tv_sec = (until - now) / WB_SEC, .tv_nsec = (until - now) % WB_SEC};
        fd_set set;
        FD_ZERO(&set);
        FD_SET(r->signal_fd, &set);
        if (pselect(r->signal_fd + 1, &set, NULL, NULL, &ts, NULL) > 0)
            take_signal(r);
        now = wb_now_ns(NULL);
    }
    r->pause_to = now;
}

static int64_t pause_due(const struct responder *r, int64_t now)
{
    if (r->o.pause_for_ms == 0 || r->paused || r->first_request == 0)
        return -1;
    int64_t left = r->first_request + r->o.pause_at_ms * WB_MS - now;
    return left > 0 ? left : 0;
}

static void serve(struct responder *r)
{
    while (!r->end) {
        struct epoll_event ev[EVENTS];
        int64_t now = wb_now_ns(NULL), wait = answer_due(r, now), pause = pause_due(r, now);
        struct timespec ts;
        int n;
        flush_all(r);
        if (pause == 0) {
            pause_now(r, now);
            continue;
        }
        if (pause > 0 && (wait < 0 || pause < wait))
            wait = pause;
        ts = (struct timespec){.tv_sec = wait / WB_SEC, .tv_nsec = wait % WB_SEC};
        n = epoll_pwait2(r->epfd, ev, EVENTS, wait < 0 ? NULL : &ts, NULL);
        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr == &r->listen_fd)
                accept_all(r);
            else if (ev[i].data.ptr == &r->signal_fd)
                take_signal(r);
            else
                read_peer(r, ev[i].data.ptr, ev[i].events);
        }
        flush_all(r);
    }
}

static void read_options(struct options *o, int argc, char **argv)
{
    const char *protocol = "resp";
    const struct option_row rows[] = {{"--port", &o->port, NULL},
                                      {"--value", &o->value, NULL},
                                      {"--delay-us", &o->delay_us, NULL},
                                      {"--pause-at", &o->pause_at_ms, NULL},
                                      {"--pause-for", &o->pause_for_ms, NULL},
                                      {"--error-every", &o->error_every, NULL},
                                      {"--silent-every", &o->silent_every, NULL},
                                      {"--close-every", &o->close_every, NULL},
                                      {"--rate", &o->rate, NULL},
                                      {"--slow-every", &o->slow_every, NULL},
                                      {"--slow-us", &o->slow_us, NULL},
                                      {"--cut-every", &o->cut_every, NULL},
                                      {"--huge-every", &o->huge_every, NULL},
                                      {"--trickle", &o->trickle, NULL},
                                      {"--report", NULL, &o->report},
                                      {"--arrivals", NULL, &o->arrivals},
                                      {"--protocol", NULL, &protocol}};

    read_option_rows(rows, WB_LEN(rows), argc, argv);
    o->protocol = strcmp(protocol, "memcached") == 0 ? MEMCACHED : RESP;
    if (o->protocol == RESP && strcmp(protocol, "resp") != 0)
        die("--protocol");
}

/* Own CPU time since the first request, of one CPU. */
static double cpu_percent(const struct responder *r)
{
    struct rusage u;
    int64_t ran = wb_now_ns(NULL) - r->first_request;

    if (r->first_request == 0 || ran <= 0 || getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return 100 *
           ((double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 +
            (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3) /
           (double)ran;
}

static void write_arrivals(const struct responder *r)
{
    struct wb_buf text = WB_BUF_INIT(256u << 20);
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; i < r->arrivals; i++)
        wb_buf_addf(&text, "%lld\n", (long long)r->arrival[i]);
    if (wb_file_put(r->o.arrivals, wb_buf_str(&text), text.len, &err) < 0)
        fprintf(stderr, "responder: %s\n", err.root);
    wb_buf_release(&text);
}

static void write_report(const struct responder *r)
{
    wb_json *j = wb_json_object();
    struct wb_buf text = WB_BUF_INIT(65536);
    struct wb_err err = WB_ERR_INIT;

    wb_json_set_int(j, "requests", r->requests);
    wb_json_set_int(j, "gets", r->gets);
    wb_json_set_int(j, "sets", r->sets);
    wb_json_set_int(j, "answered", r->answered);
    wb_json_set_int(j, "errors", r->errors);
    wb_json_set_int(j, "swallowed", r->swallowed);
    wb_json_set_int(j, "closed", r->closed);
    wb_json_set_int(j, "cut", r->cut);
    wb_json_set_int(j, "huge", r->huge);
    wb_json_set_int(j, "slow", r->slow);
    wb_json_set_int(j, "connections", r->connections);
    wb_json_set_real(j, "cpu_percent", cpu_percent(r));
    wb_json_set_real(j, "pause_ms", (double)(r->pause_to - r->pause_from) / WB_MS);
    wb_json_line(j, &text);
    wb_buf_addc(&text, '\n');
    if (r->o.report && wb_file_write(r->o.report, text.data, text.len, 0644, &err) < 0)
        fprintf(stderr, "responder: %s\n", err.root);
    wb_json_free(j);
    wb_buf_release(&text);
}

static void clean_up(struct responder *r)
{
    struct peer *next;

    for (struct peer *p = r->peers; p; p = next) {
        next = p->next;
        hang_up(p);
        free(p);
    }
    free(r->value);
    while (r->queue.n > 0)
        free(due_take(&r->queue));
    free(r->queue.v);
    free(r->arrival);
}

int main(int argc, char **argv)
{
    struct responder r = {.o = {.value = 64}};

    read_options(&r.o, argc, argv);
    r.signal_fd = ending_signals();
    r.epfd = epoll_create1(EPOLL_CLOEXEC);
    if (r.epfd < 0)
        die("epoll");
    watch(r.epfd, r.signal_fd, &r.signal_fd);
    r.value = wb_calloc((size_t)r.o.value + 2, 1);
    memset(r.value, 'x', (size_t)r.o.value);
    memcpy(r.value + r.o.value, "\r\n", 2);
    r.listen_fd = listen_at("127.0.0.1", &r.o.port);
    watch(r.epfd, r.listen_fd, &r.listen_fd);
    printf("port %lld\n", (long long)r.o.port);
    fflush(stdout);
    serve(&r);
    write_report(&r);
    if (r.o.arrivals)
        write_arrivals(&r);
    clean_up(&r);
    return 0;
}
