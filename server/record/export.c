#include "server/record/export.h"

#include <stdlib.h>
#include <string.h>

#include "server/record/csv.h"

#define PAGE_BYTES (64u << 20)

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
    struct wb_export *e;
    struct wb_strv factors; /* columns of their own */
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
    if (j->e->metrics) {
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
    if (j->e->document)
        wb_buf_adds(b, j->e->rows ? ",\n" : "");
    wb_json_line(row, b);
    if (!j->e->document)
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

    for (void *it = j->e->metrics ? wb_json_first(metrics) : NULL; it;
         it = wb_json_next(metrics, it), j->e->rows++) {
        if (j->e->csv)
            csv_metric(run, wb_json_iter_key(it), wb_json_iter_value(it), b);
        else
            json_metric(j, run, wb_json_iter_key(it), wb_json_iter_value(it), b);
    }
    if (j->e->metrics)
        return;
    if (j->e->csv)
        csv_run(j, run, b);
    else
        json_row(j, run, b);
    j->e->rows++;
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
    if (rc == 0)
        rc = j->e->write(j->e->arg, wb_buf_str(&b), b.len, err);
    wb_buf_release(&b);
    return rc;
}

/* All pages, oldest first, so that runs that come in meanwhile stand at the end. */
static int each_page(struct job *j, bool write, struct wb_err *err)
{
    WB_AUTO_FREE char *cursor = NULL;
    int rc;

    j->e->q.ascending = true;
    j->e->q.limit = WB_PAGE_MAX;
    do {
        WB_AUTO_JSON wb_json *items = NULL;
        char *next = NULL;

        j->e->q.cursor = cursor;
        rc = wb_store_runs(j->s, &j->e->q, &items, &next, err);
        for (size_t i = 0; rc == 0 && !write && i < wb_json_len(items); i++)
            note_factors(j, wb_json_at(items, i));
        if (rc == 0 && write)
            rc = write_page(j, items, err);
        free(cursor);
        cursor = next;
    } while (rc == 0 && cursor);
    return rc;
}

int wb_store_export(struct wb_store *s, struct wb_export *e, struct wb_err *err)
{
    static const char begin[] = "{\"items\": [", end[] = "],\n\"next\": null}\n";
    struct wb_buf head = WB_BUF_INIT(1u << 20);
    struct job job = {.s = s, .e = e};
    int rc = 0;

    if (e->csv && !e->metrics)
        rc = each_page(&job, false, err);
    if (e->csv)
        csv_head(&job, &head);
    else if (e->document)
        wb_buf_adds(&head, begin);
    if (rc == 0)
        rc = e->write(e->arg, wb_buf_str(&head), head.len, err);
    if (rc == 0)
        rc = each_page(&job, true, err);
    if (rc == 0 && e->document)
        rc = e->write(e->arg, end, sizeof(end) - 1, err);
    wb_buf_release(&head);
    wb_strv_release(&job.factors);
    return rc;
}
