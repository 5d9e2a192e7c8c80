/*
 * The Universal Scalability Law, X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), and
 * Amdahl's law, its case kappa = 0. Fitted by ordinary least squares on X within sigma in [0, 1],
 * kappa >= 0, lambda > 0. The optimum is searched on the whole area: inside, on the three borders
 * and in the corners, so a start value cannot mislead it and a coefficient on its bound is exactly
 * there.
 */
#ifndef WB_ANALYSIS_USL_H
#define WB_ANALYSIS_USL_H

#include <stdbool.h>
#include <stddef.h>

struct wb_usl {
    double sigma, kappa, lambda;
    double rss; /* sum of squared residuals; not used by the functions of the curve */
};

/* Rows sorted by n, then x; n > 0, x >= 0. */
struct wb_usl_rows {
    const double *n, *x;
    size_t rows;
};

/* At least 3 rows with 2 different n, not all x 0. */
void wb_usl_fit(const struct wb_usl_rows *d, struct wb_usl *out);
/* The best with kappa = 0. */
void wb_usl_fit_amdahl(const struct wb_usl_rows *d, struct wb_usl *out);
/* The fit of rows that are close to those of `from`: as wb_usl_fit, but quick. */
void wb_usl_refit(const struct wb_usl_rows *d, const struct wb_usl *from, struct wb_usl *out);

double wb_usl_at(const struct wb_usl *u, double n);
/* Concurrency of the greatest throughput; NaN when there is no finite one above 0. */
double wb_usl_peak(const struct wb_usl *u);
/* The better of the whole numbers around the peak, at least 1; NaN when throughput never falls. */
double wb_usl_peak_whole(const struct wb_usl *u);
/* Least n with wb_usl_at >= x; NaN when the curve does not reach x. */
double wb_usl_reach(const struct wb_usl *u, double x);

#define WB_USL_DRAWS 1000

/* 95 % percentile intervals; peak.hi is infinite when draws have no peak, and so is .lo. */
struct wb_usl_ends {
    double lo, hi;
};
struct wb_usl_interval {
    struct wb_usl_ends sigma, kappa, lambda, peak;
    const char *method; /* static: "bootstrap-runs" or "bootstrap-residuals" */
};
/* Draws rows anew WB_USL_DRAWS times: runs within each n where all n have 2 or more, else
 * residuals. Seeded by the rows; the same for rows in another unit. */
void wb_usl_bootstrap(const struct wb_usl_rows *d, const struct wb_usl *fit,
                      struct wb_usl_interval *out);

#endif
