/* The page of a report. */
#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"
#include "server/cli/records.h"
#include "server/cli/report.h"

static const char *const style =
    ":root{color-scheme:light "
    "dark;--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#d5dae0;--band:#eef1f4;"
    "--good:#14703a;--bad:#b3261e;--even:#3b5b8c;--open:#8a5a00;"
    "--c0:#1f5fa8;--c1:#b5481a;--c2:#2c7a4b;--c3:#8e3b8e;--c4:#8a6d00;--c5:#167a86;--c6:#a8324f;--"
    "c7:#5a5f66}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#9aa4ae;--line:#"
    "363c43;"
    "--band:#22272c;--good:#5fce8c;--bad:#ff8a80;--even:#8fb4ea;--open:#f0b54a;"
    "--c0:#7db5f5;--c1:#f59a6c;--c2:#74d39a;--c3:#dd96dd;--c4:#e0c14a;--c5:#62c9d6;--c6:#f58ba3;--"
    "c7:#b3bac2}}"
    "*{box-sizing:border-box}body{margin:0 auto;padding:1.5rem 1rem "
    "4rem;max-width:60rem;background:var(--bg);"
    "color:var(--fg);font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem;margin:0 0 .25rem}"
    "h2{font-size:1.15rem;margin:2.2rem 0 .6rem}p{margin:.4rem 0}.dim{color:var(--dim)}"
    "a{color:var(--even)}ul{padding-left:1.2rem;margin:.4rem 0}li{margin:.15rem 0}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:"
    "100%}"
    "th,td{text-align:left;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-weight:600;color:var(--dim);font-size:.85rem}"
    "td.n,th.n{text-align:right;white-space:nowrap}td.k{white-space:nowrap}"
    ".verdict{font-weight:700;white-space:nowrap}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".even{color:var(--even)}.open{color:var(--open)}"
    ".say{border-left:4px solid currentColor;padding:.1rem 0 .1rem .8rem;margin:.6rem 0}"
    ".say p{color:var(--fg)}"
    "svg{display:block;width:100%;min-width:34rem;height:auto;font-size:13px;fill:currentColor}"
    ".tick{font-size:11.5px;fill:var(--dim)}.grid{stroke:var(--line)}.zero{stroke:var(--fg)}"
    ".band{fill:var(--band)}.bar{stroke:currentColor;stroke-width:3}.fill{fill:currentColor}"
    ".curve{fill:none;stroke:currentColor;stroke-width:2}.dot{fill:currentColor}"
    ".c0{color:var(--c0)}.c1{color:var(--c1);stroke-dasharray:7 "
    "3}.c2{color:var(--c2);stroke-dasharray:2 3}"
    ".c3{color:var(--c3);stroke-dasharray:9 3 2 "
    "3}.c4{color:var(--c4)}.c5{color:var(--c5);stroke-dasharray:4 2}"
    ".c6{color:var(--c6);stroke-dasharray:1 3}.c7{color:var(--c7);stroke-dasharray:12 4}"
    ".day{white-space:nowrap}code{font:.9em ui-monospace,monospace}"
    "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--line:#bbb;--band:#eee}"
    "body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}tr,svg,.say{break-inside:"
    "avoid}"
    ".wide{overflow:visible}}";

