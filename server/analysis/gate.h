/*
 * A report judged for a build: may it go on?
 */
#ifndef WB_ANALYSIS_GATE_H
#define WB_ANALYSIS_GATE_H

#include "server/base/json.h"

enum wb_gate_result {
    WB_GATE_PASS,
    WB_GATE_WORSE,        /* a contrast is worse than its reference */
    WB_GATE_INCONCLUSIVE, /* none is worse, but one is not decided, and that was asked for */
    WB_GATE_NOT_MEASURED  /* none is worse, but one could not be measured: no run that counts, or
                             figures limited by something other than the database */
};

struct wb_gate_rules {
    bool fail_on_inconclusive;
    bool all_metrics; /* judge the other metrics of the contrasts, too */
};

/*
 * report: a campaign's report (wb_campaign_report). The answer is
 *   {result ("pass", "worse", "inconclusive", "not-measured"), sentence, campaign, study,
 *    threshold_percent, judged, cases: [{arm, metric, against, status ("passed", "failed",
 *    "skipped", "error"), verdict, decides, text, value, base, unit, ratio, lo, hi, p, q, n}],
 *    warnings, forced? (fields that must match and did not), n, method, analysis_version}.
 * A case that decides is of a primary contrast, unless all_metrics. Owned.
 */
enum wb_gate_result wb_gate(const wb_json *report, const struct wb_gate_rules *rules,
                            wb_json **out);
/* One sentence and a table. */
void wb_gate_print(const wb_json *gate, int width, struct wb_buf *out);
/* JUnit XML: a suite per arm, a case per metric; failed is `failure`, skipped `skipped`, error
 * `error`; value, interval and margin are properties. */
void wb_gate_junit(const wb_json *gate, struct wb_buf *out);
/* Markdown for a page of a build or a comment: the first line is the verdict. At most 60,000
 * bytes; cases that did not fail are folded, and cut when they are too many. */
void wb_gate_markdown(const wb_json *gate, struct wb_buf *out);
/* Lines for GitHub's log, at most ten. */
void wb_gate_github(const wb_json *gate, struct wb_buf *out);

#endif
