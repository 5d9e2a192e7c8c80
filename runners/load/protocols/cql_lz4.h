/*
 * LZ4 blocks; the only user of liblz4.
 */
#ifndef WB_LOAD_CQL_LZ4_H
#define WB_LOAD_CQL_LZ4_H

#include <stdbool.h>
#include <stddef.h>

/* Compresses n bytes (at most 2 GiB) into at most `room`; returns the size, 0 when it is too small.
 */
size_t wb_lz4_pack(const char *data, size_t n, char *out, size_t room);
/* Whether a block holds exactly n bytes, which are then at out. */
bool wb_lz4_unpack(const char *block, size_t len, char *out, size_t n);

#endif
