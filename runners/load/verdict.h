/*
 * May the numbers be believed, and what was the limit: one word and the reasons, each with its
 * evidence. The limits are one table in verdict.c.
 */
#ifndef WB_LOAD_VERDICT_H
#define WB_LOAD_VERDICT_H

#include "runners/load/run.h"

/* Fills *reasons (array, owned by the caller) and returns the word: "valid", "server-bound",
 * "client-bound", "one-thread-bound", "network-bound", "noisy" or "failed". Static text. */
const char *wb_load_verdict(const struct wb_load_outcome *o, wb_json **reasons);

/* The worse of two such words; one that is none counts as the worst. Static text. */
const char *wb_load_worse(const char *a, const char *b);

/* achieved / (connections x depth / mean service): 1 when Little's law holds. -1: not known. */
double wb_load_little_ratio(const struct wb_load_outcome *o);
/* Open loop: whether at least 99 % of what was offered in the window was served in it, but for what
 * was still in flight at its end. */
bool wb_load_served(const struct wb_load_outcome *o);
/* Successes completed inside the window per second; 0 without a window. */
double wb_load_achieved(const struct wb_load_outcome *o);
/* The same of what the schedule offers: transactions where there are any, else operations. */
double wb_load_units_per_s(const struct wb_load_outcome *o);
/* p50 and the like over all operations of a phase: merges into a fresh histogram that the caller
 * releases. which: 0 service, 1 response, 2 lag, 3 service of transactions. What the schedule
 * offers has a response: transactions where there are any, else operations. */
void wb_load_merged(const struct wb_stats *s, enum wb_load_phase phase, int which,
                    struct wb_hist *out);

#endif
