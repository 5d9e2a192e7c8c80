#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "runners/load/schedule.h"
#include "server/base/mem.h"

#define SECOND 1000000000LL

/* k / rate in integers, for rates that are whole. */
static int64_t exact(uint64_t rate, uint64_t k)
{
    return (int64_t)((unsigned __int128)k * SECOND / rate);
}

/* From 1/s to 1M/s, near the start and days later: never off by more than 1 ns. */
static void test_constant_is_exact(void **state)
{
    static const uint64_t rates[] = {1, 2, 3, 7, 999, 1000, 33333, 100000, 299999, 1000000};
    static const uint64_t steps[] = {0, 1, 2, 999, 123456789, 86400000000ull};

    (void)state;
    for (size_t r = 0; r < WB_LEN(rates); r++) {
        for (size_t i = 0; i < WB_LEN(steps); i++) {
            if (steps[i] / rates[r] > 7 * 86400)
                continue;
            int64_t want = exact(rates[r], steps[i]);
            int64_t got = wb_arrivals_constant((double)rates[r], steps[i]);
            assert_true(llabs(got - want) <= 1);
        }
    }
    assert_int_equal(wb_arrivals_constant(0.001, 1), 1000 * SECOND);
    assert_int_equal(wb_arrivals_constant(2.5, 5), 2 * SECOND);
}

/* Arrivals in the first `seconds` are rate x seconds, whoever counts them. */
static void test_count(void **state)
{
    static const struct {
        double rate;
        int64_t until;
        uint64_t n;
    } rows[] = {
        {1, 10 * SECOND, 10},
        {1000, 10 * SECOND, 10000},
        {1000, 10 * SECOND + 1, 10001},
        {100000, 10 * SECOND, 1000000},
        {300000, 60 * SECOND, 18000000},
        {1000000, 3600 * SECOND, 3600000000ull},
        {0.5, 10 * SECOND, 5},
        {0.001, 10 * SECOND, 1},
        {1000, 0, 0},
        {1000, -5, 0},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        for (uint32_t stride = 1; stride <= 7; stride += 3) {
            struct wb_schedule s = {.rate_per_s = rows[i].rate, .stride = stride};
            uint64_t sum = 0;
            for (uint32_t first = 0; first < stride; first++) {
                struct wb_arrivals a;
                wb_arrivals_start(&a, &s, first);
                sum += wb_arrivals_pass(&a, rows[i].until);
                assert_true(a.at >= rows[i].until);
            }
            assert_int_equal(sum, rows[i].n);
        }
    }
}

/* Passing in pieces counts the same as at once, and steps the same as jumping. */
static void test_pass_in_pieces(void **state)
{
    (void)state;
    for (int poisson = 0; poisson < 2; poisson++) {
        struct wb_schedule s = {.rate_per_s = 33333.3, .stride = 3, .poisson = poisson, .seed = 9};
        struct wb_arrivals step, piece;
        uint64_t n = 0, m = 0;
        wb_arrivals_start(&step, &s, 2);
        wb_arrivals_start(&piece, &s, 2);
        for (int64_t t = 0; t <= SECOND; t += 7777777) {
            n += wb_arrivals_pass(&piece, t);
            for (; step.at < t; m++)
                wb_arrivals_next(&step);
            assert_int_equal(n, m);
            assert_int_equal(step.k, piece.k);
            assert_int_equal(step.at, piece.at);
        }
        assert_true(n > 10000);
    }
}

/* Any cut into threads and hosts makes the same global stream. */
static void test_partition(void **state)
{
    static const uint32_t strides[] = {2, 3, 5, 16};

    (void)state;
    for (int poisson = 0; poisson < 2; poisson++) {
        struct wb_schedule whole = {
            .rate_per_s = 12345.6, .stride = 1, .poisson = poisson, .seed = 77};
        for (size_t i = 0; i < WB_LEN(strides); i++) {
            struct wb_schedule cut = whole;
            struct wb_arrivals all, part[16];
            cut.stride = strides[i];
            wb_arrivals_start(&all, &whole, 0);
            for (uint32_t f = 0; f < cut.stride; f++)
                wb_arrivals_start(&part[f], &cut, f);
            for (uint64_t k = 0; k < 5000; k++) {
                struct wb_arrivals *p = &part[k % cut.stride];
                assert_int_equal(p->k, k);
                assert_int_equal(p->at, all.at);
                wb_arrivals_next(p);
                wb_arrivals_next(&all);
            }
        }
    }
}

