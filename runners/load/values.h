/*
 * What is written under a key: bytes that follow from (seed, key) alone, so that the same key
 * always has the same value and a value that was read can be compared. Small values are computed;
 * longer ones are a slice of a pool, which costs no computing and can be compared in place.
 */
#ifndef WB_LOAD_VALUES_H
#define WB_LOAD_VALUES_H

#include <stdint.h>
#include <string.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"

#define WB_VALUE_BYTES_MAX (64 << 20)
#define WB_VALUE_SMALL 128      /* up to this computed */
#define WB_VALUE_POOL (1 << 20) /* start offsets; stays in a second-level cache */

struct wb_values {
    uint64_t seed;
    uint32_t bytes;
    enum wb_load_content content;
    char *pool; /* WB_VALUE_POOL + bytes; NULL for small values */
};

void wb_values_init(struct wb_values *v, const struct wb_load_job *job);
void wb_values_release(struct wb_values *v);

/* 8 bytes of content from 8 random ones. */
static inline uint64_t wb_values_word(enum wb_load_content content, uint64_t bits)
{
    if (content == WB_LOAD_RANDOM)
        return bits;
    if (content == WB_LOAD_ZEROS)
        return 0;
    /* '0'..'o': printable, 6 bits a byte */
    return (bits & 0x3f3f3f3f3f3f3f3full) + 0x3030303030303030ull;
}

/* Writes the value of a key, v->bytes long; up to 7 bytes behind it are overwritten. */
static inline void wb_values_write(const struct wb_values *v, uint64_t key, char *out)
{
    uint64_t h = wb_keys_hash(v->seed, key);

    if (v->pool) {
        memcpy(out, v->pool + (h & (WB_VALUE_POOL - 1)), v->bytes);
        return;
    }
    for (uint32_t i = 0; i < v->bytes; i += 8) {
        uint64_t word = wb_values_word(v->content, h);
        memcpy(out + i, &word, 8);
        h = wb_keys_hash(h, i);
    }
}

/* Where the value of a key can be read: in the pool, or in scratch (WB_VALUE_SMALL + 8 bytes). */
const char *wb_values_expect(const struct wb_values *v, uint64_t key, char *scratch);

#endif
