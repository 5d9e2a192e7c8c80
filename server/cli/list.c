#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/problems.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/filters.h"
#include "server/cli/history.h"
#include "server/cli/list_hosts.h"
#include "server/cli/records.h"
#include "server/cli/remote_look.h"
#include "server/record/annotate.h"

struct options {
    struct wb_cli_filters filters; /* first: WB_FILTER_OPTS */
    const char *sort, *from;
    int64_t limit;
};
static const struct wb_opt opts[] = {
    WB_FILTER_OPTS,
    {"sort", 's', WB_OPT_TEXT, offsetof(struct options, sort), "[-]KEY", 0, 0,
     "runs by started, throughput or p99; with a minus the greatest first (-started)"},
    {"limit", 'n', WB_OPT_INT, offsetof(struct options, limit), "N", 1, WB_PAGE_MAX,
     "at most N (50; --ndjson gives all)"},
    {"from", 0, WB_OPT_TEXT, offsetof(struct options, from), "CURSOR", 0, 0,
     "go on where a list ended: what it called 'next'"},
    {0},
};

enum what { RUNS, CAMPAIGNS, SERIES, FINDINGS, ANNOTATIONS, HOSTS };
static const char *const whats[] = {"runs",        "campaigns", "series", "findings",
                                    "annotations", "hosts",     NULL};

static int read_sort(const char *text, struct wb_query *q, struct wb_err *err)
{
    static const char *const keys[] = {"started", "throughput", "p99", NULL};
    bool falling = *text == '-';
    WB_AUTO_FREE char *hint = NULL;

    for (int i = 0; keys[i]; i++) {
        if (strcmp(keys[i], text + falling) != 0)
            continue;
        q->order = (enum wb_order)i;
        q->ascending = !falling;
        return 0;
    }
    hint = wb_did_you_mean(text + falling, keys);
    return wb_fail(err, WB_INVALID,
                   "--sort: '%s' is no key%s; allowed: started, throughput, p99, with a minus the "
                   "greatest first",
                   text, hint);
}

/* ---- tables ---- */

static void print_campaigns(const struct wb_cli *cli, const wb_json *list, struct wb_buf *out)
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
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

/* The last of the builds that a series lists. */
static const wb_json *newest_build(const wb_json *series)
{
    const wb_json *list = wb_json_get(series, "subjects");

    return wb_json_at(list, wb_json_len(list) - 1);
}

static void print_series(const struct wb_cli *cli, const wb_json *list, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();
    bool changed = false;

    wb_table_column(t, "series", WB_RIGHT);
    wb_table_column(t, "study", WB_LEFT);
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "recipe", WB_LEFT);
    wb_table_column(t, "build", WB_LEFT);
    wb_table_column(t, "nights", WB_RIGHT);
    wb_table_column(t, "newest", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *s = wb_json_at(list, i);
        bool other = wb_json_bool_or(s, "digest_changed", false);
        struct wb_buf when = WB_BUF_INIT(64);

        changed |= other;
        wb_cli_when(wb_json_str_or(s, "last_at", ""), &when);
        wb_table_row(t);
        wb_table_cell(t, "%.16s", wb_json_str_or(s, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(s, "study", "-"));
        wb_table_cell(t, "%s", wb_json_str_or(s, "arm", "-"));
        wb_table_cell(t, "%s %s%s", wb_json_str_or(s, "recipe", "-"),
                      wb_json_str_or(s, "version", ""), other ? "*" : "");
        wb_table_tint(t, other ? WB_CAUTION : WB_PLAIN);
        wb_table_cell(t, "%.7s", wb_json_str_or(newest_build(s), "commit", "-"));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(s, "campaigns", 0));
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_buf_release(&when);
    }
    wb_table_color(t, cli->color);
    wb_table_print(t, cli->width, out);
    if (changed)
        wb_buf_adds(out,
                    "* this version, or one commit of it, stood there with more than one digest\n");
    wb_table_free(t);
}

