/* The queue, the hosts, and what changes a campaign that was sent before. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/http/campaigns.h"
#include "server/queue/leases.h"

/* ---- the queue ---- */

static void get_queue(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *running = NULL, *waiting = NULL, *o;
    struct wb_err err = WB_ERR_INIT;

    if (wb_queue_view(c->db, c->service->pools, wb_now_unix_ms(NULL), &running, &waiting, &err) <
        0) {
        wb_json_free(running);
        wb_answer_error(q, a, &err);
        return;
    }
    o = wb_json_object();
    wb_json_set(o, "running", running);
    wb_json_set(o, "items", waiting);
    wb_json_set(o, "next", wb_json_null());
    wb_answer_json(q, a, 200, o);
}

/* ---- operations: a campaign as work that takes its time ---- */

static const char *operation_state(const char *state)
{
    return !strcmp(state, "queued")      ? "pending"
           : !strcmp(state, "running")   ? "running"
           : !strcmp(state, "finished")  ? "succeeded"
           : !strcmp(state, "cancelled") ? "cancelled"
                                         : "failed";
}

static void get_operation(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_list_filter filter = {.campaign = q->args[0]};
    WB_AUTO_JSON wb_json *campaign = NULL;
    WB_AUTO_JSON wb_json *list = NULL;
    WB_AUTO_FREE char *result = wb_strf("/api/v1/campaigns/%s", q->args[0]);
    struct wb_err err = WB_ERR_INIT;
    wb_json *o, *problem;
    const char *state;
    double runs;
    int rc = wb_queue_get(c->db, q->args[0], &campaign, &err);

    if (rc == 0)
        rc = wb_store_list(c->store, &filter, &list, &err);
    if (rc < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    state = operation_state(wb_json_str_or(campaign, "state", ""));
    runs = (double)wb_json_int_or(campaign, "runs", 0);
    o = wb_json_object();
    wb_json_set_str(o, "id", q->args[0]);
    wb_json_set_str(o, "state", state);
    /* Attempts that were repeated are recorded, too. */
    wb_json_set_real(o, "progress",
                     !strcmp(state, "succeeded")        ? 1
                     : (double)wb_json_len(list) < runs ? (double)wb_json_len(list) / runs
                                                        : 0.99);
    wb_json_set_str(o, "result_url", result);
    wb_json_set(o, "problem", wb_json_null());
    if (!strcmp(state, "failed")) {
        problem = wb_json_object();
        wb_json_set_str(problem, "type", "/problems/campaign-failed");
        wb_json_set_str(problem, "title", "The campaign did not come to its end");
        wb_json_set_str(problem, "detail", wb_json_str_or(campaign, "detail", NULL));
        wb_json_set(o, "problem", problem);
    }
    if (!strcmp(state, "pending") || !strcmp(state, "running"))
        wb_answer_header(a, "Retry-After", "2");
    wb_answer_json(q, a, 200, o);
}

/* ---- hosts ---- */

static void list_hosts(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;

    if (wb_hosts_view(c->db, c->service->pools, &items, &err) < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_list(q, a, items, NULL);
}

/* One host by its id (owned); answers itself, then NULL. */
static wb_json *find_host(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *all = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_hosts_view(c->db, c->service->pools, &all, &err) < 0) {
        wb_answer_error(q, a, &err);
        return NULL;
    }
    for (size_t i = 0; i < wb_json_len(all); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(all, i), "id", ""), q->args[0]))
            return wb_json_copy(wb_json_at(all, i));
    wb_answer_problem(q, a, 404, "not-found",
                      "no pool has such a host; GET /api/v1/hosts lists them", NULL);
    return NULL;
}

static void get_host(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *host = find_host(c, q, a);

    if (host)
        wb_answer_json(q, a, 200, host);
}

static const struct wb_shape host_change_rows[] = {
    {"out_of_service", WB_S_BOOL, WB_S_NEED,
     .help = "true: no campaign gets it; one that holds it ends as it would"},
    {"reason", WB_S_TEXT, .min = 1, .max = 300, .help = "Needed to take it out"},
    {0},
};
static const struct wb_form host_change = {
    .name = "HostChange",
    .rows = host_change_rows,
    .example = "{\"out_of_service\": true, \"reason\": \"a disk is being replaced\"}"};

