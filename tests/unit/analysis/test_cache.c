/* Kept answers: found again by content, never believed when they are not whole, bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/base/file.h"
#include "server/base/mem.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-cache-XXXXXX");

    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static int64_t asked; /* how often it was computed */

static int counted(const wb_json *in, wb_json **out, struct wb_err *err)
{
    int64_t x = wb_json_int_or(in, "x", -1);

    asked++;
    if (x < 0)
        return wb_fail(err, WB_INVALID, "/x: is missing");
    *out = wb_json_object();
    wb_json_set_int(*out, "twice", 2 * x);
    wb_json_set_real(*out, "third", 1.0 / 3);
    return 0;
}

static void ask(struct wb_cache *c, const char *topic, int64_t x, int64_t count)
{
    WB_AUTO_JSON wb_json *in = wb_json_object(), *out = NULL;

    wb_json_set_int(in, "x", x);
    assert_int_equal(wb_cache_answer(c, topic, counted, in, &out, NULL), 0);
    assert_int_equal(wb_json_int_or(out, "twice", 0), 2 * x);
    assert_true(wb_json_real_or(out, "third", 0) == 1.0 / 3);
    assert_int_equal(asked, count);
}

static void answers_once(void **state)
{
    struct wb_cache *c = wb_cache_open(*state);
    WB_AUTO_JSON wb_json *bad = wb_json_object(), *out = NULL;
    struct wb_err err = WB_ERR_INIT;

    asked = 0;
    ask(c, "a", 1, 1);
    ask(c, "a", 1, 1);
    ask(c, "a", 2, 2);
    ask(c, "b", 1, 3); /* another topic */
    wb_cache_close(c);
    c = wb_cache_open(*state);
    ask(c, "a", 1, 3);
    ask(NULL, "a", 1, 4);       /* no cache */
    for (int i = 0; i < 2; i++) /* an error is told each time */
        assert_int_equal(wb_cache_answer(c, "a", counted, bad, &out, &err), -WB_INVALID);
    assert_int_equal(asked, 6);
    wb_cache_close(c);
}

/* The only file in a folder; owned. */
static char *only_file(const char *dir)
{
    struct wb_strv names = {0};
    char *path;

    assert_int_equal(wb_list_dir(dir, &names, NULL), 0);
    assert_int_equal(names.n, 1);
    path = wb_strf("%s/%s", dir, names.v[0]);
    wb_strv_release(&names);
    return path;
}

static void what_is_not_whole_is_computed_again(void **state)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/newer", (char *)*state), *path = NULL, *text = NULL;
    struct wb_cache *c = wb_cache_open(*state);
    int64_t count = 1;
    size_t n;

    asked = 0;
    ask(c, "a", 1, count);
    path = only_file(dir);
    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, NULL), 0);
    for (size_t cut = 0; cut < n; cut++) {
        assert_int_equal(wb_file_put(path, text, cut, NULL), 0);
        ask(c, "a", 1, ++count);
    }
    for (size_t i = 0; i < n; i++) {
        text[i] ^= 1;
        assert_int_equal(wb_file_put(path, text, n, NULL), 0);
        ask(c, "a", 1, ++count);
        text[i] ^= 1;
    }
    ask(c, "a", 1, count);
    wb_cache_close(c);
}

static void is_bounded_and_keeps_what_is_used(void **state)
{
    struct wb_cache *c = wb_cache_open(*state);
    WB_AUTO_FREE char *newer = wb_strf("%s/newer", (char *)*state);
    WB_AUTO_FREE char *older = wb_strf("%s/older", (char *)*state);
    struct wb_strv names = {0};

    asked = 0;
    for (int64_t i = 0; i < WB_CACHE_FILES + 5; i++)
        ask(c, "a", i, i + 1);
    ask(c, "a", 3, WB_CACHE_FILES + 5); /* of the older generation, now in the newer one */
    assert_int_equal(wb_list_dir(newer, &names, NULL), 0);
    assert_int_equal(names.n, 6);
    wb_strv_release(&names);
    names = (struct wb_strv){0};
    assert_int_equal(wb_list_dir(older, &names, NULL), 0);
    assert_int_equal(names.n, WB_CACHE_FILES - 1);
    wb_strv_release(&names);
    wb_cache_close(c);
}

static void a_folder_that_cannot_be_is_no_cache(void **state)
{
    WB_AUTO_FREE char *file = wb_strf("%s/file", (char *)*state);

    assert_int_equal(wb_file_put(file, "x", 1, NULL), 0);
    assert_null(wb_cache_open(file));
    wb_cache_close(NULL);
}

/* Deleted under a running program: it goes on without. */
static void may_be_thrown_away(void **state)
{
    struct wb_cache *c = wb_cache_open(*state);

    asked = 0;
    ask(c, "a", 1, 1);
    assert_int_equal(wb_remove_tree(*state, NULL), 0);
    ask(c, "a", 1, 2);
    ask(c, "a", 1, 3);
    wb_cache_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_whole_is_computed_again, setup, teardown),
        cmocka_unit_test_setup_teardown(is_bounded_and_keeps_what_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_is_no_cache, setup, teardown),
        cmocka_unit_test_setup_teardown(may_be_thrown_away, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
