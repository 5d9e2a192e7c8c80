#include "runners/load/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runners/load/tls.h"
#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define OUT_MAX (256 << 10) /* of a request buffer, unless one request is longer */
#define BACK_OFF_FIRST (10 * WB_MS)
#define BACK_OFF_MOST WB_SEC
#define CONNECT_LIMIT (2 * WB_SEC)
#define LATE_LEAST 256 /* fewest places of a ring with streams: answers that are late hold some */
#define FLUSH_NO_CLOCK 2048 /* bytes of requests that are built in well under 1 us */

static uint32_t ring_size(int64_t depth)
{
    uint32_t n = 1;

    while (n < depth)
        n <<= 1;
    return n;
}

static size_t out_size(int64_t depth, size_t request_max)
{
    size_t most = request_max > OUT_MAX ? request_max : OUT_MAX;

    return (size_t)depth < most / request_max ? (size_t)depth * request_max : most;
}

int64_t wb_conn_memory(const struct wb_load_job *job)
{
    size_t request = (size_t)(job->key_bytes + job->value_bytes + 64);

    return (int64_t)sizeof(struct wb_conn) +
           (int64_t)ring_size(job->depth) * (int64_t)sizeof(struct wb_slot) +
           (int64_t)out_size(job->depth, request);
}

void wb_conn_init(struct wb_conn *c, const struct wb_load_job *job, size_t request_max,
                  size_t state_size)
{
    *c = (struct wb_conn){.fd = -1, .depth = (uint32_t)job->depth};
    c->mask = ring_size(job->depth) - 1;
    c->slots = wb_calloc(c->mask + 1, sizeof(*c->slots));
    c->out_cap = out_size(job->depth, request_max);
    /* Not cleared: pages that nobody writes cost no memory. */
    c->out = wb_realloc(NULL, c->out_cap + WB_BUILD_SLACK, 1);
    c->proto = wb_calloc(1, state_size);
    c->back_off_ns = BACK_OFF_FIRST;
}

void wb_conn_extend(struct wb_conn *c, const struct wb_protocol *p)
{
    uint32_t n = ring_size((int64_t)c->depth * 2 > LATE_LEAST ? (int64_t)c->depth * 2 : LATE_LEAST);

    if (p->control_max > 0) {
        free(c->out);
        c->out = wb_realloc(NULL, c->out_cap + p->control_max + WB_BUILD_SLACK, 1);
    }
    if (!p->streams)
        return;
    n = n > WB_STREAMS_MAX ? WB_STREAMS_MAX : n;
    free(c->slots);
    c->slots = wb_calloc(n, sizeof(*c->slots));
    c->stream_at = wb_calloc(n, sizeof(*c->stream_at));
    c->place_of = wb_calloc(n, sizeof(*c->place_of));
    for (uint32_t i = 0; i < n; i++)
        c->stream_at[i] = c->place_of[i] = (uint16_t)i;
    c->mask = n - 1;
}

void wb_conn_release(struct wb_conn *c)
{
    wb_tls_end(c->tls);
    if (c->fd >= 0)
        (void)close(c->fd);
    free(c->slots);
    free(c->stream_at);
    free(c->place_of);
    free(c->out);
    free(c->proto);
    *c = (struct wb_conn){.fd = -1};
}

static void plan_retry(struct wb_worker *w, struct wb_conn *c, int sys)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    wb_tls_end(c->tls);
    c->tls = NULL;
    c->fd = -1;
    c->state = WB_CONN_DOWN;
    c->want_out = false;
    c->last_errno = sys;
    c->retry_at = w->now + c->back_off_ns;
    c->back_off_ns = c->back_off_ns * 2 > BACK_OFF_MOST ? BACK_OFF_MOST : c->back_off_ns * 2;
}

static void connect_failed(struct wb_worker *w, struct wb_conn *c, int sys)
{
    w->cur->connect_failures++;
    c->way++;
    plan_retry(w, c, sys);
}

/* Registered once, edge triggered: no call to change it ever, and the kernel looks at a socket
 * once per event instead of twice. In return, everything that an event tells must be taken: see
 * receive and wb_conn_flush. */
