/* The docker form against a scripted engine: what it asks, and what it makes of bad answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "provisioners/forms/docker_api.h"
#include "provisioners/forms/docker_container.h"
#include "provisioners/forms/docker_limits.h"
#include "provisioners/forms/docker_network.h"
#include "provisioners/forms/form.h"
#include "server/base/clock.h"
#include "tests/support/fake_http.h"

#define NAME "wb-run_1-db0"
#define PING \
    FAKE("GET /_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK")
#define JSON(status, body) "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n" body
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INSPECT_PATH "GET /v1.41/containers/" NAME "/json"
#define INSPECT(labels, state)                                                                 \
    FAKE(INSPECT_PATH,                                                                         \
         JSON("200 OK", "{\"Id\":\"" ID "\",\"Image\":\"sha256:1\",\"Config\":{\"Tty\":false," \
                        "\"Labels\":{" labels "}},\"HostConfig\":{\"NetworkMode\":\"host\"},"  \
                        "\"State\":{" state "}}"),                                             \
         .end = FAKE_CLOSE)
#define OURS "\"wb.owner\":\"me\",\"wb.run\":\"run_1\",\"wb.campaign\":\"c\""
#define RUNNING "\"Status\":\"running\",\"Running\":true,\"Pid\":0"
#define GONE                       \
    FAKE("GET /v1.41/containers/", \
         JSON("404 Not Found", "{\"message\":\"No such container: x\"}"), .end = FAKE_CLOSE)
#define CREATE(reply) FAKE("POST /v1.41/containers/create?name=" NAME " ", reply, .end = FAKE_CLOSE)
#define CREATED CREATE(JSON("201 Created", "{\"Id\":\"" ID "\",\"Warnings\":[]}"))
#define START(reply) FAKE("POST /v1.41/containers/" NAME "/start", reply, .end = FAKE_CLOSE)
#define DELETE(reply) FAKE("DELETE /v1.41/containers/" ID "?force=1&v=1 ", reply, .end = FAKE_CLOSE)
#define NETWORK_PATH "/v1.41/networks/wb-run_1 "
#define NO_NETWORK                                                                          \
    FAKE("GET " NETWORK_PATH, JSON("404 Not Found", "{\"message\":\"network not found\"}"), \
         .end = FAKE_CLOSE)
#define NETWORK(labels)                                                                          \
    FAKE("GET " NETWORK_PATH, JSON("200 OK", "{\"Name\":\"wb-run_1\",\"Labels\":{" labels "}}"), \
         .end = FAKE_CLOSE)
#define NO_CONTENT "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

struct engine {
    struct fake_http fake;
    struct wb_form_env env;
    struct wb_instance_spec spec;
    struct wb_err err;
};

static void begin(struct engine *e, const struct fake_step *steps, size_t n)
{
    static char program[] = "/wb/prefix/bin/db", option[] = "--x";
    static char *const argv[] = {program, option, NULL};

    *e = (struct engine){.err = WB_ERR_INIT};
    assert_int_equal(fake_start(&e->fake, steps, n), 0);
    e->env = (struct wb_form_env){
        .owner = "me", .campaign = "c", .docker_socket = e->fake.socket, .cache_dir = "/nowhere"};
    e->spec = (struct wb_instance_spec){
        .run = "run_1", .dir = "/tmp/i", .argv = argv, .image = "sha256:1"};
}

/* All steps were asked for, in their order, and nothing else. */
static void end(struct engine *e)
{
    fake_stop(&e->fake);
    if (e->fake.mismatch || e->fake.next != e->fake.nsteps)
        fail_msg("step %zu of %zu; unexpected: %s", e->fake.next, e->fake.nsteps,
                 e->fake.mismatch ? e->fake.mismatch : "none");
    fake_release(&e->fake);
}

static void versions_are_negotiated(void **state)
{
    static const struct {
        const char *server, *spoken; /* NULL: refused */
        enum wb_code code;
    } cases[] = {{"1.40", "1.40", 0},
                 {"1.41", "1.41", 0},
                 {"1.47", "1.47", 0},
                 {"1.48", "1.47", 0},
                 {"1.100", "1.47", 0},
                 {"2.0", "1.47", 0},
                 {"1.39", NULL, WB_UNSUPPORTED},
                 {"1.9", NULL, WB_UNSUPPORTED},
                 {"0.99", NULL, WB_UNSUPPORTED},
                 {"", NULL, WB_PROTOCOL},
                 {"1", NULL, WB_PROTOCOL},
                 {"1.", NULL, WB_PROTOCOL},
                 {".41", NULL, WB_PROTOCOL},
                 {"1.41 ", NULL, WB_PROTOCOL},
                 {"1.-1", NULL, WB_PROTOCOL},
                 {"1.41/../x", NULL, WB_PROTOCOL},
                 {"one.two", NULL, WB_PROTOCOL}};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_err err = WB_ERR_INIT;
        char out[16] = "untouched";
        int rc = wb_engine_negotiate(cases[i].server, out, &err);
        if (rc != -(int)cases[i].code ||
            strcmp(out, cases[i].spoken ? cases[i].spoken : "untouched") != 0)
            fail_msg("'%s' gives %d, %s", cases[i].server, rc, out);
    }
}

