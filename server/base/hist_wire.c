/*
 * Writing an HDR histogram in the V2 wire form (described in hist_read.h), and the interval log.
 */
#include "server/base/hist.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/deflate.h"
#include "server/base/hist_read.h"
#include "server/base/mem.h"

#define COOKIE_PLAIN 0x1c849303u
#define COOKIE_COMPRESSED 0x1c849304u
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

static void be_put(struct wb_buf *b, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        wb_buf_addc(b, (char)(uint8_t)(v >> (8 * i)));
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

int wb_hist_decode(const char *text, size_t n, struct wb_hist *out, struct wb_err *err)
{
    struct wb_hist_reader r;
    int rc;

    wb_hist_reader_init(&r);
    rc = wb_hist_read(&r, text, n, err);
    if (rc == 0) {
        struct wb_hist h;
        rc = wb_hist_init(&h, r.shape.lowest, r.shape.highest, r.shape.digits, err);
        if (rc == 0) {
            wb_hist_read_into(&r, &h);
            *out = h;
        }
    }
    wb_hist_reader_release(&r);
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
