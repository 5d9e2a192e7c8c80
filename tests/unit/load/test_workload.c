#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/load/workload.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/node.h"

static int apply(struct wb_load_job *job, const char *text, const char *phase, struct wb_err *err)
{
    struct wb_node *root = NULL;
    int rc = wb_yaml_parse(text, strlen(text), &root, err);

    wb_load_job_init(job);
    job->target = wb_strdup("null://");
    if (rc == 0)
        rc = wb_workload_apply(job, root, phase, err);
    wb_node_free(root);
    return rc == 0 ? wb_load_job_check(job, err) : rc;
}

static const char users[] =
    "slo: {search: true, p99: 5ms}\n"
    "workload:\n"
    "  data: {rows: 10_000, key: 64B, value: {size: 100..1KiB, content: 60%}}\n"
    "  phases:\n"
    "    - {name: load, op: insert, order: sequential}\n"
    "    - {name: max, op: get, keys: zipf:1.1, connections: 20, depth: 4, rate: max, for: 5s}\n"
    "    - {name: mixed, mix: {get: 77%, set: 23%}, rate: 20k/s, arrivals: poisson, warm_up: 2s,"
    " for: 1m, timeout: 3s, threads: 2}\n"
    "    - {name: steps, op: get, rate: [1k/s, 2k/s], for: 1s}\n"
    "    - {name: highest, op: get, rate: search from 2k/s, for: 1s}\n"
    "    - {name: find, op: get, rate: search, for: 1s}\n"
    "    - name: users\n"
    "      transactions:\n"
    "        login: [get, 10..100*get@derived]\n"
    "        signup: [set, get, set]\n"
    "      mix: {login: 90%, signup: 10%}\n"
    "      rate: 100/s\n"
    "      for: 10s\n";

static void test_phases(void **state)
{
    struct wb_load_job job;
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_int_equal(apply(&job, users, "max", &err), 0);
    assert_int_equal(job.keys, 10000);
    assert_int_equal(job.key_bytes, 64);
    assert_int_equal(job.size_law.kind, WB_SIZE_UNIFORM);
    assert_int_equal(job.value_bytes, 1024);
    assert_true(job.zeros_share > 0.59 && job.zeros_share < 0.61);
    assert_int_equal(job.model, WB_LOAD_CLOSED);
    assert_true(job.key_law.exponent == 1.1);
    assert_int_equal(job.connections, 20);
    assert_int_equal(job.depth, 4);
    assert_int_equal(job.for_ns, 5 * WB_SEC);
    wb_load_job_release(&job);

    assert_int_equal(apply(&job, users, "mixed", &err), 0);
    assert_int_equal(job.model, WB_LOAD_OPEN);
    assert_true(job.rate_per_s == 20000);
    assert_int_equal(job.arrivals, WB_LOAD_POISSON);
    assert_int_equal(job.nmix, 2);
    assert_string_equal(job.mix[0].name, "get");
    assert_true(job.mix[0].weight == 77);
    assert_int_equal(job.warm_up_ns, 2 * WB_SEC);
    assert_int_equal(job.timeout_ns, 3 * WB_SEC);
    assert_int_equal(job.threads, 2);
    wb_load_job_release(&job);

    assert_int_equal(apply(&job, users, "steps", &err), 0);
    assert_int_equal(job.nsweep, 2);
    assert_true(job.sweep[1] == 2000);
    wb_load_job_release(&job);

    assert_int_equal(apply(&job, users, "highest", &err), 0);
    assert_true(job.search && job.slo.percentile == 99 && job.slo.limit_ns == 5 * WB_MS);
    assert_true(job.rate_per_s == 2000);
    wb_load_job_release(&job);
    assert_int_equal(apply(&job, users, "find", &err), 0);
    assert_true(job.search && job.rate_per_s == 0);
    wb_load_job_release(&job);

    assert_int_equal(apply(&job, users, "users", &err), 0);
    assert_int_equal(job.ntxn, 2);
    assert_string_equal(job.txn[1].name, "signup");
    assert_int_equal(job.txn[0].step[1].most, 100);
    assert_string_equal(job.mix[0].name, "login");
    assert_true(job.mix[0].weight == 90);
    wb_load_job_release(&job);

    assert_int_equal(
        apply(&job, "data: {rows: 5}\nphases: [{name: a, op: get, for: 1s}]\n", NULL, &err), 0);
    assert_int_equal(job.keys, 5);
    wb_load_job_release(&job);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *phase, *says;
    } rows[] = {
        {"[]", NULL, "needs phases"},
        {"data: {rows: 5}", NULL, "needs phases"},
        {"phases: {}", NULL, "line 1: phases must be a list"},
        {"phases: [x]", NULL, "list of maps with names"},
        {"phases: [{op: get}]", NULL, "list of maps with names"},
        {"phases: []", NULL, "0 phases that measure"},
        {"phases: [{name: a}, {name: b}]", NULL,
         "2 phases that measure: choose with --phase from: a, b"},
        {"phases: [{name: a}]", "c", "no phase 'c' (it has: a)"},
        {"phases: [{name: a, op: insert, order: sequential}]", NULL, "0 phases"},
        {"phases: [{name: a}]\nextra: 1", NULL, "line 2: extra is no key of a workload"},
        {"phases:\n- name: a\n  nosuch: 1", NULL, "line 3: nosuch is no key of a phase"},
        {"phases: [{name: a, depth: [1, 2]}]", NULL, "depth must be a text"},
        {"phases: [{name: a, depth: x}]", NULL, "line 1: depth"},
        {"phases: [{name: a, mix: get}]", NULL, "mix must be a map"},
        {"phases: [{name: a, mix: {get: [1]}}]", NULL, "get must be a share"},
        {"phases: [{name: a, rate: 60% of calibrated}]", NULL, "known to a campaign only"},
        {"phases: [{name: a, rate: {a: 1}}]", NULL, "rate must be a list"},
        {"phases: [{name: a, rate: [[1]]}]", NULL, "list of texts"},
        {"phases: [{name: a, transactions: [get]}]", NULL, "transactions must be a map"},
        {"phases: [{name: a, transactions: {t: get}}]", NULL, "t must be a list"},
        {"data: {rows: x}\nphases: [{name: a}]", NULL, "line 1: rows"},
        {"data: {value: 5}\nphases: [{name: a}]", NULL, "value must be a map with size"},
        {"data: {value: {size: 5, colour: red}}\nphases: [{name: a}]", NULL, "colour is no key"},
        {"data: {key: 0B}\nphases: [{name: a}]", NULL, "key"},
        {"data: {columns: 5}\nphases: [{name: a}]", NULL, "columns is no key of data"},
        {"data: 5\nphases: [{name: a}]", NULL, "data must be a map"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_load_job job;
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        if (apply(&job, rows[i].text, rows[i].phase, &err) >= 0)
            fail_msg("%s was taken", rows[i].text);
        if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
            fail_msg("%s: '%s' does not say '%s'", rows[i].text, text, rows[i].says);
        wb_load_job_release(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
