/* E-divisive and its helpers against the definitions, written out slowly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/breaks.h"
#include "server/analysis/ediv.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

static double mean_within(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            sum += fabs(v[i] - v[j]);
    return sum / ((double)n * (double)(n - 1) / 2);
}

static double q_of(const double *v, size_t at, size_t upto)
{
    double sum = 0, n = (double)at, m = (double)(upto - at);

    for (size_t i = 0; i < at; i++)
        for (size_t j = at; j < upto; j++)
            sum += fabs(v[i] - v[j]);
    return n * m / (n + m) *
           (2 * sum / (n * m) - mean_within(v, at) - mean_within(v + at, upto - at));
}

static double slow_best(const double *v, size_t n, size_t least)
{
    double top = -HUGE_VAL;

    for (size_t upto = 2 * least; upto <= n; upto++)
        for (size_t at = least; at + least <= upto; at++)
            top = fmax(top, q_of(v, at, upto));
    return top;
}

static void best_split(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 1);
    for (int t = 0; t < 300; t++) {
        size_t n = 4 + (size_t)wb_rng_below(&r, 30), least = 2 + (size_t)wb_rng_below(&r, 4);
        struct wb_ediv_split s;
        double v[40];
        for (size_t i = 0; i < n; i++)
            v[i] = t % 3 == 0 ? (double)wb_rng_below(&r, 3) : wb_rng_unit(&r) * 100;
        if (n < 2 * least) {
            assert_false(wb_ediv_best(v, n, least, &s));
            continue;
        }
        assert_true(wb_ediv_best(v, n, least, &s));
        assert_true(s.at >= least && s.at + least <= s.upto && s.upto <= n);
        assert_true(fabs(s.q - q_of(v, s.at, s.upto)) <= 1e-9 * (1 + fabs(s.q)));
        assert_true(fabs(s.q - slow_best(v, n, least)) <= 1e-9 * (1 + fabs(s.q)));
    }
}

static void count_orders(double *v, size_t n, size_t k, double q, size_t *all, size_t *as_good)
{
    if (k == n) {
        ++*all;
        *as_good += slow_best(v, n, 2) >= q * (1 - 1e-9);
        return;
    }
    for (size_t i = k; i < n; i++) {
        double kept = v[k];
        v[k] = v[i];
        v[i] = kept;
        count_orders(v, n, k + 1, q, all, as_good);
        v[i] = v[k];
        v[k] = kept;
    }
}

/* All 5,040 orders of seven values against 20,000 random ones. */
static void p_of_all_orders(void **state)
{
    static const double cases[][7] = {
        {1, 2, 3, 10, 11, 12, 13}, {5, 1, 4, 2, 3, 7, 6}, {1, 1, 1, 2, 2, 2, 2}};

    for (size_t c = 0; c < WB_LEN(cases); c++) {
        struct wb_ediv_test test = {.least = 2, .permutations = 19999, .alpha = 1, .block = 1};
        struct wb_ediv_split s;
        double v[7], exact, p;
        size_t all = 0, as_good = 0;
        memcpy(v, cases[c], sizeof(v));
        assert_true(wb_ediv_best(v, 7, 2, &s));
        count_orders(v, 7, 0, s.q, &all, &as_good);
        assert_int_equal(all, 5040);
        exact = (double)as_good / (double)all;
        p = wb_ediv_p(cases[c], 7, &test, s.q);
        assert_true(fabs(p - exact) < 4 * sqrt(exact * (1 - exact) / 20000) + 1e-4);
    }
}

/* Stopping early changes no decision, and a clear change needs few orders but has the same p. */
static void p_stops_early(void **state)
{
    struct wb_ediv_test test = {.least = 3, .permutations = 999, .alpha = 0.01, .block = 1};
    struct wb_ediv_split s;
    struct wb_rng r;
    double v[60];

    wb_rng_seed(&r, 2);
    for (size_t i = 0; i < WB_LEN(v); i++)
        v[i] = wb_rng_unit(&r);
    assert_true(wb_ediv_best(v, WB_LEN(v), 3, &s));
    assert_true(wb_ediv_p(v, WB_LEN(v), &test, s.q) > 0.01);
    for (size_t i = 30; i < WB_LEN(v); i++)
        v[i] += 5;
    assert_true(wb_ediv_best(v, WB_LEN(v), 3, &s));
    assert_int_equal(s.at, 30);
    assert_true(wb_ediv_p(v, WB_LEN(v), &test, s.q) == 0.001);
    test.block = 4;
    assert_true(wb_ediv_p(v, WB_LEN(v), &test, s.q) <= 0.01);
}

