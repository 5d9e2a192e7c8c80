/* Builds of a series: which one is meant, in which order they stand, when one name has two. */
#include "tests/unit/analysis/topic_check.h"

#include "server/analysis/subject.h"

/* id, campaign, version, commit, built, started, outcome */
#define RUN(id, c, v, k, b, s, o)                                                            \
    "{\"id\":\"" id "\",\"campaign\":\"" c "\",\"outcome\":\"" o "\",\"started_at\":\"" s    \
    "\",\"recipe\":{\"version\":\"" v "\"},\"subject\":{\"commit\":\"" k "\",\"built\":\"" b \
    "\"}}"

static const char *const history = "[" RUN(
    "r1", "cmp_A", "7", "abc", "2026-11-03T00:00:00Z", "2026-11-04T00:00:00Z",
    "ok") "," RUN("r2", "cmp_B", "7", "abcd", "2026-11-01T00:00:00Z", "2026-11-05T00:00:00Z",
                  "ok") "," RUN("r3", "cmp_C", "8", "beef", "2026-11-02T00:00:00Z",
                                "2026-11-06T00:00:00Z",
                                "sut-error") "," RUN("r4", "cmp_D", "8", "beef",
                                                     "2026-11-02T00:00:00Z", "2026-11-07T00:00:00Z",
                                                     "ok") "," RUN("r5", "cmp_E", "abc", "feed",
                                                                   "2026-11-09T00:00:00Z",
                                                                   "2026-11-08T00:00:00Z",
                                                                   "sut-error") ","
                                                                                "{\"id\":\"r6\","
                                                                                "\"campaign\":"
                                                                                "\"cmp_F\","
                                                                                "\"outcome\":"
                                                                                "\"ok\",\"recipe\":"
                                                                                "{\"version\":"
                                                                                "\"6\"}},"
                                                                                "{\"id\":\"r7\","
                                                                                "\"campaign\":"
                                                                                "\"cmp_G\","
                                                                                "\"outcome\":"
                                                                                "\"ok\","
                                                                                "\"subject\":5,"
                                                                                "\"started_at\":7}"
                                                                                "]";

static void means_one_run(void **state)
{
    static const struct {
        const char *which, *skip, *id; /* id NULL: an error that has `says` in it */
        int code;
        const char *says;
    } cases[] = {
        {"abc", NULL, "r1", 0, NULL}, /* exactly: before the version and the longer commit */
        {"abcd", NULL, "r2", 0, NULL},
        {"ab", NULL, NULL, WB_CONFLICT, "abc, abcd"},
        {"b", NULL, "r4", 0, NULL}, /* what was measured comes before what was not */
        {"beef", NULL, "r4", 0, NULL},
        {"fe", NULL, "r5", 0, NULL}, /* the only one, though it could not be measured */
        {"8", NULL, "r4", 0, NULL},
        {"6", NULL, "r6", 0, NULL},
        {"cmp_C", NULL, "r3", 0, NULL},
        {"cmp_", NULL, NULL, WB_CONFLICT, "cmp_A, cmp_B, cmp_C, cmp_D, cmp_E and 2 more"},
        {"last", NULL, "r1", 0, NULL}, /* the newest build that could be measured */
        {"last", "cmp_A", "r4", 0, NULL},
        {"", NULL, NULL, WB_CONFLICT, "more than one"},
        {"ABC", NULL, NULL, WB_NOT_FOUND, "a commit (abc, abcd, beef, feed)"},
        {"last ", NULL, NULL, WB_NOT_FOUND, "no build"},
    };
    WB_AUTO_JSON wb_json *runs = topic_parsed(history);

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_strv skip = {0};
        const wb_json *run = NULL;
        int rc;

        if (cases[i].skip)
            wb_strv_add(&skip, cases[i].skip);
        rc = wb_subject_find(runs, "5e", cases[i].which, &skip, &run, &err);
        if (rc != -cases[i].code ||
            (cases[i].id &&
             (run == NULL || strcmp(cases[i].id, wb_json_str_or(run, "id", "")) != 0)) ||
            (cases[i].says && strstr(err.root, cases[i].says) == NULL))
            fail_msg("'%s' gave %d, %s: %s", cases[i].which, rc, wb_json_str_or(run, "id", "-"),
                     err.root);
        wb_strv_release(&skip);
    }
    {
        WB_AUTO_JSON wb_json *none = wb_json_array();
        struct wb_err err = WB_ERR_INIT;
        const wb_json *run = NULL;

        assert_int_equal(wb_subject_find(none, "5e", "last", NULL, &run, &err), -WB_NOT_FOUND);
        assert_int_equal(wb_subject_find(none, "5e", "x", NULL, &run, &err), -WB_NOT_FOUND);
        assert_non_null(strstr(err.root, "its runs name none"));
        assert_null(run);
    }
}

static void times_may_be_missing(void **state)
{
    static const struct {
        const char *run;
        int64_t ms;
    } cases[] = {
        {"{}", INT64_MIN},
        {"{\"started_at\":\"2026-11-30T00:00:00Z\"}", 1795996800000},
        {"{\"started_at\":\"2026-11-30T00:00:00Z\",\"subject\":{\"built\":\"1970-01-01T00:00:01Z\"}"
         "}",
         1000},
        {"{\"started_at\":\"2026-11-30T00:00:00Z\",\"subject\":{\"built\":\"yesterday\"}}",
         1795996800000},
        {"{\"started_at\":\"x\",\"subject\":{\"built\":7}}", INT64_MIN},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *run = topic_parsed(cases[i].run);

        if (wb_subject_ms(run) != cases[i].ms)
            fail_msg("%s: %lld", cases[i].run, (long long)wb_subject_ms(run));
    }
}

static void two_builds_under_one_name_are_told(void **state)
{
    static const struct {
        const char *points;
        size_t warnings;
    } cases[] = {
        {"[]", 0},
        {"[{\"version\":\"7\",\"digest\":\"a\"},{\"version\":\"7\",\"digest\":\"a\"}]", 0},
        {"[{\"version\":\"7\",\"digest\":\"a\"},{\"version\":\"7\",\"digest\":\"b\"}]", 1},
        {"[{\"version\":\"7\",\"digest\":\"a\"},{\"version\":\"8\",\"digest\":\"b\"}]", 0},
        {"[{\"version\":\"7\",\"commit\":\"x\",\"digest\":\"a\"},{\"version\":\"7\",\"commit\":"
         "\"y\",\"digest\":\"b\"}]",
         0},
        {"[{\"version\":\"7\",\"digest\":\"a\"},{\"version\":\"7\",\"digest\":null},{\"version\":"
         "\"7\",\"digest\":\"b\"}]",
         1},
        {"[{\"digest\":\"a\"},{\"digest\":\"b\"},{\"digest\":\"a\"},{\"digest\":\"b\"},{\"digest\":"
         "\"a\"},"
         "{\"digest\":\"b\"},{\"digest\":\"a\"},{\"digest\":\"b\"}]",
         6}, /* five, and how many more */
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *points = topic_parsed(cases[i].points);
        WB_AUTO_JSON wb_json *warnings = wb_json_array();

        wb_subject_digests(points, warnings);
        if (wb_json_len(warnings) != cases[i].warnings)
            fail_msg("case %zu: %zu", i, wb_json_len(warnings));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_one_run),
        cmocka_unit_test(times_may_be_missing),
        cmocka_unit_test(two_builds_under_one_name_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
