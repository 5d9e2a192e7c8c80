/* `stats scaling`: fit, peak, interval; or the curve of given coefficients. */
#include "server/analysis/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/moments.h"
#include "server/analysis/stats.h"
#include "server/base/mem.h"

#define AT_MAX 10000
#define KNEE 0.95 /* of the best throughput */

/* ---- from rows to a fit ---- */

struct pair {
    double n, x;
};

static int by_place(const void *a, const void *b)
{
    const struct pair *p = a, *q = b;

    if (p->n != q->n)
        return p->n < q->n ? -1 : 1;
    return (p->x > q->x) - (p->x < q->x);
}

static void make_points(struct wb_scaling *s)
{
    s->points = wb_calloc(s->rows.rows, sizeof(*s->points));
    for (size_t i = 0, end; i < s->rows.rows; i = end) {
        struct wb_scaling_point *p = &s->points[s->npoints++];
        for (end = i + 1; end < s->rows.rows && s->n[end] == s->n[i]; end++)
            ;
        p->n = s->n[i];
        p->rows = end - i;
        p->measured = wb_mean(&s->x[i], p->rows);
        p->error = sqrt(wb_variance(&s->x[i], p->rows) / (double)p->rows);
        p->fitted = NAN;
    }
}

void wb_scaling_of(const double *n, const double *x, size_t rows, struct wb_scaling *out)
{
    WB_AUTO_FREE struct pair *pairs = wb_calloc(rows, sizeof(*pairs));
    double greatest = 0;

    *out = (struct wb_scaling){.n = wb_calloc(rows, sizeof(double)),
                               .x = wb_calloc(rows, sizeof(double))};
    for (size_t i = 0; i < rows; i++)
        pairs[i] = (struct pair){n[i], x[i]};
    qsort(pairs, rows, sizeof(*pairs), by_place);
    for (size_t i = 0; i < rows; i++) {
        out->n[i] = pairs[i].n;
        out->x[i] = pairs[i].x;
        greatest = fmax(greatest, pairs[i].x);
    }
    out->rows = (struct wb_usl_rows){.n = out->n, .x = out->x, .rows = rows};
    make_points(out);
    out->fitted =
        rows >= WB_SCALING_ROWS_LEAST && out->npoints >= WB_SCALING_POINTS_LEAST && greatest > 0;
    if (!out->fitted)
        return;
    wb_usl_fit(&out->rows, &out->usl);
    wb_usl_fit_amdahl(&out->rows, &out->amdahl);
    wb_usl_bootstrap(&out->rows, &out->usl, &out->interval);
    for (size_t i = 0; i < out->npoints; i++)
        out->points[i].fitted = wb_usl_at(&out->usl, out->points[i].n);
}

void wb_scaling_release(struct wb_scaling *s)
{
    free(s->points);
    free(s->n);
    free(s->x);
    *s = (struct wb_scaling){0};
}

/* ---- JSON ---- */

static void set_no_peak(const struct wb_usl *u, wb_json *answer)
{
    const char *why = u->kappa > 0   ? "throughput falls from the start"
                      : u->sigma < 1 ? "kappa is 0: throughput never falls"
                                     : "throughput is the same at every concurrency";

    wb_json_set_reason(answer, "peak_concurrency", why);
    wb_json_set_reason(answer, "peak_throughput", why);
    if (u->kappa > 0) {
        wb_json_set_int(answer, "peak_concurrency_integer", 1);
        wb_json_set_real(answer, "peak_throughput_integer", wb_usl_at(u, 1));
    } else {
        wb_json_set_reason(answer, "peak_concurrency_integer", why);
        wb_json_set_reason(answer, "peak_throughput_integer", why);
    }
    wb_json_set_reason(answer, "peak_inside_measured_range", why);
}

