#include "server/analysis/campaign_scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/scaling.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/units.h"

#define INSTANCES "instances"
#define CURVES_MAX 64

struct curve {
    char *name;
    wb_json *arms, *limited;
    double *n, *x;
    size_t rows, cap_n, cap_x;
    struct wb_scaling fit;
};

struct work {
    struct wb_report rep;
    const char *over, *metric;
    struct curve curves[CURVES_MAX];
    size_t ncurves;
};

static const wb_json *arm_at(const wb_json *plan, size_t i)
{
    return wb_json_at(wb_json_get(plan, "arms"), i);
}

/* The number that an arm has for a factor: "32", "10k", "4KiB"; NaN when it has none. */
static double number_of(const wb_json *arm, const char *over)
{
    const char *text;
    int64_t whole;
    double v;

    if (strcmp(over, INSTANCES) == 0)
        return wb_json_real_or(arm, "count", NAN);
    text = wb_json_str_or(wb_json_get(arm, "factors"), over, NULL);
    if (text == NULL)
        return NAN;
    if (wb_parse_real(text, 0, 1e15, &v, NULL) == 0)
        return v;
    if (wb_parse_int(text, 0, INT64_MAX, &whole, NULL) == 0 ||
        wb_parse_bytes(text, 0, INT64_MAX, &whole, NULL) == 0)
        return (double)whole;
    return NAN;
}

/* Different numbers of a factor over all arms; 0 when one arm has none above 0. */
static size_t different(const wb_json *plan, const char *over)
{
    size_t n = wb_json_len(wb_json_get(plan, "arms")), count = 0;

    for (size_t i = 0; i < n; i++) {
        double v = number_of(arm_at(plan, i), over);
        bool seen = false;
        if (!(v > 0))
            return 0;
        for (size_t k = 0; k < i && !seen; k++)
            seen = number_of(arm_at(plan, k), over) == v;
        count += !seen;
    }
    return count;
}

/* The factor asked for, or the one with the most different numbers. */
static int find_axis(struct work *w, const char *asked, struct wb_err *err)
{
    const wb_json *plan = w->rep.plan, *factors = wb_json_get(arm_at(plan, 0), "factors");
    struct wb_buf names = WB_BUF_INIT(4096);
    size_t most = different(plan, INSTANCES);
    int rc = 0;

    w->over = INSTANCES;
    if (most >= 2)
        wb_buf_adds(&names, INSTANCES);
    for (void *it = wb_json_first(factors); it != NULL; it = wb_json_next(factors, it)) {
        size_t n = different(plan, wb_json_iter_key(it));
        if (n < 2)
            continue;
        wb_buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", wb_json_iter_key(it));
        if (n > most)
            w->over = wb_json_iter_key(it);
        most = n > most ? n : most;
    }
    if (asked != NULL && different(plan, asked) < 2)
        rc = wb_fail(err, WB_INVALID, "the arms do not differ in a number of '%s'; there is %s",
                     asked, names.len > 0 ? wb_buf_str(&names) : "nothing they do");
    else if (asked != NULL)
        w->over = asked;
    else if (most < 2)
        rc = wb_fail(err, WB_INVALID,
                     "the arms differ in no number: a curve needs arms with 2 or more numbers of "
                     "instances, or of a factor such as connections");
    wb_buf_release(&names);
    return rc;
}

/* The metric asked for, or the throughput that stands for the runs. */
static int find_metric(struct work *w, const char *asked, struct wb_err *err)
{
    const struct wb_counted *c = &w->rep.counted;
    struct wb_buf names = WB_BUF_INIT(4096);
    bool there = false;
    int rc = 0;

    w->metric = asked;
    for (size_t i = 0; i < c->nruns && w->metric == NULL; i++)
        w->metric = wb_json_string(wb_json_path(c->runs[i].summary, "headline.throughput"));
    for (size_t i = 0; i < c->nruns; i++) {
        const wb_json *metrics = wb_json_get(c->runs[i].summary, "metrics");
        there |= w->metric != NULL && wb_run_metric(&c->runs[i], w->metric) != NULL;
        for (void *it = wb_json_first(metrics); it != NULL && names.len == 0;
             it = wb_json_next(metrics, it))
            wb_buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", wb_json_iter_key(it));
    }
    if (w->metric == NULL)
        rc = wb_fail(err, WB_NOT_FOUND, "no run has a throughput; name a metric with --metric");
    else if (!there)
        rc = wb_fail(err, WB_INVALID, "no run has a metric '%s'; there are such as %s", w->metric,
                     names.len > 0 ? wb_buf_str(&names) : "none");
    wb_buf_release(&names);
    return rc;
}

