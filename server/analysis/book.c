#include "server/analysis/book.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/price.h"
#include "server/base/clock.h"
#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define BOOK_MAX (1u << 20)

struct head {
    char *name, *date, *currency, *source;
    const struct wb_node *hosts;
};

struct row {
    char *class;
    double per_hour, purchase, years, power_w, per_kwh; /* below 0: not given */
};

static const struct wb_field head_fields[] = {
    {"book", WB_F_TEXT, true, offsetof(struct head, name), 0, 0, NULL, "name of the book"},
    {"date", WB_F_TEXT, true, offsetof(struct head, date), 0, 0, NULL, "day of the prices"},
    {"currency", WB_F_TEXT, true, offsetof(struct head, currency), 0, 0, NULL, "such as EUR"},
    {"source", WB_F_TEXT, true, offsetof(struct head, source), 0, 0, NULL, "where they are from"},
    {"hosts", WB_F_NODE, true, offsetof(struct head, hosts), 0, 0, NULL, "prices of host classes"},
};

static const struct wb_field row_fields[] = {
    {"class", WB_F_TEXT, true, offsetof(struct row, class), 0, 0, NULL, "host class of records"},
    {"per_hour", WB_F_REAL, false, offsetof(struct row, per_hour), 1e-9, 1e12, NULL, "price"},
    {"purchase", WB_F_REAL, false, offsetof(struct row, purchase), 0, 1e12, NULL, "paid once"},
    {"years", WB_F_REAL, false, offsetof(struct row, years), 0.01, 100, NULL, "written off over"},
    {"power_w", WB_F_REAL, false, offsetof(struct row, power_w), 0, 1e9, NULL, "drawn on average"},
    {"per_kwh", WB_F_REAL, false, offsetof(struct row, per_kwh), 0, 1e6, NULL, "price of power"},
};