static void errors_are_classified_by_text_first(void **state)
{
    static const struct {
        int status;
        const char *message;
        enum wb_code code;
    } cases[] = {
        {400, "invalid reference format", WB_INVALID},
        {400, "client version 1.41 is too old. Minimum supported API version is 1.44",
         WB_UNSUPPORTED},
        {400, "Requested CPUs are not available - requested 900, available: 0-1", WB_INVALID},
        {400, "invalid mount config for type \"bind\": bind source path does not exist: /x",
         WB_NOT_FOUND},
        {404, "No such image: sha256:0", WB_NOT_FOUND},
        {404, NULL, WB_NOT_FOUND},
        {409, "Conflict. The container name \"/x\" is already in use by container \"1\".",
         WB_CONFLICT},
        {409, "removal of container x is already in progress", WB_CONFLICT},
        {500, "exec: \"/x\": stat /x: no such file or directory: unknown", WB_NOT_FOUND},
        {500, "exec: \"x\": executable file not found in $PATH: unknown", WB_NOT_FOUND},
        {500, "driver failed: Bind for 0.0.0.0:1 failed: port is already allocated", WB_CONFLICT},
        {500, "listen tcp4 0.0.0.0:1: bind: address already in use", WB_CONFLICT},
        {500, "write /x: no space left on device", WB_IO},
        {500, "error setting rlimit type 7: operation not permitted", WB_UNSUPPORTED},
        {500, "transport is closing: unavailable", WB_UNAVAILABLE},
        {500, "dial unix /run/containerd/containerd.sock: connect: connection refused",
         WB_UNAVAILABLE},
        {500, "something new", WB_IO},
        {500, "", WB_IO},
        {503, "", WB_UNAVAILABLE},
        {504, "gateway", WB_TIMEOUT},
        {418, "teapot", WB_IO},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        if (wb_engine_classify(cases[i].status, cases[i].message) != cases[i].code)
            fail_msg("case %zu: %s", i, cases[i].message ? cases[i].message : "(none)");
}

static void what_is_no_engine_is_told(void **state)
{
    static const struct {
        const char *reply, *says;
        enum wb_code code;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 2\r\n\r\nOK", "1.24 at most",
         WB_UNSUPPORTED},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", "names no API version", WB_PROTOCOL},
        {"HTTP/1.1 500 Oops\r\nApi-Version: 1.41\r\nContent-Length: 4\r\n\r\ndown", "500: down",
         WB_UNAVAILABLE},
        {"SSH-2.0-OpenSSH\r\n", "no usable HTTP answer", WB_PROTOCOL},
        {NULL, "without an answer", WB_UNAVAILABLE},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct fake_step step = FAKE("GET /_ping", cases[i].reply, .end = FAKE_CLOSE);
        struct engine e;
        begin(&e, &step, 1);
        int rc = wb_form_docker.check(&e.env, &e.err);
        if (rc != -(int)cases[i].code || !strstr(e.err.root, cases[i].says))
            fail_msg("case %zu: %d %s", i, rc, e.err.root);
        end(&e);
    }
}

static void newer_engine_is_spoken_to_in_our_version(void **state)
{
    static const struct fake_step steps[] = {
        FAKE("GET /_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.55\r\nContent-Length: 0\r\n\r\n"),
        FAKE("GET /v1.47/containers/" NAME "/json HTTP/1.1",
             "HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n")};
    struct wb_instance_status s;
    struct engine e;

    begin(&e, steps, 2);
    assert_int_equal(wb_form_docker.status(&e.env, NAME, "/x", &s, &e.err), 0);
    assert_int_equal(s.state, WB_INSTANCE_GONE);
    end(&e);
}

