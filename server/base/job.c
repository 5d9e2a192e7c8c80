#include "server/base/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job_internal.h"
#include "server/base/units.h"

#define START_LIMIT_NS (30 * WB_SEC)
/* From SIGTERM at the time limit to SIGKILL of the whole group. */
#define LIMIT_GRACE_NS (5 * WB_SEC)
#define KILL_LIMIT_NS (10 * WB_SEC)
/* Output that is still in the pipes after the group was killed. */
#define DRAIN_LIMIT_NS (1 * WB_SEC)
/* Descriptors that the supervisor takes over from its starter. */
#define FD_STARTER 3
#define FD_LOCK 4

/* What the supervisor tells its starter. */
struct start_note {
    int code, sys;
    char text[WB_ERR_TEXT_MAX];
};

/* One output of the program on its way into a capped log. */
struct stream {
    int from, to;
    int64_t kept, max;
    char *tail; /* ring of WB_JOB_TAIL_MAX bytes for what comes after the head; NULL until then */
    int64_t beyond; /* bytes that came after the head */
    int64_t dropped;
};

struct supervisor {
    const struct wb_cgroup_fs *fs;
    const struct wb_job_spec *spec;
    struct stream out, err;
    int64_t heard_ns; /* of the last output */
    struct wb_job_status s;
};

/* What the starter hands on. */
struct hand_over {
    int note; /* the supervisor's word comes back through it */
    int lock; /* held until the last process of starter and supervisor has ended */
};

