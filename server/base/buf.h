/*
 * The one string builder: bounded, always terminated, with a sticky failed state, so that a
 * caller can chain appends and test once.
 *
 *     struct wb_buf b = WB_BUF_INIT(4096);
 *     wb_buf_addf(&b, "%s=%d", key, value);
 *     if (wb_buf_check(&b, "command line", err) < 0) ...
 *     wb_buf_release(&b);
 */
#ifndef WB_BASE_BUF_H
#define WB_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/base/err.h"

struct wb_buf {
    char *data; /* NULL until the first append; then data[len] == 0 */
    size_t len; /* bytes, without the terminator */
    size_t cap;
    size_t max;  /* most bytes that len may reach */
    bool failed; /* an append would have passed max; it and all later ones were not done */
};

#define WB_BUF_INIT(most) \
    {                     \
        .max = (most)     \
    }

void wb_buf_add(struct wb_buf *b, const void *data, size_t n);
void wb_buf_adds(struct wb_buf *b, const char *s);
void wb_buf_addc(struct wb_buf *b, char c);
void wb_buf_addf(struct wb_buf *b, const char *fmt, ...) WB_PRINTF(2, 3);
void wb_buf_addv(struct wb_buf *b, const char *fmt, va_list ap) WB_PRINTF(2, 0);

/* Room for n more bytes at the end; returns where to write, or NULL (failed) if over max. The
 * caller then calls wb_buf_commit with what it wrote (<= n). */
char *wb_buf_room(struct wb_buf *b, size_t n);
void wb_buf_commit(struct wb_buf *b, size_t n);

/* Removes the first n bytes (n <= len). */
void wb_buf_consume(struct wb_buf *b, size_t n);

/* The text so far, "" when empty; valid until the next change. */
const char *wb_buf_str(const struct wb_buf *b);

/* 0, or WB_LIMIT naming `what` and the bound when an append failed. */
int wb_buf_check(const struct wb_buf *b, const char *what, struct wb_err *err) WB_MUST_CHECK;

char *wb_buf_take(struct wb_buf *b); /* the text, owned by the caller; b is empty again */
void wb_buf_clear(struct wb_buf *b); /* empty and usable; keeps memory and max */
void wb_buf_release(struct wb_buf *b);

#endif
