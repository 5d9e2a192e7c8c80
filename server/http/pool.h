/*
 * The threads that answer requests: a bounded number with a bounded queue, each with a store and a
 * database of its own, so that the HTTP thread never waits for a disk.
 */
#ifndef WB_HTTP_POOL_H
#define WB_HTTP_POOL_H

#include "server/http/service.h"

#define WB_POOL_THREADS 4
#define WB_POOL_WAITING 256 /* requests that may wait */

struct wb_pool;

/* Work of one request; done is called by the thread once the answer is there. */
struct wb_work {
    struct wb_request *request;
    struct wb_answer *answer;
    void (*done)(void *arg);
    void *arg;
    struct wb_work *next;
};

/* WB_NOT_FOUND and the like when store or database cannot be opened. */
int wb_pool_start(struct wb_service *s, struct wb_pool **out, struct wb_err *err) WB_MUST_CHECK;
/* False when too many wait already. w is borrowed until done. */
bool wb_pool_add(struct wb_pool *p, struct wb_work *w);
/* Answers what waits, then ends the threads. */
void wb_pool_stop(struct wb_pool *p);

#endif
