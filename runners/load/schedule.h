/*
 * The arrival stream of open-loop load: arrival k of the whole run has a fixed time that follows
 * from (rate, law, seed) alone. A thread owns the arrivals k = first, first + stride, ..., so any
 * number of threads and hosts makes the same stream.
 *
 * Constant: k / rate, computed from k each time (a double is exact to below 1 ns for days).
 * Poisson: sum of k+1 exponential gaps, each a pure function of (seed, index), summed as integers
 * of 2^-24 mean gaps, so that the sum does not depend on who adds. A thread walks all gaps: about
 * 10 ns per arrival of the whole stream.
 */
#ifndef WB_LOAD_SCHEDULE_H
#define WB_LOAD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct wb_schedule {
    double rate_per_s; /* > 0 */
    bool poisson;
    uint64_t seed;
    uint32_t stride; /* threads of all hosts */
};

/* A cursor on the arrivals of one owner. */
struct wb_arrivals {
    const struct wb_schedule *s;
    uint64_t k;      /* index of the arrival it stands on */
    int64_t at;      /* its time, ns since the start of the schedule */
    uint64_t walked; /* Poisson: gaps summed so far */
    uint64_t sum;    /* their sum */
};

void wb_arrivals_start(struct wb_arrivals *a, const struct wb_schedule *s, uint32_t first);

uint64_t wb_arrivals_gap(uint64_t seed, uint64_t index); /* one Poisson gap in 2^-24 means */
void wb_arrivals_walk(struct wb_arrivals *a);            /* Poisson part of next */

static inline int64_t wb_arrivals_constant(double rate_per_s, uint64_t k)
{
    return (int64_t)((double)k * 1e9 / rate_per_s);
}

/* Moves on to the owner's next arrival. */
static inline void wb_arrivals_next(struct wb_arrivals *a)
{
    a->k += a->s->stride;
    if (a->s->poisson)
        wb_arrivals_walk(a);
    else
        a->at = wb_arrivals_constant(a->s->rate_per_s, a->k);
}

/* Moves past all arrivals before `until` (ns since start); returns how many. */
uint64_t wb_arrivals_pass(struct wb_arrivals *a, int64_t until);

#endif