static void seed_of_order(void **state)
{
    static const double a[] = {1, 5, 3, 3, 9}, b[] = {10, 50, 30, 30, 90}, c[] = {1, 5, 3, 4, 9},
                        d[] = {5, 1, 3, 3, 9};

    assert_true(wb_rank_seed(a, 5) == wb_rank_seed(b, 5));
    assert_true(wb_rank_seed(a, 5) != wb_rank_seed(c, 5));
    assert_true(wb_rank_seed(a, 5) != wb_rank_seed(d, 5));
    assert_true(wb_rank_seed(a, 5) != wb_rank_seed(a, 4));
}

static void newest_level(void **state)
{
    struct wb_tail_test test = {
        .least = 3, .longest = 8, .before = 8, .permutations = 999, .alpha = 0.002};
    struct wb_rng r;
    double v[40], p;
    size_t at;

    wb_rng_seed(&r, 3);
    for (size_t i = 0; i < WB_LEN(v); i++)
        v[i] = 100 + wb_rng_unit(&r);
    assert_true(wb_tail_best(v, WB_LEN(v), &test, &at, &p));
    assert_true(p > 0.002);
    v[39] = 1000; /* one wild value is no level */
    assert_true(wb_tail_best(v, WB_LEN(v), &test, &at, &p));
    assert_true(p > 0.002);
    v[39] = v[38] = v[37] = v[36] = 103;
    assert_true(wb_tail_best(v, WB_LEN(v), &test, &at, &p));
    assert_true(p <= 0.002);
    assert_int_equal(at, 36);
    assert_false(wb_tail_best(v, 10, &test, &at, &p));
}

static void short_sequences(void **state)
{
    static const double clear[] = {99.7, 98.3, 99.1, 149, 149.7, 149.5, 149.1, 148.8, 150};
    static const double none[] = {1, 3, 2, 2, 1, 3, 2, 1, 3};
    static const double same[] = {2, 2, 2, 2, 2, 2, 2, 2};
    struct wb_break b[3];

    assert_true(wb_short_split_p(clear, WB_LEN(clear), 3, 1) < 1e-8);
    assert_true(wb_short_split_p(none, WB_LEN(none), 3, 1) > 0.5);
    assert_true(wb_short_split_p(same, WB_LEN(same), 3, 1) == 1);
    assert_true(wb_short_split_p(same, 3, 3, 1) == 1);
    assert_int_equal(wb_breaks_find(clear, WB_LEN(clear), 3, 0, b), 1);
    assert_int_equal(b[0].at, 3);
    assert_string_equal(b[0].by, "t-test");
    assert_int_equal(wb_breaks_find(same, WB_LEN(same), 3, 0, b), 0);
    assert_int_equal(wb_breaks_find(same, 0, 3, 0, b), 0);
}

static void robust_figures(void **state)
{
    static const double v[] = {1, 2, 4, 8, 7, 100}, line[] = {0, 2, 4, 6, 8, 10},
                        x[] = {0, 0.5, 1, 1.5, 2, 2.5}, flat[] = {3, 3, 3, 3, 3};
    size_t order[6];

    assert_true(wb_median_of(v, 6) == 5.5);
    assert_true(fabs(wb_mad_sigma(v, 6, 5.5) - 1.4826022185056018 * 3) < 1e-12);
    assert_true(wb_theil_sen(NULL, line, 6) == 2);
    assert_true(wb_theil_sen(x, line, 6) == 4);
    assert_true(wb_theil_sen(NULL, flat, 5) == 0);
    /* S = 15, var = 28.333: z = 14 / 5.3229 */
    assert_true(fabs(wb_mann_kendall(line, 6) - erfc(14 / sqrt(28.333333333333332) / M_SQRT2)) <
                1e-15);
    assert_true(wb_mann_kendall(flat, 5) == 1 && wb_mann_kendall(line, 3) == 1);
    assert_true(wb_lag1(flat, 5) == 0 && wb_lag1(line, 2) == 0);
    assert_true(fabs(wb_lag1(line, 6) - 0.5) < 1e-12);
    assert_true(wb_diff_sigma(line, 6) == 0 && wb_diff_sigma(line, 1) == 0);
    wb_rank_order(v, 6, order);
    assert_int_equal(order[3], 4);
    wb_rank_order(flat, 5, order);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(order[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_split),     cmocka_unit_test(p_of_all_orders),
        cmocka_unit_test(p_stops_early),  cmocka_unit_test(seed_of_order),
        cmocka_unit_test(newest_level),   cmocka_unit_test(short_sequences),
        cmocka_unit_test(robust_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
