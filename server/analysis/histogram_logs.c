/* Counting the entries of HDR logs by tag and time. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/hdr_log.h"
#include "server/analysis/histogram_parts.h"
#include "server/base/mem.h"

#define BAD_LINES_SHOWN 100
#define COUNTERS_MAX (32u << 20) /* of all tags together */

static void add_bad_line(struct wb_histogram *q, size_t file, size_t line, const struct wb_err *why)
{
    wb_json *o;
    char text[2 * WB_ERR_TEXT_MAX];

    if (q->bad++ >= BAD_LINES_SHOWN)
        return;
    o = wb_json_object();
    if (wb_json_get(q->in, "logs") != NULL)
        wb_json_set_int(o, "log", (int64_t)file);
    wb_json_set_int(o, "line", (int64_t)line);
    wb_json_set_str(o, "message", wb_err_text(why, text, sizeof(text)));
    wb_json_push(q->bad_lines, o);
}

static bool same_tag(const struct wb_tagged *t, const struct wb_hdr_entry *e)
{
    if (t->tag == NULL || e->tag == NULL)
        return t->tag == NULL && e->tag == NULL;
    return strlen(t->tag) == e->tag_n && memcmp(t->tag, e->tag, e->tag_n) == 0;
}

/* NULL when there are too many. */
static struct wb_tagged *tag_of(struct wb_histogram *q, const struct wb_hdr_entry *e)
{
    for (size_t i = 0; i < q->ntags; i++)
        if (same_tag(&q->tags[i], e))
            return &q->tags[i];
    if (q->ntags == WB_HISTOGRAM_TAGS)
        return NULL;
    q->tags[q->ntags] = (struct wb_tagged){
        .tag = e->tag != NULL ? wb_strndup(e->tag, e->tag_n) : NULL, .sum = {.log = true}};
    return &q->tags[q->ntags++];
}

static bool is_wanted(const struct wb_histogram *q, const struct wb_hdr_entry *e)
{
    if (e->from_s < q->from_s || e->from_s >= q->to_s)
        return false;
    if (q->tag == NULL)
        return true;
    if (*q->tag == '\0')
        return e->tag == NULL;
    return e->tag != NULL && strlen(q->tag) == e->tag_n && memcmp(q->tag, e->tag, e->tag_n) == 0;
}

static int add_entry(struct wb_histogram *q, const struct wb_hdr_entry *e, struct wb_hist_reader *r,
                     struct wb_err *why)
{
    struct wb_tagged *t = tag_of(q, e);
    int rc;

    if (t == NULL)
        return wb_fail(why, WB_LIMIT, "more than %d different tags", WB_HISTOGRAM_TAGS);
    if (!is_wanted(q, e))
        return 0;
    rc = wb_hist_read(r, e->text, e->n, why);
    if (rc == 0 && r->shape.ncounts > COUNTERS_MAX / q->ntags)
        rc = wb_fail(why, WB_LIMIT, "histograms of so many counters and tags");
    if (rc == 0)
        rc = wb_hist_sum_add(&t->sum, r, why);
    if (rc == 0) {
        t->entries++;
        q->entries++;
    }
    return rc;
}

static int add_log(struct wb_histogram *q, const wb_json *j, size_t file, struct wb_err *err)
{
    const char *text = wb_json_string(j);
    struct wb_hist_reader r;
    struct wb_hdr_log log;
    size_t bad = q->bad;
    int rc;

    if (text == NULL)
        return wb_fail(err, WB_INVALID, "/log: must be the text of an HDR log");
    wb_hdr_log_init(&log, text, strlen(text));
    wb_hist_reader_init(&r);
    do {
        struct wb_err why = WB_ERR_INIT;
        struct wb_hdr_entry e;
        rc = wb_hdr_log_next(&log, &e, &why);
        if (rc > 0 && add_entry(q, &e, &r, &why) < 0)
            rc = -why.code;
        if (rc < 0)
            add_bad_line(q, file, log.line, &why);
    } while (rc != 0);
    wb_hist_reader_release(&r);
    if (log.has_first && !q->has_start) {
        q->has_start = true;
        q->start_time = log.first;
    }
    if (!log.seen_log && q->bad > bad)
        return wb_fail(err, WB_INVALID, "line 1: this is no HDR log: %s",
                       wb_json_str_or(wb_json_at(q->bad_lines, 0), "message", ""));
    return 0;
}

static int merge_tags(struct wb_histogram *q, struct wb_err *err)
{
    struct wb_hist_sum sum = {.log = true};
    int rc = 0;

    for (size_t i = 0; i < q->ntags && rc == 0; i++)
        rc = wb_hist_sum_join(&sum, &q->tags[i].sum, err);
    if (rc == 0) {
        wb_hist_sum_make(&sum, &q->h);
        q->made = true;
    }
    wb_hist_sum_release(&sum);
    return rc;
}

int wb_histogram_logs(struct wb_histogram *q, struct wb_err *err)
{
    const wb_json *logs = wb_json_get(q->in, "logs");

    q->tags = wb_calloc(WB_HISTOGRAM_TAGS, sizeof(*q->tags));
    if (wb_json_get(q->in, "log") != NULL) {
        if (add_log(q, wb_json_get(q->in, "log"), 0, err) < 0)
            return -WB_INVALID;
    } else if (wb_json_type(logs) != WB_JSON_ARRAY) {
        return wb_fail(err, WB_INVALID, "/logs: must be a list of texts");
    }
    for (size_t i = 0; i < wb_json_len(logs); i++)
        if (add_log(q, wb_json_at(logs, i), i, err) < 0)
            return -WB_INVALID;
    return merge_tags(q, err);
}
