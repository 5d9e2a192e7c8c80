#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/message.h"

static void targets_are_taken_apart(void **state)
{
    static const struct {
        const char *target;
        int rc;
        const char *path; /* or what the error says */
        size_t segments, query;
    } rows[] = {
        {"/", 0, "/", 0, 0},
        {"/api/v1/runs", 0, "/api/v1/runs", 3, 0},
        {"/api/v1/runs/", 0, "/api/v1/runs", 3, 0},
        {"/a%20b/%C3%A9?x=1&y=&z&x=2", 0, "/a b/\xc3\xa9", 2, 4},
        {"/a?", 0, "/a", 1, 0},
        {"/a?&&x=%26%3D+%2B", 0, "/a", 1, 1},
        {"", -WB_INVALID, "begin with a slash", 0, 0},
        {"a", -WB_INVALID, "begin with a slash", 0, 0},
        {"http://x/a", -WB_INVALID, "begin with a slash", 0, 0},
        {"//a", -WB_INVALID, "empty part", 0, 0},
        {"/a//b", -WB_INVALID, "empty part", 0, 0},
        {"/a/../b", -WB_INVALID, "'..' cannot be", 0, 0},
        {"/a/%2e%2e/b", -WB_INVALID, "'..' cannot be", 0, 0},
        {"/a/%2Fetc", -WB_INVALID, "cannot be a part", 0, 0},
        {"/healthz%00", -WB_INVALID, "control character", 0, 0},
        {"/a%0d%0aX", -WB_INVALID, "control character", 0, 0},
        {"/a?x=%7f", -WB_INVALID, "control character", 0, 0},
        {"/%", -WB_INVALID, "two hex digits", 0, 0},
        {"/%4", -WB_INVALID, "two hex digits", 0, 0},
        {"/%4g", -WB_INVALID, "two hex digits", 0, 0},
        {"/%ff", -WB_INVALID, "not UTF-8", 0, 0},
        {"/a#b", -WB_INVALID, "fragment", 0, 0},
        {"/1/2/3/4/5/6/7/8/9/10/11/12/13", -WB_INVALID, "more than 12 parts", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {0};
        struct wb_err err = WB_ERR_INIT;

        assert_int_equal(wb_request_target(&q, rows[i].target, &err), rows[i].rc);
        if (rows[i].rc < 0) {
            assert_non_null(strstr(err.root, rows[i].path));
        } else {
            assert_string_equal(q.path, rows[i].path);
            assert_int_equal(q.nsegments, rows[i].segments);
            assert_int_equal(q.nquery, rows[i].query);
        }
        wb_request_release(&q);
    }
}

static void long_targets_are_refused(void **state)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    struct wb_request q = {0};
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    wb_buf_adds(&b, "/a?x=");
    while (b.len < WB_HTTP_TARGET_MAX + 1)
        wb_buf_addc(&b, 'x');
    assert_int_equal(wb_request_target(&q, b.data, &err), -WB_LIMIT);
    wb_request_release(&q);
    b.len = 0;
    wb_buf_adds(&b, "/a?");
    for (int i = 0; i < WB_HTTP_QUERY_MAX + 1; i++)
        wb_buf_adds(&b, "x&");
    assert_int_equal(wb_request_target(&q, b.data, &err), -WB_INVALID);
    wb_request_release(&q);
    wb_buf_release(&b);
}

static void query_values_are_read(void **state)
{
    struct wb_request q = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t n = 0;

    (void)state;
    assert_int_equal(wb_request_target(&q, "/r?limit=5&limit=7&curser=a+b%2B", NULL), 0);
    assert_string_equal(wb_request_query(&q, "limit"), "7");
    assert_string_equal(wb_request_query(&q, "curser"), "a b+");
    assert_null(wb_request_query(&q, "other"));
    assert_int_equal(wb_request_int(&q, "limit", 1, 500, 50, &n, NULL), 0);
    assert_int_equal(n, 7);
    assert_int_equal(wb_request_int(&q, "limit", 1, 6, 50, &n, &err), -WB_INVALID);
    assert_int_equal(wb_request_int(&q, "absent", 1, 6, 50, &n, NULL), 0);
    assert_int_equal(n, 50);
    wb_request_release(&q);
}

