/* Reading the question of `stats histogram`, and counting values, records and encoded ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/histogram_parts.h"
#include "server/analysis/input.h"
#include "server/base/mem.h"

#define LIST_MAX 1000000
#define MISSING_MAX 50000000 /* values that correcting may add */
#define DIGITS 3

static const double default_percentiles[] = {0, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};

static int read_percentiles(struct wb_histogram *q, struct wb_err *err)
{
    const wb_json *list = wb_json_get(q->in, "percentiles");
    struct wb_numbers v = {0};

    if (wb_json_type(list) == WB_JSON_NULL) {
        memcpy(q->percentiles, default_percentiles, sizeof(default_percentiles));
        q->npercentiles = WB_LEN(default_percentiles);
        return 0;
    }
    if (wb_in_values(q->in, "", "percentiles", WB_HISTOGRAM_PERCENTILES, &v, err) < 0) {
        wb_numbers_release(&v);
        return -WB_INVALID;
    }
    for (size_t i = 0; i < v.n; i++) {
        if (!(v.v[i] >= 0 && v.v[i] <= 100)) {
            wb_numbers_release(&v);
            return wb_fail(err, WB_INVALID, "/percentiles/%zu: must be a number from 0 to 100", i);
        }
        q->percentiles[q->npercentiles++] = v.v[i];
    }
    wb_numbers_release(&v);
    return 0;
}

static int read_whole(const wb_json *j, const char *pointer, int64_t lo, int64_t hi, int64_t *out,
                      struct wb_err *err)
{
    double v = wb_json_number(j, NAN);
    bool whole = wb_json_type(j) == WB_JSON_INT || (v == floor(v) && fabs(v) < 9e15);
    int64_t n = wb_json_type(j) == WB_JSON_INT ? wb_json_integer(j) : whole ? (int64_t)v : 0;

    if (!whole || n < lo || n > hi)
        return wb_fail(err, WB_INVALID, "%s: must be a whole number from %lld to %lld", pointer,
                       (long long)lo, (long long)hi);
    *out = n;
    return 0;
}

static int read_whole_key(const wb_json *in, const char *key, int64_t lo, int64_t hi, int64_t *out,
                          struct wb_err *err)
{
    WB_AUTO_FREE char *pointer = wb_strf("/%s", key);
    const wb_json *j = wb_json_get(in, key);

    return wb_json_type(j) == WB_JSON_NULL ? 0 : read_whole(j, pointer, lo, hi, out, err);
}

static int read_options(struct wb_histogram *q, struct wb_err *err)
{
    int64_t digits = -1;

    q->to_s = HUGE_VAL;
    q->from_s = -HUGE_VAL;
    if (read_percentiles(q, err) < 0 ||
        read_whole_key(q->in, "lowest", 1, INT64_MAX / 2, &q->lowest, err) < 0 ||
        read_whole_key(q->in, "highest", 2, INT64_MAX, &q->highest, err) < 0 ||
        read_whole_key(q->in, "digits", 0, 5, &digits, err) < 0 ||
        wb_in_real(q->in, "", "from_s", 0, 1e12, &q->from_s, err) < 0 ||
        wb_in_real(q->in, "", "to_s", 0, 1e12, &q->to_s, err) < 0)
        return -WB_INVALID;
    q->digits = (int)digits;
    q->tag = wb_json_str_or(q->in, "tag", NULL);
    return 0;
}

/* A histogram for values up to `most`, with the parameters that were asked for. */
static int make_histogram(const struct wb_histogram *q, int64_t most, struct wb_hist *out,
                          struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    int64_t lowest = q->lowest > 0 ? q->lowest : 1;
    int64_t highest = q->highest > 0 ? q->highest : most;

    if (q->highest == 0 && highest / 2 < lowest)
        highest = 2 * lowest;
    if (wb_hist_init(out, lowest, highest, q->digits >= 0 ? q->digits : DIGITS, &why) < 0)
        return wb_fail(err, WB_INVALID, "/highest: %.700s", why.root);
    return 0;
}

/* ---- values and records ---- */

/* What a measuring thread missed while it waited for one value: one more every interval. */
static int add_missing(struct wb_hist *h, int64_t value, int64_t count, int64_t interval,
                       int64_t *budget, struct wb_err *err)
{
    if (value <= interval)
        return 0;
    *budget -= value / interval;
    if (*budget < 0)
        return wb_fail(err, WB_INVALID,
                       "/expected_interval: %lld is so small that more than %d values would be "
                       "added",
                       (long long)interval, MISSING_MAX);
    for (int64_t missing = value - interval; missing >= interval; missing -= interval)
        wb_hist_record_n(h, missing, (uint64_t)count);
    return 0;
}

struct record {
    int64_t value, count;
};

static int read_record(const wb_json *list, bool pairs, size_t i, struct record *out,
                       struct wb_err *err)
{
    const wb_json *e = wb_json_at(list, i), *value = pairs ? wb_json_at(e, 0) : e;
    WB_AUTO_FREE char *pointer = pairs ? wb_strf("/records/%zu/0", i) : wb_strf("/values/%zu", i);
    WB_AUTO_FREE char *of_count = wb_strf("/records/%zu/1", i);

