#include "server/http/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/digest.h"
#include "server/base/problems.h"
#include "server/base/units.h"

static const char *const header_names[WB_HEADERS] = {
    [WB_H_ACCEPT] = "Accept",
    [WB_H_ACCEPT_ENCODING] = "Accept-Encoding",
    [WB_H_AUTHORIZATION] = "Authorization",
    [WB_H_CONTENT_TYPE] = "Content-Type",
    [WB_H_COOKIE] = "Cookie",
    [WB_H_CSRF] = "X-WB-CSRF",
    [WB_H_HOST] = "Host",
    [WB_H_IDEMPOTENCY_KEY] = "Idempotency-Key",
    [WB_H_IF_MATCH] = "If-Match",
    [WB_H_IF_NONE_MATCH] = "If-None-Match",
    [WB_H_IF_RANGE] = "If-Range",
    [WB_H_LAST_EVENT_ID] = "Last-Event-ID",
    [WB_H_ORIGIN] = "Origin",
    [WB_H_RANGE] = "Range",
};

const char *wb_header_name(enum wb_header h)
{
    return header_names[h];
}

/* ---- target ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One part, decoded. plus: '+' is a space, as forms send it. */
static int decode(const char *s, size_t n, bool plus, char **out, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(WB_HTTP_TARGET_MAX);
    WB_AUTO_JSON wb_json *text = NULL;

    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)s[i];

        if (c == '%') {
            int hi = i + 1 < n ? hex_digit(s[i + 1]) : -1,
                lo = i + 2 < n ? hex_digit(s[i + 2]) : -1;

            if (hi < 0 || lo < 0) {
                wb_buf_release(&b);
                return wb_fail(err, WB_INVALID, "the address has a '%%' without two hex digits");
            }
            c = hi * 16 + lo;
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f) {
            wb_buf_release(&b);
            return wb_fail(err, WB_INVALID, "the address has a control character");
        }
        wb_buf_addc(&b, (char)c);
    }
    text = wb_json_strn(wb_buf_str(&b), b.len);
    if (strcmp(wb_json_string(text), wb_buf_str(&b)) != 0) {
        wb_buf_release(&b);
        return wb_fail(err, WB_INVALID, "the address is not UTF-8");
    }
    *out = wb_strdup(wb_buf_str(&b));
    wb_buf_release(&b);
    return 0;
}

static int read_path(struct wb_request *q, const char *path, size_t n, struct wb_err *err)
{
    struct wb_buf whole = WB_BUF_INIT(WB_HTTP_TARGET_MAX);
    size_t at = 1;
    int rc = 0;

    if (n == 0 || path[0] != '/')
        return wb_fail(err, WB_INVALID, "the address must begin with a slash");
    while (rc == 0 && at < n) {
        const char *slash = memchr(path + at, '/', n - at);
        size_t end = slash ? (size_t)(slash - path) : n;
        char **part = &q->segments[q->nsegments];

        if (q->nsegments == WB_HTTP_SEGMENTS_MAX)
            rc = wb_fail(err, WB_INVALID, "the address has more than %d parts",
                         WB_HTTP_SEGMENTS_MAX);
        else if (end == at)
            rc = wb_fail(err, WB_INVALID, "the address has an empty part");
        if (rc == 0)
            rc = decode(path + at, end - at, false, part, err);
        if (rc < 0)
            break;
        q->nsegments++;
        if (strchr(*part, '/') || !strcmp(*part, ".") || !strcmp(*part, ".."))
            rc = wb_fail(err, WB_INVALID, "'%.40s' cannot be a part of an address", *part);
        wb_buf_addc(&whole, '/');
        wb_buf_adds(&whole, *part);
        at = end + 1;
    }
    if (rc == 0)
        q->path = wb_strdup(whole.len ? whole.data : "/");
    wb_buf_release(&whole);
    return rc;
}

