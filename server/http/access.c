/* Tokens, sessions, and who did what. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/http/service.h"

#define SESSION_MS (12LL * 3600 * 1000)
#define TOKEN_DAYS_MAX 3650
#define DAY_MS (24LL * 3600 * 1000)

void wb_h_whoami(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
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

void wb_h_session_post(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const keys[] = {"token", NULL};
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a);
    WB_AUTO_FREE char *text = NULL;
    struct wb_token token = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t now = wb_now_unix_ms(NULL);
    int rc;

    if (!body || !wb_request_keys(q, a, body, keys))
        return;
    rc = wb_token_check(c->db, wb_json_str_or(body, "token", ""), now, &token, &err);
    if (rc == 0 && token.session)
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

void wb_h_session_delete(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
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

void wb_h_tokens(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;

    if (wb_token_list(c->db, &items, &err) < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_list(q, a, items, NULL);
}

void wb_h_token_post(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    static const char *const keys[] = {"name", "scopes", "days", NULL};
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a);
    WB_AUTO_FREE char *text = NULL;
    struct wb_token_ask ask = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t now = wb_now_unix_ms(NULL), days = 0;
    int rc;

    if (!body || !wb_request_keys(q, a, body, keys))
        return;
    rc = wb_json_need_str(body, "", "name", &ask.name, &err);
    if (rc == 0)
        rc = wb_scopes_read(wb_json_get(body, "scopes"), &ask.scopes, &err);
    if (rc == 0 && wb_json_get(body, "days"))
        rc = wb_json_need_int(body, "", "days", 1, TOKEN_DAYS_MAX, &days, &err);
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

void wb_h_token_delete(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;

    if (wb_token_revoke(c->db, q->args[0], &err) < 0)
        wb_answer_error(q, a, &err);
    else
        a->status = 204;
}

void wb_h_audit(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
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
