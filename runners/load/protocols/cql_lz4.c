#include "runners/load/protocols/cql_lz4.h"

#include <limits.h>
#include <lz4.h>

size_t wb_lz4_pack(const char *data, size_t n, char *out, size_t room)
{
    if (n > LZ4_MAX_INPUT_SIZE)
        return 0;
    return (size_t)LZ4_compress_default(data, out, (int)n, room > INT_MAX ? INT_MAX : (int)room);
}

bool wb_lz4_unpack(const char *block, size_t len, char *out, size_t n)
{
    if (len > INT_MAX || n > INT_MAX)
        return false;
    return LZ4_decompress_safe(block, out, (int)len, (int)n) == (int)n;
}
