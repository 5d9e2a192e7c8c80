/*
 * Columns of numbers from CSV text: the other way to ask `stats`.
 */
#ifndef WB_ANALYSIS_CSV_H
#define WB_ANALYSIS_CSV_H

#include "server/base/json.h"

/* Reads comma-separated text with a header row into {column: [values]}: numbers, null for an empty
 * cell, text in the columns named name, unit and better. Quotes as in RFC 4180. WB_INVALID; the
 * message begins with "line N: ". *out is owned. */
int wb_csv_columns(const char *text, size_t n, wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* The line, from 1, on which a row (from 0, empty lines are none) of such a table begins; 0 when
 * there is no such row. */
size_t wb_csv_line(const char *text, size_t n, size_t row);

/* What `stats compare` makes of columns: base and new (or rounds_base and rounds_new), one row of
 * input for each name where there is a column of names. Owned; never NULL. */
wb_json *wb_csv_compare(const wb_json *columns);

#endif
