#include "runners/load/protocols/cql_murmur.h"

#include <string.h>

#define C1 0x87c37b91114253d5ull
#define C2 0x4cf5ad432745937full

static uint64_t rotate(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

static uint64_t finish(uint64_t v)
{
    v ^= v >> 33;
    v *= 0xff51afd7ed558ccdull;
    v ^= v >> 33;
    v *= 0xc4ceb9fe1a85ec53ull;
    return v ^ v >> 33;
}

/* Up to 8 bytes as a little-endian number, each with its sign. */
static uint64_t tail(const signed char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v ^= (uint64_t)(int64_t)p[i] << (8 * i);
    return v;
}

int64_t wb_cql_token(const void *key, size_t n)
{
    const signed char *p = key;
    uint64_t h1 = 0, h2 = 0, k[2];
    size_t left = n;

    if (n == 0)
        return INT64_MIN;
    for (; left >= 16; left -= 16, p += 16) {
        memcpy(k, p, 16);
        h1 ^= rotate(k[0] * C1, 31) * C2;
        h1 = (rotate(h1, 27) + h2) * 5 + 0x52dce729;
        h2 ^= rotate(k[1] * C2, 33) * C1;
        h2 = (rotate(h2, 31) + h1) * 5 + 0x38495ab5;
    }
    if (left > 8)
        h2 ^= rotate(tail(p + 8, left - 8) * C2, 33) * C1;
    if (left > 0)
        h1 ^= rotate(tail(p, left < 8 ? left : 8) * C1, 31) * C2;
    h1 ^= n;
    h2 ^= n;
    h1 += h2;
    h2 += h1;
    h1 = finish(h1) + finish(h2);
    return h1 == (uint64_t)INT64_MIN ? INT64_MAX : (int64_t)h1;
}
