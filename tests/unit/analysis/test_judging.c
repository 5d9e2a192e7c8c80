/* Scaling and value of campaigns, price books, and the guard before figures are compared. */
#include "tests/unit/analysis/topic_check.h"

#include "server/analysis/book.h"
#include "server/analysis/campaign_scaling.h"
#include "server/analysis/campaign_value.h"
#include "server/analysis/guard.h"

/* ---- invented campaigns ---- */

static wb_json *arm(const char *form, int count, const char *factor, const char *level)
{
    WB_AUTO_FREE char *label = level ? wb_strf("%s x%d %s=%s", form, count, factor, level)
                                     : wb_strf("%s x%d", form, count);
    WB_AUTO_FREE char *form_level = wb_strf("%s x%d", form, count);
    wb_json *a = wb_json_object(), *factors = wb_json_object();

    wb_json_set_str(factors, "form", form_level);
    if (level != NULL)
        wb_json_set_str(factors, factor, level);
    wb_json_set_str(a, "label", label);
    wb_json_set_str(a, "form", form);
    wb_json_set_int(a, "count", count);
    wb_json_set(a, "factors", factors);
    return a;
}

static void add_metric(wb_json *metrics, const char *name, double v, bool rate)
{
    wb_json *m = wb_json_object();

    wb_json_set_real(m, "value", v);
    wb_json_set_str(m, "unit", rate ? "ops/s" : "ms");
    wb_json_set_str(m, "better", rate ? "higher" : "lower");
    wb_json_set(metrics, name, m);
}

static wb_json *run(const char *label, int round, double rate, double p99, const char *class)
{
    wb_json *s = topic_parsed("{\"attempt\":1,\"outcome\":\"ok\",\"validity\":\"valid\","
                              "\"headline\":{\"throughput\":\"max.throughput\",\"p99\":null}}");
    wb_json *metrics = wb_json_object(), *host = wb_json_object();
    WB_AUTO_FREE char *id = wb_strf("run_%s_%d", label, round);

    wb_json_set_str(s, "id", id);
    wb_json_set_str(s, "campaign", "cmp_A");
    wb_json_set_str(s, "arm", label);
    wb_json_set_int(s, "round", round);
    add_metric(metrics, "max.throughput", rate, true);
    add_metric(metrics, "max.p99_ms", p99, false);
    add_metric(metrics, "half.throughput", rate / 2, true);
    add_metric(metrics, "half.p99_ms", p99 / 4, false);
    wb_json_set(s, "metrics", metrics);
    wb_json_set_str(host, "class", class);
    wb_json_set(s, "host", host);
    return s;
}

struct campaign {
    wb_json *plan, *runs;
};

static struct campaign campaign(void)
{
    struct campaign c = {topic_parsed("{\"campaign\":\"cmp_A\",\"study\":\"forms\",\"rounds\":6,"
                                      "\"arms\":[],\"contrasts\":[],\"threshold_percent\":2}"),
                         wb_json_array()};
    return c;
}

static void campaign_release(struct campaign *c)
{
    wb_json_free(c->plan);
    wb_json_free(c->runs);
}

/* An arm with 6 runs around a rate. */
static void add_arm(struct campaign *c, wb_json *a, double rate, const char *class)
{
    const char *label = wb_json_str_or(a, "label", "");

    for (int round = 1; round <= 6; round++)
        wb_json_push(c->runs, run(label, round, rate * (1 + 0.01 * (round % 3 - 1)), 8, class));
    wb_json_push(wb_json_get(c->plan, "arms"), a);
}

/* ---- scaling ---- */

static double usl(double n, double kappa)
{
    return 1000 * n / (1 + 0.05 * (n - 1) + kappa * n * (n - 1));
}

