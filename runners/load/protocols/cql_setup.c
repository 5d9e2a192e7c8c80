#include "runners/load/protocols/cql_setup.h"

#include <ctype.h>
#include <stdlib.h>

#include "runners/load/conn.h"
#include "runners/load/password.h"
#include "runners/load/protocols/cql_frame.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define NAME_MAX_BYTES 48 /* of a keyspace or table, as Cassandra has it */
#define HEAD_MAX 256      /* bytes of a request without keys and values */
#define ROW_EXTRA 64      /* of a row of a batch, beside its id, key and value */
#define AGREE_TIMEOUT (30 * WB_SEC)
#define AGREE_PAUSE (100 * WB_MS)

/* --- options --- */

static const char *or_text(const char *s, const char *dflt)
{
    return s ? s : dflt;
}

static int check_name(const char *what, const char *s, struct wb_err *err)
{
    bool ok = isalpha((unsigned char)s[0]) && strlen(s) <= NAME_MAX_BYTES;

    for (const char *p = s; *p && ok; p++)
        ok = isalnum((unsigned char)*p) || *p == '_';
    return ok ? 0
              : wb_fail(err, WB_INVALID,
                        "%s: '%s' is not a letter and up to %d letters, digits and _", what, s,
                        NAME_MAX_BYTES - 1);
}

/* "one" for all, or "select=one,write=quorum": read is select, write all others. */
static int read_consistency(struct wb_cql *q, const char *s, struct wb_err *err)
{
    do {
        size_t n = strcspn(s, ","), name = strcspn(s, "=,");
        bool all = s[name] != '=', hit = all;
        const char *level = all ? s : s + name + 1;
        size_t len = n - (size_t)(level - s);
        uint16_t v;
        if (!wb_cql_consistency(level, len, &v))
            return wb_fail(err, WB_INVALID, "consistency: '%.*s' is not one of: %s", (int)len,
                           level, wb_cql_consistency_names());
        for (int op = 0; op < WB_CQL_OPS; op++) {
            const char *kind = op == WB_CQL_SELECT ? "read" : "write";
            bool mine = all || (strlen(kind) == name && memcmp(kind, s, name) == 0) ||
                        (strlen(wb_ops_cql[op]) == name && memcmp(wb_ops_cql[op], s, name) == 0);
            hit |= mine;
            if (mine)
                q->consistency[op] = v;
        }
        if (!hit)
            return wb_fail(err, WB_INVALID,
                           "consistency: '%.*s' is not read, write, select, insert, update, "
                           "delete or batch",
                           (int)name, s);
        s += n;
    } while (*s++ == ',');
    if (q->consistency[WB_CQL_SELECT] == 0)
        return wb_fail(err, WB_INVALID, "consistency: any is for writes only");
    return 0;
}

/* "logged:10" */
static int read_batch(struct wb_cql *q, const char *s, struct wb_err *err)
{
    const char *colon = strchr(s, ':');
    size_t n = colon ? (size_t)(colon - s) : strlen(s);
    int64_t rows = 0;

    if (n == 6 && memcmp(s, "logged", n) == 0)
        q->batch = WB_CQL_LOGGED;
    else if (n == 8 && memcmp(s, "unlogged", n) == 0)
        q->batch = WB_CQL_UNLOGGED;
    else
        n = 0;
    if (n == 0 || !colon || wb_parse_int(colon + 1, 1, WB_CQL_BATCH_MAX, &rows, NULL) < 0)
        return wb_fail(err, WB_INVALID,
                       "batch: '%s' is not logged:ROWS or unlogged:ROWS with 1 to %d rows", s,
                       WB_CQL_BATCH_MAX);
    q->batch_rows = (uint32_t)rows;
    return 0;
}

static int find_word(const char *what, const char *text, const char *yes, const char *no, bool *out,
                     struct wb_err *err)
{
    *out = strcmp(text, yes) == 0;
    if (!*out && strcmp(text, no) != 0)
        return wb_fail(err, WB_INVALID, "%s: '%s' is not one of: %s, %s", what, text, yes, no);
    return 0;
}

