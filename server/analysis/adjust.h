/*
 * Benjamini-Hochberg: the false discovery rate of a family of tests.
 */
#ifndef WB_ANALYSIS_ADJUST_H
#define WB_ANALYSIS_ADJUST_H

#include <stddef.h>

#define WB_FDR 0.05

/* q[i] for each p[i] in [0, 1]. NaN marks a cell that could not be tested: its q is NaN and it does
 * not count to the family. p and q may be the same array. */
void wb_adjust(const double *p, size_t n, double *q);

#endif
