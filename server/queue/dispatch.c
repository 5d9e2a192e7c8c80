#include "server/queue/dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/engine/engine.h"
#include "server/engine/resume.h"
#include "server/queue/follow.h"
#include "server/queue/leases.h"
#include "server/queue/runlog.h"

#define ROUND_NS (200 * WB_MS)
#define LOOK_MS 5000             /* between two looks at a host that was not clean */
#define START_PAUSE (3 * WB_SEC) /* before an engine that could not be started is tried again */
#define HOST_WAIT "604800"

/* A campaign that runs, as this thread knows it. */
struct run {
    char *id;
    struct wb_follow *follow;
    struct wb_runlog *tail;
    char *refused; /* why its engine could not be started, NULL: it could */
    int64_t refused_ns;
};

struct wb_dispatch {
    struct wb_dispatch_spec spec;
    struct wb_db *db;
    struct wb_cgroup_fs *cgroups;
    struct run *runs;
    size_t nruns, cap;
    pthread_t thread;
    int wake_fd;
    atomic_bool stop;
    atomic_int_fast64_t seen_ms;
    pthread_mutex_t lock; /* guards trouble */
    char *trouble;
};

static void set_trouble(struct wb_dispatch *d, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    (void)pthread_mutex_lock(&d->lock);
    free(d->trouble);
    d->trouble = err ? wb_strdup(wb_err_text(err, text, sizeof(text))) : NULL;
    (void)pthread_mutex_unlock(&d->lock);
}

char *wb_dispatch_trouble(struct wb_dispatch *d)
{
    char *copy;

    (void)pthread_mutex_lock(&d->lock);
    copy = wb_strdup(d->trouble ? d->trouble : "");
    (void)pthread_mutex_unlock(&d->lock);
    return copy;
}

int64_t wb_dispatch_age_ms(const struct wb_dispatch *d)
{
    return wb_now_ns(NULL) / WB_MS - atomic_load(&d->seen_ms);
}

static char *job_dir(const struct wb_dispatch *d, const char *id)
{
    return wb_strf("%s/service/engines/%s", d->spec.state_dir, id);
}

/* The queue and the campaign have changed. */
static void tell_state(struct wb_dispatch *d, const char *id, const char *state)
{
    WB_AUTO_FREE char *topic = wb_strf("campaign:%s", id);
    const char *const topics[] = {"queue", topic, NULL};
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "campaign", id);
    wb_json_set_str(o, "state", state);
    d->spec.tell(d->spec.arg, topics, "campaign.state", o);
}

static void tell_host(struct wb_dispatch *d, const wb_json *lease, const char *state,
                      const char *reason)
{
    static const char *const topics[] = {"hosts", "queue", NULL};
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "host", wb_json_str_or(lease, "machine", ""));
    wb_json_set_str(o, "campaign", wb_json_str_or(lease, "campaign", ""));
    wb_json_set_str(o, "state", state);
    wb_json_set_str(o, "reason", reason);
    d->spec.tell(d->spec.arg, topics, "host.state", o);
}

/* Valid until the next one is added. */
static struct run *run_of(struct wb_dispatch *d, const char *id)
{
    for (size_t i = 0; i < d->nruns; i++)
        if (!strcmp(d->runs[i].id, id))
            return &d->runs[i];
    wb_grow(&d->runs, &d->cap, d->nruns + 1, sizeof(*d->runs));
    d->runs[d->nruns] = (struct run){.id = wb_strdup(id),
                                     .follow = wb_follow_new(d->spec.state_dir, id),
                                     .tail = wb_runlog_new(d->spec.state_dir, id)};
    return &d->runs[d->nruns++];
}

static void read_on(struct wb_dispatch *d, const char *id)
{
    struct run *r = run_of(d, id);

    wb_runlog_read(r->tail, d->spec.tell, d->spec.arg);
    wb_follow_read(r->follow, d->spec.tell, d->spec.arg);
}

