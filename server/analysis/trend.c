#include "server/analysis/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/campaign.h"
#include "server/analysis/changes.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/interval.h"
#include "server/analysis/remarks.h"
#include "server/analysis/subject.h"
#include "server/base/mem.h"

/* ---- the runs of a series ---- */

static const char *key_of(const wb_json *summary)
{
    return wb_json_str_or(summary, "series_key", "");
}

/* The runs of the series, oldest first. Owned. */
static wb_json *runs_of(const wb_json *summaries, const char *key, const char *since)
{
    wb_json *runs = wb_json_array();

    for (size_t i = wb_json_len(summaries); i-- > 0;) {
        const wb_json *s = wb_json_at(summaries, i);
        if (strcmp(key_of(s), key) == 0 &&
            (since == NULL || strcmp(wb_json_str_or(s, "started_at", ""), since) >= 0))
            wb_json_push(runs, wb_json_ref(s));
    }
    return runs;
}

/* The metric asked for, or the one that stands for the newest run that has any. */
static int find_metric(const wb_json *runs, const char *asked, const char **metric,
                       const wb_json **example, struct wb_err *err)
{
    const char *name = asked;

    for (size_t i = wb_json_len(runs); i-- > 0 && name == NULL;) {
        const wb_json *head = wb_json_get(wb_json_at(runs, i), "headline");
        name = wb_json_str_or(head, "throughput", wb_json_str_or(head, "p99", NULL));
    }
    for (size_t i = wb_json_len(runs); i-- > 0 && name != NULL;) {
        *example = wb_json_get(wb_json_get(wb_json_at(runs, i), "metrics"), name);
        *metric = name;
        if (*example != NULL)
            return 0;
    }
    return wb_fail(err, WB_NOT_FOUND, "no run of the series has %s%s%s", asked ? "a metric '" : "",
                   asked ? asked : "any metric", asked ? "'" : "");
}

/* ---- nights ---- */

static bool is_type(const wb_json *annotation, const char *type)
{
    return strcmp(wb_json_str_or(annotation, "type", ""), type) == 0;
}

static bool is_excluded(const wb_json *annotations, const char *id)
{
    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *a = wb_json_at(annotations, i);
        if (is_type(a, "excluded") && strcmp(wb_json_str_or(a, "id", ""), id) == 0)
            return true;
    }
    return false;
}

/* A plan with the arms that the runs of one campaign name: copies of an arm are one series. */
static wb_json *plan_for(const wb_json *runs, bool accept_noisy)
{
    wb_json *plan = wb_json_object(), *arms = wb_json_array();

    wb_json_set(plan, "arms", arms);
    wb_json_set_bool(plan, "accept_noisy", accept_noisy);
    for (size_t i = 0; i < wb_json_len(runs); i++) {
        const char *label = wb_json_str_or(wb_json_at(runs, i), "arm", "");
        wb_json *arm;
        if (wb_plan_arm(plan, label) >= 0)
            continue;
        arm = wb_json_object();
        wb_json_set_str(arm, "label", label);
        wb_json_push(arms, arm);
    }
    return plan;
}

static void leave_out(wb_json *list, const struct wb_counted_run *r, const char *why)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "run", wb_json_str_or(r->summary, "id", "?"));
    wb_json_set_str(o, "why", why);
    wb_json_push(list, o);
}

static void add_values(wb_json *point, double *v, size_t n)
{
    static const char *const keys[] = {"value", "lo", "hi"};

    wb_json_set_int(point, "n", (int64_t)n);
    if (n == 0) {
        for (size_t i = 0; i < WB_LEN(keys); i++)
            wb_json_set_reason(point, keys[i], "no run of this campaign counts");
        return;
    }
    wb_sort_values(v, n);
    wb_json_set_real(point, "value", wb_median(v, n));
    wb_json_set_real(point, "lo", v[0]);
    wb_json_set_real(point, "hi", v[n - 1]);
}

