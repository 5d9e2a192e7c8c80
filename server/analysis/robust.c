#include "server/analysis/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/interval.h"
#include "server/base/mem.h"

#define MAD_SCALE 1.4826022185056018 /* 1 / normal quantile of 0.75 */

struct placed {
    double v;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->v != y->v)
        return x->v < y->v ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

void wb_rank_order(const double *v, size_t n, size_t *order)
{
    WB_AUTO_FREE struct placed *p = wb_calloc(n, sizeof(*p));

    for (size_t i = 0; i < n; i++)
        p[i] = (struct placed){v[i], i};
    qsort(p, n, sizeof(*p), by_value);
    for (size_t i = 0; i < n; i++)
        order[i] = p[i].at;
}

double wb_median_of(const double *v, size_t n)
{
    WB_AUTO_FREE double *sorted = wb_calloc(n, sizeof(double));

    memcpy(sorted, v, n * sizeof(double));
    wb_sort_values(sorted, n);
    return wb_median(sorted, n);
}

double wb_mad_sigma(const double *v, size_t n, double centre)
{
    WB_AUTO_FREE double *away = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++)
        away[i] = fabs(v[i] - centre);
    wb_sort_values(away, n);
    return MAD_SCALE * wb_median(away, n);
}

double wb_diff_sigma(const double *v, size_t n)
{
    WB_AUTO_FREE double *steps = wb_calloc(n, sizeof(double));

    if (n < 2)
        return 0;
    for (size_t i = 0; i + 1 < n; i++)
        steps[i] = v[i + 1] - v[i];
    return wb_mad_sigma(steps, n - 1, wb_median_of(steps, n - 1)) / M_SQRT2;
}

double wb_lag1(const double *v, size_t n)
{
    double mean = 0, all = 0, next = 0;

    if (n < 3)
        return 0;
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        all += (v[i] - mean) * (v[i] - mean);
        if (i + 1 < n)
            next += (v[i] - mean) * (v[i + 1] - mean);
    }
    return all > 0 ? next / all : 0;
}

double wb_theil_sen(const double *x, const double *v, size_t n)
{
    WB_AUTO_FREE double *slopes = wb_calloc(n * (n - 1) / 2, sizeof(double));
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double run = x != NULL ? x[i] - x[j] : (double)(i - j);
            if (run > 0)
                slopes[k++] = (v[i] - v[j]) / run;
        }
    if (k == 0)
        return 0;
    wb_sort_values(slopes, k);
    return wb_median(slopes, k);
}

double wb_mann_kendall(const double *v, size_t n)
{
    WB_AUTO_FREE double *sorted = wb_calloc(n, sizeof(double));
    double s = 0, var, m = (double)n;

    if (n < 4)
        return 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            s += (v[i] > v[j]) - (v[i] < v[j]);
    var = m * (m - 1) * (2 * m + 5);
    memcpy(sorted, v, n * sizeof(double));
    wb_sort_values(sorted, n);
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && sorted[i + same] == sorted[i];)
            same++;
        var -= (double)same * ((double)same - 1) * (2 * (double)same + 5);
    }
    if (!(var > 0) || s == 0)
        return 1;
    return erfc((fabs(s) - 1) / sqrt(var / 18) / M_SQRT2);
}
