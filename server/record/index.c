#include "server/record/index.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/locks.h"
#include "server/record/quarantine.h"
#include "server/record/query.h"

#define APPLICATION_ID 0x57424958 /* "WBIX" */
#define INDEX_VERSION 6           /* of the tables; another one is made anew */
#define BUSY_MS 10000             /* for another who reads or writes */
#define FOLD_WAIT_NS (120 * WB_SEC)

struct wb_index {
    struct wb_db *db;
    bool in_memory;
    dev_t dev; /* of the file, to see that another took its place */
    ino_t ino;
};

static char *index_path(const struct wb_store *s)
{
    return wb_strf("%s/weighbridge.index", s->path);
}

void wb_index_free(struct wb_index *x)
{
    if (!x)
        return;
    wb_db_close(x->db);
    free(x);
}

static void drop(struct wb_store *s)
{
    wb_index_free(s->index);
    s->index = NULL;
}

/* ---- tables ---- */

static const char tables[] =
    "CREATE TABLE refs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tip BLOB NOT NULL);"
    "CREATE TABLE runs (run TEXT NOT NULL, ref INTEGER NOT NULL, day TEXT NOT NULL,"
    " tree BLOB NOT NULL, summary BLOB, added BLOB, damaged TEXT, started INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, campaign TEXT, study TEXT, arm TEXT, round INTEGER, outcome TEXT,"
    " validity TEXT, series TEXT, recipe TEXT, version TEXT, digest TEXT, host_class TEXT,"
    " commit_id TEXT, built INTEGER, host TEXT,"
    " throughput REAL NOT NULL, p99 REAL NOT NULL, UNIQUE (run, ref));"
    "CREATE TABLE campaigns (id TEXT PRIMARY KEY, study TEXT, rounds INTEGER, runs INTEGER,"
    " ok INTEGER, started INTEGER, first INTEGER, ended INTEGER) WITHOUT ROWID;"
    "CREATE TABLE series (id TEXT PRIMARY KEY, study TEXT, arm TEXT, recipe TEXT, version TEXT,"
    " host_class TEXT, runs INTEGER, campaigns INTEGER, started INTEGER, first INTEGER)"
    " WITHOUT ROWID;"
    "CREATE TABLE subjects (series TEXT, version TEXT, commit_id TEXT, built INTEGER, digest TEXT,"
    " runs INTEGER, first INTEGER, last INTEGER);"
    "CREATE TABLE annotations (id TEXT NOT NULL, ref INTEGER NOT NULL, about TEXT, made TEXT,"
    " document TEXT NOT NULL, UNIQUE (id, ref));";

static const char indexes[] = "CREATE INDEX runs_started ON runs (started, run);"
                              "CREATE INDEX runs_campaign ON runs (campaign, started, run);"
                              "CREATE INDEX runs_series ON runs (series, started, run);"
                              "CREATE INDEX runs_arm ON runs (arm, started, run);"
                              "CREATE INDEX runs_study ON runs (study, started, run);"
                              "CREATE INDEX runs_study_outcome ON runs (study, outcome, started,"
                              " run);"
                              "CREATE INDEX runs_series_study ON runs (series, study);"
                              "CREATE INDEX runs_outcome ON runs (outcome, started, run);"
                              "CREATE INDEX runs_validity ON runs (validity, started, run);"
                              "CREATE INDEX runs_throughput ON runs (throughput, run);"
                              "CREATE INDEX runs_p99 ON runs (p99, run);"
                              "CREATE INDEX runs_host ON runs (host, host_class, started);"
                              "CREATE INDEX runs_damaged ON runs (run) WHERE damaged IS NOT NULL;"
                              "CREATE INDEX campaigns_first ON campaigns (first, id);"
                              "CREATE INDEX campaigns_study ON campaigns (study, first, id);"
                              "CREATE INDEX subjects_series ON subjects (series, first);"
                              "CREATE INDEX series_first ON series (first, id);"
                              "CREATE INDEX annotations_about ON annotations (about, made, id);";

