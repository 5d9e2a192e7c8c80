/* A trend for people. */
#include <string.h>

#include "server/analysis/changes.h"
#include "server/analysis/text.h"
#include "server/analysis/trend.h"
#include "server/base/mem.h"

#define GAPS_SHOWN 5

/* Nights without a value, with the first reason of each. */
static void add_gaps(const wb_json *points, int width, struct wb_buf *out)
{
    size_t gaps = 0;

    for (size_t i = 0; i < wb_json_len(points); i++) {
        const wb_json *p = wb_json_at(points, i);
        const wb_json *left = wb_json_at(wb_json_get(p, "left_out"), 0);
        WB_AUTO_FREE char *text = NULL;
        if (wb_json_int_or(p, "n", 0) > 0)
            continue;
        if (gaps++ == 0)
            wb_buf_adds(out, "\nWithout a value\n");
        if (gaps > GAPS_SHOWN)
            continue;
        text = wb_strf("%s: %s", wb_json_str_or(p, "campaign", "?"),
                       wb_json_str_or(left, "why", "no run"));
        wb_text_wrapped(out, "  - ", 4, text, width);
    }
    if (gaps > GAPS_SHOWN)
        wb_buf_addf(out, "  - and %zu more: see --json\n", gaps - GAPS_SHOWN);
}

/* Between which builds the level changed, where the runs name them. */
static void add_builds(const wb_json *changes, int width, struct wb_buf *out)
{
    bool any = false;

    for (size_t i = 0; i < wb_json_len(changes); i++) {
        const wb_json *c = wb_json_at(changes, i);
        WB_AUTO_FREE char *text = NULL;
        if (wb_json_get(c, "first_bad_commit") == NULL)
            continue;
        if (!any)
            wb_buf_adds(out, "\nBuilds\n");
        any = true;
        text = wb_strf("%s: after commit %s (%s) came %s", wb_json_str_or(c, "first_bad", "?"),
                       wb_json_str_or(c, "last_good_commit", "of unknown name"),
                       wb_json_str_or(c, "last_good", "?"),
                       wb_json_str_or(c, "first_bad_commit", "one of unknown name"));
        wb_text_wrapped(out, "  - ", 4, text, width);
    }
}

void wb_trend_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *series = wb_json_get(answer, "series"), *points = wb_json_get(answer, "points");
    const char *unit = wb_json_str_or(answer, "unit", "");
    WB_AUTO_FREE char *title = NULL;

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    title = wb_strf("%s, %s: %s%s%s over %zu night%s, series %.16s",
                    wb_json_str_or(series, "study", "?"), wb_json_str_or(series, "arm", "?"),
                    wb_json_str_or(answer, "metric", "?"), *unit ? " in " : "", unit,
                    wb_json_len(points), wb_json_len(points) == 1 ? "" : "s",
                    wb_json_str_or(series, "key", ""));
    wb_text_wrapped(out, "", 0, title, width);
    wb_buf_addc(out, '\n');
    wb_stats_changes_print(answer, width, out);
    add_builds(wb_json_get(answer, "change_points"), width, out);
    add_gaps(points, width, out);
}
