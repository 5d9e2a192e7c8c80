/* `stats price`: cost of operations, with intervals, and the choices that are not beaten. Never a
 * ranking by cost alone: throughput only counts at a latency that is good enough. */
#include "server/analysis/price.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define ITEMS_MAX 2000
#define MONEY_MAX 1e12

double wb_owned_per_hour(const struct wb_owned_price *p)
{
    return p->purchase / (p->years * WB_HOURS_OF_YEAR) + p->power_w / 1000 * p->per_kwh;
}

double wb_cost_per_million(double per_hour, double ops_per_s)
{
    return per_hour / 3600 / ops_per_s * 1e6;
}

static bool beats(const struct wb_choice *a, const struct wb_choice *b, double sign)
{
    double va = a->value * sign, vb = b->value * sign;

    return a->cost <= b->cost && va >= vb && (a->cost < b->cost || va > vb);
}

void wb_pareto(struct wb_choice *v, size_t n, bool value_high)
{
    for (size_t i = 0; i < n; i++) {
        v[i].in_set = !isnan(v[i].cost) && !isnan(v[i].value);
        for (size_t k = 0; k < n && v[i].in_set; k++)
            if (!isnan(v[k].cost) && !isnan(v[k].value))
                v[i].in_set = !beats(&v[k], &v[i], value_high ? 1 : -1);
    }
}

/* ---- reading ---- */

struct item {
    char *name;
    double per_hour, rate, p99, rate_lo, rate_hi; /* NaN: not given */
    double cost;                                  /* of a million operations; NaN: none */
    const char *reason;                           /* why there is none */
};

/* Owned hardware at `at`; *have says whether its keys are there at all. */
static int read_owned(const wb_json *doc, const char *at, bool *have, double *per_hour,
                      struct wb_err *err)
{
    struct wb_owned_price p = {0};

    *have = wb_json_get(doc, "purchase_usd") != NULL;
    if (!*have)
        return 0;
    if (wb_in_need_real(doc, at, "purchase_usd", 0, MONEY_MAX, &p.purchase, err) < 0 ||
        wb_in_need_real(doc, at, "years", 1e-3, 100, &p.years, err) < 0 ||
        wb_in_real(doc, at, "power_w", 0, 1e9, &p.power_w, err) < 0 ||
        wb_in_real(doc, at, "usd_per_kwh", 0, 1e6, &p.per_kwh, err) < 0)
        return -WB_INVALID;
    *per_hour = wb_owned_per_hour(&p);
    return 0;
}

/* throughput_ci95: [lo, hi] or {lo, hi}. */
static int read_interval(const wb_json *doc, const char *at, struct item *it, struct wb_err *err)
{
    const wb_json *ci = wb_json_get(doc, "throughput_ci95");
    bool list = wb_json_type(ci) == WB_JSON_ARRAY, object = wb_json_type(ci) == WB_JSON_OBJECT;
    const wb_json *lo = list ? wb_json_at(ci, 0) : wb_json_get(ci, "lo");
    const wb_json *hi = list ? wb_json_at(ci, 1) : wb_json_get(ci, "hi");

    if (wb_json_type(ci) == WB_JSON_NULL)
        return 0;
    if ((!list && !object) || (list && wb_json_len(ci) != 2) || !wb_json_is_number(lo) ||
        !wb_json_is_number(hi) || wb_json_number(lo, 0) > wb_json_number(hi, 0))
        return wb_fail(err, WB_INVALID, "%s/throughput_ci95: must be [low, high]", at);
    it->rate_lo = wb_json_number(lo, NAN);
    it->rate_hi = wb_json_number(hi, NAN);
    return 0;
}

static int read_item(const wb_json *doc, size_t i, struct item *it, wb_json *warnings,
                     struct wb_err *err)
{
    static const char *const known[] = {
        "name",         "usd_per_hour", "throughput_per_s", "p99_ms",      "throughput_ci95",
        "purchase_usd", "years",        "power_w",          "usd_per_kwh", NULL};
    WB_AUTO_FREE char *at = wb_strf("/items/%zu", i);
    bool owned;

