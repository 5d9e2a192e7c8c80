/* Bootstrap intervals of the Universal Scalability Law: standard errors from the gradient are wrong
 * where a coefficient lies on its bound. */
#include "server/analysis/usl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/interval.h"
#include "server/analysis/moments.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

/* Draws below and above the interval of 95 %. */
#define TAIL_DRAWS (WB_USL_DRAWS / 40)

/* The seed knows the concurrencies and the order of the throughputs, not their unit. */
static uint64_t seed_of(const struct wb_usl_rows *d)
{
    uint64_t seed = d->rows, bits;

    for (size_t i = 0; i < d->rows; i++) {
        memcpy(&bits, &d->n[i], sizeof(bits));
        seed = wb_mix64(seed, bits);
        if (i > 0)
            seed = wb_mix64(seed, d->x[i] > d->x[i - 1] ? 2 : d->x[i] < d->x[i - 1]);
    }
    return seed;
}

/* One past the last row with the n of row i. */
static size_t group_end(const struct wb_usl_rows *d, size_t i)
{
    size_t end = i + 1;

    while (end < d->rows && d->n[end] == d->n[i])
        end++;
    return end;
}

static bool has_repeats(const struct wb_usl_rows *d)
{
    for (size_t i = 0; i < d->rows; i = group_end(d, i))
        if (group_end(d, i) - i < 2)
            return false;
    return true;
}

/* Runs of the same n, away from their mean by the factor that makes the variance of a few draws the
 * unbiased one. */
static void draw_runs(const struct wb_usl_rows *d, struct wb_rng *r, double *x)
{
    for (size_t i = 0, end; i < d->rows; i = end) {
        double mean, factor;
        end = group_end(d, i);
        mean = wb_mean(&d->x[i], end - i);
        factor = sqrt((double)(end - i) / (double)(end - i - 1));
        for (size_t k = i; k < end; k++)
            x[k] = fmax(0, mean + factor * (d->x[i + wb_rng_below(r, end - i)] - mean));
    }
}

static void draw_residuals(const double *fitted, const double *residuals, size_t n,
                           struct wb_rng *r, double *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmax(0, fitted[i] + residuals[wb_rng_below(r, n)]);
}

/* Around 0, and as large as the errors of n rows that 3 coefficients were fitted to. */
static void set_residuals(const struct wb_usl_rows *d, const struct wb_usl *fit, double *fitted,
                          double *residuals)
{
    double n = (double)d->rows, mean;

    for (size_t i = 0; i < d->rows; i++) {
        fitted[i] = wb_usl_at(fit, d->n[i]);
        residuals[i] = d->x[i] - fitted[i];
    }
    mean = wb_mean(residuals, d->rows);
    for (size_t i = 0; i < d->rows; i++)
        residuals[i] = (residuals[i] - mean) * sqrt(n / (n - 3));
}

static struct wb_usl_ends ends_of(double *v)
{
    wb_sort_values(v, WB_USL_DRAWS);
    return (struct wb_usl_ends){.lo = v[TAIL_DRAWS - 1], .hi = v[WB_USL_DRAWS - TAIL_DRAWS]};
}

static bool all_zero(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] > 0)
            return false;
    return true;
}

void wb_usl_bootstrap(const struct wb_usl_rows *d, const struct wb_usl *fit,
                      struct wb_usl_interval *out)
{
    WB_AUTO_FREE double *x = wb_calloc(d->rows, sizeof(double));
    WB_AUTO_FREE double *fitted = wb_calloc(d->rows, sizeof(double));
    WB_AUTO_FREE double *residuals = wb_calloc(d->rows, sizeof(double));
    WB_AUTO_FREE double *found = wb_calloc(4 * (size_t)WB_USL_DRAWS, sizeof(double));
    double *sigma = found, *kappa = found + WB_USL_DRAWS;
    double *lambda = found + 2 * WB_USL_DRAWS, *peak = found + 3 * WB_USL_DRAWS;
    bool runs = has_repeats(d);
    struct wb_rng r;

    wb_rng_seed(&r, seed_of(d));
    set_residuals(d, fit, fitted, residuals);
    for (size_t i = 0; i < WB_USL_DRAWS; i++) {
        struct wb_usl_rows drawn = {.n = d->n, .x = x, .rows = d->rows};
        struct wb_usl u;
        if (runs)
            draw_runs(d, &r, x);
        else
            draw_residuals(fitted, residuals, d->rows, &r, x);
        if (all_zero(x, d->rows))
            memcpy(x, d->x, d->rows * sizeof(*x));
        wb_usl_refit(&drawn, fit, &u);
        sigma[i] = u.sigma;
        kappa[i] = u.kappa;
        lambda[i] = u.lambda;
        peak[i] = u.kappa > 0 ? sqrt((1 - u.sigma) / u.kappa) : INFINITY;
    }
    out->method = runs ? "bootstrap-runs" : "bootstrap-residuals";
    out->sigma = ends_of(sigma);
    out->kappa = ends_of(kappa);
    out->lambda = ends_of(lambda);
    out->peak = ends_of(peak);
}
