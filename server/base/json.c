#include "server/base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

/* jansson keeps references in the value itself, so sharing a value that the caller sees as const
 * needs the qualifier off. */
static json_t *mutable(const wb_json *j)
{
    return (json_t *)(uintptr_t)j;
}

/* A constructor of jansson fails only when memory is out. */
static json_t *must(json_t *j)
{
    if (j == NULL) {
        fputs("weighbridge: out of memory (JSON)\n", stderr);
        abort();
    }
    return j;
}

/* Length of the valid UTF-8 sequence at s (RFC 3629: no overlong forms, no surrogates), 0 if the
 * byte is not the start of one. NUL counts as invalid: a reader would refuse it. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
    unsigned char c = s[0];

    if (c != 0 && c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return left >= 2 && (s[1] & 0xc0) == 0x80 ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        unsigned char lo = c == 0xe0 ? 0xa0 : 0x80, hi = c == 0xed ? 0x9f : 0xbf;
        return left >= 3 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        unsigned char lo = c == 0xf0 ? 0x90 : 0x80, hi = c == 0xf4 ? 0x8f : 0xbf;
        bool ok =
            left >= 4 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 && (s[3] & 0xc0) == 0x80;
        return ok ? 4 : 0;
    }
    return 0;
}

static bool utf8_valid(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t len = utf8_len((const unsigned char *)s + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

/* The same text with every offending byte replaced by U+FFFD; caller frees. */
static char *utf8_repair(const char *s, size_t n)
{
    char *out = wb_calloc(n + 1, 3), *w = out;
    size_t i = 0;

    while (i < n) {
        size_t len = utf8_len((const unsigned char *)s + i, n - i);
        if (len == 0) {
            memcpy(w, "\xef\xbf\xbd", 3);
            w += 3;
            i++;
        } else {
            memcpy(w, s + i, len);
            w += len;
            i += len;
        }
    }
    return out;
}

/* ---- reading ---- */

int wb_json_parse(const char *text, size_t n, wb_json **out, struct wb_err *err)
{
    json_error_t e;
    json_t *j;

    if (n > WB_JSON_TEXT_MAX)
        return wb_fail(err, WB_LIMIT, "JSON text has %zu bytes, at most %u are taken", n,
                       WB_JSON_TEXT_MAX);
    if (text == NULL || n == 0)
        return wb_fail(err, WB_INVALID, "line 1, column 1: JSON text is empty");
    j = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (j == NULL)
        return wb_fail(err, WB_INVALID, "line %d, column %d: %s", e.line, e.column, e.text);
    *out = j;
    return 0;
}

int wb_json_read_file(const char *path, size_t max, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;
    int rc = wb_file_read(path, max, &text, &n, err);

    if (rc < 0)
        return rc;
    if (wb_json_parse(text, n, out, err) < 0)
        return wb_wrap(err, "%s", path);
    return 0;
}

/* ---- making ---- */

wb_json *wb_json_object(void)
{
    return must(json_object());
}

wb_json *wb_json_array(void)
{
    return must(json_array());
}

wb_json *wb_json_null(void)
{
    return json_null();
}

wb_json *wb_json_bool(bool v)
{
    return json_boolean(v);
}

wb_json *wb_json_int(int64_t v)
{
    return must(json_integer(v));
}

wb_json *wb_json_real(double v)
{
    return isfinite(v) ? must(json_real(v)) : json_null();
}

wb_json *wb_json_str(const char *s)
{
    return s == NULL ? json_null() : wb_json_strn(s, strlen(s));
}

wb_json *wb_json_strn(const char *s, size_t n)
{
    if (s == NULL)
        return json_null();
    if (!utf8_valid(s, n)) {
        WB_AUTO_FREE char *repaired = utf8_repair(s, n);
        return must(json_string_nocheck(repaired));
    }
    return must(json_stringn_nocheck(s, n));
}

wb_json *wb_json_ref(const wb_json *j)
{
    return json_incref(mutable(j));
}

wb_json *wb_json_copy(const wb_json *j)
{
    return j == NULL ? NULL : must(json_deep_copy(j));
}