    *it = (struct item){
        .per_hour = NAN, .rate = NAN, .p99 = NAN, .cost = NAN, .rate_lo = NAN, .rate_hi = NAN};
    it->name = wb_strdup(wb_json_str_or(doc, "name", at));
    if (wb_in_real(doc, at, "usd_per_hour", -MONEY_MAX, MONEY_MAX, &it->per_hour, err) < 0 ||
        wb_in_real(doc, at, "throughput_per_s", -1e15, 1e15, &it->rate, err) < 0 ||
        wb_in_real(doc, at, "p99_ms", 0, 1e15, &it->p99, err) < 0 ||
        read_interval(doc, at, it, err) < 0)
        return -WB_INVALID;
    if (read_owned(doc, at, &owned, isnan(it->per_hour) ? &it->per_hour : &(double){0}, err) < 0)
        return -WB_INVALID;
    wb_in_known(doc, at, known, warnings);
    if (isnan(it->per_hour))
        it->reason = "no price is given";
    else if (it->per_hour < WB_SIZE_LEAST)
        it->reason = it->per_hour < 0 ? "the price is negative" : "a price of 0 is no price";
    else if (isnan(it->rate))
        it->reason = "no throughput is given";
    else if (it->rate < WB_SIZE_LEAST)
        it->reason = "the throughput is not above 0";
    else
        it->cost = wb_cost_per_million(it->per_hour, it->rate);
    return 0;
}

/* ---- answering ---- */

static wb_json *item_json(const struct item *it)
{
    wb_json *row = wb_json_object();

    wb_json_set_str(row, "name", it->name);
    if (isnan(it->per_hour))
        wb_json_set_reason(row, "usd_per_hour", "no price is given");
    else
        wb_json_set_real(row, "usd_per_hour", it->per_hour);
    if (it->reason != NULL) {
        wb_json_set_reason(row, "usd_per_million_ops", it->reason);
        wb_json_set_reason(row, "usd_per_million_ops_ci95", it->reason);
        wb_json_set_reason(row, "ops_per_usd", it->reason);
        wb_json_set_reason(row, "usd_per_month_per_1000_ops_s", it->reason);
        wb_json_set_str(row, "reason", it->reason);
        return row;
    }
    wb_json_set_real(row, "usd_per_million_ops", it->cost);
    if (it->rate_lo > 0) {
        wb_json *ci = wb_json_array(); /* the higher rate is the lower cost */
        wb_json_push(ci, wb_json_real(wb_cost_per_million(it->per_hour, it->rate_hi)));
        wb_json_push(ci, wb_json_real(wb_cost_per_million(it->per_hour, it->rate_lo)));
        wb_json_set(row, "usd_per_million_ops_ci95", ci);
    } else {
        wb_json_set_reason(row, "usd_per_million_ops_ci95",
                           isnan(it->rate_lo) ? "no throughput_ci95 is given"
                                              : "the throughput interval reaches 0");
    }
    wb_json_set_real(row, "ops_per_usd", it->rate * 3600 / it->per_hour);
    wb_json_set_real(row, "usd_per_month_per_1000_ops_s",
                     it->per_hour * WB_HOURS_OF_MONTH / it->rate * 1000);
    return row;
}

/* The least cost among the items with p99 at or below slo (NaN: all); of equals the first by name.
 * NULL when there is none. */
static const struct item *cheapest(const struct item *items, size_t n, double slo)
{
    const struct item *best = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct item *it = &items[i];
        if (isnan(it->cost) || (!isnan(slo) && !(it->p99 <= slo)))
            continue;
        if (best == NULL || it->cost < best->cost ||
            (it->cost == best->cost && strcmp(it->name, best->name) < 0))
            best = it;
    }
    return best;
}

