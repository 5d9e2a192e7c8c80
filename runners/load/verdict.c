#include "runners/load/verdict.h"

#include <string.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

/* Limits in the measured window. */
#define CPU_NOISY 80.0 /* % of the busiest load thread */
#define CPU_BOUND 95.0
#define THREADS_EVEN 0.8 /* mean over busiest: below, one thread is the limit */
#define LAG_LEAST_NS WB_MS
#define LAG_SHARE 0.1 /* of the response p50 */
#define RUN_QUEUE_NOISY 10.0
#define STEAL_NOISY 1.0
#define THROTTLED_NOISY 1.0
#define LINK_FULL 90.0 /* % of a link's speed; headers and gaps take the rest */
#define LITTLE_NOISY 0.95
#define LITTLE_BOUND 0.8
#define LITTLE_MOST 1.05
#define ERRORS_NOISY 0.0001
#define ERRORS_FAILED 0.01
#define REACHED 0.99 /* of the offered rate */
#define SKEW_MS 10

enum rank { VALID, NOISY, SERVER, NETWORK, CLIENT, ONE_THREAD, FAILED };
static const char *const words[] = {"valid",         "noisy",        "server-bound",
                                    "network-bound", "client-bound", "one-thread-bound",
                                    "failed"};

struct judge {
    const struct wb_load_outcome *o;
    struct wb_client_use use;
    struct wb_phase_sum sum;
    wb_json *reasons;
    enum rank worst;
};

static void reason(struct judge *j, enum rank rank, const char *code, wb_json *evidence,
                   const char *fmt, ...) WB_PRINTF(5, 6);

static void reason(struct judge *j, enum rank rank, const char *code, wb_json *evidence,
                   const char *fmt, ...)
{
    wb_json *r = wb_json_object();
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    wb_json_set_str(r, "code", code);
    wb_json_set_str(r, "text", text);
    wb_json_set(r, "evidence", evidence ? evidence : wb_json_null());
    wb_json_push(j->reasons, r);
    wb_auto_free(&text);
    if (rank > j->worst)
        j->worst = rank;
}

/* {name: value, limit: limit} */
static wb_json *figure(const char *name, double value, double limit)
{
    wb_json *e = wb_json_object();

    wb_json_set_real(e, name, value);
    wb_json_set_real(e, "limit", limit);
    return e;
}

void wb_load_merged(const struct wb_stats *s, enum wb_load_phase phase, int which,
                    struct wb_hist *out)
{
    wb_hist_init_ns(out);
    for (int i = 0; i < s->nops; i++) {
        const struct wb_op_stats *op = &s->phase[phase].op[i];
        if (which == 1 && s->ntxn > 0)
            break;
        if (which < 3)
            wb_hist_add(out, which == 0 ? &op->service : which == 1 ? &op->response : &op->lag);
    }
    for (int i = 0; i < s->ntxn && (which == 1 || which == 3); i++) {
        const struct wb_op_stats *txn = &s->phase[phase].txn[i];
        wb_hist_add(out, which == 1 ? &txn->response : &txn->service);
    }
}

double wb_load_achieved(const struct wb_load_outcome *o)
{
    return o->window_ns > 0 ? (double)o->total.phase[WB_PHASE_MEASURE].done_in_window * 1e9 /
                                  (double)o->window_ns
                            : 0;
}

static double done_in_window(const struct wb_load_outcome *o)
{
    const struct wb_phase_stats *ph = &o->total.phase[WB_PHASE_MEASURE];

    return (double)(o->total.ntxn > 0 ? ph->txn_done_in_window : ph->done_in_window);
}

static double scheduled(const struct wb_load_outcome *o)
{
    return (double)(o->total.ntxn > 0 ? o->txn_scheduled : o->scheduled);
}

double wb_load_units_per_s(const struct wb_load_outcome *o)
{
    return o->window_ns > 0 ? done_in_window(o) * 1e9 / (double)o->window_ns : 0;
}

static double mean_service_ns(const struct wb_load_outcome *o)
{
    struct wb_hist h;
    double mean;

    wb_load_merged(&o->total, WB_PHASE_MEASURE, o->total.ntxn > 0 ? 3 : 0, &h);
    mean = wb_hist_mean(&h);
    wb_hist_release(&h);
    return mean;
}

