/* The exact tests against counting by hand, published critical values, and their promises: how
 * often they are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "server/analysis/adjust.h"
#include "server/analysis/effect.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define CLOSE(a, b) assert_true(fabs((a) - (b)) <= 1e-12 * fmax(1, fabs(b)))

/* Doubled mid-rank of v[i] among n values. */
static int rank_of(const double *v, size_t n, size_t i)
{
    int below = 0, same = 0;

    for (size_t k = 0; k < n; k++) {
        below += v[k] < v[i];
        same += v[k] == v[i];
    }
    return 2 * below + same + 1;
}

/* P(|W - mean| >= |w - mean|) by looking at every choice of n among all. */
static double count_sum_test(const double *v, size_t n, size_t total)
{
    long hits = 0, all = 0;
    int w = 0, mean = (int)(n * (total + 1));

    for (size_t i = 0; i < n; i++)
        w += rank_of(v, total, i);
    for (uint32_t set = 0; set < 1u << total; set++) {
        int sum = 0;
        if ((size_t)__builtin_popcount(set) != n)
            continue;
        for (size_t i = 0; i < total; i++)
            if (set & (1u << i))
                sum += rank_of(v, total, i);
        all++;
        hits += abs(sum - mean) >= abs(w - mean);
    }
    return (double)hits / (double)all;
}

static void sum_test_equals_counting(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 20261130);
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + wb_rng_below(&r, 6), m = 1 + wb_rng_below(&r, 6);
        uint64_t kinds = 2 + wb_rng_below(&r, 12); /* few kinds: many ties */
        struct wb_rank_test t, swapped;
        double v[12];
        bool equal = true;
        for (size_t i = 0; i < n + m; i++) {
            v[i] = (double)wb_rng_below(&r, kinds) - 3.5;
            equal &= v[i] == v[0];
        }
        wb_mann_whitney(v, n, v + n, m, &t);
        assert_int_equal(t.defined, !equal);
        assert_string_equal(t.method, "mann-whitney-exact");
        CLOSE(t.p, count_sum_test(v, n, n + m));
        wb_mann_whitney(v + n, m, v, n, &swapped);
        CLOSE(t.p, swapped.p);
        assert_true(t.p > 0 && t.p <= 1);
    }
}

/* By flipping the signs of all changes in every way; zeros take ranks and are then put aside. */
static double count_signed_test(const struct wb_change *v, size_t n)
{
    int ranks[16], positive = 0, sum_of_all = 0;
    size_t used = 0;
    double sizes[16];
    long hits = 0;

    for (size_t i = 0; i < n; i++)
        sizes[i] = v[i].sign == 0 ? 0 : v[i].size;
    for (size_t i = 0; i < n; i++) {
        if (v[i].sign == 0)
            continue;
        ranks[used] = rank_of(sizes, n, i);
        positive += v[i].sign > 0 ? ranks[used] : 0;
        sum_of_all += ranks[used++];
    }
    for (uint32_t signs = 0; signs < 1u << used; signs++) {
        int sum = 0;
        for (size_t i = 0; i < used; i++)
            if (signs & (1u << i))
                sum += ranks[i];
        hits += abs(2 * sum - sum_of_all) >= abs(2 * positive - sum_of_all);
    }
    return (double)hits / (double)(1u << used);
}

static void signed_test_equals_counting(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 7);
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + wb_rng_below(&r, 12), zeros = 0;
        uint64_t kinds = 1 + wb_rng_below(&r, 15);
        struct wb_change v[12];
        struct wb_rank_test t;
        double want;
        for (size_t i = 0; i < n; i++) {
            v[i].sign = (int)wb_rng_below(&r, 5) - 2;
            v[i].sign = (v[i].sign > 0) - (v[i].sign < 0);
            v[i].size = 1 + (double)wb_rng_below(&r, kinds) / 8;
            zeros += v[i].sign == 0;
        }
        want = count_signed_test(v, n);
        wb_signed_rank(v, n, 1e-12, &t);
        assert_int_equal(t.zeros, zeros);
        assert_int_equal(t.defined, zeros < n);
        CLOSE(t.p, want);
    }
}

