/*
 * Evidence that was noted by hand or copied from the kernel, judged by the same code and limits as
 * that of a run.
 */
#ifndef WB_COLLECT_PLAIN_H
#define WB_COLLECT_PLAIN_H

#include "server/collect/collect.h"

/*
 * env: figures of one measured window: steal_percent, foreign_cpu_cores, client_cpu_percent (the
 * busiest thread of the load), and where they are known cpus, run_queue_percent,
 * throttled_percent (database), load_throttled_percent, errors (percent of the operations),
 * swap_in_pages, ntp_offset_ms (between hosts whose windows are merged), governor (before the run)
 * and governor_after, cpu_canary_before_ns and cpu_canary_after_ns, net_bytes_per_s and
 * link_bytes_per_s. The first three are mandatory unless `only_given`: null makes `unverified`.
 * evidence gets one entry (as wb_validity_judge) for each figure that is there or mandatory; the
 * worst verdict is returned. More failed operations than a run may have are `invalid` here.
 */
enum wb_validity wb_plain_judge(const wb_json *env, bool only_given,
                                const struct wb_validity_limits *limits, wb_json *evidence);

/* Shares of the CPU time between two texts of /proc/stat. WB_INVALID when one is none, or time ran
 * backwards (another boot, or the texts are swapped). */
struct wb_plain_cpu {
    double steal, iowait, busy; /* percent; guest time is in busy, once */
};
int wb_plain_cpu(const char *before, const char *after, struct wb_plain_cpu *out,
                 struct wb_err *err) WB_MUST_CHECK;

/* CFS throttling between two texts of a control group's cpu.stat. Without a quota there are no
 * periods: that is not the same as none of them throttled. */
struct wb_plain_throttling {
    bool limited;
    double percent; /* of the periods; NaN when there were none */
    double seconds;
};
int wb_plain_throttling(const char *before, const char *after, struct wb_plain_throttling *out,
                        struct wb_err *err) WB_MUST_CHECK;

#endif
