/*
 * A RESP server that misbehaves as asked, for tests of load generators: answers at once, after a
 * constant delay, not at all during known pauses, with planted errors, or falls silent. It counts
 * what it was sent, so that a client's own counts can be checked.
 *
 *     responder [--port N] [--value BYTES] [--delay-us N] [--pause-at MS --pause-for MS]
 *               [--error-every N] [--silent-every N] [--close-every N] [--rate N]
 *               [--report FILE]
 *
 * Prints "port N" when it listens. Times of --pause-at count from the first request. --silent-every
 * N: on the N-th request its connection stops answering for good. --rate: most answers a second.
 * On SIGTERM or SIGINT it writes its report and ends.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define IN_MAX (128u << 20)
#define READ_SIZE (256u << 10)
#define EVENTS 64

struct peer {
    int fd;
    bool silent, dirty;
    struct wb_buf in, out;
    struct peer *next_dirty, *next;
};

struct due { /* an answer that waits for its time */
    struct peer *to;
    int64_t at;
    bool get, error;
};

struct options {
    int64_t port, value, delay_us, pause_at_ms, pause_for_ms, error_every, silent_every,
        close_every, rate;
    char *report;
};

struct responder {
    struct options o;
    int epfd, listen_fd, signal_fd;
    char *value; /* the whole bulk reply */
    size_t value_len;
    struct due *queue; /* ring in order of time */
    size_t head, tail, cap;
    struct peer *dirty, *peers; /* to be sent; all that ever were: answers may wait for them */
    int64_t first_request, pause_from, pause_to; /* ns monotonic; 0: not yet */
    int64_t requests, gets, sets, errors, swallowed, closed, connections, answered;
    int64_t rate_from, rate_done;
    bool paused, end;
};

static void die(const char *what)
{
    fprintf(stderr, "responder: %s: %m\n", what);
    exit(1);
}

static void mark_dirty(struct responder *r, struct peer *p)
{
    if (p->dirty)
        return;
    p->dirty = true;
    p->next_dirty = r->dirty;
    r->dirty = p;
}

static void answer(struct responder *r, struct peer *p, bool get, bool error)
{
    if (p->fd < 0)
        return;
    if (error)
        wb_buf_adds(&p->out, "-ERR planted\r\n");
    else if (get)
        wb_buf_add(&p->out, r->value, r->value_len);
    else
        wb_buf_add(&p->out, "+OK\r\n", 5);
    r->answered++;
    mark_dirty(r, p);
}

static void answer_later(struct responder *r, const struct due *d)
{
    if (r->tail - r->head == r->cap) {
        size_t old = r->cap;
        struct due *queue;
        r->cap = old ? old * 2 : 4096;
        queue = wb_calloc(r->cap, sizeof(*queue));
        for (size_t i = 0; i < old; i++)
            queue[i] = r->queue[(r->head + i) % old];
        free(r->queue);
        r->queue = queue;
        r->head = 0;
        r->tail = old;
    }
    r->queue[r->tail++ % r->cap] = *d;
}

static void hang_up(struct peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
    wb_buf_release(&p->in);
    wb_buf_release(&p->out);
}

static bool every(int64_t n, int64_t count)
{
    return n > 0 && count % n == 0;
}

static void request(struct responder *r, struct peer *p, bool get)
{
    struct due d = {.to = p, .get = get};

    r->requests++;
    if (get)
        r->gets++;
    else
        r->sets++;
    if (r->first_request == 0)
        r->first_request = wb_now_ns(NULL);
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
    d.error = every(r->o.error_every, r->requests);
    r->errors += d.error;
    if (r->o.delay_us == 0 && r->o.rate == 0) {
        answer(r, p, get, d.error);
        return;
    }
    d.at = wb_now_ns(NULL) + r->o.delay_us * WB_US;
    answer_later(r, &d);
}

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

