/* From a record's result to the verdict on its validity. */
#include "server/collect/collect.h"
#include "server/study/study.h"

/* What the judge looks at of a phase. */
static wb_json *window_of(const wb_json *phase)
{
    static const char *const keys[] = {"model",     "samples",   "load",
                                       "in_flight", "cpu_quota", "link_bytes_per_s"};
    wb_json *w = wb_json_object();

    wb_json_set_str(w, "phase", wb_json_str_or(phase, "name", "?"));
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const wb_json *v = wb_json_get(phase, keys[i]);

        if (v)
            wb_json_set(w, keys[i], wb_json_ref(v));
    }
    return w;
}

static wb_json *windows_of(const wb_json *result)
{
    const wb_json *phases = wb_json_get(result, "phases");
    wb_json *windows = wb_json_array();

    for (size_t i = 0; i < wb_json_len(phases); i++) {
        const wb_json *p = wb_json_at(phases, i);

        if (wb_json_bool_or(p, "measured", true) &&
            wb_json_type(wb_json_get(p, "load")) == WB_JSON_OBJECT)
            wb_json_push(windows, window_of(p));
    }
    return windows;
}

wb_json *wb_validity_rules_json(const struct wb_validity_limits *limits)
{
    wb_json *j = wb_json_object();

    wb_json_set_int(j, "rules", WB_VALIDITY_RULES);
    wb_json_set(j, "limits", wb_validity_json(limits));
    return j;
}

int wb_validity_of_result(const wb_json *result, const struct wb_validity_limits *limits,
                          enum wb_validity *out, wb_json *evidence, struct wb_err *err)
{
    const wb_json *kept = wb_json_get(result, "validity");
    const wb_json *governor = wb_json_get(result, "governor");
    const wb_json *state = wb_json_get(result, "host_state");
    int64_t rules = wb_json_int_or(kept, "rules", 0);
    WB_AUTO_JSON wb_json *windows = windows_of(result);
    struct wb_validity_limits own;
    enum wb_validity v;
    int rc = 0;

    if (rules != WB_VALIDITY_RULES)
        return wb_fail(err, WB_UNSUPPORTED,
                       "it was judged by rules %lld, this program has rules %d", (long long)rules,
                       WB_VALIDITY_RULES);
    if (!limits) {
        rc = wb_validity_limits_read(wb_json_get(kept, "limits"), &own, err);
        limits = &own;
    }
    if (rc < 0)
        return rc;
    if (wb_json_len(windows) == 0) {
        *out = WB_UNVERIFIED;
        return 0;
    }
    v = wb_validity_judge(windows, wb_json_get(result, "canary"),
                          wb_json_str_or(governor, "before", NULL),
                          wb_json_str_or(governor, "after", NULL), limits, evidence);
    *out = wb_validity_worse(v, wb_host_state_judge(wb_json_get(state, "before"),
                                                    wb_json_get(state, "after"), evidence));
    return 0;
}
