/*
 * Verifying runs and the history that holds them: each commit of a reference adds one run, and
 * what it added is still what stands there.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/internal.h"
#include "server/record/check.h"

/* A run or annotation as it stands at the tips, for the comparison with the commits. */
struct seen {
    char *run, *path;
    size_t ref;
    struct wb_oid tree; /* of a run; the file of an annotation */
    bool committed;
};

struct survey {
    struct wb_store *s;
    wb_json *damage;
    struct wb_days days;
    struct wb_raw_day raw_day;
    struct seen *v;
    size_t n, cap;
    size_t runs; /* how many of them are runs */
};

static int by_run(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    int c = strcmp(x->run, y->run);

    return c ? c : (x->ref > y->ref) - (x->ref < y->ref);
}

static char *run_path(const char *date, const char *run)
{
    return wb_strf("runs/%.4s/%.2s/%.2s/%s", date, date + 5, date + 8, run);
}

/* Damage is noted and the survey goes on; other failures end it. */
static int note(struct survey *v, const char *run, const char *file, const struct wb_err *err)
{
    if (err->code != WB_CORRUPT && err->code != WB_NOT_FOUND)
        return -err->code;
    wb_damage_add(v->damage, run, file, "unreadable", err->root);
    return 0;
}

static int survey_day(struct survey *v, const struct wb_day *d, struct wb_err *err)
{
    const char *ref = v->days.refs[d->ref].name;
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(v->s->git, &d->tree, &t, err);

    if (rc < 0) {
        WB_AUTO_FREE char *where = wb_strf("%s:runs/%s", ref, d->date);

        return note(v, NULL, where, err);
    }
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        const struct wb_git_entry *e = &t.v[i];
        WB_AUTO_FREE char *path = run_path(d->date, e->name);

        if (e->mode != WB_MODE_TREE || !wb_safe_name(e->name)) {
            wb_damage_add(v->damage, NULL, path, "unexpected", "it is not the folder of a run");
            continue;
        }
        wb_grow(&v->v, &v->cap, v->n + 1, sizeof(*v->v));
        v->v[v->n++] = (struct seen){wb_strdup(e->name), WB_STEAL(path), d->ref, e->id, false};
        v->runs++;
        rc = wb_check_folder(v->s, &v->raw_day, ref, d->date, e, v->damage, err);
    }
    wb_git_tree_release(&t);
    return rc;
}

static int survey_notes(struct survey *v, const struct wb_days *days, const struct wb_day *d,
                        struct wb_err *err)
{
    const char *ref = days->refs[d->ref].name;
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(v->s->git, &d->tree, &t, err);

    if (rc < 0) {
        WB_AUTO_FREE char *where = wb_strf("%s:" WB_ANNOTATIONS "/%s", ref, d->date);

        return note(v, NULL, where, err);
    }
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        const struct wb_git_entry *e = &t.v[i];
        size_t n = strlen(e->name);
        WB_AUTO_FREE char *id = wb_strndup(e->name, n > 5 ? n - 5 : n); /* without .json */
        WB_AUTO_FREE char *path = wb_strf(WB_ANNOTATIONS "/%.4s/%.2s/%.2s/%s", d->date, d->date + 5,
                                          d->date + 8, e->name);

        rc = wb_check_annotation(v->s, id, path, e, v->damage, err);
        wb_grow(&v->v, &v->cap, v->n + 1, sizeof(*v->v));
        v->v[v->n++] = (struct seen){WB_STEAL(id), WB_STEAL(path), d->ref, e->id, false};
    }
    wb_git_tree_release(&t);
    return rc;
}

/* Annotations of all references, as they stood when the runs were read: somebody may be writing. */
static int survey_annotations(struct survey *v, struct wb_err *err)
{
    struct wb_days days = {0};
    int rc = wb_days_read_at(v->s, WB_ANNOTATIONS, &v->days, &days, v->damage, err);

    for (size_t i = 0; rc == 0 && i < days.n; i++)
        rc = survey_notes(v, &days, &days.v[i], err);
    wb_days_release(&days);
    return rc;
}

/* ---- the trees of old commits ---- */

#define DAYS_DEPTH 3 /* runs/<year>/<month>: a tree of the folders of days */

