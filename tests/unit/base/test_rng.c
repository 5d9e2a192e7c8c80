#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/rng.h"

static void stream_is_the_published_one(void **state)
{
    /* xoshiro256** from the state {1, 2, 3, 4}. */
    static const uint64_t want[] = {11520ull,
                                    0ull,
                                    1509978240ull,
                                    1215971899390074240ull,
                                    1216172134540287360ull,
                                    607988272756665600ull};
    struct wb_rng r = {.s = {1, 2, 3, 4}};

    for (size_t i = 0; i < WB_LEN(want); i++)
        assert_true(wb_rng_u64(&r) == want[i]);
}

static void seeding_is_splitmix64(void **state)
{
    /* splitmix64 from 1234567: the published sequence. */
    static const uint64_t want[] = {6457827717110365317ull, 3203168211198807973ull,
                                    9817491932198370423ull, 4593380528125082431ull};
    struct wb_rng r;

    wb_rng_seed(&r, 1234567);
    for (size_t i = 0; i < WB_LEN(want); i++)
        assert_true(r.s[i] == want[i]);
}

static void below_is_uniform_and_in_range(void **state)
{
    int seen[7] = {0};
    struct wb_rng r;
    double chi2 = 0;

    wb_rng_seed(&r, 42);
    for (int i = 0; i < 70000; i++) {
        uint64_t v = wb_rng_below(&r, 7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (size_t i = 0; i < 7; i++)
        chi2 += (seen[i] - 10000.0) * (seen[i] - 10000.0) / 10000.0;
    assert_true(chi2 < 22.5); /* 0.1 % point of 6 degrees of freedom */
    for (int i = 0; i < 100; i++)
        assert_true(wb_rng_below(&r, 1) == 0);
    /* A bound just above 2^63: without rejection, half of the values would come twice as often. */
    for (int i = 0, low = 0; i < 20000; i++) {
        low += wb_rng_below(&r, (1ull << 63) + 1) < (1ull << 62);
        if (i == 19999)
            assert_true(low > 9700 && low < 10300);
    }
}

static void unit_is_half_open(void **state)
{
    struct wb_rng r;
    double sum = 0;

    wb_rng_seed(&r, 7);
    for (int i = 0; i < 100000; i++) {
        double v = wb_rng_unit(&r);
        assert_true(v >= 0 && v < 1);
        sum += v;
    }
    assert_true(sum > 49700 && sum < 50300);
    {
        struct wb_rng top = {.s = {0, 0, 0, 0}};
        assert_true(wb_rng_unit(&top) == 0);
    }
}

static void shuffle_keeps_all_and_repeats(void **state)
{
    int a[100], b[100], seen[100] = {0}, first_counts[3] = {0};
    struct wb_rng r;

    for (int i = 0; i < 100; i++)
        a[i] = b[i] = i;
    wb_rng_seed(&r, 9);
    wb_rng_shuffle(&r, a, 100);
    wb_rng_seed(&r, 9);
    wb_rng_shuffle(&r, b, 100);
    assert_memory_equal(a, b, sizeof(a));
    for (int i = 0; i < 100; i++)
        seen[a[i]]++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    for (int i = 0; i < 30000; i++) {
        int v[3] = {0, 1, 2};
        wb_rng_shuffle(&r, v, 3);
        first_counts[v[0]]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(first_counts[i] > 9700 && first_counts[i] < 10300);
    wb_rng_shuffle(&r, NULL, 0);
}

static void mix_separates_seeds_and_indices(void **state)
{
    assert_true(wb_mix64(1, 2) == wb_mix64(1, 2));
    assert_true(wb_mix64(1, 2) != wb_mix64(2, 1));
    for (uint64_t s = 0; s < 30; s++)
        for (uint64_t i = 0; i < 30; i++)
            for (uint64_t k = 0; k < 30; k++)
                if (k != i)
                    assert_true(wb_mix64(s, i) != wb_mix64(s, k) &&
                                wb_mix64(i, s) != wb_mix64(k, s));
}

static void random_seeds_differ(void **state)
{
    assert_true(wb_random_seed() != wb_random_seed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_is_the_published_one),
        cmocka_unit_test(seeding_is_splitmix64),
        cmocka_unit_test(below_is_uniform_and_in_range),
        cmocka_unit_test(unit_is_half_open),
        cmocka_unit_test(shuffle_keeps_all_and_repeats),
        cmocka_unit_test(mix_separates_seeds_and_indices),
        cmocka_unit_test(random_seeds_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
