/* What changed in all series: events of the same window in one finding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/adjust.h"
#include "server/analysis/trend.h"
#include "server/base/mem.h"
#include "server/base/table.h"

#define FINDINGS_MAX 10000

/* All that is known while findings are made. */
struct wb_finder {
    const struct wb_trend_question *q;
    wb_json *findings; /* the list that is made */
    double *p;         /* of each change; then q */
    size_t nchanges, cap;
    size_t looked; /* series and metrics */
};

/* Same window, same direction. */
static wb_json *finding_of(struct wb_finder *s, const wb_json *event)
{
    static const char *const keys[] = {"last_good", "first_bad", "kind"};

    for (size_t i = 0; i < wb_json_len(s->findings); i++) {
        wb_json *f = wb_json_at(s->findings, i);
        size_t same = 0;
        for (size_t k = 0; k < WB_LEN(keys); k++)
            same += strcmp(wb_json_str_or(f, keys[k], ""), wb_json_str_or(event, keys[k], "")) == 0;
        if (same == WB_LEN(keys))
            return f;
    }
    return NULL;
}

static const char *time_of(const wb_json *trend, const wb_json *event)
{
    int64_t at = wb_json_int_or(event, "index", -1);
    const wb_json *p = at >= 0 ? wb_json_at(wb_json_get(trend, "points"), (size_t)at) : NULL;

    return wb_json_str_or(p, "at", NULL);
}

static wb_json *new_finding(struct wb_finder *s, const wb_json *trend, const wb_json *event)
{
    static const char *const keys[] = {"id",        "kind",      "state",
                                       "last_good", "first_bad", "first_seen"};
    wb_json *f = wb_json_object();

    for (size_t i = 0; i < WB_LEN(keys); i++)
        wb_json_set_str(f, keys[i], wb_json_str_or(event, keys[i], NULL));
    wb_json_set_str(f, "at", time_of(trend, event));
    wb_json_set_real(f, "worst_percent", 0);
    wb_json_set(f, "changes", wb_json_array());
    wb_json_push(s->findings, f);
    return f;
}

static void add_change(struct wb_finder *s, const wb_json *trend, const wb_json *event)
{
    static const char *const keys[] = {
        "id", "before", "after", "change_percent", "change_ci95_percent", "p"};
    const wb_json *series = wb_json_get(trend, "series");
    wb_json *f = finding_of(s, event), *c = wb_json_object();
    double percent = wb_json_real_or(event, "change_percent", NAN);

    if (f == NULL)
        f = new_finding(s, trend, event);
    wb_json_set_str(c, "series", wb_json_str_or(series, "key", ""));
    wb_json_set_str(c, "study", wb_json_str_or(series, "study", NULL));
    wb_json_set_str(c, "arm", wb_json_str_or(series, "arm", NULL));
    wb_json_set_str(c, "metric", wb_json_str_or(trend, "metric", NULL));
    wb_json_set_str(c, "unit", wb_json_str_or(trend, "unit", NULL));
    for (size_t i = 0; i < WB_LEN(keys); i++)
        wb_json_set(c, keys[i], wb_json_ref(wb_json_get(event, keys[i])));
    wb_json_push(wb_json_get(f, "changes"), c);
    /* One change that nobody accepted keeps the finding open. */
    if (strcmp(wb_json_str_or(event, "state", ""), "open") == 0)
        wb_json_set_str(f, "state", "open");
    if (fabs(percent) > fabs(wb_json_real_or(f, "worst_percent", 0)))
        wb_json_set_real(f, "worst_percent", percent);
    wb_grow(&s->p, &s->cap, s->nchanges + 1, sizeof(*s->p));
    s->p[s->nchanges++] = wb_json_real_or(event, "p", 1);
}

static int look_at(struct wb_finder *s, const wb_json *summaries, const char *series,
                   const char *metric, struct wb_err *err)
{
    struct wb_trend_question q = *s->q;
    WB_AUTO_JSON wb_json *trend = NULL;
    const wb_json *events;
    int rc;

    q.series = series;
    q.metric = metric;
    q.previous = NULL;
    rc = wb_trend(summaries, &q, &trend, err);
    if (rc < 0)
        return rc;
    s->looked++;
    events = wb_json_get(trend, "change_points");
    for (size_t i = 0; i < wb_json_len(events); i++)
        add_change(s, trend, wb_json_at(events, i));
    return 0;
}

/* The metrics that runs of a series have. */
static void metrics_of(const wb_json *summaries, const char *series, const char *since,
                       struct wb_strv *out)
{
    for (size_t i = 0; i < wb_json_len(summaries); i++) {
        const wb_json *s = wb_json_at(summaries, i), *metrics = wb_json_get(s, "metrics");
        if (strcmp(wb_json_str_or(s, "series_key", ""), series) != 0 ||
            (since != NULL && strcmp(wb_json_str_or(s, "started_at", ""), since) < 0))
            continue;
        for (void *it = wb_json_first(metrics); it != NULL; it = wb_json_next(metrics, it)) {
            size_t n = 0;
            while (n < out->n && strcmp(out->v[n], wb_json_iter_key(it)) != 0)
                n++;
            if (n == out->n)
                wb_strv_add(out, wb_json_iter_key(it));
        }
    }
}

/* The q that belongs to a p: it follows from p alone. */
static double q_of(const struct wb_finder *s, const double *q, double p)
{
    for (size_t k = 0; k < s->nchanges; k++)
        if (s->p[k] == p)
            return q[k];
    return 1;
}

