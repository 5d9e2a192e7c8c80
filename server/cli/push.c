/* `push REMOTE`: records to a git remote. */
#include "server/record/push.h"

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/config.h"
#include "server/cli/records.h"

static void print(const struct wb_cli *cli, const wb_json *report)
{
    const wb_json *refs = wb_json_get(report, "refs");
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "status", WB_RIGHT);
    wb_table_column(t, "reference", WB_LEFT);
    wb_table_column(t, "why", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(refs); i++) {
        const wb_json *r = wb_json_at(refs, i);

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(r, "status", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(r, "ref", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(r, "reason", ""));
    }
    wb_table_print(t, cli->width, &out);
    wb_table_free(t);
    wb_cli_print(&out);
}

static int push(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    wb_json *report = NULL;
    const char *remote = argc ? argv[0] : wb_config_get(cli->config, WB_SET_PUSH_REMOTE);
    int rc = remote ? wb_cli_open_store(cli, &s, &err)
                    : wb_fail(&err, WB_INVALID,
                              "name a REMOTE, or set push.remote ('weighbridge help settings')");

    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0)
        rc = wb_store_push(s, remote, wb_now_unix_ms(NULL), cancel, &report, &err);
    wb_store_close(s);
    wb_cancel_free(cancel);
    if (report && !cli->json)
        print(cli, report);
    else if (report && rc == 0)
        wb_cli_answer(cli, wb_json_ref(report), NULL);
    wb_json_free(report);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

const struct wb_command wb_cmd_push = {
    .name = "push",
    .args = "[REMOTE]",
    .summary = "send this store's records to a git remote",
    .help =
        "REMOTE is a path, a URL, or a name of the store's git settings; without it the setting\n"
        "push.remote. Several controllers may push to one remote. A reference that the remote\n"
        "refuses is a failure (exit 22), so is a remote that cannot be reached (exit 13); what\n"
        "was not sent is sent next time.\n",
    .max_args = 1,
    .run = push,
};
