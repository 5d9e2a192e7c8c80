/*
 * Texts that the service keeps for its users, with every version they had: studies and price
 * books. A version is never changed; one that is removed is followed by an empty version, so that
 * numbers are not given twice.
 */
#ifndef WB_QUEUE_DOCUMENTS_H
#define WB_QUEUE_DOCUMENTS_H

#include "server/queue/queue.h"

struct wb_document {
    const char *kind; /* "study", "book" */
    const char *name; /* wb_is_name */
    const char *text; /* NULL: it is removed */
    const char *token;
};
#define WB_DOCUMENT_ABSENT 0
/* Adds a version when the newest is `expect` (WB_DOCUMENT_ABSENT: there is none, or it was
 * removed); *version is its number. WB_CONFLICT when another one came between. */
int wb_document_put(struct wb_db *db, const struct wb_document *d, int64_t expect, int64_t now_ms,
                    int64_t *version, struct wb_err *err) WB_MUST_CHECK;
/* {name, version, text, token, made_at} (owned). version 0: the newest. WB_NOT_FOUND, also for one
 * that was removed. */
int wb_document_get(struct wb_db *db, const char *kind, const char *name, int64_t version,
                    wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* The newest of each, by name, those after `after` (NULL: from the first), at most limit; without
 * their texts. Owned array. */
int wb_document_list(struct wb_db *db, const char *kind, const char *after, int64_t limit,
                     wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* All versions of one, newest first, without texts; removed: true where it was removed then. Owned
 * array, empty when it never was. */
int wb_document_versions(struct wb_db *db, const char *kind, const char *name, wb_json **out,
                         struct wb_err *err) WB_MUST_CHECK;

#endif
