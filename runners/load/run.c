#include "runners/load/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runners/load/load_state.h"
#include "runners/load/tls.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define SAMPLE_ROWS 1000        /* most rows that are read back after loading */
#define START_DELAY (5 * WB_MS) /* so that all threads are waiting when the clock starts */
#define HANG_LIMIT (5 * WB_SEC) /* a stage may end this much later than it should */
#define POLL_MOST (500 * WB_MS)

struct control {
    const struct wb_load_job *job;
    const struct wb_cancel *cancel;
    const struct wb_load_watch *watch;
    struct wb_load_plan plan;
    struct wb_worker *worker;
    int nworkers; /* started */
    struct wb_load_outcome *out;
    struct wb_client client;
    struct wb_stats interval;

    int64_t log_start; /* ns monotonic: what interval times count from */
    int64_t stage_start, warm_end, window_end;
    uint64_t mark;       /* last interval reported in this stage */
    int64_t reported_to; /* its end */
    int64_t reported_at; /* the boundary it was for */
    uint64_t *seen;      /* last mark of each worker */
    uint64_t *in_flight, *backlog;
    uint64_t *written;         /* loading: own rows of each worker below this key */
    int64_t mark_at, taken_at; /* latest boundary and time among the snapshots merged */
    uint64_t scheduled;
    int64_t wall_ms, wall_at;       /* a reading of both clocks after the start; 0: none yet */
    bool edges, edge_from, edge_to; /* the window's edges: wanted, sampled */
    bool stopped;
};

/* Every thread meets keys of all addresses, so it needs a connection to each of them. */
static int check_split(const struct wb_load_plan *p, struct wb_err *err)
{
    const struct wb_load_job *job = p->job;
    const struct wb_target *target = &p->target;
    long long need = (long long)target->n * (long long)job->threads;

    if (!wb_shards_wanted(p) || job->connections >= need)
        return 0;
    return wb_fail(err, WB_INVALID,
                   "connections: %lld are too few to split the keys over %zu addresses with %lld "
                   "thread%s; each thread needs one to each address: %lld or more",
                   (long long)job->connections, target->n, (long long)job->threads,
                   job->threads == 1 ? "" : "s", need);
}

static int tls_setup(struct wb_load_plan *p, struct wb_err *err)
{
    const struct wb_load_job *job = p->job;
    const struct wb_protocol *proto = p->target.protocol;

    if (!job->tls && job->tls_cert)
        return wb_fail(err, WB_INVALID, "tls-cert: there is no --tls");
    if (!job->tls)
        return 0;
    if (proto->no_socket)
        return wb_fail(err, WB_INVALID, "tls: %s connections have none", proto->name);
    return wb_tls_new(job->tls, job->tls_cert, &p->tls, err);
}

static int plan_setup(struct control *c, struct wb_err *err)
{
    const struct wb_load_job *job = c->job;
    struct wb_load_plan *p = &c->plan;
    const struct wb_protocol *proto;
    uint64_t keys = (uint64_t)job->keys, parts = (uint64_t)job->parts, part = (uint64_t)job->part;
    uint64_t rows;
    int rc = wb_target_parse(job->target, &p->target, err);

    if (rc < 0)
        return rc;
    proto = p->target.protocol;
    p->job = p->data.job = job;
    rc = wb_txn_plan_init(&p->txn, job->txn, job->ntxn, (uint64_t)job->seed, proto, err);
    if (rc < 0)
        return rc;
    rc = wb_mix_init(&p->mix, job, proto, err);
    if (rc < 0)
        return rc;
    while (proto->ops[p->nops])
        p->nops++;
    wb_keys_init(&p->data.keys, job);
    wb_values_init(&p->data.values, job);
    p->schedule = (struct wb_schedule){.rate_per_s = job->rate_per_s,
                                       .poisson = job->arrivals == WB_LOAD_POISSON,
                                       .seed = wb_mix64((uint64_t)job->seed, 'a'),
                                       .stride = (uint32_t)(job->threads * job->parts)};
    if (job->nsegments > 0)
        wb_schedule_profile(&p->schedule, job->segment, job->nsegments, job->warm_up_ns,
                            job->for_ns);
    p->rows_from = (uint64_t)((unsigned __int128)keys * part / parts);
    p->rows_to = (uint64_t)((unsigned __int128)keys * (part + 1) / parts);
    rows = p->rows_to - p->rows_from;
    p->sample = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS;
    p->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->news_fd < 0)
        return wb_fail_sys(err, errno, "making an eventfd");
    rc = tls_setup(p, err);
    p->data.tls = p->tls;
    if (rc == 0)
        rc = proto->setup(&p->data, &p->context, err);
    if (rc == 0 && proto->prepare)
        rc = proto->prepare(p->context, &p->target, c->cancel, err);
    return rc < 0 ? rc : check_split(p, err);
}

