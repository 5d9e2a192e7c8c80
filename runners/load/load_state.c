#include "runners/load/load_state.h"

#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define FILE_MAX 65536

/* What makes the rows what they are, and whose they are. */
static wb_json *identity(const struct wb_load_job *job)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "target", job->target);
    wb_json_set_int(o, "seed", job->seed);
    wb_json_set_int(o, "keys", job->keys);
    wb_json_set_int(o, "key_bytes", job->key_bytes);
    wb_json_set_int(o, "value_bytes", job->value_bytes);
    wb_json_set_str(o, "value_size", job->size_text ? job->size_text : "");
    wb_json_set_str(o, "value_content", job->content_text ? job->content_text : "random");
    wb_json_set_int(o, "part", job->part + 1);
    wb_json_set_int(o, "parts", job->parts);
    wb_json_set_int(o, "threads", job->threads);
    return o;
}

static char *text_of(const wb_json *v)
{
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    char *text;

    if (!v)
        return wb_strdup("nothing");
    wb_json_line(v, &b);
    text = wb_strdup(wb_buf_str(&b));
    wb_buf_release(&b);
    return text;
}

static int check_identity(const struct wb_load_job *job, const wb_json *doc, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *want = identity(job);
    int rc = 0;

    for (void *it = wb_json_first(want); it && rc == 0; it = wb_json_next(want, it)) {
        const char *key = wb_json_iter_key(it);
        WB_AUTO_FREE char *a = text_of(wb_json_iter_value(it));
        WB_AUTO_FREE char *b = text_of(wb_json_get(doc, key));
        if (strcmp(a, b) != 0)
            rc = wb_fail(err, WB_INVALID,
                         "load-state %s is of another data load: %s is %s there and %s here; use "
                         "the same, another file, or remove it",
                         job->load_state, key, b, a);
    }
    return rc;
}

int wb_load_state_read(const struct wb_load_job *job, uint64_t *written, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    const wb_json *list;
    int rc;

    if (!wb_path_exists(job->load_state))
        return 0;
    rc = wb_json_read_file(job->load_state, FILE_MAX, &doc, err);
    if (rc == 0)
        rc = check_identity(job, doc, err);
    if (rc < 0)
        return rc;
    list = wb_json_get(doc, "written");
    for (int64_t i = 0; i < job->threads; i++) {
        const wb_json *v = wb_json_at(list, (size_t)i);
        double key = wb_json_number(v, -1);
        if (wb_json_type(v) != WB_JSON_INT || key < 0 || key > (double)job->keys)
            return wb_fail(err, WB_INVALID, "load-state %s: written is not %lld keys up to %lld",
                           job->load_state, (long long)job->threads, (long long)job->keys);
    }
    for (int64_t i = 0; i < job->threads; i++)
        written[i] = (uint64_t)wb_json_number(wb_json_at(list, (size_t)i), 0);
    return 0;
}

int wb_load_state_write(const struct wb_load_job *job, const uint64_t *written, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = identity(job);
    wb_json *list = wb_json_array();
    struct wb_buf text = WB_BUF_INIT(FILE_MAX);
    int rc;

    for (int64_t i = 0; i < job->threads; i++)
        wb_json_push(list, wb_json_int((int64_t)written[i]));
    wb_json_set(doc, "written", list);
    wb_json_pretty(doc, &text);
    rc = wb_buf_check(&text, "load-state", err);
    if (rc == 0)
        rc = wb_file_write(job->load_state, wb_buf_str(&text), text.len, 0644, err);
    wb_buf_release(&text);
    return rc;
}
