#include "server/base/node.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/problems.h"

/* A node that is being filled, and in a map the key that waits for its value. */
struct level {
    struct wb_node *node;
    char *key;
    int key_line;
};

struct builder {
    struct level stack[WB_NODE_DEPTH_MAX];
    int depth;
    size_t count;
    struct wb_node *root;
    int documents;
    int line; /* of the last failure */
};

static int fail_at(struct builder *b, int line, enum wb_code code, struct wb_err *err,
                   const char *text)
{
    b->line = line;
    return wb_fail(err, code, "line %d: %s", line, text);
}

static int event_line(const yaml_event_t *e)
{
    return (int)e->start_mark.line + 1;
}

/* The byte at a mark, whose line and column count characters from 0; 0 outside. */
static char char_at(const char *text, size_t n, const yaml_mark_t *mark)
{
    size_t i = 0;

    for (size_t line = 0; i < n && line < mark->line; i++)
        line += text[i] == '\n';
    for (size_t column = 0; i < n && text[i] != '\n'; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && column++ == mark->column)
            return text[i];
    }
    return 0;
}

/* Parser errors carry a mark, reader errors (encoding, control characters) an offset. */
static int fail_parser(struct builder *b, const yaml_parser_t *y, const char *text, size_t n,
                       struct wb_err *err)
{
    int line = (int)y->problem_mark.line + 1;
    const char *what = y->problem ? y->problem : "cannot be read";

    if (y->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < n && i < y->problem_offset; i++)
            line += text[i] == '\n';
    }
    b->line = line;
    if (y->error == YAML_READER_ERROR)
        return wb_fail(err, WB_INVALID, "line %d: not plain UTF-8 text: %s", line, what);
    if (char_at(text, n, &y->problem_mark) == '\t')
        return wb_fail(err, WB_INVALID,
                       "line %d, column %d: a tab; YAML is indented with blanks only", line,
                       (int)y->problem_mark.column + 1);
    if (y->context && strstr(y->context, "block"))
        return wb_fail(err, WB_INVALID,
                       "line %d, column %d: %s %s that begins in line %d: is it indented like the "
                       "lines above, is a ':', a '-' or the end of a quote missing there?",
                       line, (int)y->problem_mark.column + 1, what, y->context,
                       (int)y->context_mark.line + 1);
    return wb_fail(err, WB_INVALID, "line %d, column %d: %s%s%s", line,
                   (int)y->problem_mark.column + 1, what, y->context ? " " : "",
                   y->context ? y->context : "");
}

/* Gives a finished scalar or a new list or map its place. */
static int place(struct builder *b, struct wb_node *n, struct wb_err *err)
{
    struct level *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;

    if (++b->count > WB_NODE_COUNT_MAX) {
        int line = n->line;

        wb_node_free(n);
        b->line = line;
        return wb_fail(err, WB_LIMIT, "line %d: more than %d values", line, WB_NODE_COUNT_MAX);
    }
    if (!top) {
        b->root = n;
        return 0;
    }
    wb_node_add(top->node, top->key, n);
    free(top->key);
    top->key = NULL;
    return 0;
}

static bool expects_key(const struct builder *b)
{
    const struct level *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;

    return top && top->node->kind == WB_NODE_MAP && !top->key;
}

static int on_scalar(struct builder *b, const yaml_event_t *e, struct wb_err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int line = event_line(e);

    if (strlen(text) != e->data.scalar.length)
        return fail_at(b, line, WB_INVALID, err, "text has a NUL character in it");
    if (expects_key(b)) {
        struct level *top = &b->stack[b->depth - 1];

        if (!*text)
            return fail_at(b, line, WB_INVALID, err, "a key is empty");
        top->key = wb_strdup(text);
        top->key_line = line;
        return 0;
    }
    if (plain && (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
        return place(b, wb_node_new(WB_NODE_NULL, NULL, line), err);
    return place(b, wb_node_new(WB_NODE_TEXT, text, line), err);
}

static int on_start(struct builder *b, const yaml_event_t *e, enum wb_node_kind kind,
                    struct wb_err *err)
{
    int line = event_line(e), rc;
    struct wb_node *n;

    if (expects_key(b))
        return fail_at(b, line, WB_INVALID, err, "a key must be plain text, not a list or map");
    if (b->depth == WB_NODE_DEPTH_MAX)
        return fail_at(b, line, WB_LIMIT, err, "nested too deeply (more than 64 levels)");
    n = wb_node_new(kind, NULL, line);
    rc = place(b, n, err);
    if (rc == 0)
        b->stack[b->depth++] = (struct level){.node = n};
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const struct wb_node *x = *(struct wb_node *const *)a, *y = *(struct wb_node *const *)b;
    int c = strcmp(x->key, y->key);

    return c ? c : (x->line > y->line) - (x->line < y->line);
}

static int check_duplicates(struct builder *b, const struct wb_node *map, struct wb_err *err)
{
    struct wb_node **v = wb_calloc(map->n, sizeof *v);
    int rc = 0;

    if (map->n > 0)
        memcpy(v, map->items, map->n * sizeof *v);
    qsort(v, map->n, sizeof *v, by_key);
    for (size_t i = 1; rc == 0 && i < map->n; i++) {
        if (strcmp(v[i - 1]->key, v[i]->key) != 0)
            continue;
        b->line = v[i]->line;
        rc = wb_fail(err, WB_INVALID, "line %d: key '%.100s' is already there in line %d",
                     v[i]->line, v[i]->key, v[i - 1]->line);
    }
    free(v);
    return rc;
}

static const yaml_char_t *anchor_of(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT)
        return e->data.scalar.anchor;
    if (e->type == YAML_SEQUENCE_START_EVENT)
        return e->data.sequence_start.anchor;
    return e->type == YAML_MAPPING_START_EVENT ? e->data.mapping_start.anchor : NULL;
}

static const yaml_char_t *tag_of(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT)
        return e->data.scalar.tag;
    if (e->type == YAML_SEQUENCE_START_EVENT)
        return e->data.sequence_start.tag;
    return e->type == YAML_MAPPING_START_EVENT ? e->data.mapping_start.tag : NULL;
}

