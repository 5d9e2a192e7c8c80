#include "server/engine/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/engine/host.h"
#include "server/engine/leftovers.h"

#define RUN_JSON_MAX (256u << 10)
/* With less than this left nobody gets far. */
#define DISK_FULL_BYTES (1 << 20)

/* Says that the disk below the run's folder is full, if it is. */
static bool disk_is_full(struct wb_run *r, const struct wb_err *err)
{
    const char *path = wb_campaign_path(r->e->dir);
    WB_AUTO_FREE char *text = NULL;
    int64_t left = 0;

    if (wb_disk_free(path, &left, NULL) < 0 || (left >= DISK_FULL_BYTES && err->sys != ENOSPC))
        return false;
    text = wb_strf("the disk is full: %lld KiB are free below %s", (long long)(left >> 10), path);
    wb_json_push(r->reasons, wb_json_str(text));
    return true;
}

int wb_run_fail(struct wb_run *r, enum wb_outcome o, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    if (err->code == WB_CANCELLED)
        o = WB_OUTCOME_CANCELLED;
    else if ((o == WB_OUTCOME_SUT_ERROR || o == WB_OUTCOME_HARNESS_ERROR) && disk_is_full(r, err))
        o = WB_OUTCOME_INFRA_ERROR;
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

/* What an attempt needs to become a record later. outcome NULL: it is still under way. */
static int write_run_json(const struct wb_run *r, const char *outcome, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/run.json", r->dir);
    WB_AUTO_JSON wb_json *j = wb_json_object();
    struct wb_buf b = WB_BUF_INIT(RUN_JSON_MAX);
    int rc;

    wb_json_set_str(j, "run", r->id);
    wb_json_set_str(j, "arm", r->arm->label);
    wb_json_set_int(j, "round", r->round);
    wb_json_set_int(j, "attempt", r->attempt);
    wb_json_set_int(j, "position", r->position);
    wb_json_set_bool(j, "calibrating", r->calibrating);
    wb_json_set_int(j, "started_ms", r->started_ms);
    if (outcome) {
        wb_json_set_str(j, "outcome", outcome);
        wb_json_set(j, "reasons", wb_json_ref(r->reasons));
    }
    wb_json_pretty(j, &b);
    rc = wb_buf_check(&b, "run.json", err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

void wb_run_keep(struct wb_run *r, const struct wb_err *why)
{
    (void)wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, why);
    if (r->outcome == WB_OUTCOME_OK || r->outcome == WB_OUTCOME_TARGET_MISSED)
        r->outcome = WB_OUTCOME_INFRA_ERROR; /* its figures are lost */
    wb_campaign_spend_reserve(r->e->dir);
    WB_IGNORE(write_run_json(r, wb_outcome_name(r->outcome), NULL)); /* then it is interrupted */
}

static int mark(const struct wb_run *r, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *j = wb_json_object();

    wb_json_set_str(j, "run", r->id);
    wb_json_set_str(j, "campaign", r->e->form_env.campaign);
    wb_json_set_str(j, "owner", r->e->form_env.owner);
    wb_json_set_str(j, "store", wb_store_path(r->e->spec->store));
    return wb_run_mark(WB_HOST_DIR, j, err);
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
    wb_json_set_bool(f, "reference", r->reference);
    wb_campaign_event(r->e->dir, "run.start", f);
}

static void begin(struct wb_run *r)
{
    r->outcome = WB_OUTCOME_OK;
    r->validity = WB_UNVERIFIED;
    r->teardown_clean = true;
    r->started_ms = wb_now_unix_ms(NULL);
    r->reasons = wb_json_array();
    r->left = wb_json_array();
    r->phases = wb_json_array();
    r->placement = wb_json_array();
    r->server = wb_json_array();
    r->ninstances = r->arm->form.count;
    r->instances = wb_calloc((size_t)r->ninstances, sizeof(*r->instances));
    r->governor_before = wb_governor("/sys");
}

/* Everything that has to be there before anything is made. The start is told once run.json is
 * there: whoever began has something that a record can be made of. */
static int prepare(struct wb_run *r)
{
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_mkdir_all(r->dir, 0755, &err);

    if (rc == 0)
        rc = write_run_json(r, NULL, &err);
    tell_start(r);
    if (rc == 0)
        rc = mark(r, &err);
    if (rc == 0)
        rc = wb_host_snapshot(&r->e->form_env, NULL, wb_campaign_path(r->e->dir), &r->before, &err);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

int wb_run_execute(struct wb_run *r, struct wb_err *err)
{
    int rc;

    begin(r);
    /* What belongs to no run stays out of its record. */
    wb_json_free(wb_campaign_take_events(r->e->dir));
    if (prepare(r) == 0) {
        r->canary_before_ns = canary(r);
        rc = wb_run_deploy(r);
        if (rc == 0)
            rc = wb_run_parity(r);
        if (rc == 0 && !r->reference)
            rc = wb_run_measure(r);
        if (rc == 0)
            rc = wb_run_look(r);
        (void)rc; /* the outcome has it */
        wb_run_teardown(r);
        r->canary_after_ns = canary(r);
    }
    if (r->calibrating)
        return 0;
    rc = wb_run_record(r, err);
    if (rc < 0) {
        wb_run_keep(r, err);
        return wb_wrap(err, "record of run %s", r->id);
    }
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
    free(r->data_of);
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
    wb_json_free(r->left);
    wb_json_free(r->phases);
    wb_json_free(r->placement);
    wb_json_free(r->parity);
    wb_json_free(r->server);
    wb_json_free(r->before);
    wb_json_free(r->state_before);
    wb_json_free(r->state_after);
    *r = (struct wb_run){0};
}
