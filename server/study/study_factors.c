#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

#define LEVELS_MAX 32
#define FACTORS_MAX 32 /* with bounded names and values: a label has its bound, too */
#define NAME_MAX_BYTES 200
#define QUOTA_MIN 0.01
#define QUOTA_MAX 1024.0

/* Factors with a name of their own. A path is where their value goes in the study; a member goes
 * into every measured phase; form, cpu_quota and settings go nowhere, arms carry them. */
static const struct wb_factor_name names[] = {
    {"form", NULL, NULL},
    {"cpu_quota", NULL, NULL},
    {"setting.NAME", NULL, NULL},
    {"topology", "topology", NULL},
    {"share", "share", NULL},
    {"limits", "limits", NULL},
    {"network", "network", NULL},
    {"cpus", "cpus", NULL},
    {"cpus_per_instance", "cpus_per_instance", NULL},
    {"memory", "memory", NULL},
    {"rows", "workload.data.rows", NULL},
    {"data", "workload.data.size", NULL},
    {"consistency", "consistency", NULL},
    {"routing", "routing", NULL},
    {"payload", "workload.data.value.size", NULL},
    {"connections", NULL, "connections"},
    {"depth", NULL, "depth"},
    {"threads", NULL, "threads"},
    {"keys", NULL, "keys"},
    {"tool", NULL, "tool"},
};

static const char *const later[] = {"version",     "nodes",    "hosts", "load",
                                    "replication", "location", NULL};

const struct wb_factor_name *wb_factor_name_find(const char *name)
{
    for (size_t i = 0; i < WB_LEN(names); i++) {
        if (strcmp(names[i].name, name) == 0)
            return &names[i];
    }
    return NULL;
}

static bool is_setting(const char *name)
{
    return strncmp(name, "setting.", 8) == 0;
}

/* Paths of the study that are no names: below workload, but for what all arms have in common. */
static bool is_path(const char *name)
{
    const char *last = strrchr(name, '.');

    return strncmp(name, "workload.", 9) == 0 && strcmp(last, ".name") != 0 &&
           strcmp(last, ".op") != 0 && strcmp(last, ".order") != 0;
}

bool wb_factor_known(const char *name)
{
    return is_setting(name) || is_path(name) || wb_factor_name_find(name);
}

/* ---- values ---- */

static char *form_level(const struct wb_node *n, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_form_ref ref = {0};

    if (wb_form_parse(n->text, &ref, &err) < 0) {
        wb_problem(p, n, "unknown-value", "%s", err.root);
        return NULL;
    }
    return wb_strf("%s x%d", ref.ops->name, ref.count);
}

static char *quota_level(const struct wb_node *n, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    double v = 0;

    if (strcmp(n->text, "none") == 0)
        return wb_strdup("none");
    if (wb_parse_real(n->text, QUOTA_MIN, QUOTA_MAX, &v, &err) < 0) {
        wb_problem(p, n, "bad-value", "cpu_quota is none or a number of cores: %s", err.root);
        return NULL;
    }
    return wb_number_text(v);
}

static char *setting_level(const struct wb_param *param, const struct wb_node *n,
                           struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    char *canonical = NULL;

    if (wb_param_check(param, n->text, &canonical, &err) < 0)
        wb_problem(p, n, "bad-value", "%s%s%s", err.context, *err.context ? ": " : "", err.root);
    return canonical;
}

/* A map as a value ({get: 80%, set: 20%}) as people see it: "get 80% set 20%". */
static char *shown_text(const struct wb_node *n)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    for (size_t i = 0; i < n->n; i++)
        wb_buf_addf(&b, "%s%s %s", i ? " " : "", n->items[i]->key, n->items[i]->text);
    return wb_buf_take(&b);
}

static bool is_scalar(const struct wb_node *n)
{
    return n->kind == WB_NODE_TEXT || n->kind == WB_NODE_NUMBER || n->kind == WB_NODE_BOOL;
}

