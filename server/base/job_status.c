#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/base/job_internal.h"

#define STATUS_MAX 65536
#define STOP_MARKER "stop-asked"
/* How long the supervisor may take to write the last status once its program has ended. */
#define SUPERVISOR_GRACE_NS (5 * WB_SEC)
#define KILL_LIMIT_NS (10 * WB_SEC)

static const char *const state_names[] = {
    [WB_JOB_RUNNING] = "running",
    [WB_JOB_EXITED] = "exited",
    [WB_JOB_KILLED] = "killed",
    [WB_JOB_LOST] = "lost",
};

int wb_boot_id(char out[37], struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(64);
    int rc = wb_file_read_small("/proc/sys/kernel/random/boot_id", &b, err);

    if (rc == 0 && b.len < 36)
        rc = wb_fail(err, WB_PROTOCOL, "the kernel's boot id is too short");
    if (rc == 0) {
        memcpy(out, b.data, 36);
        out[36] = '\0';
    }
    wb_buf_release(&b);
    return rc;
}

uint64_t wb_process_ticks(pid_t pid)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%d/stat", (int)pid);
    struct wb_buf b = WB_BUF_INIT(8192);
    uint64_t ticks = 0;

    if (wb_file_read_small(path, &b, NULL) == 0) {
        /* The name in parentheses may hold blanks and parentheses: count from the last one.
         * Field 3 follows it, the start time is field 22 (proc(5)). */
        const char *p = strrchr(wb_buf_str(&b), ')');
        bool dead = p && (p[2] == 'Z' || p[2] == 'X');

        for (int field = 2; p && field < 22; field++) {
            p = strchr(p + 1, ' ');
        }
        if (p && !dead)
            ticks = strtoull(p + 1, NULL, 10);
    }
    wb_buf_release(&b);
    return ticks;
}

bool wb_process_is(pid_t pid, uint64_t start_ticks, const char *boot_id)
{
    char now[37];

    return pid > 0 && start_ticks != 0 && wb_boot_id(now, NULL) == 0 && !strcmp(now, boot_id) &&
           wb_process_ticks(pid) == start_ticks;
}

