/*
 * The result document, the summary for people, and the files and lines written while a run goes.
 */
#ifndef WB_LOAD_REPORT_H
#define WB_LOAD_REPORT_H

#include "runners/load/run.h"

/* The result document; owned by the caller. *verdict is static text. */
wb_json *wb_load_report(const struct wb_load_outcome *o, const char **verdict);
/* Writes it to job->output ("-": stdout), atomically, after parsing what will be written once
 * more. */
int wb_load_report_write(const wb_json *result, const char *path, struct wb_err *err) WB_MUST_CHECK;
/* The summary, at most 80 columns wide, from the result document. */
void wb_load_report_text(const wb_json *result, struct wb_buf *out);
/* JSON Schema of the result; owned by the caller. */
wb_json *wb_load_report_schema(void);
/* {count, min_ms, ...}; owned by the caller. */
wb_json *wb_load_latency(const struct wb_hist *h, uint64_t censored);
/* {count, response, service, lag} of one operation, or of all; of a step of transactions, or not.
 * Owned by the caller. */
wb_json *wb_load_operation(const struct wb_op_stats *s, bool open, bool step);

/* Lines of --ndjson and --hdr, and the progress line on a terminal. */
struct wb_load_live;
int wb_load_live_open(const struct wb_load_job *job, struct wb_load_live **out,
                      struct wb_err *err) WB_MUST_CHECK;
void wb_load_live_watch(struct wb_load_live *l, struct wb_load_watch *watch);
/* Ends the progress line and closes the files; an error of any write so far is reported here. */
int wb_load_live_close(struct wb_load_live *l, struct wb_err *err) WB_MUST_CHECK;
void wb_load_live_free(struct wb_load_live *l); /* the same without looking; NULL is fine */

#endif
