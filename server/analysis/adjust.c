#include "server/analysis/adjust.h"

#include <math.h>
#include <stdlib.h>

#include "server/base/mem.h"

struct ranked {
    double p;
    size_t at;
};

/* By p, equal ones by place, so that the order is the same everywhere. */
static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

void wb_adjust(const double *p, size_t n, double *q)
{
    WB_AUTO_FREE struct ranked *v = wb_calloc(n, sizeof(*v));
    size_t family = 0;
    double least = 1; /* of p * family / rank from here to the largest p */

    for (size_t i = 0; i < n; i++)
        if (!isnan(p[i]))
            v[family++] = (struct ranked){.p = p[i], .at = i};
    for (size_t i = 0; i < n; i++)
        q[i] = NAN;
    qsort(v, family, sizeof(*v), by_p);
    for (size_t i = family; i > 0; i--) {
        double scaled = v[i - 1].p * ((double)family / (double)i); /* never below p */
        if (scaled < least)
            least = scaled;
        q[v[i - 1].at] = least;
    }
}
