/* The shape of a run: levels, stalls, periods, and what class they make. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/interval.h"
#include "server/analysis/intervals.h"
#include "server/analysis/robust.h"
#include "server/analysis/segment.h"
#include "server/base/mem.h"

#define SAME_SHARE 0.03 /* levels that differ by less are the same */
#define LEVEL_SECONDS 10.0
#define STALL_SECONDS 15.0
#define STALL_SHARE 0.10 /* of the run: a stall may last so long, too */
#define PENALTY 5.0      /* times s^2 ln n */
#define SLOPE_P 0.01
#define MATTERS_SHARE 0.01 /* of the mean that a cut by MSER-5 must move */
#define BATCH 5
#define PERIOD_LEAST 3    /* intervals */
#define PERIOD_R 0.4      /* correlation at the period */
#define PERIOD_RISE 0.5   /* and how far above the lowest one before it */
#define PERIOD_AGAIN 0.25 /* and at twice the period */

static double median_length(const struct wb_intervals *v)
{
    return wb_median_of(v->seconds, v->n);
}

static bool same_rate(double a, double reference)
{
    return fabs(a - reference) <= SAME_SHARE * fabs(reference);
}

/* ---- levels ---- */

static struct wb_level level_of(const struct wb_intervals *v, size_t first, size_t n)
{
    struct wb_intervals part = {
        .from = v->from + first, .seconds = v->seconds + first, .rate = v->rate + first, .n = n};

    return (struct wb_level){.from = v->from[first],
                             .to = wb_intervals_end(&part),
                             .mean = wb_intervals_mean(&part),
                             .first = first,
                             .n = n};
}

static void find_levels(const struct wb_intervals *v, struct wb_shape *s)
{
    double length = median_length(v), sigma = wb_diff_sigma(v->rate, v->n);
    size_t least = (size_t)fmax(1, ceil(LEVEL_SECONDS / length - 1e-9));
    WB_AUTO_FREE double *weights = wb_calloc(v->n, sizeof(double));
    WB_AUTO_FREE size_t *starts = wb_calloc(v->n, sizeof(size_t));
    double floor = 1e-6 * fabs(wb_median_of(v->rate, v->n));

    for (size_t i = 0; i < v->n; i++)
        weights[i] = v->seconds[i] / length;
    sigma = fmax(sigma, floor);
    s->nlevels = wb_segment(v->rate, weights, v->n, least,
                            PENALTY * sigma * sigma * log((double)v->n), starts);
    s->levels = wb_calloc(s->nlevels, sizeof(*s->levels));
    for (size_t k = 0; k < s->nlevels; k++) {
        size_t end = k + 1 < s->nlevels ? starts[k + 1] : v->n;
        s->levels[k] = level_of(v, starts[k], end - starts[k]);
    }
}

/* Joins levels k and k + 1. */
static void join_levels(const struct wb_intervals *v, struct wb_shape *s, size_t k)
{
    s->levels[k] = level_of(v, s->levels[k].first, s->levels[k].n + s->levels[k + 1].n);
    memmove(s->levels + k + 1, s->levels + k + 2, (s->nlevels - k - 2) * sizeof(*s->levels));
    s->nlevels--;
}

/* Neighbours that are both as good as the last level become one. Those before are left as they are:
 * small steps may add up. */
static void join_same(const struct wb_intervals *v, struct wb_shape *s)
{
    double reference = s->levels[s->nlevels - 1].mean;

    for (size_t k = 0; k + 1 < s->nlevels;)
        if (same_rate(s->levels[k].mean, reference) && same_rate(s->levels[k + 1].mean, reference))
            join_levels(v, s, k);
        else
            k++;
}

/* The intervals of a low level that are nearer to its lowest one than to what is around it. */
static struct wb_level stall_of(const struct wb_intervals *v, const struct wb_level *l,
                                double around)
{
    double lowest = l->mean;
    size_t a = l->first, b = l->first + l->n;

    for (size_t i = a; i < b; i++)
        lowest = v->rate[i] < lowest ? v->rate[i] : lowest;
    while (a + 1 < b && v->rate[a] > (lowest + around) / 2)
        a++;
    while (b - 1 > a && v->rate[b - 1] > (lowest + around) / 2)
        b--;
    return level_of(v, a, b - a);
}

/* Short low levels between equal ones are put aside, and their neighbours joined. The joined level
 * has the mean of its two parts, without the stall. */
static void take_out_stalls(const struct wb_intervals *v, struct wb_shape *s)
{
    double longest = fmax(fmax(STALL_SECONDS, 1.5 * median_length(v)),
                          STALL_SHARE * (wb_intervals_end(v) - v->from[0]));

    s->stalls = wb_calloc(s->nlevels, sizeof(*s->stalls));
    for (size_t k = 1; k + 1 < s->nlevels;) {
        struct wb_level *l = &s->levels[k];
        double before = l[-1].mean, after = l[1].mean;
        double a = l[-1].to - l[-1].from, b = l[1].to - l[1].from;
        if (!(l->to - l->from < longest) || !same_rate(before, after) || l->mean >= before ||
            same_rate(l->mean, before)) {
            k++;
            continue;
        }
        s->stalls[s->nstalls++] = stall_of(v, l, after);
        join_levels(v, s, k - 1);
        join_levels(v, s, k - 1);
        s->levels[k - 1].mean = (a * before + b * after) / (a + b);
    }
}