static void forget_run(struct wb_dispatch *d, const char *id)
{
    for (size_t i = 0; i < d->nruns; i++) {
        if (strcmp(d->runs[i].id, id) != 0)
            continue;
        free(d->runs[i].id);
        wb_follow_free(d->runs[i].follow);
        wb_runlog_free(d->runs[i].tail);
        free(d->runs[i].refused);
        d->runs[i] = d->runs[--d->nruns];
        return;
    }
}

static void note_start(struct wb_dispatch *d, const char *id, const char *refused)
{
    struct run *r = run_of(d, id);

    free(r->refused);
    r->refused = wb_strdup(refused);
    r->refused_ns = wb_now_ns(NULL);
}

static int start_engine(struct wb_dispatch *d, const char *id, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = job_dir(d, id);
    WB_AUTO_FREE char *group = wb_strf("weighbridge-service/%s", id);
    struct wb_strv argv = {0}, env = {0};
    struct wb_job_spec spec = {.dir = dir, .group = group, .cwd = d->spec.state_dir};
    int64_t starts = 0;
    int rc = wb_queue_started(d->db, id, &starts, err);

    if (rc == 0)
        rc = wb_remove_tree(dir, err);
    if (rc < 0)
        return rc;
    wb_strv_addf(&env, "PATH=%s",
                 getenv("PATH") ? getenv("PATH") : "/usr/sbin:/usr/bin:/sbin:/bin");
    wb_strv_addf(&env, "HOME=%s", getenv("HOME") ? getenv("HOME") : "/root");
    wb_strv_add(&env, "LANG=C.UTF-8");
    wb_strv_addf(&env, "WB_STATE=%s", d->spec.state_dir);
    wb_strv_addf(&env, "WB_RECIPES=%s", d->spec.recipes_dir);
    wb_strv_addf(&env, "WB_LOAD=%s", d->spec.load_program);
    wb_strv_addf(&env, "WB_DOCKER_SOCKET=%s", d->spec.docker_socket);
    wb_strv_add(&argv, d->spec.program);
    wb_strv_add(&argv, "engine");
    wb_strv_add(&argv, id);
    wb_strv_add(&argv, "--store");
    wb_strv_add(&argv, d->spec.store_path);
    wb_strv_add(&argv, "--wait-for-host");
    wb_strv_add(&argv, HOST_WAIT);
    spec.argv = argv.v;
    spec.env = env.v;
    rc = wb_job_start(d->cgroups, &spec, err);
    wb_strv_release(&argv);
    wb_strv_release(&env);
    note_start(d, id, rc < 0 ? err->root : NULL);
    return rc < 0 ? wb_wrap(err, "the engine of campaign %s", id) : 0;
}

/* A start that failed is not repeated at once; then the reason is told again. */
static int start_again(struct wb_dispatch *d, const char *id, struct wb_err *err)
{
    const struct run *r = run_of(d, id);

    if (r->refused && wb_now_ns(NULL) - r->refused_ns < START_PAUSE)
        return wb_fail(err, WB_IO, "the engine of campaign %s: %s", id, r->refused);
    return start_engine(d, id, err);
}

/* Ends what is left of an engine and takes its folder away. */
static int clear_job(struct wb_dispatch *d, const char *id, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = job_dir(d, id);
    int rc = wb_job_stop(d->cgroups, dir, 0, 0, NULL, err);

    return rc < 0 ? rc : wb_remove_tree(dir, err);
}

/* What the campaign's folder says once no engine holds it; caller frees. */
static char *folder_state(const struct wb_dispatch *d, const char *id)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", d->spec.state_dir, id);
    WB_AUTO_JSON wb_json *j = NULL;

    if (wb_json_read_file(path, 8u << 20, &j, NULL) < 0)
        return wb_strdup("running");
    return wb_strdup(wb_json_str_or(j, "state", "running"));
}

static bool is_over(const char *state)
{
    return !strcmp(state, "finished") || !strcmp(state, "failed") || !strcmp(state, "cancelled") ||
           !strcmp(state, "incomplete");
}

