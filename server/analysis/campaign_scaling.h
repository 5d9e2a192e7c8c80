/*
 * Scaling of a campaign: throughput over the number of instances, or over a factor with numbers,
 * one curve for each combination of everything else.
 */
#ifndef WB_ANALYSIS_CAMPAIGN_SCALING_H
#define WB_ANALYSIS_CAMPAIGN_SCALING_H

#include "server/base/json.h"

struct wb_scaling_question {
    const char *metric; /* NULL: the throughput that stands for the runs */
    const char *over;   /* "instances" or a factor; NULL: the one with the most different numbers */
};

/*
 * Over plan and summaries as wb_campaign_report takes them:
 *   {campaign, study, n, over, metric, unit, method,
 *    curves: [{name, arms [label], n, keys of stats scaling, sentence, limited [{arm, by, text,
 *              runs}], warnings}],
 *    comparisons: [{curve, against, at, measured_ratio, fitted_ratio}],
 *    left_out: [{run, arm, why}], analysis_version, warnings}
 * WB_INVALID when the arms differ in no number, or `over` or the metric is not there (the text
 * names what is). *out is owned.
 */
int wb_campaign_scaling(const wb_json *plan, const wb_json *summaries,
                        const struct wb_scaling_question *q, wb_json **out,
                        struct wb_err *err) WB_MUST_CHECK;
void wb_campaign_scaling_print(const wb_json *report, int width, struct wb_buf *out);

#endif
