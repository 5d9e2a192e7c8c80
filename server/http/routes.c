/* All routes, and the way of a request through them. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/units.h"
#include "server/http/service.h"

#define API "/api/v1"
#define OPEN WB_ROUTE_OPEN
#define WRITE WB_ROUTE_WRITE

static const char *const page_query[] = {"limit", "cursor", NULL};
static const char *const campaign_query[] = {"state", "limit", "cursor", NULL};
static const char *const run_query[] = {"campaign", "arm", "outcome", "limit", "cursor", NULL};
static const char *const event_query[] = {"topic", NULL};
static const char *const dry_query[] = {"dry_run", NULL};

const struct wb_route wb_routes[] = {
    {"GET", "/healthz", WB_SCOPE_NONE, OPEN, wb_h_healthz, "healthz", "The server is alive", NULL,
     NULL, 200},
    {"GET", "/readyz", WB_SCOPE_NONE, OPEN, wb_h_readyz, "readyz",
     "The server can take work; 503 names what is wrong", NULL, NULL, 200},
    {"GET", "/version", WB_SCOPE_NONE, OPEN, wb_h_version, "version", "Version of the server", NULL,
     NULL, 200},
    {"GET", "/metrics", WB_SCOPE_READ, 0, wb_h_metrics, "metrics",
     "Figures of the server for Prometheus", NULL, NULL, 200},
    {"GET", "/", WB_SCOPE_NONE, OPEN, wb_h_page, "page", "A page that lists runs", NULL, NULL, 200},
    {"GET", "/app/{file}", WB_SCOPE_NONE, OPEN, wb_h_app, "appFile", "A script of the page", NULL,
     NULL, 200},
    {"GET", "/css/{file}", WB_SCOPE_NONE, OPEN, wb_h_css, "styleFile", "A style of the page", NULL,
     NULL, 200},
    {"GET", API "/openapi.json", WB_SCOPE_NONE, OPEN, wb_h_openapi, "openapi", "This document",
     NULL, NULL, 200},
    {"POST", API "/validate", WB_SCOPE_READ, 0, wb_h_validate, "validate",
     "Check a study and show its plan; nothing is created", NULL, "Submission", 200},
    {"GET", API "/campaigns", WB_SCOPE_READ, 0, wb_h_campaigns, "listCampaigns",
     "Campaigns, newest first", campaign_query, NULL, 200},
    {"POST", API "/campaigns", WB_SCOPE_RUNS, WRITE, wb_h_campaign_post, "startCampaign",
     "Check a study and put it into the queue", dry_query, "Submission", 202},
    {"GET", API "/campaigns/{campaign}", WB_SCOPE_READ, 0, wb_h_campaign, "getCampaign",
     "One campaign: state, plan, progress", NULL, NULL, 200},
    {"POST", API "/campaigns/{campaign}/cancel", WB_SCOPE_RUNS, WRITE, wb_h_campaign_cancel,
     "cancelCampaign", "End a campaign; legal until it is over", NULL, "Empty", 202},
    {"POST", API "/campaigns/{campaign}/rerun", WB_SCOPE_RUNS, WRITE, wb_h_campaign_rerun,
     "rerunCampaign", "The same study again, with a new seed", NULL, "Again", 202},
    {"GET", API "/campaigns/{campaign}/report", WB_SCOPE_READ, 0, wb_h_campaign_report, "getReport",
     "Arms, contrasts and verdicts, from the records", NULL, NULL, 200},
    {"GET", API "/queue", WB_SCOPE_READ, 0, wb_h_queue, "getQueue",
     "What waits, in the order in which it will start, and for what", NULL, NULL, 200},
    {"GET", API "/runs", WB_SCOPE_READ, 0, wb_h_runs, "listRuns", "Recorded runs, newest first",
     run_query, NULL, 200},
    {"GET", API "/runs/{run}", WB_SCOPE_READ, 0, wb_h_run, "getRun", "Summary of one run", NULL,
     NULL, 200},
    {"GET", API "/runs/{run}/artifacts", WB_SCOPE_READ, 0, wb_h_run_artifacts, "listArtifacts",
     "Raw files of a run", NULL, NULL, 200},
    {"GET", API "/runs/{run}/artifacts/{name}", WB_SCOPE_READ, 0, wb_h_run_artifact, "getArtifact",
     "One raw file, whole or a range of it", NULL, NULL, 200},
    {"GET", API "/runs/{run}/{document}", WB_SCOPE_READ, 0, wb_h_run_document, "getRunDocument",
     "One document of the record: study, plan, environment, result or events", NULL, NULL, 200},
    {"GET", API "/recipes", WB_SCOPE_READ, 0, wb_h_recipes, "listRecipes",
     "Recipes that a study may name", NULL, NULL, 200},
    {"GET", API "/recipes/{recipe}", WB_SCOPE_READ, 0, wb_h_recipe, "getRecipe",
     "Versions, parameters and metrics of a recipe", NULL, NULL, 200},
    {"GET", API "/events", WB_SCOPE_READ, WB_ROUTE_STREAM, wb_h_events, "events",
     "Events as they happen (text/event-stream)", event_query, NULL, 200},
    {"GET", API "/whoami", WB_SCOPE_READ, 0, wb_h_whoami, "whoami", "The token that asks", NULL,
     NULL, 200},
    {"POST", API "/session", WB_SCOPE_NONE, OPEN, wb_h_session_post, "beginSession",
     "Give a browser a cookie for a token", NULL, "Session", 201},
    {"DELETE", API "/session", WB_SCOPE_NONE, WRITE, wb_h_session_delete, "endSession",
     "End the session of the cookie", NULL, NULL, 204},
    {"GET", API "/tokens", WB_SCOPE_TOKENS, 0, wb_h_tokens, "listTokens",
     "Tokens, without their secrets", NULL, NULL, 200},
    {"POST", API "/tokens", WB_SCOPE_TOKENS, WRITE, wb_h_token_post, "makeToken",
     "Make a token; it is shown this once", NULL, "NewToken", 201},
    {"DELETE", API "/tokens/{token}", WB_SCOPE_TOKENS, WRITE, wb_h_token_delete, "revokeToken",
     "Take a token and its sessions back", NULL, NULL, 204},
    {"GET", API "/audit", WB_SCOPE_TOKENS, 0, wb_h_audit, "listAudit",
     "Who changed what, newest first", page_query, NULL, 200},
    {0},
};

/* Whether the segments fit a path; fills args. */
static bool fits(const char *path, struct wb_request *q)
{
    size_t args = 0, i = 0;

    for (const char *p = path + 1; *p; i++) {
        size_t n = strcspn(p, "/");

        if (i == q->nsegments)
            return false;
        if (*p == '{')
            q->args[args++] = q->segments[i];
        else if (strlen(q->segments[i]) != n || strncmp(p, q->segments[i], n) != 0)
            return false;
        p += n + (p[n] == '/');
    }
    return i == q->nsegments;
}

