/*
 * Asks a server which servers there are, where they are and what they keep.
 */
#ifndef WB_LOAD_CQL_TOPOLOGY_H
#define WB_LOAD_CQL_TOPOLOGY_H

#include "runners/load/protocols/cql_ring.h"
#include "runners/load/protocols/cql_session.h"

struct wb_cql_topology {
    struct wb_cql_nodes nodes; /* the first one is the one that was asked */
    char *partitioner, *release;
};

/* system.local and system.peers_v2 (before Cassandra 4: system.peers, with the port of the asked
 * one). addr is where the session is connected to. Rows that lack an address, tokens or a
 * datacentre are counted, not taken. */
int wb_cql_topology_read(struct wb_cql_topology *t, struct wb_cql_session *s,
                         const struct sockaddr *addr, socklen_t len,
                         struct wb_err *err) WB_MUST_CHECK;
void wb_cql_topology_release(struct wb_cql_topology *t);

/* How a keyspace is replicated, as far as one datacentre sees it. WB_NOT_FOUND when there is no
 * such keyspace, WB_UNSUPPORTED for a strategy that is not known. */
int wb_cql_replication_read(struct wb_cql_session *s, const char *keyspace, const char *datacentre,
                            struct wb_cql_replication *out, struct wb_err *err) WB_MUST_CHECK;

#endif
