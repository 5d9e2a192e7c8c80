/*
 * Pushing, packing, and raw data that goes.
 */
#include "tests/unit/record/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "server/record/annotate.h"
#include "server/record/pack.h"
#include "server/record/push.h"

static char *bare(const char *dir, const char *name)
{
    char *path = wb_strf("%s/%s", dir, name);

    free(git(dir, "init", "-q", "--bare", path));
    return path;
}

static int push(struct wb_store *s, const char *remote, int64_t now, wb_json **report)
{
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_store_push(s, remote, now, NULL, report, &err);

    if (rc < 0)
        assert_true(err.root[0] != '\0');
    return rc;
}

static const wb_json *ref_of(const wb_json *report, const char *ref)
{
    const wb_json *refs = wb_json_get(report, "refs");

    for (size_t i = 0; i < wb_json_len(refs); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(refs, i), "ref", ""), ref))
            return wb_json_at(refs, i);
    return NULL;
}

static const char *status(const wb_json *report, const char *ref)
{
    return wb_json_str_or(ref_of(report, ref), "status", "");
}

#define RECORDS "refs/heads/records/lab"
#define RAW "refs/raw/lab/2026-11"

static void test_push(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *remote = bare(dir, "remote.git");
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *again = NULL;
    WB_AUTO_JSON wb_json *more = NULL;
    WB_AUTO_FREE char *there = NULL;
    WB_AUTO_FREE char *here = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *copy = NULL;
    int64_t not_before = -1;
    bool pending = false;

    commit_records(s, 0, 3);
    /* another controller's references are not ours to push */
    free(git(dir, "update-ref", "refs/heads/records/east", "HEAD"));
    assert_int_equal(wb_store_push_due(s, remote, T0, &pending, &not_before, &err), 0);
    assert_true(pending);
    assert_int_equal(not_before, 0);
    assert_int_equal(push(s, remote, T0, &first), 0);
    assert_string_equal(status(first, RECORDS), "pushed");
    assert_string_equal(status(first, RAW), "pushed");
    assert_null(ref_of(first, "refs/heads/records/east"));
    assert_int_equal(wb_json_int_or(first, "pending", -1), 0);
    assert_int_equal(wb_store_push_due(s, remote, T0, &pending, &not_before, &err), 0);
    assert_false(pending);
    assert_int_equal(push(s, remote, T0, &again), 0);
    assert_string_equal(status(again, RECORDS), "up-to-date");
    /* a remote that was lost and made anew gets everything again */
    {
        WB_AUTO_JSON wb_json *anew = NULL;

        assert_int_equal(wb_remove_tree(remote, &err), 0);
        free(bare(dir, "remote.git"));
        assert_int_equal(push(s, remote, T0, &anew), 0);
        assert_string_equal(status(anew, RECORDS), "pushed");
        assert_string_equal(status(anew, RAW), "pushed");
    }
    commit_records(s, 3, 5);
    assert_int_equal(push(s, remote, T0, &more), 0);
    assert_string_equal(status(more, RECORDS), "pushed");
    here = git(dir, "rev-parse", RECORDS);
    there = git(dir, "ls-remote", remote, RECORDS);
    assert_int_equal(strncmp(there, here, 40), 0);
    assert_int_equal(wb_store_open(remote, false, NULL, &copy, &err), 0);
    assert_undamaged(copy, 5);
    wb_store_close(copy);
    wb_store_close(s);
}

/* A remote that says no is no success, whatever else went through. */
static void test_refused(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *remote = bare(dir, "remote.git");
    WB_AUTO_FREE char *hook = wb_strf("%s/hooks/update", remote);
    WB_AUTO_JSON wb_json *report = NULL;
    WB_AUTO_JSON wb_json *later = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t not_before = 0;
    bool pending = false;
    const char *script = "#!/bin/sh\ncase $1 in */records/*) exit 1 ;; esac\n";

    assert_int_equal(wb_file_put(hook, script, strlen(script), &err), 0);
    assert_int_equal(chmod(hook, 0755), 0);
    commit_records(s, 0, 2);
    assert_int_equal(push(s, remote, T0, &report), -WB_CONFLICT);
    assert_string_equal(status(report, RECORDS), "refused");
    assert_true(strlen(wb_json_str_or(ref_of(report, RECORDS), "reason", "")) > 5);
    assert_string_equal(status(report, RAW), "pushed");
    assert_int_equal(wb_json_int_or(report, "pending", -1), 1);
    assert_string_equal(wb_json_str_or(report, "next_at", ""), "2026-11-30T15:42:19.123Z");
    assert_int_equal(wb_store_push_due(s, remote, T0, &pending, &not_before, &err), 0);
    assert_true(pending);
    assert_int_equal(not_before, T0 + 30000);
    assert_int_equal(unlink(hook), 0);
    assert_int_equal(push(s, remote, T0 + 30000, &later), 0);
    assert_string_equal(status(later, RECORDS), "pushed");
    assert_string_equal(status(later, RAW), "up-to-date");
    wb_store_close(s);
}

