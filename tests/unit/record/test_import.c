/*
 * Records from elsewhere: other stores, and results of other programs.
 */
#include "tests/unit/record/fixture.h"

#include <unistd.h>

#include "server/base/cancel.h"
#include "server/record/import.h"
#include "server/record/query.h"

/* A second store beside the first, with records from..to of controller `id`. */
static char *other_store(const char *dir, const char *id, int from, int to)
{
    char *path = wb_strf("%s/%s.git", dir, id);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;

    assert_int_equal(wb_store_open(path, true, id, &s, &err), 0);
    commit_records(s, from, to);
    wb_store_close(s);
    return path;
}

static int import_rc(struct wb_store *s, const char *from, wb_json **report)
{
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_store_import(s, from, NULL, report, &err);

    if (rc < 0)
        assert_true(err.root[0] != '\0');
    return rc;
}

/* The status of the reference whose name ends so. */
static const char *status_of(const wb_json *report, const char *end)
{
    const wb_json *refs = wb_json_get(report, "refs");

    for (size_t i = 0; i < wb_json_len(refs); i++) {
        const char *ref = wb_json_str_or(wb_json_at(refs, i), "ref", "");
        size_t n = strlen(ref), k = strlen(end);

        if (n >= k && !strcmp(ref + n - k, end))
            return wb_json_str_or(wb_json_at(refs, i), "status", "");
    }
    return "";
}

static void test_other_store(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *other = other_store(dir, "east", 10, 14);
    WB_AUTO_FREE char *left = NULL;
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *same = NULL;
    WB_AUTO_JSON wb_json *more = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf raw = WB_BUF_INIT(1000);

    commit_records(s, 0, 3);
    assert_int_equal(import_rc(s, other, &first), 0);
    assert_string_equal(status_of(first, "records/east"), "new");
    assert_string_equal(status_of(first, "east/2026-11"), "new");
    assert_int_equal(count_runs(s), 7);
    assert_int_equal(import_rc(s, other, &same), 0);
    assert_string_equal(status_of(same, "records/east"), "same");
    free(other_store(dir, "east", 14, 16));
    assert_int_equal(import_rc(s, other, &more), 0);
    assert_string_equal(status_of(more, "records/east"), "forward");
    assert_int_equal(wb_store_read_raw(s, "run_01JX8AB015CDEFGHJKMNPQRST", "db0.log", &raw, &err),
                     0);
    wb_buf_release(&raw);
    assert_undamaged(s, 9);
    assert_fsck(dir, false);
    left = git(dir, "for-each-ref", "refs/import");
    assert_string_equal(left, "");
    wb_store_close(s);
}

/* What would lose something here is refused, what is merely old is left alone. */
static void test_never_backwards(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *one = other_store(dir, "east", 0, 4);
    WB_AUTO_FREE char *copy = wb_strf("%s/copy.git", dir);
    WB_AUTO_FREE char *before = NULL;
    WB_AUTO_FREE char *after = NULL;
    WB_AUTO_JSON wb_json *report = NULL;
    WB_AUTO_JSON wb_json *refused = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(import_rc(s, one, &report), 0);
    before = git(dir, "rev-parse", "refs/heads/records/east");
    free(git(dir, "update-ref", "refs/heads/records/west", "refs/heads/records/east~2"));
    assert_int_equal(rename(one, copy), 0);
    free(other_store(dir, "east", 4, 6)); /* another history under the same name */
    assert_int_equal(import_rc(s, one, &refused), -WB_CONFLICT);
    assert_string_equal(status_of(refused, "records/east"), "refused");
    after = git(dir, "rev-parse", "refs/heads/records/east");
    assert_string_equal(before, after);
    {
        WB_AUTO_JSON wb_json *older = NULL;

        free(git(dir, "update-ref", "refs/heads/records/east", "refs/heads/records/east~1"));
        assert_int_equal(import_rc(s, copy, &older), 0);
        assert_string_equal(status_of(older, "records/east"), "forward");
    }
    {
        WB_AUTO_JSON wb_json *older = NULL;
        struct wb_store *c = NULL;

        assert_int_equal(wb_store_open(copy, false, NULL, &c, &err), 0);
        commit_records(c, 20, 21); /* the copy is ahead, and takes nothing from here */
        assert_int_equal(import_rc(c, wb_store_path(s), &older), 0);
        assert_string_equal(status_of(older, "records/east"), "older");
        wb_store_close(c);
    }
    wb_store_close(s);
}

