/* A foreign program as a load program: its words, its result, what its clock may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runners/load/job.h"
#include "runners/tools/command.h"
#include "server/base/clock.h"
#include "server/base/file.h"

struct env {
    char dir[64];
    char *base, *job;
    struct wb_tool_command *c;
    struct wb_tool_peer peers[2];
    struct wb_tool_task t;
    struct wb_job_status s; /* of a run of 10 s that ended well */
};

static void add_rule(struct wb_tool_output *o, const char *regex, const char *name)
{
    struct wb_tool_rule *r;

    wb_grow(&o->rules, &o->cap, o->nrules + 1, sizeof(*o->rules));
    r = &o->rules[o->nrules++];
    *r = (struct wb_tool_rule){.text = wb_strdup(regex), .optional = true};
    wb_strv_add(&r->names, name);
}

static int setup(void **state)
{
    struct env *e = wb_calloc(1, sizeof(*e));
    struct wb_tool_command *c = wb_calloc(1, sizeof(*c));

    strcpy(e->dir, "/tmp/wb-test-tools-XXXXXX");
    assert_non_null(mkdtemp(e->dir));
    e->base = wb_strf("%s/load-max", e->dir);
    e->job = wb_strf("%s/job", e->dir);
    assert_int_equal(wb_mkdir_all(e->job, 0755, NULL), 0);
    c->name = wb_strdup("tool");
    wb_strv_add(&c->argv, "true");
    wb_strv_add(&c->argv, "{port}");
    c->output.from = wb_strdup("stdout");
    c->errors_fatal = true;
    c->startup_ns = WB_SEC;
    add_rule(&c->output, "^rate ([^ ]+)$", "achieved_per_s");
    add_rule(&c->output, "^ok ([^ ]+)$", "ok");
    add_rule(&c->output, "^failed ([^ ]+)$", "failed");
    add_rule(&c->output, "^window ([^ ]+)$", "window_s");
    add_rule(&c->output, "^p99 ([^ ]+)$", "service_p99_us");
    e->c = c;
    e->peers[0] = (struct wb_tool_peer){"127.0.0.1", 16379};
    e->peers[1] = (struct wb_tool_peer){"172.30.0.2", 6379};
    e->t = (struct wb_tool_task){.base = e->base,
                                 .job_dir = e->job,
                                 .program = "/x/wb-load",
                                 .prefix = "/x/prefix",
                                 .command = c,
                                 .protocol = "resp",
                                 .peers = e->peers,
                                 .npeers = 1,
                                 .cpus = "0",
                                 .phase = "max",
                                 .rows = 1000,
                                 .key_bytes = 16,
                                 .value_bytes = 64,
                                 .seed = 7,
                                 .connections = 32,
                                 .threads = 2,
                                 .depth = 16,
                                 .get_percent = 77.5,
                                 .keys = "uniform",
                                 .for_ns = 10 * WB_SEC,
                                 .timeout_ns = 2 * WB_SEC};
    e->s = (struct wb_job_status){.state = WB_JOB_KILLED, /* stopped when it had ended already */
                                  .started_ms = 1000000,
                                  .ended_ms = 1010000,
                                  .cpu_ns = 2 * WB_SEC};
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    assert_int_equal(wb_remove_tree(e->dir, NULL), 0);
    wb_tool_command_free(e->c);
    free(e->base);
    free(e->job);
    free(e);
    return 0;
}