static void print_annotations(const struct wb_cli *cli, const wb_json *list, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "annotation", WB_RIGHT);
    wb_table_column(t, "type", WB_LEFT);
    wb_table_column(t, "of", WB_LEFT);
    wb_table_column(t, "who", WB_LEFT);
    wb_table_column(t, "text", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *a = wb_json_at(list, i);

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(a, "annotation", "?"));
        wb_table_cell(t, "%s%s", wb_json_str_or(a, "type", "?"),
                      wb_json_get(a, "withdrawn_by") ? " (withdrawn)" : "");
        wb_table_cell(t, "%s", wb_json_str_or(a, "id", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(a, "who", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(a, "text", ""));
    }
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

static void print_text(const struct wb_cli *cli, enum what what, const wb_json *items,
                       const char *next)
{
    static const char *const hints[] = {[RUNS] = "'weighbridge show RUN' tells all of one",
                                        [CAMPAIGNS] = "'weighbridge show CAMPAIGN' lists its runs",
                                        [SERIES] =
                                            "'weighbridge trend SERIES' shows the history of one",
                                        [ANNOTATIONS] = "'weighbridge annotate ann_... withdraw' "
                                                        "takes one back"};
    struct wb_buf out = WB_BUF_INIT(64u << 20);

    if (wb_json_len(items) == 0)
        (void)fprintf(stderr, "no %s\n", whats[what]);
    else if (what == CAMPAIGNS)
        print_campaigns(cli, items, &out);
    else if (what == SERIES)
        print_series(cli, items, &out);
    else if (what == ANNOTATIONS)
        print_annotations(cli, items, &out);
    else
        wb_cli_run_table(cli, items, &out);
    wb_cli_print(&out);
    if (next)
        (void)fprintf(stderr, "there are more: --limit N shows N, --from %s goes on\n", next);
    else if (wb_json_len(items))
        (void)fprintf(stderr, "%s\n", hints[what]);
}

/* ---- */

static int page(struct wb_store *s, enum what what, const struct wb_query *q, wb_json **items,
                char **next, struct wb_err *err)
{
    switch (what) {
    case CAMPAIGNS:
        return wb_store_campaigns(s, q, items, next, err);
    case SERIES:
        return wb_store_series(s, q, items, next, err);
    case ANNOTATIONS:
        *next = NULL;
        return wb_store_annotations(s, NULL, false, items, err);
    default:
        return wb_store_runs(s, q, items, next, err);
    }
}

static void answer(const struct wb_cli *cli, enum what what, wb_json *items, const char *next)
{
    wb_json *doc;

    if (!cli->json) {
        print_text(cli, what, items, next);
        wb_json_free(items);
        return;
    }
    doc = wb_json_object();
    wb_json_set(doc, "items", items);
    wb_json_set_str(doc, "next", next);
    wb_cli_answer(cli, doc, "items");
}

/* One page, or with --ndjson and without --limit all of them. */
static int pages(const struct wb_cli *cli, struct wb_store *s, enum what what,
                 const struct options *o, struct wb_err *err)
{
    bool all = cli->ndjson && !o->limit;
    struct wb_cli_question ask = {0};
    WB_AUTO_FREE char *cursor = wb_strdup(o->from);
    int rc = wb_cli_question_make(s, &o->filters, &ask, err);

    if (rc == 0 && o->sort)
        rc = read_sort(o->sort, &ask.q, err);
    if (rc == 0 && o->sort && what != RUNS && ask.q.order != WB_BY_STARTED)
        rc = wb_fail(err, WB_INVALID, "--sort: only runs can be sorted by a figure");
    ask.q.limit = all ? WB_PAGE_MAX : (size_t)o->limit;
    if (what == HOSTS) {
        if (rc == 0 && (o->sort || o->from))
            rc = wb_fail(err, WB_INVALID,
                         "hosts are listed as a whole: leave --sort and --from out");
        if (rc == 0)
            rc = wb_cli_list_hosts(cli, s, &ask.q, err);
        wb_cli_question_release(&ask);
        return rc;
    }
    do {
        WB_AUTO_FREE char *next = NULL;
        wb_json *items = NULL;

        ask.q.cursor = cursor;
        if (rc == 0)
            rc = page(s, what, &ask.q, &items, &next, err);
        if (rc < 0)
            break;
        answer(cli, what, items, next);
        free(cursor);
        cursor = WB_STEAL(next);
    } while (all && cursor);
    wb_cli_question_release(&ask);
    return rc;
}

static bool is_filtered(const struct options *o)
{
    const struct wb_cli_filters none = {0};

    return memcmp(&o->filters, &none, sizeof(none)) != 0 || o->sort || o->from;
}

static int find_what(int argc, char **argv, enum what *out, struct wb_err *err)
{
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *words = NULL;
    int what = RUNS;

    while (argc && whats[what] && strcmp(whats[what], argv[0]) != 0)
        what++;
    *out = (enum what)what;
    if (whats[what])
        return 0;
    hint = wb_did_you_mean(argv[0], whats);
    words = wb_word_list(whats);
    return wb_fail(err, WB_INVALID, "cannot list '%s'%s; allowed: %s", argv[0], hint, words);
}

static int list(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    enum what what;
    int rc = find_what(argc, argv, &what, &err);

    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if ((what == FINDINGS || what == ANNOTATIONS) && is_filtered(o)) {
        (void)wb_fail(&err, WB_INVALID,
                      "%s are listed as a whole: leave filters, --sort and --from out", argv[0]);
        return wb_cli_fail(cli, &err);
    }
    if (what == FINDINGS)
        return wb_cli_list_findings(cli, o->limit);
    rc = wb_cli_open_store(cli, &s, &err);
    if (rc == 0)
        rc = pages(cli, s, what, o, &err);
    wb_store_close(s);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

/* Campaigns of a server: also those that wait or run. */
static void print_submitted(const struct wb_cli *cli, const wb_json *list, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "campaign", WB_RIGHT);
    wb_table_column(t, "study", WB_LEFT);
    wb_table_column(t, "state", WB_LEFT);
    wb_table_column(t, "arms", WB_RIGHT);
    wb_table_column(t, "rounds", WB_RIGHT);
    wb_table_column(t, "sent (UTC)", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *c = wb_json_at(list, i);
        struct wb_buf when = WB_BUF_INIT(64);

        wb_cli_when(wb_json_str_or(c, "submitted_at", ""), &when);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(c, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(c, "study", "-"));
        wb_table_cell(t, "%s", wb_json_str_or(c, "state", "-"));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "arms", 0));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(c, "rounds", 0));
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_buf_release(&when);
    }
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

