/*
 * wb-ask: a few CQL queries to one node, answers as lines of text. For the steps of recipes: it
 * costs milliseconds where the database's own tools cost seconds of CPU.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runners/ask/cql.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define EXIT_ANSWERED 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_YET 75
#define LIMIT_NS (10 * WB_SEC)

static const char usage[] =
    "usage: wb-ask [--limit TIME] ADDRESS PORT [QUERY...]\n"
    "Asks a node that speaks CQL. Each row is a line: the query's number from 1 and the values,\n"
    "with tabs between. Without a query it only asks whether the node serves.\n"
    "Exit: 0 answered, 1 the server refused, 2 usage, 75 no answer (yet).\n";

struct link {
    int fd;
    int64_t end_ns;
    const char *address;
    int port;
};

/* The kernel ends a call that takes longer than what is left of the time. */
static int set_limits(const struct link *l, struct wb_err *err)
{
    int64_t left = l->end_ns - wb_now_ns(NULL);
    struct timeval tv;

    if (left <= 0)
        return wb_fail(err, WB_TIMEOUT, "no answer from %s:%d in time", l->address, l->port);
    tv = (struct timeval){.tv_sec = left / WB_SEC, .tv_usec = left % WB_SEC / WB_US + 1};
    if (tv.tv_usec >= 1000000)
        tv = (struct timeval){.tv_sec = tv.tv_sec + 1};
    if (setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
        setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
        return wb_fail_sys(err, errno, "setting the time limit of a socket");
    return 0;
}

static int failed(const struct link *l, const char *what, struct wb_err *err)
{
    int e = errno;

    if (e == EAGAIN || e == EINPROGRESS || e == ETIMEDOUT)
        return wb_fail(err, WB_TIMEOUT, "no answer from %s:%d in time", l->address, l->port);
    if (e == ECONNREFUSED || e == ECONNRESET || e == EPIPE || e == EHOSTUNREACH || e == ENETUNREACH)
        return wb_fail(err, WB_UNAVAILABLE, "%s %s:%d: nobody serves there", what, l->address,
                       l->port);
    return wb_fail_sys(err, e, "%s %s:%d", what, l->address, l->port);
}

static int open_link(struct link *l, struct wb_err *err)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)l->port)};
    bool v4 = inet_pton(AF_INET, l->address, &four.sin_addr) == 1;
    int rc;

    if (!v4 && inet_pton(AF_INET6, l->address, &six.sin6_addr) != 1)
        return wb_fail(err, WB_INVALID, "'%.100s' is no numeric address", l->address);
    l->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return wb_fail_sys(err, errno, "socket");
    rc = set_limits(l, err);
    if (rc < 0)
        return rc;
    rc = v4 ? connect(l->fd, (struct sockaddr *)&four, sizeof(four))
            : connect(l->fd, (struct sockaddr *)&six, sizeof(six));
    return rc < 0 ? failed(l, "connecting to", err) : 0;
}

static int send_all(const struct link *l, const struct wb_buf *b, struct wb_err *err)
{
    for (size_t at = 0; at < b->len;) {
        int rc = set_limits(l, err);
        ssize_t n;

        if (rc < 0)
            return rc;
        n = send(l->fd, b->data + at, b->len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return failed(l, "sending to", err);
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_all(const struct link *l, unsigned char *data, size_t n, struct wb_err *err)
{
    for (size_t at = 0; at < n;) {
        int rc = set_limits(l, err);
        ssize_t got;

        if (rc < 0)
            return rc;
        got = recv(l->fd, data + at, n - at, 0);
        if (got == 0)
            return wb_fail(err, WB_UNAVAILABLE, "%s:%d closed the connection", l->address, l->port);
        if (got < 0 && errno != EINTR)
            return failed(l, "reading from", err);
        at += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* One request and its answer; the body is owned by the caller. */
static int ask(const struct link *l, enum wb_cql_opcode opcode, const char *query,
               struct wb_cql_header *h, unsigned char **body, struct wb_err *err)
{
    struct wb_buf request = WB_BUF_INIT(WB_CQL_QUERY_MAX + 128);
    unsigned char head[WB_CQL_HEADER];
    int rc;

    wb_cql_request(opcode, query, &request);
    rc = wb_buf_check(&request, "the query", err);
    if (rc == 0)
        rc = send_all(l, &request, err);
    wb_buf_release(&request);
    if (rc == 0)
        rc = read_all(l, head, sizeof(head), err);
    if (rc == 0)
        rc = wb_cql_header_read(head, h, err);
    if (rc < 0)
        return rc;
    *body = wb_calloc(h->length, 1);
    return read_all(l, *body, h->length, err);
}

static int expect(const struct link *l, enum wb_cql_opcode opcode, enum wb_cql_opcode want,
                  struct wb_err *err)
{
    struct wb_cql_header h;
    struct wb_buf none = WB_BUF_INIT(1024);
    unsigned char *body = NULL;
    int rc = ask(l, opcode, NULL, &h, &body, err);

    if (rc == 0 && h.opcode == WB_CQL_AUTHENTICATE)
        rc = wb_fail(err, WB_IO, "the server wants a password, and wb-ask has none");
    else if (rc == 0 && h.opcode != (unsigned)want)
        rc = wb_cql_answer(&h, body, 0, &none, err);
    wb_buf_release(&none);
    free(body);
    return rc;
}

static int ask_all(struct link *l, char **queries, int n, struct wb_err *err)
{
    struct wb_buf out = WB_BUF_INIT(4 * WB_CQL_BODY_MAX);
    int rc = open_link(l, err);

    if (rc == 0)
        rc = expect(l, WB_CQL_OPTIONS, WB_CQL_SUPPORTED, err);
    if (rc == 0 && n > 0)
        rc = expect(l, WB_CQL_STARTUP, WB_CQL_READY, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        struct wb_cql_header h;
        unsigned char *body = NULL;

        rc = ask(l, WB_CQL_QUERY, queries[i], &h, &body, err);
        if (rc == 0)
            rc = wb_cql_answer(&h, body, i + 1, &out, err);
        if (rc < 0)
            (void)wb_wrap(err, "query %d", i + 1);
        free(body);
    }
    if (rc == 0 && (fwrite(wb_buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0))
        rc = wb_fail_sys(err, errno, "writing the answer");
    wb_buf_release(&out);
    if (l->fd >= 0)
        (void)close(l->fd);
    return rc;
}

int main(int argc, char **argv)
{
    struct link l = {.fd = -1};
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int64_t limit = LIMIT_NS, port = 0;
    int at = 1, rc = 0;

    if (argc > 2 && strcmp(argv[1], "--limit") == 0) {
        rc = wb_parse_duration(argv[2], WB_MS, 3600 * WB_SEC, &limit, &err);
        at = 3;
    }
    if (rc == 0 && argc - at < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (rc == 0)
        rc = wb_parse_int(argv[at + 1], 1, 65535, &port, &err);
    if (rc == 0) {
        l.end_ns = wb_now_ns(NULL) + limit;
        l.address = argv[at];
        l.port = (int)port;
        rc = ask_all(&l, argv + at + 2, argc - at - 2, &err);
    }
    if (rc == 0)
        return EXIT_ANSWERED;
    fprintf(stderr, "wb-ask: %s\n", wb_err_text(&err, text, sizeof(text)));
    return rc == -WB_INVALID                            ? EXIT_USAGE
           : rc == -WB_UNAVAILABLE || rc == -WB_TIMEOUT ? EXIT_NOT_YET
                                                        : EXIT_FAILED;
}
