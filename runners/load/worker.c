#include "runners/load/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runners/load/issue.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define EVENTS 256
#define RBUF (256 << 10)
#define SCAN_MOST (10 * WB_MS) /* between looks for time-outs and connections to make again */
#define SCAN_LEAST WB_MS
#define CONNECT_ALL (5 * WB_SEC)     /* for all connections to be made */
#define CONNECT_EACH WB_MS           /* more for each of them */
#define CONNECT_REFUSED (1 * WB_SEC) /* when every try fails at once */
#define STOP_DRAIN WB_SEC            /* for what is in flight when stopped */
#define ROWS_LOST_MOST 100           /* after this loading is given up */

int64_t wb_worker_clock(struct wb_worker *w)
{
    w->now = wb_now_ns(NULL);
    w->in_window = (uint64_t)(w->now - w->window_start) < w->window_ns;
    return w->now;
}

void wb_worker_error_text(struct wb_worker *w, const char *text, size_t n)
{
    struct wb_error_sample *s;

    if (n >= WB_ERROR_SAMPLE_MAX)
        n = WB_ERROR_SAMPLE_MAX - 1;
    for (int i = 0; i < WB_ERROR_SAMPLES; i++) {
        s = &w->sample[i];
        if (s->count == 0) {
            memcpy(s->text, text, n);
            s->text[n] = 0;
        } else if (strncmp(s->text, text, n) != 0 || s->text[n] != 0) {
            continue;
        }
        s->count++;
        return;
    }
}

void wb_worker_refused(struct wb_worker *w, const char *text, size_t n)
{
    n = n < sizeof(w->refusal) ? n : sizeof(w->refusal) - 1;
    memcpy(w->refusal, text, n);
    w->refusal[n] = 0;
}

static void tell(int fd)
{
    uint64_t one = 1;

    /* Fails only when the counter is full: then it is readable anyway. */
    if (write(fd, &one, sizeof(one)) < 0)
        return;
}

/* --- interval boundaries --- */

/* The first boundary after t; the same for all workers of a run. */
static int64_t boundary_after(const struct wb_worker *w, int64_t t)
{
    int64_t step = w->plan->job->interval_ns, from = w->start, to = INT64_MAX, at;

    if (w->stage == WB_STAGE_RUN) {
        if (t < w->warm_end) {
            to = w->warm_end;
        } else if (t < w->end) {
            from = w->warm_end;
            to = w->end;
        } else {
            from = w->end;
        }
    }
    at = from + ((t - from) / step + 1) * step;
    return at < to ? at : to;
}

/* Counts what fell due since the last look, by the schedule alone. */
static uint64_t count_due(struct wb_worker *w)
{
    int64_t until = w->now < w->end ? w->now : w->end;
    uint64_t n, issued = 0;

    if (w->open) {
        n = wb_arrivals_pass(&w->seen, (until < w->warm_end ? until : w->warm_end) - w->start);
        w->due_warm_up += n;
        n += wb_arrivals_pass(&w->seen, until - w->start);
        w->due_total += n;
        return n;
    }
    for (int p = 0; p < WB_PHASES; p++)
        issued += wb_phase_total(w->cur, (enum wb_load_phase)p).issued;
    return issued;
}

/* The first own row that may not be written yet. */
static uint64_t rows_written(const struct wb_worker *w)
{
    uint64_t least = w->lost_least, next = w->next;

    for (uint32_t t = 0; t < w->nshards; t++)
        next = t == 0 || w->shard[t].next < next ? w->shard[t].next : next;
    least = next < least ? next : least;
    for (size_t i = 0; i < w->nretry; i++)
        least = w->retry[i].key < least ? w->retry[i].key : least;
    for (size_t i = 0; i < w->nconns; i++) {
        const struct wb_conn *c = &w->conns[i];
        for (uint32_t k = c->head; k != c->tail; k++) {
            const struct wb_slot *s = &c->slots[k & c->mask];
            if (s->phase == WB_PHASE_LOAD && !(s->flags & WB_SLOT_EXPIRED) && s->index < least)
                least = s->index;
        }
    }
    return least;
}

static void fill_snapshot(struct wb_worker *w, struct wb_snapshot *snap)
{
    snap->scheduled = count_due(w);
    snap->backlog = w->due_total > w->taken_total ? w->due_total - w->taken_total : 0;
    snap->at = w->now;
    snap->mark = w->mark;
    snap->mark_at = w->mark_at;
    snap->in_flight = w->live;
    snap->rows_to = w->rows_to;
}

