/* Undoing what only a recipe can undo, after the engine that began it is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/file.h"
#include "server/engine/undo.h"

struct fixture {
    char dir[32];
    char *recipe, *run, *log;
    struct wb_strv failed;
};

static void step(const struct fixture *f, const char *name, const char *script)
{
    WB_AUTO_FREE char *path = wb_strf("%s/steps/%s", f->recipe, name);
    WB_AUTO_FREE char *text = wb_strf("#!/bin/sh\n%s\n", script);

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static int setup(void **state)
{
    struct fixture *f = wb_calloc(1, sizeof(*f));
    WB_AUTO_FREE char *yaml = NULL;
    WB_AUTO_FREE char *to = NULL;
    WB_AUTO_FREE char *steps = NULL;
    size_t n;

    memcpy(f->dir, "/tmp/wb-test-undo-XXXXXX", sizeof("/tmp/wb-test-undo-XXXXXX"));
    if (!mkdtemp(f->dir))
        return -1;
    f->recipe = wb_strf("%s/toy", f->dir);
    f->run = wb_strf("%s/run", f->dir);
    f->log = wb_strf("%s/log", f->dir);
    steps = wb_strf("%s/steps", f->recipe);
    to = wb_strf("%s/recipe.yaml", f->recipe);
    *state = f;
    if (wb_mkdir_all(steps, 0755, NULL) < 0 || wb_mkdir_all(f->run, 0755, NULL) < 0 ||
        wb_file_read("tests/data/recipes/toy/recipe.yaml", 1u << 20, &yaml, &n, NULL) < 0)
        return -1;
    step(f, "probe", "echo '{}'");
    step(f, "ready", "echo '{}'");
    step(f, "stop", "echo stop >>$LOG; echo '{}'");
    return wb_file_put(to, yaml, n, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int rc = wb_remove_tree(f->dir, NULL);

    wb_strv_release(&f->failed);
    free(f->recipe);
    free(f->run);
    free(f->log);
    free(f);
    return rc;
}

static void save(const struct fixture *f, int instance)
{
    struct wb_problems p = {0};
    struct wb_recipe *r = wb_recipe_read(f->recipe, &p);
    struct wb_strv env = {0};

    if (!r)
        fail_msg("%s", p.v[0].message);
    wb_strv_addf(&env, "LOG=%s", f->log);
    wb_strv_addf(&env, "WB_INSTANCE=%d", instance);
    assert_int_equal(wb_undo_save(f->run, instance, r, env.v, NULL), 0);
    wb_strv_release(&env);
    wb_recipe_free(r);
}

static void on_failed(void *arg, const char *what, const struct wb_err *err)
{
    wb_strv_addf(arg, "%s: %d", what, err->code);
}

static void is_log(const struct fixture *f, const char *wanted)
{
    WB_AUTO_FREE char *text = NULL;

    assert_int_equal(wb_file_read(f->log, 1u << 16, &text, NULL, NULL), 0);
    assert_string_equal(text, wanted);
}

/* All are tried, in order, for every instance, whatever fails; again, too. */
static void test_all_are_tried(void **state)
{
    struct fixture *f = *state;

    step(f, "clean", "echo clean $WB_INSTANCE >>$LOG; exit 1");
    step(f, "unmount", "echo unmount $WB_INSTANCE >>$LOG; echo '{}'");
    step(f, "wipe", "echo wipe $WB_INSTANCE >>$LOG; echo '{}'");
    save(f, 0);
    save(f, 1);
    wb_undo_steps(f->run, on_failed, &f->failed);
    is_log(f, "clean 0\nunmount 0\nwipe 0\nclean 1\nunmount 1\nwipe 1\n");
    assert_int_equal(f->failed.n, 2);
    assert_string_equal(f->failed.v[0], "step clean of instance 0: 4");
    wb_undo_steps(f->run, on_failed, &f->failed);
    assert_int_equal(f->failed.n, 4);
}

/* Steps that the recipe had not when the run began are not run. */
static void test_only_what_was_there(void **state)
{
    struct fixture *f = *state;

    step(f, "wipe", "echo wipe >>$LOG; echo '{}'");
    save(f, 0);
    step(f, "clean", "echo clean >>$LOG; echo '{}'");
    wb_undo_steps(f->run, on_failed, &f->failed);
    is_log(f, "wipe\n");
    assert_int_equal(f->failed.n, 0);
}

static void test_recipe_gone(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *torn = wb_strf("%s/1.undo.json", f->run);

    step(f, "unmount", "echo '{}'");
    save(f, 0);
    assert_int_equal(wb_file_put(torn, "{\"inst", 6, NULL), 0); /* killed while it was written */
    assert_int_equal(wb_remove_tree(f->recipe, NULL), 0);
    wb_undo_steps(f->run, on_failed, &f->failed);
    assert_int_equal(f->failed.n, 1);
    assert_string_equal(f->failed.v[0], "step unmount of instance 0: 2");
    wb_undo_steps("/nowhere", on_failed, &f->failed);
    assert_int_equal(f->failed.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_are_tried, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_what_was_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recipe_gone, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
