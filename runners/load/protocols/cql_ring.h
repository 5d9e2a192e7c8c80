/*
 * Servers of a cluster and which of them have a key: the ring of tokens with the replicas of each
 * range, by the rules of Cassandra's SimpleStrategy and NetworkTopologyStrategy.
 */
#ifndef WB_LOAD_CQL_RING_H
#define WB_LOAD_CQL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define WB_CQL_NOWHERE UINT32_MAX
#define WB_CQL_REPLICAS_MAX 16 /* of a key that are told apart */

struct wb_cql_node {
    char *name; /* "host:port" */
    struct sockaddr_storage addr;
    socklen_t len;
    char *datacentre, *rack;
    int64_t *token;
    size_t ntoken;
    uint32_t target; /* among the addresses of the run; WB_CQL_NOWHERE: no load goes there */
};

struct wb_cql_nodes {
    struct wb_cql_node *v;
    size_t n, cap;
    size_t skipped; /* rows that lacked something */
};

void wb_cql_nodes_release(struct wb_cql_nodes *l);

struct wb_cql_replication {
    bool simple;     /* replicas are the next nodes of the ring, wherever they are */
    unsigned copies; /* in all (simple), or in the datacentre */
};

struct wb_cql_ring {
    size_t n;
    int64_t *token;    /* ascending: a range ends with its token */
    uint8_t *copies;   /* replicas of each range that load goes to */
    uint16_t *replica; /* WB_CQL_REPLICAS_MAX for each range; addresses of the run */
    size_t targets;
};

/* Ranges and their replicas among nodes with a target; `datacentre` is where they are. */
void wb_cql_ring_build(struct wb_cql_ring *r, const struct wb_cql_nodes *nodes, size_t targets,
                       const char *datacentre, struct wb_cql_replication how);
void wb_cql_ring_release(struct wb_cql_ring *r);

/* The address for a token: one of its replicas by `draw`, for attempt 1, 2... the others, then all
 * other addresses; WB_CQL_NOWHERE when there are no more. */
uint32_t wb_cql_ring_route(const struct wb_cql_ring *r, int64_t token, uint64_t draw,
                           unsigned attempt);

#endif
