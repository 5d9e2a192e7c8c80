/*
 * What text protocols have in common: requests copied from a template in which only the digits of
 * the key differ, and replies that are lines ending with CRLF and blocks of counted bytes, received
 * in pieces of any size. Of a cut reply only its state is kept.
 */
#ifndef WB_LOAD_PROTOCOLS_TEXTUAL_H
#define WB_LOAD_PROTOCOLS_TEXTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runners/load/protocol.h"

#define WB_HELLO_MAX 1024 /* bytes of a greeting: name and password of a person */
#define WB_LINE_MAX 65536 /* bytes of a line; longer ones break the protocol */
#define WB_LINE_KEPT 320  /* bytes kept of a cut line */

/* A request up to the value, with key 0. */
struct wb_template {
    char *text; /* WB_BUILD_SLACK bytes more than len, so that a copy of that size is possible */
    size_t len, key_end; /* where the key's digits end */
};

/* head, key, tail. */
void wb_template_init(struct wb_template *t, const struct wb_keys *keys, const char *head,
                      const char *tail);
void wb_template_release(struct wb_template *t);

/* Writes the request for a key; both sides have slack for a copy of fixed size, which is a few
 * instructions. Returns its end. */
static inline char *wb_template_write(const struct wb_template *t, const struct wb_keys *keys,
                                      uint64_t key, char *out)
{
    if (t->len <= WB_BUILD_SLACK)
        memcpy(out, t->text, WB_BUILD_SLACK);
    else
        memcpy(out, t->text, t->len);
    wb_keys_digits(keys, key, out + t->key_end);
    return out + t->len;
}

/* Checks a greeting that was built in a WB_BUF_INIT(WB_HELLO_MAX): WB_LIMIT when name and password
 * are too long. */
int wb_hello_check(const struct wb_buf *hello, struct wb_err *err) WB_MUST_CHECK;

/* Of one connection; zeroed is a good beginning. */
struct wb_pieces {
    /* A line that has not ended: what was received of it. line_len counts all, kept or not. */
    size_t line_len;
    char line[WB_LINE_KEPT];
    /* A block that has not ended. */
    bool in_block;
    bool differs;                     /* from what was expected */
    int64_t left;                     /* bytes still to come, with the closing CRLF */
    const char *expect;               /* where its next byte must be equal; NULL: not compared */
    char scratch[WB_VALUE_SMALL + 8]; /* a small value to compare with */
};

static inline void wb_pieces_reset(struct wb_pieces *p)
{
    p->line_len = 0;
    p->in_block = false;
}

/* Whether the next byte begins a reply: neither a line nor a block is cut. */
static inline bool wb_pieces_whole(const struct wb_pieces *p)
{
    return !p->in_block && p->line_len == 0;
}

/* Takes one line or what there is of it from n > 0 bytes. Returns the bytes used, 0 when the line
 * breaks the protocol: a line feed alone, or longer than WB_LINE_MAX. When the line has ended *text
 * and *len are the line without CRLF (of a cut long one its beginning), valid until the next call;
 * else *text is NULL. */
size_t wb_pieces_line(struct wb_pieces *p, const char *data, size_t n, const char **text,
                      size_t *len);

/* Begins a block of n bytes. It is compared with the value of a key unless values is NULL. */
void wb_pieces_block(struct wb_pieces *p, int64_t n, const struct wb_values *values, uint64_t key);
/* Passes bytes of the block; returns how many were used, 0 when its closing CRLF is broken. The
 * block has ended when in_block is false; `differs` tells what the comparison found. */
size_t wb_pieces_pass(struct wb_pieces *p, const char *data, size_t n);

/* What a protocol makes of received bytes. */
struct wb_textual {
    /* A whole reply of the usual kind at p: where it ends; p when it is none, or when the protocol
     * is not between two replies. */
    const char *(*usual)(void *context, struct wb_worker *w, struct wb_conn *c, const char *p,
                         const char *stop);
    /* One line without its CRLF; may begin a block. What is negative ends the reading. */
    int (*line)(void *context, struct wb_worker *w, struct wb_conn *c, const char *text,
                size_t len);
    /* A block has ended. */
    void (*block)(void *context, struct wb_worker *w, struct wb_conn *c);
};

/* The loop over received bytes: one for all protocols, compiled into each with its own parts, so
 * that the usual reply costs no call. t is a constant; pieces are those of the connection. */
static inline __attribute__((always_inline)) int
wb_textual_feed(const struct wb_textual *t, struct wb_pieces *pieces, void *context,
                struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    const char *p = data, *stop = data + n, *line;
    size_t used, len;

    while (p < stop) {
        int rc = 0;

        if (wb_pieces_whole(pieces)) {
            const char *after = t->usual(context, w, c, p, stop);
            if (after != p) {
                p = after;
                continue;
            }
        }
        if (pieces->in_block) {
            used = wb_pieces_pass(pieces, p, (size_t)(stop - p));
            if (used > 0 && !pieces->in_block)
                t->block(context, w, c);
        } else {
            used = wb_pieces_line(pieces, p, (size_t)(stop - p), &line, &len);
            if (used > 0 && line)
                rc = t->line(context, w, c, line, len);
        }
        if (rc < 0 || used == 0)
            return rc < 0 ? rc : -1;
        p += used;
    }
    return 0;
}

/* The decimal number of 1 to 9 digits that is all of `text`; false when it is none. */
bool wb_pieces_number(const char *text, size_t n, int64_t *out);

#endif
