#include "server/engine/engine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/tools/units.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/digest.h"
#include "server/engine/clean.h"
#include "server/engine/data.h"
#include "server/engine/host.h"
#include "server/engine/looks.h"
#include "server/engine/resume.h"
#include "server/engine/run.h"
#include "server/record/pack.h"

#define DISK_MIN (256LL << 20)

static void note(void *arg, const char *text)
{
    struct wb_engine *e = arg;
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "text", text);
    if (e->dir) {
        wb_campaign_event(e->dir, "note", f);
        return;
    }
    /* Before there is a campaign: only the listener hears of it. */
    wb_json_set_str(f, "type", "note");
    if (e->spec->listener)
        e->spec->listener(e->spec->listener_arg, f);
    wb_json_free(f);
}

static void notef(struct wb_engine *e, const char *fmt, ...) WB_PRINTF(2, 3);
static void notef(struct wb_engine *e, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    note(e, text);
    free(text);
}

/* What a new campaign's state.json says before any engine has seen the host. */
static wb_json *first_state(const struct wb_plan *plan, const struct wb_store *store,
                            const char *word)
{
    wb_json *state = wb_json_object(), *identity = wb_run_identity(plan, &plan->arms[0]);

    wb_json_del(identity, "arm");
    wb_json_del(identity, "factors");
    wb_json_del(identity, "series_key");
    wb_json_set_str(state, "state", word);
    wb_json_set_str(state, "store", wb_store_path(store));
    wb_json_set_str(state, "owner", wb_store_controller(store));
    wb_json_set_str(state, "recipe_dir", plan->study->recipe->dir);
    wb_json_set(state, "identity", identity);
    return state;
}

/* What the first engine of a campaign adds. */
static void add_host(const struct wb_engine *e, wb_json *state)
{
    wb_json *host = wb_json_object();

    wb_json_set_str(host, "name", wb_json_str_or(e->facts, "hostname", "localhost"));
    wb_json_set_str(host, "class", wb_json_str_or(e->facts, "host_class", ""));
    wb_json_set(wb_json_get(state, "identity"), "host", host);
    wb_json_set(state, "programs", wb_json_copy(e->programs));
}

static int make_campaign(struct wb_engine *e, struct wb_err *err)
{
    const struct wb_engine_spec *spec = e->spec;
    WB_AUTO_JSON wb_json *plan = wb_plan_json(e->plan);
    WB_AUTO_JSON wb_json *state = first_state(e->plan, spec->store, "running");
    int rc;

    add_host(e, state);
    rc = wb_campaign_create(spec->state_dir, e->plan->campaign, e->study->resolved, plan, state,
                            &e->dir, err);
    if (rc == 0)
        wb_campaign_listen(e->dir, spec->listener, spec->listener_arg);
    return rc;
}

int wb_engine_enqueue(const struct wb_plan *plan, const struct wb_store *store,
                      const char *state_dir, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = wb_plan_json(plan);
    WB_AUTO_JSON wb_json *state = first_state(plan, store, "queued");
    struct wb_campaign_dir *dir = NULL;
    int rc =
        wb_campaign_create(state_dir, plan->campaign, plan->study->resolved, doc, state, &dir, err);

    if (rc < 0)
        return rc;
    wb_campaign_spend_reserve(dir); /* what waits does not need it */
    rc = wb_campaign_set_state(dir, "queued", true, err);
    wb_campaign_close(dir);
    return rc;
}

static const struct wb_form_prepared *prepared(const struct wb_engine *e,
                                               const struct wb_form_ops *ops)
{
    for (size_t i = 0; i < e->nforms; i++)
        if (e->forms[i].ops == ops)
            return &e->forms[i];
    return NULL;
}

