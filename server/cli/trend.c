/*
 * `trend SERIES`: the history of one figure, and where it changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/trend.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"
#include "server/cli/history.h"

#define OUT_MAX (16u << 20)
#define PREVIOUS_MAX (64u << 20)

struct options {
    struct wb_cli_history_options history;
    const char *previous;
};

static int answer(const struct wb_cli *cli, const struct options *o, const char *typed,
                  wb_json **out, struct wb_err *err)
{
    struct wb_cli_history h = {.since = NULL};
    WB_AUTO_JSON wb_json *previous = NULL;
    struct wb_inquiry j = {0};
    int rc = wb_cli_inquiry(cli, &j, err);

    if (rc == 0 && o->previous != NULL)
        rc = wb_json_read_file(o->previous, PREVIOUS_MAX, &previous, err);
    if (rc == 0)
        rc = wb_cli_history_read(&o->history, &h, err);
    h.q.previous = previous;
    if (rc == 0)
        rc = wb_inquiry_trend(&j, typed, &h.q, out, err);
    wb_cli_history_release(&h);
    wb_cli_inquiry_release(&j);
    return rc;
}

static int trend(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    wb_json *found = NULL;

    (void)argc;
    if (answer(cli, opts, argv[0], &found, &err) < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_cli_answer(cli, found, NULL);
        return WB_EXIT_OK;
    }
    wb_trend_print(found, cli->width, &out);
    wb_json_free(found);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

#define AT(m) offsetof(struct options, m)
static const struct wb_opt trend_opts[] = {
    {"metric", 0, WB_OPT_TEXT, AT(history.metric), "NAME", 0, 0,
     "which figure (the one that stands for the runs)"},
    {"since", 0, WB_OPT_TEXT, AT(history.since), "90d|DAY", 0, 0, "only runs from then on"},
    {"threshold", 0, WB_OPT_TEXT, AT(history.threshold), "PERCENT", 0, 0,
     "changes below this do not matter (2%)"},
    {"accept-noisy", 0, WB_OPT_FLAG, AT(history.accept_noisy), NULL, 0, 0, "count noisy runs, too"},
    {"annotations", 0, WB_OPT_TEXT, AT(history.annotations), "FILE", 0, 0,
     "JSON list of {id, type} beside those of the records"},
    {"previous", 0, WB_OPT_TEXT, AT(previous), "FILE", 0, 0,
     "an earlier --json answer: its changes keep their names"},
    {0},
};

const struct wb_command wb_cmd_trend = {
    .name = "trend",
    .args = "SERIES",
    .summary = "the history of one figure, and where it changed",
    .help =
        "SERIES is a key ('list series' shows them) or its beginning, CAMPAIGN/ARM, or a run.\n"
        "A night is a campaign: the median of its runs that count. Nights stand in the order in\n"
        "which their builds were made (subject.built of the study), else were measured. Ends\n"
        "with 0 whatever changed.\n",
    .opts = trend_opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = trend,
};
