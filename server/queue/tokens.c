#include "server/queue/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/mem.h"
#include "server/queue/rows.h"

#define ID_LEN 16
#define SECRET_LEN 43
#define PREFIX "wb_"
#define AUDIT_KEPT 100000

static const struct {
    enum wb_scope bit;
    const char *name;
} scopes[] = {
    {WB_SCOPE_READ, "read"},           {WB_SCOPE_RUNS, "runs:write"},
    {WB_SCOPE_ANNOTATE, "annotate"},   {WB_SCOPE_HOSTS, "hosts:admin"},
    {WB_SCOPE_TOKENS, "tokens:admin"},
};

const char *wb_scope_name(enum wb_scope s)
{
    for (size_t i = 0; i < WB_LEN(scopes); i++)
        if (scopes[i].bit == s)
            return scopes[i].name;
    return "none";
}

static int scope_bit(const char *name, unsigned *out, struct wb_err *err)
{
    for (size_t i = 0; name && i < WB_LEN(scopes); i++)
        if (!strcmp(scopes[i].name, name)) {
            *out |= scopes[i].bit;
            return 0;
        }
    return wb_fail(err, WB_INVALID,
                   "'%.40s' is no scope; allowed: read, runs:write, annotate, hosts:admin, "
                   "tokens:admin",
                   name ? name : "");
}

int wb_scopes_read(const wb_json *names, unsigned *out, struct wb_err *err)
{
    unsigned set = 0;

    if (wb_json_type(names) != WB_JSON_ARRAY || !wb_json_len(names))
        return wb_fail(err, WB_INVALID, "scopes must be a list of at least one scope");
    for (size_t i = 0; i < wb_json_len(names); i++) {
        int rc = scope_bit(wb_json_string(wb_json_at(names, i)), &set, err);

        if (rc < 0)
            return rc;
    }
    *out = set;
    return 0;
}

wb_json *wb_scopes_json(unsigned set)
{
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < WB_LEN(scopes); i++)
        if (set & scopes[i].bit)
            wb_json_push(out, wb_json_str(scopes[i].name));
    return out;
}

void wb_token_release(struct wb_token *t)
{
    free(t->name);
    t->name = NULL;
}

/* n characters of 64 each, so each has 6 random bits. */
static int random_text(char *out, size_t n, struct wb_err *err)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
    unsigned char bytes[SECRET_LEN];

    if (getrandom(bytes, n, 0) != (ssize_t)n)
        return wb_fail_sys(err, errno, "no random numbers");
    for (size_t i = 0; i < n; i++)
        out[i] = set[bytes[i] & 63];
    out[n] = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

int wb_token_make(struct wb_db *db, const struct wb_token_ask *ask, int64_t now_ms, char **text,
                  struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *names = wb_scopes_json(ask->scopes);
    struct wb_buf line = WB_BUF_INIT(1024);
    char id[ID_LEN + 1], secret[SECRET_LEN + 1], hash[WB_SHA256_HEX];
    size_t length = strlen(ask->name);
    int rc;

    if (length < 1 || length > 100)
        return wb_fail(err, WB_INVALID, "the name of a token has 1 to 100 characters, this has %zu",
                       length);
    rc = random_text(id, ID_LEN, err);
    if (rc == 0)
        rc = random_text(secret, SECRET_LEN, err);
    if (rc == 0)
        rc = wb_db_prepare(db,
                           "INSERT INTO tokens(id, name, kind, hash, scopes, parent, created_ms,"
                           " expires_ms) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
                           &s, err);
    if (rc < 0)
        return rc;
    wb_sha256_of(secret, SECRET_LEN, hash);
    wb_json_line(names, &line);
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_text(s, 2, ask->name);
    wb_stmt_set_text(s, 3, ask->parent ? "session" : "token");
    wb_stmt_set_text(s, 4, hash);
    wb_stmt_set_text(s, 5, wb_buf_str(&line));
    wb_stmt_set_text(s, 6, ask->parent);
    wb_stmt_set_int(s, 7, now_ms);
    if (ask->expires_ms)
        wb_stmt_set_int(s, 8, ask->expires_ms);
    rc = wb_stmt_step(s, NULL, err);
    wb_buf_release(&line);
    if (rc == 0)
        *text = wb_strf(PREFIX "%s_%s", id, secret);
    explicit_bzero(secret, sizeof(secret));
    return rc;
}

