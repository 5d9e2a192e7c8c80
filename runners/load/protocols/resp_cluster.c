#include "runners/load/protocols/resp_cluster.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/shard.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define FIND_TIMEOUT (5 * WB_SEC)
#define REFRESH_TIMEOUT (500 * WB_MS)
#define REFRESH_PAUSE WB_SEC
#define ANSWER_MAX (4u << 20)
#define NODES_MAX WB_TARGETS_MAX
#define PASS_MAX 100000 /* values within a value that is passed over */
#define READ_SIZE 65536

static const char question[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

struct wb_resp_cluster {
    const struct wb_buf *hello;
    const struct wb_tls *tls;
    struct wb_target *target; /* after find */
    _Atomic uint16_t node[WB_SLOTS];
    atomic_bool stale;
    int64_t read_at; /* ns monotonic: last time that the table was read */
    size_t first;    /* address that is asked first */
};

/* --- the answer --- */

/* p is NULL once something is missing; bad: it is no such answer. */
struct reader {
    const char *p, *end;
    bool bad;
};

/* The text of a line behind its type, without CRLF; its type, 0 when there is none. */
static char take_line(struct reader *r, const char **text, size_t *n)
{
    const char *lf = r->p ? memchr(r->p, '\n', (size_t)(r->end - r->p)) : NULL;
    char type;

    if (!lf) {
        r->p = NULL;
        return 0;
    }
    if (lf - r->p < 2 || lf[-1] != '\r') {
        r->bad = true;
        return 0;
    }
    type = r->p[0];
    *text = r->p + 1;
    *n = (size_t)(lf - r->p) - 2;
    r->p = lf + 1;
    return type;
}

static bool number_of(const char *text, size_t n, int64_t *out)
{
    WB_AUTO_FREE char *s = wb_strndup(text, n);

    return wb_parse_int(s, -1, INT32_MAX, out, NULL) == 0;
}

/* A line of this type with a number; -1 stands for null. */
static int64_t take_number(struct reader *r, const char *types)
{
    const char *text = NULL;
    size_t n = 0;
    int64_t v = 0;
    char type = take_line(r, &text, &n);

    if (type && (!strchr(types, type) || !number_of(text, n, &v)))
        r->bad = true;
    return v;
}

/* A bulk string; NULL for null and when something is missing. Caller frees. */
static char *take_text(struct reader *r)
{
    int64_t n = take_number(r, "$");
    char *text;

    if (r->bad || !r->p || n < 0)
        return NULL;
    if (r->end - r->p < n + 2) {
        r->p = NULL;
        return NULL;
    }
    text = wb_strndup(r->p, (size_t)n);
    r->p += n + 2;
    return text;
}

/* Passes one value with all that is in it. */
static void pass(struct reader *r)
{
    int64_t left = 1;

    for (int64_t passed = 0; left > 0 && r->p && !r->bad; left--, passed++) {
        const char *text = NULL;
        size_t n = 0;
        int64_t v = 0;
        char type = take_line(r, &text, &n);

        if (!type || type == ':' || type == '+' || type == '_' || type == '#')
            continue;
        r->bad |= !number_of(text, n, &v) || passed > PASS_MAX;
        if (type == '*' || type == '~')
            left += v > 0 ? v : 0;
        else if (type == '%')
            left += v > 0 ? 2 * v : 0;
        else if (type != '$')
            r->bad = true;
        else if (v >= 0 && r->p)
            r->p = r->end - r->p < v + 2 ? NULL : r->p + v + 2;
    }
}

static int16_t node_index(struct wb_strv *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (strcmp(nodes->v[i], name) == 0)
            return (int16_t)i;
    if (nodes->n == NODES_MAX)
        return -1;
    wb_strv_add(nodes, name);
    return (int16_t)(nodes->n - 1);
}

static char *name_of(const char *host, int64_t port)
{
    return strchr(host, ':') ? wb_strf("[%s]:%lld", host, (long long)port)
                             : wb_strf("%s:%lld", host, (long long)port);
}

/* "first last [host port id ...] replica..." */
static void take_range(struct reader *r, const char *self, struct wb_strv *nodes, int16_t *slots)
{
    int64_t parts = take_number(r, "*"), first = take_number(r, ":"), last = take_number(r, ":");
    int64_t about = take_number(r, "*"), port;
    WB_AUTO_FREE char *host = take_text(r);
    WB_AUTO_FREE char *name = NULL;
    int16_t node;

    port = take_number(r, ":");
    for (int64_t i = 2; i < about && r->p && !r->bad; i++)
        pass(r);
    for (int64_t i = 3; i < parts && r->p && !r->bad; i++)
        pass(r);
    if (!r->p || r->bad)
        return;
    if (parts < 3 || about < 2 || first < 0 || last < first || last >= WB_SLOTS || port < 1 ||
        port > 65535) {
        r->bad = true;
        return;
    }
    name = name_of(host && *host && strcmp(host, "?") != 0 ? host : self, port);
    node = node_index(nodes, name);
    for (int64_t s = first; s <= last; s++)
        slots[s] = node;
}

int64_t wb_resp_cluster_read(const char *data, size_t n, const char *self, struct wb_strv *nodes,
                             int16_t *slots)
{
    struct reader r = {.p = data, .end = data + n};
    int64_t ranges = take_number(&r, "*");

    for (size_t i = 0; i < WB_SLOTS; i++)
        slots[i] = -1;
    r.bad |= ranges > WB_SLOTS;
    for (int64_t i = 0; i < ranges && r.p && !r.bad; i++)
        take_range(&r, self, nodes, slots);
    if (r.bad)
        return -1;
    return r.p ? r.p - data : 0;
}

/* --- asking --- */

/* What stands in front of the answer: that to the greeting, whose values do not matter. */
static int64_t greeting_length(const struct wb_resp_cluster *k, const struct wb_buf *in,
                               struct wb_err *err)
{
    struct reader r = {.p = wb_buf_str(in), .end = wb_buf_str(in) + in->len};

    if (k->hello->len == 0)
        return 0;
    if (in->len > 0 && *r.p == '-')
        return wb_fail(err, WB_UNAVAILABLE, "the server said: %.*s",
                       (int)strcspn(wb_buf_str(in) + 1, "\r"), wb_buf_str(in) + 1);
    pass(&r);
    if (r.bad)
        return wb_fail(err, WB_PROTOCOL, "the answer to the greeting is damaged");
    return r.p ? r.p - wb_buf_str(in) : 0;
}

static int read_answer(const struct wb_resp_cluster *k, struct wb_wire *w, const char *self,
                       struct wb_strv *nodes, int16_t *slots, struct wb_err *err)
{
    struct wb_buf in = WB_BUF_INIT(ANSWER_MAX);
    int64_t used = 0;
    int rc = 0;

    while (rc == 0 && used == 0) {
        char *room = wb_buf_room(&in, READ_SIZE);
        int64_t skip;
        size_t n = 0;

        if (!room) {
            rc = wb_fail(err, WB_PROTOCOL, "%s: the answer is too long", w->name);
            break;
        }
        rc = wb_wire_recv(w, room, READ_SIZE, &n, err);
        if (rc < 0)
            break;
        wb_buf_commit(&in, n);
        skip = greeting_length(k, &in, err);
        if (skip < 0)
            rc = (int)skip;
        else if ((size_t)skip < in.len && in.data[skip] == '-')
            rc =
                wb_fail(err, WB_UNSUPPORTED, "%s is no node of a cluster: %.*s", w->name,
                        (int)strcspn(wb_buf_str(&in) + skip + 1, "\r"), wb_buf_str(&in) + skip + 1);
        else if (skip > 0 || k->hello->len == 0)
            used = wb_resp_cluster_read(in.data + skip, in.len - (size_t)skip, self, nodes, slots);
        if (used < 0)
            rc = wb_fail(err, WB_PROTOCOL, "%s: the answer to CLUSTER SLOTS is damaged", w->name);
    }
    wb_buf_release(&in);
    return rc;
}

static int ask(const struct wb_resp_cluster *k, const struct wb_target_addr *a,
               const struct wb_cancel *cancel, int64_t deadline, struct wb_strv *nodes,
               int16_t *slots, struct wb_err *err)
{
    struct wb_wire w = WB_WIRE_INIT;
    const char *colon = strrchr(a->name, ':');
    WB_AUTO_FREE char *self = wb_strndup(a->name, (size_t)(colon - a->name));
    int rc = -WB_UNAVAILABLE;

    for (unsigned way = 0; way < a->ways && rc == -WB_UNAVAILABLE; way++) {
        wb_wire_close(&w);
        rc = wb_wire_open(&w, a->name, (const struct sockaddr *)&a->addr[way], a->len[way], k->tls,
                          cancel, deadline, err);
    }
    if (rc == 0 && k->hello->len > 0)
        rc = wb_wire_send(&w, k->hello->data, k->hello->len, err);
    if (rc == 0)
        rc = wb_wire_send(&w, question, sizeof(question) - 1, err);
    if (rc == 0)
        rc = read_answer(k, &w, self, nodes, slots, err);
    wb_wire_close(&w);
    return rc;
}

/* --- the run's cluster --- */

struct wb_resp_cluster *wb_resp_cluster_new(const struct wb_buf *hello, const struct wb_tls *tls)
{
    struct wb_resp_cluster *k = wb_calloc(1, sizeof(*k));

    k->hello = hello;
    k->tls = tls;
    return k;
}

void wb_resp_cluster_free(struct wb_resp_cluster *k)
{
    free(k);
}

static int use_nodes(struct wb_resp_cluster *k, struct wb_target *target,
                     const struct wb_strv *nodes, const int16_t *slots, struct wb_err *err)
{
    for (uint32_t s = 0; s < WB_SLOTS; s++) {
        if (slots[s] < 0)
            return wb_fail(err, WB_UNAVAILABLE, "the cluster is not complete: no node has slot %u",
                           s);
        atomic_store_explicit(&k->node[s], (uint16_t)slots[s], memory_order_relaxed);
    }
    k->target = target;
    return wb_target_replace(target, nodes, err);
}

int wb_resp_cluster_find(struct wb_resp_cluster *k, struct wb_target *target,
                         const struct wb_cancel *cancel, struct wb_err *err)
{
    WB_AUTO_FREE int16_t *slots = wb_calloc(WB_SLOTS, sizeof(*slots));
    int rc = -WB_UNAVAILABLE;

    for (size_t i = 0; i < target->n; i++) {
        struct wb_strv nodes = {0};

        rc = ask(k, wb_target_addr(target, i), cancel, wb_now_ns(NULL) + FIND_TIMEOUT, &nodes,
                 slots, err);
        if (rc == 0) {
            rc = use_nodes(k, target, &nodes, slots, err);
            i = target->n; /* whatever it is: another node says no better */
        }
        wb_strv_release(&nodes);
        if (rc != -WB_UNAVAILABLE && rc != -WB_TIMEOUT)
            break;
    }
    k->read_at = wb_now_ns(NULL);
    return rc;
}

uint32_t wb_resp_cluster_node(const struct wb_resp_cluster *k, uint32_t slot)
{
    return atomic_load_explicit(&k->node[slot], memory_order_relaxed);
}

static uint32_t find_node(const struct wb_target *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(wb_target_addr(t, i)->name, name) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

uint32_t wb_resp_cluster_moved(struct wb_resp_cluster *k, const char *text, size_t n, uint32_t from,
                               bool ask_only)
{
    WB_AUTO_FREE char *line = wb_strndup(text, n < 512 ? n : 512);
    char *blank = strchr(line, ' '), *colon = blank ? strrchr(blank, ':') : NULL;
    WB_AUTO_FREE char *name = NULL;
    int64_t slot = 0, port = 0;
    uint32_t node;

    if (!colon)
        return UINT32_MAX;
    *blank = *colon = '\0';
    if (wb_parse_int(line, 0, WB_SLOTS - 1, &slot, NULL) < 0 ||
        wb_parse_int(colon + 1, 1, 65535, &port, NULL) < 0)
        return UINT32_MAX;
    if (blank[1] == '\0' || strcmp(blank + 1, "?") == 0) { /* the host that was asked */
        const char *own = wb_target_addr(k->target, from)->name, *end = strrchr(own, ':');

        name = wb_strf("%.*s:%lld", (int)(end - own), own, (long long)port);
    } else {
        name = name_of(blank + 1, port);
    }
    node = find_node(k->target, name);
    if (!ask_only) {
        atomic_store(&k->stale, true);
        if (node != UINT32_MAX)
            atomic_store_explicit(&k->node[slot], (uint16_t)node, memory_order_relaxed);
    } else if (node == UINT32_MAX) {
        atomic_store(&k->stale, true);
    }
    return node;
}

void wb_resp_cluster_lost(struct wb_resp_cluster *k)
{
    if (!atomic_load_explicit(&k->stale, memory_order_relaxed))
        atomic_store(&k->stale, true);
}

/* Gives each node of the answer its place among the addresses; -1 where there is none. */
static void place_nodes(struct wb_target *t, const struct wb_strv *nodes, int32_t *place)
{
    WB_AUTO_FREE bool *used = wb_calloc(t->n, sizeof(*used));
    size_t spare = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        uint32_t at = find_node(t, nodes->v[i]);

        place[i] = at == UINT32_MAX ? -1 : (int32_t)at;
        if (at != UINT32_MAX)
            used[at] = true;
    }
    for (size_t i = 0; i < nodes->n; i++) {
        while (spare < t->n && used[spare])
            spare++;
        if (place[i] >= 0 || spare == t->n || wb_target_move(t, spare, nodes->v[i], NULL) < 0)
            continue;
        place[i] = (int32_t)spare;
        used[spare] = true;
    }
}

void wb_resp_cluster_refresh(struct wb_resp_cluster *k, const struct wb_cancel *cancel)
{
    WB_AUTO_FREE int16_t *slots = NULL;
    WB_AUTO_FREE int32_t *place = NULL;
    struct wb_strv nodes = {0};
    int64_t now = wb_now_ns(NULL), deadline = now + REFRESH_TIMEOUT;
    int rc = -WB_UNAVAILABLE;

    if (!atomic_load(&k->stale) || now - k->read_at < REFRESH_PAUSE)
        return;
    atomic_store(&k->stale, false);
    slots = wb_calloc(WB_SLOTS, sizeof(*slots));
    /* One that does not answer takes all the time: the next try begins behind it. */
    for (size_t i = 0; i < k->target->n && rc < 0 && wb_now_ns(NULL) < deadline; i++) {
        wb_strv_release(&nodes);
        k->first %= k->target->n;
        rc = ask(k, wb_target_addr(k->target, k->first), cancel, deadline, &nodes, slots, NULL);
        k->first += rc < 0;
    }
    k->read_at = wb_now_ns(NULL);
    if (rc < 0) {
        atomic_store(&k->stale, true);
        wb_strv_release(&nodes);
        return;
    }
    place = wb_calloc(nodes.n + 1, sizeof(*place));
    place_nodes(k->target, &nodes, place);
    for (uint32_t s = 0; s < WB_SLOTS; s++)
        if (slots[s] >= 0 && place[slots[s]] >= 0)
            atomic_store_explicit(&k->node[s], (uint16_t)place[slots[s]], memory_order_relaxed);
    wb_strv_release(&nodes);
}