static int start_workers(struct control *c, struct wb_err *err)
{
    sigset_t all, old;
    int rc = 0;

    c->worker = wb_calloc((size_t)c->job->threads, sizeof(*c->worker));
    c->seen = wb_calloc((size_t)c->job->threads, sizeof(*c->seen));
    c->in_flight = wb_calloc((size_t)c->job->threads, sizeof(*c->in_flight));
    c->backlog = wb_calloc((size_t)c->job->threads, sizeof(*c->backlog));
    c->written = wb_calloc((size_t)c->job->threads, sizeof(*c->written));
    if (c->job->load && c->job->load_state) {
        rc = wb_load_state_read(c->job, c->written, err);
        if (rc < 0)
            return rc;
    }
    /* Signals are the control thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    while (c->nworkers < c->job->threads && rc == 0) {
        rc = wb_worker_start(&c->worker[c->nworkers], &c->plan, c->nworkers, err);
        c->worker[c->nworkers].rows_from = c->written[c->nworkers];
        c->nworkers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

/* --- statistics --- */

static void merge(struct control *c, int i, struct wb_stats *s, const struct wb_snapshot *snap)
{
    wb_stats_add(&c->out->total, s);
    wb_stats_add(&c->interval, s);
    wb_stats_clear(s);
    c->seen[i] = snap->mark;
    c->in_flight[i] = snap->in_flight;
    c->backlog[i] = snap->backlog;
    c->written[i] = snap->rows_to;
    c->scheduled += snap->scheduled;
    c->mark_at = snap->mark_at > c->mark_at ? snap->mark_at : c->mark_at;
    c->taken_at = snap->at > c->taken_at ? snap->at : c->taken_at;
}

static const char *phase_name(const struct control *c, enum wb_stage stage, int64_t at)
{
    if (stage != WB_STAGE_RUN)
        return "load";
    if (at <= c->warm_end && c->warm_end > c->stage_start)
        return "warm-up";
    return at <= c->window_end ? "measure" : "drain";
}

/* What the schedule offers this process from the end of the last interval to now. */
static double offered(const struct control *c, const struct wb_load_interval *i)
{
    const struct wb_schedule *s = &c->plan.schedule;
    int64_t from = c->reported_to - c->stage_start, to = c->taken_at - c->stage_start;
    int64_t end = c->window_end - c->stage_start;

    if (c->job->model != WB_LOAD_OPEN || strcmp(i->phase, "load") == 0 || to <= from || from >= end)
        return 0;
    to = to > end ? end : to;
    return (wb_schedule_gaps(s, to) - wb_schedule_gaps(s, from)) * 1e9 / (double)(to - from) /
           (double)c->job->parts;
}

/* How far loading came. A file that cannot be written is told at the end. */
static void keep_state(struct control *c)
{
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];

    if (c->job->load_state && !c->out->data.state_error &&
        wb_load_state_write(c->job, c->written, &err) < 0)
        c->out->data.state_error = wb_strdup(wb_err_text(&err, text, sizeof(text)));
}

static void report(struct control *c, enum wb_stage stage, int64_t at)
{
    const char *phase = phase_name(c, stage, at);
    struct wb_load_interval i = {.since_start = c->taken_at - c->log_start,
                                 .length = c->taken_at - c->reported_to,
                                 .phase = phase,
                                 .scheduled = c->scheduled,
                                 .stats = &c->interval};

    for (int k = 0; k < c->nworkers; k++) {
        i.in_flight += c->in_flight[k];
        i.backlog += c->backlog[k];
    }
    if (stage == WB_STAGE_LOAD)
        keep_state(c);
    i.offered_per_s = offered(c, &i);
    if (strcmp(phase, "measure") == 0) {
        c->out->sends += c->interval.sends;
        c->out->receives += c->interval.receives;
    }
    c->watch->interval(c->watch->ctx, &i);
    wb_stats_clear(&c->interval);
    c->scheduled = 0;
    c->reported_to = c->taken_at;
}

