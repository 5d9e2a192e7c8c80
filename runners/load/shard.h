/*
 * Keys split over instances: every key is on one instance, which one is a pure function of the
 * key, in loading and in all phases. Either every n-th key (the client divides), or by the hash
 * slot of its text as a Redis cluster does (CRC-16/XMODEM modulo 16384, equal ranges of slots).
 *
 * A thread has one stream of operations whatever the number of instances, the same as without a
 * split. An operation goes to a connection of its key's instance. What is drawn for an instance
 * that has no connection with room waits in its queue, in order, while others go on:
 *
 * - Closed loop: a connection takes the next operation of its instance, and draws from the stream
 *   until there is one. The queues are bounded, so that an instance that is slower than the others
 *   holds back the stream, as it does for clients who wait for it.
 * - Open loop: arrivals are taken when they are due; the time in the queue counts in the response,
 *   because that is measured from the intended start.
 */
#ifndef WB_LOAD_SHARD_H
#define WB_LOAD_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wb_conn;
struct wb_load_plan;
struct wb_keys;
struct wb_slot;
struct wb_worker;

#define WB_SLOTS 16384

struct wb_waiting {
    uint64_t k; /* of the stream */
    int64_t at; /* intended start, ns monotonic; closed loop: unused */
};

/* What a thread keeps for one instance. */
struct wb_shard {
    struct wb_conn *ready; /* ring of connections with room; the next one to get an operation */
    uint64_t next;         /* loading, checking: next row or sample to look at */
    int64_t last_up;       /* when a connection to it was up */
    uint32_t up;           /* connections that are */
    struct wb_waiting *queue;
    uint32_t size, head, tail; /* size is a power of two; running counters */
    uint32_t packed;           /* arrivals put on the next connection so far */
    struct wb_slot *again;     /* operations that another instance sent on, oldest first */
    size_t nagain, again_cap;
};

/* Which of n instances has a key: every n-th. */
static inline uint32_t wb_shard_of(uint64_t key, uint32_t n)
{
    return (uint32_t)(key % n);
}
/* Hash slot of the text of a key. */
uint32_t wb_slot_of(const struct wb_keys *keys, uint64_t key);
/* Which of n instances has a slot: the i-th has those from ceil(WB_SLOTS * i / n) on. */
static inline uint32_t wb_shard_of_slot(uint32_t slot, uint32_t n)
{
    return slot * n / WB_SLOTS;
}
/* Which of the worker's instances has a key, for the operation of this index where several do. */
uint32_t wb_shard_of_key(const struct wb_worker *w, uint64_t key, uint64_t index);

/* Whether operations are sent by their keys. */
bool wb_shards_wanted(const struct wb_load_plan *p);

/* A connection to an instance has come up or gone down. What waits for an instance without any goes
 * to others where the protocol knows some. */
void wb_shard_up(struct wb_worker *w, uint32_t t);
void wb_shard_down(struct wb_worker *w, uint32_t t);
/* Makes the worker's shards; nothing without a split. */
void wb_shards_init(struct wb_worker *w);
void wb_shards_release(struct wb_worker *w);
/* A stage begins: nothing waits, all rows and samples are ahead. */
void wb_shards_begin(struct wb_worker *w);
/* Gives operations to a connection while it has room (closed loop, load, check). */
void wb_shard_refill(struct wb_worker *w, struct wb_conn *c);
/* Gives operations to connections that had room and nothing to do. */
void wb_shards_kick(struct wb_worker *w);
/* Issues arrivals that are due (open loop). */
void wb_shards_issue_due(struct wb_worker *w);
/* The answer to the oldest operation of c says that target t has its key (UINT32_MAX: one that is
 * not known): it is sent there, with the protocol's word in front when ask is set. It is the same
 * operation, its times count from the first. After some hops it fails. Only while
 * wb_worker_expects. */
void wb_shard_redirect(struct wb_worker *w, struct wb_conn *c, uint32_t t, bool ask);
/* Issues what was sent on, where there is room. */
void wb_shards_send_on(struct wb_worker *w);
/* Fails what was sent on and has waited for longer than the time-out. */
void wb_shards_expire(struct wb_worker *w);
/* Takes the next operation that was sent on and waits; false when none does. */
bool wb_shards_take_again(struct wb_worker *w, struct wb_slot *out);
/* Whether all rows or samples were issued. */
bool wb_shards_exhausted(const struct wb_worker *w);
/* The earliest of the times at which instances were last connected. */
int64_t wb_shards_last_up(const struct wb_worker *w);
/* Takes the next arrival that still waits; false when none does. */
bool wb_shards_take_waiting(struct wb_worker *w, struct wb_waiting *out);

#endif
