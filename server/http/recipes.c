/* The recipes that a study sent to this server may name: those of its recipes folder. */
#include <stdlib.h>

#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/http/service.h"
#include "server/study/recipe.h"

static wb_json *texts(const struct wb_strv *list)
{
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < list->n; i++)
        wb_json_push(out, wb_json_str(list->v[i]));
    return out;
}

static wb_json *params_json(const struct wb_recipe *r)
{
    static const char *const types[] = {[WB_PARAM_TEXT] = "text",
                                        [WB_PARAM_WORD] = "word",
                                        [WB_PARAM_INT] = "int",
                                        [WB_PARAM_BYTES] = "bytes",
                                        [WB_PARAM_BOOL] = "bool"};
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < r->nparams; i++) {
        const struct wb_param *p = &r->params[i];
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "name", p->name);
        wb_json_set_str(o, "type", types[p->type]);
        wb_json_set_str(o, "default", p->dflt);
        if (p->type == WB_PARAM_INT || p->type == WB_PARAM_BYTES) {
            wb_json_set_int(o, "min", p->min);
            wb_json_set_int(o, "max", p->max);
        }
        if (p->type == WB_PARAM_WORD)
            wb_json_set(o, "words", texts(&p->words));
        wb_json_set_str(o, "help", p->help);
        wb_json_push(out, o);
    }
    return out;
}

static wb_json *recipe_json(const struct wb_recipe *r, bool whole)
{
    wb_json *o = wb_json_object(), *versions = wb_json_array(), *metrics = wb_json_array();

    wb_json_set_str(o, "name", r->name);
    wb_json_set_str(o, "revision", r->revision);
    wb_json_set_str(o, "summary", r->summary);
    wb_json_set_str(o, "digest", r->digest);
    for (size_t i = 0; i < r->nversions; i++)
        wb_json_push(versions, wb_json_str(r->versions[i].version));
    wb_json_set(o, "versions", versions);
    for (size_t i = 0; whole && i < r->nmetrics; i++) {
        wb_json *m = wb_json_object();

        wb_json_set_str(m, "name", r->metrics[i].name);
        wb_json_set_str(m, "unit", r->metrics[i].unit);
        wb_json_set_str(m, "kind", r->metrics[i].counter ? "counter" : "gauge");
        wb_json_push(metrics, m);
    }
    if (!whole) {
        wb_json_free(metrics);
        return o;
    }
    wb_json_set_str(o, "protocol", r->protocol);
    wb_json_set(o, "topologies", texts(&r->topologies));
    wb_json_set(o, "parameters", params_json(r));
    wb_json_set(o, "metrics", metrics);
    return o;
}

/* NULL when there is none of that name, or none that can be read. */
static struct wb_recipe *read_recipe(const struct wb_service *s, const char *name)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", s->recipes_dir, name);
    WB_AUTO_FREE char *file = wb_strf("%s/recipe.yaml", dir);
    struct wb_problems p = {.file = file};
    struct wb_recipe *r = wb_is_name(name) && wb_path_exists(file) ? wb_recipe_read(dir, &p) : NULL;

    wb_problems_release(&p);
    return r;
}

void wb_h_recipes(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = wb_json_array();

    if (wb_list_dir(c->service->recipes_dir, &names, &err) < 0) {
        wb_json_free(items);
        wb_answer_error(q, a, &err);
        return;
    }
    for (size_t i = 0; i < names.n; i++) {
        struct wb_recipe *r = read_recipe(c->service, names.v[i]);

        if (r)
            wb_json_push(items, recipe_json(r, false));
        wb_recipe_free(r);
    }
    wb_strv_release(&names);
    wb_answer_list(q, a, items, NULL);
}

void wb_h_recipe(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_recipe *r = read_recipe(c->service, q->args[0]);

    if (!r)
        wb_answer_problem(q, a, 404, "not-found", "there is no such recipe: GET /api/v1/recipes",
                          NULL);
    else
        wb_answer_json(q, a, 200, recipe_json(r, true));
    wb_recipe_free(r);
}
