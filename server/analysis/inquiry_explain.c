/* `explain` over records: two arms, campaigns of one arm, or runs. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"
#include "server/analysis/explain.h"
#include "server/analysis/inquiry_parts.h"

/* One side with the documents behind it. */
struct side {
    char *typed, *run; /* run: the whole id of one, else NULL */
    struct wb_ref ref;
    wb_json *summaries; /* of the runs that count */
    wb_json *documents; /* owns what runs point to */
    struct wb_explain_run *runs;
    size_t n;
};

static void side_release(struct side *s)
{
    free(s->runs);
    wb_json_free(s->documents);
    wb_json_free(s->summaries);
    wb_ref_release(&s->ref);
    free(s->typed);
    free(s->run);
}

/* A run stands for itself: its campaign, with this run alone. */
static int find_run(struct wb_store *store, const char *typed, char *run, struct side *out,
                    struct wb_err *err)
{
    wb_json *summary = NULL;
    int rc;

    out->run = run;
    rc = wb_store_read(store, run, "summary", &summary, err);
    if (rc < 0)
        return rc;
    out->ref.typed = typed;
    out->ref.campaign = wb_strdup(wb_json_str_or(summary, "campaign", ""));
    out->ref.arm = wb_strdup(wb_json_str_or(summary, "arm", ""));
    out->ref.runs = wb_json_array();
    wb_json_push(out->ref.runs, wb_json_ref(summary));
    out->summaries = wb_json_array();
    wb_json_push(out->summaries, summary);
    return 0;
}

/* What a side means, with as little reading as possible. */
static int find_side(struct wb_store *store, const char *typed, struct side *out,
                     struct wb_err *err)
{
    char *one[] = {wb_strdup(typed)};
    struct wb_ref_id id = {0};
    int rc = 0;

    out->typed = one[0];
    if (strchr(typed, '/') == NULL && !wb_ref_is_series(typed))
        rc = wb_ref_id_find(store, typed, &id, err);
    if (rc == 0 && id.run != NULL)
        rc = find_run(store, out->typed, WB_STEAL(id.run), out, err);
    else if (rc == 0)
        rc = wb_refs_find(store, one, 1, &out->ref, err);
    wb_ref_id_release(&id);
    return rc;
}

/* The runs of the arm that count. */
static int read_arm(struct side *s, struct wb_err *err)
{
    const wb_json *arms = wb_json_get(s->ref.plan, "arms");
    struct wb_counted counted;
    int rc;

    if (s->ref.arm == NULL && wb_json_len(arms) == 1)
        s->ref.arm = wb_strdup(wb_json_str_or(wb_json_at(arms, 0), "label", ""));
    if (s->ref.arm == NULL)
        return wb_fail(err, WB_INVALID,
                       "%s has %zu arms: name one of them as CAMPAIGN/ARM, such as '%s/%s'",
                       s->ref.typed, wb_json_len(arms), s->ref.typed,
                       wb_json_str_or(wb_json_at(arms, 0), "label", ""));
    rc = wb_count_runs(s->ref.plan, s->ref.runs, &counted, err);
    if (rc < 0)
        return rc;
    s->summaries = wb_json_array();
    for (size_t i = 0; i < counted.nruns; i++)
        if (counted.runs[i].used &&
            !strcmp(wb_json_str_or(counted.runs[i].summary, "arm", ""), s->ref.arm))
            wb_json_push(s->summaries, wb_json_ref(counted.runs[i].summary));
    wb_counted_release(&counted);
    return 0;
}

static int read_documents(struct wb_store *store, struct side *s, struct wb_err *err)
{
    size_t n = wb_json_len(s->summaries);
    int rc = 0;

    s->runs = wb_calloc(n, sizeof(*s->runs));
    s->documents = wb_json_array();
    for (size_t i = 0; rc == 0 && i < n; i++) {
        wb_json *environment = NULL, *result = NULL;
        const wb_json *summary = wb_json_at(s->summaries, i);
        const char *id = wb_json_str_or(summary, "id", "");

        rc = wb_store_read(store, id, "environment", &environment, err);
        if (rc == 0)
            rc = wb_store_read(store, id, "result", &result, err);
        s->runs[s->n++] = (struct wb_explain_run){summary, environment, result};
        wb_json_push(s->documents, environment ? environment : wb_json_null());
        wb_json_push(s->documents, result ? result : wb_json_null());
    }
    return rc;
}

static int load_side(struct wb_store *store, struct side *s, struct wb_err *err)
{
    int rc;

    if (s->run != NULL)
        return wb_store_read(store, s->run, "plan", &s->ref.plan, err);
    rc = wb_refs_load(store, &s->ref, 1, err);
    if (rc == 0)
        rc = read_arm(s, err);
    if (rc == 0 && wb_json_len(s->summaries) > WB_EXPLAIN_RUNS_MAX)
        rc = wb_fail(err, WB_LIMIT, "%s has %zu runs, at most %d are explained", s->typed,
                     wb_json_len(s->summaries), WB_EXPLAIN_RUNS_MAX);
    return rc;
}

