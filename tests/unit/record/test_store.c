#include "tests/unit/record/fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_round_trip(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *commit = commit_record(s, 1);
    struct wb_record want = make_record(1);
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_JSON wb_json *study = NULL;
    struct wb_buf raw = WB_BUF_INIT(1 << 20);
    struct wb_run_place place = {0};

    assert_string_equal(wb_store_controller(s), "lab");
    text = git(dir, "symbolic-ref", "HEAD");
    assert_string_equal(text, "refs/heads/records/lab");
    free(text);
    text = git(dir, "rev-parse", "HEAD");
    assert_string_equal(text, commit);
    free(text);
    text = git(dir, "for-each-ref", "--format=%(refname)");
    assert_string_equal(text, "refs/heads/records/lab\nrefs/raw/lab/2026-11");
    free(text);
    {
        WB_AUTO_FREE char *folder =
            git(dir, "rev-parse", "HEAD:runs/2026/11/30/run_01JX8AB001CDEFGHJKMNPQRST");
        WB_AUTO_FREE char *said =
            wb_strf("run_01JX8AB001CDEFGHJKMNPQRST docker x1, round 1: ok, valid\n\n"
                    "study: forms\ncampaign: cmp_A\n"
                    "added: runs/2026/11/30/run_01JX8AB001CDEFGHJKMNPQRST %s\n"
                    "|Weighbridge <weighbridge@localhost>|Weighbridge "
                    "<weighbridge@localhost>|1796053341 1796053341|2026-11-30 15:42:21 +0000",
                    folder);

        text = git(dir, "log", "-1", "--format=%B|%an <%ae>|%cn <%ce>|%at %ct|%ai");
        assert_string_equal(text, said);
        free(text);
    }
    text = git(dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD");
#define RUN "runs/2026/11/30/run_01JX8AB001CDEFGHJKMNPQRST/"
    assert_string_equal(text, "100644 " RUN "environment.json\n100644 " RUN
                              "events.json\n100644 " RUN "plan.json\n100644 " RUN
                              "recipe/files/redis.conf\n100644 " RUN "recipe/recipe.yaml\n"
                              "100755 " RUN "recipe/steps/install\n100644 " RUN
                              "result.json\n100644 " RUN "study.json\n100644 " RUN "summary.json");
    free(text);
    text = git(dir, "cat-file", "blob", "HEAD:" RUN "study.json");
    assert_string_equal(text, "{\"rounds\":8,\"study\":\"forms\"}");
    assert_fsck(dir, false);

    assert_int_equal(wb_store_read(s, want.run, "summary", &summary, &err), 0);
    assert_true(
        wb_json_equal(wb_json_get(summary, "metrics"), wb_json_get(want.summary, "metrics")));
    assert_string_equal(wb_json_str_or(summary, "controller", ""), "lab");
    assert_int_equal(wb_json_len(wb_json_get(summary, "files")), 8);
    assert_string_equal(wb_json_str_or(wb_json_get(summary, "headline"), "throughput", ""),
                        "max.throughput");
    assert_string_equal(wb_json_str_or(wb_json_get(summary, "headline"), "p99", ""),
                        "latency.p99_ms");
    assert_int_equal(wb_store_read(s, want.run, "study", &study, &err), 0);
    assert_true(wb_json_equal(study, want.study));
    assert_int_equal(wb_store_read(s, want.run, "../x", &study, &err), -WB_INVALID);
    assert_int_equal(wb_store_read_raw(s, want.run, "db0.log", &raw, &err), 0);
    assert_string_equal(wb_buf_str(&raw), "log of 1\n");
    assert_int_equal(wb_store_read_raw(s, want.run, "db9.log", &raw, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_store_read_raw(s, want.run, "../db", &raw, &err), -WB_INVALID);
    assert_int_equal(wb_store_where(s, want.run, &place, &err), 0);
    assert_string_equal(place.commit, commit);
    assert_string_equal(place.ref, "refs/heads/records/lab");
    assert_string_equal(place.path, "runs/2026/11/30/run_01JX8AB001CDEFGHJKMNPQRST");
    assert_undamaged(s, 1);
    assert_int_equal(wb_store_notices(s)->n, 0);

    wb_run_place_release(&place);
    wb_buf_release(&raw);
    wb_record_release(&want);
    wb_store_close(s);
}

/* Everything a caller names is refused before it becomes a path, and nothing is written. */
static void test_hostile_names(void **state)
{
    static const char *const bad[] = {
        "",     ".",   "..",   "../x",   "/etc/passwd", "a/../b",    "a//b", "a/",
        ".git", "-rf", "a\nb", "a b",    "a\x1b",       "a\xc3\xa9", "a\\b", "a:b",
        "a~1",  "a^",  "a*",   "a/.git", "a/..",        "a/.",       "_x",   "a\x7f",
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    char commit[41] = "untouched";
    struct wb_err err;
    WB_AUTO_FREE char *refs = NULL;

    for (size_t i = 0; i < WB_LEN(bad); i++) {
        for (int what = 0; what < 3; what++) {
            struct wb_record r = make_record(1);
            char **name = what == 0 ? &r.run : what == 1 ? &r.raw[0].name : &r.recipe_files[0].name;

            free(*name);
            *name = wb_strdup(bad[i]);
            if (what == 0)
                wb_json_set_str(r.summary, "id", bad[i]);
            assert_int_equal(wb_store_commit(s, &r, commit, &err), -WB_INVALID);
            assert_string_equal(commit, "untouched");
            wb_record_release(&r);
        }
        if (bad[i][0])
            assert_int_equal(wb_store_open(dir, true, bad[i], &(struct wb_store *){NULL}, &err),
                             -WB_INVALID);
        {
            char *run = NULL;

            assert_int_equal(wb_store_resolve(s, bad[i], &run, &err), -WB_INVALID);
            assert_null(run);
        }
    }
    refs = git(dir, "for-each-ref");
    assert_string_equal(refs, "");
    wb_store_close(s);
}

static void test_bad_records(void **state)
{
    struct wb_store *s = open_store(*state, true);

    for (int what = 0;; what++) {
        struct wb_record r = make_record(1);
        struct wb_err err = WB_ERR_INIT;
        char commit[41];
        int want = -WB_INVALID;
        bool end = false;

        switch (what) {
        case 0:
            wb_json_set_str(r.summary, "id", "run_other");
            break;
        case 1:
            wb_json_free(r.plan);
            r.plan = NULL;
            break;
        case 2:
            wb_json_free(r.events);
            r.events = wb_json_object();
            break;
        case 3:
            r.started_ms = -1;
            break;
        case 4:
            r.started_ms = 253402300800000;
            break;
        case 5:
            wb_json_set_str(r.summary, "ended_at", "yesterday");
            break;
        case 6: /* the same raw name twice */
            free(r.raw[1].name);
            r.raw[1].name = wb_strdup(r.raw[0].name);
            break;
        case 7: /* the same recipe file twice */
            free(r.recipe_files[1].name);
            r.recipe_files[1].name = wb_strdup(r.recipe_files[0].name);
            break;
        case 8: /* file and folder */
            free(r.recipe_files[1].name);
            r.recipe_files[1].name = wb_strdup("steps");
            break;
        case 9:
            free(r.recipe_files[1].name);
            r.recipe_files[1].name = wb_strdup("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p");
            break;
        default:
            want = 0;
            end = true;
        }
        assert_int_equal(wb_store_commit(s, &r, commit, &err), want);
        wb_record_release(&r);
        if (end)
            break;
    }
    assert_undamaged(s, 1);
    assert_fsck(*state, false);
    wb_store_close(s);
}

static void test_once(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_record r = make_record(3);
    struct wb_err err = WB_ERR_INIT;
    char commit[41];

    free(commit_record(s, 3));
    assert_int_equal(wb_store_commit(s, &r, commit, &err), -WB_CONFLICT);
    assert_true(strstr(err.root, "recorded already") != NULL);
    assert_int_equal(count_runs(s), 1);
    wb_record_release(&r);
    wb_store_close(s);
}

static void test_resolve(void **state)
{
    static const struct {
        const char *prefix, *run;
        int rc;
    } cases[] = {
        {"run_01JX8AB001CDEFGHJKMNPQRST", "run_01JX8AB001CDEFGHJKMNPQRST", 0},
        {"run_01JX8AB002", "run_01JX8AB002CDEFGHJKMNPQRST", 0},
        {"run_01JX8AB00", NULL, -WB_CONFLICT},
        {"r", NULL, -WB_CONFLICT},
        {"run_02", NULL, -WB_NOT_FOUND},
        {"run_01JX8AB001CDEFGHJKMNPQRSTU", NULL, -WB_NOT_FOUND},
    };
    struct wb_store *s = open_store(*state, true);

    commit_records(s, 1, 4);
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        WB_AUTO_FREE char *run = NULL;

        assert_int_equal(wb_store_resolve(s, cases[i].prefix, &run, &err), cases[i].rc);
        if (cases[i].run)
            assert_string_equal(run, cases[i].run);
        else
            assert_null(run);
        if (cases[i].rc == -WB_CONFLICT)
            assert_true(strstr(err.root, "run_01JX8AB001CDEFGHJKMNPQRST") != NULL);
    }
    wb_store_close(s);
}

static void test_open(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/store.git", dir);
    WB_AUTO_FREE char *slash = wb_strf("%s/deep/er/store.git///", dir);
    WB_AUTO_FREE char *other = wb_strf("%s/other", dir);
    WB_AUTO_FREE char *note = wb_strf("%s/note", other);
    struct wb_store *s = NULL;
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *id = NULL;

    assert_int_equal(wb_store_open(path, false, NULL, &s, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_store_open("", true, NULL, &s, &err), -WB_INVALID);
    assert_int_equal(wb_store_open(slash, true, NULL, &s, &err), 0);
    id = wb_strdup(wb_store_controller(s));
    assert_int_equal(strlen(id), 13);
    wb_store_close(s);
    s = NULL;
    assert_int_equal(wb_store_open(slash, true, NULL, &s, &err), 0);
    assert_string_equal(wb_store_controller(s), id);
    wb_store_close(s);
    s = NULL;
    assert_int_equal(wb_store_open(slash, true, "lab", &s, &err), -WB_CONFLICT);
    assert_true(strstr(err.root, id) != NULL && strstr(err.root, "lab") != NULL);
    /* a folder with something in it is left alone */
    assert_int_equal(wb_mkdir_all(other, 0755, &err), 0);
    assert_int_equal(wb_file_put(note, "x", 1, &err), 0);
    assert_int_equal(wb_store_open(other, true, NULL, &s, &err), -WB_INVALID);
    assert_int_equal(wb_store_open(note, true, NULL, &s, &err), -WB_IO);
    assert_null(s);
    /* an empty one becomes the store */
    assert_int_equal(unlink(note), 0);
    assert_int_equal(wb_store_open(other, true, "lab", &s, &err), 0);
    commit_records(s, 0, 1);
    wb_store_close(s);
}

/* A bare clone can be read at once, and written only once it has an id of its own. */
static void test_clone(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/copy.git", dir);
    WB_AUTO_FREE char *out = NULL;
    struct wb_store *s = open_store(dir, true), *copy = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_record r = make_record(9);
    char commit[41];

    commit_records(s, 0, 2);
    out = git(dir, "clone", "-q", "--mirror", wb_store_path(s), path);
    assert_non_null(out);
    assert_int_equal(wb_store_open(path, false, NULL, &copy, &err), 0);
    assert_null(wb_store_controller(copy));
    assert_undamaged(copy, 2);
    assert_int_equal(wb_store_commit(copy, &r, commit, &err), -WB_CONFLICT);
    wb_store_close(copy);
    copy = NULL;
    assert_int_equal(wb_store_open(path, true, "second", &copy, &err), 0);
    if (wb_store_commit(copy, &r, commit, &err) < 0)
        fail_msg("%s", err.root);
    assert_undamaged(copy, 3);
    wb_record_release(&r);
    wb_store_close(copy);
    wb_store_close(s);
}

/* Newest first over days and controllers; filters; limit. */
static void test_list(void **state)
{
    static const int64_t days[] = {0, -1, -40, -400, 3};
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_JSON wb_json *all = NULL;
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; i < WB_LEN(days); i++) {
        struct wb_record r = make_record((int)i);
        struct wb_buf at = WB_BUF_INIT(64);
        char commit[41];

        r.started_ms = T0 + days[i] * DAY_MS;
        wb_format_time(r.started_ms, &at);
        wb_json_set_str(r.summary, "started_at", wb_buf_str(&at));
        wb_json_set_str(r.summary, "campaign", i < 3 ? "cmp_A" : "cmp_B");
        wb_json_set_str(r.summary, "outcome", i == 2 ? "sut-error" : "ok");
        if (wb_store_commit(s, &r, commit, &err) < 0)
            fail_msg("%s", err.root);
        wb_buf_release(&at);
        wb_record_release(&r);
    }
    all = list_all(s);
    assert_int_equal(wb_json_len(all), 5);
    for (size_t i = 0; i + 1 < wb_json_len(all); i++)
        assert_true(strcmp(wb_json_str_or(wb_json_at(all, i), "started_at", ""),
                           wb_json_str_or(wb_json_at(all, i + 1), "started_at", "")) > 0);
    assert_string_equal(wb_json_str_or(wb_json_at(all, 0), "id", ""),
                        "run_01JX8AB004CDEFGHJKMNPQRST");
    static const struct {
        struct wb_list_filter f;
        size_t n;
    } cases[] = {
        {{.campaign = "cmp_A"}, 3},
        {{.campaign = "cmp_"}, 0},
        {{.campaign = "cmp_A", .outcome = "ok"}, 2},
        {{.arm = "docker x1"}, 2},
        {{.arm = "native x1", .campaign = "cmp_B"}, 1},
        {{.limit = 2}, 2},
        {{.limit = 100}, 5},
        {{.campaign = "cmp_A", .limit = 1}, 1},
    };
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *list = NULL;

        assert_int_equal(wb_store_list(s, &cases[i].f, &list, &err), 0);
        assert_int_equal(wb_json_len(list), cases[i].n);
    }
    assert_undamaged(s, 5);
    wb_store_close(s);
}

