#include "server/study/recipe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/study/recipe_files.h"
#include "server/study/recipe_parts.h"

static const struct {
    const char *name;
    int64_t limit_ns;
} steps[WB_STEP_COUNT] = {
    [WB_STEP_FETCH] = {"fetch", 600 * WB_SEC},        [WB_STEP_INSTALL] = {"install", 300 * WB_SEC},
    [WB_STEP_CONFIGURE] = {"configure", 30 * WB_SEC}, [WB_STEP_READY] = {"ready", 60 * WB_SEC},
    [WB_STEP_PROBE] = {"probe", 30 * WB_SEC},         [WB_STEP_MEASURE] = {"measure", 30 * WB_SEC},
    [WB_STEP_STOP] = {"stop", 60 * WB_SEC},           [WB_STEP_CLEAN] = {"clean", 60 * WB_SEC},
    [WB_STEP_UNMOUNT] = {"unmount", 60 * WB_SEC},     [WB_STEP_WIPE] = {"wipe", 60 * WB_SEC},
    [WB_STEP_SETTLE] = {"settle", 120 * WB_SEC},
};

const char *wb_step_name(enum wb_step s)
{
    return steps[s].name;
}

int64_t wb_step_default_limit_ns(enum wb_step s)
{
    return steps[s].limit_ns;
}

/* What the top of recipe.yaml is read into first. */
struct raw {
    char *name, *revision, *summary, *protocol;
    int64_t port, memory_min;
    int addresses, measure, data;
    const struct wb_node *versions, *parameters, *start, *topologies, *steps, *metrics, *allowed,
        *ports, *operations, *shared;
};

static const char *const address_words[] = {"shared", "own", NULL};
static const char *const data_words[] = {"memory", "files", NULL};
static const char *const measure_words[] = {"end", "phases", NULL};

static const struct wb_field top_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw, name), 0, 0, NULL, "the name of the folder"},
    {"revision", WB_F_TEXT, true, offsetof(struct raw, revision), 0, 0, NULL,
     "changes whenever the recipe measures something else"},
    {"summary", WB_F_TEXT, true, offsetof(struct raw, summary), 0, 0, NULL, "one line for people"},
    {"protocol", WB_F_NAME, true, offsetof(struct raw, protocol), 0, 0, NULL,
     "what the load speaks to it, such as resp"},
    {"port", WB_F_INT, true, offsetof(struct raw, port), 1, 65535, NULL, "default client port"},
    {"memory_min", WB_F_BYTES, true, offsetof(struct raw, memory_min), 1, 1LL << 50, NULL,
     "smallest memory share an instance runs in, such as 64MiB"},
    {"versions", WB_F_NODE, true, offsetof(struct raw, versions), 0, 0, NULL,
     "a list of {version, source, packages, lock, url, sha512}"},
    {"ports", WB_F_NODE, false, offsetof(struct raw, ports), 0, 0, NULL,
     "a list of {name, default, loopback}: what it listens on beside its client port"},
    {"addresses", WB_F_WORD, false, offsetof(struct raw, addresses), 0, 0, address_words,
     "instances on the host's network share its loopback address or have one each (own)"},
    {"measure", WB_F_WORD, false, offsetof(struct raw, measure), 0, 0, measure_words,
     "step measure is asked at the end of a run, or also around each measured phase (phases)"},
    {"data", WB_F_WORD, false, offsetof(struct raw, data), 0, 0, data_words,
     "where what was loaded is after an orderly stop: gone (memory), or in the data folder "
     "(files)"},
    {"parameters", WB_F_NODE, false, offsetof(struct raw, parameters), 0, 0, NULL,
     "a list of {name, type, default, help}"},
    {"start", WB_F_NODE, true, offsetof(struct raw, start), 0, 0, NULL, "{argv, env}"},
    {"topologies", WB_F_NODE, true, offsetof(struct raw, topologies), 0, 0, NULL,
     "a list such as [single]"},
    {"steps", WB_F_NODE, false, offsetof(struct raw, steps), 0, 0, NULL,
     "time limits of steps, such as {ready: 30s}"},
    {"operations", WB_F_NODE, false, offsetof(struct raw, operations), 0, 0, NULL,
     "a list of {name, kind, limit, help}: what can be done to an instance under load"},
    {"metrics", WB_F_NODE, false, offsetof(struct raw, metrics), 0, 0, NULL,
     "a list of {name, unit, kind}"},
    {"shared", WB_F_NODE, false, offsetof(struct raw, shared), 0, 0, NULL,
     "files of the folder shared beside it that its steps use, such as [common.sh]"},
    {"allowed_differences", WB_F_NODE, false, offsetof(struct raw, allowed), 0, 0, NULL,
     "what may differ between forms"},
};

