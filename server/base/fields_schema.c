/* JSON Schemas from field tables. */
#include "server/base/fields.h"

#include <assert.h>
#include <string.h>

static wb_json *typed(const char *type)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "type", type);
    return o;
}

wb_json *wb_schema_pattern(const char *pattern)
{
    wb_json *o = typed("string");

    wb_json_set_str(o, "pattern", pattern);
    return o;
}

wb_json *wb_schema_words(const char *const *words)
{
    wb_json *o = wb_json_object(), *list = wb_json_array();

    for (; *words; words++)
        wb_json_push(list, wb_json_str(*words));
    wb_json_set(o, "enum", list);
    return o;
}

wb_json *wb_schema_either(wb_json *a, wb_json *b)
{
    wb_json *o = wb_json_object(), *list = wb_json_array();

    wb_json_push(list, a);
    wb_json_push(list, b);
    wb_json_set(o, "anyOf", list);
    return o;
}

wb_json *wb_schema_list(wb_json *item, int64_t min, int64_t max)
{
    wb_json *o = typed("array");

    wb_json_set(o, "items", item);
    wb_json_set_int(o, "minItems", min);
    wb_json_set_int(o, "maxItems", max);
    return o;
}

wb_json *wb_schema_any_key(wb_json *value)
{
    wb_json *o = typed("object");

    wb_json_set(o, "additionalProperties", value);
    return o;
}

wb_json *wb_schema_scalar(void)
{
    wb_json *o = wb_json_object(), *types = wb_json_array();

    wb_json_push(types, wb_json_str("string"));
    wb_json_push(types, wb_json_str("number"));
    wb_json_push(types, wb_json_str("boolean"));
    wb_json_set(o, "type", types);
    return o;
}

static void set_bound(wb_json *o, const char *key, double v, bool whole)
{
    if (whole && v > -9e18 && v < 9e18)
        wb_json_set_int(o, key, (int64_t)v);
    else
        wb_json_set_real(o, key, v);
}

wb_json *wb_schema_unit(enum wb_unit_kind kind, double min, double max)
{
    bool whole = kind == WB_UNIT_INT || kind == WB_UNIT_BYTES;
    struct wb_buf pattern = WB_BUF_INIT(4096);
    wb_json *text, *number;

    wb_unit_pattern(kind, &pattern);
    text = wb_schema_pattern(wb_buf_str(&pattern));
    wb_buf_release(&pattern);
    if (kind == WB_UNIT_DURATION)
        return text;
    number = typed(whole ? "integer" : "number");
    if (min != 0 || max != 0) {
        set_bound(number, "minimum", min, whole);
        set_bound(number, "maximum", max, whole);
    }
    return wb_schema_either(text, number);
}

static wb_json *bool_schema(void)
{
    wb_json *o = wb_json_object(), *list = wb_json_array();

    wb_json_push(list, wb_json_bool(true));
    wb_json_push(list, wb_json_bool(false));
    wb_json_push(list, wb_json_str("true"));
    wb_json_push(list, wb_json_str("false"));
    wb_json_set(o, "enum", list);
    return o;
}

static wb_json *row_schema(const struct wb_field *f)
{
    wb_json *o;

    switch (f->type) {
    case WB_F_TEXT:
        o = typed("string");
        if (f->required)
            wb_json_set_int(o, "minLength", 1);
        return o;
    case WB_F_NAME:
        return wb_schema_pattern("^[a-z0-9][a-z0-9._-]{0,62}$");
    case WB_F_WORD:
        return wb_schema_words(f->words);
    case WB_F_INT:
        return wb_schema_unit(WB_UNIT_INT, f->min, f->max);
    case WB_F_REAL:
        return wb_schema_unit(WB_UNIT_REAL, f->min, f->max);
    case WB_F_BOOL:
        return bool_schema();
    case WB_F_BYTES:
        return wb_schema_unit(WB_UNIT_BYTES, f->min, f->max);
    case WB_F_DURATION:
        return wb_schema_unit(WB_UNIT_DURATION, 0, 0);
    case WB_F_PERCENT:
        return wb_schema_unit(WB_UNIT_PERCENT, f->min, f->max);
    case WB_F_REFUSED:
        o = wb_json_object();
        wb_json_set(o, "not", wb_json_object());
        return o;
    case WB_F_NODE:
        break;
    }
    return wb_json_object();
}

wb_json *wb_schema_map(const struct wb_field *table, size_t nrows)
{
    wb_json *o = typed("object"), *properties = wb_json_object(), *required = wb_json_array();

    for (size_t i = 0; i < nrows; i++) {
        wb_json *row = row_schema(&table[i]);

        if (table[i].help)
            wb_json_set_str(row, "description", table[i].help);
        wb_json_set(properties, table[i].key, row);
        if (table[i].required)
            wb_json_push(required, wb_json_str(table[i].key));
    }
    wb_json_set(o, "properties", properties);
    wb_json_set(o, "required", required);
    wb_json_set_bool(o, "additionalProperties", false);
    return o;
}

void wb_schema_set(wb_json *map, const char *key, wb_json *schema)
{
    wb_json *properties = wb_json_get(map, "properties");
    const wb_json *old = wb_json_get(properties, key);
    const char *description = wb_json_str_or(old, "description", NULL);

    assert(old);
    if (description)
        wb_json_set_str(schema, "description", description);
    wb_json_set(properties, key, schema);
}
