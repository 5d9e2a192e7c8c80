#include "runners/load/job.h"

#include <stdlib.h>
#include <string.h>

#include "runners/load/keys.h"
#include "runners/load/protocol.h"
#include "runners/load/values.h"
#include "server/base/buf.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define DAY_NS (86400 * WB_SEC)

enum field_type {
    F_INT,
    F_TEXT,
    F_BOOL,
    F_TIME,  /* int64 ns; in JSON a number of `unit` ns */
    F_BYTES, /* int64 */
    F_RATE,  /* double per second */
    F_SHARE, /* double 0..1; text may be "5%" */
    F_MIX,   /* char *; in JSON an object of weights */
    F_VALUE  /* "SIZE[:CONTENT]", flag only */
};

struct field {
    const char *key;  /* in the job document; NULL: none */
    const char *flag; /* NULL: none */
    const char *arg;  /* how help calls the value */
    enum field_type type;
    size_t offset;
    double lo, hi;    /* INT, BYTES, TIME (ns) */
    double unit;      /* TIME in JSON */
    const char *help; /* "NAME: ...": only this protocol knows it */
};

#define AT(member) offsetof(struct wb_load_job, member)

static const struct field fields[] = {
    {"target", NULL, NULL, F_TEXT, AT(target), 0, 0, 0, "resp://HOST:PORT[,HOST:PORT] or null://"},
    {"split", "--split", "HOW", F_TEXT, AT(split_text), 0, 0, 0,
     "keys, slots: each key is on one address; cluster: redis's"},
    {"threads", "--threads", "N", F_INT, AT(threads), 1, WB_LOAD_THREADS_MAX, 0,
     "threads, each pinned to a CPU [1]"},
    {"cpus", "--cpus", "LIST", F_TEXT, AT(cpus), 0, 0, 0,
     "CPUs for the threads, round robin [all allowed]"},
    {"connections", "--connections", "N", F_INT, AT(connections), 1, WB_LOAD_CONNECTIONS_MAX, 0,
     "connections in all [32]"},
    {"depth", "--depth", "N", F_INT, AT(depth), 1, WB_LOAD_DEPTH_MAX, 0,
     "in flight per connection [closed 1, open at most 4096]"},
    {"seed", "--seed", "N", F_INT, AT(seed), 0, 0x1p62, 0, "all random choices follow from it [1]"},
    {"keys", "--keys", "N", F_INT, AT(keys), 1, 0x1p48, 0, "size of the key space [100000]"},
    {"key_bytes", "--key-bytes", "N", F_INT, AT(key_bytes), 2, WB_KEY_BYTES_MAX, 0,
     "length of a key [16]"},
    {"key_choice", "--key-choice", "LAW", F_TEXT, AT(key_choice_text), 0, 0, 0,
     "uniform, zipf, latest, gaussian, hotspot, absent, ..."},
    {NULL, "--value", "SIZE", F_VALUE, 0, 0, 0, 0,
     "1KiB, 1..9KiB, 1KiB~99, 8=7,9KiB=3; :letters :zeros :60%"},
    {"value_bytes", NULL, NULL, F_BYTES, AT(value_bytes), 0, WB_VALUE_BYTES_MAX, 0, "value size"},
    {"value_size", NULL, NULL, F_TEXT, AT(size_text), 0, 0, 0, "law of the value sizes"},
    {"value_content", NULL, NULL, F_TEXT, AT(content_text), 0, 0, 0,
     "random, letters, zeros, or the share that compresses away, e.g. 60%"},
    {"mix", "--mix", "MIX", F_MIX, AT(mix_text), 0, 0, 0, "weights, e.g. get=80,set=20 [get=100]"},
    {"transactions", "--transactions", "TEXT", F_TEXT, AT(txn_text), 0, 0, 0,
     "login=get,10..100*get@derived; up=set,get,set (or 9&get)"},
    {"model", NULL, NULL, F_TEXT, AT(model_text), 0, 0, 0, "closed or open"},
    {"rate", "--rate", "RATE", F_TEXT, AT(rate_text), 0, 0, 0,
     "open loop: 20k/s, 1 per 7s, steps 2k,5k/s, ramp 1k..9k/s"},
    {"sweep", "--sweep", "RATES", F_TEXT, AT(sweep_text), 0, 0, 0,
     "a window at each rate, e.g. 10k,20k,50k/s"},
    {"search", "--search", "LIMIT", F_TEXT, AT(search_text), 0, 0, 0,
     "highest rate that holds, e.g. 'p99<5ms' (max<1s)"},
    {"rate_per_s", NULL, NULL, F_RATE, AT(rate_per_s), 0, 0, 0, "open loop at this total rate"},
    {"arrivals", "--arrivals", "LAW", F_TEXT, AT(arrivals_text), 0, 0, 0,
     "constant or poisson [constant]"},
    {"catch_up", "--catch-up", "HOW", F_TEXT, AT(catch_up_text), 0, 0, 0,
     "late arrivals: immediate, capped:N, drop [immediate]"},
    {"gather_us", "--gather", "TIME", F_TIME, AT(gather_ns), 0, WB_MS, WB_US,
     "span of arrivals sent together at high rates [25us]"},
    {"timeout_ms", "--timeout", "TIME", F_TIME, AT(timeout_ns), WB_MS, 3600 * WB_SEC, WB_MS,
     "an operation fails after this [2s]"},
    {"warm_up_s", "--warm-up", "TIME", F_TIME, AT(warm_up_ns), 0, DAY_NS, WB_SEC,
     "same load before the measured window [0s]"},
    {"for_s", "--for", "TIME", F_TIME, AT(for_ns), WB_MS, 7 * DAY_NS, WB_SEC,
     "length of the measured window [10s]"},
    {"ops", "--ops", "N", F_INT, AT(ops), 1, 0x1p53, 0, "measure this many operations instead"},
    {"load", "--load", NULL, F_BOOL, AT(load), 0, 0, 0, "write all keys first"},
    {"load_only", "--load-only", NULL, F_BOOL, AT(load_only), 0, 0, 0, "write all keys and end"},
    {"load_state", "--load-state", "FILE", F_TEXT, AT(load_state), 0, 0, 0,
     "keeps how far the load came; it goes on from there"},
    {"verify", "--verify", "SHARE", F_SHARE, AT(verify_share), 0, 0, 0,
     "share of gets whose value is compared, e.g. 1% [0]"},
    {"part", "--part", "h/H", F_TEXT, AT(part_text), 0, 0, 0,
     "this process makes part h of H of the load [1/1]"},
    {"start_at", "--start-at", "WHEN", F_TEXT, AT(start_at), 0, 0, 0,
     "common start, e.g. 2026-11-30T12:00:00Z"},
    {"interval_s", "--interval", "TIME", F_TIME, AT(interval_ns), 100 * WB_MS, 60 * WB_SEC, WB_SEC,
     "length of an interval [1s]"},
    {"keyspace", "--keyspace", "NAME", F_TEXT, AT(cql.keyspace), 0, 0, 0, "cql: keyspace [wb]"},
    {"table", "--table", "NAME", F_TEXT, AT(cql.table), 0, 0, 0, "cql: table [kv]"},
    {"key_column", "--key-column", "NAME", F_TEXT, AT(cql.key_column), 0, 0, 0,
     "cql: partition key, text or blob [key]"},
    {"value_column", "--value-column", "NAME", F_TEXT, AT(cql.value_column), 0, 0, 0,
     "cql: what is written and read, text or blob [value]"},
    {"replication", "--replication", "N", F_INT, AT(cql.replication), 1, 64, 0,
     "cql: replicas of a keyspace that --load makes [1]"},
    {"consistency", "--consistency", "LEVELS", F_TEXT, AT(cql.consistency), 0, 0, 0,
     "cql: e.g. quorum, or read=one,write=quorum [local_one]"},
    {"page_rows", "--page-rows", "N", F_INT, AT(cql.page_rows), 1, 1000000, 0,
     "cql: rows of a page of an answer [5000]"},
    {"batch", "--batch", "KIND:N", F_TEXT, AT(cql.batch), 0, 0, 0,
     "cql: operation batch is logged:N or unlogged:N inserts [unlogged:10]"},
    {"timestamps", "--timestamps", "WHOSE", F_TEXT, AT(cql.timestamps), 0, 0, 0,
     "cql: of writes, client or server [client]"},
    {"native_protocol", "--native-protocol", "V", F_TEXT, AT(cql.native_protocol), 0, 0, 0,
     "cql: 5, 4, or auto: the newest that the server has [auto]"},
    {"compression", "--compression", "HOW", F_TEXT, AT(cql.compression), 0, 0, 0,
     "cql: none or lz4 [none]"},
    {"overload_errors", "--overload-errors", NULL, F_BOOL, AT(cql.overload_errors), 0, 0, 0,
     "cql: a full server answers with errors instead of reading slower"},
    {"routing", "--routing", "HOW", F_TEXT, AT(cql.routing), 0, 0, 0,
     "cql: token: to a server that has the key; round-robin [token]"},
    {"nodes", "--nodes", "WHICH", F_TEXT, AT(cql.nodes), 0, 0, 0,
     "cql: found: all servers of the datacentre; given: the named ones [found]"},
    {"datacentre", "--datacentre", "NAME", F_TEXT, AT(cql.datacentre), 0, 0, 0,
     "cql: local datacentre [of the first address]"},
    {"user", "--user", "NAME", F_TEXT, AT(cql.user), 0, 0, 0,
     "login: user; see --password-file [nobody]"},
    {"password_file", "--password-file", "FILE", F_TEXT, AT(cql.password_file), 0, 0, 0,
     "login: file with the password [environment: WB_LOAD_PASSWORD]"},
    {"tls", "--tls", "CA", F_TEXT, AT(tls), 0, 0, 0,
     "login: TLS; FILE that signs the server, system or unchecked"},
    {"tls_cert", "--tls-cert", "FILE", F_TEXT, AT(tls_cert), 0, 0, 0,
     "login: TLS; own certificate and its key in one PEM file"},
    {"resp_version", "--resp", "V", F_INT, AT(resp_version), 2, 3, 0,
     "resp: version of the protocol, 2 or 3 [2]"},
    {"output", "-o", "FILE", F_TEXT, AT(output), 0, 0, 0, "result document, - is stdout"},
    {"ndjson", "--ndjson", "FILE", F_TEXT, AT(ndjson), 0, 0, 0, "one JSON line per interval"},
    {"hdr", "--hdr", "FILE", F_TEXT, AT(hdr), 0, 0, 0, "HDR interval log"},
    {NULL, "--quiet", NULL, F_BOOL, AT(quiet), 0, 0, 0, "no progress, no summary"},
};

