/*
 * Compression of bulky raw data (zstd frames with a checksum). The only user of zstd.
 */
#ifndef WB_RECORD_COMPRESS_H
#define WB_RECORD_COMPRESS_H

#include <stddef.h>

#include "server/base/buf.h"
#include "server/base/err.h"

/* Appends the compressed form of data to out (whose max bounds it). Empty data is allowed. */
int wb_compress(const void *data, size_t n, struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;

/* Appends what one frame holds to out; never more than out's max, so a small input cannot fill
 * the memory. WB_CORRUPT when the input is not exactly one whole frame. */
int wb_decompress(const void *data, size_t n, struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;

/* The same in pieces: sink gets them in order; its negative code ends it. At most `most` bytes. */
int wb_decompress_to(const void *data, size_t n, size_t most,
                     int (*sink)(void *arg, const void *piece, size_t n, struct wb_err *err),
                     void *arg, struct wb_err *err) WB_MUST_CHECK;

#endif