/* Over everything that was looked at: where no change was found, p counts as 1. */
static void set_q(const struct wb_finder *s)
{
    size_t n = s->nchanges > s->looked ? s->nchanges : s->looked;
    WB_AUTO_FREE double *q = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++)
        q[i] = i < s->nchanges ? s->p[i] : 1;
    wb_adjust(q, n, q);
    for (size_t i = 0; i < wb_json_len(s->findings); i++) {
        const wb_json *list = wb_json_get(wb_json_at(s->findings, i), "changes");
        for (size_t c = 0; c < wb_json_len(list); c++) {
            wb_json *change = wb_json_at(list, c);
            wb_json_set_real(change, "q", q_of(s, q, wb_json_real_or(change, "p", 1)));
        }
    }
}

/* A finding is accepted as a whole by its own id, whatever series its changes are in. */
static void accept(const struct wb_finder *s)
{
    for (size_t i = 0; i < wb_json_len(s->q->annotations); i++) {
        const wb_json *a = wb_json_at(s->q->annotations, i);
        if (strcmp(wb_json_str_or(a, "type", ""), "accepted") != 0)
            continue;
        for (size_t f = 0; f < wb_json_len(s->findings); f++)
            if (strcmp(wb_json_str_or(wb_json_at(s->findings, f), "id", ""),
                       wb_json_str_or(a, "id", "-")) == 0)
                wb_json_set_str(wb_json_at(s->findings, f), "state", "accepted");
    }
}

/* ---- order ---- */

/* Open regressions first, then other open ones, then accepted ones; the larger change first. */
static int rank(const wb_json *f)
{
    bool open = strcmp(wb_json_str_or(f, "state", ""), "open") == 0;
    bool bad = strcmp(wb_json_str_or(f, "kind", ""), "regression") == 0;

    return open && bad ? 0 : open ? 1 : 2;
}

static int by_urgency(const void *a, const void *b)
{
    const wb_json *x = *(const wb_json *const *)a, *y = *(const wb_json *const *)b;
    double p = fabs(wb_json_real_or(x, "worst_percent", 0));
    double q = fabs(wb_json_real_or(y, "worst_percent", 0));

    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    if (p != q)
        return p > q ? -1 : 1;
    return strcmp(wb_json_str_or(x, "id", ""), wb_json_str_or(y, "id", ""));
}

static wb_json *sorted(const wb_json *findings)
{
    size_t n = wb_json_len(findings);
    WB_AUTO_FREE wb_json **v = wb_calloc(n, sizeof(*v));
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < n; i++)
        v[i] = wb_json_at(findings, i);
    qsort(v, n, sizeof(*v), by_urgency);
    for (size_t i = 0; i < n; i++)
        wb_json_push(out, wb_json_ref(v[i]));
    return out;
}

struct wb_finder *wb_finder_new(const struct wb_trend_question *q)
{
    struct wb_finder *s = wb_calloc(1, sizeof(*s));

    s->q = q;
    s->findings = wb_json_array();
    return s;
}

void wb_finder_free(struct wb_finder *s)
{
    if (s == NULL)
        return;
    wb_json_free(s->findings);
    free(s->p);
    free(s);
}

int wb_finder_add(struct wb_finder *s, const wb_json *summaries, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *series = wb_series_list(summaries);
    const struct wb_trend_question *q = s->q;
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(series) && rc == 0; i++) {
        const char *key = wb_json_str_or(wb_json_at(series, i), "id", "");
        struct wb_strv metrics = {0};
        if (q->series != NULL && strncmp(key, q->series, strlen(q->series)) != 0)
            continue;
        metrics_of(summaries, key, q->since, &metrics);
        for (size_t m = 0; m < metrics.n && rc == 0; m++)
            if (q->metric == NULL || strcmp(q->metric, metrics.v[m]) == 0)
                rc = look_at(s, summaries, key, metrics.v[m], err);
        wb_strv_release(&metrics);
    }
    if (rc == 0 && wb_json_len(s->findings) > FINDINGS_MAX)
        rc = wb_fail(err, WB_LIMIT, "more than %d findings", FINDINGS_MAX);
    return rc;
}

wb_json *wb_finder_end(struct wb_finder *s)
{
    set_q(s);
    accept(s);
    return sorted(s->findings);
}

int wb_findings(const wb_json *summaries, const struct wb_trend_question *q, wb_json **out,
                struct wb_err *err)
{
    struct wb_finder *s = wb_finder_new(q);
    int rc = wb_finder_add(s, summaries, err);

    if (rc == 0)
        *out = wb_finder_end(s);
    wb_finder_free(s);
    return rc;
}

void wb_findings_print(const wb_json *findings, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "finding", WB_RIGHT); /* not cut: ids are there to be used */
    wb_table_column(t, "kind", WB_LEFT);
    wb_table_column(t, "state", WB_LEFT);
    wb_table_column(t, "worst", WB_RIGHT);
    wb_table_column(t, "first bad", WB_RIGHT);
    wb_table_column(t, "what", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(findings); i++) {
        const wb_json *f = wb_json_at(findings, i), *changes = wb_json_get(f, "changes");
        const wb_json *c = wb_json_at(changes, 0);
        size_t more = wb_json_len(changes) - 1;
        WB_AUTO_FREE char *rest = more > 0 ? wb_strf(" and %zu more", more) : wb_strdup("");
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(f, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(f, "kind", ""));
        wb_table_cell(t, "%s", wb_json_str_or(f, "state", ""));
        wb_table_cell(t, "%+.1f %%", wb_json_real_or(f, "worst_percent", 0));
        wb_table_cell(t, "%s", wb_json_str_or(f, "first_bad", ""));
        wb_table_cell(t, "%s, %s: %s%s", wb_json_str_or(c, "study", "?"),
                      wb_json_str_or(c, "arm", "?"), wb_json_str_or(c, "metric", "?"), rest);
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}
