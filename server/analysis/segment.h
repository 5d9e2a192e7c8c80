/*
 * A sequence cut into levels: the division with the least sum of weighted squares around the means
 * of its parts plus a penalty for each part. Exact (dynamic programming), O(n^2).
 */
#ifndef WB_ANALYSIS_SEGMENT_H
#define WB_ANALYSIS_SEGMENT_H

#include <stddef.h>

#define WB_SEGMENT_MAX 5000

/* v: n values (at most WB_SEGMENT_MAX) with weights w > 0; least: values a part has at least.
 * Writes where each part begins to starts (room for n), the first is 0; returns the number of
 * parts, 0 when n is 0. A part shorter than least is made only when n is. */
size_t wb_segment(const double *v, const double *w, size_t n, size_t least, double penalty,
                  size_t *starts);

#endif
