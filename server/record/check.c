#include "server/record/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/collect/collect.h"
#include "server/record/annotate.h"
#include "server/record/summary.h"

#define DEPTH_MAX 12

/* One file of the folder. */
struct file {
    char *path; /* below the run's folder */
    unsigned mode;
    bool read; /* sha256 is known */
    char sha256[WB_SHA256_HEX];
    size_t bytes;
};

struct check {
    struct wb_store *s;
    struct wb_raw_day *day;
    const char *ref, *date, *run;
    wb_json *damage;
    struct file *files;
    size_t n, cap;
    wb_json *docs[6]; /* as wb_record_docs; NULL: damaged or absent */
    bool broken;      /* a folder could not be read: what is missing is not known */
};

WB_PRINTF(4, 5)
static void add(struct check *c, const char *file, const char *code, const char *fmt, ...)
{
    WB_AUTO_FREE char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    wb_damage_add(c->damage, c->run, file, code, text);
}

/* Damage is noted and the check goes on; other failures end it. */
static int note(struct check *c, const char *file, const char *code, const struct wb_err *err)
{
    if (err->code != WB_CORRUPT && err->code != WB_LIMIT)
        return -err->code;
    add(c, file, code, "%s", err->root);
    return 0;
}

/* ---- reading what is there ---- */

static int doc_index(const char *path)
{
    for (int i = 0; wb_record_docs[i]; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.json", wb_record_docs[i]);

        if (!strcmp(name, path))
            return i;
    }
    return -1;
}

/* Parses a document and tells whether the text is the canonical form; NULL: it is no JSON. */
static wb_json *read_canonical(struct check *c, const char *path, const struct wb_buf *text)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf canonical = WB_BUF_INIT(2u * WB_DOC_MAX);
    wb_json *j = NULL;

    if (wb_json_parse(wb_buf_str(text), text->len, &j, &err) < 0) {
        add(c, path, "not-json", "%s", err.root);
        return NULL;
    }
    wb_json_canonical(j, &canonical);
    wb_buf_addc(&canonical, '\n');
    if (canonical.len != text->len || memcmp(canonical.data, text->data, text->len) != 0)
        add(c, path, "not-canonical", "the text is not the canonical form of what it says");
    wb_buf_release(&canonical);
    return j;
}

static void check_doc(struct check *c, int i, const char *path, const struct wb_buf *text)
{
    bool events = !strcmp(wb_record_docs[i], "events");
    wb_json *j = read_canonical(c, path, text);

    if (j && wb_json_type(j) != (events ? WB_JSON_ARRAY : WB_JSON_OBJECT)) {
        add(c, path, "schema", "it is not %s", events ? "a list" : "an object");
        wb_json_free(j);
        return;
    }
    c->docs[i] = j;
}

static int read_file(struct check *c, const char *path, const struct wb_git_entry *e,
                     struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    struct file f = {.path = wb_strdup(path), .mode = e->mode};
    int doc = doc_index(path);
    int rc = wb_git_blob(c->s->git, &e->id, &text, err);

    if (rc < 0) {
        rc = note(c, path, "unreadable", err);
    } else {
        f.read = true;
        f.bytes = text.len;
        wb_sha256_of(wb_buf_str(&text), text.len, f.sha256);
        if (doc >= 0)
            check_doc(c, doc, path, &text);
    }
    wb_grow(&c->files, &c->cap, c->n + 1, sizeof(*c->files));
    c->files[c->n++] = f;
    wb_buf_release(&text);
    return rc;
}

static int read_folder(struct check *c, const char *path, const struct wb_oid *id, int depth,
                       struct wb_err *err)
{
    struct wb_git_tree t = {0};
    int rc = wb_git_tree(c->s->git, id, &t, err);

    if (rc < 0) {
        c->broken = true;
        return note(c, *path ? path : ".", "unreadable", err);
    }
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        WB_AUTO_FREE char *below = wb_strf("%s%s%s", path, *path ? "/" : "", t.v[i].name);

        if (t.v[i].mode == WB_MODE_FILE || t.v[i].mode == WB_MODE_EXEC)
            rc = read_file(c, below, &t.v[i], err);
        else if (t.v[i].mode == WB_MODE_TREE && depth < DEPTH_MAX)
            rc = read_folder(c, below, &t.v[i].id, depth + 1, err);
        else
            add(c, below, "unexpected", "it is neither a file nor a folder");
    }
    wb_git_tree_release(&t);
    return rc;
}

