/* Streams of the Engine API: recorded ones, cut ones, hostile ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "provisioners/forms/docker_stream.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define DATA "tests/data/docker/"

struct got {
    struct wb_buf of[4];
    size_t calls, fail_at;
};

static int collect(void *arg, enum wb_stream stream, const void *data, size_t n, struct wb_err *err)
{
    struct got *g = arg;

    assert_true(n > 0);
    if (++g->calls == g->fail_at)
        return wb_fail(err, WB_LIMIT, "sink is full");
    wb_buf_add(&g->of[stream], data, n);
    return 0;
}

static void got_init(struct got *g)
{
    *g = (struct got){0};
    for (int i = 0; i < 4; i++)
        g->of[i] = (struct wb_buf)WB_BUF_INIT(1 << 20);
}

static void got_release(struct got *g)
{
    for (int i = 0; i < 4; i++)
        wb_buf_release(&g->of[i]);
}

static void load(const char *name, char **data, size_t *n)
{
    WB_AUTO_FREE char *path = wb_strf(DATA "%s", name);
    struct wb_err err = WB_ERR_INIT;

    if (wb_file_read(path, 1 << 20, data, n, &err) < 0)
        fail_msg("%s (run from the top of the tree)", err.root);
}

/* Feeds data in parts of `size`; every part is a heap block of its own, so that a read beyond it
 * is seen. */