const struct wb_route *wb_route_find(struct wb_request *q, struct wb_answer *a)
{
    const char *method = !strcmp(q->method, "HEAD") ? "GET" : q->method;
    struct wb_buf allow = WB_BUF_INIT(256);

    for (const struct wb_route *r = wb_routes; r->method; r++) {
        if (!fits(r->path, q))
            continue;
        if (!strcmp(r->method, method)) {
            wb_buf_release(&allow);
            return r;
        }
        wb_buf_addf(&allow, "%s%s%s", allow.len ? ", " : "", r->method,
                    !strcmp(r->method, "GET") ? ", HEAD" : "");
    }
    if (allow.len) {
        wb_answer_header(a, "Allow", allow.data);
        wb_answer_problem(q, a, 405, "method-not-allowed",
                          "this address does not take that method; Allow names those it takes",
                          NULL);
    } else {
        wb_answer_problem(q, a, 404, "not-found",
                          "there is nothing at this address; GET /api/v1/openapi.json lists what "
                          "there is",
                          NULL);
    }
    wb_buf_release(&allow);
    return NULL;
}

/* ---- who asks ---- */

/* The token's text: of the header, else of the cookie; caller frees, NULL without. */
static char *token_text(struct wb_request *q)
{
    const char *sent = q->headers[WB_H_AUTHORIZATION], *cookie;
    size_t n = 0;

    if (sent && !strncmp(sent, "Bearer ", 7))
        return wb_strdup(sent + 7 + strspn(sent + 7, " "));
    if (sent)
        return wb_strdup(sent); /* another scheme: no token, and that is said */
    cookie = wb_request_cookie(q, "wb_session", &n);
    q->by_cookie = cookie != NULL;
    return cookie ? wb_strndup(cookie, n) : NULL;
}

