/* Tokens, sessions, and who did what. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/http/service.h"

#define SESSION_MS (12LL * 3600 * 1000)
#define TOKEN_DAYS_MAX 3650
#define DAY_MS (24LL * 3600 * 1000)

static const char *const scope_words[] = {"read",        "runs:write",   "annotate",
                                          "hosts:admin", "tokens:admin", NULL};

static const struct wb_shape session_rows[] = {
    {"token", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 200},
    {0},
};
static const struct wb_form session_body = {
    .name = "SessionRequest", .rows = session_rows, .example = "{\"token\": \"wb_...\"}"};

static const struct wb_shape new_token_rows[] = {
    {"name", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 100},
    {"scopes", WB_S_WORD, WB_S_NEED | WB_S_LIST, .least = 1, .most = 5, .words = scope_words},
    {"days", WB_S_INT, .min = 1, .max = TOKEN_DAYS_MAX, .help = "It ends then; left out: never"},
    {0},
};
static const struct wb_form new_token_body = {
    .name = "TokenRequest",
    .rows = new_token_rows,
    .example = "{\"name\": \"ci\", \"scopes\": [\"read\", \"runs:write\"], \"days\": 90}"};

static const struct wb_shape who_rows[] = {
    {"id", WB_S_TEXT, WB_S_NEED | WB_S_NULL, .help = "null: reading without a token"},
    {"name", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"scopes", WB_S_WORD, WB_S_NEED | WB_S_LIST, .words = scope_words},
    {"session", WB_S_BOOL, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form who = {.name = "Who", .rows = who_rows};

static const struct wb_shape session_answer_rows[] = {
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"scopes", WB_S_WORD, WB_S_NEED | WB_S_LIST, .words = scope_words},
    {0},
};
static const struct wb_form session_answer = {.name = "Session", .rows = session_answer_rows};

static const struct wb_shape new_token_answer_rows[] = {
    {"token", WB_S_TEXT, WB_S_NEED, .help = "Shown this once"},
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"scopes", WB_S_WORD, WB_S_NEED | WB_S_LIST, .words = scope_words},
    {0},
};
static const struct wb_form new_token_answer = {.name = "NewToken", .rows = new_token_answer_rows};

static const struct wb_shape token_rows[] = {
    {"id", WB_S_TEXT, .flags = WB_S_NEED},
    {"name", WB_S_TEXT, .flags = WB_S_NEED},
    {"scopes", WB_S_WORD, WB_S_NEED | WB_S_LIST, .words = scope_words},
    {"created_at", WB_S_TIME, .flags = WB_S_NEED},
    {"expires_at", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {"used_at", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},
    {0},
};
static const struct wb_form token_form = {.name = "Token", .rows = token_rows};

static const struct wb_shape audit_rows[] = {
    {"seq", WB_S_INT, .flags = WB_S_NEED},
    {"at", WB_S_TIME, .flags = WB_S_NEED},
    {"token", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"request_id", WB_S_TEXT, .flags = WB_S_NEED},
    {"method", WB_S_TEXT, .flags = WB_S_NEED},
    {"path", WB_S_TEXT, .flags = WB_S_NEED},
    {"status", WB_S_INT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form audit_form = {.name = "AuditEntry", .rows = audit_rows};

static void whoami(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *o = wb_json_object();

    (void)c;
    wb_json_set_str(o, "id", *q->token.id ? q->token.id : NULL);
    wb_json_set_str(o, "name", q->token.name);
    wb_json_set(o, "scopes", wb_scopes_json(*q->token.id ? q->token.scopes : WB_SCOPE_READ));
    wb_json_set_bool(o, "session", q->token.session);
    wb_answer_json(q, a, 200, o);
}

/* The whole value, or the one that ends it at once. */
static void set_cookie(const struct wb_service *s, struct wb_answer *a, const char *value,
                       int64_t seconds)
{
    WB_AUTO_FREE char *text =
        wb_strf("wb_session=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s", value,
                (long long)seconds, s->secure ? "; Secure" : "");

    wb_answer_header(a, "Set-Cookie", text);
}

static void begin_session(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &session_body);
    WB_AUTO_FREE char *text = NULL;
    struct wb_token token = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t now = wb_now_unix_ms(NULL);
    int rc = 0;

    if (!body || wb_token_try(c, q, a, wb_json_str_or(body, "token", ""), &token) < 0)
        return;
    if (token.session)
        rc = wb_fail(&err, WB_NOT_FOUND, "a session cannot make another one");
    if (rc == 0) {
        const struct wb_token_ask ask = {.name = token.name,
                                         .scopes = token.scopes,
                                         .expires_ms = now + SESSION_MS,
                                         .parent = token.id};

        rc = wb_token_make(c->db, &ask, now, &text, &err);
    }
    if (rc == -WB_NOT_FOUND) {
        wb_answer_problem(q, a, 401, "not-authenticated", err.root, NULL);
    } else if (rc < 0) {
        wb_answer_error(q, a, &err);
    } else {
        wb_json *o = wb_json_object();

        set_cookie(c->service, a, text, SESSION_MS / 1000);
        wb_json_set_str(o, "name", token.name);
        wb_json_set(o, "scopes", wb_scopes_json(token.scopes));
        wb_answer_json(q, a, 201, o);
    }
    wb_token_release(&token);
}

