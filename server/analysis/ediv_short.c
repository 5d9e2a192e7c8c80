/* Tests for the two places where few values must do: a short sequence, and its last values. */
#include "server/analysis/ediv.h"

#include <math.h>
#include <string.h>

#include "server/analysis/moments.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define CLIP 4.0 /* robust standard deviations */
#define TIE 1e-9

/* ---- short sequences ---- */

static double part_mean(const double *v, size_t n, double *squares)
{
    double mean = 0;

    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        *squares += (v[i] - mean) * (v[i] - mean);
    return mean;
}

static double pooled_p(const double *v, size_t at, size_t n, double alike)
{
    double squares = 0, a = part_mean(v, at, &squares), b = part_mean(v + at, n - at, &squares);
    double error =
        sqrt(alike * squares / (double)(n - 2) * (1 / (double)at + 1 / (double)(n - at)));

    if (a == b)
        return 1;
    return error > 0 ? 2 * wb_student_above(fabs(b - a) / error, fmax(1, (double)(n - 2) / alike))
                     : 0;
}

double wb_short_split_p(const double *v, size_t n, size_t least, double alike)
{
    double lowest = 1;
    size_t looked = 0;

    for (size_t upto = 2 * least; upto <= n; upto++)
        for (size_t at = least; at + least <= upto; at++, looked++) {
            double p = pooled_p(v, at, upto, alike);
            lowest = p < lowest ? p : lowest;
        }
    return looked > 0 ? fmin(1, lowest * (double)looked) : 1;
}

/* ---- the last values ---- */

static void clip(const double *v, size_t n, double *out)
{
    double centre = wb_median_of(v, n), far = CLIP * wb_mad_sigma(v, n, centre), mean = 0;

    for (size_t i = 0; i < n; i++) {
        double away = v[i] - centre;
        if (far > 0)
            away = away > far ? far : away < -far ? -far : away;
        out[i] = away;
        mean += away / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        out[i] -= mean;
}

/* v has mean 0. Errors are those of drawing from v without putting back, whose spread is the same
 * for all orders and is left out. */
static double tail_distance(const double *v, size_t n, const struct wb_tail_test *t, size_t *at)
{
    double sum = 0, top = -1;

    for (size_t m = 1; m <= t->longest && n - m >= t->before; m++) {
        double z;
        sum += v[n - m];
        if (m < t->least)
            continue;
        z = fabs(sum) / sqrt((double)m * (double)(n - m) / (double)n);
        if (z > top * (1 + 1e-12)) {
            top = z;
            *at = n - m;
        }
    }
    return top;
}

bool wb_tail_best(const double *v, size_t n, const struct wb_tail_test *t, size_t *at, double *p)
{
    WB_AUTO_FREE double *x = NULL;
    unsigned as_good = 0;
    double seen;
    size_t place = 0;
    struct wb_rng rng;

    if (n < t->least + t->before)
        return false;
    x = wb_calloc(n, sizeof(double));
    clip(v, n, x);
    seen = tail_distance(x, n, t, at);
    wb_rng_seed(&rng, wb_mix64(wb_rank_seed(v, n), 1));
    for (unsigned r = 0; r < t->permutations; r++) {
        for (size_t m = 0; m < t->longest && m + 1 < n; m++) {
            size_t i = n - 1 - m, j = (size_t)wb_rng_below(&rng, i + 1);
            double kept = x[i];
            x[i] = x[j];
            x[j] = kept;
        }
        as_good += tail_distance(x, n, t, &place) >= seen * (1 - TIE);
        if (as_good + 1 > t->alpha * (t->permutations + 1))
            break;
    }
    *p = (as_good + 1.0) / (t->permutations + 1.0);
    return true;
}
