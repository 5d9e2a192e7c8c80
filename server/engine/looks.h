/*
 * Planned looks of a campaign with `rounds: {until: decided}`: the analysis is asked after the
 * rounds that the plan names, never in between.
 */
#ifndef WB_ENGINE_LOOKS_H
#define WB_ENGINE_LOOKS_H

#include "server/engine/campaign.h"
#include "server/record/store.h"
#include "server/study/plan.h"

/* After a round that is over: when the plan has a look there, the verdicts are made from the
 * records of the rounds up to it, which gives the same again after a resume. *decided: all
 * contrasts are settled and the campaign may end. Event "campaign.look". */
int wb_look_after(const struct wb_plan *plan, struct wb_store *store, struct wb_campaign_dir *dir,
                  int round, bool *decided, struct wb_err *err) WB_MUST_CHECK;

#endif
