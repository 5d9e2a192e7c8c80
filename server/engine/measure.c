/* The phases of the workload: one load worker each, watched and sampled while it runs. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/base/rng.h"
#include "server/engine/run.h"
#include "server/engine/steps.h"

#define TICK_NS (200 * WB_MS)
#define SAMPLE_NS WB_SEC
/* A worker that is still there this long after its own end is hung. */
#define LOAD_SLACK_NS (30 * WB_SEC)
#define LOAD_ONLY_LIMIT_NS (1800 * WB_SEC)
#define STOP_GRACE_NS (5 * WB_SEC)
#define RESULT_MAX (16u << 20)
#define RAW_MAX (64u << 20)
/* The measured window may differ from the asked one by this share before the run is not believed.
 */
#define WINDOW_TOLERANCE 0.10
/* Shorter windows cannot be judged for steadiness. */
#define STEADY_MIN_S 60

/* One load worker and what is known of it. */
struct worker {
    struct wb_run *r;
    const struct wb_phase *ph;
    char *dir, *group, *output, *ndjson, *hdr;
    double rate_per_s; /* 0: as fast as it goes */
    struct wb_sampler *sampler;
    struct wb_job_status status;
    int64_t read_to; /* bytes of the ndjson file that were read */
    char state[16];  /* "load", "warm-up", "measure", "drain" as it last said */
    bool placed;     /* its placement was looked at */
    int64_t began_ns;
};

static bool is_closed(const struct wb_phase *ph)
{
    return ph->pace == WB_PACE_MAX;
}

static wb_json *job_document(const struct worker *w)
{
    const struct wb_setup *s = w->r->arm->setup;
    const struct wb_phase *ph = w->ph;
    wb_json *j = wb_json_object(), *mix = wb_json_object();
    struct wb_buf target = WB_BUF_INIT(4096);

    wb_buf_addf(&target, "%s://", w->r->e->study->recipe->protocol);
    for (int i = 0; i < w->r->ninstances; i++) {
        const struct wb_instance *in = &w->r->instances[i];

        wb_buf_addf(&target, "%s%s:%d", i ? "," : "", in->host[0] ? in->host : "127.0.0.1",
                    in->port);
    }
    wb_json_set_str(j, "target", wb_buf_str(&target));
    wb_buf_release(&target);
    if (w->r->ninstances > 1)
        wb_json_set_str(j, "split", "keys"); /* topology sharded: each key is on one instance */
    wb_json_set_int(j, "threads", ph->threads);
    wb_json_set_str(j, "cpus", w->r->e->plan->placement.load_cpus);
    wb_json_set_int(j, "connections", ph->connections);
    /* Open loop: depth is only a cap on what is in flight; the program's own is wide enough. */
    if (ph->load_only || is_closed(ph))
        wb_json_set_int(j, "depth", ph->depth);
    /* The same data and the same choices for all arms of a round. */
    wb_json_set_int(j, "seed",
                    (int64_t)(wb_mix64(w->r->e->plan->seed, (uint64_t)w->r->round) >> 12));
    wb_json_set_int(j, "keys", s->rows);
    wb_json_set_int(j, "key_bytes", s->key_bytes);
    wb_json_set_int(j, "value_bytes", s->value_bytes);
    wb_json_set_real(j, "timeout_ms", (double)ph->timeout_ns / 1e6);
    wb_json_set_str(j, "output", w->output);
    wb_json_set_str(j, "ndjson", w->ndjson);
    wb_json_set_real(j, "interval_s", 1);
    if (ph->load_only) {
        wb_json_set_bool(j, "load_only", true);
        wb_json_free(mix);
        return j;
    }
    wb_json_set_str(j, "hdr", w->hdr);
    wb_json_set_str(j, "key_choice", ph->keys);
    if (ph->get_percent > 0)
        wb_json_set_real(mix, "get", ph->get_percent);
    if (ph->get_percent < 100)
        wb_json_set_real(mix, "set", 100 - ph->get_percent);
    wb_json_set(j, "mix", mix);
    wb_json_set_str(j, "model", w->rate_per_s > 0 ? "open" : "closed");
    if (w->rate_per_s > 0) {
        wb_json_set_real(j, "rate_per_s", w->rate_per_s);
        wb_json_set_str(j, "arrivals", ph->arrivals);
        wb_json_set_str(j, "catch_up", "immediate");
    }
    wb_json_set_real(j, "warm_up_s", (double)ph->warm_up_ns / 1e9);
    wb_json_set_real(j, "for_s", (double)ph->for_ns / 1e9);
    return j;
}

