/*
 * What the commands over histories share.
 */
#ifndef WB_CLI_HISTORY_H
#define WB_CLI_HISTORY_H

#include "server/analysis/inquiry.h"
#include "server/cli/records.h"

struct wb_cli_history_options {
    const char *metric, *since, *threshold, *annotations;
    bool accept_noisy;
};

/* Fills a question; what it points to is owned by h. Release also after a failure. */
struct wb_cli_history {
    struct wb_history_question q;
    char *since;
    wb_json *annotations;
};
int wb_cli_history_read(const struct wb_cli_history_options *o, struct wb_cli_history *h,
                        struct wb_err *err) WB_MUST_CHECK;
void wb_cli_history_release(struct wb_cli_history *h);

/* `list findings`, at most limit (0: all) of them. An exit code. */
int wb_cli_list_findings(const struct wb_cli *cli, int64_t limit);

#endif
