#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

#define MEMORY_DEFAULT (1LL << 30)
#define MEMORY_MAX 0x1p50

struct raw_setup {
    char *topology, *network;
    int share, limits, cpus, reuse, page_cache;
    int64_t cpus_per_instance, memory;
    char *routing;
    const struct wb_node *workload, *tools, *consistency, *slo;
};

static const char *const share_words[] = {"host", "instance", NULL};
static const char *const limits_words[] = {"same", "none", NULL};
static const char *const reuse_words[] = {"none", "data", NULL};
static const char *const page_cache_words[] = {"as-is", "dropped", NULL};
static const char *const cpus_words[] = {"shared", "disjoint", NULL};

#define AT(m) offsetof(struct raw_setup, m)
static const struct wb_field fields[] = {
    {"topology", WB_F_TEXT, false, AT(topology), 0, 0, NULL, "one that the recipe offers: single"},
    {"share", WB_F_WORD, false, AT(share), 0, 0, share_words,
     "N instances get together what native x1 gets (host), or each that much (instance)"},
    {"limits", WB_F_WORD, false, AT(limits), 0, 0, limits_words,
     "instances run under the limits of their share (same) or under none"},
    {"network", WB_F_TEXT, false, AT(network), 0, 0, NULL, "how containers are reached: host"},
    {"cpus", WB_F_WORD, false, AT(cpus), 0, 0, cpus_words,
     "instances share the database's CPUs, or get disjoint parts of them"},
    {"cpus_per_instance", WB_F_INT, false, AT(cpus_per_instance), 1, 4096, NULL,
     "with cpus: disjoint and share: instance"},
    {"memory", WB_F_BYTES, false, AT(memory), 1 << 20, MEMORY_MAX, NULL,
     "what native x1 gets, such as 1GiB"},
    {"reuse", WB_F_WORD, false, AT(reuse), 0, 0, reuse_words,
     "data: it is loaded once per arm and taken again in the other rounds"},
    {"page_cache", WB_F_WORD, false, AT(page_cache), 0, 0, page_cache_words,
     "before measuring it is left as it is, or dropped for the whole host"},
    {"consistency", WB_F_NODE, false, AT(consistency), 0, 0, NULL,
     "a level such as quorum, or {read: one, write: quorum}"},
    {"routing", WB_F_TEXT, false, AT(routing), 0, 0, NULL, "token or round-robin"},
    {"tools", WB_F_NODE, false, AT(tools), 0, 0, NULL, "foreign load programs by name"},
    {"slo", WB_F_NODE, false, AT(slo), 0, 0, NULL, "a limit such as {p99: 5ms, search: true}"},
    {"workload", WB_F_NODE, true, AT(workload), 0, 0, NULL, "{data, phases}"},
};
#undef AT

bool wb_setup_key(const char *key)
{
    for (size_t i = 0; i < WB_LEN(fields); i++) {
        if (strcmp(fields[i].key, key) == 0)
            return true;
    }
    return false;
}

static const char *const topologies[] = {"single", "sharded", "cluster", NULL};

/* The word must be of the language; which of its words a recipe offers is the recipe's. */
static void read_topology(struct wb_setup *s, const struct wb_node *n, const char *text,
                          const struct wb_recipe *recipe, struct wb_problems *p)
{
    static const char *const later[] = {"replicated", NULL};

    s->topology = wb_strdup(text ? text : "single");
    if (!text || wb_word_now(n, "topology", text, topologies, later, p) < 0 || !recipe)
        return;
    for (size_t i = 0; i < recipe->topologies.n; i++) {
        if (strcmp(recipe->topologies.v[i], text) == 0)
            return;
    }
    WB_AUTO_FREE char *list = wb_word_list((const char *const *)recipe->topologies.v);

    wb_problem(p, n, "unknown-value", "recipe %s has no topology '%s'; it has: %s", recipe->name,
               text, list);
}

static void read_network(struct wb_setup *s, const struct wb_node *n, const char *text,
                         struct wb_problems *p)
{
    int w = text ? wb_word_now(n, "network", text, wb_network_names, NULL, p) : 0;

    s->network = w > 0 ? (enum wb_network)w : WB_NETWORK_HOST;
}

/* Both are the client's part of a database whose nodes pass requests on. */
static bool has_choice(const struct wb_recipe *recipe, const struct wb_node *n, const char *key,
                       struct wb_problems *p)
{
    if (!recipe || strcmp(recipe->protocol, "cql") == 0)
        return true;
    wb_problem(p, n, "contradiction", "recipe %s has no choice of %s: its clients speak %s",
               recipe->name, key, recipe->protocol);
    return false;
}

static const char *const levels[] = {"any", "one",          "two",         "three",     "quorum",
                                     "all", "local_quorum", "each_quorum", "local_one", NULL};

static const char *const sides[] = {"read", "write", NULL};

static const char *level_of(const struct wb_node *n, struct wb_problems *p)
{
    if (n->kind != WB_NODE_TEXT) {
        wb_problem(p, n, "wrong-type", "consistency is a level such as quorum, or {read, write}");
        return NULL;
    }
    return wb_word_now(n, "consistency", n->text, levels, NULL, p) < 0 ? NULL : n->text;
}

