#include "server/analysis/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/history.h"
#include "server/analysis/interval.h"
#include "server/base/mem.h"

#define METHOD                                                                               \
    "E-divisive (tau and kappa free, seeded permutation test, p <= 0.01), test of the last " \
    "nights (p <= 0.002)"
#define PICTURE_MAX 4000   /* values that are given back for the picture */
#define INTERVAL_POINTS 30 /* nearest ones on each side; more hardly narrows the interval */

static const char *kind_of(const struct wb_history *h, const struct wb_event *e)
{
    if (h->better == WB_BETTER_UNKNOWN)
        return "shift";
    return (e->after > e->before) == (h->better == WB_BETTER_HIGHER) ? "improvement" : "regression";
}

static void set_pair(wb_json *o, const char *key, wb_json *a, wb_json *b)
{
    wb_json *pair = wb_json_array();

    wb_json_push(pair, a);
    wb_json_push(pair, b);
    wb_json_set(o, key, pair);
}

/* Hodges-Lehmann interval of the change over the points nearest to it. */
static void set_interval(const struct wb_points *p, const struct wb_event *e, wb_json *o)
{
    size_t n = e->nbefore < INTERVAL_POINTS ? e->nbefore : INTERVAL_POINTS;
    size_t m = e->nafter < INTERVAL_POINTS ? e->nafter : INTERVAL_POINTS;
    const double *before = p->v + e->point - n, *after = p->v + e->point;
    struct wb_interval interval = {.have = false};

    for (size_t i = 0; i < n + m; i++)
        if (!(before[i] > 0)) {
            wb_json_set_reason(o, "change_ci95_percent", "a value is 0 or below");
            return;
        }
    (void)wb_hodges_lehmann(before, n, after, m, WB_RATIO, &interval);
    if (interval.have)
        set_pair(o, "change_ci95_percent", wb_json_real(100 * (interval.lo - 1)),
                 wb_json_real(100 * (interval.hi - 1)));
    else
        wb_json_set_reason(o, "change_ci95_percent", "too few nights for an interval of 95 %");
}

static wb_json *event_json(const struct wb_history *h, const struct wb_points *p,
                           const struct wb_event *e)
{
    wb_json *o = wb_json_object();
    size_t at = p->at[e->point], last = p->at[e->point - 1];
    WB_AUTO_FREE char *first_bad = wb_history_id(h, at);
    WB_AUTO_FREE char *last_good = wb_history_id(h, last);

    wb_json_set(o, "id", wb_json_null());
    wb_json_set_int(o, "index", (int64_t)at);
    wb_json_set_int(o, "after_index", (int64_t)last);
    wb_json_set_str(o, "last_good", last_good);
    wb_json_set_str(o, "first_bad", first_bad);
    wb_json_set_real(o, "before", e->before);
    wb_json_set_real(o, "after", e->after);
    if (e->before != 0)
        wb_json_set_real(o, "change_percent", 100 * (e->after - e->before) / fabs(e->before));
    else
        wb_json_set_reason(o, "change_percent", "the level before is 0");
    set_interval(p, e, o);
    wb_json_set_str(o, "kind", kind_of(h, e));
    wb_json_set_real(o, "p", e->p);
    wb_json_set_str(o, "by", e->by);
    wb_json_set_str(o, "state", e->accepted ? "accepted" : "open");
    set_pair(o, "n", wb_json_int((int64_t)e->nbefore), wb_json_int((int64_t)e->nafter));
    return o;
}

static void add_events(const struct wb_history *h, const struct wb_points *p,
                       const struct wb_levels *l, wb_json *answer)
{
    wb_json *list = wb_json_array(), *borders = wb_json_array();

    for (size_t i = 0; i < l->n; i++) {
        if (l->events[i].hard)
            wb_json_push(borders, wb_json_int((int64_t)p->at[l->events[i].point]));
        else
            wb_json_push(list, event_json(h, p, &l->events[i]));
    }
    wb_json_set(answer, "change_points", list);
    wb_json_set(answer, "borders", borders);
}

