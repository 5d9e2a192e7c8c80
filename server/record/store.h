/*
 * Records in a bare git repository: one commit per finished run on refs/heads/records/<controller>.
 * A run lies in runs/<YYYY>/<MM>/<DD>/<run id>/{summary,study,plan,environment,result,events}.json
 * and recipe/; bulky raw data goes compressed into refs/raw/<controller>/<YYYY-MM>, the record
 * holds its digests. libgit2 is used only in server/record/git.c. One writer at a time (lock file).
 *
 * summary.json ("schema": 1), what lists and analysis need:
 *   id, campaign, study, arm (label), round, attempt, position (in the round), factors {name:
 * text}, recipe {name, revision, version, digest}, started_at, ended_at, seconds, outcome (a word),
 * reasons [text], validity (a word), evidence [{name, value, unit, limit, verdict, text}], teardown
 * (clean|incomplete), series_key, host {name, class}, controller, windows_short (bool: too short to
 * judge steadiness), metrics {"<phase>.throughput": {value, unit, better}, "<phase>.p50_ms",
 * ".p99_ms", ".p99_9_ms", ...}, limits [{metric, by, text}] (what a figure was limited by), raw
 * {name: {sha256, bytes}}
 */
#ifndef WB_RECORD_STORE_H
#define WB_RECORD_STORE_H

#include "server/base/json.h"
#include "server/base/mem.h"

struct wb_store;

/* Opens (create: makes) the bare repository at path. A new store gets a controller id, or the one
 * named. */
int wb_store_open(const char *path, bool create, const char *controller, struct wb_store **out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_store_close(struct wb_store *s);
const char *wb_store_controller(const struct wb_store *s);
const char *wb_store_path(const struct wb_store *s);

struct wb_raw_file {
    char *name;
    void *data;
    size_t n;
}; /* "load-max.ndjson", "db0.log", ... */
struct wb_record {
    char *run;          /* run id */
    int64_t started_ms; /* decides the folder */
    wb_json *summary, *study, *plan, *environment, *result,
        *events;                      /* objects; events an array; owned */
    struct wb_raw_file *recipe_files; /* relative path and content of the recipe's files */
    size_t nrecipe_files;
    struct wb_raw_file *raw;
    size_t nraw;
};
void wb_record_release(struct wb_record *r);

/* Commits durably: objects first, one sync, then the ref. The digests of raw data are put into
 * summary.raw. commit gets 40 hex digits. All or nothing. */
int wb_store_commit(struct wb_store *s, struct wb_record *r, char commit[41],
                    struct wb_err *err) WB_MUST_CHECK;

struct wb_list_filter {
    const char *campaign, *arm, *outcome;
    size_t limit; /* 0: all */
};
/* Summaries, newest first (an array, owned), over all controllers' refs. */
int wb_store_list(struct wb_store *s, const struct wb_list_filter *f, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;
/* A run id from a unique prefix; WB_NOT_FOUND, or WB_CONFLICT naming the candidates. Caller frees.
 */
int wb_store_resolve(struct wb_store *s, const char *prefix, char **run,
                     struct wb_err *err) WB_MUST_CHECK;
/* One document ("summary", "study", "plan", "environment", "result", "events"); owned. */
int wb_store_read(struct wb_store *s, const char *run, const char *doc, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;
/* One raw file, decompressed; WB_NOT_FOUND "raw pruned" when its ref is gone. */
int wb_store_read_raw(struct wb_store *s, const char *run, const char *name, struct wb_buf *out,
                      struct wb_err *err) WB_MUST_CHECK;
/* Re-checks digests, schema, and that the summary's metrics follow from the result. Adds
 * {run, file, code, message} to damage (array). Returns 0 also when damage was found. */
int wb_store_verify(struct wb_store *s, const char *run, wb_json *damage,
                    struct wb_err *err) WB_MUST_CHECK;

#endif
