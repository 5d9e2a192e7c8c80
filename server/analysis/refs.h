/*
 * References as people and programs write them, with the records behind them: CAMPAIGN,
 * CAMPAIGN/ARM, or series:KEY@WHICH, the arm of a campaign that the series has: the newest build
 * (last), that of a commit or version, or the campaign named (subject.h).
 */
#ifndef WB_ANALYSIS_REFS_H
#define WB_ANALYSIS_REFS_H

#include "server/record/store.h"

#define WB_REF_SERIES "series:"
bool wb_ref_is_series(const char *typed);
/* What was typed without /ARM. Caller frees. */
char *wb_ref_head(const char *typed);

/* A run or a campaign, whole ids; the other is NULL. */
struct wb_ref_id {
    char *run, *campaign;
};
/* From an id, the beginning of one, or that without its "run_" or "cmp_"; series:KEY@WHICH is the
 * campaign that it means. WB_NOT_FOUND, WB_CONFLICT. */
int wb_ref_id_find(struct wb_store *s, const char *text, struct wb_ref_id *out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_ref_id_release(struct wb_ref_id *id);

struct wb_ref {
    const char *typed;    /* borrowed */
    char *campaign;       /* whole id */
    char *arm;            /* whole label; NULL: every arm */
    wb_json *plan;        /* of its first run */
    wb_json *runs;        /* summaries of the campaign */
    wb_json *environment; /* of its first run */
    wb_json *annotations; /* all in force; runs that were excluded say so */
};

/* What n references mean: typed, campaign and, of a series, arm are filled; only the index is read.
 * series:KEY@last is the newest build of a campaign that none of the others names. Release also
 * after a failure. WB_INVALID for a run: one run has no spread. */
int wb_refs_find(struct wb_store *s, char *const *typed, size_t n, struct wb_ref *out,
                 struct wb_err *err) WB_MUST_CHECK;
/* Reads the records of references that were found, and finds their arms. */
int wb_refs_load(struct wb_store *s, struct wb_ref *refs, size_t n,
                 struct wb_err *err) WB_MUST_CHECK;
/* Both, of one. */
int wb_ref_read(struct wb_store *s, const char *typed, struct wb_ref *out,
                struct wb_err *err) WB_MUST_CHECK;
/* All that an answer over references that were found follows from, in short: their names, and
 * digests of what the store has of them. NULL when it cannot be told; owned. */
wb_json *wb_refs_key(struct wb_store *s, const struct wb_ref *refs, size_t n);
void wb_ref_release(struct wb_ref *r);

/* May the figures of the two be set against each other? What differs is added to warnings. What
 * must not differ is WB_CONFLICT that names the fields, and is labelled instead with force: then
 * each field also goes into `forced` (a list). A change of environment that was noted between the
 * two is such a field. `compared` (NULL-ended, or NULL) names fields that
 * are what is compared. */
int wb_ref_guard(const struct wb_ref *a, const struct wb_ref *b, bool force,
                 const char *const *compared, wb_json *warnings, wb_json *forced,
                 struct wb_err *err) WB_MUST_CHECK;

#endif
