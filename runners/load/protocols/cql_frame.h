/*
 * Framing of the CQL native protocol. Version 4: envelopes one after the other, each compressed or
 * not. Version 5 after the answer to STARTUP: segments with checksums that hold whole envelopes, or
 * a piece of one that is longer than a segment.
 */
#ifndef WB_LOAD_CQL_FRAME_H
#define WB_LOAD_CQL_FRAME_H

#include "runners/load/protocols/cql_wire.h"
#include "server/base/buf.h"

#define WB_CQL_SEGMENT_MAX 131071    /* bytes of payload */
#define WB_CQL_SEGMENT_EXTRA (8 + 4) /* bytes around a payload, at most */
#define WB_CQL_BODY_MAX (256u << 20) /* of an envelope */

/* Checksum of a segment's header: its first n bytes as a number, the first one lowest. */
uint32_t wb_cql_crc24(uint64_t bytes, int n);
/* Checksum of a segment's payload. */
uint32_t wb_cql_crc32(const void *data, size_t n);

/* Bytes in front of a segment's payload. */
static inline size_t wb_cql_segment_head(bool lz4)
{
    return lz4 ? 8 : 6;
}

/* Makes a segment of the n bytes at seg + wb_cql_segment_head(lz4), n <= WB_CQL_SEGMENT_MAX, for
 * which four bytes behind them are free. With lz4, scratch has room for n bytes; a payload that
 * does not get smaller stays as it is. Returns the segment's end. */
char *wb_cql_segment_close(char *seg, size_t n, bool whole, bool lz4, char *scratch);

/* Bytes that an envelope of n bytes may take in segments. */
size_t wb_cql_segments_max(size_t n);
/* Cuts an envelope of n bytes, longer than WB_CQL_SEGMENT_MAX, at out + wb_cql_segments_max(n) - n
 * into segments from out on; returns their end. */
char *wb_cql_segments_cut(char *out, size_t n, bool lz4, char *scratch);

/* Version 4: compresses the body of the envelope at p if that makes it smaller; scratch has room
 * for the body. Returns the envelope's end. */
char *wb_cql_envelope_pack(char *p, size_t n, char *scratch);

struct wb_cql_reader {
    uint8_t version; /* what the peer must speak, 4 or 5 */
    bool framed;     /* segments; may be set by the callback */
    bool lz4;
    bool server;         /* reads requests, of any version: the caller looks at it */
    struct wb_buf cut;   /* a segment or bare envelope that has not ended */
    struct wb_buf large; /* an envelope over several segments so far */
    char *plain;         /* what was decompressed */
    size_t plain_cap;
    const char *why; /* why reading failed; static text */
};

void wb_cql_reader_init(struct wb_cql_reader *r, unsigned version, bool lz4);
void wb_cql_reader_release(struct wb_cql_reader *r);

/* Takes one envelope, which is not valid afterwards; negative ends reading. */
typedef int (*wb_cql_on)(void *arg, const struct wb_cql_envelope *e);

/* Takes n bytes, calls on for each envelope. Returns 0, -1 when the bytes break the protocol (why),
 * or what on returned. */
int wb_cql_read(struct wb_cql_reader *r, const char *data, size_t n, wb_cql_on on, void *arg);

/* Appends a segment with one small envelope, or the bare envelope where nothing is framed. */
void wb_cql_wrap(const struct wb_cql_reader *r, const struct wb_buf *envelope, struct wb_buf *out);

#endif