static void hand_over(struct wb_worker *w)
{
    struct wb_stats *full = w->cur;

    if (atomic_load_explicit(&w->handed, memory_order_acquire) != 0)
        return; /* the control thread is late: this interval becomes part of the next */
    fill_snapshot(w, &w->snap);
    w->cur = w->spare;
    w->spare = full;
    atomic_store_explicit(&w->handed, 1, memory_order_release);
    tell(w->plan->news_fd);
}

static void pass_marks(struct wb_worker *w)
{
    while (w->now >= w->next_mark_at) {
        w->mark++;
        w->mark_at = w->next_mark_at;
        w->next_mark_at = boundary_after(w, w->next_mark_at);
    }
    if (w->stage == WB_STAGE_LOAD)
        w->rows_to = rows_written(w);
    hand_over(w);
}

/* --- stages --- */

static void begin_run(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;

    w->open = job->model == WB_LOAD_OPEN;
    w->step = w->stride;
    w->next = w->first;
    w->quota = UINT64_MAX;
    w->end = w->warm_end + job->for_ns;
    if (job->ops > 0 && w->open)
        w->end = w->warm_end + (int64_t)((double)job->ops * 1e9 / job->rate_per_s);
    if (job->ops > 0 && !w->open) {
        w->end = INT64_MAX;
        w->quota = ((uint64_t)job->ops + w->stride - 1 - w->first) / w->stride;
    }
    w->window_start = w->warm_end;
    w->window_ns = (uint64_t)(w->end - w->warm_end);
    w->miss_fails = job->verify_share > 0;
    w->verify_below = job->verify_share >= 1 ? UINT64_MAX : (uint64_t)(job->verify_share * 0x1p64);
    w->gather_ns = 0;
    w->pack = 1;
    w->packed = 0;
    if (w->open) {
        /* A send costs as much as tens of operations. Where an arrival is followed by others
         * within the time of gathering, they share one; the wait is in their lag and response. */
        double followed = job->rate_per_s / w->stride * (double)job->gather_ns / 1e9;
        if (followed >= 1) {
            w->pack = followed < job->depth ? (uint32_t)followed + 1 : (uint32_t)job->depth;
            w->gather_ns = job->gather_ns;
        }
        wb_arrivals_start(&w->due, &w->plan->schedule, w->first);
        w->seen = w->due;
        w->budget_at = w->start;
    }
}

static void begin(struct wb_worker *w)
{
    const struct wb_load_plan *p = w->plan;
    uint64_t rows = p->rows_to - p->rows_from, threads = (uint64_t)p->job->threads;

    w->open = w->over = w->filled = w->stopped = false;
    w->window_ns = 0;
    w->end = w->drain_end = INT64_MAX;
    w->due_total = w->due_warm_up = w->taken_total = 0;
    w->waiting_since = INT64_MIN;
    w->begun_at = 0;
    w->mark = 0;
    wb_worker_clock(w);
    switch (w->stage) {
    case WB_STAGE_LOAD:
        w->next = p->rows_from + (uint64_t)((unsigned __int128)rows * (uint64_t)w->index / threads);
        w->limit =
            p->rows_from + (uint64_t)((unsigned __int128)rows * ((uint64_t)w->index + 1) / threads);
        if (w->rows_from > w->next)
            w->next = w->rows_from < w->limit ? w->rows_from : w->limit;
        w->rows_to = w->next;
        w->lost_least = UINT64_MAX;
        break;
    case WB_STAGE_CHECK:
        w->miss_fails = true;
        w->next = (uint64_t)w->index;
        w->limit = p->sample;
        w->step = threads;
        break;
    case WB_STAGE_RUN:
        begin_run(w);
        break;
    default:
        break;
    }
    wb_shards_begin(w);
    if (w->stage == WB_STAGE_RUN)
        wb_txns_begin(w);
    if (w->stage != WB_STAGE_RUN)
        w->start = w->now;
    w->next_mark_at = w->stage == WB_STAGE_CONNECT ? INT64_MAX : boundary_after(w, w->start);
    w->next_scan = w->last_up = w->now;
    w->mark_at = w->start;
    for (size_t i = 0; i < w->nconns; i++)
        wb_worker_update_ready(w, &w->conns[i]);
}

static int64_t connect_limit(const struct wb_worker *w)
{
    return CONNECT_ALL + (int64_t)w->nconns * CONNECT_EACH;
}