/* Two stores' references in one: readers see the union. */
static void test_union(void **state)
{
    const char *dir = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/second.git", dir);
    struct wb_store *s = open_store(dir, true), *second = NULL;
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *out = NULL;
    WB_AUTO_JSON wb_json *all = NULL;
    WB_AUTO_FREE char *run = NULL;
    struct wb_buf raw = WB_BUF_INIT(1 << 20);

    assert_int_equal(wb_store_open(path, true, "second", &second, &err), 0);
    commit_records(s, 0, 3);
    commit_records(second, 3, 5);
    out = git(dir, "fetch", "-q", path, "refs/heads/records/*:refs/heads/records/*",
              "refs/raw/*:refs/raw/*");
    assert_non_null(out);
    wb_store_close(s);
    s = open_store(dir, false);
    all = list_all(s);
    assert_int_equal(wb_json_len(all), 5);
    assert_string_equal(wb_json_str_or(wb_json_at(all, 0), "controller", ""), "second");
    assert_int_equal(wb_store_resolve(s, "run_01JX8AB004", &run, &err), 0);
    assert_int_equal(wb_store_read_raw(s, run, "db0.log", &raw, &err), 0);
    assert_string_equal(wb_buf_str(&raw), "log of 4\n");
    assert_undamaged(s, 5);
    wb_buf_release(&raw);
    wb_store_close(second);
    wb_store_close(s);
}

