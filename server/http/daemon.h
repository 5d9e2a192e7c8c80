/*
 * The HTTP server: connections, what may come in over them, and what goes out. The only place that
 * knows libmicrohttpd (0.9.75). One thread of the library's does all input and output; requests
 * are answered by the pool while their connection is suspended.
 */
#ifndef WB_HTTP_DAEMON_H
#define WB_HTTP_DAEMON_H

#include <stdint.h>

#include "server/http/pool.h"

struct wb_daemon;

struct wb_daemon_spec {
    struct wb_service *service;
    struct wb_pool *pool;
    const char *address;           /* IPv4 or IPv6, "127.0.0.1" */
    uint16_t port;                 /* 0: any free one */
    const char *certificate, *key; /* PEM texts for TLS; both or neither */
};

/* WB_CONFLICT when the port is taken. */
int wb_daemon_start(const struct wb_daemon_spec *spec, struct wb_daemon **out,
                    struct wb_err *err) WB_MUST_CHECK;
uint16_t wb_daemon_port(const struct wb_daemon *d);
/* Ends connections that keep the server waiting for too long; about once a second. */
void wb_daemon_tick(struct wb_daemon *d, int64_t now_ns);
/* Takes no new connections; the hub must be closed before, so that event streams end. */
void wb_daemon_stop(struct wb_daemon *d);

#endif