static int write_spec(const struct wb_job_spec *spec, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/spec.json", spec->dir);
    WB_AUTO_JSON wb_json *j = wb_json_object();
    wb_json *argv = wb_json_array();
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    int rc;

    for (char *const *a = spec->argv; *a; a++)
        wb_json_push(argv, wb_json_str(*a));
    wb_json_set(j, "argv", argv);
    wb_json_set_str(j, "group", spec->group);
    wb_json_set_str(j, "cwd", spec->cwd ? spec->cwd : spec->dir);
    wb_json_set_str(j, "cpus", spec->limits.cpus);
    wb_json_set_str(j, "mems", spec->limits.mems);
    wb_json_set_int(j, "memory_bytes", spec->limits.memory_bytes);
    wb_json_set_real(j, "cpu_quota", spec->limits.cpu_quota);
    wb_json_set_int(j, "limit_ns", spec->limit_ns);
    wb_json_set_int(j, "silence_ns", spec->silence_ns);
    wb_json_set_str(j, "mark", spec->mark);
    wb_json_pretty(j, &b);
    rc = wb_buf_check(&b, "job specification", err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

static int pin(const char *cpus, struct wb_err *err)
{
    cpu_set_t set;
    int *v = NULL, n = 0;
    int rc = wb_parse_cpulist(cpus, &v, &n, err);

    CPU_ZERO(&set);
    for (int i = 0; i < n; i++)
        if (v[i] < CPU_SETSIZE)
            CPU_SET((size_t)v[i], &set);
    free(v);
    if (rc == 0 && sched_setaffinity(0, sizeof(set), &set) < 0)
        rc = wb_fail_sys(err, errno, "cannot run on CPUs %s", cpus);
    return rc;
}

/* Environment of the program: the asked one plus the mark. */
static char **environment(const struct wb_job_spec *spec, struct wb_strv *l)
{
    if (spec->env) {
        for (char *const *e = spec->env; *e; e++)
            wb_strv_add(l, *e);
    } else {
        wb_strv_add(l, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        wb_strv_add(l, "LANG=C.UTF-8");
    }
    if (spec->mark)
        wb_strv_addf(l, "WB_MARK=%s", spec->mark);
    return l->v;
}

/* In the program's process, before exec. The supervisor has one thread, so allocation is safe. */
static __attribute__((noreturn)) void become(const struct supervisor *sv, int out, int er, int fd)
{
    const struct wb_job_spec *spec = sv->spec;
    struct start_note note = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv env = {0};
    sigset_t none;
    int rc;

    (void)setsid();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            (void)signal(sig, SIG_DFL);
    rc = wb_cgroup_add(sv->fs, spec->group, getpid(), &err);
    /* The affinity of the starter would otherwise go on inside the group's CPU set. */
    if (rc == 0 && spec->limits.cpus)
        rc = pin(spec->limits.cpus, &err);
    if (rc == 0 && (dup2(out, 1) < 0 || dup2(er, 2) < 0))
        rc = wb_fail_sys(&err, errno, "cannot set up the outputs");
    if (rc == 0 && chdir(spec->cwd ? spec->cwd : spec->dir) < 0)
        rc = wb_fail_sys(&err, errno, "cannot enter %s", spec->cwd ? spec->cwd : spec->dir);
    if (rc == 0) {
        (void)execve(spec->argv[0], spec->argv, environment(spec, &env));
        (void)wb_fail_sys(&err, errno, "cannot run %s", spec->argv[0]);
    }
    note.code = err.code;
    note.sys = err.sys;
    (void)wb_err_text(&err, note.text, sizeof(note.text));
    if (write(fd, &note, sizeof(note)) < 0)
        _exit(126);
    _exit(127);
}

/* Forks the program; its start, or the reason why not, is known on return. */
static int launch(struct supervisor *sv, struct start_note *note)
{
    int out[2] = {-1, -1}, er[2] = {-1, -1}, ex[2] = {-1, -1};
    ssize_t n = 0;
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(er, O_CLOEXEC) < 0 || pipe2(ex, O_CLOEXEC) < 0) {
        note->code = WB_IO;
        note->sys = errno;
        return -1;
    }
    pid = fork();
    if (pid == 0)
        become(sv, out[1], er[1], ex[1]);
    (void)close(out[1]);
    (void)close(er[1]);
    (void)close(ex[1]);
    sv->out.from = out[0];
    sv->err.from = er[0];
    if (pid > 0)
        while ((n = read(ex[0], note, sizeof(*note))) < 0 && errno == EINTR)
            ;
    (void)close(ex[0]);
    if (pid < 0 || n > 0) {
        if (pid < 0) {
            note->code = WB_IO;
            note->sys = errno;
        }
        return -1;
    }
    sv->s.pid = pid;
    sv->s.start_ticks = wb_process_ticks(pid);
    return 0;
}

/* Appends to the log; what a full disk does not take is counted: it must not stop the program. */
static void put(struct stream *st, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t w = write(st->to, data, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            break;
        data += w;
        n -= (size_t)w;
    }
    st->dropped += (int64_t)n;
}

/* Keeps the last bytes of what does not fit into the head. */
static void put_tail(struct stream *st, const char *data, size_t n)
{
    if (!st->tail)
        st->tail = wb_calloc(WB_JOB_TAIL_MAX, 1);
    for (size_t i = n > WB_JOB_TAIL_MAX ? n - WB_JOB_TAIL_MAX : 0; i < n;) {
        size_t at = (size_t)((st->beyond + (int64_t)i) % WB_JOB_TAIL_MAX);
        size_t room = WB_JOB_TAIL_MAX - at, part = n - i < room ? n - i : room;

        memcpy(st->tail + at, data + i, part);
        i += part;
    }
    st->beyond += (int64_t)n;
}

/* The end of the stream: the tail goes into the log. */
static void put_end(struct stream *st)
{
    int64_t gap = st->beyond - WB_JOB_TAIL_MAX;
    size_t at = gap > 0 ? (size_t)(st->beyond % WB_JOB_TAIL_MAX) : 0;

    if (!st->tail)
        return;
    if (gap > 0) {
        WB_AUTO_FREE char *note = wb_strf("\n[%lld bytes are left out here]\n", (long long)gap);

        put(st, note, strlen(note));
        put(st, st->tail + at, WB_JOB_TAIL_MAX - at);
        st->dropped += gap;
    }
    put(st, st->tail, gap > 0 ? at : (size_t)st->beyond);
    free(st->tail);
    st->tail = NULL;
}

/* Moves what is there from the pipe into the log; false once the pipe is closed. */
static bool copy(struct supervisor *sv, struct stream *st)
{
    char chunk[65536];
    ssize_t n = read(st->from, chunk, sizeof(chunk));
    size_t head;

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0) {
        (void)close(st->from);
        st->from = -1;
        return false;
    }
    sv->heard_ns = wb_now_ns(NULL);
    head = st->max - st->kept < n ? (size_t)(st->max - st->kept) : (size_t)n;
    put(st, chunk, head);
    st->kept += (int64_t)head;
    if ((size_t)n > head)
        put_tail(st, chunk + head, (size_t)n - head);
    return true;
}

/* Copies output until fd is readable or the deadline has come. True when fd is readable. */
static bool pump(struct supervisor *sv, int fd, int64_t deadline)
{
    for (;;) {
        struct pollfd p[3] = {{.fd = fd, .events = POLLIN},
                              {.fd = sv->out.from, .events = POLLIN},
                              {.fd = sv->err.from, .events = POLLIN}};
        int64_t left = deadline - wb_now_ns(NULL);
        struct timespec ts = {.tv_sec = left / WB_SEC, .tv_nsec = left % WB_SEC};

        if (fd < 0 && sv->out.from < 0 && sv->err.from < 0)
            return true; /* nothing is left to wait for */
        if (left <= 0)
            return false;
        if (ppoll(p, 3, &ts, NULL) < 0 && errno != EINTR)
            return false;
        if (p[1].revents)
            (void)copy(sv, &sv->out);
        if (p[2].revents)
            (void)copy(sv, &sv->err);
        if (p[0].revents)
            return true;
    }
}

static void reap_all(struct supervisor *sv)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == sv->s.pid) {
            sv->s.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            sv->s.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        }
}

