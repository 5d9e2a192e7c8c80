/*
 * Any bytes as the answer to CLUSTER SLOTS: read in one piece or cut it means the same, and no slot
 * belongs to a node that there is not.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "runners/load/protocols/resp_cluster.h"
#include "runners/load/shard.h"
#include "server/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int16_t slots[WB_SLOTS];
    struct wb_strv nodes = {0}, again = {0};
    int64_t n = wb_resp_cluster_read((const char *)data, size, "self", &nodes, slots);

    if (n < -1 || n > (int64_t)size)
        abort();
    for (size_t i = 0; i < WB_SLOTS; i++)
        if (slots[i] < -1 || slots[i] >= (int64_t)nodes.n)
            abort();
    if (n > 0 && wb_resp_cluster_read((const char *)data, (size_t)n, "self", &again, slots) != n)
        abort();
    wb_strv_release(&nodes);
    wb_strv_release(&again);
    return 0;
}
