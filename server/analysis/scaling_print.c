/* `stats scaling` for people. */
#include <math.h>
#include <stdlib.h>

#include "server/analysis/scaling.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define PLOT_ROWS 12
#define PLOT_COLUMNS 60
#define POINTS_SHOWN 40

static void print_plot(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *points = wb_json_get(answer, "points");
    size_t n = wb_json_len(points);
    WB_AUTO_FREE double *x = wb_calloc(n, sizeof(double));
    WB_AUTO_FREE double *y = wb_calloc(n, sizeof(double));
    double line[PLOT_COLUMNS];
    struct wb_usl u = {.sigma = wb_json_real_or(answer, "sigma", NAN),
                       .kappa = wb_json_real_or(answer, "kappa", NAN),
                       .lambda = wb_json_real_or(answer, "lambda", NAN)};
    double peak = wb_json_real_or(answer, "peak_concurrency", NAN);
    struct wb_plot p = {.x = x, .y = y, .n = n, .rows = PLOT_ROWS};

    p.columns = width - 14 < PLOT_COLUMNS ? width - 14 : PLOT_COLUMNS;
    if (p.columns < 20 || n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        x[i] = wb_json_real_or(wb_json_at(points, i), "n", 0);
        y[i] = wb_json_real_or(wb_json_at(points, i), "measured", 0);
        p.x_max = fmax(p.x_max, x[i]);
        p.y_max = fmax(p.y_max, y[i]);
    }
    if (peak > p.x_max && peak < 1.5 * p.x_max)
        p.x_max = peak; /* a peak that is nearly in the picture */
    if (!isnan(u.lambda)) {
        for (int c = 0; c < p.columns; c++) {
            line[c] = wb_usl_at(&u, p.x_max * c / (p.columns - 1));
            p.y_max = fmax(p.y_max, line[c]);
        }
        p.line = line;
    }
    wb_text_plot(out, &p);
    wb_buf_adds(out, "measured: o   curve: .\n\n");
}

static void print_points(const wb_json *points, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "concurrency", WB_RIGHT);
    wb_table_column(t, "rows", WB_RIGHT);
    wb_table_column(t, "measured", WB_RIGHT);
    wb_table_column(t, "curve", WB_RIGHT);
    wb_table_column(t, "off by", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(points) && i < POINTS_SHOWN; i++) {
        const wb_json *p = wb_json_at(points, i);
        double measured = wb_json_real_or(p, "measured", 0),
               fitted = wb_json_real_or(p, "fitted", NAN);
        wb_table_row(t);
        wb_text_cell(t, wb_json_get(p, "n"));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(p, "rows", 0));
        wb_text_cell(t, wb_json_get(p, "measured"));
        wb_text_cell(t, wb_json_get(p, "fitted"));
        if (measured > 0 && !isnan(fitted))
            wb_table_cell(t, "%+.1f %%", (fitted / measured - 1) * 100);
        else
            wb_table_cell(t, "-");
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    if (wb_json_len(points) > POINTS_SHOWN)
        wb_buf_addf(out, "and %zu more\n", wb_json_len(points) - POINTS_SHOWN);
    wb_buf_addc(out, '\n');
}

static void print_places(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *x = wb_json_get(answer, "throughput_at"), *r = wb_json_get(answer, "latency_at");
    const wb_json *e = wb_json_get(answer, "efficiency_at"),
                  *d = wb_json_get(answer, "dominant_at");
    struct wb_table *t;

    if (wb_json_len(x) == 0)
        return;
    t = wb_table_new();
    wb_table_column(t, "at", WB_RIGHT);
    wb_table_column(t, "throughput", WB_RIGHT);
    wb_table_column(t, "latency", WB_RIGHT);
    wb_table_column(t, "efficiency", WB_RIGHT);
    wb_table_column(t, "most lost to", WB_LEFT);
    for (void *it = wb_json_first(x); it != NULL; it = wb_json_next(x, it)) {
        const char *at = wb_json_iter_key(it);
        wb_table_row(t);
        wb_table_cell(t, "%s", at);
        wb_text_cell(t, wb_json_iter_value(it));
        wb_text_cell(t, wb_json_get(r, at));
        wb_text_cell(t, wb_json_get(e, at));
        wb_table_cell(t, "%s", wb_json_str_or(d, at, ""));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
}

void wb_stats_scaling_print(const wb_json *answer, int width, struct wb_buf *out)
{
    static const char *const rows[][2] = {
        {"sigma", "contention (sigma)"},           {"kappa", "coherency (kappa)"},
        {"lambda", "one alone (lambda)"},          {"peak_concurrency", "peak at"},
        {"peak_throughput", "peak throughput"},    {"knee_concurrency", "95 % of the best at"},
        {"asymptote_throughput", "without kappa"},
    };
    const wb_json *interval = wb_json_get(answer, "interval");
    const wb_json *points = wb_json_get(answer, "points");
    struct wb_table *t;

    width = width > 0 ? width : WB_TEXT_WIDTH;
    if (points != NULL) {
        print_points(points, width, out);
        print_plot(answer, width, out);
    }
    print_places(answer, width, out);
    t = wb_table_new();
    wb_table_column(t, "figure", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(rows); i++)
        wb_text_figure(t, rows[i][1], wb_json_get(answer, rows[i][0]),
                       wb_json_get(interval, rows[i][0]));
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
    wb_text_sentence(out, answer, width);
    if (wb_json_get(answer, "usable_reason") != NULL)
        wb_text_wrapped(out, "Do not use: ", 2, wb_json_str_or(answer, "usable_reason", ""), width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
