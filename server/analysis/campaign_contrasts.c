/* The contrasts of a campaign: pairs of figures, families of tests, verdicts. */
#include "server/analysis/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/adjust.h"
#include "server/analysis/effect.h"

struct contrast {
    const char *name, *about, *metric, *better; /* borrowed */
    int arm, against;
    bool primary, paired;
    double threshold_percent;
    struct wb_effect effect;
    /* With planned looks: */
    size_t look; /* from 1: the one that decided, or the last; 0 none yet */
    bool decided;
    double p_looks; /* one p-value for the looks so far, NaN without */
    size_t all_n;   /* rounds of both, also after that look */
    double all_estimate;
};

/* What of a campaign is looked at. */
struct view {
    int64_t upto; /* its last round */
    double alpha; /* of intervals */
    size_t least;
};

static enum wb_better better_of(const char *word)
{
    if (word == NULL)
        return WB_BETTER_UNKNOWN;
    return strcmp(word, "higher") == 0  ? WB_BETTER_HIGHER
           : strcmp(word, "lower") == 0 ? WB_BETTER_LOWER
                                        : WB_BETTER_UNKNOWN;
}

/* Pairs are rounds in which both arms have the figure; unpaired takes what each arm has. */
static void compute(const struct wb_report *rep, const struct contrast *c, const struct view *view,
                    struct wb_effect *out)
{
    size_t n = rep->counted.nslots;
    WB_AUTO_FREE double *base = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE double *other = wb_calloc(n, sizeof(double));
    struct wb_effect_input in = {
        .base = base,
        .other = other,
        .paired = c->paired,
        .better = better_of(c->better),
        .threshold_percent = c->threshold_percent,
        .least = view->least,
        .alpha = view->alpha,
    };

    for (size_t s = 0; s < n; s++) {
        const struct wb_counted_run *a = wb_report_run(rep, s, c->against),
                                    *b = wb_report_run(rep, s, c->arm);
        double x = a ? wb_report_value(a, c->metric) : NAN,
               y = b ? wb_report_value(b, c->metric) : NAN;
        if (rep->counted.slots[s].round > view->upto || (c->paired && (isnan(x) || isnan(y))))
            continue;
        if (!isnan(x) && in.nbase < WB_VALUES_MAX)
            base[in.nbase++] = x;
        if (!isnan(y) && in.nother < WB_VALUES_MAX)
            other[in.nother++] = y;
    }
    wb_effect_of(&in, out);
}

static bool is_testable(const struct wb_effect *e)
{
    return e->have_change && e->test.defined && e->n[0] >= e->least && e->n[1] >= e->least;
}

/* One family: q of those that could be tested, verdicts by q. */
static void judge(struct contrast *v, size_t n, bool primary)
{
    WB_AUTO_FREE double *q = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++) {
        const struct wb_effect *e = &v[i].effect;
        q[i] = is_testable(e) && v[i].primary == primary ? e->test.p : NAN;
    }
    wb_adjust(q, n, q);
    for (size_t i = 0; i < n; i++)
        if (v[i].primary == primary)
            wb_effect_judge(&v[i].effect, q[i]);
}

static void judge_all(const struct wb_report *rep, struct contrast *v, size_t n)
{
    const struct view all = {.upto = INT64_MAX, .alpha = WB_ALPHA, .least = WB_PAIRED_MIN};

    for (size_t i = 0; i < n; i++)
        compute(rep, &v[i], &all, &v[i].effect);
    judge(v, n, true);
    judge(v, n, false);
}

/* ---- planned looks ---- */

static bool is_settled(const struct wb_effect *e)
{
    return e->verdict != WB_V_INSUFFICIENT && e->verdict != WB_V_INCONCLUSIVE;
}

/* One more look: what it decides stays. */
static void take_look(const struct wb_report *rep, size_t look, struct contrast *v, size_t n)
{
    const struct wb_report_look *l = &rep->looks.v[look];
    const struct view view = {.upto = l->rounds, .alpha = l->alpha, .least = WB_PAIRED_MIN};
    struct wb_effect *now = wb_calloc(n, sizeof(*now));
    WB_AUTO_FREE double *q = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++) {
        compute(rep, &v[i], &view, &now[i]);
        if (is_testable(&now[i])) {
            double p = fmin(1, now[i].test.p * WB_ALPHA / l->alpha);
            v[i].p_looks = fmin(v[i].p_looks, p); /* fmin leaves a NaN out */
        }
    }
    for (int primary = 0; primary < 2; primary++) {
        for (size_t i = 0; i < n; i++)
            q[i] = v[i].primary == primary ? v[i].p_looks : NAN;
        wb_adjust(q, n, q);
        for (size_t i = 0; i < n; i++) {
            if (v[i].primary != primary || v[i].decided)
                continue;
            wb_effect_judge(&now[i], q[i]);
            v[i].effect = now[i];
            v[i].look = look + 1;
            v[i].decided = is_settled(&now[i]);
        }
    }
    free(now);
}

