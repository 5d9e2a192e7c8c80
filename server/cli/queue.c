/* `queue`: what runs on a server, what waits, and for what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/cli/remote.h"

static void row(struct wb_table *t, const wb_json *c, const char *time_key)
{
    struct wb_buf when = WB_BUF_INIT(64);

    wb_cli_when(wb_json_str_or(c, time_key, ""), &when);
    wb_table_row(t);
    if (wb_json_int_or(c, "position", 0))
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "position", 0));
    else
        wb_table_cell(t, "runs");
    wb_table_cell(t, "%s", wb_json_str_or(c, "id", "?"));
    wb_table_cell(t, "%s", wb_json_str_or(c, "study", "?"));
    wb_table_cell(t, "%s", wb_buf_str(&when));
    wb_table_cell(t, "%s", wb_json_str_or(c, "waiting_for", ""));
    wb_buf_release(&when);
}

static void print(const struct wb_cli *cli, const wb_json *doc)
{
    const wb_json *running = wb_json_get(doc, "running"), *items = wb_json_get(doc, "items");
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "", WB_RIGHT);
    wb_table_column(t, "campaign", WB_RIGHT);
    wb_table_column(t, "study", WB_LEFT);
    wb_table_column(t, "start (UTC)", WB_RIGHT);
    wb_table_column(t, "waits for", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(running); i++)
        row(t, wb_json_at(running, i), "started_at");
    for (size_t i = 0; i < wb_json_len(items); i++)
        row(t, wb_json_at(items, i), "expected_start");
    if (wb_json_len(running) + wb_json_len(items))
        wb_table_print(t, cli->width, &out);
    else
        (void)fprintf(stderr, "nothing runs and nothing waits\n");
    wb_table_free(t);
    wb_cli_print(&out);
}

static int queue(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;
    int rc = wb_remote_open(cli, &r, &err);

    (void)opts; /* it has none */
    (void)argc;
    (void)argv;
    if (rc == 0)
        rc = wb_remote_get(r, &doc, &err, "/api/v1/queue");
    if (rc < 0) {
        rc = wb_remote_fail(cli, r, &err);
    } else if (cli->json) {
        wb_cli_answer(cli, doc, "items");
    } else {
        print(cli, doc);
        wb_json_free(doc);
    }
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_queue = {
    .name = "queue",
    .summary = "what runs on a server, what waits, and for what",
    .help = "In the order in which it will start. Times of what waits are forecasts.\n",
    .max_args = 0,
    .remote = queue,
};
