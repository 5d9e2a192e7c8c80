/*
 * A load protocol: how requests are written and replies are read. The table is constant; what a
 * run needs is in a context made by setup, what a connection needs in conn_size zeroed bytes.
 * To add one: a file in protocols/ and a row in protocols.c; the smallest is protocols/null.c.
 */
#ifndef WB_LOAD_PROTOCOL_H
#define WB_LOAD_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runners/load/keys.h"
#include "runners/load/values.h"
#include "server/base/cancel.h"
#include "server/base/err.h"
#include "server/base/json.h"

/* Bytes behind a request that may be scribbled on: copies can have a fixed size. */
#define WB_BUILD_SLACK 64
#define WB_FEED_LEFT (-2)

struct wb_conn;
struct wb_slot;
struct wb_target;
struct wb_tls;
struct wb_worker;

/* What the run writes and reads; outlives the protocol's context. */
struct wb_load_data {
    const struct wb_load_job *job; /* checked */
    const struct wb_tls *tls;      /* of connections; NULL: plain */
    struct wb_keys keys;
    struct wb_values values;
};

struct wb_protocol {
    const char *name; /* also the scheme of its addresses */
    const char *summary;
    uint16_t port;             /* when an address has none */
    bool no_socket;            /* what is written comes straight back to feed */
    bool streams;              /* requests carry a number and are answered in any order */
    const char *const *ops;    /* names of its operations, NULL-ended, at most WB_LOAD_OPS_MAX */
    uint8_t write_op, read_op; /* which of them writes and reads one row */
    size_t conn_size;          /* bytes of state per connection, zeroed once */
    size_t control_max;        /* room for messages of its own beside requests, per connection */

    /* Once per run, before any connection. May allocate, may not block on a network. */
    int (*setup)(const struct wb_load_data *data, void **context, struct wb_err *err);
    void (*end)(void *context); /* once; NULL is fine */
    /* Optional. Once after setup, before any connection of a worker: may talk to the servers with
     * sockets of its own and add addresses to the target or drop them. Ends early with WB_CANCELLED
     * when the token is set. */
    int (*prepare)(void *context, struct wb_target *target, const struct wb_cancel *cancel,
                   struct wb_err *err);
    /* Optional: which address of the target has a key, for operation `index` of the stream: the one
     * to take, for attempt 1, 2... the ones to take when that is down, UINT32_MAX when there are no
     * more. Asked only when routed() says so after prepare. */
    bool (*routed)(const void *context);
    uint32_t (*route)(const void *context, uint64_t key, uint64_t index, unsigned attempt);
    /* Optional: called by the control thread a few times a second while load goes on. May ask the
     * servers with sockets of its own, for half a second at most. */
    void (*refresh)(void *context, const struct wb_cancel *cancel);
    /* Optional, after prepare: what the protocol found and settled, for the result; owned by the
     * caller. */
    wb_json *(*describe)(const void *context);
    /* Most bytes one request can take. */
    size_t (*request_max)(const void *context);
    /* A connection was made (again): forget half-read replies. */
    void (*reset)(void *context, void *conn_state);
    /* Optional: before conn_state is freed. */
    void (*conn_end)(void *conn_state);
    /* Optional, after reset: begins a dialogue with wb_conn_say. The connection takes operations
     * from the moment feed calls wb_conn_greeted; feed returns -1 when the peer refuses, after
     * wb_worker_refused with the reason. */
    void (*greet)(void *context, struct wb_worker *w, struct wb_conn *c);
    /* Hot. Writes one request at out, which lies behind what c->out has so far, and returns its
     * end. s is its slot (operation, index, flags; wb_conn_stream). There is room for request_max
     * bytes and WB_BUILD_SLACK more that may be overwritten. Cannot fail, does not allocate. */
    char *(*build)(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out);
    /* Optional, hot: c->out is about to be sent. May change what build wrote since the last call,
     * within the room that it was given. */
    void (*seal)(const void *context, struct wb_conn *c);
    /* Hot. Takes n received bytes, calls wb_worker_reply once per reply in the order of the
     * requests; with streams after wb_conn_find, which puts the request in front. Keeps what it
     * needs of a cut reply in its state; data is not valid afterwards. Returns 0, or -1 when the
     * peer broke the protocol, or WB_FEED_LEFT when it is of no use any more (the connection is
     * then closed). */
    int (*feed)(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n);
};

/* By scheme, of n characters; NULL when there is none. */
const struct wb_protocol *wb_protocol_find(const char *scheme, size_t n);
/* All protocols, NULL-ended. */
const struct wb_protocol *const *wb_protocols(void);

/* Names of the operations of a protocol, NULL-ended, in its own order; NULL for an unknown scheme.
 */
const char *const *wb_protocol_ops(const char *scheme);
extern const char *const wb_ops_resp[], *const wb_ops_memcached[], *const wb_ops_cql[],
                                                                       *const wb_ops_null[];

/* Which of its operations has this name, -1 when none has; get and set are the ones that read and
 * write a row in all protocols. */
int wb_protocol_op(const struct wb_protocol *p, const char *name);
/* Whether the mix or a transaction of a job uses an operation. */
bool wb_protocol_used(const struct wb_protocol *p, const struct wb_load_job *job, int op);

extern const struct wb_protocol wb_protocol_resp, wb_protocol_memcached, wb_protocol_cql,
    wb_protocol_null;

#endif
