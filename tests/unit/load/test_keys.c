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
#include "runners/load/protocol.h"
#include "runners/load/values.h"
#include "server/base/deflate.h"
#include "server/base/mem.h"

static struct wb_keys keys(enum wb_load_key_choice choice, int64_t n, int64_t seed, double s)
{
    struct wb_load_job job = {
        .key_law = {.choice = choice, .exponent = s, .scatter = choice == WB_LOAD_ZIPF},
        .keys = n,
        .key_bytes = 16,
        .seed = seed};
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

static struct wb_keys by_law(const char *text, int64_t n, int64_t seed)
{
    struct wb_load_job job = {.keys = n, .key_bytes = 20, .seed = seed};
    struct wb_err err = WB_ERR_INIT;
    struct wb_keys k;

    assert_int_equal(wb_key_law_parse(text, &job.key_law, &err), 0);
    wb_keys_init(&k, &job);
    return k;
}

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Share of the keys below x (a share of the key space), by each law. */
static double gaussian_below(double x)
{
    double sd = 1.0 / 6, all = normal_below(0.5 / sd) - normal_below(-0.5 / sd);

    return (normal_below((x - 0.5) / sd) - normal_below(-0.5 / sd)) / all;
}

static double exponential_below(double x)
{
    return expm1(-x / 0.25) / expm1(-1 / 0.25);
}

static double hotspot_below(double x)
{
    return x < 0.1 ? 0.7 * x / 0.1 : 0.7 + 0.3 * (x - 0.1) / 0.9;
}

static double uniform_below(double x)
{
    return x;
}

/* Chi-square over 50 bins, mean and deviation, for small and for enormous key spaces. */
static void test_laws(void **state)
{
    enum { BINS = 50, DRAWS = 500000 };
    static const struct {
        const char *law;
        double (*below)(double x);
        double mean, deviation; /* of key / n */
    } rows[] = {
        {"uniform", uniform_below, 0.5, 0.288675},
        /* 1/6 x sqrt(1 - 6 phi(3) / (2 Phi(3) - 1)) */
        {"gaussian", gaussian_below, 0.5, 0.164432},
        /* m - 1/(e^(1/m) - 1), and sqrt of m^2 - e^(1/m) / (e^(1/m) - 1)^2 */
        {"exponential:25%", exponential_below, 0.231343, 0.208553},
        {"hotspot:70%:10%", hotspot_below, 0.7 * 0.05 + 0.3 * 0.55, 0.270801},
    };
    static const int64_t sizes[] = {1000, 1000000, 3000000000, 1LL << 48};

    (void)state;
    for (size_t r = 0; r < WB_LEN(rows); r++) {
        for (size_t z = 0; z < WB_LEN(sizes); z++) {
            struct wb_keys k = by_law(rows[r].law, sizes[z], 11);
            double n = (double)sizes[z], count[BINS] = {0}, chi = 0, sum = 0, square = 0, mean, sd;
            for (uint64_t i = 0; i < DRAWS; i++) {
                uint64_t key = wb_keys_at(&k, i);
                double x = (double)key / n;
                assert_true(key < (uint64_t)sizes[z]);
                count[(unsigned __int128)key * BINS / (uint64_t)sizes[z]]++;
                sum += x;
                square += x * x;
            }
            for (int b = 0; b < BINS; b++) {
                double want =
                    (rows[r].below((b + 1.0) / BINS) - rows[r].below((double)b / BINS)) * DRAWS;
                chi += pow(count[b] - want, 2) / want;
            }
            assert_true(chi < BINS - 1 + 4 * sqrt(2.0 * (BINS - 1)));
            mean = sum / DRAWS;
            sd = sqrt(square / DRAWS - mean * mean);
            assert_true(fabs(mean - rows[r].mean) < 4 * rows[r].deviation / sqrt(DRAWS) + 0.6 / n);
            assert_true(fabs(sd / rows[r].deviation - 1) < 0.005);
        }
    }
}

/* Sum of i^-s for i = 1..n, by Euler and Maclaurin from 1000 on. */
static double harmonic(double n, double s)
{
    double sum = 0;

    for (int i = 1; i < 1000; i++)
        sum += pow(i, -s);
    return sum + (pow(n, 1 - s) - pow(1000, 1 - s)) / (1 - s) + (pow(n, -s) + pow(1000, -s)) / 2 +
           s * pow(1000, -s - 1) / 12;
}

/* Zipf in constant memory over 3,000,000,000 keys, in order, scattered and from the end. */
static void test_huge_zipf(void **state)
{
    enum { DRAWS = 400000 };
    static const char *const words[] = {"zipf:0.99:ordered", "zipf:0.99", "latest"};
    const int64_t n = 3000000000;
    double norm = harmonic((double)n, 0.99);

    (void)state;
    for (size_t l = 0; l < WB_LEN(words); l++) {
        struct wb_keys k = by_law(words[l], n, 3);
        double first[3] = {0}, low = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            uint64_t key = wb_keys_at(&k, i), rank = key;
            if (l == 2)
                rank = (uint64_t)n - 1 - key;
            for (uint64_t r = 0; r < 3; r++)
                first[r] += l == 1 ? key == wb_keys_scatter(&k, r) : rank == r;
            low += l == 1 ? key < (uint64_t)n / 2 : rank < 1000000;
        }
        for (int r = 0; r < 3; r++) {
            double want = pow(r + 1, -0.99) / norm * DRAWS;
            assert_true(fabs(first[r] - want) < 4.5 * sqrt(want));
        }
        /* the first million ranks; scattered: half of them in each half */
        if (l != 1) {
            double p = harmonic(1e6, 0.99) / norm;
            assert_true(fabs(low / DRAWS - p) < 4 * sqrt(p * (1 - p) / DRAWS));
        } else {
            assert_true(fabs(low / DRAWS - 0.5) < 0.1);
        }
    }
}

