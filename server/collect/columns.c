#include "server/collect/columns.h"

#include "server/base/mem.h"

static int64_t busy(const struct wb_cpu_ticks *c)
{
    return c->user + c->nice + c->system + c->irq + c->softirq;
}

static int64_t total(const struct wb_cpu_ticks *c)
{
    return busy(c) + c->idle + c->iowait + c->steal;
}

static double positive(int64_t v)
{
    return v > 0 ? (double)v : 0;
}

static bool host_percent(const struct wb_reading *a, const struct wb_reading *b, int64_t used,
                         struct wb_ratio *r)
{
    *r = (struct wb_ratio){100 * positive(used), positive(total(&b->cpu) - total(&a->cpu))};
    return a->cpu_ok && b->cpu_ok && r->den > 0;
}

static bool busy_percent(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return host_percent(a, b, busy(&b->cpu) - busy(&a->cpu), r);
}

static bool steal_percent(const struct wb_reading *a, const struct wb_reading *b,
                          struct wb_ratio *r)
{
    return host_percent(a, b, b->cpu.steal - a->cpu.steal, r);
}

static bool iowait_percent(const struct wb_reading *a, const struct wb_reading *b,
                           struct wb_ratio *r)
{
    return host_percent(a, b, b->cpu.iowait - a->cpu.iowait, r);
}

static bool process_cores(const struct wb_reading *a, const struct wb_reading *b, enum wb_whose who,
                          struct wb_ratio *r)
{
    *r = (struct wb_ratio){positive(b->used[who] - a->used[who]) / (double)wb_tick_hz(),
                           (double)(b->processes_ns - a->processes_ns) / 1e9};
    return a->processes_ok && b->processes_ok && r->den > 0;
}

static bool foreign_cores(const struct wb_reading *a, const struct wb_reading *b,
                          struct wb_ratio *r)
{
    return process_cores(a, b, WB_FOREIGN, r);
}

static bool kernel_cores(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return process_cores(a, b, WB_KERNEL, r);
}

static bool agent_cores(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return process_cores(a, b, WB_AGENT, r);
}

static bool group_cores(const struct wb_reading *a, const struct wb_reading *b,
                        const struct wb_group_sum *x, const struct wb_group_sum *y,
                        struct wb_ratio *r)
{
    *r = (struct wb_ratio){positive(y->cpu_ns - x->cpu_ns) / 1e9,
                           (double)(b->groups_ns - a->groups_ns) / 1e9};
    return x->ok && y->ok && r->den > 0;
}

static bool database_cores(const struct wb_reading *a, const struct wb_reading *b,
                           struct wb_ratio *r)
{
    return group_cores(a, b, &a->database, &b->database, r);
}

static bool load_cores(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return group_cores(a, b, &a->load, &b->load, r);
}

/* Signed: the noise of tick sampling goes both ways. Interrupts are left out of the host's side,
 * so that kernels which book them apart from the tasks do not show them here. */
static bool unexplained_cores(const struct wb_reading *a, const struct wb_reading *b,
                              struct wb_ratio *r)
{
    struct wb_ratio part;
    double known = 0, seconds = (double)(b->host_ns - a->host_ns) / 1e9;
    int64_t tasks =
        (b->cpu.user + b->cpu.nice + b->cpu.system) - (a->cpu.user + a->cpu.nice + a->cpu.system);

    if (!a->cpu_ok || !b->cpu_ok || seconds <= 0 || !database_cores(a, b, &part))
        return false;
    known += part.num / part.den;
    if (!load_cores(a, b, &part))
        return false;
    known += part.num / part.den;
    for (int who = 0; who < WB_WHOSE_COUNT; who++) {
        if (who == WB_OURS)
            continue;
        if (!process_cores(a, b, (enum wb_whose)who, &part))
            return false;
        known += part.num / part.den;
    }
    *r = (struct wb_ratio){(double)tasks / (double)wb_tick_hz() - known * seconds, seconds};
    return true;
}

static bool database_memory(const struct wb_reading *a, const struct wb_reading *b,
                            struct wb_ratio *r)
{
    (void)a;
    *r = (struct wb_ratio){(double)b->database.memory_bytes, 1};
    return b->database.ok;
}

static bool load_memory(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    (void)a;
    *r = (struct wb_ratio){(double)b->load.memory_bytes, 1};
    return b->load.ok;
}

/* Without a quota the kernel counts no periods: nothing was throttled. */
static bool throttled(const struct wb_group_sum *x, const struct wb_group_sum *y,
                      struct wb_ratio *r)
{
    *r = (struct wb_ratio){100 * positive(y->throttled - x->throttled),
                           positive(y->periods - x->periods)};
    if (r->den <= 0)
        *r = (struct wb_ratio){0, 1e-9};
    return x->ok && y->ok;
}

static bool database_throttled(const struct wb_reading *a, const struct wb_reading *b,
                               struct wb_ratio *r)
{
    return throttled(&a->database, &b->database, r);
}

static bool load_throttled(const struct wb_reading *a, const struct wb_reading *b,
                           struct wb_ratio *r)
{
    return throttled(&a->load, &b->load, r);
}

static bool per_second(const struct wb_reading *a, const struct wb_reading *b, bool ok,
                       int64_t more, struct wb_ratio *r)
{
    *r = (struct wb_ratio){positive(more), (double)(b->host_ns - a->host_ns) / 1e9};
    return ok && r->den > 0;
}

static bool net_rx(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return per_second(a, b, a->net_ok && b->net_ok, b->net.rx - a->net.rx, r);
}

static bool net_tx(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return per_second(a, b, a->net_ok && b->net_ok, b->net.tx - a->net.tx, r);
}

static bool loopback(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return per_second(a, b, a->net_ok && b->net_ok, b->net.loopback - a->net.loopback, r);
}

static bool swap_in(const struct wb_reading *a, const struct wb_reading *b, struct wb_ratio *r)
{
    return per_second(a, b, a->swap_ok && b->swap_ok, b->swap_in - a->swap_in, r);
}

const struct wb_column wb_columns[] = {
    {"host_busy_percent", busy_percent, false},
    {"steal_percent", steal_percent, false},
    {"iowait_percent", iowait_percent, false},
    {"foreign_cores", foreign_cores, true},
    {"kernel_cores", kernel_cores, true},
    {"agent_cores", agent_cores, true},
    {"unexplained_cores", unexplained_cores, true},
    {"database_cores", database_cores, false},
    {"database_memory_bytes", database_memory, false},
    {"database_throttled_percent", database_throttled, false},
    {"load_cores", load_cores, false},
    {"load_memory_bytes", load_memory, false},
    {"load_throttled_percent", load_throttled, false},
    {"net_rx_bytes_per_s", net_rx, false},
    {"net_tx_bytes_per_s", net_tx, false},
    {"loopback_bytes_per_s", loopback, false},
    {"swap_in_pages_per_s", swap_in, false},
};
const size_t wb_column_count = WB_LEN(wb_columns);
