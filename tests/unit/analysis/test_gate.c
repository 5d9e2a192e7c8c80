/* The judgement of a report, and the forms it is written in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/gate.h"
#include "server/base/mem.h"

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

/* A report of contrasts {arm, verdict, primary, limited}; arms with n runs each. */
static wb_json *report_of(const char *contrasts, const char *arms)
{
    WB_AUTO_FREE char *text =
        wb_strf("{\"campaign\":\"cmp_A\",\"study\":\"forms\",\"threshold_percent\":2,"
                "\"analysis_version\":1,\"warnings\":[],\"arms\":[%s],\"contrasts\":[%s]}",
                arms, contrasts);

    return parsed(text);
}

#define ARMS                                                                                 \
    "{\"label\":\"native x1\",\"n\":6,\"runs\":{\"left_out\":[]}},"                          \
    "{\"label\":\"docker x1\",\"n\":6,\"runs\":{\"left_out\":[]}},"                          \
    "{\"label\":\"lost\",\"n\":0,\"runs\":{\"left_out\":[{\"why\":\"validity invalid: "      \
    "steal\"}]}},"                                                                           \
    "{\"label\":\"broken\",\"n\":0,\"runs\":{\"left_out\":[{\"why\":\"outcome infra-error: " \
    "disk full\"}]}}"
#define CONTRAST(arm, verdict, more)                                                              \
    "{\"arm\":\"" arm                                                                             \
    "\",\"against\":\"native x1\",\"metric\":\"max.throughput\",\"verdict\":\"" verdict           \
    "\",\"sentence\":\"7.8 % lower\",\"ratio\":{\"estimate\":0.922,\"lo\":0.9,"                   \
    "\"hi\":0.94},\"median_new\":922,\"median_base\":1000,\"p\":0.03,\"q\":0.03,\"n\":[6,6]" more \
    "}"

static void results(void **state)
{
    static const struct {
        const char *contrasts;
        bool inconclusive, all;
        enum wb_gate_result result;
        const char *word, *status; /* of the first case */
    } rows[] = {
        {CONTRAST("docker x1", "worse", ""), false, false, WB_GATE_WORSE, "worse", "failed"},
        {CONTRAST("docker x1", "better", ""), false, false, WB_GATE_PASS, "pass", "passed"},
        {CONTRAST("docker x1", "equivalent", ""), false, false, WB_GATE_PASS, "pass", "passed"},
        {CONTRAST("docker x1", "negligible", ""), false, false, WB_GATE_PASS, "pass", "passed"},
        {CONTRAST("docker x1", "inconclusive", ""), false, false, WB_GATE_PASS, "pass", "skipped"},
        {CONTRAST("docker x1", "inconclusive", ""), true, false, WB_GATE_INCONCLUSIVE,
         "inconclusive", "skipped"},
        {CONTRAST("docker x1", "insufficient", ""), true, false, WB_GATE_INCONCLUSIVE,
         "inconclusive", "skipped"},
        {CONTRAST("lost", "insufficient", ""), false, false, WB_GATE_NOT_MEASURED, "not-measured",
         "skipped"},
        {CONTRAST("broken", "insufficient", ""), false, false, WB_GATE_NOT_MEASURED, "not-measured",
         "error"},
        {CONTRAST("docker x1", "inconclusive",
                  ",\"limited\":[{\"by\":\"network\",\"text\":\"the link is full\"}]"),
         false, false, WB_GATE_NOT_MEASURED, "not-measured", "skipped"},
        /* worse wins over what could not be measured, that over what is open */
        {CONTRAST("lost", "insufficient", "") "," CONTRAST("docker x1", "worse", ""), true, false,
         WB_GATE_WORSE, "worse", "skipped"},
        {CONTRAST("docker x1", "inconclusive", "") "," CONTRAST("lost", "insufficient", ""), true,
         false, WB_GATE_NOT_MEASURED, "not-measured", "skipped"},
        /* what stands beside the primary contrast decides only when asked */
        {CONTRAST("docker x1", "worse", ",\"primary\":false") "," CONTRAST("docker x1", "better",
                                                                           ""),
         false, false, WB_GATE_PASS, "pass", "failed"},
        {CONTRAST("docker x1", "worse", ",\"primary\":false") "," CONTRAST("docker x1", "better",
                                                                           ""),
         false, true, WB_GATE_WORSE, "worse", "failed"},
        /* runs on both sides, but in no round together */
        {"{\"arm\":\"docker x1\",\"against\":\"native "
         "x1\",\"verdict\":\"insufficient\",\"n\":[0,0]}",
         false, false, WB_GATE_NOT_MEASURED, "not-measured", "skipped"},
        /* nothing to judge is nothing measured */
        {"", false, false, WB_GATE_NOT_MEASURED, "not-measured", NULL},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *report = report_of(rows[i].contrasts, ARMS);
        const struct wb_gate_rules rules = {rows[i].inconclusive, rows[i].all};
        struct wb_buf text = WB_BUF_INIT(1 << 20);
        wb_json *gate = NULL;
        if (wb_gate(report, &rules, &gate) != rows[i].result)
            fail_msg("row %zu: %s", i, wb_json_str_or(gate, "sentence", ""));
        assert_string_equal(wb_json_str_or(gate, "result", ""), rows[i].word);
        if (rows[i].status != NULL)
            assert_string_equal(
                wb_json_str_or(wb_json_at(wb_json_get(gate, "cases"), 0), "status", ""),
                rows[i].status);
        wb_gate_print(gate, 80, &text);
        wb_gate_junit(gate, &text);
        wb_gate_markdown(gate, &text);
        wb_gate_github(gate, &text);
        assert_true(!text.failed && text.len > 100);
        wb_buf_release(&text);
        wb_json_free(gate);
    }
}

