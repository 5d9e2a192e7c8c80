/* The report of a campaign: figures of its arms, its contrasts, and what must be known to read
 * them. */
#include "server/analysis/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/adjust.h"
#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"

bool wb_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What a figure may be limited by and still be one of the database. */
static bool is_database(const char *by)
{
    return strcmp(by, "database") == 0 || strcmp(by, "server") == 0;
}

double wb_report_value(const struct wb_counted_run *r, const char *metric)
{
    return wb_usable(wb_json_real_or(wb_run_metric(r, metric), "value", NAN));
}

/* The used run of an arm in a slot, or NULL. */
const struct wb_counted_run *wb_report_run(const struct wb_report *rep, size_t slot, int arm)
{
    int i = rep->counted.by_slot[slot * (size_t)rep->counted.narms + (size_t)arm];

    return i < 0 ? NULL : &rep->counted.runs[i];
}

/* A text member of the first used run of the arm that has it: unit or direction of a metric. */
const char *wb_report_word(const struct wb_report *rep, int arm, const char *metric,
                           const char *key)
{
    for (size_t s = 0; s < rep->counted.nslots; s++) {
        const struct wb_counted_run *r = wb_report_run(rep, s, arm);
        const char *word = r ? wb_json_str_or(wb_run_metric(r, metric), key, NULL) : NULL;
        if (word != NULL)
            return word;
    }
    return NULL;
}

/* ---- what limited a figure ---- */

/* Adds {arm, by, text, runs} for each cause that is not the database in used runs of an arm. */
void wb_report_limits(const struct wb_report *rep, int arm, const char *metric, wb_json *out)
{
    const char *label =
        wb_json_str_or(wb_json_at(wb_json_get(rep->plan, "arms"), (size_t)arm), "label", "");

    for (size_t s = 0; s < rep->counted.nslots; s++) {
        const struct wb_counted_run *r = wb_report_run(rep, s, arm);
        const wb_json *limits = r ? wb_json_get(r->summary, "limits") : NULL;
        for (size_t i = 0; i < wb_json_len(limits); i++) {
            const wb_json *limit = wb_json_at(limits, i);
            const char *by = wb_json_str_or(limit, "by", "unknown");
            wb_json *known = NULL;
            if (is_database(by) || strcmp(wb_json_str_or(limit, "metric", ""), metric) != 0)
                continue;
            for (size_t k = 0; k < wb_json_len(out) && known == NULL; k++)
                if (strcmp(wb_json_str_or(wb_json_at(out, k), "by", ""), by) == 0 &&
                    strcmp(wb_json_str_or(wb_json_at(out, k), "arm", ""), label) == 0)
                    known = wb_json_at(out, k);
            if (known == NULL) {
                known = wb_json_object();
                wb_json_set_str(known, "arm", label);
                wb_json_set_str(known, "by", by);
                wb_json_set_str(known, "text", wb_json_str_or(limit, "text", NULL));
                wb_json_push(out, known);
            }
            wb_json_set_int(known, "runs", wb_json_int_or(known, "runs", 0) + 1);
        }
    }
}

/* ---- arms ---- */

/* Records may say anything; products of this must not overflow. */
static int64_t planned_rounds(const struct wb_report *rep)
{
    int64_t rounds = wb_json_int_or(rep->plan, "rounds", 0);

    return rounds < 0 ? 0 : rounds > WB_RUNS_MAX ? WB_RUNS_MAX : rounds;
}

static wb_json *arm_metric(const struct wb_report *rep, int arm, const char *metric)
{
    WB_AUTO_FREE double *v = wb_calloc(rep->counted.nslots, sizeof(double));
    wb_json *m = wb_json_object(), *limited = wb_json_array();
    struct wb_interval interval = {.have = false};
    size_t n = 0;

    for (size_t s = 0; s < rep->counted.nslots; s++) {
        const struct wb_counted_run *r = wb_report_run(rep, s, arm);
        double value = r ? wb_report_value(r, metric) : NAN;
        if (!isnan(value))
            v[n++] = value;
    }
    wb_sort_values(v, n);
    if (n > 0) {
        wb_json_set_real(m, "median", wb_median(v, n));
        interval = wb_median_interval(v, n < WB_VALUES_MAX ? n : WB_VALUES_MAX);
    } else {
        wb_json_set_reason(m, "median", "no run has this figure");
    }
    if (interval.have && n <= WB_VALUES_MAX) {
        wb_json_set_real(m, "lo", interval.lo);
        wb_json_set_real(m, "hi", interval.hi);
    } else {
        wb_json_set_reason(m, "lo", "a 95 % interval needs 6 to 1000 runs");
        wb_json_set_reason(m, "hi", "a 95 % interval needs 6 to 1000 runs");
    }
    wb_json_set_int(m, "n", (int64_t)n);
    wb_json_set_str(m, "unit", wb_report_word(rep, arm, metric, "unit"));
    wb_json_set_str(m, "better", wb_report_word(rep, arm, metric, "better"));
    wb_report_limits(rep, arm, metric, limited);
    if (wb_json_len(limited) > 0)
        wb_json_set(m, "limited", wb_json_ref(limited));
    wb_json_free(limited);
    return m;
}

