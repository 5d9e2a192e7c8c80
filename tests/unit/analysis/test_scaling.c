/* The scaling fit against curves of known coefficients, against every other place of the area, and
 * under shuffling, other units and repetition. */
#include "tests/unit/analysis/topic_check.h"

#include "server/analysis/scaling.h"
#include "server/base/rng.h"

#define SETS 40
#define ROWS_MAX 40

struct set {
    double n[ROWS_MAX], x[ROWS_MAX];
    size_t rows;
};

/* A noisy curve with ties, repeats and now and then a 0. */
static struct set random_set(struct wb_rng *r)
{
    struct set s = {.rows = 4 + wb_rng_below(r, 20)};
    struct wb_usl u = {.sigma = wb_rng_unit(r) * 0.3, .lambda = exp(wb_rng_unit(r) * 20 - 10)};
    double noise = wb_rng_unit(r) * 0.1;

    u.kappa = wb_rng_below(r, 3) == 0 ? 0 : pow(10, -6 + 5 * wb_rng_unit(r));
    for (size_t i = 0; i < s.rows; i++) {
        s.n[i] = i < 4 ? (double)(1 + i) : (double)(1 + wb_rng_below(r, 64));
        s.x[i] = wb_usl_at(&u, s.n[i]) * (1 + noise * (2 * wb_rng_unit(r) - 1));
        if (wb_rng_below(r, 40) == 0)
            s.x[i] = 0;
    }
    return s;
}

static wb_json *document(const struct set *s)
{
    wb_json *doc = wb_json_object(), *n = wb_json_array(), *x = wb_json_array();

    for (size_t i = 0; i < s->rows; i++) {
        wb_json_push(n, wb_json_real(s->n[i]));
        wb_json_push(x, wb_json_real(s->x[i]));
    }
    wb_json_set(doc, "concurrency", n);
    wb_json_set(doc, "throughput", x);
    return doc;
}

static wb_json *answer_of(const struct set *s)
{
    WB_AUTO_JSON wb_json *doc = document(s);

    return topic_ask_json("scaling", doc);
}

static void shuffle(struct set *s, struct wb_rng *r)
{
    for (size_t i = s->rows; i > 1; i--) {
        size_t k = wb_rng_below(r, i);
        double n = s->n[i - 1], x = s->x[i - 1];
        s->n[i - 1] = s->n[k];
        s->x[i - 1] = s->x[k];
        s->n[k] = n;
        s->x[k] = x;
    }
}

static void order_does_not_show(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 1);
    for (int i = 0; i < SETS; i++) {
        struct set s = random_set(&r);
        WB_AUTO_JSON wb_json *a = answer_of(&s), *b = NULL;
        shuffle(&s, &r);
        b = answer_of(&s);
        assert_true(wb_json_equal(a, b));
    }
}

static void same_pair(const wb_json *a, const wb_json *b, const char *path, double factor,
                      double digits)
{
    const wb_json *p = wb_json_path(a, path), *q = wb_json_path(b, path);

    assert_int_equal(wb_json_len(p), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(wb_json_type(wb_json_at(p, i)), wb_json_type(wb_json_at(q, i)));
        if (wb_json_is_number(wb_json_at(p, i)) && wb_json_number(wb_json_at(p, i), 0) > 1e-9)
            topic_near(path, wb_json_number(wb_json_at(q, i), NAN),
                       factor * wb_json_number(wb_json_at(p, i), NAN), digits);
    }
}

static void units_do_not_show(void **state)
{
    static const double factors[] = {1024, 1e-9, 1000.0 / 7};
    struct wb_rng r;

    wb_rng_seed(&r, 2);
    for (int i = 0; i < SETS; i++) {
        struct set s = random_set(&r);
        double factor = factors[i % 3];
        WB_AUTO_JSON wb_json *a = answer_of(&s), *b = NULL;
        for (size_t k = 0; k < s.rows; k++)
            s.x[k] *= factor;
        b = answer_of(&s);
        if (topic_figure(a, "sigma") > 1e-9)
            topic_near("sigma", topic_figure(b, "sigma"), topic_figure(a, "sigma"), 1e-9);
        else
            assert_true(topic_figure(b, "sigma") < 1e-8);
        topic_near("lambda", topic_figure(b, "lambda"), factor * topic_figure(a, "lambda"), 1e-10);
        same_pair(a, b, "interval.sigma", 1, 1e-7);
        same_pair(a, b, "interval.lambda", factor, 1e-8);
        assert_int_equal(wb_json_bool_or(a, "usable", false), wb_json_bool_or(b, "usable", true));
    }
}

