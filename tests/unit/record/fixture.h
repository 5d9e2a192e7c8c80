/*
 * What the tests of the record room share: a temporary store, whole records, git as a judge.
 */
#ifndef WB_TESTS_RECORD_FIXTURE_H
#define WB_TESTS_RECORD_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/child.h"
#include "server/base/file.h"
#include "server/record/internal.h"
#include "tests/support/sample_record.h"

#define T0 SAMPLE_T0
#define DAY_MS 86400000LL

static inline int fixture_setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-record-XXXXXX");

    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static inline int fixture_teardown(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_remove_tree(*state, &err);

    free(*state);
    return rc;
}

static inline struct wb_store *open_store(const char *dir, bool create)
{
    WB_AUTO_FREE char *path = wb_strf("%s/store.git", dir);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;

    if (wb_store_open(path, create, create ? "lab" : NULL, &s, &err) < 0)
        fail_msg("open: %s: %s", err.context, err.root);
    return s;
}

/* Runs git on the store of dir; the output without the last newline, owned. NULL: it failed. */
static inline char *git_v(const char *dir, const char *const *args)
{
    WB_AUTO_FREE char *path = wb_strf("%s/store.git", dir);
    WB_AUTO_FREE char *index = wb_strf("GIT_INDEX_FILE=%s/index", dir);
    WB_AUTO_FREE char *env_path = wb_strf("PATH=%s", getenv("PATH"));
    char *env[] = {env_path,
                   index,
                   (char *)(uintptr_t) "LANG=C",
                   (char *)(uintptr_t) "GIT_CONFIG_GLOBAL=/dev/null",
                   (char *)(uintptr_t) "GIT_AUTHOR_NAME=a",
                   (char *)(uintptr_t) "GIT_AUTHOR_EMAIL=a@a",
                   (char *)(uintptr_t) "GIT_COMMITTER_NAME=a",
                   (char *)(uintptr_t) "GIT_COMMITTER_EMAIL=a@a",
                   NULL};
    struct wb_strv argv = {0};
    struct wb_child_result res = {0};
    struct wb_err err = WB_ERR_INIT;
    char *out = NULL;

    wb_strv_add(&argv, "git");
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "safe.directory=*");
    wb_strv_addf(&argv, "--git-dir=%s", path);
    for (size_t i = 0; args[i]; i++)
        wb_strv_add(&argv, args[i]);
    if (wb_child_run(&(struct wb_child_spec){.argv = argv.v, .env = env, .limit_ns = 60 * WB_SEC},
                     &res, &err) < 0)
        fail_msg("git: %s", err.root);
    if (res.exit_code == 0) {
        while (res.out.len && res.out.data[res.out.len - 1] == '\n')
            res.out.data[--res.out.len] = '\0';
        out = wb_strdup(wb_buf_str(&res.out));
    } else {
        print_message("git %s: exit %d: %s%s\n", args[0], res.exit_code, wb_buf_str(&res.out),
                      wb_buf_str(&res.err));
    }
    wb_child_release(&res);
    wb_strv_release(&argv);
    return out;
}
#define git(dir, ...) git_v(dir, (const char *const[]){__VA_ARGS__, NULL})

/* `git fsck` has nothing to say; lost objects are allowed where `lost` (after a crash). */
static inline void assert_fsck(const char *dir, bool lost)
{
    WB_AUTO_FREE char *out = lost ? git(dir, "fsck", "--full", "--strict", "--no-dangling")
                                  : git(dir, "fsck", "--full", "--strict");

    assert_non_null(out);
    assert_string_equal(out, "");
}

#define make_record sample_record
#define must_json sample_json

/* Commits record n; the commit's hex digits, owned. */
static inline char *commit_record(struct wb_store *s, int n)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    char commit[41];

    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("commit %d: %s: %s", n, err.context, err.root);
    wb_record_release(&r);
    return wb_strdup(commit);
}

static inline void commit_records(struct wb_store *s, int from, int to)
{
    for (int i = from; i < to; i++)
        free(commit_record(s, i));
}

static inline wb_json *list_all(struct wb_store *s)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *list = NULL;

    if (wb_store_list(s, NULL, &list, &err) < 0)
        fail_msg("list: %s: %s", err.context, err.root);
    return list;
}

static inline size_t count_runs(struct wb_store *s)
{
    WB_AUTO_JSON wb_json *list = list_all(s);

    return wb_json_len(list);
}

/* Damage and notes of the whole store, owned. */
static inline wb_json *verify_all(struct wb_store *s, size_t *runs)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *damage = wb_json_array();

    if (wb_store_verify(s, NULL, damage, runs, &err) < 0)
        fail_msg("verify: %s: %s", err.context, err.root);
    return damage;
}

static inline void assert_undamaged(struct wb_store *s, size_t expected)
{
    size_t runs = 0;
    WB_AUTO_JSON wb_json *damage = verify_all(s, &runs);

    if (wb_json_len(damage)) {
        struct wb_buf b = WB_BUF_INIT(1 << 20);

        wb_json_pretty(damage, &b);
        fail_msg("damage: %s", wb_buf_str(&b));
    }
    assert_int_equal(runs, expected);
}

#endif
