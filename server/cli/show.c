#include <stdio.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/clock.h"
#include "server/base/table.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/cli/remote_look.h"
#include "server/record/annotate.h"

#define OUT_MAX (64u << 20)

/* A line "key   text" of the head; nothing for a text that is not there. */
static void head_line(struct wb_buf *out, const char *key, const char *text)
{
    if (text && *text)
        wb_buf_addf(out, "%-10s  %s\n", key, text);
}

/* The same from builder text that may hold anything; releases it. */
static void head_built(struct wb_buf *out, const char *key, struct wb_buf *text)
{
    struct wb_buf plain = WB_BUF_INIT(65536);

    wb_cli_plain(wb_buf_str(text), text->len, &plain);
    head_line(out, key, wb_buf_str(&plain));
    wb_buf_release(&plain);
    wb_buf_release(text);
}

static void add_words(struct wb_buf *out, const wb_json *list, const char *between)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        wb_buf_addf(out, "%s%s", i ? between : "",
                    wb_json_string(wb_json_at(list, i)) ? wb_json_string(wb_json_at(list, i))
                                                        : "?");
}

/* What people said about it: who, when, what. */
static void print_annotations(const wb_json *list, int width, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *a = wb_json_at(list, i);
        struct wb_buf b = WB_BUF_INIT(65536), plain = WB_BUF_INIT(65536);

        wb_buf_addf(&b, "%s by %s, %.10s%s%s (%s)", wb_json_str_or(a, "type", "?"),
                    wb_json_str_or(a, "who", "?"), wb_json_str_or(a, "made_at", ""),
                    *wb_json_str_or(a, "text", "") ? ": " : "", wb_json_str_or(a, "text", ""),
                    wb_json_str_or(a, "annotation", "?"));
        wb_cli_plain(wb_buf_str(&b), b.len, &plain);
        wb_text_wrapped(out, "annotated   ", 12, wb_buf_str(&plain), width);
        wb_buf_release(&plain);
        wb_buf_release(&b);
    }
}

static int read_annotations(struct wb_store *s, const char *id, wb_json *into, struct wb_err *err)
{
    wb_json *list = NULL;
    int rc = wb_store_annotations(s, id, true, &list, err);

    if (rc == 0)
        wb_json_set(into, "annotations", list);
    return rc;
}

/* ---- one run ---- */

static void print_identity(const wb_json *run, struct wb_buf *out)
{
    const wb_json *recipe = wb_json_get(run, "recipe");
    struct wb_buf b = WB_BUF_INIT(65536);

    wb_buf_addf(&b, "%s, round %lld", wb_json_str_or(run, "arm", "?"),
                (long long)wb_json_int_or(run, "round", 0));
    if (wb_json_int_or(run, "attempt", 1) > 1)
        wb_buf_addf(&b, ", attempt %lld", (long long)wb_json_int_or(run, "attempt", 1));
    head_line(out, "run", wb_json_str_or(run, "id", "?"));
    head_built(out, "arm", &b);
    b = (struct wb_buf)WB_BUF_INIT(65536);
    wb_buf_addf(&b, "%s of study %s", wb_json_str_or(run, "campaign", "?"),
                wb_json_str_or(run, "study", "?"));
    head_built(out, "campaign", &b);
    if (!recipe)
        return;
    b = (struct wb_buf)WB_BUF_INIT(65536);
    wb_buf_addf(&b, "%s %s, revision %s", wb_json_str_or(recipe, "name", "?"),
                wb_json_str_or(recipe, "version", "?"), wb_json_str_or(recipe, "revision", "?"));
    head_built(out, "recipe", &b);
}

static void print_judgement(const wb_json *run, struct wb_buf *out)
{
    struct wb_buf b = WB_BUF_INIT(65536);

    wb_buf_adds(&b, wb_json_str_or(run, "outcome", "?"));
    if (wb_json_len(wb_json_get(run, "reasons")))
        wb_buf_adds(&b, ": ");
    add_words(&b, wb_json_get(run, "reasons"), "; ");
    head_built(out, "outcome", &b);
    b = (struct wb_buf)WB_BUF_INIT(65536);
    wb_buf_addf(&b, "%s%s", wb_json_str_or(run, "validity", "?"),
                wb_json_bool_or(run, "windows_short", false)
                    ? " (windows too short to judge steadiness)"
                    : "");
    head_built(out, "validity", &b);
    head_line(out, "teardown", wb_json_str_or(run, "teardown", NULL));
    head_line(out, "data of",
              wb_json_str_or(wb_json_get(run, "data"), "of_run",
                             wb_json_str_or(wb_json_get(run, "data"), "of_run_reason", NULL)));
}

