/* What handlers need of a request beyond its path: bodies, queries, cursors. */
#include <stdlib.h>
#include <string.h>

#include "server/base/digest.h"
#include "server/base/problems.h"
#include "server/http/service.h"

#define CURSOR_MAC 32 /* hex digits */

static bool is_json(const char *type)
{
    return type && !strncmp(type, "application/json", 16) && (!type[16] || strchr("; ", type[16]));
}

/* The first fault is the detail, so that it is read by who does not look further. errors is taken.
 */
static void answer_faults(const struct wb_request *q, struct wb_answer *a, int status,
                          wb_json *errors)
{
    WB_AUTO_FREE char *detail =
        wb_strdup(wb_json_str_or(wb_json_at(errors, 0), "message", "it is not valid"));

    wb_answer_problem(q, a, status, "validation", detail, errors);
}

wb_json *wb_request_object(struct wb_request *q, struct wb_answer *a, const struct wb_form *form)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL, *errors;

    if (q->body.len == 0) {
        doc = wb_json_object();
    } else if (!is_json(q->headers[WB_H_CONTENT_TYPE])) {
        wb_answer_problem(q, a, 415, "media-type", "the body must be application/json", NULL);
        return NULL;
    } else if (wb_json_parse(q->body.data, q->body.len, &doc, &err) < 0) {
        wb_answer_problem(q, a, 400, "syntax", err.root, NULL);
        return NULL;
    }
    errors = wb_json_array();
    if (wb_form_check(form, doc, errors)) {
        wb_json_free(errors);
        return doc;
    }
    wb_json_free(doc);
    answer_faults(q, a, 422, errors);
    return NULL;
}

bool wb_request_match(const struct wb_request *q, struct wb_answer *a, const char *tag)
{
    if (!q->headers[WB_H_IF_MATCH]) {
        wb_answer_problem(q, a, 428, "precondition-required",
                          "If-Match is needed: the ETag of what you have read", NULL);
        return false;
    }
    if (wb_tag_listed(q->headers[WB_H_IF_MATCH], tag, false))
        return true;
    wb_answer_header(a, "ETag", tag);
    wb_answer_problem(q, a, 412, "precondition-failed",
                      "it was changed since you have read it: read it again", NULL);
    return false;
}

/* ---- the query ---- */

static const struct wb_shape *row_of(const struct wb_shape *rows, const char *key)
{
    for (; rows && rows->key; rows++)
        if (!strcmp(rows->key, key))
            return rows;
    return NULL;
}

static char *unknown_value(const struct wb_shape *rows, const char *key)
{
    const char *names[WB_HTTP_QUERY_MAX + 1] = {NULL};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *allowed = NULL;

    for (size_t n = 0; rows && rows->key && n < WB_HTTP_QUERY_MAX; rows++)
        names[n++] = rows->key;
    hint = wb_did_you_mean(key, names);
    allowed = wb_word_list(names);
    return wb_strf("there is no query value '%.60s' here%s; %s%s", key, hint,
                   names[0] ? "allowed: " : "none is allowed", names[0] ? allowed : "");
}

static void add_query_error(wb_json *errors, const char *key, const char *code, const char *text)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "parameter", key);
    wb_json_set_str(o, "code", code);
    wb_json_set_str(o, "message", text);
    wb_json_push(errors, o);
}

static size_t count_of(const struct wb_request *q, const char *key)
{
    size_t n = 0;

    for (size_t i = 0; i < q->nquery; i++)
        n += !strcmp(q->query[i].key, key);
    return n;
}

bool wb_request_query_check(const struct wb_request *q, struct wb_answer *a,
                            const struct wb_shape *rows)
{
    wb_json *errors = wb_json_array();

    for (size_t i = 0; i < q->nquery; i++) {
        const struct wb_shape *row = row_of(rows, q->query[i].key);
        size_t n = count_of(q, q->query[i].key);
        const char *code = "out-of-range";
        WB_AUTO_FREE char *fault = NULL;

        if (!row) {
            code = "unknown-key";
            fault = unknown_value(rows, q->query[i].key);
        } else if (n > (row->flags & WB_S_LIST ? row->most : 1)) {
            code = "twice";
            fault = row->flags & WB_S_LIST ? wb_strf("%s: at most %zu times", row->key, row->most)
                                           : wb_strf("%s stands there more than once", row->key);
        } else {
            fault = wb_shape_query_fault(row, q->query[i].value);
        }
        if (fault)
            add_query_error(errors, q->query[i].key, code, fault);
    }
    for (const struct wb_shape *row = rows; row && row->key; row++) {
        WB_AUTO_FREE char *text = wb_strf("%s is missing", row->key);

        if ((row->flags & WB_S_NEED) && count_of(q, row->key) == 0)
            add_query_error(errors, row->key, "missing", text);
    }
    if (wb_json_len(errors) == 0) {
        wb_json_free(errors);
        return true;
    }
    answer_faults(q, a, 400, errors);
    return false;
}

/* ---- cursors ---- */

/* Who knows no secret of this process cannot make one; so what is in it need not be checked. */
static void mac(const struct wb_service *s, const char *filter, const char *last, char *hex)
{
    struct wb_sha256 *d = wb_sha256_new();
    char whole[WB_SHA256_HEX];
    const size_t n = strlen(filter);

    wb_sha256_add(d, s->secret, sizeof(s->secret));
    wb_sha256_add(d, &n, sizeof(n));
    wb_sha256_add(d, filter, n);
    wb_sha256_add(d, last, strlen(last));
    wb_sha256_add(d, s->secret, sizeof(s->secret));
    wb_sha256_end(d, whole);
    memcpy(hex, whole, CURSOR_MAC);
    hex[CURSOR_MAC] = '\0';
}

char *wb_cursor_make(const struct wb_service *s, const char *filter, const char *last)
{
    char hex[CURSOR_MAC + 1];

    mac(s, filter, last, hex);
    return wb_strf("%s.%s", last, hex);
}

int wb_cursor_read(const struct wb_service *s, const char *filter, const char *cursor, char **last,
                   struct wb_err *err)
{
    const char *dot = strrchr(cursor, '.');
    WB_AUTO_FREE char *id = dot ? wb_strndup(cursor, (size_t)(dot - cursor)) : NULL;
    char hex[CURSOR_MAC + 1];
    unsigned char differ = 0;

    if (id && strlen(dot + 1) == CURSOR_MAC) {
        mac(s, filter, id, hex);
        for (size_t i = 0; i < CURSOR_MAC; i++)
            differ |= (unsigned char)(hex[i] ^ dot[1 + i]);
        if (!differ) {
            *last = WB_STEAL(id);
            return 0;
        }
    }
    return wb_fail(err, WB_INVALID,
                   "the cursor is none of this list: it is of another filter or of an earlier "
                   "server; begin without one");
}
