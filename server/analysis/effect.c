#include "server/analysis/effect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

/* Sizes of changes that differ by less than this share are one tie spoilt by rounding. */
#define TIE_TOLERANCE 1e-12

static double *sorted_copy(const double *v, size_t n)
{
    double *copy = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++)
        copy[i] = v[i];
    wb_sort_values(copy, n);
    return copy;
}

static void describe_side(const double *v, size_t n, double *median, struct wb_interval *interval)
{
    WB_AUTO_FREE double *sorted = NULL;

    *interval = (struct wb_interval){.have = false};
    if (n == 0)
        return;
    sorted = sorted_copy(v, n);
    *median = wb_median(sorted, n);
    *interval = wb_median_interval(sorted, n);
}

static bool all_positive(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] <= 0)
            return false;
    return true;
}

/* The change of a round for ranking. A ratio is turned so that it is >= 1: then 2/1 and 1/2 are
 * the same size without taking logarithms, whose rounding could hide the tie. */
static struct wb_change change_of(double base, double other, enum wb_scale scale)
{
    struct wb_change c = {.sign = (other > base) - (other < base)};
    double large = other > base ? other : base, small = other > base ? base : other;

    c.size = scale == WB_RATIO ? large / small : large - small;
    if (large - small <= TIE_TOLERANCE * (fabs(large) + fabs(small)))
        c.sign = 0;
    return c;
}

static double on_scale(double v, enum wb_scale scale)
{
    return scale == WB_RATIO ? log(v) : v;
}

static double variance(const double *v, size_t n)
{
    double mean = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sum / (double)(n - 1) : 0;
}

static double noise_of(const struct wb_effect_input *in, enum wb_scale scale)
{
    WB_AUTO_FREE double *a = wb_calloc(in->nbase, sizeof(double));
    WB_AUTO_FREE double *b = wb_calloc(in->nother, sizeof(double));

    for (size_t i = 0; i < in->nbase; i++)
        a[i] = on_scale(in->base[i], scale);
    for (size_t i = 0; i < in->nother; i++)
        b[i] = on_scale(in->other[i], scale) - (in->paired ? a[i] : 0);
    return sqrt(variance(b, in->nother) + (in->paired ? 0 : variance(a, in->nbase)));
}

static double chance_of_more(const struct wb_effect_input *in)
{
    double score = 0;

    for (size_t i = 0; i < in->nbase; i++)
        for (size_t j = 0; j < in->nother; j++)
            score += in->other[j] > in->base[i] ? 1 : in->other[j] == in->base[i] ? 0.5 : 0;
    return score / ((double)in->nbase * (double)in->nother);
}

static void test_paired(const struct wb_effect_input *in, struct wb_effect *out)
{
    WB_AUTO_FREE struct wb_change *v = wb_calloc(in->nbase, sizeof(*v));

    for (size_t i = 0; i < in->nbase; i++)
        v[i] = change_of(in->base[i], in->other[i], out->scale);
    wb_signed_rank(v, in->nbase, TIE_TOLERANCE, &out->test);
    out->estimate = wb_hodges_lehmann_paired(in->base, in->other, in->nbase, out->scale,
                                             out->alpha / 2, &out->interval);
}

void wb_effect_of(const struct wb_effect_input *in, struct wb_effect *out)
{
    *out = (struct wb_effect){
        .n = {in->nbase, in->nother},
        .paired = in->paired,
        .better = in->better,
        .threshold_percent = in->threshold_percent,
        .least = in->least,
        .alpha = in->paired && in->alpha > 0 ? in->alpha : WB_ALPHA,
        .have_change = in->nbase > 0 && in->nother > 0,
    };
    describe_side(in->base, in->nbase, &out->median[0], &out->median_interval[0]);
    describe_side(in->other, in->nother, &out->median[1], &out->median_interval[1]);
    if (out->have_change) {
        bool ratio = all_positive(in->base, in->nbase) && all_positive(in->other, in->nother);
        double a = out->median[0], b = out->median[1];
        out->scale = ratio ? WB_RATIO : WB_DIFFERENCE;
        out->have_delta = a != 0 || b == 0;
        out->delta_percent = a == b ? 0 : (b - a) / a * 100;
        out->a12 = chance_of_more(in);
        out->noise = noise_of(in, out->scale);
        if (in->paired) {
            test_paired(in, out);
        } else {
            wb_mann_whitney(in->base, in->nbase, in->other, in->nother, &out->test);
            out->estimate = wb_hodges_lehmann(in->base, in->nbase, in->other, in->nother,
                                              out->scale, &out->interval);
        }
    } else {
        out->test.method = in->paired ? "signed-rank-exact" : "mann-whitney-exact";
    }
    out->decisive = out->have_change && out->test.defined && out->test.p <= WB_ALPHA;
    out->q = NAN;
    wb_effect_judge(out, NAN);
}
