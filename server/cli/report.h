/*
 * A campaign as one HTML file that needs nothing else: no script, no font, no network. Light and
 * dark by the reader's setting; prints. Whatever comes from records goes out as text, never as
 * markup.
 */
#ifndef WB_CLI_REPORT_H
#define WB_CLI_REPORT_H

#include "server/base/json.h"

/* Times at percentiles of one arm, over the runs that count. */
#define WB_CURVE_POINTS 6
struct wb_report_curve {
    const char *arm; /* borrowed */
    size_t runs;
    double median[WB_CURVE_POINTS];                  /* ms, of the runs; NaN where no run has it */
    double lo[WB_CURVE_POINTS], hi[WB_CURVE_POINTS]; /* least and greatest of the runs */
};
/* 50, 90, 95, 99, 99.9, 99.99 */
extern const double wb_curve_percents[WB_CURVE_POINTS];

struct wb_report_page {
    const wb_json *report; /* wb_campaign_report */
    const wb_json *runs;   /* summaries of the campaign */
    const wb_json *environment;
    const struct wb_report_curve *curves;
    size_t ncurves;
    const char *curves_of; /* "response time in phase latency"; NULL: no curves */
    const char *made_at;
};

void wb_report_html(const struct wb_report_page *page, struct wb_buf *out);

/* report_svg.c: the two pictures. They use the page's colours. */
void wb_report_forest(const wb_json *contrasts, struct wb_buf *out);
void wb_report_curves(const struct wb_report_page *page, struct wb_buf *out);

/* Text with everything that is markup or a control character taken out of its power. */
void wb_html_text(const char *text, struct wb_buf *out);
/* The class that a verdict's colour hangs on: "good", "bad", "even", "open". */
const char *wb_verdict_class(const char *verdict);

#endif
