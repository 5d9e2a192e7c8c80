#include "server/analysis/rank.h"

#include <math.h>
#include <stdlib.h>

#include "server/analysis/moments.h"
#include "server/base/mem.h"

#define EXACT_SUM_MAX 120    /* values in both sets */
#define EXACT_SIGNED_MAX 200 /* changes */
#define TAIL 0.025

struct tagged {
    double value;
    bool other;
};

static int by_value(const void *a, const void *b)
{
    double x = ((const struct tagged *)a)->value, y = ((const struct tagged *)b)->value;

    return (x > y) - (x < y);
}

/* How often each sum of k of the n ranks (ascending) occurs among all choices of k; *max is the
 * greatest sum. Caller frees. */
static double *count_sums(const int *ranks, size_t n, size_t k, int *max)
{
    double **counts = wb_calloc(k + 1, sizeof(*counts)), *row;
    int *least = wb_calloc(k + 1, sizeof(int)); /* least sum of j ranks */

    *max = 0;
    for (size_t i = n - k; i < n; i++)
        *max += ranks[i];
    for (size_t j = 0; j <= k; j++) {
        counts[j] = wb_calloc((size_t)*max + 1, sizeof(double));
        least[j] = j == 0 ? 0 : least[j - 1] + ranks[j - 1];
    }
    counts[0][0] = 1;
    for (size_t i = 0; i < n; i++) {
        int most = 0; /* greatest sum of j - 1 of the first i ranks, for the j below */
        size_t top = i + 1 < k ? i + 1 : k;
        for (size_t j = 1; j < top; j++)
            most += ranks[i - j];
        for (size_t j = top; j >= 1; j--) {
            for (int s = least[j - 1]; s <= most; s++)
                counts[j][s + ranks[i]] += counts[j - 1][s];
            if (j >= 2)
                most -= ranks[i - (j - 1)];
        }
    }
    row = counts[k];
    for (size_t j = 0; j < k; j++)
        free(counts[j]);
    free(counts);
    free(least);
    return row;
}

/* Doubled mid-ranks of sorted values; the sum of t^3 - t over groups of ties goes to *ties. */
static void doubled_ranks(const struct tagged *v, size_t n, int *ranks, double *ties)
{
    *ties = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double t;
        for (end = i + 1; end < n && v[end].value == v[i].value; end++)
            ;
        t = (double)(end - i);
        *ties += t * t * t - t;
        for (size_t k = i; k < end; k++)
            ranks[k] = (int)(i + 1 + end);
    }
}

static double sum_test_exact(const int *ranks, size_t n, size_t total, int w)
{
    int max, mean = (int)(n * (total + 1)); /* of the doubled rank sum */
    double *counts = count_sums(ranks, total, n, &max), tail = 0, all = 0;

    for (int s = 0; s <= max; s++) {
        all += counts[s];
        if (abs(s - mean) >= abs(w - mean))
            tail += counts[s];
    }
    free(counts);
    return tail / all;
}

void wb_mann_whitney(const double *base, size_t n, const double *other, size_t m,
                     struct wb_rank_test *out)
{
    size_t total = n + m;
    WB_AUTO_FREE struct tagged *v = wb_calloc(total, sizeof(*v));
    WB_AUTO_FREE int *ranks = wb_calloc(total, sizeof(int));
    bool exact = total <= EXACT_SUM_MAX;
    int w = 0; /* doubled rank sum of base */
    double ties;

    for (size_t i = 0; i < total; i++) {
        v[i].other = i >= n;
        v[i].value = i < n ? base[i] : other[i - n];
    }
    qsort(v, total, sizeof(*v), by_value);
    doubled_ranks(v, total, ranks, &ties);
    for (size_t i = 0; i < total; i++)
        w += v[i].other ? 0 : ranks[i];
    out->method = exact ? "mann-whitney-exact" : "mann-whitney-normal";
    out->zeros = 0;
    out->defined = v[0].value != v[total - 1].value;
    out->p = 1;
    if (!out->defined)
        return;
    if (exact) {
        /* The rank sum of the smaller set is as far from its mean and cheaper to count. */
        int sum = (int)(total * (total + 1));
        out->p =
            n <= m ? sum_test_exact(ranks, n, total, w) : sum_test_exact(ranks, m, total, sum - w);
    } else {
        double nm = (double)n * (double)m, big = (double)total;
        double away = fabs(w / 2.0 - (double)n * (big + 1) / 2) - 0.5;
        double sd = sqrt(nm / 12 * (big + 1 - ties / (big * (big - 1))));
        out->p = away <= 0 ? 1 : erfc(away / sd / sqrt(2));
    }
}

size_t wb_mann_whitney_cut(size_t n, size_t m)
{
    return wb_mann_whitney_cut_at(n, m, TAIL);
}

