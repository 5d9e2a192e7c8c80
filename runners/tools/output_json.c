#include "runners/tools/output_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_MAX (64u << 20)
/* Integers and reals that JSON readers refuse or that stand for "none". */
#define NONE_FROM 9.2e18

/* Where a line begins that starts with { or [; n when there is none. */
static size_t document_start(const char *text, size_t n, size_t from)
{
    bool fresh = true;

    for (size_t i = from; i < n; i++) {
        if (fresh && (text[i] == '{' || text[i] == '['))
            return i;
        if (text[i] == '\n' || text[i] == '\r')
            fresh = true;
        else if (text[i] != ' ' && text[i] != '\t')
            fresh = false;
    }
    return n;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.' || c == '_';
}

/* Copies a word or number that stands outside of strings: what JSON does not have becomes null. */
static size_t copy_word(const char *text, size_t n, size_t i, struct wb_buf *out)
{
    size_t end = i;
    WB_AUTO_FREE char *word = NULL;
    char *rest;
    double v;

    while (end < n && is_word(text[end]))
        end++;
    if (end < n && text[end] == '(') { /* nan(0x8000), -nan(ind) */
        size_t close = end;

        while (close < n && close < end + 24 && text[close] != ')' && text[close] != '\n')
            close++;
        if (close < n && text[close] == ')')
            end = close + 1;
    }
    word = wb_strndup(text + i, end - i);
    v = strtod(word, &rest);
    if (wb_figure_is_none(word) || (*rest == '\0' && !(fabs(v) < NONE_FROM)))
        wb_buf_adds(out, "null");
    else
        wb_buf_adds(out, word);
    return end;
}

/* Copies one document from text[i] on; returns where it ends, or n + 1 when it does not. */
static size_t copy_document(const char *text, size_t n, size_t i, struct wb_buf *out)
{
    size_t depth = 0;
    bool string = false;

    while (i < n) {
        char c = text[i];

        if (string) {
            wb_buf_addc(out, c);
            if (c == '\\' && i + 1 < n)
                wb_buf_addc(out, text[++i]);
            else if (c == '"')
                string = false;
            i++;
            continue;
        }
        if (is_word(c)) {
            i = copy_word(text, n, i, out);
            continue;
        }
        wb_buf_addc(out, c);
        i++;
        string = c == '"';
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0)
            return i;
    }
    return n + 1;
}

int wb_output_json(const char *text, size_t n, wb_json **out, struct wb_err *err)
{
    struct wb_buf clean = WB_BUF_INIT(DOCUMENT_MAX);
    size_t from = document_start(text, n, 0), end;
    int rc;

    if (from == n)
        return wb_fail(err, WB_PROTOCOL, "no JSON document: no line begins with { or [");
    end = copy_document(text, n, from, &clean);
    if (end > n)
        rc = wb_fail(err, WB_PROTOCOL, "the JSON document has no end: it was cut off");
    else if (document_start(text, n, end) < n)
        rc = wb_fail(err, WB_PROTOCOL, "there are several JSON documents");
    else
        rc = wb_buf_check(&clean, "the JSON document", err);
    if (rc == 0) {
        rc = wb_json_parse(wb_buf_str(&clean), clean.len, out, err);
        if (rc < 0 && err)
            err->code = WB_PROTOCOL;
    }
    wb_buf_release(&clean);
    return rc < 0 ? (err ? -err->code : -WB_PROTOCOL) : 0;
}

bool wb_json_pointer_ok(const char *pointer)
{
    if (*pointer && *pointer != '/')
        return false;
    for (const char *p = pointer; *p; p++)
        if (*p == '~' && p[1] != '0' && p[1] != '1')
            return false;
    return true;
}

/* One part of a pointer without its escapes; caller frees. */
static char *part_text(const char *part, size_t n)
{
    char *out = wb_calloc(n + 1, 1);
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        if (part[i] == '~' && i + 1 < n)
            out[k++] = part[++i] == '1' ? '/' : '~';
        else
            out[k++] = part[i];
    }
    return out;
}

const wb_json *wb_json_pointer(const wb_json *j, const char *pointer)
{
    while (j && *pointer == '/') {
        size_t n = strcspn(pointer + 1, "/");
        WB_AUTO_FREE char *part = part_text(pointer + 1, n);

        if (wb_json_type(j) == WB_JSON_ARRAY) {
            char *rest;
            unsigned long i = strtoul(part, &rest, 10);

            j = isdigit((unsigned char)*part) && *rest == '\0' ? wb_json_at(j, i) : NULL;
        } else {
            j = wb_json_get(j, part);
        }
        pointer += n + 1;
    }
    return j;
}

char *wb_json_figure_text(const wb_json *j)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    switch (wb_json_type(j)) {
    case WB_JSON_STRING:
        return wb_strdup(wb_json_string(j));
    case WB_JSON_INT:
    case WB_JSON_REAL:
    case WB_JSON_NULL:
        wb_json_line(j, &b);
        return wb_buf_take(&b);
    default:
        return NULL;
    }
}
