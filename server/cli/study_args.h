/*
 * What the commands that read a study share: their options and how problems are shown.
 */
#ifndef WB_CLI_STUDY_ARGS_H
#define WB_CLI_STUDY_ARGS_H

#include "server/cli/cli.h"
#include "server/study/study.h"

struct wb_study_args {
    const char *profile;
    int64_t rounds;
    struct wb_strv overrides;
};

/* Rows of a command's option table, for an options struct that starts with a wb_study_args. */
#define WB_STUDY_OPTS                                                                            \
    {"profile", 0, WB_OPT_TEXT, offsetof(struct wb_study_args, profile),                         \
     "NAME",    0, 0,           "apply a profile of the study"},                                 \
        {"rounds", 0, WB_OPT_INT, offsetof(struct wb_study_args, rounds),                        \
         "N",      1, 1000,       "rounds instead of the study's"},                              \
    {                                                                                            \
        "factor", 'f', WB_OPT_LIST, offsetof(struct wb_study_args, overrides), "PATH=VALUES", 0, \
            0, "set a path of the study; several values make a factor"                           \
    }

/* Reads and checks a study file; NULL with problems. */
struct wb_study *wb_study_args_read(const struct wb_cli *cli, const struct wb_study_args *args,
                                    const char *path, struct wb_problems *p);
/* Shows problems (JSON on stdout with --json, else text on stderr); gives the exit code. */
int wb_study_problems(const struct wb_cli *cli, const struct wb_problems *p);

#endif
