#include "server/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"

#define OUT_MAX (1u << 20)
#define ERR_MAX (64u << 10)
#define READ_CHUNK 16384

/* Descriptors of one running child; -1 when closed. */
struct pipes {
    int in, out, err; /* our ends */
    int note;         /* the child writes errno here when exec fails; closed by exec */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* In the child: only async-signal-safe calls, everything was prepared before. */
static __attribute__((noreturn)) void become(const struct wb_child_spec *spec, pid_t parent,
                                             const int theirs[4])
{
    sigset_t none;
    int why;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126); /* it was killed before that call could help */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            (void)signal(sig, SIG_DFL);
    if (dup2(theirs[0], 0) < 0 || dup2(theirs[1], 1) < 0 || dup2(theirs[2], 2) < 0)
        goto failed;
    /* Descriptors of libraries and of our own parent are none of the child's business. */
    (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (spec->cwd && chdir(spec->cwd) < 0)
        goto failed;
    if (spec->env) {
        (void)execvpe(spec->argv[0], spec->argv, spec->env);
    } else {
        char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        char lang[] = "LANG=C.UTF-8", home[] = "HOME=/";
        char *const env[] = {path, lang, home, NULL};

        (void)execvpe(spec->argv[0], spec->argv, env);
    }
failed:
    why = errno;
    if (write(theirs[3], &why, sizeof(why)) < 0)
        _exit(126);
    _exit(127);
}

/* A process that kills the group when its starter dies: the line between them is then closed. The
 * starter says a byte when the child has ended. -1 when it could not be made: the child itself
 * still dies with its starter. */
static pid_t watch_over(pid_t group, int *line)
{
    int p[2];
    char byte;
    pid_t pid;

    *line = -1;
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        (void)setsid();
        (void)prctl(PR_SET_NAME, "wb-watch");
        (void)dup2(p[0], 0);
        (void)close_range(1, ~0U, 0);
        if (read(0, &byte, 1) == 0)
            (void)kill(-group, SIGKILL);
        _exit(0);
    }
    (void)close(p[0]);
    if (pid > 0)
        *line = p[1];
    else
        (void)close(p[1]);
    return pid;
}

static void dismiss(pid_t watcher, int line)
{
    if (watcher < 0)
        return;
    if (write(line, "x", 1) < 0)
        (void)kill(watcher, SIGKILL); /* it must not take the closed line for our death */
    while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(line);
}

static int start(const struct wb_child_spec *spec, struct pipes *p, pid_t *pid, struct wb_err *err)
{
    pid_t self = getpid();
    int in[2] = {-1, -1}, out[2] = {-1, -1}, er[2] = {-1, -1}, note[2] = {-1, -1};
    int theirs[4], rc = 0;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(er, O_CLOEXEC) < 0 ||
        pipe2(note, O_CLOEXEC) < 0) {
        rc = wb_fail_sys(err, errno, "cannot make pipes for %s", spec->argv[0]);
    } else {
        theirs[0] = in[0];
        theirs[1] = out[1];
        theirs[2] = er[1];
        theirs[3] = note[1];
        *pid = fork();
        if (*pid == 0)
            become(spec, self, theirs);
        if (*pid < 0)
            rc = wb_fail_sys(err, errno, "cannot start %s", spec->argv[0]);
    }
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&er[1]);
    close_fd(&note[1]);
    *p = (struct pipes){.in = in[1], .out = out[0], .err = er[0], .note = note[0]};
    return rc;
}

/* Feeds what is left of the input; closes when done or when the child no longer reads. */
static void feed(struct pipes *p, const struct wb_child_spec *spec, size_t *fed)
{
    ssize_t n = 0;

    if (*fed < spec->input_len)
        n = write(p->in, (const char *)spec->input + *fed, spec->input_len - *fed);
    if (n > 0)
        *fed += (size_t)n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || *fed >= spec->input_len)
        close_fd(&p->in);
}

/* One read; keeps the last part when `tail`. */
static void drain(int *fd, struct wb_buf *b, bool tail)
{
    char chunk[READ_CHUNK];
    ssize_t n = read(*fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        close_fd(fd);
        return;
    }
    if (tail) {
        size_t keep = (size_t)n < b->max ? (size_t)n : b->max;

        if (b->len > b->max - keep)
            wb_buf_consume(b, b->len - (b->max - keep));
        wb_buf_add(b, chunk + ((size_t)n - keep), keep);
    } else {
        wb_buf_add(b, chunk, (size_t)n);
    }
}

