/* Reading the wire forms, made by hand and hostile. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/hist_read.h"
#include "server/base/mem.h"

/* Bytes as base64. Caller frees. */
static char *base64(const uint8_t *p, size_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p[i + 2] : 0);
        wb_buf_addc(&b, letters[v >> 18]);
        wb_buf_addc(&b, letters[v >> 12 & 63]);
        wb_buf_addc(&b, i + 1 < n ? letters[v >> 6 & 63] : '=');
        wb_buf_addc(&b, i + 2 < n ? letters[v & 63] : '=');
    }
    return wb_buf_take(&b);
}

static void put(struct wb_buf *b, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        wb_buf_addc(b, (char)(uint8_t)(v >> (8 * i)));
}

struct form {
    uint32_t cookie;
    uint64_t length; /* that is said; of V0 the total */
    uint32_t digits;
    uint64_t lowest, highest;
    int word;
    uint64_t counts[4];
    size_t n;
};

static int read_form(const struct form *f, struct wb_hist_reader *r, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    WB_AUTO_FREE char *text = NULL;
    bool v0 = (f->cookie & ~0xf0u) == 0x1c849308;

    put(&b, f->cookie, 4);
    if (!v0) {
        put(&b, f->length, 4);
        put(&b, 0, 4);
    }
    put(&b, f->digits, 4);
    put(&b, f->lowest, 8);
    put(&b, f->highest, 8);
    put(&b, v0 ? f->length : 0x3ff0000000000000, 8);
    for (size_t i = 0; i < f->n; i++)
        put(&b, f->counts[i], f->word);
    text = base64((const uint8_t *)b.data, b.len);
    wb_buf_release(&b);
    return wb_hist_read(r, text, strlen(text), err);
}

static void older_forms(void **state)
{
    static const struct {
        struct form form;
        int rc;
        uint64_t total;
        size_t cells;
    } rows[] = {
        /* words of 2, 4 and 8 bytes */
        {{0x1c849321, 8, 2, 1, 1000, 2, {0, 3, 0, 65535}, 4}, 0, 65538, 2},
        {{0x1c849341, 8, 2, 1, 1000, 4, {7, 8}, 2}, 0, 15, 2},
        {{0x1c849381, 16, 2, 1, 1000, 8, {1ull << 40, 1}, 2}, 0, (1ull << 40) + 1, 2},
        {{0x1c849391, 16, 2, 1, 1000, 8, {5, 1}, 2}, 0, 6, 2},
        {{0x1c849388, 99, 2, 1, 1000, 8, {4, 0, 5}, 3}, 0, 9, 2},
        {{0x1c849328, 99, 2, 1, 1000, 2, {4, 0, 5}, 3}, 0, 9, 2},
        /* less than it says; words of no known size; half a word */
        {{0x1c849341, 9, 2, 1, 1000, 4, {7, 8}, 2}, -WB_CORRUPT, 0, 0},
        {{0x1c849361, 8, 2, 1, 1000, 4, {7, 8}, 2}, -WB_CORRUPT, 0, 0},
        {{0x1c849301, 8, 2, 1, 1000, 4, {7, 8}, 2}, -WB_CORRUPT, 0, 0},
        {{0x1c849341, 7, 2, 1, 1000, 4, {7, 8}, 2}, -WB_CORRUPT, 0, 0},
        /* more than the counter of all can hold; digits; range */
        {{0x1c849381, 16, 2, 1, 1000, 8, {INT64_MAX, 1}, 2}, -WB_CORRUPT, 0, 0},
        {{0x1c849381, 16, 2, 1, 1000, 8, {1ull << 63, 1}, 2}, -WB_CORRUPT, 0, 0},
        {{0x1c849388, 0, 6, 1, 1000, 8, {1}, 1}, -WB_CORRUPT, 0, 0},
        {{0x1c849388, 0, 2, 0, 1000, 8, {1}, 1}, -WB_INVALID, 0, 0},
        {{0x1c849388, 0, 5, 1, UINT64_MAX, 8, {1}, 1}, -WB_INVALID, 0, 0},
        /* other forms */
        {{0x1c849307, 8, 2, 1, 1000, 4, {7, 8}, 2}, -WB_UNSUPPORTED, 0, 0},
        {{0x0c72124e, 8, 2, 1, 1000, 4, {7, 8}, 2}, -WB_UNSUPPORTED, 0, 0},
    };
    struct wb_hist_reader r;

    (void)state;
    wb_hist_reader_init(&r);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_err err = WB_ERR_INIT;
        int rc = read_form(&rows[i].form, &r, &err);
        if (rc != rows[i].rc)
            fail_msg("row %zu: %d %s", i, rc, err.root);
        if (rc < 0)
            continue;
        assert_int_equal(r.shape.total, rows[i].total);
        assert_int_equal(r.n, rows[i].cells);
    }
    wb_hist_reader_release(&r);
}

