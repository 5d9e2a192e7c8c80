#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Reading of control groups of both versions, from fixtures, and names that must be refused. */
#include <stdlib.h>
#include <string.h>

#include "server/base/cgroup.h"
#include "server/base/file.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-cgroup-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static void put(const char *root, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", root, name);
    WB_AUTO_FREE char *dir = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    assert_int_equal(wb_mkdir_all(dir, 0755, NULL), 0);
    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
}

static void test_v2(void **state)
{
    WB_AUTO_FREE char *root = wb_strf("%s/v2", (char *)*state);
    struct wb_cgroup_fs *fs = NULL;
    struct wb_cgroup_stats s;
    struct wb_limits_seen l;

    put(root, "cgroup.controllers", "cpuset cpu io memory pids\n");
    put(root, "g/x/cpu.stat",
        "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\nnr_periods 100\n"
        "nr_throttled 15\nthrottled_usec 70000\n");
    put(root, "g/x/memory.current", "10000000\n");
    put(root, "g/x/memory.stat", "anon 5000000\nfile 5000000\ninactive_file 4000000\n");
    put(root, "g/x/memory.peak", "12000000\n");
    put(root, "g/x/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n");
    put(root, "g/x/cpuset.cpus.effective", "2-3\n");
    put(root, "g/x/cpuset.mems.effective", "0\n");
    put(root, "g/x/memory.max", "536870912\n");
    put(root, "g/x/memory.swap.max", "0\n");
    put(root, "g/x/cpu.max", "8500 10000\n");
    assert_int_equal(wb_cgroup_fs_open(root, &fs, NULL), 0);
    assert_int_equal(wb_cgroup_version(fs), 2);
    assert_int_equal(wb_cgroup_stats(fs, "g/x", &s, NULL), 0);
    assert_int_equal(s.cpu_ns, 1500000000);
    assert_int_equal(s.memory_bytes, 6000000);
    assert_int_equal(s.peak_bytes, 12000000);
    assert_int_equal(s.periods, 100);
    assert_int_equal(s.throttled, 15);
    assert_int_equal(s.throttled_ns, 70000000);
    assert_int_equal(s.oom_kills, 1);
    assert_int_equal(wb_cgroup_limits(fs, "g/x", &l, NULL), 0);
    assert_string_equal(l.cpus, "2-3");
    assert_int_equal(l.memory_bytes, 536870912);
    assert_int_equal(l.memory_swap_bytes, 536870912);
    assert_true(l.cpu_quota > 0.8499 && l.cpu_quota < 0.8501);
    wb_limits_seen_release(&l);
    put(root, "g/x/cpu.max", "max 100000\n");
    put(root, "g/x/memory.max", "max\n");
    assert_int_equal(wb_cgroup_limits(fs, "g/x", &l, NULL), 0);
    assert_true(l.cpu_quota == 0);
    assert_true(l.memory_bytes == INT64_MAX);
    wb_limits_seen_release(&l);
    wb_cgroup_fs_free(fs);
}

static void test_v1(void **state)
{
    WB_AUTO_FREE char *root = wb_strf("%s/v1", (char *)*state);
    struct wb_cgroup_fs *fs = NULL;
    struct wb_cgroup_stats s;
    struct wb_err err = WB_ERR_INIT;
    struct wb_limits_seen l;

    put(root, "cpuacct/g/cpuacct.usage", "2500000000\n");
    put(root, "cpu/g/cpu.stat", "nr_periods 10\nnr_throttled 2\nthrottled_time 5000\n");
    put(root, "cpu/g/cpu.cfs_quota_us", "-1\n");
    put(root, "memory/g/memory.usage_in_bytes", "5000\n");
    put(root, "memory/g/memory.stat", "inactive_file 1\ntotal_inactive_file 9000\n");
    put(root, "memory/g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put(root, "memory/g/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "memory/g/memory.memsw.limit_in_bytes", "9223372036854771712\n");
    put(root, "cpuset/g/cpuset.effective_cpus", "0\n");
    put(root, "cpuset/g/cpuset.effective_mems", "0\n");
    assert_int_equal(wb_cgroup_fs_open(root, &fs, NULL), 0);
    assert_int_equal(wb_cgroup_version(fs), 1);
    assert_int_equal(wb_cgroup_stats(fs, "g", &s, NULL), 0);
    assert_int_equal(s.cpu_ns, 2500000000);
    assert_int_equal(s.memory_bytes, 0); /* never negative */
    assert_int_equal(s.peak_bytes, -1);  /* the kernel does not say */
    assert_int_equal(s.oom_kills, 2);
    assert_int_equal(wb_cgroup_limits(fs, "g", &l, NULL), 0);
    assert_true(l.memory_bytes == INT64_MAX);
    assert_true(l.cpu_quota == 0);
    wb_limits_seen_release(&l);
    assert_int_equal(wb_cgroup_stats(fs, "absent", &s, &err), -WB_NOT_FOUND);
    wb_cgroup_fs_free(fs);
}

static void test_none(void **state)
{
    struct wb_cgroup_fs *fs = NULL;

    assert_int_equal(wb_cgroup_fs_open("/nowhere", &fs, NULL), -WB_UNSUPPORTED);
    assert_null(fs);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"", "/", "/x", "x/", "x//y", "..", "x/../y", "."};
    WB_AUTO_FREE char *root = wb_strf("%s/v2", (char *)*state);
    struct wb_cgroup_fs *fs = NULL;
    struct wb_limits none = {0};

    assert_int_equal(wb_cgroup_fs_open(root, &fs, NULL), 0);
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        assert_int_equal(wb_cgroup_create(fs, bad[i], &none, NULL), -WB_INVALID);
        assert_int_equal(wb_cgroup_destroy(fs, bad[i], 0, NULL), -WB_INVALID);
    }
    wb_cgroup_fs_free(fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v2),
        cmocka_unit_test(test_v1),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
