#include "server/http/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "server/queue/queue.h"

struct member {
    struct wb_pool *pool;
    struct wb_context context;
    pthread_t thread;
    bool started;
};
struct wb_pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct wb_work *first, *last;
    size_t waiting;
    bool stop;
    struct member members[WB_POOL_THREADS];
};

static void *serve(void *arg)
{
    struct member *m = arg;
    struct wb_pool *p = m->pool;

    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        struct wb_work *w;

        while (!p->first && !p->stop)
            (void)pthread_cond_wait(&p->more, &p->lock);
        w = p->first;
        if (!w)
            break;
        p->first = w->next;
        if (!p->first)
            p->last = NULL;
        p->waiting--;
        (void)pthread_mutex_unlock(&p->lock);
        wb_service_answer(&m->context, w->request, w->answer);
        w->done(w->arg);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start_member(struct wb_pool *p, struct member *m, struct wb_service *s,
                        struct wb_err *err)
{
    int rc;

    m->pool = p;
    m->context.service = s;
    rc = wb_store_open(s->store_path, false, NULL, &m->context.store, err);
    if (rc == 0)
        rc = wb_queue_open(s->db_path, &m->context.db, err);
    if (rc == 0 && pthread_create(&m->thread, NULL, serve, m) != 0)
        rc = wb_fail(err, WB_IO, "cannot start a thread");
    m->started = rc == 0;
    return rc;
}

int wb_pool_start(struct wb_service *s, struct wb_pool **out, struct wb_err *err)
{
    struct wb_pool *p = wb_calloc(1, sizeof(*p));
    int rc = 0;

    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    for (size_t i = 0; rc == 0 && i < WB_POOL_THREADS; i++)
        rc = start_member(p, &p->members[i], s, err);
    if (rc < 0) {
        wb_pool_stop(p);
        return rc;
    }
    *out = p;
    return 0;
}

bool wb_pool_add(struct wb_pool *p, struct wb_work *w)
{
    bool room;

    (void)pthread_mutex_lock(&p->lock);
    room = !p->stop && p->waiting < WB_POOL_WAITING;
    if (room) {
        w->next = NULL;
        if (p->last)
            p->last->next = w;
        else
            p->first = w;
        p->last = w;
        p->waiting++;
        (void)pthread_cond_signal(&p->more);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return room;
}

void wb_pool_stop(struct wb_pool *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_broadcast(&p->more);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < WB_POOL_THREADS; i++) {
        struct member *m = &p->members[i];

        if (m->started)
            (void)pthread_join(m->thread, NULL);
        wb_store_close(m->context.store);
        wb_db_close(m->context.db);
    }
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
