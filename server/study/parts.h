/*
 * Inside of the study room: the parts that study.c and plan.c put together. Not for other rooms.
 */
#ifndef WB_STUDY_PARTS_H
#define WB_STUDY_PARTS_H

#include "server/study/plan.h"

#define WB_ARMS_MAX 64
#define WB_PRODUCTS_MAX 4096 /* combinations before exclusions */
#define WB_ROUNDS_MAX 1000
#define WB_ROUNDS_LOOK 6 /* fewest rounds from which a verdict can follow */

/* study_words.c ---------------------------------------------------------------------------- */

/* Index of text in now. Else adds a problem at n: `later` (may be NULL) are words of the language
 * that cannot be used yet; returns -1. */
int wb_word_now(const struct wb_node *n, const char *key, const char *text, const char *const *now,
                const char *const *later, struct wb_problems *p);
/* A number as short as it reads back: "0.85". Caller frees. */
char *wb_number_text(double v);

/* study_override.c ------------------------------------------------------------------------- */

/* Applies profile, overrides and rounds to the tree. Nodes put there by an override have as line
 * -(its index in `origins`) - 1; wb_override_name turns that into words once all is checked. */
void wb_study_override(struct wb_node *tree, const struct wb_study_options *o,
                       struct wb_strv *origins, struct wb_problems *p);
/* Problems from index `from` on whose line names an override get its text as file. */
void wb_override_name(struct wb_problems *p, size_t from, const struct wb_strv *origins);

/* subject.c -------------------------------------------------------------------------------- */

/* Reads the subject into s->subject; s->version may be NULL. paths: files of this machine may be
 * named. */
void wb_study_subject(struct wb_study *s, const struct wb_node *subject, bool paths,
                      struct wb_problems *p);
void wb_subject_release(struct wb_subject *s);
/* In the resolved study the file is named by its digest, and the time is in UTC. */
void wb_subject_resolve(const struct wb_study *study, wb_json *resolved);
wb_json *wb_subject_schema(void);

/* study.c ---------------------------------------------------------------------------------- */

/* True for a key at the top of a study. */
bool wb_study_key(const char *key);

/* looks.c ---------------------------------------------------------------------------------- */

/* Fills plan->looks from its contrasts; none without `until: decided`. */
void wb_looks_make(struct wb_plan *plan);

/* study_factors.c -------------------------------------------------------------------------- */

/* A factor with a name of its own. */
struct wb_factor_name {
    const char *name;
    const char *path;   /* where its value goes in the study, or NULL */
    const char *member; /* of every measured phase, or NULL */
};
const struct wb_factor_name *wb_factor_name_find(const char *name); /* NULL: none */
bool wb_factor_known(const char *name); /* a name of its own, a setting or a path */
/* Fills s->factors (always with form); s->recipe may be NULL when it could not be read. */
void wb_study_factors(struct wb_study *s, const struct wb_node *factors, struct wb_problems *p);
/* Their nodes are borrowed from the tree. */
void wb_factors_forget_nodes(struct wb_study *s);

/* study_combinations.c --------------------------------------------------------------------- */

/* Fills s->combinations from factors without problems; every one is read and checked. False when
 * it is not known which there are. */
bool wb_study_combinations(struct wb_study *s, const struct wb_node *tree,
                           const struct wb_node *exclude, struct wb_problems *p);
void wb_combinations_free(struct wb_study *s);

/* study_setup.c ---------------------------------------------------------------------------- */

/* True for a top key of a study that belongs to the setup. */
bool wb_setup_key(const char *key);
/* Reads the setup's keys of a whole study; recipe may be NULL. Fills s also with problems. */
void wb_setup_read(const struct wb_node *tree, const struct wb_recipe *recipe, struct wb_setup *s,
                   struct wb_problems *p);

/* study_workload.c, study_phase.c ---------------------------------------------------------- */

/* memory_bytes, protocol and slo of the setup must be known: data may be sized by the first; slo is
 * where the last was read from, or NULL. */
void wb_study_workload(struct wb_setup *s, const struct wb_node *workload,
                       const struct wb_node *slo, struct wb_problems *p);
/* Adds one phase, or one for each rate of its list. */
void wb_study_phase(struct wb_setup *s, const struct wb_node *n, struct wb_problems *p);

/* study_during.c --------------------------------------------------------------------------- */

/* Reads `during` of all phases, which are there already; recipe may be NULL. */
void wb_study_during(struct wb_setup *s, const struct wb_recipe *recipe,
                     const struct wb_node *workload, struct wb_problems *p);
/* Checks what depends on the number of instances; problems are those of node `at`. */
void wb_during_check(const struct wb_combination *c, const struct wb_node *at,
                     struct wb_problems *p);
void wb_during_release(struct wb_phase *ph);
wb_json *wb_during_json(const struct wb_phase *ph); /* for series keys and plans */
wb_json *wb_during_schema(void);

/* study_slo.c ------------------------------------------------------------------------------ */

void wb_study_slo(struct wb_setup *s, const struct wb_node *slo, struct wb_problems *p);
/* "search", "search from 50k/s": fills pace and rate and returns true; err says what is wrong. */
bool wb_study_search_rate(struct wb_phase *ph, const char *text, struct wb_err *err);
/* Phases and slo (may be NULL) fit together. */
void wb_study_slo_check(const struct wb_setup *s, const struct wb_node *slo,
                        const struct wb_node *phases, struct wb_problems *p);