static void take_looks(const struct wb_report *rep, struct contrast *v, size_t n)
{
    const struct wb_report_looks *l = &rep->looks;
    const struct view all = {.upto = INT64_MAX, .alpha = WB_ALPHA, .least = WB_PAIRED_MIN};

    for (size_t i = 0; i < n; i++) {
        struct wb_effect e;
        v[i].p_looks = NAN;
        compute(rep, &v[i], &all, &e);
        v[i].all_n = e.n[0] < e.n[1] ? e.n[0] : e.n[1];
        v[i].all_estimate = e.have_change ? e.estimate : NAN;
        if (l->taken == 0) {
            /* What there is may be shown, but judging it before its time would be one look more. */
            const struct view early = {
                .upto = INT64_MAX, .alpha = l->v[0].alpha, .least = (size_t)l->v[0].rounds};
            compute(rep, &v[i], &early, &v[i].effect);
            v[i].effect.verdict = WB_V_INSUFFICIENT;
            v[i].effect.rounds_needed = early.least;
        }
    }
    for (size_t k = 0; k < l->taken; k++)
        take_look(rep, k, v, n);
}

/* Which look a verdict is of, and what came after it. */
static void set_look(const struct wb_report *rep, const struct contrast *c, wb_json *o)
{
    wb_json *look, *all = wb_json_object();

    if (c->look == 0) {
        wb_json_set_reason(o, "look", "no planned look has been taken yet");
    } else {
        look = wb_json_object();
        wb_json_set_int(look, "number", (int64_t)c->look);
        wb_json_set_int(look, "of", (int64_t)rep->looks.n);
        wb_json_set_int(look, "rounds", rep->looks.v[c->look - 1].rounds);
        wb_json_set_real(look, "alpha", rep->looks.v[c->look - 1].alpha);
        wb_json_set_bool(look, "decided", c->decided);
        if (isnan(c->p_looks))
            wb_json_set_reason(look, "p", "not tested");
        else
            wb_json_set_real(look, "p", c->p_looks);
        wb_json_set(o, "look", look);
    }
    wb_json_set_int(all, "n", (int64_t)c->all_n);
    if (isnan(c->all_estimate))
        wb_json_set_reason(all, "estimate", "an arm has no values");
    else
        wb_json_set_real(all, "estimate", c->all_estimate);
    wb_json_set(o, "all_rounds", all);
}

/* ---- JSON ---- */

/* "limited by client" is no property of the database, so that no difference says nothing. */
static void doubt_limited(const struct contrast *c, const wb_json *limited, wb_json *o)
{
    WB_AUTO_FREE char *text = NULL;
    const char *by = wb_json_str_or(wb_json_at(limited, 0), "by", "");

    if (wb_json_len(limited) == 0 ||
        (c->effect.verdict != WB_V_EQUIVALENT && c->effect.verdict != WB_V_NEGLIGIBLE))
        return;
    text = wb_strf("not decided: no difference was seen, but the figure was limited by the %s, "
                   "not by the database",
                   by);
    wb_json_set_str(o, "verdict", "inconclusive");
    wb_json_set_str(o, "sentence", text);
    wb_json_set_reason(o, "rounds_needed", "more rounds do not lift the limit");
}

static wb_json *contrast_json(const struct wb_report *rep, const struct contrast *c)
{
    const wb_json *arms = wb_json_get(rep->plan, "arms");
    wb_json *o = wb_json_object(), *limited = wb_json_array();

    wb_json_set_str(o, "name", c->name);
    wb_json_set_str(o, "about", c->about);
    wb_json_set_str(o, "arm", wb_json_str_or(wb_json_at(arms, (size_t)c->arm), "label", ""));
    wb_json_set_str(o, "against",
                    wb_json_str_or(wb_json_at(arms, (size_t)c->against), "label", ""));
    wb_json_set_str(o, "metric", c->metric);
    wb_json_set_str(o, "unit", wb_report_word(rep, c->arm, c->metric, "unit"));
    wb_json_set_str(o, "better", c->better);
    wb_json_set_bool(o, "primary", c->primary);
    wb_effect_json(&c->effect, o);
    if (isnan(c->effect.q))
        wb_json_set_reason(o, "q", "not tested");
    if (rep->looks.n > 0)
        set_look(rep, c, o);
    wb_report_limits(rep, c->against, c->metric, limited);
    wb_report_limits(rep, c->arm, c->metric, limited);
    doubt_limited(c, limited, o);
    wb_json_set(o, "limited", limited);
    return o;
}

