/* The job mechanism on real processes and real control groups (needs root and a cgroup tree). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"

struct env {
    char dir[64];
    struct wb_cgroup_fs *fs;
    char *group;
};

static int setup(void **state)
{
    struct env *e = wb_calloc(1, sizeof(*e));

    strcpy(e->dir, "/tmp/wb-test-job-XXXXXX");
    assert_non_null(mkdtemp(e->dir));
    e->group = wb_strf("wbtest-job-%d/j", (int)getpid());
    if (geteuid() != 0 || wb_cgroup_fs_open("/sys/fs/cgroup", &e->fs, NULL) < 0)
        e->fs = NULL;
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;
    WB_AUTO_FREE char *parent = wb_strf("wbtest-job-%d", (int)getpid());

    if (e->fs) {
        assert_int_equal(wb_cgroup_destroy(e->fs, parent, WB_SEC, NULL), 0);
        assert_false(wb_cgroup_exists(e->fs, parent));
    }
    assert_int_equal(wb_remove_tree(e->dir, NULL), 0);
    wb_cgroup_fs_free(e->fs);
    free(e->group);
    free(e);
    return 0;
}

static char *start(struct env *e, const char *name, const char *script, struct wb_job_spec spec)
{
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, wb_strdup(script), NULL};
    char *dir = wb_strf("%s/%s", e->dir, name);
    struct wb_err err = WB_ERR_INIT;

    spec.dir = dir;
    spec.group = e->group;
    spec.argv = argv;
    spec.mark = "wb.run=test";
    if (wb_job_start(e->fs, &spec, &err) < 0)
        fail_msg("%s: %s", err.context, err.root);
    free(argv[2]);
    return dir;
}

static struct wb_job_status await(const char *dir)
{
    struct wb_job_status s;
    int64_t end = wb_now_ns(NULL) + 20 * WB_SEC;

    do {
        assert_int_equal(wb_job_poll(dir, &s, NULL), 0);
        assert_true(wb_now_ns(NULL) < end);
        WB_IGNORE(wb_wait(NULL, -1, 5 * WB_MS, NULL));
    } while (s.state == WB_JOB_RUNNING);
    return s;
}

static void test_exit(void **state)
{
    struct env *e = *state;
    struct wb_buf b = WB_BUF_INIT(100);
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(e, "exit", "echo out; echo $WB_MARK >&2; exit 7", (struct wb_job_spec){0});
    s = await(dir);
    assert_int_equal(s.state, WB_JOB_EXITED);
    assert_int_equal(s.exit_code, 7);
    assert_int_equal(wb_job_log_tail(dir, "stdout.log", 100, &b, NULL), 0);
    assert_string_equal(wb_buf_str(&b), "out\n");
    wb_buf_clear(&b);
    assert_int_equal(wb_job_log_tail(dir, "stderr.log", 100, &b, NULL), 0);
    assert_string_equal(wb_buf_str(&b), "wb.run=test\n");
    assert_false(wb_cgroup_exists(e->fs, e->group));
    wb_buf_release(&b);
    free(dir);
}

static void test_no_such_program(void **state)
{
    struct env *e = *state;
    char *const argv[] = {(char[]){"/nowhere/program"}, NULL};
    WB_AUTO_FREE char *dir = wb_strf("%s/none", e->dir);
    struct wb_job_spec spec = {.dir = dir, .group = e->group, .argv = argv};
    struct wb_err err = WB_ERR_INIT;

    if (!e->fs)
        skip();
    assert_int_equal(wb_job_start(e->fs, &spec, &err), -WB_NOT_FOUND);
    assert_string_equal(err.root, "cannot run /nowhere/program: No such file or directory");
    assert_false(wb_cgroup_exists(e->fs, e->group));
}

/* A tree with a member of its own session and one that ignores SIGTERM: stop ends them all. */
static const char tree_script[] =
    "trap '' TERM; (setsid sleep 300 &) ; (trap '' TERM HUP; sleep 300 & wait) & "
    "echo up; while :; do sleep 300; done";

