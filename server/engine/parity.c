#include "server/engine/parity.h"

#include <string.h>

#define NAMED_MAX 6

/* Whether a field has one of these names or lies below one. */
static bool is_named(const char *field, const char *const *names)
{
    for (; names && *names; names++) {
        size_t n = strlen(*names);

        if (!strncmp(field, *names, n) && (field[n] == '\0' || field[n] == '.'))
            return true;
    }
    return false;
}

static void add(wb_json *list, const char *field, const char *here, const char *there, bool allowed)
{
    wb_json *d = wb_json_object();

    wb_json_set_str(d, "field", field);
    wb_json_set_str(d, "here", here);
    wb_json_set_str(d, "there", there);
    wb_json_set_bool(d, "allowed", allowed);
    wb_json_push(list, d);
}

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

wb_json *wb_parity_compare(const wb_json *here, const wb_json *there, char *const *allowed,
                           const char *const *asked)
{
    const char *const *names = (const char *const *)allowed;
    wb_json *list = wb_json_array();

    for (void *it = wb_json_first(here); it; it = wb_json_next(here, it)) {
        const char *field = wb_json_iter_key(it);
        const char *a = wb_json_string(wb_json_iter_value(it));
        const char *b = wb_json_str_or(there, field, NULL);

        if (!same(a, b))
            add(list, field, a, b, is_named(field, names) || is_named(field, asked));
    }
    for (void *it = wb_json_first(there); it; it = wb_json_next(there, it)) {
        const char *field = wb_json_iter_key(it);
        const char *b = wb_json_string(wb_json_iter_value(it));

        if (b && !wb_json_get(here, field))
            add(list, field, NULL, b, is_named(field, names) || is_named(field, asked));
    }
    return list;
}

static void add_value(struct wb_buf *b, const char *value)
{
    if (value)
        wb_buf_addf(b, "'%.60s'", value);
    else
        wb_buf_adds(b, "nothing");
}

int wb_parity_check(const wb_json *differences, const char *here, const char *there,
                    struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    size_t bad = 0;
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(differences); i++) {
        const wb_json *d = wb_json_at(differences, i);

        if (wb_json_bool_or(d, "allowed", false) || ++bad > NAMED_MAX)
            continue;
        wb_buf_addf(&b, "%s%s (", bad > 1 ? ", " : "", wb_json_str_or(d, "field", "?"));
        add_value(&b, wb_json_str_or(d, "here", NULL));
        wb_buf_adds(&b, " against ");
        add_value(&b, wb_json_str_or(d, "there", NULL));
        wb_buf_addc(&b, ')');
    }
    if (bad > NAMED_MAX)
        wb_buf_addf(&b, " and %zu more", bad - NAMED_MAX);
    if (bad)
        rc = wb_fail(err, WB_CONFLICT,
                     "%s differs from %s in %s, which is not among the recipe's "
                     "allowed_differences",
                     here, there, wb_buf_str(&b));
    wb_buf_release(&b);
    return rc;
}
