/* `resume CAMPAIGN`: goes on with a campaign that was interrupted. */
#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/remote_run.h"
#include "server/cli/session.h"
#include "server/cli/study_args.h"
#include "server/engine/resume.h"

struct opts {
    int64_t wait_s;
    bool quiet, accept_changes, wait;
};
static const struct wb_opt rows[] = {
    {"accept-changes", 0, WB_OPT_FLAG, offsetof(struct opts, accept_changes), NULL, 0, 0,
     "go on with other programs than before; runs are marked"},
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {"wait", 0, WB_OPT_FLAG, offsetof(struct opts, wait), NULL, 0, 0,
     "server: follow it to the end"},
    {0},
};

static int check(const struct wb_resume *r, const struct wb_session *s, const char *id,
                 struct wb_err *err)
{
    if (!strcmp(r->state, "finished"))
        return wb_fail(err, WB_CONFLICT, "campaign %s is finished: there is nothing to resume", id);
    if (r->owner && strcmp(r->owner, wb_store_controller(s->store)) != 0)
        return wb_fail(err, WB_CONFLICT,
                       "campaign %s belongs to the store %s: name it with --store", id,
                       r->store ? r->store : "of another owner");
    return 0;
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_problems problems = {0};
    struct wb_resume r = {0};
    struct wb_session s = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_session_open(cli, false, NULL, &s, &err);

    if (rc == 0)
        rc = wb_resume_read(s.places.state, argv[0], cli->recipes_dir, &r, &problems, &err);
    if (rc == 0 && r.plan)
        rc = check(&r, &s, argv[0], &err);
    if (rc < 0) {
        rc = wb_cli_fail(cli, &err);
    } else if (!r.plan) {
        rc = wb_study_problems(cli, &problems);
    } else {
        s.study = WB_STEAL(r.study);
        s.plan = WB_STEAL(r.plan);
        rc = wb_session_run(cli, &s,
                            &(struct wb_session_opts){.quiet = o->quiet,
                                                      .resume = true,
                                                      .accept_changes = o->accept_changes,
                                                      .wait_s = o->wait_s});
    }
    wb_resume_release(&r);
    wb_session_release(&s);
    wb_problems_release(&problems);
    return rc;
}

static int remote(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    const struct wb_study_args none = {0};
    const struct wb_remote_submit s = {.args = &none, .wait = o->wait, .quiet = o->quiet};
    struct wb_err err = WB_ERR_INIT;

    (void)argc;
    if (!o->accept_changes && !o->wait_s)
        return wb_remote_again(cli, argv[0], "resume", &s);
    (void)wb_fail(&err, WB_INVALID,
                  "--accept-changes and --wait-for-host are for this machine: leave them out");
    return wb_cli_fail(cli, &err);
}

const struct wb_command wb_cmd_resume = {
    .name = "resume",
    .args = "CAMPAIGN",
    .summary = "go on with a campaign that was interrupted",
    .help = "Cleans up first. Finished rounds are kept; the interrupted one is repeated whole as\n"
            "a new attempt, 2 in all, and the records of both are kept. Refused when the recipe,\n"
            "the host or the plan is another than before. Exit codes are those of `run`.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .remote = remote,
};
