#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/json.h"
#include "server/base/mem.h"

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

/* text -> canonical text */
static void assert_canonical(const char *text, const char *want)
{
    WB_AUTO_JSON wb_json *j = parsed(text);
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    wb_json_canonical(j, &b);
    assert_string_equal(wb_buf_str(&b), want);
    wb_buf_release(&b);
}

static void refuses_what_is_not_one_document(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *word; /* in the error text */
    } cases[] = {
        {"", 0, "empty"},
        {"{\"a\":1,\"a\":2}", 13, "duplicate"},
        {"{} {}", 5, "end of file"},
        {"{\"a\":1}x", 8, "end of file"},
        {"\"a\0b\"", 5, ""},
        {"\"a\\u0000b\"", 10, "NUL"},
        {"{\"a\\u0000\":1}", 13, "NUL"},
        {"\"\xff\"", 3, "0xff"},
        {"\"\xed\xa0\x80\"", 5, "0xed"},
        {"[1,]", 4, ""},
        {"[NaN]", 5, ""},
        {"1e999", 5, "overflow"},
        {"99999999999999999999", 20, "big"},
        {"{\"a\":", 5, ""},
        {"01", 2, ""},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        wb_json *j = (wb_json *)0x1;
        int rc = wb_json_parse(cases[i].text, cases[i].n, &j, &err);
        if (rc != -WB_INVALID || strstr(err.root, cases[i].word) == NULL)
            fail_msg("case %zu: rc %d, text '%s'", i, rc, err.root);
        assert_ptr_equal(j, (wb_json *)0x1); /* untouched */
        assert_non_null(strstr(err.root, "line 1, column"));
    }
    assert_int_equal(wb_json_parse("", (size_t)WB_JSON_TEXT_MAX + 1, NULL, NULL), -WB_LIMIT);
}

static void bounds_depth(void **state)
{
    size_t n = 100000;
    WB_AUTO_FREE char *deep = wb_calloc(n + 1, 1);
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    memset(deep, '[', n);
    assert_int_equal(wb_json_parse(deep, n, &j, &err), -WB_INVALID);
    assert_non_null(strstr(err.root, "depth"));
    memset(deep, '[', 1000);
    memset(deep + 1000, ']', 1000);
    assert_int_equal(wb_json_parse(deep, 2000, &j, &err), 0);
    wb_json_free(j);
}

static void writes_canonical_text(void **state)
{
    assert_canonical(" {\"b\" : [1, 2.0, -0.5],\n\"a\":{\"z\":null,\"y\":true}} ",
                     "{\"a\":{\"y\":true,\"z\":null},\"b\":[1,2.0,-0.5]}");
    assert_canonical("\"q\\\"\\\\\\n\\t\\r\\u0001\\u00e9\xe2\x82\xac/\"",
                     "\"q\\\"\\\\\\n\\t\\r\\u0001\xc3\xa9\xe2\x82\xac/\"");
    assert_canonical("{\"B\":1,\"a\":2,\"A\":3}", "{\"A\":3,\"B\":1,\"a\":2}");
    assert_canonical("[]", "[]");
    assert_canonical("{}", "{}");
    assert_canonical("-9223372036854775808", "-9223372036854775808");
}

static void reals_read_back_the_same(void **state)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0.1, "0.1"},
        {1.0, "1.0"},
        {1e300, "1e+300"},
        {-0.0, "-0.0"},
        {1.0 / 3, "0.3333333333333333"},
        {123456789.0, "123456789.0"},
        {5e-324, "4.94065645841247e-324"},
        {0.30000000000000004, "0.30000000000000004"},
        {2.5, "2.5"},
        {1e22, "1e+22"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(64);
        WB_AUTO_JSON wb_json *j = wb_json_real(cases[i].v);
        wb_json *back;
        wb_json_canonical(j, &b);
        assert_string_equal(wb_buf_str(&b), cases[i].want);
        back = parsed(wb_buf_str(&b));
        assert_int_equal(wb_json_type(back), WB_JSON_REAL);
        assert_true(wb_json_number(back, 99) == cases[i].v);
        wb_json_free(back);
        wb_buf_release(&b);
    }
}

