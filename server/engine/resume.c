#include "server/engine/resume.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/node.h"

#define DOC_MAX (8u << 20)

/* ---- the past ---- */

static bool was_interrupted(const wb_json *summary)
{
    return wb_json_bool_or(summary, "interrupted", false) ||
           !strcmp(wb_json_str_or(summary, "outcome", ""), wb_outcome_name(WB_OUTCOME_CANCELLED));
}

static enum wb_validity validity_of(const wb_json *summary)
{
    const char *name = wb_json_str_or(summary, "validity", "");

    for (int v = WB_VALID; v < WB_UNVERIFIED; v++)
        if (!strcmp(wb_validity_name((enum wb_validity)v), name))
            return (enum wb_validity)v;
    return WB_UNVERIFIED;
}

static enum wb_outcome outcome_of(const wb_json *summary)
{
    enum wb_outcome o = WB_OUTCOME_HARNESS_ERROR;

    return wb_outcome_find(wb_json_str_or(summary, "outcome", ""), &o) ? o
                                                                       : WB_OUTCOME_HARNESS_ERROR;
}

/* Whether one attempt of a round has every arm, none interrupted. Fills `of` by arm. */
static bool is_finished(const struct wb_plan *plan, const wb_json *summaries, int round,
                        int attempt, const wb_json **of)
{
    size_t have = 0;

    for (size_t a = 0; a < plan->narms; a++)
        of[a] = NULL;
    for (size_t i = 0; i < wb_json_len(summaries); i++) {
        const wb_json *s = wb_json_at(summaries, i);
        const char *arm = wb_json_str_or(s, "arm", "");

        if (wb_json_int_or(s, "round", 0) != round || wb_json_int_or(s, "attempt", 1) != attempt)
            continue;
        if (was_interrupted(s))
            return false;
        for (size_t a = 0; a < plan->narms; a++)
            if (!of[a] && !strcmp(plan->arms[a].label, arm)) {
                of[a] = s;
                have++;
            }
    }
    return have == plan->narms;
}

void wb_rounds_of(const struct wb_plan *plan, const wb_json *summaries, struct wb_rounds *out)
{
    const wb_json **of = wb_calloc(plan->narms, sizeof(*of));

    *out = (struct wb_rounds){.n = (size_t)plan->rounds};
    out->v = wb_calloc(out->n, sizeof(*out->v));
    for (size_t i = 0; i < wb_json_len(summaries); i++) {
        const wb_json *s = wb_json_at(summaries, i);
        int64_t round = wb_json_int_or(s, "round", 0), attempt = wb_json_int_or(s, "attempt", 1);

        if (round >= 1 && round <= plan->rounds && attempt > out->v[round - 1].attempts)
            out->v[round - 1].attempts = (int)attempt;
    }
    for (size_t r = 0; r < out->n; r++) {
        struct wb_round *round = &out->v[r];

        /* Only the last attempt counts: an earlier one was repeated because it was not finished. */
        round->finished =
            round->attempts > 0 && is_finished(plan, summaries, (int)r + 1, round->attempts, of);
        for (size_t a = 0; round->finished && a < plan->narms; a++) {
            wb_grow(&out->runs, &out->cap, out->nruns + 1, sizeof(*out->runs));
            out->runs[out->nruns++] =
                (struct wb_past_run){.outcome = outcome_of(of[a]), .validity = validity_of(of[a])};
        }
    }
    free(of);
}

int wb_rounds_read(const struct wb_plan *plan, struct wb_store *store, struct wb_rounds *out,
                   struct wb_err *err)
{
    struct wb_list_filter filter = {.campaign = plan->campaign};
    WB_AUTO_JSON wb_json *summaries = NULL;
    int rc = wb_store_list(store, &filter, &summaries, err);

    if (rc < 0)
        return wb_wrap(err, "the records of campaign %s", plan->campaign);
    wb_rounds_of(plan, summaries, out);
    return 0;
}

void wb_rounds_release(struct wb_rounds *r)
{
    free(r->v);
    free(r->runs);
    *r = (struct wb_rounds){0};
}

/* ---- study and plan ---- */

/* The folder above the recipe's own, when it is still there. */
static char *recipes_of(const wb_json *state, const char *otherwise)
{
    const char *dir = wb_json_str_or(state, "recipe_dir", "");
    WB_AUTO_FREE char *file = wb_strf("%s/recipe.yaml", dir);
    const char *slash = strrchr(dir, '/');

    return slash && slash != dir && wb_path_exists(file) ? wb_strndup(dir, (size_t)(slash - dir))
                                                         : wb_strdup(otherwise);
}

static int same_recipe(const struct wb_study *s, const wb_json *plan, const char *id,
                       struct wb_err *err)
{
    const char *had = wb_json_str_or(wb_json_get(plan, "recipe"), "digest", "");