static void set_knee(const struct wb_usl *u, double lo, double hi, double best, wb_json *answer)
{
    double peak = wb_usl_peak(u), top = isnan(peak) ? NAN : wb_usl_at(u, peak), knee;

    /* A peak beyond what was measured is a guess: then what was reached counts. */
    if (!isnan(best) && !(peak <= hi))
        top = best;
    knee = wb_usl_reach(u, KNEE * top);
    if (knee < lo)
        knee = lo;
    if (isnan(knee))
        wb_json_set_reason(answer, "knee_concurrency",
                           isnan(top) ? "there is no peak and nothing was measured"
                                      : "the curve does not reach 95 % of the best measured");
    else
        wb_json_set_real(answer, "knee_concurrency", knee);
}

void wb_scaling_peak_json(const struct wb_usl *u, double lo, double hi, double best,
                          wb_json *answer)
{
    double peak = wb_usl_peak(u), whole = wb_usl_peak_whole(u);

    if (isnan(peak)) {
        set_no_peak(u, answer);
    } else {
        wb_json_set_real(answer, "peak_concurrency", peak);
        wb_json_set_real(answer, "peak_throughput", wb_usl_at(u, peak));
        if (whole < 9e15)
            wb_json_set_int(answer, "peak_concurrency_integer", (int64_t)whole);
        else
            wb_json_set_real(answer, "peak_concurrency_integer", whole);
        wb_json_set_real(answer, "peak_throughput_integer", wb_usl_at(u, whole));
        if (isnan(lo))
            wb_json_set_reason(answer, "peak_inside_measured_range", "nothing was measured");
        else
            wb_json_set_bool(answer, "peak_inside_measured_range", peak >= lo && peak <= hi);
    }
    if (u->sigma > 0)
        wb_json_set_real(answer, "asymptote_throughput", u->lambda / u->sigma);
    else
        wb_json_set_reason(answer, "asymptote_throughput", "sigma is 0: there is no asymptote");
    set_knee(u, lo, hi, best, answer);
}

static void push_end(wb_json *list, double v)
{
    wb_json_push(list, isinf(v) ? wb_json_null() : wb_json_real(v));
}

static void set_ends(wb_json *obj, const char *key, const struct wb_usl_ends *e)
{
    wb_json *list = wb_json_array();

    push_end(list, e->lo);
    push_end(list, e->hi);
    wb_json_set(obj, key, list);
}

static wb_json *interval_json(const struct wb_usl_interval *i)
{
    wb_json *o = wb_json_object();

    set_ends(o, "sigma", &i->sigma);
    set_ends(o, "kappa", &i->kappa);
    set_ends(o, "lambda", &i->lambda);
    set_ends(o, "peak_concurrency", &i->peak);
    if (isinf(i->peak.hi))
        wb_json_set_str(o, "peak_concurrency_reason",
                        "null: curves without a peak fit the data as well");
    wb_json_set_str(o, "method", i->method);
    wb_json_set_int(o, "draws", WB_USL_DRAWS);
    return o;
}

static wb_json *amdahl_json(const struct wb_usl *a)
{
    wb_json *o = wb_json_object();

    wb_json_set_real(o, "sigma", a->sigma);
    wb_json_set_real(o, "lambda", a->lambda);
    wb_json_set_real(o, "rss", a->rss);
    return o;
}

static wb_json *points_json(const struct wb_scaling *s)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < s->npoints; i++) {
        wb_json *p = wb_json_object();
        wb_json_set_real(p, "n", s->points[i].n);
        wb_json_set_real(p, "measured", s->points[i].measured);
        if (s->fitted)
            wb_json_set_real(p, "fitted", s->points[i].fitted);
        else
            wb_json_set_reason(p, "fitted", "too few rows");
        wb_json_set_int(p, "rows", (int64_t)s->points[i].rows);
        wb_json_push(list, p);
    }
    return list;
}

/* Whether kappa earns its place: F test of the two fits. On exact data, what rounding leaves of the
 * residuals decides nothing. */
