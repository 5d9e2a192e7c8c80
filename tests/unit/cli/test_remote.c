#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/file.h"
#include "server/cli/remote.h"

/* ---- the event stream ---- */

struct heard {
    struct wb_buf text;
    int end_at; /* the event that ends it, from 1; 0: none */
    int n;
};

static int hear(void *arg, const char *type, const wb_json *data, struct wb_err *err)
{
    struct heard *h = arg;

    (void)err;
    wb_buf_addf(&h->text, "[%s:", type);
    if (data)
        wb_json_line(data, &h->text);
    wb_buf_addc(&h->text, ']');
    return ++h->n == h->end_at;
}

static const char stream[] = ": hello\nretry: 3000\n\nid: 7\nevent: campaign.state\n"
                             "data: {\"a\":\ndata: 1}\n\n:\n\nid:8\r\nevent:x\r\ndata:{}\r\n\r\n"
                             "data: not json\n\nevent: nothing\n\nid: 9\nevent: half\ndata: {}\n";
static const char all_of_it[] = "[campaign.state:{\"a\":1}][x:{}][message:]";

/* The same whatever parts it comes in: cut once at every byte, and byte by byte. */
static void test_stream_cuts(void **state)
{
    const size_t n = sizeof(stream) - 1;

    (void)state;
    for (size_t cut = 0; cut <= n + 1; cut++) {
        struct heard h = {.text = WB_BUF_INIT(4096)};
        struct wb_sse s;

        wb_sse_init(&s);
        if (cut > n) {
            for (size_t i = 0; i < n; i++)
                assert_int_equal(wb_sse_feed(&s, stream + i, 1, hear, &h, NULL), 0);
        } else {
            assert_int_equal(wb_sse_feed(&s, stream, cut, hear, &h, NULL), 0);
            assert_int_equal(wb_sse_feed(&s, stream + cut, n - cut, hear, &h, NULL), 0);
        }
        assert_string_equal(wb_buf_str(&h.text), all_of_it);
        assert_string_equal(s.id, "9"); /* of what may still be lost: it was read */
        wb_sse_release(&s);
        wb_buf_release(&h.text);
    }
}

static void test_stream_ends(void **state)
{
    struct heard h = {.text = WB_BUF_INIT(4096), .end_at = 1};
    struct wb_sse s;

    (void)state;
    wb_sse_init(&s);
    assert_int_equal(wb_sse_feed(&s, stream, sizeof(stream) - 1, hear, &h, NULL), 1);
    assert_int_equal(h.n, 1);
    wb_sse_release(&s);
    wb_buf_release(&h.text);
}

/* A server that never ends a line or an event takes no memory without bound. */
static void test_stream_bounds(void **state)
{
    char *block = wb_calloc(1, 65536);
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    for (int with_lines = 0; with_lines <= 1; with_lines++) {
        struct heard h = {.text = WB_BUF_INIT(4096)};
        struct wb_sse s;
        int rc = 0;

        memset(block, 'x', 65536);
        if (with_lines) {
            memcpy(block, "data:", 5);
            block[65535] = '\n';
        }
        wb_sse_init(&s);
        for (int i = 0; rc == 0 && i < 64; i++)
            rc = wb_sse_feed(&s, block, 65536, hear, &h, &err);
        assert_int_equal(rc, -WB_LIMIT);
        assert_int_equal(h.n, 0);
        wb_sse_release(&s);
        wb_buf_release(&h.text);
    }
    free(block);
}

/* ---- addresses and tokens ---- */

