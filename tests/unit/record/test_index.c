/*
 * The index: the same answers as git gives, whatever happens to its file; pages that hold still
 * while records are added.
 */
#include "tests/unit/record/fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/rng.h"
#include "server/record/index.h"
#include "server/record/query.h"

static char *index_file(const char *dir)
{
    return wb_strf("%s/store.git/weighbridge.index", dir);
}

/* One page; *next is owned. */
static wb_json *page(struct wb_store *s, const struct wb_query *q, char **next)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;

    if (wb_store_runs(s, q, &items, next, &err) < 0)
        fail_msg("runs: %s: %s", err.context, err.root);
    return items;
}

/* The numbers of the runs of all pages, as "19 18 17 "; owned. */
static char *walk(struct wb_store *s, struct wb_query q)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    WB_AUTO_FREE char *cursor = NULL;

    do {
        char *next = NULL;
        WB_AUTO_JSON wb_json *items = NULL;

        q.cursor = cursor;
        items = page(s, &q, &next);
        for (size_t i = 0; i < wb_json_len(items); i++)
            wb_buf_addf(&b, "%.3s ", wb_json_str_or(wb_json_at(items, i), "id", "") + 11);
        free(cursor);
        cursor = next;
    } while (cursor);
    return wb_buf_take(&b);
}

static void test_pages(void **state)
{
    struct wb_store *s = open_store(*state, true);
    static const struct {
        struct wb_query q;
        const char *want;
    } cases[] = {
        {{.limit = 3}, "009 008 007 006 005 004 003 002 001 000 "},
        {{.limit = 10}, "009 008 007 006 005 004 003 002 001 000 "},
        {{.limit = 1000}, "009 008 007 006 005 004 003 002 001 000 "},
        {{.limit = 4, .ascending = true}, "000 001 002 003 004 005 006 007 008 009 "},
        {{.limit = 2, .arm = "native x1"}, "008 006 004 002 000 "},
        {{.limit = 1, .arm = "native x1", .ascending = true}, "000 002 004 006 008 "},
        {{.arm = "native x2"}, NULL},
        {{.campaign = "cmp_A",
          .study = "forms",
          .recipe = "redis",
          .version = "7.0.15",
          .series = "0123456789abcdef",
          .validity = "valid",
          .outcome = "ok",
          .host_class = "c",
          .limit = 7},
         "009 008 007 006 005 004 003 002 001 000 "},
        {{.outcome = "sut-error"}, NULL},
        {{.since = "2026-11-30T15:41:55.123Z"}, "009 008 007 006 "},
        {{.until = "2026-11-30T21:11:52.123+05:30"}, "002 001 000 "},
        {{.since = "2026-11-30", .until = "2026-12-01", .limit = 9},
         "009 008 007 006 005 004 003 002 001 000 "},
        {{.since = "2026-12-01"}, NULL},
        {{.order = WB_BY_P99, .limit = 3}, "009 008 007 006 005 004 003 002 001 000 "},
        {{.order = WB_BY_THROUGHPUT, .limit = 1, .ascending = true},
         "000 001 002 003 004 005 006 007 008 009 "},
    };

    commit_records(s, 0, 10);
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *got = walk(s, cases[i].q);

        if (strcmp(got ? got : "", cases[i].want ? cases[i].want : "") != 0)
            fail_msg("case %zu: %s", i, got);
    }
    wb_store_close(s);
}

/* Commits a record with its own throughput and p99; NAN-like absence by a negative one. */
static void commit_figures(struct wb_store *s, int n, double ops)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    wb_json *load = wb_json_get(wb_json_at(wb_json_get(r.result, "phases"), 0), "load");
    char commit[41];

    if (ops < 0)
        wb_json_set(load, "achieved_per_s", wb_json_null());
    else
        wb_json_set_real(load, "achieved_per_s", ops);
    sample_summary(&r, n);
    if (ops < 0) /* else the other phase would stand for the run */
        wb_json_set(r.summary, "headline", must_json("{\"throughput\":null,\"p99\":null}"));
    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("commit %d: %s: %s", n, err.context, err.root);
    wb_record_release(&r);
}

