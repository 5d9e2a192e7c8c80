#include "server/base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

struct wb_cancel {
    int fd[2]; /* [0] stays readable once set: nobody reads it */
    atomic_int set;
    atomic_int signal;
};

/* A signal handler can reach its token only through the process: the one global of base. */
static struct wb_cancel *_Atomic signal_token;

struct wb_cancel *wb_cancel_new(void)
{
    struct wb_cancel *c = wb_calloc(1, sizeof(*c));

    if (pipe2(c->fd, O_CLOEXEC | O_NONBLOCK) < 0)
        c->fd[0] = c->fd[1] = -1;
    return c;
}

void wb_cancel_free(struct wb_cancel *c)
{
    if (!c)
        return;
    if (atomic_load(&signal_token) == c)
        atomic_store(&signal_token, NULL);
    if (c->fd[0] >= 0) {
        (void)close(c->fd[0]);
        (void)close(c->fd[1]);
    }
    free(c);
}

void wb_cancel_set(struct wb_cancel *c, int signal)
{
    char byte = 1;

    atomic_store(&c->signal, signal);
    atomic_store(&c->set, 1);
    if (c->fd[1] >= 0 && write(c->fd[1], &byte, 1) < 0)
        return; /* full pipe: already readable */
}

static void on_signal(int sig)
{
    int saved = errno;
    struct wb_cancel *c = atomic_load(&signal_token);

    if (c)
        wb_cancel_set(c, sig);
    errno = saved;
}

int wb_cancel_on_signals(struct wb_cancel *c, struct wb_err *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    atomic_store(&signal_token, c);
    (void)sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < WB_LEN(signals); i++) {
        /* nohup: a hang-up that is ignored stays ignored. */
        if (signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
            before.sa_handler == SIG_IGN)
            continue;
        if (sigaction(signals[i], &sa, NULL) < 0)
            return wb_fail_sys(err, errno, "cannot handle signal %d", signals[i]);
    }
    /* Nobody reads the progress any more: not a reason to end without cleaning up. */
    if (sigaction(SIGPIPE, &ignore, NULL) < 0)
        return wb_fail_sys(err, errno, "cannot ignore SIGPIPE");
    return 0;
}

bool wb_cancelled(const struct wb_cancel *c)
{
    return c && atomic_load(&c->set);
}

int wb_cancel_signal(const struct wb_cancel *c)
{
    return c ? atomic_load(&c->signal) : 0;
}

int wb_cancel_fd(const struct wb_cancel *c)
{
    return c ? c->fd[0] : -1;
}

int wb_wait(const struct wb_cancel *c, int fd, int64_t ns, struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + (ns > 0 ? ns : 0);

    for (;;) {
        struct pollfd p[2] = {{.fd = wb_cancel_fd(c), .events = POLLIN},
                              {.fd = fd, .events = POLLIN}};
        int64_t left = end - wb_now_ns(NULL);
        struct timespec ts;
        int n;

        if (wb_cancelled(c))
            return wb_fail(err, WB_CANCELLED, "cancelled");
        if (left < 0)
            left = 0;
        ts = (struct timespec){.tv_sec = left / WB_SEC, .tv_nsec = left % WB_SEC};
        n = ppoll(p, 2, &ts, NULL);
        if (n < 0 && errno != EINTR)
            return wb_fail_sys(err, errno, "cannot wait");
        if (n > 0 && p[1].revents)
            return 1;
        if (n == 0 && !wb_cancelled(c))
            return 0;
    }
}
