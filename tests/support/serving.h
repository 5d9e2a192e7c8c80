/*
 * What the servers of the tests have in common: answers that wait for their time, options, a socket
 * to listen on and signals that end them.
 */
#ifndef WB_TESTS_SERVING_H
#define WB_TESTS_SERVING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "server/base/mem.h"
#include "server/base/units.h"

static void die(const char *what)
{
    fprintf(stderr, "responder: %s: %m\n", what);
    exit(1);
}

/* Whether the count-th is one of every n; n 0: none is. */
static bool every(int64_t n, int64_t count)
{
    return n > 0 && count % n == 0;
}

/* --- answers that wait: a binary heap, the first one due in front --- */

struct due {
    int64_t at, nth; /* among equals the first one first */
    void *what;      /* the owner's */
};

struct dues {
    struct due *v;
    size_t n, cap;
    int64_t added;
};

static bool due_sooner(const struct due *a, const struct due *b)
{
    return a->at != b->at ? a->at < b->at : a->nth < b->nth;
}

static void due_add(struct dues *d, int64_t at, void *what)
{
    struct due x = {.at = at, .nth = d->added++, .what = what};
    size_t i = d->n++;

    wb_grow(&d->v, &d->cap, d->n, sizeof(*d->v));
    for (; i > 0 && due_sooner(&x, &d->v[(i - 1) / 2]); i = (i - 1) / 2)
        d->v[i] = d->v[(i - 1) / 2];
    d->v[i] = x;
}

/* Takes the first one; there is one. */
static void *due_take(struct dues *d)
{
    void *what = d->v[0].what;
    struct due last = d->v[--d->n];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < d->n) {
        child += child + 1 < d->n && due_sooner(&d->v[child + 1], &d->v[child]);
        if (!due_sooner(&d->v[child], &last))
            break;
        d->v[i] = d->v[child];
        i = child;
    }
    d->v[i] = last;
    return what;
}

/* --- options: "--name N" or "--name TEXT" --- */

struct option_row {
    const char *name;
    int64_t *number;
    const char **text;
};

static void read_option_rows(const struct option_row *rows, size_t n, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < n && strcmp(rows[k].name, argv[i]) != 0)
            k++;
        if (k == n || i + 1 >= argc ||
            (rows[k].number &&
             wb_parse_int(argv[i + 1], 0, INT64_MAX / 2, rows[k].number, NULL) < 0)) {
            fprintf(stderr, "responder: bad argument %s\n", argv[i]);
            exit(2);
        }
        if (rows[k].text)
            *rows[k].text = argv[i + 1];
    }
}

/* --- listening --- */

/* Returns the socket; *port is filled in when it was 0. */
static int listen_at(const char *address, int64_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t n = sizeof(a);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        die("listen");
    *port = ntohs(a.sin_port);
    return fd;
}

/* SIGTERM and SIGINT as a descriptor. */
static int ending_signals(void)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        die("signalfd");
    return fd;
}

static void watch(int epfd, int fd, void *as)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = as};

    if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
        die("epoll_ctl");
}

#endif
