/* JSON text from values. jansson's own writer gives 0.1 as 0.10000000000000001; this one writes
 * the shortest digits that read back, so that the same figure looks the same to people, in
 * records and in digests. */
#include "server/base/json.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

struct writer {
    struct wb_buf *out;
    bool sorted;
    bool pretty;
};

/* Shortest of 15 to 17 digits that reads back as the same number; always with a point or an
 * exponent, so that it stays a real. */
static void write_real(struct wb_buf *out, double v)
{
    for (int digits = 15; digits <= 17; digits++) {
        char *s = wb_strf("%.*g", digits, v);
        if (digits == 17 || strtod(s, NULL) == v) {
            wb_buf_adds(out, s);
            if (strpbrk(s, ".e") == NULL)
                wb_buf_adds(out, ".0");
            digits = 17;
        }
        free(s);
    }
}

static void write_string(struct wb_buf *out, const char *s)
{
    size_t from = 0, n = strlen(s);

    wb_buf_addc(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        wb_buf_add(out, s + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\')
            wb_buf_addf(out, "\\%c", c);
        else if (c == '\n')
            wb_buf_adds(out, "\\n");
        else if (c == '\t')
            wb_buf_adds(out, "\\t");
        else if (c == '\r')
            wb_buf_adds(out, "\\r");
        else
            wb_buf_addf(out, "\\u%04x", c);
    }
    wb_buf_add(out, s + from, n - from);
    wb_buf_addc(out, '"');
}

static void write_break(const struct writer *w, int depth)
{
    if (!w->pretty)
        return;
    wb_buf_addc(w->out, '\n');
    for (int i = 0; i < depth; i++)
        wb_buf_adds(w->out, "  ");
}

static void write_value(const struct writer *w, const wb_json *j, int depth);

/* Lists of plain numbers stand on one line even where people read. */
static bool all_numbers(const wb_json *j)
{
    for (size_t i = 0; i < wb_json_len(j); i++) {
        const wb_json *e = wb_json_at(j, i);
        if (!wb_json_is_number(e) && wb_json_type(e) != WB_JSON_NULL)
            return false;
    }
    return true;
}

static void write_array(const struct writer *w, const wb_json *j, int depth)
{
    size_t n = wb_json_len(j);
    bool flat = all_numbers(j);

    wb_buf_addc(w->out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            wb_buf_adds(w->out, flat && w->pretty ? ", " : ",");
        if (!flat)
            write_break(w, depth + 1);
        write_value(w, wb_json_at(j, i), depth + 1);
    }
    if (n > 0 && !flat)
        write_break(w, depth);
    wb_buf_addc(w->out, ']');
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_object(const struct writer *w, const wb_json *j, int depth)
{
    size_t n = wb_json_len(j), i = 0;
    const char **keys = wb_calloc(n, sizeof(*keys));

    for (void *it = wb_json_first(j); it != NULL; it = wb_json_next(j, it))
        keys[i++] = wb_json_iter_key(it);
    if (w->sorted)
        qsort(keys, n, sizeof(*keys), by_text);
    wb_buf_addc(w->out, '{');
    for (i = 0; i < n; i++) {
        if (i > 0)
            wb_buf_addc(w->out, ',');
        write_break(w, depth + 1);
        write_string(w->out, keys[i]);
        wb_buf_adds(w->out, w->pretty ? ": " : ":");
        write_value(w, wb_json_get(j, keys[i]), depth + 1);
    }
    if (n > 0)
        write_break(w, depth);
    wb_buf_addc(w->out, '}');
    free(keys);
}

static void write_value(const struct writer *w, const wb_json *j, int depth)
{
    switch (wb_json_type(j)) {
    case WB_JSON_NULL:
        wb_buf_adds(w->out, "null");
        break;
    case WB_JSON_BOOL:
        wb_buf_adds(w->out, wb_json_is_true(j) ? "true" : "false");
        break;
    case WB_JSON_INT:
        wb_buf_addf(w->out, "%lld", (long long)wb_json_integer(j));
        break;
    case WB_JSON_REAL:
        write_real(w->out, wb_json_number(j, 0));
        break;
    case WB_JSON_STRING:
        write_string(w->out, wb_json_string(j));
        break;
    case WB_JSON_ARRAY:
        write_array(w, j, depth);
        break;
    case WB_JSON_OBJECT:
        write_object(w, j, depth);
        break;
    }
}

void wb_json_canonical(const wb_json *j, struct wb_buf *out)
{
    const struct writer w = {.out = out, .sorted = true};

    write_value(&w, j, 0);
}

void wb_json_pretty(const wb_json *j, struct wb_buf *out)
{
    const struct writer w = {.out = out, .pretty = true};

    write_value(&w, j, 0);
    wb_buf_addc(out, '\n');
}

void wb_json_line(const wb_json *j, struct wb_buf *out)
{
    const struct writer w = {.out = out};

    write_value(&w, j, 0);
}
