/*
 * zlib streams, whole and in memory, and its checksum; the only user of zlib and of libdeflate.
 * libdeflate reads what is whole and of usual size twice as fast, and interval histograms of long
 * runs are many; zlib compresses, and reads what is cut off, damaged or bounded.
 */
#ifndef WB_BASE_DEFLATE_H
#define WB_BASE_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"

/* Appends the zlib stream of data; level 1 (fast) to 9 (small). Over out's bound: out has failed.
 */
void wb_deflate(const void *data, size_t n, int level, struct wb_buf *out);

/* Appends what a stream holds. data is exactly one stream with its checksum. WB_CORRUPT when it is
 * damaged, cut off or followed by something, WB_LIMIT when it holds more than out may take (out is
 * full then). What came before the damage or the bound is in out. */
int wb_inflate(const void *data, size_t n, struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;

/* CRC-32 (polynomial 0x04c11db7, reflected) going on from crc; 0 at first. */
uint32_t wb_crc32(uint32_t crc, const void *data, size_t n);

#endif
