/*
 * Tokens: "wb_<id>_<secret>", 16 and 43 characters. Only the SHA-256 of the secret is stored; it
 * has 256 random bits, so a slow hash would add nothing. A session of a browser is a token of
 * its own kind that ends with the token it was made from.
 */
#ifndef WB_QUEUE_TOKENS_H
#define WB_QUEUE_TOKENS_H

#include "server/base/db.h"
#include "server/base/json.h"

#define WB_TOKEN_ID_END 20 /* bytes of "wb_<id>_", what of a token may be known */

/* Scopes, a set of bits; a token with admin has all of them. */
enum wb_scope {
    WB_SCOPE_NONE = 0,
    WB_SCOPE_READ = 1,
    WB_SCOPE_RUNS = 2,
    WB_SCOPE_ANNOTATE = 4,
    WB_SCOPE_HOSTS = 8,
    WB_SCOPE_TOKENS = 16,
    WB_SCOPE_ALL = 31
};
/* "read", "runs:write", ... of one bit; static. */
const char *wb_scope_name(enum wb_scope s);
/* The bits of an array of names; WB_INVALID names the wrong one and the allowed. */
int wb_scopes_read(const wb_json *names, unsigned *out, struct wb_err *err) WB_MUST_CHECK;
wb_json *wb_scopes_json(unsigned scopes); /* array of names, owned */

struct wb_token {
    char id[17];
    char *name; /* owned; release with wb_token_release */
    unsigned scopes;
    bool session;
};
void wb_token_release(struct wb_token *t);

struct wb_token_ask {
    const char *name; /* 1..100 characters */
    unsigned scopes;
    int64_t expires_ms; /* Unix ms, 0: never */
    const char *parent; /* of a session; NULL: a token of its own */
};
/* Makes one. *text is the whole token, shown once and kept nowhere; caller frees. */
int wb_token_make(struct wb_db *db, const struct wb_token_ask *ask, int64_t now_ms, char **text,
                  struct wb_err *err) WB_MUST_CHECK;
/* WB_NOT_FOUND when it is none, has ended or was taken back; the answer takes the same time
 * wherever the secret differs. */
int wb_token_check(struct wb_db *db, const char *text, int64_t now_ms, struct wb_token *out,
                   struct wb_err *err) WB_MUST_CHECK;
/* Whether a token of this id would still be taken. */
int wb_token_alive(struct wb_db *db, const char *id, int64_t now_ms, bool *alive,
                   struct wb_err *err) WB_MUST_CHECK;
/* Takes a token and its sessions back; WB_NOT_FOUND. */
int wb_token_revoke(struct wb_db *db, const char *id, struct wb_err *err) WB_MUST_CHECK;
/* All that are no sessions, without anything secret: {id, name, scopes, created_at, expires_at,
 * used_at}. */
int wb_token_list(struct wb_db *db, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
int wb_token_any(struct wb_db *db, bool *any, struct wb_err *err) WB_MUST_CHECK;

struct wb_audit {
    const char *token, *request, *method, *path; /* token id or NULL */
    int status;
};
/* Every write over REST is kept, and those that a known token was not allowed; the newest
 * 100,000. */
int wb_audit_add(struct wb_db *db, const struct wb_audit *a, int64_t now_ms,
                 struct wb_err *err) WB_MUST_CHECK;
/* Newest first, those before seq `before` (0: from the newest). */
int wb_audit_list(struct wb_db *db, int64_t before, int64_t limit, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;

#endif