static void test_order_of_figures(void **state)
{
    static const double ops[] = {100.25, 7, -1, 1e9, 7, 0.1};
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *falling = NULL;
    WB_AUTO_FREE char *rising = NULL;

    for (int i = 0; i < (int)WB_LEN(ops); i++)
        commit_figures(s, i, ops[i]);
    for (size_t limit = 1; limit < 8; limit++) {
        WB_AUTO_FREE char *f =
            walk(s, (struct wb_query){.order = WB_BY_THROUGHPUT, .limit = limit});
        WB_AUTO_FREE char *r = walk(
            s, (struct wb_query){.order = WB_BY_THROUGHPUT, .limit = limit, .ascending = true});

        assert_string_equal(f, "003 000 004 001 005 002 ");
        assert_string_equal(r, "002 005 001 004 000 003 ");
    }
    wb_store_close(s);
}

/* New runs come in between two pages: nothing is shown twice, nothing is passed over. */
static void test_stable(void **state)
{
    struct wb_store *s = open_store(*state, true), *writer;
    struct wb_query q = {.limit = 4};
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_FREE char *last = NULL;
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *second = NULL;

    commit_records(s, 10, 20);
    first = page(s, &q, &next);
    writer = open_store(*state, false);
    commit_records(writer, 20, 30); /* newer than the first page */
    commit_records(writer, 0, 5);   /* older than the second */
    wb_store_close(writer);
    q.cursor = next;
    second = page(s, &q, &last);
    assert_string_equal(wb_json_str_or(wb_json_at(first, 3), "id", ""),
                        "run_01JX8AB016CDEFGHJKMNPQRST");
    assert_string_equal(wb_json_str_or(wb_json_at(second, 0), "id", ""),
                        "run_01JX8AB015CDEFGHJKMNPQRST");
    assert_string_equal(wb_json_str_or(wb_json_at(second, 3), "id", ""),
                        "run_01JX8AB012CDEFGHJKMNPQRST");
    q.cursor = last;
    free(next);
    next = walk(s, (struct wb_query){.limit = 1000});
    assert_int_equal(strlen(next), 25 * 4);
    wb_store_close(s);
}

static void test_bad_questions(void **state)
{
    static const struct wb_query bad[] = {
        {.limit = 1001},
        {.since = "yesterday"},
        {.until = "2026-02-30"},
        {.since = "2026-11-30T10:00:00"},
        {.cursor = ""},
        {.cursor = "x"},
        {.cursor = "sd"},
        {.cursor = "sd."},
        {.cursor = "sd12"},
        {.cursor = "sd12."},
        {.cursor = "sdx.run_1"},
        {.cursor = "sa12.run_1"},                            /* of the other direction */
        {.cursor = "td1~run_1"},                             /* of another order */
        {.cursor = "sd99999999999999999999999999999.run_1"}, /* no number of 64 bits */
        {.cursor = "td1e999~run", .order = WB_BY_THROUGHPUT},
        {.cursor = "pdnan~run", .order = WB_BY_P99},
    };
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *big = wb_calloc(1, 5000);

    commit_records(s, 0, 2);
    for (size_t i = 0; i <= WB_LEN(bad); i++) {
        struct wb_query q = i < WB_LEN(bad) ? bad[i] : (struct wb_query){.cursor = big};
        struct wb_err err = WB_ERR_INIT;
        wb_json *items = NULL;
        char *next = NULL;

        memset(big, '9', 4999);
        if (wb_store_runs(s, &q, &items, &next, &err) != -WB_INVALID)
            fail_msg("case %zu was taken: %s", i, err.root);
        assert_null(items);
        assert_null(next);
    }
    wb_store_close(s);
}

