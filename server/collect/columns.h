/*
 * What is computed from two readings of the sampler. Only for this room.
 */
#ifndef WB_COLLECT_COLUMNS_H
#define WB_COLLECT_COLUMNS_H

#include "server/collect/processes.h"

/* Sums over the groups of one role. */
struct wb_group_sum {
    bool ok;
    int64_t cpu_ns, memory_bytes, periods, throttled;
};

/* One reading: counters since some beginning, so that any two make an interval. */
struct wb_reading {
    int64_t host_ns, groups_ns, processes_ns; /* when each part was read */
    size_t phase;                             /* index of the phase's name */
    bool cpu_ok, net_ok, swap_ok, processes_ok;
    struct wb_cpu_ticks cpu;
    struct wb_net_bytes net;
    int64_t swap_in;
    struct wb_group_sum database, load;
    int64_t used[WB_WHOSE_COUNT]; /* ticks since the first reading */
};

/* A figure of an interval is num / den; a window's mean is the sum of num over the sum of den. */
struct wb_ratio {
    double num, den;
};

struct wb_column {
    const char *name;
    /* False when one of the readings lacks what it needs. */
    bool (*figure)(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r);
    bool of_processes; /* needs every process of the host */
};
extern const struct wb_column wb_columns[];
extern const size_t wb_column_count;

#endif