void wb_recipe_texts(const struct wb_node *n, const char *what, struct wb_strv *out,
                     struct wb_problems *p)
{
    if (!n)
        return;
    if (n->kind != WB_NODE_LIST || n->n == 0 || n->n > WB_RECIPE_LIST_MAX) {
        wb_problem(p, n, "wrong-type", "%s must be a list of 1 to %d texts", what,
                   WB_RECIPE_LIST_MAX);
        return;
    }
    for (size_t i = 0; i < n->n; i++) {
        if (n->items[i]->kind != WB_NODE_TEXT)
            wb_problem(p, n->items[i], "wrong-type", "an item of %s must be text", what);
        else
            wb_strv_add(out, n->items[i]->text);
    }
}

/* A name that is none would allow nothing, in silence. */
static void read_allowed(const struct wb_node *n, struct wb_strv *out, struct wb_problems *p)
{
    wb_recipe_texts(n, "allowed_differences", out, p);
    for (size_t i = 0; n && n->kind == WB_NODE_LIST && i < n->n; i++) {
        const char *text = n->items[i]->text;
        WB_AUTO_FREE char *guess = text ? wb_did_you_mean(text, wb_parity_names) : NULL;
        WB_AUTO_FREE char *list = wb_word_list(wb_parity_names);

        if (text && !wb_parity_name_known(text))
            wb_problem(p, n->items[i], "unknown-value",
                       "'%.100s' is nothing that the parity report compares%s; allowed: %s; the "
                       "part before a dot stands for all below it",
                       text, guess, list);
    }
}

const struct wb_node *wb_recipe_list(const struct wb_node *n, const char *what,
                                     struct wb_problems *p)
{
    if (n && n->kind == WB_NODE_LIST && n->n > 0 && n->n <= WB_RECIPE_LIST_MAX)
        return n;
    if (n)
        wb_problem(p, n, "wrong-type", "%s must be a list of 1 to %d maps", what,
                   WB_RECIPE_LIST_MAX);
    return NULL;
}

struct raw_param {
    char *name, *dflt, *min, *max, *help;
    int type;
    const struct wb_node *words;
};

static const char *const param_types[] = {"text", "word", "int", "bytes", "bool", NULL};

static const struct wb_field param_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_param, name), 0, 0, NULL,
     "as the database has it"},
    {"type", WB_F_WORD, true, offsetof(struct raw_param, type), 0, 0, param_types,
     "text, word, int, bytes or bool"},
    {"default", WB_F_TEXT, false, offsetof(struct raw_param, dflt), 0, 0, NULL, "a value"},
    {"min", WB_F_TEXT, false, offsetof(struct raw_param, min), 0, 0, NULL, "of int and bytes"},
    {"max", WB_F_TEXT, false, offsetof(struct raw_param, max), 0, 0, NULL, "of int and bytes"},
    {"words", WB_F_NODE, false, offsetof(struct raw_param, words), 0, 0, NULL,
     "allowed values of a word"},
    {"help", WB_F_TEXT, true, offsetof(struct raw_param, help), 0, 0, NULL, "one line for people"},
};

static void read_bound(const struct wb_node *n, const char *key, const char *text,
                       const struct wb_param *param, int64_t *out, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (!text)
        return;
    if (param->type == WB_PARAM_INT)
        rc = wb_parse_int(text, INT64_MIN, INT64_MAX, out, &err);
    else if (param->type == WB_PARAM_BYTES)
        rc = wb_parse_bytes(text, 0, INT64_MAX, out, &err);
    else
        rc = wb_fail(&err, WB_INVALID, "only int and bytes have a %s", key);
    if (rc < 0)
        wb_problem(p, wb_node_get(n, key), "bad-value", "%s: %s", key, err.root);
}

