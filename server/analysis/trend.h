/*
 * Histories out of records: the nights of one series, and what changed in all of them.
 *
 * A night is a campaign: its value of a series is the median of the runs that count there (as in a
 * campaign's report). A campaign without such a run is a gap. Annotations are {id, type, at}: of
 * type accepted, excluded or environment; others are left alone. Their id is a campaign or run; a
 * change's own id (accepted); or a host or host class, whose environment changed at `at`. An
 * excluded run is left out of its night.
 */
#ifndef WB_ANALYSIS_TREND_H
#define WB_ANALYSIS_TREND_H

#include "server/base/json.h"

struct wb_cache;
struct wb_trend_question {
    const char *series;         /* whole key */
    const char *metric;         /* NULL: the one that stands for the runs */
    const char *since;          /* RFC 3339 time; NULL: all */
    const wb_json *annotations; /* array or NULL */
    const wb_json *previous;    /* an earlier answer of the same question or NULL */
    bool accept_noisy;
    double min_percent;     /* NaN: the default of stats changes */
    struct wb_cache *cache; /* of answers, or NULL */
};

/*
 * summaries: run summaries, as wb_store_list gives. The answer is that of `stats changes` over the
 * nights (its ids are campaigns), and
 *   series {key, study, arm, recipe, host_class}, metric, unit, better,
 *   points [{campaign, at, version, commit, built, digest, value, lo, hi, n, left_out: [{run,
 *   why}]}]. Points stand in the order of their builds (subject.h), those before a change of
 *   environment before those after it. Where the runs name commits, a change has
 *   last_good_commit and first_bad_commit.
 * WB_NOT_FOUND: no run of the series has the metric.
 */
int wb_trend(const wb_json *summaries, const struct wb_trend_question *q, wb_json **out,
             struct wb_err *err) WB_MUST_CHECK;
void wb_trend_print(const wb_json *answer, int width, struct wb_buf *out);

/* All series, newest run first: [{id (the key), study, arm, recipe {name, version}, host_class,
 * campaigns, runs, first_at, last_at}]. Owned. */
wb_json *wb_series_list(const wb_json *summaries);

/*
 * Findings: changes of level of the metrics of all series (of the one in q->series when it is
 * given), those of the same window and direction in one: [{id, kind, state, first_bad, last_good,
 * at, first_seen, worst_percent, changes: [{series, study, arm, metric, unit, before, after,
 * change_percent, change_ci95_percent, p, q, id}]}], worst first. q is over all series and metrics
 * that were looked at. Owned.
 */
int wb_findings(const wb_json *summaries, const struct wb_trend_question *q, wb_json **out,
                struct wb_err *err) WB_MUST_CHECK;
/* The same from parts, whole series each, that with the newest run first; the same parts give the
 * same findings whether they come together or one by one. q is borrowed until the end. */
struct wb_finder;
struct wb_finder *wb_finder_new(const struct wb_trend_question *q);
int wb_finder_add(struct wb_finder *f, const wb_json *summaries, struct wb_err *err) WB_MUST_CHECK;
wb_json *wb_finder_end(struct wb_finder *f);
void wb_finder_free(struct wb_finder *f);
void wb_findings_print(const wb_json *findings, int width, struct wb_buf *out);

#endif
