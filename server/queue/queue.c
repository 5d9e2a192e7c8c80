#include "server/queue/queue.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/queue/rows.h"

#define VERSION 1
#define WAIT_MS 5000

static const char schema[] =
    "CREATE TABLE campaigns("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, study TEXT NOT NULL,"
    " state TEXT NOT NULL, priority INTEGER NOT NULL, token TEXT NOT NULL, reason TEXT,"
    " labels TEXT NOT NULL, runs INTEGER NOT NULL, arms INTEGER NOT NULL,"
    " rounds INTEGER NOT NULL, forecast_s REAL NOT NULL, submitted_ms INTEGER NOT NULL,"
    " started_ms INTEGER, ended_ms INTEGER, cancel INTEGER NOT NULL DEFAULT 0,"
    " starts INTEGER NOT NULL DEFAULT 0, detail TEXT, key TEXT, digest TEXT, rerun_of TEXT"
    ") STRICT;"
    "CREATE INDEX campaigns_state ON campaigns(state);"
    "CREATE INDEX campaigns_key ON campaigns(token, key) WHERE key IS NOT NULL;"
    "CREATE INDEX campaigns_turn ON campaigns(token, started_ms);"
    "CREATE TABLE tokens("
    " id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, hash TEXT NOT NULL,"
    " scopes TEXT NOT NULL, parent TEXT, created_ms INTEGER NOT NULL, expires_ms INTEGER,"
    " used_ms INTEGER) STRICT;"
    "CREATE TABLE audit("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, token TEXT,"
    " request TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL, status INTEGER NOT NULL"
    ") STRICT;";

#define COLUMNS                                                                          \
    "id, study, state, priority, token, reason, labels, runs, arms, rounds, forecast_s," \
    " submitted_ms, started_ms, ended_ms, cancel, starts, detail, rerun_of"

/* Two servers that start at once must not both make the schema. */
static int make_schema(struct wb_db *db, struct wb_err *err)
{
    int64_t version = 0;
    int rc = wb_db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = wb_db_version(db, &version, err);
    if (rc == 0 && version > VERSION)
        rc = wb_fail(err, WB_UNSUPPORTED,
                     "the service's database has version %lld, this program knows %d: use a newer "
                     "weighbridge",
                     (long long)version, VERSION);
    if (rc == 0 && version == 0)
        rc = wb_db_exec(db, schema, err);
    if (rc == 0 && version == 0)
        rc = wb_db_set_version(db, VERSION, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0)
        wb_db_rollback(db);
    return rc;
}

int wb_queue_open(const char *path, struct wb_db **out, struct wb_err *err)
{
    struct wb_db *db = NULL;
    int rc = wb_db_open(path, WB_DB_CREATE, WAIT_MS, &db, err);

    /* What was accepted must be there after a power cut. */
    if (rc == 0)
        rc = wb_db_exec(db, "PRAGMA synchronous=FULL", err);
    if (rc == 0)
        rc = make_schema(db, err);
    if (rc < 0) {
        wb_db_close(db);
        return rc;
    }
    *out = db;
    return 0;
}

/* A row of COLUMNS. */
static wb_json *campaign_json(const struct wb_stmt *s)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "id", wb_stmt_text(s, 0));
    wb_json_set_str(o, "study", wb_stmt_text(s, 1));
    wb_json_set_str(o, "state", wb_stmt_text(s, 2));
    wb_json_set_int(o, "priority", wb_stmt_int(s, 3));
    wb_json_set_str(o, "token", wb_stmt_text(s, 4));
    wb_json_set_str(o, "reason", wb_stmt_text(s, 5));
    wb_row_set_array(o, "labels", s, 6);
    wb_json_set_int(o, "runs", wb_stmt_int(s, 7));
    wb_json_set_int(o, "arms", wb_stmt_int(s, 8));
    wb_json_set_int(o, "rounds", wb_stmt_int(s, 9));
    wb_json_set_real(o, "forecast_s", wb_stmt_real(s, 10));
    wb_row_set_time(o, "submitted_at", s, 11);
    wb_row_set_time(o, "started_at", s, 12);
    wb_row_set_time(o, "ended_at", s, 13);
    wb_json_set_bool(o, "cancel_requested", wb_stmt_int(s, 14) != 0);
    wb_json_set_int(o, "starts", wb_stmt_int(s, 15));
    wb_json_set_str(o, "detail", wb_stmt_text(s, 16));
    wb_json_set_str(o, "rerun_of", wb_stmt_text(s, 17));
    return o;
}

