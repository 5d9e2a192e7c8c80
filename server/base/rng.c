#include "server/base/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define GOLDEN 0x9e3779b97f4a7c15ull /* 2^64 over the golden ratio: the step of splitmix64 */

static uint64_t finalise(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void wb_rng_seed(struct wb_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += GOLDEN;
        r->s[i] = finalise(seed);
    }
}

uint64_t wb_rng_u64(struct wb_rng *r)
{
    uint64_t result = rotl(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotl(r->s[3], 45);
    return result;
}

/* The high half of a 128-bit product is uniform once the low half is not among the first
 * 2^64 mod n values (Lemire 2019). */
uint64_t wb_rng_below(struct wb_rng *r, uint64_t n)
{
    uint64_t reject = -n % n;
    unsigned __int128 product;

    do {
        product = (unsigned __int128)wb_rng_u64(r) * n;
    } while ((uint64_t)product < reject);
    return (uint64_t)(product >> 64);
}

double wb_rng_unit(struct wb_rng *r)
{
    return (double)(wb_rng_u64(r) >> 11) * 0x1p-53;
}

void wb_rng_shuffle(struct wb_rng *r, int *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)wb_rng_below(r, i);
        int kept = v[i - 1];
        v[i - 1] = v[j];
        v[j] = kept;
    }
}

uint64_t wb_mix64(uint64_t seed, uint64_t index)
{
    /* The seed is hashed first: with a plain sum, neighbouring seeds would share their streams. */
    return finalise(finalise(seed + GOLDEN) + (index + 1) * GOLDEN);
}

uint64_t wb_random_seed(void)
{
    uint64_t seed;
    ssize_t n;

    do {
        n = getrandom(&seed, sizeof(seed), 0);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(seed)) {
        fputs("weighbridge: the kernel gives no random numbers\n", stderr);
        abort();
    }
    return seed;
}
