/* May the fitted curve be used? Throughput that grows more than in proportion, or that the curve
 * misses by more than a tenth, is not what the law describes. */
#include <math.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/scaling.h"
#include "server/base/mem.h"

#define SUPER_LINEAR 1.03 /* throughput per concurrency, against that at the lowest */
#define MISS 0.1          /* relative residual */
#define MATERIAL 0.1    /* residual in parts of the greatest throughput that spoils the whole fit */
#define BINS 12         /* groups of neighbours, when there are more concurrencies than these */
#define PATTERN_LEAST 8 /* points for the test of residual signs */
#define PATTERN_P 0.01

/* Neighbouring points taken together: single noisy ones say nothing about the shape. */
struct bin {
    double from, to, miss; /* mean relative residual, fitted against measured */
    double part;           /* mean residual in parts of the greatest throughput */
    double each, error;    /* throughput per concurrency, and its standard error or NaN */
};

static size_t make_bins(const struct wb_scaling *s, struct bin *bins)
{
    size_t n = s->npoints <= BINS ? s->npoints : BINS;
    double greatest = 0;

    for (size_t i = 0; i < s->npoints; i++)
        greatest = fmax(greatest, s->points[i].measured);
    for (size_t b = 0; b < n; b++) {
        size_t first = b * s->npoints / n, end = (b + 1) * s->npoints / n;
        double measured = 0, fitted = 0, n_sum = 0;
        for (size_t i = first; i < end; i++) {
            measured += s->points[i].measured;
            fitted += s->points[i].fitted;
            n_sum += s->points[i].n;
        }
        bins[b].from = s->points[first].n;
        bins[b].to = s->points[end - 1].n;
        bins[b].miss = measured > 0 ? fitted / measured - 1 : INFINITY;
        bins[b].part = fabs(fitted - measured) / (double)(end - first) / greatest;
        bins[b].each = measured / n_sum;
        bins[b].error = end - first == 1 ? s->points[first].error / s->points[first].n : NAN;
    }
    return n;
}

static void add_region(wb_json *regions, double from, double to, const char *why)
{
    wb_json *r = wb_json_object();

    wb_json_set_real(r, "from", from);
    wb_json_set_real(r, "to", to);
    wb_json_set_str(r, "why", why);
    wb_json_push(regions, r);
}

/* "at 4", "from 4 to 8" */
static char *place_text(double from, double to)
{
    return from == to ? wb_strf("at %g", from) : wb_strf("from %g to %g", from, to);
}

static char *miss_text(double miss)
{
    if (isinf(miss))
        return wb_strdup("nothing was done there, which no curve of this kind allows");
    return wb_strf("the curve is up to %.0f %% too %s", fabs(miss) * 100,
                   miss > 0 ? "high" : "low");
}

/* Regions of neighbouring bins that the curve misses on the same side. True when one of them is
 * large enough to spoil the coefficients; where throughput is small it only spoils the curve
 * there. */
static bool check_misses(const struct bin *bins, size_t n, wb_json *regions, wb_json *warnings)
{
    bool spoilt = false;

    for (size_t i = 0, end; i < n; i = end) {
        double worst = bins[i].miss;
        bool material = bins[i].part > MATERIAL;
        WB_AUTO_FREE char *why = NULL;
        end = i + 1;
        if (fabs(worst) <= MISS)
            continue;
        for (; end < n && fabs(bins[end].miss) > MISS && bins[end].miss * worst > 0; end++) {
            material |= bins[end].part > MATERIAL;
            if (fabs(bins[end].miss) > fabs(worst))
                worst = bins[end].miss;
        }
        why = miss_text(worst);
        add_region(regions, bins[i].from, bins[end - 1].to, why);
        spoilt |= material;
        if (!material) {
            WB_AUTO_FREE char *where = place_text(bins[i].from, bins[end - 1].to);
            wb_analysis_warn(warnings, "local-miss", "do not use the curve %s: %s", where, why);
        }
    }
    return spoilt;
}

/* More throughput per concurrency than at the lowest, beyond its noise where that is known. */
static bool is_super_linear(const struct bin *first, const struct bin *b)
{
    double noise = isnan(first->error) || isnan(b->error) ? 0 : 2 * hypot(first->error, b->error);

    return b->each > first->each * SUPER_LINEAR && b->each - first->each > noise;
}