static void change_host(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const topics[] = {"hosts", "queue", NULL};
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &host_change);
    WB_AUTO_JSON wb_json *had = body ? find_host(c, q, a) : NULL;
    const char *reason = wb_json_str_or(body, "reason", NULL);
    bool out = wb_json_bool_or(body, "out_of_service", false);
    struct wb_err err = WB_ERR_INIT;
    wb_json *now;

    if (!had)
        return;
    if (out && !reason) {
        wb_answer_problem(q, a, 422, "validation", "say why: reason", NULL);
        return;
    }
    if (wb_machine_set(c->db, q->args[0], out ? reason : NULL, q->token.id, wb_now_unix_ms(NULL),
                       &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    wb_dispatch_wake(c->service->dispatch);
    now = find_host(c, q, a);
    if (!now)
        return;
    wb_hub_publish(c->service->hub, topics, "host.state", wb_json_copy(now));
    wb_answer_json(q, a, 200, now);
}

/* ---- campaigns that are there ---- */

void wb_campaign_announce(struct wb_context *c, const char *id)
{
    WB_AUTO_FREE char *topic = wb_strf("campaign:%s", id);
    const char *const topics[] = {"queue", topic, NULL};
    WB_AUTO_JSON wb_json *now = NULL;
    wb_json *o;

    if (wb_queue_get(c->db, id, &now, NULL) < 0)
        return; /* the change is made all the same; its next one is told */
    o = wb_json_object();
    wb_json_set_str(o, "campaign", id);
    wb_json_set_str(o, "state", wb_json_str_or(now, "state", ""));
    wb_hub_publish(c->service->hub, topics, "campaign.state", o);
}

/* After a change that failed: the same request at the same time may have made it. */
static void answer_failed(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                          const struct wb_err *err)
{
    if (err->code != WB_CONFLICT || !wb_request_answered(c, q, a))
        wb_answer_error(q, a, err);
}

static const struct wb_shape extend_rows[] = {
    {"rounds", WB_S_INT, WB_S_NEED, .min = 1, .max = WB_QUEUE_ROUNDS_MAX, .help = "So many more"},
    {0}};
static const struct wb_form extend_form = {
    .name = "Extension", .rows = extend_rows, .example = "{\"rounds\": 4}"};

static void extend(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *key = q->headers[WB_H_IDEMPOTENCY_KEY];
    char digest[WB_SHA256_HEX];
    const struct wb_queue_key keep = {
        .token = q->token.id, .key = key, .digest = digest, .campaign = q->args[0]};
    WB_AUTO_JSON wb_json *body = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_request_answered(c, q, a))
        return;
    body = wb_request_object(q, a, &extend_form);
    if (!body)
        return;
    wb_request_digest(q, digest);
    if (wb_queue_extend(c->db, q->args[0], wb_json_int_or(body, "rounds", 0), key ? &keep : NULL,
                        wb_now_unix_ms(NULL), &err) < 0) {
        answer_failed(c, q, a, &err);
        return;
    }
    wb_campaign_announce(c, q->args[0]);
    wb_dispatch_wake(c->service->dispatch);
    wb_campaign_accepted(c, q, a, q->args[0]);
}

static void resume(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const struct wb_shape none[] = {{0}};
    static const struct wb_form empty = {.name = "Nothing", .rows = none};
    WB_AUTO_FREE char *plan =
        wb_strf("%s/campaigns/%s/plan.json", c->service->state_dir, q->args[0]);
    const char *key = q->headers[WB_H_IDEMPOTENCY_KEY];
    char digest[WB_SHA256_HEX];
    const struct wb_queue_key keep = {
        .token = q->token.id, .key = key, .digest = digest, .campaign = q->args[0]};
    WB_AUTO_JSON wb_json *body = NULL;
    WB_AUTO_JSON wb_json *known = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (wb_request_answered(c, q, a))
        return;
    body = wb_request_object(q, a, &empty);
    if (!body)
        return;
    wb_request_digest(q, digest);
    rc = wb_queue_get(c->db, q->args[0], &known, &err);
    if (rc == 0 && !wb_path_exists(plan))
        rc =
            wb_fail(&err, WB_CONFLICT, "the folder of this campaign is gone: send its study again");
    if (rc == 0)
        rc = wb_queue_resume(c->db, q->args[0], key ? &keep : NULL, wb_now_unix_ms(NULL), &err);
    if (rc < 0) {
        answer_failed(c, q, a, &err);
        return;
    }
    wb_campaign_announce(c, q->args[0]);
    wb_dispatch_wake(c->service->dispatch);
    wb_campaign_accepted(c, q, a, q->args[0]);
}

static const struct wb_shape change_rows[] = {
    {"priority", WB_S_INT, .min = -100, .max = 100, .help = "Higher goes first"},
    {"labels", WB_S_TEXT, WB_S_LIST, .min = 1, .max = 60, .most = 20},
    {0},
};
static const struct wb_form change_form = {
    .name = "CampaignChange", .rows = change_rows, .example = "{\"priority\": 10}"};

