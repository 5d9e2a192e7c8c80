#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/http/limit.h"
#include "server/http/watch.h"

static void a_minute_has_so_many_requests(void **state)
{
    struct wb_limiter *l = wb_limiter_new(60);
    struct wb_limit_state s;
    int64_t now = 1000 * WB_SEC;

    (void)state;
    for (int i = 0; i < 60; i++)
        assert_true(wb_limiter_take(l, "a", now, &s));
    assert_int_equal(s.most, 60);
    assert_int_equal(s.left, 0);
    assert_false(wb_limiter_take(l, "a", now, &s));
    assert_true(s.wait_s >= 1 && s.wait_s <= 2);
    assert_true(wb_limiter_take(l, "b", now, &s)); /* somebody else */
    assert_false(wb_limiter_take(l, "a", now + WB_SEC / 2, &s));
    assert_true(wb_limiter_take(l, "a", now + 2 * WB_SEC, &s));
    assert_true(wb_limiter_take(l, "a", now + 3600 * WB_SEC, &s));
    assert_int_equal(s.left, 59);                  /* no more than a minute's is kept */
    assert_true(wb_limiter_take(l, "a", now, &s)); /* a clock that steps back gives nothing */
    assert_int_equal(s.left, 58);
    wb_limiter_free(l);
}

static void without_a_limit_there_is_none(void **state)
{
    struct wb_limiter *l = wb_limiter_new(0);
    struct wb_limit_state s;

    (void)state;
    for (int i = 0; i < 10000; i++)
        assert_true(wb_limiter_take(l, "a", 1, &s));
    assert_int_equal(s.most, 0);
    for (int i = 0; i < 100; i++)
        wb_limiter_failed(l, "addr", 1);
    assert_true(wb_limiter_may_try(l, "addr", "t", 1, &s));
    wb_limiter_free(l);
}

static void failed_logins_are_counted_by_address(void **state)
{
    struct wb_limiter *l = wb_limiter_new(60);
    struct wb_limit_state s;
    int64_t now = 5 * WB_SEC;

    (void)state;
    wb_limiter_succeeded(l, "1.2.3.4", "good", now);
    for (int i = 0; i < WB_LIMIT_FAILURES; i++) {
        assert_true(wb_limiter_may_try(l, "1.2.3.4", "bad", now, &s));
        wb_limiter_failed(l, "1.2.3.4", now);
    }
    assert_false(wb_limiter_may_try(l, "1.2.3.4", "bad", now, &s));
    assert_true(s.wait_s >= 1 && s.wait_s <= 60 / WB_LIMIT_FAILURES + 1);
    assert_false(wb_limiter_may_try(l, "1.2.3.4", "other", now, &s));
    assert_true(wb_limiter_may_try(l, "1.2.3.4", "good", now, &s)); /* has succeeded from there */
    assert_true(wb_limiter_may_try(l, "1.2.3.5", "bad", now, &s));
    assert_true(wb_limiter_may_try(l, "1.2.3.4", "bad", now + 61 * WB_SEC, &s));
    assert_true(wb_limiter_may_try(l, "1.2.3.4", "good", now + 3599 * WB_SEC, &s));
    wb_limiter_free(l);
}

/* Many names need no more memory, and do not let anybody off who is over the limit just now. */
static void a_flood_of_names_is_bounded(void **state)
{
    struct wb_limiter *l = wb_limiter_new(1);
    struct wb_limit_state s;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        WB_AUTO_FREE char *name = wb_strf("n%d", i);

        assert_true(wb_limiter_take(l, name, i, &s));
    }
    assert_false(wb_limiter_take(l, "n49999", 50000, &s));
    wb_limiter_free(l);
}

struct pair {
    int ours, theirs;
    struct wb_watched *c;
};

static struct pair open_pair(struct wb_watch *w, int64_t now)
{
    int fds[2];
    struct pair p;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    p = (struct pair){.ours = fds[0], .theirs = fds[1]};
    p.c = wb_watch_add(w, p.ours, now);
    return p;
}

/* Whether our side was shut down: theirs reads the end. */
static bool is_cut(const struct pair *p)
{
    char c;

    return recv(p->theirs, &c, 1, MSG_DONTWAIT) == 0;
}

static void close_pair(struct wb_watch *w, struct pair *p)
{
    wb_watch_remove(w, p->c);
    (void)close(p->ours);
    (void)close(p->theirs);
}

static void who_keeps_waiting_is_cut_off(void **state)
{
    struct wb_watch *w = wb_watch_new(10, 30 * WB_SEC);
    struct pair slow = open_pair(w, 0), busy = open_pair(w, 0), again = open_pair(w, 0);

    (void)state;
    wb_watch_busy(w, busy.c);
    wb_watch_busy(w, again.c);
    wb_watch_idle(w, again.c, 20 * WB_SEC);
    wb_watch_tick(w, 30 * WB_SEC);
    assert_false(is_cut(&slow));
    wb_watch_tick(w, 31 * WB_SEC);
    assert_true(is_cut(&slow));
    assert_false(is_cut(&busy));
    assert_false(is_cut(&again));
    assert_int_equal(wb_watch_cut(w), 1);
    wb_watch_tick(w, 32 * WB_SEC); /* once */
    assert_int_equal(wb_watch_cut(w), 1);
    wb_watch_tick(w, 51 * WB_SEC);
    assert_true(is_cut(&again));
    assert_false(is_cut(&busy));
    assert_int_equal(wb_watch_count(w), 3);
    close_pair(w, &again);
    close_pair(w, &slow);
    close_pair(w, &busy);
    assert_int_equal(wb_watch_count(w), 0);
    wb_watch_free(w);
}

static void the_longest_waiting_makes_room(void **state)
{
    struct wb_watch *w = wb_watch_new(3, 30 * WB_SEC);
    struct pair p[5];

    (void)state;
    for (int i = 0; i < 3; i++)
        p[i] = open_pair(w, i);
    wb_watch_busy(w, p[0].c);
    assert_false(is_cut(&p[1]));
    p[3] = open_pair(w, 3);
    assert_true(is_cut(&p[1])); /* p[0] is being answered */
    assert_false(is_cut(&p[2]));
    p[4] = open_pair(w, 4);
    assert_true(is_cut(&p[2]));
    assert_false(is_cut(&p[0]) || is_cut(&p[3]) || is_cut(&p[4]));
    for (int i = 0; i < 5; i++)
        close_pair(w, &p[i]);
    wb_watch_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_has_so_many_requests),
        cmocka_unit_test(without_a_limit_there_is_none),
        cmocka_unit_test(failed_logins_are_counted_by_address),
        cmocka_unit_test(a_flood_of_names_is_bounded),
        cmocka_unit_test(who_keeps_waiting_is_cut_off),
        cmocka_unit_test(the_longest_waiting_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
