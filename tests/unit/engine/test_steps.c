/* Steps of a recipe: what they are told, what they answer, every way in which they misbehave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "server/engine/steps.h"
#include "tests/unit/engine/recipe_fixture.h"

static int run(struct fixture *f, enum wb_step step, const char *script, int *code, wb_json **out,
               struct wb_err *err)
{
    char *const env[] = {(char[]){"WB_VERSION=1.0"}, (char[]){"WB_SETTING_A=x y"}, NULL};

    if (script)
        fixture_step(f, step, script);
    return wb_step_run(&f->r, step, env, NULL, code, out, err);
}

static void test_answers(void **state)
{
    WB_AUTO_JSON wb_json *out = NULL;
    struct wb_err err = WB_ERR_INIT;
    int code = 5;

    assert_int_equal(run(*state, WB_STEP_PROBE,
                         "echo log >&2; printf ' {\"v\":\"%s\",\"a\":\"%s\",\"p\":\"%s\"}\\n\\n' "
                         "\"$WB_VERSION\" \"$WB_SETTING_A\" \"${PATH:+set}\"",
                         &code, &out, &err),
                     0);
    assert_int_equal(code, 0);
    assert_int_equal(err.code, 0);
    assert_string_equal(wb_json_str_or(out, "v", ""), "1.0");
    assert_string_equal(wb_json_str_or(out, "a", ""), "x y");
    assert_string_equal(wb_json_str_or(out, "p", ""), "set");
}

/* Only what is given, and the four that every program needs. */
static void test_environment(void **state)
{
    WB_AUTO_JSON wb_json *out = NULL;
    int code;

    assert_int_equal(setenv("WB_TEST_SECRET", "1", 1), 0);
    assert_int_equal(setenv("http_proxy", "http://proxy.invalid:1", 1), 0);
    assert_int_equal(
        run(*state, WB_STEP_MEASURE,
            "printf '{\"env\":\"%s\"}' \"$(env | sed 's/=.*//' | sort | tr '\\n' ' ')\"", &code,
            &out, NULL),
        0);
    assert_string_equal(wb_json_str_or(out, "env", ""),
                        "HOME LANG PATH PWD WB_SETTING_A WB_VERSION ");
    wb_json_free(out);
    out = NULL;
    assert_int_equal(run(*state, WB_STEP_FETCH, "printf '{\"proxy\":\"%s\"}' \"$http_proxy\"",
                         &code, &out, NULL),
                     0);
    assert_string_equal(wb_json_str_or(out, "proxy", ""), "http://proxy.invalid:1");
    (void)unsetenv("WB_TEST_SECRET");
    (void)unsetenv("http_proxy");
}