static int feed(struct wb_demux *d, const char *data, size_t n, size_t size, struct wb_err *err)
{
    for (size_t at = 0; at < n; at += size) {
        size_t take = n - at < size ? n - at : size;
        char *part = malloc(take);
        memcpy(part, data + at, take);
        int rc = wb_demux_feed(d, part, take, err);
        free(part);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void frames_are_the_same_for_every_read_size(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 4096, 16384, 1000000};
    char *frames, *out, *err_text;
    size_t n, n_out, n_err;

    load("024-frames.bin", &frames, &n);
    load("024-frames.stdout", &out, &n_out);
    load("024-frames.stderr", &err_text, &n_err);
    for (size_t i = 0; i < WB_LEN(sizes) + 300; i++) {
        size_t size = i < WB_LEN(sizes) ? sizes[i] : i - WB_LEN(sizes) + 1;
        struct got g;
        struct wb_err err = WB_ERR_INIT;
        got_init(&g);
        struct wb_demux d = {.sink = collect, .arg = &g};
        assert_int_equal(feed(&d, frames, n, size, &err), 0);
        assert_false(wb_demux_truncated(&d, NULL));
        assert_int_equal(g.of[WB_STREAM_OUT].len, n_out);
        assert_memory_equal(g.of[WB_STREAM_OUT].data, out, n_out);
        assert_int_equal(g.of[WB_STREAM_ERR].len, n_err);
        assert_memory_equal(g.of[WB_STREAM_ERR].data, err_text, n_err);
        assert_int_equal(g.of[WB_STREAM_IN].len, 0);
        assert_int_equal(g.of[WB_STREAM_ENGINE].len, 0);
        got_release(&g);
    }
    free(frames);
    free(out);
    free(err_text);
}

static void terminal_output_is_left_alone(void **state)
{
    char *tty;
    size_t n;
    struct got g;
    struct wb_err err = WB_ERR_INIT;

    load("024-tty.bin", &tty, &n);
    got_init(&g);
    struct wb_demux d = {.tty = true, .sink = collect, .arg = &g};
    assert_int_equal(feed(&d, tty, n, 7, &err), 0);
    assert_false(wb_demux_truncated(&d, NULL));
    assert_int_equal(g.of[WB_STREAM_OUT].len, n);
    assert_memory_equal(g.of[WB_STREAM_OUT].data, tty, n);
    got_release(&g);
    free(tty);
}

static void terminal_output_taken_for_frames_is_an_error(void **state)
{
    char *tty;
    size_t n;
    struct got g;
    struct wb_err err = WB_ERR_INIT;

    load("024-tty.bin", &tty, &n);
    got_init(&g);
    struct wb_demux d = {.sink = collect, .arg = &g};
    assert_int_equal(feed(&d, tty, n, 4096, &err), -WB_PROTOCOL);
    assert_non_null(strstr(err.root, "54 54 59 20"));
    assert_int_equal(g.calls, 0);
    got_release(&g);
    free(tty);
}

static void cut_stream_gives_what_was_there_and_a_mark(void **state)
{
    char *cut;
    size_t n;

    load("024-cut.bin", &cut, &n);
    for (size_t size = 1; size <= n; size++) {
        struct got g;
        struct wb_err err = WB_ERR_INIT;
        struct wb_buf mark = WB_BUF_INIT(200);
        got_init(&g);
        struct wb_demux d = {.sink = collect, .arg = &g};
        assert_int_equal(feed(&d, cut, n, size, &err), 0);
        assert_string_equal(wb_buf_str(&g.of[WB_STREAM_OUT]),
                            "whole line\nonly forty bytes of the promised five hun");
        assert_true(wb_demux_truncated(&d, &mark));
        assert_string_equal(wb_buf_str(&mark),
                            "\n[log cut: 41 of 500 bytes of the last frame arrived]\n");
        wb_buf_release(&mark);
        got_release(&g);
    }
    free(cut);
}

static void stream_cut_in_a_header_is_marked(void **state)
{
    static const char frame[] = "\1\0\0\0\0\0\0\1x\2\0\0";
    struct got g;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf mark = WB_BUF_INIT(200);

    got_init(&g);
    struct wb_demux d = {.sink = collect, .arg = &g};
    assert_int_equal(wb_demux_feed(&d, frame, 9, &err), 0);
    assert_false(wb_demux_truncated(&d, &mark));
    assert_int_equal(mark.len, 0);
    assert_int_equal(wb_demux_feed(&d, frame + 9, 3, &err), 0);
    assert_true(wb_demux_truncated(&d, &mark));
    assert_non_null(strstr(wb_buf_str(&mark), "inside a frame header"));
    wb_buf_release(&mark);
    got_release(&g);
}

static void huge_frame_costs_only_what_arrives(void **state)
{
    static const char head[] = "\1\0\0\0\xff\xff\xff\xff";
    struct got g;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf mark = WB_BUF_INIT(200);

    got_init(&g);
    struct wb_demux d = {.sink = collect, .arg = &g};
    assert_int_equal(wb_demux_feed(&d, head, 8, &err), 0);
    assert_int_equal(wb_demux_feed(&d, "abc", 3, &err), 0);
    assert_string_equal(wb_buf_str(&g.of[WB_STREAM_OUT]), "abc");
    assert_true(g.of[WB_STREAM_OUT].cap < 4096);
    assert_true(wb_demux_truncated(&d, &mark));
    assert_string_equal(wb_buf_str(&mark),
                        "\n[log cut: 3 of 4294967295 bytes of the last frame arrived]\n");
    wb_buf_release(&mark);
    got_release(&g);
}

static void empty_frames_do_not_stop_the_reader(void **state)
{
    struct got g;
    struct wb_err err = WB_ERR_INIT;

    got_init(&g);
    struct wb_demux d = {.sink = collect, .arg = &g};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wb_demux_feed(&d, "\2\0\0\0\0\0\0\0", 8, &err), 0);
    assert_int_equal(g.calls, 0);
    assert_int_equal(wb_demux_feed(&d, "\3\0\0\0\0\0\0\2hi", 10, &err), 0);
    assert_string_equal(wb_buf_str(&g.of[WB_STREAM_ENGINE]), "hi");
    assert_int_equal(wb_demux_feed(&d, NULL, 0, &err), 0);
    got_release(&g);
}

static void bad_headers_are_refused(void **state)
{
    static const char bad[][8] = {"\4\0\0\0\0\0\0\1", "\1\1\0\0\0\0\0\1",   "\1\0\1\0\0\0\0\1",
                                  "\1\0\0\1\0\0\0\1", "\xff\0\0\0\0\0\0\1", "HTTP/1.1"};

    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct got g;
        struct wb_err err = WB_ERR_INIT;
        got_init(&g);
        struct wb_demux d = {.sink = collect, .arg = &g};
        assert_int_equal(wb_demux_feed(&d, bad[i], 8, &err), -WB_PROTOCOL);
        assert_int_equal(g.calls, 0);
        got_release(&g);
    }
}

static void sink_errors_come_through(void **state)
{
    struct got g;
    struct wb_err err = WB_ERR_INIT;

    got_init(&g);
    g.fail_at = 2;
    struct wb_demux d = {.sink = collect, .arg = &g};
    assert_int_equal(wb_demux_feed(&d, "\1\0\0\0\0\0\0\1a\1\0\0\0\0\0\0\1b", 18, &err), -WB_LIMIT);
    assert_string_equal(err.root, "sink is full");
    got_release(&g);
}