/* One night from the runs of its campaign. *point is owned. */
static int make_point(const wb_json *runs, const char *metric, const struct wb_trend_question *q,
                      wb_json **point, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *plan = plan_for(runs, q->accept_noisy);
    WB_AUTO_FREE double *v = wb_calloc(wb_json_len(runs), sizeof(double));
    const wb_json *first = wb_json_at(runs, 0);
    wb_json *p, *left = wb_json_array();
    struct wb_counted counted;
    size_t n = 0;
    int rc = wb_count_runs(plan, runs, &counted, err);

    if (rc < 0) {
        wb_json_free(left);
        return rc;
    }
    for (size_t i = 0; i < counted.nruns; i++) {
        const struct wb_counted_run *r = &counted.runs[i];
        double value = wb_report_value(r, metric);
        if (is_excluded(q->annotations, wb_json_str_or(r->summary, "id", "")))
            leave_out(left, r, "excluded by an annotation");
        else if (!r->used)
            leave_out(left, r, r->why);
        else if (isnan(value))
            leave_out(left, r,
                      wb_run_metric(r, metric) != NULL ? "its figure is none that can be"
                                                       : "it has no such metric");
        else
            v[n++] = value;
    }
    wb_counted_release(&counted);
    p = wb_json_object();
    wb_json_set_str(p, "campaign", wb_json_str_or(first, "campaign", "?"));
    wb_json_set_str(p, "at", wb_json_str_or(first, "started_at", NULL));
    wb_json_set_str(p, "version", wb_subject_version(first));
    wb_json_set_str(p, "commit", wb_subject_commit(first));
    wb_json_set_str(p, "built", wb_json_str_or(wb_json_get(first, "subject"), "built", NULL));
    wb_json_set_str(p, "digest", wb_subject_digest(first));
    add_values(p, v, n);
    wb_json_set(p, "left_out", left);
    *point = p;
    return 0;
}

/* A night while they are put in order. */
struct night {
    wb_json *point; /* owned */
    size_t epoch;   /* changes of environment before it */
    int64_t ms;     /* when its build was made */
    size_t started; /* its place by when it was measured */
};

/* Nights between two changes of environment stand together, in the order of their builds, whenever
 * they were measured: an older build may be measured later. */
static int by_build(const void *a, const void *b)
{
    const struct night *x = a, *y = b;

    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    return (x->started > y->started) - (x->started < y->started);
}

/* Changes of environment up to the run: of its host, or of the host at a campaign or run. */
static size_t epoch_of(const wb_json *annotations, const wb_json *runs, const wb_json *run)
{
    const char *started = wb_json_str_or(run, "started_at", "");
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *a = wb_json_at(annotations, i);
        const char *id = wb_json_str_or(a, "id", ""), *from = NULL;
        if (!is_type(a, "environment"))
            continue;
        if (wb_remark_is_of_host(a, run))
            from = wb_json_str_or(a, "at", "");
        for (size_t k = 0; k < wb_json_len(runs) && from == NULL && *id != '\0'; k++) {
            const wb_json *r = wb_json_at(runs, k);
            if (strcmp(wb_json_str_or(r, "campaign", ""), id) == 0 ||
                strcmp(wb_json_str_or(r, "id", ""), id) == 0)
                from = wb_json_str_or(r, "started_at", "");
        }
        n += from != NULL && strcmp(started, from) >= 0;
    }
    return n;
}

/* The runs of one campaign from place `at` on, which are then done. Owned. */
static wb_json *campaign_at(const wb_json *runs, size_t at, bool *done)
{
    const char *campaign = wb_json_str_or(wb_json_at(runs, at), "campaign", "");
    wb_json *night = wb_json_array();

    for (size_t k = at; k < wb_json_len(runs); k++)
        if (!done[k] &&
            strcmp(wb_json_str_or(wb_json_at(runs, k), "campaign", ""), campaign) == 0) {
            done[k] = true;
            wb_json_push(night, wb_json_ref(wb_json_at(runs, k)));
        }
    return night;
}

static int make_points(const wb_json *runs, const char *metric, const struct wb_trend_question *q,
                       wb_json *points, struct wb_err *err)
{
    size_t n = wb_json_len(runs), made = 0;
    WB_AUTO_FREE bool *done = wb_calloc(n, sizeof(bool));
    WB_AUTO_FREE struct night *nights = wb_calloc(n, sizeof(*nights));
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        WB_AUTO_JSON wb_json *night = NULL;
        if (done[i])
            continue;
        night = campaign_at(runs, i, done);
        rc = make_point(night, metric, q, &nights[made].point, err);
        if (rc < 0)
            break;
        nights[made].epoch = epoch_of(q->annotations, runs, wb_json_at(runs, i));
        nights[made].ms = wb_subject_ms(wb_json_at(runs, i));
        nights[made].started = made;
        made++;
    }
    qsort(nights, made, sizeof(*nights), by_build);
    for (size_t i = 0; i < made; i++)
        wb_json_push(points, nights[i].point);
    return rc;
}

/* ---- the question to stats changes ---- */

/* The first night from a time on; -1 when there is none. */
static int64_t night_from(const wb_json *points, const char *at)
{
    for (size_t i = 0; i < wb_json_len(points); i++)
        if (strcmp(wb_json_str_or(wb_json_at(points, i), "at", ""), at) >= 0)
            return (int64_t)i;
    return -1;
}

