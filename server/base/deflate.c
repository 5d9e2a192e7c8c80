#include "server/base/deflate.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define STEP 65536 /* bytes asked for at a time */
#define GUESS 8    /* what is compressed here holds mostly less than this times its size */
#define WHOLE_MAX UINT32_MAX /* zlib counts input in 32 bits */

void wb_deflate(const void *data, size_t n, int level, struct wb_buf *out)
{
    uLong size = compressBound((uLong)n);
    char *room = wb_buf_room(out, size);

    if (!room)
        return;
    if (compress2((Bytef *)room, &size, data, (uLong)n, level) != Z_OK)
        abort(); /* the room has the size zlib asks for */
    wb_buf_commit(out, size);
}

/* The usual case: a whole stream that is no more than GUESS times its input, in about half the time
 * that zlib takes. Appends nothing when that fails, for whatever reason. */
static bool inflate_whole(const void *data, size_t n, struct wb_buf *out)
{
    struct libdeflate_decompressor *d;
    size_t space = out->max - out->len, room, got = 0, used = 0;
    enum libdeflate_result rc;
    char *to;

    room = n < STEP ? GUESS * n + STEP / 8 : GUESS * n;
    if (room > space)
        room = space;
    if (n > WHOLE_MAX / GUESS || room == 0)
        return false;
    d = libdeflate_alloc_decompressor();
    if (d == NULL)
        return false;
    to = wb_buf_room(out, room);
    rc = libdeflate_zlib_decompress_ex(d, data, n, to, room, &used, &got);
    libdeflate_free_decompressor(d);
    if (rc != LIBDEFLATE_SUCCESS || used != n)
        return false;
    wb_buf_commit(out, got);
    return true;
}

/* One step: fills at most STEP bytes of out; at the bound one byte more, to see whether the
 * stream ends there. The result is zlib's; over the bound Z_MEM_ERROR. */
static int step(z_stream *z, struct wb_buf *out)
{
    size_t space = out->max - out->len < STEP ? out->max - out->len : STEP;
    Bytef overflow[1];
    int rc;

    z->next_out = space ? (Bytef *)wb_buf_room(out, space) : overflow;
    z->avail_out = space ? (uInt)space : 1;
    rc = inflate(z, Z_NO_FLUSH);
    if (space)
        wb_buf_commit(out, space - z->avail_out);
    else if (z->avail_out == 0)
        return Z_MEM_ERROR;
    return rc;
}

int wb_inflate(const void *data, size_t n, struct wb_buf *out, struct wb_err *err)
{
    z_stream z = {0};
    int rc;

    if (inflate_whole(data, n, out))
        return 0;
    if (n > WHOLE_MAX)
        return wb_fail(err, WB_LIMIT, "%zu bytes are too many to decompress", n);
    if (inflateInit(&z) != Z_OK)
        return wb_fail(err, WB_LIMIT, "zlib has no memory");
    z.next_in = (z_const Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    do {
        rc = step(&z, out);
    } while (rc == Z_OK); /* without progress it is Z_BUF_ERROR */
    (void)inflateEnd(&z);
    if (rc == Z_MEM_ERROR)
        return wb_fail(err, WB_LIMIT, "the zlib stream holds more than %zu bytes", out->max);
    if (rc != Z_STREAM_END)
        return wb_fail(err, WB_CORRUPT, "the zlib stream is damaged or cut off");
    if (z.avail_in)
        return wb_fail(err, WB_CORRUPT, "%u bytes follow the zlib stream", z.avail_in);
    return 0;
}

uint32_t wb_crc32(uint32_t crc, const void *data, size_t n)
{
    return (uint32_t)crc32_z(crc, data, n);
}