/* A page of another site may make a browser send our cookie, but neither header. */
static bool from_own_page(const struct wb_service *s, const struct wb_request *q)
{
    const char *host = q->headers[WB_H_HOST], *origin = q->headers[WB_H_ORIGIN];
    WB_AUTO_FREE char *own = wb_strf("%s://%s", s->secure ? "https" : "http", host ? host : "");

    return origin && !strcmp(origin, own) && q->headers[WB_H_CSRF];
}

static void refuse_unknown(const struct wb_request *q, struct wb_answer *a, const char *why)
{
    wb_answer_header(a, "WWW-Authenticate", "Bearer realm=\"weighbridge\"");
    wb_answer_problem(q, a, 401, "not-authenticated", why, NULL);
}

bool wb_route_allow(struct wb_context *c, const struct wb_route *r, struct wb_request *q,
                    struct wb_answer *a)
{
    WB_AUTO_FREE char *text = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (r->flags & WB_ROUTE_OPEN)
        return true;
    text = token_text(q);
    if (!text && r->scope == WB_SCOPE_READ && c->service->anonymous_read)
        return true;
    if (!text) {
        refuse_unknown(q, a, "a token is needed: Authorization: Bearer wb_...");
        return false;
    }
    rc = wb_token_check(c->db, text, wb_now_unix_ms(NULL), &q->token, &err);
    explicit_bzero(text, strlen(text));
    if (rc == -WB_NOT_FOUND) {
        refuse_unknown(q, a, err.root);
        return false;
    }
    if (rc < 0) {
        wb_answer_error(q, a, &err);
        return false;
    }
    if (q->by_cookie && strcmp(r->method, "GET") != 0 && !from_own_page(c->service, q)) {
        wb_answer_problem(q, a, 403, "cross-site",
                          "a session's writes need the Origin of this server and X-WB-CSRF", NULL);
        return false;
    }
    if ((q->token.scopes & r->scope) != (unsigned)r->scope) {
        WB_AUTO_FREE char *why = wb_strf("the token lacks the scope %s", wb_scope_name(r->scope));

        wb_answer_problem(q, a, 403, "scope-missing", why, NULL);
        return false;
    }
    return true;
}

/* ---- the way ---- */

static void keep(struct wb_context *c, const struct wb_request *q, const struct wb_answer *a)
{
    const struct wb_audit entry = {.token = *q->token.id ? q->token.id : NULL,
                                   .request = q->id,
                                   .method = q->method,
                                   .path = q->path,
                                   .status = a->status};

    /* The write itself is done and is not taken back for a line of the log. */
    WB_IGNORE(wb_audit_add(c->db, &entry, wb_now_unix_ms(NULL), NULL));
}

void wb_service_answer(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const none[] = {NULL};
    const struct wb_route *r = wb_route_find(q, a);
    struct wb_err err = WB_ERR_INIT;

    if (r && wb_route_allow(c, r, q, a)) {
        if (wb_request_only(q, r->query ? r->query : none, &err) < 0)
            wb_answer_problem(q, a, 400, "validation", err.root, NULL);
        else
            r->handle(c, q, a);
        if (r->flags & WB_ROUTE_WRITE)
            keep(c, q, a);
    }
    atomic_fetch_add(&c->service->requests, 1);
    if (a->status >= 500)
        atomic_fetch_add(&c->service->failed, 1);
    else if (a->status >= 400)
        atomic_fetch_add(&c->service->refused, 1);
}

void wb_h_events(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
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
