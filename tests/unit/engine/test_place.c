/* Placement as the kernel says: groups of both versions from fixtures, threads of this process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/units.h"
#include "server/engine/run.h"

struct fixture {
    char *root;
    struct wb_cgroup_fs *v1, *v2;
    char *cpus, *mems; /* of this process */
};

static void put(const char *root, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", root, name);
    WB_AUTO_FREE char *dir = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    assert_int_equal(wb_mkdir_all(dir, 0755, NULL), 0);
    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
}

static char *status_line(const char *name)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    const char *at;
    char *text;

    assert_int_equal(wb_file_read_small("/proc/self/status", &b, NULL), 0);
    at = strstr(wb_buf_str(&b), name);
    assert_non_null(at);
    at += strlen(name);
    text = wb_strndup(at, strcspn(at, "\n"));
    wb_buf_release(&b);
    return text;
}

/* Both versions say the same: the CPUs and nodes of this process, 1 MiB, 0.3 cores. */
static void fill(struct fixture *f, const char *cpus, const char *mems)
{
    WB_AUTO_FREE char *v1 = wb_strf("%s/v1", f->root);
    WB_AUTO_FREE char *v2 = wb_strf("%s/v2", f->root);

    put(v1, "cpuset/g/cpuset.effective_cpus", cpus);
    put(v1, "cpuset/g/cpuset.effective_mems", mems);
    put(v1, "memory/g/memory.limit_in_bytes", "1048576\n");
    put(v1, "memory/g/memory.memsw.limit_in_bytes", "1048576\n");
    put(v1, "cpu/g/cpu.cfs_quota_us", "3000\n");
    put(v1, "cpu/g/cpu.cfs_period_us", "10000\n");
    put(v1, "cpuacct/g/cpuacct.usage", "0\n");
    put(v1, "memory/free/memory.limit_in_bytes", "9223372036854771712\n");
    put(v1, "cpuset/free/cpuset.effective_cpus", cpus);
    put(v1, "cpuset/free/cpuset.effective_mems", mems);
    put(v2, "cgroup.controllers", "cpuset cpu io memory pids\n");
    put(v2, "g/cpuset.cpus.effective", cpus);
    put(v2, "g/cpuset.mems.effective", mems);
    put(v2, "g/memory.max", "1048576\n");
    put(v2, "g/memory.swap.max", "0\n");
    put(v2, "g/cpu.max", "3000 10000\n");
    put(v2, "free/cpuset.cpus.effective", cpus);
    put(v2, "free/cpuset.mems.effective", mems);
    put(v2, "free/memory.max", "max\n");
    put(v2, "free/cpu.max", "max 100000\n");
}

