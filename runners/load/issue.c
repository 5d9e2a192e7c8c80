/*
 * Where a worker's next operation comes from and which connection gets it.
 */
#include "runners/load/issue.h"

#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

#define ATTEMPTS 5            /* per row while loading */
#define RETRY_NS (50 * WB_MS) /* first pause of a row that failed */
#define LATE_NS WB_MS         /* arrivals later than this count as catching up */
#define BUDGET_S 0.01         /* seconds of catching up that may be saved */

/* Each instance has a ring of its own where keys are split. */
static struct wb_conn **ring_of(struct wb_worker *w, const struct wb_conn *c)
{
    return w->shard ? &w->shard[c->target].ready : &w->ready;
}

static void ring_insert(struct wb_conn **ring, struct wb_conn *c)
{
    if (!*ring) {
        c->next_ready = c->prev_ready = c;
        *ring = c;
    } else { /* before the next one: last in turn */
        c->next_ready = *ring;
        c->prev_ready = (*ring)->prev_ready;
        c->prev_ready->next_ready = c;
        (*ring)->prev_ready = c;
    }
    c->ready = true;
}

static void ring_remove(struct wb_conn **ring, struct wb_conn *c)
{
    if (c->next_ready == c) {
        *ring = NULL;
    } else {
        c->prev_ready->next_ready = c->next_ready;
        c->next_ready->prev_ready = c->prev_ready;
        if (*ring == c)
            *ring = c->next_ready;
    }
    c->ready = false;
}

void wb_worker_update_ready(struct wb_worker *w, struct wb_conn *c)
{
    bool want = (w->open || w->shard || w->txns) && wb_issue_has_room(w, c);

    if (want && !c->ready)
        ring_insert(ring_of(w, c), c);
    else if (!want && c->ready)
        ring_remove(ring_of(w, c), c);
}

void wb_worker_mark_dirty(struct wb_worker *w, struct wb_conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = w->dirty;
    w->dirty = c;
}

/* Which key the i-th of the sample is: one in each equal piece of the key space. */
uint64_t wb_issue_sample_key(const struct wb_load_plan *p, uint64_t i)
{
    uint64_t rows = p->rows_to - p->rows_from;
    uint64_t from = (uint64_t)((unsigned __int128)rows * i / p->sample);
    uint64_t to = (uint64_t)((unsigned __int128)rows * (i + 1) / p->sample);

    return p->rows_from + from + wb_keys_hash(p->data.keys.seed, i) % (to - from);
}

static bool next_row(struct wb_worker *w, struct wb_slot *s)
{
    s->phase = WB_PHASE_LOAD;
    s->op = w->protocol->write_op;
    if (w->next < w->limit) {
        s->index = w->next++;
        return true;
    }
    if (w->nretry == 0 || w->retry[0].not_before > w->now)
        return false;
    s->index = w->retry[0].key;
    s->attempt = w->retry[0].attempt;
    w->nretry--;
    memmove(w->retry, w->retry + 1, w->nretry * sizeof(*w->retry));
    return true;
}

static bool next_of_sample(struct wb_worker *w, struct wb_slot *s)
{
    if (w->next >= w->limit)
        return false;
    s->phase = WB_PHASE_CHECK;
    s->op = w->protocol->read_op;
    s->flags = WB_SLOT_VERIFY;
    s->index = wb_issue_sample_key(w->plan, w->next);
    w->next += w->step;
    return true;
}

/* Fills a connection while loading and checking. */
static void refill_rows(struct wb_worker *w, struct wb_conn *c)
{
    while (!w->over && wb_issue_has_room(w, c)) {
        struct wb_slot *s = wb_issue_next_slot(c);
        *s = (struct wb_slot){.scheduled = w->now};
        if (w->stage == WB_STAGE_LOAD ? !next_row(w, s) : !next_of_sample(w, s))
            return;
        wb_issue_put(w, c, s);
    }
}

/* Fills a connection in a closed loop: the hot path, with everything that is the same for all of
 * its operations looked at once. */
static void refill_run(struct wb_worker *w, struct wb_conn *c)
{
    const struct wb_load_plan *plan = w->plan;
    char *(*build)(const void *, struct wb_conn *, const struct wb_slot *, uint64_t, char *) =
        w->protocol->build;
    bool measured = w->now >= w->warm_end;
    uint8_t phase = measured ? WB_PHASE_MEASURE : WB_PHASE_WARM_UP;
    struct wb_phase_stats *ph = &w->cur->phase[phase];
    char *out = c->out + c->out_len, *last = c->out + c->out_cap - w->request_max;
    uint32_t n = wb_conn_free(c), first = c->tail;
    uint64_t index = w->next;

    if (w->over || w->now >= w->end || w->now < w->start || c->state != WB_CONN_UP)
        return;
    if (measured && w->quota < n)
        n = (uint32_t)w->quota;
    for (; n > 0 && out <= last; n--, index += w->step) {
        struct wb_slot *s = wb_issue_next_slot(c);
        uint8_t op = wb_mix_at(&plan->mix, index);
        *s = (struct wb_slot){.scheduled = w->now,
                              .written = w->now,
                              .index = index,
                              .op = op,
                              .phase = phase,
                              .flags = wb_issue_verify_flag(w, op, index)};
        ph->verified += s->flags & WB_SLOT_VERIFY;
        ph->op[op].issued++;
        out = build(w->context, c, s, wb_keys_at(&plan->data.keys, index), out);
        c->tail++;
    }
    n = c->tail - first;
    c->out_len = (size_t)(out - c->out);
    w->next = index;
    w->live += n;
    if (measured)
        w->quota -= n;
}

