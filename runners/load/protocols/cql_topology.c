#include "runners/load/protocols/cql_topology.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define NODES_MAX 4096
#define TOKENS_MAX 4096 /* of a node */

/* Columns of the questions, in their order. */
enum { DATACENTRE, RACK, TOKENS, ADDRESS, OTHER_ADDRESS, PORT, PEER_COLUMNS };
enum { PARTITIONER = ADDRESS, RELEASE, LOCAL_COLUMNS };

static const char ask_local[] =
    "SELECT data_center, rack, tokens, partitioner, release_version FROM system.local";
static const char ask_peers_v2[] =
    "SELECT data_center, rack, tokens, native_address, peer, native_port FROM system.peers_v2";
static const char ask_peers[] =
    "SELECT data_center, rack, tokens, rpc_address, peer FROM system.peers";

static char *text_of(struct wb_cql_view v)
{
    return v.p && memchr(v.p, 0, v.n) == NULL ? wb_strndup(v.p, v.n) : NULL;
}

/* A decimal number, the smallest one included, which evenly divided rings have. */
static bool take_token(struct wb_cql_view v, int64_t *out)
{
    WB_AUTO_FREE char *text = text_of(v);
    char *end;

    if (!text || !(*text == '-' || (*text >= '0' && *text <= '9')))
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && *end == 0 && end - text > (*text == '-');
}

/* set<text> of decimal numbers. */
static bool take_tokens(struct wb_cql_view v, struct wb_cql_node *out)
{
    struct wb_cql_cursor c = wb_cql_cursor(v.p, v.n);
    uint32_t n = v.p ? wb_cql_take32(&c) : 0;

    if (c.bad || n == 0 || n > TOKENS_MAX)
        return false;
    out->token = wb_calloc(n, sizeof(*out->token));
    for (out->ntoken = 0; out->ntoken < n; out->ntoken++)
        if (!take_token(wb_cql_take_bytes(&c), &out->token[out->ntoken]))
            return false;
    return !c.bad;
}

static bool is_any(struct wb_cql_view v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i])
            return false;
    return true;
}

/* An address of 4 or 16 bytes and its text. */
static bool set_address(struct wb_cql_node *node, struct wb_cql_view v, unsigned port)
{
    struct sockaddr_in *a4 = (void *)&node->addr;
    struct sockaddr_in6 *a6 = (void *)&node->addr;
    char text[INET6_ADDRSTRLEN];

    if (v.n == 4) {
        a4->sin_family = AF_INET;
        a4->sin_port = htons((uint16_t)port);
        memcpy(&a4->sin_addr, v.p, v.n);
        node->len = sizeof(*a4);
    } else if (v.n == 16) {
        a6->sin6_family = AF_INET6;
        a6->sin6_port = htons((uint16_t)port);
        memcpy(&a6->sin6_addr, v.p, v.n);
        node->len = sizeof(*a6);
    } else {
        return false;
    }
    if (!inet_ntop(v.n == 4 ? AF_INET : AF_INET6, v.p, text, sizeof(text)))
        return false;
    node->name = wb_strf(v.n == 4 ? "%s:%u" : "[%s]:%u", text, port);
    return true;
}

static void free_node(struct wb_cql_node *n)
{
    free(n->name);
    free(n->datacentre);
    free(n->rack);
    free(n->token);
}

static bool is_known(const struct wb_cql_nodes *l, const struct wb_cql_node *n)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].name, n->name) == 0)
            return true;
    return false;
}

static void add_node(struct wb_cql_nodes *l, struct wb_cql_node *n)
{
    n->target = WB_CQL_NOWHERE;
    wb_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));
    l->v[l->n++] = *n;
}

static void take_peer(struct wb_cql_nodes *l, const struct wb_cql_view *cell, unsigned port)
{
    struct wb_cql_node n = {0};
    struct wb_cql_view where = cell[ADDRESS];

    if (cell[PORT].n == 4)
        port = wb_cql_get32(cell[PORT].p) & 0xffff;
    if (!where.p || is_any(where))
        where = cell[OTHER_ADDRESS];
    n.datacentre = text_of(cell[DATACENTRE]);
    n.rack = text_of(cell[RACK]);
    if (!where.p || !n.datacentre || !n.rack || !take_tokens(cell[TOKENS], &n) ||
        !set_address(&n, where, port) || is_known(l, &n) || l->n >= NODES_MAX) {
        l->skipped++;
        free_node(&n);
        return;
    }
    add_node(l, &n);
}

static int damaged(const struct wb_cql_session *s, const char *what, struct wb_err *err)
{
    return wb_fail(err, WB_PROTOCOL, "%s: %s: the answer is damaged", s->wire.name, what);
}

