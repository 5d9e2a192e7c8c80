/* The verdict of a stored run can be made again from its result, with its own limits or others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/collect/collect.h"
#include "server/study/study.h"

static const struct wb_validity_limits limits = {
    .steal_noisy = 1,
    .steal_invalid = 5,
    .foreign_noisy = 0.25,
    .foreign_invalid = 1,
    .canary_noisy = 2,
    .canary_invalid = 5,
    .throttled_noisy = 1,
    .client_cpu_noisy = 80,
    .client_cpu_limited = 95,
    .run_queue_noisy = 10,
    .errors_noisy = 0.01,
    .errors_fail = 1,
};

/* A run with a data load, one noisy window (steal 2 %) and a host that stayed as it was. */
static wb_json *stored_result(void)
{
    static const char text[] =
        "{\"phases\":["
        "{\"name\":\"load\",\"model\":\"closed\",\"measured\":false,"
        "\"load\":{\"verdict\":\"failed\"},\"samples\":null},"
        "{\"name\":\"max\",\"model\":\"closed\",\"measured\":true,\"in_flight\":100,"
        "\"samples\":{\"samples\":10,\"seconds\":10,\"cpus\":32,"
        "\"steal_percent\":{\"mean\":2.25,\"max\":3},\"foreign_cores\":{\"mean\":0.01,\"max\":0.1},"
        "\"database_throttled_percent\":{\"mean\":7,\"max\":9},"
        "\"load_throttled_percent\":{\"mean\":0,\"max\":0},\"swap_in_pages\":0,"
        "\"swap_in_samples\":0},\"cpu_quota\":true,"
        "\"load\":{\"verdict\":\"server-bound\",\"reasons\":[],\"achieved_per_s\":100000,"
        "\"scheduled\":1000000,\"ok\":1000000,\"failed\":0,\"errors\":{},"
        "\"operations\":{\"all\":{\"service\":{\"mean_ms\":1}}},"
        "\"client\":{\"threads\":[{\"cpu_percent\":40,\"run_queue_percent\":1}]}}}],"
        "\"canary\":{\"before_ns\":30000000,\"after_ns\":30300000},"
        "\"governor\":{\"before\":\"performance\",\"after\":\"performance\"},"
        "\"host_state\":{\"before\":{\"boot_id\":\"a\"},\"after\":{\"boot_id\":\"a\"}}}";
    wb_json *r = NULL;

    assert_int_equal(wb_json_parse(text, sizeof(text) - 1, &r, NULL), 0);
    wb_json_set(r, "validity", wb_validity_rules_json(&limits));
    return r;
}

static char *canonical(const wb_json *j)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    wb_json_canonical(j, &b);
    return wb_buf_take(&b);
}

static void test_same(void **state)
{
    WB_AUTO_JSON wb_json *r = stored_result();
    WB_AUTO_JSON wb_json *evidence = wb_json_array();
    WB_AUTO_JSON wb_json *again = wb_json_array();
    WB_AUTO_JSON wb_json *read = NULL;
    WB_AUTO_FREE char *text = canonical(r);
    enum wb_validity v = WB_VALID, w = WB_VALID;

    assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, NULL), 0);
    assert_int_equal(v, WB_NOISY);
    /* The same from the text that is stored, to the last byte. */
    assert_int_equal(wb_json_parse(text, strlen(text), &read, NULL), 0);
    assert_int_equal(wb_validity_of_result(read, NULL, &w, again, NULL), 0);
    assert_int_equal(w, v);
    WB_AUTO_FREE char *a = canonical(evidence);
    WB_AUTO_FREE char *b = canonical(again);
    assert_string_equal(a, b);
    /* The data load is no window. */
    for (size_t i = 0; i < wb_json_len(evidence); i++)
        assert_string_not_equal(wb_json_str_or(wb_json_at(evidence, i), "phase", ""), "load");
}

static void test_other_limits(void **state)
{
    static const struct {
        double noisy, invalid;
        enum wb_validity want;
    } cases[] = {
        {1, 5, WB_NOISY}, {2.25, 5, WB_VALID}, {2.2, 2.2, WB_INVALID_RUN}, {3, 5, WB_VALID}};
    WB_AUTO_JSON wb_json *r = stored_result();

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *evidence = wb_json_array();
        struct wb_validity_limits l = limits;
        enum wb_validity v = WB_UNVERIFIED;

        l.steal_noisy = cases[i].noisy;
        l.steal_invalid = cases[i].invalid;
        assert_int_equal(wb_validity_of_result(r, &l, &v, evidence, NULL), 0);
        assert_int_equal(v, cases[i].want);
    }
}

