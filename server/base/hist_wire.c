/*
 * The V2 wire form of an HDR histogram and the interval log. Layout of the plain form, big endian:
 * cookie 4, payload length 4, normalizing offset 4, digits 4, lowest 8, highest 8, double 8, then
 * counts as zig-zag LEB128 of at most 9 bytes, where -n stands for n zero counts. The compressed
 * form is cookie 4, length 4, zlib stream of the plain form.
 */
#include "server/base/hist.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/deflate.h"
#include "server/base/mem.h"

#define COOKIE_PLAIN 0x1c849303u
#define COOKIE_COMPRESSED 0x1c849304u
#define COOKIE_SIZE_BITS 0xf0u /* word size; 1 means the LEB128 form */
#define HEADER 40u
#define TEXT_MAX (96u << 20)
#define PLAIN_MAX (64u << 20)

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64_add(struct wb_buf *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        char q[4];
        if (i + 1 < n)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            v |= p[i + 2];
        q[0] = alphabet[v >> 18];
        q[1] = alphabet[v >> 12 & 63];
        q[2] = i + 1 < n ? alphabet[v >> 6 & 63] : '=';
        q[3] = i + 2 < n ? alphabet[v & 63] : '=';
        wb_buf_add(out, q, sizeof(q));
    }
}

static int base64_value(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

/* *out is owned by the caller. */
static int base64_read(const char *s, size_t n, uint8_t **out, size_t *size, struct wb_err *err)
{
    WB_AUTO_FREE uint8_t *p = NULL;
    size_t len = 0;

    if (n == 0 || n % 4 != 0)
        return wb_fail(err, WB_CORRUPT, "histogram: base64 of %zu characters", n);
    p = wb_calloc(n / 4 * 3, 1);
    for (size_t i = 0; i < n; i += 4) {
        int pad = 0;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = base64_value(s[i + k]);
            if (s[i + k] == '=' && i + 4 == n && k >= 2) {
                pad++;
                d = 0;
            } else if (d < 0 || pad > 0) {
                return wb_fail(err, WB_CORRUPT, "histogram: no base64 at character %zu", i + k);
            }
            v = v << 6 | (uint32_t)d;
        }
        p[len++] = (uint8_t)(v >> 16);
        if (pad < 2)
            p[len++] = (uint8_t)(v >> 8);
        if (pad < 1)
            p[len++] = (uint8_t)v;
    }
    *out = WB_STEAL(p);
    *size = len;
    return 0;
}

static void be_put(struct wb_buf *b, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        wb_buf_addc(b, (char)(uint8_t)(v >> (8 * i)));
}