static void read_param(struct wb_recipe *r, const struct wb_node *n, struct wb_problems *p)
{
    struct wb_param *param = &r->params[r->nparams];
    struct wb_err err = WB_ERR_INIT;
    struct raw_param raw = {0};
    int bad = wb_fields_read(n, "parameter", param_fields, WB_LEN(param_fields), &raw, p);

    *param = (struct wb_param){.name = raw.name,
                               .type = (enum wb_param_type)raw.type,
                               .min = raw.type == WB_PARAM_BYTES ? 0 : INT64_MIN,
                               .max = INT64_MAX,
                               .help = raw.help};
    wb_recipe_texts(raw.words, "words", &param->words, p);
    read_bound(n, "min", raw.min, param, &param->min, p);
    read_bound(n, "max", raw.max, param, &param->max, p);
    if (!bad && param->min > param->max)
        wb_problem(p, wb_node_get(n, "min"), "bad-value", "min %s is above max %s", raw.min,
                   raw.max ? raw.max : "");
    else if ((param->type == WB_PARAM_WORD) != (param->words.n > 0) && !bad)
        wb_problem(p, n, "bad-value", "words belong to a parameter of type word, and only there");
    else if (!raw.dflt && !wb_node_get(n, "default"))
        wb_problem_key(p, n, "default", "missing", "parameter needs default: a value");
    else if (!bad && wb_param_check(param, raw.dflt, &param->dflt, &err) < 0)
        wb_problem(p, wb_node_get(n, "default"), "bad-value", "default: %s", err.root);
    if (raw.name && wb_recipe_find_param(r, raw.name))
        wb_problem(p, n, "duplicate", "parameter '%s' is there twice", raw.name);
    r->nparams++;
    free(raw.dflt);
    free(raw.min);
    free(raw.max);
}

static void read_params(struct wb_recipe *r, const struct wb_node *list, struct wb_problems *p)
{
    list = wb_recipe_list(list, "parameters", p);
    if (!list)
        return;
    r->params = wb_calloc(list->n, sizeof *r->params);
    for (size_t i = 0; i < list->n; i++)
        read_param(r, list->items[i], p);
}

struct raw_metric {
    char *name, *unit;
    int kind;
};
static const char *const metric_kinds[] = {"gauge", "counter", NULL};
static const struct wb_field metric_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_metric, name), 0, 0, NULL, "as measure gives it"},
    {"unit", WB_F_TEXT, false, offsetof(struct raw_metric, unit), 0, 0, NULL, "such as bytes or s"},
    {"kind", WB_F_WORD, true, offsetof(struct raw_metric, kind), 0, 0, metric_kinds,
     "gauge, or counter since the start"},
};

static void read_metrics(struct wb_recipe *r, const struct wb_node *list, struct wb_problems *p)
{
    list = wb_recipe_list(list, "metrics", p);
    if (!list)
        return;
    r->metrics = wb_calloc(list->n, sizeof *r->metrics);
    for (size_t i = 0; i < list->n; i++) {
        struct raw_metric raw = {0};

        (void)wb_fields_read(list->items[i], "metric", metric_fields, WB_LEN(metric_fields), &raw,
                             p);
        for (size_t k = 0; raw.name && k < r->nmetrics; k++)
            if (r->metrics[k].name && !strcmp(r->metrics[k].name, raw.name)) {
                wb_problem(p, list->items[i], "duplicate", "metric '%s' is there twice", raw.name);
                break;
            }
        r->metrics[r->nmetrics++] =
            (struct wb_recipe_metric){raw.name, raw.unit ? raw.unit : wb_strdup(""), raw.kind == 1};
    }
}

/* Only known {words} stand in a start text. */
static void check_placeholders(const struct wb_node *at, const struct wb_strv *texts,
                               struct wb_problems *p)
{
    static const char *const known[] = {"{prefix}", "{config}", "{data}", "{log}", "{port}", NULL};
    WB_AUTO_FREE char *list = wb_word_list(known);

    for (size_t i = 0; i < texts->n; i++) {
        for (const char *s = strpbrk(texts->v[i], "{}"); s; s = strpbrk(s, "{}")) {
            const char *const *k = known;

            while (*k && strncmp(*k, s, strlen(*k)) != 0)
                k++;
            if (!*k) {
                wb_problem(p, at, "unknown-value", "'%.100s' has a brace that is none of %s",
                           texts->v[i], list);
                break;
            }
            if (s > texts->v[i] && s[-1] == '$') {
                wb_problem(p, at, "bad-value",
                           "'%.100s' has a $ before %s: no shell reads it, write %s alone",
                           texts->v[i], *k, *k);
                break;
            }
            s += strlen(*k);
        }
    }
}

struct raw_start {
    const struct wb_node *argv, *env;
};
static const struct wb_field start_fields[] = {
    {"argv", WB_F_NODE, true, offsetof(struct raw_start, argv), 0, 0, NULL,
     "program and arguments, in the foreground"},
    {"env", WB_F_NODE, false, offsetof(struct raw_start, env), 0, 0, NULL, "a list of NAME=value"},
};