static void test_pruned(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *out = NULL;
    WB_AUTO_JSON wb_json *damage = NULL;
    struct wb_buf raw = WB_BUF_INIT(1 << 20);
    struct wb_err err = WB_ERR_INIT;
    size_t runs = 0;

    commit_records(s, 0, 2);
    out = git(dir, "update-ref", "-d", "refs/raw/lab/2026-11");
    assert_non_null(out);
    damage = verify_all(s, &runs);
    assert_int_equal(runs, 2);
    assert_int_equal(wb_json_len(damage), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(wb_json_bool_or(wb_json_at(damage, i), "note", false));
        assert_string_equal(wb_json_str_or(wb_json_at(damage, i), "code", ""), "raw-pruned");
    }
    assert_int_equal(wb_store_read_raw(s, "run_01JX8AB001CDEFGHJKMNPQRST", "db0.log", &raw, &err),
                     -WB_NOT_FOUND);
    assert_true(strstr(err.root, "raw pruned") != NULL);
    /* and the month begins anew with the next run */
    commit_records(s, 2, 3);
    assert_int_equal(wb_store_read_raw(s, "run_01JX8AB002CDEFGHJKMNPQRST", "db0.log", &raw, &err),
                     0);
    assert_fsck(dir, true);
    wb_buf_release(&raw);
    wb_store_close(s);
}