/* Until the program ends; false when it passed a limit, which is noted. */
static bool watch(struct supervisor *sv, int fd)
{
    const struct wb_job_spec *spec = sv->spec;
    int64_t limit = spec->limit_ns > 0 ? wb_now_ns(NULL) + spec->limit_ns : INT64_MAX / 2;

    sv->heard_ns = wb_now_ns(NULL);
    for (;;) {
        int64_t silence = spec->silence_ns > 0 ? sv->heard_ns + spec->silence_ns : INT64_MAX / 2;

        if (pump(sv, fd, limit < silence ? limit : silence))
            return true;
        sv->s.timed_out = wb_now_ns(NULL) >= limit;
        sv->s.silent = !sv->s.timed_out && spec->silence_ns > 0 &&
                       wb_now_ns(NULL) >= sv->heard_ns + spec->silence_ns;
        if (sv->s.timed_out || sv->s.silent)
            return false;
    }
}

/* From the running program to its last status. */
static void supervise(struct supervisor *sv)
{
    const struct wb_job_spec *spec = sv->spec;
    int fd = (int)syscall(SYS_pidfd_open, sv->s.pid, 0);
    struct wb_cgroup_stats stats;

    if (!watch(sv, fd)) {
        (void)kill(sv->s.pid, SIGTERM);
        (void)pump(sv, fd, wb_now_ns(NULL) + LIMIT_GRACE_NS);
    }
    if (wb_cgroup_stats(sv->fs, spec->group, &stats, NULL) == 0) {
        sv->s.cpu_ns = stats.cpu_ns;
        sv->s.peak_bytes = stats.peak_bytes;
        sv->s.oom_kills = stats.oom_kills;
    }
    /* What the program left behind dies with it. */
    WB_IGNORE(wb_cgroup_destroy(sv->fs, spec->group, KILL_LIMIT_NS, NULL)); /* stop tries again */
    (void)pump(sv, -1, wb_now_ns(NULL) + DRAIN_LIMIT_NS);
    put_end(&sv->out);
    put_end(&sv->err);
    reap_all(sv);
    sv->s.state = sv->s.timed_out || sv->s.silent || wb_job_stop_asked(spec->dir) ? WB_JOB_KILLED
                                                                                  : WB_JOB_EXITED;
    sv->s.ended_ms = wb_now_unix_ms(NULL);
    sv->s.dropped_out = sv->out.dropped;
    sv->s.dropped_err = sv->err.dropped;
    WB_IGNORE(
        wb_job_status_write(spec->dir, &sv->s, spec->group, NULL)); /* full disk: read as lost */
}

static int open_log(const char *dir, const char *name)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, name);

    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

/* The supervisor's whole life; never returns to the starter's code. */
static __attribute__((noreturn)) void be_supervisor(const struct wb_cgroup_fs *fs,
                                                    const struct wb_job_spec *spec, int starter)
{
    struct supervisor sv = {.fs = fs,
                            .spec = spec,
                            .s = {.state = WB_JOB_RUNNING,
                                  .exit_code = -1,
                                  .oom_kills = -1,
                                  .cpu_ns = -1,
                                  .peak_bytes = -1}};
    struct start_note note = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t max = spec->log_max > 0 ? spec->log_max : WB_JOB_LOG_MAX;

    sv.out.max = sv.err.max = max;
    sv.s.supervisor = getpid();
    sv.s.started_ms = wb_now_unix_ms(NULL);
    (void)prctl(PR_SET_NAME, "wb-job");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    sv.out.to = open_log(spec->dir, "stdout.log");
    sv.err.to = open_log(spec->dir, "stderr.log");
    if (launch(&sv, &note) == 0 && wb_job_status_write(spec->dir, &sv.s, spec->group, &err) == 0) {
        if (write(starter, &note, sizeof(note)) < 0)
            note.code = 0; /* the starter is gone: the job goes on */
        (void)close(starter);
        supervise(&sv);
        _exit(0);
    }
    if (!note.code) {
        note.code = err.code ? err.code : WB_IO;
        note.sys = err.sys;
        (void)wb_err_text(&err, note.text, sizeof(note.text));
    }
    WB_IGNORE(
        wb_cgroup_destroy(fs, spec->group, KILL_LIMIT_NS, NULL)); /* the reason is told below */
    if (write(starter, &note, sizeof(note)) < 0)
        _exit(1);
    _exit(1);
}

