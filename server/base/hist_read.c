#include "server/base/hist_read.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/deflate.h"
#include "server/base/mem.h"

#define SIZE_BITS 0xf0u /* of a cookie: word size in V0 and V1, with bit 0 set by some writers */
#define V0_PLAIN 0x1c849308u
#define V0_PACKED 0x1c849309u
#define V1_PLAIN 0x1c849301u
#define V1_PACKED 0x1c849302u
#define V2_PLAIN 0x1c849303u
#define V2_PACKED 0x1c849304u
#define DOUBLE_PLAIN 0x0c72124eu /* wraps a histogram of integers and a ratio */
#define DOUBLE_PACKED 0x0c72124fu

#define HEADER 40u
#define V0_HEADER 32u
#define TEXT_MAX (96u << 20)
#define PLAIN_MAX (64u << 20)
#define DIGITS_MAX 5

void wb_hist_reader_init(struct wb_hist_reader *r)
{
    *r = (struct wb_hist_reader){.plain = WB_BUF_INIT(PLAIN_MAX)};
}

void wb_hist_reader_release(struct wb_hist_reader *r)
{
    free(r->cells);
    free(r->wire);
    wb_buf_release(&r->plain);
    *r = (struct wb_hist_reader){0};
}

static uint64_t be_get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* ---- base64 ---- */

/* Value of each character; NONE sets a bit that no value has. */
#define NONE 0x40
#define X NONE
static const uint8_t base64_values[256] = {
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  62, X,  X,  X,  63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, X,  X,  X,  X,  X,  X,  X,  0,  1,  2,  3,  4,  5,  6,
    7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, X,  X,  X,  X,  X,
    X,  26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
    49, 50, 51, X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
};
#undef X

static size_t padding(const char *s, size_t n)
{
    return s[n - 1] != '=' ? 0 : s[n - 2] != '=' ? 1 : 2;
}

/* Into r->wire; *size bytes. */
static int base64_read(struct wb_hist_reader *r, const char *s, size_t n, size_t *size,
                       struct wb_err *err)
{
    size_t pad, full;
    uint8_t *out;

    if (n == 0 || n % 4 != 0)
        return wb_fail(err, WB_CORRUPT, "histogram: base64 of %zu characters", n);
    wb_grow(&r->wire, &r->wire_cap, n / 4 * 3, 1);
    pad = padding(s, n);
    full = pad > 0 ? n - 4 : n;
    out = r->wire;
    for (size_t i = 0; i < full; i += 4, out += 3) {
        uint32_t c0 = base64_values[(uint8_t)s[i]], c1 = base64_values[(uint8_t)s[i + 1]];
        uint32_t c2 = base64_values[(uint8_t)s[i + 2]], c3 = base64_values[(uint8_t)s[i + 3]];
        uint32_t v = c0 << 18 | c1 << 12 | c2 << 6 | c3;
        if ((c0 | c1 | c2 | c3) & NONE)
            return wb_fail(err, WB_CORRUPT, "histogram: no base64 at character %zu or behind it",
                           i);
        out[0] = (uint8_t)(v >> 16);
        out[1] = (uint8_t)(v >> 8);
        out[2] = (uint8_t)v;
    }
    if (pad > 0) {
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t c = k < 4 - pad ? base64_values[(uint8_t)s[full + k]] : 0;
            if (c & NONE)
                return wb_fail(err, WB_CORRUPT, "histogram: no base64 at character %zu", full + k);
            v = v << 6 | c;
        }
        *out++ = (uint8_t)(v >> 16);
        if (pad == 1)
            *out++ = (uint8_t)(v >> 8);
    }
    *size = (size_t)(out - r->wire);
    return 0;
}

/* ---- counts ---- */

/* The caller made room for the cell. */
static int add_cell(struct wb_hist_reader *r, uint64_t index, uint64_t count, struct wb_err *err)
{
    if (index >= r->shape.ncounts)
        return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
    if (count == 0)
        return 0;
    if (count > INT64_MAX || r->shape.total > INT64_MAX - count)
        return wb_fail(err, WB_CORRUPT, "histogram: the counts add up to more than 2^63");
    r->cells[r->n++] = (struct wb_hist_cell){.index = (uint32_t)index, .count = count};
    r->shape.total += count;
    return 0;
}

/* Bytes used, 0 when the number is cut off. */
static size_t leb_get(const uint8_t *p, size_t n, int64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && i < 9; i++) {
        if (i == 8) {
            v |= (uint64_t)p[i] << 56;
        } else {
            v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
            if (p[i] & 0x80)
                continue;
        }
        *out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
        return i + 1;
    }
    return 0;
}

