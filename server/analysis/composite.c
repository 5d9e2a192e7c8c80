/* `stats composite`: several metrics in one number, the geometric mean of how much better each
 * became. The only mean whose order does not hang on the reference (Fleming and Wallace). */
#include <math.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/interval.h"
#include "server/analysis/moments.h"
#include "server/analysis/rank.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define METRICS_MAX 10000

/* The median of doc[key], a number or a list of runs; NaN when there is no value. */
static int read_median(const wb_json *doc, const char *at, const char *key, double *out,
                       struct wb_err *err)
{
    struct wb_numbers v = {0};
    int rc = 0;

    *out = NAN;
    if (wb_json_type(wb_json_get(doc, key)) == WB_JSON_NULL)
        return 0;
    rc = wb_in_values(doc, at, key, WB_VALUES_MAX, &v, err);
    if (rc == 0) {
        wb_numbers_drop(&v);
        wb_sort_values(v.v, v.n);
        *out = v.n > 0 ? wb_median(v.v, v.n) : NAN;
    }
    wb_numbers_release(&v);
    return rc;
}

/* Why a metric has no ratio; NULL when it has one. */
static const char *no_ratio(double base, double other, const char *better)
{
    if (isnan(base) || isnan(other))
        return isnan(base) ? "base has no value" : "new has no value";
    if (better == NULL)
        return "'better' is not given";
    if (base <= 0 || other <= 0)
        return base <= 0 ? "base is at or below 0" : "new is at or below 0";
    return NULL;
}

static int one_metric(const wb_json *doc, size_t i, wb_json *metrics, wb_json *left_out,
                      double *log_ratio, struct wb_err *err)
{
    const char *better = wb_json_string(wb_json_get(doc, "better")), *why;
    WB_AUTO_FREE char *at = wb_strf("/metrics/%zu", i);
    const char *name = wb_json_str_or(doc, "name", at);
    double base, other;
    wb_json *row;

    if (wb_json_type(wb_json_get(doc, "better")) != WB_JSON_NULL &&
        (better == NULL || (strcmp(better, "higher") != 0 && strcmp(better, "lower") != 0)))
        return wb_fail(err, WB_INVALID, "%s/better: must be 'higher' or 'lower'", at);
    if (read_median(doc, at, "base", &base, err) < 0 ||
        read_median(doc, at, "new", &other, err) < 0)
        return -WB_INVALID;
    why = no_ratio(base, other, better);
    row = wb_json_object();
    wb_json_set_str(row, "name", name);
    *log_ratio = NAN;
    if (why != NULL) {
        wb_json_set_str(row, "reason", why);
        wb_json_push(left_out, row);
        return 0;
    }
    *log_ratio = log(strcmp(better, "higher") == 0 ? other / base : base / other);
    wb_json_set_real(row, "ratio", exp(*log_ratio));
    wb_json_push(metrics, row);
    return 0;
}

static wb_json *answer_of(double *logs, size_t n, wb_json *metrics, wb_json *left_out,
                          wb_json *warnings)
{
    wb_json *answer = wb_answer_new(n, "geometric-mean");
    WB_AUTO_FREE char *sentence = NULL;
    double mean;

    wb_sort_values(logs, n); /* the order of the metrics must not show */
    if (n > 0) {
        mean = exp(wb_mean(logs, n));
        wb_json_set_real(answer, "geomean_ratio", mean);
        wb_json_set_real(answer, "lowest_ratio", exp(logs[0]));
        wb_json_set_real(answer, "highest_ratio", exp(logs[n - 1]));
        sentence =
            wb_strf("%.4g times as good over %zu metric%s, the single ones from %.4g to %.4g", mean,
                    n, n == 1 ? "" : "s", exp(logs[0]), exp(logs[n - 1]));
    } else {
        wb_json_set_reason(answer, "geomean_ratio", "no metric has a ratio");
        wb_json_set_reason(answer, "lowest_ratio", "no metric has a ratio");
        wb_json_set_reason(answer, "highest_ratio", "no metric has a ratio");
        sentence = wb_strdup("no metric has a ratio");
    }
    if (wb_json_len(left_out) > 0)
        wb_analysis_warn(warnings, "left-out",
                         "%zu of %zu metrics are not in the mean: it is not comparable with one "
                         "over all of them",
                         wb_json_len(left_out), wb_json_len(left_out) + n);
    if (n > 0 && logs[0] < 0 && logs[n - 1] > 0)
        wb_analysis_warn(warnings, "mixed",
                         "some metrics became better and some worse: the mean hides that");
    wb_json_set(answer, "metrics", metrics);
    wb_json_set(answer, "left_out", left_out);
    wb_answer_end(answer, sentence, warnings);
    return answer;
}

int wb_stats_composite(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {"metrics", NULL};
    static const char *const known_metric[] = {"name", "base", "new", "better", "unit", NULL};
    WB_AUTO_JSON wb_json *metrics = wb_json_array(), *left_out = wb_json_array();
    WB_AUTO_JSON wb_json *warnings = wb_json_array();
    WB_AUTO_FREE double *logs = NULL;
    const wb_json *list;
    size_t n = 0;

    if (wb_in_object(in, "metrics, a list of {name, base, new, better}", err) < 0 ||
        wb_in_objects(in, "metrics", METRICS_MAX, &list, err) < 0)
        return -WB_INVALID;
    wb_in_known(in, "", known, warnings);
    logs = wb_calloc(wb_json_len(list), sizeof(double));
    for (size_t i = 0; i < wb_json_len(list); i++) {
        WB_AUTO_FREE char *at = wb_strf("/metrics/%zu", i);
        if (one_metric(wb_json_at(list, i), i, metrics, left_out, &logs[n], err) < 0)
            return -WB_INVALID;
        wb_in_known(wb_json_at(list, i), at, known_metric, warnings);
        n += !isnan(logs[n]);
    }
    *out = answer_of(logs, n, WB_STEAL(metrics), WB_STEAL(left_out), WB_STEAL(warnings));
    return 0;
}

void wb_stats_composite_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *metrics = wb_json_get(answer, "metrics"),
                  *left = wb_json_get(answer, "left_out");
    struct wb_table *t = wb_table_new();

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_table_column(t, "metric", WB_LEFT);
    wb_table_column(t, "ratio", WB_RIGHT);
    wb_table_column(t, "left out because", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(metrics); i++) {
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(wb_json_at(metrics, i), "name", ""));
        wb_text_cell(t, wb_json_get(wb_json_at(metrics, i), "ratio"));
    }
    for (size_t i = 0; i < wb_json_len(left); i++) {
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(wb_json_at(left, i), "name", ""));
        wb_table_cell(t, "-");
        wb_table_cell(t, "%s", wb_json_str_or(wb_json_at(left, i), "reason", ""));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
