#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/digest.h"
#include "server/base/mem.h"

/* FIPS 180-2 examples. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define MILLION_A "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void known_answers(void **state)
{
    WB_AUTO_FREE char *a = wb_calloc(1000000, 1);
    struct wb_sha256 *d = wb_sha256_new();
    char hex[WB_SHA256_HEX];

    wb_sha256_of("", 0, hex);
    assert_string_equal(hex, EMPTY);
    wb_sha256_of("abc", 3, hex);
    assert_string_equal(hex, ABC);
    memset(a, 'a', 1000000);
    for (size_t at = 0, n = 1; at < 1000000; at += n, n = n * 3 + 1) { /* uneven parts */
        if (n > 1000000 - at)
            n = 1000000 - at;
        wb_sha256_add(d, a + at, n);
    }
    wb_sha256_end(d, hex);
    assert_string_equal(hex, MILLION_A);
}

static void files(void **state)
{
    char path[] = "/tmp/wb-test-digest-XXXXXX", hex[WB_SHA256_HEX] = "untouched";
    int fd = mkstemp(path);
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *a = wb_calloc(1000000, 1);

    memset(a, 'a', 1000000);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, a, 1000000), 1000000);
    close(fd);
    assert_int_equal(wb_sha256_file(path, hex, &err), 0);
    assert_string_equal(hex, MILLION_A);
    unlink(path);
    memcpy(hex, "untouched", sizeof("untouched"));
    assert_int_equal(wb_sha256_file(path, hex, &err), -WB_NOT_FOUND);
    assert_non_null(strstr(err.root, path));
    assert_int_equal(wb_sha256_file("/tmp", hex, &err),
                     -WB_IO); /* a folder opens but does not read */
    assert_string_equal(hex, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
