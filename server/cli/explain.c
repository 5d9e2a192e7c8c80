/* `explain A B`: what else is different between two arms, campaigns of one arm, or runs. */
#include "server/analysis/explain.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"

#define OUT_MAX (16u << 20)

struct options {
    const char *metric;
};

static int explain(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct options *o = opts;
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    struct wb_inquiry j = {0};
    wb_json *doc = NULL;
    int rc = wb_cli_inquiry(cli, &j, &err);

    if (rc == 0)
        rc = wb_inquiry_explain(&j, argv[0], argv[1], o->metric, &doc, &err);
    wb_cli_inquiry_release(&j);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_explain_print(doc, cli->width, &out);
    wb_json_free(doc);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

static const struct wb_opt explain_opts[] = {
    {"metric", 0, WB_OPT_TEXT, offsetof(struct options, metric), "NAME", 0, 0,
     "the figure that moved (that of the plan's first contrast)"},
    {0},
};

const struct wb_command wb_cmd_explain = {
    .name = "explain",
    .args = "A B",
    .summary = "what else differs between two arms or runs, ranked",
    .help = "A and B are CAMPAIGN/ARM, series:KEY@COMMIT, a campaign of one arm, or a run. Lists "
            "the settings and the\n"
            "facts of host and database that differ, and the signals (samples of host, load and\n"
            "database) that moved with the figure. What moved together is no proof of a cause.\n",
    .opts = explain_opts,
    .opts_size = sizeof(struct options),
    .min_args = 2,
    .max_args = 2,
    .run = explain,
};
