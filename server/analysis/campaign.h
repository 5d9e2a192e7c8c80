/*
 * The parts of a campaign's report: which runs count and why the others do not, figures of arms,
 * contrasts. Internal to server/analysis.
 */
#ifndef WB_ANALYSIS_CAMPAIGN_H
#define WB_ANALYSIS_CAMPAIGN_H

#include "server/base/json.h"
#include "server/base/mem.h"

#define WB_RUNS_MAX 20000

struct wb_counted_run {
    const wb_json *summary; /* borrowed */
    int arm;                /* index into the plan's arms, -1 when it is not in the plan */
    int slot;               /* its round: an index into slots, -1 without one */
    int64_t attempt;
    bool used, noisy;
    char *why; /* it is not used; owned */
};

/* A round of a campaign; two campaigns compared with each other have different slots. */
struct wb_round_slot {
    const char *campaign; /* borrowed */
    int64_t round, last_attempt;
};

struct wb_counted {
    struct wb_counted_run *runs;
    size_t nruns;
    struct wb_round_slot *slots;
    size_t nslots, slots_cap;
    int narms;
    int *by_slot; /* nslots * narms: index of the used run, or -1 */
};

/* A summary with "excluded" (see remarks.h) does not count. WB_INVALID when the plan has no arms
 * with labels, or summaries is no list. */
int wb_count_runs(const wb_json *plan, const wb_json *summaries, struct wb_counted *out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_counted_release(struct wb_counted *c);

/* Index of an arm in the plan by its label, -1 when it is not there. */
int wb_plan_arm(const wb_json *plan, const char *label);
/* metrics[name] of a run's summary; NULL when absent. */
const wb_json *wb_run_metric(const struct wb_counted_run *r, const char *name);

/*
 * Planned looks of a campaign that ends when it is decided: plan.looks [{rounds, alpha}]. Look k
 * sees the rounds up to its own and nothing later. Its intervals miss with alpha_k; its p-value of
 * a contrast is min over the looks so far of p_k * 0.05 / alpha_k, which by Bonferroni over looks
 * is one p-value for all of them, and q is Benjamini-Hochberg over those. Intervals and q of a
 * later look cannot take back what an earlier one decided: the first decision stays.
 */
struct wb_report_look {
    int64_t rounds;
    double alpha;
};
struct wb_report_looks {
    struct wb_report_look *v; /* owned */
    size_t n, taken;          /* none in most campaigns; those whose round is over */
    int64_t over;             /* the last round that is over */
};
/* WB_INVALID for looks that do not ascend, or whose shares are more than 0.05 in all. */
int wb_report_looks_read(const wb_json *plan, const struct wb_counted *counted,
                         struct wb_report_looks *out, struct wb_err *err) WB_MUST_CHECK;
/* Adds `looks` {planned, of, taken, rounds, next, contrasts, decided, sentence} to the answer. */
void wb_report_looks_json(const struct wb_report_looks *l, wb_json *answer);

/* A report while it is made. */
struct wb_report {
    const wb_json *plan;
    struct wb_counted counted;
    struct wb_report_looks looks;
    wb_json *warnings; /* borrowed from the answer */
    double threshold_percent;
};

/* The used run of an arm in a slot, or NULL. */
const struct wb_counted_run *wb_report_run(const struct wb_report *rep, size_t slot, int arm);
/* The value of a metric in a run; NaN when it has none, or one that no figure can be. */
double wb_report_value(const struct wb_counted_run *r, const char *metric);
/* "unit" or "better" of a metric, as the first used run of the arm that says it; or NULL. */
const char *wb_report_word(const struct wb_report *rep, int arm, const char *metric,
                           const char *key);
/* Adds {arm, by, text, runs} for each cause other than the database that limited the metric in used
 * runs of the arm. */
void wb_report_limits(const struct wb_report *rep, int arm, const char *metric, wb_json *out);
/* Adds the contrasts of the plan, then the other metrics of the same arms. arms: the list of the
 * answer. */
int wb_report_contrasts(const struct wb_report *rep, const wb_json *arms, wb_json *out,
                        struct wb_err *err) WB_MUST_CHECK;

bool wb_ends_with(const char *s, const char *end);

#endif