static wb_json *left_out_json(const struct wb_counted_run *r)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "run", wb_json_str_or(r->summary, "id", NULL));
    wb_json_set_str(o, "arm", wb_json_str_or(r->summary, "arm", NULL));
    wb_json_set_int(o, "round", wb_json_int_or(r->summary, "round", -1));
    wb_json_set_int(o, "attempt", r->attempt);
    wb_json_set_str(o, "why", r->why);
    return o;
}

/* {planned, found, ok, used, noisy, left_out} of one arm, or of all with arm < 0. */
static wb_json *count_json(const struct wb_report *rep, int arm)
{
    wb_json *o = wb_json_object(), *left = wb_json_array();
    int64_t found = 0, ok = 0, used = 0, noisy = 0;
    int64_t planned = planned_rounds(rep);

    for (size_t i = 0; i < rep->counted.nruns; i++) {
        const struct wb_counted_run *r = &rep->counted.runs[i];
        if (arm >= 0 && r->arm != arm)
            continue;
        found++;
        ok += strcmp(wb_json_str_or(r->summary, "outcome", ""), "ok") == 0;
        used += r->used;
        noisy += r->noisy;
        if (!r->used)
            wb_json_push(left, left_out_json(r));
    }
    wb_json_set_int(o, "planned", arm >= 0 ? planned : planned * rep->counted.narms);
    wb_json_set_int(o, "found", found);
    wb_json_set_int(o, "ok", ok);
    wb_json_set_int(o, "used", used);
    wb_json_set_int(o, "noisy", noisy);
    wb_json_set(o, "left_out", left);
    return o;
}

static wb_json *arm_json(const struct wb_report *rep, int arm)
{
    const wb_json *planned = wb_json_at(wb_json_get(rep->plan, "arms"), (size_t)arm);
    wb_json *o = wb_json_object(), *metrics = wb_json_object(), *runs = count_json(rep, arm);

    wb_json_set_str(o, "label", wb_json_str_or(planned, "label", ""));
    wb_json_set(o, "form", wb_json_ref(wb_json_get(planned, "form")));
    wb_json_set(o, "factors", wb_json_ref(wb_json_get(planned, "factors")));
    wb_json_set_int(o, "n", wb_json_int_or(runs, "used", 0));
    wb_json_set(o, "runs", runs);
    for (size_t s = 0; s < rep->counted.nslots; s++) {
        const struct wb_counted_run *r = wb_report_run(rep, s, arm);
        const wb_json *of_run = r ? wb_json_get(r->summary, "metrics") : NULL;
        for (void *it = wb_json_first(of_run); it; it = wb_json_next(of_run, it))
            if (wb_json_get(metrics, wb_json_iter_key(it)) == NULL)
                wb_json_set(metrics, wb_json_iter_key(it),
                            arm_metric(rep, arm, wb_json_iter_key(it)));
    }
    wb_json_set(o, "metrics", metrics);
    return o;
}

/* ---- what must be known ---- */

static void warn_limits(const struct wb_report *rep, const wb_json *arms)
{
    for (size_t a = 0; a < wb_json_len(arms); a++) {
        const wb_json *metrics = wb_json_get(wb_json_at(arms, a), "metrics");
        for (void *it = wb_json_first(metrics); it; it = wb_json_next(metrics, it)) {
            const wb_json *limited = wb_json_get(wb_json_iter_value(it), "limited");
            for (size_t k = 0; k < wb_json_len(limited); k++) {
                const wb_json *l = wb_json_at(limited, k);
                const char *text = wb_json_str_or(l, "text", NULL);
                wb_analysis_warn(rep->warnings, "limited",
                                 "%s of %s was limited by the %s in %lld of %lld "
                                 "runs%s%s",
                                 wb_json_iter_key(it), wb_json_str_or(l, "arm", ""),
                                 wb_json_str_or(l, "by", ""),
                                 (long long)wb_json_int_or(l, "runs", 0),
                                 (long long)wb_json_int_or(wb_json_iter_value(it), "n", 0),
                                 text ? ": " : "", text ? text : "");
            }
        }
    }
}

