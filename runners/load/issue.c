/*
 * Where a worker's next operation comes from and which connection gets it.
 */
#include "runners/load/worker.h"

#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

#define BURST 512             /* most arrivals issued in one turn, so that replies are read */
#define ATTEMPTS 5            /* per row while loading */
#define RETRY_NS (50 * WB_MS) /* first pause of a row that failed */
#define LATE_NS WB_MS         /* arrivals later than this count as catching up */
#define BUDGET_S 0.01         /* seconds of catching up that may be saved */

static bool has_room(const struct wb_worker *w, const struct wb_conn *c)
{
    return c->state == WB_CONN_UP && c->expired == 0 && wb_conn_in_flight(c) < c->depth &&
           c->out_len + w->request_max <= c->out_cap;
}

static void ring_insert(struct wb_worker *w, struct wb_conn *c)
{
    if (!w->ready) {
        c->next_ready = c->prev_ready = c;
        w->ready = c;
    } else { /* before the next one: last in turn */
        c->next_ready = w->ready;
        c->prev_ready = w->ready->prev_ready;
        c->prev_ready->next_ready = c;
        w->ready->prev_ready = c;
    }
    c->ready = true;
}

static void ring_remove(struct wb_worker *w, struct wb_conn *c)
{
    if (c->next_ready == c) {
        w->ready = NULL;
    } else {
        c->prev_ready->next_ready = c->next_ready;
        c->next_ready->prev_ready = c->prev_ready;
        if (w->ready == c)
            w->ready = c->next_ready;
    }
    c->ready = false;
}

void wb_worker_update_ready(struct wb_worker *w, struct wb_conn *c)
{
    bool want = w->open && has_room(w, c);

    if (want && !c->ready)
        ring_insert(w, c);
    else if (!want && c->ready)
        ring_remove(w, c);
}

void wb_worker_mark_dirty(struct wb_worker *w, struct wb_conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = w->dirty;
    w->dirty = c;
}

/* Appends one operation to a connection that has room. */
static void put(struct wb_worker *w, struct wb_conn *c, const struct wb_slot *op)
{
    struct wb_slot *s = &c->slots[c->tail & c->mask];
    struct wb_phase_stats *ph = &w->cur->phase[op->phase];

    *s = *op;
    s->written = w->now;
    c->out_len =
        (size_t)(w->protocol->build(w->context, s->op, wb_worker_key(w, s), c->out + c->out_len) -
                 c->out);
    c->tail++;
    w->live++;
    ph->op[s->op].issued++;
    ph->verified += s->flags & WB_SLOT_VERIFY;
    wb_worker_mark_dirty(w, c);
}

static uint8_t verify_flag(const struct wb_worker *w, uint8_t op, uint64_t index)
{
    if (w->verify_below == 0 || op != w->protocol->read_op)
        return 0;
    return wb_keys_hash(w->plan->data.values.seed ^ w->plan->data.keys.seed, index) <=
                   w->verify_below
               ? WB_SLOT_VERIFY
               : 0;
}

/* Which key the i-th of the sample is: one in each equal piece of the key space. */
static uint64_t sample_key(const struct wb_load_plan *p, uint64_t i)
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

/* Next operation of a stage that does not go by a schedule. */
static bool next_closed(struct wb_worker *w, struct wb_slot *s)
{
    *s = (struct wb_slot){.scheduled = w->now};
    if (w->over)
        return false;
    if (w->stage == WB_STAGE_LOAD)
        return next_row(w, s);
    if (w->stage == WB_STAGE_CHECK) {
        if (w->next >= w->limit)
            return false;
        s->phase = WB_PHASE_CHECK;
        s->op = w->protocol->read_op;
        s->flags = WB_SLOT_VERIFY;
        s->index = sample_key(w->plan, w->next);
        w->next += w->step;
        return true;
    }
    if (w->stage != WB_STAGE_RUN || w->now >= w->end || w->now < w->start)
        return false;
    s->phase = WB_PHASE_WARM_UP;
    if (w->now >= w->warm_end) {
        if (w->quota == 0)
            return false;
        w->quota--;
        s->phase = WB_PHASE_MEASURE;
    }
    s->index = w->next;
    w->next += w->step;
    s->op = wb_mix_at(&w->plan->mix, s->index);
    s->flags = verify_flag(w, s->op, s->index);
    return true;
}

void wb_worker_refill(struct wb_worker *w, struct wb_conn *c)
{
    struct wb_slot s;

    while (has_room(w, c) && next_closed(w, &s))
        put(w, c, &s);
}

static double budget_rate(const struct wb_worker *w)
{
    return w->plan->job->catch_up_times * w->plan->schedule.rate_per_s / w->stride;
}

