/*
 * Plain git as a child, for what it does better than a library: packing, pushing, fetching.
 * Recording and reading do not need it.
 */
#ifndef WB_RECORD_GITRUN_H
#define WB_RECORD_GITRUN_H

#include "server/base/child.h"
#include "server/record/internal.h"

struct wb_git_run {
    struct wb_strv args; /* after "git --git-dir=STORE"; released by the call */
    int64_t limit_ns;
    bool network; /* with the user's settings (credentials, ssh), never asking; else without any */
    bool gentle;  /* at the lowest priority */
    const struct wb_cancel *cancel;
};
/* Runs it to its end. A non-zero exit is no error; WB_UNSUPPORTED when there is no git. Release res
 * always. */
int wb_git_run(struct wb_store *s, struct wb_git_run *run, struct wb_child_result *res,
               struct wb_err *err) WB_MUST_CHECK;
/* The same, and a non-zero exit is WB_IO with what git said last. */
int wb_git_run_check(struct wb_store *s, struct wb_git_run *run, struct wb_err *err) WB_MUST_CHECK;
/* What a text of git says: the line with "fatal: ", else the last one that is not empty, without
 * control characters; caller frees. */
char *wb_last_line(const char *text);

#endif
