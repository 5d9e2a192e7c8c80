/*
 * The bits of a recipe version on this machine.
 *
 *     <state>/cache/artifacts/<recipe>/<version>/   artifacts as fetched, and artifacts.json with
 *                                                   {artifacts: [{package, version, file, sha256,
 *                                                   size}]}; every file is checked on every use
 *                                                   (with a study's own: <version>@<12 hex>)
 *     <state>/prefix/<recipe>-<version>-<12 hex>/   the unpacked bits; the digits stand for the set
 *                                                   of artifacts and the recipe's content
 *     <state>/prefix/<same>.json                    its digest when it was made
 *
 * Folders of both kinds are made beside and renamed: they are complete or absent. One that no
 * longer matches its digests is named through note and made again. A lock file per recipe and
 * version makes several processes take turns. Once fetched, nothing needs a network.
 */
#ifndef WB_ENGINE_BITS_H
#define WB_ENGINE_BITS_H

#include "server/base/cancel.h"
#include "server/base/digest.h"
#include "server/base/json.h"
#include "server/study/recipe.h"

struct wb_bits_info {
    char *prefix;                        /* absolute; NULL from wb_bits_fetch */
    char digest[WB_SHA256_HEX];          /* of the prefix, wb_tree_digest */
    char artifact_digest[WB_SHA256_HEX]; /* of the set of artifacts: what a recipe can pin */
    wb_json *artifacts;                  /* array of {package, version, file, sha256, size} */
};

/* Progress for people ("fetching ...", "... is damaged: ..."). */
typedef void (*wb_bits_note)(void *arg, const char *text);

/* Artifacts in the cache, fetched if need be. */
int wb_bits_fetch(const struct wb_recipe *r, const struct wb_recipe_version *v,
                  const char *state_dir, const struct wb_cancel *cancel, wb_bits_note note,
                  void *arg, struct wb_bits_info *out, struct wb_err *err) WB_MUST_CHECK;
/* The same, and the prefix, installed if need be. May take minutes the first time, and waits for
 * another process that does it. WB_CORRUPT when the artifacts do not match the recipe's pin;
 * WB_NOT_FOUND when one is not to be had. */
int wb_bits_ensure(const struct wb_recipe *r, const struct wb_recipe_version *v,
                   const char *state_dir, const struct wb_cancel *cancel, wb_bits_note note,
                   void *arg, struct wb_bits_info *out, struct wb_err *err) WB_MUST_CHECK;
void wb_bits_info_release(struct wb_bits_info *b);

/* What the cache holds, without changing anything: each file's size and sha256 against its entry,
 * and the recipe's pin. WB_NOT_FOUND when nothing was fetched; WB_CORRUPT names the first damage.
 * out is filled on success and, as far as it could be read, on WB_CORRUPT. */
int wb_bits_verify(const struct wb_recipe *r, const struct wb_recipe_version *v,
                   const char *state_dir, struct wb_bits_info *out,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