double wb_load_little_ratio(const struct wb_load_outcome *o)
{
    double in_flight = (double)o->job->connections * (double)o->job->depth;

    if (o->job->model != WB_LOAD_CLOSED || o->window_ns <= 0)
        return -1;
    if (done_in_window(o) == 0)
        return -1;
    return wb_load_units_per_s(o) * mean_service_ns(o) / 1e9 / in_flight;
}

static void judge_data(struct judge *j)
{
    const struct wb_load_rows *d = &j->o->data;

    if (d->state_error)
        reason(j, FAILED, "load-state", NULL, "%s", d->state_error);
    if (!d->done || j->o->end == WB_LOAD_INTERRUPTED)
        return;
    if (d->rows < d->wanted)
        reason(j, FAILED, "load-incomplete", figure("rows", (double)d->rows, (double)d->wanted),
               "only %llu of %llu rows could be written", (unsigned long long)d->rows,
               (unsigned long long)d->wanted);
    if (d->mismatched > 0)
        reason(j, FAILED, "load-mismatch", figure("mismatched", (double)d->mismatched, 0),
               "%llu of %llu rows read back are not what was written",
               (unsigned long long)d->mismatched, (unsigned long long)d->checked);
}

static void judge_errors(struct judge *j)
{
    const struct wb_load_outcome *o = j->o;
    double done = (double)(j->sum.ok + j->sum.failed);
    double share = done > 0 ? (double)j->sum.failed / done : 0;

    if (j->sum.ok == 0) {
        reason(j, FAILED, "no-success", NULL, "no operation succeeded");
    } else if (share > ERRORS_FAILED) {
        reason(j, FAILED, "errors", figure("error_share", share, ERRORS_FAILED),
               "%.2f %% of the operations failed, more than %.0f %%", 100 * share,
               100 * ERRORS_FAILED);
    } else if (share > ERRORS_NOISY) {
        reason(j, NOISY, "errors", figure("error_share", share, ERRORS_NOISY),
               "%.3f %% of the operations failed", 100 * share);
    }
    if (o->connections_down > 0)
        reason(j, (int64_t)o->connections_down == o->job->connections ? FAILED : NOISY,
               "connection-lost", figure("connections_down", (double)o->connections_down, 0),
               "%llu of %lld connections were down at the end of the window",
               (unsigned long long)o->connections_down, (long long)o->job->connections);
}

static void judge_cpu(struct judge *j)
{
    const struct wb_client_use *u = &j->use;
    const struct wb_load_job *job = j->o->job;
    bool one =
        job->threads > 1 ? u->mean_percent < THREADS_EVEN * u->busiest_percent : job->ncpu > 1;

    if (u->busiest_percent > CPU_BOUND)
        reason(j, one ? ONE_THREAD : CLIENT, one ? "one-thread-cpu" : "client-cpu",
               figure("busiest_thread_cpu_percent", u->busiest_percent, CPU_BOUND),
               one ? "one load thread used %.0f %% of a CPU: it was the limit, give more threads"
                   : "the load threads used %.0f %% of their CPUs: the client was the limit",
               u->busiest_percent);
    else if (u->busiest_percent > CPU_NOISY)
        reason(j, NOISY, "client-cpu",
               figure("busiest_thread_cpu_percent", u->busiest_percent, CPU_NOISY),
               "the busiest load thread used %.0f %% of a CPU: latencies contain its own queue",
               u->busiest_percent);
    if (u->run_queue_percent > RUN_QUEUE_NOISY)
        reason(j, NOISY, "run-queue",
               figure("run_queue_percent", u->run_queue_percent, RUN_QUEUE_NOISY),
               "a load thread waited %.0f %% of the time for its CPU", u->run_queue_percent);
}

