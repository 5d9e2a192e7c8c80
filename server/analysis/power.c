/* `stats power`: how many rounds a comparison needs, and the smallest p it can give. */
#include <math.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/moments.h"
#include "server/analysis/rank.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define POWER_DEFAULT 0.8
#define ROUNDS_MAX 1000
#define DRAWN_MAX 40 /* values a side up to which power is drawn, and above calculated */
#define DRAWS 20000
#define DRAW_SEED 20150213u
#define STEPS 4000 /* of an integral over 16 standard deviations */

/* Two normal values from two uniform ones (Marsaglia). */
static void normal_pair(struct wb_rng *r, double *a, double *b)
{
    double u, v, s;

    do {
        u = 2 * wb_rng_unit(r) - 1;
        v = 2 * wb_rng_unit(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    s = sqrt(-2 * log(s) / s);
    *a = u * s;
    *b = v * s;
}

/* Share of draws of n values a side, `away` standard deviations apart, in which at most cut - 1 of
 * all pairs (or of their opposites) are in the wrong order: then the exact test rejects. */
static double drawn_power(size_t n, double away, size_t cut)
{
    double base[DRAWN_MAX], other[DRAWN_MAX];
    struct wb_rng r;
    size_t hits = 0;

    wb_rng_seed(&r, wb_mix64(DRAW_SEED, n));
    for (int draw = 0; draw < DRAWS; draw++) {
        size_t u = 0;
        for (size_t i = 0; i < n; i++) {
            normal_pair(&r, &base[i], &other[i]);
            other[i] += away;
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < n; k++)
                u += other[k] < base[i];
        hits += u + 1 <= cut || n * n - u + 1 <= cut;
    }
    return (double)hits / DRAWS;
}

/* P(a value of base lies below two values of other), by Simpson's rule. */
static double both_above(double away)
{
    double h = 16.0 / STEPS, sum = 0;

    for (int i = 0; i <= STEPS; i++) {
        double x = -8 + i * h, above = wb_normal_below(away - x);
        double weight = i == 0 || i == STEPS ? 1 : i % 2 == 1 ? 4 : 2;
        sum += weight * exp(-x * x / 2) * above * above;
    }
    return sum * h / 3 / sqrt(2 * acos(-1));
}

/* Normal approximation of U with its true mean and variance. */
static double calculated_power(size_t n, double away, size_t cut)
{
    double d = (double)n, one = wb_normal_below(away / sqrt(2)), two = both_above(away);
    double variance = d * d * (one * (1 - one) + 2 * (d - 1) * (two - one * one));
    double border = d * d - ((double)cut - 1) - 0.5;

    if (!(variance > 0))
        return 1;
    return wb_normal_below((d * d * one - border) / sqrt(variance));
}

/* Power of the exact test with n values a side. */
static double power_of(size_t n, double away, double alpha)
{
    size_t cut = wb_mann_whitney_cut_at(n, n, alpha / 2);

    if (cut == 0)
        return 0;
    if (isinf(away))
        return 1;
    return n <= DRAWN_MAX ? drawn_power(n, away, cut) : calculated_power(n, away, cut);
}

/* Least number of rounds with the wanted power; 0 when even ROUNDS_MAX are too few. */
static size_t rounds_for(double away, double alpha, double wanted)
{
    size_t lo = 1, hi = 2;

    while (hi < ROUNDS_MAX && power_of(hi, away, alpha) < wanted) {
        lo = hi;
        hi = hi * 2 < ROUNDS_MAX ? hi * 2 : ROUNDS_MAX;
    }
    if (hi == ROUNDS_MAX && power_of(hi, away, alpha) < wanted)
        return 0;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (power_of(mid, away, alpha) < wanted)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

static wb_json *table_of(double away, double alpha)
{
    static const size_t sizes[] = {4, 5, 6, 8, 10, 15, 20, 30, 40};
    wb_json *table = wb_json_array();

    for (size_t i = 0; i < WB_LEN(sizes); i++) {
        wb_json *row = wb_json_object();
        wb_json_set_int(row, "n", (int64_t)sizes[i]);
        wb_json_set_real(row, "power", power_of(sizes[i], away, alpha));
        wb_json_push(table, row);
    }
    return table;
}

static int answer_rounds(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    double effect = NAN, cv = NAN, alpha = WB_ALPHA, wanted = POWER_DEFAULT, away;
    size_t rounds;
    wb_json *answer;
    WB_AUTO_FREE char *sentence = NULL;

    if (wb_in_need_real(in, "", "effect_percent", -1e9, 1e9, &effect, err) < 0 ||
        wb_in_need_real(in, "", "cv_percent", 0, 1e9, &cv, err) < 0 ||
        wb_in_real(in, "", "alpha", 1e-6, 0.5, &alpha, err) < 0 ||
        wb_in_real(in, "", "power", 0.01, 0.999, &wanted, err) < 0)
        return -WB_INVALID;
    away = effect == 0 ? 0 : fabs(effect) / cv;
    rounds = effect == 0 ? 0 : rounds_for(away, alpha, wanted);
    answer = wb_answer_new(rounds, "mann-whitney-exact-normal-noise");
    wb_json_set_real(answer, "effect_percent", effect);
    wb_json_set_real(answer, "cv_percent", cv);
    wb_json_set_real(answer, "alpha", alpha);
    wb_json_set_real(answer, "power", wanted);
    if (rounds > 0)
        wb_json_set_int(answer, "rounds_needed", (int64_t)rounds);
    else
        wb_json_set_reason(answer, "rounds_needed",
                           effect == 0 ? "no number of rounds shows an effect of 0"
                                       : "more than 1000 rounds");
    if (rounds > 0)
        wb_json_set_real(answer, "power_reached", power_of(rounds, away, alpha));
    else
        wb_json_set_reason(answer, "power_reached", "see rounds_needed_reason");
    wb_json_set(answer, "table", table_of(away, alpha));
    if (rounds > 0)
        sentence = wb_strf("%zu rounds a side show an effect of %g %% at %g %% noise with a chance "
                           "of %.0f %%",
                           rounds, fabs(effect), cv, wanted * 100);
    else
        sentence =
            wb_strf("an effect of %g %% at %g %% noise is not to be shown with 1000 rounds a "
                    "side",
                    fabs(effect), cv);
    wb_answer_end(answer, sentence, warnings);
    *out = answer;
    return 0;
}

static int answer_smallest(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    double n = NAN, m = NAN, p = 2;
    wb_json *answer;
    WB_AUTO_FREE char *sentence = NULL;

    if (wb_in_need_real(in, "", "n", 1, 500, &n, err) < 0 ||
        wb_in_need_real(in, "", "m", 1, 500, &m, err) < 0)
        return -WB_INVALID;
    if (n != floor(n) || m != floor(m))
        return wb_fail(err, WB_INVALID, "/%s: must be a whole number", n != floor(n) ? "n" : "m");
    for (int i = 1; i <= (int)n; i++)
        p *= i / (m + i);
    answer = wb_answer_new((size_t)(n + m), "mann-whitney-exact");
    wb_json_set_real(answer, "smallest_p", p);
    wb_json_set_real(answer, "alpha", WB_ALPHA);
    wb_json_set_bool(answer, "can_reject", p <= WB_ALPHA);
    sentence = wb_strf("with %.0f and %.0f values p cannot be below %.3g%s", n, m, p,
                       p <= WB_ALPHA ? "" : ": nothing can be significant at 0.05");
    wb_answer_end(answer, sentence, warnings);
    *out = answer;
    return 0;
}

int wb_stats_power(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {
        "effect_percent", "cv_percent", "alpha", "power", "n", "m", NULL};
    wb_json *warnings;
    int rc;

    if (wb_in_object(in, "effect_percent and cv_percent, or n and m", err) < 0)
        return -WB_INVALID;
    if (wb_json_get(in, "n") != NULL && wb_json_get(in, "effect_percent") != NULL)
        return wb_fail(err, WB_INVALID, "/n: stands beside effect_percent, give one of the two");
    warnings = wb_json_array();
    wb_in_known(in, "", known, warnings);
    rc = wb_json_get(in, "n") != NULL || wb_json_get(in, "m") != NULL
             ? answer_smallest(in, warnings, out, err)
             : answer_rounds(in, warnings, out, err);
    if (rc < 0)
        wb_json_free(warnings);
    return rc;
}

void wb_stats_power_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *table = wb_json_get(answer, "table");

    width = width > 0 ? width : WB_TEXT_WIDTH;
    if (table != NULL) {
        struct wb_table *t = wb_table_new();
        wb_table_column(t, "rounds", WB_RIGHT);
        wb_table_column(t, "power", WB_RIGHT);
        for (size_t i = 0; i < wb_json_len(table); i++) {
            const wb_json *row = wb_json_at(table, i);
            wb_table_row(t);
            wb_table_cell(t, "%lld", (long long)wb_json_int_or(row, "n", 0));
            wb_table_cell(t, "%.2f", wb_json_real_or(row, "power", 0));
        }
        wb_table_print(t, width, out);
        wb_table_free(t);
        wb_buf_addc(out, '\n');
    }
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
