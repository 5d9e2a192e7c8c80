/*
 * Folding: what stands in the references and not yet in the index. Of the trees only folders that
 * differ between the commit seen last and the newest one are read; of the commits only those
 * between the two.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/rng.h"
#include "server/record/index.h"

#define NONE (-1.0)  /* a figure that the run does not have; before all others when rising */
#define RUNS_DEPTH 3 /* runs/<year>/<month>/<day>/ */

/* A commit and the run it says it added, as a hash: there may be a hundred thousand of them. Who
 * uses the commit looks at its message anyway. */
struct added {
    uint64_t run;
    struct wb_oid id;
    uint32_t seq; /* 0 is the newest */
};

struct fold {
    struct wb_store *s;
    struct wb_db *db;
    bool db_failed;
    struct wb_stmt *put_run, *del_run, *touch_campaign, *touch_series, *groups_of, *put_note;
    struct added *added; /* of the reference that is folded, sorted by run, oldest first */
    size_t nadded, cap;
    int64_t ref;
};

/* The result of a call to the database. */
static int in_db(struct fold *f, int rc)
{
    f->db_failed |= rc < 0;
    return rc;
}

/* ---- commits ---- */

static int by_run(const void *a, const void *b)
{
    const struct added *x = a, *y = b;

    return x->run != y->run ? (x->run > y->run) - (x->run < y->run)
                            : (x->seq < y->seq) - (x->seq > y->seq);
}

static uint64_t hash_of(const char *run)
{
    uint64_t h = 1;

    for (const unsigned char *p = (const unsigned char *)run; *p; p++)
        h = wb_mix64(h, *p);
    return h;
}

/* Walks from the newest commit to the one that was seen last; *rewritten when that is not on the
 * way: somebody changed the history. A commit that cannot be read ends the walk: runs before it
 * are then of unknown commits, which is for verify to tell. */
static int walk(struct fold *f, const struct wb_oid *from, const struct wb_oid *to, bool *rewritten)
{
    struct wb_oid next = *from;
    uint32_t seq = 0;

    f->nadded = 0;
    for (bool more = true; more && !(to && wb_oid_equal(&next, to));) {
        struct wb_git_commit c = {0};
        struct wb_added_list l;

        if (wb_git_commit(f->s->git, &next, &c, NULL) < 0)
            break;
        wb_commit_added(&c, &l);
        wb_grow(&f->added, &f->cap, f->nadded + l.n, sizeof(*f->added));
        for (size_t i = 0; i < l.n; i++)
            f->added[f->nadded++] = (struct added){hash_of(l.v[i].id), c.id, seq};
        seq++;
        wb_added_release(&l);
        more = c.has_parent;
        *rewritten = to && !more;
        next = c.parent;
        wb_git_commit_release(&c);
    }
    if (f->nadded)
        qsort(f->added, f->nadded, sizeof(*f->added), by_run);
    return 0;
}

/* The oldest commit that says it added the run, or NULL. */
static const struct added *find_added(const struct fold *f, const char *run)
{
    uint64_t hash = hash_of(run);
    size_t lo = 0, hi = f->nadded;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (f->added[mid].run < hash)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < f->nadded && f->added[lo].run == hash ? &f->added[lo] : NULL;
}

/* ---- one run ---- */

static double figure(const wb_json *summary, const char *which)
{
    const char *name = wb_json_str_or(wb_json_get(summary, "headline"), which, NULL);
    const wb_json *m = name ? wb_json_get(wb_json_get(summary, "metrics"), name) : NULL;

    return wb_json_real_or(m, "value", NONE);
}

static int64_t time_of(const wb_json *summary, const char *key, int64_t dflt)
{
    const char *text = wb_json_str_or(summary, key, NULL);
    int64_t ms;

    return text && wb_parse_time(text, &ms, NULL) == 0 ? ms : dflt;
}

