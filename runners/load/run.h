/*
 * The control thread: prepares a run, leads the workers through its stages, collects their
 * statistics interval by interval, and hands out what is needed for the verdict and the report.
 */
#ifndef WB_LOAD_RUN_H
#define WB_LOAD_RUN_H

#include "runners/load/client.h"
#include "runners/load/worker.h"
#include "server/base/cancel.h"

/* How a run ended, beside its numbers. */
enum wb_load_end {
    WB_LOAD_DONE,
    WB_LOAD_NO_CONNECTION,
    WB_LOAD_INTERRUPTED,
    WB_LOAD_BROKEN /* a thread hung or the sums do not add up */
};

struct wb_load_rows { /* the load phase */
    bool done;
    uint64_t wanted, rows, checked, mismatched;
    uint64_t resumed;  /* of rows: written by earlier runs */
    char *state_error; /* the state file could not be written; NULL: it could */
    int64_t ns;
};

struct wb_load_outcome {
    const struct wb_load_job *job;
    const char *const *ops; /* names of the operations */
    int nops;
    enum wb_load_end end;
    char *end_text; /* what to say about it; NULL when DONE */
    struct wb_load_rows data;
    wb_json *protocol; /* what it settled; NULL: nothing to tell */
    bool measured;     /* the run stage began */
    struct wb_stats total;
    int64_t window_unix_ms, window_ns, warm_up_ns;
    /* The start of the schedule: as asked for (0: at once), and when the last thread began, both on
     * this host's wall clock, so that processes with the same start can be compared. */
    int64_t start_planned_unix_ms, start_unix_ms;
    uint64_t txn_scheduled; /* transactions: from the schedule (open) or those begun (closed) */
    uint64_t scheduled;     /* from the schedule (open) or the issued ones (closed) */
    uint64_t backlog_at_end, connections_down;
    uint64_t sends, receives;         /* of the intervals that make the window */
    struct wb_client_sample from, to; /* at the window's edges */
    struct wb_error_sample sample[WB_ERROR_SAMPLES];
};

/* One interval, all threads together. */
struct wb_load_interval {
    int64_t since_start, length; /* ns: end of the interval after the stage's start */
    const char *phase;           /* "load", "warm-up", "measure", "drain" */
    double offered_per_s;        /* by the schedule, this process's part; 0 where there is none */
    uint64_t scheduled, in_flight, backlog;
    const struct wb_stats *stats; /* of this interval only */
};

/* Called by the control thread; may write files, should not block long. */
struct wb_load_watch {
    void (*begin)(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms);
    void (*interval)(void *ctx, const struct wb_load_interval *i);
    void *ctx;
};

/* Runs a checked job to its end. An error means that it could not begin (bad address or mix, no
 * threads); all else is in the outcome, which is released with wb_load_outcome_release. */
int wb_load_run(const struct wb_load_job *job, const struct wb_cancel *cancel,
                const struct wb_load_watch *watch, struct wb_load_outcome *out,
                struct wb_err *err) WB_MUST_CHECK;
void wb_load_outcome_release(struct wb_load_outcome *o);

#endif