/* ---- the summary's shape ---- */

struct rule {
    const char *key;
    const char *const *words; /* strings: allowed ones, NULL-ended; NULL: any */
    enum wb_json_type type;
    bool optional; /* an interrupted attempt may not know it */
};

const char *const wb_outcome_words[] = {
    "ok",          "target-missed", "not-steady", "inconsistent",  "sut-error",
    "infra-error", "capacity",      "cancelled",  "harness-error", NULL};
const char *const wb_validity_words[] = {"valid",   "noisy",      "client-limited",
                                         "invalid", "unverified", NULL};
static const char *const teardowns[] = {"clean", "incomplete", NULL};
static const struct rule summary_rules[] = {
    {"id", NULL, WB_JSON_STRING, false},
    {"campaign", NULL, WB_JSON_STRING, false},
    {"study", NULL, WB_JSON_STRING, true},
    {"arm", NULL, WB_JSON_STRING, false},
    {"round", NULL, WB_JSON_INT, false},
    {"attempt", NULL, WB_JSON_INT, true},
    {"position", NULL, WB_JSON_INT, true},
    {"factors", NULL, WB_JSON_OBJECT, true},
    {"recipe", NULL, WB_JSON_OBJECT, true},
    {"started_at", NULL, WB_JSON_STRING, false},
    {"ended_at", NULL, WB_JSON_STRING, false},
    {"outcome", wb_outcome_words, WB_JSON_STRING, false},
    {"reasons", NULL, WB_JSON_ARRAY, false},
    {"validity", wb_validity_words, WB_JSON_STRING, false},
    {"evidence", NULL, WB_JSON_ARRAY, false},
    {"teardown", teardowns, WB_JSON_STRING, false},
    {"series_key", NULL, WB_JSON_STRING, true},
    {"host", NULL, WB_JSON_OBJECT, true},
    {"controller", NULL, WB_JSON_STRING, false},
    {"metrics", NULL, WB_JSON_OBJECT, false},
    {"limits", NULL, WB_JSON_ARRAY, true},
    {"headline", NULL, WB_JSON_OBJECT, false},
    {"subject", NULL, WB_JSON_OBJECT, true},
    {"imported", NULL, WB_JSON_OBJECT, true},
    {"raw", NULL, WB_JSON_OBJECT, false},
    {"files", NULL, WB_JSON_OBJECT, false},
};

/* Inside of `subject`; all may be missing, and digest null. */
static const char *const subject_texts[] = {"version",  "commit", "built",
                                            "artifact", "digest", NULL};

static bool is_word(const char *const *words, const char *s)
{
    while (*words && strcmp(*words, s) != 0)
        words++;
    return *words != NULL;
}

bool wb_record_is_outcome(const char *word)
{
    return is_word(wb_outcome_words, word);
}

static void check_subject(struct check *c, const wb_json *subject)
{
    const char *built = wb_json_str_or(subject, "built", NULL);
    struct wb_err err = WB_ERR_INIT;
    int64_t ms;

    for (const char *const *k = subject_texts; *k; k++) {
        const wb_json *v = wb_json_get(subject, *k);

        if (wb_json_type(v) != WB_JSON_NULL && !wb_json_string(v))
            add(c, "summary.json", "schema", "subject.%s is no text", *k);
    }
    if (built && wb_parse_time(built, &ms, &err) < 0)
        add(c, "summary.json", "schema", "subject.built: %s", err.root);
}

static void check_summary(struct check *c, const wb_json *summary)
{
    const char *started = wb_json_str_or(summary, "started_at", "");
    const char *id = wb_json_str_or(summary, "id", c->run);
    struct wb_err err = WB_ERR_INIT;
    int64_t ms = 0;
    char day[11];

    if (wb_json_int_or(summary, "schema", 0) != WB_SCHEMA)
        add(c, "summary.json", "schema", "schema is not %d", WB_SCHEMA);
    for (size_t i = 0; i < WB_LEN(summary_rules); i++) {
        const struct rule *r = &summary_rules[i];
        const wb_json *v = wb_json_get(summary, r->key);

        if (r->optional && !v)
            continue;
        if (wb_json_type(v) != r->type)
            add(c, "summary.json", "schema", "%s is missing or of another type", r->key);
        else if (r->words && !is_word(r->words, wb_json_string(v)))
            add(c, "summary.json", "schema", "%s is '%s'", r->key, wb_json_string(v));
    }
    check_subject(c, wb_json_get(summary, "subject"));
    if (strcmp(id, c->run) != 0)
        add(c, "summary.json", "schema", "it is the summary of '%s'", id);
    if (*started && (wb_parse_time(started, &ms, &err) < 0 || !wb_day_text(ms, day)))
        add(c, "summary.json", "schema", "started_at: %s", err.root);
    else if (*started && strcmp(day, c->date) != 0)
        add(c, "summary.json", "schema", "it started on %s but stands under %s", day, c->date);
}

