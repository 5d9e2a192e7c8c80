/*
 * What the files of this room share; nobody else includes it but its tests.
 */
#ifndef WB_RECORD_INTERNAL_H
#define WB_RECORD_INTERNAL_H

#include "server/record/git.h"
#include "server/record/store.h"

#define WB_RECORDS "refs/heads/records/"
#define WB_RAW "refs/raw/"
#define WB_ANNOTATIONS "annotations"
#define WB_ADDED "added: " /* begins a line of a commit's message: "added: <path> <id>" */
#define WB_PRUNED_MESSAGE "raw data of pinned runs, the rest was pruned"

/* Bounds of a record. */
#define WB_DOC_MAX (32u << 20)      /* bytes of one document or recipe file */
#define WB_RAW_BYTES_MAX (1u << 30) /* bytes of one raw file, uncompressed */
#define WB_RECORD_FILES_MAX 2000    /* recipe files, and raw files */
#define WB_SCHEMA 1

/* Called at each step of a commit, so that tests can end the process there. */
typedef void wb_store_hook(void *arg, const char *point);

struct wb_index;

struct wb_store {
    char *path;
    char *controller; /* NULL: a copy that can only be read */
    struct wb_git *git;
    struct wb_index *index; /* NULL: not looked at yet; see index.h */
    struct wb_strv notices;
    bool tidied; /* raw references were looked through for a dead writer's */
    wb_store_hook *hook;
    void *hook_arg;
};

/* Names of the six documents, NULL-ended; the summary is the first. */
extern const char *const wb_record_docs[];

bool wb_record_is_outcome(const char *word);
/* "2026-11-30" of a time; false outside years 1970 to 9999. */
bool wb_day_text(int64_t unix_ms, char out[11]);
/* What a commit says that it added. */
struct wb_added {
    char *id;   /* of a run or an annotation */
    char *path; /* NULL: it was made before commits said so; then there is one, and only its id */
    struct wb_oid object; /* the run's folder, or the annotation's file */
};
struct wb_added_list {
    struct wb_added *v;
    size_t n, cap;
};
void wb_commit_added(const struct wb_git_commit *c, struct wb_added_list *out); /* release always */
bool wb_commit_adds(const struct wb_git_commit *c, const char *id);
void wb_added_release(struct wb_added_list *l);

/* Whether a folder's name is of a year (depth 0), month or day. */
bool wb_is_date_part(const char *name, int depth);

/* One day's folder in one controller's reference. */
struct wb_day {
    char date[11];
    size_t ref; /* index into refs */
    struct wb_oid tree;
};
struct wb_days {
    struct wb_git_ref *refs;
    size_t nrefs;
    struct wb_day *v; /* newest first; of one day those of all references follow each other */
    size_t n, cap;
};
/* All days below a root ("runs", WB_ANNOTATIONS) of all references. A folder that cannot be read is
 * added to damage (array), or, where that is NULL, the error. */
int wb_days_read(struct wb_store *s, const char *root, struct wb_days *out, wb_json *damage,
                 struct wb_err *err) WB_MUST_CHECK;
/* The same at the references of an earlier reading, whatever they are now: the indexes into refs
 * mean the same in both. */
int wb_days_read_at(struct wb_store *s, const char *root, const struct wb_days *earlier,
                    struct wb_days *out, wb_json *damage, struct wb_err *err) WB_MUST_CHECK;
void wb_days_release(struct wb_days *d);

/* A folder of raw data that many runs lie in, read once. Zeroed at first. */
struct wb_raw_day {
    char *ref, *folder; /* "refs/raw/lab/2026-11", "30"; NULL: nothing was read yet */
    int code;           /* of reading it; why in text */
    char *text;
    struct wb_git_tree tree;
};
void wb_raw_day_release(struct wb_raw_day *d);

/* A run's folder. */
struct wb_place {
    struct wb_oid tip; /* commit of the reference */
    struct wb_oid tree;
    char *ref, *path;
    struct wb_oid added; /* the commit that added it, as the index knows it */
    bool has_added;
};
int wb_place_find(struct wb_store *s, const char *run, struct wb_place *out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_place_release(struct wb_place *p);
/* The oldest commit that says it added a run: a later one that names it changed it. */
int wb_place_commit(struct wb_store *s, const struct wb_place *p, const char *run,
                    struct wb_git_commit *out, struct wb_err *err) WB_MUST_CHECK;

/* A blob that is a document; name is for the error. WB_CORRUPT when it cannot be read. */
int wb_blob_doc(struct wb_store *s, const struct wb_oid *blob, const char *name, wb_json **out,
                struct wb_err *err) WB_MUST_CHECK;
/* One document of a run's folder, parsed. */
int wb_place_doc(struct wb_store *s, const struct wb_oid *folder, const char *doc, wb_json **out,
                 struct wb_err *err) WB_MUST_CHECK;
/* One raw file, decompressed and compared with {sha256, bytes} of the summary. date is
 * "2026-11-30". WB_NOT_FOUND "raw pruned" when its reference or folder is gone. day is kept
 * from call to call, so that the runs of a day are found without reading its folder for each. */
int wb_raw_read(struct wb_store *s, struct wb_raw_day *day, const char *ref, const char *date,
                const char *run, const char *name, const wb_json *facts, struct wb_buf *out,
                struct wb_err *err) WB_MUST_CHECK;

/* push.c: one line of what git says of a push, "<flag>\t<from>:<to>\t<summary>". */
struct wb_push_answer {
    bool refused, same; /* neither: it moved */
    char *ref;          /* of the remote */
    char *reason;       /* of a refusal, else NULL */
};
/* False: it is another line. Both texts are the caller's. */
bool wb_push_answer(const char *line, size_t n, struct wb_push_answer *out);

/* {run, file, code, message, note} into an array. run may be NULL. */
void wb_damage_add(wb_json *damage, const char *run, const char *file, const char *code,
                   const char *message);

#endif
