#include "server/collect/plain.h"

#include <math.h>
#include <string.h>

#include "server/collect/columns.h"
#include "server/collect/evidence.h"
#include "server/study/study.h"

#define OFFSET_MS 10.0 /* between clocks: windows of hosts do not match */
#define OPERATIONS 1e6 /* of which the share of errors is told */
#define COUNTER_MAX ((int64_t)1 << 56)

/* Where the judge finds a figure, and what its entry is called. */
static const struct {
    const char *key;    /* of env */
    const char *column; /* of the window's samples, or */
    const char *thread; /* of the load's threads; both NULL: elsewhere */
    const char *evidence;
    bool mandatory;
} figures[] = {
    {"steal_percent", "steal_percent", NULL, "steal", true},
    {"foreign_cpu_cores", "foreign_cores", NULL, "foreign-cpu", true},
    {"client_cpu_percent", NULL, "cpu_percent", "load-cpu", true},
    {"run_queue_percent", NULL, "run_queue_percent", "load-run-queue", false},
    {"throttled_percent", "database_throttled_percent", NULL, "database-throttled", false},
    {"load_throttled_percent", "load_throttled_percent", NULL, "load-throttled", false},
    {"net_bytes_per_s", "net_tx_bytes_per_s", NULL, "network", false},
    {"errors", NULL, NULL, "errors", false},
    {"governor", NULL, NULL, "governor", false},
    {"cpu_canary_before_ns", NULL, NULL, "cpu-canary", false},
};

static bool is_given(const wb_json *env, const char *key)
{
    return wb_json_type(wb_json_get(env, key)) != WB_JSON_NULL;
}

static void set_mean(wb_json *samples, const char *column, double v)
{
    wb_json *o = wb_json_object();

    wb_json_set_real(o, "mean", v);
    wb_json_set(samples, column, o);
}

/* The figures in the form of a run's window. Owned. */
static wb_json *window_of(const wb_json *env)
{
    wb_json *w = wb_json_object(), *samples = wb_json_object(), *load = wb_json_object();
    wb_json *client = wb_json_object(), *threads = wb_json_array(), *thread = wb_json_object();

    for (size_t i = 0; i < WB_LEN(figures); i++) {
        double v = wb_json_real_or(env, figures[i].key, NAN);
        if (isnan(v))
            continue;
        if (figures[i].column)
            set_mean(samples, figures[i].column, v);
        else if (figures[i].thread)
            wb_json_set_real(thread, figures[i].thread, v);
    }
    if (is_given(env, "net_bytes_per_s"))
        set_mean(samples, "net_rx_bytes_per_s", 0);
    if (is_given(env, "cpus"))
        wb_json_set_real(samples, "cpus", wb_json_real_or(env, "cpus", NAN));
    wb_json_set_real(load, "scheduled", OPERATIONS);
    wb_json_set_real(load, "failed", OPERATIONS / 100 * wb_json_real_or(env, "errors", 0));
    wb_json_set_str(load, "verdict", "valid");
    wb_json_push(threads, thread);
    wb_json_set(client, "threads", threads);
    wb_json_set(load, "client", client);
    wb_json_set_str(w, "phase", "window");
    wb_json_set_str(w, "model", "open");
    wb_json_set(w, "samples", samples);
    wb_json_set(w, "load", load);
    if (is_given(env, "link_bytes_per_s"))
        wb_json_set_real(w, "link_bytes_per_s", wb_json_real_or(env, "link_bytes_per_s", NAN));
    return w;
}

static bool is_wanted(const wb_json *env, bool only_given, const char *evidence)
{
    for (size_t i = 0; i < WB_LEN(figures); i++)
        if (!strcmp(figures[i].evidence, evidence))
            return is_given(env, figures[i].key) || (figures[i].mandatory && !only_given);
    return false;
}

static enum wb_validity verdict_of(const wb_json *entry)
{
    const char *word = wb_json_str_or(entry, "verdict", "");

    if (!strcmp(wb_json_str_or(entry, "outcome", ""), "sut-error"))
        return WB_INVALID_RUN;
    for (int v = WB_VALID; v <= WB_UNVERIFIED; v++)
        if (!strcmp(word, wb_validity_name((enum wb_validity)v)))
            return (enum wb_validity)v;
    return WB_VALID; /* not applicable */
}

/* A run's judge looks at swapping sample by sample; here is one number for the whole window. */
static void judge_swap(struct wb_judge *j, const wb_json *env)
{
    double pages = wb_json_real_or(env, "swap_in_pages", NAN);
    struct wb_check c = {
        .name = "swap-in", .unit = "pages", .value = pages, .noisy = NAN, .worse = 0};

    if (isnan(pages))
        return;
    c.verdict = pages > 0 ? WB_INVALID_RUN : WB_VALID;
    wb_judge_add(j, &c, "%.0f pages swapped in%s", pages,
                 pages > 0 ? ": the host was short of memory" : "");
}

static void judge_clock(struct wb_judge *j, const wb_json *env)
{
    double offset = fabs(wb_json_real_or(env, "ntp_offset_ms", NAN));
    struct wb_check c = {
        .name = "clock-offset", .unit = "ms", .value = offset, .noisy = OFFSET_MS, .worse = NAN};

    if (isnan(offset))
        return;
    c.verdict = offset > OFFSET_MS ? WB_NOISY : WB_VALID;
    wb_judge_add(j, &c, "clocks of hosts differ by %.2f ms (noisy above %.0f ms)", offset,
                 OFFSET_MS);
}

