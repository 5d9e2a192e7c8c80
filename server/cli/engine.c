/* `engine CAMPAIGN`: what `serve` starts for each campaign; not meant for people. */
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/session.h"
#include "server/cli/study_args.h"
#include "server/engine/resume.h"

struct opts {
    int64_t wait_s;
};
static const struct wb_opt rows[] = {
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {0},
};

/* Live figures are for whoever looks: the last one stands in a file that is written over. */
static void on_event(void *arg, const wb_json *event)
{
    struct wb_buf b = WB_BUF_INIT(64u << 10);

    if (strcmp(wb_json_str_or(event, "type", ""), "run.sample") != 0)
        return;
    wb_json_line(event, &b);
    if (!b.failed)
        WB_IGNORE(wb_file_put(arg, b.data, b.len, NULL)); /* a figure less on a full disk */
    wb_buf_release(&b);
}

static int execute(const struct wb_cli *cli, struct wb_session *s, const struct opts *o)
{
    WB_AUTO_FREE char *live =
        wb_strf("%s/campaigns/%s/live.json", s->places.state, s->plan->campaign);
    const struct wb_engine_spec spec = {.plan = s->plan,
                                        .store = s->store,
                                        .state_dir = s->places.state,
                                        .load_program = s->places.load_program,
                                        .docker_socket = s->places.docker_socket,
                                        .cancel = s->cancel,
                                        .listener = on_event,
                                        .listener_arg = live,
                                        .wait_ns = o->wait_s * WB_SEC,
                                        .resume = true};
    struct wb_engine_result res = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_engine_run(&spec, &res, &err);

    if (rc < 0)
        (void)wb_cli_fail(cli, &err);
    return wb_session_exit(&res, rc, &err);
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_problems problems = {0};
    struct wb_resume r = {0};
    struct wb_session s = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_session_open(cli, false, NULL, &s, &err);

    if (rc == 0)
        rc = wb_resume_read(s.places.state, argv[0], cli->recipes_dir, &r, &problems, &err);
    if (rc < 0) {
        rc = wb_cli_fail(cli, &err);
    } else if (!r.plan) {
        rc = wb_study_problems(cli, &problems);
    } else {
        s.study = WB_STEAL(r.study);
        s.plan = WB_STEAL(r.plan);
        rc = execute(cli, &s, opts);
    }
    wb_resume_release(&r);
    wb_session_release(&s);
    wb_problems_release(&problems);
    return rc;
}

const struct wb_command wb_cmd_engine = {
    .name = "engine",
    .args = "CAMPAIGN",
    .summary = "run a campaign that waits in the queue of the service",
    .help = "Started by `serve`, one process for each campaign. Exit codes are those of `run`.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .here = true,
    .hidden = true,
    .no_files = true,
};