/* Of very many builds the newest are listed, the oldest of them first; of the same moment in an
 * order that does not depend on how they lie in the file. */
static void test_many_builds(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_query q = {.limit = 2};
    WB_AUTO_JSON wb_json *series = NULL;
    WB_AUTO_FREE char *next = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_db *db = NULL;
    const wb_json *list;

    commit_records(s, 0, 1);
    assert_int_equal(wb_index_ready(s, &db, &err), 0);
    assert_int_equal(
        wb_db_exec(db,
                   "DELETE FROM subjects; WITH RECURSIVE n(i) AS"
                   " (SELECT 1500 UNION ALL SELECT i - 1 FROM n WHERE i > 1)"
                   " INSERT INTO subjects (series, version, digest, runs, first, last)"
                   " SELECT (SELECT id FROM series), i, i, 1, 1000 * min(i, 1400), 0 FROM n",
                   &err),
        0);
    assert_int_equal(wb_store_series(s, &q, &series, &next, &err), 0);
    list = wb_json_get(wb_json_at(series, 0), "subjects");
    assert_int_equal(wb_json_len(list), 1000);
    for (size_t i = 0; i < 1000; i++) {
        WB_AUTO_FREE char *version = wb_strf("%zu", 501 + i);

        assert_string_equal(wb_json_str_or(wb_json_at(list, i), "version", ""), version);
    }
    wb_store_close(s);
}

static void test_groups(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    struct wb_query q = {.limit = 2};
    WB_AUTO_JSON wb_json *campaigns = NULL;
    WB_AUTO_JSON wb_json *rest = NULL;
    WB_AUTO_JSON wb_json *series = NULL;
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_FREE char *none = NULL;
    WB_AUTO_FREE char *found = NULL;
    const wb_json *c, *subjects;

    for (int n = 0; n < 12; n++) {
        struct wb_record r = make_record(n);
        WB_AUTO_FREE char *campaign = wb_strf("cmp_%d", n / 4);
        char commit[41];

        wb_json_set_str(r.summary, "campaign", campaign);
        wb_json_set_str(r.summary, "series_key", n % 2 ? "odd" : "even");
        if (n == 3)
            wb_json_set_str(r.summary, "outcome", "sut-error");
        wb_json_set(r.summary, "subject",
                    must_json(n < 7 ? "{\"digest\":\"d1\"}" : "{\"digest\":\"d2\"}"));
        assert_int_equal(wb_store_commit(s, &r, commit, &err), 0);
        wb_record_release(&r);
    }
    assert_int_equal(wb_store_campaigns(s, &q, &campaigns, &next, &err), 0);
    assert_int_equal(wb_json_len(campaigns), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(campaigns, 0), "id", ""), "cmp_2");
    q.cursor = next;
    assert_int_equal(wb_store_campaigns(s, &q, &rest, &none, &err), 0);
    assert_int_equal(wb_json_len(rest), 1);
    assert_null(none);
    c = wb_json_at(rest, 0);
    assert_string_equal(wb_json_str_or(c, "id", ""), "cmp_0");
    assert_int_equal(wb_json_int_or(c, "runs", 0), 4);
    assert_int_equal(wb_json_int_or(c, "ok", 0), 3);
    assert_int_equal(wb_json_int_or(c, "rounds", 0), 2);
    assert_int_equal(wb_json_len(wb_json_get(c, "arms")), 2);
    assert_string_equal(wb_json_str_or(c, "started_at", ""), "2026-11-30T15:41:49.123Z");
    assert_string_equal(wb_json_str_or(c, "ended_at", ""), "2026-11-30T15:42:23.623Z");

    q = (struct wb_query){.outcome = "sut-error"};
    assert_int_equal(wb_store_series(s, &q, &series, &none, &err), 0);
    assert_int_equal(wb_json_len(series), 1); /* only odd ones failed */
    c = wb_json_at(series, 0);
    assert_string_equal(wb_json_str_or(c, "id", ""), "odd");
    assert_string_equal(wb_json_str_or(c, "arm", ""), "docker x1");
    assert_int_equal(wb_json_int_or(c, "runs", 0), 6);
    assert_int_equal(wb_json_int_or(c, "campaigns", 0), 3);
    assert_string_equal(wb_json_str_or(c, "first_at", ""), "2026-11-30T15:41:50.123Z");
    assert_string_equal(wb_json_str_or(c, "last_at", ""), "2026-11-30T15:42:00.123Z");
    subjects = wb_json_get(c, "subjects");
    assert_int_equal(wb_json_len(subjects), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(subjects, 1), "digest", ""), "d2");
    assert_true(wb_json_bool_or(c, "digest_changed", false));

    assert_int_equal(wb_store_resolve_campaign(s, "cmp_1", &found, &err), 0);
    assert_string_equal(found, "cmp_1");
    assert_int_equal(wb_store_resolve_campaign(s, "cmp_", &none, &err), -WB_CONFLICT);
    assert_int_equal(wb_store_resolve_campaign(s, "cmp_9", &none, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_store_resolve_campaign(s, "%' OR 1", &none, &err), -WB_INVALID);
    wb_store_close(s);
}