/* True when there is a super-linear stretch. */
static bool check_super_linear(const struct bin *bins, size_t n, wb_json *regions,
                               wb_json *warnings)
{
    double from = NAN, to = NAN, most = 0;
    WB_AUTO_FREE char *why = NULL;

    for (size_t i = 1; i < n; i++) {
        if (!is_super_linear(&bins[0], &bins[i]))
            continue;
        from = isnan(from) ? bins[i].from : from;
        to = bins[i].to;
        most = fmax(most, bins[i].each / bins[0].each);
    }
    if (isnan(from))
        return false;
    why = isinf(most) ? wb_strdup("super-linear: nothing was done at the lowest concurrency")
                      : wb_strf("super-linear: up to %.3g times as much per concurrency as at %g",
                                most, bins[0].from);
    add_region(regions, from, to, why);
    wb_analysis_warn(warnings, "super-linear",
                     "throughput grows more than in proportion from %g to %g: the law does not "
                     "describe that (caches, batching, or a limit at the start are common causes)",
                     from, to);
    return true;
}

/* log of the binomial coefficient */
static double log_choose(double n, double k)
{
    if (k < 0 || k > n)
        return -INFINITY;
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* P(at most `runs` runs of equal sign in a random order of a and b signs). */
static double few_runs(double a, double b, int runs)
{
    double all = log_choose(a + b, a), p = 0;

    for (int r = 2; r <= runs; r++) {
        double k = floor(r / 2.0);
        if (r % 2 == 0)
            p += 2 * exp(log_choose(a - 1, k - 1) + log_choose(b - 1, k - 1) - all);
        else
            p += exp(log_choose(a - 1, k) + log_choose(b - 1, k - 1) - all) +
                 exp(log_choose(a - 1, k - 1) + log_choose(b - 1, k) - all);
    }
    return p;
}

static void check_pattern(const struct wb_scaling *s, wb_json *warnings)
{
    double above = 0, below = 0;
    int runs = 0, last = 0;

    for (size_t i = 0; i < s->npoints; i++) {
        double away = s->points[i].measured - s->points[i].fitted;
        int sign = (away > 0) - (away < 0);
        if (fabs(away) <= 1e-9 * s->points[i].fitted)
            continue;
        above += sign > 0;
        below += sign < 0;
        runs += sign != last;
        last = sign;
    }
    if (above < 1 || below < 1 || above + below < PATTERN_LEAST)
        return;
    if (few_runs(above, below, runs) <= PATTERN_P)
        wb_analysis_warn(warnings, "residual-pattern",
                         "the measurements lie on the same side of the curve over long stretches: "
                         "its shape is not quite theirs");
}

static void check_data(const struct wb_scaling *s, wb_json *warnings)
{
    double peak = wb_usl_peak(&s->usl), hi = s->points[s->npoints - 1].n;
    const struct wb_usl_ends *sigma = &s->interval.sigma;

    if (s->npoints < WB_SCALING_POINTS_GOOD)
        wb_analysis_warn(warnings, "few-points",
                         "%zu different concurrencies: 6 or more make a curve one can rely on",
                         s->npoints);
    if (sigma->hi - sigma->lo > fmax(s->usl.sigma, 0.01))
        wb_analysis_warn(warnings, "wide-interval",
                         "sigma is only known to lie between %.3g and %.3g: measure more "
                         "concurrencies, or more runs at each",
                         sigma->lo, sigma->hi);
    if (peak > hi || (peak >= 1 && peak < s->points[0].n))
        wb_analysis_warn(warnings, "extrapolated",
                         "the peak at %.4g lies outside of the measured %g to %g", peak,
                         s->points[0].n, hi);
    if (strcmp(s->interval.method, "bootstrap-residuals") == 0)
        wb_analysis_warn(warnings, "residual-bootstrap",
                         "a concurrency with one run says nothing of its noise: intervals are made "
                         "from the residuals of the curve");
}

void wb_scaling_check(const struct wb_scaling *s, wb_json *answer, wb_json *warnings)
{
    wb_json *regions = wb_json_array();
    WB_AUTO_FREE char *why = NULL;
    struct bin bins[BINS] = {{.from = 0}};
    bool usable;
    size_t n;

    if (!s->fitted) {
        wb_json_set_bool(answer, "usable", false);
        wb_json_set_str(answer, "usable_reason", "there is no curve");
        wb_json_set(answer, "do_not_use", regions);
        return;
    }
    n = make_bins(s, bins);
    usable = !check_super_linear(bins, n, regions, warnings);
    usable &= !check_misses(bins, n, regions, warnings);
    check_pattern(s, warnings);
    check_data(s, warnings);
    wb_json_set_bool(answer, "usable", usable);
    if (!usable) {
        const wb_json *r = wb_json_at(regions, 0);
        WB_AUTO_FREE char *where =
            place_text(wb_json_real_or(r, "from", 0), wb_json_real_or(r, "to", 0));
        why = wb_strf("%s: %s", where, wb_json_str_or(r, "why", ""));
        wb_json_set_str(answer, "usable_reason", why);
    }
    wb_json_set(answer, "do_not_use", regions);
}
