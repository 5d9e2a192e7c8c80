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
#define NO_BASE64 0xff

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

/* Value of each character + 1; 0 for those that are none. */
static const uint8_t base64_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

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
    for (size_t i = 0; i < n; i += 4) {
        size_t have = i < full ? 4 : 4 - pad;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t d = k < have ? base64_values[(uint8_t)s[i + k]] : 1;
            if (d == 0)
                return wb_fail(err, WB_CORRUPT, "histogram: no base64 at character %zu", i + k);
            v = v << 6 | (d - 1);
        }
        *out++ = (uint8_t)(v >> 16);
        *out++ = (uint8_t)(v >> 8);
        *out++ = (uint8_t)v;
    }
    *size = (size_t)(out - r->wire) - pad;
    return 0;
}

/* ---- counts ---- */

static int add_cell(struct wb_hist_reader *r, uint64_t index, uint64_t count, struct wb_err *err)
{
    if (index >= r->shape.ncounts)
        return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
    if (count == 0)
        return 0;
    if (count > INT64_MAX || r->shape.total > INT64_MAX - count)
        return wb_fail(err, WB_CORRUPT, "histogram: the counts add up to more than 2^63");
    wb_grow(&r->cells, &r->cap, r->n + 1, sizeof(*r->cells));
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

static int read_leb_counts(struct wb_hist_reader *r, const uint8_t *p, size_t n, struct wb_err *err)
{
    uint64_t index = 0;

    while (n > 0) {
        int64_t v = 0;
        size_t used = leb_get(p, n, &v);
        if (used == 0)
            return wb_fail(err, WB_CORRUPT, "histogram: a count is cut off");
        p += used;
        n -= used;
        if (v >= 0) {
            if (add_cell(r, index++, (uint64_t)v, err) < 0)
                return -WB_CORRUPT;
        } else if (v == INT64_MIN || (uint64_t)-v > r->shape.ncounts - index) {
            return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
        } else {
            index += (uint64_t)-v;
        }
    }
    return 0;
}

static int read_word_counts(struct wb_hist_reader *r, const uint8_t *p, size_t n, int word,
                            struct wb_err *err)
{
    if (word != 2 && word != 4 && word != 8)
        return wb_fail(err, WB_CORRUPT, "histogram: counts of %d bytes", word);
    if (n % (size_t)word != 0)
        return wb_fail(err, WB_CORRUPT, "histogram: a count is cut off");
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
    r->ratio = 1;
    return read_word_counts(r, p + V0_HEADER, n - V0_HEADER, word_size(be_get(p, 4)), err);
}

static int read_v1_v2(struct wb_hist_reader *r, const uint8_t *p, size_t n, bool v2,
                      struct wb_err *err)
{
    uint64_t length, bits;
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
    bits = be_get(p + 32, 8);
    memcpy(&r->ratio, &bits, sizeof(r->ratio));
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
