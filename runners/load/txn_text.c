/* Texts of composite transactions, as transactions.h says. Needs nothing of a run: studies are
 * checked by it, too. */
#include <string.h>

#include "runners/load/transactions.h"
#include "server/base/mem.h"
#include "server/base/units.h"

/* "10..100" or "3". */
static int read_repeats(const char *s, size_t n, struct wb_txn_step *step, struct wb_err *err)
{
    WB_AUTO_FREE char *text = wb_strndup(s, n);
    char *dots = strstr(text, "..");
    int rc;

    if (dots)
        *dots = '\0';
    rc = wb_parse_int(text, 1, WB_TXN_REPEAT_MAX, &step->least, err);
    step->most = step->least;
    if (rc == 0 && dots)
        rc = wb_parse_int(dots + 2, step->least, WB_TXN_REPEAT_MAX, &step->most, err);
    return rc;
}

static int read_step(const char *s, size_t n, struct wb_txn_step *step, struct wb_err *err)
{
    size_t sign = strcspn(s, "*&"), at;

    *step = (struct wb_txn_step){.least = 1, .most = 1};
    if (sign < n) {
        int rc = read_repeats(s, sign, step, err);
        if (rc < 0)
            return rc;
        step->at_once = s[sign] == '&';
        s += sign + 1;
        n -= sign + 1;
    }
    at = strcspn(s, "@");
    if (at < n) {
        if (n - at != 8 || strncmp(s + at, "@derived", 8) != 0)
            return wb_fail(err, WB_INVALID, "'%.*s': behind @ stands derived", (int)n, s);
        step->derived = true;
        n = at;
    }
    if (n == 0 || n >= sizeof(step->op))
        return wb_fail(err, WB_INVALID, "'%.*s' is not the name of an operation", (int)n, s);
    memcpy(step->op, s, n);
    return 0;
}

static int read_kind(const char *s, size_t n, struct wb_txn_kind *kind, struct wb_err *err)
{
    size_t name = strcspn(s, "=");

    *kind = (struct wb_txn_kind){.nsteps = 0};
    if (name >= n || name == 0 || name >= sizeof(kind->name))
        return wb_fail(err, WB_INVALID, "'%.*s' is not NAME=STEP[,STEP...]", (int)n, s);
    memcpy(kind->name, s, name);
    for (size_t at = name + 1; at <= n;) {
        size_t len = strcspn(s + at, ",;");
        int rc;
        if (kind->nsteps == WB_TXN_STEPS_MAX)
            return wb_fail(err, WB_LIMIT, "%s has more than %d steps", kind->name,
                           WB_TXN_STEPS_MAX);
        rc = read_step(s + at, len, &kind->step[kind->nsteps++], err);
        if (rc < 0)
            return wb_wrap(err, "step %d of %s", kind->nsteps, kind->name);
        at += len + 1;
    }
    return 0;
}

int wb_txn_parse(const char *text, struct wb_txn_kind *kind, int *n, struct wb_err *err)
{
    int count = 0;

    for (const char *s = text;;) {
        size_t len;
        int rc;
        s += strspn(s, " ");
        len = strcspn(s, ";");
        if (count == WB_TXN_KINDS_MAX)
            return wb_fail(err, WB_LIMIT, "transactions: more than %d", WB_TXN_KINDS_MAX);
        rc = read_kind(s, len, &kind[count], err);
        if (rc < 0)
            return wb_wrap(err, "transactions");
        for (int i = 0; i < count; i++)
            if (strcmp(kind[i].name, kind[count].name) == 0)
                return wb_fail(err, WB_INVALID, "transactions: '%s' stands there twice",
                               kind[i].name);
        count++;
        s += len;
        if (!*s)
            break;
        s++;
    }
    *n = count;
    return 0;
}

int wb_txn_join(const struct wb_node *map, struct wb_buf *out, struct wb_err *err)
{
    if (map->kind != WB_NODE_MAP || map->n == 0)
        return wb_fail(err, WB_INVALID,
                       "transactions must be a map such as {login: [get, 10..100*get@derived]}");
    for (size_t i = 0; i < map->n; i++) {
        const struct wb_node *steps = map->items[i];

        if (steps->kind != WB_NODE_LIST || steps->n == 0)
            return wb_fail(err, WB_INVALID, "transactions: %s must be a list of steps", steps->key);
        wb_buf_addf(out, "%s%s=", i ? "; " : "", steps->key);
        for (size_t k = 0; k < steps->n; k++) {
            const char *step = steps->items[k]->text;

            if (!step || strpbrk(step, ",;"))
                return wb_fail(err, WB_INVALID,
                               "transactions: step %zu of %s must be a text such as 10..100*get",
                               k + 1, steps->key);
            wb_buf_addf(out, "%s%s", k ? "," : "", step);
        }
    }
    return wb_buf_check(out, "transactions", err);
}
