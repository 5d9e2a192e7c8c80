/* The verdict of a comparison: from its interval and the practical threshold. */
#include "server/analysis/effect.h"

#include <math.h>

#include "server/analysis/moments.h"
#include "server/base/units.h"

#define ROUNDS_MAX 1000
#define Z_POWER 0.8416212335729143 /* normal quantile of 0.8 */

/* What counts as no change, and how far from it the threshold is, in units of the estimate. */
struct band {
    double lo, hi;
};

static struct band threshold_band(const struct wb_effect *e)
{
    double t = e->threshold_percent / 100;

    if (e->scale == WB_RATIO)
        return (struct band){.lo = 1 - t, .hi = 1 + t};
    t *= fabs(e->median[0]);
    return (struct band){.lo = -t, .hi = t};
}

/* Quantile of Student's t from that of the normal distribution, by the expansion of Cornish and
 * Fisher; within 1 % from 3 degrees of freedom on, which is enough for a forecast. */
static double t_quantile(double z, double df)
{
    double z3 = z * z * z, z5 = z3 * z * z;

    return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df);
}

static double on_log(double v, enum wb_scale scale)
{
    if (scale != WB_RATIO)
        return v;
    return v > 0 ? log(v) : -HUGE_VAL; /* a threshold of 100 % has no lower border */
}

/* Rounds after which, with the noise seen, the interval would leave the nearer border of the
 * threshold on one side with a chance of 0.8. */
static void forecast(struct wb_effect *e)
{
    struct band band = threshold_band(e);
    double at = on_log(e->estimate, e->scale);
    double above = on_log(band.hi, e->scale), below = on_log(band.lo, e->scale);
    double distance = fmin(fabs(at - above), fabs(at - below));
    double z = wb_normal_quantile(1 - e->alpha / 2);
    size_t now = e->n[0] < e->n[1] ? e->n[0] : e->n[1];

    if (distance < above / 4) {
        e->rounds_reason = "the change is so close to the threshold that more rounds will hardly "
                           "settle it";
        return;
    }
    for (size_t n = now + 1; n <= ROUNDS_MAX; n++) {
        double df = e->paired ? (double)n - 1 : 2 * ((double)n - 1);
        if (n >= e->least &&
            (t_quantile(z, df) + Z_POWER) * e->noise / sqrt((double)n) <= distance) {
            e->rounds_needed = n;
            return;
        }
    }
    e->rounds_reason = "more than 1000 rounds at this noise";
}

/* Fewest rounds for a verdict: an interval of n rounds misses at least as often as 2^(1-n). */
size_t wb_effect_needed(const struct wb_effect *e)
{
    size_t n = e->least;

    while (e->paired && n < ROUNDS_MAX && ldexp(1, 1 - (int)n) > e->alpha)
        n++;
    return n;
}

static enum wb_verdict direction(const struct wb_effect *e, bool more)
{
    if (e->better == WB_BETTER_UNKNOWN)
        return WB_V_DIFFERENT;
    return more == (e->better == WB_BETTER_HIGHER) ? WB_V_BETTER : WB_V_WORSE;
}

void wb_effect_judge(struct wb_effect *e, double q)
{
    struct band band = threshold_band(e);

    e->rounds_needed = 0;
    e->rounds_reason = "the verdict is settled";
    if (!isnan(q)) {
        e->q = q;
        e->decisive = q <= WB_ALPHA;
    }
    if (e->n[0] < e->least || e->n[1] < e->least || !e->interval.have) {
        e->verdict = WB_V_INSUFFICIENT;
        e->rounds_needed = wb_effect_needed(e);
    } else if (e->interval.lo > band.hi && e->decisive) {
        e->verdict = direction(e, true);
    } else if (e->interval.hi < band.lo && e->decisive) {
        e->verdict = direction(e, false);
    } else if (e->interval.lo >= band.lo && e->interval.hi <= band.hi) {
        e->verdict = e->decisive ? WB_V_NEGLIGIBLE : WB_V_EQUIVALENT;
    } else {
        e->verdict = WB_V_INCONCLUSIVE;
        forecast(e);
    }
}

