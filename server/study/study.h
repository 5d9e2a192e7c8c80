/*
 * The checked study: what a user asked for, complete, with defaults filled in.
 */
#ifndef WB_STUDY_STUDY_H
#define WB_STUDY_STUDY_H

#include "provisioners/forms/form.h"
#include "runners/tools/command.h"
#include "server/study/recipe.h"

enum wb_share { WB_SHARE_HOST, WB_SHARE_INSTANCE };
enum wb_same_limits { WB_LIMITS_SAME, WB_LIMITS_NONE };
/* The page cache when measuring begins: as loading left it, or dropped. */
enum wb_page_cache { WB_PAGE_CACHE_AS_IS, WB_PAGE_CACHE_DROPPED };
enum wb_cpu_use { WB_CPUS_SHARED, WB_CPUS_DISJOINT };
enum wb_placement_mode { WB_PLACEMENT_SAME_HOST, WB_PLACEMENT_SHARED };

/* How a phase is paced. */
enum wb_pace {
    WB_PACE_MAX /* closed loop */,
    WB_PACE_RATE,
    WB_PACE_CALIBRATED, /* share of the calibration pass */
    WB_PACE_SEARCH      /* the highest rate that holds the setup's slo */
};

/* An operation on the cluster while a phase's load goes on. */
struct wb_phase_op {
    int64_t
        at_ns; /* after the begin of the measured window; later when the one before takes longer */
    const struct wb_recipe_operation *op; /* of the recipe */
    int instance;                         /* -1: the last one */
};

struct wb_phase {
    char *name;     /* "load", "max", "latency", "mixed@10k": unique */
    char *steps_of; /* the phase with a list of rates that this is a step of ("mixed"), or NULL */
    bool load_only; /* op: insert, order: sequential; not measured */
    double get_percent; /* mix; set is the rest */
    char *transactions; /* composite ones instead, as runners/load/transactions.h says; or NULL */
    char *txn_mix;      /* of those, "login=90,update=10"; NULL: all as often */
    bool reads, writes; /* the data */
    char *keys;         /* key choice of wb-load: "uniform"; NULL in the data load */
    int64_t connections, threads;
    int64_t depth; /* most requests in flight on a connection; 0 at a rate that names none */
    enum wb_pace pace;
    double rate_per_s;         /* RATE; SEARCH: where it begins, 0 when that is not said */
    double calibrated_percent; /* CALIBRATED */
    char *arrivals;            /* "constant" | "poisson"; NULL in closed loop */
    int64_t warm_up_ns, for_ns;
    int64_t operations; /* measured operations in all instead of for_ns; 0: by time */
    int64_t timeout_ns;
    const struct wb_tool_command *tool; /* of the setup's; NULL: wb-load */
    struct wb_phase_op *during;         /* in the order of their times */
    size_t nduring;
};

/* A limit of the response time that phases at a rate are held to. */
struct wb_slo_rule {
    char *text;         /* "p99<5ms"; NULL: none */
    const char *figure; /* of a latency in a result: "p99_ms" */
    double limit_ms;
    bool search; /* lists of rates end with a search */
};

/* What an arm runs under, beside form, quota and settings: the keys of a study that a factor may
 * vary. */
struct wb_setup {
    char *topology; /* "single" | "sharded" */
    enum wb_share share;
    enum wb_same_limits limits;
    enum wb_network network; /* native instances are always on the host's */
    enum wb_cpu_use cpus;
    int64_t cpus_per_instance; /* DISJOINT; 0: what `share` gives */
    bool reuse_data; /* loaded once per arm, taken again by its other runs: rounds repeat the start
                        of the database, not the loading */
    enum wb_page_cache page_cache;
    char *consistency;    /* "quorum", or "read=one,write=quorum"; NULL: the client's own default */
    char *routing;        /* "token", "round-robin"; NULL: the client's own default */
    int64_t memory_bytes; /* what native x1 gets; see `share` for several instances */
    int64_t rows, key_bytes, value_bytes;
    char *value_size;    /* law of the sizes as runners/load/laws.h has it, value_bytes is their
                            mean; NULL: all have value_bytes */
    char *value_content; /* "random", "letters", "zeros", "60%"; NULL: random */
    struct wb_slo_rule slo;
    const char *protocol;    /* the recipe's, which outlives the setup; NULL without a recipe */
    struct wb_phase *phases; /* same names, in the same order, in all arms */
    size_t nphases, phases_cap;
    struct wb_tool_command **tools; /* foreign load programs that are declared */
    size_t ntools, tools_cap;
};
void wb_setup_release(struct wb_setup *s);
/* Which of `count` instances an operation is done on. */
int wb_phase_op_instance(const struct wb_phase_op *o, int count);
/* Whether this one of `count` instances is no part of the cluster before an operation makes it one.
 */
bool wb_setup_holds_back(const struct wb_setup *s, int instance, int count);

struct wb_factor {
    char *name;               /* "form", "cpu_quota", "setting.NAME", "payload", a dotted path */
    struct wb_strv values;    /* as people see them, one text per value ("64MiB"), in study order */
    struct wb_strv canonical; /* settings: as the recipe's parameter has them ("67108864") */
    const struct wb_node **nodes; /* of the values; only while the study is read */
    size_t walk; /* factors with the same number are walked together (zip); ascending */
};