static void await_text(const char *dir, const char *text)
{
    int64_t end = wb_now_ns(NULL) + 20 * WB_SEC;
    struct wb_buf b = WB_BUF_INIT(1000);

    do {
        assert_true(wb_now_ns(NULL) < end);
        wb_buf_clear(&b);
        WB_IGNORE(wb_job_log_tail(dir, "stdout.log", 100, &b, NULL));
        WB_IGNORE(wb_wait(NULL, -1, 5 * WB_MS, NULL));
    } while (!strstr(wb_buf_str(&b), text));
    wb_buf_release(&b);
}

/* A folder without a status: whether somebody is still at it. */
static void test_held(void **state)
{
    struct env *e = *state;
    WB_AUTO_FREE char *dir = wb_strf("%s/cut", e->dir);
    WB_AUTO_FREE char *path = wb_strf("%s/lock", dir);
    struct wb_job_status s;
    struct wb_err err = WB_ERR_INIT;
    int lock = -1;

    assert_false(wb_job_held(dir));
    assert_int_equal(wb_mkdir_all(dir, 0755, NULL), 0);
    assert_false(wb_job_held(dir));
    assert_int_equal(wb_lock_file(path, "", &lock, NULL), 0);
    assert_true(wb_job_held(dir));
    assert_int_equal(wb_job_poll(dir, &s, &err), -WB_NOT_FOUND);
    (void)close(lock);
    assert_false(wb_job_held(dir));
    assert_false(wb_job_held(dir)); /* looking did not take it */
    if (!e->fs)
        skip();
    free(WB_STEAL(path));
    path = start(e, "lives", "sleep 300", (struct wb_job_spec){0});
    assert_true(wb_job_held(path));
    assert_int_equal(wb_job_stop(e->fs, path, 0, 0, NULL, NULL), 0);
    assert_false(wb_job_held(path));
}

static void test_stop_tree(void **state)
{
    struct env *e = *state;
    struct wb_job_status s;
    char *dir;
    pid_t *pids = NULL;
    size_t n = 0;

    if (!e->fs)
        skip();
    dir = start(e, "tree", tree_script, (struct wb_job_spec){0});
    await_text(dir, "up");
    assert_int_equal(wb_cgroup_pids(e->fs, e->group, &pids, &n, NULL), 0);
    assert_true(n >= 3);
    assert_int_equal(wb_job_stop(e->fs, dir, SIGTERM, 100 * WB_MS, &s, NULL), 0);
    assert_int_equal(s.state, WB_JOB_KILLED);
    assert_int_equal(s.signal, SIGKILL);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(wb_process_ticks(pids[i]), 0);
    assert_false(wb_cgroup_exists(e->fs, e->group));
    assert_int_equal(wb_job_stop(e->fs, dir, SIGTERM, 0, &s, NULL), 0); /* again */
    free(pids);
    free(dir);
}

static void test_supervisor_killed(void **state)
{
    struct env *e = *state;
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(e, "orphan", tree_script, (struct wb_job_spec){0});
    await_text(dir, "up");
    assert_int_equal(wb_job_poll(dir, &s, NULL), 0);
    assert_int_equal(kill(s.supervisor, SIGKILL), 0);
    assert_int_equal(wb_job_poll(dir, &s, NULL), 0);
    assert_int_equal(s.state, WB_JOB_RUNNING); /* the program itself lives on */
    assert_int_equal(wb_job_stop(e->fs, dir, SIGTERM, 50 * WB_MS, &s, NULL), 0);
    assert_int_equal(s.state, WB_JOB_LOST);
    assert_int_equal(wb_process_ticks(s.pid), 0);
    assert_false(wb_cgroup_exists(e->fs, e->group));
    free(dir);
}

