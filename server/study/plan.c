#include "server/study/plan.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/rng.h"
#include "server/study/parts.h"

/* Forecast: what a run costs beside its phases (deploy, probes, stop, record), how fast data is
 * written, and what a form costs once per campaign. */
#define RUN_OVERHEAD_S 1.5
#define INSTANCE_OVERHEAD_S 0.5 /* of each instance after the first */
#define LOAD_BYTES_PER_S 80e6
#define LOAD_ROWS_PER_S 50e3
#define OPERATIONS_GUESS_PER_S 100e3 /* of phases that are as long as their operations take */
#define PREPARE_S 10.0

/* Random numbers of their own for the order of steps, so that they do not follow that of arms. */
#define STEPS_STREAM 0x7374657000000000ULL

char *wb_new_id(const char *prefix)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t ms = (uint64_t)wb_now_unix_ms(NULL) & 0xffffffffffffULL;
    uint64_t hi = wb_random_seed(), lo = wb_random_seed();
    char text[27];

    /* 10 characters of time, 16 of randomness, 5 bits each. */
    for (int i = 9; i >= 0; i--, ms >>= 5)
        text[i] = alphabet[ms & 31];
    for (int i = 17; i >= 10; i--, hi >>= 5)
        text[i] = alphabet[hi & 31];
    for (int i = 25; i >= 18; i--, lo >>= 5)
        text[i] = alphabet[lo & 31];
    text[26] = '\0';
    return wb_strf("%s%s", prefix, text);
}

static void make_order(struct wb_plan *plan)
{
    struct wb_rng rng;

    plan->order = wb_calloc((size_t)plan->rounds * plan->narms, sizeof *plan->order);
    wb_rng_seed(&rng, plan->seed);
    for (int r = 0; r < plan->rounds; r++) {
        int *round = plan->order + (size_t)r * plan->narms;

        for (size_t i = 0; i < plan->narms; i++)
            round[i] = (int)i;
        wb_rng_shuffle(&rng, round, plan->narms);
    }
}

double wb_phase_seconds(const struct wb_phase *ph)
{
    double once = (double)(ph->warm_up_ns + ph->for_ns) / 1e9;

    return ph->pace == WB_PACE_SEARCH ? WB_SEARCH_POINTS * once : once;
}

static double run_seconds(const struct wb_arm *a)
{
    const struct wb_setup *s = a->setup;
    double t = RUN_OVERHEAD_S + INSTANCE_OVERHEAD_S * (a->form.count - 1);

    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];
        double by_bytes =
            (double)s->rows * (double)(s->key_bytes + s->value_bytes) / LOAD_BYTES_PER_S;
        double by_rows = (double)s->rows / LOAD_ROWS_PER_S;

        if (ph->load_only)
            t += by_bytes > by_rows ? by_bytes : by_rows;
        else
            t += wb_phase_seconds(ph) + (double)ph->operations / OPERATIONS_GUESS_PER_S;
    }
    return t;
}

/* The arm whose measured maximum the calibrated rates are shares of: the one that others are
 * judged against. */
static int calibration_arm(const struct wb_plan *plan)
{
    for (size_t i = 0; i < plan->narms; i++) {
        const struct wb_setup *s = plan->arms[i].setup;

        for (size_t k = 0; k < s->nphases; k++) {
            if (s->phases[k].pace == WB_PACE_CALIBRATED)
                return plan->ncontrasts > 0 ? plan->contrasts[0].against : 0;
        }
    }
    return -1;
}

static double forecast(const struct wb_plan *plan)
{
    double t = PREPARE_S;

    for (size_t i = 0; i < plan->narms; i++)
        t += plan->rounds * run_seconds(&plan->arms[i]);
    return plan->calibration_arm < 0 ? t : t + run_seconds(&plan->arms[plan->calibration_arm]);
}

struct wb_plan *wb_plan_make(const struct wb_study *study, const struct wb_host_facts *host,
                             uint64_t seed, struct wb_problems *p)
{
    struct wb_plan *plan = wb_calloc(1, sizeof *plan);
    size_t before = p->n + p->dropped;

    plan->study = study;
    wb_arms_make(study, &plan->arms, &plan->narms);
    wb_placement_make(study, host, &plan->placement, p);
    if (p->n + p->dropped == before)
        wb_parts_make(study, host, &plan->placement, plan->arms, plan->narms, p);
    if (p->n + p->dropped > before) {
        wb_plan_free(plan);
        return NULL;
    }
    plan->campaign = wb_new_id("cmp_");
    plan->host_class = wb_strdup(host->host_class);
    plan->rounds = (int)study->rounds;
    plan->seed = seed ? seed : study->seed;
    while (plan->seed == 0)
        plan->seed = wb_random_seed() >> 11; /* 53 bits: any reader of JSON or YAML keeps it */
    for (size_t i = 0; i < plan->narms; i++)
        wb_series_key(study, host, &plan->placement, &plan->arms[i]);
    wb_contrasts_make(study, plan->arms, plan->narms, &plan->contrasts, &plan->ncontrasts);
    wb_looks_make(plan);
    make_order(plan);
    plan->calibration_arm = calibration_arm(plan);
    plan->forecast_s = forecast(plan);
    return plan;
}

