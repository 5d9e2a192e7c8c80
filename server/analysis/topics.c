#include "server/analysis/topics.h"

#include <string.h>

#include "server/analysis/changes.h"
#include "server/analysis/compare.h"
#include "server/analysis/csv.h"
#include "server/analysis/histogram.h"
#include "server/analysis/input.h"
#include "server/analysis/stats.h"
#include "server/analysis/steady.h"
#include "server/analysis/validity.h"
#include "server/base/mem.h"
#include "server/base/problems.h"

#define TOPICS_MAX 40

/* The list of values of one file: a list, or the only list (or the named one) of an object or CSV.
 * Owned. */
static int one_list(const wb_json *doc, const char *path, const char *column, wb_json **out,
                    struct wb_err *err)
{
    const wb_json *found = NULL;
    size_t lists = 0;

    if (wb_json_type(doc) == WB_JSON_ARRAY) {
        *out = wb_json_ref(doc);
        return 0;
    }
    for (void *it = wb_json_first(doc); it != NULL; it = wb_json_next(doc, it)) {
        bool named = column != NULL && strcmp(column, wb_json_iter_key(it)) == 0;
        if (wb_json_type(wb_json_iter_value(it)) != WB_JSON_ARRAY || (column != NULL && !named))
            continue;
        lists++;
        found = wb_json_iter_value(it);
    }
    if (lists == 0 && column != NULL)
        return wb_fail(err, WB_INVALID, "%s has no column '%s'", path, column);
    if (lists != 1)
        return wb_fail(err, WB_INVALID, "%s has %zu columns: name the one to take with --column",
                       path, lists);
    *out = wb_json_ref(found);
    return 0;
}

/* One file: the question itself. Two: base and new. */
static int read_compare(const struct wb_topic_file *files, size_t n, const char *column,
                        wb_json **out, struct wb_err *err)
{
    static const char *const sides[] = {"base", "new"};
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    bool columns;

    if (n == 1) {
        WB_AUTO_JSON wb_json *in = NULL;
        if (wb_topic_parse(&files[0], &in, &columns, err) < 0)
            return -err->code;
        *out = columns ? wb_csv_compare(in) : wb_json_ref(in);
        return 0;
    }
    for (size_t i = 0; i < WB_LEN(sides); i++) {
        WB_AUTO_JSON wb_json *in = NULL;
        wb_json *list = NULL;
        if (wb_topic_parse(&files[i], &in, &columns, err) < 0)
            return wb_wrap(err, "%s", files[i].path);
        if (one_list(in, files[i].path, column, &list, err) < 0)
            return -err->code;
        wb_json_set(doc, sides[i], list);
    }
    *out = WB_STEAL(doc);
    return 0;
}

/* JSON, or CSV with one entry of `key` a line, which needs two columns. */
static int read_rows(const struct wb_topic_file *file, const char *key, const char *const needs[2],
                     wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    bool columns;

    if (wb_topic_parse(file, &in, &columns, err) < 0)
        return -err->code;
    if (columns && (!wb_json_get(in, needs[0]) || !wb_json_get(in, needs[1])))
        return wb_fail(err, WB_INVALID, "line 1: needs the columns %s and %s", needs[0], needs[1]);
    *out = columns ? wb_in_rows(in, key) : wb_json_ref(in);
    return 0;
}

static int read_items(const struct wb_topic_file *files, size_t n, const char *column,
                      wb_json **out, struct wb_err *err)
{
    static const char *const needs[] = {"usd_per_hour", "throughput_per_s"};

    return read_rows(&files[0], "items", needs, out, err);
}

static int read_metrics(const struct wb_topic_file *files, size_t n, const char *column,
                        wb_json **out, struct wb_err *err)
{
    static const char *const needs[] = {"base", "new"};

    return read_rows(&files[0], "metrics", needs, out, err);
}

/* JSON, or CSV with one line of values. */
static int read_line(const struct wb_topic_file *files, size_t n, const char *column, wb_json **out,
                     struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    bool columns;

    if (wb_topic_parse(&files[0], &in, &columns, err) < 0)
        return -err->code;
    if (columns && wb_json_len(wb_json_iter_value(wb_json_first(in))) != 1)
        return wb_fail(err, WB_INVALID, "line 2: there must be one line of values");
    *out = columns ? wb_in_first_row(in) : wb_json_ref(in);
    return 0;
}

