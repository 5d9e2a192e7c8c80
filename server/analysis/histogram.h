/*
 * `stats histogram`: what HDR histograms say, one or many merged.
 *
 *   {log: "text of an HDR log"} or {logs: [...]}, with tag?, from_s?, to_s?;
 *   {base64: "..."} or {base64: [...], digits?, lowest?, highest?};
 *   {records: [[value, count], ...], digits?, lowest?, highest?, expected_interval?};
 *   {values: [...], digits?, lowest?, highest?, expected_interval?}; percentiles? with each.
 *
 * A value at a percentile is, as in Java's HdrHistogram, the highest value that is as good as the
 * one at rank ceil(p/100 * count); at 0 the lowest one of the first bucket. Histograms of different
 * parameters are merged by value into the coarser precision. from_s counts from the log's
 * StartTime; an entry counts when it begins at from_s or later and before to_s. tag "" means
 * entries without a tag.
 *
 * Answer: entries, count, min, max, mean, stddev, percentiles {"50": v}, overflow (values above
 * highest), start_time, tags, by_tag, bad_lines [{line, message}] (lines that are no entries; they
 * do not count), corrected {...} with expected_interval.
 */
#ifndef WB_ANALYSIS_HISTOGRAM_H
#define WB_ANALYSIS_HISTOGRAM_H

#include "server/base/json.h"

int wb_stats_histogram(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_histogram_print(const wb_json *answer, int width, struct wb_buf *out);
/* The document of files as they are: JSON, HDR logs, encoded histograms one a line, or CSV with the
 * columns value and count (or values). *doc is owned. */
struct wb_topic_file;
int wb_histogram_read(const struct wb_topic_file *files, size_t n, const char *column,
                      wb_json **doc, struct wb_err *err) WB_MUST_CHECK;

#endif