static int read_version(struct wb_cql *q, const char *s, struct wb_err *err)
{
    q->lower = strcmp(s, "auto") == 0;
    if (!q->lower && strcmp(s, "4") != 0 && strcmp(s, "5") != 0)
        return wb_fail(err, WB_INVALID, "native-protocol: '%s' is not one of: auto, 4, 5", s);
    q->hello.version = strcmp(s, "4") == 0 ? 4 : 5;
    return 0;
}

static int read_password(struct wb_cql *q, const struct wb_load_cql *o, struct wb_err *err)
{
    int rc = 0;

    if (!o->user)
        return o->password_file ? wb_fail(err, WB_INVALID, "password-file: there is no --user") : 0;
    rc = wb_load_password(o->password_file, &q->password, err);
    if (rc == 0 && !q->password)
        rc = wb_fail(err, WB_INVALID,
                     "user: no password; give --password-file or set WB_LOAD_PASSWORD");
    q->hello.user = o->user;
    q->hello.password = q->password;
    return rc;
}

static int read_options(struct wb_cql *q, const struct wb_load_cql *o, struct wb_err *err)
{
    int rc;

    q->keyspace = or_text(o->keyspace, "wb");
    q->table = or_text(o->table, "kv");
    q->key_column = or_text(o->key_column, "key");
    q->value_column = or_text(o->value_column, "value");
    rc = check_name("keyspace", q->keyspace, err);
    if (rc == 0)
        rc = check_name("table", q->table, err);
    if (rc == 0)
        rc = check_name("key-column", q->key_column, err);
    if (rc == 0)
        rc = check_name("value-column", q->value_column, err);
    if (rc == 0)
        rc = read_consistency(q, or_text(o->consistency, "local_one"), err);
    if (rc == 0)
        rc = read_batch(q, or_text(o->batch, "unlogged:10"), err);
    if (rc == 0)
        rc = find_word("compression", or_text(o->compression, "none"), "lz4", "none", &q->hello.lz4,
                       err);
    if (rc == 0)
        rc = find_word("timestamps", or_text(o->timestamps, "client"), "client", "server",
                       &q->timestamps, err);
    if (rc == 0)
        rc = find_word("routing", or_text(o->routing, "token"), "token", "round-robin", &q->route,
                       err);
    if (rc == 0)
        rc = find_word("nodes", or_text(o->nodes, "found"), "found", "given", &q->find, err);
    if (rc == 0)
        rc = read_version(q, or_text(o->native_protocol, "auto"), err);
    if (rc == 0)
        rc = read_password(q, o, err);
    if (rc == 0 && q->data->job->depth > WB_STREAMS_MAX)
        rc = wb_fail(err, WB_INVALID, "depth: %lld, a CQL connection has at most %d in flight",
                     (long long)q->data->job->depth, WB_STREAMS_MAX);
    if (rc == 0 && q->data->job->split != WB_LOAD_SPLIT_NONE)
        rc = wb_fail(err, WB_INVALID,
                     "split: every CQL server takes every key; --routing says "
                     "which one gets an operation");
    q->page_rows = (uint32_t)o->page_rows;
    q->hello.throw_on_overload = o->overload_errors;
    return rc;
}

static void make_statements(struct wb_cql *q)
{
    const char *ks = q->keyspace, *t = q->table, *key = q->key_column, *value = q->value_column;

    q->text[WB_CQL_SELECT] =
        wb_strf("SELECT \"%s\" FROM \"%s\".\"%s\" WHERE \"%s\" = ?", value, ks, t, key);
    q->text[WB_CQL_INSERT] =
        wb_strf("INSERT INTO \"%s\".\"%s\" (\"%s\", \"%s\") VALUES (?, ?)", ks, t, key, value);
    q->text[WB_CQL_UPDATE] =
        wb_strf("UPDATE \"%s\".\"%s\" SET \"%s\" = ? WHERE \"%s\" = ?", ks, t, value, key);
    q->text[WB_CQL_DELETE] = wb_strf("DELETE FROM \"%s\".\"%s\" WHERE \"%s\" = ?", ks, t, key);
}

