/* Series, their points and changes, and findings over REST. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/trend.h"
#include "server/base/clock.h"
#include "server/base/units.h"
#include "server/http/analyses.h"
#include "server/record/query.h"

#define API "/api/v1"
#define FINDINGS_AT_ONCE 2 /* answers over all series */

/* ---- pages ---- */

/* What decides what is in a list, for its cursors: the values of keys (NULL-ended). Owned. */
static char *filter_text(const struct wb_request *q, const char *list, const char *const *keys)
{
    struct wb_buf b = WB_BUF_INIT(8 * WB_HTTP_TARGET_MAX);

    wb_buf_adds(&b, list);
    for (; *keys != NULL; keys++) {
        const char *v = wb_request_query(q, *keys);
        if (v != NULL)
            wb_buf_addf(&b, "&%s=%zu:%s", *keys, strlen(v), v);
    }
    return wb_buf_take(&b);
}

struct page {
    char *filter, *after; /* owned; after: the last id of the page before, or NULL */
    int64_t limit;
};

/* Answers 400 itself, then false. Release also then. */
static bool read_page(const struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                      const char *list, const char *const *keys, struct page *out)
{
    const char *cursor = wb_request_query(q, "cursor");
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_request_int(q, "limit", 1, 500, 50, &out->limit, &err);

    out->filter = filter_text(q, list, keys);
    if (rc == 0 && cursor != NULL)
        rc = wb_cursor_read(c->service, out->filter, cursor, &out->after, &err);
    if (rc < 0)
        wb_answer_problem(q, a, 400, cursor ? "cursor-invalid" : "validation", err.root, NULL);
    return rc == 0;
}

static void page_release(struct page *p)
{
    free(p->filter);
    free(p->after);
}

/* One page of a list that is there as a whole, whose items are known by the text of `key`. A last
 * item that is no more makes the cursor useless, which is told. */
static void answer_page(const struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const wb_json *all, const char *key, const struct page *p)
{
    size_t n = wb_json_len(all), from = 0;
    wb_json *items;
    char *next = NULL;

    for (size_t i = 0; p->after != NULL && i < n && from == 0; i++)
        if (strcmp(wb_json_str_or(wb_json_at(all, i), key, ""), p->after) == 0)
            from = i + 1;
    if (p->after != NULL && from == 0) {
        wb_answer_problem(q, a, 400, "cursor-invalid",
                          "what the cursor names is no more in the list: begin without one", NULL);
        return;
    }
    items = wb_json_array();
    for (size_t i = from; i < n && (int64_t)wb_json_len(items) < p->limit; i++)
        wb_json_push(items, wb_json_ref(wb_json_at(all, i)));
    if (from + wb_json_len(items) < n)
        next = wb_cursor_make(c->service, p->filter,
                              wb_json_str_or(wb_json_at(items, wb_json_len(items) - 1), key, ""));
    wb_answer_list(q, a, items, next);
}

/* ---- series ---- */

static void list_series(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const keys[] = {"study", "arm", "recipe", "version", "host_class", NULL};
    struct page p = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;
    char *next = NULL;

    if (read_page(c, q, a, "series", keys, &p)) {
        const struct wb_query ask = {.study = wb_request_query(q, "study"),
                                     .arm = wb_request_query(q, "arm"),
                                     .recipe = wb_request_query(q, "recipe"),
                                     .version = wb_request_query(q, "version"),
                                     .host_class = wb_request_query(q, "host_class"),
                                     .cursor = p.after,
                                     .limit = (size_t)p.limit};
        if (wb_store_series(c->store, &ask, &items, &next, &err) < 0) {
            wb_answer_error(q, a, &err);
        } else {
            char *own = next ? wb_cursor_make(c->service, p.filter, next) : NULL;
            free(next);
            wb_answer_list(q, a, items, own);
        }
    }
    page_release(&p);
}

