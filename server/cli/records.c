#include "server/cli/records.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/table.h"
#include "server/base/units.h"
#include "server/record/query.h"

#define ID_SHOWN_MIN 10  /* the part of an id that tells its time */
#define CANDIDATES_MAX 5 /* that an error names */

int wb_cli_open_store(const struct wb_cli *cli, struct wb_store **out, struct wb_err *err)
{
    return wb_store_open(cli->store_path, false, NULL, out, err);
}

bool wb_cli_begins(const char *id, const char *typed, const char *prefix)
{
    size_t n = strlen(prefix);

    return !strncmp(id, typed, strlen(typed)) ||
           (!strncmp(id, prefix, n) && !strncmp(id + n, typed, strlen(typed)));
}

int wb_cli_more_than_one(const struct wb_strv *found, struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(4096);
    int rc;

    for (size_t i = 0; i < found->n && i < CANDIDATES_MAX; i++)
        wb_buf_addf(&names, "%s%s", i ? ", " : "", found->v[i]);
    rc = wb_fail(err, WB_CONFLICT, "more than one: %s%s", wb_buf_str(&names),
                 found->n > CANDIDATES_MAX ? ", ..." : "");
    wb_buf_release(&names);
    return rc;
}

static wb_json *find_by(wb_json *list, const char *key, const char *value)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(list, i), key, ""), value))
            return wb_json_at(list, i);
    return NULL;
}

/* ---- figures ---- */

void wb_cli_metric(const wb_json *metric, struct wb_buf *out)
{
    const wb_json *value = wb_json_get(metric, "value");
    const char *unit = wb_json_str_or(metric, "unit", "");
    double v = wb_json_number(value, 0);

    if (!wb_json_is_number(value))
        wb_buf_adds(out, "-");
    else if (!strcmp(unit, "ops/s"))
        wb_format_rate(v, out);
    else if (!strcmp(unit, "ms") && v > -9e12 && v < 9e12)
        wb_format_ns((int64_t)(v * 1e6), out);
    else
        wb_buf_addf(out, "%.6g%s%s", v, *unit ? " " : "", unit);
}

void wb_cli_when(const char *time, struct wb_buf *out)
{
    if (strlen(time) < 16)
        wb_buf_adds(out, "-");
    else
        wb_buf_addf(out, "%.5s %.5s", time + 5, time + 11);
}

void wb_cli_plain(const char *text, size_t n, struct wb_buf *out)
{
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        /* C1 controls are two bytes in UTF-8, c2 80 to c2 9f. */
        bool c1 = c == 0xc2 && i + 1 < n && ((unsigned char)text[i + 1] & 0xe0) == 0x80;

        if ((c >= 0x20 && c != 0x7f && !c1) || c == '\n' || c == '\t')
            continue;
        wb_buf_add(out, text + from, i - from);
        if (c != '\r' || i + 1 >= n || text[i + 1] != '\n')
            wb_buf_addc(out, '?');
        i += c1;
        from = i + 1;
    }
    wb_buf_add(out, text + from, n - from);
}

/* ---- lists ---- */

/* An id without its "run_". */
static const char *bare(const wb_json *run)
{
    const char *id = wb_json_str_or(run, "id", "");

    return strncmp(id, "run_", 4) ? id : id + 4;
}

/* How much of the ids must be shown to tell those of the list apart. */
static int shown_length(const wb_json *runs)
{
    int most = ID_SHOWN_MIN;

    for (size_t i = 0; i < wb_json_len(runs); i++)
        for (size_t k = i + 1; k < wb_json_len(runs) && k < i + 50; k++) {
            const char *a = bare(wb_json_at(runs, i)), *b = bare(wb_json_at(runs, k));
            int same = 0;

            while (a[same] && a[same] == b[same])
                same++;
            if (a[same] && same + 1 > most)
                most = same + 1;
        }
    return most;
}

/* The metric that stands for a run in a list. */
static const wb_json *headline(const wb_json *run, const char *which)
{
    const char *name = wb_json_str_or(wb_json_get(run, "headline"), which, NULL);

    return name ? wb_json_get(wb_json_get(run, "metrics"), name) : NULL;
}

