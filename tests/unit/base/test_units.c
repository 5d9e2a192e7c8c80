#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define BAD INT64_MIN /* the text must be refused */

struct int_case {
    const char *text;
    int64_t want;
};

typedef int (*int_reader)(const char *, int64_t, int64_t, int64_t *, struct wb_err *);

static void check_ints(int_reader read, const struct int_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct wb_err err = WB_ERR_INIT;
        int64_t v = 77;
        int rc = read(cases[i].text, INT64_MIN + 1, INT64_MAX, &v, &err);
        int64_t want = cases[i].want == BAD ? 77 : cases[i].want;
        if (rc != (cases[i].want == BAD ? -WB_INVALID : 0) || v != want)
            fail_msg("'%s': rc %d, %lld (%s)", cases[i].text, rc, (long long)v, err.root);
        if (rc < 0)
            assert_non_null(strstr(err.root, cases[i].text));
    }
}

static void reads_integers(void **state)
{
    static const struct int_case cases[] = {
        {"42", 42},
        {"0", 0},
        {"-7", -7},
        {"007", 7},
        {"1_000_000", 1000000},
        {"10k", 10000},
        {"2M", 2000000},
        {"3G", 3000000000},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", BAD},
        {"9223372036854776k", BAD},
        {"99999999999999999999999999", BAD},
        {"", BAD},
        {"-", BAD},
        {"--1", BAD},
        {"+1", BAD},
        {" 1", BAD},
        {"1 ", BAD},
        {"1.5k", BAD},
        {"_1", BAD},
        {"1_", BAD},
        {"1__0", BAD},
        {"1K", BAD},
        {"1kk", BAD},
        {"0x10", BAD},
        {"1e3", BAD},
        {"ten", BAD},
    };
    struct wb_err err = WB_ERR_INIT;
    int64_t v = 5;

    check_ints(wb_parse_int, cases, WB_LEN(cases));
    assert_int_equal(wb_parse_int("11", 0, 10, &v, &err), -WB_INVALID);
    assert_string_equal(err.root, "'11' is out of range, allowed is 0 to 10");
    assert_int_equal(wb_parse_int("-1", 0, 10, &v, &err), -WB_INVALID);
    assert_int_equal(v, 5);
}

static void reads_bytes(void **state)
{
    static const struct int_case cases[] = {
        {"100", 100},
        {"64B", 64},
        {"4KiB", 4096},
        {"1MiB", 1048576},
        {"2GiB", 2147483648},
        {"10kB", 10000},
        {"5MB", 5000000},
        {"1.5KiB", 1536},
        {"0.5kB", 500},
        {"1_024B", 1024},
        {"7TiB", 7696581394432},
        {"0.3KiB", BAD}, /* 307.2 bytes */
        {"9000000TiB", BAD},
        {"4kib", BAD},
        {"4 KiB", BAD},
        {"4K", BAD},
        {"-1B", BAD},
        {"B", BAD},
        {"", BAD},
        {"1.B", BAD},
        {".5KiB", BAD},
        {"1.0000000001kB", BAD},
    };
    int64_t v;

    check_ints(wb_parse_bytes, cases, WB_LEN(cases));
    assert_int_equal(wb_parse_bytes("2KiB", 0, 2047, &v, NULL), -WB_INVALID);
}

static void reads_durations(void **state)
{
    static const struct int_case cases[] = {
        {"500us", 500000},
        {"20ms", 20000000},
        {"10s", 10000000000},
        {"5m", 300000000000},
        {"1h", 3600000000000},
        {"1.5s", 1500000000},
        {"0.1ms", 100000},
        {"0.000000001s", 1},
        {"7ns", 7},
        {"0s", 0},
        {"0.5ns", BAD},
        {"10", BAD},
        {"1e3s", BAD},
        {"-1s", BAD},
        {"s", BAD},
        {"", BAD},
        {"1 s", BAD},
        {"1sec", BAD},
        {"1S", BAD},
        {"9999999999h", BAD},
    };
    struct wb_err err = WB_ERR_INIT;
    int64_t v = 0;

    check_ints(wb_parse_duration, cases, WB_LEN(cases));
    assert_int_equal(wb_parse_duration("10", 0, INT64_MAX, &v, &err), -WB_INVALID);
    assert_string_equal(err.root, "'10' has no unit: write 10ms, 10s or 10m");
    assert_int_equal(wb_parse_duration("2h", 1000000, 3600000000000, &v, &err), -WB_INVALID);
    assert_string_equal(err.root, "'2h' is out of range, allowed is 1.00 ms to 1 h 00 m");
}

