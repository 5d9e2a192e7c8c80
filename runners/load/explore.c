#include "runners/load/explore.h"

#include <string.h>

#include "runners/load/report.h"
#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define START_PER_S 1000 /* of a search without a rate */
#define LEAST_PER_S 0.1
#define MOST_PER_S 1e6

struct exploration {
    const struct wb_load_job *job;
    const struct wb_cancel *cancel;
    const struct wb_load_watch *watch;
    wb_json *curve;
    wb_json *kept; /* document of the point that stands for all so far */
    const char *kept_verdict;
    double kept_per_s;
    double lowest_per_s; /* of the kept document, whether it held or not */
    bool loaded, client_stopped;
    enum wb_load_end end;
};

/* What became of one point. */
struct point {
    double offered, achieved;
    bool held; /* served, and its limit held */
};

bool wb_load_explores(const struct wb_load_job *job)
{
    return job->nsweep > 0 || job->search;
}

static bool is_word(const char *verdict, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(verdict, *words) == 0)
            return true;
    return false;
}

/* The limit is judged on what was measured,
 * however noisy the host was: that is said apart. */
static bool holds(const struct wb_load_outcome *o, const char *verdict)
{
    static const char *const words[] = {"valid", "noisy", NULL};
    struct wb_hist h;
    bool held = is_word(verdict, words) && wb_load_served(o);

    if (held && o->job->search) {
        wb_load_merged(&o->total, WB_PHASE_MEASURE, 1, &h);
        held =
            h.total > 0 && wb_hist_percentile(&h, o->job->slo.percentile) <= o->job->slo.limit_ns;
        wb_hist_release(&h);
    }
    return held;
}

static void add_to_curve(struct exploration *x, const wb_json *doc, const char *verdict,
                         const char *stage, const struct point *p)
{
    wb_json *c = wb_json_object();
    const wb_json *response = wb_json_path(doc, x->job->ntxn > 0 ? "transactions.all.response"
                                                                 : "operations.all.response");

    wb_json_set_real(c, "offered_per_s", p->offered);
    wb_json_set_real(c, "achieved_per_s", p->achieved);
    if (wb_json_type(response) == WB_JSON_OBJECT)
        wb_json_set(c, "response", wb_json_ref(response));
    else
        wb_json_set_reason(c, "response", "no operation ended");
    wb_json_set_str(c, "verdict", verdict);
    wb_json_set(c, "reasons", wb_json_ref(wb_json_get(doc, "reasons")));
    wb_json_set_str(c, "stage", stage);
    if (x->job->search)
        wb_json_set_bool(c, "holds", p->held);
    wb_json_push(x->curve, c);
}

/* Whether a point stands for all rather than the one kept: the highest rate that was served; while
 * none was, the lowest one that was tried, for an overload says little about the database. */
static bool is_better(const struct exploration *x, const struct point *p)
{
    if (p->held)
        return p->offered >= x->kept_per_s;
    return x->kept_per_s == 0 && p->offered < x->lowest_per_s;
}

/* The document that stands for all; with what was found of the data. */
static void keep(struct exploration *x, wb_json *doc, const char *verdict, const struct point *p,
                 bool always)
{
    if (x->kept && !always && !is_better(x, p)) {
        wb_json_free(doc);
        return;
    }
    if (x->kept && wb_json_type(wb_json_get(x->kept, "data")) == WB_JSON_OBJECT) {
        wb_json_set(doc, "data", wb_json_ref(wb_json_get(x->kept, "data")));
        wb_json_del(doc, "data_reason");
    }
    wb_json_free(x->kept);
    x->kept = doc;
    x->kept_verdict = verdict;
    x->kept_per_s = p->held ? p->offered : 0;
    x->lowest_per_s = p->offered;
}

/* Runs one rate. Returns 1 when the exploration cannot go on, 0, or an error. */
static int try_rate(struct exploration *x, double rate, const char *stage, bool always,
                    struct point *p, struct wb_err *err)
{
    static const char *const client[] = {"client-bound", "one-thread-bound", "network-bound", NULL};
    struct wb_load_job job = *x->job;
    struct wb_load_outcome o;
    const char *verdict = NULL;
    wb_json *doc;
    int rc;

    job.rate_text = NULL;
    job.rate_per_s = rate;
    job.nsegments = 0;
    job.load = x->job->load && !x->loaded;
    rc = wb_load_run(&job, x->cancel, x->watch, &o, err);
    if (rc < 0)
        return rc;
    doc = wb_load_report(&o, &verdict);
    *p = (struct point){.offered = rate, .achieved = wb_load_units_per_s(&o)};
    p->held = o.end == WB_LOAD_DONE && holds(&o, verdict);
    x->end = o.end;
    x->loaded = true;
    x->client_stopped |= is_word(verdict, client);
    if (o.measured)
        add_to_curve(x, doc, verdict, stage, p);
    keep(x, doc, verdict, p, always || o.end != WB_LOAD_DONE || !o.measured);
    rc = o.end != WB_LOAD_DONE || !o.measured;
    if (o.end != WB_LOAD_BROKEN) /* a thread may still use it */
        wb_load_outcome_release(&o);
    return rc;
}