static void print_where(const wb_json *run, struct wb_buf *out)
{
    const wb_json *host = wb_json_get(run, "host"), *record = wb_json_get(run, "record");
    const char *started = wb_json_str_or(run, "started_at", "");
    struct wb_buf b = WB_BUF_INIT(65536);

    wb_buf_addf(&b, "%.10s %.8s UTC, took ", started, strlen(started) > 18 ? started + 11 : "");
    wb_format_ns((int64_t)(wb_json_real_or(run, "seconds", 0) * (double)WB_SEC), &b);
    head_built(out, "started", &b);
    if (host) {
        b = (struct wb_buf)WB_BUF_INIT(65536);
        wb_buf_addf(&b, "%s (%s)", wb_json_str_or(host, "name", "?"),
                    wb_json_str_or(host, "class", "?"));
        head_built(out, "host", &b);
    }
    b = (struct wb_buf)WB_BUF_INIT(65536);
    wb_buf_addf(&b, "%.12s in %s", wb_json_str_or(record, "commit", "?"),
                wb_json_str_or(record, "ref", "?"));
    head_built(out, "commit", &b);
}

static void metric_cell(struct wb_table *t, const wb_json *run, const char *phase, const char *name)
{
    WB_AUTO_FREE char *key = wb_strf("%s.%s", phase, name);
    struct wb_buf b = WB_BUF_INIT(256);

    wb_cli_metric(wb_json_get(wb_json_get(run, "metrics"), key), &b);
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

static void print_phases(const wb_json *run, int width, struct wb_buf *out)
{
    static const char *const heads[] = {"throughput", "p50", "p99", "p99.9", "failed"};
    const wb_json *phases = wb_json_get(run, "phases");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "phase", WB_LEFT);
    wb_table_column(t, "loop", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(heads); i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    wb_table_column(t, "load says", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(phases); i++) {
        const wb_json *p = wb_json_at(phases, i), *load = wb_json_get(p, "load");
        const char *name = wb_json_str_or(p, "name", "?");

        wb_table_row(t);
        wb_table_cell(t, "%s", name);
        wb_table_cell(t, "%s",
                      wb_json_bool_or(p, "measured", true) ? wb_json_str_or(p, "model", "-")
                                                           : "prepare");
        metric_cell(t, run, name, "throughput");
        metric_cell(t, run, name, "p50_ms");
        metric_cell(t, run, name, "p99_ms");
        metric_cell(t, run, name, "p99_9_ms");
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(load, "failed", 0));
        wb_table_cell(t, "%s",
                      wb_json_str_or(load, "verdict",
                                     wb_json_str_or(wb_json_get(load, "tool"), "name", "-")));
    }
    if (wb_json_len(phases)) {
        wb_buf_addc(out, '\n');
        wb_table_print(t, width, out);
        wb_buf_adds(out, "Times are response times in the open loop, service times in the closed "
                         "one.\n");
    }
    wb_table_free(t);
}

/* "highest: 45.6k/s held p99<5ms; 17 rates tried from 20k/s to 80k/s", "mixed@10k: holds p99<5ms".
 */
static void print_limit(const wb_json *p, struct wb_buf *out)
{
    const wb_json *load = wb_json_get(p, "load"), *found = wb_json_get(load, "sustained_per_s");
    const wb_json *curve = wb_json_get(load, "curve");
    double least = 0, most = 0;

    wb_buf_addf(out, "Phase %s: ", wb_json_str_or(p, "name", "?"));
    if (wb_json_type(curve) != WB_JSON_ARRAY) {
        wb_buf_addf(out, "%s %s.\n", wb_json_bool_or(p, "holds", false) ? "holds" : "does not hold",
                    wb_json_str_or(p, "limit", "?"));
        return;
    }
    for (size_t i = 0; i < wb_json_len(curve); i++) {
        double v = wb_json_real_or(wb_json_at(curve, i), "offered_per_s", 0);

        least = i == 0 || v < least ? v : least;
        most = v > most ? v : most;
    }
    if (wb_json_is_number(found)) {
        wb_format_rate(wb_json_number(found, 0), out);
        wb_buf_adds(out, " is the highest rate found that holds ");
    } else {
        wb_buf_adds(out, "no rate was found that holds ");
    }
    wb_buf_addf(out, "%s; %zu tried, from ", wb_json_str_or(p, "limit", "?"), wb_json_len(curve));
    wb_format_rate(least, out);
    wb_buf_adds(out, " to ");
    wb_format_rate(most, out);
    wb_buf_adds(out, ".\n");
}

