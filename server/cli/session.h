/*
 * What the commands that run a campaign in the foreground share: the parts they need, progress,
 * the report at the end and the exit code.
 */
#ifndef WB_CLI_SESSION_H
#define WB_CLI_SESSION_H

#include "server/cli/places.h"
#include "server/engine/engine.h"

struct wb_session {
    struct wb_study *study;
    struct wb_plan *plan;
    struct wb_store *store;
    struct wb_cancel *cancel; /* set by signals */
    struct wb_places places;
};
struct wb_session_opts {
    bool quiet, resume, accept_changes;
    bool no_report; /* the caller says what came of it */
    int64_t wait_s; /* for a busy host */
};

/* Places, store (made when `create`) and signals. */
int wb_session_open(const struct wb_cli *cli, bool create, const char *controller,
                    struct wb_session *s, struct wb_err *err) WB_MUST_CHECK;
/* Runs the plan, prints what came of it, gives the exit code. */
int wb_session_run(const struct wb_cli *cli, const struct wb_session *s,
                   const struct wb_session_opts *o);
/* The exit code of what wb_engine_run gave. */
int wb_session_exit(const struct wb_engine_result *res, int rc, const struct wb_err *err);
void wb_session_release(struct wb_session *s);

#endif
