/* Tar archives: the same tree gives the same bytes, and damaged archives are told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provisioners/forms/tar.h"
#include "server/base/buf.h"
#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/base/mem.h"

struct dir {
    char path[64];
};

static int set_up(void **state)
{
    struct dir *d = calloc(1, sizeof *d);

    memcpy(d->path, "/tmp/wb-tar-XXXXXX", 19);
    *state = d;
    return mkdtemp(d->path) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct dir *d = *state;
    int rc = wb_remove_tree(d->path, NULL);

    free(d);
    return rc;
}

static int to_buf(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct wb_buf *b = arg;

    wb_buf_add(b, data, n);
    return wb_buf_check(b, "archive", err);
}

static char *in_dir(void **state, const char *name)
{
    const struct dir *d = *state;
    return wb_strf("%s/%s", d->path, name);
}

static void put(void **state, const char *name, const char *text, mode_t mode)
{
    WB_AUTO_FREE char *path = in_dir(state, name);

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void make_dir(void **state, const char *name)
{
    WB_AUTO_FREE char *path = in_dir(state, name);
    assert_int_equal(wb_mkdir_all(path, 0755, NULL), 0);
}

static void make_link(void **state, const char *name, const char *target)
{
    WB_AUTO_FREE char *path = in_dir(state, name);
    assert_int_equal(symlink(target, path), 0);
}

/* A name of n letters 'c'. */
static char *letters(size_t n, char c)
{
    char *s = wb_calloc(n + 1, 1);
    memset(s, c, n);
    return s;
}

static int pack(void **state, const char *name, struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_FREE char *from = in_dir(state, name);
    struct wb_tar t = {.sink = to_buf, .arg = out};
    int rc = wb_tar_add_tree(&t, from, "p", err);

    if (rc == 0)
        rc = wb_tar_end(&t, err);
    if (rc == 0)
        assert_int_equal(t.bytes, out->len);
    return rc;
}

static void small_archive_has_exactly_these_bytes(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    struct wb_tar t = {.sink = to_buf, .arg = &b};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_tar_add_dir(&t, "wb", 0755, &err), 0);
    assert_int_equal(wb_tar_add_file(&t, "wb/a", 04711, "hello", 5, &err), 0);
    assert_int_equal(wb_tar_end(&t, &err), 0);
    assert_int_equal(b.len, 512 + 1024 + 1024);
    assert_string_equal(b.data, "wb/");
    assert_string_equal(b.data + 100, "0000755");
    assert_string_equal(b.data + 108, "0000000");
    assert_string_equal(b.data + 124, "00000000000");
    assert_string_equal(b.data + 136, "00000000001");
    assert_int_equal(b.data[156], '5');
    assert_memory_equal(b.data + 257, "ustar\00000", 8);
    assert_string_equal(b.data + 512, "wb/a");
    assert_string_equal(b.data + 512 + 100, "0004711");
    assert_string_equal(b.data + 512 + 124, "00000000005");
    assert_int_equal(b.data[512 + 156], '0');
    assert_memory_equal(b.data + 1024, "hello\0\0\0", 8);
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? 0 : (unsigned char)b.data[i];
    WB_AUTO_FREE char *octal = wb_strf("%06o", sum);
    assert_string_equal(b.data + 148, octal);
    assert_int_equal(b.data[155], ' ');
    for (size_t i = b.len - 1024; i < b.len; i++)
        assert_int_equal(b.data[i], 0);
    wb_buf_release(&b);
}

static void make_tree(void **state, const char *top)
{
    WB_AUTO_FREE char *l200 = letters(200, 'n');
    WB_AUTO_FREE char *l99 = letters(99, 'd');
    static const char *const dirs[] = {"", "/b", "/a", "/a/deep", "/empty"};

    for (size_t i = 0; i < WB_LEN(dirs); i++) {
        WB_AUTO_FREE char *d = wb_strf("%s%s", top, dirs[i]);
        make_dir(state, d);
    }
    WB_AUTO_FREE char *f1 = wb_strf("%s/b/run", top);
    WB_AUTO_FREE char *f2 = wb_strf("%s/a/%s", top, l200);     /* needs a pax record */
    WB_AUTO_FREE char *f3 = wb_strf("%s/a/deep/%s", top, l99); /* fits with a prefix */
    WB_AUTO_FREE char *f4 = wb_strf("%s/Z", top);
    WB_AUTO_FREE char *f5 = wb_strf("%s/link", top);
    WB_AUTO_FREE char *f6 = wb_strf("%s/long-link", top);
    put(state, f1, "#!/bin/sh\n", 0755);
    put(state, f2, "long name", 0644);
    put(state, f3, "", 0600);
    put(state, f4, "hard", 0644);
    make_link(state, f5, "../elsewhere");
    make_link(state, f6, l200);
    WB_AUTO_FREE char *from = in_dir(state, f4);
    WB_AUTO_FREE char *h = wb_strf("%s/b/hard", top);
    WB_AUTO_FREE char *to = in_dir(state, h);
    assert_int_equal(link(from, to), 0);
}