void wb_json_free(wb_json *j)
{
    json_decref(j);
}

void wb_auto_json(wb_json **j)
{
    json_decref(*j);
}

/* A value that cannot be put where the caller wants it is a bug of the caller (not an object, or
 * itself) or a lack of memory. */
static void must_put(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "weighbridge: cannot add to a JSON %s\n", what);
        abort();
    }
}

void wb_json_set(wb_json *obj, const char *key, wb_json *value)
{
    size_t n = strlen(key);

    if (value == NULL)
        value = json_null();
    if (utf8_valid(key, n)) {
        must_put(json_object_set_new_nocheck(obj, key, value), "object");
    } else {
        WB_AUTO_FREE char *repaired = utf8_repair(key, n);
        must_put(json_object_set_new_nocheck(obj, repaired, value), "object");
    }
}

void wb_json_set_str(wb_json *obj, const char *key, const char *s)
{
    wb_json_set(obj, key, wb_json_str(s));
}

void wb_json_set_int(wb_json *obj, const char *key, int64_t v)
{
    wb_json_set(obj, key, wb_json_int(v));
}

void wb_json_set_real(wb_json *obj, const char *key, double v)
{
    wb_json_set(obj, key, wb_json_real(v));
}

void wb_json_set_bool(wb_json *obj, const char *key, bool v)
{
    wb_json_set(obj, key, wb_json_bool(v));
}

void wb_json_set_reason(wb_json *obj, const char *key, const char *reason)
{
    WB_AUTO_FREE char *reason_key = wb_strf("%s_reason", key);

    wb_json_set(obj, key, json_null());
    wb_json_set_str(obj, reason_key, reason);
}

void wb_json_del(wb_json *obj, const char *key)
{
    (void)json_object_del(obj, key); /* absent is as good as removed */
}

void wb_json_push(wb_json *arr, wb_json *value)
{
    must_put(json_array_append_new(arr, value == NULL ? json_null() : value), "array");
}

/* ---- looking ---- */

enum wb_json_type wb_json_type(const wb_json *j)
{
    if (j == NULL)
        return WB_JSON_NULL;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        return WB_JSON_OBJECT;
    case JSON_ARRAY:
        return WB_JSON_ARRAY;
    case JSON_STRING:
        return WB_JSON_STRING;
    case JSON_INTEGER:
        return WB_JSON_INT;
    case JSON_REAL:
        return WB_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return WB_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return WB_JSON_NULL;
}

bool wb_json_is_number(const wb_json *j)
{
    return json_is_number(j);
}

bool wb_json_equal(const wb_json *a, const wb_json *b)
{
    return a == b || json_equal(a, b);
}

size_t wb_json_len(const wb_json *j)
{
    return json_is_array(j) ? json_array_size(j) : json_object_size(j);
}

wb_json *wb_json_at(const wb_json *arr, size_t i)
{
    return json_array_get(arr, i);
}

wb_json *wb_json_get(const wb_json *obj, const char *key)
{
    return json_object_get(obj, key);
}

/* Metric names have dots themselves, so at each step the longest key that is there wins. */
wb_json *wb_json_path(const wb_json *j, const char *dotted)
{
    size_t n = strlen(dotted);
    wb_json *found = json_object_getn(j, dotted, n);

    while (found == NULL && n > 0) {
        wb_json *part;
        while (n > 0 && dotted[n - 1] != '.')
            n--;
        if (n == 0)
            break;
        part = json_object_getn(j, dotted, n - 1);
        if (part != NULL)
            found = wb_json_path(part, dotted + n);
        n--;
    }
    return found;
}

void *wb_json_first(const wb_json *obj)
{
    return json_object_iter(mutable(obj));
}

void *wb_json_next(const wb_json *obj, void *it)
{
    return json_object_iter_next(mutable(obj), it);
}

const char *wb_json_iter_key(void *it)
{
    return json_object_iter_key(it);
}

wb_json *wb_json_iter_value(void *it)
{
    return json_object_iter_value(it);
}

const char *wb_json_str_or(const wb_json *obj, const char *key, const char *dflt)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_string(v) ? json_string_value(v) : dflt;
}

