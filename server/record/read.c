/*
 * Reading records: lists, ids from prefixes, documents, raw data.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/compress.h"
#include "server/record/internal.h"

#define CANDIDATES_MAX 5

int wb_place_doc(struct wb_store *s, const struct wb_oid *folder, const char *doc, wb_json **out,
                 struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strf("%s.json", doc);
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    struct wb_git_entry e;
    int rc = wb_git_lookup(s->git, folder, name, &e, err);

    if (rc == 0)
        rc = wb_git_blob(s->git, &e.id, &text, err);
    if (rc == 0) {
        rc = wb_json_parse(wb_buf_str(&text), text.len, out, err);
        if (rc < 0) {
            (void)wb_wrap(err, "%s", name);
            if (err)
                err->code = WB_CORRUPT;
            rc = -WB_CORRUPT;
        }
    }
    wb_buf_release(&text);
    return rc;
}

/* ---- list ---- */

struct listed {
    wb_json *summary;
};

struct listing {
    struct wb_store *s;
    const struct wb_list_filter *f;
    struct listed *day; /* summaries of one day, of all references */
    size_t n, cap;
};

static bool same(const char *wanted, const wb_json *summary, const char *key)
{
    return !wanted || !strcmp(wanted, wb_json_str_or(summary, key, ""));
}

static bool wanted(const struct wb_list_filter *f, const wb_json *summary)
{
    return same(f->campaign, summary, "campaign") && same(f->arm, summary, "arm") &&
           same(f->outcome, summary, "outcome");
}

static int list_run(struct listing *l, const struct wb_git_entry *run, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    wb_json *summary = NULL;
    int rc = wb_place_doc(l->s, &run->id, "summary", &summary, &why);

    if (rc < 0 && (l->f->campaign || l->f->arm || l->f->outcome || rc == -WB_IO)) {
        if (err)
            *err = why;
        return wb_wrap(err, "%s ('weighbridge verify %s' tells more)", run->name, run->name);
    }
    if (rc < 0) {
        summary = wb_json_object();
        wb_json_set_str(summary, "id", run->name);
        wb_json_set_str(summary, "damaged", why.root);
    } else if (!wanted(l->f, summary)) {
        wb_json_free(summary);
        return 0;
    }
    wb_grow(&l->day, &l->cap, l->n + 1, sizeof(*l->day));
    l->day[l->n++].summary = summary;
    return 0;
}

/* Times are UTC with a fixed width, ids sort by time too. */
static int newest_first(const void *a, const void *b)
{
    const wb_json *x = ((const struct listed *)a)->summary;
    const wb_json *y = ((const struct listed *)b)->summary;
    int c = strcmp(wb_json_str_or(y, "started_at", ""), wb_json_str_or(x, "started_at", ""));

    return c ? c : strcmp(wb_json_str_or(y, "id", ""), wb_json_str_or(x, "id", ""));
}

static int list_day(struct listing *l, const struct wb_day *d, struct wb_err *err)
{
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(l->s->git, &d->tree, &t, err);

    if (rc < 0)
        return wb_wrap(err, "%s ('weighbridge verify --all' tells more)", d->date);
    for (size_t i = 0; rc == 0 && i < t.n; i++)
        if (t.v[i].mode == WB_MODE_TREE)
            rc = list_run(l, &t.v[i], err);
    wb_git_tree_release(&t);
    return rc;
}

int wb_store_list(struct wb_store *s, const struct wb_list_filter *f, wb_json **out,
                  struct wb_err *err)
{
    static const struct wb_list_filter all;
    WB_AUTO_JSON wb_json *list = wb_json_array();
    struct listing l = {.s = s, .f = f ? f : &all};
    struct wb_days d = {0};
    int rc = wb_days_read(s, &d, NULL, err);

