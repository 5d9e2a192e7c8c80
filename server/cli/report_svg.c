/* Pictures of a report: intervals of contrasts, and times at percentiles. */
#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"
#include "server/cli/report.h"

#define WIDTH 720.0
#define ROW 30.0

const double wb_curve_percents[WB_CURVE_POINTS] = {50, 90, 95, 99, 99.9, 99.99};

/* ---- intervals ---- */

#define FOREST_LEFT 210.0  /* where the axis begins: names stand before it */
#define FOREST_RIGHT 575.0 /* and ends: figures stand behind it */

static double percent_of(const wb_json *contrast, const char *key)
{
    double v = wb_json_real_or(wb_json_get(contrast, "ratio"), key, NAN);

    return (v - 1) * 100;
}

/* Half the width of the axis in percent: all intervals fit, one far out is cut at 5 times the
 * threshold or 50 % so that the others can still be seen. */
static double reach_of(const wb_json *contrasts)
{
    double reach = 0, most = 50;

    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        double threshold = wb_json_real_or(c, "threshold_percent", 2);

        if (!wb_json_bool_or(c, "primary", false))
            continue;
        reach = fmax(reach, 1.5 * threshold);
        reach = fmax(reach, fmin(most, 1.1 * fabs(percent_of(c, "lo"))));
        reach = fmax(reach, fmin(most, 1.1 * fabs(percent_of(c, "hi"))));
    }
    return reach > 0 ? reach : 10;
}

static double forest_x(double percent, double reach)
{
    double at = fmax(-reach, fmin(reach, percent));

    return FOREST_LEFT + (at + reach) / (2 * reach) * (FOREST_RIGHT - FOREST_LEFT);
}

static double tick_of(double reach)
{
    static const double steps[] = {0.5, 1, 2, 5, 10, 20};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (reach / steps[i] <= 4)
            return steps[i];
    return 25;
}

static void forest_axis(double reach, double height, struct wb_buf *out)
{
    double step = tick_of(reach);

    for (int i = -(int)(reach / step); i <= (int)(reach / step); i++) {
        double x = forest_x(i * step, reach);
        WB_AUTO_FREE char *name = i ? wb_strf("%+g%%", i * step) : wb_strdup("0");

        wb_buf_addf(out,
                    "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"4\" y2=\"%.1f\"/>"
                    "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                    i ? "grid" : "zero", x, x, height - 22, x, height - 8, name);
    }
}

/* Where differences do not matter. */
static void forest_band(const wb_json *c, double y, double reach, struct wb_buf *out)
{
    double threshold = wb_json_real_or(c, "threshold_percent", 2);

    wb_buf_addf(out, "<rect class=\"band\" x=\"%.1f\" width=\"%.1f\" y=\"%.1f\" height=\"%.1f\"/>",
                forest_x(-threshold, reach),
                forest_x(threshold, reach) - forest_x(-threshold, reach), y - ROW / 2 + 3, ROW - 6);
}

static void forest_row(const wb_json *c, double y, double reach, struct wb_buf *out)
{
    const char *class = wb_verdict_class(wb_json_str_or(c, "verdict", ""));
    double lo = percent_of(c, "lo"), hi = percent_of(c, "hi"), mid = percent_of(c, "estimate");
    wb_buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", FOREST_LEFT - 12, y + 4);
    wb_html_text(wb_json_str_or(c, "arm", "?"), out);
    wb_buf_adds(out, " <tspan class=\"tick\">against ");
    wb_html_text(wb_json_str_or(c, "against", "?"), out);
    wb_buf_adds(out, "</tspan></text>");
    if (isnan(lo) || isnan(hi) || isnan(mid)) {
        wb_buf_addf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">no interval</text>",
                    FOREST_RIGHT + 14, y + 4);
        return;
    }
    wb_buf_addf(out, "<line class=\"bar %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                class, forest_x(lo, reach), forest_x(hi, reach), y, y);
    if (lo < -reach)
        wb_buf_addf(out, "<path class=\"fill %s\" d=\"M%.1f %.1fl8 -5v10z\"/>", class,
                    FOREST_LEFT - 4, y);
    if (hi > reach)
        wb_buf_addf(out, "<path class=\"fill %s\" d=\"M%.1f %.1fl-8 -5v10z\"/>", class,
                    FOREST_RIGHT + 4, y);
    wb_buf_addf(out, "<circle class=\"fill %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", class,
                forest_x(mid, reach), y);
    wb_buf_addf(
        out,
        "<text x=\"%.1f\" y=\"%.1f\">%+.1f%% <tspan class=\"tick\">%+.1f to %+.1f</tspan></text>",
        FOREST_RIGHT + 14, y + 4, mid, lo, hi);
}

void wb_report_forest(const wb_json *contrasts, struct wb_buf *out)
{
    double reach = reach_of(contrasts), y = ROW / 2 + 6, height;
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        n += wb_json_bool_or(wb_json_at(contrasts, i), "primary", false);
    height = (double)n * ROW + 36;
    wb_buf_addf(out,
                "<div class=\"wide\"><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                "aria-label=\"Interval of each ratio in "
                "percent; the same figures stand in the table below\">",
                WIDTH, height);
    for (int pass = 0; pass < 2; pass++, y = ROW / 2 + 6) {
        if (pass == 1)
            forest_axis(reach, height, out);
        for (size_t i = 0; i < wb_json_len(contrasts); i++) {
            const wb_json *c = wb_json_at(contrasts, i);

            if (!wb_json_bool_or(c, "primary", false))
                continue;
            (pass ? forest_row : forest_band)(c, y, reach, out);
            y += ROW;
        }
    }
    wb_buf_adds(out, "</svg></div>\n");
}

/* ---- times at percentiles ---- */

#define CURVE_LEFT 70.0
#define CURVE_RIGHT 560.0
#define CURVE_TOP 14.0
#define CURVE_BOTTOM 300.0
#define COLOURS 8

/* Both axes are logarithmic: x in the share of operations that are slower. */
static double curve_x(double percent)
{
    double first = -log10(1 - wb_curve_percents[0] / 100);
    double last = -log10(1 - wb_curve_percents[WB_CURVE_POINTS - 1] / 100);

    return CURVE_LEFT +
           (-log10(1 - percent / 100) - first) / (last - first) * (CURVE_RIGHT - CURVE_LEFT);
}

static double curve_y(double ms, double lo, double hi)
{
    return CURVE_BOTTOM -
           (log10(ms) - log10(lo)) / (log10(hi) - log10(lo)) * (CURVE_BOTTOM - CURVE_TOP);
}

/* Whole decades around all values. */
static bool curve_range(const struct wb_report_page *page, double *lo, double *hi)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < page->ncurves; i++)
        for (int k = 0; k < WB_CURVE_POINTS; k++) {
            double v = page->curves[i].median[k];

            if (v > 0) {
                least = fmin(least, v);
                most = fmax(most, v);
            }
        }
    if (most <= 0)
        return false;
    *lo = pow(10, floor(log10(least)));
    *hi = pow(10, ceil(log10(most)));
    if (*hi <= *lo)
        *hi = *lo * 10;
    return true;
}

