/*
 * What must hold for any input of a topic: the order of values says nothing, a change of unit goes
 * through, what is said of two sides turns round with them, and doubled data says the same again.
 */
#include "tests/unit/analysis/topic_check.h"

#include "server/base/rng.h"

#define TRIALS 40
#define MOST 40

struct values {
    double v[MOST];
    size_t n;
};

/* Around 100, all different, n of them. */
static struct values draw(struct wb_rng *r, size_t n)
{
    struct values out = {.n = n};

    for (size_t i = 0; i < n; i++)
        out.v[i] = 100 * (1 + 0.1 * (wb_rng_unit(r) - 0.5));
    return out;
}

static struct values shuffled(const struct values *in, struct wb_rng *r)
{
    struct values out = {.n = in->n};
    int order[MOST];

    for (size_t i = 0; i < in->n; i++)
        order[i] = (int)i;
    wb_rng_shuffle(r, order, in->n);
    for (size_t i = 0; i < in->n; i++)
        out.v[i] = in->v[order[i]];
    return out;
}

static struct values changed(const struct values *in, double factor, double plus)
{
    struct values out = {.n = in->n};

    for (size_t i = 0; i < in->n; i++)
        out.v[i] = in->v[i] * factor + plus;
    return out;
}

static struct values twice(const struct values *in)
{
    struct values out = {.n = 2 * in->n};

    for (size_t i = 0; i < in->n; i++)
        out.v[i] = out.v[in->n + i] = in->v[i];
    return out;
}

static wb_json *list_of(const struct values *v)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < v->n; i++)
        wb_json_push(list, wb_json_real(v->v[i]));
    return list;
}

static void set_list(wb_json *doc, const char *key, const struct values *v)
{
    wb_json_set(doc, key, list_of(v));
}

/* Figures at these paths are the same, times a factor. */
static void same(const wb_json *a, const wb_json *b, const char *const *paths, double factor)
{
    for (; *paths != NULL; paths++)
        topic_near(*paths, topic_figure(b, *paths), topic_figure(a, *paths) * factor, 1e-9);
}

static void same_word(const wb_json *a, const wb_json *b, const char *path)
{
    const char *x = wb_json_string(wb_json_path(a, path));
    const char *y = wb_json_string(wb_json_path(b, path));

    if (x == NULL || y == NULL || strcmp(x, y) != 0)
        fail_msg("%s: '%s' against '%s'", path, x ? x : "null", y ? y : "null");
}

/* ---- compare ---- */

static wb_json *compared(const struct values *base, const struct values *other, bool paired)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();

    set_list(doc, paired ? "rounds_base" : "base", base);
    set_list(doc, paired ? "rounds_new" : "new", other);
    wb_json_set_str(doc, "better", "higher");
    return topic_ask_json("compare", doc);
}

static void comparisons(void **state)
{
    static const char *const scale_free[] = {
        "p", "a12", "delta_percent", "ratio.lo", "ratio.hi", "ratio.estimate", NULL};
    static const char *const unit[] = {"median_base", "median_new", "median_ci95_base.lo", NULL};
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 1);
    for (int t = 0; t < TRIALS; t++) {
        bool paired = t % 2;
        size_t n = 6 + wb_rng_below(&r, 12), m = paired ? n : 6 + wb_rng_below(&r, 12);
        struct values a = draw(&r, n), b = draw(&r, m), a2 = shuffled(&a, &r),
                      b2 = shuffled(&b, &r), ax = changed(&a, 1e-6, 0), bx = changed(&b, 1e-6, 0);
        WB_AUTO_JSON wb_json *out = compared(&a, &b, paired), *turned = compared(&b, &a, paired);
        WB_AUTO_JSON wb_json *scaled = compared(&ax, &bx, paired);

        if (!paired) {
            WB_AUTO_JSON wb_json *mixed = compared(&a2, &b2, false);
            assert_true(wb_json_equal(out, mixed));
        }
        same(out, scaled, scale_free, 1);
        same(out, scaled, unit, 1e-6);
        same_word(out, scaled, "verdict");
        topic_near("p turned", topic_figure(turned, "p"), topic_figure(out, "p"), 1e-12);
        topic_near("a12 turned", topic_figure(turned, "a12"), 1 - topic_figure(out, "a12"), 1e-12);
        topic_near("ratio turned", topic_figure(turned, "ratio.estimate"),
                   1 / topic_figure(out, "ratio.estimate"), 1e-12);
        topic_near("end turned", topic_figure(turned, "ratio.lo"),
                   1 / topic_figure(out, "ratio.hi"), 1e-12);
    }
}

