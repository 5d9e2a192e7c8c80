#include "server/engine/worker.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/tools/command.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/rng.h"
#include "server/engine/ring.h"

#define LOOPBACK "127.0.0.1"
#define TICK_NS (200 * WB_MS)
#define SAMPLE_NS WB_SEC
/* The end of such a phase is not known before: less of it may stay without a sample. */
#define SAMPLE_BY_COUNT_NS (400 * WB_MS)
/* The last sample of a window is taken while the program is still there. */
#define BEFORE_END_NS (30 * WB_MS)
#define STOP_GRACE_NS (5 * WB_SEC)
#define RAW_MAX (64u << 20)

/* How clients divide the keys over the instances. Nodes that speak CQL pass on what is not theirs:
 * any of them takes any key. */
static const char *split_of(const struct wb_run *r)
{
    if (r->ninstances == 1 || strcmp(r->e->study->recipe->protocol, "cql") == 0)
        return NULL;
    return strcmp(r->arm->setup->topology, "cluster") == 0 ? "slots" : "keys";
}

/* The data set is written to all copies of each row, whatever the study measures with: else the
 * first reads, the check of what was loaded among them, would find copies that lag behind. */
static const char *consistency_of(const struct wb_run *r, const struct wb_phase *ph)
{
    if (ph->load_only && strcmp(r->e->study->recipe->protocol, "cql") == 0)
        return "read=one,write=all";
    return r->arm->setup->consistency;
}

/* What the phase asks of the program. */
static void fill_task(struct wb_worker *w, double rate_per_s)
{
    const struct wb_run *r = w->r;
    const struct wb_setup *s = r->arm->setup;
    const struct wb_phase *ph = w->ph;

    w->task = (struct wb_tool_task){
        .base = w->base,
        .job_dir = w->dir,
        .program = r->e->spec->load_program,
        .prefix = r->e->bits.prefix,
        .command = ph->tool,
        .protocol = r->e->study->recipe->protocol,
        .peers = w->peers,
        .npeers = (size_t)wb_run_members(r),
        .split = split_of(r),
        .consistency = consistency_of(r, ph),
        .routing = s->routing,
        .cpus = r->e->plan->placement.load_cpus,
        .phase = ph->name,
        .load_only = ph->load_only,
        .rows = s->rows,
        .key_bytes = s->key_bytes,
        .value_bytes = s->value_bytes,
        .value_size = s->value_size,
        .value_content = s->value_content,
        /* The same data and the same choices for all arms of a round. */
        .seed = (int64_t)(wb_mix64(r->e->plan->seed, (uint64_t)r->round) >> 12),
        .connections = ph->connections,
        .threads = ph->threads,
        .depth = ph->depth, /* 0 at a rate that names none: the program's own, wide enough */
        .get_percent = ph->get_percent,
        .transactions = ph->transactions,
        .txn_mix = ph->txn_mix,
        .keys = ph->keys,
        .rate_per_s = rate_per_s,
        .search = ph->pace == WB_PACE_SEARCH && !r->calibrating ? s->slo.text : NULL,
        .arrivals = ph->arrivals,
        .warm_up_ns = ph->warm_up_ns,
        .for_ns = ph->for_ns,
        .operations = ph->operations,
        .timeout_ns = ph->timeout_ns,
    };
}

void wb_worker_init(struct wb_worker *w, struct wb_run *r, const struct wb_phase *ph,
                    double rate_per_s)
{
    size_t n = 0;

    *w = (struct wb_worker){.r = r,
                            .ph = ph,
                            .tool = wb_tool_of(ph->tool),
                            .base = wb_strf("%s/load-%s", r->dir, ph->name),
                            .dir = wb_strf("%s/load-%s.job", r->dir, ph->name),
                            .group = wb_strf("weighbridge/%s-load", r->id),
                            .peers = wb_calloc((size_t)r->ninstances, sizeof(*w->peers))};
    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance *in = &r->instances[i];

        if (in->member)
            w->peers[n++] =
                (struct wb_tool_peer){.host = in->host[0] ? in->host : LOOPBACK, .port = in->port};
    }
    fill_task(w, rate_per_s);
    if (!w->tool->own_threads)
        w->threads = wb_threads_new("/proc");
}

