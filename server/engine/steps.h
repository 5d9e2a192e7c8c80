/*
 * Running one step of a recipe: an executable of its folder, told everything in WB_* variables,
 * which writes exactly one JSON object to stdout and its log to stderr.
 */
#ifndef WB_ENGINE_STEPS_H
#define WB_ENGINE_STEPS_H

#include "server/base/cancel.h"
#include "server/base/json.h"
#include "server/study/recipe.h"

/* Exit codes of steps beside 0. Any other one means that the step failed. */
#define WB_STEP_NOT_HAD 69 /* fetch: an artifact is not to be had from where it should come */
#define WB_STEP_NOT_YET 75 /* ready, settle: not yet, ask again */

/*
 * Runs a step to its end under the recipe's limit for it. env: "NAME=value" texts, NULL-ended; a
 * step sees these and PATH, HOME and LANG (its own values win), and `fetch` also HOME, the
 * proxy variables, SSL_CERT_FILE, WB_ARTIFACTS_MIRROR and WB_ARTIFACTS_FOLDER of this process. The
 * working folder is the recipe's.
 *
 * 0: the step exited 0 with one JSON object, which is *out (owned by the caller), or it is `ready`
 * or `settle` and exited WB_STEP_NOT_YET (then *out is NULL if it wrote none).
 * Errors name recipe, step and the last line of stderr: WB_NOT_FOUND no such step, or an artifact
 * is not to be had; WB_TIMEOUT over its limit; WB_CANCELLED; WB_PROTOCOL stdout is not one JSON
 * object; WB_IO any other exit.
 * *exit_code (may be NULL) is the step's exit code also where it makes an error, -1 when there is
 * none (not run, killed).
 */
int wb_step_run(const struct wb_recipe *r, enum wb_step step, char *const *env,
                const struct wb_cancel *cancel, int *exit_code, wb_json **out,
                struct wb_err *err) WB_MUST_CHECK;

#endif
