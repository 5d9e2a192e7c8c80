/*
 * The few git operations that records need, over libgit2; git.c is its only user.
 *
 * Reading goes through an open repository. Writing goes through a batch: objects are made in a
 * folder of their own (a quarantine, see quarantine.h) and become part of the repository only
 * when they are safely on disk, so a crash at any moment leaves no object that is half there.
 * Objects belong to one thread. Identities of objects are plain values.
 */
#ifndef WB_RECORD_GIT_H
#define WB_RECORD_GIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"
#include "server/base/mem.h"

#define WB_OID_HEX 41 /* 40 hex digits and the terminator */

struct wb_oid {
    unsigned char id[20];
};
void wb_oid_hex(const struct wb_oid *o, char out[WB_OID_HEX]);
/* Reads 40 lower-case hex digits at the start of a text; WB_INVALID. */
int wb_oid_parse(const char *hex, struct wb_oid *out, struct wb_err *err) WB_MUST_CHECK;
bool wb_oid_equal(const struct wb_oid *a, const struct wb_oid *b);

#define WB_MODE_FILE 0100644u
#define WB_MODE_EXEC 0100755u
#define WB_MODE_TREE 0040000u

struct wb_git;

/* Makes a bare repository in an absent or empty folder; HEAD names `head`. No template, no
 * configuration of the user is used. */
int wb_git_init(const char *path, const char *head, struct wb_err *err) WB_MUST_CHECK;
/* Opens a bare repository. config (may be NULL) is a file with settings in git's syntax that take
 * precedence over the repository's own; those of the user and the system are not read. */
int wb_git_open(const char *path, const char *config, struct wb_git **out,
                struct wb_err *err) WB_MUST_CHECK;
void wb_git_close(struct wb_git *g);
/* What was read through it so far: the measure by which work is compared in tests. */
struct wb_git_work {
    uint64_t objects; /* trees, commits and blobs */
    uint64_t entries; /* of trees, also those passed over in a search */
};
struct wb_git_work wb_git_work(const struct wb_git *g);
/* A setting; WB_NOT_FOUND. Caller frees. */
int wb_git_config(struct wb_git *g, const char *name, char **out, struct wb_err *err) WB_MUST_CHECK;

struct wb_git_ref {
    char *name;
    struct wb_oid id;
};
/* References below a folder of them ("refs/heads/records/"), at most three levels deep, sorted by
 * name; symbolic ones are left out. One that is there but cannot be read is added to broken, or,
 * where that is NULL, is WB_CORRUPT: what it held would silently be missing. Free with
 * wb_git_refs_free. */
int wb_git_refs(struct wb_git *g, const char *folder, struct wb_git_ref **out, size_t *n,
                struct wb_strv *broken, struct wb_err *err) WB_MUST_CHECK;
void wb_git_refs_free(struct wb_git_ref *refs, size_t n);
int wb_git_ref(struct wb_git *g, const char *name, struct wb_oid *out,
               struct wb_err *err) WB_MUST_CHECK; /* WB_NOT_FOUND when absent */
/* Moves a reference from `old` (NULL: must not exist) to id, durably where the settings ask for
 * it. WB_CONFLICT when it is not at `old` or is locked. */
int wb_git_ref_set(struct wb_git *g, const char *name, const struct wb_oid *id,
                   const struct wb_oid *old, struct wb_err *err) WB_MUST_CHECK;
int wb_git_ref_remove(struct wb_git *g, const char *name, struct wb_err *err) WB_MUST_CHECK;

struct wb_git_entry {
    char *name;
    struct wb_oid id;
    unsigned mode; /* WB_MODE_... */
};
struct wb_git_tree {
    struct wb_git_entry *v; /* in git's order */
    size_t n;
};
int wb_git_tree(struct wb_git *g, const struct wb_oid *id, struct wb_git_tree *out,
                struct wb_err *err) WB_MUST_CHECK;
/* Puts the entries in the order of their names, which is not quite git's; then they can be searched
 * quickly. NULL: there is none. */
void wb_git_tree_sort(struct wb_git_tree *t);
const struct wb_git_entry *wb_git_tree_search(const struct wb_git_tree *t, const char *name);
const struct wb_git_entry *wb_git_tree_find(const struct wb_git_tree *t, const char *name);
void wb_git_tree_release(struct wb_git_tree *t);
/* The entry at a path of at most 16 components below a tree; its name is left NULL. WB_NOT_FOUND
 * when there is none, WB_CORRUPT when a folder on the way cannot be read. */
int wb_git_lookup(struct wb_git *g, const struct wb_oid *tree, const char *path,
                  struct wb_git_entry *out, struct wb_err *err) WB_MUST_CHECK;

/* Whether a loose object is whole and is what its name says. WB_CORRUPT, WB_NOT_FOUND when there is
 * no such file. */
int wb_git_check_loose(const char *path, const struct wb_oid *id, struct wb_err *err) WB_MUST_CHECK;
/* Whether there is such an object; it is not read. */
bool wb_git_has(struct wb_git *g, const struct wb_oid *id);

/* Appends a blob to out; its size is checked against out's bound before it is read. WB_CORRUPT
 * when the object is missing or does not match its name. */
int wb_git_blob(struct wb_git *g, const struct wb_oid *id, struct wb_buf *out,
                struct wb_err *err) WB_MUST_CHECK;

struct wb_git_commit {
    struct wb_oid id, tree, parent;
    bool has_parent; /* parent is the first one */
    int64_t time_s;  /* committed, Unix seconds */
    char *message;
};
int wb_git_commit(struct wb_git *g, const struct wb_oid *id, struct wb_git_commit *out,
                  struct wb_err *err) WB_MUST_CHECK;
void wb_git_commit_release(struct wb_git_commit *c);

/* ---- writing ---- */

struct wb_git_batch;

/* Objects are written below `dir`, an empty folder; nothing is synced. */
int wb_git_batch_new(struct wb_git *g, const char *dir, struct wb_git_batch **out,
                     struct wb_err *err) WB_MUST_CHECK;
void wb_git_batch_free(struct wb_git_batch *b);
/* The ids of all objects put so far, parts before what is made of them. Borrowed. */
const struct wb_oid *wb_git_batch_ids(const struct wb_git_batch *b, size_t *n);

int wb_git_put_blob(struct wb_git_batch *b, const void *data, size_t n, struct wb_oid *out,
                    struct wb_err *err) WB_MUST_CHECK;

/* A tree that holds what `base` (NULL: nothing) holds and the entries, which replace those of the
 * same name. Their objects must have been put or be in the repository. */
int wb_git_put_tree(struct wb_git_batch *b, const struct wb_oid *base,
                    const struct wb_git_entry *entries, size_t n, struct wb_oid *out,
                    struct wb_err *err) WB_MUST_CHECK;
/* A commit by "Weighbridge <weighbridge@localhost>" at time_s, UTC. parent may be NULL. */
int wb_git_put_commit(struct wb_git_batch *b, const struct wb_oid *tree,
                      const struct wb_oid *parent, const char *message, int64_t time_s,
                      struct wb_oid *out, struct wb_err *err) WB_MUST_CHECK;

#endif