/* Which statements will be executed: those of the mix, loading and checking. */
static void find_used(struct wb_cql *q)
{
    const struct wb_load_job *job = q->data->job;

    for (int op = 0; op < WB_CQL_OPS; op++)
        if (wb_protocol_used(&wb_protocol_cql, job, op))
            q->used[wb_cql_statement((enum wb_cql_op)op)] = true;
    if (job->load)
        q->used[WB_CQL_INSERT] = q->used[WB_CQL_SELECT] = true;
}

static size_t longest_request(const struct wb_cql *q)
{
    const struct wb_load_job *job = q->data->job;
    size_t row = (size_t)job->key_bytes + q->data->values.most, most = HEAD_MAX + row;

    if (wb_protocol_used(&wb_protocol_cql, job, WB_CQL_INSERTS))
        most = HEAD_MAX + q->batch_rows * (row + WB_CQL_ID_MAX + ROW_EXTRA);
    return most;
}

int wb_cql_setup(const struct wb_load_data *data, struct wb_cql **out, struct wb_err *err)
{
    struct wb_cql *q = wb_calloc(1, sizeof(*q));
    const struct wb_load_cql *o = &data->job->cql;
    int rc;

    q->data = data;
    rc = read_options(q, o, err);
    if (rc < 0) {
        wb_cql_end(q);
        return rc;
    }
    make_statements(q);
    find_used(q);
    q->key_text = wb_calloc(data->keys.bytes + WB_BUILD_SLACK, 1);
    wb_keys_text(&data->keys, 0, q->key_text);
    q->unix_us = wb_now_unix_ms(NULL) * 1000 - wb_now_ns(NULL) / 1000;
    q->envelope_max = longest_request(q);
    q->request_max = wb_cql_segments_max(q->envelope_max);
    *out = q;
    return 0;
}

void wb_cql_end(struct wb_cql *q)
{
    if (!q)
        return;
    for (int i = 0; i < WB_CQL_OPS; i++)
        free(q->text[i]);
    free(q->key_text);
    free(q->password);
    free(q->datacentre);
    wb_cql_ring_release(&q->ring);
    wb_cql_topology_release(&q->topology);
    free(q);
}

/* --- schema --- */

/* Whether all servers that are up have one schema. */
static int schema_agreed(struct wb_cql_session *s, bool *agreed, struct wb_err *err)
{
    static const char *const questions[] = {"SELECT schema_version FROM system.local",
                                            "SELECT schema_version FROM system.peers"};
    char first[16] = {0};
    bool any = false;

    *agreed = true;
    for (size_t i = 0; i < WB_LEN(questions); i++) {
        struct wb_cql_rows rows;
        int rc = wb_cql_query(s, questions[i], err);
        if (rc < 0)
            return rc;
        if (!wb_cql_take_rows(&s->answer, &rows) || rows.ncolumns != 1)
            return wb_fail(err, WB_PROTOCOL, "%s: %s: the answer is damaged", s->wire.name,
                           questions[i]);
        for (uint32_t k = 0; k < rows.nrows; k++) {
            struct wb_cql_view v = wb_cql_take_bytes(&rows.cells);
            if (v.n != sizeof(first)) /* null: not joined, or gone */
                continue;
            if (any && memcmp(first, v.p, sizeof(first)) != 0)
                *agreed = false;
            memcpy(first, v.p, sizeof(first));
            any = true;
        }
    }
    return 0;
}

static int wait_for_agreement(struct wb_cql_session *s, struct wb_err *err)
{
    int64_t deadline = wb_now_ns(NULL) + AGREE_TIMEOUT;

    for (;;) {
        bool agreed;
        int rc = schema_agreed(s, &agreed, err);
        if (rc < 0 || agreed)
            return rc;
        if (wb_now_ns(NULL) > deadline)
            return wb_fail(err, WB_TIMEOUT, "%s: the servers do not agree on one schema",
                           s->wire.name);
        rc = wb_wait(s->wire.cancel, -1, AGREE_PAUSE, err);
        if (rc < 0)
            return rc;
    }
}

