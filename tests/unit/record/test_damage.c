/*
 * Damage is found and named: a flipped byte in each stored file in turn, and every kind of record
 * that does not agree with itself although git finds nothing wrong with it.
 */
#include "tests/unit/record/fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN1 "run_01JX8AB001CDEFGHJKMNPQRST"
#define PATH1 "runs/2026/11/30/" RUN1

/* Flips the byte at `at` (negative: from the end) of a file; again to undo it. */
static void flip(const char *path, long at)
{
    struct stat st;
    char c;
    int fd;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(chmod(path, 0644), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    if (at < 0)
        at += (long)st.st_size;
    assert_int_equal(pread(fd, &c, 1, at), 1);
    c = (char)~c;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
    (void)close(fd);
}

static size_t count_code(const wb_json *damage, const char *run, const char *file, const char *code)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(damage); i++) {
        const wb_json *d = wb_json_at(damage, i);

        n += (!run || !strcmp(wb_json_str_or(d, "run", ""), run)) &&
             (!file || !strcmp(wb_json_str_or(d, "file", ""), file)) &&
             (!code || !strcmp(wb_json_str_or(d, "code", ""), code)) &&
             !wb_json_bool_or(d, "note", true);
    }
    return n;
}

static void print_damage(const wb_json *damage)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    wb_json_pretty(damage, &b);
    print_message("%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

/* The object files of the store, absolute; owned strings. */
static struct wb_strv object_files(const char *dir)
{
    struct wb_strv out = {0};
    struct wb_err err = WB_ERR_INIT;

    for (unsigned i = 0; i < 256; i++) {
        WB_AUTO_FREE char *folder = wb_strf("%s/store.git/objects/%02x", dir, i);
        struct wb_strv names = {0};

        if (wb_path_exists(folder))
            assert_int_equal(wb_list_dir(folder, &names, &err), 0);
        for (size_t k = 0; k < names.n; k++)
            wb_strv_addf(&out, "%s/%s", folder, names.v[k]);
        wb_strv_release(&names);
    }
    return out;
}

static void test_every_object(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    struct wb_strv files;

    commit_records(s, 0, 2);
    wb_store_close(s);
    files = object_files(dir);
    assert_true(files.n > 35);
    for (size_t i = 0; i < files.n; i++) {
        static const long places[] = {0, 12, -1};

        for (size_t p = 0; p < WB_LEN(places); p++) {
            WB_AUTO_JSON wb_json *damage = wb_json_array();
            struct wb_err err = WB_ERR_INIT;
            size_t runs = 0;
            int rc;

            flip(files.v[i], places[p]);
            s = open_store(dir, false);
            rc = wb_store_verify(s, NULL, damage, &runs, &err);
            if (rc < 0)
                fail_msg("%s at %ld: %s: %s", files.v[i], places[p], err.context, err.root);
            if (count_code(damage, NULL, NULL, NULL) == 0)
                fail_msg("%s at %ld: not found", files.v[i], places[p]);
            wb_store_close(s);
            flip(files.v[i], places[p]);
        }
    }
    s = open_store(dir, false);
    assert_undamaged(s, 2);
    wb_store_close(s);
    wb_strv_release(&files);
}

/* Each file of one record is named when it is the damaged one, by verify of all and of the run. */
static void test_named(void **state)
{
    static const char *const files[] = {
        "summary.json",
        "study.json",
        "plan.json",
        "environment.json",
        "result.json",
        "events.json",
        "recipe/files/redis.conf",
        "recipe/recipe.yaml",
        "recipe/steps/install",
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);

    commit_records(s, 1, 2); /* alone, so that no other run shares its files */
    wb_store_close(s);
    for (size_t i = 0; i < WB_LEN(files) + 1; i++) {
        bool raw = i == WB_LEN(files);
        const char *file = raw ? "raw/db0.log" : files[i];
        WB_AUTO_FREE char *spec = raw ? wb_strdup("refs/raw/lab/2026-11:30/" RUN1 "/db0.log.zst")
                                      : wb_strf("HEAD:" PATH1 "/%s", file);
        WB_AUTO_FREE char *hex = git(dir, "rev-parse", spec);
        WB_AUTO_FREE char *path = wb_strf("%s/store.git/objects/%.2s/%s", dir, hex, hex + 2);
        struct wb_err err = WB_ERR_INIT;
        WB_AUTO_JSON wb_json *all = NULL;
        WB_AUTO_JSON wb_json *one = wb_json_array();

        flip(path, -5);
        s = open_store(dir, false);
        all = verify_all(s, NULL);
        assert_int_equal(count_code(all, RUN1, file, raw ? "raw-damaged" : "unreadable"), 1);
        assert_int_equal(wb_store_verify(s, RUN1, one, NULL, &err), 0);
        assert_int_equal(count_code(one, RUN1, file, raw ? "raw-damaged" : "unreadable"), 1);
        wb_store_close(s);
        flip(path, -5);
        /* and when it is missing altogether */
        assert_int_equal(unlink(path), 0);
        s = open_store(dir, false);
        wb_json_free(all);
        all = verify_all(s, NULL);
        assert_true(count_code(all, RUN1, file, NULL) >= 1);
        wb_store_close(s);
        wb_store_close(open_store(dir, false));
        /* write it again the way git would */
        {
            struct wb_store *again;
            WB_AUTO_FREE char *other = wb_strf("%s/again", dir);
            WB_AUTO_FREE char *from = NULL;
            WB_AUTO_FREE char *data = NULL;
            size_t n = 0;

            assert_int_equal(wb_mkdir_all(other, 0755, &err), 0);
            again = open_store(other, true);
            commit_records(again, 1, 2);
            from = wb_strf("%s/store.git/objects/%.2s/%s", other, hex, hex + 2);
            assert_int_equal(wb_file_read(from, 1 << 20, &data, &n, &err), 0);
            assert_int_equal(wb_file_put(path, data, n, &err), 0);
            wb_store_close(again);
            assert_int_equal(wb_remove_tree(other, &err), 0);
        }
    }
    s = open_store(dir, false);
    assert_undamaged(s, 1);
    wb_store_close(s);
}

/* The same for packs and what belongs to them. */
static void test_packs(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *out = NULL;
    WB_AUTO_FREE char *folder = wb_strf("%s/objects/pack", wb_store_path(s));
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;

    commit_records(s, 0, 2);
    wb_store_close(s);
    out = git(dir, "gc", "-q", "--prune=now");
    assert_int_equal(wb_list_dir(folder, &names, &err), 0);
    assert_true(names.n >= 2);
    for (size_t i = 0; i < names.n; i++) {
        static const long places[] = {0, 9, 100, 333, -21, -1};
        WB_AUTO_FREE char *path = wb_strf("%s/%s", folder, names.v[i]);
        WB_AUTO_FREE char *file = wb_strf("objects/pack/%s", names.v[i]);

        for (size_t p = 0; p < WB_LEN(places); p++) {
            WB_AUTO_JSON wb_json *damage = NULL;

            flip(path, places[p]);
            s = open_store(dir, false);
            damage = verify_all(s, NULL);
            assert_int_equal(count_code(damage, NULL, file, "unreadable"), 1);
            wb_store_close(s);
            flip(path, places[p]);
        }
    }
    s = open_store(dir, false);
    assert_undamaged(s, 2);
    wb_store_close(s);
    wb_strv_release(&names);
}

/* References and HEAD that point to nothing, or are no references. */
static void test_references(void **state)
{
    static const struct {
        const char *file, *text;
    } cases[] = {
        {"refs/heads/records/lab", "1111111111111111111111111111111111111111\n"},
        {"refs/raw/lab/2026-11", "1111111111111111111111111111111111111111\n"},
        {"refs/heads/records/lab", "garbage\n"},
        {"refs/heads/records/lab", ""},
        {"refs/raw/lab/2026-11", ""},
        {"HEAD", "ref: refs/heads/records/lbb\n"},
        {"HEAD", "garbage\n"},
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);

    commit_records(s, 0, 2);
    wb_store_close(s);
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/store.git/%s", dir, cases[i].file);
        WB_AUTO_FREE char *data = NULL;
        WB_AUTO_JSON wb_json *damage = wb_json_array();
        wb_json *list = NULL;
        struct wb_err err = WB_ERR_INIT;
        size_t n = 0;
        int rc;

        assert_int_equal(wb_file_read(path, 4096, &data, &n, &err), 0);
        assert_int_equal(wb_file_put(path, cases[i].text, strlen(cases[i].text), &err), 0);
        s = open_store(dir, false);
        rc = wb_store_verify(s, NULL, damage, NULL, &err);
        if (rc < 0)
            fail_msg("case %zu: %s: %s", i, err.context, err.root);
        if (!count_code(damage, NULL, cases[i].file, NULL))
            fail_msg("case %zu was not found", i);
        if (!strncmp(cases[i].file, "refs/heads", 10)) /* nothing is quietly left out */
            assert_int_equal(wb_store_list(s, NULL, &list, &err), -WB_CORRUPT);
        wb_store_close(s);
        assert_int_equal(wb_file_put(path, data, n, &err), 0);
    }
}

