/* A finished run becomes a record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/data.h"
#include "server/engine/run.h"
#include "server/record/summary.h"

#define RECIPE_FILE_MAX (1u << 20)
#define RUN_JSON_MAX (1u << 20)

static void set_time(wb_json *o, const char *key, int64_t unix_ms)
{
    struct wb_buf t = WB_BUF_INIT(64);

    wb_format_time(unix_ms, &t);
    wb_json_set_str(o, key, wb_buf_str(&t));
    wb_buf_release(&t);
}

/* What the worker's verdicts say about figures that are the client's or the network's, not the
 * database's. */
static wb_json *limits_of(const struct wb_run *r)
{
    wb_json *all = wb_json_array();

    for (size_t i = 0; i < wb_json_len(r->phases); i++) {
        const wb_json *w = wb_json_at(r->phases, i);
        const wb_json *load = wb_json_get(w, "load");
        const char *verdict = wb_json_str_or(load, "verdict", "");
        const wb_json *reason = wb_json_at(wb_json_get(load, "reasons"), 0);
        const char *by = !strcmp(verdict, "client-bound")       ? "client"
                         : !strcmp(verdict, "one-thread-bound") ? "client"
                         : !strcmp(verdict, "network-bound")    ? "network"
                                                                : NULL;
        wb_json *l;

        if (!by || !wb_json_bool_or(w, "measured", true))
            continue;
        l = wb_json_object();
        wb_json_set(l, "metric", wb_json_str(wb_json_str_or(w, "name", ""))); /* the whole phase */
        wb_json_set_str(l, "by", by);
        wb_json_set_str(l, "text", wb_json_str_or(reason, "text", verdict));
        wb_json_push(all, l);
    }
    return all;
}

static void set_canary(const struct wb_run *r, wb_json *result)
{
    wb_json *c;

    if (r->canary_before_ns <= 0 || r->canary_after_ns <= 0) {
        wb_json_set_reason(result, "canary", "not measured");
        return;
    }
    c = wb_json_object();
    wb_json_set_int(c, "before_ns", r->canary_before_ns);
    wb_json_set_int(c, "after_ns", r->canary_after_ns);
    wb_json_set(result, "canary", c);
}

/* State of the host before and after, as validity is judged by it. */
static void set_host_state(const struct wb_run *r, wb_json *result)
{
    WB_AUTO_FREE char *after = wb_governor("/sys");
    wb_json *governor = wb_json_object(), *state = wb_json_object();

    wb_json_set_str(governor, "before", r->governor_before);
    wb_json_set_str(governor, "after", after);
    wb_json_set(result, "governor", governor);
    wb_json_set(state, "before", r->state_before ? wb_json_ref(r->state_before) : wb_json_null());
    wb_json_set(state, "after", r->state_after ? wb_json_ref(r->state_after) : wb_json_null());
    wb_json_set(result, "host_state", state);
}

static wb_json *result_json(const struct wb_run *r)
{
    wb_json *j = wb_json_object();

    wb_json_set_int(j, "schema", 1);
    wb_json_set(j, "phases", wb_json_ref(r->phases));
    wb_json_set(j, "server", wb_json_ref(r->server));
    wb_json_set(j, "data", wb_data_json(r));
    set_canary(r, j);
    set_host_state(r, j);
    wb_json_set(j, "validity", wb_validity_rules_json(&r->e->study->validity));
    if (r->e->calibration)
        wb_json_set(j, "calibration", wb_json_ref(r->e->calibration));
    else
        wb_json_set_reason(j, "calibration", "no phase of the study needs it");
    return j;
}

static wb_json *environment_json(const struct wb_run *r)
{
    wb_json *j = wb_json_object(), *probes = wb_json_array();

    wb_json_set_int(j, "schema", 1);
    wb_json_set(j, "host", wb_json_ref(r->e->facts));
    wb_json_set_str(j, "form", r->form->ops->name);
    wb_json_set(j, "form_facts", wb_json_ref(r->form->facts));
    wb_json_set_str(j, "image", r->form->image);
    wb_json_set(j, "artifacts", wb_json_ref(r->e->bits_info.artifacts));
    wb_json_set_str(j, "bits", r->e->bits.digest);
    wb_json_set(j, "placement", wb_json_ref(r->placement));
    for (int i = 0; i < r->ninstances; i++)
        wb_json_push(probes,
                     r->instances[i].probe ? wb_json_ref(r->instances[i].probe) : wb_json_null());
    wb_json_set(j, "probes", probes);
    if (r->parity)
        wb_json_set(j, "parity", wb_json_ref(r->parity));
    else
        wb_json_set_reason(j, "parity", "the run did not come that far");
    wb_json_set_str(j, "weighbridge", WB_VERSION);
    wb_json_set(j, "programs", wb_json_ref(r->e->programs));
    return j;
}