/* Runs of one arm with different series keys are not the same thing measured again. */
static void warn_mixed_series(const struct wb_report *rep)
{
    for (int a = 0; a < rep->counted.narms; a++) {
        const char *first = NULL;
        bool mixed = false;
        for (size_t s = 0; s < rep->counted.nslots; s++) {
            const struct wb_counted_run *r = wb_report_run(rep, s, a);
            const char *key = r ? wb_json_str_or(r->summary, "series_key", NULL) : NULL;
            if (first == NULL)
                first = key;
            mixed |= key != NULL && strcmp(first, key) != 0;
        }
        if (mixed)
            wb_analysis_warn(
                rep->warnings, "mixed-series",
                "runs of %s differ in recipe, workload or host "
                "class: their figures belong to different series",
                wb_json_str_or(wb_json_at(wb_json_get(rep->plan, "arms"), (size_t)a), "label", ""));
    }
}

/* With n rounds no p is below 2^(1-n); a family of m needs p <= 0.05 / m for a single finding. */
static void warn_family(const struct wb_report *rep, const wb_json *contrasts)
{
    int64_t rounds = planned_rounds(rep), need = 1;
    int family = 0;

    for (size_t i = 0; i < wb_json_len(contrasts); i++)
        family += wb_json_bool_or(wb_json_at(contrasts, i), "primary", false);
    while (family * ldexp(1, (int)(1 - need)) > WB_FDR)
        need++;
    if (rounds >= WB_PAIRED_MIN && rounds < need)
        wb_analysis_warn(rep->warnings, "family-too-large",
                         "with %d contrasts and %lld rounds a single difference cannot be told "
                         "from chance: that takes %lld rounds",
                         family, (long long)rounds, (long long)need);
}

/* The level that rounds repeat, as the plan has it: what a run of them stands for. */
static bool is_restart(const wb_json *plan)
{
    return strcmp(wb_json_str_or(plan, "repetition", "deployment"), "restart") == 0;
}

/* Figures that cannot be were left out: such a one comes of a unit, or of a parser that went wrong.
 */
static void warn_figures(const struct wb_report *rep)
{
    for (size_t i = 0; i < rep->counted.nruns; i++) {
        const struct wb_counted_run *r = &rep->counted.runs[i];
        const wb_json *metrics = wb_json_get(r->summary, "metrics");

        for (void *it = r->used ? wb_json_first(metrics) : NULL; it;
             it = wb_json_next(metrics, it)) {
            double v = wb_json_real_or(wb_json_iter_value(it), "value", 0);
            if (!isnan(wb_usable(v)))
                continue;
            wb_analysis_warn(rep->warnings, "no-figure",
                             "%s of %s is %g, which no figure can be: such figures are left out",
                             wb_json_iter_key(it), wb_json_str_or(r->summary, "id", "?"), v);
            return; /* one stands for all */
        }
    }
}

static void warn_all(const struct wb_report *rep, const wb_json *answer)
{
    const wb_json *runs = wb_json_get(answer, "runs"),
                  *contrasts = wb_json_get(answer, "contrasts");
    long long used = wb_json_int_or(runs, "used", 0), noisy = wb_json_int_or(runs, "noisy", 0);
    size_t left = wb_json_len(wb_json_get(runs, "left_out")), short_windows = 0;
    size_t primaries = 0, few = 0;

    for (size_t i = 0; i < rep->counted.nruns; i++)
        short_windows += rep->counted.runs[i].used &&
                         wb_json_bool_or(rep->counted.runs[i].summary, "windows_short", false);
    if (used == 0)
        wb_analysis_warn(rep->warnings, "no-runs", "no run can be used for statistics");
    if (noisy > 0)
        wb_analysis_warn(rep->warnings, "noisy",
                         "noisy, and accepted by the study: %lld of %lld runs", noisy, used);
    if (left > 0)
        wb_analysis_warn(rep->warnings, "left-out", "not counted: %zu of %zu runs", left,
                         rep->counted.nruns);
    if (short_windows > 0)
        wb_analysis_warn(
            rep->warnings, "short-windows",
            "windows too short to judge whether the state was steady: %zu of %lld runs",
            short_windows, used);
    if (wb_json_bool_or(wb_json_get(rep->plan, "placement"), "shared", false))
        wb_analysis_warn(rep->warnings, "shared-placement",
                         "database and load shared CPUs: every figure is of both together");
    if (is_restart(rep->plan))
        wb_analysis_warn(rep->warnings, "reused-data",
                         "the data of an arm was loaded once: rounds repeat the start of the "
                         "database on it, and how much loading it again would change is in no "
                         "interval");
    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        bool primary = wb_json_bool_or(c, "primary", false);
        primaries += primary;
        few += primary && strcmp(wb_json_str_or(c, "verdict", ""), "insufficient") == 0;
    }
    if (few > 0)
        wb_analysis_warn(rep->warnings, "few-rounds",
                         "fewer than the %d complete rounds that a verdict needs: %zu of %zu "
                         "contrasts",
                         WB_PAIRED_MIN, few, primaries);
}