/* Remembers that what is counted of the run's campaign and series has changed. */
static int touch(struct fold *f, const char *campaign, const char *series, struct wb_err *err)
{
    int rc = 0;

    if (campaign) {
        wb_stmt_set_text(f->touch_campaign, 1, campaign);
        rc = wb_stmt_run(f->touch_campaign, err);
    }
    if (rc == 0 && series) {
        wb_stmt_set_text(f->touch_series, 1, series);
        rc = wb_stmt_run(f->touch_series, err);
    }
    return in_db(f, rc);
}

static int touch_stored(struct fold *f, const char *run, struct wb_err *err)
{
    WB_AUTO_FREE char *campaign = NULL;
    WB_AUTO_FREE char *series = NULL;
    int rc;

    wb_stmt_set_text(f->groups_of, 1, run);
    wb_stmt_set_int(f->groups_of, 2, f->ref);
    rc = in_db(f, wb_index_next(f->groups_of, err));
    if (rc == 1) {
        campaign = wb_strdup(wb_stmt_text(f->groups_of, 0));
        series = wb_strdup(wb_stmt_text(f->groups_of, 1));
    }
    wb_stmt_reset(f->groups_of);
    return rc < 0 ? rc : touch(f, campaign, series, err);
}

static void bind_summary(struct wb_stmt *st, const wb_json *m, int64_t day_ms)
{
    const wb_json *recipe = wb_json_get(m, "recipe"), *subject = wb_json_get(m, "subject");
    int64_t started = time_of(m, "started_at", day_ms);
    const char *series = wb_json_str_or(m, "series_key", NULL);

    wb_stmt_set_int(st, 8, started);
    wb_stmt_set_int(st, 9, time_of(m, "ended_at", started));
    wb_stmt_set_text(st, 10, wb_json_str_or(m, "campaign", NULL));
    wb_stmt_set_text(st, 11, wb_json_str_or(m, "study", NULL));
    wb_stmt_set_text(st, 12, wb_json_str_or(m, "arm", NULL));
    wb_stmt_set_int(st, 13, wb_json_int_or(m, "round", 0));
    wb_stmt_set_text(st, 14, wb_json_str_or(m, "outcome", NULL));
    wb_stmt_set_text(st, 15, wb_json_str_or(m, "validity", NULL));
    wb_stmt_set_text(st, 16, series && *series ? series : NULL);
    wb_stmt_set_text(st, 17, wb_json_str_or(recipe, "name", NULL));
    wb_stmt_set_text(st, 18, wb_json_str_or(recipe, "version", NULL));
    wb_stmt_set_text(st, 19, wb_json_str_or(subject, "digest", NULL));
    wb_stmt_set_text(st, 20, wb_json_str_or(wb_json_get(m, "host"), "class", NULL));
    wb_stmt_set_text(st, 25, wb_json_str_or(wb_json_get(m, "host"), "name", NULL));
    wb_stmt_set_real(st, 21, figure(m, "throughput"));
    wb_stmt_set_real(st, 22, figure(m, "p99"));
    wb_stmt_set_text(st, 23, wb_json_str_or(subject, "commit", NULL));
    if (wb_json_get(subject, "built"))
        wb_stmt_set_int(st, 24, time_of(subject, "built", started));
    else
        wb_stmt_set_text(st, 24, NULL);
}

static int fold_run(struct fold *f, const char *day, const struct wb_git_entry *e,
                    struct wb_err *err)
{
    WB_AUTO_FREE char *midnight = wb_strf("%sT00:00:00Z", day);
    WB_AUTO_JSON wb_json *summary = NULL;
    const struct added *a = find_added(f, e->name);
    struct wb_err why = WB_ERR_INIT;
    struct wb_git_entry doc = {0};
    struct wb_stmt *st = f->put_run;
    int64_t day_ms = 0;
    int rc = wb_git_lookup(f->s->git, &e->id, "summary.json", &doc, &why);
    bool has = rc == 0;