static void ties_spoilt_by_rounding_are_ties(void **state)
{
    struct wb_change exact[] = {{2, 1}, {2, -1}, {3, 1}, {5, 1}};
    struct wb_change spoilt[] = {{2, 1}, {2 + 4e-16, -1}, {3, 1}, {5, 1}};
    struct wb_rank_test a, b;

    wb_signed_rank(exact, 4, 1e-12, &a);
    wb_signed_rank(spoilt, 4, 1e-12, &b);
    assert_true(a.p == b.p);
}

/* Published two-sided 5 % critical values: U or T at most this is significant, so one more order
 * statistic bounds the interval. */
static void cuts_are_the_published_ones(void **state)
{
    static const struct {
        size_t n, m;
        int critical;
    } sums[] = {{3, 3, -1},   {3, 4, -1},    {3, 5, 0},    {4, 4, 0},   {4, 5, 1},    {5, 5, 2},
                {6, 6, 5},    {7, 7, 8},     {8, 8, 13},   {5, 10, 8},  {10, 10, 23}, {10, 5, 8},
                {15, 15, 64}, {20, 20, 127}, {12, 18, 61}, {1, 20, -1}, {2, 8, 0}};
    static const struct {
        size_t n;
        int critical;
    } signs[] = {{1, -1},  {5, -1},  {6, 0},   {7, 2},   {8, 3},    {9, 5},    {10, 8},
                 {12, 13}, {15, 25}, {20, 52}, {25, 89}, {30, 137}, {40, 264}, {50, 434}};

    for (size_t i = 0; i < WB_LEN(sums); i++)
        assert_int_equal(wb_mann_whitney_cut(sums[i].n, sums[i].m), sums[i].critical + 1);
    for (size_t i = 0; i < WB_LEN(signs); i++)
        assert_int_equal(wb_signed_rank_cut(signs[i].n), signs[i].critical + 1);
    assert_int_equal(wb_mann_whitney_cut(0, 5), 0);
    assert_int_equal(wb_signed_rank_cut(0), 0);
}

/* The approximations join where the counting ends. */
static void approximations_join(void **state)
{
    double v[122];
    struct wb_rank_test exact, normal;
    struct wb_change c[201], fewer[200];
    struct wb_rng r;

    assert_true(fabs((double)wb_mann_whitney_cut(60, 60) - (double)wb_mann_whitney_cut(61, 60)) <
                40);
    assert_true(wb_signed_rank_cut(201) - wb_signed_rank_cut(200) < 110);
    wb_rng_seed(&r, 5);
    for (size_t i = 0; i < 122; i++)
        v[i] = wb_rng_unit(&r) + (i < 61 ? 0 : 0.1);
    v[60] = v[121] = 0.55; /* one more value a side, in the middle: hardly anything changes */
    wb_mann_whitney(v, 60, v + 61, 60, &exact);
    wb_mann_whitney(v, 61, v + 61, 61, &normal);
    assert_string_equal(exact.method, "mann-whitney-exact");
    assert_string_equal(normal.method, "mann-whitney-normal");
    assert_true(exact.p > 0.001 && fabs(exact.p - normal.p) < 0.1 * exact.p);
    for (size_t i = 0; i < 201; i++)
        c[i] = (struct wb_change){1 + wb_rng_unit(&r), wb_rng_unit(&r) < 0.58 ? 1 : -1};
    for (size_t i = 0; i < 200; i++)
        fewer[i] = c[i + 1];
    c[0].size = 0.5; /* the least of all */
    wb_signed_rank(fewer, 200, 1e-12, &exact);
    wb_signed_rank(c, 201, 1e-12, &normal);
    assert_string_equal(exact.method, "signed-rank-exact");
    assert_string_equal(normal.method, "signed-rank-normal");
    assert_true(exact.p > 0.001 && fabs(exact.p - normal.p) < 0.1 * exact.p);
}

static void sixty_rounds_are_exact(void **state)
{
    struct wb_change c[60];
    struct wb_rank_test t;

    for (size_t i = 0; i < 60; i++)
        c[i] = (struct wb_change){1 + (double)i / 100, 1};
    wb_signed_rank(c, 60, 1e-12, &t);
    assert_string_equal(t.method, "signed-rank-exact");
    CLOSE(t.p * ldexp(1, 59), 1.0); /* 2 of 2^60 */
}