/* One count of one byte, without branches: zeros and counts alternate as they like. */
#define SMALL_COUNT(b)                                                         \
    do {                                                                       \
        uint32_t zeros_ = -((b)&1u), count_ = (b) / 2 & ~zeros_;               \
        *cell = (struct wb_hist_cell){.index = (uint32_t)at, .count = count_}; \
        cell += count_ > 0;                                                    \
        total += count_;                                                       \
        at += 1 + ((b) / 2 & zeros_);                                          \
    } while (0)

/* A run of counts that are one byte each, the usual ones: 0 to 63, or 1 to 64 zeros. Returns where
 * it ends. */
static const uint8_t *read_small_counts(struct wb_hist_reader *r, const uint8_t *p,
                                        const uint8_t *end, uint64_t *index)
{
    uint64_t at = *index, most = r->shape.ncounts, total = 0, eight;
    struct wb_hist_cell *cell = r->cells + r->n;

    /* Eight at a time, as long as they cannot pass the range. */
    while (end - p >= 8 && at + (uint64_t)8 * 64 <= most) {
        memcpy(&eight, p, sizeof(eight));
        if (eight & 0x8080808080808080u)
            break;
        for (int i = 0; i < 8; i++) {
            uint32_t b = p[i];
            SMALL_COUNT(b);
        }
        p += 8;
    }
    while (p < end && *p < 0x80 && at < most) {
        uint32_t b = *p++;
        SMALL_COUNT(b);
    }
    r->n = (size_t)(cell - r->cells);
    r->shape.total += total;
    *index = at;
    return p;
}

static int read_leb_counts(struct wb_hist_reader *r, const uint8_t *p, size_t n, struct wb_err *err)
{
    const uint8_t *end = p + n;
    uint64_t index = 0;

    /* Cells ascend, so there are never more than the range has. */
    wb_grow(&r->cells, &r->cap, (n < r->shape.ncounts ? n : r->shape.ncounts) + 1,
            sizeof(*r->cells));
    while ((p = read_small_counts(r, p, end, &index)) < end) {
        int64_t v = 0;
        size_t used = leb_get(p, (size_t)(end - p), &v);
        if (used == 0)
            return wb_fail(err, WB_CORRUPT, "histogram: a count is cut off");
        p += used;
        if (v >= 0) {
            if (add_cell(r, index++, (uint64_t)v, err) < 0)
                return -WB_CORRUPT;
        } else if (v == INT64_MIN || index > r->shape.ncounts ||
                   (uint64_t)-v > r->shape.ncounts - index) {
            return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
        } else {
            index += (uint64_t)-v;
        }
    }
    if (index > r->shape.ncounts)
        return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
    if (r->shape.total > INT64_MAX)
        return wb_fail(err, WB_CORRUPT, "histogram: the counts add up to more than 2^63");
    return 0;
}

static int read_word_counts(struct wb_hist_reader *r, const uint8_t *p, size_t n, int word,
                            struct wb_err *err)
{
    if (word != 2 && word != 4 && word != 8)
        return wb_fail(err, WB_CORRUPT, "histogram: counts of %d bytes", word);
    if (n % (size_t)word != 0)
        return wb_fail(err, WB_CORRUPT, "histogram: a count is cut off");
    wb_grow(&r->cells, &r->cap, n < r->shape.ncounts ? n : r->shape.ncounts, sizeof(*r->cells));
    for (size_t i = 0; i < n / (size_t)word; i++) {
        uint64_t count = be_get(p + i * (size_t)word, word);
        /* Zeros behind the range are what some writers fill their buffer with. */
        if (count == 0 && i >= r->shape.ncounts)
            continue;
        if (add_cell(r, i, count, err) < 0)
            return -WB_CORRUPT;
    }
    return 0;
}

/* ---- headers ---- */

static int read_shape(struct wb_hist_reader *r, const uint8_t *digits, const uint8_t *range,
                      struct wb_err *err)
{
    uint64_t d = be_get(digits, 4);
    int rc;

    if (d > DIGITS_MAX)
        return wb_fail(err, WB_CORRUPT, "histogram: %llu digits", (unsigned long long)d);
    rc = wb_hist_shape(&r->shape, (int64_t)be_get(range, 8), (int64_t)be_get(range + 8, 8), (int)d,
                       err);
    if (rc < 0)
        (void)wb_wrap(err, "reading a histogram");
    return rc;
}