void wb_load_job_init(struct wb_load_job *job)
{
    *job = (struct wb_load_job){
        .threads = 1,
        .connections = 32,
        .seed = 1,
        .keys = 100000,
        .key_bytes = 16,
        .value_bytes = 1024,
        .timeout_ns = 2 * WB_SEC,
        .resp_version = 2,
        .for_ns = 10 * WB_SEC,
        .interval_ns = WB_SEC,
        .gather_ns = 25 * WB_US,
        .cql = {.replication = 1, .page_rows = 5000},
    };
}

void wb_load_job_release(struct wb_load_job *job)
{
    for (size_t i = 0; i < WB_LEN(fields); i++) {
        if (fields[i].type == F_TEXT || fields[i].type == F_MIX) {
            char **text = (void *)((char *)job + fields[i].offset);
            free(*text);
            *text = NULL;
        }
    }
    free(job->cpu);
    job->cpu = NULL;
}

static void set_text(struct wb_load_job *job, const struct field *f, const char *s)
{
    char **text = (void *)((char *)job + f->offset);

    free(*text);
    *text = wb_strdup(s);
}

/* "5%" or "0.05". */
static int parse_share(const char *s, double *out, struct wb_err *err)
{
    size_t n = strlen(s);
    int rc;

    if (n > 0 && s[n - 1] == '%') {
        rc = wb_parse_percent(s, 0, 100, out, err);
        if (rc == 0)
            *out /= 100;
        return rc;
    }
    return wb_parse_real(s, 0, 1, out, err);
}