static int setup(void **state)
{
    struct fixture *f = wb_calloc(1, sizeof *f);
    char dir[] = "/tmp/wb-test-place-XXXXXX";
    WB_AUTO_FREE char *v1 = NULL;
    WB_AUTO_FREE char *v2 = NULL;

    assert_non_null(mkdtemp(dir));
    f->root = wb_strdup(dir);
    f->cpus = status_line("Cpus_allowed_list:\t");
    f->mems = status_line("Mems_allowed_list:\t");
    fill(f, f->cpus, f->mems);
    v1 = wb_strf("%s/v1", dir);
    v2 = wb_strf("%s/v2", dir);
    assert_int_equal(wb_cgroup_fs_open(v1, &f->v1, NULL), 0);
    assert_int_equal(wb_cgroup_fs_open(v2, &f->v2, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(wb_remove_tree(f->root, NULL), 0);
    wb_cgroup_fs_free(f->v1);
    wb_cgroup_fs_free(f->v2);
    free(f->root);
    free(f->cpus);
    free(f->mems);
    free(f);
    return 0;
}

static struct wb_place_want wanted(const struct fixture *f)
{
    return (struct wb_place_want){.group = "g",
                                  .pid = getpid(),
                                  .cpus = f->cpus,
                                  .mems = f->mems,
                                  .memory_bytes = 1 << 20,
                                  .cpu_quota = 0.3};
}

static void test_as_planned(void **state)
{
    struct fixture *f = *state;
    const struct wb_cgroup_fs *const both[] = {f->v1, f->v2};

    for (size_t i = 0; i < 2; i++) {
        struct wb_place_want want = wanted(f);
        WB_AUTO_JSON wb_json *seen = wb_json_object();
        struct wb_err err = WB_ERR_INIT;

        if (wb_place_check(both[i], &want, seen, &err) < 0)
            fail_msg("version %zu: %s", i + 1, err.root);
        assert_string_equal(wb_json_str_or(seen, "cpus", ""), f->cpus);
        assert_string_equal(wb_json_str_or(seen, "affinity", ""), f->cpus);
        assert_string_equal(wb_json_str_or(seen, "mems", ""), f->mems);
        assert_string_equal(wb_json_str_or(seen, "allowed_mems", ""), f->mems);
        assert_int_equal(wb_json_int_or(seen, "memory_bytes", 0), 1 << 20);
        assert_int_equal(wb_json_int_or(seen, "memory_swap_bytes", 0), 1 << 20);
        assert_int_equal(wb_json_int_or(seen, "threads", 0), 1);
        want.group = "free";
        want.memory_bytes = 0;
        want.memory_free = true;
        want.cpu_quota = 0;
        assert_int_equal(wb_place_check(both[i], &want, seen, &err), 0);
    }
}

static void test_differences_have_numbers(void **state)
{
    struct fixture *f = *state;
    const struct wb_cgroup_fs *const both[] = {f->v1, f->v2};

    for (size_t v = 0; v < 2; v++) {
        for (int what = 0; what < 6; what++) {
            static const char *const says[] = {", planned 1023",
                                               ", planned 7",
                                               "may use 1048576 bytes of memory, planned 4096",
                                               "planned no limit",
                                               "0.300 cores, planned 0.500",
                                               "0.300 cores, planned 0.000"};
            struct wb_place_want want = wanted(f);
            WB_AUTO_JSON wb_json *seen = wb_json_object();
            struct wb_err err = WB_ERR_INIT;

            if (what == 0)
                want.cpus = "1023";
            else if (what == 1)
                want.mems = "7";
            else if (what == 2)
                want.memory_bytes = 4096;
            else if (what == 3)
                want.memory_free = true;
            else
                want.cpu_quota = what == 4 ? 0.5 : 0;
            assert_int_equal(wb_place_check(both[v], &want, seen, &err), -WB_CONFLICT);
            assert_string_equal(wb_json_str_or(seen, "group", ""), "g"); /* kept all the same */
            if (!strstr(err.root, says[what]))
                fail_msg("version %zu, %d: %s", v + 1, what, err.root);
        }
    }
}

static void test_swap_beside_memory(void **state)
{
    struct fixture *f = *state;
    const struct wb_cgroup_fs *const both[] = {f->v1, f->v2};
    WB_AUTO_FREE char *v1 = wb_strf("%s/v1", f->root);
    WB_AUTO_FREE char *v2 = wb_strf("%s/v2", f->root);

    put(v1, "memory/g/memory.memsw.limit_in_bytes", "2097152\n");
    put(v2, "g/memory.swap.max", "1048576\n");
    for (size_t i = 0; i < 2; i++) {
        struct wb_place_want want = wanted(f);
        WB_AUTO_JSON wb_json *seen = wb_json_object();
        struct wb_err err = WB_ERR_INIT;

        assert_int_equal(wb_place_check(both[i], &want, seen, &err), -WB_CONFLICT);
        assert_non_null(strstr(err.root, "2097152 bytes of memory and swap, planned 1048576"));
    }
    fill(f, f->cpus, f->mems);
}

/* The group says what is planned, the process does not. */
static void test_process_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct wb_place_want want = wanted(f);
    WB_AUTO_JSON wb_json *seen = wb_json_object();
    struct wb_err err = WB_ERR_INIT;

    fill(f, "1000", f->mems);
    want.cpus = "1000";
    assert_int_equal(wb_place_check(f->v2, &want, seen, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "may run on CPUs"));
    assert_non_null(strstr(err.root, "planned 1000"));
    fill(f, f->cpus, "9");
    want = wanted(f);
    want.mems = "9";
    assert_int_equal(wb_place_check(f->v2, &want, seen, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "may use memory nodes"));
    fill(f, f->cpus, f->mems);
}

struct pinned {
    sem_t there, leave;
    int cpu;
};

static void *thread_main(void *arg)
{
    struct pinned *t = arg;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(t->cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        t->cpu = -1;
    sem_post(&t->there);
    sem_wait(&t->leave);
    return NULL;
}

/* A database may pin threads of its own inside its set, and not outside of it. */
static void test_threads(void **state)
{
    struct fixture *f = *state;
    struct wb_place_want want = wanted(f);
    WB_AUTO_JSON wb_json *seen = wb_json_object();
    WB_AUTO_FREE int *cpus = NULL;
    WB_AUTO_FREE char *first = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct pinned t = {0};
    struct wb_strv tasks = {0};
    size_t others;
    cpu_set_t one, all;
    pthread_t thread;
    int n = 0;

    assert_int_equal(wb_parse_cpulist(f->cpus, &cpus, &n, NULL), 0);
    if (n < 2)
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    sem_init(&t.there, 0, 0);
    sem_init(&t.leave, 0, 0);
    t.cpu = cpus[1];
    assert_int_equal(pthread_create(&thread, NULL, thread_main, &t), 0);
    sem_wait(&t.there);
    assert_int_equal(t.cpu, cpus[1]);
    assert_int_equal(wb_list_dir("/proc/self/task", &tasks, NULL), 0);
    others = tasks.n - 2;
    wb_strv_release(&tasks);
    if (others) { /* a sanitizer has a thread of its own, which is on all CPUs */
        sem_post(&t.leave);
        pthread_join(thread, NULL);
        skip();
    }
    assert_int_equal(wb_place_check(f->v2, &want, seen, &err), 0);
    assert_int_equal(wb_json_int_or(seen, "threads", 0), 2);

    first = wb_strf("%d", cpus[0]);
    CPU_ZERO(&one);
    CPU_SET(cpus[0], &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    fill(f, first, f->mems);
    want.cpus = first;
    assert_int_equal(wb_place_check(f->v2, &want, seen, &err), -WB_CONFLICT);
    WB_AUTO_FREE char *says = wb_strf("may run on CPUs %d, planned %d", cpus[1], cpus[0]);
    assert_non_null(strstr(err.root, says));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    sem_post(&t.leave);
    pthread_join(thread, NULL);
    fill(f, f->cpus, f->mems);
}

static void test_gone(void **state)
{
    struct fixture *f = *state;
    struct wb_place_want want = wanted(f);
    WB_AUTO_JSON wb_json *seen = wb_json_object();
    struct wb_err err = WB_ERR_INIT;

    want.pid = 1 << 30;
    assert_int_equal(wb_place_check(f->v2, &want, seen, &err), -WB_NOT_FOUND);
    want = wanted(f);
    want.group = "nothing";
    assert_true(wb_place_check(f->v2, &want, seen, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_planned),
        cmocka_unit_test(test_differences_have_numbers),
        cmocka_unit_test(test_swap_beside_memory),
        cmocka_unit_test(test_process_elsewhere),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gone),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
