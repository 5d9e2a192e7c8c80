#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/hist.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

/* Merges the histograms of a log whose lines begin with prefix (all when NULL) into one of 3
 * digits, as the publishers of the answers did. */
static int merge_log(const char *log, const char *prefix, struct wb_hist *sum)
{
    int entries = 0;

    wb_hist_init_ns(sum);
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        const char *text = NULL;
        struct wb_hist h;
        struct wb_err err = WB_ERR_INIT;
        if (*line == '#' || *line == '"' || n == 0)
            continue;
        if (prefix && strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        for (const char *p = line; p < line + n; p++)
            if (*p == ',')
                text = p + 1;
        assert_non_null(text);
        assert_int_equal(wb_hist_decode(text, (size_t)(line + n - text), &h, &err), 0);
        entries++;
        wb_hist_add(sum, &h);
        wb_hist_release(&h);
    }
    return entries;
}

static void check_percentiles(const struct wb_hist *h, const wb_json *want)
{
    assert_true(wb_json_len(want) > 5);
    for (void *it = wb_json_first(want); it; it = wb_json_next(want, it)) {
        double p = strtod(wb_json_iter_key(it), NULL);
        assert_int_equal(wb_hist_percentile(h, p),
                         (int64_t)wb_json_number(wb_json_iter_value(it), -1));
    }
}

/* Published logs of another implementation with their published answers. */
static void test_published_logs(void **state)
{
    wb_json *doc = NULL;
    struct wb_hist h;
    const wb_json *want;

    (void)state;
    assert_int_equal(
        wb_json_read_file("tests/data/hdr/hdr-jhiccup-v2-log.json", 1 << 20, &doc, NULL), 0);
    want = wb_json_get(doc, "expected");
    assert_int_equal(merge_log(wb_json_string(wb_json_path(doc, "input.log")), NULL, &h),
                     wb_json_int_or(want, "entries", -1));
    assert_int_equal(h.total, wb_json_int_or(want, "count", -1));
    assert_int_equal(h.max, wb_json_int_or(want, "max", -1));
    check_percentiles(&h, wb_json_get(want, "more_percentiles"));
    wb_hist_release(&h);
    wb_json_free(doc);

    assert_int_equal(
        wb_json_read_file("tests/data/hdr/hdr-tagged-v2-log.json", 1 << 20, &doc, NULL), 0);
    want = wb_json_get(doc, "expected");
    assert_int_equal(merge_log(wb_json_string(wb_json_path(doc, "input.log")), NULL, &h),
                     wb_json_int_or(want, "entries", -1));
    want = wb_json_get(want, "stat_all");
    assert_int_equal(h.total, wb_json_int_or(want, "count", -1));
    assert_int_equal(h.min, wb_json_int_or(want, "min", -1));
    assert_int_equal(h.max, wb_json_int_or(want, "max", -1));
    assert_true(fabs(wb_hist_mean(&h) / wb_json_real_or(want, "mean", 0) - 1) < 1e-3);
    assert_true(fabs(wb_hist_stddev(&h) / wb_json_real_or(want, "stddev", 0) - 1) < 1e-3);
    check_percentiles(&h, wb_json_get(want, "value_at_percentile"));
    wb_hist_release(&h);
    assert_int_equal(merge_log(wb_json_string(wb_json_path(doc, "input.log")), "Tag=A", &h), 21);
    assert_int_equal(h.total, 16145);
    wb_hist_release(&h);
    wb_json_free(doc);
}

static void test_buckets(void **state)
{
    static const struct {
        int64_t v, lower, upper;
    } rows[] = {{0, 0, 0},
                {1, 1, 1},
                {2047, 2047, 2047},
                {2048, 2048, 2049},
                {4095, 4094, 4095},
                {4097, 4096, 4099},
                {10007, 10000, 10007},
                {10008, 10008, 10015},
                {1000000, 999936, 1000447},
                {WB_HIST_NS_HIGHEST, 3599182594048, 3601330077695}};
    struct wb_hist h;

    (void)state;
    wb_hist_init_ns(&h);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        uint32_t at = wb_hist_index(&h, rows[i].v);
        assert_true(at < h.ncounts);
        assert_int_equal(wb_hist_lower(&h, at), rows[i].lower);
        assert_int_equal(wb_hist_upper(&h, at), rows[i].upper);
    }
    /* Buckets leave no gap and do not overlap. */
    for (uint32_t i = 1; i < h.ncounts; i++)
        assert_int_equal(wb_hist_lower(&h, i), wb_hist_upper(&h, i - 1) + 1);
    wb_hist_release(&h);
}

