#include "server/base/hist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/hist_read.h"
#include "server/base/mem.h"

#define COUNTS_MAX (16u << 20) /* 64 MiB of low halves */

static uint32_t half_count(const struct wb_hist *h)
{
    return 1u << h->half_bits;
}

/* Buckets needed so that the last one reaches `highest`. */
static unsigned bucket_count(const struct wb_hist *h)
{
    uint64_t reach = (uint64_t)2 << (h->half_bits + h->unit_bits);
    unsigned n = 1;

    while (reach <= (uint64_t)h->highest) {
        n++;
        reach <<= 1;
    }
    return n;
}

int wb_hist_shape(struct wb_hist *h, int64_t lowest, int64_t highest, int digits,
                  struct wb_err *err)
{
    struct wb_hist v = {.lowest = lowest, .highest = highest, .digits = digits};
    uint64_t single = 2, n;
    unsigned sub_bits = 0;

    if (lowest < 1 || digits < 0 || digits > 5 || highest / 2 < lowest)
        return wb_fail(err, WB_INVALID,
                       "histogram of lowest %lld, highest %lld, %d digits: lowest must be >= 1, "
                       "highest >= 2 * lowest, digits 0 to 5",
                       (long long)lowest, (long long)highest, digits);
    for (int i = 0; i < digits; i++)
        single *= 10;
    while (((uint64_t)1 << sub_bits) < single)
        sub_bits++;
    v.unit_bits = 63u - (unsigned)__builtin_clzll((uint64_t)lowest);
    v.half_bits = sub_bits - 1;
    if (v.unit_bits + v.half_bits > 61)
        return wb_fail(err, WB_INVALID, "histogram of lowest %lld and %d digits: out of range",
                       (long long)lowest, digits);
    v.sub_mask = (((uint64_t)2 << v.half_bits) - 1) << v.unit_bits;
    n = (uint64_t)(bucket_count(&v) + 1) << v.half_bits;
    if (n > COUNTS_MAX)
        return wb_fail(err, WB_LIMIT, "histogram would need %llu counters, the bound is %u",
                       (unsigned long long)n, COUNTS_MAX);
    v.ncounts = (uint32_t)n;
    v.min = INT64_MAX;
    *h = v;
    return 0;
}

int wb_hist_init(struct wb_hist *h, int64_t lowest, int64_t highest, int digits, struct wb_err *err)
{
    int rc = wb_hist_shape(h, lowest, highest, digits, err);

    if (rc == 0)
        h->low = wb_calloc(h->ncounts, sizeof(*h->low));
    return rc;
}

void wb_hist_init_ns(struct wb_hist *h)
{
    struct wb_err err = WB_ERR_INIT;

    if (wb_hist_init(h, 1, WB_HIST_NS_HIGHEST, WB_HIST_DIGITS, &err) < 0)
        abort(); /* the parameters are constants */
}

void wb_hist_release(struct wb_hist *h)
{
    free(h->low);
    free(h->high);
    h->low = h->high = NULL;
    h->ncounts = 0;
    h->total = h->over = 0;
}

/* First bucket in use and the one after the last; both 0 when empty. */
static void used_range(const struct wb_hist *h, uint32_t *from, uint32_t *to)
{
    *from = *to = 0;
    if (h->total == 0)
        return;
    *from = wb_hist_index(h, h->min < h->highest ? h->min : h->highest);
    *to = wb_hist_index(h, h->max < h->highest ? h->max : h->highest) + 1;
}

void wb_hist_clear(struct wb_hist *h)
{
    uint32_t from, to;

    used_range(h, &from, &to);
    if (to > from) {
        memset(h->low + from, 0, (size_t)(to - from) * sizeof(*h->low));
        if (h->high)
            memset(h->high + from, 0, (size_t)(to - from) * sizeof(*h->high));
    }
    h->total = h->over = 0;
    h->sum = 0;
    h->min = INT64_MAX;
    h->max = 0;
}

void wb_hist_carry(struct wb_hist *h, uint32_t index)
{
    if (!h->high)
        h->high = wb_calloc(h->ncounts, sizeof(*h->high));
    h->high[index]++;
}

uint64_t wb_hist_count_at(const struct wb_hist *h, uint32_t index)
{
    return h->low[index] | (h->high ? (uint64_t)h->high[index] << 32 : 0);
}

static void count_add(struct wb_hist *h, uint32_t index, uint64_t n)
{
    uint64_t v = wb_hist_count_at(h, index) + n;

    h->low[index] = (uint32_t)v;
    if (v >> 32) {
        if (!h->high)
            h->high = wb_calloc(h->ncounts, sizeof(*h->high));
        h->high[index] = (uint32_t)(v >> 32);
    }
}

void wb_hist_record_n(struct wb_hist *h, int64_t v, uint64_t n)
{
    if (n == 0)
        return;
    if (v < 0)
        v = 0;
    if (v > h->highest)
        h->over += n;
    count_add(h, wb_hist_index(h, v > h->highest ? h->highest : v), n);
    h->total += n;
    h->sum += (unsigned __int128)(uint64_t)v * n;
    if (v < h->min)
        h->min = v;
    if (v > h->max)
        h->max = v;
}

