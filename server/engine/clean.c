/* After a crash: whatever earlier engines left is found and removed, and nothing else. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/job.h"
#include "server/engine/host.h"
#include "server/engine/leftovers.h"
#include "server/engine/run.h"

struct cleaner {
    struct wb_store *store;
    const char *state_dir;
    struct wb_form_env env;
    struct wb_clean_report *report;
    struct wb_strv alive; /* campaigns whose engine lives */
};

static void left(struct cleaner *c, const char *kind, const char *id, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];
    wb_json *j = wb_json_object();

    wb_json_set_str(j, "kind", kind);
    wb_json_set_str(j, "id", id);
    wb_json_set_str(j, "why", wb_err_text(err, text, sizeof(text)));
    wb_json_push(c->report->left, j);
}

static int undo(struct cleaner *c, const struct wb_ledger_entry *e, struct wb_err *err)
{
    const struct wb_form_ops *ops = wb_form_find(e->kind);

    if (!strcmp(e->kind, "load")) {
        int rc = wb_job_stop(c->env.cgroups, e->dir, 0, 0, NULL, err);

        if (rc == 0)
            rc = wb_cgroup_destroy(c->env.cgroups, e->name, 10000000000LL, err);
        return rc;
    }
    if (!ops)
        return wb_fail(err, WB_UNSUPPORTED, "this program does not know the form '%s'", e->kind);
    return ops->destroy(&c->env, e->name, e->dir, err);
}

/* Removes what the ledger of one campaign still names. False when something stays. */
static bool undo_ledger(struct cleaner *c, struct wb_campaign_dir *dir)
{
    struct wb_ledger_entry *v = NULL;
    size_t n = 0;
    struct wb_err err = WB_ERR_INIT;
    bool all = true;

    if (wb_ledger_open_entries(dir, &v, &n, &err) < 0) {
        left(c, "ledger", wb_campaign_path(dir), &err);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (undo(c, &v[i], &err) < 0 || wb_ledger_gone(dir, v[i].name, &err) < 0) {
            left(c, v[i].kind, v[i].name, &err);
            all = false;
        } else {
            c->report->things++;
        }
    }
    wb_ledger_free(v, n);
    return all;
}

/* Interrupted attempts of a campaign become records, then their folders go. */
static bool close_runs(struct cleaner *c, struct wb_campaign_dir *dir, bool clean)
{
    WB_AUTO_FREE char *runs = wb_strf("%s/runs", wb_campaign_path(dir));
    struct wb_strv names = {0};
    struct wb_err err = WB_ERR_INIT;
    bool all = true;

    if (!wb_path_exists(runs))
        return true;
    if (wb_list_dir(runs, &names, &err) < 0) {
        left(c, "folder", runs, &err);
        return false;
    }
    for (size_t i = 0; i < names.n; i++) {
        WB_AUTO_FREE char *run_dir = wb_campaign_run_dir(dir, names.v[i]);
        WB_AUTO_FREE char *mine = wb_strf("%s/run.json", run_dir);
        WB_AUTO_JSON wb_json *j = NULL;
        int rc = 0;

        /* Killed before run.json was there: nothing had begun. A calibration pass has no record. */
        if (wb_path_exists(mine) && wb_json_read_file(mine, 65536, &j, &err) == 0 &&
            !wb_json_bool_or(j, "calibrating", false)) {
            rc = wb_record_interrupted(c->store, dir, names.v[i], clean, &err);
            if (rc == 0)
                c->report->runs++;
            if (rc == -WB_CONFLICT)
                rc = 0; /* it was recorded before the engine died */
        }
        if (rc == 0 && clean)
            rc = wb_remove_tree(run_dir, &err);
        if (rc < 0) {
            left(c, "run", names.v[i], &err);
            all = false;
        }
    }
    wb_strv_release(&names);
    return all;
}

static void clean_campaign(struct cleaner *c, const char *id)
{
    struct wb_campaign_dir *dir = NULL;
    struct wb_err err = WB_ERR_INIT;
    const char *state;
    bool clean;

    if (wb_campaign_open(c->state_dir, id, &dir, &err) < 0) {
        if (err.code == WB_CONFLICT)
            wb_strv_add(&c->alive, id);
        else
            left(c, "campaign", id, &err);
        return;
    }
    state = wb_json_str_or(wb_campaign_state(dir), "state", "running");
    if (strcmp(state, "finished") != 0) {
        clean = undo_ledger(c, dir);
        clean = close_runs(c, dir, clean) && clean;
        if (clean && (!strcmp(state, "running") || !strcmp(state, "incomplete"))) {
            c->report->campaigns++;
            wb_json_set_str(wb_campaign_state(dir), "state", "interrupted");
            if (wb_campaign_save_state(dir, &err) < 0)
                left(c, "campaign", id, &err);
        }
    }
    wb_campaign_close(dir);
}

static bool is_alive(const struct cleaner *c, const char *campaign)
{
    for (size_t i = 0; campaign && i < c->alive.n; i++)
        if (!strcmp(c->alive.v[i], campaign))
            return true;
    return false;
}

/* What the ledgers did not name: found by looking, by mark. */
static void reap_form(struct cleaner *c, const struct wb_form_ops *ops)
{
    struct wb_owned_list owned = {0};
    struct wb_err err = WB_ERR_INIT;

    if (ops->list_owned(&c->env, &owned, &err) < 0) {
        if (err.code != WB_UNAVAILABLE)
            left(c, ops->name, "everything of this form", &err);
        wb_owned_release(&owned);
        return;
    }
    for (size_t i = 0; i < owned.n; i++) {
        const struct wb_owned *o = &owned.v[i];

        if ((o->owner && strcmp(o->owner, c->env.owner) != 0) || is_alive(c, o->campaign))
            continue;
        if (ops->reap(&c->env, o, &err) < 0)
            left(c, o->kind, o->id, &err);
        else
            c->report->things++;
    }
    wb_owned_release(&owned);
}

int wb_engine_clean(struct wb_store *store, const char *state_dir, const char *docker_socket,
                    const struct wb_cancel *cancel, struct wb_clean_report *report,
                    struct wb_err *err)
{
    WB_AUTO_FREE char *who = wb_strf("clean (process %d)", (int)getpid());
    WB_AUTO_FREE char *cache = wb_strf("%s/cache", state_dir);
    struct wb_cgroup_fs *cgroups = NULL;
    struct cleaner c = {.store = store, .state_dir = state_dir, .report = report};
    struct wb_strv ids = {0};
    int lock = -1, rc;

    *report = (struct wb_clean_report){.left = wb_json_array()};
    rc = wb_host_lock(who, &lock, err);
    if (rc == 0)
        rc = wb_cgroup_fs_open("/sys/fs/cgroup", &cgroups, err);
    if (rc == 0)
        rc = wb_campaign_list(state_dir, &ids, err);
    if (rc == 0) {
        c.env = (struct wb_form_env){.owner = wb_store_controller(store),
                                     .cgroups = cgroups,
                                     .cancel = cancel,
                                     .docker_socket = docker_socket,
                                     .cache_dir = cache};
        for (size_t i = 0; i < ids.n; i++)
            clean_campaign(&c, ids.v[i]);
        for (size_t i = 0; wb_forms[i]; i++)
            reap_form(&c, wb_forms[i]);
    }
    wb_strv_release(&ids);
    wb_strv_release(&c.alive);
    wb_cgroup_fs_free(cgroups);
    if (lock >= 0)
        (void)close(lock);
    return rc;
}
