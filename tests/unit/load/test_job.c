#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runners/load/job.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

/* The document the engine sends: every key. */
static const char whole[] =
    "{\"target\": \"resp://127.0.0.1:6379\", \"threads\": 1, \"cpus\": null, \"connections\": 32,"
    "\"depth\": 16, \"seed\": 1, \"keys\": 20000, \"key_bytes\": 16, \"key_choice\": \"uniform\","
    "\"value_bytes\": 4096, \"mix\": {\"get\": 80, \"set\": 20}, \"model\": \"open\","
    "\"rate_per_s\": 20000, \"arrivals\": \"poisson\", \"catch_up\": \"immediate\","
    "\"timeout_ms\": 2000, \"warm_up_s\": 1, \"for_s\": 4.5, \"ops\": null, \"load\": false,"
    "\"load_only\": false, \"verify\": 0, \"output\": \"/tmp/x\", \"ndjson\": \"/tmp/y\","
    "\"hdr\": \"/tmp/z\", \"interval_s\": 1}";

static int read_text(struct wb_load_job *job, const char *text, struct wb_err *err)
{
    wb_json *doc = NULL;
    int rc = wb_json_parse(text, strlen(text), &doc, err);

    wb_load_job_init(job);
    if (rc == 0)
        rc = wb_load_job_read(job, doc, err);
    wb_json_free(doc);
    return rc == 0 ? wb_load_job_check(job, err) : rc;
}

static void test_whole(void **state)
{
    struct wb_load_job job;
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_int_equal(read_text(&job, whole, &err), 0);
    assert_int_equal(job.model, WB_LOAD_OPEN);
    assert_int_equal(job.arrivals, WB_LOAD_POISSON);
    assert_int_equal(job.catch_up, WB_LOAD_IMMEDIATE);
    assert_int_equal(job.depth, 16);
    assert_int_equal(job.timeout_ns, 2 * WB_SEC);
    assert_int_equal(job.for_ns, 4500 * WB_MS);
    assert_int_equal(job.nmix, 2);
    assert_string_equal(job.mix[1].name, "set");
    assert_true(job.mix[1].weight == 20);
    assert_true(job.ncpu >= 1);
    assert_int_equal(job.parts, 1);
    wb_load_job_release(&job);
}

