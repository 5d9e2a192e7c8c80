/*
 * Annotations: what people say about records afterwards. Each is a record of its own, a commit that
 * adds annotations/<YYYY>/<MM>/<DD>/<id>.json to the controller's reference; none is ever changed,
 * one is taken back by another. The analysis is a function of the records and of these.
 *
 * {"schema": 1, annotation: its id, type, id: what it is about, text, who, made_at, at}
 */
#ifndef WB_RECORD_ANNOTATE_H
#define WB_RECORD_ANNOTATE_H

#include "server/record/store.h"

#define WB_ANNOTATION_TEXT_MAX 4000 /* bytes */

/* Types, and what their id may be:
 *   "excluded"     a run or campaign that is left out of histories
 *   "accepted"     a run, campaign or finding: the change there is meant
 *   "environment"  a run, campaign, host or host class: something around it changed at `at`
 *   "note"         a run, campaign, series key, finding or host: for people only
 *   "pinned"       a run or campaign whose raw data is kept when that of its time is pruned
 *   "withdrawn"    an annotation (ann_...), which counts no more */
extern const char *const wb_annotation_types[]; /* NULL-ended */

struct wb_annotation {
    const char *type;
    const char *id;   /* whole, as it stands in the records; runs, campaigns and annotations must
                         exist */
    const char *text; /* why; required but for "accepted", "pinned" and "withdrawn"; UTF-8, no
                         controls but line ends */
    const char *who;  /* a name; NULL: the login of this process and the host */
    const char *at;   /* RFC 3339, when it was (environment); NULL: the start of the run or campaign
                         it is about, else now */
};

/* Commits it durably. *id: its own id ("ann_..."), owned. WB_INVALID names what is wrong,
 * WB_NOT_FOUND: nothing of that id is recorded. */
int wb_store_annotate(struct wb_store *s, const struct wb_annotation *a, char **id,
                      struct wb_err *err) WB_MUST_CHECK;

/* All annotations of all controllers about `about` (NULL: all), oldest first, an array of the
 * documents above. One that was withdrawn has withdrawn_by (the id of that annotation); with
 * `in_force` these and the withdrawals are left out. Owned. */
int wb_store_annotations(struct wb_store *s, const char *about, bool in_force, wb_json **out,
                         struct wb_err *err) WB_MUST_CHECK;

#endif
