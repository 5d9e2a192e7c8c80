/*
 * The question of `stats histogram` and what was counted for it. Only for histogram*.c.
 */
#ifndef WB_ANALYSIS_HISTOGRAM_PARTS_H
#define WB_ANALYSIS_HISTOGRAM_PARTS_H

#include "server/analysis/hist_sum.h"

#define WB_HISTOGRAM_PERCENTILES 200
#define WB_HISTOGRAM_TAGS 200

struct wb_tagged {
    char *tag; /* NULL: entries without one */
    size_t entries;
    struct wb_hist_sum sum;
};

struct wb_histogram {
    const wb_json *in;
    double percentiles[WB_HISTOGRAM_PERCENTILES];
    size_t npercentiles;
    int64_t lowest, highest; /* 0: not given */
    int digits;              /* -1: not given */
    const char *tag;         /* NULL: all; "": those without one */
    double from_s, to_s;

    struct wb_hist h, corrected; /* what was counted; owned */
    bool made, has_corrected;
    size_t entries;
    struct wb_tagged *tags;
    size_t ntags;
    bool has_start;
    double start_time;
    wb_json *bad_lines;
    size_t bad;
};

/* histogram_input.c: reads options and counts what the document holds. */
int wb_histogram_count(struct wb_histogram *q, struct wb_err *err) WB_MUST_CHECK;
/* histogram_logs.c: counts the logs. */
int wb_histogram_logs(struct wb_histogram *q, struct wb_err *err) WB_MUST_CHECK;

#endif
