#include "server/cli/study_args.h"

#include <stdio.h>

struct wb_study *wb_study_args_read(const struct wb_cli *cli, const struct wb_study_args *args,
                                    const char *path, struct wb_problems *p)
{
    const struct wb_study_options o = {.profile = args->profile,
                                       .overrides = args->overrides.v,
                                       .rounds = args->rounds,
                                       .recipes_dir = cli->recipes_dir};

    return wb_study_read_file(path, &o, p);
}

int wb_study_problems(const struct wb_cli *cli, const struct wb_problems *p)
{
    struct wb_buf text = WB_BUF_INIT(1 << 20);

    if (cli->json) {
        wb_cli_answer(cli, wb_problems_json(p), NULL);
        return WB_EXIT_USAGE;
    }
    wb_problems_text(p, &text);
    fputs(wb_buf_str(&text), stderr);
    fprintf(stderr, "%zu problem%s; nothing was started\n", p->n + p->dropped,
            p->n + p->dropped == 1 ? "" : "s");
    wb_buf_release(&text);
    return WB_EXIT_USAGE;
}