/* After an engine that will not be started again: nothing of it stays on the host. */
static int clean_up(struct wb_dispatch *d, struct wb_err *err)
{
    struct wb_store *store = NULL;
    struct wb_clean_report report = {0};
    int rc = wb_store_open(d->spec.store_path, false, NULL, &store, err);

    if (rc == 0) {
        const struct wb_clean_spec spec = {
            .store = store, .state_dir = d->spec.state_dir, .docker_socket = d->spec.docker_socket};

        rc = wb_engine_clean(&spec, &report, err);
        if (rc == 0 && wb_json_len(report.left))
            rc = wb_fail(err, WB_IO,
                         "%zu things of a dead engine could not be removed: see "
                         "`weighbridge clean`",
                         wb_json_len(report.left));
        wb_clean_report_release(&report);
    }
    wb_store_close(store);
    return rc;
}

static int end(struct wb_dispatch *d, const char *id, const char *state, const char *detail,
               struct wb_err *err)
{
    int rc = wb_queue_end(d->db, id, state, detail, wb_now_unix_ms(NULL), err);

    if (rc < 0)
        return rc;
    if (wb_db_changes(d->db) == 0)
        return 0; /* rounds were added meanwhile: the next look takes them */
    tell_state(d, id, state);
    forget_run(d, id);
    return clear_job(d, id, err);
}

/* The last line of what an engine said, for people. */
static char *last_line(const struct wb_dispatch *d, const char *id)
{
    WB_AUTO_FREE char *dir = job_dir(d, id);
    struct wb_buf tail = WB_BUF_INIT(4096);
    char *text, *line;

    if (wb_job_log_tail(dir, "stderr.log", 2048, &tail, NULL) < 0)
        tail.len = 0;
    while (tail.len && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == '\r'))
        tail.data[--tail.len] = '\0';
    line = tail.len ? strrchr(tail.data, '\n') : NULL;
    text = wb_strdup(line ? line + 1 : wb_buf_str(&tail));
    wb_buf_release(&tail);
    return text;
}

/* Why a campaign ends without having come to its end, for people; caller frees. */
static char *last_words(struct wb_dispatch *d, const char *id, const struct wb_job_status *status)
{
    const struct run *r = run_of(d, id);

    if (status)
        return last_line(d, id);
    return wb_strdup(r->refused ? r->refused : "its engine could not be started");
}

/* Rounds that were added while no engine could take them go into the campaign's folder. */
static int add_rounds(struct wb_dispatch *d, const wb_json *c, const char *state,
                      struct wb_err *err)
{
    const char *id = wb_json_str_or(c, "id", "");
    int64_t more = wb_json_int_or(c, "rounds_to_add", 0);
    WB_AUTO_FREE char *why = NULL;
    int rc;

    /* First of all, so that whoever goes on after a kill does not take the end of the engine before
     * them for the end of the campaign. */
    rc = clear_job(d, id, err);
    if (rc < 0)
        return rc;
    rc = wb_campaign_extend(d->spec.state_dir, id, d->spec.recipes_dir,
                            wb_json_int_or(c, "rounds", 0), err);
    if (rc < 0 && err->code != WB_CONFLICT && err->code != WB_CORRUPT)
        return rc; /* tried again */
    if (rc == 0) {
        rc = wb_queue_extended(d->db, id, more, err);
        return rc < 0 ? rc : start_engine(d, id, err);
    }
    why = wb_strdup(err->root);
    rc = wb_queue_extended(d->db, id, more, err); /* they cannot be had */
    return rc < 0 ? rc : end(d, id, strcmp(state, "finished") != 0 ? "failed" : state, why, err);
}

static int look_at(const struct wb_dispatch *d, const wb_json *lease, struct wb_err *err)
{
    const struct wb_host_pool *pool =
        wb_host_pool_find(d->spec.pools, wb_json_str_or(lease, "pool", ""));
    const char *machine = wb_json_str_or(lease, "machine", "");

    for (size_t i = 0; pool && i < pool->nhosts; i++)
        if (!strcmp(pool->hosts[i].machine, machine))
            return pool->source->look(pool, &pool->hosts[i], err);
    return 0; /* no pool has it any more: nobody can be asked */
}