    if (rc == 0)
        rc = wb_blob_doc(f->s, &doc.id, "summary.json", &summary, &why);
    if (rc == -WB_IO)
        return wb_fail(err, WB_IO, "%s: %s", e->name, why.root);
    WB_IGNORE(wb_parse_time(midnight, &day_ms, NULL)); /* 0 for a day that is none */
    wb_stmt_set_text(st, 1, e->name);
    wb_stmt_set_int(st, 2, f->ref);
    wb_stmt_set_text(st, 3, day);
    wb_stmt_set_blob(st, 4, e->id.id, sizeof(e->id.id));
    wb_stmt_set_blob(st, 5, has ? doc.id.id : NULL, sizeof(doc.id.id));
    wb_stmt_set_blob(st, 6, a ? a->id.id : NULL, sizeof(doc.id.id));
    wb_stmt_set_text(st, 7, rc < 0 ? why.root : NULL);
    bind_summary(st, summary, day_ms);
    rc = in_db(f, wb_stmt_run(st, err));
    return rc < 0 ? rc
                  : touch(f, wb_json_str_or(summary, "campaign", NULL),
                          wb_json_str_or(summary, "series_key", NULL), err);
}

static int unfold_run(struct fold *f, const char *run, struct wb_err *err)
{
    int rc = touch_stored(f, run, err);

    wb_stmt_set_text(f->del_run, 1, run);
    wb_stmt_set_int(f->del_run, 2, f->ref);
    return rc < 0 ? rc : in_db(f, wb_stmt_run(f->del_run, err));
}

static int fold_annotation(struct fold *f, const struct wb_git_entry *e, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_stmt *st = f->put_note;
    size_t n = strlen(e->name);
    WB_AUTO_FREE char *id = wb_strndup(e->name, n > 5 ? n - 5 : n); /* without .json */
    int rc = wb_git_blob(f->s->git, &e->id, &text, err);

    if (rc == 0)
        rc = wb_json_parse(wb_buf_str(&text), text.len, &doc, err);
    if (rc < 0) {
        wb_buf_release(&text);
        return wb_wrap(err, "annotation %s ('weighbridge verify --all' tells more)", id);
    }
    wb_stmt_set_text(st, 1, id);
    wb_stmt_set_int(st, 2, f->ref);
    wb_stmt_set_text(st, 3, wb_json_str_or(doc, "id", NULL));
    wb_stmt_set_text(st, 4, wb_json_str_or(doc, "made_at", NULL));
    wb_stmt_set_text(st, 5, wb_buf_str(&text));
    wb_buf_release(&text);
    return in_db(f, wb_stmt_run(st, err));
}

/* ---- what differs between two trees ---- */

struct differing {
    struct fold *f;
    bool runs; /* else annotations */
};

static int fold_folder(const struct differing *d, const struct wb_oid *old,
                       const struct wb_oid *now, const char *date, int depth, struct wb_err *err);

static int fold_entry(const struct differing *d, const struct wb_git_entry *old,
                      const struct wb_git_entry *now, const char *date, int depth,
                      struct wb_err *err)
{
    const struct wb_git_entry *any = now ? now : old;

    if (depth < RUNS_DEPTH) {
        WB_AUTO_FREE char *below = wb_strf("%s%s%s", date, *date ? "-" : "", any->name);

        if (any->mode != WB_MODE_TREE || !wb_is_date_part(any->name, depth))
            return 0;
        return fold_folder(d, old ? &old->id : NULL, now ? &now->id : NULL, below, depth + 1, err);
    }
    if (!d->runs)
        return now && now->mode == WB_MODE_FILE ? fold_annotation(d->f, now, err) : 0;
    if (any->mode != WB_MODE_TREE || !wb_safe_name(any->name))
        return 0; /* verify tells */
    if (!now)
        return unfold_run(d->f, old->name, err);
    /* A row that is there stays until it is replaced: who added the run is known from it, and a
     * commit that changed the run and names it, too, must not take that place. */
    if (old) {
        int rc = touch_stored(d->f, old->name, err);

        if (rc < 0)
            return rc;
    }
    return fold_run(d->f, date, now, err);
}

