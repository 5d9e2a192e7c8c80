#include "server/http/hub.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

struct event {
    int64_t id;
    char *text; /* as it is sent */
    size_t n;
    struct wb_strv topics;
};

struct wb_hub {
    pthread_mutex_t lock;
    struct event ring[WB_HUB_EVENTS];
    int64_t began;       /* the first id that was ever given here */
    int64_t first, next; /* ids in the ring: [first, next) */
    size_t bytes;        /* of their texts */
    struct wb_listener *listeners;
    int64_t count, dropped;
    bool closed;
};

struct wb_listener {
    struct wb_hub *hub;
    struct wb_listener *prev, *next;
    struct wb_strv topics;
    int64_t at; /* id of the next event to look at */
    char *rest; /* of what is being sent */
    size_t rest_at, rest_n;
    int64_t said_ns; /* when something was read last */
    bool asleep, beat, ended;
    char *token; /* id, NULL: it came with none */
    void (*on_empty)(void *arg), (*on_more)(void *arg);
    void *arg;
};

struct wb_hub *wb_hub_new(int64_t first_id)
{
    struct wb_hub *h = wb_calloc(1, sizeof(*h));

    (void)pthread_mutex_init(&h->lock, NULL);
    h->began = h->first = h->next = first_id > 0 ? first_id : 1;
    return h;
}

static void drop(struct event *e)
{
    free(e->text);
    wb_strv_release(&e->topics);
    *e = (struct event){0};
}

void wb_hub_free(struct wb_hub *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < WB_HUB_EVENTS; i++)
        drop(&h->ring[i]);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

static struct event *slot(struct wb_hub *h, int64_t id)
{
    return &h->ring[(uint64_t)id % WB_HUB_EVENTS];
}

/* With the lock held. */
static void wake(struct wb_listener *l)
{
    if (!l->asleep)
        return;
    l->asleep = false;
    l->on_more(l->arg);
}

