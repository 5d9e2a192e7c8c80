/*
 * Campaigns as one list, newest first: those that were sent to this service (its queue) and those
 * that only the records know (`weighbridge run`, other controllers). Pages come from both without
 * reading either whole; a campaign that both know stands there once, as the queue's.
 */
#ifndef WB_HTTP_CAMPAIGN_LIST_H
#define WB_HTTP_CAMPAIGN_LIST_H

#include "server/http/service.h"

/* The state of a campaign that only the records know. */
#define WB_STATE_RECORDED "recorded"

struct wb_campaign_ask {
    const char *state, *study; /* NULL: any */
    const char *cursor;        /* *next of the page before; NULL: the first */
    size_t limit;
};
/* *items and *next (NULL: this was the last page) are owned. */
int wb_campaigns_list(struct wb_context *c, const struct wb_campaign_ask *ask, wb_json **items,
                      char **next, struct wb_err *err) WB_MUST_CHECK;
/* One that only the records know, as a row of that list; WB_NOT_FOUND. */
int wb_campaign_recorded(struct wb_context *c, const char *id, wb_json **out,
                         struct wb_err *err) WB_MUST_CHECK;

#endif
