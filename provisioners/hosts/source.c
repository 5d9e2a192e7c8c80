#include "provisioners/hosts/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"
#include "server/base/mem.h"

const struct wb_host_source_ops *const wb_host_sources[] = {&wb_host_local, &wb_host_fake, NULL};

void wb_host_pool_add(struct wb_host_pool *pool, const char *name, const char *machine,
                      const char *kind)
{
    WB_AUTO_FREE char *id = wb_strdup(machine ? machine : name);

    for (char *c = id; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < pool->nhosts; i++)
        if (!strcmp(pool->hosts[i].machine, id))
            return;
    wb_grow(&pool->hosts, &pool->cap, pool->nhosts + 1, sizeof(*pool->hosts));
    pool->hosts[pool->nhosts++] =
        (struct wb_host){.name = wb_strdup(name), .machine = WB_STEAL(id), .kind = wb_strdup(kind)};
}

static struct wb_host_pool *add_pool(struct wb_host_pools *p, const char *name,
                                     const struct wb_host_source_ops *source)
{
    wb_grow(&p->v, &p->cap, p->n + 1, sizeof(*p->v));
    p->v[p->n] = (struct wb_host_pool){.name = wb_strdup(name), .source = source, .dir = p->dir};
    return &p->v[p->n++];
}

static const struct wb_host_source_ops *source_of(const struct wb_node *n, struct wb_problems *p)
{
    const struct wb_node *source = wb_node_get(n, "source");
    const char *words[WB_LEN(wb_host_sources)];
    WB_AUTO_FREE char *list = NULL;
    WB_AUTO_FREE char *hint = NULL;

    if (!source || !source->text) {
        wb_problem_key(p, n, "source", "missing", "a pool has a source, such as fake");
        return NULL;
    }
    for (size_t i = 0; wb_host_sources[i]; i++)
        if (!strcmp(wb_host_sources[i]->name, source->text))
            return wb_host_sources[i];
    for (size_t i = 0; i < WB_LEN(words); i++)
        words[i] = wb_host_sources[i] ? wb_host_sources[i]->name : NULL;
    list = wb_word_list(words);
    hint = wb_did_you_mean(source->text, words);
    wb_problem(p, source, "unknown-value", "there is no source '%.60s'%s; allowed: %s",
               source->text, hint, list);
    return NULL;
}

static void read_pool(struct wb_host_pools *out, const struct wb_node *n, struct wb_problems *p)
{
    const struct wb_host_source_ops *source;
    struct wb_host_pool *pool;

    if (!wb_is_name(n->key)) {
        wb_problem(p, n, "bad-name", "'%.60s' is no name: small letters, digits, . _ and -",
                   n->key);
        return;
    }
    if (n->kind != WB_NODE_MAP) {
        wb_problem(p, n, "wrong-type", "pool %s: {source, hosts or count, class} is wanted",
                   n->key);
        return;
    }
    if (wb_host_pool_find(out, n->key)) {
        wb_problem(p, n, "bad-value", "the pool '%s' is always there: this machine", n->key);
        return;
    }
    source = source_of(n, p);
    if (!source)
        return;
    pool = add_pool(out, n->key, source);
    source->read(n, pool, p);
    if (pool->nhosts > WB_POOL_HOSTS_MAX)
        wb_problem(p, n, "too-many", "pool %s has more than %d hosts", pool->name,
                   WB_POOL_HOSTS_MAX);
}

void wb_host_pools_read(const char *path, const char *dir, struct wb_host_pools *out,
                        struct wb_problems *p)
{
    struct wb_node *tree = NULL, *pools;
    struct wb_err err = WB_ERR_INIT;

    *out = (struct wb_host_pools){.dir = wb_strdup(dir)};
    wb_host_local.read(NULL, add_pool(out, "local", &wb_host_local), p);
    if (!path)
        return;
    p->file = path;
    if (wb_yaml_read_file(path, &tree, &err) < 0) {
        wb_problem(p, NULL, "syntax", "%s", err.root);
        return;
    }
    pools = wb_node_get(tree, "pools");
    if (!pools || pools->kind != WB_NODE_MAP)
        wb_problem(p, tree, "missing", "the file of pools begins with 'pools:' and a name below");
    for (size_t i = 0; tree->kind == WB_NODE_MAP && i < tree->n; i++)
        if (tree->items[i] != pools)
            wb_problem(p, tree->items[i], "unknown-key",
                       "there is no key '%.60s' here; allowed: pools", tree->items[i]->key);
    for (size_t i = 0; pools && pools->kind == WB_NODE_MAP && i < pools->n; i++) {
        if (i == WB_POOLS_MAX) {
            wb_problem(p, pools, "too-many", "more than %d pools", WB_POOLS_MAX);
            break;
        }
        read_pool(out, pools->items[i], p);
    }
    wb_node_free(tree);
}

void wb_host_pools_release(struct wb_host_pools *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->v[i].nhosts; k++) {
            free(p->v[i].hosts[k].name);
            free(p->v[i].hosts[k].machine);
            free(p->v[i].hosts[k].kind);
        }
        free(p->v[i].hosts);
        free(p->v[i].name);
    }
    free(p->v);
    free(p->dir);
    *p = (struct wb_host_pools){0};
}

const struct wb_host_pool *wb_host_pool_find(const struct wb_host_pools *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].name, name))
            return &p->v[i];
    return NULL;
}

size_t wb_host_pool_alike(const struct wb_host_pool *pool)
{
    size_t most = 0;

    for (size_t i = 0; i < pool->nhosts; i++) {
        size_t n = 0;

        for (size_t k = 0; k < pool->nhosts; k++)
            n += !strcmp(pool->hosts[i].kind, pool->hosts[k].kind);
        most = n > most ? n : most;
    }
    return most;
}