/* The specialised record counts where the general one does. */
static void test_record_ns(void **state)
{
    struct wb_hist a, b;

    (void)state;
    wb_hist_init_ns(&a);
    wb_hist_init_ns(&b);
    for (uint64_t v = 1; v < (uint64_t)INT64_MAX; v += v / 4 + 1) {
        wb_hist_record(&a, (int64_t)v - 1);
        wb_hist_record_ns(&b, (int64_t)v - 1);
    }
    wb_hist_record(&a, -3);
    wb_hist_record_ns(&b, -3);
    assert_int_equal(a.total, b.total);
    assert_int_equal(a.over, b.over);
    assert_true(a.min == b.min && a.max == b.max && a.sum == b.sum);
    assert_memory_equal(a.low, b.low, a.ncounts * sizeof(*a.low));
    wb_hist_release(&a);
    wb_hist_release(&b);
}

static void test_shapes(void **state)
{
    static const struct {
        int64_t lowest, highest;
        int digits;
        int rc;
    } rows[] = {{1, 2, 0, 0},
                {1, INT64_MAX, 5, 0},
                {1000, 3600000000, 3, 0},
                {1LL << 40, INT64_MAX, 3, 0},
                {0, 100, 3, -WB_INVALID},
                {1, 1, 3, -WB_INVALID},
                {100, 199, 3, -WB_INVALID},
                {1, 100, 6, -WB_INVALID},
                {1, 100, -1, -WB_INVALID},
                {1LL << 60, INT64_MAX, 3, -WB_INVALID},
                {-5, 100, 3, -WB_INVALID}};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_hist h;
        struct wb_err err = WB_ERR_INIT;
        int rc = wb_hist_init(&h, rows[i].lowest, rows[i].highest, rows[i].digits, &err);
        assert_int_equal(rc, rows[i].rc);
        if (rc < 0)
            continue;
        wb_hist_record(&h, rows[i].highest);
        wb_hist_record(&h, 0);
        assert_int_equal(h.total, 2);
        assert_int_equal(h.over, 0);
        assert_int_equal(wb_hist_percentile(&h, 100), rows[i].highest);
        wb_hist_release(&h);
    }
}

static void test_percentile_rule(void **state)
{
    struct wb_hist h;

    (void)state;
    wb_hist_init_ns(&h);
    assert_int_equal(wb_hist_percentile(&h, 50), 0);
    assert_true(wb_hist_mean(&h) == 0);
    for (int v = 1; v <= 100; v++)
        wb_hist_record(&h, v);
    assert_int_equal(wb_hist_percentile(&h, 0), 1);
    assert_int_equal(wb_hist_percentile(&h, -5), 1);
    assert_int_equal(wb_hist_percentile(&h, NAN), 1);
    assert_int_equal(wb_hist_percentile(&h, 0.5), 1);
    assert_int_equal(wb_hist_percentile(&h, 1), 1);
    assert_int_equal(wb_hist_percentile(&h, 1.01), 2);
    assert_int_equal(wb_hist_percentile(&h, 50), 50);
    assert_int_equal(wb_hist_percentile(&h, 55), 55); /* 55 * 100 / 100 rounds up past 55 */
    assert_int_equal(wb_hist_percentile(&h, 99), 99);
    assert_int_equal(wb_hist_percentile(&h, 99.01), 100);
    assert_int_equal(wb_hist_percentile(&h, 1000), 100);
    assert_true(wb_hist_mean(&h) == 50.5);
    /* Never outside of what was recorded, although the bucket reaches further. */
    wb_hist_clear(&h);
    wb_hist_record(&h, 10001);
    for (double p = 0; p <= 100; p += 12.5)
        assert_int_equal(wb_hist_percentile(&h, p), 10001);
    wb_hist_release(&h);
}