/* After an engine that was killed its hosts are looked at before another one uses them. False: one
 * is not clean, which its lease tells; it is looked at again. */
static int hosts_clean(struct wb_dispatch *d, const char *id, bool *clean, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *leases = NULL;
    int64_t now = wb_now_unix_ms(NULL);
    int rc = wb_leases_list(d->db, id, &leases, err);

    *clean = true;
    for (size_t i = 0; rc == 0 && i < wb_json_len(leases); i++) {
        const wb_json *lease = wb_json_at(leases, i);
        const char *machine = wb_json_str_or(lease, "machine", ""),
                   *had = wb_json_str_or(lease, "trouble", NULL);
        int64_t ago = now - wb_json_int_or(lease, "looked_ms", 0);
        struct wb_err why = WB_ERR_INIT;

        if (had && ago >= 0 && ago < LOOK_MS) {
            *clean = false;
        } else if (look_at(d, lease, &why) < 0) {
            *clean = false;
            rc = wb_lease_trouble(d->db, machine, id, why.root, now, err);
            tell_host(d, lease, "leased", why.root);
        } else if (had) {
            rc = wb_lease_trouble(d->db, machine, id, NULL, now, err);
        }
    }
    return rc;
}

/* The engine of a running campaign has ended (status), or there is none yet (NULL). */
static int after_engine(struct wb_dispatch *d, const char *id, const struct wb_job_status *status,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *state = folder_state(d, id);
    WB_AUTO_FREE char *words = last_words(d, id, status);
    WB_AUTO_JSON wb_json *c = NULL;
    bool cancel, killed = status && (status->state != WB_JOB_EXITED || status->signal);
    int rc = wb_queue_get(d->db, id, &c, err);

    if (rc < 0)
        return rc;
    cancel = wb_json_bool_or(c, "cancel_requested", false);
    if (wb_json_int_or(c, "rounds_to_add", 0) && !cancel && (!status || !strcmp(state, "finished")))
        return add_rounds(d, c, state, err);
    if ((status && is_over(state)) || !strcmp(state, "finished"))
        return end(d, id, state, strcmp(state, "finished") != 0 ? words : NULL, err);
    if (!cancel && (!status || killed) && wb_json_int_or(c, "starts", 0) < WB_ENGINE_STARTS_MAX) {
        bool clean = true;

        rc = killed ? hosts_clean(d, id, &clean, err) : 0;
        return rc == 0 && clean ? start_again(d, id, err) : rc;
    }
    if (strcmp(state, "queued") != 0)
        rc = clean_up(d, err);
    if (rc < 0 && err->code == WB_CONFLICT)
        return rc; /* another uses the host: tried again */
    if (rc < 0)
        return end(d, id, "incomplete", err->root, err);
    if (cancel)
        return end(d, id, "cancelled", NULL, err);
    return killed ? end(d, id, "interrupted", "its engine was killed in every attempt", err)
                  : end(d, id, "failed", words, err); /* it could not begin */
}

static int look_after(struct wb_dispatch *d, const char *id, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = job_dir(d, id);
    WB_AUTO_JSON wb_json *c = NULL;
    struct wb_job_status status;
    struct wb_err why = WB_ERR_INIT;
    int rc;

    read_on(d, id);
    if (!wb_path_exists(dir))
        return after_engine(d, id, NULL, err);
    rc = wb_job_poll(dir, &status, &why);
    if (rc == -WB_NOT_FOUND) {
        if (wb_job_held(dir))
            return 0;               /* its supervisor is about to start it */
        rc = clear_job(d, id, err); /* a start that never came to its end */
        return rc < 0 ? rc : after_engine(d, id, NULL, err);
    }
    if (rc < 0) {
        *err = why;
        return rc;
    }
    if (status.state != WB_JOB_RUNNING) {
        read_on(d, id); /* its last words */
        return after_engine(d, id, &status, err);
    }
    rc = wb_queue_get(d->db, id, &c, err);
    if (rc == 0 && wb_json_bool_or(c, "cancel_requested", false) &&
        wb_follow_first_cancel(run_of(d, id)->follow))
        rc = wb_job_signal(dir, SIGTERM, err);
    return rc;
}

