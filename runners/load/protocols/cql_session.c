#include "runners/load/protocols/cql_session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

#define TIMEOUT (10 * WB_SEC) /* a schema change takes seconds on a busy server */
#define CONNECT_TIMEOUT (5 * WB_SEC)
#define READ_SIZE 65536
#define REQUEST_MAX (1u << 20)

/* Waits until the socket is ready. */
static int wait_for(struct wb_cql_session *s, short events, int64_t deadline, struct wb_err *err)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = s->fd, .events = events},
                                {.fd = wb_cancel_fd(s->cancel), .events = POLLIN}};
        int64_t left = deadline - wb_now_ns(NULL);
        struct timespec ts = {.tv_sec = left / WB_SEC, .tv_nsec = left % WB_SEC};
        int n;
        if (wb_cancelled(s->cancel))
            return wb_fail(err, WB_CANCELLED, "stopped");
        if (left <= 0)
            return wb_fail(err, WB_TIMEOUT, "%s does not answer", s->name);
        n = ppoll(fds, 2, &ts, NULL);
        if (n < 0 && errno != EINTR)
            return wb_fail_sys(err, errno, "waiting for %s", s->name);
        if (n > 0 && fds[0].revents)
            return 0;
    }
}

static int no_connection(const struct wb_cql_session *s, int sys, struct wb_err *err)
{
    (void)wb_fail_sys(err, sys, "connecting to %s", s->name);
    if (err)
        err->code = WB_UNAVAILABLE;
    return -WB_UNAVAILABLE;
}

static int connect_to(struct wb_cql_session *s, const struct sockaddr *addr, socklen_t len,
                      struct wb_err *err)
{
    int one = 1, sys = 0, rc;
    socklen_t n = sizeof(sys);

    s->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return wb_fail_sys(err, errno, "making a socket");
    /* Not fatal where unknown. */
    (void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(s->fd, addr, len) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EINTR)
        return no_connection(s, errno, err);
    rc = wait_for(s, POLLOUT, wb_now_ns(NULL) + CONNECT_TIMEOUT, err);
    if (rc < 0)
        return rc;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
        sys = errno;
    return sys ? no_connection(s, sys, err) : 0;
}

