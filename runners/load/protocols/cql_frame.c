#include "runners/load/protocols/cql_frame.h"

#include <stdlib.h>

#include "runners/load/protocols/cql_lz4.h"
#include "server/base/deflate.h"
#include "server/base/mem.h"

#define CRC24_FIRST 0x875060u
#define CRC24_POLYNOMIAL 0x1974f0bu
#define LENGTH_BITS 17

/* --- segments out --- */

uint32_t wb_cql_crc24(uint64_t bytes, int n)
{
    uint32_t crc = CRC24_FIRST;

    for (; n > 0; n--, bytes >>= 8) {
        crc ^= (uint32_t)(bytes & 0xff) << 16;
        for (int i = 0; i < 8; i++) {
            crc <<= 1;
            crc ^= crc & 0x1000000 ? CRC24_POLYNOMIAL : 0;
        }
    }
    return crc;
}

uint32_t wb_cql_crc32(const void *data, size_t n)
{
    /* The checksum of the four bytes FA 2D 55 CA, which are fed before the payload. */
    return wb_crc32(wb_crc32(0, "\xfa\x2d\x55\xca", 4), data, n);
}

static void put_little(char *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++, v >>= 8)
        out[i] = (char)v;
}

static uint64_t get_little(const char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = n; i > 0; i--)
        v = v << 8 | (unsigned char)p[i - 1];
    return v;
}

char *wb_cql_segment_close(char *seg, size_t n, bool whole, bool lz4, char *scratch)
{
    size_t head = wb_cql_segment_head(lz4), packed;
    char *payload = seg + head;
    uint64_t h = n;

    if (lz4) {
        packed = wb_lz4_pack(payload, n, scratch, n);
        if (packed > 0 && packed < n) {
            h = packed | (uint64_t)n << LENGTH_BITS;
            memcpy(payload, scratch, packed);
            n = packed;
        }
        h |= (uint64_t)whole << (2 * LENGTH_BITS);
    } else {
        h |= (uint64_t)whole << LENGTH_BITS;
    }
    put_little(seg, h, head - 3);
    put_little(seg + head - 3, wb_cql_crc24(h, (int)head - 3), 3);
    put_little(payload + n, wb_cql_crc32(payload, n), 4);
    return payload + n + 4;
}

size_t wb_cql_segments_max(size_t n)
{
    return n + (n / WB_CQL_SEGMENT_MAX + 1) * WB_CQL_SEGMENT_EXTRA;
}

char *wb_cql_segments_cut(char *out, size_t n, bool lz4, char *scratch)
{
    const char *from = out + wb_cql_segments_max(n) - n;

    while (n > 0) { /* what lies in front of `from` is room for the heads and ends to come */
        size_t piece = n < WB_CQL_SEGMENT_MAX ? n : WB_CQL_SEGMENT_MAX;
        memmove(out + wb_cql_segment_head(lz4), from, piece);
        out = wb_cql_segment_close(out, piece, false, lz4, scratch);
        from += piece;
        n -= piece;
    }
    return out;
}

char *wb_cql_envelope_pack(char *p, size_t n, char *scratch)
{
    char *body = p + WB_CQL_HEADER;
    size_t len = n - WB_CQL_HEADER, packed = len > 4 ? wb_lz4_pack(body, len, scratch, len - 4) : 0;

    if (packed == 0)
        return p + n;
    p[1] = (char)(p[1] | WB_CQL_COMPRESSED);
    wb_cql_put32(p + WB_CQL_HEADER - 4, (uint32_t)packed + 4);
    memcpy(wb_cql_put32(body, (uint32_t)len), scratch, packed);
    return body + 4 + packed;
}

void wb_cql_wrap(const struct wb_cql_reader *r, const struct wb_buf *envelope, struct wb_buf *out)
{
    size_t head = wb_cql_segment_head(r->lz4);
    WB_AUTO_FREE char *scratch = NULL;
    char *seg;

    if (!r->framed) {
        wb_buf_add(out, envelope->data, envelope->len);
        return;
    }
    seg = wb_buf_room(out, envelope->len + WB_CQL_SEGMENT_EXTRA);
    if (!seg)
        return;
    scratch = wb_calloc(envelope->len, 1);
    memcpy(seg + head, envelope->data, envelope->len);
    wb_buf_commit(out,
                  (size_t)(wb_cql_segment_close(seg, envelope->len, true, r->lz4, scratch) - seg));
}

/* --- reading --- */

