/*
 * What a Redis cluster says of itself: answers in pieces of every size, damaged ones, and nodes
 * that send operations on.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/load/protocols/resp_cluster.h"
#include "runners/load/shard.h"
#include "server/base/clock.h"
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

struct node {
    int fd, port;
    const char *_Atomic answer;
};

static struct node listening(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    return (struct node){.fd = fd, .port = ntohs(a.sin_port)};
}

static void *answers(void *arg)
{
    struct node *node = arg;
    int fd;

    while ((fd = accept(node->fd, NULL, NULL)) >= 0) {
        const char *text = atomic_load(&node->answer);
        char question[64];

        if (recv(fd, question, sizeof(question), 0) > 0)
            (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
        (void)close(fd);
    }
    return NULL;
}

/* A node that takes connections and says nothing does not keep the others from being asked. */
static void test_refresh(void **state)
{
    struct node silent = listening(), alive = listening();
    WB_AUTO_FREE char *two = wb_strf("*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"
                                     "*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n",
                                     silent.port, alive.port);
    WB_AUTO_FREE char *one =
        wb_strf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", alive.port);
    WB_AUTO_FREE char *text = wb_strf("resp://127.0.0.1:%d", alive.port);
    struct wb_buf hello = WB_BUF_INIT(16);
    struct wb_resp_cluster *k = wb_resp_cluster_new(&hello, NULL);
    struct wb_target t = {0};
    pthread_t thread;

    atomic_store(&alive.answer, two);
    assert_int_equal(pthread_create(&thread, NULL, answers, &alive), 0);
    assert_int_equal(wb_target_parse(text, &t, NULL), 0);
    assert_int_equal(wb_resp_cluster_find(k, &t, NULL, NULL), 0);
    assert_int_equal(t.n, 2);
    assert_int_equal(wb_resp_cluster_node(k, 0), 0);
    assert_int_equal(wb_resp_cluster_node(k, 16383), 1);
    atomic_store(&alive.answer, one);
    for (int i = 0; i < 1000 && wb_resp_cluster_node(k, 0) != 1; i++) {
        wb_resp_cluster_lost(k);
        wb_resp_cluster_refresh(k, NULL);
        assert_int_equal(wb_wait(NULL, -1, 20 * WB_MS, NULL), 0);
    }
    assert_int_equal(wb_resp_cluster_node(k, 0), 1);
    (void)shutdown(alive.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(alive.fd);
    (void)close(silent.fd);
    wb_target_release(&t);
    wb_resp_cluster_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_refresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
