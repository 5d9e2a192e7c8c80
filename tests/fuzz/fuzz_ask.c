/* Answers of a CQL server as wb-ask reads them: the first byte chooses the opcode. */
#include <stddef.h>
#include <stdint.h>

#include "runners/ask/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_buf out = WB_BUF_INIT(1 << 16);
    struct wb_err err = WB_ERR_INIT;

    if (size > 0) {
        struct wb_cql_envelope e = {
            .version = 4, .opcode = data[0] % 9, .body = (const char *)data + 1, .n = size - 1};
        WB_IGNORE(wb_ask_rows(&e, 1, &out, &err));
    }
    wb_buf_release(&out);
    return 0;
}
