/*
 * E-divisive (Matteson and James): where a sequence changes its distribution. The statistic of a
 * split of v[0, upto) at `at` is
 *
 *     Q = nm/(n+m) * (2 mean|x-y| between the parts - mean|x-x'| within each part),
 *
 * with means over distinct pairs (U-statistics), maximised over both `at` and `upto`: a change is
 * found even when the sequence changes once more behind it. O(n^2) time, O(n) memory.
 *
 * All functions are deterministic: same values, same answer, on every machine.
 */
#ifndef WB_ANALYSIS_EDIV_H
#define WB_ANALYSIS_EDIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WB_EDIV_MAX 4000 /* values of one call */

struct wb_ediv_split {
    size_t at;   /* first value of the new level */
    size_t upto; /* the new level was seen up to here (exclusive) */
    double q;
};

/* How a split is tested. */
struct wb_ediv_test {
    size_t least;          /* values a part has at least, >= 2 */
    unsigned permutations; /* e.g. 999 */
    double alpha;
    size_t block; /* values that are moved together: 1, more for autocorrelated sequences */
};

/* The best split. False when n < 2 * least. */
bool wb_ediv_best(const double *v, size_t n, size_t least, struct wb_ediv_split *out);

/*
 * Share of random orders of v whose best split is as good: (b+1)/(permutations+1), never 0. Stops
 * as soon as the share is certain to pass alpha; the result is then a lower bound above alpha. The
 * orders follow from a seed made of n and the ranks of v, so that no change of unit alters them.
 */
double wb_ediv_p(const double *v, size_t n, const struct wb_ediv_test *t, double q);

/*
 * A new level among the last values, the only place where few values must be enough: over the last
 * least..longest of them, how far their mean is from that of all in units of its error, by the same
 * kind of test. Values are clipped at four robust standard deviations, so that one spike is no
 * level. At least `before` values stay in front, else false. *at: first value of the new level.
 */
struct wb_tail_test {
    size_t least, longest, before;
    unsigned permutations;
    double alpha;
};
bool wb_tail_best(const double *v, size_t n, const struct wb_tail_test *t, size_t *at, double *p);

/* Seed of a sequence: its length and the order of its values. */
uint64_t wb_rank_seed(const double *v, size_t n);

/* Upper bound of p for a split of a short sequence by Student's t (pooled), the smallest over all
 * `at` and `upto` times the number of those: where there are too few orders for a permutation test
 * to be sure of anything. `alike`: how many neighbours say as much as one independent value, 1 or
 * more; (1+r)/(1-r) where they correlate by r. 1 when n < 2 * least. */
double wb_short_split_p(const double *v, size_t n, size_t least, double alike);

#endif