static wb_json *subject_schema(void)
{
    wb_json *rows = wb_json_object();

    for (const char *const *k = subject_texts; *k; k++) {
        wb_json *types = wb_json_array(), *row = wb_json_object();

        wb_json_push(types, wb_json_str("string"));
        if (strcmp(*k, "digest") == 0)
            wb_json_push(types, wb_json_str("null"));
        wb_json_set(row, "type", types);
        wb_json_set(rows, *k, row);
    }
    return rows;
}

wb_json *wb_summary_schema(void)
{
    static const char *const types[] = {[WB_JSON_INT] = "integer",
                                        [WB_JSON_STRING] = "string",
                                        [WB_JSON_ARRAY] = "array",
                                        [WB_JSON_OBJECT] = "object"};
    wb_json *map = wb_json_object(), *rows = wb_json_object(), *required = wb_json_array();
    wb_json *schema = wb_json_object();

    wb_json_set_int(schema, "const", WB_SCHEMA);
    wb_json_set(rows, "schema", schema);
    wb_json_push(required, wb_json_str("schema"));
    for (size_t i = 0; i < WB_LEN(summary_rules); i++) {
        const struct rule *r = &summary_rules[i];
        wb_json *row = r->words ? wb_schema_words(r->words) : wb_json_object();

        wb_json_set_str(row, "type", types[r->type]);
        if (strcmp(r->key, "subject") == 0)
            wb_json_set(row, "properties", subject_schema());
        wb_json_set(rows, r->key, row);
        if (!r->optional)
            wb_json_push(required, wb_json_str(r->key));
    }
    wb_json_set_str(map, "type", "object");
    wb_json_set(map, "properties", rows);
    wb_json_set(map, "required", required);
    return map;
}

/* ---- digests ---- */

static const struct file *find_file(const struct check *c, const char *path)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->files[i].path, path))
            return &c->files[i];
    return NULL;
}

static void check_listed(struct check *c, const wb_json *listed)
{
    for (void *it = wb_json_first(listed); it; it = wb_json_next(listed, it)) {
        const struct file *f = find_file(c, wb_json_iter_key(it));
        const char *sha = wb_json_str_or(wb_json_iter_value(it), "sha256", "");

        if (!f && !c->broken)
            add(c, wb_json_iter_key(it), "missing", "the summary lists it, it is not there");
        else if (f && f->read && strcmp(sha, f->sha256) != 0)
            add(c, f->path, "digest", "its sha256 is %s, the summary says %s", f->sha256, sha);
    }
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->files[i].path, "summary.json") != 0 && !wb_json_get(listed, c->files[i].path))
            add(c, c->files[i].path, "unexpected", "the summary does not list it");
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

/* The digest described in store.h; only when all files could be read. An interrupted attempt is
 * recorded without the recipe's files. */
static void check_recipe(struct check *c, const wb_json *summary)
{
    const char *recorded = wb_json_str_or(wb_json_get(summary, "recipe"), "digest", NULL);
    struct wb_sha256 *d;
    char hex[WB_SHA256_HEX];
    bool any = false;

    for (size_t i = 0; i < c->n; i++) {
        if (!c->files[i].read)
            return;
        any |= !strncmp(c->files[i].path, "recipe/", 7);
    }
    if (!recorded || c->broken || !any)
        return;
    if (c->n)
        qsort(c->files, c->n, sizeof(*c->files), by_path);
    d = wb_sha256_new();
    for (size_t i = 0; i < c->n; i++) {
        const struct file *f = &c->files[i];
        WB_AUTO_FREE char *line = NULL;

        if (strncmp(f->path, "recipe/", 7) != 0)
            continue;
        line = wb_strf("%s %c %s\n", f->path + 7, f->mode == WB_MODE_EXEC ? 'x' : '-', f->sha256);
        wb_sha256_add(d, line, strlen(line));
    }
    wb_sha256_end(d, hex);
    if (strcmp(hex, recorded) != 0)
        add(c, "recipe/", "recipe-digest", "the digest of its files is %s, the summary says %s",
            hex, recorded);
}

