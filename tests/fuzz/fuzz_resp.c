/*
 * Replies of a RESP server; see replies.h. Pieces of 128 bytes and more are taken as version 3; an
 * operation byte with all bits set has the answer to the greeting come first.
 */
#include "tests/fuzz/replies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig *r[2]; /* making one costs more than a run */
    int three = size > 0 && data[0] >= 128;

    for (int i = 0; i < 2 && !r[i]; i++)
        r[i] = rig_new(&wb_protocol_resp, i + 2);
    return fuzz_replies(r[three], data, size);
}
