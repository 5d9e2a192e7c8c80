#include "server/study/plan.h"
#include "server/cli/study_args.h"

static const struct wb_opt opts[] = {WB_STUDY_OPTS, {0}};

static void show(const struct wb_cli *cli, const struct wb_plan *plan)
{
    struct wb_buf out = WB_BUF_INIT(1 << 20);

    if (cli->json) {
        wb_cli_answer(cli, wb_plan_json(plan), NULL);
        return;
    }
    wb_plan_print(plan, cli->width, &out);
    wb_cli_print(&out);
}

static int run(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct wb_study_args *args = options;
    struct wb_problems p = {.file = argv[0]};
    struct wb_err err = WB_ERR_INIT;
    struct wb_host_facts host = {0};
    struct wb_plan *plan = NULL;
    struct wb_study *s = wb_study_args_read(cli, args, argv[0], &p);
    int rc = WB_EXIT_OK;

    if (s && wb_host_facts_read(&host, &err) < 0) {
        rc = wb_cli_fail(cli, &err);
    } else {
        if (s)
            plan = wb_plan_make(s, &host, 0, &p);
        if (plan)
            show(cli, plan);
        else
            rc = wb_study_problems(cli, &p);
    }
    wb_plan_free(plan);
    wb_study_free(s);
    wb_host_facts_release(&host);
    wb_problems_release(&p);
    return rc;
}

const struct wb_command wb_cmd_plan = {
    .name = "plan",
    .args = "STUDY",
    .summary = "show what a study would do here: arms, contrasts, order, placement, time",
    .help =
        "Checks the study against this host and starts nothing. The order is drawn anew unless\n"
        "the study has a seed.\n",
    .opts = opts,
    .opts_size = sizeof(struct wb_study_args),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .no_store = true,
};
