#include "server/base/node.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

struct wb_node *wb_node_new(enum wb_node_kind kind, const char *text, int line)
{
    struct wb_node *n = wb_calloc(1, sizeof *n);

    n->kind = kind;
    n->line = line;
    n->text = wb_strdup(text);
    return n;
}

void wb_node_free(struct wb_node *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->n; i++)
        wb_node_free(n->items[i]);
    free(n->items);
    free(n->key);
    free(n->text);
    free(n);
}

void wb_node_add(struct wb_node *parent, const char *key, struct wb_node *child)
{
    wb_grow(&parent->items, &parent->cap, parent->n + 1, sizeof(struct wb_node *));
    parent->items[parent->n++] = child;
    child->parent = parent;
    free(child->key);
    child->key = wb_strdup(key);
}

static struct wb_node *get_n(const struct wb_node *map, const char *key, size_t len)
{
    if (!map || map->kind != WB_NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++) {
        if (strncmp(map->items[i]->key, key, len) == 0 && map->items[i]->key[len] == '\0')
            return map->items[i];
    }
    return NULL;
}

struct wb_node *wb_node_get(const struct wb_node *map, const char *key)
{
    return get_n(map, key, strlen(key));
}

struct wb_node *wb_node_copy(const struct wb_node *n)
{
    struct wb_node *c = wb_node_new(n->kind, n->text, n->line);

    for (size_t i = 0; i < n->n; i++)
        wb_node_add(c, n->items[i]->key, wb_node_copy(n->items[i]));
    return c;
}

/* An item of a list by its index, or by the `name` it carries. */
static struct wb_node *list_item(const struct wb_node *list, const char *part, size_t len)
{
    size_t index = 0;
    bool digits = len > 0 && len < 7;

    for (size_t i = 0; i < len; i++) {
        digits = digits && part[i] >= '0' && part[i] <= '9';
        index = digits ? index * 10 + (size_t)(part[i] - '0') : 0;
    }
    if (digits && index < list->n)
        return list->items[index];
    for (size_t i = 0; i < list->n; i++) {
        const struct wb_node *name = wb_node_get(list->items[i], "name");

        if (name && name->text && strncmp(name->text, part, len) == 0 && name->text[len] == '\0')
            return list->items[i];
    }
    return NULL;
}

static void list_names(const struct wb_node *list, struct wb_buf *out)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct wb_node *name = wb_node_get(list->items[i], "name");

        if (name && name->text)
            wb_buf_addf(out, "%s%s", out->len ? ", " : "", name->text);
        else
            wb_buf_addf(out, "%s%zu", out->len ? ", " : "", i);
    }
}

/* Takes child and puts it where `old` is. */
static void replace(struct wb_node *old, struct wb_node *child)
{
    struct wb_node *parent = old->parent;

    for (size_t i = 0; i < parent->n; i++) {
        if (parent->items[i] == old) {
            parent->items[i] = child;
            break;
        }
    }
    child->parent = parent;
    free(child->key);
    child->key = wb_strdup(old->key);
    wb_node_free(old);
}

static int is_scalar(const struct wb_node *n)
{
    return n->kind != WB_NODE_MAP && n->kind != WB_NODE_LIST;
}

/* The child of `at` that the longest possible start of `rest` names; *len gets how much of it. */
static struct wb_node *step_into(const struct wb_node *at, const char *rest, size_t *len)
{
    for (size_t l = strlen(rest);;) {
        struct wb_node *c = at->kind == WB_NODE_LIST ? list_item(at, rest, l) : get_n(at, rest, l);

        if (c) {
            *len = l;
            return c;
        }
        while (l > 0 && rest[l - 1] != '.')
            l--;
        if (l == 0)
            return NULL;
        l--;
    }
}