static void scaling_over_instances(void **state)
{
    struct campaign c = campaign();
    WB_AUTO_JSON wb_json *out = NULL;
    const wb_json *curves, *ratios;
    struct wb_buf text = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;

    for (int n = 1; n <= 16; n *= 2) {
        add_arm(&c, arm("native", n, NULL, NULL), usl(n, 0.002), "c");
        add_arm(&c, arm("docker", n, NULL, NULL), usl(n, 0.01) * 0.9, "c");
    }
    wb_json_set_str(wb_json_at(c.runs, 0), "validity", "invalid");
    if (wb_campaign_scaling(c.plan, c.runs, &(struct wb_scaling_question){NULL, NULL}, &out, &err) <
        0)
        fail_msg("%s", err.root);
    topic_nulls("scaling", out);
    curves = wb_json_get(out, "curves");
    ratios = wb_json_get(out, "comparisons");
    assert_string_equal(wb_json_str_or(out, "over", ""), "instances");
    assert_string_equal(wb_json_str_or(out, "metric", ""), "max.throughput");
    assert_string_equal(wb_json_str_or(out, "unit", ""), "ops/s");
    assert_int_equal(wb_json_int_or(out, "n", 0), 59);
    assert_int_equal(wb_json_len(wb_json_get(out, "left_out")), 1);
    assert_int_equal(wb_json_len(curves), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(curves, 0), "name", ""), "native");
    assert_string_equal(wb_json_str_or(wb_json_at(curves, 1), "name", ""), "docker");
    topic_near("sigma", topic_figure(wb_json_at(curves, 0), "sigma"), 0.05, 0.05);
    topic_near("kappa", topic_figure(wb_json_at(curves, 1), "kappa"), 0.01, 0.05);
    topic_near("peak", topic_figure(wb_json_at(curves, 1), "peak_concurrency"), sqrt(95), 0.02);
    assert_int_equal(wb_json_len(ratios), 5);
    topic_near("ratio", topic_figure(wb_json_at(ratios, 4), "measured_ratio"),
               0.9 * usl(16, 0.01) / usl(16, 0.002), 1e-9);
    topic_near("ratio", topic_figure(wb_json_at(ratios, 4), "fitted_ratio"),
               0.9 * usl(16, 0.01) / usl(16, 0.002), 0.01);
    wb_campaign_scaling_print(out, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "== docker"));
    wb_buf_release(&text);
    campaign_release(&c);
}

static void scaling_over_a_factor(void **state)
{
    static const char *const levels[] = {"8", "16", "1k", "64"};
    struct campaign c = campaign();
    WB_AUTO_JSON wb_json *out = NULL;
    const wb_json *points;

    for (size_t i = 0; i < WB_LEN(levels); i++)
        add_arm(&c, arm("native", 2, "connections", levels[i]), 1000, "c");
    assert_int_equal(
        wb_campaign_scaling(c.plan, c.runs, &(struct wb_scaling_question){NULL, NULL}, &out, NULL),
        0);
    points = wb_json_get(wb_json_at(wb_json_get(out, "curves"), 0), "points");
    assert_string_equal(wb_json_str_or(out, "over", ""), "connections");
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(out, "curves"), 0), "name", ""),
                        "native x2");
    assert_int_equal(wb_json_len(points), 4);
    topic_near("last", topic_figure(wb_json_at(points, 3), "n"), 1000, 0);
    campaign_release(&c);
}

static void scaling_refuses(void **state)
{
    static const struct {
        struct wb_scaling_question q;
        const char *part;
    } cases[] = {
        {{NULL, NULL}, "the arms differ in no number"},
        {{NULL, "connections"}, "do not differ in a number of 'connections'"},
        {{"max.speed", NULL}, "the arms differ in no number"},
    };
    struct campaign c = campaign(), two = campaign();
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    add_arm(&c, arm("native", 1, NULL, NULL), 1000, "c");
    add_arm(&c, arm("docker", 1, NULL, NULL), 900, "c");
    for (size_t i = 0; i < WB_LEN(cases); i++) {
        assert_int_equal(wb_campaign_scaling(c.plan, c.runs, &cases[i].q, &out, &err), -WB_INVALID);
        if (strstr(err.root, cases[i].part) == NULL)
            fail_msg("%zu: %s", i, err.root);
    }
    add_arm(&two, arm("native", 1, NULL, NULL), 1000, "c");
    add_arm(&two, arm("native", 2, NULL, NULL), 1900, "c");
    assert_int_equal(wb_campaign_scaling(two.plan, two.runs,
                                         &(struct wb_scaling_question){"max.speed", NULL}, &out,
                                         &err),
                     -WB_INVALID);
    assert_non_null(strstr(err.root, "there are such as max.throughput"));
    assert_int_equal(wb_campaign_scaling(two.plan, two.runs,
                                         &(struct wb_scaling_question){NULL, NULL}, &out, &err),
                     0);
    assert_string_equal(
        wb_json_str_or(wb_json_at(wb_json_get(out, "curves"), 0), "sigma_reason", ""),
        "needs at least 3 different concurrencies");
    wb_json_free(out);
    campaign_release(&c);
    campaign_release(&two);
}

/* ---- books ---- */

static const char *const book_text =
    "book: lab\n"
    "date: 2026-11-01\n"
    "currency: EUR\n"
    "source: invoices\n"
    "hosts:\n"
    "  - {class: \"small, 2 CPUs\", per_hour: 3.6}\n"
    "  - {class: \"sm*\", per_hour: 9}\n"
    "  - {class: \"big*\", purchase: 26280, years: 3, power_w: 500, "
    "per_kwh: 0.4}\n";

