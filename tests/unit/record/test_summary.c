#include "tests/unit/record/fixture.h"

static const struct {
    const char *result;
    const char *metrics;  /* canonical; NULL: refused */
    const char *headline; /* canonical */
} cases[] = {
    {"{\"phases\":[]}", "{}", "{\"p99\":null,\"throughput\":null}"},
    {"{\"phases\":[{\"name\":\"a\",\"model\":\"closed\",\"load\":null}]}", "{}",
     "{\"p99\":null,\"throughput\":null}"},
    /* closed: service times; a null figure has no metric */
    {"{\"phases\":[{\"name\":\"a\",\"model\":\"closed\",\"load\":{\"achieved_per_s\":10,"
     "\"operations\":{\"all\":{\"response\":{\"p99_ms\":9},\"service\":{\"p99_ms\":2,\"p50_ms\":"
     "null}}}}}]}",
     "{\"a.p99_ms\":{\"better\":\"lower\",\"unit\":\"ms\",\"value\":2},\"a.throughput\":"
     "{\"better\":\"higher\",\"unit\":\"ops/s\",\"value\":10}}",
     "{\"p99\":\"a.p99_ms\",\"throughput\":\"a.throughput\"}"},
    /* open: response times; the model of the load counts when the phase has none */
    {"{\"phases\":[{\"name\":\"a\",\"load\":{\"model\":\"open\",\"achieved_per_s\":null,"
     "\"operations\":{\"all\":{\"response\":{\"p99_9_ms\":9.5},\"service\":{\"p99_ms\":2}}}}}]}",
     "{\"a.p99_9_ms\":{\"better\":\"lower\",\"unit\":\"ms\",\"value\":9.5}}",
     "{\"p99\":null,\"throughput\":null}"},
    /* a phase that only prepares stands for nothing */
    {"{\"phases\":[{\"name\":\"l\",\"model\":\"closed\",\"measured\":false,\"load\":"
     "{\"achieved_per_s\":5}},{\"name\":\"m\",\"model\":\"open\",\"load\":{\"achieved_per_s\":6}}]"
     "}",
     "{\"l.throughput\":{\"better\":\"higher\",\"unit\":\"ops/s\",\"value\":5},\"m.throughput\":"
     "{\"better\":\"higher\",\"unit\":\"ops/s\",\"value\":6}}",
     "{\"p99\":null,\"throughput\":\"m.throughput\"}"},
    /* transactions: rates and times are theirs; the rate that a search found is the headline */
    {"{\"phases\":[{\"name\":\"s\",\"model\":\"open\",\"load\":{\"achieved_per_s\":90,"
     "\"sustained_per_s\":12,\"transactions\":{\"achieved_per_s\":11,\"all\":{\"response\":"
     "{\"p99_ms\":4}}},\"operations\":{\"all\":{\"response\":{\"p99_ms\":1}}}}}]}",
     "{\"s.p99_ms\":{\"better\":\"lower\",\"unit\":\"ms\",\"value\":4},\"s.sustained\":"
     "{\"better\":\"higher\",\"unit\":\"ops/s\",\"value\":12},\"s.throughput\":"
     "{\"better\":\"higher\",\"unit\":\"ops/s\",\"value\":11}}",
     "{\"p99\":\"s.p99_ms\",\"throughput\":\"s.sustained\"}"},
    {"{}", NULL, NULL},
    {"{\"phases\":{}}", NULL, NULL},
    {"{\"phases\":[3]}", NULL, NULL},
    {"{\"phases\":[{\"name\":\"../x\",\"load\":null}]}", NULL, NULL},
    {"{\"phases\":[{\"name\":\"a\",\"model\":\"half-open\",\"load\":{}}]}", NULL, NULL},
    {"{\"phases\":[{\"name\":\"a\",\"load\":{}}]}", NULL, NULL},
    {"{\"phases\":[{\"name\":\"a\",\"model\":\"open\",\"load\":{\"achieved_per_s\":1}},"
     "{\"name\":\"a\",\"model\":\"open\",\"load\":{\"achieved_per_s\":1}}]}",
     NULL, NULL},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *result = must_json(cases[i].result);
        WB_AUTO_JSON wb_json *metrics = NULL;
        WB_AUTO_JSON wb_json *headline = NULL;
        struct wb_buf text = WB_BUF_INIT(65536);
        struct wb_err err = WB_ERR_INIT;
        int rc = wb_summary_metrics(result, &metrics, &err);

        if (!cases[i].metrics) {
            assert_int_equal(rc, -WB_INVALID);
            assert_null(metrics);
            assert_true(strstr(err.root, "result") != NULL);
            continue;
        }
        assert_int_equal(rc, 0);
        wb_json_canonical(metrics, &text);
        assert_string_equal(wb_buf_str(&text), cases[i].metrics);
        wb_buf_clear(&text);
        headline = wb_summary_headline(result, metrics);
        wb_json_canonical(headline, &text);
        assert_string_equal(wb_buf_str(&text), cases[i].headline);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
