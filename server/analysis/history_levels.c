/* From the breaks of a history to the changes that matter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/breaks.h"
#include "server/analysis/history.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"

#define SUPERIOR 0.8 /* of pairs must be in order, else the levels overlap too much */
#define LEAST_CORRELATED 5
#define CORRELATED 0.3
#define CORRELATED_POINTS 20 /* below, a correlation says nothing */
#define SLOPE_POINTS 20      /* least points of a slope */

size_t wb_level_from(const struct wb_levels *l, size_t i)
{
    return i > 0 ? l->events[i - 1].point : 0;
}

size_t wb_level_to(const struct wb_levels *l, const struct wb_points *p, size_t i)
{
    return i + 1 < l->n ? l->events[i + 1].point : p->n;
}

void wb_levels_release(struct wb_levels *l)
{
    free(l->events);
    *l = (struct wb_levels){0};
}

/* The first point of or behind a night. */
static size_t point_of(const struct wb_points *p, size_t night)
{
    size_t i = 0;

    while (i < p->n && p->at[i] < night)
        i++;
    return i;
}

static void remove_event(struct wb_levels *l, size_t i)
{
    memmove(l->events + i, l->events + i + 1, (l->n - i - 1) * sizeof(*l->events));
    l->n--;
}

/* ---- finding ---- */

/* Correlation of neighbours around the levels that breaks make of v. */
static double left_correlation(const double *v, size_t n, const struct wb_break *b, size_t nb)
{
    WB_AUTO_FREE double *rest = wb_calloc(n, sizeof(double));
    size_t from = 0;

    for (size_t k = 0; k <= nb; k++) {
        size_t to = k < nb ? b[k].at : n;
        double centre = wb_median_of(v + from, to - from);
        for (size_t i = from; i < to; i++)
            rest[i] = v[i] - centre;
        from = to;
    }
    return wb_lag1(rest, n);
}

/* One part between borders. Where neighbours hang together, levels are made of more points, and
 * the test moves whole blocks. */
static void find_part(const struct wb_points *p, size_t from, size_t to, struct wb_levels *out)
{
    size_t n = to - from, found;
    const double *v = p->v + from;
    WB_AUTO_FREE struct wb_break *b = wb_calloc(n, sizeof(*b));

    if (n == 0)
        return;
    found = wb_breaks_find(v, n, WB_BREAKS_LEAST, 0, b);
    if (n >= CORRELATED_POINTS) {
        double r = left_correlation(v, n, b, found);
        out->correlation = r > out->correlation ? r : out->correlation;
        if (r > CORRELATED) {
            out->autocorrelated = true;
            if (found > 0)
                found = wb_breaks_find(v, n, LEAST_CORRELATED, r, b);
        }
    }
    for (size_t i = 0; i < found; i++)
        out->events[out->n++] =
            (struct wb_event){.point = from + b[i].at, .p = b[i].p, .by = b[i].by};
}

/* border[i]: nothing is compared across the place before point i. */
static void find_all(const struct wb_points *p, const bool *border, struct wb_levels *out)
{
    size_t from = 0;

    out->n = 0;
    for (size_t i = 1; i <= p->n; i++) {
        if (i < p->n && !border[i])
            continue;
        find_part(p, from, i, out);
        if (i < p->n)
            out->events[out->n++] = (struct wb_event){.point = i, .by = "annotation", .hard = true};
        from = i;
    }
}

/* ---- keeping what matters ---- */

static double superiority(const double *a, size_t n, const double *b, size_t m)
{
    double wins = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            wins += b[j] > a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
    return wins / ((double)n * (double)m);
}

static void measure(const struct wb_points *p, const struct wb_levels *l, size_t i)
{
    struct wb_event *e = &l->events[i];
    size_t from = wb_level_from(l, i), to = wb_level_to(l, p, i);

    e->nbefore = e->point - from;
    e->nafter = to - e->point;
    e->before = wb_median_of(p->v + from, e->nbefore);
    e->after = wb_median_of(p->v + e->point, e->nafter);
    e->superiority = superiority(p->v + from, e->nbefore, p->v + e->point, e->nafter);
}

static bool levels_overlap(const struct wb_event *e)
{
    return e->superiority < SUPERIOR && e->superiority > 1 - SUPERIOR;
}

/* Takes out the smallest change that does not matter until all do: each one taken out joins two
 * levels and so changes its neighbours. */
static void keep_what_matters(const struct wb_history *h, const struct wb_points *p,
                              struct wb_levels *l)
{
    for (;;) {
        size_t worst = l->n;
        double least = HUGE_VAL;
        for (size_t i = 0; i < l->n; i++) {
            struct wb_event *e = &l->events[i];
            double size;
            measure(p, l, i);
            size = fabs(e->after - e->before) / fmax(fabs(e->before), fabs(e->after));
            size = e->after == e->before ? 0 : size;
            if (e->hard || (wb_history_matters(h, e->before, e->after) && !levels_overlap(e)))
                continue;
            if (size < least) {
                least = size;
                worst = i;
            }
        }
        if (worst == l->n)
            return;
        l->unstable |= wb_history_matters(h, l->events[worst].before, l->events[worst].after);
        remove_event(l, worst);
    }
}

