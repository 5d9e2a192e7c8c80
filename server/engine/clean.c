/* After a crash: whatever earlier engines left is found and removed, and nothing else. */
#include "server/engine/clean.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/engine/data.h"
#include "server/engine/host.h"
#include "server/engine/leftovers.h"
#include "server/engine/prune.h"
#include "server/engine/run.h"
#include "server/engine/undo.h"

#define GROUP_ROOT "weighbridge"
#define DESTROY_NS (10 * WB_SEC)
/* A request that a killed engine had sent may still be under way in the container engine: what its
 * ledger names and is not there yet is looked for again. */
#define LATE_LOOKS 3
#define LATE_PAUSE_NS WB_SEC
/* A killed process shows for a moment longer. */
#define LOOK_PAUSE_NS (20 * WB_MS)
#define LOOK_LIMIT_NS (3 * WB_SEC)

struct cleaner {
    const struct wb_clean_spec *spec;
    bool records; /* the owner is the store's: interrupted attempts are recorded */
    struct wb_form_env env;
    struct wb_clean_report *report;
    struct wb_strv alive;           /* campaigns whose engine lives */
    const struct wb_form_ops *must; /* a form that has to be looked at */
    const char *campaign, *run;     /* the last one that was worked on, for the quarantine */
    bool late;                      /* the ledger named a container that was not there */
    bool failed;                    /* of the campaign under work */
};

static void left(struct cleaner *c, const char *kind, const char *id, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];
    wb_json *j;

    c->failed = true;
    for (size_t i = 0; i < wb_json_len(c->report->left); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(c->report->left, i), "id", ""), id))
            return; /* told already, with its reason */
    j = wb_json_object();
    wb_json_set_str(j, "kind", kind);
    wb_json_set_str(j, "id", id);
    wb_json_set_str(j, "why", wb_err_text(err, text, sizeof(text)));
    wb_json_push(c->report->left, j);
}

static void note(struct cleaner *c, const char *fmt, ...) WB_PRINTF(2, 3);
static void note(struct cleaner *c, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    wb_json_push(c->report->notes, wb_json_str(text));
    free(text);
}

/* ---- one campaign ---- */

static int undo(struct cleaner *c, const struct wb_ledger_entry *e, struct wb_err *err)
{
    const struct wb_form_ops *ops = wb_form_find(e->kind);
    struct wb_instance_status st = {0};

    if (!strcmp(e->kind, "load")) {
        int rc = wb_job_stop(c->env.cgroups, e->dir, 0, 0, NULL, err);

        return rc < 0 ? rc : wb_cgroup_destroy(c->env.cgroups, e->name, DESTROY_NS, err);
    }
    if (!ops)
        return wb_fail(err, WB_UNSUPPORTED, "this program does not know the form '%s'", e->kind);
    if (ops != &wb_form_native && ops->status(&c->env, e->name, e->dir, &st, NULL) == 0)
        c->late |= st.state == WB_INSTANCE_GONE;
    return ops->destroy(&c->env, e->name, e->dir, err);
}

/* Removes what the ledger of one campaign still names. */
static void undo_ledger(struct cleaner *c, struct wb_campaign_dir *dir)
{
    struct wb_ledger_entry *v = NULL;
    size_t n = 0;
    struct wb_err err = WB_ERR_INIT;

    if (wb_ledger_open_entries(dir, &v, &n, &err) < 0) {
        left(c, "ledger", wb_campaign_path(dir), &err);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (undo(c, &v[i], &err) < 0 || wb_ledger_gone(dir, v[i].name, &err) < 0)
            left(c, v[i].kind, v[i].name, &err);
        else
            c->report->things++;
    }
    wb_ledger_free(v, n);
}

/* Steps of recipes and what they started: by mark, each only if it still is that process. */
static void end_processes(struct cleaner *c, const char *campaign)
{
    struct wb_marked *v = NULL;
    size_t n = 0;
    struct wb_err err = WB_ERR_INIT;

    if (wb_marked_processes(c->env.owner, &v, &n, &err) < 0) {
        left(c, "processes", "/proc", &err);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        WB_AUTO_CLOSE int fd = -1;

        if (!v[i].ticks || (campaign && strcmp(v[i].campaign, campaign) != 0))
            continue;
        fd = (int)syscall(SYS_pidfd_open, v[i].pid, 0);
        if (fd < 0 || wb_process_ticks(v[i].pid) != v[i].ticks)
            continue;
        if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0 &&
            wb_wait(NULL, fd, LOOK_LIMIT_NS, NULL) >= 0)
            c->report->things++;
    }
    wb_marked_free(v, n);
}