void wb_worker_refill(struct wb_worker *w, struct wb_conn *c)
{
    uint32_t before = c->tail;

    if (__builtin_expect(w->txns != NULL, 0) && w->stage == WB_STAGE_RUN) {
        wb_worker_update_ready(w, c); /* the next turn gives it work */
        return;
    }
    if (__builtin_expect(w->shard != NULL, 0)) {
        wb_shard_refill(w, c);
        return;
    }
    if (w->stage == WB_STAGE_RUN)
        refill_run(w, c);
    else if (w->stage == WB_STAGE_LOAD || w->stage == WB_STAGE_CHECK)
        refill_rows(w, c);
    if (c->tail != before && !c->dirty)
        wb_worker_mark_dirty(w, c);
}

double wb_issue_budget_rate(const struct wb_worker *w)
{
    return w->plan->job->catch_up_times *
           wb_schedule_rate(&w->plan->schedule, w->now > w->start ? w->now - w->start : 0) /
           w->stride;
}

/* Takes one from the catch-up budget; an arrival that is on time may always go. */
bool wb_issue_take_budget(struct wb_worker *w, int64_t at)
{
    double per_s = wb_issue_budget_rate(w), most = per_s * BUDGET_S;

    w->budget += (double)(w->now - w->budget_at) / 1e9 * per_s;
    w->budget_at = w->now;
    if (w->budget > (most > 1 ? most : 1))
        w->budget = most > 1 ? most : 1;
    if (w->budget < 1 && w->now - at > LATE_NS)
        return false;
    w->budget = w->budget > 1 ? w->budget - 1 : 0;
    return true;
}

void wb_worker_issue_due(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;

    if (w->txns) {
        wb_txns_go(w);
        return;
    }
    if (w->shard) {
        wb_shards_issue_due(w);
        return;
    }
    for (int n = 0; w->over || n < WB_ISSUE_BURST; n++) {
        int64_t at = w->start + w->due.at;
        struct wb_conn *c = w->ready;
        uint8_t phase = wb_issue_arrival_phase(w, at);
        if (at > w->now || at >= w->end)
            return;
        if (!c && job->catch_up == WB_LOAD_DROP) {
            w->cur->phase[phase].dropped++;
        } else if (!c || (job->catch_up == WB_LOAD_CAPPED && !wb_issue_take_budget(w, at))) {
            w->waiting_since = w->now;
            return;
        } else {
            struct wb_slot *s = wb_issue_next_slot(c);
            *s = (struct wb_slot){.scheduled = at, .index = w->due.k, .phase = phase};
            s->op = wb_mix_at(&w->plan->mix, s->index);
            s->flags = wb_issue_verify_flag(w, s->op, s->index);
            if (at <= w->waiting_since) {
                s->flags |= WB_SLOT_WAITED;
                w->cur->phase[phase].cap_waits++;
            }
            wb_issue_put(w, c, s);
            wb_worker_mark_dirty(w, c);
            if (++w->packed >= w->pack) {
                w->packed = 0;
                w->ready = c->next_ready;
            }
            if (!wb_issue_has_room(w, c)) {
                w->packed = 0;
                ring_remove(&w->ready, c);
            }
        }
        w->taken_total++;
        wb_arrivals_next(&w->due);
    }
}

bool wb_worker_exhausted(const struct wb_worker *w)
{
    if (w->stage == WB_STAGE_CONNECT)
        return false;
    if (w->over || w->stage == WB_STAGE_IDLE)
        return true;
    if (w->open)
        return false;
    if (w->stage == WB_STAGE_RUN)
        return w->now >= w->end || (w->quota == 0 && w->now >= w->warm_end);
    return w->shard ? wb_shards_exhausted(w) : w->next >= w->limit && w->nretry == 0;
}

/* A row that could not be written is tried again later, a few times. */
static void retry_row(struct wb_worker *w, const struct wb_slot *s)
{
    uint8_t tries = s->attempt % WB_SLOT_HOP + 1;

    if (w->over || tries >= ATTEMPTS) {
        w->rows_lost++;
        w->lost_least = s->index < w->lost_least ? s->index : w->lost_least;
        return;
    }
    wb_grow(&w->retry, &w->retry_cap, w->nretry + 1, sizeof(*w->retry));
    w->retry[w->nretry++] = (struct wb_row_retry){
        .key = s->index, .not_before = w->now + (RETRY_NS << (tries - 1)), .attempt = tries};
}