size_t wb_mann_whitney_cut_at(size_t n, size_t m, double most)
{
    size_t total = n + m, few = n < m ? n : m, k = 0;
    WB_AUTO_FREE int *ranks = wb_calloc(total, sizeof(int));
    double *counts, all = 0, tail = 0;
    int max, least = (int)(few * (few + 1) / 2);

    if (few == 0)
        return 0;
    if (total > EXACT_SUM_MAX) {
        double nm = (double)n * (double)m;
        double cut =
            floor(nm / 2 - wb_normal_quantile(1 - most) * sqrt(nm * ((double)total + 1) / 12));
        return cut < 1 ? 0 : (size_t)cut;
    }
    for (size_t i = 0; i < total; i++)
        ranks[i] = (int)i + 1;
    counts = count_sums(ranks, total, few, &max);
    for (int s = least; s <= max; s++)
        all += counts[s];
    for (int s = least; s <= max; s++) {
        tail += counts[s];
        if (tail / all > most)
            break;
        k++;
    }
    free(counts);
    return k;
}

/* ---- paired ---- */

static int by_size(const void *a, const void *b)
{
    double x = ((const struct wb_change *)a)->size, y = ((const struct wb_change *)b)->size;

    return (x > y) - (x < y);
}

/* Probability of each sum of a random choice among the n ranks, each taken with 1/2. Halving is
 * exact, so only the additions round. Caller frees. */
static double *sign_distribution(const int *ranks, size_t n, int *max)
{
    double *p;
    int reach = 0;

    *max = 0;
    for (size_t i = 0; i < n; i++)
        *max += ranks[i];
    p = wb_calloc((size_t)*max + 1, sizeof(double));
    p[0] = 1;
    for (size_t i = 0; i < n; i++) {
        int r = ranks[i];
        reach += r;
        for (int s = reach; s >= r; s--)
            p[s] = (p[s] + p[s - r]) / 2;
        for (int s = r - 1; s >= 0; s--)
            p[s] /= 2;
    }
    return p;
}

static double signed_test_exact(const int *ranks, size_t n, int positive)
{
    int max;
    double *p = sign_distribution(ranks, n, &max), tail = 0;
    int away = abs(2 * positive - max); /* twice the distance from the mean */

    for (int s = 0; s <= max; s++)
        if (abs(2 * s - max) >= away)
            tail += p[s];
    free(p);
    return tail < 1 ? tail : 1;
}

static double signed_test_normal(const int *ranks, size_t n, int positive)
{
    double variance = 0, away;
    int all = 0;

    for (size_t i = 0; i < n; i++) {
        all += ranks[i];
        variance += (double)ranks[i] * ranks[i] / 16; /* ranks are doubled */
    }
    away = fabs(positive / 2.0 - all / 4.0) - 0.5;
    return away <= 0 ? 1 : erfc(away / sqrt(variance) / sqrt(2));
}

void wb_signed_rank(struct wb_change *v, size_t n, double tolerance, struct wb_rank_test *out)
{
    WB_AUTO_FREE int *ranks = wb_calloc(n, sizeof(int));
    size_t used = 0; /* changes other than 0 */
    int positive = 0;

    for (size_t i = 0; i < n; i++)
        if (v[i].sign == 0)
            v[i].size = 0;
    qsort(v, n, sizeof(*v), by_size);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && v[end].size - v[i].size <= tolerance * v[end].size; end++)
            ;
        for (size_t k = i; k < end; k++) {
            if (v[k].sign == 0)
                continue;
            ranks[used] = (int)(i + 1 + end);
            if (v[k].sign > 0)
                positive += ranks[used];
            used++;
        }
    }
    out->zeros = n - used;
    out->defined = used > 0;
    out->method = n <= EXACT_SIGNED_MAX ? "signed-rank-exact" : "signed-rank-normal";
    out->p = 1;
    if (used > 0)
        out->p = n <= EXACT_SIGNED_MAX ? signed_test_exact(ranks, used, positive)
                                       : signed_test_normal(ranks, used, positive);
}

size_t wb_signed_rank_cut(size_t n)
{
    return wb_signed_rank_cut_at(n, TAIL);
}

size_t wb_signed_rank_cut_at(size_t n, double most)
{
    WB_AUTO_FREE int *ranks = wb_calloc(n, sizeof(int));
    double *p, tail = 0;
    size_t k = 0;
    int max;

    if (n == 0)
        return 0;
    if (n > EXACT_SIGNED_MAX) {
        double d = (double)n;
        return (size_t)floor(d * (d + 1) / 4 -
                             wb_normal_quantile(1 - most) * sqrt(d * (d + 1) * (2 * d + 1) / 24));
    }
    for (size_t i = 0; i < n; i++)
        ranks[i] = (int)i + 1;
    p = sign_distribution(ranks, n, &max);
    for (int s = 0; s <= max; s++) {
        tail += p[s];
        if (tail > most)
            break;
        k++;
    }
    free(p);
    return k;
}