void wb_worker_release(struct wb_worker *w)
{
    wb_ring_free(w->ring);
    wb_sampler_free(w->sampler);
    wb_threads_free(w->threads);
    free(w->base);
    free(w->dir);
    free(w->group);
    free(w->peers);
    free(w->version);
}

/* Who is asked for its version before it is believed. */
static int ask_version(struct wb_worker *w)
{
    struct wb_err err = WB_ERR_INIT;

    if (!w->tool->version ||
        w->tool->version(&w->task, w->r->e->spec->cancel, &w->version, &err) == 0)
        return 0;
    return wb_run_fail(w->r,
                       err.code == WB_CONFLICT    ? WB_OUTCOME_INCONSISTENT
                       : err.code == WB_NOT_FOUND ? WB_OUTCOME_INFRA_ERROR
                                                  : WB_OUTCOME_HARNESS_ERROR,
                       &err);
}

static int start_job(struct wb_worker *w, const struct wb_tool_start *s)
{
    struct wb_run *r = w->r;
    WB_AUTO_FREE char *mark = wb_strf("wb.owner=%s;wb.campaign=%s;wb.run=%s", r->e->form_env.owner,
                                      r->e->form_env.campaign, r->id);
    struct wb_ledger_entry entry = {
        .kind = (char[]){"load"}, .name = w->group, .dir = w->dir, .run = r->id};
    struct wb_job_spec job = {.dir = w->dir,
                              .group = w->group,
                              .argv = s->argv.v,
                              .env = s->env.n ? s->env.v : NULL,
                              .limits = {.cpus = r->e->plan->placement.load_cpus,
                                         .mems = r->e->plan->placement.load_mems},
                              .limit_ns = s->limit_ns,
                              .silence_ns = s->silence_ns,
                              .log_max = s->log_max,
                              .mark = mark};
    struct wb_err err = WB_ERR_INIT;

    if (wb_ledger_make(r->e->dir, &entry, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    if (wb_job_start(r->e->cgroups, &job, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    if (wb_job_poll(w->dir, &w->status, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    return 0;
}

static int start(struct wb_worker *w)
{
    struct wb_tool_start s = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = w->tool->begin(&w->task, &s, &err);

    if (rc < 0) {
        (void)wb_wrap(&err, "phase %s", w->ph->name);
        rc = wb_run_fail(
            w->r, err.code == WB_UNSUPPORTED ? WB_OUTCOME_HARNESS_ERROR : WB_OUTCOME_INFRA_ERROR,
            &err);
    } else {
        rc = start_job(w, &s);
    }
    wb_tool_start_release(&s);
    return rc;
}

static int start_sampler(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    const char **db = wb_calloc(2 * (size_t)r->ninstances + 1, sizeof(*db));
    const char *load[] = {w->group, NULL};
    struct wb_sampler_spec spec = {.cgroups = r->e->cgroups,
                                   .proc = "/proc",
                                   .database = db,
                                   .load = load,
                                   .agent = getpid(),
                                   .database_changes = w->ring != NULL};
    struct wb_err err = WB_ERR_INIT;
    size_t n = 0;
    int rc;

    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance_status *st = &r->instances[i].status;

        if (!r->instances[i].started)
            continue;
        db[n++] = st->cgroup;
        if (st->helper[0]) /* works for the database: its CPU time is the database's */
            db[n++] = st->helper;
    }
    rc = wb_sampler_new(&spec, &w->sampler, &err);
    free(db);
    w->began_ns = w->sampled_ns = wb_now_ns(NULL);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

/* When the warm-up ends and when the window does, by our own clock: a program tells it at the end
 * of an interval, and when it has ended its control group is gone. INT64_MAX: not known. */
static int64_t window_start(const struct wb_worker *w)
{
    /* Each rate of a search has a warm-up of its own: all of it is looked at. */
    return w->began_ns + (w->task.search ? 0 : w->ph->warm_up_ns);
}

static int64_t window_end(const struct wb_worker *w)
{
    return w->tool->follow && w->ph->for_ns > 0 && !w->task.search
               ? window_start(w) + w->ph->for_ns - BEFORE_END_NS
               : INT64_MAX;
}

/* What the time since the last sample was for. */
static const char *part_now(const struct wb_worker *w)
{
    int64_t now = wb_now_ns(NULL);

    if (w->ph->load_only)
        return "load";
    return now < window_start(w) ? "warm-up" : now < window_end(w) ? "measure" : "drain";
}

/* Tells the listener how far it is. */
static void tell(const struct wb_worker *w, double rate_per_s, double p99_ms, double errors_per_s)
{
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", w->r->id);
    wb_json_set_str(f, "phase", w->ph->name);
    wb_json_set_str(f, "part", w->part[0] ? w->part : part_now(w));
    if (!isnan(rate_per_s))
        wb_json_set_real(f, "rate_per_s", rate_per_s);
    if (!isnan(errors_per_s))
        wb_json_set_real(f, "errors_per_s", errors_per_s);
    wb_json_set_real(f, "p99_ms", p99_ms);
    wb_json_set_real(f, "elapsed_s", (double)(wb_now_ns(NULL) - w->began_ns) / 1e9);
    wb_json_set_real(f, "planned_s", w->ph->load_only ? 0 : wb_phase_seconds(w->ph));
    wb_campaign_tell(w->r->e->dir, "run.sample", f);
}

static void told(void *arg, const struct wb_tool_told *what)
{
    struct wb_worker *w = arg;

    memcpy(w->part, what->part, sizeof(w->part));
    tell(w, what->rate_per_s, what->p99_ms, what->errors_per_s);
}

/* Once in the middle of a phase: both sides are where the plan says, by the kernel's own word. */
static int check_places(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    const struct wb_placement *p = &r->e->plan->placement;
    struct wb_place_want want = {.group = w->group,
                                 .pid = w->status.pid,
                                 .cpus = p->load_cpus,
                                 .mems = p->load_mems,
                                 .memory_free = true};
    wb_json *seen = wb_json_object();
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_place_check(r->e->cgroups, &want, seen, &err);

    wb_json_set_str(seen, "role", "load");
    wb_json_set_str(seen, "phase", w->ph->name);
    wb_json_push(r->placement, seen);
    for (int i = 0; rc == 0 && i < r->ninstances; i++)
        if (r->instances[i].started && !r->instances[i].away)
            rc = wb_run_place(r, &r->instances[i], w->ph->name, &err);
    /* A process that has just ended has no placement: the death is found and named elsewhere. */
    if (rc < 0 && err.code == WB_CONFLICT)
        return wb_run_fail(r, WB_OUTCOME_INCONSISTENT, &err);
    return 0;
}

static void look_at_threads(struct wb_worker *w)
{
    pid_t *pids = NULL;
    size_t n = 0;

    if (!w->threads || wb_cgroup_pids(w->r->e->cgroups, w->group, &pids, &n, NULL) < 0)
        return;
    wb_threads_look(w->threads, pids, n, wb_now_ns(NULL));
    free(pids);
}

static void sample(struct wb_worker *w, const char *part)
{
    wb_sampler_take(w->sampler, part);
    w->sampled_ns = wb_now_ns(NULL);
}

/* Once a second. */
static int look(struct wb_worker *w, const char *part)
{
    sample(w, part);
    if (!w->tool->follow)
        tell(w, NAN, NAN, NAN);
    return wb_run_alive(w->r);
}

/* How long nothing needs to be looked at: the window's ends are met to the point. */
static int64_t pause_ns(const struct wb_worker *w)
{
    int64_t now = wb_now_ns(NULL), ends[] = {window_start(w), window_end(w)}, pause = TICK_NS;

    for (size_t i = 0; i < WB_LEN(ends); i++)
        if (ends[i] > now && ends[i] - now < pause)
            pause = ends[i] - now;
    return pause;
}

/* Until it has ended: progress, samples, life of the database. */
static int watch(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    WB_AUTO_CLOSE int fd = wb_job_fd(&w->status);
    int64_t interval = w->ph->operations > 0 ? SAMPLE_BY_COUNT_NS : SAMPLE_NS;
    const char *part = part_now(w);
    struct wb_err err = WB_ERR_INIT;
    int ended = fd < 0;

    while (!ended) {
        const char *was = part;

        look_at_threads(w);
        ended = wb_wait(r->e->spec->cancel, fd, pause_ns(w), &err);
        if (ended < 0)
            return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
        if (w->tool->follow)
            w->tool->follow(&w->task, &w->told_to, told, w);
        part = part_now(w);
        if (strcmp(part, was) != 0)
            sample(w, was);
        if (!ended && wb_now_ns(NULL) >= w->sampled_ns + interval && look(w, part) < 0)
            return -WB_IO;
        if (!ended && !w->placed && !strcmp(part, "measure")) {
            w->placed = true;
            if (check_places(w) < 0)
                return -WB_IO;
        }
        if (!ended && w->ring && wb_now_ns(NULL) >= window_start(w) && wb_ring_turn(w->ring) < 0)
            return -WB_IO;
    }
    return 0;
}

/* The job is over: its last status, and nothing of it left. */
static int settle(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    struct wb_err err = WB_ERR_INIT;

    if (wb_job_stop(r->e->cgroups, w->dir, SIGTERM, STOP_GRACE_NS, &w->status, &err) < 0 ||
        wb_ledger_gone(r->e->dir, w->group, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    return 0;
}

int wb_worker_run(struct wb_worker *w)
{
    int rc = ask_version(w);

    if (rc == 0 && w->ph->nduring && !w->r->calibrating)
        w->ring = wb_ring_new(w);
    if (rc == 0)
        rc = start(w);
    if (rc == 0)
        rc = start_sampler(w);
    if (rc == 0)
        rc = watch(w);
    if (rc == 0 && w->ring)
        rc = wb_ring_finish(w->ring);
    if (wb_path_exists(w->dir)) {
        int settled = settle(w);

        rc = rc < 0 ? rc : settled;
    }
    return rc;
}

static void keep_file(struct wb_run *r, const char *path, const char *name)
{
    WB_AUTO_FREE char *data = NULL;
    size_t n;

    if (wb_path_exists(path) && wb_file_read(path, RAW_MAX, &data, &n, NULL) == 0)
        wb_run_raw(r, name, data, n);
}

void wb_worker_keep_raw(struct wb_worker *w)
{
    const char *phase = w->ph->name;
    WB_AUTO_FREE char *log = wb_strf("load-%s.log", phase);
    WB_AUTO_FREE char *log_path = wb_strf("%s/stderr.log", w->dir);
    WB_AUTO_FREE char *out = wb_strf("load-%s.stdout", phase);
    WB_AUTO_FREE char *out_path = wb_strf("%s/stdout.log", w->dir);

    for (const struct wb_tool_file *f = w->tool->files; f->end; f++) {
        WB_AUTO_FREE char *path = wb_strf("%s%s", w->base, f->end);
        WB_AUTO_FREE char *name = wb_strf("load-%s%s", phase, f->name);

        keep_file(w->r, path, name);
    }
    keep_file(w->r, log_path, log);
    if (w->tool->stdout_is_raw)
        keep_file(w->r, out_path, out);
    if (w->sampler) {
        WB_AUTO_FREE char *name = wb_strf("samples-%s.json", phase);
        WB_AUTO_JSON wb_json *series = wb_sampler_series(w->sampler);
        struct wb_buf b = WB_BUF_INIT(RAW_MAX);

        wb_json_line(series, &b);
        wb_run_raw(w->r, name, wb_buf_str(&b), b.len);
        wb_buf_release(&b);
    }
}
