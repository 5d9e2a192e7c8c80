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
 * ".p99_ms", ".p99_9_ms", ...}, limits [{metric, by, text}] (what a figure was limited by), subject
 * {version, digest (of the installed bits, or null), and where the study names them commit, built
 * (RFC 3339), artifact (SHA-256 of its file)}, imported {source, id} (results of other
 * programs, see import.h), raw
 * {name: {sha256, bytes}}, files {path: {sha256, bytes}} (every other file of the record),
 * headline {throughput, p99} (names of the two metrics that stand for the run in a list, or null).
 *
 * Raw data: refs/raw/<controller>/<YYYY-MM> holds <DD>/<run id>/<name>.zst; the digests in the
 * summary are of the uncompressed data. `recipe.digest` is the sha256 over one line
 * "<path> <x|-> <sha256 of the file>\n" per recipe file in byte order of the paths, x for files
 * that can be executed.
 *
 * Both references move only after all objects are on disk, the raw one first. A crash between the
 * two leaves raw data without a record, which no reader sees and the next commit takes back.
 * A store handle belongs to one thread; any number of processes may read while one writes.
 */
#ifndef WB_RECORD_STORE_H
#define WB_RECORD_STORE_H

#include "server/base/json.h"
#include "server/base/mem.h"

struct wb_store;

/* Opens (create: makes) the bare repository at path. A new store gets a controller id, or the one
 * named; WB_CONFLICT when an existing store has another id than the one named. WB_NOT_FOUND when
 * there is none; WB_INVALID when what is there is something else. */
int wb_store_open(const char *path, bool create, const char *controller, struct wb_store **out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_store_close(struct wb_store *s);
const char *wb_store_controller(const struct wb_store *s);
const char *wb_store_path(const struct wb_store *s);

/* "load-max.ndjson", "db0.log"; for recipes a relative path, "steps/install". */
struct wb_raw_file {
    char *name;
    void *data;
    size_t n;
    bool executable; /* recipe files only; all of steps/ are, whatever stands here */
};
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

/* Commits durably: objects first, one sync, then the refs. All or nothing. Puts into r->summary:
 * raw, files, and, where absent, schema, controller, headline. commit gets 40 hex digits. Waits up
 * to a minute for another writer (WB_CONFLICT then, also when the run is recorded already).
 * WB_INVALID: a name or document that cannot be in a record; WB_LIMIT: too much of something. */
int wb_store_commit(struct wb_store *s, struct wb_record *r, char commit[41],
                    struct wb_err *err) WB_MUST_CHECK;

/* What was put right on the way (dead lock files removed, ...), a text each; for the event log.
 * Borrowed, valid until the next call. */
const struct wb_strv *wb_store_notices(const struct wb_store *s);

struct wb_list_filter {
    const char *campaign, *arm, *outcome, *series; /* exact; NULL: any */
    const char *since;                             /* as in query.h */
    size_t limit;                                  /* 0: all */
    bool pass_damaged;                             /* as in query.h */
};
/* Summaries, newest first (an array, owned), over all controllers' refs. f may be NULL. A record
 * that cannot be read stands there as {id, damaged: text}; with something asked for it is
 * WB_CORRUPT instead, because it might be one of those. For pages, other orders, campaigns and
 * series see query.h: a big store does not fit into one list. */
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
/* The same into a file, in pieces: memory is needed for the compressed form alone. The file is not
 * whole after a failure. */
int wb_store_copy_raw(struct wb_store *s, const char *run, const char *name, int fd,
                      struct wb_err *err) WB_MUST_CHECK;
/* Writes the recipe's files of a record into a folder, which is made. WB_NOT_FOUND when the record
 * has none, as those of interrupted attempts. */
int wb_store_read_recipe(struct wb_store *s, const char *run, const char *folder,
                         struct wb_err *err) WB_MUST_CHECK;
/* Where a run stands. Release with wb_run_place_release. */
struct wb_run_place {
    char *ref;       /* "refs/heads/records/..." */
    char *path;      /* "runs/2026/11/30/run_..." */
    char commit[41]; /* the commit that added it */
};
int wb_store_where(struct wb_store *s, const char *run, struct wb_run_place *out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_run_place_release(struct wb_run_place *p);

/* Re-checks one run (NULL: all of the store, its history included): every file is there, readable,
 * canonical and of its schema, digests of files, recipe and raw data match, the summary's metrics
 * and its verdict on validity follow from the result, no later commit changed it. Adds {run, file,
 * code, message, note} to damage (array); note is true for what is no damage: "raw-pruned",
 * "other-rules" where validity was judged in another way than now, "newer-schema" where a newer
 * version made the record: then its digests are checked and its figures are not. Returns 0 also
 * when damage was found. *runs (may be NULL) gets the number of runs looked at. */
int wb_store_verify(struct wb_store *s, const char *run, wb_json *damage, size_t *runs,
                    struct wb_err *err) WB_MUST_CHECK;

/* check.c: the words that a summary's outcome and validity may be, NULL-ended. */
extern const char *const wb_outcome_words[], *const wb_validity_words[];
/* check.c: JSON Schema (2020-12) of summary.json, made from the rules that check it; owned by the
 * caller. It has no "$schema" and no title. */
wb_json *wb_summary_schema(void);

#endif