static void metric_cell(struct wb_table *t, const wb_json *metric)
{
    struct wb_buf b = WB_BUF_INIT(256);

    wb_cli_metric(metric, &b);
    wb_table_cell(t, "%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

static enum wb_tint outcome_tint(const char *word)
{
    return !strcmp(word, "ok") || !strcmp(word, "-") ? WB_PLAIN
           : !strcmp(word, "target-missed")          ? WB_CAUTION
                                                     : WB_BAD;
}

static enum wb_tint validity_tint(const char *word)
{
    return !strcmp(word, "valid") || !strcmp(word, "-") ? WB_PLAIN
           : !strcmp(word, "noisy")                     ? WB_CAUTION
                                                        : WB_BAD;
}

void wb_cli_run_table(const struct wb_cli *cli, const wb_json *runs, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();
    int shown = shown_length(runs);

    /* Columns on the right are never cut; ids and times are of one width anyway. */
    wb_table_column(t, "run", WB_RIGHT);
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "round", WB_RIGHT);
    wb_table_column(t, "outcome", WB_LEFT);
    wb_table_column(t, "validity", WB_LEFT);
    wb_table_column(t, "ops", WB_RIGHT);
    wb_table_column(t, "p99", WB_RIGHT);
    wb_table_column(t, "when (UTC)", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(runs); i++) {
        const wb_json *r = wb_json_at(runs, i);
        const char *damaged = wb_json_str_or(r, "damaged", NULL);
        struct wb_buf when = WB_BUF_INIT(64);

        wb_table_row(t);
        wb_table_cell(t, "%.*s", shown, bare(r));
        wb_table_cell(t, "%s", wb_json_str_or(r, "arm", damaged ? "(damaged)" : "?"));
        wb_table_cell(t, damaged ? "-" : "%lld", (long long)wb_json_int_or(r, "round", 0));
        wb_table_cell(t, "%s", wb_json_str_or(r, "outcome", "-"));
        wb_table_tint(t, outcome_tint(wb_json_str_or(r, "outcome", "-")));
        wb_table_cell(t, "%s", wb_json_str_or(r, "validity", "-"));
        wb_table_tint(t, validity_tint(wb_json_str_or(r, "validity", "-")));
        metric_cell(t, headline(r, "throughput"));
        metric_cell(t, headline(r, "p99"));
        wb_cli_when(wb_json_str_or(r, "started_at", ""), &when);
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_buf_release(&when);
    }
    wb_table_color(t, cli->color);
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

static void add_arm(wb_json *arms, const char *label)
{
    for (size_t i = 0; i < wb_json_len(arms); i++)
        if (!strcmp(wb_json_string(wb_json_at(arms, i)), label))
            return;
    wb_json_push(arms, wb_json_str(label));
}

static void count_run(wb_json *c, const wb_json *run)
{
    const char *start = wb_json_str_or(run, "started_at", "");
    const char *end = wb_json_str_or(run, "ended_at", "");
    int64_t round = wb_json_int_or(run, "round", 0);

    wb_json_set_int(c, "runs", wb_json_int_or(c, "runs", 0) + 1);
    wb_json_set_int(c, "ok",
                    wb_json_int_or(c, "ok", 0) + !strcmp(wb_json_str_or(run, "outcome", ""), "ok"));
    if (round > wb_json_int_or(c, "rounds", 0))
        wb_json_set_int(c, "rounds", round);
    add_arm(wb_json_get(c, "arms"), wb_json_str_or(run, "arm", "?"));
    if (!wb_json_get(c, "started_at") || strcmp(start, wb_json_str_or(c, "started_at", "")) < 0)
        wb_json_set_str(c, "started_at", start);
    if (!wb_json_get(c, "ended_at") || strcmp(end, wb_json_str_or(c, "ended_at", "")) > 0)
        wb_json_set_str(c, "ended_at", end);
}

wb_json *wb_cli_campaigns(const wb_json *runs)
{
    wb_json *all = wb_json_array(), *last = NULL;

    for (size_t i = 0; i < wb_json_len(runs); i++) {
        const wb_json *r = wb_json_at(runs, i);
        const char *id = wb_json_str_or(r, "campaign", NULL);

        if (!id)
            continue;
        if (!last || strcmp(wb_json_str_or(last, "id", ""), id) != 0)
            last = find_by(all, "id", id);
        if (!last) {
            last = wb_json_object();
            wb_json_set_str(last, "id", id);
            wb_json_set_str(last, "study", wb_json_str_or(r, "study", NULL));
            wb_json_set_int(last, "runs", 0);
            wb_json_set_int(last, "ok", 0);
            wb_json_set_int(last, "rounds", 0);
            wb_json_set(last, "arms", wb_json_array());
            wb_json_push(all, last);
        }
        count_run(last, r);
    }
    return all;
}

void wb_cli_run_complete(wb_json *summary, const wb_json *result, const wb_json *environment)
{
    const wb_json *phases = wb_json_get(result, "phases"), *data = wb_json_get(result, "data");
    const wb_json *parity = wb_json_get(environment, "parity");

    wb_json_set(summary, "phases",
                wb_json_type(phases) == WB_JSON_ARRAY ? wb_json_ref(phases) : wb_json_array());
    if (data)
        wb_json_set(summary, "data", wb_json_ref(data));
    if (wb_json_type(parity) == WB_JSON_OBJECT)
        wb_json_set(summary, "parity", wb_json_ref(parity));
}
