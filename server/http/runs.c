/* Recorded runs: lists, summaries, documents, raw files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/units.h"
#include "server/http/filters.h"
#include "server/http/spool.h"
#include "server/http/timeline.h"

/* A run id, or a prefix of one; answers itself, then NULL. Caller frees. */
static char *run_of(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    char *run = NULL;

    if (!wb_safe_name(q->args[0]))
        wb_answer_problem(q, a, 404, "not-found", "that is no id of a run", NULL);
    else if (wb_store_resolve(c->store, q->args[0], &run, &err) < 0)
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

/* Which type a browser may be told: only those that it shows as text. */
static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    if (dot && (!strcmp(dot, ".log") || !strcmp(dot, ".ndjson") || !strcmp(dot, ".txt")))
        return "text/plain; charset=utf-8";
    return dot && !strcmp(dot, ".json") ? "application/json" : "application/octet-stream";
}

/* What the summary says of a raw file; answers itself, then NULL. *summary is owned. */
static const wb_json *facts_of(struct wb_context *c, const struct wb_request *q,
                               struct wb_answer *a, const char *run, const char *name,
                               wb_json **summary)
{
    struct wb_err err = WB_ERR_INIT;
    const wb_json *facts;

    if (wb_store_read(c->store, run, "summary", summary, &err) < 0) {
        wb_answer_error(q, a, &err);
        return NULL;
    }
    facts = wb_json_get(wb_json_get(*summary, "raw"), name);
    if (!facts)
        wb_answer_problem(q, a, 404, "not-found",
                          "the run has no raw file of that name: GET .../artifacts lists them",
                          NULL);
    return facts;
}

/* The range that is asked for, unless the file was changed since the part that the client has. */
static const char *range_of(const struct wb_request *q, const char *tag)
{
    const char *had = q->headers[WB_H_IF_RANGE];

    return !had || !strcmp(had, tag) ? q->headers[WB_H_RANGE] : NULL;
}

static void answer_file(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const char *run, const wb_json *facts)
{
    const char *name = q->args[1], *sha = wb_json_str_or(facts, "sha256", "");
    const int64_t bytes = wb_json_int_or(facts, "bytes", 0);
    WB_AUTO_FREE char *dir = wb_strf("%s/" WB_SPOOL_FOLDER, c->service->state_dir);
    WB_AUTO_FREE char *tag = wb_strf("\"%.32s\"", sha);
    struct wb_err err = WB_ERR_INIT;
    int64_t from = 0, to = bytes - 1;
    int part = wb_range_read(range_of(q, tag), bytes, &from, &to), fd = -1;

    wb_answer_header(a, "Accept-Ranges", "bytes");
    if (part < 0) {
        WB_AUTO_FREE char *total = wb_strf("bytes */%lld", (long long)bytes);

        wb_answer_header(a, "Content-Range", total);
        wb_answer_problem(q, a, 416, "range", "there are fewer bytes than that", NULL);
        return;
    }
    a->status = part ? 206 : 200;
    a->type = type_of(name);
    if (wb_answer_tag(q, a, tag))
        return;
    if (wb_spool_open(c->store, dir, run, name, sha, &fd, &err) < 0) {
        if (err.code == WB_NOT_FOUND)
            wb_answer_problem(q, a, 410, "raw-pruned", err.root, NULL);
        else
            wb_answer_error(q, a, &err);
        return;
    }
    a->has_file = true;
    a->fd = fd;
    a->file_from = (uint64_t)from;
    a->file_bytes = (uint64_t)(to - from + 1);
    if (part) {
        WB_AUTO_FREE char *range =
            wb_strf("bytes %lld-%lld/%lld", (long long)from, (long long)to, (long long)bytes);

        wb_answer_header(a, "Content-Range", range);
    }
}

