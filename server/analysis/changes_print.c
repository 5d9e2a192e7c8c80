/* The answer of `stats changes` for people. */
#include "server/analysis/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/table.h"

/* The history as blocks, and below it where the level changed ('^'), where a point stands alone
 * ('o'), and where annotations set a border ('|'). */
static void add_picture(const wb_json *answer, int width, struct wb_buf *out)
{
    static const struct {
        const char *key;
        char mark;
    } marks[] = {{"outliers", 'o'}, {"borders", '|'}, {"change_points", '^'}};
    const wb_json *values = wb_json_get(answer, "values");
    const wb_json *outliers = wb_json_get(answer, "outliers");
    size_t n = wb_json_len(values), columns = (size_t)width < n ? (size_t)width : n, end = 0;
    size_t numbers = 0;
    WB_AUTO_FREE double *v = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE char *below = wb_calloc(columns + 1, 1);

    for (size_t i = 0; i < n; i++) {
        v[i] = wb_json_number(wb_json_at(values, i), NAN);
        numbers += !isnan(v[i]);
    }
    if (numbers == 0)
        return;
    /* A point that stands alone would press the others flat. */
    for (size_t i = 0; i < wb_json_len(outliers); i++)
        if (wb_json_integer(wb_json_at(outliers, i)) < (int64_t)n)
            v[wb_json_integer(wb_json_at(outliers, i))] = NAN;
    wb_text_spark(out, v, n, width);
    wb_buf_addc(out, '\n');
    memset(below, ' ', columns);
    for (size_t k = 0; k < WB_LEN(marks); k++) {
        const wb_json *list = wb_json_get(answer, marks[k].key);
        for (size_t i = 0; i < wb_json_len(list); i++) {
            const wb_json *e = wb_json_at(list, i);
            int64_t at =
                wb_json_type(e) == WB_JSON_INT ? wb_json_integer(e) : wb_json_int_or(e, "index", 0);
            size_t column = at >= 0 && (size_t)at < n ? (((size_t)at + 1) * columns - 1) / n : 0;
            below[column] = marks[k].mark;
            end = column + 1 > end ? column + 1 : end;
        }
    }
    below[end] = '\0';
    if (end > 0)
        wb_buf_addf(out, "%s\n", below);
    wb_buf_addc(out, '\n');
}

static void change_cells(struct wb_table *t, const wb_json *e)
{
    const wb_json *percent = wb_json_get(e, "change_percent");
    const wb_json *interval = wb_json_get(e, "change_ci95_percent");

    wb_table_cell(t, "%s", wb_json_str_or(e, "first_bad", "?"));
    if (wb_json_is_number(percent))
        wb_table_cell(t, "%+.1f %%", wb_json_number(percent, 0));
    else
        wb_table_cell(t, "-");
    if (wb_json_len(interval) == 2)
        wb_table_cell(t, "%+.1f to %+.1f", wb_json_number(wb_json_at(interval, 0), 0),
                      wb_json_number(wb_json_at(interval, 1), 0));
    else
        wb_table_cell(t, "-");
    wb_text_cell(t, wb_json_get(e, "before"));
    wb_text_cell(t, wb_json_get(e, "after"));
    wb_table_cell(t, "%s", wb_json_str_or(e, "kind", ""));
    wb_table_cell(t, "%s", wb_json_str_or(e, "state", ""));
    wb_table_cell(t, "%.2g", wb_json_real_or(e, "p", NAN));
}

static void add_table(const wb_json *list, int width, struct wb_buf *out)
{
    static const struct {
        const char *head;
        enum wb_align align;
    } columns[] = {{"at", WB_LEFT},      {"change", WB_RIGHT}, {"95 % interval", WB_RIGHT},
                   {"before", WB_RIGHT}, {"after", WB_RIGHT},  {"kind", WB_LEFT},
                   {"state", WB_LEFT},   {"p", WB_RIGHT}};
    struct wb_table *t = wb_table_new();

    for (size_t i = 0; i < WB_LEN(columns); i++)
        wb_table_column(t, columns[i].head, columns[i].align);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        wb_table_row(t);
        change_cells(t, wb_json_at(list, i));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
}

static void add_flags(const wb_json *answer, struct wb_buf *out)
{
    const wb_json *flags = wb_json_get(answer, "flags");
    const wb_json *drift = wb_json_get(answer, "drift_percent");

    for (size_t i = 0; i < wb_json_len(flags); i++)
        wb_buf_addf(out, "%s%s", i == 0 ? "Flags: " : ", ", wb_json_string(wb_json_at(flags, i)));
    if (wb_json_len(flags) > 0 && wb_json_is_number(drift))
        wb_buf_addf(out, " (%+.1f %% over the newest nights)", wb_json_number(drift, 0));
    if (wb_json_len(flags) > 0)
        wb_buf_addc(out, '\n');
}

void wb_stats_changes_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *list = wb_json_get(answer, "change_points");

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    add_picture(answer, width, out);
    if (wb_json_len(list) > 0)
        add_table(list, width, out);
    wb_text_sentence(out, answer, width);
    add_flags(answer, out);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