/* CONNECT is done when all are up, or when it makes no sense to wait. */
static bool connected(struct wb_worker *w)
{
    size_t up = 0, trying = 0;

    for (size_t i = 0; i < w->nconns; i++) {
        up += w->conns[i].state == WB_CONN_UP;
        trying += w->conns[i].state != WB_CONN_UP && w->conns[i].state != WB_CONN_DOWN;
    }
    return up == w->nconns || w->stopped || w->now - w->start >= connect_limit(w) ||
           (up + trying == 0 && w->now - w->start >= CONNECT_REFUSED);
}

/* Ends issuing now: at the end of the window, or when stopped. */
static void end_issuing(struct wb_worker *w, int64_t drain_ns)
{
    w->over = true; /* before the last pass: it is not bounded */
    if (w->open && !w->stopped)
        wb_worker_issue_due(w);
    if (w->stage == WB_STAGE_RUN) {
        for (size_t i = 0; i < w->nconns; i++)
            w->down_at_end += w->conns[i].state != WB_CONN_UP;
    }
    w->drain_end = w->now + drain_ns;
}

static void stop_now(struct wb_worker *w)
{
    int64_t drain = w->timeout_ns < STOP_DRAIN ? w->timeout_ns : STOP_DRAIN;

    w->stopped = true;
    if (w->over) {
        w->drain_end = w->now + drain < w->drain_end ? w->now + drain : w->drain_end;
        return;
    }
    if (w->stage == WB_STAGE_RUN) {
        w->end = w->now > w->start ? w->now : w->start;
        if (w->warm_end > w->end)
            w->warm_end = w->window_start = w->end;
        w->window_ns = (uint64_t)(w->end - w->window_start);
        w->next_mark_at = w->end;
    }
    end_issuing(w, drain);
}

static void scan(struct wb_worker *w)
{
    bool idle_rows = w->nretry > 0 && w->retry[0].not_before <= w->now;

    for (size_t i = 0; i < w->nconns; i++) {
        wb_conn_scan(w, &w->conns[i]);
        if (w->conns[i].state == WB_CONN_UP) {
            w->last_up = w->now;
            if (w->shard)
                w->shard[w->conns[i].target].last_up = w->now;
        }
        if (idle_rows)
            wb_worker_refill(w, &w->conns[i]);
    }
    if (w->shard) { /* each of them has rows that no other can take */
        wb_shards_expire(w);
        w->last_up = wb_shards_last_up(w);
    }
    if (!w->over && (w->stage == WB_STAGE_LOAD || w->stage == WB_STAGE_CHECK) &&
        (w->rows_lost > ROWS_LOST_MOST || w->now - w->last_up > CONNECT_ALL))
        end_issuing(w, w->timeout_ns);
    w->next_scan = w->now + w->scan_ns;
}

/* What time brings: stop, marks, time-outs, the start and end of issuing. */
static void tick(struct wb_worker *w)
{
    wb_worker_clock(w);
    if (atomic_load_explicit(&w->stop_at, memory_order_relaxed) <= w->now && !w->stopped)
        stop_now(w);
    if (w->now >= w->next_scan)
        scan(w);
    if (w->begun_at == 0 && w->stage == WB_STAGE_RUN && w->now >= w->start)
        w->begun_at = w->now;
    if (w->shard)
        wb_shards_send_on(w);
    if (w->txns && w->stage == WB_STAGE_RUN && w->now >= w->start)
        wb_txns_go(w);
    if (!w->filled && !w->open && w->now >= w->start) {
        w->filled = true;
        for (size_t i = 0; i < w->nconns; i++)
            wb_worker_refill(w, &w->conns[i]);
    }
    if (w->shard && !w->open && w->filled)
        wb_shards_kick(w);
    if (w->open && !w->over) {
        if (w->now >= w->end)
            end_issuing(w, w->timeout_ns + WB_SEC);
        else
            wb_worker_issue_due(w);
    } else if (w->stage == WB_STAGE_RUN && !w->over && wb_worker_exhausted(w)) {
        end_issuing(w, w->timeout_ns + WB_SEC);
    }
    if (w->now >= w->next_mark_at)
        pass_marks(w);
}

static void flush_dirty(struct wb_worker *w)
{
    struct wb_conn *c = w->dirty, *next;

    w->dirty = NULL;
    for (; c; c = next) {
        next = c->next_dirty;
        c->dirty = false;
        if (!c->want_out && (c->state == WB_CONN_UP || c->state == WB_CONN_GREETING))
            wb_conn_flush(w, c);
    }
}