static uint64_t be_get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static void leb_put(struct wb_buf *b, int64_t signed_v)
{
    uint64_t v = ((uint64_t)signed_v << 1) ^ (uint64_t)(signed_v >> 63);

    for (int i = 0; i < 8 && v >> 7; i++) {
        wb_buf_addc(b, (char)(uint8_t)(v | 0x80));
        v >>= 7;
    }
    wb_buf_addc(b, (char)(uint8_t)v);
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

static void plain_form(const struct wb_hist *h, struct wb_buf *b)
{
    uint32_t limit = wb_hist_index(h, h->max < h->highest ? h->max : h->highest) + 1;
    struct wb_buf counts = WB_BUF_INIT(PLAIN_MAX);
    double ratio = 1.0;
    uint64_t ratio_bits;

    for (uint32_t i = 0; i < limit;) {
        uint64_t n = wb_hist_count_at(h, i);
        int64_t zeros = 0;
        while (i < limit && wb_hist_count_at(h, i) == 0) {
            zeros++;
            i++;
        }
        if (zeros > 0) {
            leb_put(&counts, zeros > 1 ? -zeros : 0);
            continue;
        }
        leb_put(&counts, (int64_t)n);
        i++;
    }
    memcpy(&ratio_bits, &ratio, sizeof(ratio_bits));
    be_put(b, COOKIE_PLAIN | 0x10, 4);
    be_put(b, counts.len, 4);
    be_put(b, 0, 4);
    be_put(b, (uint64_t)h->digits, 4);
    be_put(b, (uint64_t)h->lowest, 8);
    be_put(b, (uint64_t)h->highest, 8);
    be_put(b, ratio_bits, 8);
    wb_buf_add(b, wb_buf_str(&counts), counts.len);
    wb_buf_release(&counts);
}

void wb_hist_encode(const struct wb_hist *h, struct wb_buf *out)
{
    struct wb_buf plain = WB_BUF_INIT(PLAIN_MAX);
    struct wb_buf wire = WB_BUF_INIT(PLAIN_MAX);
    struct wb_buf packed = WB_BUF_INIT(2 * PLAIN_MAX);

    plain_form(h, &plain);
    wb_deflate(wb_buf_str(&plain), plain.len, 9, &packed);
    if (plain.failed || packed.failed)
        abort(); /* the buffers have the sizes a histogram needs at most */
    be_put(&wire, COOKIE_COMPRESSED | 0x10, 4);
    be_put(&wire, packed.len, 4);
    wb_buf_add(&wire, packed.data, packed.len);
    wb_buf_release(&packed);
    base64_add(out, (const uint8_t *)wb_buf_str(&wire), wire.len);
    wb_buf_release(&plain);
    wb_buf_release(&wire);
}

static int read_counts(struct wb_hist *h, const uint8_t *p, size_t n, struct wb_err *err)
{
    uint64_t index = 0, total = 0;

    while (n > 0) {
        int64_t v = 0;
        size_t used = leb_get(p, n, &v);
        if (used == 0)
            return wb_fail(err, WB_CORRUPT, "histogram: a count is cut off");
        p += used;
        n -= used;
        if (v == INT64_MIN || (v < 0 && (uint64_t)-v > h->ncounts - index) ||
            (v >= 0 && index >= h->ncounts))
            return wb_fail(err, WB_CORRUPT, "histogram: more counts than its range has");
        if (v < 0) {
            index += (uint64_t)-v;
            continue;
        }
        if (total + (uint64_t)v > INT64_MAX)
            return wb_fail(err, WB_CORRUPT, "histogram: the counts add up to more than 2^63");
        total += (uint64_t)v;
        if (v > 0) {
            int64_t lower = wb_hist_lower(h, (uint32_t)index);
            int64_t upper = wb_hist_upper(h, (uint32_t)index);
            int64_t mid = lower + (upper - lower + 1) / 2;
            /* The last bucket may reach past `highest`; its values did not. */
            wb_hist_record_n(h, mid > h->highest ? lower : mid, (uint64_t)v);
            h->min = lower < h->min ? lower : h->min;
            h->max = upper > h->max ? upper : h->max;
        }
        index++;
    }
    return 0;
}

static int read_plain(const uint8_t *p, size_t n, struct wb_hist *out, struct wb_err *err)
{
    struct wb_hist h = {0};
    uint64_t length;
    int rc;

    if (n < HEADER)
        return wb_fail(err, WB_CORRUPT, "histogram: %zu bytes where the header has %u", n, HEADER);
    if ((be_get(p, 4) & ~(uint64_t)COOKIE_SIZE_BITS) != COOKIE_PLAIN)
        return wb_fail(err, WB_UNSUPPORTED,
                       "histogram: cookie %08llx is not that of a V2 histogram",
                       (unsigned long long)be_get(p, 4));
    length = be_get(p + 4, 4);
    if (length > n - HEADER)
        return wb_fail(err, WB_CORRUPT, "histogram: says %llu bytes of counts, has %zu",
                       (unsigned long long)length, n - HEADER);
    if (be_get(p + 8, 4) != 0)
        return wb_fail(err, WB_UNSUPPORTED, "histogram: shifted values (normalizing offset)");
    if (be_get(p + 12, 4) > 5)
        return wb_fail(err, WB_CORRUPT, "histogram: %llu digits",
                       (unsigned long long)be_get(p + 12, 4));
    rc = wb_hist_init(&h, (int64_t)be_get(p + 16, 8), (int64_t)be_get(p + 24, 8),
                      (int)be_get(p + 12, 4), err);
    if (rc < 0) {
        (void)wb_wrap(err, "reading a histogram");
        return rc;
    }
    rc = read_counts(&h, p + HEADER, length, err);
    if (rc < 0) {
        wb_hist_release(&h);
        return rc;
    }
    *out = h;
    return 0;
}

int wb_hist_decode(const char *text, size_t n, struct wb_hist *out, struct wb_err *err)
{
    struct wb_buf plain = WB_BUF_INIT(PLAIN_MAX);
    WB_AUTO_FREE uint8_t *wire = NULL;
    size_t size = 0;
    uint64_t length;
    int rc;

    if (n > TEXT_MAX)
        return wb_fail(err, WB_LIMIT, "histogram: %zu characters, the bound is %u", n, TEXT_MAX);
    rc = base64_read(text, n, &wire, &size, err);
    if (rc < 0)
        return rc;
    if (size < 8 || (be_get(wire, 4) & ~(uint64_t)COOKIE_SIZE_BITS) != COOKIE_COMPRESSED)
        return read_plain(wire, size, out, err);
    length = be_get(wire + 4, 4);
    if (length > size - 8)
        return wb_fail(err, WB_CORRUPT, "histogram: says %llu compressed bytes, has %zu",
                       (unsigned long long)length, size - 8);
    rc = wb_inflate(wire + 8, length, &plain, err);
    if (rc < 0)
        (void)wb_wrap(err, "histogram");
    else
        rc = read_plain((const uint8_t *)wb_buf_str(&plain), plain.len, out, err);
    wb_buf_release(&plain);
    return rc;
}

void wb_hist_log_head(struct wb_buf *out, const char *program, int64_t start_unix_ms)
{
    wb_buf_addf(out, "#[Logged with %s]\n#[Histogram log format version 1.3]\n", program);
    wb_buf_addf(out, "#[StartTime: %lld.%03lld (seconds since epoch), ",
                (long long)(start_unix_ms / 1000), (long long)(start_unix_ms % 1000));
    wb_format_time(start_unix_ms, out);
    wb_buf_adds(out, "]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
                     "\"Interval_Compressed_Histogram\"\n");
}

void wb_hist_log_line(struct wb_buf *out, const char *tag, int64_t start_ns, int64_t length_ns,
                      const struct wb_hist *h)
{
    if (tag)
        wb_buf_addf(out, "Tag=%s,", tag);
    wb_buf_addf(out, "%.3f,%.3f,%.3f,", (double)start_ns / 1e9, (double)length_ns / 1e9,
                (double)h->max / 1e6);
    wb_hist_encode(h, out);
    wb_buf_addc(out, '\n');
}