int wb_cql_create(struct wb_cql *q, struct wb_cql_session *s, struct wb_err *err)
{
    WB_AUTO_FREE char *keyspace =
        wb_strf("CREATE KEYSPACE IF NOT EXISTS \"%s\" WITH replication = {'class': "
                "'NetworkTopologyStrategy', '%s': %lld}",
                q->keyspace, q->datacentre, (long long)q->data->job->cql.replication);
    WB_AUTO_FREE char *table =
        wb_strf("CREATE TABLE IF NOT EXISTS \"%s\".\"%s\" (\"%s\" text PRIMARY KEY, \"%s\" blob)",
                q->keyspace, q->table, q->key_column, q->value_column);
    int rc = wb_cql_query(s, keyspace, err);

    if (rc == 0)
        rc = wait_for_agreement(s, err);
    if (rc == 0)
        rc = wb_cql_query(s, table, err);
    return rc == 0 ? wait_for_agreement(s, err) : rc;
}

static bool fits(uint16_t type)
{
    return type == WB_CQL_ASCII || type == WB_CQL_BLOB || type == WB_CQL_VARCHAR;
}

/* Values are bytes that only a blob takes unless they are printable; keys are printable. */
static int check_columns(const struct wb_cql *q, const struct wb_cql_prepared *p,
                         struct wb_err *err)
{
    for (unsigned i = 0; i < p->nbind; i++) {
        const struct wb_cql_column *c = &p->bind[i];
        bool value = wb_cql_view_is(c->name, q->value_column);
        if (!fits(c->type))
            return wb_fail(err, WB_INVALID,
                           "column %.*s of %s.%s has type 0x%04x; keys and values go into text, "
                           "ascii and blob",
                           (int)c->name.n, c->name.p, q->keyspace, q->table, c->type);
        if (value && c->type != WB_CQL_BLOB && q->data->job->content != WB_LOAD_LETTERS)
            return wb_fail(err, WB_INVALID,
                           "column %s of %s.%s is text, which takes printable values only: use "
                           "content letters (--value SIZE:letters), or a blob",
                           q->value_column, q->keyspace, q->table);
    }
    return 0;
}

int wb_cql_check(struct wb_cql *q, struct wb_cql_session *s, struct wb_err *err)
{
    for (int op = 0; op < WB_CQL_OPS; op++) {
        struct wb_cql_prepared p;
        int rc;
        if (!q->used[op])
            continue;
        wb_cql_put_prepare(&s->request, q->hello.version, 0, q->text[op]);
        rc = wb_cql_ask(s, err);
        if (rc < 0)
            return rc;
        if (!wb_cql_take_prepared(&s->answer, &p)) {
            (void)wb_cql_fail(err, WB_INVALID, &s->answer);
            return wb_wrap(err, "%s: preparing %s%s", s->wire.name, q->text[op],
                           q->data->job->load ? "" : " (--load makes keyspace and table)");
        }
        rc = check_columns(q, &p, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- servers --- */

/* Names go between quotes. */
static bool plain_name(const char *s)
{
    return *s && !strpbrk(s, "'\\") && strlen(s) <= 256;
}

static int no_such_datacentre(const struct wb_cql *q, const char *wanted, struct wb_err *err)
{
    const struct wb_cql_nodes *l = &q->topology.nodes;
    struct wb_buf list = WB_BUF_INIT(512);

    for (size_t i = 0; i < l->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = strcmp(l->v[k].datacentre, l->v[i].datacentre) != 0;
        if (first)
            wb_buf_addf(&list, "%s%s", list.len ? ", " : "", l->v[i].datacentre);
    }
    (void)wb_fail(err, WB_INVALID, "datacentre: no server is in '%s' (there is: %s)", wanted,
                  wb_buf_str(&list));
    wb_buf_release(&list);
    return -WB_INVALID;
}

static bool same_address(const struct wb_target_addr *a, const struct wb_cql_node *n)
{
    for (unsigned way = 0; way < a->ways; way++)
        if (a->len[way] == n->len && memcmp(&a->addr[way], &n->addr, n->len) == 0)
            return true;
    return false;
}

/* The addresses that were named stay; servers that have one of them are known by it. */
static void match_given(struct wb_cql_nodes *l, const struct wb_target *target)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t t = 0; t < target->n && l->v[i].target == WB_CQL_NOWHERE; t++)
            if (same_address(&target->addr[t], &l->v[i]))
                l->v[i].target = (uint32_t)t;
}

static int use_found(struct wb_cql *q, struct wb_target *target, struct wb_err *err)
{
    struct wb_cql_nodes *l = &q->topology.nodes;

    for (size_t t = 0; t < target->n; t++)
        free(target->addr[t].name);
    target->n = target->naddr = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct wb_cql_node *n = &l->v[i];
        if (strcmp(n->datacentre, q->datacentre) != 0)
            continue;
        if (target->n == WB_TARGETS_MAX)
            return wb_fail(err, WB_LIMIT, "more than %d servers in datacentre %s", WB_TARGETS_MAX,
                           q->datacentre);
        n->target = (uint32_t)target->n;
        target->addr[target->n] = (struct wb_target_addr){
            .ways = 1, .addr = {n->addr}, .len = {n->len}, .name = wb_strdup(n->name)};
        target->naddr = ++target->n;
    }
    return target->n > 0 ? 0 : no_such_datacentre(q, q->datacentre, err);
}