/* A pipe is waited for by who opens it: among references and objects it is told instead. */
static void test_pipes(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *ref = wb_strf("%s/store.git/refs/heads/records/pipe", dir);
    WB_AUTO_JSON wb_json *damage = wb_json_array();
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv files;
    wb_json *list = NULL;

    commit_records(s, 0, 2);
    assert_int_equal(mkfifo(ref, 0600), 0);
    assert_int_equal(wb_store_verify(s, NULL, damage, NULL, &err), -WB_CORRUPT);
    assert_non_null(strstr(err.root, "records/pipe is neither a reference nor a folder"));
    assert_int_equal(wb_store_list(s, NULL, &list, &err), -WB_CORRUPT);
    assert_int_equal(unlink(ref), 0);
    files = object_files(dir);
    for (size_t i = 0; i < files.n; i += 7) {
        WB_AUTO_FREE char *away = wb_strf("%s/away", dir);

        assert_int_equal(rename(files.v[i], away), 0);
        assert_int_equal(mkfifo(files.v[i], 0600), 0);
        wb_store_close(s);
        s = open_store(dir, false);
        WB_IGNORE(wb_store_verify(s, NULL, damage, NULL, &err));
        assert_true(wb_json_len(damage) > 0);
        assert_int_equal(rename(away, files.v[i]), 0);
    }
    wb_strv_release(&files);
    wb_store_close(s);
}

