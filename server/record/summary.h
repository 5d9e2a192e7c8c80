/*
 * What of a summary follows from the result alone. The engine calls this when it makes a summary,
 * verify calls it again: the two must agree to the last digit.
 *
 * result.json: {"phases": [{name, model: "open"|"closed", load: <result of wb-load> or null,
 * measured: false for phases that only prepare}]}. One that was imported has no phases and
 * imported: {metrics: {name: {value, unit, better}}} (see import.h).
 */
#ifndef WB_RECORD_SUMMARY_H
#define WB_RECORD_SUMMARY_H

#include "server/base/json.h"

/* Metrics of all phases: "<phase>.throughput" (successful operations per second) and, from the
 * response times in the open model and the service times in the closed one, "<phase>.p50_ms",
 * "<phase>.p99_ms", "<phase>.p99_9_ms"; of measured phases also "<phase>.client_cpu_ms", CPU time
 * of the load program per operation. Each is {value, unit, better}. A figure that the load could
 * not give (null or absent) has no metric. *metrics is an object owned by the caller. WB_INVALID
 * names the phase. */
int wb_summary_metrics(const wb_json *result, wb_json **metrics, struct wb_err *err) WB_MUST_CHECK;

/* Names of the two metrics that stand for the run in a list, {throughput, p99}: throughput of the
 * first measured phase in the closed model, p99 of the first one in the open model, else of any;
 * null where there is none. Only metrics that exist are named. Owned by the caller. */
wb_json *wb_summary_headline(const wb_json *result, const wb_json *metrics);

#endif