wb_json *wb_run_identity(const struct wb_plan *plan, const struct wb_arm *arm)
{
    const struct wb_study *s = plan->study;
    wb_json *j = wb_json_object(), *factors = wb_json_object(), *recipe = wb_json_object();

    wb_json_set_int(j, "schema", 1);
    wb_json_set_str(j, "campaign", plan->campaign);
    wb_json_set_str(j, "study", s->name);
    wb_json_set_str(j, "arm", arm->label);
    for (size_t i = 0; i < arm->nvalues; i++)
        wb_json_set_str(factors, arm->values[i].factor, arm->values[i].value);
    wb_json_set(j, "factors", factors);
    wb_json_set_str(recipe, "name", s->recipe->name);
    wb_json_set_str(recipe, "revision", s->recipe->revision);
    wb_json_set_str(recipe, "version", s->version->version);
    wb_json_set_str(recipe, "digest", s->recipe->digest);
    wb_json_set(j, "recipe", recipe);
    wb_json_set(j, "subject", wb_subject_json(s));
    wb_json_set_str(j, "series_key", arm->series_key);
    return j;
}

static void set_host(const struct wb_engine *e, wb_json *summary)
{
    wb_json *host = wb_json_object();

    wb_json_set_str(host, "name", wb_json_str_or(e->facts, "hostname", "localhost"));
    wb_json_set_str(host, "class", wb_json_str_or(e->facts, "host_class", ""));
    wb_json_set(summary, "host", host);
}

/* What changes along a history: the same version with other bits is another subject. */
static void set_subject(const struct wb_run *r, wb_json *summary)
{
    const char *digest = r->e->bits.digest;

    wb_json_set_str(wb_json_get(summary, "subject"), "digest", digest && *digest ? digest : NULL);
}

static int read_recipe_files(const struct wb_recipe *recipe, struct wb_record *rec,
                             struct wb_err *err)
{
    rec->recipe_files = wb_calloc(recipe->files.n + 1, sizeof(*rec->recipe_files));
    for (size_t i = 0; i < recipe->files.n; i++) {
        WB_AUTO_FREE char *path = wb_recipe_path(recipe, recipe->files.v[i]);
        struct wb_raw_file *f = &rec->recipe_files[i];
        struct stat st;
        char *data;
        int rc = wb_file_read(path, RECIPE_FILE_MAX, &data, &f->n, err);

        if (rc < 0)
            return rc;
        f->data = data;
        f->name = wb_strdup(recipe->files.v[i]);
        if (stat(path, &st) < 0)
            return wb_fail_sys(err, errno, "cannot look at %s", path);
        f->executable = st.st_mode & S_IXUSR; /* as the recipe's digest has it */
        rec->nrecipe_files = i + 1;
    }
    return 0;
}

static wb_json *metrics_or_empty(const wb_json *result)
{
    wb_json *m = NULL;

    if (wb_summary_metrics(result, &m, NULL) < 0)
        m = wb_json_object();
    return m;
}

/* The figures themselves may say that something went wrong which no phase noticed. */
static void judge_outcome(struct wb_run *r, const wb_json *evidence)
{
    const char *word = wb_evidence_outcome(evidence);
    enum wb_outcome o;

    if (word && wb_outcome_find(word, &o) && o != WB_OUTCOME_OK)
        WB_IGNORE(wb_run_failf(r, o, "the evidence says %s", word)); /* noted in the run */
}

static bool any_short(const struct wb_run *r)
{
    for (size_t i = 0; i < wb_json_len(r->phases); i++) {
        const wb_json *p = wb_json_at(r->phases, i);

        if (wb_json_bool_or(p, "measured", true) && wb_json_bool_or(p, "windows_short", false))
            return true;
    }
    return false;
}

static void tell_end(struct wb_run *r, const wb_json *summary, const char *commit)
{
    static const char *const keys[] = {"outcome", "reasons",  "validity", "teardown",
                                       "metrics", "headline", "limits"};
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", r->id);
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const wb_json *v = wb_json_get(summary, keys[i]);

        if (v)
            wb_json_set(f, keys[i], wb_json_ref(v));
    }
    wb_json_set_str(f, "commit", commit);
    wb_campaign_event(r->e->dir, "run.end", f);
}

