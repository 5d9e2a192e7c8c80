#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/mem.h"
#include "server/http/service.h"

static const char *const colours[] = {"red", "green", NULL};
static const struct wb_shape inner_rows[] = {{"n", WB_S_INT, WB_S_NEED, .min = 1, .max = 9}, {0}};
static const struct wb_form inner = {.name = "Inner", .rows = inner_rows};
static const struct wb_shape rows[] = {
    {"text", WB_S_TEXT, .min = 1, .max = 3},
    {"int", WB_S_INT, .min = -5, .max = 5},
    {"any_int", .type = WB_S_INT},
    {"real", WB_S_REAL, .flags = WB_S_NULL},
    {"flag", .type = WB_S_BOOL},
    {"word", WB_S_WORD, .words = colours},
    {"time", .type = WB_S_TIME},
    {"list", WB_S_TEXT, WB_S_LIST, .min = 1, .max = 5, .least = 1, .most = 2},
    {"one", WB_S_OBJECT, .of = &inner},
    {"many", WB_S_OBJECT, WB_S_LIST, .of = &inner},
    {"map", .type = WB_S_OBJECT},
    {"all", .type = WB_S_ANY},
    {0},
};
static const struct wb_form form = {.name = "Form", .rows = rows};

/* "pointer code" of each fault, joined by semicolons. */
static char *faults(const struct wb_form *f, const char *text)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    WB_AUTO_JSON wb_json *errors = wb_json_array();
    struct wb_buf b = WB_BUF_INIT(4096);
    bool good;
    char *out;

    assert_int_equal(wb_json_parse(text, strlen(text), &doc, NULL), 0);
    good = wb_form_check(f, doc, errors);
    assert_int_equal(good, wb_json_len(errors) == 0);
    for (size_t i = 0; i < wb_json_len(errors); i++) {
        const wb_json *e = wb_json_at(errors, i);

        assert_true(strlen(wb_json_str_or(e, "message", "")) > 5);
        wb_buf_addf(&b, "%s%s %s", i ? ";" : "", wb_json_str_or(e, "pointer", "?"),
                    wb_json_str_or(e, "code", "?"));
    }
    out = wb_strdup(wb_buf_str(&b));
    wb_buf_release(&b);
    return out;
}

