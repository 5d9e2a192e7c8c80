/* The end of a run: everything is tried whatever fails, then the host is looked at. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/host.h"
#include "server/engine/leftovers.h"
#include "server/engine/run.h"
#include "server/engine/steps.h"

#define STOP_GRACE_NS (10 * WB_SEC)
#define LOG_MAX (4u << 20)
/* A closed listener or a reaped process may show for a moment longer. */
#define LOOK_AGAIN_NS (20 * WB_MS)
#define LOOK_LIMIT_NS (3 * WB_SEC)

static void complain(struct wb_run *r, const char *what, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];
    WB_AUTO_FREE char *all =
        wb_strf("teardown: %s: %s", what, wb_err_text(err, text, sizeof(text)));

    r->teardown_clean = false;
    wb_json_push(r->reasons, wb_json_str(all));
    wb_json_push(r->left, wb_json_str(all + strlen("teardown: ")));
}

/* One of stop, clean, unmount, wipe. A recipe's orderly stop may fail without harm: what counts
 * is what is left. */
static void try_step(struct wb_run *r, struct wb_instance *in, enum wb_step which)
{
    struct wb_strv env = {0};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *out = NULL;
    int code = 0, rc;

    if (!r->e->study->recipe->has_step[which])
        return;
    wb_run_step_env(r, in, &env);
    /* Not cancellable: a cancelled run is cleaned up, too. */
    rc = wb_step_run(r->e->study->recipe, which, env.v, NULL, &code, &out, &err);
    wb_strv_release(&env);
    if (rc == 0 && code != 0)
        rc = wb_fail(&err, WB_IO, "ended with status %d", code);
    if (rc < 0 && which != WB_STEP_STOP)
        complain(r, wb_step_name(which), &err);
}

static void keep_logs(struct wb_run *r, struct wb_instance *in)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/log", in->dir);
    WB_AUTO_FREE char *own = wb_strf("db%d.out.log", in->index);
    struct wb_strv names = {0};
    struct wb_buf b = WB_BUF_INIT(LOG_MAX);

    if (in->started &&
        r->form->ops->logs(&r->e->form_env, in->name, in->dir, LOG_MAX / 2, &b, NULL) == 0)
        wb_run_raw(r, own, wb_buf_str(&b), b.len);
    wb_buf_release(&b);
    if (wb_list_dir(dir, &names, NULL) == 0)
        for (size_t i = 0; i < names.n; i++) {
            WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
            WB_AUTO_FREE char *name = wb_strf("db%d.%s", in->index, names.v[i]);
            WB_AUTO_FREE char *data = NULL;
            size_t n;

            if (wb_safe_name(names.v[i]) && wb_file_read(path, LOG_MAX, &data, &n, NULL) == 0)
                wb_run_raw(r, name, data, n);
        }
    wb_strv_release(&names);
}

static void end_instance(struct wb_run *r, struct wb_instance *in)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t began = wb_now_ns(NULL);

    if (!in->dir)
        return;
    if (in->started) {
        /* An orderly stop goes to the port: it must not reach a stranger. */
        if (!in->port_foreign)
            try_step(r, in, WB_STEP_STOP);
        if (r->form->ops->stop(&r->e->form_env, in->name, in->dir, STOP_GRACE_NS, &err) < 0)
            complain(r, in->name, &err);
        in->stop_s = (double)(wb_now_ns(NULL) - began) / 1e9;
    }
    keep_logs(r, in);
    try_step(r, in, WB_STEP_CLEAN);
    try_step(r, in, WB_STEP_UNMOUNT);
    try_step(r, in, WB_STEP_WIPE);
    if (in->in_ledger) {
        began = wb_now_ns(NULL);
        if (r->form->ops->destroy(&r->e->form_env, in->name, in->dir, &err) < 0)
            complain(r, in->name, &err);
        else
            in->gone = true;
        in->remove_s = (double)(wb_now_ns(NULL) - began) / 1e9;
    }
}

