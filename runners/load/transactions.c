#include "runners/load/transactions.h"

#include <stdlib.h>
#include <string.h>

#include "runners/load/issue.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define NONE UINT32_MAX

/* --- what is drawn --- */

int wb_txn_plan_init(struct wb_txn_plan *p, const struct wb_txn_kind *kind, int n, uint64_t seed,
                     const struct wb_protocol *protocol, struct wb_err *err)
{
    *p = (struct wb_txn_plan){.n = n, .seed = wb_mix64(seed, 't')};
    for (int k = 0; k < n; k++) {
        p->kind[k] = kind[k];
        for (int i = 0; i < kind[k].nsteps; i++) {
            int op = wb_protocol_op(protocol, kind[k].step[i].op);
            struct wb_buf list = WB_BUF_INIT(256);
            if (op >= 0) {
                p->op[k][i] = (uint8_t)op;
                continue;
            }
            for (int o = 0; protocol->ops[o]; o++)
                wb_buf_addf(&list, "%s%s", o ? ", " : "", protocol->ops[o]);
            (void)wb_fail(err, WB_INVALID,
                          "transactions: %s: this protocol has no operation '%s' (it has: %s)",
                          kind[k].name, kind[k].step[i].op, wb_buf_str(&list));
            wb_buf_release(&list);
            return -WB_INVALID;
        }
    }
    return 0;
}

static uint64_t draw(uint64_t hash, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)hash * n) >> 64);
}

int64_t wb_txn_repeats(const struct wb_txn_plan *p, int kind, int step, uint64_t index)
{
    const struct wb_txn_step *s = &p->kind[kind].step[step];

    if (s->least == s->most)
        return s->least;
    return s->least + (int64_t)draw(wb_keys_hash(p->seed + (uint64_t)step, index),
                                    (uint64_t)(s->most - s->least) + 1);
}

uint64_t wb_txn_key(const struct wb_txn_plan *p, int kind, int step, int64_t repetition,
                    uint64_t own, uint64_t n)
{
    if (!p->kind[kind].step[step].derived)
        return own;
    return draw(
        wb_keys_hash(wb_keys_hash(~p->seed, own), (uint64_t)step << 32 | (uint64_t)repetition), n);
}

/* --- a worker's transactions --- */

struct txn {
    int64_t scheduled, begun;
    uint64_t index, key;
    int64_t repeats, issued; /* of the current step */
    uint32_t in_flight;
    uint32_t next; /* in the list of those that wait, or of the free ones */
    uint8_t kind, step, phase;
    bool waited; /* for room, before it began */
    bool failed, timed_out, listed, used;
};

struct wb_txns {
    const struct wb_txn_plan *plan;
    uint32_t size, used;
    uint32_t free;        /* list */
    uint32_t first, last; /* those with an operation to issue, in order; NONE: empty */
    struct txn *txn;
};

struct wb_txns *wb_txns_new(const struct wb_load_plan *plan, uint64_t most)
{
    struct wb_txns *t;

    if (plan->txn.n == 0)
        return NULL;
    t = wb_calloc(1, sizeof(*t));
    t->plan = &plan->txn;
    t->size = most < WB_TXN_ACTIVE_MAX ? (uint32_t)most : WB_TXN_ACTIVE_MAX;
    t->txn = wb_calloc(t->size, sizeof(*t->txn));
    return t;
}

void wb_txns_free(struct wb_txns *t)
{
    if (t)
        free(t->txn);
    free(t);
}

void wb_txns_begin(struct wb_worker *w)
{
    struct wb_txns *t = w->txns;

    if (!t)
        return;
    t->used = 0;
    t->first = t->last = NONE;
    t->free = 0;
    for (uint32_t i = 0; i < t->size; i++)
        t->txn[i] = (struct txn){.next = i + 1 < t->size ? i + 1 : NONE};
}

static void enlist(struct wb_txns *t, uint32_t id)
{
    struct txn *x = &t->txn[id];

    if (x->listed)
        return;
    x->listed = true;
    x->next = NONE;
    if (t->first == NONE)
        t->first = id;
    else
        t->txn[t->last].next = id;
    t->last = id;
}

