/* What foreign load programs write, well-formed and hostile, and what is read from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/tools/output.h"
#include "server/base/mem.h"

#define NAMES_MAX 10
#define RULES_MAX 4

struct rule {
    enum wb_tool_reader reader;
    const char *text;
    const char *names[NAMES_MAX];
    bool last, optional;
};

struct declared {
    const char *after, *until;
    struct rule rules[RULES_MAX];
};

static struct wb_tool_output *declare(const struct declared *d)
{
    struct wb_tool_output *o = wb_calloc(1, sizeof(*o));

    o->from = wb_strdup("stdout");
    o->after = wb_strdup(d->after);
    o->until = wb_strdup(d->until);
    for (size_t i = 0; i < RULES_MAX && d->rules[i].text; i++) {
        const struct rule *r = &d->rules[i];
        struct wb_tool_rule *to;

        wb_grow(&o->rules, &o->cap, o->nrules + 1, sizeof(*o->rules));
        to = &o->rules[o->nrules++];
        *to = (struct wb_tool_rule){.reader = r->reader,
                                    .text = wb_strdup(r->text),
                                    .last = r->last,
                                    .optional = r->optional};
        for (size_t k = 0; k < NAMES_MAX && r->names[k]; k++)
            wb_strv_add(&to->names, r->names[k]);
    }
    return o;
}

static void forget(struct wb_tool_output *o)
{
    wb_tool_output_release(o);
    free(o);
}

/* Reads, and gives the value of a figure or, failing that, the error: "!text"; "-": absent;
 * "none": no number. Caller frees. */
static char *read_as(const struct declared *d, const char *text, size_t n, int figure)
{
    struct wb_tool_output *o = declare(d);
    struct wb_figures f = {0};
    struct wb_err err = WB_ERR_INIT;
    char *got;

    if (wb_tool_output_check(o, &err) < 0)
        fail_msg("declaration: %s", err.root);
    if (wb_tool_output_read(o, text, n, &f, &err) < 0) {
        assert_int_equal(err.code, WB_PROTOCOL);
        got = wb_strf("!%s", err.root);
    } else if (f.f[figure].state == WB_FIGURE_ABSENT) {
        got = wb_strdup("-");
    } else if (f.f[figure].state == WB_FIGURE_NO_NUMBER) {
        got = wb_strf("none %s", f.f[figure].said);
    } else {
        got = wb_strf("%.10g", f.f[figure].value);
    }
    wb_figures_release(&f);
    forget(o);
    return got;
}

static void expect(const struct declared *d, const char *text, size_t n, int figure,
                   const char *want)
{
    WB_AUTO_FREE char *got = read_as(d, text, n, figure);

    /* An error is told by how it begins. */
    if (*want == '!' ? strncmp(got, want, strlen(want)) != 0 : strcmp(got, want) != 0)
        fail_msg("'%.60s': wanted %s, got %s", text, want, got);
}

