/*
 * The plan: arms, contrasts, rounds, order, placement, forecast. A pure function of (checked
 * study, host facts, seed); everything that will be done is in it and goes into the record.
 */
#ifndef WB_STUDY_PLAN_H
#define WB_STUDY_PLAN_H

#include "server/study/study.h"

struct wb_arm_value {
    char *factor, *value;
};
struct wb_setting {
    char *name, *value;
}; /* every recipe parameter, resolved */

/* What one instance of an arm gets. */
struct wb_part {
    char *cpus, *mems;    /* lists: CPUs it may run on, memory nodes it may take from */
    int64_t memory_bytes; /* its share, a multiple of 64 KiB; a limit unless limits: none */
    double cpu_quota;     /* cores; 0: none */
};

struct wb_arm {
    char *label; /* varied values joined by '/', copies add "a", "b": unique in the plan */
    struct wb_form_ref form;
    double cpu_quota;             /* cores of CFS quota as the study says; 0 none */
    const struct wb_setup *setup; /* of the study */
    struct wb_part *parts;        /* form.count of them */
    int cpus_per_instance;        /* CPUs that one instance may run on */
    struct wb_arm_value *values;  /* one per factor (with "copy" when copies > 1) */
    size_t nvalues;
    struct wb_setting *settings;
    size_t nsettings;
    char series_key[17]; /* 16 hex digits: resolved arm + workload + recipe content + host class */
};

struct wb_contrast {
    char *name;
    int arm, against; /* indices of arms */
    char *about;      /* in what the arms differ: "container cost", "more instances", a factor */
    char *metric;     /* "max.throughput" */
    bool higher_is_better;
    bool primary; /* tested as the family */
};

/* What the planner needs to know of the host. */
struct wb_host_facts {
    int *cpus; /* allowed CPUs, ascending */
    int ncpus;
    int *nodes, *cores; /* memory node and physical core of each of them, -1 unknown; NULL: all
                           unknown. Cores are numbered through the whole host. */
    char *mems;         /* allowed memory nodes "0" */
    int64_t memory_bytes;
    char *host_class; /* CPU model + count + memory size class: what makes hosts comparable */
};
int wb_host_facts_read(struct wb_host_facts *out,
                       struct wb_err *err) WB_MUST_CHECK; /* this machine */
void wb_host_facts_release(struct wb_host_facts *f);

struct wb_placement {
    char *database_cpus, *load_cpus,
        *agent_cpus;        /* lists; database disjoint from the others unless shared */
    char *mems, *load_mems; /* memory nodes of the database, of load and agent */
    bool shared;            /* placement: shared: marks every result */
    bool core_split;        /* database and load have threads of one physical core */
};

/* A planned look at the contrasts: the campaign ends after it once all are decided. */
struct wb_look {
    int rounds;   /* finished rounds, ascending over the looks; the last one is the plan's rounds */
    double alpha; /* its share of the error of 0.05 */
};
#define WB_LOOKS_MAX 4

struct wb_plan {
    char *campaign;               /* id: "cmp_" + sortable */
    char *host_class;             /* of the facts it was made from */
    const struct wb_study *study; /* borrowed */
    struct wb_arm *arms;
    size_t narms;
    struct wb_contrast *contrasts;
    size_t ncontrasts;
    int rounds; /* with looks: at most */
    struct wb_look looks[WB_LOOKS_MAX];
    int nlooks; /* 0: all rounds are run, whatever they show */
    uint64_t seed;
    int *order; /* rounds * narms arm indices, round by round, shuffled */
    struct wb_placement placement;
    int calibration_arm; /* arm of the uncounted calibration pass, -1 none needed */
    double forecast_s;
};

/* Makes the plan; seed 0 takes the study's, and if that is 0 too, one from the kernel. Problems
 * (too few CPUs, too little memory: with the numbers) go to p; NULL then. What is legal but weakens
 * the answer, such as fewer than 6 rounds, is in `warnings` of the JSON. */
struct wb_plan *wb_plan_make(const struct wb_study *study, const struct wb_host_facts *host,
                             uint64_t seed, struct wb_problems *p);
wb_json *
wb_plan_json(const struct wb_plan *plan); /* for --json and the record; owned by the caller */
/* Order of an arm's phases in a round (from 1): indices into its setup's phases. Steps of one
 * phase are shuffled, the same way in all arms of a round. out has room for all. */
void wb_plan_phase_order(const struct wb_plan *plan, int round, int *out);
void wb_plan_print(const struct wb_plan *plan, int width, struct wb_buf *out);
void wb_plan_free(struct wb_plan *plan);
/* Sortable id: prefix + 26 characters of Crockford base 32 (48 bits of Unix ms, 80 random bits).
 * Caller frees. */
char *wb_new_id(const char *prefix);

/* How long a phase loads, without data loads and what is counted in operations: for forecasts. A
 * search tries about so many rates. */
#define WB_SEARCH_POINTS 16
double wb_phase_seconds(const struct wb_phase *ph);

#endif
