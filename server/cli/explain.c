/* `explain A B`: what else is different between two arms, campaigns of one arm, or runs. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign.h"
#include "server/analysis/effect.h"
#include "server/analysis/explain.h"
#include "server/cli/commands.h"
#include "server/cli/refs.h"

#define OUT_MAX (16u << 20)

struct options {
    const char *metric;
};

/* One side with the documents behind it. */
struct side {
    struct wb_cli_ref ref;
    wb_json *summaries; /* of the runs that count */
    wb_json *documents; /* owns what runs point to */
    struct wb_explain_run *runs;
    size_t n;
};

static void side_release(struct side *s)
{
    free(s->runs);
    wb_json_free(s->documents);
    wb_json_free(s->summaries);
    wb_cli_ref_release(&s->ref);
}

/* A run stands for itself: its campaign, with this run alone. */
static int read_run(struct wb_store *store, const char *typed, const struct wb_cli_id *id,
                    struct side *out, struct wb_err *err)
{
    wb_json *summary = NULL;
    int rc = wb_store_read(store, id->run, "summary", &summary, err);

    if (rc < 0)
        return rc;
    out->ref.typed = typed;
    out->ref.campaign = wb_strdup(wb_json_str_or(summary, "campaign", ""));
    out->ref.arm = wb_strdup(wb_json_str_or(summary, "arm", ""));
    out->ref.runs = wb_json_array();
    wb_json_push(out->ref.runs, wb_json_ref(summary));
    out->summaries = wb_json_array();
    wb_json_push(out->summaries, summary);
    return wb_store_read(store, id->run, "plan", &out->ref.plan, err);
}

/* The runs of the arm that count. */
static int read_arm(struct side *s, struct wb_err *err)
{
    const wb_json *arms = wb_json_get(s->ref.plan, "arms");
    struct wb_counted counted;
    int rc;

    if (s->ref.arm == NULL && wb_json_len(arms) == 1)
        s->ref.arm = wb_strdup(wb_json_str_or(wb_json_at(arms, 0), "label", ""));
    if (s->ref.arm == NULL)
        return wb_fail(err, WB_INVALID,
                       "%s has %zu arms: name one of them as CAMPAIGN/ARM, such as '%s/%s'",
                       s->ref.typed, wb_json_len(arms), s->ref.typed,
                       wb_json_str_or(wb_json_at(arms, 0), "label", ""));
    rc = wb_count_runs(s->ref.plan, s->ref.runs, &counted, err);
    if (rc < 0)
        return rc;
    s->summaries = wb_json_array();
    for (size_t i = 0; i < counted.nruns; i++)
        if (counted.runs[i].used &&
            !strcmp(wb_json_str_or(counted.runs[i].summary, "arm", ""), s->ref.arm))
            wb_json_push(s->summaries, wb_json_ref(counted.runs[i].summary));
    wb_counted_release(&counted);
    return 0;
}

static int read_documents(struct wb_store *store, struct side *s, struct wb_err *err)
{
    size_t n = wb_json_len(s->summaries);
    int rc = 0;

    if (n > WB_EXPLAIN_RUNS_MAX)
        return wb_fail(err, WB_LIMIT, "%s has %zu runs, at most %d are explained", s->ref.typed, n,
                       WB_EXPLAIN_RUNS_MAX);
    s->runs = wb_calloc(n, sizeof(*s->runs));
    s->documents = wb_json_array();
    for (size_t i = 0; rc == 0 && i < n; i++) {
        wb_json *environment = NULL, *result = NULL;
        const wb_json *summary = wb_json_at(s->summaries, i);
        const char *id = wb_json_str_or(summary, "id", "");

        rc = wb_store_read(store, id, "environment", &environment, err);
        if (rc == 0)
            rc = wb_store_read(store, id, "result", &result, err);
        s->runs[s->n++] = (struct wb_explain_run){summary, environment, result};
        wb_json_push(s->documents, environment ? environment : wb_json_null());
        wb_json_push(s->documents, result ? result : wb_json_null());
    }
    return rc;
}

static int read_side(struct wb_store *store, const char *typed, struct side *out,
                     struct wb_err *err)
{
    struct wb_cli_id id = {0};
    int rc = 0;

