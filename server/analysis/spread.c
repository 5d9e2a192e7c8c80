/* `stats spread`: how far the values of one set lie apart, and which stand out. */
#include <math.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/interval.h"
#include "server/analysis/moments.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define VALUES_MAX 1000000
#define OUTLIERS_SHOWN 20
/* Makes the MAD, and the mean distance, of a normal distribution its standard deviation. */
#define MAD_SCALE 1.482602218505602
#define MEAN_SCALE 1.2533141373155003
#define OUTLIER_LIMIT 3.5 /* robust z beyond which a value stands out (Iglewicz and Hoaglin) */

struct spread {
    double median, mad, scale; /* scale: what robust z is measured in; 0: all are equal */
    bool mean_distance;        /* more than half of the values are equal: scale is not the MAD */
};

static struct spread measure(const double *sorted, size_t n)
{
    struct spread s = {.median = wb_median(sorted, n)};
    WB_AUTO_FREE double *away = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++)
        away[i] = fabs(sorted[i] - s.median);
    wb_sort_values(away, n);
    s.mad = wb_median(away, n);
    s.scale = MAD_SCALE * s.mad;
    if (s.mad == 0) {
        s.scale = MEAN_SCALE * wb_mean(away, n);
        s.mean_distance = s.scale > 0;
    }
    return s;
}

static void set_moments(const double *sorted, size_t n, const struct spread *s, wb_json *answer)
{
    double mean = wb_mean(sorted, n), stdev = sqrt(wb_variance(sorted, n));

    wb_json_set_real(answer, "median", s->median);
    wb_json_set_real(answer, "mean", mean);
    if (n < 2)
        wb_json_set_reason(answer, "stdev", "needs at least 2 values");
    else
        wb_json_set_real(answer, "stdev", stdev);
    if (n < 2 || mean == 0)
        wb_json_set_reason(answer, "cv_percent",
                           n < 2 ? "needs at least 2 values" : "the mean is 0");
    else
        wb_json_set_real(answer, "cv_percent", stdev / fabs(mean) * 100);
    wb_json_set_real(answer, "mad", s->mad);
    wb_json_set_real(answer, "mad_scaled", MAD_SCALE * s->mad);
    wb_json_set_real(answer, "min", sorted[0]);
    wb_json_set_real(answer, "max", sorted[n - 1]);
    if (s->median == 0)
        wb_json_set_reason(answer, "range_percent", "the median is 0");
    else
        wb_json_set_real(answer, "range_percent",
                         (sorted[n - 1] - sorted[0]) / fabs(s->median) * 100);
}

static void set_outliers(const struct wb_numbers *given, const struct spread *s, wb_json *answer)
{
    wb_json *z = wb_json_array(), *outliers = wb_json_array();

    for (size_t i = 0; i < given->n; i++) {
        double away = s->scale > 0 ? (given->v[i] - s->median) / s->scale : NAN;
        wb_json_push(z, wb_json_real(away));
        if (fabs(away) > OUTLIER_LIMIT)
            wb_json_push(outliers, wb_json_int((int64_t)i));
    }
    if (s->scale > 0) {
        wb_json_set(answer, "robust_z", z);
    } else {
        wb_json_set_reason(answer, "robust_z", "all values are equal");
        wb_json_free(z);
    }
    wb_json_set(answer, "outliers", outliers);
    wb_json_set_real(answer, "outlier_limit", OUTLIER_LIMIT);
}

static void set_interval(const double *sorted, size_t n, wb_json *answer)
{
    struct wb_interval interval = {.have = false};
    wb_json *v;

    if (n <= WB_VALUES_MAX)
        interval = wb_median_interval(sorted, n);
    if (!interval.have) {
        wb_json_set_reason(answer, "median_ci95",
                           n <= WB_VALUES_MAX ? "a 95 % interval needs at least 6 values"
                                              : "given for at most 1000 values");
        return;
    }
    v = wb_json_object();
    wb_json_set_real(v, "lo", interval.lo);
    wb_json_set_real(v, "hi", interval.hi);
    wb_json_set_real(v, "coverage", interval.coverage);
    wb_json_set(answer, "median_ci95", v);
}

static char *sentence_of(const wb_json *answer, size_t n, const struct spread *s)
{
    size_t out = wb_json_len(wb_json_get(answer, "outliers"));
    double range = wb_json_real_or(answer, "range_percent", NAN);

    if (s->scale == 0)
        return wb_strf("all %zu values are %.6g", n, s->median);
    if (isnan(range))
        return wb_strf("median %.6g, median distance from it %.4g, %zu of %zu values stand out",
                       s->median, s->mad, out, n);
    return wb_strf("median %.6g, largest and smallest value %.3g %% of it apart, %zu of %zu values "
                   "stand out",
                   s->median, range, out, n);
}

