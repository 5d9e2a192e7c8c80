#include "server/record/git.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/record/loose.h"

#define AUTHOR "Weighbridge"
#define MAIL "weighbridge@localhost"
#define CACHE_MAX (4 << 20) /* bytes of decoded objects that libgit2 may keep */
#define PATH_DEPTH_MAX 16

struct wb_git {
    git_repository *repo;
    git_odb *odb;
    char *path;
    struct wb_git_work work;
};

struct wb_git_batch {
    git_odb *odb;         /* writes to the quarantine, reads from the repository too */
    git_repository *repo; /* a shell around odb: tree and commit makers want one */
    struct wb_oid *ids;
    size_t n, cap;
};

/* ---- errors ---- */

static enum wb_code code_of(int rc, int klass)
{
    switch (rc) {
    case GIT_ENOTFOUND:
        return WB_NOT_FOUND;
    case GIT_EEXISTS:
    case GIT_EMODIFIED:
    case GIT_ELOCKED:
    case GIT_ECONFLICT:
        return WB_CONFLICT;
    case GIT_EMISMATCH:
        return WB_CORRUPT;
    case GIT_EINVALIDSPEC:
        return WB_INVALID;
    default:
        return klass == GIT_ERROR_ODB || klass == GIT_ERROR_ZLIB || klass == GIT_ERROR_TREE ||
                       klass == GIT_ERROR_OBJECT || klass == GIT_ERROR_REFERENCE
                   ? WB_CORRUPT
                   : WB_IO;
    }
}

/* libgit2 puts the system's text at the end of its own and clears errno; callers want to tell a
 * full disk from others. */
static int errno_of(const git_error *e)
{
    static const int known[] = {ENOSPC, EDQUOT, EROFS, EIO, EACCES, EPERM, EMFILE, ENFILE, ENOENT};
    size_t n = e && e->message && e->klass == GIT_ERROR_OS ? strlen(e->message) : 0;

    for (size_t i = 0; i < WB_LEN(known); i++) {
        const char *text = strerrordesc_np(known[i]);
        size_t m = strlen(text);

        if (n > m && !strcmp(e->message + n - m, text))
            return known[i];
    }
    return 0;
}

/* Turns the last error of libgit2 into ours at once: it is per thread and soon overwritten. */
WB_PRINTF(3, 4)
static int fail_git(struct wb_err *err, int rc, const char *fmt, ...)
{
    const git_error *e = git_error_last();
    int sys = errno_of(e);
    int klass = e ? e->klass : GIT_ERROR_NONE;
    WB_AUTO_FREE char *what = NULL;
    va_list ap;

    va_start(ap, fmt);
    what = wb_vstrf(fmt, ap);
    va_end(ap);
    rc = wb_fail(err, code_of(rc, klass), "%s: %s", what, e && e->message ? e->message : "failed");
    if (err)
        err->sys = sys;
    return rc;
}

/* Reading an object by its id: whatever is wrong with it, absent included, the store is damaged. */
static int fail_read(struct wb_err *err, int rc, const char *kind, const struct wb_oid *id)
{
    char hex[WB_OID_HEX];

    wb_oid_hex(id, hex);
    rc = fail_git(err, rc, "cannot read %s %s", kind, hex);
    if (err && (rc == -WB_NOT_FOUND || err->sys == ENOENT))
        err->code = WB_CORRUPT;
    return rc == -WB_NOT_FOUND || (err && err->sys == ENOENT) ? -WB_CORRUPT : rc;
}

/* ---- ids ---- */

static const git_oid *raw(const struct wb_oid *o)
{
    return (const git_oid *)o->id;
}

static void take(struct wb_oid *out, const git_oid *in)
{
    memcpy(out->id, in->id, sizeof(out->id));
}

void wb_oid_hex(const struct wb_oid *o, char out[WB_OID_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof(o->id); i++) {
        out[2 * i] = digits[o->id[i] >> 4];
        out[2 * i + 1] = digits[o->id[i] & 15];
    }
    out[WB_OID_HEX - 1] = '\0';
}