static void test_limits_read_back(void **state)
{
    WB_AUTO_JSON wb_json *j = wb_validity_json(&limits);
    struct wb_validity_limits back;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_validity_limits_read(j, &back, NULL), 0);
    assert_memory_equal(&back, &limits, sizeof(back));
    wb_json_del(wb_json_get(j, "errors"), "fail");
    assert_int_equal(wb_validity_limits_read(j, &back, &err), -WB_UNSUPPORTED);
    assert_non_null(strstr(err.root, "errors"));
    assert_int_equal(wb_validity_limits_read(NULL, &back, NULL), -WB_UNSUPPORTED);
}

static void test_refused(void **state)
{
    WB_AUTO_JSON wb_json *r = stored_result();
    WB_AUTO_JSON wb_json *evidence = wb_json_array();
    enum wb_validity v = WB_NOISY;
    struct wb_err err = WB_ERR_INIT;

    wb_json_set_int(wb_json_get(r, "validity"), "rules", WB_VALIDITY_RULES + 1);
    assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, &err), -WB_UNSUPPORTED);
    wb_json_del(r, "validity");
    assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, &err), -WB_UNSUPPORTED);
    assert_int_equal(wb_json_len(evidence), 0);
    assert_int_equal(v, WB_NOISY); /* outputs are untouched on failure */
}

static void test_no_window(void **state)
{
    WB_AUTO_JSON wb_json *r = stored_result();
    WB_AUTO_JSON wb_json *evidence = wb_json_array();
    enum wb_validity v = WB_VALID;

    wb_json_set(wb_json_at(wb_json_get(r, "phases"), 1), "load", wb_json_null());
    assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, NULL), 0);
    assert_int_equal(v, WB_UNVERIFIED);
    assert_int_equal(wb_json_len(evidence), 0);
}

/* A foreign program gives no verdict, wb-load must. */
static void test_foreign(void **state)
{
    WB_AUTO_JSON wb_json *r = stored_result();
    wb_json *load = wb_json_get(wb_json_at(wb_json_get(r, "phases"), 1), "load");
    enum wb_validity v = WB_VALID;

    wb_json_set_reason(load, "verdict", "not asked");
    for (int foreign = 0; foreign < 2; foreign++) {
        WB_AUTO_JSON wb_json *evidence = wb_json_array();

        if (foreign)
            wb_json_set(load, "tool", wb_json_object());
        assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, NULL), 0);
        assert_int_equal(v, foreign ? WB_NOISY : WB_INVALID_RUN);
        if (foreign)
            assert_null(wb_evidence_outcome(evidence));
        else
            assert_string_equal(wb_evidence_outcome(evidence), "harness-error");
    }
}

/* Too small a product of rate and latency is the client's, unless a foreign program that had CPU to
 * spare leaves time out of its latencies. */
static void test_little(void **state)
{
    static const struct {
        bool foreign;
        double cpu;
        enum wb_validity want;
    } cases[] = {{false, 40, WB_CLIENT_LIMITED},
                 {true, 40, WB_NOISY},
                 {true, 80, WB_NOISY},
                 {true, 81, WB_CLIENT_LIMITED}};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *r = stored_result();
        WB_AUTO_JSON wb_json *evidence = wb_json_array();
        wb_json *load = wb_json_get(wb_json_at(wb_json_get(r, "phases"), 1), "load");
        enum wb_validity v = WB_VALID;

        wb_json_set_real(load, "achieved_per_s", 79000);
        wb_json_set_real(wb_json_at(wb_json_path(load, "client.threads"), 0), "cpu_percent",
                         cases[i].cpu);
        if (cases[i].foreign) {
            wb_json_set_reason(load, "verdict", "not asked");
            wb_json_set(load, "tool", wb_json_object());
        }
        assert_int_equal(wb_validity_of_result(r, NULL, &v, evidence, NULL), 0);
        assert_int_equal(v, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),    cmocka_unit_test(test_other_limits),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_limits_read_back),
        cmocka_unit_test(test_foreign), cmocka_unit_test(test_no_window),
        cmocka_unit_test(test_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
