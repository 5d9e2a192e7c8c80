/*
 * Rank tests for two sets of runs. Exact where that is affordable: the null distribution is counted
 * over doubled mid-ranks (integers), so ties change nothing in the method. Two-sided p is
 * P(|W - mean| >= |w - mean|), never 0.
 */
#ifndef WB_ANALYSIS_RANK_H
#define WB_ANALYSIS_RANK_H

#include <stdbool.h>
#include <stddef.h>

/* Most values of one side; all counts of the exact distributions then fit a double. */
#define WB_VALUES_MAX 1000

struct wb_rank_test {
    bool defined; /* false when all values (paired: all changes) are equal; then p is 1 */
    double p;
    const char *method; /* static: "mann-whitney-exact", "mann-whitney-normal", ... */
    size_t zeros;       /* paired: rounds without any change */
};

/* Mann-Whitney over two independent sets; exact up to 120 values in all, else the normal
 * approximation with corrections for ties and continuity. Both sets non-empty. */
void wb_mann_whitney(const double *base, size_t n, const double *other, size_t m,
                     struct wb_rank_test *out);

/* A change within a round, as a size > 0 (ratio of the larger to the smaller value less 1 is as
 * good as any other increasing measure) and a sign. */
struct wb_change {
    double size;
    int sign; /* -1, 0, 1 */
};

/* Wilcoxon's signed-rank test; zeros are ranked and then put aside (Pratt). Sizes that differ by
 * less than `tolerance` times the larger count as tied, which rounding would hide. Exact up to 200
 * changes. Sorts v. n > 0. */
void wb_signed_rank(struct wb_change *v, size_t n, double tolerance, struct wb_rank_test *out);

/* Largest k with P(U <= k-1) <= 0.025 for sets of n and m without ties: the k-th smallest and k-th
 * largest of the n*m ratios bound a 95 % interval. 0 when even k = 1 is too much. */
size_t wb_mann_whitney_cut(size_t n, size_t m);
/* The same with another bound than 0.025. */
size_t wb_mann_whitney_cut_at(size_t n, size_t m, double most);
/* The same for the n(n+1)/2 Walsh averages of n changes. */
size_t wb_signed_rank_cut(size_t n);
size_t wb_signed_rank_cut_at(size_t n, double most);

#endif