/* Names of the choices that are not beaten, in the order of the input. */
static wb_json *pareto_json(const struct item *items, size_t n, bool latency)
{
    WB_AUTO_FREE struct wb_choice *v = wb_calloc(n, sizeof(*v));
    wb_json *names = wb_json_array();

    for (size_t i = 0; i < n; i++) {
        bool priced = items[i].reason == NULL;
        v[i].cost = !priced ? NAN : latency ? items[i].cost : items[i].per_hour;
        v[i].value = latency ? items[i].p99 : items[i].rate;
    }
    wb_pareto(v, n, !latency);
    for (size_t i = 0; i < n; i++)
        if (v[i].in_set)
            wb_json_push(names, wb_json_str(items[i].name));
    return names;
}

static void set_choices(const struct item *items, size_t n, double slo, wb_json *answer,
                        wb_json *warnings)
{
    const struct item *any = cheapest(items, n, NAN);
    const struct item *good = isnan(slo) ? NULL : cheapest(items, n, slo);

    if (any != NULL)
        wb_json_set_str(answer, "cheapest", any->name);
    else
        wb_json_set_reason(answer, "cheapest", "no item has both a price and a throughput");
    if (!isnan(slo))
        wb_json_set_real(answer, "slo_p99_ms", slo);
    if (good != NULL)
        wb_json_set_str(answer, "cheapest_at_slo", good->name);
    else
        wb_json_set_reason(answer, "cheapest_at_slo",
                           isnan(slo) ? "no slo_p99_ms is given" : "no item meets the SLO");
    wb_json_set(answer, "pareto", pareto_json(items, n, false));
    wb_json_set(answer, "pareto_latency", pareto_json(items, n, true));
    if (isnan(slo))
        wb_analysis_warn(
            warnings, "no-slo",
            "without slo_p99_ms the cheapest may be the slowest: give the latency that "
            "is good enough");
    if (good != NULL)
        for (size_t i = 0; i < n; i++)
            if (&items[i] != good && items[i].rate_hi > 0 && items[i].p99 <= slo &&
                wb_cost_per_million(items[i].per_hour, items[i].rate_hi) <=
                    (good->rate_lo > 0 ? wb_cost_per_million(good->per_hour, good->rate_lo)
                                       : good->cost))
                wb_analysis_warn(warnings, "overlap",
                                 "the cost of %s may be as low: the intervals overlap",
                                 items[i].name);
}

static char *sentence_of(const struct item *items, size_t n, double slo)
{
    const struct item *best = cheapest(items, n, slo);

    if (best == NULL)
        return wb_strdup(isnan(slo) ? "nothing can be priced"
                                    : "no item with a price meets the SLO");
    if (isnan(slo))
        return wb_strf("%s is the cheapest, at %.4g USD for a million operations; no SLO was asked "
                       "for",
                       best->name, best->cost);
    return wb_strf("%s is the cheapest with a p99 of at most %g ms: %.4g USD for a million "
                   "operations",
                   best->name, slo, best->cost);
}

static int answer_items(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    const wb_json *list;
    struct item *items;
    double slo = NAN;
    size_t n, priced = 0;
    wb_json *answer, *rows;
    int rc = 0;

    if (wb_in_objects(in, "items", ITEMS_MAX, &list, err) < 0 ||
        wb_in_real(in, "", "slo_p99_ms", 0, 1e15, &slo, err) < 0)
        return -WB_INVALID;
    n = wb_json_len(list);
    items = wb_calloc(n, sizeof(*items));
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_item(wb_json_at(list, i), i, &items[i], warnings, err);
    if (rc == 0) {
        WB_AUTO_FREE char *sentence = sentence_of(items, n, slo);
        rows = wb_json_array();
        for (size_t i = 0; i < n; i++) {
            wb_json_push(rows, item_json(&items[i]));
            priced += items[i].reason == NULL;
        }
        answer = wb_answer_new(priced, "price-performance");
        wb_json_set(answer, "items", rows);
        set_choices(items, n, slo, answer, warnings);
        wb_answer_end(answer, sentence, warnings);
        *out = answer;
    }
    for (size_t i = 0; i < n; i++)
        free(items[i].name);
    free(items);
    return rc;
}