static void test_not_a_store(void **state)
{
    const char *dir = *state;
    static const char *const bad[] = {"", "-u", "--upload-pack=touch /tmp/x", "a\nb"};
    struct wb_store *s = open_store(dir, true);
    WB_AUTO_FREE char *empty = wb_strf("%s/empty.git", dir);
    WB_AUTO_FREE char *absent = wb_strf("%s/absent", dir);
    WB_AUTO_FREE char *mark = wb_strf("%s/mark", dir);
    WB_AUTO_FREE char *ext = wb_strf("ext::touch %s", mark);
    struct wb_store *e = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;

    for (size_t i = 0; i < WB_LEN(bad); i++)
        assert_int_equal(import_rc(s, bad[i], &report), -WB_INVALID);
    assert_int_equal(wb_store_open(empty, true, "none", &e, &err), 0);
    wb_store_close(e);
    assert_int_equal(import_rc(s, empty, &report), -WB_NOT_FOUND);
    assert_int_equal(import_rc(s, absent, &report), -WB_NOT_FOUND);
    assert_int_equal(import_rc(s, dir, &report), -WB_INVALID); /* a folder, but no repository */
    assert_int_equal(wb_file_put(mark, "", 0, &err), 0);
    assert_int_equal(import_rc(s, mark, &report), -WB_INVALID); /* a file */
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(import_rc(s, ext, &report), -WB_UNAVAILABLE);
    assert_false(wb_path_exists(mark));
    assert_null(report);
    wb_store_close(s);
}

/* ---- results of other programs ---- */

static wb_json *results(struct wb_store *s, const char *source, const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;

    if (wb_store_import_results(s, source, text, strlen(text), NULL, &report, &err) < 0)
        fail_msg("results: %s: %s", err.context, err.root);
    return report;
}

#define LINE(more)                                                                       \
    "{\"id\":\"1\",\"test\":\"t\",\"measured_at\":\"2026-11-30T10:00:00Z\",\"metrics\":" \
    "{\"ops\":{\"value\":5,\"unit\":\"ops/s\",\"better\":\"higher\"}}" more "}\n"