static int send_all(struct wb_cql_session *s, int64_t deadline, struct wb_err *err)
{
    size_t sent = 0;

    while (sent < s->out.len) {
        ssize_t n = send(s->fd, s->out.data + sent, s->out.len - sent, MSG_NOSIGNAL);
        int rc = 0;
        if (n < 0 && errno == EAGAIN)
            rc = wait_for(s, POLLOUT, deadline, err);
        else if (n < 0 && errno != EINTR)
            rc = wb_fail_sys(err, errno, "writing to %s", s->name);
        if (rc < 0)
            return rc;
        sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int keep_answer(void *arg, const struct wb_cql_envelope *e)
{
    struct wb_cql_session *s = arg;

    if (e->stream < 0) /* an event that nobody asked for */
        return 0;
    if (s->answered) {
        s->reader.why = "an answer to nothing that was asked";
        return -1;
    }
    wb_buf_clear(&s->body);
    wb_buf_add(&s->body, e->body, e->n);
    s->answer = *e;
    s->answer.body = wb_buf_str(&s->body);
    s->answered = true;
    return 0;
}

int wb_cql_ask(struct wb_cql_session *s, struct wb_err *err)
{
    int64_t deadline = wb_now_ns(NULL) + s->timeout_ns;
    WB_AUTO_FREE char *data = wb_calloc(READ_SIZE, 1);
    int rc = wb_buf_check(&s->request, "a question to the server", err);

    if (rc < 0)
        return rc;
    wb_buf_clear(&s->out);
    wb_cql_wrap(&s->reader, &s->request, &s->out);
    wb_buf_clear(&s->request);
    s->answered = false;
    rc = send_all(s, deadline, err);
    while (rc == 0 && !s->answered) {
        ssize_t n;
        rc = wait_for(s, POLLIN, deadline, err);
        if (rc < 0)
            break;
        n = recv(s->fd, data, READ_SIZE, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0)
            return wb_fail_sys(err, errno, "reading from %s", s->name);
        if (n == 0)
            return wb_fail(err, WB_UNAVAILABLE, "%s closed the connection", s->name);
        if (wb_cql_read(&s->reader, data, (size_t)n, keep_answer, s) < 0)
            return wb_fail(err, WB_PROTOCOL, "%s does not speak CQL: %s", s->name, s->reader.why);
    }
    return rc;
}

int wb_cql_query(struct wb_cql_session *s, const char *text, struct wb_err *err)
{
    int rc;

    wb_cql_put_query(&s->request, s->reader.version, 0, text, 1);
    rc = wb_cql_ask(s, err);
    if (rc < 0)
        return rc;
    if (s->answer.opcode != WB_CQL_RESULT) {
        rc = wb_cql_fail(err, WB_INVALID, &s->answer);
        return wb_wrap(err, "%s: %s", s->name, text);
    }
    return 0;
}

/* OPTIONS, for what the server can compress. */
static int check_supported(struct wb_cql_session *s, const struct wb_cql_hello *h,
                           struct wb_err *err)
{
    int rc;

    wb_cql_put_options(&s->request, h->version, 0);
    rc = wb_cql_ask(s, err);
    if (rc < 0 || s->answer.opcode == WB_CQL_ERROR)
        return rc; /* an error: the version, which is looked at by the caller */
    if (s->answer.opcode != WB_CQL_SUPPORTED)
        return wb_fail(err, WB_PROTOCOL, "%s does not speak CQL: it answered OPTIONS with 0x%02x",
                       s->name, s->answer.opcode);
    if (h->lz4 && !wb_cql_supports(&s->answer, "COMPRESSION", "lz4"))
        return wb_fail(err, WB_UNSUPPORTED, "%s cannot compress with lz4", s->name);
    return 0;
}

static int say_hello(struct wb_cql_session *s, const struct wb_cql_hello *h, struct wb_err *err)
{
    int rc;

    wb_cql_put_startup(&s->request, h, 0);
    do {
        rc = wb_cql_ask(s, err);
        if (rc < 0)
            return rc;
        s->reader.framed = h->version >= 5; /* from the answer to STARTUP on */
        rc = wb_cql_hello_take(h, &s->answer, &s->request, err);
    } while (rc == 0);
    return rc < 0 ? rc : 0;
}

static void begin(struct wb_cql_session *s, const char *name, const struct wb_cql_hello *h,
                  const struct wb_cancel *cancel)
{
    wb_cql_session_close(s);
    s->name = wb_strdup(name);
    s->cancel = cancel;
    s->timeout_ns = TIMEOUT;
    s->request = s->out = (struct wb_buf)WB_BUF_INIT(REQUEST_MAX);
    s->body = (struct wb_buf)WB_BUF_INIT(WB_CQL_BODY_MAX);
    wb_cql_reader_init(&s->reader, h->version, h->lz4);
}

int wb_cql_session_open(struct wb_cql_session *s, const char *name, const struct sockaddr *addr,
                        socklen_t len, struct wb_cql_hello *h, bool lower,
                        const struct wb_cancel *cancel, struct wb_err *err)
{
    for (;;) {
        struct wb_cql_error x;
        int rc;
        begin(s, name, h, cancel);
        rc = connect_to(s, addr, len, err);
        if (rc == 0)
            rc = check_supported(s, h, err);
        if (rc == 0 && wb_cql_take_error(&s->answer, &x) && x.code == WB_CQL_CODE_PROTOCOL) {
            if (lower && h->version > WB_CQL_OLDEST) {
                h->version--;
                continue;
            }
            rc = wb_cql_fail(err, WB_UNSUPPORTED, &s->answer);
            rc = wb_wrap(err, "%s does not speak version %u of the protocol", name, h->version);
        }
        if (rc == 0 && (rc = say_hello(s, h, err)) < 0)
            rc = wb_wrap(err, "%s", name);
        return rc;
    }
}

void wb_cql_session_close(struct wb_cql_session *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    free(s->name);
    wb_cql_reader_release(&s->reader);
    wb_buf_release(&s->request);
    wb_buf_release(&s->out);
    wb_buf_release(&s->body);
    *s = (struct wb_cql_session)WB_CQL_SESSION_INIT;
}
