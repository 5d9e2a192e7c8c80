/*
 * `stats TOPIC [FILE...]`: plain numbers in, answers out. JSON or CSV, told by the content.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/analysis/csv.h"
#include "server/analysis/topics.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/cli/commands.h"

#define OUT_MAX (64u << 20)
#define COLUMNS_SHOWN 300 /* bytes */
#define FILES_MAX 1000

struct options {
    const char *column, *better, *threshold, *tag, *from, *to, *percentiles, *warm_up, *measured;
};

enum kind { TEXT, PERCENT, SECONDS, LIST };

/* Options that become keys of the document. */
static const struct {
    const char *name;
    size_t offset;
    const char *key;
    unsigned bit; /* WB_TO_* */
    enum kind kind;
} keys[] = {
    {"--column", offsetof(struct options, column), NULL, WB_TO_COLUMN, TEXT},
    {"--better", offsetof(struct options, better), "better", WB_TO_BETTER, TEXT},
    {"--threshold", offsetof(struct options, threshold), "threshold_percent", WB_TO_THRESHOLD,
     PERCENT},
    {"--tag", offsetof(struct options, tag), "tag", WB_TO_TAG, TEXT},
    {"--from", offsetof(struct options, from), "from_s", WB_TO_WINDOW, SECONDS},
    {"--to", offsetof(struct options, to), "to_s", WB_TO_WINDOW, SECONDS},
    {"--percentiles", offsetof(struct options, percentiles), "percentiles", WB_TO_PERCENTILES,
     LIST},
    {"--warm-up", offsetof(struct options, warm_up), "warm_up_s", WB_TO_WARM_UP, SECONDS},
    {"--for", offsetof(struct options, measured), "measured_s", WB_TO_FOR, SECONDS},
};

static const char *option(const struct options *o, size_t k)
{
    return *(const char *const *)(const void *)((const char *)o + keys[k].offset);
}

/* ---- reading ---- */

/* The texts of all files (standard input without one); the caller frees texts, also on failure. */
static int read_files(int argc, char **argv, struct wb_topic_file *files, char **texts,
                      struct wb_err *err)
{
    for (int i = 0; i == 0 || i < argc; i++) {
        const char *path = argc > 0 ? argv[i] : "-";
        size_t n = 0;
        int rc = strcmp(path, "-") == 0 ? wb_file_read_fd(STDIN_FILENO, "standard input",
                                                          WB_JSON_TEXT_MAX, &texts[i], &n, err)
                                        : wb_file_read(path, WB_JSON_TEXT_MAX, &texts[i], &n, err);
        if (rc < 0)
            return rc;
        files[i] = (struct wb_topic_file){.path = path, .text = texts[i], .n = n};
    }
    return 0;
}

static int list_of_percentiles(const char *text, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *list = wb_json_array();

    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        WB_AUTO_FREE char *one = wb_strndup(p, n);
        double v;
        if (wb_parse_percent(one, 0, 100, &v, err) < 0)
            return -err->code;
        wb_json_push(list, wb_json_real(v));
        p += n;
        if (*p == '\0')
            break;
    }
    *out = WB_STEAL(list);
    return 0;
}

static int option_value(size_t k, const char *text, wb_json **out, struct wb_err *err)
{
    double v = NAN;
    int rc = 0;

    if (keys[k].kind == TEXT)
        *out = wb_json_str(text);
    else if (keys[k].kind == LIST)
        rc = list_of_percentiles(text, out, err);
    else
        rc = keys[k].kind == PERCENT ? wb_parse_percent(text, 0, 1000, &v, err)
                                     : wb_parse_real(text, 0, 1e12, &v, err);
    if (rc == 0 && keys[k].kind != TEXT && keys[k].kind != LIST)
        *out = wb_json_real(v);
    return rc;
}

