/* A recipe in a temporary folder, with steps given as shell text. */
#ifndef WB_TESTS_RECIPE_FIXTURE_H
#define WB_TESTS_RECIPE_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/study/recipe.h"

struct fixture {
    char dir[64]; /* holds recipe/ and state/ */
    char *state;
    struct wb_recipe r;
    struct wb_recipe_version v;
};

static inline void fixture_step(struct fixture *f, enum wb_step step, const char *script)
{
    char *path = wb_strf("%s/steps/%s", f->r.dir, wb_step_name(step));
    char *text = wb_strf("#!/bin/sh\n%s\n", script);

    if (wb_file_put(path, text, strlen(text), NULL) < 0 || chmod(path, 0755) < 0)
        abort();
    f->r.has_step[step] = true;
    free(path);
    free(text);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = wb_calloc(1, sizeof(*f));
    char *steps;
    int rc;

    memcpy(f->dir, "/tmp/wb-test-recipe-XXXXXX", sizeof("/tmp/wb-test-recipe-XXXXXX"));
    if (!mkdtemp(f->dir))
        return -1;
    f->state = wb_strf("%s/state", f->dir);
    f->r.dir = wb_strf("%s/recipe", f->dir);
    f->r.name = wb_strdup("tiny");
    f->v.version = wb_strdup("1.0");
    f->v.source = wb_strdup("here");
    wb_strv_add(&f->v.packages, "one");
    wb_strv_add(&f->v.packages, "two");
    memset(f->r.digest, 'a', 64);
    for (int i = 0; i < WB_STEP_COUNT; i++)
        f->r.step_limit_ns[i] = 20 * WB_SEC;
    steps = wb_strf("%s/steps", f->r.dir);
    rc = wb_mkdir_all(steps, 0755, NULL);
    free(steps);
    *state = f;
    return rc;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    int rc = wb_remove_tree(f->dir, NULL);

    free(f->state);
    free(f->r.dir);
    free(f->r.name);
    free(f->v.version);
    free(f->v.source);
    free(f->v.digest);
    wb_strv_release(&f->v.packages);
    free(f);
    return rc;
}

#endif