/* JSON, or CSV with the columns run and value. */
static int read_runs(const struct wb_topic_file *files, size_t n, const char *column, wb_json **out,
                     struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL, *doc = NULL;
    const wb_json *ids, *values;
    wb_json *runs;
    bool columns;

    if (wb_topic_parse(&files[0], &in, &columns, err) < 0)
        return -err->code;
    if (!columns) {
        *out = WB_STEAL(in);
        return 0;
    }
    ids = wb_json_get(in, "run");
    values = wb_json_get(in, "value");
    if (ids == NULL || values == NULL)
        return wb_fail(err, WB_INVALID, "line 1: needs the columns run and value");
    doc = wb_in_first_row(in); /* the costs, where they are columns */
    wb_json_del(doc, "run");
    wb_json_del(doc, "value");
    runs = wb_json_array();
    for (size_t i = 0; i < wb_json_len(values); i++) {
        if (i == 0 || !wb_json_equal(wb_json_at(ids, i), wb_json_at(ids, i - 1)))
            wb_json_push(runs, wb_json_array());
        wb_json_push(wb_json_at(runs, wb_json_len(runs) - 1), wb_json_ref(wb_json_at(values, i)));
    }
    wb_json_set(doc, "runs", runs);
    *out = WB_STEAL(doc);
    return 0;
}

/* A document with values, or a list, or the only (or named) column. */
static int read_history(const struct wb_topic_file *files, size_t n, const char *column,
                        wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    wb_json *list = NULL;
    bool columns;

    if (wb_topic_parse(&files[0], &in, &columns, err) < 0)
        return -err->code;
    if (column == NULL && wb_json_type(in) == WB_JSON_OBJECT &&
        (!columns || wb_json_get(in, "values"))) {
        *out = WB_STEAL(in);
        return 0;
    }
    if (one_list(in, files[0].path, column, &list, err) < 0)
        return -err->code;
    *out = wb_json_object();
    wb_json_set(*out, "values", list);
    return 0;
}

