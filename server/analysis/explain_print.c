/* `explain` for people. */
#include <math.h>
#include <string.h>

#include "server/analysis/explain.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define ROWS_SHOWN 15

static void value_cell(struct wb_table *t, const wb_json *v)
{
    const char *s = wb_json_string(v);

    if (wb_json_type(v) == WB_JSON_NULL)
        wb_table_cell(t, "-");
    else if (s != NULL)
        wb_table_cell(t, "%.40s", *s ? s : "''");
    else if (wb_json_type(v) == WB_JSON_BOOL)
        wb_table_cell(t, "%s", wb_json_is_true(v) ? "true" : "false");
    else
        wb_text_cell(t, v);
}

static void add_more(size_t n, struct wb_buf *out)
{
    if (n > ROWS_SHOWN)
        wb_buf_addf(out, "and %zu more: see --json\n", n - ROWS_SHOWN);
}

static void add_differences(const wb_json *answer, const char *key, const char *head, int width,
                            struct wb_buf *out)
{
    const wb_json *list = wb_json_get(answer, key);
    struct wb_table *t;

    if (wb_json_len(list) == 0) {
        wb_buf_addf(out, "\n%s: none differs.\n", head);
        return;
    }
    t = wb_table_new();
    wb_table_column(t, head, WB_LEFT);
    wb_table_column(t, wb_json_str_or(answer, "base", "base"), WB_LEFT);
    wb_table_column(t, wb_json_str_or(answer, "other", "other"), WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list) && i < ROWS_SHOWN; i++) {
        const wb_json *d = wb_json_at(list, i);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(d, "path", ""));
        value_cell(t, wb_json_get(d, "base"));
        value_cell(t, wb_json_get(d, "other"));
    }
    wb_buf_addc(out, '\n');
    wb_table_print(t, width, out);
    wb_table_free(t);
    add_more(wb_json_len(list), out);
}

static void change_cell(struct wb_table *t, const wb_json *s)
{
    double ratio = wb_json_real_or(s, "ratio", NAN);
    double difference = wb_json_real_or(s, "difference", NAN);

    if (!isnan(ratio) && ratio < 10)
        wb_table_cell(t, "%+.1f %%", (ratio - 1) * 100);
    else if (!isnan(ratio))
        wb_table_cell(t, "x %.3g", ratio);
    else if (!isnan(difference))
        wb_table_cell(t, "%+.4g", difference);
    else
        wb_table_cell(t, "-");
}

static void add_signals(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *list = wb_json_get(answer, "signals");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "signal", WB_LEFT);
    wb_table_column(t, wb_json_str_or(answer, "base", "base"), WB_RIGHT);
    wb_table_column(t, wb_json_str_or(answer, "other", "other"), WB_RIGHT);
    wb_table_column(t, "change", WB_RIGHT);
    wb_table_column(t, "rho", WB_RIGHT);
    wb_table_column(t, "moved", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list) && i < ROWS_SHOWN; i++) {
        const wb_json *s = wb_json_at(list, i);
        double rho = wb_json_real_or(s, "rho", NAN);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(s, "name", ""));
        wb_text_cell(t, wb_json_get(s, "median_base"));
        wb_text_cell(t, wb_json_get(s, "median_new"));
        change_cell(t, s);
        if (isnan(rho))
            wb_table_cell(t, "-");
        else
            wb_table_cell(t, "%+.2f", rho);
        wb_table_cell(t, "%s",
                      !wb_json_bool_or(s, "moved", false)    ? "no"
                      : wb_json_bool_or(s, "follows", false) ? "as the work"
                                                             : "yes");
    }
    wb_buf_addc(out, '\n');
    wb_table_print(t, width, out);
    wb_table_free(t);
    add_more(wb_json_len(list), out);
    wb_text_wrapped(out, "", 0,
                    "rho: rank correlation with the metric over all runs. 'as the work': changed "
                    "by the same ratio as the metric itself.",
                    width);
}

void wb_explain_print(const wb_json *answer, int width, struct wb_buf *out)
{
    if (width <= 0)
        width = WB_TEXT_WIDTH;
    wb_text_sentence(out, answer, width);
    add_differences(answer, "settings", "setting", width, out);
    add_differences(answer, "facts", "fact", width, out);
    if (wb_json_len(wb_json_get(answer, "signals")) > 0)
        add_signals(answer, width, out);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
