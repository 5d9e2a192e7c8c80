#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

#define BAD INT64_MIN

static void parses_and_formats(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
        const char *back; /* NULL: the same text */
    } cases[] = {
        {"1970-01-01T00:00:00.000Z", 0, NULL},
        {"2026-11-30T15:41:49.123Z", 1796053309123, NULL},
        {"2026-11-30T16:41:49.123+01:00", 1796053309123, "2026-11-30T15:41:49.123Z"},
        {"2026-11-30T10:11:49-05:30", 1796053309000, "2026-11-30T15:41:49.000Z"},
        {"2026-11-30t15:41:49.1z", 1796053309100, "2026-11-30T15:41:49.100Z"},
        {"2026-11-30T15:41:49.123999999Z", 1796053309123, "2026-11-30T15:41:49.123Z"},
        {"2024-02-29T00:00:00.000Z", 1709164800000, NULL},
        {"2000-02-29T23:59:59.999Z", 951868799999, NULL},
        {"1969-12-31T23:59:59.999Z", -1, NULL},
        {"1900-03-01T00:00:00.000Z", -2203891200000, NULL},
        {"9999-12-31T23:59:59.999Z", 253402300799999, NULL},
        {"2023-02-29T00:00:00Z", BAD, NULL},
        {"1900-02-29T00:00:00Z", BAD, NULL},
        {"2026-13-01T00:00:00Z", BAD, NULL},
        {"2026-00-01T00:00:00Z", BAD, NULL},
        {"2026-01-00T00:00:00Z", BAD, NULL},
        {"2026-01-01T24:00:00Z", BAD, NULL},
        {"2026-01-01T00:60:00Z", BAD, NULL},
        {"2026-01-01T00:00:60Z", BAD, NULL},
        {"2026-01-01T00:00:00", BAD, NULL},
        {"2026-01-01T00:00:00.Z", BAD, NULL},
        {"2026-01-01T00:00:00.1234567890Z", BAD, NULL},
        {"2026-01-01T00:00:00+1:00", BAD, NULL},
        {"2026-01-01T00:00:00+24:00", BAD, NULL},
        {"2026-01-01T00:00:00Zx", BAD, NULL},
        {"2026-1-1T00:00:00Z", BAD, NULL},
        {"2026-01-01", BAD, NULL},
        {"", BAD, NULL},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(64);
        int64_t ms = 42;
        int rc = wb_parse_time(cases[i].text, &ms, NULL);
        if (cases[i].ms == BAD) {
            assert_int_equal(rc, -WB_INVALID);
            assert_int_equal(ms, 42);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(ms, cases[i].ms);
        wb_format_time(ms, &b);
        assert_string_equal(wb_buf_str(&b), cases[i].back ? cases[i].back : cases[i].text);
        wb_buf_release(&b);
    }
}

static void every_day_of_800_years_round_trips(void **state)
{
    for (int64_t day = -146097; day < 146097; day++) {
        struct wb_buf b = WB_BUF_INIT(64);
        int64_t ms = 0;
        wb_format_time(day * 86400000, &b);
        assert_int_equal(wb_parse_time(wb_buf_str(&b), &ms, NULL), 0);
        assert_int_equal(ms, day * 86400000);
        wb_buf_release(&b);
    }
}

static void fake_clock_moves_only_when_told(void **state)
{
    struct wb_clock *c = wb_clock_fake(5 * WB_SEC, 1000);

    assert_int_equal(wb_now_ns(c), 5 * WB_SEC);
    assert_int_equal(wb_now_ns(c), 5 * WB_SEC);
    for (int i = 0; i < 3; i++)
        wb_clock_advance(c, 400 * WB_US);
    assert_int_equal(wb_now_ns(c), 5 * WB_SEC + 1200 * WB_US);
    assert_int_equal(wb_now_unix_ms(c), 1001); /* parts of a millisecond add up */
    wb_clock_advance(c, 2 * WB_SEC);
    assert_int_equal(wb_now_unix_ms(c), 3001);
    wb_clock_free(c);
    wb_clock_free(NULL);
}

static void system_clock_goes_forward(void **state)
{
    int64_t a = wb_now_ns(NULL), b = wb_now_ns(NULL);

    assert_true(a > 0 && b >= a);
    assert_true(wb_now_unix_ms(NULL) > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_and_formats),
        cmocka_unit_test(every_day_of_800_years_round_trips),
        cmocka_unit_test(fake_clock_moves_only_when_told),
        cmocka_unit_test(system_clock_goes_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