/* Commits record n as one of a campaign and a series. */
static void commit_of(struct wb_store *s, int n, const char *campaign, const char *series,
                      const char *outcome)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    char commit[41];

    wb_json_set_str(r.summary, "campaign", campaign);
    wb_json_set_str(r.summary, "series_key", series);
    wb_json_set_str(r.summary, "outcome", outcome);
    assert_int_equal(wb_store_commit(s, &r, commit, &err), 0);
    wb_record_release(&r);
}

/* Takes the summary of record n out of the store. */
static void lose_summary(const char *dir, int n)
{
    WB_AUTO_FREE char *spec = wb_strf(
        "refs/heads/records/lab:runs/2026/11/30/run_01JX8AB%03dCDEFGHJKMNPQRST/summary.json", n);
    WB_AUTO_FREE char *id = git(dir, "rev-parse", spec);
    WB_AUTO_FREE char *path = wb_strf("%s/store.git/objects/%.2s/%s", dir, id, id + 2);

    assert_int_equal(unlink(path), 0);
}

/* One damaged record hides nothing of the others' progress. */
static void test_outcomes(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *list = NULL;
    WB_AUTO_JSON wb_json *passed = NULL;
    WB_AUTO_JSON wb_json *counts = NULL;
    WB_AUTO_JSON wb_json *none = NULL;
    const struct wb_list_filter strict = {.series = "s1"};
    const struct wb_list_filter lenient = {.series = "s1", .pass_damaged = true};
    struct wb_strv keys = {0};
    int64_t n = -1;

    commit_of(s, 0, "cmp_A", "s1", "ok");
    commit_of(s, 1, "cmp_A", "s2", "sut-error");
    commit_of(s, 2, "cmp_A", "s1", "ok");
    commit_of(s, 3, "cmp_B", "s3", "ok");
    wb_store_close(s);
    lose_summary(*state, 3);
    s = open_store(*state, false);
    assert_int_equal(wb_store_reindex(s, NULL, &err), 0);
    assert_int_equal(wb_store_outcomes(s, "cmp_A", &counts, &n, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(wb_json_len(counts), 2);
    assert_int_equal(wb_json_int_or(counts, "ok", 0), 2);
    assert_int_equal(wb_json_int_or(counts, "sut-error", 0), 1);
    assert_int_equal(wb_store_outcomes(s, "cmp_none", &none, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(wb_json_len(none), 0);

    assert_int_equal(wb_store_list(s, &strict, &list, &err), -WB_CORRUPT);
    assert_int_equal(wb_store_list(s, &lenient, &passed, &err), 0);
    assert_int_equal(wb_json_len(passed), 2);
    assert_int_equal(wb_store_series_keys(s, &keys, &err), 0);
    assert_int_equal(keys.n, 2);
    assert_string_equal(keys.v[0], "s1"); /* the newest run that can be read */
    assert_string_equal(keys.v[1], "s2");
    wb_strv_release(&keys);
    wb_store_close(s);
}

/* A campaign or series that gets a run between two pages is neither lost nor shown twice. */
static void test_groups_hold_still(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    struct wb_query q = {.limit = 2, .study = "forms"};
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *rest = NULL;
    WB_AUTO_JSON wb_json *series = NULL;
    WB_AUTO_JSON wb_json *more = NULL;
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_FREE char *own = NULL;
    WB_AUTO_FREE char *next_series = NULL;
    WB_AUTO_FREE char *none = NULL;

    for (int n = 0; n < 4; n++) {
        WB_AUTO_FREE char *campaign = wb_strf("cmp_%d", n);
        WB_AUTO_FREE char *key = wb_strf("s%d", n);

        commit_of(s, n, campaign, key, "ok");
    }
    assert_int_equal(wb_store_campaigns(s, &q, &first, &next, &err), 0);
    assert_string_equal(wb_json_str_or(wb_json_at(first, 1), "id", ""), "cmp_2");
    own = wb_campaign_cursor(&q, wb_json_at(first, 1));
    assert_string_equal(own, next);
    assert_int_equal(wb_store_series(s, &q, &series, &next_series, &err), 0);
    assert_string_equal(wb_json_str_or(wb_json_at(series, 1), "id", ""), "s2");
    commit_of(s, 9, "cmp_0", "s0", "ok");
    q.cursor = next;
    assert_int_equal(wb_store_campaigns(s, &q, &rest, &none, &err), 0);
    assert_int_equal(wb_json_len(rest), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(rest, 1), "id", ""), "cmp_0");
    assert_int_equal(wb_json_int_or(wb_json_at(rest, 1), "runs", 0), 2);
    assert_null(none);
    q.cursor = next_series;
    assert_int_equal(wb_store_series(s, &q, &more, &none, &err), 0);
    assert_int_equal(wb_json_len(more), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(more, 1), "id", ""), "s0");
    assert_string_equal(wb_json_str_or(wb_json_at(more, 1), "last_at", ""),
                        "2026-11-30T15:41:58.123Z");
    assert_null(none);
    assert_null(wb_campaign_cursor(&q, NULL));
    {
        const struct wb_query other = {.study = "none"};
        WB_AUTO_JSON wb_json *a = NULL;
        WB_AUTO_JSON wb_json *b = NULL;

        assert_int_equal(wb_store_campaigns(s, &other, &a, &none, &err), 0);
        assert_int_equal(wb_store_series(s, &other, &b, &none, &err), 0);
        assert_int_equal(wb_json_len(a) + wb_json_len(b), 0);
    }
    wb_store_close(s);
}

/* Questions that are asked all day look at no more than their page. */
static void test_plans(void **state)
{
    static const struct {
        const char *sql, *index;
    } rows[] = {
        {"SELECT run FROM runs WHERE study = 'a' AND outcome = 'ok' ORDER BY started DESC, run DESC"
         " LIMIT 51",
         "runs_study_outcome"},
        {"SELECT id FROM campaigns WHERE study = 'a' ORDER BY first DESC, id DESC LIMIT 51",
         "campaigns_study"},
        {"SELECT id FROM series WHERE EXISTS (SELECT 1 FROM runs WHERE runs.series = series.id AND"
         " runs.study = 'a') ORDER BY first DESC, id DESC LIMIT 51",
         "runs_series_study"},
    };
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    struct wb_db *db = NULL;

    commit_records(s, 0, 2);
    assert_int_equal(wb_index_ready(s, &db, &err), 0);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *sql = wb_strf("EXPLAIN QUERY PLAN %s", rows[i].sql);
        WB_AUTO_STMT struct wb_stmt *st = NULL;
        struct wb_buf plan = WB_BUF_INIT(65536);

        assert_int_equal(wb_db_prepare(db, sql, &st, &err), 0);
        while (wb_index_next(st, &err) == 1)
            wb_buf_addf(&plan, "%s\n", wb_stmt_text(st, 3));
        if (!strstr(wb_buf_str(&plan), rows[i].index) || strstr(wb_buf_str(&plan), "TEMP B-TREE"))
            fail_msg("%s: %s", rows[i].sql, wb_buf_str(&plan));
        wb_buf_release(&plan);
    }
    wb_store_close(s);
}

/* ---- what may happen to the file ---- */

static void expect_all(const char *dir, int n)
{
    struct wb_store *s = open_store(dir, false);
    WB_AUTO_FREE char *got = walk(s, (struct wb_query){.limit = 6, .ascending = true});
    struct wb_buf want = WB_BUF_INIT(65536);

    for (int i = 0; i < n; i++)
        wb_buf_addf(&want, "%03d ", i);
    assert_string_equal(got, wb_buf_str(&want));
    wb_buf_release(&want);
    wb_store_close(s);
}

static void test_flipped_anywhere(void **state)
{
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *path = index_file(*state);
    struct wb_rng rng;
    struct stat st;

    commit_records(s, 0, 25);
    wb_store_close(s);
    expect_all(*state, 25);
    wb_rng_seed(&rng, 7);
    for (int i = 0; i < 120; i++) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        unsigned char c;
        off_t at;

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        at = i < 100 ? i : (off_t)wb_rng_below(&rng, (uint64_t)st.st_size);
        assert_int_equal(pread(fd, &c, 1, at), 1);
        c = (unsigned char)(c ^ (1u << wb_rng_below(&rng, 8)));
        assert_int_equal(pwrite(fd, &c, 1, at), 1);
        (void)close(fd);
        expect_all(*state, 25);
    }
}

