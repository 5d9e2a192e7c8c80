#include "server/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

char *wb_buf_room(struct wb_buf *b, size_t n)
{
    if (b->failed || n > b->max || b->len > b->max - n) {
        b->failed = true;
        return NULL;
    }
    wb_grow(&b->data, &b->cap, b->len + n + 1, 1);
    return b->data + b->len;
}

void wb_buf_commit(struct wb_buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

void wb_buf_add(struct wb_buf *b, const void *data, size_t n)
{
    char *to = wb_buf_room(b, n);

    if (!to)
        return;
    if (n)
        memcpy(to, data, n);
    wb_buf_commit(b, n);
}

void wb_buf_adds(struct wb_buf *b, const char *s)
{
    wb_buf_add(b, s, strlen(s));
}

void wb_buf_addc(struct wb_buf *b, char c)
{
    wb_buf_add(b, &c, 1);
}

void wb_buf_addv(struct wb_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;
    char *to;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        b->failed = true;
        return;
    }
    to = wb_buf_room(b, (size_t)n);
    if (!to)
        return;
    (void)vsnprintf(to, (size_t)n + 1, fmt, ap);
    wb_buf_commit(b, (size_t)n);
}

void wb_buf_addf(struct wb_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    wb_buf_addv(b, fmt, ap);
    va_end(ap);
}

void wb_buf_consume(struct wb_buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (!n)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

const char *wb_buf_str(const struct wb_buf *b)
{
    return b->data ? b->data : "";
}

int wb_buf_check(const struct wb_buf *b, const char *what, struct wb_err *err)
{
    if (b->failed)
        return wb_fail(err, WB_LIMIT, "%s is longer than %zu bytes", what, b->max);
    return 0;
}

char *wb_buf_take(struct wb_buf *b)
{
    char *s = b->data ? b->data : wb_strdup("");

    *b = (struct wb_buf)WB_BUF_INIT(b->max);
    return s;
}

void wb_buf_clear(struct wb_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void wb_buf_release(struct wb_buf *b)
{
    free(b->data);
    *b = (struct wb_buf)WB_BUF_INIT(b->max);
}
