/*
 * The summary for people: made from the result document, so that both always agree.
 */
#include "runners/load/report.h"

#include <string.h>

#include "server/base/table.h"
#include "server/base/units.h"

static int64_t count_of(const wb_json *r, const char *key)
{
    return wb_json_int_or(r, key, 0);
}

static void put_count(const wb_json *r, const char *key, struct wb_buf *out)
{
    wb_format_count((double)count_of(r, key), out);
}

/* The same of transactions: what was offered, and what came of it. */
static void transaction_lines(const wb_json *t, const wb_json *job, struct wb_buf *out)
{
    double offered = wb_json_real_or(t, "offered_per_s", -1);

    if (offered >= 0) {
        wb_buf_adds(out, "offered   ");
        wb_format_rate(offered, out);
        wb_buf_addf(out, " %s arrivals, ", wb_json_str_or(job, "arrivals", "constant"));
    } else {
        wb_buf_adds(out, "begun     ");
    }
    put_count(t, "scheduled", out);
    wb_buf_adds(out, " transactions\nserved    ");
    wb_format_rate(wb_json_real_or(t, "achieved_per_s", 0), out);
    wb_buf_adds(out, ", ");
    put_count(t, "ok", out);
    wb_buf_adds(out, " well, ");
    put_count(t, "failed", out);
    wb_buf_adds(out, " failed, ");
    put_count(t, "censored", out);
    wb_buf_adds(out, " not over at the end\n");
}

/* What was asked of the server and what came of it. */
static void rate_lines(const wb_json *r, struct wb_buf *out)
{
    double offered = wb_json_real_or(r, "offered_per_s", -1);
    double achieved = wb_json_real_or(r, "achieved_per_s", -1);
    const wb_json *job = wb_json_get(r, "job");

    if (offered >= 0) {
        wb_buf_adds(out, "offered   ");
        wb_format_rate(offered, out);
        wb_buf_addf(out, " %s arrivals, ", wb_json_str_or(job, "arrivals", "constant"));
    } else {
        wb_buf_adds(out, "issued    ");
    }
    put_count(r, "scheduled", out);
    wb_buf_addf(out, " operations in %.3g s\nserved    ",
                wb_json_number(wb_json_path(r, "window.seconds"), 0));
    if (achieved >= 0)
        wb_format_rate(achieved, out);
    wb_buf_adds(out, ", ");
    put_count(r, "ok", out);
    wb_buf_adds(out, " well");
    if (count_of(r, "misses") > 0) {
        wb_buf_adds(out, " (");
        put_count(r, "misses", out);
        wb_buf_adds(out, " of a key that is not there)");
    }
    wb_buf_adds(out, ", ");
    put_count(r, "failed", out);
    wb_buf_adds(out, " failed\n");
    if (offered < 0)
        return;
    wb_buf_adds(out, "backlog   ");
    put_count(r, "backlog_at_end", out);
    wb_buf_adds(out, " waited at the end, ");
    put_count(r, "censored", out);
    wb_buf_adds(out, " never had an answer");
    if (count_of(r, "dropped") > 0) {
        wb_buf_adds(out, ", ");
        put_count(r, "dropped", out);
        wb_buf_adds(out, " dropped");
    }
    wb_buf_addc(out, '\n');
}