static const wb_json *arm_of(const struct side *s)
{
    const wb_json *arms = wb_json_get(s->ref.plan, "arms");
    int i = wb_plan_arm(s->ref.plan, s->ref.arm);

    return i < 0 ? NULL : wb_json_at(arms, (size_t)i);
}

static const wb_json *workload_of(const struct side *s)
{
    const wb_json *own = wb_json_get(arm_of(s), "workload");

    return own ? own : wb_json_get(s->ref.plan, "workload");
}

/* The metric asked for, the one that the plan's first contrast is about, or throughput. */
static const char *metric_of(const struct side *s, const char *asked)
{
    const wb_json *c = wb_json_at(wb_json_get(s->ref.plan, "contrasts"), 0);
    const char *planned = wb_json_str_or(c, "metric", NULL);

    if (asked != NULL)
        return asked;
    return planned
               ? planned
               : wb_json_string(wb_json_path(wb_json_at(s->summaries, 0), "headline.throughput"));
}

/* Two sides while they are explained. */
struct pair {
    struct wb_store *store;
    struct side sides[2];
    const char *metric; /* asked for, or NULL */
};

/* Fills the question; the better direction is what the runs say. */
static int ask(const struct pair *p, struct wb_explain_question *q, struct wb_err *err)
{
    const struct side *a = &p->sides[0], *b = &p->sides[1];
    const wb_json *m = NULL;

    *q = (struct wb_explain_question){.metric = metric_of(a, p->metric),
                                      .threshold_percent = wb_json_real_or(
                                          a->ref.plan, "threshold_percent", WB_THRESHOLD_PERCENT)};
    if (q->metric == NULL)
        return wb_fail(err, WB_NOT_FOUND, "no run of %s has a figure; name one with --metric",
                       a->typed);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < wb_json_len(p->sides[s].summaries) && m == NULL; i++)
            m = wb_json_get(wb_json_get(wb_json_at(p->sides[s].summaries, i), "metrics"),
                            q->metric);
    if (m == NULL && wb_json_len(a->summaries) > 0 && wb_json_len(b->summaries) > 0)
        return wb_fail(err, WB_INVALID,
                       "no run of %s or %s has a metric '%s': `weighbridge show` lists them",
                       a->typed, b->typed, q->metric);
    q->better = wb_json_str_or(m, "better", NULL);
    return 0;
}

/* The records are read only when the answer was not kept. */
static int compute(void *arg, wb_json **out, struct wb_err *err)
{
    struct pair *p = arg;
    struct wb_explain_question q;
    struct wb_explain_side in[2];
    int rc = load_side(p->store, &p->sides[0], err);

    if (rc == 0)
        rc = load_side(p->store, &p->sides[1], err);
    if (rc == 0)
        rc = ask(p, &q, err);
    for (int s = 0; s < 2 && rc == 0; s++) {
        rc = read_documents(p->store, &p->sides[s], err);
        in[s] = (struct wb_explain_side){.name = p->sides[s].typed,
                                         .arm = arm_of(&p->sides[s]),
                                         .workload = workload_of(&p->sides[s]),
                                         .runs = p->sides[s].runs,
                                         .n = p->sides[s].n};
    }
    return rc == 0 ? wb_explain(in, &q, out, err) : rc;
}

/* What the answer follows from; the summary of a run holds the digests of its other documents. */
static wb_json *key_of(const struct pair *p)
{
    wb_json *key = wb_json_object(), *list = wb_json_array();

    wb_json_set_str(key, "metric", p->metric);
    wb_json_set(key, "sides", list);
    for (int s = 0; s < 2; s++) {
        const struct side *side = &p->sides[s];
        wb_json *o = side->run != NULL ? wb_json_object() : wb_refs_key(p->store, &side->ref, 1);

        if (o == NULL) {
            wb_json_free(key);
            return NULL;
        }
        if (side->run != NULL) {
            wb_json_set_str(o, "typed", side->typed);
            wb_json_set(o, "summary", wb_json_ref(wb_json_at(side->summaries, 0)));
        }
        wb_json_push(list, o);
    }
    return key;
}

int wb_inquiry_explain(const struct wb_inquiry *j, const char *a, const char *b, const char *metric,
                       wb_json **out, struct wb_err *err)
{
    struct pair p = {.store = j->store, .metric = metric};
    int rc = find_side(j->store, a, &p.sides[0], err);

    if (rc == 0)
        rc = find_side(j->store, b, &p.sides[1], err);
    if (rc == 0) {
        WB_AUTO_JSON wb_json *key = j->cache != NULL ? key_of(&p) : NULL;
        rc = wb_cache_compute(key != NULL ? j->cache : NULL, "explain", key, compute, &p, out, err);
    }
    side_release(&p.sides[0]);
    side_release(&p.sides[1]);
    return rc;
}
