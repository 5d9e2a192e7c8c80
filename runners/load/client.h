/*
 * Evidence about the load generator itself: what its threads used and waited for, what the host
 * took away. Read by the control thread at the edges of the measured window.
 */
#ifndef WB_LOAD_CLIENT_H
#define WB_LOAD_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runners/load/links.h"
#include "server/base/json.h"

struct wb_thread_use {
    int64_t cpu_ns;      /* own CPU time */
    int64_t wait_ns;     /* ready to run but not running; -1 unknown */
    int64_t involuntary; /* switches away from it; -1 unknown */
};

struct wb_client_sample {
    int64_t at;                                       /* ns monotonic */
    int64_t cpu_ns;                                   /* of the process */
    int64_t steal, jiffies;                           /* of the host; -1 unknown */
    int64_t throttled_ns, throttled_periods, periods; /* of the own cgroup; -1 unknown */
    struct wb_links links;
    struct wb_thread_use *thread;
    int n;
};

struct wb_client_thread {
    pthread_t thread;
    pid_t tid;
};

struct wb_client {
    char *cpu_stat; /* file of the own control group; NULL: unknown */
};

void wb_client_init(struct wb_client *c);
void wb_client_release(struct wb_client *c);
void wb_client_read(const struct wb_client *c, const struct wb_client_thread *threads, int n,
                    struct wb_client_sample *out);
void wb_client_sample_release(struct wb_client_sample *s);

/* What lies between two samples. Percent and per second; negative: unknown. */
struct wb_client_use {
    double seconds, cpu_s;
    double steal_percent, throttled_s, throttled_percent;
    double busiest_percent, run_queue_percent; /* of the worst thread */
    double mean_percent;                       /* over the threads */
    double link_percent;                       /* of the fullest network link */
    const char *link;                          /* its name, in the later sample; NULL: none */
};
struct wb_client_use wb_client_between(const struct wb_client_sample *from,
                                       const struct wb_client_sample *to);
/* The `client` object of the result; owned by the caller. */
wb_json *wb_client_json(const struct wb_client_sample *from, const struct wb_client_sample *to,
                        uint64_t operations);

#endif