int wb_oid_parse(const char *hex, struct wb_oid *out, struct wb_err *err)
{
    struct wb_oid o = {{0}};

    for (size_t i = 0; i < 2 * sizeof(o.id); i++) {
        char c = hex[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return wb_fail(err, WB_INVALID, "'%.40s' is not the id of an object", hex);
        o.id[i / 2] = (unsigned char)(o.id[i / 2] << 4 | digit);
    }
    *out = o;
    return 0;
}

bool wb_oid_equal(const struct wb_oid *a, const struct wb_oid *b)
{
    return memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

/* ---- loose objects, read and written by us (see loose.h) ---- */

struct loose_backend {
    git_odb_backend base;
    char *objects;
    bool flat; /* a quarantine */
};

static char *loose_path(const git_odb_backend *b, const git_oid *id)
{
    const struct loose_backend *l = (const struct loose_backend *)b;
    struct wb_oid oid;

    take(&oid, id);
    return wb_loose_path(l->objects, &oid, l->flat);
}

static int loose_error(int rc, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    if (rc == -WB_NOT_FOUND)
        return GIT_ENOTFOUND;
    (void)git_error_set_str(rc == -WB_CORRUPT ? GIT_ERROR_ODB : GIT_ERROR_OS,
                            wb_err_text(err, text, sizeof(text)));
    return GIT_ERROR;
}

static int loose_read(void **data, size_t *n, git_object_t *type, git_odb_backend *b,
                      const git_oid *id)
{
    WB_AUTO_FREE char *path = loose_path(b, id);
    struct wb_err err = WB_ERR_INIT;
    struct wb_loose head;
    struct wb_buf text;
    int rc = wb_loose_read(path, &head, &text, &err);

    if (rc < 0)
        return loose_error(rc, &err);
    *data = git_odb_backend_data_alloc(b, text.len + 1);
    if (*data)
        memcpy(*data, wb_buf_str(&text), text.len + 1);
    *n = text.len;
    *type = git_object_string2type(head.type);
    wb_buf_release(&text);
    return *data ? 0 : GIT_ERROR;
}

static int loose_head(size_t *n, git_object_t *type, git_odb_backend *b, const git_oid *id)
{
    WB_AUTO_FREE char *path = loose_path(b, id);
    struct wb_err err = WB_ERR_INIT;
    struct wb_loose head;
    int rc = wb_loose_head(path, &head, &err);

    if (rc < 0)
        return loose_error(rc, &err);
    *n = head.size;
    *type = git_object_string2type(head.type);
    return 0;
}

static int loose_exists(git_odb_backend *b, const git_oid *id)
{
    WB_AUTO_FREE char *path = loose_path(b, id);

    return wb_path_exists(path);
}

int wb_git_check_loose(const char *path, const struct wb_oid *id, struct wb_err *err)
{
    struct wb_loose head;
    struct wb_buf text;
    git_oid is;
    int rc = wb_loose_read(path, &head, &text, err);

    if (rc < 0)
        return rc;
    rc = git_odb_hash(&is, wb_buf_str(&text), text.len, git_object_string2type(head.type));
    wb_buf_release(&text);
    if (rc < 0 || !git_oid_equal(&is, raw(id)))
        return wb_fail(err, WB_CORRUPT, "%s does not hold what its name says", path);
    return 0;
}

/* Whether an object that is to be written is there already, and whole: a damaged one is written
 * again. Its age is renewed, so that git's pruning leaves it. */
static int loose_freshen(git_odb_backend *b, const git_oid *id)
{
    WB_AUTO_FREE char *path = loose_path(b, id);
    struct wb_oid oid;

    take(&oid, id);
    if (wb_git_check_loose(path, &oid, NULL) < 0 || utimensat(AT_FDCWD, path, NULL, 0) < 0)
        return GIT_ERROR;
    return 0;
}

static int loose_write(git_odb_backend *b, const git_oid *id, const void *data, size_t n,
                       git_object_t type)
{
    WB_AUTO_FREE char *path = loose_path(b, id);
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_loose_write(path, git_object_type2string(type), data, n, &err);

    return rc < 0 ? loose_error(rc, &err) : 0;
}

static void loose_free(git_odb_backend *b)
{
    struct loose_backend *l = (struct loose_backend *)b;

    free(l->objects);
    free(l);
}

static git_odb_backend *loose_backend(const char *objects, bool flat)
{
    struct loose_backend *l = wb_calloc(1, sizeof(*l));

    l->base.version = GIT_ODB_BACKEND_VERSION;
    l->base.read = loose_read;
    l->base.read_header = loose_head;
    l->base.exists = loose_exists;
    l->base.freshen = loose_freshen;
    if (flat)
        l->base.write = loose_write;
    l->base.free = loose_free;
    l->objects = wb_strdup(objects);
    l->flat = flat;
    return &l->base;
}

/* Adds readers for loose and packed objects of a repository to a database. */
static int add_readers(git_odb *odb, const char *repository)
{
    WB_AUTO_FREE char *objects = wb_strf("%s/objects", repository);
    git_odb_backend *loose = loose_backend(objects, false), *packs = NULL;
    int rc = git_odb_add_alternate(odb, loose, 2);

    if (rc < 0)
        loose_free(loose);
    if (rc == 0)
        rc = git_odb_backend_pack(&packs, objects);
    if (rc == 0) {
        rc = git_odb_add_alternate(odb, packs, 1);
        if (rc < 0)
            packs->free(packs);
    }
    return rc;
}

/* ---- the library, the repository ---- */

/* The settings are the library's, not ours to keep; the first user of the process makes them. Who
 * owns the folder is no danger here: libgit2 runs no hooks and no programs. */
static void library_open(void)
{
    if (git_libgit2_init() != 1)
        return;
    for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        (void)git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    (void)git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    (void)git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)CACHE_MAX);
}

