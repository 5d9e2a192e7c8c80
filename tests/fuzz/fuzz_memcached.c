/* Replies of a memcached; see replies.h. */
#include "tests/fuzz/replies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig *r; /* making one costs more than a run */

    if (!r)
        r = rig_new(&wb_protocol_memcached, 2);
    return fuzz_replies(r, data, size);
}
