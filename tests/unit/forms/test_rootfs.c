/* The base image: kept, made, and not made, with a tool of our own in PATH. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provisioners/forms/rootfs.h"
#include "provisioners/forms/tar.h"
#include "server/base/buf.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define KEY "rootfs-bookworm-essential-1"

struct place {
    char dir[64];
    char *cache, *bin, *path; /* path: PATH before */
};

static int set_up(void **state)
{
    struct place *p = wb_calloc(1, sizeof *p);

    memcpy(p->dir, "/tmp/wb-rootfs-XXXXXX", 22);
    *state = p;
    if (!mkdtemp(p->dir))
        return -1;
    p->cache = wb_strf("%s/cache", p->dir);
    p->bin = wb_strf("%s/bin", p->dir);
    p->path = wb_strdup(getenv("PATH"));
    return wb_mkdir_all(p->bin, 0755, NULL);
}

static int tear_down(void **state)
{
    struct place *p = *state;
    int rc = wb_remove_tree(p->dir, NULL);

    setenv("PATH", p->path, 1);
    free(p->cache);
    free(p->bin);
    free(p->path);
    free(p);
    return rc;
}

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, name);
    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int to_buf(void *arg, const void *data, size_t n, struct wb_err *err)
{
    wb_buf_add(arg, data, n);
    return 0;
}

/* A tiny root file system, and a tool that "makes" it: arguments are kept for a look. */
static void put_tool(struct place *p, const char *status)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    struct wb_tar t = {.sink = to_buf, .arg = &b};
    WB_AUTO_FREE char *fixture = wb_strf("%s/fixture.tar", p->dir);
    WB_AUTO_FREE char *script = wb_strf("#!/bin/sh\n"
                                        "printf '%%s\\n' \"$@\" >%s/args\n"
                                        "echo \"$SOURCE_DATE_EPOCH $TMPDIR\" >%s/env\n"
                                        "for a; do out=$prev; prev=$a; done\n"
                                        "cp %s \"$out\"\n",
                                        p->dir, p->dir, fixture);

    assert_int_equal(wb_tar_add_dir(&t, "./bin", 0755, NULL), 0);
    if (status)
        assert_int_equal(
            wb_tar_add_file(&t, "./var/lib/dpkg/status", 0644, status, strlen(status), NULL), 0);
    assert_int_equal(wb_tar_end(&t, NULL), 0);
    assert_int_equal(wb_file_put(fixture, b.data, b.len, NULL), 0);
    wb_buf_release(&b);
    put(p->bin, "mmdebstrap", script, 0755);
    WB_AUTO_FREE char *path = wb_strf("%s:/usr/bin:/bin", p->bin);
    setenv("PATH", path, 1);
}

static int make(struct place *p, struct wb_rootfs *out, struct wb_err *err)
{
    struct wb_rootfs_request q = {.cache_dir = p->cache, .suite = "bookworm"};
    *err = (struct wb_err)WB_ERR_INIT;
    return wb_rootfs_make(&q, out, err);
}

static bool has_sources(void)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    bool yes = false;

    if (wb_file_read_small("/etc/apt/sources.list.d/debian.sources", &b, NULL) == 0 ||
        wb_file_read_small("/etc/apt/sources.list", &b, NULL) == 0)
        yes = strstr(wb_buf_str(&b), "bookworm") != NULL;
    wb_buf_release(&b);
    return yes;
}

static char *read_text(struct place *p, const char *name)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", p->dir, name);
    char *text = NULL;
    size_t n;

    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, NULL), 0);
    return text;
}

static const char packages[] = "Package: dash\nStatus: install ok installed\nVersion: 0.5.12-2\n"
                               "Description: shell\n Package: not this\n\n"
                               "Package: libc6\nVersion: 2.36-9+deb12u13\n\n";

static void made_once_and_kept(void **state)
{
    struct place *p = *state;
    struct wb_rootfs r = {0}, again = {0};
    struct wb_err err;

    if (!has_sources())
        skip();
    put_tool(p, packages);
    assert_int_equal(make(p, &r, &err), 0);
    WB_AUTO_FREE char *tar = wb_strf("%s/" KEY ".tar", p->cache);
    assert_string_equal(r.tar, tar);
    assert_string_equal(wb_json_str_or(r.facts, "suite", ""), "bookworm");
    assert_string_equal(wb_json_str_or(r.facts, "variant", ""), "essential");
    assert_string_equal(wb_json_str_or(r.facts, "libc", ""), "2.36-9+deb12u13");
    assert_int_equal(wb_json_len(wb_json_get(r.facts, "packages")), 2);
    assert_string_equal(wb_json_str_or(wb_json_get(r.facts, "packages"), "dash", ""), "0.5.12-2");
    char hex[WB_SHA256_HEX];
    assert_int_equal(wb_sha256_file(tar, hex, NULL), 0);
    assert_string_equal(wb_json_str_or(r.facts, "sha256", ""), hex);
    WB_AUTO_FREE char *args = read_text(p, "args");
    assert_non_null(strstr(args, "--variant=essential\n"));
    assert_non_null(strstr(args, "\nbookworm\n"));
    assert_non_null(strstr(args, "/etc/apt/sources.list"));
    WB_AUTO_FREE char *env = read_text(p, "env");
    WB_AUTO_FREE char *right = wb_strf("1 %s/" KEY ".tar.tmp.%d\n", p->cache, (int)getpid());
    assert_string_equal(env, right);
    struct wb_strv names = {0};
    assert_int_equal(wb_list_dir(p->cache, &names, NULL), 0);
    assert_int_equal(names.n, 2); /* archive and manifest, nothing temporary */
    wb_strv_release(&names);
    /* The second time no tool is needed. */
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(make(p, &again, &err), 0);
    assert_true(wb_json_equal(r.facts, again.facts));
    wb_rootfs_release(&again);
    /* But an archive that does not fit its manifest is not taken. */
    assert_int_equal(truncate(tar, 100), 0);
    setenv("PATH", p->path, 1);
    put_tool(p, packages);
    assert_int_equal(make(p, &again, &err), 0);
    assert_true(wb_json_equal(r.facts, again.facts));
    wb_rootfs_release(&again);
    wb_rootfs_release(&r);
}