int wb_git_init(const char *path, const char *head, struct wb_err *err)
{
    git_repository_init_options o = {.version = GIT_REPOSITORY_INIT_OPTIONS_VERSION};
    git_repository *repo = NULL;
    int rc;

    library_open();
    o.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_NO_REINIT | GIT_REPOSITORY_INIT_MKDIR;
    o.initial_head = head;
    o.description = "Weighbridge records\n";
    rc = git_repository_init_ext(&repo, path, &o);
    if (rc < 0)
        rc = fail_git(err, rc, "cannot make a repository in %s", path);
    git_repository_free(repo);
    (void)git_libgit2_shutdown();
    return rc;
}

/* The repository's settings, then ours on top. */
static int use_config(struct wb_git *g, const char *config)
{
    WB_AUTO_FREE char *own = wb_strf("%s/config", g->path);
    git_config *cfg = NULL;
    int rc = git_config_new(&cfg);

    if (rc == 0)
        rc = git_config_add_file_ondisk(cfg, own, GIT_CONFIG_LEVEL_LOCAL, g->repo, 0);
    if (rc == 0 && config)
        rc = git_config_add_file_ondisk(cfg, config, GIT_CONFIG_LEVEL_APP, g->repo, 0);
    if (rc == 0)
        rc = git_repository_set_config(g->repo, cfg);
    git_config_free(cfg);
    return rc;
}

int wb_git_open(const char *path, const char *config, struct wb_git **out, struct wb_err *err)
{
    struct wb_git *g = wb_calloc(1, sizeof(*g));
    int rc;

    library_open();
    g->path = wb_strdup(path);
    rc = git_repository_open_bare(&g->repo, path);
    if (rc == 0)
        rc = use_config(g, config);
    if (rc == 0)
        rc = git_odb_new(&g->odb);
    if (rc == 0)
        rc = add_readers(g->odb, path);
    if (rc == 0)
        rc = git_repository_set_odb(g->repo, g->odb);
    if (rc < 0) {
        rc = fail_git(err, rc, "cannot open the repository %s", path);
        wb_git_close(g);
        return rc;
    }
    *out = g;
    return 0;
}