static void tags_are_found_in_lists(void **state)
{
    static const struct {
        const char *sent;
        bool weak, strong;
    } rows[] = {
        {"\"a\"", true, true},    {"\"b\", \"a\"", true, true},
        {"W/\"a\"", true, false}, {"\"b\" ,W/\"a\"", true, false},
        {"*", true, true},        {"\"ab\"", false, false},
        {"\"a", false, false},    {"", false, false},
        {"a", false, false},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        assert_int_equal(wb_tag_listed(rows[i].sent, "\"a\"", true), rows[i].weak);
        assert_int_equal(wb_tag_listed(rows[i].sent, "\"a\"", false), rows[i].strong);
    }
    assert_false(wb_tag_listed(NULL, "\"a\"", true));
}

static void cookies_are_found_by_their_whole_name(void **state)
{
    static const struct {
        const char *sent, *value;
    } rows[] = {
        {"wb_session=abc", "abc"},
        {"a=1; wb_session=abc; b=2", "abc"},
        {"xwb_session=no; wb_session=yes", "yes"},
        {"wb_sessions=no", NULL},
        {"", NULL},
        {";;; wb_session=", ""},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {0};
        size_t n = 0;
        const char *got;

        q.headers[WB_H_COOKIE] = wb_strdup(rows[i].sent);
        got = wb_request_cookie(&q, "wb_session", &n);
        if (rows[i].value) {
            assert_non_null(got);
            assert_int_equal(n, strlen(rows[i].value));
            assert_memory_equal(got, rows[i].value, n);
        } else {
            assert_null(got);
        }
        wb_request_release(&q);
    }
}

static const char *header(const struct wb_answer *a, const char *name)
{
    for (size_t i = 0; i < a->nheaders; i++)
        if (!strcmp(a->headers[i].name, name))
            return a->headers[i].value;
    return NULL;
}

static void an_entity_that_is_known_is_not_sent(void **state)
{
    struct wb_request q = {.method = wb_strdup("GET")};
    struct wb_answer a = {0};
    WB_AUTO_FREE char *tag = NULL;

    (void)state;
    wb_answer_json(&q, &a, 200, wb_json_object());
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body.data, "{}\n");
    tag = wb_strdup(header(&a, "ETag"));
    wb_answer_release(&a);

    q.headers[WB_H_IF_NONE_MATCH] = wb_strf("\"other\", W/%s", tag);
    wb_answer_json(&q, &a, 200, wb_json_object());
    assert_int_equal(a.status, 304);
    assert_int_equal(a.body.len, 0);
    wb_answer_release(&a);
    wb_answer_json(&q, &a, 200, wb_json_array()); /* another entity */
    assert_int_equal(a.status, 200);
    wb_answer_release(&a);
    wb_answer_json(&q, &a, 201, wb_json_object()); /* nothing was there before */
    assert_int_equal(a.status, 201);
    assert_null(header(&a, "ETag"));
    wb_answer_release(&a);
    wb_request_release(&q);
}

/* 304 belongs to reading; a write that was done answers what came of it. */
static void a_write_is_never_answered_with_304(void **state)
{
    static const struct {
        const char *method;
        int status;
    } rows[] = {{"GET", 304}, {"HEAD", 304}, {"PUT", 200}, {"PATCH", 200}, {"POST", 200}};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {.method = wb_strdup(rows[i].method)};
        struct wb_answer a = {0};

        q.headers[WB_H_IF_NONE_MATCH] = wb_strdup("*");
        wb_answer_json(&q, &a, 200, wb_json_object());
        assert_int_equal(a.status, rows[i].status);
        assert_int_equal(a.body.len, rows[i].status == 304 ? 0 : 3);
        wb_answer_release(&a);
        wb_request_release(&q);
    }
}

static void an_answer_has_one_tag(void **state)
{
    struct wb_request q = {.method = wb_strdup("GET")};
    struct wb_answer a = {0};
    size_t n = 0;

    (void)state;
    assert_false(wb_answer_tag(&q, &a, "\"v3\""));
    wb_answer_json(&q, &a, 200, wb_json_object());
    for (size_t i = 0; i < a.nheaders; i++)
        n += !strcmp(a.headers[i].name, "ETag");
    assert_int_equal(n, 1);
    assert_string_equal(header(&a, "ETag"), "\"v3\"");
    wb_answer_release(&a);
    wb_request_release(&q);
}

