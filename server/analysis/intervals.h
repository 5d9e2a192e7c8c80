/*
 * Throughput interval by interval, and what its shape is. Only for steady*.c and intervals*.c.
 */
#ifndef WB_ANALYSIS_INTERVALS_H
#define WB_ANALYSIS_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/json.h"

#define WB_INTERVALS_MAX 200000

struct wb_intervals {
    double *from, *seconds, *rate; /* rate: per second */
    size_t n;
};

/* The intervals of a document of `stats steady`, in order, without those that have no value.
 * WB_INVALID with a pointer. Owned by out. */
int wb_intervals_read(const wb_json *in, struct wb_intervals *out, wb_json *warnings,
                      struct wb_err *err) WB_MUST_CHECK;
void wb_intervals_release(struct wb_intervals *v);
/* Those that lie within [from, to] seconds; borrowed from v (do not release). */
struct wb_intervals wb_intervals_window(const struct wb_intervals *v, double from, double to);
/* Operations over time; NaN when there are none. */
double wb_intervals_mean(const struct wb_intervals *v);
double wb_intervals_end(const struct wb_intervals *v);

/* Joins `per` neighbours into one interval; the rest at the end joins the last. Owned. */
struct wb_intervals wb_intervals_joined(const struct wb_intervals *v, size_t per);

enum wb_trait { /* the order in which they name the class */
                WB_T_NONE = 1,
                WB_T_SLOWDOWN = 2,
                WB_T_WARMUP = 4,
                WB_T_PERIODIC = 8,
                WB_T_STALL = 16,
                WB_T_FLAT = 32,
};

struct wb_level {
    double from, to, mean; /* seconds */
    size_t first, n;       /* intervals */
};

struct wb_shape {
    unsigned traits; /* WB_T_* */
    double begin;    /* of the first interval */
    double cut;      /* seconds from there; NaN without a steady state */
    struct wb_level *levels;
    size_t nlevels;
    struct wb_level *stalls;
    size_t nstalls;
    double period;      /* seconds; NaN when not periodic */
    double before, at;  /* slowdown: mean before, and when; else NaN */
    double steady_mean; /* of the last level */
    double cool_down;   /* begin of a short last level that is off; NaN when there is none */
    double mser_cut;    /* NaN when there are too few intervals */
    bool mser_half;     /* the cut lies at the limit: half of the run */
    double quarter_mean, quarter_cv, quarter_slope, quarter_slope_percent;
    const char *why; /* static: why there is no steady state */
};

/* The shape of at least 2 intervals. */
void wb_shape_of(const struct wb_intervals *v, struct wb_shape *out);
void wb_shape_release(struct wb_shape *s);

#endif
