/* What a history says beside its changes: the level that holds now, whether the newest point fits
 * it, and what makes its answers less sure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/history.h"
#include "server/analysis/interval.h"
#include "server/analysis/moments.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"

#define SUSPECT_Z 5.0
#define LEVEL_POINTS 8    /* of a level before a single point is judged by it */
#define SIGMA_SHARE 0.001 /* of the level: noise is never taken for less */
#define DRIFT_POINTS 60   /* the newest ones */
#define DRIFT_LEAST 10
#define DRIFT_PERCENT 5.0
#define DRIFT_P 0.001
#define NOISE_PART 10 /* points on either side of a change of noise */
#define NOISE_P 0.001
#define NOISE_RATIO 2.0
#define MODES_POINTS 20
#define MODES_SHARE 0.15   /* of the points in the smaller mode */
#define MODES_DISTANCE 4.5 /* of the modes, in their standard deviation */

static void add_flag(wb_json *answer, const char *flag)
{
    wb_json_push(wb_json_get(answer, "flags"), wb_json_str(flag));
}

/* ---- the level that holds now ---- */

static size_t level_start(const struct wb_levels *l)
{
    return l->n > 0 ? l->events[l->n - 1].point : 0;
}

/* Spread of a level; that of the one before where it is too young to have its own. */
static double level_sigma(const struct wb_points *p, const struct wb_levels *l, size_t from,
                          size_t to, double centre)
{
    double sigma;

    if (to - from < LEVEL_POINTS && l->n > 0 && from == level_start(l)) {
        size_t before = wb_level_from(l, l->n - 1);
        double old = wb_median_of(p->v + before, from - before);
        sigma = wb_mad_sigma(p->v + before, from - before, old);
        sigma = old != 0 ? sigma * fabs(centre / old) : sigma;
    } else {
        sigma = wb_mad_sigma(p->v + from, to - from, centre);
    }
    return fmax(sigma, SIGMA_SHARE * fabs(centre));
}

static void add_baseline(const struct wb_points *p, const struct wb_levels *l, wb_json *answer)
{
    size_t from = level_start(l);
    wb_json *b;
    double centre;

    if (p->n == 0) {
        wb_json_set_reason(answer, "baseline", "there is no point");
        return;
    }
    b = wb_json_object();
    centre = wb_median_of(p->v + from, p->n - from);
    wb_json_set_int(b, "from", (int64_t)p->at[from]);
    wb_json_set_int(b, "to", (int64_t)p->at[p->n - 1]);
    wb_json_set_int(b, "n", (int64_t)(p->n - from));
    wb_json_set_real(b, "median", centre);
    wb_json_set_real(b, "spread", wb_mad_sigma(p->v + from, p->n - from, centre));
    wb_json_set(answer, "baseline", b);
}

/* Whether point i is far from the level [from, to). */
static bool is_far(const struct wb_history *h, const struct wb_points *p, const struct wb_levels *l,
                   size_t i, size_t to, double *z)
{
    size_t from = level_start(l);
    double centre = wb_median_of(p->v + from, to - from);
    double sigma = level_sigma(p, l, from, to, centre);

    *z = sigma > 0 ? (p->v[i] - centre) / sigma : p->v[i] == centre ? 0 : HUGE_VAL;
    return fabs(*z) > SUSPECT_Z && wb_history_matters(h, centre, p->v[i]);
}

/* The newest point, and the one before when both are off: one bad night or the first of many. */
static void add_last_point(const struct wb_history *h, const struct wb_points *p,
                           const struct wb_levels *l, wb_json *answer)
{
    size_t from = level_start(l), have = p->n - from, skip = have >= LEVEL_POINTS + 2 ? 2 : 1, to;
    bool young = l->n > 0 && wb_level_from(l, l->n - 1) + LEVEL_POINTS <= from && have >= 4;
    wb_json *suspects = wb_json_array();
    double z = 0, z_before = 0;

    wb_json_set_str(answer, "last_point", "ok");
    if (have < LEVEL_POINTS + 1 && !young) {
        wb_json_set_reason(answer, "last_z", "the level has fewer than 8 points before it");
        wb_json_set(answer, "suspects", suspects);
        return;
    }
    to = p->n - skip;
    if (is_far(h, p, l, p->n - 1, to, &z)) {
        wb_json_set_str(answer, "last_point", "suspect");
        if (skip == 2 && is_far(h, p, l, p->n - 2, to, &z_before) && z * z_before > 0)
            wb_json_push(suspects, wb_json_int((int64_t)p->at[p->n - 2]));
        wb_json_push(suspects, wb_json_int((int64_t)p->at[p->n - 1]));
    }
    if (isfinite(z))
        wb_json_set_real(answer, "last_z", z);
    else
        wb_json_set_reason(answer, "last_z", "the level has no spread");
    wb_json_set(answer, "suspects", suspects);
}

/* ---- slopes ---- */

