#include "server/analysis/guard.h"

#include <string.h>

#include "server/base/mem.h"

#define PLACES_MAX 5   /* of one document */
#define TEXT_SHOWN 100 /* bytes of a value */
#define DIGEST_SHOWN 12

enum part { PLAN, SUMMARY, ENVIRONMENT };

static const struct {
    const char *field;
    enum part part;
    const char *path;
    bool must_match;
    int shown;
} fields[] = {
    {"host.class", SUMMARY, "host.class", true, TEXT_SHOWN},
    {"host.kernel", ENVIRONMENT, "host.kernel", true, TEXT_SHOWN},
    {"host.cpu_model", ENVIRONMENT, "host.cpu_model", true, TEXT_SHOWN},
    {"host.libc", ENVIRONMENT, "host.libc", false, TEXT_SHOWN},
    {"recipe.name", SUMMARY, "recipe.name", true, TEXT_SHOWN},
    {"workload", PLAN, "workload", true, TEXT_SHOWN},
    {"load program", ENVIRONMENT, "programs.load", false, DIGEST_SHOWN},
    {"weighbridge", ENVIRONMENT, "weighbridge", false, TEXT_SHOWN},
    {"recipe.version", SUMMARY, "recipe.version", false, TEXT_SHOWN},
    {"build.version", SUMMARY, "subject.version", false, TEXT_SHOWN},
    {"build.commit", SUMMARY, "subject.commit", false, TEXT_SHOWN},
    {"build.built", SUMMARY, "subject.built", false, TEXT_SHOWN},
    {"recipe.digest", SUMMARY, "recipe.digest", false, DIGEST_SHOWN},
    {"bits", ENVIRONMENT, "bits", false, DIGEST_SHOWN},
    {"study", SUMMARY, "study", false, TEXT_SHOWN},
};

static const wb_json *part_of(const struct wb_side *s, enum part p)
{
    return p == PLAN ? s->plan : p == SUMMARY ? s->summary : s->environment;
}

/* Text of a value: strings as they are, the rest as JSON. Caller frees. */
static char *text_of(const wb_json *j, int shown)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    const char *s = wb_json_string(j);
    char *text;

    if (s != NULL)
        return wb_strf("%.*s", shown, s);
    wb_json_canonical(j, &b);
    text = wb_strf("%.*s%s", shown, wb_buf_str(&b), b.len > (size_t)shown ? "..." : "");
    wb_buf_release(&b);
    return text;
}

static void add_difference(wb_json *out, const char *field, const wb_json *a, const wb_json *b,
                           size_t row)
{
    WB_AUTO_FREE char *x = text_of(a, fields[row].shown);
    WB_AUTO_FREE char *y = text_of(b, fields[row].shown);
    wb_json *d = wb_json_object();

    wb_json_set_str(d, "field", field);
    wb_json_set_str(d, "base", x);
    wb_json_set_str(d, "other", y);
    wb_json_set_bool(d, "must_match", fields[row].must_match);
    wb_json_push(out, d);
}

static void walk(wb_json *out, const char *field, const wb_json *a, const wb_json *b, size_t row,
                 size_t most);

/* One member or element; an absent one counts as null. */
static void walk_member(wb_json *out, const char *field, const char *name, const wb_json *a,
                        const wb_json *b, size_t row, size_t most)
{
    WB_AUTO_FREE char *path = wb_strf("%s.%s", field, name);

    walk(out, path, a, b, row, most);
}

static void walk_elements(wb_json *out, const char *field, const wb_json *a, const wb_json *b,
                          size_t row, size_t most)
{
    size_t n = wb_json_len(a) > wb_json_len(b) ? wb_json_len(a) : wb_json_len(b);

    for (size_t i = 0; i < n; i++) {
        const wb_json *x = wb_json_at(a, i), *y = wb_json_at(b, i);
        const char *name = wb_json_str_or(x, "name", NULL);
        WB_AUTO_FREE char *index = name ? wb_strdup(name) : wb_strf("%zu", i);
        walk_member(out, field, index, x, y, row, most);
    }
}

/* Depth is bounded by that of the JSON layer. */
static void walk(wb_json *out, const char *field, const wb_json *a, const wb_json *b, size_t row,
                 size_t most)
{
    if (wb_json_len(out) >= most || wb_json_equal(a, b))
        return;
    if (wb_json_type(a) == WB_JSON_OBJECT && wb_json_type(b) == WB_JSON_OBJECT) {
        for (void *it = wb_json_first(a); it != NULL; it = wb_json_next(a, it)) {
            const char *key = wb_json_iter_key(it);
            walk_member(out, field, key, wb_json_iter_value(it), wb_json_get(b, key), row, most);
        }
        for (void *it = wb_json_first(b); it != NULL; it = wb_json_next(b, it)) {
            const char *key = wb_json_iter_key(it);
            if (wb_json_get(a, key) == NULL)
                walk_member(out, field, key, NULL, wb_json_iter_value(it), row, most);
        }
    } else if (wb_json_type(a) == WB_JSON_ARRAY && wb_json_type(b) == WB_JSON_ARRAY) {
        walk_elements(out, field, a, b, row, most);
    } else {
        add_difference(out, field, a, b, row);
    }
}

static bool is_compared(const char *field, const char *const *compared)
{
    for (size_t i = 0; compared != NULL && compared[i] != NULL; i++)
        if (strcmp(compared[i], field) == 0)
            return true;
    return false;
}

wb_json *wb_guard_differences(const struct wb_side *a, const struct wb_side *b,
                              const char *const *compared)
{
    wb_json *out = wb_json_array();

    for (size_t i = 0; i < WB_LEN(fields); i++) {
        const wb_json *x = wb_json_path(part_of(a, fields[i].part), fields[i].path);
        const wb_json *y = wb_json_path(part_of(b, fields[i].part), fields[i].path);
        if (wb_json_type(x) == WB_JSON_NULL || wb_json_type(y) == WB_JSON_NULL ||
            is_compared(fields[i].field, compared))
            continue;
        walk(out, fields[i].field, x, y, i, wb_json_len(out) + PLACES_MAX);
    }
    return out;
}
