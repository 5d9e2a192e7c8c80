/*
 * Finding runs in the trees: runs/<YYYY>/<MM>/<DD>/<run id>, over the references of all
 * controllers.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/record/index.h"

bool wb_is_date_part(const char *name, int depth)
{
    static const size_t digits[] = {4, 2, 2};
    size_t i = 0;

    while (name[i] >= '0' && name[i] <= '9')
        i++;
    return i == digits[depth] && !name[i];
}

void wb_damage_add(wb_json *damage, const char *run, const char *file, const char *code,
                   const char *message)
{
    wb_json *d = wb_json_object();

    wb_json_set_str(d, "run", run);
    wb_json_set_str(d, "file", file);
    wb_json_set_str(d, "code", code);
    wb_json_set_str(d, "message", message);
    wb_json_set_bool(d, "note",
                     !strcmp(code, "raw-pruned") || !strcmp(code, "other-rules") ||
                         !strcmp(code, "newer-schema"));
    wb_json_push(damage, d);
}

/* Goes on after an unreadable folder when there is a list to note it in. */
static int note(wb_json *damage, const char *file, struct wb_err *err)
{
    if (!damage || err->code != WB_CORRUPT)
        return -err->code;
    wb_damage_add(damage, NULL, file, "unreadable", err->root);
    return 0;
}

/* One folder level on the way to the days. */
struct level {
    struct wb_store *s;
    const char *root; /* "runs" or WB_ANNOTATIONS */
    struct wb_days *days;
    size_t ref;
    wb_json *damage;
};

/* depth 0: years in the root, 1: months, 2: days. date holds the parts so far. */
static int read_level(const struct level *l, const struct wb_oid *tree, int depth, const char *date,
                      struct wb_err *err)
{
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(l->s->git, tree, &t, err);

    if (rc < 0) {
        WB_AUTO_FREE char *where = wb_strf("%s:%s/%s", l->days->refs[l->ref].name, l->root, date);

        return note(l->damage, where, err);
    }
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        const struct wb_git_entry *e = &t.v[i];
        WB_AUTO_FREE char *below = wb_strf("%s%s%s", date, *date ? "-" : "", e->name);

        if (e->mode != WB_MODE_TREE || !wb_is_date_part(e->name, depth))
            continue;
        if (depth < 2) {
            rc = read_level(l, &e->id, depth + 1, below, err);
            continue;
        }
        wb_grow(&l->days->v, &l->days->cap, l->days->n + 1, sizeof(*l->days->v));
        l->days->v[l->days->n] = (struct wb_day){.ref = l->ref, .tree = e->id};
        memcpy(l->days->v[l->days->n++].date, below, 11);
    }
    wb_git_tree_release(&t);
    return rc;
}

static int newest_first(const void *a, const void *b)
{
    const struct wb_day *x = a, *y = b;
    int c = strcmp(y->date, x->date);

    return c ? c : (x->ref > y->ref) - (x->ref < y->ref);
}

static int read_ref(const struct level *l, struct wb_err *err)
{
    const struct wb_git_ref *ref = &l->days->refs[l->ref];
    struct wb_git_commit c = {0};
    struct wb_git_entry runs;
    int rc = wb_git_commit(l->s->git, &ref->id, &c, err);

    if (rc == 0) {
        rc = wb_git_lookup(l->s->git, &c.tree, l->root, &runs, err);
        wb_git_commit_release(&c);
        if (rc == -WB_NOT_FOUND)
            return 0;
    }
    return rc < 0 ? note(l->damage, ref->name, err) : read_level(l, &runs.id, 0, "", err);
}

/* The days of d's references into out; d is used up. */
static int read_refs(struct wb_store *s, const char *root, struct wb_days *d, struct wb_days *out,
                     wb_json *damage, struct wb_err *err)
{
    struct wb_err own = WB_ERR_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < d->nrefs; i++)
        rc = read_ref(&(struct level){s, root, d, i, damage}, &own);
    if (rc < 0) {
        if (err)
            *err = own;
        wb_days_release(d);
        return rc;
    }
    if (d->n)
        qsort(d->v, d->n, sizeof(*d->v), newest_first);
    *out = *d;
    return 0;
}

int wb_days_read(struct wb_store *s, const char *root, struct wb_days *out, wb_json *damage,
                 struct wb_err *err)
{
    struct wb_days d = {0};
    struct wb_strv broken = {0};
    int rc = wb_git_refs(s->git, WB_RECORDS, &d.refs, &d.nrefs, damage ? &broken : NULL, err);