static void set_kappa_needed(const struct wb_scaling *s, wb_json *answer)
{
    double df = (double)s->rows.rows - 3, squares = 0, nothing, p = 1;

    for (size_t i = 0; i < s->rows.rows; i++)
        squares += s->x[i] * s->x[i];
    nothing = 1e-24 * squares;
    if (s->usl.kappa > 0 && s->amdahl.rss > nothing && s->amdahl.rss > s->usl.rss)
        p = 2 * wb_student_above(
                    sqrt((s->amdahl.rss - s->usl.rss) / (fmax(s->usl.rss, nothing) / df)), df);
    wb_json_set_bool(answer, "kappa_needed", p <= WB_ALPHA);
    wb_json_set_real(answer, "kappa_p", p);
}

static void set_absent(const struct wb_scaling *s, wb_json *answer)
{
    static const char *const keys[] = {"sigma",
                                       "kappa",
                                       "lambda",
                                       "rss",
                                       "peak_concurrency",
                                       "peak_throughput",
                                       "peak_concurrency_integer",
                                       "peak_throughput_integer",
                                       "peak_inside_measured_range",
                                       "asymptote_throughput",
                                       "knee_concurrency",
                                       "amdahl",
                                       "kappa_needed",
                                       "kappa_p",
                                       "interval"};
    const char *why = s->rows.rows < WB_SCALING_ROWS_LEAST ? "needs at least 4 rows"
                      : s->npoints < WB_SCALING_POINTS_LEAST
                          ? "needs at least 3 different concurrencies"
                          : "all throughputs are 0";

    wb_json_set_str(answer, "status", "insufficient");
    for (size_t i = 0; i < WB_LEN(keys); i++)
        wb_json_set_reason(answer, keys[i], why);
}

void wb_scaling_json(const struct wb_scaling *s, wb_json *answer, wb_json *warnings)
{
    double best = NAN;

    if (!s->fitted) {
        set_absent(s, answer);
        wb_json_set(answer, "points", points_json(s));
        wb_scaling_check(s, answer, warnings);
        return;
    }
    for (size_t i = 0; i < s->npoints; i++)
        best = fmax(s->points[i].measured, best);
    wb_json_set_str(answer, "status", "ok");
    wb_json_set_real(answer, "sigma", s->usl.sigma);
    wb_json_set_real(answer, "kappa", s->usl.kappa);
    wb_json_set_real(answer, "lambda", s->usl.lambda);
    wb_json_set_real(answer, "rss", s->usl.rss);
    wb_scaling_peak_json(&s->usl, s->points[0].n, s->points[s->npoints - 1].n, best, answer);
    wb_json_set(answer, "amdahl", amdahl_json(&s->amdahl));
    set_kappa_needed(s, answer);
    wb_json_set(answer, "interval", interval_json(&s->interval));
    wb_json_set(answer, "points", points_json(s));
    wb_scaling_check(s, answer, warnings);
}

char *wb_scaling_sentence(const struct wb_scaling *s, bool usable)
{
    const struct wb_usl *u = &s->usl;
    double peak = wb_usl_peak(u), lo, hi;

    if (!s->fitted)
        return wb_strdup("too little was measured for a curve");
    lo = s->points[0].n;
    hi = s->points[s->npoints - 1].n;
    if (!usable)
        return wb_strdup("the curve does not describe what was measured: its coefficients and its "
                         "peak are not to be used");
    if (peak < 1 || (isnan(peak) && u->kappa > 0))
        return wb_strf("throughput falls from the start: %.6g at 1 is the best", wb_usl_at(u, 1));
    if (peak > hi || peak < lo)
        return wb_strf("throughput would peak at %.4g with %.6g, outside of the measured %g to %g: "
                       "measure there before relying on it",
                       peak, wb_usl_at(u, peak), lo, hi);
    if (!isnan(peak))
        return wb_strf("throughput peaks at a concurrency of %.4g with %.6g", peak,
                       wb_usl_at(u, peak));
    if (u->sigma >= 1)
        return wb_strf("throughput stays at %.6g: concurrency does not help", u->lambda);
    if (u->sigma > 0)
        return wb_strf("throughput has no peak and grows towards %.6g", u->lambda / u->sigma);
    return wb_strf("throughput grows in proportion, %.6g for each", u->lambda);
}

