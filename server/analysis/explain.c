#include "server/analysis/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/base/mem.h"

#define TEXT_SHOWN 100
#define DIFFERENCES_MAX 500
#define DEPTH_MAX 20

double wb_explain_metric(const wb_json *summary, const char *metric)
{
    return wb_usable(
        wb_json_real_or(wb_json_get(wb_json_get(summary, "metrics"), metric), "value", NAN));
}

/* ---- pairs ---- */

static bool same_round(const wb_json *a, const wb_json *b)
{
    int64_t round = wb_json_int_or(a, "round", -1);

    return round >= 0 && round == wb_json_int_or(b, "round", -1) &&
           strcmp(wb_json_str_or(a, "campaign", ""), wb_json_str_or(b, "campaign", "")) == 0;
}

void wb_explain_pair(const struct wb_explain_side sides[2], struct wb_explain_pairs *out)
{
    size_t a = 0;

    *out = (struct wb_explain_pairs){.paired = false};
    for (int s = 0; s < 2; s++)
        out->at[s] = wb_calloc(sides[s].n, sizeof(size_t));
    for (size_t i = 0; i < sides[0].n; i++) {
        for (size_t k = 0; k < sides[1].n && a < sides[1].n; k++) {
            if (!same_round(sides[0].runs[i].summary, sides[1].runs[k].summary))
                continue;
            out->at[0][a] = i;
            out->at[1][a++] = k;
            break;
        }
    }
    out->paired = a > 0;
    for (int s = 0; s < 2; s++) {
        out->n[s] = a > 0 ? a : sides[s].n;
        for (size_t i = 0; a == 0 && i < sides[s].n; i++)
            out->at[s][i] = i;
    }
}

void wb_explain_pairs_release(struct wb_explain_pairs *p)
{
    free(p->at[0]);
    free(p->at[1]);
    *p = (struct wb_explain_pairs){.paired = false};
}

/* ---- settings and facts ---- */

