/*
 * Any bytes as the text of a histogram. What is read must be written and read again the same, and
 * its figures must lie between its minimum and maximum.
 */
#include <stdlib.h>

#include "server/base/hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_figures(const struct wb_hist *h)
{
    uint64_t sum = 0;
    double mean = wb_hist_mean(h);

    for (uint32_t i = 0; i < h->ncounts; i++)
        sum += wb_hist_count_at(h, i);
    if (sum != h->total)
        abort();
    for (double p = -10; p <= 110 && h->total > 0; p += 7.3)
        if (wb_hist_percentile(h, p) < h->min || wb_hist_percentile(h, p) > h->max)
            abort();
    if (h->total > 0 && (mean < (double)h->min * 0.999 || mean > (double)h->max * 1.001))
        abort();
    if (!(wb_hist_stddev(h) >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_hist h, again, ns;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(96 << 20);

    if (wb_hist_decode((const char *)data, size, &h, &err) < 0) {
        if (err.code == 0 || !err.root[0])
            abort();
        return 0;
    }
    check_figures(&h);
    wb_hist_encode(&h, &text);
    if (wb_hist_decode(wb_buf_str(&text), text.len, &again, NULL) < 0 || again.total != h.total ||
        again.min != h.min || again.max != h.max)
        abort();
    wb_hist_init_ns(&ns);
    if (h.total < UINT64_MAX / 2) {
        wb_hist_add(&ns, &h);
        check_figures(&ns);
    }
    wb_hist_add(&again, &h);
    wb_hist_clear(&again);
    check_figures(&again);
    wb_hist_release(&h);
    wb_hist_release(&again);
    wb_hist_release(&ns);
    wb_buf_release(&text);
    return 0;
}
