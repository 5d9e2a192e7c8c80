#include "runners/load/stats.h"

#include <stdlib.h>

#include "server/base/mem.h"

const char *wb_reply_name(enum wb_reply r)
{
    static const char *const names[WB_REPLIES] = {
        [WB_REPLY_OK] = "ok",
        [WB_REPLY_MISS] = "miss",
        [WB_REPLY_TIMEOUT] = "timeout",
        [WB_REPLY_CLOSED] = "closed",
        [WB_REPLY_PROTOCOL] = "protocol",
        [WB_REPLY_SERVER] = "server",
        [WB_REPLY_MISMATCH] = "mismatch",
        [WB_REPLY_OVERLOADED] = "overloaded",
        [WB_REPLY_UNAVAILABLE] = "unavailable",
        [WB_REPLY_READ_TIMEOUT] = "read-timeout",
        [WB_REPLY_WRITE_TIMEOUT] = "write-timeout",
        [WB_REPLY_READ_FAILURE] = "read-failure",
        [WB_REPLY_WRITE_FAILURE] = "write-failure",
        [WB_REPLY_BOOTSTRAPPING] = "bootstrapping",
        [WB_REPLY_UNPREPARED] = "unprepared",
        [WB_REPLY_UNAUTHORIZED] = "unauthorized",
        [WB_REPLY_INVALID] = "invalid",
        [WB_REPLY_REDIRECTED] = "redirected",
    };
    return (unsigned)r < WB_REPLIES ? names[r] : "unknown";
}

int64_t wb_stats_memory(int nops, int ntxn)
{
    struct wb_hist h;
    int64_t one;

    wb_hist_init_ns(&h);
    one = (int64_t)h.ncounts * 2 * (int64_t)sizeof(*h.low);
    wb_hist_release(&h);
    return WB_PHASES * (3LL * (nops + ntxn) + 2) * one;
}

static struct wb_op_stats *ops_new(int n)
{
    struct wb_op_stats *op = wb_calloc((size_t)n, sizeof(*op));

    for (int i = 0; i < n; i++) {
        wb_hist_init_ns(&op[i].service);
        wb_hist_init_ns(&op[i].response);
        wb_hist_init_ns(&op[i].lag);
    }
    return op;
}

static void ops_free(struct wb_op_stats *op, int n)
{
    for (int i = 0; op && i < n; i++) {
        wb_hist_release(&op[i].service);
        wb_hist_release(&op[i].response);
        wb_hist_release(&op[i].lag);
    }
    free(op);
}

void wb_stats_init(struct wb_stats *s, int nops)
{
    *s = (struct wb_stats){.nops = nops};
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_stats *ph = &s->phase[p];
        ph->op = ops_new(nops);
        wb_hist_init_ns(&ph->failed);
        wb_hist_init_ns(&ph->own_lag);
    }
}

void wb_stats_add_transactions(struct wb_stats *s, int ntxn)
{
    s->ntxn = ntxn;
    for (int p = 0; p < WB_PHASES && ntxn > 0; p++)
        s->phase[p].txn = ops_new(ntxn);
}

void wb_stats_release(struct wb_stats *s)
{
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_stats *ph = &s->phase[p];
        ops_free(ph->op, s->nops);
        ops_free(ph->txn, s->ntxn);
        ph->op = ph->txn = NULL;
        wb_hist_release(&ph->failed);
        wb_hist_release(&ph->own_lag);
    }
}

static void op_clear(struct wb_op_stats *o)
{
    o->issued = o->ok = o->misses = o->failed = o->censored = 0;
    wb_hist_clear(&o->service);
    wb_hist_clear(&o->response);
    wb_hist_clear(&o->lag);
}

void wb_stats_clear(struct wb_stats *s)
{
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_stats *ph = &s->phase[p];
        for (int i = 0; i < s->nops; i++)
            op_clear(&ph->op[i]);
        for (int i = 0; i < s->ntxn; i++)
            op_clear(&ph->txn[i]);
        ph->txn_dropped = ph->txn_done_in_window = 0;
        for (int r = 0; r < WB_REPLIES; r++)
            ph->errors[r] = 0;
        ph->dropped = ph->cap_waits = ph->redirects = ph->late = ph->verified = ph->done_in_window =
            0;
        wb_hist_clear(&ph->failed);
        wb_hist_clear(&ph->own_lag);
    }
    s->sends = s->receives = s->bytes_out = s->bytes_in = 0;
    s->reconnects = s->connect_failures = s->turns = 0;
}

static void op_add(struct wb_op_stats *d, const struct wb_op_stats *s)
{
    d->issued += s->issued;
    d->ok += s->ok;
    d->misses += s->misses;
    d->failed += s->failed;
    d->censored += s->censored;
    wb_hist_add(&d->service, &s->service);
    wb_hist_add(&d->response, &s->response);
    wb_hist_add(&d->lag, &s->lag);
}

void wb_stats_add(struct wb_stats *dst, const struct wb_stats *src)
{
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_stats *d = &dst->phase[p];
        const struct wb_phase_stats *s = &src->phase[p];
        for (int i = 0; i < dst->nops; i++)
            op_add(&d->op[i], &s->op[i]);
        for (int i = 0; i < dst->ntxn; i++)
            op_add(&d->txn[i], &s->txn[i]);
        d->txn_dropped += s->txn_dropped;
        d->txn_done_in_window += s->txn_done_in_window;
        for (int r = 0; r < WB_REPLIES; r++)
            d->errors[r] += s->errors[r];
        d->dropped += s->dropped;
        d->cap_waits += s->cap_waits;
        d->redirects += s->redirects;
        d->late += s->late;
        d->verified += s->verified;
        d->done_in_window += s->done_in_window;
        wb_hist_add(&d->failed, &s->failed);
        wb_hist_add(&d->own_lag, &s->own_lag);
    }
    dst->sends += src->sends;
    dst->receives += src->receives;
    dst->bytes_out += src->bytes_out;
    dst->bytes_in += src->bytes_in;
    dst->reconnects += src->reconnects;
    dst->connect_failures += src->connect_failures;
    dst->turns += src->turns;
}

static void sum_up(struct wb_phase_sum *t, const struct wb_op_stats *op, int n)
{
    for (int i = 0; i < n; i++) {
        t->issued += op[i].issued;
        t->ok += op[i].ok;
        t->misses += op[i].misses;
        t->failed += op[i].failed;
        t->censored += op[i].censored;
    }
}

struct wb_phase_sum wb_phase_total(const struct wb_stats *s, enum wb_load_phase phase)
{
    struct wb_phase_sum t = {.dropped = s->phase[phase].dropped};

    sum_up(&t, s->phase[phase].op, s->nops);
    return t;
}

struct wb_phase_sum wb_phase_transactions(const struct wb_stats *s, enum wb_load_phase phase)
{
    struct wb_phase_sum t = {.dropped = s->phase[phase].txn_dropped};

    sum_up(&t, s->phase[phase].txn, s->ntxn);
    return t;
}
