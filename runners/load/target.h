/*
 * Where load goes: "scheme://host:port[,host:port...]", resolved once before the run.
 */
#ifndef WB_LOAD_TARGET_H
#define WB_LOAD_TARGET_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "runners/load/protocol.h"
#include "server/base/mem.h"

#define WB_TARGETS_MAX 1024
#define WB_TARGET_WAYS 4
#define WB_TARGET_ADDRS (WB_TARGETS_MAX + 256)

/* One host and port. A name can have several addresses (localhost: IPv6 and IPv4); a connection
 * that fails tries the next one. */
struct wb_target_addr {
    struct sockaddr_storage addr[WB_TARGET_WAYS];
    socklen_t len[WB_TARGET_WAYS];
    unsigned ways;
    char *name; /* "host:port" as given */
};

/* The i-th of n places is at addr[where[i]]. A place can move while load goes on: then an address
 * is added behind the others, those that are there stay. */
struct wb_target {
    const struct wb_protocol *protocol;
    struct wb_target_addr *addr; /* room for WB_TARGET_ADDRS */
    _Atomic uint16_t *where;     /* room for WB_TARGETS_MAX */
    size_t n, naddr;
};

static inline const struct wb_target_addr *wb_target_addr(const struct wb_target *t, size_t i)
{
    return &t->addr[atomic_load_explicit(&t->where[i], memory_order_acquire)];
}

/* Parses and resolves. WB_INVALID names what is wrong, WB_UNAVAILABLE a name without address. */
int wb_target_parse(const char *text, struct wb_target *out, struct wb_err *err) WB_MUST_CHECK;
void wb_target_release(struct wb_target *t);

/* Before the load: the places become these, "host:port" each. Untouched on failure. */
int wb_target_replace(struct wb_target *t, const struct wb_strv *names,
                      struct wb_err *err) WB_MUST_CHECK;
/* During the load, one thread at a time: connections to place i are made to "host:port" from now
 * on. WB_LIMIT after some hundred moves. */
int wb_target_move(struct wb_target *t, size_t i, const char *name,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