static void test_outside(void **state)
{
    struct wb_hist h;

    (void)state;
    wb_hist_init_ns(&h);
    wb_hist_record(&h, WB_HIST_NS_HIGHEST + 5);
    wb_hist_record(&h, INT64_MAX);
    wb_hist_record(&h, -1);
    wb_hist_record(&h, 7);
    assert_int_equal(h.total, 4);
    assert_int_equal(h.over, 2);
    assert_int_equal(h.min, 0);
    assert_true(h.max == INT64_MAX);
    assert_true(wb_hist_percentile(&h, 100) == INT64_MAX);
    assert_true(wb_hist_percentile(&h, 75) >= WB_HIST_NS_HIGHEST);
    wb_hist_clear(&h);
    assert_int_equal(h.total + h.over, 0);
    for (uint32_t i = 0; i < h.ncounts; i++)
        assert_int_equal(wb_hist_count_at(&h, i), 0);
    wb_hist_release(&h);
}

/* Counts past 32 bits: by single records, by number, by merging. */
static void test_carry(void **state)
{
    struct wb_hist a, b;

    (void)state;
    wb_hist_init_ns(&a);
    wb_hist_init_ns(&b);
    wb_hist_record_n(&a, 42, UINT32_MAX);
    assert_null(a.high);
    wb_hist_record(&a, 42);
    assert_int_equal(wb_hist_count_at(&a, 42), (uint64_t)UINT32_MAX + 1);
    wb_hist_record_n(&a, 42, (uint64_t)5 << 32);
    wb_hist_record_n(&b, 42, UINT32_MAX);
    wb_hist_add(&b, &a);
    assert_int_equal(wb_hist_count_at(&b, 42), ((uint64_t)6 << 32) + UINT32_MAX);
    assert_int_equal(b.total, ((uint64_t)6 << 32) + UINT32_MAX);
    assert_true(wb_hist_mean(&b) == 42);
    wb_hist_clear(&a);
    wb_hist_record_n(&a, 43, UINT32_MAX);
    wb_hist_add(&a, &a); /* both without high halves in that bucket: carries */
    assert_int_equal(wb_hist_count_at(&a, 43), (uint64_t)UINT32_MAX * 2);
    assert_int_equal(wb_hist_count_at(&a, 42), 0);
    wb_hist_release(&a);
    wb_hist_release(&b);
}

static void test_add_other_shape(void **state)
{
    struct wb_hist ns, us;

    (void)state;
    wb_hist_init_ns(&ns);
    assert_int_equal(wb_hist_init(&us, 1000, 60000000000, 2, NULL), 0);
    wb_hist_record_n(&us, 1500000, 3);
    wb_hist_record_n(&us, 7, 2);
    wb_hist_add(&ns, &us);
    assert_int_equal(ns.total, 5);
    assert_int_equal(ns.min, 0);
    assert_int_equal(ns.max, 1500159); /* bound of the bucket of 1499136 */
    wb_hist_release(&ns);
    wb_hist_release(&us);
}

static void same(const struct wb_hist *a, const struct wb_hist *b)
{
    assert_int_equal(a->total, b->total);
    assert_int_equal(a->ncounts, b->ncounts);
    for (uint32_t i = 0; i < a->ncounts; i++)
        assert_int_equal(wb_hist_count_at(a, i), wb_hist_count_at(b, i));
}

static void test_round_trip(void **state)
{
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    struct wb_rng rng;
    struct wb_hist h, back;

    (void)state;
    wb_rng_seed(&rng, 11);
    wb_hist_init_ns(&h);
    for (int size = 0; size < 4; size++) {
        for (int i = 0; i < 2000 * size; i++)
            wb_hist_record(&h, (int64_t)(wb_rng_u64(&rng) >> wb_rng_below(&rng, 60)));
        wb_hist_record_n(&h, 5, (uint64_t)size << 40);
        text.len = 0;
        wb_hist_encode(&h, &text);
        assert_memory_equal(wb_buf_str(&text), "HISTFAAA", 8);
        assert_int_equal(wb_hist_decode(wb_buf_str(&text), text.len, &back, NULL), 0);
        same(&h, &back);
        wb_hist_release(&back);
    }
    wb_hist_release(&h);
    wb_buf_release(&text);
}