static void print_limits(const wb_json *run, struct wb_buf *out)
{
    const wb_json *phases = wb_json_get(run, "phases");

    for (size_t i = 0; i < wb_json_len(phases); i++)
        if (wb_json_string(wb_json_get(wb_json_at(phases, i), "limit")))
            print_limit(wb_json_at(phases, i), out);
}

static void ms_cell(struct wb_table *t, const wb_json *times, const char *key)
{
    struct wb_buf b = WB_BUF_INIT(256);

    if (wb_json_is_number(wb_json_get(times, key)))
        wb_format_ns((int64_t)(wb_json_real_or(times, key, 0) * (double)WB_MS), &b);
    wb_table_cell(t, "%s", b.len ? wb_buf_str(&b) : "-");
    wb_buf_release(&b);
}

static void times_row(struct wb_table *t, const char *phase, const char *side, const char *what,
                      const wb_json *times)
{
    static const char *const keys[] = {"p50_ms", "p99_ms", "p99_9_ms", "max_ms"};

    if (wb_json_int_or(times, "count", 0) <= 0)
        return;
    wb_table_row(t);
    wb_table_cell(t, "%s", phase);
    wb_table_cell(t, "%s", side);
    wb_table_cell(t, "%s", what);
    wb_table_cell(t, "%lld", (long long)wb_json_int_or(times, "count", 0));
    for (size_t k = 0; k < WB_LEN(keys); k++)
        ms_cell(t, times, keys[k]);
}

/* The same window as client and database saw it, one under the other. */
static size_t side_rows(struct wb_table *t, const wb_json *p, struct wb_buf *notes)
{
    const wb_json *server = wb_json_get(p, "server");
    const wb_json *histograms = wb_json_get(server, "histograms");
    const wb_json *units = wb_json_get(server, "units");
    const wb_json *ops = wb_json_path(p, "load.operations");
    const char *name = wb_json_str_or(p, "name", "?");

    if (!histograms)
        return 0;
    for (void *it = wb_json_first(ops); it; it = wb_json_next(ops, it))
        if (strcmp(wb_json_iter_key(it), "all") != 0)
            times_row(t, name, "client", wb_json_iter_key(it),
                      wb_json_get(wb_json_iter_value(it), "service"));
    for (void *it = wb_json_first(histograms); it; it = wb_json_next(histograms, it))
        times_row(t, name, "server", wb_json_iter_key(it), wb_json_iter_value(it));
    for (void *it = wb_json_first(units); it; it = wb_json_next(units, it)) {
        const char *says = wb_json_string(wb_json_iter_value(it));

        if (says && strcmp(says, "ok") != 0)
            wb_buf_addf(notes, "Phase %s, %s: %s.\n", name, wb_json_iter_key(it), says);
    }
    return 1;
}

static void print_sides(const wb_json *run, int width, struct wb_buf *out)
{
    static const char *const heads[] = {"count", "p50", "p99", "p99.9", "max"};
    const wb_json *phases = wb_json_get(run, "phases");
    struct wb_table *t = wb_table_new();
    struct wb_buf notes = WB_BUF_INIT(65536);
    size_t n = 0;

    wb_table_column(t, "phase", WB_LEFT);
    wb_table_column(t, "side", WB_LEFT);
    wb_table_column(t, "time of", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(heads); i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(phases); i++)
        n += side_rows(t, wb_json_at(phases, i), &notes);
    if (n) {
        wb_buf_addc(out, '\n');
        wb_table_print(t, width, out);
        wb_buf_adds(out, "Service times of the client; the server's of the same phase, warm-up "
                         "included.\n");
        wb_buf_adds(out, wb_buf_str(&notes));
    }
    wb_buf_release(&notes);
    wb_table_free(t);
}

