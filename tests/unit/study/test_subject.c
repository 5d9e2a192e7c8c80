/* The subject of a study: what is taken, what is refused, where it goes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/study/plan.h"

#define RECIPES "tests/data/recipes"
#define REST                                                           \
    "study: least\nrecipe: {name: toy, version: 3.10}\n"               \
    "workload:\n  data: {rows: 1000, value: {size: 64B}}\n  phases:\n" \
    "    - {name: load, op: insert, order: sequential}\n    - {name: max, op: get, for: 1s}\n"
#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A study with this line of a subject; file NULL: as over REST. */
static struct wb_study *read_with(const char *line, const char *file, char *const *overrides,
                                  struct wb_problems *p)
{
    const struct wb_study_options o = {.recipes_dir = RECIPES, .overrides = overrides};
    WB_AUTO_FREE char *text = wb_strf("%s\n%s", line, REST);
    struct wb_node *tree = wb_yaml_check(text, strlen(text), p);

    return tree ? wb_study_check(tree, file, &o, p) : NULL;
}

static void refuses(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"subject: {}", "subject is empty"},
        {"subject: abc", "subject must be"},
        {"subject: [commit]", "subject must be"},
        {"subject: {comit: abc}", "did you mean 'commit'"},
        {"subject: {commit: ''}", "commit"},
        {"subject: {commit: a b}", "commit must be one word"},
        {"subject: {commit: a/b}", "commit must be one word"},
        {"subject: {commit: a@b}", "commit must be one word"},
        {"subject: {commit: -f}", "commit must be one word"},
        {"subject: {commit: .}", "commit must be one word"},
        {"subject: {commit: last}", "commit cannot be 'last'"},
        {"subject: {version: last}", "version cannot be 'last'"},
        {"subject: {commit: [a, b]}", "commit"},
        {"subject: {built: 2026-11-30}", "built"},
        {"subject: {built: '2026-11-30T01:00:00'}", "built"}, /* no zone */
        {"subject: {built: '2026-13-30T01:00:00Z'}", "built"},
        {"subject: {built: yesterday}", "built"},
        {"subject: {artifact: 'sha256:12'}", "64 lower-case hex digits"},
        {"subject: {artifact: 'sha256:" HEX64 "0'}", "64 lower-case hex digits"},
        {"subject: {artifact: /no/such/file}", "artifact: "},
        {"subject: {artifact: /}", "is no plain file"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {0};
        struct wb_buf text = WB_BUF_INIT(1 << 16);

        assert_null(read_with(rows[i].line, "s.yaml", NULL, &p));
        wb_problems_text(&p, &text);
        if (p.n != 1 || strstr(wb_buf_str(&text), rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].line, wb_buf_str(&text));
        assert_int_equal(p.v[0].line, 1);
        wb_buf_release(&text);
        wb_problems_release(&p);
    }
}

static struct wb_study *good(const char *line, const char *file, char *const *overrides)
{
    struct wb_problems p = {0};
    struct wb_buf text = WB_BUF_INIT(1 << 16);
    struct wb_study *s = read_with(line, file, overrides, &p);

    wb_problems_text(&p, &text);
    assert_string_equal(wb_buf_str(&text), "");
    assert_non_null(s);
    wb_buf_release(&text);
    wb_problems_release(&p);
    return s;
}

