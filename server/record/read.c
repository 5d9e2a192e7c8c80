/*
 * Reading records: lists, ids from prefixes, documents, raw data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/compress.h"
#include "server/record/index.h"
#include "server/record/query.h"

int wb_blob_doc(struct wb_store *s, const struct wb_oid *blob, const char *name, wb_json **out,
                struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    int rc = wb_git_blob(s->git, blob, &text, err);

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

int wb_place_doc(struct wb_store *s, const struct wb_oid *folder, const char *doc, wb_json **out,
                 struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strf("%s.json", doc);
    struct wb_git_entry e;
    int rc = wb_git_lookup(s->git, folder, name, &e, err);

    return rc < 0 ? rc : wb_blob_doc(s, &e.id, name, out, err);
}

int wb_store_list(struct wb_store *s, const struct wb_list_filter *f, wb_json **out,
                  struct wb_err *err)
{
    static const struct wb_list_filter all;
    const struct wb_list_filter *g = f ? f : &all;
    const struct wb_query q = {.campaign = g->campaign,
                               .arm = g->arm,
                               .outcome = g->outcome,
                               .series = g->series,
                               .since = g->since,
                               .pass_damaged = g->pass_damaged};

    return wb_index_runs(s, &q, g->limit, out, NULL, err);
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

static int compare_facts(const char *name, const wb_json *facts, size_t bytes, const char *hex,
                         struct wb_err *err)
{
    const char *sha = wb_json_str_or(facts, "sha256", "");

    if ((int64_t)bytes != wb_json_int_or(facts, "bytes", -1) || strcmp(hex, sha) != 0)
        return wb_fail(err, WB_CORRUPT,
                       "%s has %zu bytes with sha256 %s, the summary says %lld with %s", name,
                       bytes, hex, (long long)wb_json_int_or(facts, "bytes", -1), sha);
    return 0;
}

/* Which raw file: the day of its run "2026-11-30", the run, its name. */
struct raw_name {
    const char *date, *run, *name;
};

/* Reads the folder of raw data of a day, unless day holds it already. */
static void read_raw_day(struct wb_store *s, struct wb_raw_day *day, const char *ref,
                         const char *folder)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_git_commit tip = {0};
    struct wb_git_entry e;
    struct wb_oid id;

    if (day->ref && !strcmp(day->ref, ref) && !strcmp(day->folder, folder))
        return;
    wb_raw_day_release(day);
    day->ref = wb_strdup(ref);
    day->folder = wb_strdup(folder);
    day->code = wb_git_ref(s->git, ref, &id, &err);
    if (day->code == 0)
        day->code = wb_git_commit(s->git, &id, &tip, &err);
    if (day->code == 0)
        day->code = wb_git_lookup(s->git, &tip.tree, folder, &e, &err);
    if (day->code == 0)
        day->code = wb_git_tree(s->git, &e.id, &day->tree, &err);
    wb_git_tree_sort(&day->tree);
    day->text = wb_strdup(err.root);
    wb_git_commit_release(&tip);
}

void wb_raw_day_release(struct wb_raw_day *d)
{
    free(d->ref);
    free(d->folder);
    free(d->text);
    wb_git_tree_release(&d->tree);
    *d = (struct wb_raw_day){0};
}

/* The compressed form out of git. */
static int read_packed(struct wb_store *s, struct wb_raw_day *day, const char *ref,
                       const struct raw_name *n, struct wb_buf *packed, struct wb_err *err)
{
    WB_AUTO_FREE char *raw_ref = wb_strf(WB_RAW "%s/%.7s", ref + strlen(WB_RECORDS), n->date);
    WB_AUTO_FREE char *file = wb_strf("%s.zst", n->name);
    struct wb_err why = WB_ERR_INIT;
    const struct wb_git_entry *folder;
    struct wb_git_entry e;
    int rc;

    read_raw_day(s, day, raw_ref, n->date + 8);
    folder = wb_git_tree_search(&day->tree, n->run);
    if (day->code == -WB_NOT_FOUND || (day->code == 0 && !folder))
        return wb_fail(err, WB_NOT_FOUND, "raw pruned: %s of %s is no longer in %s", n->name,
                       n->run, raw_ref);
    if (day->code < 0)
        return wb_fail(err, (enum wb_code) - day->code, "%s", day->text);
    rc = wb_git_lookup(s->git, &folder->id, file, &e, &why);
    if (rc == -WB_NOT_FOUND)
        rc = wb_fail(err, WB_CORRUPT, "%s has the run's folder but not %s", raw_ref, file);
    else if (rc < 0 && err)
        *err = why;
    return rc < 0 ? rc : wb_git_blob(s->git, &e.id, packed, err);
}

int wb_raw_read(struct wb_store *s, struct wb_raw_day *day, const char *ref, const char *date,
                const char *run, const char *name, const wb_json *facts, struct wb_buf *out,
                struct wb_err *err)
{
    const struct raw_name n = {.date = date, .run = run, .name = name};
    struct wb_buf packed = WB_BUF_INIT(2u * WB_RAW_BYTES_MAX);
    char hex[WB_SHA256_HEX];
    size_t from = out->len;
    int rc = read_packed(s, day, ref, &n, &packed, err);

    if (rc == 0)
        rc = wb_decompress(wb_buf_str(&packed), packed.len, out, err);
    if (rc == 0) {
        wb_sha256_of(wb_buf_str(out) + from, out->len - from, hex);
        rc = compare_facts(name, facts, out->len - from, hex, err);
    }
    wb_buf_release(&packed);
    return rc;
}

