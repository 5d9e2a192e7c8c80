/*
 * One run: one arm in one round, through its phases. Private to server/engine.
 *
 * The phases are functions in files of their own; each returns 0, or a negative code after
 * wb_run_fail has noted outcome and reason. Teardown is always done, then the record is made.
 */
#ifndef WB_ENGINE_RUN_H
#define WB_ENGINE_RUN_H

#include "server/collect/collect.h"
#include "server/engine/bits.h"
#include "server/engine/engine.h"

#define WB_FORMS_MAX 8

/* A form that is prepared for this campaign. */
struct wb_form_prepared {
    const struct wb_form_ops *ops;
    char *image;    /* NULL for forms without */
    wb_json *facts; /* for the environment of its runs */
};

/* Everything that the runs of one campaign share. */
struct wb_engine {
    const struct wb_engine_spec *spec;
    const struct wb_plan *plan;
    const struct wb_study *study;
    struct wb_campaign_dir *dir;
    struct wb_cgroup_fs *cgroups;
    struct wb_form_env form_env;
    struct wb_bits_info bits_info;
    struct wb_bits bits;
    struct wb_form_prepared forms[WB_FORMS_MAX];
    size_t nforms;
    wb_json *facts;          /* of the host */
    wb_json *programs;       /* digests of those that measure */
    double calibrated_per_s; /* 0: not calibrated */
    wb_json *calibration;    /* {arm, run, achieved_per_s} or NULL */
    char *cache_dir;
    int host_lock;
    bool resumed; /* not the first engine of this campaign */
};

struct wb_instance {
    int index, port;
    int ports[WB_RECIPE_PORTS_MAX]; /* the recipe's others, in its order */
    char host[64];                  /* where clients reach it; "" is the host's loopback */
    char *dir, *name;               /* folder; container or control group */
    struct wb_paths paths;
    bool in_ledger, started, gone; /* gone: destroyed at teardown */
    bool member;                   /* of the cluster as it should be now */
    bool away;                     /* between its stop and its start in an operation */
    bool restarted;                /* in this phase: its counters began anew */
    bool port_foreign;             /* who listens on its port is a stranger: left alone */
    struct wb_instance_status status;
    uint64_t start_ticks; /* of the database process */
    int64_t started_ns;   /* when its start returned */
    /* How long each took, seconds: until started, from there until ready, until stopped, until
     * nothing was left. */
    double start_s, ready_s, stop_s, remove_s;
    wb_json *probe; /* what the probe step said, or NULL */
};

struct wb_run {
    struct wb_engine *e;
    const struct wb_arm *arm;
    const struct wb_form_prepared *form;
    char *data_of; /* the run whose data this one took, "": the calibration pass, NULL: its own */
    int round, attempt, position; /* round from 1; position in the round from 1 */
    bool calibrating;             /* an uncounted pass: no record */
    bool reference;               /* the same, only deployed: for the facts that parity needs */
    char *id, *dir;
    struct wb_instance *instances;
    int ninstances;
    enum wb_outcome outcome;
    enum wb_validity validity;
    bool teardown_clean;
    wb_json *reasons;   /* texts */
    wb_json *left;      /* texts: what teardown could not do or remove */
    wb_json *phases;    /* result.phases */
    wb_json *placement; /* as the kernel said */
    wb_json *parity;    /* environment.parity, see parity.h; NULL: not known */
    wb_json *server;    /* what the measure step said */
    wb_json *timings;   /* seconds per phase of the run itself */
    struct wb_raw_file *raw;
    size_t nraw, raw_cap;
    wb_json *before; /* snapshot of the host, see leftovers.h */
    int64_t started_ms, canary_before_ns, canary_after_ns;
    char *governor_before;
    wb_json *state_before, *state_after; /* of the host, see wb_host_state */
    wb_json *load_result;                /* of the phase that ran last; borrowed from phases */
};

/* Notes the first outcome that is not ok, with its reason; later ones only add reasons. Returns
 * the negative code of err, or -WB_IO. A cancel always becomes `cancelled`. What fails on a full
 * disk fails because of that: then a failure of database or harness is one of the infrastructure.
 */
int wb_run_fail(struct wb_run *r, enum wb_outcome o, const struct wb_err *err);
int wb_run_failf(struct wb_run *r, enum wb_outcome o, const char *fmt, ...) WB_PRINTF(3, 4);
/* Event "run.phase", and the time the last one took. */
void wb_run_phase(struct wb_run *r, const char *name, double planned_s);
/* Keeps bytes for the raw data of the record (copied). */
void wb_run_raw(struct wb_run *r, const char *name, const void *data, size_t n);