static void nan_becomes_null(void **state)
{
    WB_AUTO_JSON wb_json *j = wb_json_object();

    wb_json_set_real(j, "nan", NAN);
    wb_json_set_real(j, "inf", -INFINITY);
    wb_json_set_real(j, "max", DBL_MAX);
    assert_int_equal(wb_json_type(wb_json_get(j, "nan")), WB_JSON_NULL);
    assert_int_equal(wb_json_type(wb_json_get(j, "inf")), WB_JSON_NULL);
    assert_int_equal(wb_json_type(wb_json_get(j, "max")), WB_JSON_REAL);
}

static void repairs_foreign_text(void **state)
{
    static const struct {
        const char *in;
        size_t n;
        const char *want;
    } cases[] = {
        {"plain", 5, "plain"},
        {"a\xff"
         "b",
         3,
         "a\xef\xbf\xbd"
         "b"},
        {"a\0b", 3,
         "a\xef\xbf\xbd"
         "b"},
        {"\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong NUL */
        {"\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd"}, /* cut short */
        {"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"},
        {"\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *j = wb_json_strn(cases[i].in, cases[i].n);
        struct wb_buf b = WB_BUF_INIT(1000);
        assert_string_equal(wb_json_string(j), cases[i].want);
        wb_json_canonical(j, &b);
        wb_json_free(parsed(wb_buf_str(&b))); /* what we write, we read */
        wb_buf_release(&b);
    }
    {
        WB_AUTO_JSON wb_json *o = wb_json_object();
        wb_json_set_int(o, "k\xff", 1);
        assert_int_equal(wb_json_int_or(o, "k\xef\xbf\xbd", 0), 1);
    }
}

static void pretty_and_line_keep_the_order(void **state)
{
    WB_AUTO_JSON wb_json *j = parsed("{\"b\":[1,2,null],\"a\":[{\"x\":\"y\"}],\"e\":{},\"l\":[]}");
    struct wb_buf b = WB_BUF_INIT(1000);

    wb_json_pretty(j, &b);
    assert_string_equal(wb_buf_str(&b), "{\n"
                                        "  \"b\": [1, 2, null],\n"
                                        "  \"a\": [\n"
                                        "    {\n"
                                        "      \"x\": \"y\"\n"
                                        "    }\n"
                                        "  ],\n"
                                        "  \"e\": {},\n"
                                        "  \"l\": []\n"
                                        "}\n");
    wb_buf_clear(&b);
    wb_json_line(j, &b);
    assert_string_equal(wb_buf_str(&b),
                        "{\"b\":[1,2,null],\"a\":[{\"x\":\"y\"}],\"e\":{},\"l\":[]}");
    wb_buf_release(&b);
}

static void walks_paths(void **state)
{
    WB_AUTO_JSON wb_json *j =
        parsed("{\"metrics\":{\"max.p99_ms\":{\"value\":3}, \"max\":{\"x\":{\"y\":4}}},\"a\":1}");

    assert_int_equal(wb_json_number(wb_json_path(j, "metrics.max.p99_ms.value"), 0), 3);
    assert_int_equal(wb_json_number(wb_json_path(j, "metrics.max.x.y"), 0), 4);
    assert_int_equal(wb_json_number(wb_json_path(j, "a"), 0), 1);
    assert_null(wb_json_path(j, "metrics.max.z"));
    assert_null(wb_json_path(j, "a.b"));
    assert_null(wb_json_path(j, ""));
    assert_null(wb_json_path(j, "."));
    assert_null(wb_json_path(NULL, "a"));
}

static void lenient_readers_take_the_default(void **state)
{
    WB_AUTO_JSON wb_json *j = parsed("{\"s\":\"t\",\"i\":7,\"r\":1.5,\"b\":true,\"n\":null}");

    assert_string_equal(wb_json_str_or(j, "s", "d"), "t");
    assert_string_equal(wb_json_str_or(j, "i", "d"), "d");
    assert_int_equal(wb_json_int_or(j, "i", 1), 7);
    assert_int_equal(wb_json_int_or(j, "r", 1), 1);
    assert_int_equal(wb_json_int_or(j, "b", 1), 1);
    assert_true(wb_json_real_or(j, "r", 0) == 1.5);
    assert_true(wb_json_real_or(j, "i", 0) == 7);
    assert_true(wb_json_real_or(j, "n", 9) == 9);
    assert_true(wb_json_bool_or(j, "b", false));
    assert_true(wb_json_bool_or(j, "i", true));
    assert_int_equal(wb_json_int_or(NULL, "i", 3), 3);
    assert_int_equal(wb_json_len(j), 5);
    assert_int_equal(wb_json_len(NULL), 0);
    assert_null(wb_json_at(j, 0));
}

static void strict_readers_name_the_place(void **state)
{
    WB_AUTO_JSON wb_json *j = parsed("{\"s\":\"t\",\"i\":7}");
    struct wb_err err = WB_ERR_INIT;
    const char *s = "before";
    int64_t i = -1;
    double r = -1;
    wb_json *o = NULL;

    assert_int_equal(wb_json_need_str(j, "run", "s", &s, &err), 0);
    assert_string_equal(s, "t");
    assert_int_equal(err.code, 0);
    assert_int_equal(wb_json_need_str(j, "run", "x", &s, &err), -WB_INVALID);
    assert_string_equal(err.root, "run: key 'x' is missing");
    assert_string_equal(s, "t");
    assert_int_equal(wb_json_need_str(j, "run", "i", &s, &err), -WB_INVALID);
    assert_string_equal(err.root, "run: 'i' must be a text, it is an integer");
    assert_int_equal(wb_json_need_int(j, "run", "i", 8, 9, &i, &err), -WB_INVALID);
    assert_string_equal(err.root, "run: 'i' is 7, allowed is 8 to 9");
    assert_int_equal(i, -1);
    assert_int_equal(wb_json_need_int(j, "run", "i", 7, 7, &i, &err), 0);
    assert_int_equal(i, 7);
    assert_int_equal(wb_json_need_real(j, "run", "i", &r, &err), 0);
    assert_true(r == 7);
    assert_int_equal(wb_json_need_obj(j, "run", "i", &o, &err), -WB_INVALID);
    assert_int_equal(wb_json_need_arr(j, "run", "i", &o, &err), -WB_INVALID);
    assert_int_equal(wb_json_need_arr(NULL, "run", "i", &o, &err), -WB_INVALID);
    assert_string_equal(err.root, "run must be an object, it is null");
}

static void owns_and_shares(void **state)
{
    WB_AUTO_JSON wb_json *a = parsed("{\"x\":[1,{\"y\":2}]}");
    WB_AUTO_JSON wb_json *copy = wb_json_copy(a), *ref = wb_json_ref(a);
    int keys = 0;

    assert_true(wb_json_equal(a, copy));
    wb_json_set_int(ref, "z", 1);
    assert_false(wb_json_equal(a, copy));
    assert_int_equal(wb_json_int_or(a, "z", 0), 1);
    wb_json_del(a, "z");
    wb_json_del(a, "z");
    wb_json_set_reason(a, "p", "too few");
    assert_string_equal(wb_json_str_or(a, "p_reason", ""), "too few");
    for (void *it = wb_json_first(a); it != NULL; it = wb_json_next(a, it))
        keys++;
    assert_int_equal(keys, 3);
    wb_json_set(a, "none", NULL);
    assert_int_equal(wb_json_type(wb_json_get(a, "none")), WB_JSON_NULL);
}

static void reads_files(void **state)
{
    char path[] = "/tmp/wb-test-json-XXXXXX";
    int fd = mkstemp(path);
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    wb_json *j = NULL;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\n bad", 6), 6);
    close(fd);
    assert_int_equal(wb_json_read_file(path, 100, &j, &err), -WB_INVALID);
    assert_non_null(strstr(wb_err_text(&err, text, sizeof(text)), path));
    assert_non_null(strstr(err.root, "line 2"));
    assert_int_equal(wb_json_read_file(path, 3, &j, &err), -WB_LIMIT);
    unlink(path);
    assert_int_equal(wb_json_read_file(path, 100, &j, &err), -WB_NOT_FOUND);
    assert_null(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_is_not_one_document),
        cmocka_unit_test(bounds_depth),
        cmocka_unit_test(writes_canonical_text),
        cmocka_unit_test(reals_read_back_the_same),
        cmocka_unit_test(nan_becomes_null),
        cmocka_unit_test(repairs_foreign_text),
        cmocka_unit_test(pretty_and_line_keep_the_order),
        cmocka_unit_test(walks_paths),
        cmocka_unit_test(lenient_readers_take_the_default),
        cmocka_unit_test(strict_readers_name_the_place),
        cmocka_unit_test(owns_and_shares),
        cmocka_unit_test(reads_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