void wb_html_text(const char *text, struct wb_buf *out)
{
    const unsigned char *s = (const unsigned char *)text;

    for (; *s; s++) {
        /* Marks that turn the direction of writing could make a page say something else. */
        bool turns = (s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) ||
                     (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);

        if (turns || (s[0] == 0xc2 && (s[1] & 0xe0) == 0x80)) {
            wb_buf_adds(out, "\xef\xbf\xbd");
            s += turns ? 2 : 1;
        } else if (*s == '&')
            wb_buf_adds(out, "&amp;");
        else if (*s == '<')
            wb_buf_adds(out, "&lt;");
        else if (*s == '>')
            wb_buf_adds(out, "&gt;");
        else if (*s == '"')
            wb_buf_adds(out, "&quot;");
        else if (*s == '\'')
            wb_buf_adds(out, "&#39;");
        else if ((*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f)
            wb_buf_adds(out, "\xef\xbf\xbd");
        else
            wb_buf_addc(out, (char)*s);
    }
}

const char *wb_verdict_class(const char *verdict)
{
    static const char *const classes[][2] = {
        {"better", "good"},     {"worse", "bad"},         {"equivalent", "even"},
        {"negligible", "even"}, {"inconclusive", "open"}, {"insufficient", "open"},
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (!strcmp(classes[i][0], verdict))
            return classes[i][1];
    return "open";
}

/* <td> with text of a record. */
static void cell(const char *class, const char *text, struct wb_buf *out)
{
    wb_buf_addf(out, "<td class=\"%s\">", class);
    wb_html_text(text, out);
    wb_buf_adds(out, "</td>");
}

static void head(const char *const *names, size_t from_right, struct wb_buf *out)
{
    wb_buf_adds(out, "<div class=\"wide\"><table><thead><tr>");
    for (size_t i = 0; names[i]; i++)
        wb_buf_addf(out, "<th%s>%s</th>",
                    i >= from_right && strcmp(names[i], "verdict") != 0 ? " class=\"n\"" : "",
                    names[i]);
    wb_buf_adds(out, "</tr></thead><tbody>\n");
}

static void end(struct wb_buf *out)
{
    wb_buf_adds(out, "</tbody></table></div>\n");
}

static void value_text(double v, const char *unit, struct wb_buf *b)
{
    WB_AUTO_JSON wb_json *m = wb_json_object();

    wb_json_set_real(m, "value", v);
    wb_json_set_str(m, "unit", unit);
    wb_cli_metric(m, b);
}

/* ---- parts ---- */

static void add_title(const struct wb_report_page *p, struct wb_buf *out)
{
    const wb_json *first = wb_json_at(p->runs, wb_json_len(p->runs) - 1),
                  *recipe = wb_json_get(first, "recipe");
    const wb_json *runs = wb_json_get(p->report, "runs");
    const char *at = wb_json_str_or(first, "started_at", "");
    WB_AUTO_FREE char *day =
        strlen(at) >= 16 ? wb_strf("%.10s %.5s UTC", at, at + 11) : wb_strdup("?");

    wb_buf_adds(out, "<h1>");
    wb_html_text(wb_json_str_or(p->report, "study", "?"), out);
    wb_buf_adds(out, "</h1>\n<p class=\"dim\">");
    wb_html_text(wb_json_str_or(recipe, "name", "?"), out);
    wb_buf_addc(out, ' ');
    wb_html_text(wb_json_str_or(recipe, "version", "?"), out);
    wb_buf_adds(out, " on ");
    wb_html_text(wb_json_str_or(wb_json_get(first, "host"), "class", "?"), out);
    wb_buf_adds(out, "; campaign <code>");
    wb_html_text(wb_json_str_or(p->report, "campaign", "?"), out);
    wb_buf_adds(out, "</code>, <span class=\"day\">");
    wb_html_text(day, out);
    wb_buf_adds(out, "</span>");
    wb_buf_addf(out, "</p>\n<p>%lld of %lld planned runs are counted, in %lld rounds",
                (long long)wb_json_int_or(runs, "used", 0),
                (long long)wb_json_int_or(runs, "planned", 0),
                (long long)wb_json_int_or(p->report, "rounds", 0));
    if (wb_json_int_or(runs, "noisy", 0) > 0)
        wb_buf_addf(out, "; %lld of them were measured on a noisy host",
                    (long long)wb_json_int_or(runs, "noisy", 0));
    wb_buf_adds(out, ".</p>\n");
}

static void add_verdicts(const wb_json *contrasts, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        const char *verdict = wb_json_str_or(c, "verdict", "?");

        if (!wb_json_bool_or(c, "primary", false))
            continue;
        wb_buf_addf(out, "<div class=\"say %s\"><p><span class=\"verdict %s\">",
                    wb_verdict_class(verdict), wb_verdict_class(verdict));
        wb_html_text(verdict, out);
        wb_buf_adds(out, "</span> ");
        wb_html_text(wb_json_str_or(c, "arm", "?"), out);
        wb_buf_adds(out, " against ");
        wb_html_text(wb_json_str_or(c, "against", "?"), out);
        wb_buf_adds(out, " (");
        wb_html_text(wb_json_str_or(c, "about", ""), out);
        wb_buf_adds(out, ", ");
        wb_html_text(wb_json_str_or(c, "metric", "?"), out);
        wb_buf_adds(out, "): ");
        wb_html_text(wb_json_str_or(c, "sentence", ""), out);
        wb_buf_adds(out, "</p></div>\n");
    }
}

static void contrast_row(const wb_json *c, struct wb_buf *out)
{
    static const char *const medians[] = {"median_base", "median_new"};
    const wb_json *ratio = wb_json_get(c, "ratio");
    const char *verdict = wb_json_str_or(c, "verdict", "-"), *unit = wb_json_str_or(c, "unit", "");
    double q = wb_json_real_or(c, "q", NAN);

    wb_buf_adds(out, "<tr>");
    cell("k", wb_json_str_or(c, "arm", "?"), out);
    cell("k", wb_json_str_or(c, "against", "?"), out);
    cell("k", wb_json_str_or(c, "metric", "?"), out);
    for (size_t i = 0; i < 2; i++) {
        struct wb_buf b = WB_BUF_INIT(256);

        value_text(wb_json_real_or(c, medians[i], NAN), unit, &b);
        cell("n", wb_buf_str(&b), out);
        wb_buf_release(&b);
    }
    if (!wb_json_is_number(wb_json_get(ratio, "lo")) &&
        wb_json_is_number(wb_json_get(ratio, "estimate")))
        wb_buf_addf(out, "<td class=\"n\">%.4f</td><td class=\"n\">-</td>",
                    wb_json_real_or(ratio, "estimate", NAN));
    else if (wb_json_is_number(wb_json_get(ratio, "estimate")))
        wb_buf_addf(out, "<td class=\"n\">%.4f</td><td class=\"n\">%.4f to %.4f</td>",
                    wb_json_real_or(ratio, "estimate", NAN), wb_json_real_or(ratio, "lo", NAN),
                    wb_json_real_or(ratio, "hi", NAN));
    else
        wb_buf_adds(out, "<td class=\"n\">-</td><td class=\"n\">-</td>");
    if (isnan(q))
        wb_buf_adds(out, "<td class=\"n\">-</td>");
    else
        wb_buf_addf(out, "<td class=\"n\">%.3g</td>", q);
    wb_buf_addf(out, "<td class=\"verdict %s\">", wb_verdict_class(verdict));
    wb_html_text(verdict, out);
    wb_buf_adds(out, "</td></tr>\n");
}

static void add_contrasts(const wb_json *contrasts, bool primary, struct wb_buf *out)
{
    static const char *const names[] = {"arm",   "against",  "metric", "against", "arm",
                                        "ratio", "interval", "q",      "verdict", NULL};

    head(names, 3, out);
    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        if (wb_json_bool_or(wb_json_at(contrasts, i), "primary", false) == primary)
            contrast_row(wb_json_at(contrasts, i), out);
    end(out);
}

static void metric_cells(const wb_json *arm, const char *name, bool interval, struct wb_buf *out)
{
    const wb_json *m = wb_json_get(wb_json_get(arm, "metrics"), name);
    const char *unit = wb_json_str_or(m, "unit", "");
    struct wb_buf b = WB_BUF_INIT(256);

    value_text(wb_json_real_or(m, "median", NAN), unit, &b);
    cell("n", wb_buf_str(&b), out);
    if (interval) {
        wb_buf_clear(&b);
        if (wb_json_is_number(wb_json_get(m, "lo"))) {
            value_text(wb_json_real_or(m, "lo", NAN), unit, &b);
            wb_buf_adds(&b, " to ");
            value_text(wb_json_real_or(m, "hi", NAN), unit, &b);
        } else {
            wb_buf_adds(&b, "-");
        }
        cell("n", wb_buf_str(&b), out);
    }
    wb_buf_release(&b);
}

static void add_arms(const struct wb_report_page *p, struct wb_buf *out)
{
    static const char *const names[] = {"arm",      "throughput", "interval", "p99",
                                        "interval", "runs",       NULL};
    const wb_json *arms = wb_json_get(p->report, "arms");
    const wb_json *headline = wb_json_get(p->report, "headline");

    head(names, 1, out);
    for (size_t i = 0; i < wb_json_len(arms); i++) {
        const wb_json *arm = wb_json_at(arms, i);

        wb_buf_adds(out, "<tr>");
        cell("k", wb_json_str_or(arm, "label", "?"), out);
        metric_cells(arm, wb_json_str_or(headline, "throughput", ""), true, out);
        metric_cells(arm, wb_json_str_or(headline, "p99", ""), true, out);
        wb_buf_addf(out, "<td class=\"n\">%lld</td></tr>\n",
                    (long long)wb_json_int_or(arm, "n", 0));
    }
    end(out);
    wb_buf_adds(out,
                "<p class=\"dim\">Medians of the runs that count, with an interval of the median. "
                "Throughput is <code>");
    wb_html_text(wb_json_str_or(headline, "throughput", "-"), out);
    wb_buf_adds(out, "</code>, p99 is <code>");
    wb_html_text(wb_json_str_or(headline, "p99", "-"), out);
    wb_buf_adds(out, "</code>.</p>\n");
}

static void curve_row(const struct wb_report_curve *c, struct wb_buf *out)
{
    wb_buf_adds(out, "<tr>");
    cell("k", c->arm, out);
    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        struct wb_buf b = WB_BUF_INIT(256);

        value_text(c->median[k], "ms", &b);
        cell("n", wb_buf_str(&b), out);
        wb_buf_release(&b);
    }
    wb_buf_addf(out, "<td class=\"n\">%zu</td></tr>\n", c->runs);
}

