/* `run STUDY`: the campaign engine in the foreground. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/base/cancel.h"
#include "server/base/rng.h"
#include "server/cli/commands.h"
#include "server/cli/places.h"
#include "server/cli/progress.h"
#include "server/cli/study_args.h"
#include "server/engine/engine.h"

struct opts {
    struct wb_study_args study; /* first: WB_STUDY_OPTS */
    const char *controller;
    bool quiet;
};
static const struct wb_opt rows[] = {
    WB_STUDY_OPTS,
    {"controller", 0, WB_OPT_TEXT, offsetof(struct opts, controller), "ID", 0, 0,
     "id for a store that is new"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {0},
};

/* Everything that is made for one command and released at its end. */
struct session {
    struct wb_problems problems;
    struct wb_study *study;
    struct wb_plan *plan;
    struct wb_host_facts host;
    struct wb_store *store;
    struct wb_cancel *cancel;
    struct wb_places places;
};

static void release(struct session *s)
{
    wb_plan_free(s->plan);
    wb_study_free(s->study);
    wb_problems_release(&s->problems);
    wb_host_facts_release(&s->host);
    wb_store_close(s->store);
    wb_cancel_free(s->cancel);
    wb_places_release(&s->places);
}

/* The report of what was recorded; also of a campaign that did not come to its end. */
static int report(const struct wb_cli *cli, const struct session *s,
                  const struct wb_engine_result *res, struct wb_err *err)
{
    struct wb_list_filter filter = {.campaign = s->plan->campaign};
    WB_AUTO_JSON wb_json *plan = wb_plan_json(s->plan);
    WB_AUTO_JSON wb_json *summaries = NULL;
    wb_json *doc = NULL;
    struct wb_buf b = WB_BUF_INIT(4u << 20);
    int rc = wb_store_list(s->store, &filter, &summaries, err);

    if (rc == 0)
        rc = wb_campaign_report(plan, summaries, &doc, err);
    if (rc < 0)
        return rc;
    if (cli->json) {
        wb_json_set_str(doc, "campaign", s->plan->campaign);
        wb_json_set_int(doc, "runs_planned", (int64_t)res->planned);
        wb_json_set_int(doc, "runs_done", (int64_t)res->done);
        wb_json_set_int(doc, "runs_counted", (int64_t)res->counted);
        wb_cli_print_json(doc);
        return 0;
    }
    wb_campaign_report_print(doc, cli->width, &b);
    wb_json_free(doc);
    wb_buf_addf(&b,
                "\nnext:\n"
                "  weighbridge show %s%s%s\n"
                "  weighbridge compare %s%s%s\n"
                "  weighbridge verify --all%s%s\n",
                s->plan->campaign, s->places.store_flag, s->places.store_arg, s->plan->campaign,
                s->places.store_flag, s->places.store_arg, s->places.store_flag,
                s->places.store_arg);
    wb_cli_print(&b);
    return 0;
}

static int prepare(const struct wb_cli *cli, const struct opts *o, const char *file,
                   struct session *s, struct wb_err *err)
{
    int rc;

    s->problems.file = file;
    s->study = wb_study_args_read(cli, &o->study, file, &s->problems);
    if (!s->study)
        return 0;
    rc = wb_host_facts_read(&s->host, err);
    if (rc < 0)
        return rc;
    s->plan = wb_plan_make(s->study, &s->host, s->study->seed ? s->study->seed : wb_random_seed(),
                           &s->problems);
    if (!s->plan)
        return 0;
    rc = wb_places_find(cli, &s->places, err);
    if (rc == 0)
        rc = wb_store_open(s->places.store, true, o->controller, &s->store, err);
    if (rc == 0) {
        s->cancel = wb_cancel_new();
        rc = wb_cancel_on_signals(s->cancel, err);
    }
    return rc;
}

static int exit_code(const struct wb_engine_result *res, int rc, const struct wb_err *err)
{
    if (res->incomplete)
        return WB_EXIT_LEFT;
    if (rc == -WB_CANCELLED)
        return WB_EXIT_INTERRUPTED;
    if (rc < 0)
        return res->worst != WB_OUTCOME_OK ? wb_outcome_exit(res->worst)
               : err->code == WB_CONFLICT  ? WB_EXIT_CONFLICT
                                           : WB_EXIT_INFRA;
    if (res->counted == 0)
        return WB_EXIT_NOT_VALID;
    return wb_outcome_exit(res->worst);
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct session s = {0};
    struct wb_engine_result res = {0};
    struct wb_err err = WB_ERR_INIT, late = WB_ERR_INIT;
    struct wb_engine_spec spec = {0};
    struct wb_progress *progress = NULL;
    int rc = prepare(cli, o, argv[0], &s, &err);

    if (rc < 0 || !s.plan) {
        rc = rc < 0 ? wb_cli_fail(cli, &err) : wb_study_problems(cli, &s.problems);
        release(&s);
        return rc;
    }
    if (!o->quiet)
        progress = wb_progress_new(STDERR_FILENO, cli->no_color);
    spec = (struct wb_engine_spec){.plan = s.plan,
                                   .store = s.store,
                                   .state_dir = s.places.state,
                                   .load_program = s.places.load_program,
                                   .docker_socket = s.places.docker_socket,
                                   .cancel = s.cancel,
                                   .listener = progress ? wb_progress_event : NULL,
                                   .listener_arg = progress};
    rc = wb_engine_run(&spec, &res, &err);
    wb_progress_free(progress);
    /* Without any record there is nothing to report; with --json the error is the one document. */
    if (rc < 0 && (res.done == 0 || !cli->json)) {
        (void)wb_cli_fail(cli, &err);
    } else if (rc < 0) {
        char text[2 * WB_ERR_TEXT_MAX];

        (void)fprintf(stderr, "weighbridge: %s\n", wb_err_text(&err, text, sizeof(text)));
    }
    if (res.done > 0 && report(cli, &s, &res, &late) < 0)
        (void)wb_cli_fail(cli, &late);
    rc = exit_code(&res, rc, &err);
    release(&s);
    return rc;
}

const struct wb_command wb_cmd_run = {
    .name = "run",
    .args = "STUDY",
    .summary = "run a study here and say what differs",
    .help = "Checks everything first, deploys each arm in shuffled rounds, measures, removes,\n"
            "records every run in the store and prints the comparison. Ctrl-C cancels cleanly.\n\n"
            "Exit: 0 done, 2 invalid study, 12 a run failed by the database, 13 by the\n"
            "infrastructure, 14 no valid run, 16 something was left, 130 cancelled.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