static void during_row(struct wb_table *t, const wb_json *w, const char *part)
{
    static const char *const keys[] = {"p50_ms", "p99_ms", "max_ms"};
    struct wb_buf b = WB_BUF_INIT(256);

    wb_table_cell(t, "%s", part);
    if (wb_json_is_number(wb_json_get(w, "throughput"))) {
        wb_table_cell(t, "%.0f", wb_json_real_or(w, "seconds", 0));
        wb_format_rate(wb_json_real_or(w, "throughput", 0), &b);
    } else {
        wb_table_cell(t, "-");
    }
    wb_table_cell(t, "%s", b.len ? wb_buf_str(&b) : "-");
    for (size_t k = 0; k < WB_LEN(keys); k++)
        ms_cell(t, w, keys[k]);
    wb_table_cell(t, "%lld", (long long)wb_json_int_or(w, "failed", 0));
    wb_buf_release(&b);
}

static size_t during_rows(struct wb_table *t, const wb_json *phase)
{
    static const char *const parts[] = {"before", "during", "after"};
    const wb_json *list = wb_json_get(phase, "during");
    const char *name = wb_json_str_or(phase, "name", "?");

    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *op = wb_json_at(list, i);
        const char *what = wb_json_str_or(op, "do", "?");

        for (size_t k = 0; k < WB_LEN(parts); k++) {
            wb_table_row(t);
            if (k == 0)
                wb_table_cell(t, "%s %lld", what, (long long)wb_json_int_or(op, "instance", 0));
            else if (k == 1)
                wb_table_cell(t, "%.1f s", wb_json_real_or(op, "seconds", 0));
            else if (strcmp(name, what) != 0)
                wb_table_cell(t, "in %s", name);
            else
                wb_table_cell(t, "%s", "");
            during_row(t, wb_json_get(op, parts[k]), parts[k]);
        }
    }
    return wb_json_len(list);
}

/* What was done to the cluster under load, and what the load saw of it. */
static void print_during(const wb_json *run, int width, struct wb_buf *out)
{
    static const char *const heads[] = {"seconds", "throughput", "p50", "p99", "max", "failed"};
    const wb_json *phases = wb_json_get(run, "phases");
    struct wb_table *t = wb_table_new();
    size_t n = 0;

    wb_table_column(t, "operation", WB_LEFT);
    wb_table_column(t, "window", WB_LEFT);
    for (size_t i = 0; i < WB_LEN(heads); i++)
        wb_table_column(t, heads[i], WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(phases); i++)
        n += during_rows(t, wb_json_at(phases, i));
    if (n) {
        wb_buf_addc(out, '\n');
        wb_table_print(t, width, out);
        wb_buf_adds(out,
                    "An operation with its instance and how long it took. Figures are of the "
                    "load's merged\nintervals; those that an operation touches are its own.\n");
    }
    wb_table_free(t);
}

static void number_cell(struct wb_table *t, const wb_json *e, const char *key)
{
    const wb_json *v = wb_json_get(e, key);

    if (wb_json_is_number(v))
        wb_table_cell(t, "%.4g", wb_json_number(v, 0));
    else
        wb_table_cell(t, "%s", wb_json_string(v) ? wb_json_string(v) : "-");
}

static void print_evidence(const wb_json *run, int width, struct wb_buf *out)
{
    const wb_json *list = wb_json_get(run, "evidence");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "evidence", WB_LEFT);
    wb_table_column(t, "phase", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    wb_table_column(t, "noisy", WB_RIGHT);
    wb_table_column(t, "worse", WB_RIGHT);
    wb_table_column(t, "unit", WB_LEFT);
    wb_table_column(t, "verdict", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *e = wb_json_at(list, i);

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(e, "name", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(e, "phase", "-"));
        number_cell(t, e, "value");
        number_cell(t, e, wb_json_get(e, "noisy") ? "noisy" : "limit");
        number_cell(t, e, "worse");
        wb_table_cell(t, "%s", wb_json_str_or(e, "unit", ""));
        wb_table_cell(t, "%s", wb_json_str_or(e, "verdict", "?"));
    }
    if (wb_json_len(list)) {
        wb_buf_addc(out, '\n');
        wb_table_print(t, width, out);
    }
    wb_table_free(t);
}

