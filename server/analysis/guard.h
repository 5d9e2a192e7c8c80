/*
 * The comparability guard: what must be the same for two figures to mean the same.
 */
#ifndef WB_ANALYSIS_GUARD_H
#define WB_ANALYSIS_GUARD_H

#include "server/base/json.h"

/* One run that stands for its campaign; any may be NULL. */
struct wb_side {
    const wb_json *plan, *summary, *environment;
};

/* [{field, base, other, must_match}]: fields that both sides have and that differ, but for those
 * named in `compared` (NULL-ended, or NULL). Of larger documents the first few places that differ
 * are fields of their own ("workload.rows"). must_match false: the difference may well be what is
 * compared, and is only said. Owned. */
wb_json *wb_guard_differences(const struct wb_side *a, const struct wb_side *b,
                              const char *const *compared);

#endif
