/*
 * How far a data load came, in a file: for each thread the key below which all of its rows are
 * written. A load that was interrupted goes on from there; rows above are written again, which
 * changes nothing, as a value follows from its key. The sample that is read back afterwards is of
 * all rows, those of earlier runs included.
 */
#ifndef WB_LOAD_LOAD_STATE_H
#define WB_LOAD_LOAD_STATE_H

#include "runners/load/job.h"

/* Reads job->load_state into written[0..threads-1], each from 0 to the number of keys. Without a
 * file they are left as they are. WB_INVALID when the file is of other data or of another cut into
 * threads and parts: it names what differs. */
int wb_load_state_read(const struct wb_load_job *job, uint64_t *written,
                       struct wb_err *err) WB_MUST_CHECK;
/* Replaces the file, durably. */
int wb_load_state_write(const struct wb_load_job *job, const uint64_t *written,
                        struct wb_err *err) WB_MUST_CHECK;

#endif
