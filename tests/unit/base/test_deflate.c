#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/deflate.h"
#include "server/base/mem.h"

static char *pattern(size_t n)
{
    char *p = wb_calloc(n + 1, 1);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)((i * i / 7) & 0x3f);
    return p;
}

static void test_round_trip(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 200000};

    (void)state;
    for (size_t i = 0; i < WB_LEN(sizes); i++) {
        WB_AUTO_FREE char *data = pattern(sizes[i]);
        struct wb_buf packed = WB_BUF_INIT(1 << 20), back = WB_BUF_INIT(sizes[i]);
        struct wb_err err = WB_ERR_INIT;

        wb_deflate(data, sizes[i], i % 2 ? 1 : 9, &packed);
        assert_false(packed.failed);
        assert_int_equal(wb_inflate(packed.data, packed.len, &back, &err), 0);
        assert_int_equal(back.len, sizes[i]);
        assert_memory_equal(wb_buf_str(&back), data, sizes[i]);
        wb_buf_release(&back);
        if (sizes[i]) { /* over the bound the first bytes are there */
            struct wb_buf head = WB_BUF_INIT(sizes[i] - 1);

            assert_int_equal(wb_inflate(packed.data, packed.len, &head, &err), -WB_LIMIT);
            assert_int_equal(head.len, sizes[i] - 1);
            assert_memory_equal(wb_buf_str(&head), data, sizes[i] - 1);
            wb_buf_release(&head);
        }
        wb_buf_release(&packed);
    }
}

static void test_damage(void **state)
{
    WB_AUTO_FREE char *data = pattern(3000);
    struct wb_buf packed = WB_BUF_INIT(1 << 20);
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    wb_deflate(data, 3000, 6, &packed);
    for (size_t cut = 0; cut < packed.len; cut++) {
        struct wb_buf back = WB_BUF_INIT(1 << 20);

        assert_int_equal(wb_inflate(packed.data, cut, &back, &err), -WB_CORRUPT);
        wb_buf_release(&back);
    }
    for (size_t i = 0; i < packed.len; i++) {
        struct wb_buf back = WB_BUF_INIT(1 << 20);

        packed.data[i] = (char)~packed.data[i];
        assert_int_equal(wb_inflate(packed.data, packed.len, &back, &err), -WB_CORRUPT);
        packed.data[i] = (char)~packed.data[i];
        wb_buf_release(&back);
    }
    wb_buf_addc(&packed, 'x');
    {
        struct wb_buf back = WB_BUF_INIT(1 << 20);

        assert_int_equal(wb_inflate(packed.data, packed.len, &back, &err), -WB_CORRUPT);
        wb_buf_release(&back);
    }
    wb_buf_release(&packed);
}

static void test_no_room(void **state)
{
    struct wb_buf out = WB_BUF_INIT(8);

    (void)state;
    wb_deflate("abcdefgh", 8, 1, &out);
    assert_true(out.failed);
    wb_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
