/* All routes, and the way of a request through them. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/http/encode.h"
#include "server/http/service.h"

/* A line each, so that two additions do not meet. */
/* clang-format off */
const struct wb_route *const wb_route_tables[] = {
    wb_routes_meta,
    wb_routes_static,
    wb_routes_openapi,
    wb_routes_campaigns,
    wb_routes_runs,
    wb_routes_exports,
    wb_routes_registry,
    wb_routes_recipes,
    wb_routes_access,
    wb_routes_events,
    wb_routes_analyses,
    wb_routes_histories,
    wb_routes_notes,
    wb_routes_trail,
    wb_routes_queue,
    wb_routes_documents,
    NULL,
};
/* clang-format on */

/* How many segments fit a path letter by letter, -1 when the path is another one. args gets the
 * others. */
static int fits(const char *path, const struct wb_request *q, const char **args)
{
    size_t n_args = 0, i = 0;
    int literal = 0;

    for (const char *p = path + 1; *p; i++) {
        size_t n = strcspn(p, "/");

        if (i == q->nsegments)
            return -1;
        if (*p == '{')
            args[n_args++] = q->segments[i];
        else if (strlen(q->segments[i]) != n || strncmp(p, q->segments[i], n) != 0)
            return -1;
        else
            literal++;
        p += n + (p[n] == '/');
    }
    return i == q->nsegments ? literal : -1;
}

/* Whether a method was added to the text; each stands in it once. */
static void add_method(struct wb_buf *allow, const char *method)
{
    WB_AUTO_FREE char *padded = wb_strf(", %s,", wb_buf_str(allow));
    WB_AUTO_FREE char *name = wb_strf(", %s,", method);

    if (!strstr(padded, name))
        wb_buf_addf(allow, "%s%s", allow->len ? ", " : "", method);
}

/* An address belongs to the routes whose path fits it in the most parts letter by letter, so that
 * "/runs/{run}/artifacts" hides "/runs/{run}/{document}". */
static int best_fit(const struct wb_request *q)
{
    const char *args[WB_LEN(q->args)];
    int best = -1;

    for (const struct wb_route *const *t = wb_route_tables; *t; t++)
        for (const struct wb_route *r = *t; r->method; r++) {
            int n = fits(r->path, q, args);

            best = n > best ? n : best;
        }
    return best;
}

static void answer_no_route(const struct wb_request *q, struct wb_answer *a, int best)
{
    struct wb_buf allow = WB_BUF_INIT(256);
    const char *args[WB_LEN(q->args)];
    const bool server = !strcmp(q->path, "*");

    if (server) {
        best = 0;
        wb_buf_adds(&allow, "GET, HEAD, POST, PUT, PATCH, DELETE");
    }
    for (const struct wb_route *const *t = wb_route_tables; !server && best >= 0 && *t; t++)
        for (const struct wb_route *r = *t; r->method; r++) {
            if (fits(r->path, q, args) != best)
                continue;
            add_method(&allow, r->method);
            if (!strcmp(r->method, "GET"))
                add_method(&allow, "HEAD");
        }
    if (best < 0) {
        wb_answer_problem(q, a, 404, "not-found",
                          "there is nothing at this address; GET /api/v1/openapi.json lists what "
                          "there is",
                          NULL);
    } else {
        add_method(&allow, "OPTIONS");
        wb_answer_header(a, "Allow", wb_buf_str(&allow));
        if (!strcmp(q->method, "OPTIONS"))
            a->status = 204;
        else
            wb_answer_problem(q, a, 405, "method-not-allowed",
                              "this address does not take that method; Allow names those it takes",
                              NULL);
    }
    wb_buf_release(&allow);
}

