#include "runners/tools/units.h"

static const wb_json *transactions(const wb_json *load)
{
    const wb_json *t = wb_json_get(load, "transactions");

    return wb_json_type(t) == WB_JSON_OBJECT ? t : NULL;
}

const wb_json *wb_load_rate(const wb_json *load)
{
    const wb_json *t = transactions(load);

    return wb_json_get(t ? t : load, "achieved_per_s");
}

const wb_json *wb_load_times(const wb_json *load, const char *which)
{
    const wb_json *t = transactions(load);

    return wb_json_get(wb_json_get(t ? t : wb_json_get(load, "operations"), "all"), which);
}
