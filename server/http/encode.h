/*
 * Which form of an answer a client takes (RFC 9110, 12.5), and the compressed form.
 */
#ifndef WB_HTTP_ENCODE_H
#define WB_HTTP_ENCODE_H

#include "server/http/message.h"

#define WB_GZIP_MIN 1024 /* bytes; a smaller answer is sent as it is */

/* Whether a list of media ranges (Accept; NULL: anything) takes a type such as "application/json".
 */
bool wb_accepts_type(const char *accept, const char *type);
/* Whether a list of codings (Accept-Encoding) takes gzip; without one it does not. */
bool wb_accepts_gzip(const char *codings);
/* The gzip form (RFC 1952) of bytes, appended. */
void wb_gzip(const void *data, size_t n, struct wb_buf *out);
/* Compresses a finished answer where it helps and the client takes it: Content-Encoding, Vary, and
 * an entity tag of its own ("x" becomes "x-gzip"). */
void wb_answer_encode(const struct wb_request *q, struct wb_answer *a);

#endif