int64_t wb_json_int_or(const wb_json *obj, const char *key, int64_t dflt)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_integer(v) ? json_integer_value(v) : dflt;
}

double wb_json_real_or(const wb_json *obj, const char *key, double dflt)
{
    return wb_json_number(json_object_get(obj, key), dflt);
}

bool wb_json_bool_or(const wb_json *obj, const char *key, bool dflt)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_boolean(v) ? json_is_true(v) : dflt;
}

const char *wb_json_string(const wb_json *j)
{
    return json_string_value(j);
}

int64_t wb_json_integer(const wb_json *j)
{
    return json_integer_value(j);
}

bool wb_json_is_true(const wb_json *j)
{
    return json_is_true(j);
}

double wb_json_number(const wb_json *j, double dflt)
{
    return json_is_number(j) ? json_number_value(j) : dflt;
}

/* ---- strict reading ---- */

static const char *type_words(const json_t *j)
{
    static const char *const words[] = {"null",   "a truth value", "an integer", "a number",
                                        "a text", "a list",        "an object"};
    return words[wb_json_type(j)];
}

/* The member, or the reason why it cannot be had. */
static int need(const wb_json *obj, const char *where, const char *key, json_t **out,
                struct wb_err *err)
{
    json_t *v;

    if (!json_is_object(obj))
        return wb_fail(err, WB_INVALID, "%s must be an object, it is %s", where, type_words(obj));
    v = json_object_get(obj, key);
    if (v == NULL)
        return wb_fail(err, WB_INVALID, "%s: key '%s' is missing", where, key);
    *out = v;
    return 0;
}

static int wrong_type(const char *where, const char *key, const char *wanted, const json_t *v,
                      struct wb_err *err)
{
    return wb_fail(err, WB_INVALID, "%s: '%s' must be %s, it is %s", where, key, wanted,
                   type_words(v));
}

int wb_json_need_str(const wb_json *obj, const char *where, const char *key, const char **out,
                     struct wb_err *err)
{
    json_t *v = NULL;
    int rc = need(obj, where, key, &v, err);

    if (rc < 0)
        return rc;
    if (!json_is_string(v))
        return wrong_type(where, key, "a text", v, err);
    *out = json_string_value(v);
    return 0;
}

int wb_json_need_int(const wb_json *obj, const char *where, const char *key, int64_t lo, int64_t hi,
                     int64_t *out, struct wb_err *err)
{
    json_t *v = NULL;
    int rc = need(obj, where, key, &v, err);

    if (rc < 0)
        return rc;
    if (!json_is_integer(v))
        return wrong_type(where, key, "an integer", v, err);
    if (json_integer_value(v) < lo || json_integer_value(v) > hi)
        return wb_fail(err, WB_INVALID, "%s: '%s' is %lld, allowed is %lld to %lld", where, key,
                       (long long)json_integer_value(v), (long long)lo, (long long)hi);
    *out = json_integer_value(v);
    return 0;
}

int wb_json_need_real(const wb_json *obj, const char *where, const char *key, double *out,
                      struct wb_err *err)
{
    json_t *v = NULL;
    int rc = need(obj, where, key, &v, err);

    if (rc < 0)
        return rc;
    if (!json_is_number(v))
        return wrong_type(where, key, "a number", v, err);
    *out = json_number_value(v);
    return 0;
}

int wb_json_need_obj(const wb_json *obj, const char *where, const char *key, wb_json **out,
                     struct wb_err *err)
{
    json_t *v = NULL;
    int rc = need(obj, where, key, &v, err);

    if (rc < 0)
        return rc;
    if (!json_is_object(v))
        return wrong_type(where, key, "an object", v, err);
    *out = v;
    return 0;
}

int wb_json_need_arr(const wb_json *obj, const char *where, const char *key, wb_json **out,
                     struct wb_err *err)
{
    json_t *v = NULL;
    int rc = need(obj, where, key, &v, err);

    if (rc < 0)
        return rc;
    if (!json_is_array(v))
        return wrong_type(where, key, "a list", v, err);
    *out = v;
    return 0;
}
