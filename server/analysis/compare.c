/* `stats compare` and `stats adjust`: documents in, answers out. Every complaint begins with the
 * JSON pointer of what is wrong. */
#include "server/analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/adjust.h"
#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/base/mem.h"

#define ROWS_MAX 20000
#define P_MAX 100000
/* One row of input, and what became of it. */
struct row {
    const wb_json *doc;
    char *pointer; /* of doc, "" for the whole input */
    struct wb_numbers base, other;
    bool paired;
    size_t dropped;
    enum wb_better better;
    double threshold_percent;
    struct wb_effect effect;
};

static void row_release(struct row *r)
{
    free(r->pointer);
    free(r->base.v);
    free(r->other.v);
}

/* ---- reading ---- */

static int read_better(const wb_json *doc, const char *at, enum wb_better *out, struct wb_err *err)
{
    const wb_json *j = wb_json_get(doc, "better");
    const char *word = wb_json_string(j);

    if (j == NULL)
        return 0;
    if (word != NULL && strcmp(word, "higher") == 0)
        *out = WB_BETTER_HIGHER;
    else if (word != NULL && strcmp(word, "lower") == 0)
        *out = WB_BETTER_LOWER;
    else
        return wb_fail(err, WB_INVALID, "%s/better: must be 'higher' or 'lower'", at);
    return 0;
}

static int read_threshold(const wb_json *doc, const char *at, double *out, struct wb_err *err)
{
    const wb_json *j = wb_json_get(doc, "threshold_percent");
    double v = wb_json_number(j, NAN);

    if (j == NULL)
        return 0;
    if (isnan(v) || v < 0 || v > 1000)
        return wb_fail(err, WB_INVALID, "%s/threshold_percent: must be a number from 0 to 1000",
                       at);
    *out = v;
    return 0;
}

static const char *const known_keys[] = {"base",   "new",  "rounds_base",       "rounds_new",
                                         "better", "rows", "threshold_percent", "name",
                                         "unit",   NULL};

/* Takes out nulls: paired, the whole round goes. */
static void drop_nulls(struct row *r)
{
    size_t kept = 0;

    if (r->paired) {
        for (size_t i = 0; i < r->base.n; i++) {
            if (isnan(r->base.v[i]) || isnan(r->other.v[i]))
                continue;
            r->base.v[kept] = r->base.v[i];
            r->other.v[kept++] = r->other.v[i];
        }
        r->dropped = r->base.n - kept;
        r->base.n = r->other.n = kept;
        return;
    }
    for (int side = 0; side < 2; side++) {
        struct wb_numbers *s = side == 0 ? &r->base : &r->other;
        r->dropped += wb_numbers_drop(s);
    }
}

/* The values of a row. in_rows: a side may be missing altogether. */
static int read_sides(struct row *r, bool in_rows, struct wb_err *err)
{
    bool rounds = wb_json_get(r->doc, "rounds_base") || wb_json_get(r->doc, "rounds_new");
    bool plain = wb_json_get(r->doc, "base") || wb_json_get(r->doc, "new");
    const char *base = rounds ? "rounds_base" : "base", *other = rounds ? "rounds_new" : "new";

    if (rounds && plain)
        return wb_fail(err, WB_INVALID,
                       "%s/%s: base and new stand beside rounds_base and "
                       "rounds_new, give one of the two",
                       r->pointer, base);
    r->paired = rounds;
    if ((!in_rows || wb_json_get(r->doc, base) || rounds) &&
        wb_in_values(r->doc, r->pointer, base, WB_VALUES_MAX, &r->base, err) < 0)
        return -WB_INVALID;
    if ((!in_rows || wb_json_get(r->doc, other) || rounds) &&
        wb_in_values(r->doc, r->pointer, other, WB_VALUES_MAX, &r->other, err) < 0)
        return -WB_INVALID;
    if (rounds && r->base.n != r->other.n)
        return wb_fail(err, WB_INVALID, "%s/rounds_new: has %zu values, rounds_base has %zu",
                       r->pointer, r->other.n, r->base.n);
    return 0;
}

