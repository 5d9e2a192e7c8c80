/*
 * `trend SERIES`: the history of one figure, and where it changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/history.h"
#include "server/cli/refs.h"

#define OUT_MAX (16u << 20)
#define PREVIOUS_MAX (64u << 20)

struct options {
    struct wb_cli_history_options history;
    const char *previous;
};

/* The series of CAMPAIGN/ARM. Caller frees *key. */
static int series_of_ref(struct wb_store *s, const char *typed, char **key, struct wb_err *err)
{
    struct wb_cli_ref ref = {0};
    int rc = wb_cli_ref_read(s, typed, &ref, err);

    for (size_t i = 0; rc == 0 && *key == NULL && i < wb_json_len(ref.runs); i++) {
        const wb_json *run = wb_json_at(ref.runs, i);
        const char *found = wb_json_str_or(run, "series_key", "");
        if (ref.arm != NULL && strcmp(wb_json_str_or(run, "arm", ""), ref.arm) == 0 && *found)
            *key = wb_strdup(found);
    }
    if (rc == 0 && *key == NULL)
        rc = wb_fail(err, WB_NOT_FOUND, "no run of %s belongs to a series", typed);
    wb_cli_ref_release(&ref);
    return rc;
}

static int series_of_run(struct wb_store *s, const char *typed, char **key, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_FREE char *run = NULL;
    int rc = wb_store_resolve(s, typed, &run, err);

    if (rc == 0)
        rc = wb_store_read(s, run, "summary", &summary, err);
    if (rc == 0)
        *key = wb_strdup(wb_json_str_or(summary, "series_key", ""));
    return rc;
}

/* What was typed as the key of a series, or the beginning of one. Caller frees *key. */
static int find_key(struct wb_store *s, const char *typed, char **key, struct wb_err *err)
{
    if (strncmp(typed, "series:", 7) == 0) {
        *key = wb_strdup(typed + 7);
        return 0;
    }
    if (strchr(typed, '/') != NULL)
        return series_of_ref(s, typed, key, err);
    if (strncmp(typed, "run_", 4) == 0)
        return series_of_run(s, typed, key, err);
    *key = wb_strdup(typed);
    return 0;
}

static int answer(const struct wb_cli *cli, const struct options *o, const char *typed,
                  wb_json **out, struct wb_err *err)
{
    struct wb_cli_history h = {.summaries = NULL};
    WB_AUTO_JSON wb_json *previous = NULL;
    WB_AUTO_FREE char *key = NULL;
    struct wb_store *s = NULL;
    int rc = wb_cli_open_store(cli, &s, err);

    if (rc == 0)
        rc = find_key(s, typed, &key, err);
    if (rc == 0 && o->previous != NULL)
        rc = wb_json_read_file(o->previous, PREVIOUS_MAX, &previous, err);
    if (rc == 0)
        rc = wb_cli_history_read(cli, s, &o->history, &h, err);
    h.q.series = key;
    h.q.previous = previous;
    if (rc == 0)
        rc = wb_trend(h.summaries, &h.q, out, err);
    wb_cli_history_release(&h);
    wb_store_close(s);
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
    .help = "SERIES is a key ('list series' shows them) or its beginning, CAMPAIGN/ARM, or a run.\n"
            "A night is a campaign: the median of its runs that count. Ends with 0 whatever\n"
            "changed.\n",
    .opts = trend_opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = trend,
};