static void repetition_changes_nothing(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 3);
    for (int i = 0; i < SETS; i++) {
        struct set s = random_set(&r);
        WB_AUTO_JSON wb_json *a = answer_of(&s), *b = NULL;
        if (2 * s.rows > ROWS_MAX)
            continue;
        memcpy(s.n + s.rows, s.n, s.rows * sizeof(double));
        memcpy(s.x + s.rows, s.x, s.rows * sizeof(double));
        s.rows *= 2;
        b = answer_of(&s);
        if (topic_figure(a, "sigma") > 1e-9)
            topic_near("sigma", topic_figure(b, "sigma"), topic_figure(a, "sigma"), 1e-9);
        topic_near("lambda", topic_figure(b, "lambda"), topic_figure(a, "lambda"), 1e-10);
        assert_string_equal(wb_json_str_or(wb_json_get(b, "interval"), "method", ""),
                            "bootstrap-runs");
    }
}

static double rss_at(const struct set *s, double sigma, double kappa)
{
    double yf = 0, ff = 0, rss = 0;

    for (size_t i = 0; i < s->rows; i++) {
        double n = s->n[i], f = n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
        yf += s->x[i] * f;
        ff += f * f;
    }
    for (size_t i = 0; i < s->rows; i++) {
        double n = s->n[i], f = n / (1 + sigma * (n - 1) + kappa * n * (n - 1));
        rss += (s->x[i] - yf / ff * f) * (s->x[i] - yf / ff * f);
    }
    return rss;
}

/* No other place within the bounds has a smaller residual. */
static void finds_the_least_squares(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 4);
    for (int i = 0; i < 4 * SETS; i++) {
        struct set s = random_set(&r);
        struct wb_scaling fit;
        wb_scaling_of(s.n, s.x, s.rows, &fit);
        for (int k = 0; k < 3000; k++) {
            bool near = k % 2 == 0;
            double sigma =
                near ? fit.usl.sigma + 0.01 * (2 * wb_rng_unit(&r) - 1) : wb_rng_unit(&r);
            double kappa = near ? fit.usl.kappa * (0.9 + 0.2 * wb_rng_unit(&r))
                                : pow(10, -8 + 9 * wb_rng_unit(&r));
            double rss = rss_at(&s, fmin(fmax(sigma, 0), 1), k % 5 == 0 ? 0 : kappa);
            if (rss < fit.usl.rss * (1 - 1e-9))
                fail_msg("set %d: sigma %g, kappa %g has %.15g, found was %.15g at %g, %g", i,
                         sigma, kappa, rss, fit.usl.rss, fit.usl.sigma, fit.usl.kappa);
        }
        assert_true(fit.usl.rss <= fit.amdahl.rss * (1 + 1e-12));
        wb_scaling_release(&fit);
    }
}

static void finds_exact_coefficients(void **state)
{
    static const struct wb_usl curves[] = {
        {0, 0, 100, 0},     {1, 0, 100, 0},        {0.1, 0, 1e-9, 0},    {0, 0.01, 5, 0},
        {1, 0.5, 5, 0},     {0.02, 1e-4, 995, 0},  {0.3, 1e-7, 1e12, 0}, {0.5, 3, 7, 0},
        {1e-6, 1e-9, 1, 0}, {0.999, 1e-3, 1e3, 0},
    };

    for (size_t i = 0; i < WB_LEN(curves); i++) {
        struct set s = {.rows = 8};
        struct wb_scaling fit;
        for (size_t k = 0; k < s.rows; k++) {
            s.n[k] = ldexp(1, (int)k);
            s.x[k] = wb_usl_at(&curves[i], s.n[k]);
        }
        wb_scaling_of(s.n, s.x, s.rows, &fit);
        if (!(fabs(fit.usl.sigma - curves[i].sigma) <= 1e-10) ||
            !(fabs(fit.usl.kappa - curves[i].kappa) <= 1e-10 * curves[i].kappa + 1e-14) ||
            !(fabs(fit.usl.lambda - curves[i].lambda) <= 1e-10 * curves[i].lambda))
            fail_msg("curve %zu: %.15g %.15g %.15g", i, fit.usl.sigma, fit.usl.kappa,
                     fit.usl.lambda);
        assert_true((curves[i].kappa == 0) == (fit.usl.kappa == 0));
        assert_true((curves[i].sigma == 0) == (fit.usl.sigma == 0));
        wb_scaling_release(&fit);
    }
}