static size_t times(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, part)) != NULL; p += strlen(part))
        n++;
    return n;
}

static void junit(void **state)
{
    static const char *const parts[] = {
        "<testsuites name=\"forms\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">",
        "<testsuite name=\"docker x1\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">",
        "<failure message=\"7.8 % lower\"/>",
        "<error message=\"outcome infra-error: disk full\"/>",
        "<skipped message=\"validity invalid: steal\"/>",
        "<property name=\"ratio\" value=\"0.922\"/>",
        "<testcase classname=\"docker x1\" name=\"max.throughput against native x1\">"};
    WB_AUTO_JSON wb_json *report = report_of(
        CONTRAST("docker x1", "worse", "") "," CONTRAST("lost", "insufficient", "") "," CONTRAST(
            "broken", "insufficient", "") "," CONTRAST("docker x1", "better", ""),
        ARMS);
    const struct wb_gate_rules rules = {false, false};
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    wb_json *gate = NULL;

    (void)state;
    (void)wb_gate(report, &rules, &gate);
    wb_gate_junit(gate, &text);
    for (size_t i = 0; i < WB_LEN(parts); i++)
        if (strstr(wb_buf_str(&text), parts[i]) == NULL)
            fail_msg("no %s in\n%s", parts[i], wb_buf_str(&text));
    assert_int_equal(times(wb_buf_str(&text), "<testcase"), 4);
    assert_int_equal(times(wb_buf_str(&text), "</testcase>"), 4);
    assert_int_equal(times(wb_buf_str(&text), "<testsuite "), 3);
    wb_buf_release(&text);
    wb_json_free(gate);
}

/* Names and reasons come from others: none of it becomes markup or a command. */
static void hostile_text(void **state)
{
    const struct wb_gate_rules rules = {false, false};
    WB_AUTO_JSON wb_json *report = report_of(CONTRAST("docker x1", "worse", ""), ARMS);
    wb_json *c = wb_json_at(wb_json_get(report, "contrasts"), 0), *gate = NULL;
    struct wb_buf xml = WB_BUF_INIT(1 << 20), md = WB_BUF_INIT(1 << 20), log = WB_BUF_INIT(1 << 20);

    (void)state;
    wb_json_set_str(c, "sentence", "<script>\"&]]>\x01\n::error::x | **b** <!-- @all %0A");
    wb_json_set_str(c, "arm", "a\"/><x>");
    (void)wb_gate(report, &rules, &gate);
    wb_gate_junit(gate, &xml);
    wb_gate_markdown(gate, &md);
    wb_gate_github(gate, &log);
    assert_null(strstr(wb_buf_str(&xml), "<script>"));
    assert_null(strstr(wb_buf_str(&xml), "<x>"));
    assert_null(strchr(wb_buf_str(&xml), '\x01'));
    assert_null(strstr(wb_buf_str(&md), "<script>"));
    assert_null(strstr(wb_buf_str(&md), "**b**"));
    assert_null(strstr(wb_buf_str(&md), "@all"));
    assert_int_equal(times(wb_buf_str(&md), "<!--"), 1);
    assert_int_equal(times(wb_buf_str(&log), "\n"), 1);
    assert_null(strstr(wb_buf_str(&log), "\n::error::"));
    assert_non_null(strstr(wb_buf_str(&log), "%250A"));
    wb_buf_release(&xml);
    wb_buf_release(&md);
    wb_buf_release(&log);
    wb_json_free(gate);
}

static void markdown_has_a_size(void **state)
{
    const struct wb_gate_rules rules = {false, true};
    WB_AUTO_JSON wb_json *report = report_of("", ARMS);
    wb_json *list = wb_json_get(report, "contrasts"), *gate = NULL;
    struct wb_buf md = WB_BUF_INIT(1 << 20), log = WB_BUF_INIT(1 << 20);

    (void)state;
    for (int i = 0; i < 3000; i++) {
        wb_json *c = parsed(i % 2 ? CONTRAST("docker x1", "worse", "")
                                  : CONTRAST("docker x1", "better", ""));
        wb_json_push(list, c);
    }
    assert_int_equal(wb_gate(report, &rules, &gate), WB_GATE_WORSE);
    wb_gate_markdown(gate, &md);
    wb_gate_github(gate, &log);
    assert_true(md.len < 64000 && md.len > 30000);
    assert_non_null(strstr(wb_buf_str(&md), "more are not shown"));
    assert_int_equal(strncmp(wb_buf_str(&md), "**Worse", 7), 0);
    assert_int_equal(times(wb_buf_str(&log), "\n"), 10);
    wb_buf_release(&md);
    wb_buf_release(&log);
    wb_json_free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results),
        cmocka_unit_test(junit),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(markdown_has_a_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
