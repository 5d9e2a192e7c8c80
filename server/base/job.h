/*
 * The one job mechanism: long-running work that is started, supervised and ended, and that
 * survives its starter.
 *
 * A job is a folder:
 *     spec.json     what was asked (argv, limits, group); written first
 *     status.json   what is so: state, pid + start time + boot id, exit, usage; replaced atomically
 *     stdout.log, stderr.log   capped: head and tail kept, what lies between is counted
 *     lock            held (flock) while a starter or supervisor of the job lives
 * A supervisor process (a fork of the starter with all descriptors closed, own session) starts
 * the program in its own session and control group, copies its output into the capped logs,
 * keeps the time limit, reaps it, kills whatever is left in the group, and writes the last status.
 * When the supervisor itself was killed, wb_job_stop still ends the whole group by its identity.
 */
#ifndef WB_BASE_JOB_H
#define WB_BASE_JOB_H

#include "server/base/cancel.h"
#include "server/base/cgroup.h"
#include "server/base/json.h"

#define WB_JOB_LOG_MAX (8 << 20) /* head kept of each stream unless the spec says otherwise */
#define WB_JOB_TAIL_MAX                                                      \
    (256 << 10) /* and its last bytes beyond that, after a line with the gap \
                 */

struct wb_job_spec {
    const char *dir;   /* absolute; made by start, must not exist */
    const char *group; /* control group, e.g. "weighbridge/run_x-db0" */
    char *const *argv; /* argv[0] absolute or with a slash */
    char *const *env;  /* NULL: PATH, LANG only */
    const char *cwd;   /* NULL: dir */
    struct wb_limits limits;
    int64_t limit_ns;   /* time limit, 0: none */
    int64_t silence_ns; /* longest time without any output, 0: any */
    int64_t log_max;    /* head per stream; 0: WB_JOB_LOG_MAX */
    const char *mark;   /* "wb.owner=...;wb.campaign=...;wb.run=..." kept in spec.json and in the
                           program's environment as WB_MARK */
};

enum wb_job_state {
    WB_JOB_RUNNING,
    WB_JOB_EXITED, /* by itself: exit_code or signal */
    WB_JOB_KILLED, /* by its time or silence limit, or by stop */
    WB_JOB_LOST    /* supervisor and program gone without a last status (killed, reboot) */
};

struct wb_job_status {
    enum wb_job_state state;
    pid_t pid, supervisor;
    uint64_t start_ticks;             /* field 22 of /proc/PID/stat */
    int exit_code;                    /* -1 unless it exited */
    int signal;                       /* 0 unless ended by one */
    bool timed_out, silent;           /* which limit it passed */
    int64_t oom_kills;                /* in its group; -1 unknown */
    int64_t started_ms, ended_ms;     /* Unix ms; ended 0 while running */
    int64_t cpu_ns, peak_bytes;       /* of the group, at the end; -1 unknown */
    int64_t dropped_out, dropped_err; /* log bytes between head and tail */
};

/* Starts a job. Returns once the program was executed, or with the reason (no such program, no
 * group, ...); then the folder stays with its status, the group does not. */
int wb_job_start(const struct wb_cgroup_fs *fs, const struct wb_job_spec *spec,
                 struct wb_err *err) WB_MUST_CHECK;
/* What is so now; notices a lost job. */
int wb_job_poll(const char *dir, struct wb_job_status *out, struct wb_err *err) WB_MUST_CHECK;
/* Whether a starter or supervisor of the job lives, which may still do something. False for a
 * folder that has no status and will never get one. Never waits. */
bool wb_job_held(const char *dir);
/* A descriptor that becomes readable when the job's program ends (pidfd); caller closes. -1: gone.
 */
int wb_job_fd(const struct wb_job_status *s);
/* Signal to the program, if it is still the same process. */
int wb_job_signal(const char *dir, int sig, struct wb_err *err) WB_MUST_CHECK;
/* Ends it: `sig` (0: straight to SIGKILL), grace_ns, then SIGKILL to the whole group; the group is
 * removed. Works with or without a living supervisor, on an ended job, on one whose starter was
 * killed half-way, and on a full disk. Idempotent; absent folder: 0. When it returns 0, no process
 * of the job is left and none will come. */
int wb_job_stop(const struct wb_cgroup_fs *fs, const char *dir, int sig, int64_t grace_ns,
                struct wb_job_status *out, struct wb_err *err) WB_MUST_CHECK;
/* The last max bytes of a log ("stdout.log" or "stderr.log"). */
int wb_job_log_tail(const char *dir, const char *stream, size_t max, struct wb_buf *out,
                    struct wb_err *err) WB_MUST_CHECK;
/* pid is alive and is the process that started at these ticks in this boot. */
bool wb_process_is(pid_t pid, uint64_t start_ticks, const char *boot_id);
/* Start ticks of a living process; 0 when gone. */
uint64_t wb_process_ticks(pid_t pid);
/* Text of /proc/sys/kernel/random/boot_id without the newline. */
int wb_boot_id(char out[37], struct wb_err *err) WB_MUST_CHECK;

#endif
