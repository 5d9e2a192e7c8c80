#include "server/analysis/campaign_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign.h"
#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/clock.h"
#include "server/base/units.h"

#define RATE_MOST 1e15
#define BOOK_OLD_MS (366LL * 86400000)
#define THROUGHPUT ".throughput"

static const char no_figure[] = "no counted run has a throughput";

/* The metric p99 of the same phase. Caller frees. */
static char *p99_of(const char *throughput)
{
    size_t n = strlen(throughput);

    n -= wb_ends_with(throughput, THROUGHPUT) ? strlen(THROUGHPUT) : 0;
    return wb_strf("%.*s.p99_ms", (int)n, throughput);
}

static double median_of(const wb_json *metrics, const char *name)
{
    return wb_json_real_or(wb_json_get(metrics, name), "median", NAN);
}

/* The throughput that counts for an arm: the one asked for, the greatest one of a phase that kept
 * the SLO, else the one that stands for the runs. NULL when there is none. */
static const char *pick_metric(const wb_json *arm, const char *headline,
                               const struct wb_value_question *q)
{
    const wb_json *metrics = wb_json_get(arm, "metrics");
    const char *best = NULL;

    if (q->metric != NULL)
        return q->metric;
    for (void *it = wb_json_first(metrics); it != NULL && !isnan(q->slo_p99_ms);
         it = wb_json_next(metrics, it)) {
        const char *name = wb_json_iter_key(it);
        WB_AUTO_FREE char *p99 = NULL;
        if (!wb_ends_with(name, THROUGHPUT))
            continue;
        p99 = p99_of(name);
        if (median_of(metrics, p99) <= q->slo_p99_ms && median_of(metrics, name) > 0 &&
            (best == NULL || median_of(metrics, name) > median_of(metrics, best)))
            best = name;
    }
    return best != NULL ? best : headline;
}

static const char *class_of(const wb_json *summaries, const char *arm)
{
    for (size_t i = 0; i < wb_json_len(summaries); i++) {
        const wb_json *s = wb_json_at(summaries, i);
        const char *class = wb_json_string(wb_json_path(s, "host.class"));
        if (class != NULL && strcmp(wb_json_str_or(s, "arm", ""), arm) == 0)
            return class;
    }
    return NULL;
}

/* ---- the question for `stats price`, and beside it what the report knows more ---- */

struct work {
    const struct wb_value_question *q;
    wb_json *asked, *known; /* lists of the same length */
    wb_json *warnings;
};

/* v, or NaN where a price cannot be made of it. */
static double in_reach(double v, double least)
{
    return v >= least && v <= RATE_MOST ? v : NAN;
}

static void add_performance(const wb_json *arm, const char *metric, wb_json *asked, wb_json *known,
                            double slo)
{
    const wb_json *metrics = wb_json_get(arm, "metrics"), *m = wb_json_get(metrics, metric);
    WB_AUTO_FREE char *p99_name = p99_of(metric);
    double rate = median_of(metrics, metric), p99 = in_reach(median_of(metrics, p99_name), 0);
    double lo = wb_json_real_or(m, "lo", NAN), hi = wb_json_real_or(m, "hi", NAN);

    wb_json_set_str(known, "metric", metric);
    rate = in_reach(rate, -RATE_MOST);
    lo = isnan(rate) ? NAN : in_reach(lo, -RATE_MOST);
    hi = isnan(rate) ? NAN : in_reach(hi, -RATE_MOST);
    if (!isnan(rate)) {
        wb_json_set_real(asked, "throughput_per_s", rate);
        wb_json_set_real(known, "throughput_per_s", rate);
    } else {
        wb_json_set_reason(known, "throughput_per_s", no_figure);
    }
    if (!isnan(lo) && !isnan(hi)) {
        wb_json *ci = wb_json_array();
        wb_json_push(ci, wb_json_real(lo));
        wb_json_push(ci, wb_json_real(hi));
        wb_json_set(asked, "throughput_ci95", wb_json_ref(ci));
        wb_json_set(known, "throughput_ci95", ci);
    } else {
        wb_json_set_reason(known, "throughput_ci95", "a 95 % interval needs 6 to 1000 runs");
    }
    if (!isnan(p99)) {
        wb_json_set_real(asked, "p99_ms", p99);
        wb_json_set_real(known, "p99_ms", p99);
    } else {
        wb_json_set_reason(known, "p99_ms", "the phase has no p99 that can be");
    }
    if (isnan(slo) || isnan(p99))
        wb_json_set_reason(known, "meets_slo", isnan(slo) ? "no SLO is asked for" : "no p99");
    else
        wb_json_set_bool(known, "meets_slo", p99 <= slo);
    if (wb_json_len(wb_json_get(m, "limited")) > 0)
        wb_json_set(known, "limited", wb_json_ref(wb_json_get(m, "limited")));
}

