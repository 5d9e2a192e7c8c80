#include "server/http/watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "server/base/mem.h"

struct wb_watched {
    struct wb_watched *next, *prev;
    int fd;
    bool waits, cut;
    int64_t since_ns;
};
struct wb_watch {
    pthread_mutex_t lock; /* guards all below and all connections */
    struct wb_watched *first;
    size_t n, most;
    int64_t wait_ns, cut;
};

struct wb_watch *wb_watch_new(size_t most, int64_t wait_ns)
{
    struct wb_watch *w = wb_calloc(1, sizeof(*w));

    (void)pthread_mutex_init(&w->lock, NULL);
    w->most = most;
    w->wait_ns = wait_ns;
    return w;
}

void wb_watch_free(struct wb_watch *w)
{
    if (!w)
        return;
    while (w->first)
        wb_watch_remove(w, w->first);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

/* With the lock. */
static void cut(struct wb_watch *w, struct wb_watched *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    c->cut = true;
    w->cut++;
}

/* With the lock: the one that has kept waiting the longest. */
static void make_room(struct wb_watch *w)
{
    struct wb_watched *oldest = NULL;

    for (struct wb_watched *c = w->first; c; c = c->next)
        if (c->waits && !c->cut && (!oldest || c->since_ns < oldest->since_ns))
            oldest = c;
    if (oldest)
        cut(w, oldest);
}

struct wb_watched *wb_watch_add(struct wb_watch *w, int fd, int64_t now_ns)
{
    struct wb_watched *c = wb_calloc(1, sizeof(*c));

    c->fd = fd;
    c->since_ns = now_ns;
    (void)pthread_mutex_lock(&w->lock);
    if (w->n >= w->most)
        make_room(w);
    c->waits = true;
    c->next = w->first;
    if (w->first)
        w->first->prev = c;
    w->first = c;
    w->n++;
    (void)pthread_mutex_unlock(&w->lock);
    return c;
}

void wb_watch_remove(struct wb_watch *w, struct wb_watched *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&w->lock);
    if (c->prev)
        c->prev->next = c->next;
    else
        w->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    w->n--;
    (void)pthread_mutex_unlock(&w->lock);
    free(c);
}

void wb_watch_busy(struct wb_watch *w, struct wb_watched *c)
{
    (void)pthread_mutex_lock(&w->lock);
    c->waits = false;
    (void)pthread_mutex_unlock(&w->lock);
}

void wb_watch_idle(struct wb_watch *w, struct wb_watched *c, int64_t now_ns)
{
    (void)pthread_mutex_lock(&w->lock);
    c->waits = true;
    c->since_ns = now_ns;
    (void)pthread_mutex_unlock(&w->lock);
}

void wb_watch_tick(struct wb_watch *w, int64_t now_ns)
{
    (void)pthread_mutex_lock(&w->lock);
    for (struct wb_watched *c = w->first; c; c = c->next)
        if (c->waits && !c->cut && now_ns - c->since_ns > w->wait_ns)
            cut(w, c);
    (void)pthread_mutex_unlock(&w->lock);
}

size_t wb_watch_count(struct wb_watch *w)
{
    size_t n;

    (void)pthread_mutex_lock(&w->lock);
    n = w->n;
    (void)pthread_mutex_unlock(&w->lock);
    return n;
}

int64_t wb_watch_cut(struct wb_watch *w)
{
    int64_t n;

    (void)pthread_mutex_lock(&w->lock);
    n = w->cut;
    (void)pthread_mutex_unlock(&w->lock);
    return n;
}
