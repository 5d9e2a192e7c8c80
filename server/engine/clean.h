/*
 * Cleaning up after engines that are dead, for those who hold the host's lock. Private to
 * server/engine.
 */
#ifndef WB_ENGINE_CLEAN_H
#define WB_ENGINE_CLEAN_H

#include "server/engine/engine.h"

/* wb_engine_clean without taking the host's lock. report is set up here. */
int wb_clean_host(const struct wb_clean_spec *spec, const struct wb_cgroup_fs *cgroups,
                  struct wb_clean_report *report, struct wb_err *err) WB_MUST_CHECK;

/* Whether something that another owner's engine started still runs here: WB_CONFLICT then, with
 * whose it is and the way out. */
int wb_clean_foreign(const struct wb_clean_spec *spec, const struct wb_cgroup_fs *cgroups,
                     struct wb_err *err) WB_MUST_CHECK;

#endif
