/* Recorded runs: lists, summaries, documents, raw files. */
#include <stdlib.h>
#include <string.h>

#include "server/base/units.h"
#include "server/http/filters.h"

#define RAW_MAX (256u << 20)

/* A run id, or a prefix of one; answers itself, then NULL. Caller frees. */
static char *run_of(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    char *run = NULL;

    if (wb_store_resolve(c->store, q->args[0], &run, &err) < 0)
        wb_answer_error(q, a, &err);
    return run;
}

/* Which part of each item is asked for: "id,arm,headline,metrics.max.throughput". NULL is all. */
static wb_json *pick(const wb_json *run, const struct wb_strv *fields)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "id", wb_json_str_or(run, "id", NULL));
    for (size_t i = 0; i < fields->n; i++) {
        const char *dot = strchr(fields->v[i], '.');
        WB_AUTO_FREE char *top =
            wb_strndup(fields->v[i], dot ? (size_t)(dot - fields->v[i]) : strlen(fields->v[i]));
        const wb_json *outer = wb_json_get(run, top);
        const wb_json *inner = dot ? wb_json_get(outer, dot + 1) : outer;
        wb_json *into = wb_json_get(o, top);

        if (!inner)
            continue;
        if (dot && !into) {
            into = wb_json_object();
            wb_json_set(o, top, into);
        }
        wb_json_set(dot ? into : o, dot ? dot + 1 : top, wb_json_ref(inner));
    }
    return o;
}

static wb_json *pick_all(wb_json *items, const char *fields)
{
    struct wb_strv list = {0};
    wb_json *out;

    if (!fields)
        return items;
    for (const char *f = fields; *f; f += strspn(f, ",")) {
        size_t n = strcspn(f, ",");
        WB_AUTO_FREE char *name = wb_strndup(f, n);

        wb_strv_add(&list, name);
        f += n;
    }
    out = wb_json_array();
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *run = wb_json_at(items, i);

        /* What cannot be read is told whatever was asked for. */
        wb_json_push(out, wb_json_get(run, "damaged") ? wb_json_ref(run) : pick(run, &list));
    }
    wb_strv_release(&list);
    wb_json_free(items);
    return out;
}