static int set_value(struct wb_load_job *job, const char *s)
{
    const char *colon = strchr(s, ':');

    free(job->size_text);
    job->size_text = colon ? wb_strndup(s, (size_t)(colon - s)) : wb_strdup(s);
    if (colon) {
        free(job->content_text);
        job->content_text = wb_strdup(colon + 1);
    }
    return 0;
}

static int set_from_text(struct wb_load_job *job, const struct field *f, const char *s,
                         struct wb_err *err)
{
    void *at = (char *)job + f->offset;

    switch (f->type) {
    case F_INT:
        return wb_parse_int(s, (int64_t)f->lo, (int64_t)f->hi, at, err);
    case F_TIME:
        return wb_parse_duration(s, (int64_t)f->lo, (int64_t)f->hi, at, err);
    case F_BYTES:
        return wb_parse_bytes(s, (int64_t)f->lo, (int64_t)f->hi, at, err);
    case F_RATE:
        return wb_parse_rate(s, at, err);
    case F_SHARE:
        return parse_share(s, at, err);
    case F_VALUE:
        return set_value(job, s);
    case F_BOOL:
        *(bool *)at = true;
        return 0;
    case F_TEXT:
    case F_MIX:
        set_text(job, f, s);
        return 0;
    }
    return 0;
}

