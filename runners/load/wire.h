/*
 * A connection for questions outside of the load: it waits, with a deadline and a cancel token. For
 * one thread.
 */
#ifndef WB_LOAD_WIRE_H
#define WB_LOAD_WIRE_H

#include <stdint.h>
#include <sys/socket.h>

#include "runners/load/tls.h"
#include "server/base/cancel.h"
#include "server/base/err.h"

struct wb_wire {
    int fd;
    struct wb_tls_conn *tls;
    char *name; /* "host:port" for messages */
    const struct wb_cancel *cancel;
    int64_t deadline; /* ns monotonic: no call waits longer; may be moved */
};

#define WB_WIRE_INIT \
    {                \
        .fd = -1     \
    }

/* Connects by the deadline, with TLS unless tls is NULL. WB_UNAVAILABLE: nobody listens there, or
 * the peer closed; WB_TIMEOUT; WB_CANCELLED; WB_PROTOCOL: TLS failed. The same of the other two. On
 * failure the wire is still to be closed. */
int wb_wire_open(struct wb_wire *w, const char *name, const struct sockaddr *addr, socklen_t len,
                 const struct wb_tls *tls, const struct wb_cancel *cancel, int64_t deadline,
                 struct wb_err *err) WB_MUST_CHECK;
void wb_wire_close(struct wb_wire *w); /* closed already is fine */

int wb_wire_send(struct wb_wire *w, const void *data, size_t n, struct wb_err *err) WB_MUST_CHECK;
/* Waits for some bytes, at most `size` > 0; *n > 0 says how many. */
int wb_wire_recv(struct wb_wire *w, void *data, size_t size, size_t *n,
                 struct wb_err *err) WB_MUST_CHECK;

#endif
