#include "server/analysis/csv.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "server/analysis/input.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define COLUMNS_MAX 200
#define ROWS_MAX 2000000
#define CELLS_MAX 8000000 /* in all: each becomes a value in memory */

static const char *const text_columns[] = {"name", "unit", "better"};

struct reader {
    const char *p, *end;
    int line;
};

/* The next cell; *last says that its line ends behind it. Caller frees *cell. */
static int next_cell(struct reader *r, char **cell, bool *last, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(4096);
    bool quoted = r->p < r->end && *r->p == '"';
    int rc = 0;

    if (quoted) {
        for (r->p++; r->p < r->end && (*r->p != '"' || (r->p + 1 < r->end && r->p[1] == '"'));
             r->p++) {
            r->line += *r->p == '\n';
            r->p += *r->p == '"';
            wb_buf_addc(&b, *r->p);
        }
        if (r->p == r->end)
            rc = wb_fail(err, WB_INVALID, "line %d: a quote is not closed", r->line);
        else
            r->p++;
    } else {
        while (r->p < r->end && *r->p != ',' && *r->p != '\n' && *r->p != '\r')
            wb_buf_addc(&b, *r->p++);
    }
    if (rc == 0 && r->p < r->end && *r->p == '\r')
        r->p++;
    if (rc == 0 && r->p < r->end && *r->p != ',' && *r->p != '\n')
        rc = wb_fail(err, WB_INVALID, "line %d: text behind a cell's end", r->line);
    if (rc == 0 && b.failed)
        rc = wb_fail(err, WB_INVALID, "line %d: a cell is longer than 4096 bytes", r->line);
    if (rc == 0) {
        *last = r->p == r->end || *r->p == '\n';
        *cell = b.len > 0 ? wb_buf_take(&b) : wb_strdup("");
        r->p += r->p < r->end;
    }
    wb_buf_release(&b);
    return rc;
}

/* The cell without the blanks around it, which say nothing, and as the JSON layer would keep it
 * (bytes that are no UTF-8 are replaced there). */
static char *trimmed(const char *s)
{
    WB_AUTO_JSON wb_json *kept = NULL;
    size_t n;

    s += strspn(s, " \t");
    n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        n--;
    kept = wb_json_strn(s, n);
    return wb_strdup(wb_json_string(kept));
}

static bool is_text_column(const char *name)
{
    for (size_t i = 0; i < WB_LEN(text_columns); i++)
        if (strcmp(text_columns[i], name) == 0)
            return true;
    return false;
}

/* What is no header of a table: damaged JSON, other separators. */
static int check_name(const char *name, bool only, int line, struct wb_err *err)
{
    if (strpbrk(name, "{}[]\"") != NULL)
        return wb_fail(err, WB_INVALID,
                       "line %d: '%.60s' is no name of a column; JSON begins with '{' or '['", line,
                       name);
    if (only && strpbrk(name, ";\t|") != NULL)
        return wb_fail(err, WB_INVALID,
                       "line %d: columns are parted by commas, in '%.60s' are none", line, name);
    return 0;
}

static int read_header(struct reader *r, struct wb_strv *names, wb_json *columns,
                       struct wb_err *err)
{
    bool last = false;

    while (!last) {
        WB_AUTO_FREE char *cell = NULL;
        WB_AUTO_FREE char *name = NULL;
        if (next_cell(r, &cell, &last, err) < 0)
            return -WB_INVALID;
        name = trimmed(cell);
        if (*name == '\0')
            return wb_fail(err, WB_INVALID, "line %d: column %zu of the header has no name",
                           r->line, names->n + 1);
        if (check_name(name, last && names->n == 0, r->line, err) < 0)
            return -WB_INVALID;
        if (wb_json_get(columns, name) != NULL)
            return wb_fail(err, WB_INVALID, "line %d: column '%s' is there twice", r->line, name);
        if (names->n >= COLUMNS_MAX)
            return wb_fail(err, WB_INVALID, "line %d: more than %d columns", r->line, COLUMNS_MAX);
        wb_strv_add(names, name);
        wb_json_set(columns, name, wb_json_array());
    }
    r->line++;
    return 0;
}

static int cell_value(const char *column, const char *cell, int line, wb_json **out,
                      struct wb_err *err)
{
    double v;

    if (*cell == '\0') {
        *out = wb_json_null();
    } else if (is_text_column(column)) {
        *out = wb_json_str(cell);
    } else {
        if (wb_parse_real(cell, -DBL_MAX, DBL_MAX, &v, NULL) < 0)
            return wb_fail(err, WB_INVALID,
                           "line %d: '%.60s' in column '%.60s' is not a number; leave the cell "
                           "empty where there is no value",
                           line, cell, column);
        if (isnan(wb_usable(v)))
            return wb_fail(err, WB_INVALID,
                           "line %d: '%.60s' in column '%.60s' is out of range, allowed is 0 and "
                           "%g to %g: give it in another unit",
                           line, cell, column, WB_SIZE_LEAST, WB_SIZE_MOST);
        *out = wb_json_real(v);
    }
    return 0;
}

/* One line; empty ones are passed over. */
static int read_row(struct reader *r, const struct wb_strv *names, wb_json *columns,
                    struct wb_err *err)
{
    size_t n = 0;
    bool last = false;

