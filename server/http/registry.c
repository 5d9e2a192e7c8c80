/* Which figures there are: those of every phase, and those that recipes ask their databases for. */
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/http/service.h"
#include "server/study/study.h"

/* What the kinds of the study's language mean. */
static const struct {
    const char *kind, *unit, *text;
} meanings[] = {
    {"throughput", "ops/s", "Successful operations a second in the measured window"},
    {"p50_ms", "ms", "Half of the operations took at most so long"},
    {"p99_ms", "ms", "99 % of the operations took at most so long"},
    {"p99_9_ms", "ms", "99.9 % of the operations took at most so long"},
    {"client_cpu_ms", "ms", "CPU time of the load program for each operation"},
    {"sustained", "ops/s", "The highest rate of a search that holds its limit"},
};

static wb_json *entry(const char *name, const char *unit, const char *kind, const char *source)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", name);
    wb_json_set_str(o, "unit", unit);
    wb_json_set_str(o, "kind", kind);
    wb_json_set_str(o, "source", source);
    return o;
}

static void add_built_in(wb_json *items)
{
    for (const char *const *k = wb_metric_kinds; *k; k++) {
        WB_AUTO_FREE char *name = wb_strf("<phase>.%s", *k);
        const char *unit = "", *text = NULL;
        wb_json *o;

        for (size_t i = 0; i < WB_LEN(meanings); i++)
            if (!strcmp(meanings[i].kind, *k)) {
                unit = meanings[i].unit;
                text = meanings[i].text;
            }
        o = entry(name, unit, "figure", "built-in");
        wb_json_set_str(o, "better", wb_metric_higher_is_better(name) ? "higher" : "lower");
        wb_json_set_str(o, "definition", text);
        wb_json_push(items, o);
    }
}

static void add_recipe(wb_json *items, const struct wb_recipe *r)
{
    WB_AUTO_FREE char *source = wb_strf("recipe %s", r->name);

    for (size_t i = 0; i < r->nmetrics; i++) {
        const struct wb_recipe_metric *m = &r->metrics[i];
        wb_json *o = entry(m->name, m->unit, m->counter ? "counter" : "gauge", source);

        /* A recipe says nothing of a direction, so no verdict is made of it. */
        wb_json_set(o, "better", wb_json_null());
        wb_json_set(o, "definition", wb_json_null());
        wb_json_push(items, o);
    }
}

static void get_registry(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = wb_json_array();

    if (wb_list_dir(c->service->recipes_dir, &names, &err) < 0) {
        wb_json_free(items);
        wb_answer_error(q, a, &err);
        return;
    }
    add_built_in(items);
    for (size_t i = 0; i < names.n; i++) {
        struct wb_recipe *r = wb_recipe_offered(c->service, names.v[i]);

        if (r)
            add_recipe(items, r);
        wb_recipe_free(r);
    }
    wb_strv_release(&names);
    wb_answer_list(q, a, items, NULL);
}

static const char *const directions[] = {"higher", "lower", NULL};
static const char *const kinds[] = {"figure", "counter", "gauge", NULL};
static const struct wb_shape metric_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"unit", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"kind", WB_S_WORD, WB_S_NEED, .words = kinds},
    {"source", WB_S_TEXT, WB_S_NEED, .help = "built-in, or which recipe"},
    {"better", WB_S_WORD, WB_S_NEED | WB_S_NULL, .words = directions,
     .help = "null: not known, so there are no verdicts"},
    {"definition", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {0},
};
static const struct wb_form metric_form = {.name = "Metric", .rows = metric_rows};

const struct wb_route wb_routes_registry[] = {
    {"GET", "/api/v1/metrics-registry", WB_SCOPE_READ, WB_ROUTE_LIST, get_registry, "listMetrics",
     "Figures with their unit, direction and meaning", .answer = &metric_form, .status = 200},
    {0},
};
