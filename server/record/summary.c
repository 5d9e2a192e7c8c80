#include "server/record/summary.h"

#include <string.h>

#include "runners/tools/units.h"
#include "server/base/file.h"
#include "server/base/mem.h"

static const char *const latencies[] = {"p50_ms", "p99_ms", "p99_9_ms"};

static void add_metric(wb_json *metrics, const char *phase, const char *name, const wb_json *figure,
                       bool higher)
{
    WB_AUTO_FREE char *key = wb_strf("%s.%s", phase, name);
    wb_json *m;

    if (!wb_json_is_number(figure))
        return;
    m = wb_json_object();
    wb_json_set(m, "value", wb_json_ref(figure));
    wb_json_set_str(m, "unit", higher ? "ops/s" : "ms");
    wb_json_set_str(m, "better", higher ? "higher" : "lower");
    wb_json_set(metrics, key, m);
}

static const char *phase_model(const wb_json *phase)
{
    return wb_json_str_or(phase, "model",
                          wb_json_str_or(wb_json_get(phase, "load"), "model", NULL));
}

static int phase_metrics(const wb_json *phase, size_t i, wb_json *metrics, struct wb_err *err)
{
    const char *name = wb_json_str_or(phase, "name", NULL), *model = phase_model(phase);
    const wb_json *load = wb_json_get(phase, "load"), *times, *per_op;
    WB_AUTO_FREE char *first = NULL;

    if (!name || !wb_safe_name(name))
        return wb_fail(err, WB_INVALID, "result: phases[%zu] has no usable name", i);
    if (wb_json_type(load) == WB_JSON_NULL)
        return 0;
    if (!model || (strcmp(model, "open") != 0 && strcmp(model, "closed") != 0))
        return wb_fail(err, WB_INVALID, "result: phase '%s' has model '%s'; allowed: open, closed",
                       name, model ? model : "");
    first = wb_strf("%s.throughput", name);
    if (wb_json_get(metrics, first))
        return wb_fail(err, WB_INVALID, "result: two phases are named '%s'", name);
    add_metric(metrics, name, "throughput", wb_load_rate(load), true);
    add_metric(metrics, name, "sustained", wb_json_get(load, "sustained_per_s"), true);
    per_op = wb_json_path(load, "client.cpu_s_per_million_ops");
    if (wb_json_bool_or(phase, "measured", true) && wb_json_is_number(per_op)) {
        WB_AUTO_JSON wb_json *ms = wb_json_real(wb_json_number(per_op, 0) / 1000);

        add_metric(metrics, name, "client_cpu_ms", ms, false);
    }
    times = wb_load_times(load, !strcmp(model, "open") ? "response" : "service");
    for (size_t k = 0; k < WB_LEN(latencies); k++)
        add_metric(metrics, name, latencies[k], wb_json_get(times, latencies[k]), false);
    return 0;
}

/* Metrics of a result that another program has measured. */
static int imported_metrics(const wb_json *imported, wb_json *metrics, struct wb_err *err)
{
    const wb_json *in = wb_json_get(imported, "metrics");

    if (wb_json_type(in) != WB_JSON_OBJECT || wb_json_len(in) == 0)
        return wb_fail(err, WB_INVALID, "metrics: needed is {name: {value, unit, better}}");
    for (void *it = wb_json_first(in); it; it = wb_json_next(in, it)) {
        const char *name = wb_json_iter_key(it);
        const wb_json *v = wb_json_iter_value(it), *value = wb_json_get(v, "value");
        const char *better = wb_json_str_or(v, "better", ""), *unit = wb_json_str_or(v, "unit", "");
        wb_json *m;

        if (!wb_safe_name(name))
            return wb_fail(err, WB_INVALID, "metrics: '%.40s' cannot be a metric's name", name);
        if (!wb_json_is_number(value))
            return wb_fail(err, WB_INVALID, "metrics: %s has no number 'value'", name);
        if (strcmp(better, "higher") != 0 && strcmp(better, "lower") != 0)
            return wb_fail(err, WB_INVALID,
                           "metrics: %s: 'better' is '%.20s'; allowed: higher, lower", name,
                           better);
        m = wb_json_object();
        wb_json_set(m, "value", wb_json_ref(value));
        wb_json_set_str(m, "unit", unit);
        wb_json_set_str(m, "better", better);
        wb_json_set(metrics, name, m);
    }
    return 0;
}

int wb_summary_metrics(const wb_json *result, wb_json **metrics, struct wb_err *err)
{
    const wb_json *phases = wb_json_get(result, "phases");
    WB_AUTO_JSON wb_json *m = wb_json_object();

    if (wb_json_type(phases) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "result: phases is not a list");
    for (size_t i = 0; i < wb_json_len(phases); i++) {
        int rc = phase_metrics(wb_json_at(phases, i), i, m, err);

        if (rc < 0)
            return rc;
    }
    if (wb_json_get(result, "imported")) {
        int rc = imported_metrics(wb_json_get(result, "imported"), m, err);

        if (rc < 0)
            return rc;
    }
    *metrics = WB_STEAL(m);
    return 0;
}

/* The name "<phase>.<figure>" of the first measured phase of a model ("": any) that has this
 * metric, or NULL; caller frees. */
static char *first_metric(const wb_json *result, const wb_json *metrics, const char *model,
                          const char *figure)
{
    const wb_json *phases = wb_json_get(result, "phases");

    for (size_t i = 0; i < wb_json_len(phases); i++) {
        const wb_json *phase = wb_json_at(phases, i);
        const char *is = phase_model(phase);
        char *key = wb_strf("%s.%s", wb_json_str_or(phase, "name", ""), figure);

        if (wb_json_bool_or(phase, "measured", true) && (!*model || (is && !strcmp(is, model))) &&
            wb_json_get(metrics, key))
            return key;
        wb_auto_free(&key);
    }
    return NULL;
}

wb_json *wb_summary_headline(const wb_json *result, const wb_json *metrics)
{
    WB_AUTO_FREE char *throughput = first_metric(result, metrics, "closed", "throughput");
    WB_AUTO_FREE char *p99 = first_metric(result, metrics, "open", "p99_ms");
    wb_json *h = wb_json_object();

    if (!throughput)
        throughput = first_metric(result, metrics, "", "sustained");
    if (!throughput)
        throughput = first_metric(result, metrics, "", "throughput");
    if (!p99)
        p99 = first_metric(result, metrics, "", "p99_ms");
    wb_json_set_str(h, "throughput", throughput);
    wb_json_set_str(h, "p99", p99);
    return h;
}
