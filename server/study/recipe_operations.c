/* Operations of a recipe: what can be done to a running instance while load goes on. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/fields.h"
#include "server/study/recipe_parts.h"

#define LIMIT_DEFAULT (600 * WB_SEC)

struct raw_operation {
    char *name, *help;
    int kind;
    int64_t limit;
};
static const char *const kinds[] = {[WB_OP_WORK] = "work",
                                    [WB_OP_LEAVE] = "leave",
                                    [WB_OP_JOIN] = "join",
                                    [WB_OP_RESTART] = "restart",
                                    NULL};
static const struct wb_field fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_operation, name), 0, 0, NULL,
     "such as decommission; of kinds work and leave it names a step, too"},
    {"kind", WB_F_WORD, true, offsetof(struct raw_operation, kind), 0, 0, kinds,
     "what becomes of the instance: work, leave, join or restart"},
    {"limit", WB_F_DURATION, false, offsetof(struct raw_operation, limit), 100e6, 86400e9, NULL,
     "until the cluster is as it should be, such as 10m"},
    {"help", WB_F_TEXT, true, offsetof(struct raw_operation, help), 0, 0, NULL,
     "one line for people"},
};

const struct wb_recipe_operation *wb_recipe_find_operation(const struct wb_recipe *r,
                                                           const char *name)
{
    for (size_t i = 0; i < r->noperations; i++)
        if (r->operations[i].name && strcmp(r->operations[i].name, name) == 0)
            return &r->operations[i];
    return NULL;
}

static bool has_own_step(const struct wb_recipe_operation *op)
{
    return op->kind == WB_OP_WORK || op->kind == WB_OP_LEAVE;
}

bool wb_recipe_operation_step(const struct wb_recipe *r, const char *name)
{
    const struct wb_recipe_operation *op = wb_recipe_find_operation(r, name);

    return op && has_own_step(op);
}

static bool is_fixed_step(const char *name)
{
    for (int s = 0; s < WB_STEP_COUNT; s++)
        if (strcmp(wb_step_name((enum wb_step)s), name) == 0)
            return true;
    return false;
}

void wb_recipe_operations_read(struct wb_recipe *r, const struct wb_node *list,
                               struct wb_problems *p)
{
    list = wb_recipe_list(list, "operations", p);
    if (!list)
        return;
    r->operations = wb_calloc(list->n, sizeof *r->operations);
    for (size_t i = 0; i < list->n; i++) {
        struct raw_operation raw = {.limit = LIMIT_DEFAULT};

        (void)wb_fields_read(list->items[i], "operation", fields, WB_LEN(fields), &raw, p);
        if (raw.name && wb_recipe_find_operation(r, raw.name))
            wb_problem(p, list->items[i], "duplicate", "operation '%s' is there twice", raw.name);
        if (raw.name && is_fixed_step(raw.name))
            wb_problem(p, list->items[i], "bad-name",
                       "operation '%s' has the name of a step that every recipe may have",
                       raw.name);
        r->operations[r->noperations++] =
            (struct wb_recipe_operation){raw.name, (enum wb_op_kind)raw.kind, raw.limit, raw.help};
    }
}

void wb_recipe_operations_check(const struct wb_recipe *r, const struct wb_node *list,
                                struct wb_problems *p)
{
    for (size_t i = 0; i < r->noperations; i++) {
        const struct wb_recipe_operation *op = &r->operations[i];
        WB_AUTO_FREE char *path = op->name ? wb_strf("steps/%s", op->name) : NULL;

        if (path && has_own_step(op) && !wb_recipe_has_file(r, path))
            wb_problem(p, list->items[i], "missing-file",
                       "%s is missing: operation '%s' is done by it", path, op->name);
    }
}

wb_json *wb_recipe_operation_schema(void)
{
    return wb_schema_map(fields, WB_LEN(fields));
}

void wb_recipe_operations_free(struct wb_recipe *r)
{
    for (size_t i = 0; i < r->noperations; i++) {
        free(r->operations[i].name);
        free(r->operations[i].help);
    }
    free(r->operations);
}