void wb_plan_phase_order(const struct wb_plan *plan, int round, int *out)
{
    const struct wb_setup *s = wb_study_setup(plan->study);
    struct wb_rng rng;
    size_t i = 0;

    wb_rng_seed(&rng, wb_mix64(plan->seed, STEPS_STREAM + (uint64_t)round));
    while (i < s->nphases) {
        const char *whole = s->phases[i].steps_of;
        size_t from = i;

        do
            out[i] = (int)i;
        while (++i < s->nphases && whole && s->phases[i].steps_of &&
               strcmp(s->phases[i].steps_of, whole) == 0);
        wb_rng_shuffle(&rng, out + from, i - from);
    }
}

/* ---- warnings ---- */

static void warn(wb_json *list, const char *code, char *text)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "code", code);
    wb_json_set_str(o, "text", text);
    wb_json_push(list, o);
    free(text);
}

static void warn_lonely_arms(const struct wb_plan *plan, wb_json *list)
{
    for (size_t i = 0; plan->narms > 1 && i < plan->narms; i++) {
        bool judged = false;

        for (size_t k = 0; k < plan->ncontrasts; k++)
            judged =
                judged || plan->contrasts[k].arm == (int)i || plan->contrasts[k].against == (int)i;
        if (!judged)
            warn(list, "no-contrast",
                 wb_strf("no contrast has the arm '%s': it is measured, but not judged",
                         plan->arms[i].label));
    }
}

static void warn_quota(const struct wb_plan *plan, wb_json *list)
{
    for (size_t i = 0; i < plan->narms; i++) {
        const struct wb_arm *a = &plan->arms[i];

        if (a->cpu_quota > 0 && a->parts[0].cpu_quota >= a->cpus_per_instance)
            warn(list, "quota-without-effect",
                 wb_strf("cpu_quota %g of '%s' limits nothing: an instance has %d CPU%s",
                         a->cpu_quota, a->label, a->cpus_per_instance,
                         a->cpus_per_instance == 1 ? "" : "s"));
    }
}

/* Whether any arm of this kind is on a network that native instances do not have. */
static void warn_network(const struct wb_plan *plan, wb_json *list)
{
    const char *other = NULL;
    bool native = false;

    for (size_t i = 0; i < plan->narms; i++) {
        const struct wb_arm *a = &plan->arms[i];

        native = native || a->form.ops == &wb_form_native;
        if (a->setup->network != WB_NETWORK_HOST)
            other = wb_network_names[a->setup->network];
    }
    if (native && other)
        warn(list, "network-native",
             wb_strf("network %s is of containers; native instances are on the host's network",
                     other));
}

wb_json *wb_plan_warnings(const struct wb_plan *plan)
{
    wb_json *list = wb_json_array();

    if (plan->rounds < WB_ROUNDS_LOOK)
        warn(list, "few-rounds",
             wb_strf("%d round%s: a verdict needs %d, contrasts will be 'insufficient'",
                     plan->rounds, plan->rounds == 1 ? "" : "s", WB_ROUNDS_LOOK));
    if (plan->study->rounds_least > 0 && plan->nlooks == 0)
        warn(list, "nothing-to-decide",
             wb_strf("until: decided, but there is no contrast to decide: all %d rounds are run",
                     plan->rounds));
    if (plan->nlooks == 1)
        warn(list, "one-look",
             wb_strf("with %zu contrasts nothing can be decided before the last of %d rounds: "
                     "give at_most more rounds, or a plain number",
                     plan->ncontrasts, plan->rounds));
    if (plan->placement.shared)
        warn(list, "shared-placement",
             wb_strdup("database and load share CPUs: every result is marked, and what the load "
                       "takes is missing in the database's figures"));
    warn_lonely_arms(plan, list);
    warn_quota(plan, list);
    warn_network(plan, list);
    if (plan->placement.core_split)
        warn(list, "core-split",
             wb_strf("database (CPU %s) and load (CPU %s) have threads of one physical core: they "
                     "slow each other down",
                     plan->placement.database_cpus, plan->placement.load_cpus));
    return list;
}

/* ---- JSON ---- */