/* Mounts below a folder of ours are ours: they would keep it from being removed. */
static void unmount_below(struct cleaner *c, const char *folder)
{
    struct wb_strv points = {0};
    struct wb_err err = WB_ERR_INIT;

    if (wb_mounts_below(folder, &points, &err) < 0)
        left(c, "mounts", folder, &err);
    for (size_t i = 0; i < points.n; i++) {
        if (umount2(points.v[i], UMOUNT_NOFOLLOW) == 0) {
            c->report->things++;
            continue;
        }
        (void)wb_fail_sys(&err, errno, "cannot unmount it");
        left(c, "mount", points.v[i], &err);
    }
    wb_strv_release(&points);
}

static void step_failed(void *arg, const char *what, const struct wb_err *err)
{
    struct cleaner *c = arg;
    char text[2 * WB_ERR_TEXT_MAX];

    /* What the recipe made is then judged by looking only. */
    if (err->code == WB_NOT_FOUND)
        note(c, "%s was not done: %s", what, wb_err_text(err, text, sizeof(text)));
    else
        left(c, "step", what, err);
}

/* An interrupted attempt becomes a record. 0 also when there is nothing to be recorded. */
static int record(struct cleaner *c, struct wb_campaign_dir *dir, const char *run,
                  struct wb_err *err)
{
    WB_AUTO_FREE char *run_dir = wb_campaign_run_dir(dir, run);
    WB_AUTO_FREE char *mine = wb_strf("%s/run.json", run_dir);
    WB_AUTO_JSON wb_json *j = NULL;
    int rc;

    /* Killed before run.json was there: nothing had begun. */
    if (!wb_path_exists(mine))
        return 0;
    rc = wb_json_read_file(mine, 1u << 20, &j, err);
    if (rc < 0)
        return wb_wrap(err, "the attempt cannot be recorded (put its file right, or remove the "
                            "folder to give the record up)");
    if (wb_json_bool_or(j, "calibrating", false))
        return 0; /* it has no record */
    rc = wb_record_interrupted(c->spec->store, dir, run, !c->failed, err);
    c->report->runs += rc == 0;
    return rc == -WB_CONFLICT ? 0 : rc;
}

static void close_run(struct cleaner *c, struct wb_campaign_dir *dir, const char *run)
{
    WB_AUTO_FREE char *run_dir = wb_campaign_run_dir(dir, run);
    struct wb_err err = WB_ERR_INIT;
    int rc;

    wb_undo_steps(run_dir, step_failed, c);
    unmount_below(c, run_dir);
    if (!c->records)
        return;
    rc = record(c, dir, run, &err);
    if (rc == 0 && !c->failed)
        rc = wb_remove_tree(run_dir, &err);
    if (rc < 0)
        left(c, "run", run, &err);
}

static void close_runs(struct cleaner *c, struct wb_campaign_dir *dir)
{
    WB_AUTO_FREE char *runs = wb_strf("%s/runs", wb_campaign_path(dir));
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;

    if (wb_path_exists(runs) && wb_list_dir(runs, &names, &err) < 0)
        left(c, "folder", runs, &err);
    for (size_t i = 0; i < names.n; i++)
        close_run(c, dir, names.v[i]);
    wb_strv_release(&names);
}

/* Whose a campaign folder is, as far as its state tells. */
static bool is_ours(struct cleaner *c, struct wb_campaign_dir *dir)
{
    const wb_json *state = wb_campaign_state(dir);
    const char *owner = wb_json_str_or(state, "owner", c->env.owner);

    if (!strcmp(owner, c->env.owner))
        return true;
    if (!wb_json_bool_or(state, "clean", false))
        note(c, "campaign %s belongs to the store %s: not touched", wb_campaign_id(dir),
             wb_json_str_or(state, "store", "of another owner"));
    return false;
}

