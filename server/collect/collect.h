/*
 * Samples of the host, the database's and the load's control groups at 1 Hz, facts of the
 * environment, and the evidence from which validity is judged.
 *
 * What belongs to whom is counted from below, not by subtraction: the database and the load by
 * their control groups (ns), this engine with its descendants and everything else by the CPU time
 * of each process in /proc (ticks of 10 ms, exact over a window except for at most two ticks per
 * process). So network work of the kernel that the benchmark causes (soft interrupts on loopback,
 * counted in the host's busy time but in nobody's group on kernels with IRQ time accounting) is
 * never taken for a foreign process. Processes that lived between two samples are found in what
 * their parents reaped. Kernel threads are kept apart. What is left of the host's user and system
 * time is `unexplained`: processes nobody waited for, and the noise of tick sampling (about 2 % of
 * a core over 10 s); it is shown, and judged by nobody.
 *
 * Cost of one sample: a read of three host files, of each group, and of one line per process
 * (about 8 us each).
 */
#ifndef WB_COLLECT_COLLECT_H
#define WB_COLLECT_COLLECT_H

#include "server/base/cgroup.h"
#include "server/base/json.h"

/* Facts of this machine for environment.json: kernel, cpu model, cores, memory, governor (or not
 * applicable), THP, swappiness, cgroup version, libc, boot id, time zone, clock source. What this
 * machine does not have is null with a reason. */
