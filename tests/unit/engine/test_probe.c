/* What runs against what was asked: versions exactly, settings by canonical text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/engine/probe.h"

/* ["5.0.2", null] -> [{version: "5.0.2"}, null] */
static wb_json *probes_of(const wb_json *versions)
{
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < wb_json_len(versions); i++) {
        wb_json *v = wb_json_at(versions, i), *p = NULL;

        if (wb_json_string(v)) {
            p = wb_json_object();
            wb_json_set(p, "version", wb_json_ref(v));
        }
        wb_json_push(out, p ? p : wb_json_null());
    }
    return out;
}

/* The rows of the case that are about versions. Those about image digests and git commits are
 * judged elsewhere: by name and version alone they are refused. */
static void test_case_rows(void **state)
{
    static const struct {
        int code;
        const char *says;
    } want[] = {
        {0, ""},
        {WB_CONFLICT, "node 2 runs 4.1.7, asked 5.0.2"},
        {WB_CONFLICT, "version of node 2 unknown, asked 5.0.2"},
        {WB_CONFLICT, "node 1 runs 5.0.20, which is not 5.0.2"},
        {WB_CONFLICT, "node 1 runs 5.0.2-SNAPSHOT, which is not 5.0.2"},
        {WB_CONFLICT, "node 1 runs 7.2.0, asked image store.invalid/db:7.2"},
        {WB_CONFLICT, "node 1 runs 1.9.0-g4d2c11e, asked git main"},
    };
    WB_AUTO_JSON wb_json *doc = NULL;
    const wb_json *cases;

    (void)state;
    assert_int_equal(
        wb_json_read_file("tests/data/cases/004-version-probe.json", 65536, &doc, NULL), 0);
    cases = wb_json_get(doc, "cases");
    assert_int_equal(wb_json_len(cases), WB_LEN(want));
    for (size_t i = 0; i < WB_LEN(want); i++) {
        const wb_json *c = wb_json_at(cases, i);
        WB_AUTO_JSON wb_json *probes = probes_of(wb_json_get(c, "probe"));
        struct wb_err err = WB_ERR_INIT;
        bool go = !strncmp(wb_json_str_or(c, "expected", ""), "go", 2);

        assert_int_equal(wb_probe_check(wb_json_str_or(c, "asked", ""), probes, &err),
                         -want[i].code);
        if (i < 5)
            assert_int_equal(go, want[i].code == 0);
        if (want[i].code)
            assert_non_null(strstr(err.root, want[i].says));
    }
}

static void check_version(const char *asked, const char *found, bool suffix, int code)
{
    WB_AUTO_JSON wb_json *probes = wb_json_array();
    wb_json *p = wb_json_object();

    wb_json_set_str(p, "version", found);
    wb_json_push(probes, p);
    assert_int_equal(wb_probe_check_suffix(asked, suffix, probes, NULL), -code);
}

static void test_suffix(void **state)
{
    (void)state;
    check_version("5.0.2", "5.0.2", true, 0);
    check_version("5.0.2", "5.0.2-SNAPSHOT", true, 0);
    check_version("5.0.2", "5.0.2+b1", true, 0);
    check_version("5.0.2", "5.0.2-SNAPSHOT", false, WB_CONFLICT);
    check_version("5.0.2", "5.0.2-", true, WB_CONFLICT);
    check_version("5.0.2", "5.0.2.1", true, WB_CONFLICT);
    check_version("5.0.2", "5.0.20-SNAPSHOT", true, WB_CONFLICT);
    check_version("5.0.2-rc1", "5.0.2", true, WB_CONFLICT);
    check_version("5.0.2", "v5.0.2", true, WB_CONFLICT);
    check_version("5.0.2", " 5.0.2", true, WB_CONFLICT);
    check_version("5.0.2", "", true, WB_CONFLICT);
    check_version("5.0.2", NULL, true, WB_CONFLICT);
    check_version("5", "5.0.2", true, WB_CONFLICT);
}

static void test_odd_probes(void **state)
{
    WB_AUTO_JSON wb_json *none = wb_json_array(), *odd = wb_json_array(), *many = wb_json_array();
    wb_json *p = wb_json_object();
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_int_equal(wb_probe_check("1", none, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "no node was probed"));
    assert_int_equal(wb_probe_check("1", NULL, &err), -WB_CONFLICT);
    wb_json_set_int(p, "version", 1); /* a number is no version */
    wb_json_push(odd, p);
    wb_json_push(odd, wb_json_str("1"));
    assert_int_equal(wb_probe_check("1", odd, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "version of node 1 unknown"));
    assert_non_null(strstr(err.root, "version of node 2 unknown"));
    for (int i = 0; i < 300; i++)
        wb_json_push(many, wb_json_null());
    assert_int_equal(wb_probe_check("1", many, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "; and 294 more"));
}

static void test_settings(void **state)
{
    const struct wb_setting want[] = {{(char[]){"maxmemory"}, (char[]){"1048576"}},
                                      {(char[]){"save"}, (char[]){""}},
                                      {(char[]){"appendonly"}, (char[]){"no"}}};
    static const char text[] = "{\"settings\":{\"maxmemory\":\"1048576\",\"save\":\"\","
                               "\"appendonly\":\"no\",\"x\":\"y\"}}";
    static const char wrong[] = "{\"settings\":{\"maxmemory\":1048576,\"appendonly\":\"yes\"}}";
    WB_AUTO_JSON wb_json *good = NULL, *bad = NULL;
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_int_equal(wb_json_parse(text, sizeof(text) - 1, &good, NULL), 0);
    assert_int_equal(wb_json_parse(wrong, sizeof(wrong) - 1, &bad, NULL), 0);
    assert_int_equal(wb_settings_check(want, WB_LEN(want), good, &err), 0);
    assert_int_equal(err.code, 0);
    assert_int_equal(wb_settings_check(want, WB_LEN(want), bad, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "setting maxmemory: asked '1048576', found something that is "
                                     "not text"));
    assert_non_null(strstr(err.root, "setting save: asked '', not reported back"));
    assert_non_null(strstr(err.root, "setting appendonly: asked 'no', found 'yes'"));
    assert_int_equal(wb_settings_check(want, WB_LEN(want), NULL, &err), -WB_CONFLICT);
    assert_int_equal(wb_settings_check(NULL, 0, NULL, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_rows),
        cmocka_unit_test(test_suffix),
        cmocka_unit_test(test_odd_probes),
        cmocka_unit_test(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