static void reads_reals_rates_percent(void **state)
{
    static const char *const bad_reals[] = {"",   "nan", "inf", "0x1p3", "1.",  ".5", "1e",
                                            "1 ", " 1",  "1,5", "1e999", "--1", "1f", "infinity"};
    static const char *const bad_rates[] = {"",    "0",   "0/s", "-1/s", "/s",
                                            "1/m", "1k/", "k/s", "1/s/s"};
    static const char *const bad_percents[] = {"", "%", "7%%", "101%", "-1%", "7 %", "x%"};
    double v = -5;

    for (size_t i = 0; i < WB_LEN(bad_reals); i++)
        assert_int_equal(wb_parse_real(bad_reals[i], -1e308, 1e308, &v, NULL), -WB_INVALID);
    for (size_t i = 0; i < WB_LEN(bad_rates); i++)
        assert_int_equal(wb_parse_rate(bad_rates[i], &v, NULL), -WB_INVALID);
    for (size_t i = 0; i < WB_LEN(bad_percents); i++)
        assert_int_equal(wb_parse_percent(bad_percents[i], 0, 100, &v, NULL), -WB_INVALID);
    assert_true(v == -5);

    assert_int_equal(wb_parse_real("-1.25e-3", -1, 1, &v, NULL), 0);
    assert_true(v == -1.25e-3);
    assert_int_equal(wb_parse_real("2", -1, 1, &v, NULL), -WB_INVALID);
    assert_int_equal(wb_parse_rate("20k/s", &v, NULL), 0);
    assert_true(v == 20000);
    assert_int_equal(wb_parse_rate("1.5M", &v, NULL), 0);
    assert_true(v == 1500000);
    assert_int_equal(wb_parse_rate("1 per 8s", &v, NULL), 0);
    assert_true(v == 0.125);
    assert_int_equal(wb_parse_rate("3 per 2m", &v, NULL), 0);
    assert_true(v == 0.025);
    assert_int_equal(wb_parse_rate("1 per 7", &v, NULL), -WB_INVALID);
    assert_int_equal(wb_parse_rate("1 per 0s", &v, NULL), -WB_INVALID);
    assert_int_equal(wb_parse_rate("0 per 7s", &v, NULL), -WB_INVALID);
    assert_int_equal(wb_parse_rate("0.5/s", &v, NULL), 0);
    assert_true(v == 0.5);
    assert_int_equal(wb_parse_percent("77%", 0, 100, &v, NULL), 0);
    assert_true(v == 77);
    assert_int_equal(wb_parse_percent("0.5", 0, 100, &v, NULL), 0);
    assert_true(v == 0.5);
}