static void error_bodies_of_any_kind_are_read(void **state)
{
    static const struct {
        const char *reply, *says;
        enum wb_code code;
    } cases[] = {
        {JSON("500 E", "{\"message\":\"the engine's\\nown text\"}"), "the engine's own text (HTTP",
         WB_IO},
        {JSON("502 Bad Gateway", "<html>\n<b>proxy</b></html>"), "<html> <b>proxy</b></html>",
         WB_UNAVAILABLE},
        {JSON("500 E", ""), "says: nothing (HTTP status 500)", WB_IO},
        {JSON("500 E", "{\"message\":7}"), "{\"message\":7}", WB_IO},
        {JSON("200 OK", "{\"Id\":"), "not JSON", WB_PROTOCOL},
        {JSON("200 OK", "[]"), "without Id", WB_PROTOCOL},
        {JSON("200 OK", "{\"Id\":5}"), "without Id", WB_PROTOCOL},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct fake_step steps[] = {PING, FAKE(INSPECT_PATH, cases[i].reply, .end = FAKE_CLOSE)};
        struct wb_instance_status s = {.exit_code = 99};
        struct engine e;
        begin(&e, steps, 2);
        int rc = wb_form_docker.status(&e.env, NAME, "/x", &s, &e.err);
        if (rc != -(int)cases[i].code || !strstr(e.err.root, cases[i].says))
            fail_msg("case %zu: %d %s", i, rc, e.err.root);
        assert_int_equal(s.exit_code, 99); /* untouched */
        end(&e);
    }
}

static void start_asks_for_exactly_this(void **state)
{
    static const struct fake_step steps[] = {PING, CREATED, START(NO_CONTENT)};
    static char var[] = "A=b";
    static char *const env[] = {var, NULL};
    struct engine e;

    begin(&e, steps, 3);
    e.spec.env = env;
    e.spec.index = 0;
    e.spec.limits = (struct wb_limits){
        .cpus = "1", .mems = "0", .memory_bytes = 1 << 28, .cpu_quota = 0.85, .pids = 512};
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), 0);
    fake_stop(&e.fake);
    WB_AUTO_JSON wb_json *sent = NULL;
    WB_AUTO_JSON wb_json *right = NULL;
    WB_AUTO_FREE char *expected = wb_strf(
        "{\"Image\":\"sha256:1\",\"Entrypoint\":[],\"Cmd\":[\"/wb/prefix/bin/db\",\"--x\"],"
        "\"Env\":[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/"
        "bin\",\"LANG=C.UTF-8\",\"A=b\"],\"WorkingDir\":\"/wb\",\"User\":\"%u:%u\",\"Labels\":{"
        "\"wb.owner\":\"me\",\"wb.campaign\":\"c\",\"wb.run\":\"run_1\",\"wb.index\":\"0\","
        "\"wb.kind\":\"instance\"},\"HostConfig\":{\"CpusetCpus\":\"1\",\"CpusetMems\":\"0\","
        "\"Memory\":268435456,\"MemorySwap\":268435456,\"CpuPeriod\":10000,\"CpuQuota\":8500,"
        "\"PidsLimit\":512,\"NetworkMode\":\"host\",\"UsernsMode\":\"host\",\"RestartPolicy\":{"
        "\"Name\":\"no\"},\"LogConfig\":{\"Type\":\"json-file\",\"Config\":{\"max-size\":\"10m\","
        "\"max-file\":\"2\"}},\"Mounts\":["
        "{\"Type\":\"bind\",\"Source\":\"/tmp/i/config\",\"Target\":\"/wb/config\",\"ReadOnly\":"
        "true},{\"Type\":\"bind\",\"Source\":\"/tmp/i/data\",\"Target\":\"/wb/data\",\"ReadOnly\":"
        "false},{\"Type\":\"bind\",\"Source\":\"/tmp/i/log\",\"Target\":\"/wb/log\",\"ReadOnly\":"
        "false}]}}",
        geteuid(), getegid());
    const char *body = strstr(e.fake.requests[1], "\r\n\r\n") + 4;
    assert_int_equal(wb_json_parse(body, strlen(body), &sent, &e.err), 0);
    /* The scripted engine is this process, which may give what it has itself. */
    wb_json *host = wb_json_get(sent, "HostConfig");
    const wb_json *nofile = wb_json_at(wb_json_get(host, "Ulimits"), 0);
    struct rlimit own;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
    assert_string_equal(wb_json_str_or(nofile, "Name", ""), "nofile");
    assert_int_equal(wb_json_int_or(nofile, "Soft", -2), wb_limit_clamped(own.rlim_cur, -1));
    assert_int_equal(wb_json_int_or(nofile, "Hard", -2), wb_limit_clamped(own.rlim_max, -1));
    wb_json_del(host, "Ulimits");
    assert_int_equal(wb_json_parse(expected, strlen(expected), &right, &e.err), 0);
    if (!wb_json_equal(sent, right))
        fail_msg("sent: %s", body);
    fake_release(&e.fake);
}

static void unlimited_instance_asks_for_no_limits(void **state)
{
    struct engine e;

    begin(&e, NULL, 0);
    WB_AUTO_JSON wb_json *body = wb_container_body(&e.env, &e.spec);
    static const char *const absent[] = {"CpusetCpus", "CpusetMems",  "Memory",    "MemorySwap",
                                         "CpuPeriod",  "CpuQuota",    "PidsLimit", "Privileged",
                                         "CapAdd",     "PortBindings"};
    for (size_t i = 0; i < WB_LEN(absent); i++)
        assert_null(wb_json_get(wb_json_get(body, "HostConfig"), absent[i]));
    end(&e);
}

