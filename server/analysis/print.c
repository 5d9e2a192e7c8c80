/* Answers of the analysis as tables and sentences for people. */
#include "server/analysis/compare.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/table.h"
#include "server/base/units.h"

#define LEFT_OUT_SHOWN 12

/* A value with its unit; "-" when there is none. */
static void add_value(struct wb_buf *out, const wb_json *value, const char *unit)
{
    double v = wb_json_number(value, NAN);

    if (isnan(v))
        wb_buf_addc(out, '-');
    else if (strcmp(unit, "ops/s") == 0)
        wb_format_rate(v, out);
    else if (strcmp(unit, "ms") == 0 && fabs(v) < 1e12)
        wb_format_ns((int64_t)llround(v * 1e6), out);
    else
        wb_format_count(v, out);
}

static void add_p(struct wb_buf *out, double p)
{
    if (isnan(p))
        wb_buf_addc(out, '-');
    else if (p < 0.001)
        wb_buf_adds(out, "<0.001");
    else
        wb_buf_addf(out, "%.3f", p);
}

/* "0.922", "+0.25" for a difference. */
static void add_change(struct wb_buf *out, double v, bool ratio)
{
    wb_buf_addf(out, ratio ? v >= 99.95 || v < 0.0995 ? "%.3g" : "%.3f" : "%+.4g", v);
}

static const wb_json *change_of(const wb_json *c)
{
    const wb_json *ratio = wb_json_get(c, "ratio");

    return wb_json_type(ratio) == WB_JSON_OBJECT ? ratio : wb_json_get(c, "difference");
}

/* The cells ratio, interval, q (or p) and verdict. */
static void change_cells(struct wb_table *t, const wb_json *c, const char *p_key)
{
    const wb_json *change = change_of(c);
    bool ratio = change == wb_json_get(c, "ratio");
    double estimate = wb_json_real_or(change, "estimate", NAN);
    double lo = wb_json_real_or(change, "lo", NAN), hi = wb_json_real_or(change, "hi", NAN);
    struct wb_buf b = WB_BUF_INIT(200);

    if (isnan(estimate))
        wb_buf_addc(&b, '-');
    else
        add_change(&b, estimate, ratio);
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_clear(&b);
    if (isnan(lo) || isnan(hi)) {
        wb_buf_addc(&b, '-');
    } else {
        add_change(&b, lo, ratio);
        wb_buf_adds(&b, " to ");
        add_change(&b, hi, ratio);
    }
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_clear(&b);
    add_p(&b, wb_json_real_or(c, p_key, NAN));
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
    wb_table_cell(t, "%s%s", wb_json_str_or(c, "verdict", "different"),
                  wb_json_len(wb_json_get(c, "limited")) > 0 ? " *" : "");
}

/* ---- the campaign ---- */

static void add_title(const wb_json *report, int width, struct wb_buf *out)
{
    const wb_json *runs = wb_json_get(report, "runs");
    long long noisy = wb_json_int_or(runs, "noisy", 0);
    long long rounds = wb_json_int_or(report, "rounds", 0);
    WB_AUTO_FREE char *title = NULL;
    size_t arms = wb_json_len(wb_json_get(report, "arms"));
    const char *study = wb_json_str_or(report, "study", NULL);

    title = wb_strf("%s%s%s, %lld round%s of %zu arm%s, %lld of %lld runs counted%s",
                    study ? study : "", study ? ": " : "",
                    wb_json_str_or(report, "campaign", "campaign"), rounds, rounds == 1 ? "" : "s",
                    arms, arms == 1 ? "" : "s", (long long)wb_json_int_or(runs, "used", 0),
                    (long long)wb_json_int_or(runs, "found", 0), noisy > 0 ? "," : "");
    if (noisy > 0) {
        WB_AUTO_FREE char *with_noisy = wb_strf("%s %lld of them noisy", title, noisy);
        wb_text_wrapped(out, "", 0, with_noisy, width);
    } else {
        wb_text_wrapped(out, "", 0, title, width);
    }
    wb_buf_addc(out, '\n');
}

/* The name of a metric without its figure: "max.throughput" is of phase "max". */
static char *phase_of(const char *metric)
{
    const char *dot = metric ? strrchr(metric, '.') : NULL;

    return dot ? wb_strndup(metric, (size_t)(dot - metric)) : wb_strdup("");
}

static void value_cell(struct wb_table *t, const wb_json *metric)
{
    struct wb_buf b = WB_BUF_INIT(100);

    add_value(&b, wb_json_get(metric, "median"), wb_json_str_or(metric, "unit", ""));
    wb_table_cell(t, "%s%s", wb_buf_str(&b),
                  wb_json_len(wb_json_get(metric, "limited")) > 0 ? "*" : "");
    wb_buf_release(&b);
}