void wb_cql_reader_init(struct wb_cql_reader *r, unsigned version, bool lz4)
{
    *r = (struct wb_cql_reader){.version = (uint8_t)version,
                                .lz4 = lz4,
                                .cut = WB_BUF_INIT(WB_CQL_BODY_MAX + WB_CQL_HEADER),
                                .large = WB_BUF_INIT(WB_CQL_BODY_MAX + WB_CQL_HEADER)};
}

void wb_cql_reader_release(struct wb_cql_reader *r)
{
    wb_buf_release(&r->cut);
    wb_buf_release(&r->large);
    free(r->plain);
    *r = (struct wb_cql_reader){0};
}

static int broken(struct wb_cql_reader *r, const char *why)
{
    r->why = why;
    return -1;
}

static char *plain_room(struct wb_cql_reader *r, size_t n)
{
    wb_grow(&r->plain, &r->plain_cap, n, 1);
    return r->plain;
}

/* Passes what may stand in front of a message. */
static int skip_prefix(struct wb_cql_reader *r, unsigned flags, struct wb_cql_envelope *e)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);

    if (flags & WB_CQL_TRACING)
        (void)wb_cql_take(&c, 16);
    if (flags & WB_CQL_WARNING)
        for (unsigned n = wb_cql_take16(&c); n > 0 && !c.bad; n--)
            (void)wb_cql_take_string(&c);
    if (flags & WB_CQL_PAYLOAD) {
        for (unsigned n = wb_cql_take16(&c); n > 0 && !c.bad; n--) {
            (void)wb_cql_take_string(&c);
            (void)wb_cql_take_bytes(&c);
        }
    }
    if (c.bad)
        return broken(r, "an envelope is too short for its flags");
    e->n = (size_t)(c.end - c.p);
    e->body = c.p;
    return 0;
}

static int unpack_body(struct wb_cql_reader *r, struct wb_cql_envelope *e)
{
    uint32_t n;

    if (r->framed || !r->lz4)
        return broken(r, "an envelope is compressed, which was not agreed");
    if (e->n < 4)
        return broken(r, "a compressed envelope has no length");
    n = wb_cql_get32(e->body);
    if (n > WB_CQL_BODY_MAX)
        return broken(r, "a compressed envelope is too long");
    if (!wb_lz4_unpack(e->body + 4, e->n - 4, plain_room(r, n + 1), n))
        return broken(r, "a compressed envelope is damaged");
    e->body = r->plain;
    e->n = n;
    return 0;
}

/* p has a whole envelope with a body of n bytes. */
static inline int take_envelope(struct wb_cql_reader *r, const char *p, size_t n, wb_cql_on on,
                                void *arg)
{
    unsigned flags = (unsigned char)p[1];
    struct wb_cql_envelope e = {.version = p[0] & 0x7f,
                                .opcode = (uint8_t)p[4],
                                .stream = (int16_t)wb_cql_get16(p + 2),
                                .body = p + WB_CQL_HEADER,
                                .n = n};

    if (!(p[0] & WB_CQL_REPLY) != r->server)
        return broken(r, r->server ? "an envelope is an answer, not a request"
                                   : "an envelope is a request, not an answer");
    /* A server that does not know the version says so in one of its own. */
    if (e.version != r->version && e.opcode != WB_CQL_ERROR && !r->server)
        return broken(r, "an envelope has another version");
    if (__builtin_expect(flags != 0, 0)) {
        if ((flags & WB_CQL_COMPRESSED) && unpack_body(r, &e) < 0)
            return -1;
        if (skip_prefix(r, flags, &e) < 0)
            return -1;
    }
    return on(arg, &e);
}

/* The payload of a segment that holds whole envelopes. */
static int take_payload(struct wb_cql_reader *r, const char *p, size_t n, wb_cql_on on, void *arg)
{
    const char *end = p + n;

    if (r->large.len > 0)
        return broken(r, "a long envelope is cut off by another segment");
    while (p < end) {
        size_t left = (size_t)(end - p), body;
        int rc;
        if (left < WB_CQL_HEADER)
            return broken(r, "a segment ends within an envelope");
        body = wb_cql_get32(p + 5);
        if (body > left - WB_CQL_HEADER)
            return broken(r, "a segment ends within an envelope");
        rc = take_envelope(r, p, body, on, arg);
        if (rc < 0)
            return rc;
        p += WB_CQL_HEADER + body;
    }
    return 0;
}

