#include "runners/load/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runners/load/merge.h"
#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define RESULT_MAX (16u << 20)

static const char closed_reason[] = "closed loop: an operation has no intended start; see service";

static double ms(int64_t ns)
{
    return (double)ns / WB_MS;
}

wb_json *wb_load_latency(const struct wb_hist *h, uint64_t censored)
{
    static const struct {
        const char *key;
        double p;
    } ps[] = {{"p50_ms", 50}, {"p90_ms", 90},     {"p95_ms", 95},
              {"p99_ms", 99}, {"p99_9_ms", 99.9}, {"p99_99_ms", 99.99}};
    wb_json *o = wb_json_object();

    wb_json_set_int(o, "count", (int64_t)h->total);
    wb_json_set_real(o, "min_ms", ms(h->min));
    wb_json_set_real(o, "mean_ms", wb_hist_mean(h) / WB_MS);
    for (size_t i = 0; i < WB_LEN(ps); i++)
        wb_json_set_real(o, ps[i].key, ms(wb_hist_percentile(h, ps[i].p)));
    wb_json_set_real(o, "max_ms", ms(h->max));
    wb_json_set_int(o, "censored", (int64_t)censored);
    if (h->over > 0)
        wb_json_set_int(o, "over_range", (int64_t)h->over);
    return o;
}

static void set_latency(wb_json *o, const char *key, const struct wb_hist *h, uint64_t censored,
                        const char *none)
{
    if (h->total == 0)
        wb_json_set_reason(o, key, none);
    else
        wb_json_set(o, key, wb_load_latency(h, censored));
}

wb_json *wb_load_operation(const struct wb_op_stats *s, bool open, bool step)
{
    wb_json *o = wb_json_object();

    wb_json_set_int(o, "count", (int64_t)s->ok);
    if (open && step)
        wb_json_set_reason(o, "response", "a step has no intended start: see transactions");
    else if (open)
        set_latency(o, "response", &s->response, s->censored, "none ended");
    else
        wb_json_set_reason(o, "response", closed_reason);
    set_latency(o, "service", &s->service, 0, "no operation succeeded");
    if (open)
        set_latency(o, "lag", &s->lag, 0, "no operation was written");
    else
        wb_json_set_reason(o, "lag", closed_reason);
    wb_json_set_int(o, "failed", (int64_t)s->failed);
    wb_json_set_int(o, "censored", (int64_t)s->censored);
    return o;
}

static wb_json *operations(const struct wb_load_outcome *o, enum wb_load_phase phase)
{
    wb_json *ops = wb_json_object();
    const struct wb_phase_stats *ph = &o->total.phase[phase];
    struct wb_phase_sum sum = wb_phase_total(&o->total, phase);
    struct wb_op_stats all = {.ok = sum.ok, .failed = sum.failed, .censored = sum.censored};
    bool open = o->job->model == WB_LOAD_OPEN;

    bool step = o->job->ntxn > 0;

    wb_load_merged(&o->total, phase, 0, &all.service);
    wb_load_merged(&o->total, phase, 1, &all.response);
    wb_load_merged(&o->total, phase, 2, &all.lag);
    wb_json_set(ops, "all", wb_load_operation(&all, open, step));
    for (int i = 0; i < o->nops; i++) {
        const struct wb_op_stats *s = &ph->op[i];
        if (s->issued > 0 || s->censored > 0)
            wb_json_set(ops, o->ops[i], wb_load_operation(s, open, step));
    }
    wb_hist_release(&all.service);
    wb_hist_release(&all.response);
    wb_hist_release(&all.lag);
    return ops;
}

static wb_json *time_text(int64_t unix_ms)
{
    struct wb_buf b = WB_BUF_INIT(64);
    wb_json *s;

    wb_format_time(unix_ms, &b);
    s = wb_json_str(wb_buf_str(&b));
    wb_buf_release(&b);
    return s;
}

static void add_ops(struct wb_op_stats *to, const struct wb_op_stats *s)
{
    to->ok += s->ok;
    to->failed += s->failed;
    to->censored += s->censored;
    wb_hist_add(&to->service, &s->service);
    wb_hist_add(&to->response, &s->response);
    wb_hist_add(&to->lag, &s->lag);
}

