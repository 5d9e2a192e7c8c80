/*
 * Writers that die: at each step of a commit, at random moments, at the making of a store. After
 * each death the old state stands, git finds nothing wrong, and the next writer goes on.
 */
#include "tests/unit/record/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/rng.h"
#include "server/base/units.h"
#include "server/record/locks.h"
#include "server/record/quarantine.h"

#define KILLS 40

static void die_at(void *arg, const char *point)
{
    if (!strcmp(arg, point))
        (void)raise(SIGKILL);
}

/* Commits record n in a child that dies at the point. */
static void commit_and_die(const char *dir, int n, const char *point)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct wb_store *s = open_store(dir, false);
        WB_AUTO_FREE char *at = wb_strdup(point);

        s->hook = die_at;
        s->hook_arg = at;
        commit_records(s, n, n + 1);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_points(void **state)
{
    static const struct {
        const char *point;
        bool recorded, notice;
    } points[] = {
        {"locked", false, false},    {"raw-objects", false, false}, {"objects", false, false},
        {"synced", false, false},    {"published", false, false},   {"raw-ref", false, true},
        {"record-ref", true, false},
    };
    const char *dir = *state;
    size_t runs = 0;

    wb_store_close(open_store(dir, true));
    /* once on the empty store, once on one that has records */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < WB_LEN(points); i++) {
            int n = pass * 100 + (int)i * 2;
            WB_AUTO_FREE char *before = git(dir, "for-each-ref", "refs/heads");
            WB_AUTO_FREE char *after = NULL;
            struct wb_store *s;

            commit_and_die(dir, n, points[i].point);
            after = git(dir, "for-each-ref", "refs/heads");
            assert_int_equal(strcmp(before, after) != 0, points[i].recorded);
            runs += points[i].recorded;
            s = open_store(dir, false);
            assert_fsck(dir, true);
            assert_undamaged(s, runs);
            /* the next writer of any process goes on, and tidies */
            commit_records(s, n + 1, n + 2);
            runs++;
            assert_int_equal(wb_store_notices(s)->n, points[i].notice);
            if (!points[i].recorded) {
                commit_records(s, n, n + 1);
                runs++;
            }
            assert_undamaged(s, runs);
            assert_fsck(dir, true);
            wb_store_close(s);
        }
    }
}

/* The raw reference of a dead writer goes back to where it was, in whatever month it is. */
static void test_raw_taken_back(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *before = NULL;
    WB_AUTO_FREE char *dead = NULL;
    WB_AUTO_FREE char *after = NULL;
    struct wb_record r = make_record(5);
    struct wb_err err = WB_ERR_INIT;
    char commit[41];

    commit_records(s, 0, 2);
    wb_store_close(s);
    before = git(dir, "rev-parse", "refs/raw/lab/2026-11");
    commit_and_die(dir, 2, "raw-ref");
    dead = git(dir, "rev-parse", "refs/raw/lab/2026-11");
    assert_string_not_equal(dead, before);
    s = open_store(dir, false);
    r.started_ms += 40 * DAY_MS; /* another month */
    wb_json_set_str(r.summary, "started_at", "2027-01-09T15:41:49Z");
    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("%s", err.root);
    after = git(dir, "rev-parse", "refs/raw/lab/2026-11");
    assert_string_equal(after, before);
    assert_int_equal(wb_store_notices(s)->n, 1);
    assert_undamaged(s, 3);
    wb_record_release(&r);
    wb_store_close(s);
}

static void commit_for_ever(const char *dir, int from)
{
    struct wb_store *s = open_store(dir, false);

    for (;; from++)
        commit_records(s, from, from + 1);
}

