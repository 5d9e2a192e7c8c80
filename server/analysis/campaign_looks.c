/* Planned looks of a campaign: which there are, which have been taken, and what came of them. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"

#define LOOKS_MAX 100
#define SHARES_MAX (WB_ALPHA * (1 + 1e-9)) /* shares are rounded numbers */

/* The last round in which every arm has a run, or that another round came after. */
static int64_t last_over(const struct wb_counted *c)
{
    WB_AUTO_FREE bool *has = wb_calloc((size_t)c->narms, sizeof(bool));
    int64_t newest = 0;

    for (size_t s = 0; s < c->nslots; s++)
        if (c->slots[s].round > newest)
            newest = c->slots[s].round;
    for (size_t i = 0; i < c->nruns; i++) {
        const struct wb_counted_run *r = &c->runs[i];
        if (r->arm >= 0 && r->slot >= 0 && c->slots[r->slot].round == newest &&
            r->attempt == c->slots[r->slot].last_attempt)
            has[r->arm] = true;
    }
    for (int a = 0; a < c->narms; a++)
        if (!has[a])
            return newest - 1;
    return newest;
}

int wb_report_looks_read(const wb_json *plan, const struct wb_counted *counted,
                         struct wb_report_looks *out, struct wb_err *err)
{
    const wb_json *list = wb_json_get(plan, "looks");
    struct wb_report_looks l = {.n = wb_json_len(list), .over = last_over(counted)};
    double sum = 0;

    if (list != NULL && (wb_json_type(list) != WB_JSON_ARRAY || l.n > LOOKS_MAX))
        return wb_fail(err, WB_INVALID, "/looks: must be a list of at most %d looks", LOOKS_MAX);
    l.v = wb_calloc(l.n, sizeof(*l.v));
    for (size_t i = 0; i < l.n; i++) {
        const wb_json *j = wb_json_at(list, i);
        l.v[i].rounds = wb_json_int_or(j, "rounds", 0);
        l.v[i].alpha = wb_json_real_or(j, "alpha", 0);
        sum += l.v[i].alpha;
        if (l.v[i].rounds > (i > 0 ? l.v[i - 1].rounds : 0) && l.v[i].rounds <= WB_RUNS_MAX &&
            l.v[i].alpha > 0 && sum <= SHARES_MAX)
            continue;
        free(l.v);
        return wb_fail(err, WB_INVALID,
                       "/looks/%zu: rounds must ascend, and the alphas be above 0 and %g in all", i,
                       WB_ALPHA);
    }
    while (l.taken < l.n && l.v[l.taken].rounds <= l.over)
        l.taken++;
    *out = l;
    return 0;
}

/* Contrasts that decide, and how many are decided or cannot be by more rounds. */
static void count_decided(const wb_json *contrasts, int64_t *of, int64_t *decided)
{
    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        if (!wb_json_bool_or(c, "primary", false))
            continue;
        ++*of;
        *decided += wb_json_bool_or(wb_json_get(c, "look"), "decided", false);
    }
}

static char *looks_sentence(const struct wb_report_looks *l, int64_t of, int64_t decided)
{
    long long most = (long long)l->v[l->n - 1].rounds;
    const char *end;

    if (l->taken == 0)
        return wb_strf("no look yet: the first of %zu is after round %lld, %lld are over", l->n,
                       (long long)l->v[0].rounds, (long long)l->over);
    end = decided == of      ? "; the campaign is decided"
          : l->taken == l->n ? "; the budget is spent"
                             : "";
    return wb_strf("look %zu of %zu, after round %lld of at most %lld: %lld of %lld contrasts "
                   "decided%s",
                   l->taken, l->n, (long long)l->v[l->taken - 1].rounds, most, (long long)decided,
                   (long long)of, end);
}

void wb_report_looks_json(const struct wb_report_looks *l, wb_json *answer)
{
    wb_json *o = wb_json_object(), *planned = wb_json_array();
    WB_AUTO_FREE char *sentence = NULL;
    int64_t of = 0, decided = 0, seen = l->taken > 0 ? l->v[l->taken - 1].rounds : 0;

    for (size_t i = 0; i < l->n; i++) {
        wb_json *look = wb_json_object();
        wb_json_set_int(look, "rounds", l->v[i].rounds);
        wb_json_set_real(look, "alpha", l->v[i].alpha);
        wb_json_push(planned, look);
    }
    count_decided(wb_json_get(answer, "contrasts"), &of, &decided);
    sentence = looks_sentence(l, of, decided);
    wb_json_set(o, "planned", planned);
    wb_json_set_int(o, "taken", (int64_t)l->taken);
    wb_json_set_int(o, "rounds", seen);
    if (l->taken < l->n)
        wb_json_set_int(o, "next", l->v[l->taken].rounds);
    else
        wb_json_set_reason(o, "next", "all looks have been taken");
    wb_json_set_int(o, "contrasts", of);
    wb_json_set_int(o, "decided", decided);
    wb_json_set_str(o, "sentence", sentence);
    wb_json_set(answer, "looks", o);
    if (l->over > seen && seen > 0)
        wb_analysis_warn(wb_json_get(answer, "warnings"), "after-look",
                         "rounds %lld to %lld came after the last look and are not judged: looking "
                         "at any time would find differences that are none",
                         (long long)seen + 1, (long long)l->over);
}
