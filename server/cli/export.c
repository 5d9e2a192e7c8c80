/* `export runs|metrics`: records as CSV or lines of JSON, for other programs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/csv.h"
#include "server/cli/filters.h"
#include "server/cli/records.h"

#define PAGE_BYTES (64u << 20)

struct options {
    struct wb_cli_filters filters; /* first: WB_FILTER_OPTS */
    const char *format, *output;
};
static const struct wb_opt opts[] = {
    WB_FILTER_OPTS,
    {"format", 'f', WB_OPT_TEXT, offsetof(struct options, format), "csv|ndjson", 0, 0,
     "csv (the default), or ndjson: a JSON document a line"},
    {"output", 'O', WB_OPT_TEXT, offsetof(struct options, output), "FILE", 0, 0,
     "into this file; - is standard output"},
    {0},
};

/* Columns of a run in CSV: where the value is in the summary. */
static const struct {
    const char *name, *path;
} run_columns[] = {
    {"run", "id"},
    {"campaign", "campaign"},
    {"study", "study"},
    {"arm", "arm"},
    {"round", "round"},
    {"attempt", "attempt"},
    {"outcome", "outcome"},
    {"validity", "validity"},
    {"teardown", "teardown"},
    {"started_at", "started_at"},
    {"ended_at", "ended_at"},
    {"seconds", "seconds"},
    {"recipe", "recipe.name"},
    {"version", "recipe.version"},
    {"recipe_revision", "recipe.revision"},
    {"recipe_digest", "recipe.digest"},
    {"series", "series_key"},
    {"host", "host.name"},
    {"host_class", "host.class"},
    {"controller", "controller"},
};

struct job {
    struct wb_store *s;
    struct wb_cli_question ask;
    bool csv, metrics;
    bool document;          /* rows are the items of one JSON document */
    struct wb_strv factors; /* columns of their own */
    FILE *out;
    size_t rows;
};

static void add_reasons(const wb_json *run, struct wb_buf *b)
{
    const wb_json *reasons = wb_json_get(run, "reasons");
    struct wb_buf text = WB_BUF_INIT(1u << 20);

    for (size_t i = 0; i < wb_json_len(reasons); i++)
        wb_buf_addf(&text, "%s%s", i ? "; " : "", wb_json_string(wb_json_at(reasons, i)));
    wb_csv_text(wb_buf_str(&text), b);
    wb_buf_release(&text);
}

static void add_headline(const wb_json *run, const char *which, struct wb_buf *b)
{
    const char *name = wb_json_str_or(wb_json_get(run, "headline"), which, NULL);
    const wb_json *m = name ? wb_json_get(wb_json_get(run, "metrics"), name) : NULL;

    wb_csv_cell(wb_json_get(m, "value"), b);
    wb_buf_addc(b, ',');
    wb_csv_cell(wb_json_get(m, "unit"), b);
}

static void csv_head(const struct job *j, struct wb_buf *b)
{
    if (j->metrics) {
        wb_buf_adds(b, "run,campaign,arm,round,outcome,validity,metric,value,unit,better\r\n");
        return;
    }
    for (size_t i = 0; i < WB_LEN(run_columns); i++)
        wb_buf_addf(b, "%s,", run_columns[i].name);
    wb_buf_adds(b, "throughput,throughput_unit,p99,p99_unit,reasons");
    for (size_t i = 0; i < j->factors.n; i++) {
        WB_AUTO_FREE char *name = wb_strf("factor.%s", j->factors.v[i]);

        wb_buf_addc(b, ',');
        wb_csv_text(name, b);
    }
    wb_buf_adds(b, "\r\n");
}

static void csv_run(const struct job *j, const wb_json *run, struct wb_buf *b)
{
    for (size_t i = 0; i < WB_LEN(run_columns); i++) {
        wb_csv_cell(wb_json_path(run, run_columns[i].path), b);
        wb_buf_addc(b, ',');
    }
    add_headline(run, "throughput", b);
    wb_buf_addc(b, ',');
    add_headline(run, "p99", b);
    wb_buf_addc(b, ',');
    add_reasons(run, b);
    for (size_t i = 0; i < j->factors.n; i++) {
        wb_buf_addc(b, ',');
        wb_csv_cell(wb_json_get(wb_json_get(run, "factors"), j->factors.v[i]), b);
    }
    wb_buf_adds(b, "\r\n");
}

