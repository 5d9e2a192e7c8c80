/*
 * Several measured windows one after the other, each at a rate of its own: a sweep over given
 * rates, or the search for the highest one that holds a limit. Every point is a whole run with its
 * own connections, warm-up and window, so that nothing but the last point's own operations is in
 * its figures; data is loaded once, before the first.
 */
#ifndef WB_LOAD_EXPLORE_H
#define WB_LOAD_EXPLORE_H

#include "runners/load/run.h"

struct wb_load_exploration {
    wb_json *result; /* document of the point that stands for all, with the curve of all points */
    const char *verdict;
    enum wb_load_end end; /* of the last point */
};

/* Whether a checked job asks for it. */
bool wb_load_explores(const struct wb_load_job *job);
/* Leads the points. The document is of the last confirmation of the rate that was found; of a sweep
 * of the highest rate that was served, else of the first; owned by the caller. An error means that
 * the first point could not begin. */
int wb_load_explore(const struct wb_load_job *job, const struct wb_cancel *cancel,
                    const struct wb_load_watch *watch, struct wb_load_exploration *out,
                    struct wb_err *err) WB_MUST_CHECK;

#endif