static void what_was_written_is_told_whatever_memory_there_is(void **state)
{
    static const struct {
        const char *method;
        size_t n;
        bool may;
    } rows[] = {
        {"GET", WB_HTTP_SMALL_ANSWER, true},      {"HEAD", WB_HTTP_SMALL_ANSWER, true},
        {"GET", WB_HTTP_SMALL_ANSWER - 1, false}, {"POST", WB_HTTP_SMALL_ANSWER, false},
        {"PATCH", WB_HTTP_SMALL_ANSWER, false},   {"DELETE", 0, false},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {.method = wb_strdup(rows[i].method)};
        struct wb_answer a = {.body = {.len = rows[i].n}};

        assert_int_equal(wb_answer_may_be_refused(&q, &a), rows[i].may);
        wb_request_release(&q);
    }
}

static void the_next_page_keeps_the_query(void **state)
{
    struct wb_request q = {0};
    struct wb_answer a = {0};

    (void)state;
    assert_int_equal(wb_request_target(&q, "/r?arm=a%20b&cursor=old&limit=2", NULL), 0);
    wb_answer_list(&q, &a, wb_json_array(), wb_strdup("x/1"));
    assert_string_equal(header(&a, "Link"), "</r?arm=a%20b&limit=2&cursor=x%2F1>; rel=\"next\"");
    assert_string_equal(a.body.data, "{\"items\":[],\"next\":\"x/1\"}\n");
    wb_answer_release(&a);
    wb_request_release(&q);
}

static void headers_cannot_be_split(void **state)
{
    struct wb_answer a = {0};

    (void)state;
    wb_answer_header(&a, "Location", "/a\r\nSet-Cookie: x");
    assert_string_equal(header(&a, "Location"), "/a  Set-Cookie: x");
    wb_answer_release(&a);
}

static void errors_have_their_status(void **state)
{
    static const struct {
        enum wb_code code;
        int status;
        const char *type;
    } rows[] = {
        {WB_INVALID, 422, "/problems/validation"},
        {WB_NOT_FOUND, 404, "/problems/not-found"},
        {WB_CONFLICT, 409, "/problems/state-conflict"},
        {WB_IO, 500, "/problems/io"},
        {WB_CORRUPT, 500, "/problems/corrupt"},
        {WB_LIMIT, 413, "/problems/payload-too-large"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_request q = {0};
        struct wb_answer a = {0};
        struct wb_err err = WB_ERR_INIT;
        WB_AUTO_JSON wb_json *doc = NULL;

        (void)wb_fail(&err, rows[i].code, "no %s", "luck");
        wb_answer_error(&q, &a, &err);
        assert_int_equal(a.status, rows[i].status);
        assert_string_equal(a.type, "application/problem+json");
        assert_int_equal(wb_json_parse(a.body.data, a.body.len, &doc, NULL), 0);
        assert_string_equal(wb_json_str_or(doc, "type", ""), rows[i].type);
        assert_string_equal(wb_json_str_or(doc, "detail", ""), "no luck");
        assert_int_equal(wb_json_int_or(doc, "status", 0), rows[i].status);
        wb_answer_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_taken_apart),
        cmocka_unit_test(long_targets_are_refused),
        cmocka_unit_test(query_values_are_read),
        cmocka_unit_test(tags_are_found_in_lists),
        cmocka_unit_test(cookies_are_found_by_their_whole_name),
        cmocka_unit_test(an_entity_that_is_known_is_not_sent),
        cmocka_unit_test(a_write_is_never_answered_with_304),
        cmocka_unit_test(an_answer_has_one_tag),
        cmocka_unit_test(what_was_written_is_told_whatever_memory_there_is),
        cmocka_unit_test(the_next_page_keeps_the_query),
        cmocka_unit_test(headers_cannot_be_split),
        cmocka_unit_test(errors_have_their_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
