/* `report CAMPAIGN`: one HTML file. */
#include "server/cli/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/refs.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"

#define PAGE_MAX (64u << 20)

struct options {
    const char *output;
};
static const struct wb_opt opts[] = {
    {"output", 'O', WB_OPT_TEXT, offsetof(struct options, output), "FILE", 0, 0,
     "into this file (CAMPAIGN.html); - is standard output"},
    {0},
};

/* Values of one arm's runs at the percentiles. */
struct sample {
    double *v[WB_CURVE_POINTS];
    size_t n;
};

static bool left_out(const wb_json *report, const char *run)
{
    const wb_json *list = wb_json_get(wb_json_get(report, "runs"), "left_out");

    for (size_t i = 0; i < wb_json_len(list); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(list, i), "run", ""), run))
            return true;
    return false;
}

/* Times of a phase of a run: response times, or service times where there are none. */
static const wb_json *times_of(const wb_json *result, const char *phase, bool *service)
{
    const wb_json *phases = wb_json_get(result, "phases");

    for (size_t i = 0; i < wb_json_len(phases); i++) {
        const wb_json *p = wb_json_at(phases, i), *all;

        if (strcmp(wb_json_str_or(p, "name", ""), phase) != 0)
            continue;
        all = wb_json_path(p, "load.operations.all");
        *service = wb_json_type(wb_json_get(all, "response")) != WB_JSON_OBJECT;
        return wb_json_get(all, *service ? "service" : "response");
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add_run(struct sample *s, const wb_json *times)
{
    static const char *const keys[WB_CURVE_POINTS] = {"p50_ms", "p90_ms",   "p95_ms",
                                                      "p99_ms", "p99_9_ms", "p99_99_ms"};

    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        s->v[k] = wb_realloc(s->v[k], s->n + 1, sizeof(double));
        s->v[k][s->n] = wb_json_real_or(times, keys[k], NAN);
    }
    s->n++;
}

static void finish(struct sample *s, struct wb_report_curve *c)
{
    c->runs = s->n;
    for (int k = 0; k < WB_CURVE_POINTS; k++) {
        size_t n = 0;

        for (size_t i = 0; i < s->n; i++)
            if (!isnan(s->v[k][i]))
                s->v[k][n++] = s->v[k][i];
        c->median[k] = c->lo[k] = c->hi[k] = NAN;
        if (n) {
            qsort(s->v[k], n, sizeof(double), by_value);
            c->median[k] = (s->v[k][(n - 1) / 2] + s->v[k][n / 2]) / 2;
            c->lo[k] = s->v[k][0];
            c->hi[k] = s->v[k][n - 1];
        }
        free(s->v[k]);
    }
}

/* The curves of all arms; *of names what they are of, owned. */
static int read_curves(struct wb_store *store, const wb_json *report, const wb_json *runs,
                       struct wb_report_curve *curves, char **of, struct wb_err *err)
{
    const wb_json *arms = wb_json_get(report, "arms");
    const char *metric = wb_json_string(wb_json_path(report, "headline.p99"));
    const char *dot = metric ? strrchr(metric, '.') : NULL;
    WB_AUTO_FREE char *phase = dot ? wb_strndup(metric, (size_t)(dot - metric)) : NULL;
    bool service = false;
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(arms); i++) {
        struct sample s = {{NULL}, 0};

        curves[i].arm = wb_json_str_or(wb_json_at(arms, i), "label", "?");
        for (size_t k = 0; phase && rc == 0 && k < wb_json_len(runs); k++) {
            const wb_json *run = wb_json_at(runs, k), *times;
            WB_AUTO_JSON wb_json *result = NULL;
            const char *id = wb_json_str_or(run, "id", "");

            if (strcmp(wb_json_str_or(run, "arm", ""), curves[i].arm) != 0 || left_out(report, id))
                continue;
            rc = wb_store_read(store, id, "result", &result, err);
            times = times_of(result, phase, &service);
            if (times)
                add_run(&s, times);
        }
        finish(&s, &curves[i]);
    }
    if (rc == 0 && phase)
        *of = wb_strf("%s time in phase %s", service ? "Service" : "Response", phase);
    return rc;
}

static int make(struct wb_store *s, const char *typed, struct wb_buf *out, char **campaign,
                struct wb_err *err)
{
    struct wb_ref ref = {0};
    struct wb_buf now = WB_BUF_INIT(64);
    WB_AUTO_JSON wb_json *report = NULL;
    WB_AUTO_FREE struct wb_report_curve *curves = NULL;
    WB_AUTO_FREE char *of = NULL;
    size_t n = 0;
    int rc = wb_ref_read(s, typed, &ref, err);

    if (rc == 0 && ref.arm)
        rc = wb_fail(err, WB_INVALID, "'%s' is one arm: name the campaign alone", typed);
    if (rc == 0)
        rc = wb_campaign_report(ref.plan, ref.runs, &report, err);
    if (rc == 0) {
        n = wb_json_len(wb_json_get(report, "arms"));
        curves = wb_calloc(n, sizeof(*curves));
        rc = read_curves(s, report, ref.runs, curves, &of, err);
    }
    wb_format_time(wb_now_unix_ms(NULL), &now);
    if (rc == 0) {
        const struct wb_report_page page = {.report = report,
                                            .runs = ref.runs,
                                            .environment = ref.environment,
                                            .curves = curves,
                                            .ncurves = n,
                                            .curves_of = of,
                                            .made_at = wb_buf_str(&now)};

        wb_report_html(&page, out);
        rc = wb_buf_check(out, "the report", err);
        *campaign = wb_strdup(ref.campaign);
    }
    wb_buf_release(&now);
    wb_ref_release(&ref);
    return rc;
}

static int report(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_buf page = WB_BUF_INIT(PAGE_MAX), said = WB_BUF_INIT(8192);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_FREE char *campaign = NULL;
    WB_AUTO_FREE char *path = NULL;
    size_t bytes;
    int rc = wb_cli_open_store(cli, &s, &err);

    if (rc == 0)
        rc = make(s, argv[0], &page, &campaign, &err);
    wb_store_close(s);
    if (rc == 0 && o->output && !strcmp(o->output, "-")) {
        wb_cli_print(&page);
        return WB_EXIT_OK;
    }
    path = o->output ? wb_strdup(o->output) : wb_strf("%s.html", campaign ? campaign : "report");
    bytes = page.len;
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&page), page.len, 0644, &err);
    wb_buf_release(&page);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "campaign", campaign);
        wb_json_set_str(doc, "file", path);
        wb_json_set_int(doc, "bytes", (int64_t)bytes);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_buf_addf(&said, "%s\n", path);
    wb_cli_print(&said);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_report = {
    .name = "report",
    .args = "CAMPAIGN",
    .summary = "a campaign as one HTML file to send around",
    .help =
        "Verdicts in words, intervals and percentile curves as pictures, the tables behind them,\n"
        "what was not counted and why. The file needs no network and no script; it follows the\n"
        "reader's light or dark setting, and prints. Prints the name of the file.\n",
    .examples = "  weighbridge report cmp_01JX8A -O forms.html\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = report,
};
