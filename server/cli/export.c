/* `export runs|metrics`: records as CSV or lines of JSON, for other programs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/filters.h"
#include "server/cli/records.h"
#include "server/record/export.h"

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

/* What the command works with. */
struct job {
    struct wb_store *s;
    struct wb_cli_question ask;
    struct wb_export e;
    FILE *out;
};

static int write_out(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct job *j = arg;

    return fwrite(data, 1, n, j->out) == n
               ? 0
               : wb_fail_sys(err, errno, "the export could not be written");
}

static int do_export(struct job *j, struct wb_err *err)
{
    j->e.q = j->ask.q;
    j->e.write = write_out;
    j->e.arg = j;
    return wb_store_export(j->s, &j->e, err);
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
    j->e.metrics = !strcmp(what, whats[1]);
    j->e.csv = !o->format || !strcmp(o->format, formats[0]);
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
        j.e.csv = false;
    j.e.document = cli->json && !cli->ndjson;
    if (rc == 0)
        rc = wb_cli_open_store(cli, &j.s, &err);
    if (rc == 0)
        rc = wb_cli_question_make(j.s, &o->filters, &j.ask, &err);
    if (rc == 0)
        rc = file ? to_file(&j, o->output, &err) : do_export(&j, &err);
    if (rc == 0 && file && cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "file", o->output);
        wb_json_set_int(doc, "rows", (int64_t)j.e.rows);
        wb_cli_answer(cli, doc, NULL);
    } else if (rc == 0 && file) {
        (void)fprintf(stderr, "%s: %zu rows\n", o->output, j.e.rows);
    }
    wb_cli_question_release(&j.ask);
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