static void test_law_texts(void **state)
{
    static const struct {
        const char *text;
        struct wb_key_law law;
        const char *says;
    } rows[] = {
        {"zipf", {.choice = WB_LOAD_ZIPF, .exponent = 0.99, .scatter = true}, NULL},
        {"zipf:ordered", {.choice = WB_LOAD_ZIPF, .exponent = 0.99}, NULL},
        {"zipf:2:ordered", {.choice = WB_LOAD_ZIPF, .exponent = 2}, NULL},
        {"latest:1.5", {.choice = WB_LOAD_LATEST, .exponent = 1.5}, NULL},
        {"gaussian:5%:scattered",
         {.choice = WB_LOAD_GAUSSIAN, .width = 0.05, .exponent = 0.99, .scatter = true},
         NULL},
        {"exponential", {.choice = WB_LOAD_EXPONENTIAL, .width = 0.1, .exponent = 0.99}, NULL},
        {"hotspot", {.choice = WB_LOAD_HOTSPOT, .share = 0.8, .hot = 0.2, .exponent = 0.99}, NULL},
        {"hotspot:90:1",
         {.choice = WB_LOAD_HOTSPOT, .share = 0.9, .hot = 0.01, .exponent = 0.99},
         NULL},
        {"absent:25%", {.choice = WB_LOAD_ABSENT, .share = 0.25, .exponent = 0.99}, NULL},
        {"", {0}, "'' is not one of: uniform"},
        {"hot", {0}, "hotspot[:OPS:KEYS]"},
        {"uniform:1", {0}, "uniform takes no number"},
        {"uniform:scattered", {0}, "takes no number"},
        {"hotspot:90", {0}, "hotspot takes two numbers, and :scattered or :ordered"},
        {"hotspot:90:1:2", {0}, "two numbers"},
        {"hotspot:90:1:scattered:ordered", {0}, "two numbers"},
        {"hotspot:90:0", {0}, "hotspot"},
        {"zipf:", {0}, "zipf"},
        {"zipf:11", {0}, "allowed is 0.01 to 10"},
        {"gaussian:101%", {0}, "out of range"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_key_law l = {.choice = WB_LOAD_ABSENT, .exponent = -1};
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        int rc = wb_key_law_parse(rows[i].text, &l, &err);
        if (rows[i].says) {
            assert_true(rc < 0 && l.exponent == -1);
            if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
                fail_msg("'%s' does not say '%s'", text, rows[i].says);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(l.choice, rows[i].law.choice);
        assert_true(l.exponent == rows[i].law.exponent);
        assert_true(fabs(l.width - rows[i].law.width) < 1e-12);
        assert_int_equal(l.scatter, rows[i].law.scatter);
        if (l.choice == WB_LOAD_HOTSPOT || l.choice == WB_LOAD_ABSENT)
            assert_true(fabs(l.share - rows[i].law.share) < 1e-12);
        if (l.choice == WB_LOAD_HOTSPOT)
            assert_true(fabs(l.hot - rows[i].law.hot) < 1e-12);
    }
}

static void test_size_texts(void **state)
{
    static const struct {
        const char *text;
        enum wb_size_kind kind;
        int64_t least, most;
        const char *says;
    } rows[] = {
        {"1KiB", WB_SIZE_FIXED, 1024, 1024, NULL},
        {"0", WB_SIZE_FIXED, 0, 0, NULL},
        {"100..4KiB", WB_SIZE_UNIFORM, 100, 4096, NULL},
        {"1KiB~100", WB_SIZE_GAUSSIAN, 424, 1624, NULL},
        {"1KiB~1KiB", WB_SIZE_GAUSSIAN, 0, 7168, NULL},
        {"100=70,4KiB=30,9=0", WB_SIZE_WEIGHTED, 100, 4096, NULL},
        {"", 0, 0, 0, "not a size"},
        {"65MiB", 0, 0, 0, "out of range"},
        {"4KiB..100", 0, 0, 0, "below the first"},
        {"..100", 0, 0, 0, "not a size"},
        {"100..", 0, 0, 0, "not a size"},
        {"1KiB~0", 0, 0, 0, "above 0"},
        {"60MiB~1MiB", 0, 0, 0, "deviations above the mean"},
        {"100=0", 0, 0, 0, "at least one weight"},
        {"100=70,", 0, 0, 0, "SIZE=WEIGHT"},
        {"100=70,x", 0, 0, 0, "SIZE=WEIGHT"},
        {"100=-1", 0, 0, 0, "out of range"},
        {"1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1", 0, 0, 0,
         "more than 16"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_size_law l = {.least = -7};
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        int rc = wb_size_law_parse(rows[i].text, &l, &err);
        if (rows[i].says) {
            assert_true(rc < 0 && l.least == -7);
            if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
                fail_msg("'%s' does not say '%s'", text, rows[i].says);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(l.kind, rows[i].kind);
        assert_int_equal(l.least, rows[i].least);
        assert_int_equal(l.most, rows[i].most);
    }
}

/* Sizes of 200,000 values: mean and deviation by the law, all within its bounds, and the size that
 * is said is the size that is written. */
static void test_sizes(void **state)
{
    enum { N = 200000 };
    static const struct {
        const char *law;
        double mean, deviation;
    } rows[] = {
        {"10..109", 59.5, 28.8661}, /* sqrt((100^2 - 1) / 12) */
        {"100..4KiB", 2098, 1153.9},      {"1000~100", 1000, 100},
        {"100=70,1000=30", 370, 412.431}, {"20=1,100=1", 60, 40},
    };

    (void)state;
    for (size_t r = 0; r < WB_LEN(rows); r++) {
        struct wb_load_job job = {.seed = 6};
        struct wb_err err = WB_ERR_INIT;
        struct wb_values v;
        double sum = 0, square = 0, mean;
        char out[4096 + 8];
        assert_int_equal(wb_size_law_parse(rows[r].law, &job.size_law, &err), 0);
        job.value_bytes = job.size_law.most;
        wb_values_init(&v, &job);
        assert_false(v.fixed);
        for (uint64_t key = 0; key < N; key++) {
            uint32_t n = wb_values_size(&v, key);
            assert_true(n >= job.size_law.least && n <= job.size_law.most);
            sum += n;
            square += (double)n * n;
            if (key % 1000 == 0)
                assert_int_equal(wb_values_write(&v, key, out), n);
        }
        mean = sum / N;
        assert_true(fabs(mean - rows[r].mean) < 4 * rows[r].deviation / sqrt(N));
        assert_true(fabs(sqrt(square / N - mean * mean) / rows[r].deviation - 1) < 0.01);
        wb_values_release(&v);
    }
}

/* What is said to compress away does, by counting its zeros and by zlib. */
static void test_compressible(void **state)
{
    static const struct {
        int64_t bytes;
        double share;
    } rows[] = {{65536, 0}, {65536, 0.25}, {65536, 0.6}, {65536, 1}, {64, 0.5}, {128, 0.75}};

    (void)state;
    for (size_t r = 0; r < WB_LEN(rows); r++) {
        struct wb_load_job job = {.seed = 6,
                                  .value_bytes = rows[r].bytes,
                                  .content = WB_LOAD_COMPRESSIBLE,
                                  .zeros_share = rows[r].share};
        struct wb_buf packed = WB_BUF_INIT(1 << 20);
        struct wb_values v;
        char *out = wb_calloc((size_t)rows[r].bytes + 8, 1);
        double zeros = 0, ratio;
        wb_values_init(&v, &job);
        (void)wb_values_write(&v, 5, out);
        for (int64_t i = 0; i < rows[r].bytes; i++)
            zeros += out[i] == 0;
        assert_true(fabs(zeros / (double)rows[r].bytes - rows[r].share) < 0.02);
        if (rows[r].bytes > 4096) {
            wb_deflate(out, (size_t)rows[r].bytes, 6, &packed);
            ratio = (double)packed.len / (double)rows[r].bytes;
            assert_true(fabs(ratio - (1 - rows[r].share)) < 0.05);
        }
        wb_buf_release(&packed);
        wb_values_release(&v);
        free(out);
    }
}

static void test_mix(void **state)
{
    static const char *const names[] = {"get", "set", "del", NULL};
    static const struct wb_protocol p = {.ops = names};
    struct wb_load_job job = {.seed = 1, .mix = {{"set", 20}, {"get", 80}, {"del", 0}}, .nmix = 3};
    struct wb_mix m;
    struct wb_err err = WB_ERR_INIT;
    int count[3] = {0};

    (void)state;
    assert_int_equal(wb_mix_init(&m, &job, &p, &err), 0);
    for (uint64_t i = 0; i < 100000; i++)
        count[wb_mix_at(&m, i)]++;
    assert_true(abs(count[1] - 20000) < 500);
    assert_int_equal(count[0] + count[1], 100000);
    assert_int_equal(count[2], 0);
    strcpy(job.mix[0].name, "put");
    assert_int_equal(wb_mix_init(&m, &job, &p, &err), -WB_INVALID);
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
            assert_int_equal(wb_values_write(&a, k, one), bytes);
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
        (void)wb_values_write(&v, 7, out);
        for (int64_t i = 0; i < sizes[n]; i++)
            assert_true(out[i] >= '0' && out[i] <= 'o');
        wb_values_release(&v);
        job.content = WB_LOAD_ZEROS;
        wb_values_init(&v, &job);
        (void)wb_values_write(&v, 7, out);
        for (int64_t i = 0; i < sizes[n]; i++)
            assert_int_equal(out[i], 0);
        wb_values_release(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),         cmocka_unit_test(test_sequential),
        cmocka_unit_test(test_uniform),      cmocka_unit_test(test_pure),
        cmocka_unit_test(test_scatter),      cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_mix),          cmocka_unit_test(test_values),
        cmocka_unit_test(test_content),      cmocka_unit_test(test_laws),
        cmocka_unit_test(test_huge_zipf),    cmocka_unit_test(test_law_texts),
        cmocka_unit_test(test_size_texts),   cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_compressible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
