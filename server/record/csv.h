/*
 * Cells of CSV (RFC 4180) that are what they look like in a spreadsheet, too: numbers stay numbers,
 * and no text is taken for a formula.
 */
#ifndef WB_RECORD_CSV_H
#define WB_RECORD_CSV_H

#include "server/base/json.h"

/* A text. One that begins with = + - @, a tab or a carriage return, blanks (also those of Unicode)
 * apart, gets an apostrophe in front; quotes where they are needed. */
void wb_csv_text(const char *text, struct wb_buf *out);
/* A number or a boolean as JSON has it, a text, nothing for null and what is no scalar. */
void wb_csv_cell(const wb_json *value, struct wb_buf *out);

#endif
