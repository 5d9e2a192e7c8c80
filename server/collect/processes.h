/*
 * Whose CPU time it was: every process of the host, by owner, from one look at /proc to the next.
 * Only for this room.
 */
#ifndef WB_COLLECT_PROCESSES_H
#define WB_COLLECT_PROCESSES_H

#include "server/collect/proc.h"

enum wb_whose { WB_FOREIGN, WB_OURS, WB_AGENT, WB_KERNEL, WB_WHOSE_COUNT };

struct wb_processes;
struct wb_processes *wb_processes_new(const char *proc, pid_t agent);
void wb_processes_free(struct wb_processes *p);

/*
 * Looks at all processes. ours: pids of the database and the load, ascending. Adds what each owner
 * used since the last look to ticks[]; the first look adds nothing. A process that was ours or the
 * agent's once stays so, also when its group is gone.
 *
 * WB_UNSUPPORTED when this /proc does not show the whole host (another PID namespace, hidepid);
 * nothing is added then.
 */
int wb_processes_take(struct wb_processes *p, const pid_t *ours, size_t n,
                      int64_t ticks[WB_WHOSE_COUNT], struct wb_err *err) WB_MUST_CHECK;

#endif
