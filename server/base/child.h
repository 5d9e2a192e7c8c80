/*
 * The one way to run a short child process to its end: argv, no shell; environment explicit;
 * own process group, killed as a group at the time limit; stdout and stderr both drained and
 * capped. When the starter is killed, the child and its group die with it. For long-running work
 * see job.h.
 */
#ifndef WB_BASE_CHILD_H
#define WB_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"
#include "server/base/mem.h"

struct wb_cancel; /* see cancel.h; may be NULL */

struct wb_child_spec {
    char *const *argv; /* argv[0] is looked up in PATH unless it has a slash */
    char *const *env;  /* NULL: PATH, HOME, LANG=C.UTF-8 only */
    const char *cwd;   /* NULL: unchanged */
    const void *input; /* to stdin; NULL: /dev/null */
    size_t input_len;
    int64_t limit_ns;        /* time limit; must be > 0 */
    size_t out_max, err_max; /* caps; 0 means 1 MiB / 64 KiB. stdout beyond its cap fails, stderr
                                keeps its tail */
    const struct wb_cancel *cancel;
};

struct wb_child_result {
    int exit_code; /* -1 when ended by a signal */
    int signal;    /* 0 when it exited */
    bool timed_out;
    struct wb_buf out; /* stdout */
    struct wb_buf err; /* last part of stderr */
    int64_t wall_ns;
};

/* Runs to the end. An error means that it could not be run, passed its time (WB_TIMEOUT), was
 * cancelled, or wrote too much; a non-zero exit is not an error here. Release the result always. */
int wb_child_run(const struct wb_child_spec *spec, struct wb_child_result *res,
                 struct wb_err *err) WB_MUST_CHECK;
/* As above, and a non-zero exit or signal is WB_IO with argv[0] and the last line of stderr. */
int wb_child_check(const struct wb_child_spec *spec, struct wb_child_result *res,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_child_release(struct wb_child_result *res);

#endif