/* The options as keys of the document; those that the topic does not know are refused. */
static int add_options(const struct wb_topic *t, const struct options *o, wb_json *doc,
                       struct wb_err *err)
{
    for (size_t k = 0; k < WB_LEN(keys); k++) {
        wb_json *value = NULL;
        if (option(o, k) == NULL)
            continue;
        if ((t->options & keys[k].bit) == 0)
            return wb_fail(err, WB_INVALID, "%s takes no %s", t->name, keys[k].name);
        if (keys[k].key == NULL || wb_json_type(doc) != WB_JSON_OBJECT)
            continue;
        if (option_value(k, option(o, k), &value, err) < 0)
            return wb_wrap(err, "%s", keys[k].name);
        wb_json_set(doc, keys[k].key, value);
    }
    return 0;
}

/* Where in a table the value of a pointer stands, /COLUMN/ROW or /LIST/ROW/COLUMN; false when it
 * is not of one cell. */
static bool name_cell(const struct wb_topic_file *file, const wb_json *in, struct wb_err *err)
{
    WB_AUTO_FREE char *pointer = wb_strndup(err->root + 1, strcspn(err->root + 1, ":"));
    char *column = NULL;
    int64_t row = -1;
    size_t line;

    for (char *part = pointer, *end; part != NULL; part = end) {
        end = strchr(part, '/');
        if (end != NULL)
            *end++ = '\0';
        if (column == NULL && wb_json_get(in, part) != NULL)
            column = part;
        else if (row < 0 && wb_parse_int(part, 0, INT32_MAX, &row, NULL) < 0)
            row = -1;
    }
    line = column != NULL && row >= 0 ? wb_csv_line(file->text, file->n, (size_t)row) : 0;
    if (line > 0)
        WB_IGNORE(wb_wrap(err, "line %zu, column '%s'", line, column));
    return column != NULL;
}

/* What a table has, where the question needs something else: a person may have named it so. */
static void name_columns(const wb_json *in, struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(COLUMNS_SHOWN);

    for (void *it = wb_json_first(in); it != NULL; it = wb_json_next(in, it))
        wb_buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", wb_json_iter_key(it));
    WB_IGNORE(wb_wrap(err, "the columns are %s", names.failed ? "many" : wb_buf_str(&names)));
    wb_buf_release(&names);
}

/* File, line and column of what is wrong, as far as they are known. */
static void name_place(const struct wb_topic_file *file, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    bool columns = false;

    if (err->code == WB_INVALID && wb_topic_parse(file, &in, &columns, NULL) == 0 && columns &&
        (err->root[0] != '/' || !name_cell(file, in, err)) &&
        (strstr(err->root, "missing") != NULL || strstr(err->root, "needs") != NULL ||
         strstr(err->root, "must") != NULL))
        name_columns(in, err);
    WB_IGNORE(wb_wrap(err, "%s", strcmp(file->path, "-") == 0 ? "standard input" : file->path));
}

static int answer(const struct wb_topic *t, const struct options *o, int argc, char **argv,
                  wb_json **out, struct wb_err *err)
{
    size_t n = argc > 0 ? (size_t)argc : 1;
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_topic_file *files;
    char **texts;
    int rc;

    if (n > FILES_MAX)
        return wb_fail(err, WB_INVALID, "at most %d files are taken", FILES_MAX);
    files = wb_calloc(n, sizeof(*files));
    texts = wb_calloc(n, sizeof(*texts));
    rc = read_files(argc, argv, files, texts, err);
    if (rc == 0)
        rc = wb_topic_read(t, files, n, o->column, &doc, err);
    if (rc == 0)
        rc = add_options(t, o, doc, err);
    if (rc == 0)
        rc = t->answer(doc, out, err);
    if (rc < 0 && n == 1 && files[0].text != NULL)
        name_place(&files[0], err);
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
    free(files);
    return rc;
}

/* ---- answering ---- */

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
    wb_cli_answer(cli, doc, NULL);
    return WB_EXIT_USAGE;
}

static void list_topics(struct wb_buf *out)
{
    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        const char *line = t->input;
        wb_buf_addf(out, "%s: %s\n", t->name, t->summary);
        while (*line != '\0') {
            size_t n = strcspn(line, "\n");
            wb_buf_adds(out, "    ");
            wb_buf_add(out, line, n);
            wb_buf_addc(out, '\n');
            line += n + (line[n] == '\n');
        }
    }
}