static void test_words(void **state)
{
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"{host}:{port}", "127.0.0.1:16379"},
        {"{targets}", "127.0.0.1:16379,172.30.0.2:6379"},
        {"{connections}/{threads}/{depth}", "32/2/16"},
        {"{seconds}s {warm_up_seconds}", "10s 0.5"},
        {"{rate}", "12500.5"},
        {"{rows} {last_row}", "1000 999"},
        {"{key_bytes},{value_bytes}", "16,64"},
        {"{get_percent}:{set_percent}", "77.5:22.5"},
        {"{operations}{timeout_ms}{seed}", "300020007"},
        {"{prefix}/bin/x", "/x/prefix/bin/x"},
        {"{{port}", "{port}"},
        {"{\"a\":{}}", "{\"a\":{}}"},
        {"{Port} { port} {port", "{Port} { port} {port"},
        {"{{{{", "{{"},
    };
    struct env *e = *state;
    WB_AUTO_FREE char *file = NULL;

    e->t.npeers = 2;
    e->t.rate_per_s = 12500.5;
    e->t.operations = 3000;
    e->t.warm_up_ns = WB_SEC / 2;
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *got = wb_tool_fill(&e->t, cases[i].word);

        assert_int_equal(wb_tool_word_check(cases[i].word, NULL), 0);
        assert_string_equal(got, cases[i].want);
    }
    file = wb_tool_fill(&e->t, "{file}");
    assert_int_equal(strncmp(file, e->base, strlen(e->base)), 0);
    assert_int_equal(wb_tool_word_check("{prot}", NULL), -WB_INVALID);
    assert_int_equal(wb_tool_word_check("{a}{{b}", NULL), -WB_INVALID);
    assert_int_equal(wb_tool_word_check("{{a}", NULL), 0);
    assert_true(wb_tool_command_uses(e->c, "port"));
    assert_false(wb_tool_command_uses(e->c, "ports"));
    assert_false(wb_tool_command_uses(e->c, "por"));
}

static void test_begin(void **state)
{
    struct env *e = *state;
    struct wb_tool_start s = {0};
    struct wb_err err = WB_ERR_INIT;
    bool c_locale = false;

    e->c->silence_ns = 3 * WB_SEC;
    assert_int_equal(wb_tool_foreign.begin(&e->t, &s, &err), 0);
    assert_true(s.argv.v[0][0] == '/');
    assert_string_equal(s.argv.v[1], "16379");
    assert_null(s.argv.v[2]);
    assert_int_equal(s.silence_ns, 3 * WB_SEC);
    assert_true(s.limit_ns > 11 * WB_SEC && s.limit_ns < 60 * WB_SEC);
    for (size_t i = 0; i < s.env.n; i++)
        c_locale |= !strcmp(s.env.v[i], "LC_ALL=C");
    assert_true(c_locale);
    wb_tool_start_release(&s);

    e->t.npeers = 2;
    assert_int_equal(wb_tool_foreign.begin(&e->t, &s, &err), -WB_UNSUPPORTED);
    wb_tool_start_release(&s);
    e->t.npeers = 1;
    free(e->c->argv.v[0]);
    e->c->argv.v[0] = wb_strdup("no-such-program-here");
    assert_int_equal(wb_tool_foreign.begin(&e->t, &s, &err), -WB_NOT_FOUND);
    assert_non_null(strstr(err.root, "no-such-program-here"));
    wb_tool_start_release(&s);
    free(e->c->argv.v[0]);
    e->c->argv.v[0] = wb_strdup("/etc/passwd");
    assert_int_equal(wb_tool_foreign.begin(&e->t, &s, &err), -WB_NOT_FOUND);
    wb_tool_start_release(&s);
}

static int result_of(struct env *e, const char *text, wb_json **r, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/stdout.log", e->job);

    *r = NULL;
    *err = (struct wb_err)WB_ERR_INIT;
    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    return wb_tool_foreign.result(&e->t, &e->s, "1.2", r, err);
}