static int check_path(const char *dotted, struct wb_err *err)
{
    size_t parts = 1, n = strlen(dotted);

    for (size_t i = 0; i < n; i++)
        parts += dotted[i] == '.';
    if (n == 0 || dotted[0] == '.' || dotted[n - 1] == '.' || strstr(dotted, ".."))
        return wb_fail(err, WB_INVALID, "path '%.200s' has an empty part", dotted);
    if (parts > WB_NODE_DEPTH_MAX)
        return wb_fail(err, WB_LIMIT, "path '%.60s...' has more than %d parts", dotted,
                       WB_NODE_DEPTH_MAX);
    return 0;
}

static int no_such_item(const struct wb_node *list, const char *dotted, const char *rest,
                        struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(400);
    int rc;

    list_names(list, &names);
    rc = wb_fail(err, WB_INVALID, "path '%.200s': the list has no item '%.*s'; it has: %s", dotted,
                 (int)strcspn(rest, "."), rest, names.len ? wb_buf_str(&names) : "nothing");
    wb_buf_release(&names);
    return rc;
}

static int put(struct wb_node *root, const char *dotted, struct wb_node *value, struct wb_err *err)
{
    struct wb_node *at = root;
    const char *rest = dotted;

    if (root->kind != WB_NODE_MAP)
        return wb_fail(err, WB_INVALID, "path '%.200s' leads into a document that is not a map",
                       dotted);
    for (;;) {
        size_t len = 0;
        struct wb_node *c = step_into(at, rest, &len);

        if (c && rest[len] == '\0') {
            replace(c, value);
            return 0;
        }
        if (!c && at->kind == WB_NODE_LIST)
            return no_such_item(at, dotted, rest, err);
        if (!c) {
            len = strcspn(rest, ".");
            if (rest[len] == '\0') {
                wb_node_add(at, rest, value);
                return 0;
            }
            char *key = wb_strndup(rest, len);

            c = wb_node_new(WB_NODE_MAP, NULL, value->line);
            wb_node_add(at, key, c);
            free(key);
        } else if (c->kind == WB_NODE_NULL) {
            c->kind = WB_NODE_MAP;
        } else if (is_scalar(c)) {
            return wb_fail(err, WB_INVALID, "path '%.200s': '%.*s' is a single value, not a map",
                           dotted, (int)(rest + len - dotted), dotted);
        }
        at = c;
        rest += len + 1;
    }
}

int wb_node_put(struct wb_node *root, const char *dotted, struct wb_node *value, struct wb_err *err)
{
    int rc = check_path(dotted, err);

    if (rc == 0)
        rc = put(root, dotted, value, err);
    if (rc < 0)
        wb_node_free(value);
    return rc;
}

bool wb_node_remove(struct wb_node *root, const char *dotted)
{
    struct wb_node *at = root;
    const char *rest = dotted;
    size_t len = 0, i = 0;

    for (;; rest += len + 1) {
        at = step_into(at, rest, &len);
        if (!at)
            return false;
        if (rest[len] == '\0')
            break;
    }
    root = at->parent;
    while (root->items[i] != at)
        i++;
    root->n--;
    memmove(root->items + i, root->items + i + 1, (root->n - i) * sizeof(struct wb_node *));
    wb_node_free(at);
    return true;
}

char *wb_node_pointer(const struct wb_node *n)
{
    const struct wb_node *chain[2 * WB_NODE_DEPTH_MAX + 2];
    struct wb_buf b = WB_BUF_INIT(WB_NODE_TEXT_MAX);
    size_t depth = 0;

    for (; n && n->parent && depth < WB_LEN(chain); n = n->parent)
        chain[depth++] = n;
    while (depth > 0) {
        const struct wb_node *c = chain[--depth];

        wb_buf_addc(&b, '/');
        if (c->parent->kind == WB_NODE_LIST) {
            size_t i = 0;

            while (i < c->parent->n && c->parent->items[i] != c)
                i++;
            wb_buf_addf(&b, "%zu", i);
            continue;
        }
        for (const char *k = c->key; *k; k++) {
            if (*k == '~')
                wb_buf_adds(&b, "~0");
            else if (*k == '/')
                wb_buf_adds(&b, "~1");
            else
                wb_buf_addc(&b, *k);
        }
    }
    if (b.failed || !b.data) {
        wb_buf_release(&b);
        return wb_strdup("");
    }
    return wb_buf_take(&b);
}