/* "214.1k to 216.9k": the unit stands in the column before. */
static void interval_cell(struct wb_table *t, const wb_json *metric)
{
    static const char *const ends[] = {"lo", "hi"};
    struct wb_buf b = WB_BUF_INIT(200);

    for (size_t i = 0; i < 2; i++) {
        struct wb_buf one = WB_BUF_INIT(100);
        const char *text;
        size_t n;
        add_value(&one, wb_json_get(metric, ends[i]), wb_json_str_or(metric, "unit", ""));
        text = wb_buf_str(&one);
        n = strlen(text);
        wb_buf_adds(&b, i == 1 ? " to " : "");
        wb_buf_add(&b, text, wb_ends_with(text, "/s") ? n - 2 : n);
        wb_buf_release(&one);
    }
    wb_table_cell(t, "%s", wb_json_is_number(wb_json_get(metric, "lo")) ? wb_buf_str(&b) : "-");
    wb_buf_release(&b);
}

static void add_arms(const wb_json *report, int width, struct wb_buf *out)
{
    static const char *const figures[] = {"p50_ms", "p99_ms", "p99_9_ms"};
    const wb_json *head = wb_json_get(report, "headline"), *arms = wb_json_get(report, "arms");
    const char *throughput = wb_json_str_or(head, "throughput", NULL);
    const char *p99 = wb_json_str_or(head, "p99", NULL);
    WB_AUTO_FREE char *load = phase_of(throughput), *latency = phase_of(p99);
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "throughput", WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_RIGHT);
    wb_table_column(t, "p50", WB_RIGHT);
    wb_table_column(t, "p99", WB_RIGHT);
    wb_table_column(t, "p99.9", WB_RIGHT);
    wb_table_column(t, "n", WB_RIGHT);
    for (size_t a = 0; a < wb_json_len(arms); a++) {
        const wb_json *arm = wb_json_at(arms, a), *metrics = wb_json_get(arm, "metrics");
        const wb_json *m = throughput ? wb_json_get(metrics, throughput) : NULL;
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(arm, "label", ""));
        value_cell(t, m);
        interval_cell(t, m);
        for (size_t i = 0; i < WB_LEN(figures); i++) {
            WB_AUTO_FREE char *name = wb_strf("%s.%s", latency, figures[i]);
            value_cell(t, wb_json_get(metrics, name));
        }
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(arm, "n", 0));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    if (throughput != NULL || p99 != NULL) {
        WB_AUTO_FREE char *text =
            wb_strf("Medians over the runs. Throughput is %s phase '%s', latency of phase '%s'.",
                    throughput && wb_ends_with(throughput, ".sustained")
                        ? "the highest rate that held the limit, found in"
                        : "of",
                    throughput ? load : "-", p99 ? latency : "-");
        wb_text_wrapped(out, "", 0, text, width);
    }
    wb_buf_addc(out, '\n');
}

/* "docker x4 against native x4", in front of it the name where it says something else. */
static char *contrast_title(const wb_json *c)
{
    const char *name = wb_json_str_or(c, "name", ""), *arm = wb_json_str_or(c, "arm", "");
    const char *against = wb_json_str_or(c, "against", "");

    if (name[0] == '\0' || (strstr(name, arm) != NULL && strstr(name, against) != NULL))
        return wb_strf("%s against %s", arm, against);
    return wb_strf("%s: %s against %s", name, arm, against);
}

static bool same_arms(const wb_json *a, const wb_json *b)
{
    return strcmp(wb_json_str_or(a, "arm", ""), wb_json_str_or(b, "arm", "")) == 0 &&
           strcmp(wb_json_str_or(a, "against", ""), wb_json_str_or(b, "against", "")) == 0;
}

/* True for the first contrast of its two arms: that is where the rows of both stand. */
static bool opens_group(const wb_json *contrasts, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_arms(wb_json_at(contrasts, k), wb_json_at(contrasts, i)))
            return false;
    return true;
}

static const char *about_of(const wb_json *contrasts, size_t i)
{
    return wb_json_str_or(wb_json_at(contrasts, i), "about", "");
}

/* True for the first contrast about its subject. */
static bool opens_table(const wb_json *contrasts, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(about_of(contrasts, k), about_of(contrasts, i)) == 0)
            return false;
    return true;
}