    for (size_t i = 0; rc == 0 && i < d.n; i++) {
        rc = list_day(&l, &d.v[i], err);
        if (i + 1 < d.n && !strcmp(d.v[i].date, d.v[i + 1].date))
            continue;
        if (l.n)
            qsort(l.day, l.n, sizeof(*l.day), newest_first);
        for (size_t k = 0; k < l.n; k++) {
            if (l.f->limit && wb_json_len(list) == l.f->limit)
                wb_json_free(l.day[k].summary);
            else
                wb_json_push(list, l.day[k].summary);
        }
        l.n = 0;
        if (l.f->limit && wb_json_len(list) == l.f->limit)
            break;
    }
    for (size_t k = 0; k < l.n; k++)
        wb_json_free(l.day[k].summary);
    free(l.day);
    wb_days_release(&d);
    if (rc == 0)
        *out = WB_STEAL(list);
    return rc;
}

/* ---- ids ---- */

static int too_many(const char *prefix, const struct wb_strv *found, struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(4096);
    int rc;

    for (size_t i = 0; i < found->n && i < CANDIDATES_MAX; i++)
        wb_buf_addf(&names, "%s%s", i ? ", " : "", found->v[i]);
    if (found->n > CANDIDATES_MAX)
        wb_buf_adds(&names, ", ...");
    rc = wb_fail(err, WB_CONFLICT, "'%s' is the beginning of more than one run: %s", prefix,
                 wb_buf_str(&names));
    wb_buf_release(&names);
    return rc;
}

/* Adds the ids that begin with prefix; *exact when one is equal to it. */
static int match_day(struct wb_store *s, const struct wb_day *d, const char *prefix,
                     struct wb_strv *found, bool *exact, struct wb_err *err)
{
    struct wb_git_tree t = {0};
    size_t n = strlen(prefix);
    int rc = wb_git_tree(s->git, &d->tree, &t, err);

    for (size_t i = 0; rc == 0 && i < t.n && !*exact; i++) {
        if (strncmp(t.v[i].name, prefix, n) != 0)
            continue;
        *exact = !t.v[i].name[n];
        if (found->n <= CANDIDATES_MAX)
            wb_strv_add(found, t.v[i].name);
    }
    wb_git_tree_release(&t);
    return rc;
}

int wb_store_resolve(struct wb_store *s, const char *prefix, char **run, struct wb_err *err)
{
    struct wb_days d = {0};
    struct wb_strv found = {0};
    bool exact = false;
    int rc;

    if (!wb_safe_name(prefix))
        return wb_fail(err, WB_INVALID, "'%s' is not the id of a run", prefix);
    rc = wb_days_read(s, &d, NULL, err);
    for (size_t i = 0; rc == 0 && !exact && i < d.n; i++)
        rc = match_day(s, &d.v[i], prefix, &found, &exact, err);
    wb_days_release(&d);
    if (rc == 0 && exact)
        *run = wb_strdup(prefix);
    else if (rc == 0 && found.n == 1)
        *run = wb_strdup(found.v[0]);
    else if (rc == 0 && found.n > 1)
        rc = too_many(prefix, &found, err);
    else if (rc == 0)
        rc = wb_fail(err, WB_NOT_FOUND,
                     "no run begins with '%s' in %s; 'weighbridge list' shows what there is",
                     prefix, s->path);
    wb_strv_release(&found);
    return rc;
}

int wb_store_where(struct wb_store *s, const char *run, struct wb_run_place *out,
                   struct wb_err *err)
{
    struct wb_place p = {0};
    struct wb_git_commit c = {0};
    int rc = wb_place_find(s, run, &p, err);

    if (rc == 0)
        rc = wb_place_commit(s, &p, run, &c, err);
    if (rc == 0) {
        out->ref = WB_STEAL(p.ref);
        out->path = WB_STEAL(p.path);
        wb_oid_hex(&c.id, out->commit);
    }
    wb_git_commit_release(&c);
    wb_place_release(&p);
    return rc;
}

/* ---- documents and raw data ---- */

int wb_store_read(struct wb_store *s, const char *run, const char *doc, wb_json **out,
                  struct wb_err *err)
{
    struct wb_place p = {0};
    bool known = false;
    int rc;