static void get_series(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_inquiry in = {.store = c->store};
    WB_AUTO_FREE char *key = NULL;
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_JSON wb_json *items = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_inquiry_series(&in, q->args[0], &key, &err);
    const struct wb_query ask = {.series = key, .limit = 1};

    if (rc == 0)
        rc = wb_store_series(c->store, &ask, &items, &next, &err);
    if (rc == 0 && wb_json_len(items) == 0)
        rc = wb_fail(&err, WB_NOT_FOUND, "there is no series '%s'", key);
    if (rc < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_json(q, a, 200, wb_json_copy(wb_json_at(items, 0)));
}

/* ---- histories ---- */

/* The question of a request; *since is owned. A day is its midnight. */
static int read_question(const struct wb_request *q, struct wb_history_question *out, char **since,
                         struct wb_err *err)
{
    const char *text = wb_request_query(q, "since"), *noisy = wb_request_query(q, "accept_noisy");
    const char *threshold = wb_request_query(q, "threshold");
    struct wb_buf at = WB_BUF_INIT(64);
    int64_t ms = 0;
    int rc = 0;

    *out = (struct wb_history_question){.metric = wb_request_query(q, "metric"),
                                        .min_percent = NAN,
                                        .accept_noisy = noisy && strcmp(noisy, "true") == 0};
    if (threshold != NULL)
        rc = wb_parse_real(threshold, 0, 1000, &out->min_percent, err);
    if (rc == 0 && text != NULL) {
        WB_AUTO_FREE char *midnight = wb_strf("%.16sT00:00:00Z", text);
        rc = wb_parse_time(strlen(text) == 10 ? midnight : text, &ms, err);
    }
    if (rc == 0 && text != NULL) {
        wb_format_time(ms, &at);
        *since = wb_buf_take(&at);
        out->since = *since;
    }
    return rc;
}

/* The history of the series in the address; NULL after answering. Owned. */
static wb_json *trend_of(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_history_question question;
    WB_AUTO_FREE char *since = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;
    int rc = read_question(q, &question, &since, &err);

    if (rc == 0)
        rc = wb_inquiry_trend(&in, q->args[0], &question, &out, &err);
    if (rc < 0)
        wb_http_inquiry_answer(q, a, &in, rc, NULL, &err);
    wb_cache_close(in.cache);
    return rc < 0 ? NULL : out;
}

static void get_trend(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *trend = trend_of(c, q, a);

    if (trend != NULL)
        wb_answer_json(q, a, 200, trend);
}

static void list_points(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const keys[] = {"metric", "since", "accept_noisy", "threshold", NULL};
    WB_AUTO_FREE char *list = wb_strf("points:%s", q->args[0]);
    struct page p = {0};

    if (read_page(c, q, a, list, keys, &p)) {
        WB_AUTO_JSON wb_json *trend = trend_of(c, q, a);
        if (trend != NULL)
            answer_page(c, q, a, wb_json_get(trend, "points"), "campaign", &p);
    }
    page_release(&p);
}

/* ---- findings ---- */

static bool is_asked(const struct wb_request *q, const char *key, const char *have)
{
    const char *want = wb_request_query(q, key);

    return want == NULL || (have != NULL && strcmp(want, have) == 0);
}

/* Whether one of its changes is of the study asked for. */
static bool of_study(const struct wb_request *q, const wb_json *finding)
{
    const wb_json *changes = wb_json_get(finding, "changes");

    if (wb_request_query(q, "study") == NULL)
        return true;
    for (size_t i = 0; i < wb_json_len(changes); i++)
        if (is_asked(q, "study", wb_json_str_or(wb_json_at(changes, i), "study", NULL)))
            return true;
    return false;
}

/* Over all series it can take long: the other threads go on answering. */
static int find(struct wb_context *c, const struct wb_inquiry *in, const char *series,
                const struct wb_history_question *question, wb_json **all, struct wb_err *err)
{
    int rc;

    if (series != NULL)
        return wb_inquiry_findings(in, series, question, all, err);
    if (atomic_fetch_add(&c->service->findings, 1) >= FINDINGS_AT_ONCE)
        rc = wb_fail(err, WB_TIMEOUT,
                     "findings of all series are being made already: ask again soon, or for one "
                     "series");
    else
        rc = wb_inquiry_findings(in, NULL, question, all, err);
    atomic_fetch_sub(&c->service->findings, 1);
    return rc;
}

static void list_findings(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const keys[] = {"state", "kind",         "study",     "series", "metric",
                                       "since", "accept_noisy", "threshold", NULL};
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_history_question question;
    WB_AUTO_FREE char *since = NULL;
    WB_AUTO_JSON wb_json *all = NULL;
    WB_AUTO_JSON wb_json *chosen = wb_json_array();
    struct wb_err err = WB_ERR_INIT;
    struct page p = {0};
    int rc = 0;

    if (!read_page(c, q, a, "findings", keys, &p)) {
        wb_cache_close(in.cache);
        page_release(&p);
        return;
    }
    rc = read_question(q, &question, &since, &err);
    if (rc == 0)
        rc = find(c, &in, wb_request_query(q, "series"), &question, &all, &err);
    for (size_t i = 0; i < wb_json_len(all); i++) {
        wb_json *f = wb_json_at(all, i);
        if (is_asked(q, "state", wb_json_str_or(f, "state", NULL)) &&
            is_asked(q, "kind", wb_json_str_or(f, "kind", NULL)) && of_study(q, f))
            wb_json_push(chosen, wb_json_ref(f));
    }
    if (rc < 0)
        wb_http_inquiry_answer(q, a, &in, rc, NULL, &err);
    else
        answer_page(c, q, a, chosen, "id", &p);
    wb_cache_close(in.cache);
    page_release(&p);
}

/* ---- the table ---- */

#define QUERY_HISTORY                                                                        \
    {"metric", WB_S_TEXT, .min = 1, .max = 200, .help = "The one that stands for the runs"}, \
        {"since", WB_S_TIME, .help = "Only runs that were started then or later"},           \
        {"accept_noisy", WB_S_BOOL, .help = "Count noisy runs, too"},                        \
    {                                                                                        \
        "threshold", WB_S_REAL, .min = 0, .max = 1000,                                       \
                                .help = "Percent below which nothing matters"                \
    }

static const char *const finding_states[] = {"open", "accepted", NULL};
static const char *const finding_kinds[] = {"regression", "improvement", "shift", NULL};
static const struct wb_shape series_query[] = {
    {"study", WB_S_TEXT, .min = 1, .max = 100},
    {"arm", WB_S_TEXT, .min = 1, .max = 400, .help = "The whole label"},
    {"recipe", WB_S_TEXT, .min = 1, .max = 100},
    {"version", WB_S_TEXT, .min = 1, .max = 100, .help = "Of the recipe"},
    {"host_class", WB_S_TEXT, .min = 1, .max = 200},
    WB_QUERY_PAGE,
    {0},
};
static const struct wb_shape trend_query[] = {QUERY_HISTORY, {0}};
static const struct wb_shape points_query[] = {QUERY_HISTORY, WB_QUERY_PAGE, {0}};
static const struct wb_shape findings_query[] = {
    {"state", WB_S_WORD, .words = finding_states},
    {"kind", WB_S_WORD, .words = finding_kinds},
    {"study", WB_S_TEXT, .min = 1, .max = 100},
    {"series", WB_S_TEXT, .min = 1, .max = 600, .help = "A key, CAMPAIGN/ARM, or a run"},
    QUERY_HISTORY,
    WB_QUERY_PAGE,
    {0},
};

static const struct wb_shape subject_rows[] = {
    {"version", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"commit", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"built", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {"digest", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"runs", WB_S_INT, .flags = WB_S_NEED},
    {"first_at", WB_S_TIME, .flags = WB_S_NEED},
    {"last_at", WB_S_TIME, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form subject = {.name = "Subject", .rows = subject_rows};
static const struct wb_shape series_rows[] = {
    {"id", WB_S_TEXT, .flags = WB_S_NEED},
    {"study", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"arm", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"recipe", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"version", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"host_class", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"runs", WB_S_INT, .flags = WB_S_NEED},
    {"campaigns", WB_S_INT, .flags = WB_S_NEED},
    {"first_at", WB_S_TIME, .flags = WB_S_NEED},
    {"last_at", WB_S_TIME, .flags = WB_S_NEED},
    {"subjects", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST, .of = &subject,
     .help = "The builds that it measured, oldest first"},
    {"digest_changed", WB_S_BOOL, WB_S_NEED, .help = "One version and commit had two digests"},
    {0},
};
static const struct wb_form series = {.name = "Series", .rows = series_rows};
static const struct wb_shape point_rows[] = {
    {"campaign", WB_S_TEXT, .flags = WB_S_NEED},
    {"at", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {"version", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"commit", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"built", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {"digest", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"n", WB_S_INT, .flags = WB_S_NEED},
    {"value", WB_S_REAL, .flags = WB_S_NEED | WB_S_NULL},
    {"lo", WB_S_REAL, .flags = WB_S_NEED | WB_S_NULL},
    {"hi", WB_S_REAL, .flags = WB_S_NEED | WB_S_NULL},
    {"left_out", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_form point = {.name = "Point", .rows = point_rows, .open = true};
static const struct wb_shape trend_rows[] = {
    {"series", WB_S_OBJECT, .flags = WB_S_NEED},
    {"metric", WB_S_TEXT, .flags = WB_S_NEED},
    {"status", WB_S_TEXT, .flags = WB_S_NEED},
    {"change_points", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {"points", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST, .of = &point},
    {"analysis_version", WB_S_INT, .flags = WB_S_NEED},
    {"warnings", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_form trend = {.name = "Trend", .rows = trend_rows, .open = true};
static const struct wb_shape finding_rows[] = {
    {"id", WB_S_TEXT, .flags = WB_S_NEED},
    {"kind", WB_S_WORD, WB_S_NEED, .words = finding_kinds},
    {"state", WB_S_WORD, WB_S_NEED, .words = finding_states},
    {"worst_percent", WB_S_REAL, .flags = WB_S_NEED},
    {"changes", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_form finding = {.name = "Finding", .rows = finding_rows, .open = true};

const struct wb_route wb_routes_histories[] = {
    {"GET", API "/series", WB_SCOPE_READ, WB_ROUTE_LIST, list_series, "listSeries",
     "Histories of one arm each, newest first", series_query, .answer = &series, .status = 200},
    {"GET", API "/series/{series}", WB_SCOPE_READ, 0, get_series, "getSeries",
     "One series by its key or the beginning of it", .answer = &series, .status = 200,
     .also = {409, 422}},
    {"GET", API "/series/{series}/points", WB_SCOPE_READ, WB_ROUTE_LIST, list_points, "listPoints",
     "Its nights in the order of their builds", points_query, .answer = &point, .status = 200,
     .also = {409, 422}},
    {"GET", API "/series/{series}/trend", WB_SCOPE_READ, 0, get_trend, "getTrend",
     "Where the history changed its level, and what holds now", trend_query, .answer = &trend,
     .status = 200, .also = {409, 422}},
    {"GET", API "/findings", WB_SCOPE_READ, WB_ROUTE_LIST, list_findings, "listFindings",
     "Changes of level in all series, the most urgent first", findings_query, .answer = &finding,
     .status = 200, .also = {404, 409, 422}},
    {0},
};