static void test_spoilt_files(void **state)
{
    static const char *const contents[] = {"", "x", "SQLite format 3", "not a database at all"};
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *path = index_file(*state);
    WB_AUTO_FREE char *journal = wb_strf("%s-journal", path);
    struct wb_err err = WB_ERR_INIT;
    struct stat st;

    commit_records(s, 0, 8);
    wb_store_close(s);
    expect_all(*state, 8);
    for (size_t i = 0; i < WB_LEN(contents); i++) {
        assert_int_equal(wb_file_put(path, contents[i], strlen(contents[i]), &err), 0);
        expect_all(*state, 8);
    }
    for (int part = 1; part < 8; part++) { /* cut off at every eighth */
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(truncate(path, st.st_size * part / 8), 0);
        expect_all(*state, 8);
    }
    assert_int_equal(wb_file_put(journal, "garbage of a journal", 20, &err), 0);
    expect_all(*state, 8);
    assert_int_equal(unlink(path), 0);
    expect_all(*state, 8);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0); /* something that cannot even be replaced */
    expect_all(*state, 8);
}

/* A reader that is open while the file is deleted, made anew by another, and the store goes on. */
static void test_deleted_under_a_reader(void **state)
{
    struct wb_store *s = open_store(*state, true), *other;
    WB_AUTO_FREE char *path = index_file(*state);
    struct wb_err err = WB_ERR_INIT;
    size_t runs = 0;

    commit_records(s, 0, 3);
    assert_int_equal(count_runs(s), 3);
    assert_int_equal(unlink(path), 0);
    commit_records(s, 3, 5);
    assert_int_equal(count_runs(s), 5);
    other = open_store(*state, false);
    assert_int_equal(wb_store_reindex(other, &runs, &err), 0);
    assert_int_equal(runs, 5);
    commit_records(other, 5, 6);
    assert_int_equal(count_runs(s), 6);
    assert_int_equal(count_runs(other), 6);
    wb_store_close(other);
    wb_store_close(s);
}