static bool same_hash(const char *a, const char *b)
{
    unsigned char differ = 0;

    for (size_t i = 0; i < WB_SHA256_HEX - 1; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* id[ID_LEN + 1] and the secret inside text, when it has the shape of a token. */
static const char *split(const char *text, char *id)
{
    size_t prefix = strlen(PREFIX);

    if (strlen(text) != prefix + ID_LEN + 1 + SECRET_LEN || strncmp(text, PREFIX, prefix) != 0 ||
        text[prefix + ID_LEN] != '_')
        return NULL;
    memcpy(id, text + prefix, ID_LEN);
    id[ID_LEN] = '\0';
    return text + prefix + ID_LEN + 1;
}

/* A token that is used all the time is written down once a minute. */
static int mark_used(struct wb_db *db, const char *id, int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "UPDATE tokens SET used_ms=?2 WHERE id=?1", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_int(s, 2, now_ms);
    return wb_stmt_step(s, NULL, err);
}

/* Of the token ?1 at ?2, with the one that a session was made from. */
#define LIVING                                                     \
    " FROM tokens t LEFT JOIN tokens p ON p.id=t.parent"           \
    " WHERE t.id=?1 AND (t.expires_ms IS NULL OR t.expires_ms>?2)" \
    " AND (t.parent IS NULL OR (p.id IS NOT NULL AND"              \
    " (p.expires_ms IS NULL OR p.expires_ms>?2)))"

int wb_token_alive(struct wb_db *db, const char *id, int64_t now_ms, bool *alive,
                   struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "SELECT 1" LIVING, &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_int(s, 2, now_ms);
    return wb_stmt_step(s, alive, err);
}

int wb_token_check(struct wb_db *db, const char *text, int64_t now_ms, struct wb_token *out,
                   struct wb_err *err)
{
    static const char nobody[] = "0000000000000000000000000000000000000000000000000000000000000000";
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *names = NULL;
    char id[ID_LEN + 1], hash[WB_SHA256_HEX];
    const char *secret = split(text, id), *had;
    unsigned set = 0;
    int64_t used_ms;
    bool row = false;
    int rc;

    if (!secret)
        return wb_fail(err, WB_NOT_FOUND, "this is no token");
    rc = wb_db_prepare(db, "SELECT t.hash, t.scopes, t.name, t.kind, t.used_ms" LIVING, &s, err);
    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_int(s, 2, now_ms);
    rc = wb_stmt_step(s, &row, err);
    if (rc < 0)
        return rc;
    wb_sha256_of(secret, SECRET_LEN, hash);
    had = row ? wb_stmt_text(s, 0) : nobody;
    if (!same_hash(hash, had && strlen(had) == sizeof(nobody) - 1 ? had : nobody) || !row)
        return wb_fail(err, WB_NOT_FOUND, "the token is not known, has ended or was taken back");
    rc = wb_json_parse(wb_stmt_text(s, 1), strlen(wb_stmt_text(s, 1)), &names, err);
    if (rc == 0)
        rc = wb_scopes_read(names, &set, err);
    if (rc < 0)
        return rc;
    *out = (struct wb_token){.name = wb_strdup(wb_stmt_text(s, 2)),
                             .scopes = set,
                             .session = !strcmp(wb_stmt_text(s, 3), "session")};
    memcpy(out->id, id, sizeof(id));
    used_ms = wb_stmt_int(s, 4);
    /* A transaction that has read cannot begin to write once somebody else has written. That the
     * time of use is not noted refuses nobody. */
    wb_stmt_reset(s);
    if (now_ms - used_ms > 60000)
        WB_IGNORE(mark_used(db, id, now_ms, NULL));
    return 0;
}

int wb_token_revoke(struct wb_db *db, const char *id, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "DELETE FROM tokens WHERE id=?1 OR parent=?1", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    rc = wb_stmt_step(s, NULL, err);
    if (rc == 0 && wb_db_changes(db) == 0)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no token %.40s", id);
    return rc;
}

int wb_token_list(struct wb_db *db, wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *list = wb_json_array();
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT id, name, scopes, created_ms, expires_ms, used_ms FROM tokens"
                           " WHERE kind='token' ORDER BY created_ms, id",
                           &s, err);

    while (rc == 0 && (rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "id", wb_stmt_text(s, 0));
        wb_json_set_str(o, "name", wb_stmt_text(s, 1));
        wb_row_set_array(o, "scopes", s, 2);
        wb_row_set_time(o, "created_at", s, 3);
        wb_row_set_time(o, "expires_at", s, 4);
        wb_row_set_time(o, "used_at", s, 5);
        wb_json_push(list, o);
    }
    if (rc == 0)
        *out = WB_STEAL(list);
    return rc;
}

int wb_token_any(struct wb_db *db, bool *any, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "SELECT 1 FROM tokens WHERE kind='token' LIMIT 1", &s, err);

    return rc < 0 ? rc : wb_stmt_step(s, any, err);
}

int wb_audit_add(struct wb_db *db, const struct wb_audit *a, int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_STMT struct wb_stmt *old = NULL;
    int rc = wb_db_prepare(db,
                           "INSERT INTO audit(at_ms, token, request, method, path, status)"
                           " VALUES(?1,?2,?3,?4,?5,?6)",
                           &s, err);

    if (rc == 0)
        rc = wb_db_prepare(db, "DELETE FROM audit WHERE seq<=(SELECT max(seq) FROM audit)-?1", &old,
                           err);
    if (rc < 0)
        return rc;
    wb_stmt_set_int(s, 1, now_ms);
    wb_stmt_set_text(s, 2, a->token);
    wb_stmt_set_text(s, 3, a->request);
    wb_stmt_set_text(s, 4, a->method);
    wb_stmt_set_text(s, 5, a->path);
    wb_stmt_set_int(s, 6, a->status);
    rc = wb_stmt_step(s, NULL, err);
    wb_stmt_set_int(old, 1, AUDIT_KEPT);
    return rc < 0 ? rc : wb_stmt_step(old, NULL, err);
}

int wb_audit_list(struct wb_db *db, int64_t before, int64_t limit, wb_json **out,
                  struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *list = wb_json_array();
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT seq, at_ms, token, request, method, path, status FROM audit"
                           " WHERE ?1=0 OR seq<?1 ORDER BY seq DESC LIMIT ?2",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_int(s, 1, before);
    wb_stmt_set_int(s, 2, limit);
    while ((rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        wb_json *o = wb_json_object();

        wb_json_set_int(o, "seq", wb_stmt_int(s, 0));
        wb_row_set_time(o, "at", s, 1);
        wb_json_set_str(o, "token", wb_stmt_text(s, 2));
        wb_json_set_str(o, "request_id", wb_stmt_text(s, 3));
        wb_json_set_str(o, "method", wb_stmt_text(s, 4));
        wb_json_set_str(o, "path", wb_stmt_text(s, 5));
        wb_json_set_int(o, "status", wb_stmt_int(s, 6));
        wb_json_push(list, o);
    }
    if (rc == 0)
        *out = WB_STEAL(list);
    return rc;
}
