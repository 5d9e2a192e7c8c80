/*
 * `explain A B`: what else is different between two arms (or runs) whose figures differ. Settings
 * and facts that are constant within each side and differ between them; signals (samples of host,
 * database and load) ranked by how they moved with the metric: Spearman's rank correlation with it
 * over the runs of both sides, and the shift between the sides by the tests of `compare`, with
 * Benjamini-Hochberg over all signals. A cause is never claimed: what moved together moved
 * together.
 */
#ifndef WB_ANALYSIS_EXPLAIN_H
#define WB_ANALYSIS_EXPLAIN_H

#include "server/base/json.h"

#define WB_EXPLAIN_RUNS_MAX 1000 /* of one side */

struct wb_explain_run { /* documents of a record; borrowed; NULL where unreadable */
    const wb_json *summary, *environment, *result;
};
struct wb_explain_side {
    const char *name;        /* for people */
    const wb_json *arm;      /* of the plan */
    const wb_json *workload; /* the arm's, or the plan's */
    const struct wb_explain_run *runs;
    size_t n; /* at most WB_EXPLAIN_RUNS_MAX */
};
struct wb_explain_question {
    const char *metric, *better; /* better may be NULL */
    double threshold_percent;
};

/* base is A, other is B.
 *   {n: [a, b], paired, metric, effect {keys of stats compare}, sentence, method,
 *    settings: [{path, base, other}], facts: [{path, base, other}],
 *    signals: [{name, median_base, median_new, ratio | difference, p, q, rho, moved, follows}],
 *    signals_all, warnings, analysis_version}
 * Signals stand in rank order, at most 200 of them. follows: it changed by the same ratio as the
 * metric, as counters of the work itself do. *out is owned. WB_INVALID without any run on a side.
 */
int wb_explain(const struct wb_explain_side sides[2], const struct wb_explain_question *q,
               wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_explain_print(const wb_json *answer, int width, struct wb_buf *out);

/* Within the room: adds `signals` and `signals_all` to the answer, and what it means to its
 * warnings. effect is that of the metric. */
struct wb_effect;
void wb_explain_signals(const struct wb_explain_side sides[2], const char *metric,
                        const struct wb_effect *effect, wb_json *answer);
/* Values of both sides: paired by campaign and round where that is possible, else all of each.
 * Arrays of side.n; returns whether they are paired. */
struct wb_explain_pairs {
    size_t *at[2]; /* indices of runs, owned */
    size_t n[2];   /* equal when paired */
    bool paired;
};
void wb_explain_pair(const struct wb_explain_side sides[2], struct wb_explain_pairs *out);
void wb_explain_pairs_release(struct wb_explain_pairs *p);
/* Of a summary; NaN when absent. */
double wb_explain_metric(const wb_json *summary, const char *metric);

#endif