static int start_worker(struct worker *w)
{
    struct wb_run *r = w->r;
    const struct wb_phase *ph = w->ph;
    WB_AUTO_FREE char *doc_path = wb_strf("%s/load-%s.json", r->dir, ph->name);
    WB_AUTO_FREE char *mark = wb_strf("wb.owner=%s;wb.campaign=%s;wb.run=%s", r->e->form_env.owner,
                                      r->e->form_env.campaign, r->id);
    WB_AUTO_FREE char *program = wb_strdup(r->e->spec->load_program);
    WB_AUTO_JSON wb_json *doc = job_document(w);
    struct wb_buf text = WB_BUF_INIT(65536);
    struct wb_err err = WB_ERR_INIT;
    char *argv[] = {program, (char[]){"--job"}, doc_path, NULL};
    struct wb_ledger_entry entry = {
        .kind = (char[]){"load"}, .name = w->group, .dir = w->dir, .run = r->id};
    struct wb_job_spec job = {
        .dir = w->dir,
        .group = w->group,
        .argv = argv,
        .limits = {.cpus = r->e->plan->placement.load_cpus, .mems = r->e->plan->placement.load_mems},
        .limit_ns = ph->load_only ? LOAD_ONLY_LIMIT_NS
                                  : ph->warm_up_ns + ph->for_ns + ph->timeout_ns + LOAD_SLACK_NS,
        .mark = mark};
    int rc;

    wb_json_pretty(doc, &text);
    rc = wb_file_put(doc_path, wb_buf_str(&text), text.len, &err);
    wb_buf_release(&text);
    if (rc < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    if (wb_ledger_make(r->e->dir, &entry, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    if (wb_job_start(r->e->cgroups, &job, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    if (wb_job_poll(w->dir, &w->status, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    return 0;
}

static int start_sampler(struct worker *w)
{
    struct wb_run *r = w->r;
    const char **db = wb_calloc(2 * (size_t)r->ninstances + 1, sizeof(*db));
    size_t n = 0;
    const char *load[] = {w->group, NULL};
    struct wb_sampler_spec spec = {
        .cgroups = r->e->cgroups, .proc = "/proc", .database = db, .load = load, .agent = getpid()};
    struct wb_err err = WB_ERR_INIT;
    int rc;

    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance_status *st = &r->instances[i].status;

        db[n++] = st->cgroup;
        if (st->helper[0]) /* works for the database: its CPU time is the database's */
            db[n++] = st->helper;
    }
    rc = wb_sampler_new(&spec, &w->sampler, &err);
    free(db);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

/* Tells the listener what the worker wrote last, and remembers its phase. */
static void take_line(struct worker *w, const wb_json *line)
{
    const char *phase = wb_json_str_or(line, "phase", "");
    const wb_json *latency = wb_json_get(line, "response");
    double seconds = wb_json_real_or(line, "seconds", 0);
    wb_json *f = wb_json_object();

    if (strlen(phase) < sizeof(w->state))
        memcpy(w->state, phase, strlen(phase) + 1);
    if (wb_json_type(latency) != WB_JSON_OBJECT)
        latency = wb_json_get(line, "service");
    wb_json_set_str(f, "run", w->r->id);
    wb_json_set_str(f, "phase", w->ph->name);
    wb_json_set_str(f, "part", w->state);
    if (seconds > 0)
        wb_json_set_real(f, "rate_per_s", wb_json_real_or(line, "ok", 0) / seconds);
    wb_json_set_real(f, "p99_ms", wb_json_real_or(latency, "p99_ms", NAN));
    wb_json_set_real(f, "elapsed_s", (double)(wb_now_ns(NULL) - w->began_ns) / 1e9);
    wb_json_set_real(f, "planned_s",
                     w->ph->load_only ? 0 : (double)(w->ph->warm_up_ns + w->ph->for_ns) / 1e9);
    wb_campaign_tell(w->r->e->dir, "run.sample", f);
}

/* Reads the lines that were added to the worker's interval file. */
static void follow(struct worker *w)
{
    WB_AUTO_CLOSE int fd = open(w->ndjson, O_RDONLY | O_CLOEXEC);
    char chunk[65536];
    ssize_t n = fd < 0 ? 0 : pread(fd, chunk, sizeof(chunk) - 1, w->read_to);
    char *line = chunk, *end;

    if (n <= 0)
        return;
    chunk[n] = '\0';
    for (; (end = memchr(line, '\n', (size_t)(chunk + n - line))); line = end + 1) {
        WB_AUTO_JSON wb_json *j = NULL;

        if (wb_json_parse(line, (size_t)(end - line), &j, NULL) == 0)
            take_line(w, j);
    }
    w->read_to += line - chunk;
}

/* Once in the middle of a phase: both sides are where the plan says, by the kernel's own word. */
static int check_places(struct worker *w)
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
        rc = wb_run_place(r, &r->instances[i], w->ph->name, &err);
    /* A process that has just ended has no placement: the death is found and named elsewhere. */
    if (rc < 0 && err.code == WB_CONFLICT)
        return wb_run_fail(r, WB_OUTCOME_INCONSISTENT, &err);
    return 0;
}

/* Until the worker has ended: progress, samples, life of the database. */
static int watch(struct worker *w)
{
    struct wb_run *r = w->r;
    WB_AUTO_CLOSE int fd = wb_job_fd(&w->status);
    int64_t next_sample = wb_now_ns(NULL) + SAMPLE_NS;
    struct wb_err err = WB_ERR_INIT;
    int ended = fd < 0;

    while (!ended) {
        ended = wb_wait(r->e->spec->cancel, fd, TICK_NS, &err);
        if (ended < 0)
            return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
        follow(w);
        if (!ended && wb_now_ns(NULL) >= next_sample) {
            wb_sampler_take(w->sampler, w->state[0] ? w->state : "start");
            next_sample += SAMPLE_NS;
            if (wb_run_alive(r) < 0)
                return -WB_IO;
        }
        if (!ended && !w->placed && !strcmp(w->state, "measure")) {
            w->placed = true;
            if (check_places(w) < 0)
                return -WB_IO;
        }
    }
    return 0;
}

/* The worker's job is over: its last status, and nothing of it left. */
static int settle(struct worker *w)
{
    struct wb_run *r = w->r;
    struct wb_err err = WB_ERR_INIT;

    if (wb_job_stop(r->e->cgroups, w->dir, SIGTERM, STOP_GRACE_NS, &w->status, &err) < 0 ||
        wb_ledger_gone(r->e->dir, w->group, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_HARNESS_ERROR, &err);
    return 0;
}

static void keep_raw_file(struct wb_run *r, const char *path, const char *name)
{
    WB_AUTO_FREE char *data = NULL;
    size_t n;

    if (wb_path_exists(path) && wb_file_read(path, RAW_MAX, &data, &n, NULL) == 0)
        wb_run_raw(r, name, data, n);
}

static void keep_raw(struct worker *w)
{
    WB_AUTO_FREE char *nd = wb_strf("load-%s.ndjson", w->ph->name);
    WB_AUTO_FREE char *hdr = wb_strf("load-%s.hdr", w->ph->name);
    WB_AUTO_FREE char *log = wb_strf("load-%s.log", w->ph->name);
    WB_AUTO_FREE char *err_log = wb_strf("%s/stderr.log", w->dir);
    WB_AUTO_FREE char *samples = wb_strf("samples-%s.json", w->ph->name);
    WB_AUTO_JSON wb_json *series = wb_sampler_series(w->sampler);
    struct wb_buf b = WB_BUF_INIT(RAW_MAX);

    keep_raw_file(w->r, w->ndjson, nd);
    keep_raw_file(w->r, w->hdr, hdr);
    keep_raw_file(w->r, err_log, log);
    wb_json_line(series, &b);
    wb_run_raw(w->r, samples, wb_buf_str(&b), b.len);
    wb_buf_release(&b);
}

/* What a worker without a usable result is: named by how it ended. */
static int no_result(struct worker *w, const struct wb_err *why)
{
    struct wb_buf said = WB_BUF_INIT(2048);
    const struct wb_job_status *s = &w->status;
    const char *name = w->ph->name;
    int rc;

    if (wb_run_alive(w->r) < 0) /* the database's death explains it */
        return -WB_IO;
    if (wb_job_log_tail(w->dir, "stderr.log", 500, &said, NULL) < 0)
        wb_buf_clear(&said);
    while (said.len && said.data[said.len - 1] == '\n')
        said.data[--said.len] = '\0';
    if (s->timed_out)
        rc = wb_run_failf(w->r, WB_OUTCOME_HARNESS_ERROR,
                          "phase %s: the load worker was over its time and was killed", name);
    else if (s->signal)
        rc = wb_run_failf(w->r, WB_OUTCOME_HARNESS_ERROR,
                          "phase %s: the load worker was ended by signal %d", name, s->signal);
    else if (s->exit_code == 3)
        rc = wb_run_failf(w->r, WB_OUTCOME_SUT_ERROR,
                          "phase %s: the database took no connection: %s", name, wb_buf_str(&said));
    else
        rc = wb_run_failf(w->r, WB_OUTCOME_HARNESS_ERROR,
                          "phase %s: the load worker ended with status %d and no result (%s)%s%s",
                          name, s->exit_code, why->root, said.len ? ": " : "", wb_buf_str(&said));
    wb_buf_release(&said);
    return rc;
}

/* Whether the result is of what was asked: the right window, sums that add up, few errors. */
static int judge_result(struct worker *w, const wb_json *res)
{
    const struct wb_phase *ph = w->ph;
    double asked = (double)ph->for_ns / 1e9;
    double got = wb_json_number(wb_json_path(res, "window.seconds"), -1);
    int64_t scheduled = wb_json_int_or(res, "scheduled", -1), ok = wb_json_int_or(res, "ok", -1);
    int64_t failed = wb_json_int_or(res, "failed", -1);
    int64_t rest = wb_json_int_or(res, "dropped", 0) + wb_json_int_or(res, "censored", 0);
    const char *verdict = wb_json_str_or(res, "verdict", "");
    double share = scheduled > 0 ? 100.0 * (double)failed / (double)scheduled : 0;

    if (fabs(got - asked) > asked * WINDOW_TOLERANCE)
        return wb_run_failf(w->r, WB_OUTCOME_HARNESS_ERROR,
                            "phase %s: measured for %.2f s instead of %.2f s", ph->name, got,
                            asked);
    if (scheduled < 0 || ok < 0 || failed < 0 || scheduled != ok + failed + rest)
        return wb_run_failf(w->r, WB_OUTCOME_INCONSISTENT,
                            "phase %s: %lld operations scheduled, but %lld ok + %lld failed + "
                            "%lld dropped or censored",
                            ph->name, (long long)scheduled, (long long)ok, (long long)failed,
                            (long long)rest);
    if (ok == 0)
        return wb_run_failf(w->r, WB_OUTCOME_SUT_ERROR, "phase %s: no operation succeeded",
                            ph->name);
    if (share > w->r->e->study->validity.errors_fail)
        return wb_run_failf(w->r, WB_OUTCOME_SUT_ERROR,
                            "phase %s: %.2f %% of the operations failed (limit %.2f %%)", ph->name,
                            share, w->r->e->study->validity.errors_fail);
    if (!strcmp(verdict, "failed"))
        return wb_run_failf(w->r, WB_OUTCOME_SUT_ERROR,
                            "phase %s: the load worker's verdict is "
                            "'failed'",
                            ph->name);
    if (w->rate_per_s > 0 && !strcmp(verdict, "server-bound"))
        return wb_run_failf(w->r, WB_OUTCOME_TARGET_MISSED,
                            "phase %s: %.0f/s offered, %.0f/s reached", ph->name, w->rate_per_s,
                            wb_json_real_or(res, "achieved_per_s", 0));
    return 0;
}

static int take_result(struct worker *w)
{
    struct wb_run *r = w->r;
    wb_json *phase, *window, *res = NULL;
    const char *model = w->rate_per_s > 0 ? "open" : "closed";
    struct wb_err err = WB_ERR_INIT;

    if (wb_json_read_file(w->output, RESULT_MAX, &res, &err) < 0)
        return no_result(w, &err);
    phase = wb_json_object();
    wb_json_set_str(phase, "name", w->ph->name);
    wb_json_set_str(phase, "model", model);
    wb_json_set_bool(phase, "measured", !w->ph->load_only);
    wb_json_set_bool(phase, "windows_short", (double)w->ph->for_ns / 1e9 < STEADY_MIN_S);
    wb_json_set(phase, "load", res);
    wb_json_set(phase, "samples", wb_sampler_window(w->sampler, "measure"));
    wb_json_push(r->phases, phase);
    r->load_result = res;
    if (w->ph->load_only) {
        const wb_json *data = wb_json_get(res, "data");

        if (w->status.exit_code != 0 || wb_json_int_or(data, "mismatched", 0) != 0 ||
            wb_json_int_or(data, "rows", -1) != r->arm->setup->rows)
            return wb_run_failf(r, WB_OUTCOME_SUT_ERROR,
                                "phase %s: the data set is not complete (%lld of %lld rows, "
                                "status %d)",
                                w->ph->name, (long long)wb_json_int_or(data, "rows", 0),
                                (long long)r->arm->setup->rows, w->status.exit_code);
        return 0;
    }
    window = wb_json_object();
    wb_json_set_str(window, "phase", w->ph->name);
    wb_json_set_str(window, "model", model);
    wb_json_set(window, "samples", wb_json_ref(wb_json_get(phase, "samples")));
    wb_json_set(window, "load", wb_json_ref(res));
    if (w->rate_per_s <= 0)
        wb_json_set_int(window, "in_flight", w->ph->connections * w->ph->depth);
    if (r->arm->cpu_quota > 0)
        wb_json_set_bool(window, "cpu_quota", true);
    wb_json_push(r->windows, window);
    if (w->status.exit_code != 0 && w->status.exit_code != 4)
        return no_result(w, &err);
    return judge_result(w, res);
}

static double rate_of(const struct wb_run *r, const struct wb_phase *ph)
{
    if (ph->pace == WB_PACE_RATE)
        return ph->rate_per_s;
    if (ph->pace == WB_PACE_CALIBRATED && !r->calibrating)
        return r->e->calibrated_per_s * ph->calibrated_percent / 100;
    return 0;
}

static int run_phase(struct wb_run *r, const struct wb_phase *ph)
{
    struct worker w = {.r = r,
                       .ph = ph,
                       .dir = wb_strf("%s/load-%s", r->dir, ph->name),
                       .group = wb_strf("weighbridge/%s-load", r->id),
                       .output = wb_strf("%s/load-%s.result.json", r->dir, ph->name),
                       .ndjson = wb_strf("%s/load-%s.ndjson", r->dir, ph->name),
                       .hdr = wb_strf("%s/load-%s.hdr", r->dir, ph->name),
                       .rate_per_s = rate_of(r, ph),
                       .began_ns = wb_now_ns(NULL)};
    int rc = 0;

    wb_run_phase(r, ph->name, ph->load_only ? 0 : (double)(ph->warm_up_ns + ph->for_ns) / 1e9);
    rc = start_worker(&w);
    if (rc == 0)
        rc = start_sampler(&w);
    if (rc == 0)
        rc = watch(&w);
    if (wb_path_exists(w.dir)) {
        int settled = settle(&w);

        rc = rc < 0 ? rc : settled;
    }
    if (w.sampler && rc == 0)
        rc = take_result(&w);
    if (w.sampler)
        keep_raw(&w);
    wb_sampler_free(w.sampler);
    free(w.dir);
    free(w.group);
    free(w.output);
    free(w.ndjson);
    free(w.hdr);
    return rc;
}

/* The server's own figures, before it is stopped. */
static int server_side(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++) {
        struct wb_strv env = {0};
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        int code = 0, rc = 0;

        if (!r->e->study->recipe->has_step[WB_STEP_MEASURE])
            return 0;
        wb_run_step_env(r, &r->instances[i], &env);
        rc = wb_step_run(r->e->study->recipe, WB_STEP_MEASURE, env.v, r->e->spec->cancel, &code,
                         &out, &err);
        wb_strv_release(&env);
        if (rc == 0 && code != 0)
            rc = wb_fail(&err, WB_IO, "recipe %s: step measure ended with status %d",
                         r->e->study->recipe->name, code);
        if (rc < 0) {
            wb_json_free(out);
            return wb_run_fail(r, WB_OUTCOME_SUT_ERROR, &err);
        }
        wb_json_push(r->server, out ? out : wb_json_null());
    }
    return 0;
}

/* Whether a phase is part of this run: a calibration pass needs the data and one closed-loop phase.
 */
static bool wanted(const struct wb_run *r, const struct wb_phase *ph, bool *calibrated)
{
    if (!r->calibrating || ph->load_only)
        return true;
    if (*calibrated)
        return false;
    for (size_t i = 0; i < r->arm->setup->nphases; i++)
        if (!r->arm->setup->phases[i].load_only && is_closed(&r->arm->setup->phases[i]) &&
            !is_closed(ph))
            return false; /* a closed-loop phase of the study's own will do it */
    *calibrated = true;
    return true;
}

/* Steps run in the order of their round; the result has them in the study's. */
static void sort_phases(struct wb_run *r)
{
    const struct wb_setup *s = r->arm->setup;
    wb_json *sorted = wb_json_array();

    for (size_t i = 0; i < s->nphases; i++) {
        for (size_t k = 0; k < wb_json_len(r->phases); k++) {
            wb_json *phase = wb_json_at(r->phases, k);

            if (!strcmp(wb_json_str_or(phase, "name", ""), s->phases[i].name))
                wb_json_push(sorted, wb_json_ref(phase));
        }
    }
    wb_json_free(r->phases);
    r->phases = sorted;
}

int wb_run_measure(struct wb_run *r)
{
    const struct wb_setup *s = r->arm->setup;
    WB_AUTO_FREE int *order = wb_calloc(s->nphases, sizeof(*order));
    bool calibrated = false;

    wb_plan_phase_order(r->e->plan, r->round, order);
    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[order[i]];
        int rc = 0;

        if (!wanted(r, ph, &calibrated))
            continue;
        rc = run_phase(r, ph);
        /* A missed target is a result: the other phases still say something. */
        if (rc < 0 && r->outcome != WB_OUTCOME_TARGET_MISSED) {
            sort_phases(r);
            return rc;
        }
    }
    sort_phases(r);
    wb_run_phase(r, "collect", 0);
    return server_side(r);
}
