/*
 * What a run against CQL is made of: its options checked, the statements, the schema. Private to
 * the CQL protocol.
 */
#ifndef WB_LOAD_CQL_SETUP_H
#define WB_LOAD_CQL_SETUP_H

#include "runners/load/protocol.h"
#include "runners/load/protocols/cql_topology.h"
#include "runners/load/target.h"

/* In the order of wb_ops_cql. */
enum wb_cql_op {
    WB_CQL_SELECT,
    WB_CQL_INSERT,
    WB_CQL_UPDATE,
    WB_CQL_DELETE,
    WB_CQL_INSERTS, /* a batch of them */
    WB_CQL_OPS
};

enum wb_cql_batch { WB_CQL_LOGGED, WB_CQL_UNLOGGED };

#define WB_CQL_BATCH_MAX 1000

struct wb_cql {
    const struct wb_load_data *data;
    struct wb_cql_hello hello;
    bool lower; /* an older version of the protocol will do */
    char *password;
    bool route, find; /* by token; servers that were not named, too */
    char *datacentre;
    struct wb_cql_topology topology;
    struct wb_cql_replication replication;
    struct wb_cql_ring ring;
    const char *keyspace, *table, *key_column, *value_column;
    uint16_t consistency[WB_CQL_OPS];
    enum wb_cql_batch batch;
    uint32_t batch_rows, page_rows;
    bool timestamps; /* the client's */
    bool used[WB_CQL_OPS];
    char *text[WB_CQL_OPS]; /* statements; INSERTS is prepared as INSERT */
    char *key_text;         /* of key 0, with room behind it for WB_BUILD_SLACK */
    int64_t unix_us;        /* wall clock minus monotonic clock when the run began */
    size_t request_max;     /* bytes of the longest request with all that is put around it */
    size_t envelope_max;
};

/* Reads the job's options. */
int wb_cql_setup(const struct wb_load_data *data, struct wb_cql **out, struct wb_err *err);
void wb_cql_end(struct wb_cql *q);
/* Reads which servers there are and makes the ones that load goes to the target's addresses. at:
 * the address that the session is connected to. */
int wb_cql_find(struct wb_cql *q, struct wb_cql_session *s, const struct sockaddr *at,
                socklen_t len, struct wb_target *target, struct wb_err *err) WB_MUST_CHECK;
/* Makes the ring, once the keyspace is there. */
int wb_cql_make_ring(struct wb_cql *q, struct wb_cql_session *s, size_t targets,
                     struct wb_err *err) WB_MUST_CHECK;
wb_json *wb_cql_describe(const struct wb_cql *q);
/* Makes keyspace and table where they are not there; all servers agree on the schema afterwards. */
int wb_cql_create(struct wb_cql *q, struct wb_cql_session *s, struct wb_err *err) WB_MUST_CHECK;
/* Prepares each used statement once, for errors that name what is wrong, and checks the types of
 * its columns. */
int wb_cql_check(struct wb_cql *q, struct wb_cql_session *s, struct wb_err *err) WB_MUST_CHECK;
/* Which of the statements an operation executes. */
static inline enum wb_cql_op wb_cql_statement(enum wb_cql_op op)
{
    return op == WB_CQL_INSERTS ? WB_CQL_INSERT : op;
}

#endif
