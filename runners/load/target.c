#include "runners/load/target.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

void wb_target_release(struct wb_target *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->addr[i].name);
    free(t->addr);
    t->addr = NULL;
    t->n = 0;
}

/* Splits "host:port", "[v6]:port" or "host". *port stays when there is none. */
static int split(const char *s, size_t n, char **host, int64_t *port, struct wb_err *err)
{
    WB_AUTO_FREE char *text = wb_strndup(s, n);
    char *end = strchr(text, ']'), *colon = strrchr(end ? end : text, ':');
    char *name = text;

    if (colon) {
        *colon = 0;
        if (wb_parse_int(colon + 1, 1, 65535, port, NULL) < 0)
            return wb_fail(err, WB_INVALID, "target: '%s' is not a port from 1 to 65535",
                           colon + 1);
    }
    if (*name == '[') {
        if (!end)
            return wb_fail(err, WB_INVALID, "target: '%s' has no closing bracket", text);
        *end = 0;
        name++;
    }
    if (!*name || strchr(name, '/'))
        return wb_fail(err, WB_INVALID, "target: '%.*s' is not HOST:PORT", (int)n, s);
    *host = wb_strdup(name);
    return 0;
}

static int resolve(const char *host, int64_t port, struct wb_target_addr *out, struct wb_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    WB_AUTO_FREE char *service = wb_strf("%lld", (long long)port);
    int rc = getaddrinfo(host, service, &hints, &found);

    if (rc != 0)
        return wb_fail(err, WB_UNAVAILABLE, "target: no address for '%s': %s", host,
                       gai_strerror(rc));
    for (const struct addrinfo *a = found; a && out->ways < WB_TARGET_WAYS; a = a->ai_next) {
        memcpy(&out->addr[out->ways], a->ai_addr, a->ai_addrlen);
        out->len[out->ways++] = a->ai_addrlen;
    }
    out->name = wb_strf("%s:%lld", host, (long long)port);
    freeaddrinfo(found);
    return 0;
}

static int no_protocol(const char *text, struct wb_err *err)
{
    struct wb_buf list = WB_BUF_INIT(256);

    for (size_t i = 0; wb_protocols()[i]; i++)
        wb_buf_addf(&list, "%s%s://", i ? ", " : "", wb_protocols()[i]->name);
    (void)wb_fail(err, WB_INVALID, "target: '%s' does not begin with one of: %s", text,
                  wb_buf_str(&list));
    wb_buf_release(&list);
    return -WB_INVALID;
}

int wb_target_parse(const char *text, struct wb_target *out, struct wb_err *err)
{
    const char *sep = strstr(text, "://"), *s;
    struct wb_target t = {0};

    if (sep)
        t.protocol = wb_protocol_find(text, (size_t)(sep - text));
    if (!t.protocol)
        return no_protocol(text, err);
    t.addr = wb_calloc(WB_TARGETS_MAX, sizeof(*t.addr));
    if (t.protocol->no_socket) {
        t.addr[t.n++].name = wb_strdup(t.protocol->name);
        *out = t;
        return 0;
    }
    s = sep + 3;
    do {
        size_t n = strcspn(s, ",");
        WB_AUTO_FREE char *host = NULL;
        int64_t port = t.protocol->port;
        int rc = t.n == WB_TARGETS_MAX
                     ? wb_fail(err, WB_LIMIT, "target: more than %d addresses", WB_TARGETS_MAX)
                     : split(s, n, &host, &port, err);
        if (rc == 0)
            rc = resolve(host, port, &t.addr[t.n], err);
        if (rc < 0) {
            wb_target_release(&t);
            return rc;
        }
        t.n++;
        s += n;
    } while (*s++ == ',');
    *out = t;
    return 0;
}
