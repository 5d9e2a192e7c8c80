/*
 * Sums, means and variances that lose no digits, and quantiles of the usual distributions. All take
 * sorted values where order would otherwise show in the last digits.
 */
#ifndef WB_ANALYSIS_MOMENTS_H
#define WB_ANALYSIS_MOMENTS_H

#include <stddef.h>

/* Compensated (Neumaier). */
double wb_sum(const double *v, size_t n);
/* n > 0. */
double wb_mean(const double *v, size_t n);
/* With n - 1, around the mean; NaN below two values. */
double wb_variance(const double *v, size_t n);
/* P(T > t), t >= 0, for Student's t with df > 0 degrees of freedom. */
double wb_student_above(double t, double df);
/* The t with P(T <= t) = p for df > 0 degrees of freedom, 0.5 <= p < 1. */
double wb_student_quantile(double p, double df);

/* P(Z <= z), and the z with P(Z <= z) = p for 0 < p < 1, of the standard normal distribution. */
double wb_normal_below(double z);
double wb_normal_quantile(double p);

#endif
