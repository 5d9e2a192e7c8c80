/*
 * The report behind `compare`, for the commands that judge it.
 */
#ifndef WB_CLI_COMPARE_H
#define WB_CLI_COMPARE_H

#include "server/analysis/inquiry.h"
#include "server/cli/records.h"

struct wb_cli_compare_options {
    const char *metric, *threshold;
    bool force;
};

/* The report (wb_campaign_report) of one campaign, or of each reference against the first. *report
 * is owned. */
int wb_cli_compare_report(const struct wb_cli *cli, int argc, char **argv,
                          const struct wb_cli_compare_options *o, wb_json **report,
                          struct wb_err *err) WB_MUST_CHECK;

/* The store of the command line, and answers that were kept. Release also after a failure. */
int wb_cli_inquiry(const struct wb_cli *cli, struct wb_inquiry *out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_cli_inquiry_release(struct wb_inquiry *j);

#endif