static void test_no_raw(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_record r = make_record(1);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *refs = NULL;
    char commit[41];

    for (size_t i = 0; i < r.nraw; i++) {
        free(r.raw[i].name);
        free(r.raw[i].data);
    }
    r.nraw = 0;
    assert_int_equal(wb_store_commit(s, &r, commit, &err), 0);
    refs = git(*state, "for-each-ref", "--format=%(refname)");
    assert_string_equal(refs, "refs/heads/records/lab");
    assert_undamaged(s, 1);
    wb_record_release(&r);
    wb_store_close(s);
}

/* Two processes write at the same time; everything of both is there. */
static void test_two_writers(void **state)
{
    enum { EACH = 8 };
    const char *dir = *state;
    pid_t pids[2];
    struct wb_store *s;

    wb_store_close(open_store(dir, true));
    for (int w = 0; w < 2; w++) {
        pids[w] = fork();
        assert_true(pids[w] >= 0);
        if (pids[w] == 0) {
            s = open_store(dir, false);
            commit_records(s, w * EACH, (w + 1) * EACH);
            wb_store_close(s);
            _exit(0);
        }
    }
    for (int w = 0; w < 2; w++) {
        int status = -1;

        assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
        assert_int_equal(status, 0);
    }
    s = open_store(dir, false);
    assert_int_equal(count_runs(s), 2 * EACH);
    assert_undamaged(s, 2 * EACH);
    assert_fsck(dir, false);
    wb_store_close(s);
}

/* Packed and garbage-collected by git, the store reads and writes as before. */
static void test_after_gc(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *out = NULL;

    commit_records(s, 0, 3);
    out = git(dir, "gc", "-q", "--prune=now");
    assert_non_null(out);
    assert_int_equal(count_runs(s), 3); /* a handle that was open before */
    commit_records(s, 3, 5);
    assert_undamaged(s, 5);
    assert_fsck(dir, false);
    wb_store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_round_trip), T(test_hostile_names), T(test_bad_records), T(test_once),
        T(test_resolve),    T(test_open),          T(test_clone),       T(test_list),
        T(test_union),      T(test_pruned),        T(test_no_raw),      T(test_two_writers),
        T(test_after_gc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
