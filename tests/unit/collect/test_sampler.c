/* The sampler over fixtures of both control group versions: exact rates, phases, what cannot be
 * read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/collect/collect.h"
#include "tests/unit/collect/fixture.h"

/* The state of a host; everything counts up. */
struct world {
    struct fixture *f;
    int version;
    struct wb_clock *clock;
    struct wb_cgroup_fs *fs;
    long long user, system, idle, iowait, softirq, steal, lo, rx, tx, swap;
    long long db_ns, load_ns, db_bytes, load_bytes, periods, throttled;
    long long foreign, agent, kernel; /* ticks */
};

static void put_group(const struct world *w, const char *name, long long ns, long long bytes,
                      long long periods, long long throttled, int pid)
{
    const struct {
        const char *v1, *v2;
        char *text;
    } files[] = {
        {"cg/cpuacct/%s/cpuacct.usage", NULL, wb_strf("%lld\n", ns)},
        {"cg/cpu/%s/cpu.stat", NULL,
         wb_strf("nr_periods %lld\nnr_throttled %lld\nthrottled_time 0\n", periods, throttled)},
        {"cg/memory/%s/memory.usage_in_bytes", "cg/%s/memory.current", wb_strf("%lld\n", bytes)},
        {"cg/memory/%s/cgroup.procs", "cg/%s/cgroup.procs", wb_strf("%d\n", pid)},
        {NULL, "cg/%s/cpu.stat",
         wb_strf("usage_usec %lld\nuser_usec 0\nnr_periods %lld\nnr_throttled %lld\n", ns / 1000,
                 periods, throttled)},
    };

    for (size_t i = 0; i < WB_LEN(files); i++) {
        const char *form = w->version == 1 ? files[i].v1 : files[i].v2;

        if (form) {
            const char *at = strstr(form, "%s");
            WB_AUTO_FREE char *path = wb_strf("%.*s%s%s", (int)(at - form), form, name, at + 2);

            put(w->f, path, files[i].text);
        }
        free(files[i].text);
    }
}

static void put_world(const struct world *w)
{
    WB_AUTO_FREE char *stat =
        wb_strf("cpu  %lld 0 %lld %lld %lld 0 %lld %lld 0 0\ncpu0 1\ncpu1 1\n", w->user, w->system,
                w->idle, w->iowait, w->softirq, w->steal);
    WB_AUTO_FREE char *net =
        wb_strf("lo: %lld 0 0 0 0 0 0 0 %lld 0\neth0: %lld 0 0 0 0 0 0 0 %lld 0\n", w->lo, w->lo,
                w->rx, w->tx);
    WB_AUTO_FREE char *vm = wb_strf("pswpin %lld\n", w->swap);

    put(w->f, "proc/stat", stat);
    put(w->f, "proc/net/dev", net);
    put(w->f, "proc/vmstat", vm);
    put_process(w->f, (struct proc_line){1, 0, USER_FLAGS, w->foreign, 0, 0, 0, 1});
    put_process(w->f, (struct proc_line){2, 0, KERNEL_FLAGS, 0, w->kernel, 0, 0, 1});
    put_process(w->f, (struct proc_line){40, 1, USER_FLAGS, w->agent, 0, 0, 0, 5});
    put_process(w->f, (struct proc_line){60, 40, USER_FLAGS, w->db_ns / 10000000, 0, 0, 0, 6});
    put_process(w->f, (struct proc_line){61, 40, USER_FLAGS, w->load_ns / 10000000, 0, 0, 0, 7});
    put_group(w, "weighbridge/r-db0", w->db_ns, w->db_bytes, w->periods, w->throttled, 60);
    put_group(w, "weighbridge/r-load", w->load_ns, w->load_bytes, 0, 0, 61);
}

static void begin(struct world *w, void **state, int version)
{
    WB_AUTO_FREE char *root = NULL;

    *w = (struct world){.f = *state, .version = version, .db_bytes = 1 << 20, .load_bytes = 4096};
    w->clock = wb_clock_fake(1000 * WB_SEC, 0);
    if (version == 1)
        put(w->f, "cg/cpuset/tasks", "");
    else
        put(w->f, "cg/cgroup.controllers", "cpuset cpu io memory pids\n");
    put_world(w);
    root = wb_strf("%s/cg", w->f->dir);
    assert_int_equal(wb_cgroup_fs_open(root, &w->fs, NULL), 0);
    assert_int_equal(wb_cgroup_version(w->fs), version);
}