    if (!strcmp(s->recipe->digest, had))
        return 0;
    return wb_fail(err, WB_CONFLICT,
                   "the recipe %s in %s was changed since campaign %s began (content %.16s, was "
                   "%.16s): its rounds would not be comparable. Put the recipe back, or begin a "
                   "new campaign",
                   s->recipe->name, s->recipe->dir, id, s->recipe->digest, had);
}

/* The seed as the plan's JSON has it: a number, or digits where it would be too large for one. */
static int seed_of(const wb_json *plan, uint64_t *seed, struct wb_err *err)
{
    const wb_json *j = wb_json_get(plan, "seed");
    const char *text = wb_json_string(j);
    uint64_t v = 0;

    if (wb_json_type(j) == WB_JSON_INT) {
        *seed = (uint64_t)wb_json_integer(j);
        return 0;
    }
    for (const char *c = text; c && *c; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (digit > 9 || v > (UINT64_MAX - digit) / 10)
            return wb_fail(err, WB_CORRUPT, "the plan's seed '%.40s' is not a seed", text);
        v = v * 10 + digit;
    }
    if (v == 0)
        return wb_fail(err, WB_CORRUPT, "the plan has no seed");
    *seed = v;
    return 0;
}

/* A value for a message; a long one is only called different. */
static const char *shown(const struct wb_buf *b)
{
    return b->len && b->len < 200 ? b->data : "different";
}

static bool is_one_of(const char *key, const char *const *keys)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

/* What is forecast and warned of is not what is done. */
static const char *const free_keys[] = {"forecast_s", "warnings", NULL};
/* What more rounds change, too; orders are looked at apart. */
static const char *const longer_keys[] = {"forecast_s",  "warnings", "rounds", "order",
                                          "phase_order", "looks",    "runs",   NULL};

/* All but the keys of `except`, compared as they are written: numbers take the digits that are read
 * back. */
static int same_plan(const wb_json *had, const wb_json *now, const char *const *except,
                     const char *id, struct wb_err *err)
{
    int rc = 0;

    for (void *it = wb_json_first(had); rc == 0 && it; it = wb_json_next(had, it)) {
        const char *key = wb_json_iter_key(it);
        struct wb_buf a = WB_BUF_INIT(DOC_MAX), b = WB_BUF_INIT(DOC_MAX);
        const wb_json *v = wb_json_get(now, key);

        wb_json_canonical(wb_json_iter_value(it), &a);
        if (v)
            wb_json_canonical(v, &b);
        if (!is_one_of(key, except) && strcmp(wb_buf_str(&a), wb_buf_str(&b)) != 0)
            rc = wb_fail(err, WB_CONFLICT,
                         "the plan of campaign %s cannot be made the same again: %s is %s, was %s",
                         id, key, shown(&b), shown(&a));
        wb_buf_release(&a);
        wb_buf_release(&b);
    }
    return rc;
}

static int rebuild(struct wb_resume *r, const char *id, const wb_json *study, const wb_json *plan,
                   const char *recipes, struct wb_problems *p, struct wb_err *err)
{
    /* Its pool was offered when it was accepted. */
    struct wb_study_options options = {.recipes_dir = recipes, .any_pool = true};
    struct wb_host_facts host = {0};
    struct wb_node *tree = NULL;
    uint64_t seed = 0;
    int rc = wb_node_from_json(study, &tree, err);

    if (rc == 0)
        rc = seed_of(plan, &seed, err);
    if (rc == 0)
        rc = wb_host_facts_read(&host, err);
    if (rc < 0) {
        wb_node_free(tree);
        wb_host_facts_release(&host);
        return rc;
    }
    r->study = wb_study_check(tree, "study.json", &options, p);
    if (r->study)
        rc = same_recipe(r->study, plan, id, err);
    if (r->study && rc == 0)
        r->plan = wb_plan_make(r->study, &host, seed, p);
    wb_host_facts_release(&host);
    if (!r->plan)
        return rc;
    free(r->plan->campaign);
    r->plan->campaign = wb_strdup(id);
    return 0;
}

/* What may be wrong in a verdict is shared out over the looks that were planned at first. */
static int no_looks(const wb_json *had, const char *id, struct wb_err *err)
{
    if (wb_json_len(wb_json_get(had, "looks")) == 0)
        return 0;
    return wb_fail(err, WB_CONFLICT,
                   "campaign %s ends when its verdicts are decided: its looks are planned for %lld "
                   "rounds, and with more of them what they have found would not hold. Begin a new "
                   "campaign",
                   id, (long long)wb_json_int_or(had, "rounds", 0));
}

/* The orders of the rounds that were planned, of arms and of phases, stay what they were. */
static int same_beginning(const wb_json *had, const wb_json *now, const char *id,
                          struct wb_err *err)
{
    static const char *const keys[] = {"order", "phase_order"};

