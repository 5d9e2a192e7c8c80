/*
 * One commit on its way: prepared without the lock (prepare.c), written with it (commit.c).
 */
#ifndef WB_RECORD_WORK_H
#define WB_RECORD_WORK_H

#include "server/record/internal.h"

#define WB_NDOCS 6

struct wb_work {
    struct wb_store *s;
    const struct wb_record *r;      /* NULL: it is not about a run */
    const struct wb_append *append; /* then this one file */
    char date[11];
    char *folder;     /* runs/2026/11/30/<run> */
    char *raw_folder; /* 30/<run> */
    char *ref, *raw_ref;
    struct wb_buf docs[WB_NDOCS];
    struct wb_buf *raw; /* compressed, r->nraw */
    char *message, *raw_message;
    int64_t time_s;
    char *quarantine;
    struct wb_git_batch *batch;
    struct wb_oid commit, raw_commit;
    struct wb_oid tree;   /* of the run's folder, once it was put */
    struct wb_work *next; /* a further run of the same commit; it has no raw data */
};

/* One file that is added. */
struct wb_append {
    const char *folder, *name; /* "annotations/2026/11/30", "ann_x.json" */
    const struct wb_buf *text;
    const char *message;
    int64_t time_s;
};
/* Commits it on the controller's reference, as durably as a run. WB_CONFLICT: it is there already.
 */
int wb_store_append(struct wb_store *s, const struct wb_append *a, char commit[41],
                    struct wb_err *err) WB_MUST_CHECK;

/* wb_store_commit for n runs without raw data at once: one commit, one sync; all or nothing. */
int wb_store_commit_all(struct wb_store *s, struct wb_record *v, size_t n, char commit[41],
                        struct wb_err *err) WB_MUST_CHECK;

/* Takes the store's lock (*lock) and puts right what a dead writer left: afterwards the references
 * fit together. */
int wb_store_tidy(struct wb_store *s, int *lock, struct wb_err *err) WB_MUST_CHECK;

/* Checks w->r and fills everything up to the quarantine's path. */
int wb_work_prepare(struct wb_work *w, struct wb_err *err) WB_MUST_CHECK;
void wb_work_release(struct wb_work *w);

#endif