/* The rows of all contrasts about the same as the first-th, in the order of their groups. */
static struct wb_table *contrast_table(const wb_json *contrasts, size_t first)
{
    struct wb_table *t = wb_table_new();
    const char *about = about_of(contrasts, first);
    size_t n = wb_json_len(contrasts);
    /* Planned looks have an interval of their own level. */
    WB_AUTO_FREE char *interval =
        wb_strf("%.4g %% interval",
                wb_json_real_or(change_of(wb_json_at(contrasts, first)), "level_percent", 95));

    wb_table_column(t, "contrast", WB_LEFT);
    wb_table_column(t, "ratio", WB_RIGHT);
    wb_table_column(t, interval, WB_RIGHT);
    wb_table_column(t, "q", WB_RIGHT);
    wb_table_column(t, "verdict", WB_LEFT);
    for (size_t i = first; i < n; i++) {
        if (strcmp(about_of(contrasts, i), about) != 0 || !opens_group(contrasts, i))
            continue;
        for (size_t k = i; k < n; k++) {
            const wb_json *c = wb_json_at(contrasts, k);
            if (!same_arms(c, wb_json_at(contrasts, i)))
                continue;
            wb_table_row(t);
            wb_table_cell(t, "  %s", wb_json_str_or(c, "metric", ""));
            change_cells(t, c, "q");
        }
    }
    return t;
}

static void add_line(struct wb_buf *out, const char **from)
{
    size_t n = strcspn(*from, "\n") + 1;

    wb_buf_add(out, *from, n);
    *from += n;
}

/* One table, with the name of each contrast on a line of its own over its rows: names are longer
 * than a column can be. */
static void add_contrast_table(const wb_json *contrasts, size_t first, int width,
                               struct wb_buf *out)
{
    struct wb_buf rows = WB_BUF_INIT(16u << 20);
    struct wb_table *t = contrast_table(contrasts, first);
    const char *about = about_of(contrasts, first), *line;
    size_t n = wb_json_len(contrasts);

    wb_table_print(t, width, &rows);
    wb_table_free(t);
    line = wb_buf_str(&rows);
    if (*about) {
        WB_AUTO_FREE char *title = wb_strf("%c%s", toupper((unsigned char)*about), about + 1);
        wb_text_wrapped(out, "", 0, title, width);
    }
    add_line(out, &line); /* heads and rule */
    add_line(out, &line);
    for (size_t i = first; i < n; i++) {
        WB_AUTO_FREE char *title = NULL;
        if (strcmp(about_of(contrasts, i), about) != 0 || !opens_group(contrasts, i))
            continue;
        title = contrast_title(wb_json_at(contrasts, i));
        wb_text_wrapped(out, "", 2, title, width);
        for (size_t k = i; k < n; k++)
            if (same_arms(wb_json_at(contrasts, k), wb_json_at(contrasts, i)))
                add_line(out, &line);
    }
    wb_buf_addc(out, '\n');
    wb_buf_release(&rows);
}

/* A table for each subject: what a form costs and what more instances do are never in one. */
static void add_contrast_tables(const wb_json *contrasts, int width, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        if (opens_table(contrasts, i))
            add_contrast_table(contrasts, i, width, out);
}

/* One sentence for each contrast's primary metric. */
static void add_sentences(const wb_json *contrasts, int width, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        const char *verdict = wb_json_str_or(c, "verdict", "different");
        const wb_json *look = wb_json_get(c, "look");
        WB_AUTO_FREE char *text = NULL, *at = NULL;
        if (!wb_json_bool_or(c, "primary", false))
            continue;
        at = wb_json_type(look) == WB_JSON_OBJECT
                 ? wb_strf(", after %lld rounds", (long long)wb_json_int_or(look, "rounds", 0))
                 : wb_strdup("");
        text = wb_strf("%s%s: %s of %s against %s: %s.", verdict, at,
                       wb_json_str_or(c, "metric", ""), wb_json_str_or(c, "arm", ""),
                       wb_json_str_or(c, "against", ""), wb_json_str_or(c, "sentence", ""));
        text[0] = (char)(text[0] - 'a' + 'A'); /* verdicts are lower-case words */
        wb_text_wrapped(out, "", 2, text, width);
    }
}

/* "Look 2 of 4, after round 12 of at most 30: 3 of 4 contrasts decided." */
static void add_looks(const wb_json *report, int width, struct wb_buf *out)
{
    WB_AUTO_FREE char *text =
        wb_strf("%s.", wb_json_str_or(wb_json_get(report, "looks"), "sentence", ""));

    text[0] = (char)toupper((unsigned char)text[0]);
    wb_text_wrapped(out, "", 0, text, width);
    wb_buf_addc(out, '\n');
}

