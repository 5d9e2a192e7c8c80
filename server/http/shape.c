#include "server/http/shape.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/problems.h"
#include "server/base/units.h"

#define DEPTH_MAX 16

/* ---- checking ---- */

void wb_shape_error(wb_json *errors, const char *pointer, const char *code, const char *message)
{
    wb_json *o;

    if (wb_json_len(errors) >= WB_SHAPE_ERRORS_MAX)
        return;
    o = wb_json_object();
    wb_json_set_str(o, "pointer", pointer);
    wb_json_set_str(o, "code", code);
    wb_json_set_str(o, "message", message);
    wb_json_push(errors, o);
}

/* Characters of a UTF-8 text. */
static size_t characters(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static bool has_bounds(const struct wb_shape *row)
{
    return row->min != 0 || row->max != 0;
}

static char *number_fault(const struct wb_shape *row, double v)
{
    if (has_bounds(row) && (v < row->min || v > row->max))
        return wb_strf("%s: %.17g to %.17g", row->key, row->min, row->max);
    return NULL;
}

static char *text_fault(const struct wb_shape *row, const char *text)
{
    size_t n = characters(text);

    if ((double)n < row->min || (row->max > 0 && (double)n > row->max))
        return row->max > 0 ? wb_strf("%s: %.0f to %.0f characters", row->key, row->min, row->max)
                            : wb_strf("%s: at least %.0f characters", row->key, row->min);
    return NULL;
}

static char *word_fault(const struct wb_shape *row, const char *text)
{
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *allowed = NULL;

    for (const char *const *w = row->words; *w; w++)
        if (!strcmp(*w, text))
            return NULL;
    hint = wb_did_you_mean(text, row->words);
    allowed = wb_word_list(row->words);
    return wb_strf("%s: '%.60s' is none%s; allowed: %s", row->key, text, hint, allowed);
}

static const char *what_of(const struct wb_shape *row)
{
    static const char *const names[] = {
        [WB_S_TEXT] = "a text",        [WB_S_INT] = "a whole number", [WB_S_REAL] = "a number",
        [WB_S_BOOL] = "true or false", [WB_S_WORD] = "a text",        [WB_S_TIME] = "a time",
        [WB_S_OBJECT] = "an object",   [WB_S_ANY] = "a value",
    };

    return names[row->type];
}

/* What is wrong with a scalar; *code is its kind. */
static char *scalar_fault(const struct wb_shape *row, const wb_json *v, const char **code)
{
    const char *text = wb_json_string(v);
    int64_t ms;

    *code = "out-of-range";
    switch (row->type) {
    case WB_S_TEXT:
        if (text)
            return text_fault(row, text);
        break;
    case WB_S_WORD:
        *code = "unknown-value";
        if (text)
            return word_fault(row, text);
        break;
    case WB_S_TIME:
        if (text && wb_parse_time(text, &ms, NULL) == 0)
            return NULL;
        break;
    case WB_S_INT:
        if (wb_json_type(v) == WB_JSON_INT)
            return number_fault(row, (double)wb_json_integer(v));
        break;
    case WB_S_REAL:
        if (wb_json_is_number(v))
            return number_fault(row, wb_json_number(v, 0));
        break;
    case WB_S_BOOL:
        if (wb_json_type(v) == WB_JSON_BOOL)
            return NULL;
        break;
    case WB_S_OBJECT:
    case WB_S_ANY:
        return NULL;
    }
    *code = "wrong-type";
    return wb_strf("%s: must be %s", row->key, what_of(row));
}

static void check_object(const struct wb_form *f, const wb_json *doc, const char *at, int depth,
                         wb_json *errors);

static void check_one(const struct wb_shape *row, const wb_json *v, const char *at, int depth,
                      wb_json *errors)
{
    WB_AUTO_FREE char *fault = NULL;
    const char *code = "wrong-type";

    if (row->type != WB_S_OBJECT) {
        fault = scalar_fault(row, v, &code);
    } else if (wb_json_type(v) != WB_JSON_OBJECT) {
        fault = wb_strf("%s: must be an object", row->key);
    } else if (row->of) {
        check_object(row->of, v, at, depth + 1, errors);
    }
    if (fault)
        wb_shape_error(errors, at, code, fault);
}

static void check_value(const struct wb_shape *row, const wb_json *v, const char *at, int depth,
                        wb_json *errors)
{
    if (wb_json_type(v) == WB_JSON_NULL && (row->flags & WB_S_NULL))
        return;
    if (!(row->flags & WB_S_LIST)) {
        check_one(row, v, at, depth, errors);
        return;
    }
    if (wb_json_type(v) != WB_JSON_ARRAY || wb_json_len(v) < row->least ||
        (row->most && wb_json_len(v) > row->most)) {
        WB_AUTO_FREE char *text = row->most ? wb_strf("%s: must be an array of %zu to %zu",
                                                      row->key, row->least, row->most)
                                            : wb_strf("%s: must be an array", row->key);

        wb_shape_error(errors, at, "wrong-type", text);
        return;
    }
    for (size_t i = 0; i < wb_json_len(v); i++) {
        WB_AUTO_FREE char *item = wb_strf("%s/%zu", at, i);

        if (!(row->flags & WB_S_HOLES) || wb_json_type(wb_json_at(v, i)) != WB_JSON_NULL)
            check_one(row, wb_json_at(v, i), item, depth, errors);
    }
}

/* A key as part of a pointer (RFC 6901). */
static char *pointer_to(const char *at, const char *key)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    char *out;

    wb_buf_adds(&b, at);
    wb_buf_addc(&b, '/');
    for (size_t n = 0; *key && n < 200; key++, n++) {
        if (*key == '~')
            wb_buf_adds(&b, "~0");
        else if (*key == '/')
            wb_buf_adds(&b, "~1");
        else
            wb_buf_addc(&b, *key);
    }
    /* A key that was cut within a character is mended by the JSON layer. */
    out = wb_buf_take(&b);
    return out;
}

