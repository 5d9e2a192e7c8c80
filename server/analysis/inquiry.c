/* `compare` over records: the contrasts of a campaign's plan, or named arms against a named one,
 * paired by round inside a campaign, unpaired across campaigns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
#include "server/analysis/inquiry_parts.h"
#include "server/analysis/remarks.h"

static const wb_json *arms_of(const struct wb_ref *r)
{
    return wb_json_get(r->plan, "arms");
}

static const char *label_at(const wb_json *arms, size_t i)
{
    return wb_json_str_or(wb_json_at(arms, i), "label", "");
}

/* ---- plans of the question that was asked ---- */

/* Direction of a metric as the runs say. */
static const char *direction(const wb_json *runs, const char *metric)
{
    for (size_t i = 0; i < wb_json_len(runs); i++) {
        const wb_json *m = wb_json_get(wb_json_get(wb_json_at(runs, i), "metrics"), metric);
        if (m != NULL)
            return wb_json_str_or(m, "better", "");
    }
    return NULL;
}

static int check_metric(const struct wb_ref *r, const char *metric, struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(2000);
    int rc;

    if (direction(r->runs, metric) != NULL)
        return 0;
    for (size_t i = 0; i < wb_json_len(r->runs) && names.len == 0; i++) {
        const wb_json *metrics = wb_json_get(wb_json_at(r->runs, i), "metrics");
        for (void *it = wb_json_first(metrics); it; it = wb_json_next(metrics, it))
            wb_buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", wb_json_iter_key(it));
    }
    rc = wb_fail(err, WB_INVALID, "no run of %s has a metric '%s'; there are %s", r->campaign,
                 metric, names.len > 0 ? wb_buf_str(&names) : "none");
    wb_buf_release(&names);
    return rc;
}

/* What is asked of each pair of arms: the metric that decides, and the other ones of the plan. */
struct metrics {
    const char *main;
    const wb_json *plan; /* its contrasts name the others */
    const wb_json *runs; /* tell the directions */
};

static void add_contrast(wb_json *list, const char *arm, const char *against, const char *metric,
                         const char *better)
{
    wb_json *c = wb_json_object();

    wb_json_set_str(c, "name", "");
    wb_json_set_str(c, "arm", arm);
    wb_json_set_str(c, "against", against);
    wb_json_set_str(c, "metric", metric);
    if (better != NULL && *better != '\0')
        wb_json_set_str(c, "better", better);
    wb_json_push(list, c);
}

static bool has_contrast(const wb_json *list, const char *arm, const char *against,
                         const char *metric)
{
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *c = wb_json_at(list, i);
        if (strcmp(wb_json_str_or(c, "arm", ""), arm) == 0 &&
            strcmp(wb_json_str_or(c, "against", ""), against) == 0 &&
            strcmp(wb_json_str_or(c, "metric", ""), metric) == 0)
            return true;
    }
    return false;
}

/* The contrasts of one pair of arms, each metric once. */
static void add_pair_of(wb_json *list, const char *arm, const char *against,
                        const struct metrics *m, bool paired)
{
    const wb_json *planned = wb_json_get(m->plan, "contrasts");
    size_t before = wb_json_len(list);

    if (has_contrast(list, arm, against, m->main))
        return;
    add_contrast(list, arm, against, m->main, direction(m->runs, m->main));
    for (size_t i = 0; i < wb_json_len(planned); i++) {
        const wb_json *c = wb_json_at(planned, i);
        const char *metric = wb_json_str_or(c, "metric", m->main);
        if (!has_contrast(list, arm, against, metric))
            add_contrast(list, arm, against, metric, wb_json_str_or(c, "better", NULL));
    }
    for (size_t i = before; i < wb_json_len(list); i++) {
        wb_json_set_bool(wb_json_at(list, i), "primary", i == before);
        wb_json_set_bool(wb_json_at(list, i), "paired", paired);
    }
}

/* The metric that decides: the one asked for, the plan's first primary one, else throughput. */
static const char *main_metric(const struct wb_ref *r, const struct wb_compare_question *o)
{
    const wb_json *contrasts = wb_json_get(r->plan, "contrasts");

    if (o->metric != NULL)
        return o->metric;
    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        if (wb_json_bool_or(wb_json_at(contrasts, i), "primary", true))
            return wb_json_str_or(wb_json_at(contrasts, i), "metric", NULL);
    return wb_json_string(wb_json_path(wb_json_at(r->runs, 0), "headline.throughput"));
}

static void set_threshold(wb_json *plan, double threshold)
{
    if (!isnan(threshold))
        wb_json_set_real(plan, "threshold_percent", threshold);
}

/* The plan of a whole campaign; a metric asked for decides for each pair of arms. */
static wb_json *whole_campaign(const struct wb_ref *r, const struct wb_compare_question *o)
{
    wb_json *plan = wb_json_copy(r->plan), *picked;
    const wb_json *contrasts = wb_json_get(plan, "contrasts");

    if (o->metric == NULL)
        return plan;
    picked = wb_json_array();
    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        add_pair_of(picked, wb_json_str_or(c, "arm", ""), wb_json_str_or(c, "against", ""),
                    &(struct metrics){o->metric, r->plan, r->runs}, true);
    }
    wb_json_set(plan, "contrasts", picked);
    return plan;
}