const struct wb_route *wb_route_find(struct wb_request *q, struct wb_answer *a)
{
    const char *method = !strcmp(q->method, "HEAD") ? "GET" : q->method;
    int best = best_fit(q);

    for (const struct wb_route *const *t = wb_route_tables; best >= 0 && *t; t++)
        for (const struct wb_route *r = *t; r->method; r++)
            if (!strcmp(r->method, method) && fits(r->path, q, q->args) == best)
                return r;
    answer_no_route(q, a, best);
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

static void tell_limit(struct wb_answer *a, const struct wb_limit_state *s)
{
    WB_AUTO_FREE char *policy = wb_strf("\"default\";q=%lld;w=60", (long long)s->most);
    WB_AUTO_FREE char *state =
        wb_strf("\"default\";r=%lld;t=%lld", (long long)s->left, (long long)s->wait_s);

    if (!s->most)
        return;
    wb_answer_header(a, "RateLimit-Policy", policy);
    wb_answer_header(a, "RateLimit", state);
}

static void refuse_many(const struct wb_request *q, struct wb_answer *a,
                        const struct wb_limit_state *s, const char *why)
{
    WB_AUTO_FREE char *wait = wb_strf("%lld", (long long)s->wait_s);

    wb_answer_header(a, "Retry-After", wait);
    wb_answer_problem(q, a, 429, "quota-exceeded", why, NULL);
}

int wb_token_try(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                 const char *text, struct wb_token *out)
{
    const int64_t now_ns = wb_now_ns(NULL);
    WB_AUTO_FREE char *id =
        wb_strndup(text, strnlen(text, WB_TOKEN_ID_END)); /* "wb_<id>_", no secret in it */
    struct wb_limit_state state;
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (!wb_limiter_may_try(c->service->limiter, q->address, id, now_ns, &state)) {
        refuse_many(q, a, &state, "too many tokens that are none came from this address");
        return -WB_LIMIT;
    }
    rc = wb_token_check(c->db, text, wb_now_unix_ms(NULL), out, &err);
    if (rc == 0) {
        wb_limiter_succeeded(c->service->limiter, q->address, id, now_ns);
    } else if (rc == -WB_NOT_FOUND) {
        wb_limiter_failed(c->service->limiter, q->address, now_ns);
        refuse_unknown(q, a, err.root);
    } else {
        wb_answer_error(q, a, &err);
    }
    return rc;
}

/* One request of whoever asks. */
static bool within_limit(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    const char *who = *q->token.id ? q->token.id : q->address;
    struct wb_limit_state state;
    bool may = wb_limiter_take(c->service->limiter, who, wb_now_ns(NULL), &state);

    tell_limit(a, &state);
    if (!may)
        refuse_many(q, a, &state, "too many requests within a minute");
    return may;
}

bool wb_route_allow(struct wb_context *c, const struct wb_route *r, struct wb_request *q,
                    struct wb_answer *a)
{
    WB_AUTO_FREE char *text = NULL;
    int rc;

    if (r->flags & WB_ROUTE_OPEN)
        return within_limit(c, q, a);
    text = token_text(q);
    if (!text && r->scope == WB_SCOPE_READ && c->service->anonymous_read)
        return within_limit(c, q, a);
    if (!text) {
        refuse_unknown(q, a, "a token is needed: Authorization: Bearer wb_...");
        return false;
    }
    rc = wb_token_try(c, q, a, text, &q->token);
    explicit_bzero(text, strlen(text));
    if (rc < 0 || !within_limit(c, q, a))
        return false;
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

/* Answers 406 when the client takes nothing that the route gives. */
static bool wants_another_type(const struct wb_request *q, struct wb_answer *a,
                               const struct wb_route *r)
{
    const char *type = r->type ? r->type : "application/json";

    if ((r->flags & WB_ROUTE_ANY_TYPE) || (!r->type && !r->answer) ||
        wb_accepts_type(q->headers[WB_H_ACCEPT], type))
        return false;
    {
        WB_AUTO_FREE char *text = wb_strf("this address answers with %s alone", type);

        wb_answer_problem(q, a, 406, "not-acceptable", text, NULL);
    }
    return true;
}

/* Answers 400 when a write has If-None-Match and does not evaluate it: only PUT does. */
static bool has_idle_condition(const struct wb_request *q, struct wb_answer *a,
                               const struct wb_route *r)
{
    if (!(r->flags & WB_ROUTE_WRITE) || !strcmp(r->method, "PUT") ||
        !q->headers[WB_H_IF_NONE_MATCH])
        return false;
    wb_answer_problem(q, a, 400, "validation",
                      "If-None-Match is for reading and for PUT; leave it out here", NULL);
    return true;
}

void wb_service_answer(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_route *r = wb_route_find(q, a);

    if (r && wb_route_allow(c, r, q, a)) {
        if (wants_another_type(q, a, r) || has_idle_condition(q, a, r)) {
            /* answered */
        } else if (wb_request_query_check(q, a, r->query)) {
            r->handle(c, q, a);
        }
        if (r->flags & WB_ROUTE_WRITE)
            keep(c, q, a);
    } else if (r && (r->flags & WB_ROUTE_WRITE) && *q->token.id && a->status == 403) {
        keep(c, q, a); /* what a known token tried and may not; strangers cannot fill the log */
    }
    wb_answer_encode(q, a);
    atomic_fetch_add(&c->service->requests, 1);
    if (a->status >= 500)
        atomic_fetch_add(&c->service->failed, 1);
    else if (a->status >= 400)
        atomic_fetch_add(&c->service->refused, 1);
}
