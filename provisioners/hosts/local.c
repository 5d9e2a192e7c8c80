/* This machine. What is left on it the engine knows; it has no other owner to ask. */
#include "provisioners/hosts/source.h"

static void local_read(const struct wb_node *n, struct wb_host_pool *pool, struct wb_problems *p)
{
    if (n)
        wb_problem(p, n, "bad-value",
                   "the source local is the pool 'local', which is always there");
    else
        wb_host_pool_add(pool, "local", NULL, "this machine");
}

static int local_look(const struct wb_host_pool *pool, const struct wb_host *host,
                      struct wb_err *err)
{
    (void)pool;
    (void)host;
    (void)err;
    return 0;
}

const struct wb_host_source_ops wb_host_local = {.name = "local",
                                                 .summary = "this machine",
                                                 .this_machine = true,
                                                 .read = local_read,
                                                 .look = local_look};
