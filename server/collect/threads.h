/*
 * CPU use of the threads of a program that does not tell it itself, from /proc/PID/task.
 */
#ifndef WB_COLLECT_THREADS_H
#define WB_COLLECT_THREADS_H

#include <sys/types.h>

#include "server/base/json.h"

struct wb_threads;

/* proc: "/proc", fixtures in tests. */
struct wb_threads *wb_threads_new(const char *proc);
void wb_threads_free(struct wb_threads *t);
/* Looks at all threads of these processes; now_ns is the monotonic clock. A few times a second. */
void wb_threads_look(struct wb_threads *t, const pid_t *pids, size_t n, int64_t now_ns);
/*
 * [{cpu_percent, run_queue_percent, involuntary_switches_per_s}] for each thread that was seen
 * twice, over the time between its first and its last look; owned. NULL when that leaves out too
 * much of cpu_ns, all that the program used: *why says so then (static text).
 */
wb_json *wb_threads_report(const struct wb_threads *t, int64_t cpu_ns, const char **why);

#endif