void wb_git_close(struct wb_git *g)
{
    if (!g)
        return;
    git_odb_free(g->odb);
    git_repository_free(g->repo);
    (void)git_libgit2_shutdown();
    free(g->path);
    free(g);
}

struct wb_git_work wb_git_work(const struct wb_git *g)
{
    return g->work;
}

int wb_git_config(struct wb_git *g, const char *name, char **out, struct wb_err *err)
{
    git_config *cfg = NULL;
    const char *value = NULL;
    int rc = git_repository_config_snapshot(&cfg, g->repo);

    if (rc == 0)
        rc = git_config_get_string(&value, cfg, name);
    if (rc < 0)
        rc = fail_git(err, rc, "%s: setting %s", g->path, name);
    else
        *out = wb_strdup(value);
    git_config_free(cfg);
    return rc;
}

/* ---- references ---- */

struct ref_list {
    struct wb_git_ref *v;
    size_t n, cap;
    struct wb_strv *broken;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct wb_git_ref *)a)->name, ((const struct wb_git_ref *)b)->name);
}

static void add_ref(struct ref_list *l, const char *name, const git_oid *id)
{
    wb_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));
    l->v[l->n].name = wb_strdup(name);
    take(&l->v[l->n++].id, id);
}

static bool has_ref(const struct ref_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].name, name))
            return true;
    return false;
}

/* A file of a reference that the library's iterator did not give: it passes over what it cannot
 * read. One that was made just now can be read. */
static int check_ref(struct wb_git *g, struct ref_list *l, const char *name, struct wb_err *err)
{
    git_oid id;
    int rc;

    if (has_ref(l, name))
        return 0;
    rc = git_reference_name_to_id(&id, g->repo, name);
    if (rc == 0)
        add_ref(l, name, &id);
    else if (rc != GIT_ENOTFOUND && l->broken)
        wb_strv_add(l->broken, name);
    else if (rc != GIT_ENOTFOUND)
        return wb_fail(err, WB_CORRUPT,
                       "the reference %s in %s cannot be read; if it is not of this store remove "
                       "it, else set it to its newest commit: 'git --git-dir=%s fsck --lost-found' "
                       "finds that, 'git --git-dir=%s update-ref %s COMMIT' sets it",
                       name, g->path, g->path, g->path, name);
    return 0;
}

/* Looks at the files of references below `folder` (ends with a slash). */
static int check_folder(struct wb_git *g, struct ref_list *l, const char *folder, int depth,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", g->path, folder);
    struct wb_strv names = {0};
    int rc = wb_path_exists(dir) ? wb_list_dir(dir, &names, err) : 0;

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s%s", folder, names.v[i]);
        WB_AUTO_FREE char *below = wb_strf("%s/", name);
        WB_AUTO_FREE char *inside = wb_strf("%s/%s", g->path, below);
        size_t n = strlen(name);

        if (wb_path_exists(inside))
            rc = depth > 1 ? check_folder(g, l, below, depth - 1, err) : 0;
        else if (n < 5 || strcmp(name + n - 5, ".lock") != 0)
            rc = check_ref(g, l, name, err);
    }
    wb_strv_release(&names);
    return rc;
}

/* The library reads what it finds below a folder of references: a pipe there would be waited for.
 */
static int only_files(struct wb_git *g, const char *folder, int depth, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", g->path, folder);
    struct wb_strv names = {0};
    int rc = wb_path_exists(dir) ? wb_list_dir(dir, &names, err) : 0;

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s%s", dir, names.v[i]);
        WB_AUTO_FREE char *below = wb_strf("%s%s/", folder, names.v[i]);
        struct stat st;

        if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
            continue; /* gone just now, or a link to nothing, which is told later */
        if (!S_ISDIR(st.st_mode))
            rc = wb_fail(err, WB_CORRUPT, "%s is neither a reference nor a folder of them", path);
        else if (depth > 1)
            rc = only_files(g, below, depth - 1, err);
    }
    wb_strv_release(&names);
    return rc;
}