static void test_lines(void **state)
{
    static const struct {
        const char *line, *want; /* part of the reason; NULL: it is recorded */
    } cases[] = {
        {LINE(""), NULL},
        {LINE(",\"factors\":{\"build\":\"gcc\"},\"version\":\"3.10\",\"more\":[1]"), NULL},
        {"x", "line 1"},
        {"[]", "not an object"},
        {LINE(",\"id\":\"2\""), "duplicate"},
        {LINE(",\"factors\":{\"threads\":4}"), "threads"},
        {LINE(",\"factors\":{\"a\":\"b\\nc\"}"), "text of one line"},
        {LINE(",\"factors\":[]"), "{name: text}"},
        {LINE(",\"outcome\":\"passed\""), "passed"},
        {LINE(",\"ended_at\":\"2026-11-30T09:59:59Z\""), "before"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1,\"metrics\":{}}", "2000"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":true}", "measured_at"},
        {"{\"test\":\"t\"}", "id"},
        {"{\"id\":\"1\"}", "test"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240}", "metrics"},
        {LINE(",\"version\":7.2"), "version: a text of one line"},
        {LINE(",\"name\":\"\""), "name: a text of one line"},
        {LINE(",\"host\":null"), "host: a text of one line"},
        {LINE(",\"host_class\":[\"a\"]"), "host_class: a text of one line"},
        {LINE(",\"outcome\":1"), "outcome: a text of one line"},
        {LINE(",\"campaign\":7"), "campaign: needed is a text"},
        {LINE(",\"round\":\"3\""), "round: a whole number from 1 to 1000000"},
        {LINE(",\"round\":0"), "round: a whole number from 1 to 1000000"},
        {LINE(",\"round\":2.5"), "round: a whole number from 1 to 1000000"},
        {LINE(",\"round\":1000000"), NULL},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"a\":"
         "{\"value\":5,\"better\":\"lower\",\"unit\":7}}}",
         "metrics: a: the unit is a text of one line, at most 40 bytes"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"a\":"
         "{\"value\":\"5\",\"better\":\"lower\"}}}",
         "no number"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"a\":5}}",
         "no number"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"a\":"
         "{\"value\":5,\"better\":\"more\"}}}",
         "higher, lower"},
        {"{\"id\":\"1\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"../a\":"
         "{\"value\":5,\"better\":\"lower\"}}}",
         "metric's name"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *sub = wb_strf("%s/case%zu", (const char *)*state, i);
        struct wb_store *s = open_store(sub, true);
        WB_AUTO_JSON wb_json *report = results(s, "elsewhere", cases[i].line);
        const wb_json *refused = wb_json_get(report, "refused");

        if (cases[i].want) {
            const char *why = wb_json_str_or(wb_json_at(refused, 0), "reason", "");

            if (!strstr(why, cases[i].want))
                fail_msg("case %zu: %s", i, why);
            assert_int_equal(wb_json_int_or(report, "recorded", -1), 0);
        } else {
            assert_int_equal(wb_json_len(refused), 0);
            assert_int_equal(wb_json_int_or(report, "recorded", -1), 1);
            assert_undamaged(s, 1);
        }
        wb_store_close(s);
    }
}

/* Once only, however often; in another source the same id is another result. */
static void test_again(void **state)
{
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_JSON wb_json *first = results(s, "a", LINE(""));
    WB_AUTO_JSON wb_json *second = results(s, "a", LINE("") LINE(""));
    WB_AUTO_JSON wb_json *other = results(s, "b", "\n" LINE("") "  \n");

    assert_int_equal(wb_json_int_or(first, "recorded", -1), 1);
    assert_int_equal(wb_json_int_or(second, "recorded", -1), 0);
    assert_int_equal(wb_json_int_or(second, "already", -1), 2);
    assert_int_equal(wb_json_int_or(other, "recorded", -1), 1);
    assert_undamaged(s, 2);
    wb_store_close(s);
}

/* Many go into few commits, an interruption loses none that were told, and each is found, verified
 * and pushed like any other. */
