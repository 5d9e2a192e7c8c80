#include "server/base/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define GAP 2 /* blanks between columns */
#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define WIDTH_MAX 500
#define TEXT_MIN 8 /* a text column is not cut below this */

struct column {
    char *head;
    enum wb_align align;
};

struct row {
    char **cells;
    enum wb_tint *tints;
    size_t n;
};

struct wb_table {
    struct column *columns;
    size_t ncolumns, columns_cap;
    struct row *rows;
    size_t nrows, rows_cap;
    bool color;
};

struct wb_table *wb_table_new(void)
{
    return wb_calloc(1, sizeof(struct wb_table));
}

void wb_table_column(struct wb_table *t, const char *head, enum wb_align align)
{
    wb_grow(&t->columns, &t->columns_cap, t->ncolumns + 1, sizeof(*t->columns));
    t->columns[t->ncolumns].head = wb_strdup(head);
    t->columns[t->ncolumns].align = align;
    t->ncolumns++;
}

void wb_table_row(struct wb_table *t)
{
    wb_grow(&t->rows, &t->rows_cap, t->nrows + 1, sizeof(*t->rows));
    t->rows[t->nrows].cells = wb_calloc(t->ncolumns, sizeof(char *));
    t->rows[t->nrows].tints = wb_calloc(t->ncolumns, sizeof(enum wb_tint));
    t->rows[t->nrows].n = 0;
    t->nrows++;
}

/* A line break or another control byte in a cell would tear the table (or drive the terminal). */
static void flatten(char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = ' ';
}

void wb_table_cell(struct wb_table *t, const char *fmt, ...)
{
    struct row *r;
    va_list ap;

    if (t->nrows == 0 || t->rows[t->nrows - 1].n >= t->ncolumns)
        return;
    r = &t->rows[t->nrows - 1];
    va_start(ap, fmt);
    r->cells[r->n] = wb_vstrf(fmt, ap);
    va_end(ap);
    flatten(r->cells[r->n]);
    r->n++;
}

void wb_table_tint(struct wb_table *t, enum wb_tint tint)
{
    struct row *r = t->nrows ? &t->rows[t->nrows - 1] : NULL;

    if (r && r->n)
        r->tints[r->n - 1] = tint;
}

void wb_table_color(struct wb_table *t, bool on)
{
    t->color = on;
}

