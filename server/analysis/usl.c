/*
 * Fit of the Universal Scalability Law. For given sigma and kappa the best lambda is known, so a
 * coarse grid over the two finds where to look; Newton's method with the exact second derivatives
 * then gives the optimum to all digits, which a search by residuals cannot.
 */
#include "server/analysis/usl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

#define GRID 20  /* values above 0 of each coefficient */
#define STARTS 6 /* low places of the grid from which Newton starts */
#define NEWTON_STEPS 200
#define STEP_DONE 1e-15 /* relative to the coefficients */
#define STEP_SMALL 1e-10
#define TIE 1e-12     /* relative residual below which the simpler model is the better one */
#define NOTHING 1e-10 /* relative effect at the largest n below which a coefficient is 0 */

enum { LAMBDA, SIGMA, KAPPA, COEFFICIENTS };

/* The rows in the unit of the greatest throughput per concurrency, so that lambda is about 1. */
struct problem {
    const double *n;
    double *y;
    size_t rows;
    double unit, squares; /* squares: sum of y^2 */
    double low, top;      /* smallest n above 1, largest n */
};

static void problem_open(struct problem *p, const struct wb_usl_rows *d)
{
    *p = (struct problem){.n = d->n, .rows = d->rows, .y = wb_calloc(d->rows, sizeof(double))};
    for (size_t i = 0; i < d->rows; i++) {
        p->unit = fmax(p->unit, d->x[i] / d->n[i]);
        p->top = fmax(p->top, d->n[i]);
        if (p->low == 0 && d->n[i] > 1)
            p->low = fmax(d->n[i], 1.5);
    }
    for (size_t i = 0; i < d->rows; i++) {
        p->y[i] = d->x[i] / p->unit;
        p->squares += p->y[i] * p->y[i];
    }
}

/* Coefficients per unit of effect at the largest n: sigma (N - 1) = 1, kappa N (N - 1) = 1. Rows
 * all at or below 1 have no such place; there, the coefficients themselves are as good. */
static double sigma_unit(const struct problem *p)
{
    return p->top > 2 ? 1 / (p->top - 1) : 1;
}

static double kappa_unit(const struct problem *p)
{
    return p->top > 2 ? 1 / (p->top * (p->top - 1)) : 0.5;
}

static double slowdown(double sigma, double kappa, double n)
{
    return 1 + sigma * (n - 1) + kappa * n * (n - 1);
}

/* Best lambda and its residual for sigma and kappa; infinite where the curve breaks (n < 1). */
static void project(const struct problem *p, struct wb_usl *u)
{
    double yf = 0, ff = 0;

    u->rss = INFINITY;
    for (size_t i = 0; i < p->rows; i++) {
        double d = slowdown(u->sigma, u->kappa, p->n[i]), f = p->n[i] / d;
        if (!(d > 0))
            return;
        yf += p->y[i] * f;
        ff += f * f;
    }
    u->lambda = yf / ff;
    u->rss = 0;
    for (size_t i = 0; i < p->rows; i++) {
        double r = p->y[i] - u->lambda * p->n[i] / slowdown(u->sigma, u->kappa, p->n[i]);
        u->rss += r * r;
    }
}

/* ---- Newton ---- */

struct derivatives {
    double g[COEFFICIENTS];               /* of half the residual */
    double h[COEFFICIENTS][COEFFICIENTS]; /* its second derivatives */
    double scale[COEFFICIENTS];           /* sqrt of the diagonal of J'J */
};

static void derive(const struct problem *p, const struct wb_usl *u, struct derivatives *d)
{
    memset(d, 0, sizeof(*d));
    for (size_t i = 0; i < p->rows; i++) {
        double n = p->n[i], slow = slowdown(u->sigma, u->kappa, n), f = n / slow;
        double us = (n - 1) / slow, uk = n * (n - 1) / slow, model = u->lambda * f;
        double r = p->y[i] - model;
        double j[COEFFICIENTS] = {f, -model * us, -model * uk};
        double second[COEFFICIENTS][COEFFICIENTS] = {
            {0, -f * us, -f * uk},
            {-f * us, 2 * model * us * us, 2 * model * us * uk},
            {-f * uk, 2 * model * us * uk, 2 * model * uk * uk},
        };
        for (int a = 0; a < COEFFICIENTS; a++) {
            d->g[a] -= r * j[a];
            d->scale[a] += j[a] * j[a];
            for (int b = 0; b < COEFFICIENTS; b++)
                d->h[a][b] += j[a] * j[b] - r * second[a][b];
        }
    }
    for (int a = 0; a < COEFFICIENTS; a++)
        d->scale[a] = d->scale[a] > 0 ? sqrt(d->scale[a]) : 1;
}

