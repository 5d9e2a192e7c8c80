/*
 * `stats variance`: where the noise comes from, iterations within a run or the runs themselves, and
 * how many iterations a run should have (Kalibera and Jones). Every run weighs the same.
 */
#include <math.h>
#include <stdlib.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/interval.h"
#include "server/analysis/moments.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define RUNS_MAX 10000
#define ITERATIONS_MAX 1000000 /* in all */

struct components {
    size_t runs, iterations;
    double *means;           /* of the runs, sorted */
    double squares, freedom; /* within runs: sum of squares around the means, and its freedom */
    double inverse;          /* sum of 1 / iterations over the runs */
};

/* Adds a run; an empty one is passed over. */
static void add_run(struct components *c, struct wb_numbers *run)
{
    wb_sort_values(run->v, run->n);
    if (run->n == 0)
        return;
    c->means[c->runs++] = wb_mean(run->v, run->n);
    c->iterations += run->n;
    c->inverse += 1 / (double)run->n;
    if (run->n > 1) {
        c->squares += wb_variance(run->v, run->n) * (double)(run->n - 1);
        c->freedom += (double)(run->n - 1);
    }
}

static int by_run(const void *a, const void *b)
{
    const struct wb_numbers *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (size_t i = 0; i < x->n; i++)
        if (x->v[i] != y->v[i])
            return x->v[i] < y->v[i] ? -1 : 1;
    return 0;
}

static int read_runs(const wb_json *in, struct wb_numbers *runs, size_t n, size_t *dropped,
                     struct wb_err *err)
{
    const wb_json *list = wb_json_get(in, "runs");
    size_t all = 0;

    for (size_t i = 0; i < n; i++) {
        WB_AUTO_FREE char *at = wb_strf("/runs/%zu", i);
        const wb_json *run = wb_json_at(list, i);
        if (wb_json_type(run) != WB_JSON_ARRAY)
            return wb_fail(err, WB_INVALID, "%s: must be a list of numbers", at);
        all += wb_json_len(run);
        if (all > ITERATIONS_MAX)
            return wb_fail(err, WB_INVALID, "%s: more than %d values in all", at, ITERATIONS_MAX);
        runs[i].v = wb_calloc(wb_json_len(run), sizeof(double));
        runs[i].n = wb_json_len(run);
        for (size_t k = 0; k < runs[i].n; k++) {
            WB_AUTO_FREE char *pointer = wb_strf("%s/%zu", at, k);
            runs[i].v[k] = NAN;
            if (wb_json_type(wb_json_at(run, k)) != WB_JSON_NULL &&
                wb_in_number(wb_json_at(run, k), pointer, &runs[i].v[k], err) < 0)
                return -WB_INVALID;
        }
        *dropped += wb_numbers_drop(&runs[i]);
        wb_sort_values(runs[i].v, runs[i].n);
    }
    qsort(runs, n, sizeof(*runs), by_run); /* the order of the runs must not show */
    return 0;
}

static void set_iterations(wb_json *answer, double within, double between, double cost_iteration,
                           double cost_run)
{
    double best = sqrt(cost_run / cost_iteration * within / between);

    if (isnan(cost_iteration) || isnan(cost_run))
        wb_json_set_reason(answer, "iterations_per_run",
                           "needs cost_iteration_s and cost_new_run_s");
    else if (isnan(within) || isnan(between))
        wb_json_set_reason(answer, "iterations_per_run",
                           "needs 2 runs and a run with 2 iterations");
    else if (between == 0)
        wb_json_set_reason(answer, "iterations_per_run",
                           "the runs differ no more than their iterations do: one long run would "
                           "do");
    else
        wb_json_set_real(answer, "iterations_per_run", fmax(1, ceil(best * (1 - 1e-12))));
}

static char *sentence_of(const wb_json *answer, double within, double between)
{
    double each = wb_json_real_or(answer, "iterations_per_run", NAN);

    if (isnan(within) || isnan(between))
        return wb_strdup("too few runs or iterations to tell where the noise comes from");
    if (within == 0 && between == 0)
        return wb_strdup("all values are equal: there is no noise");
    if (isnan(each))
        return wb_strf("%.0f %% of the noise of one value is between runs",
                       between / (within + between) * 100);
    return wb_strf("%.0f %% of the noise of one value is between runs: %.0f iteration%s a run, "
                   "then rather one more run",
                   between / (within + between) * 100, each, each == 1 ? "" : "s");
}

