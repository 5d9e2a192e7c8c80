/* `explain` over records: two arms, campaigns of one arm, or runs. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"
#include "server/analysis/explain.h"
#include "server/analysis/judge.h"
#include "server/analysis/refs.h"

/* One side with the documents behind it. */
struct side {
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
}

/* A run stands for itself: its campaign, with this run alone. */
static int read_run(struct wb_store *store, const char *typed, const struct wb_ref_id *id,
                    struct side *out, struct wb_err *err)
{
    wb_json *summary = NULL;
    int rc = wb_store_read(store, id->run, "summary", &summary, err);

    if (rc < 0)
        return rc;
    out->ref.typed = typed;
    out->ref.campaign = wb_strdup(wb_json_str_or(summary, "campaign", ""));
    out->ref.arm = wb_strdup(wb_json_str_or(summary, "arm", ""));
    out->ref.runs = wb_json_array();
    wb_json_push(out->ref.runs, wb_json_ref(summary));
    out->summaries = wb_json_array();
    wb_json_push(out->summaries, summary);
    return wb_store_read(store, id->run, "plan", &out->ref.plan, err);
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

static int read_side(struct wb_store *store, const char *typed, struct side *out,
                     struct wb_err *err)
{
    struct wb_ref_id id = {0};
    int rc = 0;

    if (strchr(typed, '/') == NULL && !wb_ref_is_series(typed))
        rc = wb_ref_id_find(store, typed, &id, err);
    if (rc == 0 && id.run != NULL && id.campaign == NULL) {
        rc = read_run(store, typed, &id, out, err);
    } else if (rc == 0) {
        rc = wb_ref_read(store, typed, &out->ref, err);
        if (rc == 0)
            rc = read_arm(out, err);
    }
    wb_ref_id_release(&id);
    if (rc == 0 && wb_json_len(out->summaries) > WB_EXPLAIN_RUNS_MAX)
        rc = wb_fail(err, WB_LIMIT, "%s has %zu runs, at most %d are explained", typed,
                     wb_json_len(out->summaries), WB_EXPLAIN_RUNS_MAX);
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
    struct wb_explain_question q;
};

/* Fills the question; the better direction is what the runs say. */
static int ask(struct pair *p, const char *metric, struct wb_err *err)
{
    const wb_json *m = NULL;

    p->q = (struct wb_explain_question){
        .metric = metric_of(&p->sides[0], metric),
        .threshold_percent =
            wb_json_real_or(p->sides[0].ref.plan, "threshold_percent", WB_THRESHOLD_PERCENT)};
    if (p->q.metric == NULL)
        return wb_fail(err, WB_NOT_FOUND, "no run of %s has a figure; name one with --metric",
                       p->sides[0].ref.typed);
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < wb_json_len(p->sides[s].summaries) && m == NULL; i++)
            m = wb_json_get(wb_json_get(wb_json_at(p->sides[s].summaries, i), "metrics"),
                            p->q.metric);
    if (m == NULL && wb_json_len(p->sides[0].summaries) > 0 &&
        wb_json_len(p->sides[1].summaries) > 0)
        return wb_fail(err, WB_INVALID,
                       "no run of %s or %s has a metric '%s': `weighbridge show` lists them",
                       p->sides[0].ref.typed, p->sides[1].ref.typed, p->q.metric);
    p->q.better = wb_json_str_or(m, "better", NULL);
    return 0;
}

/* The documents are read only when the answer was not kept. */
static int compute(void *arg, wb_json **out, struct wb_err *err)
{
    struct pair *p = arg;
    struct wb_explain_side in[2];
    int rc = 0;

    for (int s = 0; s < 2 && rc == 0; s++) {
        rc = read_documents(p->store, &p->sides[s], err);
        in[s] = (struct wb_explain_side){.name = p->sides[s].ref.typed,
                                         .arm = arm_of(&p->sides[s]),
                                         .workload = workload_of(&p->sides[s]),
                                         .runs = p->sides[s].runs,
                                         .n = p->sides[s].n};
    }
    return rc == 0 ? wb_explain(in, &p->q, out, err) : rc;
}

/* What the answer follows from: summaries hold the digests of the other documents. */
static wb_json *key_of(const struct pair *p)
{
    wb_json *key = wb_json_object(), *list = wb_json_array();

    for (int s = 0; s < 2; s++) {
        const struct side *side = &p->sides[s];
        wb_json *o = wb_json_object();
        wb_json_set_str(o, "name", side->ref.typed);
        wb_json_set(o, "arm", wb_json_ref(arm_of(side)));
        wb_json_set(o, "workload", wb_json_ref(workload_of(side)));
        wb_json_set(o, "runs", wb_json_ref(side->summaries));
        wb_json_push(list, o);
    }
    wb_json_set(key, "sides", list);
    wb_json_set_str(key, "metric", p->q.metric);
    wb_json_set_str(key, "better", p->q.better);
    wb_json_set_real(key, "threshold_percent", p->q.threshold_percent);
    return key;
}

int wb_judge_explain(const struct wb_judge *j, const char *a, const char *b, const char *metric,
                     wb_json **out, struct wb_err *err)
{
    struct pair p = {.store = j->store};
    int rc = read_side(j->store, a, &p.sides[0], err);

    if (rc == 0)
        rc = read_side(j->store, b, &p.sides[1], err);
    if (rc == 0)
        rc = ask(&p, metric, err);
    if (rc == 0) {
        WB_AUTO_JSON wb_json *key = key_of(&p);
        rc = wb_cache_compute(j->cache, "explain", key, compute, &p, out, err);
    }
    side_release(&p.sides[0]);
    side_release(&p.sides[1]);
    return rc;
}
