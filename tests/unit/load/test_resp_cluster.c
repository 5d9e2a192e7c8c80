/*
 * What a Redis cluster says of itself: answers in pieces of every size, damaged ones, and nodes
 * that send operations on.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runners/load/protocols/resp_cluster.h"
#include "runners/load/shard.h"
#include "server/base/mem.h"

#define NODE(host, port) "*3\r\n$" host "\r\n:" port "\r\n$2\r\nid\r\n"

static const char good[] =
    "*3\r\n"
    "*4\r\n:0\r\n:5460\r\n" NODE("9\r\n127.0.0.1", "7001")
        NODE("9\r\n127.0.0.1", "7004") "*3\r\n:5461\r\n:10922\r\n*4\r\n$0\r\n\r\n:7002\r\n$"
                                       "2\r\nid\r\n*2\r\n$8\r\nhostname\r\n$1\r\nx\r\n"
                                       "*3\r\n:10923\r\n:16383\r\n" NODE("3\r\n::1", "7003");

static void test_read(void **state)
{
    WB_AUTO_FREE int16_t *slots = wb_calloc(WB_SLOTS, sizeof(*slots));
    struct wb_strv nodes = {0};

    assert_int_equal(wb_resp_cluster_read(good, sizeof(good) - 1, "10.0.0.9", &nodes, slots),
                     sizeof(good) - 1);
    assert_int_equal(nodes.n, 3);
    assert_string_equal(nodes.v[0], "127.0.0.1:7001");
    assert_string_equal(nodes.v[1], "10.0.0.9:7002");
    assert_string_equal(nodes.v[2], "[::1]:7003");
    assert_int_equal(slots[0], 0);
    assert_int_equal(slots[5460], 0);
    assert_int_equal(slots[5461], 1);
    assert_int_equal(slots[16383], 2);
    wb_strv_release(&nodes);
    for (size_t n = 0; n < sizeof(good) - 1; n++) { /* not complete, whatever is missing */
        struct wb_strv some = {0};
        WB_AUTO_FREE char *copy = wb_calloc(n ? n : 1, 1);

        memcpy(copy, good, n);
        assert_int_equal(wb_resp_cluster_read(copy, n, "h", &some, slots), 0);
        wb_strv_release(&some);
    }
}

static void test_damaged(void **state)
{
    static const char *const bad[] = {
        "$3\r\nfoo\r\n",
        "*1\r\n:3\r\n",
        "*99999\r\n",
        "*x\r\n",
        "*1\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n" NODE("1\r\nh", "1"),     /* backwards */
        "*1\r\n*3\r\n:0\r\n:16384\r\n" NODE("1\r\nh", "1"), /* one too many */
        "*1\r\n*3\r\n:-1\r\n:4\r\n" NODE("1\r\nh", "1"),
        "*1\r\n*3\r\n:0\r\n:4\r\n" NODE("1\r\nh", "0"),
        "*1\r\n*3\r\n:0\r\n:4\r\n" NODE("1\r\nh", "65536"),
        "*1\r\n*2\r\n:0\r\n:4\r\n" NODE("1\r\nh", "1"), /* no node */
        "*1\r\n*3\r\n:0\r\n:4\r\n*1\r\n$1\r\nh\r\n:1\r\n",
        "*1\r\n*4\r\n:0\r\n:4\r\n" NODE("1\r\nh", "1") "?\r\n",
        "*1\r\n*4\r\n:0\r\n:4\r\n" NODE("1\r\nh", "1") "*2147483648\r\n",
    };
    WB_AUTO_FREE int16_t *slots = wb_calloc(WB_SLOTS, sizeof(*slots));

    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct wb_strv nodes = {0};

        if (wb_resp_cluster_read(bad[i], strlen(bad[i]), "h", &nodes, slots) != -1)
            fail_msg("row %zu is taken", i);
        wb_strv_release(&nodes);
    }
    for (size_t at = 0; at < sizeof(good) - 1; at++) { /* any end but a crash */
        WB_AUTO_FREE char *copy = wb_calloc(sizeof(good) - 1, 1);
        struct wb_strv nodes = {0};

        memcpy(copy, good, sizeof(good) - 1);
        copy[at] = (char)(copy[at] ^ 0x15);
        (void)wb_resp_cluster_read(copy, sizeof(good) - 1, "h", &nodes, slots);
        wb_strv_release(&nodes);
    }
}

static void test_target(void **state)
{
    struct wb_target t = {0};
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_target_parse("resp://127.0.0.1:7001", &t, &err), 0);
    wb_strv_add(&names, "127.0.0.1:7002");
    wb_strv_add(&names, "[::1]:7003");
    assert_int_equal(wb_target_replace(&t, &names, &err), 0);
    assert_int_equal(t.n, 2);
    assert_string_equal(wb_target_addr(&t, 1)->name, "[::1]:7003");
    for (int i = 0; i < 2000; i++) { /* bounded, and the last one that fitted holds */
        WB_AUTO_FREE char *name = wb_strf("127.0.0.2:%d", 8000 + i);

        if (wb_target_move(&t, 0, name, &err) < 0) {
            assert_int_equal(err.code, WB_LIMIT);
            break;
        }
        assert_string_equal(wb_target_addr(&t, 0)->name, name);
    }
    assert_int_equal(t.naddr, WB_TARGET_ADDRS);
    assert_int_equal(wb_target_move(&t, 0, "127.0.0.1:1", NULL), -WB_LIMIT);
    wb_strv_add(&names, "nonsense:port");
    assert_int_equal(wb_target_replace(&t, &names, &err), -WB_INVALID);
    assert_int_equal(t.n, 2);
    wb_strv_release(&names);
    wb_target_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
