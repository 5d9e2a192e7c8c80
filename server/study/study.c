#include "server/study/study.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/study/parts.h"

#define ROUNDS_DEFAULT 8
#define COPIES_MAX 4

/* What the top of a study is read into first. */
struct raw {
    char *name, *placement;
    int64_t copies, seed;
    double threshold;
    const struct wb_node *recipe, *subject, *hosts, *factors, *exclude, *setup, *rounds, *contrasts,
        *validity, *profiles;
};

/* Keys of the setup are nodes here: study_setup.c reads them, for every combination of factors. */
#define AT(m) offsetof(struct raw, m)
static const struct wb_field fields[] = {
    {"study", WB_F_NAME, true, AT(name), 0, 0, NULL, "its name, such as redis-forms"},
    {"recipe", WB_F_NODE, true, AT(recipe), 0, 0, NULL, "{name, version}"},
    {"subject", WB_F_NODE, false, AT(subject), 0, 0, NULL,
     "the build that is measured: {commit, built, version, artifact}"},
    {"hosts", WB_F_NODE, false, AT(hosts), 0, 0, NULL, "{pool, database, load}"},
    {"factors", WB_F_NODE, false, AT(factors), 0, 0, NULL, "what is varied"},
    {"exclude", WB_F_NODE, false, AT(exclude), 0, 0, NULL, "combinations that are not measured"},
    {"copies", WB_F_INT, false, AT(copies), 1, COPIES_MAX, NULL, "identical arms a, b, ..."},
    {"topology", WB_F_NODE, false, AT(setup), 0, 0, NULL,
     "single, sharded or cluster, as the recipe offers"},
    {"replication", WB_F_REFUSED, false, 0, 0, 0, NULL,
     "all topologies have one copy of the data; leave replication out"},
    {"consistency", WB_F_NODE, false, AT(setup), 0, 0, NULL, "a level, or {read, write}"},
    {"routing", WB_F_NODE, false, AT(setup), 0, 0, NULL, "token or round-robin"},
    {"share", WB_F_NODE, false, AT(setup), 0, 0, NULL, "host or instance"},
    {"limits", WB_F_NODE, false, AT(setup), 0, 0, NULL, "same or none"},
    {"network", WB_F_NODE, false, AT(setup), 0, 0, NULL, "host, published or routed"},
    {"cpus", WB_F_NODE, false, AT(setup), 0, 0, NULL, "shared or disjoint"},
    {"cpus_per_instance", WB_F_NODE, false, AT(setup), 0, 0, NULL, "a number of CPUs"},
    {"placement", WB_F_TEXT, false, AT(placement), 0, 0, NULL, "same-host or shared"},
    {"memory", WB_F_NODE, false, AT(setup), 0, 0, NULL, "what native x1 gets, such as 1GiB"},
    {"reuse", WB_F_NODE, false, AT(setup), 0, 0, NULL, "none or data"},
    {"page_cache", WB_F_NODE, false, AT(setup), 0, 0, NULL, "as-is or dropped"},
    {"tools", WB_F_NODE, false, AT(setup), 0, 0, NULL, "foreign load programs by name"},
    {"workload", WB_F_NODE, false, AT(setup), 0, 0, NULL, "{data, phases}"},
    {"rounds", WB_F_NODE, false, AT(rounds), 0, 0, NULL, "how often every arm runs"},
    {"seed", WB_F_INT, false, AT(seed), 0, 9e15, NULL, "of all random choices; 0 draws one"},
    {"contrasts", WB_F_NODE, false, AT(contrasts), 0, 0, NULL,
     "a list of {name, arm, against, metric}"},
    {"threshold", WB_F_PERCENT, false, AT(threshold), 0.01, 50, NULL,
     "differences below it do not matter"},
    {"validity", WB_F_NODE, false, AT(validity), 0, 0, NULL, "{accept, limits}"},
    {"slo", WB_F_NODE, false, AT(setup), 0, 0, NULL, "{p99: 5ms, search: true}"},
    {"price", WB_F_REFUSED, false, 0, 0, 0, NULL, "leave price out"},
    {"notify", WB_F_REFUSED, false, 0, 0, 0, NULL, "leave notify out"},
    {"profiles", WB_F_NODE, false, AT(profiles), 0, 0, NULL, "named sets of overrides"},
};
#undef AT

bool wb_study_key(const char *key)
{
    for (size_t i = 0; i < WB_LEN(fields); i++) {
        if (strcmp(fields[i].key, key) == 0)
            return true;
    }
    return false;
}

/* ---- recipe and hosts ---- */