static const char *const metric_keys[] = {"id", "campaign", "arm", "round", "outcome", "validity"};

static void csv_metric(const wb_json *run, const char *name, const wb_json *m, struct wb_buf *b)
{
    for (size_t i = 0; i < WB_LEN(metric_keys); i++) {
        wb_csv_cell(wb_json_get(run, metric_keys[i]), b);
        wb_buf_addc(b, ',');
    }
    wb_csv_text(name, b);
    wb_buf_addc(b, ',');
    wb_csv_cell(wb_json_get(m, "value"), b);
    wb_buf_addc(b, ',');
    wb_csv_cell(wb_json_get(m, "unit"), b);
    wb_buf_addc(b, ',');
    wb_csv_cell(wb_json_get(m, "better"), b);
    wb_buf_adds(b, "\r\n");
}

/* One row of JSON: a line, or an item of the document. Rows are counted afterwards. */
static void json_row(const struct job *j, const wb_json *row, struct wb_buf *b)
{
    if (j->document)
        wb_buf_adds(b, j->rows ? ",\n" : "");
    wb_json_line(row, b);
    if (!j->document)
        wb_buf_addc(b, '\n');
}

static void json_metric(const struct job *j, const wb_json *run, const char *name, const wb_json *m,
                        struct wb_buf *b)
{
    WB_AUTO_JSON wb_json *row = wb_json_object();

    for (size_t i = 0; i < WB_LEN(metric_keys); i++) {
        const wb_json *v = wb_json_get(run, metric_keys[i]);

        wb_json_set(row, i ? metric_keys[i] : "run", v ? wb_json_ref(v) : wb_json_null());
    }
    wb_json_set_str(row, "metric", name);
    for (void *it = wb_json_first(m); it; it = wb_json_next(m, it))
        wb_json_set(row, wb_json_iter_key(it), wb_json_ref(wb_json_iter_value(it)));
    json_row(j, row, b);
}

static void add_run(struct job *j, const wb_json *run, struct wb_buf *b)
{
    const wb_json *metrics = wb_json_get(run, "metrics");

    for (void *it = j->metrics ? wb_json_first(metrics) : NULL; it;
         it = wb_json_next(metrics, it), j->rows++) {
        if (j->csv)
            csv_metric(run, wb_json_iter_key(it), wb_json_iter_value(it), b);
        else
            json_metric(j, run, wb_json_iter_key(it), wb_json_iter_value(it), b);
    }
    if (j->metrics)
        return;
    if (j->csv)
        csv_run(j, run, b);
    else
        json_row(j, run, b);
    j->rows++;
}

static void note_factors(struct job *j, const wb_json *run)
{
    const wb_json *factors = wb_json_get(run, "factors");

    for (void *it = wb_json_first(factors); it; it = wb_json_next(factors, it)) {
        size_t i = 0;

        while (i < j->factors.n && strcmp(j->factors.v[i], wb_json_iter_key(it)) != 0)
            i++;
        if (i == j->factors.n)
            wb_strv_add(&j->factors, wb_json_iter_key(it));
    }
}

static int write_page(struct job *j, const wb_json *items, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(PAGE_BYTES);
    int rc;

    for (size_t i = 0; i < wb_json_len(items); i++)
        add_run(j, wb_json_at(items, i), &b);
    rc = wb_buf_check(&b, "a page of the export", err);
    if (rc == 0 && fwrite(wb_buf_str(&b), 1, b.len, j->out) != b.len)
        rc = wb_fail_sys(err, errno, "the export could not be written");
    wb_buf_release(&b);
    return rc;
}

/* All pages, oldest first, so that runs that come in meanwhile stand at the end. */
static int each_page(struct job *j, bool write, struct wb_err *err)
{
    WB_AUTO_FREE char *cursor = NULL;
    int rc;

    j->ask.q.ascending = true;
    j->ask.q.limit = WB_PAGE_MAX;
    do {
        WB_AUTO_JSON wb_json *items = NULL;
        char *next = NULL;

        j->ask.q.cursor = cursor;
        rc = wb_store_runs(j->s, &j->ask.q, &items, &next, err);
        for (size_t i = 0; rc == 0 && !write && i < wb_json_len(items); i++)
            note_factors(j, wb_json_at(items, i));
        if (rc == 0 && write)
            rc = write_page(j, items, err);
        free(cursor);
        cursor = next;
    } while (rc == 0 && cursor);
    return rc;
}

