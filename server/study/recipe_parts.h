/*
 * Inside of the recipe reader: what its files share. Not for other parts.
 */
#ifndef WB_STUDY_RECIPE_PARTS_H
#define WB_STUDY_RECIPE_PARTS_H

#include "server/study/recipe.h"

#define WB_RECIPE_LIST_MAX 200

/* n (NULL: nothing is done) as a list of 1 to WB_RECIPE_LIST_MAX texts into out. */
void wb_recipe_texts(const struct wb_node *n, const char *what, struct wb_strv *out,
                     struct wb_problems *p);
/* n when it is a list of 1 to WB_RECIPE_LIST_MAX items; NULL with a problem otherwise. */
const struct wb_node *wb_recipe_list(const struct wb_node *n, const char *what,
                                     struct wb_problems *p);

/* recipe_files.c: whether r->files has this one. */
bool wb_recipe_has_file(const struct wb_recipe *r, const char *file);

/* recipe_versions.c: fills versions and ports of r. */
void wb_recipe_versions_read(struct wb_recipe *r, const struct wb_node *list,
                             struct wb_problems *p);
void wb_recipe_ports_read(struct wb_recipe *r, const struct wb_node *list, struct wb_problems *p);
/* JSON Schema of a list of texts, of one version, of one port; owned by the caller. */
wb_json *wb_recipe_texts_schema(void);
wb_json *wb_recipe_version_schema(void);
wb_json *wb_recipe_port_schema(void);
/* recipe_operations.c: fills operations of r; after that, that the steps they need are there. */
void wb_recipe_operations_read(struct wb_recipe *r, const struct wb_node *list,
                               struct wb_problems *p);
void wb_recipe_operations_check(const struct wb_recipe *r, const struct wb_node *list,
                                struct wb_problems *p);
/* Whether steps/NAME is the step of an operation. */
bool wb_recipe_operation_step(const struct wb_recipe *r, const char *name);
wb_json *wb_recipe_operation_schema(void);
void wb_recipe_operations_free(struct wb_recipe *r);
/* Every lock file that a version names is one of r->files and has the right form. */
void wb_recipe_locks_check(const struct wb_recipe *r, const struct wb_node *list,
                           struct wb_problems *p);

#endif