/* Crosses out what was removed. An entry that cannot be (a full disk) only makes `clean` look once
 * more. */
static void cross_out(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].gone)
            WB_IGNORE(wb_ledger_gone(r->e->dir, r->instances[i].name, NULL));
}

/* Nobody uses this host before what is left was looked at. */
static void quarantine(struct wb_run *r)
{
    WB_AUTO_JSON wb_json *q = wb_json_object();
    struct wb_buf now = WB_BUF_INIT(64);
    struct wb_err err = WB_ERR_INIT;
    wb_json *forms = wb_json_array();

    wb_format_time(wb_now_unix_ms(NULL), &now);
    wb_json_push(forms, wb_json_str(r->form->ops->name));
    wb_json_set_str(q, "owner", r->e->form_env.owner);
    wb_json_set_str(q, "store", wb_store_path(r->e->spec->store));
    wb_json_set_str(q, "campaign", r->e->form_env.campaign);
    wb_json_set_str(q, "run", r->id);
    wb_json_set_str(q, "since", wb_buf_str(&now));
    wb_json_set(q, "forms", forms);
    wb_json_set(q, "left", wb_json_ref(r->left));
    wb_buf_release(&now);
    if (wb_quarantine_set(WB_HOST_DIR, q, &err) < 0)
        complain(r, "quarantine", &err);
}

static void add_ports(const struct wb_run *r, const struct wb_instance *in, struct wb_strv *ports)
{
    wb_strv_addf(ports, "port %d", in->port);
    for (size_t i = 0; i < r->e->study->recipe->nports; i++)
        wb_strv_addf(ports, "port %d", in->ports[i]);
}

/* Looks at the kernel and the container engine until nothing new is there, for a bounded time. */
static wb_json *look(struct wb_run *r, struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + LOOK_LIMIT_NS;
    struct wb_strv ports = {0};
    wb_json *left = NULL;

    for (int i = 0; i < r->ninstances; i++)
        if (!r->instances[i].port_foreign)
            add_ports(r, &r->instances[i], &ports);
    for (;;) {
        WB_AUTO_JSON wb_json *after = NULL;

        wb_json_free(left);
        left = NULL;
        if (wb_host_snapshot(&r->e->form_env, r->form->ops, wb_campaign_path(r->e->dir), &after,
                             err) < 0)
            break;
        left = wb_snapshot_new(r->before, after, ports.v);
        if (wb_json_len(left) == 0 || wb_now_ns(NULL) >= end)
            break;
        WB_IGNORE(wb_wait(NULL, -1, LOOK_AGAIN_NS, NULL)); /* only a pause */
    }
    wb_strv_release(&ports);
    return left;
}

void wb_run_teardown(struct wb_run *r)
{
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *left = NULL;

    wb_run_phase(r, "teardown", 0);
    r->teardown_clean = true;
    for (int i = 0; i < r->ninstances; i++)
        end_instance(r, &r->instances[i]);
    wb_run_tell_instances(r);
    left = look(r, &err);
    if (!left)
        complain(r, "looking at the host", &err);
    for (size_t i = 0; i < wb_json_len(left); i++) {
        (void)wb_fail(&err, WB_CONFLICT, "%s is left", wb_json_string(wb_json_at(left, i)));
        complain(r, "host", &err);
    }
    /* Of an unclean run the folders stay: the logs and the ledger point into them. */
    if (r->teardown_clean) {
        for (int i = 0; i < r->ninstances; i++)
            if (r->instances[i].dir && wb_remove_tree(r->instances[i].dir, &err) < 0)
                complain(r, "folder", &err);
    }
    cross_out(r);
    if (!r->teardown_clean)
        quarantine(r);
    else if (wb_run_unmark(WB_HOST_DIR, r->id, &err) < 0)
        complain(r, "mark", &err);
}