/* What is damaged is refused or read as something else, never past the end of anything. */
static void test_damaged(void **state)
{
    static const char *const bad[] =
        {
            "",
            "A",
            "AAA",
            "AAAA",
            "====",
            "A===",
            "AA=A",
            "HIST====",
            "AA\x80=",
            "HISTFAAAAEV4",
            "HISTFP////94",
            "HISTEwAA",
            "AAAABAAAAAA=", /* another
                               cookie
                             */
        };
    struct wb_buf text = WB_BUF_INIT(1 << 16);
    struct wb_hist h, back;
    struct wb_rng rng;

    (void)state;
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct wb_err err = WB_ERR_INIT;
        assert_true(wb_hist_decode(bad[i], strlen(bad[i]), &back, &err) < 0);
        assert_true(strlen(err.root) > 10);
    }
    wb_rng_seed(&rng, 5);
    wb_hist_init_ns(&h);
    for (int i = 0; i < 200; i++)
        wb_hist_record(&h, (int64_t)wb_rng_below(&rng, 1000000));
    wb_hist_encode(&h, &text);
    for (size_t n = 0; n < text.len; n++)
        assert_true(wb_hist_decode(wb_buf_str(&text), n, &back, NULL) < 0);
    for (int i = 0; i < 3000; i++) {
        size_t at = (size_t)wb_rng_below(&rng, text.len);
        char kept = text.data[at];
        text.data[at] = "ABCxyz019+/"[wb_rng_below(&rng, 11)];
        if (wb_hist_decode(text.data, text.len, &back, NULL) == 0)
            wb_hist_release(&back);
        text.data[at] = kept;
    }
    wb_hist_release(&h);
    wb_buf_release(&text);
}

/* Plain V2 with a count array that does not fit its range. */
static void test_hostile_counts(void **state)
{
    /* cookie, payload length 1, offset 0, digits 1, lowest 1, highest 2, ratio, then one count;
     * the texts differ in the digits, the length or the count. */
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        /* one count of 1 in bucket 0 */
        {"HISTEwAAAAEAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAAI=", 0},
        /* payload of 2^32-1 bytes */
        {"HISTE/////8AAAAAAAAAAQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAAI=", -WB_CORRUPT},
        /* 9 digits */
        {"HISTEwAAAAEAAAAAAAAACQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAAI=", -WB_CORRUPT},
        /* highest of -1 */
        {"HISTEwAAAAEAAAAAAAAAAQAAAAAAAAAB//////////8/8AAAAAAAAAI=", -WB_INVALID},
        /* shifted in the writer's memory, not here */
        {"HISTEwAAAAEAAAABAAAAAQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAAI=", 0},
        /* a count that is cut off */
        {"HISTEwAAAAEAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAIA=", -WB_CORRUPT},
        /* 64 zeros in a range of 48 */
        {"HISTEwAAAAEAAAAAAAAAAQAAAAAAAAABAAAAAAAAAAI/8AAAAAAAAH8=", -WB_CORRUPT},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_hist h;
        int rc = wb_hist_decode(rows[i].text, strlen(rows[i].text), &h, NULL);
        assert_int_equal(rc, rows[i].code);
        if (rc == 0) {
            assert_int_equal(h.total, 1);
            wb_hist_release(&h);
        }
    }
}

static void test_log(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    struct wb_hist h;

    (void)state;
    wb_hist_init_ns(&h);
    wb_hist_record(&h, 1500000);
    wb_hist_log_head(&b, "test 1", 1441812279474);
    wb_hist_log_line(&b, "get.service", 1000000000, 999600000, &h);
    wb_hist_log_line(&b, NULL, 2000000000, 1000000000, &h);
    assert_non_null(strstr(wb_buf_str(&b), "#[StartTime: 1441812279.474 (seconds since epoch), "
                                           "2015-09-09T15:24:39.474Z]\n"));
    assert_non_null(strstr(wb_buf_str(&b),
                           "\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\""
                           ",\"Interval_Compressed_Histogram\"\n"));
    assert_non_null(strstr(wb_buf_str(&b), "\nTag=get.service,1.000,1.000,1.500,HISTFAAA"));
    assert_non_null(strstr(wb_buf_str(&b), "\n2.000,1.000,1.500,HISTFAAA"));
    wb_hist_release(&h);
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_logs),  cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_record_ns),       cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_percentile_rule), cmocka_unit_test(test_outside),
        cmocka_unit_test(test_carry),           cmocka_unit_test(test_add_other_shape),
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_hostile_counts),  cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
