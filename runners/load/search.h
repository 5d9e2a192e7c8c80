/*
 * Which rate to try next when the highest one is looked for that holds a limit of the response
 * time: doubling (or halving) until the limit lies between two rates, bisecting to 2 %, then
 * confirming twice. A rate that does not hold when it is confirmed is given up for a lower one. The
 * search knows nothing of load; it is told how each try ended.
 */
#ifndef WB_LOAD_SEARCH_H
#define WB_LOAD_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/err.h"

#define WB_SEARCH_TIMES 2 /* times */

/* A limit of the response time: the percentile must not be above it. */
struct wb_slo {
    double percentile; /* 0 < p <= 100; 100 is the maximum */
    int64_t limit_ns;
};

/* "p99<5ms", "p99.9<20ms", "max<1s". */
int wb_slo_parse(const char *text, struct wb_slo *out, struct wb_err *err) WB_MUST_CHECK;

enum wb_search_stage {
    WB_SEARCH_BRACKET,
    WB_SEARCH_BISECT,
    WB_SEARCH_CONFIRM,
    WB_SEARCH_FOUND,
    WB_SEARCH_NONE /* no rate held */
};

struct wb_search {
    enum wb_search_stage stage;
    double start_per_s, least_per_s, most_per_s;
    double holds_per_s; /* highest rate that held; 0: none so far */
    double fails_per_s; /* lowest one that did not; 0: none so far */
    int confirmed, given_up;
};

/* least <= start <= most, all above 0. */
void wb_search_init(struct wb_search *s, double start_per_s, double least_per_s, double most_per_s);
/* The rate to try now, of three significant digits; 0 when the search is over (FOUND: the rate is
 * holds_per_s). */
double wb_search_next(const struct wb_search *s);
/* How the try of wb_search_next ended. */
void wb_search_tell(struct wb_search *s, bool held);
const char *wb_search_stage_name(enum wb_search_stage stage);

#endif