static void books_are_read(void **state)
{
    struct wb_book b;
    struct wb_err err = WB_ERR_INIT;

    if (wb_book_parse("b.yaml", book_text, strlen(book_text), &b, &err) < 0)
        fail_msg("%s", err.root);
    assert_string_equal(b.currency, "EUR");
    topic_near("exact", wb_book_find(&b, "small, 2 CPUs")->per_hour, 3.6, 0);
    topic_near("any rest", wb_book_find(&b, "smaller")->per_hour, 9, 0);
    topic_near("owned", wb_book_find(&b, "big iron")->per_hour, 1.2, 1e-14);
    assert_true(wb_book_find(&b, "big iron")->owned);
    assert_null(wb_book_find(&b, "other"));
    wb_book_release(&b);
}

static void books_are_refused(void **state)
{
    static const char *const head = "book: b\ndate: 2026-11-01\ncurrency: EUR\nsource: s\n";
    static const struct {
        const char *head, *rest, *part;
    } cases[] = {
        {"", "", "b.yaml:"},
        {"", "[]", "must be a map"},
        {"book: b\n", "", "(and 3 more)"},
        {NULL, "", "hosts"},
        {NULL, "hosts: []\n", "/hosts: hosts must be a list"},
        {NULL, "hosts: {a: 1}\n", "/hosts: hosts must be a list"},
        {NULL, "hosts:\n  - {class: a}\n", "b.yaml:6: /hosts/0: give per_hour, or purchase"},
        {NULL, "hosts:\n  - {class: a, per_hour: 1, purchase: 2, years: 1}\n", "not both"},
        {NULL, "hosts:\n  - {class: a, per_hour: -1}\n", "/hosts/0/per_hour"},
        {NULL, "hosts:\n  - {class: a, per_hour: 0}\n", "/hosts/0/per_hour"},
        {NULL, "hosts:\n  - {class: a, purchase: 2}\n", "purchase needs years"},
        {NULL, "hosts:\n  - {class: a, purchase: 2, years: 1, power_w: 3}\n", "go together"},
        {NULL, "hosts:\n  - {class: a, per_hour: 2, years: 1}\n", "go with purchase"},
        {NULL, "hosts:\n  - {class: a, per_hour: 2}\n  - {class: a, per_hour: 3}\n",
         "b.yaml:7: /hosts/1: class 'a' is there twice"},
        {NULL, "hosts:\n  - {class: a, per_our: 2}\n", "per_hour"},
        {"book: b\ndate: yesterday\ncurrency: EUR\nsource: s\n",
         "hosts:\n  - {class: a, per_hour: 2}\n", "b.yaml:2: /date: date 'yesterday'"},
        {"book: b\ndate: 2026-11-01\ncurrency: euro\nsource: s\n",
         "hosts:\n  - {class: a, per_hour: 2}\n", "/currency: currency 'euro'"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *text =
            wb_strf("%s%s", cases[i].head ? cases[i].head : head, cases[i].rest);
        struct wb_err err = WB_ERR_INIT;
        struct wb_book b = {0};
        if (wb_book_parse("b.yaml", text, strlen(text), &b, &err) != -WB_INVALID)
            fail_msg("%zu is taken: %s", i, text);
        if (strstr(err.root, cases[i].part) == NULL)
            fail_msg("%zu: '%s' must have '%s' in it", i, err.root, cases[i].part);
    }
}

/* ---- value ---- */

static void value_of_two_campaigns(void **state)
{
    struct campaign a = campaign(), b = campaign();
    struct wb_book book;
    struct wb_value_question q = {.book = &book, .slo_p99_ms = 5};
    WB_AUTO_JSON wb_json *out = NULL, *plain = NULL;
    struct wb_buf text = WB_BUF_INIT(1u << 20);
    const wb_json *items;

    assert_int_equal(wb_book_parse("b", book_text, strlen(book_text), &book, NULL), 0);
    add_arm(&a, arm("native", 1, NULL, NULL), 2000, "small, 2 CPUs");
    add_arm(&a, arm("docker", 1, NULL, NULL), 1600, "small, 2 CPUs");
    add_arm(&b, arm("native", 1, NULL, NULL), 4000, "big iron");
    add_arm(&b, arm("docker", 1, NULL, NULL), 4000, "unknown");
    const struct wb_value_source sources[] = {{a.plan, a.runs, "A", NULL},
                                              {b.plan, b.runs, "B", NULL}};
    assert_int_equal(wb_campaign_value(sources, 2, &q, &out, NULL), 0);
    topic_nulls("value", out);
    items = wb_json_get(out, "items");
    assert_int_equal(wb_json_len(items), 4);
    /* max has a p99 of 8 ms: what counts is half of it, with 2 ms */
    assert_string_equal(wb_json_str_or(wb_json_at(items, 0), "metric", ""), "half.throughput");
    topic_near("rate", topic_figure(wb_json_at(items, 0), "throughput_per_s"), 1000, 1e-12);
    topic_near("cost", topic_figure(wb_json_at(items, 0), "cost_per_million_ops"), 1, 1e-12);
    topic_near("owned", topic_figure(wb_json_at(items, 2), "per_hour"), 1.2, 1e-12);
    topic_near(
        "low",
        wb_json_number(
            wb_json_at(wb_json_get(wb_json_at(items, 0), "cost_per_million_ops_ci95"), 0), 0),
        1 / 1.01, 1e-12);
    assert_string_equal(wb_json_str_or(wb_json_at(items, 3), "reason", ""), "no price is given");
    assert_true(topic_warned(out, "no-price"));
    assert_string_equal(wb_json_str_or(out, "cheapest_at_slo", ""), "B/native x1");
    assert_true(wb_json_bool_or(wb_json_at(items, 0), "meets_slo", false));
    wb_campaign_value_print(out, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "EUR"));
    assert_null(strstr(wb_buf_str(&text), "USD"));
    wb_buf_release(&text);

    q.slo_p99_ms = NAN;
    q.hosts = 2;
    assert_int_equal(wb_campaign_value(sources, 1, &q, &plain, NULL), 0);
    topic_nulls("value", plain);
    items = wb_json_get(plain, "items");
    topic_near("two hosts", topic_figure(wb_json_at(items, 0), "cost_per_million_ops"), 1, 1e-12);
    assert_true(topic_warned(plain, "no-slo"));
    assert_true(isnan(topic_figure(plain, "cheapest_at_slo")));
    wb_book_release(&book);
    campaign_release(&a);
    campaign_release(&b);
}

