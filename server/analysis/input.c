#include "server/analysis/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
#include "server/base/mem.h"

void wb_numbers_release(struct wb_numbers *v)
{
    free(v->v);
    *v = (struct wb_numbers){0};
}

double wb_usable(double v)
{
    return v == 0 || (fabs(v) >= WB_SIZE_LEAST && fabs(v) <= WB_SIZE_MOST) ? v : NAN;
}

size_t wb_numbers_drop(struct wb_numbers *v)
{
    size_t kept = 0, all = v->n;

    for (size_t i = 0; i < all; i++)
        if (!isnan(v->v[i]))
            v->v[kept++] = v->v[i];
    v->n = kept;
    return all - kept;
}

int wb_in_object(const wb_json *doc, const char *what, struct wb_err *err)
{
    if (wb_json_type(doc) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "the input must be an object with %s", what);
    return 0;
}

int wb_in_number(const wb_json *j, const char *pointer, double *out, struct wb_err *err)
{
    double v = wb_json_number(j, NAN);

    if (isnan(v))
        return wb_fail(err, WB_INVALID, "%s: must be a number or null", pointer);
    if (isnan(wb_usable(v)))
        return wb_fail(err, WB_INVALID, "%s: %g is out of range, allowed is 0 and %g to %g",
                       pointer, v, WB_SIZE_LEAST, WB_SIZE_MOST);
    *out = v;
    return 0;
}

int wb_in_values(const wb_json *doc, const char *at, const char *key, size_t max,
                 struct wb_numbers *out, struct wb_err *err)
{
    const wb_json *list = wb_json_get(doc, key);
    bool single = wb_json_is_number(list);
    size_t n = single ? 1 : wb_json_len(list);

    if (list == NULL)
        return wb_fail(err, WB_INVALID, "%s/%s: is missing", at, key);
    if (!single && wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "%s/%s: must be a list of numbers", at, key);
    if (n > max)
        return wb_fail(err, WB_INVALID, "%s/%s: has %zu values, at most %zu are taken", at, key, n,
                       max);
    out->v = wb_calloc(n, sizeof(double));
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        const wb_json *value = single ? list : wb_json_at(list, i);
        WB_AUTO_FREE char *pointer =
            single ? wb_strf("%s/%s", at, key) : wb_strf("%s/%s/%zu", at, key, i);
        out->v[i] = NAN;
        if (wb_json_type(value) != WB_JSON_NULL &&
            wb_in_number(value, pointer, &out->v[i], err) < 0)
            return -WB_INVALID;
    }
    return 0;
}

int wb_in_real(const wb_json *doc, const char *at, const char *key, double lo, double hi,
               double *out, struct wb_err *err)
{
    const wb_json *j = wb_json_get(doc, key);
    double v = wb_json_number(j, NAN);

    if (wb_json_type(j) == WB_JSON_NULL)
        return 0;
    if (!(v >= lo && v <= hi))
        return wb_fail(err, WB_INVALID, "%s/%s: must be a number from %g to %g", at, key, lo, hi);
    *out = v;
    return 0;
}

int wb_in_need_real(const wb_json *doc, const char *at, const char *key, double lo, double hi,
                    double *out, struct wb_err *err)
{
    if (wb_json_type(wb_json_get(doc, key)) == WB_JSON_NULL)
        return wb_fail(err, WB_INVALID, "%s/%s: is missing", at, key);
    return wb_in_real(doc, at, key, lo, hi, out, err);
}

int wb_in_objects(const wb_json *doc, const char *key, size_t max, const wb_json **out,
                  struct wb_err *err)
{
    const wb_json *list = wb_json_get(doc, key);
    size_t n = wb_json_len(list);

    if (list == NULL)
        return wb_fail(err, WB_INVALID, "/%s: is missing", key);
    if (wb_json_type(list) != WB_JSON_ARRAY || n == 0)
        return wb_fail(err, WB_INVALID, "/%s: must be a list of objects", key);
    if (n > max)
        return wb_fail(err, WB_INVALID, "/%s: has %zu entries, at most %zu are taken", key, n, max);
    for (size_t i = 0; i < n; i++)
        if (wb_json_type(wb_json_at(list, i)) != WB_JSON_OBJECT)
            return wb_fail(err, WB_INVALID, "/%s/%zu: must be an object", key, i);
    *out = list;
    return 0;
}

void wb_in_known(const wb_json *doc, const char *at, const char *const *known, wb_json *warnings)
{
    for (void *it = wb_json_first(doc); it != NULL; it = wb_json_next(doc, it)) {
        size_t k = 0;
        while (known[k] != NULL && strcmp(known[k], wb_json_iter_key(it)) != 0)
            k++;
        if (known[k] == NULL)
            wb_analysis_warn(warnings, "unknown-key", "ignoring %s/%s: no such key", at,
                             wb_json_iter_key(it));
    }
}

/* ---- CSV ---- */

static wb_json *one_row(const wb_json *columns, size_t line)
{
    wb_json *row = wb_json_object();

    for (void *it = wb_json_first(columns); it != NULL; it = wb_json_next(columns, it)) {
        const wb_json *value = wb_json_at(wb_json_iter_value(it), line);
        if (wb_json_type(value) != WB_JSON_NULL)
            wb_json_set(row, wb_json_iter_key(it), wb_json_ref(value));
    }
    return row;
}

wb_json *wb_in_rows(const wb_json *columns, const char *key)
{
    void *first = wb_json_first(columns);
    size_t lines = first != NULL ? wb_json_len(wb_json_iter_value(first)) : 0;
    wb_json *doc = wb_json_object(), *rows = wb_json_array();

    for (size_t i = 0; i < lines; i++)
        wb_json_push(rows, one_row(columns, i));
    wb_json_set(doc, key, rows);
    return doc;
}

wb_json *wb_in_first_row(const wb_json *columns)
{
    return one_row(columns, 0);
}

/* ---- answers ---- */

wb_json *wb_answer_new(size_t n, const char *method)
{
    wb_json *answer = wb_json_object();

    wb_json_set_int(answer, "n", (int64_t)n);
    wb_json_set_str(answer, "method", method);
    return answer;
}

void wb_answer_end(wb_json *answer, const char *sentence, wb_json *warnings)
{
    if (sentence != NULL)
        wb_json_set_str(answer, "sentence", sentence);
    wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
    wb_json_set(answer, "warnings", warnings);
}
