#include "tests/unit/record/fixture.h"

#include "server/record/compress.h"

static const size_t sizes[] = {0, 1, 100, 131071, 131072, 131073, 1000000};

static char *pattern(size_t n)
{
    char *p = wb_calloc(n + 1, 1);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)((i * i / 7) & 0x3f);
    return p;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < WB_LEN(sizes); i++) {
        WB_AUTO_FREE char *data = pattern(sizes[i]);
        struct wb_buf packed = WB_BUF_INIT(4 << 20), back = WB_BUF_INIT(sizes[i]);
        struct wb_err err = WB_ERR_INIT;

        assert_int_equal(wb_compress(data, sizes[i], &packed, &err), 0);
        assert_int_equal(wb_decompress(packed.data, packed.len, &back, &err), 0);
        assert_int_equal(back.len, sizes[i]);
        assert_memory_equal(wb_buf_str(&back), data, sizes[i]);
        wb_buf_release(&back);
        /* one byte less room than it holds */
        if (sizes[i] > 0) {
            struct wb_buf small = WB_BUF_INIT(sizes[i] - 1);

            assert_int_equal(wb_decompress(packed.data, packed.len, &small, &err), -WB_LIMIT);
            wb_buf_release(&small);
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
    assert_int_equal(wb_compress(data, 3000, &packed, &err), 0);
    for (size_t cut = 0; cut < packed.len; cut++) {
        struct wb_buf back = WB_BUF_INIT(1 << 20);

        assert_int_equal(wb_decompress(packed.data, cut, &back, &err), -WB_CORRUPT);
        wb_buf_release(&back);
    }
    for (size_t i = 0; i < packed.len; i++) {
        struct wb_buf back = WB_BUF_INIT(1 << 20);
        int rc;

        packed.data[i] ^= 0x10;
        rc = wb_decompress(packed.data, packed.len, &back, &err);
        packed.data[i] ^= 0x10;
        /* unused bits may change; other data may only come out when the head says that there is
         * no checksum */
        if (rc == 0 && i >= 6)
            assert_true(back.len == 3000 && !memcmp(back.data, data, 3000));
        wb_buf_release(&back);
    }
    wb_buf_addc(&packed, 'x');
    {
        struct wb_buf back = WB_BUF_INIT(1 << 20);

        assert_int_equal(wb_decompress(packed.data, packed.len, &back, &err), -WB_CORRUPT);
        wb_buf_release(&back);
    }
    wb_buf_release(&packed);
}

/* 64 MiB of zeros in a few kB do not come out where 1 MiB is allowed. */
static void test_bomb(void **state)
{
    size_t n = 64u << 20;
    WB_AUTO_FREE char *zeros = wb_calloc(n, 1);
    struct wb_buf packed = WB_BUF_INIT(128u << 20), back = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;

    (void)state;
    assert_int_equal(wb_compress(zeros, n, &packed, &err), 0);
    assert_true(packed.len < 65536);
    assert_int_equal(wb_decompress(packed.data, packed.len, &back, &err), -WB_LIMIT);
    assert_true(back.len <= 1u << 20);
    wb_buf_release(&packed);
    wb_buf_release(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_bomb),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