static bool is_flat_map(const struct wb_node *n)
{
    for (size_t i = 0; i < n->n; i++) {
        if (n->kind != WB_NODE_MAP || !is_scalar(n->items[i]) || strlen(n->items[i]->key) > 64 ||
            strlen(n->items[i]->text) > 64)
            return false;
    }
    return n->kind == WB_NODE_MAP && n->n > 0 && n->n <= 8;
}

static void add_level(struct wb_factor *f, const struct wb_param *param, const struct wb_node *n,
                      struct wb_problems *p)
{
    WB_AUTO_FREE char *level = NULL;
    WB_AUTO_FREE char *shown = NULL;
    bool own = strcmp(f->name, "form") == 0 || strcmp(f->name, "cpu_quota") == 0 || param;

    if (!is_scalar(n) && (own || !is_flat_map(n))) {
        wb_problem(p, n, "wrong-type", "a value of %s must be text or a number", f->name);
        return;
    }
    if (param)
        level = setting_level(param, n, p);
    else if (strcmp(f->name, "form") == 0)
        level = form_level(n, p);
    else if (strcmp(f->name, "cpu_quota") == 0)
        level = quota_level(n, p);
    else /* checked where its path leads */
        level = is_scalar(n) ? wb_strdup(n->text) : shown_text(n);
    if (!level)
        return;
    if (strlen(level) > 1024 || strchr(level, '\n')) {
        wb_problem(p, n, "bad-value", "a value of %s is a line of at most 1024 bytes", f->name);
        return;
    }
    shown = param ? wb_param_show(param, level) : wb_strdup(level);
    for (size_t i = 0; i < f->values.n; i++) {
        if (strcmp(f->values.v[i], shown) != 0)
            continue;
        wb_problem(p, n, "duplicate",
                   "%s has the value '%.100s' twice; for identical arms use copies: 2", f->name,
                   shown);
        return;
    }
    f->nodes = wb_realloc(f->nodes, f->values.n + 1, sizeof(const struct wb_node *));
    f->nodes[f->values.n] = n;
    wb_strv_add(&f->canonical, level);
    wb_strv_add(&f->values, shown);
}

/* ---- factors ---- */

/* The recipe's parameter behind "setting.NAME"; NULL with a problem when there is none. */
static const struct wb_param *param_of(const struct wb_study *s, const struct wb_node *n,
                                       struct wb_problems *p)
{
    const char *name = n->key + strlen("setting.");
    const struct wb_param *param = wb_recipe_find_param(s->recipe, name);
    const char **all;

    if (param)
        return param;
    all = wb_calloc(s->recipe->nparams + 1, sizeof *all);
    for (size_t i = 0; i < s->recipe->nparams; i++)
        all[i] = s->recipe->params[i].name;
    WB_AUTO_FREE char *guess = wb_did_you_mean(name, all);
    WB_AUTO_FREE char *list = wb_word_list(all);

    wb_problem(p, n, "unknown-key", "recipe %s has no setting '%.100s'%s; settings: %s",
               s->recipe->name, name, guess, list);
    free(all);
    return NULL;
}

static bool known_name(const struct wb_node *n, struct wb_problems *p)
{
    const char *words[WB_LEN(names) + 2] = {NULL};

    if (wb_factor_known(n->key))
        return true;
    if (wb_study_key(n->key) || strncmp(n->key, "workload", 8) == 0) {
        wb_problem(p, n, "unsupported",
                   "%.100s is the same in all arms of a study and cannot be a factor", n->key);
        return false;
    }
    for (size_t i = 0; i < WB_LEN(names); i++)
        words[i] = names[i].name;
    words[WB_LEN(names)] = "a path such as workload.phases.max.depth";
    return wb_word_now(n, "factor", n->key, words, later, p) >= 0;
}

