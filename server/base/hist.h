/*
 * HDR histogram: integer values with a fixed number of significant digits over a wide range, in
 * the bucket layout, rules and wire format (V2) of HdrHistogram, so that files can be exchanged
 * with its tools.
 *
 * Values are whatever unit the owner counts in; in this tree ns. One thread owns a histogram;
 * histograms of several threads are merged, percentiles are never averaged.
 *
 * Invariants: total is the sum of all counts; min and max are exact for recorded values (after
 * decoding: bucket bounds); max may pass `highest` when over > 0.
 */
#ifndef WB_BASE_HIST_H
#define WB_BASE_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"

#define WB_HIST_NS_HIGHEST 3600000000000LL /* 1 h */
#define WB_HIST_DIGITS 3

struct wb_hist {
    int64_t lowest, highest; /* range with full resolution */
    int digits;              /* significant decimal digits, 0..5 */
    unsigned unit_bits;      /* log2 of the smallest distinguished step */
    unsigned half_bits;      /* log2 of half the sub-buckets of a bucket */
    uint64_t sub_mask;       /* (2^(half_bits+1) - 1) << unit_bits */
    uint32_t ncounts;
    uint32_t *low;  /* low halves of the counts */
    uint32_t *high; /* high halves, NULL until a low half has run over */
    uint64_t total, over;
    int64_t min, max; /* INT64_MAX and 0 while empty */
    unsigned __int128 sum;
};

/* lowest >= 1, highest >= 2 * lowest, digits 0..5, at most 64 MiB of counts; else WB_INVALID. */
int wb_hist_init(struct wb_hist *h, int64_t lowest, int64_t highest, int digits,
                 struct wb_err *err) WB_MUST_CHECK;
/* The house kind: 1 ns to 1 h, 3 digits; 136 KiB of address space, touched as used. */
void wb_hist_init_ns(struct wb_hist *h);
void wb_hist_release(struct wb_hist *h);
void wb_hist_clear(struct wb_hist *h); /* cost follows the range in use */

/* Cold parts of recording. */
void wb_hist_carry(struct wb_hist *h, uint32_t index);
void wb_hist_record_outside(struct wb_hist *h, int64_t v);

static inline uint32_t wb_hist_index(const struct wb_hist *h, int64_t v)
{
    unsigned top = 64u - (unsigned)__builtin_clzll((uint64_t)v | h->sub_mask);
    unsigned bucket = top - h->unit_bits - h->half_bits - 1;

    return (bucket << h->half_bits) + (uint32_t)((uint64_t)v >> (bucket + h->unit_bits));
}

/* Counts one value. Above `highest` it is counted in the last bucket and in `over`; below 0 it
 * counts as 0. */
static inline void wb_hist_record(struct wb_hist *h, int64_t v)
{
    uint32_t i;

    if (__builtin_expect((uint64_t)v > (uint64_t)h->highest, 0)) {
        wb_hist_record_outside(h, v);
        return;
    }
    i = wb_hist_index(h, v);
    if (__builtin_expect(++h->low[i] == 0, 0))
        wb_hist_carry(h, i);
    h->total++;
    h->sum += (uint64_t)v;
    if (v < h->min)
        h->min = v;
    if (v > h->max)
        h->max = v;
}

/* wb_hist_record for a histogram made by wb_hist_init_ns: the same, with the shape known to the
 * compiler. */
static inline void wb_hist_record_ns(struct wb_hist *h, int64_t v)
{
    unsigned bucket;
    uint32_t i;

    if (__builtin_expect((uint64_t)v > (uint64_t)WB_HIST_NS_HIGHEST, 0)) {
        wb_hist_record_outside(h, v);
        return;
    }
    bucket = 53u - (unsigned)__builtin_clzll((uint64_t)v | 2047);
    i = (bucket << 10) + (uint32_t)((uint64_t)v >> bucket);
    if (__builtin_expect(++h->low[i] == 0, 0))
        wb_hist_carry(h, i);
    h->total++;
    h->sum += (uint64_t)v;
    if (v < h->min)
        h->min = v;
    if (v > h->max)
        h->max = v;
}

void wb_hist_record_n(struct wb_hist *h, int64_t v, uint64_t n);
/* Adds all of src; exact bucket by bucket when both have the same parameters, else by the lowest
 * value of each bucket of src (then max is the bound of a bucket). */
void wb_hist_add(struct wb_hist *dst, const struct wb_hist *src);

uint64_t wb_hist_count_at(const struct wb_hist *h, uint32_t index);
/* Bounds of a bucket: all values from lower to upper are counted in it. */
int64_t wb_hist_lower(const struct wb_hist *h, uint32_t index);
int64_t wb_hist_upper(const struct wb_hist *h, uint32_t index);

/* The value below or at which p percent of the values are: upper bound of the bucket holding the
 * ceil(p/100*total)-th value, clamped to [min, max]. p <= 0 is min; p >= 100 is max; empty is 0. */
int64_t wb_hist_percentile(const struct wb_hist *h, double p);
double wb_hist_mean(const struct wb_hist *h);   /* 0 when empty */
double wb_hist_stddev(const struct wb_hist *h); /* of bucket middles, population; 0 when empty */

/* Appends the base64 text of the zlib-compressed V2 form ("HISTFAAA..."). */
void wb_hist_encode(const struct wb_hist *h, struct wb_buf *out);
/* Reads such a text (compressed or plain V2) of n bytes into a new histogram; everything is
 * bounded and checked. WB_CORRUPT or WB_UNSUPPORTED (another version) name what is wrong. */
int wb_hist_decode(const char *text, size_t n, struct wb_hist *out,
                   struct wb_err *err) WB_MUST_CHECK;

/* Interval log, format 1.3: comment and legend lines, then one line a histogram with start and
 * LENGTH of the interval in seconds and the maximum in ms. */
void wb_hist_log_head(struct wb_buf *out, const char *program, int64_t start_unix_ms);
/* start_ns counts from the log's StartTime. tag NULL: none; it has no comma, blank or newline. */
void wb_hist_log_line(struct wb_buf *out, const char *tag, int64_t start_ns, int64_t length_ns,
                      const struct wb_hist *h);

#endif