int wb_git_refs(struct wb_git *g, const char *folder, struct wb_git_ref **out, size_t *n,
                struct wb_strv *broken, struct wb_err *err)
{
    WB_AUTO_FREE char *pattern = wb_strf("%s*", folder);
    git_reference_iterator *it = NULL;
    git_reference *ref = NULL;
    struct ref_list l = {.broken = broken};
    int rc = only_files(g, folder, 8, err);

    if (rc < 0)
        return rc;
    rc = git_reference_iterator_glob_new(&it, g->repo, pattern);

    while (rc == 0 && (rc = git_reference_next(&ref, it)) == 0) {
        if (git_reference_target(ref))
            add_ref(&l, git_reference_name(ref), git_reference_target(ref));
        git_reference_free(ref);
    }
    git_reference_iterator_free(it);
    rc = rc == GIT_ITEROVER ? check_folder(g, &l, folder, 3, err)
                            : fail_git(err, rc, "%s: cannot list %s", g->path, folder);
    if (rc < 0) {
        wb_git_refs_free(l.v, l.n);
        return rc;
    }
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), by_name);
    *out = l.v;
    *n = l.n;
    return 0;
}

void wb_git_refs_free(struct wb_git_ref *refs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(refs[i].name);
    free(refs);
}

int wb_git_ref(struct wb_git *g, const char *name, struct wb_oid *out, struct wb_err *err)
{
    git_oid id;
    int rc = git_reference_name_to_id(&id, g->repo, name);

    if (rc < 0)
        return fail_git(err, rc, "%s: cannot read %s", g->path, name);
    take(out, &id);
    return 0;
}

int wb_git_ref_set(struct wb_git *g, const char *name, const struct wb_oid *id,
                   const struct wb_oid *old, struct wb_err *err)
{
    git_reference *ref = NULL;
    int rc = git_reference_create_matching(&ref, g->repo, name, raw(id), old != NULL,
                                           old ? raw(old) : NULL, NULL);

    git_reference_free(ref);
    return rc < 0 ? fail_git(err, rc, "%s: cannot update %s", g->path, name) : 0;
}

int wb_git_ref_remove(struct wb_git *g, const char *name, struct wb_err *err)
{
    int rc = git_reference_remove(g->repo, name);

    return rc < 0 ? fail_git(err, rc, "%s: cannot remove %s", g->path, name) : 0;
}

/* ---- reading objects ---- */

int wb_git_tree(struct wb_git *g, const struct wb_oid *id, struct wb_git_tree *out,
                struct wb_err *err)
{
    git_tree *t = NULL;
    int rc = git_tree_lookup(&t, g->repo, raw(id));
    size_t n;

    if (rc < 0)
        return fail_read(err, rc, "tree", id);
    n = git_tree_entrycount(t);
    g->work.objects++;
    g->work.entries += n;
    out->v = wb_calloc(n, sizeof(*out->v));
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        const git_tree_entry *e = git_tree_entry_byindex(t, i);

        out->v[i].name = wb_strdup(git_tree_entry_name(e));
        out->v[i].mode = (unsigned)git_tree_entry_filemode(e);
        take(&out->v[i].id, git_tree_entry_id(e));
    }
    git_tree_free(t);
    return 0;
}

const struct wb_git_entry *wb_git_tree_find(const struct wb_git_tree *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->v[i].name, name))
            return &t->v[i];
    return NULL;
}

static int by_entry_name(const void *a, const void *b)
{
    return strcmp(((const struct wb_git_entry *)a)->name, ((const struct wb_git_entry *)b)->name);
}

void wb_git_tree_sort(struct wb_git_tree *t)
{
    if (t->n)
        qsort(t->v, t->n, sizeof(*t->v), by_entry_name);
}

