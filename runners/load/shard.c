#include "runners/load/shard.h"

#include <stdlib.h>
#include <string.h>

#include "runners/load/issue.h"
#include "server/base/mem.h"

/* Operations that may be drawn ahead for an instance in a closed loop: enough for the time that
 * instances on one CPU take turns, little beside what a window has. */
#define AHEAD 1024
/* Arrivals that may wait for one instance; beyond that the whole stream waits. */
#define WAITING_MAX (1u << 22)
#define HOPS_MOST 5 /* times that an operation is sent on */

uint32_t wb_slot_of(const struct wb_keys *keys, uint64_t key)
{
    char digits[24];

    wb_keys_digits(keys, key, digits + keys->digits);
    return wb_crc16(keys->crc, digits, keys->digits) % WB_SLOTS;
}

uint32_t wb_shard_of_key(const struct wb_worker *w, uint64_t key, uint64_t index)
{
    if (w->routed)
        return w->protocol->route(w->context, key, index, 0);
    if (w->plan->job->split == WB_LOAD_SPLIT_SLOTS)
        return wb_shard_of_slot(wb_slot_of(&w->plan->data.keys, key), w->nshards);
    return wb_shard_of(key, w->nshards);
}

static uint32_t waiting(const struct wb_shard *sh)
{
    return sh->tail - sh->head;
}

/* Whether the protocol knows where keys are. */
static bool wb_shards_routed(const struct wb_load_plan *p)
{
    return p->target.protocol->route && p->target.protocol->routed(p->context);
}

bool wb_shards_wanted(const struct wb_load_plan *p)
{
    const struct wb_protocol *proto = p->target.protocol;

    if (p->target.n < 2)
        return false;
    return wb_shards_routed(p) ||
           ((!proto->route || !proto->streams) && p->job->split != WB_LOAD_SPLIT_NONE);
}

void wb_shards_init(struct wb_worker *w)
{
    const struct wb_load_plan *p = w->plan;

    if (!wb_shards_wanted(p))
        return;
    w->nshards = (uint32_t)p->target.n;
    w->routed = wb_shards_routed(p);
    w->shard = wb_calloc(w->nshards, sizeof(*w->shard));
    for (uint32_t t = 0; t < w->nshards; t++) {
        w->shard[t].size = AHEAD;
        w->shard[t].queue = wb_calloc(AHEAD, sizeof(*w->shard[t].queue));
    }
}

void wb_shards_release(struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        free(w->shard[t].queue);
        free(w->shard[t].again);
    }
    free(w->shard);
    w->shard = NULL;
    w->nshards = 0;
}

void wb_shards_begin(struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        struct wb_shard *sh = &w->shard[t];

        sh->head = sh->tail = sh->packed = 0;
        sh->nagain = 0;
        sh->last_up = w->now;
        sh->next = w->next;
    }
}

bool wb_shards_exhausted(const struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++)
        if (w->shard[t].next < w->limit)
            return false;
    return w->nretry == 0;
}

int64_t wb_shards_last_up(const struct wb_worker *w)
{
    int64_t least = INT64_MAX;

    for (uint32_t t = 0; t < w->nshards; t++)
        least = w->shard[t].last_up < least ? w->shard[t].last_up : least;
    return least;
}

/* --- queues --- */

/* Where an operation goes now: not to an instance without any connection where another one can take
 * it. */
static uint32_t shard_of_op(const struct wb_worker *w, uint64_t k)
{
    uint64_t key = wb_keys_at(&w->plan->data.keys, k);
    uint32_t t = wb_shard_of_key(w, key, k);

    if (__builtin_expect(w->shard[t].up > 0, 1) || !w->routed)
        return t;
    for (unsigned attempt = 1;; attempt++) {
        uint32_t other = w->protocol->route(w->context, key, k, attempt);
        if (other >= w->nshards)
            return t;
        if (w->shard[other].up > 0)
            return other;
    }
}

