#include "server/analysis/ediv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/robust.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

/*
 * Notation: W(a,b) is the sum of |x_i - x_j| over a <= i < j < b. For a split at t of [0,e):
 *
 *     Q = 2/e * (W(0,e) - (e-1) * (W(0,t)/(t-1) + W(t,e)/(e-t-1))),
 *
 * so for each e only the sum of the two averages has to be minimised over t. Going from e-1 to e
 * adds to each W(t,.) what the new value is away from x_t..x_{e-2}: one running sum.
 */
#define LANES 4 /* orders that are looked at together; the compiler makes vectors of them */
#define TIE 1e-9
/* A split this many times as good as the best of so many orders needs no more of them: the tail of
 * Q falls off exponentially, and none of 10^6 more would come near. Not for short sequences, where
 * the same parts come again by chance. */
#define CLEAR_POINTS 24
#define CLEAR_ORDERS 200
#define CLEAR_RATIO 2.0

struct lanes {
    double v[LANES];
};

struct work {
    void *memory;
    struct lanes *x;      /* n values of each order */
    struct lanes *within; /* [t]: W(t,e) */
    struct lanes *front;  /* [t]: W(0,t)/(t-1) */
    double *inverse;      /* [m]: 1/m */
};

static void work_init(struct work *w, size_t n)
{
    uintptr_t at;

    /* Lanes that lie across two cache lines cost twice. */
    w->memory = wb_calloc(3 * (n + 1) + 1, sizeof(struct lanes));
    at = (uintptr_t)w->memory + (-(uintptr_t)w->memory & (sizeof(struct lanes) - 1));
    w->x = (struct lanes *)at;
    w->within = w->x + n + 1;
    w->front = w->within + n + 1;
    w->inverse = wb_calloc(n + 1, sizeof(double));
    for (size_t i = 1; i <= n; i++)
        w->inverse[i] = 1.0 / (double)i;
}

static void work_release(struct work *w)
{
    free(w->memory);
    free(w->inverse);
}

bool wb_ediv_best(const double *v, size_t n, size_t least, struct wb_ediv_split *out)
{
    WB_AUTO_FREE double *within = wb_calloc(n + 1, sizeof(double));
    WB_AUTO_FREE double *front = wb_calloc(n + 1, sizeof(double));
    struct wb_ediv_split top = {.q = -HUGE_VAL};

    if (n < 2 * least)
        return false;
    for (size_t e = 1; e <= n; e++) {
        double sum = 0, low = HUGE_VAL, q;
        size_t at = 0;
        for (size_t t = e - 1; t-- > 0;) {
            sum += fabs(v[t] - v[e - 1]);
            within[t] += sum;
            if (t >= least && e - t >= least) {
                double both = front[t] + within[t] / (double)(e - t - 1);
                /* Of equally good places the last one: no rounding may choose. */
                if (at == 0 || both < low * (1 - 1e-12)) {
                    low = both;
                    at = t;
                }
            }
        }
        front[e] = e > 1 ? within[0] / (double)(e - 1) : 0;
        if (at == 0)
            continue;
        q = 2 / (double)e * (within[0] - (double)(e - 1) * low);
        if (top.at == 0 || q > top.q + 1e-12 * fabs(top.q))
            top = (struct wb_ediv_split){.at = at, .upto = e, .q = q};
    }
    *out = top;
    return true;
}

#define INLINE static inline __attribute__((always_inline))

/* W(t,e-1) becomes W(t,e); sum is what the value at e-1 is away from those from t on. */
INLINE void step(const struct work *w, size_t t, const struct lanes *last, struct lanes *sum)
{
    for (int j = 0; j < LANES; j++) {
        sum->v[j] += fabs(w->x[t].v[j] - last->v[j]);
        w->within[t].v[j] += sum->v[j];
    }
}