static void add_drift(const struct wb_points *p, const struct wb_levels *l, wb_json *answer)
{
    size_t from = level_start(l), n = p->n - from;
    double centre, percent;
    bool flagged = l->slope;

    if (l->slope) {
        wb_json *slope = wb_json_object();
        wb_json_set_int(slope, "from", (int64_t)p->at[l->slope_from]);
        wb_json_set_real(slope, "percent", l->slope_percent);
        wb_json_set(answer, "slope", slope);
    } else {
        wb_json_set_reason(answer, "slope", "the newest nights are no slope");
    }
    if (n > DRIFT_POINTS) {
        from = p->n - DRIFT_POINTS;
        n = DRIFT_POINTS;
    }
    centre = n > 0 ? wb_median_of(p->v + from, n) : 0;
    if (n < DRIFT_LEAST || centre == 0) {
        wb_json_set_reason(answer, "drift_percent",
                           n < DRIFT_LEAST ? "the level has fewer than 10 points"
                                           : "the level is 0: there is no share of it");
    } else {
        percent = 100 * wb_theil_sen(NULL, p->v + from, n) * (double)(n - 1) / fabs(centre);
        wb_json_set_real(answer, "drift_percent", percent);
        flagged |= fabs(percent) > DRIFT_PERCENT && wb_mann_kendall(p->v + from, n) < DRIFT_P;
    }
    if (flagged)
        add_flag(answer, "drift");
}

/* ---- noise ---- */

/* Distance of each point from its level. Owned. */
static double *distances(const struct wb_points *p, const struct wb_levels *l)
{
    double *d = wb_calloc(p->n, sizeof(double));
    size_t from = 0;

    for (size_t k = 0; k <= l->n; k++) {
        size_t to = k < l->n ? l->events[k].point : p->n;
        double centre = to > from ? wb_median_of(p->v + from, to - from) : 0;
        for (size_t i = from; i < to; i++)
            d[i] = fabs(p->v[i] - centre);
        from = to;
    }
    return d;
}

/* Pettitt's test for one change among n values; *at is the first behind it. Approximate p. */
static double pettitt(const double *v, size_t n, size_t *at)
{
    double sum = 0, top = 0, m = (double)n;

    for (size_t t = 0; t + 1 < n; t++) {
        for (size_t i = 0; i < n; i++)
            sum += (v[i] > v[t]) - (v[i] < v[t]);
        if (fabs(sum) > top && t + 1 >= NOISE_PART && n - t - 1 >= NOISE_PART) {
            top = fabs(sum);
            *at = t + 1;
        }
    }
    return fmin(1, 2 * exp(-6 * top * top / (m * m * m + m * m)));
}

static void add_noise(const struct wb_points *p, const struct wb_levels *l, wb_json *answer)
{
    WB_AUTO_FREE double *d = distances(p, l);
    double before, after;
    size_t at = 0;
    wb_json *o;

    if (p->n < 2 * NOISE_PART || pettitt(d, p->n, &at) >= NOISE_P || at == 0)
        return;
    before = wb_mad_sigma(d, at, 0);
    after = wb_mad_sigma(d + at, p->n - at, 0);
    if (after < NOISE_RATIO * before && before < NOISE_RATIO * after)
        return;
    o = wb_json_object();
    wb_json_set_int(o, "index", (int64_t)p->at[at]);
    wb_json_set_real(o, "before", before);
    wb_json_set_real(o, "after", after);
    wb_json_set(answer, "noise_change", o);
    add_flag(answer, "noise-changed");
}

/* Two groups of values with a gap between them (Ashman's distance of the best division): the
 * distance of their means, 0 when there are none. */
static double mode_distance(const double *v, size_t n)
{
    WB_AUTO_FREE double *s = wb_calloc(n, sizeof(double));
    size_t least = (size_t)ceil(MODES_SHARE * (double)n);
    double top = MODES_DISTANCE, found = 0;

    memcpy(s, v, n * sizeof(double));
    wb_sort_values(s, n);
    for (size_t k = least; k + least <= n; k++) {
        double spread = sqrt((wb_variance(s, k) + wb_variance(s + k, n - k)) / 2);
        double gap = wb_mean(s + k, n - k) - wb_mean(s, k);
        if (gap > top * spread) {
            top = spread > 0 ? gap / spread : HUGE_VAL;
            found = gap;
        }
    }
    return found;
}

static void add_modes(const struct wb_history *h, const struct wb_points *p,
                      const struct wb_levels *l, wb_json *answer)
{
    size_t from = level_start(l), n = p->n - from;
    double centre, gap;

    if (n < MODES_POINTS)
        return;
    centre = wb_median_of(p->v + from, n);
    gap = mode_distance(p->v + from, n);
    /* Counters with two neighbouring values have modes, too, but none that matter. */
    if (gap > 0 && wb_history_matters(h, centre, centre + gap))
        add_flag(answer, "multi-modal");
}

static void add_outliers(const struct wb_points *p, wb_json *answer)
{
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < p->nwild; i++)
        wb_json_push(out, wb_json_int((int64_t)p->wild[i]));
    wb_json_set(answer, "outliers", out);
}

void wb_history_state(const struct wb_history *h, const struct wb_points *p,
                      const struct wb_levels *l, wb_json *answer, wb_json *warnings)
{
    add_outliers(p, answer);
    add_last_point(h, p, l, answer);
    wb_json_set(answer, "flags", wb_json_array());
    add_drift(p, l, answer);
    if (p->n >= WB_HISTORY_LEAST) {
        add_noise(p, l, answer);
        add_modes(h, p, l, answer);
    }
    if (l->autocorrelated) {
        add_flag(answer, "autocorrelated");
        wb_analysis_warn(warnings, "autocorrelated",
                         "neighbouring nights hang together (correlation %.2f): changes are less "
                         "sure, a control configuration run every night would tell more",
                         l->correlation);
    }
    if (l->unstable) {
        add_flag(answer, "unstable");
        wb_analysis_warn(warnings, "unstable",
                         "a change was left out because its two levels overlap: fewer than 80 %% "
                         "of the pairs of nights are in order");
    }
    add_baseline(p, l, answer);
}
