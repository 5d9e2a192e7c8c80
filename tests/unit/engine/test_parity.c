/* The parity report: facts of a process from a /proc in a folder, and what may differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/engine/parity.h"
#include "server/study/recipe.h"
#include "tests/unit/collect/fixture.h"

#define LIBC_TEXT                                                                             \
    "\177ELF\1\2\3 junk GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version " \
    "2.36.\nCopyright"

static void put_bytes(const struct fixture *f, const char *name, const char *data, size_t n)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->dir, name);

    put(f, name, "");
    assert_int_equal(wb_file_put(path, data, n, NULL), 0);
}

/* Process 42 as a form would leave it; `own` is the folder of its paths. */
static void put_process_files(const struct fixture *f, const char *own)
{
    WB_AUTO_FREE char *environ = wb_strf(
        "PATH=/bin|LD_LIBRARY_PATH=%s/prefix/lib|SECRET=hunter2|WB_MARK=x|1BAD=x|nothing|", own);
    WB_AUTO_FREE char *link = wb_strf("%s/proc/self/ns/net", f->dir);
    size_t n = strlen(environ);

    put(f, "proc/42/status",
        "Name:\tdb\nUmask:\t0022\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t8 9 80 \n"
        "CapInh:\t0000000000000000\nCapPrm:\t00ff\nCapEff:\t00ff\nCapBnd:\t01ff\nCapAmb:\t0000\n"
        "NoNewPrivs:\t0\nSeccomp:\t2\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n"
        "Mems_allowed_list:\t0\nTHP_enabled:\t1\n");
    put(f, "proc/42/stat",
        "42 (a) b (42) S 1 1 1 0 -1 4194560 0 0 0 0 1 2 3 4 20 -5 1 0 500 0 0 0 0 0 0 0 0 0 0 0 0 "
        "0 17 1 0 0 0 0 0\n");
    put(f, "proc/42/oom_score_adj", "100\n");
    put(f, "proc/42/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max stack size            8388608              unlimited            bytes     \n"
        "Max open files            1024                 20000                files     \n"
        "Max nice priority         0                    0                    \n");
    put(f, "proc/42/mountinfo",
        "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "21 20 0:5 / /wb rw,nodev - overlay overlay rw,lowerdir=/x\n"
        "22 21 8:2 /a\\040b /wb/data rw,noatime master:1 - xfs /dev/sdb rw\n"
        "23 20 8:3 / /wb/dat ro - tmpfs none rw\n"
        "not a line\n");
    put(f, "proc/42/maps",
        "00400000-00500000 r-xp 00000000 08:01 10 /wb/prefix/bin/db\n"
        "7f0000000000-7f0000100000 r--p 00000000 08:01 11 /usr/lib/libcap.so.2\n"
        "7f0000200000-7f0000300000 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n");
    put_bytes(f, "proc/42/root/usr/lib/libc.so.6", LIBC_TEXT, sizeof(LIBC_TEXT) - 1);
    put(f, "proc/42/ns/net", "");
    put(f, "proc/self/ns/x", "");
    /* The same name space is the same inode. */
    (void)unlink(link);
    assert_int_equal(symlink("../../42/ns/net", link), 0);
    put(f, "proc/sys/vm/swappiness", "60\n");
    put(f, "proc/sys/net/core/somaxconn", "4096\n");
    put(f, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    for (size_t i = 0; i < n; i++)
        if (environ[i] == '|')
            environ[i] = '\0';
    put_bytes(f, "proc/42/environ", environ, n);
}

static wb_json *facts(const struct fixture *f, const char *own, const char *probe_text)
{
    WB_AUTO_FREE char *proc = wb_strf("%s/proc", f->dir);
    WB_AUTO_FREE char *sys = wb_strf("%s/sys", f->dir);
    WB_AUTO_JSON wb_json *probe = NULL;
    struct wb_paths paths = {.prefix = wb_strf("%s/prefix", own),
                             .config = wb_strf("%s/config", own),
                             .data = wb_strf("%s/data", own),
                             .log = wb_strf("%s/log", own)};
    struct wb_limits_seen limits = {.cpus = (char[]){"1"},
                                    .mems = (char[]){"0"},
                                    .memory_bytes = 1 << 30,
                                    .memory_swap_bytes = INT64_MAX,
                                    .cpu_quota = 0.85};
    char *env[] = {(char[]){"LD_LIBRARY_PATH={prefix}/lib"}, NULL};
    struct wb_parity_source s = {.proc = proc,
                                 .sys = sys,
                                 .pid = 42,
                                 .paths = &paths,
                                 .port = 16379,
                                 .limits = &limits,
                                 .files = "abc",
                                 .env = env};
    wb_json *out;

    assert_int_equal(wb_json_parse(probe_text, strlen(probe_text), &probe, NULL), 0);
    s.probe = probe;
    out = wb_parity_facts(&s);
    wb_paths_release(&paths);
    return out;
}

static const char probe_text[] =
    "{\"version\":\"7.0.15\",\"build\":\"b1\",\"settings\":{\"save\":\"\","
    "\"maxmemory\":\"0\"},\"facts\":{\"allocator\":\"jemalloc-5.3.0\"}}";

static void test_facts(void **state)
{
    static const struct {
        const char *field, *want; /* NULL: null */
    } cases[] = {
        {"version", "7.0.15"},
        {"build", "b1"},
        {"files", "abc"},
        {"allocator", "jemalloc-5.3.0"},
        {"setting.save", ""},
        {"setting.maxmemory", "0"},
        {"paths.data", "/wb/data"},
        {"limits.cpus", "1"},
        {"limits.memory", "1073741824"},
        {"limits.memory_swap", "unlimited"},
        {"limits.cpu_quota", "0.850"},
        {"libc", "glibc 2.36"},
        {"libc.build", "Debian GLIBC 2.36-9+deb12u13"},
        {"filesystem", "overlay on 0:5, rw,nodev"},
        {"data_filesystem", "xfs on 8:2, rw,noatime"},
        {"kernel.thp", "madvise"},
        {"kernel.thp_defrag", NULL},
        {"kernel.swappiness", "60"},
        {"kernel.overcommit_memory", NULL},
        {"kernel.somaxconn", "4096"},
        {"thp_allowed", "1"},
        {"ulimit.nofile", "1024/20000"},
        {"ulimit.stack", "8388608/unlimited"},
        {"ulimit.nice", "0/0"},
        {"ulimit.core", NULL},
        {"env.PATH", "/bin"},
        {"env.LD_LIBRARY_PATH", "{prefix}/lib"},
        {"env.SECRET", "sha256 f52fbd32b2b3"},
        {"user.uid", "7 7 7 7"},
        {"user.groups", "9 80"},
        {"affinity.cpus", "1"},
        {"affinity.mems", "0"},
        {"nice", "-5"},
        {"scheduler", "policy 0 priority 0"},
        {"oom_score_adj", "100"},
        {"seccomp", "2"},
        {"no_new_privs", "0"},
        {"capabilities.effective", "00ff"},
        {"capabilities.bounding", "01ff"},
        {"umask", "0022"},
        {"security_label", NULL},
        {"network", "host"},
    };
    struct fixture *f = *state;
    WB_AUTO_JSON wb_json *j = NULL;
    struct wb_buf text = WB_BUF_INIT(1 << 20);

    put_process_files(f, "/wb");
    j = facts(f, "/wb", probe_text);
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        const char *got = wb_json_str_or(j, cases[i].field, NULL);

        if (!wb_json_get(j, cases[i].field))
            fail_msg("no field %s", cases[i].field);
        if (cases[i].want ? !got || strcmp(got, cases[i].want) != 0 : got != NULL)
            fail_msg("%s: wanted %s, got %s", cases[i].field,
                     cases[i].want ? cases[i].want : "null", got ? got : "null");
    }
    /* Every field has a name that a recipe can give it. */
    for (void *it = wb_json_first(j); it; it = wb_json_next(j, it))
        if (!wb_parity_name_known(wb_json_iter_key(it)))
            fail_msg("%s is not among the names of the report", wb_json_iter_key(it));
    assert_null(wb_json_get(j, "env.WB_MARK"));
    assert_null(wb_json_get(j, "env.1BAD"));
    assert_null(wb_json_get(j, "env"));
    wb_json_line(j, &text);
    assert_null(strstr(wb_buf_str(&text), "hunter2"));
    wb_buf_release(&text);
}