static void adjusts_a_published_family(void **state)
{
    /* Benjamini and Hochberg 1995, table 1: 15 p, four are rejected at 0.05. */
    static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                               0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
    double q[15];
    int rejected = 0;

    wb_adjust(p, 15, q);
    for (size_t i = 0; i < 15; i++)
        rejected += q[i] <= WB_FDR;
    assert_int_equal(rejected, 4);
    CLOSE(q[0], 0.0015);
    CLOSE(q[3], 0.035625);
    CLOSE(q[4], 0.0603);
    CLOSE(q[7], 0.0645);
    CLOSE(q[14], 1.0);
}

static void untestable_cells_do_not_count(void **state)
{
    const double p[] = {0.02, NAN, 0.04, NAN};
    double q[4];

    wb_adjust(p, 4, q);
    CLOSE(q[0], 0.04);
    CLOSE(q[2], 0.04);
    assert_true(isnan(q[1]) && isnan(q[3]));
    wb_adjust(NULL, 0, NULL);
}

/* Noise as runs have it: nearly normal, 1 %, now and then a run 5 % slow. */
static double noise(struct wb_rng *r)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += wb_rng_unit(r);
    return 1 + (sum - 6) * 0.01 - (wb_rng_unit(r) < 0.05 ? 0.05 : 0);
}

/* Verdicts of `rounds` pairs with a true ratio, out of 2000 campaigns. */
static void tally(double ratio, size_t rounds, bool paired, int counts[8], int *covered)
{
    struct wb_rng r;

    wb_rng_seed(&r, 99);
    for (int v = 0; v < 8; v++)
        counts[v] = 0;
    *covered = 0;
    for (int campaign = 0; campaign < 2000; campaign++) {
        double base[30], other[30];
        struct wb_effect e;
        struct wb_effect_input in = {.base = base,
                                     .other = other,
                                     .nbase = rounds,
                                     .nother = rounds,
                                     .paired = paired,
                                     .better = WB_BETTER_HIGHER,
                                     .threshold_percent = 2,
                                     .least = 6};
        for (size_t i = 0; i < rounds; i++) {
            double drift = paired ? 1 + (double)i * 0.01 : 1; /* the host gets faster */
            base[i] = 1000 * drift * noise(&r);
            other[i] = 1000 * drift * ratio * noise(&r);
        }
        wb_effect_of(&in, &e);
        counts[e.verdict]++;
        *covered += e.interval.lo <= ratio && ratio <= e.interval.hi;
    }
}

static void equal_arms_raise_no_alarm(void **state)
{
    int counts[8], covered;

    tally(1, 8, true, counts, &covered);
    assert_true(counts[WB_V_BETTER] + counts[WB_V_WORSE] <= 100);
    assert_true(covered >= 1880); /* 95 % less three standard errors of the simulation */
    tally(1, 8, false, counts, &covered);
    assert_true(counts[WB_V_BETTER] + counts[WB_V_WORSE] <= 100);
    assert_true(covered >= 1880);
    tally(1, 30, true, counts, &covered);
    assert_true(counts[WB_V_EQUIVALENT] >= 1600); /* and enough rounds say so */
    assert_true(counts[WB_V_BETTER] + counts[WB_V_WORSE] == 0);
}

static void planted_slowdowns_are_found(void **state)
{
    int counts[8], covered;

    tally(0.85, 8, true, counts, &covered);
    assert_true(counts[WB_V_WORSE] >= 1990);
    assert_int_equal(counts[WB_V_BETTER], 0);
    assert_true(covered >= 1880);
    tally(0.95, 8, true, counts, &covered);
    assert_true(counts[WB_V_WORSE] >= 1000);
    assert_int_equal(counts[WB_V_BETTER] + counts[WB_V_EQUIVALENT], 0);
    tally(1.05, 12, false, counts, &covered);
    assert_true(counts[WB_V_BETTER] >= 1400);
    assert_int_equal(counts[WB_V_WORSE], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_test_equals_counting),
        cmocka_unit_test(signed_test_equals_counting),
        cmocka_unit_test(ties_spoilt_by_rounding_are_ties),
        cmocka_unit_test(cuts_are_the_published_ones),
        cmocka_unit_test(approximations_join),
        cmocka_unit_test(sixty_rounds_are_exact),
        cmocka_unit_test(adjusts_a_published_family),
        cmocka_unit_test(untestable_cells_do_not_count),
        cmocka_unit_test(equal_arms_raise_no_alarm),
        cmocka_unit_test(planted_slowdowns_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