/* The words of the setup, and what every instance gets of it. */
static void setup_json(const struct wb_arm *a, wb_json *o)
{
    static const char *const shares[] = {"host", "instance"}, *const limits[] = {"same", "none"};
    static const char *const cpus[] = {"shared", "disjoint"};
    wb_json *parts = wb_json_array();

    wb_json_set_str(o, "topology", a->setup->topology);
    wb_json_set_str(o, "network", wb_network_names[a->setup->network]);
    wb_json_set_str(o, "share", shares[a->setup->share]);
    wb_json_set_str(o, "limits", limits[a->setup->limits]);
    wb_json_set_str(o, "cpus", cpus[a->setup->cpus]);
    wb_json_set_int(o, "cpus_per_instance", a->cpus_per_instance);
    wb_json_set_int(o, "memory_bytes", a->setup->memory_bytes);
    for (int i = 0; i < a->form.count; i++) {
        wb_json *part = wb_json_object();

        wb_json_set_str(part, "cpus", a->parts[i].cpus);
        wb_json_set_str(part, "mems", a->parts[i].mems);
        wb_json_set_int(part, "memory_bytes", a->parts[i].memory_bytes);
        if (a->parts[i].cpu_quota > 0)
            wb_json_set_real(part, "cpu_quota", a->parts[i].cpu_quota);
        wb_json_push(parts, part);
    }
    wb_json_set(o, "instances", parts);
}

static wb_json *arm_json(const struct wb_plan *plan, const struct wb_arm *a)
{
    wb_json *o = wb_json_object(), *factors = wb_json_object(), *settings = wb_json_object();
    WB_AUTO_JSON wb_json *common = wb_workload_json(wb_study_setup(plan->study));
    WB_AUTO_JSON wb_json *own = wb_workload_json(a->setup);

    for (size_t i = 0; i < a->nvalues; i++)
        wb_json_set_str(factors, a->values[i].factor, a->values[i].value);
    for (size_t i = 0; i < a->nsettings; i++)
        wb_json_set_str(settings, a->settings[i].name, a->settings[i].value);
    wb_json_set_str(o, "label", a->label);
    wb_json_set_str(o, "form", a->form.ops->name);
    wb_json_set_int(o, "count", a->form.count);
    wb_json_set(o, "factors", factors);
    wb_json_set(o, "settings", settings);
    if (a->cpu_quota > 0)
        wb_json_set_real(o, "cpu_quota", a->cpu_quota);
    else
        wb_json_set_reason(o, "cpu_quota", "no quota");
    setup_json(a, o);
    if (!wb_json_equal(common, own)) /* else it is the plan's */
        wb_json_set(o, "workload", wb_json_ref(own));
    wb_json_set_str(o, "series_key", a->series_key);
    return o;
}

static wb_json *contrast_json(const struct wb_plan *plan, const struct wb_contrast *c)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", c->name);
    wb_json_set_str(o, "about", c->about);
    wb_json_set_str(o, "arm", plan->arms[c->arm].label);
    wb_json_set_str(o, "against", plan->arms[c->against].label);
    wb_json_set_str(o, "metric", c->metric);
    wb_json_set_str(o, "better", c->higher_is_better ? "higher" : "lower");
    wb_json_set_bool(o, "primary", c->primary);
    return o;
}

static wb_json *order_json(const struct wb_plan *plan)
{
    wb_json *rounds = wb_json_array();

    for (int r = 0; r < plan->rounds; r++) {
        wb_json *round = wb_json_array();

        for (size_t i = 0; i < plan->narms; i++) {
            int arm = plan->order[(size_t)r * plan->narms + i];

            wb_json_push(round, wb_json_str(plan->arms[arm].label));
        }
        wb_json_push(rounds, round);
    }
    return rounds;
}

static wb_json *looks_json(const struct wb_plan *plan)
{
    wb_json *looks = wb_json_array();

    for (int i = 0; i < plan->nlooks; i++) {
        wb_json *look = wb_json_object();

        wb_json_set_int(look, "rounds", plan->looks[i].rounds);
        wb_json_set_real(look, "alpha", plan->looks[i].alpha);
        wb_json_push(looks, look);
    }
    return looks;
}

/* Names of the phases, round by round. */
static wb_json *steps_json(const struct wb_plan *plan)
{
    const struct wb_setup *s = wb_study_setup(plan->study);
    WB_AUTO_FREE int *order = wb_calloc(s->nphases, sizeof *order);
    wb_json *rounds = wb_json_array();

    for (int r = 1; r <= plan->rounds; r++) {
        wb_json *round = wb_json_array();

        wb_plan_phase_order(plan, r, order);
        for (size_t i = 0; i < s->nphases; i++)
            wb_json_push(round, wb_json_str(s->phases[order[i]].name));
        wb_json_push(rounds, round);
    }
    return rounds;
}

