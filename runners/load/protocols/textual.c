#include "runners/load/protocols/textual.h"

#include <stdlib.h>

#include "server/base/mem.h"

void wb_template_init(struct wb_template *t, const struct wb_keys *keys, const char *head,
                      const char *tail)
{
    size_t from = strlen(head), after = strlen(tail);

    t->key_end = from + keys->bytes;
    t->len = t->key_end + after;
    t->text = wb_calloc(t->len + WB_BUILD_SLACK, 1);
    memcpy(t->text, head, from);
    wb_keys_text(keys, 0, t->text + from);
    memcpy(t->text + t->key_end, tail, after);
}

void wb_template_release(struct wb_template *t)
{
    free(t->text);
    *t = (struct wb_template){0};
}

int wb_hello_check(const struct wb_buf *hello, struct wb_err *err)
{
    return wb_buf_check(hello, "user and password", err);
}

/* Adds to a line that was cut before or is cut now. */
static size_t cut_line(struct wb_pieces *p, const char *data, size_t n, const char *lf,
                       const char **text, size_t *len)
{
    size_t used = lf ? (size_t)(lf - data) + 1 : n;
    size_t room = p->line_len < WB_LINE_KEPT ? WB_LINE_KEPT - p->line_len : 0;

    memcpy(p->line + (WB_LINE_KEPT - room), data, used < room ? used : room);
    p->line_len += used;
    if (p->line_len > WB_LINE_MAX)
        return 0;
    if (!lf)
        return used;
    *len = WB_LINE_KEPT;
    if (p->line_len <= WB_LINE_KEPT) {
        if (p->line_len < 2 || p->line[p->line_len - 2] != '\r')
            return 0;
        *len = p->line_len - 2;
    }
    *text = p->line;
    p->line_len = 0;
    return used;
}

size_t wb_pieces_line(struct wb_pieces *p, const char *data, size_t n, const char **text,
                      size_t *len)
{
    const char *lf = memchr(data, '\n', n);

    *text = NULL;
    if (!lf || p->line_len > 0)
        return cut_line(p, data, n, lf, text, len);
    if (lf == data || lf[-1] != '\r' || lf - data > WB_LINE_MAX)
        return 0;
    *text = data;
    *len = (size_t)(lf - data) - 1;
    return (size_t)(lf - data) + 1;
}

void wb_pieces_block(struct wb_pieces *p, int64_t n, const struct wb_values *values, uint64_t key)
{
    p->in_block = true;
    p->left = n + 2;
    p->expect = NULL;
    p->differs = false;
    if (!values)
        return;
    p->expect = wb_values_expect(values, key, p->scratch);
    p->differs = n != (int64_t)wb_values_size(values, key);
}

size_t wb_pieces_pass(struct wb_pieces *p, const char *data, size_t n)
{
    int64_t block = p->left > 2 ? p->left - 2 : 0;
    size_t whole = (size_t)block < n ? (size_t)block : n, used = whole;

    if (p->expect && !p->differs) {
        p->differs = memcmp(p->expect, data, whole) != 0;
        p->expect += whole;
    }
    p->left -= (int64_t)whole;
    for (; p->left > 0 && used < n; used++, p->left--)
        if (data[used] != (p->left == 2 ? '\r' : '\n'))
            return 0;
    p->in_block = p->left > 0;
    return used;
}

bool wb_pieces_number(const char *text, size_t n, int64_t *out)
{
    int64_t v = 0;

    if (n == 0 || n > 9)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        v = v * 10 + (text[i] - '0');
    }
    *out = v;
    return true;
}