/* study_txns.c ----------------------------------------------------------------------------- */

/* {get: 80%, set: 20%} */
void wb_study_mix(struct wb_phase *ph, const struct wb_node *mix, struct wb_problems *p);
/* Composite transactions; mix (may be NULL) is of their names. protocol NULL: not known. */
void wb_study_txns(struct wb_phase *ph, const struct wb_node *txns, const struct wb_node *mix,
                   const char *protocol, struct wb_problems *p);

/* study_tool.c ----------------------------------------------------------------------------- */

/* Foreign load programs that a study declares by name. */
void wb_study_tools(struct wb_setup *s, const struct wb_node *tools, struct wb_problems *p);
void wb_tools_release(struct wb_setup *s);
/* The program of a phase that is filled in but for it: `tool` is a name or a declaration. */
void wb_study_phase_tool(struct wb_setup *s, const struct wb_node *n, const struct wb_node *tool,
                         struct wb_phase *ph, struct wb_problems *p);

/* study_rules.c ---------------------------------------------------------------------------- */

void wb_study_validity(struct wb_study *s, const struct wb_node *validity, struct wb_problems *p);
void wb_study_contrasts(struct wb_study *s, const struct wb_node *contrasts, struct wb_problems *p);
/* Checks the arms and metrics that the contrasts name, as far as these are known: a wrong factor
 * or phase would only make a second, misleading problem here. */
void wb_study_contrast_names(const struct wb_study *s, const struct wb_node *contrasts,
                             bool arms_known, bool metrics_known, struct wb_problems *p);

/* arms.c ----------------------------------------------------------------------------------- */

/* All combinations, each `copies` times. Series keys are empty, parts not made. */
void wb_arms_make(const struct wb_study *s, struct wb_arm **arms, size_t *n);
void wb_arms_free(struct wb_arm *arms, size_t n);
int wb_arm_find(const struct wb_arm *arms, size_t n, const char *label); /* -1 when absent */

/* contrasts.c ------------------------------------------------------------------------------ */

/* Names of all metrics of the measured phases ("max.throughput", ...), caller frees the list. */
void wb_metrics_list(const struct wb_study *s, struct wb_strv *out);
/* The metric that judges when a contrast names none; caller frees. */
char *wb_metric_default(const struct wb_study *s);
/* In what two arms differ, as words ("form", "instances", "cpu_quota", "copy"); factors that are
 * walked together are one thing ("connections+depth"). */
void wb_arms_differ(const struct wb_study *s, const struct wb_arm *a, const struct wb_arm *b,
                    struct wb_strv *out);
/* Contrasts that were asked for, or the default ones; one primary row each, then the others. */
void wb_contrasts_make(const struct wb_study *s, const struct wb_arm *arms, size_t narms,
                       struct wb_contrast **out, size_t *n);

/* placement.c ------------------------------------------------------------------------------ */

/* What one of n instances gets: a multiple of 64 KiB, so that every kernel holds it exactly. */
int64_t wb_memory_share(const struct wb_setup *s, int n);
/* Cores of quota for one of n instances; 0 without. */
double wb_quota_share(const struct wb_setup *s, double quota, int n);
/* CPUs and memory by role, then the parts of every arm; problems with the numbers when the host is
 * too small. */
void wb_placement_make(const struct wb_study *s, const struct wb_host_facts *host,
                       struct wb_placement *out, struct wb_problems *p);
void wb_parts_make(const struct wb_study *s, const struct wb_host_facts *host,
                   const struct wb_placement *placement, struct wb_arm *arms, size_t narms,
                   struct wb_problems *p);

/* plan.c ----------------------------------------------------------------------------------- */

/* What is legal but weakens the answer: [{code, text}]; owned by the caller. */
wb_json *wb_plan_warnings(const struct wb_plan *plan);

/* series.c --------------------------------------------------------------------------------- */

/* Fills arm->series_key. */
void wb_series_key(const struct wb_study *s, const struct wb_host_facts *host,
                   const struct wb_placement *placement, struct wb_arm *arm);
/* Workload as JSON, as it is in series keys; owned by the caller. */
wb_json *wb_workload_json(const struct wb_setup *s);

/* schemas ---------------------------------------------------------------------------------- */

/* JSON Schemas of the parts of a study, each beside the table it is made from; owned by the caller.
 * What is one of a kind in several places is given as a reference: "#/$defs/tool", "#/$defs/words".
 */
wb_json *wb_setup_schema(void); /* an object with the setup's keys as properties */
wb_json *wb_workload_schema(void);
wb_json *wb_phase_schema(void);
wb_json *wb_slo_schema(void);
wb_json *wb_txns_schema(void);
wb_json *wb_tool_schema(void);
wb_json *wb_factors_schema(void);
wb_json *wb_exclude_schema(void);
wb_json *wb_validity_schema(void);
wb_json *wb_contrasts_schema(void);
/* {"$ref": "#/$defs/NAME"} */
wb_json *wb_schema_ref(const char *name);

#endif
