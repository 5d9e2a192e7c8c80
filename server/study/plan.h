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

struct wb_arm {
    char *label; /* varied values joined by '/', copies add "a", "b": unique in the plan */
    struct wb_form_ref form;
    double cpu_quota;            /* cores of CFS quota for the database; 0 none */
    struct wb_arm_value *values; /* one per factor (with "copy" when copies > 1) */
    size_t nvalues;
    struct wb_setting *settings;
    size_t nsettings;
    char series_key[17]; /* 16 hex digits: resolved arm + workload + recipe content + host class */
};

struct wb_contrast {
    char *name;
    int arm, against; /* indices of arms */
    char *metric;     /* "max.throughput" */
    bool higher_is_better;
    bool primary; /* tested as the family */
};

/* What the planner needs to know of the host. */
struct wb_host_facts {
    int *cpus; /* allowed CPUs, ascending */
    int ncpus;
    char *mems; /* allowed memory nodes "0" */
    int64_t memory_bytes;
    char *host_class; /* CPU model + count + memory size class: what makes hosts comparable */
};
int wb_host_facts_read(struct wb_host_facts *out,
                       struct wb_err *err) WB_MUST_CHECK; /* this machine */
void wb_host_facts_release(struct wb_host_facts *f);

struct wb_placement {
    char *database_cpus, *load_cpus,
        *agent_cpus; /* lists; database disjoint from the others unless shared */
    char *mems;
    bool shared; /* placement: shared: marks every result */
};

struct wb_plan {
    char *campaign;               /* id: "cmp_" + sortable */
    char *host_class;             /* of the facts it was made from */
    const struct wb_study *study; /* borrowed */
    struct wb_arm *arms;
    size_t narms;
    struct wb_contrast *contrasts;
    size_t ncontrasts;
    int rounds;
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
void wb_plan_print(const struct wb_plan *plan, int width, struct wb_buf *out);
void wb_plan_free(struct wb_plan *plan);
/* Sortable id: prefix + 26 characters of Crockford base 32 (48 bits of Unix ms, 80 random bits).
 * Caller frees. */
char *wb_new_id(const char *prefix);

#endif