/* Puts a file (NULL: removes it) with plain git and commits that: git finds all in order. */
static void tamper(const char *dir, const char *file, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf(PATH1 "/%s", file);
    WB_AUTO_FREE char *tmp = wb_strf("%s/content", dir);
    WB_AUTO_FREE char *hex = NULL;
    WB_AUTO_FREE char *entry = NULL;
    WB_AUTO_FREE char *out = NULL;
    WB_AUTO_FREE char *tree = NULL;
    WB_AUTO_FREE char *commit = NULL;
    struct wb_err err = WB_ERR_INIT;

    out = git(dir, "read-tree", "HEAD");
    assert_non_null(out);
    free(out);
    if (text) {
        assert_int_equal(wb_file_put(tmp, text, strlen(text), &err), 0);
        hex = git(dir, "hash-object", "-w", tmp);
        entry = wb_strf("100644,%s,%s", hex, path);
        out = git(dir, "update-index", "--add", "--cacheinfo", entry);
    } else {
        out = git(dir, "rm", "-q", "-r", "--cached", path);
    }
    assert_non_null(out);
    tree = git(dir, "write-tree");
    commit = git(dir, "commit-tree", "-p", "HEAD", "-m", "tampered", tree);
    free(out);
    out = git(dir, "update-ref", "HEAD", commit);
    assert_non_null(out);
}

static char *summary_with(const char *dir, const char *key, const char *value)
{
    WB_AUTO_FREE char *text = git(dir, "cat-file", "blob", "HEAD:" PATH1 "/summary.json");
    WB_AUTO_JSON wb_json *j = must_json(text);
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    if (value)
        wb_json_set(j, key, must_json(value));
    else
        wb_json_del(j, key);
    wb_json_canonical(j, &b);
    wb_buf_addc(&b, '\n');
    return wb_buf_take(&b);
}

