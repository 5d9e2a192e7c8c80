/* Answers of a CQL server as wb-ask reads them: the first bytes are flags, opcode and how much of
 * the rest the header claims. */
#include <stddef.h>
#include <stdint.h>

#include "runners/ask/cql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_buf out = WB_BUF_INIT(1 << 16);
    struct wb_err err = WB_ERR_INIT;
    struct wb_cql_header h;

    if (size >= WB_CQL_HEADER) {
        WB_IGNORE(wb_cql_header_read(data, &h, &err));
        h = (struct wb_cql_header){
            .flags = data[0], .opcode = data[1] % 9, .length = (uint32_t)(size - 2)};
        WB_IGNORE(wb_cql_answer(&h, data + 2, 1, &out, &err));
    }
    wb_buf_release(&out);
    return 0;
}
