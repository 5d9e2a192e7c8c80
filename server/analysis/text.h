/*
 * Parts of answers for people: wrapped sentences, notes, small pictures in the terminal.
 */
#ifndef WB_ANALYSIS_TEXT_H
#define WB_ANALYSIS_TEXT_H

#include "server/base/json.h"
#include "server/base/table.h"

#define WB_TEXT_WIDTH 80 /* when none is known */

/* Words of text on lines of at most width columns behind `first`; lines after the first are
 * indented. Control bytes become '?': nothing of a record drives the terminal. Ends the line. */
void wb_text_wrapped(struct wb_buf *out, const char *first, int indent, const char *text,
                     int width);
/* The warnings of an answer under "Notes", with an empty line before; nothing when there are
 * none. */
void wb_text_notes(struct wb_buf *out, const wb_json *warnings, int width);
/* "sentence" of an answer, wrapped. */
void wb_text_sentence(struct wb_buf *out, const wb_json *answer, int width);

/* Six significant digits, "-" for null and other types. */
void wb_text_number(struct wb_buf *out, const wb_json *value);
/* A cell with the same. */
void wb_text_cell(struct wb_table *t, const wb_json *value);
/* A row of a two-column table: name, value (six digits), and the interval [lo, hi] beside it when
 * it is a list of two. */
void wb_text_figure(struct wb_table *t, const char *name, const wb_json *value,
                    const wb_json *interval);

/* One line of blocks: low to high in eight steps, a blank for NaN. More values than `width` are
 * averaged in groups. No end of line. */
void wb_text_spark(struct wb_buf *out, const double *v, size_t n, int width);

struct wb_plot {
    const double *x, *y; /* points that were measured */
    size_t n;
    const double *line;  /* y of a curve at `columns` even steps from 0 to x_max; may be NULL */
    double x_max, y_max; /* both > 0; both axes begin at 0 */
    int columns, rows;
};
/* Points as 'o', the curve as '.', with axes and their ends. */
void wb_text_plot(struct wb_buf *out, const struct wb_plot *p);

#endif
