/*
 * A scripted HTTP server on a Unix socket, for tests of clients: it answers the n-th request with
 * the n-th step, well or badly. Header-only, because every test is one program.
 */
#ifndef WB_TESTS_FAKE_HTTP_H
#define WB_TESTS_FAKE_HTTP_H

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/base/buf.h"
#include "server/base/mem.h"

enum fake_end {
    FAKE_KEEP,  /* wait for the next request on this connection */
    FAKE_CLOSE, /* close it */
    FAKE_STALL  /* say nothing more until the client goes away */
};

struct fake_step {
    const char *expect; /* start of the request line, "GET /_ping"; NULL: anything */
    const char *reply;  /* raw bytes; NULL: none */
    size_t n;           /* bytes of the reply; 0: up to its NUL */
    enum fake_end end;
    size_t flood; /* bytes of 'x' sent after the reply */
};

/* FAKE(expect, reply, .end = ..., .flood = ...) */
#define FAKE(expect_, reply_, ...)                            \
    {                                                         \
        .expect = (expect_), .reply = (reply_), ##__VA_ARGS__ \
    }

#define FAKE_REQUESTS 32
struct fake_http {
    char dir[64];
    char socket[96];
    const struct fake_step *steps;
    size_t nsteps, next;
    size_t connections;
    char *requests[FAKE_REQUESTS]; /* head and body as received */
    char *mismatch;                /* first request that no step expected */
    int listener, stop[2];
    pthread_t thread;
};

/* Length of a whole request in b, 0 when more must come. */
static inline size_t fake_complete(const struct wb_buf *b)
{
    const char *text = wb_buf_str(b);
    const char *end = strstr(text, "\r\n\r\n");

    if (!end)
        return 0;
    size_t head = (size_t)(end + 4 - text);
    const char *length = strcasestr(text, "\r\nContent-Length:");
    if (length && length < end) {
        size_t n = strtoul(length + 17, NULL, 10);
        return b->len >= head + n ? head + n : 0;
    }
    if (strcasestr(text, "\r\nTransfer-Encoding: chunked") && strncmp(text, "GET", 3) != 0) {
        /* A body may hold NULs. */
        const char *last = memmem(end + 2, b->len - (size_t)(end + 2 - text), "\r\n0\r\n\r\n", 7);
        return last ? (size_t)(last + 7 - text) : 0;
    }
    return head;
}

static inline void fake_send(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t done = send(fd, data, n, MSG_NOSIGNAL);
        if (done <= 0)
            return;
        data += done;
        n -= (size_t)done;
    }
}

/* Waits for the client or for the stop; 1: readable. */
static inline int fake_wait(struct fake_http *f, int fd)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = f->stop[0], .events = POLLIN}};

    while (poll(p, 2, -1) < 0)
        ;
    return p[1].revents ? 0 : 1;
}

/* Answers one request; false when the connection is over. */
static inline bool fake_answer(struct fake_http *f, int fd, const char *request, size_t n)
{
    static const char xs[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    size_t i = f->next++;
    char sink[256];

    if (i < FAKE_REQUESTS) {
        f->requests[i] = wb_calloc(n + 1, 1);
        memcpy(f->requests[i], request, n);
    }
    if (i >= f->nsteps || (f->steps[i].expect &&
                           strncmp(request, f->steps[i].expect, strlen(f->steps[i].expect)) != 0)) {
        if (!f->mismatch)
            f->mismatch = wb_strndup(request, strcspn(request, "\r"));
        return false;
    }
    const struct fake_step *s = &f->steps[i];
    if (s->reply)
        fake_send(fd, s->reply, s->n ? s->n : strlen(s->reply));
    for (size_t left = s->flood; left; left -= left < 64 ? left : 64)
        fake_send(fd, xs, left < 64 ? left : 64);
    while (s->end == FAKE_STALL && fake_wait(f, fd) && recv(fd, sink, sizeof sink, 0) > 0)
        ;
    return s->end == FAKE_KEEP;
}

static inline void fake_connection(struct fake_http *f, int fd)
{
    struct wb_buf b = WB_BUF_INIT(64 << 20);
    bool more = true;

    f->connections++;
    while (more && fake_wait(f, fd)) {
        char *room = wb_buf_room(&b, 65536);
        ssize_t got = recv(fd, room, 65536, 0);
        if (got <= 0)
            break;
        wb_buf_commit(&b, (size_t)got);
        size_t n = fake_complete(&b);
        if (n) {
            more = fake_answer(f, fd, b.data, n);
            wb_buf_consume(&b, n);
        }
    }
    wb_buf_release(&b);
}

static inline void *fake_run(void *arg)
{
    struct fake_http *f = arg;

    while (fake_wait(f, f->listener)) {
        int fd = accept(f->listener, NULL, NULL);
        if (fd < 0)
            continue;
        fake_connection(f, fd);
        close(fd);
    }
    return NULL;
}

/* Starts it; 0 on success. steps must outlive it. */
static inline int fake_start(struct fake_http *f, const struct fake_step *steps, size_t n)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    *f = (struct fake_http){.dir = "/tmp/wb-fake-XXXXXX", .steps = steps, .nsteps = n};
    if (!mkdtemp(f->dir))
        return -1;
    memcpy(f->socket, f->dir, strlen(f->dir));
    memcpy(f->socket + strlen(f->dir), "/s", 3);
    memcpy(a.sun_path, f->socket, strlen(f->socket) + 1);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->listener < 0 || bind(f->listener, (struct sockaddr *)&a, sizeof a) < 0 ||
        listen(f->listener, 16) < 0 || pipe(f->stop) < 0)
        return -1;
    return pthread_create(&f->thread, NULL, fake_run, f);
}

/* Stops it and removes its socket. After that mismatch, next and requests may be read; they are
 * freed by fake_release. */
static inline void fake_stop(struct fake_http *f)
{
    close(f->stop[1]);
    pthread_join(f->thread, NULL);
    close(f->stop[0]);
    close(f->listener);
    unlink(f->socket);
    rmdir(f->dir);
}

static inline void fake_release(struct fake_http *f)
{
    for (size_t i = 0; i < FAKE_REQUESTS; i++)
        free(f->requests[i]);
    free(f->mismatch);
}

#endif
