#include "runners/load/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

/* Waits until the socket is ready. */
static int wait_for(struct wb_wire *w, short events, struct wb_err *err)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = w->fd, .events = events},
                                {.fd = wb_cancel_fd(w->cancel), .events = POLLIN}};
        int64_t left = w->deadline - wb_now_ns(NULL);
        struct timespec ts = {.tv_sec = left / WB_SEC, .tv_nsec = left % WB_SEC};
        int n;
        if (wb_cancelled(w->cancel))
            return wb_fail(err, WB_CANCELLED, "stopped");
        if (left <= 0)
            return wb_fail(err, WB_TIMEOUT, "%s does not answer", w->name);
        n = ppoll(fds, 2, &ts, NULL);
        if (n < 0 && errno != EINTR)
            return wb_fail_sys(err, errno, "waiting for %s", w->name);
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

static int no_connection(const struct wb_wire *w, int sys, struct wb_err *err)
{
    (void)wb_fail_sys(err, sys, "connecting to %s", w->name);
    if (err)
        err->code = WB_UNAVAILABLE;
    return -WB_UNAVAILABLE;
}

static int connect_to(struct wb_wire *w, const struct sockaddr *addr, socklen_t len,
                      struct wb_err *err)
{
    int one = 1, sys = 0, rc;
    socklen_t n = sizeof(sys);

    w->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        return wb_fail_sys(err, errno, "making a socket");
    /* Not fatal where unknown. */
    (void)setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(w->fd, addr, len) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return no_connection(w, errno, err);
    rc = wait_for(w, POLLOUT, err);
    if (rc < 0)
        return rc;
    if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
        sys = errno;
    return sys ? no_connection(w, sys, err) : 0;
}

static int secure(struct wb_wire *w, const struct wb_tls *tls, struct wb_err *err)
{
    int rc;

    w->tls = wb_tls_begin(tls, w->fd, w->name);
    while ((rc = wb_tls_handshake(w->tls, err)) == 0) {
        /* What is sent is small: it can only wait for words of the peer. */
        rc = wait_for(w, POLLIN, err);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? wb_wrap(err, "%s", w->name) : 0;
}

int wb_wire_open(struct wb_wire *w, const char *name, const struct sockaddr *addr, socklen_t len,
                 const struct wb_tls *tls, const struct wb_cancel *cancel, int64_t deadline,
                 struct wb_err *err)
{
    int rc;

    *w =
        (struct wb_wire){.fd = -1, .name = wb_strdup(name), .cancel = cancel, .deadline = deadline};
    rc = connect_to(w, addr, len, err);
    return rc == 0 && tls ? secure(w, tls, err) : rc;
}

void wb_wire_close(struct wb_wire *w)
{
    wb_tls_end(w->tls);
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w->name);
    *w = (struct wb_wire)WB_WIRE_INIT;
}

/* What a failed call means; the peer is gone more often than it is broken. */
static int failed(const struct wb_wire *w, const char *what, struct wb_err *err)
{
    int sys = errno;

    (void)wb_fail_sys(err, sys, "%s %s", what, w->name);
    if (sys != ECONNRESET && sys != EPIPE && sys != ETIMEDOUT && sys != EHOSTUNREACH &&
        sys != ENETUNREACH)
        return err ? -err->code : -WB_IO;
    if (err)
        err->code = WB_UNAVAILABLE;
    return -WB_UNAVAILABLE;
}

int wb_wire_send(struct wb_wire *w, const void *data, size_t n, struct wb_err *err)
{
    size_t sent = 0;

    while (sent < n) {
        const char *from = (const char *)data + sent;
        ssize_t k = w->tls ? wb_tls_send(w->tls, from, n - sent)
                           : send(w->fd, from, n - sent, MSG_NOSIGNAL);
        int rc = 0;
        if (k < 0 && errno == EAGAIN)
            rc = wait_for(w, POLLOUT, err);
        else if (k < 0 && errno != EINTR)
            rc = failed(w, "writing to", err);
        if (rc < 0)
            return rc;
        sent += k > 0 ? (size_t)k : 0;
    }
    return 0;
}

int wb_wire_recv(struct wb_wire *w, void *data, size_t size, size_t *n, struct wb_err *err)
{
    for (;;) {
        ssize_t k = w->tls ? wb_tls_recv(w->tls, data, size) : recv(w->fd, data, size, 0);
        int rc = 0;
        if (k > 0) {
            *n = (size_t)k;
            return 0;
        }
        if (k == 0)
            return wb_fail(err, WB_UNAVAILABLE, "%s closed the connection", w->name);
        if (errno == EAGAIN)
            rc = wait_for(w, POLLIN, err);
        else if (errno != EINTR)
            rc = failed(w, "reading from", err);
        if (rc < 0)
            return rc;
    }
}
