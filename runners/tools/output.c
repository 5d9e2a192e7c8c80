#include "runners/tools/output_parts.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/units.h"

#define LINE_MAX_BYTES (16u << 10)
#define REGEX_MAX_BYTES 4096
#define GROUPS_MAX 32
/* An expression is unrolled by the C library: repeats of repeats would eat all memory. */
#define REPEATS_MAX 100000

/* ---- expressions ---- */

/* The product of the bounds of all {m,n}; -1 when there is a back reference, which would make
 * matching slow beyond measure. */
static int64_t repeats(const char *regex)
{
    int64_t product = 1;

    for (const char *p = regex; *p; p++) {
        if (*p == '\\') {
            if (p[1] >= '1' && p[1] <= '9')
                return -1;
            if (p[1])
                p++;
        } else if (*p == '{') {
            long most = 1;

            for (const char *q = p + 1; *q && *q != '}'; q++)
                if (isdigit((unsigned char)*q) && !isdigit((unsigned char)q[-1])) {
                    long v = strtol(q, NULL, 10);

                    most = v > most ? v : most;
                }
            product *= most < REPEATS_MAX ? most : REPEATS_MAX + 1;
            if (product > REPEATS_MAX)
                return product;
        }
    }
    return product;
}

static int compile(const char *regex, regex_t *re, struct wb_err *err)
{
    char why[200];
    int64_t n = repeats(regex);
    int rc;

    if (strlen(regex) > REGEX_MAX_BYTES)
        return wb_fail(err, WB_INVALID, "a regular expression has at most %d bytes",
                       REGEX_MAX_BYTES);
    if (n < 0)
        return wb_fail(err, WB_INVALID, "'%.60s': references to groups (\\1) are not allowed",
                       regex);
    if (n > REPEATS_MAX)
        return wb_fail(err, WB_INVALID, "'%.60s': the repeats {m,n} multiply to more than %d",
                       regex, REPEATS_MAX);
    rc = regcomp(re, regex, REG_EXTENDED);
    if (rc != 0) {
        (void)regerror(rc, re, why, sizeof(why));
        return wb_fail(err, WB_INVALID, "'%.60s' is no POSIX extended regular expression: %s",
                       regex, why);
    }
    if (re->re_nsub >= GROUPS_MAX) {
        regfree(re);
        return wb_fail(err, WB_INVALID, "'%.60s' has more than %d groups", regex, GROUPS_MAX - 1);
    }
    return 0;
}

int wb_tool_regex_check(const char *regex, int groups, struct wb_err *err)
{
    regex_t re = {0};
    int rc = compile(regex, &re, err);

    if (rc < 0)
        return rc;
    if (groups >= 0 && re.re_nsub != (size_t)groups)
        rc = wb_fail(err, WB_INVALID, "'%.60s' has %zu groups, needed are %d", regex, re.re_nsub,
                     groups);
    regfree(&re);
    return rc;
}

/* ---- lines ---- */

struct line {
    const char *at; /* in the text */
    size_t n;       /* without its end */
};

/* The next line from *at on; false at the end. */
static bool next_line(const char *text, size_t n, size_t *at, struct line *l)
{
    size_t from = *at, to;

    if (from >= n)
        return false;
    for (to = from; to < n && text[to] != '\n' && text[to] != '\r';)
        to++;
    *l = (struct line){.at = text + from, .n = to - from};
    *at = to + 1;
    return true;
}

/* Copies a line so that the C library can match it: ended, without NUL. */
static void flatten(const struct line *l, char out[LINE_MAX_BYTES + 1])
{
    size_t n = l->n < LINE_MAX_BYTES ? l->n : LINE_MAX_BYTES;

    for (size_t i = 0; i < n; i++)
        out[i] = l->at[i] ? l->at[i] : '?';
    out[n] = '\0';
}

/* Where the only line that matches begins; n when none does; WB_PROTOCOL when several do. */
static int only_line(const char *regex, const char *text, size_t n, size_t *begin,
                     struct wb_err *err)
{
    char flat[LINE_MAX_BYTES + 1];
    size_t at = 0, found = n;
    struct line l;
    regex_t re;
    int rc = compile(regex, &re, err);

    if (rc < 0)
        return rc;
    while (rc == 0 && next_line(text, n, &at, &l)) {
        flatten(&l, flat);
        if (regexec(&re, flat, 0, NULL, 0) != 0)
            continue;
        if (found < n)
            rc = wb_fail(err, WB_PROTOCOL,
                         "there are two final blocks, two lines match '%.60s': it started over",
                         regex);
        found = (size_t)(l.at - text);
    }
    regfree(&re);
    if (rc == 0)
        *begin = found;
    return rc;
}