static void print_rest(const wb_json *run, struct wb_buf *out)
{
    const wb_json *limits = wb_json_get(run, "limits"), *raw = wb_json_get(run, "raw");
    const char *id = wb_json_str_or(run, "id", "?");

    if (wb_json_len(limits) || wb_json_len(raw))
        wb_buf_addc(out, '\n');
    for (size_t i = 0; i < wb_json_len(limits); i++) {
        const wb_json *l = wb_json_at(limits, i);
        struct wb_buf b = WB_BUF_INIT(65536);

        wb_buf_addf(&b, "%s by the %s: %s", wb_json_str_or(l, "metric", "?"),
                    wb_json_str_or(l, "by", "?"), wb_json_str_or(l, "text", ""));
        head_built(out, "limited", &b);
    }
    for (void *it = wb_json_first(raw); it; it = wb_json_next(raw, it)) {
        struct wb_buf b = WB_BUF_INIT(65536);

        wb_buf_addf(&b, "%s, ", wb_json_iter_key(it));
        wb_format_bytes(wb_json_int_or(wb_json_iter_value(it), "bytes", 0), &b);
        head_built(out, "raw", &b);
    }
    wb_buf_addf(out,
                "\nNext:  weighbridge show %s\n"
                "       weighbridge logs %s\n"
                "       weighbridge verify %s\n",
                wb_json_str_or(run, "campaign", "CAMPAIGN"), id, id);
}

/* The summary, phases of the result and where the record stands. */
static int read_run(struct wb_store *s, const char *id, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_JSON wb_json *result = NULL;
    WB_AUTO_JSON wb_json *environment = NULL;
    struct wb_run_place place = {0};
    wb_json *record;
    int rc = wb_store_read(s, id, "summary", &summary, err);

    if (rc == 0)
        rc = wb_store_read(s, id, "result", &result, err);
    if (rc == 0)
        rc = wb_store_read(s, id, "environment", &environment, err);
    if (rc == 0)
        rc = wb_store_where(s, id, &place, err);
    if (rc == 0)
        rc = read_annotations(s, id, summary, err);
    if (rc == 0) {
        record = wb_json_object();
        wb_json_set_str(record, "commit", place.commit);
        wb_json_set_str(record, "ref", place.ref);
        wb_json_set_str(record, "path", place.path);
        wb_json_set(summary, "record", record);
        wb_cli_run_complete(summary, result, environment);
        *out = WB_STEAL(summary);
    }
    wb_run_place_release(&place);
    return rc;
}

/* Takes run. */
static void tell_run(const struct wb_cli *cli, wb_json *run)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);

    if (cli->json) {
        wb_cli_answer(cli, run, NULL);
        return;
    }
    print_identity(run, &out);
    print_judgement(run, &out);
    print_where(run, &out);
    print_annotations(wb_json_get(run, "annotations"), cli->width, &out);
    print_phases(run, cli->width, &out);
    print_limits(run, &out);
    print_sides(run, cli->width, &out);
    print_during(run, cli->width, &out);
    print_evidence(run, cli->width, &out);
    wb_buf_addc(&out, '\n');
    wb_cli_parity(wb_json_get(run, "parity"), cli->width, &out);
    print_rest(run, &out);
    wb_cli_print(&out);
    wb_json_free(run);
}

static int show_run(const struct wb_cli *cli, struct wb_store *s, const char *id,
                    struct wb_err *err)
{
    wb_json *run = NULL;
    int rc = read_run(s, id, &run, err);

    if (rc == 0)
        tell_run(cli, run);
    return rc;
}

/* ---- a campaign ---- */

static void print_campaign(const struct wb_cli *cli, const wb_json *c, struct wb_buf *out)
{
    const wb_json *runs = wb_json_get(c, "items");
    const char *id = wb_json_str_or(c, "id", "?");
    struct wb_buf b = WB_BUF_INIT(65536);

    head_line(out, "campaign", id);
    wb_buf_adds(&b, wb_json_str_or(c, "study", "?"));
    head_built(out, "study", &b);
    if (wb_json_str_or(c, "state", NULL))
        head_line(out, "state", wb_json_str_or(c, "state", ""));
    b = (struct wb_buf)WB_BUF_INIT(65536);
    add_words(&b, wb_json_get(c, "arms"), ", ");
    head_built(out, "arms", &b);
    wb_buf_addf(out, "%-10s  %lld in %lld rounds, %lld ok\n\n", "runs",
                (long long)wb_json_int_or(c, "runs", 0), (long long)wb_json_int_or(c, "rounds", 0),
                (long long)wb_json_int_or(c, "ok", 0));
    wb_cli_run_table(cli, runs, out);
    print_annotations(wb_json_get(c, "annotations"), cli->width, out);
    wb_buf_addf(out,
                "\nNext:  weighbridge compare %s\n"
                "       weighbridge show RUN\n"
                "       weighbridge verify %s\n",
                id, id);
}