/* Whether an arrival could be issued. */
static bool has_room(const struct wb_worker *w)
{
    return w->txns ? wb_txns_room(w) : w->ready || w->shard;
}

/* How long nothing will need the thread, ns. */
static int64_t idle_time(struct wb_worker *w)
{
    int64_t until = w->next_scan;
    const struct wb_load_job *job = w->plan->job;

    if (w->dirty)
        return 0;
    if (w->protocol->no_socket && wb_txns_active(w)) /* its replies came with the sending */
        return 0;
    if (w->open || !w->filled)
        wb_worker_clock(w);
    if (w->next_mark_at < until)
        until = w->next_mark_at;
    if (!w->filled && !w->open && w->start < until)
        until = w->start;
    if (w->open && !w->over) {
        int64_t at = w->start + w->due.at + w->gather_ns;
        if (at > w->now || job->catch_up != WB_LOAD_CAPPED) {
            if ((has_room(w) || job->catch_up == WB_LOAD_DROP) && at < until)
                until = at;
        } else if (has_room(w)) { /* late, and the budget is used up */
            double per_ns = wb_issue_budget_rate(w) / 1e9;
            int64_t refill = w->now + (int64_t)((1 - w->budget) / per_ns) + 1;
            until = refill < until ? refill : until;
        }
        if (w->end < until)
            until = w->end;
    }
    return until > w->now ? until - w->now : 0;
}

static void wait_events(struct wb_worker *w, int64_t ns)
{
    struct epoll_event ev[EVENTS];
    struct timespec ts = {.tv_sec = ns / WB_SEC, .tv_nsec = ns % WB_SEC};
    int n = epoll_pwait2(w->epfd, ev, EVENTS, &ts, NULL);

    for (int i = 0; i < n; i++) {
        uint64_t count;
        if (ev[i].data.ptr)
            wb_conn_event(w, ev[i].data.ptr, ev[i].events);
        else if (read(w->wake_fd, &count, sizeof(count)) < 0)
            continue; /* only a wake-up; somebody read it already */
    }
    w->cur->turns++;
}

static bool finished(const struct wb_worker *w)
{
    if (w->stage == WB_STAGE_LOAD || w->stage == WB_STAGE_CHECK)
        return (wb_worker_exhausted(w) && w->live == 0) || w->now >= w->drain_end;
    return w->over && ((w->live == 0 && !wb_txns_active(w)) || w->now >= w->drain_end);
}

static void work(struct wb_worker *w)
{
    begin(w);
    for (;;) {
        tick(w);
        flush_dirty(w);
        if (w->stage == WB_STAGE_CONNECT ? connected(w) : finished(w))
            break;
        wait_events(w, idle_time(w));
    }
    wb_worker_clock(w);
    if (w->stage == WB_STAGE_LOAD) /* before what is in flight is given up */
        w->rows_to = rows_written(w);
    if (w->stage != WB_STAGE_CONNECT)
        wb_worker_censor(w);
    fill_snapshot(w, &w->last);
}

static void *thread_main(void *arg)
{
    struct wb_worker *w = arg;

    atomic_store(&w->tid, gettid());
    /* Fine timers for epoll; without it sleeps are 50 us late. Not fatal where unknown. */
    (void)prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (w->ask == WB_STAGE_IDLE)
            pthread_cond_wait(&w->wake, &w->lock);
        w->stage = w->ask;
        w->ask = WB_STAGE_IDLE;
        pthread_mutex_unlock(&w->lock);
        if (w->stage == WB_STAGE_QUIT)
            return NULL;
        work(w);
        atomic_store_explicit(&w->idle, true, memory_order_release);
        tell(w->plan->news_fd);
    }
}

/* --- control thread --- */

static void make_connections(struct wb_worker *w)
{
    const struct wb_load_job *job = w->plan->job;
    size_t from = (size_t)(job->connections * w->index / job->threads);
    size_t to = (size_t)(job->connections * (w->index + 1) / job->threads);

    w->nconns = to - from;
    w->conns = wb_calloc(w->nconns, sizeof(*w->conns));
    for (size_t i = 0; i < w->nconns; i++) {
        wb_conn_init(&w->conns[i], job, w->request_max, w->protocol->conn_size);
        w->conns[i].target = (from + i) % w->plan->target.n;
        wb_conn_extend(&w->conns[i], w->protocol);
    }
}

