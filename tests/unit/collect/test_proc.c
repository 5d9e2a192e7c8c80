/* Counters from /proc: exact values, odd names, missing and torn files; whose CPU time it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "server/collect/processes.h"
#include "tests/unit/collect/fixture.h"

static void test_cpu(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    struct wb_cpu_ticks t = {0};
    struct wb_err err = WB_ERR_INIT;

    put(f, "proc/stat",
        "cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 0 0\n"
        "intr 1 2 3\nctxt 5\n");
    assert_int_equal(wb_proc_cpu(proc, &t, &err), 0);
    assert_int_equal(t.user, 10);
    assert_int_equal(t.nice, 20);
    assert_int_equal(t.system, 30);
    assert_int_equal(t.idle, 400);
    assert_int_equal(t.iowait, 50);
    assert_int_equal(t.irq, 6);
    assert_int_equal(t.softirq, 7);
    assert_int_equal(t.steal, 8);
    assert_int_equal(t.cpus, 2);
    put(f, "proc/stat", "cpu  10 20 30 400 50 6 7\n"); /* too old: no steal */
    assert_int_equal(wb_proc_cpu(proc, &t, &err), -WB_PROTOCOL);
    put(f, "proc/stat", "intr 10\n");
    assert_int_equal(wb_proc_cpu(proc, &t, &err), -WB_PROTOCOL);
    put(f, "proc/stat", "");
    assert_int_equal(wb_proc_cpu(proc, &t, &err), -WB_PROTOCOL);
    drop(f, "proc/stat");
    assert_int_equal(wb_proc_cpu(proc, &t, &err), -WB_NOT_FOUND);
    assert_int_equal(t.user, 10); /* untouched by failures */
}

static void test_net(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    struct wb_net_bytes n = {0};

    put(f, "proc/net/dev",
        "Inter-|   Receive                    |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
        "    lo:    3193      29    0    0    0     0          0         0     3193      29 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n"
        "lo1:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n");
    assert_int_equal(wb_proc_net(proc, &n, NULL), 0);
    assert_int_equal(n.loopback, 3193);
    assert_int_equal(n.rx, 1005);
    assert_int_equal(n.tx, 56);
    put(f, "proc/net/dev", "Inter-|   Receive\n");
    assert_int_equal(wb_proc_net(proc, &n, NULL), -WB_PROTOCOL);
    put(f, "proc/net/dev", "  eth0: 1000 1 0");
    assert_int_equal(wb_proc_net(proc, &n, NULL), -WB_PROTOCOL);
    assert_int_equal(n.rx, 1005);
}

static void test_memory(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    int64_t v = -1;

    put(f, "proc/vmstat", "pgpgin 9\npswpin_x 3\npswpin 42\npswpout 7\n");
    assert_int_equal(wb_proc_swap_in(proc, &v, NULL), 0);
    assert_int_equal(v, 42);
    put(f, "proc/vmstat", "pgpgin 9\n");
    assert_int_equal(wb_proc_swap_in(proc, &v, NULL), 0);
    assert_int_equal(v, 0);
    drop(f, "proc/vmstat");
    assert_int_equal(wb_proc_swap_in(proc, &v, NULL), -WB_NOT_FOUND);
    put(f, "proc/meminfo", "MemTotal:       24600000 kB\nCached:  12 kB\nSwapCached: 1 kB\n");
    assert_int_equal(wb_proc_meminfo(proc, "Cached", &v, NULL), 0);
    assert_int_equal(v, 12288);
    assert_int_equal(wb_proc_meminfo(proc, "Mem", &v, NULL), -WB_NOT_FOUND);
    assert_int_equal(v, 12288);
}

static void test_pid_line(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "12",
        "12 (a",
        "12 (a)",
        "12 (a) ",
        "12 (a) S",
        "12 (a) S 1 2 3",
        "12 (a) S 1 1 1 0 -1 4 0 0 0 0 5 6 7 8 20 0 1 0",
        "(a) S 1 1 1 0 -1 4 0 0 0 0 5 6 7 8 20 0 1 0 9",
    };
    struct wb_pid_stat p;

    (void)state;
    assert_true(wb_pid_stat_parse(
        "12 (evil) S 9 9 (x)) R 3 1 1 0 -1 2097216 0 0 0 0 5 6 70 80 20 0 1 0 99 1 2\n", &p));
    assert_int_equal(p.pid, 12);
    assert_int_equal(p.parent, 3);
    assert_int_equal(p.own, 11);
    assert_int_equal(p.reaped, 150);
    assert_int_equal(p.start, 99);
    assert_true(p.kernel);
    for (size_t i = 0; i < WB_LEN(bad); i++)
        if (wb_pid_stat_parse(bad[i], &p))
            fail_msg("taken: '%s'", bad[i]);
}

/* One look with the given pids as ours; ticks since the look before. */
static void look(struct wb_processes *p, const pid_t *ours, size_t n, long long foreign,
                 long long agent, long long kernel)
{
    int64_t t[WB_WHOSE_COUNT] = {0};

    assert_int_equal(wb_processes_take(p, ours, n, t, NULL), 0);
    assert_int_equal(t[WB_FOREIGN], foreign);
    assert_int_equal(t[WB_AGENT], agent);
    assert_int_equal(t[WB_KERNEL], kernel);
}

