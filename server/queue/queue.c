#include "server/queue/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/queue/rows.h"

#define COLUMNS                                                                                 \
    "id, study, state, priority, token, reason, labels, runs, arms, rounds, forecast_s,"        \
    " submitted_ms, started_ms, ended_ms, cancel, starts, detail, rerun_of, pool, hosts, more," \
    " study_version"

#define ID_END "\x7f" /* comes after every id */

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
    wb_json_set_str(o, "pool", wb_stmt_text(s, 18));
    wb_json_set_int(o, "hosts", wb_stmt_int(s, 19));
    wb_json_set_int(o, "rounds_to_add", wb_stmt_int(s, 20));
    wb_json_set(o, "study_version",
                wb_stmt_is_null(s, 21) ? wb_json_null() : wb_json_int(wb_stmt_int(s, 21)));
    return o;
}

int wb_queue_find_key(struct wb_db *db, const char *token, const char *key, const char *digest,
                      int64_t now_ms, char **id, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT id, digest, submitted_ms FROM campaigns WHERE token=?1 AND"
                           " key=?2 AND submitted_ms>?3 UNION ALL"
                           " SELECT campaign, digest, at_ms FROM keys WHERE token=?1 AND key=?2"
                           " AND at_ms>?3 ORDER BY 3 DESC LIMIT 1",
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
                       "the Idempotency-Key was used for another request, about campaign %s",
                       wb_stmt_text(s, 0));
    *id = wb_strdup(wb_stmt_text(s, 0));
    return 0;
}

/* Those that count no more. */
static int forget_keys(struct wb_db *db, int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "DELETE FROM keys WHERE at_ms<=?1", &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_int(s, 1, now_ms - WB_KEY_AGE_MS);
    return wb_stmt_run(s, err);
}

int wb_queue_keep_key(struct wb_db *db, const struct wb_queue_key *k, int64_t now_ms,
                      struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "INSERT OR REPLACE INTO keys(token, key, digest, campaign, at_ms)"
                           " VALUES(?1,?2,?3,?4,?5)",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, k->token);
    wb_stmt_set_text(s, 2, k->key);
    wb_stmt_set_text(s, 3, k->digest);
    wb_stmt_set_text(s, 4, k->campaign);
    wb_stmt_set_int(s, 5, now_ms);
    rc = wb_stmt_run(s, err);
    return rc < 0 ? rc : forget_keys(db, now_ms, err);
}

/* Inside a transaction: whether one more may wait. */
static int check_room(struct wb_db *db, struct wb_err *err)
{
    int64_t waiting = 0;
    int rc = wb_queue_count(db, "queued", &waiting, err);

    if (rc < 0 || waiting < WB_QUEUE_WAITING_MAX)
        return rc;
    rc = wb_fail(err, WB_CONFLICT,
                 "%lld campaigns wait already, more are not taken: cancel some, or come back when "
                 "they have run",
                 (long long)waiting);
    if (err)
        err->sys = EAGAIN; /* nothing is wrong with it: later it is taken */
    return rc;
}