/* Reads and computes one row; defaults for better and threshold are in r already. */
static int compute_row(struct row *r, bool in_rows, wb_json *warnings, struct wb_err *err)
{
    struct wb_effect_input in;

    if (wb_json_type(r->doc) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "%s: must be an object", r->pointer);
    if (read_sides(r, in_rows, err) < 0 || read_better(r->doc, r->pointer, &r->better, err) < 0 ||
        read_threshold(r->doc, r->pointer, &r->threshold_percent, err) < 0)
        return -WB_INVALID;
    wb_in_known(r->doc, r->pointer, known_keys, warnings);
    drop_nulls(r);
    in = (struct wb_effect_input){
        .base = r->base.v,
        .other = r->other.v,
        .nbase = r->base.n,
        .nother = r->other.n,
        .paired = r->paired,
        .better = r->better,
        .threshold_percent = r->threshold_percent,
        .least = r->paired ? WB_PAIRED_MIN : WB_UNPAIRED_MIN,
    };
    wb_effect_of(&in, &r->effect);
    return 0;
}

/* ---- answering ---- */

static void add_cautions(const struct row *r, wb_json *warnings)
{
    const struct wb_effect *e = &r->effect;

    if (r->dropped > 0)
        wb_analysis_warn(warnings, "dropped", "%zu %s left out because of null", r->dropped,
                         r->paired ? "rounds were" : "values were");
    if (!e->have_change)
        return;
    if (!e->test.defined)
        wb_analysis_warn(warnings, "all-equal",
                         e->paired ? "no round changed anything: there is nothing to test"
                                   : "all samples are equal: there is nothing to test");
    if (e->test.zeros > 0 && e->test.defined)
        wb_analysis_warn(warnings, "zeros",
                         "%zu rounds without change were ranked and put aside (Pratt)",
                         e->test.zeros);
    if (e->scale == WB_DIFFERENCE)
        wb_analysis_warn(warnings, "not-positive",
                         "values at or below 0: differences instead of ratios");
    if (e->n[0] < e->least || e->n[1] < e->least)
        wb_analysis_warn(warnings, "few-values", "a verdict needs at least %zu %s", e->least,
                         e->paired ? "complete rounds" : "values a side");
    if (strstr(e->test.method, "normal") != NULL)
        wb_analysis_warn(warnings, "approximate",
                         "p is from the normal approximation: too many values for "
                         "the exact distribution");
    if (r->better == WB_BETTER_UNKNOWN)
        wb_analysis_warn(warnings, "no-direction",
                         "'better' is not given: no better or worse can be said");
}

static int answer_one(const wb_json *in, wb_json **out, struct wb_err *err)
{
    struct row r = {.doc = in, .pointer = wb_strdup(""), .threshold_percent = WB_THRESHOLD_PERCENT};
    wb_json *warnings = wb_json_array(), *answer;
    int rc = compute_row(&r, false, warnings, err);

    if (rc < 0) {
        wb_json_free(warnings);
    } else {
        answer = wb_json_object();
        wb_effect_json(&r.effect, answer);
        add_cautions(&r, warnings);
        wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
        wb_json_set(answer, "warnings", warnings);
        *out = answer;
    }
    row_release(&r);
    return rc;
}

static wb_json *left_out(const char *name, const char *reason)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", name);
    wb_json_set_str(o, "reason", reason);
    return o;
}

static const char *row_name(const struct row *r)
{
    return wb_json_str_or(r->doc, "name", r->pointer);
}