static void test_random_kills(void **state)
{
    const char *dir = *state;
    struct wb_store *first = open_store(dir, true);
    struct wb_rng rng;
    const char *asked = getenv("WB_KILLS"); /* more of them, where there is time */
    int64_t one_ns = wb_now_ns(NULL), range_ns, kills = KILLS;
    int next = 1;

    if (asked)
        assert_int_equal(wb_parse_int(asked, 1, 100000, &kills, NULL), 0);

    /* What a commit takes here and now gives the range of the moments. */
    commit_records(first, 0, next);
    wb_store_close(first);
    one_ns = wb_now_ns(NULL) - one_ns;
    wb_rng_seed(&rng, 20261130);
    range_ns = 4 * one_ns;
    /* On a machine that slows down later, moments go on until one commit came through. */
    for (int k = 0; k < kills || (next == 1 && k < 10 * kills); k++) {
        int64_t after_ns = (int64_t)wb_rng_below(&rng, (uint64_t)range_ns);
        struct wb_store *s;
        struct wb_err err = WB_ERR_INIT;
        size_t runs;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            commit_for_ever(dir, next);
        assert_int_equal(wb_wait(NULL, -1, after_ns, &err), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_fsck(dir, true);
        s = open_store(dir, false);
        runs = count_runs(s);
        assert_true(runs >= (size_t)next);
        assert_undamaged(s, runs);
        next = (int)runs;
        if (next == 1)
            range_ns += one_ns;
        wb_store_close(s);
    }
    assert_true(next > 1); /* some came through, so the kills were in the midst of commits */
    {
        struct wb_store *s = open_store(dir, false);
        WB_AUTO_FREE char *left = wb_quarantine_path(wb_store_path(s));

        struct wb_strv names = {0};
        struct wb_err err = WB_ERR_INIT;

        commit_records(s, next, next + 1);
        assert_undamaged(s, (size_t)next + 1);
        assert_int_equal(wb_list_dir(left, &names, &err), 0);
        assert_int_equal(names.n, 1); /* the mark */
        wb_strv_release(&names);
        wb_store_close(s);
    }
}

static void test_making_killed(void **state)
{
    struct wb_rng rng;

    wb_rng_seed(&rng, 7);
    for (int k = 0; k < 12; k++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/%d", (const char *)*state, k);
        int64_t after_us = (int64_t)wb_rng_below(&rng, 15000);
        struct wb_err err = WB_ERR_INIT;
        struct wb_store *s;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            wb_store_close(open_store(dir, true));
            _exit(0);
        }
        assert_int_equal(wb_wait(NULL, -1, after_us * WB_US, &err), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        s = open_store(dir, true);
        commit_records(s, 0, 1);
        assert_undamaged(s, 1);
        assert_fsck(dir, false);
        wb_store_close(s);
    }
}

/* ---- lock files of git ---- */

static void put_lock(const char *path, int64_t age_s)
{
    const struct timespec when = {.tv_sec = wb_now_unix_ms(NULL) / 1000 - age_s};
    const struct timespec times[2] = {when, when};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_file_put(path, "", 0, &err), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_dead_locks(void **state)
{
    static const char *const names[] = {
        "HEAD", "config", "index", "packed-refs", "refs/heads/records/lab", "refs/raw/lab/2026-11"};
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);

    commit_records(s, 0, 1);
    for (size_t i = 0; i < WB_LEN(names); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s.lock", wb_store_path(s), names[i]);

        put_lock(path, 7200);
    }
    commit_records(s, 1, 2);
    assert_int_equal(wb_store_notices(s)->n, WB_LEN(names));
    for (size_t i = 0; i < WB_LEN(names); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s.lock", wb_store_path(s), names[i]);

        assert_false(wb_path_exists(path));
    }
    assert_undamaged(s, 2);
    wb_store_close(s);
}

static void test_living_locks(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    const char *repo = wb_store_path(s);
    WB_AUTO_FREE char *path = wb_strf("%s/refs/heads/records/lab.lock", repo);
    WB_AUTO_FREE char *packed = wb_strf("%s/packed-refs.lock", repo);
    struct wb_strv notices = {0};
    struct wb_err err = WB_ERR_INIT;
    int fd;

    /* old, but somebody has it open */
    put_lock(path, 7200);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(wb_git_unlock_ref(repo, "refs/heads/records/lab", 50 * WB_MS, &notices, &err),
                     -WB_CONFLICT);
    assert_true(strstr(err.root, path) != NULL);
    assert_true(wb_path_exists(path));
    (void)close(fd);
    /* nobody has it open, but it is new: waited for, and gone once it is old enough */
    put_lock(path, 0);
    assert_int_equal(wb_git_unlock_ref(repo, "refs/heads/records/lab", 50 * WB_MS, &notices, &err),
                     -WB_CONFLICT);
    assert_int_equal(notices.n, 0);
    assert_int_equal(wb_git_unlock_ref(repo, "refs/heads/records/lab", 5 * WB_SEC, &notices, &err),
                     0);
    assert_int_equal(notices.n, 1);
    assert_false(wb_path_exists(path));
    /* from a time that is still to come, since the clock was set back: its age is how long it was
     * watched */
    put_lock(path, -7200);
    assert_int_equal(wb_git_unlock_ref(repo, "refs/heads/records/lab", 50 * WB_MS, &notices, &err),
                     -WB_CONFLICT);
    assert_int_equal(wb_git_unlock_ref(repo, "refs/heads/records/lab", 30 * WB_SEC, &notices, &err),
                     0);
    assert_int_equal(notices.n, 2);
    /* a packing that runs for a while is left alone and does not stop us */
    put_lock(packed, 60);
    commit_records(s, 0, 1);
    assert_true(wb_path_exists(packed));
    wb_strv_release(&notices);
    wb_store_close(s);
}

/* A second writer waits for the store's lock and names its holder when it gives up. */
static void test_store_lock(void **state)
{
    struct wb_store *s = open_store(*state, true);
    const char *repo = wb_store_path(s);
    WB_AUTO_FREE char *who = wb_strf("process %d", (int)getpid());
    struct wb_err err = WB_ERR_INIT;
    int a = -1, b = -1;

    assert_int_equal(wb_store_lock(repo, 0, &a, &err), 0);
    assert_int_equal(wb_store_lock(repo, 50 * WB_MS, &b, &err), -WB_CONFLICT);
    assert_true(strstr(err.root, who) != NULL);
    assert_int_equal(b, -1);
    (void)close(a);
    assert_int_equal(wb_store_lock(repo, 0, &b, &err), 0);
    (void)close(b);
    wb_store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_points),     T(test_raw_taken_back), T(test_random_kills), T(test_making_killed),
        T(test_dead_locks), T(test_living_locks),   T(test_store_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
