/* When a cluster is complete: the samples of a flapping cluster, node by node. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/engine/complete.h"

/* "t=5   UN 10.0.0.11  UJ 10.0.0.12": the seconds, and nodes with their states. */
static int sample(char *line, wb_json **nodes)
{
    char *save, *state;
    int t;

    assert_int_equal(strncmp(line, "t=", 2), 0);
    t = (int)strtol(line + 2, &save, 10);
    *nodes = wb_json_object();
    while ((state = strsep(&save, " "))) {
        char *address;

        if (!*state)
            continue;
        address = strsep(&save, " ");
        assert_non_null(address);
        wb_json_set_str(*nodes, address, state);
    }
    return t;
}

/* Feeds the file until complete or until a sample at or after `limit` seconds. */
static int feed(struct wb_complete *c, int limit)
{
    WB_AUTO_FREE char *text = NULL;
    char *rest, *line;
    size_t n;
    int ended = -1;

    assert_int_equal(wb_file_read("tests/data/cases/013-status.txt", 1 << 16, &text, &n, NULL), 0);
    rest = text;
    while (ended < 0 && (line = strsep(&rest, "\n"))) {
        WB_AUTO_JSON wb_json *nodes = NULL;
        int t;

        if (*line == '#' || !*line)
            continue;
        t = sample(line, &nodes);
        if (wb_complete_add(c, nodes) || t >= limit)
            ended = t;
    }
    return ended;
}

static void test_case_013(void **state)
{
    struct wb_complete c;

    wb_complete_init(&c, 4);
    assert_int_equal(feed(&c, 1000), 35); /* not at 15, when all are well for the first time */
    assert_int_equal(c.good, WB_COMPLETE_ANSWERS);
    wb_complete_release(&c);
}

static void test_case_013_limit(void **state)
{
    struct wb_complete c;
    struct wb_buf why = WB_BUF_INIT(1024);

    wb_complete_init(&c, 4);
    assert_int_equal(feed(&c, 20), 20);
    assert_int_equal(c.good, 0);
    wb_complete_why(&c, &why);
    assert_string_equal(wb_buf_str(&why), "10.0.0.13 is DN");
    wb_buf_release(&why);
    wb_complete_release(&c);
}

static void test_counts(void **state)
{
    static const struct {
        const char *nodes;
        bool good;
        const char *why;
    } rows[] = {
        {"{\"a\":\"UN\",\"b\":\"UN\"}", true, ""},
        {"{\"a\":\"UN\"}", false, "1 of 2 nodes are there"},
        {"{\"a\":\"UN\",\"b\":\"UN\",\"c\":\"UN\"}", false, "3 of 2 nodes are there"},
        {"{\"a\":\"DN\",\"b\":\"UJ\"}", false, "a is DN, b is UJ"},
        {"{\"a\":\"DN\"}", false, "a is DN; 1 of 2 nodes are there"},
        {"{\"a\":\"un\",\"b\":\"UN\"}", false, "a is un"},
        {"{\"a\":\"UNX\",\"b\":\"UN\"}", false, "a is UNX"},
        {"{\"a\":1,\"b\":\"UN\"}", false, "a is in no state"},
        {"{}", false, "0 of 2 nodes are there"},
        {"[\"UN\",\"UN\"]", false, "0 of 2 nodes are there"},
        {"null", false, "0 of 2 nodes are there"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_complete c;
        struct wb_buf why = WB_BUF_INIT(1024);
        WB_AUTO_JSON wb_json *nodes = NULL;

        assert_int_equal(wb_json_parse(rows[i].nodes, strlen(rows[i].nodes), &nodes, NULL), 0);
        wb_complete_init(&c, 2);
        assert_false(wb_complete_add(&c, nodes));
        assert_int_equal(c.good, rows[i].good);
        wb_complete_why(&c, &why);
        assert_string_equal(wb_buf_str(&why), rows[i].why);
        assert_false(wb_complete_add(&c, nodes));
        assert_int_equal(wb_complete_add(&c, nodes), rows[i].good);
        wb_buf_release(&why);
        wb_complete_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_013),
        cmocka_unit_test(test_case_013_limit),
        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