static void comparisons_of_doubled_and_shifted_data(void **state)
{
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 2);
    for (int t = 0; t < TRIALS; t++) {
        struct values a = draw(&r, 7), b = draw(&r, 9), aa = twice(&a), bb = twice(&b);
        struct values down = changed(&a, 1, -1000), more = changed(&a, 1, -2000),
                      down_b = changed(&b, 1, -1000), more_b = changed(&b, 1, -2000);
        WB_AUTO_JSON wb_json *out = compared(&a, &b, false), *doubled = compared(&aa, &bb, false);
        WB_AUTO_JSON wb_json *low = compared(&down, &down_b, false);
        WB_AUTO_JSON wb_json *lower = compared(&more, &more_b, false);
        static const char *const kept[] = {"a12", "ratio.estimate", "median_base", NULL};
        static const char *const of_difference[] = {
            "p", "a12", "difference.estimate", "difference.lo", "difference.hi", NULL};

        same(out, doubled, kept, 1);
        assert_true(topic_figure(doubled, "p") <= topic_figure(out, "p") + 1e-12);
        /* Below 0 there are differences, which a shift of both leaves alone. */
        same(low, lower, of_difference, 1);
        topic_near("p", topic_figure(low, "p"), topic_figure(out, "p"), 1e-9);
    }
}

static void rows_stand_for_themselves(void **state)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object(), *back = wb_json_object(), *out, *turned;
    wb_json *rows = wb_json_array(), *reversed = wb_json_array();
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 3);
    for (int i = 0; i < 20; i++) {
        struct values a = draw(&r, 8), b = draw(&r, 8);
        WB_AUTO_FREE char *name = wb_strf("%d", i);
        wb_json *row = wb_json_object();
        set_list(row, "base", &a);
        set_list(row, "new", &b);
        wb_json_set_str(row, "name", name);
        wb_json_set_str(row, "better", "lower");
        wb_json_push(rows, row);
    }
    for (size_t i = 20; i-- > 0;)
        wb_json_push(reversed, wb_json_ref(wb_json_at(rows, i)));
    wb_json_set(doc, "rows", rows);
    wb_json_set(back, "rows", reversed);
    out = topic_ask_json("compare", doc);
    turned = topic_ask_json("compare", back);
    for (size_t i = 0; i < 20; i++)
        assert_true(wb_json_equal(wb_json_at(wb_json_get(out, "rows"), i),
                                  wb_json_at(wb_json_get(turned, "rows"), 19 - i)));
    topic_near("geomean", topic_figure(turned, "geomean.ratio"), topic_figure(out, "geomean.ratio"),
               1e-12);
}

/* ---- adjust ---- */

static void adjusted(void **state)
{
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 4);
    for (int t = 0; t < TRIALS; t++) {
        struct values p = {.n = 12}, mixed;
        WB_AUTO_JSON wb_json *a = wb_json_object(), *b = wb_json_object();
        WB_AUTO_JSON wb_json *out = NULL, *other = NULL;
        for (size_t i = 0; i < p.n; i++)
            p.v[i] = wb_rng_unit(&r);
        mixed = shuffled(&p, &r);
        set_list(a, "p", &p);
        set_list(b, "p", &mixed);
        out = topic_ask_json("adjust", a);
        other = topic_ask_json("adjust", b);
        for (size_t i = 0; i < p.n; i++) {
            double q = wb_json_number(wb_json_at(wb_json_get(out, "q"), i), NAN);
            assert_true(q >= p.v[i] && q <= 1);
            for (size_t k = 0; k < p.n; k++)
                if (mixed.v[k] == p.v[i])
                    assert_true(wb_json_number(wb_json_at(wb_json_get(other, "q"), k), NAN) == q);
        }
    }
}

/* ---- variance and power ---- */

static wb_json *variance_of(struct values *runs, size_t n)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < n; i++)
        wb_json_push(list, list_of(&runs[i]));
    wb_json_set(doc, "runs", list);
    wb_json_set_real(doc, "cost_iteration_s", 2);
    wb_json_set_real(doc, "cost_new_run_s", 60);
    return topic_ask_json("variance", doc);
}