static bool listed(const struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        if (strcmp(s->factors[i].name, n->key) != 0)
            continue;
        wb_problem(p, n, "duplicate", "the factor %.100s is there twice", n->key);
        return true;
    }
    return false;
}

static void add_factor(struct wb_study *s, const struct wb_node *n, size_t walk,
                       struct wb_problems *p)
{
    const struct wb_param *param = NULL;
    struct wb_factor *f;

    if (!known_name(n, p) || listed(s, n, p))
        return;
    if (is_setting(n->key) && !s->recipe)
        return; /* the recipe's own problem is reported */
    if (is_setting(n->key) && !(param = param_of(s, n, p)))
        return;
    if (n->kind == WB_NODE_NULL || (n->kind == WB_NODE_LIST && n->n == 0) ||
        (n->kind == WB_NODE_MAP && !is_path(n->key))) {
        wb_problem(p, n, "wrong-type", "%.100s must be a list of values", n->key);
        return;
    }
    if (n->kind == WB_NODE_LIST && n->n > LEVELS_MAX) {
        wb_problem(p, n, "too-large", "%.100s has %zu values; at most %d are allowed", n->key, n->n,
                   LEVELS_MAX);
        return;
    }
    if (strlen(n->key) > NAME_MAX_BYTES || s->nfactors >= FACTORS_MAX) {
        wb_problem(p, n, "too-large", "a study has at most %d factors, with names of at most %d B",
                   FACTORS_MAX, NAME_MAX_BYTES);
        return;
    }
    f = &s->factors[s->nfactors++];
    *f = (struct wb_factor){.name = wb_strdup(n->key), .walk = walk};
    if (n->kind != WB_NODE_LIST)
        add_level(f, param, n, p);
    for (size_t i = 0; n->kind == WB_NODE_LIST && i < n->n; i++)
        add_level(f, param, n->items[i], p);
}

/* zip: a list of maps; the factors of a map are walked together, first with first. */
static void add_zip(struct wb_study *s, const struct wb_node *zip, size_t *walk,
                    struct wb_problems *p)
{
    if (zip->kind != WB_NODE_LIST || zip->n == 0) {
        wb_problem(p, zip, "wrong-type",
                   "zip must be a list of maps such as [{connections: [32, 256], depth: [16, 2]}]");
        return;
    }
    for (size_t i = 0; i < zip->n; i++) {
        const struct wb_node *group = zip->items[i];
        size_t from = s->nfactors, before = p->n + p->dropped;

        if (group->kind != WB_NODE_MAP || group->n < 2) {
            wb_problem(p, group, "wrong-type", "a map of zip needs two or more factors");
            continue;
        }
        for (size_t k = 0; k < group->n; k++)
            add_factor(s, group->items[k], *walk, p);
        ++*walk;
        for (size_t k = from + 1; p->n + p->dropped == before && k < s->nfactors; k++) {
            if (s->factors[k].values.n != s->factors[from].values.n)
                wb_problem(p, group, "contradiction",
                           "zip walks %s and %s together: they need equally many values, not %zu "
                           "and %zu",
                           s->factors[from].name, s->factors[k].name, s->factors[from].values.n,
                           s->factors[k].values.n);
        }
    }
}

static size_t count_names(const struct wb_node *factors)
{
    size_t n = factors->n + 1;
    const struct wb_node *zip = wb_node_get(factors, "zip");

    for (size_t i = 0; zip && i < zip->n; i++)
        n += zip->items[i]->n;
    return n;
}

/* Without a form, in a factor or in a zip, there is one: native x1. */
static void add_default_form(struct wb_study *s)
{
    struct wb_factor *f;

    for (size_t i = 0; i < s->nfactors; i++) {
        if (strcmp(s->factors[i].name, "form") == 0)
            return;
    }
    memmove(s->factors + 1, s->factors, s->nfactors * sizeof *s->factors);
    s->nfactors++;
    for (size_t i = 1; i < s->nfactors; i++)
        s->factors[i].walk++;
    f = &s->factors[0];
    *f = (struct wb_factor){.name = wb_strdup("form")};
    f->nodes = wb_calloc(1, sizeof(const struct wb_node *));
    wb_strv_add(&f->values, "native x1");
    wb_strv_add(&f->canonical, "native x1");
}