const char *wb_verdict_word(enum wb_verdict v)
{
    static const char *const words[] = {
        [WB_V_INSUFFICIENT] = "insufficient",
        [WB_V_INCONCLUSIVE] = "inconclusive",
        [WB_V_NEGLIGIBLE] = "negligible",
        [WB_V_EQUIVALENT] = "equivalent",
        [WB_V_BETTER] = "better",
        [WB_V_WORSE] = "worse",
        [WB_V_DIFFERENT] = NULL,
    };
    return words[v];
}

/* ---- for people ---- */

/* Digits after the point so that small changes still show. */
static int places(double percent)
{
    double a = fabs(percent);

    return a >= 99.95 ? 0 : a >= 0.95 || a == 0 ? 1 : 2;
}

void wb_effect_change(const struct wb_effect *e, double at, struct wb_buf *out)
{
    double percent = (at - 1) * 100;

    if (e->scale == WB_RATIO)
        wb_buf_addf(out, "%+.*f %%", places(percent), percent);
    else
        wb_buf_addf(out, "%+.4g", at);
}

/* "7.8 % lower" */
static void add_directed(const struct wb_effect *e, double at, struct wb_buf *out)
{
    bool ratio = e->scale == WB_RATIO;
    double change = ratio ? (at - 1) * 100 : at;

    if (change == 0)
        wb_buf_adds(out, "no change");
    else if (ratio)
        wb_buf_addf(out, "%.*f %% %s", places(change), fabs(change),
                    change > 0 ? "higher" : "lower");
    else
        wb_buf_addf(out, "%.4g %s", fabs(change), change > 0 ? "higher" : "lower");
}

/* "6.1 % to 9.6 % lower", "1.2 % lower to 0.3 % higher" */
static void add_range(const struct wb_effect *e, struct wb_buf *out)
{
    double zero = e->scale == WB_RATIO ? 1 : 0, lo = e->interval.lo, hi = e->interval.hi;
    const char *unit = e->scale == WB_RATIO ? " %" : "";
    double near = lo > zero ? lo : hi, far = lo > zero ? hi : lo;
    double shown = e->scale == WB_RATIO ? fabs(near - 1) * 100 : fabs(near);

    if (lo > zero || hi < zero) {
        if (e->scale == WB_RATIO)
            wb_buf_addf(out, "%.*f%s to ", places(shown), shown, unit);
        else
            wb_buf_addf(out, "%.4g to ", shown);
        add_directed(e, far, out);
    } else if (lo == hi) {
        add_directed(e, lo, out);
    } else {
        add_directed(e, lo, out);
        wb_buf_adds(out, " to ");
        add_directed(e, hi, out);
    }
}

void wb_effect_sentence(const struct wb_effect *e, struct wb_buf *out)
{
    size_t few = e->n[0] < e->n[1] ? e->n[0] : e->n[1];
    const char *unit = e->paired ? "complete rounds" : "values a side";

    switch (e->verdict) {
    case WB_V_INSUFFICIENT:
        wb_buf_addf(out, "no verdict: %zu %s, at least %zu are needed", few, unit,
                    wb_effect_needed(e));
        return;
    case WB_V_BETTER:
    case WB_V_WORSE:
    case WB_V_DIFFERENT:
        add_directed(e, e->estimate, out);
        wb_buf_addf(out, " (%.4g %% interval ", (1 - e->alpha) * 100);
        add_range(e, out);
        wb_buf_addc(out, ')');
        return;
    case WB_V_EQUIVALENT:
        wb_buf_addf(out, "no difference beyond %g %% (%.4g %% interval ", e->threshold_percent,
                    (1 - e->alpha) * 100);
        add_range(e, out);
        wb_buf_addc(out, ')');
        return;
    case WB_V_NEGLIGIBLE:
        add_directed(e, e->estimate, out);
        wb_buf_addf(out, ", real but below the %g %% that matter", e->threshold_percent);
        return;
    case WB_V_INCONCLUSIVE:
        wb_buf_adds(out, "not decided: ");
        add_range(e, out);
        wb_buf_adds(out, " fits the data");
        if (e->rounds_needed > 0)
            wb_buf_addf(out, "; about %zu %s would settle it", e->rounds_needed, unit);
        return;
    }
}
