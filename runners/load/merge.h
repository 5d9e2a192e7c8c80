/*
 * Results of several processes that made one load become one result: histograms are added bucket by
 * bucket, counts are summed, nothing is averaged.
 */
#ifndef WB_LOAD_MERGE_H
#define WB_LOAD_MERGE_H

#include <stddef.h>

#include "server/base/json.h"

#define WB_MERGE_MOST 1024

/* The histograms of a result as {operations: {NAME: {response, service, lag}}, failed_replies,
 * own_lag} of base64 texts, those that are empty left out; owned by the caller. They are in a
 * result when --part was given. */
struct wb_load_outcome;
wb_json *wb_load_histograms(const struct wb_load_outcome *o);

/* Merges n >= 2 results. names are those of their files, for messages. The results must be of the
 * same workload, seed, model and version, and be parts h/H of one load, each once and all there, or
 * each the only part of its own (1/1): then closed loops that ran at the same time. WB_INVALID
 * names the field and the files. *out is owned by the caller; *verdict is static text. The merged
 * result has the shape of a single one and `parts`, one entry a file. Its window reaches from the
 * earliest begin to the latest end; starts that are further apart than clocks should be make it
 * noisy. */
int wb_load_merge(const wb_json *const *docs, const char *const *names, size_t n, wb_json **out,
                  const char **verdict, struct wb_err *err) WB_MUST_CHECK;

#endif