static int check_raw(struct check *c, const wb_json *summary, struct wb_err *err)
{
    const wb_json *raw = wb_json_get(summary, "raw");
    int rc = 0;

    for (void *it = wb_json_first(raw); rc == 0 && it; it = wb_json_next(raw, it)) {
        const char *name = wb_json_iter_key(it);
        int64_t bytes = wb_json_int_or(wb_json_iter_value(it), "bytes", 0);
        WB_AUTO_FREE char *file = wb_strf("raw/%s", name);
        struct wb_buf data = WB_BUF_INIT(
            bytes >= 0 && bytes < (int64_t)WB_RAW_BYTES_MAX ? (size_t)bytes : WB_RAW_BYTES_MAX);

        if (!wb_safe_name(name)) {
            add(c, "summary.json", "schema", "raw: '%s' is no name of raw data", name);
            continue;
        }
        rc = wb_raw_read(c->s, c->day, c->ref, c->date, c->run, name, wb_json_iter_value(it), &data,
                         err);
        wb_buf_release(&data);
        if (rc == -WB_NOT_FOUND) {
            add(c, file, "raw-pruned", "%s", err->root);
            rc = 0;
        } else if (rc < 0) {
            rc = note(c, file, "raw-damaged", err);
        }
    }
    return rc;
}

/* ---- figures ---- */

/* Whether a metric's name is of those that are made from the result. */
static bool is_derived(const char *name)
{
    static const char *const ends[] = {".throughput", ".p50_ms",        ".p99_ms",
                                       ".p99_9_ms",   ".client_cpu_ms", ".sustained"};
    size_t n = strlen(name);

    for (size_t i = 0; i < WB_LEN(ends); i++) {
        size_t m = strlen(ends[i]);

        if (n > m && !strcmp(name + n - m, ends[i]))
            return true;
    }
    return false;
}

/* A metric that was not made yet when the record was. */
static bool is_later(const char *name, const wb_json *stored)
{
    const char *end = strrchr(name, '.');

    return end && !strcmp(end, ".client_cpu_ms") && !wb_json_get(stored, name);
}

static void check_metrics(struct check *c, const wb_json *summary, const wb_json *result)
{
    const wb_json *stored = wb_json_get(summary, "metrics");
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *made = NULL;

    if (wb_json_len(result) == 0 && wb_json_len(stored) == 0)
        return; /* an attempt that never came to measuring */
    if (wb_summary_metrics(result, &made, &err) < 0) {
        add(c, "result.json", "schema", "%s", err.root);
        return;
    }
    for (void *it = wb_json_first(made); it; it = wb_json_next(made, it))
        if (!is_later(wb_json_iter_key(it), stored) &&
            !wb_json_equal(wb_json_iter_value(it), wb_json_get(stored, wb_json_iter_key(it))))
            add(c, "summary.json", "metrics", "%s is not what follows from result.json",
                wb_json_iter_key(it));
    for (void *it = wb_json_first(stored); it; it = wb_json_next(stored, it))
        if (is_derived(wb_json_iter_key(it)) && !wb_json_get(made, wb_json_iter_key(it)))
            add(c, "summary.json", "metrics", "%s does not follow from result.json",
                wb_json_iter_key(it));
}

/* Which order keys and digits have in the store. */
static char *canonical_text(const wb_json *j)
{
    struct wb_buf b = WB_BUF_INIT(2u * WB_DOC_MAX);

    wb_json_canonical(j, &b);
    return wb_buf_take(&b);
}

/* The verdict follows from the evidence, and the evidence from the result. */
static void check_validity(struct check *c, const wb_json *summary, const wb_json *result)
{
    WB_AUTO_JSON wb_json *evidence = wb_json_array();
    const char *stored = wb_json_str_or(summary, "validity", "");
    struct wb_err err = WB_ERR_INIT;
    enum wb_validity made;

    if (!wb_json_get(result, "validity"))
        return; /* an attempt that was interrupted, or a record of before it was kept */
    if (wb_validity_of_result(result, NULL, &made, evidence, &err) < 0) {
        add(c, "result.json", "other-rules", "%s", err.root);
        return;
    }
    WB_AUTO_FREE char *have = canonical_text(wb_json_get(summary, "evidence"));
    WB_AUTO_FREE char *want = canonical_text(evidence);

    if (strcmp(stored, wb_validity_name(made)) != 0)
        add(c, "summary.json", "validity", "it says %s, what follows from result.json is %s",
            stored, wb_validity_name(made));
    if (!have || !want || strcmp(have, want) != 0)
        add(c, "summary.json", "validity", "the evidence is not what follows from result.json");
}

