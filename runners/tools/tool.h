/*
 * Load programs: one const table of operations for each kind, one explicit list of all.
 *
 * The engine starts a load program as a job, in a control group of its own on the load's CPUs,
 * watches it, and ends it. A driver only says how it is started, what it tells while it runs, and
 * what its result is. Every result has the keys of wb-load's (README.md of this room); what a
 * program does not tell is null with a reason.
 */
#ifndef WB_TOOLS_TOOL_H
#define WB_TOOLS_TOOL_H

#include "server/base/cancel.h"
#include "server/base/job.h"
#include "server/base/json.h"
#include "server/base/mem.h"

struct wb_tool_command;

/* Where one instance of the database takes clients. */
struct wb_tool_peer {
    const char *host; /* an address */
    int port;
};

/* What one phase asks of a load program. All borrowed, valid from begin to the result. */
struct wb_tool_task {
    const char *base; /* absolute path: files of this phase are base plus an end of the driver's */
    const char *job_dir;                   /* of its job */
    const char *program;                   /* of wb-load, absolute */
    const char *prefix;                    /* the recipe's installed bits on this host */
    const struct wb_tool_command *command; /* NULL for wb-load */

    const char *protocol; /* "resp" */
    const struct wb_tool_peer *peers;
    size_t npeers;
    const char *split;       /* of keys between several peers: "keys", "slots"; NULL for one */
    const char *consistency; /* "quorum", "read=one,write=quorum"; NULL: the program's default */
    const char *routing;     /* "token", "round-robin"; NULL: the program's default */
    const char *cpus;        /* that it may use, a list */

    const char *phase; /* name */
    bool load_only;    /* writes the data set, measures nothing */
    int64_t rows, key_bytes, value_bytes;
    const char *value_size;    /* law of the sizes, value_bytes is their mean; NULL: all the same */
    const char *value_content; /* NULL: the program's default */
    int64_t seed;
    int64_t connections, threads;
    int64_t depth;      /* requests in flight per connection; 0 in open loop: the program's own */
    double get_percent; /* set is the rest */
    const char *transactions, *txn_mix; /* composite ones instead; NULL: none; all as often */
    const char *keys;                   /* how keys are chosen: "uniform" */
    double rate_per_s;                  /* 0: closed loop, as fast as it goes */
    const char *search;   /* "p99<5ms": open loop at the highest rate that holds it, looked for from
                             rate_per_s on (0: the program's own); else NULL */
    const char *arrivals; /* open loop */
    int64_t warm_up_ns, for_ns;
    int64_t operations; /* measured operations in all instead of for_ns; 0: by time */
    int64_t timeout_ns;
};

/* How it is started. */
struct wb_tool_start {
    struct wb_strv argv; /* argv[0] absolute */
    struct wb_strv env;  /* empty: the job's own */
    int64_t limit_ns;    /* time limit */
    int64_t silence_ns;  /* 0: it may be silent */
    int64_t log_max;     /* head kept of each stream; 0: the job's own */
};
/* Whether operations are sent when they are due, not when answers came. */
static inline bool wb_tool_task_open(const struct wb_tool_task *t)
{
    return t->rate_per_s > 0 || t->search;
}
void wb_tool_start_release(struct wb_tool_start *s);

/* What it tells while it runs. */
struct wb_tool_told {
    char part[16];                           /* "load", "warm-up", "measure", "drain"; "" unknown */
    double rate_per_s, p99_ms, errors_per_s; /* NAN: unknown */
};

/* A file of a phase that is kept as raw data: base + end becomes load-PHASE + name. */
struct wb_tool_file {
    const char *end, *name;
};

struct wb_tool_ops {
    const char *name;                 /* "wb-load" */
    const char *summary;              /* one line for people */
    bool own_threads;                 /* its result tells the CPU use of its threads */
    bool stdout_is_raw;               /* its standard output is evidence */
    const struct wb_tool_file *files; /* ended by an all-NULL row */
    /* Version of the program itself, asked of it; caller frees; NULL when its result tells it. May
     * block for seconds. WB_NOT_FOUND: no such program; WB_CONFLICT: another one than asked for. */
    int (*version)(const struct wb_tool_task *t, const struct wb_cancel *cancel, char **out,
                   struct wb_err *err);
    /* Writes the files that it needs and says how it is started. */
    int (*begin)(const struct wb_tool_task *t, struct wb_tool_start *out, struct wb_err *err);
    /* Calls told for what is new since *at, which is the driver's own (0 at first). May be NULL:
     * such a program measures from its start to its end. */
    void (*follow)(const struct wb_tool_task *t, int64_t *at,
                   void (*told)(void *arg, const struct wb_tool_told *what), void *arg);
    /* The result after its end, by itself, within its limits. *out is owned by the caller. An
     * error means that there is no result: WB_UNAVAILABLE when it could not reach the database,
     * WB_CONFLICT when what it says contradicts itself or the clock, else its own fault. */
    int (*result)(const struct wb_tool_task *t, const struct wb_job_status *s, const char *version,
                  wb_json **out, struct wb_err *err);
};

extern const struct wb_tool_ops wb_tool_wb_load, wb_tool_foreign;
/* All of them, NULL-ended; wb-load, which needs no declaration, first. */
extern const struct wb_tool_ops *const wb_tools[];
/* The driver of a phase: by its declaration, or wb-load. */
const struct wb_tool_ops *wb_tool_of(const struct wb_tool_command *command);

#endif
