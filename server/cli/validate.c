#include "server/cli/study_args.h"

static const struct wb_opt opts[] = {WB_STUDY_OPTS, {0}};

static int run(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct wb_study_args *args = options;
    struct wb_problems p = {0};
    struct wb_buf out = WB_BUF_INIT(4096);
    struct wb_study *s = wb_study_args_read(cli, args, argv[0], &p);
    int rc = WB_EXIT_OK;

    if (!s)
        rc = wb_study_problems(cli, &p);
    else if (cli->json)
        wb_cli_answer(cli, wb_problems_json(&p), NULL);
    else
        wb_buf_addf(&out, "%s: ok, study %s\n", argv[0], s->name);
    if (out.len)
        wb_cli_print(&out);
    wb_buf_release(&out);
    wb_study_free(s);
    wb_problems_release(&p);
    return rc;
}

const struct wb_command wb_cmd_validate = {
    .name = "validate",
    .args = "STUDY",
    .summary = "check a study file, all problems at once",
    .help = "Prints one line per problem: file, line, where in the document, what is wrong and\n"
            "what is allowed. Starts nothing. Exit code 2 when there are problems.\n",
    .opts = opts,
    .opts_size = sizeof(struct wb_study_args),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .no_store = true,
};