/* Takes over full statistics; reports an interval once every thread has passed its end. */
static void collect(struct control *c, enum wb_stage stage)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < c->nworkers; i++) {
        struct wb_worker *w = &c->worker[i];
        if (atomic_load_explicit(&w->handed, memory_order_acquire) == 1) {
            merge(c, i, w->spare, &w->snap);
            atomic_store_explicit(&w->handed, 0, memory_order_release);
        }
        least = c->seen[i] < least ? c->seen[i] : least;
    }
    if (least > c->mark) {
        report(c, stage, c->mark_at);
        c->mark = least;
        c->reported_at = c->mark_at;
    }
}

static bool anything(const struct wb_stats *s)
{
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_sum sum = wb_phase_total(s, (enum wb_load_phase)p);
        if (sum.ok || sum.failed || sum.dropped || sum.censored)
            return true;
    }
    return false;
}

/* What the workers had not handed over when they ended the stage. */
static void collect_last(struct control *c, enum wb_stage stage)
{
    int64_t at;

    collect(c, stage);
    for (int i = 0; i < c->nworkers; i++)
        merge(c, i, c->worker[i].cur, &c->worker[i].last);
    /* An interval of the window that was not reported yet is more than a drain. */
    at = c->reported_at < c->window_end ? c->window_end : c->taken_at;
    if (stage != WB_STAGE_CONNECT && anything(&c->interval))
        report(c, stage, at);
    wb_stats_clear(&c->interval);
}

/* --- stages --- */

static bool all_idle(const struct control *c)
{
    for (int i = 0; i < c->nworkers; i++)
        if (!atomic_load_explicit(&c->worker[i].idle, memory_order_acquire))
            return false;
    return true;
}

static void read_client(struct control *c, struct wb_client_sample *s)
{
    struct wb_client_thread *t = wb_calloc((size_t)c->nworkers, sizeof(*t));

    for (int i = 0; i < c->nworkers; i++)
        t[i] = (struct wb_client_thread){.thread = c->worker[i].thread,
                                         .tid = atomic_load(&c->worker[i].tid)};
    wb_client_sample_release(s);
    wb_client_read(&c->client, t, c->nworkers, s);
    free(t);
}

static void sample_edges(struct control *c, int64_t now)
{
    if (!c->edges)
        return;
    if (c->wall_at == 0 && now >= c->stage_start) {
        c->wall_ms = wb_now_unix_ms(NULL);
        c->wall_at = wb_now_ns(NULL);
    }
    if (!c->edge_from && now >= c->warm_end) {
        read_client(c, &c->out->from);
        c->edge_from = true;
    }
    if (!c->edge_to && now >= c->window_end) {
        read_client(c, &c->out->to);
        c->edge_to = true;
    }
}

static void stop_workers(struct control *c, int64_t now)
{
    c->stopped = true;
    c->window_end = now < c->window_end ? now : c->window_end;
    c->warm_end = c->warm_end > c->window_end ? c->window_end : c->warm_end;
    for (int i = 0; i < c->nworkers; i++)
        wb_worker_stop(&c->worker[i], now);
}

static int64_t until_next_edge(const struct control *c, int64_t now)
{
    int64_t wait = POLL_MOST, at = c->edge_from ? c->window_end : c->warm_end;

    if (c->edges && !c->edge_to && at - now < wait)
        wait = at - now > 0 ? at - now : 0;
    return wait;
}

/* Leads all workers through one stage. hang_at: when it must be over at the latest. */
static int run_stage(struct control *c, enum wb_stage stage, int64_t hang_at)
{
    struct pollfd fds[2] = {{.fd = c->plan.news_fd, .events = POLLIN},
                            {.fd = wb_cancel_fd(c->cancel), .events = POLLIN}};
    const struct wb_protocol *proto = c->plan.target.protocol;

    c->mark = 0;
    c->mark_at = c->stage_start;
    c->reported_to = c->reported_at = c->taken_at = c->stage_start;
    memset(c->seen, 0, (size_t)c->nworkers * sizeof(*c->seen));
    for (int i = 0; i < c->nworkers; i++)
        wb_worker_begin(&c->worker[i], stage);
    while (!all_idle(c)) {
        int64_t now = wb_now_ns(NULL), wait = until_next_edge(c, now);
        struct timespec ts = {.tv_sec = wait / WB_SEC, .tv_nsec = wait % WB_SEC};
        uint64_t count;
        fds[1].fd = c->stopped ? -1 : wb_cancel_fd(c->cancel);
        if (ppoll(fds, 2, &ts, NULL) > 0 && (fds[0].revents & POLLIN) &&
            read(c->plan.news_fd, &count, sizeof(count)) < 0)
            continue;
        now = wb_now_ns(NULL);
        if (wb_cancelled(c->cancel) && !c->stopped)
            stop_workers(c, now);
        sample_edges(c, now);
        collect(c, stage);
        if (proto->refresh && !c->stopped)
            proto->refresh(c->plan.context, c->cancel);
        if (now > hang_at) {
            c->out->end = WB_LOAD_BROKEN;
            c->out->end_text = wb_strf("a load thread did not end its work within %lld s after "
                                       "it should have; what it had not handed over is missing",
                                       HANG_LIMIT / WB_SEC);
            return -1;
        }
    }
    if (c->edges) { /* a run limited by operations, or stopped, ends where its last thread ends */
        if (c->window_end == INT64_MAX) {
            c->window_end = c->warm_end;
            for (int i = 0; i < c->nworkers; i++)
                if (c->worker[i].last.at > c->window_end)
                    c->window_end = c->worker[i].last.at;
        }
        sample_edges(c, INT64_MAX);
    }
    collect_last(c, stage);
    return 0;
}