/* What makes a result, what it says then, and what does not make one. */
static void test_result(void **state)
{
    static const struct {
        const char *text;
        int64_t operations;
        bool counted;          /* failed operations are counted, not fatal */
        double seconds, per_s; /* of the result */
        int64_t ok, failed;
        const char *why; /* else the error */
        int code;
    } cases[] = {
        {"ok 1000\nwindow 10\n", 0, false, 10, 100, 1000, 0, NULL, 0},
        {"ok 1000\nwindow 9.5\nrate 105\n", 0, false, 9.5, 105, 1000, 0, NULL, 0},
        {"rate 100\n", 0, false, 10, 100, 1000, 0, NULL, 0}, /* by the wall clock */
        {"ok 1000\n", 0, false, 10, 100, 1000, 0, NULL, 0},
        {"ok 990\nfailed 10\nwindow 10\n", 0, true, 10, 99, 990, 10, NULL, 0},
        {"rate 100\n", 950, false, 9.5, 100, 950, 0, NULL, 0}, /* as many as were asked */
        {"rate 100\nok 950\n", 950, false, 9.5, 100, 950, 0, NULL, 0},
        {"", 0, false, 0, 0, 0, 0, "no result: nothing was written", WB_PROTOCOL},
        {"nothing known\n", 0, false, 0, 0, 0, 0, "neither a rate nor a number", WB_PROTOCOL},
        {"rate nan\n", 0, false, 0, 0, 0, 0, "its rate is 'nan'", WB_PROTOCOL},
        {"rate nan\nok 1000\n", 0, false, 0, 0, 0, 0, "its rate is 'nan'", WB_PROTOCOL},
        {"rate 100\nok -nan\n", 0, false, 0, 0, 0, 0, "'-nan' operations", WB_PROTOCOL},
        {"ok 0\nwindow 10\n", 0, false, 0, 0, 0, 0, "no operation succeeded", WB_PROTOCOL},
        {"rate 0\n", 0, false, 0, 0, 0, 0, "no operation succeeded", WB_PROTOCOL},
        {"rate 0\n", 950, false, 0, 0, 0, 0, "no operation succeeded", WB_PROTOCOL},
        {"ok 1000\nwindow 10\n", 0, true, 0, 0, 0, 0, "how many operations failed", WB_PROTOCOL},
        {"ok 1000\nwindow 10\nfailed inf\n", 0, true, 0, 0, 0, 0, "how many operations failed",
         WB_PROTOCOL},
        /* another length than asked */
        {"ok 1000\nwindow 8.9\n", 0, false, 0, 0, 0, 0, "measured for 8.90 s instead of 10.00 s",
         WB_PROTOCOL},
        {"ok 1000\nwindow 11.1\n", 0, false, 0, 0, 0, 0, "measured for 11.10 s instead",
         WB_PROTOCOL},
        {"ok 949\nrate 100\n", 950, false, 0, 0, 0, 0, "did 949 operations, asked were 950",
         WB_CONFLICT},
        /* its clock against ours */
        {"rate 50\n", 950, false, 0, 0, 0, 0, "measured for 19.00 s, but it ran for only 10.00 s",
         WB_CONFLICT},
        {"rate 1000\n", 950, false, 0, 0, 0, 0, "measured for 0.95 s, but it ran for 10.00 s",
         WB_CONFLICT},
    };
    struct env *e = *state;

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *r = NULL;
        struct wb_err err;
        int rc;

        e->t.operations = cases[i].operations;
        e->t.for_ns = cases[i].operations ? 0 : 10 * WB_SEC;
        e->c->errors_fatal = !cases[i].counted;
        rc = result_of(e, cases[i].text, &r, &err);
        if (cases[i].why) {
            if (rc != -cases[i].code || !strstr(err.root, cases[i].why))
                fail_msg("'%s': wanted %s, got %d %s", cases[i].text, cases[i].why, rc, err.root);
            assert_null(r);
            continue;
        }
        if (rc < 0)
            fail_msg("'%s': %s", cases[i].text, err.root);
        assert_float_equal(wb_json_number(wb_json_path(r, "window.seconds"), 0), cases[i].seconds,
                           1e-9);
        assert_float_equal(wb_json_real_or(r, "achieved_per_s", 0), cases[i].per_s, 1e-9);
        assert_int_equal(wb_json_int_or(r, "ok", -1), cases[i].ok);
        assert_int_equal(wb_json_int_or(r, "failed", -1), cases[i].failed);
        assert_int_equal(wb_json_int_or(r, "scheduled", -1), cases[i].ok + cases[i].failed);
    }
}

