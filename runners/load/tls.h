/*
 * TLS of load connections, over sockets that do not block (OpenSSL behind it).
 */
#ifndef WB_LOAD_TLS_H
#define WB_LOAD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "server/base/err.h"

struct wb_tls;      /* of a run: constant after it was made, shared by all threads */
struct wb_tls_conn; /* of one connection */

/* ca: file with the certificates that sign those of the servers, "system" for the host's, or
 * "unchecked": then anybody may answer. cert: file with an own certificate and its key (PEM), or
 * NULL. WB_INVALID names the file that cannot be used. */
int wb_tls_new(const char *ca, const char *cert, struct wb_tls **out,
               struct wb_err *err) WB_MUST_CHECK;
void wb_tls_free(struct wb_tls *t); /* NULL is fine */

/* Begins on a connected socket, which stays the caller's. name is "host:port"; the certificate must
 * be of that host. */
struct wb_tls_conn *wb_tls_begin(const struct wb_tls *t, int fd, const char *name);
void wb_tls_end(struct wb_tls_conn *c); /* NULL is fine */
/* Goes on with the handshake: 1 it is done, 0 it waits for the socket, -WB_PROTOCOL it failed. */
int wb_tls_handshake(struct wb_tls_conn *c, struct wb_err *err) WB_MUST_CHECK;

/* As send and recv on a socket that does not block: bytes, 0 at the end (recv), or -1 with errno.
 * They stop only when all is done, the socket would block, or at the end, so that they can be used
 * with edge-triggered events. */
ssize_t wb_tls_send(struct wb_tls_conn *c, const void *data, size_t n);
ssize_t wb_tls_recv(struct wb_tls_conn *c, void *data, size_t n);

#endif