static void add_curves(const struct wb_report_page *p, struct wb_buf *out)
{
    static const char *const names[] = {"arm",   "p50",    "p90",  "p95", "p99",
                                        "p99.9", "p99.99", "runs", NULL};

    if (!p->curves_of || p->ncurves == 0)
        return;
    wb_buf_adds(out, "<h2>Times at percentiles</h2>\n<p class=\"dim\">");
    wb_html_text(p->curves_of, out);
    wb_buf_adds(out, "; the median over the runs that count at each percentile. Both axes are "
                     "logarithmic.</p>\n");
    wb_report_curves(p, out);
    head(names, 1, out);
    for (size_t i = 0; i < p->ncurves; i++)
        curve_row(&p->curves[i], out);
    end(out);
}

static void add_left_out(const wb_json *report, struct wb_buf *out)
{
    static const char *const names[] = {"run", "arm", "round", "why it is not counted", NULL};
    const wb_json *list = wb_json_get(wb_json_get(report, "runs"), "left_out");
    const wb_json *warnings = wb_json_get(report, "warnings");

    if (wb_json_len(warnings)) {
        wb_buf_adds(out, "<h2>To be known</h2>\n<ul>\n");
        for (size_t i = 0; i < wb_json_len(warnings); i++) {
            wb_buf_adds(out, "<li>");
            wb_html_text(wb_json_str_or(wb_json_at(warnings, i), "text", ""), out);
            wb_buf_adds(out, "</li>\n");
        }
        wb_buf_adds(out, "</ul>\n");
    }
    if (wb_json_len(list) == 0)
        return;
    wb_buf_adds(out, "<h2>Runs that are not counted</h2>\n");
    head(names, 9, out);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *r = wb_json_at(list, i);

        wb_buf_adds(out, "<tr>");
        cell("k", wb_json_str_or(r, "run", "?"), out);
        cell("k", wb_json_str_or(r, "arm", "?"), out);
        wb_buf_addf(out, "<td>%lld</td>", (long long)wb_json_int_or(r, "round", 0));
        cell("", wb_json_str_or(r, "why", ""), out);
        wb_buf_adds(out, "</tr>\n");
    }
    end(out);
}

