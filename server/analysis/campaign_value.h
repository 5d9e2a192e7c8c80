/*
 * What the operations of measured arms cost by a price book: price and performance of one campaign,
 * or of several on different hosts.
 */
#ifndef WB_ANALYSIS_CAMPAIGN_VALUE_H
#define WB_ANALYSIS_CAMPAIGN_VALUE_H

#include "server/analysis/book.h"
#include "server/base/json.h"

struct wb_value_source {
    const wb_json *plan, *summaries; /* as wb_campaign_report takes them */
    const char *prefix;              /* goes before the labels of its arms, or NULL */
    const char *arm;                 /* only this one, or NULL */
};

struct wb_value_question {
    const struct wb_book *book;
    const char *metric; /* a throughput; NULL: the best one within slo, else what stands for the
                           runs */
    double slo_p99_ms;  /* NaN: none */
    int64_t hosts;      /* database hosts that are paid for; 0: as the plan says, else 1 */
};

/*
 *   {n, method, book {name, date, currency, source}, slo_p99_ms,
 *    items: [{name, campaign, arm, host_class, hosts, owned, per_hour, phase, throughput_per_s,
 *             throughput_ci95, p99_ms, meets_slo, cost_per_million_ops, cost_per_million_ops_ci95,
 *             ops_per_currency_unit, cost_per_month_per_1000_ops_s, reason?}],
 *    cheapest, cheapest_at_slo, pareto, pareto_latency, sentence, analysis_version, warnings}
 * Figures are in the currency of the book. *out is owned.
 */
int wb_campaign_value(const struct wb_value_source *sources, size_t n,
                      const struct wb_value_question *q, wb_json **out,
                      struct wb_err *err) WB_MUST_CHECK;
void wb_campaign_value_print(const wb_json *report, int width, struct wb_buf *out);

#endif
