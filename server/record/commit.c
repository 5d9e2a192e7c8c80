/*
 * One run becomes one commit: with the store's lock held, the objects are written to the
 * quarantine, synced, published, and then the references are moved.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/files.h"
#include "server/record/locks.h"
#include "server/record/work.h"
#include "server/record/quarantine.h"

#define LOCK_WAIT_NS (60 * WB_SEC)
#define REF_WAIT_NS (30 * WB_SEC)

static bool has_raw(const struct wb_work *w)
{
    return w->r && w->r->nraw;
}

static void at(struct wb_work *w, const char *point)
{
    if (w->s->hook)
        w->s->hook(w->s->hook_arg, point);
}

/* Where a reference stands now; *has tells whether it exists. */
static int tip_of(struct wb_store *s, const char *ref, struct wb_git_commit *out, bool *has,
                  struct wb_err *err)
{
    struct wb_oid id;
    int rc = wb_git_ref(s->git, ref, &id, err);

    *has = rc == 0;
    if (rc < 0)
        return rc == -WB_NOT_FOUND ? 0 : rc;
    return wb_git_commit(s->git, &id, out, err);
}

/* Takes back the raw data at the tip of a reference if its run was never recorded: the writer died
 * between the two references. */
static int tidy_raw(struct wb_work *w, const struct wb_git_ref *raw,
                    const struct wb_git_commit *tip, bool has_tip, struct wb_err *err)
{
    struct wb_git_commit c = {0};
    struct wb_git_entry found;
    struct wb_err why = WB_ERR_INIT;
    const char *path;
    int rc = wb_git_commit(w->s->git, &raw->id, &c, &why);

    if (rc < 0)
        return 0; /* damaged: verify tells, nothing is touched here */
    path = strstr(c.message, "\npath: ");
    if (path) {
        WB_AUTO_FREE char *folder = wb_strndup(path + 7, strcspn(path + 7, "\n"));

        rc = has_tip ? wb_git_lookup(w->s->git, &tip->tree, folder, &found, &why) : -WB_NOT_FOUND;
        if (rc == -WB_NOT_FOUND) {
            rc = wb_git_unlock_ref(w->s->path, raw->name, REF_WAIT_NS, &w->s->notices, err);
            if (rc == 0)
                rc = c.has_parent ? wb_git_ref_set(w->s->git, raw->name, &c.parent, &raw->id, err)
                                  : wb_git_ref_remove(w->s->git, raw->name, err);
            if (rc == 0)
                wb_strv_addf(&w->s->notices, "took back raw data in %s: %s was never recorded",
                             raw->name, folder);
        } else {
            rc = 0;
        }
    }
    wb_git_commit_release(&c);
    return rc;
}

