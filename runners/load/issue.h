/*
 * Parts of issuing an operation that streams with and without a split have in common. Private to
 * issue.c and shard.c.
 */
#ifndef WB_LOAD_ISSUE_H
#define WB_LOAD_ISSUE_H

#include "runners/load/worker.h"

#define WB_ISSUE_BURST 512 /* most arrivals issued in one turn, so that replies are read */

static inline bool wb_issue_has_room(const struct wb_worker *w, const struct wb_conn *c)
{
    return c->state == WB_CONN_UP && wb_conn_free(c) > 0 &&
           c->out_len + w->request_max <= c->out_cap;
}

static inline struct wb_slot *wb_issue_next_slot(struct wb_conn *c)
{
    return &c->slots[c->tail & c->mask];
}

/* Appends one operation to a connection that has room; s is its slot, filled but for `written`. */
static inline void wb_issue_put(struct wb_worker *w, struct wb_conn *c, struct wb_slot *s)
{
    s->written = w->now;
    c->out_len =
        (size_t)(w->protocol->build(w->context, c, s, wb_worker_key(w, s), c->out + c->out_len) -
                 c->out);
    c->tail++;
    w->live++;
    w->cur->phase[s->phase].op[s->op].issued++;
    if (__builtin_expect(s->flags & WB_SLOT_VERIFY, 0))
        w->cur->phase[s->phase].verified++;
}

static inline uint8_t wb_issue_verify_flag(const struct wb_worker *w, uint8_t op, uint64_t index)
{
    if (w->verify_below == 0 || op != w->protocol->read_op)
        return 0;
    return wb_keys_hash(w->plan->data.values.seed ^ w->plan->data.keys.seed, index) <=
                   w->verify_below
               ? WB_SLOT_VERIFY
               : 0;
}

static inline uint8_t wb_issue_arrival_phase(const struct wb_worker *w, int64_t at)
{
    return at < w->warm_end ? WB_PHASE_WARM_UP : WB_PHASE_MEASURE;
}

/* Which key the i-th of the sample is: one in each equal piece of the key space. */
uint64_t wb_issue_sample_key(const struct wb_load_plan *p, uint64_t i);
/* Operations per second that this thread may issue when it catches up. */
double wb_issue_budget_rate(const struct wb_worker *w);
/* Takes one from the catch-up budget; an arrival that is on time may always go. */
bool wb_issue_take_budget(struct wb_worker *w, int64_t at);

#endif
