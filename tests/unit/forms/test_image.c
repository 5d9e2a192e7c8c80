/* Images of the docker form: what is sent to the engine, byte for byte, and what is not believed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "provisioners/forms/docker_image.h"
#include "provisioners/forms/tar.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "tests/support/fake_http.h"

#define PING \
    FAKE("GET /_ping", "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK")
#define JSON(body) "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" body
#define LIST(body)                                                                                \
    FAKE("GET /v1.41/images/json?filters=%7B%22label%22%3A%5B%22wb.image.content%3D", JSON(body), \
         .end = FAKE_CLOSE)
#define IMPORT(body)                                                                             \
    FAKE("POST /v1.41/images/create?fromSrc=-&repo=weighbridge%2Fredis&tag=7.0.15-", JSON(body), \
         .end = FAKE_CLOSE)

struct place {
    char dir[64];
    char *cache, *prefix, *archive; /* archive: what must be imported, hex digest */
};

static int to_buf(void *arg, const void *data, size_t n, struct wb_err *err)
{
    wb_buf_add(arg, data, n);
    return 0;
}

static void put(const char *path, const void *data, size_t n)
{
    assert_int_equal(wb_file_put(path, data, n, NULL), 0);
}

/* A base that is kept already, a prefix, and the digest of both put together by hand. */
static int set_up(void **state)
{
    struct place *p = wb_calloc(1, sizeof *p);
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    struct wb_tar t = {.sink = to_buf, .arg = &b};
    char hex[WB_SHA256_HEX];

    memcpy(p->dir, "/tmp/wb-image-XXXXXX", 21);
    *state = p;
    if (!mkdtemp(p->dir))
        return -1;
    p->cache = wb_strf("%s/cache", p->dir);
    p->prefix = wb_strf("%s/prefix", p->dir);
    assert_int_equal(wb_mkdir_all(p->cache, 0755, NULL), 0);
    assert_int_equal(wb_mkdir_all(p->prefix, 0755, NULL), 0);
    WB_AUTO_FREE char *tar = wb_strf("%s/rootfs-bookworm-essential-1.tar", p->cache);
    WB_AUTO_FREE char *manifest = wb_strf("%s/rootfs-bookworm-essential-1.json", p->cache);
    WB_AUTO_FREE char *file = wb_strf("%s/db", p->prefix);
    assert_int_equal(wb_tar_add_file(&t, "bin/sh", 0755, "shell", 5, NULL), 0);
    size_t body = b.len;
    assert_int_equal(wb_tar_end(&t, NULL), 0);
    /* Tools pad to a multiple of 10 KiB. */
    memset(wb_buf_room(&b, 7000), 0, 7000);
    wb_buf_commit(&b, 7000);
    put(tar, b.data, b.len);
    wb_sha256_of(b.data, b.len, hex);
    WB_AUTO_FREE char *text = wb_strf(
        "{\"suite\":\"bookworm\",\"sha256\":\"%s\",\"bytes\":%zu,\"libc\":\"2.36\"}", hex, b.len);
    put(manifest, text, strlen(text));
    put(file, "database", 8);
    b.len = body;
    static const char *const dirs[] = {"wb", "wb/config", "wb/data", "wb/log"};
    for (size_t i = 0; i < WB_LEN(dirs); i++)
        assert_int_equal(wb_tar_add_dir(&t, dirs[i], 0755, NULL), 0);
    assert_int_equal(wb_tar_add_tree(&t, p->prefix, "wb/prefix", NULL), 0);
    assert_int_equal(wb_tar_end(&t, NULL), 0);
    wb_sha256_of(b.data, b.len, hex);
    p->archive = wb_strdup(hex);
    wb_buf_release(&b);
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    int rc = wb_remove_tree(p->dir, NULL);

    free(p->cache);
    free(p->prefix);
    free(p->archive);
    free(p);
    return rc;
}

struct made {
    struct fake_http fake;
    char *image;
    wb_json *facts;
    struct wb_err err;
    int rc;
};

static void make(struct place *p, const struct fake_step *steps, size_t n, struct made *m)
{
    struct wb_engine *e = NULL;
    struct wb_bits bits = {.recipe = "redis",
                           .version = "7.0.15",
                           .prefix = p->prefix,
                           .digest = "bits-digest",
                           .base_suite = "bookworm"};
    struct wb_form_env env = {.owner = "me", .cache_dir = p->cache};

    *m = (struct made){.err = WB_ERR_INIT, .facts = wb_json_object()};
    assert_int_equal(fake_start(&m->fake, steps, n), 0);
    assert_int_equal(wb_engine_open(m->fake.socket, &e, &m->err), 0);
    m->rc = wb_docker_image_make(e, &env, &bits, &m->image, m->facts, &m->err);
    wb_engine_close(e);
    fake_stop(&m->fake);
    if (m->fake.mismatch || m->fake.next != n)
        fail_msg("step %zu of %zu; unexpected: %s (%s)", m->fake.next, n,
                 m->fake.mismatch ? m->fake.mismatch : "none", m->err.root);
}

static void done(struct made *m)
{
    free(m->image);
    wb_json_free(m->facts);
    fake_release(&m->fake);
}

/* The body of a chunked request, put together. */
static void unchunk(const char *request, struct wb_buf *out)
{
    const char *p = strstr(request, "\r\n\r\n") + 4;

    for (;;) {
        char *end;
        size_t n = strtoul(p, &end, 16);
        if (n == 0)
            return;
        wb_buf_add(out, end + 2, n);
        p = end + 2 + n + 2;
    }
}

