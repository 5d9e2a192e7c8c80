#include "server/analysis/interval.h"

#include <math.h>
#include <stdlib.h>

#include "server/analysis/rank.h"
#include "server/base/mem.h"

#define TAIL 0.025

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void wb_sort_values(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_number);
}

double wb_median(const double *sorted, size_t n)
{
    double a = sorted[(n - 1) / 2], b = sorted[n / 2];

    return a == b ? a : a / 2 + b / 2;
}

/* The interval from the r-th smallest to the r-th largest value misses the median with probability
 * 2 P(B < r), B binomial of n and 1/2. */
struct wb_interval wb_median_interval(const double *sorted, size_t n)
{
    struct wb_interval out = {.have = false};
    double term = ldexp(1, -(int)n), below = 0; /* P(B = r), P(B < r) */

    for (size_t r = 0; r < n / 2; r++) {
        if (below + term > TAIL)
            break;
        below += term;
        term = term * (double)(n - r) / (double)(r + 1);
        out.have = true;
        out.lo = sorted[r];
        out.hi = sorted[n - 1 - r];
        out.coverage = 1 - 2 * below;
    }
    return out;
}

/* Middle of a sorted list of changes: on ratios it is the middle of their logarithms. */
static double middle(const double *sorted, size_t n, enum wb_scale scale)
{
    double a = sorted[(n - 1) / 2], b = sorted[n / 2];

    if (a == b)
        return a;
    return scale == WB_RATIO ? sqrt(a) * sqrt(b) : a / 2 + b / 2;
}

static double change(double base, double other, enum wb_scale scale)
{
    return scale == WB_RATIO ? other / base : other - base;
}

static double finish(double *changes, size_t n, size_t cut, enum wb_scale scale,
                     struct wb_interval *out)
{
    wb_sort_values(changes, n);
    *out = (struct wb_interval){.have = cut > 0};
    if (cut > 0) {
        out->lo = changes[cut - 1];
        out->hi = changes[n - cut];
    }
    return middle(changes, n, scale);
}

double wb_hodges_lehmann(const double *base, size_t n, const double *other, size_t m,
                         enum wb_scale scale, struct wb_interval *out)
{
    WB_AUTO_FREE double *changes = wb_calloc(n * m, sizeof(double));

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            changes[i * m + j] = change(base[i], other[j], scale);
    return finish(changes, n * m, wb_mann_whitney_cut(n, m), scale, out);
}

double wb_hodges_lehmann_paired(const double *base, const double *other, size_t n,
                                enum wb_scale scale, double tail, struct wb_interval *out)
{
    WB_AUTO_FREE double *walsh = wb_calloc(n * (n + 1) / 2, sizeof(double));
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        double a = change(base[i], other[i], scale);
        walsh[k++] = a;
        for (size_t j = 0; j < i; j++) {
            double b = change(base[j], other[j], scale);
            walsh[k++] = a == b ? a : scale == WB_RATIO ? sqrt(a) * sqrt(b) : a / 2 + b / 2;
        }
    }
    return finish(walsh, k, wb_signed_rank_cut_at(n, tail), scale, out);
}