static int connect_all(struct control *c)
{
    const struct wb_conn *bad = NULL;
    const char *refusal = NULL;
    int64_t up = 0;

    c->stage_start = wb_now_ns(NULL);
    if (run_stage(c, WB_STAGE_CONNECT, INT64_MAX) < 0)
        return -1;
    for (int i = 0; i < c->nworkers; i++) {
        for (size_t k = 0; k < c->worker[i].nconns; k++) {
            const struct wb_conn *conn = &c->worker[i].conns[k];
            up += conn->state == WB_CONN_UP;
            if (conn->state != WB_CONN_UP && (!bad || conn->last_errno))
                bad = conn;
        }
        if (c->worker[i].refusal[0])
            refusal = c->worker[i].refusal;
    }
    if (bad && !c->stopped) {
        struct wb_err err = WB_ERR_INIT;
        char text[2 * WB_ERR_TEXT_MAX];
        (void)wb_fail_sys(&err, bad->last_errno ? bad->last_errno : ETIMEDOUT, "connecting to %s",
                          wb_target_addr(&c->plan.target, bad->target)->name);
        c->out->end = WB_LOAD_NO_CONNECTION;
        c->out->end_text =
            wb_strf("%s%s%s (%lld of %lld connections were made)",
                    wb_err_text(&err, text, sizeof(text)), refusal ? ": " : "",
                    refusal ? refusal : "", (long long)up, (long long)c->job->connections);
        return -1;
    }
    return 0;
}

/* Rows that earlier runs have written, by the state file. */
static uint64_t rows_before(const struct control *c)
{
    uint64_t rows = c->plan.rows_to - c->plan.rows_from, n = 0;
    uint64_t threads = (uint64_t)c->job->threads;

    for (uint64_t i = 0; i < threads; i++) {
        uint64_t from = c->plan.rows_from + (uint64_t)((unsigned __int128)rows * i / threads);
        uint64_t to = c->plan.rows_from + (uint64_t)((unsigned __int128)rows * (i + 1) / threads);
        uint64_t at = c->worker[i].rows_from < to ? c->worker[i].rows_from : to;
        n += at > from ? at - from : 0;
    }
    return n;
}

static int load_rows(struct control *c)
{
    struct wb_load_rows *d = &c->out->data;
    struct wb_phase_sum sum;

    d->done = true;
    d->wanted = c->plan.rows_to - c->plan.rows_from;
    d->resumed = rows_before(c);
    c->stage_start = wb_now_ns(NULL);
    if (run_stage(c, WB_STAGE_LOAD, INT64_MAX) < 0)
        return -1;
    keep_state(c);
    d->ns = wb_now_ns(NULL) - c->stage_start;
    sum = wb_phase_total(&c->out->total, WB_PHASE_LOAD);
    d->rows = sum.ok + d->resumed;
    if (c->stopped || d->rows < d->wanted)
        return -1;
    c->stage_start = wb_now_ns(NULL);
    if (run_stage(c, WB_STAGE_CHECK, INT64_MAX) < 0)
        return -1;
    sum = wb_phase_total(&c->out->total, WB_PHASE_CHECK);
    d->checked = sum.ok + sum.failed;
    d->mismatched = c->out->total.phase[WB_PHASE_CHECK].errors[WB_REPLY_MISMATCH];
    return c->stopped || d->mismatched > 0 || d->checked < c->plan.sample ? -1 : 0;
}

