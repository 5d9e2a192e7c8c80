/* The HTTP client against a scripted server: good answers, bad answers, none at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "server/base/clock.h"
#include "server/base/rest.h"
#include "tests/support/fake_http.h"

#define LIMIT (20 * WB_SEC)

struct call {
    struct fake_http fake;
    struct wb_rest *rest;
    struct wb_rest_answer answer;
    struct wb_err err;
};

static void begin(struct call *c, const struct fake_step *steps, size_t n)
{
    *c = (struct call){.err = WB_ERR_INIT};
    assert_int_equal(fake_start(&c->fake, steps, n), 0);
    struct wb_rest_options o = {.base = "http://engine", .unix_socket = c->fake.socket};
    assert_int_equal(wb_rest_open(&o, &c->rest, &c->err), 0);
}

static int get(struct call *c, const char *path)
{
    struct wb_rest_request q = {.path = path, .limit_ns = LIMIT};
    return wb_rest_do(c->rest, &q, &c->answer, &c->err);
}

static void end(struct call *c)
{
    wb_rest_answer_release(&c->answer);
    wb_rest_free(c->rest);
    fake_stop(&c->fake);
    assert_null(c->fake.mismatch);
    assert_int_equal(c->fake.next, c->fake.nsteps);
    fake_release(&c->fake);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static void get_reads_status_type_header_and_body(void **state)
{
    static const struct fake_step steps[] = {FAKE("GET /a?b=c HTTP/1.1\r\n", OK_HEAD
                                                  "Content-Type: text/x\r\nApi-Version: 1.41\r\n"
                                                  "Content-Length: 5\r\n\r\nhello")};
    struct call c;

    begin(&c, steps, 1);
    struct wb_rest_request q = {.path = "/a?b=c", .limit_ns = LIMIT, .want = "api-version"};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
    assert_int_equal(c.answer.status, 200);
    assert_string_equal(c.answer.content_type, "text/x");
    assert_string_equal(c.answer.wanted, "1.41");
    assert_string_equal(wb_buf_str(&c.answer.body), "hello");
    end(&c);
}

static void connection_is_used_again(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /1", OK_HEAD "Content-Length: 1\r\n\r\n1"),
        FAKE("GET /2", "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n2"),
        FAKE("DELETE /3", "HTTP/1.1 204 No Content\r\n\r\n"),
        FAKE("POST /4",
             OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")};
    struct call c;
    const char *const methods[] = {"GET", "GET", "DELETE", "POST"};
    const char *const paths[] = {"/1", "/2", "/3", "/4"};
    const char *const bodies[] = {"1", "2", "", "abc"};
    const int status[] = {200, 404, 204, 200};

    begin(&c, steps, 4);
    for (int i = 0; i < 4; i++) {
        struct wb_rest_request q = {.method = methods[i], .path = paths[i], .limit_ns = LIMIT};
        wb_rest_answer_release(&c.answer);
        assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
        assert_int_equal(c.answer.status, status[i]);
        assert_string_equal(wb_buf_str(&c.answer.body), bodies[i]);
    }
    end(&c);
    assert_int_equal(c.fake.connections, 1);
}

static void body_and_headers_arrive(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("POST /x HTTP/1.1\r\n", OK_HEAD "\r\n", .end = FAKE_CLOSE)};
    static const char *const header[] = {"X-One: 1", NULL};
    struct call c;

    begin(&c, steps, 1);
    struct wb_rest_request q = {.method = "POST",
                                .path = "/x",
                                .body = "{\"a\":1}",
                                .body_len = 7,
                                .header = header,
                                .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
    wb_rest_free(c.rest);
    c.rest = NULL;
    fake_stop(&c.fake);
    const char *r = c.fake.requests[0];
    assert_non_null(strstr(r, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(r, "X-One: 1\r\n"));
    assert_non_null(strstr(r, "User-Agent: weighbridge/"));
    assert_null(strstr(r, "Expect:"));
    assert_string_equal(strstr(r, "\r\n\r\n"), "\r\n\r\n{\"a\":1}");
    wb_rest_answer_release(&c.answer);
    fake_release(&c.fake);
}

struct upload {
    int left, fail_at;
};

static int64_t feed(void *arg, void *buf, size_t n, struct wb_err *err)
{
    struct upload *u = arg;

    if (u->left == u->fail_at)
        return wb_fail(err, WB_CORRUPT, "source broke");
    if (u->left-- == 0)
        return 0;
    memcpy(buf, "0123456789", 10);
    return 10;
}

static void upload_is_streamed(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("POST /up", OK_HEAD "Content-Length: 2\r\n\r\nok", .end = FAKE_CLOSE)};
    struct call c;
    struct upload u = {.left = 3, .fail_at = -5};

    begin(&c, steps, 1);
    struct wb_rest_request q = {
        .method = "POST", .path = "/up", .read = feed, .read_arg = &u, .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
    assert_string_equal(wb_buf_str(&c.answer.body), "ok");
    wb_rest_free(c.rest);
    c.rest = NULL;
    fake_stop(&c.fake);
    assert_non_null(strstr(c.fake.requests[0], "Transfer-Encoding: chunked\r\n"));
    int digits = 0;
    for (const char *p = strstr(c.fake.requests[0], "\r\n\r\n"); (p = strstr(p, "0123456789")); p++)
        digits++;
    assert_int_equal(digits, 3);
    wb_rest_answer_release(&c.answer);
    fake_release(&c.fake);
}

static void upload_source_that_fails_gives_its_error(void **state)
{
    static const struct fake_step steps[] = {FAKE("POST /up", OK_HEAD "\r\n", .end = FAKE_CLOSE)};
    struct call c;
    struct upload u = {.left = 3, .fail_at = 1};

    begin(&c, steps, 1);
    struct wb_rest_request q = {
        .method = "POST", .path = "/up", .read = feed, .read_arg = &u, .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_CORRUPT);
    assert_string_equal(c.err.root, "source broke");
    wb_rest_answer_release(&c.answer);
    wb_rest_free(c.rest);
    fake_stop(&c.fake);
    assert_int_equal(c.fake.next, 0); /* an upload that was broken off is no request */
    fake_release(&c.fake);
}