static void test_bad_documents(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[]", "must be an object"},
        {"{}", "no target"},
        {"{\"target\": 5}", "target must be text"},
        {"{\"depht\": 5}", "unknown key 'depht'"},
        {"{\"depth\": 0}", "depth must be from 1 to 65536, not 0"},
        {"{\"depth\": \"16\"}", "depth must be a number"},
        {"{\"depth\": 1.5}", "depth must be an integer"},
        {"{\"depth\": 1e300}", "depth must be an integer"},
        {"{\"threads\": -1}", "threads must be from 1"},
        {"{\"for_s\": -1}", "for_s must be from 0.001 to 604800, not -1"},
        {"{\"timeout_ms\": 1e18}", "timeout_ms must be from 1 to 3600000"},
        {"{\"rate_per_s\": 0}", "rate_per_s must be greater than 0"},
        {"{\"verify\": 1.1}", "verify must be a share from 0 to 1"},
        {"{\"load\": 1}", "load must be true or false"},
        {"{\"mix\": {\"get\": \"x\"}}", "mix.get must be a number"},
        {"{\"mix\": 5}", "mix must be text"},
        {"{\"target\": \"null://\", \"mix\": {}}", "at least one weight"},
        {"{\"target\": \"null://\", \"mix\": {\"get\": 0}}", "at least one weight"},
        {"{\"target\": \"null://\", \"mix\": {\"get\": -5}}", "weight of get"},
        {"{\"target\": \"null://\", \"mix\": \"get=1,get=2\"}", "'get' stands there twice"},
        {"{\"target\": \"null://\", \"model\": \"open\"}", "open loop needs a rate"},
        {"{\"target\": \"null://\", \"model\": \"half\"}", "'half' is not one of: closed, open"},
        {"{\"target\": \"null://\", \"rate\": \"5/s\", \"rate_per_s\": 5}", "both given"},
        {"{\"target\": \"null://\", \"rate\": \"5,6/s\", \"ops\": 5}", "give for instead of ops"},
        {"{\"target\": \"null://\", \"sweep\": \"1k,2k/s\", \"rate\": \"5/s\"}", "give no other"},
        {"{\"target\": \"null://\", \"sweep\": \"1k,0/s\"}", "above 0"},
        {"{\"target\": \"null://\", \"sweep\": \"1k..2k/s\"}", "not a rate"},
        {"{\"target\": \"null://\", \"sweep\": \"\"}", "not a rate"},
        {"{\"target\": \"null://\", \"search\": \"p99\"}", "p99<5ms"},
        {"{\"target\": \"null://\", \"search\": \"p99<5ms\", \"model\": \"closed\"}", "it is open"},
        {"{\"target\": \"null://\", \"search\": \"p99<5ms\", \"ops\": 5}", "do not go with it"},
        {"{\"target\": \"null://\", \"search\": \"p99<5ms\", \"rate\": \"1k..2k\"}", "do not go"},
        {"{\"target\": \"null://\", \"sweep\": \"5/s\", \"part\": \"1/2\"}", "one process"},
        {"{\"target\": \"null://\", \"arrivals\": \"even\"}", "one of: constant, poisson"},
        {"{\"target\": \"null://\", \"catch_up\": \"capped\"}", "immediate, capped:N, drop"},
        {"{\"target\": \"null://\", \"catch_up\": \"capped:0.5\"}", "catch-up"},
        {"{\"target\": \"null://\", \"key_choice\": \"hot\"}", "uniform, sequential, zipf"},
        {"{\"target\": \"null://\", \"key_choice\": \"zipf:0\"}", "key-choice"},
        {"{\"target\": \"null://\", \"keys\": 1000000, \"key_bytes\": 6}", "at least 7"},
        {"{\"target\": \"null://\", \"threads\": 4, \"connections\": 3}", "too few for 4 threads"},
        {"{\"target\": \"null://\", \"cpus\": \"1023\"}", "CPU 1023 is not one"},
        {"{\"target\": \"null://\", \"cpus\": \"x\"}", "cpus"},
        {"{\"target\": \"null://\", \"part\": \"3/2\"}", "'3/2' is not h/H"},
        {"{\"target\": \"null://\", \"part\": \"0/2\"}", "'0/2' is not h/H"},
        {"{\"target\": \"null://\", \"start_at\": \"noon\"}", "start-at"},
        {"{\"target\": \"null://\", \"connections\": 65536, \"depth\": 65536}", "would need"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_load_job job;
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        assert_true(read_text(&job, rows[i].text, &err) < 0);
        if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
            fail_msg("'%s' does not say '%s'", text, rows[i].says);
        wb_load_job_release(&job);
    }
}