static void add_facts(const struct wb_report_page *p, struct wb_buf *out)
{
    static const char *const shown[][2] = {
        {"kernel", "kernel"}, {"CPU", "cpu_model"},     {"memory", "memory_bytes"},
        {"libc", "libc"},     {"governor", "governor"}, {"clock source", "clock_source"}};
    const wb_json *facts = wb_json_get(p->environment, "host");

    if (!facts)
        facts = p->environment;
    wb_buf_adds(out, "<h2>Where, and how to check</h2>\n<div class=\"wide\"><table><tbody>\n");
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const wb_json *v = wb_json_get(facts, shown[i][1]);
        struct wb_buf b = WB_BUF_INIT(4096);

        if (wb_json_string(v))
            wb_buf_adds(&b, wb_json_string(v));
        else if (wb_json_is_number(v))
            wb_format_bytes((int64_t)wb_json_number(v, 0), &b);
        if (b.len) {
            wb_buf_addf(out, "<tr><th>%s</th>", shown[i][0]);
            cell("", wb_buf_str(&b), out);
            wb_buf_adds(out, "</tr>\n");
        }
        wb_buf_release(&b);
    }
    wb_buf_adds(out, "<tr><th>method</th>");
    cell("", wb_json_str_or(p->report, "method", "?"), out);
    wb_buf_addf(out, "</tr>\n<tr><th>practical threshold</th><td>%g %%</td></tr>\n",
                wb_json_real_or(p->report, "threshold_percent", 2));
    end(out);
    wb_buf_adds(out, "<p>Every run is a commit in the store: <code>weighbridge verify ");
    wb_html_text(wb_json_str_or(p->report, "campaign", "?"), out);
    wb_buf_adds(out,
                "</code> checks them, <code>weighbridge replay RUN</code> runs one again.</p>\n");
    wb_buf_addf(out, "<p class=\"dim\">Made by Weighbridge %s, analysis version %lld, at ",
                WB_VERSION, (long long)wb_json_int_or(p->report, "analysis_version", 0));
    wb_html_text(p->made_at, out);
    wb_buf_adds(out, ".</p>\n");
}

