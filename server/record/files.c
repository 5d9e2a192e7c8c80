#include "server/record/files.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define DEPTH_MAX 16
#define PATH_MAX_BYTES 1024

bool wb_safe_path(const char *path)
{
    size_t parts = 0;

    if (!path || strlen(path) > PATH_MAX_BYTES)
        return false;
    for (const char *p = path;; parts++) {
        size_t len = strcspn(p, "/");
        WB_AUTO_FREE char *name = wb_strndup(p, len);

        if (parts == DEPTH_MAX || !wb_safe_name(name))
            return false;
        if (!p[len])
            return true;
        p += len + 1;
    }
}

int wb_files_add(struct wb_git_files *f, struct wb_git_batch *b, const char *folder,
                 const struct wb_git_entry *named, const struct wb_buf *content, struct wb_err *err)
{
    WB_AUTO_FREE char *path =
        folder ? wb_strf("%s/%s", folder, named->name) : wb_strdup(named->name);
    struct wb_oid id;
    int rc;

    if (!wb_safe_path(path))
        return wb_fail(err, WB_INVALID,
                       "'%s' cannot be a name in a record; names are letters, digits, '.', '_' "
                       "and '-', begin with a letter or digit, and have no '..' folders",
                       named->name);
    rc = wb_git_put_blob(b, wb_buf_str(content), content->len, &id, err);
    if (rc < 0)
        return wb_wrap(err, "%s", path);
    wb_grow(&f->v, &f->cap, f->n + 1, sizeof(*f->v));
    f->v[f->n++] = (struct wb_git_file){WB_STEAL(path), id, named->mode};
    return 0;
}

void wb_files_add_tree(struct wb_git_files *f, const char *path, const struct wb_oid *tree)
{
    wb_grow(&f->v, &f->cap, f->n + 1, sizeof(*f->v));
    f->v[f->n++] = (struct wb_git_file){wb_strdup(path), *tree, WB_MODE_TREE};
}

void wb_files_release(struct wb_git_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->v[i].path);
    free(f->v);
    *f = (struct wb_git_files){0};
}

/* One folder of the new tree: the files below it, sorted. */
struct folder {
    struct wb_git *g;
    struct wb_git_batch *b;
    const struct wb_git_file *files;
    size_t n;
    size_t skip; /* bytes of the folder's own path with its slash */
};

static int put_folder(const struct folder *f, const struct wb_oid *base, struct wb_oid *out,
                      struct wb_err *err);

/* The files of the sub-folder that files[from] is in become one entry. */
static int put_below(const struct folder *f, size_t from, size_t to, const struct wb_oid *base,
                     struct wb_git_entry *out, struct wb_err *err)
{
    size_t skip = f->skip + strlen(out->name) + 1;
    struct wb_git_entry old;
    bool has = base != NULL;
    int rc;

    if (has) {
        rc = wb_git_lookup(f->g, base, out->name, &old, err);
        if (rc < 0 && rc != -WB_NOT_FOUND)
            return rc;
        has = rc == 0 && old.mode == WB_MODE_TREE;
    }
    out->mode = WB_MODE_TREE;
    return put_folder(&(struct folder){f->g, f->b, f->files + from, to - from, skip},
                      has ? &old.id : NULL, &out->id, err);
}

/* Name and extent of the next entry: files[from..] up to the returned index stand in it. */
static size_t next_entry(const struct folder *f, size_t from, struct wb_git_entry *e)
{
    const char *name = f->files[from].path + f->skip;
    size_t len = strcspn(name, "/"), to = from + 1;

    *e = (struct wb_git_entry){wb_strndup(name, len), f->files[from].id, f->files[from].mode};
    if (!name[len])
        return to;
    while (to < f->n && !strncmp(f->files[to].path + f->skip, name, len + 1))
        to++;
    return to;
}

static int put_folder(const struct folder *f, const struct wb_oid *base, struct wb_oid *out,
                      struct wb_err *err)
{
    struct wb_git_tree t = {.v = wb_calloc(f->n, sizeof(*t.v))};
    int rc = 0;

    for (size_t i = 0, next; rc == 0 && i < f->n; i = next) {
        struct wb_git_entry e;

        next = next_entry(f, i, &e);
        if (wb_git_tree_find(&t, e.name))
            rc = wb_fail(err, WB_INVALID, "'%s' is given twice, or as a file and as a folder",
                         f->files[i].path);
        else if (f->files[i].path[f->skip + strlen(e.name)])
            rc = put_below(f, i, next, base, &e, err);
        t.v[t.n++] = e;
    }
    if (rc == 0)
        rc = wb_git_put_tree(f->b, base, t.v, t.n, out, err);
    wb_git_tree_release(&t);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct wb_git_file *)a)->path, ((const struct wb_git_file *)b)->path);
}

int wb_files_put(struct wb_git_files *f, struct wb_git *g, struct wb_git_batch *b,
                 const struct wb_oid *base, struct wb_oid *out, struct wb_err *err)
{
    const struct folder root = {.g = g, .b = b, .files = f->v, .n = f->n};

    qsort(f->v, f->n, sizeof(*f->v), by_path);
    return put_folder(&root, base, out, err);
}
