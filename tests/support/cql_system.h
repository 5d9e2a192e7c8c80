/*
 * A cluster that cql_responder makes up, as its system tables tell of it.
 */
#ifndef WB_TESTS_CQL_SYSTEM_H
#define WB_TESTS_CQL_SYSTEM_H

#include <arpa/inet.h>
#include <string.h>

#include "runners/load/protocols/cql_message.h"
#include "server/base/mem.h"
#include "tests/support/cql_bytes.h"

#define CLUSTER_MAX 16
#define TOKENS 8 /* of a server */
#define BIGINT 0x02
#define INT 0x09
#define UUID 0x0c
#define INET 0x10

struct made_up {
    char *server[CLUSTER_MAX]; /* addresses */
    int n, self;
    int64_t port; /* of all */
};

struct fact {
    const char *column;
    unsigned type, inner; /* inner: of sets and maps, whose text is */
};

static const struct fact facts[] = {{"tokens", WB_CQL_SET, WB_CQL_VARCHAR},
                                    {"schema_version", UUID, 0},
                                    {"host_id", UUID, 0},
                                    {"native_address", INET, 0},
                                    {"rpc_address", INET, 0},
                                    {"peer", INET, 0},
                                    {"native_port", INT, 0},
                                    {"replication", WB_CQL_MAP, WB_CQL_VARCHAR}};

static const struct fact *fact_of(const char *column)
{
    for (size_t i = 0; i < WB_LEN(facts); i++)
        if (strcmp(facts[i].column, column) == 0)
            return &facts[i];
    return NULL;
}

static void add_fact(const struct made_up *m, struct wb_buf *b, const char *column, int server)
{
    struct wb_buf v = WB_BUF_INIT(65536);
    struct in_addr a;
    char uuid[16] = "schema of canned";

    if (strcmp(column, "tokens") == 0) {
        add32(&v, TOKENS);
        for (int k = 0; k < TOKENS; k++) {
            uint64_t step = UINT64_MAX / (uint64_t)(m->n * TOKENS);
            WB_AUTO_FREE char *t = wb_strf(
                "%lld", (long long)(int64_t)((1ull << 63) + step * (uint64_t)(k * m->n + server)));
            add_text(&v, t);
        }
    } else if (strcmp(column, "host_id") == 0 || strcmp(column, "schema_version") == 0) {
        uuid[0] = column[0] == 'h' ? (char)server : 's';
        wb_buf_add(&v, uuid, sizeof(uuid));
    } else if (strstr(column, "address") || strcmp(column, "peer") == 0) {
        if (inet_pton(AF_INET, m->server[server], &a) == 1)
            wb_buf_add(&v, &a, sizeof(a));
    } else if (strcmp(column, "native_port") == 0) {
        add32(&v, (uint32_t)m->port);
    } else if (strcmp(column, "replication") == 0) {
        add32(&v, 2);
        add_text(&v, "class");
        add_text(&v, "org.apache.cassandra.locator.SimpleStrategy");
        add_text(&v, "replication_factor");
        add_text(&v, "1");
    } else {
        wb_buf_adds(&v, strcmp(column, "data_center") == 0 ? "dc1"
                        : strcmp(column, "rack") == 0      ? "r1"
                        : strcmp(column, "partitioner") == 0
                            ? "org.apache.cassandra.dht.Murmur3Partitioner"
                        : strcmp(column, "release_version") == 0 ? "5.0.0"
                                                                 : "canned");
    }
    add_bytes(b, wb_buf_str(&v), v.len);
    wb_buf_release(&v);
}

/* Columns of SELECT *. */
static const char *const all_local[] = {"data_center", "rack",           "tokens",
                                        "partitioner", "host_id",        "release_version",
                                        "rpc_address", "schema_version", NULL};
static const char *const all_peers[] = {
    "peer",        "data_center",     "rack",           "tokens", "host_id",
    "rpc_address", "release_version", "schema_version", NULL};

/* The names between SELECT and FROM. */
static void read_columns(const char *text, bool peers, struct wb_strv *out)
{
    const char *from = strcasestr(text, " from "), *s = text + 6;

    if (strchr(text, '*') && strchr(text, '*') < from) {
        for (const char *const *c = peers ? all_peers : all_local; *c; c++)
            wb_strv_add(out, *c);
        return;
    }
    while (s < from) {
        size_t n;
        s += strspn(s, " ,");
        n = strcspn(s, " ,");
        if (n > 0)
            wb_strv_addf(out, "%.*s", (int)n, s);
        s += n;
    }
}

/* What the rows of "SELECT a, b FROM t ..." have in them. */
static void add_system_columns(struct wb_buf *b, const struct wb_strv *columns)
{
    add32(b, WB_CQL_GLOBAL_TABLE);
    add32(b, (uint32_t)columns->n);
    add_string(b, "system");
    add_string(b, "table");
    for (size_t i = 0; i < columns->n; i++) {
        const struct fact *f = fact_of(columns->v[i]);
        add_string(b, columns->v[i]);
        add16(b, f ? f->type : WB_CQL_VARCHAR);
        for (unsigned k = 0; f && f->inner && k < (f->type == WB_CQL_MAP ? 2u : 1u); k++)
            add16(b, f->inner);
    }
}

static bool of_peers(const char *text)
{
    return strstr(text, "system.peers") != NULL;
}

/* The result's part of the answer to PREPARE. */
static void add_system_prepared(struct wb_buf *b, const char *text)
{
    struct wb_strv columns = {0};

    read_columns(text, of_peers(text), &columns);
    add_system_columns(b, &columns);
    wb_strv_release(&columns);
}

/* The body of the answer to the query itself. */
static void add_system_rows(const struct made_up *m, struct wb_buf *b, const char *text)
{
    bool one = strstr(text, "system.local") || strstr(text, "system_schema.keyspaces");
    bool peers = of_peers(text);
    struct wb_strv columns = {0};
    int rows = peers ? m->n - 1 : one;

    read_columns(text, peers, &columns);
    add32(b, WB_CQL_ROWS);
    add_system_columns(b, &columns);
    add32(b, (uint32_t)rows);
    for (int server = 0; server < m->n && rows > 0; server++)
        if (peers ? server != m->self : server == m->self)
            for (size_t i = 0; i < columns.n; i++)
                add_fact(m, b, columns.v[i], server);
    wb_strv_release(&columns);
}

#endif