/* The keys of the contract: each is there, or null with a reason. */
static void test_keys(void **state)
{
    static const char *const keys[] = {
        "version",       "seed",           "model",  "verdict",    "reasons",      "window",
        "offered_per_s", "achieved_per_s", "misses", "scheduled",  "ok",           "failed",
        "dropped",       "censored",       "errors", "operations", "transactions", "curve",
        "steady",        "client",         "data"};
    struct env *e = *state;
    WB_AUTO_JSON wb_json *r = NULL;
    const wb_json *all, *client;
    struct wb_err err;

    assert_int_equal(result_of(e, "ok 1000\nwindow 10\np99 1500\n", &r, &err), 0);
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", keys[i]);

        assert_non_null(wb_json_get(r, keys[i]));
        if (wb_json_type(wb_json_get(r, keys[i])) == WB_JSON_NULL)
            assert_non_null(wb_json_string(wb_json_get(r, reason)));
    }
    assert_string_equal(wb_json_str_or(r, "model", ""), "closed");
    assert_string_equal(wb_json_str_or(wb_json_get(r, "tool"), "name", ""), "tool");
    all = wb_json_path(r, "operations.all");
    assert_float_equal(wb_json_real_or(wb_json_get(all, "service"), "p99_ms", 0), 1.5, 1e-12);
    assert_int_equal(wb_json_type(wb_json_path(all, "service.p50_ms")), WB_JSON_NULL);
    assert_non_null(wb_json_string(wb_json_path(all, "service.p50_ms_reason")));
    assert_int_equal(wb_json_type(wb_json_get(all, "response")), WB_JSON_NULL);
    client = wb_json_get(r, "client");
    assert_float_equal(wb_json_real_or(client, "cpu_s", 0), 2, 1e-12);
    assert_float_equal(wb_json_real_or(client, "cpu_s_per_million_ops", 0), 2000, 1e-9);

    /* An open loop whose program gives service times only has no response times. */
    wb_json_free(WB_STEAL(r));
    e->t.rate_per_s = 100;
    e->s.cpu_ns = -1;
    assert_int_equal(result_of(e, "ok 1000\nwindow 10\np99 1500\n", &r, &err), 0);
    assert_string_equal(wb_json_str_or(r, "model", ""), "open");
    assert_float_equal(wb_json_real_or(r, "offered_per_s", 0), 100, 1e-12);
    assert_int_equal(wb_json_type(wb_json_path(r, "operations.all.response")), WB_JSON_NULL);
    assert_int_equal(wb_json_type(wb_json_path(r, "client.cpu_s")), WB_JSON_NULL);
}

/* A clean block is no result when the end was not clean. */
static void test_status(void **state)
{
    struct env *e = *state;
    wb_json *r = NULL;
    struct wb_err err;

    e->s.exit_code = 1;
    assert_int_equal(result_of(e, "ok 1000\nwindow 10\n", &r, &err), -WB_PROTOCOL);
    assert_non_null(strstr(err.root, "ended with status 1"));
    assert_null(r);
}

