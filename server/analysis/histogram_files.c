/* Files with histograms, told apart by their content. */
#include <string.h>

#include "server/analysis/histogram.h"
#include "server/analysis/topics.h"
#include "server/base/mem.h"

enum kind { JSON, LOG, ENCODED, CSV };

static bool begins(const struct wb_topic_file *f, size_t at, const char *with)
{
    size_t n = strlen(with);

    return f->n - at >= n && memcmp(f->text + at, with, n) == 0;
}

static enum kind kind_of(const struct wb_topic_file *f)
{
    size_t at = 0, end;

    while (at < f->n && (f->text[at] == ' ' || f->text[at] == '\t' || f->text[at] == '\r' ||
                         f->text[at] == '\n'))
        at++;
    if (begins(f, at, "{") || begins(f, at, "["))
        return JSON;
    if (begins(f, at, "HIST"))
        return ENCODED;
    if (begins(f, at, "#") || begins(f, at, "\"StartTimestamp") || begins(f, at, "Tag="))
        return LOG;
    for (end = at; end < f->n && f->text[end] != '\n'; end++)
        if (begins(f, end, ",HIST"))
            return LOG;
    return CSV;
}

/* One histogram a line. Owned. */
static wb_json *encoded_lines(const struct wb_topic_file *f)
{
    wb_json *doc = wb_json_object(), *list = wb_json_array();

    for (size_t at = 0; at < f->n; at++) {
        size_t from = at;
        while (at < f->n && f->text[at] > ' ')
            at++;
        if (at > from)
            wb_json_push(list, wb_json_strn(f->text + from, at - from));
    }
    wb_json_set(doc, "base64", list);
    return doc;
}

/* Columns value and count as records. Owned. */
static wb_json *records_of(const wb_json *columns)
{
    const wb_json *values = wb_json_get(columns, "value"), *counts = wb_json_get(columns, "count");
    wb_json *doc, *records;

    if (values == NULL || counts == NULL)
        return wb_json_ref(columns);
    doc = wb_json_object();
    records = wb_json_array();
    for (size_t i = 0; i < wb_json_len(values); i++) {
        wb_json *pair = wb_json_array();
        wb_json_push(pair, wb_json_ref(wb_json_at(values, i)));
        wb_json_push(pair, wb_json_ref(wb_json_at(counts, i)));
        wb_json_push(records, pair);
    }
    wb_json_set(doc, "records", records);
    return doc;
}

static int read_one(const struct wb_topic_file *f, enum kind kind, wb_json **doc,
                    struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    bool columns;

    if (kind == ENCODED) {
        *doc = encoded_lines(f);
        return 0;
    }
    if (wb_topic_parse(f, &in, &columns, err) < 0)
        return -err->code;
    if (columns) {
        *doc = records_of(in);
    } else if (wb_json_type(in) == WB_JSON_ARRAY) {
        *doc = wb_json_object();
        wb_json_set(*doc, "base64", WB_STEAL(in));
    } else {
        *doc = WB_STEAL(in);
    }
    return 0;
}

int wb_histogram_read(const struct wb_topic_file *files, size_t n, const char *column,
                      wb_json **doc, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *logs = wb_json_array();

    (void)column;
    for (size_t i = 0; i < n; i++) {
        enum kind kind = kind_of(&files[i]);
        if (kind != LOG && n > 1)
            return wb_fail(err, WB_INVALID, "%s is no HDR log: only logs are merged",
                           files[i].path);
        if (kind != LOG)
            return read_one(&files[i], kind, doc, err);
        wb_json_push(logs, wb_json_strn(files[i].text, files[i].n));
    }
    *doc = wb_json_object();
    if (n == 1)
        wb_json_set(*doc, "log", wb_json_ref(wb_json_at(logs, 0)));
    else
        wb_json_set(*doc, "logs", WB_STEAL(logs));
    return 0;
}
