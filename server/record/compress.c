#include "server/record/compress.h"

#include <zstd.h>

#include "server/base/mem.h"

#define LEVEL 6     /* logs and series: about the size of gzip -9 in a tenth of the time */
#define STEP 131072 /* bytes asked for at a time; a block of zstd */

int wb_compress(const void *data, size_t n, struct wb_buf *out, struct wb_err *err)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    size_t most = ZSTD_compressBound(n), done;
    char *room = wb_buf_room(out, most);

    if (!c || !room) {
        (void)ZSTD_freeCCtx(c);
        return wb_fail(err, WB_LIMIT, "%zu bytes are too many to compress", n);
    }
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    done = ZSTD_compress2(c, room, most, data, n);
    (void)ZSTD_freeCCtx(c);
    if (ZSTD_isError(done))
        return wb_fail(err, WB_IO, "cannot compress %zu bytes: %s", n, ZSTD_getErrorName(done));
    wb_buf_commit(out, done);
    return 0;
}

/* One step: fills at most STEP bytes of out. left is 0 when the frame is complete. */
static int step(ZSTD_DCtx *d, ZSTD_inBuffer *in, struct wb_buf *out, size_t *left,
                struct wb_err *err)
{
    size_t space = out->max - out->len < STEP ? out->max - out->len : STEP;
    char overflow[1];
    ZSTD_outBuffer o = {.dst = space ? wb_buf_room(out, space) : overflow,
                        .size = space ? space : sizeof(overflow)};
    size_t before = in->pos;

    *left = ZSTD_decompressStream(d, &o, in);
    if (ZSTD_isError(*left))
        return wb_fail(err, WB_CORRUPT, "the compressed data is damaged: %s",
                       ZSTD_getErrorName(*left));
    if (!space && o.pos > 0)
        return wb_fail(err, WB_LIMIT, "the compressed data holds more than %zu bytes", out->max);
    if (space)
        wb_buf_commit(out, o.pos);
    if (*left && in->pos == before && o.pos == 0)
        return wb_fail(err, WB_CORRUPT, "the compressed data ends too early");
    return 0;
}

int wb_decompress(const void *data, size_t n, struct wb_buf *out, struct wb_err *err)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    ZSTD_inBuffer in = {.src = data, .size = n};
    size_t left = 1;
    int rc = d ? 0 : wb_fail(err, WB_IO, "cannot set up decompression");

    while (rc == 0 && left)
        rc = step(d, &in, out, &left, err);
    (void)ZSTD_freeDCtx(d);
    if (rc == 0 && in.pos != in.size)
        rc = wb_fail(err, WB_CORRUPT, "%zu bytes follow the compressed data", in.size - in.pos);
    return rc;
}

int wb_decompress_to(const void *data, size_t n, size_t most,
                     int (*sink)(void *arg, const void *piece, size_t n, struct wb_err *err),
                     void *arg, struct wb_err *err)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    ZSTD_inBuffer in = {.src = data, .size = n};
    struct wb_buf piece = WB_BUF_INIT(STEP);
    size_t left = 1, done = 0;
    int rc = d ? 0 : wb_fail(err, WB_IO, "cannot set up decompression");

    while (rc == 0 && left) {
        wb_buf_clear(&piece);
        rc = step(d, &in, &piece, &left, err);
        done += piece.len;
        if (rc == 0 && done > most)
            rc = wb_fail(err, WB_LIMIT, "the compressed data holds more than %zu bytes", most);
        if (rc == 0 && piece.len)
            rc = sink(arg, piece.data, piece.len, err);
    }
    wb_buf_release(&piece);
    (void)ZSTD_freeDCtx(d);
    if (rc == 0 && in.pos != in.size)
        rc = wb_fail(err, WB_CORRUPT, "%zu bytes follow the compressed data", in.size - in.pos);
    return rc;
}
