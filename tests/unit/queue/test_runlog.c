#include <fcntl.h>
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
#include "server/base/mem.h"
#include "server/http/hub.h"
#include "server/queue/runlog.h"

#define RUN "run_01M8QA0000000000000000000A"

struct place {
    char dir[32];
    char *log, *path;
    struct wb_runlog *tail;
    struct wb_buf got; /* what a reader has put together */
    int64_t at;        /* bytes of it, as the events count them */
    int texts, holes;
    struct wb_hub *hub;
};

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));

    memcpy(p->dir, "/tmp/wb-tail-XXXXXX", sizeof("/tmp/wb-tail-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    p->log = wb_strf("%s/campaigns/cmp_1/runs/" RUN "/db0/log", p->dir);
    p->path = wb_strf("%s/redis.log", p->log);
    p->got = (struct wb_buf)WB_BUF_INIT(1u << 20);
    assert_int_equal(wb_mkdir_all(p->log, 0755, NULL), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    wb_runlog_free(p->tail);
    wb_hub_free(p->hub);
    wb_buf_release(&p->got);
    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    free(p->log);
    free(p->path);
    free(p);
    return 0;
}

static void append(const char *path, const char *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(close(fd), 0);
}

/* A reader: text where it is given, else the bytes of the file. */
static void hear(void *arg, const char *const *topics, const char *type, wb_json *data)
{
    struct place *p = arg;
    int64_t from = wb_json_int_or(data, "from", -1), to = wb_json_int_or(data, "to", -1);
    const char *text = wb_json_str_or(data, "text", NULL);

    assert_string_equal(type, "run.log");
    assert_string_equal(topics[0], "run:" RUN);
    assert_null(topics[1]);
    assert_string_equal(wb_json_str_or(data, "stream", ""), "db0.redis.log");
    assert_int_equal(from, p->at); /* parts meet without gap */
    assert_true(to > from);
    if (text) {
        assert_int_equal(strlen(text), to - from);
        wb_buf_add(&p->got, text, strlen(text));
        p->texts++;
    } else {
        WB_AUTO_FREE char *all = NULL;
        size_t n = 0;

        assert_int_equal(wb_file_read(p->path, 1u << 20, &all, &n, NULL), 0);
        wb_buf_add(&p->got, all + from, (size_t)(to - from));
        p->holes++;
    }
    p->at = to;
    wb_json_free(data);
}

/* One, two, three and four bytes a character, and bytes that are none. */
static const char content[] =
    "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x98\n\x1b[31mred\x1b[0m \xff\xfe \xe2\x82 \xc3\n"
    "\"quoted\\\" </script> \xed\xa0\x80 end\n";

/* Looked at after every byte, and cut once at every byte. */
static void cuts_at_every_byte(void **state)
{
    struct place *p = *state;
    const size_t n = sizeof(content) - 1;

    for (size_t cut = 0; cut <= n + 1; cut++) {
        unlink(p->path);
        wb_runlog_free(p->tail);
        p->tail = wb_runlog_new(p->dir, "cmp_1");
        wb_runlog_read(p->tail, hear, p); /* nothing there yet */
        p->at = 0;
        wb_buf_clear(&p->got);
        if (cut > n) {
            for (size_t i = 0; i < n; i++) {
                append(p->path, content + i, 1);
                wb_runlog_read(p->tail, hear, p);
            }
        } else {
            append(p->path, content, cut);
            wb_runlog_read(p->tail, hear, p);
            append(p->path, content + cut, n - cut);
        }
        wb_runlog_read(p->tail, hear, p);
        wb_runlog_read(p->tail, hear, p);
        assert_int_equal(p->got.len, n);
        assert_memory_equal(p->got.data, content, n);
    }
    assert_true(p->texts > 10);
    assert_true(p->holes > 10);
}

static void much_at_once_is_fetched(void **state)
{
    struct place *p = *state;
    char *block = wb_calloc(1, 100000);

    memset(block, 'x', 100000);
    p->tail = wb_runlog_new(p->dir, "cmp_1");
    wb_runlog_read(p->tail, hear, p);
    append(p->path, block, WB_RUNLOG_TEXT_MAX);
    wb_runlog_read(p->tail, hear, p);
    assert_int_equal(p->texts, 1);
    append(p->path, block, 100000);
    wb_runlog_read(p->tail, hear, p);
    assert_int_equal(p->holes, 1);
    assert_int_equal(p->got.len, WB_RUNLOG_TEXT_MAX + 100000);
    free(block);
}

/* A server that begins in the middle of a run tells from there on. */
static void what_is_there_is_not_told(void **state)
{
    struct place *p = *state;

    append(p->path, "before", 6);
    p->tail = wb_runlog_new(p->dir, "cmp_1");
    p->at = 6;
    wb_runlog_read(p->tail, hear, p);
    assert_int_equal(p->texts + p->holes, 0);
    append(p->path, "after", 5);
    wb_runlog_read(p->tail, hear, p);
    assert_string_equal(wb_buf_str(&p->got), "after");
}

static void links_and_pipes_are_not_read(void **state)
{
    struct place *p = *state;
    WB_AUTO_FREE char *link = wb_strf("%s/link.log", p->log);
    WB_AUTO_FREE char *pipe = wb_strf("%s/pipe.log", p->log);
    WB_AUTO_FREE char *folder = wb_strf("%s/folder.log", p->log);

    p->tail = wb_runlog_new(p->dir, "cmp_1");
    wb_runlog_read(p->tail, hear, p);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_int_equal(mkfifo(pipe, 0644), 0);
    assert_int_equal(mkdir(folder, 0755), 0);
    wb_runlog_read(p->tail, hear, p);
    wb_runlog_read(p->tail, hear, p);
    assert_int_equal(p->texts + p->holes, 0);
}

static void names_stay_inside(void **state)
{
    static const char *const rows[][2] = {
        {"db0.redis.log", "/r/db0/log/redis.log"},
        {"db12.out.log", "/r/db12/job/stdout.log"},
        {"load-max.log", "/r/load-max.job/stderr.log"},
        {"load-a.b.log", "/r/load-a.b.job/stderr.log"},
        {"db0...", "/r/db0/log/.."},
        {"../run.json", NULL},
        {"db0/../x.log", NULL},
        {"db.log", NULL},
        {"db-1.log", NULL},
        {"db0.", NULL},
        {"dbx.log", NULL},
        {"load-.log", NULL},
        {"run.json", NULL},
        {"", NULL},
        {".", NULL},
        {"db0..hidden", NULL},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *path = wb_runlog_path("/r", rows[i][0]);

        if (!strcmp(rows[i][0], "db0...")) /* a name of dots alone is none */
            assert_null(path);
        else if (rows[i][1])
            assert_string_equal(path, rows[i][1]);
        else
            assert_null(path);
    }
}

/* ---- over the event stream ---- */

static void nothing(void *arg)
{
    (void)arg;
}

static void publish(void *arg, const char *const *topics, const char *type, wb_json *data)
{
    struct place *p = arg;

    wb_hub_publish(p->hub, topics, type, data);
}

/* What a reader keeps of a stream that was cut off: whole events alone. Returns the last id. */
static int64_t keep(struct place *p, const char *stream, int64_t last)
{
    const char *end;

    for (; (end = strstr(stream, "\n\n")); stream = end + 2) {
        WB_AUTO_FREE char *event = wb_strndup(stream, (size_t)(end - stream));
        const char *data = strstr(event, "data: ");
        WB_AUTO_JSON wb_json *j = NULL;

        if (!data || wb_json_parse(data + 6, strlen(data + 6), &j, NULL) < 0)
            continue;
        last = strtoll(event + 4, NULL, 10);
        if (wb_json_int_or(j, "from", -1) == p->at) {
            const char *text = wb_json_str_or(j, "text", "");

            wb_buf_adds(&p->got, text);
            p->at += (int64_t)strlen(text);
        }
    }
    return last;
}

/* A reader that is cut off after every number of bytes and comes back with the last id it has seen
 * puts the log together without a lost or doubled byte. */
static void a_reader_comes_back(void **state)
{
    struct place *p = *state;
    static const char text[] = "line one\nline two\nline three\n";

    p->hub = wb_hub_new(1000);
    p->tail = wb_runlog_new(p->dir, "cmp_1");
    wb_runlog_read(p->tail, publish, p);
    for (size_t i = 0; i < sizeof(text) - 1; i += 3) {
        append(p->path, text + i, i + 3 < sizeof(text) ? 3 : sizeof(text) - 1 - i);
        wb_runlog_read(p->tail, publish, p);
    }
    for (size_t cut = 1; cut < 400; cut += 1) {
        int64_t last = 999;

        p->at = 0;
        wb_buf_clear(&p->got);
        for (int times = 0; times < 400 && p->at < (int64_t)sizeof(text) - 1; times++) {
            const struct wb_listener_spec spec = {
                .last_id = last, .on_empty = nothing, .on_more = nothing};
            struct wb_listener *l = wb_listener_new(p->hub, &spec);
            struct wb_buf seen = WB_BUF_INIT(1u << 20);
            /* Longer each time, or a cut inside of the first event would never end. */
            size_t most = cut + (size_t)times * 7;
            char block[64];

            while (seen.len < most) {
                size_t want = most - seen.len < sizeof(block) ? most - seen.len : sizeof(block);
                ssize_t n = wb_listener_read(l, block, want);

                if (n <= 0)
                    break;
                wb_buf_add(&seen, block, (size_t)n);
            }
            last = keep(p, wb_buf_str(&seen), last);
            wb_listener_free(l);
            wb_buf_release(&seen);
        }
        assert_string_equal(wb_buf_str(&p->got), text);
    }
}

/* Long logs do not fill the memory: the ring is bounded in bytes, too. */
static void the_ring_is_bounded(void **state)
{
    struct place *p = *state;
    static const char *const topics[] = {"x", NULL};
    const struct wb_listener_spec spec = {.last_id = 1, .on_empty = nothing, .on_more = nothing};
    char *block = wb_calloc(1, 60001), part[65536];
    struct wb_listener *l;
    size_t total = 0;
    ssize_t n;

    memset(block, 'x', 60000);
    p->hub = wb_hub_new(1);
    for (int i = 0; i < 500; i++) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "t", block);
        wb_hub_publish(p->hub, topics, "x", o);
    }
    l = wb_listener_new(p->hub, &spec);
    n = wb_listener_read(l, part, sizeof(part));
    assert_true(n > 0); /* retry */
    n = wb_listener_read(l, part, sizeof(part) - 1);
    part[n] = '\0';
    assert_non_null(strstr(part, "event: reset")); /* what it asks for is gone */
    wb_listener_free(l);
    assert_true(wb_hub_dropped(p->hub) > 400);
    for (int64_t id = 2; id <= 501; id++) { /* the oldest that is still there */
        const struct wb_listener_spec from = {
            .last_id = id - 1, .on_empty = nothing, .on_more = nothing};

        total = 0;
        l = wb_listener_new(p->hub, &from);
        (void)wb_listener_read(l, part, sizeof(part));
        n = wb_listener_read(l, part, sizeof(part) - 1);
        part[n > 0 ? n : 0] = '\0';
        if (strstr(part, "event: reset")) {
            wb_listener_free(l);
            continue;
        }
        for (; n > 0; n = wb_listener_read(l, part, sizeof(part) - 1))
            total += (size_t)n;
        wb_listener_free(l);
        break;
    }
    assert_in_range(total, WB_HUB_BYTES / 2, WB_HUB_BYTES + 65536);
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cuts_at_every_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(much_at_once_is_fetched, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_is_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(links_and_pipes_are_not_read, setup, teardown),
        cmocka_unit_test(names_stay_inside),
        cmocka_unit_test_setup_teardown(a_reader_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_ring_is_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
