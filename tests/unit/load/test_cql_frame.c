#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/protocols/cql_frame.h"
#include "runners/load/protocols/cql_lz4.h"
#include "runners/load/protocols/cql_murmur.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

/* What a reader was given: stream and length of each envelope, and a sum over the bytes. */
struct seen {
    int n, stream[64], fail_at;
    size_t len[64];
    char first[64];
    bool frame_after_first;
    struct wb_cql_reader *r;
};

static int see(void *arg, const struct wb_cql_envelope *e)
{
    struct seen *s = arg;

    assert_true(s->n < 64);
    s->stream[s->n] = e->stream;
    s->len[s->n] = e->n;
    s->first[s->n] = e->n ? e->body[0] : 0;
    s->n++;
    if (s->frame_after_first)
        s->r->framed = true;
    return s->fail_at && s->n == s->fail_at ? -7 : 0;
}

/* Reads in pieces of `step` bytes (0: at once), each from memory of its own size. */
static int read_in(struct wb_cql_reader *r, const char *data, size_t n, size_t step, struct seen *s)
{
    int rc = 0;

    s->r = r;
    for (size_t at = 0; at < n && rc == 0;) {
        size_t k = step == 0 || n - at < step ? n - at : step;
        char *piece = wb_calloc(k, 1);
        memcpy(piece, data + at, k);
        rc = wb_cql_read(r, piece, k, see, s);
        free(piece);
        at += k;
    }
    return rc;
}

static size_t unhex(const char *hex, char *out)
{
    size_t n = 0;

    for (; hex[0] && hex[1]; hex += 2) {
        unsigned v = 0;
        while (*hex == ' ')
            hex++;
        for (int i = 0; i < 2; i++)
            v = v << 4 | (unsigned)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
        out[n++] = (char)v;
    }
    return n;
}

/* From an implementation that shares nothing with this one. */
static void test_checksums(void **state)
{
    (void)state;
    assert_int_equal(wb_cql_crc24(0, 0), 0x875060);
    assert_int_equal(wb_cql_crc24(0x020000, 3), 0xc4366a);
    assert_int_equal(wb_cql_crc32("", 0), 0x44777ed3);
    assert_int_equal(wb_cql_crc32("123456789", 9), 0xe2a261a7);
}

static void test_segment_bytes(void **state)
{
    static const struct {
        bool whole, lz4;
        const char *hex;
    } rows[] = {{true, false, "090002a4c8c1050000010500000000b5557486"},
                {false, false, "090000b91978050000010500000000b5557486"},
                {true, true, "0900000004c2b895050000010500000000b5557486"}};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        char seg[64], want[64], scratch[16];
        size_t n = unhex(rows[i].hex, want), head = wb_cql_segment_head(rows[i].lz4);
        char *end = wb_cql_put_header(seg + head, 5, 1, WB_CQL_OPTIONS, 0);
        end = wb_cql_segment_close(seg, (size_t)(end - seg) - head, rows[i].whole, rows[i].lz4,
                                   scratch);
        assert_int_equal(end - seg, n);
        assert_memory_equal(seg, want, n);
    }
}

static void add_answer(struct wb_buf *b, unsigned version, unsigned flags, int stream,
                       const char *body, size_t n)
{
    char head[WB_CQL_HEADER];

    wb_cql_put_header(head, version | WB_CQL_REPLY, (uint16_t)stream, WB_CQL_RESULT, (uint32_t)n);
    head[1] = (char)flags;
    wb_buf_add(b, head, sizeof(head));
    wb_buf_add(b, body, n);
}

static void add_segment(struct wb_buf *b, const char *payload, size_t n, bool whole, bool lz4)
{
    size_t head = wb_cql_segment_head(lz4);
    char *seg = wb_calloc(n + WB_CQL_SEGMENT_EXTRA, 1), *scratch = wb_calloc(n, 1);

    memcpy(seg + head, payload, n);
    wb_buf_add(b, seg, (size_t)(wb_cql_segment_close(seg, n, whole, lz4, scratch) - seg));
    free(seg);
    free(scratch);
}

