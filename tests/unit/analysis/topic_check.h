/* Asking topics of `stats` in tests: every answer is checked for its frame and for nulls without a
 * reason. */
#ifndef WB_TESTS_TOPIC_CHECK_H
#define WB_TESTS_TOPIC_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/topics.h"
#include "server/base/mem.h"

__attribute__((unused)) static wb_json *topic_parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

/* Every null member of an object, at any depth, stands beside its reason. */
__attribute__((unused)) static void topic_nulls(const char *topic, const wb_json *j)
{
    for (size_t i = 0; wb_json_type(j) == WB_JSON_ARRAY && i < wb_json_len(j); i++)
        topic_nulls(topic, wb_json_at(j, i));
    if (wb_json_type(j) != WB_JSON_OBJECT)
        return;
    for (void *it = wb_json_first(j); it != NULL; it = wb_json_next(j, it)) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", wb_json_iter_key(it));
        if (wb_json_type(wb_json_iter_value(it)) == WB_JSON_NULL &&
            wb_json_str_or(j, reason, NULL) == NULL)
            fail_msg("%s: %s is null without a reason", topic, wb_json_iter_key(it));
        topic_nulls(topic, wb_json_iter_value(it));
    }
}

/* The answer of a topic, printed for people as well. Owned. */
__attribute__((unused)) static wb_json *topic_ask_json(const char *topic, const wb_json *in)
{
    const struct wb_topic *t = wb_topic_find(topic);
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(16u << 20);
    wb_json *out = NULL;

    assert_non_null(t);
    if (t->answer(in, &out, &err) < 0)
        fail_msg("%s: %s", topic, err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_str_or(out, "method", NULL));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_non_null(wb_json_get(out, "n"));
    topic_nulls(topic, out);
    t->print(out, 80, &text);
    assert_false(text.failed);
    if (text.len == 0 || strstr(wb_buf_str(&text), "nan") || strstr(wb_buf_str(&text), "inf "))
        fail_msg("%s: printed '%s'", topic, wb_buf_str(&text));
    wb_buf_release(&text);
    return out;
}

__attribute__((unused)) static wb_json *topic_ask(const char *topic, const char *text)
{
    WB_AUTO_JSON wb_json *in = topic_parsed(text);

    return topic_ask_json(topic, in);
}

/* The topic refuses the document with a message that has `part` in it. */
__attribute__((unused)) static void topic_refuses(const char *topic, const char *text,
                                                  const char *part)
{
    WB_AUTO_JSON wb_json *in = topic_parsed(text);
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_topic_find(topic)->answer(in, &out, &err) != -WB_INVALID)
        fail_msg("%s answers %s", topic, text);
    assert_null(out);
    if (strstr(err.root, part) == NULL)
        fail_msg("%s on %s: '%s' must have '%s' in it", topic, text, err.root, part);
}

/* The figure at a dotted path; NaN when it is null or absent. */
__attribute__((unused)) static double topic_figure(const wb_json *out, const char *path)
{
    return wb_json_number(wb_json_path(out, path), NAN);
}

__attribute__((unused)) static void topic_near(const char *what, double got, double want,
                                               double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want) + 1e-300))
        fail_msg("%s is %.15g, must be %.15g", what, got, want);
}

__attribute__((unused)) static bool topic_warned(const wb_json *out, const char *code)
{
    const wb_json *warnings = wb_json_get(out, "warnings");

    for (size_t i = 0; i < wb_json_len(warnings); i++)
        if (strcmp(wb_json_str_or(wb_json_at(warnings, i), "code", ""), code) == 0)
            return true;
    return false;
}

#endif
