#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

#define LEVELS_MAX 32
#define QUOTA_MAX 1024.0
/* More than one needs keys that are divided between instances: topology sharded. */
#define INSTANCES_MAX 1

static const char *const later[] = {"version",     "nodes",   "hosts",       "connections", "load",
                                    "consistency", "network", "replication", "payload",     "keys",
                                    "cpus",        "memory",  "data",        "rows",        NULL};

static char *form_level(const struct wb_node *n, const char *text, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_form_ref ref = {0};

    if (wb_form_parse(text, &ref, &err) < 0) {
        wb_problem(p, n, "unknown-value", "%s", err.root);
        return NULL;
    }
    if (ref.count > INSTANCES_MAX) {
        wb_problem(p, n, "unsupported",
                   "form '%s' has several instances, which needs topology sharded; that is not "
                   "supported yet; allowed now: %s x1",
                   text, ref.ops->name);
        return NULL;
    }
    return wb_strf("%s x%d", ref.ops->name, ref.count);
}

static char *quota_level(const struct wb_node *n, const char *text, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    double v = 0;

    if (strcmp(text, "none") == 0)
        return wb_strdup("none");
    if (wb_parse_real(text, 0.01, QUOTA_MAX, &v, &err) < 0) {
        wb_problem(p, n, "bad-value", "cpu_quota is none or a number of cores: %s", err.root);
        return NULL;
    }
    return wb_number_text(v);
}

static char *setting_level(const struct wb_param *param, const struct wb_node *n, const char *text,
                           struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    char *canonical = NULL;

    if (wb_param_check(param, text, &canonical, &err) < 0)
        wb_problem(p, n, "bad-value", "%s%s%s", err.context, *err.context ? ": " : "", err.root);
    return canonical;
}

static void add_level(struct wb_factor *f, const struct wb_param *param, const struct wb_node *n,
                      struct wb_problems *p)
{
    WB_AUTO_FREE char *level = NULL;
    WB_AUTO_FREE char *shown = NULL;

    if (n->kind != WB_NODE_TEXT && n->kind != WB_NODE_NUMBER && n->kind != WB_NODE_BOOL) {
        wb_problem(p, n, "wrong-type", "a value of %s must be text or a number", f->name);
        return;
    }
    if (param)
        level = setting_level(param, n, n->text, p);
    else if (strcmp(f->name, "form") == 0)
        level = form_level(n, n->text, p);
    else
        level = quota_level(n, n->text, p);
    if (!level)
        return;
    shown = param ? wb_param_show(param, level) : wb_strdup(level);
    for (size_t i = 0; i < f->values.n; i++) {
        if (strcmp(f->values.v[i], shown) != 0)
            continue;
        wb_problem(p, n, "duplicate",
                   "%s has the value '%.100s' twice; for identical arms use copies: 2", f->name,
                   shown);
        return;
    }
    wb_strv_add(&f->canonical, level);
    wb_strv_add(&f->values, shown);
}

/* The recipe's parameter behind "setting.NAME"; NULL with a problem when there is none. */
static const struct wb_param *param_of(const struct wb_study *s, const struct wb_node *n,
                                       struct wb_problems *p)
{
    const char *name = n->key + strlen("setting.");
    const struct wb_param *param = wb_recipe_find_param(s->recipe, name);
    const char **names;

    if (param)
        return param;
    names = wb_calloc(s->recipe->nparams + 1, sizeof *names);
    for (size_t i = 0; i < s->recipe->nparams; i++)
        names[i] = s->recipe->params[i].name;
    WB_AUTO_FREE char *guess = wb_did_you_mean(name, names);
    WB_AUTO_FREE char *list = wb_word_list(names);

    wb_problem(p, n, "unknown-key", "recipe %s has no setting '%.100s'%s; settings: %s",
               s->recipe->name, name, guess, list);
    free(names);
    return NULL;
}

static void add_factor(struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    static const char *const now[] = {"form", "cpu_quota", "setting.NAME", NULL};
    bool setting = strncmp(n->key, "setting.", 8) == 0;
    const struct wb_param *param = NULL;
    struct wb_factor *f;

    if (!setting && wb_word_now(n, "factor", n->key, now, later, p) < 0)
        return;
    if (setting && !s->recipe)
        return; /* the recipe's own problem is reported */
    if (setting && !(param = param_of(s, n, p)))
        return;
    if (n->kind == WB_NODE_MAP || (n->kind == WB_NODE_LIST && n->n == 0)) {
        wb_problem(p, n, "wrong-type", "%.100s must be a list of values", n->key);
        return;
    }
    if (n->n > LEVELS_MAX) {
        wb_problem(p, n, "too-large", "%.100s has %zu values; at most %d are allowed", n->key, n->n,
                   LEVELS_MAX);
        return;
    }
    f = &s->factors[s->nfactors++];
    f->name = wb_strdup(n->key);
    if (n->kind != WB_NODE_LIST)
        add_level(f, param, n, p);
    for (size_t i = 0; i < n->n; i++)
        add_level(f, param, n->items[i], p);
}

void wb_study_factors(struct wb_study *s, const struct wb_node *factors, struct wb_problems *p)
{
    size_t n = factors ? factors->n : 0;

    if (factors && factors->kind != WB_NODE_MAP) {
        wb_problem(p, factors, "wrong-type", "factors must be a map of names and lists of values");
        n = 0;
    }
    s->factors = wb_calloc(n + 1, sizeof *s->factors);
    if (n == 0 || !wb_node_get(factors, "form")) {
        struct wb_factor *f = &s->factors[s->nfactors++];

        f->name = wb_strdup("form");
        wb_strv_add(&f->values, "native x1");
        wb_strv_add(&f->canonical, "native x1");
    }
    for (size_t i = 0; i < n; i++)
        add_factor(s, factors->items[i], p);
}