/* Tails of latency vary more from run to run, so less of a change matters there. */
static double default_threshold(const struct wb_report *rep, const char *metric)
{
    double least = 0;

    if (wb_ends_with(metric, ".p99_9_ms") || wb_ends_with(metric, ".p99_99_ms") ||
        wb_ends_with(metric, ".max_ms"))
        least = 10;
    else if (wb_ends_with(metric, "_ms"))
        least = 5;
    return rep->threshold_percent > least ? rep->threshold_percent : least;
}

static int read_contrast(const struct wb_report *rep, size_t i, struct contrast *out,
                         struct wb_err *err)
{
    const wb_json *j = wb_json_at(wb_json_get(rep->plan, "contrasts"), i);
    const char *arm = wb_json_str_or(j, "arm", NULL), *against = wb_json_str_or(j, "against", NULL);

    *out = (struct contrast){
        .name = wb_json_str_or(j, "name", ""),
        .about = wb_json_str_or(j, "about", ""),
        .metric = wb_json_str_or(j, "metric", NULL),
        .better = wb_json_str_or(j, "better", NULL),
        .arm = wb_plan_arm(rep->plan, arm),
        .against = wb_plan_arm(rep->plan, against),
        .primary = wb_json_bool_or(j, "primary", true),
        .paired = wb_json_bool_or(j, "paired", true),
    };
    if (out->arm < 0 || out->against < 0)
        return wb_fail(err, WB_INVALID,
                       "/contrasts/%zu: arm '%s' against '%s': there is no such "
                       "arm in the plan",
                       i, arm ? arm : "", against ? against : "");
    if (out->metric == NULL)
        return wb_fail(err, WB_INVALID, "/contrasts/%zu/metric: is missing", i);
    if (out->better == NULL)
        out->better = wb_report_word(rep, out->arm, out->metric, "better");
    out->threshold_percent =
        out->primary ? rep->threshold_percent : default_threshold(rep, out->metric);
    return 0;
}

struct contrasts {
    struct contrast *v;
    size_t n, cap;
};

static void add_contrast(struct contrasts *list, const struct contrast *c)
{
    wb_grow(&list->v, &list->cap, list->n + 1, sizeof(*list->v));
    list->v[list->n++] = *c;
}

static bool is_listed(const struct contrasts *list, const struct contrast *c)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].arm == c->arm && list->v[i].against == c->against &&
            strcmp(list->v[i].metric, c->metric) == 0)
            return true;
    return false;
}

/* Where the plan lists primary metrics only: every other metric that both arms of a contrast have,
 * with a known direction. */
static void add_other_metrics(const struct wb_report *rep, const wb_json *arms,
                              struct contrasts *list)
{
    size_t planned = list->n;

    for (size_t i = 0; i < planned; i++)
        if (!list->v[i].primary)
            return;
    for (size_t i = 0; i < planned; i++) {
        struct contrast c = list->v[i];
        const wb_json *of_arm = wb_json_get(wb_json_at(arms, (size_t)c.arm), "metrics");
        const wb_json *of_against = wb_json_get(wb_json_at(arms, (size_t)c.against), "metrics");
        for (void *it = wb_json_first(of_arm); it; it = wb_json_next(of_arm, it)) {
            c.metric = wb_json_iter_key(it);
            c.better = wb_json_str_or(wb_json_iter_value(it), "better", NULL);
            c.primary = false;
            c.threshold_percent = default_threshold(rep, c.metric);
            if (better_of(c.better) != WB_BETTER_UNKNOWN &&
                wb_json_get(of_against, c.metric) != NULL && !is_listed(list, &c))
                add_contrast(list, &c);
        }
    }
}

int wb_report_contrasts(const struct wb_report *rep, const wb_json *arms, wb_json *out,
                        struct wb_err *err)
{
    const wb_json *planned = wb_json_get(rep->plan, "contrasts");
    struct contrasts list = {.n = 0};
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(planned) && rc == 0; i++) {
        struct contrast c;
        rc = read_contrast(rep, i, &c, err);
        if (rc == 0)
            add_contrast(&list, &c);
    }
    if (rc == 0) {
        add_other_metrics(rep, arms, &list);
        if (rep->looks.n > 0)
            take_looks(rep, list.v, list.n);
        else
            judge_all(rep, list.v, list.n);
        for (size_t i = 0; i < list.n; i++)
            wb_json_push(out, contrast_json(rep, &list.v[i]));
    }
    free(list.v);
    return rc;
}
