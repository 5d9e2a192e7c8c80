/* `run STUDY`: the campaign engine in the foreground. */
#include "server/cli/commands.h"
#include "server/cli/session.h"
#include "server/cli/study_args.h"

struct opts {
    struct wb_study_args study; /* first: WB_STUDY_OPTS */
    const char *controller;
    int64_t wait_s;
    bool quiet;
};
static const struct wb_opt rows[] = {
    WB_STUDY_OPTS,
    {"controller", 0, WB_OPT_TEXT, offsetof(struct opts, controller), "ID", 0, 0,
     "id for a store that is new"},
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {0},
};

/* Study and plan; problems go to p. */
static int prepare(const struct wb_cli *cli, const struct opts *o, const char *file,
                   struct wb_session *s, struct wb_problems *p, struct wb_err *err)
{
    struct wb_host_facts host = {0};
    int rc;

    p->file = file;
    s->study = wb_study_args_read(cli, &o->study, file, p);
    if (!s->study)
        return 0;
    rc = wb_host_facts_read(&host, err);
    if (rc == 0)
        s->plan = wb_plan_make(s->study, &host, 0, p);
    wb_host_facts_release(&host);
    if (s->plan)
        rc = wb_session_open(cli, true, o->controller, s, err);
    return rc;
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_problems problems = {0};
    struct wb_session s = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = prepare(cli, o, argv[0], &s, &problems, &err);

    if (rc < 0)
        rc = wb_cli_fail(cli, &err);
    else if (!s.plan)
        rc = wb_study_problems(cli, &problems);
    else
        rc = wb_session_run(cli, &s,
                            &(struct wb_session_opts){.quiet = o->quiet, .wait_s = o->wait_s});
    wb_session_release(&s);
    wb_problems_release(&problems);
    return rc;
}

const struct wb_command wb_cmd_run = {
    .name = "run",
    .args = "STUDY",
    .summary = "run a study here and say what differs",
    .help = "Checks everything first, deploys each arm in shuffled rounds, measures, removes,\n"
            "records every run in the store and prints the comparison. Ctrl-C cancels cleanly.\n\n"
            "Exit: 0 done, 2 invalid study, 12 a run failed by the database, 13 by the\n"
            "infrastructure, 14 no valid run, 16 something was left, 22 the host is used by\n"
            "another or in quarantine, 130 cancelled.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