/* Where the first line that matches ends; n + 1 when none does. */
static int first_line(const char *regex, const char *text, size_t n, size_t *end,
                      struct wb_err *err)
{
    char flat[LINE_MAX_BYTES + 1];
    size_t at = 0;
    struct line l;
    regex_t re;
    int rc = compile(regex, &re, err);

    if (rc < 0)
        return rc;
    *end = n + 1;
    while (*end > n && next_line(text, n, &at, &l)) {
        flatten(&l, flat);
        if (regexec(&re, flat, 0, NULL, 0) == 0)
            *end = (size_t)(l.at - text) + l.n;
    }
    regfree(&re);
    return 0;
}

static int final_block(const struct wb_tool_output *o, const char **text, size_t *n,
                       struct wb_err *err)
{
    size_t begin = 0, end = *n;
    int rc = 0;

    if (o->after) {
        rc = only_line(o->after, *text, *n, &begin, err);
        if (rc == 0 && begin == *n)
            rc = wb_fail(err, WB_PROTOCOL, "no final block: no line matches '%.60s'", o->after);
    }
    if (rc == 0 && o->until) {
        rc = first_line(o->until, *text + begin, *n - begin, &end, err);
        if (rc == 0 && end > *n - begin)
            rc = wb_fail(err, WB_PROTOCOL,
                         "the final block has no end: no line from there on matches '%.60s'",
                         o->until);
        end += begin;
    }
    if (rc < 0)
        return rc;
    *text += begin;
    *n = end - begin;
    return 0;
}

char *wb_tool_regex_first(const char *regex, const char *text, size_t n)
{
    char flat[LINE_MAX_BYTES + 1], *found = NULL;
    regmatch_t m[2];
    size_t at = 0;
    struct line l;
    regex_t re = {0};

    if (compile(regex, &re, NULL) < 0)
        return NULL;
    while (!found && next_line(text, n, &at, &l)) {
        flatten(&l, flat);
        if (regexec(&re, flat, 2, m, 0) == 0 && re.re_nsub >= 1 && m[1].rm_so >= 0)
            found = wb_strndup(flat + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so));
    }
    regfree(&re);
    return found;
}

/* ---- rules ---- */

/* The groups of one match become figures. */
static int take_groups(const struct wb_tool_rule *r, const char *flat, const regmatch_t *m,
                       struct wb_figures *f, struct wb_err *err)
{
    for (size_t i = 0; i < r->names.n; i++) {
        WB_AUTO_FREE char *text = NULL;
        struct wb_figure_name name;
        int rc;

        if (!strcmp(r->names.v[i], "-") || m[i + 1].rm_so < 0)
            continue;
        text = wb_strndup(flat + m[i + 1].rm_so, (size_t)(m[i + 1].rm_eo - m[i + 1].rm_so));
        rc = wb_figure_parse(r->names.v[i], &name, err);
        if (rc == 0)
            rc = wb_figures_put(f, &name, text, err);
        if (rc < 0)
            return wb_wrap(err, "%s", r->names.v[i]);
    }
    return 0;
}

static int read_regex(const struct wb_tool_rule *r, const char *text, size_t n,
                      struct wb_figures *f, struct wb_err *err)
{
    char flat[LINE_MAX_BYTES + 1], kept[LINE_MAX_BYTES + 1];
    regmatch_t m[GROUPS_MAX], last[GROUPS_MAX];
    size_t at = 0, matches = 0;
    struct line l;
    regex_t re;
    int rc = compile(r->text, &re, err);

    if (rc < 0)
        return rc;
    while (next_line(text, n, &at, &l)) {
        flatten(&l, flat);
        if (regexec(&re, flat, GROUPS_MAX, m, 0) != 0)
            continue;
        matches++;
        memcpy(kept, flat, strlen(flat) + 1);
        memcpy(last, m, sizeof(last));
    }
    regfree(&re);
    if (matches > 1 && !r->last)
        return wb_fail(err, WB_PROTOCOL, "%zu lines match '%.60s', and only one may", matches,
                       r->text);
    if (matches == 0)
        return r->optional
                   ? 0
                   : wb_fail(err, WB_PROTOCOL, "no final block: no line matches '%.60s'", r->text);
    return take_groups(r, kept, last, f, err);
}