/* Takes one from the catch-up budget; an arrival that is on time may always go. */
static bool take_budget(struct wb_worker *w, int64_t at)
{
    double per_s = budget_rate(w), most = per_s * BUDGET_S;

    w->budget += (double)(w->now - w->budget_at) / 1e9 * per_s;
    w->budget_at = w->now;
    if (w->budget > (most > 1 ? most : 1))
        w->budget = most > 1 ? most : 1;
    if (w->budget < 1 && w->now - at > LATE_NS)
        return false;
    w->budget = w->budget > 1 ? w->budget - 1 : 0;
    return true;
}

static uint8_t arrival_phase(const struct wb_worker *w, int64_t at)
{
    return at < w->warm_end ? WB_PHASE_WARM_UP : WB_PHASE_MEASURE;
}

void wb_worker_issue_due(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;

    for (int n = 0; w->over || n < BURST; n++) {
        struct wb_slot s = {.scheduled = w->start + w->due.at, .index = w->due.k};
        struct wb_conn *c = w->ready;
        if (s.scheduled > w->now || s.scheduled >= w->end)
            return;
        s.phase = arrival_phase(w, s.scheduled);
        if (!c && job->catch_up == WB_LOAD_DROP) {
            w->cur->phase[s.phase].dropped++;
        } else if (!c) {
            w->waiting_since = w->now;
            return;
        } else {
            if (job->catch_up == WB_LOAD_CAPPED && !take_budget(w, s.scheduled)) {
                w->waiting_since = w->now;
                return;
            }
            s.op = wb_mix_at(&w->plan->mix, s.index);
            s.flags = verify_flag(w, s.op, s.index);
            if (s.scheduled <= w->waiting_since) {
                s.flags |= WB_SLOT_WAITED;
                w->cur->phase[s.phase].cap_waits++;
            }
            put(w, c, &s);
            w->ready = c->next_ready;
            if (!has_room(w, c))
                ring_remove(w, c);
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
    return w->next >= w->limit && w->nretry == 0;
}

/* A row that could not be written is tried again later, a few times. */
static void retry_row(struct wb_worker *w, const struct wb_slot *s)
{
    if (w->over || s->attempt + 1 >= ATTEMPTS) {
        w->rows_lost++;
        return;
    }
    wb_grow(&w->retry, &w->retry_cap, w->nretry + 1, sizeof(*w->retry));
    w->retry[w->nretry++] = (struct wb_row_retry){.key = s->index,
                                                  .not_before = w->now + (RETRY_NS << s->attempt),
                                                  .attempt = (uint8_t)(s->attempt + 1)};
}

void wb_worker_failed(struct wb_worker *w, struct wb_slot *s, enum wb_reply class, int64_t at)
{
    struct wb_phase_stats *ph = &w->cur->phase[s->phase];

    ph->errors[class]++;
    ph->op[s->op].failed++;
    w->live--;
    wb_hist_record(&ph->failed, at - s->written);
    if (w->open && class == WB_REPLY_TIMEOUT)
        wb_hist_record(&ph->op[s->op].response, at - s->scheduled);
    if (s->phase == WB_PHASE_LOAD)
        retry_row(w, s);
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
    } else {
        wb_worker_failed(w, s, reply == WB_REPLY_MISS ? WB_REPLY_MISMATCH : reply, w->now);
    }
}

/* One censored operation: it took at least until `at`. */
static void censor(struct wb_worker *w, const struct wb_slot *s, int64_t at)
{
    struct wb_op_stats *o = &w->cur->phase[s->phase].op[s->op];

    o->censored++;
    if (w->open)
        wb_hist_record(&o->response, at - s->scheduled);
}

void wb_worker_censor(struct wb_worker *w)
{
    for (size_t i = 0; i < w->nconns; i++) {
        struct wb_conn *c = &w->conns[i];
        for (uint32_t k = c->head + c->expired; k != c->tail; k++) {
            censor(w, &c->slots[k & c->mask], w->now);
            w->live--;
        }
        c->tail = c->head + c->expired;
        if (c->stamped - c->head > c->tail - c->head)
            c->stamped = c->tail;
    }
    if (!w->open)
        return;
    for (; w->start + w->due.at < w->end; wb_arrivals_next(&w->due)) {
        struct wb_slot s = {.scheduled = w->start + w->due.at,
                            .op = wb_mix_at(&w->plan->mix, w->due.k)};
        s.phase = arrival_phase(w, s.scheduled);
        censor(w, &s, w->end);
        w->backlog_at_end++;
        w->taken_total++;
    }
}