static void failures_of_the_tool_leave_nothing(void **state)
{
    static const struct {
        const char *script, *says;
        enum wb_code code;
    } cases[] = {
        {"#!/bin/sh\necho 'I: start' >&2\necho 'E: no such mirror' >&2\necho 'I: bye' >&2\nexit "
         "25\n",
         "(exit 25): E: no such mirror (it needs", WB_IO},
        {"#!/bin/sh\nexit 3\n", "exit 3", WB_IO},
        {"#!/bin/sh\nkill -9 $$\n", "mmdebstrap", WB_IO},
        {"#!/bin/sh\nexit 0\n", "root.tar", WB_NOT_FOUND},
        {"#!/bin/sh\nfor a; do out=$p; p=$a; done\necho garbage >\"$out\"\n", "ends in the middle",
         WB_CORRUPT},
    };
    struct place *p = *state;

    if (!has_sources())
        skip();
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_rootfs r = {0};
        struct wb_err err;
        struct wb_strv names = {0};
        put_tool(p, packages);
        put(p->bin, "mmdebstrap", cases[i].script, 0755);
        int rc = make(p, &r, &err);
        if (rc != -(int)cases[i].code || !strstr(err.root, cases[i].says) ||
            !strstr(err.context, "base image of bookworm"))
            fail_msg("case %zu: %d %s: %s", i, rc, err.context, err.root);
        assert_null(r.tar);
        assert_null(r.facts);
        assert_int_equal(wb_list_dir(p->cache, &names, NULL), 0);
        assert_int_equal(names.n, 0);
        wb_strv_release(&names);
        setenv("PATH", p->path, 1);
    }
}

static void archive_without_package_list_is_refused(void **state)
{
    static const char *const lists[] = {NULL, "", "Version: 1\n"};
    struct place *p = *state;

    if (!has_sources())
        skip();
    for (size_t i = 0; i < WB_LEN(lists); i++) {
        struct wb_rootfs r = {0};
        struct wb_err err;
        put_tool(p, lists[i]);
        assert_int_equal(make(p, &r, &err), -WB_CORRUPT);
        assert_null(r.tar);
    }
}

static void remains_of_dead_makers_are_removed(void **state)
{
    struct place *p = *state;
    struct wb_rootfs r = {0};
    struct wb_err err;
    WB_AUTO_FREE char *dead = wb_strf("%s/" KEY ".tar.tmp.%d/x", p->cache, (1 << 30) - 1);
    WB_AUTO_FREE char *dead_top = wb_strndup(dead, strlen(dead) - 2);
    WB_AUTO_FREE char *living = wb_strf("%s/" KEY ".tar.tmp.%d", p->cache, (int)getppid());
    WB_AUTO_FREE char *other = wb_strf("%s/mine.tmp.%d", p->cache, (1 << 30) - 1);

    if (!has_sources())
        skip();
    put_tool(p, packages);
    assert_int_equal(wb_mkdir_all(dead, 0755, NULL), 0);
    assert_int_equal(wb_mkdir_all(living, 0755, NULL), 0);
    assert_int_equal(wb_mkdir_all(other, 0755, NULL), 0);
    assert_int_equal(make(p, &r, &err), 0);
    assert_false(wb_path_exists(dead_top));
    assert_true(wb_path_exists(living));
    assert_true(wb_path_exists(other));
    wb_rootfs_release(&r);
}

static void suites_and_tools_that_are_not_there_are_named(void **state)
{
    struct place *p = *state;
    struct wb_rootfs r = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_rootfs_request q = {.cache_dir = p->cache, .suite = "../evil"};

    assert_int_equal(wb_rootfs_make(&q, &r, &err), -WB_INVALID);
    q.suite = "nosuchsuite";
    put_tool(p, packages);
    assert_int_equal(wb_rootfs_make(&q, &r, &err), -WB_UNSUPPORTED);
    assert_non_null(strstr(err.root, "/etc/apt/sources.list"));
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(wb_rootfs_check(p->cache, &err), -WB_UNSUPPORTED);
    assert_non_null(strstr(err.root, "apt-get install mmdebstrap"));
    put(p->cache, KEY ".json", "{}", 0644);
    assert_int_equal(wb_rootfs_check(p->cache, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_once_and_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_of_the_tool_leave_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(archive_without_package_list_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(remains_of_dead_makers_are_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(suites_and_tools_that_are_not_there_are_named, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
