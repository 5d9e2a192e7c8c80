/* Caches that are thrown away when asked: what goes, what stays and why, and what a container
 * engine makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/engine/prune.h"
#include "tests/support/fake_http.h"

#define PING \
    FAKE("GET /_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK")
#define LIST(body)                                                                              \
    FAKE("GET /v1.41/images/json?filters=%7B%22label%22%3A%5B%22wb.image.kind%3Dcache%22%2C%22" \
         "wb.image.owner%3Dme%22%5D%7D",                                                        \
         "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" body, .end = FAKE_CLOSE)

struct fixture {
    char dir[32];
    struct wb_clean_report report;
};

static int setup(void **state)
{
    struct fixture *f = wb_calloc(1, sizeof(*f));

    memcpy(f->dir, "/tmp/wb-test-prune-XXXXXX", sizeof("/tmp/wb-test-prune-XXXXXX"));
    f->report.pruned = wb_json_array();
    f->report.notes = wb_json_array();
    *state = f;
    return mkdtemp(f->dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int rc = wb_remove_tree(f->dir, NULL);

    wb_json_free(f->report.pruned);
    wb_json_free(f->report.notes);
    free(f);
    return rc;
}

static void put(const struct fixture *f, const char *path, const char *text)
{
    WB_AUTO_FREE char *full = wb_strf("%s/%s", f->dir, path);
    WB_AUTO_FREE char *folder = wb_strf("%.*s", (int)(strrchr(full, '/') - full), full);

    assert_int_equal(wb_mkdir_all(folder, 0755, NULL), 0);
    assert_int_equal(wb_file_put(full, text, strlen(text), NULL), 0);
}

static bool there(const struct fixture *f, const char *path)
{
    WB_AUTO_FREE char *full = wb_strf("%s/%s", f->dir, path);

    return wb_path_exists(full);
}

static void prefix(const struct fixture *f, const char *name, const char *digest)
{
    WB_AUTO_FREE char *file = wb_strf("prefix/%s/usr/bin/db", name);
    WB_AUTO_FREE char *manifest = wb_strf("prefix/%s.json", name);
    WB_AUTO_FREE char *text = digest ? wb_strf("{\"digest\": \"%s\"}", digest) : NULL;

    put(f, file, "program");
    if (text)
        put(f, manifest, text);
}

static void prune(struct fixture *f, const char *socket)
{
    const struct wb_clean_spec spec = {.state_dir = f->dir, .docker_socket = socket};
    struct wb_err err = WB_ERR_INIT;

    if (wb_prune_caches(&spec, "me", &f->report, &err) < 0)
        fail_msg("%s", err.root);
}

static const char *note(const struct fixture *f, size_t i)
{
    const char *text = wb_json_string(wb_json_at(f->report.notes, i));

    return text ? text : "";
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *campaign, *state; /* its bits are those of the prefix with the same name */
        bool stays;
    } rows[] = {
        {"cmp_over", "{\"state\": \"finished\", \"bits\": \"cmp_over\"}", false},
        {"cmp_failed", "{\"state\": \"failed\", \"bits\": \"cmp_failed\"}", false},
        {"cmp_run", "{\"state\": \"running\", \"bits\": \"cmp_run\"}", true},
        {"cmp_stop", "{\"state\": \"interrupted\", \"bits\": \"cmp_stop\"}", true},
        {"cmp_cut", "{\"state\": \"cancelled\", \"bits\": \"cmp_cut\"}", true},
        {"cmp_held", "{\"state\": \"incomplete\", \"bits\": \"cmp_held\"}", true},
        {"cmp_torn", "{\"state\": \"running\", \"bits\"", false},
    };
    struct fixture *f = *state;
    size_t gone = 2;

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *path = wb_strf("campaigns/%s/state.json", rows[i].campaign);

        prefix(f, rows[i].campaign, rows[i].campaign);
        put(f, path, rows[i].state);
        gone += !rows[i].stays;
    }
    prefix(f, "nobodys", "nobodys");
    prefix(f, "torn", NULL);
    put(f, "cache/artifacts/redis/1/x.deb", "artifact");
    prune(f, "/nonexistent/socket");
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *path = wb_strf("prefix/%s", rows[i].campaign);
        WB_AUTO_FREE char *manifest = wb_strf("%s.json", path);

        if (there(f, path) != rows[i].stays || there(f, manifest) != rows[i].stays)
            fail_msg("%s", rows[i].campaign);
    }
    assert_false(there(f, "prefix/nobodys"));
    assert_false(there(f, "prefix/nobodys.json"));
    assert_false(there(f, "prefix/torn"));
    assert_true(there(f, "cache/artifacts/redis/1/x.deb"));
    assert_int_equal(wb_json_len(f->report.pruned), gone);
    assert_string_equal(wb_json_str_or(wb_json_at(f->report.pruned, 0), "kind", ""), "prefix");
    assert_int_equal(wb_json_len(f->report.notes), 5);
    assert_non_null(strstr(note(f, 0), "cmp_cut was kept: campaign cmp_cut can be resumed"));
    assert_string_equal(note(f, 4), "images were not looked at: no container engine answers");
}