static void cpu_lists_both_ways(void **state)
{
    static const struct {
        const char *text, *want; /* want NULL: refused */
    } cases[] = {
        {"0-2,5", "0-2,5"},    {"", ""},           {"\n", ""},
        {"3\n", "3"},          {"5,0-2", "0-2,5"}, {"1,1,1", "1"},
        {"0-1023", "0-1023"},  {"7,6,5", "5-7"},   {"1024", NULL},
        {"2-1", NULL},         {"1,", NULL},       {",1", NULL},
        {"1--2", NULL},        {"a", NULL},        {"1-", NULL},
        {"-1", NULL},          {"0 1", NULL},      {"1\n2", NULL},
        {"99999999999", NULL}, {"1,\n", NULL},     {"0-1,3-4,6", "0-1,3-4,6"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(1000);
        WB_AUTO_FREE int *set = NULL;
        int n = -1;
        int rc = wb_parse_cpulist(cases[i].text, &set, &n, NULL);
        assert_int_equal(rc, cases[i].want ? 0 : -WB_INVALID);
        if (rc == 0) {
            wb_format_cpulist(set, n, &b);
            assert_string_equal(wb_buf_str(&b), cases[i].want);
        } else {
            assert_null(set);
            assert_int_equal(n, -1);
        }
        wb_buf_release(&b);
    }
}

static void cpu_list_appends(void **state)
{
    static const int set[] = {1, 2};
    struct wb_buf b = WB_BUF_INIT(100);

    wb_buf_adds(&b, "cpus ");
    wb_format_cpulist(set, 2, &b);
    assert_string_equal(wb_buf_str(&b), "cpus 1-2");
    wb_buf_release(&b);
}

static void formats_for_people(void **state)
{
    static const struct {
        char kind;
        double v;
        const char *want;
    } cases[] = {
        {'c', 21345, "21,345"},
        {'c', 999, "999"},
        {'c', 1000, "1,000"},
        {'c', 1234567.4, "1,234,567"},
        {'c', -1234, "-1,234"},
        {'c', 0, "0"},
        {'c', 0.254, "0.25"},
        {'c', 12.34, "12.3"},
        {'c', 99.96, "100"},
        {'r', 215345, "215.3k/s"},
        {'r', 999, "999/s"},
        {'r', 999.7, "1.0k/s"},
        {'r', 999960, "1.0M/s"},
        {'r', 0.5, "0.50/s"},
        {'r', 12.34, "12.3/s"},
        {'r', 2.5e9, "2.5G/s"},
        {'n', 0, "0 ns"},
        {'n', 999, "999 ns"},
        {'n', 1240000, "1.24 ms"},
        {'n', 312000, "312 us"},
        {'n', 999600, "1.00 ms"},
        {'n', 12340, "12.3 us"},
        {'n', 4e9, "4.0 s"},
        {'n', 125e9, "2 m 05 s"},
        {'n', 59.97e9, "1 m 00 s"},
        {'n', 3599.6e9, "1 h 00 m"},
        {'n', 7384e9, "2 h 03 m"},
        {'n', 7199e9, "2 h 00 m"},
        {'n', -1500000, "-1.50 ms"},
        {'b', 0, "0 B"},
        {'b', 1023, "1023 B"},
        {'b', 4096, "4.0 KiB"},
        {'b', 1048575, "1.0 MiB"},
        {'b', 13107200, "12.5 MiB"},
        {'b', -2048, "-2.0 KiB"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(64);
        if (cases[i].kind == 'c')
            wb_format_count(cases[i].v, &b);
        else if (cases[i].kind == 'r')
            wb_format_rate(cases[i].v, &b);
        else if (cases[i].kind == 'n')
            wb_format_ns((int64_t)cases[i].v, &b);
        else
            wb_format_bytes((int64_t)cases[i].v, &b);
        assert_string_equal(wb_buf_str(&b), cases[i].want);
        wb_buf_release(&b);
    }
}

static void formats_the_extremes(void **state)
{
    struct wb_buf b = WB_BUF_INIT(64);

    wb_format_ns(INT64_MIN, &b);
    assert_string_equal(wb_buf_str(&b), "-2562047 h 47 m");
    wb_buf_clear(&b);
    wb_format_bytes(INT64_MIN, &b);
    assert_string_equal(wb_buf_str(&b), "-8.0 EiB");
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers),      cmocka_unit_test(reads_bytes),
        cmocka_unit_test(reads_durations),     cmocka_unit_test(reads_reals_rates_percent),
        cmocka_unit_test(cpu_lists_both_ways), cmocka_unit_test(cpu_list_appends),
        cmocka_unit_test(formats_for_people),  cmocka_unit_test(formats_the_extremes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
