#include "runners/load/schedule.h"

#include <math.h>

#include "server/base/rng.h"

#define GAP_ONE 0x1p24 /* units of a mean gap */

uint64_t wb_arrivals_gap(uint64_t seed, uint64_t index)
{
    /* In (0, 1]: 53 bits, never 0, so the longest gap is 36.7 means. */
    double u = (double)((wb_mix64(seed, index) >> 11) + 1) * 0x1p-53;

    return (uint64_t)(-log(u) * GAP_ONE);
}

void wb_arrivals_walk(struct wb_arrivals *a)
{
    while (a->walked <= a->k)
        a->sum += wb_arrivals_gap(a->s->seed, a->walked++);
    a->at = (int64_t)((double)a->sum * (1e9 / GAP_ONE) / a->s->rate_per_s);
}

void wb_arrivals_start(struct wb_arrivals *a, const struct wb_schedule *s, uint32_t first)
{
    *a = (struct wb_arrivals){.s = s, .k = first};
    if (s->poisson)
        wb_arrivals_walk(a);
    else
        a->at = wb_arrivals_constant(s->rate_per_s, first);
}

uint64_t wb_arrivals_pass(struct wb_arrivals *a, int64_t until)
{
    uint64_t n = 0;

    if (!a->s->poisson && a->at < until) {
        /* Jump to just before the end, then step, so that rounding cannot matter. */
        double k_end = (double)until * a->s->rate_per_s / 1e9;
        double steps = (k_end - (double)a->k) / a->s->stride - 2;
        if (steps > 0) {
            n = (uint64_t)steps;
            a->k += n * a->s->stride;
            a->at = wb_arrivals_constant(a->s->rate_per_s, a->k);
        }
    }
    for (; a->at < until; n++)
        wb_arrivals_next(a);
    return n;
}
