/* Shared by job.c and job_status.c only. */
#ifndef WB_BASE_JOB_INTERNAL_H
#define WB_BASE_JOB_INTERNAL_H

#include "server/base/job.h"

/* Held (flock) by the starter from before anything else of the job is there, then by the supervisor
 * until its end: who gets it knows that neither will do anything more. */
#define WB_JOB_LOCK "lock"

/* Replaces status.json. group and boot are kept in it for wb_job_stop. */
int wb_job_status_write(const char *dir, const struct wb_job_status *s, const char *group,
                        struct wb_err *err) WB_MUST_CHECK;
/* True once somebody asked the job to stop (the marker file is there). */
bool wb_job_stop_asked(const char *dir);

#endif
