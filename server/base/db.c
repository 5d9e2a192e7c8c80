#include "server/base/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/mem.h"

#define CHECKED_VFS "weighbridge"
#define SUM_BYTES 8  /* at the end of each page; what SQLite is told to leave alone */
#define PAGE_MIN 512 /* a read or write of less is not of a page */
#define PAGE_MAX 65536
#define RESERVED_AT 20 /* where the first page says how much is left alone */

struct wb_db {
    sqlite3 *handle;
    char *path;
};
struct wb_stmt {
    struct wb_db *db;
    sqlite3_stmt *handle;
    int failed; /* of a bind, told by the next step */
};

/* ---- pages with checksums: a layer between SQLite and its files ---- */

/* The real file follows in memory. */
struct page_file {
    sqlite3_file base;
};

static sqlite3_file *real_file(sqlite3_file *f)
{
    return (sqlite3_file *)((struct page_file *)f + 1);
}

/* Each step is a bijection of the sum and of the word, so no change of one word goes unseen. */
static uint64_t page_sum(const unsigned char *page, size_t n, sqlite3_int64 at)
{
    uint64_t h = (uint64_t)at ^ 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i + SUM_BYTES < n; i += sizeof(uint64_t)) {
        uint64_t w;

        memcpy(&w, page + i, sizeof(w));
        h = (h ^ w) * 0xbf58476d1ce4e5b9u;
        h = h << 29 | h >> 35;
    }
    return h;
}

static bool is_page(int n, sqlite3_int64 at)
{
    return n >= PAGE_MIN && n <= PAGE_MAX && (n & (n - 1)) == 0 && at % n == 0;
}

static int page_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at)
{
    sqlite3_file *real = real_file(f);
    const unsigned char *page = data;
    uint64_t sum;
    int rc = real->pMethods->xRead(real, data, n, at);

    if (rc != SQLITE_OK || !is_page(n, at))
        return rc;
    memcpy(&sum, page + n - SUM_BYTES, SUM_BYTES);
    if (sum != page_sum(page, (size_t)n, at) || (at == 0 && page[RESERVED_AT] != SUM_BYTES))
        return SQLITE_IOERR_DATA;
    return SQLITE_OK;
}

static int page_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
    sqlite3_file *real = real_file(f);
    unsigned char page[PAGE_MAX];
    uint64_t sum;

    if (!is_page(n, at))
        return real->pMethods->xWrite(real, data, n, at);
    memcpy(page, data, (size_t)n);
    sum = page_sum(page, (size_t)n, at);
    memcpy(page + n - SUM_BYTES, &sum, SUM_BYTES);
    return real->pMethods->xWrite(real, page, n, at);
}

static int page_close(sqlite3_file *f)
{
    return real_file(f)->pMethods->xClose(real_file(f));
}

static int page_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return real_file(f)->pMethods->xTruncate(real_file(f), n);
}

static int page_sync(sqlite3_file *f, int flags)
{
    return real_file(f)->pMethods->xSync(real_file(f), flags);
}

static int page_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return real_file(f)->pMethods->xFileSize(real_file(f), n);
}

static int page_lock(sqlite3_file *f, int kind)
{
    return real_file(f)->pMethods->xLock(real_file(f), kind);
}

static int page_unlock(sqlite3_file *f, int kind)
{
    return real_file(f)->pMethods->xUnlock(real_file(f), kind);
}

static int page_reserved(sqlite3_file *f, int *held)
{
    return real_file(f)->pMethods->xCheckReservedLock(real_file(f), held);
}

static int page_control(sqlite3_file *f, int op, void *arg)
{
    return real_file(f)->pMethods->xFileControl(real_file(f), op, arg);
}

static int page_sector(sqlite3_file *f)
{
    return real_file(f)->pMethods->xSectorSize(real_file(f));
}

static int page_traits(sqlite3_file *f)
{
    return real_file(f)->pMethods->xDeviceCharacteristics(real_file(f));
}

/* Version 1: no shared memory and no mapping, so each page is read by page_read. */
static const sqlite3_io_methods page_methods = {
    .iVersion = 1,
    .xClose = page_close,
    .xRead = page_read,
    .xWrite = page_write,
    .xTruncate = page_truncate,
    .xSync = page_sync,
    .xFileSize = page_size,
    .xLock = page_lock,
    .xUnlock = page_unlock,
    .xCheckReservedLock = page_reserved,
    .xFileControl = page_control,
    .xSectorSize = page_sector,
    .xDeviceCharacteristics = page_traits,
};

