#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "server/base/err.h"

static void test_context_in_front(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];

    assert_int_equal(wb_fail(&err, WB_INVALID, "'%s' is not a rate", "abc"), -WB_INVALID);
    assert_int_equal(wb_wrap(&err, "phase %s", "max"), -WB_INVALID);
    assert_int_equal(wb_wrap(&err, "study"), -WB_INVALID);
    assert_string_equal(wb_err_text(&err, text, sizeof(text)),
                        "study: phase max: 'abc' is not a rate");
    assert_string_equal(err.root, "'abc' is not a rate");
}

static void test_errno_text(void **state)
{
    static const struct {
        int sys, code;
        const char *text;
    } cases[] = {
        {ENOENT, WB_NOT_FOUND, "x: No such file or directory"},
        {ECONNREFUSED, WB_UNAVAILABLE, "x: Connection refused"},
        {ENOSPC, WB_IO, "x: No space left on device"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wb_err err = WB_ERR_INIT;

        assert_int_equal(wb_fail_sys(&err, cases[i].sys, "x"), -cases[i].code);
        assert_int_equal(err.sys, cases[i].sys);
        assert_string_equal(err.root, cases[i].text);
    }
}

/* However much context is added, the root stays whole and nothing is written past the end. */
static void test_long_context(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    char big[2000];

    memset(big, 'c', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    (void)wb_fail(&err, WB_IO, "root cause");
    for (int i = 0; i < 5; i++)
        assert_int_equal(wb_wrap(&err, "%s", big), -WB_IO);
    assert_string_equal(err.root, "root cause");
    assert_int_equal(strlen(err.context), WB_ERR_TEXT_MAX - 1);
    (void)wb_fail(&err, WB_IO, "%s", big);
    assert_int_equal(strlen(err.root), WB_ERR_TEXT_MAX - 1);
    assert_string_equal(err.context, "");
}

static void test_null(void **state)
{
    assert_int_equal(wb_fail(NULL, WB_LIMIT, "x"), -WB_LIMIT);
    assert_int_equal(wb_fail_sys(NULL, ENOENT, "x"), -WB_NOT_FOUND);
    assert_true(wb_wrap(NULL, "x") < 0);
    assert_string_equal(wb_code_name(-WB_CONFLICT), "conflict");
    assert_string_equal(wb_code_name(999), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_in_front),
        cmocka_unit_test(test_errno_text),
        cmocka_unit_test(test_long_context),
        cmocka_unit_test(test_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
