/*
 * A folder of fetched artifacts against what it says it holds. Only for bits.c.
 */
#ifndef WB_ENGINE_BITS_CACHE_H
#define WB_ENGINE_BITS_CACHE_H

#include "server/engine/bits.h"

#define WB_ARTIFACT_LIST_MAX (1u << 20) /* bytes of artifacts.json */

/* Reads artifacts.json in dir and checks every file. WB_NOT_FOUND without it, WB_CORRUPT names the
 * first damage. artifacts and artifact_digest of out are filled as far as it gets. */
int wb_artifacts_check(const char *dir, struct wb_bits_info *out, struct wb_err *err) WB_MUST_CHECK;
/* WB_CORRUPT when the version pins another set of artifacts, or the artifact that the study's
 * subject names is not one of them. */
int wb_artifacts_pin(const struct wb_recipe_version *v, const struct wb_bits_info *have,
                     struct wb_err *err) WB_MUST_CHECK;
/* Turns an error that is set into WB_CORRUPT, keeping its text: the file is there but of no use. */
int wb_damaged(struct wb_err *err);

#endif