/* Pieces of 1 s: warm-up at 100/s, then 100/s, a ramp 100..300/s, 50/s, and 50/s without end. */
static void profile(struct wb_schedule *s, bool poisson)
{
    static const struct wb_rate_segment seg[] = {{100, 100}, {100, 300}, {50, 50}};

    *s = (struct wb_schedule){.rate_per_s = 1, .stride = 1, .poisson = poisson, .seed = 4};
    wb_schedule_profile(s, seg, 3, SECOND, 3 * SECOND);
}

static void test_profile_values(void **state)
{
    static const struct {
        uint64_t k;
        double at_s;
    } rows[] = {{0, 0},     {50, 0.5},  {100, 1}, {150, 1.5}, {200, 2},
                {275, 2.5}, /* 100 * 0.5 + 100 * 0.25 */
                {400, 3},   {425, 3.5}, {450, 4}, {500, 5},   {100450, 2004}};
    struct wb_schedule s;
    struct wb_arrivals a;
    uint64_t next = 0;

    (void)state;
    profile(&s, false);
    wb_arrivals_start(&a, &s, 0);
    for (uint64_t k = 0; next < WB_LEN(rows); k++, wb_arrivals_next(&a)) {
        if (k != rows[next].k)
            continue;
        assert_true(llabs(a.at - (int64_t)(rows[next].at_s * 1e9)) <= 1);
        assert_true(fabs(wb_schedule_gaps(&s, a.at) - (double)k) < 1e-5);
        next++;
    }
    assert_true(wb_schedule_rate(&s, SECOND / 2) == 100);
    assert_true(fabs(wb_schedule_rate(&s, 5 * SECOND / 2) - 200) < 1e-9);
    assert_true(wb_schedule_rate(&s, 7 * SECOND / 2) == 50);
    assert_true(wb_schedule_rate(&s, 1000 * SECOND) == 50);
}

/* Ramps of both directions, over factors of a million: times never go back, and as many arrivals
 * fall into each tenth of a second as the integral of the rate says. */
static void test_ramps_count(void **state)
{
    static const struct wb_rate_segment seg[] = {{0.001, 1000}, {1000, 0.001}, {0.001, 0.001}};

    (void)state;
    for (uint32_t stride = 1; stride <= 3; stride += 2) {
        struct wb_schedule s = {.rate_per_s = 1, .stride = stride};
        wb_schedule_profile(&s, seg, 3, 0, 30 * SECOND);
        for (uint32_t f = 0; f < stride; f++) {
            struct wb_arrivals a;
            uint64_t n = 0;
            int64_t last = -1;
            wb_arrivals_start(&a, &s, f);
            for (int64_t t = 0; t < 30 * SECOND; t += SECOND / 10) {
                double want = (wb_schedule_gaps(&s, t) - f) / stride;
                for (; a.at < t; n++, wb_arrivals_next(&a)) {
                    assert_true(a.at >= last);
                    last = a.at;
                }
                assert_true((double)n >= want - 1e-6 && (double)n < want + 1 + 1e-6);
            }
        }
    }
}

