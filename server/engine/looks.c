#include "server/engine/looks.h"

#include "server/analysis/compare.h"

static bool is_planned(const struct wb_plan *plan, int round)
{
    for (int i = 0; i < plan->nlooks; i++)
        if (plan->looks[i].rounds == round)
            return true;
    return false;
}

/* Verdicts of the rounds up to this one; later ones of an earlier engine are not looked at. */
static int look(const struct wb_plan *plan, struct wb_store *store, int round, wb_json **out,
                struct wb_err *err)
{
    const struct wb_list_filter filter = {.campaign = plan->campaign};
    WB_AUTO_JSON wb_json *all = NULL;
    WB_AUTO_JSON wb_json *seen = wb_json_array();
    WB_AUTO_JSON wb_json *doc = wb_plan_json(plan);
    WB_AUTO_JSON wb_json *report = NULL;
    int rc = wb_store_list(store, &filter, &all, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < wb_json_len(all); i++)
        if (wb_json_int_or(wb_json_at(all, i), "round", 0) <= round)
            wb_json_push(seen, wb_json_ref(wb_json_at(all, i)));
    rc = wb_campaign_report(doc, seen, &report, err);
    if (rc == 0)
        *out = wb_json_copy(wb_json_get(report, "looks"));
    return rc;
}

int wb_look_after(const struct wb_plan *plan, struct wb_store *store, struct wb_campaign_dir *dir,
                  int round, bool *decided, struct wb_err *err)
{
    wb_json *looks = NULL, *fields;
    int64_t settled, of;

    *decided = false;
    if (!is_planned(plan, round))
        return 0;
    if (look(plan, store, round, &looks, err) < 0)
        return wb_wrap(err, "the look after round %d", round);
    settled = wb_json_int_or(looks, "decided", 0);
    of = wb_json_int_or(looks, "contrasts", 0);
    /* A round that was given up is over all the same, but no look: some arm has nothing of it. */
    *decided = of > 0 && settled == of && wb_json_int_or(looks, "rounds", 0) == round;
    fields = wb_json_object();
    wb_json_set_int(fields, "round", round);
    wb_json_set_int(fields, "contrasts", of);
    wb_json_set_int(fields, "decided", settled);
    wb_json_set_str(fields, "text", wb_json_str_or(looks, "sentence", ""));
    wb_campaign_event(dir, "campaign.look", fields);
    wb_json_free(looks);
    return 0;
}