    if (*r->p == '\n' || *r->p == '\r') {
        r->p += *r->p == '\r' && r->p + 1 < r->end && r->p[1] == '\n';
        r->p++;
        r->line++;
        return 0;
    }
    for (; !last; n++) {
        WB_AUTO_FREE char *cell = NULL;
        WB_AUTO_FREE char *text = NULL;
        wb_json *value = NULL;
        if (next_cell(r, &cell, &last, err) < 0)
            return -WB_INVALID;
        if (n >= names->n)
            return wb_fail(err, WB_INVALID, "line %d: has more than the %zu cells of the header",
                           r->line, names->n);
        text = trimmed(cell);
        if (cell_value(names->v[n], text, r->line, &value, err) < 0)
            return -WB_INVALID;
        wb_json_push(wb_json_get(columns, names->v[n]), value);
    }
    if (n < names->n)
        return wb_fail(err, WB_INVALID, "line %d: has %zu cells, the header has %zu", r->line, n,
                       names->n);
    r->line++;
    return 0;
}

int wb_csv_columns(const char *text, size_t n, wb_json **out, struct wb_err *err)
{
    struct reader r = {.p = text, .end = text + n, .line = 1};
    struct wb_strv names = {0};
    WB_AUTO_JSON wb_json *columns = wb_json_object();
    int rc = 0;

    if (text[strspn(text, " \t\r\n")] == '\0' && memchr(text, '\0', n) == NULL)
        return wb_fail(err, WB_INVALID, "line 1: the input is empty");
    if (memchr(text, '\0', n) != NULL)
        return wb_fail(err, WB_INVALID, "line 1: the input has NUL bytes");
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.p += 3; /* byte order mark of spreadsheets */
    rc = read_header(&r, &names, columns, err);
    while (rc == 0 && r.p < r.end) {
        rc = r.line > ROWS_MAX
                 ? wb_fail(err, WB_INVALID, "line %d: more than %d lines", r.line, ROWS_MAX)
             : (size_t)r.line * names.n > CELLS_MAX
                 ? wb_fail(err, WB_INVALID, "line %d: more than %d cells; leave columns out",
                           r.line, CELLS_MAX)
                 : read_row(&r, &names, columns, err);
    }
    wb_strv_release(&names);
    if (rc == 0)
        *out = WB_STEAL(columns);
    return rc;
}

/* Passes over one line of a table whose cells are right. */
static void skip_line(struct reader *r)
{
    bool last = false;

    while (!last && r->p < r->end) {
        WB_AUTO_FREE char *cell = NULL;
        if (next_cell(r, &cell, &last, NULL) < 0)
            return;
    }
    r->line++;
}

size_t wb_csv_line(const char *text, size_t n, size_t row)
{
    struct reader r = {.p = text, .end = text + n, .line = 1};

    skip_line(&r); /* the header */
    for (size_t i = 0; r.p < r.end;) {
        bool empty = *r.p == '\n' || *r.p == '\r';
        if (!empty && i == row)
            return (size_t)r.line;
        i += !empty;
        skip_line(&r);
    }
    return 0;
}

/* ---- columns as a question for compare ---- */

/* Cells below the shorter of two plain columns are no values; a gap among rounds stays null. */
static void push_cell(wb_json *row, const char *column, const wb_json *value)
{
    bool rounds = strncmp(column, "rounds_", 7) == 0;

    if (wb_json_get(row, column) == NULL)
        wb_json_set(row, column, wb_json_array());
    if (wb_json_type(value) != WB_JSON_NULL || rounds)
        wb_json_push(wb_json_get(row, column), wb_json_ref(value));
}

/* The row of a name, made when it is new; places has the index of each. */
static wb_json *row_of(wb_json *rows, wb_json *places, const char *name)
{
    int64_t at = wb_json_int_or(places, name, -1);
    wb_json *row;

    if (at >= 0)
        return wb_json_at(rows, (size_t)at);
    row = wb_json_object();
    wb_json_set_str(row, "name", name);
    wb_json_set_int(places, name, (int64_t)wb_json_len(rows));
    wb_json_push(rows, row);
    return row;
}

wb_json *wb_csv_compare(const wb_json *columns)
{
    const wb_json *names = wb_json_get(columns, "name");
    wb_json *doc = wb_json_object(), *rows = names != NULL ? wb_json_array() : NULL;
    WB_AUTO_JSON wb_json *places = wb_json_object();
    size_t lines = 0;

    for (void *it = wb_json_first(columns); it != NULL; it = wb_json_next(columns, it))
        lines = wb_json_len(wb_json_iter_value(it));
    for (size_t i = 0; i < lines; i++) {
        const char *name = wb_json_string(wb_json_at(names, i));
        wb_json *row = rows != NULL ? row_of(rows, places, name != NULL ? name : "") : doc;
        for (void *it = wb_json_first(columns); it != NULL; it = wb_json_next(columns, it)) {
            const char *column = wb_json_iter_key(it);
            const wb_json *value = wb_json_at(wb_json_iter_value(it), i);
            if (strcmp(column, "name") == 0)
                continue;
            if (!is_text_column(column) && strcmp(column, "threshold_percent") != 0)
                push_cell(row, column, value);
            else if (wb_json_type(value) != WB_JSON_NULL)
                wb_json_set(row, column, wb_json_ref(value));
        }
    }
    if (rows != NULL)
        wb_json_set(doc, "rows", rows);
    return doc;
}