/* What an arm is apart from its place on the axis. Caller frees. */
static char *curve_name(const struct work *w, const wb_json *arm)
{
    const wb_json *factors = wb_json_get(arm, "factors");
    struct wb_buf b = WB_BUF_INIT(4096);

    wb_buf_adds(&b, wb_json_str_or(arm, "form", "arm"));
    if (strcmp(w->over, INSTANCES) != 0)
        wb_buf_addf(&b, " x%lld", (long long)wb_json_int_or(arm, "count", 1));
    for (void *it = wb_json_first(factors); it != NULL; it = wb_json_next(factors, it)) {
        const char *name = wb_json_iter_key(it), *value = wb_json_string(wb_json_iter_value(it));
        if (strcmp(name, "form") != 0 && strcmp(name, w->over) != 0)
            wb_buf_addf(&b, ", %s %s", name, value ? value : "?");
    }
    return wb_buf_take(&b);
}

static struct curve *curve_of(struct work *w, const wb_json *arm)
{
    WB_AUTO_FREE char *name = curve_name(w, arm);
    struct curve *c;

    for (size_t i = 0; i < w->ncurves; i++)
        if (strcmp(w->curves[i].name, name) == 0)
            return &w->curves[i];
    if (w->ncurves == CURVES_MAX)
        return NULL;
    c = &w->curves[w->ncurves++];
    *c =
        (struct curve){.name = WB_STEAL(name), .arms = wb_json_array(), .limited = wb_json_array()};
    return c;
}

static int gather(struct work *w, struct wb_err *err)
{
    for (int a = 0; a < w->rep.counted.narms; a++) {
        const wb_json *arm = arm_at(w->rep.plan, (size_t)a);
        struct curve *c = curve_of(w, arm);
        double n = number_of(arm, w->over);
        if (c == NULL)
            return wb_fail(err, WB_LIMIT, "more than %d curves; name another factor with --over",
                           CURVES_MAX);
        wb_json_push(c->arms, wb_json_ref(wb_json_get(arm, "label")));
        wb_report_limits(&w->rep, a, w->metric, c->limited);
        for (size_t s = 0; s < w->rep.counted.nslots; s++) {
            const struct wb_counted_run *r = wb_report_run(&w->rep, s, a);
            double x = r != NULL ? wb_report_value(r, w->metric) : NAN;
            if (!(x >= 0) || isinf(x) || c->rows >= WB_SCALING_ROWS_MAX)
                continue;
            wb_grow(&c->n, &c->cap_n, c->rows + 1, sizeof(double));
            wb_grow(&c->x, &c->cap_x, c->rows + 1, sizeof(double));
            c->n[c->rows] = n;
            c->x[c->rows++] = x;
        }
    }
    return 0;
}

/* ---- answering ---- */

static wb_json *curve_json(struct curve *c)
{
    wb_json *o = wb_json_object(), *warnings = wb_json_array();
    WB_AUTO_FREE char *sentence = NULL;

    wb_scaling_of(c->n, c->x, c->rows, &c->fit);
    wb_json_set_str(o, "name", c->name);
    wb_json_set(o, "arms", wb_json_ref(c->arms));
    wb_json_set_int(o, "n", (int64_t)c->rows);
    wb_scaling_json(&c->fit, o, warnings);
    sentence = wb_scaling_sentence(&c->fit, wb_json_bool_or(o, "usable", false));
    wb_json_set_str(o, "sentence", sentence);
    if (wb_json_len(c->limited) > 0) {
        wb_json_set(o, "limited", wb_json_ref(c->limited));
        wb_analysis_warn(warnings, "limited",
                         "something other than the database limited runs of this curve: its peak "
                         "is not the database's");
    }
    wb_json_set(o, "warnings", warnings);
    return o;
}

static const struct wb_scaling_point *point_at(const struct wb_scaling *s, double n)
{
    for (size_t i = 0; i < s->npoints; i++)
        if (s->points[i].n == n)
            return &s->points[i];
    return NULL;
}

static void set_ratio(wb_json *o, const char *key, double a, double b, const char *reason)
{
    if (isnan(a) || isnan(b) || !(b > 0))
        wb_json_set_reason(o, key, reason);
    else
        wb_json_set_real(o, key, a / b);
}

/* Curves against the first one, where both were measured at the same place. */
static wb_json *comparisons(const struct work *w)
{
    const struct curve *base = &w->curves[0];
    wb_json *list = wb_json_array();

    for (size_t c = 1; c < w->ncurves; c++) {
        for (size_t i = 0; i < base->fit.npoints; i++) {
            const struct wb_scaling_point *p = &base->fit.points[i];
            const struct wb_scaling_point *q = point_at(&w->curves[c].fit, p->n);
            wb_json *o;
            if (q == NULL)
                continue;
            o = wb_json_object();
            wb_json_set_str(o, "curve", w->curves[c].name);
            wb_json_set_str(o, "against", base->name);
            wb_json_set_real(o, "at", p->n);
            set_ratio(o, "measured_ratio", q->measured, p->measured, "nothing was done there");
            set_ratio(o, "fitted_ratio", q->fitted, p->fitted, "a curve is missing");
            wb_json_push(list, o);
        }
    }
    return list;
}