/* Processes with this mark in their environment. */
static int marked(const char *mark)
{
    WB_AUTO_FREE char *want = wb_strf("WB_MARK=%s", mark);
    struct wb_strv pids = {0};
    int found = 0;

    assert_int_equal(wb_list_dir("/proc", &pids, NULL), 0);
    for (size_t i = 0; i < pids.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("/proc/%s/environ", pids.v[i]);
        struct wb_buf b = WB_BUF_INIT(1u << 20);

        if (pids.v[i][0] >= '1' && pids.v[i][0] <= '9' && wb_file_read_small(path, &b, NULL) == 0)
            for (size_t at = 0; at < b.len; at += strlen(b.data + at) + 1)
                found += !strcmp(b.data + at, want);
        wb_buf_release(&b);
    }
    wb_strv_release(&pids);
    return found;
}

/* The starter is killed at any moment of the start: stop then leaves nothing, and nothing comes. */
static void test_starter_killed(void **state)
{
    struct env *e = *state;
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"sleep 300"}, NULL};
    WB_AUTO_FREE char *mark = wb_strf("wb.run=killed-%d", (int)getpid());

    if (!e->fs)
        skip();
    for (int i = 0; i < 60; i++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/killed-%d", e->dir, i);
        struct wb_job_spec spec = {.dir = dir, .group = e->group, .argv = argv, .mark = mark};
        struct wb_err err = WB_ERR_INIT;
        pid_t pid = fork();

        if (pid == 0)
            _exit(wb_job_start(e->fs, &spec, NULL) < 0);
        WB_IGNORE(wb_wait(NULL, -1, i * 100 * WB_US, NULL));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        if (wb_job_stop(e->fs, dir, 0, 0, NULL, &err) < 0)
            fail_msg("kill %d: %s: %s", i, err.context, err.root);
        /* Killed before the specification was there: the ledger names the group as well. */
        assert_int_equal(wb_cgroup_destroy(e->fs, e->group, WB_SEC, NULL), 0);
        assert_int_equal(marked(mark), 0);
        assert_false(wb_cgroup_exists(e->fs, e->group));
    }
}

/* Not a byte can be written: a job is ended all the same. */
static void test_full_disk(void **state)
{
    struct env *e = *state;
    WB_AUTO_FREE char *mnt = wb_strf("%s/mnt", e->dir);
    WB_AUTO_FREE char *hog = wb_strf("%s/hog", mnt);
    char zeros[65536] = {0};
    struct wb_job_status s;
    char *dir;
    int fd;

    assert_int_equal(mkdir(mnt, 0755), 0);
    if (!e->fs || mount("none", mnt, "tmpfs", 0, "size=1m,nr_inodes=20") < 0)
        skip();
    dir = start(e, "mnt/job", "echo up; while :; do sleep 300; done", (struct wb_job_spec){0});
    await_text(dir, "up");
    fd = open(hog, O_WRONLY | O_CREAT, 0644);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    (void)close(fd);
    for (int i = 0; i < 20; i++) {
        WB_AUTO_FREE char *inode = wb_strf("%s/i%d", mnt, i);

        (void)close(open(inode, O_WRONLY | O_CREAT, 0644));
    }
    assert_int_equal(wb_job_poll(dir, &s, NULL), 0);
    assert_int_equal(wb_job_stop(e->fs, dir, SIGTERM, 100 * WB_MS, NULL, NULL), 0);
    assert_int_equal(wb_process_ticks(s.pid), 0);
    assert_int_equal(wb_process_ticks(s.supervisor), 0);
    assert_false(wb_cgroup_exists(e->fs, e->group));
    assert_int_equal(umount(mnt), 0);
    free(dir);
}

static void test_time_limit(void **state)
{
    struct env *e = *state;
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(e, "limit", "exec sleep 300", (struct wb_job_spec){.limit_ns = 100 * WB_MS});
    s = await(dir);
    assert_int_equal(s.state, WB_JOB_KILLED);
    assert_true(s.timed_out);
    assert_int_equal(s.signal, SIGTERM);
    free(dir);
}

