/*
 * The password that a run logs in with. It never stands on the command line, which everybody on the
 * host can read.
 */
#ifndef WB_LOAD_PASSWORD_H
#define WB_LOAD_PASSWORD_H

#include "server/base/err.h"

/* From the file (without the line end that editors leave), else from the environment's
 * WB_LOAD_PASSWORD, else NULL. file may be NULL. *out is owned by the caller. */
int wb_load_password(const char *file, char **out, struct wb_err *err) WB_MUST_CHECK;

#endif