static void failed_start_is_undone_and_told(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        CREATED,
        START(JSON("500 E", "{\"message\":\"OCI runtime: exec: \\\"/x\\\": no such file or "
                            "directory\"}")),
        INSPECT(OURS, "\"Status\":\"created\""),
        DELETE(NO_CONTENT),
        GONE};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_NOT_FOUND);
    assert_non_null(strstr(e.err.root, "no such file"));
    assert_non_null(strstr(e.err.context, "starting container " NAME));
    end(&e);
}

static void start_whose_undo_fails_says_so(void **state)
{
    static const struct fake_step steps[] = {
        PING, CREATED, START(JSON("500 E", "{\"message\":\"broken\"}")),
        INSPECT(OURS, "\"Status\":\"created\""),
        DELETE(JSON("500 E", "{\"message\":\"device is busy\"}"))};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_IO);
    assert_non_null(strstr(e.err.root, "broken"));
    assert_non_null(strstr(e.err.context, "could not be removed again"));
    assert_non_null(strstr(e.err.context, "device is busy"));
    end(&e);
}

static void engine_that_dies_in_the_middle_is_unavailable(void **state)
{
    static const struct fake_step steps[] = {
        PING, CREATED, START(NULL), INSPECT(OURS, "\"Status\":\"created\""), DELETE(NO_CONTENT),
        GONE};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_UNAVAILABLE);
    end(&e);
}

#define TAKEN                                                                            \
    CREATE(JSON("409 Conflict", "{\"message\":\"Conflict. The container name \\\"/" NAME \
                                "\\\" is already in use by container \\\"" ID "\\\".\"}"))

static void taken_name_of_ours_is_freed(void **state)
{
    static const struct fake_step steps[] = {
        PING, TAKEN, INSPECT(OURS, RUNNING), DELETE(NO_CONTENT), GONE, CREATED, START(NO_CONTENT)};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), 0);
    end(&e);
}

static void taken_name_of_others_is_a_conflict(void **state)
{
    static const struct fake_step others[][3] = {
        {PING, TAKEN, INSPECT("", RUNNING)},
        {PING, TAKEN, INSPECT("\"wb.run\":\"run_1\"", RUNNING)},
        {PING, TAKEN, INSPECT("\"wb.owner\":\"other\",\"wb.run\":\"run_1\"", RUNNING)},
        {PING, TAKEN,
         INSPECT("\"wb.owner\":\"other\",\"wb.run\":\"run_1\"",
                 "\"Status\":\"exited\",\"Running\":false")},
        {PING, TAKEN, INSPECT("\"wb.owner\":\"me\",\"wb.run\":\"run_2\"", RUNNING)},
    };

    for (size_t i = 0; i < WB_LEN(others); i++) {
        struct engine e;
        begin(&e, others[i], 3); /* and no DELETE */
        assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_CONFLICT);
        assert_non_null(strstr(e.err.root, NAME));
        assert_non_null(strstr(e.err.root, "id 0123456789ab,"));
        end(&e);
    }
}

static void name_that_stays_taken_is_a_conflict(void **state)
{
    static const struct fake_step steps[] = {PING, TAKEN, GONE, TAKEN,
                                             INSPECT("\"wb.owner\":\"other\"", RUNNING)};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_CONFLICT);
    end(&e);
}

static void destroy_waits_until_it_is_gone(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        INSPECT(OURS, RUNNING),
        DELETE(JSON("409 C", "{\"message\":\"removal of container x is already in progress\"}")),
        FAKE("GET /v1.41/containers/" ID "/json", JSON("200 OK", "{\"Id\":\"" ID "\"}"),
             .end = FAKE_CLOSE),
        FAKE("GET /v1.41/containers/" ID "/json", JSON("200 OK", "{\"Id\":\"" ID "\"}"),
             .end = FAKE_CLOSE),
        GONE};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.destroy(&e.env, NAME, "/x", &e.err), 0);
    end(&e);
}

static void gone_or_foreign_needs_no_removal(void **state)
{
    /* What its network was is not known then: the run's own is looked for. */
    static const struct fake_step gone[] = {PING, GONE, NO_NETWORK};
    static const struct fake_step foreign[] = {PING, INSPECT("", RUNNING), NO_NETWORK};
    struct engine e;

    for (int i = 0; i < 2; i++) {
        begin(&e, i ? foreign : gone, 3);
        assert_int_equal(wb_form_docker.destroy(&e.env, NAME, "/x", &e.err), 0);
        end(&e);
        begin(&e, i ? foreign : gone, 2);
        assert_int_equal(wb_form_docker.stop(&e.env, NAME, "/x", WB_SEC, &e.err), 0);
        end(&e);
    }
}