static void read_consistency(struct wb_setup *s, const struct wb_node *n,
                             const struct wb_recipe *recipe, struct wb_problems *p)
{
    struct wb_buf b = WB_BUF_INIT(256);

    if (!n || !has_choice(recipe, n, "consistency", p))
        return;
    if (n->kind != WB_NODE_MAP) {
        s->consistency = wb_strdup(level_of(n, p));
        return;
    }
    for (size_t i = 0; i < n->n; i++) {
        const struct wb_node *side = n->items[i];
        const char *level = level_of(side, p);

        if (wb_word_now(side, "a side of consistency", side->key, sides, NULL, p) >= 0 && level)
            wb_buf_addf(&b, "%s%s=%s", b.len ? "," : "", side->key, level);
    }
    s->consistency = b.len ? wb_buf_take(&b) : NULL;
}

static void read_routing(struct wb_setup *s, const struct wb_node *n, const char *text,
                         const struct wb_recipe *recipe, struct wb_problems *p)
{
    static const char *const ways[] = {"token", "round-robin", NULL};

    if (text && has_choice(recipe, n, "routing", p) &&
        wb_word_now(n, "routing", text, ways, NULL, p) >= 0)
        s->routing = wb_strdup(text);
}

static void check_cpus(const struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    if (s->cpus_per_instance == 0)
        return;
    if (s->cpus != WB_CPUS_DISJOINT)
        wb_problem(p, n, "contradiction",
                   "cpus_per_instance needs cpus: disjoint; with cpus: shared every instance may "
                   "run on all CPUs of the database");
    else if (s->share != WB_SHARE_INSTANCE)
        wb_problem(p, n, "contradiction",
                   "cpus_per_instance needs share: instance; with share: host the instances of an "
                   "arm divide what native x1 gets");
}

/* What is gone when the database stops cannot be taken again. */
static void check_reuse(const struct wb_setup *s, const struct wb_node *n,
                        const struct wb_recipe *recipe, struct wb_problems *p)
{
    if (s->reuse_data && recipe && !recipe->data_in_files)
        wb_problem(p, n, "contradiction",
                   "recipe %s does not keep its data in files: it has to be loaded in every run; "
                   "leave reuse out",
                   recipe->name);
}

void wb_setup_read(const struct wb_node *tree, const struct wb_recipe *recipe, struct wb_setup *s,
                   struct wb_problems *p)
{
    struct raw_setup raw = {.memory = MEMORY_DEFAULT};
    /* The same map with only these keys; pointers of problems still lead through the tree. */
    struct wb_node view = {.kind = WB_NODE_MAP, .line = tree->line};

    view.items = wb_calloc(tree->n + 1, sizeof(struct wb_node *));
    for (size_t i = 0; i < tree->n; i++) {
        if (wb_setup_key(tree->items[i]->key))
            view.items[view.n++] = tree->items[i];
    }
    (void)wb_fields_read(&view, "study", fields, WB_LEN(fields), &raw, p);
    free(view.items);
    *s = (struct wb_setup){.share = (enum wb_share)raw.share,
                           .limits = (enum wb_same_limits)raw.limits,
                           .cpus = (enum wb_cpu_use)raw.cpus,
                           .cpus_per_instance = raw.cpus_per_instance,
                           .reuse_data = raw.reuse == 1,
                           .page_cache = (enum wb_page_cache)raw.page_cache,
                           .memory_bytes = raw.memory,
                           .protocol = recipe ? recipe->protocol : NULL};
    read_topology(s, wb_node_get(tree, "topology"), raw.topology, recipe, p);
    read_network(s, wb_node_get(tree, "network"), raw.network, p);
    check_cpus(s, wb_node_get(tree, "cpus_per_instance"), p);
    check_reuse(s, wb_node_get(tree, "reuse"), recipe, p);
    read_consistency(s, raw.consistency, recipe, p);
    read_routing(s, wb_node_get(tree, "routing"), raw.routing, recipe, p);
    if (raw.tools)
        wb_study_tools(s, raw.tools, p);
    if (raw.slo)
        wb_study_slo(s, raw.slo, p);
    wb_study_workload(s, raw.workload, raw.slo, p);
    wb_study_during(s, recipe, raw.workload, p);
    free(raw.topology);
    free(raw.network);
    free(raw.routing);
}

void wb_setup_release(struct wb_setup *s)
{
    for (size_t i = 0; i < s->nphases; i++) {
        free(s->phases[i].name);
        free(s->phases[i].steps_of);
        free(s->phases[i].keys);
        free(s->phases[i].arrivals);
        wb_during_release(&s->phases[i]);
        free(s->phases[i].transactions);
        free(s->phases[i].txn_mix);
    }
    wb_tools_release(s);
    free(s->phases);
    free(s->topology);
    free(s->consistency);
    free(s->routing);
    free(s->value_size);
    free(s->value_content);
    free(s->slo.text);
    *s = (struct wb_setup){0};
}

static wb_json *consistency_schema(void)
{
    wb_json *both = wb_json_object(), *rows = wb_json_object();

    for (size_t i = 0; sides[i]; i++)
        wb_json_set(rows, sides[i], wb_schema_words(levels));
    wb_json_set_str(both, "type", "object");
    wb_json_set(both, "properties", rows);
    wb_json_set_bool(both, "additionalProperties", false);
    return wb_schema_either(wb_schema_words(levels), both);
}

wb_json *wb_setup_schema(void)
{
    wb_json *map = wb_schema_map(fields, WB_LEN(fields));

    wb_schema_set(map, "consistency", consistency_schema());
    wb_schema_set(map, "topology", wb_schema_words(topologies));
    wb_schema_set(map, "network", wb_schema_words(wb_network_names));
    wb_schema_set(map, "tools", wb_schema_any_key(wb_schema_ref("tool")));
    wb_schema_set(map, "slo", wb_slo_schema());
    wb_schema_set(map, "workload", wb_workload_schema());
    return map;
}
