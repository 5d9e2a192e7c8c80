/* From factors to the combinations of levels that are measured, each with its setup. */
#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

/* The kernel takes no smaller CPU quota than 1 ms in the period of 10 ms that all forms use. */
#define QUOTA_LEAST 0.1
#define EXCLUDE_MAX 64

static const struct wb_factor *find_factor(const struct wb_study *s, const char *name, size_t *at)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        if (strcmp(s->factors[i].name, name) == 0) {
            *at = i;
            return &s->factors[i];
        }
    }
    return NULL;
}

static const char *level_of(const struct wb_study *s, const size_t *levels, const char *name)
{
    size_t at = 0;
    const struct wb_factor *f = find_factor(s, name, &at);

    return f ? f->values.v[levels[at]] : NULL;
}

/* ---- exclusions ---- */

/* Combinations that a row of `exclude` names: true for a level of a factor that it takes in. */
struct exclusion {
    bool *hit;   /* [factor * LEVELS + level] */
    bool *named; /* [factor] */
    size_t used; /* combinations it took out */
};
#define LEVELS 64

static void exclude_value(const struct wb_study *s, struct exclusion *x, size_t factor,
                          const struct wb_node *n, struct wb_problems *p)
{
    const struct wb_factor *f = &s->factors[factor];
    WB_AUTO_FREE char *guess = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; n->text && i < f->values.n; i++) {
        const struct wb_node *own = f->nodes[i];

        if (strcmp(f->values.v[i], n->text) == 0 ||
            (own && own->text && strcmp(own->text, n->text) == 0)) {
            x->hit[factor * LEVELS + i] = true;
            return;
        }
    }
    guess = wb_did_you_mean(n->text ? n->text : "", (const char *const *)f->values.v);
    list = wb_word_list((const char *const *)f->values.v);
    wb_problem(p, n, "unknown-value", "%s has no value '%.100s'%s; values: %s", f->name,
               n->text ? n->text : "", guess, list);
}

static void read_exclusion(const struct wb_study *s, struct exclusion *x, const struct wb_node *row,
                           struct wb_problems *p)
{
    for (size_t i = 0; i < row->n; i++) {
        const struct wb_node *n = row->items[i];
        size_t at = 0;

        if (!find_factor(s, n->key, &at)) {
            const char **all = wb_calloc(s->nfactors + 1, sizeof *all);

            for (size_t k = 0; k < s->nfactors; k++)
                all[k] = s->factors[k].name;
            WB_AUTO_FREE char *guess = wb_did_you_mean(n->key, all);
            WB_AUTO_FREE char *list = wb_word_list(all);

            wb_problem(p, n, "unknown-key", "there is no factor '%.100s'%s; factors: %s", n->key,
                       guess, list);
            free(all);
            continue;
        }
        x->named[at] = true;
        if (n->kind != WB_NODE_LIST)
            exclude_value(s, x, at, n, p);
        for (size_t k = 0; n->kind == WB_NODE_LIST && k < n->n; k++)
            exclude_value(s, x, at, n->items[k], p);
    }
}

static bool excludes(const struct wb_study *s, const struct exclusion *x, const size_t *levels)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        if (x->named[i] && !x->hit[i * LEVELS + levels[i]])
            return false;
    }
    return true;
}

/* ---- the tree of one combination ---- */

/* Whether a phase as it stands in the study takes the member: the data load takes none, depth is
 * of closed loops, and a phase that names its own load program keeps it. */
static bool phase_takes(const struct wb_node *phase, const char *member)
{
    const struct wb_node *op = wb_node_get(phase, "op"), *rate = wb_node_get(phase, "rate");

    if (phase->kind != WB_NODE_MAP || (op && op->text && strcmp(op->text, "insert") == 0))
        return false;
    if (strcmp(member, "tool") == 0)
        return !wb_node_get(phase, "tool");
    return strcmp(member, "depth") != 0 || !rate || (rate->text && strcmp(rate->text, "max") == 0);
}