static int insert(struct wb_db *db, const struct wb_submission *c, int64_t now_ms,
                  struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    struct wb_buf labels = WB_BUF_INIT(64u << 10);
    int rc =
        wb_db_prepare(db,
                      "INSERT INTO campaigns(id, study, state, priority, token, reason,"
                      " labels, runs, arms, rounds, forecast_s, submitted_ms, key, digest,"
                      " rerun_of, pool, hosts, study_version, user) VALUES(?1,?2,'queued',?3,?4,"
                      "?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,"
                      "coalesce((SELECT parent FROM tokens t WHERE t.id=?4), ?4))",
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
    wb_stmt_set_text(s, 15, c->pool ? c->pool : "local");
    wb_stmt_set_int(s, 16, c->hosts > 0 ? c->hosts : 1);
    if (c->study_version)
        wb_stmt_set_int(s, 17, c->study_version);
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
        rc = check_room(db, err);
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
    /* Two statements, each of which an index answers in its order. */
    int rc = wb_db_prepare(db,
                           state ? "SELECT " COLUMNS " FROM campaigns WHERE state=?1 AND id<?2"
                                   " ORDER BY id DESC LIMIT ?3"
                                 : "SELECT " COLUMNS " FROM campaigns WHERE id<?2"
                                   " ORDER BY id DESC LIMIT ?3",
                           &s, err);

    if (rc < 0)
        return rc;
    if (state)
        wb_stmt_set_text(s, 1, state);
    wb_stmt_set_text(s, 2, before ? before : ID_END);
    wb_stmt_set_int(s, 3, limit);
    return rows(s, out, err);
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
                           " WHERE id=?1 AND state='running'"
                           " AND (?2<>'finished' OR more=0 OR cancel=1)",
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

/* Begins the transaction of a request that changes a campaign; *done when its key was used before,
 * which two such requests at once find out here. The caller ends the transaction. */
static int begin_once(struct wb_db *db, const struct wb_queue_key *key, int64_t now_ms, bool *done,
                      struct wb_err *err)
{
    char *had = NULL;
    int rc = wb_db_begin(db, err);

    if (rc == 0 && key)
        rc = wb_queue_find_key(db, key->token, key->key, key->digest, now_ms, &had, err);
    *done = had != NULL;
    free(had);
    return rc;
}

static int end_once(struct wb_db *db, const struct wb_queue_key *key, int64_t now_ms, bool done,
                    int rc, struct wb_err *err)
{
    if (rc == 0 && key && !done)
        rc = wb_queue_keep_key(db, key, now_ms, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0)
        wb_db_rollback(db);
    return rc;
}

/* Inside a transaction. */
static int extend(struct wb_db *db, const char *id, int64_t rounds, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *now = NULL;
    bool row = false;
    int rc =
        wb_db_prepare(db,
                      "UPDATE campaigns SET more=more+?2, rounds=rounds+?2, runs=runs+?2*arms,"
                      " forecast_s=forecast_s*(runs+?2*arms)/max(runs,1) WHERE id=?1 AND cancel=0"
                      " AND state IN ('queued','running') AND rounds+?2<=?3 RETURNING id",
                      &s, err);
    if (rc == 0) {
        wb_stmt_set_text(s, 1, id);
        wb_stmt_set_int(s, 2, rounds);
        wb_stmt_set_int(s, 3, WB_QUEUE_ROUNDS_MAX);
        rc = wb_stmt_step(s, &row, err);
    }
    if (rc == 0 && row)
        rc = wb_stmt_step(s, NULL, err);
    if (rc == 0 && !row)
        rc = wb_queue_get(db, id, &now, err);
    if (rc == 0 && !row)
        rc = wb_fail(err, WB_CONFLICT,
                     "campaign %s is %s%s with %lld rounds: rounds are added while it waits or "
                     "runs, up to %d",
                     id, wb_json_str_or(now, "state", ""),
                     wb_json_bool_or(now, "cancel_requested", false) ? ", to be cancelled," : "",
                     (long long)wb_json_int_or(now, "rounds", 0), WB_QUEUE_ROUNDS_MAX);
    return rc;
}

int wb_queue_extend(struct wb_db *db, const char *id, int64_t rounds,
                    const struct wb_queue_key *key, int64_t now_ms, struct wb_err *err)
{
    bool done = false;
    int rc = begin_once(db, key, now_ms, &done, err);

    if (rc == 0 && !done)
        rc = extend(db, id, rounds, err);
    return end_once(db, key, now_ms, done, rc, err);
}

int wb_queue_extended(struct wb_db *db, const char *id, int64_t rounds, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    /* The engine that runs them has attempts of its own. */
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET more=more-?2, starts=min(starts,1) WHERE id=?1"
                           " AND more>=?2",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    wb_stmt_set_int(s, 2, rounds);
    return wb_stmt_run(s, err);
}

/* Inside a transaction. */
static int resume(struct wb_db *db, const char *id, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    WB_AUTO_JSON wb_json *now = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET state='queued', cancel=0, starts=0, detail=NULL,"
                           " ended_ms=NULL WHERE id=?1 AND state IN ('interrupted','failed',"
                           "'cancelled','incomplete') AND started_ms IS NOT NULL RETURNING id",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, id);
    rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && row)
        return wb_stmt_step(s, NULL, err);
    if (rc == 0)
        rc = wb_queue_get(db, id, &now, err);
    if (rc == 0)
        rc = wb_fail(err, WB_CONFLICT,
                     "campaign %s is %s: only one that was interrupted, failed or was cancelled on "
                     "its way goes on",
                     id, wb_json_str_or(now, "state", ""));
    return rc;
}

int wb_queue_resume(struct wb_db *db, const char *id, const struct wb_queue_key *key,
                    int64_t now_ms, struct wb_err *err)
{
    bool done = false;
    int rc = begin_once(db, key, now_ms, &done, err);

    if (rc == 0 && !done)
        rc = check_room(db, err);
    if (rc == 0 && !done)
        rc = resume(db, id, err);
    return end_once(db, key, now_ms, done, rc, err);
}

int wb_queue_change(struct wb_db *db, const char *id, const int64_t *priority,
                    const wb_json *labels, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    struct wb_buf text = WB_BUF_INIT(64u << 10);
    bool row = false;
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET priority=coalesce(?2, priority),"
                           " labels=coalesce(?3, labels) WHERE id=?1 RETURNING id",
                           &s, err);

    if (rc < 0)
        return rc;
    if (labels)
        wb_json_line(labels, &text);
    wb_stmt_set_text(s, 1, id);
    if (priority)
        wb_stmt_set_int(s, 2, *priority);
    wb_stmt_set_text(s, 3, labels ? wb_buf_str(&text) : NULL);
    rc = wb_buf_check(&text, "labels", err);
    if (rc == 0)
        rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && !row)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no campaign %s", id);
    else if (rc == 0)
        rc = wb_stmt_step(s, NULL, err);
    wb_buf_release(&text);
    return rc;
}