/* Reads and feeds until both outputs are closed or there is a reason to stop. */
static int converse(const struct wb_child_spec *spec, struct pipes *p, struct wb_child_result *res,
                    int64_t end, struct wb_err *err)
{
    size_t fed = 0;

    while (p->out >= 0 || p->err >= 0) {
        struct pollfd w[4] = {{.fd = p->out, .events = POLLIN},
                              {.fd = p->err, .events = POLLIN},
                              {.fd = p->in, .events = POLLOUT},
                              {.fd = wb_cancel_fd(spec->cancel), .events = POLLIN}};
        int64_t left = end - wb_now_ns(NULL);
        struct timespec ts = {.tv_sec = left / WB_SEC, .tv_nsec = left % WB_SEC};

        if (wb_cancelled(spec->cancel))
            return wb_fail(err, WB_CANCELLED, "%s was cancelled", spec->argv[0]);
        if (left <= 0) {
            res->timed_out = true;
            return wb_fail(err, WB_TIMEOUT, "%s did not end within %.1f s", spec->argv[0],
                           (double)spec->limit_ns / 1e9);
        }
        if (ppoll(w, 4, &ts, NULL) < 0 && errno != EINTR)
            return wb_fail_sys(err, errno, "cannot wait for %s", spec->argv[0]);
        if (w[0].revents)
            drain(&p->out, &res->out, false);
        if (w[1].revents)
            drain(&p->err, &res->err, true);
        if (w[2].revents)
            feed(p, spec, &fed);
        if (res->out.failed)
            return wb_fail(err, WB_LIMIT, "%s wrote more than %zu bytes to its standard output",
                           spec->argv[0], res->out.max);
    }
    return 0;
}

/* Reaps the child; kills its group first when `kill_it` or when it outlives `end`. */
static int reap(pid_t pid, const struct wb_child_spec *spec, bool kill_it, int64_t end,
                struct wb_child_result *res, struct wb_err *err)
{
    int status = 0, rc = 0;

    /* Both outputs are closed, so it is about to end; one that closed them and lives on is given
     * what is left of its time. */
    if (!kill_it) {
        WB_AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        int64_t left = end - wb_now_ns(NULL);
        int ended = fd < 0 ? 1 : wb_wait(spec->cancel, fd, left, err);

        if (ended == 0) {
            res->timed_out = true;
            ended = wb_fail(err, WB_TIMEOUT, "%s did not end within %.1f s", spec->argv[0],
                            (double)spec->limit_ns / 1e9);
        }
        if (ended < 0) {
            kill_it = true;
            rc = ended;
        }
    }
    /* The group also holds what the child left behind; nothing of it may stay. */
    (void)kill(-pid, SIGKILL);
    if (kill_it)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    res->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    res->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return rc;
}

int wb_child_run(const struct wb_child_spec *spec, struct wb_child_result *res, struct wb_err *err)
{
    int64_t began = wb_now_ns(NULL), end = began + spec->limit_ns;
    struct pipes p = {-1, -1, -1, -1};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    pid_t pid = -1, watcher;
    int why = 0, rc, reaped, line;

    *res = (struct wb_child_result){.exit_code = -1,
                                    .out = WB_BUF_INIT(spec->out_max ? spec->out_max : OUT_MAX),
                                    .err = WB_BUF_INIT(spec->err_max ? spec->err_max : ERR_MAX)};
    (void)sigaction(SIGPIPE, &ignore, &before);
    rc = start(spec, &p, &pid, err);
    if (rc == 0 && read(p.note, &why, sizeof(why)) == (ssize_t)sizeof(why)) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        rc = wb_fail_sys(err, why, "cannot run %s", spec->argv[0]);
    } else if (rc == 0) {
        watcher = watch_over(pid, &line);
        if (fcntl(p.in, F_SETFL, O_NONBLOCK) < 0 || !spec->input_len)
            close_fd(&p.in);
        rc = converse(spec, &p, res, end, err);
        reaped = reap(pid, spec, rc < 0, end, res, err);
        dismiss(watcher, line);
        if (rc == 0)
            rc = reaped;
    }
    close_fd(&p.in);
    close_fd(&p.out);
    close_fd(&p.err);
    close_fd(&p.note);
    (void)sigaction(SIGPIPE, &before, NULL);
    res->wall_ns = wb_now_ns(NULL) - began;
    return rc;
}

/* The last non-empty line of a text, for error messages. */
static const char *last_line(struct wb_buf *b)
{
    while (b->len && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == ' '))
        b->data[--b->len] = '\0';
    for (size_t i = b->len; i > 0; i--)
        if (b->data[i - 1] == '\n')
            return b->data + i;
    return wb_buf_str(b);
}

int wb_child_check(const struct wb_child_spec *spec, struct wb_child_result *res,
                   struct wb_err *err)
{
    int rc = wb_child_run(spec, res, err);
    const char *said;

    if (rc < 0 || (res->exit_code == 0 && res->signal == 0))
        return rc;
    said = last_line(&res->err);
    if (res->signal)
        return wb_fail(err, WB_IO, "%s was ended by signal %d%s%s", spec->argv[0], res->signal,
                       *said ? ": " : "", said);
    return wb_fail(err, WB_IO, "%s ended with status %d%s%s", spec->argv[0], res->exit_code,
                   *said ? ": " : "", said);
}

void wb_child_release(struct wb_child_result *res)
{
    wb_buf_release(&res->out);
    wb_buf_release(&res->err);
}
