#include "server/engine/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/steps.h"

#define COPY_LIMIT_NS (3600 * WB_SEC)
#define STOP_GRACE_NS (120 * WB_SEC)
#define ASK_PAUSE_NS (200 * WB_MS)
#define META_MAX (1u << 20)
#define DROP_CACHES "/proc/sys/vm/drop_caches"

static bool wanted(const struct wb_run *r)
{
    return r->arm->setup->reuse_data;
}

static char *folder_of(const struct wb_run *r)
{
    return wb_strf("%s/data/arm%td", wb_campaign_path(r->e->dir), r->arm - r->e->plan->arms);
}

/* All that the files may know of where their instances are. */
static wb_json *places(const struct wb_run *r)
{
    wb_json *list = wb_json_array();

    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance *in = &r->instances[i];
        wb_json *one = wb_json_array();

        wb_json_push(one, wb_json_str(in->host));
        wb_json_push(one, wb_json_int(in->port));
        for (size_t k = 0; k < r->e->study->recipe->nports; k++)
            wb_json_push(one, wb_json_int(in->ports[k]));
        wb_json_push(list, one);
    }
    return list;
}

static int copy(struct wb_run *r, const char *from, const char *to, struct wb_err *err)
{
    WB_AUTO_FREE char *all = wb_strf("%s/.", from);
    WB_AUTO_FREE char *target = wb_strdup(to);
    char *argv[] = {(char[]){"cp"},
                    (char[]){"-a"},
                    (char[]){"--reflink=auto"},
                    (char[]){"--"},
                    all,
                    target,
                    NULL};
    struct wb_child_spec spec = {
        .argv = argv, .limit_ns = COPY_LIMIT_NS, .cancel = r->e->spec->cancel};
    struct wb_child_result res = {0};
    int rc = wb_mkdir_all(to, 0755, err);

    if (rc == 0)
        rc = wb_child_check(&spec, &res, err);
    wb_child_release(&res);
    return rc < 0 ? wb_wrap(err, "copying the data of an arm") : 0;
}

int wb_data_take(struct wb_run *r, struct wb_instance *in)
{
    WB_AUTO_FREE char *folder = folder_of(r);
    WB_AUTO_FREE char *meta = wb_strf("%s/kept.json", folder);
    WB_AUTO_FREE char *from = wb_strf("%s/db%d", folder, in->index);
    WB_AUTO_FREE char *to = wb_strf("%s/data", in->dir);
    WB_AUTO_JSON wb_json *kept = NULL, *mine = NULL;
    struct wb_err err = WB_ERR_INIT;

    /* A reference for parity has nothing to do with data. */
    if (!wanted(r) || r->reference || !in->member ||
        wb_json_read_file(meta, META_MAX, &kept, NULL) < 0)
        return 0;
    mine = places(r);
    if (!wb_json_equal(mine, wb_json_get(kept, "places")))
        return 0;
    if (wb_remove_tree(to, &err) < 0 || copy(r, from, to, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    if (!r->data_of)
        r->data_of = wb_strdup(
            wb_json_bool_or(kept, "calibration", false) ? "" : wb_json_str_or(kept, "run", "?"));
    return 0;
}

static int stop_all(struct wb_run *r)
{
    struct wb_err err = WB_ERR_INIT;

    for (int i = 0; i < r->ninstances; i++) {
        struct wb_instance *in = &r->instances[i];

        if (!in->started)
            continue;
        if (r->form->ops->stop(&r->e->form_env, in->name, in->dir, STOP_GRACE_NS, &err) < 0 ||
            r->form->ops->destroy(&r->e->form_env, in->name, in->dir, &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    }
    return 0;
}

static int start_all(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].member && wb_run_start_instance(r, &r->instances[i]) < 0)
            return -WB_IO;
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].member &&
            (wb_run_ready(r, &r->instances[i]) < 0 || wb_run_know(r, &r->instances[i]) < 0))
            return -WB_IO;
    return 0;
}

