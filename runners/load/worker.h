/*
 * One thread of load: its own epoll, connections, arrival cursor, statistics. The hot path shares
 * no written cache line with anybody. The control thread gives stages to work through
 * (wb_worker_begin) and takes over full statistics (wb_worker_snapshot); both meet at two atomic
 * words and one eventfd, described at the members.
 */
#ifndef WB_LOAD_WORKER_H
#define WB_LOAD_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runners/load/conn.h"
#include "runners/load/mix.h"
#include "runners/load/protocol.h"
#include "runners/load/schedule.h"
#include "runners/load/shard.h"
#include "runners/load/stats.h"
#include "runners/load/target.h"
#include "runners/load/transactions.h"

enum wb_stage {
    WB_STAGE_IDLE,
    WB_STAGE_CONNECT, /* all connections, with a deadline */
    WB_STAGE_LOAD,    /* own rows */
    WB_STAGE_CHECK,   /* own part of the sample */
    WB_STAGE_RUN,     /* warm-up, window, drain */
    WB_STAGE_QUIT
};

#define WB_ERROR_SAMPLES 4
#define WB_ERROR_SAMPLE_MAX 160

/* What a server said when it failed an operation: few distinct texts with their counts. */
struct wb_error_sample {
    char text[WB_ERROR_SAMPLE_MAX];
    uint64_t count;
};

/* Constant for the whole run, shared by all workers. */
struct wb_load_plan {
    const struct wb_load_job *job;
    struct wb_target target;
    void *context;      /* the protocol's */
    struct wb_tls *tls; /* NULL: plain */
    struct wb_load_data data;
    struct wb_mix mix; /* of operations, or of transactions where there are any */
    struct wb_txn_plan txn;
    struct wb_schedule schedule;
    int nops;
    uint64_t rows_from, rows_to; /* this part's keys */
    uint64_t sample;             /* keys to read back after loading */
    int news_fd;                 /* eventfd: a worker has something for the control thread */
};

/* Numbers beside the statistics of a snapshot. */
struct wb_snapshot {
    int64_t at;         /* when taken, ns monotonic */
    uint64_t mark;      /* number of interval boundaries passed in this stage */
    int64_t mark_at;    /* the last of them */
    uint64_t scheduled; /* arrivals that fell due in the interval; closed loop: issued */
    uint64_t in_flight, backlog;
    uint64_t rows_to; /* loading: own rows below this key are written */
};

struct wb_row_retry {
    uint64_t key;
    int64_t not_before;
    uint8_t attempt;
};

struct wb_worker {
    const struct wb_load_plan *plan;
    const struct wb_protocol *protocol;
    void *context;
    int64_t now;        /* last reading of the clock */
    int64_t timeout_ns; /* of an operation */
    int64_t window_start;
    uint64_t window_ns; /* 0 outside of the run stage */
    bool open;          /* the current stage issues by schedule */
    bool in_window;     /* now lies in the measured window */
    bool miss_fails;    /* values are verified: a miss is a mismatch */
    struct wb_stats *cur;
    uint64_t live; /* in flight and not expired, all connections */

    struct wb_conn *conns;
    size_t nconns;
    struct wb_conn *ready;  /* ring; the next one to get an operation; without a split of keys */
    struct wb_shard *shard; /* one for each instance; NULL without a split */
    uint32_t nshards;
    bool routed;           /* the protocol knows which instance has a key */
    struct wb_txns *txns;  /* NULL when operations stand alone */
    struct wb_conn *dirty; /* list; to be sent at the end of the turn */
    char *rbuf;
    size_t rbuf_size, request_max;

    /* Where operations come from in this stage. */
    enum wb_stage stage;
    struct wb_arrivals due, seen; /* next to issue; last counted as due */
    uint64_t due_total, taken_total;
    uint64_t due_warm_up;       /* of due_total: before the window */
    uint64_t next, limit, step; /* closed: next index, the end and the way to the next */
    uint64_t quota;             /* closed: measured operations still to issue */
    uint64_t verify_below;      /* a get is verified when its hash is below */
    uint32_t stride;            /* threads of all parts */
    uint32_t first;             /* this thread among them */
    int64_t start, warm_end;    /* of the run stage, ns monotonic */
    int64_t end;                /* of the window; INT64_MAX when limited by operations */
    int64_t begun_at;           /* first turn of the run stage at or after start; 0: none yet */
    int64_t drain_end;          /* after this what is in flight is censored */
    int64_t waiting_since;      /* arrivals due up to here have waited for a slot */
    int64_t gather_ns;          /* open: arrivals wait this long for the next ones; 0: pack is 1 */
    uint32_t pack, packed;      /* arrivals to put on one connection; put on the next one so far */
    double budget;              /* capped catch-up: operations that may be issued */
    int64_t budget_at;
    bool filled, over; /* all connections got work; nothing more is issued */
    bool stopped;      /* by wb_worker_stop */
    struct wb_row_retry *retry;
    size_t nretry, retry_cap;
    uint64_t rows_lost;
    uint64_t lost_least; /* of the rows lost; UINT64_MAX: none */
    uint64_t rows_from;  /* loading begins at this key, if it is one of the own; 0: at the first */
    uint64_t rows_to;    /* own rows below this key are written */
    uint64_t backlog_at_end; /* of the window: due and not issued */
    uint64_t down_at_end;    /* connections that were down then */

