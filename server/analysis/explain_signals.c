/* Signals of runs, ranked by how they moved with a metric. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/adjust.h"
#include "server/analysis/effect.h"
#include "server/analysis/explain.h"
#include "server/base/mem.h"

#define SIGNALS_MAX 2000
#define SHOWN_MAX 200
#define DEPTH_MAX 10
#define RHO_LEAST 0.5 /* below it a shift is no movement with the metric */

struct signal {
    char *name;
    double *v; /* by run: those of side 0, then those of side 1 */
    struct wb_effect effect;
    double rho, q;
    bool moved, follows;
};

struct signals {
    struct signal *v;
    size_t n, cap, runs;
    bool full;
};

static struct signal *signal_of(struct signals *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, name) == 0)
            return &all->v[i];
    if (all->n == SIGNALS_MAX) {
        all->full = true;
        return NULL;
    }
    wb_grow(&all->v, &all->cap, all->n + 1, sizeof(*all->v));
    all->v[all->n] =
        (struct signal){.name = wb_strdup(name), .v = wb_calloc(all->runs, sizeof(double))};
    for (size_t i = 0; i < all->runs; i++)
        all->v[all->n].v[i] = NAN;
    return &all->v[all->n++];
}

/* Instances of a run add up: what the database as a whole did. */
static void add_value(struct signals *all, const char *name, size_t run, double value)
{
    struct signal *s = isfinite(value) ? signal_of(all, name) : NULL;

    if (s != NULL)
        s->v[run] = isnan(s->v[run]) ? value : s->v[run] + value;
}

/* Numbers of a document; {mean, max} is its mean. */
static void add_numbers(struct signals *all, const char *name, const wb_json *j, size_t run,
                        int depth)
{
    if (wb_json_is_number(j)) {
        add_value(all, name, run, wb_json_number(j, NAN));
    } else if (wb_json_is_number(wb_json_get(j, "mean"))) {
        add_value(all, name, run, wb_json_real_or(j, "mean", NAN));
    } else if (wb_json_type(j) == WB_JSON_OBJECT && depth < DEPTH_MAX) {
        for (void *it = wb_json_first(j); it; it = wb_json_next(j, it)) {
            WB_AUTO_FREE char *inner = wb_strf("%s.%s", name, wb_json_iter_key(it));
            add_numbers(all, inner, wb_json_iter_value(it), run, depth + 1);
        }
    }
}

static void add_phase(struct signals *all, const wb_json *phase, size_t run)
{
    static const char *const of_load[] = {"client",         "little_ratio", "failed",
                                          "misses",         "late_replies", "waited_for_slot",
                                          "backlog_at_end", "dropped",      "censored"};
    const char *name = wb_json_str_or(phase, "name", "phase");
    const wb_json *load = wb_json_get(phase, "load");
    WB_AUTO_FREE char *samples = wb_strf("%s.host", name);

    add_numbers(all, samples, wb_json_get(phase, "samples"), run, 0);
    for (size_t i = 0; i < WB_LEN(of_load); i++) {
        WB_AUTO_FREE char *key = wb_strf("%s.load.%s", name, of_load[i]);
        add_numbers(all, key, wb_json_get(load, of_load[i]), run, 0);
    }
}

static void add_run(struct signals *all, const wb_json *result, size_t run)
{
    const wb_json *phases = wb_json_get(result, "phases"), *server = wb_json_get(result, "server");

    for (size_t i = 0; i < wb_json_len(phases); i++)
        add_phase(all, wb_json_at(phases, i), run);
    for (size_t i = 0; i < wb_json_len(server); i++)
        add_numbers(all, "database", wb_json_get(wb_json_at(server, i), "metrics"), run, 0);
    add_numbers(all, "canary", wb_json_get(result, "canary"), run, 0);
}

/* ---- movement ---- */

struct ranked {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;

    return (x > y) - (x < y);
}

/* Doubled mid-ranks. */
static void ranks_of(const double *v, size_t n, double *out)
{
    struct ranked *r = wb_calloc(n, sizeof(*r));

    for (size_t i = 0; i < n; i++)
        r[i] = (struct ranked){v[i], i};
    qsort(r, n, sizeof(*r), by_value);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r[end].value == r[i].value; end++)
            ;
        for (size_t k = i; k < end; k++)
            out[r[k].at] = (double)(i + 1 + end);
    }
    free(r);
}

/* Spearman's rank correlation, NaN when one of the two never changes. */
static double spearman(const double *x, const double *y, size_t n)
{
    WB_AUTO_FREE double *a = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE double *b = wb_calloc(n, sizeof(double));
    double mean = (double)n + 1, xy = 0, xx = 0, yy = 0;

    ranks_of(x, n, a);
    ranks_of(y, n, b);
    for (size_t i = 0; i < n; i++) {
        xy += (a[i] - mean) * (b[i] - mean);
        xx += (a[i] - mean) * (a[i] - mean);
        yy += (b[i] - mean) * (b[i] - mean);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

static double correlation(const struct signal *s, const double *metric, size_t n)
{
    WB_AUTO_FREE double *x = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE double *y = wb_calloc(n, sizeof(double));
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(s->v[i]) || isnan(metric[i]))
            continue;
        x[m] = s->v[i];
        y[m++] = metric[i];
    }
    return m > 2 ? spearman(x, y, m) : NAN;
}