/* What a version to come has recorded is no damage; what happened to it is. */
static void test_newer(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    struct wb_record r = make_record(1);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *damage = NULL;
    WB_AUTO_JSON wb_json *later = NULL;
    char commit[41];

    wb_json_set_int(r.summary, "schema", 2);
    wb_json_set_str(r.summary, "outcome", "marvellous");
    wb_json_del(r.summary, "metrics");
    assert_int_equal(wb_store_commit(s, &r, commit, &err), 0);
    wb_record_release(&r);
    damage = verify_all(s, NULL);
    assert_int_equal(wb_json_len(damage), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(damage, 0), "code", ""), "newer-schema");
    assert_true(wb_json_bool_or(wb_json_at(damage, 0), "note", false));
    tamper(dir, "study.json", "{}\n");
    later = verify_all(s, NULL);
    assert_int_equal(count_code(later, RUN1, "study.json", "digest"), 1);
    wb_store_close(s);
}

static void test_disagreeing(void **state)
{
    static const struct {
        const char *file, *text; /* file content; NULL: removed */
        const char *key, *value; /* or a key of the summary */
        const char *code;
    } cases[] = {
        {"plan.json", "{\"rounds\":9,\"seed\":7}\n", NULL, NULL, "digest"},
        {"plan.json", "{\"seed\":7,\"rounds\":8}\n", NULL, NULL, "not-canonical"},
        {"plan.json", "{\"rounds\":8,\"seed\":7}", NULL, NULL, "not-canonical"},
        {"plan.json", "{\"rounds\":8,", NULL, NULL, "not-json"},
        {"plan.json", "", NULL, NULL, "not-json"},
        {"plan.json", "[]\n", NULL, NULL, "schema"},
        {"plan.json", NULL, NULL, NULL, "missing"},
        {"events.json", "{}\n", NULL, NULL, "schema"},
        {"recipe/recipe.yaml", "name: other\n", NULL, NULL, "digest"},
        {"recipe/recipe.yaml", NULL, NULL, NULL, "missing"},
        {"recipe/more", "x", NULL, NULL, "unexpected"},
        {"note.txt", "x", NULL, NULL, "unexpected"},
        {"result.json", "{\"phases\":[]}\n", NULL, NULL, "digest"},
        {"summary.json", NULL, NULL, NULL, "missing"},
        {"summary.json", NULL, "schema", "0", "schema"},
        {"summary.json", NULL, "id", "\"run_other\"", "schema"},
        {"summary.json", NULL, "outcome", "\"fine\"", "schema"},
        {"summary.json", NULL, "validity", "null", "schema"},
        {"summary.json", NULL, "started_at", "\"2026-11-29T15:41:49Z\"", "schema"},
        {"summary.json", NULL, "started_at", "\"soon\"", "schema"},
        {"summary.json", NULL, "campaign", NULL, "schema"},
        {"summary.json", NULL, "metrics", "{}", "metrics"},
        {"summary.json", NULL, "metrics", "{\"x.p99_ms\":{\"value\":1}}", "metrics"},
        {"summary.json", NULL, "files", "{}", "unexpected"},
        {"summary.json", NULL, "recipe", "{\"digest\":\"00\"}", "recipe-digest"},
        {"summary.json", NULL, "raw", "{\"db0.log\":{\"bytes\":9,\"sha256\":\"00\"}}",
         "raw-damaged"},
        {"summary.json", NULL, "raw", "{\"db7.log\":{\"bytes\":9,\"sha256\":\"00\"}}",
         "raw-damaged"},
        {"summary.json", NULL, "raw", "{\"../x\":{}}", "schema"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/%zu", (const char *)*state, i);
        bool of_summary = cases[i].key != NULL;
        WB_AUTO_FREE char *text = NULL;
        WB_AUTO_JSON wb_json *damage = NULL;
        WB_AUTO_JSON wb_json *one = wb_json_array();
        struct wb_store *s;
        struct wb_err err = WB_ERR_INIT;

        s = open_store(dir, true);
        commit_records(s, 0, 3);
        wb_store_close(s);
        text =
            of_summary ? summary_with(dir, cases[i].key, cases[i].value) : wb_strdup(cases[i].text);
        tamper(dir, cases[i].file, text);
        assert_fsck(dir, false);
        s = open_store(dir, false);
        damage = verify_all(s, NULL);
        if (!count_code(damage, RUN1, NULL, cases[i].code)) {
            print_damage(damage);
            fail_msg("case %zu: no %s", i, cases[i].code);
        }
        /* that a later commit changed it is found whatever it changed */
        assert_int_equal(count_code(damage, RUN1, ".", "changed"), 1);
        assert_int_equal(wb_store_verify(s, RUN1, one, NULL, &err), 0);
        assert_true(count_code(one, RUN1, NULL, cases[i].code) >= 1);
        assert_int_equal(count_code(one, RUN1, ".", "changed"), 1);
        /* the neighbours are not accused */
        assert_int_equal(count_code(damage, "run_01JX8AB000CDEFGHJKMNPQRST", NULL, NULL), 0);
        assert_int_equal(count_code(damage, "run_01JX8AB002CDEFGHJKMNPQRST", NULL, NULL), 0);
        wb_store_close(s);
    }
}

/* A whole run taken out with plain git, and one put in. */
static void test_lost_run(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_JSON wb_json *damage = NULL;

    commit_records(s, 0, 3);
    wb_store_close(s);
    tamper(dir, "", NULL);
    s = open_store(dir, false);
    damage = verify_all(s, NULL);
    assert_int_equal(count_code(damage, RUN1, ".", "lost"), 1);
    wb_store_close(s);
}

/* A commit that replaces a run and names it as added: the commit that named it first counts, in an
 * index that saw the run before, in one that is made anew, and without one. */
static void test_replaced_run(void **state)
{
    static const bool folded_before[] = {true, false};

    for (size_t i = 0; i < WB_LEN(folded_before); i++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/%zu", (const char *)*state, i);
        struct wb_store *s = open_store(dir, true);
        WB_AUTO_FREE char *folder = NULL;
        WB_AUTO_FREE char *message = NULL;
        WB_AUTO_FREE char *commit = NULL;
        WB_AUTO_FREE char *first = NULL;
        WB_AUTO_JSON wb_json *one = wb_json_array();
        WB_AUTO_JSON wb_json *all = NULL;
        struct wb_run_place place = {0};
        struct wb_err err = WB_ERR_INIT;

        commit_records(s, 0, 1);
        first = commit_record(s, 1);
        commit_records(s, 2, 3);
        if (folded_before[i])
            assert_int_equal(count_runs(s), 3);
        wb_store_close(s);
        tamper(dir, "result.json", "{\"phases\":[]}\n");
        folder = git(dir, "rev-parse", "HEAD:" PATH1);
        message = wb_strf(RUN1 " again\n\nadded: " PATH1 " %s", folder);
        commit = git(dir, "commit-tree", "HEAD^{tree}", "-p", "HEAD^", "-m", message);
        free(git(dir, "update-ref", "HEAD", commit));
        s = open_store(dir, false);
        assert_int_equal(count_runs(s), 3);
        assert_int_equal(wb_store_verify(s, RUN1, one, NULL, &err), 0);
        assert_int_equal(count_code(one, RUN1, ".", "changed"), 1);
        all = verify_all(s, NULL);
        assert_int_equal(count_code(all, RUN1, ".", "changed"), 1);
        assert_int_equal(wb_store_where(s, RUN1, &place, &err), 0);
        assert_string_equal(place.commit, first);
        wb_run_place_release(&place);
        wb_store_close(s);
    }
}

/* Trees that only an older commit has, taken away: git could not push or pack any more. */
static void test_missing_history(void **state)
{
    static const char *const trees[] = {
        "HEAD~1^{tree}",          "HEAD~1:runs",
        "HEAD~1:runs/2026",       "HEAD~1:runs/2026/11",
        "HEAD~1:runs/2026/11/30", "HEAD~2:runs/2026/11/30",
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);

    commit_records(s, 0, 4);
    wb_store_close(s);
    for (size_t i = 0; i < WB_LEN(trees); i++) {
        WB_AUTO_FREE char *hex = git(dir, "rev-parse", trees[i]);
        WB_AUTO_FREE char *path = wb_strf("%s/store.git/objects/%.2s/%s", dir, hex, hex + 2);
        WB_AUTO_FREE char *away = wb_strf("%s/away", dir);
        WB_AUTO_JSON wb_json *damage = NULL;

        assert_int_equal(rename(path, away), 0);
        s = open_store(dir, false);
        damage = verify_all(s, NULL);
        if (wb_json_len(damage) != 1 ||
            !strstr(wb_json_str_or(wb_json_at(damage, 0), "message", ""), hex)) {
            print_damage(damage);
            fail_msg("%s, object %s", trees[i], hex);
        }
        wb_store_close(s);
        assert_int_equal(rename(away, path), 0);
    }
    s = open_store(dir, false);
    assert_undamaged(s, 4);
    wb_store_close(s);
}

/* Days are read at the references of an earlier reading, though somebody went on writing, under
 * another name of his own, too. */
static void test_beside_a_writer(void **state)
{
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_JSON wb_json *damage = wb_json_array();
    struct wb_days before = {0}, at = {0}, now = {0};
    struct wb_err err = WB_ERR_INIT;

    commit_records(s, 0, 1);
    assert_int_equal(wb_days_read(s, "runs", &before, damage, &err), 0);
    commit_records(s, 1, 2);
    free(git(*state, "update-ref", "refs/heads/records/a", "HEAD"));
    assert_int_equal(wb_days_read_at(s, "runs", &before, &at, damage, &err), 0);
    assert_int_equal(wb_days_read(s, "runs", &now, damage, &err), 0);
    assert_int_equal(now.nrefs, 2);
    assert_int_equal(at.nrefs, 1);
    assert_string_equal(at.refs[0].name, before.refs[0].name);
    assert_int_equal(at.n, before.n);
    assert_true(wb_oid_equal(&at.v[0].tree, &before.v[0].tree));
    assert_false(wb_oid_equal(&at.v[0].tree, &now.v[0].tree));
    wb_days_release(&before);
    wb_days_release(&at);
    wb_days_release(&now);
    wb_store_close(s);
}

/* A damaged summary does not stop a plain list, but a list that might miss it. */
static void test_list_with_damage(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    const struct wb_list_filter f = {.campaign = "cmp_A"};
    WB_AUTO_FREE char *hex = NULL;
    WB_AUTO_FREE char *path = NULL;
    WB_AUTO_JSON wb_json *list = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *some = NULL;

    commit_records(s, 0, 3);
    wb_store_close(s);
    hex = git(dir, "rev-parse", "HEAD:" PATH1 "/summary.json");
    path = wb_strf("%s/store.git/objects/%.2s/%s", dir, hex, hex + 2);
    flip(path, -5);
    s = open_store(dir, false);
    list = list_all(s);
    assert_int_equal(wb_json_len(list), 3);
    assert_string_equal(wb_json_str_or(wb_json_at(list, 2), "id", ""), RUN1);
    assert_non_null(wb_json_get(wb_json_at(list, 2), "damaged"));
    assert_int_equal(wb_store_list(s, &f, &some, &err), -WB_CORRUPT);
    assert_true(strstr(err.context, RUN1) != NULL);
    wb_store_close(s);
}

/* What verifying n runs of one day reads. */
static struct wb_git_work work_of(const char *dir, int n)
{
    WB_AUTO_FREE char *sub = wb_strf("%s/%d", dir, n);
    struct wb_git_work work;
    struct wb_store *s;

    assert_int_equal(wb_mkdir_all(sub, 0755, NULL), 0);
    s = open_store(sub, true);
    commit_records(s, 0, n);
    wb_store_close(s);
    s = open_store(sub, false);
    assert_undamaged(s, (size_t)n);
    work = wb_git_work(s->git);
    wb_store_close(s);
    return work;
}

/* Twice as many runs of a day are twice the work, not four times: a day's folder is one tree. */
static void test_linear(void **state)
{
    struct wb_git_work one = work_of(*state, 60), two = work_of(*state, 120);

    assert_true(one.objects >= 60 * 10);
    assert_true(two.objects * 10 <= one.objects * 21);
    assert_true(two.entries * 10 <= one.entries * 21);
}

/* Stores of before commits said what they added, and messages that only look as if they did. */
static void test_messages_of_others(void **state)
{
    static const char *const messages[] = {
        "%s docker x1, round 1: ok, valid",
        "%s\n\nadded: ../../x 0123456789012345678901234567890123456789 more",
        "%s\n\nadded: runs/2026/11/30/x 01234567890123456789012345678901234567",
        "%s\n\nadded: 0123456789012345678901234567890123456789",
        "%s\n\nadded: /.json 0123456789012345678901234567890123456789",
        "%s\n\nadded: \nadded:\n added: a/b 0123456789012345678901234567890123456789",
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *parent = NULL;

    for (size_t i = 0; i < WB_LEN(messages); i++) {
        WB_AUTO_FREE char *commit = commit_record(s, (int)i);
        WB_AUTO_FREE char *tree = wb_strf("%s^{tree}", commit);
        WB_AUTO_FREE char *run = wb_strf("run_01JX8AB%03zuCDEFGHJKMNPQRST", i);
        WB_AUTO_FREE char *message = NULL;
        struct wb_buf text = WB_BUF_INIT(4096);
        char *next;

        for (const char *m = messages[i]; *m; m++) /* "%s" is the run */
            if (*m == '%') {
                wb_buf_adds(&text, run);
                m++;
            } else {
                wb_buf_addc(&text, *m);
            }
        message = wb_buf_take(&text);
        next = parent ? git(dir, "commit-tree", tree, "-p", parent, "-m", message)
                      : git(dir, "commit-tree", tree, "-m", message);
        assert_non_null(next);
        free(parent);
        parent = next;
        free(git(dir, "update-ref", "refs/heads/records/lab", parent));
        assert_undamaged(s, i + 1);
        {
            struct wb_run_place place = {0};
            struct wb_err err = WB_ERR_INIT;

            assert_int_equal(wb_store_where(s, run, &place, &err), 0);
            assert_string_equal(place.commit, parent);
            wb_run_place_release(&place);
        }
    }
    wb_store_close(s);
}

/* A commit that says it added something else than what stands there. */
static void test_lying_message(void **state)
{
    static const struct {
        const char *path, *code;
    } cases[] = {
        {PATH1, "changed"},                    /* another object */
        {"runs/2026/11/29/" RUN1, "lost"},     /* another place */
        {"runs/2026/11/30/run_NEVER", "lost"}, /* another run */
    };
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *commit = commit_record(s, 1);
    WB_AUTO_FREE char *tree = wb_strf("%s^{tree}", commit);

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *message =
            wb_strf(RUN1 " x\n\nadded: %s 0123456789012345678901234567890123456789", cases[i].path);
        WB_AUTO_FREE char *next = git(dir, "commit-tree", tree, "-m", message);
        WB_AUTO_JSON wb_json *damage = NULL;

        free(git(dir, "update-ref", "refs/heads/records/lab", next));
        damage = verify_all(s, NULL);
        if (count_code(damage, NULL, NULL, cases[i].code) != 1) {
            print_damage(damage);
            fail_msg("case %zu", i);
        }
    }
    wb_store_close(s);
}

/* Programs of a recipe outside of steps/ are as much part of it as the steps. */
static void test_executables(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_record r = make_record(1);
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf lines = WB_BUF_INIT(65536);
    char hex[WB_SHA256_HEX], commit[41];

    sample_file(&r.recipe_files, &r.nrecipe_files, "tools/helper", "#!/bin/sh\n");
    r.recipe_files[r.nrecipe_files - 1].executable = true;
    for (size_t i = 0; i < r.nrecipe_files; i++) {
        const struct wb_raw_file *f = &r.recipe_files[i];
        bool x = f->executable || !strncmp(f->name, "steps/", 6);

        wb_sha256_of(f->data, f->n, hex);
        wb_buf_addf(&lines, "%s %c %s\n", f->name, x ? 'x' : '-', hex);
    }
    wb_sha256_of(wb_buf_str(&lines), lines.len, hex);
    wb_buf_release(&lines);
    wb_json_set_str(wb_json_get(r.summary, "recipe"), "digest", hex);
    assert_int_equal(wb_store_commit(s, &r, commit, &err), 0);
    wb_record_release(&r);
    assert_undamaged(s, 1);
    wb_store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_linear),          T(test_messages_of_others),
        T(test_lying_message),   T(test_executables),
        T(test_every_object),    T(test_named),
        T(test_packs),           T(test_references),
        T(test_pipes),           T(test_newer),
        T(test_disagreeing),     T(test_lost_run),
        T(test_replaced_run),    T(test_beside_a_writer),
        T(test_missing_history), T(test_list_with_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