static void read_start(struct wb_recipe *r, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_start raw = {0};

    if (!n)
        return;
    (void)wb_fields_read(n, "start", start_fields, WB_LEN(start_fields), &raw, p);
    wb_recipe_texts(raw.argv, "argv", &r->start, p);
    wb_recipe_texts(raw.env, "env", &r->start_env, p);
    check_placeholders(raw.argv, &r->start, p);
    check_placeholders(raw.env, &r->start_env, p);
    if (r->start.n > 0 && strncmp(r->start.v[0], "{prefix}/", 9) != 0)
        wb_problem(p, raw.argv->items[0], "bad-value",
                   "the program must be below {prefix}/, not '%.100s'", r->start.v[0]);
    for (size_t i = 0; i < r->start_env.n; i++) {
        const char *eq = strchr(r->start_env.v[i], '=');

        if (!eq || eq == r->start_env.v[i])
            wb_problem(p, raw.env, "bad-value", "'%.100s' is not NAME=value", r->start_env.v[i]);
    }
}

static void limit_fields(struct wb_field rows[WB_STEP_COUNT])
{
    for (int s = 0; s < WB_STEP_COUNT; s++)
        rows[s] = (struct wb_field){.key = steps[s].name,
                                    .type = WB_F_DURATION,
                                    .offset = (size_t)s * sizeof(int64_t),
                                    .min = (double)(100 * WB_MS),
                                    .max = (double)(86400 * WB_SEC)};
}

static void read_limits(struct wb_recipe *r, const struct wb_node *n, struct wb_problems *p)
{
    struct wb_field rows[WB_STEP_COUNT];

    limit_fields(rows);
    for (int s = 0; s < WB_STEP_COUNT; s++)
        r->step_limit_ns[s] = steps[s].limit_ns;
    if (n)
        (void)wb_fields_read(n, "steps", rows, WB_STEP_COUNT, r->step_limit_ns, p);
}

/* The rules that hold over several keys. */
static void check_whole(const struct wb_recipe *r, const struct wb_node *tree,
                        struct wb_problems *p)
{
    static const enum wb_step needed[] = {WB_STEP_READY, WB_STEP_PROBE};
    const char *folder = strrchr(r->dir, '/') + 1;

    if (r->name && strcmp(r->name, folder) != 0)
        wb_problem(p, wb_node_get(tree, "name"), "bad-name",
                   "name '%s' differs from the folder's name '%.100s'", r->name, folder);
    for (size_t i = 0; i < WB_LEN(needed); i++) {
        if (!r->has_step[needed[i]])
            wb_problem(p, NULL, "missing",
                       "steps/%s is missing: without it a run cannot prove "
                       "what it measured",
                       steps[needed[i]].name);
    }
}

static void read_tree(struct wb_recipe *r, const struct wb_node *tree, struct wb_problems *p)
{
    struct raw raw = {0};

    (void)wb_fields_read(tree, "recipe", top_fields, WB_LEN(top_fields), &raw, p);
    r->name = raw.name;
    r->revision = raw.revision;
    r->summary = raw.summary;
    r->protocol = raw.protocol;
    r->port = (int)raw.port;
    r->memory_min = raw.memory_min;
    wb_recipe_versions_read(r, raw.versions, p);
    wb_recipe_ports_read(r, raw.ports, p);
    r->own_addresses = raw.addresses == 1;
    r->measure_phases = raw.measure == 1;
    r->data_in_files = raw.data == 1;
    read_params(r, raw.parameters, p);
    read_start(r, raw.start, p);
    wb_recipe_texts(raw.topologies, "topologies", &r->topologies, p);
    read_limits(r, raw.steps, p);
    read_metrics(r, raw.metrics, p);
    wb_recipe_operations_read(r, raw.operations, p);
    read_allowed(raw.allowed, &r->allowed_differences, p);
    wb_recipe_texts(raw.shared, "shared", &r->shared, p);
    wb_recipe_files_read(r, tree, p);
    wb_recipe_locks_check(r, raw.versions, p);
    wb_recipe_operations_check(r, raw.operations, p);
    check_whole(r, tree, p);
}

struct wb_recipe *wb_recipe_read(const char *dir, struct wb_problems *p)
{
    WB_AUTO_FREE char *real = realpath(dir, NULL);
    WB_AUTO_FREE char *path = wb_strf("%s/recipe.yaml", dir);
    WB_AUTO_FREE char *text = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_recipe *r = NULL;
    struct wb_node *tree = NULL;
    const char *file = p->file;
    size_t n = 0, from = p->n, before = p->n + p->dropped;