/* Geometric mean of new / base over the rows that have both. */
static wb_json *geomean(const struct row *rows, size_t n, wb_json *warnings)
{
    wb_json *g = wb_json_object(), *out = wb_json_array();
    double logs = 0;
    int64_t of = 0;
    bool sides_differ = false, higher = false, lower = false;

    for (size_t i = 0; i < n; i++) {
        const struct wb_effect *e = &rows[i].effect;
        double a = e->median[0], b = e->median[1];
        higher |= rows[i].better == WB_BETTER_HIGHER;
        lower |= rows[i].better == WB_BETTER_LOWER;
        if (!e->have_change) {
            wb_json_push(out, left_out(row_name(&rows[i]),
                                       e->n[0] == 0 ? "base has no values" : "new has no values"));
            sides_differ = true;
        } else if (a == b) { /* 0 to 0 is no change as well */
            of++;
        } else if (a <= 0 || b <= 0) {
            wb_json_push(out, left_out(row_name(&rows[i]), "a median at or below 0 has no ratio"));
        } else {
            logs += log(b / a);
            of++;
        }
    }
    if (of > 0)
        wb_json_set_real(g, "ratio", exp(logs / (double)of));
    else
        wb_json_set_reason(g, "ratio", "no row has a ratio");
    wb_json_set_int(g, "of", of);
    wb_json_set(g, "left_out", out);
    if (sides_differ)
        wb_analysis_warn(warnings, "rows-differ",
                         "some rows have values on one side only: they are not in the "
                         "geometric mean");
    if (higher && lower)
        wb_analysis_warn(warnings, "mixed-directions",
                         "the geometric mean mixes rows where higher is better "
                         "with rows where lower is better");
    return g;
}

static void judge_family(struct row *rows, size_t n)
{
    WB_AUTO_FREE double *q = wb_calloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++) {
        const struct wb_effect *e = &rows[i].effect;
        q[i] = e->have_change && e->test.defined ? e->test.p : NAN;
    }
    wb_adjust(q, n, q);
    for (size_t i = 0; i < n; i++)
        wb_effect_judge(&rows[i].effect, q[i]);
}

static wb_json *row_json(const struct row *r)
{
    wb_json *o = wb_json_object(), *cautions = wb_json_array();

    wb_json_set_str(o, "name", row_name(r));
    wb_effect_json(&r->effect, o);
    if (isnan(r->effect.q))
        wb_json_set_reason(o, "q", "there is no p");
    add_cautions(r, cautions);
    wb_json_set(o, "warnings", cautions);
    return o;
}

static int compute_rows(const wb_json *in, struct row *rows, size_t n, wb_json *warnings,
                        struct wb_err *err)
{
    enum wb_better better = WB_BETTER_UNKNOWN;
    double threshold = WB_THRESHOLD_PERCENT;