/* The shortest decimal text that reads back as the same double. */
static void real_text(double v, struct wb_buf *out)
{
    for (int digits = 15; digits <= 17; digits++) {
        wb_buf_clear(out);
        wb_buf_addf(out, "%.*g", digits, v);
        if (strtod(wb_buf_str(out), NULL) == v)
            return;
    }
}

static int from_json(const wb_json *j, int depth, size_t *count, struct wb_node **out,
                     struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(64);
    struct wb_node *n = NULL, *child;
    int rc = 0;

    if (depth > WB_NODE_DEPTH_MAX)
        return wb_fail(err, WB_LIMIT, "JSON is nested deeper than %d levels", WB_NODE_DEPTH_MAX);
    if (++*count > WB_NODE_COUNT_MAX)
        return wb_fail(err, WB_LIMIT, "JSON has more than %d values", WB_NODE_COUNT_MAX);
    switch (wb_json_type(j)) {
    case WB_JSON_NULL:
        n = wb_node_new(WB_NODE_NULL, NULL, 0);
        break;
    case WB_JSON_BOOL:
    case WB_JSON_INT:
        wb_json_line(j, &text);
        n = wb_node_new(wb_json_type(j) == WB_JSON_BOOL ? WB_NODE_BOOL : WB_NODE_NUMBER,
                        wb_buf_str(&text), 0);
        break;
    case WB_JSON_REAL:
        real_text(wb_json_number(j, 0), &text);
        n = wb_node_new(WB_NODE_NUMBER, wb_buf_str(&text), 0);
        break;
    case WB_JSON_STRING:
        n = wb_node_new(WB_NODE_TEXT, wb_json_string(j), 0);
        break;
    case WB_JSON_ARRAY:
        n = wb_node_new(WB_NODE_LIST, NULL, 0);
        for (size_t i = 0; rc == 0 && i < wb_json_len(j); i++) {
            rc = from_json(wb_json_at(j, i), depth + 1, count, &child, err);
            if (rc == 0)
                wb_node_add(n, NULL, child);
        }
        break;
    case WB_JSON_OBJECT:
        n = wb_node_new(WB_NODE_MAP, NULL, 0);
        for (void *it = wb_json_first(j); rc == 0 && it; it = wb_json_next(j, it)) {
            rc = from_json(wb_json_iter_value(it), depth + 1, count, &child, err);
            if (rc == 0)
                wb_node_add(n, wb_json_iter_key(it), child);
        }
        break;
    }
    wb_buf_release(&text);
    if (rc < 0) {
        wb_node_free(n);
        return rc;
    }
    *out = n;
    return 0;
}

int wb_node_from_json(const wb_json *j, struct wb_node **out, struct wb_err *err)
{
    size_t count = 0;

    return from_json(j, 0, &count, out, err);
}

/* A NUMBER's text came from a JSON number, so it reads as one again. */
static wb_json *number_json(const char *text)
{
    char *end = NULL;
    long long v;

    if (text[strcspn(text, ".eE")] != '\0')
        return wb_json_real(strtod(text, NULL));
    v = strtoll(text, &end, 10);
    return wb_json_int(v);
}

wb_json *wb_node_to_json(const struct wb_node *n)
{
    wb_json *j = NULL;

    switch (n->kind) {
    case WB_NODE_NULL:
        return wb_json_null();
    case WB_NODE_TEXT:
        return wb_json_str(n->text);
    case WB_NODE_NUMBER:
        return number_json(n->text);
    case WB_NODE_BOOL:
        return wb_json_bool(strcmp(n->text, "true") == 0);
    case WB_NODE_LIST:
        j = wb_json_array();
        for (size_t i = 0; i < n->n; i++)
            wb_json_push(j, wb_node_to_json(n->items[i]));
        break;
    case WB_NODE_MAP:
        j = wb_json_object();
        for (size_t i = 0; i < n->n; i++)
            wb_json_set(j, n->items[i]->key, wb_node_to_json(n->items[i]));
        break;
    }
    return j;
}