static void missing(struct survey *v, const char *path, const struct wb_git_commit *c,
                    const struct wb_oid *id)
{
    char commit[WB_OID_HEX], hex[WB_OID_HEX];
    WB_AUTO_FREE char *text = NULL;

    wb_oid_hex(&c->id, commit);
    wb_oid_hex(id, hex);
    text = wb_strf("object %s of %s in commit %s is missing", hex, path, commit);
    wb_damage_add(v->damage, NULL, path, "unreadable", text);
}

/* What a folder of an old commit refers to is there. Only what its child does not have as well is
 * looked at, and a day's folder is not read: it is a tree of all its runs, and there is one for
 * each of them. `newer`: the same folder of the child, or NULL. */
static int check_old(struct survey *v, const struct wb_git_commit *c, const char *path,
                     const struct wb_oid *tree, const struct wb_oid *newer, int depth,
                     struct wb_err *err)
{
    struct wb_git_tree now = {0}, after = {0};
    int rc = 0;

    if (!wb_git_has(v->s->git, tree)) {
        missing(v, path, c, tree);
        return 0;
    }
    if (wb_git_tree(v->s->git, tree, &now, err) < 0)
        return note(v, NULL, path, err);
    if (newer && wb_git_tree(v->s->git, newer, &after, NULL) < 0)
        after = (struct wb_git_tree){0}; /* told with the child */
    for (size_t i = 0; rc == 0 && i < now.n; i++) {
        const struct wb_git_entry *e = &now.v[i], *same = wb_git_tree_find(&after, e->name);
        WB_AUTO_FREE char *below = wb_strf("%s/%s", path, e->name);

        if (same && wb_oid_equal(&same->id, &e->id))
            continue;
        if (depth < DAYS_DEPTH && e->mode == WB_MODE_TREE)
            rc = check_old(v, c, below, &e->id, same ? &same->id : NULL, depth + 1, err);
        else if (!wb_git_has(v->s->git, &e->id))
            missing(v, below, c, &e->id);
    }
    wb_git_tree_release(&now);
    wb_git_tree_release(&after);
    return rc;
}

/* One thing that commit c added must be what stands at the tip. Where the commit says what that
 * was, its trees are not read: a day's folder is a tree of all its runs, and there is one for each.
 */
static int compare_added(struct survey *v, size_t ref, const struct wb_git_commit *c,
                         const struct wb_added *a, struct wb_err *err)
{
    const struct seen key = {.run = a->id, .ref = ref};
    struct seen *s = v->n ? bsearch(&key, v->v, v->n, sizeof(*v->v), by_run) : NULL;
    struct wb_git_entry e = {.id = a->object};
    char hex[WB_OID_HEX];

    wb_oid_hex(&c->id, hex);
    if (!s || (a->path && strcmp(a->path, s->path) != 0)) {
        WB_AUTO_FREE char *text =
            wb_strf("commit %s recorded it, it is not in %s any more", hex, v->days.refs[ref].name);

        wb_damage_add(v->damage, a->id, ".", "lost", text);
        return 0;
    }
    s->committed = true;
    if (!a->path) {
        int rc = wb_git_lookup(v->s->git, &c->tree, s->path, &e, err);

        if (rc < 0)
            return note(v, a->id, "history", err);
    }
    if (!wb_oid_equal(&e.id, &s->tree)) {
        WB_AUTO_FREE char *text = wb_strf("it was changed after commit %s recorded it", hex);

        wb_damage_add(v->damage, a->id, ".", "changed", text);
    }
    return 0;
}

static int compare_commit(struct survey *v, size_t ref, const struct wb_git_commit *c,
                          struct wb_err *err)
{
    struct wb_added_list l;
    int rc = 0;

    wb_commit_added(c, &l);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        rc = compare_added(v, ref, c, &l.v[i], err);
    wb_added_release(&l);
    return rc;
}