    if (read_better(in, "", &better, err) < 0 || read_threshold(in, "", &threshold, err) < 0)
        return -WB_INVALID;
    wb_in_known(in, "", known_keys, warnings);
    for (size_t i = 0; i < n; i++) {
        rows[i].doc = wb_json_at(wb_json_get(in, "rows"), i);
        rows[i].pointer = wb_strf("/rows/%zu", i);
        rows[i].better = better;
        rows[i].threshold_percent = threshold;
        if (compute_row(&rows[i], true, warnings, err) < 0)
            return -WB_INVALID;
    }
    judge_family(rows, n);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* "40 rows: 2 worse, 38 inconclusive; half of these would be settled by 31 values a side". Owned.
 */
static char *rows_sentence(const struct row *rows, size_t n)
{
    static const enum wb_verdict order[] = {WB_V_WORSE,       WB_V_BETTER,     WB_V_DIFFERENT,
                                            WB_V_NEGLIGIBLE,  WB_V_EQUIVALENT, WB_V_INCONCLUSIVE,
                                            WB_V_INSUFFICIENT};
    struct wb_buf b = WB_BUF_INIT(1000);
    WB_AUTO_FREE size_t *needed = wb_calloc(n, sizeof(size_t));
    size_t open = 0, shown = 0;

    wb_buf_addf(&b, "%zu row%s", n, n == 1 ? "" : "s");
    for (size_t k = 0; k < WB_LEN(order); k++) {
        const char *word = wb_verdict_word(order[k]);
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            count += rows[i].effect.verdict == order[k];
        if (count > 0)
            wb_buf_addf(&b, "%s%zu %s", shown++ > 0 ? ", " : ": ", count,
                        word ? word : "different");
    }
    for (size_t i = 0; i < n; i++)
        if (rows[i].effect.verdict == WB_V_INCONCLUSIVE && rows[i].effect.rounds_needed > 0)
            needed[open++] = rows[i].effect.rounds_needed;
    if (open > 0) {
        qsort(needed, open, sizeof(*needed), by_size);
        wb_buf_addf(&b, "; half of the open ones would be settled by %zu values a side",
                    needed[(open - 1) / 2]);
    }
    return wb_buf_take(&b);
}

static int answer_rows(const wb_json *in, wb_json **out, struct wb_err *err)
{
    const wb_json *list = wb_json_get(in, "rows");
    size_t n = wb_json_len(list);
    wb_json *warnings, *answer, *answers;
    WB_AUTO_FREE char *sentence = NULL;
    struct row *rows;
    int rc;

    if (wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/rows: must be a list of objects");
    if (n > ROWS_MAX)
        return wb_fail(err, WB_INVALID, "/rows: has %zu rows, at most %d are taken", n, ROWS_MAX);
    rows = wb_calloc(n, sizeof(*rows));
    warnings = wb_json_array();
    rc = compute_rows(in, rows, n, warnings, err);
    if (rc < 0) {
        wb_json_free(warnings);
    } else {
        answer = wb_json_object();
        answers = wb_json_array();
        for (size_t i = 0; i < n; i++)
            wb_json_push(answers, row_json(&rows[i]));
        sentence = rows_sentence(rows, n);
        wb_json_set_int(answer, "n", (int64_t)n);
        wb_json_set_str(answer, "method", "benjamini-hochberg");
        wb_json_set_str(answer, "sentence", sentence);
        wb_json_set(answer, "rows", answers);
        wb_json_set(answer, "geomean", geomean(rows, n, warnings));
        wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
        wb_json_set(answer, "warnings", warnings);
        *out = answer;
    }
    for (size_t i = 0; i < n; i++)
        row_release(&rows[i]);
    free(rows);
    return rc;
}

int wb_stats_compare(const wb_json *in, wb_json **out, struct wb_err *err)
{
    if (wb_json_type(in) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID,
                       "the input must be an object with base and new, with "
                       "rounds_base and rounds_new, or with rows");
    return wb_json_get(in, "rows") ? answer_rows(in, out, err) : answer_one(in, out, err);
}

/* ---- adjust ---- */

static int read_p(const wb_json *list, size_t n, double *p, struct wb_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const wb_json *j = wb_json_at(list, i);
        p[i] = wb_json_number(j, NAN);
        if (wb_json_type(j) != WB_JSON_NULL && !(p[i] >= 0 && p[i] <= 1))
            return wb_fail(err, WB_INVALID, "/p/%zu: must be a number from 0 to 1, or null", i);
    }
    return 0;
}

int wb_stats_adjust(const wb_json *in, wb_json **out, struct wb_err *err)
{
    const wb_json *list = wb_json_get(in, "p");
    size_t n = wb_json_len(list), untested = 0;
    wb_json *answer, *q_list, *rejected, *warnings;
    WB_AUTO_FREE double *q = NULL;

    if (wb_json_type(in) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "the input must be an object with p, a list of numbers");
    if (list == NULL)
        return wb_fail(err, WB_INVALID, "/p: is missing");
    if (wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/p: must be a list of numbers from 0 to 1");
    if (n > P_MAX)
        return wb_fail(err, WB_INVALID, "/p: has %zu values, at most %d are taken", n, P_MAX);
    q = wb_calloc(n, sizeof(double));
    if (read_p(list, n, q, err) < 0)
        return -WB_INVALID;
    wb_adjust(q, n, q);
    q_list = wb_json_array();
    rejected = wb_json_array();
    warnings = wb_json_array();
    for (size_t i = 0; i < n; i++) {
        wb_json_push(q_list, wb_json_real(q[i]));
        untested += isnan(q[i]);
        if (q[i] <= WB_FDR)
            wb_json_push(rejected, wb_json_int((int64_t)i));
    }
    if (untested > 0)
        wb_analysis_warn(warnings, "untested", "%zu values are null and do not count to the family",
                         untested);
    answer = wb_json_object();
    wb_json_set_int(answer, "n", (int64_t)(n - untested));
    wb_json_set_str(answer, "method", "benjamini-hochberg");
    wb_json_set(answer, "q", q_list);
    wb_json_set(answer, "rejected", rejected);
    wb_json_set_real(answer, "rate", WB_FDR);
    wb_json_set_int(answer, "analysis_version", WB_ANALYSIS_VERSION);
    wb_json_set(answer, "warnings", warnings);
    *out = answer;
    return 0;
}
