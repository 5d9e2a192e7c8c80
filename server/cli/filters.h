/*
 * Which runs a command speaks of: options shared by `list` and `export`.
 */
#ifndef WB_CLI_FILTERS_H
#define WB_CLI_FILTERS_H

#include "server/cli/cli.h"
#include "server/record/query.h"

struct wb_cli_filters {
    const char *campaign, *study, *arm, *outcome, *validity, *series, *recipe, *version, *since,
        *until;
};

/* Rows of a command's option table, for an options struct that starts with a wb_cli_filters. */
#define WB_FILTER_OPT(name, letter, arg, help)                                             \
    {                                                                                      \
#name, letter, WB_OPT_TEXT, offsetof(struct wb_cli_filters, name), arg, 0, 0, help \
    }
#define WB_FILTER_OPTS                                                            \
    WB_FILTER_OPT(campaign, 'c', "CAMPAIGN", "only of this campaign"),            \
        WB_FILTER_OPT(study, 0, "NAME", "only of this study"),                    \
        WB_FILTER_OPT(arm, 'a', "LABEL", "only of this arm"),                     \
        WB_FILTER_OPT(outcome, 'o', "WORD", "only with this outcome"),            \
        WB_FILTER_OPT(validity, 0, "WORD", "only with this validity"),            \
        WB_FILTER_OPT(series, 0, "SERIES", "only of this series, its whole key"), \
        WB_FILTER_OPT(recipe, 0, "RECIPE", "only of this recipe"),                \
        WB_FILTER_OPT(version, 0, "V", "only of this version of the recipe"),     \
        WB_FILTER_OPT(since, 0, "90d|DAY", "only started then or later"),         \
        WB_FILTER_OPT(until, 0, "90d|DAY", "only started before")

/* A question made of filters; what it points to is owned by this or by the filters. */
struct wb_cli_question {
    struct wb_query q;
    char *campaign, *since, *until;
};
/* Words are checked, beginnings of ids completed. Release also after a failure. */
int wb_cli_question_make(struct wb_store *s, const struct wb_cli_filters *f,
                         struct wb_cli_question *out, struct wb_err *err) WB_MUST_CHECK;
void wb_cli_question_release(struct wb_cli_question *q);

/* "90d" and "12h" back from now, or a day or time as it stands; option names it in the error.
 * Caller frees *out. */
int wb_cli_time(const char *option, const char *text, char **out, struct wb_err *err) WB_MUST_CHECK;

#endif
