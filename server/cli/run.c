/* `run STUDY`: the campaign engine in the foreground. */
#include "server/cli/commands.h"
#include "server/cli/remote_run.h"
#include "server/cli/session.h"
#include "server/cli/study_args.h"

struct opts {
    struct wb_study_args study; /* first: WB_STUDY_OPTS */
    const char *controller;
    int64_t wait_s, priority;
    bool quiet, wait;
    const char *reason, *key;
    struct wb_strv labels;
};
static const struct wb_opt rows[] = {
    WB_STUDY_OPTS,
    {"controller", 0, WB_OPT_TEXT, offsetof(struct opts, controller), "ID", 0, 0,
     "id for a store that is new"},
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {"wait", 0, WB_OPT_FLAG, offsetof(struct opts, wait), NULL, 0, 0,
     "server: follow it to the end, with the exit codes below"},
    {"priority", 0, WB_OPT_INT, offsetof(struct opts, priority), "N", -100, 100,
     "server: before those with a lower one"},
    {"label", 0, WB_OPT_LIST, offsetof(struct opts, labels), "TEXT", 0, 0,
     "server: a word to find it by; may be given again"},
    {"reason", 0, WB_OPT_TEXT, offsetof(struct opts, reason), "TEXT", 0, 0,
     "server: why it is run"},
    {"key", 0, WB_OPT_TEXT, offsetof(struct opts, key), "KEY", 0, 0,
     "server: the same campaign, however often it is sent with this key within a day"},
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

static int remote(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_err err = WB_ERR_INIT;
    const struct wb_remote_submit s = {.path = "/api/v1/campaigns",
                                       .file = argv[0],
                                       .args = &o->study,
                                       .priority = o->priority,
                                       .reason = o->reason,
                                       .labels = &o->labels,
                                       .key = o->key,
                                       .wait = o->wait,
                                       .quiet = o->quiet};

    (void)argc;
    if (!o->controller && !o->wait_s)
        return wb_remote_submit(cli, &s);
    (void)wb_fail(&err, WB_INVALID,
                  "--controller and --wait-for-host are for this machine: a server has its own "
                  "store and queue");
    return wb_cli_fail(cli, &err);
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_problems problems = {0};
    struct wb_session s = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (o->wait || o->priority || o->reason || o->key || o->labels.n)
        rc = wb_fail(&err, WB_INVALID,
                     "--wait, --priority, --label, --reason and --key are for a server: name it "
                     "with --server URL or in WB_SERVER");
    else
        rc = prepare(cli, o, argv[0], &s, &problems, &err);
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
    .summary = "run a study here, or on a server, and say what differs",
    .help = "Checks everything first, deploys each arm in shuffled rounds, measures, removes,\n"
            "records every run in the store and prints the comparison. Ctrl-C cancels cleanly.\n\n"
            "With --server: sends the study and prints the campaign's id. With --wait it is\n"
            "followed to its end; Ctrl-C detaches (130) and the campaign goes on. A study that\n"
            "was sent is never run twice because an answer was lost on the way.\n\n"
            "Exit: 0 done, 2 invalid study, 12 a run failed by the database, 13 by the\n"
            "infrastructure, 14 no valid run, 16 something was left, 22 the host is used by\n"
            "another or in quarantine, 130 cancelled.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .remote = remote,
};
