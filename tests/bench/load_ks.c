/*
 * Distance of Kolmogorov and Smirnov between gaps of arrivals and the exponential law of a rate:
 *
 *     load_ks RATE N SEED [FILE]
 *
 * prints the distance of the first N intended arrivals of wb-load's Poisson schedule at RATE with
 * SEED and the value that chance passes once in a thousand (1.95 / sqrt n). With FILE, times in ns
 * one a line in the order in which they were seen, the same for those.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runners/load/schedule.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/rng.h"
#include "server/base/units.h"

#define TIMES_MAX (10 << 20)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* times become sorted gaps. */
static double distance(double *times, size_t n, double rate)
{
    double most = 0;

    for (size_t i = n - 1; i > 0; i--)
        times[i] -= times[i - 1];
    times[0] = times[n - 1]; /* n - 1 gaps */
    n--;
    qsort(times, n, sizeof(*times), by_value);
    for (size_t i = 0; i < n; i++) {
        double law = -expm1(-times[i] * rate / 1e9);
        double under = law - (double)i / (double)n, over = (double)(i + 1) / (double)n - law;
        most = fmax(most, fmax(under, over));
    }
    return most;
}

static void print(const char *what, double *times, size_t n, double rate)
{
    printf("%s %zu %.5f %.5f\n", what, n, distance(times, n, rate), 1.95 / sqrt((double)n));
}

int main(int argc, char **argv)
{
    double rate = 0, *times = NULL;
    int64_t n = 0, seed = 0;
    size_t cap = 0, seen = 0;
    struct wb_schedule s = {.poisson = true, .stride = 1};
    struct wb_arrivals a;
    double at;
    FILE *f;

    if (argc < 4 || wb_parse_rate(argv[1], &rate, NULL) < 0 ||
        wb_parse_int(argv[2], 10, TIMES_MAX, &n, NULL) < 0 ||
        wb_parse_int(argv[3], 0, INT64_MAX, &seed, NULL) < 0) {
        fprintf(stderr, "usage: load_ks RATE N SEED [FILE]\n");
        return 2;
    }
    s.rate_per_s = rate;
    s.seed = wb_mix64((uint64_t)seed, 'a');
    wb_grow(&times, &cap, (size_t)n, sizeof(*times));
    wb_arrivals_start(&a, &s, 0);
    for (int64_t i = 0; i < n; i++, wb_arrivals_next(&a))
        times[i] = (double)a.at;
    print("intended", times, (size_t)n, rate);
    f = argc > 4 ? fopen(argv[4], "r") : NULL;
    if (argc > 4 && !f) {
        perror(argv[4]);
        return 2;
    }
    while (f && seen < TIMES_MAX && fscanf(f, "%lf", &at) == 1) {
        wb_grow(&times, &cap, seen + 1, sizeof(*times));
        times[seen++] = at;
    }
    if (f)
        fclose(f);
    if (seen > 10)
        print("seen", times, seen, rate);
    free(times);
    return 0;
}
