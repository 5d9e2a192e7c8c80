/* Strict YAML, the same tree from JSON, pointers, paths. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/node.h"
#include "server/base/problems.h"

static struct wb_node *must(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;

    if (wb_yaml_parse(text, strlen(text), &n, &err) < 0)
        fail_msg("'%s': %s", text, err.root);
    return n;
}

static char *as_json(const struct wb_node *n)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    WB_AUTO_JSON wb_json *j = wb_node_to_json(n);

    wb_json_line(j, &b);
    return wb_buf_take(&b);
}

static void test_scalars_stay_text(void **state)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"a: 3.10", "{\"a\":\"3.10\"}"},
        {"a: NO", "{\"a\":\"NO\"}"},
        {"a: 22:22", "{\"a\":\"22:22\"}"},
        {"a: 1e3", "{\"a\":\"1e3\"}"},
        {"a: 0777", "{\"a\":\"0777\"}"},
        {"a: 2027-01-02", "{\"a\":\"2027-01-02\"}"},
        {"a: ~", "{\"a\":null}"},
        {"a: null", "{\"a\":null}"},
        {"a:", "{\"a\":null}"},
        {"a: ''", "{\"a\":\"\"}"},
        {"a: 'null'", "{\"a\":\"null\"}"},
        {"a: \"~\"", "{\"a\":\"~\"}"},
        {"a: Null", "{\"a\":\"Null\"}"},
        {"~: x", "{\"~\":\"x\"}"},
        {"<<: {a: 1}", "{\"<<\":{\"a\":\"1\"}}"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"- 1\n- [2, {x: y}]\n", "[\"1\",[\"2\",{\"x\":\"y\"}]]"},
        {"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
        {"\xef\xbb\xbf"
         "a: b",
         "{\"a\":\"b\"}"},
        {"---\na: b\n...\n", "{\"a\":\"b\"}"},
        {"a: \"\\u00e9\"", "{\"a\":\"\xc3\xa9\"}"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_node *n = must(rows[i].text);
        WB_AUTO_FREE char *json = as_json(n);

        assert_string_equal(json, rows[i].json);
        wb_node_free(n);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "line 1: the document is empty"},
        {"# only a comment\n", "line 1: the document is empty"},
        {"~", "line 1: the document is empty"},
        {"a: 1\nb: 2\na: 3\n", "line 3: key 'a' is already there in line 1"},
        {"x: {a: 1, 'a': 2}", "line 1: key 'a' is already there in line 1"},
        {"a: &x 1\n",
         "line 1: anchors (&) and aliases (*) are not allowed; write the value out, or "
         "quote a text that starts with one of them"},
        {"&x a: 1\n",
         "line 1: anchors (&) and aliases (*) are not allowed; write the value out, or "
         "quote a text that starts with one of them"},
        {"a:\n  *x\n", "line 2: anchors (&) and aliases (*) are not allowed; write the value out, "
                       "or quote a text that starts with one of them"},
        {"a: !!int 3\n", "line 1: tags (!) are not allowed; quote a text that starts with one"},
        {"a: ! 3\n", "line 1: tags (!) are not allowed; quote a text that starts with one"},
        {"a: !x [1]\n", "line 1: tags (!) are not allowed; quote a text that starts with one"},
        {"%YAML 1.1\n---\na: 1\n", "line 1: directives (%) are not allowed"},
        {"%TAG ! tag:x,2000:\n---\na: 1\n", "line 1: directives (%) are not allowed"},
        {"a: 1\n---\nb: 2\n", "line 2: a second document; there may be only one"},
        {"[a]: 1\n", "line 1: a key must be plain text, not a list or map"},
        {"? {a: b}\n: 1\n", "line 1: a key must be plain text, not a list or map"},
        {"'': 1\n", "line 1: a key is empty"},
        {"a: \"x\\0y\"\n", "line 1: text has a NUL character in it"},
        {"\"x\\0y\": 1\n", "line 1: text has a NUL character in it"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_node *n = NULL;

        assert_int_equal(wb_yaml_parse(rows[i].text, strlen(rows[i].text), &n, &err), -WB_INVALID);
        assert_string_equal(err.root, rows[i].error);
        assert_null(n);
    }
}

/* The parser's own words may change; code and line must not. */
static void test_broken(void **state)
{
    static const struct {
        const char *text;
        int line;
    } rows[] = {
        {"a: [1, 2\nb: 3\n", 2},
        {"a: 1\n b: 2\n", 2},
        {"a: 'x\n", 2},
        {"a: b: c\n", 1},
        {"a: 1\n\tb: 2\n", 2},
        {"x: 1\ny: \x01\n", 2},
        {"x: 1\n\ny: \xff\xfe\n", 3},
        {"x: \xed\xa0\x80\n", 1},
        {"- a\nb: c\n", 2},
        {"{a: 1", 2},
        {"a: \"\\q\"\n", 1},
        {"a: @x\n", 1},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {.file = "f.yaml"};

        assert_null(wb_yaml_check(rows[i].text, strlen(rows[i].text), &p));
        assert_int_equal(p.n, 1);
        assert_int_equal(p.v[0].line, rows[i].line);
        assert_string_equal(p.v[0].code, "syntax");
        assert_string_equal(p.v[0].pointer, "");
        assert_string_equal(p.v[0].file, "f.yaml");
        assert_true(strncmp(p.v[0].message, "line", 4) != 0);
        wb_problems_release(&p);
    }
}

