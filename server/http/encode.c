#include "server/http/encode.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/deflate.h"
#include "server/base/units.h"

#define LEVEL 4
#define ZLIB_HEAD 2 /* bytes before and after what gzip and zlib have in common */
#define ZLIB_TAIL 4

/* The weight of one element of such a list, "text/html;level=1;q=0.5": 1 unless it says so; one
 * that cannot be read counts as 0. */
static double weight(const char *s, size_t n)
{
    const char *end = s + n;

    for (const char *p = memchr(s, ';', n); p && p < end;
         p = memchr(p + 1, ';', (size_t)(end - p - 1))) {
        const char *q = p + 1;
        double v = 0;

        while (q < end && (*q == ' ' || *q == '\t'))
            q++;
        if (end - q >= 2 && (*q == 'q' || *q == 'Q') && q[1] == '=') {
            size_t len = strcspn(q + 2, "; ,\t");
            WB_AUTO_FREE char *text =
                wb_strndup(q + 2, len < (size_t)(end - q - 2) ? len : (size_t)(end - q - 2));

            return wb_parse_real(text, 0, 1, &v, NULL) == 0 ? v : 0;
        }
    }
    return 1;
}

/* How well a media range fits a type: 3 exactly, 2 by its first part, 1 as anything, 0 not. */
static int fit(const char *range, size_t n, const char *type)
{
    const char *slash = strchr(type, '/');
    size_t first = (size_t)(slash - type) + 1;

    if (n == strlen(type) && !strncasecmp(range, type, n))
        return 3;
    if (n == first + 1 && range[first] == '*' && !strncasecmp(range, type, first))
        return 2;
    return n == 3 && !strncmp(range, "*/*", 3);
}

bool wb_accepts_type(const char *accept, const char *type)
{
    int best = 0;
    double q = 0;

    if (!accept || !*accept)
        return true;
    for (const char *s = accept; *s;) {
        size_t n, name;
        int how;

        s += strspn(s, " \t,");
        n = strcspn(s, ",");
        name = strcspn(s, ";, \t");
        how = fit(s, name, type);
        if (how > best) {
            best = how;
            q = weight(s, n);
        }
        s += n;
    }
    return best > 0 && q > 0;
}

bool wb_accepts_gzip(const char *codings)
{
    bool named = false, any = false;

    for (const char *s = codings; s && *s;) {
        size_t n, name;

        s += strspn(s, " \t,");
        n = strcspn(s, ",");
        name = strcspn(s, ";, \t");
        if ((name == 4 && !strncasecmp(s, "gzip", 4)) ||
            (name == 6 && !strncasecmp(s, "x-gzip", 6)))
            return weight(s, n) > 0;
        if (name == 1 && *s == '*') {
            named = true;
            any = weight(s, n) > 0;
        }
        s += n;
    }
    return named && any;
}

static void add_le32(struct wb_buf *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        wb_buf_addc(out, (char)(v >> (8 * i) & 0xff));
}

void wb_gzip(const void *data, size_t n, struct wb_buf *out)
{
    static const char head[] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, '\xff'};
    struct wb_buf z = WB_BUF_INIT(n + n / 1000 + 1024);

    wb_deflate(data, n, LEVEL, &z);
    if (z.failed || z.len < ZLIB_HEAD + ZLIB_TAIL) {
        out->failed = true;
    } else {
        wb_buf_add(out, head, sizeof(head));
        wb_buf_add(out, z.data + ZLIB_HEAD, z.len - ZLIB_HEAD - ZLIB_TAIL);
        add_le32(out, wb_crc32(0, data, n));
        add_le32(out, (uint32_t)n);
    }
    wb_buf_release(&z);
}

/* Text of some kind; raw files are sent as they are, so that their ranges stay simple. */
static bool is_text(const struct wb_answer *a)
{
    static const char *const types[] = {
        "application/json", "text/html",           "text/javascript",        "text/css",
        "image/svg",        "text/plain; version", "application/openmetrics"};

    for (size_t i = 0; a->type && i < WB_LEN(types); i++)
        if (!strncmp(a->type, types[i], strlen(types[i])))
            return true;
    return false;
}

static char **find_header(struct wb_answer *a, const char *name)
{
    for (size_t i = 0; i < a->nheaders; i++)
        if (!strcmp(a->headers[i].name, name))
            return &a->headers[i].value;
    return NULL;
}

void wb_answer_encode(const struct wb_request *q, struct wb_answer *a)
{
    struct wb_buf packed = WB_BUF_INIT(a->body.len);
    char **tag = find_header(a, "ETag");

    if ((a->status != 200 && a->status != 304) || a->stream || !is_text(a) ||
        find_header(a, "Accept-Ranges"))
        return;
    wb_answer_header(a, "Vary", "Accept-Encoding");
    if (a->status != 200 || a->body.len < WB_GZIP_MIN ||
        !wb_accepts_gzip(q->headers[WB_H_ACCEPT_ENCODING]))
        return;
    wb_gzip(a->body.data, a->body.len, &packed);
    if (packed.failed) { /* it would not be smaller */
        wb_buf_release(&packed);
        return;
    }
    wb_buf_release(&a->body);
    a->body = packed;
    wb_answer_header(a, "Content-Encoding", "gzip");
    if (tag && strlen(*tag) > 2) {
        char *own = wb_strf("%.*s" WB_GZIP_TAG "\"", (int)strlen(*tag) - 1, *tag);

        free(*tag);
        *tag = own;
    }
}