int wb_index_create(struct wb_db *db, struct wb_err *err)
{
    WB_AUTO_FREE char *marks =
        wb_strf("PRAGMA application_id=%d; PRAGMA user_version=%d;", APPLICATION_ID, INDEX_VERSION);
    int rc = wb_db_exec(db, marks, err);

    return rc < 0 ? rc : wb_db_exec(db, tables, err);
}

int wb_index_finish(struct wb_db *db, struct wb_err *err)
{
    return wb_db_exec(db, indexes, err);
}

/* Whether a database is an index of this version. */
static int check_kind(struct wb_db *db, bool *good, struct wb_err *err)
{
    int64_t id = 0, version = 0;
    int rc = wb_db_int(db, "PRAGMA application_id", &id, err);

    if (rc == 0)
        rc = wb_db_int(db, "PRAGMA user_version", &version, err);
    *good = rc == 0 && id == APPLICATION_ID && version == INDEX_VERSION;
    return rc;
}

/* ---- making one ---- */

/* All of the store into an empty database. */
static int fill(struct wb_store *s, struct wb_db *db, bool *db_failed, struct wb_err *err)
{
    int rc = wb_index_create(db, err);

    *db_failed = rc < 0;
    if (rc == 0)
        rc = wb_index_fold(s, db, true, db_failed, err);
    return rc;
}

static int make_in_memory(struct wb_store *s, struct wb_err *err)
{
    struct wb_db *db = NULL;
    bool db_failed;
    int rc = wb_db_open_checked(NULL, WB_DB_CREATE, BUSY_MS, &db, err);

    if (rc == 0)
        rc = fill(s, db, &db_failed, err);
    if (rc < 0) {
        wb_db_close(db);
        return rc;
    }
    drop(s);
    s->index = wb_calloc(1, sizeof(*s->index));
    *s->index = (struct wb_index){.db = db, .in_memory = true};
    return 0;
}

static void remove_files(const char *path)
{
    WB_AUTO_FREE char *journal = wb_strf("%s-journal", path);

    /* Absent or not to be removed: what is left is looked at again, and never believed. */
    (void)unlink(path);
    (void)unlink(journal);
}

/* Made beside the old one and then given its name: nobody sees half an index. What a crash leaves
 * of it is overwritten by the next who does this, under the same lock. */
static int make_in_file(struct wb_store *s, const char *path, bool *db_failed, struct wb_err *err)
{
    WB_AUTO_FREE char *fresh = wb_strf("%s.new", path);
    struct wb_db *db = NULL;
    int rc;

    *db_failed = true;
    remove_files(fresh);
    rc = wb_db_open_checked(fresh, WB_DB_CREATE, BUSY_MS, &db, err);
    if (rc == 0)
        rc = wb_db_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", err);
    if (rc == 0)
        rc = fill(s, db, db_failed, err);
    wb_db_close(db);
    (void)malloc_trim(0); /* it took much of everything; a server lives on */
    if (rc < 0) {
        remove_files(fresh);
        return rc;
    }
    *db_failed = true;
    rc = wb_sync_path(fresh, err);
    if (rc == 0) {
        remove_files(path);
        if (rename(fresh, path) < 0)
            rc = wb_fail_sys(err, errno, "cannot give the new index its name %s", path);
    }
    return rc;
}

/* ---- the life of one ---- */

/* Whether the file we have open is still the one of that name. */
static bool was_replaced(const struct wb_index *x, const char *path)
{
    struct stat st;

    return !x->in_memory && (stat(path, &st) < 0 || st.st_dev != x->dev || st.st_ino != x->ino);
}

/* Opens the file when it is an index; one that is absent or no good is no error here. */
static void open_file(struct wb_store *s, const char *path)
{
    struct wb_db *db = NULL;
    struct stat st;
    bool good = false;
    int rc = wb_db_open_checked(path, WB_DB_WRITE, BUSY_MS, &db, NULL);

    drop(s);
    if (rc == 0)
        rc = check_kind(db, &good, NULL);
    if (rc < 0 || !good || stat(path, &st) < 0) {
        wb_db_close(db);
        return;
    }
    s->index = wb_calloc(1, sizeof(*s->index));
    *s->index = (struct wb_index){.db = db, .dev = st.st_dev, .ino = st.st_ino};
}