/* Every form of the plan can work here and has what its arms share. */
static int prepare_forms(struct wb_engine *e, struct wb_err *err)
{
    for (size_t i = 0; i < e->plan->narms; i++)
        e->form_env.networks |= 1u << e->plan->arms[i].setup->network;
    for (size_t i = 0; i < e->plan->narms; i++) {
        const struct wb_form_ops *ops = e->plan->arms[i].form.ops;
        struct wb_form_prepared *f = &e->forms[e->nforms];

        if (prepared(e, ops))
            continue;
        if (e->nforms == WB_FORMS_MAX)
            return wb_fail(err, WB_LIMIT, "more than %d forms in one study", WB_FORMS_MAX);
        *f = (struct wb_form_prepared){.ops = ops, .facts = wb_json_object()};
        e->nforms++;
        if (ops->check(&e->form_env, err) < 0 ||
            ops->prepare(&e->form_env, &e->bits, &f->image, f->facts, err) < 0)
            return wb_wrap(err, "form %s", ops->name);
    }
    return 0;
}

/* Digests of the programs that measure: a figure is also theirs. */
static int add_programs(struct wb_engine *e, struct wb_err *err)
{
    const struct {
        const char *name, *path;
    } programs[] = {{"weighbridge", "/proc/self/exe"}, {"load", e->spec->load_program}};
    int rc = 0;

    e->programs = wb_json_object();
    for (size_t i = 0; rc == 0 && i < WB_LEN(programs); i++) {
        char hex[WB_SHA256_HEX] = "";

        rc = wb_sha256_file(programs[i].path, hex, err);
        wb_json_set_str(e->programs, programs[i].name, hex);
    }
    return rc;
}

static int read_facts(struct wb_engine *e, struct wb_err *err)
{
    struct wb_host_facts host = {0};
    int rc = wb_environment_facts(&e->facts, err);

    if (rc == 0)
        rc = add_programs(e, err);

    if (rc == 0)
        rc = wb_host_facts_read(&host, err);
    if (rc == 0)
        wb_json_set_str(e->facts, "host_class", host.host_class);
    wb_host_facts_release(&host);
    return rc;
}

static int check_disk(const struct wb_engine *e, struct wb_err *err)
{
    int64_t free_bytes = 0;
    int rc = wb_mkdir_all(e->spec->state_dir, 0755, err);

    if (rc == 0)
        rc = wb_disk_free(e->spec->state_dir, &free_bytes, err);
    if (rc == 0 && free_bytes < DISK_MIN)
        rc =
            wb_fail(err, WB_IO, "only %lld MiB are free in %s, at least %lld MiB are needed",
                    (long long)(free_bytes >> 20), e->spec->state_dir, (long long)(DISK_MIN >> 20));
    return rc;
}

/* What dead engines left goes before anything new comes; what cannot be removed, and what is
 * another owner's, keeps this host from being used. */
static int clear_host(struct wb_engine *e, struct wb_err *err)
{
    const struct wb_clean_spec spec = {.store = e->spec->store,
                                       .state_dir = e->spec->state_dir,
                                       .docker_socket = e->spec->docker_socket,
                                       .cancel = e->spec->cancel};
    struct wb_clean_report report;
    int rc = wb_quarantine_check(WB_HOST_DIR, err);

    if (rc < 0)
        return rc;
    rc = wb_clean_host(&spec, e->cgroups, &report, err);
    if (rc == 0 && report.campaigns + report.runs + report.things)
        notef(e,
              "cleaned up after an engine that was killed: %zu campaigns closed, %zu attempts "
              "recorded, %zu things removed",
              report.campaigns, report.runs, report.things);
    wb_clean_report_release(&report);
    if (rc == 0)
        rc = wb_quarantine_check(WB_HOST_DIR, err);
    return rc < 0 ? rc : wb_clean_foreign(&spec, e->cgroups, err);
}