static void get_artifact(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_FREE char *run = run_of(c, q, a);
    WB_AUTO_JSON wb_json *summary = NULL;
    const wb_json *facts = run ? facts_of(c, q, a, run, q->args[1], &summary) : NULL;

    if (facts)
        answer_file(c, q, a, run, facts);
}

/* ---- what was measured over the time ---- */

#define TIMELINE_RAW_MAX (64u << 20) /* bytes of one raw file that is read for it */

/* Adds what a raw file of the run tells. *pruned: it is no longer there. */
static int add_signals(struct wb_context *c, const char *run, const char *file,
                       struct wb_signals *s, bool *pruned, struct wb_err *err)
{
    WB_AUTO_FREE char *load = wb_timeline_phase(file, "load-", ".ndjson");
    WB_AUTO_FREE char *samples = wb_timeline_phase(file, "samples-", ".json");
    struct wb_buf text = WB_BUF_INIT(TIMELINE_RAW_MAX);
    struct wb_err why = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *doc = NULL;
    int rc;

    if (!load && !samples)
        return 0;
    rc = wb_store_read_raw(c->store, run, file, &text, &why);
    if (rc == -WB_NOT_FOUND) {
        *pruned = true;
        rc = 0;
    } else if (rc < 0) {
        *err = why;
    } else if (load) {
        wb_signals_of_load(s, load, file, wb_buf_str(&text), text.len);
    } else {
        rc = wb_json_parse(wb_buf_str(&text), text.len, &doc, err);
        if (rc == 0)
            wb_signals_of_samples(s, samples, file, doc);
    }
    wb_buf_release(&text);
    return rc;
}

static bool is_asked_for(const char *list, const char *name)
{
    const size_t n = strlen(name);

    for (const char *s = list; s && *s; s += strspn(s, ",")) {
        const size_t k = strcspn(s, ",");

        if (k == n && !strncmp(s, name, n))
            return true;
        s += k;
    }
    return !list;
}

static wb_json *signal_json(const struct wb_signal *s, double from, double to, size_t width)
{
    wb_json *o = wb_json_object(), *t = wb_json_array(), *v = wb_json_array();
    struct wb_trace few = {0};

    wb_trace_reduce(&s->points, from, to, width, &few);
    for (size_t i = 0; i < few.n; i++) {
        wb_json_push(t, wb_json_real(few.t[i]));
        wb_json_push(v, wb_json_real(few.v[i]));
    }
    wb_trace_release(&few);
    wb_json_set_str(o, "name", s->name);
    wb_json_set_str(o, "unit", s->unit);
    wb_json_set_str(o, "source", s->source);
    wb_json_set_int(o, "raw_points", (int64_t)s->points.n);
    wb_json_set(o, "t_s", t);
    wb_json_set(o, "v", v);
    return o;
}

/* The time that all signals span, where the request does not say. */
static void find_span(const struct wb_signals *s, double *from, double *to)
{
    double first = INFINITY, last = -INFINITY;

    for (size_t i = 0; i < s->n; i++) {
        const struct wb_trace *p = &s->v[i].points;

        first = fmin(first, p->t[0]);
        last = fmax(last, p->t[p->n - 1]);
    }
    *from = isnan(*from) ? first : *from;
    *to = isnan(*to) ? last : *to;
}

static double query_real(const struct wb_request *q, const char *key)
{
    const char *text = wb_request_query(q, key);
    double v = NAN;

    return text && wb_parse_real(text, -1e9, 1e9, &v, NULL) == 0 ? v : NAN;
}

