/*
 * Whether what runs is what was asked for. Pure comparisons of what probe steps said.
 */
#ifndef WB_ENGINE_PROBE_H
#define WB_ENGINE_PROBE_H

#include "server/base/json.h"
#include "server/study/plan.h"

/*
 * probes: array, per instance a probe object {version, ...} or null (it could not be asked). 0 when
 * every instance runs exactly `asked`: no prefix, no suffix, no other spelling. WB_CONFLICT with a
 * text that names each node (from 1) whose version differs or is unknown, and both versions.
 * An empty array proves nothing and is refused.
 */
int wb_probe_check(const char *asked, const wb_json *probes, struct wb_err *err) WB_MUST_CHECK;

/* The same; with allow_suffix (a recipe's own choice) "5.0.2-SNAPSHOT" and "5.0.2+b1" pass for
 * "5.0.2": the asked text, then '-' or '+', then at least one more character. */
int wb_probe_check_suffix(const char *asked, bool allow_suffix, const wb_json *probes,
                          struct wb_err *err) WB_MUST_CHECK;

/* Every wanted setting stands in probe.settings with the same canonical text. WB_CONFLICT names
 * each setting that differs or was not reported, what was asked and what was found. */
int wb_settings_check(const struct wb_setting *want, size_t n, const wb_json *probe,
                      struct wb_err *err) WB_MUST_CHECK;

#endif
