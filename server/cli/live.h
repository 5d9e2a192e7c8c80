/*
 * Campaigns that have a folder on this host: those that run, and those that ran.
 */
#ifndef WB_CLI_LIVE_H
#define WB_CLI_LIVE_H

#include "server/base/err.h"

/* The campaign whose id begins as typed, with or without its "cmp_"; NULL: the only one that runs.
 * Caller frees *id. WB_NOT_FOUND, WB_CONFLICT naming candidates. */
int wb_live_find(const char *state_dir, const char *typed, char **id,
                 struct wb_err *err) WB_MUST_CHECK;
/* The same for a run that is not recorded yet; *campaign is whose it is. */
int wb_live_find_run(const char *state_dir, const char *typed, char **run, char **campaign,
                     struct wb_err *err) WB_MUST_CHECK;
/* The word of its state.json, "unknown" when that cannot be read; caller frees. */
char *wb_live_state(const char *state_dir, const char *id);

#endif
