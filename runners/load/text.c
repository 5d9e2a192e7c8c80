/*
 * The summary for people: made from the result document, so that both always agree.
 */
#include "runners/load/report.h"

#include <string.h>

#include "server/base/table.h"
#include "server/base/units.h"

static void rate_line(const wb_json *r, struct wb_buf *out)
{
    double offered = wb_json_real_or(r, "offered_per_s", -1);
    double achieved = wb_json_real_or(r, "achieved_per_s", -1);

    if (achieved < 0)
        return;
    wb_buf_adds(out, "achieved  ");
    wb_format_rate(achieved, out);
    if (offered >= 0) {
        wb_buf_adds(out, " of ");
        wb_format_rate(offered, out);
        wb_buf_adds(out, " offered");
    }
    wb_buf_addf(out, " in %.3g s\n", wb_json_number(wb_json_path(r, "window.seconds"), 0));
}

static void count_line(const wb_json *r, struct wb_buf *out)
{
    static const char *const keys[] = {"scheduled", "ok", "failed", "dropped", "censored", NULL};
    const wb_json *errors = wb_json_get(r, "errors");

    wb_buf_adds(out, "operations ");
    for (int i = 0; keys[i]; i++) {
        wb_buf_addf(out, " %s ", keys[i]);
        wb_format_count((double)wb_json_int_or(r, keys[i], 0), out);
    }
    wb_buf_addc(out, '\n');
    if (wb_json_int_or(r, "misses", 0) > 0) {
        wb_buf_adds(out, "misses    ");
        wb_format_count((double)wb_json_int_or(r, "misses", 0), out);
        wb_buf_addc(out, '\n');
    }
    if (wb_json_len(errors) > 0) {
        wb_buf_adds(out, "errors   ");
        for (void *it = wb_json_first(errors); it; it = wb_json_next(errors, it))
            wb_buf_addf(out, " %s %.0f", wb_json_iter_key(it),
                        wb_json_number(wb_json_iter_value(it), 0));
        wb_buf_addc(out, '\n');
    }
}

static void latency_row(struct wb_table *t, const char *op, const char *kind, const wb_json *l)
{
    static const char *const keys[] = {"p50_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms", NULL};

    if (wb_json_type(l) != WB_JSON_OBJECT)
        return;
    wb_table_row(t);
    wb_table_cell(t, "%s", op);
    wb_table_cell(t, "%s", kind);
    for (int i = 0; keys[i]; i++)
        wb_table_cell(t, "%.3f", wb_json_real_or(l, keys[i], 0));
    wb_table_cell(t, "%lld", (long long)wb_json_int_or(l, "count", 0));
}

static void latency_table(const wb_json *r, struct wb_buf *out)
{
    static const char *const heads[] = {"p50 ms", "p95 ms", "p99 ms", "p99.9 ms",
                                        "max ms", "n",      NULL};
    const wb_json *ops = wb_json_get(r, "operations");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "operation", WB_LEFT);
    wb_table_column(t, "time", WB_LEFT);
    for (int i = 0; heads[i]; i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    for (void *it = wb_json_first(ops); it; it = wb_json_next(ops, it)) {
        const wb_json *op = wb_json_iter_value(it);
        latency_row(t, wb_json_iter_key(it), "response", wb_json_get(op, "response"));
        latency_row(t, wb_json_iter_key(it), "service", wb_json_get(op, "service"));
    }
    wb_table_print(t, 80, out);
    wb_table_free(t);
}

static void curve_table(const wb_json *r, struct wb_buf *out)
{
    static const char *const heads[] = {"offered/s", "served/s", "p50 ms", "p99 ms",
                                        "p99.9 ms",  "max ms",   NULL};
    static const char *const keys[] = {"p50_ms", "p99_ms", "p99_9_ms", "max_ms", NULL};
    const wb_json *curve = wb_json_get(r, "curve");
    bool limit = wb_json_get(wb_json_at(curve, 0), "holds") != NULL;
    struct wb_table *t = wb_table_new();

    for (int i = 0; heads[i]; i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    if (limit)
        wb_table_column(t, "holds", WB_LEFT);
    wb_table_column(t, "verdict", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(curve); i++) {
        const wb_json *c = wb_json_at(curve, i), *l = wb_json_get(c, "response");
        wb_table_row(t);
        wb_table_cell(t, "%.6g", wb_json_real_or(c, "offered_per_s", 0));
        wb_table_cell(t, "%.6g", wb_json_real_or(c, "achieved_per_s", 0));
        for (int k = 0; keys[k]; k++) {
            if (wb_json_type(l) == WB_JSON_OBJECT)
                wb_table_cell(t, "%.3f", wb_json_real_or(l, keys[k], 0));
            else
                wb_table_cell(t, "-");
        }
        if (limit)
            wb_table_cell(t, "%s", wb_json_bool_or(c, "holds", false) ? "yes" : "no");
        wb_table_cell(t, "%s", wb_json_str_or(c, "verdict", ""));
    }
    wb_table_print(t, 80, out);
    wb_table_free(t);
    if (wb_json_is_number(wb_json_get(r, "sustained_per_s"))) {
        wb_buf_adds(out, "sustained ");
        wb_format_rate(wb_json_real_or(r, "sustained_per_s", 0), out);
        wb_buf_addf(out, " with %s\n", wb_json_str_or(wb_json_get(r, "job"), "search", ""));
    } else if (limit) {
        wb_buf_addf(out, "sustained none: %s\n", wb_json_str_or(r, "sustained_per_s_reason", ""));
    }
    wb_buf_adds(out, "\n");
}

void wb_load_report_text(const wb_json *r, struct wb_buf *out)
{
    const wb_json *reasons = wb_json_get(r, "reasons"), *data = wb_json_get(r, "data");

    if (wb_json_type(data) == WB_JSON_OBJECT) {
        wb_buf_adds(out, "loaded    ");
        wb_format_count((double)wb_json_int_or(data, "rows", 0), out);
        wb_buf_addf(out, " rows in %.3g s, %lld checked, %lld wrong\n",
                    wb_json_real_or(data, "seconds", 0),
                    (long long)wb_json_int_or(data, "checked", 0),
                    (long long)wb_json_int_or(data, "mismatched", 0));
    }
    if (wb_json_len(wb_json_get(r, "curve")) > 0)
        curve_table(r, out);
    if (wb_json_type(wb_json_get(r, "window")) == WB_JSON_OBJECT) {
        rate_line(r, out);
        count_line(r, out);
        latency_table(r, out);
        wb_buf_addf(out, "client    %.2f CPU s, %.2f per million operations\n",
                    wb_json_number(wb_json_path(r, "client.cpu_s"), 0),
                    wb_json_number(wb_json_path(r, "client.cpu_s_per_million_ops"), 0));
    }
    wb_buf_addf(out, "verdict   %s\n", wb_json_str_or(r, "verdict", "failed"));
    for (size_t i = 0; i < wb_json_len(reasons); i++)
        wb_buf_addf(out, "  - %s\n", wb_json_str_or(wb_json_at(reasons, i), "text", ""));
}