static void judge_host(struct judge *j)
{
    const struct wb_client_use *u = &j->use;

    if (u->steal_percent > STEAL_NOISY)
        reason(j, NOISY, "steal", figure("steal_percent", u->steal_percent, STEAL_NOISY),
               "%.1f %% of the host's CPU time was stolen by its hypervisor", u->steal_percent);
    if (u->throttled_percent > THROTTLED_NOISY)
        reason(j, NOISY, "throttled",
               figure("throttled_percent", u->throttled_percent, THROTTLED_NOISY),
               "the load's control group was throttled in %.1f %% of its periods",
               u->throttled_percent);
    if (u->link_percent > LINK_FULL)
        reason(j, NETWORK, "network", figure("link_percent", u->link_percent, LINK_FULL),
               "the network link %s was %.0f %% full: it was the limit", u->link, u->link_percent);
}

/* Windows of several processes are merged: they must be the same time. */
static void judge_start(struct judge *j)
{
    const struct wb_load_outcome *o = j->o;
    int64_t skew = o->start_unix_ms - o->start_planned_unix_ms;

    if (o->start_planned_unix_ms == 0 || o->start_unix_ms == 0 ||
        (skew <= SKEW_MS && skew >= -SKEW_MS))
        return;
    reason(j, NOISY, "start-skew", figure("skew_ms", (double)skew, SKEW_MS),
           "the load began %lld ms %s its common start", (long long)(skew < 0 ? -skew : skew),
           skew < 0 ? "before" : "after");
}

/* Why the load threads could not do their work in time. */
enum cause {
    CAUSE_HOST,  /* others took the CPU */
    CAUSE_QUOTA, /* the quota of the own control group */
    CAUSE_OWN,   /* they were busy */
    CAUSE_NONE   /* none of it can be seen */
};

static enum cause cause_of(const struct judge *j)
{
    const struct wb_client_use *u = &j->use;

    if (u->run_queue_percent > RUN_QUEUE_NOISY || u->steal_percent > STEAL_NOISY)
        return CAUSE_HOST;
    if (u->throttled_percent > THROTTLED_NOISY)
        return CAUSE_QUOTA;
    return u->busiest_percent > CPU_NOISY ? CAUSE_OWN : CAUSE_NONE;
}

static void judge_lag(struct judge *j)
{
    static const char *const because[] = {
        [CAUSE_HOST] = "others had its CPU",
        [CAUSE_QUOTA] = "the CPU quota of its own control group held it back",
        [CAUSE_OWN] = "its threads were too busy",
        [CAUSE_NONE] = "what held it back cannot be seen",
    };
    const struct wb_load_outcome *o = j->o;
    const struct wb_hist *lag = &o->total.phase[WB_PHASE_MEASURE].own_lag;
    enum cause cause = cause_of(j);
    struct wb_hist response;
    int64_t p99 = wb_hist_percentile(lag, 99), limit = LAG_LEAST_NS;
    double share;

    if (o->job->model != WB_LOAD_OPEN || lag->total == 0)
        return;
    wb_load_merged(&o->total, WB_PHASE_MEASURE, 1, &response);
    share = LAG_SHARE * (double)wb_hist_percentile(&response, 50);
    wb_hist_release(&response);
    if (share > (double)limit)
        limit = (int64_t)share;
    if (p99 > limit)
        reason(j, cause == CAUSE_OWN || cause == CAUSE_QUOTA ? CLIENT : NOISY, "schedule-lag",
               figure("lag_p99_ms", (double)p99 / WB_MS, (double)limit / WB_MS),
               "the client sent 1 %% of the operations more than %.2f ms late: %s",
               (double)p99 / WB_MS, because[cause]);
}

/* Successes that may be missing at the end of the window: still in flight then. */
static double in_flight_at_end(const struct wb_load_outcome *o)
{
    return scheduled(o) * mean_service_ns(o) / (double)o->window_ns;
}

bool wb_load_served(const struct wb_load_outcome *o)
{
    return o->window_ns > 0 &&
           (scheduled(o) == 0 || done_in_window(o) >= REACHED * scheduled(o) - in_flight_at_end(o));
}

/* Open loop: what was offered and not served. Who held it back: the database when slots were full
 * or requests unanswered, else the client or what disturbed it. */
