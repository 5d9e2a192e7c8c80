#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/buf.h"
#include "server/base/mem.h"

static void test_bound(void **state)
{
    struct wb_buf b = WB_BUF_INIT(5);
    struct wb_err err = WB_ERR_INIT;

    assert_string_equal(wb_buf_str(&b), "");
    wb_buf_adds(&b, "hello"); /* exactly the bound */
    assert_int_equal(wb_buf_check(&b, "greeting", &err), 0);
    wb_buf_addc(&b, '!');
    assert_int_equal(wb_buf_check(&b, "greeting", &err), -WB_LIMIT);
    assert_string_equal(err.root, "greeting is longer than 5 bytes");
    assert_string_equal(wb_buf_str(&b), "hello");
    wb_buf_addc(&b, 'x'); /* failed stays failed */
    assert_int_equal(b.len, 5);
    wb_buf_clear(&b);
    wb_buf_addf(&b, "%d-%s", 12, "ab");
    assert_string_equal(wb_buf_str(&b), "12-ab");
    assert_int_equal(wb_buf_check(&b, "x", NULL), 0);
    wb_buf_release(&b);
}

static void test_huge_lengths(void **state)
{
    struct wb_buf b = WB_BUF_INIT(100);

    wb_buf_adds(&b, "abc");
    assert_null(wb_buf_room(&b, SIZE_MAX));
    assert_true(b.failed);
    assert_true(b.cap < 4096);
    wb_buf_release(&b);
}

static void test_consume_and_take(void **state)
{
    struct wb_buf b = WB_BUF_INIT(100);
    char *s;

    wb_buf_consume(&b, 10);
    wb_buf_adds(&b, "abcdef");
    wb_buf_consume(&b, 2);
    assert_string_equal(wb_buf_str(&b), "cdef");
    wb_buf_consume(&b, 99);
    assert_int_equal(b.len, 0);
    wb_buf_adds(&b, "x");
    s = wb_buf_take(&b);
    assert_string_equal(s, "x");
    free(s);
    s = wb_buf_take(&b);
    assert_string_equal(s, "");
    free(s);
}

static void test_strv(void **state)
{
    struct wb_strv l = {0};

    wb_strv_add(&l, "a");
    wb_strv_addf(&l, "%s%d", "b", 2);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.v[1], "b2");
    assert_null(l.v[2]);
    wb_strv_release(&l);
    wb_strv_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_huge_lengths),
        cmocka_unit_test(test_consume_and_take),
        cmocka_unit_test(test_strv),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