/* The remote has gone on elsewhere: refused, and it is left as it is. */
static void test_diverged(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *remote = bare(dir, "remote.git");
    WB_AUTO_JSON wb_json *report = NULL;

    commit_records(s, 0, 3);
    {
        WB_AUTO_FREE char *tree = git(dir, "rev-parse", "HEAD^{tree}");
        WB_AUTO_FREE char *alien = git(dir, "commit-tree", tree, "-m", "run_x elsewhere");
        WB_AUTO_FREE char *to = wb_strf("%s:" RECORDS, alien);

        free(git(dir, "push", "-q", remote, to));
    }
    assert_int_equal(push(s, remote, T0, &report), -WB_CONFLICT);
    assert_string_equal(status(report, RECORDS), "refused");
    wb_store_close(s);
}

static void test_unreachable(void **state)
{
    static const char *const bad[] = {"", "-x", "a b", "--receive-pack=x"};
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *absent = wb_strf("%s/absent.git", dir);
    WB_AUTO_FREE char *state_file = wb_strf("%s/store.git/weighbridge.push.json", dir);
    static const int64_t pauses[] = {30, 60, 120, 240, 480, 960, 1920, 3600, 3600};
    struct wb_err err = WB_ERR_INIT;
    int64_t not_before = 0;
    bool pending = false;

    commit_records(s, 0, 1);
    for (size_t i = 0; i < WB_LEN(bad); i++) {
        wb_json *none = NULL;

        assert_int_equal(push(s, bad[i], T0, &none), -WB_INVALID);
        assert_null(none);
    }
    for (size_t i = 0; i < WB_LEN(pauses); i++) {
        WB_AUTO_JSON wb_json *report = NULL;

        assert_int_equal(push(s, absent, T0, &report), -WB_UNAVAILABLE);
        assert_string_equal(status(report, RECORDS), "failed");
        assert_int_equal(wb_json_int_or(report, "pending", 0), 2);
        assert_int_equal(wb_store_push_due(s, absent, T0, &pending, &not_before, &err), 0);
        assert_true(pending);
        assert_int_equal(not_before, T0 + pauses[i] * 1000);
        /* a clock that was set back by more than any pause does not stop it for as long */
        assert_int_equal(wb_store_push_due(s, absent, T0 + pauses[i] * 1000 - 3600001, &pending,
                                           &not_before, &err),
                         0);
        assert_int_equal(not_before, 0);
    }
    /* a state that is damaged makes it offer everything, no more */
    assert_int_equal(wb_file_put(state_file, "{\"x\":", 5, &err), 0);
    assert_int_equal(wb_store_push_due(s, absent, T0, &pending, &not_before, &err), 0);
    assert_true(pending);
    assert_int_equal(not_before, 0);
    wb_store_close(s);
}

static void test_pack(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    struct wb_pack_report r = {0};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *objects = NULL;

    commit_records(s, 0, 12);
    assert_int_equal(wb_store_pack(s, false, NULL, &r, &err), 0);
    assert_false(r.done); /* too few to be worth it */
    assert_int_equal(wb_store_pack(s, true, NULL, &r, &err), 0);
    assert_true(r.done);
    assert_int_equal(r.packs, 1);
    assert_int_equal(r.loose, 0);
    assert_undamaged(s, 12); /* by the handle that was open */
    for (int i = 12; i < 40; i += 4) {
        commit_records(s, i, i + 4);
        assert_int_equal(wb_store_pack(s, true, NULL, &r, &err), 0);
        assert_true(r.done);
        assert_true(r.packs <= 5); /* sizes double */
    }
    objects = git(dir, "count-objects");
    assert_string_equal(objects, "0 objects, 0 kilobytes");
    assert_undamaged(s, 40);
    assert_fsck(dir, false);
    wb_store_close(s);
}

/* Records of two months, the older first; one run of it pinned, one campaign too. */
static void commit_in_month(struct wb_store *s, int n, int64_t start, const char *campaign)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    char commit[41];

    r.started_ms = start + n * 1000;
    sample_summary(&r, n);
    wb_json_set_str(r.summary, "campaign", campaign);
    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("%s", err.root);
    wb_record_release(&r);
}

static wb_json *prune(struct wb_store *s, int keep, int64_t now, bool dry)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;

    if (wb_store_prune(s, keep, now, dry, &report, &err) < 0)
        fail_msg("prune: %s: %s", err.context, err.root);
    return report;
}

static size_t count_code(const wb_json *damage, const char *code)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(damage); i++)
        n += !strcmp(wb_json_str_or(wb_json_at(damage, i), "code", ""), code);
    return n;
}

static void pin(struct wb_store *s, const char *id)
{
    struct wb_err err = WB_ERR_INIT;
    char *made = NULL;

    assert_int_equal(
        wb_store_annotate(s, &(struct wb_annotation){.type = "pinned", .id = id}, &made, &err), 0);
    free(made);
}