/* A process of which nothing can be read any more: all is null, nothing is invented. */
static void test_gone(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_JSON wb_json *j = facts(f, "/wb", "null");
    static const char *const nulls[] = {"version", "libc",          "filesystem",   "env",
                                        "nice",    "ulimit.nofile", "user.groups",  "seccomp",
                                        "network", "umask",         "oom_score_adj"};

    for (size_t i = 0; i < WB_LEN(nulls); i++) {
        assert_non_null(wb_json_get(j, nulls[i]));
        assert_null(wb_json_string(wb_json_get(j, nulls[i])));
    }
}

/* Two forms with different folders and nothing else are the same thing. */
static void test_same_elsewhere(void **state)
{
    struct fixture *f = *state;
    char *allowed[] = {(char[]){"paths"}, NULL};
    WB_AUTO_JSON wb_json *a = NULL, *b = NULL, *d = NULL;

    put_process_files(f, "/wb");
    a = facts(f, "/wb", probe_text);
    put_process_files(f, "/srv/state/runs/run_1/db0");
    put(f, "proc/42/mountinfo",
        "20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "21 20 0:5 / /srv/state/runs/run_1/db0/prefix rw,nodev - overlay overlay rw\n"
        "22 20 8:2 / /srv/state/runs/run_1/db0/data rw,noatime - xfs /dev/sdb rw\n");
    b = facts(f, "/srv/state/runs/run_1/db0", probe_text);
    d = wb_parity_compare(a, b, allowed, NULL);
    assert_int_equal(wb_json_len(d), 4); /* the paths themselves */
    assert_int_equal(wb_parity_check(d, "docker", "native", NULL), 0);
}

