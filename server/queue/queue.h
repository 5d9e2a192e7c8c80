/*
 * The service's own database: submitted campaigns in their order, tokens, audit log. One SQLite
 * file; every thread opens it for itself. What a campaign is (study, plan, events) stands in its
 * folder, what it measured in git; here is only who asked for it, when, and how far it is.
 *
 * States of a campaign: queued, running, then finished, failed, cancelled, incomplete (something
 * could not be removed) or interrupted (its engine was killed too often).
 */
#ifndef WB_QUEUE_QUEUE_H
#define WB_QUEUE_QUEUE_H

#include "server/base/db.h"
#include "server/base/json.h"
#include "server/base/mem.h"

/* Opens or makes the database and brings its schema up to date. WB_UNSUPPORTED when it was
 * written by a newer program. */
int wb_queue_open(const char *path, struct wb_db **out, struct wb_err *err) WB_MUST_CHECK;

struct wb_submission {
    const char *id, *study; /* campaign id; name of the study */
    const char *token, *reason;
    const wb_json *labels; /* array of texts, or NULL */
    int64_t priority;      /* -100..100, higher first */
    int64_t runs, arms, rounds;
    double forecast_s;
    const char *key, *digest; /* Idempotency-Key and digest of the request, or NULL */
    const char *rerun_of;     /* campaign id or NULL */
    const char *pool;         /* NULL: local */
    int64_t hosts;            /* that it needs at once; 0: one */
    int64_t study_version;    /* of a stored study; 0: it was sent whole */
};
/* So many campaigns may wait at once. */
#define WB_QUEUE_WAITING_MAX 1000
/* The longest time a key is remembered. */
#define WB_KEY_AGE_MS (24LL * 3600 * 1000)

/* Puts a campaign into the queue. With a key of this token that was used before: *earlier is the
 * id of that campaign (caller frees) and nothing is added; WB_CONFLICT when the request was
 * another one, or, with sys EAGAIN, when too many wait. */
int wb_queue_add(struct wb_db *db, const struct wb_submission *s, int64_t now_ms, char **earlier,
                 struct wb_err *err) WB_MUST_CHECK;
/* The campaign that a token made with a key, if it did: as wb_queue_add, without adding. */
int wb_queue_find_key(struct wb_db *db, const char *token, const char *key, const char *digest,
                      int64_t now_ms, char **id, struct wb_err *err) WB_MUST_CHECK;
/* A key of a request that changes a campaign instead of making one. */
struct wb_queue_key {
    const char *token, *key, *digest, *campaign;
};
int wb_queue_keep_key(struct wb_db *db, const struct wb_queue_key *k, int64_t now_ms,
                      struct wb_err *err) WB_MUST_CHECK;
/* One campaign (owned object: id, study, state, priority, labels, reason, token, submitted_at,
 * started_at, ended_at, runs, arms, rounds, forecast_s, cancel_requested, starts, detail,
 * rerun_of, pool, hosts, rounds_to_add, study_version); WB_NOT_FOUND. */
int wb_queue_get(struct wb_db *db, const char *id, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* Newest first, those before `before` (an id; NULL: from the newest), at most limit. state NULL:
 * all. *out is an owned array. */
int wb_queue_list(struct wb_db *db, const char *state, const char *before, int64_t limit,
                  wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* How many are in a state. */
int wb_queue_count(struct wb_db *db, const char *state, int64_t *n,
                   struct wb_err *err) WB_MUST_CHECK;
/* One more start of an engine for a running campaign; *starts is how many there were in all. */
int wb_queue_started(struct wb_db *db, const char *id, int64_t *starts,
                     struct wb_err *err) WB_MUST_CHECK;
/* A running campaign came to its end. detail may be NULL. Nothing is done, and wb_db_changes is 0,
 * when it is not running, or finished while rounds are still to be added. */
int wb_queue_end(struct wb_db *db, const char *id, const char *state, const char *detail,
                 int64_t now_ms, struct wb_err *err) WB_MUST_CHECK;
/* Asks for the end: a queued one is cancelled at once, a running one marked. *state is what it is
 * now (caller frees). WB_CONFLICT when it is over. */
int wb_queue_cancel(struct wb_db *db, const char *id, int64_t now_ms, char **state,
                    struct wb_err *err) WB_MUST_CHECK;
/* More rounds for one that waits or runs, once for each key (NULL: none): 0 and nothing done when
 * it was used for the same before. WB_CONFLICT otherwise.
 * The dispatcher puts them into the campaign's folder when no engine holds it, then calls
 * wb_queue_extended. */
#define WB_QUEUE_ROUNDS_MAX 1000
int wb_queue_extend(struct wb_db *db, const char *id, int64_t rounds,
                    const struct wb_queue_key *key, int64_t now_ms,
                    struct wb_err *err) WB_MUST_CHECK;
/* These are in the folder now; the engine that runs them may fail as often as the first. */
int wb_queue_extended(struct wb_db *db, const char *id, int64_t rounds,
                      struct wb_err *err) WB_MUST_CHECK;
/* Back into the queue: one that was interrupted, failed or was cancelled after it had begun; once
 * for each key, as wb_queue_extend; WB_CONFLICT with sys EAGAIN when too many wait. */
int wb_queue_resume(struct wb_db *db, const char *id, const struct wb_queue_key *key,
                    int64_t now_ms, struct wb_err *err) WB_MUST_CHECK;
/* Another priority, other labels; NULL: as it is. */
int wb_queue_change(struct wb_db *db, const char *id, const int64_t *priority,
                    const wb_json *labels, struct wb_err *err) WB_MUST_CHECK;
/* Ids in a state (appended). */
int wb_queue_ids(struct wb_db *db, const char *state, struct wb_strv *out,
                 struct wb_err *err) WB_MUST_CHECK;

#endif