static const struct wb_shape *row_of(const struct wb_form *f, const char *key)
{
    for (const struct wb_shape *r = f->rows; r && r->key; r++)
        if (!strcmp(r->key, key))
            return r;
    return NULL;
}

static void unknown_key(const struct wb_form *f, const char *key, const char *pointer,
                        wb_json *errors)
{
    const char *names[64] = {NULL};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *allowed = NULL;
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    for (const struct wb_shape *r = f->rows; r && r->key && n + 1 < WB_LEN(names); r++)
        names[n++] = r->key;
    hint = wb_did_you_mean(key, names);
    allowed = wb_word_list(names);
    text = wb_strf("there is no key '%.60s' here%s; %s%s", key, hint,
                   n ? "allowed: " : "none is allowed", n ? allowed : "");
    wb_shape_error(errors, pointer, "unknown-key", text);
}

static void check_choice(const struct wb_form *f, const wb_json *doc, const char *at,
                         wb_json *errors)
{
    size_t n = 0;

    for (const char *const *k = f->one; k && *k; k++)
        n += wb_json_get(doc, *k) != NULL;
    if (f->one && n != 1) {
        WB_AUTO_FREE char *names = wb_word_list(f->one);
        WB_AUTO_FREE char *text = wb_strf("exactly one is needed of %s", names);

        wb_shape_error(errors, at, n ? "conflict" : "missing", text);
    }
}

static void check_object(const struct wb_form *f, const wb_json *doc, const char *at, int depth,
                         wb_json *errors)
{
    if (f->make || depth > DEPTH_MAX)
        return;
    for (void *it = wb_json_first(doc); it; it = wb_json_next(doc, it)) {
        const char *key = wb_json_iter_key(it);
        const struct wb_shape *row = row_of(f, key);
        WB_AUTO_FREE char *pointer = pointer_to(at, key);

        if (row)
            check_value(row, wb_json_iter_value(it), pointer, depth, errors);
        else if (!f->open)
            unknown_key(f, key, pointer, errors);
    }
    for (const struct wb_shape *r = f->rows; r && r->key; r++)
        if ((r->flags & WB_S_NEED) && !wb_json_get(doc, r->key)) {
            WB_AUTO_FREE char *pointer = pointer_to(at, r->key);
            WB_AUTO_FREE char *text = wb_strf("%s: must be there, %s", r->key, what_of(r));

            wb_shape_error(errors, pointer, "missing", text);
        }
    check_choice(f, doc, at, errors);
}

bool wb_form_check(const struct wb_form *f, const wb_json *doc, wb_json *errors)
{
    const size_t before = wb_json_len(errors);

    if (wb_json_type(doc) != WB_JSON_OBJECT)
        wb_shape_error(errors, "", "wrong-type", "must be a JSON object");
    else
        check_object(f, doc, "", 0, errors);
    return wb_json_len(errors) == before;
}

char *wb_shape_query_fault(const struct wb_shape *row, const char *value)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t n = 0;
    double v = 0;

    switch (row->type) {
    case WB_S_TEXT:
        return text_fault(row, value);
    case WB_S_WORD:
        return word_fault(row, value);
    case WB_S_INT:
        if (wb_parse_int(value, has_bounds(row) ? (int64_t)row->min : INT64_MIN,
                         has_bounds(row) ? (int64_t)row->max : INT64_MAX, &n, &err) < 0)
            return wb_strf("%s: %s", row->key, err.root);
        return NULL;
    case WB_S_REAL:
        if (wb_parse_real(value, has_bounds(row) ? row->min : -1e300,
                          has_bounds(row) ? row->max : 1e300, &v, &err) < 0)
            return wb_strf("%s: %s", row->key, err.root);
        return NULL;
    case WB_S_BOOL:
        return !strcmp(value, "true") || !strcmp(value, "false")
                   ? NULL
                   : wb_strf("%s: true or false", row->key);
    case WB_S_TIME: {
        WB_AUTO_FREE char *midnight = wb_strf("%.10sT00:00:00Z", value);

        return wb_parse_time(strlen(value) == 10 ? midnight : value, &n, &err) == 0
                   ? NULL
                   : wb_strf("%s: %s", row->key, err.root);
    }
    case WB_S_OBJECT:
    case WB_S_ANY:
        break;
    }
    return NULL;
}