void wb_worker_failed(struct wb_worker *w, struct wb_slot *s, enum wb_reply class, int64_t at)
{
    struct wb_phase_stats *ph = &w->cur->phase[s->phase];

    ph->errors[class]++;
    ph->op[s->op].failed++;
    w->live--;
    wb_hist_record(&ph->failed, at - s->written);
    if (s->flags & WB_SLOT_TXN)
        wb_txns_ended(w, s, false, class == WB_REPLY_TIMEOUT, at);
    else if (w->open && class == WB_REPLY_TIMEOUT)
        wb_hist_record(&ph->op[s->op].response, at - s->scheduled);
    if (s->phase == WB_PHASE_LOAD)
        retry_row(w, s);
}

/* A success of an operation of a transaction. */
static void reply_of_txn(struct wb_worker *w, const struct wb_slot *s)
{
    struct wb_phase_stats *ph = &w->cur->phase[s->phase];

    w->live--;
    ph->op[s->op].ok++;
    ph->done_in_window += w->in_window;
    wb_hist_record(&ph->op[s->op].service, w->now - s->written);
    wb_txns_ended(w, s, true, false, w->now);
}

void wb_worker_reply_slow(struct wb_worker *w, struct wb_conn *c, enum wb_reply reply)
{
    struct wb_slot *s = &c->slots[c->head & c->mask];

    c->head++;
    if (s->flags & WB_SLOT_EXPIRED) {
        c->expired--;
        w->cur->phase[s->phase].late++;
    } else if (w->now - s->written > w->timeout_ns) {
        w->cur->phase[s->phase].late++;
        wb_worker_failed(w, s, WB_REPLY_TIMEOUT, s->written + w->timeout_ns);
    } else if (reply == WB_REPLY_OK) {
        reply_of_txn(w, s);
    } else {
        wb_worker_failed(w, s, reply == WB_REPLY_MISS ? WB_REPLY_MISMATCH : reply, w->now);
    }
}

void wb_worker_reply(struct wb_worker *w, struct wb_conn *c, enum wb_reply reply)
{
    const struct wb_slot *s = &c->slots[c->head & c->mask];

    if (reply >= WB_REPLY_FAILED || (reply == WB_REPLY_MISS && w->miss_fails)) {
        wb_worker_reply_slow(w, c, reply);
        return;
    }
    /* A late miss is a time-out, not a miss. */
    if (reply == WB_REPLY_MISS && !(s->flags & WB_SLOT_EXPIRED) &&
        w->now - s->written <= w->timeout_ns)
        w->cur->phase[s->phase].op[s->op].misses++;
    wb_worker_reply_ok(w, c, s);
}

/* One censored operation: it took at least until `at`. */
static void censor(struct wb_worker *w, const struct wb_slot *s, int64_t at)
{
    struct wb_op_stats *o = &w->cur->phase[s->phase].op[s->op];

    o->censored++;
    if (w->open && !(s->flags & WB_SLOT_TXN))
        wb_hist_record(&o->response, at - s->scheduled);
}

/* One that was due and never issued. */
static void censor_arrival(struct wb_worker *w, uint64_t k, int64_t at)
{
    struct wb_slot s = {.scheduled = at, .op = wb_mix_at(&w->plan->mix, k)};

    s.phase = wb_issue_arrival_phase(w, at);
    censor(w, &s, w->end);
    w->backlog_at_end++;
    w->taken_total++;
}

void wb_worker_censor(struct wb_worker *w)
{
    struct wb_waiting x;
    struct wb_slot again;

    while (wb_shards_take_again(w, &again)) {
        censor(w, &again, w->now);
        w->live--;
    }
    for (size_t i = 0; i < w->nconns; i++) {
        struct wb_conn *c = &w->conns[i];
        for (uint32_t k = c->head + c->expired; k != c->tail; k++) {
            censor(w, &c->slots[k & c->mask], w->now);
            w->live--;
            if (c->stream_at) { /* its number is not free before its reply came */
                c->slots[k & c->mask].flags |= WB_SLOT_EXPIRED;
            }
        }
        if (c->stream_at) {
            c->stamped = c->tail;
            c->expired = wb_conn_in_flight(c);
            continue;
        }
        c->tail = c->head + c->expired;
        if (c->stamped - c->head > c->tail - c->head)
            c->stamped = c->tail;
    }
    if (w->txns && w->stage == WB_STAGE_RUN) {
        wb_txns_censor(w);
        return;
    }
    if (!w->open)
        return;
    while (wb_shards_take_waiting(w, &x))
        censor_arrival(w, x.k, x.at);
    for (; w->start + w->due.at < w->end; wb_arrivals_next(&w->due))
        censor_arrival(w, w->due.k, w->start + w->due.at);
}
