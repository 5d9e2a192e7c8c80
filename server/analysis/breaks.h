/*
 * All breaks of a sequence without gaps: E-divisive applied to each part again, and a look at the
 * last values. What counts as a change for people (size, direction, identity) is decided later.
 */
#ifndef WB_ANALYSIS_BREAKS_H
#define WB_ANALYSIS_BREAKS_H

#include <stddef.h>

#include "server/analysis/ediv.h"

#define WB_BREAKS_ALPHA 0.01
#define WB_BREAKS_TAIL_ALPHA 0.002
#define WB_BREAKS_LEAST 3

struct wb_break {
    size_t at; /* first value of the new level */
    double p;
    const char *by; /* static: "permutation", "t-test" (short parts), "tail" */
};

/* Writes the breaks of v in order to out (room for n / least); returns how many. least: values a
 * level has at least; correlation of neighbours around the levels, 0: none, so that single values
 * are exchanged in the test instead of blocks. n <= WB_EDIV_MAX. */
size_t wb_breaks_find(const double *v, size_t n, size_t least, double correlation,
                      struct wb_break *out);

#endif
