/*
 * A connection to one server for questions outside of the load: blocking, with deadlines, one
 * question at a time. Finds out which protocol version the server speaks.
 */
#ifndef WB_LOAD_CQL_SESSION_H
#define WB_LOAD_CQL_SESSION_H

#include "runners/load/protocols/cql_message.h"
#include "runners/load/wire.h"

#define WB_CQL_NEWEST 5
#define WB_CQL_OLDEST 4

struct wb_cql_session {
    struct wb_wire wire;
    int64_t end_ns; /* ns monotonic: no question waits longer; 0: each has its own time */
    struct wb_cql_reader reader;
    struct wb_buf request, out, body;
    struct wb_cql_envelope answer; /* its body is in body */
    bool answered;
};

#define WB_CQL_SESSION_INIT  \
    {                        \
        .wire = WB_WIRE_INIT \
    }

/* Where a server is, and how it is spoken to. */
struct wb_cql_where {
    const char *name; /* "host:port" */
    const struct sockaddr *addr;
    socklen_t len;
    const struct wb_tls *tls; /* NULL: plain */
    const struct wb_cancel *cancel;
    int64_t end_ns; /* of the whole session, ns monotonic; 0: none */
};

/* Connects and says hello; h->version is tried first and lowered to what the server speaks where
 * `lower` allows it. WB_UNAVAILABLE with the reason when there is nobody or the server refuses. */
int wb_cql_session_open(struct wb_cql_session *s, const struct wb_cql_where *at,
                        struct wb_cql_hello *h, bool lower, struct wb_err *err) WB_MUST_CHECK;
void wb_cql_session_close(struct wb_cql_session *s);

/* Sends s->request (one envelope, cleared afterwards) and waits for the answer, which is in
 * s->answer until the next question. An answer of ERROR is one, too. */
int wb_cql_ask(struct wb_cql_session *s, struct wb_err *err) WB_MUST_CHECK;
/* Asks a query at consistency ONE; an ERROR of the server is a failure (WB_INVALID). */
int wb_cql_query(struct wb_cql_session *s, const char *text, struct wb_err *err) WB_MUST_CHECK;

#endif