/* Doubles a full queue, for its entries to be found under the new mask. */
static bool grow(struct wb_shard *sh)
{
    struct wb_waiting *more;

    if (sh->size >= WAITING_MAX)
        return false;
    more = wb_calloc((size_t)sh->size * 2, sizeof(*more));
    for (uint32_t i = sh->head; i != sh->tail; i++)
        more[i & (2 * sh->size - 1)] = sh->queue[i & (sh->size - 1)];
    free(sh->queue);
    sh->queue = more;
    sh->size *= 2;
    return true;
}

static void push(struct wb_shard *sh, uint64_t k, int64_t at)
{
    sh->queue[sh->tail++ & (sh->size - 1)] = (struct wb_waiting){.k = k, .at = at};
}

static struct wb_waiting pop(struct wb_shard *sh)
{
    return sh->queue[sh->head++ & (sh->size - 1)];
}

void wb_shard_up(struct wb_worker *w, uint32_t t)
{
    if (w->shard)
        w->shard[t].up++;
}

void wb_shard_down(struct wb_worker *w, uint32_t t)
{
    if (!w->shard || --w->shard[t].up > 0 || !w->routed)
        return;
    for (uint32_t n = waiting(&w->shard[t]); n > 0; n--) {
        struct wb_waiting x = pop(&w->shard[t]);
        struct wb_shard *to = &w->shard[shard_of_op(w, x.k)];

        if (waiting(to) == to->size && !grow(to))
            to = &w->shard[t]; /* stays; it has just given a place */
        push(to, x.k, x.at);
    }
}

bool wb_shards_take_waiting(struct wb_worker *w, struct wb_waiting *out)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        if (waiting(&w->shard[t]) > 0) {
            *out = pop(&w->shard[t]);
            return true;
        }
    }
    return false;
}

/* --- sent on --- */

void wb_shard_redirect(struct wb_worker *w, struct wb_conn *c, uint32_t t, bool ask)
{
    struct wb_slot s = c->slots[c->head & c->mask];
    struct wb_shard *sh;

    w->cur->phase[s.phase].redirects++;
    if (t >= w->nshards || s.attempt >= WB_SLOT_HOP * HOPS_MOST || (s.flags & WB_SLOT_EXPIRED) ||
        w->now - s.written > w->timeout_ns) {
        wb_worker_reply(w, c, WB_REPLY_REDIRECTED);
        return;
    }
    c->head++;
    s.attempt = (uint8_t)(s.attempt + WB_SLOT_HOP);
    s.flags |= WB_SLOT_MOVED;
    s.flags = (uint8_t)(ask ? s.flags | WB_SLOT_ASK : s.flags & ~WB_SLOT_ASK);
    sh = &w->shard[t];
    wb_grow(&sh->again, &sh->again_cap, sh->nagain + 1, sizeof(*sh->again));
    sh->again[sh->nagain++] = s;
}

static void take_out(struct wb_shard *sh, size_t n)
{
    sh->nagain -= n;
    memmove(sh->again, sh->again + n, sh->nagain * sizeof(*sh->again));
}

/* Gives a connection what waits for its instance; it is in flight all the time. */
static void send_on(struct wb_worker *w, struct wb_shard *sh, struct wb_conn *c)
{
    size_t n = 0;

    for (; n < sh->nagain && wb_issue_has_room(w, c); n++) {
        struct wb_slot *s = wb_issue_next_slot(c);

        *s = sh->again[n];
        c->out_len = (size_t)(w->protocol->build(w->context, c, s, wb_worker_key(w, s),
                                                 c->out + c->out_len) -
                              c->out);
        c->tail++;
    }
    if (n > 0) {
        take_out(sh, n);
        wb_worker_mark_dirty(w, c);
    }
}

void wb_shards_send_on(struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        struct wb_shard *sh = &w->shard[t];

        while (sh->nagain > 0 && sh->ready) {
            struct wb_conn *c = sh->ready;

            send_on(w, sh, c);
            sh->ready = c->next_ready;
            wb_worker_update_ready(w, c);
        }
    }
}