static void check_missing(struct check *c)
{
    for (int i = 0; wb_record_docs[i] && !c->broken; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.json", wb_record_docs[i]);

        if (!find_file(c, name))
            add(c, name, "missing", "it is not there");
    }
}

/* Whether a document is of a version of the program that is still to come. */
static bool is_newer(struct check *c, const char *path, const wb_json *doc)
{
    int64_t schema = wb_json_int_or(doc, "schema", 0);

    if (schema <= WB_SCHEMA)
        return false;
    add(c, path, "newer-schema",
        "a newer version of weighbridge made it (schema %lld, this one knows %d): its digests "
        "were checked, not what it says",
        (long long)schema, WB_SCHEMA);
    return true;
}

int wb_check_folder(struct wb_store *s, struct wb_raw_day *day, const char *ref, const char *date,
                    const struct wb_git_entry *run, wb_json *damage, struct wb_err *err)
{
    struct wb_err own = WB_ERR_INIT;
    struct check c = {
        .s = s, .day = day, .ref = ref, .date = date, .run = run->name, .damage = damage};
    const wb_json *summary, *result;
    int rc = read_folder(&c, "", &run->id, 0, &own);

    summary = c.docs[0];
    result = c.docs[4];
    if (rc == 0 && summary && is_newer(&c, "summary.json", summary)) {
        check_listed(&c, wb_json_get(summary, "files"));
        rc = check_raw(&c, summary, &own);
        summary = NULL;
    } else if (rc == 0) {
        check_missing(&c);
    }
    if (rc == 0 && summary) {
        check_summary(&c, summary);
        check_listed(&c, wb_json_get(summary, "files"));
        check_recipe(&c, summary);
        if (result) {
            check_metrics(&c, summary, result);
            check_validity(&c, summary, result);
        }
        rc = check_raw(&c, summary, &own);
    }
    if (rc < 0 && err)
        *err = own;
    for (size_t i = 0; i < c.n; i++)
        free(c.files[i].path);
    free(c.files);
    for (size_t i = 0; i < WB_LEN(c.docs); i++)
        wb_json_free(c.docs[i]);
    return rc;
}

/* ---- annotations ---- */

int wb_check_annotation(struct wb_store *s, const char *id, const char *path,
                        const struct wb_git_entry *file, wb_json *damage, struct wb_err *err)
{
    static const char *const texts[] = {"annotation", "type", "id", "text", "who", "made_at", "at"};
    struct wb_err own = WB_ERR_INIT;
    struct check c = {.s = s, .run = id, .damage = damage};
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    WB_AUTO_JSON wb_json *doc = NULL;
    int rc = wb_git_blob(s->git, &file->id, &text, &own);

    if (rc < 0) {
        rc = note(&c, path, "unreadable", &own);
    } else {
        doc = read_canonical(&c, path, &text);
        if (doc && is_newer(&c, path, doc)) {
            wb_json_free(doc);
            doc = NULL;
        }
        if (doc && wb_json_int_or(doc, "schema", 0) != WB_SCHEMA)
            add(&c, path, "schema", "schema is not %d", WB_SCHEMA);
        for (size_t i = 0; doc && i < WB_LEN(texts); i++)
            if (!wb_json_string(wb_json_get(doc, texts[i])))
                add(&c, path, "schema", "%s is missing or of another type", texts[i]);
        if (doc && strcmp(wb_json_str_or(doc, "annotation", id), id) != 0)
            add(&c, path, "schema", "it is the annotation '%s'",
                wb_json_str_or(doc, "annotation", ""));
        if (doc && !is_word(wb_annotation_types, wb_json_str_or(doc, "type", "")))
            add(&c, path, "schema", "type is '%s'", wb_json_str_or(doc, "type", ""));
    }
    wb_buf_release(&text);
    if (rc < 0 && err)
        *err = own;
    return rc;
}