/* ---- the guard ---- */

static void guard_names_fields(void **state)
{
    WB_AUTO_JSON wb_json *plan =
        topic_parsed("{\"workload\":{\"rows\":1000,\"phases\":[{\"name\":\"max\",\"depth\":1}]}}");
    WB_AUTO_JSON wb_json *other_plan =
        topic_parsed("{\"workload\":{\"rows\":2000,\"phases\":[{\"name\":\"max\",\"depth\":16}]}}");
    WB_AUTO_JSON wb_json *run_a = topic_parsed(
        "{\"host\":{\"class\":\"c\"},\"recipe\":{\"name\":\"redis\",\"version\":\"7.0\"}}");
    WB_AUTO_JSON wb_json *run_b = topic_parsed(
        "{\"host\":{\"class\":\"d\"},\"recipe\":{\"name\":\"redis\",\"version\":\"7.2\"}}");
    WB_AUTO_JSON wb_json *env_a = topic_parsed("{\"host\":{\"kernel\":\"6.1\"}}");
    WB_AUTO_JSON wb_json *env_b = topic_parsed("{\"host\":{\"kernel\":\"6.2\",\"libc\":\"x\"}}");
    const struct wb_side a = {plan, run_a, env_a}, b = {other_plan, run_b, env_b};
    static const char *const compared[] = {"host.class", NULL};
    static const struct {
        const char *field;
        bool must;
    } want[] = {{"host.kernel", true},
                {"workload.rows", true},
                {"workload.phases.max.depth", true},
                {"recipe.version", false}};
    WB_AUTO_JSON wb_json *none = wb_guard_differences(&a, &a, NULL);
    WB_AUTO_JSON wb_json *all = wb_guard_differences(&a, &b, NULL);
    WB_AUTO_JSON wb_json *found = wb_guard_differences(&a, &b, compared);

    assert_int_equal(wb_json_len(none), 0);
    assert_int_equal(wb_json_len(all), 5);
    assert_int_equal(wb_json_len(found), WB_LEN(want));
    for (size_t i = 0; i < WB_LEN(want); i++) {
        assert_string_equal(wb_json_str_or(wb_json_at(found, i), "field", ""), want[i].field);
        assert_int_equal(wb_json_bool_or(wb_json_at(found, i), "must_match", !want[i].must),
                         want[i].must);
    }
    assert_string_equal(wb_json_str_or(wb_json_at(found, 1), "base", ""), "1000");
    assert_string_equal(wb_json_str_or(wb_json_at(found, 1), "other", ""), "2000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_over_instances), cmocka_unit_test(scaling_over_a_factor),
        cmocka_unit_test(scaling_refuses),        cmocka_unit_test(books_are_read),
        cmocka_unit_test(books_are_refused),      cmocka_unit_test(value_of_two_campaigns),
        cmocka_unit_test(guard_names_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