static void close_campaign(struct cleaner *c, struct wb_campaign_dir *dir)
{
    const char *id = wb_campaign_id(dir);
    WB_AUTO_FREE char *state =
        wb_strdup(wb_json_str_or(wb_campaign_state(dir), "state", "running"));
    struct wb_err err = WB_ERR_INIT;
    bool open = !strcmp(state, "running") || !strcmp(state, "incomplete");

    c->failed = false;
    undo_ledger(c, dir);
    end_processes(c, id);
    close_runs(c, dir);
    unmount_below(c, wb_campaign_path(dir));
    wb_data_drop(dir);
    if (c->failed || !c->records)
        return;
    if (wb_campaign_set_state(dir, open ? "interrupted" : state, true, &err) < 0)
        left(c, "campaign", id, &err);
    else
        c->report->campaigns += open;
}

static void clean_campaign(struct cleaner *c, const char *id)
{
    struct wb_campaign_dir *dir = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_campaign_open(c->spec->state_dir, id, &dir, &err) < 0) {
        if (err.code == WB_CONFLICT)
            wb_strv_add(&c->alive, id);
        else
            left(c, "campaign", id, &err);
        return;
    }
    if (is_ours(c, dir) && !wb_json_bool_or(wb_campaign_state(dir), "clean", false))
        close_campaign(c, dir);
    wb_campaign_close(dir);
}

/* ---- the host ---- */

static bool is_alive(const struct cleaner *c, const char *campaign)
{
    for (size_t i = 0; campaign && i < c->alive.n; i++)
        if (!strcmp(c->alive.v[i], campaign))
            return true;
    return false;
}

/* A group that no process is in harms nobody, whoever made it. */
static bool is_empty_group(const struct cleaner *c, const struct wb_owned *o)
{
    pid_t *pids = NULL;
    size_t n = 1;
    bool empty = !strcmp(o->kind, "group") &&
                 wb_cgroup_pids(c->env.cgroups, o->id, &pids, &n, NULL) == 0 && n == 0;

    free(pids);
    return empty;
}

/* What the ledgers did not name: found by looking, by mark. */
static void reap_form(struct cleaner *c, const struct wb_form_ops *ops)
{
    struct wb_owned_list owned = {0};
    struct wb_err err = WB_ERR_INIT;

    if (ops->list_owned(&c->env, &owned, &err) < 0) {
        if (err.code != WB_UNAVAILABLE || ops == c->must)
            left(c, ops->name, "everything of this form", &err);
        wb_owned_release(&owned);
        return;
    }
    for (size_t i = 0; i < owned.n; i++) {
        struct wb_owned *o = &owned.v[i];

        wb_owned_complete(o);
        if (is_alive(c, o->campaign) || (o->owner && strcmp(o->owner, c->env.owner) != 0))
            continue;
        if (!o->owner && !is_empty_group(c, o)) {
            note(c, "%s %s is nobody's that is known here: not touched", o->kind, o->id);
            continue;
        }
        if (ops->reap(&c->env, o, &err) < 0)
            left(c, o->kind, o->id, &err);
        else
            c->report->things++;
    }
    wb_owned_release(&owned);
}

static void reap(struct cleaner *c)
{
    for (int looks = 0; looks < (c->late ? LATE_LOOKS : 1); looks++) {
        if (looks)
            WB_IGNORE(wb_wait(NULL, -1, LATE_PAUSE_NS, NULL)); /* only a pause */
        for (size_t i = 0; wb_forms[i]; i++)
            reap_form(c, wb_forms[i]);
    }
    end_processes(c, NULL);
}

/* Looks whether anything of the owner is still there, for a bounded time. */
static void look(struct cleaner *c)
{
    int64_t end = wb_now_ns(NULL) + LOOK_LIMIT_NS;
    WB_AUTO_JSON wb_json *seen = NULL;
    WB_AUTO_JSON wb_json *none = wb_json_array();
    WB_AUTO_JSON wb_json *found = NULL;
    struct wb_err err = WB_ERR_INIT;

    for (;;) {
        wb_json_free(seen);
        wb_json_free(found);
        seen = found = NULL;
        if (wb_host_snapshot(&c->env, c->must, NULL, &seen, &err) < 0) {
            left(c, "host", "looking at it", &err);
            return;
        }
        found = wb_snapshot_new(none, seen, NULL);
        if (wb_json_len(found) == 0 || c->alive.n || wb_now_ns(NULL) >= end)
            break;
        WB_IGNORE(wb_wait(NULL, -1, LOOK_PAUSE_NS, NULL)); /* only a pause */
    }
    for (size_t i = 0; i < wb_json_len(found) && !c->alive.n; i++) {
        const char *text = wb_json_string(wb_json_at(found, i)), *blank = strchr(text, ' ');
        WB_AUTO_FREE char *kind = wb_strndup(text, blank ? (size_t)(blank - text) : strlen(text));

        (void)wb_fail(&err, WB_CONFLICT, "it is still there after everything was tried");
        left(c, kind, blank ? blank + 1 : text, &err);
    }
}