static void set_components(wb_json *answer, struct components *c, double cost_iteration,
                           double cost_run)
{
    double k = (double)c->runs, within = NAN, between = NAN, of_means, mean, half;
    WB_AUTO_FREE char *sentence = NULL;

    wb_sort_values(c->means, c->runs);
    mean = c->runs > 0 ? wb_mean(c->means, c->runs) : NAN;
    of_means = wb_variance(c->means, c->runs);
    if (c->freedom > 0)
        within = c->squares / c->freedom;
    if (c->runs > 1 && c->freedom > 0)
        between = fmax(0, of_means - within * c->inverse / k);
    wb_json_set_int(answer, "runs", (int64_t)c->runs);
    wb_json_set_int(answer, "iterations", (int64_t)c->iterations);
    if (c->runs > 0)
        wb_json_set_real(answer, "grand_mean", mean);
    else
        wb_json_set_reason(answer, "grand_mean", "no values");
    if (!isnan(within))
        wb_json_set_real(answer, "within", within);
    else
        wb_json_set_reason(answer, "within", "no run has 2 iterations");
    if (c->runs > 1) {
        wb_json *ci = wb_json_array();
        half = wb_student_quantile(0.975, k - 1) * sqrt(of_means / k);
        wb_json_set_real(answer, "of_run_means", of_means);
        wb_json_push(ci, wb_json_real(mean - half));
        wb_json_push(ci, wb_json_real(mean + half));
        wb_json_set(answer, "ci95_mean", ci);
    } else {
        wb_json_set_reason(answer, "of_run_means", "needs at least 2 runs");
        wb_json_set_reason(answer, "ci95_mean", "needs at least 2 runs");
    }
    if (!isnan(between))
        wb_json_set_real(answer, "between", between);
    else
        wb_json_set_reason(answer, "between", "needs 2 runs and a run with 2 iterations");
    set_iterations(answer, within, between, cost_iteration, cost_run);
    sentence = sentence_of(answer, within, between);
    wb_json_set_str(answer, "sentence", sentence);
}

int wb_stats_variance(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {"runs", "cost_iteration_s", "cost_new_run_s", NULL};
    const wb_json *list = wb_json_get(in, "runs");
    size_t n = wb_json_len(list), dropped = 0;
    double cost_iteration = NAN, cost_run = NAN;
    struct components c = {0};
    struct wb_numbers *runs;
    wb_json *answer, *warnings;
    int rc;

    if (wb_in_object(in, "runs, a list of lists of numbers", err) < 0 ||
        wb_in_real(in, "", "cost_iteration_s", 1e-12, 1e12, &cost_iteration, err) < 0 ||
        wb_in_real(in, "", "cost_new_run_s", 0, 1e12, &cost_run, err) < 0)
        return -WB_INVALID;
    if (wb_json_type(list) != WB_JSON_ARRAY || n > RUNS_MAX)
        return wb_fail(err, WB_INVALID, "/runs: must be a list of at most %d lists of numbers",
                       RUNS_MAX);
    runs = wb_calloc(n, sizeof(*runs));
    rc = read_runs(in, runs, n, &dropped, err);
    if (rc == 0) {
        warnings = wb_json_array();
        wb_in_known(in, "", known, warnings);
        if (dropped > 0)
            wb_analysis_warn(warnings, "dropped", "%zu values were left out because of null",
                             dropped);
        c.means = wb_calloc(n, sizeof(double));
        for (size_t i = 0; i < n; i++)
            add_run(&c, &runs[i]);
        if (c.runs < n)
            wb_analysis_warn(warnings, "empty-runs", "%zu runs have no values", n - c.runs);
        if (n > 0 && runs[0].n != runs[n - 1].n)
            wb_analysis_warn(warnings, "uneven-runs",
                             "the runs have different numbers of values; each run weighs the same");
        answer = wb_answer_new(c.runs, "variance-components");
        set_components(answer, &c, cost_iteration, cost_run);
        wb_answer_end(answer, NULL, warnings);
        *out = answer;
    }
    for (size_t i = 0; i < n; i++)
        wb_numbers_release(&runs[i]);
    free(runs);
    free(c.means);
    return rc;
}

void wb_stats_variance_print(const wb_json *answer, int width, struct wb_buf *out)
{
    static const char *const rows[] = {"runs",         "iterations", "grand_mean",        "within",
                                       "of_run_means", "between",    "iterations_per_run"};
    struct wb_table *t = wb_table_new();

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_table_column(t, "figure", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    wb_table_column(t, "95 % interval", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(rows); i++)
        wb_text_figure(t, rows[i], wb_json_get(answer, rows[i]),
                       i == 2 ? wb_json_get(answer, "ci95_mean") : NULL);
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_adds(out, "\nwithin, of_run_means and between are variances.\n");
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