static void curve_axes(double lo, double hi, struct wb_buf *out)
{
    static const double marks[] = {1, 2, 5};

    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        double x = curve_x(wb_curve_percents[k]);

        wb_buf_addf(out,
                    "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">p%g</text>",
                    x, x, CURVE_TOP, CURVE_BOTTOM, x, CURVE_BOTTOM + 18, wb_curve_percents[k]);
    }
    for (double decade = lo; decade <= hi * 1.001; decade *= 10)
        for (size_t m = 0; m < sizeof(marks) / sizeof(marks[0]); m++) {
            double v = decade * marks[m], y = curve_y(v, lo, hi);
            struct wb_buf text = WB_BUF_INIT(64);

            if (v > hi * 1.001)
                break;
            wb_format_ns((int64_t)llround(v * 1e6), &text);
            wb_buf_addf(out,
                        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                        "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                        CURVE_LEFT, CURVE_RIGHT, y, y, CURVE_LEFT - 8, y + 4, wb_buf_str(&text));
            wb_buf_release(&text);
        }
}

static void one_curve(const struct wb_report_curve *c, size_t index, double lo, double hi,
                      struct wb_buf *out)
{
    bool open = false;

    wb_buf_addf(out, "<path class=\"curve c%zu\" d=\"", index % COLOURS);
    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        if (!(c->median[k] > 0)) {
            open = false;
            continue;
        }
        wb_buf_addf(out, "%s%.1f %.1f", open ? "L" : "M", curve_x(wb_curve_percents[k]),
                    curve_y(c->median[k], lo, hi));
        open = true;
    }
    wb_buf_adds(out, "\"/>");
    for (int k = 0; k < WB_CURVE_POINTS; k++)
        if (c->median[k] > 0)
            wb_buf_addf(out, "<circle class=\"dot c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>",
                        index % COLOURS, curve_x(wb_curve_percents[k]),
                        curve_y(c->median[k], lo, hi));
}

void wb_report_curves(const struct wb_report_page *page, struct wb_buf *out)
{
    double lo = 0, hi = 0, height = CURVE_BOTTOM + 30;

    if (!curve_range(page, &lo, &hi))
        return;
    height = fmax(height, 30 + 20.0 * (double)page->ncurves);
    wb_buf_addf(out,
                "<div class=\"wide\"><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                "aria-label=\"Times at percentiles, one "
                "line an arm; the same figures stand in the table below\">",
                WIDTH, height);
    curve_axes(lo, hi, out);
    for (size_t i = 0; i < page->ncurves; i++) {
        double y = CURVE_TOP + 10 + 20.0 * (double)i;

        one_curve(&page->curves[i], i, lo, hi, out);
        wb_buf_addf(out,
                    "<path class=\"curve c%zu\" d=\"M%.1f %.1fh26\"/><text x=\"%.1f\" y=\"%.1f\">",
                    i % COLOURS, CURVE_RIGHT + 14, y, CURVE_RIGHT + 48, y + 4);
        wb_html_text(page->curves[i].arm, out);
        wb_buf_adds(out, "</text>");
    }
    wb_buf_adds(out, "</svg></div>\n");
}
