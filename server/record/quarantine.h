/*
 * The quarantine: a folder in which the objects of one commit are written, synced, and from which
 * they are moved into the repository. Until the move nothing of them is visible; after it all are
 * on disk. Plain files only, no knowledge of git beyond the names of loose objects.
 *
 * Syncing: not with syncfs, which would also wait for whatever the measured database left in the
 * page cache. Where the file system has one journal (ext4, xfs), the data of all files is written
 * out and one sync of a file that is made after that carries the rest along: a journal is written
 * in order. Elsewhere every file and every folder is synced.
 */
#ifndef WB_RECORD_QUARANTINE_H
#define WB_RECORD_QUARANTINE_H

#include "server/record/git.h"

/* Path of the quarantine of a repository; git's own clean-up knows folders named like this and
 * removes what a dead writer left. Caller frees. */
char *wb_quarantine_path(const char *repository);
/* Makes it, or empties it: what a dead writer left is removed. Only with the store's lock held. The
 * folder stays; making and removing one for each commit costs more than all the rest (ext4 passes
 * over inodes that were freed within seconds). */
int wb_quarantine_make(const char *dir, struct wb_err *err) WB_MUST_CHECK;
/* Syncs the objects that are in it; those that were in the repository already are not. */
int wb_quarantine_sync(const char *dir, const struct wb_oid *ids, size_t n,
                       struct wb_err *err) WB_MUST_CHECK;
/* Moves them to objects/xx/ in the order given and syncs the folders. */
int wb_quarantine_publish(const char *dir, const char *repository, const struct wb_oid *ids,
                          size_t n, struct wb_err *err) WB_MUST_CHECK;

/* fsync of a file or folder. */
int wb_sync_path(const char *path, struct wb_err *err) WB_MUST_CHECK;

#endif