int wb_queue_find_key(struct wb_db *db, const char *token, const char *key, const char *digest,
                      int64_t now_ms, char **id, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT id, digest FROM campaigns WHERE token=?1 AND key=?2"
                           " AND submitted_ms>?3 ORDER BY seq DESC LIMIT 1",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, token);
    wb_stmt_set_text(s, 2, key);
    wb_stmt_set_int(s, 3, now_ms - WB_KEY_AGE_MS);
    rc = wb_stmt_step(s, &row, err);
    if (rc < 0 || !row)
        return rc;
    if (strcmp(wb_stmt_text(s, 1), digest) != 0)
        return wb_fail(err, WB_CONFLICT,
                       "the Idempotency-Key was used for another request, which made campaign %s",
                       wb_stmt_text(s, 0));
    *id = wb_strdup(wb_stmt_text(s, 0));
    return 0;
}

static int insert(struct wb_db *db, const struct wb_submission *c, int64_t now_ms,
                  struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    struct wb_buf labels = WB_BUF_INIT(64u << 10);
    int rc = wb_db_prepare(db,
                           "INSERT INTO campaigns(id, study, state, priority, token, reason,"
                           " labels, runs, arms, rounds, forecast_s, submitted_ms, key, digest,"
                           " rerun_of) VALUES(?1,?2,'queued',?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,"
                           "?13,?14)",
                           &s, err);

    if (rc < 0)
        return rc;
    if (c->labels)
        wb_json_line(c->labels, &labels);
    wb_stmt_set_text(s, 1, c->id);
    wb_stmt_set_text(s, 2, c->study);
    wb_stmt_set_int(s, 3, c->priority);
    wb_stmt_set_text(s, 4, c->token);
    wb_stmt_set_text(s, 5, c->reason);
    wb_stmt_set_text(s, 6, labels.len ? labels.data : "[]");
    wb_stmt_set_int(s, 7, c->runs);
    wb_stmt_set_int(s, 8, c->arms);
    wb_stmt_set_int(s, 9, c->rounds);
    wb_stmt_set_real(s, 10, c->forecast_s);
    wb_stmt_set_int(s, 11, now_ms);
    wb_stmt_set_text(s, 12, c->key);
    wb_stmt_set_text(s, 13, c->key ? c->digest : NULL);
    wb_stmt_set_text(s, 14, c->rerun_of);
    rc = wb_buf_check(&labels, "labels", err);
    if (rc == 0)
        rc = wb_stmt_step(s, NULL, err);
    wb_buf_release(&labels);
    return rc;
}

int wb_queue_add(struct wb_db *db, const struct wb_submission *c, int64_t now_ms, char **earlier,
                 struct wb_err *err)
{
    char *had = NULL;
    int rc = wb_db_begin(db, err);

    if (rc == 0 && c->key)
        rc = wb_queue_find_key(db, c->token, c->key, c->digest, now_ms, &had, err);
    if (rc == 0 && !had)
        rc = insert(db, c, now_ms, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0) {
        wb_db_rollback(db);
        free(had);
        return rc;
    }
    *earlier = had;
    return 0;
}

int wb_queue_get(struct wb_db *db, const char *id, wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db, "SELECT " COLUMNS " FROM campaigns WHERE id=?1", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && !row)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no campaign %s", id);
    if (rc == 0)
        *out = campaign_json(s);
    return rc;
}

static int rows(struct wb_stmt *s, wb_json **out, struct wb_err *err)
{
    wb_json *list = wb_json_array();
    bool row = false;
    int rc;

    while ((rc = wb_stmt_step(s, &row, err)) == 0 && row)
        wb_json_push(list, campaign_json(s));
    if (rc < 0) {
        wb_json_free(list);
        return rc;
    }
    *out = list;
    return 0;
}

int wb_queue_list(struct wb_db *db, const char *state, const char *before, int64_t limit,
                  wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "SELECT " COLUMNS " FROM campaigns WHERE (?1 IS NULL OR state=?1)"
                           " AND (?2 IS NULL OR id<?2) ORDER BY id DESC LIMIT ?3",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, state);
    wb_stmt_set_text(s, 2, before);
    wb_stmt_set_int(s, 3, limit);
    return rows(s, out, err);
}