/* One page, or with --ndjson and without --limit all of them, of a server. */
static int remote_pages(const struct wb_cli *cli, struct wb_remote *r, enum what what,
                        const struct options *o, struct wb_err *err)
{
    bool all = cli->ndjson && !o->limit,
         whole = what == HOSTS || what == ANNOTATIONS; /* no pages */
    WB_AUTO_FREE char *cursor = wb_strdup(o->from);
    struct wb_remote_list l = {.what = whats[what],
                               .filters = &o->filters,
                               .sort = o->sort,
                               .limit = all && !whole ? 500 : o->limit};
    int rc;

    do {
        struct wb_buf out = WB_BUF_INIT(64u << 20);
        char *next = NULL;
        wb_json *items = NULL;

        l.cursor = cursor;
        rc = wb_remote_list(r, &l, &items, &next, err);
        if (rc == 0 && what == CAMPAIGNS && !cli->json && wb_json_len(items)) {
            print_submitted(cli, items, &out);
            wb_cli_print(&out);
            wb_json_free(items);
            (void)fprintf(stderr, "%s\n",
                          next ? "there are more: --limit N shows N"
                               : "'weighbridge show CAMPAIGN' lists its runs");
        } else if (rc == 0 && what == HOSTS && !cli->json) {
            wb_cli_print_machines(cli, items);
            wb_json_free(items);
        } else if (rc == 0) {
            answer(cli, what, items, next);
        }
        wb_buf_release(&out);
        free(cursor);
        cursor = next;
    } while (rc == 0 && all && cursor);
    return rc;
}

static int remote(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_err err = WB_ERR_INIT;
    struct wb_remote *r = NULL;
    enum what what;
    int rc = find_what(argc, argv, &what, &err);

    if (rc == 0 && what == FINDINGS && !cli->json)
        rc = wb_fail(&err, WB_INVALID,
                     "the findings of a server come with --json or --ndjson, or on its page");
    if (rc == 0)
        rc = wb_remote_open(cli, &r, &err);
    if (rc == 0)
        rc = remote_pages(cli, r, what, o, &err);
    rc = rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_list = {
    .name = "list",
    .args = "[runs|campaigns|series|findings|annotations|hosts]",
    .summary = "list runs, campaigns, series, findings, annotations or hosts",
    .help =
        "Newest first. Ids are shortened so far that they can still be told apart; every command\n"
        "takes the beginning of an id. 'ops' is the throughput of the first closed-loop phase,\n"
        "'p99' is of the first open-loop one. Filters hold together; for campaigns and series\n"
        "they mean those that have such a run. Series are histories of one arm; findings are\n"
        "where they changed their level, the worst first. Hosts are those of the records, with\n"
        "what this one does now.\n",
    .examples = "  weighbridge list --outcome sut-error --since 7d\n"
                "  weighbridge list --arm 'docker x1' --sort -throughput -n 10\n"
                "  weighbridge list campaigns --json\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = list,
    .remote = remote,
};
