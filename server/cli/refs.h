/*
 * References of the commands that judge, with the records behind them: CAMPAIGN, CAMPAIGN/ARM, or
 * series:KEY@WHICH, the arm of a campaign that the series has: the newest one (last), one of a
 * commit or version of its subject, or the campaign named.
 */
#ifndef WB_CLI_REFS_H
#define WB_CLI_REFS_H

#include "server/cli/records.h"

struct wb_cli_ref {
    const char *typed;    /* borrowed */
    char *campaign;       /* whole id */
    char *arm;            /* whole label; NULL: every arm */
    wb_json *plan;        /* of its first run */
    wb_json *runs;        /* summaries of the campaign */
    wb_json *environment; /* of its first run */
    wb_json *annotations; /* all in force; runs that were excluded say so */
};

/* Resolves what was typed and reads what is needed of the campaign. Release also after a failure.
 * WB_INVALID for a run: one run has no spread. */
int wb_cli_ref_read(struct wb_store *s, const char *typed, struct wb_cli_ref *out,
                    struct wb_err *err) WB_MUST_CHECK;
/* The same for n references in their order; series:KEY@last is the newest campaign that none of
 * the others names. */
int wb_cli_refs_read(struct wb_store *s, char *const *typed, size_t n, struct wb_cli_ref *out,
                     struct wb_err *err) WB_MUST_CHECK;
void wb_cli_ref_release(struct wb_cli_ref *r);

/* May the figures of the two be set against each other? What differs is added to warnings. What
 * must not differ is WB_CONFLICT that names the fields, and is labelled instead with force: then
 * each field also goes into `forced` (a list). A change of environment that was noted between the
 * two is such a field. `compared` (NULL-ended, or NULL) names fields that
 * are what is compared. */
int wb_cli_ref_guard(const struct wb_cli_ref *a, const struct wb_cli_ref *b, bool force,
                     const char *const *compared, wb_json *warnings, wb_json *forced,
                     struct wb_err *err) WB_MUST_CHECK;

#endif
