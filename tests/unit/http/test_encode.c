#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/deflate.h"
#include "server/http/encode.h"

static void media_types_are_negotiated(void **state)
{
    static const struct {
        const char *accept, *type;
        bool taken;
    } rows[] = {
        {NULL, "application/json", true},
        {"", "application/json", true},
        {"*/*", "application/json", true},
        {"application/json", "application/json", true},
        {"APPLICATION/JSON", "application/json", true},
        {"application/*", "application/json", true},
        {"text/*", "application/json", false},
        {"text/html, application/json;q=0.9", "application/json", true},
        {"application/json;q=0", "application/json", false},
        {"application/json;q=0, */*", "application/json", false}, /* the nearest range decides */
        {"*/*;q=0", "application/json", false},
        {"application/jsonx", "application/json", false},
        {"application/json;charset=utf-8;q=0.5", "application/json", true},
        {"application/json;q=x", "application/json", false},
        {",,, ,", "application/json", false},
        {"/", "application/json", false},
        {"*", "application/json", false},
        {"text/event-stream", "text/event-stream", true},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        assert_int_equal(wb_accepts_type(rows[i].accept, rows[i].type), rows[i].taken);
}

static void codings_are_negotiated(void **state)
{
    static const struct {
        const char *sent;
        bool taken;
    } rows[] = {
        {NULL, false},          {"", false},
        {"gzip", true},         {"GZIP", true},
        {"br, gzip", true},     {"gzip;q=0", false},
        {"gzip; q=0.0", false}, {"*", true},
        {"*;q=0", false},       {"gzip;q=0, *", false},
        {"deflate", false},     {"gzipp", false},
        {"identity", false},    {"gzip;q=0.001", true},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        assert_int_equal(wb_accepts_gzip(rows[i].sent), rows[i].taken);
}

static const char *header(const struct wb_answer *a, const char *name)
{
    for (size_t i = 0; i < a->nheaders; i++)
        if (!strcmp(a->headers[i].name, name))
            return a->headers[i].value;
    return NULL;
}

/* What gzip holds, by its own fields. */
static void assert_gzip_of(const struct wb_buf *packed, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)packed->data, *tail = p + packed->len - 8;
    struct wb_buf z = WB_BUF_INIT(1u << 20), out = WB_BUF_INIT(1u << 20);
    uint32_t a = 1, b = 0;

    assert_true(packed->len > 18);
    assert_int_equal(p[0], 0x1f);
    assert_int_equal(p[1], 0x8b);
    assert_int_equal(p[2], 8);
    assert_int_equal(tail[4] | tail[5] << 8 | tail[6] << 16, n);
    assert_int_equal((uint32_t)(tail[0] | tail[1] << 8 | tail[2] << 16) | (uint32_t)tail[3] << 24,
                     wb_crc32(0, text, n));
    wb_buf_add(&z, "\x78\x9c", 2);
    wb_buf_add(&z, p + 10, packed->len - 18);
    for (size_t i = 0; i < n; i++) {
        a = (a + (unsigned char)text[i]) % 65521;
        b = (b + a) % 65521;
    }
    for (int i = 3; i >= 0; i--)
        wb_buf_addc(&z, (char)((b << 16 | a) >> (8 * i) & 0xff));
    assert_int_equal(wb_inflate(z.data, z.len, &out, NULL), 0);
    assert_int_equal(out.len, n);
    assert_memory_equal(out.data, text, n);
    wb_buf_release(&z);
    wb_buf_release(&out);
}

static void fill(struct wb_answer *a, const char *type, size_t n)
{
    *a = (struct wb_answer){.status = 200, .type = type};
    a->body = (struct wb_buf)WB_BUF_INIT(1u << 20);
    for (size_t i = 0; i < n; i++)
        wb_buf_addc(&a->body, (char)('a' + i % 7));
    wb_answer_header(a, "ETag", "\"x\"");
}

static void answers_are_compressed_where_it_helps(void **state)
{
    static const struct {
        const char *type, *coding;
        size_t n;
        int status;
        bool packed, vary;
    } rows[] = {
        {"application/json", "gzip", 5000, 200, true, true},
        {"application/json", NULL, 5000, 200, false, true},
        {"application/json", "gzip", WB_GZIP_MIN, 200, true, true},
        {"application/json", "gzip", WB_GZIP_MIN - 1, 200, false, true},
        {"application/octet-stream", "gzip", 5000, 200, false, false},
        {"text/plain; charset=utf-8", "gzip", 5000, 200, false, false}, /* raw logs */
        {"text/event-stream", "gzip", 5000, 200, false, false},
        {"application/json", "gzip", 5000, 201, false, false},
        {"application/problem+json", "gzip", 5000, 404, false, false},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {0};
        struct wb_answer a;
        WB_AUTO_FREE char *before = NULL;

        fill(&a, rows[i].type, rows[i].n);
        a.status = rows[i].status;
        before = wb_strdup(a.body.data);
        q.headers[WB_H_ACCEPT_ENCODING] = wb_strdup(rows[i].coding);
        wb_answer_encode(&q, &a);
        assert_int_equal(header(&a, "Vary") != NULL, rows[i].vary);
        assert_int_equal(header(&a, "Content-Encoding") != NULL, rows[i].packed);
        assert_string_equal(header(&a, "ETag"), rows[i].packed ? "\"x-gzip\"" : "\"x\"");
        if (rows[i].packed)
            assert_gzip_of(&a.body, before, rows[i].n);
        else
            assert_string_equal(a.body.data, before);
        wb_answer_release(&a);
        wb_request_release(&q);
    }
}

static void what_does_not_shrink_is_left(void **state)
{
    struct wb_request q = {0};
    struct wb_answer a = {.status = 200, .type = "application/json"};
    uint64_t x = 88172645463325252ULL;

    (void)state;
    a.body = (struct wb_buf)WB_BUF_INIT(1u << 20);
    for (int i = 0; i < 4000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        wb_buf_addc(&a.body, (char)(x & 0xff));
    }
    q.headers[WB_H_ACCEPT_ENCODING] = wb_strdup("gzip");
    wb_answer_encode(&q, &a);
    assert_null(header(&a, "Content-Encoding"));
    assert_int_equal(a.body.len, 4000);
    wb_answer_release(&a);
    wb_request_release(&q);
}

/* Either form's tag is known again, and told as the client has it. */
static void the_compressed_form_is_known_again(void **state)
{
    struct wb_request q = {.method = wb_strdup("GET")};
    struct wb_answer a = {0};

    (void)state;
    q.headers[WB_H_IF_NONE_MATCH] = wb_strdup("\"x-gzip\"");
    assert_true(wb_answer_tag(&q, &a, "\"x\""));
    assert_int_equal(a.status, 304);
    assert_string_equal(header(&a, "ETag"), "\"x-gzip\"");
    wb_answer_release(&a);
    assert_false(wb_answer_tag(&q, &a, "\"x2\""));
    assert_false(wb_answer_tag(&q, &a, "\"\""));
    wb_answer_release(&a);
    wb_request_release(&q);
    assert_true(wb_tag_listed("\"x-gzip\"", "\"x\"", false));
    assert_false(wb_tag_listed("\"x-gzipp\"", "\"x\"", false));
    assert_false(wb_tag_listed("\"x-gzip", "\"x\"", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(media_types_are_negotiated),
        cmocka_unit_test(codings_are_negotiated),
        cmocka_unit_test(answers_are_compressed_where_it_helps),
        cmocka_unit_test(what_does_not_shrink_is_left),
        cmocka_unit_test(the_compressed_form_is_known_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
