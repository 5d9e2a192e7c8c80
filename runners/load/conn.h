/*
 * One connection: a socket, its request buffer and the operations in flight on it, in order.
 *
 *     head          stamped        tail          (running counters, index = counter & mask)
 *      | expired... | in flight    | not yet sent |
 *
 * Invariants: head <= head + expired <= tail, head <= stamped <= tail, tail - head <= depth. A
 * slot is expired when its time-out passed; it stays until its late reply comes or the connection
 * is closed. A connection with an expired slot takes no new operation.
 *
 * With streams replies come in any order: a slot keeps its stream number and is moved to the head
 * when its reply comes, so that the picture above holds; between head + expired and stamped there
 * is then no order. Numbers of expired slots are not used again before their late replies came;
 * they do not count against the depth, and the connection goes on until the ring is full of them or
 * the peer was silent for the whole time-out.
 */
#ifndef WB_LOAD_CONN_H
#define WB_LOAD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runners/load/job.h"
#include "server/base/err.h"

struct wb_protocol;
struct wb_tls_conn;
struct wb_worker;

enum wb_slot_flags {
    WB_SLOT_VERIFY = 1,  /* compare what comes back */
    WB_SLOT_WAITED = 2,  /* its arrival waited for a free slot */
    WB_SLOT_EXPIRED = 4, /* counted as timed out; a reply is late */
    WB_SLOT_PARKED = 8,  /* the protocol will send it again */
    WB_SLOT_AGAIN = 16,  /* the protocol has done so, or will */
    WB_SLOT_TXN = 32,    /* of a transaction */
    WB_SLOT_ASK = 64,    /* sent with a word in front that another node asked for */
    WB_SLOT_MOVED = 128, /* sent on by another instance: `written` is of the first time */
};

#define WB_SLOT_HOP 16

struct wb_slot {
    int64_t scheduled; /* intended start, ns monotonic; closed loop: when issued */
    int64_t written;   /* handed to the kernel; until then when issued */
    uint64_t index;    /* of the operation in the stream; loading, or of a transaction: the key */
    uint8_t op, phase, flags;
    uint8_t attempt; /* loading: tries before this one; from WB_SLOT_HOP on: times sent on */
    uint32_t txn;    /* TXN: which of the worker's */
};

enum wb_conn_state {
    WB_CONN_DOWN,
    WB_CONN_CONNECTING,
    WB_CONN_SECURING, /* TLS handshake */
    WB_CONN_GREETING,
    WB_CONN_UP
};

#define WB_STREAMS_MAX 16384 /* in flight on a connection with streams, expired ones included */

struct wb_conn {
    int fd;                  /* -1 when down or without socket */
    struct wb_tls_conn *tls; /* NULL: plain */
    uint8_t state;
    bool dirty;    /* in the list of those to send */
    bool ready;    /* in the ring of those with a free slot */
    bool want_out; /* waits for room in the socket */
    uint32_t head, stamped, tail, expired;
    uint32_t mask, depth;
    struct wb_slot *slots;
    uint16_t *stream_at; /* with streams: number of each place of the ring, used or free */
    uint16_t *place_of;  /* the other way round */
    char *out;
    size_t out_len, out_sent, out_cap; /* out_cap: for requests; control_max is behind */
    void *proto;                       /* the protocol's state */
    struct wb_conn *next_ready, *prev_ready, *next_dirty;
    size_t target;
    unsigned way;               /* which address of the target is tried */
    int64_t retry_at, deadline; /* DOWN: next try; CONNECTING: until when */
    int64_t back_off_ns;
    int64_t heard;  /* with streams: when bytes came last */
    int last_errno; /* of the last failed try */
};

/* Bytes a connection of this job needs. */
int64_t wb_conn_memory(const struct wb_load_job *job);
void wb_conn_init(struct wb_conn *c, const struct wb_load_job *job, size_t request_max,
                  size_t state_size);
void wb_conn_release(struct wb_conn *c);

/* Gives a fresh connection what its protocol needs beside the usual: a ring for streams, room for
 * messages of its own. */
void wb_conn_extend(struct wb_conn *c, const struct wb_protocol *p);

static inline uint32_t wb_conn_in_flight(const struct wb_conn *c)
{
    return c->tail - c->head;
}

/* How many operations more it may have in flight. */
static inline uint32_t wb_conn_free(const struct wb_conn *c)
{
    uint32_t waiting = wb_conn_in_flight(c) - c->expired, places;

    if (!c->stream_at)
        return c->expired ? 0 : c->depth - waiting;
    places = c->mask + 1 - wb_conn_in_flight(c);
    return waiting >= c->depth ? 0 : c->depth - waiting < places ? c->depth - waiting : places;
}

/* The number of a slot in flight or about to be. */
static inline uint16_t wb_conn_stream(const struct wb_conn *c, const struct wb_slot *s)
{
    return c->stream_at[s - c->slots];
}

static inline void wb_conn_swap(struct wb_conn *c, uint32_t a, uint32_t b)
{
    struct wb_slot slot = c->slots[a];
    uint16_t stream = c->stream_at[a];

    c->slots[a] = c->slots[b];
    c->slots[b] = slot;
    c->stream_at[a] = c->stream_at[b];
    c->stream_at[b] = stream;
    c->place_of[c->stream_at[a]] = (uint16_t)a;
    c->place_of[stream] = (uint16_t)b;
}

/* Puts the sent operation with this number to the head, where wb_worker_expects finds it. False
 * when there is none. */
static inline bool wb_conn_find(struct wb_conn *c, uint32_t stream)
{
    uint32_t place, at, head = c->head & c->mask;

    if (stream > c->mask)
        return false;
    place = c->place_of[stream];
    at = (place - c->head) & c->mask;
    if (at >= c->stamped - c->head)
        return false;
    if (at > c->expired && c->expired > 0) { /* the expired ones stay together */
        uint32_t first = (c->head + c->expired) & c->mask;
        wb_conn_swap(c, place, first);
        place = first;
    }
    if (place != head)
        wb_conn_swap(c, place, head);
    return true;
}

/* Appends n bytes of the protocol's own to what is sent next; at most control_max in all at a
 * time. False when there is no room. */
bool wb_conn_say(struct wb_worker *w, struct wb_conn *c, const void *data, size_t n);
/* The dialogue that greet began has come to a good end. */
void wb_conn_greeted(struct wb_worker *w, struct wb_conn *c);

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
