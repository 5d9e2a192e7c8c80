/* Reading throughput intervals. */
#include "server/analysis/intervals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"

#define MOMENT 1e-6 /* seconds that are no difference */

static const char *const known_keys[] = {"interval_s", "throughput", "t_s",       "seconds",
                                         "ops",        "ops_per_s",  "warm_up_s", "measured_s",
                                         "unit",       "name",       NULL};

/* The columns as they were read; at most one of throughput and ops is there. */
struct columns {
    struct wb_numbers t, seconds, ops, rate;
    double interval;
};

static void columns_release(struct columns *c)
{
    wb_numbers_release(&c->t);
    wb_numbers_release(&c->seconds);
    wb_numbers_release(&c->ops);
    wb_numbers_release(&c->rate);
}

static int read_column(const wb_json *in, const char *key, struct wb_numbers *out,
                       struct wb_err *err)
{
    if (wb_json_type(wb_json_get(in, key)) == WB_JSON_NULL)
        return 0;
    return wb_in_values(in, "", key, WB_INTERVALS_MAX, out, err);
}

static int same_length(const struct wb_numbers *a, size_t n, const char *key, const char *other,
                       struct wb_err *err)
{
    if (a->n == n)
        return 0;
    return wb_fail(err, WB_INVALID, "/%s: has %zu values, %s has %zu", key, a->n, other, n);
}

/* All of a list that must be known. */
static int need_all(const struct wb_numbers *a, const char *key, double lo, struct wb_err *err)
{
    for (size_t i = 0; i < a->n; i++)
        if (!(a->v[i] >= lo))
            return wb_fail(err, WB_INVALID, "/%s/%zu: must be a number from %g on", key, i, lo);
    return 0;
}

static int read_columns(const wb_json *in, struct columns *c, struct wb_err *err)
{
    struct wb_numbers interval = {0};
    int rc = read_column(in, "interval_s", &interval, err);

    c->interval = rc == 0 && interval.n > 0 ? interval.v[0] : 1;
    wb_numbers_release(&interval);
    if (rc == 0 && !(c->interval > 0 && c->interval <= 1e6))
        return wb_fail(err, WB_INVALID, "/interval_s: must be a number above 0, at most 1e6");
    if (rc < 0 || read_column(in, "t_s", &c->t, err) < 0 ||
        read_column(in, "seconds", &c->seconds, err) < 0 ||
        read_column(in, "ops", &c->ops, err) < 0 ||
        read_column(in, wb_json_get(in, "ops_per_s") ? "ops_per_s" : "throughput", &c->rate, err) <
            0)
        return -WB_INVALID;
    if ((c->ops.v != NULL) == (c->rate.v != NULL))
        return wb_fail(err, WB_INVALID,
                       "/throughput: give throughput (or ops_per_s), or ops with seconds");
    if (c->ops.v != NULL && c->seconds.v == NULL)
        return wb_fail(err, WB_INVALID,
                       "/seconds: is missing: ops need the length of each "
                       "interval");
    return 0;
}

static int check_columns(const struct columns *c, struct wb_err *err)
{
    const struct wb_numbers *main = c->ops.v != NULL ? &c->ops : &c->rate;
    const char *key = c->ops.v != NULL ? "ops" : "throughput";

    if (c->t.v != NULL && (same_length(&c->t, main->n, "t_s", key, err) < 0 ||
                           need_all(&c->t, "t_s", -WB_SIZE_MOST, err) < 0))
        return -WB_INVALID;
    if (c->seconds.v != NULL && (same_length(&c->seconds, main->n, "seconds", key, err) < 0 ||
                                 need_all(&c->seconds, "seconds", MOMENT, err) < 0))
        return -WB_INVALID;
    for (size_t i = 0; i < main->n; i++)
        if (main->v[i] < 0)
            return wb_fail(err, WB_INVALID, "/%s/%zu: must not be below 0", key, i);
    for (size_t i = 1; i < c->t.n; i++)
        if (!(c->t.v[i] > c->t.v[i - 1]))
            return wb_fail(err, WB_INVALID, "/t_s/%zu: must be later than the one before", i);
    return 0;
}

/* Whether t names the ends of the intervals: where the lengths differ they tell, else the first
 * one does. */
static bool names_ends(const struct columns *c)
{
    double as_begin = 0, as_end = 0;

    for (size_t i = 0; i + 1 < c->t.n; i++) {
        double step = c->t.v[i + 1] - c->t.v[i];
        as_begin += fabs(step - c->seconds.v[i]) > MOMENT * step;
        as_end += fabs(step - c->seconds.v[i + 1]) > MOMENT * step;
    }
    if (as_begin != as_end)
        return as_end < as_begin;
    return c->t.n > 0 && c->t.v[0] > c->seconds.v[0] / 2;
}

