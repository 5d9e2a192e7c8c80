#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/queue/documents.h"

struct place {
    char dir[32];
    struct wb_db *db;
};

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));
    WB_AUTO_FREE char *path = NULL;

    memcpy(p->dir, "/tmp/wb-docs-XXXXXX", sizeof("/tmp/wb-docs-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    path = wb_strf("%s/service.db", p->dir);
    assert_int_equal(wb_queue_open(path, &p->db, NULL), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    wb_db_close(p->db);
    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    free(p);
    return 0;
}

static int put(struct wb_db *db, const char *kind, const char *name, const char *text,
               int64_t expect, int64_t *version)
{
    const struct wb_document d = {.kind = kind, .name = name, .text = text, .token = "alice"};
    struct wb_err err = WB_ERR_INIT;

    return wb_document_put(db, &d, expect, 1000, version, &err);
}

static void expect_text(struct wb_db *db, const char *name, int64_t version, const char *want)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_document_get(db, "study", name, version, &doc, &err);

    assert_int_equal(rc, want ? 0 : -WB_NOT_FOUND);
    if (want)
        assert_string_equal(wb_json_str_or(doc, "text", ""), want);
}

static void versions_are_kept(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_JSON wb_json *all = NULL;
    int64_t v = 0;

    expect_text(db, "a", 0, NULL);
    assert_int_equal(put(db, "study", "a", "one", 1, &v), -WB_CONFLICT); /* there is none */
    assert_int_equal(put(db, "study", "a", "one", WB_DOCUMENT_ABSENT, &v), 0);
    assert_int_equal(v, 1);
    assert_int_equal(put(db, "study", "a", "x", WB_DOCUMENT_ABSENT, &v), -WB_CONFLICT);
    assert_int_equal(put(db, "study", "a", "two", 1, &v), 0);
    assert_int_equal(put(db, "study", "a", "late", 1, &v), -WB_CONFLICT); /* a lost update */
    assert_int_equal(v, 2);
    expect_text(db, "a", 0, "two");
    expect_text(db, "a", 1, "one");
    expect_text(db, "a", 3, NULL);
    assert_int_equal(put(db, "study", "a", NULL, 2, &v), 0); /* removed */
    expect_text(db, "a", 0, NULL);
    expect_text(db, "a", 2, "two"); /* what a campaign names stays readable */
    expect_text(db, "a", 3, NULL);
    assert_int_equal(put(db, "study", "a", "four", 2, &v), -WB_CONFLICT);
    assert_int_equal(put(db, "study", "a", "four", WB_DOCUMENT_ABSENT, &v), 0);
    assert_int_equal(v, 4); /* no number is given twice */
    assert_int_equal(wb_document_versions(db, "study", "a", &all, NULL), 0);
    assert_int_equal(wb_json_len(all), 4);
    assert_true(wb_json_bool_or(wb_json_at(all, 1), "removed", false));
    assert_int_equal(wb_json_int_or(wb_json_at(all, 0), "version", 0), 4);
}

static void lists_are_of_one_kind(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_JSON wb_json *first = NULL;
    WB_AUTO_JSON wb_json *second = NULL;
    int64_t v = 0;

    for (const char *name = "dbca"; *name; name++) {
        WB_AUTO_FREE char *one = wb_strndup(name, 1);

        assert_int_equal(put(db, "study", one, "x", WB_DOCUMENT_ABSENT, &v), 0);
    }
    assert_int_equal(put(db, "study", "c", "y", 1, &v), 0);
    assert_int_equal(put(db, "study", "b", NULL, 1, &v), 0);
    assert_int_equal(put(db, "book", "b", "x", WB_DOCUMENT_ABSENT, &v), 0);
    assert_int_equal(v, 1);
    assert_int_equal(wb_document_list(db, "study", NULL, 2, &first, NULL), 0);
    assert_int_equal(wb_json_len(first), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(first, 0), "name", ""), "a");
    assert_string_equal(wb_json_str_or(wb_json_at(first, 1), "name", ""), "c");
    assert_int_equal(wb_json_int_or(wb_json_at(first, 1), "version", 0), 2);
    assert_int_equal(wb_document_list(db, "study", "c", 2, &second, NULL), 0);
    assert_int_equal(wb_json_len(second), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(versions_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_are_of_one_kind, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
