#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/load/reply_rig.h"

#define KEY0 "k000000000000000" /* of the first operation in flight */
#define KEY1 "k000000000000001"

/* g: get, s: set, a: add, d: delete, m: mg, v: verified get */
#define LETTERS "gsadm"

static void check(const struct want *want, const char *text, size_t len)
{
    check_replies(&wb_protocol_memcached, LETTERS, want, text, len);
}

static void check_rows(const struct want *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(&rows[i], rows[i].text, strlen(rows[i].text));
}

static void test_replies(void **state)
{
    static const struct want rows[] = {
        {.ops = "s", .text = "STORED\r\n", .ok = 1},
        {.ops = "a", .text = "STORED\r\n", .ok = 1},
        {.ops = "a", .text = "NOT_STORED\r\n", .ok = 1},
        {.ops = "d", .text = "DELETED\r\n", .ok = 1},
        {.ops = "d", .text = "NOT_FOUND\r\n", .ok = 1},
        {.ops = "g", .text = "END\r\n", .ok = 1, .misses = 1},
        {.ops = "m", .text = "EN\r\n", .ok = 1, .misses = 1},
        {.ops = "m", .text = "VA 3\r\nabc\r\n", .ok = 1},
        {.ops = "m", .text = "VA 0 f0 t-1\r\n\r\n", .ok = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nabc\r\nEND\r\n", .ok = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 0\r\n\r\nEND\r\n", .ok = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 4294967295 1\r\nx\r\nEND\r\n", .ok = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 7 3 123456\r\nabc\r\nEND\r\n", .ok = 1},
        {.ops = "gs", .text = "VALUE " KEY0 " 0 5\r\nEND\r\n\r\nEND\r\nSTORED\r\n", .ok = 2},
        {.ops = "gmg",
         .text = "END\r\nVA 2\r\n\r\n\r\nVALUE " KEY0 " 0 1\r\n\n\r\nEND\r\n",
         .ok = 3,
         .misses = 1},
        /* errors in place of answers */
        {.ops = "gs", .text = "SERVER_ERROR out of memory\r\nSTORED\r\n", .ok = 1, .server = 1},
        {.ops = "s", .text = "NOT_STORED\r\n", .server = 1},
        {.ops = "gg", .text = "ERROR\r\nEND\r\n", .ok = 1, .misses = 1, .invalid = 1},
        {.ops = "s", .text = "CLIENT_ERROR bad data chunk\r\n", .invalid = 1},
        {.ops = "g", .text = "CLIENT_ERROR unauthenticated\r\n", .unauthorized = 1},
        /* well formed, but not the answer to the question */
        {.ops = "gs", .text = "STORED\r\nSTORED\r\n", .ok = 1, .protocol = 1},
        {.ops = "s", .text = "END\r\n", .protocol = 1},
        {.ops = "s", .text = "EXISTS\r\n", .protocol = 1},
        {.ops = "d", .text = "STORED\r\n", .protocol = 1},
        {.ops = "m", .text = "HD\r\n", .protocol = 1},
        /* cut */
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nabc\r\nEND\r", .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nabc\r\n", .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nab", .left = 1},
        {.ops = "s", .text = "STORED\r", .left = 1},
        {.ops = "m", .text = "VA 3\r\nabc\r", .left = 1},
    };

    (void)state;
    check_rows(rows, WB_LEN(rows));
}

