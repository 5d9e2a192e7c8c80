/*
 * Trees from paths: many files are put at once into folders of any depth. Only folders on the
 * paths are read and written, each once, so a commit costs the same in a store of any age.
 */
#ifndef WB_RECORD_FILES_H
#define WB_RECORD_FILES_H

#include "server/record/git.h"

struct wb_git_file {
    char *path; /* "runs/2026/11/30/run_x/summary.json": safe names, at most 16 */
    struct wb_oid id;
    unsigned mode; /* WB_MODE_FILE, WB_MODE_EXEC, or WB_MODE_TREE for a whole folder */
};
struct wb_git_files {
    struct wb_git_file *v;
    size_t n, cap;
};

/* Puts a blob and notes it under folder/name (folder NULL: under name); name may have slashes.
 * WB_INVALID for a name that could leave the folder or that git or a file system would take for
 * something special. */
int wb_files_add(struct wb_git_files *f, struct wb_git_batch *b, const char *folder,
                 const struct wb_git_entry *named, const struct wb_buf *content,
                 struct wb_err *err) WB_MUST_CHECK;
/* Notes a folder whose tree has been put, by its path. */
void wb_files_add_tree(struct wb_git_files *f, const char *path, const struct wb_oid *tree);
/* The tree that holds what `base` (NULL: nothing) holds and the files. Sorts them. WB_INVALID when
 * a path stands twice or is both a file and a folder. */
int wb_files_put(struct wb_git_files *f, struct wb_git *g, struct wb_git_batch *b,
                 const struct wb_oid *base, struct wb_oid *out, struct wb_err *err) WB_MUST_CHECK;
void wb_files_release(struct wb_git_files *f);

/* Relative path of safe names joined by single slashes, at most 16. */
bool wb_safe_path(const char *path);

#endif
