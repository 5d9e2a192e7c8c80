/* Histories and findings over records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/inquiry.h"
#include "server/analysis/refs.h"
#include "server/analysis/trend.h"
#include "server/record/annotate.h"
#include "server/record/query.h"

/* ---- which series ---- */

/* The series of CAMPAIGN/ARM. Caller frees *key. */
static int series_of_arm(struct wb_store *s, const char *typed, char **key, struct wb_err *err)
{
    struct wb_ref ref = {0};
    int rc = wb_ref_read(s, typed, &ref, err);

    for (size_t i = 0; rc == 0 && *key == NULL && i < wb_json_len(ref.runs); i++) {
        const wb_json *run = wb_json_at(ref.runs, i);
        const char *found = wb_json_str_or(run, "series_key", "");
        if (ref.arm != NULL && strcmp(wb_json_str_or(run, "arm", ""), ref.arm) == 0 && *found)
            *key = wb_strdup(found);
    }
    if (rc == 0 && *key == NULL)
        rc = wb_fail(err, WB_NOT_FOUND, "no run of %s belongs to a series", typed);
    wb_ref_release(&ref);
    return rc;
}

static int series_of_run(struct wb_store *s, const char *typed, char **key, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_FREE char *run = NULL;
    int rc = wb_store_resolve(s, typed, &run, err);

    if (rc == 0)
        rc = wb_store_read(s, run, "summary", &summary, err);
    if (rc == 0 && *wb_json_str_or(summary, "series_key", "") == '\0')
        rc = wb_fail(err, WB_NOT_FOUND, "%s belongs to no series", run);
    if (rc == 0)
        *key = wb_strdup(wb_json_str_or(summary, "series_key", ""));
    return rc;
}

int wb_inquiry_series(const struct wb_inquiry *j, const char *typed, char **key, struct wb_err *err)
{
    const char *prefix = wb_ref_is_series(typed) ? typed + strlen(WB_REF_SERIES) : typed;

    *key = NULL;
    if (wb_ref_is_series(typed) && strchr(typed, '@') != NULL)
        return wb_fail(err, WB_INVALID,
                       "'%.200s' is one build: the history is that of the whole series, %.*s",
                       typed, (int)strcspn(typed, "@"), typed);
    if (!wb_ref_is_series(typed) && strchr(typed, '/') != NULL)
        return series_of_arm(j->store, typed, key, err);
    if (strncmp(typed, "run_", 4) == 0)
        return series_of_run(j->store, typed, key, err);
    return wb_store_resolve_series(j->store, prefix, key, err);
}

/* ---- answers ---- */

/* What both need: annotations in force behind those of the question, and run summaries. */
struct material {
    wb_json *annotations, *summaries;
};

static int read_annotations(const struct wb_inquiry *j, const struct wb_history_question *q,
                            struct material *m, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *recorded = NULL;
    int rc = wb_store_annotations(j->store, NULL, true, &recorded, err);

    m->annotations = wb_json_array();
    for (size_t i = 0; i < wb_json_len(q->annotations); i++)
        wb_json_push(m->annotations, wb_json_ref(wb_json_at(q->annotations, i)));
    for (size_t i = 0; i < wb_json_len(recorded); i++)
        wb_json_push(m->annotations, wb_json_ref(wb_json_at(recorded, i)));
    return rc;
}

static int read_material(const struct wb_inquiry *j, const struct wb_history_question *q,
                         const char *series, struct material *m, struct wb_err *err)
{
    const struct wb_list_filter f = {.series = series};
    int rc = read_annotations(j, q, m, err);

    return rc == 0 ? wb_store_list(j->store, &f, &m->summaries, err) : rc;
}

static void material_release(struct material *m)
{
    wb_json_free(m->annotations);
    wb_json_free(m->summaries);
}

static struct wb_trend_question trend_question(const struct wb_inquiry *j,
                                               const struct wb_history_question *q,
                                               const struct material *m)
{
    return (struct wb_trend_question){.metric = q->metric,
                                      .since = q->since,
                                      .annotations = m->annotations,
                                      .previous = q->previous,
                                      .accept_noisy = q->accept_noisy,
                                      .min_percent = q->min_percent,
                                      .cache = j->cache};
}