/* git's order: a folder's name counts with a slash at its end. */
static int git_order(const struct wb_git_entry *a, const struct wb_git_entry *b)
{
    size_t n = 0;
    unsigned char x, y;

    while (a->name[n] && a->name[n] == b->name[n])
        n++;
    x = (unsigned char)a->name[n];
    y = (unsigned char)b->name[n];
    if (!x && a->mode == WB_MODE_TREE)
        x = '/';
    if (!y && b->mode == WB_MODE_TREE)
        y = '/';
    return (x > y) - (x < y);
}

static int merge_entries(const struct differing *d, const struct wb_git_tree *a,
                         const struct wb_git_tree *b, const char *date, int depth,
                         struct wb_err *err)
{
    size_t i = 0, k = 0;
    int rc = 0;

    while (rc == 0 && (i < a->n || k < b->n)) {
        const struct wb_git_entry *old = i < a->n ? &a->v[i] : NULL;
        const struct wb_git_entry *now = k < b->n ? &b->v[k] : NULL;
        int c = !old ? 1 : !now ? -1 : git_order(old, now);

        i += c <= 0;
        k += c >= 0;
        if (c == 0 && wb_oid_equal(&old->id, &now->id))
            continue;
        rc = fold_entry(d, c <= 0 ? old : NULL, c >= 0 ? now : NULL, date, depth, err);
    }
    return rc;
}

static int fold_folder(const struct differing *d, const struct wb_oid *old,
                       const struct wb_oid *now, const char *date, int depth, struct wb_err *err)
{
    struct wb_git_tree a = {0}, b = {0};
    int rc = old ? wb_git_tree(d->f->s->git, old, &a, err) : 0;

    if (rc == 0 && now)
        rc = wb_git_tree(d->f->s->git, now, &b, err);
    rc = rc < 0 ? wb_wrap(err, "%s ('weighbridge verify --all' tells more)", *date ? date : "runs")
                : merge_entries(d, &a, &b, date, depth, err);
    wb_git_tree_release(&a);
    wb_git_tree_release(&b);
    return rc;
}

/* The tree of a commit at a path; *has is false where there is none. */
static int tree_at(struct fold *f, const struct wb_oid *commit, const char *path,
                   struct wb_oid *out, bool *has, struct wb_err *err)
{
    struct wb_git_commit c = {0};
    struct wb_git_entry e;
    int rc = wb_git_commit(f->s->git, commit, &c, err);

    if (rc == 0)
        rc = wb_git_lookup(f->s->git, &c.tree, path, &e, err);
    wb_git_commit_release(&c);
    *has = rc == 0 && e.mode == WB_MODE_TREE;
    if (*has)
        *out = e.id;
    return rc == -WB_NOT_FOUND ? 0 : rc;
}

static int fold_trees(struct fold *f, const struct wb_oid *from, const struct wb_oid *to,
                      const struct differing *d, struct wb_err *err)
{
    const char *path = d->runs ? "runs" : WB_ANNOTATIONS;
    struct wb_oid old, now;
    bool has_old = false, has_now = false;
    int rc = from ? tree_at(f, from, path, &old, &has_old, err) : 0;

    if (rc == 0)
        rc = tree_at(f, to, path, &now, &has_now, err);
    if (rc < 0 || (has_old && has_now && wb_oid_equal(&old, &now)))
        return rc;
    return fold_folder(d, has_old ? &old : NULL, has_now ? &now : NULL, "", 0, err);
}

/* ---- references ---- */

static int forget_ref(struct fold *f, int64_t id, struct wb_err *err)
{
    static const char *const sql[] = {
        "INSERT OR IGNORE INTO temp.touched_campaigns"
        " SELECT campaign FROM runs WHERE ref = ?1 AND campaign IS NOT NULL",
        "INSERT OR IGNORE INTO temp.touched_series"
        " SELECT series FROM runs WHERE ref = ?1 AND series IS NOT NULL",
        "DELETE FROM runs WHERE ref = ?1",
        "DELETE FROM annotations WHERE ref = ?1",
        "DELETE FROM refs WHERE id = ?1",
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < WB_LEN(sql); i++) {
        WB_AUTO_STMT struct wb_stmt *st = NULL;

        rc = wb_db_prepare(f->db, sql[i], &st, err);
        if (rc == 0) {
            wb_stmt_set_int(st, 1, id);
            rc = wb_stmt_run(st, err);
        }
    }
    return in_db(f, rc);
}