/* The same for transactions, with their own rates and counts. */
static void set_transactions(wb_json *r, const struct wb_load_outcome *o)
{
    const struct wb_phase_stats *ph = &o->total.phase[WB_PHASE_MEASURE];
    struct wb_phase_sum sum = wb_phase_transactions(&o->total, WB_PHASE_MEASURE);
    bool open = o->job->model == WB_LOAD_OPEN;
    struct wb_op_stats all = {0};
    wb_json *t;

    if (o->job->ntxn == 0 || o->window_ns <= 0) {
        wb_json_set_reason(r, "transactions",
                           o->job->ntxn ? "no measured window"
                                        : "the job has no composite transactions");
        return;
    }
    t = wb_json_object();
    if (open)
        wb_json_set_real(t, "offered_per_s", (double)o->txn_scheduled * 1e9 / (double)o->window_ns);
    else
        wb_json_set_reason(t, "offered_per_s", "closed loop");
    wb_json_set_real(t, "achieved_per_s", wb_load_units_per_s(o));
    wb_json_set_int(t, "scheduled", (int64_t)o->txn_scheduled);
    wb_json_set_int(t, "ok", (int64_t)sum.ok);
    wb_json_set_int(t, "failed", (int64_t)sum.failed);
    wb_json_set_int(t, "dropped", (int64_t)sum.dropped);
    wb_json_set_int(t, "censored", (int64_t)sum.censored);
    wb_hist_init_ns(&all.service);
    wb_hist_init_ns(&all.response);
    wb_hist_init_ns(&all.lag);
    for (int i = 0; i < o->job->ntxn; i++)
        add_ops(&all, &ph->txn[i]);
    wb_json_set(t, "all", wb_load_operation(&all, open, false));
    for (int i = 0; i < o->job->ntxn; i++)
        wb_json_set(t, o->job->txn[i].name, wb_load_operation(&ph->txn[i], open, false));
    wb_hist_release(&all.service);
    wb_hist_release(&all.response);
    wb_hist_release(&all.lag);
    wb_json_set(r, "transactions", t);
}

static void set_window(wb_json *r, const struct wb_load_outcome *o)
{
    wb_json *w;

    if (!o->measured || o->window_ns <= 0) {
        wb_json_set_reason(r, "window",
                           o->job->load_only ? "only data was loaded" : "ended before the window");
        return;
    }
    w = wb_json_object();
    wb_json_set(w, "start", time_text(o->window_unix_ms));
    wb_json_set_real(w, "seconds", (double)o->window_ns / 1e9);
    wb_json_set(r, "window", w);
}

/* When the schedule was to start and when it did, for the skew between several processes. */
static void set_start(wb_json *r, const struct wb_load_outcome *o)
{
    wb_json *s;

    if (o->start_unix_ms == 0) {
        wb_json_set_reason(r, "start", "the schedule did not begin");
        return;
    }
    s = wb_json_object();
    wb_json_set(s, "began", time_text(o->start_unix_ms));
    if (o->start_planned_unix_ms != 0) {
        wb_json_set(s, "planned", time_text(o->start_planned_unix_ms));
        wb_json_set_int(s, "skew_ms", o->start_unix_ms - o->start_planned_unix_ms);
    } else {
        wb_json_set_reason(s, "planned", "no common start was asked for");
        wb_json_set_reason(s, "skew_ms", "no common start was asked for");
    }
    wb_json_set(r, "start", s);
}

static void set_rates(wb_json *r, const struct wb_load_outcome *o)
{
    if (o->job->model == WB_LOAD_OPEN && o->job->ntxn > 0)
        wb_json_set_reason(r, "offered_per_s",
                           "transactions are offered: see transactions.offered_per_s");
    else if (o->job->model == WB_LOAD_OPEN && o->job->nsegments > 0 && o->window_ns > 0)
        wb_json_set_real(r, "offered_per_s", (double)o->scheduled * 1e9 / (double)o->window_ns);
    else if (o->job->model == WB_LOAD_OPEN)
        wb_json_set_real(r, "offered_per_s", o->job->rate_per_s / (double)o->job->parts);
    else
        wb_json_set_reason(r, "offered_per_s", "closed loop");
    if (o->window_ns > 0)
        wb_json_set_real(r, "achieved_per_s", wb_load_achieved(o));
    else
        wb_json_set_reason(r, "achieved_per_s", "no measured window");
}

