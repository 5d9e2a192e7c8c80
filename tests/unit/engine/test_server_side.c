/* The server's figures of a window, from two readings; units that are off by 1000. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/engine/server_side.h"

static wb_json *parse(const char *text)
{
    wb_json *j = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

static void check(const char *before, const char *after, const char *want)
{
    char names[3][16] = {"reads", "busy", "errors"};
    char unit[] = "";
    struct wb_recipe_metric metrics[] = {
        {names[0], unit, true}, {names[1], unit, false}, {names[2], unit, true}};
    struct wb_recipe r = {.metrics = metrics, .nmetrics = 3};
    WB_AUTO_JSON wb_json *b = parse(before);
    WB_AUTO_JSON wb_json *a = parse(after);
    WB_AUTO_JSON wb_json *window = wb_server_window(&r, b, a);
    struct wb_buf text = WB_BUF_INIT(65536);

    wb_json_canonical(window, &text);
    assert_string_equal(wb_buf_str(&text), want);
    wb_buf_release(&text);
}

static void test_metrics(void **state)
{
    check("[{\"metrics\":{\"reads\":100,\"busy\":3,\"errors\":5}}]",
          "[{\"metrics\":{\"reads\":350,\"busy\":7,\"errors\":4,\"other\":9}}]",
          "{\"histograms\":{},\"instances\":[{\"metrics\":{\"busy\":7,\"errors\":null,"
          "\"errors_reason\":\"ran backwards: the database was restarted in between\","
          "\"other\":9,\"reads\":250.0}}]}");
    check("[null]", "[{\"metrics\":{\"reads\":5}}]",
          "{\"histograms\":{},\"instances\":[{\"metrics\":{\"reads\":null,"
          "\"reads_reason\":\"not known at the start of the window\"}}]}");
}

#define H(unit, counts) \
    "{\"histograms\":{\"h\":{\"unit\":\"" unit "\",\"bounds\":[1,2,1000],\"counts\":" counts "}}}"

static void test_histograms(void **state)
{
    /* 99 values up to 2 us, one up to 1000 us; two nodes together. */
    check("[" H("us", "[5,0,1,0]") "," H("us", "[0,0,0,0]") "]",
          "[" H("us", "[5,50,1,0]") "," H("us", "[0,49,1,0]") "]",
          "{\"histograms\":{\"h\":{\"count\":100,\"max_ms\":1.0,\"p50_ms\":0.002,"
          "\"p99_9_ms\":1.0,\"p99_ms\":0.002}},\"instances\":[{\"metrics\":{}},{\"metrics\":{}}]}");
    /* The unit decides, by exactly 1000. */
    check("[null]", "[" H("ms", "[0,1,0,0]") "]",
          "{\"histograms\":{\"h\":{\"count\":1,\"max_ms\":2.0,\"p50_ms\":2.0,\"p99_9_ms\":2.0,"
          "\"p99_ms\":2.0}},\"instances\":[{\"metrics\":{}}]}");
    /* Above the last bound nothing is known. */
    check("[null]", "[" H("us", "[1,0,0,1]") "]",
          "{\"histograms\":{\"h\":{\"count\":2,\"max_ms\":null,\"max_ms_reason\":\"above the "
          "server's last bucket\",\"p50_ms\":0.001,\"p99_9_ms\":null,\"p99_9_ms_reason\":\"above "
          "the server's last bucket\",\"p99_ms\":null,\"p99_ms_reason\":\"above the server's last "
          "bucket\"}},\"instances\":[{\"metrics\":{}}]}");
}

/* Nothing is made of readings that do not belong together. */
static void test_histograms_refused(void **state)
{
    static const char *const rows[][2] = {
        {"[" H("us", "[2,0,0,0]") "]", "[" H("us", "[1,5,0,0]") "]"}, /* restarted */
        {"[null]", "[" H("us", "[1,2,3]") "]"},                       /* a count is missing */
        {"[" H("us", "[1]") "]", "[" H("us", "[1,2,3,4]") "]"},
        {"[null]", "[" H("s", "[1,2,3,4]") "]"}, /* a unit that is none of ours */
        {"[null,null]", "[" H("us", "[1,2,3,4]") "," H("ms", "[1,2,3,4]") "]"},
        {"[null]", "[" H("us", "[1,\"2\",3,4]") "]"},
        /* One of the readings could not be had: what was before the window is not of it. */
        {"[{\"histograms\":{}}]", "[" H("us", "[1,2,3,4]") "]"},
        {"[null,null]", "[" H("us", "[1,2,3,4]") ",{\"histograms\":{}}]"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_recipe r = {0};
        WB_AUTO_JSON wb_json *b = parse(rows[i][0]);
        WB_AUTO_JSON wb_json *a = parse(rows[i][1]);
        WB_AUTO_JSON wb_json *window = wb_server_window(&r, b, a);
        const wb_json *h = wb_json_get(window, "histograms");

        assert_int_equal(wb_json_type(wb_json_get(h, "h")), WB_JSON_NULL);
        assert_non_null(wb_json_get(h, "h_reason"));
    }
}

static void test_units(void **state)
{
    /* p99 of client and server, ms, as they were seen together; each must fail when the server's is
     * off by 1000 either way. */
    static const double seen[][2] = {{211.9, 88.1}, {1.2, 0.6}, {2.3, 2.299},
                                     {0.35, 0.12},  {51, 45},   {9, 0.3}};

    for (size_t i = 0; i < WB_LEN(seen); i++) {
        assert_null(wb_server_units(seen[i][0], seen[i][1]));
        assert_non_null(wb_server_units(seen[i][0], seen[i][1] / 1000));
        assert_non_null(wb_server_units(seen[i][0], seen[i][1] * 1000));
    }
    /* A bucket of 20 % may lie above the client's own figure. */
    assert_null(wb_server_units(10, 12));
    assert_non_null(wb_server_units(10, 13));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_histograms_refused),
        cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
