/* CPU use of a program's threads, from a /proc in a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "server/base/clock.h"
#include "server/collect/threads.h"
#include "tests/unit/collect/fixture.h"

static void put_thread(const struct fixture *f, int pid, int tid, long long cpu_ms,
                       long long wait_ms, int switches)
{
    WB_AUTO_FREE char *stat = wb_strf("proc/%d/task/%d/schedstat", pid, tid);
    WB_AUTO_FREE char *status = wb_strf("proc/%d/task/%d/status", pid, tid);
    WB_AUTO_FREE char *a = wb_strf("%lld %lld 12\n", cpu_ms * WB_MS, wait_ms * WB_MS);
    WB_AUTO_FREE char *b = wb_strf("Name:\tx\nvoluntary_ctxt_switches:\t900\n"
                                   "nonvoluntary_ctxt_switches:\t%d\n",
                                   switches);

    put(f, stat, a);
    put(f, status, b);
}

static struct wb_threads *make(const struct fixture *f)
{
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);

    return wb_threads_new(proc);
}

static double of(const wb_json *threads, size_t i, const char *key)
{
    return wb_json_real_or(wb_json_at(threads, i), key, NAN);
}

static void test_two_threads(void **state)
{
    struct fixture *f = *state;
    struct wb_threads *t = make(f);
    const pid_t pids[] = {10};
    WB_AUTO_JSON wb_json *r = NULL;
    const char *why = NULL;

    put_thread(f, 10, 10, 100, 0, 5);
    put_thread(f, 10, 11, 0, 0, 0);
    wb_threads_look(t, pids, 1, 0);
    put_thread(f, 10, 10, 1000, 50, 25);
    put_thread(f, 10, 11, 250, 10, 0);
    wb_threads_look(t, pids, 1, WB_SEC);
    put_thread(f, 10, 10, 1900, 100, 45);
    put_thread(f, 10, 11, 500, 20, 4);
    wb_threads_look(t, pids, 1, 2 * WB_SEC);
    r = wb_threads_report(t, 2500 * WB_MS, &why);
    assert_non_null(r);
    assert_int_equal(wb_json_len(r), 2);
    assert_float_equal(of(r, 0, "cpu_percent"), 90, 1e-9);
    assert_float_equal(of(r, 0, "run_queue_percent"), 5, 1e-9);
    assert_float_equal(of(r, 0, "involuntary_switches_per_s"), 20, 1e-9);
    assert_float_equal(of(r, 1, "cpu_percent"), 25, 1e-9);
    assert_float_equal(of(r, 1, "run_queue_percent"), 1, 1e-9);
    assert_float_equal(of(r, 1, "involuntary_switches_per_s"), 2, 1e-9);
    wb_threads_free(t);
}

/* What the looks did not see is not called idle. */
static void test_unseen(void **state)
{
    struct fixture *f = *state;
    struct wb_threads *t = make(f);
    const pid_t pids[] = {10, 20};
    const char *why = NULL;
    wb_json *r;

    assert_null(wb_threads_report(t, 0, &why));
    assert_string_equal(why, "its threads were not seen for long enough");
    put_thread(f, 10, 10, 100, 0, 5);
    wb_threads_look(t, pids, 2, 0);
    assert_null(wb_threads_report(t, 100 * WB_MS, &why));
    assert_string_equal(why, "its threads were not seen for long enough");
    put_thread(f, 10, 10, 400, 0, 5);
    wb_threads_look(t, pids, 2, WB_SEC);
    /* 400 of 501 ms is less than four fifths, of 499 it is more; 5 of 24 ms is a fiftieth of the
     * time that passed. */
    assert_null(wb_threads_report(t, 501 * WB_MS, &why));
    assert_string_equal(why, "its threads were seen for too little of its CPU time");
    assert_null(wb_threads_report(t, -1, &why));
    assert_string_equal(why, "the CPU time of its control group is not known");
    r = wb_threads_report(t, 499 * WB_MS, &why);
    assert_int_equal(wb_json_len(r), 1);
    wb_json_free(r);
    wb_threads_free(t);

    t = make(f);
    put_thread(f, 10, 10, 0, 0, 5);
    wb_threads_look(t, pids, 2, 0);
    put_thread(f, 10, 10, 5, 0, 5);
    wb_threads_look(t, pids, 2, WB_SEC);
    r = wb_threads_report(t, 24 * WB_MS, &why);
    assert_int_equal(wb_json_len(r), 1);
    wb_json_free(r);
    assert_null(wb_threads_report(t, 26 * WB_MS, &why));
    wb_threads_free(t);
}

/* Threads that ended, files that are half there or no numbers. */
static void test_hostile(void **state)
{
    struct fixture *f = *state;
    struct wb_threads *t = make(f);
    const pid_t pids[] = {10};
    const char *why = NULL;
    wb_json *r;

    put_thread(f, 10, 10, 0, 0, 0);
    put_thread(f, 10, 11, 0, 0, 0);
    put(f, "proc/10/task/12/schedstat", "");
    put(f, "proc/10/task/13/schedstat", "1 2 3\n"); /* no status */
    put(f, "proc/10/task/../14", "");
    put(f, "proc/10/task/x/schedstat", "1 2 3\n");
    wb_threads_look(t, pids, 1, 0);
    drop(f, "proc/10/task/11");
    put_thread(f, 10, 10, 500, 0, 0);
    wb_threads_look(t, pids, 1, WB_SEC);
    r = wb_threads_report(t, 500 * WB_MS, &why);
    assert_int_equal(wb_json_len(r), 1);
    assert_float_equal(of(r, 0, "cpu_percent"), 50, 1e-9);
    wb_json_free(r);
    wb_threads_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_threads, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unseen, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
