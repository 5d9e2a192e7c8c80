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

/* --- profiles --- */

static double gaps_within(const struct wb_rate_piece *p, double seconds)
{
    return (p->rate_per_s + p->slope * seconds / 2) * seconds;
}

/* The inverse: seconds after the piece's begin at which `gaps` are over. */
static double seconds_within(const struct wb_rate_piece *p, double gaps)
{
    double square = p->rate_per_s * p->rate_per_s + 2 * p->slope * gaps;

    /* The form that does not cancel. Behind the end of a falling ramp there is another piece, so
     * less than 0 is only rounding. */
    return 2 * gaps / (p->rate_per_s + sqrt(square > 0 ? square : 0));
}

/* Appends a piece that begins at a time. */
static void add_piece(struct wb_schedule *s, double start_ns, double rate, double slope)
{
    struct wb_rate_piece *p = &s->piece[s->npieces++];

    *p = (struct wb_rate_piece){.start_ns = start_ns, .rate_per_s = rate, .slope = slope};
    if (s->npieces > 1)
        p->start_gaps = p[-1].start_gaps + gaps_within(&p[-1], (start_ns - p[-1].start_ns) / 1e9);
}

void wb_schedule_profile(struct wb_schedule *s, const struct wb_rate_segment *seg, int n,
                         int64_t warm_up_ns, int64_t for_ns)
{
    double from = (double)warm_up_ns, length = (double)for_ns / n;

    s->npieces = 0;
    if (warm_up_ns > 0)
        add_piece(s, 0, seg[0].from_per_s, 0);
    for (int i = 0; i < n; i++)
        add_piece(s, from + length * i, seg[i].from_per_s,
                  (seg[i].to_per_s - seg[i].from_per_s) / (length / 1e9));
    add_piece(s, from + (double)for_ns, seg[n - 1].to_per_s, 0);
}

static int piece_at_time(const struct wb_schedule *s, double ns)
{
    int i = 0;

    while (i + 1 < s->npieces && s->piece[i + 1].start_ns <= ns)
        i++;
    return i;
}

double wb_schedule_rate(const struct wb_schedule *s, int64_t at_ns)
{
    const struct wb_rate_piece *p;

    if (s->npieces == 0)
        return s->rate_per_s;
    p = &s->piece[piece_at_time(s, (double)at_ns)];
    return p->rate_per_s + p->slope * ((double)at_ns - p->start_ns) / 1e9;
}

double wb_schedule_gaps(const struct wb_schedule *s, int64_t at_ns)
{
    const struct wb_rate_piece *p;

    if (s->npieces == 0)
        return s->rate_per_s * (double)at_ns / 1e9;
    p = &s->piece[piece_at_time(s, (double)at_ns)];
    return p->start_gaps + gaps_within(p, ((double)at_ns - p->start_ns) / 1e9);
}

/* --- arrivals --- */

/* When a number of mean gaps is over; not less than what it was asked for before. */
static int64_t time_of(struct wb_arrivals *a, double gaps)
{
    const struct wb_schedule *s = a->s;
    const struct wb_rate_piece *p;
    double at;

    if (s->npieces == 0) {
        at = gaps * 1e9 / s->rate_per_s;
    } else {
        while (a->piece + 1 < s->npieces && s->piece[a->piece + 1].start_gaps <= gaps)
            a->piece++;
        p = &s->piece[a->piece];
        at = p->start_ns + seconds_within(p, gaps - p->start_gaps) * 1e9;
    }
    return at < (double)WB_ARRIVALS_FAR ? (int64_t)at : WB_ARRIVALS_FAR;
}

void wb_arrivals_place(struct wb_arrivals *a)
{
    if (a->s->poisson) {
        while (a->walked <= a->k)
            a->sum += wb_arrivals_gap(a->s->seed, a->walked++);
        a->at = time_of(a, (double)a->sum / GAP_ONE);
    } else {
        a->at = time_of(a, (double)a->k);
    }
}

void wb_arrivals_start(struct wb_arrivals *a, const struct wb_schedule *s, uint32_t first)
{
    *a = (struct wb_arrivals){.s = s, .k = first};
    wb_arrivals_place(a);
}

uint64_t wb_arrivals_pass(struct wb_arrivals *a, int64_t until)
{
    uint64_t n = 0;

    if (!a->s->poisson && a->at < until) {
        /* Jump to just before the end, then step, so that rounding cannot matter. */
        double steps = (wb_schedule_gaps(a->s, until) - (double)a->k) / a->s->stride - 2;
        if (steps > 0) {
            n = (uint64_t)steps;
            a->k += n * a->s->stride;
            wb_arrivals_place(a);
        }
    }
    for (; a->at < until; n++)
        wb_arrivals_next(a);
    return n;
}