/* Zeros behind the range are padding; anything else there is damage. */
static void counts_behind_the_range(void **state)
{
    struct form f = {0x1c849328, 0, 0, 1, 2, 2, {0}, 0};
    struct wb_hist_reader r;
    struct wb_hist h;
    struct wb_buf b = WB_BUF_INIT(1 << 16);

    (void)state;
    assert_int_equal(wb_hist_init(&h, 1, 2, 0, NULL), 0);
    wb_hist_reader_init(&r);
    for (int bad = 0; bad < 2; bad++) {
        WB_AUTO_FREE char *text = NULL;
        wb_buf_clear(&b);
        put(&b, f.cookie, 4);
        put(&b, f.digits, 4);
        put(&b, f.lowest, 8);
        put(&b, f.highest, 8);
        put(&b, 0, 8);
        for (uint32_t i = 0; i < h.ncounts + 5; i++)
            put(&b, i == 1 || (bad && i == h.ncounts), 2);
        text = base64((const uint8_t *)b.data, b.len);
        assert_int_equal(wb_hist_read(&r, text, strlen(text), NULL), bad ? -WB_CORRUPT : 0);
    }
    wb_buf_release(&b);
    wb_hist_release(&h);
    wb_hist_reader_release(&r);
}

/* A reader is used again after a failure, and counts into histograms of any shape. */
static void reading_again(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    struct wb_hist_reader r;
    struct wb_hist h, ns, narrow;

    (void)state;
    wb_hist_init_ns(&ns);
    assert_int_equal(wb_hist_init(&h, 1, 1000000, 2, NULL), 0);
    assert_int_equal(wb_hist_init(&narrow, 1, 100, 2, NULL), 0);
    wb_hist_record_n(&h, 5, 70);
    wb_hist_record_n(&h, 500000, 1ull << 33);
    wb_hist_encode(&h, &b);
    wb_hist_reader_init(&r);
    for (int i = 0; i < 3; i++) {
        assert_true(wb_hist_read(&r, "HISTFAAA", 8, NULL) < 0);
        assert_int_equal(wb_hist_read(&r, wb_buf_str(&b), b.len, NULL), 0);
        assert_int_equal(r.n, 2);
        wb_hist_read_into(&r, &ns);
    }
    wb_hist_read_into(&r, &narrow);
    assert_int_equal(ns.total, 3 * (70 + (1ull << 33)));
    assert_int_equal(wb_hist_percentile(&ns, 0), 5);
    assert_int_equal(narrow.total, 70 + (1ull << 33));
    assert_int_equal(narrow.over, 1ull << 33);
    wb_hist_reader_release(&r);
    wb_hist_release(&h);
    wb_hist_release(&ns);
    wb_hist_release(&narrow);
    wb_buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_forms),
        cmocka_unit_test(counts_behind_the_range),
        cmocka_unit_test(reading_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