    if (pairs && wb_json_len(e) != 2)
        return wb_fail(err, WB_INVALID, "/records/%zu: must be [value, count]", i);
    out->count = 1;
    if (read_whole(value, pointer, 0, INT64_MAX, &out->value, err) < 0)
        return -WB_INVALID;
    return pairs ? read_whole(wb_json_at(e, 1), of_count, 0, INT64_MAX / LIST_MAX, &out->count, err)
                 : 0;
}

static int count_records(struct wb_histogram *q, const struct record *v, size_t n,
                         struct wb_err *err)
{
    int64_t interval = 0, budget = MISSING_MAX, most = 0;

    for (size_t i = 0; i < n; i++)
        most = v[i].value > most ? v[i].value : most;
    if (read_whole_key(q->in, "expected_interval", 1, INT64_MAX, &interval, err) < 0 ||
        make_histogram(q, most, &q->h, err) < 0)
        return -WB_INVALID;
    q->made = true;
    if (interval > 0 && make_histogram(q, most, &q->corrected, err) < 0)
        return -WB_INVALID;
    q->has_corrected = interval > 0;
    for (size_t i = 0; i < n; i++) {
        wb_hist_record_n(&q->h, v[i].value, (uint64_t)v[i].count);
        if (interval == 0)
            continue;
        wb_hist_record_n(&q->corrected, v[i].value, (uint64_t)v[i].count);
        if (add_missing(&q->corrected, v[i].value, v[i].count, interval, &budget, err) < 0)
            return -WB_INVALID;
    }
    return 0;
}

static int add_records(struct wb_histogram *q, const char *key, struct wb_err *err)
{
    const wb_json *list = wb_json_get(q->in, key);
    size_t n = wb_json_len(list);
    bool pairs = strcmp(key, "records") == 0;
    WB_AUTO_FREE struct record *v = NULL;

    if (wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/%s: must be a list", key);
    if (n > LIST_MAX)
        return wb_fail(err, WB_INVALID, "/%s: has %zu entries, at most %d are taken", key, n,
                       LIST_MAX);
    v = wb_calloc(n, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        if (read_record(list, pairs, i, &v[i], err) < 0)
            return -WB_INVALID;
    q->entries = 1;
    return count_records(q, v, n, err);
}

/* ---- encoded ones ---- */

static int add_one_base64(struct wb_hist_sum *sum, const wb_json *j, const char *pointer,
                          struct wb_hist_reader *r, struct wb_err *err)
{
    const char *text = wb_json_string(j);
    struct wb_err why = WB_ERR_INIT;
    char full[2 * WB_ERR_TEXT_MAX];

    if (text == NULL)
        return wb_fail(err, WB_INVALID, "%s: must be a text", pointer);
    if (wb_hist_read(r, text, strlen(text), &why) < 0 || wb_hist_sum_add(sum, r, &why) < 0)
        return wb_fail(err, WB_INVALID, "%s: %.700s", pointer,
                       wb_err_text(&why, full, sizeof(full)));
    return 0;
}

static int add_base64(struct wb_histogram *q, struct wb_err *err)
{
    const wb_json *list = wb_json_get(q->in, "base64");
    bool one = wb_json_type(list) == WB_JSON_STRING;
    struct wb_hist_sum sum = {.total = 0};
    struct wb_hist_reader r;
    struct wb_err why = WB_ERR_INIT;
    int rc = 0;

    if (!one && wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/base64: must be a text or a list of texts");
    if ((q->lowest > 0 || q->digits >= 0) && q->highest == 0)
        return wb_fail(err, WB_INVALID, "/highest: is missing: lowest and digits need it");
    if (q->highest > 0 && wb_hist_sum_fix(&sum, q->lowest > 0 ? q->lowest : 1, q->highest,
                                          q->digits >= 0 ? q->digits : DIGITS, &why) < 0)
        return wb_fail(err, WB_INVALID, "/highest: %.700s", why.root);
    q->entries = one ? 1 : wb_json_len(list);
    wb_hist_reader_init(&r);
    if (one)
        rc = add_one_base64(&sum, list, "/base64", &r, err);
    for (size_t i = 0; i < wb_json_len(list) && rc == 0; i++) {
        WB_AUTO_FREE char *pointer = wb_strf("/base64/%zu", i);
        rc = add_one_base64(&sum, wb_json_at(list, i), pointer, &r, err);
    }
    wb_hist_reader_release(&r);
    if (rc == 0) {
        wb_hist_sum_make(&sum, &q->h);
        q->made = true;
    }
    wb_hist_sum_release(&sum);
    return rc;
}

int wb_histogram_count(struct wb_histogram *q, struct wb_err *err)
{
    static const char *const keys[] = {"log", "logs", "base64", "records", "values"};
    const char *found = NULL;

    if (read_options(q, err) < 0)
        return -WB_INVALID;
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        if (wb_json_get(q->in, keys[i]) == NULL)
            continue;
        if (found != NULL)
            return wb_fail(err, WB_INVALID, "/%s: stands beside %s, give one of the two", keys[i],
                           found);
        found = keys[i];
    }
    if (found == NULL)
        return wb_fail(err, WB_INVALID, "the input must have log, base64, records or values");
    if (strcmp(found, "records") == 0 || strcmp(found, "values") == 0)
        return add_records(q, found, err);
    return strcmp(found, "base64") == 0 ? add_base64(q, err) : wb_histogram_logs(q, err);
}