void wb_study_factors(struct wb_study *s, const struct wb_node *factors, struct wb_problems *p)
{
    size_t walk = 0, before = p->n + p->dropped;

    if (factors && factors->kind != WB_NODE_MAP) {
        wb_problem(p, factors, "wrong-type", "factors must be a map of names and lists of values");
        factors = NULL;
    }
    s->factors = wb_calloc((factors ? count_names(factors) : 0) + 1, sizeof *s->factors);
    for (size_t i = 0; factors && i < factors->n; i++) {
        const struct wb_node *n = factors->items[i];

        if (strcmp(n->key, "zip") == 0)
            add_zip(s, n, &walk, p);
        else
            add_factor(s, n, walk++, p);
    }
    if (p->n + p->dropped == before)
        add_default_form(s);
}

void wb_factors_forget_nodes(struct wb_study *s)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        free(s->factors[i].nodes);
        s->factors[i].nodes = NULL;
    }
}

/* ---- as a schema ---- */

/* One value or a list of them. */
static wb_json *values_schema(wb_json *value)
{
    return wb_schema_either(value, wb_schema_list(wb_json_ref(value), 1, LEVELS_MAX));
}

static wb_json *form_schema(void)
{
    struct wb_buf b = WB_BUF_INIT(1024);
    wb_json *schema;

    for (size_t i = 0; wb_forms[i]; i++)
        wb_buf_addf(&b, "%s%s", i ? "|" : "^(", wb_forms[i]->name);
    wb_buf_adds(&b, ") x[0-9]+$");
    schema = wb_schema_pattern(wb_buf_str(&b));
    wb_buf_release(&b);
    return values_schema(schema);
}

static wb_json *level_schema(const char *name)
{
    static const char *const none[] = {"none", NULL};

    if (strcmp(name, "form") == 0)
        return form_schema();
    if (strcmp(name, "cpu_quota") == 0)
        return values_schema(wb_schema_either(wb_schema_words(none),
                                              wb_schema_unit(WB_UNIT_REAL, QUOTA_MIN, QUOTA_MAX)));
    return values_schema(
        wb_schema_either(wb_schema_scalar(), wb_schema_any_key(wb_schema_scalar())));
}

wb_json *wb_factors_schema(void)
{
    wb_json *map = wb_json_object(), *rows = wb_json_object(), *patterns = wb_json_object();
    wb_json *zip = wb_json_object(), *group = wb_json_object();

    for (size_t i = 0; i < WB_LEN(names); i++)
        if (!is_setting(names[i].name))
            wb_json_set(rows, names[i].name, level_schema(names[i].name));
    wb_json_set(patterns, "^setting[.].", values_schema(wb_schema_scalar()));
    wb_json_set(patterns, "^workload[.].", level_schema(""));
    wb_json_set_str(group, "type", "object");
    wb_json_set(group, "properties", wb_json_copy(rows));
    wb_json_set(group, "patternProperties", wb_json_copy(patterns));
    wb_json_set_bool(group, "additionalProperties", false);
    wb_json_set_int(group, "minProperties", 2);
    wb_json_set_str(zip, "type", "array");
    wb_json_set(zip, "items", group);
    wb_json_set_int(zip, "minItems", 1);
    wb_json_set(rows, "zip", zip);
    wb_json_set_str(map, "type", "object");
    wb_json_set(map, "properties", rows);
    wb_json_set(map, "patternProperties", patterns);
    wb_json_set_bool(map, "additionalProperties", false);
    return map;
}