int wb_job_status_write(const char *dir, const struct wb_job_status *s, const char *group,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/status.json", dir);
    WB_AUTO_JSON wb_json *j = wb_json_object();
    struct wb_buf b = WB_BUF_INIT(STATUS_MAX);
    char boot[37];
    int rc = wb_boot_id(boot, err);

    if (rc < 0)
        return rc;
    wb_json_set_str(j, "state", state_names[s->state]);
    wb_json_set_str(j, "group", group);
    wb_json_set_str(j, "boot_id", boot);
    wb_json_set_int(j, "pid", s->pid);
    wb_json_set_int(j, "supervisor", s->supervisor);
    wb_json_set_int(j, "start_ticks", (int64_t)s->start_ticks);
    wb_json_set_int(j, "supervisor_ticks", (int64_t)wb_process_ticks(s->supervisor));
    wb_json_set_int(j, "exit_code", s->exit_code);
    wb_json_set_int(j, "signal", s->signal);
    wb_json_set_bool(j, "timed_out", s->timed_out);
    wb_json_set_bool(j, "silent", s->silent);
    wb_json_set_int(j, "oom_kills", s->oom_kills);
    wb_json_set_int(j, "started_ms", s->started_ms);
    wb_json_set_int(j, "ended_ms", s->ended_ms);
    wb_json_set_int(j, "cpu_ns", s->cpu_ns);
    wb_json_set_int(j, "peak_bytes", s->peak_bytes);
    wb_json_set_int(j, "dropped_out", s->dropped_out);
    wb_json_set_int(j, "dropped_err", s->dropped_err);
    wb_json_pretty(j, &b);
    rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

/* status.json as written; boot id, group and the supervisor's ticks beside it. */
struct stored {
    struct wb_job_status s;
    char boot_id[37];
    uint64_t supervisor_ticks;
    char *group; /* owned */
};

static int load(const char *dir, struct stored *out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/status.json", dir);
    WB_AUTO_JSON wb_json *j = NULL;
    struct wb_job_status *s = &out->s;
    const char *state, *boot;
    int rc = wb_json_read_file(path, STATUS_MAX, &j, err);

    if (rc < 0)
        return rc;
    state = wb_json_str_or(j, "state", "");
    boot = wb_json_str_or(j, "boot_id", "");
    *out = (struct stored){.s.state = WB_JOB_LOST};
    for (size_t i = 0; i < WB_LEN(state_names); i++)
        if (!strcmp(state, state_names[i]))
            s->state = (enum wb_job_state)i;
    memcpy(out->boot_id, boot, strnlen(boot, 36));
    out->supervisor_ticks = (uint64_t)wb_json_int_or(j, "supervisor_ticks", 0);
    out->group = wb_strdup(wb_json_str_or(j, "group", ""));
    s->pid = (pid_t)wb_json_int_or(j, "pid", 0);
    s->supervisor = (pid_t)wb_json_int_or(j, "supervisor", 0);
    s->start_ticks = (uint64_t)wb_json_int_or(j, "start_ticks", 0);
    s->exit_code = (int)wb_json_int_or(j, "exit_code", -1);
    s->signal = (int)wb_json_int_or(j, "signal", 0);
    s->timed_out = wb_json_bool_or(j, "timed_out", false);
    s->silent = wb_json_bool_or(j, "silent", false);
    s->oom_kills = wb_json_int_or(j, "oom_kills", -1);
    s->started_ms = wb_json_int_or(j, "started_ms", 0);
    s->ended_ms = wb_json_int_or(j, "ended_ms", 0);
    s->cpu_ns = wb_json_int_or(j, "cpu_ns", -1);
    s->peak_bytes = wb_json_int_or(j, "peak_bytes", -1);
    s->dropped_out = wb_json_int_or(j, "dropped_out", 0);
    s->dropped_err = wb_json_int_or(j, "dropped_err", 0);
    return 0;
}

static bool supervised(const struct stored *st)
{
    return wb_process_is(st->s.supervisor, st->supervisor_ticks, st->boot_id);
}

int wb_job_poll(const char *dir, struct wb_job_status *out, struct wb_err *err)
{
    struct stored st = {0};
    int rc = load(dir, &st, err);

    if (rc == 0 && st.s.state == WB_JOB_RUNNING && !supervised(&st) &&
        !wb_process_is(st.s.pid, st.s.start_ticks, st.boot_id)) {
        /* The supervisor may have written its last word between our read and our look. */
        free(st.group);
        st.group = NULL;
        rc = load(dir, &st, err);
        if (rc == 0 && st.s.state == WB_JOB_RUNNING)
            st.s.state = WB_JOB_LOST;
    }
    free(st.group);
    if (rc < 0)
        return wb_wrap(err, "job %s", dir);
    *out = st.s;
    return 0;
}

bool wb_job_held(const char *dir)
{
    WB_AUTO_FREE char *path = wb_strf("%s/" WB_JOB_LOCK, dir);
    struct wb_err err = WB_ERR_INIT;

    return wb_lock_look(path, &err) == -WB_CONFLICT;
}

static int pidfd_of(pid_t pid, uint64_t ticks)
{
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    /* The number may have been given to another process before the descriptor was opened. */
    if (fd >= 0 && wb_process_ticks(pid) != ticks) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

int wb_job_fd(const struct wb_job_status *s)
{
    return pidfd_of(s->pid, s->start_ticks);
}

/* Signals through a pidfd, so that a reused number is never hit. */
static int signal_process(pid_t pid, uint64_t ticks, const char *boot_id, int sig)
{
    WB_AUTO_CLOSE int fd = -1;

    if (!wb_process_is(pid, ticks, boot_id))
        return 0;
    fd = pidfd_of(pid, ticks);
    return fd < 0 ? 0 : (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

int wb_job_signal(const char *dir, int sig, struct wb_err *err)
{
    struct stored st = {0};
    int rc = load(dir, &st, err);

    if (rc == 0 && signal_process(st.s.pid, st.s.start_ticks, st.boot_id, sig) < 0)
        rc = wb_fail_sys(err, errno, "cannot signal process %d of job %s", (int)st.s.pid, dir);
    free(st.group);
    return rc;
}

bool wb_job_stop_asked(const char *dir)
{
    WB_AUTO_FREE char *path = wb_strf("%s/" STOP_MARKER, dir);

    return wb_path_exists(path);
}

/* Waits until a process has ended, for at most limit_ns. */
static void await_end(pid_t pid, uint64_t ticks, int64_t limit_ns)
{
    WB_AUTO_CLOSE int fd = pidfd_of(pid, ticks);

    if (fd >= 0)
        WB_IGNORE(wb_wait(NULL, fd, limit_ns, NULL)); /* what is so is looked at afterwards */
}

/* Kills the group until the job's lock is free: then nobody is left who would start something in
 * it. A supervisor that does not come to its end is killed in turn. */
static int silence(const struct wb_cgroup_fs *fs, const char *dir, const char *group,
                   const struct stored *st, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/" WB_JOB_LOCK, dir);
    int64_t began = wb_now_ns(NULL), pause = WB_MS;
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool shot = false;

    for (;;) {
        int rc = *group && wb_cgroup_exists(fs, group)
                     ? wb_cgroup_kill(fs, group, KILL_LIMIT_NS, err)
                     : 0;
        int64_t spent = wb_now_ns(NULL) - began;

        if (rc < 0)
            return rc;
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (!shot && spent > SUPERVISOR_GRACE_NS) {
            (void)signal_process(st->s.supervisor, st->supervisor_ticks, st->boot_id, SIGKILL);
            shot = true;
        }
        if (spent > SUPERVISOR_GRACE_NS + KILL_LIMIT_NS)
            return wb_fail(err, WB_TIMEOUT, "its supervisor (process %d) does not end",
                           (int)st->s.supervisor);
        rc = wb_wait(NULL, -1, pause, err);
        if (rc < 0)
            return rc;
        pause = pause < 20 * WB_MS ? pause * 2 : pause;
    }
}

int wb_job_stop(const struct wb_cgroup_fs *fs, const char *dir, int sig, int64_t grace_ns,
                struct wb_job_status *out, struct wb_err *err)
{
    WB_AUTO_FREE char *marker = wb_strf("%s/" STOP_MARKER, dir);
    WB_AUTO_FREE char *spec_path = wb_strf("%s/spec.json", dir);
    WB_AUTO_JSON wb_json *spec = NULL;
    struct stored st = {.s.state = WB_JOB_LOST};
    const char *group;
    int rc;

    if (!wb_path_exists(dir))
        return 0;
    if (wb_json_read_file(spec_path, STATUS_MAX * 16, &spec, NULL) < 0)
        return 0; /* the folder was made and nothing else: no group, no process */
    /* On a full disk the job is ended all the same; its last state then says "exited". */
    WB_IGNORE(wb_file_put(marker, "", 0, NULL));
    group = wb_json_str_or(spec, "group", "");
    if (load(dir, &st, NULL) == 0 && sig > 0 &&
        signal_process(st.s.pid, st.s.start_ticks, st.boot_id, sig) == 0)
        await_end(st.s.pid, st.s.start_ticks, grace_ns);
    rc = silence(fs, dir, group, &st, err);
    if (rc == 0 && *group)
        rc = wb_cgroup_destroy(fs, group, KILL_LIMIT_NS, err);
    free(st.group);
    st.group = NULL;
    if (rc == 0 && load(dir, &st, NULL) == 0 && st.s.state == WB_JOB_RUNNING) {
        st.s.state = WB_JOB_LOST; /* nobody was there to write the end */
        st.s.ended_ms = wb_now_unix_ms(NULL);
        WB_IGNORE(wb_job_status_write(dir, &st.s, group, NULL)); /* the next look says the same */
    }
    free(st.group);
    if (rc < 0)
        return wb_wrap(err, "stopping job %s", dir);
    if (out)
        *out = st.s;
    return 0;
}

int wb_job_log_tail(const char *dir, const char *stream, size_t max, struct wb_buf *out,
                    struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, stream);
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size;
    char *to;
    ssize_t n;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", path);
    size = lseek(fd, 0, SEEK_END);
    if (size < 0)
        return wb_fail_sys(err, errno, "cannot read %s", path);
    if ((size_t)size < max)
        max = (size_t)size;
    to = wb_buf_room(out, max);
    if (!to)
        return wb_buf_check(out, path, err);
    n = pread(fd, to, max, size - (off_t)max);
    if (n < 0)
        return wb_fail_sys(err, errno, "cannot read %s", path);
    wb_buf_commit(out, (size_t)n);
    return 0;
}
