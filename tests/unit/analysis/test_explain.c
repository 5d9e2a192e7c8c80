/* What is named as different between two arms, and in which order signals stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/analysis/explain.h"
#include "server/base/mem.h"

#define ROUNDS 8

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

/* Two arms of one campaign: b has twice the cache and 10 % more throughput; its reads from disk
 * fall with it, operations follow the throughput, the temperature does what it likes. */
struct fixture {
    wb_json *arms[2], *documents;
    struct wb_explain_run runs[2][ROUNDS];
    struct wb_explain_side sides[2];
};

static void set_up(struct fixture *f, int rounds)
{
    static const char *const arms[2] = {
        "{\"label\":\"a\",\"settings\":{\"cache\":\"64\",\"hz\":\"10\"},\"series_key\":\"1\","
        "\"factors\":{\"setting.cache\":\"64\"}}",
        "{\"label\":\"b\",\"settings\":{\"cache\":\"128\",\"hz\":\"10\"},\"series_key\":\"2\","
        "\"factors\":{\"setting.cache\":\"128\"}}"};

    *f = (struct fixture){.documents = wb_json_array()};
    for (int s = 0; s < 2; s++) {
        f->arms[s] = parsed(arms[s]);
        for (int r = 0; r < rounds; r++) {
            double rate = (s ? 1100 : 1000) + 5 * ((r * 3) % 8);
            WB_AUTO_FREE char *summary =
                wb_strf("{\"campaign\":\"c\",\"round\":%d,\"metrics\":{\"max.throughput\":{"
                        "\"value\":%g,\"better\":\"higher\"}}}",
                        r + 1, rate);
            WB_AUTO_FREE char *environment =
                wb_strf("{\"host\":{\"kernel\":\"%s\",\"cpus\":2,\"turbo\":null,\"boot\":\"%d\"},"
                        "\"probes\":[{\"settings\":{\"hz\":\"10\"},\"facts\":{\"pid\":%d}}]%s}",
                        s ? "6.2" : "6.1", r, 100 * s + r,
                        s ? ",\"form_facts\":{\"image\":{\"x\":1}}" : "");
            WB_AUTO_FREE char *result = wb_strf(
                "{\"phases\":[{\"name\":\"max\",\"samples\":{\"disk_read\":{\"mean\":%g,\"max\":9},"
                "\"temperature\":{\"mean\":%d,\"max\":9}},\"load\":{\"failed\":0,"
                "\"achieved_per_s\":%g}}],"
                "\"server\":[{\"metrics\":{\"ops\":%g}},{\"metrics\":{\"ops\":%g}}]}",
                4e6 / rate / (s ? 2 : 1), 40 + (r * 5 + s * 3) % 7, rate, 3 * rate, 7 * rate);
            wb_json *docs[3] = {parsed(summary), parsed(environment), parsed(result)};
            for (int d = 0; d < 3; d++)
                wb_json_push(f->documents, docs[d]);
            f->runs[s][r] = (struct wb_explain_run){docs[0], docs[1], docs[2]};
        }
        f->sides[s] = (struct wb_explain_side){
            .name = s ? "b" : "a", .arm = f->arms[s], .runs = f->runs[s], .n = (size_t)rounds};
    }
}

static void tear_down(struct fixture *f)
{
    wb_json_free(f->arms[0]);
    wb_json_free(f->arms[1]);
    wb_json_free(f->documents);
}

static const struct wb_explain_question question = {
    .metric = "max.throughput", .better = "higher", .threshold_percent = 2};

static wb_json *explained(const struct fixture *f)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_explain(f->sides, &question, &out, &err) < 0)
        fail_msg("%s", err.root);
    return out;
}

static const wb_json *at_path(const wb_json *list, const char *path)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(wb_json_str_or(wb_json_at(list, i), "path", ""), path) == 0)
            return wb_json_at(list, i);
    return NULL;
}

static void names_what_is_constant_and_differs(void **state)
{
    struct fixture f;
    WB_AUTO_JSON wb_json *out = NULL;
    const wb_json *settings, *facts;

    set_up(&f, ROUNDS);
    out = explained(&f);
    settings = wb_json_get(out, "settings");
    facts = wb_json_get(out, "facts");
    assert_int_equal(wb_json_len(settings), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(settings, 0), "path", ""), "settings.cache");
    assert_string_equal(wb_json_str_or(wb_json_at(settings, 0), "base", ""), "64");
    assert_string_equal(wb_json_str_or(wb_json_at(settings, 0), "other", ""), "128");
    assert_int_equal(wb_json_len(facts), 2);
    assert_string_equal(wb_json_str_or(at_path(facts, "host.kernel"), "other", ""), "6.2");
    assert_int_equal(wb_json_type(wb_json_get(at_path(facts, "form_facts"), "base")), WB_JSON_NULL);
    assert_string_equal(wb_json_str_or(at_path(facts, "form_facts"), "base_reason", ""),
                        "not there");
    tear_down(&f);
}