static void list_runs(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_query ask;
    WB_AUTO_FREE char *cursor = NULL;
    WB_AUTO_FREE char *filter = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;
    char *next = NULL;

    if (!wb_runs_query(c, q, a, &ask, &filter, &cursor))
        return;
    if (wb_store_runs(c->store, &ask, &items, &next, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if (next) {
        char *own = wb_cursor_make(c->service, filter, next);

        free(next);
        next = own;
    }
    wb_answer_list(q, a, pick_all(items, wb_request_query(q, "fields")), next);
}

static void answer_document(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                            const char *name)
{
    WB_AUTO_FREE char *run = run_of(c, q, a);
    struct wb_run_place place = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;

    if (!run)
        return;
    if (wb_store_read(c->store, run, name, &doc, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if (!strcmp(name, "summary") && wb_store_where(c->store, run, &place, &err) == 0) {
        wb_json *record = wb_json_object();

        wb_json_set_str(record, "ref", place.ref);
        wb_json_set_str(record, "path", place.path);
        wb_json_set_str(record, "commit", place.commit);
        wb_json_set(doc, "record", record);
    }
    wb_run_place_release(&place);
    wb_answer_json(q, a, 200, doc);
}

static void get_run(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    answer_document(c, q, a, "summary");
}

static void get_document(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const names[] = {"study", "plan", "environment", "result", "events", NULL};

    for (const char *const *n = names; *n; n++)
        if (!strcmp(*n, q->args[1])) {
            answer_document(c, q, a, *n);
            return;
        }
    wb_answer_problem(q, a, 404, "not-found",
                      "a run has study, plan, environment, result, events and artifacts", NULL);
}

static void list_artifacts(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_FREE char *run = run_of(c, q, a);
    WB_AUTO_JSON wb_json *summary = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *items;
    const wb_json *raw;

    if (!run)
        return;
    if (wb_store_read(c->store, run, "summary", &summary, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    items = wb_json_array();
    raw = wb_json_get(summary, "raw");
    for (void *it = wb_json_first(raw); it; it = wb_json_next(raw, it)) {
        wb_json *o = wb_json_copy(wb_json_iter_value(it));

        wb_json_set_str(o, "name", wb_json_iter_key(it));
        wb_json_push(items, o);
    }
    wb_answer_list(q, a, items, NULL);
}

/* "bytes=FROM-TO", "bytes=FROM-", "bytes=-LAST" of n bytes. 1: a part; 0: the whole (also for what
 * is not understood, as RFC 9110 wants); -1: there is no such part. */
static int read_range(const char *text, size_t n, size_t *from, size_t *to)
{
    WB_AUTO_FREE char *copy = NULL;
    char *dash;
    int64_t a = 0, b = (int64_t)n - 1;

    if (!text || strncmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return 0;
    copy = wb_strdup(text + 6);
    dash = strchr(copy, '-');
    if (!dash)
        return 0;
    *dash = '\0';
    if ((*copy && wb_parse_int(copy, 0, INT64_MAX, &a, NULL) < 0) ||
        (dash[1] && wb_parse_int(dash + 1, 0, INT64_MAX, &b, NULL) < 0) || (!*copy && !dash[1]))
        return 0;
    if (!*copy) { /* the last b bytes */
        a = b < (int64_t)n ? (int64_t)n - b : 0;
        if (b == 0)
            return -1;
        b = (int64_t)n - 1;
    }
    if (b >= (int64_t)n)
        b = (int64_t)n - 1;
    if (a >= (int64_t)n)
        return -1;
    if (a > b)
        return 0;
    *from = (size_t)a;
    *to = (size_t)b;
    return 1;
}

/* Which type a browser may be told: only those that it shows as text. */
static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    if (dot && (!strcmp(dot, ".log") || !strcmp(dot, ".ndjson") || !strcmp(dot, ".txt")))
        return "text/plain; charset=utf-8";
    return dot && !strcmp(dot, ".json") ? "application/json" : "application/octet-stream";
}

static void answer_bytes(const struct wb_request *q, struct wb_answer *a, const char *name,
                         const struct wb_buf *data)
{
    WB_AUTO_FREE char *total = wb_strf("bytes */%zu", data->len);
    size_t from = 0, to = data->len ? data->len - 1 : 0;
    int part = read_range(q->headers[WB_H_RANGE], data->len, &from, &to);

    wb_answer_header(a, "Accept-Ranges", "bytes");
    if (part < 0) {
        wb_answer_header(a, "Content-Range", total);
        wb_answer_problem(q, a, 416, "range", "there are fewer bytes than that", NULL);
        return;
    }
    a->status = part ? 206 : 200;
    a->type = type_of(name);
    a->body = (struct wb_buf)WB_BUF_INIT(RAW_MAX);
    if (data->len)
        wb_buf_add(&a->body, data->data + from, to - from + 1);
    if (part) {
        WB_AUTO_FREE char *range = wb_strf("bytes %zu-%zu/%zu", from, to, data->len);

        wb_answer_header(a, "Content-Range", range);
    }
}

static void get_artifact(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_FREE char *run = run_of(c, q, a);
    struct wb_buf data = WB_BUF_INIT(RAW_MAX);
    struct wb_err err = WB_ERR_INIT;

    if (!run)
        return;
    if (wb_store_read_raw(c->store, run, q->args[1], &data, &err) < 0)
        wb_answer_error(q, a, &err);
    else
        answer_bytes(q, a, q->args[1], &data);
    wb_buf_release(&data);
}

static const struct wb_shape list_query[] = {
    WB_QUERY_RUNS,
    {"fields", WB_S_TEXT, .min = 1, .max = 1000,
     .help = "Only these keys of each run, with commas: arm,headline,recipe.version"},
    WB_QUERY_PAGE,
    {0},
};
static const struct wb_form run_row = {.name = "Run", .open = true};
static const struct wb_form run = {.name = "RunSummary", .make = wb_summary_schema};
static const struct wb_form document = {.name = "RunDocument", .open = true};
static const struct wb_shape artifact_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"bytes", WB_S_INT, WB_S_NEED, .min = 0, .max = 9007199254740992.0},
    {"sha256", WB_S_TEXT, WB_S_NEED, .min = 64, .max = 64},
    {0},
};
static const struct wb_form artifact = {.name = "Artifact", .rows = artifact_rows};

const struct wb_route wb_routes_runs[] = {
    {"GET", "/api/v1/runs", WB_SCOPE_READ, WB_ROUTE_LIST, list_runs, "listRuns",
     "Recorded runs, newest first unless sorted otherwise", list_query, .answer = &run_row,
     .status = 200},
    {"GET", "/api/v1/runs/{run}", WB_SCOPE_READ, 0, get_run, "getRun", "Summary of one run",
     .answer = &run, .status = 200},
    {"GET", "/api/v1/runs/{run}/artifacts", WB_SCOPE_READ, WB_ROUTE_LIST, list_artifacts,
     "listArtifacts", "Raw files of a run", .answer = &artifact, .status = 200},
    {"GET", "/api/v1/runs/{run}/artifacts/{name}", WB_SCOPE_READ,
     WB_ROUTE_RANGE | WB_ROUTE_ANY_TYPE, get_artifact, "getArtifact",
     "One raw file, whole or a range of it", .type = "*/*", .status = 200},
    {"GET", "/api/v1/runs/{run}/{document}", WB_SCOPE_READ, 0, get_document, "getRunDocument",
     "One document of the record: study, plan, environment, result or events", .answer = &document,
     .status = 200},
    {0},
};
