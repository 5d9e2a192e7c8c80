#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/load/reply_rig.h"

static void resp_up(struct rig *r)
{
    rig_up(r, &wb_protocol_resp, "gs");
}

static void check(const struct want *want, const char *text, size_t len)
{
    check_replies(&wb_protocol_resp, "gs", want, text, len);
}

/* Each answer whole and in pieces of every size. */
static void test_replies(void **state)
{
    static const struct want rows[] = {
        {.ops = "s", .text = "+OK\r\n", .ok = 1},
        {.ops = "g", .text = "$3\r\nabc\r\n", .ok = 1},
        {.ops = "g", .text = "$0\r\n\r\n", .ok = 1},
        {.ops = "g", .text = "$-1\r\n", .ok = 1, .misses = 1},
        {.ops = "ggs", .text = "$1\r\nx\r\n$2\r\n\r\n\r\n+OK\r\n", .ok = 3},
        {.ops = "gg", .text = "$5\r\n+OK\r\n\r\n", .ok = 1, .left = 1},
        {.ops = "g", .text = "-ERR no\r\n", .server = 1},
        {.ops = "s", .text = "-\r\n", .server = 1},
        {.ops = "gs", .text = "-LOADING x\r\n+OK\r\n", .ok = 1, .unavailable = 1},
        {.ops = "gs", .text = "-NOAUTH x\r\n-NOPERM y\r\n", .unauthorized = 2},
        {.ops = "gs", .text = "-WRONGTYPE x\r\n-WRONGTYPES\r\n", .invalid = 1, .server = 1},
        /* well formed, but not the answer to the question */
        {.ops = "g", .text = "+OK\r\n", .protocol = 1},
        {.ops = "s", .text = "+QUEUED\r\n", .protocol = 1},
        {.ops = "s", .text = "$2\r\nOK\r\n", .protocol = 1},
        {.ops = "s", .text = "$-1\r\n", .protocol = 1},
        {.ops = "gg", .text = ":1\r\n$1\r\nx\r\n", .protocol = 1, .ok = 1},
        /* a value that was never written */
        {.ops = "v", .text = "$10\r\n0123456789\r\n", .mismatch = 1},
        {.ops = "v", .text = "$0\r\n\r\n", .mismatch = 1},
        /* cut */
        {.ops = "g", .text = "$3\r\nabc\r", .left = 1},
        {.ops = "g", .text = "$3\r\n", .left = 1},
        {.ops = "g", .text = "$", .left = 1},
        {.ops = "s", .text = "+OK\r", .left = 1},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        check(&rows[i], rows[i].text, strlen(rows[i].text));
}

/* What breaks the protocol is refused wherever it is cut; what came before counts. */
static void test_hostile(void **state)
{
    static const struct want rows[] = {
        {.ops = "g", .text = "x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "+OK\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$-2\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$-\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$+1\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$1x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$536870913\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$9999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$18446744073709551617\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$99999999999999999999999999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$3\r\nabcd\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "$3\r\nabc\rx", .rc = -1, .left = 1},
        {.ops = "g", .text = "*1\r\n$1\r\nx\r\n", .rc = -1, .left = 1},
        {.ops = "gg", .text = "$1\r\nx\r\n?", .rc = 0, .ok = 1, .left = 1},
        {.ops = "gg", .text = "$1\r\nx\r\n?\r\n", .rc = -1, .ok = 1, .left = 1},
        /* more answers than questions */
        {.ops = "s", .text = "+OK\r\n+OK\r\n", .rc = -1, .ok = 1},
        {.ops = "", .text = "$1\r\nx\r\n", .rc = -1},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        check(&rows[i], rows[i].text, strlen(rows[i].text));
}

static void test_version_three(void **state)
{
    static const struct want rows[] = {
        {.ops = "g", .text = "_\r\n", .ok = 1, .misses = 1},
        {.ops = "g", .text = "$-1\r\n", .ok = 1, .misses = 1},
        {.ops = "s", .text = "_\r\n", .protocol = 1},
        {.ops = "gs", .text = "$1\r\nx\r\n+OK\r\n", .ok = 2},
        {.ops = "gs", .text = "!9\r\nERR\r\nmore\r\n+OK\r\n", .ok = 1, .server = 1},
        /* pushes come between replies and belong to none of them */
        {.ops = "s", .text = ">2\r\n+invalidate\r\n*1\r\n$2\r\nOK\r\n+OK\r\n", .ok = 1},
        {.ops = "s", .text = ">0\r\n+OK\r\n>1\r\n_\r\n", .ok = 1},
        {.ops = "", .text = ">1\r\n%1\r\n#t\r\n,1.5\r\n"},
        {.ops = "g", .text = ">1\r\n|1\r\n+a\r\n:1\r\n*-1\r\n$0\r\n\r\n", .ok = 1},
        {.ops = "g", .text = ">1\r\n", .left = 1},
        {.ops = "g", .text = "_x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "!x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = ">1\r\n?\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = ">x\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = ">999999999\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = ">1\r\n*1000000\r\n*1000000\r\n", .rc = -1, .left = 1},
    };
    /* of version 3 alone */
    static const struct want two[] = {
        {.ops = "g", .text = "_\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = "!3\r\nERR\r\n", .rc = -1, .left = 1},
        {.ops = "g", .text = ">0\r\n", .rc = -1, .left = 1},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct want three = rows[i];
        three.version = 3;
        check(&three, three.text, strlen(three.text));
    }
    for (size_t i = 0; i < WB_LEN(two); i++)
        check(&two[i], two[i].text, strlen(two[i].text));
}

static void test_greeting(void **state)
{
    static const struct {
        int version;
        const char *user, *password, *says, *answer, *refusal;
    } rows[] = {
        {2, NULL, "pw", "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n", "+OK\r\n", NULL},
        {2, "bob", "p w", "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$3\r\np w\r\n", "+OK\r\n", NULL},
        {2, NULL, "no", "*2\r\n$4\r\nAUTH\r\n$2\r\nno\r\n", "-WRONGPASS x\r\n", "WRONGPASS x"},
        {2, NULL, NULL, "", "", NULL},
        {3, NULL, NULL, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
         "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n+proto\r\n:3\r\n$7\r\nmodules\r\n*2\r\n$-1\r\n%"
         "0\r\n",
         NULL},
        {3, NULL, "pw",
         "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$2\r\npw\r\n", "%0\r\n",
         NULL},
        {3, NULL, NULL, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", "-NOPROTO no\r\n", "NOPROTO no"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++)
        check_greeting(&wb_protocol_resp, "gs", rows[i].version, rows[i].user, rows[i].password,
                       rows[i].says, rows[i].answer, rows[i].refusal);
}

/* NUL and high bytes are data like all others. */
static void test_binary_value(void **state)
{
    static const char text[] = "$6\r\n\0\r\n\xff+\0\r\n+OK\r\n";
    struct want want = {.ops = "gs", .ok = 2};

    (void)state;
    check(&want, text, sizeof(text) - 1);
}

/* The right value passes whole and in pieces; one flipped bit anywhere does not. */
static void test_verify(void **state)
{
    struct rig r;
    char text[5 + VALUE + 2], scratch[WB_VALUE_SMALL + 8];
    struct want good = {.ops = "v", .ok = 1}, bad = {.ops = "v", .mismatch = 1};

    (void)state;
    resp_up(&r);
    memcpy(text, "$10\r\n", 5);
    memcpy(text + 5, wb_values_expect(&r.plan.data.values, 0, scratch), VALUE);
    memcpy(text + 5 + VALUE, "\r\n", 2);
    rig_down(&r);
    check(&good, text, sizeof(text));
    for (int i = 0; i < VALUE; i++) {
        text[5 + i] ^= 4;
        check(&bad, text, sizeof(text));
        text[5 + i] ^= 4;
    }
}

/* Lines longer than what is kept of them, up to the bound and past it. */
static void test_long_lines(void **state)
{
    static const size_t sizes[] = {150, 317, 318, 319, 320, 321, 322, 5000, 65000, 70000};
    static const size_t pieces[] = {0, 1, 7, 100, 320, 4096};

    (void)state;
    for (size_t i = 0; i < WB_LEN(sizes); i++) {
        for (size_t p = 0; p < WB_LEN(pieces); p++) {
            char *text = wb_calloc(sizes[i] + 9, 1);
            bool fits = sizes[i] < 65536;
            struct rig r;
            memset(text, 'e', sizes[i]);
            text[0] = '-';
            memcpy(text + sizes[i], "\r\n+OK\r\n", 7);
            resp_up(&r);
            in_flight(&r, "gs");
            assert_int_equal(feed(&r, text, sizes[i] + 7, pieces[p]), fits ? 0 : -1);
            assert_int_equal(r.stats.phase[WB_PHASE_MEASURE].errors[WB_REPLY_SERVER], fits);
            assert_int_equal(wb_phase_total(&r.stats, WB_PHASE_MEASURE).ok, fits);
            if (fits)
                assert_int_equal(r.w.sample[0].text[0], 'e');
            rig_down(&r);
            free(text);
        }
    }
}

/* Replies to operations whose time-out has passed are late, not successes. */
static void test_late(void **state)
{
    struct rig r;
    struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];

    (void)state;
    resp_up(&r);
    in_flight(&r, "ggg");
    r.c.slots[0].flags |= WB_SLOT_EXPIRED; /* as the scan does */
    r.c.expired = 1;
    r.w.live--;
    r.c.slots[1].written = r.w.now - 2 * WB_SEC; /* not yet seen by a scan */
    assert_int_equal(feed(&r, "$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n", 21, 0), 0);
    assert_int_equal(ph->late, 2);
    assert_int_equal(ph->errors[WB_REPLY_TIMEOUT], 1);
    assert_int_equal(ph->op[0].ok, 1);
    assert_int_equal(ph->failed.max, WB_SEC); /* at its age, not later */
    assert_int_equal(r.c.expired, 0);
    assert_int_equal(r.w.live, 0);
    rig_down(&r);
}

static void test_requests(void **state)
{
    struct rig r;
    const struct wb_slot get = {.op = 0}, set = {.op = 1};
    char out[256], scratch[WB_VALUE_SMALL + 8], *stop;

    (void)state;
    resp_up(&r);
    stop = wb_protocol_resp.build(r.w.context, &r.c, &get, 42, out);
    assert_int_equal(stop - out, 36);
    assert_memory_equal(out, "*2\r\n$3\r\nGET\r\n$16\r\nk000000000000042\r\n", 36);
    stop = wb_protocol_resp.build(r.w.context, &r.c, &set, 42, out);
    assert_true((size_t)(stop - out) == wb_protocol_resp.request_max(r.w.context));
    assert_memory_equal(out, "*3\r\n$3\r\nSET\r\n$16\r\nk000000000000042\r\n$10\r\n", 41);
    assert_memory_equal(stop - 12, wb_values_expect(&r.plan.data.values, 42, scratch), VALUE);
    assert_memory_equal(stop - 2, "\r\n", 2);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_binary_value), cmocka_unit_test(test_verify),
        cmocka_unit_test(test_long_lines),   cmocka_unit_test(test_late),
        cmocka_unit_test(test_requests),     cmocka_unit_test(test_version_three),
        cmocka_unit_test(test_greeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