const struct wb_topic wb_topics[] = {
    {.name = "compare",
     .summary = "two sets of runs: which is better, by how much, how sure",
     .input = "{\"base\":[..], \"new\":[..], \"better\":\"higher\"|\"lower\",\n"
              "\"threshold_percent\"?}; rounds_base and rounds_new for pairs; several in\n"
              "{\"rows\":[{\"name\", ..}]}; or two files, base and new",
     .options = WB_TO_COLUMN | WB_TO_BETTER | WB_TO_THRESHOLD,
     .files = 2,
     .read = read_compare,
     .answer = wb_stats_compare,
     .print = wb_stats_compare_print},
    {.name = "adjust",
     .summary = "the false discovery rate of several tests",
     .input = "{\"p\":[..]}",
     .files = 1,
     .answer = wb_stats_adjust,
     .print = wb_stats_adjust_print},
    {.name = "spread",
     .summary = "how far the values of one set lie apart, and which stand out",
     .input = "{\"values\":[..]}",
     .files = 1,
     .answer = wb_stats_spread,
     .print = wb_stats_spread_print},
    {.name = "variance",
     .summary = "noise within runs against noise between them, iterations a run",
     .input = "{\"runs\":[[..],..], \"cost_iteration_s\"?, \"cost_new_run_s\"?};\n"
              "CSV: columns run and value, the lines of a run together",
     .files = 1,
     .read = read_runs,
     .answer = wb_stats_variance,
     .print = wb_stats_variance_print},
    {.name = "power",
     .summary = "rounds that a comparison needs; the smallest p it can give",
     .input = "{\"effect_percent\", \"cv_percent\", \"alpha\"?, \"power\"?} or {\"n\", \"m\"}",
     .files = 1,
     .read = read_line,
     .answer = wb_stats_power,
     .print = wb_stats_power_print},
    {.name = "scaling",
     .summary = "throughput over concurrency: USL and Amdahl, peak, limits of the model",
     .input = "{\"concurrency\":[..], \"throughput\":[..], \"at\"?:[..]} or\n"
              "{\"sigma\", \"kappa\", \"lambda\", \"at\":[..]}",
     .files = 1,
     .answer = wb_stats_scaling,
     .print = wb_stats_scaling_print},
    {.name = "queue",
     .summary = "do throughput, latency and concurrency fit together",
     .input = "{\"clients\", \"throughput_per_s\", \"mean_latency_s\"?, \"think_time_s\"?,\n"
              "\"p50_ms\"?, \"p99_ms\"?} or {\"target_per_s\", \"achieved_per_s\",\n"
              "\"service_p99_ms\"?, \"response_p99_ms\"?, \"duration_s\"?} or\n"
              "{\"servers\", \"service_ms\", \"arrival_per_s\"}",
     .files = 1,
     .read = read_line,
     .answer = wb_stats_queue,
     .print = wb_stats_queue_print},
    {.name = "price",
     .summary = "cost of operations, and the choices that are not beaten",
     .input = "{\"items\":[{\"name\", \"usd_per_hour\", \"throughput_per_s\", \"p99_ms\"?,\n"
              "\"throughput_ci95\"?}], \"slo_p99_ms\"?}; owned hardware, also in an item:\n"
              "{\"purchase_usd\", \"years\", \"power_w\", \"usd_per_kwh\"}",
     .files = 1,
     .read = read_items,
     .answer = wb_stats_price,
     .print = wb_stats_price_print},
    {.name = "composite",
     .summary = "several metrics in one ratio of goodness",
     .input = "{\"metrics\":[{\"name\", \"base\", \"new\", \"better\"}]}",
     .files = 1,
     .read = read_metrics,
     .answer = wb_stats_composite,
     .print = wb_stats_composite_print},
    {.name = "changes",
     .summary = "where a nightly history changed its level, and what holds now",
     .input =
         "{\"values\":[.., null where a night is missing], \"better\"?, \"ids\"?,\n"
         "\"annotations\"?:[{\"index\", \"type\":\"accepted\"|\"excluded\"|\"environment\"}],\n"
         "\"min_magnitude_percent\"?, \"previous\"?: an earlier answer}",
     .options = WB_TO_COLUMN | WB_TO_BETTER | WB_TO_THRESHOLD,
     .files = 1,
     .read = read_history,
     .answer = wb_stats_changes,
     .print = wb_stats_changes_print},
    {.name = "histogram",
     .summary = "percentiles of HDR histograms, one or many merged",
     .input = "HDR logs (1.0 to 1.3), or {\"base64\":\"..\" or [..], \"digits\"?, \"lowest\"?,\n"
              "\"highest\"?}, or {\"records\":[[value, count],..], \"expected_interval\"?} or\n"
              "{\"values\":[..]}, with \"digits\"?, \"lowest\"?, \"highest\"?",
     .options = WB_TO_TAG | WB_TO_WINDOW | WB_TO_PERCENTILES,
     .read = wb_histogram_read,
     .answer = wb_stats_histogram,
     .print = wb_stats_histogram_print},
    {.name = "steady",
     .summary = "whether a run had a steady state, and from when on it counts",
     .input =
         "{\"interval_s\"?, \"throughput\":[..]} or {\"t_s\":[..], \"seconds\":[..],\n"
         "\"ops\":[..]} or {\"t_s\":[..], \"ops_per_s\":[..]}; \"warm_up_s\"?, \"measured_s\"?",
     .options = WB_TO_WARM_UP | WB_TO_FOR,
     .files = 1,
     .answer = wb_stats_steady,
     .print = wb_stats_steady_print},
    {.name = "validity",
     .summary = "whether the numbers of a run may be believed, from noted evidence",
     .input = "{\"env\":{\"steal_percent\", \"foreign_cpu_cores\", \"client_cpu_percent\", ..}},\n"
              "{\"proc_stat\":{\"before\", \"after\"}} or {\"cpu_stat\":{..}} (kernel text), or\n"
              "samples: load_busiest_thread_pct, load_cpu_pct_of_all_cores, net_tx_mbit, ..",
     .files = 1,
     .answer = wb_stats_validity,
     .print = wb_stats_validity_print},
    {0},
};

const struct wb_topic *wb_topic_find(const char *name)
{
    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

int wb_topic_unknown(const char *name, struct wb_err *err)
{
    const char *names[TOPICS_MAX + 1] = {NULL};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; i < TOPICS_MAX && wb_topics[i].name != NULL; i++)
        names[i] = wb_topics[i].name;
    hint = wb_did_you_mean(name, names);
    list = wb_word_list(names);
    return wb_fail(err, WB_INVALID, "there is no topic '%s'%s; allowed is %s", name, hint, list);
}

int wb_topic_parse(const struct wb_topic_file *file, wb_json **doc, bool *columns,
                   struct wb_err *err)
{
    const char *text = file->text;
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark */
    size_t at = mark + strspn(text + mark, " \t\r\n");

    *columns = text[at] != '{' && text[at] != '[';
    return *columns ? wb_csv_columns(text, file->n, doc, err)
                    : wb_json_parse(text + mark, file->n - mark, doc, err);
}

int wb_topic_read(const struct wb_topic *t, const struct wb_topic_file *files, size_t n,
                  const char *column, wb_json **doc, struct wb_err *err)
{
    bool columns;

    if (t->files > 0 && n > t->files)
        return wb_fail(err, WB_INVALID, "%s takes at most %zu file%s, not %zu", t->name, t->files,
                       t->files == 1 ? "" : "s", n);
    return t->read != NULL ? t->read(files, n, column, doc, err)
                           : wb_topic_parse(&files[0], doc, &columns, err);
}