/* The best Q of LANES orders at once. Inlined into each variant below. */
INLINE void scan_all(const struct work *w, size_t n, size_t least, struct lanes *top)
{
    for (int j = 0; j < LANES; j++)
        top->v[j] = -HUGE_VAL;
    memset(w->within, 0, (n + 1) * sizeof(*w->within));
    for (size_t e = 1; e <= n; e++) {
        struct lanes sum = {{0}}, low, last = w->x[e - 1];
        size_t t = e - 1;
        for (int j = 0; j < LANES; j++)
            low.v[j] = HUGE_VAL;
        while (t > 0 && e - t + 1 < least)
            step(w, --t, &last, &sum);
        while (t > least) {
            double inverse = w->inverse[e - t];
            step(w, --t, &last, &sum);
            for (int j = 0; j < LANES; j++) {
                double both = w->front[t].v[j] + w->within[t].v[j] * inverse;
                low.v[j] = both < low.v[j] ? both : low.v[j];
            }
        }
        while (t > 0)
            step(w, --t, &last, &sum);
        for (int j = 0; j < LANES; j++) {
            double all = w->within[0].v[j];
            double q = 2 / (double)e * (all - (double)(e - 1) * low.v[j]);
            w->front[e].v[j] = e > 1 ? all * w->inverse[e - 1] : 0;
            top->v[j] = q > top->v[j] ? q : top->v[j];
        }
    }
}

static void scan_plain(const struct work *w, size_t n, size_t least, struct lanes *top)
{
    scan_all(w, n, least, top);
}

#if defined(__x86_64__)
/* The same operations in the same order on wider registers: the same bits come out. */
__attribute__((target("avx2"))) static void scan_wide(const struct work *w, size_t n, size_t least,
                                                      struct lanes *top)
{
    scan_all(w, n, least, top);
}
#endif

static void scan(const struct work *w, size_t n, size_t least, struct lanes *top)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        scan_wide(w, n, least, top);
        return;
    }
#endif
    scan_plain(w, n, least, top);
}

uint64_t wb_rank_seed(const double *v, size_t n)
{
    WB_AUTO_FREE size_t *order = wb_calloc(n, sizeof(*order));
    uint64_t seed = wb_mix64(n, 0);

    wb_rank_order(v, n, order);
    for (size_t i = 0; i < n; i++) {
        bool tied = i > 0 && v[order[i]] == v[order[i - 1]];
        seed = wb_mix64(seed, 2 * order[i] + tied);
    }
    return seed;
}

/* Uniform below n; the bias of at most n / 2^64 is of no account. */
static size_t draw(struct wb_rng *r, size_t n)
{
    return (size_t)(((unsigned __int128)wb_rng_u64(r) * n) >> 64);
}

static void shuffle(struct wb_rng *r, double *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = draw(r, i);
        double kept = v[i - 1];
        v[i - 1] = v[j];
        v[j] = kept;
    }
}

/* Blocks of neighbours in random order, beginning anywhere in the ring of values: what hangs
 * together over a few values stays together. */
static void shuffle_blocks(struct wb_rng *r, const double *v, size_t n, size_t block, double *out)
{
    size_t blocks = (n + block - 1) / block, from = draw(r, n), k = 0;
    WB_AUTO_FREE size_t *order = wb_calloc(blocks, sizeof(*order));

    for (size_t i = 0; i < blocks; i++) {
        size_t j = draw(r, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < blocks; i++)
        for (size_t b = order[i] * block; b < (order[i] + 1) * block && b < n; b++)
            out[k++] = v[(from + b) % n];
}

double wb_ediv_p(const double *v, size_t n, const struct wb_ediv_test *t, double q)
{
    WB_AUTO_FREE double *order = wb_calloc(n, sizeof(double));
    double limit = q - TIE * fabs(q);
    unsigned as_good = 0, done = 0;
    double top_seen = 0;
    struct work w;
    struct wb_rng rng;

    wb_rng_seed(&rng, wb_rank_seed(v, n));
    memcpy(order, v, n * sizeof(double));
    work_init(&w, n);
    while (done < t->permutations) {
        struct lanes top;
        for (int j = 0; j < LANES; j++) {
            if (t->block > 1)
                shuffle_blocks(&rng, v, n, t->block, order);
            else
                shuffle(&rng, order, n);
            for (size_t i = 0; i < n; i++)
                w.x[i].v[j] = order[i];
        }
        scan(&w, n, t->least, &top);
        for (int j = 0; j < LANES && done < t->permutations; j++, done++) {
            as_good += top.v[j] >= limit;
            top_seen = top.v[j] > top_seen ? top.v[j] : top_seen;
        }
        if (as_good + 1 > t->alpha * (t->permutations + 1) ||
            (n >= CLEAR_POINTS && done >= CLEAR_ORDERS && q > CLEAR_RATIO * top_seen))
            break;
    }
    work_release(&w);
    return (as_good + 1.0) / (t->permutations + 1.0);
}