static void answer_timeline(const struct wb_request *q, struct wb_answer *a, const char *run,
                            const struct wb_signals *s, bool pruned)
{
    const char *asked = wb_request_query(q, "signals");
    double from = query_real(q, "from"), to = query_real(q, "to");
    wb_json *o = wb_json_object(), *list = wb_json_array();
    int64_t width = 1000;

    WB_IGNORE(wb_request_int(q, "width", 1, WB_TIMELINE_WIDTH_MAX, 1000, &width, NULL));
    find_span(s, &from, &to);
    for (size_t i = 0; i < s->n; i++)
        if (is_asked_for(asked, s->v[i].name))
            wb_json_push(list, signal_json(&s->v[i], from, to, (size_t)width));
    wb_json_set_str(o, "run", run);
    wb_json_set_int(o, "width", width);
    wb_json_set_real(o, "from_s", from);
    wb_json_set_real(o, "to_s", to);
    wb_json_set_bool(o, "pruned", pruned);
    wb_json_set(o, "series", list);
    wb_answer_json(q, a, 200, o);
}

static void get_timeline(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_FREE char *run = run_of(c, q, a);
    WB_AUTO_JSON wb_json *summary = NULL;
    struct wb_signals s = {0};
    struct wb_err err = WB_ERR_INIT;
    bool pruned = false;
    const wb_json *raw;
    int rc;

    if (!run)
        return;
    rc = wb_store_read(c->store, run, "summary", &summary, &err);
    raw = wb_json_get(summary, "raw");
    for (void *it = wb_json_first(raw); rc == 0 && it; it = wb_json_next(raw, it))
        rc = add_signals(c, run, wb_json_iter_key(it), &s, &pruned, &err);
    if (rc < 0)
        wb_answer_error(q, a, &err);
    else
        answer_timeline(q, a, run, &s, pruned);
    wb_signals_release(&s);
}

static const struct wb_shape timeline_query[] = {
    {"signals", WB_S_TEXT, .min = 1, .max = 2000, .help = "Names with commas; all when left out"},
    {"from", WB_S_REAL, .min = -1e9, .max = 1e9, .help = "Seconds since the phase began"},
    {"to", WB_S_REAL, .min = -1e9, .max = 1e9},
    {"width", WB_S_INT, .min = 1, .max = WB_TIMELINE_WIDTH_MAX,
     .help = "Pixels; 1000 unless given"},
    {0},
};
static const struct wb_shape signal_rows[] = {
    {"name", WB_S_TEXT, WB_S_NEED, .help = "<phase>.<what>"},
    {"unit", WB_S_TEXT, .flags = WB_S_NEED},
    {"source", WB_S_TEXT, WB_S_NEED, .help = "The artifact with all points"},
    {"raw_points", WB_S_INT, WB_S_NEED, .help = "How many there are before the reduction"},
    {"t_s", WB_S_REAL, WB_S_NEED | WB_S_LIST, .help = "Seconds since the phase began"},
    {"v", WB_S_REAL, WB_S_NEED | WB_S_LIST | WB_S_HOLES, .help = "null: no value"},
    {0},
};
static const struct wb_form signal_form = {.name = "Signal", .rows = signal_rows};
static const struct wb_shape timeline_rows[] = {
    {"run", WB_S_TEXT, .flags = WB_S_NEED},
    {"width", WB_S_INT, .flags = WB_S_NEED},
    {"from_s", WB_S_REAL, .flags = WB_S_NEED | WB_S_NULL},
    {"to_s", WB_S_REAL, .flags = WB_S_NEED | WB_S_NULL},
    {"pruned", WB_S_BOOL, WB_S_NEED, .help = "Raw data of the run is no longer there"},
    {"series", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &signal_form},
    {0},
};
static const struct wb_form timeline_form = {.name = "Timeline", .rows = timeline_rows};

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
    {"GET", "/api/v1/runs/{run}/timeline", WB_SCOPE_READ, 0, get_timeline, "getTimeline",
     "What was measured over the time, reduced to so many pixels; spikes are kept", timeline_query,
     .answer = &timeline_form, .status = 200},
    {"GET", "/api/v1/runs/{run}/{document}", WB_SCOPE_READ, 0, get_document, "getRunDocument",
     "One document of the record: study, plan, environment, result or events", .answer = &document,
     .status = 200},
    {0},
};