static int survey_ref(struct survey *v, size_t ref, struct wb_err *err)
{
    const char *name = v->days.refs[ref].name;
    struct wb_oid next = v->days.refs[ref].id, newer = {{0}};
    bool more = true, has_newer = false;
    int rc = 0;

    while (rc == 0 && more) {
        struct wb_git_commit c = {0};

        rc = wb_git_commit(v->s->git, &next, &c, err);
        if (rc < 0)
            return note(v, NULL, name, err); /* what is before it cannot be reached */
        rc = compare_commit(v, ref, &c, err);
        if (rc == 0)
            rc = check_old(v, &c, name, &c.tree, has_newer ? &newer : NULL, 0, err);
        newer = c.tree;
        has_newer = true;
        more = c.has_parent;
        next = c.parent;
        wb_git_commit_release(&c);
    }
    for (size_t i = 0; rc == 0 && i < v->n; i++)
        if (v->v[i].ref == ref && !v->v[i].committed)
            wb_damage_add(v->damage, v->v[i].run, "history", "history",
                          "no commit says that it recorded it");
    return rc;
}

/* Raw data: the commits are readable; the data itself is checked run by run. */
static int survey_raw(struct survey *v, const struct wb_git_ref *ref, struct wb_err *err)
{
    struct wb_oid next = ref->id;

    for (bool more = true; more;) {
        struct wb_git_commit c = {0};
        int rc = wb_git_commit(v->s->git, &next, &c, err);

        if (rc < 0)
            return note(v, NULL, ref->name, err);
        more = c.has_parent;
        next = c.parent;
        wb_git_commit_release(&c);
    }
    return 0;
}

/* Whether the damage of an object was told where the object stands. */
static bool is_told(const struct survey *v, const char *hex)
{
    for (size_t i = 0; i < wb_json_len(v->damage); i++)
        if (strstr(wb_json_str_or(wb_json_at(v->damage, i), "message", ""), hex))
            return true;
    return false;
}

/* One folder of loose objects. Those of the tips were read before; this is for the content of trees
 * that only the history holds, of which check_old saw that they are there. Packs carry a digest of
 * their own. */
static int check_loose_folder(struct survey *v, const char *name, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/objects/%s", wb_store_path(v->s), name);
    struct wb_strv names = {0};
    int rc = wb_list_dir(dir, &names, err);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *file = wb_strf("objects/%s/%s", name, names.v[i]);
        WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
        WB_AUTO_FREE char *hex = wb_strf("%s%s", name, names.v[i]);
        struct wb_oid id;

        if (strlen(hex) != WB_OID_HEX - 1 || wb_oid_parse(hex, &id, NULL) < 0)
            continue; /* of a writer that was killed */
        rc = wb_git_check_loose(path, &id, err);
        if (rc == -WB_NOT_FOUND) /* packed just now */
            rc = 0;
        else if (rc < 0 && err->code == WB_CORRUPT && is_told(v, hex))
            rc = 0;
        else if (rc < 0)
            rc = note(v, NULL, file, err);
    }
    wb_strv_release(&names);
    return rc;
}

static int check_loose(struct survey *v, struct wb_err *err)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < 256; i++) {
        WB_AUTO_FREE char *name = wb_strf("%02x", i);
        WB_AUTO_FREE char *dir = wb_strf("%s/objects/%s", wb_store_path(v->s), name);

        if (wb_path_exists(dir))
            rc = check_loose_folder(v, name, err);
    }
    return rc;
}

static int check_head(struct survey *v, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/HEAD", wb_store_path(v->s));
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;
    int rc = wb_file_read(path, 4096, &text, &n, err);
    WB_AUTO_FREE char *own =
        wb_strf("ref: " WB_RECORDS "%s", v->s->controller ? v->s->controller : "");
    bool good = false;

    if (rc < 0)
        return rc;
    while (n && text[n - 1] == '\n')
        text[--n] = '\0';
    good = !strcmp(text, own); /* it may have no records yet beside those of others */
    for (size_t i = 0; i < v->days.nrefs; i++)
        good |= !strncmp(text, "ref: ", 5) && !strcmp(text + 5, v->days.refs[i].name);
    if (!good && v->days.nrefs &&
        wb_store_controller(v->s)) /* of a plain copy it is git's affair */
        wb_damage_add(v->damage, NULL, "HEAD", "head", "it does not name a reference with records");
    return 0;
}

/* Packs and what belongs to them, before anything is read from them: libgit2 trusts an index and
 * can be led outside of its file. *whole tells whether they can be read. */