/* A reader that is slow holds nothing: while it has a page in hand, others add and fold, and no log
 * grows beside the index. */
static void test_slow_reader(void **state)
{
    struct wb_store *slow = open_store(*state, true), *writer;
    WB_AUTO_FREE char *path = index_file(*state);
    WB_AUTO_FREE char *wal = wb_strf("%s-wal", path);
    WB_AUTO_FREE char *journal = wb_strf("%s-journal", path);
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_FREE char *end = NULL;
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *second = NULL;
    struct wb_query q = {.limit = 2};

    commit_records(slow, 0, 5);
    first = page(slow, &q, &next);
    writer = open_store(*state, false);
    for (int i = 5; i < 25; i++) {
        commit_records(writer, i, i + 1);
        assert_int_equal(count_runs(writer), i + 1); /* folded, so nobody held it */
        assert_false(wb_path_exists(wal));
        assert_false(wb_path_exists(journal));
    }
    q.cursor = next;
    second = page(slow, &q, &end);
    assert_string_equal(wb_json_str_or(wb_json_at(second, 0), "id", ""),
                        "run_01JX8AB002CDEFGHJKMNPQRST");
    wb_store_close(writer);
    wb_store_close(slow);
}

/* Somebody moves the reference back by hand, or takes it away: the index follows. */
static void test_history_rewritten(void **state)
{
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *out = NULL;

    commit_records(s, 0, 6);
    assert_int_equal(count_runs(s), 6);
    free(git(*state, "update-ref", "refs/heads/records/lab", "HEAD~2"));
    assert_int_equal(count_runs(s), 4);
    commit_records(s, 7, 9);
    assert_int_equal(count_runs(s), 6);
    out = git(*state, "update-ref", "refs/heads/records/elsewhere", "HEAD~3");
    assert_non_null(out);
    assert_int_equal(count_runs(s), 9); /* each reference counts */
    free(git(*state, "update-ref", "-d", "refs/heads/records/elsewhere"));
    assert_int_equal(count_runs(s), 6);
    wb_store_close(s);
}

