#include "runners/load/values.h"

#include <stdlib.h>

#include "server/base/mem.h"
#include "server/base/rng.h"

void wb_values_init(struct wb_values *v, const struct wb_load_job *job)
{
    size_t n = WB_VALUE_POOL + (size_t)job->value_bytes;
    struct wb_rng rng;

    *v = (struct wb_values){.seed = wb_mix64((uint64_t)job->seed, 'v'),
                            .bytes = (uint32_t)job->value_bytes,
                            .content = job->content};
    if (v->bytes <= WB_VALUE_SMALL)
        return;
    v->pool = wb_calloc(n + 8, 1);
    wb_rng_seed(&rng, v->seed);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = wb_values_word(v->content, wb_rng_u64(&rng));
        memcpy(v->pool + i, &word, sizeof(word));
    }
}

void wb_values_release(struct wb_values *v)
{
    free(v->pool);
    v->pool = NULL;
}

const char *wb_values_expect(const struct wb_values *v, uint64_t key, char *scratch)
{
    if (v->pool)
        return v->pool + (wb_keys_hash(v->seed, key) & (WB_VALUE_POOL - 1));
    wb_values_write(v, key, scratch);
    return scratch;
}