static void end_session(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;

    if (!q->token.session) {
        wb_answer_problem(q, a, 409, "state-conflict", "this is no session but a token", NULL);
        return;
    }
    if (wb_token_revoke(c->db, q->token.id, &err) < 0 && err.code != WB_NOT_FOUND) {
        wb_answer_error(q, a, &err);
        return;
    }
    set_cookie(c->service, a, "", 0);
    a->status = 204;
}

static void list_tokens(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;

    if (wb_token_list(c->db, &items, &err) < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_list(q, a, items, NULL);
}

static void make_token(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &new_token_body);
    WB_AUTO_FREE char *text = NULL;
    struct wb_token_ask ask = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t now = wb_now_unix_ms(NULL), days = 0;
    int rc;

    if (!body)
        return;
    ask.name = wb_json_str_or(body, "name", "");
    days = wb_json_int_or(body, "days", 0);
    rc = wb_scopes_read(wb_json_get(body, "scopes"), &ask.scopes, &err);
    if (rc == 0 && (ask.scopes & ~q->token.scopes))
        rc = wb_fail(&err, WB_INVALID, "a token cannot give scopes that it has not itself");
    if (rc == 0) {
        ask.expires_ms = days ? now + days * DAY_MS : 0;
        rc = wb_token_make(c->db, &ask, now, &text, &err);
    }
    if (rc < 0) {
        wb_answer_error(q, a, &err);
    } else {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "token", text);
        wb_json_set_str(o, "name", ask.name);
        wb_json_set(o, "scopes", wb_scopes_json(ask.scopes));
        wb_answer_json(q, a, 201, o);
    }
}

static void revoke_token(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;

    if (wb_token_revoke(c->db, q->args[0], &err) < 0)
        wb_answer_error(q, a, &err);
    else
        a->status = 204;
}

static void list_audit(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *cursor = wb_request_query(q, "cursor");
    WB_AUTO_FREE char *last = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t limit = 0;
    wb_json *items = NULL;
    char *next = NULL;
    int rc = wb_request_int(q, "limit", 1, 500, 50, &limit, &err);

    if (rc == 0 && cursor)
        rc = wb_cursor_read(c->service, "audit", cursor, &last, &err);
    if (rc < 0) {
        wb_answer_problem(q, a, 400, cursor ? "cursor-invalid" : "validation", err.root, NULL);
        return;
    }
    if (wb_audit_list(c->db, last ? strtoll(last, NULL, 10) : 0, limit, &items, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if ((int64_t)wb_json_len(items) == limit) {
        const wb_json *end = wb_json_at(items, (size_t)limit - 1);
        WB_AUTO_FREE char *seq = wb_strf("%lld", (long long)wb_json_int_or(end, "seq", 0));

        next = wb_cursor_make(c->service, "audit", seq);
    }
    wb_answer_list(q, a, items, next);
}

static const struct wb_shape page_query[] = {WB_QUERY_PAGE, {0}};

const struct wb_route wb_routes_access[] = {
    {"GET", "/api/v1/whoami", WB_SCOPE_READ, 0, whoami, "whoami", "The token that asks",
     .answer = &who, .status = 200},
    {"POST", "/api/v1/session", WB_SCOPE_NONE, WB_ROUTE_OPEN, begin_session, "beginSession",
     "Give a browser a cookie for a token", .body = &session_body, .answer = &session_answer,
     .status = 201, .also = {401}},
    {"DELETE", "/api/v1/session", WB_SCOPE_NONE, WB_ROUTE_WRITE, end_session, "endSession",
     "End the session of the cookie", .status = 204, .also = {409}},
    {"GET", "/api/v1/tokens", WB_SCOPE_TOKENS, WB_ROUTE_LIST, list_tokens, "listTokens",
     "Tokens, without their secrets", .answer = &token_form, .status = 200},
    {"POST", "/api/v1/tokens", WB_SCOPE_TOKENS, WB_ROUTE_WRITE, make_token, "makeToken",
     "Make a token; it is shown this once", .body = &new_token_body, .answer = &new_token_answer,
     .status = 201},
    {"DELETE", "/api/v1/tokens/{token}", WB_SCOPE_TOKENS, WB_ROUTE_WRITE, revoke_token,
     "revokeToken", "Take a token and its sessions back", .status = 204},
    {"GET", "/api/v1/audit", WB_SCOPE_TOKENS, WB_ROUTE_LIST, list_audit, "listAudit",
     "Who changed what, newest first", page_query, .answer = &audit_form, .status = 200},
    {0},
};
