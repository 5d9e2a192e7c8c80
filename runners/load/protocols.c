#include "runners/load/protocol.h"

#include <string.h>

static const struct wb_protocol *const table[] = {&wb_protocol_resp, &wb_protocol_memcached,
                                                  &wb_protocol_cql, &wb_protocol_null, NULL};

const struct wb_protocol *const *wb_protocols(void)
{
    return table;
}

const struct wb_protocol *wb_protocol_find(const char *scheme, size_t n)
{
    for (size_t i = 0; table[i]; i++)
        if (strlen(table[i]->name) == n && memcmp(table[i]->name, scheme, n) == 0)
            return table[i];
    return NULL;
}

int wb_protocol_op(const struct wb_protocol *p, const char *name)
{
    for (int i = 0; p->ops[i]; i++)
        if (strcmp(p->ops[i], name) == 0)
            return i;
    if (strcmp(name, "get") == 0)
        return p->read_op;
    return strcmp(name, "set") == 0 ? p->write_op : -1;
}

bool wb_protocol_used(const struct wb_protocol *p, const struct wb_load_job *job, int op)
{
    for (int k = 0; k < job->ntxn; k++)
        for (int i = 0; i < job->txn[k].nsteps; i++)
            if (wb_protocol_op(p, job->txn[k].step[i].op) == op)
                return true;
    for (int i = 0; i < job->nmix && job->ntxn == 0; i++)
        if (wb_protocol_op(p, job->mix[i].name) == op)
            return true;
    return false;
}