void wb_report_html(const struct wb_report_page *p, struct wb_buf *out)
{
    const wb_json *contrasts = wb_json_get(p->report, "contrasts");
    size_t primary = 0;

    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        primary += wb_json_bool_or(wb_json_at(contrasts, i), "primary", false);
    wb_buf_adds(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'\">\n<title>");
    wb_html_text(wb_json_str_or(p->report, "study", "?"), out);
    wb_buf_adds(out, " - Weighbridge</title>\n<style>");
    wb_buf_adds(out, style);
    wb_buf_adds(out, "</style></head>\n<body>\n");
    add_title(p, out);
    if (primary) {
        add_verdicts(contrasts, out);
        wb_buf_adds(
            out, "<h2>What differs</h2>\n<p class=\"dim\">Ratio of the medians over paired rounds, "
                 "as a percentage, with its 95 % interval. The shaded part is below the "
                 "practical threshold.</p>\n");
        wb_report_forest(contrasts, out);
        add_contrasts(contrasts, true, out);
    }
    wb_buf_adds(out, "<h2>Arms</h2>\n");
    add_arms(p, out);
    add_curves(p, out);
    if (primary < wb_json_len(contrasts)) {
        wb_buf_adds(out, "<h2>Other figures of the same arms</h2>\n");
        add_contrasts(contrasts, false, out);
    }
    add_left_out(p->report, out);
    add_facts(p, out);
    wb_buf_adds(out, "</body></html>\n");
}
