/*
 * SQLite, embedded: the one place that knows its header.
 *
 * A database belongs to the thread that uses it; several threads or processes open the file
 * several times. Opened with: write-ahead log, foreign keys on, a wait of up to `wait_ms` for
 * another writer. Errors: WB_CONFLICT for a lock that did not come free (sys is EAGAIN then)
 * and for a broken constraint, WB_CORRUPT for a file that is damaged or no database, WB_IO for the
 * disk (full included), WB_INVALID for SQL that is wrong.
 */
#ifndef WB_BASE_DB_H
#define WB_BASE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/err.h"

struct wb_db;
struct wb_stmt;

enum wb_db_mode {
    WB_DB_READ,  /* the file must exist; nothing is written */
    WB_DB_WRITE, /* the file must exist */
    WB_DB_CREATE /* made when it is not there, mode 0600 */
};

/* *out is owned by the caller. WB_NOT_FOUND when the file must exist and does not. */
int wb_db_open(const char *path, enum wb_db_mode mode, int wait_ms, struct wb_db **out,
               struct wb_err *err) WB_MUST_CHECK;
/* The same for tables that can be made again and must never answer wrongly: every page carries a
 * checksum of its content and place, and a file with a page that does not match is WB_CORRUPT, as
 * is one that was made or written to by somebody else. No write-ahead log: readers and a writer
 * wait for each other, for the time of a commit. path NULL: in memory. */
int wb_db_open_checked(const char *path, enum wb_db_mode mode, int wait_ms, struct wb_db **out,
                       struct wb_err *err) WB_MUST_CHECK;
/* Finishes nothing: an open transaction is rolled back. Statements must be freed before. */
void wb_db_close(struct wb_db *db);
/* The version number a file carries for its user (0 in a new one), and how it is set. */
int wb_db_version(struct wb_db *db, int64_t *version, struct wb_err *err) WB_MUST_CHECK;
int wb_db_set_version(struct wb_db *db, int64_t version, struct wb_err *err) WB_MUST_CHECK;
/* Looks through the whole file; WB_CORRUPT says what is wrong. */
int wb_db_check(struct wb_db *db, struct wb_err *err) WB_MUST_CHECK;

/* One or more statements without parameters: schemas, pragmas. */
int wb_db_exec(struct wb_db *db, const char *sql, struct wb_err *err) WB_MUST_CHECK;
/* Takes the write lock at once, so that what was read inside stays true. Not nested. */
int wb_db_begin(struct wb_db *db, struct wb_err *err) WB_MUST_CHECK;
int wb_db_commit(struct wb_db *db, struct wb_err *err) WB_MUST_CHECK;
/* Undoes what is open; nothing when nothing is. */
void wb_db_rollback(struct wb_db *db);
/* Rows that the last insert, update or delete changed. */
int64_t wb_db_changes(const struct wb_db *db);

/* One statement with parameters ?1, ?2, ... */
int wb_db_prepare(struct wb_db *db, const char *sql, struct wb_stmt **out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_stmt_free(struct wb_stmt *s);
void wb_auto_stmt(struct wb_stmt **s);
#define WB_AUTO_STMT __attribute__((cleanup(wb_auto_stmt)))
/* Parameters count from 1; texts and blobs are copied; NULL binds null. A value that could not be
 * bound is told by the next step. */
void wb_stmt_set_text(struct wb_stmt *s, int i, const char *text);
void wb_stmt_set_int(struct wb_stmt *s, int i, int64_t v);
void wb_stmt_set_real(struct wb_stmt *s, int i, double v);
void wb_stmt_set_blob(struct wb_stmt *s, int i, const void *data, size_t n);
/* Goes to the next row; *row is false when there is none (row may be NULL for statements without
 * any). After an error or the end, wb_stmt_reset before it is used again. */
int wb_stmt_step(struct wb_stmt *s, bool *row, struct wb_err *err) WB_MUST_CHECK;
/* A statement without rows: steps and resets it. */
int wb_stmt_run(struct wb_stmt *s, struct wb_err *err) WB_MUST_CHECK;
/* The one integer that a statement answers (a pragma, a count); 0 where there is no row. */
int wb_db_int(struct wb_db *db, const char *sql, int64_t *out, struct wb_err *err) WB_MUST_CHECK;
/* Makes it ready for other values; those bound stay until set anew. */
void wb_stmt_reset(struct wb_stmt *s);
/* Columns count from 0. Texts are borrowed until the next step, reset or free; NULL for null. */
const char *wb_stmt_text(const struct wb_stmt *s, int col);
int64_t wb_stmt_int(const struct wb_stmt *s, int col);
double wb_stmt_real(const struct wb_stmt *s, int col);
const void *wb_stmt_blob(const struct wb_stmt *s, int col, size_t *n);
bool wb_stmt_is_null(const struct wb_stmt *s, int col);

#endif