/* Digits where d stands. */
static bool looks_like(const char *s, const char *form)
{
    size_t n = strlen(form);

    if (strlen(s) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
            return false;
    return true;
}

/* A day that there is. */
static bool is_day(const char *text)
{
    WB_AUTO_FREE char *midnight = wb_strf("%.16sT00:00:00Z", text);
    int64_t ms;

    return looks_like(text, "dddd-dd-dd") && wb_parse_time(midnight, &ms, NULL) == 0;
}

static void check_head(const struct head *h, const struct wb_node *root, struct wb_problems *p)
{
    if (h->date != NULL && !is_day(h->date))
        wb_problem(p, wb_node_get(root, "date"), "bad-value",
                   "date '%s' must be a day such as 2026-11-01", h->date);
    if (h->currency != NULL &&
        (strlen(h->currency) != 3 || strspn(h->currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3))
        wb_problem(p, wb_node_get(root, "currency"), "bad-value",
                   "currency '%s' must be three capital letters such as EUR", h->currency);
    if (h->hosts != NULL && (h->hosts->kind != WB_NODE_LIST || h->hosts->n == 0))
        wb_problem(p, h->hosts, "wrong-type",
                   "hosts must be a list of {class, per_hour} or {class, purchase, years, power_w, "
                   "per_kwh}");
}

static void read_row(const struct wb_node *node, struct wb_book_host *out, struct wb_problems *p)
{
    struct row r = {NULL, -1, -1, -1, -1, -1};
    bool owned, priced;

    if (wb_fields_read(node, "host", row_fields, WB_LEN(row_fields), &r, p) == 0) {
        owned = r.purchase >= 0;
        priced = r.per_hour >= 0;
        if (owned == priced)
            wb_problem(p, node, "bad-value",
                       "give per_hour, or purchase with years, for '%s'; not %s", r.class,
                       owned ? "both" : "neither");
        else if (owned && r.years < 0)
            wb_problem(p, node, "missing", "purchase needs years, over which it is written off");
        else if (priced && (r.years >= 0 || r.power_w >= 0 || r.per_kwh >= 0))
            wb_problem(p, node, "bad-value", "years, power_w and per_kwh go with purchase");
        else if ((r.power_w >= 0) != (r.per_kwh >= 0))
            wb_problem(p, node, "missing", "power_w and per_kwh go together");
        out->owned = owned;
        out->per_hour = r.per_hour;
        if (owned && r.years > 0)
            out->per_hour = wb_owned_per_hour(&(struct wb_owned_price){
                r.purchase, r.years, fmax(r.power_w, 0), fmax(r.per_kwh, 0)});
    }
    out->class = r.class;
}

static void check_twice(const struct wb_book *b, const struct wb_node *hosts, struct wb_problems *p)
{
    for (size_t i = 0; i < b->nhosts; i++)
        for (size_t k = 0; k < i; k++)
            if (b->hosts[i].class != NULL && b->hosts[k].class != NULL &&
                strcmp(b->hosts[i].class, b->hosts[k].class) == 0)
                wb_problem(p, hosts->items[i], "duplicate", "class '%s' is there twice",
                           b->hosts[i].class);
}

static int first_problem(const struct wb_problems *p, struct wb_err *err)
{
    const struct wb_problem *first = &p->v[0];
    size_t more = p->n - 1 + p->dropped;
    WB_AUTO_FREE char *rest = more > 0 ? wb_strf(" (and %zu more)", more) : wb_strdup("");

    return wb_fail(err, WB_INVALID, "%s:%d: %s: %s%s", first->file ? first->file : "book",
                   first->line, first->pointer ? first->pointer : "", first->message, rest);
}

int wb_book_parse(const char *file, const char *text, size_t n, struct wb_book *out,
                  struct wb_err *err)
{
    struct wb_problems p = {.file = file};
    struct wb_node *root = wb_yaml_check(text, n, &p);
    struct wb_book b = {0};
    struct head h = {0};
    int rc = 0;

    if (root != NULL) {
        (void)wb_fields_read(root, "price book", head_fields, WB_LEN(head_fields), &h, &p);
        check_head(&h, root, &p);
        b = (struct wb_book){h.name, h.date, h.currency, h.source, NULL, 0};
        if (h.hosts != NULL && h.hosts->kind == WB_NODE_LIST) {
            b.hosts = wb_calloc(h.hosts->n, sizeof(*b.hosts));
            b.nhosts = h.hosts->n;
            for (size_t i = 0; i < b.nhosts; i++)
                read_row(h.hosts->items[i], &b.hosts[i], &p);
            check_twice(&b, h.hosts, &p);
        }
    }
    if (p.n > 0) {
        wb_problems_sort(&p, 0);
        rc = first_problem(&p, err);
        wb_book_release(&b);
    } else {
        *out = b;
    }
    wb_problems_release(&p);
    wb_node_free(root);
    return rc;
}

int wb_book_read(const char *path, struct wb_book *out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    size_t n;
    int rc = wb_file_read(path, BOOK_MAX, &text, &n, err);

    return rc < 0 ? rc : wb_book_parse(path, text, n, out, err);
}

void wb_book_release(struct wb_book *b)
{
    for (size_t i = 0; i < b->nhosts; i++)
        free(b->hosts[i].class);
    free(b->hosts);
    free(b->name);
    free(b->date);
    free(b->currency);
    free(b->source);
    *b = (struct wb_book){0};
}

const struct wb_book_host *wb_book_find(const struct wb_book *b, const char *class)
{
    const struct wb_book_host *best = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < b->nhosts; i++) {
        const char *c = b->hosts[i].class;
        size_t n = strlen(c);
        if (strcmp(c, class) == 0)
            return &b->hosts[i];
        if (n > 0 && c[n - 1] == '*' && strncmp(c, class, n - 1) == 0 && n > longest) {
            best = &b->hosts[i];
            longest = n;
        }
    }
    return best;
}