/* Takes c. */
static void tell_campaign(const struct wb_cli *cli, wb_json *c)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);

    if (cli->json) {
        wb_cli_answer(cli, c, NULL);
        return;
    }
    print_campaign(cli, c, &out);
    wb_cli_print(&out);
    wb_json_free(c);
}

static int show_campaign(const struct wb_cli *cli, struct wb_store *s, const char *id,
                         struct wb_err *err)
{
    const struct wb_list_filter f = {.campaign = id};
    WB_AUTO_JSON wb_json *all = NULL;
    wb_json *runs = NULL, *c;
    int rc = wb_store_list(s, &f, &runs, err);

    if (rc < 0)
        return rc;
    all = wb_cli_campaigns(runs);
    c = wb_json_ref(wb_json_at(all, 0));
    wb_json_set(c, "items", runs);
    rc = read_annotations(s, id, c, err);
    if (rc < 0)
        wb_json_free(c);
    else
        tell_campaign(cli, c);
    return rc;
}

static int show(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    struct wb_ref_id id = {0};
    int rc = wb_cli_open_store(cli, &s, &err);

    (void)options; /* it has none */
    (void)argc;
    if (rc == 0)
        rc = wb_ref_id_find(s, argv[0], &id, &err);
    if (rc == 0)
        rc = id.run ? show_run(cli, s, id.run, &err) : show_campaign(cli, s, id.campaign, &err);
    wb_ref_id_release(&id);
    wb_store_close(s);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

/* A campaign of a server, which may have no run yet. */
static int remote_campaign(const struct wb_cli *cli, struct wb_remote *r, const char *id,
                           struct wb_err *err)
{
    WB_AUTO_JSON wb_json *all = NULL;
    WB_AUTO_JSON wb_json *notes = NULL;
    wb_json *runs = NULL, *c = NULL, *seen;
    int rc = wb_remote_get(r, &c, err, "/api/v1/campaigns/%s", id);

    if (rc == 0)
        rc = wb_remote_runs_of(r, id, &runs, err);
    if (rc == 0)
        rc = wb_remote_get(r, &notes, err, "/api/v1/campaigns/%s/annotations", id);
    if (rc < 0) {
        wb_json_free(runs);
        wb_json_free(c);
        return rc;
    }
    all = wb_cli_campaigns(runs);
    seen = wb_json_at(all, 0);
    if (seen && !cli->json) { /* as it is shown of a store, and where it is */
        wb_json_set_str(seen, "state", wb_json_str_or(c, "state", NULL));
        wb_json_free(c);
        c = wb_json_ref(seen);
    }
    wb_json_set(c, "items", runs);
    wb_json_set(c, "annotations", wb_json_ref(wb_json_get(notes, "items")));
    tell_campaign(cli, c);
    return 0;
}

static int remote(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_remote *r = NULL;
    struct wb_ref_id id = {0};
    wb_json *run = NULL;
    int rc = wb_remote_open(cli, &r, &err);

    (void)options; /* it has none */
    (void)argc;
    if (rc == 0)
        rc = wb_remote_find(r, argv[0], &id.run, &id.campaign, &err);
    if (rc == 0 && id.campaign)
        rc = remote_campaign(cli, r, id.campaign, &err);
    else if (rc == 0)
        rc = wb_remote_read_run(r, id.run, &run, &err);
    if (rc == 0 && run)
        tell_run(cli, run);
    wb_ref_id_release(&id);
    rc = rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_show = {
    .name = "show",
    .args = "ID",
    .summary = "all of one run, or the runs of a campaign",
    .help = "ID is a run or a campaign; the beginning of one is enough.\n",
    .min_args = 1,
    .max_args = 1,
    .run = show,
    .remote = remote,
};