static int is_entry_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct wb_git_entry *)entry)->name);
}

const struct wb_git_entry *wb_git_tree_search(const struct wb_git_tree *t, const char *name)
{
    return t->n ? bsearch(name, t->v, t->n, sizeof(*t->v), is_entry_name) : NULL;
}

void wb_git_tree_release(struct wb_git_tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i].name);
    free(t->v);
    *t = (struct wb_git_tree){0};
}

int wb_git_lookup(struct wb_git *g, const struct wb_oid *tree, const char *path,
                  struct wb_git_entry *out, struct wb_err *err)
{
    struct wb_git_entry e = {.id = *tree, .mode = WB_MODE_TREE};
    const char *p = path;

    for (int depth = 0; depth < PATH_DEPTH_MAX; depth++) {
        size_t len = strcspn(p, "/");
        WB_AUTO_FREE char *name = wb_strndup(p, len);
        git_tree *t = NULL;
        const git_tree_entry *found;
        int rc;

        if (e.mode != WB_MODE_TREE)
            break;
        rc = git_tree_lookup(&t, g->repo, raw(&e.id));
        if (rc < 0) {
            rc = fail_read(err, rc, "tree", &e.id);
            (void)wb_wrap(err, "%s", path);
            return rc;
        }
        g->work.objects++;
        g->work.entries += git_tree_entrycount(t);
        found = git_tree_entry_byname(t, name);
        if (found) {
            take(&e.id, git_tree_entry_id(found));
            e.mode = (unsigned)git_tree_entry_filemode(found);
        }
        git_tree_free(t);
        if (!found)
            break;
        if (!p[len]) {
            *out = e;
            return 0;
        }
        p += len + 1;
    }
    return wb_fail(err, WB_NOT_FOUND, "there is no %s", path);
}

bool wb_git_has(struct wb_git *g, const struct wb_oid *id)
{
    return git_odb_exists(g->odb, raw(id)) == 1;
}

int wb_git_blob(struct wb_git *g, const struct wb_oid *id, struct wb_buf *out, struct wb_err *err)
{
    git_odb_object *o = NULL;
    git_object_t type;
    size_t n = 0;
    char hex[WB_OID_HEX];
    int rc = git_odb_read_header(&n, &type, g->odb, raw(id));

    if (rc < 0)
        return fail_read(err, rc, "blob", id);
    wb_oid_hex(id, hex);
    if (type != GIT_OBJECT_BLOB)
        return wb_fail(err, WB_CORRUPT, "object %s is a %s, not a blob", hex,
                       git_object_type2string(type));
    if (n > out->max - out->len)
        return wb_fail(err, WB_LIMIT, "blob %s has %zu bytes, at most %zu are read", hex, n,
                       out->max - out->len);
    rc = git_odb_read(&o, g->odb, raw(id));
    if (rc < 0)
        return fail_read(err, rc, "blob", id);
    g->work.objects++;
    wb_buf_add(out, git_odb_object_data(o), git_odb_object_size(o));
    git_odb_object_free(o);
    return wb_buf_check(out, "blob", err);
}

int wb_git_commit(struct wb_git *g, const struct wb_oid *id, struct wb_git_commit *out,
                  struct wb_err *err)
{
    git_commit *c = NULL;
    int rc = git_commit_lookup(&c, g->repo, raw(id));

    if (rc < 0)
        return fail_read(err, rc, "commit", id);
    g->work.objects++;
    *out = (struct wb_git_commit){
        .id = *id,
        .has_parent = git_commit_parentcount(c) > 0,
        .time_s = git_commit_time(c),
        .message = wb_strdup(git_commit_message(c)),
    };
    take(&out->tree, git_commit_tree_id(c));
    if (out->has_parent)
        take(&out->parent, git_commit_parent_id(c, 0));
    git_commit_free(c);
    return 0;
}

void wb_git_commit_release(struct wb_git_commit *c)
{
    free(c->message);
    *c = (struct wb_git_commit){0};
}