void wb_hist_record_outside(struct wb_hist *h, int64_t v)
{
    wb_hist_record_n(h, v, 1);
}

void wb_hist_count_bucket(struct wb_hist *h, uint32_t index, uint64_t n)
{
    int64_t lower = wb_hist_lower(h, index), upper = wb_hist_upper(h, index);
    int64_t middle = lower + (upper - lower + 1) / 2;

    count_add(h, index, n);
    h->total += n;
    /* The last bucket may reach past `highest`; its values did not. */
    h->sum += (unsigned __int128)(uint64_t)(middle > h->highest ? lower : middle) * n;
    h->min = lower < h->min ? lower : h->min;
    h->max = upper > h->max ? upper : h->max;
}

bool wb_hist_same_shape(const struct wb_hist *a, const struct wb_hist *b)
{
    return a->unit_bits == b->unit_bits && a->half_bits == b->half_bits &&
           a->ncounts == b->ncounts && a->highest == b->highest;
}

/* What was recorded is not known better than its bucket: max becomes a bucket's bound. */
static void add_other_shape(struct wb_hist *dst, const struct wb_hist *src, uint32_t from,
                            uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        int64_t v = wb_hist_lower(src, i), upper;
        if (wb_hist_count_at(src, i) == 0)
            continue;
        wb_hist_record_n(dst, v, wb_hist_count_at(src, i));
        upper = wb_hist_upper(dst, wb_hist_index(dst, v < dst->highest ? v : dst->highest));
        dst->max = upper > dst->max ? upper : dst->max;
    }
}

void wb_hist_add(struct wb_hist *dst, const struct wb_hist *src)
{
    uint32_t from, to;

    if (src->total == 0)
        return;
    used_range(src, &from, &to);
    if (!wb_hist_same_shape(dst, src)) {
        add_other_shape(dst, src, from, to);
        return;
    }
    if (!dst->high && !src->high) {
        for (uint32_t i = from; i < to; i++) {
            uint64_t v = (uint64_t)dst->low[i] + src->low[i];
            dst->low[i] = (uint32_t)v;
            if (v >> 32)
                wb_hist_carry(dst, i);
        }
    } else {
        for (uint32_t i = from; i < to; i++)
            count_add(dst, i, wb_hist_count_at(src, i));
    }
    dst->total += src->total;
    dst->over += src->over;
    dst->sum += src->sum;
    if (src->min < dst->min)
        dst->min = src->min;
    if (src->max > dst->max)
        dst->max = src->max;
}

/* Shift of a bucket's step: the first two halves share one. */
static unsigned step_bits(const struct wb_hist *h, uint32_t index)
{
    uint32_t bucket = index >> h->half_bits;

    return (bucket > 0 ? bucket - 1 : 0) + h->unit_bits;
}

int64_t wb_hist_lower(const struct wb_hist *h, uint32_t index)
{
    uint64_t sub = index & (half_count(h) - 1);

    if (index >= half_count(h))
        sub += half_count(h);
    return (int64_t)(sub << step_bits(h, index));
}

int64_t wb_hist_upper(const struct wb_hist *h, uint32_t index)
{
    uint64_t step = (uint64_t)1 << step_bits(h, index);

    return (int64_t)((uint64_t)wb_hist_lower(h, index) + (step - 1));
}

int64_t wb_hist_percentile(const struct wb_hist *h, double p)
{
    uint64_t rank, seen = 0;
    uint32_t from, to;
    double exact;

    if (h->total == 0)
        return 0;
    if (!(p > 0))
        return h->min;
    if (p >= 100)
        return h->max;
    /* One step below p, so that p * total / 100 rounding up by an ulp does not skip a value. */
    exact = nextafter(p, -INFINITY) * (double)h->total / 100.0;
    rank = (uint64_t)ceil(exact);
    if (rank < 1)
        rank = 1;
    used_range(h, &from, &to);
    for (uint32_t i = from; i < to; i++) {
        seen += wb_hist_count_at(h, i);
        if (seen >= rank) {
            int64_t v = wb_hist_upper(h, i);
            if (v > h->max)
                return h->max;
            return v < h->min ? h->min : v;
        }
    }
    return h->max;
}

double wb_hist_mean(const struct wb_hist *h)
{
    return h->total > 0 ? (double)h->sum / (double)h->total : 0;
}

static double middle(const struct wb_hist *h, uint32_t index)
{
    uint64_t step = (uint64_t)1 << step_bits(h, index);

    return (double)((uint64_t)wb_hist_lower(h, index) + step / 2);
}

double wb_hist_stddev(const struct wb_hist *h)
{
    double mean = 0, squares = 0;
    uint32_t from, to;

    if (h->total == 0)
        return 0;
    used_range(h, &from, &to);
    for (uint32_t i = from; i < to; i++)
        mean += middle(h, i) * (double)wb_hist_count_at(h, i);
    mean /= (double)h->total;
    for (uint32_t i = from; i < to; i++) {
        double d = middle(h, i) - mean;
        squares += d * d * (double)wb_hist_count_at(h, i);
    }
    return sqrt(squares / (double)h->total);
}