/* ---- slopes ---- */

/* Squares left by the best line. */
static double line_squares(const double *v, size_t n)
{
    double mx = ((double)n - 1) / 2, my = 0, xx = 0, xy = 0, rest = 0;

    for (size_t i = 0; i < n; i++)
        my += v[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        xx += ((double)i - mx) * ((double)i - mx);
        xy += ((double)i - mx) * (v[i] - my);
    }
    for (size_t i = 0; i < n; i++) {
        double d = v[i] - my - xy / xx * ((double)i - mx);
        rest += d * d;
    }
    return rest;
}

static double level_squares(const double *v, size_t n)
{
    double mean = 0, rest = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        rest += (v[i] - mean) * (v[i] - mean);
    return rest;
}

/* Whether a line describes the newest points better than the levels from event `first` on do (by
 * the Bayesian criterion: 2 figures against a level more and a place for each step). */
static bool is_slope(const struct wb_points *p, const struct wb_levels *l, size_t first)
{
    size_t from = wb_level_from(l, first), n = p->n - from;
    double steps = level_squares(p->v + from, l->events[first].point - from), line;
    double more = 2 * (double)(l->n - first) + 1 - 2;

    if (n < SLOPE_POINTS)
        return false;
    for (size_t i = first; i < l->n; i++)
        steps +=
            level_squares(p->v + l->events[i].point, wb_level_to(l, p, i) - l->events[i].point);
    line = line_squares(p->v + from, n);
    return steps > 0 && (double)n * log(line / steps) < more * log((double)n);
}

static bool same_direction(const struct wb_event *a, const struct wb_event *b)
{
    return (a->after > a->before) == (b->after > b->before);
}

/* Steps of one direction up to now that are rather a slope are not told as steps: it has no commit
 * that began it. What was a slope long ago and has ended is as good as its steps. */
static void find_slope(const struct wb_points *p, struct wb_levels *l)
{
    size_t first = l->n, n;

    while (first > 0 && !l->events[first - 1].hard &&
           (first == l->n || same_direction(&l->events[first - 1], &l->events[first])))
        first--;
    while (first < l->n && !is_slope(p, l, first))
        first++;
    if (first == l->n)
        return;
    l->slope = true;
    l->slope_from = wb_level_from(l, first);
    l->n = first;
    if (first > 0)
        measure(p, l, first - 1);
    n = p->n - l->slope_from;
    l->slope_percent =
        100 * wb_theil_sen(NULL, p->v + l->slope_from, n < WB_SLOPE_MAX ? n : WB_SLOPE_MAX) *
        (double)(n - 1) / fabs(wb_median_of(p->v + l->slope_from, n));
}

/* ---- annotations ---- */

static struct wb_event *nearest(const struct wb_levels *l, size_t point)
{
    struct wb_event *best = NULL;
    size_t least = WB_MOVED + 1;

    for (size_t i = 0; i < l->n; i++) {
        size_t at = l->events[i].point, far = at > point ? at - point : point - at;
        if (!l->events[i].hard && far < least) {
            least = far;
            best = &l->events[i];
        }
    }
    return best;
}

/* Marks the changes that are accepted. True when an accepted one was not found: it is a border
 * then, because whoever accepts a change wants a new baseline. */
static bool match_accepted(const struct wb_history *h, const struct wb_points *p,
                           const struct wb_levels *l, bool *border)
{
    bool more = false;

    for (size_t i = 0; i < h->values.n; i++) {
        struct wb_event *e;
        size_t point;
        if (!(h->marks[i] & WB_MARK_ACCEPTED))
            continue;
        point = point_of(p, i);
        if (point == 0 || point >= p->n || border[point])
            continue;
        e = nearest(l, point);
        if (e != NULL)
            e->accepted = true;
        else
            border[point] = more = true;
    }
    return more;
}

static void find_levels(const struct wb_history *h, const struct wb_points *p, const bool *border,
                        struct wb_levels *l)
{
    l->slope = l->unstable = false;
    find_all(p, border, l);
    keep_what_matters(h, p, l);
    find_slope(p, l);
}

void wb_levels_of(const struct wb_history *h, const struct wb_points *p, struct wb_levels *out)
{
    WB_AUTO_FREE bool *border = wb_calloc(p->n + 1, sizeof(bool));

    *out = (struct wb_levels){.events = wb_calloc(p->n, sizeof(*out->events))};
    for (size_t i = 0; i < h->values.n; i++)
        if (h->marks[i] & WB_MARK_ENVIRONMENT)
            border[point_of(p, i)] = true;
    border[0] = border[p->n] = false;
    find_levels(h, p, border, out);
    if (match_accepted(h, p, out, border)) {
        find_levels(h, p, border, out);
        (void)match_accepted(h, p, out, border);
    }
}