int64_t wb_worker_memory(const struct wb_load_job *job, int nops)
{
    return (job->connections + job->threads - 1) / job->threads * wb_conn_memory(job) + RBUF +
           2 * wb_stats_memory(nops, job->ntxn);
}

static int pin(struct wb_worker *w, pthread_attr_t *attr, struct wb_err *err)
{
    const struct wb_load_job *job = w->plan->job;
    cpu_set_t set;
    int rc;

    w->cpu = job->cpu[w->index % job->ncpu];
    CPU_ZERO(&set);
    CPU_SET(w->cpu, &set);
    rc = pthread_attr_setaffinity_np(attr, sizeof(set), &set);
    return rc ? wb_fail_sys(err, rc, "pinning load thread %d to CPU %d", w->index, w->cpu) : 0;
}

int wb_worker_start(struct wb_worker *w, const struct wb_load_plan *plan, int index,
                    struct wb_err *err)
{
    const struct wb_load_job *job = plan->job;
    struct epoll_event ev = {.events = EPOLLIN};
    pthread_attr_t attr;
    int rc;

    *w = (struct wb_worker){.plan = plan, .index = index, .epfd = -1, .wake_fd = -1, .cpu = -1};
    w->protocol = plan->target.protocol;
    w->context = plan->context;
    w->timeout_ns = job->timeout_ns;
    w->stride = (uint32_t)(job->threads * job->parts);
    w->first = (uint32_t)(job->part * job->threads + index);
    w->scan_ns = job->timeout_ns / 32;
    w->scan_ns = w->scan_ns > SCAN_MOST ? SCAN_MOST : w->scan_ns;
    w->scan_ns = w->scan_ns < SCAN_LEAST ? SCAN_LEAST : w->scan_ns;
    w->request_max = w->protocol->request_max(w->context);
    w->rbuf_size = RBUF;
    w->rbuf = wb_calloc(w->rbuf_size, 1);
    w->cur = wb_calloc(1, sizeof(*w->cur));
    w->spare = wb_calloc(1, sizeof(*w->spare));
    wb_stats_init(w->cur, plan->nops);
    wb_stats_init(w->spare, plan->nops);
    make_connections(w);
    wb_shards_init(w);
    w->txns = wb_txns_new(plan, (uint64_t)w->nconns * (uint64_t)job->depth);
    wb_stats_add_transactions(w->cur, plan->txn.n);
    wb_stats_add_transactions(w->spare, plan->txn.n);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    atomic_store(&w->stop_at, INT64_MAX);
    atomic_store(&w->idle, true);
    w->epfd = epoll_create1(EPOLL_CLOEXEC);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epfd < 0 || w->wake_fd < 0 || epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->wake_fd, &ev) < 0)
        return wb_fail_sys(err, errno, "making the event queue of load thread %d", index);
    pthread_attr_init(&attr);
    rc = pin(w, &attr, err);
    if (rc == 0) {
        int sys = pthread_create(&w->thread, &attr, thread_main, w);
        if (sys != 0)
            rc = wb_fail_sys(err, sys, "starting load thread %d", index);
        w->started = sys == 0;
    }
    pthread_attr_destroy(&attr);
    return rc;
}

void wb_worker_begin(struct wb_worker *w, enum wb_stage stage)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->idle, false);
    w->ask = stage;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void wb_worker_stop(struct wb_worker *w, int64_t now)
{
    atomic_store(&w->stop_at, now);
    tell(w->wake_fd);
}

void wb_worker_end(struct wb_worker *w)
{
    if (w->started) {
        wb_worker_begin(w, WB_STAGE_QUIT);
        pthread_join(w->thread, NULL);
    }
    for (size_t i = 0; i < w->nconns; i++) {
        if (w->protocol->conn_end)
            w->protocol->conn_end(w->conns[i].proto);
        wb_conn_release(&w->conns[i]);
    }
    free(w->conns);
    wb_shards_release(w);
    wb_txns_free(w->txns);
    free(w->rbuf);
    free(w->retry);
    if (w->cur)
        wb_stats_release(w->cur);
    if (w->spare)
        wb_stats_release(w->spare);
    free(w->cur);
    free(w->spare);
    if (w->epfd >= 0)
        (void)close(w->epfd);
    if (w->wake_fd >= 0)
        (void)close(w->wake_fd);
    *w = (struct wb_worker){.epfd = -1, .wake_fd = -1};
}
