#include "runners/load/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/rng.h"

#define ATTEMPTS 64 /* gaussian sizes: then the mean */

void wb_values_init(struct wb_values *v, const struct wb_load_job *job)
{
    const struct wb_size_law *l = &job->size_law;
    size_t n = WB_VALUE_POOL + (size_t)job->value_bytes;
    double total = 0, sum = 0;
    struct wb_rng rng;

    *v = (struct wb_values){.seed = wb_mix64((uint64_t)job->seed, 'v'),
                            .most = (uint32_t)job->value_bytes,
                            .fixed = l->kind == WB_SIZE_FIXED || l->least == l->most,
                            .content = job->content,
                            .law = *l};
    for (int i = 0; i < l->n; i++)
        total += l->weight[i];
    for (int i = 0; i < l->n; i++) {
        sum += l->weight[i];
        v->below[i] = sum / total >= 1 ? UINT64_MAX : (uint64_t)(sum / total * 0x1p64);
    }
    v->random = (uint32_t)((1 - job->zeros_share) *
                               (v->most <= WB_VALUE_SMALL ? WB_VALUE_BLOCK_SMALL : WB_VALUE_BLOCK) +
                           0.5);
    if (v->most <= WB_VALUE_SMALL)
        return;
    v->pool = wb_calloc(n + 8, 1);
    wb_rng_seed(&rng, v->seed);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = wb_values_word(v, WB_VALUE_BLOCK, (uint32_t)i, wb_rng_u64(&rng));
        memcpy(v->pool + i, &word, sizeof(word));
    }
}

/* What is below the least or above the most is drawn again. */
static uint32_t gaussian(const struct wb_values *v, uint64_t hash)
{
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        double x = floor(v->law.mean + 0.5 +
                         v->law.deviation * wb_keys_normal(wb_keys_hash(hash, attempt)));
        if (x >= (double)v->law.least && x <= (double)v->law.most)
            return (uint32_t)x;
    }
    return (uint32_t)v->law.mean;
}

uint32_t wb_values_drawn(const struct wb_values *v, uint64_t key)
{
    uint64_t h = wb_keys_hash(~v->seed, key), span = (uint64_t)(v->law.most - v->law.least) + 1;
    int i = 0;

    switch (v->law.kind) {
    case WB_SIZE_UNIFORM:
        return (uint32_t)v->law.least + (uint32_t)(((unsigned __int128)h * span) >> 64);
    case WB_SIZE_GAUSSIAN:
        return gaussian(v, h);
    case WB_SIZE_WEIGHTED:
        while (i < v->law.n - 1 && h >= v->below[i])
            i++;
        return (uint32_t)v->law.part[i];
    default:
        return v->most;
    }
}

char *wb_values_digits(uint32_t n, char *out)
{
    char digits[WB_VALUE_DIGITS], *end = digits + sizeof(digits), *p = end;

    do
        *--p = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    memcpy(out, p, (size_t)(end - p));
    return out + (end - p);
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
    (void)wb_values_write(v, key, scratch);
    return scratch;
}