static int set_tip(struct fold *f, const struct wb_git_ref *ref, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(f->db, "INSERT OR REPLACE INTO refs (id, name, tip) VALUES (?, ?, ?)",
                           &st, err);

    if (rc == 0) {
        wb_stmt_set_int(st, 1, f->ref);
        wb_stmt_set_text(st, 2, ref->name);
        wb_stmt_set_blob(st, 3, ref->id.id, sizeof(ref->id.id));
        rc = wb_stmt_run(st, err);
    }
    return in_db(f, rc);
}

/* A reference as it was folded last. */
struct known {
    char *name;
    int64_t id;
    struct wb_oid tip;
    bool seen;
};

static int read_known(struct wb_db *db, struct known **out, size_t *n, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    size_t cap = 0;
    int rc = wb_db_prepare(db, "SELECT id, name, tip FROM refs ORDER BY name", &st, err);

    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        size_t bytes;
        const void *tip = wb_stmt_blob(st, 2, &bytes);

        wb_grow(out, &cap, *n + 1, sizeof(**out));
        (*out)[*n] =
            (struct known){.id = wb_stmt_int(st, 0), .name = wb_strdup(wb_stmt_text(st, 1))};
        if (tip && bytes == sizeof((*out)[*n].tip.id))
            memcpy((*out)[*n].tip.id, tip, bytes);
        (*n)++;
        rc = 0;
    }
    return rc;
}

static void free_known(struct known *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(v[i].name);
    free(v);
}

static struct known *find_known(struct known *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i].name, name))
            return &v[i];
    return NULL;
}

static int fold_ref(struct fold *f, const struct wb_git_ref *ref, const struct known *k,
                    struct wb_err *err)
{
    const struct wb_oid *from = k ? &k->tip : NULL;
    bool rewritten = false;
    int64_t next = 0;
    int rc;

    if (k && wb_oid_equal(&k->tip, &ref->id))
        return 0;
    rc = walk(f, &ref->id, from, &rewritten);
    if (rc == 0 && rewritten) {
        rc = forget_ref(f, k->id, err);
        from = NULL;
    }
    if (rc == 0 && !k)
        rc = in_db(f, wb_db_int(f->db, "SELECT coalesce(max(id), 0) + 1 FROM refs", &next, err));
    if (rc < 0)
        return rc;
    f->ref = k ? k->id : next;
    rc = fold_trees(f, from, &ref->id, &(struct differing){f, true}, err);
    if (rc == 0)
        rc = fold_trees(f, from, &ref->id, &(struct differing){f, false}, err);
    return rc < 0 ? rc : set_tip(f, ref, err);
}

/* ---- what is counted ---- */

static const char counts[] =
    "DELETE FROM campaigns WHERE id IN (SELECT id FROM temp.touched_campaigns);"
    "INSERT INTO campaigns (id, study, rounds, runs, ok, started, first, ended)"
    " SELECT campaign, max(study), max(round), count(*), sum(outcome = 'ok'), max(started),"
    " min(started), max(ended) FROM runs"
    " WHERE campaign IN (SELECT id FROM temp.touched_campaigns) GROUP BY campaign;"
    "DELETE FROM series WHERE id IN (SELECT id FROM temp.touched_series);"
    /* columns beside max() are those of the newest run */
    "INSERT INTO series (id, study, arm, recipe, version, host_class, runs, campaigns, started,"
    " first) SELECT series, study, arm, recipe, version, host_class, count(*),"
    " count(DISTINCT campaign), max(started), 0 FROM runs"
    " WHERE series IN (SELECT id FROM temp.touched_series) GROUP BY series;"
    "UPDATE series SET first = (SELECT min(started) FROM runs WHERE series = series.id)"
    " WHERE id IN (SELECT id FROM temp.touched_series);"
    "DELETE FROM subjects WHERE series IN (SELECT id FROM temp.touched_series);"
    "INSERT INTO subjects (series, version, commit_id, built, digest, runs, first, last)"
    " SELECT series, version, commit_id, min(built), digest, count(*), min(started), max(started)"
    " FROM runs WHERE series IN (SELECT id FROM temp.touched_series)"
    " GROUP BY series, version, commit_id, digest;"
    "DELETE FROM temp.touched_campaigns; DELETE FROM temp.touched_series;";

