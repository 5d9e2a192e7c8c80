#include "server/analysis/campaign.h"

#include <stdlib.h>
#include <string.h>

int wb_plan_arm(const wb_json *plan, const char *label)
{
    const wb_json *arms = wb_json_get(plan, "arms");

    for (size_t i = 0; label != NULL && i < wb_json_len(arms); i++)
        if (strcmp(wb_json_str_or(wb_json_at(arms, i), "label", ""), label) == 0)
            return (int)i;
    return -1;
}

const wb_json *wb_run_metric(const struct wb_counted_run *r, const char *name)
{
    return wb_json_get(wb_json_get(r->summary, "metrics"), name);
}

static int check_plan(const wb_json *plan, struct wb_err *err)
{
    const wb_json *arms = wb_json_get(plan, "arms");

    if (wb_json_type(arms) != WB_JSON_ARRAY || wb_json_len(arms) == 0)
        return wb_fail(err, WB_INVALID, "/arms: the plan has no arms");
    for (size_t i = 0; i < wb_json_len(arms); i++) {
        const char *label = wb_json_str_or(wb_json_at(arms, i), "label", NULL);
        if (label == NULL)
            return wb_fail(err, WB_INVALID, "/arms/%zu/label: is missing", i);
        if (wb_plan_arm(plan, label) != (int)i)
            return wb_fail(err, WB_INVALID, "/arms/%zu/label: '%s' is there twice", i, label);
    }
    return 0;
}

/* The slot of a run's round, made when it is new; keeps its last attempt. */
static int slot_of(struct wb_counted *c, const wb_json *summary, int64_t attempt)
{
    const char *campaign = wb_json_str_or(summary, "campaign", "");
    int64_t round = wb_json_int_or(summary, "round", -1);
    size_t i = 0;

    if (round < 0)
        return -1;
    while (i < c->nslots &&
           (c->slots[i].round != round || strcmp(c->slots[i].campaign, campaign) != 0))
        i++;
    if (i == c->nslots) {
        wb_grow(&c->slots, &c->slots_cap, i + 1, sizeof(*c->slots));
        c->slots[c->nslots++] =
            (struct wb_round_slot){.campaign = campaign, .round = round, .last_attempt = attempt};
    }
    if (attempt > c->slots[i].last_attempt)
        c->slots[i].last_attempt = attempt;
    return (int)i;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* The first reason a run gives for its outcome, or the texts of evidence against it. */
static char *because(const wb_json *summary, const char *head, const char *word)
{
    const char *reason = wb_json_string(wb_json_at(wb_json_get(summary, "reasons"), 0));

    return reason != NULL ? wb_strf("%s %s: %s", head, word, reason) : wb_strf("%s %s", head, word);
}

static char *evidence_against(const wb_json *summary, const char *validity)
{
    const wb_json *evidence = wb_json_get(summary, "evidence");

    for (size_t i = 0; i < wb_json_len(evidence); i++) {
        const wb_json *e = wb_json_at(evidence, i);
        const char *text = wb_json_str_or(e, "text", NULL);
        if (text != NULL && strcmp(wb_json_str_or(e, "verdict", ""), validity) == 0)
            return wb_strf("validity %s: %s", validity, text);
    }
    return wb_strf("validity %s", validity);
}

/* Why a run does not count, NULL when it does; owned. */
static char *why_not(const struct wb_counted *c, const struct wb_counted_run *r, bool accept_noisy)
{
    const char *damaged = wb_json_str_or(r->summary, "damaged", NULL);
    const char *outcome = wb_json_str_or(r->summary, "outcome", "unknown");
    const char *excluded = wb_json_str_or(r->summary, "excluded", NULL);
    const char *validity = wb_json_str_or(r->summary, "validity", "unverified");

    if (damaged != NULL)
        return wb_strf("its record is damaged: %s", damaged);
    if (excluded != NULL)
        return wb_strdup(excluded);
    if (r->arm < 0)
        return wb_strf("its arm is not in the plan");
    if (r->slot < 0)
        return wb_strf("its record names no round");
    if (!is_one_of(outcome, "ok", "target-missed"))
        return because(r->summary, "outcome", outcome);
    if (r->attempt < c->slots[r->slot].last_attempt)
        return wb_strf("the round was repeated as attempt %lld",
                       (long long)c->slots[r->slot].last_attempt);
    if (!is_one_of(validity, "valid", "noisy"))
        return evidence_against(r->summary, validity);
    if (strcmp(validity, "noisy") == 0 && !accept_noisy) {
        WB_AUTO_FREE char *text = evidence_against(r->summary, "noisy");
        return wb_strf("%s (the study accepts only valid runs)", text);
    }
    return NULL;
}

int wb_count_runs(const wb_json *plan, const wb_json *summaries, struct wb_counted *out,
                  struct wb_err *err)
{
    struct wb_counted c = {.nruns = wb_json_len(summaries)};
    bool accept_noisy = wb_json_bool_or(plan, "accept_noisy", false);

    if (check_plan(plan, err) < 0)
        return -WB_INVALID;
    if (wb_json_type(summaries) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "the run summaries must be a list");
    if (c.nruns > WB_RUNS_MAX)
        return wb_fail(err, WB_LIMIT, "%zu runs, at most %d are compared", c.nruns, WB_RUNS_MAX);
    c.runs = wb_calloc(c.nruns, sizeof(*c.runs));
    c.narms = (int)wb_json_len(wb_json_get(plan, "arms"));
    for (size_t i = 0; i < c.nruns; i++) {
        struct wb_counted_run *r = &c.runs[i];
        r->summary = wb_json_at(summaries, i);
        r->arm = wb_plan_arm(plan, wb_json_str_or(r->summary, "arm", NULL));
        r->attempt = wb_json_int_or(r->summary, "attempt", 1);
        r->slot = slot_of(&c, r->summary, r->attempt);
    }
    c.by_slot = wb_calloc(c.nslots * (size_t)c.narms, sizeof(int));
    for (size_t i = 0; i < c.nslots * (size_t)c.narms; i++)
        c.by_slot[i] = -1;
    for (size_t i = 0; i < c.nruns; i++) {
        struct wb_counted_run *r = &c.runs[i];
        int *place;
        r->why = why_not(&c, r, accept_noisy);
        if (r->why != NULL)
            continue;
        place = &c.by_slot[r->slot * c.narms + r->arm];
        if (*place >= 0) {
            r->why = wb_strf("a second run of the same arm, round and attempt");
            continue;
        }
        *place = (int)i;
        r->used = true;
        r->noisy = strcmp(wb_json_str_or(r->summary, "validity", ""), "noisy") == 0;
    }
    *out = c;
    return 0;
}

void wb_counted_release(struct wb_counted *c)
{
    for (size_t i = 0; i < c->nruns; i++)
        free(c->runs[i].why);
    free(c->runs);
    free(c->slots);
    free(c->by_slot);
    *c = (struct wb_counted){.nruns = 0};
}