static void unknown_recipe(const struct wb_node *n, const char *name, const char *recipes_dir,
                           struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv all = {0};
    const char **found;
    size_t n_found = 0;

    if (wb_list_dir(recipes_dir, &all, &err) < 0) {
        wb_problem(p, n, "not-found", "no recipes here: %s", err.root);
        return;
    }
    found = wb_calloc(all.n + 1, sizeof *found);
    for (size_t i = 0; i < all.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s/recipe.yaml", recipes_dir, all.v[i]);

        if (wb_path_exists(path))
            found[n_found++] = all.v[i];
    }
    WB_AUTO_FREE char *guess = wb_did_you_mean(name, found);
    WB_AUTO_FREE char *list = wb_word_list(found);

    wb_problem(p, n, "unknown-value", "there is no recipe '%s'%s; recipes: %s", name, guess,
               n_found ? list : "none");
    free(found);
    wb_strv_release(&all);
}

static const struct wb_field recipe_fields[] = {
    {"name", WB_F_NAME, true, 0, 0, 0, NULL, "the name of a recipe"},
    {"version", WB_F_TEXT, true, sizeof(char *), 0, 0, NULL, "one of its versions"},
};

static void read_recipe(struct wb_study *s, const struct wb_node *n,
                        const struct wb_study_options *o, struct wb_problems *p)
{
    struct {
        char *name, *version;
    } raw = {0};

    if (!n)
        return;
    (void)wb_fields_read(n, "recipe", recipe_fields, WB_LEN(recipe_fields), &raw, p);
    if (raw.name) {
        WB_AUTO_FREE char *dir = wb_strf("%s/%s", o->recipes_dir, raw.name);
        WB_AUTO_FREE char *path = wb_strf("%s/recipe.yaml", dir);

        if (wb_path_exists(path))
            s->recipe = wb_recipe_read(dir, p);
        else
            unknown_recipe(wb_node_get(n, "name"), raw.name, o->recipes_dir, p);
    }
    if (s->recipe && raw.version) {
        s->version = wb_recipe_find_version(s->recipe, raw.version);
        if (!s->version) {
            WB_AUTO_FREE char *list = wb_recipe_version_list(s->recipe);

            wb_problem(p, wb_node_get(n, "version"), "unknown-value",
                       "recipe %s has no version '%.100s'; versions: %s", raw.name, raw.version,
                       list);
        }
    }
    free(raw.name);
    free(raw.version);
}

static const struct wb_field host_fields[] = {
    {"pool", WB_F_NAME, false, offsetof(struct wb_study, pool), 0, 0, NULL, "local"},
    {"database", WB_F_INT, false, offsetof(struct wb_study, database_hosts), 1, 1000, NULL, "1"},
    {"load", WB_F_INT, false, offsetof(struct wb_study, load_hosts), 1, 1000, NULL, "1"},
};
int64_t wb_study_hosts(const struct wb_study *s)
{
    return !strcmp(s->pool, "local") ? 1 : s->database_hosts + s->load_hosts;
}

static void read_local(const struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    if (s->database_hosts != 1)
        wb_problem(p, wb_node_get(n, "database"), "unsupported",
                   "several database hosts are not supported yet; allowed now: 1");
    if (s->load_hosts != 1)
        wb_problem(p, wb_node_get(n, "load"), "unsupported",
                   "several load hosts are not supported yet; allowed now: 1");
}

static void read_hosts(struct wb_study *s, const struct wb_node *n,
                       const struct wb_study_options *o, struct wb_problems *p)
{
    struct wb_strv names = {0};

    s->pool = wb_strdup("local");
    s->database_hosts = s->load_hosts = 1;
    if (!n)
        return;
    (void)wb_fields_read(n, "hosts", host_fields, WB_LEN(host_fields), s, p);
    if (o->any_pool)
        return;
    wb_strv_add(&names, "local");
    for (size_t i = 0; i < o->npools; i++)
        wb_strv_add(&names, o->pools[i].name);
    (void)wb_word_now(wb_node_get(n, "pool"), "pool", s->pool, (const char *const *)names.v, NULL,
                      p);
    wb_strv_release(&names);
    for (size_t i = 0; i < o->npools; i++) {
        if (strcmp(o->pools[i].name, s->pool) != 0)
            continue;
        if (wb_study_hosts(s) > o->pools[i].alike)
            wb_problem(p, n, "capacity",
                       "%lld hosts are asked for (database %lld, load %lld); the pool %s has %lld "
                       "of one class",
                       (long long)wb_study_hosts(s), (long long)s->database_hosts,
                       (long long)s->load_hosts, s->pool, (long long)o->pools[i].alike);
        return;
    }
    read_local(s, n, p);
}

/* ---- single values ---- */