static void test_hostile(void **state)
{
    static const struct want rows[] = {
        {.ops = "g", .text = "x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "END\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "END \r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "end\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE \r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 "\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 \r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 "  0 1\r\nx\r\nEND\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " x 1\r\nx\r\nEND\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 -1\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 1x\r\nx\r\nEND\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 9999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 18446744073709551617\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 12345678901 1\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nabcd\r\nEND\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "VALUE " KEY0 " 0 3\r\nabc\r\nSTORED\r\n", .rc = -1, .left = 1},
        /* a get of one key has one value */
        {.ops = "g",
         .text = "VALUE " KEY0 " 0 1\r\nx\r\nVALUE " KEY0 " 0 1\r\nx\r\nEND\r\n",
         .rc = -1,
         .left = 1},
        {.ops = "s", .text = "VALUE " KEY0 " 0 1\r\nx\r\nEND\r\n", .rc = -1, .left = 1},
        {.ops = "m", .text = "VA\r\n", .rc = -1, .left = 1},
        {.ops = "m", .text = "VA x\r\n", .rc = -1, .left = 1},
        {.ops = "m", .text = "VALUE " KEY0 " 0 1\r\nx\r\nEND\r\n", .rc = -1, .left = 1},
        /* more answers than questions */
        {.ops = "s", .text = "STORED\r\nSTORED\r\n", .rc = -1, .ok = 1},
        {.ops = "", .text = "ERROR\r\n", .rc = -1},
    };

    (void)state;
    check_rows(rows, WB_LEN(rows));
}

static void test_binary_value(void **state)
{
    static const char text[] = "VALUE " KEY0 " 0 6\r\n\0\r\n\xff"
                               "E\0\r\nEND\r\nSTORED\r\n";
    struct want want = {.ops = "gs", .ok = 2};

    (void)state;
    check(&want, text, sizeof(text) - 1);
}

/* The right value of the right key passes; one flipped bit or another key does not. */
static void test_verify(void **state)
{
    static const char head[] = "VALUE " KEY0 " 0 10\r\n", tail[] = "\r\nEND\r\n";
    const size_t at = sizeof(head) - 1, size = at + VALUE + sizeof(tail) - 1;
    char text[sizeof(head) + VALUE + sizeof(tail)], scratch[WB_VALUE_SMALL + 8];
    struct want good = {.ops = "v", .ok = 1}, bad = {.ops = "v", .mismatch = 1};
    struct rig r;

    (void)state;
    rig_up(&r, &wb_protocol_memcached, LETTERS);
    memcpy(text, head, at);
    memcpy(text + at, wb_values_expect(&r.plan.data.values, 0, scratch), VALUE);
    memcpy(text + at + VALUE, tail, sizeof(tail) - 1);
    rig_down(&r);
    check(&good, text, size);
    for (int i = 0; i < VALUE; i++) {
        text[at + (size_t)i] ^= 4;
        check(&bad, text, size);
        text[at + (size_t)i] ^= 4;
    }
    memcpy(text + 6, KEY1, 16);
    check(&bad, text, size);
}

/* Names as long as memcached takes: their lines are kept whole wherever they are cut. */
static void test_long_key(void **state)
{
    struct rig r;
    char out[1024], line[512], *stop;
    const char *key = out + 4;
    size_t n;

    (void)state;
    for (size_t piece = 0; piece < 300; piece++) {
        struct wb_buf b = WB_BUF_INIT(sizeof(line));
        rig_up(&r, &wb_protocol_memcached, LETTERS);
        r.protocol->end(r.w.context);
        r.job.key_bytes = 250;
        wb_keys_init(&r.plan.data.keys, &r.job);
        assert_int_equal(r.protocol->setup(&r.plan.data, &r.w.context, NULL), 0);
        in_flight(&r, "v");
        stop = r.protocol->build(r.w.context, &r.c, &r.c.slots[0], 0, out);
        assert_int_equal(stop - out, 256);
        wb_buf_addf(&b, "VALUE %.250s 0 1\r\nx\r\nEND\r\n", key);
        n = b.len;
        assert_int_equal(feed(&r, b.data, n, piece), 0);
        /* the key is right, the value is not */
        assert_int_equal(r.stats.phase[WB_PHASE_MEASURE].errors[WB_REPLY_MISMATCH], 1);
        assert_int_equal(r.w.live, 0);
        wb_buf_release(&b);
        rig_down(&r);
    }
    struct wb_err err = WB_ERR_INIT;
    rig_up(&r, &wb_protocol_memcached, LETTERS);
    r.protocol->end(r.w.context);
    r.w.context = NULL;
    r.job.key_bytes = 251;
    wb_keys_init(&r.plan.data.keys, &r.job);
    assert_int_equal(r.protocol->setup(&r.plan.data, &r.w.context, &err), -WB_INVALID);
    assert_string_equal(err.root, "key-bytes: 251 is more than memcached's 250");
    rig_down(&r);
}

static void test_requests(void **state)
{
    static const char *const want[] = {
        "get k000000000000042\r\n",        "set k000000000000042 0 0 10\r\n",
        "add k000000000000042 0 0 10\r\n", "delete k000000000000042\r\n",
        "mg k000000000000042 v\r\n",
    };
    struct rig r;
    char out[256], scratch[WB_VALUE_SMALL + 8];

    (void)state;
    rig_up(&r, &wb_protocol_memcached, LETTERS);
    for (uint8_t op = 0; op < WB_LEN(want); op++) {
        struct wb_slot s = {.op = op};
        char *stop = r.protocol->build(r.w.context, &r.c, &s, 42, out);
        size_t n = strlen(want[op]);
        assert_memory_equal(out, want[op], n);
        assert_true((size_t)(stop - out) <= r.protocol->request_max(r.w.context));
        if (op != 1 && op != 2) {
            assert_int_equal(stop - out, n);
            continue;
        }
        assert_int_equal(stop - out, n + VALUE + 2);
        assert_memory_equal(out + n, wb_values_expect(&r.plan.data.values, 42, scratch), VALUE);
        assert_memory_equal(stop - 2, "\r\n", 2);
    }
    rig_down(&r);
}

/* A connection that was made again begins with a whole reply. */
static void test_reset(void **state)
{
    struct rig r;

    (void)state;
    rig_up(&r, &wb_protocol_memcached, LETTERS);
    in_flight(&r, "gs");
    assert_int_equal(feed(&r, "VALUE " KEY0 " 0 3\r\nabc\r\n", 28, 0), 0);
    r.protocol->reset(r.w.context, r.c.proto);
    assert_int_equal(feed(&r, "END\r\nSTORED\r\n", 13, 0), 0);
    assert_int_equal(wb_phase_total(&r.stats, WB_PHASE_MEASURE).misses, 1);
    assert_int_equal(wb_phase_total(&r.stats, WB_PHASE_MEASURE).ok, 2);
    rig_down(&r);
}

static void test_greeting(void **state)
{
    (void)state;
    check_greeting(&wb_protocol_memcached, LETTERS, 2, NULL, NULL, "", "", NULL);
    check_greeting(&wb_protocol_memcached, LETTERS, 2, "bob", "pw", "set wb 0 0 6\r\nbob pw\r\n",
                   "STORED\r\n", NULL);
    check_greeting(&wb_protocol_memcached, LETTERS, 2, "bob", "no", "set wb 0 0 6\r\nbob no\r\n",
                   "CLIENT_ERROR authentication failure\r\n",
                   "CLIENT_ERROR authentication failure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_binary_value), cmocka_unit_test(test_verify),
        cmocka_unit_test(test_long_key),     cmocka_unit_test(test_requests),
        cmocka_unit_test(test_reset),        cmocka_unit_test(test_greeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
