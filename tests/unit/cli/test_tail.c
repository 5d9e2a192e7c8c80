/* Following logs: no line twice, none lost, whatever happens to the files. */
#include "server/cli/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/buf.h"
#include "server/base/file.h"
#include "server/base/mem.h"

struct fixture {
    char *dir;
    struct wb_tail *t;
    struct wb_buf said; /* "stream|line\n" */
};

static void hear(void *arg, const char *stream, const char *line, size_t n)
{
    struct fixture *f = arg;

    wb_buf_addf(&f->said, "%s|", stream);
    wb_buf_add(&f->said, line, n);
    wb_buf_addc(&f->said, '\n');
}

static int setup(void **state)
{
    struct fixture *f = wb_calloc(1, sizeof(*f));
    WB_AUTO_FREE char *log = NULL;
    char *dir = wb_strdup("/tmp/weighbridge-tail.XXXXXX");

    f->dir = mkdtemp(dir);
    f->said = (struct wb_buf)WB_BUF_INIT(64u << 20);
    f->t = wb_tail_new(hear, f);
    log = wb_strf("%s/db0/log", f->dir);
    *state = f;
    return wb_mkdir_all(log, 0755, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    wb_tail_free(f->t);
    wb_buf_release(&f->said);
    WB_IGNORE(wb_remove_tree(f->dir, NULL));
    free(f->dir);
    free(f);
    return 0;
}

static char *path_of(const struct fixture *f, const char *name)
{
    return wb_strf("%s/%s", f->dir, name);
}

static void add(const struct fixture *f, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = path_of(f, name);
    FILE *out = fopen(path, "a");

    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
    assert_int_equal(fclose(out), 0);
}

static void move(const struct fixture *f, const char *from, const char *to)
{
    WB_AUTO_FREE char *a = path_of(f, from);
    WB_AUTO_FREE char *b = path_of(f, to);

    assert_int_equal(rename(a, b), 0);
}

static void take_away(const struct fixture *f, const char *name)
{
    WB_AUTO_FREE char *path = path_of(f, name);

    assert_int_equal(unlink(path), 0);
}

/* Looks, and compares what was told since the last time. */
static void assert_told(struct fixture *f, const char *want)
{
    wb_tail_scan(f->t, f->dir);
    while (wb_tail_read(f->t)) {
    }
    assert_string_equal(wb_buf_str(&f->said), want);
    wb_buf_clear(&f->said);
}

#define LOG "db0/log/system.log"

static void test_growing(void **state)
{
    struct fixture *f = *state;

    assert_told(f, "");
    add(f, LOG, "one\ntwo\nthr");
    assert_told(f, LOG "|one\n" LOG "|two\n");
    assert_told(f, "");
    add(f, LOG, "ee\n\nfour");
    assert_told(f, LOG "|three\n" LOG "|\n");
    wb_tail_end(f->t);
    assert_string_equal(wb_buf_str(&f->said), LOG "|four\n");
    wb_tail_end(f->t); /* once */
    assert_string_equal(wb_buf_str(&f->said), LOG "|four\n");
    assert_false(wb_tail_is_over(f->t));
}

static void test_rotated(void **state)
{
    struct fixture *f = *state;

    add(f, LOG, "1\n2\n");
    assert_told(f, LOG "|1\n" LOG "|2\n");
    add(f, LOG, "3\n4"); /* in the middle of a line, and read by nobody yet */
    move(f, LOG, LOG ".1");
    add(f, LOG, "5\n");
    add(f, LOG ".1", " and more\n"); /* the writer still had the old one open */
    assert_told(f, LOG "|3\n" LOG "|4 and more\n" LOG "|5\n");
    /* Twice between two looks: nobody saw the one in the middle under its first name. */
    move(f, LOG ".1", LOG ".2");
    move(f, LOG, LOG ".1");
    add(f, LOG, "6\n");
    move(f, LOG ".2", LOG ".3");
    move(f, LOG ".1", LOG ".2");
    move(f, LOG, LOG ".1");
    add(f, LOG, "7\n");
    assert_told(f, LOG "|6\n" LOG "|7\n");
    assert_told(f, "");
}

static void test_removed(void **state)
{
    struct fixture *f = *state;

    add(f, LOG, "1\n");
    assert_told(f, LOG "|1\n");
    add(f, LOG, "2\nlast words");
    take_away(f, LOG);
    assert_told(f, LOG "|2\n" LOG "|last words\n");
    assert_true(wb_tail_is_over(f->t));
    add(f, LOG, "3\n"); /* another file, maybe of the same inode */
    assert_told(f, LOG "|3\n");
}

static void test_cut_off(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *path = path_of(f, LOG);

    add(f, LOG, "one\ntwo\npart");
    assert_told(f, LOG "|one\n" LOG "|two\n");
    assert_int_equal(truncate(path, 0), 0);
    add(f, LOG, "new\n");
    assert_told(f, LOG "|part\n" LOG "|new\n");
}

static void test_what_is_a_log(void **state)
{
    static const char *const others[] = {
        "db0/log/system.log.1.gz",
        "db0/log/system.log.zip",
        "db0/log/old.log.zst",
        "db0/log/.log",
        "db0/log/logs",
        "db0/log/a.logx",
        "db0/log/run.json",
        "db0/data/x.log",
    };
    struct fixture *f = *state;
    WB_AUTO_FREE char *data = path_of(f, "db0/data");
    WB_AUTO_FREE char *deep = path_of(f, "a/b/c/d/e");
    WB_AUTO_FREE char *link = path_of(f, "db0/log/link.log");
    WB_AUTO_FREE char *pipe = path_of(f, "db0/log/pipe.log");

    assert_int_equal(wb_mkdir_all(data, 0755, NULL), 0);
    assert_int_equal(wb_mkdir_all(deep, 0755, NULL), 0);
    for (size_t i = 0; i < WB_LEN(others); i++)
        add(f, others[i], "no\n");
    add(f, "a/b/c/d/e/x.log", "too deep\n");
    assert_int_equal(symlink("/etc/passwd", link), 0); /* its writer may not be who looks */
    assert_int_equal(mkfifo(pipe, 0600), 0);           /* nobody writes to it: no waiting */
    assert_told(f, "");
    add(f, "a/b/c/y.log", "yes\n");
    add(f, "db0/log/gc.log.0", "old\n");
    add(f, "load.log", "top\n");
    assert_told(f, "a/b/c/y.log|yes\ndb0/log/gc.log|old\nload.log|top\n");
}

static void test_long_lines_and_bytes(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *path = path_of(f, LOG);
    char *long_line = wb_calloc(3u << 20, 1);
    size_t whole = 0;

    memset(long_line, 'x', (3u << 20) - 2);
    long_line[(3u << 20) - 2] = '\n';
    add(f, LOG, long_line);
    wb_tail_scan(f->t, f->dir);
    while (wb_tail_read(f->t)) {
    }
    for (size_t i = 0; i < f->said.len; i++)
        whole += f->said.data[i] == 'x';
    assert_int_equal(whole, (3u << 20) - 2); /* in parts, but all of it */
    wb_buf_clear(&f->said);
    assert_int_equal(wb_file_put(path, "a\0b\n\xff\n", 6, NULL), 0);
    wb_tail_scan(f->t, f->dir);
    while (wb_tail_read(f->t)) {
    }
    assert_int_equal(f->said.len, 2 * strlen(LOG "|\n") + 4);
    free(long_line);
}

static void test_named(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *path = path_of(f, "events.ndjson");

    wb_tail_add(f->t, path, "events");
    assert_false(wb_tail_read(f->t));
    add(f, "events.ndjson", "{}\n");
    wb_tail_add(f->t, path, "events");
    wb_tail_add(f->t, path, "events"); /* known */
    assert_true(wb_tail_read(f->t));
    assert_string_equal(wb_buf_str(&f->said), "events|{}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rotated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_a_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_lines_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_named, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
