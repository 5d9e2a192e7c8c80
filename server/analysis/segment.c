#include "server/analysis/segment.h"

#include <math.h>

#include "server/analysis/robust.h"
#include "server/base/mem.h"

/* Running sums from the beginning; values are counted from their median, which keeps digits. */
struct sums {
    double w, wv, wvv;
};

static double squares(const struct sums *from, const struct sums *to)
{
    double w = to->w - from->w, v = to->wv - from->wv, rest = to->wvv - from->wvv - v * v / w;

    return rest > 0 ? rest : 0;
}

size_t wb_segment(const double *v, const double *w, size_t n, size_t least, double penalty,
                  size_t *starts)
{
    WB_AUTO_FREE struct sums *sums = wb_calloc(n + 1, sizeof(*sums));
    WB_AUTO_FREE double *cost = wb_calloc(n + 1, sizeof(double));
    WB_AUTO_FREE size_t *begin = wb_calloc(n + 1, sizeof(size_t)); /* of the part that ends here */
    double centre;
    size_t parts = 0;

    if (n == 0)
        return 0;
    centre = wb_median_of(v, n);
    for (size_t i = 0; i < n; i++) {
        double d = v[i] - centre;
        sums[i + 1] = (struct sums){
            .w = sums[i].w + w[i], .wv = sums[i].wv + w[i] * d, .wvv = sums[i].wvv + w[i] * d * d};
    }
    cost[0] = -penalty;
    for (size_t e = 1; e <= n; e++) {
        cost[e] = HUGE_VAL;
        for (size_t b = 0; b + least <= e || b == 0; b++) {
            double c = cost[b] + squares(&sums[b], &sums[e]) + penalty;
            if (c < cost[e] - 1e-12 * fabs(c)) {
                cost[e] = c;
                begin[e] = b;
            }
        }
        /* Whatever is shorter than a part can be is no beginning for another one. */
        if (e < least && e < n)
            cost[e] = HUGE_VAL;
    }
    for (size_t e = n; e > 0; e = begin[e])
        parts++;
    for (size_t e = n, k = parts; e > 0; e = begin[e])
        starts[--k] = begin[e];
    return parts;
}