static uint32_t delist(struct wb_txns *t)
{
    uint32_t id = t->first;

    t->first = t->txn[id].next;
    if (t->first == NONE)
        t->last = NONE;
    t->txn[id].listed = false;
    return id;
}

static void release(struct wb_txns *t, uint32_t id)
{
    t->txn[id] = (struct txn){.next = t->free};
    t->free = id;
    t->used--;
}

/* Records how a transaction ended. */
static void finish(struct wb_worker *w, uint32_t id, int64_t at)
{
    struct txn *x = &w->txns->txn[id];
    struct wb_phase_stats *ph = &w->cur->phase[x->phase];
    struct wb_op_stats *o = &ph->txn[x->kind];

    if (x->failed) {
        o->failed++;
    } else {
        o->ok++;
        ph->txn_done_in_window += w->in_window;
        wb_hist_record(&o->service, at - x->begun);
    }
    if (w->open && (!x->failed || x->timed_out))
        wb_hist_record(&o->response, at - x->scheduled);
    release(w->txns, id);
}

void wb_txns_ended(struct wb_worker *w, const struct wb_slot *s, bool ok, bool timed_out,
                   int64_t at)
{
    struct wb_txns *t = w->txns;
    struct txn *x = &t->txn[s->txn];
    const struct wb_txn_kind *kind = &t->plan->kind[x->kind];

    x->in_flight--;
    x->failed |= !ok;
    x->timed_out |= timed_out;
    if (!x->failed && x->issued == x->repeats && x->in_flight == 0 && x->step + 1 < kind->nsteps) {
        x->step++;
        x->issued = 0;
        x->repeats = wb_txn_repeats(t->plan, x->kind, x->step, x->index);
    }
    if (x->in_flight == 0 && (x->failed || x->issued == x->repeats)) {
        if (!x->listed)
            finish(w, s->txn, at);
    } else if (!x->failed && x->issued < x->repeats &&
               (x->in_flight == 0 || kind->step[x->step].at_once)) {
        enlist(t, s->txn);
    }
}

/* The next connection with room for a key; NULL when there is none. */
static struct wb_conn *room_for(struct wb_worker *w, uint64_t key, uint64_t index)
{
    return w->shard ? w->shard[wb_shard_of_key(w, key, index)].ready : w->ready;
}

static void turn(struct wb_worker *w, struct wb_conn *c)
{
    if (w->shard)
        w->shard[c->target].ready = c->next_ready;
    else
        w->ready = c->next_ready;
    wb_worker_update_ready(w, c);
}

/* Issues operations of one transaction while there is room; false when there is none. */
static bool issue(struct wb_worker *w, uint32_t id)
{
    struct txn *x = &w->txns->txn[id];
    const struct wb_txn_plan *p = w->txns->plan;
    bool at_once = p->kind[x->kind].step[x->step].at_once;

    while (x->issued < x->repeats && (x->in_flight == 0 || at_once)) {
        uint64_t key = wb_txn_key(p, x->kind, x->step, x->issued, x->key, w->plan->data.keys.n);
        struct wb_conn *c = room_for(w, key, x->index + (uint64_t)x->issued);
        struct wb_slot *s;
        bool first = x->step == 0 && x->issued == 0;
        if (!c)
            return false;
        s = wb_issue_next_slot(c);
        *s = (struct wb_slot){.scheduled = first ? x->scheduled : w->now,
                              .index = key,
                              .op = p->op[x->kind][x->step],
                              .phase = x->phase,
                              .flags = WB_SLOT_TXN,
                              .txn = id};
        s->flags |= wb_issue_verify_flag(w, s->op, x->index + (uint64_t)x->issued);
        if (first && x->waited)
            s->flags |= WB_SLOT_WAITED;
        x->issued++;
        x->in_flight++;
        wb_issue_put(w, c, s);
        wb_worker_mark_dirty(w, c);
        turn(w, c);
    }
    return true;
}

static bool any_room(const struct wb_worker *w)
{
    if (!w->shard)
        return w->ready != NULL;
    for (uint32_t i = 0; i < w->nshards; i++)
        if (w->shard[i].ready)
            return true;
    return false;
}