static void test_prune(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *remote = bare(dir, "remote.git");
    struct wb_err err = WB_ERR_INIT;
    wb_json *none = NULL;
    size_t runs = 0;

    for (int i = 0; i < 3; i++)
        commit_in_month(s, i, T0 - 61 * DAY_MS, "cmp_A"); /* 30 September */
    for (int i = 3; i < 5; i++)
        commit_in_month(s, i, T0 - 61 * DAY_MS, "cmp_B");
    for (int i = 5; i < 7; i++)
        commit_in_month(s, i, T0, "cmp_C");
    pin(s, "run_01JX8AB001CDEFGHJKMNPQRST");
    pin(s, "cmp_B");
    assert_int_equal(wb_store_prune(s, -1, T0, false, &none, &err), -WB_NOT_FOUND);
    {
        WB_AUTO_JSON wb_json *keeps = prune(s, 2, T0, false);

        assert_string_equal(wb_json_str_or(keeps, "before", ""), "2026-09");
        assert_int_equal(wb_json_len(wb_json_get(keeps, "months")), 0);
        assert_false(wb_json_bool_or(keeps, "freed", true));
    }
    {
        WB_AUTO_JSON wb_json *dry = prune(s, 1, T0, true);
        WB_AUTO_JSON wb_json *damage = verify_all(s, &runs);

        assert_int_equal(wb_json_len(wb_json_get(dry, "months")), 1);
        assert_int_equal(wb_json_len(damage), 0);
    }
    {
        WB_AUTO_JSON wb_json *did = prune(s, 1, T0, false);
        const wb_json *m = wb_json_at(wb_json_get(did, "months"), 0);
        WB_AUTO_JSON wb_json *damage = verify_all(s, &runs);

        assert_string_equal(wb_json_str_or(did, "before", ""), "2026-10");
        assert_int_equal(wb_json_int_or(m, "runs", 0), 5);
        assert_int_equal(wb_json_int_or(m, "kept", 0), 3);
        assert_int_equal(runs, 7);
        assert_int_equal(count_code(damage, "raw-pruned"), 4); /* two files of two runs */
        assert_int_equal(wb_json_len(damage), 4);              /* notes, no damage */
    }
    { /* again: nothing more goes; what is pinned stays, also where all the rest is pruned */
        WB_AUTO_JSON wb_json *twice = prune(s, 0, T0 + 31 * DAY_MS, false);
        const wb_json *months = wb_json_get(twice, "months");
        WB_AUTO_JSON wb_json *damage = verify_all(s, &runs);
        WB_AUTO_JSON wb_json *report = NULL;

        assert_int_equal(wb_json_len(months), 1);
        assert_string_equal(wb_json_str_or(wb_json_at(months, 0), "ref", ""), RAW);
        assert_int_equal(count_code(damage, "raw-pruned"), 8);
        assert_int_equal(wb_json_len(damage), 8);
        assert_int_equal(push(s, remote, T0, &report), 0);
        assert_string_equal(status(report, "refs/raw/lab/2026-09"), "kept");
        assert_string_equal(status(report, RECORDS), "pushed");
    }
    commit_in_month(s, 9, T0 - 61 * DAY_MS, "cmp_D"); /* the month goes on */
    assert_fsck(dir, true);
    wb_store_close(s);
}

/* What stands before the host of a URL is for git alone. */
static void test_secrets(void **state)
{
    static const char old[] = "{\"https://u:geheim@h.example/a.git\": {\"failures\": 2},"
                              " \"backup\": {\"failures\": 1},"
                              " \"ssh://git@h.example/b@c.git\": {}}";
    static const char remote[] = "http://u:geheim@127.0.0.1:1/a.git";
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *path = wb_strf("%s/store.git/weighbridge.push.json", (const char *)*state);
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_JSON wb_json *report = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};
    bool pending = false;
    int64_t from = 0;
    size_t n = 0;

    commit_records(s, 0, 1);
    assert_int_equal(wb_file_put(path, old, sizeof(old) - 1, &err), 0);
    assert_int_equal(wb_store_push_remotes(s, &names, &err), 0);
    assert_int_equal(names.n, 3);
    assert_string_equal(names.v[0], "https://h.example/a.git");
    assert_string_equal(names.v[1], "backup");
    assert_string_equal(names.v[2], "ssh://h.example/b@c.git");
    wb_strv_release(&names);

    assert_int_equal(wb_store_push(s, remote, T0, NULL, &report, &err), -WB_UNAVAILABLE);
    assert_null(strstr(err.root, "geheim"));
    assert_string_equal(wb_json_str_or(report, "remote", ""), "http://127.0.0.1:1/a.git");
    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, &err), 0);
    assert_null(strstr(text, "geheim"));
    assert_non_null(strstr(text, "https://h.example/a.git")); /* it is still known */
    /* the pause belongs to the remote, whatever it is called by */
    assert_int_equal(wb_store_push_due(s, remote, T0, &pending, &from, &err), 0);
    assert_int_equal(from, T0 + 30000);
    assert_int_equal(wb_store_push_due(s, "http://127.0.0.1:1/a.git", T0, &pending, &from, &err),
                     0);
    assert_int_equal(from, T0 + 30000);
    wb_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_push, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_diverged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unreachable, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_pack, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_secrets, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_prune, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
