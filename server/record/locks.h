/*
 * Who may write: the store's own lock, and lock files that git leaves behind.
 *
 * One writer at a time holds <store>/weighbridge.lock, which the kernel frees when it dies. A git
 * lock file ("<ref>.lock") that is found while this lock is held is of a dead writer of ours or of
 * a plain git command. It counts as dead when no process has it open and it has not been touched
 * for a while; then it is removed. A living one is waited for and never removed.
 */
#ifndef WB_RECORD_LOCKS_H
#define WB_RECORD_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "server/base/err.h"
#include "server/base/mem.h"

/* Takes a lock file, waiting up to wait_ns for its holder. WB_CONFLICT names him. *fd is the lock:
 * closing it frees it. */
int wb_lock_wait(const char *path, int64_t wait_ns, int *fd, struct wb_err *err) WB_MUST_CHECK;
/* Takes the store's lock, waiting up to wait_ns for another writer. WB_CONFLICT names its holder.
 * *fd is the lock: closing it frees it. */
int wb_store_lock(const char *repository, int64_t wait_ns, int *fd,
                  struct wb_err *err) WB_MUST_CHECK;

/* Clears the way for an update of `ref`: its lock file is removed when dead; a living one is
 * waited for up to wait_ns, then WB_CONFLICT names it. What was removed is added to notices. */
int wb_git_unlock_ref(const char *repository, const char *ref, int64_t wait_ns,
                      struct wb_strv *notices, struct wb_err *err) WB_MUST_CHECK;
/* Lock files that do not stop us but would stop git (HEAD, config, index, packed-refs): removed
 * when dead for long, else left alone. */
void wb_git_unlock_others(const char *repository, struct wb_strv *notices);

#endif