    for (size_t i = 0; wb_record_docs[i]; i++)
        known |= !strcmp(wb_record_docs[i], doc);
    if (!known)
        return wb_fail(err, WB_INVALID, "a record has no document '%s'", doc);
    rc = wb_place_find(s, run, &p, err);
    if (rc == 0) {
        rc = wb_place_doc(s, &p.tree, doc, out, err);
        if (rc < 0)
            (void)wb_wrap(err, "%s", p.path);
    }
    wb_place_release(&p);
    return rc;
}

static int check_facts(const char *name, const wb_json *facts, const struct wb_buf *data,
                       size_t from, struct wb_err *err)
{
    const char *sha = wb_json_str_or(facts, "sha256", "");
    char hex[WB_SHA256_HEX];

    wb_sha256_of(wb_buf_str(data) + from, data->len - from, hex);
    if ((int64_t)(data->len - from) != wb_json_int_or(facts, "bytes", -1) || strcmp(hex, sha) != 0)
        return wb_fail(err, WB_CORRUPT,
                       "%s has %zu bytes with sha256 %s, the summary says %lld with %s", name,
                       data->len - from, hex, (long long)wb_json_int_or(facts, "bytes", -1), sha);
    return 0;
}

int wb_raw_read(struct wb_store *s, const char *ref, const char *date, const char *run,
                const char *name, const wb_json *facts, struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_FREE char *raw_ref = wb_strf(WB_RAW "%s/%.7s", ref + strlen(WB_RECORDS), date);
    WB_AUTO_FREE char *folder = wb_strf("%.2s/%s", date + 8, run);
    WB_AUTO_FREE char *file = wb_strf("%s.zst", name);
    struct wb_buf packed = WB_BUF_INIT(2u * WB_RAW_BYTES_MAX);
    struct wb_err why = WB_ERR_INIT;
    struct wb_git_commit tip = {0};
    struct wb_git_entry e;
    struct wb_oid id;
    size_t from = out->len;
    int rc = wb_git_ref(s->git, raw_ref, &id, err);

    if (rc == 0)
        rc = wb_git_commit(s->git, &id, &tip, err);
    if (rc == 0)
        rc = wb_git_lookup(s->git, &tip.tree, folder, &e, err);
    if (rc == -WB_NOT_FOUND)
        rc = wb_fail(err, WB_NOT_FOUND, "raw pruned: %s of %s is no longer in %s", name, run,
                     raw_ref);
    else if (rc == 0 && wb_git_lookup(s->git, &e.id, file, &e, &why) == -WB_NOT_FOUND)
        rc = wb_fail(err, WB_CORRUPT, "%s has the run's folder but not %s", raw_ref, file);
    if (rc == 0)
        rc = wb_git_blob(s->git, &e.id, &packed, err);
    if (rc == 0)
        rc = wb_decompress(wb_buf_str(&packed), packed.len, out, err);
    if (rc == 0)
        rc = check_facts(name, facts, out, from, err);
    wb_git_commit_release(&tip);
    wb_buf_release(&packed);
    return rc;
}

int wb_store_read_raw(struct wb_store *s, const char *run, const char *name, struct wb_buf *out,
                      struct wb_err *err)
{
    WB_AUTO_JSON wb_json *summary = NULL;
    struct wb_place p = {0};
    const wb_json *facts;
    int rc;

    if (!wb_safe_name(name))
        return wb_fail(err, WB_INVALID, "'%s' is not the name of raw data", name);
    rc = wb_place_find(s, run, &p, err);
    if (rc == 0)
        rc = wb_place_doc(s, &p.tree, "summary", &summary, err);
    if (rc == 0) {
        char date[11] = {p.path[5],  p.path[6], p.path[7],  p.path[8],  '-', p.path[10],
                         p.path[11], '-',       p.path[13], p.path[14], '\0'};

        facts = wb_json_get(wb_json_get(summary, "raw"), name);
        rc = facts ? wb_raw_read(s, p.ref, date, run, name, facts, out, err)
                   : wb_fail(err, WB_NOT_FOUND, "run %s has no raw data '%s'", run, name);
    }
    wb_place_release(&p);
    return rc;
}