static int write_text(struct job *j, const char *text, size_t n, struct wb_err *err)
{
    return fwrite(text, 1, n, j->out) == n
               ? 0
               : wb_fail_sys(err, errno, "the export could not be written");
}

static int do_export(struct job *j, struct wb_err *err)
{
    static const char begin[] = "{\"items\": [", end[] = "],\n\"next\": null}\n";
    struct wb_buf head = WB_BUF_INIT(1u << 20);
    int rc = 0;

    if (j->csv && !j->metrics)
        rc = each_page(j, false, err);
    if (j->csv)
        csv_head(j, &head);
    else if (j->document)
        wb_buf_adds(&head, begin);
    if (rc == 0)
        rc = write_text(j, wb_buf_str(&head), head.len, err);
    wb_buf_release(&head);
    if (rc == 0)
        rc = each_page(j, true, err);
    return rc == 0 && j->document ? write_text(j, end, sizeof(end) - 1, err) : rc;
}

static int read_words(const struct options *o, const char *what, struct job *j, struct wb_err *err)
{
    static const char *const whats[] = {"runs", "metrics", NULL};
    static const char *const formats[] = {"csv", "ndjson", NULL};

    if (strcmp(what, whats[0]) != 0 && strcmp(what, whats[1]) != 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(what, whats);

        return wb_fail(err, WB_INVALID, "cannot export '%s'%s; allowed: runs, metrics", what, hint);
    }
    if (o->format && strcmp(o->format, formats[0]) != 0 && strcmp(o->format, formats[1]) != 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(o->format, formats);

        return wb_fail(err, WB_INVALID, "--format: '%s' is none%s; allowed: csv, ndjson", o->format,
                       hint);
    }
    j->metrics = !strcmp(what, whats[1]);
    j->csv = !o->format || !strcmp(o->format, formats[0]);
    return 0;
}

/* Writes into FILE under another name first: what stands there in the end is whole. */
static int to_file(struct job *j, const char *path, struct wb_err *err)
{
    WB_AUTO_FREE char *part = wb_strf("%s.part", path);
    int rc;

    j->out = fopen(part, "we");
    if (!j->out)
        return wb_fail_sys(err, errno, "cannot write %s", part);
    rc = do_export(j, err);
    if (fclose(j->out) != 0 && rc == 0)
        rc = wb_fail_sys(err, errno, "cannot write %s", part);
    if (rc == 0 && rename(part, path) < 0)
        rc = wb_fail_sys(err, errno, "cannot rename %s to %s", part, path);
    if (rc < 0)
        (void)unlink(part);
    return rc;
}

static int export(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    bool file = o->output && strcmp(o->output, "-") != 0;
    struct wb_err err = WB_ERR_INIT;
    struct job j = {.out = stdout};
    int rc = read_words(o, argc ? argv[0] : "runs", &j, &err);

    if (cli->json)
        j.csv = false;
    j.document = cli->json && !cli->ndjson;
    if (rc == 0)
        rc = wb_cli_open_store(cli, &j.s, &err);
    if (rc == 0)
        rc = wb_cli_question_make(j.s, &o->filters, &j.ask, &err);
    if (rc == 0)
        rc = file ? to_file(&j, o->output, &err) : do_export(&j, &err);
    if (rc == 0 && file && cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "file", o->output);
        wb_json_set_int(doc, "rows", (int64_t)j.rows);
        wb_cli_answer(cli, doc, NULL);
    } else if (rc == 0 && file) {
        (void)fprintf(stderr, "%s: %zu rows\n", o->output, j.rows);
    }
    wb_cli_question_release(&j.ask);
    wb_strv_release(&j.factors);
    wb_store_close(j.s);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

const struct wb_command wb_cmd_export = {
    .name = "export",
    .args = "[runs|metrics]",
    .summary = "records as CSV or lines of JSON, for other programs",
    .help =
        "Runs (the default) are a row each with their two headline figures and a column for\n"
        "each factor; metrics are a row for each figure of each run. Oldest first. CSV is that\n"
        "of RFC 4180: numbers stay numbers, and texts that a spreadsheet would take for a\n"
        "formula have an apostrophe in front. NDJSON has the stored text unchanged, and so has\n"
        "--json, which makes one document {items} of all rows.\n",
    .examples = "  weighbridge export runs -O runs.csv\n"
                "  weighbridge export metrics --campaign cmp_01JX8A --format ndjson\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = export,
};
