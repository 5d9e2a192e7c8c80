/* An event stream as random bytes, whole and in pieces: the events are the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/buf.h"
#include "server/cli/remote.h"

static int hear(void *arg, const char *type, const wb_json *data, struct wb_err *err)
{
    struct wb_buf *all = arg;

    (void)err;
    wb_buf_addf(all, "[%s:", type);
    if (data)
        wb_json_line(data, all);
    wb_buf_addc(all, ']');
    return 0;
}

static int read_in(const char *bytes, size_t n, size_t piece, struct wb_buf *out)
{
    struct wb_sse s;
    struct wb_err err = WB_ERR_INIT;
    int rc = 0;

    wb_sse_init(&s);
    for (size_t at = 0; rc == 0 && at < n; at += piece)
        rc = wb_sse_feed(&s, bytes + at, n - at < piece ? n - at : piece, hear, out, &err);
    wb_sse_release(&s);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_buf whole = WB_BUF_INIT(64u << 20), parts = WB_BUF_INIT(64u << 20);
    const char *bytes = (const char *)data;
    size_t piece;

    if (size < 2)
        return 0;
    piece = (size_t)data[0] + 1;
    if (read_in(bytes + 1, size - 1, size, &whole) != read_in(bytes + 1, size - 1, piece, &parts) ||
        strcmp(wb_buf_str(&whole), wb_buf_str(&parts)) != 0)
        abort();
    wb_buf_release(&whole);
    wb_buf_release(&parts);
    return 0;
}