static void test_many(void **state)
{
    const char *dir = *state;
    struct wb_store *s = open_store(dir, true);
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_buf text = WB_BUF_INIT(8u << 20);
    struct wb_err err = WB_ERR_INIT;
    struct wb_run_place place = {0};
    WB_AUTO_FREE char *commits = NULL;
    WB_AUTO_FREE char *first = NULL;
    wb_json *report = NULL;
    const size_t n = 2500; /* one batch and a half, over two days */

    for (size_t i = 0; i < n; i++)
        wb_buf_addf(&text,
                    "{\"id\":\"r%zu\",\"test\":\"t\",\"measured_at\":%lld,\"metrics\":{\"ops\":"
                    "{\"value\":%zu,\"unit\":\"ops/s\",\"better\":\"higher\"}}}\n",
                    i, 1796053309LL + (long long)i * 30, i);
    wb_cancel_set(cancel, 0);
    assert_int_equal(
        wb_store_import_results(s, "many", wb_buf_str(&text), text.len, cancel, &report, &err),
        -WB_CANCELLED);
    assert_int_equal(wb_json_int_or(report, "recorded", -1), 0);
    wb_json_free(report);
    wb_cancel_free(cancel);

    report = results(s, "many", wb_buf_str(&text));
    assert_int_equal(wb_json_int_or(report, "recorded", -1), (int)n);
    wb_json_free(report);
    report = results(s, "many", wb_buf_str(&text));
    assert_int_equal(wb_json_int_or(report, "recorded", -1), 0);
    assert_int_equal(wb_json_int_or(report, "already", -1), (int)n);
    wb_json_free(report);
    commits = git(dir, "rev-list", "--count", "HEAD");
    assert_string_equal(commits, "2");
    assert_int_equal(count_runs(s), n);
    assert_undamaged(s, n);
    assert_fsck(dir, false);
    {
        WB_AUTO_JSON wb_json *list = list_all(s);
        const char *run = wb_json_str_or(wb_json_at(list, n / 2), "id", "");
        WB_AUTO_JSON wb_json *damage = wb_json_array();
        size_t runs = 0;

        assert_int_equal(wb_store_where(s, run, &place, &err), 0);
        first = git(dir, "rev-parse", "HEAD~1");
        assert_string_equal(place.commit, first);
        wb_run_place_release(&place);
        assert_int_equal(wb_store_verify(s, run, damage, &runs, &err), 0);
        assert_int_equal(wb_json_len(damage), 0);
        assert_int_equal(runs, 1);
    }
    wb_buf_release(&text);
    wb_store_close(s);
}

/* A result that is too big does not keep its neighbours out, nor does one that another process
 * records meanwhile. */
static void test_one_too_big(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_buf text = WB_BUF_INIT(WB_RESULTS_MAX);
    wb_json *report;

    wb_buf_adds(&text, LINE(""));
    wb_buf_adds(&text, "{\"id\":\"2\",\"test\":\"t\",\"measured_at\":1803981240,\"more\":\"");
    while (text.len < (33u << 20))
        wb_buf_adds(&text, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn");
    wb_buf_adds(&text, "\",\"metrics\":{\"a\":{\"value\":5,\"better\":\"lower\"}}}\n"
                       "{\"id\":\"3\",\"test\":\"t\",\"measured_at\":1803981240,\"metrics\":{\"a\":"
                       "{\"value\":5,\"better\":\"lower\"}}}\n");
    report = results(s, "a", wb_buf_str(&text));
    assert_int_equal(wb_json_int_or(report, "recorded", -1), 2);
    assert_int_equal(wb_json_len(wb_json_get(report, "refused")), 1);
    assert_int_equal(wb_json_int_or(wb_json_at(wb_json_get(report, "refused"), 0), "line", -1), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(report, "refused"), 0), "id", ""),
                        "2");
    wb_json_free(report);
    assert_undamaged(s, 2);
    wb_buf_release(&text);
    wb_store_close(s);
}

