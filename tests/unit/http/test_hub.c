#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/http/hub.h"

struct seen {
    int empty, more;
};

static void on_empty(void *arg)
{
    ((struct seen *)arg)->empty++;
}

static void on_more(void *arg)
{
    ((struct seen *)arg)->more++;
}

static struct wb_listener *listen_to(struct wb_hub *h, struct seen *s, int64_t last, size_t n,
                                     char **topics)
{
    const struct wb_listener_spec spec = {.topics = topics,
                                          .ntopics = n,
                                          .last_id = last,
                                          .on_empty = on_empty,
                                          .on_more = on_more,
                                          .arg = s};

    return wb_listener_new(h, &spec);
}

static void publish(struct wb_hub *h, const char *topic, int64_t n)
{
    const char *const topics[] = {topic, NULL};
    wb_json *o = wb_json_object();

    wb_json_set_int(o, "n", n);
    wb_hub_publish(h, topics, "t", o);
}

/* All that can be read now, in pieces of `piece` bytes. */
static char *drain(struct wb_listener *l, size_t piece)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    char part[64];
    ssize_t n;

    while ((n = wb_listener_read(l, part, piece)) > 0)
        wb_buf_add(&b, part, (size_t)n);
    {
        char *copy = wb_strdup(wb_buf_str(&b));

        wb_buf_release(&b);
        return copy;
    }
}

static void expect(struct wb_listener *l, size_t piece, const char *want)
{
    WB_AUTO_FREE char *got = drain(l, piece);

    assert_string_equal(got, want);
}

static void events_come_whole_whatever_the_pieces(void **state)
{
    struct wb_hub *h = wb_hub_new(100);
    struct seen s = {0};
    struct wb_listener *l = listen_to(h, &s, 0, 0, NULL);

    (void)state;
    expect(l, 1, "retry: 3000\n\n");
    assert_int_equal(s.empty, 1);
    publish(h, "a", 1);
    assert_int_equal(s.more, 1);
    publish(h, "b", 2); /* it is awake already */
    assert_int_equal(s.more, 1);
    expect(l, 3, "id: 100\nevent: t\ndata: {\"n\":1}\n\nid: 101\nevent: t\ndata: {\"n\":2}\n\n");
    wb_listener_free(l);
    wb_hub_free(h);
}

/* A token that was taken back takes its streams with it, also one that has something to read. */
static void streams_end_with_their_token(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s[4] = {0};
    static const char *const tokens[] = {"a", "a", "b", ""};
    struct wb_listener *l[4];
    struct wb_strv known = {0};
    char part[8];

    (void)state;
    for (size_t i = 0; i < WB_LEN(l); i++) {
        const struct wb_listener_spec spec = {
            .token = tokens[i], .on_empty = on_empty, .on_more = on_more, .arg = &s[i]};

        l[i] = wb_listener_new(h, &spec);
    }
    expect(l[0], 64, "retry: 3000\n\n"); /* and sleeps */
    assert_int_equal(wb_hub_listeners_of(h, "a"), 2);
    assert_int_equal(wb_hub_listeners_of(h, "b"), 1);
    assert_int_equal(wb_hub_listeners_of(h, ""), 0);
    wb_hub_tokens(h, &known);
    assert_int_equal(known.n, 2);
    wb_strv_release(&known);
    wb_hub_end(h, "a");
    assert_int_equal(s[0].more, 1); /* it is woken to hear that */
    publish(h, "x", 1);
    assert_int_equal(wb_listener_read(l[0], part, sizeof(part)), -1);
    assert_int_equal(wb_listener_read(l[1], part, sizeof(part)), -1);
    for (size_t i = 2; i < WB_LEN(l); i++)
        expect(l[i], 64, "retry: 3000\n\nid: 1\nevent: t\ndata: {\"n\":1}\n\n");
    for (size_t i = 0; i < WB_LEN(l); i++)
        wb_listener_free(l[i]);
    assert_int_equal(wb_hub_listeners_of(h, "a"), 0);
    wb_hub_free(h);
}

static void topics_choose(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s = {0};
    char a[] = "a", c[] = "c";
    char *topics[] = {a, c};
    struct wb_listener *l = listen_to(h, &s, 0, 2, topics);

    (void)state;
    expect(l, 64, "retry: 3000\n\n");
    publish(h, "b", 1);
    expect(l, 64, "");
    publish(h, "a", 2);
    expect(l, 64, "id: 2\nevent: t\ndata: {\"n\":2}\n\n");
    wb_listener_free(l);
    wb_hub_free(h);
}