/* {at_least, at_most, until: decided} */
struct raw_until {
    int64_t least, most;
    int until;
};
static const char *const until_words[] = {"decided", NULL};
static const struct wb_field until_fields[] = {
    {"at_least", WB_F_INT, false, offsetof(struct raw_until, least), WB_ROUNDS_LOOK, WB_ROUNDS_MAX,
     NULL, "rounds before the first look"},
    {"at_most", WB_F_INT, true, offsetof(struct raw_until, most), WB_ROUNDS_LOOK, WB_ROUNDS_MAX,
     NULL, "the budget"},
    {"until", WB_F_WORD, true, offsetof(struct raw_until, until), 0, 0, until_words, "decided"},
};

static void read_until(struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_until raw = {0};

    if (wb_fields_read(n, "rounds", until_fields, WB_LEN(until_fields), &raw, p) > 0)
        return;
    if (raw.least == 0)
        raw.least = raw.most < ROUNDS_DEFAULT ? raw.most : ROUNDS_DEFAULT;
    if (raw.least > raw.most) {
        wb_problem(p, wb_node_get(n, "at_least"), "bad-value",
                   "at_least %lld is more than at_most %lld", (long long)raw.least,
                   (long long)raw.most);
        return;
    }
    s->rounds_least = raw.least;
    s->rounds = raw.most;
}

static void read_rounds(struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;

    s->rounds = ROUNDS_DEFAULT;
    if (!n)
        return;
    if (n->kind == WB_NODE_MAP)
        read_until(s, n, p);
    else if (n->kind != WB_NODE_TEXT && n->kind != WB_NODE_NUMBER)
        wb_problem(p, n, "wrong-type",
                   "rounds must be a whole number, or {at_least, at_most, until: decided}");
    else if (wb_parse_int(n->text, 1, WB_ROUNDS_MAX, &s->rounds, &err) < 0)
        wb_problem(p, n, "bad-value", "rounds: %s", err.root);
}

static const char *const placements[] = {"same-host", "shared", NULL};

static void read_placement(struct wb_study *s, const struct wb_node *n, const char *text,
                           struct wb_problems *p)
{
    static const char *const later[] = {"separate", NULL};
    int w = text ? wb_word_now(n, "placement", text, placements, later, p) : 0;

    s->placement = w == 1 ? WB_PLACEMENT_SHARED : WB_PLACEMENT_SAME_HOST;
}

/* ---- the whole ---- */

/* Factors, and the setups of their combinations: without them, the setup as it stands, so that its
 * problems are told as well. */
static void read_arms(struct wb_study *s, const struct wb_node *tree, const struct raw *raw,
                      struct wb_problems *p)
{
    size_t before = p->n + p->dropped;
    bool arms_known, metrics_known;
    struct wb_problems own = {.file = p->file};
    struct wb_setup plain = {0};

    wb_study_factors(s, raw->factors, p);
    arms_known = p->n + p->dropped == before;
    before = p->n + p->dropped;
    if (arms_known)
        arms_known = wb_study_combinations(s, tree, raw->exclude, p);
    if (!arms_known) {
        wb_setup_read(tree, s->recipe, &plain, &own);
        wb_problems_merge(p, &own);
        wb_setup_release(&plain);
    }
    metrics_known = s->ncombinations > 0 && p->n + p->dropped == before;
    wb_study_contrasts(s, raw->contrasts, p);
    wb_study_contrast_names(s, raw->contrasts, arms_known && s->recipe, metrics_known, p);
}

static void read_tree(struct wb_study *s, const struct wb_node *tree,
                      const struct wb_study_options *o, struct wb_problems *p)
{
    struct raw raw = {.copies = 1, .threshold = 2};

    (void)wb_fields_read(tree, "study", fields, WB_LEN(fields), &raw, p);
    s->name = raw.name;
    s->copies = raw.copies;
    s->seed = (uint64_t)raw.seed;
    s->threshold_percent = raw.threshold;
    read_recipe(s, raw.recipe, o, p);
    wb_study_subject(s, raw.subject, p->file != NULL, p);
    read_hosts(s, raw.hosts, o, p);
    read_placement(s, wb_node_get(tree, "placement"), raw.placement, p);
    read_rounds(s, raw.rounds, p);
    wb_validity_defaults(&s->validity);
    wb_study_validity(s, raw.validity, p);
    read_arms(s, tree, &raw, p);
    wb_factors_forget_nodes(s);
    free(raw.placement);
}

static wb_json *resolved_json(const struct wb_node *tree)
{
    wb_json *j = wb_node_to_json(tree);

    wb_json_del(j, "profiles");
    return j;
}