/* Solves (H + damping D) step = -g for the free coefficients by Cholesky, in the scale of D. False
 * when the matrix is not positive definite. */
static bool solve(const struct derivatives *d, const bool *free_ones, double damping, double *step)
{
    double l[COEFFICIENTS][COEFFICIENTS] = {{0}}, v[COEFFICIENTS];

    for (int a = 0; a < COEFFICIENTS; a++) {
        v[a] = free_ones[a] ? -d->g[a] / d->scale[a] : 0;
        for (int b = 0; b <= a; b++) {
            bool both = free_ones[a] && free_ones[b];
            double sum = both ? d->h[a][b] / d->scale[a] / d->scale[b] : 0;
            sum += a == b ? (both ? damping : 1) : 0;
            for (int k = 0; k < b; k++)
                sum -= l[a][k] * l[b][k];
            if (a == b && !(sum > 1e-15))
                return false;
            l[a][b] = a == b ? sqrt(sum) : sum / l[b][b];
        }
    }
    for (int a = 0; a < COEFFICIENTS; a++) {
        for (int k = 0; k < a; k++)
            v[a] -= l[a][k] * v[k];
        v[a] /= l[a][a];
    }
    for (int a = COEFFICIENTS - 1; a >= 0; a--) {
        for (int k = a + 1; k < COEFFICIENTS; k++)
            v[a] -= l[k][a] * v[k];
        v[a] /= l[a][a];
        step[a] = v[a] / d->scale[a];
    }
    return true;
}

/* The step taken from u, not further than 9/10 of the way to a bound. */
static struct wb_usl moved(const struct wb_usl *u, const double *step, bool *clipped)
{
    struct wb_usl to = *u;
    double share = 1;

    if (step[SIGMA] < 0 && u->sigma + step[SIGMA] < 0)
        share = fmin(share, 0.9 * u->sigma / -step[SIGMA]);
    if (step[SIGMA] > 0 && u->sigma + step[SIGMA] > 1)
        share = fmin(share, 0.9 * (1 - u->sigma) / step[SIGMA]);
    if (step[KAPPA] < 0 && u->kappa + step[KAPPA] < 0)
        share = fmin(share, 0.9 * u->kappa / -step[KAPPA]);
    *clipped = share < 1;
    to.sigma += share * step[SIGMA];
    to.kappa += share * step[KAPPA];
    return to;
}

/* The larger of the two steps in units of its coefficient. */
static double size_of(const struct problem *p, const struct wb_usl *u, const double *step)
{
    return fmax(fabs(step[SIGMA]) / (u->sigma + sigma_unit(p) * 1e-3),
                fabs(step[KAPPA]) / (u->kappa + kappa_unit(p) * 1e-3));
}

/* From u to the nearest optimum with the free coefficients (lambda always is). True when it came to
 * rest away from the bounds. */
static bool newton(const struct problem *p, struct wb_usl *u, bool sigma_free, bool kappa_free)
{
    const bool free_ones[COEFFICIENTS] = {true, sigma_free, kappa_free};
    double damping = 0, step[COEFFICIENTS], size = INFINITY, last;
    int clips = 0;

    project(p, u);
    for (int i = 0; i < NEWTON_STEPS && isfinite(u->rss); i++) {
        struct derivatives d;
        struct wb_usl to;
        bool clipped;
        derive(p, u, &d);
        if (!solve(&d, free_ones, damping, step)) {
            damping = damping > 0 ? damping * 10 : 1e-3;
            if (damping > 1e12)
                return false;
            continue;
        }
        to = moved(u, step, &clipped);
        project(p, &to);
        if (!(to.rss <= u->rss * (1 + 1e-13) + 1e-30 * p->squares)) {
            damping = damping > 0 ? damping * 10 : 1e-6;
            if (damping > 1e12) /* no step makes it less: at rest, as far as digits go */
                return clips == 0;
            continue;
        }
        *u = to;
        last = size;
        size = size_of(p, u, step);
        /* Steps that no longer become smaller are what rounding leaves. */
        if (damping == 0 && !clipped &&
            (size <= STEP_DONE || (size < STEP_SMALL && size > last / 4)))
            return true;
        clips = clipped ? clips + 1 : 0;
        if (clips > 20)
            return false;
        damping = damping < 1e-9 ? 0 : damping / 10;
    }
    return false;
}

