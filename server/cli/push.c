/* `push REMOTE`: records to a git remote. */
#include "server/record/push.h"

#include <stdio.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/config.h"
#include "server/cli/records.h"

struct options {
    bool if_due;
};
static const struct wb_opt opts[] = {
    {"if-due", 0, WB_OPT_FLAG, offsetof(struct options, if_due), NULL, 0, 0,
     "only if something waits and the pause after a failure is over"},
    {0},
};

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

/* Whether --if-due lets it be: nothing waits, or the pause after a failure is not over. */
static int is_due(const struct wb_cli *cli, struct wb_store *s, const char *remote, bool *due,
                  struct wb_err *err)
{
    int64_t now = wb_now_unix_ms(NULL), from = 0;
    struct wb_buf at = WB_BUF_INIT(64);
    bool pending = false;
    int rc = wb_store_push_due(s, remote, now, &pending, &from, err);

    *due = rc == 0 && pending && from <= now;
    if (rc < 0 || *due)
        return rc;
    if (pending)
        wb_format_time(from, &at);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "remote", remote);
        wb_json_set(doc, "refs", wb_json_array());
        wb_json_set_bool(doc, "due", false);
        wb_json_set_bool(doc, "pending", pending);
        wb_json_set_str(doc, "next_at", pending ? wb_buf_str(&at) : NULL);
        wb_cli_answer(cli, doc, NULL);
    } else if (pending) {
        (void)printf("not due: the last push failed, the next try is from %s on\n",
                     wb_buf_str(&at));
    } else {
        (void)printf("nothing to push\n");
    }
    wb_buf_release(&at);
    return 0;
}

static int push(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    const char *remote = argc ? argv[0] : wb_config_get(cli->config, WB_SET_PUSH_REMOTE);
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    wb_json *report = NULL;
    bool due = true;
    int rc = remote ? wb_cli_open_store(cli, &s, &err)
                    : wb_fail(&err, WB_INVALID,
                              "name a REMOTE, or set push.remote ('weighbridge help settings')");

    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0 && o->if_due)
        rc = is_due(cli, s, remote, &due, &err);
    if (rc == 0 && due)
        rc = wb_store_push(s, remote, wb_now_unix_ms(NULL), cancel, &report, &err);
    wb_store_close(s);
    wb_cancel_free(cancel);
    if (report && !cli->json)
        print(cli, report);
    if (rc < 0)
        return wb_cli_fail_with(cli, &err, report);
    if (report && cli->json)
        wb_cli_answer(cli, WB_STEAL(report), NULL);
    wb_json_free(report);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_push = {
    .name = "push",
    .args = "[REMOTE]",
    .summary = "send this store's records to a git remote",
    .help =
        "REMOTE is a path, a URL, or a name of the store's git settings; without it the setting\n"
        "push.remote. Several controllers may push to one remote. A reference that the remote\n"
        "refuses is a failure (exit 22) and is named with the reason, so is a remote that cannot\n"
        "be reached (exit 13); what was not sent is sent next time. With --if-due, for a timer,\n"
        "it does nothing while nothing waits, and after a failure not before a pause that\n"
        "doubles from half a minute to an hour.\n",
    .examples = "  weighbridge push git@bench.example:records.git\n"
                "  weighbridge push --if-due\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = push,
};
