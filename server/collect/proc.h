/*
 * Counters of the host and of its processes from /proc. Only for this room.
 * Format: proc(5).
 */
#ifndef WB_COLLECT_PROC_H
#define WB_COLLECT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/base/err.h"

/* First line of /proc/stat in ticks, and the number of CPU lines. Guest time is in user. */
struct wb_cpu_ticks {
    int64_t user, nice, system, idle, iowait, irq, softirq, steal;
    int cpus;
};
int wb_proc_cpu(const char *proc, struct wb_cpu_ticks *out, struct wb_err *err) WB_MUST_CHECK;
/* The same from the text of /proc/stat; false when it does not begin with such a line. */
bool wb_proc_cpu_parse(const char *text, struct wb_cpu_ticks *out);

/* Bytes of /proc/net/dev: loopback (received), all others. */
struct wb_net_bytes {
    int64_t loopback, rx, tx;
};
int wb_proc_net(const char *proc, struct wb_net_bytes *out, struct wb_err *err) WB_MUST_CHECK;

/* Pages swapped in since boot (pswpin of /proc/vmstat; 0 where the kernel has no swap). */
int wb_proc_swap_in(const char *proc, int64_t *pages, struct wb_err *err) WB_MUST_CHECK;

/* A value in kB of /proc/meminfo, in bytes. */
int wb_proc_meminfo(const char *proc, const char *key, int64_t *bytes,
                    struct wb_err *err) WB_MUST_CHECK;

/* What is needed of /proc/PID/stat. */
struct wb_pid_stat {
    pid_t pid, parent;
    uint64_t start; /* field 22: with pid it names a process */
    int64_t own;    /* ticks of all its threads */
    int64_t reaped; /* ticks of the children it waited for, and of theirs */
    bool kernel;    /* a kernel thread */
};
/* Parses one line; false when it is not of that form. */
bool wb_pid_stat_parse(const char *line, struct wb_pid_stat *out);

/* Ticks a second, as the kernel counts in these files. */
int64_t wb_tick_hz(void);

#endif
