/*
 * Control groups, version 1 and 2, by name relative to the controllers' roots
 * ("weighbridge/run_x-db0"; for a container what /proc/PID/cgroup says).
 * Kernel files: Documentation/admin-guide/cgroup-v1/ and cgroup-v2.rst of Linux.
 */
#ifndef WB_BASE_CGROUP_H
#define WB_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/base/cancel.h"
#include "server/base/err.h"
#include "server/base/mem.h"

struct wb_cgroup_fs; /* where the hierarchies are mounted and which version has the controllers */

/* root is "/sys/fs/cgroup", or a folder of fixtures in tests. WB_UNSUPPORTED when neither v1 cpu,
 * cpuset, cpuacct, memory nor a v2 tree with cpu, cpuset and memory is there. */
int wb_cgroup_fs_open(const char *root, struct wb_cgroup_fs **out,
                      struct wb_err *err) WB_MUST_CHECK;
void wb_cgroup_fs_free(struct wb_cgroup_fs *fs);
int wb_cgroup_version(const struct wb_cgroup_fs *fs); /* 1 or 2 */

struct wb_limits {
    const char *cpus;     /* CPU list "1" or "0-3"; NULL: not limited */
    const char *mems;     /* memory nodes; NULL: the parent's */
    int64_t memory_bytes; /* memory and memory+swap alike; 0: not limited */
    double cpu_quota;     /* cores' worth of CFS quota (0.85); 0: none; period 100 ms, 10 ms when
                             planted */
    int64_t pids;         /* 0: not limited */
};

/* Makes the group (and parents) with these limits. It is empty and exists afterwards, or nothing
 * was left behind. An existing group is WB_CONFLICT. */
int wb_cgroup_create(const struct wb_cgroup_fs *fs, const char *name,
                     const struct wb_limits *limits, struct wb_err *err) WB_MUST_CHECK;
int wb_cgroup_add(const struct wb_cgroup_fs *fs, const char *name, pid_t pid,
                  struct wb_err *err) WB_MUST_CHECK;
bool wb_cgroup_exists(const struct wb_cgroup_fs *fs, const char *name);
/* All pids in the group and below, ascending; caller frees *pids. Absent group: n = 0. */
int wb_cgroup_pids(const struct wb_cgroup_fs *fs, const char *name, pid_t **pids, size_t *n,
                   struct wb_err *err) WB_MUST_CHECK;
/* SIGKILLs everything in it, again until empty, for at most limit_ns (WB_TIMEOUT). The group stays.
 */
int wb_cgroup_kill(const struct wb_cgroup_fs *fs, const char *name, int64_t limit_ns,
                   struct wb_err *err) WB_MUST_CHECK;
/* Removes a group that has neither members nor groups below; leaves any other alone. */
void wb_cgroup_remove_empty(const struct wb_cgroup_fs *fs, const char *name);
/* SIGKILLs everything in it, again until empty, for at most limit_ns; then removes the group and
 * those below it. Absent group: 0. */
int wb_cgroup_destroy(const struct wb_cgroup_fs *fs, const char *name, int64_t limit_ns,
                      struct wb_err *err) WB_MUST_CHECK;
/* Names of the groups directly below `name`, as full relative names. */
int wb_cgroup_children(const struct wb_cgroup_fs *fs, const char *name, struct wb_strv *out,
                       struct wb_err *err) WB_MUST_CHECK;
/* The group of a process (v1: its memory controller's path). Caller frees *name. */
int wb_cgroup_of_pid(const struct wb_cgroup_fs *fs, pid_t pid, char **name,
                     struct wb_err *err) WB_MUST_CHECK;

struct wb_cgroup_stats {
    int64_t cpu_ns;                           /* user + system, since creation */
    int64_t memory_bytes, peak_bytes;         /* peak -1 when the kernel does not say */
    int64_t periods, throttled, throttled_ns; /* CFS; all 0 without quota */
    int64_t oom_kills;                        /* -1 when the kernel does not say */
};
int wb_cgroup_stats(const struct wb_cgroup_fs *fs, const char *name, struct wb_cgroup_stats *out,
                    struct wb_err *err) WB_MUST_CHECK;

/* The number behind "key " at the start of a line of a file such as cpu.stat; -1 when there is
 * none. */
int64_t wb_cgroup_keyed(const char *text, const char *key);

/* The limits as the kernel says them now; cpus and mems are effective ones. */
struct wb_limits_seen {
    char *cpus, *mems;                       /* owned */
    int64_t memory_bytes, memory_swap_bytes; /* INT64_MAX: not limited */
    double cpu_quota;                        /* 0: none */
};
int wb_cgroup_limits(const struct wb_cgroup_fs *fs, const char *name, struct wb_limits_seen *out,
                     struct wb_err *err) WB_MUST_CHECK;
void wb_limits_seen_release(struct wb_limits_seen *l);

#endif
