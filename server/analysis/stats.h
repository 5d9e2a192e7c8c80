/*
 * Topics of `stats` that are one file each: JSON in, JSON out, and the answer for people. The keys
 * are a contract with other programs; what a topic reads stands in its row of topics.c. *out is
 * owned. WB_INVALID (the message begins with a JSON pointer) on bad input.
 */
#ifndef WB_ANALYSIS_STATS_H
#define WB_ANALYSIS_STATS_H

#include "server/base/json.h"

int wb_stats_spread(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_spread_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_variance(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_variance_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_power(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_power_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_scaling(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_scaling_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_queue(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_queue_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_price(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_price_print(const wb_json *answer, int width, struct wb_buf *out);
int wb_stats_composite(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_composite_print(const wb_json *answer, int width, struct wb_buf *out);

#endif
