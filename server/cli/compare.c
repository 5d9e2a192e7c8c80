/*
 * `compare CAMPAIGN`: the contrasts of its plan. `compare REF OTHER...`: named arms against a named
 * one, paired by round inside a campaign, unpaired across campaigns.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/compare.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"
#include "server/cli/remote_look.h"

#define OUT_MAX (16u << 20)

/* What to type next: the rest of the figures, and the runs behind them. */
static void add_next(const wb_json *report, const char *campaign, struct wb_buf *out)
{
    const wb_json *contrasts = wb_json_get(report, "contrasts"),
                  *arms = wb_json_get(report, "arms");
    const char *p99 = wb_json_string(wb_json_path(report, "headline.p99"));
    bool decided = wb_json_len(contrasts) > 0 && p99 != NULL &&
                   strcmp(wb_json_str_or(wb_json_at(contrasts, 0), "metric", ""), p99) == 0;

    wb_buf_addf(out, "\nNext:  weighbridge show %s\n", campaign);
    if (p99 != NULL && !decided && wb_json_len(arms) > 1)
        wb_buf_addf(out, "       weighbridge compare %s --metric %s\n", campaign, p99);
}

int wb_cli_inquiry(const struct wb_cli *cli, struct wb_inquiry *out, struct wb_err *err)
{
    WB_AUTO_FREE char *answers = wb_strf("%s/answers", cli->state_dir);
    int rc = wb_cli_open_store(cli, &out->store, err);

    if (rc == 0)
        out->cache = wb_cache_open(answers);
    return rc;
}

void wb_cli_inquiry_release(struct wb_inquiry *j)
{
    wb_cache_close(j->cache);
    wb_store_close(j->store);
    *j = (struct wb_inquiry){0};
}

int wb_cli_compare_report(const struct wb_cli *cli, int argc, char **argv,
                          const struct wb_cli_compare_options *o, wb_json **report,
                          struct wb_err *err)
{
    struct wb_compare_question q = {
        .metric = o->metric, .threshold_percent = NAN, .force = o->force};
    struct wb_inquiry j = {0};
    int rc = 0;

    if (o->threshold != NULL &&
        wb_parse_percent(o->threshold, 0, 1000, &q.threshold_percent, err) < 0)
        return wb_wrap(err, "--threshold");
    rc = wb_cli_inquiry(cli, &j, err);
    if (rc == 0)
        rc = wb_inquiry_compare(&j, argv, (size_t)argc, &q, report, err);
    wb_cli_inquiry_release(&j);
    return rc;
}

static int compare(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;

    if (wb_cli_compare_report(cli, argc, argv, opts, &report, &err) < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_cli_answer(cli, report, NULL);
        return WB_EXIT_OK;
    }
    wb_campaign_report_print(report, cli->width, &out);
    add_next(report, wb_json_str_or(report, "campaign", ""), &out);
    wb_json_free(report);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

/* The question as an address: asking it again is harmless. */
static int comparison_path(int argc, char **argv, const struct wb_cli_compare_options *o,
                           struct wb_buf *path, struct wb_err *err)
{
    double threshold = NAN;

    if (o->threshold && wb_parse_percent(o->threshold, 0, 1000, &threshold, err) < 0)
        return wb_wrap(err, "--threshold");
    wb_buf_adds(path, "/api/v1/comparisons");
    wb_rest_add_query(path, "ref", argv[0]);
    for (int i = 1; i < argc; i++)
        wb_rest_add_query(path, "other", argv[i]);
    if (o->metric)
        wb_rest_add_query(path, "metric", o->metric);
    if (!isnan(threshold)) {
        WB_AUTO_FREE char *text = wb_strf("%.17g", threshold);

        wb_rest_add_query(path, "threshold", text);
    }
    if (o->force)
        wb_rest_add_query(path, "force", "true");
    return wb_buf_check(path, "the references", err);
}

static int remote(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX), path = WB_BUF_INIT(64u << 10);
    struct wb_err err = WB_ERR_INIT;
    struct wb_remote *r = NULL;
    wb_json *report = NULL;
    int rc = comparison_path(argc, argv, opts, &path, &err);

    if (rc == 0)
        rc = wb_remote_open(cli, &r, &err);
    if (rc == 0)
        rc = wb_remote_get(r, &report, &err, "%s", wb_buf_str(&path));
    if (rc < 0) {
        rc = wb_remote_fail(cli, r, &err);
    } else if (cli->json) {
        wb_cli_answer(cli, report, NULL);
    } else {
        wb_campaign_report_print(report, cli->width, &out);
        add_next(report, wb_json_str_or(report, "campaign", ""), &out);
        wb_json_free(report);
        wb_cli_print(&out);
    }
    wb_buf_release(&path);
    wb_remote_free(r);
    return rc;
}

static const struct wb_opt compare_opts[] = {
    {"metric", 0, WB_OPT_TEXT, offsetof(struct wb_cli_compare_options, metric), "NAME", 0, 0,
     "the metric that decides (such as max.throughput)"},
    {"threshold", 0, WB_OPT_TEXT, offsetof(struct wb_cli_compare_options, threshold), "PERCENT", 0,
     0, "changes below this do not matter (the study's, else 2%)"},
    {"force", 0, WB_OPT_FLAG, offsetof(struct wb_cli_compare_options, force), NULL, 0, 0,
     "compare also what does not compare; the answer says so"},
    {0},
};

const struct wb_command wb_cmd_compare = {
    .name = "compare",
    .args = "CAMPAIGN | REF OTHER...",
    .summary = "what each arm costs, with interval and verdict",
    .help = "With one campaign: the contrasts of its study. With more: each OTHER against REF,\n"
            "both CAMPAIGN/ARM, CAMPAIGN for all arms of the same label, or series:KEY@COMMIT (or\n"
            "@last: the newest build). The beginning of an id, label or commit is enough where it\n"
            "is unique. Arms of one campaign are compared\n"
            "within rounds. Ends with 0 whatever the verdict.\n",
    .opts = compare_opts,
    .opts_size = sizeof(struct wb_cli_compare_options),
    .min_args = 1,
    .max_args = -1,
    .run = compare,
    .remote = remote,
};
