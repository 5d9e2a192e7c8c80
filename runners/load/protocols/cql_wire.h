/*
 * Bytes of the CQL native protocol, versions 4 and 5: numbers in network order, the header of an
 * envelope, a bounded cursor over a body, and a few fixed numbers of the specification
 * (apache/cassandra, doc/native_protocol_v4.spec and native_protocol_v5.spec).
 */
#ifndef WB_LOAD_CQL_WIRE_H
#define WB_LOAD_CQL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WB_CQL_HEADER 9   /* bytes of an envelope's header */
#define WB_CQL_REPLY 0x80 /* in the version byte of what servers send */

enum wb_cql_opcode {
    WB_CQL_ERROR = 0x00,
    WB_CQL_STARTUP = 0x01,
    WB_CQL_READY = 0x02,
    WB_CQL_AUTHENTICATE = 0x03,
    WB_CQL_OPTIONS = 0x05,
    WB_CQL_SUPPORTED = 0x06,
    WB_CQL_QUERY = 0x07,
    WB_CQL_RESULT = 0x08,
    WB_CQL_PREPARE = 0x09,
    WB_CQL_EXECUTE = 0x0a,
    WB_CQL_REGISTER = 0x0b,
    WB_CQL_EVENT = 0x0c,
    WB_CQL_BATCH = 0x0d,
    WB_CQL_AUTH_CHALLENGE = 0x0e,
    WB_CQL_AUTH_RESPONSE = 0x0f,
    WB_CQL_AUTH_SUCCESS = 0x10
};

enum wb_cql_envelope_flags {
    WB_CQL_COMPRESSED = 0x01, /* version 4 */
    WB_CQL_TRACING = 0x02,
    WB_CQL_PAYLOAD = 0x04,
    WB_CQL_WARNING = 0x08
};

enum wb_cql_result {
    WB_CQL_VOID = 1,
    WB_CQL_ROWS,
    WB_CQL_KEYSPACE,
    WB_CQL_PREPARED,
    WB_CQL_SCHEMA
};

/* Flags of the parameters of QUERY, EXECUTE and BATCH. */
enum wb_cql_query_flags {
    WB_CQL_VALUES = 0x01,
    WB_CQL_SKIP_METADATA = 0x02,
    WB_CQL_PAGE_SIZE = 0x04,
    WB_CQL_PAGING_STATE = 0x08,
    WB_CQL_TIMESTAMP = 0x20
};

/* Flags of the metadata of rows. */
enum wb_cql_rows_flags {
    WB_CQL_GLOBAL_TABLE = 0x01,
    WB_CQL_MORE_PAGES = 0x02,
    WB_CQL_NO_METADATA = 0x04,
    WB_CQL_METADATA_CHANGED = 0x08
};

static inline uint16_t wb_cql_get16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap16(v);
}

static inline uint32_t wb_cql_get32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap32(v);
}

static inline char *wb_cql_put8(char *out, unsigned v)
{
    *out = (char)v;
    return out + 1;
}

static inline char *wb_cql_put16(char *out, unsigned v)
{
    uint16_t be = __builtin_bswap16((uint16_t)v);

    memcpy(out, &be, sizeof(be));
    return out + sizeof(be);
}

static inline char *wb_cql_put32(char *out, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(out, &v, sizeof(v));
    return out + sizeof(v);
}

static inline char *wb_cql_put64(char *out, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(out, &v, sizeof(v));
    return out + sizeof(v);
}

static inline char *wb_cql_put_header(char *out, unsigned version, unsigned stream, unsigned opcode,
                                      uint32_t body)
{
    out = wb_cql_put8(out, version);
    out = wb_cql_put8(out, 0);
    out = wb_cql_put16(out, stream);
    out = wb_cql_put8(out, opcode);
    return wb_cql_put32(out, body);
}

/* What a server sent, without what may stand in front of the message (tracing id, warnings). */
struct wb_cql_envelope {
    uint8_t version, opcode; /* version without WB_CQL_REPLY */
    int stream;
    const char *body;
    size_t n;
};

/* Reads a body; once something is missing everything else reads as nothing, and bad is set. */
struct wb_cql_cursor {
    const char *p, *end;
    bool bad;
};

/* A piece of a body; not terminated. */
struct wb_cql_view {
    const char *p; /* NULL for null */
    size_t n;
};

static inline struct wb_cql_cursor wb_cql_cursor(const char *p, size_t n)
{
    return (struct wb_cql_cursor){.p = p, .end = p + n};
}

static inline const char *wb_cql_take(struct wb_cql_cursor *c, size_t n)
{
    const char *p = c->p;

    if (c->bad || n > (size_t)(c->end - p)) {
        c->bad = true;
        return NULL;
    }
    c->p += n;
    return p;
}

static inline unsigned wb_cql_take8(struct wb_cql_cursor *c)
{
    const char *p = wb_cql_take(c, 1);

    return p ? (unsigned char)*p : 0;
}

static inline unsigned wb_cql_take16(struct wb_cql_cursor *c)
{
    const char *p = wb_cql_take(c, 2);

    return p ? wb_cql_get16(p) : 0;
}

static inline uint32_t wb_cql_take32(struct wb_cql_cursor *c)
{
    const char *p = wb_cql_take(c, 4);

    return p ? wb_cql_get32(p) : 0;
}

/* [string], [short bytes] */
static inline struct wb_cql_view wb_cql_take_string(struct wb_cql_cursor *c)
{
    size_t n = wb_cql_take16(c);
    const char *p = wb_cql_take(c, n);

    return (struct wb_cql_view){.p = p, .n = p ? n : 0};
}

/* [bytes]; null when its length is negative */
static inline struct wb_cql_view wb_cql_take_bytes(struct wb_cql_cursor *c)
{
    int32_t n = (int32_t)wb_cql_take32(c);
    const char *p = n < 0 ? NULL : wb_cql_take(c, (size_t)n);

    return (struct wb_cql_view){.p = p, .n = p ? (size_t)n : 0};
}

#endif
