/*
 * Seeded random numbers, the same on every machine. Stream: xoshiro256** seeded by splitmix64
 * (Blackman and Vigna, public domain reference). Stateless: wb_mix64 of (seed, index).
 */
#ifndef WB_BASE_RNG_H
#define WB_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct wb_rng {
    uint64_t s[4];
};

void wb_rng_seed(struct wb_rng *r, uint64_t seed);
uint64_t wb_rng_u64(struct wb_rng *r);
/* Uniform in [0, n), n > 0, without modulo bias. */
uint64_t wb_rng_below(struct wb_rng *r, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double wb_rng_unit(struct wb_rng *r);
/* Fisher-Yates over n ints. */
void wb_rng_shuffle(struct wb_rng *r, int *v, size_t n);

/* A good 64-bit hash of two words (splitmix64 finaliser); pure. */
uint64_t wb_mix64(uint64_t seed, uint64_t index);
/* 64 bits from the kernel, for seeds that are then recorded. */
uint64_t wb_random_seed(void);

#endif
