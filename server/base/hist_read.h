/*
 * Reading encoded histograms, one after the other with the same memory: the wire forms V0, V1 and
 * V2 of HdrHistogram, plain or compressed, as base64 text. Everything is bounded and checked before
 * anything is counted, so damage never leaves half a histogram behind.
 *
 * Plain forms, big endian. V1 and V2: cookie 4, payload length 4, normalizing offset 4, digits 4,
 * lowest 8, highest 8, ratio (double) 8, counts. V0: cookie 4, digits 4, lowest 8, highest 8, total
 * 8, counts up to the end. Counts of V2 are zig-zag LEB128 of at most 9 bytes, where -n stands for
 * n zeros; those of V0 and V1 are words whose size stands in the cookie. The compressed forms are
 * cookie 4, length 4, zlib stream of the plain form. Counts stand in the order of their values
 * whatever the normalizing offset says: it tells how the writer kept them in memory.
 */
#ifndef WB_BASE_HIST_READ_H
#define WB_BASE_HIST_READ_H

#include "server/base/hist.h"

struct wb_hist_cell {
    uint32_t index; /* of the bucket */
    uint64_t count; /* > 0 */
};

struct wb_hist_reader {
    struct wb_hist shape;       /* parameters of what was read, without counts; total is its sum */
    struct wb_hist_cell *cells; /* in ascending order */
    size_t n, cap;
    uint8_t *wire;
    size_t wire_cap;
    struct wb_buf plain;
};

void wb_hist_reader_init(struct wb_hist_reader *r);
void wb_hist_reader_release(struct wb_hist_reader *r);

/* Reads n bytes of text. WB_CORRUPT, WB_INVALID, WB_LIMIT or WB_UNSUPPORTED; what was read before
 * is then gone. */
int wb_hist_read(struct wb_hist_reader *r, const char *text, size_t n,
                 struct wb_err *err) WB_MUST_CHECK;
/* Counts what was read, once more, into h: bucket by bucket where it has the same shape, else by
 * the lowest value of each bucket. */
void wb_hist_read_into(const struct wb_hist_reader *r, struct wb_hist *h);

/* hist.c: the shape of a histogram (its parameters, ncounts), without memory for counts; as
 * wb_hist_init. */
int wb_hist_shape(struct wb_hist *h, int64_t lowest, int64_t highest, int digits,
                  struct wb_err *err) WB_MUST_CHECK;
/* hist.c: whether counts of one can be added to those of the other, bucket by bucket. */
bool wb_hist_same_shape(const struct wb_hist *a, const struct wb_hist *b);
/* hist.c: adds n > 0 values that lie anywhere in bucket i; min and max become its bounds. */
void wb_hist_count_bucket(struct wb_hist *h, uint32_t index, uint64_t n);

#endif