/* The two metrics that stand for a run in a list: as the newest used run says, else by name. */
static wb_json *headline(const struct wb_report *rep, const wb_json *arms)
{
    wb_json *o = wb_json_object();

    for (size_t i = 0; i < rep->counted.nruns; i++) {
        const wb_json *h = wb_json_get(rep->counted.runs[i].summary, "headline");
        if (rep->counted.runs[i].used && wb_json_type(h) == WB_JSON_OBJECT) {
            wb_json_set_str(o, "throughput", wb_json_str_or(h, "throughput", NULL));
            wb_json_set_str(o, "p99", wb_json_str_or(h, "p99", NULL));
            return o;
        }
    }
    for (size_t a = 0; a < wb_json_len(arms); a++) {
        const wb_json *metrics = wb_json_get(wb_json_at(arms, a), "metrics");
        for (void *it = wb_json_first(metrics); it; it = wb_json_next(metrics, it)) {
            const char *name = wb_json_iter_key(it);
            if (wb_ends_with(name, ".throughput") && wb_json_get(o, "throughput") == NULL)
                wb_json_set_str(o, "throughput", name);
            if (wb_ends_with(name, ".p99_ms") && wb_json_get(o, "p99") == NULL)
                wb_json_set_str(o, "p99", name);
        }
    }
    return o;
}

int wb_campaign_report(const wb_json *plan, const wb_json *summaries, wb_json **out,
                       struct wb_err *err)
{
    struct wb_report rep = {.plan = plan};
    wb_json *answer, *arms, *contrasts, *runs;
    int rc = wb_count_runs(plan, summaries, &rep.counted, err);

    if (rc < 0)
        return rc;
    rc = wb_report_looks_read(plan, &rep.counted, &rep.looks, err);
    if (rc < 0) {
        wb_counted_release(&rep.counted);
        return rc;
    }
    rep.threshold_percent = wb_json_real_or(plan, "threshold_percent", WB_THRESHOLD_PERCENT);
    rep.warnings = wb_json_array();
    answer = wb_json_object();
    arms = wb_json_array();
    contrasts = wb_json_array();
    for (int a = 0; a < rep.counted.narms; a++)
        wb_json_push(arms, arm_json(&rep, a));
    rc = wb_report_contrasts(&rep, arms, contrasts, err);
    runs = count_json(&rep, -1);
    wb_json_set_str(answer, "campaign", wb_json_str_or(plan, "campaign", NULL));
    wb_json_set_str(answer, "study", wb_json_str_or(plan, "study", NULL));
    wb_json_set_int(answer, "n", wb_json_int_or(runs, "used", 0));
    wb_json_set_int(answer, "rounds", planned_rounds(&rep));
    wb_json_set_real(answer, "threshold_percent", rep.threshold_percent);
    wb_json_set_str(answer, "method",
                    "signed-rank-exact within rounds, hodges-lehmann ratio, "
                    "benjamini-hochberg");
    if (rep.looks.n > 0)
        wb_json_set_str(answer, "method",
                        "signed-rank-exact within rounds at planned looks with the error split, "
                        "hodges-lehmann ratio, benjamini-hochberg");
    wb_json_set_str(answer, "repetition", is_restart(plan) ? "restart" : "deployment");
    wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
    wb_json_set(answer, "runs", runs);
    wb_json_set(answer, "headline", headline(&rep, arms));
    wb_json_set(answer, "arms", arms);
    wb_json_set(answer, "contrasts", contrasts);
    wb_json_set(answer, "warnings", rep.warnings);
    warn_all(&rep, answer);
    warn_figures(&rep);
    if (rep.looks.n > 0)
        wb_report_looks_json(&rep.looks, answer);
    else
        warn_family(&rep, contrasts);
    warn_limits(&rep, arms);
    warn_mixed_series(&rep);
    if (rc < 0)
        wb_json_free(answer);
    else
        *out = answer;
    free(rep.looks.v);
    wb_counted_release(&rep.counted);
    return rc;
}