static void register_events(struct wb_worker *w, struct wb_conn *c)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};

    /* Cannot fail for a descriptor that is open and new, but for lack of memory. */
    if (epoll_ctl(w->epfd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        abort();
}

/* The library's send and recv are cancellation points: with threads, each call switches the kind
 * of cancellation twice, a few percent of its cost. These threads are never cancelled. */
static ssize_t send_now(const struct wb_conn *c, const void *data, size_t n)
{
    if (__builtin_expect(c->tls != NULL, 0))
        return wb_tls_send(c->tls, data, n);
    return syscall(SYS_sendto, c->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

static ssize_t recv_now(const struct wb_conn *c, void *data, size_t n)
{
    if (__builtin_expect(c->tls != NULL, 0))
        return wb_tls_recv(c->tls, data, n);
    return syscall(SYS_recvfrom, c->fd, data, n, MSG_DONTWAIT, NULL, NULL);
}

bool wb_conn_say(struct wb_worker *w, struct wb_conn *c, const void *data, size_t n)
{
    if (c->out_len + n > c->out_cap + w->protocol->control_max)
        return false;
    memcpy(c->out + c->out_len, data, n);
    c->out_len += n;
    wb_worker_mark_dirty(w, c);
    return true;
}

void wb_conn_greeted(struct wb_worker *w, struct wb_conn *c)
{
    c->state = WB_CONN_UP;
    wb_shard_up(w, (uint32_t)c->target);
    c->last_errno = 0;
    c->back_off_ns = BACK_OFF_FIRST;
    wb_worker_update_ready(w, c);
    if (!w->open)
        wb_worker_refill(w, c);
}

/* Messages can be exchanged. */
static void open_for_words(struct wb_worker *w, struct wb_conn *c)
{
    c->want_out = false;
    c->heard = w->now;
    w->protocol->reset(w->context, c->proto);
    if (!w->protocol->greet) {
        wb_conn_greeted(w, c);
        return;
    }
    c->state = WB_CONN_GREETING;
    w->protocol->greet(w->context, w, c);
}

static void secure(struct wb_worker *w, struct wb_conn *c)
{
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_tls_handshake(c->tls, &err);

    if (rc > 0) {
        open_for_words(w, c);
    } else if (rc < 0) {
        wb_worker_refused(w, err.root, strlen(err.root));
        connect_failed(w, c, EPROTO);
    }
}

static void connected(struct wb_worker *w, struct wb_conn *c)
{
    if (!w->plan->tls || w->protocol->no_socket) {
        open_for_words(w, c);
        return;
    }
    c->state = WB_CONN_SECURING;
    c->tls = wb_tls_begin(w->plan->tls, c->fd, wb_target_addr(&w->plan->target, c->target)->name);
    secure(w, c);
}

void wb_conn_open(struct wb_worker *w, struct wb_conn *c)
{
    const struct wb_target_addr *a = wb_target_addr(&w->plan->target, c->target);
    int one = 1, rc;
    unsigned way;

    if (w->protocol->no_socket) {
        connected(w, c);
        return;
    }
    way = c->way % a->ways;
    c->fd = socket(a->addr[way].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        connect_failed(w, c, errno);
        return;
    }
    /* Requests are batched here; the kernel must not hold them back. Not fatal where unknown. */
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    do {
        rc = connect(c->fd, (const struct sockaddr *)&a->addr[way], a->len[way]);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0 && errno != EINPROGRESS) {
        connect_failed(w, c, errno);
        return;
    }
    c->deadline = w->now + CONNECT_LIMIT;
    c->state = WB_CONN_CONNECTING;
    register_events(w, c);
    if (rc == 0)
        connected(w, c);
}

void wb_conn_break(struct wb_worker *w, struct wb_conn *c, int first)
{
    enum wb_reply class = (enum wb_reply)first;

    if (c->state == WB_CONN_GREETING) {
        c->out_len = c->out_sent = 0;
        connect_failed(w, c, first == WB_REPLY_PROTOCOL ? EPROTO : ECONNRESET);
        return;
    }
    for (; c->head != c->tail; c->head++) {
        struct wb_slot *s = &c->slots[c->head & c->mask];
        if (s->flags & WB_SLOT_EXPIRED)
            continue;
        wb_worker_failed(w, s, class, w->now);
        class = WB_REPLY_CLOSED;
    }
    c->head = c->tail = c->stamped = c->expired = 0;
    c->out_len = c->out_sent = 0;
    w->cur->reconnects++;
    plan_retry(w, c, 0);
    wb_worker_update_ready(w, c);
    wb_shard_down(w, (uint32_t)c->target);
}

static void finish_connect(struct wb_worker *w, struct wb_conn *c)
{
    int sys = 0;
    socklen_t n = sizeof(sys);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
        sys = errno;
    if (sys != 0) {
        connect_failed(w, c, sys);
        return;
    }
    connected(w, c);
}

/* After replies: free slots get work, the closed loop at once, the open loop from its schedule. */
static void after_replies(struct wb_worker *w, struct wb_conn *c)
{
    if (w->open)
        wb_worker_update_ready(w, c);
    else
        wb_worker_refill(w, c);
}

/* Operations appended since the last send are written now. */
static void stamp(struct wb_worker *w, struct wb_conn *c)
{
    for (; c->stamped != c->tail; c->stamped++) {
        struct wb_slot *s = &c->slots[c->stamped & c->mask];
        if (__builtin_expect(s->flags & WB_SLOT_MOVED, 0))
            continue;
        s->written = w->now;
        if (w->open) {
            struct wb_phase_stats *ph = &w->cur->phase[s->phase];
            wb_hist_record_ns(&ph->op[s->op].lag, w->now - s->scheduled);
            if (!(s->flags & WB_SLOT_WAITED))
                wb_hist_record_ns(&ph->own_lag, w->now - s->scheduled);
        }
    }
}

static void flush_loopback(struct wb_worker *w, struct wb_conn *c)
{
    size_t n = c->out_len;

    c->out_len = 0;
    w->cur->sends++;
    wb_worker_clock(w);
    if (w->protocol->feed(w->context, w, c, c->out, n) < 0)
        wb_conn_break(w, c, WB_REPLY_PROTOCOL);
    else
        after_replies(w, c);
}

static void flush(struct wb_worker *w, struct wb_conn *c)
{
    ssize_t sent;

    stamp(w, c);
    if (w->protocol->seal)
        w->protocol->seal(w->context, c);
    if (w->protocol->no_socket) {
        flush_loopback(w, c);
        return;
    }
    do {
        sent = send_now(c, c->out + c->out_sent, c->out_len - c->out_sent);
    } while (sent < 0 && errno == EINTR);
    w->cur->sends++;
    if (sent < 0 && errno != EAGAIN) {
        wb_conn_break(w, c, WB_REPLY_CLOSED);
        return;
    }
    if (sent > 0) {
        w->cur->bytes_out += (uint64_t)sent;
        c->out_sent += (size_t)sent;
    }
    if (c->out_sent < c->out_len) { /* an event comes when there is room */
        c->want_out = true;
        return;
    }
    c->out_sent = c->out_len = 0;
    if (w->open && !c->ready)
        wb_worker_update_ready(w, c);
}

void wb_conn_flush(struct wb_worker *w, struct wb_conn *c)
{
    if (c->out_len == c->out_sent)
        return;
    wb_worker_clock(w);
    flush(w, c);
}

enum read_end { READ_NOTHING, READ_SHORT, READ_FULL };

/* One read and what follows from it. */
static enum read_end receive_once(struct wb_worker *w, struct wb_conn *c)
{
    ssize_t n;
    int fed;

    do {
        n = recv_now(c, w->rbuf, w->rbuf_size);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return READ_NOTHING;
    c->heard = wb_worker_clock(w);
    w->cur->receives++;
    if (n <= 0) {
        wb_conn_break(w, c, WB_REPLY_CLOSED);
        return READ_NOTHING;
    }
    w->cur->bytes_in += (uint64_t)n;
    fed = w->protocol->feed(w->context, w, c, w->rbuf, (size_t)n);
    if (fed < 0) {
        wb_conn_break(w, c, fed == WB_FEED_LEFT ? WB_REPLY_CLOSED : WB_REPLY_PROTOCOL);
        return READ_NOTHING;
    }
    after_replies(w, c);
    return (size_t)n == w->rbuf_size ? READ_FULL : READ_SHORT;
}

/* A read that did not fill its buffer has emptied the socket; what comes later makes an event of
 * its own. But a peer that has hung up makes none after the last data: then all is read. */
static void receive(struct wb_worker *w, struct wb_conn *c, bool to_the_end)
{
    enum read_end got;

    do {
        got = receive_once(w, c);
    } while (got == READ_FULL || (got == READ_SHORT && to_the_end));
    if (w->open || c->want_out || c->state != WB_CONN_UP || c->out_len == 0)
        return;
    /* A few requests are built in a moment: they count as written when the replies came, which can
     * only make them look slower. */
    if (c->out_len > FLUSH_NO_CLOCK) {
        wb_worker_clock(w);
        stamp(w, c);
    }
    c->stamped = c->tail;
    flush(w, c);
}

void wb_conn_event(struct wb_worker *w, struct wb_conn *c, uint32_t events)
{
    if (c->state == WB_CONN_CONNECTING) {
        finish_connect(w, c);
        return;
    }
    if (c->state == WB_CONN_SECURING) {
        secure(w, c);
        if (c->state != WB_CONN_UP && c->state != WB_CONN_GREETING)
            return; /* what else the event tells is for the handshake */
    }
    if (c->state == WB_CONN_DOWN)
        return;
    if ((events & EPOLLOUT) && c->want_out) {
        c->want_out = false;
        wb_conn_flush(w, c);
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) && c->state != WB_CONN_DOWN)
        receive(w, c, (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
}

static void expire(struct wb_worker *w, struct wb_conn *c, struct wb_slot *s)
{
    wb_worker_failed(w, s, WB_REPLY_TIMEOUT, s->written + w->timeout_ns);
    s->flags |= WB_SLOT_EXPIRED;
    c->expired++;
}

static void scan_streams(struct wb_worker *w, struct wb_conn *c)
{
    bool silent = false, any = false;

    /* What a stuck socket has kept waiting for so long counts as sent. */
    if (c->stamped != c->tail && w->now - c->slots[c->stamped & c->mask].written > w->timeout_ns)
        c->stamped = c->tail;
    for (uint32_t k = c->head + c->expired; k != c->stamped; k++) {
        struct wb_slot *s = &c->slots[k & c->mask];
        if (w->now - s->written <= w->timeout_ns)
            continue;
        any = true;
        silent |= c->heard < s->written;
        wb_conn_swap(c, k & c->mask, (c->head + c->expired) & c->mask);
        expire(w, c, &c->slots[(c->head + c->expired) & c->mask]);
    }
    if (c->expired > 0 && (silent || wb_conn_in_flight(c) == c->mask + 1)) {
        wb_conn_break(w, c, WB_REPLY_CLOSED);
        return;
    }
    if (any)
        after_replies(w, c);
}

void wb_conn_scan(struct wb_worker *w, struct wb_conn *c)
{
    if (c->state == WB_CONN_DOWN) {
        if (w->now >= c->retry_at && !wb_worker_exhausted(w))
            wb_conn_open(w, c);
        return;
    }
    if (c->state != WB_CONN_UP) {
        if (w->now >= c->deadline)
            connect_failed(w, c, ETIMEDOUT);
        return;
    }
    if (c->stream_at) {
        scan_streams(w, c);
        return;
    }
    while (c->expired < wb_conn_in_flight(c)) {
        struct wb_slot *s = &c->slots[(c->head + c->expired) & c->mask];
        if (w->now - s->written <= w->timeout_ns)
            break;
        expire(w, c, s);
    }
    if (c->expired > 0 && c->expired == wb_conn_in_flight(c))
        wb_conn_break(w, c, WB_REPLY_CLOSED);
    else if (c->expired > 0)
        wb_worker_update_ready(w, c);
}