/* The night of a campaign, of one of its runs, of a change with this id, or after a change of the
 * host; -1 when there is none. */
static int64_t night_of(const wb_json *points, const wb_json *runs, const wb_json *annotation,
                        const wb_json *changes)
{
    const char *id = wb_json_str_or(annotation, "id", ""), *campaign = id;
    bool environment = strcmp(wb_json_str_or(annotation, "type", ""), "environment") == 0;

    for (size_t i = 0; i < wb_json_len(changes); i++)
        if (!environment && strcmp(wb_json_str_or(wb_json_at(changes, i), "id", ""), id) == 0)
            return wb_json_int_or(wb_json_at(changes, i), "index", -1);
    for (size_t i = 0; environment && i < wb_json_len(runs); i++)
        if (wb_remark_is_of_host(annotation, wb_json_at(runs, i)))
            return night_from(points, wb_json_str_or(annotation, "at", ""));

    for (size_t i = 0; i < wb_json_len(runs); i++)
        if (strcmp(wb_json_str_or(wb_json_at(runs, i), "id", ""), id) == 0)
            campaign = wb_json_str_or(wb_json_at(runs, i), "campaign", "");
    for (size_t i = 0; i < wb_json_len(points); i++)
        if (strcmp(wb_json_str_or(wb_json_at(points, i), "campaign", ""), campaign) == 0)
            return (int64_t)i;
    return -1;
}

static bool is_mark(const char *type)
{
    return strcmp(type, "accepted") == 0 || strcmp(type, "excluded") == 0 ||
           strcmp(type, "environment") == 0;
}

/* Annotations of this series' nights by index; a run alone is excluded where its night is made. */
static wb_json *marks_of(const wb_json *points, const wb_json *runs, const wb_json *annotations,
                         const wb_json *changes)
{
    wb_json *marks = wb_json_array();

    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *a = wb_json_at(annotations, i);
        const char *id = wb_json_str_or(a, "id", ""), *type = wb_json_str_or(a, "type", "");
        int64_t night = is_mark(type) ? night_of(points, runs, a, changes) : -1;
        wb_json *m;
        if (night < 0 || (strcmp(type, "excluded") == 0 && strncmp(id, "run_", 4) == 0))
            continue;
        m = wb_json_object();
        wb_json_set_int(m, "index", night);
        wb_json_set_str(m, "type", type);
        wb_json_push(marks, m);
    }
    return marks;
}

static wb_json *document_of(const wb_json *points, const char *key, const char *metric,
                            const struct wb_trend_question *q)
{
    wb_json *doc = wb_json_object(), *values = wb_json_array(), *ids = wb_json_array();
    WB_AUTO_FREE char *series = wb_strf("%s/%s", key, metric);

    for (size_t i = 0; i < wb_json_len(points); i++) {
        const wb_json *p = wb_json_at(points, i);
        wb_json_push(values, wb_json_ref(wb_json_get(p, "value")));
        wb_json_push(ids, wb_json_ref(wb_json_get(p, "campaign")));
    }
    wb_json_set(doc, "values", values);
    wb_json_set(doc, "ids", ids);
    wb_json_set_str(doc, "series", series);
    if (!isnan(q->min_percent))
        wb_json_set_real(doc, "min_magnitude_percent", q->min_percent);
    if (q->previous != NULL)
        wb_json_set(doc, "previous", wb_json_ref(q->previous));
    return doc;
}

/* Annotations may name a change by its id, which is known only once it was found. */
static int answer_of(wb_json *doc, const wb_json *points, const wb_json *runs,
                     const struct wb_trend_question *q, wb_json **out, struct wb_err *err)
{
    wb_json *marks;
    int rc = wb_cache_answer(q->cache, "changes", wb_stats_changes, doc, out, err);

    if (rc < 0)
        return rc;
    marks = marks_of(points, runs, q->annotations, wb_json_get(*out, "change_points"));
    if (wb_json_equal(marks, wb_json_get(doc, "annotations"))) {
        wb_json_free(marks);
        return 0;
    }
    wb_json_set(doc, "annotations", marks);
    wb_json_free(*out);
    *out = NULL;
    return wb_cache_answer(q->cache, "changes", wb_stats_changes, doc, out, err);
}

/* Commits beside the ends of each change; one between two measurements of the same build is not
 * the build's. */
