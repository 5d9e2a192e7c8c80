/* What the commands about campaigns do when a server is named. Each gives the exit code. */
#ifndef WB_CLI_REMOTE_RUN_H
#define WB_CLI_REMOTE_RUN_H

#include "server/cli/remote.h"
#include "server/cli/study_args.h"

struct wb_remote_submit {
    const char *path;                 /* "/api/v1/campaigns" */
    const char *file;                 /* the study's, or NULL */
    const struct wb_study_args *args; /* profile, rounds, overrides */
    int64_t priority;
    const char *reason;
    const struct wb_strv *labels; /* may be NULL */
    const char *key;              /* Idempotency-Key; NULL: one of its own */
    bool wait, quiet;
};
/* Sends it once, whatever answers are lost on the way. With wait: follows it as the foreground
 * does, ends with its exit codes; Ctrl-C detaches (130). */
int wb_remote_submit(const struct wb_cli *cli, const struct wb_remote_submit *s);
/* The same for a campaign that is there: verb is "rerun", "resume" or "extend"; path and file of
 * how are not used. */
int wb_remote_again(const struct wb_cli *cli, const char *typed, const char *verb,
                    const struct wb_remote_submit *how);
/* typed NULL: the one that runs. */
int wb_remote_watch(const struct wb_cli *cli, const char *typed);
/* Asks for the end and waits for it. */
int wb_remote_cancel_campaign(const struct wb_cli *cli, const char *typed, int64_t wait_s);

#endif
