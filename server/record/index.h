/*
 * The index behind query.h: its file, its life, its folding. Inside of the room.
 *
 * Tables: refs (the commit each reference was folded to), runs (a row per run and reference),
 * campaigns, series and subjects (what is counted of them), annotations. A row holds the ids of the
 * run's folder and of its summary in git, so that reading one needs no search.
 */
#ifndef WB_RECORD_INDEX_H
#define WB_RECORD_INDEX_H

#include "server/base/db.h"
#include "server/record/internal.h"

struct wb_index;
struct wb_query;

/* The index of the store as its references stand now; borrowed, valid until the store is closed
 * or the next call. Folds what is missing, waiting up to two minutes for another who does. */
int wb_index_ready(struct wb_store *s, struct wb_db **db, struct wb_err *err) WB_MUST_CHECK;
/* Asks the index: fn reads from it (nothing else; git has failures of its own) into arg. When the
 * file proves to be damaged, fn is called once more with one made anew. */
typedef int wb_index_reader(struct wb_db *db, void *arg, struct wb_err *err);
int wb_index_ask(struct wb_store *s, wb_index_reader *fn, void *arg,
                 struct wb_err *err) WB_MUST_CHECK;
/* Throws the index away, for what it said is not so; the next call makes it anew. */
int wb_index_distrust(struct wb_store *s, struct wb_err *err) WB_MUST_CHECK;
void wb_index_free(struct wb_index *x);

/* wb_store_runs with any limit (0: all of them). */
int wb_index_runs(struct wb_store *s, const struct wb_query *q, size_t limit, wb_json **items,
                  char **next, struct wb_err *err) WB_MUST_CHECK;
/* Where the index says that a run stands. */
int wb_index_place(struct wb_store *s, const char *run, struct wb_place *out,
                   struct wb_err *err) WB_MUST_CHECK;

/* Goes to the next row: 1 when there is one, 0 when not. */
static inline int wb_index_next(struct wb_stmt *st, struct wb_err *err)
{
    bool row = false;
    int rc = wb_stmt_step(st, &row, err);

    return rc < 0 ? rc : row;
}

/* Empty tables in a new database. */
int wb_index_create(struct wb_db *db, struct wb_err *err) WB_MUST_CHECK;
/* What makes questions quick; it is cheaper to make after the rows. */
int wb_index_finish(struct wb_db *db, struct wb_err *err) WB_MUST_CHECK;
/* Folds all references to where they stand now, in one transaction; fresh: into empty tables, which
 * are finished on the way. *db_failed tells a failure of the database from one of the store. */
int wb_index_fold(struct wb_store *s, struct wb_db *db, bool fresh, bool *db_failed,
                  struct wb_err *err) WB_MUST_CHECK;
/* Whether it is folded to where the references stand, and no run is in it as damaged that can be
 * read again. */
int wb_index_current(struct wb_store *s, struct wb_db *db, bool *current, bool *db_failed,
                     struct wb_err *err) WB_MUST_CHECK;

#endif
