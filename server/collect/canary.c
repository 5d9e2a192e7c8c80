#include <sched.h>
#include <stdint.h>

#include "server/base/clock.h"
#include "server/collect/collect.h"

/* One spin is about 0.1 ms, much shorter than a time slice: among the many that fit into the time
 * there are undisturbed ones, also on a busy CPU. The shortest shows the speed of the CPU itself.
 */
#define STEPS 50000    /* of a chain in which each step needs the one before */
#define SPINS_MIN 5    /* on the slowest CPU */
#define SPINS_GOOD 150 /* enough on one that is shared */
#define TIME_NS (25 * WB_MS)
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
    int64_t best = -1, begin, passed = 0;

    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0)
        return -1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        return -1;
    begin = wb_now_ns(NULL);
    for (int i = 0; i < SPINS_MIN || passed < TIME_NS || (i < SPINS_GOOD && passed < LIMIT_NS);
         i++) {
        int64_t from = wb_now_ns(NULL), to, took;

        sink = spin(sink);
        to = wb_now_ns(NULL);
        took = to - from;
        passed = to - begin;
        if (best < 0 || took < best)
            best = took;
    }
    (void)sched_setaffinity(0, sizeof(before), &before); /* it was allowed a moment ago */
    return best;
}
