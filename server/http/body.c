/* What handlers need of a request beyond its address: bodies and cursors. */
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

wb_json *wb_request_object(struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;

    if (q->body.len == 0)
        return wb_json_object();
    if (!is_json(q->headers[WB_H_CONTENT_TYPE])) {
        wb_answer_problem(q, a, 415, "media-type", "the body must be application/json", NULL);
        return NULL;
    }
    if (wb_json_parse(q->body.data, q->body.len, &doc, &err) < 0) {
        wb_answer_problem(q, a, 400, "syntax", err.root, NULL);
        return NULL;
    }
    if (wb_json_type(doc) != WB_JSON_OBJECT) {
        wb_json_free(doc);
        wb_answer_problem(q, a, 422, "validation", "the body must be a JSON object", NULL);
        return NULL;
    }
    return doc;
}

static void add_error(wb_json *errors, const char *key, const char *code, const char *message)
{
    wb_json *o = wb_json_object();
    WB_AUTO_FREE char *pointer = wb_strf("/%s", key);

    wb_json_set_str(o, "pointer", pointer);
    wb_json_set_str(o, "code", code);
    wb_json_set_str(o, "message", message);
    wb_json_push(errors, o);
}

bool wb_request_keys(const struct wb_request *q, struct wb_answer *a, const wb_json *body,
                     const char *const *keys)
{
    wb_json *errors = wb_json_array();

    for (void *it = wb_json_first(body); it; it = wb_json_next(body, it)) {
        const char *key = wb_json_iter_key(it);
        const char *const *k = keys;

        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k && wb_json_len(errors) < 50) {
            WB_AUTO_FREE char *hint = wb_did_you_mean(key, keys);
            WB_AUTO_FREE char *allowed = wb_word_list(keys);
            WB_AUTO_FREE char *text =
                wb_strf("there is no key '%.60s' here%s; allowed: %s", key, hint, allowed);

            add_error(errors, key, "unknown-key", text);
        }
    }
    if (wb_json_len(errors) == 0) {
        wb_json_free(errors);
        return true;
    }
    wb_answer_problem(q, a, 422, "validation", "the body has keys that are not known", errors);
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