/* Puts a descriptor at a fixed number. `fd` is above all of those. */
static void put_at(int fd, int number)
{
    (void)dup2(fd, number);
    (void)fcntl(number, F_SETFD, FD_CLOEXEC);
}

/* Between the starter and the supervisor: a session of its own, none of the starter's files. */
static __attribute__((noreturn)) void
detach(const struct wb_cgroup_fs *fs, const struct wb_job_spec *spec, const struct hand_over *h)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int null, note, lock;

    (void)setsid();
    for (int sig = 1; sig < NSIG; sig++)
        if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGPIPE || sig == SIGQUIT)
            (void)sigaction(sig, &ignore, NULL);
    if (fork() != 0)
        _exit(0);
    note = fcntl(h->note, F_DUPFD_CLOEXEC, FD_LOCK + 1);
    lock = fcntl(h->lock, F_DUPFD_CLOEXEC, FD_LOCK + 1);
    put_at(note, FD_STARTER);
    put_at(lock, FD_LOCK);
    (void)close_range(FD_LOCK + 1, ~0U, 0);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        if (null > 2)
            (void)close(null);
    }
    be_supervisor(fs, spec, FD_STARTER);
}

/* Waits for the supervisor's word. */
static int await_start(int fd, const struct wb_job_spec *spec, struct wb_err *err)
{
    struct start_note note = {0};
    ssize_t n = -1;
    int ready = wb_wait(NULL, fd, START_LIMIT_NS, err);

    if (ready < 0)
        return ready;
    if (ready == 0)
        return wb_fail(err, WB_TIMEOUT, "%s was not started within %lld s", spec->argv[0],
                       START_LIMIT_NS / WB_SEC);
    while ((n = read(fd, &note, sizeof(note))) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof(note))
        return wb_fail(err, WB_IO, "the supervisor of %s ended before it had started it",
                       spec->argv[0]);
    if (!note.code)
        return 0;
    note.text[sizeof(note.text) - 1] = '\0';
    if (note.text[0]) {
        int rc = wb_fail(err, (enum wb_code)note.code, "%s", note.text);

        if (err)
            err->sys = note.sys;
        return rc;
    }
    return wb_fail_sys(err, note.sys, "cannot start %s", spec->argv[0]);
}

/* Forks the supervisor and waits for its word. */
static int fork_supervisor(const struct wb_cgroup_fs *fs, const struct wb_job_spec *spec, int lock,
                           struct wb_err *err)
{
    int p[2], rc = 0;
    pid_t pid;

    if (pipe2(p, O_CLOEXEC) < 0)
        return wb_fail_sys(err, errno, "cannot make a pipe");
    pid = fork();
    if (pid == 0)
        detach(fs, spec, &(struct hand_over){.note = p[1], .lock = lock});
    (void)close(p[1]);
    if (pid < 0)
        rc = wb_fail_sys(err, errno, "cannot fork");
    else
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (rc == 0)
        rc = await_start(p[0], spec, err);
    (void)close(p[0]);
    return rc;
}

int wb_job_start(const struct wb_cgroup_fs *fs, const struct wb_job_spec *spec, struct wb_err *err)
{
    WB_AUTO_FREE char *lock_path = wb_strf("%s/" WB_JOB_LOCK, spec->dir);
    WB_AUTO_CLOSE int lock = -1;
    int rc;

    if (wb_path_exists(spec->dir))
        return wb_fail(err, WB_CONFLICT, "job folder %s exists already", spec->dir);
    rc = wb_mkdir_all(spec->dir, 0755, err);
    if (rc == 0)
        rc = wb_lock_file(lock_path, "", &lock, err);
    if (rc == 0)
        rc = write_spec(spec, err);
    if (rc == 0)
        rc = wb_cgroup_create(fs, spec->group, &spec->limits, err);
    if (rc < 0)
        return wb_wrap(err, "job %s", spec->dir);
    rc = fork_supervisor(fs, spec, lock, err);
    if (rc < 0) {
        /* The first error is the one to tell. */
        WB_IGNORE(wb_cgroup_destroy(fs, spec->group, KILL_LIMIT_NS, NULL));
        return wb_wrap(err, "job %s", spec->dir);
    }
    return 0;
}
