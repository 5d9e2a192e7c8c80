#include "server/base/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/mem.h"

struct wb_db {
    sqlite3 *handle;
    char *path;
};
struct wb_stmt {
    struct wb_db *db;
    sqlite3_stmt *handle;
    int failed; /* of a bind, told by the next step */
};

static int fail(const struct wb_db *db, int rc, const char *what, struct wb_err *err)
{
    enum wb_code code = WB_INVALID;

    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CONSTRAINT:
        code = WB_CONFLICT;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        code = WB_CORRUPT;
        break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        code = WB_IO;
        break;
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        code = WB_LIMIT;
        break;
    default:
        break;
    }
    return wb_fail(err, code, "%s: %s: %s", db->path, what,
                   db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc));
}

int wb_db_exec(struct wb_db *db, const char *sql, struct wb_err *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(db, rc, "cannot run a statement", err);
}

/* sqlite3_open would make the file by the umask; what is in it is for its owner alone. */
static int make_file(const char *path, struct wb_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make the database %s", path);
    (void)close(fd);
    return 0;
}

int wb_db_open(const char *path, enum wb_db_mode mode, int wait_ms, struct wb_db **out,
               struct wb_err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (mode == WB_DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    struct wb_db *db;
    int rc = mode == WB_DB_CREATE ? make_file(path, err) : 0;

    if (rc == 0 && access(path, F_OK) < 0)
        rc = wb_fail_sys(err, errno, "database %s", path);
    if (rc < 0)
        return rc;
    db = wb_calloc(1, sizeof(*db));
    db->path = wb_strdup(path);
    rc = sqlite3_open_v2(path, &db->handle, flags, NULL);
    if (rc != SQLITE_OK) {
        rc = fail(db, rc, "cannot open", err);
    } else {
        (void)sqlite3_busy_timeout(db->handle, wait_ms);
        (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        rc = wb_db_exec(db,
                        mode == WB_DB_READ ? "PRAGMA foreign_keys=ON"
                                           : "PRAGMA journal_mode=WAL;"
                                             "PRAGMA journal_size_limit=16777216;"
                                             "PRAGMA foreign_keys=ON",
                        err);
    }
    if (rc < 0) {
        wb_db_close(db);
        return rc;
    }
    *out = db;
    return 0;
}

void wb_db_close(struct wb_db *db)
{
    if (!db)
        return;
    (void)sqlite3_close_v2(db->handle);
    free(db->path);
    free(db);
}

int wb_db_version(struct wb_db *db, int64_t *version, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "PRAGMA user_version", &s, err);

    if (rc == 0)
        rc = wb_stmt_step(s, NULL, err);
    if (rc == 0)
        *version = wb_stmt_int(s, 0);
    return rc;
}

int wb_db_set_version(struct wb_db *db, int64_t version, struct wb_err *err)
{
    WB_AUTO_FREE char *sql = wb_strf("PRAGMA user_version=%lld", (long long)version);

    return wb_db_exec(db, sql, err);
}

int wb_db_check(struct wb_db *db, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db, "PRAGMA quick_check(1)", &s, err);
    const char *said;

    if (rc == 0)
        rc = wb_stmt_step(s, NULL, err);
    if (rc < 0)
        return rc;
    said = wb_stmt_text(s, 0);
    if (!said || sqlite3_stricmp(said, "ok") != 0)
        return wb_fail(err, WB_CORRUPT, "%s: %s", db->path, said ? said : "no answer");
    return 0;
}

int wb_db_begin(struct wb_db *db, struct wb_err *err)
{
    return wb_db_exec(db, "BEGIN IMMEDIATE", err);
}

int wb_db_commit(struct wb_db *db, struct wb_err *err)
{
    return wb_db_exec(db, "COMMIT", err);
}

void wb_db_rollback(struct wb_db *db)
{
    if (!sqlite3_get_autocommit(db->handle))
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

int64_t wb_db_changes(const struct wb_db *db)
{
    return sqlite3_changes64(db->handle);
}

int wb_db_prepare(struct wb_db *db, const char *sql, struct wb_stmt **out, struct wb_err *err)
{
    sqlite3_stmt *handle = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &handle, NULL);

    if (rc != SQLITE_OK)
        return fail(db, rc, "cannot prepare a statement", err);
    *out = wb_calloc(1, sizeof(**out));
    **out = (struct wb_stmt){.db = db, .handle = handle};
    return 0;
}

void wb_stmt_free(struct wb_stmt *s)
{
    if (!s)
        return;
    (void)sqlite3_finalize(s->handle);
    free(s);
}

void wb_auto_stmt(struct wb_stmt **s)
{
    wb_stmt_free(*s);
}

static void bound(struct wb_stmt *s, int rc)
{
    if (rc != SQLITE_OK && !s->failed)
        s->failed = rc;
}

void wb_stmt_set_text(struct wb_stmt *s, int i, const char *text)
{
    bound(s, text ? sqlite3_bind_text(s->handle, i, text, -1, SQLITE_TRANSIENT)
                  : sqlite3_bind_null(s->handle, i));
}

void wb_stmt_set_int(struct wb_stmt *s, int i, int64_t v)
{
    bound(s, sqlite3_bind_int64(s->handle, i, v));
}

void wb_stmt_set_real(struct wb_stmt *s, int i, double v)
{
    bound(s, sqlite3_bind_double(s->handle, i, v));
}

void wb_stmt_set_blob(struct wb_stmt *s, int i, const void *data, size_t n)
{
    bound(s, data ? sqlite3_bind_blob64(s->handle, i, data, n, SQLITE_TRANSIENT)
                  : sqlite3_bind_null(s->handle, i));
}

int wb_stmt_step(struct wb_stmt *s, bool *row, struct wb_err *err)
{
    int rc = s->failed;

    if (rc)
        return fail(s->db, rc, "cannot bind a value", err);
    rc = sqlite3_step(s->handle);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return fail(s->db, rc, "cannot run a statement", err);
    if (row)
        *row = rc == SQLITE_ROW;
    return 0;
}

void wb_stmt_reset(struct wb_stmt *s)
{
    (void)sqlite3_reset(s->handle); /* tells again what step has told */
    s->failed = 0;
}

const char *wb_stmt_text(const struct wb_stmt *s, int col)
{
    return (const char *)sqlite3_column_text(s->handle, col);
}

int64_t wb_stmt_int(const struct wb_stmt *s, int col)
{
    return sqlite3_column_int64(s->handle, col);
}

double wb_stmt_real(const struct wb_stmt *s, int col)
{
    return sqlite3_column_double(s->handle, col);
}

const void *wb_stmt_blob(const struct wb_stmt *s, int col, size_t *n)
{
    const void *data = sqlite3_column_blob(s->handle, col);

    *n = data ? (size_t)sqlite3_column_bytes(s->handle, col) : 0;
    return data;
}

bool wb_stmt_is_null(const struct wb_stmt *s, int col)
{
    return sqlite3_column_type(s->handle, col) == SQLITE_NULL;
}