static void variances(void **state)
{
    static const char *const squares[] = {"within", "between", "of_run_means", NULL};
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 5);
    for (int t = 0; t < TRIALS; t++) {
        struct values runs[5], mixed[5], scaled[5], moved[5];
        WB_AUTO_JSON wb_json *out = NULL, *b = NULL, *c = NULL, *d = NULL;
        for (size_t i = 0; i < 5; i++) {
            struct values base = draw(&r, 6);
            runs[i] = changed(&base, 1, 20 * wb_rng_unit(&r));
            mixed[4 - i] = shuffled(&runs[i], &r);
            scaled[i] = changed(&runs[i], 1000, 0);
            moved[i] = changed(&runs[i], 1, 1e5);
        }
        out = variance_of(runs, 5);
        b = variance_of(mixed, 5);
        c = variance_of(scaled, 5);
        d = variance_of(moved, 5);
        same(out, b, squares, 1);
        same(out, c, squares, 1e6);
        for (size_t i = 0; squares[i] != NULL; i++)
            topic_near(squares[i], topic_figure(d, squares[i]), topic_figure(out, squares[i]),
                       1e-6);
        topic_near("mean", topic_figure(c, "grand_mean"), 1000 * topic_figure(out, "grand_mean"),
                   1e-12);
        assert_true(topic_figure(out, "iterations_per_run") ==
                    topic_figure(c, "iterations_per_run"));
    }
}

static void powers(void **state)
{
    double last = 1e9;

    (void)state;
    for (int effect = 1; effect <= 10; effect++) {
        WB_AUTO_FREE char *text = wb_strf("{\"effect_percent\":%d,\"cv_percent\":3}", effect);
        WB_AUTO_FREE char *unit =
            wb_strf("{\"effect_percent\":%g,\"cv_percent\":1.5}", effect / 2.0);
        WB_AUTO_JSON wb_json *out = topic_ask("power", text), *half = topic_ask("power", unit);
        double n = topic_figure(out, "rounds_needed");
        assert_true(n <= last); /* a larger effect never takes more rounds */
        assert_true(n == topic_figure(half, "rounds_needed"));
        last = n;
    }
    for (int n = 1; n < 12; n++) {
        WB_AUTO_FREE char *a = wb_strf("{\"n\":%d,\"m\":5}", n);
        WB_AUTO_FREE char *b = wb_strf("{\"n\":5,\"m\":%d}", n);
        WB_AUTO_JSON wb_json *x = topic_ask("power", a), *y = topic_ask("power", b);
        topic_near("p", topic_figure(x, "smallest_p"), topic_figure(y, "smallest_p"), 1e-12);
    }
}

/* ---- scaling ---- */

static void curves(void **state)
{
    static const char *const shape[] = {"sigma", "kappa", NULL};
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 6);
    for (int t = 0; t < TRIALS / 4; t++) {
        struct values n = {.n = 9}, x = {.n = 9}, big, nn, xx;
        WB_AUTO_JSON wb_json *a = wb_json_object(), *b = wb_json_object(), *c = wb_json_object();
        WB_AUTO_JSON wb_json *out = NULL, *scaled = NULL, *doubled = NULL;
        for (size_t i = 0; i < n.n; i++) {
            n.v[i] = (double)(1 << i);
            x.v[i] = 1000 * n.v[i] / (1 + 0.03 * (n.v[i] - 1) + 4e-4 * n.v[i] * (n.v[i] - 1)) *
                     (1 + 0.02 * (wb_rng_unit(&r) - 0.5));
        }
        big = changed(&x, 1e5, 0);
        nn = twice(&n);
        xx = twice(&x);
        set_list(a, "concurrency", &n);
        set_list(a, "throughput", &x);
        set_list(b, "concurrency", &n);
        set_list(b, "throughput", &big);
        set_list(c, "concurrency", &nn);
        set_list(c, "throughput", &xx);
        out = topic_ask_json("scaling", a);
        scaled = topic_ask_json("scaling", b);
        doubled = topic_ask_json("scaling", c);
        same(out, scaled, shape, 1);
        same(out, doubled, shape, 1);
        topic_near("lambda", topic_figure(scaled, "lambda"), 1e5 * topic_figure(out, "lambda"),
                   1e-9);
        topic_near("peak", topic_figure(doubled, "peak_throughput"),
                   topic_figure(out, "peak_throughput"), 1e-9);
        topic_near("rss", topic_figure(doubled, "rss"), 2 * topic_figure(out, "rss"), 1e-9);
    }
}