/* Envelopes one after the other, cut anywhere. */
static void test_bare(void **state)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    (void)state;
    add_answer(&b, 4, 0, 3, "abc", 3);
    add_answer(&b, 4, 0, -1, "", 0);
    add_answer(&b, 4, 0, 32767, "xy", 2);
    for (size_t step = 0; step <= b.len; step++) {
        struct wb_cql_reader r;
        struct seen s = {0};
        wb_cql_reader_init(&r, 4, false);
        assert_int_equal(read_in(&r, b.data, b.len, step, &s), 0);
        assert_int_equal(s.n, 3);
        assert_int_equal(s.stream[0], 3);
        assert_int_equal(s.len[0], 3);
        assert_int_equal(s.stream[1], -1);
        assert_int_equal(s.stream[2], 32767);
        assert_int_equal(s.first[2], 'x');
        wb_cql_reader_release(&r);
    }
    wb_buf_release(&b);
}

/* The first answer is bare, what follows is framed; in one read, too. */
static void test_switch(void **state)
{
    static const bool kinds[] = {false, true};

    (void)state;
    for (size_t k = 0; k < WB_LEN(kinds); k++) {
        struct wb_buf b = WB_BUF_INIT(4096), two = WB_BUF_INIT(4096);
        add_answer(&b, 5, 0, 0, "", 0);
        add_answer(&two, 5, 0, 1, "first", 5);
        add_answer(&two, 5, 0, 2, "second second second second", 27);
        add_segment(&b, two.data, two.len, true, kinds[k]);
        add_segment(&b, "", 0, true, kinds[k]); /* an empty one is allowed */
        add_segment(&b, two.data, 14, true, kinds[k]);
        for (size_t step = 0; step <= b.len; step++) {
            struct wb_cql_reader r;
            struct seen s = {.frame_after_first = true};
            wb_cql_reader_init(&r, 5, kinds[k]);
            assert_int_equal(read_in(&r, b.data, b.len, step, &s), 0);
            assert_int_equal(s.n, 4);
            assert_int_equal(s.stream[1], 1);
            assert_int_equal(s.len[2], 27);
            assert_int_equal(s.first[2], 's');
            assert_int_equal(s.stream[3], 1);
            wb_cql_reader_release(&r);
        }
        wb_buf_release(&b);
        wb_buf_release(&two);
    }
}

/* Each damaged byte of a framed stream is noticed, none is taken for another message. */
static void test_damage(void **state)
{
    static const bool kinds[] = {false, true};

    (void)state;
    for (size_t k = 0; k < WB_LEN(kinds); k++) {
        struct wb_buf b = WB_BUF_INIT(4096), e = WB_BUF_INIT(4096);
        add_answer(&e, 5, 0, 1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 59);
        add_segment(&b, e.data, e.len, true, kinds[k]);
        for (size_t at = 0; at < b.len; at++) {
            for (int bit = 0; bit < 8; bit++) {
                struct wb_cql_reader r;
                struct seen s = {0};
                b.data[at] = (char)(b.data[at] ^ 1 << bit);
                wb_cql_reader_init(&r, 5, kinds[k]);
                r.framed = true;
                assert_int_equal(read_in(&r, b.data, b.len, 0, &s), -1);
                assert_non_null(r.why);
                assert_int_equal(s.n, 0);
                wb_cql_reader_release(&r);
                b.data[at] = (char)(b.data[at] ^ 1 << bit);
            }
        }
        wb_buf_release(&b);
        wb_buf_release(&e);
    }
}

