#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/keys.h"
#include "runners/load/mix.h"
#include "runners/load/values.h"
#include "server/base/mem.h"

static struct wb_keys keys(enum wb_load_key_choice choice, int64_t n, int64_t seed, double s)
{
    struct wb_load_job job = {
        .key_choice = choice, .keys = n, .key_bytes = 16, .seed = seed, .zipf_exponent = s};
    struct wb_keys k;

    wb_keys_init(&k, &job);
    return k;
}

static void test_text(void **state)
{
    static const struct {
        uint64_t key;
        uint32_t bytes;
        const char *text;
    } rows[] = {{0, 2, "k0"},
                {7, 16, "k000000000000007"},
                {42, 3, "k42"},
                {99, 16, "k000000000000099"},
                {100, 4, "k100"},
                {12345, 8, "k0012345"},
                {281474976710655, 16, "k281474976710655"}};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_keys k = {.bytes = rows[i].bytes,
                            .digits = wb_keys_bytes_min(rows[i].key + 1) - 1};
        char out[WB_KEY_BYTES_MAX + 1];
        memset(out, '#', sizeof(out));
        wb_keys_text(&k, rows[i].key, out);
        assert_memory_equal(out, rows[i].text, rows[i].bytes);
        assert_int_equal(out[rows[i].bytes], '#');
    }
    assert_int_equal(wb_keys_bytes_min(1), 2);
    assert_int_equal(wb_keys_bytes_min(10), 2);
    assert_int_equal(wb_keys_bytes_min(11), 3);
    assert_int_equal(wb_keys_bytes_min(1000000), 7);
}

static void test_sequential(void **state)
{
    struct wb_keys k = keys(WB_LOAD_SEQUENTIAL, 5, 1, 1);

    (void)state;
    for (uint64_t i = 0; i < 23; i++)
        assert_int_equal(wb_keys_at(&k, i), i % 5);
}

/* Every key is as likely: chi-square over 1000 keys, 1000 expected each. */
static void test_uniform(void **state)
{
    enum { N = 1000, DRAWS = 1000000 };
    struct wb_keys k = keys(WB_LOAD_UNIFORM, N, 1, 1);
    uint32_t *count = wb_calloc(N, sizeof(*count));
    double chi = 0;

    (void)state;
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t key = wb_keys_at(&k, i);
        assert_true(key < N);
        count[key]++;
    }
    for (int i = 0; i < N; i++)
        chi += pow(count[i] - (double)DRAWS / N, 2) / ((double)DRAWS / N);
    assert_true(fabs(chi - (N - 1)) < 4 * sqrt(2.0 * (N - 1)));
    free(count);
}

static void test_pure(void **state)
{
    static const enum wb_load_key_choice laws[] = {WB_LOAD_UNIFORM, WB_LOAD_ZIPF};

    (void)state;
    for (size_t l = 0; l < WB_LEN(laws); l++) {
        struct wb_keys a = keys(laws[l], 1000000, 1, 0.99), b = keys(laws[l], 1000000, 1, 0.99);
        struct wb_keys other = keys(laws[l], 1000000, 2, 0.99);
        int differ = 0;
        for (uint64_t i = 2000; i > 0; i--) {
            assert_int_equal(wb_keys_at(&a, i), wb_keys_at(&b, i));
            differ += wb_keys_at(&a, i) != wb_keys_at(&other, i);
        }
        assert_true(differ > 1900);
    }
}

/* A bijection for every size, so Zipf ranks never share a key. */
static void test_scatter(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 5000};

    (void)state;
    for (size_t s = 0; s < WB_LEN(sizes); s++) {
        struct wb_keys k = keys(WB_LOAD_ZIPF, sizes[s], 1, 1);
        bool *seen = wb_calloc((size_t)sizes[s], 1);
        for (int64_t i = 0; i < sizes[s]; i++) {
            uint64_t to = wb_keys_scatter(&k, (uint64_t)i);
            assert_true(to < (uint64_t)sizes[s]);
            assert_false(seen[to]);
            seen[to] = true;
        }
        free(seen);
    }
}