/* Start of the schedule: now, or the common start of several load hosts. */
static int64_t start_time(const struct control *c)
{
    int64_t now = wb_now_ns(NULL), ahead;

    if (c->job->start_unix_ms == 0)
        return now + START_DELAY;
    ahead = (c->job->start_unix_ms - wb_now_unix_ms(NULL)) * WB_MS;
    return now + (ahead > START_DELAY ? ahead : START_DELAY);
}

/* What was scheduled, told without the counters of what became of it. */
static void count_scheduled(struct control *c)
{
    struct wb_load_outcome *o = c->out;
    uint64_t issued = wb_phase_total(&o->total, WB_PHASE_MEASURE).issued;
    uint64_t begun = wb_phase_transactions(&o->total, WB_PHASE_MEASURE).issued, due = 0;

    for (int i = 0; i < c->nworkers; i++) {
        const struct wb_worker *w = &c->worker[i];
        due += w->due_total - w->due_warm_up;
        o->backlog_at_end += w->backlog_at_end;
        o->connections_down += w->down_at_end;
    }
    if (c->job->ntxn > 0) {
        o->txn_scheduled = c->job->model == WB_LOAD_OPEN ? due : begun;
        o->scheduled = issued;
    } else {
        o->scheduled = c->job->model == WB_LOAD_OPEN ? due : issued;
    }
}

/* Whether everything that was scheduled ended in one way. */
static void check_sums(struct control *c, const char *what, uint64_t scheduled,
                       const struct wb_phase_sum *sum)
{
    struct wb_load_outcome *o = c->out;

    if (scheduled == sum->ok + sum->failed + sum->dropped + sum->censored || o->end_text)
        return;
    o->end = WB_LOAD_BROKEN;
    o->end_text = wb_strf("%s: scheduled %llu is not ok %llu + failed %llu + dropped %llu + "
                          "censored %llu",
                          what, (unsigned long long)scheduled, (unsigned long long)sum->ok,
                          (unsigned long long)sum->failed, (unsigned long long)sum->dropped,
                          (unsigned long long)sum->censored);
}

/* When the last thread began its schedule, by the wall clock as it is after the start: a clock that
 * was set while waiting for a common start shows. */
static void take_start(struct control *c)
{
    int64_t begun = c->stage_start;

    c->out->start_planned_unix_ms = c->job->start_unix_ms;
    if (c->wall_at == 0)
        return;
    for (int i = 0; i < c->nworkers; i++)
        if (c->worker[i].begun_at > begun)
            begun = c->worker[i].begun_at;
    c->out->start_unix_ms = c->wall_ms - (c->wall_at - begun) / WB_MS;
}

/* A thread was lost: the figures of the others, and what this one had handed over. It may still
 * touch its own counters, so nothing is taken from them. */
static void keep_what_there_is(struct control *c)
{
    struct wb_load_outcome *o = c->out;
    struct wb_phase_sum sum = wb_phase_total(&o->total, WB_PHASE_MEASURE);

    sample_edges(c, INT64_MAX);
    o->warm_up_ns = c->warm_end - c->stage_start;
    o->window_ns = c->window_end > c->warm_end ? c->window_end - c->warm_end : 0;
    o->scheduled = sum.ok + sum.failed + sum.dropped + sum.censored;
    sum = wb_phase_transactions(&o->total, WB_PHASE_MEASURE);
    o->txn_scheduled = sum.ok + sum.failed + sum.dropped + sum.censored;
    for (int i = 0; i < c->nworkers; i++)
        o->backlog_at_end += c->backlog[i];
}

static void measure(struct control *c)
{
    const struct wb_load_job *job = c->job;
    struct wb_load_outcome *o = c->out;
    int64_t start = start_time(c), end, hang = INT64_MAX;
    struct wb_phase_sum sum;

    c->stage_start = start;
    c->warm_end = start + job->warm_up_ns;
    end = c->warm_end + job->for_ns;
    if (job->ops > 0)
        end = job->model == WB_LOAD_OPEN
                  ? c->warm_end + (int64_t)((double)job->ops * 1e9 / job->rate_per_s)
                  : INT64_MAX;
    c->window_end = end;
    if (end != INT64_MAX)
        hang = end + job->timeout_ns + HANG_LIMIT;
    c->edges = true;
    for (int i = 0; i < c->nworkers; i++) {
        c->worker[i].start = start;
        c->worker[i].warm_end = c->warm_end;
    }
    o->measured = true;
    o->window_unix_ms = wb_now_unix_ms(NULL) + (c->warm_end - wb_now_ns(NULL)) / WB_MS;
    if (run_stage(c, WB_STAGE_RUN, hang) < 0) {
        keep_what_there_is(c);
        return;
    }
    o->warm_up_ns = c->warm_end - start;
    o->window_ns = c->window_end > c->warm_end ? c->window_end - c->warm_end : 0;
    take_start(c);
    count_scheduled(c);
    sum = wb_phase_total(&o->total, WB_PHASE_MEASURE);
    check_sums(c, "operations", o->scheduled, &sum);
    sum = wb_phase_transactions(&o->total, WB_PHASE_MEASURE);
    check_sums(c, "transactions", o->txn_scheduled, &sum);
}

