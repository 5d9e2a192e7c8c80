/* `reindex`: the index made anew from git. */
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/record/query.h"

static int reindex(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(8192);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    size_t runs = 0;
    int rc = wb_cli_open_store(cli, &s, &err);

    if (rc == 0)
        rc = wb_store_reindex(s, &runs, &err);
    wb_store_close(s);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_int(doc, "runs", (int64_t)runs);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_buf_addf(&out, "%zu runs in the index\n", runs);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_reindex = {
    .name = "reindex",
    .summary = "make the index of the store anew",
    .help =
        "The index is folded from git by itself, and made anew when it is damaged; this is for\n"
        "those who do not want to wait for that.\n",
    .run = reindex,
};