/* ---- leases end ---- */

/* Whether nothing of a campaign can be left on this machine; cleans up where it is not known. */
static int seen_clean(struct wb_dispatch *d, const char *id, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", d->spec.state_dir, id);
    WB_AUTO_JSON wb_json *j = NULL;

    if (!wb_path_exists(path))
        return 0; /* it never began, or its folder was taken away */
    if (wb_json_read_file(path, 8u << 20, &j, NULL) == 0 && wb_json_bool_or(j, "clean", false))
        return 0;
    return clean_up(d, err);
}

/* Hosts of campaigns that are over are looked at, and are free once they are clean. */
static int end_leases(struct wb_dispatch *d, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *list = NULL;
    int64_t now = wb_now_unix_ms(NULL);
    int rc = wb_leases_list(d->db, NULL, &list, err);

    for (size_t i = 0; rc == 0 && i < wb_json_len(list); i++) {
        const wb_json *lease = wb_json_at(list, i);
        const char *machine = wb_json_str_or(lease, "machine", ""),
                   *campaign = wb_json_str_or(lease, "campaign", ""),
                   *had = wb_json_str_or(lease, "trouble", NULL);
        struct wb_err why = WB_ERR_INIT;
        int64_t ago = now - wb_json_int_or(lease, "looked_ms", 0);

        if (had && ago >= 0 && ago < LOOK_MS)
            continue;
        if (seen_clean(d, campaign, &why) == 0 && look_at(d, lease, &why) == 0) {
            rc = wb_lease_end(d->db, machine, campaign, err);
            if (rc == 0)
                tell_host(d, lease, "free", NULL);
            continue;
        }
        rc = wb_lease_trouble(d->db, machine, campaign, why.root, now, err);
        if (rc == 0 && (!had || strcmp(had, why.root) != 0))
            tell_host(d, lease, "dirty", why.root);
    }
    return rc;
}

/* ---- the thread ---- */

/* What an ended engine left because it could not be removed, or the server was killed before: when
 * its campaign is resumed, that must not be taken for the end of the new engine. */
static int clear_old(struct wb_dispatch *d, struct wb_err *err)
{
    WB_AUTO_FREE char *engines = wb_strf("%s/service/engines", d->spec.state_dir);
    struct wb_strv ids = {0}, running = {0};
    int rc = wb_list_dir(engines, &ids, err);

    if (rc == 0) /* only this thread makes one run: the answer stays right */
        rc = wb_queue_ids(d->db, "running", &running, err);
    for (size_t i = 0; rc == 0 && i < ids.n; i++) {
        bool runs = false;

        for (size_t k = 0; k < running.n && !runs; k++)
            runs = !strcmp(running.v[k], ids.v[i]);
        if (!runs)
            rc = clear_job(d, ids.v[i], err);
    }
    wb_strv_release(&ids);
    wb_strv_release(&running);
    return rc;
}

/* What goes wrong with one campaign does not keep the others from going on; it is told last. */
static int one_round(struct wb_dispatch *d, struct wb_err *err)
{
    struct wb_strv running = {0};
    int result = 0, rc = wb_queue_ids(d->db, "running", &running, err);

    for (size_t i = 0; rc == 0 && i < running.n; i++) {
        struct wb_err why = WB_ERR_INIT;

        if (look_after(d, running.v[i], &why) == 0)
            continue;
        *err = why;
        result = -why.code;
    }
    wb_strv_release(&running);
    if (rc == 0)
        rc = clear_old(d, err);
    if (rc == 0)
        rc = end_leases(d, err);
    while (rc == 0) {
        WB_AUTO_FREE char *id = NULL;

        rc = wb_queue_take(d->db, d->spec.pools, wb_now_unix_ms(NULL), &id, err);
        if (rc < 0 || !id)
            break;
        tell_state(d, id, "running");
        rc = look_after(d, id, err);
    }
    return rc < 0 ? rc : result;
}