static void add_arm(struct work *w, const struct wb_value_source *s, const wb_json *report,
                    const wb_json *arm)
{
    const char *label = wb_json_str_or(arm, "label", ""), *class = class_of(s->summaries, label);
    const struct wb_book_host *host = class ? wb_book_find(w->q->book, class) : NULL;
    const char *metric =
        pick_metric(arm, wb_json_string(wb_json_path(report, "headline.throughput")), w->q);
    int64_t planned = wb_json_int_or(wb_json_get(s->plan, "hosts"), "database", 1);
    int64_t hosts = w->q->hosts > 0 ? w->q->hosts : planned < 1 ? 1 : planned;
    WB_AUTO_FREE char *name =
        s->prefix != NULL ? wb_strf("%s/%s", s->prefix, label) : wb_strdup(label);
    wb_json *asked = wb_json_object(), *known = wb_json_object();

    wb_json_set_str(asked, "name", name);
    wb_json_set_str(known, "name", name);
    wb_json_set_str(known, "campaign", wb_json_str_or(s->plan, "campaign", ""));
    wb_json_set_str(known, "arm", label);
    if (class != NULL)
        wb_json_set_str(known, "host_class", class);
    else
        wb_json_set_reason(known, "host_class", "no run says it");
    wb_json_set_int(known, "hosts", hosts);
    if (host != NULL) {
        wb_json_set_real(asked, "usd_per_hour", host->per_hour * (double)hosts);
        wb_json_set_bool(known, "owned", host->owned);
    } else {
        wb_analysis_warn(w->warnings, "no-price", "%s: the book has no price for host class '%s'",
                         name, class ? class : "unknown");
    }
    if (metric != NULL) {
        add_performance(arm, metric, asked, known, w->q->slo_p99_ms);
    } else {
        static const char *const keys[] = {"metric", "throughput_per_s", "throughput_ci95",
                                           "p99_ms", "meets_slo"};
        for (size_t i = 0; i < WB_LEN(keys); i++)
            wb_json_set_reason(known, keys[i], no_figure);
    }
    if (!wb_json_is_number(wb_json_get(asked, "throughput_per_s")))
        wb_analysis_warn(w->warnings, "no-throughput", "%s: %s (see weighbridge compare)", name,
                         no_figure);
    wb_json_push(w->asked, asked);
    wb_json_push(w->known, known);
}

/* Old runs may be priced anew, and prices may be old: both are said, as days are compared. */
static void warn_date(struct work *w, const struct wb_value_source *s)
{
    const char *campaign = wb_json_str_or(s->plan, "campaign", "?"), *date = w->q->book->date;
    WB_AUTO_FREE char *midnight = wb_strf("%.16sT00:00:00Z", date);
    const char *newest = "";
    int64_t book, run;

    for (size_t i = 0; i < wb_json_len(s->summaries); i++) {
        const char *at = wb_json_str_or(wb_json_at(s->summaries, i), "started_at", "");
        newest = strcmp(at, newest) > 0 ? at : newest;
    }
    if (wb_parse_time(midnight, &book, NULL) < 0 || wb_parse_time(newest, &run, NULL) < 0)
        return;
    if (book > run)
        wb_analysis_warn(w->warnings, "book-later",
                         "the prices are of %s, the runs of %s of %.10s: they are priced anew",
                         date, campaign, newest);
    else if (run - book > BOOK_OLD_MS)
        wb_analysis_warn(w->warnings, "book-old",
                         "the prices of %s are more than a year older than the runs of %s (%.10s)",
                         date, campaign, newest);
}

static int add_source(struct work *w, const struct wb_value_source *s, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *report = NULL;
    const wb_json *arms;
    int rc = wb_campaign_report(s->plan, s->summaries, &report, err);

    if (rc < 0)
        return rc;
    warn_date(w, s);
    arms = wb_json_get(report, "arms");
    for (size_t i = 0; i < wb_json_len(arms); i++)
        if (s->arm == NULL || strcmp(s->arm, wb_json_str_or(wb_json_at(arms, i), "label", "")) == 0)
            add_arm(w, s, report, wb_json_at(arms, i));
    return 0;
}