int wb_cql_find(struct wb_cql *q, struct wb_cql_session *s, const struct sockaddr *at,
                socklen_t len, struct wb_target *target, struct wb_err *err)
{
    const char *asked = q->data->job->cql.datacentre;
    int rc = wb_cql_topology_read(&q->topology, s, at, len, err);

    if (rc < 0)
        return rc;
    q->datacentre = wb_strdup(asked ? asked : q->topology.nodes.v[0].datacentre);
    if (!plain_name(q->datacentre))
        return wb_fail(err, WB_INVALID, "datacentre: '%s' has a quote or backslash", q->datacentre);
    if (q->find)
        return use_found(q, target, err);
    match_given(&q->topology.nodes, target);
    return 0;
}

int wb_cql_make_ring(struct wb_cql *q, struct wb_cql_session *s, size_t targets, struct wb_err *err)
{
    int rc;

    if (!q->route)
        return 0;
    if (strcmp(q->topology.partitioner, "org.apache.cassandra.dht.Murmur3Partitioner") != 0)
        return wb_fail(err, WB_UNSUPPORTED,
                       "routing by token is for Murmur3Partitioner, this cluster has %s; use "
                       "--routing round-robin",
                       q->topology.partitioner);
    rc = wb_cql_replication_read(s, q->keyspace, q->datacentre, &q->replication, err);
    if (rc == 0)
        wb_cql_ring_build(&q->ring, &q->topology.nodes, targets, q->datacentre, q->replication);
    return rc;
}

wb_json *wb_cql_describe(const struct wb_cql *q)
{
    wb_json *j = wb_json_object(), *levels = wb_json_object(), *servers = wb_json_array();
    const struct wb_cql_nodes *l = &q->topology.nodes;

    for (int op = 0; op < WB_CQL_OPS; op++)
        wb_json_set_str(levels, wb_ops_cql[op], wb_cql_consistency_name(q->consistency[op]));
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].target != WB_CQL_NOWHERE)
            wb_json_push(servers, wb_json_str(l->v[i].name));
    wb_json_set_str(j, "name", "cql");
    wb_json_set_int(j, "native_protocol", q->hello.version);
    wb_json_set_str(j, "server_version", q->topology.release);
    wb_json_set_str(j, "compression", q->hello.lz4 ? "lz4" : "none");
    wb_json_set_str(j, "keyspace", q->keyspace);
    wb_json_set_str(j, "table", q->table);
    wb_json_set(j, "consistency", levels);
    wb_json_set_str(j, "routing", q->route ? "token" : "round-robin");
    wb_json_set_str(j, "nodes", q->find ? "found" : "given");
    wb_json_set_str(j, "datacentre", q->datacentre);
    wb_json_set(j, "servers", servers);
    wb_json_set_int(j, "servers_skipped", (int64_t)l->skipped);
    wb_json_set(j, "replicas", q->route ? wb_json_int(q->replication.copies) : wb_json_null());
    wb_json_set_str(j, "batch", q->batch == WB_CQL_LOGGED ? "logged" : "unlogged");
    wb_json_set_int(j, "batch_rows", q->batch_rows);
    wb_json_set_int(j, "page_rows", q->page_rows);
    wb_json_set_str(j, "timestamps", q->timestamps ? "client" : "server");
    wb_json_set_bool(j, "overload_errors", q->hello.throw_on_overload);
    return j;
}