static void add_left_out(const wb_json *left, int width, struct wb_buf *out)
{
    size_t n = wb_json_len(left);

    if (n == 0)
        return;
    wb_buf_adds(out, "\nRuns that are not counted\n");
    for (size_t i = 0; i < n && i < LEFT_OUT_SHOWN; i++) {
        const wb_json *l = wb_json_at(left, i);
        WB_AUTO_FREE char *text =
            wb_strf("%s (%s, round %lld, attempt %lld): %s", wb_json_str_or(l, "run", "?"),
                    wb_json_str_or(l, "arm", "?"), (long long)wb_json_int_or(l, "round", -1),
                    (long long)wb_json_int_or(l, "attempt", 1), wb_json_str_or(l, "why", ""));
        wb_text_wrapped(out, "  - ", 4, text, width);
    }
    if (n > LEFT_OUT_SHOWN)
        wb_buf_addf(out, "  - and %zu more: see --json\n", n - LEFT_OUT_SHOWN);
}

void wb_campaign_report_print(const wb_json *report, int width, struct wb_buf *out)
{
    const wb_json *contrasts = wb_json_get(report, "contrasts");

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    add_title(report, width, out);
    add_arms(report, width, out);
    if (wb_json_get(report, "looks") != NULL)
        add_looks(report, width, out);
    if (wb_json_len(contrasts) > 0) {
        add_contrast_tables(contrasts, width, out);
        add_sentences(contrasts, width, out);
    }
    wb_text_notes(out, wb_json_get(report, "warnings"), width);
    add_left_out(wb_json_path(report, "runs.left_out"), width, out);
}

/* ---- stats compare ---- */

static void compare_row(struct wb_table *t, const wb_json *r, const char *p_key)
{
    const wb_json *n = wb_json_get(r, "n");

    wb_table_row(t);
    wb_table_cell(t, "%s", wb_json_str_or(r, "name", "base, new"));
    wb_table_cell(t, "%lld+%lld", (long long)wb_json_integer(wb_json_at(n, 0)),
                  (long long)wb_json_integer(wb_json_at(n, 1)));
    wb_text_cell(t, wb_json_get(r, "median_base"));
    wb_text_cell(t, wb_json_get(r, "median_new"));
    change_cells(t, r, p_key);
}

void wb_stats_compare_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *rows = wb_json_get(answer, "rows"), *mean = wb_json_get(answer, "geomean");
    const char *p_key = rows != NULL ? "q" : "p";
    struct wb_table *t = wb_table_new();

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    wb_table_column(t, "row", WB_LEFT);
    wb_table_column(t, "n", WB_RIGHT);
    wb_table_column(t, "base", WB_RIGHT);
    wb_table_column(t, "new", WB_RIGHT);
    wb_table_column(t, "ratio", WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_RIGHT);
    wb_table_column(t, p_key, WB_RIGHT);
    wb_table_column(t, "verdict", WB_LEFT);
    if (rows == NULL)
        compare_row(t, answer, p_key);
    for (size_t i = 0; i < wb_json_len(rows); i++)
        compare_row(t, wb_json_at(rows, i), p_key);
    wb_table_print(t, width, out);
    wb_table_free(t);
    if (wb_json_is_number(wb_json_get(mean, "ratio")))
        wb_buf_addf(out, "\nGeometric mean of the ratios of %lld rows: %.4f\n",
                    (long long)wb_json_int_or(mean, "of", 0), wb_json_real_or(mean, "ratio", NAN));
    wb_buf_addc(out, '\n');
    wb_text_wrapped(out, "", 2, wb_json_str_or(answer, "sentence", ""), width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}

/* ---- stats adjust ---- */

void wb_stats_adjust_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *q = wb_json_get(answer, "q"), *rejected = wb_json_get(answer, "rejected");
    struct wb_table *t = wb_table_new();
    size_t next = 0;

    wb_table_column(t, "row", WB_RIGHT);
    wb_table_column(t, "q", WB_RIGHT);
    wb_table_column(t, "finding", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(q); i++) {
        bool hit = next < wb_json_len(rejected) &&
                   wb_json_integer(wb_json_at(rejected, next)) == (int64_t)i;
        next += hit;
        wb_table_row(t);
        wb_table_cell(t, "%zu", i);
        if (wb_json_is_number(wb_json_at(q, i)))
            wb_table_cell(t, "%.6g", wb_json_number(wb_json_at(q, i), 0));
        else
            wb_table_cell(t, "-");
        wb_table_cell(t, "%s", hit ? "yes" : "no");
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}