static void test_rates(void **state)
{
    static const struct {
        const char *text, *says;
        double mean;
        int segments;
    } rows[] = {
        {"20k/s", NULL, 20000, 0},
        {"1 per 8s", NULL, 0.125, 0},
        {"1 per 1000000s", NULL, 1e-6, 0},
        {"1M/s", NULL, 1e6, 0},
        {"10k,20k,60k/s", NULL, 30000, 3},
        {"1k..3k/s", NULL, 2000, 1},
        {"1k/s..3k/s,3k/s,500/s", NULL, 5500 / 3.0, 3},
        {"2k..2k/s", NULL, 2000, 0},
        {"1 per 1000001s", "not from", 0, 0},
        {"1.1M/s", "not from", 0, 0},
        {"0/s", "above 0", 0, 0},
        {"1k..", "not a rate", 0, 0},
        {"..1k", "not a rate", 0, 0},
        {"1k,,2k", "not a rate", 0, 0},
        {"1k,", "not a rate", 0, 0},
        {"", "not a rate", 0, 0},
        {"1k..2k..3k", "not a rate", 0, 0},
        {"1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
         "more than 64", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_load_job job;
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        wb_load_job_init(&job);
        job.target = wb_strdup("null://");
        assert_int_equal(wb_load_job_flag(&job, "--rate", rows[i].text, &err), 0);
        if (rows[i].says) {
            assert_true(wb_load_job_check(&job, &err) < 0);
            if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
                fail_msg("'%s' does not say '%s'", text, rows[i].says);
        } else {
            for (int again = 0; again < 2; again++) {
                assert_int_equal(wb_load_job_check(&job, &err), 0);
                assert_int_equal(job.model, WB_LOAD_OPEN);
                assert_true(job.rate_per_s > rows[i].mean * (1 - 1e-12) &&
                            job.rate_per_s < rows[i].mean * (1 + 1e-12));
                assert_int_equal(job.nsegments, rows[i].segments);
            }
        }
        wb_load_job_release(&job);
    }
}

static void test_flags(void **state)
{
    static const char *const good[][2] = {
        {"--rate", "20k/s"},        {"--for", "4s"},        {"--warm-up", "500ms"},
        {"--value", "64B:zeros"},   {"--verify", "5%"},     {"--mix", "get=1,set=1"},
        {"--part", "2/3"},          {"--timeout", "250ms"}, {"--key-choice", "zipf:1.2"},
        {"--catch-up", "capped:2"}, {"target", "null://"},  {"--load", ""}};
    struct wb_load_job job;
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    wb_load_job_init(&job);
    for (size_t i = 0; i < WB_LEN(good); i++)
        assert_int_equal(wb_load_job_flag(&job, good[i][0], good[i][1], &err), 0);
    assert_int_equal(wb_load_job_check(&job, &err), 0);
    assert_true(job.rate_per_s == 20000);
    assert_int_equal(job.model, WB_LOAD_OPEN); /* a rate makes it open */
    assert_int_equal(job.depth, WB_LOAD_OPEN_DEPTH);
    assert_int_equal(job.value_bytes, 64);
    assert_int_equal(job.size_law.kind, WB_SIZE_FIXED);
    assert_int_equal(job.content, WB_LOAD_ZEROS);
    assert_true(job.verify_share == 0.05);
    assert_int_equal(job.part, 1);
    assert_int_equal(job.parts, 3);
    assert_int_equal(job.catch_up, WB_LOAD_CAPPED);
    assert_true(job.catch_up_times == 2);
    assert_true(job.key_law.exponent == 1.2);
    assert_true(job.load);
    assert_true(wb_load_job_flag_alone("--load"));
    assert_false(wb_load_job_flag_alone("--depth"));
    assert_int_equal(wb_load_job_flag(&job, "--depht", "1", &err), -WB_NOT_FOUND);
    assert_int_equal(wb_load_job_flag(&job, "--timeout", "250", &err), -WB_INVALID);
    assert_non_null(strstr(err.context, "--timeout"));
    wb_load_job_release(&job);
}

/* Help names every flag and stays on one screen; the schema knows every key of the document. */
static void test_described(void **state)
{
    struct wb_buf help = WB_BUF_INIT(1 << 16);
    wb_json *schema = wb_load_job_schema(), *doc = NULL;
    int lines = 0;

    (void)state;
    wb_load_job_help(&help, NULL);
    for (const char *p = wb_buf_str(&help); *p; p += strcspn(p, "\n") + 1) {
        assert_true(strcspn(p, "\n") <= 80);
        lines++;
    }
    assert_true(lines > 20 && lines < 36);
    assert_int_equal(wb_json_parse(whole, sizeof(whole) - 1, &doc, NULL), 0);
    for (void *it = wb_json_first(doc); it; it = wb_json_next(doc, it))
        assert_non_null(wb_json_get(wb_json_get(schema, "properties"), wb_json_iter_key(it)));
    wb_json_free(schema);
    wb_json_free(doc);
    wb_buf_release(&help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_bad_documents),
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_flags),
        cmocka_unit_test(test_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
