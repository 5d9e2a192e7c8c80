/* Versions of a recipe and where their artifacts come from; its ports. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/study/recipe_parts.h"

#define LOCK_MAX (1u << 20)
#define LOCK_LINES_MAX 1000
#define LOCK_FOLDER "versions/"

enum source { DISTRIBUTION, MAVEN, RELEASE };
static const char *const sources[] = {"distribution", "maven", "release", NULL};

struct raw_version {
    struct wb_recipe_version v;
    const struct wb_node *packages;
    int source;
};

#define AT(m) offsetof(struct raw_version, m)
static const struct wb_field version_fields[] = {
    {"version", WB_F_TEXT, true, AT(v.version), 0, 0, NULL, "the exact version text"},
    {"source", WB_F_WORD, true, AT(source), 0, 0, sources,
     "where its artifacts come from: distribution, maven or release"},
    {"packages", WB_F_NODE, false, AT(packages), 0, 0, NULL,
     "names of packages of the distribution; of source distribution the one with this version "
     "first"},
    {"lock", WB_F_TEXT, false, AT(v.lock), 0, 0, NULL,
     "of source maven: the file below versions/ that lists its jars with their SHA-256"},
    {"url", WB_F_TEXT, false, AT(v.url), 0, 0, NULL, "of source release: where its archive is"},
    {"sha512", WB_F_TEXT, false, AT(v.sha512), 0, 0, NULL,
     "of source release: the archive's SHA-512, 128 hex digits"},
    {"digest", WB_F_TEXT, false, AT(v.digest), 0, 0, NULL,
     "pin of the fetched artifacts, 64 hex digits"},
};
#undef AT

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* What a source needs, and what belongs to another one. */
static void check_source(const struct wb_node *n, const struct raw_version *raw,
                         struct wb_problems *p)
{
    static const struct {
        const char *key;
        enum source of;
        const char *what;
    } keys[] = {
        {"packages", DISTRIBUTION, "names of packages"},
        {"lock", MAVEN, "a file below " LOCK_FOLDER},
        {"url", RELEASE, "where the archive is"},
        {"sha512", RELEASE, "128 hex digits"},
    };

    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const struct wb_node *k = wb_node_get(n, keys[i].key);

        if (!k && keys[i].of == (enum source)raw->source)
            wb_problem_key(p, n, keys[i].key, "missing", "source %s needs %s: %s",
                           sources[raw->source], keys[i].key, keys[i].what);
        else if (k && keys[i].of != (enum source)raw->source && keys[i].of != DISTRIBUTION)
            wb_problem(p, k, "contradiction", "%s belongs to source %s, not to %s", keys[i].key,
                       sources[keys[i].of], sources[raw->source]);
    }
}

static void check_texts(const struct wb_node *n, const struct raw_version *raw,
                        struct wb_problems *p)
{
    const struct wb_recipe_version *v = &raw->v;
    const char *lock = v->lock;

    for (size_t k = 0; k < v->packages.n; k++) {
        if (!wb_safe_name(v->packages.v[k]) && !strchr(v->packages.v[k], '+'))
            wb_problem(p, raw->packages, "bad-name", "'%.100s' is no package name",
                       v->packages.v[k]);
    }
    if (v->digest && !is_hex(v->digest, 64))
        wb_problem(p, wb_node_get(n, "digest"), "bad-value",
                   "digest must be 64 lower-case hex digits of SHA-256");
    if (v->sha512 && !is_hex(v->sha512, 128))
        wb_problem(p, wb_node_get(n, "sha512"), "bad-value",
                   "sha512 must be 128 lower-case hex digits");
    if (v->url && (strncmp(v->url, "https://", 8) != 0 && strncmp(v->url, "http://", 7) != 0 &&
                   strncmp(v->url, "file:///", 8) != 0))
        wb_problem(p, wb_node_get(n, "url"), "bad-value",
                   "url must start with https://, http:// or file:///");
    if (lock && (strncmp(lock, LOCK_FOLDER, strlen(LOCK_FOLDER)) != 0 ||
                 !wb_safe_name(lock + strlen(LOCK_FOLDER))))
        wb_problem(p, wb_node_get(n, "lock"), "bad-name",
                   "lock must be a plain file name below " LOCK_FOLDER ", not '%.100s'", lock);
}

void wb_recipe_versions_read(struct wb_recipe *r, const struct wb_node *list, struct wb_problems *p)
{
    list = wb_recipe_list(list, "versions", p);
    if (!list)
        return;
    r->versions = wb_calloc(list->n, sizeof *r->versions);
    for (size_t i = 0; i < list->n; i++) {
        const struct wb_node *n = list->items[i];
        struct raw_version raw = {0};

        if (wb_fields_read(n, "version", version_fields, WB_LEN(version_fields), &raw, p) == 0)
            check_source(n, &raw, p);
        wb_recipe_texts(raw.packages, "packages", &raw.v.packages, p);
        check_texts(n, &raw, p);
        if (raw.v.version && wb_recipe_find_version(r, raw.v.version))
            wb_problem(p, n, "duplicate", "version '%.100s' is there twice", raw.v.version);
        raw.v.source = wb_strdup(sources[raw.source]);
        r->versions[r->nversions++] = raw.v;
    }
}