    if (strchr(typed, '/') == NULL)
        rc = wb_cli_find(store, typed, &id, err);
    if (rc == 0 && id.run != NULL && id.campaign == NULL) {
        rc = read_run(store, typed, &id, out, err);
    } else if (rc == 0) {
        rc = wb_cli_ref_read(store, typed, &out->ref, err);
        if (rc == 0)
            rc = read_arm(out, err);
    }
    wb_cli_id_release(&id);
    return rc == 0 ? read_documents(store, out, err) : rc;
}

static const wb_json *arm_of(const struct side *s)
{
    const wb_json *arms = wb_json_get(s->ref.plan, "arms");
    int i = wb_plan_arm(s->ref.plan, s->ref.arm);

    return i < 0 ? NULL : wb_json_at(arms, (size_t)i);
}

static const wb_json *workload_of(const struct side *s)
{
    const wb_json *own = wb_json_get(arm_of(s), "workload");

    return own ? own : wb_json_get(s->ref.plan, "workload");
}

/* The metric asked for, the one that the plan's first contrast is about, or throughput. */
static const char *metric_of(const struct side *s, const struct options *o)
{
    const wb_json *c = wb_json_at(wb_json_get(s->ref.plan, "contrasts"), 0);
    const char *planned = wb_json_str_or(c, "metric", NULL);

    if (o->metric)
        return o->metric;
    return planned
               ? planned
               : wb_json_string(wb_json_path(wb_json_at(s->summaries, 0), "headline.throughput"));
}

static int answer(const struct side *sides, const struct options *o, wb_json **out,
                  struct wb_err *err)
{
    struct wb_explain_side in[2];
    struct wb_explain_question q = {.metric = metric_of(&sides[0], o),
                                    .threshold_percent = WB_THRESHOLD_PERCENT};
    const wb_json *m = NULL;

    if (q.metric == NULL)
        return wb_fail(err, WB_NOT_FOUND, "no run of %s has a figure; name one with --metric",
                       sides[0].ref.typed);
    for (int s = 0; s < 2; s++) {
        in[s] = (struct wb_explain_side){.name = sides[s].ref.typed,
                                         .arm = arm_of(&sides[s]),
                                         .workload = workload_of(&sides[s]),
                                         .runs = sides[s].runs,
                                         .n = sides[s].n};
        for (size_t i = 0; i < sides[s].n && m == NULL; i++)
            m = wb_json_get(wb_json_get(sides[s].runs[i].summary, "metrics"), q.metric);
    }
    if (m == NULL && sides[0].n > 0 && sides[1].n > 0)
        return wb_fail(err, WB_INVALID,
                       "no run of %s or %s has a metric '%s': `weighbridge show` lists them",
                       sides[0].ref.typed, sides[1].ref.typed, q.metric);
    q.better = wb_json_str_or(m, "better", NULL);
    q.threshold_percent = wb_json_real_or(sides[0].ref.plan, "threshold_percent", 2);
    return wb_explain(in, &q, out, err);
}

static int explain(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct side sides[2] = {{.n = 0}, {.n = 0}};
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    wb_json *doc = NULL;
    int rc = wb_cli_open_store(cli, &s, &err);

    for (int i = 0; i < argc && rc == 0; i++)
        rc = read_side(s, argv[i], &sides[i], &err);
    if (rc == 0)
        rc = answer(sides, opts, &doc, &err);
    wb_store_close(s);
    if (rc == 0 && cli->json) {
        wb_cli_answer(cli, doc, NULL);
    } else if (rc == 0) {
        wb_explain_print(doc, cli->width, &out);
        wb_json_free(doc);
        wb_cli_print(&out);
    }
    side_release(&sides[0]);
    side_release(&sides[1]);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

static const struct wb_opt explain_opts[] = {
    {"metric", 0, WB_OPT_TEXT, offsetof(struct options, metric), "NAME", 0, 0,
     "the figure that moved (that of the plan's first contrast)"},
    {0},
};

const struct wb_command wb_cmd_explain = {
    .name = "explain",
    .args = "A B",
    .summary = "what else differs between two arms or runs, ranked",
    .help =
        "A and B are CAMPAIGN/ARM, a campaign of one arm, or a run. Lists the settings and the\n"
        "facts of host and database that differ, and the signals (samples of host, load and\n"
        "database) that moved with the figure. What moved together is no proof of a cause.\n",
    .opts = explain_opts,
    .opts_size = sizeof(struct options),
    .min_args = 2,
    .max_args = 2,
    .run = explain,
};
