/*
 * Any bytes as the text of an HDR log, and as one encoded histogram of any form. An answer has
 * counts that add up and percentiles that ascend; bad lines are told and count nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/histogram.h"
#include "server/base/hist_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void check_reader(const char *text, size_t n)
{
    struct wb_hist_reader r;
    struct wb_err err = WB_ERR_INIT;
    uint64_t total = 0;

    wb_hist_reader_init(&r);
    if (wb_hist_read(&r, text, n, &err) < 0) {
        require(err.code != 0 && err.root[0] != '\0');
    } else {
        for (size_t i = 0; i < r.n; i++) {
            require(r.cells[i].index < r.shape.ncounts && r.cells[i].count > 0);
            require(i == 0 || r.cells[i].index > r.cells[i - 1].index);
            total += r.cells[i].count;
        }
        require(total == r.shape.total);
    }
    wb_hist_reader_release(&r);
}

static void check_percentiles(const wb_json *answer)
{
    const wb_json *list = wb_json_get(answer, "percentiles");
    int64_t last = -1;

    for (void *it = wb_json_first(list); it != NULL; it = wb_json_next(list, it)) {
        require(wb_json_integer(wb_json_iter_value(it)) >= last);
        last = wb_json_integer(wb_json_iter_value(it));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wb_json *doc = wb_json_object(), *answer = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(64u << 20);

    check_reader((const char *)data, size);
    wb_json_set(doc, "log", wb_json_strn((const char *)data, size));
    if (wb_stats_histogram(doc, &answer, &err) == 0) {
        const wb_json *tags = wb_json_get(answer, "by_tag");
        int64_t entries = 0, count = 0;
        for (size_t i = 0; i < wb_json_len(tags); i++) {
            entries += wb_json_int_or(wb_json_at(tags, i), "entries", 0);
            count += wb_json_int_or(wb_json_at(tags, i), "count", 0);
        }
        require(entries == wb_json_int_or(answer, "entries", -1));
        require(count == wb_json_int_or(answer, "count", -1));
        check_percentiles(answer);
        wb_stats_histogram_print(answer, 80, &text);
        require(!text.failed);
    } else {
        require(answer == NULL && err.root[0] != '\0');
    }
    wb_buf_release(&text);
    wb_json_free(answer);
    wb_json_free(doc);
    return 0;
}