    for (size_t i = 0; i < broken.n; i++)
        wb_damage_add(damage, NULL, broken.v[i], "unreadable", "the reference cannot be read");
    wb_strv_release(&broken);
    if (rc < 0) {
        wb_days_release(&d);
        return rc;
    }
    return read_refs(s, root, &d, out, damage, err);
}

int wb_days_read_at(struct wb_store *s, const char *root, const struct wb_days *earlier,
                    struct wb_days *out, wb_json *damage, struct wb_err *err)
{
    struct wb_days d = {.nrefs = earlier->nrefs};

    d.refs = wb_calloc(d.nrefs, sizeof(*d.refs));
    for (size_t i = 0; i < d.nrefs; i++)
        d.refs[i] = (struct wb_git_ref){wb_strdup(earlier->refs[i].name), earlier->refs[i].id};
    return read_refs(s, root, &d, out, damage, err);
}

void wb_days_release(struct wb_days *d)
{
    wb_git_refs_free(d->refs, d->nrefs);
    free(d->v);
    *d = (struct wb_days){0};
}

/* Without the index, which cannot be made where a folder of another day is damaged. */
static int find_in_trees(struct wb_store *s, const char *run, struct wb_place *out,
                         struct wb_err *err)
{
    struct wb_days d = {0};
    bool found = false;
    int rc = wb_days_read(s, "runs", &d, NULL, err);
    for (size_t i = 0; rc == 0 && !found && i < d.n; i++) {
        struct wb_git_entry e;

        rc = wb_git_lookup(s->git, &d.v[i].tree, run, &e, err);
        found = rc == 0;
        if (found)
            *out = (struct wb_place){
                .tip = d.refs[d.v[i].ref].id,
                .tree = e.id,
                .ref = wb_strdup(d.refs[d.v[i].ref].name),
                .path = wb_strf("runs/%.4s/%.2s/%.2s/%s", d.v[i].date, d.v[i].date + 5,
                                d.v[i].date + 8, run),
            };
        else if (rc == -WB_NOT_FOUND)
            rc = 0;
    }
    wb_days_release(&d);
    if (rc == 0 && !found)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no run '%s' in %s", run, s->path);
    return rc;
}

/* Whether the run's folder is at that place in git, too. */
static bool stands(struct wb_store *s, const struct wb_place *p)
{
    struct wb_git_commit c = {0};
    struct wb_git_entry e;
    int rc = wb_git_commit(s->git, &p->tip, &c, NULL);

    if (rc == 0)
        rc = wb_git_lookup(s->git, &c.tree, p->path, &e, NULL);
    wb_git_commit_release(&c);
    return rc == 0 && wb_oid_equal(&e.id, &p->tree);
}

int wb_place_find(struct wb_store *s, const char *run, struct wb_place *out, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    struct wb_place p = {0};
    int rc;

    if (!wb_safe_name(run))
        return wb_fail(err, WB_INVALID, "'%s' is not the id of a run", run);
    rc = wb_index_place(s, run, &p, &why);
    if (rc == 0 && stands(s, &p)) {
        *out = p;
        return 0;
    }
    wb_place_release(&p);
    if (rc == 0 || rc == -WB_CORRUPT)
        return find_in_trees(s, run, out, err);
    if (err)
        *err = why;
    return rc;
}

void wb_place_release(struct wb_place *p)
{
    free(p->ref);
    free(p->path);
    *p = (struct wb_place){0};
}

int wb_place_commit(struct wb_store *s, const struct wb_place *p, const char *run,
                    struct wb_git_commit *out, struct wb_err *err)
{
    struct wb_git_commit oldest = {0};
    struct wb_oid next = p->tip;
    bool found = false, more = true;

    if (p->has_added && wb_git_commit(s->git, &p->added, out, NULL) == 0) {
        if (wb_commit_adds(out, run))
            return 0;
        wb_git_commit_release(out);
    }
    while (more) {
        struct wb_git_commit c = {0};
        int rc = wb_git_commit(s->git, &next, &c, err);

        if (rc < 0) {
            wb_git_commit_release(&oldest);
            return rc;
        }
        more = c.has_parent;
        next = c.parent;
        if (wb_commit_adds(&c, run)) {
            wb_git_commit_release(&oldest);
            oldest = c;
            found = true;
        } else {
            wb_git_commit_release(&c);
        }
    }
    if (!found)
        return wb_fail(err, WB_CORRUPT, "no commit of %s says that it added %s", p->ref, run);
    *out = oldest;
    return 0;
}