/* redis-benchmark 7.0.15, --csv and others, as captured. */
static void test_redis_benchmark(void **state)
{
#define HEAD                                                                     \
    "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\"," \
    "\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n"
#define ROW                                                                        \
    "\"get k__rand_int__\",\"598802.44\",\"0.735\",\"0.160\",\"0.647\",\"1.215\"," \
    "\"2.079\",\"5.663\"\n"
    static const struct declared csv = {
        .after = "^\"test\",\"rps\",\"avg_latency_ms\"",
        .rules = {{WB_READ_REGEX,
                   "^\"(([^\"]|\"\")*)\",\"([^\"]*)\",\"([^\"]*)\",\"([^\"]*)\",\"([^\"]*)\","
                   "\"([0-9.]*)\",\"([^\"]*)\",\"([^\"]*)\"$",
                   {"-", "-", "achieved_per_s", "service_mean_ms", "service_min_ms",
                    "service_p50_ms", "service_p95_ms", "service_p99_ms", "service_max_ms"}}}};
    static const struct declared quiet = {
        .rules = {{WB_READ_REGEX,
                   "^ *GET: ([^ ]+) requests per second, p50=([^ ]+) msec",
                   {"achieved_per_s", "service_p50_ms"}}}};
    static const struct declared progress = {
        .rules = {{WB_READ_REGEX,
                   "GET: rps=([^ ]+) \\(overall: [^ ]+\\) avg_msec=([^ ]+)",
                   {"achieved_per_s", "service_mean_ms"},
                   .last = true}}};
    static const struct {
        const struct declared *d;
        const char *text;
        int figure;
        const char *want;
    } cases[] = {
        {&csv, HEAD ROW, WB_FIGURE_ACHIEVED, "598802.44"},
        {&csv, HEAD ROW, WB_FIGURE_SERVICE + 0, "0.16"},
        {&csv, HEAD ROW, WB_FIGURE_SERVICE + 1, "0.735"},
        {&csv, HEAD ROW, WB_FIGURE_SERVICE + 5, "2.079"},
        {&csv, HEAD ROW, WB_FIGURE_SERVICE_LAST, "5.663"},
        {&csv, HEAD ROW, WB_FIGURE_SERVICE + 3, "-"},
        /* titles with commas and quotes */
        {&csv,
         HEAD "\"LPUSH, \"\"then\"\" LRANGE_100 (first 100 elements)\",\"10.00\",\"1.0\",\"1.0\","
              "\"1.0\",\"1.0\",\"1.0\",\"1.0\"\n",
         WB_FIGURE_ACHIEVED, "10"},
        /* the header alone: it ended after an error reply, or was killed */
        {&csv, HEAD, WB_FIGURE_ACHIEVED, "!no final block: no line matches"},
        {&csv, HEAD "\"get\",\"598802.44\",\"0.7", WB_FIGURE_ACHIEVED, "!no final block"},
        {&csv, ROW, WB_FIGURE_ACHIEVED, "!no final block: no line matches '^\"test\",\"rps\""},
        {&csv, "", WB_FIGURE_ACHIEVED, "!no result: nothing was written to stdout"},
        {&csv, "\n\r\n", WB_FIGURE_ACHIEVED, "!no final block"},
        /* it started over, and two attempts are not one */
        {&csv, HEAD ROW HEAD ROW, WB_FIGURE_ACHIEVED, "!there are two final blocks"},
        {&csv, HEAD ROW ROW, WB_FIGURE_ACHIEVED, "!2 lines match"},
        /* before 6.2: name and rate only */
        {&csv, "\"GET\",\"89285.71\"\n", WB_FIGURE_ACHIEVED, "!no final block"},
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"x\",\"1\",\"1\"\n",
         WB_FIGURE_ACHIEVED, "!no final block"}, /* p95 is not digits: the row is not one */
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"1\",\"9223372036854775807\",\"-1\"\n",
         WB_FIGURE_ACHIEVED, "!'-1' is below zero"},
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"1\",\"9223372036854775807\",\"1\"\n",
         WB_FIGURE_ACHIEVED, "none nan"},
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"1\",\"9223372036854775807\",\"1\"\n",
         WB_FIGURE_SERVICE + 1, "none -nan"},
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"1\",\"9223372036854775807\",\"1\"\n",
         WB_FIGURE_SERVICE + 2, "none inf"},
        {&csv, HEAD "\"get\",\"nan\",\"-nan\",\"0\",\"inf\",\"1\",\"9223372036854775807\",\"1\"\n",
         WB_FIGURE_SERVICE + 5, "none 9223372036854775807"},
        {&csv, HEAD "\"get\",\"1,5\",\"1\",\"0\",\"1\",\"1\",\"1\",\"1\"\n", WB_FIGURE_ACHIEVED,
         "!'1,5' is not a number"},
        {&csv, HEAD "\"get\",\"0x1p3\",\"1\",\"0\",\"1\",\"1\",\"1\",\"1\"\n", WB_FIGURE_ACHIEVED,
         "!'0x1p3' is not a number"},
        {&csv, HEAD "\"get\",\"\",\"1\",\"0\",\"1\",\"1\",\"1\",\"1\"\n", WB_FIGURE_ACHIEVED,
         "!'' is not a number"},
        {&quiet,
         "GET: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r"
         "GET: rps=85780.9 (overall: 85440.5) avg_msec=0.386 (overall: 0.386)\r"
         "                                                        \r"
         "GET: 88652.48 requests per second, p50=0.319 msec\n\n",
         WB_FIGURE_ACHIEVED, "88652.48"},
        {&progress, "GET: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r",
         WB_FIGURE_SERVICE + 1, "none -nan"},
        {&progress,
         "GET: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r"
         "GET: rps=85780.9 (overall: 85440.5) avg_msec=0.386 (overall: 0.386)\r",
         WB_FIGURE_SERVICE + 1, "0.386"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        expect(cases[i].d, cases[i].text, strlen(cases[i].text), cases[i].figure, cases[i].want);
#undef HEAD
#undef ROW
}