/* A piece of an envelope that is longer than a segment. */
static int take_piece(struct wb_cql_reader *r, const char *p, size_t n, wb_cql_on on, void *arg)
{
    uint32_t body;
    int rc;

    wb_buf_add(&r->large, p, n);
    if (r->large.failed)
        return broken(r, "an envelope is too long");
    if (r->large.len < WB_CQL_HEADER)
        return 0;
    body = wb_cql_get32(r->large.data + 5);
    if (body > WB_CQL_BODY_MAX)
        return broken(r, "an envelope is too long");
    if (r->large.len < WB_CQL_HEADER + (size_t)body)
        return 0;
    if (r->large.len > WB_CQL_HEADER + (size_t)body)
        return broken(r, "a long envelope has bytes of another one");
    rc = take_envelope(r, r->large.data, body, on, arg);
    wb_buf_clear(&r->large);
    return rc;
}

/* p has a whole segment; its header was checked. */
static int take_segment(struct wb_cql_reader *r, const char *p, wb_cql_on on, void *arg)
{
    size_t head = wb_cql_segment_head(r->lz4);
    uint64_t h = get_little(p, head - 3);
    size_t n = h & WB_CQL_SEGMENT_MAX, plain = r->lz4 ? h >> LENGTH_BITS & WB_CQL_SEGMENT_MAX : 0;
    bool whole = h >> (r->lz4 ? 2 * LENGTH_BITS : LENGTH_BITS) & 1;
    const char *payload = p + head;

    if (wb_cql_crc32(payload, n) != get_little(payload + n, 4))
        return broken(r, "a segment has a wrong checksum");
    if (plain > 0) {
        if (!wb_lz4_unpack(payload, n, plain_room(r, plain), plain))
            return broken(r, "a compressed segment is damaged");
        payload = r->plain;
        n = plain;
    }
    return whole ? take_payload(r, payload, n, on, arg) : take_piece(r, payload, n, on, arg);
}

/* Length of the segment or bare envelope that begins with the n bytes at p; *known tells whether
 * they reach for that, else it is the least length that does. 0 when it is broken. */
static size_t unit_length(struct wb_cql_reader *r, const char *p, size_t n, bool *known)
{
    size_t head = r->framed ? wb_cql_segment_head(r->lz4) : WB_CQL_HEADER;
    uint64_t h;

    *known = n >= head;
    if (!*known)
        return head;
    if (!r->framed) {
        if (wb_cql_get32(p + 5) <= WB_CQL_BODY_MAX)
            return head + wb_cql_get32(p + 5);
        (void)broken(r, "an envelope is too long");
        return 0;
    }
    h = get_little(p, head - 3);
    if (wb_cql_crc24(h, (int)head - 3) != get_little(p + head - 3, 3)) {
        (void)broken(r, "the header of a segment has a wrong checksum");
        return 0;
    }
    return head + (h & WB_CQL_SEGMENT_MAX) + 4;
}

static int take_unit(struct wb_cql_reader *r, const char *p, size_t n, wb_cql_on on, void *arg)
{
    if (r->framed)
        return take_segment(r, p, on, arg);
    return take_envelope(r, p, n - WB_CQL_HEADER, on, arg);
}

/* Adds to a cut unit what it lacks; returns the bytes used, 0 when *rc is negative. */
static size_t take_cut(struct wb_cql_reader *r, const char *p, size_t n, wb_cql_on on, void *arg,
                       int *rc)
{
    bool known;
    size_t want = unit_length(r, r->cut.data, r->cut.len, &known), lacks = want - r->cut.len;

    if (want == 0) {
        *rc = -1;
        return 0;
    }
    lacks = lacks < n ? lacks : n;
    wb_buf_add(&r->cut, p, lacks);
    want = unit_length(r, r->cut.data, r->cut.len, &known);
    if (want == 0) {
        *rc = -1;
        return 0;
    }
    if (known && r->cut.len == want) {
        *rc = take_unit(r, r->cut.data, want, on, arg);
        wb_buf_clear(&r->cut);
    }
    return lacks;
}

int wb_cql_read(struct wb_cql_reader *r, const char *data, size_t n, wb_cql_on on, void *arg)
{
    const char *p = data, *end = data + n;
    int rc = 0;

    while (p < end && rc >= 0) {
        size_t left = (size_t)(end - p), unit;
        bool known;
        if (r->cut.len > 0) {
            p += take_cut(r, p, left, on, arg, &rc);
            continue;
        }
        unit = unit_length(r, p, left, &known);
        if (unit == 0)
            return -1;
        if (!known || unit > left) {
            wb_buf_add(&r->cut, p, left);
            return 0;
        }
        rc = take_unit(r, p, unit, on, arg);
        p += unit;
    }
    return rc;
}
