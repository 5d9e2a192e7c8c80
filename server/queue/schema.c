/* The tables of the service's database, and how older ones become the newest. */
#include "server/base/mem.h"
#include "server/queue/queue.h"

#define WAIT_MS 5000

static const char version_1[] =
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

/* Pools and leases, rounds that are added, keys of other requests, stored studies and price
 * books. What ran then, ran on this machine. */
static const char version_2[] =
    "ALTER TABLE campaigns ADD COLUMN pool TEXT NOT NULL DEFAULT 'local';"
    "ALTER TABLE campaigns ADD COLUMN hosts INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE campaigns ADD COLUMN more INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE campaigns ADD COLUMN study_version INTEGER;"
    "ALTER TABLE campaigns ADD COLUMN user TEXT NOT NULL DEFAULT '';"
    "UPDATE campaigns SET user=coalesce((SELECT parent FROM tokens t WHERE t.id=token), token);"
    "DROP INDEX campaigns_turn;"
    "CREATE INDEX campaigns_user ON campaigns(user, started_ms);"
    "CREATE INDEX campaigns_like ON campaigns(study, arms, state);"
    "CREATE TABLE leases("
    " machine TEXT PRIMARY KEY, host TEXT NOT NULL, pool TEXT NOT NULL, campaign TEXT NOT NULL,"
    " since_ms INTEGER NOT NULL, looked_ms INTEGER, trouble TEXT) STRICT;"
    "CREATE INDEX leases_campaign ON leases(campaign);"
    "CREATE TABLE machines("
    " machine TEXT PRIMARY KEY, reason TEXT NOT NULL, token TEXT NOT NULL, at_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE passes("
    " user TEXT NOT NULL, by_user TEXT NOT NULL, n INTEGER NOT NULL,"
    " PRIMARY KEY(user, by_user)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE keys("
    " token TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, campaign TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL, PRIMARY KEY(token, key)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE documents("
    " kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, text TEXT,"
    " token TEXT NOT NULL, made_ms INTEGER NOT NULL, PRIMARY KEY(kind, name, version)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO leases(machine, host, pool, campaign, since_ms)"
    " SELECT 'local', 'local', 'local', id, coalesce(started_ms, submitted_ms)"
    " FROM campaigns WHERE state='running' ORDER BY seq LIMIT 1;";

/* What is looked for all the time: who waits, since when, and pages of one state. */
static const char version_3[] =
    "DROP INDEX campaigns_state;"
    "CREATE INDEX campaigns_wait ON campaigns(state, user, submitted_ms);"
    "CREATE INDEX campaigns_page ON campaigns(state, id);";

static const char *const steps[] = {version_1, version_2, version_3};

/* Two servers that start at once must not both do it. */
static int upgrade(struct wb_db *db, struct wb_err *err)
{
    int64_t version = 0, newest = (int64_t)WB_LEN(steps);
    int rc = wb_db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = wb_db_version(db, &version, err);
    if (rc == 0 && (version > newest || version < 0))
        rc = wb_fail(err, WB_UNSUPPORTED,
                     "the service's database has version %lld, this program knows %lld: use a "
                     "newer weighbridge",
                     (long long)version, (long long)newest);
    for (int64_t v = version; rc == 0 && v < newest; v++)
        rc = wb_db_exec(db, steps[v], err);
    if (rc == 0 && version < newest)
        rc = wb_db_set_version(db, newest, err);
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
        rc = upgrade(db, err);
    if (rc < 0) {
        wb_db_close(db);
        return rc;
    }
    *out = db;
    return 0;
}