struct sink {
    size_t bytes;
    size_t fail_after;
    struct wb_cancel *cancel;
};

static int take(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct sink *s = arg;

    s->bytes += n;
    if (s->cancel)
        wb_cancel_set(s->cancel, SIGINT);
    return s->bytes > s->fail_after ? wb_fail(err, WB_LIMIT, "sink is full") : 0;
}

static void answer_is_streamed_past_any_bound(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /log", OK_HEAD "Connection: close\r\n\r\n", .end = FAKE_CLOSE, .flood = 3000000),
        FAKE("GET /err", "HTTP/1.1 500 E\r\nContent-Length: 3\r\n\r\nbad")};
    struct call c;
    struct sink s = {.fail_after = SIZE_MAX};

    begin(&c, steps, 2);
    struct wb_rest_request q = {
        .path = "/log", .data = take, .data_arg = &s, .answer_max = 10, .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
    assert_int_equal(s.bytes, 3000000);
    assert_int_equal(c.answer.body.len, 0);
    wb_rest_answer_release(&c.answer);
    q.path = "/err"; /* the text of an error is no data */
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), 0);
    assert_int_equal(s.bytes, 3000000);
    assert_string_equal(wb_buf_str(&c.answer.body), "bad");
    end(&c);
}

static void data_sink_that_fails_gives_its_error(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /log", OK_HEAD "Connection: close\r\n\r\n", .end = FAKE_CLOSE, .flood = 3000000)};
    struct call c;
    struct sink s = {.fail_after = 100000};

    begin(&c, steps, 1);
    struct wb_rest_request q = {.path = "/log", .data = take, .data_arg = &s, .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_LIMIT);
    assert_string_equal(c.err.root, "sink is full");
    assert_true(s.bytes < 1000000);
    end(&c);
}

static void long_answers_are_refused(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /1", OK_HEAD "Content-Length: 99999999999\r\n\r\n", .end = FAKE_STALL,
             .flood = 200000),
        FAKE("GET /2", OK_HEAD "Connection: close\r\n\r\n", .end = FAKE_CLOSE, .flood = 200000)};
    struct call c;

    begin(&c, steps, 2);
    for (int i = 0; i < 2; i++) {
        struct wb_rest_request q = {
            .path = i ? "/2" : "/1", .answer_max = 100000, .limit_ns = LIMIT};
        assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_LIMIT);
        assert_non_null(strstr(c.err.root, "more than 100000 bytes"));
        assert_true(c.answer.body.len <= 100000);
        wb_rest_answer_release(&c.answer);
    }
    end(&c);
}