static void same_tree_gives_the_same_bytes(void **state)
{
    struct wb_buf a = WB_BUF_INIT(1 << 20), b = WB_BUF_INIT(1 << 20);
    struct wb_err err = WB_ERR_INIT;
    struct stat st;

    make_tree(state, "one");
    make_tree(state, "two");
    assert_int_equal(pack(state, "one", &a, &err), 0);
    assert_int_equal(pack(state, "two", &b, &err), 0);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    /* Of this very tree; a change of the format must be meant. */
    char hex[WB_SHA256_HEX];
    wb_sha256_of(a.data, a.len, hex);
    assert_string_equal(hex, "ce2d59941217e40f54c59d365ba0c619e2d29472d762fff8dec2ce443027dfbe");
    WB_AUTO_FREE char *f = in_dir(state, "two/b/run");
    assert_int_equal(stat(f, &st), 0);
    assert_int_equal(chmod(f, 0700), 0);
    wb_buf_clear(&b);
    assert_int_equal(pack(state, "two", &b, &err), 0);
    assert_memory_not_equal(a.data, b.data, a.len);
    wb_buf_release(&a);
    wb_buf_release(&b);
}

/* GNU tar, which knows nothing of this code, reads the archive as what it is. */
static void other_tools_read_it(void **state)
{
    struct wb_buf a = WB_BUF_INIT(1 << 20), listing = WB_BUF_INIT(1 << 16);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *tar = in_dir(state, "t.tar");
    WB_AUTO_FREE char *l200 = letters(200, 'n');
    WB_AUTO_FREE char *l99 = letters(99, 'd');
    struct wb_child_result res = {0};

    make_tree(state, "tree");
    assert_int_equal(pack(state, "tree", &a, &err), 0);
    assert_int_equal(wb_file_put(tar, a.data, a.len, &err), 0);
    char *const argv[] = {(char[]){"tar"},
                          (char[]){"--utc"},
                          (char[]){"--numeric-owner"},
                          (char[]){"-tvf"},
                          tar,
                          NULL};
    struct wb_child_spec spec = {.argv = argv, .limit_ns = 20 * WB_SEC};
    assert_int_equal(wb_child_check(&spec, &res, &err), 0);
    static const char *const t = "1970-01-01 00:00";
    wb_buf_addf(&listing, "drwxr-xr-x 0/0               0 %s p/\n", t);
    wb_buf_addf(&listing, "-rw-r--r-- 0/0               4 %s p/Z\n", t);
    wb_buf_addf(&listing, "drwxr-xr-x 0/0               0 %s p/a/\n", t);
    wb_buf_addf(&listing, "drwxr-xr-x 0/0               0 %s p/a/deep/\n", t);
    wb_buf_addf(&listing, "-rw------- 0/0               0 %s p/a/deep/%s\n", t, l99);
    wb_buf_addf(&listing, "-rw-r--r-- 0/0               9 %s p/a/%s\n", t, l200);
    wb_buf_addf(&listing, "drwxr-xr-x 0/0               0 %s p/b/\n", t);
    wb_buf_addf(&listing, "-rw-r--r-- 0/0               4 %s p/b/hard\n", t);
    wb_buf_addf(&listing, "-rwxr-xr-x 0/0              10 %s p/b/run\n", t);
    wb_buf_addf(&listing, "drwxr-xr-x 0/0               0 %s p/empty/\n", t);
    wb_buf_addf(&listing, "lrwxrwxrwx 0/0               0 %s p/link -> ../elsewhere\n", t);
    wb_buf_addf(&listing, "lrwxrwxrwx 0/0               0 %s p/long-link -> %s\n", t, l200);
    assert_string_equal(wb_buf_str(&res.out), wb_buf_str(&listing));
    wb_child_release(&res);
    wb_buf_release(&listing);
    wb_buf_release(&a);
}

static int to_nothing(void *arg, const void *data, size_t n, struct wb_err *err)
{
    return 0;
}

static int full_disk(void *arg, const void *data, size_t n, struct wb_err *err)
{
    return wb_fail(err, WB_IO, "disk full");
}

