#include "server/engine/undo.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/engine/steps.h"

#define SUFFIX ".undo.json"
#define FILE_MAX (1u << 20)

static const enum wb_step last_steps[] = {WB_STEP_CLEAN, WB_STEP_UNMOUNT, WB_STEP_WIPE};

int wb_undo_save(const char *run_dir, int instance, const struct wb_recipe *recipe,
                 char *const *env, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%d" SUFFIX, run_dir, instance);
    WB_AUTO_JSON wb_json *j = wb_json_object();
    wb_json *vars = wb_json_array(), *steps = wb_json_array();
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    int rc;

    for (char *const *e = env; *e; e++)
        wb_json_push(vars, wb_json_str(*e));
    for (size_t i = 0; i < WB_LEN(last_steps); i++)
        if (recipe->has_step[last_steps[i]])
            wb_json_push(steps, wb_json_str(wb_step_name(last_steps[i])));
    wb_json_set_int(j, "instance", instance);
    wb_json_set_str(j, "recipe_dir", recipe->dir);
    wb_json_set(j, "steps", steps);
    wb_json_set(j, "env", vars);
    wb_json_pretty(j, &b);
    rc = wb_buf_check(&b, path, err);
    if (rc == 0)
        rc = wb_file_put(path, wb_buf_str(&b), b.len, err);
    wb_buf_release(&b);
    return rc;
}

static bool names(const wb_json *steps, const char *name)
{
    for (size_t i = 0; i < wb_json_len(steps); i++)
        if (!strcmp(wb_json_string(wb_json_at(steps, i)), name))
            return true;
    return false;
}

static struct wb_recipe *recipe_at(const char *dir, struct wb_err *err)
{
    struct wb_problems p = {0};
    struct wb_recipe *r = wb_recipe_read(dir, &p);

    if (!r)
        (void)wb_fail(err, WB_NOT_FOUND, "the recipe in %s cannot be read any more: %s", dir,
                      p.n ? p.v[0].message : "it is not there");
    wb_problems_release(&p);
    return r;
}

static void undo_one(const wb_json *j, wb_undo_fn fn, void *arg)
{
    const wb_json *steps = wb_json_get(j, "steps"), *vars = wb_json_get(j, "env");
    struct wb_strv env = {0};
    struct wb_err gone = WB_ERR_INIT;
    struct wb_recipe *recipe = NULL;

    if (wb_json_len(steps) == 0)
        return;
    recipe = recipe_at(wb_json_str_or(j, "recipe_dir", ""), &gone);
    for (size_t i = 0; i < wb_json_len(vars); i++)
        wb_strv_add(&env, wb_json_string(wb_json_at(vars, i)));
    for (size_t i = 0; i < WB_LEN(last_steps); i++) {
        const char *name = wb_step_name(last_steps[i]);
        WB_AUTO_FREE char *what =
            wb_strf("step %s of instance %lld", name, (long long)wb_json_int_or(j, "instance", 0));
        struct wb_err err = WB_ERR_INIT;
        WB_AUTO_JSON wb_json *said = NULL;

        if (!names(steps, name))
            continue;
        if (!recipe)
            fn(arg, what, &gone);
        else if (wb_step_run(recipe, last_steps[i], env.v, NULL, NULL, &said, &err) < 0)
            fn(arg, what, &err);
    }
    wb_strv_release(&env);
    wb_recipe_free(recipe);
}

void wb_undo_steps(const char *run_dir, wb_undo_fn fn, void *arg)
{
    struct wb_strv names_in = {0};

    if (wb_list_dir(run_dir, &names_in, NULL) < 0)
        return;
    for (size_t i = 0; i < names_in.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", run_dir, names_in.v[i]);
        WB_AUTO_JSON wb_json *j = NULL;
        size_t n = strlen(names_in.v[i]), suffix = strlen(SUFFIX);

        /* One that was not written to its end: its instance had not begun. */
        if (n > suffix && !strcmp(names_in.v[i] + n - suffix, SUFFIX) &&
            wb_json_read_file(path, FILE_MAX, &j, NULL) == 0)
            undo_one(j, fn, arg);
    }
    wb_strv_release(&names_in);
}
