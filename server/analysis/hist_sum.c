#include "server/analysis/hist_sum.h"

#include <math.h>
#include <stdlib.h>

#include "server/base/mem.h"

#define LOG_DIGITS 3
#define NO_BUCKET UINT32_MAX

static bool is_empty(const struct wb_hist_sum *s)
{
    return s->shape.ncounts == 0;
}

int wb_hist_sum_fix(struct wb_hist_sum *s, int64_t lowest, int64_t highest, int digits,
                    struct wb_err *err)
{
    int rc = wb_hist_shape(&s->shape, lowest, highest, digits, err);

    if (rc == 0) {
        s->counts = wb_calloc(s->shape.ncounts, sizeof(*s->counts));
        s->fixed = true;
    }
    return rc;
}

void wb_hist_sum_release(struct wb_hist_sum *s)
{
    free(s->counts);
    free(s->map);
    *s = (struct wb_hist_sum){0};
}

/* Where the bucket of one shape belongs in another one. */
static uint32_t place(const struct wb_hist *from, uint32_t index, const struct wb_hist *to)
{
    int64_t v = wb_hist_lower(from, index);

    return v > to->highest ? NO_BUCKET : wb_hist_index(to, v);
}

static void move_counts(struct wb_hist_sum *s, const struct wb_hist *shape)
{
    uint64_t *counts = wb_calloc(shape->ncounts, sizeof(*counts));

    for (uint32_t i = 0; i < s->shape.ncounts; i++)
        if (s->counts[i] > 0)
            counts[place(&s->shape, i, shape)] += s->counts[i];
    free(s->counts);
    free(s->map);
    s->counts = counts;
    s->map = NULL;
    s->shape = *shape;
}

/* Makes the parameters fit what has the shape of other. */
static int fit(struct wb_hist_sum *s, const struct wb_hist *other, struct wb_err *err)
{
    struct wb_hist shape;
    int64_t lowest = other->lowest, highest = other->highest;
    int digits = other->digits, rc;

    if (s->fixed || (!is_empty(s) && wb_hist_same_shape(&s->shape, other)))
        return 0;
    if (s->log) {
        lowest = 1;
        digits = digits < LOG_DIGITS ? LOG_DIGITS : digits;
    }
    if (!is_empty(s)) {
        lowest = s->shape.lowest < lowest ? s->shape.lowest : lowest;
        highest = s->shape.highest > highest ? s->shape.highest : highest;
        digits = s->shape.digits < digits ? s->shape.digits : digits;
        if (lowest == s->shape.lowest && highest == s->shape.highest && digits == s->shape.digits)
            return 0;
    }
    rc = wb_hist_shape(&shape, lowest, highest, digits, err);
    if (rc == 0)
        move_counts(s, &shape);
    return rc;
}

static void make_map(struct wb_hist_sum *s, const struct wb_hist *from)
{
    if (s->map != NULL && wb_hist_same_shape(&s->mapped, from))
        return;
    free(s->map);
    s->map = wb_calloc(from->ncounts, sizeof(*s->map));
    s->mapped = *from;
    for (uint32_t i = 0; i < from->ncounts; i++)
        s->map[i] = place(from, i, &s->shape);
}

static void add_over(struct wb_hist_sum *s, int64_t v, uint64_t n)
{
    s->counts[wb_hist_index(&s->shape, s->shape.highest)] += n;
    s->over += n;
    s->over_max = v > s->over_max ? v : s->over_max;
}

static int begin(struct wb_hist_sum *s, const struct wb_hist *shape, uint64_t total,
                 struct wb_err *err)
{
    int rc;

    if (s->total > INT64_MAX - total)
        return wb_fail(err, WB_LIMIT, "the counts add up to more than 2^63");
    rc = fit(s, shape, err);
    if (rc == 0)
        s->total += total;
    return rc;
}

int wb_hist_sum_add(struct wb_hist_sum *s, const struct wb_hist_reader *r, struct wb_err *err)
{
    int rc = begin(s, &r->shape, r->shape.total, err);

    if (rc < 0)
        return rc;
    if (wb_hist_same_shape(&s->shape, &r->shape)) {
        for (size_t i = 0; i < r->n; i++)
            s->counts[r->cells[i].index] += r->cells[i].count;
        return 0;
    }
    make_map(s, &r->shape);
    for (size_t i = 0; i < r->n; i++) {
        const struct wb_hist_cell *c = &r->cells[i];
        if (s->map[c->index] == NO_BUCKET)
            add_over(s, wb_hist_lower(&r->shape, c->index), c->count);
        else
            s->counts[s->map[c->index]] += c->count;
    }
    return 0;
}

int wb_hist_sum_join(struct wb_hist_sum *s, const struct wb_hist_sum *other, struct wb_err *err)
{
    int rc = is_empty(other) ? 0 : begin(s, &other->shape, other->total, err);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < other->shape.ncounts; i++)
        if (other->counts[i] > 0)
            s->counts[place(&other->shape, i, &s->shape)] += other->counts[i];
    return 0;
}

void wb_hist_sum_make(const struct wb_hist_sum *s, struct wb_hist *out)
{
    bool empty = is_empty(s);

    if (wb_hist_init(out, empty ? 1 : s->shape.lowest, empty ? 2 : s->shape.highest,
                     empty ? 0 : s->shape.digits, NULL) < 0)
        abort(); /* the parameters were checked when the shape was made */
    for (uint32_t i = 0; i < s->shape.ncounts; i++)
        if (s->counts[i] > 0)
            wb_hist_count_bucket(out, i, s->counts[i]);
    out->over = s->over;
    out->max = s->over_max > out->max ? s->over_max : out->max;
}

int64_t wb_hist_java_percentile(const struct wb_hist *h, double p)
{
    double exact = nextafter(p, -INFINITY) * (double)h->total / 100.0;
    uint64_t rank = exact >= (double)h->total ? h->total : exact > 1 ? (uint64_t)ceil(exact) : 1;
    uint64_t seen = 0;

    for (uint32_t i = wb_hist_index(h, h->min < h->highest ? h->min : h->highest); i < h->ncounts;
         i++) {
        seen += wb_hist_count_at(h, i);
        if (seen >= rank)
            return p <= 0 ? wb_hist_lower(h, i) : wb_hist_upper(h, i);
    }
    return h->max;
}

static void set_percentiles(const struct wb_hist *h, const double *ps, size_t n, wb_json *o)
{
    wb_json *list = wb_json_object();

    for (size_t i = 0; i < n; i++) {
        WB_AUTO_FREE char *key = wb_strf("%.12g", ps[i]);
        wb_json_set_int(list, key, wb_hist_java_percentile(h, ps[i]));
    }
    wb_json_set(o, "percentiles", list);
}

void wb_hist_figures(const struct wb_hist *h, const double *ps, size_t n, wb_json *o)
{
    static const char *const keys[] = {"min", "max", "mean", "stddev", "percentiles"};

    wb_json_set_int(o, "count", (int64_t)h->total);
    if (h->total == 0) {
        for (size_t i = 0; i < WB_LEN(keys); i++)
            wb_json_set_reason(o, keys[i], "no samples");
        return;
    }
    wb_json_set_int(o, "min", h->min);
    wb_json_set_int(o, "max", h->max);
    wb_json_set_real(o, "mean", wb_hist_mean(h));
    wb_json_set_real(o, "stddev", wb_hist_stddev(h));
    set_percentiles(h, ps, n, o);
}
