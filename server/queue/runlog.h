/*
 * The logs of a campaign's running run, read on as they grow. Streams have the names that they
 * will have in the record, and begin with the same bytes: "db0.redis.log", "db0.out.log",
 * "load-max.log".
 *
 * Each part is told as run.log {campaign, run, stream, from, to, text}: from and to count bytes of
 * the stream, parts of a stream meet without gap. text is exactly these bytes; it is left out
 * where they are no text (or too many at once), and a reader that has not all bytes up to `from`
 * fetches what it lacks by its offset. So whatever the event stream loses, no byte of a log is lost
 * or doubled.
 */
#ifndef WB_QUEUE_RUNLOG_H
#define WB_QUEUE_RUNLOG_H

#include "server/base/json.h"
#include "server/queue/follow.h"

#define WB_RUNLOG_TEXT_MAX 8192u   /* bytes of text in one event; more come without */
#define WB_RUNLOG_STREAMS_MAX 200u /* of one campaign; those beyond are not told */

struct wb_runlog;

/* Streams that are there already are told from their present end. */
struct wb_runlog *wb_runlog_new(const char *state_dir, const char *campaign);
void wb_runlog_free(struct wb_runlog *t);
/* Tells what is new (topic: the run). At most one event per stream; call it about four times a
 * second. */
void wb_runlog_read(struct wb_runlog *t, wb_follow_fn tell, void *arg);

/* The file behind a stream of a run in its folder; caller frees. NULL when no such stream can be.
 * The name is checked: nothing outside of the folder is ever named. */
char *wb_runlog_path(const char *run_dir, const char *stream);

#endif
