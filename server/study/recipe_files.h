/*
 * The files of a recipe folder: which there are, which of them are steps, and digests over them.
 */
#ifndef WB_STUDY_RECIPE_FILES_H
#define WB_STUDY_RECIPE_FILES_H

#include "server/study/recipe.h"

/* Fills files, has_step and digest of r (whose dir is set), and series_digest, for which the tree
 * stands in for recipe.yaml without its versions and which leaves out the folder versions/. Links,
 * special files, unknown steps and steps that cannot be executed are problems. */
void wb_recipe_files_read(struct wb_recipe *r, const struct wb_node *tree, struct wb_problems *p);

#endif