int wb_stats_spread(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {"values", NULL};
    static const char *const absent[] = {"median",        "mean",       "stdev",      "cv_percent",
                                         "mad",           "mad_scaled", "min",        "max",
                                         "range_percent", "robust_z",   "median_ci95"};
    struct wb_numbers given = {0}, sorted = {0};
    wb_json *answer, *warnings;
    WB_AUTO_FREE char *sentence = NULL;
    struct spread s = {0};
    size_t dropped;

    if (wb_in_object(in, "values, a list of numbers", err) < 0)
        return -WB_INVALID;
    if (wb_in_values(in, "", "values", VALUES_MAX, &given, err) < 0 ||
        wb_in_values(in, "", "values", VALUES_MAX, &sorted, err) < 0) {
        wb_numbers_release(&given);
        wb_numbers_release(&sorted);
        return -WB_INVALID;
    }
    warnings = wb_json_array();
    wb_in_known(in, "", known, warnings);
    dropped = wb_numbers_drop(&sorted);
    wb_sort_values(sorted.v, sorted.n);
    if (dropped > 0)
        wb_analysis_warn(warnings, "dropped", "%zu values were left out because of null", dropped);
    answer = wb_answer_new(sorted.n, "median-mad");
    if (sorted.n == 0) {
        for (size_t i = 0; i < WB_LEN(absent); i++)
            wb_json_set_reason(answer, absent[i], "no values");
        wb_json_set(answer, "outliers", wb_json_array());
        sentence = wb_strdup("no values");
    } else {
        s = measure(sorted.v, sorted.n);
        set_moments(sorted.v, sorted.n, &s, answer);
        set_outliers(&given, &s, answer);
        set_interval(sorted.v, sorted.n, answer);
        sentence = sentence_of(answer, sorted.n, &s);
    }
    if (s.mean_distance)
        wb_analysis_warn(warnings, "mad-zero",
                         "more than half of the values are equal: robust_z is measured in the mean "
                         "distance from the median");
    wb_answer_end(answer, sentence, warnings);
    wb_numbers_release(&given);
    wb_numbers_release(&sorted);
    *out = answer;
    return 0;
}

void wb_stats_spread_print(const wb_json *answer, int width, struct wb_buf *out)
{
    static const char *const rows[] = {"median",     "mean", "stdev", "cv_percent",   "mad",
                                       "mad_scaled", "min",  "max",   "range_percent"};
    const wb_json *interval = wb_json_get(answer, "median_ci95"),
                  *z = wb_json_get(answer, "robust_z");
    const wb_json *outliers = wb_json_get(answer, "outliers");
    struct wb_buf which = WB_BUF_INIT(4096);
    struct wb_table *t = wb_table_new();

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_table_column(t, "figure", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *ends = wb_json_array();
        if (i == 0 && wb_json_type(interval) == WB_JSON_OBJECT) {
            wb_json_push(ends, wb_json_ref(wb_json_get(interval, "lo")));
            wb_json_push(ends, wb_json_ref(wb_json_get(interval, "hi")));
        }
        wb_text_figure(t, rows[i], wb_json_get(answer, rows[i]), ends);
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    if (wb_json_type(z) == WB_JSON_ARRAY) {
        WB_AUTO_FREE double *v = wb_calloc(wb_json_len(z), sizeof(double));
        for (size_t i = 0; i < wb_json_len(z); i++)
            v[i] = wb_json_number(wb_json_at(z, i), NAN);
        wb_buf_addc(out, '\n');
        wb_text_spark(out, v, wb_json_len(z), width);
        wb_buf_addc(out, '\n');
    }
    wb_buf_addc(out, '\n');
    wb_text_sentence(out, answer, width);
    for (size_t i = 0; i < wb_json_len(outliers) && i < OUTLIERS_SHOWN; i++)
        wb_buf_addf(&which, "%s%lld", i == 0 ? "They are values (from 0): " : ", ",
                    (long long)wb_json_integer(wb_json_at(outliers, i)));
    if (wb_json_len(outliers) > 0) {
        wb_buf_adds(&which, wb_json_len(outliers) > OUTLIERS_SHOWN ? ", ..." : "");
        wb_text_wrapped(out, "", 2, wb_buf_str(&which), width);
    }
    wb_buf_release(&which);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
