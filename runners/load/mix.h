/*
 * Which operation comes next: weights over the operations of a protocol, drawn as a pure function
 * of (seed, index).
 */
#ifndef WB_LOAD_MIX_H
#define WB_LOAD_MIX_H

#include <stdint.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"

struct wb_protocol;

struct wb_mix {
    uint64_t seed;
    int n;
    uint64_t below[WB_LOAD_OPS_MAX]; /* part i is drawn when the hash is < below[i]; ascending */
    uint8_t op[WB_LOAD_OPS_MAX];     /* index among the protocol's operations */
};

/* WB_INVALID names the operations that the protocol has. */
int wb_mix_init(struct wb_mix *m, const struct wb_load_job *job, const struct wb_protocol *p,
                struct wb_err *err) WB_MUST_CHECK;

static inline uint8_t wb_mix_at(const struct wb_mix *m, uint64_t index)
{
    uint64_t h;
    int i = 0;

    if (m->n == 1)
        return m->op[0];
    h = wb_keys_hash(m->seed, index);
    while (i < m->n - 1 && h >= m->below[i])
        i++;
    return m->op[i];
}

#endif
