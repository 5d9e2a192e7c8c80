/* The whole service from start to end: database, hub, dispatch, pool, HTTP. */
#ifndef WB_HTTP_SERVE_H
#define WB_HTTP_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/cancel.h"
#include "server/base/mem.h"

struct wb_serve_spec {
    const char *store, *state, *recipes, *web; /* absolute */
    const struct wb_host_pools *pools;         /* of hosts, borrowed */
    const char *program, *load_program, *docker_socket;
    const char *address;
    uint16_t port;
    const char *certificate, *key; /* paths of PEM files, or NULL */
    const struct wb_strv *hosts;   /* names beside localhost and the address */
    bool anonymous_read;
    int64_t requests;               /* that a token or address has a minute; 0: no limits */
    const struct wb_cancel *cancel; /* ends the service */
    /* Told once, when requests are taken. token is the admin's if it was made just now, else NULL;
     * it is kept nowhere. */
    void (*ready)(void *arg, const char *url, const char *token);
    void *arg;
};

/* Serves until cancelled. One server at a time for a state folder: WB_CONFLICT. Campaigns that run
 * go on without it and are found again. */
int wb_serve(const struct wb_serve_spec *spec, struct wb_err *err) WB_MUST_CHECK;

#endif