static void test_owners(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    struct wb_processes *p = wb_processes_new(proc, 50);
    const pid_t ours[] = {60, 61};
    struct proc_line init = {1, 0, USER_FLAGS, 5, 5, 0, 0, 1};
    struct proc_line kernel = {9, 2, KERNEL_FLAGS, 0, 100, 0, 0, 1};
    struct proc_line agent = {50, 1, USER_FLAGS, 10, 0, 0, 0, 500};
    struct proc_line child = {51, 50, USER_FLAGS, 0, 0, 0, 0, 510};
    struct proc_line db = {60, 51, USER_FLAGS, 1000, 0, 0, 0, 520};
    struct proc_line other = {70, 1, USER_FLAGS, 3000, 4, 0, 0, 2};

    put_process(f, init);
    put_process(f, kernel);
    put_process(f, agent);
    put_process(f, child);
    put_process(f, db);
    put_process(f, other);
    put(f, "proc/version", "Linux\n");
    put(f, "proc/self", "a file, not a process\n");
    look(p, ours, 2, 0, 0, 0); /* what was used before the first look is not counted */
    init.stime += 1;
    kernel.stime += 20;
    agent.utime += 2;
    child.stime += 3;
    db.utime += 90;
    other.utime += 40;
    put_process(f, init);
    put_process(f, kernel);
    put_process(f, agent);
    put_process(f, child);
    put_process(f, db);
    put_process(f, other);
    look(p, ours, 2, 41, 5, 20);
    look(p, ours, 2, 0, 0, 0);
    /* The database's group is gone before its process is: it stays ours. */
    db.utime += 50;
    put_process(f, db);
    look(p, NULL, 0, 0, 0, 0);
    /* The same pid with another start time is another process, and all of it is new. */
    other = (struct proc_line){70, 1, USER_FLAGS, 7, 1, 0, 0, 9000};
    put_process(f, other);
    look(p, NULL, 0, 8, 0, 0);
    /* A counter that goes back (it must not) never makes negative use. */
    other.utime = 0;
    put_process(f, other);
    look(p, NULL, 0, 0, 0, 0);
    wb_processes_free(p);
}

/* Processes that come and go between looks are found in what their parents reaped. */
static void test_short_lived(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    struct wb_processes *p = wb_processes_new(proc, 50);
    struct proc_line init = {1, 0, USER_FLAGS, 0, 0, 0, 0, 1};
    struct proc_line make = {80, 1, USER_FLAGS, 1, 0, 1000, 0, 2};
    struct proc_line cc = {81, 80, USER_FLAGS, 30, 0, 5, 0, 3};
    struct proc_line shim = {90, 1, USER_FLAGS, 0, 0, 0, 0, 4};
    struct proc_line db = {91, 90, USER_FLAGS, 500, 0, 0, 0, 5};
    struct proc_line agent = {50, 1, USER_FLAGS, 0, 0, 0, 0, 6};
    const pid_t ours[] = {91};

    put_process(f, init);
    put_process(f, make);
    put_process(f, cc);
    put_process(f, shim);
    put_process(f, db);
    put_process(f, agent);
    look(p, ours, 1, 0, 0, 0);
    /* cc ended at 38 + 5 of its own children, another one lived for 12 in between. */
    drop_process(f, 81);
    make.cutime += 43 + 12;
    put_process(f, make);
    look(p, ours, 1, 43 + 12 - 35, 0, 0);
    /* The database ended: its parent reaped it, and none of that is foreign. */
    drop_process(f, 91);
    shim.cutime += 520;
    put_process(f, shim);
    look(p, NULL, 0, 0, 0, 0);
    /* The agent's own short-lived children are the agent's. */
    agent.cstime += 4;
    put_process(f, agent);
    look(p, NULL, 0, 0, 4, 0);
    /* A new foreign process that already reaped children. */
    put_process(f, (struct proc_line){95, 1, USER_FLAGS, 2, 0, 30, 0, 99});
    look(p, NULL, 0, 32, 0, 0);
    /* Parent and child gone at once: their known times are not counted a second time when init
     * reaps them. */
    drop_process(f, 95);
    put_process(f, (struct proc_line){82, 80, USER_FLAGS, 400, 0, 0, 0, 100});
    look(p, NULL, 0, 400, 0, 0);
    drop_process(f, 82);
    drop_process(f, 80);
    init.cutime += 400 + 1056 + 32;
    put_process(f, init);
    look(p, NULL, 0, 32, 0, 0);
    wb_processes_free(p);
}

static void test_partial_view(void **state)
{
    const struct fixture *f = *state;
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    WB_AUTO_FREE char *ns = wb_strf("%s/proc/self/ns/pid", f->dir);
    struct wb_processes *p = wb_processes_new(proc, 50);
    int64_t t[WB_WHOSE_COUNT] = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_processes_take(p, NULL, 0, t, &err), -WB_NOT_FOUND);
    put_process(f, (struct proc_line){50, 0, USER_FLAGS, 1, 1, 0, 0, 1});
    assert_int_equal(wb_processes_take(p, NULL, 0, t, &err), -WB_UNSUPPORTED);
    assert_non_null(strstr(err.root, "hidepid"));
    put_process(f, (struct proc_line){1, 0, USER_FLAGS, 1, 1, 0, 0, 1});
    put(f, "proc/self/ns/other", "");
    assert_int_equal(symlink("pid:[4026532999]", ns), 0);
    assert_int_equal(wb_processes_take(p, NULL, 0, t, &err), -WB_UNSUPPORTED);
    assert_non_null(strstr(err.root, "PID namespace"));
    assert_int_equal(unlink(ns) | symlink("pid:[4026531836]", ns), 0);
    assert_int_equal(wb_processes_take(p, NULL, 0, t, &err), 0);
    assert_int_equal(t[WB_FOREIGN], 0);
    wb_processes_free(p);
    wb_processes_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cpu, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_net, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_memory, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_pid_line, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_owners, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_short_lived, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_partial_view, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
