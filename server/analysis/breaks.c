#include "server/analysis/breaks.h"

#include <math.h>
#include <stdlib.h>

#include "server/base/mem.h"

#define PERMUTATIONS 999
#define FURTHER_ALPHA 0.005 /* once there is a break: each one adds a test */
#define SHORT_ALPHA 0.002   /* of the t-test; stricter, because it assumes normal noise */
#define SHORT_LEAST 8       /* values before a t-test may say anything */
#define P_LEAST 1e-6        /* nothing here is surer than that */
#define TAIL_LONGEST 8
#define BLOCKS_LEAST 8 /* of a sequence whose neighbours hang together */
#define TAIL_BEFORE 8

struct search {
    const double *v;
    size_t least, block;
    double alike; /* neighbours that say as much as one value */
    bool broken;  /* at least one break was found */
    struct wb_break *out;
    size_t n;
};

/* Whether so few orders exist that random ones cannot tell: of n values (or blocks), 2 in C(n,at)
 * orders have the same parts. */
static bool few_orders(size_t n, size_t at)
{
    size_t m = at < n - at ? at : n - at;
    double orders = 1;

    for (size_t i = 1; i <= m && orders < 1e9; i++)
        orders = orders * (double)(n - m + i) / (double)i;
    return 2 / orders > WB_BREAKS_ALPHA / 10;
}

static bool is_break(const struct search *s, const double *v, size_t n,
                     const struct wb_ediv_split *best, struct wb_break *out)
{
    struct wb_ediv_test test = {.least = s->least,
                                .permutations = PERMUTATIONS,
                                .alpha = s->broken ? FURTHER_ALPHA : WB_BREAKS_ALPHA,
                                .block = s->block};

    out->by = "permutation";
    out->p = wb_ediv_p(v, n, &test, best->q);
    if (out->p <= test.alpha)
        return true;
    if (n < SHORT_LEAST || !few_orders(n / s->block, best->at / s->block))
        return false;
    out->by = "t-test";
    out->p = fmax(wb_short_split_p(v, n, s->least, s->alike), P_LEAST);
    return out->p <= SHORT_ALPHA;
}

static void search_part(struct search *s, size_t from, size_t to)
{
    const double *v = s->v + from;
    struct wb_ediv_split best;
    struct wb_break found;

    while (wb_ediv_best(v, to - from, s->least, &best) && best.q > 0 &&
           is_break(s, v, to - from, &best, &found)) {
        found.at = from + best.at;
        s->broken = true;
        search_part(s, from, found.at);
        s->out[s->n++] = found;
        from = found.at;
        v = s->v + from;
    }
}

static void search_tail(struct search *s, size_t n)
{
    struct wb_tail_test test = {.least = s->least,
                                .longest = TAIL_LONGEST,
                                .before = TAIL_BEFORE,
                                .permutations = PERMUTATIONS,
                                .alpha = WB_BREAKS_TAIL_ALPHA};
    size_t from = s->n > 0 ? s->out[s->n - 1].at : 0, at;
    double p;

    if (!wb_tail_best(s->v + from, n - from, &test, &at, &p) || p > WB_BREAKS_TAIL_ALPHA)
        return;
    s->out[s->n++] = (struct wb_break){.at = from + at, .p = p, .by = "tail"};
}

size_t wb_breaks_find(const double *v, size_t n, size_t least, double correlation,
                      struct wb_break *out)
{
    double alike = correlation > 0 ? (1 + correlation) / (1.0001 - correlation) : 1;
    struct search s = {.v = v, .least = least, .block = 1, .alike = alike, .out = out};

    if (correlation > 0) {
        size_t block = (size_t)lround(2 * alike);
        s.block = block > n / BLOCKS_LEAST ? n / BLOCKS_LEAST : block;
        s.block = s.block > 0 ? s.block : 1;
    }

    search_part(&s, 0, n);
    if (correlation <= 0)
        search_tail(&s, n);
    return s.n;
}
