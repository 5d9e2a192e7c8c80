/*
 * Measured throughput over concurrency, the curve fitted to it, and whether the curve may be used.
 * Behind `stats scaling` and the scaling report of a campaign.
 */
#ifndef WB_ANALYSIS_SCALING_H
#define WB_ANALYSIS_SCALING_H

#include "server/analysis/usl.h"
#include "server/base/json.h"

#define WB_SCALING_ROWS_LEAST 4
#define WB_SCALING_POINTS_LEAST 3 /* different concurrencies */
#define WB_SCALING_POINTS_GOOD 6
#define WB_SCALING_ROWS_MAX 10000

/* All rows of one concurrency. */
struct wb_scaling_point {
    double n, measured, fitted; /* measured: mean */
    double error;               /* standard error of the mean; NaN for one row */
    size_t rows;
};

struct wb_scaling {
    struct wb_usl_rows rows;
    struct wb_scaling_point *points;
    size_t npoints;
    bool fitted; /* there were enough rows; all below is meaningful only then */
    struct wb_usl usl, amdahl;
    struct wb_usl_interval interval;
    double *n, *x; /* the storage of rows */
};

/* From any order of rows (n > 0, x >= 0, both finite). Free with wb_scaling_release. */
void wb_scaling_of(const double *n, const double *x, size_t rows, struct wb_scaling *out);
void wb_scaling_release(struct wb_scaling *s);

/* Adds usable, usable_reason, do_not_use and warnings. */
void wb_scaling_check(const struct wb_scaling *s, wb_json *answer, wb_json *warnings);
/* Adds the keys of the contract (sigma ... points) except n, method, dropped_rows and the end. */
void wb_scaling_json(const struct wb_scaling *s, wb_json *answer, wb_json *warnings);
/* One sentence: where it peaks, or towards what it grows. Caller frees. */
char *wb_scaling_sentence(const struct wb_scaling *s, bool usable);
/* Adds peak_*, asymptote_throughput and knee_concurrency of a curve; lo and hi: measured range, NaN
 * when nothing was measured; best: greatest measured throughput, or NaN. */
void wb_scaling_peak_json(const struct wb_usl *u, double lo, double hi, double best,
                          wb_json *answer);

#endif