/* ---- the answer in a sentence ---- */

static void say_level(const wb_json *answer, struct wb_buf *b)
{
    const wb_json *level = wb_json_get(answer, "baseline");

    wb_buf_addf(b, " The level that holds now is %.6g over %lld nights.",
                wb_json_real_or(level, "median", NAN), (long long)wb_json_int_or(level, "n", 0));
}

static void say_newest_event(const struct wb_history *h, const wb_json *answer, struct wb_buf *b)
{
    const wb_json *list = wb_json_get(answer, "change_points");
    size_t n = wb_json_len(list);
    const wb_json *e = wb_json_at(list, n - 1), *percent = wb_json_get(e, "change_percent");

    wb_buf_addf(b, "%zu change%s of level in %lld nights; the newest is ", n, n == 1 ? "" : "s",
                (long long)wb_json_int_or(answer, "n", 0));
    if (wb_json_is_number(percent))
        wb_buf_addf(b, "%+.1f %%", wb_json_number(percent, 0));
    else
        wb_buf_addf(b, "from 0 to %.6g", wb_json_real_or(e, "after", NAN));
    wb_buf_addf(b, " at %s%s (%s, %s).", h->ids ? "" : "index ",
                wb_json_str_or(e, "first_bad", "?"), wb_json_str_or(e, "kind", ""),
                wb_json_str_or(e, "state", ""));
}

static char *sentence_of(const struct wb_history *h, const wb_json *answer)
{
    struct wb_buf b = WB_BUF_INIT(2000);
    int64_t n = wb_json_int_or(answer, "n", 0);

    if (strcmp(wb_json_str_or(answer, "status", ""), "insufficient") == 0) {
        wb_buf_addf(&b, "%lld night%s with a value: too few to say anything, %d are needed.",
                    (long long)n, n == 1 ? "" : "s", WB_HISTORY_LEAST);
        return wb_buf_take(&b);
    }
    if (wb_json_len(wb_json_get(answer, "change_points")) > 0)
        say_newest_event(h, answer, &b);
    else
        wb_buf_addf(&b, "No change of level in %lld nights.", (long long)n);
    say_level(answer, &b);
    if (strcmp(wb_json_str_or(answer, "last_point", ""), "suspect") == 0)
        wb_buf_adds(&b, " The newest night is far off: three runs of it more would tell whether "
                        "that is one bad night or a change.");
    return wb_buf_take(&b);
}

int wb_stats_changes(const wb_json *in, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *warnings = wb_json_array();
    WB_AUTO_FREE char *sentence = NULL;
    struct wb_history h = {0};
    struct wb_points p;
    struct wb_levels l;
    wb_json *answer;

    if (wb_history_read(in, &h, warnings, err) < 0) {
        wb_history_release(&h);
        return -WB_INVALID;
    }
    wb_points_of(&h, &p);
    wb_levels_of(&h, &p, &l);
    if (p.all > h.window)
        wb_analysis_warn(warnings, "window", "only the newest %zu of %zu nights were looked at",
                         h.window, p.all);
    answer = wb_answer_new(p.all, METHOD);
    wb_json_set_str(answer, "status", p.all < WB_HISTORY_LEAST ? "insufficient" : "ok");
    if (p.all < WB_HISTORY_LEAST)
        wb_json_set_str(answer, "status_reason", "fewer than 8 nights with a value that counts");
    add_events(&h, &p, &l, answer);
    wb_history_identify(&h, answer);
    wb_history_state(&h, &p, &l, answer, warnings);
    if (h.values.n <= PICTURE_MAX)
        wb_json_set(answer, "values", wb_json_ref(wb_json_get(in, "values")));
    sentence = sentence_of(&h, answer);
    wb_answer_end(answer, sentence, WB_STEAL(warnings));
    *out = answer;
    wb_levels_release(&l);
    wb_points_release(&p);
    wb_history_release(&h);
    return 0;
}
