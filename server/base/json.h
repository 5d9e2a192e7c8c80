/*
 * The one JSON layer (jansson behind it; no other file includes jansson.h).
 *
 * Values are reference counted by jansson. Here: a plain return of a getter is borrowed, `set`
 * and `push` steal their value, a constructor's result is owned by the caller until stolen.
 * NaN and infinities cannot get in: wb_json_real() turns them into null.
 */
#ifndef WB_BASE_JSON_H
#define WB_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"

struct json_t;
typedef struct json_t wb_json;

enum wb_json_type {
    WB_JSON_NULL,
    WB_JSON_BOOL,
    WB_JSON_INT,
    WB_JSON_REAL,
    WB_JSON_STRING,
    WB_JSON_ARRAY,
    WB_JSON_OBJECT
};

/* Most bytes, depth that a reader takes. Depth is jansson's own bound (2048) or less. */
#define WB_JSON_TEXT_MAX (64u << 20)

/* Parses exactly one document; duplicate keys, trailing text, invalid UTF-8 and NUL are refused.
 * The error names line and column. *out is owned by the caller. */
int wb_json_parse(const char *text, size_t n, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* The same from a file of at most max bytes; the error names the file. */
int wb_json_read_file(const char *path, size_t max, wb_json **out,
                      struct wb_err *err) WB_MUST_CHECK;

/* Canonical text: sorted keys, no white space, reals with the shortest digits that read back as
 * the same number; for hashing and storing. */
void wb_json_canonical(const wb_json *j, struct wb_buf *out);
/* For people and `--json`: two spaces of indent, keys in insertion order, newline at the end. */
void wb_json_pretty(const wb_json *j, struct wb_buf *out);
/* One line, keys in insertion order, no newline. */
void wb_json_line(const wb_json *j, struct wb_buf *out);

wb_json *wb_json_object(void);
wb_json *wb_json_array(void);
wb_json *wb_json_null(void);
wb_json *wb_json_bool(bool v);
wb_json *wb_json_int(int64_t v);
wb_json *wb_json_real(double v);     /* NaN, Inf: null */
wb_json *wb_json_str(const char *s); /* NULL: null; invalid UTF-8 bytes become U+FFFD */
wb_json *wb_json_strn(const char *s, size_t n);
wb_json *wb_json_ref(const wb_json *j);  /* another reference to the same value */
wb_json *wb_json_copy(const wb_json *j); /* deep copy */
void wb_json_free(wb_json *j);           /* drops one reference; NULL is fine */
void wb_auto_json(wb_json **j);
#define WB_AUTO_JSON __attribute__((cleanup(wb_auto_json)))

void wb_json_set(wb_json *obj, const char *key, wb_json *value); /* steals value */
void wb_json_set_str(wb_json *obj, const char *key, const char *s);
void wb_json_set_int(wb_json *obj, const char *key, int64_t v);
void wb_json_set_real(wb_json *obj, const char *key, double v);
void wb_json_set_bool(wb_json *obj, const char *key, bool v);
/* key: null and key_reason: reason, the form of a figure that cannot be given. */
void wb_json_set_reason(wb_json *obj, const char *key, const char *reason);
void wb_json_del(wb_json *obj, const char *key);
void wb_json_push(wb_json *arr, wb_json *value); /* steals value */

enum wb_json_type wb_json_type(const wb_json *j); /* NULL counts as null */
bool wb_json_is_number(const wb_json *j);
bool wb_json_equal(const wb_json *a, const wb_json *b);
size_t wb_json_len(const wb_json *j);                      /* members of array or object, else 0 */
wb_json *wb_json_at(const wb_json *arr, size_t i);         /* borrowed, NULL when outside */
wb_json *wb_json_get(const wb_json *obj, const char *key); /* borrowed, NULL when absent */
/* Walks a dotted path ("operations.all.service"); NULL when any part is absent. Keys may have dots
 * themselves ("metrics.max.throughput.value"): the longest key that is there wins. */
wb_json *wb_json_path(const wb_json *j, const char *dotted);

/* Object iteration in insertion order: for (it = wb_json_first(o); it; it = wb_json_next(o, it)).
 */
void *wb_json_first(const wb_json *obj);
void *wb_json_next(const wb_json *obj, void *it);
const char *wb_json_iter_key(void *it);
wb_json *wb_json_iter_value(void *it);

/* Lenient readers with a default for absent, null or another type. Strings are borrowed. */
const char *wb_json_str_or(const wb_json *obj, const char *key, const char *dflt);
int64_t wb_json_int_or(const wb_json *obj, const char *key, int64_t dflt);
double wb_json_real_or(const wb_json *obj, const char *key, double dflt); /* int counts too */
bool wb_json_bool_or(const wb_json *obj, const char *key, bool dflt);
const char *wb_json_string(const wb_json *j); /* text of a string value, else NULL */
double wb_json_number(const wb_json *j, double dflt);
int64_t wb_json_integer(const wb_json *j); /* value of an integer, else 0 */
bool wb_json_is_true(const wb_json *j);

/* Strict readers: absent or of another type is WB_INVALID naming `where` and the key. */
int wb_json_need_str(const wb_json *obj, const char *where, const char *key, const char **out,
                     struct wb_err *err) WB_MUST_CHECK;
int wb_json_need_int(const wb_json *obj, const char *where, const char *key, int64_t lo, int64_t hi,
                     int64_t *out, struct wb_err *err) WB_MUST_CHECK;
int wb_json_need_real(const wb_json *obj, const char *where, const char *key, double *out,
                      struct wb_err *err) WB_MUST_CHECK;
int wb_json_need_obj(const wb_json *obj, const char *where, const char *key, wb_json **out,
                     struct wb_err *err) WB_MUST_CHECK;
int wb_json_need_arr(const wb_json *obj, const char *where, const char *key, wb_json **out,
                     struct wb_err *err) WB_MUST_CHECK;

#endif