/* The shape of cassandra-stress: interval rows that look like results, then a block with an end. */
static void test_final_block(void **state)
{
#define ROWS "type, total ops, op/s\ntotal, 20000, 20000\ntotal, 40000, 20000\n"
#define BLOCK "Results:\nOp rate                   : 20,000 op/s\nTotal operations : 120000\n"
    static const struct declared d = {
        .after = "^Results:",
        .until = "^(END|FAILURE)$",
        .rules = {{WB_READ_REGEX, "^Total operations +: ([0-9.]+)", {"ok"}},
                  {WB_READ_REGEX, "^Total errors +: ([0-9]+)", {"failed"}, .optional = true}}};
    static const struct {
        const char *text;
        int figure;
        const char *want;
    } cases[] = {
        {ROWS BLOCK "Total errors : 3\nEND\n", WB_FIGURE_OK, "120000"},
        {ROWS BLOCK "Total errors : 3\nEND\n", WB_FIGURE_FAILED, "3"},
        {ROWS BLOCK "END", WB_FIGURE_FAILED, "-"},
        {ROWS, WB_FIGURE_OK, "!no final block: no line matches '^Results:'"},
        {ROWS BLOCK, WB_FIGURE_OK, "!the final block has no end"},
        {ROWS BLOCK "EN", WB_FIGURE_OK, "!the final block has no end"},
        {"END\n" ROWS BLOCK, WB_FIGURE_OK, "!the final block has no end"},
        {ROWS BLOCK "END\nTotal errors : 9\n", WB_FIGURE_FAILED, "-"},
        {ROWS "Results:\nEND\n", WB_FIGURE_OK, "!no final block"},
        {BLOCK "END\n" BLOCK "END\n", WB_FIGURE_OK, "!there are two final blocks"},
        {"Results:\nTotal operations : 1.5\nEND\n", WB_FIGURE_OK,
         "!'1.5' is no number of operations"},
        {"Results:\nTotal operations : 99999999999999999\nEND\n", WB_FIGURE_OK,
         "!'99999999999999999' is no number of operations"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        expect(&d, cases[i].text, strlen(cases[i].text), cases[i].figure, cases[i].want);
#undef ROWS
#undef BLOCK
}

static void test_json(void **state)
{
    static const struct declared d = {
        .rules = {{WB_READ_JSON, "/ALL STATS/Totals/Ops~1sec", {"achieved_per_s"}},
                  {WB_READ_JSON, "/a/1/x~0y", {"service_p99_us"}, .optional = true}}};
#define DOC(rate, p99) \
    "{\"ALL STATS\":{\"Totals\":{\"Ops/sec\":" rate "}},\"a\":[0,{\"x~y\":" p99 "}]}"
    static const struct {
        const char *text;
        int figure;
        const char *want;
    } cases[] = {
        {DOC("1234.5", "1500"), WB_FIGURE_ACHIEVED, "1234.5"},
        {DOC("1234.5", "1500"), WB_FIGURE_SERVICE + 5, "1.5"},
        {DOC("\"1234.5\"", "\"-nan\""), WB_FIGURE_SERVICE + 5, "none -nan"},
        {DOC("-nan", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("NaN", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("-nan(ind)", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("nan(0x8000)", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("inf", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("-Infinity", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("9223372036854775807", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("92233720368547758070", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("1e999", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("9.22e+18", "1"), WB_FIGURE_ACHIEVED, "none null"},
        {DOC("true", "1"), WB_FIGURE_ACHIEVED, "!'/ALL STATS/Totals/Ops~1sec' is neither"},
        {DOC("[1]", "1"), WB_FIGURE_ACHIEVED, "!'/ALL STATS/Totals/Ops~1sec' is neither"},
        {DOC("-1", "1"), WB_FIGURE_ACHIEVED, "!'-1' is below zero"},
        /* text around it */
        {"warning: {not this}\nfio: notes\n  " DOC("7", "1") "\n", WB_FIGURE_ACHIEVED, "7"},
        {DOC("7", "1") "\nDone.\n", WB_FIGURE_ACHIEVED, "7"},
        {DOC("7", "1") "\n" DOC("8", "1"), WB_FIGURE_ACHIEVED, "!there are several JSON"},
        {DOC("7", "1") DOC("8", "1"), WB_FIGURE_ACHIEVED, "!there are several JSON"},
        {"no document\n", WB_FIGURE_ACHIEVED, "!no JSON document"},
        {"{\"ALL STATS\":{\"Totals\":{\"Ops/sec\":12", WB_FIGURE_ACHIEVED,
         "!the JSON document has no end"},
        {"{\"ALL STATS\":{\"Totals\":{\"Ops/sec\":\"12}}}", WB_FIGURE_ACHIEVED,
         "!the JSON document has no end"},
        {"{\"ALL STATS\":{\"To\\\"}}tals\":{\"Ops/sec\":12}}}", WB_FIGURE_ACHIEVED,
         "!the document has no"},
        {"{\"ALL STATS\":7}", WB_FIGURE_ACHIEVED, "!the document has no"},
        {"{}", WB_FIGURE_ACHIEVED, "!the document has no"},
        {"[]", WB_FIGURE_ACHIEVED, "!the document has no"},
        {"{]", WB_FIGURE_ACHIEVED, "!line 1"},
        {"{\"a\":1,}", WB_FIGURE_ACHIEVED, "!"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        expect(&d, cases[i].text, strlen(cases[i].text), cases[i].figure, cases[i].want);
#undef DOC
}

/* An HDR log as a library writes it, in us, with two tags. */
static void test_hdr(void **state)
{
    static const struct declared d = {
        .rules = {{WB_READ_HDR, "fn--get", {"service_us"}},
                  {WB_READ_HDR, "absent", {"response_us"}, .optional = true}}};
    static const struct declared plain = {.rules = {{WB_READ_HDR, "", {"service_us"}}}};
    struct wb_buf log = WB_BUF_INIT(1 << 20);
    struct wb_hist h;
    struct wb_figures f = {0};
    struct wb_tool_output *o = declare(&d);
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_hist_init(&h, 1, 3600000000, 3, NULL), 0);
    wb_hist_log_head(&log, "x", 0);
    for (int64_t i = 0; i < 2; i++) {
        wb_hist_clear(&h);
        wb_hist_record_n(&h, 1000 * (i + 1), 50); /* 1 and 2 ms */
        wb_hist_log_line(&log, "fn--get", i * 1000000000, 1000000000, &h);
        wb_hist_record_n(&h, 9000000, 5);
        wb_hist_log_line(&log, "fn--put", i * 1000000000, 1000000000, &h);
    }
    assert_int_equal(wb_tool_output_read(o, wb_buf_str(&log), log.len, &f, &err), 0);
    assert_non_null(f.hist[0]);
    assert_null(f.hist[1]);
    assert_int_equal(f.hist[0]->total, 100);
    assert_in_range(wb_hist_percentile(f.hist[0], 50), 999000, 1001000);
    assert_in_range(wb_hist_percentile(f.hist[0], 99), 1998000, 2002000);
    wb_figures_release(&f);

    expect(&plain, wb_buf_str(&log), log.len, 0, "!the HDR log has no interval with tag ''");
    /* Cut within the last line of the tag. */
    wb_buf_clear(&log);
    wb_hist_log_line(&log, "fn--get", 0, 1000000000, &h);
    expect(&d, wb_buf_str(&log), log.len - 9, 0, "!");
    expect(&d, "Tag=fn--get,0.0,1.0,2.0,HISTFAAAAgg\n", 36, 0, "!");
    expect(&d, "Tag=fn--get,0.0,1.0\n", 20, 0, "!the HDR log has no interval");
    wb_hist_release(&h);
    wb_buf_release(&log);
    forget(o);
}

/* Bytes that are no text, lines without end, and much of it. */
static void test_hostile(void **state)
{
    static const struct declared d = {.rules = {{WB_READ_REGEX, "^done ([0-9]+)$", {"ok"}}}};
    static const struct declared tail = {
        .rules = {{WB_READ_REGEX, "(a+)+ ([0-9]+)$", {"-", "ok"}}}};
    size_t n = 8u << 20;
    char *big = wb_calloc(n + 1, 1);

    expect(&d, "done 1\0 done 2\n", 15, WB_FIGURE_OK, "!no final block");
    expect(&d, "\0\0\0\ndone 1\n\xff\xfe\n", 14, WB_FIGURE_OK, "1");
    memset(big, 'a', n);
    expect(&tail, big, n, WB_FIGURE_OK, "!no final block");
    memcpy(big + n - 8, "\ndone 12", 8);
    expect(&d, big, n, WB_FIGURE_OK, "12");
    for (size_t i = 0; i < n - 8; i += 2)
        memcpy(big + i, "x\n", 2);
    expect(&d, big, n, WB_FIGURE_OK, "12");
    free(big);
}

static void test_declarations(void **state)
{
    static const struct {
        enum wb_tool_reader reader;
        const char *text, *names[NAMES_MAX], *why;
    } cases[] = {
        {WB_READ_REGEX, "([0-9]+) (x)", {"ok"}, "has 2 groups, needed are 1"},
        {WB_READ_REGEX, "[0-9]+", {NULL}, NULL},
        {WB_READ_REGEX, "([0-9]+", {"ok"}, "is no POSIX extended regular expression"},
        {WB_READ_REGEX, "(a)\\1", {"ok"}, "references to groups"},
        {WB_READ_REGEX, "(\\\\1)", {"ok"}, NULL}, /* an escaped backslash */
        {WB_READ_REGEX, "((x{1,300}){1,300}){1,300}", {"ok", "-"}, "multiply to more than"},
        {WB_READ_REGEX, "(x{1,300})", {"ok"}, NULL},
        {WB_READ_REGEX, "(x)", {"okay"}, "is no figure of a result"},
        {WB_READ_REGEX, "(x)", {"service_p99"}, "is no figure of a result"},
        {WB_READ_REGEX, "(x)", {"service_p99_min"}, "is no figure of a result"},
        {WB_READ_REGEX, "(x)", {"window_ms"}, NULL},
        {WB_READ_JSON, "/a/b", {"ok", "failed"}, "a JSON pointer gives one figure"},
        {WB_READ_JSON, "a", {"ok"}, "is no JSON pointer"},
        {WB_READ_JSON, "/a~2", {"ok"}, "is no JSON pointer"},
        {WB_READ_JSON, "/a~", {"ok"}, "is no JSON pointer"},
        {WB_READ_JSON, "", {"ok"}, NULL},
        {WB_READ_JSON, "/a", {"-"}, "is no figure of a result"},
        {WB_READ_HDR, "get", {"service_ns"}, NULL},
        {WB_READ_HDR, "get", {"lag_ns"}, "is no family of times"},
        {WB_READ_HDR, "get", {"service_ns", "response_ns"}, "one family of times"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct declared d = {.rules = {{.reader = cases[i].reader, .text = cases[i].text}}};
        struct wb_tool_output *o;
        struct wb_err err = WB_ERR_INIT;
        int rc;

        memcpy(d.rules[0].names, cases[i].names, sizeof(cases[i].names));
        o = declare(&d);
        rc = wb_tool_output_check(o, &err);

        if (!cases[i].why)
            assert_int_equal(rc, 0);
        else if (rc != -WB_INVALID || !strstr(err.root, cases[i].why))
            fail_msg("'%s': wanted '%s', got '%s'", cases[i].text, cases[i].why, err.root);
        forget(o);
    }
}

static void test_first(void **state)
{
    static const char text[] = "Redis\nredis-benchmark 7.0.15\nredis-benchmark 8\n";
    WB_AUTO_FREE char *found =
        wb_tool_regex_first("^redis-benchmark ([0-9.]+)", text, sizeof(text));

    assert_string_equal(found, "7.0.15");
    assert_null(wb_tool_regex_first("^valkey ([0-9.]+)", text, sizeof(text)));
    assert_null(wb_tool_regex_first("(", text, sizeof(text)));
    assert_null(wb_tool_regex_first("Redis", text, sizeof(text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redis_benchmark),
        cmocka_unit_test(test_final_block),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_hdr),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