static void change(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &change_form);
    const wb_json *priority = wb_json_get(body, "priority");
    int64_t value = wb_json_integer(priority);
    struct wb_err err = WB_ERR_INIT;

    if (!body)
        return;
    if (wb_queue_change(c->db, q->args[0], priority ? &value : NULL, wb_json_get(body, "labels"),
                        &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    wb_campaign_announce(c, q->args[0]);
    wb_dispatch_wake(c->service->dispatch);
    wb_campaign_answer(c, q, a, q->args[0], 200);
}

/* ---- what comes back ---- */

#define TIMES                                                         \
    {"expected_end", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},      \
        {"expected_end_reason", WB_S_TEXT, .help = "Why it is null"}, \
    {                                                                 \
        "hosts_held", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST       \
    }
static const struct wb_shape running_rows[] = {WB_CAMPAIGN_ROWS, TIMES, {0}};
static const struct wb_form running_form = {.name = "Running", .rows = running_rows};
static const struct wb_shape waiting_rows[] = {
    WB_CAMPAIGN_ROWS,
    TIMES,
    {"position", WB_S_INT, .flags = WB_S_NEED},
    {"waiting_for", WB_S_TEXT, WB_S_NEED, .help = "In words"},
    {"expected_start", WB_S_TIME, WB_S_NEED | WB_S_NULL,
     .help = "From what campaigns like it took"},
    {"expected_start_reason", WB_S_TEXT, .help = "Why it is null"},
    {0},
};
static const struct wb_form waiting_form = {.name = "Waiting", .rows = waiting_rows};
static const struct wb_shape queue_rows[] = {
    {"running", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &running_form},
    {"items", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &waiting_form},
    {"next", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {0},
};
static const struct wb_form queue_form = {.name = "Queue", .rows = queue_rows};

static const char *const operation_states[] = {"pending", "running",   "succeeded",
                                               "failed",  "cancelled", NULL};
static const struct wb_shape operation_rows[] = {
    {"id", WB_S_TEXT, .flags = WB_S_NEED},
    {"state", WB_S_WORD, WB_S_NEED, .words = operation_states},
    {"progress", WB_S_REAL, WB_S_NEED, .help = "0 to 1"},
    {"result_url", WB_S_TEXT, .flags = WB_S_NEED},
    {"problem", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_NULL},
    {0},
};
static const struct wb_form operation_form = {.name = "Operation", .rows = operation_rows};

static const char *const host_states[] = {"free", "leased", "dirty", "out", NULL};
static const struct wb_shape host_rows[] = {
    {"id", WB_S_TEXT, WB_S_NEED, .help = "Which machine it is; leases go by it"},
    {"names", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {"pools", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {"class", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"source", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"state", WB_S_WORD, WB_S_NEED, .words = host_states},
    {"campaign", WB_S_TEXT, WB_S_NEED | WB_S_NULL, .help = "That holds its lease"},
    {"since", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {"reason", WB_S_TEXT, WB_S_NEED | WB_S_NULL, .help = "Why it is dirty or out of service"},
    {0},
};
static const struct wb_form host_form = {.name = "Host", .rows = host_rows};

#define API "/api/v1"
const struct wb_route wb_routes_queue[] = {
    {"GET", API "/queue", WB_SCOPE_READ, 0, get_queue, "getQueue",
     "What runs, and what waits in the order in which it will start, and for what",
     .answer = &queue_form, .status = 200},
    {"GET", API "/operations/{operation}", WB_SCOPE_READ, 0, get_operation, "getOperation",
     "How far a campaign is, as any work that takes its time", .answer = &operation_form,
     .status = 200},
    {"GET", API "/hosts", WB_SCOPE_READ, WB_ROUTE_LIST, list_hosts, "listHosts",
     "Machines of all pools, and who holds them", .answer = &host_form, .status = 200},
    {"GET", API "/hosts/{host}", WB_SCOPE_READ, 0, get_host, "getHost", "One machine",
     .answer = &host_form, .status = 200},
    {"PATCH", API "/hosts/{host}", WB_SCOPE_HOSTS, WB_ROUTE_WRITE, change_host, "changeHost",
     "Take a machine out of service, or back", .body = &host_change, .answer = &host_form,
     .status = 200},
    {"POST", API "/campaigns/{campaign}/extend", WB_SCOPE_RUNS, WB_ROUTE_WRITE | WB_ROUTE_KEY,
     extend, "extendCampaign", "More rounds, while it waits or runs", .body = &extend_form,
     .answer = &wb_form_campaign, .status = 202, .also = {409}},
    {"POST", API "/campaigns/{campaign}/resume", WB_SCOPE_RUNS,
     WB_ROUTE_WRITE | WB_ROUTE_KEY | WB_ROUTE_NO_BODY, resume, "resumeCampaign",
     "Go on with one that was interrupted, failed or was cancelled on its way",
     .answer = &wb_form_campaign, .status = 202, .also = {409}},
    {"PATCH", API "/campaigns/{campaign}", WB_SCOPE_RUNS, WB_ROUTE_WRITE, change, "changeCampaign",
     "Another priority, other labels", .body = &change_form, .answer = &wb_form_campaign,
     .status = 200},
    {0},
};