/* Names of what is other in every run, or is told elsewhere in the answer. */
static bool is_skipped(const char *key)
{
    static const char *const keys[] = {"label",   "series_key", "schema", "parity",
                                       "factors", "group",      "index"};
    size_t n = strlen(key);

    for (size_t i = 0; i < WB_LEN(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return n > 7 && strcmp(key + n - 7, "_reason") == 0;
}

/* What is compared: one document of each side, and those that tell whether it is constant there. */
struct walk {
    const struct wb_explain_side *sides;
    bool environment; /* else a document of the plan: there is one */
    wb_json *out;
    size_t varying; /* differences that are not constant within a side */
};

static wb_json *shown(const wb_json *j)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    const char *s = wb_json_string(j);
    wb_json *v;

    if (j == NULL)
        return wb_json_null();
    if (s == NULL && wb_json_type(j) != WB_JSON_OBJECT && wb_json_type(j) != WB_JSON_ARRAY)
        return wb_json_ref(j);
    if (s == NULL)
        wb_json_canonical(j, &b);
    else
        wb_buf_adds(&b, s);
    if (b.len > TEXT_SHOWN) {
        WB_AUTO_FREE char *cut = wb_strf("%.*s...", TEXT_SHOWN, wb_buf_str(&b));
        v = wb_json_str(cut);
    } else {
        v = wb_json_str(wb_buf_str(&b));
    }
    wb_buf_release(&b);
    return v;
}

/* A step of a path; names may have dots, so wb_json_path would not do. */
struct step {
    const struct step *before;
    const char *key; /* NULL: index */
    size_t index;
};

static const wb_json *follow(const wb_json *j, const struct step *s)
{
    if (s == NULL)
        return j;
    j = follow(j, s->before);
    return s->key ? wb_json_get(j, s->key) : wb_json_at(j, s->index);
}

static bool is_constant(const struct walk *w, const struct step *path)
{
    for (int side = 0; w->environment && side < 2; side++) {
        const struct wb_explain_side *s = &w->sides[side];
        const wb_json *first = follow(s->runs[0].environment, path);
        for (size_t i = 1; i < s->n; i++) {
            const wb_json *other = follow(s->runs[i].environment, path);
            if (first != other && (first == NULL || other == NULL || !wb_json_equal(first, other)))
                return false;
        }
    }
    return true;
}

static void add_path(struct wb_buf *b, const struct step *s)
{
    if (s == NULL)
        return;
    add_path(b, s->before);
    wb_buf_adds(b, b->len > 0 ? "." : "");
    if (s->key)
        wb_buf_adds(b, s->key);
    else
        wb_buf_addf(b, "%zu", s->index);
}

static void add_difference(struct walk *w, const struct step *path, const wb_json *a,
                           const wb_json *b)
{
    struct wb_buf name = WB_BUF_INIT(4096);
    wb_json *d;

    if (wb_json_len(w->out) >= DIFFERENCES_MAX)
        return;
    if (!is_constant(w, path)) {
        w->varying++;
        return;
    }
    d = wb_json_object();
    add_path(&name, path);
    wb_json_set_str(d, "path", wb_buf_str(&name));
    wb_json_set(d, "base", shown(a));
    wb_json_set(d, "other", shown(b));
    if (a == NULL)
        wb_json_set_str(d, "base_reason", "not there");
    if (b == NULL)
        wb_json_set_str(d, "other_reason", "not there");
    wb_json_push(w->out, d);
    wb_buf_release(&name);
}

static bool is_nothing(const wb_json *j)
{
    return j == NULL || wb_json_type(j) == WB_JSON_NULL;
}

static void compare_at(struct walk *w, const struct step *path, const wb_json *a, const wb_json *b,
                       int depth)
{
    struct step at = {.before = path};

    if (depth > DEPTH_MAX || (is_nothing(a) && is_nothing(b)) ||
        (a != NULL && b != NULL && wb_json_equal(a, b)))
        return;
    if (wb_json_type(a) == WB_JSON_OBJECT && wb_json_type(b) == WB_JSON_OBJECT) {
        for (int side = 0; side < 2; side++) {
            const wb_json *from = side ? b : a;
            for (void *it = wb_json_first(from); it; it = wb_json_next(from, it)) {
                at.key = wb_json_iter_key(it);
                if (is_skipped(at.key) || (side == 1 && wb_json_get(a, at.key)))
                    continue;
                compare_at(w, &at, wb_json_get(a, at.key), wb_json_get(b, at.key), depth + 1);
            }
        }
    } else if (wb_json_type(a) == WB_JSON_ARRAY && wb_json_type(b) == WB_JSON_ARRAY &&
               wb_json_len(a) == wb_json_len(b)) {
        for (at.index = 0; at.index < wb_json_len(a); at.index++)
            compare_at(w, &at, wb_json_at(a, at.index), wb_json_at(b, at.index), depth + 1);
    } else {
        add_difference(w, path, a, b);
    }
}

static void add_settings(const struct wb_explain_side sides[2], wb_json *answer)
{
    struct walk w = {.sides = sides, .out = wb_json_array()};
    const struct step workload = {.key = "workload"};

    compare_at(&w, NULL, sides[0].arm, sides[1].arm, 0);
    compare_at(&w, &workload, sides[0].workload, sides[1].workload, 0);
    wb_json_set(answer, "settings", w.out);
}

static void add_facts(const struct wb_explain_side sides[2], wb_json *answer)
{
    static const char *const parts[] = {"host",   "form",      "weighbridge", "programs",  "bits",
                                        "probes", "placement", "form_facts",  "artifacts", "image"};
    struct walk w = {.sides = sides, .environment = true, .out = wb_json_array()};

    for (size_t i = 0; i < WB_LEN(parts); i++) {
        const struct step path = {.key = parts[i]};
        compare_at(&w, &path, wb_json_get(sides[0].runs[0].environment, parts[i]),
                   wb_json_get(sides[1].runs[0].environment, parts[i]), 0);
    }
    wb_json_set(answer, "facts", w.out);
    if (w.varying > 0)
        wb_analysis_warn(wb_json_get(answer, "warnings"), "varying",
                         "%zu facts differ from run to run within a side and are not listed",
                         w.varying);
}

/* ---- the whole ---- */

static void effect_of(const struct wb_explain_side sides[2], const struct wb_explain_question *q,
                      struct wb_effect *out)
{
    struct wb_explain_pairs p;
    struct wb_effect_input in = {.threshold_percent = q->threshold_percent};
    double *v[2];
    size_t n[2] = {0, 0};

    wb_explain_pair(sides, &p);
    for (int s = 0; s < 2; s++)
        v[s] = wb_calloc(p.n[s], sizeof(double));
    for (size_t i = 0; i < p.n[0] || i < p.n[1]; i++) {
        double x[2] = {NAN, NAN};
        for (int s = 0; s < 2; s++)
            if (i < p.n[s])
                x[s] = wb_explain_metric(sides[s].runs[p.at[s][i]].summary, q->metric);
        for (int s = 0; s < 2; s++)
            if (isfinite(x[s]) && (!p.paired || isfinite(x[1 - s])))
                v[s][n[s]++] = x[s];
    }
    in.base = v[0];
    in.other = v[1];
    in.nbase = n[0];
    in.nother = n[1];
    in.paired = p.paired;
    in.least = p.paired ? WB_PAIRED_MIN : WB_UNPAIRED_MIN;
    if (q->better != NULL)
        in.better = strcmp(q->better, "higher") == 0  ? WB_BETTER_HIGHER
                    : strcmp(q->better, "lower") == 0 ? WB_BETTER_LOWER
                                                      : WB_BETTER_UNKNOWN;
    wb_effect_of(&in, out);
    free(v[0]);
    free(v[1]);
    wb_explain_pairs_release(&p);
}

static size_t moved(const wb_json *signals)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(signals); i++)
        n += wb_json_bool_or(wb_json_at(signals, i), "moved", false) &&
             !wb_json_bool_or(wb_json_at(signals, i), "follows", false);
    return n;
}