static bool has_steps(const struct wb_plan *plan)
{
    const struct wb_setup *s = wb_study_setup(plan->study);

    for (size_t i = 0; i < s->nphases; i++) {
        if (s->phases[i].steps_of)
            return true;
    }
    return false;
}

static wb_json *placement_json(const struct wb_placement *pl)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "database_cpus", pl->database_cpus);
    wb_json_set_str(o, "load_cpus", pl->load_cpus);
    wb_json_set_str(o, "agent_cpus", pl->agent_cpus);
    wb_json_set_str(o, "mems", pl->mems);
    wb_json_set_str(o, "load_mems", pl->load_mems);
    wb_json_set_bool(o, "shared", pl->shared);
    wb_json_set_bool(o, "core_split", pl->core_split);
    return o;
}

static wb_json *recipe_json(const struct wb_study *s)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", s->recipe->name);
    wb_json_set_str(o, "revision", s->recipe->revision);
    wb_json_set_str(o, "version", s->version->version);
    wb_json_set_str(o, "digest", s->recipe->digest);
    return o;
}

/* Readers with doubles keep integers only up to 2^53. */
static wb_json *seed_json(uint64_t seed)
{
    WB_AUTO_FREE char *text = NULL;

    if (seed <= 1ULL << 53)
        return wb_json_int((int64_t)seed);
    text = wb_strf("%llu", (unsigned long long)seed);
    return wb_json_str(text);
}

/* The highest level that rounds repeat in every arm. */
static bool any_reuse(const struct wb_plan *plan)
{
    for (size_t i = 0; i < plan->narms; i++)
        if (plan->arms[i].setup->reuse_data)
            return true;
    return false;
}

wb_json *wb_plan_json(const struct wb_plan *plan)
{
    wb_json *o = wb_json_object(), *arms = wb_json_array(), *contrasts = wb_json_array();
    const struct wb_study *s = plan->study;

    for (size_t i = 0; i < plan->narms; i++)
        wb_json_push(arms, arm_json(plan, &plan->arms[i]));
    for (size_t i = 0; i < plan->ncontrasts; i++)
        wb_json_push(contrasts, contrast_json(plan, &plan->contrasts[i]));
    wb_json_set_str(o, "campaign", plan->campaign);
    wb_json_set_str(o, "study", s->name);
    wb_json_set(o, "recipe", recipe_json(s));
    if (wb_subject_given(&s->subject))
        wb_json_set(o, "subject", wb_subject_json(s));
    wb_json_set_int(o, "rounds", plan->rounds);
    if (plan->nlooks > 0)
        wb_json_set(o, "looks", looks_json(plan));
    wb_json_set(o, "seed", seed_json(plan->seed));
    wb_json_set(o, "arms", arms);
    wb_json_set(o, "contrasts", contrasts);
    wb_json_set(o, "order", order_json(plan));
    if (has_steps(plan))
        wb_json_set(o, "phase_order", steps_json(plan));
    else
        wb_json_set_reason(o, "phase_order", "as in the study: no phase has several rates");
    wb_json_set(o, "placement", placement_json(&plan->placement));
    wb_json_set_int(o, "memory_bytes", wb_study_setup(s)->memory_bytes);
    wb_json_set(o, "workload", wb_workload_json(wb_study_setup(s)));
    wb_json_set_str(o, "repetition", any_reuse(plan) ? "restart" : "deployment");
    wb_json_set_str(o, "host_class", plan->host_class);
    if (plan->calibration_arm >= 0)
        wb_json_set_str(o, "calibration_arm", plan->arms[plan->calibration_arm].label);
    else
        wb_json_set_reason(o, "calibration_arm", "no phase has a calibrated rate");
    wb_json_set_real(o, "threshold_percent", s->threshold_percent);
    wb_json_set_bool(o, "accept_noisy", s->accept_noisy);
    wb_json_set(o, "validity_limits", wb_validity_json(&s->validity));
    wb_json_set_int(o, "runs", (int64_t)plan->rounds * (int64_t)plan->narms);
    wb_json_set_real(o, "forecast_s", plan->forecast_s);
    wb_json_set(o, "warnings", wb_plan_warnings(plan));
    return o;
}

void wb_plan_free(struct wb_plan *plan)
{
    if (!plan)
        return;
    wb_arms_free(plan->arms, plan->narms);
    for (size_t i = 0; i < plan->ncontrasts; i++) {
        free(plan->contrasts[i].name);
        free(plan->contrasts[i].about);
        free(plan->contrasts[i].metric);
    }
    free(plan->contrasts);
    free(plan->order);
    free(plan->placement.database_cpus);
    free(plan->placement.load_cpus);
    free(plan->placement.agent_cpus);
    free(plan->placement.mems);
    free(plan->placement.load_mems);
    free(plan->campaign);
    free(plan->host_class);
    free(plan);
}