/* "SHA-256  group:artifact:version[:classifier]": the parts have what Maven allows in them, so that
 * they can become paths and file names. */
static bool lock_line(const char *line)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+:";
    const char *c = line + 66;
    int colons = 0;

    if (strlen(line) < 67 || strspn(line, "0123456789abcdef") != 64 ||
        strncmp(line + 64, "  ", 2) != 0 || strspn(c, allowed) != strlen(c))
        return false;
    for (bool begins = true; *c; c++) {
        if (begins && !isalnum((unsigned char)*c))
            return false; /* no part is empty or starts with a dot or a dash */
        begins = *c == ':';
        colons += begins;
    }
    return c[-1] != ':' && colons >= 2 && colons <= 3;
}

static void check_lock(const struct wb_recipe *r, const struct wb_recipe_version *v,
                       const struct wb_node *at, struct wb_problems *p)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", r->dir, v->lock);
    WB_AUTO_FREE char *text = NULL;
    struct wb_err err = WB_ERR_INIT;
    size_t n = 0;
    int number = 0;

    if (wb_file_read(path, LOCK_MAX, &text, &n, &err) < 0) {
        wb_problem(p, at, "missing-file", "version %s: %s", v->version, err.root);
        return;
    }
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (++number > LOCK_LINES_MAX) {
            wb_problem(p, at, "too-large", "%s has more than %d lines", v->lock, LOCK_LINES_MAX);
            return;
        }
        if (!lock_line(line)) {
            wb_problem(p, at, "bad-value",
                       "%s, line %d: each line is a SHA-256, two blanks and "
                       "group:artifact:version[:classifier]",
                       v->lock, number);
            return;
        }
    }
    if (number == 0)
        wb_problem(p, at, "bad-value", "%s lists no artifact", v->lock);
}

void wb_recipe_locks_check(const struct wb_recipe *r, const struct wb_node *list,
                           struct wb_problems *p)
{
    for (size_t i = 0; i < r->nversions; i++) {
        const char *lock = r->versions[i].lock;

        if (lock && strncmp(lock, LOCK_FOLDER, strlen(LOCK_FOLDER)) == 0 &&
            wb_safe_name(lock + strlen(LOCK_FOLDER)))
            check_lock(r, &r->versions[i], wb_node_get(list->items[i], "lock"), p);
    }
}

struct raw_port {
    char *name;
    int64_t dflt;
    bool loopback;
};
static const struct wb_field port_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_port, name), 0, 0, NULL, "such as storage"},
    {"default", WB_F_INT, true, offsetof(struct raw_port, dflt), 1, 65535, NULL, "a port"},
    {"loopback", WB_F_BOOL, false, offsetof(struct raw_port, loopback), 0, 0, NULL,
     "it is at 127.0.0.1 even when the instance has an address of its own"},
};

void wb_recipe_ports_read(struct wb_recipe *r, const struct wb_node *list, struct wb_problems *p)
{
    list = wb_recipe_list(list, "ports", p);
    if (!list)
        return;
    if (list->n > WB_RECIPE_PORTS_MAX) {
        wb_problem(p, list, "too-large", "ports has at most %d entries", WB_RECIPE_PORTS_MAX);
        return;
    }
    r->ports = wb_calloc(list->n, sizeof *r->ports);
    for (size_t i = 0; i < list->n; i++) {
        struct raw_port raw = {0};

        (void)wb_fields_read(list->items[i], "port", port_fields, WB_LEN(port_fields), &raw, p);
        for (size_t k = 0; raw.name && k < r->nports; k++) {
            if (r->ports[k].name && strcmp(r->ports[k].name, raw.name) == 0)
                wb_problem(p, list->items[i], "duplicate", "port '%s' is there twice", raw.name);
        }
        r->ports[r->nports++] = (struct wb_recipe_port){raw.name, (int)raw.dflt, raw.loopback};
    }
}

wb_json *wb_recipe_version_schema(void)
{
    wb_json *map = wb_schema_map(version_fields, WB_LEN(version_fields));

    wb_schema_set(map, "packages", wb_recipe_texts_schema());
    wb_schema_set(map, "digest", wb_schema_pattern("^[0-9a-f]{64}$"));
    wb_schema_set(map, "sha512", wb_schema_pattern("^[0-9a-f]{128}$"));
    return map;
}

wb_json *wb_recipe_port_schema(void)
{
    return wb_schema_map(port_fields, WB_LEN(port_fields));
}