static void shift_of(struct signal *s, const struct wb_explain_pairs *p, size_t first)
{
    WB_AUTO_FREE double *base = wb_calloc(p->n[0], sizeof(double));
    WB_AUTO_FREE double *other = wb_calloc(p->n[1], sizeof(double));
    struct wb_effect_input in = {.base = base,
                                 .other = other,
                                 .paired = p->paired,
                                 .threshold_percent = WB_THRESHOLD_PERCENT,
                                 .least = p->paired ? WB_PAIRED_MIN : WB_UNPAIRED_MIN};

    for (size_t i = 0; i < p->n[0] || i < p->n[1]; i++) {
        double a = i < p->n[0] ? s->v[p->at[0][i]] : NAN;
        double b = i < p->n[1] ? s->v[first + p->at[1][i]] : NAN;
        if (!isnan(a) && (!p->paired || !isnan(b)))
            base[in.nbase++] = a;
        if (!isnan(b) && (!p->paired || !isnan(a)))
            other[in.nother++] = b;
    }
    wb_effect_of(&in, &s->effect);
}

static double strength(const struct signal *s)
{
    return isnan(s->rho) ? 0 : fabs(s->rho);
}

/* Moved before not, the work itself last of those; then by correlation, shift and name. */
static int by_rank(const void *a, const void *b)
{
    const struct signal *x = a, *y = b;
    int class_x = x->moved ? x->follows ? 1 : 0 : 2, class_y = y->moved ? y->follows ? 1 : 0 : 2;
    double p = x->effect.have_change ? x->effect.test.p : 1;
    double q = y->effect.have_change ? y->effect.test.p : 1;

    if (class_x != class_y)
        return class_x - class_y;
    if (strength(x) != strength(y))
        return strength(x) < strength(y) ? 1 : -1;
    if (p != q)
        return p < q ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool overlap(const struct wb_effect *a, const struct wb_effect *b)
{
    return a->scale == WB_RATIO && b->scale == WB_RATIO && a->interval.have && b->interval.have &&
           a->interval.lo <= b->interval.hi && b->interval.lo <= a->interval.hi;
}

static void judge(struct signals *all, const struct wb_effect *metric)
{
    WB_AUTO_FREE double *q = wb_calloc(all->n, sizeof(double));

    for (size_t i = 0; i < all->n; i++) {
        const struct wb_effect *e = &all->v[i].effect;
        bool testable =
            e->have_change && e->test.defined && e->n[0] >= e->least && e->n[1] >= e->least;
        q[i] = testable ? e->test.p : NAN;
    }
    wb_adjust(q, all->n, q);
    for (size_t i = 0; i < all->n; i++) {
        struct signal *s = &all->v[i];
        s->q = q[i];
        s->moved = q[i] <= WB_FDR && strength(s) >= RHO_LEAST;
        s->follows = s->moved && metric->decisive && overlap(&s->effect, metric);
    }
}

static void set_or_reason(wb_json *o, const char *key, double v, const char *reason)
{
    if (isfinite(v))
        wb_json_set_real(o, key, v);
    else
        wb_json_set_reason(o, key, reason);
}

static wb_json *signal_json(const struct signal *s)
{
    const struct wb_effect *e = &s->effect;
    wb_json *o = wb_json_object();
    const char *change = e->scale == WB_RATIO ? "ratio" : "difference";

    wb_json_set_str(o, "name", s->name);
    set_or_reason(o, "median_base", e->n[0] > 0 ? e->median[0] : NAN, "no values");
    set_or_reason(o, "median_new", e->n[1] > 0 ? e->median[1] : NAN, "no values");
    set_or_reason(o, change, e->have_change ? e->estimate : NAN, "a side has no values");
    set_or_reason(o, "p", e->have_change && e->test.defined ? e->test.p : NAN, "nothing changed");
    set_or_reason(o, "q", s->q, "not tested");
    set_or_reason(o, "rho", s->rho, "fewer than 3 runs, or no change at all");
    wb_json_set_bool(o, "moved", s->moved);
    wb_json_set_bool(o, "follows", s->follows);
    return o;
}

static void collect(const struct wb_explain_side sides[2], const char *metric, struct signals *all,
                    double *metrics)
{
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s].n; i++) {
            size_t run = s == 0 ? i : sides[0].n + i;
            metrics[run] = wb_explain_metric(sides[s].runs[i].summary, metric);
            add_run(all, sides[s].runs[i].result, run);
        }
}

void wb_explain_signals(const struct wb_explain_side sides[2], const char *metric,
                        const struct wb_effect *effect, wb_json *answer)
{
    struct signals all = {.runs = sides[0].n + sides[1].n};
    WB_AUTO_FREE double *metrics = wb_calloc(all.runs, sizeof(double));
    wb_json *list = wb_json_array(), *warnings = wb_json_get(answer, "warnings");
    struct wb_explain_pairs p;

    collect(sides, metric, &all, metrics);
    wb_explain_pair(sides, &p);
    for (size_t i = 0; i < all.n; i++) {
        all.v[i].rho = correlation(&all.v[i], metrics, all.runs);
        shift_of(&all.v[i], &p, sides[0].n);
    }
    judge(&all, effect);
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(*all.v), by_rank);
    for (size_t i = 0; i < all.n && i < SHOWN_MAX; i++)
        wb_json_push(list, signal_json(&all.v[i]));
    wb_json_set(answer, "signals", list);
    wb_json_set_int(answer, "signals_all", (int64_t)all.n);
    if (all.n == 0)
        wb_analysis_warn(warnings, "no-signals", "the records hold no samples");
    if (all.full)
        wb_analysis_warn(warnings, "many-signals", "only %d signals were looked at", SIGNALS_MAX);
    if (effect->n[0] < effect->least || effect->n[1] < effect->least)
        wb_analysis_warn(warnings, "few-values",
                         "signals are ranked, but not tested: that takes %zu %s", effect->least,
                         effect->paired ? "complete rounds" : "runs a side");
    for (size_t i = 0; i < all.n; i++) {
        free(all.v[i].name);
        free(all.v[i].v);
    }
    free(all.v);
    wb_explain_pairs_release(&p);
}