/* The campaign's folder again, with what its earlier engines found out. */
static int open_campaign(struct wb_engine *e, struct wb_err *err)
{
    const wb_json *state, *had;
    int rc = wb_campaign_open(e->spec->state_dir, e->plan->campaign, &e->dir, err);

    if (rc < 0)
        return rc;
    wb_campaign_listen(e->dir, e->spec->listener, e->spec->listener_arg);
    state = wb_campaign_state(e->dir);
    had = wb_json_get(state, "programs");
    e->resumed = had != NULL; /* else it waited in the queue until now */
    if (!had)
        add_host(e, wb_campaign_state(e->dir));
    if (had && !wb_json_equal(had, e->programs)) {
        if (!e->spec->accept_changes)
            return wb_fail(err, WB_CONFLICT,
                           "weighbridge or wb-load is another program than the one that began "
                           "campaign %s: its rounds would not be comparable. Begin a new campaign, "
                           "or resume with --accept-changes, which marks the runs to come",
                           e->plan->campaign);
        wb_json_set_bool(e->programs, "changed", true);
        note(e, "the programs are others than those that began this campaign: the runs to come "
                "are marked");
    }
    e->calibration = wb_json_copy(wb_json_get(state, "calibration"));
    if (e->calibration)
        e->calibrated_per_s = wb_json_real_or(e->calibration, "achieved_per_s", 0);
    rc = wb_campaign_keep_reserve(e->dir, err);
    return rc < 0 ? rc : wb_campaign_set_state(e->dir, "running", false, err);
}

/* The bits of a campaign are the same from its first to its last run. */
static int same_bits(struct wb_engine *e, struct wb_err *err)
{
    wb_json *state = wb_campaign_state(e->dir);
    const char *had = wb_json_str_or(state, "bits", NULL);

    if (had && strcmp(had, e->bits_info.digest) != 0)
        return wb_fail(err, WB_CONFLICT,
                       "the installed files of %s %s are others (%.16s) than those that campaign "
                       "%s began with (%.16s)",
                       e->study->recipe->name, e->study->version->version, e->bits_info.digest,
                       e->plan->campaign, had);
    if (had)
        return 0;
    wb_json_set_str(state, "bits", e->bits_info.digest);
    return wb_campaign_save_state(e->dir, err);
}

/* The host is ours, free of leftovers, and the campaign has its folder. */
static int take_host(struct wb_engine *e, struct wb_err *err)
{
    const struct wb_engine_spec *spec = e->spec;
    WB_AUTO_FREE char *who = wb_strf("campaign %s of the store %s (process %d)", e->plan->campaign,
                                     wb_store_path(spec->store), (int)getpid());
    struct wb_host_wait wait = {
        .ns = spec->wait_ns, .cancel = spec->cancel, .note = note, .arg = e};
    int rc = check_disk(e, err);

    if (rc == 0)
        rc = wb_host_lock(WB_HOST_DIR, who, &wait, &e->host_lock, err);
    if (rc == 0)
        rc = wb_cgroup_fs_open("/sys/fs/cgroup", &e->cgroups, err);
    if (rc == 0)
        rc = clear_host(e, err);
    if (rc == 0)
        rc = read_facts(e, err);
    if (rc == 0)
        rc = spec->resume ? open_campaign(e, err) : make_campaign(e, err);
    return rc;
}

static int set_up(struct wb_engine *e, struct wb_err *err)
{
    const struct wb_engine_spec *spec = e->spec;
    int rc = take_host(e, err);

    e->cache_dir = wb_strf("%s/cache", spec->state_dir);
    if (rc == 0)
        rc = wb_host_pin(e->plan->placement.agent_cpus, err);
    if (rc == 0)
        rc = wb_mkdir_all(e->cache_dir, 0755, err);
    if (rc < 0)
        return rc;
    e->form_env = (struct wb_form_env){.owner = wb_store_controller(spec->store),
                                       .campaign = e->plan->campaign,
                                       .cgroups = e->cgroups,
                                       .cancel = spec->cancel,
                                       .docker_socket = spec->docker_socket,
                                       .cache_dir = e->cache_dir,
                                       .note = note,
                                       .note_arg = e};
    rc = wb_bits_ensure(e->study->recipe, e->study->version, spec->state_dir, spec->cancel, note, e,
                        &e->bits_info, err);
    if (rc == 0)
        rc = same_bits(e, err);
    if (rc < 0)
        return rc;
    e->bits = (struct wb_bits){.recipe = e->study->recipe->name,
                               .version = e->study->version->version,
                               .prefix = e->bits_info.prefix,
                               .digest = e->bits_info.digest,
                               .base_suite = "bookworm"};
    return prepare_forms(e, err);
}

