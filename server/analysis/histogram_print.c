/* The answer of `stats histogram` for people. */
#include "server/analysis/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/table.h"
#include "server/base/units.h"

#define BAD_LINES 10

static void count_cell(struct wb_table *t, const wb_json *v)
{
    struct wb_buf b = WB_BUF_INIT(100);

    if (wb_json_is_number(v))
        wb_format_count(wb_json_number(v, 0), &b);
    else
        wb_buf_addc(&b, '-');
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

/* One row a percentile; the corrected ones beside them where there are any. */
static void add_percentiles(const wb_json *answer, int width, struct wb_buf *out)
{
    static const char *const keys[] = {"count", "min", "mean", "stddev", "max"};
    const wb_json *list = wb_json_get(answer, "percentiles");
    const wb_json *corrected = wb_json_get(answer, "corrected");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "figure", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    if (corrected != NULL)
        wb_table_column(t, "corrected", WB_RIGHT);
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        wb_table_row(t);
        wb_table_cell(t, "%s", keys[i]);
        count_cell(t, wb_json_get(answer, keys[i]));
        if (corrected != NULL)
            count_cell(t, wb_json_get(corrected, keys[i]));
    }
    for (void *it = wb_json_first(list); it != NULL; it = wb_json_next(list, it)) {
        wb_table_row(t);
        wb_table_cell(t, "p%s", wb_json_iter_key(it));
        count_cell(t, wb_json_iter_value(it));
        if (corrected != NULL)
            count_cell(t, wb_json_get(wb_json_get(corrected, "percentiles"), wb_json_iter_key(it)));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
}

static void add_tags(const wb_json *list, int width, struct wb_buf *out)
{
    static const char *const keys[] = {"50", "99", "99.9"};
    struct wb_table *t;

    if (wb_json_len(list) < 2)
        return;
    t = wb_table_new();
    wb_table_column(t, "tag", WB_LEFT);
    wb_table_column(t, "entries", WB_RIGHT);
    wb_table_column(t, "count", WB_RIGHT);
    for (size_t k = 0; k < WB_LEN(keys); k++) {
        WB_AUTO_FREE char *head = wb_strf("p%s", keys[k]);
        wb_table_column(t, head, WB_RIGHT);
    }
    wb_table_column(t, "max", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *o = wb_json_at(list, i);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(o, "tag", "(none)"));
        count_cell(t, wb_json_get(o, "entries"));
        count_cell(t, wb_json_get(o, "count"));
        for (size_t k = 0; k < WB_LEN(keys); k++)
            count_cell(t, wb_json_get(wb_json_get(o, "percentiles"), keys[k]));
        count_cell(t, wb_json_get(o, "max"));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
}

static void add_bad_lines(const wb_json *list, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(list) && i < BAD_LINES; i++) {
        const wb_json *l = wb_json_at(list, i);
        wb_buf_addf(out, "line %lld: %s\n", (long long)wb_json_int_or(l, "line", 0),
                    wb_json_str_or(l, "message", ""));
    }
    if (wb_json_len(list) > BAD_LINES)
        wb_buf_adds(out, "...\n");
}

void wb_stats_histogram_print(const wb_json *answer, int width, struct wb_buf *out)
{
    if (width <= 0)
        width = WB_TEXT_WIDTH;
    add_percentiles(answer, width, out);
    add_tags(wb_json_get(answer, "by_tag"), width, out);
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
    add_bad_lines(wb_json_get(answer, "bad_lines"), out);
}
