/*
 * The thread that makes queued campaigns run: one engine process for each, started as a job that
 * survives this server, found again by its folder after a restart, resumed when it was killed,
 * told to end when a cancel was asked for. It also reads what running engines write and passes it
 * on.
 */
#ifndef WB_QUEUE_DISPATCH_H
#define WB_QUEUE_DISPATCH_H

#include "provisioners/hosts/source.h"
#include "server/base/err.h"
#include "server/base/json.h"

struct wb_dispatch;

struct wb_dispatch_spec {
    const char *db_path, *store_path, *state_dir, *recipes_dir; /* absolute, borrowed */
    const char *program;                                        /* this program: "weighbridge" */
    const char *load_program;                                   /* wb-load */
    const char *docker_socket;
    const struct wb_host_pools *pools; /* borrowed for the life of the thread */
    /* Called by the thread for each event of a running campaign and each change of the queue.
     * topics is NULL-ended; data is taken. */
    void (*tell)(void *arg, const char *const *topics, const char *type, wb_json *data);
    void (*tick)(void *arg); /* about five times a second */
    void *arg;
};

/* An engine that was killed is started so often in all before its campaign is given up. */
#define WB_ENGINE_STARTS_MAX 3

/* Starts the thread; engines of an earlier server are taken over first. */
int wb_dispatch_start(const struct wb_dispatch_spec *spec, struct wb_dispatch **out,
                      struct wb_err *err) WB_MUST_CHECK;
/* Looks at the queue at once. Any thread. */
void wb_dispatch_wake(struct wb_dispatch *d);
/* Ms since the thread last came round; a large number means that it hangs. Any thread. */
int64_t wb_dispatch_age_ms(const struct wb_dispatch *d);
/* What went wrong last, "" when all is well; caller frees. Any thread. */
char *wb_dispatch_trouble(struct wb_dispatch *d);
/* Ends the thread. Engines go on and are found again by the next server. */
void wb_dispatch_stop(struct wb_dispatch *d);

#endif