static void tell_campaign(struct wb_engine *e)
{
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "campaign", e->plan->campaign);
    wb_json_set_str(f, "study", e->study->name);
    wb_json_set_int(f, "arms", (int64_t)e->plan->narms);
    wb_json_set_int(f, "rounds", e->plan->rounds);
    wb_json_set_int(f, "runs", (int64_t)e->plan->narms * e->plan->rounds);
    wb_json_set_real(f, "forecast_s", e->plan->forecast_s);
    wb_json_set_bool(f, "resumed", e->resumed);
    wb_campaign_event(e->dir, "campaign.start", f);
}

static void init_run(struct wb_engine *e, struct wb_run *r, const struct wb_arm *arm)
{
    *r = (struct wb_run){.e = e, .arm = arm, .attempt = 1};
    r->form = prepared(e, r->arm->form.ops);
    r->id = wb_new_id("run_");
    r->dir = wb_campaign_run_dir(e->dir, r->id);
}

/* A run without a record; what it ended with is in it. rc < 0: the campaign cannot go on. */
static int uncounted(struct wb_run *r, struct wb_engine_result *res, struct wb_err *err)
{
    int rc;

    r->calibrating = true;
    rc = wb_run_execute(r, err);
    if (!r->teardown_clean) {
        res->incomplete = true;
        return rc < 0 ? rc
                      : wb_fail(err, WB_CONFLICT,
                                "an uncounted pass of %s left something behind: the host is not "
                                "used further; see `weighbridge clean`",
                                r->arm->label);
    }
    if (rc == 0 && r->outcome == WB_OUTCOME_CANCELLED)
        rc = wb_fail(err, WB_CANCELLED, "cancelled");
    return rc;
}

static int end_uncounted(struct wb_run *r, int rc, struct wb_engine_result *res, struct wb_err *err)
{
    if (rc < 0 && r->outcome != WB_OUTCOME_OK)
        res->worst = r->outcome;
    if (r->teardown_clean && wb_remove_tree(r->dir, rc < 0 ? NULL : err) < 0 && rc == 0)
        rc = -err->code;
    wb_run_release(r);
    return rc;
}

static const char *first_reason(const struct wb_run *r, const char *otherwise)
{
    return wb_json_len(r->reasons) ? wb_json_string(wb_json_at(r->reasons, 0)) : otherwise;
}

/* The uncounted pass before round 1 that fixes absolute rates for the whole campaign. */
static int calibrate(struct wb_engine *e, struct wb_engine_result *res, struct wb_err *err)
{
    struct wb_run r;
    double achieved;
    int rc;

    if (e->plan->calibration_arm < 0 || e->calibration)
        return 0;
    if (wb_cancelled(e->spec->cancel))
        return wb_fail(err, WB_CANCELLED, "cancelled");
    init_run(e, &r, &e->plan->arms[e->plan->calibration_arm]);
    rc = uncounted(&r, res, err);
    achieved = wb_json_number(wb_load_rate(r.load_result), 0);
    if (rc == 0 && (r.outcome != WB_OUTCOME_OK || achieved <= 0))
        rc = wb_fail(err, WB_IO, "the calibration pass ended %s: %s", wb_outcome_name(r.outcome),
                     first_reason(&r, "no throughput"));
    if (rc == 0) {
        e->calibrated_per_s = achieved;
        e->calibration = wb_json_object();
        wb_json_set_str(e->calibration, "arm", r.arm->label);
        wb_json_set_str(e->calibration, "run", r.id);
        wb_json_set_real(e->calibration, "achieved_per_s", achieved);
        wb_json_set(wb_campaign_state(e->dir), "calibration", wb_json_ref(e->calibration));
        wb_campaign_event(e->dir, "campaign.calibrated", wb_json_copy(e->calibration));
        rc = wb_campaign_save_state(e->dir, err);
    }
    return end_uncounted(&r, rc, res, err);
}