/* ---- the curve of given coefficients, or of a fit, at given places ---- */

static char *place_name(double n)
{
    struct wb_buf b = WB_BUF_INIT(100);
    WB_AUTO_JSON wb_json *j = wb_json_real(n);
    char *name;

    if (n == floor(n) && n < 1e15)
        return wb_strf("%.0f", n);
    wb_json_line(j, &b);
    name = wb_buf_take(&b);
    return name;
}

static void set_at(const struct wb_usl *u, const struct wb_numbers *at, wb_json *answer)
{
    wb_json *throughput = wb_json_object(), *latency = wb_json_object();
    wb_json *efficiency = wb_json_object(), *dominant = wb_json_object();

    for (size_t i = 0; i < at->n; i++) {
        double n = at->v[i], x = wb_usl_at(u, n);
        double contention = u->sigma * (n - 1), coherency = u->kappa * n * (n - 1);
        WB_AUTO_FREE char *name = place_name(n);
        wb_json_set_real(throughput, name, x);
        wb_json_set_real(latency, name, n / x);
        wb_json_set_real(efficiency, name, x / (u->lambda * n));
        wb_json_set_str(dominant, name,
                        !(contention > 0) && !(coherency > 0) ? "none"
                        : contention >= coherency             ? "contention"
                                                              : "coherency");
    }
    wb_json_set(answer, "throughput_at", throughput);
    wb_json_set(answer, "latency_at", latency);
    wb_json_set(answer, "efficiency_at", efficiency);
    wb_json_set(answer, "dominant_at", dominant);
}

static int read_at(const wb_json *in, bool needed, struct wb_numbers *at, struct wb_err *err)
{
    if (!needed && wb_json_get(in, "at") == NULL)
        return 0;
    if (wb_in_values(in, "", "at", AT_MAX, at, err) < 0)
        return -WB_INVALID;
    for (size_t i = 0; i < at->n; i++)
        if (!(at->v[i] > 0))
            return wb_fail(err, WB_INVALID, "/at/%zu: must be above 0", i);
    return 0;
}

static int answer_curve(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    struct wb_usl u = {.sigma = NAN, .kappa = NAN, .lambda = NAN};
    struct wb_numbers at = {0};
    wb_json *answer;
    int rc = 0;

    if (wb_in_need_real(in, "", "sigma", 0, 1, &u.sigma, err) < 0 ||
        wb_in_need_real(in, "", "kappa", 0, 1e12, &u.kappa, err) < 0 ||
        wb_in_need_real(in, "", "lambda", WB_SIZE_LEAST, WB_SIZE_MOST, &u.lambda, err) < 0)
        return -WB_INVALID;
    rc = read_at(in, false, &at, err);
    for (size_t i = 0; i < at.n && rc == 0; i++)
        if (!(wb_usl_at(&u, at.v[i]) > 0) || isinf(wb_usl_at(&u, at.v[i])))
            rc = wb_fail(err, WB_INVALID, "/at/%zu: the curve has no throughput there", i);
    if (rc == 0) {
        WB_AUTO_FREE char *sentence = NULL;
        double peak = wb_usl_peak(&u);
        answer = wb_answer_new(at.n, "usl");
        wb_json_set_real(answer, "sigma", u.sigma);
        wb_json_set_real(answer, "kappa", u.kappa);
        wb_json_set_real(answer, "lambda", u.lambda);
        wb_scaling_peak_json(&u, NAN, NAN, NAN, answer);
        set_at(&u, &at, answer);
        sentence = isnan(peak) ? wb_strdup("this curve has no peak")
                               : wb_strf("this curve peaks at a concurrency of %.4g with %.6g",
                                         peak, wb_usl_at(&u, peak));
        wb_answer_end(answer, sentence, warnings);
        *out = answer;
    }
    wb_numbers_release(&at);
    return rc;
}

