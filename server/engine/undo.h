/*
 * What a recipe may have made outside of our folders only the recipe can undo. So that this can be
 * done after a crash, too, the folder of a run has an N.undo.json per instance: where the recipe
 * is and the environment of its steps, written before the first step of the instance runs.
 */
#ifndef WB_ENGINE_UNDO_H
#define WB_ENGINE_UNDO_H

#include "server/base/mem.h"
#include "server/study/recipe.h"

/* Not synced: it has to outlive a process, not a power cut, after which nothing is mounted. */
int wb_undo_save(const char *run_dir, int instance, const struct wb_recipe *recipe,
                 char *const *env, struct wb_err *err) WB_MUST_CHECK;

/* Told of each step that failed: "step unmount of instance 0". */
typedef void (*wb_undo_fn)(void *arg, const char *what, const struct wb_err *err);
/* Runs clean, unmount and wipe of every instance in a run's folder; all are tried, each can be
 * repeated. A recipe that is not there any more is WB_NOT_FOUND for each of them. */
void wb_undo_steps(const char *run_dir, wb_undo_fn fn, void *arg);

#endif
