/*
 * Annotations: what is taken and refused, what is in force, that they are records which verify
 * watches over.
 */
#include "tests/unit/record/fixture.h"

#include "server/record/annotate.h"

#define RUN "run_01JX8AB001CDEFGHJKMNPQRST"

static char *annotate(struct wb_store *s, struct wb_annotation a)
{
    struct wb_err err = WB_ERR_INIT;
    char *id = NULL;

    if (wb_store_annotate(s, &a, &id, &err) < 0)
        fail_msg("annotate: %s: %s", err.context, err.root);
    return id;
}

static wb_json *read_notes(struct wb_store *s, const char *about, bool in_force)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_store_annotations(s, about, in_force, &out, &err) < 0)
        fail_msg("annotations: %s: %s", err.context, err.root);
    return out;
}

static void test_refused(void **state)
{
    WB_AUTO_FREE char *big = wb_calloc(1, WB_ANNOTATION_TEXT_MAX + 2);
    const struct {
        struct wb_annotation a;
        int want;
    } cases[] = {
        {{"exclude", RUN, "x", NULL, NULL}, -WB_INVALID},
        {{NULL, RUN, "x", NULL, NULL}, -WB_INVALID},
        {{"note", NULL, "x", NULL, NULL}, -WB_INVALID},
        {{"note", "", "x", NULL, NULL}, -WB_INVALID},
        {{"note", RUN, NULL, NULL, NULL}, -WB_INVALID},
        {{"note", RUN, "", NULL, NULL}, -WB_INVALID},
        {{"note", RUN, big, NULL, NULL}, -WB_LIMIT},
        {{"note", RUN, "\x1b[31mred", NULL, NULL}, -WB_INVALID},
        {{"note", RUN,
          "\xc2\x9b"
          "31m",
          NULL, NULL},
         -WB_INVALID},
        {{"note", "run\n1", "x", NULL, NULL}, -WB_INVALID},
        {{"note", RUN, "x", "", NULL}, -WB_INVALID},
        {{"note", RUN, "x", "me\nparent: 0", NULL}, -WB_INVALID},
        {{"environment", RUN, "x", NULL, "yesterday"}, -WB_INVALID},
        {{"environment", RUN, "x", NULL, "2026-11-30T10:00:00"}, -WB_INVALID},
        {{"excluded", "host-1", "x", NULL, NULL}, -WB_INVALID},
        {{"excluded", "run_0", "x", NULL, NULL}, -WB_NOT_FOUND},
        {{"excluded", "cmp_B", "x", NULL, NULL}, -WB_NOT_FOUND},
        {{"excluded", "run_../../x", "x", NULL, NULL}, -WB_INVALID},
        {{"withdrawn", RUN, "x", NULL, NULL}, -WB_NOT_FOUND},
        {{"withdrawn", "ann_1", "x", NULL, NULL}, -WB_NOT_FOUND},
    };
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *before = NULL;
    WB_AUTO_FREE char *after = NULL;

    memset(big, 'x', WB_ANNOTATION_TEXT_MAX + 1);
    commit_records(s, 0, 2);
    before = git(*state, "rev-parse", "HEAD");
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        char *id = NULL;
        int rc = wb_store_annotate(s, &cases[i].a, &id, &err);

        if (rc != cases[i].want || id)
            fail_msg("case %zu: %d %s", i, rc, err.root);
        assert_true(err.root[0] != '\0');
    }
    after = git(*state, "rev-parse", "HEAD");
    assert_string_equal(before, after);
    wb_store_close(s);
}