/* Where a run's raw data is: its place, day and what the summary says of it. */
struct raw_place {
    struct wb_place p;
    wb_json *summary;
    char date[11];
    const wb_json *facts; /* of the summary */
};

static void raw_place_release(struct raw_place *r)
{
    wb_place_release(&r->p);
    wb_json_free(r->summary);
}

static int find_raw(struct wb_store *s, const char *run, const char *name, struct raw_place *r,
                    struct wb_err *err)
{
    int rc;

    if (!wb_safe_name(name))
        return wb_fail(err, WB_INVALID, "'%s' is not the name of raw data", name);
    rc = wb_place_find(s, run, &r->p, err);
    if (rc == 0)
        rc = wb_place_doc(s, &r->p.tree, "summary", &r->summary, err);
    if (rc == 0) {
        const char *path = r->p.path; /* "runs/2026/11/30/..." */
        const char date[11] = {path[5],  path[6], path[7],  path[8],  '-', path[10],
                               path[11], '-',     path[13], path[14], '\0'};

        memcpy(r->date, date, sizeof(date));
        r->facts = wb_json_get(wb_json_get(r->summary, "raw"), name);
        if (!r->facts)
            rc = wb_fail(err, WB_NOT_FOUND, "run %s has no raw data '%s'", run, name);
    }
    return rc;
}

int wb_store_read_raw(struct wb_store *s, const char *run, const char *name, struct wb_buf *out,
                      struct wb_err *err)
{
    struct raw_place r = {0};
    struct wb_raw_day day = {0};
    int rc = find_raw(s, run, name, &r, err);

    if (rc == 0)
        rc = wb_raw_read(s, &day, r.p.ref, r.date, run, name, r.facts, out, err);
    wb_raw_day_release(&day);
    raw_place_release(&r);
    return rc;
}

struct raw_sink {
    struct wb_sha256 *digest;
    size_t bytes;
    int fd;
};

static int write_piece(void *arg, const void *piece, size_t n, struct wb_err *err)
{
    struct raw_sink *k = arg;
    const char *p = piece;

    wb_sha256_add(k->digest, piece, n);
    k->bytes += n;
    while (n > 0) {
        ssize_t done = write(k->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return wb_fail_sys(err, errno, "raw data could not be written");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int wb_store_copy_raw(struct wb_store *s, const char *run, const char *name, int fd,
                      struct wb_err *err)
{
    struct wb_buf packed = WB_BUF_INIT(2u * WB_RAW_BYTES_MAX);
    struct raw_sink k = {.digest = wb_sha256_new(), .fd = fd};
    struct raw_place r = {0};
    char hex[WB_SHA256_HEX];
    struct wb_raw_day day = {0};
    int rc = find_raw(s, run, name, &r, err);
    const struct raw_name n = {.date = r.date, .run = run, .name = name};

    if (rc == 0)
        rc = read_packed(s, &day, r.p.ref, &n, &packed, err);
    wb_raw_day_release(&day);
    if (rc == 0)
        rc = wb_decompress_to(wb_buf_str(&packed), packed.len, WB_RAW_BYTES_MAX, write_piece, &k,
                              err);
    wb_sha256_end(k.digest, hex);
    if (rc == 0)
        rc = compare_facts(name, r.facts, k.bytes, hex, err);
    wb_buf_release(&packed);
    raw_place_release(&r);
    return rc;
}

/* ---- the recipe ---- */

#define RECIPE_DEPTH_MAX 12

static int write_file(struct wb_store *s, const struct wb_git_entry *e, const char *path,
                      struct wb_err *err)
{
    struct wb_buf data = WB_BUF_INIT(WB_DOC_MAX);
    int rc = wb_git_blob(s->git, &e->id, &data, err);

    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&data), data.len, e->mode == WB_MODE_EXEC ? 0755 : 0644,
                           err);
    wb_buf_release(&data);
    return rc;
}

static int write_folder(struct wb_store *s, const struct wb_oid *id, const char *folder, int depth,
                        struct wb_err *err)
{
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(s->git, id, &t, err);

    if (rc == 0)
        rc = wb_mkdir_all(folder, 0755, err);
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", folder, t.v[i].name);

        if (!wb_safe_name(t.v[i].name) || depth == RECIPE_DEPTH_MAX)
            rc = wb_fail(err, WB_CORRUPT, "the recipe has a file named '%.100s', or too deep",
                         t.v[i].name);
        else if (t.v[i].mode == WB_MODE_TREE)
            rc = write_folder(s, &t.v[i].id, path, depth + 1, err);
        else
            rc = write_file(s, &t.v[i], path, err);
    }
    wb_git_tree_release(&t);
    return rc;
}

int wb_store_read_recipe(struct wb_store *s, const char *run, const char *folder,
                         struct wb_err *err)
{
    struct wb_place p = {0};
    struct wb_git_entry e;
    int rc = wb_place_find(s, run, &p, err);

    if (rc == 0) {
        rc = wb_git_lookup(s->git, &p.tree, "recipe", &e, err);
        if (rc == -WB_NOT_FOUND)
            rc = wb_fail(err, WB_NOT_FOUND, "the record of %s has no recipe in it", run);
    }
    if (rc == 0)
        rc = write_folder(s, &e.id, folder, 0, err);
    wb_place_release(&p);
    return rc;
}