/* ---- where to look ---- */

/* Value i of GRID even steps on the logarithm, from no effect anywhere to: all is lost to sigma; at
 * the lowest n already, most is lost to kappa. */
static double grid_value(size_t i, double lo, double hi)
{
    return lo * pow(hi / lo, (double)i / (GRID - 1));
}

static double grid_sigma(const struct problem *p, size_t i)
{
    return grid_value(i, 1e-4 * sigma_unit(p), 0.99);
}

static double grid_kappa(const struct problem *p, size_t i)
{
    double hi = p->low > 0 ? 100 / (p->low * (p->low - 1)) : 10;

    return grid_value(i, 1e-4 * kappa_unit(p), hi);
}

/* A start from the linear form: N / X = a + b (N - 1) + c N (N - 1), with weights that make its
 * squares about those of X. Exact for exact rows. The coefficients that are not free stay. False
 * when it gives none within the bounds. */
static bool linear_start(const struct problem *p, bool sigma_free, bool kappa_free,
                         struct wb_usl *u)
{
    const bool free_ones[COEFFICIENTS] = {true, sigma_free, kappa_free};
    double fixed_sigma = sigma_free ? 0 : u->sigma, fixed_kappa = kappa_free ? 0 : u->kappa;
    double found[COEFFICIENTS];
    struct derivatives d = {.g = {0}};

    for (size_t i = 0; i < p->rows; i++) {
        double n = p->n[i], w = p->y[i] * p->y[i] / n;
        double basis[COEFFICIENTS] = {w * slowdown(fixed_sigma, fixed_kappa, n), w * (n - 1),
                                      w * n * (n - 1)};
        for (int a = 0; a < COEFFICIENTS; a++) {
            d.g[a] -= p->y[i] * basis[a]; /* w N / X is X */
            for (int b = 0; b < COEFFICIENTS; b++)
                d.h[a][b] += basis[a] * basis[b];
        }
    }
    for (int a = 0; a < COEFFICIENTS; a++)
        d.scale[a] = d.h[a][a] > 0 ? sqrt(d.h[a][a]) : 1;
    if (!solve(&d, free_ones, 0, found) || !(found[LAMBDA] > 0))
        return false;
    if (sigma_free)
        u->sigma = found[SIGMA] / found[LAMBDA];
    if (kappa_free)
        u->kappa = found[KAPPA] / found[LAMBDA];
    return u->sigma >= 0 && u->sigma <= 1 && u->kappa >= 0;
}

static void keep_better(const struct problem *p, struct wb_usl *best, struct wb_usl u)
{
    if (u.rss < best->rss * (1 - TIE) - 1e-26 * p->squares)
        *best = u;
}

/* The best of one border: one coefficient is fixed (kappa when sigma_free), the other searched. */
static void search_border(const struct problem *p, double fixed, bool sigma_free,
                          struct wb_usl *best)
{
    struct wb_usl low = {.rss = INFINITY};
    struct wb_usl linear = {.sigma = fixed, .kappa = fixed};

    for (size_t i = 0; i < GRID; i++) {
        struct wb_usl u = {.sigma = sigma_free ? grid_sigma(p, i) : fixed,
                           .kappa = sigma_free ? fixed : grid_kappa(p, i)};
        project(p, &u);
        if (u.rss < low.rss)
            low = u;
    }
    if (linear_start(p, sigma_free, !sigma_free, &linear)) {
        (void)newton(p, &linear, sigma_free, !sigma_free);
        keep_better(p, best, linear);
    }
    if (isinf(low.rss))
        return;
    (void)newton(p, &low, sigma_free, !sigma_free);
    keep_better(p, best, low);
}

static void search_borders(const struct problem *p, struct wb_usl *best)
{
    for (int i = 0; i < 2; i++) {
        struct wb_usl corner = {.sigma = i};
        project(p, &corner);
        keep_better(p, best, corner);
    }
    search_border(p, 0, true, best);
    search_border(p, 0, false, best);
    search_border(p, 1, false, best);
}

static int by_residual(const void *a, const void *b)
{
    double x = ((const struct wb_usl *)a)->rss, y = ((const struct wb_usl *)b)->rss;

    return (x > y) - (x < y);
}