static int on_document(struct builder *b, const yaml_event_t *e, struct wb_err *err)
{
    int line = event_line(e);

    if (b->documents++ > 0)
        return fail_at(b, line, WB_INVALID, err, "a second document; there may be only one");
    if (e->data.document_start.version_directive ||
        e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        return fail_at(b, line, WB_INVALID, err, "directives (%) are not allowed");
    return 0;
}

static int on_event(struct builder *b, const yaml_event_t *e, struct wb_err *err)
{
    struct level *top;
    int rc = 0;

    if (e->type == YAML_ALIAS_EVENT || anchor_of(e))
        return fail_at(b, event_line(e), WB_INVALID, err,
                       "anchors (&) and aliases (*) are not allowed; write the value out, or "
                       "quote a text that starts with one of them");
    if (tag_of(e))
        return fail_at(b, event_line(e), WB_INVALID, err,
                       "tags (!) are not allowed; quote a text that starts with one");
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(b, e, err);
    case YAML_SCALAR_EVENT:
        return on_scalar(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(b, e, WB_NODE_LIST, err);
    case YAML_MAPPING_START_EVENT:
        return on_start(b, e, WB_NODE_MAP, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        top = &b->stack[--b->depth];
        if (top->node->kind == WB_NODE_MAP)
            rc = check_duplicates(b, top->node, err);
        return rc;
    default:
        return 0;
    }
}

static int parse(const char *text, size_t n, struct wb_node **out, int *line, struct wb_err *err)
{
    struct builder b = {0};
    yaml_parser_t y;
    bool more = true;
    int rc = 0;

    *line = 0;
    if (n > WB_NODE_TEXT_MAX)
        return wb_fail(err, WB_LIMIT, "larger than %u bytes", WB_NODE_TEXT_MAX);
    if (!yaml_parser_initialize(&y))
        abort();
    yaml_parser_set_encoding(&y, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y, (const unsigned char *)text, n);
    while (rc == 0 && more) {
        yaml_event_t e;

        if (!yaml_parser_parse(&y, &e)) {
            rc = fail_parser(&b, &y, text, n, err);
            break;
        }
        more = e.type != YAML_STREAM_END_EVENT;
        rc = on_event(&b, &e, err);
        yaml_event_delete(&e);
    }
    if (rc == 0 && (!b.root || b.root->kind == WB_NODE_NULL))
        rc = fail_at(&b, 1, WB_INVALID, err, "the document is empty");
    yaml_parser_delete(&y);
    for (int i = 0; i < b.depth; i++)
        free(b.stack[i].key);
    if (rc < 0) {
        wb_node_free(b.root);
        *line = b.line;
        return rc;
    }
    *out = b.root;
    return 0;
}

int wb_yaml_parse(const char *text, size_t n, struct wb_node **out, struct wb_err *err)
{
    int line;

    return parse(text, n, out, &line, err);
}

int wb_yaml_read_file(const char *path, struct wb_node **out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;
    int rc = wb_file_read(path, WB_NODE_TEXT_MAX, &text, &n, err);

    if (rc < 0)
        return rc;
    rc = wb_yaml_parse(text, n, out, err);
    return rc < 0 ? wb_wrap(err, "%s", path) : 0;
}

struct wb_node *wb_yaml_check(const char *text, size_t n, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_node at = {0}, *root = NULL;

    if (parse(text, n, &root, &at.line, &err) < 0) {
        const char *what = err.root;

        /* The problem has the line itself: "line 3, column 1: what" becomes "column 1: what". */
        if (at.line > 0 && (what = strpbrk(what, ":,")) != NULL)
            what += 2;
        wb_problem(p, &at, err.code == WB_LIMIT ? "too-large" : "syntax", "%s", what);
    }
    return root;
}
