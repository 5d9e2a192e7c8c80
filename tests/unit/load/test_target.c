#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "runners/load/target.h"
#include "server/base/mem.h"

static void test_good(void **state)
{
    struct wb_target t;
    const struct sockaddr_in *a;
    const struct sockaddr_in6 *b;

    (void)state;
    assert_int_equal(wb_target_parse("resp://127.0.0.1:7000,127.0.0.2,[::1]:7001", &t, NULL), 0);
    assert_string_equal(t.protocol->name, "resp");
    assert_int_equal(t.n, 3);
    assert_string_equal(t.addr[0].name, "127.0.0.1:7000");
    assert_string_equal(t.addr[1].name, "127.0.0.2:6379"); /* the protocol's port */
    a = (const void *)&t.addr[0].addr[0];
    assert_int_equal(a->sin_family, AF_INET);
    assert_int_equal(ntohs(a->sin_port), 7000);
    assert_int_equal(ntohl(a->sin_addr.s_addr), INADDR_LOOPBACK);
    b = (const void *)&t.addr[2].addr[0];
    assert_int_equal(b->sin6_family, AF_INET6);
    assert_int_equal(ntohs(b->sin6_port), 7001);
    wb_target_release(&t);
    assert_int_equal(wb_target_parse("null://", &t, NULL), 0);
    assert_true(t.protocol->no_socket);
    wb_target_release(&t);
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } rows[] = {
        {"", "resp://, memcached://, cql://, null://", -WB_INVALID},
        {"127.0.0.1:6379", "resp://, memcached://, cql://, null://", -WB_INVALID},
        {"http://x", "resp://, memcached://, cql://, null://", -WB_INVALID},
        {"resp://", "is not HOST:PORT", -WB_INVALID},
        {"resp://127.0.0.1:0", "'0' is not a port", -WB_INVALID},
        {"resp://127.0.0.1:65536", "'65536' is not a port", -WB_INVALID},
        {"resp://127.0.0.1:x", "'x' is not a port", -WB_INVALID},
        {"resp://127.0.0.1:", "is not a port", -WB_INVALID},
        {"resp://[::1", "no closing bracket", -WB_INVALID},
        {"resp://127.0.0.1:1,", "is not HOST:PORT", -WB_INVALID},
        {"resp://127.0.0.1:1/2", "is not a port", -WB_INVALID},
        {"resp://no.such.host.invalid:1", "no address for 'no.such.host.invalid'", -WB_UNAVAILABLE},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_target t;
        struct wb_err err = WB_ERR_INIT;
        assert_int_equal(wb_target_parse(rows[i].text, &t, &err), rows[i].code);
        if (!strstr(err.root, rows[i].says))
            fail_msg("'%s' does not say '%s'", err.root, rows[i].says);
    }
}

/* Every driver of the table is complete. */
static void test_protocols(void **state)
{
    (void)state;
    for (size_t i = 0; wb_protocols()[i]; i++) {
        const struct wb_protocol *p = wb_protocols()[i];
        int nops = 0;
        assert_ptr_equal(wb_protocol_find(p->name, strlen(p->name)), p);
        while (p->ops[nops])
            nops++;
        assert_true(nops >= 1 && nops <= WB_LOAD_OPS_MAX);
        assert_true(p->write_op < nops && p->read_op < nops);
        assert_true(p->conn_size > 0 && p->summary && (p->no_socket || p->port > 0));
        assert_true(p->setup && p->end && p->request_max && p->reset && p->build && p->feed);
    }
    assert_null(wb_protocol_find("res", 3));
    assert_null(wb_protocol_find("respx", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_protocols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