/* A short last level that is off is the end of the load, not of the steady state. */
static void take_out_cool_down(const struct wb_intervals *v, struct wb_shape *s)
{
    double longest = fmax(STALL_SECONDS, 1.5 * median_length(v));
    const struct wb_level *last = &s->levels[s->nlevels - 1];

    if (s->nlevels < 2 || last->to - last->from >= longest || last->mean > last[-1].mean)
        return;
    s->cool_down = last->from;
    s->nlevels--;
}

/* ---- periods ---- */

static double correlation(const double *x, size_t n, size_t lag)
{
    double all = 0, shifted = 0;

    for (size_t i = 0; i < n; i++) {
        all += x[i] * x[i];
        if (i + lag < n)
            shifted += x[i] * x[i + lag];
    }
    return all > 0 ? shifted / all * (double)n / (double)(n - lag) : 0;
}

/* Intervals of a period in the last three quarters of the run; 0 when there is none. */
static size_t find_period(const struct wb_intervals *v)
{
    size_t skip = v->n / 4, n = v->n - skip, most = n / 3, found = 0;
    WB_AUTO_FREE double *x = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE double *r = wb_calloc(most + 2, sizeof(double));
    double mean = 0, lowest = 1, swing;

    if (n < 6 * PERIOD_LEAST)
        return 0;
    memcpy(x, v->rate + skip, n * sizeof(double));
    wb_sort_values(x, n);
    swing = x[n - 1 - n / 10] - x[n / 10];
    if (swing <= SAME_SHARE * fabs(wb_median(x, n)))
        return 0;
    for (size_t i = 0; i < n; i++)
        mean += v->rate[skip + i] / (double)n;
    for (size_t i = 0; i < n; i++)
        x[i] = v->rate[skip + i] - mean;
    for (size_t lag = 1; lag <= most + 1; lag++)
        r[lag] = correlation(x, n, lag);
    for (size_t lag = 2; lag <= most && found == 0; lag++) {
        lowest = fmin(lowest, r[lag - 1]);
        if (lag >= PERIOD_LEAST && r[lag] >= r[lag - 1] && r[lag] >= r[lag + 1] &&
            r[lag] >= PERIOD_R && r[lag] - lowest >= PERIOD_RISE &&
            correlation(x, n, 2 * lag) >= PERIOD_AGAIN)
            found = lag;
    }
    return found;
}

/* ---- MSER-5 ---- */

/* The number of batches to discard that makes the error of the mean of the others least. */
static void find_mser(const struct wb_intervals *v, struct wb_shape *s)
{
    size_t k = v->n / BATCH, best = 0;
    WB_AUTO_FREE double *z = wb_calloc(k, sizeof(double));
    double sum = 0, squares = 0, centre, least = HUGE_VAL;

    s->mser_cut = NAN;
    if (k < 4)
        return;
    centre = wb_median_of(v->rate, v->n);
    for (size_t i = 0; i < k; i++)
        z[i] = level_of(v, i * BATCH, BATCH).mean - centre;
    for (size_t d = k; d-- > 0;) {
        double m = (double)(k - d), rest;
        sum += z[d];
        squares += z[d] * z[d];
        rest = squares - sum * sum / m;
        rest = (rest > 0 ? rest : 0) / (m * m);
        /* Of equally good ones the one that discards least. */
        if (d <= k / 2 && rest <= least * (1 + 1e-12)) {
            least = rest;
            best = d;
        }
    }
    s->mser_cut = v->from[best * BATCH] - v->from[0];
    s->mser_half = best == k / 2;
}

/* ---- the last quarter ---- */

static double quarter_begin(const struct wb_intervals *v)
{
    return v->from[0] + 0.75 * (wb_intervals_end(v) - v->from[0]);
}

