/* Names of the operations of all protocols. Needs nothing of a run: studies are checked by it, too.
 */
#include <string.h>

#include "runners/load/protocol.h"
#include "server/base/mem.h"

const char *const wb_ops_resp[] = {"get", "set", NULL};
const char *const wb_ops_memcached[] = {"get", "set", "add", "delete", "mg", NULL};
const char *const wb_ops_cql[] = {"select", "insert", "update", "delete", "batch", NULL};
const char *const wb_ops_null[] = {"get", "set", NULL};

const char *const *wb_protocol_ops(const char *scheme)
{
    static const struct {
        const char *scheme;
        const char *const *ops;
    } rows[] = {{"resp", wb_ops_resp},
                {"memcached", wb_ops_memcached},
                {"cql", wb_ops_cql},
                {"null", wb_ops_null}};

    for (size_t i = 0; i < WB_LEN(rows); i++)
        if (strcmp(rows[i].scheme, scheme) == 0)
            return rows[i].ops;
    return NULL;
}
