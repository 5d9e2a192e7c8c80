/* wb-ask's side of CQL: bytes out, rows in, and everything that a hostile server may send. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/ask/rows.h"
#include "server/base/mem.h"

/* ---- answers, built byte by byte ---- */

static void n16(struct wb_buf *b, unsigned v)
{
    wb_buf_addc(b, (char)(v >> 8));
    wb_buf_addc(b, (char)v);
}
static void n32(struct wb_buf *b, uint32_t v)
{
    n16(b, v >> 16);
    n16(b, v & 0xffff);
}
static void text(struct wb_buf *b, const char *s)
{
    n16(b, (unsigned)strlen(s));
    wb_buf_adds(b, s);
}
static void cell(struct wb_buf *b, const void *data, size_t n)
{
    n32(b, (uint32_t)n);
    wb_buf_add(b, data, n);
}

/* A result of rows with one column of a type (its option's bytes), without its rows. */
static void one_column(struct wb_buf *b, const void *type, size_t n, uint32_t rows)
{
    n32(b, 2);
    n32(b, 1); /* one keyspace and table for all */
    n32(b, 1);
    text(b, "k");
    text(b, "t");
    text(b, "c");
    wb_buf_add(b, type, n);
    n32(b, rows);
}

struct asked {
    struct wb_buf *out;
    struct wb_err *err;
    int rc;
};

static int take(void *arg, const struct wb_cql_envelope *e)
{
    struct asked *a = arg;

    a->rc = wb_ask_rows(e, 3, a->out, a->err);
    return 0;
}

/* As it is read from a server. */
static int answer(const struct wb_buf *body, unsigned opcode, unsigned flags, struct wb_buf *out,
                  struct wb_err *err)
{
    struct asked a = {.out = out, .err = err, .rc = 1};
    struct wb_buf b = WB_BUF_INIT(65536);
    struct wb_cql_reader r;
    char head[WB_CQL_HEADER];

    wb_cql_put_header(head, 4 | WB_CQL_REPLY, 0, opcode, (uint32_t)body->len);
    head[1] = (char)flags;
    wb_buf_add(&b, head, sizeof(head));
    wb_buf_add(&b, wb_buf_str(body), body->len);
    wb_cql_reader_init(&r, 4, false);
    assert_int_equal(wb_cql_read(&r, b.data, b.len, take, &a), 0);
    wb_cql_reader_release(&r);
    wb_buf_release(&b);
    return a.rc;
}

static void test_values(void **state)
{
#define V(s) s, sizeof(s) - 1
    static const struct {
        const char *type;
        size_t ntype;
        const char *value;
        size_t nvalue;
        const char *want;
    } rows[] = {
        {V("\x00\x0d"), V("plain"), "plain"},
        {V("\x00\x0d"), V(""), ""},
        {V("\x00\x0d"), V("a\tb\nc\\d\re"), "a\\tb\\nc\\\\d\\re"},
        {V("\x00\x09"), V("\xff\xff\xff\xfe"), "-2"},
        {V("\x00\x02"), V("\x7f\xff\xff\xff\xff\xff\xff\xff"), "9223372036854775807"},
        {V("\x00\x05"), V("\x80\x00\x00\x00\x00\x00\x00\x00"), "-9223372036854775808"},
        {V("\x00\x13"), V("\xff\xff"), "-1"},
        {V("\x00\x14"), V("\x80"), "-128"},
        {V("\x00\x04"), V("\x01"), "true"},
        {V("\x00\x04"), V("\x00"), "false"},
        {V("\x00\x07"), V("\x3f\xe0\x00\x00\x00\x00\x00\x00"), "0.5"},
        {V("\x00\x08"), V("\x3f\x80\x00\x00"), "1"},
        {V("\x00\x03"), V("\x00\xff"), "0x00ff"},
        {V("\x00\x10"), V("\x7f\x00\x00\x02"), "127.0.0.2"},
        {V("\x00\x10"), V("\x7f\x00\x00"), "0x7f0000"},
        {V("\x00\x09"), V("\x01"), "0x01"}, /* an int of one byte is not guessed at */
        {V("\x00\x0c"), V("\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0"),
         "12345678-9abc-def0-1234-56789abcdef0"},
        {V("\x00\x22\x00\x0d"), V("\x00\x00\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x01y"), "[x,y]"},
        {V("\x00\x20\x00\x09"), V("\x00\x00\x00\x00"), "[]"},
        {V("\x00\x21\x00\x0d\x00\x09"),
         V("\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x04\x00\x00\x00\x07"), "{k=7}"},
    };
#undef V

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf body = WB_BUF_INIT(1024), out = WB_BUF_INIT(1024), want = WB_BUF_INIT(1024);
        struct wb_err err = WB_ERR_INIT;

        one_column(&body, rows[i].type, rows[i].ntype, 2);
        cell(&body, rows[i].value, rows[i].nvalue);
        n32(&body, 0xffffffff); /* null */
        wb_buf_addf(&want, "3\t%s\n3\t\\N\n", rows[i].want);
        if (answer(&body, WB_CQL_RESULT, 0, &out, &err) < 0)
            fail_msg("row %zu: %s", i, err.root);
        assert_string_equal(wb_buf_str(&out), wb_buf_str(&want));
        wb_buf_release(&body);
        wb_buf_release(&out);
        wb_buf_release(&want);
    }
}