/* Puts right what a dead writer left behind. */
static int tidy(struct wb_work *w, struct wb_err *err)
{
    struct wb_store *s = w->s;
    WB_AUTO_FREE char *folder = wb_strf(WB_RAW "%s/", s->controller);
    struct wb_git_ref *raw = NULL;
    struct wb_git_commit tip = {0};
    bool has_tip = false;
    size_t n = 0;
    int rc;

    wb_git_unlock_others(s->path, &s->notices);
    rc = wb_git_unlock_ref(s->path, w->ref, REF_WAIT_NS, &s->notices, err);
    if (rc == 0 && w->raw_ref)
        rc = wb_git_unlock_ref(s->path, w->raw_ref, REF_WAIT_NS, &s->notices, err);
    if (rc < 0 || s->tidied)
        return rc;
    rc = tip_of(s, w->ref, &tip, &has_tip, err);
    if (rc == 0)
        rc = wb_git_refs(s->git, folder, &raw, &n, NULL, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = tidy_raw(w, &raw[i], &tip, has_tip, err);
    s->tidied = rc == 0;
    wb_git_refs_free(raw, n);
    wb_git_commit_release(&tip);
    return rc;
}

static int put_commit(struct wb_work *w, struct wb_git_files *files,
                      const struct wb_git_commit *tip, const char *message, struct wb_oid *out,
                      struct wb_err *err)
{
    struct wb_oid tree;
    int rc = wb_files_put(files, w->s->git, w->batch, tip ? &tip->tree : NULL, &tree, err);

    if (rc < 0)
        return rc;
    return wb_git_put_commit(w->batch, &tree, tip ? &tip->id : NULL, message, w->time_s, out, err);
}

/* The files of one run as a tree of their own, noted under the run's folder. */
static int put_run(struct wb_work *w, struct wb_git_batch *batch, struct wb_git_files *folders,
                   struct wb_err *err)
{
    struct wb_git_files files = {0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < WB_NDOCS; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.json", wb_record_docs[i]);

        rc = wb_files_add(&files, batch, NULL,
                          &(struct wb_git_entry){.name = name, .mode = WB_MODE_FILE}, &w->docs[i],
                          err);
    }
    for (size_t i = 0; rc == 0 && i < w->r->nrecipe_files; i++) {
        const struct wb_raw_file *f = &w->r->recipe_files[i];
        WB_AUTO_FREE char *name = wb_strf("recipe/%s", f->name ? f->name : "");
        struct wb_buf content = {.data = f->data, .len = f->n};
        bool exec = f->executable || !strncmp(name, "recipe/steps/", 13);

        if (f->n > WB_DOC_MAX)
            rc = wb_fail(err, WB_LIMIT, "%s has %zu bytes, at most %u are kept", name, f->n,
                         WB_DOC_MAX);
        else
            rc = wb_files_add(
                &files, batch, NULL,
                &(struct wb_git_entry){.name = name, .mode = exec ? WB_MODE_EXEC : WB_MODE_FILE},
                &content, err);
    }
    if (rc == 0)
        rc = wb_files_put(&files, w->s->git, batch, NULL, &w->tree, err);
    if (rc == 0)
        wb_files_add_tree(folders, w->folder, &w->tree);
    wb_files_release(&files);
    return rc;
}

/* "added: <path> <id>", from which verify knows what the commit brought without its trees. */
static void add_added(struct wb_buf *message, const char *path, const struct wb_oid *id)
{
    char hex[WB_OID_HEX];

    wb_oid_hex(id, hex);
    wb_buf_addf(message, WB_ADDED "%s %s\n", path, hex);
}

static int put_record(struct wb_work *w, const struct wb_git_commit *tip, struct wb_err *err)
{
    struct wb_buf message = WB_BUF_INIT(16u << 20);
    struct wb_git_files folders = {0};
    size_t more = 0;
    int rc = 0;

    for (struct wb_work *one = w; rc == 0 && one; one = one->next, more++)
        rc = put_run(one, w->batch, &folders, err);
    if (more > 1)
        wb_buf_addf(&message, "%s and %zu more\n\n", w->r->run, more - 1);
    else
        wb_buf_adds(&message, w->message);
    for (const struct wb_work *one = w; rc == 0 && one; one = one->next)
        add_added(&message, one->folder, &one->tree);
    if (rc == 0)
        rc = wb_buf_check(&message, "the commit's message", err);
    if (rc == 0)
        rc = put_commit(w, &folders, tip, wb_buf_str(&message), &w->commit, err);
    wb_buf_release(&message);
    wb_files_release(&folders);
    return rc;
}

static int put_append(struct wb_work *w, const struct wb_git_commit *tip, struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strdup(w->append->name);
    struct wb_buf message = WB_BUF_INIT(1u << 20);
    struct wb_git_files files = {0};
    int rc = wb_files_add(&files, w->batch, w->append->folder,
                          &(struct wb_git_entry){.name = name, .mode = WB_MODE_FILE},
                          w->append->text, err);

    if (rc == 0) {
        for (const char *p = w->append->message; *p; p++) /* one line: it has words of people */
            wb_buf_addc(&message, (unsigned char)*p < 0x20 ? ' ' : *p);
        wb_buf_adds(&message, "\n\n");
        add_added(&message, files.v[0].path, &files.v[0].id);
        rc = wb_buf_check(&message, "the commit's message", err);
    }
    if (rc == 0)
        rc = put_commit(w, &files, tip, wb_buf_str(&message), &w->commit, err);
    wb_buf_release(&message);
    wb_files_release(&files);
    return rc;
}

static int put_raw(struct wb_work *w, const struct wb_git_commit *tip, struct wb_err *err)
{
    struct wb_git_files files = {0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->r->nraw; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.zst", w->r->raw[i].name);

        rc = wb_files_add(&files, w->batch, w->raw_folder,
                          &(struct wb_git_entry){.name = name, .mode = WB_MODE_FILE}, &w->raw[i],
                          err);
    }
    if (rc == 0)
        rc = put_commit(w, &files, tip, w->raw_message, &w->raw_commit, err);
    wb_files_release(&files);
    return rc;
}

/* Moves one reference. The library syncs it and its folder; a folder that had to be made (git's
 * packing takes empty ones away) is made to last here, up to the repository. */
static int move_ref(struct wb_store *s, const char *ref, const struct wb_oid *to,
                    const struct wb_git_commit *from, struct wb_err *err)
{
    WB_AUTO_FREE char *folder = wb_strf("%s/%s", s->path, ref);
    size_t top = strlen(s->path) + strlen("/refs");
    bool fresh;
    int rc;

    *strrchr(folder, '/') = '\0';
    fresh = !wb_path_exists(folder);
    rc = wb_git_ref_set(s->git, ref, to, from ? &from->id : NULL, err);
    while (rc == 0 && fresh && strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        rc = wb_sync_path(folder, err);
    }
    return rc;
}

/* Moves both references, the raw one first, so that a record never lacks its raw data. */
static int move_refs(struct wb_work *w, const struct wb_git_commit *tip,
                     const struct wb_git_commit *raw_tip, struct wb_err *err)
{
    int rc = has_raw(w) ? move_ref(w->s, w->raw_ref, &w->raw_commit, raw_tip, err) : 0;

    if (rc < 0)
        return rc;
    at(w, "raw-ref");
    rc = move_ref(w->s, w->ref, &w->commit, tip, err);
    if (rc < 0)
        w->s->tidied = false; /* the next commit takes the raw data back */
    else
        at(w, "record-ref");
    return rc;
}

static int write_all(struct wb_work *w, const struct wb_git_commit *tip,
                     const struct wb_git_commit *raw_tip, struct wb_err *err)
{
    const struct wb_oid *ids;
    size_t n;
    int rc = wb_quarantine_make(w->quarantine, err);

    if (rc == 0)
        rc = wb_git_batch_new(w->s->git, w->quarantine, &w->batch, err);
    if (rc == 0 && has_raw(w))
        rc = put_raw(w, raw_tip, err);
    at(w, "raw-objects");
    if (rc == 0)
        rc = w->r ? put_record(w, tip, err) : put_append(w, tip, err);
    at(w, "objects");
    if (rc < 0)
        return rc;
    ids = wb_git_batch_ids(w->batch, &n);
    rc = wb_quarantine_sync(w->quarantine, ids, n, err);
    at(w, "synced");
    if (rc == 0)
        rc = wb_quarantine_publish(w->quarantine, w->s->path, ids, n, err);
    at(w, "published");
    return rc < 0 ? rc : move_refs(w, tip, raw_tip, err);
}

/* Whether something stands where one of the works would put its own: WB_CONFLICT. The works of a
 * day follow each other, so that a day's folder is read once. */
static int check_free(struct wb_work *w, const struct wb_git_commit *tip, struct wb_err *err)
{
    struct wb_git_tree day = {0};
    const char *read = NULL;
    size_t len = 0;
    int rc = 0;

    for (const struct wb_work *one = w; rc == 0 && one; one = one->next) {
        const char *name = strrchr(one->folder, '/') + 1;
        WB_AUTO_FREE char *folder = wb_strndup(one->folder, (size_t)(name - 1 - one->folder));
        struct wb_git_entry e;

        if (!read || len != strlen(folder) || strncmp(read, folder, len) != 0) {
            wb_git_tree_release(&day);
            rc = wb_git_lookup(w->s->git, &tip->tree, folder, &e, err);
            if (rc == 0)
                rc = wb_git_tree(w->s->git, &e.id, &day, err);
            wb_git_tree_sort(&day);
            rc = rc == -WB_NOT_FOUND ? 0 : rc;
            read = one->folder;
            len = strlen(folder);
        }
        if (rc == 0 && wb_git_tree_search(&day, name))
            rc = wb_fail(err, WB_CONFLICT, "%s is recorded already", name);
    }
    wb_git_tree_release(&day);
    return rc;
}

static int locked(struct wb_work *w, struct wb_err *err)
{
    struct wb_git_commit tip = {0}, raw_tip = {0};
    bool has_tip = false, has_raw_tip = false;
    int rc = tidy(w, err);

    if (rc == 0)
        rc = tip_of(w->s, w->ref, &tip, &has_tip, err);
    if (rc == 0 && w->raw_ref)
        rc = tip_of(w->s, w->raw_ref, &raw_tip, &has_raw_tip, err);
    if (rc == 0 && has_tip)
        rc = check_free(w, &tip, err);
    if (rc == 0) {
        rc = write_all(w, has_tip ? &tip : NULL, has_raw_tip ? &raw_tip : NULL, err);
        if (rc < 0)
            WB_IGNORE(
                wb_quarantine_make(w->quarantine, NULL)); /* else the next writer empties it */
    }
    wb_git_commit_release(&tip);
    wb_git_commit_release(&raw_tip);
    return rc;
}

int wb_store_commit(struct wb_store *s, struct wb_record *r, char commit[41], struct wb_err *err)
{
    struct wb_work w = {.s = s, .r = r};
    WB_AUTO_CLOSE int lock = -1;
    int rc = wb_work_prepare(&w, err);

    if (rc == 0)
        rc = wb_store_lock(s->path, LOCK_WAIT_NS, &lock, err);
    if (rc == 0) {
        at(&w, "locked");
        rc = locked(&w, err);
    }
    if (rc == 0)
        wb_oid_hex(&w.commit, commit);
    else
        (void)wb_wrap(err, "recording %s", r->run ? r->run : "a run");
    wb_work_release(&w);
    return rc;
}

int wb_store_commit_all(struct wb_store *s, struct wb_record *v, size_t n, char commit[41],
                        struct wb_err *err)
{
    struct wb_work *w = wb_calloc(n + 1, sizeof(*w)); /* n > 0 */
    WB_AUTO_CLOSE int lock = -1;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        w[i] = (struct wb_work){.s = s, .r = &v[i], .next = i + 1 < n ? &w[i + 1] : NULL};
        rc = v[i].nraw ? wb_fail(err, WB_INVALID, "%s has raw data", v[i].run)
                       : wb_work_prepare(&w[i], err);
    }
    if (rc == 0)
        rc = wb_store_lock(s->path, LOCK_WAIT_NS, &lock, err);
    if (rc == 0) {
        at(&w[0], "locked");
        rc = locked(&w[0], err);
    }
    if (rc == 0)
        wb_oid_hex(&w[0].commit, commit);
    for (size_t i = 0; i < n; i++)
        wb_work_release(&w[i]);
    free(w);
    return rc;
}