static int prepare_all(struct fold *f, struct wb_err *err)
{
    static const char temp[] =
        "CREATE TEMP TABLE IF NOT EXISTS touched_campaigns (id TEXT PRIMARY KEY) WITHOUT ROWID;"
        "CREATE TEMP TABLE IF NOT EXISTS touched_series (id TEXT PRIMARY KEY) WITHOUT ROWID;"
        "DELETE FROM temp.touched_campaigns; DELETE FROM temp.touched_series;";
    const struct {
        struct wb_stmt **st;
        const char *sql;
    } all[] = {
        {&f->put_run,
         "INSERT OR REPLACE INTO runs (run, ref, day, tree, summary, added, damaged,"
         " started, ended, campaign, study, arm, round, outcome, validity, series,"
         " recipe, version, digest, host_class, throughput, p99, commit_id, built, host)"
         " VALUES (?1,?2,?3,?4,?5,coalesce((SELECT added FROM runs WHERE run = ?1 AND"
         " ref = "
         "?2),?6),?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25)"},
        {&f->del_run, "DELETE FROM runs WHERE run = ? AND ref = ?"},
        {&f->touch_campaign, "INSERT OR IGNORE INTO temp.touched_campaigns VALUES (?)"},
        {&f->touch_series, "INSERT OR IGNORE INTO temp.touched_series VALUES (?)"},
        {&f->groups_of, "SELECT campaign, series FROM runs WHERE run = ? AND ref = ?"},
        {&f->put_note, "INSERT OR REPLACE INTO annotations (id, ref, about, made, document)"
                       " VALUES (?, ?, ?, ?, ?)"},
    };
    int rc = wb_db_exec(f->db, temp, err);

    for (size_t i = 0; rc == 0 && i < WB_LEN(all); i++)
        rc = wb_db_prepare(f->db, all[i].sql, all[i].st, err);
    return in_db(f, rc);
}

/* Runs that could not be read when they were folded: again. */
static int fold_damaged(struct fold *f, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    struct wb_git_entry *v = NULL;
    struct wb_strv days = {0};
    int64_t *refs = NULL;
    size_t n = 0, cap = 0, cap_refs = 0;
    int rc = in_db(f, wb_db_prepare(f->db,
                                    "SELECT run, ref, day, tree FROM runs"
                                    " WHERE damaged IS NOT NULL",
                                    &st, err));

    while (rc == 0 && (rc = in_db(f, wb_index_next(st, err))) == 1) {
        size_t bytes;
        const void *id = wb_stmt_blob(st, 3, &bytes);

        wb_grow(&v, &cap, n + 1, sizeof(*v));
        wb_grow(&refs, &cap_refs, n + 1, sizeof(*refs));
        v[n] = (struct wb_git_entry){.name = wb_strdup(wb_stmt_text(st, 0)), .mode = WB_MODE_TREE};
        if (id && bytes == sizeof(v[n].id.id))
            memcpy(v[n].id.id, id, bytes);
        refs[n++] = wb_stmt_int(st, 1);
        wb_strv_add(&days, wb_stmt_text(st, 2));
        rc = 0;
    }
    f->nadded = 0; /* their commits are not known here: kept as they stand */
    for (size_t i = 0; i < n; i++) {
        f->ref = refs[i];
        if (rc == 0)
            rc = fold_run(f, days.v[i], &v[i], err);
        free(v[i].name);
    }
    free(v);
    free(refs);
    wb_strv_release(&days);
    return rc;
}

