#include "server/engine/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/engine/leftovers.h"

int wb_run_fail(struct wb_run *r, enum wb_outcome o, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    if (err->code == WB_CANCELLED)
        o = WB_OUTCOME_CANCELLED;
    if (r->outcome == WB_OUTCOME_OK || (r->outcome == WB_OUTCOME_TARGET_MISSED && o != r->outcome))
        r->outcome = o;
    wb_json_push(r->reasons, wb_json_str(wb_err_text(err, text, sizeof(text))));
    return err->code ? -err->code : -WB_IO;
}

int wb_run_failf(struct wb_run *r, enum wb_outcome o, const char *fmt, ...)
{
    struct wb_err err = WB_ERR_INIT;
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    (void)wb_fail(&err, WB_IO, "%s", text);
    free(text);
    return wb_run_fail(r, o, &err);
}

void wb_run_phase(struct wb_run *r, const char *name, double planned_s)
{
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", r->id);
    wb_json_set_str(f, "phase", name);
    wb_json_set_real(f, "planned_s", planned_s);
    wb_campaign_event(r->e->dir, "run.phase", f);
}

void wb_run_raw(struct wb_run *r, const char *name, const void *data, size_t n)
{
    struct wb_raw_file *f;

    wb_grow(&r->raw, &r->raw_cap, r->nraw + 1, sizeof(*r->raw));
    f = &r->raw[r->nraw++];
    *f = (struct wb_raw_file){.name = wb_strdup(name), .data = wb_calloc(n ? n : 1, 1), .n = n};
    if (n)
        memcpy(f->data, data, n);
}

/* What an interrupted attempt needs to become a record. */
static int write_run_json(const struct wb_run *r, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/run.json", r->dir);
    WB_AUTO_JSON wb_json *j = wb_json_object();
    struct wb_buf b = WB_BUF_INIT(65536);
    int rc;

    wb_json_set_str(j, "run", r->id);
    wb_json_set_str(j, "arm", r->arm->label);
    wb_json_set_int(j, "round", r->round);
    wb_json_set_int(j, "attempt", r->attempt);
    wb_json_set_int(j, "position", r->position);
    wb_json_set_bool(j, "calibrating", r->calibrating);
    wb_json_set_int(j, "started_ms", r->started_ms);
    wb_json_pretty(j, &b);
    rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

static int64_t canary(const struct wb_run *r)
{
    int *cpus = NULL, n = 0;
    int64_t ns = 0;

    if (wb_parse_cpulist(r->e->plan->placement.database_cpus, &cpus, &n, NULL) == 0 && n > 0)
        ns = wb_cpu_canary(cpus[0]);
    free(cpus);
    return ns;
}

static void tell_start(const struct wb_run *r)
{
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", r->id);
    wb_json_set_str(f, "arm", r->arm->label);
    wb_json_set_int(f, "round", r->round);
    wb_json_set_int(f, "position", r->position);
    wb_json_set_int(f, "attempt", r->attempt);
    wb_json_set_bool(f, "calibrating", r->calibrating);
    wb_campaign_event(r->e->dir, "run.start", f);
}

static void begin(struct wb_run *r)
{
    r->outcome = WB_OUTCOME_OK;
    r->validity = WB_UNVERIFIED;
    r->teardown_clean = true;
    r->started_ms = wb_now_unix_ms(NULL);
    r->reasons = wb_json_array();
    r->phases = wb_json_array();
    r->windows = wb_json_array();
    r->placement = wb_json_array();
    r->server = wb_json_array();
    r->ninstances = r->arm->form.count;
    r->instances = wb_calloc((size_t)r->ninstances, sizeof(*r->instances));
    r->governor_before = wb_governor("/sys");
}

int wb_run_execute(struct wb_run *r, struct wb_err *err)
{
    int rc;

    begin(r);
    /* What belongs to no run stays out of its record. */
    wb_json_free(wb_campaign_take_events(r->e->dir));
    tell_start(r);
    rc = wb_mkdir_all(r->dir, 0755, err);
    if (rc == 0)
        rc = write_run_json(r, err);
    if (rc == 0)
        rc = wb_host_snapshot(&r->e->form_env, NULL, wb_campaign_path(r->e->dir), &r->before, err);
    if (rc < 0)
        return wb_wrap(err, "run %s", r->id);
    r->canary_before_ns = canary(r);
    r->state_before = wb_host_state("/proc", "/sys");
    rc = wb_run_deploy(r);
    if (rc == 0)
        rc = wb_run_measure(r);
    (void)rc; /* the outcome has it */
    r->state_after = wb_host_state("/proc", "/sys");
    wb_run_teardown(r);
    r->canary_after_ns = canary(r);
    if (r->calibrating)
        return 0;
    rc = wb_run_record(r, err);
    if (rc < 0)
        return wb_wrap(err, "record of run %s", r->id);
    return r->teardown_clean ? wb_remove_tree(r->dir, err) : 0;
}

void wb_run_release(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++) {
        free(r->instances[i].dir);
        free(r->instances[i].name);
        wb_paths_release(&r->instances[i].paths);
        wb_json_free(r->instances[i].probe);
    }
    for (size_t i = 0; i < r->nraw; i++) {
        free(r->raw[i].name);
        free(r->raw[i].data);
    }
    free(r->instances);
    free(r->raw);
    free(r->id);
    free(r->dir);
    free(r->governor_before);
    wb_json_free(r->reasons);
    wb_json_free(r->phases);
    wb_json_free(r->windows);
    wb_json_free(r->placement);
    wb_json_free(r->server);
    wb_json_free(r->before);
    wb_json_free(r->state_before);
    wb_json_free(r->state_after);
    *r = (struct wb_run){0};
}
