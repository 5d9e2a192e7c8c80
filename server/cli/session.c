#include "server/cli/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/cli/progress.h"

int wb_session_open(const struct wb_cli *cli, bool create, const char *controller,
                    struct wb_session *s, struct wb_err *err)
{
    int rc = s->places.store ? 0 : wb_places_find(cli, &s->places, err);

    if (rc == 0)
        rc = wb_store_open(s->places.store, create, controller, &s->store, err);
    if (rc == 0) {
        s->cancel = wb_cancel_new();
        rc = wb_cancel_on_signals(s->cancel, err);
    }
    return rc;
}

void wb_session_release(struct wb_session *s)
{
    wb_plan_free(s->plan);
    wb_study_free(s->study);
    wb_store_close(s->store);
    wb_cancel_free(s->cancel);
    wb_places_release(&s->places);
    *s = (struct wb_session){0};
}

/* The report of what was recorded; also of a campaign that did not come to its end. */
static int report(const struct wb_cli *cli, const struct wb_session *s,
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
        wb_cli_answer(cli, doc, NULL);
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

int wb_session_exit(const struct wb_engine_result *res, int rc, const struct wb_err *err)
{
    if (res->incomplete)
        return WB_EXIT_LEFT;
    if (rc == -WB_CANCELLED)
        return WB_EXIT_INTERRUPTED;
    if (rc < 0)
        return res->worst != WB_OUTCOME_OK ? wb_outcome_exit(res->worst)
               : err->code == WB_CONFLICT  ? WB_EXIT_CONFLICT
                                           : WB_EXIT_INFRA;
    if (res->counted == 0 && !wb_outcome_exit(res->worst))
        return WB_EXIT_NOT_VALID;
    return wb_outcome_exit(res->worst);
}

int wb_session_run(const struct wb_cli *cli, const struct wb_session *s,
                   const struct wb_session_opts *o)
{
    struct wb_progress *progress = o->quiet ? NULL : wb_progress_new(STDERR_FILENO, cli->no_color);
    struct wb_engine_result res = {0};
    struct wb_err err = WB_ERR_INIT, late = WB_ERR_INIT;
    const struct wb_engine_spec spec = {.plan = s->plan,
                                        .store = s->store,
                                        .state_dir = s->places.state,
                                        .load_program = s->places.load_program,
                                        .docker_socket = s->places.docker_socket,
                                        .cancel = s->cancel,
                                        .listener = progress ? wb_progress_event : NULL,
                                        .listener_arg = progress,
                                        .wait_ns = o->wait_s * WB_SEC,
                                        .resume = o->resume,
                                        .accept_changes = o->accept_changes};
    int rc = wb_engine_run(&spec, &res, &err);

    wb_progress_free(progress);
    /* Without any record there is nothing to report; with --json the error is the one document. */
    if (rc < 0 && (res.done == 0 || !cli->json)) {
        (void)wb_cli_fail(cli, &err);
    } else if (rc < 0) {
        char text[2 * WB_ERR_TEXT_MAX];

        (void)fprintf(stderr, "weighbridge: %s\n", wb_err_text(&err, text, sizeof(text)));
    }
    if (res.done > 0 && !o->no_report && report(cli, s, &res, &late) < 0)
        (void)wb_cli_fail(cli, &late);
    return wb_session_exit(&res, rc, &err);
}