static int read_local(struct wb_cql_topology *t, struct wb_cql_session *s,
                      const struct sockaddr *addr, socklen_t len, struct wb_err *err)
{
    struct wb_cql_node n = {0};
    struct wb_cql_view cell[LOCAL_COLUMNS];
    struct wb_cql_rows rows;
    int rc = wb_cql_query(s, ask_local, err);

    if (rc < 0)
        return rc;
    if (!wb_cql_take_rows(&s->answer, &rows) || rows.ncolumns != LOCAL_COLUMNS || rows.nrows != 1)
        return damaged(s, ask_local, err);
    for (int i = 0; i < LOCAL_COLUMNS; i++)
        cell[i] = wb_cql_take_bytes(&rows.cells);
    n.datacentre = text_of(cell[DATACENTRE]);
    n.rack = text_of(cell[RACK]);
    n.name = wb_strdup(s->wire.name);
    memcpy(&n.addr, addr, len);
    n.len = len;
    t->partitioner = text_of(cell[PARTITIONER]);
    t->release = text_of(cell[RELEASE]);
    if (rows.cells.bad || !n.datacentre || !n.rack || !t->partitioner || !t->release ||
        !take_tokens(cell[TOKENS], &n)) {
        free_node(&n);
        return wb_fail(err, WB_UNAVAILABLE,
                       "%s does not know its datacentre, rack or tokens: it has not joined yet",
                       s->wire.name);
    }
    add_node(&t->nodes, &n);
    return 0;
}

static unsigned port_of(const struct sockaddr *addr)
{
    struct sockaddr_in a4;
    struct sockaddr_in6 a6;

    if (addr->sa_family == AF_INET6) {
        memcpy(&a6, addr, sizeof(a6));
        return ntohs(a6.sin6_port);
    }
    memcpy(&a4, addr, sizeof(a4));
    return ntohs(a4.sin_port);
}

static int read_peers(struct wb_cql_topology *t, struct wb_cql_session *s, unsigned port,
                      struct wb_err *err)
{
    struct wb_cql_view cell[PEER_COLUMNS] = {{0}};
    struct wb_cql_rows rows;
    unsigned columns = PEER_COLUMNS;
    int rc = wb_cql_query(s, ask_peers_v2, err);

    if (rc == -WB_INVALID) { /* no such table */
        columns = PORT;
        rc = wb_cql_query(s, ask_peers, err);
    }
    if (rc < 0)
        return rc;
    if (!wb_cql_take_rows(&s->answer, &rows) || rows.ncolumns != columns)
        return damaged(s, ask_peers_v2, err);
    for (uint32_t i = 0; i < rows.nrows && !rows.cells.bad; i++) {
        for (unsigned k = 0; k < columns; k++)
            cell[k] = wb_cql_take_bytes(&rows.cells);
        if (!rows.cells.bad)
            take_peer(&t->nodes, cell, port);
    }
    return rows.cells.bad ? damaged(s, ask_peers_v2, err) : 0;
}

int wb_cql_topology_read(struct wb_cql_topology *t, struct wb_cql_session *s,
                         const struct sockaddr *addr, socklen_t len, struct wb_err *err)
{
    int rc;

    *t = (struct wb_cql_topology){0};
    rc = read_local(t, s, addr, len, err);
    return rc == 0 ? read_peers(t, s, port_of(addr), err) : rc;
}

void wb_cql_topology_release(struct wb_cql_topology *t)
{
    wb_cql_nodes_release(&t->nodes);
    free(t->partitioner);
    free(t->release);
    *t = (struct wb_cql_topology){0};
}

static unsigned copies_of(struct wb_cql_view v)
{
    WB_AUTO_FREE char *text = text_of(v);
    int64_t n = 0;

    if (!text || wb_parse_int(text, 0, 1000, &n, NULL) < 0)
        return 0;
    return (unsigned)n;
}

/* map<text, text> of system_schema.keyspaces. */
static int take_replication(struct wb_cql_view v, const char *keyspace, const char *datacentre,
                            struct wb_cql_replication *out, struct wb_err *err)
{
    struct wb_cql_cursor c = wb_cql_cursor(v.p, v.n);
    struct wb_cql_view class = {0};
    unsigned simple = 0, here = 0;

    for (uint32_t n = v.p ? wb_cql_take32(&c) : 0; n > 0 && !c.bad; n--) {
        struct wb_cql_view key = wb_cql_take_bytes(&c), value = wb_cql_take_bytes(&c);
        if (wb_cql_view_is(key, "class"))
            class = value;
        else if (wb_cql_view_is(key, "replication_factor"))
            simple = copies_of(value);
        else if (wb_cql_view_is(key, datacentre))
            here = copies_of(value);
    }
    if (wb_cql_view_is(class, "org.apache.cassandra.locator.SimpleStrategy"))
        *out = (struct wb_cql_replication){.simple = true, .copies = simple};
    else if (wb_cql_view_is(class, "org.apache.cassandra.locator.NetworkTopologyStrategy"))
        *out = (struct wb_cql_replication){.copies = here};
    else
        return wb_fail(err, WB_UNSUPPORTED,
                       "keyspace %s: replication %.*s is not known here; use --routing "
                       "round-robin",
                       keyspace, (int)class.n, class.p ? class.p : "");
    return 0;
}

int wb_cql_replication_read(struct wb_cql_session *s, const char *keyspace, const char *datacentre,
                            struct wb_cql_replication *out, struct wb_err *err)
{
    WB_AUTO_FREE char *ask = wb_strf(
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '%s'", keyspace);
    struct wb_cql_rows rows;
    int rc = wb_cql_query(s, ask, err);

    if (rc < 0)
        return rc;
    if (!wb_cql_take_rows(&s->answer, &rows) || rows.ncolumns != 1)
        return damaged(s, ask, err);
    if (rows.nrows == 0)
        return wb_fail(err, WB_NOT_FOUND, "%s has no keyspace '%s'; --load makes it", s->wire.name,
                       keyspace);
    return take_replication(wb_cql_take_bytes(&rows.cells), keyspace, datacentre, out, err);
}