/* The union over all splits is the same stream, by stepping and by passing in pieces. */
static void test_profile_partition(void **state)
{
    (void)state;
    for (int poisson = 0; poisson < 2; poisson++) {
        struct wb_schedule whole;
        profile(&whole, poisson);
        for (uint32_t stride = 2; stride <= 11; stride += 3) {
            struct wb_schedule cut = whole;
            struct wb_arrivals all, part[11];
            uint64_t sum = 0, total;
            cut.stride = stride;
            wb_arrivals_start(&all, &whole, 0);
            for (uint32_t f = 0; f < stride; f++)
                wb_arrivals_start(&part[f], &cut, f);
            for (uint64_t k = 0; k < 600; k++) {
                struct wb_arrivals *p = &part[k % stride];
                assert_int_equal(p->k, k);
                assert_int_equal(p->at, all.at);
                wb_arrivals_next(p);
                wb_arrivals_next(&all);
            }
            wb_arrivals_start(&all, &whole, 0);
            total = wb_arrivals_pass(&all, 4 * SECOND + 123);
            for (uint32_t f = 0; f < stride; f++) {
                wb_arrivals_start(&part[f], &cut, f);
                for (int64_t t = 0; t < 4 * SECOND; t += 77777777)
                    sum += wb_arrivals_pass(&part[f], t);
                sum += wb_arrivals_pass(&part[f], 4 * SECOND + 123);
            }
            assert_int_equal(sum, total);
            if (!poisson)
                assert_int_equal(total, 451);
        }
    }
}

/* Any rate above 0: the slowest one does not overflow, whoever owns the arrival. */
static void test_slowest(void **state)
{
    struct wb_schedule s = {.rate_per_s = 1e-6, .stride = 262144};
    struct wb_arrivals a;

    (void)state;
    wb_arrivals_start(&a, &s, 262143);
    assert_int_equal(a.at, WB_ARRIVALS_FAR);
    wb_arrivals_next(&a);
    assert_int_equal(a.at, WB_ARRIVALS_FAR);
    s.rate_per_s = 1 / 7.0;
    s.stride = 1;
    wb_arrivals_start(&a, &s, 0);
    wb_arrivals_next(&a);
    assert_true(llabs(a.at - 7 * SECOND) <= 1);
    /* 2^31 and more operations: a week at 100,000/s */
    s.rate_per_s = 100000;
    wb_arrivals_start(&a, &s, 0);
    assert_int_equal(wb_arrivals_pass(&a, 7 * 86400 * SECOND), 60480000000ull);
    assert_int_equal(a.at, 7 * 86400 * SECOND);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Gaps follow the exponential law: Kolmogorov-Smirnov distance, mean, and no correlation of
 * neighbours. */
static void test_poisson_law(void **state)
{
    enum { N = 100000 };
    double *gap = wb_calloc(N, sizeof(*gap)), sum = 0, d = 0, product = 0;

    (void)state;
    for (int i = 0; i < N; i++) {
        gap[i] = (double)wb_arrivals_gap(3, (uint64_t)i) * 0x1p-24;
        sum += gap[i];
        if (i > 0)
            product += (gap[i] - 1) * (gap[i - 1] - 1);
    }
    assert_true(fabs(sum / N - 1) < 0.01);
    assert_true(fabs(product / N) < 0.015);
    qsort(gap, N, sizeof(*gap), compare);
    for (int i = 0; i < N; i++) {
        double f = 1 - exp(-gap[i]);
        d = fmax(d, fmax(fabs(f - (double)i / N), fabs(f - (double)(i + 1) / N)));
    }
    assert_true(d * sqrt(N) < 1.95); /* 0.1 % level; the seed is fixed */
    free(gap);
}

/* The stream is given by the seed, and keeps its rate for long. */
static void test_poisson_rate(void **state)
{
    struct wb_schedule s = {.rate_per_s = 100000, .stride = 1, .poisson = true, .seed = 5}, o = s;
    struct wb_arrivals a, b;
    double n;

    (void)state;
    wb_arrivals_start(&a, &s, 0);
    n = (double)wb_arrivals_pass(&a, 20 * SECOND);
    assert_true(fabs(n - 2e6) < 4 * sqrt(2e6));
    o.seed = 6;
    wb_arrivals_start(&a, &s, 0);
    wb_arrivals_start(&b, &o, 0);
    assert_int_not_equal(a.at, b.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_is_exact), cmocka_unit_test(test_count),
        cmocka_unit_test(test_pass_in_pieces),    cmocka_unit_test(test_partition),
        cmocka_unit_test(test_poisson_law),       cmocka_unit_test(test_poisson_rate),
        cmocka_unit_test(test_profile_values),    cmocka_unit_test(test_ramps_count),
        cmocka_unit_test(test_profile_partition), cmocka_unit_test(test_slowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
