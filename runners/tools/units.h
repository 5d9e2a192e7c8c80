/*
 * What the load of a result consisted of: transactions where it had any, else operations. Rates and
 * times of a phase are theirs.
 */
#ifndef WB_TOOLS_UNITS_H
#define WB_TOOLS_UNITS_H

#include "server/base/json.h"

/* Completed a second; NULL or null when it is not known. */
const wb_json *wb_load_rate(const wb_json *load);
/* The latencies of all of them: which is "response", "service" or "lag". */
const wb_json *wb_load_times(const wb_json *load, const char *which);

#endif