/* ---- writing objects ---- */

int wb_git_batch_new(struct wb_git *g, const char *dir, struct wb_git_batch **out,
                     struct wb_err *err)
{
    struct wb_git_batch *b = wb_calloc(1, sizeof(*b));
    git_odb_backend *loose = loose_backend(dir, true);
    int rc = git_odb_new(&b->odb);

    if (rc == 0)
        rc = git_odb_add_backend(b->odb, loose, 3);
    if (rc < 0)
        loose_free(loose);
    if (rc == 0)
        rc = add_readers(b->odb, g->path);
    if (rc == 0)
        rc = git_repository_wrap_odb(&b->repo, b->odb);
    if (rc < 0) {
        rc = fail_git(err, rc, "%s: cannot prepare to write objects", g->path);
        wb_git_batch_free(b);
        return rc;
    }
    *out = b;
    return 0;
}

void wb_git_batch_free(struct wb_git_batch *b)
{
    if (!b)
        return;
    git_repository_free(b->repo);
    git_odb_free(b->odb);
    free(b->ids);
    free(b);
}

const struct wb_oid *wb_git_batch_ids(const struct wb_git_batch *b, size_t *n)
{
    *n = b->n;
    return b->ids;
}

static void remember(struct wb_git_batch *b, const git_oid *id, struct wb_oid *out)
{
    wb_grow(&b->ids, &b->cap, b->n + 1, sizeof(*b->ids));
    take(&b->ids[b->n++], id);
    take(out, id);
}

int wb_git_put_blob(struct wb_git_batch *b, const void *data, size_t n, struct wb_oid *out,
                    struct wb_err *err)
{
    git_oid id;
    int rc = git_odb_write(&id, b->odb, data, n, GIT_OBJECT_BLOB);

    if (rc < 0)
        return fail_git(err, rc, "cannot write a blob of %zu bytes", n);
    remember(b, &id, out);
    return 0;
}

int wb_git_put_tree(struct wb_git_batch *b, const struct wb_oid *base,
                    const struct wb_git_entry *entries, size_t n, struct wb_oid *out,
                    struct wb_err *err)
{
    git_treebuilder *tb = NULL;
    git_tree *old = NULL;
    git_oid id;
    int rc = base ? git_tree_lookup(&old, b->repo, raw(base)) : 0;

    if (rc < 0)
        return fail_read(err, rc, "tree", base);
    rc = git_treebuilder_new(&tb, b->repo, old);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = git_treebuilder_insert(NULL, tb, entries[i].name, raw(&entries[i].id),
                                    (git_filemode_t)entries[i].mode);
    if (rc == 0)
        rc = git_treebuilder_write(&id, tb);
    if (rc < 0)
        rc = fail_git(err, rc, "cannot write a tree of %zu entries", n);
    else
        remember(b, &id, out);
    git_treebuilder_free(tb);
    git_tree_free(old);
    return rc;
}

int wb_git_put_commit(struct wb_git_batch *b, const struct wb_oid *tree,
                      const struct wb_oid *parent, const char *message, int64_t time_s,
                      struct wb_oid *out, struct wb_err *err)
{
    git_signature *who = NULL;
    git_tree *t = NULL;
    git_commit *p = NULL;
    git_oid id;
    int rc = git_signature_new(&who, AUTHOR, MAIL, time_s, 0);

    if (rc == 0)
        rc = git_tree_lookup(&t, b->repo, raw(tree));
    if (rc == 0 && parent)
        rc = git_commit_lookup(&p, b->repo, raw(parent));
    if (rc == 0) {
        const git_commit *parents[] = {p};

        rc = git_commit_create(&id, b->repo, NULL, who, who, NULL, message, t, p ? 1 : 0, parents);
    }
    if (rc < 0)
        rc = fail_git(err, rc, "cannot write a commit");
    else
        remember(b, &id, out);
    git_commit_free(p);
    git_tree_free(t);
    git_signature_free(who);
    return rc;
}