static int answer_owned(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *sentence = NULL;
    double per_hour = NAN;
    bool owned;
    wb_json *answer;

    if (read_owned(in, "", &owned, &per_hour, err) < 0)
        return -WB_INVALID;
    answer = wb_answer_new(1, "owned-hardware");
    wb_json_set_real(answer, "usd_per_hour", per_hour);
    wb_json_set_real(answer, "usd_per_month", per_hour * WB_HOURS_OF_MONTH);
    sentence = wb_strf("%.4g USD an hour, as if it were always used", per_hour);
    wb_answer_end(answer, sentence, warnings);
    *out = answer;
    return 0;
}

int wb_stats_price(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {
        "items", "slo_p99_ms", "purchase_usd", "years", "power_w", "usd_per_kwh", NULL};
    bool owned = wb_json_get(in, "purchase_usd") != NULL;
    wb_json *warnings;
    int rc;

    if (wb_in_object(in, "items, or with purchase_usd, years, power_w and usd_per_kwh", err) < 0)
        return -WB_INVALID;
    if (owned && wb_json_get(in, "items") != NULL)
        return wb_fail(err, WB_INVALID, "/purchase_usd: put it into the items, or leave them out");
    warnings = wb_json_array();
    wb_in_known(in, "", known, warnings);
    rc = owned ? answer_owned(in, warnings, out, err) : answer_items(in, warnings, out, err);
    if (rc < 0)
        wb_json_free(warnings);
    return rc;
}

/* ---- for people ---- */

static bool named(const wb_json *names, const char *name)
{
    for (size_t i = 0; i < wb_json_len(names); i++)
        if (strcmp(wb_json_string(wb_json_at(names, i)), name) == 0)
            return true;
    return false;
}

void wb_stats_price_print(const wb_json *answer, int width, struct wb_buf *out)
{
    const wb_json *items = wb_json_get(answer, "items");

    width = width > 0 ? width : WB_TEXT_WIDTH;
    if (items != NULL) {
        struct wb_table *t = wb_table_new();
        wb_table_column(t, "item", WB_LEFT);
        wb_table_column(t, "USD/h", WB_RIGHT);
        wb_table_column(t, "USD/M ops", WB_RIGHT);
        wb_table_column(t, "95 % interval", WB_RIGHT);
        wb_table_column(t, "ops/USD", WB_RIGHT);
        wb_table_column(t, "not beaten in", WB_LEFT);
        for (size_t i = 0; i < wb_json_len(items); i++) {
            const wb_json *it = wb_json_at(items, i);
            const wb_json *ci = wb_json_get(it, "usd_per_million_ops_ci95");
            const char *name = wb_json_str_or(it, "name", "");
            bool rate = named(wb_json_get(answer, "pareto"), name);
            bool latency = named(wb_json_get(answer, "pareto_latency"), name);
            wb_table_row(t);
            wb_table_cell(t, "%s", name);
            wb_text_cell(t, wb_json_get(it, "usd_per_hour"));
            wb_text_cell(t, wb_json_get(it, "usd_per_million_ops"));
            if (wb_json_len(ci) == 2)
                wb_table_cell(t, "%.4g to %.4g", wb_json_number(wb_json_at(ci, 0), NAN),
                              wb_json_number(wb_json_at(ci, 1), NAN));
            else
                wb_table_cell(t, "-");
            wb_text_cell(t, wb_json_get(it, "ops_per_usd"));
            wb_table_cell(t, "%s%s%s", rate ? "rate" : "", rate && latency ? ", " : "",
                          latency ? "latency" : wb_json_str_or(it, "reason", ""));
        }
        wb_table_print(t, width, out);
        wb_table_free(t);
        wb_buf_addc(out, '\n');
    }
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