static void what_cannot_be_packed_is_named(void **state)
{
    WB_AUTO_FREE char *pipe_path = in_dir(state, "t/pipe");
    WB_AUTO_FREE char *top = in_dir(state, "t");
    WB_AUTO_FREE char *file = in_dir(state, "f");
    WB_AUTO_FREE char *none = in_dir(state, "none");
    struct wb_tar t = {.sink = to_nothing};
    struct wb_err err = WB_ERR_INIT;

    make_dir(state, "t");
    put(state, "f", "x", 0644);
    assert_int_equal(wb_tar_add_tree(&t, none, "p", &err), -WB_NOT_FOUND);
    assert_int_equal(wb_tar_add_tree(&t, file, "p", &err), -WB_INVALID);
    assert_int_equal(wb_tar_add_tree(&t, top, "/p", &err), -WB_INVALID);
    assert_int_equal(wb_tar_add_file(&t, "", 0644, "", 0, &err), -WB_INVALID);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(wb_tar_add_tree(&t, top, "p", &err), -WB_INVALID);
    assert_non_null(strstr(err.root, pipe_path));
    t.sink = full_disk;
    assert_int_equal(wb_tar_add_tree(&t, top, "p", &err), -WB_IO);
    assert_string_equal(err.root, "disk full");
}

static void depth_and_length_are_bounded(void **state)
{
    struct wb_buf path = WB_BUF_INIT(10000);
    struct wb_tar t = {.sink = to_nothing};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *top = in_dir(state, "d");
    WB_AUTO_FREE char *name = letters(WB_TAR_PATH_MAX, 'x');

    wb_buf_adds(&path, "d");
    for (int i = 0; i < WB_TAR_DEPTH_MAX; i++)
        wb_buf_adds(&path, "/s");
    make_dir(state, wb_buf_str(&path));
    assert_int_equal(wb_tar_add_tree(&t, top, "p", &err), 0);
    wb_buf_adds(&path, "/s");
    make_dir(state, wb_buf_str(&path));
    assert_int_equal(wb_tar_add_tree(&t, top, "p", &err), -WB_LIMIT);
    assert_int_equal(wb_tar_add_file(&t, name, 0644, "", 0, &err), -WB_LIMIT);
    t.members = WB_TAR_MEMBERS_MAX - 1;
    assert_int_equal(wb_tar_add_file(&t, "a", 0644, "", 0, &err), 0);
    assert_int_equal(wb_tar_add_file(&t, "b", 0644, "", 0, &err), -WB_LIMIT);
    wb_buf_release(&path);
}

struct seen {
    struct wb_buf names;
    int stop_after, n;
};

static int note(void *arg, const struct wb_tar_member *m, struct wb_err *err)
{
    struct seen *s = arg;

    wb_buf_addf(&s->names, "%c%lld:%s ", m->type, (long long)m->size, m->path);
    return ++s->n == s->stop_after;
}

static void walk_reads_what_was_written(void **state)
{
    struct wb_buf a = WB_BUF_INIT(1 << 20);
    struct wb_err err = WB_ERR_INIT;
    struct seen s = {.names = WB_BUF_INIT(4096)};
    WB_AUTO_FREE char *tar = in_dir(state, "t.tar");
    WB_AUTO_FREE char *l200 = letters(200, 'n');
    WB_AUTO_FREE char *l99 = letters(99, 'd');
    int64_t end = -1;

    make_tree(state, "tree");
    assert_int_equal(pack(state, "tree", &a, &err), 0);
    assert_int_equal(wb_file_put(tar, a.data, a.len, &err), 0);
    assert_int_equal(wb_tar_walk(tar, note, &s, &end, &err), 0);
    assert_int_equal(end, a.len - 1024);
    WB_AUTO_FREE char *expected =
        wb_strf("50:p 04:p/Z 50:p/a 50:p/a/deep 00:p/a/deep/%s 09:p/a/%s 50:p/b 04:p/b/hard "
                "010:p/b/run 50:p/empty 20:p/link 20:p/long-link ",
                l99, l200);
    assert_string_equal(wb_buf_str(&s.names), expected);
    s.n = 0;
    s.stop_after = 2;
    end = -1;
    wb_buf_clear(&s.names);
    assert_int_equal(wb_tar_walk(tar, note, &s, &end, &err), 0);
    assert_string_equal(wb_buf_str(&s.names), "50:p 04:p/Z ");
    assert_int_equal(end, -1);
    wb_buf_release(&s.names);
    wb_buf_release(&a);
}

