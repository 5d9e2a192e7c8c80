/*
 * `stats changes`: where a nightly history changed its level, and what holds now.
 *
 *   {values: [number or null], better?, ids?, annotations?: [{index or id, type, to?}],
 *    min_magnitude_percent?, previous? (an earlier answer), series?, window?}
 *
 * Answer: change_points [{id, index (first of the new level), after_index (last of the old one),
 * first_bad, last_good (ids), before, after, change_percent, change_ci95_percent, kind, p, by,
 * state, first_seen, n [before, after]}], gone, outliers, last_point, suspects, flags,
 * drift_percent, slope, baseline, status, borders (annotations nothing is compared across),
 * values (as given, for a picture).
 *
 * Method: E-divisive over tau and kappa with a seeded permutation test (999 orders, p <= 0.01,
 * levels of at least 3 nights), a test of its own for the last 3 to 8 nights (p <= 0.002), and a
 * t-test where a part is too short for permutations. Points that stand alone are outliers and do
 * not count. A change is told when its medians differ by min_magnitude_percent (2) and 80 % of the
 * pairs of nights are in order; steps that are rather a slope are drift. The same document always
 * gives the same answer; `previous` only names events and tells which are gone.
 */
#ifndef WB_ANALYSIS_CHANGES_H
#define WB_ANALYSIS_CHANGES_H

#include "server/base/json.h"

int wb_stats_changes(const wb_json *in, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
void wb_stats_changes_print(const wb_json *answer, int width, struct wb_buf *out);

#endif