/* Bytes of the first whole request in the buffer, 0 when it is not complete, -1 when it is none. */
static int64_t whole_request(const char *p, size_t n, bool *get)
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
            *get = p[at] == 'G' || p[at] == 'g';
        at += len + 2;
    }
    return at;
}

static void take_input(struct responder *r, struct peer *p)
{
    size_t used = 0;

    while (p->fd >= 0) {
        bool get = false;
        int64_t n = whole_request(wb_buf_str(&p->in) + used, p->in.len - used, &get);
        if (n == 0)
            break;
        if (n < 0) {
            fprintf(stderr, "responder: not a request\n");
            hang_up(p);
            return;
        }
        used += (size_t)n;
        request(r, p, get);
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
    n = send(p->fd, p->out.data, p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        hang_up(p);
        return;
    }
    if (n > 0)
        wb_buf_consume(&p->out, (size_t)n);
    if (p->out.len > 0) {
        struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = p};
        (void)epoll_ctl(r->epfd, EPOLL_CTL_MOD, p->fd, &ev);
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
    while (r->head != r->tail) {
        struct due *d = &r->queue[r->head % r->cap];
        if (d->at > now)
            return d->at - now;
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
        answer(r, d->to, d->get, d->error);
        r->head++;
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
    const struct {
        const char *name;
        int64_t *to;
    } table[] = {
        {"--port", &o->port},
        {"--value", &o->value},
        {"--delay-us", &o->delay_us},
        {"--pause-at", &o->pause_at_ms},
        {"--pause-for", &o->pause_for_ms},
        {"--error-every", &o->error_every},
        {"--silent-every", &o->silent_every},
        {"--close-every", &o->close_every},
        {"--rate", &o->rate},
    };

    for (int i = 1; i + 1 < argc; i += 2) {
        bool known = strcmp(argv[i], "--report") == 0;
        if (known)
            o->report = argv[i + 1];
        for (size_t k = 0; k < WB_LEN(table); k++) {
            if (strcmp(argv[i], table[k].name) != 0)
                continue;
            known = true;
            if (wb_parse_int(argv[i + 1], 0, INT64_MAX / 2, table[k].to, NULL) < 0)
                die(argv[i]);
        }
        if (!known)
            die(argv[i]);
    }
}

static void listen_on(struct responder *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)r->o.port)};
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &r->listen_fd};
    socklen_t n = sizeof(a);
    int one = 1;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->listen_fd < 0 ||
        setsockopt(r->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(r->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        listen(r->listen_fd, 4096) < 0 || getsockname(r->listen_fd, (struct sockaddr *)&a, &n) < 0)
        die("listen");
    if (epoll_ctl(r->epfd, EPOLL_CTL_ADD, r->listen_fd, &ev) < 0)
        die("epoll_ctl");
    printf("port %d\n", ntohs(a.sin_port));
    fflush(stdout);
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
    wb_json_set_int(j, "connections", r->connections);
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
    free(r->queue);
}

int main(int argc, char **argv)
{
    struct responder r = {.o = {.value = 64}};
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &r.signal_fd};
    sigset_t set;

    read_options(&r.o, argc, argv);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    r.epfd = epoll_create1(EPOLL_CLOEXEC);
    if (r.signal_fd < 0 || r.epfd < 0 || epoll_ctl(r.epfd, EPOLL_CTL_ADD, r.signal_fd, &ev) < 0)
        die("epoll");
    WB_AUTO_FREE char *head = wb_strf("$%lld\r\n", (long long)r.o.value);
    r.value_len = strlen(head) + (size_t)r.o.value + 2;
    r.value = wb_calloc(r.value_len, 1);
    memset(r.value, 'x', r.value_len);
    memcpy(r.value, head, strlen(head));
    memcpy(r.value + r.value_len - 2, "\r\n", 2);
    listen_on(&r);
    serve(&r);
    write_report(&r);
    clean_up(&r);
    return 0;
}
