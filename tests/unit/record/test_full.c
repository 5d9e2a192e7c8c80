/*
 * A full disk at every size of what is left: a commit either is whole or leaves no trace, and goes
 * through once there is room. Needs root for a small file system of its own.
 */
#include "tests/unit/record/fixture.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/rng.h"

#define BLOCK 4096
#define NOISE 200000 /* bytes that cannot be compressed */

/* A small file system at dir, which only this process sees. */
static bool own_file_system(const char *dir, const char *options)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", dir, "tmpfs", 0, options) == 0)
        return true;
    print_message("skipped: no tmpfs with %s can be mounted here: %s\n", options,
                  strerrorname_np(errno));
    return false;
}

/* Fills the file system of dir up to `left` bytes with one file; false when less is left. */
static bool leave(const char *dir, int64_t left)
{
    WB_AUTO_FREE char *path = wb_strf("%s/ballast", dir);
    WB_AUTO_FREE char *data = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t now = 0;

    (void)unlink(path);
    assert_int_equal(wb_disk_free(dir, &now, &err), 0);
    if (now < left)
        return false;
    data = wb_calloc((size_t)(now - left) + 1, 1);
    assert_int_equal(wb_file_put(path, data, (size_t)(now - left), &err), 0);
    return true;
}

static void test_full_disk(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *ballast = wb_strf("%s/ballast", dir);
    struct wb_store *s;
    struct wb_err err = WB_ERR_INIT;
    int64_t left = 0;
    int full = 0;
    char commit[41];

    if (!own_file_system(dir, "size=2m,mode=755"))
        skip();
    s = open_store(dir, true);
    commit_records(s, 0, 2);
    for (;; left += BLOCK) {
        struct wb_record r = make_record(2);
        int rc;

        assert_true(leave(dir, left));
        rc = wb_store_commit(s, &r, commit, &err);
        wb_record_release(&r);
        (void)unlink(ballast);
        if (rc == 0)
            break;
        full++;
        if (rc != -WB_IO)
            fail_msg("%lld bytes left: %d: %s: %s", (long long)left, rc, err.context, err.root);
        if (err.sys != ENOSPC)
            fail_msg("%lld bytes left: errno %d: %s: %s", (long long)left, err.sys, err.context,
                     err.root);
        assert_true(strstr(err.root, "No space left") != NULL);
        assert_int_equal(count_runs(s), 2);
        if (full % 4 == 0) { /* git is slow here, verify is not */
            assert_fsck(dir, true);
        }
        assert_undamaged(s, 2);
    }
    print_message("%d commits met the full disk\n", full);
    assert_true(full > 8); /* at many different places */
    assert_undamaged(s, 3);
    /* the handle and a new one go on */
    commit_records(s, 3, 4);
    wb_store_close(s);
    s = open_store(dir, false);
    commit_records(s, 4, 5);
    assert_undamaged(s, 5);
    assert_fsck(dir, true);
    wb_store_close(s);
    assert_int_equal(umount(dir), 0);
}

/* No room for a store: what is made of one is taken away again. */
static void test_no_store(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/store.git", dir);
    struct wb_store *s = NULL;
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;

    if (!own_file_system(dir, "size=16k,mode=755"))
        skip();
    assert_true(wb_store_open(path, true, "lab", &s, &err) < 0);
    assert_null(s);
    assert_int_equal(wb_list_dir(dir, &names, &err), 0);
    assert_int_equal(names.n, 0);
    wb_strv_release(&names);
    assert_int_equal(umount(dir), 0);
}

/* A store that grows until its file system of 50 MB is full, its index on it too: what is recorded
 * stays whole and can be read, and it goes on when there is room again. */
static void test_fills_up(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *ballast = wb_strf("%s/ballast", dir);
    WB_AUTO_FREE char *zeros = wb_calloc(4u << 20, 1);
    WB_AUTO_FREE unsigned char *noise = wb_calloc(NOISE, 1);
    struct wb_store *s;
    struct wb_err err = WB_ERR_INIT;
    struct wb_rng rng;
    int rc = 0, n = 0;

    if (!own_file_system(dir, "size=50m,mode=755"))
        skip();
    assert_int_equal(wb_file_put(ballast, zeros, 4u << 20, &err), 0);
    s = open_store(dir, true);
    wb_rng_seed(&rng, 11);
    for (; rc == 0; n++) {
        struct wb_record r = make_record(n);
        char commit[41];

        for (size_t i = 0; i < NOISE; i++)
            noise[i] = (unsigned char)wb_rng_below(&rng, 256);
        sample_file(&r.raw, &r.nraw, "noise", "");
        free(r.raw[r.nraw - 1].data);
        r.raw[r.nraw - 1].data = wb_calloc(NOISE, 1);
        memcpy(r.raw[r.nraw - 1].data, noise, NOISE);
        r.raw[r.nraw - 1].n = NOISE;
        rc = wb_store_commit(s, &r, commit, &err);
        wb_record_release(&r);
        if (n % 16 == 0 && rc == 0)
            assert_int_equal(count_runs(s), n + 1); /* the index grows with it */
    }
    n--;
    assert_int_equal(rc, -WB_IO);
    assert_int_equal(err.sys, ENOSPC);
    assert_true(n > 100);
    wb_store_close(s);
    s = open_store(dir, false);
    assert_int_equal(count_runs(s), n);
    assert_undamaged(s, (size_t)n);
    assert_fsck(dir, true);
    {
        WB_AUTO_FREE char *index = wb_strf("%s/store.git/weighbridge.index", dir);

        (void)unlink(index); /* on the full disk it cannot be made again, and is not missed */
        assert_int_equal(wb_file_put(index, "", 0, &err), 0);
        assert_int_equal(count_runs(s), n);
    }
    wb_store_close(s);
    assert_int_equal(unlink(ballast), 0);
    s = open_store(dir, false);
    commit_records(s, n, n + 2);
    assert_undamaged(s, (size_t)n + 2);
    assert_int_equal(count_runs(s), n + 2);
    wb_store_close(s);
    assert_int_equal(umount(dir), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {T(test_full_disk), T(test_no_store), T(test_fills_up)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
