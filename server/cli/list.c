#include <stdio.h>
#include <string.h>

#include "server/base/problems.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/history.h"
#include "server/cli/records.h"

#define SHOWN_RUNS 50 /* in a table, unless --limit says otherwise */

struct options {
    const char *campaign, *arm, *outcome, *from;
    int64_t limit;
};
static const struct wb_opt opts[] = {
    {"campaign", 'c', WB_OPT_TEXT, offsetof(struct options, campaign), "ID", 0, 0,
     "only runs of this campaign"},
    {"arm", 'a', WB_OPT_TEXT, offsetof(struct options, arm), "LABEL", 0, 0,
     "only runs of this arm"},
    {"outcome", 'o', WB_OPT_TEXT, offsetof(struct options, outcome), "WORD", 0, 0,
     "only runs with this outcome"},
    {"limit", 'n', WB_OPT_INT, offsetof(struct options, limit), "N", 1, 1000000,
     "at most N (a table shows 50 runs)"},
    {"from", 0, WB_OPT_TEXT, offsetof(struct options, from), "ID", 0, 0,
     "begin at this one: what 'next' of --json gave"},
    {0},
};

/* Keeps what begins at `from` and at most limit (0: all) of it; *next is the id of the first one
 * that was cut, or NULL; borrowed from items. */
static int cut(const wb_json *items, const struct options *o, int64_t limit, wb_json **out,
               const char **next, struct wb_err *err)
{
    wb_json *kept = wb_json_array();
    bool on = !o->from;

    *next = NULL;
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *item = wb_json_at(items, i);
        const char *id = wb_json_str_or(item, "id", "");

        on |= o->from && !strcmp(id, o->from);
        if (!on)
            continue;
        if (limit && wb_json_len(kept) == (size_t)limit) {
            *next = id;
            break;
        }
        wb_json_push(kept, wb_json_ref(item));
    }
    if (!on) {
        wb_json_free(kept);
        return wb_fail(err, WB_NOT_FOUND, "the list has no '%s' to begin at", o->from);
    }
    *out = kept;
    return 0;
}

static void print_campaigns(const wb_json *list, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "campaign", WB_RIGHT); /* not cut: ids are there to be used */
    wb_table_column(t, "study", WB_LEFT);
    wb_table_column(t, "arms", WB_RIGHT);
    wb_table_column(t, "rounds", WB_RIGHT);
    wb_table_column(t, "runs", WB_RIGHT);
    wb_table_column(t, "ok", WB_RIGHT);
    wb_table_column(t, "when (UTC)", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *c = wb_json_at(list, i);
        struct wb_buf when = WB_BUF_INIT(64);

        wb_cli_when(wb_json_str_or(c, "started_at", ""), &when);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(c, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(c, "study", "-"));
        wb_table_cell(t, "%zu", wb_json_len(wb_json_get(c, "arms")));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "rounds", 0));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "runs", 0));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "ok", 0));
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_buf_release(&when);
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}

static void print_text(const struct wb_cli *cli, const wb_json *items, bool campaigns,
                       const char *next)
{
    struct wb_buf out = WB_BUF_INIT(64u << 20);

    if (wb_json_len(items) == 0)
        (void)fprintf(stderr, "no %s\n", campaigns ? "campaigns" : "runs");
    else if (campaigns)
        print_campaigns(items, cli->width, &out);
    else
        wb_cli_run_table(items, cli->width, &out);
    wb_cli_print(&out);
    if (next)
        (void)fprintf(stderr, "there are more: --limit N shows N, --from %s goes on\n", next);
    else if (wb_json_len(items) && !campaigns)
        (void)fprintf(stderr, "'weighbridge show RUN' tells all of one\n");
    else if (wb_json_len(items))
        (void)fprintf(stderr, "'weighbridge show CAMPAIGN' lists its runs\n");
}

static int fetch(struct wb_store *s, const struct options *o, bool campaigns, wb_json **items,
                 struct wb_err *err)
{
    struct wb_list_filter f = {.arm = o->arm, .outcome = o->outcome};
    struct wb_cli_id id = {0};
    wb_json *runs = NULL;
    int rc = 0;

    if (o->campaign)
        rc = wb_cli_find(s, o->campaign, &id, err);
    if (rc == 0 && id.run)
        rc = wb_fail(err, WB_INVALID, "'%s' is a run, not a campaign", o->campaign);
    f.campaign = id.campaign;
    if (rc == 0)
        rc = wb_store_list(s, &f, &runs, err);
    wb_cli_id_release(&id);
    if (rc < 0)
        return rc;
    *items = campaigns ? wb_cli_campaigns(runs) : wb_json_ref(runs);
    wb_json_free(runs);
    return 0;
}

static int list(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    static const char *const what[] = {"runs", "campaigns", "series", "findings", NULL};
    const struct options *o = options;
    bool campaigns = argc > 0 && !strcmp(argv[0], what[1]);
    int64_t limit = o->limit || cli->json || campaigns ? o->limit : SHOWN_RUNS;
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_JSON wb_json *kept = NULL;
    const char *next = NULL;
    int rc;

    if (argc > 0 && (!strcmp(argv[0], what[2]) || !strcmp(argv[0], what[3])))
        return wb_cli_list_history(cli, argv[0], o->limit);
    if (argc > 0 && !campaigns && strcmp(argv[0], what[0]) != 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(argv[0], what);

        (void)wb_fail(&err, WB_INVALID,
                      "cannot list '%s'%s; allowed: runs, campaigns, series, findings", argv[0],
                      hint);
        return wb_cli_fail(cli, &err);
    }
    rc = wb_cli_open_store(cli, &s, &err);
    if (rc == 0)
        rc = fetch(s, o, campaigns, &items, &err);
    wb_store_close(s);
    if (rc == 0)
        rc = cut(items, o, limit, &kept, &next, &err);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set(doc, "items", wb_json_ref(kept));
        wb_json_set_str(doc, "next", next);
        wb_cli_answer(cli, doc, "items");
    } else {
        print_text(cli, kept, campaigns, next);
    }
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_list = {
    .name = "list",
    .args = "[runs|campaigns|series|findings]",
    .summary = "list runs, campaigns, series or findings, newest first",
    .help =
        "Ids are shortened so far that they can still be told apart; every command takes the\n"
        "beginning of an id. 'ops' is the throughput of the first closed-loop phase, 'p99' is of\n"
        "the first open-loop one. Series are histories of one arm; findings are where they\n"
        "changed their level, the worst first.\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = list,
};