    p->file = path;
    if (!real || wb_file_read(path, WB_NODE_TEXT_MAX, &text, &n, &err) < 0)
        wb_problem(p, NULL, "unreadable", "no readable recipe here%s%s", *err.root ? ": " : "",
                   err.root);
    else
        tree = wb_yaml_check(text, n, p);
    if (tree) {
        r = wb_calloc(1, sizeof *r);
        r->dir = wb_strdup(real);
        read_tree(r, tree, p);
    }
    wb_node_free(tree);
    p->file = file;
    wb_problems_sort(p, from);
    if (p->n + p->dropped > before) {
        wb_recipe_free(r);
        return NULL;
    }
    return r;
}

const struct wb_recipe_version *wb_recipe_find_version(const struct wb_recipe *r,
                                                       const char *version)
{
    for (size_t i = 0; i < r->nversions; i++) {
        if (r->versions[i].version && strcmp(r->versions[i].version, version) == 0)
            return &r->versions[i];
    }
    return NULL;
}

const struct wb_param *wb_recipe_find_param(const struct wb_recipe *r, const char *name)
{
    for (size_t i = 0; i < r->nparams; i++) {
        if (r->params[i].name && strcmp(r->params[i].name, name) == 0)
            return &r->params[i];
    }
    return NULL;
}

char *wb_recipe_version_list(const struct wb_recipe *r)
{
    const char **v = wb_calloc(r->nversions + 1, sizeof *v);
    char *list;

    for (size_t i = 0; i < r->nversions; i++)
        v[i] = r->versions[i].version;
    list = wb_word_list(v);
    free(v);
    return list;
}

void wb_recipe_free(struct wb_recipe *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nversions; i++) {
        free(r->versions[i].version);
        free(r->versions[i].source);
        free(r->versions[i].digest);
        free(r->versions[i].lock);
        free(r->versions[i].url);
        free(r->versions[i].sha512);
        wb_strv_release(&r->versions[i].packages);
    }
    for (size_t i = 0; i < r->nparams; i++) {
        free(r->params[i].name);
        free(r->params[i].dflt);
        free(r->params[i].help);
        wb_strv_release(&r->params[i].words);
    }
    for (size_t i = 0; i < r->nmetrics; i++) {
        free(r->metrics[i].name);
        free(r->metrics[i].unit);
    }
    for (size_t i = 0; i < r->nports; i++)
        free(r->ports[i].name);
    free(r->ports);
    wb_recipe_operations_free(r);
    free(r->versions);
    free(r->params);
    free(r->metrics);
    free(r->dir);
    free(r->name);
    free(r->revision);
    free(r->summary);
    free(r->protocol);
    wb_strv_release(&r->start);
    wb_strv_release(&r->start_env);
    wb_strv_release(&r->topologies);
    wb_strv_release(&r->allowed_differences);
    wb_strv_release(&r->shared);
    wb_strv_release(&r->files);
    free(r);
}

wb_json *wb_recipe_texts_schema(void)
{
    return wb_schema_list(wb_schema_pattern(""), 1, WB_RECIPE_LIST_MAX);
}

wb_json *wb_recipe_schema(void)
{
    wb_json *map = wb_schema_map(top_fields, WB_LEN(top_fields));
    wb_json *param = wb_schema_map(param_fields, WB_LEN(param_fields));
    wb_json *start = wb_schema_map(start_fields, WB_LEN(start_fields));
    struct wb_field limits[WB_STEP_COUNT];

    limit_fields(limits);
    wb_json_push(wb_json_get(param, "required"), wb_json_str("default"));
    wb_schema_set(param, "words", wb_recipe_texts_schema());
    wb_schema_set(start, "argv", wb_recipe_texts_schema());
    wb_schema_set(start, "env", wb_recipe_texts_schema());
    wb_schema_set(map, "versions",
                  wb_schema_list(wb_recipe_version_schema(), 1, WB_RECIPE_LIST_MAX));
    wb_schema_set(map, "operations",
                  wb_schema_list(wb_recipe_operation_schema(), 1, WB_RECIPE_LIST_MAX));
    wb_schema_set(map, "ports", wb_schema_list(wb_recipe_port_schema(), 1, WB_RECIPE_PORTS_MAX));
    wb_schema_set(map, "parameters", wb_schema_list(param, 1, WB_RECIPE_LIST_MAX));
    wb_schema_set(map, "start", start);
    wb_schema_set(map, "topologies", wb_recipe_texts_schema());
    wb_schema_set(map, "steps", wb_schema_map(limits, WB_STEP_COUNT));
    wb_schema_set(
        map, "metrics",
        wb_schema_list(wb_schema_map(metric_fields, WB_LEN(metric_fields)), 1, WB_RECIPE_LIST_MAX));
    wb_schema_set(map, "shared", wb_recipe_texts_schema());
    wb_schema_set(map, "allowed_differences", wb_recipe_texts_schema());
    return map;
}
