#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runners/load/search.h"
#include "server/base/mem.h"

/* Runs a search against a server that holds every rate up to a limit; returns the tries. */
static int against(struct wb_search *s, double limit)
{
    int tries = 0;

    for (double rate; (rate = wb_search_next(s)) > 0; tries++) {
        assert_true(rate >= s->least_per_s && rate <= s->most_per_s);
        assert_true(tries < 100);
        wb_search_tell(s, rate <= limit);
    }
    return tries;
}

/* The rate found holds, and nothing more than 2 % (and a rounding) above it does. */
static void test_finds(void **state)
{
    static const double limits[] = {1.5, 7, 99, 1000, 1001, 47123, 123456, 499999, 999999};

    (void)state;
    for (size_t i = 0; i < WB_LEN(limits); i++) {
        struct wb_search s;
        int tries;
        wb_search_init(&s, 1000, 1, 1e6);
        tries = against(&s, limits[i]);
        assert_int_equal(s.stage, WB_SEARCH_FOUND);
        assert_true(s.holds_per_s <= limits[i]);
        assert_true(s.holds_per_s > limits[i] / 1.02 * 0.99);
        assert_true(tries <= 10 + 6 + 2 + 1);
    }
}

static void test_ends(void **state)
{
    struct wb_search s;

    (void)state;
    wb_search_init(&s, 1000, 1, 1e6); /* nothing holds */
    assert_int_equal(against(&s, 0.5), 11);
    assert_int_equal(s.stage, WB_SEARCH_NONE);
    wb_search_init(&s, 1000, 1, 1e6); /* everything does */
    assert_int_equal(against(&s, 1e9), 11 + WB_SEARCH_TIMES);
    assert_int_equal(s.stage, WB_SEARCH_FOUND);
    assert_true(s.holds_per_s == 1e6);
    wb_search_init(&s, 5, 5, 5); /* one rate only */
    assert_int_equal(against(&s, 5), 1 + WB_SEARCH_TIMES);
    assert_int_equal(s.stage, WB_SEARCH_FOUND);
    wb_search_init(&s, 5, 5, 5);
    assert_int_equal(against(&s, 4), 1);
    assert_int_equal(s.stage, WB_SEARCH_NONE);
}

/* What held by luck is given up when it is confirmed, for rates further and further below. */
static void test_luck(void **state)
{
    struct wb_search s;
    double last = INFINITY;
    int tries = 0;

    (void)state;
    wb_search_init(&s, 1000, 1, 1e6);
    while (s.stage != WB_SEARCH_CONFIRM)
        wb_search_tell(&s, wb_search_next(&s) <= 8000);
    assert_true(s.holds_per_s == 8000);
    for (; wb_search_next(&s) > 7000; tries++) {
        assert_true(wb_search_next(&s) < last);
        last = wb_search_next(&s);
        wb_search_tell(&s, true); /* once is not enough */
        assert_int_equal(s.stage, WB_SEARCH_CONFIRM);
        wb_search_tell(&s, false);
    }
    assert_int_equal(tries, 3); /* 8000, 7840, 7530, and then 6930 */
    against(&s, 7000);
    assert_int_equal(s.stage, WB_SEARCH_FOUND);
    assert_true(s.holds_per_s == 6930);
    /* nothing is ever confirmed: it ends */
    wb_search_init(&s, 1000, 1, 1e6);
    while (s.stage != WB_SEARCH_CONFIRM)
        wb_search_tell(&s, wb_search_next(&s) <= 8000);
    for (tries = 0; wb_search_next(&s) > 0; tries++)
        wb_search_tell(&s, false);
    assert_int_equal(tries, 6);
    assert_int_equal(s.stage, WB_SEARCH_NONE);
}

static void test_limits(void **state)
{
    static const struct {
        const char *text;
        double percentile;
        int64_t limit_ns;
    } good[] = {{"p99<5ms", 99, 5000000},
                {"p99.9<=20ms", 99.9, 20000000},
                {"p50<1us", 50, 1000},
                {"max<1h", 100, 3600000000000}};
    static const char *const bad[] = {"",         "p99",    "p99<",      "<5ms",     "p<5ms",
                                      "p100<5ms", "p0<5ms", "p99>5ms",   "q99<5ms",  "p99<5",
                                      "p99<0ms",  "p99<2h", "max99<5ms", "p99<<5ms", "p99<5ms "};

    (void)state;
    for (size_t i = 0; i < WB_LEN(good); i++) {
        struct wb_slo s = {0};
        assert_int_equal(wb_slo_parse(good[i].text, &s, NULL), 0);
        assert_true(s.percentile == good[i].percentile);
        assert_int_equal(s.limit_ns, good[i].limit_ns);
    }
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct wb_slo s = {.percentile = -1};
        assert_true(wb_slo_parse(bad[i], &s, NULL) < 0);
        assert_true(s.percentile == -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_luck),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