/* ---- answering ---- */

/* Keys of `stats price` in the words of the report: the money is of the book's currency. */
static void copy_price(const wb_json *priced, wb_json *item)
{
    static const char *const keys[][2] = {
        {"usd_per_hour", "per_hour"},
        {"usd_per_million_ops", "cost_per_million_ops"},
        {"usd_per_million_ops_ci95", "cost_per_million_ops_ci95"},
        {"ops_per_usd", "ops_per_currency_unit"},
        {"usd_per_month_per_1000_ops_s", "cost_per_month_per_1000_ops_s"},
    };
    const char *why = wb_json_str_or(priced, "reason", NULL);

    if (why != NULL && wb_json_is_number(wb_json_get(priced, "usd_per_hour")) &&
        !wb_json_is_number(wb_json_get(item, "throughput_per_s")))
        why = no_figure;
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", keys[i][0]);
        const wb_json *value = wb_json_get(priced, keys[i][0]);
        if (wb_json_type(value) == WB_JSON_NULL)
            wb_json_set_reason(item, keys[i][1],
                               why ? why : wb_json_str_or(priced, reason, "not known"));
        else
            wb_json_set(item, keys[i][1], wb_json_ref(value));
    }
    if (why != NULL)
        wb_json_set_str(item, "reason", why);
}

static wb_json *book_json(const struct wb_book *b)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", b->name);
    wb_json_set_str(o, "date", b->date);
    wb_json_set_str(o, "currency", b->currency);
    wb_json_set_str(o, "source", b->source);
    return o;
}

static const wb_json *item_named(const wb_json *items, const char *name)
{
    for (size_t i = 0; i < wb_json_len(items); i++)
        if (strcmp(wb_json_str_or(wb_json_at(items, i), "name", ""), name) == 0)
            return wb_json_at(items, i);
    return NULL;
}

static char *sentence_of(const wb_json *answer, const struct wb_value_question *q)
{
    const char *key = isnan(q->slo_p99_ms) ? "cheapest" : "cheapest_at_slo";
    const char *name = wb_json_str_or(answer, key, NULL);
    const wb_json *item = name ? item_named(wb_json_get(answer, "items"), name) : NULL;
    const char *currency = q->book->currency, *date = q->book->date;
    double cost = wb_json_real_or(item, "cost_per_million_ops", NAN);

    if (item == NULL)
        return wb_strf(isnan(q->slo_p99_ms) ? "nothing can be priced by the book of %s"
                                            : "no arm with a price by the book of %s keeps the SLO",
                       date);
    if (isnan(q->slo_p99_ms))
        return wb_strf("%s is the cheapest, at %.4g %s for a million operations by prices of %s; "
                       "no latency was asked for",
                       name, cost, currency, date);
    return wb_strf("%s is the cheapest with a p99 of at most %g ms: %.4g %s for a million "
                   "operations by prices of %s",
                   name, q->slo_p99_ms, cost, currency, date);
}

static int price_all(struct work *w, wb_json **out, struct wb_err *err)
{
    static const char *const same[] = {
        "cheapest",   "cheapest_reason", "cheapest_at_slo", "cheapest_at_slo_reason",
        "slo_p99_ms", "pareto",          "pareto_latency"};
    WB_AUTO_JSON wb_json *question = wb_json_object(), *priced = NULL;
    WB_AUTO_FREE char *sentence = NULL;
    const wb_json *items, *notes;
    wb_json *answer;

    wb_json_set(question, "items", wb_json_ref(w->asked));
    if (!isnan(w->q->slo_p99_ms))
        wb_json_set_real(question, "slo_p99_ms", w->q->slo_p99_ms);
    if (wb_stats_price(question, &priced, err) < 0)
        return -err->code;
    items = wb_json_get(priced, "items");
    for (size_t i = 0; i < wb_json_len(items); i++)
        copy_price(wb_json_at(items, i), wb_json_at(w->known, i));
    answer = wb_answer_new((size_t)wb_json_int_or(priced, "n", 0), "price-performance");
    wb_json_set(answer, "book", book_json(w->q->book));
    wb_json_set(answer, "items", wb_json_ref(w->known));
    for (size_t i = 0; i < WB_LEN(same); i++)
        if (wb_json_get(priced, same[i]) != NULL)
            wb_json_set(answer, same[i], wb_json_ref(wb_json_get(priced, same[i])));
    notes = wb_json_get(priced, "warnings");
    for (size_t i = 0; i < wb_json_len(notes); i++)
        if (strcmp(wb_json_str_or(wb_json_at(notes, i), "code", ""), "no-slo") != 0)
            wb_json_push(w->warnings, wb_json_ref(wb_json_at(notes, i)));
    if (isnan(w->q->slo_p99_ms))
        wb_analysis_warn(w->warnings, "no-slo",
                         "without a latency to keep (--slo) the cheapest may be the slowest");
    sentence = sentence_of(answer, w->q);
    wb_answer_end(answer, sentence, wb_json_ref(w->warnings));
    *out = answer;
    return 0;
}