/* How many nodes of the tree got the value. */
static size_t put_in_phases(struct wb_node *tree, const char *member, const struct wb_node *value)
{
    const struct wb_node *workload = wb_node_get(tree, "workload");
    const struct wb_node *phases = workload ? wb_node_get(workload, "phases") : NULL;
    size_t done = 0;

    for (size_t i = 0; phases && phases->kind == WB_NODE_LIST && i < phases->n; i++) {
        if (!phase_takes(phases->items[i], member))
            continue;
        WB_IGNORE(wb_node_put(phases->items[i], member, wb_node_copy(value), NULL));
        done++;
    }
    return done;
}

/* Puts the level of one factor where it belongs. `at` is the level as the study has it. */
static void put_level(struct wb_node *tree, const struct wb_factor *f, const struct wb_node *at,
                      struct wb_problems *p)
{
    const struct wb_factor_name *name = wb_factor_name_find(f->name);
    const char *path = name ? name->path : f->name;
    struct wb_err err = WB_ERR_INIT;

    if (name && name->member) {
        if (put_in_phases(tree, name->member, at) == 0)
            wb_problem(p, at, "contradiction", "no measured phase takes %s%s", f->name,
                       strcmp(name->member, "depth") == 0 ? ": none is at rate: max" : "");
        return;
    }
    if (!path || !strcmp(f->name, "form") || strncmp(f->name, "setting.", 8) == 0)
        return;
    if (wb_node_put(tree, path, wb_node_copy(at), &err) < 0)
        wb_problem(p, at, "bad-path", "%s", err.root);
}

static struct wb_node *tree_of(const struct wb_study *s, const struct wb_node *tree,
                               const size_t *levels, struct wb_problems *p)
{
    struct wb_node *copy = wb_node_copy(tree);

    for (size_t i = 0; i < s->nfactors; i++) {
        if (s->factors[i].nodes[levels[i]])
            put_level(copy, &s->factors[i], s->factors[i].nodes[levels[i]], p);
    }
    return copy;
}

/* A problem with a value that a factor put somewhere is one of that factor's value. Problems of
 * combinations name the line already; the pointer leads to the place where it was put. */
static void point_to_levels(const struct wb_study *s, const size_t *levels, struct wb_problems *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < s->nfactors; k++) {
            const struct wb_factor *f = &s->factors[k];
            const struct wb_factor_name *name = wb_factor_name_find(f->name);
            const struct wb_node *at = f->nodes[levels[k]];
            const char *last = name && name->member ? name->member : name ? name->path : f->name;
            const char *dot = last ? strrchr(last, '.') : NULL;
            const char *slash = strrchr(p->v[i].pointer, '/');

            if (!at || !last || !slash || p->v[i].line != at->line ||
                strcmp(slash + 1, dot ? dot + 1 : last) != 0)
                continue;
            free(p->v[i].pointer);
            p->v[i].pointer = wb_node_pointer(at);
            break;
        }
    }
}

/* ---- checks of one combination ---- */

static const struct wb_node *form_node(const struct wb_study *s, const struct wb_combination *c,
                                       const struct wb_node *tree)
{
    size_t at = 0;
    const struct wb_factor *f = find_factor(s, "form", &at);
    const struct wb_node *n = f ? f->nodes[c->levels[at]] : NULL;

    return n ? n : tree;
}

static void check_topology(const struct wb_study *s, const struct wb_combination *c,
                           const struct wb_node *at, struct wb_problems *p)
{
    const char *form = c->form.ops->name;
    bool offered = false;

    if (c->form.count == 1 || strcmp(c->setup.topology, "single") != 0 || !s->recipe)
        return;
    for (size_t i = 0; i < s->recipe->topologies.n; i++)
        offered = offered || strcmp(s->recipe->topologies.v[i], "sharded") == 0;
    if (offered)
        wb_problem(p, at, "contradiction",
                   "form '%s x%d' has %d instances and topology single has one: write topology: "
                   "sharded, which divides the keys between them, or take %s x1",
                   form, c->form.count, c->form.count, form);
    else
        wb_problem(p, at, "contradiction",
                   "form '%s x%d' has %d instances and topology single has one; recipe %s offers "
                   "no other: take %s x1",
                   form, c->form.count, c->form.count, s->recipe->name, form);
}