static int sweep(struct exploration *x, struct wb_err *err)
{
    int rc = 0;

    for (int i = 0; i < x->job->nsweep && rc == 0; i++) {
        struct point p;
        rc = try_rate(x, x->job->sweep[i], "sweep", false, &p, err);
    }
    return rc;
}

static int search(struct exploration *x, struct wb_search *s, struct wb_err *err)
{
    double rate;
    int rc = 0;

    while (rc == 0 && (rate = wb_search_next(s)) > 0) {
        struct point p;
        rc = try_rate(x, rate, wb_search_stage_name(s->stage), s->stage == WB_SEARCH_CONFIRM, &p,
                      err);
        if (rc == 0)
            wb_search_tell(s, p.held);
    }
    return rc;
}

static void add_reason(wb_json *doc, const char *code, const char *text)
{
    wb_json *r = wb_json_object(), *list = wb_json_array();
    const wb_json *old = wb_json_get(doc, "reasons");

    wb_json_set_str(r, "code", code);
    wb_json_set_str(r, "text", text);
    wb_json_set(r, "evidence", wb_json_null());
    wb_json_push(list, r);
    for (size_t i = 0; i < wb_json_len(old); i++)
        wb_json_push(list, wb_json_ref(wb_json_at(old, i)));
    wb_json_set(doc, "reasons", list);
}

/* The highest rate of a sweep that held its limit while no lower one failed it. */
static double sweep_sustained(const struct exploration *x)
{
    double best = 0, worst = MOST_PER_S * 2;

    for (size_t i = 0; i < wb_json_len(x->curve); i++) {
        const wb_json *c = wb_json_at(x->curve, i);
        double rate = wb_json_real_or(c, "offered_per_s", 0);
        if (!wb_json_bool_or(c, "holds", false) && rate < worst)
            worst = rate;
    }
    for (size_t i = 0; i < wb_json_len(x->curve); i++) {
        double rate = wb_json_real_or(wb_json_at(x->curve, i), "offered_per_s", 0);
        if (rate < worst && rate > best)
            best = rate;
    }
    return best;
}

static void set_sustained(struct exploration *x, const struct wb_search *s)
{
    double found = x->job->nsweep > 0            ? sweep_sustained(x)
                   : s->stage == WB_SEARCH_FOUND ? s->holds_per_s
                                                 : 0;

    wb_json_del(x->kept, "sustained_per_s_reason");
    if (!x->job->search)
        wb_json_set_reason(x->kept, "sustained_per_s", "no limit was asked for");
    else if (x->end != WB_LOAD_DONE)
        wb_json_set_reason(x->kept, "sustained_per_s", "ended before it was found");
    else if (found > 0)
        wb_json_set_real(x->kept, "sustained_per_s", found);
    else
        wb_json_set_reason(x->kept, "sustained_per_s", "no rate that was tried held the limit");
}

/* What a search says about itself: a rate is the database's only if the client was not in the way.
 */
static void judge_search(struct exploration *x, const struct wb_search *s)
{
    if (x->end != WB_LOAD_DONE)
        return;
    if (s->stage == WB_SEARCH_NONE) {
        add_reason(x->kept, "no-rate-holds",
                   "no rate held the limit, not even the lowest one that was tried");
        if (strcmp(x->kept_verdict, "valid") == 0)
            x->kept_verdict = "server-bound";
    } else if (x->client_stopped) {
        add_reason(x->kept, "client-limited-search",
                   "above the rate that was found the client was the limit: the database may take "
                   "more");
        x->kept_verdict = "client-bound";
    } else if (s->holds_per_s >= MOST_PER_S) {
        add_reason(x->kept, "search-range", "the highest rate that can be offered held the limit");
    }
}

int wb_load_explore(const struct wb_load_job *job, const struct wb_cancel *cancel,
                    const struct wb_load_watch *watch, struct wb_load_exploration *out,
                    struct wb_err *err)
{
    struct exploration x = {.job = job, .cancel = cancel, .watch = watch, .curve = wb_json_array()};
    struct wb_search s;
    int rc;

    wb_search_init(&s, job->rate_per_s > 0 ? job->rate_per_s : START_PER_S, LEAST_PER_S,
                   MOST_PER_S);
    rc = job->nsweep > 0 ? sweep(&x, err) : search(&x, &s, err);
    if (!x.kept) {
        wb_json_free(x.curve);
        return rc;
    }
    if (rc < 0) { /* a later point could not begin: what there is is complete up to there */
        char text[2 * WB_ERR_TEXT_MAX];
        add_reason(x.kept, "internal", wb_err_text(err, text, sizeof(text)));
        x.kept_verdict = "failed";
        x.end = WB_LOAD_BROKEN;
    }
    wb_json_set(x.kept, "curve", x.curve);
    wb_json_del(x.kept, "curve_reason");
    set_sustained(&x, &s);
    if (job->search && job->nsweep == 0)
        judge_search(&x, &s);
    wb_json_set_str(x.kept, "verdict", x.kept_verdict);
    wb_json_set(x.kept, "job", wb_load_job_json(job));
    *out = (struct wb_load_exploration){.result = x.kept, .verdict = x.kept_verdict, .end = x.end};
    return 0;
}