static void end(struct world *w)
{
    wb_cgroup_fs_free(w->fs);
    wb_clock_free(w->clock);
}

static struct wb_sampler *start_with(const struct world *w, bool changes)
{
    static const char *const db[] = {"weighbridge/r-db0", NULL};
    static const char *const load[] = {"weighbridge/r-load", NULL};
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", w->f->dir);
    struct wb_sampler_spec spec = {.cgroups = w->fs,
                                   .proc = proc,
                                   .database = db,
                                   .load = load,
                                   .agent = 40,
                                   .database_changes = changes,
                                   .clock = w->clock};
    struct wb_sampler *s = NULL;

    assert_int_equal(wb_sampler_new(&spec, &s, NULL), 0);
    return s;
}

static struct wb_sampler *start(const struct world *w)
{
    return start_with(w, false);
}

/* One second on a host of two CPUs: the database uses 0.8 cores, the load 0.5, a foreign process
 * 0.1, this engine 0.02, the kernel's threads 0.03; 0.2 s of steal, 0.1 s of soft interrupts. */
static void one_second(struct world *w)
{
    wb_clock_advance(w->clock, WB_SEC);
    w->user += 80;
    w->system += 65;
    w->softirq += 10;
    w->steal += 20;
    w->iowait += 4;
    w->idle += 21;
    w->db_ns += 800 * WB_MS;
    w->load_ns += 500 * WB_MS;
    w->foreign += 10;
    w->agent += 2;
    w->kernel += 3;
    w->lo += 5000;
    w->rx += 300;
    w->tx += 200;
    w->db_bytes += 1000;
    put_world(w);
}

static void check(const wb_json *window, const char *column, double mean, double max)
{
    const wb_json *c = wb_json_get(window, column);
    double m = wb_json_real_or(c, "mean", NAN), x = wb_json_real_or(c, "max", NAN);

    if (!(fabs(m - mean) < 1e-9) || !(fabs(x - max) < 1e-9))
        fail_msg("%s: mean %.12g max %.12g, want %.12g and %.12g", column, m, x, mean, max);
}

static void rates(void **state, int version)
{
    struct world w;
    struct wb_sampler *s;
    WB_AUTO_JSON wb_json *m = NULL, *series = NULL;

    begin(&w, state, version);
    s = start(&w);
    one_second(&w);
    wb_sampler_take(s, "warm-up");
    for (int i = 0; i < 3; i++) {
        one_second(&w);
        wb_sampler_take(s, "measure");
    }
    /* A long sample with twice the foreign work and no swap so far: means are over time. */
    one_second(&w);
    w.foreign += 10;
    one_second(&w);
    w.swap += 6;
    put_world(&w);
    wb_sampler_take(s, "measure");
    one_second(&w);
    wb_sampler_take(s, "drain");
    m = wb_sampler_window(s, "measure");
    assert_int_equal(wb_json_int_or(m, "samples", 0), 4);
    assert_int_equal(wb_json_int_or(m, "cpus", 0), 2);
    assert_true(wb_json_real_or(m, "seconds", 0) == 5.0);
    check(m, "host_busy_percent", 77.5, 77.5);
    check(m, "steal_percent", 10, 10);
    check(m, "iowait_percent", 2, 2);
    check(m, "foreign_cores", (5 * 0.1 + 0.1) / 5, 0.15);
    check(m, "kernel_cores", 0.03, 0.03);
    check(m, "agent_cores", 0.02, 0.02);
    check(m, "database_cores", 0.8, 0.8);
    check(m, "load_cores", 0.5, 0.5);
    /* user + system is 1.45 cores, known are 1.45 and, in the last sample, 0.05 more. */
    check(m, "unexplained_cores", -0.1 / 5, 0);
    check(m, "database_throttled_percent", 0, 0);
    check(m, "load_throttled_percent", 0, 0);
    check(m, "loopback_bytes_per_s", 5000, 5000);
    check(m, "net_rx_bytes_per_s", 300, 300);
    check(m, "net_tx_bytes_per_s", 200, 200);
    check(m, "swap_in_pages_per_s", 1.2, 3);
    assert_int_equal(wb_json_int_or(m, "swap_in_pages", 0), 6);
    assert_int_equal(wb_json_int_or(m, "swap_in_samples", 0), 1);
    check(m, "database_memory_bytes", (1 << 20) + (2000 + 3000 + 4000 + 6000) / 4.0,
          (1 << 20) + 6000);
    check(m, "load_memory_bytes", 4096, 4096);
    assert_null(wb_sampler_window(s, "none"));
    series = wb_sampler_series(s);
    assert_int_equal(wb_json_len(wb_json_get(series, "t_ms")), 6);
    assert_int_equal(wb_json_number(wb_json_at(wb_json_get(series, "t_ms"), 4), 0), 6000);
    assert_string_equal(wb_json_string(wb_json_at(wb_json_get(series, "phase"), 0)), "warm-up");
    assert_string_equal(wb_json_string(wb_json_at(wb_json_get(series, "phase"), 5)), "drain");
    for (void *it = wb_json_first(series); it; it = wb_json_next(series, it))
        assert_int_equal(wb_json_len(wb_json_iter_value(it)), 6);
    wb_sampler_free(s);
    end(&w);
}