/* The copy counts once kept.json is there. */
static int copy_all(struct wb_run *r)
{
    WB_AUTO_FREE char *folder = folder_of(r);
    WB_AUTO_FREE char *meta = wb_strf("%s/kept.json", folder);
    WB_AUTO_JSON wb_json *kept = wb_json_object();
    struct wb_buf text = WB_BUF_INIT(META_MAX);
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_remove_tree(folder, &err);

    if (rc == 0)
        rc = wb_mkdir_all(folder, 0755, &err);
    for (int i = 0; rc == 0 && i < r->ninstances; i++) {
        WB_AUTO_FREE char *from = wb_strf("%s/data", r->instances[i].dir);
        WB_AUTO_FREE char *to = wb_strf("%s/db%d", folder, i);

        if (r->instances[i].member)
            rc = copy(r, from, to, &err);
    }
    if (r->calibrating)
        wb_json_set_bool(kept, "calibration", true);
    else
        wb_json_set_str(kept, "run", r->id);
    wb_json_set(kept, "places", places(r));
    wb_json_pretty(kept, &text);
    if (rc == 0)
        rc = wb_file_write(meta, wb_buf_str(&text), text.len, 0644, &err);
    wb_buf_release(&text);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

int wb_data_keep(struct wb_run *r)
{
    if (!wanted(r))
        return 0;
    wb_run_phase(r, "keep-data", 0);
    if (stop_all(r) < 0 || copy_all(r) < 0)
        return -WB_IO;
    return start_all(r);
}

/* ---- at rest ---- */

/* Whether nothing is under way in an instance; `what` is what it said last. */
static int ask(struct wb_run *r, struct wb_instance *in, bool *rests, struct wb_buf *what)
{
    WB_AUTO_JSON wb_json *said = NULL;
    struct wb_err err = WB_ERR_INIT;
    int code, rc = wb_run_step(r, in, WB_STEP_SETTLE, &code, &said, &err);

    if (rc == -WB_CANCELLED)
        return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
    if (rc < 0 && wb_run_alive(r) < 0) /* a death explains it */
        return -WB_IO;
    if (rc < 0)
        return wb_run_fail(r, WB_OUTCOME_SUT_ERROR, &err);
    *rests = code == 0;
    wb_buf_clear(what);
    wb_json_line(said, what);
    return 0;
}

static int settle(struct wb_run *r, struct wb_instance *in)
{
    int64_t limit = r->e->study->recipe->step_limit_ns[WB_STEP_SETTLE];
    int64_t end = wb_now_ns(NULL) + limit;
    struct wb_buf what = WB_BUF_INIT(65536);
    struct wb_err err = WB_ERR_INIT;
    bool rests = false;
    int rc = ask(r, in, &rests, &what);

    while (rc == 0 && !rests) {
        if (wb_now_ns(NULL) >= end)
            rc = wb_run_failf(r, WB_OUTCOME_SUT_ERROR,
                              "instance %d did not come to rest within %.0f s: %.200s", in->index,
                              (double)limit / 1e9, wb_buf_str(&what));
        else if (wb_wait(r->e->spec->cancel, -1, ASK_PAUSE_NS, &err) < 0)
            rc = wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
        else
            rc = ask(r, in, &rests, &what);
    }
    wb_buf_release(&what);
    return rc;
}

static int drop_page_cache(struct wb_run *r)
{
    struct wb_err err = WB_ERR_INIT;

    sync(); /* dirty pages would stay */
    if (wb_file_put(DROP_CACHES, "1\n", 2, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    return 0;
}

int wb_data_settle(struct wb_run *r)
{
    if (r->e->study->recipe->has_step[WB_STEP_SETTLE]) {
        wb_run_phase(r, "settle", 0);
        for (int i = 0; i < r->ninstances; i++)
            if (r->instances[i].member && settle(r, &r->instances[i]) < 0)
                return -WB_IO;
    }
    return r->arm->setup->page_cache == WB_PAGE_CACHE_DROPPED ? drop_page_cache(r) : 0;
}

void wb_data_drop(const struct wb_campaign_dir *c)
{
    WB_AUTO_FREE char *folder = wb_strf("%s/data", wb_campaign_path(c));

    WB_IGNORE(wb_remove_tree(folder, NULL)); /* it only costs room */
}

wb_json *wb_data_json(const struct wb_run *r)
{
    const struct wb_setup *s = r->arm->setup;
    wb_json *o = wb_json_object();

    wb_json_set_bool(o, "reused", r->data_of != NULL);
    if (r->data_of && *r->data_of)
        wb_json_set_str(o, "of_run", r->data_of);
    else if (r->data_of)
        wb_json_set_reason(o, "of_run", "of the calibration pass, which has no record");
    wb_json_set_str(o, "page_cache", s->page_cache == WB_PAGE_CACHE_DROPPED ? "dropped" : "as-is");
    return o;
}