static void *loop(void *arg)
{
    struct wb_dispatch *d = arg;

    while (!atomic_load(&d->stop)) {
        struct wb_err err = WB_ERR_INIT;
        uint64_t count;
        int rc = one_round(d, &err);

        set_trouble(d, rc < 0 ? &err : NULL);
        d->spec.tick(d->spec.arg);
        atomic_store(&d->seen_ms, wb_now_ns(NULL) / WB_MS);
        if (wb_wait(NULL, d->wake_fd, ROUND_NS, NULL) == 1 &&
            read(d->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
            break; /* the descriptor is gone: a bug that must not become a busy loop */
    }
    return NULL;
}

/* A server that was killed while it took a study left a folder that no queue knows. */
static int forget_strays(struct wb_dispatch *d, struct wb_err *err)
{
    struct wb_strv ids = {0};
    int rc = wb_campaign_list(d->spec.state_dir, &ids, err);

    for (size_t i = 0; rc == 0 && i < ids.n; i++) {
        WB_AUTO_FREE char *state = folder_state(d, ids.v[i]);
        WB_AUTO_FREE char *dir = wb_strf("%s/campaigns/%s", d->spec.state_dir, ids.v[i]);
        WB_AUTO_JSON wb_json *known = NULL;
        struct wb_err why = WB_ERR_INIT;

        if (strcmp(state, "queued") == 0 &&
            wb_queue_get(d->db, ids.v[i], &known, &why) == -WB_NOT_FOUND)
            rc = wb_remove_tree(dir, err);
    }
    wb_strv_release(&ids);
    return rc;
}

int wb_dispatch_start(const struct wb_dispatch_spec *spec, struct wb_dispatch **out,
                      struct wb_err *err)
{
    WB_AUTO_FREE char *engines = wb_strf("%s/service/engines", spec->state_dir);
    struct wb_dispatch *d = wb_calloc(1, sizeof(*d));
    int rc = wb_mkdir_all(engines, 0700, err);

    d->spec = *spec;
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&d->lock, NULL);
    atomic_store(&d->seen_ms, wb_now_ns(NULL) / WB_MS);
    if (rc == 0 && d->wake_fd < 0)
        rc = wb_fail_sys(err, errno, "eventfd");
    if (rc == 0)
        rc = wb_queue_open(spec->db_path, &d->db, err);
    if (rc == 0)
        rc = wb_cgroup_fs_open("/sys/fs/cgroup", &d->cgroups, err);
    if (rc == 0)
        rc = forget_strays(d, err);
    if (rc == 0 && pthread_create(&d->thread, NULL, loop, d) != 0)
        rc = wb_fail(err, WB_IO, "cannot start a thread");
    if (rc < 0) {
        wb_db_close(d->db);
        wb_cgroup_fs_free(d->cgroups);
        if (d->wake_fd >= 0)
            (void)close(d->wake_fd);
        (void)pthread_mutex_destroy(&d->lock);
        free(d);
        return rc;
    }
    *out = d;
    return 0;
}

void wb_dispatch_wake(struct wb_dispatch *d)
{
    uint64_t one = 1;

    if (write(d->wake_fd, &one, sizeof(one)) < 0) {
        /* It is full: the thread is awake already. */
    }
}

void wb_dispatch_stop(struct wb_dispatch *d)
{
    if (!d)
        return;
    atomic_store(&d->stop, true);
    wb_dispatch_wake(d);
    (void)pthread_join(d->thread, NULL);
    while (d->nruns)
        forget_run(d, d->runs[0].id);
    free(d->runs);
    wb_db_close(d->db);
    wb_cgroup_fs_free(d->cgroups);
    (void)close(d->wake_fd);
    (void)pthread_mutex_destroy(&d->lock);
    free(d->trouble);
    free(d);
}