static void stop_rounds_the_grace_up(void **state)
{
    static const struct fake_step steps[] = {
        PING, INSPECT(OURS, RUNNING),
        FAKE("POST /v1.41/containers/" ID "/stop?t=3 ", "HTTP/1.1 304 N\r\n\r\n")};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.stop(&e.env, NAME, "/x", 2 * WB_SEC + 1, &e.err), 0);
    end(&e);
}

static void states_are_told_apart(void **state)
{
    static const struct {
        const char *reply;
        enum wb_instance_state is;
        int exit_code, signal;
        bool oom;
    } cases[] = {
#define STATE(s) \
    JSON("200 OK", "{\"Id\":\"" ID "\",\"Config\":{\"Labels\":{" OURS "}},\"State\":{" s "}}")
        {STATE(RUNNING), WB_INSTANCE_RUNNING, -1, 0, false},
        {STATE("\"Status\":\"exited\",\"Running\":false,\"ExitCode\":0"), WB_INSTANCE_EXITED, 0, 0,
         false},
        {STATE("\"Status\":\"exited\",\"ExitCode\":1"), WB_INSTANCE_EXITED, 1, 0, false},
        {STATE("\"Status\":\"exited\",\"ExitCode\":128"), WB_INSTANCE_EXITED, 128, 0, false},
        {STATE("\"Status\":\"exited\",\"ExitCode\":143"), WB_INSTANCE_EXITED, -1, 15, false},
        {STATE("\"Status\":\"exited\",\"ExitCode\":137,\"OOMKilled\":true"), WB_INSTANCE_EXITED, -1,
         9, true},
        {STATE("\"Status\":\"exited\",\"ExitCode\":255"), WB_INSTANCE_EXITED, 255, 0, false},
        {STATE("\"Status\":\"created\",\"ExitCode\":0"), WB_INSTANCE_EXITED, -1, 0, false},
        {STATE("\"Status\":\"dead\",\"ExitCode\":\"text\""), WB_INSTANCE_EXITED, -1, 0, false},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct fake_step steps[] = {PING, FAKE(INSPECT_PATH, cases[i].reply, .end = FAKE_CLOSE)};
        struct wb_instance_status s;
        struct engine e;
        begin(&e, steps, 2);
        assert_int_equal(wb_form_docker.status(&e.env, NAME, "/x", &s, &e.err), 0);
        if (s.state != cases[i].is || s.exit_code != cases[i].exit_code ||
            s.signal != cases[i].signal || s.oom_killed != cases[i].oom || s.pid != 0 ||
            s.cgroup[0])
            fail_msg("case %zu: state %d exit %d signal %d", i, (int)s.state, s.exit_code,
                     s.signal);
        end(&e);
    }
}

/* Frames of out and err; the last one promises 9 bytes and has 3. */
#define FRAMES                                     \
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" \
    "\1\0\0\0\0\0\0\6first\n\2\0\0\0\0\0\0\4bad\n\1\0\0\0\0\0\0\x9zzz"

static void logs_are_the_tail_of_both_streams(void **state)
{
    static const struct {
        size_t max, cut; /* bytes of the reply that are left out */
        const char *text;
    } cases[] = {
        {100, 11, "first\nbad\n"},
        {6, 11, "t\nbad\n"},
        {0, 11, ""},
        {100, 0, "first\nbad\nzzz\n[log cut: 3 of 9 bytes of the last frame arrived]\n"},
        {100, 5, "first\nbad\n\n[log cut: the stream ended inside a frame header]\n"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *request =
            wb_strf("GET /v1.41/containers/" ID "/logs?stdout=1&stderr=1&tail=%zu ", cases[i].max);
        struct fake_step steps[] = {
            PING, INSPECT(OURS, RUNNING),
            FAKE(request, FRAMES, .n = sizeof FRAMES - 1 - cases[i].cut, .end = FAKE_CLOSE)};
        struct wb_buf out = WB_BUF_INIT(1000);
        struct engine e;
        begin(&e, steps, cases[i].max ? 3 : 2);
        assert_int_equal(wb_form_docker.logs(&e.env, NAME, "/x", cases[i].max, &out, &e.err), 0);
        assert_string_equal(wb_buf_str(&out), cases[i].text);
        end(&e);
        wb_buf_release(&out);
    }
}

static void long_logs_cost_only_their_tail(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        FAKE(INSPECT_PATH,
             JSON("200 OK", "{\"Id\":\"" ID "\",\"Config\":{\"Tty\":true,\"Labels\":{" OURS
                            "}},\"State\":{}}"),
             .end = FAKE_CLOSE),
        FAKE("GET ", JSON("200 OK", ""), .end = FAKE_CLOSE, .flood = 20000000)};
    struct wb_buf out = WB_BUF_INIT(1 << 20);
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.logs(&e.env, NAME, "/x", 1000, &out, &e.err), 0);
    assert_int_equal(out.len, 1000);
    end(&e);
    wb_buf_release(&out);
}