struct wb_study *wb_study_check(struct wb_node *tree, const char *file,
                                const struct wb_study_options *o, struct wb_problems *p)
{
    struct wb_study *s = wb_calloc(1, sizeof *s);
    const char *outer = p->file;
    size_t from = p->n, before = p->n + p->dropped;
    struct wb_strv origins = {0};

    p->file = file;
    if (tree->kind != WB_NODE_MAP) {
        wb_problem(p, tree, "wrong-type", "a study must be a map of keys and values");
    } else {
        wb_study_override(tree, o, &origins, p);
        read_tree(s, tree, o, p);
        s->resolved = resolved_json(tree);
        wb_subject_resolve(s, s->resolved);
    }
    wb_override_name(p, from, &origins);
    wb_problems_sort(p, from);
    wb_strv_release(&origins);
    wb_node_free(tree);
    p->file = outer;
    if (p->n + p->dropped > before) {
        wb_study_free(s);
        return NULL;
    }
    return s;
}

struct wb_study *wb_study_read_file(const char *path, const struct wb_study_options *o,
                                    struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *text = NULL;
    const char *outer = p->file;
    struct wb_node *tree = NULL;
    struct wb_study *s = NULL;
    size_t n = 0;
    int rc;

    p->file = path;
    rc = wb_file_read(path, WB_NODE_TEXT_MAX, &text, &n, &err);
    if (rc < 0)
        wb_problem(p, NULL, rc == -WB_NOT_FOUND ? "not-found" : "unreadable", "%s", err.root);
    else
        tree = wb_yaml_check(text, n, p);
    if (tree)
        s = wb_study_check(tree, path, o, p);
    if (s) {
        s->source_file = wb_strdup(path);
        s->text = WB_STEAL(text);
    }
    p->file = outer;
    return s;
}

void wb_study_free(struct wb_study *s)
{
    if (!s)
        return;
    wb_combinations_free(s);
    for (size_t i = 0; i < s->nfactors; i++) {
        free(s->factors[i].name);
        free(s->factors[i].nodes);
        wb_strv_release(&s->factors[i].values);
        wb_strv_release(&s->factors[i].canonical);
    }
    for (size_t i = 0; i < s->ncontrasts; i++) {
        free(s->contrasts[i].name);
        free(s->contrasts[i].arm);
        free(s->contrasts[i].against);
        free(s->contrasts[i].metric);
    }
    free(s->factors);
    free(s->contrasts);
    free(s->name);
    free(s->source_file);
    free(s->text);
    free(s->pool);
    wb_subject_release(&s->subject);
    wb_recipe_free(s->recipe);
    wb_json_free(s->resolved);
    free(s);
}

/* ---- as a schema ---- */

wb_json *wb_schema_ref(const char *name)
{
    WB_AUTO_FREE char *path = wb_strf("#/$defs/%s", name);
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "$ref", path);
    return o;
}

/* A text, or a list of them. */
static wb_json *words_schema(void)
{
    wb_json *text = wb_schema_pattern("");

    return wb_schema_either(text, wb_schema_list(wb_json_ref(text), 0, 1000));
}

wb_json *wb_study_schema(void)
{
    wb_json *map = wb_schema_map(fields, WB_LEN(fields)), *defs = wb_json_object();
    WB_AUTO_JSON wb_json *setup = wb_setup_schema();
    wb_json *hosts = wb_schema_map(host_fields, WB_LEN(host_fields));
    const wb_json *rows = wb_json_get(setup, "properties");

    for (void *it = wb_json_first(rows); it; it = wb_json_next(rows, it))
        wb_schema_set(map, wb_json_iter_key(it), wb_json_copy(wb_json_iter_value(it)));
    wb_json_push(wb_json_get(map, "required"), wb_json_str("workload"));
    wb_schema_set(map, "recipe", wb_schema_map(recipe_fields, WB_LEN(recipe_fields)));
    wb_schema_set(map, "hosts", hosts);
    wb_schema_set(map, "subject", wb_subject_schema());
    wb_schema_set(map, "placement", wb_schema_words(placements));
    wb_schema_set(map, "factors", wb_factors_schema());
    wb_schema_set(map, "exclude", wb_exclude_schema());
    wb_schema_set(map, "rounds",
                  wb_schema_either(wb_schema_unit(WB_UNIT_INT, 1, WB_ROUNDS_MAX),
                                   wb_schema_map(until_fields, WB_LEN(until_fields))));
    wb_schema_set(map, "contrasts", wb_contrasts_schema());
    wb_schema_set(map, "validity", wb_validity_schema());
    wb_schema_set(map, "profiles", wb_schema_any_key(wb_schema_any_key(wb_json_object())));
    wb_json_set(defs, "tool", wb_tool_schema());
    wb_json_set(defs, "words", words_schema());
    wb_json_set(map, "$defs", defs);
    return map;
}