/* Archives of GNU tar: long names, sizes in base 256 cannot be made small; both forms of names. */
static void walk_reads_other_tools(void **state)
{
    static const char *const formats[] = {"--format=gnu", "--format=pax", "--format=ustar"};
    WB_AUTO_FREE char *tar = in_dir(state, "t.tar");
    WB_AUTO_FREE char *from = in_dir(state, "src");
    WB_AUTO_FREE char *l120 = letters(120, 'g');
    WB_AUTO_FREE char *l90 = letters(90, 'g');

    for (size_t i = 0; i < WB_LEN(formats); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_child_result res = {0};
        struct seen s = {.names = WB_BUF_INIT(4096)};
        const char *name = i == 2 ? l90 : l120;
        WB_AUTO_FREE char *file = wb_strf("src/%s", name);
        WB_AUTO_FREE char *format = wb_strdup(formats[i]);
        assert_int_equal(wb_remove_tree(from, NULL), 0);
        make_dir(state, "src");
        put(state, file, "abc", 0644);
        char *const argv[] = {(char[]){"tar"}, format, (char[]){"-C"}, from,
                              (char[]){"-cf"}, tar,    (char[]){"."},  NULL};
        struct wb_child_spec spec = {.argv = argv, .limit_ns = 20 * WB_SEC};
        assert_int_equal(wb_child_check(&spec, &res, &err), 0);
        int64_t end = 0;
        assert_int_equal(wb_tar_walk(tar, note, &s, &end, &err), 0);
        WB_AUTO_FREE char *expected = wb_strf("50: 03:%s ", name);
        assert_string_equal(wb_buf_str(&s.names), expected);
        assert_int_equal(end % 512, 0);
        wb_buf_release(&s.names);
        wb_child_release(&res);
    }
}

static void set_checksum(char *block)
{
    unsigned sum = 8 * ' ';

    for (int i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? 0 : (unsigned char)block[i];
    for (int i = 153; i >= 148; i--, sum >>= 3)
        block[i] = (char)('0' + (sum & 7));
    block[154] = '\0';
    block[155] = ' ';
}

static void damage_is_told(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        const char *bytes;
        size_t n;
        bool sum; /* make the checksum right again */
        size_t cut;
    } cases[] = {
        {.what = "no tar header", .at = 0, .bytes = "X", .n = 1},
        {.what = "no tar header", .at = 148, .bytes = "9999999", .n = 7},
        {.what = "larger than the archive",
         .at = 124,
         .bytes = "77777777777",
         .n = 11,
         .sum = true},
        {.what = "larger than the archive",
         .at = 124,
         .bytes = "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
         .n = 12,
         .sum = true},
        {.what = "larger than the archive",
         .at = 124,
         .bytes = "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         .n = 12,
         .sum = true},
        {.what = "larger than the archive", .at = 124, .bytes = "-1\0", .n = 3, .sum = true},
        {.what = "sparse", .at = 156, .bytes = "S", .n = 1, .sum = true},
        {.what = "pax record", .at = 156, .bytes = "x", .n = 1, .sum = true},
        {.what = "ends in the middle", .cut = 1024},
        {.what = "ends in the middle", .cut = 1536},
        {.what = "ends in the middle", .cut = 600},
        {.what = "larger than the archive", .cut = 515},
        {.what = "ends in the middle", .cut = 1},
    };
    WB_AUTO_FREE char *tar = in_dir(state, "t.tar");

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf b = WB_BUF_INIT(1 << 16);
        struct wb_tar t = {.sink = to_buf, .arg = &b};
        struct wb_err err = WB_ERR_INIT;
        assert_int_equal(wb_tar_add_file(&t, "a", 0644, "hello hello", 11, &err), 0);
        assert_int_equal(wb_tar_add_file(&t, "b", 0644, "", 0, &err), 0);
        assert_int_equal(wb_tar_end(&t, &err), 0);
        if (cases[i].n)
            memcpy(b.data + cases[i].at, cases[i].bytes, cases[i].n);
        if (cases[i].sum)
            set_checksum(b.data);
        size_t n = cases[i].cut ? cases[i].cut : b.len;
        assert_int_equal(wb_file_put(tar, b.data, n, &err), 0);
        int64_t end = -5;
        int rc = wb_tar_walk(tar, NULL, NULL, &end, &err);
        if (rc != -WB_CORRUPT || !strstr(err.root, cases[i].what) || !strstr(err.root, tar) ||
            end != -5)
            fail_msg("case %zu: %d %s", i, rc, err.root);
        wb_buf_release(&b);
    }
    struct wb_err err = WB_ERR_INIT;
    assert_int_equal(wb_file_put(tar, "", 0, NULL), 0);
    assert_int_equal(wb_tar_walk(tar, NULL, NULL, NULL, &err), -WB_CORRUPT);
    assert_int_equal(wb_tar_walk("/nowhere.tar", NULL, NULL, NULL, &err), -WB_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_archive_has_exactly_these_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(same_tree_gives_the_same_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_tools_read_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_packed_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(depth_and_length_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(walk_reads_what_was_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(walk_reads_other_tools, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