/* deploy.c: folders, configure, start, ready, probe, placement. */
int wb_run_deploy(struct wb_run *r) WB_MUST_CHECK;
/* One instance, whose folders and configuration are there: its process is started. */
int wb_run_start_instance(struct wb_run *r, struct wb_instance *in) WB_MUST_CHECK;
/* Waits until it is ready; the last member, until the cluster is complete. */
int wb_run_ready(struct wb_run *r, struct wb_instance *in) WB_MUST_CHECK;
/* Runs a step of the recipe on an instance if it has it. *exit_code is 0 when it has not. */
int wb_run_step(struct wb_run *r, const struct wb_instance *in, enum wb_step which, int *exit_code,
                wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* Its state as the form has it; its process is the one that must live on. Notes its end. */
int wb_run_know(struct wb_run *r, struct wb_instance *in) WB_MUST_CHECK;
/* How many instances the cluster should have now. */
int wb_run_members(const struct wb_run *r);
/* Version, settings and placement of one instance, against what was asked for. */
int wb_run_prove(struct wb_run *r, struct wb_instance *in) WB_MUST_CHECK;
/* Environment of a recipe step for one instance. WB_PEERS and WB_INSTANCES are the members of the
 * cluster as it should be now, WB_INSTANCE is its place among them; of one that is not a member yet
 * it is its index, and WB_JOINS is 1. */
void wb_run_step_env(const struct wb_run *r, const struct wb_instance *in, struct wb_strv *env);
/* Event "run.instances": how long starting, getting ready, stopping and removing took. */
void wb_run_tell_instances(struct wb_run *r);
/* Whether the instance's process is still the one that was started; notes sut-error if not. */
int wb_run_alive(struct wb_run *r) WB_MUST_CHECK;
/* The same, asking the form (a container engine) whatever the kernel says. */
int wb_run_look(struct wb_run *r) WB_MUST_CHECK;

/* place.c: placement and limits of a group and process as the kernel says, against the plan.
 * Adds what was seen to `seen` (object). WB_CONFLICT with the numbers when they differ. */
struct wb_place_want {
    const char *group;
    pid_t pid;
    const char *cpus;
    const char *mems;     /* NULL: not checked */
    int64_t memory_bytes; /* 0: not checked */
    bool memory_free;     /* there must be no limit of memory */
    double cpu_quota;     /* 0: none */
};
int wb_place_check(const struct wb_cgroup_fs *fs, const struct wb_place_want *want, wb_json *seen,
                   struct wb_err *err) WB_MUST_CHECK;

/* The same for an instance against its part of the arm, kept in r->placement; phase is that of the
 * workload, NULL before. */
int wb_run_place(struct wb_run *r, const struct wb_instance *in, const char *phase,
                 struct wb_err *err) WB_MUST_CHECK;

/* parity_run.c: facts of the instances for the environment of the run, compared with those of the
 * native arm with the same settings and parts. */
int wb_run_parity(struct wb_run *r) WB_MUST_CHECK;
/* The native arm that has to be deployed before a run of this arm so that there is something to
 * compare it with; NULL: none. */
const struct wb_arm *wb_parity_needs(const struct wb_engine *e, const struct wb_arm *arm);
/* Notes that it could not be: runs of other forms are not compared until a native one was. */
void wb_parity_without(struct wb_engine *e, const struct wb_arm *native, const char *why);

/* measure.c: the phases of the workload. */
int wb_run_measure(struct wb_run *r) WB_MUST_CHECK;

/* teardown.c: logs, stop, clean, unmount, wipe, destroy; all are tried. Sets teardown_clean. */
void wb_run_teardown(struct wb_run *r);

/* finish.c: validity, summary, commit. Not for a calibration pass. */
int wb_run_record(struct wb_run *r, struct wb_err *err) WB_MUST_CHECK;
/* For a run that could not be recorded: keeps its outcome and reasons in run.json, so that `clean`
 * can make the record once the store takes it. */
void wb_run_keep(struct wb_run *r, const struct wb_err *why);
/* Record of an attempt that an interrupted engine left behind: from its run.json. WB_CONFLICT: it
 * is recorded already. */
int wb_record_interrupted(struct wb_store *store, struct wb_campaign_dir *dir, const char *run,
                          bool teardown_clean, struct wb_err *err) WB_MUST_CHECK;

/* The part of a summary that is known before a run has run: study, recipe, arm, factors. Owned. */
wb_json *wb_run_identity(const struct wb_plan *plan, const struct wb_arm *arm);

/* run.c */
int wb_run_execute(struct wb_run *r, struct wb_err *err) WB_MUST_CHECK;
void wb_run_release(struct wb_run *r);

#endif
