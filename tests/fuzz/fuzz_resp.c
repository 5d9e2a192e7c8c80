/*
 * Any bytes as replies of a RESP server, in pieces of any size, to a few operations in flight. The
 * first byte gives the size of the pieces, the next the operations. Every operation ends at most
 * once, and the counts agree with what is left in flight.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define DEPTH 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void in_flight(struct wb_worker *w, struct wb_conn *c, uint8_t kinds)
{
    for (int i = 0; i < DEPTH; i++) {
        struct wb_slot *s = &c->slots[c->tail & c->mask];
        *s = (struct wb_slot){.written = 1,
                              .index = (uint64_t)i,
                              .op = kinds >> (i % 8) & 1,
                              .phase = WB_PHASE_MEASURE,
                              .flags = i % 3 == 0 ? WB_SLOT_VERIFY : 0};
        c->tail++;
        c->stamped++;
        w->live++;
    }
}

static void feed(struct wb_worker *w, struct wb_conn *c, const uint8_t *data, size_t size,
                 size_t piece)
{
    int rc = 0;

    for (size_t at = 0; at < size && rc == 0;) {
        size_t k = size - at < piece ? size - at : piece;
        char *copy = wb_calloc(k, 1);
        memcpy(copy, data + at, k);
        rc = wb_protocol_resp.feed(w->context, w, c, copy, k);
        free(copy);
        at += k;
    }
}

struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_stats stats;
    struct wb_worker w;
    struct wb_conn c;
};

static struct rig *rig_new(void)
{
    struct rig *r = wb_calloc(1, sizeof(*r));

    wb_load_job_init(&r->job);
    r->job.depth = DEPTH;
    r->job.value_bytes = 8;
    r->job.zipf_exponent = 1;
    r->job.content = WB_LOAD_ZEROS;
    r->plan.job = &r->job;
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    wb_stats_init(&r->stats, 2);
    r->w.plan = &r->plan;
    r->w.protocol = &wb_protocol_resp;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 10;
    r->w.cur = &r->stats;
    if (wb_protocol_resp.setup(&r->plan.data, &r->w.context, NULL) < 0)
        abort();
    wb_conn_init(&r->c, &r->job, wb_protocol_resp.request_max(r->w.context),
                 wb_protocol_resp.conn_size);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig *r; /* making one costs more than a run */
    struct wb_phase_sum sum;

    if (size < 2)
        return 0;
    if (!r)
        r = rig_new();
    wb_stats_clear(&r->stats);
    wb_protocol_resp.reset(r->w.context, r->c.proto);
    r->c.head = r->c.tail = r->c.stamped = 0;
    r->w.live = 0;
    in_flight(&r->w, &r->c, data[1]);
    feed(&r->w, &r->c, data + 2, size - 2, data[0] == 0 ? size : data[0]);
    sum = wb_phase_total(&r->stats, WB_PHASE_MEASURE);
    if (sum.ok + sum.failed + r->w.live != DEPTH || wb_conn_in_flight(&r->c) != r->w.live)
        abort();
    return 0;
}