static void ranks_signals(void **state)
{
    struct fixture f;
    WB_AUTO_JSON wb_json *out = NULL;
    const wb_json *signals, *s;

    set_up(&f, ROUNDS);
    out = explained(&f);
    signals = wb_json_get(out, "signals");
    assert_true(wb_json_bool_or(out, "paired", false));
    assert_int_equal(wb_json_int_or(out, "signals_all", 0), 4);
    s = wb_json_at(signals, 0);
    assert_string_equal(wb_json_str_or(s, "name", ""), "max.host.disk_read");
    assert_true(wb_json_bool_or(s, "moved", false));
    assert_false(wb_json_bool_or(s, "follows", true));
    assert_true(fabs(wb_json_real_or(s, "rho", 0) + 1) < 1e-12);
    assert_true(fabs(wb_json_real_or(s, "ratio", 0) - 0.5 / 1.1) < 0.01);
    s = wb_json_at(signals, 1); /* both instances added up: the work itself */
    assert_string_equal(wb_json_str_or(s, "name", ""), "database.ops");
    assert_true(wb_json_bool_or(s, "moved", false));
    assert_true(wb_json_bool_or(s, "follows", false));
    assert_true(fabs(wb_json_real_or(s, "median_base", 0) - 10 * 1017.5) < 1e-6);
    for (size_t i = 2; i < 4; i++)
        assert_false(wb_json_bool_or(wb_json_at(signals, i), "moved", true));
    /* A signal that never changes has neither rho nor p, and says so. */
    s = wb_json_at(signals, 3);
    assert_string_equal(wb_json_str_or(s, "name", ""), "max.load.failed");
    assert_int_equal(wb_json_type(wb_json_get(s, "rho")), WB_JSON_NULL);
    assert_true(*wb_json_str_or(s, "rho_reason", "") != '\0');
    tear_down(&f);
}

/* The order of the runs says nothing, and neither do units. */
static void order_and_units_change_nothing(void **state)
{
    struct fixture f;
    WB_AUTO_JSON wb_json *before = NULL, *after = NULL;

    set_up(&f, ROUNDS);
    before = explained(&f);
    for (int i = 0; i < ROUNDS / 2; i++) {
        struct wb_explain_run r = f.runs[0][i];
        f.runs[0][i] = f.runs[0][ROUNDS - 1 - i];
        f.runs[0][ROUNDS - 1 - i] = r;
    }
    after = explained(&f);
    assert_true(wb_json_equal(wb_json_get(before, "signals"), wb_json_get(after, "signals")));
    assert_true(wb_json_equal(wb_json_get(before, "settings"), wb_json_get(after, "settings")));
    assert_true(wb_json_equal(wb_json_get(before, "effect"), wb_json_get(after, "effect")));
    tear_down(&f);
}

static void one_run_a_side_is_described(void **state)
{
    struct fixture f;
    WB_AUTO_JSON wb_json *out = NULL;
    struct wb_buf text = WB_BUF_INIT(1 << 20);

    set_up(&f, 1);
    out = explained(&f);
    assert_string_equal(wb_json_str_or(wb_json_get(out, "effect"), "verdict", ""), "insufficient");
    for (size_t i = 0; i < wb_json_len(wb_json_get(out, "signals")); i++) {
        const wb_json *s = wb_json_at(wb_json_get(out, "signals"), i);
        assert_false(wb_json_bool_or(s, "moved", true));
        assert_int_equal(wb_json_type(wb_json_get(s, "q")), WB_JSON_NULL);
    }
    wb_explain_print(out, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "that takes 6"));
    wb_buf_release(&text);
    tear_down(&f);
}

static void prints_eighty_columns(void **state)
{
    struct fixture f;
    WB_AUTO_JSON wb_json *out = NULL;
    struct wb_buf text = WB_BUF_INIT(1 << 20);

    set_up(&f, ROUNDS);
    out = explained(&f);
    wb_explain_print(out, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "max.host.disk_read"));
    assert_non_null(strstr(wb_buf_str(&text), "as the work"));
    for (const char *line = wb_buf_str(&text); *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
            fail_msg("too wide: %.*s", (int)strcspn(line, "\n"), line);
    wb_buf_release(&text);
    tear_down(&f);
}

static void nothing_to_explain_is_an_error(void **state)
{
    struct fixture f;
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    set_up(&f, 0);
    assert_int_equal(wb_explain(f.sides, &question, &out, &err), -WB_INVALID);
    assert_null(out);
    tear_down(&f);
}

/* Records of others: documents may be missing or something else. */
static void hostile_documents(void **state)
{
    static const char *const texts[] = {
        "null",
        "[]",
        "7",
        "{\"phases\":7,\"server\":{}}",
        "{\"phases\":[7,{\"samples\":{\"x\":{\"mean\":\"no\"}},\"load\":[]}],\"server\":[[]]}",
        "{\"host\":[],\"phases\":[{\"name\":7,\"samples\":{\"x\":1e308}}],"
        "\"server\":[{\"metrics\":{\"x\":1e308}},{\"metrics\":{\"x\":1e308}}]}"};

    for (size_t i = 0; i < WB_LEN(texts); i++) {
        WB_AUTO_JSON wb_json *j = parsed(texts[i]), *out = NULL;
        struct wb_explain_run run = {NULL, j, j};
        const struct wb_explain_side sides[2] = {{.name = "a", .arm = j, .runs = &run, .n = 1},
                                                 {.name = "b", .runs = &run, .n = 1}};
        struct wb_buf text = WB_BUF_INIT(1 << 20);

        assert_int_equal(wb_explain(sides, &question, &out, NULL), 0);
        wb_explain_print(out, 80, &text);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_is_constant_and_differs),
        cmocka_unit_test(ranks_signals),
        cmocka_unit_test(order_and_units_change_nothing),
        cmocka_unit_test(one_run_a_side_is_described),
        cmocka_unit_test(prints_eighty_columns),
        cmocka_unit_test(nothing_to_explain_is_an_error),
        cmocka_unit_test(hostile_documents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