static int read_query(struct wb_request *q, const char *s, struct wb_err *err)
{
    int rc = 0;

    while (rc == 0 && *s) {
        size_t n = strcspn(s, "&"), key = strcspn(s, "=&");

        if (q->nquery == WB_HTTP_QUERY_MAX)
            return wb_fail(err, WB_INVALID, "the address has more than %d query values",
                           WB_HTTP_QUERY_MAX);
        if (n) {
            rc = decode(s, key, true, &q->query[q->nquery].key, err);
            if (rc == 0)
                rc = decode(key < n ? s + key + 1 : s + n, key < n ? n - key - 1 : 0, true,
                            &q->query[q->nquery].value, err);
            q->nquery++;
        }
        s += n + (s[n] == '&');
    }
    return rc;
}

int wb_request_target(struct wb_request *q, const char *target, struct wb_err *err)
{
    size_t n = strlen(target), path = strcspn(target, "?");
    int rc;

    if (!strcmp(target, "*")) { /* OPTIONS of the whole server */
        q->path = wb_strdup(target);
        return 0;
    }
    if (n > WB_HTTP_TARGET_MAX)
        return wb_fail(err, WB_LIMIT, "the address is longer than %d bytes", WB_HTTP_TARGET_MAX);
    if (memchr(target, '#', n))
        return wb_fail(err, WB_INVALID, "the address has a fragment");
    rc = read_path(q, target, path, err);
    return rc < 0 || path == n ? rc : read_query(q, target + path + 1, err);
}

const char *wb_request_query(const struct wb_request *q, const char *key)
{
    for (size_t i = q->nquery; i > 0; i--)
        if (!strcmp(q->query[i - 1].key, key))
            return q->query[i - 1].value;
    return NULL;
}

int wb_request_int(const struct wb_request *q, const char *key, int64_t lo, int64_t hi,
                   int64_t dflt, int64_t *out, struct wb_err *err)
{
    const char *v = wb_request_query(q, key);

    *out = dflt;
    if (!v)
        return 0;
    return wb_parse_int(v, lo, hi, out, err) < 0 ? wb_wrap(err, "query value %s", key) : 0;
}

const char *wb_request_cookie(const struct wb_request *q, const char *name, size_t *n)
{
    const char *s = q->headers[WB_H_COOKIE];
    size_t length = strlen(name);

    while (s && *s) {
        s += strspn(s, "; ");
        if (!strncmp(s, name, length) && s[length] == '=') {
            *n = strcspn(s + length + 1, ";");
            return s + length + 1;
        }
        s += strcspn(s, ";");
    }
    return NULL;
}

void wb_request_release(struct wb_request *q)
{
    free(q->method);
    free(q->path);
    for (size_t i = 0; i < WB_HTTP_SEGMENTS_MAX; i++)
        free(q->segments[i]);
    for (size_t i = 0; i < q->nquery; i++) {
        free(q->query[i].key);
        free(q->query[i].value);
    }
    for (size_t i = 0; i < WB_HEADERS; i++)
        free(q->headers[i]);
    wb_buf_release(&q->body);
    wb_token_release(&q->token);
    *q = (struct wb_request){0};
}

