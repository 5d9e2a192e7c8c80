/*
 * A document as a person wrote it: a tree of nodes that know their line. Study and recipe files
 * (YAML) and the same over JSON end up here, so that checking is written once and every problem
 * can be reported with file, line and pointer.
 *
 * YAML scalars stay the text that stands there ("3.10" is never 3.1, "NO" is never false); only
 * an empty plain scalar, `~` and `null` are NULL nodes. From JSON, numbers and booleans keep
 * their type, so that a version given as a number can be refused.
 */
#ifndef WB_BASE_NODE_H
#define WB_BASE_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/err.h"
#include "server/base/json.h"

enum wb_node_kind {
    WB_NODE_NULL,
    WB_NODE_TEXT,
    WB_NODE_NUMBER,
    WB_NODE_BOOL,
    WB_NODE_LIST,
    WB_NODE_MAP
};

struct wb_node {
    enum wb_node_kind kind;
    int line;   /* from 1; 0 when unknown (JSON) */
    char *key;  /* key in the parent map, or NULL */
    char *text; /* TEXT, NUMBER ("3.10" as jansson prints it), BOOL ("true"/"false"); else NULL */
    struct wb_node *parent; /* borrowed; NULL at the root */
    struct wb_node **items; /* LIST and MAP, in order */
    size_t n, cap;
};

#define WB_NODE_TEXT_MAX (1u << 20) /* bytes of one document */
#define WB_NODE_DEPTH_MAX 64
#define WB_NODE_COUNT_MAX 100000

/* base/yaml.c: reads one YAML document strictly: no aliases or anchors, no tags, no duplicate
 * keys, no second document, bounded depth and count. The error text has "line N". */
int wb_yaml_parse(const char *text, size_t n, struct wb_node **out,
                  struct wb_err *err) WB_MUST_CHECK;
int wb_yaml_read_file(const char *path, struct wb_node **out, struct wb_err *err) WB_MUST_CHECK;

/* The same tree from JSON text (line numbers unknown). */
int wb_node_from_json(const wb_json *j, struct wb_node **out, struct wb_err *err) WB_MUST_CHECK;
/* Tree to JSON: text stays string. Owned by the caller. */
wb_json *wb_node_to_json(const struct wb_node *n);

struct wb_node *wb_node_new(enum wb_node_kind kind, const char *text, int line);
void wb_node_add(struct wb_node *parent, const char *key, struct wb_node *child); /* takes child */
struct wb_node *wb_node_get(const struct wb_node *map, const char *key); /* borrowed or NULL */
/* Replaces (or adds) the value at a dotted path of map keys, making maps on the way. A literal
 * key with dots ("setting.maxmemory" under factors) wins over a walk; in a list a part is an index
 * or the `name` of an item. Takes value, also on failure. */
int wb_node_put(struct wb_node *root, const char *dotted, struct wb_node *value,
                struct wb_err *err) WB_MUST_CHECK;
/* Takes the node at a dotted path out and frees it; false when there is none. */
bool wb_node_remove(struct wb_node *root, const char *dotted);
struct wb_node *wb_node_copy(const struct wb_node *n);
void wb_node_free(struct wb_node *n);

/* JSON pointer (RFC 6901) of a node from its root, e.g. "/factors/form/2"; caller frees. */
char *wb_node_pointer(const struct wb_node *n);

#endif