/* A container or the like that comes before any native run of the same settings: the native one is
 * deployed first, for its facts. That it cannot be is no reason to stop here; its own runs will
 * tell. */
static int make_reference(struct wb_engine *e, const struct wb_arm *arm,
                          struct wb_engine_result *res, struct wb_err *err)
{
    const struct wb_arm *native = wb_parity_needs(e, arm);
    struct wb_run r;
    int rc;

    if (!native)
        return 0;
    init_run(e, &r, native);
    r.reference = true;
    rc = uncounted(&r, res, err);
    if (rc == 0 && r.outcome != WB_OUTCOME_OK) {
        WB_AUTO_FREE char *why =
            wb_strf("%s, which it is to be compared with, ended %s in an uncounted pass: %s",
                    native->label, wb_outcome_name(r.outcome), first_reason(&r, "no reason given"));

        wb_parity_without(e, native, why);
        notef(e, "parity of %s: %s", arm->label, why);
        rc = wb_campaign_save_state(e->dir, err);
    }
    return end_uncounted(&r, rc, res, err);
}

static void count(const struct wb_engine *e, enum wb_outcome outcome, enum wb_validity validity,
                  struct wb_engine_result *res)
{
    res->done++;
    if (wb_outcome_exit(outcome) > wb_outcome_exit(res->worst))
        res->worst = outcome;
    if (wb_outcome_counts(outcome) &&
        (validity == WB_VALID || (validity == WB_NOISY && e->study->accept_noisy)))
        res->counted++;
}

static int one_run(struct wb_engine *e, int round, int attempt, int position,
                   struct wb_engine_result *res, struct wb_err *err)
{
    size_t at = (size_t)(round - 1) * e->plan->narms + (size_t)(position - 1);
    const struct wb_arm *arm = &e->plan->arms[e->plan->order[at]];
    struct wb_run r;
    int rc;

    /* Nothing begins any more once a cancel was seen. */
    if (wb_cancelled(e->spec->cancel))
        return wb_fail(err, WB_CANCELLED, "cancelled");
    rc = make_reference(e, arm, res, err);
    if (rc < 0)
        return rc;
    init_run(e, &r, arm);
    r.round = round;
    r.attempt = attempt;
    r.position = position;
    rc = wb_run_execute(&r, err);
    if (rc == 0)
        count(e, r.outcome, r.validity, res);
    if (!r.teardown_clean) {
        res->incomplete = true;
        if (rc == 0)
            rc = wb_fail(err, WB_CONFLICT,
                         "run %s left something behind: the host is not used further; look at "
                         "`weighbridge show %s`, then `weighbridge clean`",
                         r.id, r.id);
    }
    if (rc == 0 && r.outcome == WB_OUTCOME_CANCELLED)
        rc = wb_fail(err, WB_CANCELLED, "cancelled");
    wb_run_release(&r);
    return rc;
}

static int one_round(struct wb_engine *e, const struct wb_rounds *past, int round,
                     struct wb_engine_result *res, struct wb_err *err)
{
    const struct wb_round *had = &past->v[round - 1];
    int rc = 0;

    if (had->finished)
        return 0;
    if (had->attempts >= WB_ATTEMPTS_MAX) {
        notef(e, "round %d was interrupted in %d attempts: it is given up", round, had->attempts);
        return 0;
    }
    if (had->attempts)
        notef(e, "round %d was interrupted: it is repeated whole as attempt %d", round,
              had->attempts + 1);
    for (int pos = 1; rc == 0 && pos <= (int)e->plan->narms; pos++)
        rc = one_run(e, round, had->attempts + 1, pos, res, err);
    return rc;
}

