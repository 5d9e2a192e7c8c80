/*
 * Samples of the host, the database's and the load's control groups at 1 Hz, facts of the
 * environment, and the evidence from which validity is judged.
 */
#ifndef WB_COLLECT_COLLECT_H
#define WB_COLLECT_COLLECT_H

#include "server/base/cgroup.h"
#include "server/base/json.h"

/* Facts of this machine for environment.json: kernel, cpu model, cores, memory, governor (or not
 * applicable), THP, swappiness, cgroup version, container engine absent here, libc, boot id, time
 * zone, clock source. */
int wb_environment_facts(wb_json **out, struct wb_err *err) WB_MUST_CHECK;

struct wb_sampler;
struct wb_sampler_spec {
    const struct wb_cgroup_fs *cgroups;
    const char *proc;            /* "/proc", fixtures in tests */
    const char *const *database; /* control groups of the database, NULL-ended */
    const char *const *load;     /* control groups of the load, NULL-ended */
    pid_t agent;                 /* this engine's pid: not foreign */
};
/* Makes a sampler and takes the first reading. */
int wb_sampler_new(const struct wb_sampler_spec *spec, struct wb_sampler **out,
                   struct wb_err *err) WB_MUST_CHECK;
/* Takes one sample now; call about once a second. Never fails: what is unreadable is null in the
 * sample. */
void wb_sampler_take(struct wb_sampler *s, const char *phase);
/* All samples so far: columnar {t_ms:[], phase:[], host_busy_percent:[], steal_percent:[],
 * iowait_percent:[], foreign_cores:[], database_cores:[], database_memory_bytes:[],
 * database_throttled_percent:[], load_cores:[], load_memory_bytes:[], load_throttled_percent:[],
 * net_rx_bytes_per_s:[], net_tx_bytes_per_s:[], swap_in_pages_per_s:[]}; owned. */
wb_json *wb_sampler_series(const struct wb_sampler *s);
/* Means and maxima over the samples of one phase; owned; null when there are none. */
wb_json *wb_sampler_window(const struct wb_sampler *s, const char *phase);
void wb_sampler_free(struct wb_sampler *s);

/* CPU canary: time of a fixed spin on one CPU, the best of 5, at most 50 ms in all. ns. */
int64_t wb_cpu_canary(int cpu);

enum wb_validity { WB_VALID, WB_NOISY, WB_CLIENT_LIMITED, WB_INVALID_RUN, WB_UNVERIFIED };
const char *wb_validity_name(
    enum wb_validity v); /* "valid", "noisy", "client-limited", "invalid", "unverified" */

struct wb_validity_limits; /* server/study/study.h */
/* Judges one run from its measured windows. windows: array of {phase, model, samples
 * (wb_sampler_window), load (the wb-load result)}; canary: {before_ns, after_ns} or NULL; governor:
 * text or NULL (not applicable). evidence (array) gets one entry per check: {name, phase, value,
 * unit, noisy, worse, verdict, text}. The worst verdict wins; mandatory evidence that is null makes
 * `unverified`. */
enum wb_validity wb_validity_judge(const wb_json *windows, const wb_json *canary,
                                   const char *governor_before, const char *governor_after,
                                   const struct wb_validity_limits *limits, wb_json *evidence);

#endif
