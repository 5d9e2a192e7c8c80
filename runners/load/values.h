/*
 * What is written under a key: size and bytes that follow from (seed, key) alone, so that the same
 * key always has the same value and a value that was read can be compared. Small values are
 * computed; longer ones are a slice of a pool, which costs no computing and can be compared in
 * place.
 */
#ifndef WB_LOAD_VALUES_H
#define WB_LOAD_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"

#define WB_VALUE_SMALL 128      /* up to this computed */
#define WB_VALUE_POOL (1 << 20) /* start offsets; stays in a second-level cache */

#define WB_VALUE_DIGITS 8  /* of WB_VALUE_BYTES_MAX */
#define WB_VALUE_BLOCK 256 /* COMPRESSIBLE: every so many bytes end with their share of zeros */
#define WB_VALUE_BLOCK_SMALL 32 /* the same of computed values */

struct wb_values {
    uint64_t seed;
    uint32_t most; /* bytes of the largest value */
    bool fixed;    /* all have that size */
    enum wb_load_content content;
    uint32_t random; /* COMPRESSIBLE: bytes of a block before its zeros */
    char *pool;      /* WB_VALUE_POOL + most; NULL for small values */
    struct wb_size_law law;
    uint64_t below[WB_SIZE_PARTS_MAX]; /* WEIGHTED: part i when the hash is < below[i] */
};

void wb_values_init(struct wb_values *v, const struct wb_load_job *job);
void wb_values_release(struct wb_values *v);

uint32_t wb_values_drawn(const struct wb_values *v, uint64_t key); /* sizes by a law */

/* Bytes of the value of a key: its size follows from the key, too. */
static inline uint32_t wb_values_size(const struct wb_values *v, uint64_t key)
{
    return v->fixed ? v->most : wb_values_drawn(v, key);
}

/* 8 bytes of content at offset i from 8 random ones. */
static inline uint64_t wb_values_word(const struct wb_values *v, uint32_t block, uint32_t i,
                                      uint64_t bits)
{
    if (v->content == WB_LOAD_RANDOM)
        return bits;
    if (v->content == WB_LOAD_ZEROS)
        return 0;
    if (v->content == WB_LOAD_COMPRESSIBLE) {
        uint32_t random = v->random, at = i % block;
        return at + 8 <= random ? bits
               : at >= random   ? 0
                                : bits & ((1ull << (random - at) * 8) - 1);
    }
    /* '0'..'o': printable, 6 bits a byte */
    return (bits & 0x3f3f3f3f3f3f3f3full) + 0x3030303030303030ull;
}

/* Writes the digits of a size, at most WB_VALUE_DIGITS; returns their end. */
char *wb_values_digits(uint32_t n, char *out);

/* Writes the value of a key and returns its size; up to 7 bytes behind it are overwritten. */
static inline uint32_t wb_values_write(const struct wb_values *v, uint64_t key, char *out)
{
    uint64_t h = wb_keys_hash(v->seed, key);
    uint32_t n = wb_values_size(v, key);

    if (v->pool) {
        memcpy(out, v->pool + (h & (WB_VALUE_POOL - 1)), n);
        return n;
    }
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t word = wb_values_word(v, WB_VALUE_BLOCK_SMALL, i, h);
        memcpy(out + i, &word, 8);
        h = wb_keys_hash(h, i);
    }
    return n;
}

/* Where the value of a key can be read, wb_values_size long: in the pool, or in scratch
 * (WB_VALUE_SMALL + 8 bytes). */
const char *wb_values_expect(const struct wb_values *v, uint64_t key, char *scratch);

#endif
