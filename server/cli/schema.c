/* `schema study|recipe|record`: JSON Schemas made from the tables that check these. */
#include <string.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/record/store.h"
#include "server/study/study.h"

static wb_json *object_of(const char *type)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "type", type);
    return o;
}

/* The documents of a run by their names. The study within is a schema of its own, so that its
 * references lead through it. */
static wb_json *record_schema(void)
{
    static const char *const others[] = {"plan", "environment", "result", NULL};
    wb_json *map = object_of("object"), *rows = wb_json_object(), *required = wb_json_array();
    wb_json *study = wb_study_schema();

    wb_json_set_str(study, "$id", "urn:weighbridge:schema:study");
    wb_json_set(rows, "summary", wb_summary_schema());
    wb_json_set(rows, "study", study);
    for (size_t i = 0; others[i]; i++)
        wb_json_set(rows, others[i], object_of("object"));
    wb_json_set(rows, "events", object_of("array"));
    for (void *it = wb_json_first(rows); it; it = wb_json_next(rows, it))
        wb_json_push(required, wb_json_str(wb_json_iter_key(it)));
    wb_json_set(map, "properties", rows);
    wb_json_set(map, "required", required);
    wb_json_set_bool(map, "additionalProperties", false);
    return map;
}

static const struct {
    const char *name, *title;
    wb_json *(*make)(void);
} schemas[] = {
    {"study", "A study of Weighbridge", wb_study_schema},
    {"recipe", "recipe.yaml of Weighbridge", wb_recipe_schema},
    {"record", "The documents of a run of Weighbridge by their names", record_schema},
};

static int schema(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const char *names[WB_LEN(schemas) + 1] = {NULL};
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; i < WB_LEN(schemas); i++) {
        WB_AUTO_FREE char *id = wb_strf("urn:weighbridge:schema:%s", schemas[i].name);
        wb_json *doc, *made;

        names[i] = schemas[i].name;
        if (strcmp(schemas[i].name, argv[0]) != 0)
            continue;
        doc = wb_json_object();
        made = schemas[i].make();
        wb_json_set_str(doc, "$schema", "https://json-schema.org/draft/2020-12/schema");
        wb_json_set_str(doc, "$id", id);
        wb_json_set_str(doc, "title", schemas[i].title);
        for (void *it = wb_json_first(made); it; it = wb_json_next(made, it))
            wb_json_set(doc, wb_json_iter_key(it), wb_json_ref(wb_json_iter_value(it)));
        wb_json_free(made);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    WB_AUTO_FREE char *hint = wb_did_you_mean(argv[0], names);

    (void)wb_fail(&err, WB_INVALID, "there is no schema of '%s'%s; allowed: study, recipe, record",
                  argv[0], hint);
    return wb_cli_fail(cli, &err);
}

const struct wb_command wb_cmd_schema = {
    .name = "schema",
    .args = "study|recipe|record",
    .summary = "JSON Schema (2020-12) of a study, a recipe or a record",
    .help = "For editors and validators. The schemas are made from the tables that check, so both\n"
            "speak of the same keys. They take the text of YAML, where every scalar is a string,\n"
            "and the numbers and booleans of JSON. What a schema cannot say, such as rules over\n"
            "several keys, is checked by 'validate' alone.\n",
    .examples = "  weighbridge schema study >study.schema.json\n",
    .min_args = 1,
    .max_args = 1,
    .run = schema,
    .no_store = true,
};