static void add_sentence(const struct wb_explain_side sides[2], const char *metric,
                         const struct wb_effect *e, wb_json *answer)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    wb_buf_addf(&b, "%s of %s against %s: ", metric, sides[1].name, sides[0].name);
    wb_effect_sentence(e, &b);
    wb_buf_addf(&b,
                ". %zu settings and %zu facts differ; %zu of %lld signals moved with it, which is "
                "no proof of a cause.",
                wb_json_len(wb_json_get(answer, "settings")),
                wb_json_len(wb_json_get(answer, "facts")), moved(wb_json_get(answer, "signals")),
                (long long)wb_json_int_or(answer, "signals_all", 0));
    wb_json_set_str(answer, "sentence", wb_buf_str(&b));
    wb_buf_release(&b);
}

int wb_explain(const struct wb_explain_side sides[2], const struct wb_explain_question *q,
               wb_json **out, struct wb_err *err)
{
    struct wb_effect effect;
    wb_json *answer, *of_metric, *n;

    for (int s = 0; s < 2; s++) {
        if (sides[s].n == 0)
            return wb_fail(err, WB_INVALID,
                           "%s has no run that counts: there is nothing to explain", sides[s].name);
        if (sides[s].n > WB_EXPLAIN_RUNS_MAX)
            return wb_fail(err, WB_LIMIT, "%s has %zu runs, at most %d are explained",
                           sides[s].name, sides[s].n, WB_EXPLAIN_RUNS_MAX);
    }
    effect_of(sides, q, &effect);
    answer = wb_json_object();
    of_metric = wb_json_object();
    n = wb_json_array();
    wb_json_push(n, wb_json_int((int64_t)effect.n[0]));
    wb_json_push(n, wb_json_int((int64_t)effect.n[1]));
    wb_json_set_str(answer, "base", sides[0].name);
    wb_json_set_str(answer, "other", sides[1].name);
    wb_json_set(answer, "n", n);
    wb_json_set_bool(answer, "paired", effect.paired);
    wb_json_set_str(answer, "metric", q->metric);
    wb_json_set_str(answer, "method",
                    "differences that are constant within a side; signals by spearman's rho and "
                    "rank tests, benjamini-hochberg");
    wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
    wb_effect_json(&effect, of_metric);
    wb_json_set(answer, "effect", of_metric);
    wb_json_set(answer, "warnings", wb_json_array());
    add_settings(sides, answer);
    add_facts(sides, answer);
    wb_explain_signals(sides, q->metric, &effect, answer);
    add_sentence(sides, q->metric, &effect, answer);
    *out = answer;
    return 0;
}
