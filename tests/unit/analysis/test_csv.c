#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "server/analysis/csv.h"
#include "server/base/mem.h"

static void reads_columns(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"base,new\n1,2\n3,4.5\n", "{\"base\":[1.0,3.0],\"new\":[2.0,4.5]}"},
        {"base,new\r\n1,2\r\n\r\n3,\r\n", "{\"base\":[1.0,3.0],\"new\":[2.0,null]}"},
        {"\xef\xbb\xbf"
         "p\n0.1",
         "{\"p\":[0.1]}"},
        {" a , b \n 1 ,\t-2e3 \n", "{\"a\":[1.0],\"b\":[-2000.0]}"},
        {"name,base\n\"x, \"\"y\"\"\",1\n", "{\"name\":[\"x, \\\"y\\\"\"],\"base\":[1.0]}"},
        {"name,base\n007,1\n", "{\"name\":[\"007\"],\"base\":[1.0]}"},
        {"a\n", "{\"a\":[]}"},
        {"b\xff\n1\n", "{\"b\xef\xbf\xbd\":[1.0]}"},
        {"a,b\n1,", "{\"a\":[1.0],\"b\":[null]}"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(1000);
        struct wb_err err = WB_ERR_INIT;
        wb_json *j = NULL;
        if (wb_csv_columns(cases[i].text, strlen(cases[i].text), &j, &err) < 0)
            fail_msg("case %zu: %s", i, err.root);
        wb_json_line(j, &b);
        assert_string_equal(wb_buf_str(&b), cases[i].want);
        wb_buf_release(&b);
        wb_json_free(j);
    }
}

#define WAY_OUT "; leave the cell empty where there is no value"

static void names_the_line_that_is_wrong(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "line 1: the input is empty"},
        {"a,a\n", "line 1: column 'a' is there twice"},
        {"a,\n", "line 1: column 2 of the header has no name"},
        {"a,b\n1,2\n3\n", "line 3: has 1 cells, the header has 2"},
        {"a,b\n1,2,3\n", "line 2: has more than the 2 cells of the header"},
        {"a\n1\nx\n", "line 3: 'x' in column 'a' is not a number" WAY_OUT},
        {"a\n1e999\n", "line 2: '1e999' in column 'a' is not a number" WAY_OUT},
        {"a\nnan\n", "line 2: 'nan' in column 'a' is not a number" WAY_OUT},
        {"a\n\n-inf\n", "line 3: '-inf' in column 'a' is not a number" WAY_OUT},
        {"a\n0x10\n", "line 2: '0x10' in column 'a' is not a number" WAY_OUT},
        {"a\n1e308\n", "line 2: '1e308' in column 'a' is out of range, allowed is 0 and 1e-140 to "
                       "1e+140: give it in another unit"},
        {"a\r\n-1e-300\r\n", "line 2: '-1e-300' in column 'a' is out of range, allowed is 0 and "
                             "1e-140 to 1e+140: give it in another unit"},
        {"\xef\xbb\xbf", "line 1: column 1 of the header has no name"},
        {"a\n\"1\n", "line 3: a quote is not closed"},
        {"a\n\"1\"2\n", "line 2: text behind a cell's end"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        wb_json *j = NULL;
        assert_int_equal(wb_csv_columns(cases[i].text, strlen(cases[i].text), &j, &err),
                         -WB_INVALID);
        assert_null(j);
        assert_string_equal(err.root, cases[i].want);
    }
    {
        struct wb_err err = WB_ERR_INIT;
        wb_json *j = NULL;
        assert_int_equal(wb_csv_columns("a\n1\0\n", 5, &j, &err), -WB_INVALID);
        assert_string_equal(err.root, "line 1: the input has NUL bytes");
    }
}

/* Rows are found again whatever stands between them. */
static void knows_the_line_of_a_row(void **state)
{
    static const struct {
        const char *text;
        size_t row, line;
    } cases[] = {
        {"a\n1\n2\n", 0, 2},
        {"a\n1\n2\n", 1, 3},
        {"a\n1\n2", 1, 3},
        {"a\n1\n2\n", 2, 0},
        {"a\n\n\n1\n\n2\n", 0, 4},
        {"a\n\n\n1\n\n2\n", 1, 6},
        {"a\r\n1\r\n\r\n2\r\n", 1, 4},
        {"name,a\n\"x\ny\",1\nz,2\n", 0, 2},
        {"name,a\n\"x\ny\",1\nz,2\n", 1, 4},
        {"a", 0, 0},
        {"", 0, 0},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        if (wb_csv_line(cases[i].text, strlen(cases[i].text), cases[i].row) != cases[i].line)
            fail_msg("case %zu: %zu", i,
                     wb_csv_line(cases[i].text, strlen(cases[i].text), cases[i].row));
}

static void becomes_a_question(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"base,new\n1,2\n3,\n", "{\"base\":[1.0,3.0],\"new\":[2.0]}"},
        {"rounds_base,rounds_new,better\n1,2,lower\n3,,\n",
         "{\"rounds_base\":[1.0,3.0],\"rounds_new\":[2.0,null],\"better\":\"lower\"}"},
        {"name,base,new\nx,1,2\ny,3,4\nx,5,6\n",
         "{\"rows\":[{\"name\":\"x\",\"base\":[1.0,5.0],\"new\":[2.0,6.0]},"
         "{\"name\":\"y\",\"base\":[3.0],\"new\":[4.0]}]}"},
        {"base,new,threshold_percent\n1,2,5\n", "{\"base\":[1.0],\"new\":[2.0],"
                                                "\"threshold_percent\":5.0}"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(1000);
        wb_json *columns = NULL, *doc;
        assert_int_equal(wb_csv_columns(cases[i].text, strlen(cases[i].text), &columns, NULL), 0);
        doc = wb_csv_compare(columns);
        wb_json_line(doc, &b);
        assert_string_equal(wb_buf_str(&b), cases[i].want);
        wb_buf_release(&b);
        wb_json_free(doc);
        wb_json_free(columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_columns),
        cmocka_unit_test(names_the_line_that_is_wrong),
        cmocka_unit_test(knows_the_line_of_a_row),
        cmocka_unit_test(becomes_a_question),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