/* Figures of the last quarter. False when the rate goes up or down through it. */
static bool quarter_is_level(const struct wb_intervals *v, struct wb_shape *s)
{
    struct wb_intervals part = wb_intervals_window(v, quarter_begin(v), HUGE_VAL), q;
    double squares = 0, median, slope = NAN;
    bool level;

    if (part.n == 0)
        part = wb_intervals_window(v, v->from[v->n - 1], HUGE_VAL);
    q = wb_intervals_joined(&part, 1 + part.n / (WB_SLOPE_MAX + 1));
    s->quarter_mean = wb_intervals_mean(&q);
    for (size_t i = 0; i < q.n; i++)
        squares += (q.rate[i] - s->quarter_mean) * (q.rate[i] - s->quarter_mean);
    s->quarter_cv =
        q.n > 1 && s->quarter_mean > 0 ? sqrt(squares / (double)(q.n - 1)) / s->quarter_mean : NAN;
    median = wb_median_of(q.rate, q.n);
    if (q.n > 1)
        slope = wb_theil_sen(q.from, q.rate, q.n);
    s->quarter_slope = slope;
    s->quarter_slope_percent =
        median > 0 ? 100 * slope * (wb_intervals_end(&q) - q.from[0]) / median : NAN;
    level = !(fabs(s->quarter_slope_percent) > 100 * SAME_SHARE) ||
            wb_mann_kendall(q.rate, q.n) >= SLOPE_P;
    wb_intervals_release(&q);
    return level;
}

/* ---- classes ---- */

/* Where the cut of MSER-5 counts: it moves the mean, and does not lie behind a stall. */
static double mser_cut_that_matters(const struct wb_intervals *v, const struct wb_shape *s)
{
    double cut = s->mser_cut, begin = s->begin;
    struct wb_intervals before, after;

    if (isnan(cut) || s->mser_half || (s->nstalls > 0 && begin + cut > s->stalls[0].from))
        return 0;
    after = wb_intervals_window(v, begin + cut, HUGE_VAL);
    before = wb_intervals_window(v, begin, begin + cut);
    if (before.n == 0 || fabs(wb_intervals_mean(&before) - wb_intervals_mean(&after)) <=
                             MATTERS_SHARE * fabs(wb_intervals_mean(&after)))
        return 0;
    return cut;
}

static void set_none(struct wb_shape *s, const char *why)
{
    s->traits |= WB_T_NONE;
    s->cut = NAN;
    s->why = why;
}

/* The class from levels that are not those of stalls. */
static void classify(const struct wb_intervals *v, struct wb_shape *s)
{
    const struct wb_level *last = &s->levels[s->nlevels - 1], *other = NULL;
    double quarter = quarter_begin(v), weight = 0, sum = 0;

    s->steady_mean = last->mean;
    for (size_t k = 0; k + 1 < s->nlevels; k++) {
        if (same_rate(s->levels[k].mean, last->mean))
            continue;
        other = &s->levels[k];
        weight += other->to - other->from;
        sum += (other->to - other->from) * other->mean;
    }
    if (other == NULL) {
        s->cut = mser_cut_that_matters(v, s);
        return;
    }
    if (other->to > quarter) {
        set_none(s, "the level changed within the last quarter");
        return;
    }
    if (same_rate(s->levels[0].mean, last->mean)) {
        set_none(s, "the level left the one of the end and came back");
        return;
    }
    if (sum / weight < last->mean) {
        s->traits |= WB_T_WARMUP;
        s->cut = other->to - s->begin;
        return;
    }
    s->traits |= WB_T_SLOWDOWN;
    s->cut = NAN;
    s->before = sum / weight;
    s->at = other->to;
    s->why = "the rate fell during the run: there is no single mean";
}

static void shape_of_levels(const struct wb_intervals *v, struct wb_shape *s)
{
    find_levels(v, s);
    take_out_stalls(v, s);
    take_out_cool_down(v, s);
    join_same(v, s);
    classify(v, s);
}

/* Whole periods, counted from the end: a part of one would be a level of its own. */
static struct wb_intervals whole_periods(const struct wb_intervals *v, size_t period)
{
    size_t skip = v->n % period;
    struct wb_intervals rest = {.from = v->from + skip,
                                .seconds = v->seconds + skip,
                                .rate = v->rate + skip,
                                .n = v->n - skip};

    return wb_intervals_joined(&rest, period);
}

void wb_shape_of(const struct wb_intervals *v, struct wb_shape *out)
{
    struct wb_intervals few = wb_intervals_joined(v, (v->n + WB_SEGMENT_MAX - 1) / WB_SEGMENT_MAX);
    size_t period = find_period(&few);
    bool level;

    *out = (struct wb_shape){
        .begin = v->from[0], .period = NAN, .before = NAN, .at = NAN, .cool_down = NAN};
    find_mser(v, out);
    level = quarter_is_level(v, out);
    if (period > 0) {
        struct wb_intervals whole = whole_periods(&few, period);
        out->period = (double)period * median_length(&few);
        out->traits |= WB_T_PERIODIC;
        wb_intervals_release(&few);
        few = whole;
    }
    shape_of_levels(&few, out);
    if (!level && period == 0 && !(out->traits & WB_T_NONE))
        set_none(out, "the rate goes up or down through the last quarter");
    if (out->nstalls > 0)
        out->traits |= WB_T_STALL;
    if (out->traits == 0)
        out->traits = WB_T_FLAT;
    wb_intervals_release(&few);
}

void wb_shape_release(struct wb_shape *s)
{
    free(s->levels);
    free(s->stalls);
    *s = (struct wb_shape){0};
}
