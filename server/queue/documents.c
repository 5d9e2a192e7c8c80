#include "server/queue/documents.h"

#include <stdlib.h>

#include "server/queue/rows.h"

static const char *word(const char *kind)
{
    return *kind == 'b' ? "price book" : "study";
}

static int newest(struct wb_db *db, const char *kind, const char *name, int64_t *version,
                  bool *removed, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT version, text IS NULL FROM documents WHERE kind=?1 AND name=?2"
                           " ORDER BY version DESC LIMIT 1",
                           &s, err);

    *version = 0;
    *removed = true;
    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, kind);
    wb_stmt_set_text(s, 2, name);
    rc = wb_stmt_step(s, &row, err);
    if (rc == 0 && row) {
        *version = wb_stmt_int(s, 0);
        *removed = wb_stmt_int(s, 1) != 0;
    }
    return rc;
}

static int insert(struct wb_db *db, const struct wb_document *d, int64_t version, int64_t now_ms,
                  struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "INSERT INTO documents(kind, name, version, text, token, made_ms)"
                           " VALUES(?1,?2,?3,?4,?5,?6)",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, d->kind);
    wb_stmt_set_text(s, 2, d->name);
    wb_stmt_set_int(s, 3, version);
    wb_stmt_set_text(s, 4, d->text);
    wb_stmt_set_text(s, 5, d->token);
    wb_stmt_set_int(s, 6, now_ms);
    return wb_stmt_run(s, err);
}

int wb_document_put(struct wb_db *db, const struct wb_document *d, int64_t expect, int64_t now_ms,
                    int64_t *version, struct wb_err *err)
{
    int64_t last = 0;
    bool removed = true;
    int rc = wb_db_begin(db, err);

    if (rc < 0)
        return rc;
    rc = newest(db, d->kind, d->name, &last, &removed, err);
    if (rc == 0 && (removed ? WB_DOCUMENT_ABSENT : last) != expect)
        rc = wb_fail(err, WB_CONFLICT, "the %s %s is another one by now: version %lld",
                     word(d->kind), d->name, (long long)last);
    if (rc == 0)
        rc = insert(db, d, last + 1, now_ms, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0)
        wb_db_rollback(db);
    else
        *version = last + 1;
    return rc;
}

#define COLUMNS "name, version, token, made_ms, text IS NULL"

/* A row of COLUMNS. */
static wb_json *row_json(const struct wb_stmt *s)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", wb_stmt_text(s, 0));
    wb_json_set_int(o, "version", wb_stmt_int(s, 1));
    wb_json_set_str(o, "token", wb_stmt_text(s, 2));
    wb_row_set_time(o, "made_at", s, 3);
    return o;
}

int wb_document_get(struct wb_db *db, const char *kind, const char *name, int64_t version,
                    wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT " COLUMNS ", text FROM documents WHERE kind=?1 AND name=?2"
                           " AND (?3=0 OR version=?3) ORDER BY version DESC LIMIT 1",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, kind);
    wb_stmt_set_text(s, 2, name);
    wb_stmt_set_int(s, 3, version);
    rc = wb_stmt_step(s, &row, err);
    if (rc < 0)
        return rc;
    if (!row || wb_stmt_int(s, 4))
        return version ? wb_fail(err, WB_NOT_FOUND, "there is no version %lld of the %s '%.63s'",
                                 (long long)version, word(kind), name)
                       : wb_fail(err, WB_NOT_FOUND, "there is no %s '%.63s'", word(kind), name);
    *out = row_json(s);
    wb_json_set_str(*out, "text", wb_stmt_text(s, 5));
    return 0;
}

static int rows(struct wb_stmt *s, bool with_removed, wb_json **out, struct wb_err *err)
{
    wb_json *list = wb_json_array();
    bool row = false;
    int rc;

    while ((rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        wb_json *o = row_json(s);

        if (with_removed)
            wb_json_set_bool(o, "removed", wb_stmt_int(s, 4) != 0);
        wb_json_push(list, o);
    }
    if (rc < 0)
        wb_json_free(list);
    else
        *out = list;
    return rc;
}

int wb_document_list(struct wb_db *db, const char *kind, const char *after, int64_t limit,
                     wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "SELECT " COLUMNS " FROM documents d WHERE kind=?1 AND text IS NOT NULL"
                           " AND (?2 IS NULL OR name>?2) AND version=(SELECT max(version) FROM"
                           " documents n WHERE n.kind=d.kind AND n.name=d.name)"
                           " ORDER BY name LIMIT ?3",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, kind);
    wb_stmt_set_text(s, 2, after);
    wb_stmt_set_int(s, 3, limit);
    return rows(s, false, out, err);
}

int wb_document_versions(struct wb_db *db, const char *kind, const char *name, wb_json **out,
                         struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "SELECT " COLUMNS " FROM documents WHERE kind=?1 AND name=?2"
                           " ORDER BY version DESC",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, kind);
    wb_stmt_set_text(s, 2, name);
    return rows(s, true, out, err);
}
