/*
 * The report behind `compare`, for the commands that judge it.
 */
#ifndef WB_CLI_COMPARE_H
#define WB_CLI_COMPARE_H

#include "server/cli/records.h"

struct wb_cli_compare_options {
    const char *metric, *threshold;
    bool force;
};

/* The report (wb_campaign_report) of one campaign, or of each reference against the first. *report
 * is owned. */
int wb_cli_compare_report(struct wb_store *s, int argc, char **argv,
                          const struct wb_cli_compare_options *o, wb_json **report,
                          struct wb_err *err) WB_MUST_CHECK;

#endif
