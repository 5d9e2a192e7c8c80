/*
 * `stats steady`: whether a run had a steady state, and from when on it counts.
 *
 *   {interval_s?, throughput: [number or null]}, or {t_s: [], seconds: [], ops: []}, or
 *   {t_s: [], ops_per_s: []}; warm_up_s?, measured_s?
 *
 * t_s is where an interval begins, or where it ends when that fits the lengths better. Intervals
 * that begin before warm_up_s, or end after warm_up_s + measured_s, do not count; the others count
 * by their length.
 *
 * Answer: class and traits (flat, warmup, slowdown, periodic, stall, none, insufficient), cut
 * (seconds discarded at the start), mean_after_cut, mean (of all), mser5 {cut, hits_half},
 * last_quarter {mean, cv, slope, slope_percent}, segments, stalls, slowdown, period_s, seconds.
 *
 * Method: levels by least squares with a penalty of 5 s^2 ln n and at least 10 s each; those within
 * 3 % of the last one are as good as it. Low levels shorter than 15 s (or a tenth of the run)
 * between equal ones are stalls, never cut away. A level that differs within the last quarter, or a
 * slope of 3 % over it, is no steady state. MSER-5 is asked only where all levels are the same.
 */
#ifndef WB_ANALYSIS_STEADY_H
#define WB_ANALYSIS_STEADY_H

#include "server/base/json.h"

int wb_stats_steady(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_steady_print(const wb_json *answer, int width, struct wb_buf *out);

#endif
