/*
 * Going on with a campaign: its study and plan from its folder, its past from the store.
 *
 * A round is finished once one attempt has a record of every arm and none of them was interrupted
 * or cancelled. An interrupted round is repeated whole as the next attempt, WB_ATTEMPTS_MAX in
 * all; the records of all attempts are kept.
 */
#ifndef WB_ENGINE_RESUME_H
#define WB_ENGINE_RESUME_H

#include "server/collect/collect.h"
#include "server/engine/engine.h"

struct wb_resume {
    struct wb_study *study;
    struct wb_plan *plan;
    char *state;         /* "running", "interrupted", ... as the folder says */
    char *owner, *store; /* of the campaign; NULL when its state was lost */
};

/* Rebuilds study and plan of a campaign and makes sure that they are the same as before: the
 * recipe's content, the host and everything that follows from them. Problems of the study itself
 * go to p. WB_CONFLICT names what is different. recipes_dir is where the recipe is looked for when
 * its folder is not where it was. Free with wb_resume_release. */
int wb_resume_read(const char *state_dir, const char *id, const char *recipes_dir,
                   struct wb_resume *out, struct wb_problems *p, struct wb_err *err) WB_MUST_CHECK;
void wb_resume_release(struct wb_resume *r);

/* Gives a campaign that no engine holds a plan with so many rounds in all and queues it; those that
 * were planned keep their order. Repeating it is harmless. WB_CONFLICT says why it cannot be. */
int wb_campaign_extend(const char *state_dir, const char *id, const char *recipes_dir,
                       int64_t rounds, struct wb_err *err) WB_MUST_CHECK;

struct wb_round {
    int attempts; /* that have at least one record */
    bool finished;
};
struct wb_past_run {
    enum wb_outcome outcome;
    enum wb_validity validity;
};
struct wb_rounds {
    struct wb_round *v; /* one per round of the plan */
    size_t n;
    struct wb_past_run *runs; /* of the finished rounds, the attempt that counts */
    size_t nruns, cap;
};
/* What the store has of a campaign. */
int wb_rounds_read(const struct wb_plan *plan, struct wb_store *store, struct wb_rounds *out,
                   struct wb_err *err) WB_MUST_CHECK;
/* The same from summaries (array). */
void wb_rounds_of(const struct wb_plan *plan, const wb_json *summaries, struct wb_rounds *out);
void wb_rounds_release(struct wb_rounds *r);

#endif