/* One combination of factor levels that is measured. */
struct wb_combination {
    size_t *levels; /* one per factor */
    struct wb_form_ref form;
    double cpu_quota; /* 0: none */
    struct wb_setup setup;
};

struct wb_contrast_ask {
    char *name; /* NULL: made from the arms */
    char *arm, *against, *metric;
};

struct wb_validity_limits { /* DESIGN.md section 14; percent unless said */
    double steal_noisy, steal_invalid;
    double foreign_noisy, foreign_invalid; /* cores */
    double canary_noisy, canary_invalid;
    double throttled_noisy;
    double client_cpu_noisy, client_cpu_limited;
    double run_queue_noisy;
    double errors_noisy, errors_fail;
};

/* DESIGN.md section 14. */
void wb_validity_defaults(struct wb_validity_limits *v);
/* {steal: {noisy, invalid}, ...} in percent, foreign_cpu in cores; owned by the caller. */
wb_json *wb_validity_json(const struct wb_validity_limits *v);
/* The same back; WB_UNSUPPORTED when one is missing. */
int wb_validity_limits_read(const wb_json *j, struct wb_validity_limits *out,
                            struct wb_err *err) WB_MUST_CHECK;

/* The build that is measured: what changes along a history and is judged. No part of series keys.
 */
struct wb_subject {
    char *commit;          /* one word; NULL: not named, as everything here */
    char *built;           /* RFC 3339, UTC */
    char *version;         /* that the build reports; NULL: the recipe's */
    char *artifact;        /* absolute path of its file; NULL when only the digest is known */
    char *artifact_sha256; /* of that file: one of the artifacts must have it */
};

struct wb_study {
    char *name;
    char *source_file; /* NULL when from REST */
    char *text;        /* the text as given (after profile and -f overrides: see resolved) */
    struct wb_recipe *recipe;
    const struct wb_recipe_version *version;
    struct wb_recipe_version own_version; /* `version` when the subject has an artifact: the
                                             recipe's, with it; members are borrowed */
    struct wb_subject subject;
    char *pool;
    int64_t database_hosts, load_hosts;
    struct wb_factor *factors;
    size_t nfactors;
    struct wb_combination *combinations; /* first factor slowest, without those excluded */
    size_t ncombinations;                /* at least 1 */
    int64_t copies;                      /* 1, or 2..4 identical arms a, b, ... */
    enum wb_placement_mode placement;
    int64_t rounds;       /* with rounds_least: at most */
    int64_t rounds_least; /* until decided: planned looks from this round on; 0: no looks */
    uint64_t seed;        /* 0 in the file: taken from the kernel when planned, then recorded */
    struct wb_contrast_ask *contrasts;
    size_t ncontrasts;
    double threshold_percent; /* practical threshold of the verdicts, 2 by default */
    bool accept_noisy;
    struct wb_validity_limits validity;
    wb_json *resolved; /* the study after profile and overrides, for the record; owned */
};

struct wb_study_options {
    const char *profile;     /* NULL: none */
    char *const *overrides;  /* "PATH=VALUES" texts, NULL-ended; may be NULL */
    int64_t rounds;          /* 0: the study's */
    const char *recipes_dir; /* where recipe names are looked up */
    /* Pools beside local that a study may name, with the number of hosts of one class. */
    const struct wb_pool_offer *pools;
    size_t npools;
    bool any_pool; /* it was accepted before: whatever pool it names */
};
struct wb_pool_offer {
    const char *name;
    int64_t alike;
};
/* Hosts that it holds while it runs: database and load may share one where the pool is local. */
int64_t wb_study_hosts(const struct wb_study *s);

/* Reads, applies profile and overrides, checks everything. All problems at once in p (then NULL).
 */
struct wb_study *wb_study_read_file(const char *path, const struct wb_study_options *o,
                                    struct wb_problems *p);
/* The same from a tree; file is only for messages and may be NULL. Takes the tree. */
struct wb_study *wb_study_check(struct wb_node *tree, const char *file,
                                const struct wb_study_options *o, struct wb_problems *p);
void wb_study_free(struct wb_study *s);
/* JSON Schema (2020-12) of a study, made from the tables that check it; owned by the caller. It has
 * no "$schema" and no title. */
wb_json *wb_study_schema(void);

/* Whether a subject was named at all. */
bool wb_subject_given(const struct wb_subject *s);
/* {version, commit?, built?, artifact? (SHA-256)}, as plans and records have it; owned. */
wb_json *wb_subject_json(const struct wb_study *study);

/* What all arms have in common of their setups: names and kinds of phases. */
const struct wb_setup *wb_study_setup(const struct wb_study *s);
/* "max.throughput" -> its phase in the first arm; NULL when no measured phase has it. */
const struct wb_phase *wb_metric_phase(const struct wb_study *s, const char *metric);
bool wb_metric_higher_is_better(const char *metric);
/* What is measured of each phase, NULL-ended; a metric is "<phase>.<kind>". */
extern const char *const wb_metric_kinds[];

#endif
