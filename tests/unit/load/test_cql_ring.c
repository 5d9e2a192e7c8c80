#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/load/protocols/cql_ring.h"
#include "server/base/mem.h"

/* Nodes in ring order, one token each, ten apart from 10 on: "dc/rack dc/rack ...". */
static struct wb_cql_nodes nodes(const char *text)
{
    struct wb_cql_nodes l = {0};

    for (const char *p = text; *p; p += strcspn(p, " ") + (p[strcspn(p, " ")] != 0)) {
        size_t dc = strcspn(p, "/"), all = strcspn(p, " ");
        struct wb_cql_node n = {.name = wb_strf("n%zu", l.n),
                                .datacentre = wb_strndup(p, dc),
                                .rack = wb_strndup(p + dc + 1, all - dc - 1),
                                .token = wb_calloc(1, sizeof(int64_t)),
                                .ntoken = 1,
                                .target = (uint32_t)l.n};
        n.token[0] = 10 * (int64_t)(l.n + 1);
        wb_grow(&l.v, &l.cap, l.n + 1, sizeof(*l.v));
        l.v[l.n++] = n;
    }
    return l;
}

/* Where a token goes, attempt by attempt, as digits. */
static void route_text(const struct wb_cql_ring *r, int64_t token, uint64_t draw, char *out)
{
    for (unsigned attempt = 0;; attempt++) {
        uint32_t t = wb_cql_ring_route(r, token, draw, attempt);
        if (t == WB_CQL_NOWHERE)
            break;
        *out++ = (char)('0' + t);
    }
    *out = 0;
}

static void test_routes(void **state)
{
    static const struct {
        const char *nodes;
        bool simple;
        unsigned copies;
        int64_t token;
        const char *replicas; /* the first ones of the route */
    } rows[] = {
        /* ownership: a range ends with its token; behind the last one it begins again */
        {"a/r a/r a/r", true, 1, 10, "0"},
        {"a/r a/r a/r", true, 1, 11, "1"},
        {"a/r a/r a/r", true, 1, 30, "2"},
        {"a/r a/r a/r", true, 1, 31, "0"},
        {"a/r a/r a/r", true, 1, INT64_MIN, "0"},
        {"a/r a/r a/r", true, 1, INT64_MAX, "0"},
        {"a/r a/r a/r", true, 2, 30, "20"},
        {"a/r a/r a/r", true, 3, 11, "120"},
        {"a/r a/r a/r", true, 9, 11, "120"}, /* more copies than nodes */
        {"a/r a/r a/r", false, 2, 30, "20"},
        /* racks: one each before any twice */
        {"a/1 a/1 a/2 a/2", false, 2, 5, "02"},
        {"a/1 a/1 a/2 a/2", false, 3, 5, "012"},
        {"a/1 a/1 a/1 a/2", false, 3, 5, "013"},
        {"a/1 a/1 a/2 a/3", false, 3, 15, "123"},
        {"a/1 a/1 a/1 a/2", false, 4, 5, "0123"},
        /* other datacentres are passed over */
        {"a/1 b/1 a/1 b/1", false, 1, 15, "2"},
        {"a/1 b/1 a/1 b/1", false, 2, 15, "20"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_cql_nodes l = nodes(rows[i].nodes);
        struct wb_cql_ring r;
        struct wb_cql_replication how = {.simple = rows[i].simple, .copies = rows[i].copies};
        char got[64];
        wb_cql_ring_build(&r, &l, l.n, "a", how);
        route_text(&r, rows[i].token, 0, got);
        if (strncmp(got, rows[i].replicas, strlen(rows[i].replicas)) != 0)
            fail_msg("row %zu: %s, not %s", i, got, rows[i].replicas);
        assert_int_equal(strlen(got), strlen(rows[i].replicas) + l.n); /* then all addresses */
        wb_cql_ring_release(&r);
        wb_cql_nodes_release(&l);
    }
}

/* Draws spread over the replicas; a node without address is left out; none left: any address. */
static void test_choice(void **state)
{
    struct wb_cql_nodes l = nodes("a/r a/r b/r");
    struct wb_cql_ring r;
    int count[3] = {0};
    char got[64];

    (void)state;
    l.v[2].target = WB_CQL_NOWHERE;
    wb_cql_ring_build(&r, &l, 2, "a", (struct wb_cql_replication){.simple = true, .copies = 2});
    for (uint64_t draw = 0; draw < 1000; draw++)
        count[wb_cql_ring_route(&r, 5, draw, 0)]++;
    assert_int_equal(count[0], 500);
    assert_int_equal(count[1], 500);
    route_text(&r, 15, 7, got); /* replicas 1 and 2, of which only 1 is taken */
    assert_string_equal(got, "110");
    wb_cql_ring_release(&r);
    wb_cql_ring_build(&r, &l, 2, "a", (struct wb_cql_replication){.simple = true, .copies = 1});
    route_text(&r, 25, 3, got); /* kept elsewhere only */
    assert_string_equal(got, "10");
    wb_cql_ring_release(&r);
    wb_cql_nodes_release(&l);
}

/* Many tokens a node: each range has its replicas, ring order is by token over all nodes. */
static void test_tokens(void **state)
{
    struct wb_cql_nodes l = nodes("a/r a/r");
    struct wb_cql_ring r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        l.v[i].token = wb_realloc(l.v[i].token, 4, sizeof(int64_t));
        for (int k = 0; k < 4; k++) /* unsorted: 30 10 70 50 and 40 20 80 60 */
            l.v[i].token[k] = (k ^ 1) * 20 + 10 + 10 * (int64_t)i;
        l.v[i].ntoken = 4;
    }
    wb_cql_ring_build(&r, &l, 2, "a", (struct wb_cql_replication){.copies = 1});
    assert_int_equal(r.n, 8);
    for (int64_t token = -5; token < 100; token++)
        assert_int_equal(wb_cql_ring_route(&r, token, 1, 0),
                         token <= 10 || token > 80 ? 0 : (token - 1) / 10 % 2);
    wb_cql_ring_release(&r);
    wb_cql_nodes_release(&l);
    wb_cql_ring_build(&r, &l, 3, "a", (struct wb_cql_replication){.copies = 1}); /* no nodes */
    assert_int_equal(wb_cql_ring_route(&r, 5, 4, 0), 1);
    wb_cql_ring_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
