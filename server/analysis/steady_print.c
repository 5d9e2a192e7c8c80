/* The answer of `stats steady` for people. */
#include "server/analysis/steady.h"

#include <math.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/table.h"

/* The rates as blocks, and below them where the cut is ('|') and where stalls are ('v'). */
static void add_picture(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *picture = wb_json_get(answer, "picture"), *rates = wb_json_get(picture, "rates");
    const wb_json *stalls = wb_json_get(answer, "stalls");
    double seconds = wb_json_real_or(picture, "seconds", NAN);
    double cut = wb_json_real_or(answer, "cut", NAN);
    size_t n = wb_json_len(rates), columns = (size_t)width < n ? (size_t)width : n;
    WB_AUTO_FREE double *v = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE char *below = wb_calloc(columns + 1, 1);

    if (n == 0 || !(seconds > 0))
        return;
    for (size_t i = 0; i < n; i++)
        v[i] = wb_json_number(wb_json_at(rates, i), NAN);
    wb_text_spark(out, v, n, width);
    memset(below, ' ', columns);
    for (size_t i = 0; i < wb_json_len(stalls); i++) {
        double at = wb_json_real_or(wb_json_at(stalls, i), "from", 0) / seconds;
        below[(size_t)(fmin(fmax(at, 0), 0.999999) * (double)columns)] = 'v';
    }
    if (cut > 0 && cut < seconds)
        below[(size_t)(cut / seconds * (double)columns)] = '|';
    for (size_t i = columns; i > 0 && below[i - 1] == ' '; i--)
        below[i - 1] = '\0';
    wb_buf_addf(out, "\n%s%s\n", below, *below ? "\n" : "");
}

static void add_rows(struct wb_table *t, const wb_json *list, const char *what)
{
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *l = wb_json_at(list, i);
        wb_table_row(t);
        wb_table_cell(t, "%s", what);
        wb_table_cell(t, "%.6g s", wb_json_real_or(l, "from", NAN));
        wb_table_cell(t, "%.6g s", wb_json_real_or(l, "to", NAN));
        wb_text_cell(t, wb_json_get(l, "mean"));
    }
}

void wb_stats_steady_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *segments = wb_json_get(answer, "segments");
    struct wb_table *t = wb_table_new();

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    add_picture(answer, width, out);
    wb_table_column(t, "part", WB_LEFT);
    wb_table_column(t, "from", WB_RIGHT);
    wb_table_column(t, "to", WB_RIGHT);
    wb_table_column(t, "per second", WB_RIGHT);
    add_rows(t, segments, "level");
    add_rows(t, wb_json_get(answer, "stalls"), "stall");
    if (wb_json_len(segments) > 0) {
        wb_table_print(t, width, out);
        wb_buf_addc(out, '\n');
    }
    wb_table_free(t);
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
