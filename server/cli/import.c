/* `import FROM`: records of another store, or results of other programs. */
#include "server/record/import.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/cancel.h"
#include "server/base/file.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"

struct options {
    const char *results;
};
static const struct wb_opt opts[] = {
    {"results", 0, WB_OPT_TEXT, offsetof(struct options, results), "SOURCE", 0, 0,
     "FROM is a file of results, a JSON object a line; SOURCE is a word for where they are from"},
    {0},
};

static int results(struct wb_store *s, const char *source, const char *path,
                   const struct wb_cancel *cancel, wb_json **report, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;
    int rc = wb_file_read(path, WB_RESULTS_MAX, &text, &n, err);

    return rc < 0 ? rc : wb_store_import_results(s, source, text, n, cancel, report, err);
}

static void print_refs(const struct wb_cli *cli, const wb_json *report, struct wb_buf *out)
{
    const wb_json *refs = wb_json_get(report, "refs");
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
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

static void print_results(const wb_json *report, struct wb_buf *out)
{
    const wb_json *refused = wb_json_get(report, "refused");

    wb_buf_addf(out, "%lld results recorded, %lld were here already, %zu refused\n",
                (long long)wb_json_int_or(report, "recorded", 0),
                (long long)wb_json_int_or(report, "already", 0), wb_json_len(refused));
    for (size_t i = 0; i < wb_json_len(refused); i++) {
        const wb_json *r = wb_json_at(refused, i);
        const char *reason = wb_json_str_or(r, "reason", "");

        wb_buf_addf(out, "line %lld: ", (long long)wb_json_int_or(r, "line", 0));
        wb_cli_plain(reason, strlen(reason), out);
        wb_buf_addc(out, '\n');
    }
}

static int import(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_buf out = WB_BUF_INIT(16u << 20);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    wb_json *report = NULL;
    bool refused = false;
    int rc = wb_store_open(cli->store_path, true, NULL, &s, &err);

    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0)
        rc = o->results ? results(s, o->results, argv[0], cancel, &report, &err)
                        : wb_store_import(s, argv[0], cancel, &report, &err);
    wb_store_close(s);
    wb_cancel_free(cancel);
    refused = wb_json_len(wb_json_get(report, "refused")) > 0;
    if (report && !cli->json) {
        if (o->results)
            print_results(report, &out);
        else
            print_refs(cli, report, &out);
        wb_cli_print(&out);
    }
    if (rc < 0)
        return wb_cli_fail_with(cli, &err, report);
    if (cli->json)
        wb_cli_answer(cli, WB_STEAL(report), NULL);
    wb_json_free(report);
    return refused ? WB_EXIT_USAGE : WB_EXIT_OK;
}

const struct wb_command wb_cmd_import = {
    .name = "import",
    .args = "STORE",
    .summary = "take over records of another store, or results of other programs",
    .help =
        "STORE is the path or URL of another store: the records of all its controllers come\n"
        "over, and what would lose something here is refused (exit 22). With --results it is a\n"
        "file of results, one JSON object a line {id, test, measured_at, metrics, ...}; a result\n"
        "is recorded once however often it is imported, so that what was interrupted goes on\n"
        "with the same command; lines that are refused are told (exit 2) and keep no others out. "
        "Makes the store where there is none.\n",
    .examples = "  weighbridge import /mnt/lab2/store.git\n"
                "  weighbridge import results.ndjson --results sysbench\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = import,
};