static void check_memory(const struct wb_study *s, const struct wb_combination *c,
                         const struct wb_node *tree, struct wb_problems *p)
{
    int64_t share = wb_memory_share(&c->setup, c->form.count);
    struct wb_buf need = WB_BUF_INIT(64), got = WB_BUF_INIT(64);

    if (!s->recipe || share >= s->recipe->memory_min)
        return;
    wb_format_bytes(s->recipe->memory_min, &need);
    wb_format_bytes(c->setup.memory_bytes, &got);
    wb_problem(p, wb_node_get(tree, "memory"), "out-of-range",
               "memory of %s is too little for %d instance%s of %s, which needs %s each",
               wb_buf_str(&got), c->form.count, c->form.count == 1 ? "" : "s", s->recipe->name,
               wb_buf_str(&need));
    wb_buf_release(&need);
    wb_buf_release(&got);
}

static void check_quota(const struct wb_study *s, const struct wb_combination *c,
                        struct wb_problems *p)
{
    size_t at = 0;
    const struct wb_factor *f = find_factor(s, "cpu_quota", &at);
    const struct wb_node *n = f ? f->nodes[c->levels[at]] : NULL;
    double each = wb_quota_share(&c->setup, c->cpu_quota, c->form.count);

    if (c->cpu_quota <= 0)
        return;
    if (c->setup.limits == WB_LIMITS_NONE)
        wb_problem(p, n, "contradiction",
                   "cpu_quota %g is a limit, and limits: none has none: take it away or use "
                   "exclude",
                   c->cpu_quota);
    else if (each < QUOTA_LEAST)
        wb_problem(p, n, "out-of-range",
                   "cpu_quota %g makes %.3f cores for each of %d instance%s; the kernel holds no "
                   "less than %g",
                   c->cpu_quota, each, c->form.count, c->form.count == 1 ? "" : "s", QUOTA_LEAST);
}

/* Instances of a cluster tell each other, and clients, where they are. */
static void check_cluster(const struct wb_combination *c, const struct wb_node *at,
                          struct wb_problems *p)
{
    if (c->form.count > 1 && strcmp(c->setup.topology, "cluster") == 0 &&
        c->setup.network == WB_NETWORK_PUBLISHED)
        wb_problem(p, at, "contradiction",
                   "topology cluster needs instances that reach each other where clients reach "
                   "them; take network: host or routed, not published");
}

/* A thread of wb-load meets keys of all instances, so it needs a connection to each. */
static void check_connections(const struct wb_combination *c, const struct wb_node *at,
                              struct wb_problems *p)
{
    bool single = strcmp(c->setup.topology, "single") == 0;

    for (size_t i = 0; !single && c->form.count > 1 && i < c->setup.nphases; i++) {
        const struct wb_phase *ph = &c->setup.phases[i];
        long long need = (long long)ph->threads * c->form.count;

        if (!ph->tool && ph->connections < need)
            wb_problem(p, at, "out-of-range",
                       "phase %s has %lld connection%s for %d instances and %lld thread%s of the "
                       "load; each thread needs one to each instance: %lld or more",
                       ph->name, (long long)ph->connections, ph->connections == 1 ? "" : "s",
                       c->form.count, (long long)ph->threads, ph->threads == 1 ? "" : "s", need);
    }
}