static void name_builds(wb_json *answer, const wb_json *points)
{
    wb_json *changes = wb_json_get(answer, "change_points"),
            *warnings = wb_json_get(answer, "warnings");

    for (size_t i = 0; i < wb_json_len(changes); i++) {
        wb_json *c = wb_json_at(changes, i);
        const wb_json *good =
            wb_json_at(points, (size_t)wb_json_int_or(c, "after_index", INT64_MAX));
        const wb_json *bad = wb_json_at(points, (size_t)wb_json_int_or(c, "index", INT64_MAX));
        const char *from = wb_json_str_or(good, "commit", NULL);
        const char *to = wb_json_str_or(bad, "commit", NULL);
        if (from == NULL && to == NULL)
            continue;
        wb_json_set_str(c, "last_good_commit", from);
        wb_json_set_str(c, "first_bad_commit", to);
        if (from != NULL && to != NULL && strcmp(from, to) == 0)
            wb_analysis_warn(warnings, "same-build",
                             "the change at %s lies between two measurements of one build (commit "
                             "%s): something else than the build changed",
                             wb_json_str_or(c, "first_bad", "?"), to);
    }
    wb_subject_digests(points, warnings);
}

static wb_json *series_json(const wb_json *run, const char *key)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "key", key);
    wb_json_set_str(o, "study", wb_json_str_or(run, "study", NULL));
    wb_json_set_str(o, "arm", wb_json_str_or(run, "arm", NULL));
    wb_json_set_str(o, "recipe", wb_json_str_or(wb_json_get(run, "recipe"), "name", NULL));
    wb_json_set_str(o, "host_class", wb_json_str_or(wb_json_get(run, "host"), "class", NULL));
    return o;
}

int wb_trend(const wb_json *summaries, const struct wb_trend_question *q, wb_json **out,
             struct wb_err *err)
{
    WB_AUTO_JSON wb_json *runs = NULL;
    WB_AUTO_JSON wb_json *points = wb_json_array();
    WB_AUTO_JSON wb_json *doc = NULL;
    const char *key = q->series, *metric = NULL, *better;
    const wb_json *example = NULL;
    wb_json *answer = NULL;
    int rc;

    runs = runs_of(summaries, key, q->since);
    rc = find_metric(runs, q->metric, &metric, &example, err);
    if (rc == 0)
        rc = make_points(runs, metric, q, points, err);
    if (rc < 0)
        return rc;
    doc = document_of(points, key, metric, q);
    wb_json_set(doc, "annotations", marks_of(points, runs, q->annotations, NULL));
    better = wb_json_str_or(example, "better", "");
    if (strcmp(better, "higher") == 0 || strcmp(better, "lower") == 0)
        wb_json_set_str(doc, "better", better);
    rc = answer_of(doc, points, runs, q, &answer, err);
    if (rc < 0)
        return rc;
    wb_json_set(answer, "series", series_json(wb_json_at(runs, wb_json_len(runs) - 1), key));
    wb_json_set_str(answer, "metric", metric);
    wb_json_set_str(answer, "unit", wb_json_str_or(example, "unit", NULL));
    wb_json_set_str(answer, "better", *better ? better : NULL);
    name_builds(answer, points);
    wb_json_set(answer, "points", WB_STEAL(points));
    *out = answer;
    return 0;
}

/* ---- the list of series ---- */

static wb_json *find_by_key(wb_json *list, const char *key)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(wb_json_str_or(wb_json_at(list, i), "id", ""), key) == 0)
            return wb_json_at(list, i);
    return NULL;
}

static void count_up(wb_json *o, const char *key)
{
    wb_json_set_int(o, key, wb_json_int_or(o, key, 0) + 1);
}

wb_json *wb_series_list(const wb_json *summaries)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < wb_json_len(summaries); i++) {
        const wb_json *s = wb_json_at(summaries, i);
        const char *campaign = wb_json_str_or(s, "campaign", "");
        const wb_json *at = wb_json_get(s, "started_at");
        wb_json *o = find_by_key(list, key_of(s));
        if (*key_of(s) == '\0')
            continue;
        if (o == NULL) {
            o = series_json(s, key_of(s));
            wb_json_del(o, "key");
            wb_json_set_str(o, "id", key_of(s));
            wb_json_set_str(o, "version",
                            wb_json_str_or(wb_json_get(s, "recipe"), "version", NULL));
            wb_json_set(o, "last_at", wb_json_ref(at));
            wb_json_push(list, o);
        }
        count_up(o, "runs");
        /* Runs of a campaign stand together. */
        if (strcmp(wb_json_str_or(o, "campaign", ""), campaign) != 0)
            count_up(o, "campaigns");
        wb_json_set_str(o, "campaign", campaign);
        if (at != NULL)
            wb_json_set(o, "first_at", wb_json_ref(at));
    }
    for (size_t i = 0; i < wb_json_len(list); i++)
        wb_json_del(wb_json_at(list, i), "campaign");
    return list;
}