static int word_size(uint64_t cookie)
{
    return (int)((cookie & SIZE_BITS) >> 4 & 0xe);
}

static int read_v0(struct wb_hist_reader *r, const uint8_t *p, size_t n, struct wb_err *err)
{
    int rc;

    if (n < V0_HEADER)
        return wb_fail(err, WB_CORRUPT, "histogram: %zu bytes where the header has %u", n,
                       V0_HEADER);
    rc = read_shape(r, p + 4, p + 8, err);
    if (rc < 0)
        return rc;
    return read_word_counts(r, p + V0_HEADER, n - V0_HEADER, word_size(be_get(p, 4)), err);
}

static int read_v1_v2(struct wb_hist_reader *r, const uint8_t *p, size_t n, bool v2,
                      struct wb_err *err)
{
    uint64_t length;
    int rc;

    if (n < HEADER)
        return wb_fail(err, WB_CORRUPT, "histogram: %zu bytes where the header has %u", n, HEADER);
    length = be_get(p + 4, 4);
    if (length > n - HEADER)
        return wb_fail(err, WB_CORRUPT, "histogram: says %llu bytes of counts, has %zu",
                       (unsigned long long)length, n - HEADER);
    rc = read_shape(r, p + 12, p + 16, err);
    if (rc < 0)
        return rc;
    return v2 ? read_leb_counts(r, p + HEADER, length, err)
              : read_word_counts(r, p + HEADER, length, word_size(be_get(p, 4)), err);
}

static int read_plain(struct wb_hist_reader *r, const uint8_t *p, size_t n, struct wb_err *err)
{
    uint64_t cookie = n >= 4 ? be_get(p, 4) & ~(uint64_t)SIZE_BITS : 0;

    if (n < 4)
        return wb_fail(err, WB_CORRUPT, "histogram: %zu bytes are too few", n);
    switch (cookie) {
    case V0_PLAIN:
        return read_v0(r, p, n, err);
    case V1_PLAIN:
        return read_v1_v2(r, p, n, false, err);
    case V2_PLAIN:
        return read_v1_v2(r, p, n, true, err);
    default:
        return wb_fail(err, WB_UNSUPPORTED, "histogram: cookie %08llx is none of V0, V1 and V2%s",
                       (unsigned long long)be_get(p, 4),
                       be_get(p, 4) == DOUBLE_PLAIN || be_get(p, 4) == DOUBLE_PACKED
                           ? ": histograms of floating point values are not read"
                           : "");
    }
}

static bool is_packed(uint64_t cookie)
{
    cookie &= ~(uint64_t)SIZE_BITS;
    return cookie == V0_PACKED || cookie == V1_PACKED || cookie == V2_PACKED;
}

int wb_hist_read(struct wb_hist_reader *r, const char *text, size_t n, struct wb_err *err)
{
    size_t size = 0;
    uint64_t length;
    int rc;

    r->n = 0;
    r->shape = (struct wb_hist){0};
    if (n > TEXT_MAX)
        return wb_fail(err, WB_LIMIT, "histogram: %zu characters, the bound is %u", n, TEXT_MAX);
    rc = base64_read(r, text, n, &size, err);
    if (rc < 0)
        return rc;
    if (size < 8 || !is_packed(be_get(r->wire, 4)))
        return read_plain(r, r->wire, size, err);
    length = be_get(r->wire + 4, 4);
    if (length > size - 8)
        return wb_fail(err, WB_CORRUPT, "histogram: says %llu compressed bytes, has %zu",
                       (unsigned long long)length, size - 8);
    wb_buf_clear(&r->plain);
    rc = wb_inflate(r->wire + 8, length, &r->plain, err);
    if (rc < 0) {
        (void)wb_wrap(err, "histogram");
        return rc;
    }
    return read_plain(r, (const uint8_t *)wb_buf_str(&r->plain), r->plain.len, err);
}

void wb_hist_read_into(const struct wb_hist_reader *r, struct wb_hist *h)
{
    bool same = wb_hist_same_shape(&r->shape, h);

    for (size_t i = 0; i < r->n; i++) {
        const struct wb_hist_cell *c = &r->cells[i];
        int64_t v;
        uint32_t index;
        if (same) {
            wb_hist_count_bucket(h, c->index, c->count);
            continue;
        }
        v = wb_hist_lower(&r->shape, c->index);
        if (v > h->highest) {
            wb_hist_record_n(h, v, c->count);
            continue;
        }
        index = wb_hist_index(h, v);
        wb_hist_count_bucket(h, index, c->count);
    }
}