/* ---- changes and steady ---- */

static void histories(void **state)
{
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 7);
    for (int t = 0; t < 10 * TRIALS; t++) {
        struct values v = draw(&r, 40), bigger;
        WB_AUTO_JSON wb_json *a = wb_json_object(), *b = wb_json_object();
        WB_AUTO_JSON wb_json *out = NULL, *scaled = NULL;
        const wb_json *list, *other;
        bool found = false;
        for (size_t i = 25; i < v.n; i++)
            v.v[i] *= 0.8;
        bigger = changed(&v, 4096, 0);
        set_list(a, "values", &v);
        set_list(b, "values", &bigger);
        out = topic_ask_json("changes", a);
        scaled = topic_ask_json("changes", b);
        list = wb_json_get(out, "change_points");
        other = wb_json_get(scaled, "change_points");
        assert_int_equal(wb_json_len(list), wb_json_len(other));
        for (size_t i = 0; i < wb_json_len(list); i++) {
            const wb_json *x = wb_json_at(list, i), *y = wb_json_at(other, i);
            int64_t at = wb_json_int_or(x, "index", -1);
            found |= at >= 24 && at <= 26;
            assert_int_equal(at, wb_json_int_or(y, "index", -2));
            topic_near("p", wb_json_real_or(y, "p", 0), wb_json_real_or(x, "p", 1), 1e-9);
            topic_near("change", wb_json_real_or(y, "change_percent", 0),
                       wb_json_real_or(x, "change_percent", 1), 1e-9);
            topic_near("level", wb_json_real_or(y, "after", 0),
                       4096 * wb_json_real_or(x, "after", 1), 1e-9);
        }
        /* A fall by a fifth at 3 % noise: also where neighbours happen to be alike. */
        if (!found)
            fail_msg("series %d: the step was not found", t);
    }
}

/* ---- histogram ---- */

static wb_json *histogram_of(const int *v, size_t n, int times)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *list = wb_json_array();

    for (int t = 0; t < times; t++)
        for (size_t i = 0; i < n; i++)
            wb_json_push(list, wb_json_int(v[i]));
    wb_json_set(doc, "values", list);
    wb_json_set_int(doc, "digits", 3);
    return topic_ask_json("histogram", doc);
}

static void histograms(void **state)
{
    static const char *const kept[] = {"min", "max", "mean", NULL};
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 8);
    for (int t = 0; t < TRIALS; t++) {
        int v[MOST];
        WB_AUTO_JSON wb_json *out = NULL, *mixed = NULL, *doubled = NULL;
        for (size_t i = 0; i < MOST; i++)
            v[i] = 1 + (int)wb_rng_below(&r, 1000000);
        out = histogram_of(v, MOST, 1);
        doubled = histogram_of(v, MOST, 2);
        wb_rng_shuffle(&r, v, MOST);
        mixed = histogram_of(v, MOST, 1);
        assert_true(wb_json_equal(out, mixed));
        same(out, doubled, kept, 1);
        assert_int_equal(wb_json_int_or(doubled, "count", 0), 2 * MOST);
        assert_true(wb_json_equal(wb_json_path(out, "percentiles.50"),
                                  wb_json_path(doubled, "percentiles.50")));
    }
}

/* ---- queue, price, composite, validity ---- */

/* Seconds or hours: Little's law has no unit. */
static void queues(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        double unit = pow(10, k - 2);
        WB_AUTO_FREE char *text =
            wb_strf("{\"clients\":32,\"throughput_per_s\":%.17g,\"mean_latency_s\":%.17g}",
                    8000 * unit, 0.0039 / unit);
        WB_AUTO_JSON wb_json *out = topic_ask("queue", text);
        topic_near("ratio", topic_figure(out, "ratio"), 8000 * 0.0039 / 32, 1e-12);
        assert_string_equal(wb_json_str_or(out, "verdict", ""), "consistent");
    }
}

static wb_json *priced(const struct values *price, const struct values *rate, const int *order)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *items = wb_json_array();

    for (size_t i = 0; i < price->n; i++) {
        wb_json *item = wb_json_object();
        WB_AUTO_FREE char *name = wb_strf("%d", order[i]);
        wb_json_set_str(item, "name", name);
        wb_json_set_real(item, "usd_per_hour", price->v[order[i]]);
        wb_json_set_real(item, "throughput_per_s", rate->v[order[i]]);
        wb_json_push(items, item);
    }
    wb_json_set(doc, "items", items);
    return topic_ask_json("price", doc);
}