/* Envelopes longer than a segment, there and back, around the lengths where pieces end. */
static void test_long(void **state)
{
    static const size_t sizes[] = {WB_CQL_SEGMENT_MAX + 1, 2 * WB_CQL_SEGMENT_MAX - 1,
                                   2 * WB_CQL_SEGMENT_MAX, 2 * WB_CQL_SEGMENT_MAX + 1, 1000000};

    (void)state;
    for (size_t i = 0; i < 4 * WB_LEN(sizes); i++) {
        size_t n = sizes[i / 4], most = wb_cql_segments_max(n);
        bool lz4 = i & 1, noise = i & 2;
        char *out = wb_calloc(most, 1), *scratch = wb_calloc(WB_CQL_SEGMENT_MAX, 1), *end;
        char *at = out + most - n;
        struct wb_rng rng;
        struct wb_cql_reader r;
        struct seen s = {0};
        wb_rng_seed(&rng, i);
        wb_cql_put_header(at, 5 | WB_CQL_REPLY, 9, WB_CQL_RESULT, (uint32_t)n - WB_CQL_HEADER);
        for (size_t k = WB_CQL_HEADER; k < n; k++)
            at[k] = noise ? (char)wb_rng_u64(&rng) : 'z';
        end = wb_cql_segments_cut(out, n, lz4, scratch);
        assert_true((size_t)(end - out) <= most);
        wb_cql_reader_init(&r, 5, lz4);
        r.framed = true;
        assert_int_equal(read_in(&r, out, (size_t)(end - out), 99991, &s), 0);
        assert_int_equal(s.n, 1);
        assert_int_equal(s.len[0], n - WB_CQL_HEADER);
        assert_int_equal(s.stream[0], 9);
        wb_cql_reader_release(&r);
        free(out);
        free(scratch);
    }
}

static void test_hostile(void **state)
{
    static const struct {
        const char *name;
        unsigned version;
        bool framed, lz4;
        const char *hex; /* of a bare stream, or of a payload */
        bool whole;
        const char *why;
    } rows[] = {
        {"a request", 4, false, false, "040000000800000000", true, "a request, not an answer"},
        {"version 3", 4, false, false, "830000000800000000", true, "another version"},
        {"too long", 4, false, false, "84000000081fffffff", true, "too long"},
        {"longest", 4, false, false, "8400000008ffffffff", true, "too long"},
        {"compressed", 4, false, false, "84010000080000000400000000", true, "was not agreed"},
        {"no length", 4, false, true, "840100000800000003000000", true, "has no length"},
        {"huge plain", 4, false, true, "840100000800000005ffffffff00", true, "too long"},
        {"bad block", 4, false, true, "840100000800000006000000102222", true, "damaged"},
        {"tracing cut", 4, false, false, "8402000008000000020000", true, "too short"},
        {"warnings cut", 4, false, false, "840800000800000003000100", true, "too short"},
        {"payload cut", 4, false, false, "8404000008000000070001000161ffff", true, "too short"},
        {"header cut", 5, true, false, "8500000008000000", true, "ends within an envelope"},
        {"body cut", 5, true, false, "85000000080000000200", true, "ends within an envelope"},
        {"body huge", 5, true, false, "8500000008ffffffff00", true, "ends within an envelope"},
        {"piece, more", 5, true, false, "85000000080000000100ff", false, "bytes of another one"},
        {"piece, huge", 5, true, false, "8500000008ffffffff", false, "too long"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        char raw[128];
        size_t n = unhex(rows[i].hex, raw);
        struct wb_buf b = WB_BUF_INIT(4096);
        if (rows[i].framed)
            add_segment(&b, raw, n, rows[i].whole, rows[i].lz4);
        else
            wb_buf_add(&b, raw, n);
        for (size_t step = 0; step <= b.len; step++) {
            struct wb_cql_reader r;
            struct seen s = {0};
            wb_cql_reader_init(&r, rows[i].version, rows[i].lz4);
            r.framed = rows[i].framed;
            assert_int_equal(read_in(&r, b.data, b.len, step, &s), -1);
            if (!r.why || !strstr(r.why, rows[i].why))
                fail_msg("%s: %s", rows[i].name, r.why);
            assert_int_equal(s.n, 0);
            wb_cql_reader_release(&r);
        }
        wb_buf_release(&b);
    }
}

/* A piece of a long envelope and then a whole one. */
static void test_mixed_pieces(void **state)
{
    struct wb_buf b = WB_BUF_INIT(4096), e = WB_BUF_INIT(4096);
    struct wb_cql_reader r;
    struct seen s = {0};

    (void)state;
    add_answer(&e, 5, 0, 1, "abcdefgh", 8);
    add_segment(&b, e.data, 12, false, false);
    add_segment(&b, e.data, e.len, true, false);
    wb_cql_reader_init(&r, 5, false);
    r.framed = true;
    assert_int_equal(read_in(&r, b.data, b.len, 0, &s), -1);
    assert_non_null(strstr(r.why, "cut off by another"));
    wb_cql_reader_release(&r);
    wb_buf_release(&b);
    wb_buf_release(&e);
}

/* What stands before the message is passed, in its order; what the callback says ends reading. */
static void test_prefixes(void **state)
{
    static const char prefix[] = "0123456789abcdef" /* tracing id */
                                 "\0\2\0\1w\0\0"    /* warnings */
                                 "\0\1\0\1k\xff\xff\xff\xff"
                                 "message"; /* payload, null value */
    struct wb_buf b = WB_BUF_INIT(4096);
    struct wb_cql_reader r;
    struct seen s = {.fail_at = 2};

    (void)state;
    add_answer(&b, 4, WB_CQL_TRACING | WB_CQL_WARNING | WB_CQL_PAYLOAD, 1, prefix,
               sizeof(prefix) - 1);
    add_answer(&b, 4, 0, 2, "x", 1);
    add_answer(&b, 4, 0, 3, "x", 1);
    wb_cql_reader_init(&r, 4, false);
    assert_int_equal(read_in(&r, b.data, b.len, 0, &s), -7);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.len[0], 7);
    assert_int_equal(s.first[0], 'm');
    wb_cql_reader_release(&r);
    wb_buf_release(&b);
}

