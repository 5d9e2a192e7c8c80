/*
 * The arrival stream of open-loop load: arrival k of the whole run has a fixed time that follows
 * from (rates, law, seed) alone. A thread owns the arrivals k = first, first + stride, ..., so any
 * number of threads and hosts makes the same stream.
 *
 * An arrival stands at a number of mean gaps: k for the constant law; for the Poisson law the sum
 * of k+1 exponential gaps, each a pure function of (seed, index), summed as integers of 2^-24 mean
 * gaps, so that the sum does not depend on who adds. A thread walks all gaps: about 10 ns per
 * arrival of the whole stream.
 *
 * The rate says when that many gaps are over. One rate: gaps / rate, computed each time (a double
 * is exact to below 1 ns for days). Steps and ramps: pieces of a constant or linearly changing
 * rate, whose integral is inverted in closed form.
 */
#ifndef WB_LOAD_SCHEDULE_H
#define WB_LOAD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define WB_RATE_SEGMENTS_MAX 64
#define WB_ARRIVALS_FAR (INT64_MAX / 4) /* no arrival is later than this, ns */

/* Part of a profile of rates: from == to is a step, else a ramp. Per second, > 0. */
struct wb_rate_segment {
    double from_per_s, to_per_s;
};

/* A segment with its place in the schedule. */
struct wb_rate_piece {
    double start_ns, start_gaps; /* where it begins, in time and in mean gaps */
    double rate_per_s, slope;    /* at its begin; change per second, per second */
};

struct wb_schedule {
    double rate_per_s; /* > 0; where there are pieces not used */
    bool poisson;
    uint64_t seed;
    uint32_t stride; /* threads of all hosts */
    int npieces;     /* 0: one rate */
    struct wb_rate_piece piece[WB_RATE_SEGMENTS_MAX + 2];
};

/* Gives a schedule its pieces: the first rate for warm_up_ns, then n segments of equal length
 * that take for_ns together, then the last rate without end. 1 <= n <= WB_RATE_SEGMENTS_MAX. */
void wb_schedule_profile(struct wb_schedule *s, const struct wb_rate_segment *seg, int n,
                         int64_t warm_up_ns, int64_t for_ns);
/* The rate at a time after the start. */
double wb_schedule_rate(const struct wb_schedule *s, int64_t at_ns);
/* Mean gaps that are over at a time after the start: expected arrivals of the whole stream. */
double wb_schedule_gaps(const struct wb_schedule *s, int64_t at_ns);

/* A cursor on the arrivals of one owner. */
struct wb_arrivals {
    const struct wb_schedule *s;
    uint64_t k;      /* index of the arrival it stands on */
    int64_t at;      /* its time, ns since the start of the schedule */
    uint64_t walked; /* Poisson: gaps summed so far */
    uint64_t sum;    /* their sum */
    int piece;       /* it stands in */
};

void wb_arrivals_start(struct wb_arrivals *a, const struct wb_schedule *s, uint32_t first);

uint64_t wb_arrivals_gap(uint64_t seed, uint64_t index); /* one Poisson gap in 2^-24 means */
void wb_arrivals_place(struct wb_arrivals *a);           /* the part of next that is not simple */

static inline int64_t wb_arrivals_constant(double rate_per_s, uint64_t k)
{
    double at = (double)k * 1e9 / rate_per_s;

    return at < (double)WB_ARRIVALS_FAR ? (int64_t)at : WB_ARRIVALS_FAR;
}

/* Moves on to the owner's next arrival. */
static inline void wb_arrivals_next(struct wb_arrivals *a)
{
    a->k += a->s->stride;
    if (a->s->poisson || a->s->npieces > 0)
        wb_arrivals_place(a);
    else
        a->at = wb_arrivals_constant(a->s->rate_per_s, a->k);
}

/* Moves past all arrivals before `until` (ns since start); returns how many. */
uint64_t wb_arrivals_pass(struct wb_arrivals *a, int64_t until);

#endif