static void search_inside(const struct problem *p, struct wb_usl *best)
{
    struct wb_usl grid[GRID][GRID], low[GRID * GRID];
    struct wb_usl linear = {.rss = INFINITY};
    size_t n = 0;

    if (linear_start(p, true, true, &linear)) {
        (void)newton(p, &linear, true, true);
        keep_better(p, best, linear);
    }
    for (size_t i = 0; i < GRID; i++) {
        for (size_t k = 0; k < GRID; k++) {
            grid[i][k].sigma = grid_sigma(p, i);
            grid[i][k].kappa = grid_kappa(p, k);
            project(p, &grid[i][k]);
        }
    }
    for (size_t i = 0; i < GRID; i++) {
        for (size_t k = 0; k < GRID; k++) {
            double here = grid[i][k].rss;
            if ((i > 0 && grid[i - 1][k].rss < here) ||
                (i + 1 < GRID && grid[i + 1][k].rss < here) ||
                (k > 0 && grid[i][k - 1].rss < here) ||
                (k + 1 < GRID && grid[i][k + 1].rss < here) || isinf(here))
                continue;
            low[n++] = grid[i][k];
        }
    }
    qsort(low, n, sizeof(low[0]), by_residual);
    for (size_t i = 0; i < n && i < STARTS; i++) {
        (void)newton(p, &low[i], true, true);
        keep_better(p, best, low[i]);
    }
}

/* Coefficients that are 0 or 1 but for rounding become so; back to the unit of the rows. */
static void finish(struct problem *p, struct wb_usl *u)
{
    if (u->kappa > 0 && u->kappa < NOTHING * kappa_unit(p)) {
        u->kappa = 0;
        project(p, u);
    }
    if (u->sigma > 0 && u->sigma < NOTHING * sigma_unit(p)) {
        u->sigma = 0;
        project(p, u);
    }
    if (u->sigma < 1 && 1 - u->sigma < NOTHING) {
        u->sigma = 1;
        project(p, u);
    }
    u->lambda *= p->unit;
    u->rss *= p->unit * p->unit;
    free(p->y);
}

void wb_usl_fit(const struct wb_usl_rows *d, struct wb_usl *out)
{
    struct problem p;

    problem_open(&p, d);
    *out = (struct wb_usl){.rss = INFINITY};
    search_borders(&p, out);
    search_inside(&p, out);
    finish(&p, out);
}

void wb_usl_fit_amdahl(const struct wb_usl_rows *d, struct wb_usl *out)
{
    struct problem p;

    problem_open(&p, d);
    *out = (struct wb_usl){.rss = INFINITY};
    for (int i = 0; i < 2; i++) {
        struct wb_usl corner = {.sigma = i};
        project(&p, &corner);
        keep_better(&p, out, corner);
    }
    search_border(&p, 0, true, out);
    finish(&p, out);
}

void wb_usl_refit(const struct wb_usl_rows *d, const struct wb_usl *from, struct wb_usl *out)
{
    struct problem p;

    problem_open(&p, d);
    *out = *from;
    out->sigma = fmin(fmax(out->sigma, 1e-2 * sigma_unit(&p)), 0.99);
    out->kappa = fmax(out->kappa, 1e-2 * kappa_unit(&p));
    if (!newton(&p, out, true, true)) {
        if (isnan(out->rss))
            out->rss = INFINITY;
        search_borders(&p, out);
    }
    finish(&p, out);
}

/* ---- the curve ---- */

double wb_usl_at(const struct wb_usl *u, double n)
{
    return u->lambda * n / slowdown(u->sigma, u->kappa, n);
}

double wb_usl_peak(const struct wb_usl *u)
{
    return u->kappa > 0 && u->sigma < 1 ? sqrt((1 - u->sigma) / u->kappa) : NAN;
}

double wb_usl_peak_whole(const struct wb_usl *u)
{
    double peak = wb_usl_peak(u), below = floor(peak);

    if (u->kappa == 0)
        return NAN;
    if (!(below >= 1))
        return 1;
    return wb_usl_at(u, below + 1) > wb_usl_at(u, below) ? below + 1 : below;
}

/* lambda n = x (1 - sigma + (sigma - kappa) n + kappa n^2), the smaller root. */
double wb_usl_reach(const struct wb_usl *u, double x)
{
    double a = x * u->kappa, b = x * (u->sigma - u->kappa) - u->lambda, c = x * (1 - u->sigma);
    double inside = b * b - 4 * a * c;

    if (inside < 0 || b >= 0)
        return NAN;
    return 2 * c / (-b + sqrt(inside));
}