static void documents_are_checked(void **state)
{
    static const struct {
        const char *doc, *faults;
    } cases[] = {
        {"{}", ""},
        {"[]", " wrong-type"},
        {"null", " wrong-type"},
        {"{\"text\":\"abc\"}", ""},
        {"{\"text\":\"\xc3\xa4\xc3\xa4\xc3\xa4\"}", ""}, /* characters, not bytes */
        {"{\"text\":\"\"}", "/text out-of-range"},
        {"{\"text\":\"abcd\"}", "/text out-of-range"},
        {"{\"text\":1}", "/text wrong-type"},
        {"{\"text\":null}", "/text wrong-type"},
        {"{\"int\":-5}", ""},
        {"{\"int\":6}", "/int out-of-range"},
        {"{\"int\":5.0}", "/int wrong-type"},
        {"{\"any_int\":9223372036854775807}", ""},
        {"{\"real\":1}", ""},
        {"{\"real\":null}", ""},
        {"{\"flag\":\"true\"}", "/flag wrong-type"},
        {"{\"flag\":false}", ""},
        {"{\"word\":\"green\"}", ""},
        {"{\"word\":\"gren\"}", "/word unknown-value"},
        {"{\"time\":\"2026-11-30T01:02:03Z\"}", ""},
        {"{\"time\":\"2026-11-30\"}", "/time wrong-type"},
        {"{\"list\":[\"a\",\"b\"]}", ""},
        {"{\"list\":[]}", "/list wrong-type"},
        {"{\"list\":[\"a\",\"b\",\"c\"]}", "/list wrong-type"},
        {"{\"list\":\"a\"}", "/list wrong-type"},
        {"{\"list\":[\"a\",7]}", "/list/1 wrong-type"},
        {"{\"one\":{\"n\":1}}", ""},
        {"{\"one\":{}}", "/one/n missing"},
        {"{\"one\":[]}", "/one wrong-type"},
        {"{\"many\":[{\"n\":1},{\"n\":0,\"m\":1}]}",
         "/many/1/n out-of-range;/many/1/m unknown-key"},
        {"{\"map\":{\"x\":[1]},\"all\":[{}]}", ""},
        {"{\"a/b~c\":1}", "/a~1b~0c unknown-key"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *got = faults(&form, cases[i].doc);

        assert_string_equal(got, cases[i].faults);
    }
}

static void one_of_several_is_demanded(void **state)
{
    static const char *const ways[] = {"text", "int", NULL};
    const struct wb_form f = {.name = "F", .rows = rows, .one = ways, .open = true};
    WB_AUTO_FREE char *none = faults(&f, "{\"other\":1}");
    WB_AUTO_FREE char *both = faults(&f, "{\"text\":\"a\",\"int\":1}");
    WB_AUTO_FREE char *one = faults(&f, "{\"int\":1}");

    (void)state;
    assert_string_equal(none, " missing");
    assert_string_equal(both, " conflict");
    assert_string_equal(one, "");
}

static void faults_are_bounded(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    WB_AUTO_JSON wb_json *doc = NULL;
    WB_AUTO_JSON wb_json *errors = wb_json_array();

    (void)state;
    wb_buf_addc(&b, '{');
    for (int i = 0; i < 1000; i++)
        wb_buf_addf(&b, "%s\"k%d\":1", i ? "," : "", i);
    wb_buf_addc(&b, '}');
    assert_int_equal(wb_json_parse(b.data, b.len, &doc, NULL), 0);
    assert_false(wb_form_check(&form, doc, errors));
    assert_int_equal(wb_json_len(errors), WB_SHAPE_ERRORS_MAX);
    wb_buf_release(&b);
}

static void query_values_are_checked(void **state)
{
    static const struct {
        int row;
        const char *value;
        bool good;
    } cases[] = {
        {0, "abc", true},         {0, "abcd", false},
        {1, "5", true},           {1, "6", false},
        {1, "x", false},          {1, "", false},
        {3, "1e3", true},         {3, "nan", false},
        {4, "true", true},        {4, "1", false},
        {5, "red", true},         {5, "Red", false},
        {6, "2026-11-30", true},  {6, "2026-11-30T00:00:00+01:00", true},
        {6, "2026-13-30", false}, {6, "yesterday", false},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *fault = wb_shape_query_fault(&rows[cases[i].row], cases[i].value);

        assert_int_equal(fault == NULL, cases[i].good);
    }
}

static void schemas_say_the_same(void **state)
{
    WB_AUTO_JSON wb_json *s = wb_form_schema(&form);
    const wb_json *p = wb_json_get(s, "properties");

    (void)state;
    assert_int_equal(wb_json_len(p), WB_LEN(rows) - 1);
    assert_false(wb_json_bool_or(s, "additionalProperties", true));
    assert_null(wb_json_get(s, "required"));
    assert_int_equal(wb_json_int_or(wb_json_get(p, "text"), "maxLength", 0), 3);
    assert_int_equal(wb_json_int_or(wb_json_get(p, "int"), "minimum", 0), -5);
    assert_int_equal(wb_json_len(wb_json_path(p, "word.enum")), 2);
    assert_int_equal(wb_json_int_or(wb_json_get(p, "list"), "maxItems", 0), 2);
    assert_string_equal(wb_json_str_or(wb_json_get(p, "one"), "$ref", ""),
                        "#/components/schemas/Inner");
    assert_int_equal(wb_json_len(wb_json_path(p, "real.anyOf")), 2);
}

/* Every route can be found, described once, and leads to one handler. */
static void routes_are_sound(void **state)
{
    (void)state;
    for (const struct wb_route *const *t = wb_route_tables; *t; t++)
        for (const struct wb_route *r = *t; r->method; r++) {
            int same_id = 0;

            assert_non_null(r->handle);
            assert_true(r->status >= 200 && r->status < 300);
            assert_false(r->answer && r->type);
            assert_true(!(r->flags & WB_ROUTE_LIST) || r->answer);
            assert_true(!strcmp(r->method, "GET") || !(r->flags & WB_ROUTE_RANGE));
            for (const struct wb_route *const *u = wb_route_tables; *u; u++)
                for (const struct wb_route *o = *u; o->method; o++) {
                    same_id += !strcmp(o->id, r->id);
                    assert_true(o == r || strcmp(o->path, r->path) != 0 ||
                                strcmp(o->method, r->method) != 0);
                }
            assert_int_equal(same_id, 1);
        }
}

static void the_most_literal_route_is_taken(void **state)
{
    static const struct {
        const char *method, *target, *id, *allow;
        int status;
    } cases[] = {
        {"GET", "/api/v1/runs/run_1/artifacts", "listArtifacts", NULL, 0},
        {"GET", "/api/v1/runs/run_1/plan", "getRunDocument", NULL, 0},
        {"HEAD", "/api/v1/runs", "listRuns", NULL, 0},
        {"PUT", "/api/v1/runs", NULL, "GET, HEAD, OPTIONS", 405},
        {"OPTIONS", "/api/v1/session", NULL, "POST, DELETE, OPTIONS", 204},
        {"OPTIONS", "/nothing", NULL, NULL, 404},
        {"GET", "/api/v1", NULL, NULL, 404},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_request q = {.method = wb_strdup(cases[i].method)};
        struct wb_answer a = {0};
        const struct wb_route *r;

        assert_int_equal(wb_request_target(&q, cases[i].target, NULL), 0);
        r = wb_route_find(&q, &a);
        if (cases[i].id)
            assert_string_equal(r->id, cases[i].id);
        else
            assert_null(r);
        assert_int_equal(a.status, cases[i].status);
        if (cases[i].allow) {
            assert_string_equal(a.headers[0].name, "Allow");
            assert_string_equal(a.headers[0].value, cases[i].allow);
        }
        wb_request_release(&q);
        wb_answer_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_checked),
        cmocka_unit_test(one_of_several_is_demanded),
        cmocka_unit_test(faults_are_bounded),
        cmocka_unit_test(query_values_are_checked),
        cmocka_unit_test(schemas_say_the_same),
        cmocka_unit_test(routes_are_sound),
        cmocka_unit_test(the_most_literal_route_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