void wb_shards_expire(struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        struct wb_shard *sh = &w->shard[t];

        for (size_t i = 0; i < sh->nagain;) {
            struct wb_slot s = sh->again[i];

            if (w->now - s.written <= w->timeout_ns) {
                i++;
                continue;
            }
            sh->nagain--;
            memmove(sh->again + i, sh->again + i + 1, (sh->nagain - i) * sizeof(*sh->again));
            wb_worker_failed(w, &s, WB_REPLY_TIMEOUT, s.written + w->timeout_ns);
        }
    }
}

bool wb_shards_take_again(struct wb_worker *w, struct wb_slot *out)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        if (w->shard[t].nagain > 0) {
            *out = w->shard[t].again[0];
            take_out(&w->shard[t], 1);
            return true;
        }
    }
    return false;
}

/* --- loading and checking --- */

/* The oldest row of this instance that is due to be tried again. */
static bool next_retry(struct wb_worker *w, uint32_t t, struct wb_slot *s)
{
    for (size_t i = 0; i < w->nretry && w->retry[i].not_before <= w->now; i++) {
        if (wb_shard_of_key(w, w->retry[i].key, w->retry[i].key) != t)
            continue;
        s->index = w->retry[i].key;
        s->attempt = w->retry[i].attempt;
        w->nretry--;
        memmove(w->retry + i, w->retry + i + 1, (w->nretry - i) * sizeof(*w->retry));
        return true;
    }
    return false;
}

static bool next_row(struct wb_worker *w, uint32_t t, struct wb_slot *s)
{
    struct wb_shard *sh = &w->shard[t];

    s->phase = WB_PHASE_LOAD;
    s->op = w->protocol->write_op;
    while (sh->next < w->limit && wb_shard_of_key(w, sh->next, sh->next) != t)
        sh->next++;
    if (sh->next >= w->limit)
        return next_retry(w, t, s);
    s->index = sh->next++;
    return true;
}

static bool next_of_sample(struct wb_worker *w, uint32_t t, struct wb_slot *s)
{
    struct wb_shard *sh = &w->shard[t];

    while (sh->next < w->limit) {
        uint64_t key = wb_issue_sample_key(w->plan, sh->next);

        sh->next += w->step;
        if (wb_shard_of_key(w, key, key) != t)
            continue;
        s->phase = WB_PHASE_CHECK;
        s->op = w->protocol->read_op;
        s->flags = WB_SLOT_VERIFY;
        s->index = key;
        return true;
    }
    return false;
}

/* --- closed loop --- */

/* Draws from the stream until there is an operation for instance t; false when it would have to
 * put one more into a full queue. */
static bool draw(struct wb_worker *w, uint32_t t, uint64_t *k)
{
    for (;;) {
        uint32_t of = shard_of_op(w, w->next);

        if (of != t && waiting(&w->shard[of]) >= AHEAD)
            return false;
        *k = w->next;
        w->next += w->step;
        if (of == t)
            return true;
        push(&w->shard[of], *k, 0);
    }
}

static bool next_op(struct wb_worker *w, uint32_t t, struct wb_slot *s)
{
    struct wb_shard *sh = &w->shard[t];
    bool measured = w->now >= w->warm_end;

    if (w->now >= w->end || w->now < w->start || (measured && w->quota == 0))
        return false;
    if (waiting(sh) > 0)
        s->index = pop(sh).k;
    else if (!draw(w, t, &s->index))
        return false;
    w->quota -= measured;
    s->phase = measured ? WB_PHASE_MEASURE : WB_PHASE_WARM_UP;
    s->op = wb_mix_at(&w->plan->mix, s->index);
    s->flags = wb_issue_verify_flag(w, s->op, s->index);
    return true;
}