/* Head and tail are kept, what lies between is counted and named. */
static void test_log_cap(void **state)
{
    static const struct {
        const char *script;
        int64_t dropped;
        size_t kept;
        const char *end;
    } cases[] = {
        {"head -c 1000 /dev/zero | tr '\\0' a", 0, 1000, "aaa"},
        {"head -c 1000 /dev/zero | tr '\\0' a; printf end", 0, 1003, "aaaend"},
        {"head -c $((1000 + 262144)) /dev/zero | tr '\\0' a", 0, 1000 + 262144, "aaa"},
        {"head -c $((1000 + 262144)) /dev/zero | tr '\\0' a; printf bcd", 3,
         1000 + 262144 + sizeof("\n[3 bytes are left out here]\n") - 1, "aaabcd"},
        {"head -c 3000000 /dev/zero | tr '\\0' a; printf bcd", 2736859,
         1000 + 262144 + sizeof("\n[2736859 bytes are left out here]\n") - 1, "aaabcd"},
    };
    struct env *e = *state;

    if (!e->fs)
        skip();
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *name = wb_strf("flood%zu", i);
        WB_AUTO_FREE char *dir =
            start(e, name, cases[i].script, (struct wb_job_spec){.log_max = 1000});
        struct wb_job_status s = await(dir);
        struct wb_buf b = WB_BUF_INIT(1 << 20);

        assert_int_equal(s.exit_code, 0);
        assert_int_equal(s.dropped_out, cases[i].dropped);
        assert_int_equal(wb_job_log_tail(dir, "stdout.log", 1 << 20, &b, NULL), 0);
        assert_int_equal(b.len, cases[i].kept);
        assert_string_equal(b.data + b.len - strlen(cases[i].end), cases[i].end);
        wb_buf_release(&b);
    }
}

/* Output of either stream breaks the silence; a program that says nothing more is ended. */
static void test_silence(void **state)
{
    static const char script[] = "trap '' TERM\n"
                                 "for i in 1 2 3 4; do echo $i >&$((1 + i % 2)); sleep 0.1; done\n"
                                 "while :; do sleep 100; done";
    struct env *e = *state;
    struct wb_buf b = WB_BUF_INIT(100);
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(e, "silent", script, (struct wb_job_spec){.silence_ns = 300 * WB_MS});
    s = await(dir);
    assert_int_equal(s.state, WB_JOB_KILLED);
    assert_true(s.silent);
    assert_false(s.timed_out);
    assert_int_equal(wb_job_log_tail(dir, "stdout.log", 100, &b, NULL), 0);
    assert_string_equal(wb_buf_str(&b), "2\n4\n");
    assert_false(wb_cgroup_exists(e->fs, e->group));
    wb_buf_release(&b);
    free(dir);
}

static void test_limits(void **state)
{
    struct env *e = *state;
    struct wb_limits_seen seen = {0};
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(
        e, "limits", "echo up; grep Cpus_allowed_list /proc/self/status; exec sleep 300",
        (struct wb_job_spec){.limits = {.cpus = "0", .memory_bytes = 64 << 20, .cpu_quota = 0.85}});
    await_text(dir, "Cpus_allowed_list:\t0\n");
    assert_int_equal(wb_cgroup_limits(e->fs, e->group, &seen, NULL), 0);
    assert_string_equal(seen.cpus, "0");
    assert_int_equal(seen.memory_bytes, 64 << 20);
    assert_true(seen.cpu_quota > 0.849 && seen.cpu_quota < 0.851);
    wb_limits_seen_release(&seen);
    assert_int_equal(wb_job_stop(e->fs, dir, SIGTERM, WB_SEC, &s, NULL), 0);
    assert_int_equal(s.signal, SIGTERM);
    free(dir);
}

static void test_oom(void **state)
{
    struct env *e = *state;
    struct wb_job_status s;
    char *dir;

    if (!e->fs)
        skip();
    dir = start(e, "oom", "x=xxxxxxxx; while :; do x=$x$x; done",
                (struct wb_job_spec){.limits = {.memory_bytes = 32 << 20}});
    s = await(dir);
    assert_int_equal(s.state, WB_JOB_EXITED);
    assert_int_equal(s.signal, SIGKILL);
    assert_true(s.oom_kills >= 1);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_such_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(test_supervisor_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starter_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_cap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_oom, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