static void prices(void **state)
{
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 9);
    for (int t = 0; t < TRIALS; t++) {
        struct values price = draw(&r, 6), rate = draw(&r, 6), dollars = changed(&price, 7, 0);
        int order[6] = {0, 1, 2, 3, 4, 5}, other[6] = {5, 4, 3, 2, 1, 0};
        WB_AUTO_JSON wb_json *out = priced(&price, &rate, order);
        WB_AUTO_JSON wb_json *mixed = priced(&price, &rate, other);
        WB_AUTO_JSON wb_json *dear = priced(&dollars, &rate, order);
        same_word(out, mixed, "cheapest");
        same_word(out, dear, "cheapest");
        assert_int_equal(wb_json_len(wb_json_get(out, "pareto")),
                         wb_json_len(wb_json_get(mixed, "pareto")));
        assert_true(wb_json_equal(wb_json_get(out, "pareto"), wb_json_get(dear, "pareto")));
        for (size_t i = 0; i < 6; i++) {
            const wb_json *a = wb_json_at(wb_json_get(out, "items"), i);
            const wb_json *b = wb_json_at(wb_json_get(dear, "items"), i);
            topic_near("price", wb_json_real_or(b, "usd_per_million_ops", 0),
                       7 * wb_json_real_or(a, "usd_per_million_ops", 0), 1e-12);
        }
    }
}

static wb_json *composed(const struct values *base, const struct values *other, bool turned,
                         double unit)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < base->n; i++) {
        size_t at = turned ? base->n - 1 - i : i;
        WB_AUTO_FREE char *name = wb_strf("%zu", at);
        wb_json *m = wb_json_object();
        wb_json_set_str(m, "name", name);
        wb_json_set_real(m, "base", base->v[at] * unit);
        wb_json_set_real(m, "new", other->v[at] * unit);
        wb_json_set_str(m, "better", at % 2 ? "lower" : "higher");
        wb_json_push(list, m);
    }
    wb_json_set(doc, "metrics", list);
    return topic_ask_json("composite", doc);
}

static void composites(void **state)
{
    struct wb_rng r;

    (void)state;
    wb_rng_seed(&r, 10);
    for (int t = 0; t < TRIALS; t++) {
        struct values a = draw(&r, 7), b = draw(&r, 7);
        WB_AUTO_JSON wb_json *out = composed(&a, &b, false, 1), *mixed = composed(&a, &b, true, 1);
        WB_AUTO_JSON wb_json *scaled = composed(&a, &b, false, 1e-3);
        WB_AUTO_JSON wb_json *back = composed(&b, &a, false, 1);
        double g = topic_figure(out, "geomean_ratio");
        topic_near("mixed", topic_figure(mixed, "geomean_ratio"), g, 1e-12);
        topic_near("scaled", topic_figure(scaled, "geomean_ratio"), g, 1e-12);
        topic_near("back", topic_figure(back, "geomean_ratio"), 1 / g, 1e-12);
    }
}

/* More of what is bad never makes a run better. */
static void validities(void **state)
{
    static const char *const order[] = {"valid", "noisy", "invalid"};
    size_t last = 0;

    (void)state;
    for (int steal = 0; steal <= 100; steal++) {
        WB_AUTO_FREE char *text =
            wb_strf("{\"env\":{\"client_cpu_percent\":10,\"foreign_cpu_cores\":0,"
                    "\"steal_percent\":%g}}",
                    steal / 10.0);
        WB_AUTO_JSON wb_json *out = topic_ask("validity", text);
        size_t k = 0;
        while (k < WB_LEN(order) && strcmp(order[k], wb_json_str_or(out, "verdict", "")) != 0)
            k++;
        assert_true(k < WB_LEN(order));
        assert_true(k >= last);
        last = k;
    }
    assert_int_equal(last, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons),
        cmocka_unit_test(comparisons_of_doubled_and_shifted_data),
        cmocka_unit_test(rows_stand_for_themselves),
        cmocka_unit_test(adjusted),
        cmocka_unit_test(variances),
        cmocka_unit_test(powers),
        cmocka_unit_test(curves),
        cmocka_unit_test(histories),
        cmocka_unit_test(histograms),
        cmocka_unit_test(queues),
        cmocka_unit_test(prices),
        cmocka_unit_test(composites),
        cmocka_unit_test(validities),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