struct lines {
    struct wb_buf text;
    int n;
};

static int on_line(void *arg, const wb_json *line, struct wb_err *err)
{
    struct lines *l = arg;

    l->n++;
    wb_json_line(line, &l->text);
    return 0;
}

static void progress_lines_are_put_together(void **state)
{
    static const char text[] = "{\"status\":\"a\"}\r\n\r\n{\"status\":\"b\"}\n  \n{\"c\":1}";

    for (size_t size = 1; size < sizeof text; size++) {
        struct lines l = {.text = WB_BUF_INIT(1000)};
        struct wb_progress p = WB_PROGRESS_INIT(on_line, &l);
        struct wb_err err = WB_ERR_INIT;
        for (size_t at = 0; at < sizeof text - 1; at += size) {
            size_t left = sizeof text - 1 - at;
            assert_int_equal(wb_progress_feed(&p, text + at, left < size ? left : size, &err), 0);
        }
        assert_int_equal(wb_progress_end(&p, &err), 0);
        assert_int_equal(l.n, 3);
        assert_string_equal(wb_buf_str(&l.text), "{\"status\":\"a\"}{\"status\":\"b\"}{\"c\":1}");
        assert_null(p.error);
        wb_progress_release(&p);
        wb_buf_release(&l.text);
    }
}

static void progress_errors_are_kept(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"errorDetail\":{\"code\":1,\"message\":\"m\"},\"error\":\"e\"}\n", "e"},
        {"{\"errorDetail\":{\"message\":\"m\"}}\n", "m"},
        {"{\"error\":\"first\"}\n{\"error\":\"second\"}\n", "first"},
        {"{\"status\":\"error\"}\n", NULL},
        {"[]\n", NULL},
        {"{\"error\":7}\n", NULL},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_progress p = WB_PROGRESS_INIT(NULL, NULL);
        struct wb_err err = WB_ERR_INIT;
        assert_int_equal(wb_progress_feed(&p, cases[i].text, strlen(cases[i].text), &err), 0);
        assert_int_equal(wb_progress_end(&p, &err), 0);
        if (cases[i].error)
            assert_string_equal(p.error, cases[i].error);
        else
            assert_null(p.error);
        wb_progress_release(&p);
    }
}

static void progress_is_bounded_and_strict(void **state)
{
    struct wb_progress p = WB_PROGRESS_INIT(NULL, NULL);
    struct wb_err err = WB_ERR_INIT;
    char part[1024];
    int rc = 0;
    size_t fed = 0;

    memset(part, 'x', sizeof part);
    for (; rc == 0 && fed < 4 * WB_PROGRESS_LINE_MAX; fed += sizeof part)
        rc = wb_progress_feed(&p, part, sizeof part, &err);
    assert_int_equal(rc, -WB_LIMIT);
    assert_int_equal(fed, WB_PROGRESS_LINE_MAX + sizeof part);
    wb_progress_release(&p);
    p = (struct wb_progress)WB_PROGRESS_INIT(NULL, NULL);
    assert_int_equal(wb_progress_feed(&p, "<html>\n", 7, &err), -WB_PROTOCOL);
    wb_progress_release(&p);
    p = (struct wb_progress)WB_PROGRESS_INIT(NULL, NULL);
    assert_int_equal(wb_progress_feed(&p, "{\"a\":", 5, &err), 0);
    assert_int_equal(wb_progress_end(&p, &err), -WB_PROTOCOL);
    wb_progress_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_the_same_for_every_read_size),
        cmocka_unit_test(terminal_output_is_left_alone),
        cmocka_unit_test(terminal_output_taken_for_frames_is_an_error),
        cmocka_unit_test(cut_stream_gives_what_was_there_and_a_mark),
        cmocka_unit_test(stream_cut_in_a_header_is_marked),
        cmocka_unit_test(huge_frame_costs_only_what_arrives),
        cmocka_unit_test(empty_frames_do_not_stop_the_reader),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(sink_errors_come_through),
        cmocka_unit_test(progress_lines_are_put_together),
        cmocka_unit_test(progress_errors_are_kept),
        cmocka_unit_test(progress_is_bounded_and_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
