/*
 * Two sets of repeated runs, exactly. Methods: exact Mann-Whitney (unpaired) and exact Wilcoxon
 * signed-rank (paired, on within-round log ratios) with mid-ranks for ties, Hodges-Lehmann ratio
 * with the matching exact interval, A12, Benjamini-Hochberg over rows, verdict from interval and
 * practical threshold. The JSON forms are the contract of `weighbridge stats compare`.
 */
#ifndef WB_ANALYSIS_COMPARE_H
#define WB_ANALYSIS_COMPARE_H

#include "server/base/json.h"

#define WB_ANALYSIS_VERSION 3 /* raised whenever the same input gets another answer */

/* `stats compare` on one document ({base,new,better,...}, paired {rounds_base,rounds_new}, or
 * {rows}). *out is owned by the caller. WB_INVALID (the message starts with a JSON pointer) on bad
 * input. */
int wb_stats_compare(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* `stats adjust`: {p:[]} -> {q:[], rejected:[]}. */
int wb_stats_adjust(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* An answer of wb_stats_compare for people, at most width columns. */
void wb_stats_compare_print(const wb_json *answer, int width, struct wb_buf *out);
void wb_stats_adjust_print(const wb_json *answer, int width, struct wb_buf *out);

/*
 * The report of a campaign over its run summaries (array, as wb_store_list gives) and its plan
 * (as wb_plan_json gives: campaign, study, arms [{label, factors, form}], contrasts [{name, arm,
 * against, metric, better, primary}], rounds, threshold_percent, accept_noisy). Counted are the
 * runs of the last attempt of their round with outcome ok or target-missed and validity valid (or
 * noisy where the study accepts it); pairs are rounds in which both arms have such a run.
 *
 *   {campaign, study, n, rounds, threshold_percent, method, analysis_version,
 *    runs {found, used, noisy, left_out: [{run, arm, round, attempt, why}]},
 *    headline {throughput, p99},
 *    arms: [{label, form, factors, n, runs {planned, ok, used, noisy, left_out: [{run, why}]},
 *            metrics {name: {median, lo, hi, n, unit, better, limited [{by, text, runs}]}}}],
 *    contrasts: [{name, arm, against, metric, unit, primary, limited, keys of stats compare, q,
 *                 sentence}],
 *    warnings: [{code, text}]}
 *
 * Contrasts of the plan with primary true are one family of tests (q); all other metrics of the
 * same arms stand behind them with primary false, a family of their own. A contrast with
 * "paired": false compares all counted runs of the two arms. A figure that was limited by
 * something other than the database is never called equivalent. *out is owned.
 */
int wb_campaign_report(const wb_json *plan, const wb_json *summaries, wb_json **out,
                       struct wb_err *err) WB_MUST_CHECK;
/* The same as tables for people, at most width columns. */
void wb_campaign_report_print(const wb_json *report, int width, struct wb_buf *out);

#endif