int wb_campaign_value(const struct wb_value_source *sources, size_t n,
                      const struct wb_value_question *q, wb_json **out, struct wb_err *err)
{
    struct work w = {
        .q = q, .asked = wb_json_array(), .known = wb_json_array(), .warnings = wb_json_array()};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_source(&w, &sources[i], err);
    if (rc == 0)
        rc = price_all(&w, out, err);
    wb_json_free(w.asked);
    wb_json_free(w.known);
    wb_json_free(w.warnings);
    return rc;
}

/* ---- for people ---- */

static bool in_list(const wb_json *names, const char *name)
{
    for (size_t i = 0; i < wb_json_len(names); i++)
        if (strcmp(wb_json_string(wb_json_at(names, i)), name) == 0)
            return true;
    return false;
}

static void print_item(struct wb_table *t, const wb_json *report, const wb_json *it)
{
    const wb_json *ci = wb_json_get(it, "cost_per_million_ops_ci95");
    const char *name = wb_json_str_or(it, "name", ""), *reason = wb_json_str_or(it, "reason", NULL);
    bool rate = in_list(wb_json_get(report, "pareto"), name);
    bool latency = in_list(wb_json_get(report, "pareto_latency"), name);
    bool misses = wb_json_get(it, "meets_slo") != NULL &&
                  wb_json_type(wb_json_get(it, "meets_slo")) == WB_JSON_BOOL &&
                  !wb_json_bool_or(it, "meets_slo", true);
    struct wb_buf b = WB_BUF_INIT(200);

    wb_table_row(t);
    wb_table_cell(t, "%s", name);
    wb_text_cell(t, wb_json_get(it, "per_hour"));
    if (wb_json_is_number(wb_json_get(it, "throughput_per_s")))
        wb_format_rate(wb_json_real_or(it, "throughput_per_s", 0), &b);
    else
        wb_buf_addc(&b, '-');
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
    wb_text_cell(t, wb_json_get(it, "p99_ms"));
    wb_text_cell(t, wb_json_get(it, "cost_per_million_ops"));
    if (wb_json_len(ci) == 2)
        wb_table_cell(t, "%.4g to %.4g", wb_json_number(wb_json_at(ci, 0), NAN),
                      wb_json_number(wb_json_at(ci, 1), NAN));
    else
        wb_table_cell(t, "-");
    if (reason != NULL || misses)
        wb_table_cell(t, "%s", reason ? "no figure" : "misses the SLO");
    else
        wb_table_cell(t, "%s%s%s",
                      rate      ? "not beaten in rate"
                      : latency ? "not beaten in"
                                : "",
                      rate && latency ? ", "
                      : latency       ? " "
                                      : "",
                      latency ? "latency" : "");
}

void wb_campaign_value_print(const wb_json *report, int width, struct wb_buf *out)
{
    const wb_json *items = wb_json_get(report, "items"), *book = wb_json_get(report, "book");
    const char *currency = wb_json_str_or(book, "currency", "");
    WB_AUTO_FREE char *title =
        wb_strf("Prices of %s in %s: book '%s', from %s", wb_json_str_or(book, "date", ""),
                currency, wb_json_str_or(book, "name", ""), wb_json_str_or(book, "source", ""));
    WB_AUTO_FREE char *hour = wb_strf("%s/h", currency);
    WB_AUTO_FREE char *million = wb_strf("%s/M ops", currency);
    struct wb_table *t = wb_table_new();

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_text_wrapped(out, "", 0, title, width);
    wb_buf_addc(out, '\n');
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, hour, WB_RIGHT);
    wb_table_column(t, "throughput", WB_RIGHT);
    wb_table_column(t, "p99 ms", WB_RIGHT);
    wb_table_column(t, million, WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_RIGHT);
    wb_table_column(t, "", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(items); i++)
        print_item(t, report, wb_json_at(items, i));
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
    wb_text_sentence(out, report, width);
    wb_text_notes(out, wb_json_get(report, "warnings"), width);
}