static int rounds(struct wb_engine *e, struct wb_engine_result *res, struct wb_err *err)
{
    struct wb_rounds past = {0};
    bool first = true, decided = false;
    int rc = wb_rounds_read(e->plan, e->spec->store, &past, err);

    /* Rounds that earlier engines of the campaign finished are part of its result. */
    for (size_t i = 0; rc == 0 && i < past.nruns; i++)
        count(e, past.runs[i].outcome, past.runs[i].validity, res);
    for (int round = 1; rc == 0 && round <= e->plan->rounds && !decided; round++) {
        size_t before = res->done;

        rc = one_round(e, &past, round, res, err);
        /* What fails for every arm will fail again: stop after the first round of it. */
        if (rc == 0 && first && res->done > before && res->worst != WB_OUTCOME_OK &&
            res->counted == 0 && !wb_outcome_counts(res->worst))
            rc = wb_fail(err, WB_IO, "no run of the first round succeeded; the last outcome was %s",
                         wb_outcome_name(res->worst));
        first = first && res->done == before;
        if (rc == 0)
            rc = wb_look_after(e->plan, e->spec->store, e->dir, round, &decided, err);
    }
    wb_rounds_release(&past);
    return rc;
}

static void finish(struct wb_engine *e, const struct wb_engine_result *res, int rc)
{
    const char *state = rc == 0               ? "finished"
                        : res->incomplete     ? "incomplete"
                        : rc == -WB_CANCELLED ? "cancelled"
                                              : "failed";
    wb_json *f = wb_json_object();
    /* After a failure a run's folder may still be there, with an attempt to be recorded. */
    bool clean = !res->incomplete && (rc == 0 || rc == -WB_CANCELLED);

    wb_campaign_spend_reserve(e->dir);
    wb_data_drop(e->dir);
    /* Not written: the engine then counts as killed, and clean looks at everything. */
    WB_IGNORE(wb_campaign_set_state(e->dir, state, clean, NULL));
    wb_json_set_str(f, "campaign", e->plan->campaign);
    wb_json_set_str(f, "state", state);
    wb_json_set_int(f, "runs_done", (int64_t)res->done);
    wb_json_set_int(f, "runs_counted", (int64_t)res->counted);
    wb_campaign_event(e->dir, "campaign.end", f);
}

/* While the host is still ours nobody measures on it. What does not succeed only costs room, and
 * the next campaign tries again. */
static void pack_store(const struct wb_engine *e)
{
    struct wb_pack_report report;

    if (e->host_lock >= 0)
        WB_IGNORE(wb_store_pack(e->spec->store, false, e->spec->cancel, &report, NULL));
}

static void release(struct wb_engine *e)
{
    for (size_t i = 0; i < e->nforms; i++) {
        free(e->forms[i].image);
        wb_json_free(e->forms[i].facts);
    }
    free(e->cache_dir);
    wb_bits_info_release(&e->bits_info);
    wb_json_free(e->facts);
    wb_json_free(e->programs);
    wb_json_free(e->calibration);
    wb_campaign_close(e->dir);
    wb_cgroup_fs_free(e->cgroups);
    if (e->host_lock >= 0)
        (void)close(e->host_lock);
}

int wb_engine_run(const struct wb_engine_spec *spec, struct wb_engine_result *result,
                  struct wb_err *err)
{
    struct wb_engine e = {
        .spec = spec, .plan = spec->plan, .study = spec->plan->study, .host_lock = -1};
    int rc;

    *result = (struct wb_engine_result){.planned = spec->plan->narms * (size_t)spec->plan->rounds};
    rc = set_up(&e, err);
    if (rc == 0) {
        tell_campaign(&e);
        rc = calibrate(&e, result, err);
    }
    if (rc == 0)
        rc = rounds(&e, result, err);
    if (e.dir)
        finish(&e, result, rc);
    pack_store(&e);
    release(&e);
    return rc;
}
