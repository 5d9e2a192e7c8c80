/*
 * `stats TOPIC [FILE...]`: plain numbers in, answers out. JSON or CSV, told by the content.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/csv.h"
#include "server/base/file.h"
#include "server/base/problems.h"
#include "server/base/table.h"
#include "server/base/units.h"
#include "server/cli/commands.h"

#define OUT_MAX (64u << 20)

struct options {
    const char *column, *better, *threshold;
};

static const char *const topics[] = {"compare", "adjust", NULL};

/* ---- reading ---- */

static int read_stdin(char **text, size_t *n, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(WB_JSON_TEXT_MAX);
    char chunk[65536];
    size_t got;
    int rc;

    while (!b.failed && (got = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        wb_buf_add(&b, chunk, got);
    rc = ferror(stdin) ? wb_fail(err, WB_IO, "cannot read standard input")
                       : wb_buf_check(&b, "standard input", err);
    if (rc == 0) {
        *n = b.len;
        *text = b.len > 0 ? wb_buf_take(&b) : wb_strdup("");
    }
    wb_buf_release(&b);
    return rc;
}

/* One input as JSON; *columns says that it was CSV and holds {column: [values]}. */
static int read_input(const char *path, wb_json **doc, bool *columns, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0, at;
    int rc = strcmp(path, "-") == 0 ? read_stdin(&text, &n, err)
                                    : wb_file_read(path, WB_JSON_TEXT_MAX, &text, &n, err);

    if (rc < 0)
        return rc;
    at = strspn(text, " \t\r\n");
    *columns = n > 0 && text[at] != '{' && text[at] != '[';
    return *columns ? wb_csv_columns(text, n, doc, err) : wb_json_parse(text, n, doc, err);
}

/* The list of values of one file: a list, or the only list (or --column) of an object or CSV.
 * Owned. */
static int one_list(const wb_json *doc, const char *path, const char *column, wb_json **out,
                    struct wb_err *err)
{
    const wb_json *found = NULL;
    size_t lists = 0;

    if (wb_json_type(doc) == WB_JSON_ARRAY) {
        *out = wb_json_ref(doc);
        return 0;
    }
    for (void *it = wb_json_first(doc); it != NULL; it = wb_json_next(doc, it)) {
        bool named = column != NULL && strcmp(column, wb_json_iter_key(it)) == 0;
        if (wb_json_type(wb_json_iter_value(it)) != WB_JSON_ARRAY || (column != NULL && !named))
            continue;
        lists++;
        found = wb_json_iter_value(it);
    }
    if (lists == 0 && column != NULL)
        return wb_fail(err, WB_INVALID, "%s has no column '%s'", path, column);
    if (lists != 1)
        return wb_fail(err, WB_INVALID, "%s has %zu columns: name the one to compare with --column",
                       path, lists);
    *out = wb_json_ref(found);
    return 0;
}

/* Two files: base and new. */
static int pair_of_files(char **paths, const char *column, wb_json **out, struct wb_err *err)
{
    static const char *const sides[] = {"base", "new"};
    WB_AUTO_JSON wb_json *doc = wb_json_object();

    for (int i = 0; i < 2; i++) {
        WB_AUTO_JSON wb_json *in = NULL;
        wb_json *list = NULL;
        bool columns;
        if (read_input(paths[i], &in, &columns, err) < 0)
            return wb_wrap(err, "%s", paths[i]);
        if (one_list(in, paths[i], column, &list, err) < 0)
            return -err->code;
        wb_json_set(doc, sides[i], list);
    }
    *out = WB_STEAL(doc);
    return 0;
}

static int compare_input(int argc, char **argv, const struct options *o, wb_json **out,
                         struct wb_err *err)
{
    double threshold = NAN;
    wb_json *doc = NULL;
    bool columns = false;

    if (o->threshold != NULL && wb_parse_percent(o->threshold, 0, 1000, &threshold, err) < 0)
        return wb_wrap(err, "--threshold");
    if (argc > 2)
        return wb_fail(err, WB_INVALID, "compare takes one file, or two: base and new");
    if (argc == 2 ? pair_of_files(argv, o->column, &doc, err) < 0
                  : read_input(argc > 0 ? argv[0] : "-", &doc, &columns, err) < 0)
        return -err->code;
    if (columns) {
        wb_json *question = wb_csv_compare(doc);
        wb_json_free(doc);
        doc = question;
    }
    if (wb_json_type(doc) == WB_JSON_OBJECT && o->better != NULL)
        wb_json_set_str(doc, "better", o->better);
    if (wb_json_type(doc) == WB_JSON_OBJECT && !isnan(threshold))
        wb_json_set_real(doc, "threshold_percent", threshold);
    *out = doc;
    return 0;
}

/* ---- answering ---- */

static int answer_compare(int argc, char **argv, const struct options *o, wb_json **out,
                          struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;

    if (compare_input(argc, argv, o, &doc, err) < 0)
        return -err->code;
    return wb_stats_compare(doc, out, err);
}

static int answer_adjust(int argc, char **argv, const struct options *o, wb_json **out,
                         struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    bool columns;

    if (o->column != NULL || o->better != NULL || o->threshold != NULL)
        return wb_fail(err, WB_INVALID, "adjust takes none of --column, --better, --threshold");
    if (argc > 1)
        return wb_fail(err, WB_INVALID, "adjust takes one file");
    if (read_input(argc > 0 ? argv[0] : "-", &doc, &columns, err) < 0)
        return -err->code;
    return wb_stats_adjust(doc, out, err);
}

static void print_adjust(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *q = wb_json_get(answer, "q"), *rejected = wb_json_get(answer, "rejected");
    struct wb_table *t = wb_table_new();
    size_t next = 0;

    wb_table_column(t, "row", WB_RIGHT);
    wb_table_column(t, "q", WB_RIGHT);
    wb_table_column(t, "finding", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(q); i++) {
        bool hit = next < wb_json_len(rejected) &&
                   wb_json_integer(wb_json_at(rejected, next)) == (int64_t)i;
        next += hit;
        wb_table_row(t);
        wb_table_cell(t, "%zu", i);
        if (wb_json_is_number(wb_json_at(q, i)))
            wb_table_cell(t, "%.6g", wb_json_number(wb_json_at(q, i), 0));
        else
            wb_table_cell(t, "-");
        wb_table_cell(t, "%s", hit ? "yes" : "no");
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}

/* {"error": {"code", "message", "pointer" or "line"}} on stdout with --json: input is data, and
 * other programs want to know which part of it was wrong. */
static int refuse(const struct wb_cli *cli, const char *topic, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];
    wb_json *doc, *e;
    const char *colon = strstr(err->root, ": ");
    int line = 0;

    if (err->code != WB_INVALID && err->code != WB_LIMIT)
        return wb_cli_fail(cli, err);
    if (!cli->json) {
        (void)fprintf(stderr, "weighbridge: stats %s: %s\n", topic,
                      wb_err_text(err, text, sizeof(text)));
        return WB_EXIT_USAGE;
    }
    doc = wb_json_object();
    e = wb_json_object();
    wb_json_set_str(e, "code", wb_code_name(err->code));
    wb_json_set_str(e, "message", wb_err_text(err, text, sizeof(text)));
    if (strncmp(err->root, "line ", 5) == 0)
        line = (int)strtol(err->root + 5, NULL, 10);
    if (line > 0)
        wb_json_set_int(e, "line", line);
    else if (err->root[0] == '/' && colon != NULL)
        wb_json_set(e, "pointer", wb_json_strn(err->root, (size_t)(colon - err->root)));
    else
        wb_json_set_str(e, "pointer", "");
    wb_json_set(doc, "error", e);
    wb_cli_print_json(doc);
    return WB_EXIT_USAGE;
}

static int stats(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct options *o = opts;
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    bool compare = strcmp(argv[0], "compare") == 0;
    wb_json *answer = NULL;
    int rc;

    if (compare) {
        rc = answer_compare(argc - 1, argv + 1, o, &answer, &err);
    } else if (strcmp(argv[0], "adjust") == 0) {
        rc = answer_adjust(argc - 1, argv + 1, o, &answer, &err);
    } else {
        WB_AUTO_FREE char *hint = wb_did_you_mean(argv[0], topics);
        rc = wb_fail(&err, WB_INVALID, "there is no topic '%s'%s; there are compare and adjust",
                     argv[0], hint);
    }
    if (rc < 0)
        return refuse(cli, argv[0], &err);
    if (cli->json) {
        wb_cli_print_json(answer);
        return WB_EXIT_OK;
    }
    if (compare)
        wb_stats_compare_print(answer, cli->width, &out);
    else
        print_adjust(answer, cli->width, &out);
    wb_json_free(answer);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

static const struct wb_opt stats_opts[] = {
    {"column", 0, WB_OPT_TEXT, offsetof(struct options, column), "NAME", 0, 0,
     "compare with two files: the column of each"},
    {"better", 0, WB_OPT_TEXT, offsetof(struct options, better), "higher|lower", 0, 0,
     "compare: which direction is good"},
    {"threshold", 0, WB_OPT_TEXT, offsetof(struct options, threshold), "PERCENT", 0, 0,
     "compare: changes below this do not matter (2%)"},
    {NULL},
};

const struct wb_command wb_cmd_stats = {
    .name = "stats",
    .args = "TOPIC [FILE...]",
    .summary = "answers from plain numbers, JSON or CSV",
    .help = "Topics:\n"
            "  compare   two sets of runs: {\"base\":[..], \"new\":[..], \"better\":\"higher\"}, "
            "pairs\n"
            "            in rounds_base and rounds_new, several in rows; or two files\n"
            "  adjust    the false discovery rate of several tests: {\"p\":[..]}\n"
            "Reads standard input without a FILE. CSV has a header whose columns are the keys.\n"
            "Exit code 2: the input is wrong; with --json the answer says where.\n",
    .opts = stats_opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = -1,
    .run = stats,
};
