/*
 * What is written under a key: a slice of a pool of bytes, chosen by (seed, key). It costs no
 * computing per operation, the same key always has the same value, and a value that was read can
 * be compared in place, piece by piece.
 */
#ifndef WB_LOAD_VALUES_H
#define WB_LOAD_VALUES_H

#include <stdint.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"

#define WB_VALUE_BYTES_MAX (64 << 20)
#define WB_VALUE_POOL (1 << 20) /* start offsets; stays in a second-level cache */

struct wb_values {
    uint64_t seed;
    uint32_t bytes;
    char *pool; /* WB_VALUE_POOL + bytes */
};

void wb_values_init(struct wb_values *v, const struct wb_load_job *job);
void wb_values_release(struct wb_values *v);

/* The value of a key, v->bytes long; valid as long as v. */
static inline const char *wb_values_of(const struct wb_values *v, uint64_t key)
{
    return v->pool + (wb_keys_hash(v->seed, key) & (WB_VALUE_POOL - 1));
}

#endif
