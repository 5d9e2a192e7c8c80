/*
 * Where load goes: "scheme://host:port[,host:port...]", resolved once before the run.
 */
#ifndef WB_LOAD_TARGET_H
#define WB_LOAD_TARGET_H

#include <sys/socket.h>

#include "runners/load/protocol.h"

#define WB_TARGETS_MAX 1024
#define WB_TARGET_WAYS 4

/* One host and port. A name can have several addresses (localhost: IPv6 and IPv4); a connection
 * that fails tries the next one. */
struct wb_target_addr {
    struct sockaddr_storage addr[WB_TARGET_WAYS];
    socklen_t len[WB_TARGET_WAYS];
    unsigned ways;
    char *name; /* "host:port" as given */
};

struct wb_target {
    const struct wb_protocol *protocol;
    struct wb_target_addr *addr;
    size_t n;
};

/* Parses and resolves. WB_INVALID names what is wrong, WB_UNAVAILABLE a name without address. */
int wb_target_parse(const char *text, struct wb_target *out, struct wb_err *err) WB_MUST_CHECK;
void wb_target_release(struct wb_target *t);

#endif