static void test_compare(void **state)
{
    static const struct {
        const char *here, *there, *allowed, *asked;
        size_t n;
        const char *why; /* NULL: may go on */
    } cases[] = {
        {"{\"a\":\"1\"}", "{\"a\":\"1\"}", NULL, NULL, 0, NULL},
        {"{\"a\":null}", "{\"a\":null}", NULL, NULL, 0, NULL},
        {"{\"a\":\"1\"}", "{\"a\":\"2\"}", NULL, NULL, 1,
         "docker differs from native in a ('1' against '2')"},
        {"{\"a\":null}", "{\"a\":\"2\"}", NULL, NULL, 1, "a (nothing against '2')"},
        {"{\"a\":\"\"}", "{\"a\":null}", NULL, NULL, 1, "a ('' against nothing)"},
        {"{\"a\":\"1\"}", "{}", NULL, NULL, 1, "a ('1' against nothing)"},
        {"{}", "{\"a\":\"1\"}", NULL, NULL, 1, "a (nothing against '1')"},
        {"{}", "{\"a\":null}", NULL, NULL, 0, NULL},
        {"{\"a.b\":\"1\"}", "{}", "a", NULL, 1, NULL},
        {"{\"a.b\":\"1\"}", "{}", "a.b", NULL, 1, NULL},
        {"{\"a.b\":\"1\"}", "{}", "a.", NULL, 1, "a.b"},
        {"{\"a.b\":\"1\"}", "{}", "a.b.c", NULL, 1, "a.b"},
        {"{\"ab\":\"1\"}", "{}", "a", NULL, 1, "ab"},
        {"{\"a\":\"1\",\"b\":\"1\"}", "{\"a\":\"2\",\"b\":\"2\"}", "a", NULL, 2,
         "in b ('1' against '2'), which"},
        {"{\"a\":\"1\"}", "{\"a\":\"2\"}", NULL, "a", 1, NULL},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *a = NULL, *b = NULL, *d = NULL;
        WB_AUTO_FREE char *name = wb_strdup(cases[i].allowed);
        char *allowed[] = {name, NULL};
        const char *asked[] = {cases[i].asked, NULL};
        struct wb_err err = WB_ERR_INIT;
        int rc;

        assert_int_equal(wb_json_parse(cases[i].here, strlen(cases[i].here), &a, NULL), 0);
        assert_int_equal(wb_json_parse(cases[i].there, strlen(cases[i].there), &b, NULL), 0);
        d = wb_parity_compare(a, b, allowed, asked);
        assert_int_equal(wb_json_len(d), cases[i].n);
        rc = wb_parity_check(d, "docker", "native", &err);
        if (!cases[i].why)
            assert_int_equal(rc, 0);
        else if (rc != -WB_CONFLICT || !strstr(err.root, cases[i].why))
            fail_msg("%s against %s: wanted '%s', got '%s'", cases[i].here, cases[i].there,
                     cases[i].why, err.root);
    }
}

/* Many differences are named as far as an error has room, and counted. */
static void test_many(void **state)
{
    WB_AUTO_JSON wb_json *a = wb_json_object(), *b = wb_json_object(), *d = NULL;
    WB_AUTO_FREE char *value = wb_calloc(5001, 1);
    struct wb_err err = WB_ERR_INIT;

    memset(value, 'x', 5000);
    for (int i = 0; i < 50; i++) {
        WB_AUTO_FREE char *field = wb_strf("env.V%d", i);

        wb_json_set_str(a, field, value);
    }
    d = wb_parity_compare(a, b, NULL, NULL);
    assert_int_equal(wb_json_len(d), 50);
    assert_int_equal(wb_parity_check(d, "docker", "native", &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "env.V5"));
    assert_non_null(strstr(err.root, "and 44 more"));
    assert_null(strstr(err.root, "env.V6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_facts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_gone, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_same_elsewhere, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
