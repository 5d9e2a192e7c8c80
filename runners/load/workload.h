/*
 * A workload file: the `workload` part of a study (alone, or in a whole study), as settings of one
 * load run. Every key is one of the flags by another name; what cannot be meant for one run of
 * wb-load alone is refused with its line.
 */
#ifndef WB_LOAD_WORKLOAD_H
#define WB_LOAD_WORKLOAD_H

#include "runners/load/job.h"

struct wb_node;

/* Puts data and one phase of a workload over what is set in the job. phase NULL: the only measured
 * one. WB_INVALID names line and key. */
int wb_workload_apply(struct wb_load_job *job, const struct wb_node *root, const char *phase,
                      struct wb_err *err) WB_MUST_CHECK;
/* The same from a YAML file. */
int wb_workload_read(struct wb_load_job *job, const char *path, const char *phase,
                     struct wb_err *err) WB_MUST_CHECK;

#endif