static void test_errors(void **state)
{
    static const struct {
        uint32_t code;
        int rc;
    } rows[] = {{0x1001, -WB_UNAVAILABLE}, /* overloaded */
                {0x1002, -WB_UNAVAILABLE}, /* bootstrapping */
                {0x1000, -WB_UNAVAILABLE}, {0x1200, -WB_UNAVAILABLE},
                {0x2000, -WB_IO},          {0x0000, -WB_IO}};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf body = WB_BUF_INIT(256), out = WB_BUF_INIT(256);
        struct wb_err err = WB_ERR_INIT;

        n32(&body, rows[i].code);
        text(&body, "no such thing");
        assert_int_equal(answer(&body, WB_CQL_ERROR, 0, &out, &err), rows[i].rc);
        assert_non_null(strstr(err.root, "no such thing"));
        wb_buf_release(&body);
        wb_buf_release(&out);
    }
}

/* A warning comes in front of the rows. */
static void test_warning(void **state)
{
    struct wb_buf body = WB_BUF_INIT(256), out = WB_BUF_INIT(256);
    struct wb_err err = WB_ERR_INIT;

    n16(&body, 1);
    text(&body, "mind this");
    n32(&body, 1); /* void */
    assert_int_equal(answer(&body, WB_CQL_RESULT, 0x08, &out, &err), 0);
    assert_int_equal(out.len, 0);
    wb_buf_release(&body);
    wb_buf_release(&out);
}

/* Every cut of a good answer is refused, and so is every count that promises more than there is. */
static void test_hostile(void **state)
{
    char lists[40];
    struct wb_buf body = WB_BUF_INIT(1024), out = WB_BUF_INIT(1 << 16);
    struct wb_err err = WB_ERR_INIT;

    one_column(&body, "\x00\x21\x00\x0d\x00\x0d", 6, 1);
    cell(&body, "\x00\x00\x00\x01\x00\x00\x00\x01k\x00\x00\x00\x01v", 14);
    assert_int_equal(answer(&body, WB_CQL_RESULT, 0, &out, &err), 0);
    for (size_t n = 0; n < body.len; n++) {
        struct wb_buf cut = WB_BUF_INIT(1024);

        wb_buf_add(&cut, body.data, n);
        wb_buf_clear(&out);
        assert_int_equal(answer(&cut, WB_CQL_RESULT, 0, &out, &err), -WB_PROTOCOL);
        wb_buf_release(&cut);
    }
    for (size_t at = 0; at + 4 <= body.len; at++) {
        struct wb_buf changed = WB_BUF_INIT(1024);

        wb_buf_add(&changed, body.data, body.len);
        memset(changed.data + at, 0xff, 4);
        wb_buf_clear(&out);
        (void)!answer(&changed, WB_CQL_RESULT, 0, &out, &err); /* any end but a crash */
        wb_buf_release(&changed);
    }
    wb_buf_clear(&body);
    n32(&body, 2);
    n32(&body, 1);
    n32(&body, 0x7fffffff); /* columns */
    assert_int_equal(answer(&body, WB_CQL_RESULT, 0, &out, &err), -WB_PROTOCOL);
    wb_buf_clear(&body);
    for (size_t i = 0; i < sizeof(lists); i++)
        lists[i] = (char)(i & 1 ? 0x20 : 0);
    one_column(&body, lists, sizeof(lists), 0); /* lists of lists of lists */
    assert_int_equal(answer(&body, WB_CQL_RESULT, 0, &out, &err), -WB_PROTOCOL);
    wb_buf_clear(&body);
    assert_int_equal(answer(&body, 0x0c, 0, &out, &err), -WB_PROTOCOL);
    wb_buf_release(&body);
    wb_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_warning),
        cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