static int read_pointer(const struct wb_tool_rule *r, const wb_json *doc, struct wb_figures *f,
                        struct wb_err *err)
{
    const wb_json *j = wb_json_pointer(doc, r->text);
    WB_AUTO_FREE char *text = j ? wb_json_figure_text(j) : NULL;
    struct wb_figure_name name;
    int rc = wb_figure_parse(r->names.v[0], &name, err);

    if (rc == 0 && !j)
        rc = r->optional ? 0 : wb_fail(err, WB_PROTOCOL, "the document has no '%.80s'", r->text);
    else if (rc == 0 && !text)
        rc = wb_fail(err, WB_PROTOCOL, "'%.80s' is neither number nor text", r->text);
    else if (rc == 0 && wb_figures_put(f, &name, text, err) < 0)
        return wb_wrap(err, "'%.80s'", r->text);
    return rc;
}

static int read_hdr(const struct wb_tool_rule *r, const char *text, size_t n, struct wb_figures *f,
                    struct wb_err *err)
{
    bool found = false;
    int family;
    double ns;
    int rc = wb_output_hdr_name(r->names.v[0], &family, &ns, err);

    if (rc == 0)
        rc = wb_output_hdr(text, n, r->text, family, ns, f, &found, err);
    if (rc == 0 && !found && !r->optional)
        rc = wb_fail(err, WB_PROTOCOL, "the HDR log has no interval with tag '%.60s'", r->text);
    return rc;
}

int wb_tool_output_read(const struct wb_tool_output *o, const char *text, size_t n,
                        struct wb_figures *f, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    int rc;

    if (n == 0)
        return wb_fail(err, WB_PROTOCOL, "no result: nothing was written to %s", o->from);
    rc = final_block(o, &text, &n, err);
    for (size_t i = 0; rc == 0 && i < o->nrules; i++) {
        const struct wb_tool_rule *r = &o->rules[i];

        if (r->reader == WB_READ_REGEX)
            rc = read_regex(r, text, n, f, err);
        else if (r->reader == WB_READ_HDR)
            rc = read_hdr(r, text, n, f, err);
        else if (doc || (rc = wb_output_json(text, n, &doc, err)) == 0)
            rc = read_pointer(r, doc, f, err);
    }
    return rc < 0 ? wb_wrap(err, "%s", o->from) : 0;
}

/* ---- checking the declaration ---- */

static int check_names(const struct wb_tool_rule *r, struct wb_err *err)
{
    struct wb_figure_name name;
    int family;
    double ns;

    if (r->reader == WB_READ_HDR)
        return r->names.n == 1 ? wb_output_hdr_name(r->names.v[0], &family, &ns, err)
                               : wb_fail(err, WB_INVALID, "an HDR log gives one family of times");
    if (r->reader == WB_READ_JSON && r->names.n != 1)
        return wb_fail(err, WB_INVALID, "a JSON pointer gives one figure");
    for (size_t i = 0; i < r->names.n; i++) {
        int rc = r->reader == WB_READ_REGEX && !strcmp(r->names.v[i], "-")
                     ? 0
                     : wb_figure_parse(r->names.v[i], &name, err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_rule(const struct wb_tool_rule *r, struct wb_err *err)
{
    if (r->reader == WB_READ_REGEX) {
        int rc = wb_tool_regex_check(r->text, (int)r->names.n, err);

        if (rc < 0)
            return rc;
    }
    if (r->reader == WB_READ_JSON && !wb_json_pointer_ok(r->text))
        return wb_fail(err, WB_INVALID,
                       "'%.80s' is no JSON pointer: '' or parts that begin with '/', in which ~ "
                       "is ~0 and / is ~1",
                       r->text);
    return check_names(r, err);
}

int wb_tool_output_check(const struct wb_tool_output *o, struct wb_err *err)
{
    int rc = 0;

    if (o->nrules == 0)
        return wb_fail(err, WB_INVALID, "no rule says how a figure is read");
    if (o->after)
        rc = wb_tool_regex_check(o->after, -1, err);
    if (rc == 0 && o->until)
        rc = wb_tool_regex_check(o->until, -1, err);
    for (size_t i = 0; rc == 0 && i < o->nrules; i++)
        rc = check_rule(&o->rules[i], err);
    return rc;
}

void wb_tool_output_release(struct wb_tool_output *o)
{
    for (size_t i = 0; i < o->nrules; i++) {
        free(o->rules[i].text);
        wb_strv_release(&o->rules[i].names);
    }
    free(o->rules);
    free(o->from);
    free(o->after);
    free(o->until);
    *o = (struct wb_tool_output){0};
}
