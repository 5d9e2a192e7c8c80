/*
 * The quarantine: a folder in which the objects of one commit are written, synced, and from which
 * they are moved into the repository. Until the move nothing of them is visible; after it all are
 * on disk. Plain files only, no knowledge of git beyond the names of loose objects.
 *
 * The files are synced one by one, after write-back was started for all of them, and not with one
 * syncfs: that would also wait for whatever the measured database left in the page cache.
 */
#ifndef WB_RECORD_QUARANTINE_H
#define WB_RECORD_QUARANTINE_H

#include "server/record/git.h"

/* Path of the quarantine of a repository; git's own clean-up knows folders named like this and
 * removes what a dead writer left. Caller frees. */
char *wb_quarantine_path(const char *repository);
/* Makes it, empty: what a dead writer left is removed. Only with the store's lock held. */
int wb_quarantine_make(const char *dir, struct wb_err *err) WB_MUST_CHECK;
/* Syncs the objects that are in it; those that were in the repository already are not. */
int wb_quarantine_sync(const char *dir, const struct wb_oid *ids, size_t n,
                       struct wb_err *err) WB_MUST_CHECK;
/* Moves them to objects/xx/ in the order given, syncs the folders, removes the quarantine. */
int wb_quarantine_publish(const char *dir, const char *repository, const struct wb_oid *ids,
                          size_t n, struct wb_err *err) WB_MUST_CHECK;

/* fsync of a file or folder. */
int wb_sync_path(const char *path, struct wb_err *err) WB_MUST_CHECK;

#endif