static void logs_that_are_no_frames_are_an_error(void **state)
{
    static const struct fake_step steps[] = {
        PING, INSPECT(OURS, RUNNING),
        FAKE("GET ", JSON("200 OK", "plain text without frames"), .end = FAKE_CLOSE)};
    struct wb_buf out = WB_BUF_INIT(1 << 20);
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.logs(&e.env, NAME, "/x", 1000, &out, &e.err), -WB_PROTOCOL);
    assert_int_equal(out.len, 0);
    end(&e);
    wb_buf_release(&out);
}

#define LIST(path, body) FAKE("GET /v1.41" path, JSON("200 OK", body), .end = FAKE_CLOSE)
#define BY_OWNER "filters=%7B%22label%22%3A%5B%22wb.owner%3Dme%22%5D%7D "

static void owned_things_are_listed_by_label(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        LIST("/containers/json?all=1&" BY_OWNER,
             "[{\"Id\":\"1\",\"Names\":[\"/" NAME "\"],\"Labels\":{" OURS "}},"
             "{\"Id\":\"2\",\"Names\":null,\"Labels\":{\"wb.owner\":\"me\"}},{\"Names\":[]},7]"),
        LIST("/networks?" BY_OWNER, "[{\"Name\":\"n\",\"Id\":\"3\",\"Labels\":{}}]"),
        LIST("/volumes?" BY_OWNER, "{\"Volumes\":null}")};
    struct wb_owned_list l = {0};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.list_owned(&e.env, &l, &e.err), 0);
    assert_int_equal(l.n, 3);
    assert_string_equal(l.v[0].kind, "container");
    assert_string_equal(l.v[0].id, NAME);
    assert_string_equal(l.v[0].owner, "me");
    assert_string_equal(l.v[0].campaign, "c");
    assert_string_equal(l.v[0].run, "run_1");
    assert_string_equal(l.v[1].id, "2");
    assert_null(l.v[1].run);
    assert_string_equal(l.v[2].kind, "network");
    assert_string_equal(l.v[2].id, "n");
    wb_owned_release(&l);
    end(&e);
}

static void reap_looks_before_it_removes(void **state)
{
    static const struct fake_step ours[] = {PING, INSPECT(OURS, RUNNING), DELETE(NO_CONTENT), GONE};
    static const struct fake_step foreign[] = {PING, INSPECT("\"wb.owner\":\"x\"", RUNNING)};
    static const struct fake_step net[] = {
        PING, LIST("/networks/n%2F1 ", "{\"Labels\":{\"wb.owner\":\"me\"}}"),
        FAKE("DELETE /v1.41/networks/n%2F1 ", NO_CONTENT, .end = FAKE_CLOSE)};
    static const struct fake_step foreign_net[] = {PING, LIST("/networks/n%2F1 ", "{}")};
    static const struct {
        const struct fake_step *steps;
        size_t n;
        const char *kind, *id;
        enum wb_code code;
    } cases[] = {{ours, WB_LEN(ours), "container", NAME, 0},
                 {foreign, WB_LEN(foreign), "container", NAME, WB_CONFLICT},
                 {net, WB_LEN(net), "network", "n/1", 0},
                 {foreign_net, WB_LEN(foreign_net), "network", "n/1", WB_CONFLICT},
                 {NULL, 0, "group", "g", WB_INVALID}};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct engine e;
        begin(&e, cases[i].steps, cases[i].n);
        WB_AUTO_FREE char *kind = wb_strdup(cases[i].kind);
        WB_AUTO_FREE char *id = wb_strdup(cases[i].id);
        struct wb_owned what = {.kind = kind, .id = id};
        assert_int_equal(wb_form_docker.reap(&e.env, &what, &e.err), -(int)cases[i].code);
        end(&e);
    }
}

/* ---- networks ---- */

