#include "server/analysis/text.h"

#include <math.h>
#include <string.h>

#include "server/base/mem.h"

#define PLOT_COLUMNS_MAX 200
#define PLOT_ROWS_MAX 60

static bool starts_char(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

void wb_text_wrapped(struct wb_buf *out, const char *first, int indent, const char *text, int width)
{
    int at = 0;

    for (const char *p = first; *p != '\0'; p++)
        at += starts_char(*p);
    wb_buf_adds(out, first);
    for (bool start = true; *text != '\0'; start = false) {
        size_t n = strcspn(text, " ");
        int w = 0;
        for (size_t i = 0; i < n; i++)
            w += starts_char(text[i]);
        if (!start && at + 1 + w > width) {
            wb_buf_addf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!start) {
            wb_buf_addc(out, ' ');
            at++;
        }
        for (size_t i = 0; i < n; i++)
            wb_buf_addc(out, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i]);
        at += w;
        text += n + (text[n] == ' ');
    }
    wb_buf_addc(out, '\n');
}

void wb_text_notes(struct wb_buf *out, const wb_json *warnings, int width)
{
    if (wb_json_len(warnings) > 0)
        wb_buf_adds(out, "\nNotes\n");
    for (size_t i = 0; i < wb_json_len(warnings); i++) {
        const wb_json *w = wb_json_at(warnings, i);
        bool star = strcmp(wb_json_str_or(w, "code", ""), "limited") == 0;
        wb_text_wrapped(out, star ? "  * " : "  - ", 4, wb_json_str_or(w, "text", ""), width);
    }
}

void wb_text_sentence(struct wb_buf *out, const wb_json *answer, int width)
{
    wb_text_wrapped(out, "", 2, wb_json_str_or(answer, "sentence", ""),
                    width > 0 ? width : WB_TEXT_WIDTH);
}

/* ---- numbers ---- */

void wb_text_number(struct wb_buf *out, const wb_json *value)
{
    if (wb_json_is_number(value))
        wb_buf_addf(out, "%.6g", wb_json_number(value, 0));
    else
        wb_buf_addc(out, '-');
}

void wb_text_cell(struct wb_table *t, const wb_json *value)
{
    struct wb_buf b = WB_BUF_INIT(100);

    wb_text_number(&b, value);
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

void wb_text_figure(struct wb_table *t, const char *name, const wb_json *value,
                    const wb_json *interval)
{
    struct wb_buf b = WB_BUF_INIT(200);

    wb_table_row(t);
    wb_table_cell(t, "%s", name);
    wb_text_cell(t, value);
    if (wb_json_len(interval) == 2) {
        wb_text_number(&b, wb_json_at(interval, 0));
        wb_buf_adds(&b, " to ");
        wb_text_number(&b, wb_json_at(interval, 1));
    }
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

/* ---- pictures ---- */

/* Mean of the numbers of group g of `groups`; NaN when it has none. */
static double group_mean(const double *v, size_t n, size_t g, size_t groups)
{
    double sum = 0;
    size_t count = 0;

    for (size_t i = g * n / groups; i < (g + 1) * n / groups; i++) {
        if (isnan(v[i]))
            continue;
        sum += v[i];
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

void wb_text_spark(struct wb_buf *out, const double *v, size_t n, int width)
{
    static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t groups = width > 0 && (size_t)width < n ? (size_t)width : n;
    double lo = INFINITY, hi = -INFINITY;

    for (size_t g = 0; g < groups; g++) {
        double m = group_mean(v, n, g, groups);
        lo = m < lo ? m : lo;
        hi = m > hi ? m : hi;
    }
    for (size_t g = 0; g < groups; g++) {
        double m = group_mean(v, n, g, groups);
        if (isnan(m))
            wb_buf_addc(out, ' ');
        else
            wb_buf_adds(out, steps[hi > lo ? (size_t)floor((m - lo) / (hi - lo) * 7.999) : 3]);
    }
}

static int scaled(double v, double max, int steps)
{
    double at = floor(v / max * (double)(steps - 1) + 0.5);

    return at < 0 ? 0 : at > steps - 1 ? steps - 1 : (int)at;
}

void wb_text_plot(struct wb_buf *out, const struct wb_plot *p)
{
    int columns = p->columns > PLOT_COLUMNS_MAX ? PLOT_COLUMNS_MAX : p->columns;
    int rows = p->rows > PLOT_ROWS_MAX ? PLOT_ROWS_MAX : p->rows;
    WB_AUTO_FREE char *cells = NULL;
    WB_AUTO_FREE char *top = wb_strf("%.4g", p->y_max);
    WB_AUTO_FREE char *end = wb_strf("%.4g", p->x_max);
    int label = (int)strlen(top);

    if (columns < 2 || rows < 2 || !(p->x_max > 0) || !(p->y_max > 0))
        return;
    cells = wb_calloc((size_t)columns, (size_t)rows);
    memset(cells, ' ', (size_t)columns * (size_t)rows);
    for (int c = 0; p->line != NULL && c < columns; c++)
        if (p->line[c] >= 0 && p->line[c] <= p->y_max)
            cells[scaled(p->line[c], p->y_max, rows) * columns + c] = '.';
    for (size_t i = 0; i < p->n; i++)
        cells[scaled(p->y[i], p->y_max, rows) * columns + scaled(p->x[i], p->x_max, columns)] = 'o';
    for (int r = rows - 1; r >= 0; r--) {
        int used = columns;
        while (used > 0 && cells[r * columns + used - 1] == ' ')
            used--;
        wb_buf_addf(out, "%*s |", label, r == rows - 1 ? top : r == 0 ? "0" : "");
        wb_buf_add(out, cells + r * columns, (size_t)used);
        wb_buf_addc(out, '\n');
    }
    wb_buf_addf(out, "%*s +", label, "");
    for (int c = 0; c < columns; c++)
        wb_buf_addc(out, '-');
    wb_buf_addf(out, "\n%*s  0%*s\n", label, "", columns - 1, end);
}