int wb_environment_facts(wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* CPU frequency governor of all CPUs below sys ("/sys"): "performance", or, where they differ,
 * "performance x30, powersave x2" in the order of names. NULL where there is none (virtual
 * machines). Caller frees. */
char *wb_governor(const char *sys);

/* State of a host just before or just after the measured part: {governor, throttle_count (of all
 * cores, for heat; null where the machine does not count), swap_in_pages, page_cache_bytes,
 * boot_id, load1}. Owned by the caller. */
wb_json *wb_host_state(const char *proc, const char *sys);

struct wb_sampler;
struct wb_sampler_spec {
    const struct wb_cgroup_fs *cgroups;
    const char *proc;            /* "/proc", fixtures in tests */
    const char *const *database; /* control groups of the database, NULL-ended */
    bool database_changes; /* groups of the database may go, come back and come in addition: what a
                              group has used counts on when it is gone */
    const char *const *load;      /* control groups of the load, NULL-ended */
    pid_t agent;                  /* this engine's pid: it and its descendants are not foreign */
    const struct wb_clock *clock; /* NULL: the system's */
};
/* Makes a sampler and takes the first reading. */
int wb_sampler_new(const struct wb_sampler_spec *spec, struct wb_sampler **out,
                   struct wb_err *err) WB_MUST_CHECK;
/* One more control group of the database, of a sampler whose database changes; one that is known
 * already is no more. */
void wb_sampler_add_database(struct wb_sampler *s, const char *group);
/* Such a group has ended and had used cpu_ns in all (-1: not known), which counts also where no
 * sample has seen it. It may come again. */
void wb_sampler_database_ended(struct wb_sampler *s, const char *group, int64_t cpu_ns);
/* Takes one sample now; call about once a second. It stands for the time since the one before, so
 * one with the old name when a phase ends keeps phases apart. Never fails: what is unreadable is
 * null in the sample. */
void wb_sampler_take(struct wb_sampler *s, const char *phase);
/* All samples so far: columnar {t_ms:[] (since the first reading), phase:[], and per column of
 * wb_sampler_window an array}; owned. */
wb_json *wb_sampler_series(const struct wb_sampler *s);
/*
 * The samples of one phase, as {samples, seconds, cpus, swap_in_pages, swap_in_samples, and
 * {mean, max} for each of host_busy_percent, steal_percent, iowait_percent, foreign_cores,
 * kernel_cores, agent_cores, unexplained_cores, database_cores, database_memory_bytes,
 * database_throttled_percent, load_cores, load_memory_bytes, load_throttled_percent,
 * net_rx_bytes_per_s, net_tx_bytes_per_s (without loopback), loopback_bytes_per_s,
 * swap_in_pages_per_s}. Percent are of all CPUs' time; throttled ones of CFS periods. Means are
 * over the time, not over the samples. A column that more than a fifth of the samples lack is
 * null, with a reason. Owned; NULL when the phase has no sample.
 */
wb_json *wb_sampler_window(const struct wb_sampler *s, const char *phase);
void wb_sampler_free(struct wb_sampler *s);

/* CPU canary: time of a fixed spin on one CPU: of 30 bursts of 5 ms the shortest spin of each, and
 * of these the lower quartile. Takes 150 ms, 200 on a CPU that is shared. It tells a CPU that
 * became slower (frequency, heat, hypervisor), not one that is shared: that is told by steal and
 * foreign CPU. ns; -1 when the CPU is not ours to run on. */
int64_t wb_cpu_canary(int cpu);

enum wb_validity { WB_VALID, WB_NOISY, WB_CLIENT_LIMITED, WB_INVALID_RUN, WB_UNVERIFIED };
const char *wb_validity_name(
    enum wb_validity v); /* "valid", "noisy", "client-limited", "invalid", "unverified" */
/* The worse of two: invalid, unverified, client-limited, noisy, valid. */
enum wb_validity wb_validity_worse(enum wb_validity a, enum wb_validity b);

struct wb_validity_limits; /* server/study/study.h */
/*
 * Judges one run from its measured windows. windows: array of {phase, model ("open"|"closed"),
 * samples (wb_sampler_window), load (the wb-load result), in_flight (connections x depth, for
 * Little's law in closed loop; may be absent), cpu_quota (true: throttling of the database is
 * meant), link_bytes_per_s (between load and database; absent on one host)}.
 * canary: {before_ns, after_ns} or NULL; governors: wb_governor before and after, NULL where there
 * is none. evidence (array) gets one entry per check: {name, phase (null: the whole run), value,
 * unit, noisy, worse, verdict, text}; verdict is a validity word or "not-applicable"; a value that
 * could not be read is null with value_reason. An entry that speaks about the outcome, too, has
 * `outcome`: "infra-error", "sut-error", "inconsistent" or "harness-error".
 * The worst verdict wins; mandatory evidence (steal, foreign CPU, throttling, own CPU of the load)
 * that is null makes `unverified`.
 */
enum wb_validity wb_validity_judge(const wb_json *windows, const wb_json *canary,
                                   const char *governor_before, const char *governor_after,
                                   const struct wb_validity_limits *limits, wb_json *evidence);
/* The same for the state of a host before and after (wb_host_state): throttling for heat, swap,
 * reboot. Adds its entries to evidence. */
enum wb_validity wb_host_state_judge(const wb_json *before, const wb_json *after,
                                     wb_json *evidence);
/* Which checks there are and how they judge; another number in a record means that its verdict
 * cannot be made again by this program. */
#define WB_VALIDITY_RULES 1
/*
 * All of the above from what a record keeps, so that the verdict of a stored run can be made again,
 * also with other limits. result: result.json, {phases: [{name, model, measured, samples, load,
 * in_flight, cpu_quota}], canary, governor: {before, after}, host_state: {before, after}, validity:
 * {rules, limits}}. limits NULL: those of the result. A run without a measured window is
 * unverified, without evidence. WB_UNSUPPORTED: other rules, or limits that this program does not
 * know.
 */
int wb_validity_of_result(const wb_json *result, const struct wb_validity_limits *limits,
                          enum wb_validity *out, wb_json *evidence,
                          struct wb_err *err) WB_MUST_CHECK;
/* result.validity: the rules and limits that are judged by. Owned. */
wb_json *wb_validity_rules_json(const struct wb_validity_limits *limits);
/* The first outcome word in the evidence, NULL when none speaks about it. Static text. */
const char *wb_evidence_outcome(const wb_json *evidence);

#endif
