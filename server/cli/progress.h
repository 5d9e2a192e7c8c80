/*
 * What a person sees while a campaign runs: on a terminal one line that is rewritten (arm, round,
 * phase, rate, p99, time left), elsewhere one line per phase change. Always on standard error.
 */
#ifndef WB_CLI_PROGRESS_H
#define WB_CLI_PROGRESS_H

#include <stdbool.h>

#include "server/base/json.h"

/* What the rewritten line says. Unknown figures are negative, unknown texts NULL. */
struct wb_progress_view {
    int64_t run, runs, round, rounds; /* from 1 */
    bool calibrating, warm_up;        /* calibrating: instead of run and round */
    bool reference;                   /* of a pass that does not count: for parity */
    const char *arm, *phase;
    double elapsed_s, planned_s; /* of the phase */
    double rate_per_s, p99_ms;
    double left_s; /* of the campaign */
};
/* Appends the line in at most `width` columns (40 or more), without its end. What does not fit is
 * said shorter or left out, what matters least first; a figure is never cut. */
void wb_progress_line(const struct wb_progress_view *v, int width, struct wb_buf *out);

struct wb_progress;

struct wb_progress *wb_progress_new(int fd, bool no_color);
/* A wb_event_fn; arg is the wb_progress. */
void wb_progress_event(void *arg, const wb_json *event);
/* Ends the line that is being rewritten and frees. */
void wb_progress_free(struct wb_progress *p);

#endif