/* The order of turns; see the header. */
#define TURNS                                                                                  \
    " WHERE state='queued' ORDER BY priority DESC, (SELECT max(o.started_ms) FROM campaigns o" \
    " WHERE o.token=campaigns.token) ASC NULLS FIRST, seq"

int wb_queue_waiting(struct wb_db *db, wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "SELECT " COLUMNS " FROM campaigns" TURNS, &s, err);

    return rc < 0 ? rc : rows(s, out, err);
}

int wb_queue_count(struct wb_db *db, const char *state, int64_t *n, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "SELECT count(*) FROM campaigns WHERE state=?1", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, state);
    rc = wb_stmt_step(s, NULL, err);
    if (rc == 0)
        *n = wb_stmt_int(s, 0);
    return rc;
}

/* Inside a transaction. */
static int take(struct wb_db *db, int64_t most, int64_t now_ms, char **id, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *next = NULL;
    WB_AUTO_STMT struct wb_stmt *set = NULL;
    int64_t running = 0;
    bool row = false;
    int rc = wb_queue_count(db, "running", &running, err);

    if (rc < 0 || running >= most)
        return rc;
    rc = wb_db_prepare(db, "SELECT id FROM campaigns" TURNS " LIMIT 1", &next, err);
    if (rc == 0)
        rc = wb_stmt_step(next, &row, err);
    if (rc < 0 || !row)
        return rc;
    rc = wb_db_prepare(db, "UPDATE campaigns SET state='running', started_ms=?2 WHERE id=?1", &set,
                       err);
    if (rc < 0)
        return rc;
    wb_stmt_set_text(set, 1, wb_stmt_text(next, 0));
    wb_stmt_set_int(set, 2, now_ms);
    rc = wb_stmt_step(set, NULL, err);
    if (rc == 0)
        *id = wb_strdup(wb_stmt_text(next, 0));
    return rc;
}

int wb_queue_take(struct wb_db *db, int64_t most, int64_t now_ms, char **id, struct wb_err *err)
{
    char *got = NULL;
    int rc = wb_db_begin(db, err);

    if (rc == 0)
        rc = take(db, most, now_ms, &got, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0) {
        wb_db_rollback(db);
        free(got);
        return rc;
    }
    *id = got;
    return 0;
}

int wb_queue_started(struct wb_db *db, const char *id, int64_t *starts, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db, "UPDATE campaigns SET starts=starts+1 WHERE id=?1 RETURNING starts",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && !row)
        return wb_fail(err, WB_NOT_FOUND, "there is no campaign %s", id);
    if (rc == 0) {
        *starts = wb_stmt_int(s, 0);
        rc = wb_stmt_step(s, NULL, err);
    }
    return rc;
}

int wb_queue_end(struct wb_db *db, const char *id, const char *state, const char *detail,
                 int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET state=?2, detail=?3, ended_ms=?4"
                           " WHERE id=?1 AND state='running'",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_text(s, 2, state);
    wb_stmt_set_text(s, 3, detail);
    wb_stmt_set_int(s, 4, now_ms);
    return wb_stmt_step(s, NULL, err);
}

int wb_queue_cancel(struct wb_db *db, const char *id, int64_t now_ms, char **state,
                    struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *now = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET cancel=1,"
                           " ended_ms=CASE state WHEN 'queued' THEN ?2 ELSE NULL END,"
                           " state=CASE state WHEN 'queued' THEN 'cancelled' ELSE state END"
                           " WHERE id=?1 AND state IN ('queued','running') RETURNING state",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_int(s, 2, now_ms);
    rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && row) {
        *state = wb_strdup(wb_stmt_text(s, 0));
        return wb_stmt_step(s, NULL, err);
    }
    if (rc == 0)
        rc = wb_queue_get(db, id, &now, err);
    if (rc == 0)
        rc = wb_fail(err, WB_CONFLICT, "campaign %s is over: %s", id,
                     wb_json_str_or(now, "state", ""));
    return rc;
}

int wb_queue_ids(struct wb_db *db, const char *state, struct wb_strv *out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db, "SELECT id FROM campaigns WHERE state=?1 ORDER BY seq", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, state);
    while ((rc = wb_stmt_step(s, &row, err)) == 0 && row)
        wb_strv_add(out, wb_stmt_text(s, 0));
    return rc;
}