    int64_t next_scan, scan_ns;
    int64_t next_mark_at; /* INT64_MAX: none */
    int64_t mark_at;      /* the last one passed */
    uint64_t mark;
    int64_t last_up; /* when a connection was up */
    struct wb_error_sample sample[WB_ERROR_SAMPLES];
    char refusal[WB_ERR_TEXT_MAX]; /* what a peer said last when it refused a connection */

    int index; /* among the threads of this process */
    int epfd, wake_fd;
    int cpu; /* pinned to; -1 not */
    pthread_t thread;
    _Atomic pid_t tid;
    bool started;

    /* Hand-off. `handed` 0: `spare` is clean and the worker's; the worker swaps cur and spare,
     * fills snap, stores 1 (release). 1: spare and snap are the control thread's, which reads,
     * clears, stores 0 (release). */
    struct wb_stats *spare;
    struct wb_snapshot snap;
    struct wb_snapshot last; /* of what is in cur at the end of a stage; read while idle */
    atomic_int handed;
    /* Stage: written by the control thread while the worker is idle, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    enum wb_stage ask;       /* under lock */
    atomic_bool idle;        /* set by the worker at the end of a stage (release) */
    _Atomic int64_t stop_at; /* INT64_MAX, or end the stage now */
};

/* --- control thread --- */

/* Bytes that one thread of a job takes at most, with its connections. */
int64_t wb_worker_memory(const struct wb_load_job *job, int nops);

int wb_worker_start(struct wb_worker *w, const struct wb_load_plan *plan, int index,
                    struct wb_err *err) WB_MUST_CHECK;
/* Gives the next stage; the worker must be idle. */
void wb_worker_begin(struct wb_worker *w, enum wb_stage stage);
/* Ends the stage early: nothing new is issued, what is in flight has `drain_ns`. Any time. */
void wb_worker_stop(struct wb_worker *w, int64_t now);
/* Ends the thread and frees everything; the worker must be idle or not started. */
void wb_worker_end(struct wb_worker *w);

/* --- the worker's own, for conn.c, issue.c and the protocols --- */

int64_t wb_worker_clock(struct wb_worker *w); /* reads the clock into now and in_window */
/* Issues to a connection while it has room and the stage has work (closed loop, load, check). */
void wb_worker_refill(struct wb_worker *w, struct wb_conn *c);
/* Issues arrivals that are due (open loop). */
void wb_worker_issue_due(struct wb_worker *w);
/* Whether the stage has nothing more to issue. */
bool wb_worker_exhausted(const struct wb_worker *w);
/* Censors what was never issued and what is still in flight at the end of a stage. */
void wb_worker_censor(struct wb_worker *w);
/* Puts a connection into or out of the ready ring as its state says. */
void wb_worker_update_ready(struct wb_worker *w, struct wb_conn *c);
void wb_worker_mark_dirty(struct wb_worker *w, struct wb_conn *c);
/* Ends one operation that failed. */
void wb_worker_failed(struct wb_worker *w, struct wb_slot *s, enum wb_reply class, int64_t at);
/* A reply that was not simple: late, failed, or past its time-out. */
void wb_worker_reply_slow(struct wb_worker *w, struct wb_conn *c, enum wb_reply reply);
/* Keeps what a server said with an error. */
void wb_worker_error_text(struct wb_worker *w, const char *text, size_t n);
/* Keeps why a peer refused a connection. */
void wb_worker_refused(struct wb_worker *w, const char *text, size_t n);

static inline uint64_t wb_worker_key(const struct wb_worker *w, const struct wb_slot *s)
{
    return s->phase <= WB_PHASE_CHECK || (s->flags & WB_SLOT_TXN)
               ? s->index
               : wb_keys_at(&w->plan->data.keys, s->index);
}

/* The operation the next reply belongs to; NULL when nothing was asked. */
static inline struct wb_slot *wb_worker_expects(struct wb_conn *c)
{
    return c->head != c->stamped ? &c->slots[c->head & c->mask] : NULL;
}

/* Ends the oldest operation of a connection with a reply. Only while wb_worker_expects. */
void wb_worker_reply(struct wb_worker *w, struct wb_conn *c, enum wb_reply reply);

/* The same for a success, inlined for the hot path. s is what wb_worker_expects gave. */
static inline __attribute__((always_inline)) void
wb_worker_reply_ok(struct wb_worker *w, struct wb_conn *c, const struct wb_slot *s)
{
    int64_t service = w->now - s->written;
    struct wb_phase_stats *ph;
    struct wb_op_stats *o;

    if (__builtin_expect((s->flags & (WB_SLOT_EXPIRED | WB_SLOT_TXN)) || service > w->timeout_ns,
                         0)) {
        wb_worker_reply_slow(w, c, WB_REPLY_OK);
        return;
    }
    ph = &w->cur->phase[s->phase];
    o = &ph->op[s->op];
    c->head++;
    w->live--;
    o->ok++;
    ph->done_in_window += w->in_window;
    wb_hist_record_ns(&o->service, service);
    if (w->open)
        wb_hist_record_ns(&o->response, w->now - s->scheduled);
}

#endif