int wb_range_read(const char *text, int64_t n, int64_t *from, int64_t *to)
{
    WB_AUTO_FREE char *copy = NULL;
    char *dash;
    int64_t a = 0, b = n - 1;

    if (!text || strncmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return 0;
    copy = wb_strdup(text + 6);
    dash = strchr(copy, '-');
    if (!dash)
        return 0;
    *dash = '\0';
    if ((*copy && wb_parse_int(copy, 0, INT64_MAX, &a, NULL) < 0) ||
        (dash[1] && wb_parse_int(dash + 1, 0, INT64_MAX, &b, NULL) < 0) || (!*copy && !dash[1]))
        return 0;
    if (!*copy) { /* the last b bytes */
        a = b < n ? n - b : 0;
        if (b == 0)
            return -1;
        b = n - 1;
    }
    if (b >= n)
        b = n - 1;
    if (a >= n)
        return -1;
    if (a > b)
        return 0;
    *from = a;
    *to = b;
    return 1;
}

/* ---- answer ---- */

void wb_answer_header(struct wb_answer *a, const char *name, const char *value)
{
    char *copy = wb_strdup(value);

    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    if (a->nheaders == WB_LEN(a->headers)) { /* a handler with more is a bug; nothing is lost */
        free(copy);
        return;
    }
    a->headers[a->nheaders].name = name;
    a->headers[a->nheaders++].value = copy;
}

/* How many bytes of s are the tag: itself, or that of its compressed form. 0: it is another. */
static size_t same_tag(const char *s, const char *tag)
{
    size_t n = strlen(tag) - 1; /* without the closing quote */
    size_t end;

    if (strncmp(s, tag, n) != 0)
        return 0;
    end = n + (!strncmp(s + n, WB_GZIP_TAG, strlen(WB_GZIP_TAG)) ? strlen(WB_GZIP_TAG) : 0);
    return s[end] == '"' && strchr(" ,", s[end + 1]) ? end + 1 : 0;
}

bool wb_tag_listed(const char *sent, const char *tag, bool weak)
{

    for (const char *s = sent; s && *s;) {
        bool is_weak;

        s += strspn(s, " ,");
        is_weak = !strncmp(s, "W/", 2);
        if (is_weak)
            s += 2;
        if (*s == '*' || ((weak || !is_weak) && same_tag(s, tag)))
            return true;
        s += strcspn(s, ",");
    }
    return false;
}

bool wb_request_reads(const struct wb_request *q)
{
    return q->method && (!strcmp(q->method, "GET") || !strcmp(q->method, "HEAD"));
}

bool wb_answer_tag(const struct wb_request *q, struct wb_answer *a, const char *tag)
{
    /* RFC 9110, 13.1.2: 304 belongs to reading alone */
    const char *sent = wb_request_reads(q) ? q->headers[WB_H_IF_NONE_MATCH] : NULL;
    WB_AUTO_FREE char *packed = wb_strf("%.*s" WB_GZIP_TAG "\"", (int)strlen(tag) - 1, tag);

    if (!wb_tag_listed(sent, tag, true)) {
        wb_answer_header(a, "ETag", tag);
        return false;
    }
    /* The one that the client has is still right. */
    wb_answer_header(a, "ETag", strstr(sent, packed) ? packed : tag);
    a->status = 304;
    return true;
}

static bool has_tag(const struct wb_answer *a)
{
    for (size_t i = 0; i < a->nheaders; i++)
        if (!strcmp(a->headers[i].name, "ETag"))
            return true;
    return false;
}

void wb_answer_json(const struct wb_request *q, struct wb_answer *a, int status, wb_json *j)
{
    char hex[WB_SHA256_HEX];
    WB_AUTO_FREE char *tag = NULL;

    a->status = status;
    a->type = "application/json";
    a->body = (struct wb_buf)WB_BUF_INIT(WB_HTTP_ANSWER_MAX);
    wb_json_line(j, &a->body);
    wb_buf_addc(&a->body, '\n');
    wb_json_free(j);
    if (a->body.failed) {
        wb_buf_release(&a->body);
        wb_answer_problem(q, a, 503, "temporary-reduced-capacity",
                          "the answer would be larger than 64 MiB: ask for less of it", NULL);
        return;
    }
    if (status != 200 || has_tag(a))
        return;
    wb_sha256_of(a->body.data, a->body.len, hex);
    tag = wb_strf("\"%.32s\"", hex);
    if (wb_answer_tag(q, a, tag))
        wb_buf_release(&a->body);
}

static void escape(struct wb_buf *b, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            strchr("-._~", c)) {
            wb_buf_addc(b, *s);
        } else {
            wb_buf_addc(b, '%');
            wb_buf_addc(b, hex[c >> 4]);
            wb_buf_addc(b, hex[c & 15]);
        }
    }
}

/* The address of the next page: the same query with another cursor. */
static void add_link(const struct wb_request *q, struct wb_answer *a, const char *next)
{
    struct wb_buf b = WB_BUF_INIT(8 * WB_HTTP_TARGET_MAX);

    wb_buf_addf(&b, "<%s?", q->path);
    for (size_t i = 0; i < q->nquery; i++) {
        if (!strcmp(q->query[i].key, "cursor"))
            continue;
        escape(&b, q->query[i].key);
        wb_buf_addc(&b, '=');
        escape(&b, q->query[i].value);
        wb_buf_addc(&b, '&');
    }
    wb_buf_adds(&b, "cursor=");
    escape(&b, next);
    wb_buf_adds(&b, ">; rel=\"next\"");
    if (!b.failed)
        wb_answer_header(a, "Link", b.data);
    wb_buf_release(&b);
}

