/*
 * Answers to CQL queries as lines of text. Pure functions on bytes; hostile input is an error,
 * never a crash.
 */
#ifndef WB_ASK_ROWS_H
#define WB_ASK_ROWS_H

#include "runners/load/protocols/cql_message.h"

/*
 * A result without rows adds nothing to out. Rows are added as lines
 * "<number>\t<value>\t<value>...": tabs, line breaks and backslashes of texts become \t, \n, \r and
 * \\; null is \N; blobs and types without a plain text are 0x and hex digits; sets and lists are
 * [a,b], maps {key=value,key=value} in the server's order; times are Unix ms.
 * WB_IO: the server's own error, with its text. WB_UNAVAILABLE: it says that it cannot serve yet
 * or now. WB_PROTOCOL: the bytes are not what the protocol allows.
 */
int wb_ask_rows(const struct wb_cql_envelope *e, int number, struct wb_buf *out,
                struct wb_err *err) WB_MUST_CHECK;

#endif