static void is_kept(void **state)
{
    struct wb_study *s = good("subject: {commit: 0123, built: '2026-11-30T02:30:00.5+01:30', "
                              "version: 7.0.15-n+1, artifact: 'sha256:" HEX64 "'}",
                              NULL, NULL);
    WB_AUTO_JSON wb_json *j = wb_subject_json(s);
    struct wb_buf text = WB_BUF_INIT(4096);

    wb_json_canonical(j, &text);
    assert_string_equal(wb_buf_str(&text),
                        "{\"artifact\":\"" HEX64 "\",\"built\":\"2026-11-30T01:00:00.500Z\","
                        "\"commit\":\"0123\",\"version\":\"7.0.15-n+1\"}");
    wb_buf_clear(&text);
    wb_json_canonical(wb_json_get(s->resolved, "subject"), &text);
    assert_string_equal(wb_buf_str(&text),
                        "{\"artifact\":\"sha256:" HEX64 "\",\"built\":\"2026-11-30T01:00:00.500Z\","
                        "\"commit\":\"0123\",\"version\":\"7.0.15-n+1\"}");
    assert_string_equal(s->version->version, "3.10");
    assert_string_equal(s->version->artifact_sha256, HEX64);
    assert_null(s->version->artifact);
    wb_buf_release(&text);
    wb_study_free(s);

    s = good("", NULL, NULL);
    assert_false(wb_subject_given(&s->subject));
    assert_null(s->version->artifact_sha256);
    wb_study_free(s);
}

static void comes_from_the_command_line(void **state)
{
    char a[] = "subject.commit=1e5", b[] = "subject.built=2026-11-30T01:00:00Z";
    char *overrides[] = {a, b, NULL};
    struct wb_study *s = good("", "s.yaml", overrides);

    assert_string_equal(s->subject.commit, "1e5"); /* no number */
    assert_string_equal(s->subject.built, "2026-11-30T01:00:00.000Z");
    wb_study_free(s);
}

static void a_file_is_known_by_its_digest(void **state)
{
    char path[] = "/tmp/wb-subject-XXXXXX";
    int fd = mkstemp(path);
    WB_AUTO_FREE char *line = wb_strf("subject: {artifact: %s}", path);
    struct wb_problems p = {0};
    struct wb_study *s;
    char hex[WB_SHA256_HEX];

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "build", 5), 5);
    close(fd);
    wb_sha256_of("build", 5, hex);
    s = good(line, "s.yaml", NULL);
    assert_string_equal(s->subject.artifact, path);
    assert_string_equal(s->version->artifact_sha256, hex);
    assert_string_equal(wb_json_str_or(wb_json_get(s->resolved, "subject"), "artifact", "") + 7,
                        hex);
    wb_study_free(s);

    assert_null(read_with(line, NULL, NULL, &p)); /* over REST */
    assert_int_equal(p.n, 1);
    assert_string_equal(p.v[0].code, "not-offered");
    wb_problems_release(&p);
    unlink(path);
}

/* Whatever the build is called, it is a point of the same history. */
static void is_no_part_of_series(void **state)
{
    static int cpus[] = {0, 1};
    char mems[] = "0", host_class[] = "c";
    const struct wb_host_facts host = {.cpus = cpus,
                                       .ncpus = 2,
                                       .mems = mems,
                                       .memory_bytes = 8LL << 30,
                                       .host_class = host_class};
    static const char *const lines[] = {"", "subject: {commit: a}", "subject: {commit: b}",
                                        "subject: {version: '4', artifact: 'sha256:" HEX64 "'}"};
    char first[17] = "";

    for (size_t i = 0; i < WB_LEN(lines); i++) {
        struct wb_study *s = good(lines[i], "s.yaml", NULL);
        struct wb_problems p = {0};
        struct wb_plan *plan = wb_plan_make(s, &host, 1, &p);
        WB_AUTO_JSON wb_json *j = NULL;

        assert_non_null(plan);
        if (i == 0)
            memcpy(first, plan->arms[0].series_key, sizeof first);
        assert_string_equal(plan->arms[0].series_key, first);
        j = wb_plan_json(plan);
        assert_true((wb_json_get(j, "subject") != NULL) == (i > 0));
        wb_plan_free(plan);
        wb_problems_release(&p);
        wb_study_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(is_kept),
        cmocka_unit_test(comes_from_the_command_line),
        cmocka_unit_test(a_file_is_known_by_its_digest),
        cmocka_unit_test(is_no_part_of_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