/* Shares of the first ranks against the law, for exponents around and at 1. */
static void test_zipf(void **state)
{
    static const double exponents[] = {0.5, 0.99, 1.0, 1.5, 3.0};
    enum { N = 10000, DRAWS = 400000 };

    (void)state;
    for (size_t e = 0; e < WB_LEN(exponents); e++) {
        struct wb_keys k = keys(WB_LOAD_ZIPF, N, 3, exponents[e]);
        uint32_t *count = wb_calloc(N, sizeof(*count));
        double norm = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            uint64_t key = wb_keys_at(&k, i);
            assert_true(key < N);
            count[key]++;
        }
        for (int i = 1; i <= N; i++)
            norm += pow(i, -exponents[e]);
        for (int rank = 1; rank <= 5; rank++) {
            double want = pow(rank, -exponents[e]) / norm * DRAWS;
            double got = count[wb_keys_scatter(&k, (uint64_t)rank - 1)];
            assert_true(fabs(got - want) < 4.5 * sqrt(want));
        }
        free(count);
    }
}

static void test_mix(void **state)
{
    static const char *const names[] = {"get", "set", "del", NULL};
    struct wb_load_job job = {.seed = 1, .mix = {{"set", 20}, {"get", 80}, {"del", 0}}, .nmix = 3};
    struct wb_mix m;
    struct wb_err err = WB_ERR_INIT;
    int count[3] = {0};

    (void)state;
    assert_int_equal(wb_mix_init(&m, &job, names, &err), 0);
    for (uint64_t i = 0; i < 100000; i++)
        count[wb_mix_at(&m, i)]++;
    assert_true(abs(count[1] - 20000) < 500);
    assert_int_equal(count[0] + count[1], 100000);
    assert_int_equal(count[2], 0);
    strcpy(job.mix[0].name, "put");
    assert_int_equal(wb_mix_init(&m, &job, names, &err), -WB_INVALID);
    assert_non_null(strstr(err.root, "'put'"));
    assert_non_null(strstr(err.root, "get, set, del"));
}

/* The same key has the same bytes, other keys have others; small and long values alike. */
static void test_values(void **state)
{
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 64, 128, 129, 4096};

    (void)state;
    for (size_t n = 0; n < WB_LEN(sizes); n++) {
        struct wb_load_job job = {.seed = 4, .value_bytes = sizes[n]};
        size_t bytes = (size_t)sizes[n], same = 0;
        struct wb_values a, b;
        char one[4096 + 8], scratch[WB_VALUE_SMALL + 8];
        wb_values_init(&a, &job);
        wb_values_init(&b, &job);
        for (uint64_t k = 0; k < 1000; k++) {
            memset(one, '#', sizeof(one));
            wb_values_write(&a, k, one);
            assert_memory_equal(one, wb_values_expect(&b, k, scratch), bytes);
            same += memcmp(one, wb_values_expect(&b, k + 1, scratch), bytes) == 0;
            assert_int_equal(one[bytes + 7], '#');
        }
        assert_true(sizes[n] == 0 ? same == 1000 : sizes[n] == 1 ? same < 30 : same == 0);
        wb_values_release(&a);
        wb_values_release(&b);
    }
}

static void test_content(void **state)
{
    static const int64_t sizes[] = {100, 5000};

    (void)state;
    for (size_t n = 0; n < WB_LEN(sizes); n++) {
        struct wb_load_job job = {.seed = 4, .value_bytes = sizes[n], .content = WB_LOAD_LETTERS};
        struct wb_values v;
        char out[5000 + 8];
        wb_values_init(&v, &job);
        wb_values_write(&v, 7, out);
        for (int64_t i = 0; i < sizes[n]; i++)
            assert_true(out[i] >= '0' && out[i] <= 'o');
        wb_values_release(&v);
        job.content = WB_LOAD_ZEROS;
        wb_values_init(&v, &job);
        wb_values_write(&v, 7, out);
        for (int64_t i = 0; i < sizes[n]; i++)
            assert_int_equal(out[i], 0);
        wb_values_release(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_sequential),
        cmocka_unit_test(test_uniform), cmocka_unit_test(test_pure),
        cmocka_unit_test(test_scatter), cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_mix),     cmocka_unit_test(test_values),
        cmocka_unit_test(test_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