/* The file that a program writes may be anything. */
static void test_file(void **state)
{
    struct env *e = *state;
    WB_AUTO_FREE char *path = wb_strf("%s.out", e->base);
    WB_AUTO_JSON wb_json *good = NULL;
    wb_json *r = NULL;
    struct wb_err err;

    free(e->c->output.from);
    e->c->output.from = wb_strdup("file");
    assert_int_equal(result_of(e, "ok 1000\nwindow 10\n", &r, &err), -WB_PROTOCOL);
    assert_non_null(strstr(err.root, "did not write its file"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(result_of(e, "", &r, &err), -WB_PROTOCOL);
    assert_non_null(strstr(err.root, "not a plain file"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(result_of(e, "", &r, &err), -WB_PROTOCOL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wb_file_put(path, "ok 1000\nwindow 10\n", 18, NULL), 0);
    assert_int_equal(result_of(e, "", &good, &err), 0);
}

static void test_version(void **state)
{
    static const struct {
        const char *script, *is;
        int code;
        const char *want; /* the version, or what the error says */
    } cases[] = {
        {"echo tool 1.2.3", NULL, 0, "1.2.3"},
        {"echo tool 1.2.3 >&2; exit 3", NULL, 0, "1.2.3"},
        {"echo tool 1.2.3", "1.2.3", 0, "1.2.3"},
        {"echo tool 1.2.30", "1.2.3", WB_CONFLICT, "has version 1.2.30, asked 1.2.3"},
        {"echo what", NULL, WB_CONFLICT, "does not say its version (status 0)"},
        {"exit 9", NULL, WB_CONFLICT, "does not say its version (status 9)"},
        {"echo LC_ALL=$LC_ALL tool 1$LC_ALL", NULL, 0, "1"},
    };
    struct env *e = *state;

    e->c->version_regex = wb_strdup("tool ([0-9.]+)");
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *got = NULL;
        struct wb_err err = WB_ERR_INIT;
        int rc;

        wb_strv_release(&e->c->version_argv);
        e->c->version_argv = (struct wb_strv){0};
        wb_strv_add(&e->c->version_argv, "sh");
        wb_strv_add(&e->c->version_argv, "-c");
        wb_strv_add(&e->c->version_argv, cases[i].script);
        free(e->c->version);
        e->c->version = wb_strdup(cases[i].is);
        rc = wb_tool_foreign.version(&e->t, NULL, &got, &err);
        assert_int_equal(rc, -cases[i].code);
        if (rc == 0)
            assert_string_equal(got, cases[i].want);
        else
            assert_non_null(strstr(err.root, cases[i].want));
    }
    free(e->c->version_argv.v[0]);
    e->c->version_argv.v[0] = wb_strdup("no-such-program-here");
    WB_AUTO_FREE char *none = NULL;
    struct wb_err err = WB_ERR_INIT;
    assert_int_equal(wb_tool_foreign.version(&e->t, NULL, &none, &err), -WB_NOT_FOUND);
}

static void test_list(void **state)
{
    struct env *e = *state;

    assert_ptr_equal(wb_tools[0], &wb_tool_wb_load);
    assert_ptr_equal(wb_tool_of(NULL), &wb_tool_wb_load);
    assert_ptr_equal(wb_tool_of(e->c), &wb_tool_foreign);
    for (size_t i = 0; wb_tools[i]; i++) {
        assert_non_null(wb_tools[i]->name);
        assert_non_null(wb_tools[i]->begin);
        assert_non_null(wb_tools[i]->result);
        assert_non_null(wb_tools[i]->files);
    }
}

/* The document that wb-load is started with, as wb-load itself reads it. */
static void job_of(const struct env *e, struct wb_load_job *job)
{
    WB_AUTO_FREE char *path = wb_strf("%s.json", e->base);
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_tool_start s = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_tool_wb_load.begin(&e->t, &s, &err), 0);
    assert_true(s.limit_ns >= e->t.for_ns);
    wb_tool_start_release(&s);
    assert_int_equal(wb_json_read_file(path, 65536, &doc, &err), 0);
    wb_load_job_init(job);
    assert_int_equal(wb_load_job_read(job, doc, &err), 0);
    if (wb_load_job_check(job, &err) < 0)
        fail_msg("%s", err.root);
}

static void test_document(void **state)
{
    struct env *e = *state;
    struct wb_load_job job;

    job_of(e, &job);
    assert_int_equal(job.model, WB_LOAD_CLOSED);
    assert_int_equal(job.value_bytes, 64);
    assert_int_equal(job.nmix, 2);
    assert_int_equal(job.size_law.kind, WB_SIZE_FIXED);
    wb_load_job_release(&job);

    e->t.value_size = "100B=75,900B=25";
    e->t.value_content = "60%";
    e->t.transactions = "login=get,10..100*get@derived; up=set,get";
    e->t.txn_mix = "login=90,up=10";
    e->t.rate_per_s = 500;
    e->t.arrivals = "poisson";
    job_of(e, &job);
    assert_int_equal(job.model, WB_LOAD_OPEN);
    assert_int_equal(job.size_law.kind, WB_SIZE_WEIGHTED);
    assert_true(job.zeros_share == 0.6);
    assert_int_equal(job.ntxn, 2);
    assert_true(job.mix[0].weight == 90);
    assert_false(job.search);
    wb_load_job_release(&job);

    e->t.txn_mix = NULL;
    e->t.search = "p99.9<20ms";
    job_of(e, &job);
    assert_true(job.search && job.slo.percentile == 99.9);
    assert_true(job.rate_per_s == 500);
    assert_true(job.mix[1].weight == 1);
    wb_load_job_release(&job);

    e->t.rate_per_s = 0;
    job_of(e, &job);
    assert_int_equal(job.model, WB_LOAD_OPEN);
    wb_load_job_release(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_begin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_result, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_status, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_version, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_document, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
