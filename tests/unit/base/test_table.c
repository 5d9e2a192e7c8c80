#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/table.h"

static void sizes_columns_to_content(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "ops/s", WB_RIGHT);
    wb_table_column(t, "note", WB_LEFT);
    wb_table_row(t);
    wb_table_cell(t, "%s x%d", "native", 1);
    wb_table_cell(t, "%d", 123456);
    wb_table_row(t);
    wb_table_cell(t, "\xc3\xa9"); /* one code point, two bytes */
    wb_table_cell(t, "7");
    wb_table_cell(t, "two\nlines\x1b[31m");
    wb_table_cell(t, "beyond the last column");
    wb_table_print(t, 80, &b);
    assert_string_equal(wb_buf_str(&b), "arm         ops/s  note\n"
                                        "---------  ------  --------------\n"
                                        "native x1  123456\n"
                                        "\xc3\xa9               7  two lines [31m\n");
    wb_buf_release(&b);
    wb_table_free(t);
}

static void cuts_the_widest_text(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_column(t, "a", WB_LEFT);
    wb_table_column(t, "n", WB_RIGHT);
    wb_table_column(t, "b", WB_LEFT);
    wb_table_row(t);
    wb_table_cell(t, "short text");
    wb_table_cell(t, "12345678901234567890");
    wb_table_cell(t, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4xyz");
    wb_table_print(t, 43, &b);
    assert_string_equal(
        wb_buf_str(&b),
        "a                              n  b\n"
        "----------  --------------------  ---------\n"
        "short text  12345678901234567890  "
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xe2\x80\xa6\n");
    wb_buf_release(&b);
    wb_table_free(t);
}

/* Numbers are never cut: a wrong number is worse than a long line. */
static void never_cuts_numbers(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_column(t, "n", WB_RIGHT);
    wb_table_row(t);
    for (int i = 0; i < 1; i++)
        wb_table_cell(t, "%060d", 1);
    wb_table_print(t, 40, &b);
    assert_non_null(
        strstr(wb_buf_str(&b), "000000000000000000000000000000000000000000000000000000000001\n"));
    wb_buf_release(&b);
    wb_table_free(t);
}

/* Where no cut makes it fit, a row is a block of lines, whole. */
static void too_narrow_becomes_blocks(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_column(t, "name", WB_LEFT);
    wb_table_column(t, "\xc3\xa4", WB_RIGHT);
    wb_table_column(t, "note", WB_LEFT);
    for (int i = 0; i < 2; i++) {
        wb_table_row(t);
        wb_table_cell(t, "a name of more than eight");
        wb_table_cell(t, "%040d", i);
        if (i == 0)
            wb_table_cell(t, "seen");
    }
    wb_table_print(t, 40, &b);
    assert_string_equal(wb_buf_str(&b), "name  a name of more than eight\n"
                                        "\xc3\xa4     0000000000000000000000000000000000000000\n"
                                        "note  seen\n"
                                        "\n"
                                        "name  a name of more than eight\n"
                                        "\xc3\xa4     0000000000000000000000000000000000000001\n");
    wb_buf_release(&b);
    wb_table_free(t);
}

/* Colour changes no width, and stands only where it was asked for. */
static void colour(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_tint(t, WB_BAD); /* no cell yet */
    wb_table_column(t, "state", WB_LEFT);
    wb_table_column(t, "n", WB_RIGHT);
    wb_table_row(t);
    wb_table_cell(t, "bad");
    wb_table_tint(t, WB_BAD);
    wb_table_cell(t, "1");
    wb_table_print(t, 80, &b);
    assert_string_equal(wb_buf_str(&b), "state  n\n-----  -\nbad    1\n");
    wb_buf_clear(&b);
    wb_table_color(t, true);
    wb_table_print(t, 80, &b);
    assert_string_equal(wb_buf_str(&b), "state  n\n-----  -\n\033[31mbad\033[0m    1\n");
    wb_buf_release(&b);
    wb_table_free(t);
}

static void empty_tables(void **state)
{
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(10000);

    wb_table_cell(t, "no row yet");
    wb_table_print(t, 80, &b);
    assert_string_equal(wb_buf_str(&b), "");
    wb_table_column(t, "head", WB_LEFT);
    wb_table_print(t, 0, &b);
    assert_string_equal(wb_buf_str(&b), "head\n----\n");
    wb_buf_release(&b);
    wb_table_free(t);
    wb_table_free(NULL);
}

static void width_comes_from_columns_and_is_bounded(void **state)
{
    static const struct {
        const char *columns;
        int want;
    } cases[] = {{"100", 100}, {"10", 40}, {"99999", 500}};
    int fds[2];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("COLUMNS", cases[i].columns, 1);
        assert_int_equal(wb_terminal_width(-1), cases[i].want);
    }
    setenv("COLUMNS", "wide", 1);
    assert_int_equal(wb_terminal_width(-1), 80);
    unsetenv("COLUMNS");
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(wb_terminal_width(fds[0]), 80);
    assert_false(wb_terminal_fancy(fds[0]));
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_columns_to_content),
        cmocka_unit_test(cuts_the_widest_text),
        cmocka_unit_test(never_cuts_numbers),
        cmocka_unit_test(too_narrow_becomes_blocks),
        cmocka_unit_test(colour),
        cmocka_unit_test(empty_tables),
        cmocka_unit_test(width_comes_from_columns_and_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
