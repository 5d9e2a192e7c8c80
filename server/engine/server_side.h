/*
 * What the database says of itself: readings of step measure, and the figures of a window from the
 * readings at its two ends.
 *
 * A reading of one instance is {metrics: {name: number}, histograms: {name: {unit, bounds,
 * counts}}}. A histogram counts since the start of the database: counts[i] values in (bounds[i-1],
 * bounds[i]] of the unit ns, us or ms, and one more count for what is above the last bound.
 */
#ifndef WB_ENGINE_SERVER_SIDE_H
#define WB_ENGINE_SERVER_SIDE_H

#include "server/engine/run.h"

/* Asks all instances; *out, owned by the caller, is a list with null for an instance whose step
 * said nothing. Notes sut-error when a step fails. NULL in *out: the recipe has no such step. */
int wb_server_read(struct wb_run *r, wb_json **out) WB_MUST_CHECK;

/* The window between two readings: {instances: [{metrics}], histograms: {name: {count, p50_ms,
 * p99_ms, p99_9_ms, max_ms}}}. Counters are differences, gauges what they were at the end; a
 * counter that ran backwards is null with a reason, for the database was restarted in between.
 * Histograms are differences summed over instances, null with a reason when a reading of one of
 * them lacks it; a percentile is the upper bound of its bucket, null with a reason above the last
 * one. Owned by the caller. */
wb_json *wb_server_window(const struct wb_recipe *recipe, const wb_json *before,
                          const wb_json *after);

/* NULL when the server's p99 can be a part of the client's; else why it cannot, which is mostly
 * a unit that is off by 1000. Both in ms and > 0; static text. */
const char *wb_server_units(double client_p99_ms, double server_p99_ms);

/* Puts the window into a phase's result as `server`, with `units` for each operation that both
 * sides know. */
void wb_server_note(const struct wb_run *r, const char *phase, const wb_json *before,
                    const wb_json *after);

#endif
