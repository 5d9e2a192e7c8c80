/* Facts of the machine, the state of a host before and after, the canary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/collect/collect.h"
#include "tests/unit/collect/fixture.h"

static void put_governor(const struct fixture *f, int cpu, const char *word)
{
    WB_AUTO_FREE char *name = wb_strf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
    WB_AUTO_FREE char *text = wb_strf("%s\n", word);

    put(f, name, text);
}

static void check_governor(const struct fixture *f, const char *want)
{
    WB_AUTO_FREE char *sys = wb_strf("%s/sys", f->dir);
    WB_AUTO_FREE char *have = wb_governor(sys);

    if (want)
        assert_string_equal(have, want);
    else
        assert_null(have);
}

static void test_governor(void **state)
{
    const struct fixture *f = *state;

    check_governor(f, NULL);
    put(f, "sys/devices/system/cpu/cpufreq/policy0/x", "y"); /* no CPU of its own */
    put(f, "sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
    check_governor(f, NULL);
    for (int i = 0; i < 12; i++)
        put_governor(f, i, "performance");
    check_governor(f, "performance");
    put_governor(f, 3, "powersave");
    put_governor(f, 11, "powersave");
    put_governor(f, 0, "ondemand");
    check_governor(f, "ondemand x1, performance x9, powersave x2");
}

/* The fixture as one of the two halves of the recorded state says. */
static void put_state(const struct fixture *f, const wb_json *s)
{
    const wb_json *governor = wb_json_get(s, "governor");
    WB_AUTO_FREE char *vm =
        wb_strf("pswpin %lld\n", (long long)wb_json_int_or(s, "swap_in_pages", 0));
    WB_AUTO_FREE char *mem =
        wb_strf("Cached: %.0f kB\n", wb_json_real_or(s, "page_cache_gib", 0) * 1024 * 1024);
    WB_AUTO_FREE char *boot = wb_strf("%s\n", wb_json_str_or(s, "boot_id", ""));
    WB_AUTO_FREE char *load = wb_strf("%.2f 0.00 0.00 1/2 3\n", wb_json_real_or(s, "load1", 0));
    WB_AUTO_FREE char *heat = wb_strf("%lld\n", (long long)wb_json_int_or(s, "throttle_count", 0));
    int cpu = 0;

    for (void *it = wb_json_first(governor); it; it = wb_json_next(governor, it))
        for (double n = wb_json_number(wb_json_iter_value(it), 0); n > 0; n--)
            put_governor(f, cpu++, wb_json_iter_key(it));
    put(f, "proc/vmstat", vm);
    put(f, "proc/meminfo", mem);
    put(f, "proc/sys/kernel/random/boot_id", boot);
    put(f, "proc/loadavg", load);
    put(f, "sys/devices/system/cpu/cpu7/thermal_throttle/core_throttle_count", heat);
}

static const char *text_of(const wb_json *evidence, const char *name)
{
    for (size_t i = 0; i < wb_json_len(evidence); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(evidence, i), "name", ""), name))
            return wb_json_str_or(wb_json_at(evidence, i), "text", "");
    return "";
}

static void test_recorded_host(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir), *sys = wb_strf("%s/sys", f->dir);
    WB_AUTO_JSON wb_json *doc = NULL, *before = NULL, *after = NULL, *evidence = wb_json_array();
    const wb_json *warnings;

    assert_int_equal(wb_json_read_file("tests/data/cases/014-host-state.json", 65536, &doc, NULL),
                     0);
    warnings = wb_json_get(doc, "expected_warnings");
    put_state(f, wb_json_get(doc, "before"));
    before = wb_host_state(proc, sys);
    put_state(f, wb_json_get(doc, "after"));
    after = wb_host_state(proc, sys);
    assert_string_equal(wb_json_str_or(before, "governor", ""), "performance x30, powersave x2");
    assert_string_equal(wb_json_str_or(after, "boot_id", ""), "b-1");
    assert_int_equal(wb_json_int_or(after, "throttle_count", 0), 418);
    assert_int_equal(wb_json_int_or(after, "page_cache_bytes", 0), 61LL << 30);
    assert_true(wb_json_real_or(after, "load1", 0) == 29.0);
    assert_int_equal(wb_host_state_judge(before, after, evidence), WB_NOISY);
    assert_string_equal(text_of(evidence, "heat-throttling"),
                        wb_json_string(wb_json_at(warnings, 1)));
    assert_string_equal(text_of(evidence, "swap-in"), wb_json_string(wb_json_at(warnings, 2)));
    assert_null(wb_evidence_outcome(evidence));
    wb_json_set_str(after, "boot_id", "b-2");
    assert_int_equal(wb_host_state_judge(before, after, evidence), WB_INVALID_RUN);
    assert_string_equal(wb_evidence_outcome(evidence), "infra-error");
}

static void test_bare_host(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *none = wb_strf("%s/none", f->dir);
    WB_AUTO_JSON wb_json *s = wb_host_state(none, none), *evidence = wb_json_array();
    static const char *const keys[] = {"governor",         "throttle_count", "swap_in_pages",
                                       "page_cache_bytes", "boot_id",        "load1"};

    for (size_t i = 0; i < WB_LEN(keys); i++) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", keys[i]);

        assert_non_null(wb_json_get(s, keys[i]));
        assert_int_equal(wb_json_type(wb_json_get(s, keys[i])), WB_JSON_NULL);
        assert_non_null(wb_json_string(wb_json_get(s, reason)));
    }
    assert_int_equal(wb_host_state_judge(s, s, evidence), WB_VALID);
    assert_int_equal(wb_json_len(evidence), 3);
}

static void test_facts(void **state)
{
    static const char *const keys[] = {
        "kernel",       "machine",    "distribution",          "libc",       "cpu_model",
        "cpus",         "governor",   "memory_bytes",          "swap_bytes", "cgroup_version",
        "clock_source", "swappiness", "transparent_hugepages", "boot_id",    "time_zone"};
    WB_AUTO_JSON wb_json *facts = NULL;

    (void)state;
    assert_int_equal(wb_environment_facts(&facts, NULL), 0);
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", keys[i]);
        const wb_json *v = wb_json_get(facts, keys[i]);

        if (!v || (wb_json_type(v) == WB_JSON_NULL && !wb_json_get(facts, reason)))
            fail_msg("fact %s is neither given nor explained", keys[i]);
    }
    assert_int_equal(wb_json_int_or(facts, "cpus", 0), sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(wb_json_int_or(facts, "memory_bytes", 0) > 1 << 20);
    assert_int_equal(strlen(wb_json_str_or(facts, "boot_id", "")), 36);
}

static void test_canary(void **state)
{
    cpu_set_t before, after;
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    assert_true(wb_cpu_canary(cpu) > WB_US);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(wb_cpu_canary(-1), -1);
    assert_int_equal(wb_cpu_canary(1023), -1);
    assert_int_equal(wb_cpu_canary(1 << 20), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_governor, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_recorded_host, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_bare_host, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_canary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