/* ---- arms named one by one ---- */

/* A question over several references: a plan made for it, and its runs under the plan's labels. */
struct question {
    wb_json *plan, *runs;
    wb_json *arms, *contrasts; /* borrowed from plan */
    wb_json *notes, *forced;   /* warnings of the guard; fields that --force passed over */
    struct metrics metrics;
    bool one_campaign; /* all references are of one */
};

/* The label of an arm in the answer: its own inside one campaign, else with the campaign as typed.
 * Caller frees. */
static char *answer_label(const struct wb_ref *r, const char *arm, bool one_campaign)
{
    WB_AUTO_FREE char *head = wb_ref_head(r->typed);

    return one_campaign ? wb_strdup(arm) : wb_strf("%s/%s", head, arm);
}

/* Adds an arm and its runs once. */
static void add_arm(struct question *q, const struct wb_ref *r, const char *arm, const char *label)
{
    wb_json *made;

    for (size_t i = 0; i < wb_json_len(q->arms); i++)
        if (strcmp(label_at(q->arms, i), label) == 0)
            return;
    for (size_t i = 0; i < wb_json_len(arms_of(r)); i++) {
        if (strcmp(label_at(arms_of(r), i), arm) != 0)
            continue;
        made = wb_json_copy(wb_json_at(arms_of(r), i));
        wb_json_set_str(made, "label", label);
        wb_json_push(q->arms, made);
    }
    for (size_t i = 0; i < wb_json_len(r->runs); i++) {
        if (strcmp(wb_json_str_or(wb_json_at(r->runs, i), "arm", ""), arm) != 0)
            continue;
        made = wb_json_copy(wb_json_at(r->runs, i));
        wb_json_set_str(made, "arm", label);
        wb_json_push(q->runs, made);
    }
}

static void add_pair(struct question *q, const struct wb_ref *base, const char *base_arm,
                     const struct wb_ref *other, const char *other_arm)
{
    bool paired = strcmp(base->campaign, other->campaign) == 0;
    WB_AUTO_FREE char *a = answer_label(base, base_arm, q->one_campaign);
    WB_AUTO_FREE char *b = answer_label(other, other_arm, q->one_campaign);

    add_arm(q, base, base_arm, a);
    add_arm(q, other, other_arm, b);
    add_pair_of(q->contrasts, b, a, &q->metrics, paired);
}

/* Adds the contrasts of one OTHER against REF: the arms named, or all of the same label. */
static int add_other(struct question *q, const struct wb_ref *base, const struct wb_ref *other,
                     struct wb_err *err)
{
    size_t before = wb_json_len(q->contrasts);

    for (size_t i = 0; i < wb_json_len(arms_of(base)); i++) {
        const char *a = label_at(arms_of(base), i);
        if (base->arm != NULL && strcmp(base->arm, a) != 0)
            continue;
        for (size_t k = 0; k < wb_json_len(arms_of(other)); k++) {
            const char *b = label_at(arms_of(other), k);
            bool named = base->arm != NULL && other->arm != NULL;
            if ((other->arm != NULL && strcmp(other->arm, b) != 0) ||
                (!named && strcmp(a, b) != 0) ||
                (strcmp(base->campaign, other->campaign) == 0 && strcmp(a, b) == 0))
                continue;
            add_pair(q, base, a, other, b);
        }
    }
    if (wb_json_len(q->contrasts) == before)
        return wb_fail(err, WB_INVALID,
                       "%s and %s have no arms to compare: name an arm of each as "
                       "CAMPAIGN/ARM",
                       base->typed, other->typed);
    return 0;
}

static int ask(const struct wb_ref *refs, size_t n, const struct wb_compare_question *o,
               struct question *q, struct wb_err *err)
{
    bool accept_noisy = true;
    int64_t rounds = 0;
    int rc = 0;

    q->plan = wb_json_object();
    q->runs = wb_json_array();
    q->arms = wb_json_array();
    q->contrasts = wb_json_array();
    wb_json_set(q->plan, "arms", q->arms);
    wb_json_set(q->plan, "contrasts", q->contrasts);
    q->metrics = (struct metrics){main_metric(&refs[0], o), refs[0].plan, refs[0].runs};
    if (q->metrics.main == NULL)
        return wb_fail(err, WB_NOT_FOUND,
                       "no run of %s has a throughput; name a metric with "
                       "--metric",
                       refs[0].campaign);
    q->one_campaign = true;
    for (size_t i = 1; i < n; i++)
        q->one_campaign &= strcmp(refs[0].campaign, refs[i].campaign) == 0;
    for (size_t i = 1; i < n && rc == 0; i++)
        rc = add_other(q, &refs[0], &refs[i], err);
    for (size_t i = 1; i < n && rc == 0; i++)
        rc = wb_ref_guard(&refs[0], &refs[i], o->force, NULL, q->notes, q->forced, err);
    for (size_t i = 0; i < n; i++) {
        int64_t planned = wb_json_int_or(refs[i].plan, "rounds", 0);
        accept_noisy &= wb_json_bool_or(refs[i].plan, "accept_noisy", false);
        rounds = planned > rounds ? planned : rounds;
    }
    wb_json_set_str(q->plan, "campaign", refs[0].campaign);
    wb_json_set_str(q->plan, "study", wb_json_str_or(refs[0].plan, "study", NULL));
    wb_json_set_int(q->plan, "rounds", rounds);
    wb_json_set_bool(q->plan, "accept_noisy", accept_noisy);
    wb_json_set_real(q->plan, "threshold_percent",
                     wb_json_real_or(refs[0].plan, "threshold_percent", WB_THRESHOLD_PERCENT));
    return rc;
}