static void error_lines(const wb_json *r, struct wb_buf *out)
{
    const wb_json *errors = wb_json_get(r, "errors"), *samples = wb_json_get(r, "error_samples");
    const wb_json *ages = wb_json_get(r, "failed_replies");

    if (wb_json_len(errors) == 0)
        return;
    wb_buf_adds(out, "errors   ");
    for (void *it = wb_json_first(errors); it; it = wb_json_next(errors, it)) {
        wb_buf_addf(out, " %s ", wb_json_iter_key(it));
        wb_format_count(wb_json_number(wb_json_iter_value(it), 0), out);
    }
    if (wb_json_type(ages) == WB_JSON_OBJECT)
        wb_buf_addf(out, "; after %.3g ms (p50), %.3g ms at most",
                    wb_json_real_or(ages, "p50_ms", 0), wb_json_real_or(ages, "max_ms", 0));
    wb_buf_addc(out, '\n');
    for (size_t i = 0; i < wb_json_len(samples); i++)
        wb_buf_addf(out, "          %lldx %.60s\n",
                    (long long)count_of(wb_json_at(samples, i), "count"),
                    wb_json_str_or(wb_json_at(samples, i), "text", ""));
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

/* A percentile of fewer than 10 samples above it says little: the counts stand below. */
static void samples_line(const wb_json *r, struct wb_buf *out)
{
    const wb_json *all = wb_json_path(r, "operations.all");
    const wb_json *l = wb_json_get(all, "response");
    int64_t n;

    if (wb_json_type(l) != WB_JSON_OBJECT)
        l = wb_json_get(all, "service");
    if (wb_json_type(l) != WB_JSON_OBJECT)
        return;
    n = count_of(l, "count");
    wb_buf_adds(out, "samples   above p50 ");
    wb_format_count((double)(n / 2), out);
    wb_buf_adds(out, ", p95 ");
    wb_format_count((double)(n / 20), out);
    wb_buf_adds(out, ", p99 ");
    wb_format_count((double)(n / 100), out);
    wb_buf_adds(out, ", p99.9 ");
    wb_format_count((double)(n / 1000), out);
    if (count_of(l, "over_range") > 0)
        wb_buf_addf(out, "; %lld above an hour", (long long)count_of(l, "over_range"));
    wb_buf_addc(out, '\n');
}

static void latency_table(const wb_json *ops, const char *what, struct wb_buf *out)
{
    static const char *const heads[] = {"p50 ms", "p95 ms", "p99 ms", "p99.9 ms",
                                        "max ms", "n",      NULL};
    struct wb_table *t = wb_table_new();

    wb_table_column(t, what, WB_LEFT);
    wb_table_column(t, "time", WB_LEFT);
    for (int i = 0; heads[i]; i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    for (void *it = wb_json_first(ops); it; it = wb_json_next(ops, it)) {
        const wb_json *op = wb_json_iter_value(it);
        /* One kind of operation is all of them. */
        if (wb_json_type(op) != WB_JSON_OBJECT ||
            (wb_json_len(ops) == 2 && strcmp(wb_json_iter_key(it), "all") == 0))
            continue;
        latency_row(t, wb_json_iter_key(it), "response", wb_json_get(op, "response"));
        latency_row(t, wb_json_iter_key(it), "service", wb_json_get(op, "service"));
    }
    wb_table_print(t, 80, out);
    wb_table_free(t);
}

static void client_line(const wb_json *r, struct wb_buf *out)
{
    const wb_json *c = wb_json_get(r, "client"), *threads = wb_json_get(c, "threads");
    double cpu = 0, wait = 0;

    if (wb_json_type(c) != WB_JSON_OBJECT)
        return;
    for (size_t i = 0; i < wb_json_len(threads); i++) {
        double one = wb_json_real_or(wb_json_at(threads, i), "cpu_percent", 0);
        double queued = wb_json_real_or(wb_json_at(threads, i), "run_queue_percent", 0);
        cpu = one > cpu ? one : cpu;
        wait = queued > wait ? queued : wait;
    }
    wb_buf_addf(out, "client    busiest thread %.0f %% of a CPU and %.1f %% waiting for one, ", cpu,
                wait);
    wb_buf_addf(out, "%.3g CPU us each", wb_json_real_or(c, "cpu_s_per_million_ops", 0));
    if (wb_json_is_number(wb_json_get(c, "lag_p99_ms")))
        wb_buf_addf(out, "\n          sent at most %.3g ms late (p99)",
                    wb_json_real_or(c, "lag_p99_ms", 0));
    wb_buf_addf(out, "%s%.0f MiB of memory (bound %.0f)\n",
                wb_json_is_number(wb_json_get(c, "lag_p99_ms")) ? ", " : "\n          ",
                wb_json_real_or(c, "memory_peak_bytes", 0) / 1048576,
                wb_json_real_or(c, "memory_bound_bytes", 0) / 1048576);
}

/* The verdict in words. */
static const char *in_words(const char *verdict)
{
    static const struct {
        const char *verdict, *words;
    } rows[] = {
        {"valid", "the figures are of the database"},
        {"server-bound", "the database was the limit, not the client"},
        {"noisy", "something disturbed this host: repeat it on a quiet one"},
        {"client-bound", "the client was the limit: these are its figures"},
        {"one-thread-bound", "one load thread was the limit: these are its figures"},
        {"network-bound", "the network was the limit"},
        {"failed", "it did not come to a good end"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].verdict, verdict) == 0)
            return rows[i].words;
    return "";
}

/* Text in lines of at most 80 columns, the first one after a dash. */
static void put_reason(const char *text, struct wb_buf *out)
{
    size_t at = 0;

    for (const char *word = text; *word;) {
        size_t n = strcspn(word, " ");
        if (at == 0)
            wb_buf_adds(out, "  - ");
        else if (at + 1 + n > 76)
            wb_buf_adds(out, "\n    ");
        else
            wb_buf_addc(out, ' ');
        at = at == 0 || at + 1 + n > 76 ? n : at + 1 + n;
        wb_buf_add(out, word, n);
        word += n + (word[n] == ' ');
    }
    wb_buf_addc(out, '\n');
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
    const wb_json *txns = wb_json_get(r, "transactions");
    const char *verdict = wb_json_str_or(r, "verdict", "failed");

    if (wb_json_type(data) == WB_JSON_OBJECT) {
        wb_buf_adds(out, "loaded    ");
        wb_format_count((double)wb_json_int_or(data, "rows", 0), out);
        wb_buf_adds(out, " rows");
        if (count_of(data, "resumed") > 0) {
            wb_buf_adds(out, " (");
            put_count(data, "resumed", out);
            wb_buf_adds(out, " by earlier runs)");
        }
        wb_buf_addf(out, " in %.3g s, %lld checked, %lld wrong\n",
                    wb_json_real_or(data, "seconds", 0),
                    (long long)wb_json_int_or(data, "checked", 0),
                    (long long)wb_json_int_or(data, "mismatched", 0));
    }
    if (wb_json_len(wb_json_get(r, "curve")) > 0)
        curve_table(r, out);
    if (wb_json_type(wb_json_get(r, "window")) == WB_JSON_OBJECT) {
        if (wb_json_type(txns) == WB_JSON_OBJECT) {
            transaction_lines(txns, wb_json_get(r, "job"), out);
            latency_table(txns, "transaction", out);
            wb_buf_addc(out, '\n');
        }
        rate_lines(r, out);
        error_lines(r, out);
        latency_table(wb_json_get(r, "operations"), "operation", out);
        samples_line(r, out);
        client_line(r, out);
    }
    wb_buf_addf(out, "verdict   %s: %s\n", verdict, in_words(verdict));
    for (size_t i = 0; i < wb_json_len(reasons); i++)
        put_reason(wb_json_str_or(wb_json_at(reasons, i), "text", ""), out);
}
