/*
 * Random sets of runs with ties, zeros and repeats, and what `stats` answers to them, as R source:
 * a list `sets` for analysis_r.R to recompute. Seeded: the same sets on every machine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/topics.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define N_MAX 30

struct values {
    double v[N_MAX];
    size_t n;
};

static double normal(struct wb_rng *r)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += wb_rng_unit(r);
    return sum - 6;
}

/* Runs around 100: smooth, rounded so that there are ties, or small counts with zeros. */
static double draw(struct wb_rng *r, int kind, double shift)
{
    double v = 100 * (1 + 0.05 * normal(r)) * (1 + shift);

    return kind == 0 ? v : kind == 1 ? round(v / 4) * 4 : (double)wb_rng_below(r, 5);
}

static wb_json *list_of(const struct values *v)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < v->n; i++)
        wb_json_push(list, wb_json_real(v->v[i]));
    return list;
}

static void print_values(const char *name, const struct values *v)
{
    printf(", %s=c(", name);
    for (size_t i = 0; i < v->n; i++)
        printf("%s%.17g", i == 0 ? "" : ",", v->v[i]);
    putchar(')');
}

static void print_figure(const char *name, const wb_json *out, const char *path)
{
    const wb_json *j = wb_json_path(out, path);

    if (wb_json_is_number(j))
        printf(", %s=%.17g", name, wb_json_number(j, 0));
    else
        printf(", %s=NA", name);
}

static wb_json *ask(const char *topic, wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_topic_find(topic)->answer(in, &out, &err) < 0) {
        (void)fprintf(stderr, "analysis_sets: %s: %s\n", topic, err.root);
        exit(1);
    }
    wb_json_free(in);
    return out;
}

static void compare_set(struct wb_rng *r, int i, bool paired)
{
    int kind = i % 3;
    double shift = 0.1 * (wb_rng_unit(r) - 0.5);
    struct values base = {.n = 4 + wb_rng_below(r, i % 2 ? 3 : N_MAX - 4)};
    struct values other = {.n = paired ? base.n : 4 + wb_rng_below(r, i % 2 ? 3 : N_MAX - 4)};
    wb_json *in = wb_json_object(), *out;
    const char *change;

    for (size_t k = 0; k < base.n; k++)
        base.v[k] = draw(r, kind, 0);
    for (size_t k = 0; k < other.n; k++)
        other.v[k] =
            paired && kind > 0 && wb_rng_below(r, 6) == 0 ? base.v[k] : draw(r, kind, shift);
    wb_json_set(in, paired ? "rounds_base" : "base", list_of(&base));
    wb_json_set(in, paired ? "rounds_new" : "new", list_of(&other));
    wb_json_set_str(in, "better", "higher");
    out = ask("compare", in);
    change = wb_json_type(wb_json_get(out, "ratio")) == WB_JSON_OBJECT ? "ratio" : "difference";
    printf("list(kind=\"%s\", scale=\"%s\"", paired ? "paired" : "unpaired", change);
    print_values("base", &base);
    print_values("new", &other);
    print_figure("p", out, "p");
    for (int k = 0; k < 3; k++) {
        static const char *const names[] = {"estimate", "lo", "hi"};
        WB_AUTO_FREE char *path = wb_strf("%s.%s", change, names[k]);
        print_figure(names[k], out, path);
    }
    printf("),\n");
    wb_json_free(out);
}

static void adjust_set(struct wb_rng *r)
{
    struct values p = {.n = 1 + wb_rng_below(r, N_MAX - 1)}, q;
    wb_json *in = wb_json_object(), *out;
    const wb_json *got;

    for (size_t k = 0; k < p.n; k++) /* with ties, zeros and ones */
        p.v[k] =
            wb_rng_below(r, 3) == 0 ? (double)wb_rng_below(r, 11) / 10 : pow(wb_rng_unit(r), 3);
    wb_json_set(in, "p", list_of(&p));
    out = ask("adjust", in);
    got = wb_json_get(out, "q");
    q.n = wb_json_len(got);
    for (size_t k = 0; k < q.n; k++)
        q.v[k] = wb_json_number(wb_json_at(got, k), NAN);
    printf("list(kind=\"adjust\"");
    print_values("p", &p);
    print_values("q", &q);
    printf("),\n");
    wb_json_free(out);
}

static void scaling_set(struct wb_rng *r)
{
    struct values n = {.n = 7 + wb_rng_below(r, 12)}, x = {.n = n.n};
    double sigma = 0.2 * wb_rng_unit(r), kappa = pow(10, -5 + 3 * wb_rng_unit(r));
    double lambda = pow(10, 6 * wb_rng_unit(r)), noise = 0.05 * wb_rng_unit(r);
    wb_json *in = wb_json_object(), *out;

    for (size_t k = 0; k < n.n; k++) {
        double at = k < 5 ? (double)(1 << k) : (double)(1 + wb_rng_below(r, 100));
        n.v[k] = at;
        x.v[k] =
            lambda * at / (1 + sigma * (at - 1) + kappa * at * (at - 1)) * (1 + noise * normal(r));
    }
    wb_json_set(in, "concurrency", list_of(&n));
    wb_json_set(in, "throughput", list_of(&x));
    out = ask("scaling", in);
    printf("list(kind=\"scaling\"");
    print_values("n", &n);
    print_values("x", &x);
    print_figure("sigma", out, "sigma");
    print_figure("kappa", out, "kappa");
    print_figure("lambda", out, "lambda");
    print_figure("rss", out, "rss");
    printf("),\n");
    wb_json_free(out);
}

int main(void)
{
    struct wb_rng r;

    wb_rng_seed(&r, 20260101);
    printf("sets <- list(\n");
    for (int i = 0; i < 180; i++)
        compare_set(&r, i, false);
    for (int i = 0; i < 180; i++)
        compare_set(&r, i, true);
    for (int i = 0; i < 70; i++)
        adjust_set(&r);
    for (int i = 0; i < 70; i++)
        scaling_set(&r);
    printf("NULL)\n");
    return 0;
}
