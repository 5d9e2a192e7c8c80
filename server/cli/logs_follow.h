/*
 * `logs -f`: what a campaign that runs here writes, while it does.
 */
#ifndef WB_CLI_LOGS_FOLLOW_H
#define WB_CLI_LOGS_FOLLOW_H

#include "server/cli/cli.h"

struct wb_logs_follow {
    const struct wb_cli *cli;
    const char *campaign;
    const char *run;    /* only this one; NULL: all, and the campaign's events */
    const char *stream; /* only this one; NULL: all */
};

/* From what is there already until the campaign (the run) is over; gives an exit code. Each line
 * goes out once, as "stream: line", with --json as {run, stream, line} or {stream: "events",
 * event}. Interrupted (130): the campaign goes on. */
int wb_logs_follow(const struct wb_logs_follow *f);

#endif