/* The commit of a run is known without a search from the newest. */
static void test_where(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;

    for (int i = 0; i < 5; i++) {
        WB_AUTO_FREE char *commit = commit_record(s, i);
        WB_AUTO_FREE char *run = wb_strf("run_01JX8AB%03dCDEFGHJKMNPQRST", i);
        struct wb_run_place place = {0};

        assert_int_equal(wb_store_where(s, run, &place, &err), 0);
        assert_string_equal(place.commit, commit);
        wb_run_place_release(&place);
    }
    wb_store_close(s);
}

/* A store that cannot be written to is read all the same. */
static void test_read_only(void **state)
{
    WB_AUTO_FREE char *store = wb_strf("%s/store.git", (const char *)*state);
    WB_AUTO_FREE char *path = index_file(*state);
    struct wb_store *s = open_store(*state, true);
    int fd;

    commit_records(s, 0, 4);
    wb_store_close(s);
    /* The lock's name is taken by a folder: as good as a folder without permission, for root too.
     */
    {
        WB_AUTO_FREE char *lock = wb_strf("%s.lock", path);

        assert_int_equal(mkdir(lock, 0755), 0);
    }
    s = open_store(*state, false);
    assert_int_equal(count_runs(s), 4);
    commit_records(s, 4, 6);
    assert_int_equal(count_runs(s), 6);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd < 0);
    wb_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_order_of_figures, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stable, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_bad_questions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many_builds, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_groups, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_outcomes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_groups_hold_still, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_plans, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_flipped_anywhere, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_spoilt_files, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_deleted_under_a_reader, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_slow_reader, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_history_rewritten, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_where, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_read_only, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
