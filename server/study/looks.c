/*
 * Planned looks of `rounds: {until: decided}`. The error of 0.05 is divided evenly among them, so
 * that looking several times errs no more often than looking once (Bonferroni over looks).
 */
#include <math.h>

#include "server/study/parts.h"

#define ALPHA 0.05

/* Fewest rounds after which an exact signed-rank test of one in a family of `contrasts` can be
 * significant: the least p of n rounds is 2^(1-n). */
static int least_rounds(double alpha, size_t contrasts)
{
    int n = WB_ROUNDS_LOOK;

    while (n < WB_ROUNDS_MAX && (double)contrasts * ldexp(1, 1 - n) > alpha)
        n++;
    return n;
}

/* n looks from the first that can decide to the last round, each the same factor later. False when
 * they do not fit. */
static bool fit(struct wb_plan *plan, int n, size_t contrasts)
{
    double alpha = ALPHA / n;
    int first = least_rounds(alpha, contrasts), last = plan->rounds;

    if (first < plan->study->rounds_least)
        first = (int)plan->study->rounds_least;
    if (n == 1)
        first = last;
    for (int i = 0; i < n; i++) {
        double share = n > 1 ? (double)i / (n - 1) : 0;

        plan->looks[i].rounds = (int)lround(first * pow((double)last / first, share));
        plan->looks[i].alpha = alpha;
        if (i > 0 && plan->looks[i].rounds < plan->looks[i - 1].rounds + 2)
            return false;
    }
    plan->nlooks = n;
    return true;
}

void wb_looks_make(struct wb_plan *plan)
{
    size_t contrasts = 0;

    for (size_t i = 0; i < plan->ncontrasts; i++)
        contrasts += plan->contrasts[i].primary;
    if (plan->study->rounds_least == 0 || contrasts == 0)
        return;
    for (int n = WB_LOOKS_MAX; n > 0; n--)
        if (fit(plan, n, contrasts))
            return;
}