/* Code points of s: bytes that do not continue a UTF-8 sequence. */
static int text_width(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static const char *cell_of(const struct row *r, size_t column)
{
    return column < r->n ? r->cells[column] : "";
}

/* Widths that fit the content; then the widest text column is made narrower (the last of equals,
 * names stand in front), again until the line fits; false when every text column is at its least
 * and it does not. */
static bool fit(const struct wb_table *t, int width, int *widths)
{
    int total = (int)(t->ncolumns - 1) * GAP;

    for (size_t c = 0; c < t->ncolumns; c++) {
        widths[c] = text_width(t->columns[c].head);
        for (size_t r = 0; r < t->nrows; r++) {
            int w = text_width(cell_of(&t->rows[r], c));
            if (w > widths[c])
                widths[c] = w;
        }
        total += widths[c];
    }
    for (; total > width; total--) {
        size_t widest = t->ncolumns;
        for (size_t c = 0; c < t->ncolumns; c++)
            if (t->columns[c].align == WB_LEFT && widths[c] > TEXT_MIN &&
                (widest == t->ncolumns || widths[c] >= widths[widest]))
                widest = c;
        if (widest == t->ncolumns)
            return false;
        widths[widest]--;
    }
    return true;
}

static void add_blanks(struct wb_buf *out, int n)
{
    for (; n > 0; n--)
        wb_buf_addc(out, ' ');
}

/* At most `width` code points of s, the last one an ellipsis when something was cut. */
static void add_text(struct wb_buf *out, const char *s, int width)
{
    int keep = text_width(s) <= width ? width : width - 1, n = 0;
    const char *p = s;

    for (; *p != '\0'; p++) {
        n += ((unsigned char)*p & 0xc0) != 0x80;
        if (n > keep)
            break;
    }
    wb_buf_add(out, s, (size_t)(p - s));
    if (*p != '\0')
        wb_buf_adds(out, "\xe2\x80\xa6");
}

/* A cell in its colour; row NULL: heads. */
static void add_cell(const struct wb_table *t, const struct row *row, size_t column,
                     const char *text, int width, struct wb_buf *out)
{
    static const char *const codes[] = {
        [WB_GOOD] = "32", [WB_CAUTION] = "33", [WB_BAD] = "31", [WB_FAINT] = "2"};
    enum wb_tint tint = t->color && row && column < row->n ? row->tints[column] : WB_PLAIN;

    if (tint != WB_PLAIN)
        wb_buf_addf(out, "\033[%sm", codes[tint]);
    add_text(out, text, width);
    if (tint != WB_PLAIN)
        wb_buf_adds(out, "\033[0m");
}

static void print_line(const struct wb_table *t, const struct row *row, const char *const *cells,
                       const int *widths, struct wb_buf *out)
{
    int pending = 0; /* blanks owed before the next visible text */

    for (size_t c = 0; c < t->ncolumns; c++) {
        int w = text_width(cells[c]);
        if (w > widths[c])
            w = widths[c];
        if (c > 0)
            pending += GAP;
        if (t->columns[c].align == WB_RIGHT)
            pending += widths[c] - w;
        if (w > 0) {
            add_blanks(out, pending);
            add_cell(t, row, c, cells[c], widths[c], out);
            pending = 0;
        }
        if (t->columns[c].align == WB_LEFT)
            pending += widths[c] - w;
    }
    wb_buf_addc(out, '\n');
}

/* Each row as lines "head  cell", never cut; rows apart by an empty line, empty cells left out. */
static void print_blocks(const struct wb_table *t, struct wb_buf *out)
{
    int head = 0;

    for (size_t c = 0; c < t->ncolumns; c++)
        if (text_width(t->columns[c].head) > head)
            head = text_width(t->columns[c].head);
    for (size_t r = 0; r < t->nrows; r++) {
        if (r > 0)
            wb_buf_addc(out, '\n');
        for (size_t c = 0; c < t->ncolumns; c++) {
            const char *cell = cell_of(&t->rows[r], c);

            if (!*cell)
                continue;
            add_text(out, t->columns[c].head, head);
            add_blanks(out, head - text_width(t->columns[c].head) + GAP);
            add_cell(t, &t->rows[r], c, cell, text_width(cell), out);
            wb_buf_addc(out, '\n');
        }
    }
}

void wb_table_print(const struct wb_table *t, int width, struct wb_buf *out)
{
    WB_AUTO_FREE int *widths = wb_calloc(t->ncolumns, sizeof(int));
    WB_AUTO_FREE const char **cells = wb_calloc(t->ncolumns, sizeof(char *));

    if (t->ncolumns == 0)
        return;
    width = width > 0 ? width : WIDTH_DEFAULT;
    if (!fit(t, width, widths) && t->nrows > 0) {
        print_blocks(t, out);
        return;
    }
    for (size_t c = 0; c < t->ncolumns; c++)
        cells[c] = t->columns[c].head;
    print_line(t, NULL, cells, widths, out);
    for (size_t c = 0; c < t->ncolumns; c++) {
        add_blanks(out, c > 0 ? GAP : 0);
        for (int i = 0; i < widths[c]; i++)
            wb_buf_addc(out, '-');
    }
    wb_buf_addc(out, '\n');
    for (size_t r = 0; r < t->nrows; r++) {
        for (size_t c = 0; c < t->ncolumns; c++)
            cells[c] = cell_of(&t->rows[r], c);
        print_line(t, &t->rows[r], cells, widths, out);
    }
}

void wb_table_free(struct wb_table *t)
{
    if (t == NULL)
        return;
    for (size_t r = 0; r < t->nrows; r++) {
        for (size_t c = 0; c < t->rows[r].n; c++)
            free(t->rows[r].cells[c]);
        free(t->rows[r].cells);
        free(t->rows[r].tints);
    }
    for (size_t c = 0; c < t->ncolumns; c++)
        free(t->columns[c].head);
    free(t->rows);
    free(t->columns);
    free(t);
}

/* ---- the terminal ---- */

int wb_terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    int64_t width = 0;
    struct winsize size;

    if (columns == NULL || wb_parse_int(columns, 1, 100000, &width, NULL) < 0)
        width = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
    if (width < WIDTH_MIN)
        return WIDTH_MIN;
    return width > WIDTH_MAX ? WIDTH_MAX : (int)width;
}

bool wb_terminal_fancy(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
           term[0] != '\0' && strcmp(term, "dumb") != 0;
}
