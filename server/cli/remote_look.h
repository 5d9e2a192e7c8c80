/* What the commands that look at records read from a server: the same documents as from a store. */
#ifndef WB_CLI_REMOTE_LOOK_H
#define WB_CLI_REMOTE_LOOK_H

#include "server/cli/filters.h"
#include "server/cli/remote.h"

/* A page of a list: what is "runs", "campaigns", "series", "findings",
 * "annotations" or "hosts". cursor NULL: the first.
 * *items and *next (NULL: the last) are owned. */
struct wb_remote_list {
    const char *what;
    const struct wb_cli_filters *filters;
    const char *sort, *cursor;
    int64_t limit; /* 0: the server's */
};
int wb_remote_list(struct wb_remote *r, const struct wb_remote_list *l, wb_json **items,
                   char **next, struct wb_err *err) WB_MUST_CHECK;

/* Ids as people type them: a run or a campaign, whole; the other is NULL. Caller frees both. */
int wb_remote_find(struct wb_remote *r, const char *typed, char **run, char **campaign,
                   struct wb_err *err) WB_MUST_CHECK;
/* The only campaign that begins as typed; NULL: the only one that runs. */
int wb_remote_find_campaign(struct wb_remote *r, const char *typed, char **id,
                            struct wb_err *err) WB_MUST_CHECK;
/* What `show` shows of a run: summary, record, phases, data, parity, annotations. */
int wb_remote_read_run(struct wb_remote *r, const char *run, wb_json **out,
                       struct wb_err *err) WB_MUST_CHECK;
/* One raw file of a run, appended. */
int wb_remote_raw(struct wb_remote *r, const char *run, const char *name, struct wb_buf *out,
                  struct wb_err *err) WB_MUST_CHECK;
/* Follows one stream of a run, recorded or not, to its end, each byte once. Gives the exit code. */
int wb_remote_follow_log(const struct wb_cli *cli, struct wb_remote *r, const char *run,
                         const char *stream);
/* All recorded runs of a campaign, oldest last. */
int wb_remote_runs_of(struct wb_remote *r, const char *campaign, wb_json **out,
                      struct wb_err *err) WB_MUST_CHECK;

#endif
