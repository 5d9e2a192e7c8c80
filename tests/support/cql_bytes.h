/*
 * Adds numbers, strings and values in the form of the CQL protocol to a buffer.
 */
#ifndef WB_TESTS_CQL_BYTES_H
#define WB_TESTS_CQL_BYTES_H

#include <string.h>

#include "runners/load/protocols/cql_wire.h"
#include "server/base/buf.h"

static void add16(struct wb_buf *b, unsigned v)
{
    char n[2];

    wb_cql_put16(n, v);
    wb_buf_add(b, n, sizeof(n));
}

static void add32(struct wb_buf *b, uint32_t v)
{
    char n[4];

    wb_cql_put32(n, v);
    wb_buf_add(b, n, sizeof(n));
}

static void add_string(struct wb_buf *b, const char *s)
{
    add16(b, (unsigned)strlen(s));
    wb_buf_adds(b, s);
}

static void add_bytes(struct wb_buf *b, const void *p, size_t n)
{
    add32(b, (uint32_t)n);
    wb_buf_add(b, p, n);
}

static void add_text(struct wb_buf *b, const char *s)
{
    add_bytes(b, s, strlen(s));
}

#endif
