/* Field tables and problems. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"
#include "server/base/mem.h"

struct thing {
    char *text, *name;
    int word;
    int64_t count, size, span;
    double real, share;
    bool flag;
    const struct wb_node *node;
};

static const char *const words[] = {"first", "second", "third", NULL};
#define AT(m) offsetof(struct thing, m)
static const struct wb_field fields[] = {
    {"text", WB_F_TEXT, true, AT(text), 0, 0, NULL, "any text"},
    {"name", WB_F_NAME, false, AT(name), 0, 0, NULL, "a name"},
    {"word", WB_F_WORD, false, AT(word), 0, 0, words, "which"},
    {"count", WB_F_INT, false, AT(count), 1, 10, NULL, "how many"},
    {"size", WB_F_BYTES, false, AT(size), 0, 0, NULL, "how large"},
    {"span", WB_F_DURATION, false, AT(span), 1e9, 60e9, NULL, "how long"},
    {"real", WB_F_REAL, false, AT(real), 0, 0, NULL, "a number"},
    {"share", WB_F_PERCENT, false, AT(share), 0, 0, NULL, "a share"},
    {"flag", WB_F_BOOL, false, AT(flag), 0, 0, NULL, "yes or no"},
    {"node", WB_F_NODE, false, AT(node), 0, 0, NULL, "anything"},
    {"later", WB_F_REFUSED, false, 0, 0, 0, NULL, "use text"},
};

static struct wb_node *yaml(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;

    if (wb_yaml_parse(text, strlen(text), &n, &err) < 0)
        fail_msg("'%s': %s", text, err.root);
    return n;
}

static struct wb_node *json(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *n = NULL;
    wb_json *j = NULL;

    assert_int_equal(wb_json_parse(text, strlen(text), &j, &err), 0);
    assert_int_equal(wb_node_from_json(j, &n, &err), 0);
    wb_json_free(j);
    return n;
}

static void check_good(struct wb_node *n)
{
    struct wb_problems p = {0};
    struct thing t = {.text = wb_strdup("old"), .word = 7};

    assert_int_equal(wb_fields_read(n, "thing", fields, WB_LEN(fields), &t, &p), 0);
    assert_int_equal(p.n, 0);
    assert_string_equal(t.text, "3.10");
    assert_string_equal(t.name, "a.b-c_1");
    assert_int_equal(t.word, 1);
    assert_int_equal(t.count, 10);
    assert_int_equal(t.size, 4096);
    assert_int_equal(t.span, 1500000000);
    assert_true(t.real == 0.25);
    assert_true(t.share == 77);
    assert_true(t.flag);
    assert_int_equal(t.node->kind, WB_NODE_LIST);
    wb_fields_release(fields, WB_LEN(fields), &t);
    assert_null(t.text);
    assert_null(t.name);
    wb_node_free(n);
}

static void test_all_types(void **state)
{
    check_good(yaml("{text: 3.10, name: a.b-c_1, word: second, count: 10, size: 4KiB, span: 1.5s, "
                    "real: 0.25, share: 77%, flag: true, node: [1]}"));
    check_good(
        json("{\"text\": \"3.10\", \"name\": \"a.b-c_1\", \"word\": \"second\", \"count\": 10, "
             "\"size\": 4096, \"span\": \"1500ms\", \"real\": 0.25, \"share\": 77, "
             "\"flag\": true, \"node\": [1]}"));
}

static void test_defaults_stay(void **state)
{
    struct wb_problems p = {0};
    struct thing t = {.count = 5, .word = 2, .flag = true};
    struct wb_node *n = yaml("text: x");

    assert_int_equal(wb_fields_read(n, "thing", fields, WB_LEN(fields), &t, &p), 0);
    assert_int_equal(t.count, 5);
    assert_int_equal(t.word, 2);
    assert_true(t.flag);
    assert_null(t.name);
    wb_fields_release(fields, WB_LEN(fields), &t);
    wb_node_free(n);
}

struct bad {
    const char *text, *pointer, *code, *message;
};

static void check_bad(const struct bad *b, struct wb_node *n)
{
    struct wb_problems p = {0};
    struct thing t = {0};

    if (wb_fields_read(n, "thing", fields, WB_LEN(fields), &t, &p) != 1)
        fail_msg("'%s' gave %zu problems", b->text, p.n);
    assert_string_equal(p.v[0].message, b->message);
    assert_string_equal(p.v[0].pointer, b->pointer);
    assert_string_equal(p.v[0].code, b->code);
    wb_fields_release(fields, WB_LEN(fields), &t);
    wb_problems_release(&p);
    wb_node_free(n);
}

static void test_bad_yaml(void **state)
{
    static const struct bad rows[] = {
        {"[1]", "", "wrong-type", "thing must be a map of keys and values"},
        {"{}", "/text", "missing", "thing needs text: any text"},
        {"{text: ''}", "/text", "missing", "text is empty"},
        {"{text: ~}", "/text", "wrong-type", "text has no value; it must be text"},
        {"{text: [a]}", "/text", "wrong-type", "text must be text, not a list"},
        {"{text: {a: b}}", "/text", "wrong-type", "text must be text, not a map"},
        {"{text: x, cuont: 3}", "/cuont", "unknown-key",
         "thing has no key 'cuont' (did you mean 'count'?); allowed: text, name, word, count, "
         "size, "
         "span, real, share, flag or node"},
        {"{text: x, zzz: 3}", "/zzz", "unknown-key",
         "thing has no key 'zzz'; allowed: text, name, word, count, size, span, real, share, flag "
         "or node"},
        {"{text: x, later: 3}", "/later", "unsupported", "later is not supported yet: use text"},
        {"{text: x, name: Abc}", "/name", "bad-name",
         "name 'Abc' is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit"},
        {"{text: x, name: ../x}", "/name", "bad-name",
         "name '../x' is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit"},
        {"{text: x, word: secnod}", "/word", "unknown-value",
         "word cannot be 'secnod' (did you mean 'second'?); allowed: first, second or third"},
        {"{text: x, word: ''}", "/word", "unknown-value",
         "word cannot be ''; allowed: first, second or third"},
        {"{text: x, count: 0}", "/count", "bad-value",
         "count: '0' is out of range, allowed is 1 to 10"},
        {"{text: x, count: 11}", "/count", "bad-value",
         "count: '11' is out of range, allowed is 1 to 10"},
        {"{text: x, count: 1.5}", "/count", "bad-value",
         "count: '1.5' is not an integer (such as 42, 1_000_000 or 10k)"},
        {"{text: x, size: -1}", "/size", "bad-value",
         "size: '-1' is not a size (such as 64B, 4KiB, 1MiB, 2GiB, 10kB or 5MB)"},
        {"{text: x, span: 10}", "/span", "bad-value",
         "span: '10' has no unit: write 10ms, 10s or 10m"},
        {"{text: x, span: 61s}", "/span", "bad-value",
         "span: '61s' is out of range, allowed is 1.0 s to 1 m 00 s"},
        {"{text: x, real: nan}", "/real", "bad-value",
         "real: 'nan' is not a number (such as 0.5 or 1e-3)"},
        {"{text: x, share: 101%}", "/share", "bad-value",
         "share: '101%' is out of range, allowed is 0% to 100%"},
        {"{text: x, flag: yes}", "/flag", "bad-value",
         "flag cannot be 'yes'; allowed: true or false"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++)
        check_bad(&rows[i], yaml(rows[i].text));
}

static void test_bad_json(void **state)
{
    static const struct bad rows[] = {
        {"{\"text\": 3.10}", "/text", "wrong-type",
         "text is a number, which loses digits (3.10 becomes 3.1): write the text as a string, in "
         "quotes"},
        {"{\"text\": true}", "/text", "wrong-type", "text must be text, not the boolean true"},
        {"{\"text\": \"x\", \"name\": 5}", "/name", "wrong-type",
         "name must be a name, not the number 5"},
        {"{\"text\": \"x\", \"count\": true}", "/count", "wrong-type",
         "count must be a whole number, not the boolean true"},
        {"{\"text\": \"x\", \"span\": 5}", "/span", "bad-value",
         "span: '5' has no unit: write 5ms, 5s or 5m"},
        {"{\"text\": \"x\", \"flag\": 1}", "/flag", "wrong-type",
         "flag must be true or false, not the number 1"},
        {"{\"text\": \"x\", \"word\": false}", "/word", "wrong-type",
         "word must be one word, not the boolean false"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++)
        check_bad(&rows[i], json(rows[i].text));
}

static void test_name(void **state)
{
    char longest[65];

    memset(longest, 'a', 64);
    longest[64] = '\0';
    assert_false(wb_is_name(longest));
    longest[63] = '\0';
    assert_true(wb_is_name(longest));
    assert_true(wb_is_name("0"));
    assert_false(wb_is_name(""));
    assert_false(wb_is_name(".a"));
    assert_false(wb_is_name("-a"));
    assert_false(wb_is_name("a/b"));
    assert_false(wb_is_name("a b"));
    assert_false(wb_is_name("\xc3\xa9"));
}

static void test_did_you_mean(void **state)
{
    static const char *const list[] = {"docker", "native", "vm", "cpu_quota", NULL};
    static const struct {
        const char *word, *answer;
    } rows[] = {
        {"dcoker", " (did you mean 'docker'?)"},
        {"Docker", " (did you mean 'docker'?)"},
        {"natve", " (did you mean 'native'?)"},
        {"cpuquota", " (did you mean 'cpu_quota'?)"},
        {"vms", " (did you mean 'vm'?)"},
        {"podman", ""},
        {"", ""},
        {"x", ""},
    };
    char *huge = wb_calloc(100001, 1);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *got = wb_did_you_mean(rows[i].word, list);

        assert_string_equal(got, rows[i].answer);
    }
    memset(huge, 'a', 100000);
    WB_AUTO_FREE char *none = wb_did_you_mean(huge, list);
    assert_string_equal(none, "");
    free(huge);
}

static void test_word_list(void **state)
{
    static const char *const rows[][4] = {{NULL}, {"a", NULL}, {"a", "b", NULL}, {"a", "b", "c"}};
    static const char *const want[] = {"", "a", "a or b", "a, b or c"};

    for (size_t i = 0; i < WB_LEN(want); i++) {
        WB_AUTO_FREE char *got = wb_word_list(rows[i]);

        assert_string_equal(got, want[i]);
    }
}

static void test_problems_output(void **state)
{
    struct wb_problems p = {.file = "s.yaml"};
    struct wb_node *n = yaml("a:\n  b: 1\n");
    struct wb_buf text = WB_BUF_INIT(1 << 20), line = WB_BUF_INIT(1 << 20);
    wb_json *j;

    wb_problem(&p, n->items[0]->items[0], "bad-value", "b: %s", "too small");
    wb_problem_key(&p, n->items[0], "c/d", "missing", "a needs c/d");
    p.file = NULL;
    wb_problem(&p, NULL, "capacity", "no room");
    wb_problems_text(&p, &text);
    assert_string_equal(wb_buf_str(&text), "s.yaml:2: /a/b: b: too small\n"
                                           "s.yaml:2: /a/c~1d: a needs c/d\n"
                                           "no room\n");
    j = wb_problems_json(&p);
    wb_json_line(j, &line);
    assert_string_equal(
        wb_buf_str(&line),
        "{\"ok\":false,\"errors\":["
        "{\"file\":\"s.yaml\",\"line\":2,\"pointer\":\"/a/b\",\"code\":\"bad-value\",\"message\":"
        "\"b: too small\"},"
        "{\"file\":\"s.yaml\",\"line\":2,\"pointer\":\"/a/c~1d\",\"code\":\"missing\",\"message\":"
        "\"a needs c/d\"},"
        "{\"file\":null,\"line\":null,\"pointer\":\"\",\"code\":\"capacity\",\"message\":\"no "
        "room\"}]}");
    wb_json_free(j);
    wb_buf_release(&text);
    wb_buf_release(&line);
    wb_problems_release(&p);
    assert_int_equal(p.n, 0);
    wb_node_free(n);
}

static void test_problems_bounds(void **state)
{
    struct wb_problems p = {0};
    char *huge = wb_calloc(2000002, 1);
    wb_json *j;

    memset(huge, 'x', 2000001);
    wb_problem(&p, NULL, "c", "%s", huge);
    assert_int_equal(strlen(p.v[0].message), 2003);
    assert_string_equal(p.v[0].message + 2000, "...");
    for (int i = 0; i < 250; i++)
        wb_problem(&p, NULL, "c", "%d", i);
    assert_int_equal(p.n, 200);
    assert_int_equal(p.dropped, 51);
    j = wb_problems_json(&p);
    assert_int_equal(wb_json_int_or(j, "more_errors", 0), 51);
    wb_json_free(j);
    wb_problems_release(&p);
    free(huge);
}

static void test_problems_sort(void **state)
{
    static const struct {
        const char *file;
        int line;
    } in[] = {{"b", 9}, {"a", 3}, {"b", 2}, {"a", 1}, {"c", 5}, {"b", 9}, {"a", 2}},
      out[] = {{"b", 2}, {"b", 9}, {"b", 9}, {"a", 1}, {"a", 2}, {"a", 3}, {"c", 5}};
    struct wb_problems p = {0};

    for (size_t i = 0; i < WB_LEN(in); i++) {
        const struct wb_node at = {.line = in[i].line};

        p.file = in[i].file;
        wb_problem(&p, &at, "c", "%zu", i);
    }
    wb_problems_sort(&p, 0);
    for (size_t i = 0; i < WB_LEN(out); i++) {
        assert_string_equal(p.v[i].file, out[i].file);
        assert_int_equal(p.v[i].line, out[i].line);
    }
    assert_string_equal(p.v[1].message, "0");
    assert_string_equal(p.v[2].message, "5");
    wb_problems_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_defaults_stay),
        cmocka_unit_test(test_bad_yaml),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_did_you_mean),
        cmocka_unit_test(test_word_list),
        cmocka_unit_test(test_problems_output),
        cmocka_unit_test(test_problems_bounds),
        cmocka_unit_test(test_problems_sort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