/* Version 4: a body is compressed when that makes it smaller. */
static void test_pack(void **state)
{
    char p[256], scratch[256], *end;
    struct wb_cql_reader r;
    struct seen s = {0};

    (void)state;
    memset(p, 'q', sizeof(p));
    wb_cql_put_header(p, 4 | WB_CQL_REPLY, 1, WB_CQL_RESULT, 200);
    end = wb_cql_envelope_pack(p, WB_CQL_HEADER + 200, scratch);
    assert_true(end - p < 60);
    assert_int_equal(p[1], WB_CQL_COMPRESSED);
    wb_cql_reader_init(&r, 4, true);
    assert_int_equal(read_in(&r, p, (size_t)(end - p), 0, &s), 0);
    assert_int_equal(s.len[0], 200);
    assert_int_equal(s.first[0], 'q');
    wb_cql_reader_release(&r);
    wb_cql_put_header(p, 4, 1, WB_CQL_RESULT, 3);
    memcpy(p + WB_CQL_HEADER, "abc", 3);
    end = wb_cql_envelope_pack(p, WB_CQL_HEADER + 3, scratch);
    assert_int_equal(end - p, WB_CQL_HEADER + 3);
    assert_int_equal(p[1], 0);
}

/* Tokens of Cassandra; the first is known from a driver that got it wrong. */
static void test_tokens(void **state)
{
    static const struct {
        const char *hex;
        int64_t token;
    } rows[] = {
        {"00104327529fb645dd00b883ec39ae448bb800000400066a6b00", -9223371632693506265},
        {"", INT64_MIN},
        {"6b303030303030303030303030303432", 1378358920880300251}, /* k000000000000042 */
        {"30", 3083240331115144064},
        {"61", -8839064797231613815},
        {"68656c6c6f", -3758069500696749310},
        {"313233343536373839303132333435", -8615384237594390570},
        {"ffffffffff", -8869521063059112040},
        {"80808080808080808080808080808080808080808080808080808080808080", 2158224688659817168},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        char raw[64];
        size_t n = unhex(rows[i].hex, raw);
        char *key = wb_calloc(n, 1);
        memcpy(key, raw, n);
        assert_true(wb_cql_token(key, n) == rows[i].token);
        free(key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksums), cmocka_unit_test(test_segment_bytes),
        cmocka_unit_test(test_bare),      cmocka_unit_test(test_switch),
        cmocka_unit_test(test_damage),    cmocka_unit_test(test_long),
        cmocka_unit_test(test_hostile),   cmocka_unit_test(test_mixed_pieces),
        cmocka_unit_test(test_prefixes),  cmocka_unit_test(test_pack),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
