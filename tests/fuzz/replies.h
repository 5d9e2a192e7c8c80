/*
 * Any bytes as replies of a server, in pieces of any size, to a few operations in flight. The first
 * byte gives the size of the pieces, the next the operations. Every operation ends at most once,
 * and the counts agree with what is left in flight.
 */
#ifndef WB_TESTS_FUZZ_REPLIES_H
#define WB_TESTS_FUZZ_REPLIES_H

#include <stdlib.h>
#include <string.h>

#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define DEPTH 16

struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_stats stats;
    struct wb_worker w;
    struct wb_conn c;
    unsigned nops;
};

/* The i-th operation follows from a byte of choice; every third is verified. */
static void in_flight(struct rig *r, uint8_t kinds)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        struct wb_slot *s = &r->c.slots[r->c.tail & r->c.mask];
        *s = (struct wb_slot){
            .written = 1,
            .index = i,
            .op = (uint8_t)((unsigned)(kinds >> (i % 8) | kinds << (8 - i % 8)) % r->nops),
            .phase = WB_PHASE_MEASURE,
            .flags = i % 3 == 0 ? WB_SLOT_VERIFY : 0};
        r->c.tail++;
        r->c.stamped++;
        r->w.live++;
    }
}

static void feed(struct rig *r, const uint8_t *data, size_t size, size_t piece)
{
    int rc = 0;

    for (size_t at = 0; at < size && rc == 0;) {
        size_t k = size - at < piece ? size - at : piece;
        char *copy = wb_calloc(k, 1);
        memcpy(copy, data + at, k);
        rc = r->w.protocol->feed(r->w.context, &r->w, &r->c, copy, k);
        free(copy);
        at += k;
    }
}

/* version: of RESP. The answer to the greeting of a protocol that has one is read as well. */
static struct rig *rig_new(const struct wb_protocol *protocol, int version)
{
    struct rig *r = wb_calloc(1, sizeof(*r));

    wb_load_job_init(&r->job);
    r->job.depth = DEPTH;
    r->job.resp_version = version;
    r->job.cql.user = wb_strdup("user");
    (void)setenv("WB_LOAD_PASSWORD", "word", 1);
    r->job.value_bytes = 8;
    r->job.content = WB_LOAD_ZEROS;
    r->plan.job = r->plan.data.job = &r->job;
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    while (protocol->ops[r->nops])
        r->nops++;
    wb_stats_init(&r->stats, (int)r->nops);
    r->w.plan = &r->plan;
    r->w.protocol = protocol;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 10;
    r->w.cur = &r->stats;
    if (protocol->setup(&r->plan.data, &r->w.context, NULL) < 0)
        abort();
    wb_conn_init(&r->c, &r->job, protocol->request_max(r->w.context), protocol->conn_size);
    wb_conn_extend(&r->c, protocol);
    return r;
}

static int fuzz_replies(struct rig *r, const uint8_t *data, size_t size)
{
    struct wb_phase_sum sum;

    if (size < 2)
        return 0;
    wb_stats_clear(&r->stats);
    r->w.protocol->reset(r->w.context, r->c.proto);
    r->c.head = r->c.tail = r->c.stamped = 0;
    r->w.live = 0;
    r->w.dirty = NULL;
    r->c.dirty = false;
    r->c.out_len = r->c.out_sent = 0;
    r->c.state = WB_CONN_UP;
    if (data[1] == 255) {
        r->c.state = WB_CONN_GREETING;
        r->w.protocol->greet(r->w.context, &r->w, &r->c);
    }
    in_flight(r, data[1]);
    feed(r, data + 2, size - 2, data[0] == 0 ? size : data[0]);
    sum = wb_phase_total(&r->stats, WB_PHASE_MEASURE);
    if (sum.ok + sum.failed + r->w.live != DEPTH || wb_conn_in_flight(&r->c) != r->w.live)
        abort();
    return 0;
}

#endif