static void test_misbehaviour(void **state)
{
    static const struct {
        enum wb_step step;
        const char *script;
        int rc, code;
        const char *says; /* in the whole text */
    } rows[] = {
        {WB_STEP_PROBE, "echo one >&2; echo 'last words' >&2; echo >&2; exit 3", WB_IO, 3,
         "recipe tiny: step probe failed (exit 3): last words"},
        {WB_STEP_PROBE, "exit 1", WB_IO, 1, "recipe tiny: step probe failed (exit 1)"},
        {WB_STEP_PROBE, "echo '{}'; exit 75", WB_IO, 75, "step probe failed (exit 75)"},
        {WB_STEP_PROBE, "exit 69", WB_IO, 69, "step probe failed (exit 69)"},
        {WB_STEP_FETCH, "echo 'no mirror has it' >&2; exit 69", WB_NOT_FOUND, 69,
         "recipe tiny: step fetch (exit 69): no mirror has it"},
        {WB_STEP_PROBE, "kill -9 $$", WB_IO, -1, "recipe tiny: step probe was ended by signal 9"},
        {WB_STEP_PROBE, ":", WB_PROTOCOL, 0, "step probe wrote nothing to stdout"},
        {WB_STEP_PROBE, "echo; echo ' '", WB_PROTOCOL, 0, "step probe wrote nothing to stdout"},
        {WB_STEP_PROBE, "echo '{}{}'", WB_PROTOCOL, 0, "must write one JSON object to stdout"},
        {WB_STEP_PROBE, "echo '{}'; echo '{}'", WB_PROTOCOL, 0, "must write one JSON object"},
        {WB_STEP_PROBE, "echo '[]'", WB_PROTOCOL, 0, "that is not an object"},
        {WB_STEP_PROBE, "echo '\"text\"'", WB_PROTOCOL, 0, "step probe"},
        {WB_STEP_PROBE, "echo '{\"a\":1,\"a\":2}'", WB_PROTOCOL, 0, "must write one JSON object"},
        {WB_STEP_PROBE, "printf '{\"a\":1}\\000'", WB_PROTOCOL, 0, "must write one JSON object"},
        {WB_STEP_PROBE, "printf '\\000'", WB_PROTOCOL, 0, "must write one JSON object"},
        {WB_STEP_PROBE, "echo 'ready: {}'", WB_PROTOCOL, 0, "must write one JSON object"},
        {WB_STEP_PROBE, "head -c 5000000 /dev/zero | tr '\\000' x", WB_LIMIT, -1,
         "recipe tiny: step probe"},
        {WB_STEP_READY, "echo 'bad reply' >&2; exit 2", WB_IO, 2,
         "recipe tiny: step ready failed (exit 2): bad reply"},
        {WB_STEP_READY, ":", WB_PROTOCOL, 0, "step ready wrote nothing to stdout"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        wb_json *out = NULL;
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        int code = 99, rc = run(*state, rows[i].step, rows[i].script, &code, &out, &err);

        (void)wb_err_text(&err, text, sizeof(text));
        if (rc != -rows[i].rc || code != rows[i].code || !strstr(text, rows[i].says))
            fail_msg("row %zu: rc %d code %d: %s", i, rc, code, text);
        assert_null(out);
        assert_int_equal(err.code, rows[i].rc);
        assert_int_equal(run(*state, rows[i].step, NULL, NULL, &out, NULL), -rows[i].rc);
    }
}

static void test_not_yet(void **state)
{
    wb_json *out = NULL;
    struct wb_err err = WB_ERR_INIT;
    int code;

    assert_int_equal(run(*state, WB_STEP_READY, "exit 75", &code, &out, &err), 0);
    assert_int_equal(code, WB_STEP_NOT_YET);
    assert_null(out);
    assert_int_equal(run(*state, WB_STEP_READY, "echo '{\"a\":1}'; exit 75", &code, &out, &err), 0);
    assert_int_equal(code, WB_STEP_NOT_YET);
    assert_int_equal(wb_json_int_or(out, "a", 0), 1);
    wb_json_free(out);
    out = NULL;
    assert_int_equal(run(*state, WB_STEP_READY, "echo loading; exit 75", &code, &out, &err),
                     -WB_PROTOCOL);
    assert_null(out);
}

static void test_stderr_flood(void **state)
{
    WB_AUTO_JSON wb_json *out = NULL;
    wb_json *none = NULL;
    struct wb_err err = WB_ERR_INIT;
    int code;

    assert_int_equal(run(*state, WB_STEP_INSTALL,
                         "head -c 3000000 /dev/zero | tr '\\000' '\\n' >&2; echo '{\"n\":1}'",
                         &code, &out, &err),
                     0);
    assert_int_equal(wb_json_int_or(out, "n", 0), 1);
    /* One line of 3 MB, and then a failure: the text of the error stays bounded and whole. */
    assert_int_equal(run(*state, WB_STEP_INSTALL,
                         "head -c 3000000 /dev/zero | tr '\\000' y >&2; exit 4", &code, &none,
                         &err),
                     -WB_IO);
    assert_int_equal(code, 4);
    assert_non_null(strstr(err.root, "step install failed (exit 4): yyyy"));
    assert_true(strlen(err.root) < sizeof(err.root));
}

static void test_hang(void **state)
{
    struct fixture *f = *state;
    wb_json *out = NULL;
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int code = 99;

    f->r.step_limit_ns[WB_STEP_STOP] = 300 * WB_MS;
    assert_int_equal(
        run(f, WB_STEP_STOP, "echo 'still there' >&2; exec sleep 60", &code, &out, &err),
        -WB_TIMEOUT);
    assert_int_equal(code, -1);
    assert_null(out);
    (void)wb_err_text(&err, text, sizeof(text));
    assert_non_null(strstr(text, "recipe tiny: step stop (last said: still there): "));
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct wb_cancel *c = wb_cancel_new();
    wb_json *out = NULL;
    int code;

    fixture_step(f, WB_STEP_INSTALL, "exec sleep 60");
    wb_cancel_set(c, 0);
    assert_int_equal(wb_step_run(&f->r, WB_STEP_INSTALL, NULL, c, &code, &out, NULL),
                     -WB_CANCELLED);
    assert_int_equal(code, -1);
    wb_cancel_free(c);
}

static void test_missing(void **state)
{
    struct fixture *f = *state;
    wb_json *out = NULL;
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *path = wb_strf("%s/steps/unmount", f->r.dir);
    int code;

    assert_int_equal(run(f, WB_STEP_UNMOUNT, NULL, &code, &out, &err), -WB_NOT_FOUND);
    assert_non_null(strstr(err.root, "recipe tiny has no step unmount"));
    fixture_step(f, WB_STEP_UNMOUNT, "echo '{}'");
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(run(f, WB_STEP_UNMOUNT, NULL, &code, &out, &err), -WB_INVALID);
    assert_non_null(strstr(err.root, "step unmount is not executable"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_environment, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_misbehaviour, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_not_yet, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stderr_flood, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hang, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_cancel, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_missing, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
