/*
 * Questions to the index of a store: filters, orders, pages.
 *
 * The index (<store>/weighbridge.index, SQLite) is folded from the commits when a question is
 * asked and the references have moved since; it holds nothing that git does not, and may be
 * deleted at any moment. A damaged one, or one of another version, is made anew. What it answers
 * is read back from git, so a wrong answer is not believed. One process folds at a time, others
 * wait for it. Where the index cannot be written, it is made in memory for the life of the handle.
 *
 * Pages are stable while records are added: a cursor names the last item shown and not a number,
 * so what comes in between shifts nothing and nothing is shown twice.
 */
#ifndef WB_RECORD_QUERY_H
#define WB_RECORD_QUERY_H

#include "server/base/digest.h"
#include "server/record/store.h"

enum wb_order {
    WB_BY_STARTED,    /* when the run, or the first run of a campaign or series, was started */
    WB_BY_THROUGHPUT, /* runs: the headline's figure; those without one come last when falling */
    WB_BY_P99
};

#define WB_PAGE_DEFAULT 50
#define WB_PAGE_MAX 1000

struct wb_query {
    /* Exact; NULL: any. For campaigns and series: those that have such a run. */
    const char *campaign, *study, *arm, *outcome, *validity, *series, *recipe, *version,
        *host_class;
    const char *since, *until; /* RFC 3339 with offset, or a day (2026-11-30, UTC); started at or
                                  after, before */
    enum wb_order order;       /* runs only */
    bool ascending;
    bool pass_damaged;  /* runs: with a filter, pass over what cannot be read instead of failing */
    const char *cursor; /* `next` of the page before, of the same question; NULL: the first */
    size_t limit;       /* 1 to WB_PAGE_MAX; 0: WB_PAGE_DEFAULT */
};

/* Summaries of runs (an array, owned). *next: the cursor of the next page, owned, or NULL when
 * this was the last. A run whose summary cannot be read stands there as {id, damaged: text}; with
 * a filter it is WB_CORRUPT, because it might be one of those. WB_INVALID: a time, a limit or a
 * cursor that is not of this question. */
int wb_store_runs(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                  struct wb_err *err) WB_MUST_CHECK;
/* The same for campaigns: {id, study, arms [labels], rounds, runs, ok, started_at, ended_at}. */
int wb_store_campaigns(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                       struct wb_err *err) WB_MUST_CHECK;
/* The cursor that goes on behind an item of such a list (q: the question it answers, without its
 * cursor). Owned; NULL when it is no such item. */
char *wb_campaign_cursor(const struct wb_query *q, const wb_json *item);
/* The same for series, histories of one arm whatever study asked for it: {id (the key), study,
 * arm, recipe, version, host_class (of the newest run), runs, campaigns, first_at, last_at,
 * subjects [{version, commit, built, digest, runs, first_at, last_at}, oldest first: by when they
 * were built where that is known, else when they first ran], digest_changed}. commit and built are
 * null where the study named none. digest is of the installed bits, null in records that do not
 * hold it. digest_changed: one version and commit stands there with two digests. */
int wb_store_series(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                    struct wb_err *err) WB_MUST_CHECK;
/* The keys of all series into an empty list, that with the newest run first. */
int wb_store_series_keys(struct wb_store *s, struct wb_strv *keys,
                         struct wb_err *err) WB_MUST_CHECK;
/* Hosts that runs were on, one item for each host and class it had, newest use first (at most
 * WB_PAGE_MAX; cursor, order and limit of q mean nothing): {id (its name), host_class, runs, ok,
 * first_at, last_at}. */
int wb_store_hosts(struct wb_store *s, const struct wb_query *q, wb_json **items,
                   struct wb_err *err) WB_MUST_CHECK;
/* A campaign from a unique prefix of its id; WB_NOT_FOUND, or WB_CONFLICT naming the candidates.
 * Caller frees. */
int wb_store_resolve_campaign(struct wb_store *s, const char *prefix, char **campaign,
                              struct wb_err *err) WB_MUST_CHECK;

/* The same for the key of a series. */
int wb_store_resolve_series(struct wb_store *s, const char *prefix, char **key,
                            struct wb_err *err) WB_MUST_CHECK;

/* What a stamp is of. */
enum wb_stamp { WB_STAMP_CAMPAIGN, WB_STAMP_SERIES, WB_STAMP_STORE };
/* A digest of all that a campaign or series is in the store, runs by their trees in git, and of the
 * annotations; or of the whole store: what follows from these alone is the same as long as it is.
 * Reads the index only. WB_NOT_FOUND; WB_CORRUPT when a run that cannot be read might be one of
 * them. */
int wb_store_stamp(struct wb_store *s, enum wb_stamp of, const char *id, char hex[WB_SHA256_HEX],
                   struct wb_err *err) WB_MUST_CHECK;

/* How many runs of a campaign are recorded with each outcome: an object of numbers, owned; a run
 * without a readable outcome counts as "damaged". *recorded is their sum. Reads the index only, so
 * a damaged record elsewhere in the store hides nothing. */
int wb_store_outcomes(struct wb_store *s, const char *campaign, wb_json **counts, int64_t *recorded,
                      struct wb_err *err) WB_MUST_CHECK;

/* Throws the index away and makes it anew. *runs (may be NULL): how many it has. */
int wb_store_reindex(struct wb_store *s, size_t *runs, struct wb_err *err) WB_MUST_CHECK;

#endif