static int check_packs(struct survey *v, bool *whole, struct wb_err *err)
{
    static const char *const ends[] = {".pack", ".idx", ".rev", ".bitmap"};
    WB_AUTO_FREE char *dir = wb_strf("%s/objects/pack", wb_store_path(v->s));
    struct wb_strv names = {0};
    int rc = wb_list_dir(dir, &names, err);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *file = wb_strf("objects/pack/%s", names.v[i]);
        WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
        const char *end = strrchr(names.v[i], '.');
        bool ours = false;

        for (size_t k = 0; end && k < WB_LEN(ends); k++)
            ours |= !strcmp(end, ends[k]);
        if (!ours || wb_sha1_trailer(path, err) == 0 || !wb_path_exists(path))
            continue; /* git may just have packed it into another */
        *whole = false;
        rc = note(v, NULL, file, err);
    }
    wb_strv_release(&names);
    return rc;
}

static int survey_all(struct survey *v, struct wb_err *err)
{
    struct wb_git_ref *raw = NULL;
    struct wb_strv broken = {0};
    size_t n = 0;
    bool whole = true;
    int rc = check_packs(v, &whole, err);

    if (rc < 0 || !whole)
        return rc;
    rc = wb_days_read(v->s, "runs", &v->days, v->damage, err);
    for (size_t i = 0; rc == 0 && i < v->days.n; i++)
        rc = survey_day(v, &v->days.v[i], err);
    if (rc == 0)
        rc = survey_annotations(v, err);
    if (v->n)
        qsort(v->v, v->n, sizeof(*v->v), by_run);
    for (size_t i = 0; rc == 0 && i < v->days.nrefs; i++)
        rc = survey_ref(v, i, err);
    if (rc == 0)
        rc = wb_git_refs(v->s->git, WB_RAW, &raw, &n, &broken, err);
    for (size_t i = 0; i < broken.n; i++)
        wb_damage_add(v->damage, NULL, broken.v[i], "unreadable", "the reference cannot be read");
    wb_strv_release(&broken);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = survey_raw(v, &raw[i], err);
    wb_git_refs_free(raw, n);
    if (rc == 0)
        rc = check_loose(v, err);
    return rc < 0 ? rc : check_head(v, err);
}

/* One run: its folder, and that the commit which added it added just this. */
static int survey_run(struct survey *v, const char *run, struct wb_err *err)
{
    struct wb_place p = {0};
    struct wb_git_commit c = {0};
    struct wb_git_entry e;
    int rc = wb_place_find(v->s, run, &p, err);

    if (rc < 0)
        return rc == -WB_CORRUPT ? note(v, run, ".", err) : rc;
    v->runs = 1;
    {
        WB_AUTO_FREE char *name = wb_strdup(run);
        const struct wb_git_entry folder = {.name = name, .id = p.tree, .mode = WB_MODE_TREE};
        char date[11] = {p.path[5],  p.path[6],  p.path[7], p.path[8],  '-',
                         p.path[10], p.path[11], '-',       p.path[13], p.path[14]};

        rc = wb_check_folder(v->s, &v->raw_day, p.ref, date, &folder, v->damage, err);
    }
    if (rc == 0) {
        rc = wb_place_commit(v->s, &p, run, &c, err);
        if (rc == 0)
            rc = wb_git_lookup(v->s->git, &c.tree, p.path, &e, err);
        if (rc < 0)
            rc = note(v, run, "history", err);
        else if (!wb_oid_equal(&e.id, &p.tree))
            wb_damage_add(v->damage, run, ".", "changed", "it was changed after it was recorded");
    }
    wb_git_commit_release(&c);
    wb_place_release(&p);
    return rc;
}

int wb_store_verify(struct wb_store *s, const char *run, wb_json *damage, size_t *runs,
                    struct wb_err *err)
{
    struct wb_err own = WB_ERR_INIT;
    struct survey v = {.s = s, .damage = damage};
    int rc = run ? survey_run(&v, run, &own) : survey_all(&v, &own);

    if (rc == 0 && runs)
        *runs = v.runs;
    if (rc < 0 && err)
        *err = own;
    for (size_t i = 0; v.v && i < v.n; i++) {
        free(v.v[i].run);
        free(v.v[i].path);
    }
    free(v.v);
    wb_raw_day_release(&v.raw_day);
    wb_days_release(&v.days);
    return rc;
}