/* ---- describing ---- */

static void set_bound(wb_json *o, const char *key, double v, bool whole)
{
    if (whole)
        wb_json_set_int(o, key, (int64_t)v);
    else
        wb_json_set_real(o, key, v);
}

wb_json *wb_form_ref(const struct wb_form *f)
{
    WB_AUTO_FREE char *path = wb_strf("#/components/schemas/%s", f->name);
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "$ref", path);
    return o;
}

static void describe_text(const struct wb_shape *row, wb_json *o)
{
    if (row->min > 0)
        wb_json_set_int(o, "minLength", (int64_t)row->min);
    if (row->max > 0)
        wb_json_set_int(o, "maxLength", (int64_t)row->max);
}

static wb_json *describe_one(const struct wb_shape *row, bool query)
{
    static const char *const types[] = {
        [WB_S_TEXT] = "string",   [WB_S_INT] = "integer", [WB_S_REAL] = "number",
        [WB_S_BOOL] = "boolean",  [WB_S_WORD] = "string", [WB_S_TIME] = "string",
        [WB_S_OBJECT] = "object", [WB_S_ANY] = NULL,
    };
    wb_json *o;

    if (row->type == WB_S_OBJECT && row->of)
        return wb_form_ref(row->of);
    o = wb_json_object();
    if (types[row->type])
        wb_json_set_str(o, "type", types[row->type]);
    if (row->type == WB_S_TEXT)
        describe_text(row, o);
    if (row->type == WB_S_WORD) {
        wb_json *list = wb_json_array();

        for (const char *const *w = row->words; *w; w++)
            wb_json_push(list, wb_json_str(*w));
        wb_json_set(o, "enum", list);
    }
    if (row->type == WB_S_TIME && query)
        wb_json_set_str(o, "pattern",
                        "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))?$");
    else if (row->type == WB_S_TIME)
        wb_json_set_str(o, "format", "date-time");
    if ((row->type == WB_S_INT || row->type == WB_S_REAL) && has_bounds(row)) {
        set_bound(o, "minimum", row->min, row->type == WB_S_INT);
        set_bound(o, "maximum", row->max, row->type == WB_S_INT);
    }
    return o;
}

/* The same, or null; taken. */
static wb_json *or_null(wb_json *o)
{
    wb_json *either = wb_json_object(), *list = wb_json_array(), *null = wb_json_object();

    wb_json_set_str(null, "type", "null");
    wb_json_push(list, o);
    wb_json_push(list, null);
    wb_json_set(either, "anyOf", list);
    return either;
}

wb_json *wb_shape_schema(const struct wb_shape *row, bool query)
{
    wb_json *o = describe_one(row, query);

    if (row->flags & WB_S_LIST) {
        wb_json *list = wb_json_object();

        if (row->flags & WB_S_HOLES)
            o = or_null(o);

        wb_json_set_str(list, "type", "array");
        wb_json_set(list, "items", o);
        if (row->least)
            wb_json_set_int(list, "minItems", (int64_t)row->least);
        if (row->most)
            wb_json_set_int(list, "maxItems", (int64_t)row->most);
        o = list;
    }
    if ((row->flags & WB_S_NULL) && row->type != WB_S_ANY)
        o = or_null(o);
    if (row->help && !query)
        wb_json_set_str(o, "description", row->help);
    return o;
}

static wb_json *choice_schema(const struct wb_form *f)
{
    wb_json *list = wb_json_array();

    for (const char *const *k = f->one; *k; k++) {
        wb_json *o = wb_json_object(), *keys = wb_json_array();

        wb_json_push(keys, wb_json_str(*k));
        wb_json_set(o, "required", keys);
        wb_json_push(list, o);
    }
    return list;
}

static void add_example(const struct wb_form *f, wb_json *o)
{
    wb_json *list, *example = NULL;

    if (!f->example || wb_json_parse(f->example, strlen(f->example), &example, NULL) < 0)
        return;
    list = wb_json_array();
    wb_json_push(list, example);
    wb_json_set(o, "examples", list);
}

wb_json *wb_form_schema(const struct wb_form *f)
{
    wb_json *o, *rows, *needed;

    if (f->make) {
        o = f->make();
        add_example(f, o);
        return o;
    }
    o = wb_json_object();
    rows = wb_json_object();
    needed = wb_json_array();
    wb_json_set_str(o, "type", "object");
    for (const struct wb_shape *r = f->rows; r && r->key; r++) {
        wb_json_set(rows, r->key, wb_shape_schema(r, false));
        if (r->flags & WB_S_NEED)
            wb_json_push(needed, wb_json_str(r->key));
    }
    wb_json_set(o, "properties", rows);
    if (wb_json_len(needed))
        wb_json_set(o, "required", needed);
    else
        wb_json_free(needed);
    if (!f->open)
        wb_json_set_bool(o, "additionalProperties", false);
    if (f->one)
        wb_json_set(o, "oneOf", choice_schema(f));
    add_example(f, o);
    return o;
}