enum wb_validity wb_plain_judge(const wb_json *env, bool only_given,
                                const struct wb_validity_limits *limits, wb_json *evidence)
{
    WB_AUTO_JSON wb_json *windows = wb_json_array();
    WB_AUTO_JSON wb_json *all = wb_json_array();
    WB_AUTO_JSON wb_json *canary = wb_json_object();
    const char *governor = wb_json_str_or(env, "governor", NULL);
    struct wb_judge j = {.evidence = evidence, .phase = "window", .worst = WB_VALID};

    wb_json_push(windows, window_of(env));
    wb_json_set_real(canary, "before_ns", wb_json_real_or(env, "cpu_canary_before_ns", NAN));
    wb_json_set_real(canary, "after_ns", wb_json_real_or(env, "cpu_canary_after_ns", NAN));
    (void)wb_validity_judge(windows, canary, governor,
                            wb_json_str_or(env, "governor_after", governor), limits, all);
    for (size_t i = 0; i < wb_json_len(all); i++) {
        const wb_json *entry = wb_json_at(all, i);
        if (!is_wanted(env, only_given, wb_json_str_or(entry, "name", "")))
            continue;
        wb_json_push(evidence, wb_json_ref(entry));
        j.worst = wb_validity_worse(j.worst, verdict_of(entry));
    }
    judge_swap(&j, env);
    judge_clock(&j, env);
    return j.worst;
}

/* ---- kernel text ---- */

static int read_cpu(const char *text, const char *which, struct wb_reading *out, struct wb_err *err)
{
    const struct wb_cpu_ticks *c = &out->cpu;
    const int64_t *all[] = {&c->user,   &c->nice, &c->system,  &c->idle,
                            &c->iowait, &c->irq,  &c->softirq, &c->steal};

    *out = (struct wb_reading){.cpu_ok = true};
    if (!wb_proc_cpu_parse(text, &out->cpu))
        return wb_fail(err, WB_INVALID,
                       "%s: is no text of /proc/stat (a line 'cpu' with 8 counters)", which);
    for (size_t i = 0; i < WB_LEN(all); i++)
        if (*all[i] < 0 || *all[i] > COUNTER_MAX)
            return wb_fail(err, WB_INVALID, "%s: counter %zu is out of range", which, i + 1);
    return 0;
}

static double share(const char *column, const struct wb_reading *a, const struct wb_reading *b)
{
    struct wb_ratio r;

    for (size_t i = 0; i < wb_column_count; i++)
        if (!strcmp(wb_columns[i].name, column))
            return wb_columns[i].figure(a, b, &r) ? r.num / r.den : NAN;
    return NAN;
}

int wb_plain_cpu(const char *before, const char *after, struct wb_plain_cpu *out,
                 struct wb_err *err)
{
    struct wb_reading a, b;

    if (read_cpu(before, "before", &a, err) < 0 || read_cpu(after, "after", &b, err) < 0)
        return -WB_INVALID;
    out->steal = share("steal_percent", &a, &b);
    out->iowait = share("iowait_percent", &a, &b);
    out->busy = share("host_busy_percent", &a, &b);
    if (isnan(out->busy) || b.cpu.user < a.cpu.user || b.cpu.system < a.cpu.system)
        return wb_fail(err, WB_INVALID,
                       "after: the counters do not go on from before: another boot, or the texts "
                       "are swapped");
    return 0;
}

struct cpu_stat {
    int64_t periods, throttled, throttled_us;
};

static struct cpu_stat read_cpu_stat(const char *text)
{
    int64_t ns = wb_cgroup_keyed(text, "throttled_time"); /* version 1 */
    int64_t us = wb_cgroup_keyed(text, "throttled_usec");
    int64_t throttled = wb_cgroup_keyed(text, "nr_throttled");

    us = us >= 0 ? us : ns >= 0 ? ns / 1000 : 0;
    return (struct cpu_stat){.periods = wb_cgroup_keyed(text, "nr_periods"),
                             .throttled = throttled < 0 ? 0 : throttled,
                             .throttled_us = us};
}

int wb_plain_throttling(const char *before, const char *after, struct wb_plain_throttling *out,
                        struct wb_err *err)
{
    struct cpu_stat a = read_cpu_stat(before), b = read_cpu_stat(after);
    const char *const texts[] = {before, after}, *const names[] = {"before", "after"};

    for (size_t i = 0; i < WB_LEN(texts); i++)
        if (wb_cgroup_keyed(texts[i], "usage_usec") < 0 &&
            wb_cgroup_keyed(texts[i], "nr_periods") < 0)
            return wb_fail(err, WB_INVALID,
                           "%s: is no text of cpu.stat (lines usage_usec or nr_periods)", names[i]);
    *out = (struct wb_plain_throttling){.percent = NAN};
    if (b.periods < 0 || (a.periods <= 0 && b.periods <= 0))
        return 0;
    a.periods = a.periods < 0 ? 0 : a.periods;
    if (b.periods < a.periods || b.throttled < a.throttled || b.throttled_us < a.throttled_us)
        return wb_fail(err, WB_INVALID,
                       "after: the counters do not go on from before: another group, or the texts "
                       "are swapped");
    out->limited = true;
    out->seconds = (double)(b.throttled_us - a.throttled_us) / 1e6;
    if (b.periods > a.periods)
        out->percent = 100 * (double)(b.throttled - a.throttled) / (double)(b.periods - a.periods);
    return 0;
}
