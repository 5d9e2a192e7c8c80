#include "runners/load/protocols/cql_ring.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

void wb_cql_nodes_release(struct wb_cql_nodes *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].name);
        free(l->v[i].datacentre);
        free(l->v[i].rack);
        free(l->v[i].token);
    }
    free(l->v);
    *l = (struct wb_cql_nodes){0};
}

struct point {
    int64_t token;
    uint32_t node;
};

static int by_token(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

/* Nodes that keep one range. */
struct chosen {
    uint32_t node[64];
    unsigned n;
};

static bool has(const struct chosen *c, uint32_t node)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->node[i] == node)
            return true;
    return false;
}

static void choose(struct chosen *c, uint32_t node)
{
    if (c->n < WB_LEN(c->node))
        c->node[c->n++] = node;
}

static bool rack_seen(const struct wb_cql_nodes *nodes, const struct chosen *c, const char *rack)
{
    for (unsigned i = 0; i < c->n; i++)
        if (strcmp(nodes->v[c->node[i]].rack, rack) == 0)
            return true;
    return false;
}

static size_t count_racks(const struct wb_cql_nodes *nodes, const char *datacentre)
{
    size_t n = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        bool first = strcmp(nodes->v[i].datacentre, datacentre) == 0;
        for (size_t k = 0; k < i && first; k++)
            first = strcmp(nodes->v[k].datacentre, datacentre) != 0 ||
                    strcmp(nodes->v[k].rack, nodes->v[i].rack) != 0;
        n += first;
    }
    return n;
}

static void walk_simple(const struct point *p, size_t n, size_t from, unsigned copies,
                        struct chosen *c)
{
    for (size_t i = 0; i < n && c->n < copies; i++)
        if (!has(c, p[(from + i) % n].node))
            choose(c, p[(from + i) % n].node);
}

/* In one datacentre: each rack has one copy before any has two, so only as many nodes of a rack
 * that has one already are taken as there are copies beyond the number of racks. */
static void walk_racks(const struct wb_cql_nodes *nodes, const struct point *p, size_t n,
                       size_t from, const char *datacentre, unsigned copies, struct chosen *c)
{
    size_t racks = count_racks(nodes, datacentre), repeats = copies > racks ? copies - racks : 0;

    for (size_t i = 0; i < n && c->n < copies; i++) {
        uint32_t node = p[(from + i) % n].node;
        const struct wb_cql_node *x = &nodes->v[node];
        bool repeat;
        if (strcmp(x->datacentre, datacentre) != 0 || has(c, node))
            continue;
        repeat = rack_seen(nodes, c, x->rack);
        if (repeat && repeats == 0)
            continue;
        repeats -= repeat;
        choose(c, node);
    }
}

static struct point *collect(const struct wb_cql_nodes *nodes, size_t *n)
{
    struct point *p;
    size_t total = 0;

    for (size_t i = 0; i < nodes->n; i++)
        total += nodes->v[i].ntoken;
    p = wb_calloc(total, sizeof(*p));
    *n = 0;
    for (size_t i = 0; i < nodes->n; i++)
        for (size_t k = 0; k < nodes->v[i].ntoken; k++)
            p[(*n)++] = (struct point){.token = nodes->v[i].token[k], .node = (uint32_t)i};
    qsort(p, total, sizeof(*p), by_token);
    return p;
}

void wb_cql_ring_build(struct wb_cql_ring *r, const struct wb_cql_nodes *nodes, size_t targets,
                       const char *datacentre, struct wb_cql_replication how)
{
    size_t n;
    struct point *p = collect(nodes, &n);

    *r = (struct wb_cql_ring){.n = n,
                              .targets = targets,
                              .token = wb_calloc(n, sizeof(*r->token)),
                              .copies = wb_calloc(n, sizeof(*r->copies)),
                              .replica = wb_calloc(n * WB_CQL_REPLICAS_MAX, sizeof(*r->replica))};
    for (size_t i = 0; i < n; i++) {
        struct chosen c = {.n = 0};
        r->token[i] = p[i].token;
        if (how.simple)
            walk_simple(p, n, i, how.copies, &c);
        else
            walk_racks(nodes, p, n, i, datacentre, how.copies, &c);
        for (unsigned k = 0; k < c.n; k++) {
            uint32_t target = nodes->v[c.node[k]].target;
            if (target != WB_CQL_NOWHERE && r->copies[i] < WB_CQL_REPLICAS_MAX)
                r->replica[i * WB_CQL_REPLICAS_MAX + r->copies[i]++] = (uint16_t)target;
        }
    }
    free(p);
}

void wb_cql_ring_release(struct wb_cql_ring *r)
{
    free(r->token);
    free(r->copies);
    free(r->replica);
    *r = (struct wb_cql_ring){0};
}

/* The first range that ends at the token or behind it; after the last one the first. */
static size_t find(const struct wb_cql_ring *r, int64_t token)
{
    size_t lo = 0, hi = r->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->token[mid] < token)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == r->n ? 0 : lo;
}

uint32_t wb_cql_ring_route(const struct wb_cql_ring *r, int64_t token, uint64_t draw,
                           unsigned attempt)
{
    size_t at = r->n > 0 ? find(r, token) : 0;
    unsigned copies = r->n > 0 ? r->copies[at] : 0;
    const uint16_t *replica = r->replica + at * WB_CQL_REPLICAS_MAX;

    if (copies > 0 && attempt < copies)
        return replica[(draw + attempt) % copies];
    attempt -= copies;
    return attempt < r->targets ? (uint32_t)((draw + attempt) % r->targets) : WB_CQL_NOWHERE;
}