static void broken_answers_are_told(void **state)
{
    static const struct {
        struct fake_step step;
        enum wb_code code;
        const char *text;
    } cases[] = {
        {FAKE("GET /", NULL, .end = FAKE_CLOSE), WB_UNAVAILABLE, "without an answer"},
        {FAKE("GET /", OK_HEAD "Content-Length: 100\r\n\r\nonly this", .end = FAKE_CLOSE),
         WB_PROTOCOL, "broke off its answer"},
        {FAKE("GET /", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", .end = FAKE_CLOSE),
         WB_PROTOCOL, "broke off its answer"},
        {FAKE("GET /", OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", .end = FAKE_CLOSE),
         WB_PROTOCOL, ""},
        {FAKE("GET /", "SSH-2.0-OpenSSH_9.2\r\n", .end = FAKE_CLOSE), WB_PROTOCOL,
         "no usable HTTP answer"},
        {FAKE("GET /", "\x01\x02\x03", .end = FAKE_CLOSE), WB_PROTOCOL, "no usable HTTP answer"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct call c;
        begin(&c, &cases[i].step, 1);
        int rc = get(&c, "/");
        if (rc != -(int)cases[i].code || !strstr(c.err.root, cases[i].text) ||
            !strstr(c.err.root, c.fake.socket))
            fail_msg("case %zu: %d %s", i, rc, c.err.root);
        end(&c);
    }
}

static void nobody_there_is_unavailable(void **state)
{
    static const char *const sockets[] = {"/nowhere/engine.sock", "/dev/null"};

    for (size_t i = 0; i < WB_LEN(sockets); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_rest *r = NULL;
        struct wb_rest_answer a;
        struct wb_rest_options o = {.unix_socket = sockets[i]};
        struct wb_rest_request q = {.path = "/", .limit_ns = LIMIT};
        assert_int_equal(wb_rest_open(&o, &r, &err), 0);
        assert_int_equal(wb_rest_do(r, &q, &a, &err), -WB_UNAVAILABLE);
        assert_int_equal(err.code, WB_UNAVAILABLE);
        assert_non_null(strstr(err.root, sockets[i]));
        wb_rest_answer_release(&a);
        wb_rest_free(r);
    }
}

static void deadline_ends_a_silent_server(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /", NULL, .end = FAKE_STALL),
        FAKE("GET /", OK_HEAD "Content-Length: 9\r\n\r\nabc", .end = FAKE_STALL)};
    struct call c;

    begin(&c, steps, 2);
    for (int i = 0; i < 2; i++) {
        int64_t start = wb_now_ns(NULL);
        struct wb_rest_request q = {.path = "/", .limit_ns = 150 * WB_MS};
        assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_TIMEOUT);
        assert_true(wb_now_ns(NULL) - start >= 150 * WB_MS);
        assert_non_null(strstr(c.err.root, "within 150 ms"));
        wb_rest_answer_release(&c.answer);
    }
    end(&c);
}

static void cancel_ends_a_request(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /", OK_HEAD "Content-Length: 9\r\n\r\nabc", .end = FAKE_STALL)};
    struct call c;
    struct sink s = {.fail_after = SIZE_MAX, .cancel = wb_cancel_new()};

    begin(&c, steps, 1);
    /* Set by the first data, while the server says nothing more. */
    struct wb_rest_request q = {
        .path = "/", .data = take, .data_arg = &s, .limit_ns = LIMIT, .cancel = s.cancel};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_CANCELLED);
    assert_int_equal(s.bytes, 3);
    end(&c);
    wb_cancel_free(s.cancel);
}

static void redirects_are_not_followed(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /", "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")};
    struct call c;

    begin(&c, steps, 1);
    assert_int_equal(get(&c, "/"), 0);
    assert_int_equal(c.answer.status, 302);
    end(&c);
}

static void requests_cannot_be_split(void **state)
{
    static const char *const paths[] = {"",      "relative",  "/a b", "/a\r\nX: y",
                                        "/\x7f", "/\xc3\xa4", "/a\tb"};
    static const char *const header[] = {"X: 1\r\nY: 2", NULL};
    struct call c;

    begin(&c, NULL, 0);
    for (size_t i = 0; i < WB_LEN(paths); i++)
        assert_int_equal(get(&c, paths[i]), -WB_INVALID);
    struct wb_rest_request q = {.path = "/", .header = header, .limit_ns = LIMIT};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_INVALID);
    q = (struct wb_rest_request){.path = "/"};
    assert_int_equal(wb_rest_do(c.rest, &q, &c.answer, &c.err), -WB_INVALID);
    end(&c);
}

static void queries_are_encoded(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1000);

    wb_buf_adds(&b, "/p");
    wb_rest_add_query(&b, "a", "x y&z=1/%");
    wb_rest_add_query(&b, "b[]", "\xc3\xa4-._~");
    assert_string_equal(wb_buf_str(&b), "/p?a=x%20y%26z%3D1%2F%25&b%5B%5D=%C3%A4-._~");
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_reads_status_type_header_and_body),
        cmocka_unit_test(connection_is_used_again),
        cmocka_unit_test(body_and_headers_arrive),
        cmocka_unit_test(upload_is_streamed),
        cmocka_unit_test(upload_source_that_fails_gives_its_error),
        cmocka_unit_test(answer_is_streamed_past_any_bound),
        cmocka_unit_test(data_sink_that_fails_gives_its_error),
        cmocka_unit_test(long_answers_are_refused),
        cmocka_unit_test(broken_answers_are_told),
        cmocka_unit_test(nobody_there_is_unavailable),
        cmocka_unit_test(deadline_ends_a_silent_server),
        cmocka_unit_test(cancel_ends_a_request),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(requests_cannot_be_split),
        cmocka_unit_test(queries_are_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