static void test_rates_v1(void **state)
{
    rates(state, 1);
}

static void test_rates_v2(void **state)
{
    rates(state, 2);
}

static void test_throttled(void **state)
{
    for (int version = 1; version <= 2; version++) {
        struct world w;
        struct wb_sampler *s;
        WB_AUTO_JSON wb_json *m = NULL;

        drop(*state, "cg");
        begin(&w, state, version);
        s = start(&w);
        one_second(&w);
        w.periods += 100;
        w.throttled += 30;
        put_world(&w);
        wb_sampler_take(s, "measure");
        one_second(&w);
        w.periods += 50;
        put_world(&w);
        wb_sampler_take(s, "measure");
        m = wb_sampler_window(s, "measure");
        check(m, "database_throttled_percent", 20, 30);
        wb_sampler_free(s);
        end(&w);
    }
}

static void check_null(const wb_json *window, const char *column, const char *why)
{
    WB_AUTO_FREE char *key = wb_strf("%s_reason", column);

    assert_non_null(wb_json_get(window, column));
    assert_int_equal(wb_json_type(wb_json_get(window, column)), WB_JSON_NULL);
    if (!strstr(wb_json_str_or(window, key, ""), why))
        fail_msg("%s: '%s' lacks '%s'", column, wb_json_str_or(window, key, ""), why);
}

/* Nothing that cannot be read is taken for nothing that happened. */
static void test_unreadable(void **state)
{
    struct world w;
    struct wb_sampler *s;
    WB_AUTO_JSON wb_json *m = NULL, *drain = NULL, *series = NULL;

    begin(&w, state, 1);
    s = start(&w);
    for (int i = 0; i < 5; i++) {
        one_second(&w);
        if (i == 4)
            drop(w.f, "cg/cpuacct/weighbridge/r-load");
        wb_sampler_take(s, "measure");
    }
    m = wb_sampler_window(s, "measure");
    check(m, "load_cores", 0.5, 0.5); /* one of five: the others stand for it */
    one_second(&w);
    drop(w.f, "proc/stat");
    drop(w.f, "proc/net");
    drop(w.f, "proc/vmstat");
    drop(w.f, "cg/cpu/weighbridge/r-db0");
    drop_process(w.f, 1);
    wb_sampler_take(s, "drain");
    drain = wb_sampler_window(s, "drain");
    check_null(drain, "host_busy_percent", "1 of 1 samples could not be read");
    check_null(drain, "steal_percent", "1 of 1 samples could not be read");
    check_null(drain, "foreign_cores", "does not show process 1");
    check_null(drain, "unexplained_cores", "1 of 1");
    check_null(drain, "database_cores", "1 of 1");
    check_null(drain, "database_throttled_percent", "1 of 1");
    check_null(drain, "database_memory_bytes", "1 of 1");
    check_null(drain, "net_rx_bytes_per_s", "1 of 1");
    check_null(drain, "swap_in_pages_per_s", "1 of 1");
    assert_int_equal(wb_json_int_or(drain, "cpus", -1), 0);
    series = wb_sampler_series(s);
    assert_int_equal(wb_json_type(wb_json_at(wb_json_get(series, "host_busy_percent"), 5)),
                     WB_JSON_NULL);
    assert_true(wb_json_is_number(wb_json_at(wb_json_get(series, "host_busy_percent"), 4)));
    wb_sampler_free(s);
    end(&w);
}