static int fill_record(struct wb_run *r, struct wb_record *rec, struct wb_err *err)
{
    wb_json *evidence = wb_json_array();
    int64_t ended = wb_now_unix_ms(NULL);
    wb_json *s;
    int rc;

    rec->result = result_json(r);
    rc = wb_validity_of_result(rec->result, NULL, &r->validity, evidence, err);
    if (rc < 0) {
        wb_json_free(evidence);
        return rc;
    }
    if (r->outcome == WB_OUTCOME_OK)
        judge_outcome(r, evidence);
    rec->run = wb_strdup(r->id);
    rec->started_ms = r->started_ms;
    rec->study = wb_json_ref(r->e->study->resolved);
    rec->plan = wb_plan_json(r->e->plan);
    rec->environment = environment_json(r);
    s = rec->summary = wb_run_identity(r->e->plan, r->arm);
    wb_json_set_str(s, "id", r->id);
    wb_json_set_int(s, "round", r->round);
    wb_json_set_int(s, "attempt", r->attempt);
    wb_json_set_int(s, "position", r->position);
    set_time(s, "started_at", r->started_ms);
    set_time(s, "ended_at", ended);
    wb_json_set_real(s, "seconds", (double)(ended - r->started_ms) / 1000);
    wb_json_set_str(s, "outcome", wb_outcome_name(r->outcome));
    wb_json_set(s, "reasons", wb_json_ref(r->reasons));
    wb_json_set_str(s, "validity", wb_validity_name(r->validity));
    wb_json_set(s, "evidence", evidence);
    wb_json_set_str(s, "teardown", r->teardown_clean ? "clean" : "incomplete");
    set_host(r->e, s);
    set_subject(r, s);
    wb_json_set_bool(s, "windows_short", any_short(r));
    wb_json_set(s, "metrics", metrics_or_empty(rec->result));
    wb_json_set(s, "limits", limits_of(r));
    if (r->e->plan->placement.shared)
        wb_json_set_bool(s, "placement_shared", true);
    rec->events = wb_campaign_take_events(r->e->dir);
    return read_recipe_files(r->e->study->recipe, rec, err);
}

int wb_run_record(struct wb_run *r, struct wb_err *err)
{
    struct wb_record rec = {0};
    char commit[41];
    int rc = fill_record(r, &rec, err);

    if (rc == 0) {
        rec.raw = r->raw;
        rec.nraw = r->nraw;
        rc = wb_store_commit(r->e->spec->store, &rec, commit, err);
        rec.raw = NULL;
        rec.nraw = 0;
    }
    if (rc == 0)
        tell_end(r, rec.summary, commit);
    wb_record_release(&rec);
    return rc;
}

/* What is known of a campaign whose state was lost: the plan has most of it. */
static wb_json *identity_of(const struct wb_campaign_dir *dir, const wb_json *plan)
{
    const wb_json *kept = wb_json_get(wb_campaign_state(dir), "identity");
    const wb_json *recipe = wb_json_get(plan, "recipe");
    wb_json *j, *host;

    if (kept)
        return wb_json_copy(kept);
    j = wb_json_object();
    host = wb_json_object();
    wb_json_set_str(host, "name", "localhost");
    wb_json_set_str(host, "class", wb_json_str_or(plan, "host_class", ""));
    wb_json_set(j, "host", host);
    wb_json_set_str(j, "study", wb_json_str_or(plan, "study", ""));
    if (recipe)
        wb_json_set(j, "recipe", wb_json_ref(recipe));
    return j;
}

/* Everything of an interrupted attempt that can still be told. */
static int fill_interrupted(struct wb_campaign_dir *dir, const char *run, const wb_json *mine,
                            struct wb_record *rec, struct wb_err *err)
{
    const char *arm = wb_json_str_or(mine, "arm", "");
    const wb_json *arms;
    int rc = wb_campaign_read(dir, &rec->study, &rec->plan, err);

