/* `rerun CAMPAIGN` and `extend CAMPAIGN`: more of a campaign of a server. */
#include "server/cli/commands.h"
#include "server/cli/remote_run.h"

struct opts {
    int64_t priority, rounds;
    bool quiet, wait;
    const char *reason, *key;
    struct wb_strv labels;
};
static const struct wb_opt rerun_rows[] = {
    {"wait", 0, WB_OPT_FLAG, offsetof(struct opts, wait), NULL, 0, 0,
     "follow it to the end, with the exit codes of 'run'"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {"priority", 0, WB_OPT_INT, offsetof(struct opts, priority), "N", -100, 100,
     "before those with a lower one"},
    {"label", 0, WB_OPT_LIST, offsetof(struct opts, labels), "TEXT", 0, 0,
     "a word to find it by; may be given again"},
    {"reason", 0, WB_OPT_TEXT, offsetof(struct opts, reason), "TEXT", 0, 0, "why it is run"},
    {"key", 0, WB_OPT_TEXT, offsetof(struct opts, key), "KEY", 0, 0,
     "the same campaign, however often it is sent with this key within a day"},
    {0},
};
static const struct wb_opt extend_rows[] = {
    {"rounds", 'n', WB_OPT_INT, offsetof(struct opts, rounds), "N", 1, 1000,
     "so many more (required)"},
    {"wait", 0, WB_OPT_FLAG, offsetof(struct opts, wait), NULL, 0, 0, "follow it to the end"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {0},
};

static int again(const struct wb_cli *cli, const struct opts *o, const char *typed,
                 const char *verb)
{
    const struct wb_study_args args = {.rounds = o->rounds};
    const struct wb_remote_submit s = {.args = &args,
                                       .priority = o->priority,
                                       .reason = o->reason,
                                       .labels = &o->labels,
                                       .key = o->key,
                                       .wait = o->wait,
                                       .quiet = o->quiet};

    return wb_remote_again(cli, typed, verb, &s);
}

static int rerun(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    (void)argc;
    return again(cli, opts, argv[0], "rerun");
}

static int extend(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_err err = WB_ERR_INIT;

    (void)argc;
    if (o->rounds)
        return again(cli, o, argv[0], "extend");
    (void)wb_fail(&err, WB_INVALID, "extend wants --rounds N: so many more");
    return wb_cli_fail(cli, &err);
}

const struct wb_command wb_cmd_rerun = {
    .name = "rerun",
    .args = "CAMPAIGN",
    .summary = "run the study of a server's campaign again",
    .help =
        "A new campaign with a new order of runs; a recorded run alone is repeated by 'replay'.\n",
    .opts = rerun_rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .remote = rerun,
};
const struct wb_command wb_cmd_extend = {
    .name = "extend",
    .args = "CAMPAIGN",
    .summary = "give a server's campaign more rounds",
    .help = "Legal while it waits or runs; the rounds are added after those that were planned.\n",
    .opts = extend_rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .remote = extend,
};