static void repeat(struct wb_buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        wb_buf_adds(b, s);
}

static void test_bounds(void **state)
{
    static const struct {
        const char *open, *close;
        size_t times;
        int rc;
        const char *error;
    } rows[] = {
        {"[", "]", WB_NODE_DEPTH_MAX, 0, NULL},
        {"[", "]", WB_NODE_DEPTH_MAX + 1, -WB_LIMIT,
         "line 1: nested too deeply (more than 64 levels)"},
        {"[", "", 500000, -WB_LIMIT, "line 1: nested too deeply (more than 64 levels)"},
        {"- 1\n", "", WB_NODE_COUNT_MAX - 1, 0, NULL},
        {"- 1\n", "", WB_NODE_COUNT_MAX, -WB_LIMIT, "line 100000: more than 100000 values"},
        {"a", "", WB_NODE_TEXT_MAX, 0, NULL},
        {"a", "", WB_NODE_TEXT_MAX + 1, -WB_LIMIT, "larger than 1048576 bytes"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf b = WB_BUF_INIT(4 << 20);
        struct wb_err err = WB_ERR_INIT;
        struct wb_node *n = NULL;

        repeat(&b, rows[i].open, rows[i].times);
        repeat(&b, rows[i].close, rows[i].times);
        assert_int_equal(wb_yaml_parse(b.data, b.len, &n, &err), rows[i].rc);
        if (rows[i].rc < 0)
            assert_string_equal(err.root, rows[i].error);
        wb_node_free(n);
        wb_buf_release(&b);
    }
}

/* Many equal keys must not take quadratic time: 50,000 keys, then one again. */
static void test_many_keys(void **state)
{
    struct wb_buf b = WB_BUF_INIT(4 << 20);
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;

    for (int i = 0; i < 50000; i++)
        wb_buf_addf(&b, "k%d: 1\n", i);
    assert_int_equal(wb_yaml_parse(b.data, b.len, &n, &err), 0);
    assert_int_equal(n->n, 50000);
    wb_node_free(n);
    wb_buf_adds(&b, "k7: 1\n");
    n = NULL;
    assert_int_equal(wb_yaml_parse(b.data, b.len, &n, &err), -WB_INVALID);
    assert_string_equal(err.root, "line 50001: key 'k7' is already there in line 8");
    assert_null(n);
    wb_buf_release(&b);
}

static void test_lines_and_pointers(void **state)
{
    struct wb_node *n = must("a:\n  - x\n  - b/c~d:\n      e: 1\n    f: [1, 2]\n");
    const struct wb_node *item = wb_node_get(n, "a")->items[1];
    const struct wb_node *e = wb_node_get(wb_node_get(item, "b/c~d"), "e");
    WB_AUTO_FREE char *root = wb_node_pointer(n);
    WB_AUTO_FREE char *pe = wb_node_pointer(e);
    WB_AUTO_FREE char *pf = wb_node_pointer(wb_node_get(item, "f")->items[1]);

    assert_string_equal(root, "");
    assert_string_equal(pe, "/a/1/b~1c~0d/e");
    assert_int_equal(e->line, 4);
    assert_string_equal(pf, "/a/1/f/1");
    assert_int_equal(wb_node_get(item, "f")->items[1]->line, 5);
    assert_null(wb_node_get(item, "b"));
    assert_null(wb_node_get(wb_node_get(n, "a"), "x"));
    wb_node_free(n);
}

static void test_put(void **state)
{
    static const char *const doc =
        "factors: {setting.max: [1], form: x}\nlist: [{name: a, v: 1}, {name: b}, 3]\nnone:\n";
    static const struct {
        const char *path, *value, *error; /* error NULL: value is found at `pointer` */
    } rows[] = {
        {"factors.setting.max", "[2, 3]", NULL},
        {"factors.form", "y", NULL},
        {"list.a.v", "2", NULL},
        {"list.1.w", "2", NULL},
        {"list.2", "4", NULL},
        {"none.x.y", "1", NULL},
        {"new.deep.path", "1", NULL},
        {"list", "5", NULL},
        {"", "1", "path '' has an empty part"},
        {".a", "1", "path '.a' has an empty part"},
        {"a.", "1", "path 'a.' has an empty part"},
        {"a..b", "1", "path 'a..b' has an empty part"},
        {"factors.form.x", "1",
         "path 'factors.form.x': 'factors.form' is a single value, not a map"},
        {"list.c.v", "1", "path 'list.c.v': the list has no item 'c'; it has: a, b, 2"},
        {"list.3", "1", "path 'list.3': the list has no item '3'; it has: a, b, 2"},
        {"list.2.x", "1", "path 'list.2.x': 'list.2' is a single value, not a map"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_node *n = must(doc), *v = must(rows[i].value);
        int rc = wb_node_put(n, rows[i].path, v, &err);

        if (rows[i].error) {
            assert_int_equal(rc, -WB_INVALID);
            assert_string_equal(err.root, rows[i].error);
        } else {
            assert_int_equal(rc, 0);
            assert_non_null(v->parent);
            assert_true(wb_node_remove(n, rows[i].path));
            assert_false(wb_node_remove(n, rows[i].path) && strcmp(rows[i].path, "list.2") != 0);
        }
        wb_node_free(n);
    }
}

static void test_put_result(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = must("factors: {setting.max: [1]}\nlist: [{name: a}]\n");
    WB_AUTO_FREE char *json = NULL;
    char *deep = wb_calloc(3, 100);

    assert_int_equal(wb_node_put(n, "factors.setting.max", must("2"), &err), 0);
    assert_int_equal(wb_node_put(n, "factors.setting.min", must("3"), &err), 0);
    assert_int_equal(wb_node_put(n, "list.a.x.y", must("[4]"), &err), 0);
    assert_int_equal(wb_node_put(n, "list.0.name", must("b"), &err), 0);
    json = as_json(n);
    assert_string_equal(json, "{\"factors\":{\"setting.max\":\"2\",\"setting\":{\"min\":\"3\"}},"
                              "\"list\":[{\"name\":\"b\",\"x\":{\"y\":[\"4\"]}}]}");
    for (int i = 0; i < 65; i++)
        memcpy(deep + 2 * i, i < 64 ? "a." : "a", i < 64 ? 2 : 1);
    assert_int_equal(wb_node_put(n, deep, must("1"), &err), -WB_LIMIT);
    free(deep);
    wb_node_free(n);
    n = must("[1]");
    assert_int_equal(wb_node_put(n, "a", must("1"), &err), -WB_INVALID);
    assert_string_equal(err.root, "path 'a' leads into a document that is not a map");
    wb_node_free(n);
}

static void test_copy(void **state)
{
    struct wb_node *n = must("a: [1, {b: ~}]\nc: 'x'\n"), *c = wb_node_copy(n);
    WB_AUTO_FREE char *one = as_json(n);
    WB_AUTO_FREE char *two = as_json(c);

    assert_string_equal(one, two);
    assert_ptr_equal(c->items[0]->parent, c);
    assert_int_equal(c->items[1]->line, 2);
    wb_node_free(n);
    wb_node_free(c);
    wb_node_free(NULL);
}

static struct wb_node *from_json(const char *text, struct wb_err *err)
{
    struct wb_node *n = NULL;
    wb_json *j = NULL;

    assert_int_equal(wb_json_parse(text, strlen(text), &j, err), 0);
    if (wb_node_from_json(j, &n, err) < 0)
        n = NULL;
    wb_json_free(j);
    return n;
}

static void test_from_json(void **state)
{
    static const struct {
        const char *text;
        enum wb_node_kind kind;
        const char *node_text;
    } rows[] = {
        {"{\"a\": 3.10}", WB_NODE_NUMBER, "3.1"},
        {"{\"a\": 0.85}", WB_NODE_NUMBER, "0.85"},
        {"{\"a\": 0.1}", WB_NODE_NUMBER, "0.1"},
        {"{\"a\": 0.30000000000000004}", WB_NODE_NUMBER, "0.30000000000000004"},
        {"{\"a\": -7}", WB_NODE_NUMBER, "-7"},
        {"{\"a\": 9223372036854775807}", WB_NODE_NUMBER, "9223372036854775807"},
        {"{\"a\": true}", WB_NODE_BOOL, "true"},
        {"{\"a\": false}", WB_NODE_BOOL, "false"},
        {"{\"a\": null}", WB_NODE_NULL, NULL},
        {"{\"a\": \"3.10\"}", WB_NODE_TEXT, "3.10"},
        {"{\"a\": []}", WB_NODE_LIST, NULL},
        {"{\"a\": {}}", WB_NODE_MAP, NULL},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_node *n = from_json(rows[i].text, &err);
        const struct wb_node *a = wb_node_get(n, "a");
        wb_json *back = wb_node_to_json(n), *want = NULL;

        assert_int_equal(a->kind, rows[i].kind);
        if (rows[i].node_text)
            assert_string_equal(a->text, rows[i].node_text);
        else
            assert_null(a->text);
        assert_int_equal(a->line, 0);
        assert_int_equal(wb_json_parse(rows[i].text, strlen(rows[i].text), &want, &err), 0);
        assert_true(wb_json_equal(back, want));
        wb_json_free(back);
        wb_json_free(want);
        wb_node_free(n);
    }
}

static void test_from_json_bounds(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf b = WB_BUF_INIT(4 << 20);
    struct wb_node *n;

    repeat(&b, "[", WB_NODE_DEPTH_MAX + 1);
    repeat(&b, "]", WB_NODE_DEPTH_MAX + 1);
    n = from_json(wb_buf_str(&b), &err);
    assert_non_null(n);
    wb_node_free(n);
    wb_buf_clear(&b);
    repeat(&b, "[", WB_NODE_DEPTH_MAX + 2);
    repeat(&b, "]", WB_NODE_DEPTH_MAX + 2);
    assert_null(from_json(wb_buf_str(&b), &err));
    assert_int_equal(err.code, WB_LIMIT);
    assert_string_equal(err.root, "JSON is nested deeper than 64 levels");
    wb_buf_clear(&b);
    wb_buf_adds(&b, "[");
    repeat(&b, "1,", WB_NODE_COUNT_MAX);
    wb_buf_adds(&b, "1]");
    assert_null(from_json(wb_buf_str(&b), &err));
    assert_string_equal(err.root, "JSON has more than 100000 values");
    wb_buf_release(&b);
}

/* Known answers of the versions that YAML readers spoil, and of a version given as a number. */
static void test_case_026(void **state)
{
    static const char *const want[][2] = {
        {"name", "yes"},  {"version", "3.10"}, {"country", "NO"},     {"port_map", "22:22"},
        {"build", "1e3"}, {"commit", "0777"},  {"day", "2027-01-02"},
    };
    struct recipe {
        char *name, *database, *version;
        int64_t containers;
    };
    static const struct wb_field fields[] = {
        {"name", WB_F_NAME, true, offsetof(struct recipe, name), 0, 0, NULL, "a name"},
        {"database", WB_F_NAME, true, offsetof(struct recipe, database), 0, 0, NULL, "a name"},
        {"version", WB_F_TEXT, true, offsetof(struct recipe, version), 0, 0, NULL, "exact text"},
        {"containers_per_host", WB_F_INT, true, offsetof(struct recipe, containers), 1, 64, NULL,
         ""},
    };
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;
    struct wb_problems p = {0};
    struct recipe r = {0};
    wb_json *j = NULL;

    assert_int_equal(wb_yaml_read_file("tests/data/cases/026-recipe.yaml", &n, &err), 0);
    assert_int_equal(n->n, WB_LEN(want));
    for (size_t i = 0; i < WB_LEN(want); i++)
        assert_string_equal(wb_node_get(n, want[i][0])->text, want[i][1]);
    wb_node_free(n);

    assert_int_equal(wb_json_read_file("tests/data/cases/026-recipe-number.json", 4096, &j, &err),
                     0);
    assert_int_equal(wb_node_from_json(j, &n, &err), 0);
    assert_int_equal(wb_fields_read(n, "recipe", fields, WB_LEN(fields), &r, &p), 1);
    assert_string_equal(p.v[0].pointer, "/version");
    assert_non_null(strstr(p.v[0].message, "write the version as a string"));
    assert_null(r.version);
    wb_fields_release(fields, WB_LEN(fields), &r);
    wb_problems_release(&p);
    wb_node_free(n);
    wb_json_free(j);

    assert_int_equal(wb_json_read_file("tests/data/cases/026-recipe-string.json", 4096, &j, &err),
                     0);
    assert_int_equal(wb_node_from_json(j, &n, &err), 0);
    assert_int_equal(wb_fields_read(n, "recipe", fields, WB_LEN(fields), &r, &p), 0);
    assert_string_equal(r.version, "3.10");
    assert_int_equal(r.containers, 2);
    wb_fields_release(fields, WB_LEN(fields), &r);
    assert_null(r.version);
    wb_node_free(n);
    wb_json_free(j);
}

static void test_read_file(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;

    assert_int_equal(wb_yaml_read_file("tests/data/nothing-here.yaml", &n, &err), -WB_NOT_FOUND);
    assert_null(n);
    assert_int_equal(wb_yaml_read_file("tests/data/studies/duplicate.yaml", &n, &err), -WB_INVALID);
    assert_string_equal(err.context, "tests/data/studies/duplicate.yaml");
    assert_string_equal(err.root, "line 4: key 'rounds' is already there in line 2");
    assert_null(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars_stay_text),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_lines_and_pointers),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_put_result),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_from_json),
        cmocka_unit_test(test_from_json_bounds),
        cmocka_unit_test(test_case_026),
        cmocka_unit_test(test_read_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
