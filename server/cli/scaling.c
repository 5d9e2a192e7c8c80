/* `scaling CAMPAIGN`: throughput over the number of instances or a factor, as curves. */
#include "server/analysis/campaign_scaling.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"

#define OUT_MAX (16u << 20)

struct options {
    const char *metric, *over;
};

static int scaling(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct options *o = opts;
    const struct wb_scaling_question q = {.metric = o->metric, .over = o->over};
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    struct wb_inquiry j = {0};
    wb_json *report = NULL;
    int rc = wb_cli_inquiry(cli, &j, &err);

    if (rc == 0)
        rc = wb_inquiry_scaling(&j, argv[0], &q, &report, &err);
    wb_cli_inquiry_release(&j);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_cli_answer(cli, report, NULL);
        return WB_EXIT_OK;
    }
    wb_campaign_scaling_print(report, cli->width, &out);
    wb_json_free(report);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

static const struct wb_opt scaling_opts[] = {
    {"metric", 0, WB_OPT_TEXT, offsetof(struct options, metric), "NAME", 0, 0,
     "what is plotted (the throughput that stands for the runs)"},
    {"over", 0, WB_OPT_TEXT, offsetof(struct options, over), "FACTOR", 0, 0,
     "'instances' or a factor with numbers (the one with most)"},
    {0},
};

const struct wb_command wb_cmd_scaling = {
    .name = "scaling",
    .args = "CAMPAIGN",
    .summary = "how throughput grows with instances or a factor, and where it peaks",
    .help = "Fits the Universal Scalability Law to the counted runs, one curve for each\n"
            "combination of everything but the factor, and says where it is not to be used.\n",
    .opts = scaling_opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = scaling,
};