/* Any exact curve is found, wherever its coefficients lie and whatever was measured of it. */
static void finds_any_exact_curve(void **state)
{
    struct wb_rng r;

    wb_rng_seed(&r, 6);
    for (int i = 0; i < 1000; i++) {
        struct wb_usl u = {.sigma = pow(10, -3 + 3 * wb_rng_unit(&r)),
                           .kappa = pow(10, -7 + 8 * wb_rng_unit(&r)),
                           .lambda = pow(10, -6 + 12 * wb_rng_unit(&r))},
                      found;
        double n[8], x[8], squares = 0, step = 1.2 + 3 * wb_rng_unit(&r);
        struct wb_usl_rows rows = {.n = n, .x = x, .rows = 8};
        for (int k = 0; k < 8; k++) {
            n[k] = k == 0 ? 1 : ceil(n[k - 1] * step);
            x[k] = wb_usl_at(&u, n[k]);
            squares += x[k] * x[k];
        }
        wb_usl_fit(&rows, &found);
        if (!(found.rss <= 1e-22 * squares))
            fail_msg("curve %d (%g %g %g): found %g %g %g", i, u.sigma, u.kappa, u.lambda,
                     found.sigma, found.kappa, found.lambda);
    }
}

static void covers_what_it_says(void **state)
{
    struct wb_usl truth = {.sigma = 0.05, .kappa = 1e-3, .lambda = 100};
    struct wb_rng r;
    int hit = 0;

    wb_rng_seed(&r, 5);
    for (int i = 0; i < 100; i++) {
        struct set s = {.rows = 0};
        struct wb_scaling fit;
        for (int n = 1; n <= 64; n *= 2) {
            for (int k = 0; k < 5; k++) {
                double noise = 0; /* of about 2 %, near normal */
                for (int u = 0; u < 12; u++)
                    noise += wb_rng_unit(&r);
                s.n[s.rows] = n;
                s.x[s.rows++] = wb_usl_at(&truth, n) * (1 + 0.02 * (noise - 6));
            }
        }
        wb_scaling_of(s.n, s.x, s.rows, &fit);
        hit += fit.interval.sigma.lo <= truth.sigma && truth.sigma <= fit.interval.sigma.hi;
        wb_scaling_release(&fit);
    }
    if (hit < 86) /* 95 are meant; a bootstrap of 5 runs falls a little short */
        fail_msg("%d of 100 intervals hold the truth", hit);
}

