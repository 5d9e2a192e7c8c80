#include <sched.h>
#include <stdint.h>

#include "server/base/clock.h"
#include "server/collect/collect.h"

#define SPINS 5
#define STEPS 3000000 /* of a chain in which each step needs the one before */
#define LIMIT_NS (50 * WB_MS)

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

int64_t wb_cpu_canary(int cpu)
{
    cpu_set_t before, one;
    volatile uint64_t sink = 0x9e3779b97f4a7c15ULL;
    int64_t best = -1, end;

    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0)
        return -1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        return -1;
    end = wb_now_ns(NULL) + LIMIT_NS;
    for (int i = 0; i < SPINS; i++) {
        int64_t from = wb_now_ns(NULL), took;

        if (best >= 0 && from + best > end)
            break;
        sink = spin(sink);
        took = wb_now_ns(NULL) - from;
        if (best < 0 || took < best)
            best = took;
    }
    (void)sched_setaffinity(0, sizeof(before), &before); /* it was allowed a moment ago */
    return best;
}
