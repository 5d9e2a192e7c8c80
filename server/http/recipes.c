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

struct wb_recipe *wb_recipe_offered(const struct wb_service *s, const char *name)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", s->recipes_dir, name);
    WB_AUTO_FREE char *file = wb_strf("%s/recipe.yaml", dir);
    struct wb_problems p = {.file = file};
    struct wb_recipe *r = wb_is_name(name) && wb_path_exists(file) ? wb_recipe_read(dir, &p) : NULL;

    wb_problems_release(&p);
    return r;
}

static void list_recipes(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
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
        struct wb_recipe *r = wb_recipe_offered(c->service, names.v[i]);

        if (r)
            wb_json_push(items, recipe_json(r, false));
        wb_recipe_free(r);
    }
    wb_strv_release(&names);
    wb_answer_list(q, a, items, NULL);
}

static void get_recipe(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_recipe *r = wb_recipe_offered(c->service, q->args[0]);

    if (!r)
        wb_answer_problem(q, a, 404, "not-found", "there is no such recipe: GET /api/v1/recipes",
                          NULL);
    else
        wb_answer_json(q, a, 200, recipe_json(r, true));
    wb_recipe_free(r);
}

static const struct wb_shape row_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"revision", WB_S_TEXT, .flags = WB_S_NEED},
    {"summary", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"digest", WB_S_TEXT, WB_S_NEED, .help = "SHA-256 over the files of the recipe"},
    {"versions", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_form row = {.name = "RecipeRow", .rows = row_rows};

static const char *const param_types[] = {"text", "word", "int", "bytes", "bool", NULL};
static const struct wb_shape param_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"type", WB_S_WORD, WB_S_NEED, .words = param_types},
    {"default", WB_S_TEXT, WB_S_NEED | WB_S_NULL, .help = "Canonical: bytes as a number"},
    {"min", WB_S_INT, .help = "Of int and bytes"},
    {"max", .type = WB_S_INT},
    {"words", WB_S_TEXT, WB_S_LIST, .help = "Of word: the values that it takes"},
    {"help", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {0},
};
static const struct wb_form param = {.name = "RecipeParameter", .rows = param_rows};
static const char *const metric_kinds[] = {"counter", "gauge", NULL};
static const struct wb_shape metric_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"unit", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"kind", WB_S_WORD, WB_S_NEED, .words = metric_kinds},
    {0},
};
static const struct wb_form metric = {.name = "RecipeMetric", .rows = metric_rows};
static const struct wb_shape recipe_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"revision", WB_S_TEXT, .flags = WB_S_NEED},
    {"summary", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"digest", WB_S_TEXT, .flags = WB_S_NEED},
    {"versions", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {"protocol", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"topologies", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {"parameters", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &param},
    {"metrics", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &metric},
    {0},
};
static const struct wb_form recipe = {.name = "Recipe", .rows = recipe_rows};

const struct wb_route wb_routes_recipes[] = {
    {"GET", "/api/v1/recipes", WB_SCOPE_READ, WB_ROUTE_LIST, list_recipes, "listRecipes",
     "Recipes that a study may name", .answer = &row, .status = 200},
    {"GET", "/api/v1/recipes/{recipe}", WB_SCOPE_READ, 0, get_recipe, "getRecipe",
     "Versions, parameters and metrics of a recipe", .answer = &recipe, .status = 200},
    {0},
};