/* ---- the topic ---- */

struct input {
    struct wb_numbers n, x, at;
    size_t dropped;
};

static int read_input(const wb_json *in, struct input *i, struct wb_err *err)
{
    size_t kept = 0;

    if (wb_in_values(in, "", "concurrency", WB_SCALING_ROWS_MAX, &i->n, err) < 0 ||
        wb_in_values(in, "", "throughput", WB_SCALING_ROWS_MAX, &i->x, err) < 0 ||
        read_at(in, false, &i->at, err) < 0)
        return -WB_INVALID;
    if (i->n.n != i->x.n)
        return wb_fail(err, WB_INVALID, "/throughput: has %zu values, concurrency has %zu", i->x.n,
                       i->n.n);
    for (size_t k = 0; k < i->n.n; k++) {
        if (i->n.v[k] <= 0)
            return wb_fail(err, WB_INVALID, "/concurrency/%zu: must be above 0", k);
        if (i->x.v[k] < 0)
            return wb_fail(err, WB_INVALID, "/throughput/%zu: must not be below 0", k);
        if (i->n.v[k] < 1e-9 || i->n.v[k] > 1e12)
            return wb_fail(err, WB_INVALID, "/concurrency/%zu: must be from 1e-9 to 1e12", k);
        if (isnan(i->n.v[k]) || isnan(i->x.v[k]))
            continue;
        i->n.v[kept] = i->n.v[k];
        i->x.v[kept++] = i->x.v[k];
    }
    i->dropped = i->n.n - kept;
    i->n.n = i->x.n = kept;
    return 0;
}

static wb_json *answer_fit(const struct input *i, wb_json *warnings)
{
    struct wb_scaling s;
    WB_AUTO_FREE char *sentence = NULL;
    wb_json *answer = wb_answer_new(i->n.n, "usl-least-squares");

    wb_scaling_of(i->n.v, i->x.v, i->n.n, &s);
    if (i->dropped > 0)
        wb_analysis_warn(warnings, "dropped", "%zu rows were left out because of null", i->dropped);
    wb_scaling_json(&s, answer, warnings);
    wb_json_set_int(answer, "dropped_rows", (int64_t)i->dropped);
    if (i->at.n > 0 && s.fitted)
        set_at(&s.usl, &i->at, answer);
    sentence = wb_scaling_sentence(&s, wb_json_bool_or(answer, "usable", false));
    wb_answer_end(answer, sentence, warnings);
    wb_scaling_release(&s);
    return answer;
}

int wb_stats_scaling(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {"concurrency", "throughput", "at",   "sigma",
                                        "kappa",       "lambda",     "name", NULL};
    bool curve = wb_json_get(in, "sigma") != NULL;
    struct input i = {0};
    wb_json *warnings;
    int rc;

    if (wb_in_object(in, "concurrency and throughput, or with sigma, kappa, lambda and at", err) <
        0)
        return -WB_INVALID;
    if (curve && wb_json_get(in, "throughput") != NULL)
        return wb_fail(err, WB_INVALID, "/sigma: stands beside throughput, give one of the two");
    warnings = wb_json_array();
    wb_in_known(in, "", known, warnings);
    if (curve) {
        rc = answer_curve(in, warnings, out, err);
    } else {
        rc = read_input(in, &i, err);
        if (rc == 0)
            *out = answer_fit(&i, warnings);
    }
    wb_numbers_release(&i.n);
    wb_numbers_release(&i.x);
    wb_numbers_release(&i.at);
    if (rc < 0)
        wb_json_free(warnings);
    return rc;
}