static void test_nothing_there(void **state)
{
    struct fixture *f = *state;

    prune(f, "/nonexistent/socket");
    assert_int_equal(wb_json_len(f->report.pruned), 0);
}

static void test_images(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        LIST("[{\"Id\":\"sha256:a\"},{\"Id\":\"sha256:b\"},{\"Id\":\"sha256:c\"}]"),
        FAKE("DELETE /v1.41/images/sha256%3Aa ", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[]",
             .end = FAKE_CLOSE),
        FAKE("DELETE /v1.41/images/sha256%3Ab ",
             "HTTP/1.1 409 C\r\nConnection: close\r\n\r\n{\"message\":\"image is being used by "
             "running container 12\"}",
             .end = FAKE_CLOSE),
        FAKE("DELETE /v1.41/images/sha256%3Ac ",
             "HTTP/1.1 404 N\r\nConnection: close\r\n\r\n{\"message\":\"No such image\"}",
             .end = FAKE_CLOSE),
    };
    struct fixture *f = *state;
    struct fake_http fake;

    assert_int_equal(fake_start(&fake, steps, WB_LEN(steps)), 0);
    prune(f, fake.socket);
    fake_stop(&fake);
    if (fake.mismatch || fake.next != WB_LEN(steps))
        fail_msg("step %zu: %s", fake.next, fake.mismatch ? fake.mismatch : "");
    fake_release(&fake);
    assert_int_equal(wb_json_len(f->report.pruned), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(f->report.pruned, 0), "id", ""), "sha256:a");
    assert_int_equal(wb_json_len(f->report.notes), 1);
    assert_non_null(strstr(note(f, 0), "image sha256:b was kept: "));
    assert_non_null(strstr(note(f, 0), "running container 12"));
}

/* What the engine cannot do is said, not passed over. */
static void test_image_that_stays(void **state)
{
    static const struct fake_step steps[] = {
        PING,
        LIST("[{\"Id\":\"sha256:a\"}]"),
        FAKE("DELETE ",
             "HTTP/1.1 500 E\r\nConnection: close\r\n\r\n{\"message\":\"disk is on fire\"}",
             .end = FAKE_CLOSE),
    };
    struct fixture *f = *state;
    struct wb_err err = WB_ERR_INIT;
    struct wb_clean_spec spec = {.state_dir = f->dir};
    struct fake_http fake;

    assert_int_equal(fake_start(&fake, steps, WB_LEN(steps)), 0);
    spec.docker_socket = fake.socket;
    assert_int_equal(wb_prune_caches(&spec, "me", &f->report, &err), -WB_IO);
    assert_non_null(strstr(err.root, "disk is on fire"));
    fake_stop(&fake);
    fake_release(&fake);
    assert_int_equal(wb_json_len(f->report.pruned), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prefixes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_images, setup, teardown),
        cmocka_unit_test_setup_teardown(test_image_that_stays, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