/* ---- the answer ---- */

/* What people noted about the campaigns, each once. */
static void add_remarks(const struct wb_ref *refs, size_t n, wb_json *notes)
{
    for (size_t i = 0; i < n; i++) {
        WB_AUTO_JSON wb_json *remarks = wb_remarks_on(refs[i].annotations, refs[i].campaign);
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= strcmp(refs[k].campaign, refs[i].campaign) == 0;
        for (size_t k = 0; !again && k < wb_json_len(remarks); k++)
            wb_json_push(notes, wb_json_ref(wb_json_at(remarks, k)));
    }
}

static int report_of(const void *question, const struct wb_ref *refs, size_t n, wb_json **out,
                     struct wb_err *err)
{
    const struct wb_compare_question *o = question;
    WB_AUTO_JSON wb_json *notes = wb_json_array(), *forced = wb_json_array();
    struct question q = {.notes = notes, .forced = forced};
    wb_json *report = NULL;
    int rc = 0;

    if (n == 1 && refs[0].arm != NULL)
        return wb_fail(err, WB_INVALID,
                       "'%s' is one arm: name what to compare it with, or the "
                       "campaign alone",
                       refs[0].typed);
    if (o->metric != NULL)
        rc = check_metric(&refs[0], o->metric, err);
    if (rc == 0 && n == 1) {
        q.plan = whole_campaign(&refs[0], o);
        q.runs = wb_json_ref(refs[0].runs);
    } else if (rc == 0) {
        rc = ask(refs, n, o, &q, err);
    }
    if (rc == 0) {
        set_threshold(q.plan, o->threshold_percent);
        rc = wb_campaign_report(q.plan, q.runs, &report, err);
    }
    if (rc == 0) {
        add_remarks(refs, n, notes);
        for (size_t i = 0; i < wb_json_len(notes); i++)
            wb_json_push(wb_json_get(report, "warnings"), wb_json_ref(wb_json_at(notes, i)));
        if (wb_json_len(forced) > 0)
            wb_json_set(report, "forced", WB_STEAL(forced));
        *out = report;
    }
    wb_json_free(q.plan);
    wb_json_free(q.runs);
    return rc;
}

int wb_inquiry_compare(const struct wb_inquiry *j, char *const *typed, size_t n,
                       const struct wb_compare_question *q, wb_json **report, struct wb_err *err)
{
    wb_json *options = wb_json_object();

    wb_json_set_str(options, "metric", q->metric);
    wb_json_set_real(options, "threshold_percent", q->threshold_percent);
    wb_json_set_bool(options, "force", q->force);
    return wb_inquiry_over(j, "compare", typed, n, options, report_of, q, report, err);
}

/* ---- kept answers ---- */

/* References while an answer is made from them. */
struct over {
    const struct wb_inquiry *j;
    struct wb_ref *refs;
    size_t n;
    wb_inquiry_fn *fn;
    const void *question;
};

static int compute(void *arg, wb_json **out, struct wb_err *err)
{
    const struct over *o = arg;
    int rc = wb_refs_load(o->j->store, o->refs, o->n, err);

    return rc == 0 ? o->fn(o->question, o->refs, o->n, out, err) : rc;
}

int wb_inquiry_over(const struct wb_inquiry *j, const char *topic, char *const *typed, size_t n,
                    wb_json *options, wb_inquiry_fn *fn, const void *question, wb_json **out,
                    struct wb_err *err)
{
    WB_AUTO_JSON wb_json *key = options;
    struct over o = {.j = j, .n = n, .fn = fn, .question = question};
    wb_json *of = NULL;
    int rc;

    o.refs = wb_calloc(n, sizeof(*o.refs));
    rc = wb_refs_find(j->store, typed, n, o.refs, err);
    if (rc == 0 && j->cache != NULL)
        of = wb_refs_key(j->store, o.refs, n);
    if (of != NULL)
        wb_json_set(key, "refs", of);
    if (rc == 0)
        rc = wb_cache_compute(of != NULL ? j->cache : NULL, topic, key, compute, &o, out, err);
    for (size_t i = 0; i < n; i++)
        wb_ref_release(&o.refs[i]);
    free(o.refs);
    return rc;
}
