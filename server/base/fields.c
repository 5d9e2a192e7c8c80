#include "server/base/fields.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

static const char *type_phrase(enum wb_field_type t)
{
    switch (t) {
    case WB_F_TEXT:
        return "text";
    case WB_F_NAME:
        return "a name";
    case WB_F_WORD:
        return "one word";
    case WB_F_INT:
        return "a whole number";
    case WB_F_REAL:
        return "a number";
    case WB_F_BOOL:
        return "true or false";
    case WB_F_BYTES:
        return "a size such as 4KiB";
    case WB_F_DURATION:
        return "a time such as 10s";
    case WB_F_PERCENT:
        return "a share such as 20%";
    case WB_F_NODE:
    case WB_F_REFUSED:
        break;
    }
    return "a value";
}

static int64_t bound(double v, int64_t unbounded, const struct wb_field *f)
{
    if (f->min == 0 && f->max == 0)
        return unbounded;
    if (v >= 9.2e18)
        return INT64_MAX;
    return v <= -9.2e18 ? INT64_MIN : (int64_t)v;
}

bool wb_is_name(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > 63 || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") != n)
        return false;
    return s[0] != '.' && s[0] != '_' && s[0] != '-';
}

/* The scalar's text if its kind can be of this type; else adds the problem and gives NULL. */
static const char *scalar(const struct wb_field *f, const struct wb_node *n, struct wb_problems *p)
{
    bool number_ok = f->type == WB_F_INT || f->type == WB_F_REAL || f->type == WB_F_BYTES ||
                     f->type == WB_F_DURATION || f->type == WB_F_PERCENT;

    if (n->kind == WB_NODE_TEXT || (n->kind == WB_NODE_NUMBER && number_ok) ||
        (n->kind == WB_NODE_BOOL && f->type == WB_F_BOOL))
        return n->text;
    if (n->kind == WB_NODE_NULL)
        wb_problem(p, n, "wrong-type", "%s has no value; it must be %s", f->key,
                   type_phrase(f->type));
    else if (n->kind == WB_NODE_NUMBER && f->type == WB_F_TEXT)
        wb_problem(p, n, "wrong-type",
                   "%s is a number, which loses digits (3.10 becomes 3.1): write the %s as a "
                   "string, in quotes",
                   f->key, f->key);
    else if (n->kind == WB_NODE_LIST || n->kind == WB_NODE_MAP)
        wb_problem(p, n, "wrong-type", "%s must be %s, not a %s", f->key, type_phrase(f->type),
                   n->kind == WB_NODE_LIST ? "list" : "map");
    else
        wb_problem(p, n, "wrong-type", "%s must be %s, not the %s %s", f->key, type_phrase(f->type),
                   n->kind == WB_NODE_BOOL ? "boolean" : "number", n->text);
    return NULL;
}

static void read_word(const struct wb_field *f, const struct wb_node *n, const char *text, int *out,
                      struct wb_problems *p)
{
    WB_AUTO_FREE char *list = NULL;
    WB_AUTO_FREE char *guess = NULL;

    for (int i = 0; f->words[i]; i++) {
        if (strcmp(f->words[i], text) == 0) {
            *out = i;
            return;
        }
    }
    list = wb_word_list(f->words);
    guess = wb_did_you_mean(text, f->words);
    wb_problem(p, n, "unknown-value", "%s cannot be '%.100s'%s; allowed: %s", f->key, text, guess,
               list);
}

static void read_text(const struct wb_field *f, const struct wb_node *n, const char *text,
                      char **out, struct wb_problems *p)
{
    if (f->type == WB_F_NAME && !wb_is_name(text)) {
        wb_problem(p, n, "bad-name",
                   "%s '%.100s' is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter "
                   "or digit",
                   f->key, text);
        return;
    }
    if (!*text && f->required) {
        wb_problem(p, n, "missing", "%s is empty", f->key);
        return;
    }
    free(*out);
    *out = wb_strdup(text);
}