static bool next(struct wb_worker *w, uint32_t t, struct wb_slot *s)
{
    *s = (struct wb_slot){.scheduled = w->now};
    if (w->over)
        return false;
    switch (w->stage) {
    case WB_STAGE_LOAD:
        return next_row(w, t, s);
    case WB_STAGE_CHECK:
        return next_of_sample(w, t, s);
    case WB_STAGE_RUN:
        return !w->open && next_op(w, t, s);
    default:
        return false;
    }
}

void wb_shard_refill(struct wb_worker *w, struct wb_conn *c)
{
    uint32_t before = c->tail;

    send_on(w, &w->shard[c->target], c);
    while (wb_issue_has_room(w, c) && next(w, (uint32_t)c->target, wb_issue_next_slot(c)))
        wb_issue_put(w, c, wb_issue_next_slot(c));
    wb_worker_update_ready(w, c);
    if (c->tail != before && !c->dirty)
        wb_worker_mark_dirty(w, c);
}

void wb_shards_kick(struct wb_worker *w)
{
    for (uint32_t t = 0; t < w->nshards; t++) {
        struct wb_conn *c;

        while ((c = w->shard[t].ready) != NULL) {
            uint32_t before = c->tail;

            wb_shard_refill(w, c);
            if (c->tail == before || c == w->shard[t].ready)
                break; /* there is nothing for this instance now */
        }
    }
}

/* --- open loop --- */

static void issue(struct wb_worker *w, struct wb_shard *sh, uint64_t k, int64_t at, bool waited)
{
    struct wb_conn *c = sh->ready;
    struct wb_slot *s = wb_issue_next_slot(c);
    uint8_t phase = wb_issue_arrival_phase(w, at);

    *s = (struct wb_slot){.scheduled = at, .index = k, .phase = phase};
    s->op = wb_mix_at(&w->plan->mix, k);
    s->flags = wb_issue_verify_flag(w, s->op, k);
    if (waited) {
        s->flags |= WB_SLOT_WAITED;
        w->cur->phase[phase].cap_waits++;
    }
    wb_issue_put(w, c, s);
    wb_worker_mark_dirty(w, c);
    if (++sh->packed >= w->pack) {
        sh->packed = 0;
        sh->ready = c->next_ready;
    }
    wb_worker_update_ready(w, c);
    if (!c->ready)
        sh->packed = 0;
    w->taken_total++;
}

/* What waited longest for an instance goes first. False when the budget of catching up is used up.
 */
static bool issue_waiting(struct wb_worker *w, int *left)
{
    bool capped = w->plan->job->catch_up == WB_LOAD_CAPPED;

    for (uint32_t t = 0; t < w->nshards; t++) {
        struct wb_shard *sh = &w->shard[t];

        while (waiting(sh) > 0 && sh->ready && (w->over || --*left > 0)) {
            struct wb_waiting x = sh->queue[sh->head & (sh->size - 1)];

            if (capped && !wb_issue_take_budget(w, x.at))
                return false;
            sh->head++;
            issue(w, sh, x.k, x.at, true);
        }
    }
    return true;
}

void wb_shards_issue_due(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;
    int left = WB_ISSUE_BURST;

    if (!issue_waiting(w, &left))
        return;
    while (w->over || --left > 0) {
        int64_t at = w->start + w->due.at;
        struct wb_shard *sh;

        if (at > w->now || at >= w->end)
            return;
        sh = &w->shard[shard_of_op(w, w->due.k)];
        if (!sh->ready && job->catch_up == WB_LOAD_DROP) {
            w->cur->phase[wb_issue_arrival_phase(w, at)].dropped++;
            w->taken_total++;
        } else if (sh->ready && waiting(sh) == 0) {
            if (job->catch_up == WB_LOAD_CAPPED && !wb_issue_take_budget(w, at)) {
                w->waiting_since = w->now;
                return;
            }
            issue(w, sh, w->due.k, at, at <= w->waiting_since);
        } else {
            if (waiting(sh) == sh->size && !grow(sh)) {
                w->waiting_since = w->now;
                return;
            }
            push(sh, w->due.k, at);
        }
        wb_arrivals_next(&w->due);
    }
}