static void base_and_prefix_are_imported_as_one_layer(void **state)
{
    struct place *p = *state;
    WB_AUTO_FREE char *inspect =
        wb_strf(JSON("{\"Id\":\"sha256:aa\",\"RootFS\":{\"Layers\":[\"sha256:%s\"]}}"), p->archive);
    struct fake_step steps[] = {
        PING, LIST("[]"), IMPORT("{\"status\":\"x\"}\n{\"status\":\"sha256:aa\"}\n"),
        FAKE("GET /v1.41/images/sha256%3Aaa/json ", inspect, .end = FAKE_CLOSE)};
    struct wb_buf body = WB_BUF_INIT(1 << 20);
    char hex[WB_SHA256_HEX];
    struct made m;

    make(p, steps, WB_LEN(steps), &m);
    assert_int_equal(m.rc, 0);
    assert_string_equal(m.image, "sha256:aa");
    assert_string_equal(wb_json_str_or(m.facts, "id", ""), "sha256:aa");
    assert_string_equal(wb_json_str_or(m.facts, "bits", ""), "bits-digest");
    assert_string_equal(wb_json_string(wb_json_path(m.facts, "base.libc")), "2.36");
    assert_true(wb_json_bool_or(m.facts, "made", false));
    const char *request = m.fake.requests[2];
    assert_non_null(strstr(request, "&changes=LABEL%20wb.image.content%3D%22"));
    assert_non_null(strstr(request, "&changes=LABEL%20wb.image.owner%3D%22me%22"));
    assert_non_null(strstr(request, "Content-Type: application/x-tar\r\n"));
    assert_null(strstr(request, "LABEL%20wb.owner")); /* containers inherit labels */
    unchunk(request, &body);
    wb_sha256_of(body.data, body.len, hex);
    assert_string_equal(hex, p->archive);
    wb_buf_release(&body);
    struct wb_strv names = {0};
    assert_int_equal(wb_list_dir(p->cache, &names, NULL), 0);
    assert_int_equal(names.n, 2); /* nothing temporary */
    wb_strv_release(&names);
    done(&m);
}

static void image_that_is_there_is_used(void **state)
{
    static const struct fake_step steps[] = {
        PING, LIST("[{\"Id\":\"sha256:bb\"},{\"Id\":\"sha256:cc\"}]"),
        FAKE("GET /v1.41/images/sha256%3Abb/json ", JSON("{\"Id\":\"sha256:bb\"}"),
             .end = FAKE_CLOSE)};
    struct made m;

    make(*state, steps, WB_LEN(steps), &m);
    assert_int_equal(m.rc, 0);
    assert_string_equal(m.image, "sha256:bb");
    assert_false(wb_json_bool_or(m.facts, "made", true));
    done(&m);
}

static void another_layer_than_sent_is_not_believed(void **state)
{
    static const struct fake_step steps[] = {
        PING, LIST("[]"), IMPORT("{\"status\":\"sha256:aa\"}"),
        FAKE("GET /v1.41/images/sha256%3Aaa/json ",
             JSON("{\"Id\":\"sha256:aa\",\"RootFS\":{\"Layers\":[\"sha256:dd\"]}}"),
             .end = FAKE_CLOSE)};
    struct made m;

    make(*state, steps, WB_LEN(steps), &m);
    assert_int_equal(m.rc, -WB_CORRUPT);
    assert_non_null(strstr(m.err.root, "sha256:dd"));
    assert_non_null(strstr(m.err.context, "image of redis 7.0.15"));
    assert_null(m.image);
    done(&m);
}

static void failed_imports_are_told(void **state)
{
    static const struct {
        const char *reply, *says;
        enum wb_code code;
    } cases[] = {
        {JSON("{\"errorDetail\":{\"message\":\"no space left on device\"},"
              "\"error\":\"no space left on device\"}\n"),
         "no space left", WB_IO},
        {JSON("{\"status\":\"done\"}\n"), "names no image", WB_PROTOCOL},
        {JSON(""), "names no image", WB_PROTOCOL},
        {JSON("{\"status\":"), "not JSON", WB_PROTOCOL},
        {"HTTP/1.1 500 E\r\nConnection: close\r\n\r\n{\"message\":\"disk quota exceeded\"}",
         "quota", WB_IO},
        {NULL, "without an answer", WB_UNAVAILABLE},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct fake_step steps[] = {PING, LIST("[]"),
                                    FAKE("POST ", cases[i].reply, .end = FAKE_CLOSE)};
        struct made m;
        make(*state, steps, WB_LEN(steps), &m);
        if (m.rc != -(int)cases[i].code || !strstr(m.err.root, cases[i].says))
            fail_msg("case %zu: %d %s", i, m.rc, m.err.root);
        assert_null(m.image);
        done(&m);
    }
}

static void changed_base_is_not_used(void **state)
{
    static const struct fake_step steps[] = {PING, LIST("[]")};
    struct place *p = *state;
    WB_AUTO_FREE char *tar = wb_strf("%s/rootfs-bookworm-essential-1.tar", p->cache);
    char *data;
    size_t n;
    struct made m;

    assert_int_equal(wb_file_read(tar, 1 << 20, &data, &n, NULL), 0);
    data[512] ^= 1; /* same size, another byte of a file in it */
    put(tar, data, n);
    free(data);
    make(p, steps, WB_LEN(steps), &m);
    assert_int_equal(m.rc, -WB_CORRUPT);
    assert_non_null(strstr(m.err.root, tar));
    done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(base_and_prefix_are_imported_as_one_layer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(image_that_is_there_is_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_layer_than_sent_is_not_believed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_imports_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changed_base_is_not_used, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