static const struct field *find_flag(const char *flag)
{
    for (size_t i = 0; i < WB_LEN(fields); i++)
        if (fields[i].flag && strcmp(fields[i].flag, flag) == 0)
            return &fields[i];
    return NULL;
}

bool wb_load_job_flag_alone(const char *flag)
{
    const struct field *f = find_flag(flag);

    return f && f->type == F_BOOL;
}

int wb_load_job_flag(struct wb_load_job *job, const char *flag, const char *value,
                     struct wb_err *err)
{
    const struct field *f = strcmp(flag, "target") == 0 ? &fields[0] : find_flag(flag);
    int rc;

    if (!f)
        return wb_fail(err, WB_NOT_FOUND, "unknown option %s", flag);
    rc = set_from_text(job, f, value, err);
    return rc < 0 ? wb_wrap(err, "%s", flag) : 0;
}

/* {"get": 80, "set": 20} as "get=80,set=20". */
static int mix_from_json(struct wb_load_job *job, const struct field *f, const wb_json *v,
                         struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(1024);
    int rc;

    for (void *it = wb_json_first(v); it; it = wb_json_next(v, it)) {
        if (!wb_json_is_number(wb_json_iter_value(it))) {
            wb_buf_release(&text);
            return wb_fail(err, WB_INVALID, "job: mix.%s must be a number", wb_json_iter_key(it));
        }
        wb_buf_addf(&text, "%s%s=%.17g", text.len ? "," : "", wb_json_iter_key(it),
                    wb_json_number(wb_json_iter_value(it), 0));
    }
    rc = wb_buf_check(&text, "job: mix", err);
    if (rc == 0)
        set_text(job, f, wb_buf_str(&text));
    wb_buf_release(&text);
    return rc;
}

static int number_from_json(struct wb_load_job *job, const struct field *f, const wb_json *doc,
                            struct wb_err *err)
{
    void *at = (char *)job + f->offset;
    const wb_json *v = wb_json_get(doc, f->key);
    double d = wb_json_number(v, 0), unit = f->type == F_TIME ? f->unit : 1;

    if (!wb_json_is_number(v))
        return wb_fail(err, WB_INVALID, "job: %s must be a number", f->key);
    if (f->type == F_RATE || f->type == F_SHARE) {
        if (f->type == F_RATE ? !(d > 0) : !(d >= 0 && d <= 1))
            return wb_fail(err, WB_INVALID, "job: %s must be %s, not %g", f->key,
                           f->type == F_RATE ? "greater than 0" : "a share from 0 to 1", d);
        *(double *)at = d;
        return 0;
    }
    if (f->type != F_TIME && wb_json_type(v) != WB_JSON_INT)
        return wb_fail(err, WB_INVALID, "job: %s must be an integer", f->key);
    if (!(d * unit >= f->lo && d * unit <= f->hi))
        return wb_fail(err, WB_INVALID, "job: %s must be from %.15g to %.15g, not %.15g", f->key,
                       f->lo / unit, f->hi / unit, d);
    *(int64_t *)at = f->type == F_TIME ? (int64_t)(d * unit) : wb_json_int_or(doc, f->key, 0);
    return 0;
}

static int set_from_json(struct wb_load_job *job, const struct field *f, const wb_json *doc,
                         struct wb_err *err)
{
    const wb_json *v = wb_json_get(doc, f->key);

    switch (f->type) {
    case F_BOOL:
        if (wb_json_type(v) != WB_JSON_BOOL)
            return wb_fail(err, WB_INVALID, "job: %s must be true or false", f->key);
        *(bool *)((char *)job + f->offset) = wb_json_bool_or(doc, f->key, false);
        return 0;
    case F_MIX:
        if (wb_json_type(v) == WB_JSON_OBJECT)
            return mix_from_json(job, f, v, err);
        __attribute__((fallthrough)); /* the text form */
    case F_TEXT:
        if (wb_json_type(v) != WB_JSON_STRING)
            return wb_fail(err, WB_INVALID, "job: %s must be text", f->key);
        set_text(job, f, wb_json_string(v));
        return 0;
    default:
        return number_from_json(job, f, doc, err);
    }
}

