/*
 * Merging encoded histograms whose parameters are not known beforehand. Only for histogram*.c.
 */
#ifndef WB_ANALYSIS_HIST_SUM_H
#define WB_ANALYSIS_HIST_SUM_H

#include "server/base/hist_read.h"
#include "server/base/json.h"

struct wb_hist_sum {
    struct wb_hist shape; /* parameters of the sum; ncounts 0 until something was added */
    uint64_t *counts;
    uint64_t total, over; /* over: values above the highest of fixed parameters */
    int64_t over_max;
    bool fixed; /* the parameters were asked for and are kept */
    bool log;   /* 3 digits at least and steps of 1, as other readers of logs count */
    /* Where the buckets of the last other shape belong; NO_BUCKET: above the highest. */
    struct wb_hist mapped;
    uint32_t *map;
};

/* Parameters that stay. */
int wb_hist_sum_fix(struct wb_hist_sum *s, int64_t lowest, int64_t highest, int digits,
                    struct wb_err *err) WB_MUST_CHECK;
/* Adds what a reader holds, by the lowest value of each bucket where the parameters differ; they
 * become those that fit all: the wider range, the fewer digits. WB_LIMIT when the counts would
 * pass 2^63, or the range would be too much. */
int wb_hist_sum_add(struct wb_hist_sum *s, const struct wb_hist_reader *r,
                    struct wb_err *err) WB_MUST_CHECK;
/* Adds another sum (of the same kind). */
int wb_hist_sum_join(struct wb_hist_sum *s, const struct wb_hist_sum *other,
                     struct wb_err *err) WB_MUST_CHECK;
/* The sum as a histogram, owned by the caller; of {1, 2, 0 digits} when nothing was added. */
void wb_hist_sum_make(const struct wb_hist_sum *s, struct wb_hist *out);
void wb_hist_sum_release(struct wb_hist_sum *s);

/* Highest value as good as the one at the percentile; h is not empty. */
int64_t wb_hist_java_percentile(const struct wb_hist *h, double p);

/* count, min, max, mean, stddev and percentiles as keys of o; what an empty histogram has not is
 * null with a reason. ps: n percentiles. */
void wb_hist_figures(const struct wb_hist *h, const double *ps, size_t n, wb_json *o);

#endif