/* A history while it is made: of one series, or findings of one or of all. */
struct asked {
    const struct wb_inquiry *j;
    const struct wb_history_question *q;
    const char *key; /* NULL: all */
    bool findings;
};

/* Findings of all series, one in memory at a time: a store has more runs than fit. Runs that cannot
 * be read are passed over, as in a list of the whole store. */
static int compute_all(const struct asked *a, wb_json **out, struct wb_err *err)
{
    struct wb_trend_question t;
    struct material m = {0};
    struct wb_strv keys = {0};
    struct wb_finder *f;
    int rc = read_annotations(a->j, a->q, &m, err);

    t = trend_question(a->j, a->q, &m);
    f = wb_finder_new(&t);
    if (rc == 0)
        rc = wb_store_series_keys(a->j->store, &keys, err);
    for (size_t i = 0; rc == 0 && i < keys.n; i++) {
        const struct wb_list_filter one = {.series = keys.v[i], .pass_damaged = true};
        WB_AUTO_JSON wb_json *summaries = NULL;

        rc = wb_store_list(a->j->store, &one, &summaries, err);
        if (rc == 0)
            rc = wb_finder_add(f, summaries, err);
    }
    if (rc == 0)
        *out = wb_finder_end(f);
    wb_finder_free(f);
    wb_strv_release(&keys);
    material_release(&m);
    return rc;
}

static int compute(void *arg, wb_json **out, struct wb_err *err)
{
    const struct asked *a = arg;
    struct wb_trend_question t;
    struct material m = {0};
    int rc;

    if (a->findings && a->key == NULL)
        return compute_all(a, out, err);
    rc = read_material(a->j, a->q, a->key, &m, err);

    if (rc == 0) {
        t = trend_question(a->j, a->q, &m);
        t.series = a->key;
        rc = a->findings ? wb_findings(m.summaries, &t, out, err)
                         : wb_trend(m.summaries, &t, out, err);
    }
    material_release(&m);
    return rc;
}

/* All that the answer follows from; NULL when it cannot be told. */
static wb_json *key_of(const struct asked *a)
{
    const struct wb_history_question *q = a->q;
    char stamp[WB_SHA256_HEX];
    wb_json *key;

    if (a->j->cache == NULL ||
        wb_store_stamp(a->j->store, a->key != NULL ? WB_STAMP_SERIES : WB_STAMP_STORE, a->key,
                       stamp, NULL) < 0)
        return NULL;
    key = wb_json_object();
    wb_json_set_str(key, "series", a->key);
    wb_json_set_str(key, "stamp", stamp);
    wb_json_set_str(key, "metric", q->metric);
    wb_json_set_str(key, "since", q->since);
    wb_json_set_real(key, "min_percent", q->min_percent);
    wb_json_set_bool(key, "accept_noisy", q->accept_noisy);
    if (q->annotations != NULL)
        wb_json_set(key, "annotations", wb_json_ref(q->annotations));
    if (q->previous != NULL)
        wb_json_set(key, "previous", wb_json_ref(q->previous));
    return key;
}

/* The whole answer is kept beside the changes of each figure: a night more makes it anew, but only
 * of the series that have it. */
static int answer(struct asked *a, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *key = key_of(a);

    return wb_cache_compute(key != NULL ? a->j->cache : NULL, a->findings ? "findings" : "trend",
                            key, compute, a, out, err);
}

int wb_inquiry_trend(const struct wb_inquiry *j, const char *typed,
                     const struct wb_history_question *q, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *key = NULL;
    struct asked a = {.j = j, .q = q};
    int rc = wb_inquiry_series(j, typed, &key, err);

    a.key = key;
    return rc == 0 ? answer(&a, out, err) : rc;
}

int wb_inquiry_findings(const struct wb_inquiry *j, const char *series,
                        const struct wb_history_question *q, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *key = NULL;
    struct asked a = {.j = j, .q = q, .findings = true};
    int rc = series != NULL ? wb_inquiry_series(j, series, &key, err) : 0;

    a.key = key;
    return rc == 0 ? answer(&a, out, err) : rc;
}
