/*
 * The HTML report: hostile names stay text, no figure that is not there is printed as one, and the
 * pictures have what the tables have.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/cli/report.h"

static wb_json *parse(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s", err.root);
    return j;
}

static const char report[] =
    "{\"study\":\"<script>alert(1)</script>\",\"campaign\":\"cmp_A\",\"rounds\":8,"
    "\"threshold_percent\":2,\"method\":\"m\",\"analysis_version\":1,"
    "\"runs\":{\"planned\":16,\"used\":15,\"noisy\":2,\"left_out\":[{\"run\":\"run_X\","
    "\"arm\":\"a\",\"round\":3,\"why\":\"<img src=x onerror=alert(2)>\"}]},"
    "\"headline\":{\"throughput\":\"max.throughput\",\"p99\":\"latency.p99_ms\"},"
    "\"arms\":[{\"label\":\"a\\\"><b>\",\"n\":8,\"metrics\":{\"max.throughput\":{\"median\":21543."
    "5,"
    "\"lo\":20000,\"hi\":22000,\"unit\":\"ops/s\"},\"latency.p99_ms\":{\"median\":1.5,\"lo\":null,"
    "\"hi\":null,\"unit\":\"ms\"}}}],"
    "\"contrasts\":[{\"arm\":\"docker x1\",\"against\":\"native x1\",\"about\":\"container cost\","
    "\"metric\":\"max.throughput\",\"unit\":\"ops/s\",\"primary\":true,\"median_base\":100,"
    "\"median_new\":90,\"ratio\":{\"estimate\":0.9,\"lo\":0.85,\"hi\":0.95},\"q\":0.01,"
    "\"threshold_percent\":2,\"verdict\":\"worse\",\"sentence\":\"10 % lower\"},"
    "{\"arm\":\"few\",\"against\":\"native x1\",\"metric\":\"max.throughput\",\"unit\":\"ops/s\","
    "\"primary\":true,\"median_base\":100,\"median_new\":90,\"ratio\":{\"estimate\":0.9,\"lo\":"
    "null,"
    "\"hi\":null},\"q\":null,\"threshold_percent\":2,\"verdict\":\"insufficient\",\"sentence\":"
    "\"\"},"
    "{\"arm\":\"far\",\"against\":\"native x1\",\"metric\":\"max.p99_ms\",\"unit\":\"ms\","
    "\"primary\":true,\"ratio\":{\"estimate\":9,\"lo\":0.1,\"hi\":90},\"verdict\":\"inconclusive\"}"
    "],"
    "\"warnings\":[{\"code\":\"x\",\"text\":\"a & b\"}]}";

static char *page(const struct wb_report_curve *curves, size_t n)
{
    WB_AUTO_JSON wb_json *doc = parse(report);
    WB_AUTO_JSON wb_json *runs =
        parse("[{\"started_at\":\"2026-11-30T15:41:49.123Z\",\"recipe\":{\"name\":\"redis\","
              "\"version\":\"7\\u202e\"},\"host\":{\"class\":\"c\\u0007\"}}]");
    WB_AUTO_JSON wb_json *environment = parse("{\"kernel\":\"6 <x>\",\"memory_bytes\":1073741824}");
    const struct wb_report_page p = {.report = doc,
                                     .runs = runs,
                                     .environment = environment,
                                     .curves = curves,
                                     .ncurves = n,
                                     .curves_of = n ? "Response time in phase latency" : NULL,
                                     .made_at = "2026-11-30T16:00:00.000Z"};
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    wb_report_html(&p, &b);
    assert_false(b.failed);
    return wb_buf_take(&b);
}

static void has(const char *html, const char *text)
{
    if (!strstr(html, text))
        fail_msg("no '%s'", text);
}

static void lacks(const char *html, const char *text)
{
    if (strstr(html, text))
        fail_msg("there is '%s': %.60s", text, strstr(html, text));
}

/* Each tag that is opened is closed, in order; void and self-closing ones apart. */
static void balanced(const char *html)
{
    struct wb_strv open = {0};

    for (const char *p = strchr(html, '<'); p; p = strchr(p + 1, '<')) {
        const char *end = strchr(p, '>');
        bool closing = p[1] == '/';
        size_t n = strcspn(p + 1 + closing, " >\n/");
        WB_AUTO_FREE char *name = wb_strndup(p + 1 + closing, n);

        assert_non_null(end);
        if (p[1] == '!' || end[-1] == '/' || !strcmp(name, "meta"))
            continue;
        if (!closing) {
            wb_strv_add(&open, name);
            continue;
        }
        if (open.n == 0 || strcmp(open.v[open.n - 1], name) != 0)
            fail_msg("</%s> closes %s", name, open.n ? open.v[open.n - 1] : "nothing");
        wb_auto_free(&open.v[--open.n]);
    }
    assert_int_equal(open.n, 0);
    wb_strv_release(&open);
}

static void test_page(void **state)
{
    struct wb_report_curve curves[2] = {{.arm = "native <x1>", .runs = 7}, {.arm = "none"}};

    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        curves[0].median[k] = 0.3 * (k + 1);
        curves[1].median[k] = NAN;
    }
    WB_AUTO_FREE char *html = page(curves, 2);

    balanced(html);
    lacks(html, "<script");
    lacks(html, "<img");
    lacks(html, "<b>");
    lacks(html, "nan");
    lacks(html, "inf");
    lacks(html, "\xe2\x80\xae"); /* turns the direction of writing */
    lacks(html, "\a");
    lacks(html, "http:");
    has(html, "&lt;script&gt;alert(1)&lt;/script&gt;");
    has(html, "&lt;img src=x onerror=alert(2)&gt;");
    has(html, "a &amp; b");
    has(html, "15 of 16 planned runs are counted, in 8 rounds; 2 of them were measured on a noisy");
    has(html, "21.5k/s");
    has(html, "20.0k/s to 22.0k/s");
    has(html, "<td class=\"n\">0.9000</td><td class=\"n\">0.8500 to 0.9500</td>");
    has(html, "-10.0% <tspan class=\"tick\">-15.0 to -5.0</tspan>");
    has(html, "no interval");
    has(html, "class=\"verdict bad\">worse");
    has(html, "class=\"verdict open\">insufficient");
    has(html, "2026-11-30 15:41 UTC");
    has(html, "native &lt;x1&gt;");
    has(html, "300 us");
}

/* Without any time there is no picture of times, and nothing stands in for it. */
static void test_without_curves(void **state)
{
    WB_AUTO_FREE char *html = page(NULL, 0);

    balanced(html);
    lacks(html, "percentiles");
    lacks(html, "nan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_without_curves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