/* An index that fails itself is dropped: none, and not current. */
static int look(struct wb_store *s, const char *path, bool *current, struct wb_err *err)
{
    bool db_failed = false;
    int rc;

    *current = false;
    if (!s->index || was_replaced(s->index, path))
        open_file(s, path);
    if (!s->index)
        return 0;
    rc = wb_index_current(s, s->index->db, current, &db_failed, err);
    if (rc == 0 || !db_failed)
        return rc;
    drop(s);
    *current = false;
    return 0;
}

/* With the lock, or on an index in memory. */
static int update(struct wb_store *s, struct wb_err *err)
{
    bool db_failed = false;
    int rc = wb_index_fold(s, s->index->db, false, &db_failed, err);

    if (rc == 0 || !db_failed)
        return rc;
    drop(s);
    return 0;
}

static int update_file(struct wb_store *s, const char *path, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    bool current, db_failed = false;
    int rc = look(s, path, &current, err); /* another may have done it while we waited */

    if (rc < 0 || current)
        return rc;
    if (s->index)
        rc = update(s, err);
    if (rc < 0 || s->index)
        return rc;
    rc = make_in_file(s, path, &db_failed, &why);
    if (rc < 0 && !db_failed) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc == 0)
        open_file(s, path);
    return s->index ? 0 : make_in_memory(s, err);
}

int wb_index_ready(struct wb_store *s, struct wb_db **db, struct wb_err *err)
{
    WB_AUTO_FREE char *path = index_path(s);
    WB_AUTO_FREE char *lock_path = wb_strf("%s.lock", path);
    WB_AUTO_CLOSE int lock = -1;
    struct wb_err why = WB_ERR_INIT;
    bool current;
    int rc = look(s, path, &current, err);

    if (rc == 0 && !current) {
        rc = s->index && s->index->in_memory ? -WB_UNSUPPORTED
                                             : wb_lock_wait(lock_path, FOLD_WAIT_NS, &lock, &why);
        if (rc == 0) {
            rc = update_file(s, path, err);
        } else if (rc == -WB_CONFLICT) {
            rc = wb_fail(err, WB_CONFLICT, "another process is still making the index of %s: %s",
                         s->path, why.root);
        } else { /* the folder cannot be written */
            rc = s->index && s->index->in_memory ? update(s, err) : 0;
            if (rc == 0 && (!s->index || !s->index->in_memory))
                rc = make_in_memory(s, err);
        }
    }
    if (rc == 0)
        *db = s->index->db;
    return rc;
}

int wb_index_distrust(struct wb_store *s, struct wb_err *err)
{
    WB_AUTO_FREE char *path = index_path(s);
    WB_AUTO_FREE char *lock_path = wb_strf("%s.lock", path);
    WB_AUTO_CLOSE int lock = -1;
    bool in_memory = s->index && s->index->in_memory;
    int rc = in_memory ? 0 : wb_lock_wait(lock_path, FOLD_WAIT_NS, &lock, err);

    drop(s);
    if (rc == 0 && !in_memory)
        remove_files(path);
    return rc;
}

int wb_index_ask(struct wb_store *s, wb_index_reader *fn, void *arg, struct wb_err *err)
{
    struct wb_db *db = NULL;
    int rc = wb_index_ready(s, &db, err);

    if (rc == 0)
        rc = fn(db, arg, err);
    else
        return rc;
    if (rc != -WB_CORRUPT)
        return rc;
    rc = wb_index_distrust(s, err);
    if (rc == 0)
        rc = wb_index_ready(s, &db, err);
    return rc < 0 ? rc : fn(db, arg, err);
}

static int count_runs(struct wb_db *db, void *arg, struct wb_err *err)
{
    return wb_db_int(db, "SELECT count(*) FROM runs", arg, err);
}

int wb_store_reindex(struct wb_store *s, size_t *runs, struct wb_err *err)
{
    int64_t n = 0;
    int rc = wb_index_distrust(s, err);

    if (rc == 0)
        rc = wb_index_ask(s, count_runs, &n, err);
    if (rc == 0 && runs)
        *runs = (size_t)n;
    return rc;
}