static void says_what_cannot_be_said(void **state)
{
    static const struct {
        const char *in, *key, *reason;
    } cases[] = {
        {"{\"concurrency\":[1,2,3],\"throughput\":[1,2,3]}", "sigma", "at least 4 rows"},
        {"{\"concurrency\":[1,1,2,2],\"throughput\":[1,1,2,2]}", "kappa", "3 different"},
        {"{\"concurrency\":[1,2,3,4],\"throughput\":[0,0,0,0]}", "interval", "all throughputs"},
        {"{\"concurrency\":[],\"throughput\":[]}", "sigma", "at least 4 rows"},
        {"{\"concurrency\":[1,2,4,8],\"throughput\":[10,20,40,80]}", "peak_concurrency",
         "kappa is 0"},
        {"{\"concurrency\":[1,2,4,8],\"throughput\":[10,20,40,80]}", "asymptote_throughput",
         "sigma is 0"},
        {"{\"concurrency\":[1,2,4,8],\"throughput\":[5,5,5,5]}", "peak_concurrency",
         "the same at every"},
        {"{\"concurrency\":[1,2,3,null],\"throughput\":[1,2,3,4]}", "lambda", "at least 4 rows"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *out = topic_ask("scaling", cases[i].in);
        WB_AUTO_FREE char *reason = wb_strf("%s_reason", cases[i].key);
        assert_int_equal(wb_json_type(wb_json_get(out, cases[i].key)), WB_JSON_NULL);
        if (strstr(wb_json_str_or(out, reason, ""), cases[i].reason) == NULL)
            fail_msg("case %zu: %s", i, wb_json_str_or(out, reason, "(none)"));
    }
}

static void refuses_curves_that_are_none(void **state)
{
    WB_AUTO_JSON wb_json *super = topic_ask(
        "scaling", "{\"concurrency\":[1,2,4,8,16,32],\"throughput\":[100,260,640,1500,2500,3000]}");
    WB_AUTO_JSON wb_json *steps =
        topic_ask("scaling", "{\"concurrency\":[1,2,4,8,16],\"throughput\":[100,200,400,410,800]}");
    WB_AUTO_JSON wb_json *down =
        topic_ask("scaling", "{\"concurrency\":[1,2,4,8,16],\"throughput\":[100,60,30,14,7]}");

    assert_false(wb_json_bool_or(super, "usable", true));
    assert_true(topic_warned(super, "super-linear"));
    assert_true(wb_json_len(wb_json_get(super, "do_not_use")) > 0);
    assert_false(wb_json_bool_or(steps, "usable", true));
    assert_true(wb_json_bool_or(down, "usable", false));
    assert_int_equal(wb_json_int_or(down, "peak_concurrency_integer", 0), 1);
    assert_true(topic_figure(down, "peak_concurrency") < 1);
}

static void refuses_bad_input(void **state)
{
    static const char *const cases[][2] = {
        {"[]", "must be an object"},
        {"{}", "/concurrency: is missing"},
        {"{\"concurrency\":[1]}", "/throughput: is missing"},
        {"{\"concurrency\":[1,2],\"throughput\":[1]}", "/throughput: has 1"},
        {"{\"concurrency\":[0],\"throughput\":[1]}", "/concurrency/0: must be above 0"},
        {"{\"concurrency\":[-1],\"throughput\":[1]}", "/concurrency/0: must be above 0"},
        {"{\"concurrency\":[1],\"throughput\":[-1]}", "/throughput/0: must not be below 0"},
        {"{\"concurrency\":[1e300],\"throughput\":[1]}", "/concurrency/0: 1e+300 is out of range"},
        {"{\"concurrency\":[1e20],\"throughput\":[1]}", "/concurrency/0: must be from"},
        {"{\"concurrency\":[\"1\"],\"throughput\":[1]}", "/concurrency/0: must be a number"},
        {"{\"sigma\":0.1,\"kappa\":0,\"lambda\":1,\"at\":[0]}", "/at/0: must be above 0"},
        {"{\"sigma\":2,\"kappa\":0,\"lambda\":1,\"at\":[1]}",
         "/sigma: must be a number from 0 to 1"},
        {"{\"sigma\":0.1,\"kappa\":-1,\"lambda\":1,\"at\":[1]}", "/kappa: must be"},
        {"{\"sigma\":0.1,\"kappa\":0.1,\"at\":[1]}", "/lambda: is missing"},
        {"{\"sigma\":0.1,\"kappa\":9,\"lambda\":1,\"at\":[0.5]}", "/at/0: the curve has no"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        topic_refuses("scaling", cases[i][0], cases[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_show),          cmocka_unit_test(units_do_not_show),
        cmocka_unit_test(repetition_changes_nothing),   cmocka_unit_test(finds_the_least_squares),
        cmocka_unit_test(finds_exact_coefficients),     cmocka_unit_test(finds_any_exact_curve),
        cmocka_unit_test(covers_what_it_says),          cmocka_unit_test(says_what_cannot_be_said),
        cmocka_unit_test(refuses_curves_that_are_none), cmocka_unit_test(refuses_bad_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
