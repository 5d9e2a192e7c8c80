/*
 * Counters and histograms of load, per phase and operation. A worker records into one set that
 * nobody else touches; at interval boundaries it hands the set over and goes on with the other.
 */
#ifndef WB_LOAD_STATS_H
#define WB_LOAD_STATS_H

#include <stdint.h>

#include "runners/load/job.h"
#include "server/base/hist.h"

/* An operation belongs to the phase its intended start lies in. */
enum wb_load_phase {
    WB_PHASE_LOAD,  /* writing the data */
    WB_PHASE_CHECK, /* reading a sample back */
    WB_PHASE_WARM_UP,
    WB_PHASE_MEASURE,
    WB_PHASES
};

/* How an operation ended; from WB_REPLY_FAILED on it failed, and the value is its error class. */
enum wb_reply {
    WB_REPLY_OK,
    WB_REPLY_MISS, /* a get of a key that is not there */
    WB_REPLY_FAILED,
    WB_REPLY_TIMEOUT = WB_REPLY_FAILED,
    WB_REPLY_CLOSED,   /* the connection ended with the operation in flight */
    WB_REPLY_PROTOCOL, /* not what the protocol allows */
    WB_REPLY_SERVER,   /* the server said error */
    WB_REPLY_MISMATCH, /* another value than was written */
    /* Kinds of errors that servers tell apart. */
    WB_REPLY_OVERLOADED,
    WB_REPLY_UNAVAILABLE,  /* too few replicas are alive */
    WB_REPLY_READ_TIMEOUT, /* replicas did not answer the server in time */
    WB_REPLY_WRITE_TIMEOUT,
    WB_REPLY_READ_FAILURE, /* replicas answered with errors */
    WB_REPLY_WRITE_FAILURE,
    WB_REPLY_BOOTSTRAPPING,
    WB_REPLY_UNPREPARED,
    WB_REPLY_UNAUTHORIZED,
    WB_REPLY_INVALID,    /* the server does not take the request */
    WB_REPLY_REDIRECTED, /* sent on to other nodes too often, or to one that is not known */
    WB_REPLIES
};
const char *wb_reply_name(enum wb_reply r); /* "timeout", ... */

struct wb_op_stats {
    uint64_t issued, ok, misses, failed, censored;
    struct wb_hist service;  /* done - written, successes */
    struct wb_hist response; /* done - intended start: successes, time-outs, censored; open loop */
    struct wb_hist lag;      /* written - intended start; open loop */
};

struct wb_phase_stats {
    struct wb_op_stats *op; /* one per operation of the protocol */
    uint64_t errors[WB_REPLIES];
    struct wb_op_stats *txn; /* one per kind of transaction; service from the first issue */
    uint64_t txn_dropped, txn_done_in_window;
    uint64_t dropped;        /* arrivals given up by the catch-up policy */
    uint64_t cap_waits;      /* arrivals that waited for a free slot */
    uint64_t redirects;      /* replies that sent an operation on to another instance */
    uint64_t late;           /* replies after the time-out */
    uint64_t verified;       /* gets whose value was to be compared */
    uint64_t done_in_window; /* successes completed inside the measured window, of any phase */
    struct wb_hist failed;   /* failed replies: done - written */
    struct wb_hist own_lag;  /* lag without waiting for a free slot: what the client adds */
};

struct wb_stats {
    int nops, ntxn;
    struct wb_phase_stats phase[WB_PHASES];
    uint64_t sends, receives, bytes_out, bytes_in;
    uint64_t reconnects, connect_failures;
    uint64_t turns;
};

int64_t wb_stats_memory(int nops, int ntxn); /* bytes of one set, at most */
void wb_stats_init(struct wb_stats *s, int nops);
/* Gives a fresh set room for kinds of transactions. */
void wb_stats_add_transactions(struct wb_stats *s, int ntxn);
void wb_stats_release(struct wb_stats *s);
void wb_stats_clear(struct wb_stats *s);
void wb_stats_add(struct wb_stats *dst, const struct wb_stats *src);

/* Sums over the operations of one phase. */
struct wb_phase_sum {
    uint64_t issued, ok, misses, failed, dropped, censored;
};
struct wb_phase_sum wb_phase_total(const struct wb_stats *s, enum wb_load_phase phase);
/* The same over the kinds of transactions. */
struct wb_phase_sum wb_phase_transactions(const struct wb_stats *s, enum wb_load_phase phase);

#endif