static void read_number(const struct wb_field *f, const struct wb_node *n, const char *text,
                        void *member, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t lo = bound(f->min, f->type == WB_F_INT ? INT64_MIN : 0, f);
    int64_t hi = bound(f->max, INT64_MAX, f);
    double rlo = f->min == 0 && f->max == 0 ? -1e300 : f->min;
    double rhi = f->min == 0 && f->max == 0 ? 1e300 : f->max;
    int rc = 0;

    if (f->type == WB_F_INT)
        rc = wb_parse_int(text, lo, hi, member, &err);
    else if (f->type == WB_F_BYTES)
        rc = wb_parse_bytes(text, lo, hi, member, &err);
    else if (f->type == WB_F_DURATION)
        rc = wb_parse_duration(text, lo, hi, member, &err);
    else if (f->type == WB_F_PERCENT)
        rc = wb_parse_percent(text, f->min == 0 && f->max == 0 ? 0 : rlo,
                              f->min == 0 && f->max == 0 ? 100 : rhi, member, &err);
    else
        rc = wb_parse_real(text, rlo, rhi, member, &err);
    if (rc < 0)
        wb_problem(p, n, "bad-value", "%s: %s", f->key, err.root);
}

static void read_field(const struct wb_field *f, const struct wb_node *n, char *obj,
                       struct wb_problems *p)
{
    void *member = obj + f->offset;
    const char *text;

    if (f->type == WB_F_NODE) {
        *(const struct wb_node **)member = n;
        return;
    }
    if (f->type == WB_F_REFUSED) {
        wb_problem(p, n, "unsupported", "%s is not supported yet: %s", f->key, f->help);
        return;
    }
    text = scalar(f, n, p);
    if (!text)
        return;
    switch (f->type) {
    case WB_F_TEXT:
    case WB_F_NAME:
        read_text(f, n, text, member, p);
        break;
    case WB_F_WORD:
        read_word(f, n, text, member, p);
        break;
    case WB_F_BOOL:
        if (strcmp(text, "true") == 0)
            *(bool *)member = true;
        else if (strcmp(text, "false") == 0)
            *(bool *)member = false;
        else
            wb_problem(p, n, "bad-value", "%s cannot be '%.100s'; allowed: true or false", f->key,
                       text);
        break;
    default:
        read_number(f, n, text, member, p);
        break;
    }
}

static const struct wb_field *find(const struct wb_field *table, size_t nrows, const char *key)
{
    for (size_t i = 0; i < nrows; i++) {
        if (strcmp(table[i].key, key) == 0)
            return &table[i];
    }
    return NULL;
}

static void unknown_key(const struct wb_node *n, const char *what, const struct wb_field *table,
                        size_t nrows, struct wb_problems *p)
{
    const char **keys = wb_calloc(nrows + 1, sizeof *keys);
    WB_AUTO_FREE char *guess = NULL;
    WB_AUTO_FREE char *list = NULL;
    size_t k = 0;

    for (size_t i = 0; i < nrows; i++) {
        if (table[i].type != WB_F_REFUSED)
            keys[k++] = table[i].key;
    }
    guess = wb_did_you_mean(n->key, keys);
    list = wb_word_list(keys);
    wb_problem(p, n, "unknown-key", "%s has no key '%.100s'%s; allowed: %s", what, n->key, guess,
               list);
    free(keys);
}

int wb_fields_read(const struct wb_node *map, const char *what, const struct wb_field *table,
                   size_t nrows, void *out, struct wb_problems *p)
{
    size_t before = p->n + p->dropped;

    if (!map || map->kind != WB_NODE_MAP) {
        wb_problem(p, map, "wrong-type", "%s must be a map of keys and values", what);
        return 1;
    }
    for (size_t i = 0; i < map->n; i++) {
        const struct wb_field *f = find(table, nrows, map->items[i]->key);

        if (f)
            read_field(f, map->items[i], out, p);
        else
            unknown_key(map->items[i], what, table, nrows, p);
    }
    for (size_t i = 0; i < nrows; i++) {
        if (table[i].required && !wb_node_get(map, table[i].key))
            wb_problem_key(p, map, table[i].key, "missing", "%s needs %s: %s", what, table[i].key,
                           table[i].help ? table[i].help : type_phrase(table[i].type));
    }
    return (int)(p->n + p->dropped - before);
}

void wb_fields_release(const struct wb_field *table, size_t nrows, void *obj)
{
    for (size_t i = 0; i < nrows; i++) {
        char **member = (char **)((char *)obj + table[i].offset);

        if (table[i].type != WB_F_TEXT && table[i].type != WB_F_NAME)
            continue;
        free(*member);
        *member = NULL;
    }
}