void wb_answer_list(const struct wb_request *q, struct wb_answer *a, wb_json *items, char *next)
{
    wb_json *o = wb_json_object();

    wb_json_set(o, "items", items);
    wb_json_set_str(o, "next", next);
    if (next)
        add_link(q, a, next);
    free(next);
    wb_answer_json(q, a, 200, o);
}

bool wb_answer_may_be_refused(const struct wb_request *q, const struct wb_answer *a)
{
    return wb_request_reads(q) && a->body.len >= WB_HTTP_SMALL_ANSWER;
}

void wb_answer_release(struct wb_answer *a)
{
    wb_buf_release(&a->body);
    if (a->has_file)
        (void)close(a->fd);
    for (size_t i = 0; i < a->nheaders; i++)
        free(a->headers[i].value);
    wb_strv_release(&a->topics);
    *a = (struct wb_answer){0};
}

/* ---- problems ---- */

static const char *title_of(int status)
{
    static const struct {
        int status;
        const char *title;
    } rows[] = {
        {400, "The request is wrong"},
        {401, "Who asks is not known"},
        {403, "That is not allowed"},
        {404, "There is no such thing"},
        {405, "That cannot be done here"},
        {406, "There is no such form of it"},
        {409, "It is in another state"},
        {410, "It is no longer there"},
        {412, "It was changed meanwhile"},
        {413, "The request is too large"},
        {414, "The address is too long"},
        {415, "That kind of content is not taken"},
        {416, "There is no such part"},
        {421, "This server has another name"},
        {422, "What was sent is not valid"},
        {428, "The request must say what it has read"},
        {429, "Too many requests"},
        {431, "The headers are too large"},
        {503, "Not now"},
        {505, "That version of HTTP is not spoken"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].title;
    return "Something failed here";
}

void wb_answer_problem(const struct wb_request *q, struct wb_answer *a, int status,
                       const char *code, const char *detail, wb_json *errors)
{
    wb_json *o = wb_json_object();
    WB_AUTO_FREE char *type = wb_strf("/problems/%s", code);

    wb_json_set_str(o, "type", type);
    wb_json_set_str(o, "title", title_of(status));
    wb_json_set_int(o, "status", status);
    wb_json_set_str(o, "detail", detail);
    if (q->path)
        wb_json_set_str(o, "instance", q->path);
    wb_json_set_str(o, "request_id", q->id);
    if (errors)
        wb_json_set(o, "errors", errors);
    wb_answer_json(q, a, status, o);
    a->type = "application/problem+json";
}

void wb_answer_error(const struct wb_request *q, struct wb_answer *a, const struct wb_err *err)
{
    static const struct {
        int code, status;
        const char *word;
    } rows[] = {
        {WB_INVALID, 422, "validation"},
        {WB_NOT_FOUND, 404, "not-found"},
        {WB_CONFLICT, 409, "state-conflict"},
        {WB_LIMIT, 413, "payload-too-large"},
        {WB_UNAVAILABLE, 503, "store-unavailable"},
        {WB_TIMEOUT, 503, "temporary-reduced-capacity"},
    };
    char text[2 * WB_ERR_TEXT_MAX];

    (void)wb_err_text(err, text, sizeof(text));
    if (err->code == WB_CONFLICT && err->sys == EAGAIN) { /* somebody else writes just now */
        wb_answer_header(a, "Retry-After", "1");
        wb_answer_problem(q, a, 503, "temporary-reduced-capacity", text, NULL);
        return;
    }
    for (size_t i = 0; i < WB_LEN(rows); i++)
        if (rows[i].code == err->code) {
            wb_answer_problem(q, a, rows[i].status, rows[i].word, text, NULL);
            return;
        }
    wb_answer_problem(q, a, 500, wb_code_name(err->code), text, NULL);
}
