#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-file-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static void test_write_read(void **state)
{
    WB_AUTO_FREE char *path = wb_strf("%s/f", (char *)*state);
    WB_AUTO_FREE char *text = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct stat st;
    size_t n;

    assert_int_equal(wb_file_write(path, "hello", 5, 0640, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(wb_file_read(path, 5, &text, &n, &err), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(n, 5);
    assert_int_equal(wb_file_read(path, 4, &text, &n, &err), -WB_LIMIT);
    assert_int_equal(wb_file_append(path, "!!", 2, &err), 0);
    free(text);
    text = NULL;
    assert_int_equal(wb_file_read(path, 100, &text, &n, &err), 0);
    assert_string_equal(text, "hello!!");
}

/* A failed write leaves the old content and no temporary file. */
static void test_write_fails(void **state)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/d", (char *)*state);
    WB_AUTO_FREE char *path = wb_strf("%s/d/sub", (char *)*state);
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};

    assert_int_equal(wb_mkdir_all(path, 0755, &err), 0);
    assert_true(wb_file_write(path, "x", 1, 0644, &err) < 0); /* a folder is in the way */
    assert_int_equal(wb_list_dir(dir, &names, &err), 0);
    assert_int_equal(names.n, 1);
    wb_strv_release(&names);
}

/* Links are removed, not followed. */
static void test_remove_tree(void **state)
{
    WB_AUTO_FREE char *keep = wb_strf("%s/keep", (char *)*state);
    WB_AUTO_FREE char *file = wb_strf("%s/keep/file", (char *)*state);
    WB_AUTO_FREE char *tree = wb_strf("%s/tree", (char *)*state);
    WB_AUTO_FREE char *deep = wb_strf("%s/tree/a/b/c", (char *)*state);
    WB_AUTO_FREE char *link = wb_strf("%s/tree/a/link", (char *)*state);
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_mkdir_all(keep, 0755, &err), 0);
    assert_int_equal(wb_file_put(file, "x", 1, &err), 0);
    assert_int_equal(wb_mkdir_all(deep, 0755, &err), 0);
    assert_int_equal(symlink(keep, link), 0);
    assert_int_equal(wb_remove_tree(tree, &err), 0);
    assert_false(wb_path_exists(tree));
    assert_true(wb_path_exists(file));
    assert_int_equal(wb_remove_tree(tree, &err), 0); /* absent is success */
}

static void test_names(void **state)
{
    static const struct {
        const char *s;
        bool ok;
    } cases[] = {{"run_01JX", true}, {"a", true},       {"", false},   {".", false},
                 {"..", false},      {"a/b", false},    {"-x", false}, {"a b", false},
                 {"a\nb", false},    {"db0.log", true}, {NULL, false}};
    char big[140];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(wb_safe_name(cases[i].s), cases[i].ok);
    memset(big, 'a', sizeof(big));
    big[128] = '\0';
    assert_true(wb_safe_name(big));
    big[128] = 'a';
    big[129] = '\0';
    assert_false(wb_safe_name(big));
}

static void test_lock(void **state)
{
    WB_AUTO_FREE char *path = wb_strf("%s/lock", (char *)*state);
    struct wb_err err = WB_ERR_INIT;
    int a, b;

    assert_int_equal(wb_lock_file(path, "campaign one", &a, &err), 0);
    assert_int_equal(wb_lock_file(path, "campaign two", &b, &err), -WB_CONFLICT);
    assert_int_equal(b, -1);
    assert_non_null(strstr(err.root, "is held by campaign one"));
    (void)close(a);
    assert_int_equal(wb_lock_file(path, "campaign two", &b, &err), 0);
    (void)close(b);
}

/* Who looks sees the holder and changes nothing, and other lookers do not matter. */
static void test_lock_look(void **state)
{
    WB_AUTO_FREE char *path = wb_strf("%s/looked-at", (char *)*state);
    WB_AUTO_FREE char *text = NULL;
    struct wb_err err = WB_ERR_INIT;
    int fd, other;

    assert_int_equal(wb_lock_look(path, &err), -WB_NOT_FOUND);
    assert_false(wb_path_exists(path));
    assert_int_equal(wb_lock_file(path, "campaign one", &fd, &err), 0);
    assert_int_equal(wb_lock_look(path, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "is held by campaign one"));
    (void)close(fd);
    other = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0);
    assert_int_equal(wb_lock_look(path, &err), 0);
    (void)close(other);
    assert_int_equal(wb_file_read(path, 100, &text, NULL, &err), 0);
    assert_string_equal(text, "campaign one");
    assert_int_equal(wb_lock_file(path, "campaign two", &fd, &err), 0); /* nothing was kept */
    (void)close(fd);
}

static void test_kernel_numbers(void **state)
{
    WB_AUTO_FREE char *path = wb_strf("%s/n", (char *)*state);
    struct wb_err err = WB_ERR_INIT;
    int64_t v;

    assert_int_equal(wb_file_put(path, "12345\n", 6, &err), 0);
    assert_int_equal(wb_file_read_int(path, &v, &err), 0);
    assert_int_equal(v, 12345);
    assert_int_equal(wb_file_put(path, "max\n", 4, &err), 0);
    assert_int_equal(wb_file_read_int(path, &v, &err), 0);
    assert_true(v == INT64_MAX);
    assert_int_equal(wb_file_put(path, "12x", 3, &err), 0);
    assert_true(wb_file_read_int(path, &v, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_read),     cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_remove_tree),    cmocka_unit_test(test_names),
        cmocka_unit_test(test_lock),           cmocka_unit_test(test_lock_look),
        cmocka_unit_test(test_kernel_numbers),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
