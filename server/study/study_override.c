#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

/* Paths that are lists already; a list of rates is steps inside a run. */
static bool takes_list(const char *path)
{
    static const char *const last[] = {"phases",  "contrasts", "accept", "rate",
                                       "exclude", "zip",       NULL};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; last[i]; i++) {
        if (strcmp(dot ? dot + 1 : path, last[i]) == 0)
            return true;
    }
    return false;
}

/* The name of the factor that a path means, or NULL: one by its own name, one that the study has
 * already, or any path that is given several values. */
static const char *factor_of(const struct wb_node *tree, const char *path,
                             const struct wb_node *value)
{
    const struct wb_node *factors = wb_node_get(tree, "factors");

    if (strncmp(path, "factors.", 8) == 0)
        return path + 8;
    if (strncmp(path, "setting.", 8) == 0)
        return path;
    if (wb_factor_name_find(path) && !wb_study_key(path))
        return path;
    if (factors && factors->kind == WB_NODE_MAP && wb_node_get(factors, path))
        return path;
    return value->kind == WB_NODE_LIST && !takes_list(path) && wb_factor_known(path) ? path : NULL;
}

/* Puts value (taken) at a path of the study, null takes the path out; `at` is where problems are
 * reported. */
static void apply(struct wb_node *tree, const char *path, struct wb_node *value,
                  const struct wb_node *at, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    const char *factor = factor_of(tree, path, value);
    struct wb_node *factors = wb_node_get(tree, "factors");
    WB_AUTO_FREE char *full = factor ? wb_strf("factors.%s", factor) : wb_strdup(path);

    if (strcmp(path, "profiles") == 0 || strncmp(path, "profiles.", 9) == 0) {
        wb_problem(p, at, "bad-path", "profiles cannot be changed this way: name the path itself");
        wb_node_free(value);
        return;
    }
    if (value->kind == WB_NODE_NULL) {
        if (!wb_node_remove(tree, full))
            wb_problem(p, at, "bad-path", "the study has no %.100s to take out", full);
        wb_node_free(value);
        return;
    }
    if (!factor && value->kind == WB_NODE_LIST && !takes_list(path)) {
        wb_problem(p, at, "unsupported",
                   "%.100s cannot have several values: it is the same in all arms of a study",
                   path);
        wb_node_free(value);
        return;
    }
    /* A factor's name is one key, dots and all: make it, so that the literal key is found. */
    if (factor && !factors) {
        factors = wb_node_new(WB_NODE_MAP, NULL, value->line);
        wb_node_add(tree, "factors", factors);
    }
    if (factor && *factor && factors->kind == WB_NODE_MAP && !wb_node_get(factors, factor))
        wb_node_add(factors, factor, wb_node_new(WB_NODE_NULL, NULL, value->line));
    if (wb_node_put(tree, full, value, &err) < 0)
        wb_problem(p, at, "bad-path", "%s", err.root);
}

static void set_line(struct wb_node *n, int line)
{
    n->line = line;
    for (size_t i = 0; i < n->n; i++)
        set_line(n->items[i], line);
}

/* "PATH=VALUES": values in YAML flow, several make a list. */
static void override(struct wb_node *tree, const char *text, int line, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node at = {.line = line}, *list = NULL, *value;
    const char *eq = strchr(text, '=');
    WB_AUTO_FREE char *path = eq ? wb_strndup(text, (size_t)(eq - text)) : NULL;
    WB_AUTO_FREE char *flow = eq ? wb_strf("[%s]", eq + 1) : NULL;

    if (!eq || eq == text) {
        wb_problem(p, &at, "bad-path",
                   "must be PATH=VALUES, such as rounds=12 or "
                   "form=native x1, docker x1");
        return;
    }
    if (wb_yaml_parse(flow, strlen(flow), &list, &err) < 0) {
        wb_problem(p, &at, "syntax", "the values of %.100s are not YAML flow: %s", path, err.root);
        return;
    }
    if (list->n == 0) {
        wb_problem(p, &at, "missing", "%.100s has no value", path);
        wb_node_free(list);
        return;
    }
    value = wb_node_copy(list->n == 1 ? list->items[0] : list);
    set_line(value, line);
    wb_node_free(list);
    apply(tree, path, value, &at, p);
}

static void apply_profile(struct wb_node *tree, const struct wb_node *profile,
                          struct wb_problems *p)
{
    for (size_t i = 0; i < profile->n; i++) {
        const struct wb_node *item = profile->items[i];

        apply(tree, item->key, wb_node_copy(item), item, p);
    }
}

/* Every profile must be a map of paths that exist, also those not used now. */
static void check_profile(const struct wb_node *tree, const struct wb_node *profile,
                          struct wb_problems *p)
{
    struct wb_node *scratch;

    if (profile->kind != WB_NODE_MAP) {
        wb_problem(p, profile, "wrong-type", "a profile must be a map of paths and values");
        return;
    }
    scratch = wb_node_copy(tree);
    apply_profile(scratch, profile, p);
    wb_node_free(scratch);
}

static void profiles(struct wb_node *tree, const char *name, struct wb_problems *p)
{
    const struct wb_node *all = wb_node_get(tree, "profiles"), *used = NULL;
    size_t n = all && all->kind == WB_NODE_MAP ? all->n : 0;
    const char **names = wb_calloc(n + 1, sizeof *names);
    struct wb_node *copy = NULL;

    if (all && all->kind != WB_NODE_MAP)
        wb_problem(p, all, "wrong-type", "profiles must be a map of names and profiles");
    for (size_t i = 0; i < n; i++) {
        names[i] = all->items[i]->key;
        if (name && strcmp(names[i], name) == 0)
            used = all->items[i];
        check_profile(tree, all->items[i], p);
    }
    if (name && !used) {
        WB_AUTO_FREE char *guess = wb_did_you_mean(name, names);
        WB_AUTO_FREE char *list = wb_word_list(names);

        wb_problem(p, all, "unknown-value", "there is no profile '%.100s'%s; %s%s", name, guess,
                   n ? "profiles: " : "the study has no profiles", list);
    }
    /* A copy, because what is applied may move nodes of the tree. */
    if (used && used->kind == WB_NODE_MAP) {
        struct wb_problems seen = {0}; /* check_profile has reported them */

        copy = wb_node_copy(used);
        apply_profile(tree, copy, &seen);
        wb_problems_release(&seen);
    }
    wb_node_free(copy);
    free(names);
}

void wb_study_override(struct wb_node *tree, const struct wb_study_options *o,
                       struct wb_strv *origins, struct wb_problems *p)
{
    profiles(tree, o->profile, p);
    for (size_t i = 0; o->overrides && o->overrides[i]; i++) {
        wb_strv_addf(origins, "-f %s", o->overrides[i]);
        override(tree, o->overrides[i], -(int)origins->n, p);
    }
    if (o->rounds > 0) {
        WB_AUTO_FREE char *text = wb_strf("rounds=%lld", (long long)o->rounds);

        wb_strv_addf(origins, "--rounds %lld", (long long)o->rounds);
        override(tree, text, -(int)origins->n, p);
    }
}

void wb_override_name(struct wb_problems *p, size_t from, const struct wb_strv *origins)
{
    for (size_t i = from; i < p->n; i++) {
        int line = p->v[i].line;

        if (line >= 0)
            continue;
        p->v[i].line = 0;
        free(p->v[i].file);
        p->v[i].file = wb_strdup((size_t)-line <= origins->n ? origins->v[-line - 1] : NULL);
    }
}
