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
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/internal.h"
#include "server/record/summary.h"

#define T0 1796053309123LL /* 2026-11-30T15:41:49.123Z */
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

static inline void add_file(struct wb_raw_file **v, size_t *n, const char *name, const char *text)
{
    *v = wb_realloc(*v, *n + 1, sizeof(**v));
    (*v)[(*n)++] = (struct wb_raw_file){wb_strdup(name), wb_strdup(text), strlen(text), false};
}

static inline wb_json *must_json(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("fixture: %s", err.root);
    return j;
}

static inline char *recipe_digest(const struct wb_record *r)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    char hex[WB_SHA256_HEX];

    for (size_t i = 0; i < r->nrecipe_files; i++) { /* given in byte order */
        wb_sha256_of(r->recipe_files[i].data, r->recipe_files[i].n, hex);
        wb_buf_addf(&b, "%s %c %s\n", r->recipe_files[i].name,
                    strncmp(r->recipe_files[i].name, "steps/", 6) ? '-' : 'x', hex);
    }
    wb_sha256_of(wb_buf_str(&b), b.len, hex);
    wb_buf_release(&b);
    return wb_strdup(hex);
}

/* A whole, valid record. n makes it different from others; the run starts n seconds after T0. */
static inline struct wb_record make_record(int n)
{
    struct wb_record r = {.run = wb_strf("run_01JX8AB%03dCDEFGHJKMNPQRST", n),
                          .started_ms = T0 + n * 1000LL};
    struct wb_buf at = WB_BUF_INIT(64);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *digest = NULL;
    WB_AUTO_FREE char *log = NULL;
    wb_json *metrics = NULL, *recipe;

    r.study = must_json("{\"study\":\"forms\",\"rounds\":8}");
    r.plan = must_json("{\"rounds\":8,\"seed\":7}");
    r.environment = must_json("{\"host\":{\"cpus\":2}}");
    r.events = must_json("[{\"event\":\"run.start\"},{\"event\":\"run.end\"}]");
    r.result = must_json(
        "{\"phases\":[{\"name\":\"max\",\"model\":\"closed\",\"load\":{\"achieved_per_s\":21543.5,"
        "\"operations\":{\"all\":{\"response\":null,\"service\":{\"p50_ms\":0.8,\"p99_ms\":2.25,"
        "\"p99_9_ms\":4.5}}}}},"
        "{\"name\":\"latency\",\"model\":\"open\",\"load\":{\"achieved_per_s\":12000,"
        "\"operations\":{\"all\":{\"response\":{\"p50_ms\":0.5,\"p99_ms\":1.5,\"p99_9_ms\":null},"
        "\"service\":{\"p50_ms\":0.1}}}}}]}");
    add_file(&r.recipe_files, &r.nrecipe_files, "files/redis.conf", "save \"\"\n");
    add_file(&r.recipe_files, &r.nrecipe_files, "recipe.yaml", "name: redis\n");
    add_file(&r.recipe_files, &r.nrecipe_files, "steps/install", "#!/bin/sh\nexit 0\n");
    log = wb_strf("log of %d\n", n);
    add_file(&r.raw, &r.nraw, "db0.log", log);
    add_file(&r.raw, &r.nraw, "load-max.ndjson", "{\"t\":1}\n{\"t\":2}\n");
    digest = recipe_digest(&r);
    r.summary = must_json(
        "{\"schema\":1,\"campaign\":\"cmp_A\",\"study\":\"forms\",\"attempt\":1,\"position\":0,"
        "\"factors\":{\"form\":\"docker x1\"},\"seconds\":31.5,\"outcome\":\"ok\",\"reasons\":[],"
        "\"validity\":\"valid\",\"evidence\":[{\"name\":\"steal\",\"value\":0,\"verdict\":"
        "\"valid\"}],\"teardown\":\"clean\",\"series_key\":\"0123456789abcdef\","
        "\"host\":{\"name\":\"h\",\"class\":\"c\"},\"windows_short\":false,\"limits\":[]}");
    wb_json_set_str(r.summary, "id", r.run);
    wb_json_set_str(r.summary, "arm", n % 2 ? "docker x1" : "native x1");
    wb_json_set_int(r.summary, "round", n / 2 + 1);
    recipe = must_json("{\"name\":\"redis\",\"revision\":\"1\",\"version\":\"7.0.15\"}");
    wb_json_set_str(recipe, "digest", digest);
    wb_json_set(r.summary, "recipe", recipe);
    wb_format_time(r.started_ms, &at);
    wb_json_set_str(r.summary, "started_at", wb_buf_str(&at));
    wb_buf_clear(&at);
    wb_format_time(r.started_ms + 31500, &at);
    wb_json_set_str(r.summary, "ended_at", wb_buf_str(&at));
    wb_buf_release(&at);
    assert_int_equal(wb_summary_metrics(r.result, &metrics, &err), 0);
    wb_json_set(r.summary, "metrics", metrics);
    return r;
}

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