void wb_hub_publish(struct wb_hub *h, const char *const *topics, const char *type, wb_json *data)
{
    struct wb_buf line = WB_BUF_INIT(WB_HUB_EVENT_MAX);
    struct event *e;

    wb_json_line(data, &line);
    wb_json_free(data);
    if (line.failed) {
        wb_buf_release(&line);
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    e = slot(h, h->next);
    while (h->next > h->first &&
           (h->next - h->first == WB_HUB_EVENTS || h->bytes + line.len > WB_HUB_BYTES)) {
        h->bytes -= slot(h, h->first)->n;
        drop(slot(h, h->first++));
    }
    e->id = h->next++;
    e->text =
        wb_strf("id: %lld\nevent: %s\ndata: %s\n\n", (long long)e->id, type, wb_buf_str(&line));
    e->n = strlen(e->text);
    h->bytes += e->n;
    for (; *topics; topics++)
        wb_strv_add(&e->topics, *topics);
    for (struct wb_listener *l = h->listeners; l; l = l->next)
        wake(l);
    (void)pthread_mutex_unlock(&h->lock);
    wb_buf_release(&line);
}

void wb_hub_tick(struct wb_hub *h, int64_t now_ns)
{
    (void)pthread_mutex_lock(&h->lock);
    for (struct wb_listener *l = h->listeners; l; l = l->next)
        if (now_ns - l->said_ns >= WB_HUB_HEARTBEAT_MS * WB_MS) {
            l->beat = true;
            wake(l);
        }
    (void)pthread_mutex_unlock(&h->lock);
}

void wb_hub_close(struct wb_hub *h)
{
    (void)pthread_mutex_lock(&h->lock);
    h->closed = true;
    for (struct wb_listener *l = h->listeners; l; l = l->next)
        wake(l);
    (void)pthread_mutex_unlock(&h->lock);
}

int64_t wb_hub_listeners(struct wb_hub *h)
{
    int64_t n;

    (void)pthread_mutex_lock(&h->lock);
    n = h->count;
    (void)pthread_mutex_unlock(&h->lock);
    return n;
}

int64_t wb_hub_listeners_of(struct wb_hub *h, const char *token)
{
    int64_t n = 0;

    (void)pthread_mutex_lock(&h->lock);
    for (const struct wb_listener *l = h->listeners; l; l = l->next)
        n += l->token && !strcmp(l->token, token);
    (void)pthread_mutex_unlock(&h->lock);
    return n;
}

void wb_hub_tokens(struct wb_hub *h, struct wb_strv *out)
{
    size_t had = out->n;

    (void)pthread_mutex_lock(&h->lock);
    for (const struct wb_listener *l = h->listeners; l; l = l->next) {
        bool known = !l->token;

        for (size_t i = had; i < out->n && !known; i++)
            known = !strcmp(out->v[i], l->token);
        if (!known)
            wb_strv_add(out, l->token);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

void wb_hub_end(struct wb_hub *h, const char *token)
{
    (void)pthread_mutex_lock(&h->lock);
    for (struct wb_listener *l = h->listeners; l; l = l->next)
        if (l->token && !strcmp(l->token, token)) {
            l->ended = true;
            wake(l);
        }
    (void)pthread_mutex_unlock(&h->lock);
}

int64_t wb_hub_dropped(struct wb_hub *h)
{
    int64_t n;

    (void)pthread_mutex_lock(&h->lock);
    n = h->dropped;
    (void)pthread_mutex_unlock(&h->lock);
    return n;
}

/* ---- listeners ---- */

/* What the client is told at once: how long it waits before it comes back. */
static void say(struct wb_listener *l, char *text)
{
    free(l->rest);
    l->rest = text;
    l->rest_at = 0;
    l->rest_n = strlen(text);
}

struct wb_listener *wb_listener_new(struct wb_hub *h, const struct wb_listener_spec *spec)
{
    struct wb_listener *l = wb_calloc(1, sizeof(*l));

    *l = (struct wb_listener){.hub = h,
                              .on_empty = spec->on_empty,
                              .on_more = spec->on_more,
                              .arg = spec->arg,
                              .token = spec->token && *spec->token ? wb_strdup(spec->token) : NULL,
                              .said_ns = wb_now_ns(NULL)};
    for (size_t i = 0; i < spec->ntopics; i++)
        wb_strv_add(&l->topics, spec->topics[i]);
    say(l, wb_strdup("retry: 3000\n\n"));
    (void)pthread_mutex_lock(&h->lock);
    if (h->closed) {
        (void)pthread_mutex_unlock(&h->lock);
        wb_strv_release(&l->topics);
        free(l->rest);
        free(l->token);
        free(l);
        return NULL;
    }
    /* An id that was never given is one of another server: it has seen nothing of this one. */
    l->at = spec->last_id <= 0 ? h->next : spec->last_id < h->next ? spec->last_id + 1 : 0;
    l->next = h->listeners;
    if (l->next)
        l->next->prev = l;
    h->listeners = l;
    h->count++;
    (void)pthread_mutex_unlock(&h->lock);
    return l;
}

void wb_listener_free(struct wb_listener *l)
{
    if (!l)
        return;
    (void)pthread_mutex_lock(&l->hub->lock);
    if (l->prev)
        l->prev->next = l->next;
    else
        l->hub->listeners = l->next;
    if (l->next)
        l->next->prev = l->prev;
    l->hub->count--;
    (void)pthread_mutex_unlock(&l->hub->lock);
    wb_strv_release(&l->topics);
    free(l->rest);
    free(l->token);
    free(l);
}

static bool wanted(const struct wb_listener *l, const struct event *e)
{
    if (!l->topics.n)
        return true;
    for (size_t i = 0; i < e->topics.n; i++)
        for (size_t k = 0; k < l->topics.n; k++)
            if (!strcmp(e->topics.v[i], l->topics.v[k]))
                return true;
    return false;
}

/* The next thing to send, if there is one. With the lock held. */
static bool advance(struct wb_listener *l)
{
    struct wb_hub *h = l->hub;

    if (l->at < h->first) {
        /* what an earlier server gave, this one cannot have dropped */
        if (l->at > 0)
            h->dropped += h->first - (l->at > h->began ? l->at : h->began);
        l->at = h->next;
        say(l, wb_strf("id: %lld\nevent: reset\ndata: {}\n\n", (long long)(h->next - 1)));
        return true;
    }
    while (l->at < h->next) {
        const struct event *e = slot(h, l->at++);

        if (wanted(l, e)) {
            say(l, wb_strndup(e->text, e->n));
            return true;
        }
    }
    if (l->beat) {
        say(l, wb_strdup(":\n\n"));
        return true;
    }
    return false;
}

ssize_t wb_listener_read(struct wb_listener *l, char *out, size_t n)
{
    struct wb_hub *h = l->hub;
    ssize_t got = 0;

    (void)pthread_mutex_lock(&h->lock);
    if (l->ended) {
        got = -1;
    } else if (l->rest_at == l->rest_n && !advance(l)) {
        if (h->closed) {
            got = -1;
        } else {
            l->asleep = true;
            l->on_empty(l->arg);
        }
    } else {
        size_t most = l->rest_n - l->rest_at;

        got = (ssize_t)(most < n ? most : n);
        memcpy(out, l->rest + l->rest_at, (size_t)got);
        l->rest_at += (size_t)got;
        l->said_ns = wb_now_ns(NULL);
        l->beat = false;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return got;
}
