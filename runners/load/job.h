/*
 * What a load run is asked to do: filled from flags or from a JSON job document by one table of
 * fields, checked, then constant.
 */
#ifndef WB_LOAD_JOB_H
#define WB_LOAD_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "runners/load/laws.h"
#include "runners/load/schedule.h"
#include "runners/load/search.h"
#include "runners/load/transactions.h"
#include "server/base/json.h"

enum wb_load_model { WB_LOAD_CLOSED, WB_LOAD_OPEN };
enum wb_load_arrivals { WB_LOAD_CONSTANT, WB_LOAD_POISSON };
enum wb_load_catch_up { WB_LOAD_IMMEDIATE, WB_LOAD_CAPPED, WB_LOAD_DROP };
/* How keys are divided between the addresses of a target: each address has all keys, every n-th
 * key, an equal range of the 16384 slots that keys are hashed to in a Redis cluster, or the slots
 * that the nodes of a cluster say they have. */
enum wb_load_split {
    WB_LOAD_SPLIT_NONE,
    WB_LOAD_SPLIT_KEYS,
    WB_LOAD_SPLIT_SLOTS,
    WB_LOAD_SPLIT_CLUSTER
};
/* COMPRESSIBLE: random with zeros in it. */
enum wb_load_content { WB_LOAD_RANDOM, WB_LOAD_LETTERS, WB_LOAD_ZEROS, WB_LOAD_COMPRESSIBLE };

#define WB_LOAD_THREADS_MAX 256
#define WB_LOAD_CONNECTIONS_MAX 65536
#define WB_LOAD_DEPTH_MAX 65536
#define WB_LOAD_OPEN_DEPTH 4096 /* most in flight on a connection in open loop, unless asked */
#define WB_LOAD_OPS_MAX 8       /* kinds of operations a protocol can have */

struct wb_load_mix_part {
    char name[16];
    double weight;
};

/* What only CQL knows; text is checked by the protocol, NULL stands for the default. */
struct wb_load_cql {
    char *keyspace, *table, *key_column, *value_column;
    char *consistency; /* "one", or "read=one,write=quorum" */
    char *batch;       /* "logged:10" */
    char *compression, *timestamps, *native_protocol, *routing, *nodes;
    char *datacentre, *user, *password_file;
    int64_t replication, page_rows;
    bool overload_errors;
};

struct wb_load_job {
    struct wb_load_cql cql;
    char *target; /* "resp://127.0.0.1:6379,127.0.0.1:6380" */
    int64_t threads, connections;
    int64_t depth;    /* closed: kept in flight per connection; open: most in flight; 0: default */
    char *split_text; /* "none", "keys" or "slots"; NULL: none */
    char *cpus;       /* CPU list; NULL: all CPUs this process may use */
    int64_t seed;
    int64_t keys, key_bytes;
    int64_t value_bytes; /* of every value; of sizes by a law the most */
    char *size_text;     /* law of the sizes; NULL: value_bytes */
    char *key_choice_text, *mix_text, *arrivals_text, *catch_up_text, *content_text, *model_text;
    char *rate_text; /* "20k/s", "1k,5k/s" (steps), "1k..20k/s" (ramp); NULL: rate_per_s as it is */
    char *sweep_text;  /* "10k,20k,50k/s": a window at each of these rates; NULL: none */
    char *search_text; /* "p99<5ms": looks for the highest rate that holds it; NULL: none */
    char *txn_text;    /* composite transactions, as transactions.h says; NULL: none */
    double rate_per_s; /* open loop; total over all parts; of a profile the mean over the window */
    int64_t timeout_ns, warm_up_ns, for_ns, interval_ns;
    int64_t gather_ns; /* open loop: arrivals of this time may be sent together; 0: none */
    int64_t ops;       /* measured operations in all instead of a time; 0: by time */
    bool load, load_only;
    char *load_state;     /* file that an interrupted load goes on from; NULL: none */
    double verify_share;  /* of the gets whose value is compared, 0..1 */
    int64_t resp_version; /* 2 or 3 */
    char *tls;            /* file of certificates, "system" or "unchecked"; NULL: plain */
    char *tls_cert;       /* own certificate and key; NULL: none */
    char *part_text;      /* "2/4": the second of four */
    char *start_at;       /* RFC 3339; NULL: now */
    char *output, *ndjson, *hdr;
    bool quiet;

    /* Derived by wb_load_job_check. */
    struct wb_rate_segment segment[WB_RATE_SEGMENTS_MAX];
    int nsegments; /* 0: one rate */
    bool rate_derived;
    double sweep[WB_RATE_SEGMENTS_MAX]; /* per second */
    int nsweep;                         /* 0: no sweep */
    bool search;                        /* slo holds; with a sweep its points are judged by it */
    struct wb_slo slo;
    enum wb_load_model model;
    enum wb_load_arrivals arrivals;
    enum wb_load_catch_up catch_up;
    double catch_up_times; /* CAPPED: most times the rate */
    enum wb_load_split split;
    struct wb_key_law key_law;
    struct wb_size_law size_law;
    enum wb_load_content content;
    double zeros_share; /* COMPRESSIBLE: of the bytes */
    struct wb_txn_kind txn[WB_TXN_KINDS_MAX];
    int ntxn;
    struct wb_load_mix_part mix[WB_LOAD_OPS_MAX]; /* of the transactions where there are any */
    int nmix;
    int64_t part, parts;   /* part from 0 */
    int64_t start_unix_ms; /* 0: now */
    int *cpu;              /* threads are pinned to these, round robin */
    int ncpu;
};

void wb_load_job_init(struct wb_load_job *job);
void wb_load_job_release(struct wb_load_job *job);

/* Reads a job document (an object, unknown keys refused) over what is set. */
int wb_load_job_read(struct wb_load_job *job, const wb_json *doc, struct wb_err *err) WB_MUST_CHECK;
/* Sets one field from the text of a flag ("--depth", "16"). WB_NOT_FOUND for an unknown flag. */
int wb_load_job_flag(struct wb_load_job *job, const char *flag, const char *value,
                     struct wb_err *err) WB_MUST_CHECK;
/* Whether a known flag stands alone ("--load"). */
bool wb_load_job_flag_alone(const char *flag);
/* Checks all fields together and fills the derived ones. */
int wb_load_job_check(struct wb_load_job *job, struct wb_err *err) WB_MUST_CHECK;

/* The options part of --help, one line a flag: those of all protocols (NULL), or those that only
 * one knows. */
void wb_load_job_help(struct wb_buf *out, const char *protocol);
/* JSON Schema of the job document; owned by the caller. */
wb_json *wb_load_job_schema(void);
/* The job as it was resolved, for the result; owned by the caller. */
wb_json *wb_load_job_json(const struct wb_load_job *job);

#endif