/* Lengths where only the times are given: to the one before; the first is as long as what lies
 * before it when it is the end of that, else as the second. */
static void lengths_of_times(struct columns *c)
{
    size_t n = c->t.n;
    bool ends = n > 1 && c->t.v[0] > (c->t.v[1] - c->t.v[0]) / 2;

    c->seconds = (struct wb_numbers){.v = wb_calloc(n, sizeof(double)), .n = n};
    for (size_t i = 0; i < n; i++) {
        if (ends)
            c->seconds.v[i] =
                i > 0 ? c->t.v[i] - c->t.v[i - 1] : fmin(c->t.v[0], c->t.v[1] - c->t.v[0]);
        else
            c->seconds.v[i] = i + 1 < n ? c->t.v[i + 1] - c->t.v[i]
                              : n > 1   ? c->t.v[i] - c->t.v[i - 1]
                                        : c->interval;
    }
}

static void fill(struct columns *c, struct wb_intervals *out)
{
    const struct wb_numbers *main = c->ops.v != NULL ? &c->ops : &c->rate;
    bool ends;
    double now = 0;

    if (c->t.v != NULL && c->seconds.v == NULL)
        lengths_of_times(c);
    ends = c->t.v != NULL && names_ends(c);
    *out = (struct wb_intervals){.from = wb_calloc(main->n, sizeof(double)),
                                 .seconds = wb_calloc(main->n, sizeof(double)),
                                 .rate = wb_calloc(main->n, sizeof(double))};
    for (size_t i = 0; i < main->n; i++) {
        double length = c->seconds.v != NULL ? c->seconds.v[i] : c->interval;
        double from = c->t.v == NULL ? now : ends ? c->t.v[i] - length : c->t.v[i];
        now = from + length;
        if (isnan(main->v[i]))
            continue;
        out->from[out->n] = from;
        out->seconds[out->n] = length;
        out->rate[out->n++] = c->ops.v != NULL ? main->v[i] / length : main->v[i];
    }
}

int wb_intervals_read(const wb_json *in, struct wb_intervals *out, wb_json *warnings,
                      struct wb_err *err)
{
    struct columns c = {.interval = 1};
    int rc = wb_in_object(in, "throughput, or t_s, seconds and ops", err);

    if (rc == 0)
        rc = read_columns(in, &c, err);
    if (rc == 0)
        rc = check_columns(&c, err);
    if (rc == 0) {
        wb_in_known(in, "", known_keys, warnings);
        fill(&c, out);
    }
    columns_release(&c);
    return rc;
}

void wb_intervals_release(struct wb_intervals *v)
{
    free(v->from);
    free(v->seconds);
    free(v->rate);
    *v = (struct wb_intervals){0};
}

struct wb_intervals wb_intervals_window(const struct wb_intervals *v, double from, double to)
{
    size_t a = 0, b = v->n;

    while (a < v->n && v->from[a] < from - MOMENT)
        a++;
    while (b > a && v->from[b - 1] + v->seconds[b - 1] > to + MOMENT)
        b--;
    return (struct wb_intervals){
        .from = v->from + a, .seconds = v->seconds + a, .rate = v->rate + a, .n = b - a};
}

double wb_intervals_mean(const struct wb_intervals *v)
{
    double ops = 0, seconds = 0;

    for (size_t i = 0; i < v->n; i++) {
        ops += v->rate[i] * v->seconds[i];
        seconds += v->seconds[i];
    }
    return v->n > 0 ? ops / seconds : NAN;
}

double wb_intervals_end(const struct wb_intervals *v)
{
    return v->n > 0 ? v->from[v->n - 1] + v->seconds[v->n - 1] : NAN;
}

struct wb_intervals wb_intervals_joined(const struct wb_intervals *v, size_t per)
{
    size_t groups = v->n / per > 0 ? v->n / per : 1;
    struct wb_intervals out = {.from = wb_calloc(groups, sizeof(double)),
                               .seconds = wb_calloc(groups, sizeof(double)),
                               .rate = wb_calloc(groups, sizeof(double)),
                               .n = v->n > 0 ? groups : 0};

    for (size_t g = 0; g < out.n; g++) {
        size_t a = g * per, b = g + 1 < groups ? a + per : v->n;
        struct wb_intervals part = {
            .from = v->from + a, .seconds = v->seconds + a, .rate = v->rate + a, .n = b - a};
        out.from[g] = v->from[a];
        out.rate[g] = wb_intervals_mean(&part);
        for (size_t i = a; i < b; i++)
            out.seconds[g] += v->seconds[i];
    }
    return out;
}
