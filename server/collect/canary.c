#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/collect/collect.h"

/* One spin is about 0.1 ms, much shorter than a time slice: among those of a burst there are
 * undisturbed ones, also on a CPU that is shared, and the shortest shows the speed of the CPU
 * itself. That speed moves from one hundredth of a second to the next where other machines are on
 * the same processor, so that one burst says little of the time around it: a middling one of many
 * does. The lower quartile, because where others keep the CPU busy some bursts are disturbed whole.
 * A CPU that was idle needs no warming for this: the first burst is as fast as the others. */
#define STEPS 50000 /* of a chain in which each step needs the one before */
#define SPINS_MIN 5 /* of a burst, on the slowest CPU */
#define BURST_NS (5 * WB_MS)
#define BURSTS 30
#define BURSTS_MIN 5
#define LIMIT_NS (200 * WB_MS)

/* Not inlined, so that all spins are the same code at the same alignment. */
static __attribute__((noinline)) uint64_t spin(uint64_t x)
{
    for (int i = 0; i < STEPS; i++) {
        x ^= x >> 12;
        x ^= x << 25;
        x *= 0x2545f4914f6cdd1dULL;
    }
    return x;
}

/* The shortest spin of one burst. */
static int64_t burst(volatile uint64_t *sink)
{
    int64_t best = -1, passed = 0, begin = wb_now_ns(NULL);

    for (int i = 0; i < SPINS_MIN || passed < BURST_NS; i++) {
        int64_t from = wb_now_ns(NULL), to, took;

        *sink = spin(*sink);
        to = wb_now_ns(NULL);
        took = to - from;
        passed = to - begin;
        if (best < 0 || took < best)
            best = took;
    }
    return best;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t wb_cpu_canary(int cpu)
{
    volatile uint64_t sink = 0x9e3779b97f4a7c15ULL;
    int64_t bursts[BURSTS], begin;
    cpu_set_t before, one;
    size_t n = 0;

    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0)
        return -1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        return -1;
    begin = wb_now_ns(NULL);
    while (n < BURSTS && (n < BURSTS_MIN || wb_now_ns(NULL) - begin < LIMIT_NS))
        bursts[n++] = burst(&sink);
    (void)sched_setaffinity(0, sizeof(before), &before); /* it was allowed a moment ago */
    qsort(bursts, n, sizeof(*bursts), by_time);
    return bursts[n / 4];
}
