/*
 * Operations on the cluster while a phase's load goes on (`during` of a study): one after the other
 * at their times, each with the limit of the recipe, each over once the nodes themselves say that
 * the cluster is as it should be. Private to server/engine.
 *
 * A step of the recipe does the work of kinds `work` and `leave`, as a job on the database's CPUs
 * whose CPU time is counted as the database's: what an operation costs is part of what is measured.
 * An instance that joins is started by its form; one that is restarted gets SIGTERM, which every
 * database takes as an orderly stop, and is started again.
 *
 * Outcome: a step that fails, a limit that is passed, a cluster that is not as expected, and an
 * operation that could not begin within the window are sut-error; a step that cannot be run is
 * infra-error. Each reason names phase, operation and instance.
 */
#ifndef WB_ENGINE_RING_H
#define WB_ENGINE_RING_H

#include "server/engine/worker.h"

struct wb_ring;

/* Operations of the worker's phase; w is borrowed. */
struct wb_ring *wb_ring_new(struct wb_worker *w);
/* What is due now is done. Called a few times a second while the window is open; blocks for the
 * start of an instance at most. */
int wb_ring_turn(struct wb_ring *g) WB_MUST_CHECK;
/* After the load: what has begun is brought to its end, then version, settings and placement of new
 * and restarted instances are proved. */
int wb_ring_finish(struct wb_ring *g) WB_MUST_CHECK;
/* [{do, instance, at_s, began_at, seconds, confirmed_s, said, before, during, after}]: seconds
 * until it was done, confirmed_s until the nodes had said so often enough; said is what its step
 * told; the windows as in wb_ring_window. Owned by the caller. */
wb_json *wb_ring_report(const struct wb_ring *g);
/* Ends what still runs. */
void wb_ring_free(struct wb_ring *g);

/* ring_windows.c ---------------------------------------------------------------------------- */

/* What the load generator has told of a phase, interval by interval. */
struct wb_ring_series {
    wb_json *lines; /* of its interval lines, those of the measured part; owned */
    char *hdr;      /* its HDR log, hdr_n bytes; owned */
    size_t hdr_n;
    double start_unix_s; /* what the times of both count from; 0: not known */
    const char *kind;    /* "response", or in closed loop "service" */
};
/* Reads both files of a phase; what is missing makes windows without figures. */
void wb_ring_series_read(struct wb_ring_series *s, const char *base, bool open_loop);
void wb_ring_series_release(struct wb_ring_series *s);

/*
 * The intervals between two times (Unix s): those that lie wholly within, or with `touching` all
 * that have a part in common with it. {intervals, seconds, ok, failed, throughput, p50_ms, p99_ms,
 * p99_9_ms, max_ms}: throughput is all successes over all seconds, percentiles are of the merged
 * histograms. What there is no interval for is null with a reason. Owned by the caller.
 */
wb_json *wb_ring_window(const struct wb_ring_series *s, double from_s, double to_s, bool touching);

#endif