static void merge_error_texts(struct control *c)
{
    for (int i = 0; i < c->nworkers; i++) {
        for (int k = 0; k < WB_ERROR_SAMPLES && c->worker[i].sample[k].count > 0; k++) {
            const struct wb_error_sample *s = &c->worker[i].sample[k];
            for (int t = 0; t < WB_ERROR_SAMPLES; t++) {
                struct wb_error_sample *to = &c->out->sample[t];
                if (to->count > 0 && strcmp(to->text, s->text) != 0)
                    continue;
                memcpy(to->text, s->text, sizeof(to->text));
                to->count += s->count;
                break;
            }
        }
    }
}

static void go(struct control *c)
{
    int64_t start_unix_ms = wb_now_unix_ms(NULL);

    c->log_start = wb_now_ns(NULL);
    c->watch->begin(c->watch->ctx, c->out, start_unix_ms);
    if (connect_all(c) == 0 && !c->stopped && (!c->job->load || load_rows(c) == 0) &&
        !c->job->load_only && !c->stopped)
        measure(c);
    if (c->stopped && c->out->end == WB_LOAD_DONE) {
        c->out->end = WB_LOAD_INTERRUPTED;
        c->out->end_text = wb_strf("stopped by signal %d", wb_cancel_signal(c->cancel));
    }
    if (c->out->end != WB_LOAD_BROKEN || all_idle(c))
        merge_error_texts(c);
}

static void clean_up(struct control *c)
{
    /* A thread that hangs cannot be joined, and what it uses cannot be freed. */
    if (c->out->end == WB_LOAD_BROKEN && !all_idle(c))
        return;
    for (int i = 0; i < c->nworkers; i++)
        wb_worker_end(&c->worker[i]);
    free(c->worker);
    free(c->seen);
    free(c->in_flight);
    free(c->backlog);
    free(c->written);
    if (c->plan.target.protocol)
        c->plan.target.protocol->end(c->plan.context);
    wb_values_release(&c->plan.data.values);
    wb_target_release(&c->plan.target);
    wb_tls_free(c->plan.tls);
    if (c->plan.news_fd >= 0)
        (void)close(c->plan.news_fd);
    wb_stats_release(&c->interval);
    wb_client_release(&c->client);
}

int wb_load_run(const struct wb_load_job *job, const struct wb_cancel *cancel,
                const struct wb_load_watch *watch, struct wb_load_outcome *out, struct wb_err *err)
{
    struct wb_load_outcome o = {.job = job};
    struct control c = {.job = job, .cancel = cancel, .watch = watch, .out = &o};
    int rc;

    c.plan.news_fd = -1;
    rc = plan_setup(&c, err);
    if (rc == 0) {
        o.ops = c.plan.target.protocol->ops;
        o.nops = c.plan.nops;
        if (c.plan.target.protocol->describe)
            o.protocol = c.plan.target.protocol->describe(c.plan.context);
        wb_stats_init(&o.total, o.nops);
        wb_stats_init(&c.interval, o.nops);
        wb_stats_add_transactions(&o.total, job->ntxn);
        wb_stats_add_transactions(&c.interval, job->ntxn);
        wb_client_init(&c.client);
        rc = start_workers(&c, err);
    }
    if (rc == 0)
        go(&c);
    clean_up(&c);
    if (rc < 0)
        wb_load_outcome_release(&o);
    else
        *out = o;
    return rc;
}

void wb_load_outcome_release(struct wb_load_outcome *o)
{
    free(o->end_text);
    free(o->data.state_error);
    wb_json_free(o->protocol);
    wb_stats_release(&o->total);
    wb_client_sample_release(&o->from);
    wb_client_sample_release(&o->to);
}
