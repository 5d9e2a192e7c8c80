/*
 * From references (refs.h) to answers: what `compare`, `scaling`, `value`, `explain`, `trend`
 * and the findings say of records, for the command line and over REST. Answers are kept by the
 * content of what they are made from (cache.h).
 */
#ifndef WB_ANALYSIS_INQUIRY_H
#define WB_ANALYSIS_INQUIRY_H

#include <stdbool.h>

#include "server/analysis/book.h"
#include "server/analysis/campaign_scaling.h"
#include "server/record/store.h"

struct wb_cache;

struct wb_inquiry {
    struct wb_store *store;
    struct wb_cache *cache; /* or NULL: nothing is kept */
};

struct wb_compare_question {
    const char *metric;       /* that decides; NULL: of the plan's first primary contrast */
    double threshold_percent; /* NaN: the study's */
    bool force;               /* compare also what does not compare; the answer has `forced` */
};

/* The report (wb_campaign_report) of one campaign, or of each reference against the first. *report
 * is owned. Errors as those of references, WB_CONFLICT for what must not be compared, WB_INVALID
 * for a metric that is not there or arms that do not meet. */
int wb_inquiry_compare(const struct wb_inquiry *j, char *const *refs, size_t n,
                       const struct wb_compare_question *q, wb_json **report,
                       struct wb_err *err) WB_MUST_CHECK;

/* wb_campaign_scaling of a campaign. */
int wb_inquiry_scaling(const struct wb_inquiry *j, const char *ref,
                       const struct wb_scaling_question *q, wb_json **out,
                       struct wb_err *err) WB_MUST_CHECK;

struct wb_inquiry_value {
    const struct wb_book *book;
    const char *metric;
    double slo_p99_ms; /* NaN: none */
    int64_t hosts;     /* 0: as the plan says */
    bool force;
};
/* wb_campaign_value of campaigns or arms of them. */
int wb_inquiry_value(const struct wb_inquiry *j, char *const *refs, size_t n,
                     const struct wb_inquiry_value *q, wb_json **out,
                     struct wb_err *err) WB_MUST_CHECK;

/* wb_explain of two arms, campaigns of one arm, or runs; metric NULL: that of the plan's first
 * contrast. */
int wb_inquiry_explain(const struct wb_inquiry *j, const char *a, const char *b, const char *metric,
                       wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* The whole key of a series from its beginning (also with series: before it), from CAMPAIGN/ARM, or
 * from a run. Caller frees. */
int wb_inquiry_series(const struct wb_inquiry *j, const char *typed, char **key,
                      struct wb_err *err) WB_MUST_CHECK;

struct wb_history_question {
    const char *metric;         /* NULL: the one that stands for the runs; of findings: all */
    const char *since;          /* RFC 3339 time in UTC; NULL: all */
    double min_percent;         /* NaN: the default of stats changes */
    bool accept_noisy;          /* count noisy runs, too */
    const wb_json *annotations; /* array or NULL: beside those of the records */
    const wb_json *previous;    /* an earlier answer to the same question, or NULL */
};
/* wb_trend of a series, named as wb_inquiry_series takes it. */
int wb_inquiry_trend(const struct wb_inquiry *j, const char *series,
                     const struct wb_history_question *q, wb_json **out,
                     struct wb_err *err) WB_MUST_CHECK;
/* wb_findings of one series, or of all (NULL). */
int wb_inquiry_findings(const struct wb_inquiry *j, const char *series,
                        const struct wb_history_question *q, wb_json **out,
                        struct wb_err *err) WB_MUST_CHECK;

#endif