static void set_counts(wb_json *r, const struct wb_load_outcome *o)
{
    const struct wb_phase_stats *ph = &o->total.phase[WB_PHASE_MEASURE];
    struct wb_phase_sum sum = wb_phase_total(&o->total, WB_PHASE_MEASURE);
    wb_json *errors = wb_json_object();

    wb_json_set_int(r, "misses", (int64_t)sum.misses);
    wb_json_set_int(r, "scheduled", (int64_t)o->scheduled);
    wb_json_set_int(r, "ok", (int64_t)sum.ok);
    wb_json_set_int(r, "failed", (int64_t)sum.failed);
    wb_json_set_int(r, "dropped", (int64_t)sum.dropped);
    wb_json_set_int(r, "censored", (int64_t)sum.censored);
    for (int i = WB_REPLY_FAILED; i < WB_REPLIES; i++)
        if (ph->errors[i] > 0)
            wb_json_set_int(errors, wb_reply_name((enum wb_reply)i), (int64_t)ph->errors[i]);
    wb_json_set(r, "errors", errors);
    wb_json_set_int(r, "verified", (int64_t)ph->verified);
    wb_json_set_int(r, "late_replies", (int64_t)ph->late);
    wb_json_set_int(r, "redirects", (int64_t)ph->redirects);
    wb_json_set_int(r, "waited_for_slot", (int64_t)ph->cap_waits);
    wb_json_set_int(r, "backlog_at_end", (int64_t)o->backlog_at_end);
}

static wb_json *error_samples(const struct wb_load_outcome *o)
{
    wb_json *list = wb_json_array();

    for (int i = 0; i < WB_ERROR_SAMPLES && o->sample[i].count > 0; i++) {
        wb_json *s = wb_json_object();
        wb_json_set_str(s, "text", o->sample[i].text);
        wb_json_set_int(s, "count", (int64_t)o->sample[i].count);
        wb_json_push(list, s);
    }
    return list;
}

static void set_client(wb_json *r, const struct wb_load_outcome *o)
{
    const struct wb_hist *lag = &o->total.phase[WB_PHASE_MEASURE].own_lag;
    struct rusage use;
    wb_json *c;

    if (!o->from.thread || !o->to.thread || o->window_ns <= 0) {
        wb_json_set_reason(r, "client", "no measured window");
        return;
    }
    c = wb_client_json(&o->from, &o->to, o->total.phase[WB_PHASE_MEASURE].done_in_window);
    if (o->job->model == WB_LOAD_OPEN && lag->total > 0)
        wb_json_set_real(c, "lag_p99_ms", ms(wb_hist_percentile(lag, 99)));
    else
        wb_json_set_reason(c, "lag_p99_ms",
                           o->job->model == WB_LOAD_OPEN
                               ? "every operation waited for a free slot, none for the client"
                               : closed_reason);
    if (getrusage(RUSAGE_SELF, &use) == 0)
        wb_json_set_int(c, "memory_peak_bytes", use.ru_maxrss * 1024LL);
    /* Threads, the sums of all, and the values; arrivals that wait take none. */
    wb_json_set_int(c, "memory_bound_bytes",
                    o->job->threads * wb_worker_memory(o->job, o->nops) +
                        2 * wb_stats_memory(o->nops, o->job->ntxn) + WB_VALUE_POOL +
                        o->job->value_bytes);
    wb_json_set_int(c, "sends", (int64_t)o->sends);
    wb_json_set_int(c, "receives", (int64_t)o->receives);
    wb_json_set_int(c, "reconnects", (int64_t)o->total.reconnects);
    wb_json_set_int(c, "connect_failures", (int64_t)o->total.connect_failures);
    wb_json_set(r, "client", c);
}

static void set_data(wb_json *r, const struct wb_load_outcome *o)
{
    wb_json *d;

    if (!o->data.done) {
        wb_json_set_reason(r, "data", "no load phase was asked for");
        return;
    }
    d = wb_json_object();
    wb_json_set_int(d, "rows", (int64_t)o->data.rows);
    wb_json_set_int(d, "resumed", (int64_t)o->data.resumed);
    wb_json_set_real(d, "seconds", (double)o->data.ns / 1e9);
    wb_json_set_int(d, "checked", (int64_t)o->data.checked);
    wb_json_set_int(d, "mismatched", (int64_t)o->data.mismatched);
    wb_json_set(r, "data", d);
}

static void set_not_given(wb_json *r)
{
    wb_json_set_reason(r, "curve", "one fixed load, no sweep and no search");
    wb_json_set_reason(r, "sustained_per_s", "no search was asked for");
    wb_json_set_reason(r, "steady", "steadiness is not judged by this version of wb-load");
}