static void published_port_needs_a_network_of_the_run(void **state)
{
    static const struct fake_step steps[] = {PING, NO_NETWORK,
                                             FAKE("POST /v1.41/networks/create ",
                                                  JSON("201 Created", "{\"Id\":\"n\"}"),
                                                  .end = FAKE_CLOSE),
                                             CREATED, START(NO_CONTENT)};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    e.spec.network = WB_NETWORK_PUBLISHED;
    e.spec.port = 16379;
    assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), 0);
    fake_stop(&e.fake);
    WB_AUTO_JSON wb_json *net = NULL;
    WB_AUTO_JSON wb_json *body = NULL;
    const char *text = strstr(e.fake.requests[2], "\r\n\r\n") + 4;
    assert_int_equal(wb_json_parse(text, strlen(text), &net, &e.err), 0);
    assert_string_equal(wb_json_str_or(net, "Name", ""), "wb-run_1");
    assert_string_equal(wb_json_str_or(net, "Driver", ""), "bridge");
    assert_string_equal(wb_json_str_or(wb_json_get(net, "Labels"), "wb.run", ""), "run_1");
    assert_string_equal(wb_json_str_or(wb_json_get(net, "Labels"), "wb.owner", ""), "me");
    text = strstr(e.fake.requests[3], "\r\n\r\n") + 4;
    assert_int_equal(wb_json_parse(text, strlen(text), &body, &e.err), 0);
    const wb_json *host = wb_json_get(body, "HostConfig");
    const wb_json *port =
        wb_json_at(wb_json_get(wb_json_get(host, "PortBindings"), "16379/tcp"), 0);
    assert_string_equal(wb_json_str_or(host, "NetworkMode", ""), "wb-run_1");
    assert_string_equal(wb_json_str_or(port, "HostIp", ""), "127.0.0.1");
    assert_string_equal(wb_json_str_or(port, "HostPort", ""), "16379");
    assert_non_null(wb_json_get(wb_json_get(body, "ExposedPorts"), "16379/tcp"));
    fake_release(&e.fake);
}

static void routed_publishes_nothing(void **state)
{
    struct engine e;

    begin(&e, NULL, 0);
    e.spec.network = WB_NETWORK_ROUTED;
    e.spec.port = 16379;
    WB_AUTO_JSON wb_json *body = wb_container_body(&e.env, &e.spec);
    const wb_json *host = wb_json_get(body, "HostConfig");
    assert_string_equal(wb_json_str_or(host, "NetworkMode", ""), "wb-run_1");
    assert_null(wb_json_get(host, "PortBindings"));
    assert_null(wb_json_get(body, "ExposedPorts"));
    end(&e);
}

static void network_of_a_stranger_is_a_conflict(void **state)
{
    static const struct fake_step steps[][2] = {
        {PING, NETWORK("")},
        {PING, NETWORK("\"wb.owner\":\"other\",\"wb.run\":\"run_1\"")},
        {PING, NETWORK("\"wb.owner\":\"me\",\"wb.run\":\"run_2\"")},
    };

    for (size_t i = 0; i < WB_LEN(steps); i++) {
        struct engine e;
        begin(&e, steps[i], 2); /* nothing is made or removed */
        e.spec.network = WB_NETWORK_ROUTED;
        assert_int_equal(wb_form_docker.start(&e.env, &e.spec, &e.err), -WB_CONFLICT);
        assert_non_null(strstr(e.err.root, "wb-run_1 is not of this run"));
        end(&e);
    }
}

#define ON_NETWORK                                                                            \
    FAKE(INSPECT_PATH,                                                                        \
         JSON("200 OK", "{\"Id\":\"" ID "\",\"Config\":{\"Labels\":{" OURS "}},"              \
                        "\"HostConfig\":{\"NetworkMode\":\"wb-run_1\"},\"NetworkSettings\":{" \
                        "\"Networks\":{\"wb-run_1\":{\"IPAddress\":\"172.17.0.2\"}}},"        \
                        "\"State\":{" RUNNING "}}"),                                          \
         .end = FAKE_CLOSE)
#define DELETE_NETWORK(reply) FAKE("DELETE " NETWORK_PATH, reply, .end = FAKE_CLOSE)

static void last_container_takes_the_network_along(void **state)
{
    static const struct fake_step last[] = {PING, ON_NETWORK,    DELETE(NO_CONTENT),
                                            GONE, NETWORK(OURS), DELETE_NETWORK(NO_CONTENT)};
    static const struct fake_step not_last[] = {
        PING,
        ON_NETWORK,
        DELETE(NO_CONTENT),
        GONE,
        NETWORK(OURS),
        DELETE_NETWORK(JSON("403 F",
                            "{\"message\":\"error while removing network: network wb-run_1 "
                            "id 1 has active endpoints\"}"))};
    static const struct fake_step broken[] = {
        PING, ON_NETWORK,    DELETE(NO_CONTENT),
        GONE, NETWORK(OURS), DELETE_NETWORK(JSON("500 E", "{\"message\":\"device busy\"}"))};
    struct engine e;

    begin(&e, last, WB_LEN(last));
    assert_int_equal(wb_form_docker.destroy(&e.env, NAME, "/x", &e.err), 0);
    end(&e);
    begin(&e, not_last, WB_LEN(not_last));
    assert_int_equal(wb_form_docker.destroy(&e.env, NAME, "/x", &e.err), 0);
    end(&e);
    begin(&e, broken, WB_LEN(broken));
    assert_int_equal(wb_form_docker.destroy(&e.env, NAME, "/x", &e.err), -WB_IO);
    assert_non_null(strstr(e.err.root, "network wb-run_1"));
    end(&e);
}