bool wb_txns_room(const struct wb_worker *w)
{
    return w->txns->free != NONE && w->txns->first == NONE && any_room(w);
}

bool wb_txns_active(const struct wb_worker *w)
{
    return w->txns && w->txns->used > 0;
}

/* Those that wait, each once: one whose connections are full does not hold up the others. */
static void issue_waiting(struct wb_worker *w)
{
    struct wb_txns *t = w->txns;
    uint32_t end = t->last;

    for (bool more = t->first != NONE; more && any_room(w);) {
        uint32_t id = delist(t);
        struct txn *x = &t->txn[id];
        more = id != end && t->first != NONE;
        if (x->failed) {
            if (x->in_flight == 0)
                finish(w, id, w->now);
        } else if (!issue(w, id)) {
            enlist(t, id);
        }
    }
}

static void start(struct wb_worker *w, uint64_t index, int64_t scheduled, uint8_t phase)
{
    struct wb_txns *t = w->txns;
    uint32_t id = t->free;
    struct txn *x = &t->txn[id];

    t->free = x->next;
    t->used++;
    *x = (struct txn){.scheduled = scheduled,
                      .begun = w->now,
                      .index = index,
                      .key = wb_keys_at(&w->plan->data.keys, index),
                      .kind = wb_mix_at(&w->plan->mix, index),
                      .phase = phase,
                      .waited = scheduled <= w->waiting_since,
                      .used = true};
    x->repeats = wb_txn_repeats(t->plan, x->kind, 0, index);
    w->cur->phase[phase].txn[x->kind].issued++;
    w->cur->phase[phase].cap_waits += x->waited;
    if (w->open)
        wb_hist_record(&w->cur->phase[phase].txn[x->kind].lag, w->now - scheduled);
    if (!issue(w, id))
        enlist(t, id);
}

static void start_due(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;

    for (int n = 0; w->over || n < WB_ISSUE_BURST; n++) {
        int64_t at = w->start + w->due.at;
        uint8_t phase = wb_issue_arrival_phase(w, at);
        if (at > w->now || at >= w->end)
            return;
        if (!wb_txns_room(w) && job->catch_up == WB_LOAD_DROP) {
            w->cur->phase[phase].txn_dropped++;
        } else if (!wb_txns_room(w) ||
                   (job->catch_up == WB_LOAD_CAPPED && !wb_issue_take_budget(w, at))) {
            w->waiting_since = w->now;
            return;
        } else {
            start(w, w->due.k, at, phase);
        }
        w->taken_total++;
        wb_arrivals_next(&w->due);
    }
}

static void start_closed(struct wb_worker *w)
{
    bool measured = w->now >= w->warm_end;

    while (wb_txns_room(w) && w->now < w->end && w->now >= w->start &&
           (!measured || w->quota > 0)) {
        w->quota -= measured;
        start(w, w->next, w->now, measured ? WB_PHASE_MEASURE : WB_PHASE_WARM_UP);
        w->next += w->step;
    }
}

void wb_txns_go(struct wb_worker *w)
{
    issue_waiting(w);
    if (w->open)
        start_due(w);
    else if (!w->over)
        start_closed(w);
}

void wb_txns_censor(struct wb_worker *w)
{
    struct wb_txns *t = w->txns;

    for (uint32_t i = 0; i < t->size && t->used > 0; i++) {
        struct txn *x = &t->txn[i];
        struct wb_op_stats *o = &w->cur->phase[x->phase].txn[x->kind];
        if (!x->used)
            continue;
        o->censored++;
        if (w->open)
            wb_hist_record(&o->response, w->now - x->scheduled);
        release(t, i);
    }
    t->first = t->last = NONE;
    for (; w->open && w->start + w->due.at < w->end; wb_arrivals_next(&w->due)) {
        int64_t at = w->start + w->due.at;
        struct wb_op_stats *o =
            &w->cur->phase[wb_issue_arrival_phase(w, at)].txn[wb_mix_at(&w->plan->mix, w->due.k)];
        o->censored++;
        wb_hist_record(&o->response, w->end - at);
        w->backlog_at_end++;
        w->taken_total++;
    }
}
