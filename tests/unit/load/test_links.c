#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/links.h"
#include "server/base/file.h"
#include "server/base/mem.h"

static const char head[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n";

static void put(const char *dir, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, name);
    WB_AUTO_FREE char *folder = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    assert_int_equal(wb_mkdir_all(folder, 0755, NULL), 0);
    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
}

static void read_links(const char *dir, const char *lines, struct wb_links *out)
{
    WB_AUTO_FREE char *text = wb_strf("%s%s", head, lines);

    put(dir, "net/dev", text);
    wb_links_read(dir, dir, out);
}

static void test_links(void **state)
{
    char dir[] = "/tmp/wb-links-XXXXXX";
    struct wb_links a, b;
    const char *name = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    put(dir, "class/net/eth0/speed", "1000\n");
    put(dir, "class/net/eth0/device", "");
    put(dir, "class/net/eth1/speed", "25000\n");
    put(dir, "class/net/eth1/device", "");
    put(dir, "class/net/veth7/speed", "10000\n"); /* a virtual link has no device */
    put(dir, "class/net/lo/speed", "10\n");
    read_links(dir,
               "    lo: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0\n"
               "  eth0: 1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n"
               "  eth1:0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
               " veth7: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n"
               "  br-x: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n"
               "  eth9: 5 0 nonsense\n",
               &a);
    assert_int_equal(a.n, 2); /* those with a speed */
    assert_string_equal(a.link[1].name, "eth1");
    /* 2 s: eth0 sends 237.5 MB (95 %), receives little; eth1 receives 10 Gbit/s of 25. */
    read_links(dir,
               "  eth1:2500000000 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n"
               "  eth0: 2000 10 0 0 0 0 0 0 237500500 5 0 0 0 0 0 0\n"
               "  eth2: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n",
               &b);
    assert_true(fabs(wb_links_busiest(&a, &b, 2, &name) - 95) < 1e-9);
    assert_string_equal(name, "eth0");
    b.link[1].sent = 500;
    assert_true(fabs(wb_links_busiest(&a, &b, 2, &name) - 40) < 1e-9);
    assert_string_equal(name, "eth1");
    b.n = 0;
    assert_true(wb_links_busiest(&a, &b, 2, &name) < 0);
    wb_links_read("/nonexistent", dir, &a);
    assert_int_equal(a.n, 0);
    assert_int_equal(wb_remove_tree(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