/* Marks of runs of which nothing is left. */
static void drop_marks(struct cleaner *c)
{
    WB_AUTO_JSON wb_json *marks = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_run_marks(WB_HOST_DIR, &marks, &err) < 0) {
        left(c, "marks", WB_HOST_DIR, &err);
        return;
    }
    for (size_t i = 0; i < wb_json_len(marks); i++) {
        const wb_json *m = wb_json_at(marks, i);
        const char *file = wb_json_str_or(m, "file", "");

        if (strcmp(wb_json_str_or(m, "owner", ""), c->env.owner) != 0 ||
            is_alive(c, wb_json_str_or(m, "campaign", "")))
            continue;
        if (wb_run_unmark(WB_HOST_DIR, file, &err) < 0)
            left(c, "mark", file, &err);
        else
            c->report->things++;
    }
}

/* What is left holds the host back; nothing left gives it free. */
static int settle_quarantine(struct cleaner *c, const wb_json *before, struct wb_err *err)
{
    const wb_json *list = c->report->left;
    WB_AUTO_JSON wb_json *q = before ? wb_json_copy(before) : wb_json_object();
    struct wb_buf now = WB_BUF_INIT(64);
    wb_json *texts;

    if (wb_json_len(list) == 0)
        return wb_quarantine_lift(WB_HOST_DIR, c->env.owner, err);
    texts = wb_json_array();
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *l = wb_json_at(list, i);
        WB_AUTO_FREE char *text =
            wb_strf("%s %s: %s", wb_json_str_or(l, "kind", ""), wb_json_str_or(l, "id", ""),
                    wb_json_str_or(l, "why", ""));

        wb_json_push(texts, wb_json_str(text));
    }
    wb_json_set_str(q, "owner", c->env.owner);
    wb_json_set(q, "left", texts);
    if (!wb_json_get(q, "since")) {
        wb_format_time(wb_now_unix_ms(NULL), &now);
        wb_json_set_str(q, "since", wb_buf_str(&now));
        if (c->records)
            wb_json_set_str(q, "store", wb_store_path(c->spec->store));
    }
    wb_buf_release(&now);
    return wb_quarantine_set(WB_HOST_DIR, q, err);
}

/* A form that the quarantine names has to be looked at before it ends. */
static const struct wb_form_ops *form_of(const wb_json *quarantine)
{
    const wb_json *forms = wb_json_get(quarantine, "forms");

    for (size_t i = 0; i < wb_json_len(forms); i++) {
        const struct wb_form_ops *ops = wb_form_find(wb_json_string(wb_json_at(forms, i)));

        if (ops && ops != &wb_form_native)
            return ops;
    }
    return NULL;
}

void wb_clean_report_release(struct wb_clean_report *r)
{
    wb_json_free(r->left);
    wb_json_free(r->notes);
    wb_json_free(r->pruned);
    *r = (struct wb_clean_report){0};
}

int wb_clean_host(const struct wb_clean_spec *spec, const struct wb_cgroup_fs *cgroups,
                  struct wb_clean_report *report, struct wb_err *err)
{
    WB_AUTO_FREE char *cache = wb_strf("%s/cache", spec->state_dir);
    const char *controller = spec->store ? wb_store_controller(spec->store) : "";
    const char *owner = spec->owner ? spec->owner : controller;
    WB_AUTO_JSON wb_json *quarantine = wb_quarantine_of(WB_HOST_DIR, owner);
    struct cleaner c = {.spec = spec,
                        .records = spec->store && !strcmp(owner, controller),
                        .env = {.owner = owner,
                                .cgroups = cgroups,
                                .cancel = spec->cancel,
                                .docker_socket = spec->docker_socket,
                                .cache_dir = cache},
                        .report = report,
                        .must = form_of(quarantine)};
    struct wb_strv ids = {0};
    int rc;