static void address_is_that_of_its_network(void **state)
{
    static const struct fake_step steps[] = {PING, ON_NETWORK};
    struct wb_instance_status s;
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    assert_int_equal(wb_form_docker.status(&e.env, NAME, "/x", &s, &e.err), 0);
    assert_string_equal(s.address, "172.17.0.2");
    assert_string_equal(s.helper, "");
    end(&e);
}

static void engine_without_bridges_is_told_at_once(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        FAKE("GET /v1.41/info ", JSON("200 OK", "{\"Plugins\":{\"Network\":[\"host\",\"null\"]}}"),
             .end = FAKE_CLOSE)};
    struct engine e;

    begin(&e, steps, WB_LEN(steps));
    e.env.networks = 1u << WB_NETWORK_HOST | 1u << WB_NETWORK_PUBLISHED;
    assert_int_equal(wb_form_docker.check(&e.env, &e.err), -WB_UNSUPPORTED);
    assert_non_null(strstr(e.err.root, "which has only: host, null; use network: host"));
    end(&e);
}

/* ---- resource limits ---- */

static void limits_are_clamped_to_the_engine(void **state)
{
    static const char limits[] = "Limit                     Soft Limit           Hard Limit\n"
                                 "Max cpu time              unlimited            unlimited\n"
                                 "Max core file size        0                    unlimited\n"
                                 "Max open files            1024                 20000\n"
                                 "Max stack size            8388608              x\n";

    assert_int_equal(wb_hard_limit(limits, "Max open files"), 20000);
    assert_int_equal(wb_hard_limit(limits, "Max core file size"), -1);
    assert_int_equal(wb_hard_limit(limits, "Max stack size"), -2);
    assert_int_equal(wb_hard_limit(limits, "open files"), -2);
    assert_int_equal(wb_hard_limit(limits, "Max locked memory"), -2);
    assert_int_equal(wb_limit_clamped(1024, -1), 1024);
    assert_int_equal(wb_limit_clamped(1024, 20000), 1024);
    assert_int_equal(wb_limit_clamped(1048576, 20000), 20000);
    assert_int_equal(wb_limit_clamped(RLIM_INFINITY, 20000), 20000);
    assert_int_equal(wb_limit_clamped(RLIM_INFINITY, -1), -1);
    assert_null(wb_docker_ulimits("/nowhere/engine.sock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_port_needs_a_network_of_the_run),
        cmocka_unit_test(routed_publishes_nothing),
        cmocka_unit_test(network_of_a_stranger_is_a_conflict),
        cmocka_unit_test(last_container_takes_the_network_along),
        cmocka_unit_test(address_is_that_of_its_network),
        cmocka_unit_test(engine_without_bridges_is_told_at_once),
        cmocka_unit_test(limits_are_clamped_to_the_engine),
        cmocka_unit_test(versions_are_negotiated),
        cmocka_unit_test(errors_are_classified_by_text_first),
        cmocka_unit_test(what_is_no_engine_is_told),
        cmocka_unit_test(newer_engine_is_spoken_to_in_our_version),
        cmocka_unit_test(error_bodies_of_any_kind_are_read),
        cmocka_unit_test(start_asks_for_exactly_this),
        cmocka_unit_test(unlimited_instance_asks_for_no_limits),
        cmocka_unit_test(failed_start_is_undone_and_told),
        cmocka_unit_test(start_whose_undo_fails_says_so),
        cmocka_unit_test(engine_that_dies_in_the_middle_is_unavailable),
        cmocka_unit_test(taken_name_of_ours_is_freed),
        cmocka_unit_test(taken_name_of_others_is_a_conflict),
        cmocka_unit_test(name_that_stays_taken_is_a_conflict),
        cmocka_unit_test(destroy_waits_until_it_is_gone),
        cmocka_unit_test(gone_or_foreign_needs_no_removal),
        cmocka_unit_test(stop_rounds_the_grace_up),
        cmocka_unit_test(states_are_told_apart),
        cmocka_unit_test(logs_are_the_tail_of_both_streams),
        cmocka_unit_test(long_logs_cost_only_their_tail),
        cmocka_unit_test(logs_that_are_no_frames_are_an_error),
        cmocka_unit_test(owned_things_are_listed_by_label),
        cmocka_unit_test(reap_looks_before_it_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
