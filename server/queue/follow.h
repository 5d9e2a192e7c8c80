/* What a running engine writes, read on from where it was read last. */
#ifndef WB_QUEUE_FOLLOW_H
#define WB_QUEUE_FOLLOW_H

#include <stdbool.h>

#include "server/base/json.h"

struct wb_follow;
typedef void (*wb_follow_fn)(void *arg, const char *const *topics, const char *type, wb_json *data);

/* Begins at the end of what is there now. */
struct wb_follow *wb_follow_new(const char *state_dir, const char *campaign);
void wb_follow_free(struct wb_follow *f);
/* Tells every whole new line of events.ndjson and the newest live figures (topics: the campaign
 * and, where the event has one, its run). A line that is no JSON is passed over. */
void wb_follow_read(struct wb_follow *f, wb_follow_fn tell, void *arg);
/* True the first time it is called. */
bool wb_follow_first_cancel(struct wb_follow *f);

#endif