    *report = (struct wb_clean_report){
        .left = wb_json_array(), .notes = wb_json_array(), .pruned = wb_json_array()};
    rc = wb_campaign_list(spec->state_dir, &ids, err);
    for (size_t i = 0; rc == 0 && i < ids.n; i++)
        clean_campaign(&c, ids.v[i]);
    if (rc == 0) {
        reap(&c);
        wb_cgroup_remove_empty(cgroups, GROUP_ROOT);
        look(&c);
        if (wb_json_len(report->left) == 0)
            drop_marks(&c);
        rc = settle_quarantine(&c, quarantine, err);
    }
    wb_strv_release(&ids);
    wb_strv_release(&c.alive);
    return rc;
}

/* Whether a thing of another owner runs: processes in a group, a container that is up. */
static bool runs(const struct wb_form_ops *ops, const struct wb_form_env *env,
                 const struct wb_owned *o)
{
    struct wb_form_env theirs = *env;
    struct wb_instance_status st = {.state = WB_INSTANCE_GONE};
    pid_t *pids = NULL;
    size_t n = 0;

    if (!strcmp(o->kind, "group")) {
        bool any = wb_cgroup_pids(env->cgroups, o->id, &pids, &n, NULL) == 0 && n > 0;

        free(pids);
        return any;
    }
    theirs.owner = o->owner;
    return !strcmp(o->kind, "container") && ops->status(&theirs, o->id, "", &st, NULL) == 0 &&
           st.state == WB_INSTANCE_RUNNING;
}

int wb_clean_foreign(const struct wb_clean_spec *spec, const struct wb_cgroup_fs *cgroups,
                     struct wb_err *err)
{
    const char *owner = wb_store_controller(spec->store);
    struct wb_form_env env = {.cgroups = cgroups, .docker_socket = spec->docker_socket};
    int rc = 0;

    for (size_t i = 0; rc == 0 && wb_forms[i]; i++) {
        struct wb_owned_list owned = {0};

        if (wb_forms[i]->list_owned(&env, &owned, NULL) < 0)
            owned.n = 0; /* no such engine here */
        for (size_t k = 0; rc == 0 && k < owned.n; k++) {
            struct wb_owned *o = &owned.v[k];
            WB_AUTO_JSON wb_json *mark = NULL;

            wb_owned_complete(o);
            if (!o->owner || !strcmp(o->owner, owner) || !runs(wb_forms[i], &env, o))
                continue;
            mark = o->run ? wb_run_marked(WB_HOST_DIR, o->run) : NULL;
            rc = wb_fail(err, WB_CONFLICT,
                         "%s %s is left on this host by a dead engine of another owner: clean up "
                         "with `weighbridge clean --store %s`, or, where that store is no more, "
                         "`weighbridge clean --owner %s`",
                         o->kind, o->id, wb_json_str_or(mark, "store", "STORE"), o->owner);
        }
        wb_owned_release(&owned);
    }
    return rc;
}

int wb_engine_clean(const struct wb_clean_spec *spec, struct wb_clean_report *report,
                    struct wb_err *err)
{
    WB_AUTO_FREE char *who =
        spec->store ? wb_strf("clean of the store %s (process %d)", wb_store_path(spec->store),
                              (int)getpid())
                    : wb_strf("clean for the owner %s (process %d)", spec->owner, (int)getpid());
    struct wb_host_wait wait = {.ns = spec->wait_ns, .cancel = spec->cancel};
    struct wb_cgroup_fs *cgroups = NULL;
    int lock = -1, rc;

    *report = (struct wb_clean_report){0};
    if (!spec->store && !spec->owner)
        return wb_fail(err, WB_INVALID, "neither a store nor an owner was named");
    rc = wb_host_lock(WB_HOST_DIR, who, &wait, &lock, err);
    if (rc == 0)
        rc = wb_cgroup_fs_open("/sys/fs/cgroup", &cgroups, err);
    if (rc == 0)
        rc = wb_clean_host(spec, cgroups, report, err);
    if (rc == 0 && spec->caches && wb_json_len(report->left) == 0)
        rc = wb_prune_caches(spec, spec->owner ? spec->owner : wb_store_controller(spec->store),
                             report, err);
    wb_cgroup_fs_free(cgroups);
    if (lock >= 0)
        (void)close(lock);
    return rc;
}