wb_json *wb_load_report(const struct wb_load_outcome *o, const char **verdict)
{
    wb_json *r = wb_json_object(), *reasons = NULL;
    double little = wb_load_little_ratio(o);

    *verdict = wb_load_verdict(o, &reasons);
    wb_json_set_str(r, "version", WB_VERSION);
    wb_json_set_int(r, "seed", o->job->seed);
    wb_json_set_str(r, "model", o->job->model == WB_LOAD_OPEN ? "open" : "closed");
    wb_json_set_str(r, "verdict", *verdict);
    wb_json_set(r, "reasons", reasons);
    set_window(r, o);
    set_start(r, o);
    set_rates(r, o);
    set_counts(r, o);
    wb_json_set(r, "operations", operations(o, WB_PHASE_MEASURE));
    set_latency(r, "failed_replies", &o->total.phase[WB_PHASE_MEASURE].failed, 0,
                "no operation failed");
    if (o->warm_up_ns > 0)
        wb_json_set(r, "warm_up", operations(o, WB_PHASE_WARM_UP));
    else
        wb_json_set_reason(r, "warm_up", "no warm-up was asked for");
    set_client(r, o);
    if (little >= 0)
        wb_json_set_real(r, "little_ratio", little);
    else
        wb_json_set_reason(r, "little_ratio", "only closed loops have one");
    set_data(r, o);
    set_transactions(r, o);
    set_not_given(r);
    wb_json_set(r, "error_samples", error_samples(o));
    if (o->job->part_text)
        wb_json_set(r, "histograms", wb_load_histograms(o));
    wb_json_set(r, "job", wb_load_job_json(o->job));
    if (o->protocol)
        wb_json_set(r, "protocol", wb_json_ref(o->protocol));
    return r;
}

static int write_all(int fd, const char *p, size_t n, struct wb_err *err)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0)
            return wb_fail_sys(err, errno, "writing the result");
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

int wb_load_report_write(const wb_json *result, const char *path, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(RESULT_MAX);
    wb_json *again = NULL;
    int rc;

    wb_json_pretty(result, &text);
    rc = wb_buf_check(&text, "result", err);
    if (rc == 0)
        rc = wb_json_parse(wb_buf_str(&text), text.len, &again, err);
    wb_json_free(again);
    if (rc == 0 && strcmp(path, "-") == 0)
        rc = write_all(STDOUT_FILENO, wb_buf_str(&text), text.len, err);
    else if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&text), text.len, 0644, err);
    wb_buf_release(&text);
    return rc;
}

wb_json *wb_load_report_schema(void)
{
    static const struct {
        const char *key, *types;
    } keys[] = {
        {"version", "string"},
        {"seed", "integer"},
        {"model", "string"},
        {"verdict", "string"},
        {"reasons", "array"},
        {"window", "object null"},
        {"start", "object null"},
        {"offered_per_s", "number null"},
        {"achieved_per_s", "number null"},
        {"misses", "integer"},
        {"scheduled", "integer"},
        {"ok", "integer"},
        {"failed", "integer"},
        {"dropped", "integer"},
        {"censored", "integer"},
        {"errors", "object"},
        {"operations", "object"},
        {"failed_replies", "object null"},
        {"warm_up", "object null"},
        {"client", "object null"},
        {"little_ratio", "number null"},
        {"data", "object null"},
        {"transactions", "object null"},
        {"curve", "array null"},
        {"sustained_per_s", "number null"},
        {"steady", "object null"},
        {"job", "object"},
    };
    wb_json *s = wb_json_object(), *props = wb_json_object(), *need = wb_json_array();

    for (size_t i = 0; i < WB_LEN(keys); i++) {
        wb_json *p = wb_json_object(), *types = wb_json_array();
        for (const char *t = keys[i].types; *t;) {
            size_t n = strcspn(t, " ");
            wb_json_push(types, wb_json_strn(t, n));
            t += n + (t[n] == ' ');
        }
        wb_json_set(p, "type", types);
        wb_json_set(props, keys[i].key, p);
        wb_json_push(need, wb_json_str(keys[i].key));
    }
    wb_json_set_str(s, "$schema", "https://json-schema.org/draft/2020-12/schema");
    wb_json_set_str(s, "title", "wb-load result");
    wb_json_set_str(s, "type", "object");
    wb_json_set(s, "properties", props);
    wb_json_set(s, "required", need);
    return s;
}
