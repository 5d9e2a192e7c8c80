/*
 * Tables for a terminal: columns sized to content, at most `width` wide in all (80 when unknown),
 * numbers right-aligned, the widest text column cut with an ellipsis when it does not fit. Where
 * even that is not enough, each row becomes a block of lines "head  cell", so that nothing is lost.
 * UTF-8 aware (display width of one per code point).
 */
#ifndef WB_BASE_TABLE_H
#define WB_BASE_TABLE_H

#include <stdbool.h>

#include "server/base/buf.h"

enum wb_align { WB_LEFT, WB_RIGHT };
enum wb_tint { WB_PLAIN, WB_GOOD, WB_CAUTION, WB_BAD, WB_FAINT };
struct wb_table;

struct wb_table *wb_table_new(void);
void wb_table_column(struct wb_table *t, const char *head, enum wb_align align);
/* Starts a new row; then one cell per column (missing ones are empty). */
void wb_table_row(struct wb_table *t);
void wb_table_cell(struct wb_table *t, const char *fmt, ...) WB_PRINTF(2, 3);
/* Colour of the last cell, shown where wb_table_color asked for it. */
void wb_table_tint(struct wb_table *t, enum wb_tint tint);
void wb_table_color(struct wb_table *t, bool on);
/* Lines end with \n, no trailing blanks; a rule of dashes under the heads. */
void wb_table_print(const struct wb_table *t, int width, struct wb_buf *out);
void wb_table_free(struct wb_table *t);

/* Columns of the terminal on fd: COLUMNS, then the ioctl, else 80; between 40 and 500. */
int wb_terminal_width(int fd);
/* Whether fd is a terminal that takes colour and cursor movement (NO_COLOR, TERM=dumb honoured). */
bool wb_terminal_fancy(int fd);

#endif