int wb_store_append(struct wb_store *s, const struct wb_append *a, char commit[41],
                    struct wb_err *err)
{
    struct wb_work w = {.s = s, .append = a, .time_s = a->time_s};
    WB_AUTO_CLOSE int lock = -1;
    int rc = 0;

    if (!s->controller)
        return wb_fail(err, WB_CONFLICT,
                       "%s is a copy without a controller id and can only be read", s->path);
    w.folder = wb_strf("%s/%s", a->folder, a->name);
    w.ref = wb_strf(WB_RECORDS "%s", s->controller);
    w.quarantine = wb_quarantine_path(s->path);
    rc = wb_store_lock(s->path, LOCK_WAIT_NS, &lock, err);
    if (rc == 0)
        rc = locked(&w, err);
    if (rc == 0)
        wb_oid_hex(&w.commit, commit);
    wb_work_release(&w);
    return rc;
}

int wb_store_tidy(struct wb_store *s, int *lock, struct wb_err *err)
{
    struct wb_work w = {.s = s};
    int rc = wb_store_lock(s->path, LOCK_WAIT_NS, lock, err);

    if (rc == 0) {
        s->tidied = false; /* another process may have died since */
        w.ref = wb_strf(WB_RECORDS "%s", s->controller);
        rc = tidy(&w, err);
    }
    wb_work_release(&w);
    return rc;
}
