#include "runners/load/values.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/rng.h"

void wb_values_init(struct wb_values *v, const struct wb_load_job *job)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = WB_VALUE_POOL + (size_t)job->value_bytes;
    struct wb_rng rng;

    v->seed = wb_mix64((uint64_t)job->seed, 'v');
    v->bytes = (uint32_t)job->value_bytes;
    v->pool = wb_calloc(n, 1);
    if (job->content == WB_LOAD_ZEROS)
        return;
    wb_rng_seed(&rng, v->seed);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t bits = wb_rng_u64(&rng);
        for (size_t b = i; b < n && b < i + 8; b++, bits >>= 8)
            v->pool[b] = job->content == WB_LOAD_LETTERS ? letters[bits & 63] : (char)(uint8_t)bits;
    }
}

void wb_values_release(struct wb_values *v)
{
    free(v->pool);
    v->pool = NULL;
}