static int fold_all(struct fold *f, const struct wb_git_ref *refs, size_t n, struct wb_err *err)
{
    struct known *known = NULL;
    size_t nknown = 0;
    int rc = in_db(f, read_known(f->db, &known, &nknown, err));

    if (rc == 0)
        rc = fold_damaged(f, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct known *k = find_known(known, nknown, refs[i].name);

        if (k)
            k->seen = true;
        rc = fold_ref(f, &refs[i], k, err);
    }
    for (size_t i = 0; rc == 0 && i < nknown; i++)
        if (!known[i].seen)
            rc = forget_ref(f, known[i].id, err);
    free_known(known, nknown);
    return rc;
}

static int count(struct fold *f, bool fresh, struct wb_err *err)
{
    int rc = fresh ? wb_index_finish(f->db, err) : 0;

    return in_db(f, rc < 0 ? rc : wb_db_exec(f->db, counts, err));
}

int wb_index_fold(struct wb_store *s, struct wb_db *db, bool fresh, bool *db_failed,
                  struct wb_err *err)
{
    struct fold f = {.s = s, .db = db};
    struct wb_err own = WB_ERR_INIT;
    struct wb_git_ref *refs = NULL;
    size_t n = 0;
    int rc = wb_git_refs(s->git, WB_RECORDS, &refs, &n, NULL, &own);

    if (rc == 0)
        rc = prepare_all(&f, &own);
    if (rc == 0)
        rc = in_db(&f, wb_db_exec(db, "BEGIN IMMEDIATE", &own));
    if (rc == 0) {
        rc = fold_all(&f, refs, n, &own);
        if (rc == 0)
            rc = count(&f, fresh, &own);
        if (rc == 0)
            rc = in_db(&f, wb_db_exec(db, "COMMIT", &own));
        if (rc < 0)
            WB_IGNORE(wb_db_exec(db, "ROLLBACK", NULL)); /* the failure itself is told */
    }
    wb_stmt_free(f.put_run);
    wb_stmt_free(f.del_run);
    wb_stmt_free(f.touch_campaign);
    wb_stmt_free(f.touch_series);
    wb_stmt_free(f.groups_of);
    wb_stmt_free(f.put_note);
    free(f.added);
    wb_git_refs_free(refs, n);
    *db_failed = f.db_failed;
    if (rc < 0 && err)
        *err = own;
    return rc;
}

/* Whether a run that was damaged can be read again. */
static int healed(struct wb_store *s, struct wb_db *db, bool *any, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db, "SELECT tree FROM runs WHERE damaged IS NOT NULL", &st, err);

    *any = false;
    while (rc == 0 && !*any && (rc = wb_index_next(st, err)) == 1) {
        WB_AUTO_JSON wb_json *doc = NULL;
        size_t bytes;
        const void *id = wb_stmt_blob(st, 0, &bytes);
        struct wb_oid tree = {{0}};

        if (id && bytes == sizeof(tree.id))
            memcpy(tree.id, id, bytes);
        *any = wb_place_doc(s, &tree, "summary", &doc, NULL) == 0;
        rc = 0;
    }
    return rc;
}

int wb_index_current(struct wb_store *s, struct wb_db *db, bool *current, bool *db_failed,
                     struct wb_err *err)
{
    struct known *known = NULL;
    struct wb_git_ref *refs = NULL;
    size_t nknown = 0, n = 0;
    bool again = false;
    int rc = wb_git_refs(s->git, WB_RECORDS, &refs, &n, NULL, err);

    *db_failed = false;
    if (rc == 0) {
        rc = read_known(db, &known, &nknown, err);
        if (rc == 0)
            rc = healed(s, db, &again, err);
        *db_failed = rc < 0;
    }
    *current = rc == 0 && n == nknown && !again;
    for (size_t i = 0; *current && i < n; i++)
        *current = !strcmp(refs[i].name, known[i].name) && wb_oid_equal(&refs[i].id, &known[i].tip);
    free_known(known, nknown);
    wb_git_refs_free(refs, n);
    return rc;
}