static wb_json *option_names(unsigned options)
{
    wb_json *list = wb_json_array();

    for (size_t k = 0; k < WB_LEN(keys); k++)
        if (options & keys[k].bit)
            wb_json_push(list, wb_json_str(keys[k].name));
    return list;
}

/* {items: [{name, summary, input, options, files (most; null: any number)}], next,
 * analysis_version}. */
static void answer_topics(const struct wb_cli *cli)
{
    wb_json *doc = wb_json_object(), *items = wb_json_array();

    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        wb_json *o = wb_json_object();
        wb_json_set_str(o, "name", t->name);
        wb_json_set_str(o, "summary", t->summary);
        wb_json_set_str(o, "input", t->input);
        wb_json_set(o, "options", option_names(t->options));
        if (t->files > 0)
            wb_json_set_int(o, "files", (int64_t)t->files);
        else
            wb_json_set_reason(o, "files", "any number");
        wb_json_push(items, o);
    }
    wb_json_set(doc, "items", items);
    wb_json_set(doc, "next", wb_json_null());
    wb_json_set_int(doc, "analysis_version", WB_ANALYSIS_VERSION);
    wb_cli_answer(cli, doc, "items");
}

/* `stats topics`. */
static int show_topics(const struct wb_cli *cli)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);

    if (cli->json) {
        answer_topics(cli);
        return WB_EXIT_OK;
    }
    list_topics(&out);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

static int stats(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    const struct wb_topic *t = argc > 0 ? wb_topic_find(argv[0]) : NULL;
    wb_json *found = NULL;

    if (argc == 0 || strcmp(argv[0], "topics") == 0)
        return show_topics(cli);
    if (t == NULL) {
        WB_IGNORE(wb_topic_unknown(argv[0], &err)); /* always fails */
        return refuse(cli, argv[0], &err);
    }
    if (answer(t, opts, argc - 1, argv + 1, &found, &err) < 0)
        return refuse(cli, argv[0], &err);
    if (cli->json) {
        wb_cli_answer(cli, found, NULL);
        return WB_EXIT_OK;
    }
    t->print(found, cli->width, &out);
    wb_json_free(found);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

static const struct wb_opt stats_opts[] = {
    {"column", 0, WB_OPT_TEXT, offsetof(struct options, column), "NAME", 0, 0,
     "compare with two files: the column of each"},
    {"better", 0, WB_OPT_TEXT, offsetof(struct options, better), "higher|lower", 0, 0,
     "compare, changes: which direction is good"},
    {"threshold", 0, WB_OPT_TEXT, offsetof(struct options, threshold), "PERCENT", 0, 0,
     "compare, changes: changes below this do not matter (2%)"},
    {"tag", 0, WB_OPT_TEXT, offsetof(struct options, tag), "TAG", 0, 0,
     "histogram: only entries of this tag"},
    {"from", 0, WB_OPT_TEXT, offsetof(struct options, from), "S", 0, 0,
     "histogram: only intervals that begin at this second or later"},
    {"to", 0, WB_OPT_TEXT, offsetof(struct options, to), "S", 0, 0,
     "histogram: only intervals that begin before this second"},
    {"percentiles", 0, WB_OPT_TEXT, offsetof(struct options, percentiles), "P,P...", 0, 0,
     "histogram: which percentiles"},
    {"warm-up", 0, WB_OPT_TEXT, offsetof(struct options, warm_up), "S", 0, 0,
     "steady: discard this many seconds at the start"},
    {"for", 0, WB_OPT_TEXT, offsetof(struct options, measured), "S", 0, 0,
     "steady: only so many seconds after the warm-up"},
    {0},
};

const struct wb_command wb_cmd_stats = {
    .name = "stats",
    .args = "TOPIC [FILE...]",
    .summary = "answers from plain numbers, JSON or CSV",
    .help = "'stats topics' lists the topics and what each reads.\n"
            "Reads standard input without a FILE. CSV has a header whose columns are the keys.\n"
            "Exit code 2: the input is wrong; with --json the answer says where.\n",
    .opts = stats_opts,
    .opts_size = sizeof(struct options),
    .min_args = 0,
    .max_args = -1,
    .run = stats,
    .no_store = true,
};
