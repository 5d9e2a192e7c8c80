/*
 * Which runs a request speaks of: query values shared by lists and exports, as a question to the
 * index of the store.
 */
#ifndef WB_HTTP_FILTERS_H
#define WB_HTTP_FILTERS_H

#include "server/http/service.h"
#include "server/record/query.h"

extern const char *const wb_sort_words[]; /* NULL-ended */

/* Rows of a route's query. */
#define WB_QUERY_FILTERS                                                                          \
    {"campaign", WB_S_TEXT, .min = 1, .max = 128}, {"study", WB_S_TEXT, .min = 1, .max = 100},    \
        {"arm", WB_S_TEXT, .min = 1, .max = 400, .help = "The whole label"},                      \
        {"outcome", WB_S_WORD, .words = wb_outcome_words},                                        \
        {"validity", WB_S_WORD, .words = wb_validity_words},                                      \
        {"series", WB_S_TEXT, .min = 1, .max = 128}, {"recipe", WB_S_TEXT, .min = 1, .max = 100}, \
        {"version", WB_S_TEXT, .min = 1, .max = 100, .help = "Of the recipe"},                    \
        {"host_class", WB_S_TEXT, .min = 1, .max = 200},                                          \
        {"since", WB_S_TIME, .help = "Started then or later"},                                    \
    {                                                                                             \
        "until", WB_S_TIME, .help = "Started before"                                              \
    }
#define WB_QUERY_RUNS                                                                 \
    WB_QUERY_FILTERS,                                                                 \
    {                                                                                 \
        "sort", WB_S_WORD, .words = wb_sort_words, .help = "-started_at unless given" \
    }

/* The filters alone; what out points to is the request's. */
void wb_query_filters(const struct wb_request *q, struct wb_query *out);
/* Filters, sort, limit and cursor. *filter (owned) is what cursors are bound to, *cursor (owned)
 * where the page begins. Answers 400 itself, then false. */
bool wb_runs_query(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                   struct wb_query *out, char **filter, char **cursor);

#endif
