/*
 * What a person sees while a campaign runs: on a terminal one line that is rewritten (arm, round,
 * phase, rate, p99, time left), elsewhere one line per phase change. Always on standard error.
 */
#ifndef WB_CLI_PROGRESS_H
#define WB_CLI_PROGRESS_H

#include "server/base/json.h"

struct wb_progress;

struct wb_progress *wb_progress_new(int fd, bool no_color);
/* A wb_event_fn; arg is the wb_progress. */
void wb_progress_event(void *arg, const wb_json *event);
/* Ends the line that is being rewritten and frees. */
void wb_progress_free(struct wb_progress *p);

#endif