    for (size_t k = 0; k < WB_LEN(keys); k++) {
        const wb_json *a = wb_json_get(had, keys[k]), *b = wb_json_get(now, keys[k]);

        for (size_t i = 0; i < wb_json_len(a); i++)
            if (i >= wb_json_len(b) || !wb_json_equal(wb_json_at(a, i), wb_json_at(b, i)))
                return wb_fail(err, WB_CONFLICT,
                               "the plan of campaign %s cannot be made longer: round %zu would "
                               "have another order",
                               id, i + 1);
    }
    return 0;
}

/* "rounds" of a resolved study: a number, or with at_most. */
static void set_rounds(wb_json *study, int64_t rounds)
{
    wb_json *had = wb_json_get(study, "rounds");

    if (wb_json_type(had) == WB_JSON_OBJECT)
        wb_json_set_int(had, "at_most", rounds);
    else
        wb_json_set_int(study, "rounds", rounds);
}

int wb_campaign_extend(const char *state_dir, const char *id, const char *recipes_dir,
                       int64_t rounds, struct wb_err *err)
{
    struct wb_campaign_dir *c = NULL;
    struct wb_resume r = {0};
    struct wb_problems p = {0};
    WB_AUTO_JSON wb_json *study = NULL;
    WB_AUTO_JSON wb_json *plan = NULL;
    WB_AUTO_JSON wb_json *longer = NULL;
    WB_AUTO_FREE char *recipes = NULL;
    int rc = wb_campaign_open(state_dir, id, &c, err);

    if (rc == 0)
        rc = wb_campaign_read(c, &study, &plan, err);
    if (rc == 0)
        rc = no_looks(plan, id, err);
    if (rc == 0) {
        set_rounds(study, rounds);
        recipes = recipes_of(wb_campaign_state(c), recipes_dir);
        rc = rebuild(&r, id, study, plan, recipes, &p, err);
    }
    if (rc == 0 && !r.plan)
        rc = wb_fail(err, WB_CONFLICT, "campaign %s with %lld rounds: %s", id, (long long)rounds,
                     p.n ? p.v[0].message : "its study is refused");
    if (rc == 0)
        longer = wb_plan_json(r.plan);
    if (rc == 0)
        rc = same_plan(plan, longer, longer_keys, id, err);
    if (rc == 0)
        rc = same_beginning(plan, longer, id, err);
    if (rc == 0)
        rc = wb_campaign_write(c, study, longer, err);
    if (rc == 0)
        rc = wb_campaign_set_state(c, "queued",
                                   wb_json_bool_or(wb_campaign_state(c), "clean", false), err);
    wb_campaign_close(c);
    wb_resume_release(&r);
    wb_problems_release(&p);
    return rc;
}

int wb_resume_read(const char *state_dir, const char *id, const char *recipes_dir,
                   struct wb_resume *out, struct wb_problems *p, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/campaigns/%s", state_dir, id);
    WB_AUTO_FREE char *study_path = wb_strf("%s/study.json", dir);
    WB_AUTO_FREE char *plan_path = wb_strf("%s/plan.json", dir);
    WB_AUTO_FREE char *state_path = wb_strf("%s/state.json", dir);
    WB_AUTO_FREE char *recipes = NULL;
    WB_AUTO_JSON wb_json *study = NULL;
    WB_AUTO_JSON wb_json *plan = NULL;
    WB_AUTO_JSON wb_json *state = NULL;
    WB_AUTO_JSON wb_json *now = NULL;
    struct wb_resume r = {0};
    int rc;

    if (!wb_safe_name(id) || !wb_path_exists(dir))
        return wb_fail(err, WB_NOT_FOUND, "there is no campaign '%s' in %s", id, state_dir);
    rc = wb_json_read_file(study_path, DOC_MAX, &study, err);
    if (rc == 0)
        rc = wb_json_read_file(plan_path, DOC_MAX, &plan, err);
    if (rc == 0)
        rc = wb_json_read_file(state_path, DOC_MAX, &state, err);
    if (rc < 0)
        return wb_wrap(err, "campaign %s cannot be resumed", id);
    r.state = wb_strdup(wb_json_str_or(state, "state", "running"));
    r.owner = wb_strdup(wb_json_str_or(state, "owner", NULL));
    r.store = wb_strdup(wb_json_str_or(state, "store", NULL));
    recipes = recipes_of(state, recipes_dir);
    rc = rebuild(&r, id, study, plan, recipes, p, err);
    if (rc == 0 && r.plan) {
        now = wb_plan_json(r.plan);
        rc = same_plan(plan, now, free_keys, id, err);
    }
    if (rc < 0) {
        wb_resume_release(&r);
        return rc;
    }
    *out = r;
    return 0;
}

void wb_resume_release(struct wb_resume *r)
{
    wb_plan_free(r->plan);
    wb_study_free(r->study);
    free(r->state);
    free(r->owner);
    free(r->store);
    *r = (struct wb_resume){0};
}
