#include "server/study/parts.h"

#include <string.h>

#include "server/base/digest.h"

/* What makes one foreign load program another. */
static wb_json *tool_json(const struct wb_tool_command *c)
{
    wb_json *o = wb_json_object(), *argv = wb_json_array();

    for (size_t i = 0; i < c->argv.n; i++)
        wb_json_push(argv, wb_json_str(c->argv.v[i]));
    wb_json_set_str(o, "name", c->name);
    wb_json_set(o, "command", argv);
    wb_json_set_str(o, "version", c->version);
    return o;
}

static wb_json *phase_json(const struct wb_setup *s, const struct wb_phase *ph)
{
    static const char *const paces[] = {[WB_PACE_MAX] = "max",
                                        [WB_PACE_RATE] = "rate",
                                        [WB_PACE_CALIBRATED] = "calibrated",
                                        [WB_PACE_SEARCH] = "search"};
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", ph->name);
    wb_json_set_bool(o, "load_only", ph->load_only);
    wb_json_set_real(o, "get_percent", ph->get_percent);
    wb_json_set_str(o, "keys", ph->keys);
    wb_json_set_int(o, "connections", ph->connections);
    wb_json_set_int(o, "depth", ph->depth);
    wb_json_set_int(o, "threads", ph->threads);
    wb_json_set_str(o, "pace", paces[ph->pace]);
    wb_json_set_real(o, "rate_per_s", ph->rate_per_s);
    wb_json_set_real(o, "calibrated_percent", ph->calibrated_percent);
    wb_json_set_str(o, "arrivals", ph->arrivals);
    wb_json_set_int(o, "warm_up_ns", ph->warm_up_ns);
    wb_json_set_int(o, "for_ns", ph->for_ns);
    wb_json_set_int(o, "timeout_ns", ph->timeout_ns);
    if (ph->transactions) {
        wb_json_set_str(o, "transactions", ph->transactions);
        wb_json_set_str(o, "transaction_mix", ph->txn_mix);
    }
    if (ph->pace == WB_PACE_SEARCH)
        wb_json_set_str(o, "limit", s->slo.text);
    if (ph->operations > 0)
        wb_json_set_int(o, "operations", ph->operations);
    if (ph->tool)
        wb_json_set(o, "tool", tool_json(ph->tool));
    if (ph->nduring)
        wb_json_set(o, "during", wb_during_json(ph));
    return o;
}

wb_json *wb_workload_json(const struct wb_setup *s)
{
    wb_json *o = wb_json_object(), *phases = wb_json_array();

    wb_json_set_int(o, "rows", s->rows);
    wb_json_set_int(o, "key_bytes", s->key_bytes);
    wb_json_set_int(o, "value_bytes", s->value_bytes);
    if (s->value_size)
        wb_json_set_str(o, "value_size", s->value_size);
    if (s->value_content)
        wb_json_set_str(o, "value_content", s->value_content);
    if (s->consistency)
        wb_json_set_str(o, "consistency", s->consistency);
    if (s->routing)
        wb_json_set_str(o, "routing", s->routing);
    for (size_t i = 0; i < s->nphases; i++)
        wb_json_push(phases, phase_json(s, &s->phases[i]));
    wb_json_set(o, "phases", phases);
    return o;
}

/* What was resolved, not the words it came from: share, cpus and a division of keys mean nothing
 * for one instance. Copies are the same arm, so `copy` is no part of it. */
static wb_json *arm_json(const struct wb_arm *a)
{
    wb_json *o = wb_json_object(), *settings = wb_json_object(), *parts = wb_json_array();

    wb_json_set_str(o, "form", a->form.ops->name);
    wb_json_set_int(o, "count", a->form.count);
    wb_json_set_str(o, "topology",
                    a->form.count == 1 && strcmp(a->setup->topology, "sharded") == 0
                        ? "single"
                        : a->setup->topology);
    wb_json_set_str(o, "network", wb_network_names[a->setup->network]);
    wb_json_set_bool(o, "limited", a->setup->limits == WB_LIMITS_SAME);
    for (size_t i = 0; i < a->nsettings; i++)
        wb_json_set_str(settings, a->settings[i].name, a->settings[i].value);
    wb_json_set(o, "settings", settings);
    if (a->setup->reuse_data)
        wb_json_set_str(o, "reuse", "data");
    if (a->setup->page_cache == WB_PAGE_CACHE_DROPPED)
        wb_json_set_str(o, "page_cache", "dropped");
    for (int i = 0; i < a->form.count; i++) {
        wb_json *part = wb_json_object();

        wb_json_set_str(part, "cpus", a->parts[i].cpus);
        wb_json_set_str(part, "mems", a->parts[i].mems);
        wb_json_set_int(part, "memory_bytes", a->parts[i].memory_bytes);
        wb_json_set_real(part, "cpu_quota", a->parts[i].cpu_quota);
        wb_json_push(parts, part);
    }
    wb_json_set(o, "instances", parts);
    return o;
}

void wb_series_key(const struct wb_study *s, const struct wb_host_facts *host,
                   const struct wb_placement *placement, struct wb_arm *arm)
{
    WB_AUTO_JSON wb_json *o = wb_json_object();
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    char hex[WB_SHA256_HEX];

    wb_json_set_str(o, "series_version", "2");
    wb_json_set(o, "arm", arm_json(arm));
    wb_json_set(o, "workload", wb_workload_json(arm->setup));
    wb_json_set_str(o, "recipe", s->recipe->name);
    wb_json_set_str(o, "recipe_content", s->recipe->series_digest);
    wb_json_set_str(o, "host_class", host->host_class);
    wb_json_set_str(o, "load_cpus", placement->load_cpus);
    wb_json_set_bool(o, "shared", placement->shared);
    wb_json_canonical(o, &text);
    wb_sha256_of(wb_buf_str(&text), text.len, hex);
    memcpy(arm->series_key, hex, sizeof arm->series_key - 1);
    arm->series_key[sizeof arm->series_key - 1] = '\0';
    wb_buf_release(&text);
}