/* Databases get the layer; journals have checksums of their own. */
static int page_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *under = vfs->pAppData;
    int rc;

    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return under->xOpen(under, name, f, flags, out);
    f->pMethods = NULL;
    real_file(f)->pMethods = NULL;
    rc = under->xOpen(under, name, real_file(f), flags, out);
    if (real_file(f)->pMethods)
        f->pMethods = &page_methods;
    return rc;
}

/* Registers the layer once in a process; SQLite keeps it. */
static int register_layer(void)
{
    sqlite3_mutex *m;
    sqlite3_vfs *under, *vfs;
    int rc = sqlite3_initialize();

    if (rc != SQLITE_OK)
        return rc;
    m = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(m);
    under = sqlite3_vfs_find(NULL);
    if (!under) {
        rc = SQLITE_ERROR;
    } else if (!sqlite3_vfs_find(CHECKED_VFS)) {
        vfs = wb_calloc(1, sizeof(*vfs));
        *vfs = *under;
        vfs->pNext = NULL;
        vfs->zName = CHECKED_VFS;
        vfs->pAppData = under;
        vfs->szOsFile = under->szOsFile + (int)sizeof(struct page_file);
        vfs->xOpen = page_open;
        rc = sqlite3_vfs_register(vfs, 0);
    }
    sqlite3_mutex_leave(m);
    return rc;
}

/* ---- databases ---- */

static int fail(const struct wb_db *db, int rc, const char *what, struct wb_err *err)
{
    const char *path = db->path ? db->path : "a database in memory";
    enum wb_code code = WB_INVALID;
    bool busy = (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;

    if (rc == SQLITE_IOERR_DATA)
        return wb_fail(err, WB_CORRUPT, "%s is damaged: a page does not match its checksum", path);
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
    rc = wb_fail(err, code, "%s: %s: %s", path, what,
                 db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc));
    if (err && code == WB_IO && db->handle)
        err->sys = sqlite3_system_errno(db->handle);
    if (err && busy)
        err->sys = EAGAIN;
    return rc;
}

int wb_db_exec(struct wb_db *db, const char *sql, struct wb_err *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

    if (rc != SQLITE_OK)
        rc = sqlite3_extended_errcode(db->handle);
    return rc == SQLITE_OK ? 0 : fail(db, rc, "cannot run a statement", err);
}

/* sqlite3_open would make the file by the umask; what is in it is for its owner alone. One that is
 * there is not opened: closing any descriptor of a file ends all locks that this process has on it,
 * those of SQLite, too, and another process that closes the database then takes the log away under
 * the connections that are open here. */
static int make_file(const char *path, struct wb_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd >= 0)
        (void)close(fd);
    else if (errno != EEXIST)
        return wb_fail_sys(err, errno, "cannot make the database %s", path);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return wb_fail_sys(err, ELOOP, "cannot make the database %s", path);
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

int wb_db_open_checked(const char *path, enum wb_db_mode mode, int wait_ms, struct wb_db **out,
                       struct wb_err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (mode == WB_DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    struct wb_db *db;
    int reserve = SUM_BYTES, rc = path && mode == WB_DB_CREATE ? make_file(path, err) : 0;

    if (rc == 0 && path && access(path, F_OK) < 0)
        rc = wb_fail_sys(err, errno, "database %s", path);
    if (rc < 0)
        return rc;
    db = wb_calloc(1, sizeof(*db));
    db->path = wb_strdup(path);
    rc = register_layer();
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2(path ? path : ":memory:", &db->handle, flags,
                             path ? CHECKED_VFS : NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db->handle, wait_ms);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (rc == SQLITE_OK && path && mode == WB_DB_CREATE)
        rc = sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_RESERVE_BYTES, &reserve);
    if (rc != SQLITE_OK) {
        rc = fail(db, rc, "cannot open", err);
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

int wb_stmt_run(struct wb_stmt *s, struct wb_err *err)
{
    int rc = wb_stmt_step(s, NULL, err);

    wb_stmt_reset(s);
    return rc;
}

int wb_db_int(struct wb_db *db, const char *sql, int64_t *out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db, sql, &s, err);

    if (rc == 0)
        rc = wb_stmt_step(s, &row, err);
    if (rc == 0)
        *out = row ? wb_stmt_int(s, 0) : 0;
    return rc;
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
