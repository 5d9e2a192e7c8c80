/*
 * One connection: a socket, its request buffer and the operations in flight on it, in order.
 *
 *     head          stamped        tail          (running counters, index = counter & mask)
 *      | expired... | in flight    | not yet sent |
 *
 * Invariants: head <= head + expired <= tail, head <= stamped <= tail, tail - head <= depth. A
 * slot is expired when its time-out passed; it stays until its late reply comes or the connection
 * is closed. A connection with an expired slot takes no new operation.
 */
#ifndef WB_LOAD_CONN_H
#define WB_LOAD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runners/load/job.h"
#include "server/base/err.h"

struct wb_worker;

enum wb_slot_flags {
    WB_SLOT_VERIFY = 1,  /* compare what comes back */
    WB_SLOT_WAITED = 2,  /* its arrival waited for a free slot */
    WB_SLOT_EXPIRED = 4, /* counted as timed out; a reply is late */
};

struct wb_slot {
    int64_t scheduled; /* intended start, ns monotonic; closed loop: when issued */
    int64_t written;   /* handed to the kernel; until then when issued */
    uint64_t index;    /* of the operation in the stream; while loading: the key */
    uint8_t op, phase, flags, attempt;
    uint32_t unused;
};

enum wb_conn_state { WB_CONN_DOWN, WB_CONN_CONNECTING, WB_CONN_UP };

struct wb_conn {
    int fd; /* -1 when down or without socket */
    uint8_t state;
    bool dirty;    /* in the list of those to send */
    bool ready;    /* in the ring of those with a free slot */
    bool want_out; /* waits for room in the socket */
    uint32_t head, stamped, tail, expired;
    uint32_t mask, depth;
    struct wb_slot *slots;
    char *out;
    size_t out_len, out_sent, out_cap;
    void *proto; /* the protocol's state */
    struct wb_conn *next_ready, *prev_ready, *next_dirty;
    size_t target;
    unsigned way;               /* which address of the target is tried */
    int64_t retry_at, deadline; /* DOWN: next try; CONNECTING: until when */
    int64_t back_off_ns;
    int last_errno; /* of the last failed try */
};

/* Bytes a connection of this job needs. */
int64_t wb_conn_memory(const struct wb_load_job *job);
void wb_conn_init(struct wb_conn *c, const struct wb_load_job *job, size_t request_max,
                  size_t state_size);
void wb_conn_release(struct wb_conn *c);

static inline uint32_t wb_conn_in_flight(const struct wb_conn *c)
{
    return c->tail - c->head;
}

/* Starts connecting (without waiting). A try that fails at once leaves it DOWN with retry_at. */
void wb_conn_open(struct wb_worker *w, struct wb_conn *c);
/* Takes the epoll events of a connection: connect result, replies, room to send. */
void wb_conn_event(struct wb_worker *w, struct wb_conn *c, uint32_t events);
/* Stamps and sends what is in the buffer: one send call. */
void wb_conn_flush(struct wb_worker *w, struct wb_conn *c);
/* Ends the connection: operations in flight fail, a new try is planned. `first` is the class of
 * the oldest one, the others are `closed`. */
void wb_conn_break(struct wb_worker *w, struct wb_conn *c, int first);
/* Fails operations whose time-out passed, closes a connection that has only expired ones, tries
 * again where it is time. */
void wb_conn_scan(struct wb_worker *w, struct wb_conn *c);

#endif
