/*
 * What of a commit needs no lock: checking the record, rendering the documents, digests,
 * compression, messages.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/compress.h"
#include "server/record/files.h"
#include "server/record/quarantine.h"
#include "server/record/summary.h"
#include "server/record/work.h"

#define LINE_MAX_BYTES 160

static wb_json *const *docs_of(const struct wb_record *r, wb_json *docs[WB_NDOCS])
{
    wb_json *const all[WB_NDOCS] = {r->summary,     r->study,  r->plan,
                                    r->environment, r->result, r->events};

    memcpy(docs, all, sizeof(all));
    return docs;
}

static int check_record(const struct wb_store *s, const struct wb_record *r, struct wb_err *err)
{
    wb_json *docs[WB_NDOCS];
    const char *id;

    if (!s->controller)
        return wb_fail(err, WB_CONFLICT,
                       "%s is a copy without a controller id and can only be read", s->path);
    if (!wb_safe_name(r->run))
        return wb_fail(err, WB_INVALID, "'%s' cannot be the id of a run", r->run ? r->run : "");
    docs_of(r, docs);
    for (size_t i = 0; i < WB_NDOCS; i++) {
        bool events = !strcmp(wb_record_docs[i], "events");

        if (wb_json_type(docs[i]) != (events ? WB_JSON_ARRAY : WB_JSON_OBJECT))
            return wb_fail(err, WB_INVALID, "%s: %s is not %s", r->run, wb_record_docs[i],
                           events ? "a list" : "an object");
    }
    id = wb_json_str_or(r->summary, "id", "");
    if (strcmp(id, r->run) != 0)
        return wb_fail(err, WB_INVALID, "%s: the summary is of run '%s'", r->run, id);
    if (r->nraw > WB_RECORD_FILES_MAX || r->nrecipe_files > WB_RECORD_FILES_MAX)
        return wb_fail(err, WB_LIMIT, "%s: more than %d raw files or recipe files", r->run,
                       WB_RECORD_FILES_MAX);
    for (size_t i = 0; i < r->nrecipe_files; i++)
        if (!wb_safe_path(r->recipe_files[i].name))
            return wb_fail(err, WB_INVALID, "%s: '%s' cannot be the path of a recipe file", r->run,
                           r->recipe_files[i].name ? r->recipe_files[i].name : "");
    for (size_t i = 0; i < r->nraw; i++) {
        if (!wb_safe_name(r->raw[i].name))
            return wb_fail(err, WB_INVALID, "%s: '%s' cannot be the name of raw data", r->run,
                           r->raw[i].name ? r->raw[i].name : "");
        if (r->raw[i].n > WB_RAW_BYTES_MAX)
            return wb_fail(err, WB_LIMIT, "%s: %s has %zu bytes, at most %u are kept", r->run,
                           r->raw[i].name, r->raw[i].n, WB_RAW_BYTES_MAX);
    }
    return 0;
}

static wb_json *facts_of(const void *data, size_t n)
{
    char hex[WB_SHA256_HEX];
    wb_json *f = wb_json_object();

    wb_sha256_of(data ? data : "", n, hex);
    wb_json_set_str(f, "sha256", hex);
    wb_json_set_int(f, "bytes", (int64_t)n);
    return f;
}

static int render(const wb_json *doc, const char *name, struct wb_buf *out, struct wb_err *err)
{
    *out = (struct wb_buf)WB_BUF_INIT(WB_DOC_MAX);
    wb_json_canonical(doc, out);
    wb_buf_addc(out, '\n');
    return wb_buf_check(out, name, err);
}

/* Renders the documents; the summary last, as it holds digests of all others. */
static int prepare_docs(struct wb_work *w, struct wb_err *err)
{
    const struct wb_record *r = w->r;
    wb_json *files = wb_json_object(), *docs[WB_NDOCS];
    int rc = 0;

    docs_of(r, docs);
    for (size_t i = 1; rc == 0 && i < WB_NDOCS; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.json", wb_record_docs[i]);

        rc = render(docs[i], name, &w->docs[i], err);
        wb_json_set(files, name, facts_of(wb_buf_str(&w->docs[i]), w->docs[i].len));
    }
    for (size_t i = 0; rc == 0 && i < r->nrecipe_files; i++) {
        WB_AUTO_FREE char *name = wb_strf("recipe/%s", r->recipe_files[i].name);

        wb_json_set(files, name, facts_of(r->recipe_files[i].data, r->recipe_files[i].n));
    }
    wb_json_set(r->summary, "files", files);
    if (!wb_json_get(r->summary, "schema"))
        wb_json_set_int(r->summary, "schema", WB_SCHEMA);
    if (!wb_json_get(r->summary, "controller"))
        wb_json_set_str(r->summary, "controller", w->s->controller);
    if (!wb_json_get(r->summary, "headline"))
        wb_json_set(r->summary, "headline",
                    wb_summary_headline(r->result, wb_json_get(r->summary, "metrics")));
    return rc < 0 ? rc : render(r->summary, "summary.json", &w->docs[0], err);
}