    if (rc < 0)
        return rc;
    rec->run = wb_strdup(run);
    rec->started_ms = wb_json_int_or(mine, "started_ms", wb_now_unix_ms(NULL));
    rec->summary = identity_of(dir, rec->plan);
    arms = wb_json_get(rec->plan, "arms");
    for (size_t i = 0; i < wb_json_len(arms); i++) {
        const wb_json *a = wb_json_at(arms, i);

        if (strcmp(wb_json_str_or(a, "label", ""), arm) != 0)
            continue;
        wb_json_set(rec->summary, "factors", wb_json_ref(wb_json_get(a, "factors")));
        wb_json_set_str(rec->summary, "series_key", wb_json_str_or(a, "series_key", ""));
    }
    rec->result = wb_json_object();
    wb_json_set_int(rec->result, "schema", 1);
    wb_json_set(rec->result, "phases", wb_json_array());
    rec->environment = wb_json_object();
    wb_json_set_int(rec->environment, "schema", 1);
    wb_json_set_str(rec->environment, "weighbridge", WB_VERSION);
    rec->events = wb_campaign_events_of(dir, run);
    return 0;
}

/* Outcome and reasons: those that were kept, else that the engine was interrupted, and where. */
static void set_end(wb_json *s, const wb_json *mine, const wb_json *events)
{
    const char *kept = wb_json_str_or(mine, "outcome", NULL);
    const wb_json *kept_reasons = wb_json_get(mine, "reasons");
    const char *phase = NULL;
    wb_json *reasons;

    for (size_t i = 0; i < wb_json_len(events); i++)
        phase = wb_json_str_or(wb_json_at(events, i), "phase", phase);
    if (kept && kept_reasons) {
        wb_json_set_str(s, "outcome", kept);
        wb_json_set(s, "reasons", wb_json_copy(kept_reasons));
        return;
    }
    reasons = wb_json_array();
    wb_json_push(reasons, wb_json_str("the engine was interrupted during this attempt"));
    if (phase) {
        WB_AUTO_FREE char *text = wb_strf("the last phase that began was %s", phase);

        wb_json_push(reasons, wb_json_str(text));
    }
    wb_json_set_str(s, "outcome", wb_outcome_name(WB_OUTCOME_HARNESS_ERROR));
    wb_json_set(s, "reasons", reasons);
    wb_json_set_bool(s, "interrupted", true);
}

static bool is_recorded(struct wb_store *store, const char *run)
{
    WB_AUTO_JSON wb_json *summary = NULL;

    return wb_store_read(store, run, "summary", &summary, NULL) == 0;
}

int wb_record_interrupted(struct wb_store *store, struct wb_campaign_dir *dir, const char *run,
                          bool teardown_clean, struct wb_err *err)
{
    WB_AUTO_FREE char *run_dir = wb_campaign_run_dir(dir, run);
    WB_AUTO_FREE char *path = wb_strf("%s/run.json", run_dir);
    WB_AUTO_JSON wb_json *mine = NULL;
    struct wb_record rec = {0};
    int64_t now = wb_now_unix_ms(NULL);
    wb_json *s;
    char commit[41];
    int rc;

    if (is_recorded(store, run))
        return wb_fail(err, WB_CONFLICT, "run %s is recorded already", run);
    rc = wb_json_read_file(path, RUN_JSON_MAX, &mine, err);
    if (rc == 0)
        rc = fill_interrupted(dir, run, mine, &rec, err);
    if (rc < 0) {
        wb_record_release(&rec);
        return rc;
    }
    s = rec.summary;
    wb_json_set_int(s, "schema", 1);
    wb_json_set_str(s, "id", run);
    wb_json_set_str(s, "campaign", wb_campaign_id(dir));
    wb_json_set_str(s, "arm", wb_json_str_or(mine, "arm", ""));
    wb_json_set_int(s, "round", wb_json_int_or(mine, "round", 0));
    wb_json_set_int(s, "attempt", wb_json_int_or(mine, "attempt", 1));
    wb_json_set_int(s, "position", wb_json_int_or(mine, "position", 0));
    set_time(s, "started_at", rec.started_ms);
    set_time(s, "ended_at", now);
    wb_json_set_real(s, "seconds", (double)(now - rec.started_ms) / 1000);
    set_end(s, mine, rec.events);
    wb_json_set_str(s, "validity", wb_validity_name(WB_UNVERIFIED));
    wb_json_set(s, "evidence", wb_json_array());
    wb_json_set_str(s, "teardown", teardown_clean ? "clean" : "incomplete");
    wb_json_set_bool(s, "windows_short", true);
    wb_json_set(s, "metrics", wb_json_object());
    wb_json_set(s, "limits", wb_json_array());
    rc = wb_store_commit(store, &rec, commit, err);
    if (rc == -WB_CONFLICT && !is_recorded(store, run) && err)
        err->code = WB_UNAVAILABLE; /* another writer held the store too long */
    wb_record_release(&rec);
    return rc == -WB_CONFLICT && err ? -err->code : rc;
}