int wb_load_job_read(struct wb_load_job *job, const wb_json *doc, struct wb_err *err)
{
    if (wb_json_type(doc) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "job: the document must be an object");
    for (void *it = wb_json_first(doc); it; it = wb_json_next(doc, it)) {
        const char *key = wb_json_iter_key(it);
        const struct field *f = NULL;
        int rc;
        for (size_t i = 0; i < WB_LEN(fields) && !f; i++)
            if (fields[i].key && strcmp(fields[i].key, key) == 0)
                f = &fields[i];
        if (!f)
            return wb_fail(err, WB_INVALID, "job: unknown key '%s' (see wb-load --schema)", key);
        if (wb_json_type(wb_json_iter_value(it)) == WB_JSON_NULL)
            continue;
        rc = set_from_json(job, f, doc, err);
        if (rc < 0)
            return rc;
    }
    if (wb_json_is_number(wb_json_get(doc, "value_bytes")) &&
        wb_json_string(wb_json_get(doc, "value_size")))
        return wb_fail(err, WB_INVALID, "job: value_bytes and value_size both say the size");
    return 0;
}

/* Length of the name of the only protocol that knows a field, with what stands behind it. */
static size_t help_prefix(const struct field *f)
{
    size_t n = strspn(f->help, "abcdefghijklmnopqrstuvwxyz");
    const struct wb_protocol *const *all = wb_protocols();

    for (size_t i = 0; all[i]; i++)
        if (strncmp(all[i]->name, f->help, n) == 0 && !all[i]->name[n] && f->help[n] == ':')
            return n + 2;
    if (strncmp(f->help, "login:", 6) == 0) /* of several protocols */
        return 7;
    return 0;
}

void wb_load_job_help(struct wb_buf *out, const char *protocol)
{
    for (size_t i = 0; i < WB_LEN(fields); i++) {
        struct wb_buf b = WB_BUF_INIT(64);
        size_t only = help_prefix(&fields[i]);
        if (!fields[i].flag || (only > 0) != (protocol != NULL) ||
            (protocol && strncmp(fields[i].help, protocol, only - 2) != 0))
            continue;
        wb_buf_addf(&b, "%s %s", fields[i].flag, fields[i].arg ? fields[i].arg : "");
        wb_buf_addf(out, "  %-20s %s\n", wb_buf_str(&b), fields[i].help + only);
        wb_buf_release(&b);
    }
}

static wb_json *type_words(const struct field *f)
{
    wb_json *types = wb_json_array();

    switch (f->type) {
    case F_INT:
    case F_BYTES:
        wb_json_push(types, wb_json_str("integer"));
        break;
    case F_TIME:
    case F_RATE:
    case F_SHARE:
        wb_json_push(types, wb_json_str("number"));
        break;
    case F_BOOL:
        wb_json_push(types, wb_json_str("boolean"));
        break;
    case F_MIX:
        wb_json_push(types, wb_json_str("object"));
        wb_json_push(types, wb_json_str("string"));
        break;
    default:
        wb_json_push(types, wb_json_str("string"));
    }
    wb_json_push(types, wb_json_str("null"));
    return types;
}

wb_json *wb_load_job_schema(void)
{
    wb_json *schema = wb_json_object(), *props = wb_json_object(), *need = wb_json_array();

    for (size_t i = 0; i < WB_LEN(fields); i++) {
        const struct field *f = &fields[i];
        double unit = f->type == F_TIME ? f->unit : 1;
        wb_json *p;
        if (!f->key)
            continue;
        p = wb_json_object();
        wb_json_set(p, "type", type_words(f));
        wb_json_set_str(p, "description", f->help);
        if (f->hi > 0) {
            wb_json_set_real(p, "minimum", f->lo / unit);
            wb_json_set_real(p, "maximum", f->hi / unit);
        }
        wb_json_set(props, f->key, p);
    }
    wb_json_push(need, wb_json_str("target"));
    wb_json_set_str(schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
    wb_json_set_str(schema, "title", "wb-load job");
    wb_json_set_str(schema, "type", "object");
    wb_json_set(schema, "properties", props);
    wb_json_set(schema, "required", need);
    wb_json_set_bool(schema, "additionalProperties", false);
    return schema;
}