static int prepare_raw(struct wb_work *w, struct wb_err *err)
{
    wb_json *raw = wb_json_object();
    int rc = 0;

    w->raw = wb_calloc(w->r->nraw, sizeof(*w->raw));
    for (size_t i = 0; rc == 0 && i < w->r->nraw; i++) {
        const struct wb_raw_file *f = &w->r->raw[i];

        if (wb_json_get(raw, f->name))
            rc = wb_fail(err, WB_INVALID, "%s: raw data '%s' is given twice", w->r->run, f->name);
        w->raw[i] = (struct wb_buf)WB_BUF_INIT(2u * WB_RAW_BYTES_MAX);
        wb_json_set(raw, f->name, facts_of(f->data, f->n));
        if (rc == 0 && wb_compress(f->data, f->n, &w->raw[i], err) < 0)
            rc = wb_wrap(err, "%s", f->name);
    }
    wb_json_set(w->r->summary, "raw", raw);
    return rc;
}

/* A text as part of one line: no control characters, bounded. */
static void add_line(struct wb_buf *out, const char *s)
{
    size_t n = 0;

    for (; *s && n < LINE_MAX_BYTES; s++, n++)
        wb_buf_addc(out, (unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s);
    while (*s && ((unsigned char)*s & 0xc0) == 0x80) /* no half character at the cut */
        wb_buf_addc(out, *s++);
}

static void prepare_messages(struct wb_work *w)
{
    const wb_json *m = w->r->summary;
    struct wb_buf b = WB_BUF_INIT(4096);

    wb_buf_addf(&b, "%s ", w->r->run);
    add_line(&b, wb_json_str_or(m, "arm", "?"));
    wb_buf_addf(&b, ", round %lld: ", (long long)wb_json_int_or(m, "round", 0));
    add_line(&b, wb_json_str_or(m, "outcome", "?"));
    wb_buf_adds(&b, ", ");
    add_line(&b, wb_json_str_or(m, "validity", "?"));
    wb_buf_adds(&b, "\n\nstudy: ");
    add_line(&b, wb_json_str_or(m, "study", "?"));
    wb_buf_adds(&b, "\ncampaign: ");
    add_line(&b, wb_json_str_or(m, "campaign", "?"));
    wb_buf_addc(&b, '\n');
    w->message = wb_buf_take(&b);
    w->raw_message = wb_strf("%s raw data\n\npath: %s\n", w->r->run, w->folder);
}

int wb_work_prepare(struct wb_work *w, struct wb_err *err)
{
    int64_t ended = w->r->started_ms;
    const char *text = wb_json_str_or(w->r->summary, "ended_at", NULL);
    int rc = check_record(w->s, w->r, err);

    if (rc < 0)
        return rc;
    if (!wb_day_text(w->r->started_ms, w->date) ||
        (text && (wb_parse_time(text, &ended, err) < 0 || ended < 0)))
        return wb_fail(err, WB_INVALID, "%s: the run's start or end is not a usable time",
                       w->r->run);
    w->time_s = ended / 1000;
    w->folder = wb_strf("runs/%.4s/%.2s/%.2s/%s", w->date, w->date + 5, w->date + 8, w->r->run);
    w->raw_folder = wb_strf("%.2s/%s", w->date + 8, w->r->run);
    w->ref = wb_strf(WB_RECORDS "%s", w->s->controller);
    w->raw_ref = wb_strf(WB_RAW "%s/%.7s", w->s->controller, w->date);
    w->quarantine = wb_quarantine_path(w->s->path);
    prepare_messages(w);
    rc = prepare_raw(w, err);
    return rc < 0 ? rc : prepare_docs(w, err);
}

void wb_work_release(struct wb_work *w)
{
    for (size_t i = 0; i < WB_NDOCS; i++)
        wb_buf_release(&w->docs[i]);
    for (size_t i = 0; w->raw && i < w->r->nraw; i++)
        wb_buf_release(&w->raw[i]);
    wb_git_batch_free(w->batch);
    free(w->raw);
    free(w->folder);
    free(w->raw_folder);
    free(w->ref);
    free(w->raw_ref);
    free(w->message);
    free(w->raw_message);
    free(w->quarantine);
}