/* A foreign program is told where each of several instances is, or it would weigh only one. */
static void check_tools(const struct wb_combination *c, const struct wb_node *at,
                        struct wb_problems *p)
{
    for (size_t i = 0; c->form.count > 1 && i < c->setup.nphases; i++) {
        const struct wb_phase *ph = &c->setup.phases[i];

        if (ph->tool && !wb_tool_command_uses(ph->tool, "targets"))
            wb_problem(p, at, "contradiction",
                       "phase %s: %s talks to one instance of the database and '%s x%d' has %d: "
                       "put {targets} into its command, which is HOST:PORT of all of them, or "
                       "take %s x1",
                       ph->name, ph->tool->name, c->form.ops->name, c->form.count, c->form.count,
                       c->form.ops->name);
    }
}

/* ---- combinations ---- */

static size_t walks(const struct wb_study *s)
{
    return s->nfactors ? s->factors[s->nfactors - 1].walk + 1 : 0;
}

static size_t levels_of_walk(const struct wb_study *s, size_t walk)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        if (s->factors[i].walk == walk)
            return s->factors[i].values.n;
    }
    return 1;
}

/* All products, before exclusions; at most `most` + 1 is told. */
static size_t count_products(const struct wb_study *s, size_t most)
{
    size_t n = 1;

    for (size_t w = 0; w < walks(s); w++) {
        n *= levels_of_walk(s, w);
        if (n > most)
            return most + 1;
    }
    return n;
}

/* The levels of the i-th product; the first factor is the slowest. */
static void fill_levels(const struct wb_study *s, size_t i, size_t *levels)
{
    for (size_t w = walks(s); w-- > 0;) {
        size_t n = levels_of_walk(s, w);

        for (size_t k = 0; k < s->nfactors; k++) {
            if (s->factors[k].walk == w)
                levels[k] = i % n;
        }
        i /= n;
    }
}

/* Native instances are on the host's network: where the network is varied they are measured once,
 * with its first value or, when it is one of them, with `host`. */
static bool repeats_native(const struct wb_study *s, const struct wb_form_ref *form,
                           const size_t *levels)
{
    size_t at = 0, kept = 0;
    const struct wb_factor *f = find_factor(s, "network", &at);

    if (!f || form->ops != &wb_form_native)
        return false;
    for (size_t i = 0; i < f->values.n; i++) {
        if (strcmp(f->values.v[i], "host") == 0)
            kept = i;
    }
    return levels[at] != kept;
}

static void combination_release(struct wb_combination *c)
{
    free(c->levels);
    wb_setup_release(&c->setup);
}

/* Reads and checks one; its problems go to p, each but once. */
static void read_combination(struct wb_study *s, const struct wb_node *tree,
                             struct wb_combination *c, struct wb_problems *p)
{
    struct wb_problems own = {.file = p->file};
    struct wb_node *mine = tree_of(s, tree, c->levels, &own);
    const char *quota = level_of(s, c->levels, "cpu_quota");
    const struct wb_node *at = form_node(s, c, tree);

    wb_setup_read(mine, s->recipe, &c->setup, &own);
    if (c->form.ops == &wb_form_native)
        c->setup.network = WB_NETWORK_HOST;
    if (quota && strcmp(quota, "none") != 0)
        c->cpu_quota = strtod(quota, NULL);
    if (own.n == 0) {
        check_topology(s, c, at, &own);
        check_memory(s, c, mine, &own);
        check_quota(s, c, &own);
        check_connections(c, at, &own);
        check_tools(c, at, &own);
        check_cluster(c, at, &own);
        wb_during_check(c, at, &own);
    }
    point_to_levels(s, c->levels, &own);
    wb_problems_merge(p, &own);
    wb_node_free(mine);
}

/* False when there are too many. */
static bool make_all(struct wb_study *s, const struct wb_node *tree, struct exclusion *x, size_t nx,
                     struct wb_problems *p)
{
    size_t n = count_products(s, WB_PRODUCTS_MAX);

