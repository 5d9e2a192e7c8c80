/* The event stream: what is asked for. The stream itself is the daemon's and the hub's. */
#include <stdlib.h>
#include <string.h>

#include "server/base/units.h"
#include "server/http/service.h"

static void events(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *last = q->headers[WB_H_LAST_EVENT_ID];
    struct wb_err err = WB_ERR_INIT;
    int64_t id = 0;

    if (last && *last && wb_parse_int(last, 0, INT64_MAX, &id, &err) < 0) {
        wb_answer_problem(q, a, 400, "validation", "Last-Event-ID is no id of an event", NULL);
        return;
    }
    for (size_t i = 0; i < q->nquery; i++) {
        const char *topic = q->query[i].value;

        if (a->topics.n == WB_HUB_TOPICS_MAX || strlen(topic) > 100) {
            wb_answer_problem(q, a, 400, "validation", "at most 16 topics of 100 characters", NULL);
            return;
        }
        wb_strv_add(&a->topics, topic);
    }
    a->status = 200;
    a->stream = true;
    a->last_id = id;
}

static const struct wb_shape query[] = {
    {"topic", WB_S_TEXT, WB_S_LIST, .min = 1, .max = 100, .most = WB_HUB_TOPICS_MAX,
     .help = "queue, campaign:ID, ...; everything when left out"},
    {0},
};

const struct wb_route wb_routes_events[] = {
    {"GET", "/api/v1/events", WB_SCOPE_READ, WB_ROUTE_STREAM, events, "events",
     "Events as they happen", query, .type = "text/event-stream", .status = 200},
    {0},
};
