/*
 * `stats validity`: may the numbers of a run be believed, from evidence that was noted.
 *
 *   {env: {steal_percent, foreign_cpu_cores, client_cpu_percent, ...}} (see collect/plain.h);
 *   {proc_stat: {before: "text of /proc/stat", after: "..."}};
 *   {cpu_stat: {before: "text of cpu.stat", after: "..."}, cpu_quota?: true where one is meant};
 *   samples of load host and database: lists (or one row each) of load_busiest_thread_pct,
 *   load_cpu_pct_of_all_cores, net_tx_mbit, net_link_mbit, db_cpu_pct, t_s.
 *
 * Answer: verdict (valid, noisy, client-limited, invalid, unverified), reasons (texts that begin
 * with the name of the evidence, the worst first), evidence; steal_percent, iowait_percent,
 * busy_percent; throttled_percent, throttled_s, limited; limited_by (client-bound,
 * one-thread-bound, network-bound). Judged by the code and the limits that judge runs. Only `env`
 * is a whole: of the other forms only what is there is judged, and a warning says so.
 */
#ifndef WB_ANALYSIS_VALIDITY_H
#define WB_ANALYSIS_VALIDITY_H

#include "server/base/json.h"

int wb_stats_validity(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_validity_print(const wb_json *answer, int width, struct wb_buf *out);

#endif
