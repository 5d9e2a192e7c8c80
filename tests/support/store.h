/*
 * Keys and values that a fake server keeps: open addressing, never shrinks.
 */
#ifndef WB_TESTS_STORE_H
#define WB_TESTS_STORE_H

#include "runners/load/keys.h"
#include "runners/load/protocols/cql_wire.h"
#include "server/base/mem.h"

struct entry {
    char *key, *value; /* value: NULL when it was deleted */
    size_t key_len, value_len;
};

struct store {
    struct entry *v; /* size is 0 or a power of two */
    size_t n, size;
};

/* Its place, empty or not; size is not 0. */
static struct entry *store_find(const struct store *s, struct wb_cql_view key)
{
    uint64_t h = 1469598103934665603ull;

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * 1099511628211ull;
    for (size_t i = wb_keys_hash(0, h);; i++) {
        struct entry *e = &s->v[i & (s->size - 1)];
        if (!e->key || (e->key_len == key.n && memcmp(e->key, key.p, key.n) == 0))
            return e;
    }
}

static void store_grow(struct store *s)
{
    struct store old = *s;

    if (s->n * 2 < s->size)
        return;
    s->size = s->size ? s->size * 2 : 1024;
    s->v = wb_calloc(s->size, sizeof(*s->v));
    for (size_t i = 0; i < old.size; i++)
        if (old.v[i].key)
            *store_find(s, (struct wb_cql_view){.p = old.v[i].key, .n = old.v[i].key_len}) =
                old.v[i];
    free(old.v);
}

static char *store_copy(struct wb_cql_view v)
{
    char *p = wb_calloc(v.n + 1, 1);

    if (v.n > 0)
        memcpy(p, v.p, v.n);
    return p;
}

/* value without p: deletes. */
static void store_keep(struct store *s, struct wb_cql_view key, struct wb_cql_view value)
{
    struct entry *e;

    store_grow(s);
    e = store_find(s, key);
    if (!e->key) {
        e->key = store_copy(key);
        e->key_len = key.n;
        s->n++;
    }
    free(e->value);
    e->value = value.p ? store_copy(value) : NULL;
    e->value_len = value.n;
}

static void store_release(struct store *s)
{
    for (size_t i = 0; i < s->size; i++) {
        free(s->v[i].key);
        free(s->v[i].value);
    }
    free(s->v);
}

#endif