/* Groups that come, go and begin anew: no second of CPU time is lost or counted twice. */
static void test_changes(void **state)
{
    struct world w;
    struct wb_sampler *s;
    WB_AUTO_JSON wb_json *m = NULL;

    begin(&w, state, 1);
    s = start_with(&w, true);
    one_second(&w);
    wb_sampler_take(s, "measure"); /* 0.8 */
    /* Another one comes with 0.3 s of its own. */
    wb_sampler_add_database(s, "weighbridge/r-op");
    wb_sampler_add_database(s, "weighbridge/r-op");
    one_second(&w);
    put_group(&w, "weighbridge/r-op", 300 * WB_MS, 0, 0, 0, 77);
    wb_sampler_take(s, "measure"); /* 1.1 */
    /* It goes; what it has used stays used, also what nobody has seen, and all of one that came and
     * went in between. */
    drop(w.f, "cg/cpuacct/weighbridge/r-op");
    wb_sampler_database_ended(s, "weighbridge/r-op", 450 * WB_MS);
    wb_sampler_database_ended(s, "weighbridge/r-op", 100 * WB_MS);
    wb_sampler_database_ended(s, "weighbridge/r-op", -1);
    one_second(&w);
    wb_sampler_take(s, "measure"); /* 1.05 */
    /* The database is made anew and counts from 0. */
    one_second(&w);
    put_group(&w, "weighbridge/r-db0", 200 * WB_MS, 4096, 0, 0, 20);
    wb_sampler_take(s, "measure"); /* 0.2 */
    m = wb_sampler_window(s, "measure");
    check(m, "database_cores", (0.8 + 1.1 + 1.05 + 0.2) / 4, 1.1);
    wb_sampler_free(s);
    end(&w);
}

static void test_no_time(void **state)
{
    struct world w;
    struct wb_sampler *s;
    WB_AUTO_JSON wb_json *m = NULL;

    begin(&w, state, 2);
    s = start(&w);
    wb_sampler_take(s, "measure"); /* at the same instant: no rate, no division by zero */
    m = wb_sampler_window(s, "measure");
    check_null(m, "database_cores", "1 of 1");
    check_null(m, "host_busy_percent", "1 of 1");
    wb_sampler_free(s);
    wb_sampler_free(NULL);
    end(&w);
}

/* This very machine: the sampler sees the spinning of its own process as the agent's. */
static void test_real(void **state)
{
    struct wb_cgroup_fs *fs = NULL;
    struct wb_sampler_spec spec = {.proc = "/proc", .agent = getpid()};
    struct wb_sampler *s = NULL;
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *m = NULL;
    int64_t until;

    (void)state;
    assert_int_equal(wb_sampler_new(&spec, &s, &err), -WB_INVALID);
    if (wb_cgroup_fs_open("/sys/fs/cgroup", &fs, &err) < 0)
        skip();
    spec.cgroups = fs;
    assert_int_equal(wb_sampler_new(&spec, &s, &err), 0);
    for (until = wb_now_ns(NULL) + 300 * WB_MS; wb_now_ns(NULL) < until;)
        ;
    wb_sampler_take(s, "spin");
    m = wb_sampler_window(s, "spin");
    assert_true(wb_json_real_or(m, "seconds", 0) >= 0.3);
    assert_true(wb_json_int_or(m, "cpus", 0) >= 1);
    check_null(m, "database_cores", "1 of 1"); /* no group was named */
    if (wb_json_type(wb_json_get(m, "agent_cores")) != WB_JSON_NULL)
        assert_true(wb_json_real_or(wb_json_get(m, "agent_cores"), "mean", 0) > 0.01);
    wb_sampler_free(s);
    wb_cgroup_fs_free(fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rates_v1, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rates_v2, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_throttled, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_changes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_time, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_real),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
