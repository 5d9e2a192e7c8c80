/*
 * What wb-ask needs of CQL's binary protocol, version 4 (the project's native_protocol_v4.spec):
 * requests without values, and results as lines of text. Pure functions on bytes; hostile input is
 * an error, never a crash.
 */
#ifndef WB_ASK_CQL_H
#define WB_ASK_CQL_H

#include <stdint.h>

#include "server/base/buf.h"

#define WB_CQL_HEADER 9              /* bytes in front of every body */
#define WB_CQL_BODY_MAX (16u << 20)  /* longer answers are refused */
#define WB_CQL_QUERY_MAX (64u << 10) /* bytes of one query */

enum wb_cql_opcode {
    WB_CQL_ERROR = 0x00,
    WB_CQL_STARTUP = 0x01,
    WB_CQL_READY = 0x02,
    WB_CQL_AUTHENTICATE = 0x03,
    WB_CQL_OPTIONS = 0x05,
    WB_CQL_SUPPORTED = 0x06,
    WB_CQL_QUERY = 0x07,
    WB_CQL_RESULT = 0x08
};

struct wb_cql_header {
    uint8_t flags, opcode;
    uint32_t length; /* of the body, at most WB_CQL_BODY_MAX */
};

/* Appends a whole request. query is for WB_CQL_QUERY only, at consistency ONE. */
void wb_cql_request(enum wb_cql_opcode opcode, const char *query, struct wb_buf *out);

/* Reads the header of an answer. WB_PROTOCOL: another protocol version, not an answer, or longer
 * than WB_CQL_BODY_MAX. */
int wb_cql_header_read(const unsigned char *data, struct wb_cql_header *out,
                       struct wb_err *err) WB_MUST_CHECK;

/*
 * Reads the body of an answer to a query. A result without rows adds nothing to out. Rows are added
 * as lines "<number>\t<value>\t<value>...": tabs, line breaks and backslashes of texts become \t,
 * \n, \r and \\; null is \N; blobs and types without a plain text are 0x and hex digits; sets and
 * lists are [a,b], maps {key=value,key=value} in the server's order; times are Unix ms.
 * WB_IO: the server's own error, with its text. WB_UNAVAILABLE: it says that it cannot serve yet
 * or now. WB_PROTOCOL: the bytes are not what the protocol allows.
 */
int wb_cql_answer(const struct wb_cql_header *h, const unsigned char *body, int number,
                  struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;

#endif
