#include "runners/load/mix.h"

#include <string.h>

#include "runners/load/protocol.h"
#include "server/base/buf.h"
#include "server/base/rng.h"

/* What the parts of a mix are: transactions where the job has any, else operations. */
static int find(const struct wb_load_job *job, const struct wb_protocol *p, const char *name)
{
    if (job->ntxn == 0)
        return wb_protocol_op(p, name);
    for (int i = 0; i < job->ntxn; i++)
        if (strcmp(job->txn[i].name, name) == 0)
            return i;
    return -1;
}

static int unknown(const struct wb_load_job *job, const struct wb_protocol *p, const char *name,
                   struct wb_err *err)
{
    struct wb_buf list = WB_BUF_INIT(256);

    if (job->ntxn == 0)
        for (int k = 0; p->ops[k]; k++)
            wb_buf_addf(&list, "%s%s", k ? ", " : "", p->ops[k]);
    for (int k = 0; k < job->ntxn; k++)
        wb_buf_addf(&list, "%s%s", k ? ", " : "", job->txn[k].name);
    (void)wb_fail(err, WB_INVALID, "mix: %s no %s '%s' (it has: %s)",
                  job->ntxn ? "the job has" : "this protocol has",
                  job->ntxn ? "transaction" : "operation", name, wb_buf_str(&list));
    wb_buf_release(&list);
    return -WB_INVALID;
}

int wb_mix_init(struct wb_mix *m, const struct wb_load_job *job, const struct wb_protocol *p,
                struct wb_err *err)
{
    struct wb_mix v = {.seed = wb_mix64((uint64_t)job->seed, 'm')};
    double total = 0, sum = 0;

    for (int i = 0; i < job->nmix; i++)
        total += job->mix[i].weight;
    for (int i = 0; i < job->nmix; i++) {
        int op = find(job, p, job->mix[i].name);
        double share;
        if (op < 0)
            return unknown(job, p, job->mix[i].name, err);
        if (job->mix[i].weight <= 0)
            continue;
        sum += job->mix[i].weight;
        share = sum / total;
        v.op[v.n] = (uint8_t)op;
        v.below[v.n++] = share >= 1 ? UINT64_MAX : (uint64_t)(share * 0x1p64);
    }
    *m = v;
    return 0;
}