    s->combinations = wb_calloc(WB_ARMS_MAX, sizeof *s->combinations);
    for (size_t i = 0; i < n; i++) {
        struct wb_combination c = {.levels = wb_calloc(s->nfactors, sizeof *c.levels)};
        const char *form;
        bool out = false;

        fill_levels(s, i, c.levels);
        form = level_of(s, c.levels, "form");
        if (wb_form_parse(form, &c.form, NULL) < 0)
            abort();
        for (size_t k = 0; k < nx; k++) {
            if (excludes(s, &x[k], c.levels)) {
                x[k].used++;
                out = true;
            }
        }
        if (out || repeats_native(s, &c.form, c.levels)) {
            combination_release(&c);
            continue;
        }
        if ((s->ncombinations + 1) * (size_t)s->copies > WB_ARMS_MAX) {
            wb_problem(p, wb_node_get(tree, "factors"), "too-large",
                       "the factors and copies make more than %d arms; take values away or use "
                       "exclude",
                       WB_ARMS_MAX);
            combination_release(&c);
            return false;
        }
        read_combination(s, tree, &c, p);
        s->combinations[s->ncombinations++] = c;
    }
    return true;
}

bool wb_study_combinations(struct wb_study *s, const struct wb_node *tree,
                           const struct wb_node *exclude, struct wb_problems *p)
{
    size_t before = p->n + p->dropped, nx = 0;
    struct exclusion x[EXCLUDE_MAX] = {0};
    bool whole = false;

    if (count_products(s, WB_PRODUCTS_MAX) > WB_PRODUCTS_MAX) {
        wb_problem(p, wb_node_get(tree, "factors"), "too-large",
                   "the factors have more than %d combinations; take values away or walk some "
                   "together with zip",
                   WB_PRODUCTS_MAX);
        return false;
    }
    if (exclude && (exclude->kind != WB_NODE_LIST || exclude->n == 0 || exclude->n > EXCLUDE_MAX))
        wb_problem(p, exclude, "wrong-type",
                   "exclude must be a list of 1 to %d maps such as [{form: docker x4, payload: "
                   "64KiB}]",
                   EXCLUDE_MAX);
    else if (exclude)
        nx = exclude->n;
    for (size_t i = 0; i < nx; i++) {
        x[i].hit = wb_calloc(s->nfactors * LEVELS, sizeof *x[i].hit);
        x[i].named = wb_calloc(s->nfactors, sizeof *x[i].named);
        if (exclude->items[i]->kind != WB_NODE_MAP || exclude->items[i]->n == 0)
            wb_problem(p, exclude->items[i], "wrong-type",
                       "what is excluded is a map of factors and values");
        else
            read_exclusion(s, &x[i], exclude->items[i], p);
    }
    if (p->n + p->dropped == before)
        whole = make_all(s, tree, x, nx, p);
    for (size_t i = 0; i < nx; i++) {
        if (whole && x[i].used == 0)
            wb_problem(p, exclude->items[i], "contradiction",
                       "this excludes nothing: no combination of the factors is like it");
        free(x[i].hit);
        free(x[i].named);
    }
    if (whole && s->ncombinations == 0)
        wb_problem(p, exclude, "contradiction", "exclude leaves no arm to measure");
    return whole && s->ncombinations > 0;
}

void wb_combinations_free(struct wb_study *s)
{
    for (size_t i = 0; i < s->ncombinations; i++)
        combination_release(&s->combinations[i]);
    free(s->combinations);
    s->combinations = NULL;
    s->ncombinations = 0;
}

const struct wb_setup *wb_study_setup(const struct wb_study *s)
{
    return &s->combinations[0].setup;
}

wb_json *wb_exclude_schema(void)
{
    wb_json *row = wb_schema_any_key(
        wb_schema_either(wb_schema_scalar(), wb_schema_list(wb_schema_scalar(), 0, LEVELS)));

    wb_json_set_int(row, "minProperties", 1);
    return wb_schema_list(row, 1, EXCLUDE_MAX);
}
