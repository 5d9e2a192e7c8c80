/*
 * Medians and Hodges-Lehmann estimates with intervals from order statistics: exact coverage of at
 * least 95 %, no random numbers.
 */
#ifndef WB_ANALYSIS_INTERVAL_H
#define WB_ANALYSIS_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

struct wb_interval {
    bool have; /* false: too few values for 95 % */
    double lo, hi;
    double coverage; /* of the median interval; 0 otherwise */
};

/* Values needed for wb_median_interval, and changes for wb_hodges_lehmann_paired. */
#define WB_INTERVAL_MIN 6

void wb_sort_values(double *v, size_t n);
/* Of sorted values, n > 0. */
double wb_median(const double *sorted, size_t n);
/* Order-statistic interval of the median of sorted values (at most WB_VALUES_MAX). */
struct wb_interval wb_median_interval(const double *sorted, size_t n);

/* How two values are set against each other: other / base, or other - base. */
enum wb_scale { WB_RATIO, WB_DIFFERENCE };

/* Estimate and interval of the change from base to other, over all n*m pairs. */
double wb_hodges_lehmann(const double *base, size_t n, const double *other, size_t m,
                         enum wb_scale scale, struct wb_interval *out);
/* The same over the Walsh averages of the n changes within rounds; the interval misses with a
 * probability of at most 2 * tail. */
double wb_hodges_lehmann_paired(const double *base, const double *other, size_t n,
                                enum wb_scale scale, double tail, struct wb_interval *out);

#endif