static void test_addresses(void **state)
{
    static const struct {
        const char *url;
        int rc;
    } rows[] = {
        {"http://127.0.0.1:8420", 0},
        {"http://localhost:8420///", 0},
        {"https://[::1]:1/prefix", 0},
        {"ftp://x", -WB_INVALID},
        {"127.0.0.1:8420", -WB_INVALID},
        {"http://", -WB_INVALID},
        {"http:///x", -WB_INVALID},
        {"http://user:pw@host", -WB_INVALID},
        {"http://host/?token=wb_1", -WB_INVALID},
        {"http://ho st", -WB_INVALID},
        {"http://host\r\nX: 1", -WB_INVALID},
        {"", -WB_INVALID},
    };

    (void)state;
    unsetenv("WB_TOKEN");
    unsetenv("WB_TOKEN_FILE");
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const struct wb_cli cli = {.server = rows[i].url};
        struct wb_err err = WB_ERR_INIT;
        struct wb_remote *r = NULL;

        assert_int_equal(wb_remote_open(&cli, &r, &err), rows[i].rc);
        if (r)
            assert_int_not_equal(wb_remote_url(r)[strlen(wb_remote_url(r)) - 1], '/');
        wb_remote_free(r);
    }
}

static void test_token_files(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        mode_t mode;
        int rc;
    } rows[] = {
        {"wb_abc_def\n", 11, 0600, 0},           {"wb_abc_def", 10, 0400, 0},
        {"wb_abc_def\n", 11, 0644, -WB_INVALID}, {"wb_abc_def\n", 11, 0660, -WB_INVALID},
        {"wb_abc_def\n", 11, 0601, -WB_INVALID}, {"", 0, 0600, -WB_INVALID},
        {" \n", 2, 0600, -WB_INVALID},           {"wb_a\nX-Other: 1\n", 16, 0600, -WB_INVALID},
        {"wb_a\0b", 6, 0600, -WB_INVALID},       {"wb_\xc3\xa4", 5, 0600, -WB_INVALID},
    };
    char dir[] = "/tmp/wb-remote-XXXXXX";
    WB_AUTO_FREE char *path = NULL;
    struct wb_cli cli = {.server = "http://127.0.0.1:9"};
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    path = wb_strf("%s/token", dir);
    cli.token_file = path;
    assert_int_equal(wb_remote_open(&cli, &r, &err), -WB_NOT_FOUND);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        assert_int_equal(wb_file_write(path, rows[i].text, rows[i].n, 0600, NULL), 0);
        assert_int_equal(chmod(path, rows[i].mode), 0);
        r = NULL;
        assert_int_equal(wb_remote_open(&cli, &r, &err), rows[i].rc);
        assert_null(strstr(err.root, "abc_def")); /* a token is in no message */
        wb_remote_free(r);
    }
    cli.token_file = dir; /* a folder is no file */
    assert_int_equal(wb_remote_open(&cli, &r, &err), -WB_INVALID);
    assert_int_equal(wb_remove_tree(dir, NULL), 0);
}

/* ---- problems of a study ---- */

static void test_study_problems(void **state)
{
    static const char text[] = "study: x\nrecipe:\n  name: redis\n  version: \"9\"\nfactors:\n"
                               "  form:\n    - native x1\n    - dockr x1\n";
    static const struct {
        const char *pointer;
        int line;
    } rows[] = {{"/recipe/version", 4}, {"/factors/form/1", 8},
                {"/rounds", 1},         {"", 1},
                {"/factors/form/9", 7}, {"/a~1b", 1}};
    WB_AUTO_JSON wb_json *problem = wb_json_object();
    wb_json *errors = wb_json_array();
    struct wb_problems p = {.file = "x.yaml"};

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        wb_json *e = wb_json_object();

        wb_json_set_str(e, "pointer", rows[i].pointer);
        wb_json_set_str(e, "message", "wrong");
        wb_json_push(errors, e);
    }
    wb_json_set(problem, "errors", errors);
    wb_remote_study_problems(problem, text, &p);
    assert_int_equal(p.n, WB_LEN(rows));
    for (size_t i = 0; i < p.n; i++) {
        assert_string_equal(p.v[i].pointer, rows[i].pointer);
        assert_string_equal(p.v[i].file, "x.yaml");
        assert_int_equal(p.v[i].line, rows[i].line);
    }
    wb_problems_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_cuts),   cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_stream_bounds), cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_token_files),   cmocka_unit_test(test_study_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
