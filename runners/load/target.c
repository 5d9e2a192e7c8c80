#include "runners/load/target.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

void wb_target_release(struct wb_target *t)
{
    for (size_t i = 0; i < t->naddr; i++)
        free(t->addr[i].name);
    free(t->addr);
    free(t->where);
    t->addr = NULL;
    t->where = NULL;
    t->n = t->naddr = 0;
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
    out->name = wb_strf(strchr(host, ':') ? "[%s]:%lld" : "%s:%lld", host, (long long)port);
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

static void make_room(struct wb_target *t)
{
    t->addr = wb_calloc(WB_TARGET_ADDRS, sizeof(*t->addr));
    t->where = wb_calloc(WB_TARGETS_MAX, sizeof(*t->where));
    for (size_t i = 0; i < WB_TARGETS_MAX; i++)
        atomic_store_explicit(&t->where[i], (uint16_t)i, memory_order_relaxed);
}

int wb_target_replace(struct wb_target *t, const struct wb_strv *names, struct wb_err *err)
{
    struct wb_target made = {.protocol = t->protocol};
    int rc = 0;

    if (names->n == 0 || names->n > WB_TARGETS_MAX)
        return wb_fail(err, WB_LIMIT, "target: %zu addresses, 1 to %d are allowed", names->n,
                       WB_TARGETS_MAX);
    make_room(&made);
    for (; made.n < names->n && rc == 0; made.n++) {
        WB_AUTO_FREE char *host = NULL;
        int64_t port = t->protocol->port;

        rc = split(names->v[made.n], strlen(names->v[made.n]), &host, &port, err);
        if (rc == 0)
            rc = resolve(host, port, &made.addr[made.n], err);
        made.naddr = made.n + 1;
    }
    wb_target_release(rc < 0 ? &made : t);
    if (rc == 0)
        *t = made;
    return rc;
}

int wb_target_move(struct wb_target *t, size_t i, const char *name, struct wb_err *err)
{
    WB_AUTO_FREE char *host = NULL;
    int64_t port = t->protocol->port;
    int rc;

    if (t->naddr == WB_TARGET_ADDRS)
        return wb_fail(err, WB_LIMIT, "target: the places have moved too often");
    rc = split(name, strlen(name), &host, &port, err);
    if (rc == 0)
        rc = resolve(host, port, &t->addr[t->naddr], err);
    if (rc == 0)
        atomic_store_explicit(&t->where[i], (uint16_t)t->naddr++, memory_order_release);
    return rc;
}

int wb_target_parse(const char *text, struct wb_target *out, struct wb_err *err)
{
    const char *sep = strstr(text, "://"), *s;
    struct wb_target t = {0};

    if (sep)
        t.protocol = wb_protocol_find(text, (size_t)(sep - text));
    if (!t.protocol)
        return no_protocol(text, err);
    make_room(&t);
    if (t.protocol->no_socket) {
        t.addr[t.n++].name = wb_strdup(t.protocol->name);
        t.naddr = t.n;
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
        t.naddr = ++t.n;
        s += n;
    } while (*s++ == ',');
    *out = t;
    return 0;
}