static void judge_rate(struct judge *j)
{
    const struct wb_load_outcome *o = j->o;
    const struct wb_phase_stats *ph = &o->total.phase[WB_PHASE_MEASURE];
    double seconds = (double)o->window_ns / 1e9, offered = scheduled(o) / seconds;
    double served = wb_load_units_per_s(o);
    struct wb_phase_sum txns = wb_phase_transactions(&o->total, WB_PHASE_MEASURE);
    bool capped = ph->cap_waits > 0 || j->sum.censored + txns.censored > 0 ||
                  j->sum.dropped + txns.dropped > 0;
    wb_json *evidence;

    if (wb_load_served(o))
        return;
    evidence = figure("achieved_per_s", served, offered);
    wb_json_set_int(evidence, "backlog_at_end", (int64_t)o->backlog_at_end);
    wb_json_set_int(evidence, "waited_for_slot", (int64_t)ph->cap_waits);
    if (!capped)
        reason(j, cause_of(j) == CAUSE_HOST ? NOISY : CLIENT, "rate-not-reached", evidence,
               "offered %.0f/s, served %.0f/s: %s", offered, served,
               cause_of(j) == CAUSE_HOST ? "others had the client's CPU"
                                         : "the client did not send more");
    else if (o->backlog_at_end > 0)
        reason(j, SERVER, "server-bound", evidence,
               "offered %.0f/s, served %.0f/s: the backlog grew by %.0f/s to %llu operations; the "
               "response time has no bound",
               offered, served, (double)o->backlog_at_end / seconds,
               (unsigned long long)o->backlog_at_end);
    else
        reason(j, SERVER, "server-bound", evidence,
               "offered %.0f/s, served %.0f/s: the others failed, were dropped or had no answer "
               "at the end",
               offered, served);
}

static void judge_closed(struct judge *j)
{
    double ratio = wb_load_little_ratio(j->o);

    if (ratio >= 0 && ratio < LITTLE_BOUND)
        reason(j, CLIENT, "little", figure("little_ratio", ratio, LITTLE_BOUND),
               "connections were idle %.0f %% of the time: the client did not keep them busy",
               100 * (1 - ratio));
    else if (ratio >= 0 && (ratio < LITTLE_NOISY || ratio > LITTLE_MOST))
        reason(j, NOISY, "little", figure("little_ratio", ratio, LITTLE_NOISY),
               "throughput x latency is %.2f of the operations in flight", ratio);
    if (j->worst <= NOISY && j->use.busiest_percent <= CPU_NOISY) {
        enum rank kept = j->worst;
        reason(j, SERVER, "server-bound",
               figure("busiest_thread_cpu_percent", j->use.busiest_percent, CPU_NOISY),
               "the database was the limit: the busiest load thread used %.0f %% of a CPU",
               j->use.busiest_percent);
        if (kept == NOISY) /* the limit is known, but the figure is not quiet */
            j->worst = NOISY;
    }
}

static enum rank rank_of(const char *word)
{
    for (int r = VALID; r < FAILED; r++)
        if (strcmp(words[r], word) == 0)
            return (enum rank)r;
    return FAILED;
}

const char *wb_load_worse(const char *a, const char *b)
{
    return words[rank_of(a) > rank_of(b) ? rank_of(a) : rank_of(b)];
}

const char *wb_load_verdict(const struct wb_load_outcome *o, wb_json **reasons)
{
    struct judge j = {.o = o, .reasons = wb_json_array(), .worst = VALID};

    if (o->end == WB_LOAD_NO_CONNECTION)
        reason(&j, FAILED, "no-connection", NULL, "%s", o->end_text);
    else if (o->end == WB_LOAD_INTERRUPTED)
        reason(&j, FAILED, "interrupted", NULL, "%s", o->end_text);
    else if (o->end == WB_LOAD_BROKEN)
        reason(&j, FAILED, "internal", NULL, "%s", o->end_text);
    judge_data(&j);
    if (o->measured && o->window_ns > 0) {
        j.sum = wb_phase_total(&o->total, WB_PHASE_MEASURE);
        j.use = wb_client_between(&o->from, &o->to);
        judge_errors(&j);
        judge_cpu(&j);
        judge_host(&j);
        judge_lag(&j);
        judge_start(&j);
        if (o->job->model == WB_LOAD_OPEN)
            judge_rate(&j);
        else
            judge_closed(&j);
    }
    *reasons = j.reasons;
    return words[j.worst];
}