static void test_in_force(void **state)
{
    struct wb_store *s = open_store(*state, true), *again;
    WB_AUTO_FREE char *excluded = NULL;
    WB_AUTO_FREE char *accepted = NULL;
    WB_AUTO_FREE char *environment = NULL;
    WB_AUTO_FREE char *back = NULL;
    WB_AUTO_JSON wb_json *all = NULL;
    WB_AUTO_JSON wb_json *force = NULL;
    WB_AUTO_JSON wb_json *about = NULL;
    WB_AUTO_JSON wb_json *about_force = NULL;
    struct wb_err err = WB_ERR_INIT;
    char *id = NULL;
    const wb_json *a;

    commit_records(s, 0, 2);
    excluded = annotate(s, (struct wb_annotation){"excluded", RUN, "fan was broken", "ann", NULL});
    accepted = annotate(s, (struct wb_annotation){.type = "accepted", .id = "cmp_A"});
    environment = annotate(s, (struct wb_annotation){"environment", "lab-7", "new\nkernel", NULL,
                                                     "2026-11-30T12:00:00+02:00"});
    back = annotate(s, (struct wb_annotation){.type = "withdrawn", .id = excluded});
    assert_int_equal(
        wb_store_annotate(s, &(struct wb_annotation){.type = "withdrawn", .id = back}, &id, &err),
        -WB_INVALID);

    again = open_store(*state, false);
    all = read_notes(again, NULL, false);
    assert_int_equal(wb_json_len(all), 4);
    a = wb_json_at(all, 0);
    assert_string_equal(wb_json_str_or(a, "annotation", ""), excluded);
    assert_string_equal(wb_json_str_or(a, "withdrawn_by", ""), back);
    assert_string_equal(wb_json_str_or(a, "who", ""), "ann");
    assert_string_equal(wb_json_str_or(a, "at", ""), "2026-11-30T15:41:50.123Z");
    force = read_notes(again, NULL, true);
    assert_int_equal(wb_json_len(force), 2);
    a = wb_json_at(force, 1);
    assert_string_equal(wb_json_str_or(a, "annotation", ""), environment);
    assert_string_equal(wb_json_str_or(a, "at", ""), "2026-11-30T10:00:00.000Z");
    assert_string_equal(wb_json_str_or(a, "text", ""), "new\nkernel");
    assert_true(strlen(wb_json_str_or(a, "who", "")) > 1);
    about = read_notes(again, RUN, false);
    assert_int_equal(wb_json_len(about), 2); /* and what took it back */
    about_force = read_notes(again, RUN, true);
    assert_int_equal(wb_json_len(about_force), 0);
    assert_undamaged(again, 2);
    assert_fsck(*state, false);
    wb_store_close(again);
    wb_store_close(s);
}

/* One that is changed, or taken out of the records, is found. */
static void test_verified(void **state)
{
    struct wb_store *s = open_store(*state, true);
    WB_AUTO_FREE char *id = NULL;
    WB_AUTO_FREE char *list = NULL;
    WB_AUTO_FREE char *path = NULL;
    WB_AUTO_FREE char *blob = NULL;
    WB_AUTO_FREE char *tree = NULL;
    WB_AUTO_FREE char *info = NULL;
    WB_AUTO_FREE char *file = wb_strf("%s/changed", (const char *)*state);
    struct wb_err err = WB_ERR_INIT;
    size_t runs;
    WB_AUTO_JSON wb_json *damage = NULL;
    WB_AUTO_JSON wb_json *lost = NULL;
    const char *text = "{\"annotation\":\"x\",\"schema\":1}\n";

    commit_records(s, 0, 1);
    id = annotate(s, (struct wb_annotation){"note", "somewhere", "a note", "ann", NULL});
    list = git(*state, "ls-tree", "-r", "--name-only", "HEAD", "annotations");
    path = wb_strdup(list);
    assert_non_null(strstr(path, id));
    assert_int_equal(wb_file_put(file, text, strlen(text), &err), 0);
    blob = git(*state, "hash-object", "-w", file);
    free(git(*state, "read-tree", "HEAD"));
    info = wb_strf("100644,%s,%s", blob, path);
    free(git(*state, "update-index", "--cacheinfo", info));
    tree = git(*state, "write-tree");
    {
        WB_AUTO_FREE char *made = git(*state, "commit-tree", tree, "-p", "HEAD", "-m", "edit");

        free(git(*state, "update-ref", "HEAD", made));
    }
    damage = verify_all(s, &runs);
    assert_int_equal(runs, 1);
    {
        size_t schema = 0, changed = 0;

        for (size_t i = 0; i < wb_json_len(damage); i++) {
            const char *code = wb_json_str_or(wb_json_at(damage, i), "code", "");

            schema += !strcmp(code, "schema");
            changed += !strcmp(code, "changed");
        }
        assert_int_equal(schema, 8); /* six texts, another name, no type */
        assert_int_equal(changed, 1);
    }
    free(tree);
    tree = git(*state, "rev-parse", "HEAD~2^{tree}"); /* before it was made */
    {
        WB_AUTO_FREE char *made = git(*state, "commit-tree", tree, "-p", "HEAD", "-m", "edit");

        free(git(*state, "update-ref", "HEAD", made));
    }
    lost = verify_all(s, &runs);
    {
        size_t n = 0;

        for (size_t i = 0; i < wb_json_len(lost); i++)
            n += !strcmp(wb_json_str_or(wb_json_at(lost, i), "run", ""), id) &&
                 !strcmp(wb_json_str_or(wb_json_at(lost, i), "code", ""), "lost");
        assert_int_equal(n, 1);
    }
    {
        WB_AUTO_JSON wb_json *none = read_notes(s, NULL, false);

        assert_int_equal(wb_json_len(none), 0);
    }
    wb_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_in_force, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_verified, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
