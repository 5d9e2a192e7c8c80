/*
 * Inside of the study room: the parts that study.c and plan.c put together. Not for other rooms.
 */
#ifndef WB_STUDY_PARTS_H
#define WB_STUDY_PARTS_H

#include "server/study/plan.h"

#define WB_ARMS_MAX 64
#define WB_ROUNDS_MAX 1000

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

/* study_factors.c -------------------------------------------------------------------------- */

/* Fills s->factors (always with form); s->recipe may be NULL when it could not be read. */
void wb_study_factors(struct wb_study *s, const struct wb_node *factors, struct wb_problems *p);

/* study_workload.c ------------------------------------------------------------------------- */

void wb_study_workload(struct wb_study *s, const struct wb_node *workload, struct wb_problems *p);

/* study_rules.c ---------------------------------------------------------------------------- */

/* DESIGN.md section 14. */
void wb_validity_defaults(struct wb_validity_limits *v);
/* {steal: {noisy, invalid}, ...} in percent, foreign_cpu in cores; owned by the caller. */
wb_json *wb_validity_json(const struct wb_validity_limits *v);
void wb_study_validity(struct wb_study *s, const struct wb_node *validity, struct wb_problems *p);
void wb_study_contrasts(struct wb_study *s, const struct wb_node *contrasts, struct wb_problems *p);
/* Checks the arms and metrics that the contrasts name, as far as these are known: a wrong factor
 * or phase would only make a second, misleading problem here. */
void wb_study_contrast_names(const struct wb_study *s, const struct wb_node *contrasts,
                             bool arms_known, bool metrics_known, struct wb_problems *p);

/* arms.c ----------------------------------------------------------------------------------- */

/* All combinations of factor values, first factor slowest, then copies. Series keys are empty. */
void wb_arms_make(const struct wb_study *s, struct wb_arm **arms, size_t *n);
void wb_arms_free(struct wb_arm *arms, size_t n);
int wb_arm_find(const struct wb_arm *arms, size_t n, const char *label); /* -1 when absent */
/* How many combinations there are, at most WB_ARMS_MAX + 1. */
size_t wb_arms_count(const struct wb_study *s);

/* contrasts.c ------------------------------------------------------------------------------ */

/* Names of all metrics of the measured phases ("max.throughput", ...), caller frees the list. */
void wb_metrics_list(const struct wb_study *s, struct wb_strv *out);
/* The metric that judges when a contrast names none; caller frees. */
char *wb_metric_default(const struct wb_study *s);
/* In what two arms differ, as words ("form", "instances", "cpu_quota", "copy"). */
void wb_arms_differ(const struct wb_arm *a, const struct wb_arm *b, struct wb_strv *out);
/* Contrasts that were asked for, or the default ones; one primary row each, then the others. */
void wb_contrasts_make(const struct wb_study *s, const struct wb_arm *arms, size_t narms,
                       struct wb_contrast **out, size_t *n);

/* placement.c ------------------------------------------------------------------------------ */

/* CPUs and memory by role; problems with the numbers when the host is too small. */
void wb_placement_make(const struct wb_study *s, const struct wb_host_facts *host,
                       struct wb_placement *out, struct wb_problems *p);

/* plan.c ----------------------------------------------------------------------------------- */

/* What is legal but weakens the answer: [{code, text}]; owned by the caller. */
wb_json *wb_plan_warnings(const struct wb_plan *plan);

/* series.c --------------------------------------------------------------------------------- */

/* Fills arm->series_key. */
void wb_series_key(const struct wb_study *s, const struct wb_host_facts *host,
                   const struct wb_placement *placement, struct wb_arm *arm);
/* Workload as JSON, as it is in series keys; owned by the caller. */
wb_json *wb_workload_json(const struct wb_study *s);

#endif
