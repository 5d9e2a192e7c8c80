/*
 * Figures of a sequence that a few wild values do not move.
 */
#ifndef WB_ANALYSIS_ROBUST_H
#define WB_ANALYSIS_ROBUST_H

#include <stdbool.h>
#include <stddef.h>

/* Order of the values from low to high; equal ones by their place. NaN is not allowed. */
void wb_rank_order(const double *v, size_t n, size_t *order);

/* Median of values in any order, n > 0. */
double wb_median_of(const double *v, size_t n);
/* Median of |v - centre| times 1.4826: the standard deviation of normal noise. n > 0. */
double wb_mad_sigma(const double *v, size_t n, double centre);
/* The same from the differences of neighbours, which changes of level hardly touch. 0 when
 * n < 2. */
double wb_diff_sigma(const double *v, size_t n);

/* Correlation of neighbours. 0 when n < 3 or all are equal. */
double wb_lag1(const double *v, size_t n);

/* Theil-Sen: median of the slopes between all pairs, per step of x; NULL x: places 0, 1, 2... At
 * most WB_SLOPE_MAX values, n >= 2. */
#define WB_SLOPE_MAX 2000
double wb_theil_sen(const double *x, const double *v, size_t n);
/* Mann-Kendall test for a trend: two-sided p of the normal approximation with corrections for ties
 * and continuity. 1 when n < 4 or all are equal. */
double wb_mann_kendall(const double *v, size_t n);

#endif