/* Builds and layouts are never mixed: each is a series of its own, over all nights. */
static void test_variants(void **state)
{
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(65536);
    WB_AUTO_JSON wb_json *in = NULL;
    WB_AUTO_JSON wb_json *series = NULL;
    WB_AUTO_FREE char *next = NULL;
    const struct wb_query q = {.limit = 100};
    const wb_json *list, *longest;
    size_t found = 0;

    assert_int_equal(wb_json_read_file("tests/data/cases/006-variants.json", 65536, &in, &err), 0);
    list = wb_json_get(in, "results");
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *r = wb_json_at(list, i);

        wb_buf_addf(&text,
                    "{\"id\":\"%zu\",\"test\":\"%s\",\"version\":\"%s\",\"measured_at\":"
                    "\"2026-11-0%lldT01:00:00Z\",\"factors\":{\"build\":\"%s\",\"layout\":\"%s\"},"
                    "\"metrics\":{\"ops\":{\"value\":%lld,\"unit\":\"ops/s\",\"better\":"
                    "\"higher\"}}}\n",
                    i, wb_json_str_or(r, "test", ""), wb_json_str_or(r, "version", ""),
                    (long long)wb_json_int_or(r, "night", 0), wb_json_str_or(r, "build", ""),
                    wb_json_str_or(r, "layout", ""), (long long)wb_json_int_or(r, "ops", 0));
    }
    {
        WB_AUTO_JSON wb_json *report = results(s, "nightly", wb_buf_str(&text));

        assert_int_equal(wb_json_int_or(report, "recorded", 0), 6);
    }
    wb_buf_release(&text);
    assert_int_equal(wb_store_series(s, &q, &series, &next, &err), 0);
    assert_int_equal(wb_json_len(series), wb_json_int_or(in, "expected_series", 0));
    longest = wb_json_path(in, "expected_longest_series.ops");
    for (size_t i = 0; i < wb_json_len(series); i++) {
        const wb_json *o = wb_json_at(series, i);
        const struct wb_query of = {.series = wb_json_str_or(o, "id", ""), .ascending = true};
        WB_AUTO_JSON wb_json *runs = NULL;
        WB_AUTO_FREE char *rest = NULL;

        if (strcmp(wb_json_str_or(o, "arm", ""), "gcc-13/docker x1") != 0)
            continue;
        found++;
        assert_int_equal(wb_store_runs(s, &of, &runs, &rest, &err), 0);
        assert_int_equal(wb_json_len(runs), wb_json_len(longest));
        for (size_t k = 0; k < wb_json_len(runs); k++) {
            const wb_json *m = wb_json_path(wb_json_at(runs, k), "metrics.ops.value");

            assert_true(wb_json_integer(m) == wb_json_integer(wb_json_at(longest, k)));
        }
    }
    assert_int_equal(found, 1);
    assert_undamaged(s, 6);
    wb_store_close(s);
}

/* Times with a zone, however it is written, are one order; without one, or no time, refused. */
static void test_times(void **state)
{
    static const char *const want[] = {"b", "e", "d", "c", "a"};
    struct wb_store *s = open_store(*state, true);
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(65536);
    WB_AUTO_FREE char *file = NULL;
    WB_AUTO_FREE char *next = NULL;
    WB_AUTO_JSON wb_json *report = NULL;
    WB_AUTO_JSON wb_json *runs = NULL;
    const struct wb_query q = {.ascending = true};
    size_t n = 0;

    assert_int_equal(wb_file_read("tests/data/cases/031-times.ndjson", 65536, &file, &n, &err), 0);
    for (char *line = file; *line;) {
        size_t len = strcspn(line, "\n");

        assert_int_equal(line[len - 1], '}');
        wb_buf_add(&text, line, len - 1);
        wb_buf_adds(&text, ",\"test\":\"t\",\"metrics\":{\"ops\":{\"value\":1,\"unit\":\"\","
                           "\"better\":\"higher\"}}}\n");
        line += len + (line[len] == '\n');
    }
    report = results(s, "zones", wb_buf_str(&text));
    wb_buf_release(&text);
    assert_int_equal(wb_json_int_or(report, "recorded", 0), 5);
    assert_int_equal(wb_json_len(wb_json_get(report, "refused")), 4);
    assert_int_equal(wb_store_runs(s, &q, &runs, &next, &err), 0);
    assert_int_equal(wb_json_len(runs), WB_LEN(want));
    for (size_t i = 0; i < WB_LEN(want); i++)
        assert_string_equal(wb_json_string(wb_json_path(wb_json_at(runs, i), "imported.id")),
                            want[i]);
    assert_string_equal(wb_json_str_or(wb_json_at(runs, 1), "started_at", ""),
                        "2027-03-02T09:50:00.123Z");
    assert_string_equal(wb_json_str_or(wb_json_at(runs, 2), "started_at", ""),
                        "2027-03-02T09:54:00.000Z");
    wb_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_other_store, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_never_backwards, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_not_a_store, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_lines, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_again, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_one_too_big, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_variants, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_times, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
