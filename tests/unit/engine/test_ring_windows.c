/* What the load saw before, during and after an operation: which intervals count where, and merged
 * histograms. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/hist.h"
#include "server/engine/ring.h"

#define START_MS 1800000000000LL
#define START_S 1800000000.0

struct files {
    char dir[64];
    char *base;
};

static int setup(void **state)
{
    struct files *f = wb_calloc(1, sizeof(*f));

    memcpy(f->dir, "/tmp/wb-test-ring-XXXXXX", sizeof("/tmp/wb-test-ring-XXXXXX"));
    *state = f;
    if (!mkdtemp(f->dir))
        return -1;
    f->base = wb_strf("%s/load-x", f->dir);
    return 0;
}

static int teardown(void **state)
{
    struct files *f = *state;
    int rc = wb_remove_tree(f->dir, NULL);

    free(f->base);
    free(f);
    return rc;
}

static void put(const struct files *f, const char *end, const struct wb_buf *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s%s", f->base, end);

    assert_int_equal(wb_file_put(path, wb_buf_str(text), text->len, NULL), 0);
}

static void add_hist(struct wb_buf *hdr, const char *tag, int second, int n, int64_t each_ns)
{
    struct wb_hist h;

    wb_hist_init_ns(&h);
    wb_hist_record_n(&h, each_ns, (uint64_t)n);
    wb_hist_log_line(hdr, tag, second * WB_SEC, WB_SEC, &h);
    wb_hist_release(&h);
}

/* Ten seconds: two of warm-up, then second k has 100 + k successes of 1 ms, those of 5 and 6 have
 * one more that took 500 ms; second 6 has 3 failures. Lags are there, too. */
static void write_files(const struct files *f)
{
    struct wb_buf lines = WB_BUF_INIT(1 << 20), hdr = WB_BUF_INIT(1 << 20);

    wb_hist_log_head(&hdr, "test", START_MS);
    for (int k = 0; k < 10; k++) {
        bool slow = k == 5 || k == 6;

        wb_buf_addf(&lines,
                    "{\"t\":%d.0,\"seconds\":1.0,\"ok\":%d,\"failed\":%d,\"phase\":\"%s\"}\n",
                    k + 1, 100 + k + slow, k == 6 ? 3 : 0, k < 2 ? "warm-up" : "measure");
        if (k < 2)
            continue;
        add_hist(&hdr, "get.service", k, 100 + k, WB_MS);
        add_hist(&hdr, "get.lag", k, 50, 7 * WB_SEC);
        if (slow)
            add_hist(&hdr, "set.service", k, 1, 500 * WB_MS);
    }
    wb_buf_adds(&lines, "{\"t\":11.0,\"sec"); /* cut off */
    put(f, ".ndjson", &lines);
    put(f, ".hdr", &hdr);
    wb_buf_release(&lines);
    wb_buf_release(&hdr);
}

static bool about(double got, double want)
{
    return fabs(got - want) <= want * 0.001;
}

static void test_windows(void **state)
{
    static const struct {
        double from, to;
        bool touching;
        int64_t intervals, ok, failed;
        double max_ms;
    } rows[] = {
        {-1e9, 5.2, false, 3, 102 + 103 + 104, 0, 1},  /* seconds 2, 3, 4 */
        {5.2, 6.1, true, 2, 106 + 107, 3, 500},        /* 5 and 6 have a part in it */
        {6.1, 1e9, false, 3, 107 + 108 + 109, 0, 1},   /* 7, 8, 9 */
        {5, 7, false, 2, 106 + 107, 3, 500},           /* to the point */
        {5.0009, 6.9995, false, 2, 106 + 107, 3, 500}, /* as near as a ms tells */
        {5.01, 6.99, false, 0, 0, 0, 0},               /* none lies within */
        {5.4, 5.4, true, 1, 106, 0, 500},              /* over at once */
        {0, 2, false, 0, 0, 0, 0},                     /* the warm-up is none of it */
    };
    struct wb_ring_series s;

    write_files(*state);
    wb_ring_series_read(&s, ((struct files *)*state)->base, false);
    assert_true(s.start_unix_s == START_S);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *w =
            wb_ring_window(&s, START_S + rows[i].from, START_S + rows[i].to, rows[i].touching);

        assert_int_equal(wb_json_int_or(w, "intervals", -1), rows[i].intervals);
        if (rows[i].intervals == 0) {
            assert_int_equal(wb_json_type(wb_json_get(w, "p99_ms")), WB_JSON_NULL);
            assert_string_equal(wb_json_str_or(w, "throughput_reason", ""),
                                "no whole interval of the load lies there");
            continue;
        }
        assert_int_equal(wb_json_int_or(w, "ok", -1), rows[i].ok);
        assert_int_equal(wb_json_int_or(w, "failed", -1), rows[i].failed);
        assert_true(wb_json_real_or(w, "throughput", 0) ==
                    (double)rows[i].ok / (double)rows[i].intervals);
        assert_true(about(wb_json_real_or(w, "p50_ms", 0), 1));
        assert_true(about(wb_json_real_or(w, "max_ms", 0), rows[i].max_ms));
    }
    wb_ring_series_release(&s);
}

/* Percentiles of the merged histogram: 2 of 213 are slow, and 2 of the 846 of eight seconds, which
 * is p99.9 and not p99. */
static void test_merged(void **state)
{
    struct wb_ring_series s;
    WB_AUTO_JSON wb_json *two = NULL, *all = NULL;

    write_files(*state);
    wb_ring_series_read(&s, ((struct files *)*state)->base, false);
    two = wb_ring_window(&s, START_S + 5, START_S + 7, false);
    all = wb_ring_window(&s, START_S + 2, START_S + 10, false);
    assert_true(about(wb_json_real_or(two, "p99_9_ms", 0), 500));
    assert_true(about(wb_json_real_or(all, "p99_ms", 0), 1));
    assert_true(about(wb_json_real_or(all, "p99_9_ms", 0), 500));
    wb_ring_series_release(&s);
}

/* In open loop the response counts, and there is none here: figures are null, never those of
 * another kind. */
static void test_kind(void **state)
{
    struct wb_ring_series s;
    WB_AUTO_JSON wb_json *w = NULL;

    write_files(*state);
    wb_ring_series_read(&s, ((struct files *)*state)->base, true);
    w = wb_ring_window(&s, START_S + 2, START_S + 10, false);
    assert_int_equal(wb_json_int_or(w, "intervals", -1), 8);
    assert_int_equal(wb_json_type(wb_json_get(w, "p50_ms")), WB_JSON_NULL);
    assert_string_equal(wb_json_str_or(w, "p50_ms_reason", ""),
                        "no operation succeeded in these intervals");
    wb_ring_series_release(&s);
}

static void test_nothing(void **state)
{
    struct wb_ring_series s;
    WB_AUTO_JSON wb_json *w = NULL;

    wb_ring_series_read(&s, ((struct files *)*state)->base, false);
    w = wb_ring_window(&s, START_S, START_S + 10, true);
    assert_int_equal(wb_json_int_or(w, "intervals", -1), 0);
    assert_string_equal(wb_json_str_or(w, "p99_ms_reason", ""),
                        "the load generator left no histograms of its intervals");
    wb_ring_series_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
