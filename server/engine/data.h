/*
 * The data of a run: kept for later runs of its arm (`reuse: data`), taken by them, and at rest
 * before measuring begins. Private to server/engine.
 *
 * After the data load of the first run of an arm its instances are stopped in an orderly way, their
 * data folders are copied into the campaign's folder, and they are started again; so they begin to
 * be measured as those of all later runs do, on the same files. What is kept belongs to the ports
 * and addresses that it was made with: a run that gets others loads anew.
 */
#ifndef WB_ENGINE_DATA_H
#define WB_ENGINE_DATA_H

#include "server/engine/run.h"

/* Before an instance starts: the data of its arm, if it is kept. Sets data_of. */
int wb_data_take(struct wb_run *r, struct wb_instance *in) WB_MUST_CHECK;
/* After the data load. */
int wb_data_keep(struct wb_run *r) WB_MUST_CHECK;
/* Before the first measured phase: waits until step settle finds nothing under way, then leaves or
 * drops the page cache. sut-error when it does not come to rest within the limit of the step. */
int wb_data_settle(struct wb_run *r) WB_MUST_CHECK;
/* At the end of a campaign. */
void wb_data_drop(const struct wb_campaign_dir *c);
/* result.data: {reused, of_run, page_cache}; of_run is null, with a reason, when the data is of the
 * calibration pass; owned by the caller. */
wb_json *wb_data_json(const struct wb_run *r);

#endif