static void who_comes_back_gets_what_was_missed(void **state)
{
    struct wb_hub *h = wb_hub_new(1000);
    struct seen s = {0};
    struct wb_listener *l;

    (void)state;
    for (int i = 0; i < 3; i++)
        publish(h, "a", i);
    l = listen_to(h, &s, 1000, 0, NULL);
    expect(l, 64,
           "retry: 3000\n\nid: 1001\nevent: t\ndata: {\"n\":1}\n\n"
           "id: 1002\nevent: t\ndata: {\"n\":2}\n\n");
    wb_listener_free(l);
    l = listen_to(h, &s, 5, 0, NULL); /* of an earlier server: too old */
    expect(l, 64, "retry: 3000\n\nid: 1002\nevent: reset\ndata: {}\n\n");
    wb_listener_free(l);
    assert_int_equal(wb_hub_dropped(h), 0); /* those were not of this one */
    l = listen_to(h, &s, 9999, 0, NULL);    /* never given here */
    expect(l, 64, "retry: 3000\n\nid: 1002\nevent: reset\ndata: {}\n\n");
    wb_listener_free(l);
    assert_int_equal(wb_hub_listeners(h), 0);
    wb_hub_free(h);
}

static void a_slow_reader_is_reset_and_told(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s = {0};
    struct wb_listener *l = listen_to(h, &s, 0, 0, NULL);

    (void)state;
    expect(l, 64, "retry: 3000\n\n");
    for (int i = 0; i < WB_HUB_EVENTS + 10; i++)
        publish(h, "a", i);
    {
        WB_AUTO_FREE char *want = wb_strf("id: %d\nevent: reset\ndata: {}\n\n", WB_HUB_EVENTS + 10);

        expect(l, 64, want);
    }
    assert_int_equal(wb_hub_dropped(h), 10);
    {
        struct wb_hub *later = wb_hub_new(1000000);
        struct wb_listener *back;

        for (int i = 0; i < WB_HUB_EVENTS + 10; i++)
            publish(later, "a", i);
        back = listen_to(later, &s, 5, 0, NULL);
        free(drain(back, 64));
        assert_int_equal(wb_hub_dropped(later), 10);
        wb_listener_free(back);
        wb_hub_free(later);
    }
    publish(h, "a", 7);
    {
        WB_AUTO_FREE char *want =
            wb_strf("id: %d\nevent: t\ndata: {\"n\":7}\n\n", WB_HUB_EVENTS + 11);

        expect(l, 64, want);
    }
    wb_listener_free(l);
    wb_hub_free(h);
}

static void silence_is_broken_by_a_comment(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s = {0};
    struct wb_listener *l = listen_to(h, &s, 0, 0, NULL);

    (void)state;
    expect(l, 64, "retry: 3000\n\n");
    wb_hub_tick(h, wb_now_ns(NULL));
    assert_int_equal(s.more, 0);
    wb_hub_tick(h, wb_now_ns(NULL) + (WB_HUB_HEARTBEAT_MS + 1) * WB_MS);
    assert_int_equal(s.more, 1);
    expect(l, 64, ":\n\n");
    wb_listener_free(l);
    wb_hub_free(h);
}

static void what_is_too_long_is_not_sent(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s = {0};
    struct wb_listener *l = listen_to(h, &s, 0, 0, NULL);
    const char *const topics[] = {"a", NULL};
    WB_AUTO_FREE char *text = wb_calloc(1, WB_HUB_EVENT_MAX + 1);
    wb_json *o = wb_json_object();

    (void)state;
    memset(text, 'x', WB_HUB_EVENT_MAX);
    wb_json_set_str(o, "t", text);
    wb_hub_publish(h, topics, "t", o);
    expect(l, 64, "retry: 3000\n\n");
    wb_listener_free(l);
    wb_hub_free(h);
}

static void the_end_comes_after_what_is_there(void **state)
{
    struct wb_hub *h = wb_hub_new(1);
    struct seen s = {0};
    struct wb_listener *l = listen_to(h, &s, 0, 0, NULL);
    char c;

    (void)state;
    expect(l, 64, "retry: 3000\n\n");
    publish(h, "a", 1);
    wb_hub_close(h);
    expect(l, 64, "id: 1\nevent: t\ndata: {\"n\":1}\n\n");
    assert_int_equal(wb_listener_read(l, &c, 1), -1);
    assert_null(listen_to(h, &s, 0, 0, NULL));
    wb_listener_free(l);
    wb_hub_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_whole_whatever_the_pieces),
        cmocka_unit_test(streams_end_with_their_token),
        cmocka_unit_test(topics_choose),
        cmocka_unit_test(who_comes_back_gets_what_was_missed),
        cmocka_unit_test(a_slow_reader_is_reset_and_told),
        cmocka_unit_test(silence_is_broken_by_a_comment),
        cmocka_unit_test(what_is_too_long_is_not_sent),
        cmocka_unit_test(the_end_comes_after_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