static wb_json *left_out(const struct work *w)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < w->rep.counted.nruns; i++) {
        const struct wb_counted_run *r = &w->rep.counted.runs[i];
        wb_json *o;
        if (r->used)
            continue;
        o = wb_json_object();
        wb_json_set_str(o, "run", wb_json_str_or(r->summary, "id", ""));
        wb_json_set_str(o, "arm", wb_json_str_or(r->summary, "arm", ""));
        wb_json_set_str(o, "why", r->why);
        wb_json_push(list, o);
    }
    return list;
}

static wb_json *report_json(struct work *w)
{
    wb_json *warnings = wb_json_array(), *curves = wb_json_array(), *answer;
    const char *unit = NULL, *better = NULL;
    size_t n = 0;

    for (int a = 0; a < w->rep.counted.narms && unit == NULL; a++) {
        unit = wb_report_word(&w->rep, a, w->metric, "unit");
        better = wb_report_word(&w->rep, a, w->metric, "better");
    }
    for (size_t i = 0; i < w->ncurves; i++)
        n += w->curves[i].rows;
    answer = wb_answer_new(n, "usl-least-squares");
    wb_json_set_str(answer, "campaign", wb_json_str_or(w->rep.plan, "campaign", ""));
    wb_json_set_str(answer, "study", wb_json_str_or(w->rep.plan, "study", ""));
    wb_json_set_str(answer, "over", w->over);
    wb_json_set_str(answer, "metric", w->metric);
    wb_json_set_str(answer, "unit", unit ? unit : "");
    for (size_t i = 0; i < w->ncurves; i++)
        wb_json_push(curves, curve_json(&w->curves[i]));
    wb_json_set(answer, "curves", curves);
    wb_json_set(answer, "comparisons", comparisons(w));
    wb_json_set(answer, "left_out", left_out(w));
    if (better != NULL && strcmp(better, "higher") != 0)
        wb_analysis_warn(warnings, "no-throughput",
                         "the law describes throughput; of %s, lower is better", w->metric);
    wb_answer_end(answer, NULL, warnings);
    return answer;
}

int wb_campaign_scaling(const wb_json *plan, const wb_json *summaries,
                        const struct wb_scaling_question *q, wb_json **out, struct wb_err *err)
{
    struct work *w = wb_calloc(1, sizeof(*w));
    int rc = wb_count_runs(plan, summaries, &w->rep.counted, err);

    w->rep.plan = plan;
    if (rc == 0)
        rc = find_axis(w, q->over, err);
    if (rc == 0)
        rc = find_metric(w, q->metric, err);
    if (rc == 0)
        rc = gather(w, err);
    if (rc == 0)
        *out = report_json(w);
    for (size_t i = 0; i < w->ncurves; i++) {
        struct curve *c = &w->curves[i];
        free(c->name);
        wb_json_free(c->arms);
        wb_json_free(c->limited);
        free(c->n);
        free(c->x);
        wb_scaling_release(&c->fit);
    }
    wb_counted_release(&w->rep.counted);
    free(w);
    return rc;
}

/* ---- for people ---- */

static void print_comparisons(const wb_json *list, const char *over, int width, struct wb_buf *out)
{
    struct wb_table *t;

    if (wb_json_len(list) == 0)
        return;
    t = wb_table_new();
    wb_table_column(t, "curve", WB_LEFT);
    wb_table_column(t, over, WB_RIGHT);
    wb_table_column(t, "measured ratio", WB_RIGHT);
    wb_table_column(t, "curves' ratio", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *c = wb_json_at(list, i);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(c, "curve", ""));
        wb_text_cell(t, wb_json_get(c, "at"));
        wb_text_cell(t, wb_json_get(c, "measured_ratio"));
        wb_text_cell(t, wb_json_get(c, "fitted_ratio"));
    }
    wb_buf_addf(out, "\nAgainst %s\n\n", wb_json_str_or(wb_json_at(list, 0), "against", ""));
    wb_table_print(t, width, out);
    wb_table_free(t);
}

void wb_campaign_scaling_print(const wb_json *report, int width, struct wb_buf *out)
{
    const wb_json *curves = wb_json_get(report, "curves"), *left = wb_json_get(report, "left_out");
    const char *over = wb_json_str_or(report, "over", "");
    WB_AUTO_FREE char *title =
        wb_strf("%s: %s, %s over %s, %lld runs", wb_json_str_or(report, "study", ""),
                wb_json_str_or(report, "campaign", ""), wb_json_str_or(report, "metric", ""), over,
                (long long)wb_json_int_or(report, "n", 0));

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_text_wrapped(out, "", 0, title, width);
    for (size_t i = 0; i < wb_json_len(curves); i++) {
        wb_buf_addc(out, '\n');
        wb_text_wrapped(out, "== ", 3, wb_json_str_or(wb_json_at(curves, i), "name", ""), width);
        wb_buf_addc(out, '\n');
        wb_stats_scaling_print(wb_json_at(curves, i), width, out);
    }
    print_comparisons(wb_json_get(report, "comparisons"), over, width, out);
    wb_text_notes(out, wb_json_get(report, "warnings"), width);
    if (wb_json_len(left) > 0)
        wb_buf_addf(out, "\n%zu runs are not counted: see --json\n", wb_json_len(left));
}
