/* spread, variance, power, queue, price, composite: known answers, invariance, hostile input, and
 * the table of topics itself. */
#include "tests/unit/analysis/topic_check.h"

#include "server/analysis/moments.h"
#include "server/base/rng.h"

/* ---- the table ---- */

static void every_topic_is_complete(void **state)
{
    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        assert_ptr_equal(wb_topic_find(t->name), t);
        assert_true(strlen(t->summary) > 10 && strlen(t->summary) < 76);
        assert_non_null(t->answer);
        assert_non_null(t->print);
        for (const char *line = t->input; *line != '\0';) {
            size_t n = strcspn(line, "\n");
            if (n > 76)
                fail_msg("%s: a line of its input is %zu columns", t->name, n);
            line += n + (line[n] == '\n');
        }
    }
    assert_null(wb_topic_find("averages"));
}

static void every_topic_survives_anything(void **state)
{
    static const char *const hostile[] = {
        "{}",
        "[]",
        "null",
        "1",
        "\"x\"",
        "true",
        "{\"values\":{}}",
        "{\"items\":[null]}",
        "{\"metrics\":[[]]}",
        "{\"runs\":[1]}",
        "{\"n\":1e99,\"m\":1}",
        "{\"clients\":null}",
        "{\"base\":null,\"new\":null}",
        "{\"values\":[1e308,-1e308]}",
        "{\"p\":[2]}",
        "{\"throughput\":[1,2],\"concurrency\":{}}",
        "{\"effect_percent\":1}",
        "{\"servers\":0.5,\"service_ms\":1,\"arrival_per_s\":1}",
        "{\"items\":{}}",
        "{\"purchase_usd\":1,\"years\":0}",
    };

    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        for (size_t i = 0; i < WB_LEN(hostile); i++) {
            WB_AUTO_JSON wb_json *in = topic_parsed(hostile[i]), *out = NULL;
            struct wb_err err = WB_ERR_INIT;
            int rc = t->answer(in, &out, &err);
            if (rc < 0) {
                assert_int_equal(rc, -WB_INVALID);
                assert_null(out);
                assert_true(err.root[0] == '/' || strstr(err.root, "must be") != NULL ||
                            strstr(err.root, "must have") != NULL);
            } else {
                topic_nulls(t->name, out);
            }
        }
    }
}

static void reads_csv(void **state)
{
    static const struct {
        const char *topic, *text, *path;
        double want;
    } cases[] = {
        {"spread", "values\n1\n2\n4\n", "median", 2},
        {"power", "n,m\n4,4\n", "smallest_p", 2.0 / 70},
        {"queue", "clients,throughput_per_s,mean_latency_s\n10,100,0.05\n", "ratio", 0.5},
        {"price", "name,usd_per_hour,throughput_per_s\na,3.6,1000\nb,,2\n", "n", 1},
        {"composite", "name,base,new,better\na,1,2,higher\nb,8,4,lower\n", "geomean_ratio", 2},
        {"scaling", "concurrency,throughput\n1,5\n2,10\n4,20\n8,40\n", "lambda", 5},
        {"variance", "run,value,cost_iteration_s,cost_new_run_s\n1,1,2,8\n1,3,,\n7,5,,\n7,7,,\n",
         "iterations_per_run", 2}, /* within 2, between 7: ceil(sqrt(8/2 * 2/7)) */
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        const struct wb_topic *t = wb_topic_find(cases[i].topic);
        struct wb_topic_file file = {"x.csv", cases[i].text, strlen(cases[i].text)};
        WB_AUTO_JSON wb_json *doc = NULL, *out = NULL;
        struct wb_err err = WB_ERR_INIT;
        if (wb_topic_read(t, &file, 1, NULL, &doc, &err) < 0)
            fail_msg("%s: %s", t->name, err.root);
        out = topic_ask_json(t->name, doc);
        topic_near(t->name, topic_figure(out, cases[i].path), cases[i].want, 1e-12);
    }
}

static void refuses_csv_of_another_shape(void **state)
{
    static const struct {
        const char *topic, *text, *part;
    } cases[] = {
        {"power", "n,m\n4,4\n5,5\n", "line 2: there must be one line"},
        {"variance", "a,b\n1,2\n", "line 1: needs the columns run and value"},
        {"spread", "values\nx\n", "line 2: 'x'"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_topic_file file = {"x.csv", cases[i].text, strlen(cases[i].text)};
        struct wb_err err = WB_ERR_INIT;
        wb_json *doc = NULL;
        assert_int_equal(wb_topic_read(wb_topic_find(cases[i].topic), &file, 1, NULL, &doc, &err),
                         -WB_INVALID);
        if (strstr(err.root, cases[i].part) == NULL)
            fail_msg("%s: %s", cases[i].topic, err.root);
    }
}

/* ---- quantiles ---- */

static void quantiles_are_those_of_the_tables(void **state)
{
    static const struct {
        double p, df, t;
    } students[] = {
        {0.975, 1, 12.706204736174694},  {0.975, 2, 4.302652729749464},
        {0.975, 4, 2.7764451051977934},  {0.975, 9, 2.2621571627982049},
        {0.975, 29, 2.0452296421327034}, {0.95, 10, 1.8124611228116756},
        {0.995, 5, 4.0321429835552287},  {0.975, 1000, 1.9623390808264076},
    };

    for (size_t i = 0; i < WB_LEN(students); i++) {
        topic_near("t", wb_student_quantile(students[i].p, students[i].df), students[i].t, 1e-11);
        topic_near("tail", wb_student_above(students[i].t, students[i].df), 1 - students[i].p,
                   1e-10);
    }
    topic_near("z", wb_normal_quantile(0.975), 1.959963984540054, 1e-14);
    topic_near("z", wb_normal_quantile(0.001), -3.090232306167813, 1e-13);
    assert_true(fabs(wb_normal_quantile(0.5)) < 1e-15);
}

static void sums_lose_no_digits(void **state)
{
    const double v[] = {1e16, 1, -1e16, 1, 1e100, 3, -1e100};
    const double shifted[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};

    assert_true(wb_sum(v, WB_LEN(v)) == 5);
    assert_true(wb_variance(shifted, 4) == 30);
    assert_true(isnan(wb_variance(shifted, 1)));
}

/* ---- spread ---- */

static void spread_by_hand(void **state)
{
    WB_AUTO_JSON wb_json *out = topic_ask("spread", "{\"values\":[10,11,12,10,9,30,11,null]}");
    const wb_json *z = wb_json_get(out, "robust_z");

    topic_near("median", topic_figure(out, "median"), 11, 0);
    topic_near("mean", topic_figure(out, "mean"), 93.0 / 7, 1e-15);
    topic_near("mad", topic_figure(out, "mad"), 1, 0);
    topic_near("mad_scaled", topic_figure(out, "mad_scaled"), 1.482602218505602, 1e-15);
    topic_near("range", topic_figure(out, "range_percent"), 2100.0 / 11, 1e-15);
    topic_near("stdev", topic_figure(out, "stdev"), sqrt((1567 - 93.0 * 93 / 7) / 6), 1e-14);
    topic_near("lo", topic_figure(out, "median_ci95.lo"), 9, 0);
    topic_near("hi", topic_figure(out, "median_ci95.hi"), 30, 0);
    assert_int_equal(wb_json_int_or(out, "n", 0), 7);
    assert_int_equal(wb_json_len(z), 8);
    assert_int_equal(wb_json_type(wb_json_at(z, 7)), WB_JSON_NULL);
    topic_near("z", wb_json_number(wb_json_at(z, 5), 0), 19 / 1.482602218505602, 1e-14);
    assert_int_equal(wb_json_len(wb_json_get(out, "outliers")), 1);
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(out, "outliers"), 0)), 5);
    assert_true(topic_warned(out, "dropped"));
}

static wb_json *spread_of(const double *v, size_t n)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < n; i++)
        wb_json_push(list, wb_json_real(v[i]));
    wb_json_set(doc, "values", list);
    return topic_ask_json("spread", doc);
}

static void spread_keeps_its_shape(void **state)
{
    static const char *const all[] = {"median", "mean", "stdev", "cv_percent",
                                      "mad",    "min",  "max",   "range_percent"};
    struct wb_rng r;

    wb_rng_seed(&r, 11);
    for (int round = 0; round < 200; round++) {
        size_t n = 3 + wb_rng_below(&r, 30);
        double v[40], other[40];
        int order[40];
        WB_AUTO_JSON wb_json *a = NULL, *shuffled = NULL, *scaled = NULL, *moved = NULL;
        for (size_t i = 0; i < n; i++) {
            v[i] = (double)wb_rng_below(&r, 20) + 1;
            order[i] = (int)i;
        }
        a = spread_of(v, n);
        wb_rng_shuffle(&r, order, n);
        for (size_t i = 0; i < n; i++)
            other[i] = v[order[i]];
        shuffled = spread_of(other, n);
        for (size_t i = 0; i < n; i++)
            other[i] = v[i] * 1e-6;
        scaled = spread_of(other, n);
        for (size_t i = 0; i < n; i++)
            other[i] = v[i] + 1000;
        moved = spread_of(other, n);
        for (size_t k = 0; k < WB_LEN(all); k++) {
            bool percent = strstr(all[k], "percent") != NULL;
            bool place = k < 2 || k == 5 || k == 6;
            double at = topic_figure(a, all[k]);
            assert_true(topic_figure(shuffled, all[k]) == at);
            topic_near(all[k], topic_figure(scaled, all[k]), percent ? at : at * 1e-6, 1e-10);
            if (!percent)
                topic_near(all[k], topic_figure(moved, all[k]), place ? at + 1000 : at, 1e-10);
        }
        assert_int_equal(wb_json_len(wb_json_get(a, "outliers")),
                         wb_json_len(wb_json_get(scaled, "outliers")));
    }
}

static void spread_of_little(void **state)
{
    WB_AUTO_JSON wb_json *none = topic_ask("spread", "{\"values\":[]}");
    WB_AUTO_JSON wb_json *one = topic_ask("spread", "{\"values\":[5]}");
    WB_AUTO_JSON wb_json *equal = topic_ask("spread", "{\"values\":[5,5,5,5,5,5]}");
    WB_AUTO_JSON wb_json *nearly = topic_ask("spread", "{\"values\":[5,5,5,5,5,9]}");
    WB_AUTO_JSON wb_json *zero = topic_ask("spread", "{\"values\":[-1,0,1]}");

    assert_int_equal(wb_json_int_or(none, "n", 9), 0);
    assert_true(isnan(topic_figure(none, "median")));
    topic_near("median", topic_figure(one, "median"), 5, 0);
    assert_true(isnan(topic_figure(one, "stdev")));
    assert_true(topic_figure(equal, "stdev") == 0);
    assert_true(isnan(topic_figure(equal, "robust_z")));
    assert_true(topic_warned(nearly, "mad-zero"));
    assert_int_equal(wb_json_len(wb_json_get(nearly, "outliers")), 1);
    assert_true(isnan(topic_figure(zero, "cv_percent")));
    assert_true(isnan(topic_figure(zero, "range_percent")));
}

/* ---- variance ---- */

static void variance_by_hand(void **state)
{
    WB_AUTO_JSON wb_json *out = topic_ask(
        "variance",
        "{\"runs\":[[1,2,3],[2,3,4],[5,6,7]],\"cost_iteration_s\":1,\"cost_new_run_s\":30}");
    double half = 4.302652729749464 * sqrt(13.0 / 3 / 3);

    topic_near("grand_mean", topic_figure(out, "grand_mean"), 11.0 / 3, 1e-15);
    topic_near("within", topic_figure(out, "within"), 1, 1e-15);
    topic_near("of_run_means", topic_figure(out, "of_run_means"), 13.0 / 3, 1e-14);
    topic_near("between", topic_figure(out, "between"), 4, 1e-14);
    topic_near("lo", wb_json_number(wb_json_at(wb_json_get(out, "ci95_mean"), 0), NAN),
               11.0 / 3 - half, 1e-10);
    topic_near("iterations", topic_figure(out, "iterations_per_run"), 3, 0); /* sqrt(7.5) */
}

static void variance_keeps_its_shape(void **state)
{
    WB_AUTO_JSON wb_json *a = topic_ask("variance", "{\"runs\":[[1.5,2,3.25],[2,3,4],[5,6]]}");
    WB_AUTO_JSON wb_json *b = topic_ask("variance", "{\"runs\":[[6,5],[3,4,2],[3.25,1.5,2]]}");
    WB_AUTO_JSON wb_json *moved =
        topic_ask("variance", "{\"runs\":[[1001.5,1002,1003.25],[1002,1003,1004],[1005,1006]]}");
    WB_AUTO_JSON wb_json *one = topic_ask("variance", "{\"runs\":[[1,2,3]]}");
    WB_AUTO_JSON wb_json *single = topic_ask("variance", "{\"runs\":[[1],[2],[3]]}");
    WB_AUTO_JSON wb_json *still = topic_ask(
        "variance", "{\"runs\":[[1,3],[3,1]],\"cost_iteration_s\":1,\"cost_new_run_s\":9}");

    assert_true(wb_json_equal(a, b));
    topic_near("within", topic_figure(moved, "within"), topic_figure(a, "within"), 1e-12);
    topic_near("between", topic_figure(moved, "between"), topic_figure(a, "between"), 1e-12);
    assert_true(topic_warned(a, "uneven-runs"));
    assert_true(isnan(topic_figure(one, "between")));
    topic_near("within", topic_figure(one, "within"), 1, 1e-15);
    assert_true(isnan(topic_figure(single, "within")));
    topic_near("of_run_means", topic_figure(single, "of_run_means"), 1, 1e-15);
    assert_true(topic_figure(still, "between") == 0);
    assert_true(isnan(topic_figure(still, "iterations_per_run")));
}

/* ---- power ---- */

static void power_is_that_of_the_exact_test(void **state)
{
    /* effect in noise widths, rounds, power measured elsewhere by simulation */
    static const double known[][3] = {
        {1, 4, .13},    {1, 5, .20},   {1, 6, .30},   {1, 8, .45},   {1, 10, .51},  {1, 15, .71},
        {1, 20, .84},   {1.5, 4, .29}, {1.5, 5, .43}, {1.5, 6, .61}, {1.5, 8, .76}, {1.5, 10, .84},
        {1.5, 15, .97}, {2, 4, .47},   {2, 5, .67},   {2, 6, .83},   {2, 8, .95},   {2, 10, .98},
        {3, 4, .83},    {3, 5, .95},   {3, 6, .99},
    };

    for (size_t i = 0; i < WB_LEN(known); i++) {
        WB_AUTO_FREE char *text = wb_strf("{\"effect_percent\":%g,\"cv_percent\":1}", known[i][0]);
        WB_AUTO_JSON wb_json *out = topic_ask("power", text);
        const wb_json *table = wb_json_get(out, "table");
        double got = NAN;
        for (size_t k = 0; k < wb_json_len(table); k++)
            if (wb_json_int_or(wb_json_at(table, k), "n", 0) == (int64_t)known[i][1])
                got = wb_json_real_or(wb_json_at(table, k), "power", NAN);
        if (!(fabs(got - known[i][2]) <= 0.035))
            fail_msg("effect %g, n %g: %.3f, must be about %.2f", known[i][0], known[i][1], got,
                     known[i][2]);
    }
}

static void power_needs(void **state)
{
    static const struct {
        const char *in;
        int64_t rounds;
    } cases[] = {
        {"{\"effect_percent\":2,\"cv_percent\":1}", 6},
        {"{\"effect_percent\":-2,\"cv_percent\":1}", 6},
        {"{\"effect_percent\":4,\"cv_percent\":2}", 6},
        {"{\"effect_percent\":3,\"cv_percent\":1}", 4},
        {"{\"effect_percent\":1,\"cv_percent\":0}", 4}, /* no p below 0.05 with fewer */
        {"{\"effect_percent\":1,\"cv_percent\":0,\"alpha\":0.001}", 7},
        {"{\"effect_percent\":0,\"cv_percent\":1}", 0},
        {"{\"effect_percent\":0.001,\"cv_percent\":10}", 0},
    };
    static const struct {
        const char *in;
        double p;
    } smallest[] = {
        {"{\"n\":4,\"m\":4}", 2.0 / 70}, {"{\"n\":3,\"m\":3}", 0.1},
        {"{\"n\":1,\"m\":1}", 1},        {"{\"n\":5,\"m\":2}", 2.0 / 21},
        {"{\"n\":2,\"m\":5}", 2.0 / 21}, {"{\"n\":10,\"m\":10}", 2.0 / 184756},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *out = topic_ask("power", cases[i].in);
        if (wb_json_int_or(out, "rounds_needed", 0) != cases[i].rounds)
            fail_msg("%s: %lld", cases[i].in, (long long)wb_json_int_or(out, "rounds_needed", 0));
    }
    for (size_t i = 0; i < WB_LEN(smallest); i++) {
        WB_AUTO_JSON wb_json *out = topic_ask("power", smallest[i].in);
        topic_near(smallest[i].in, topic_figure(out, "smallest_p"), smallest[i].p, 1e-13);
    }
}

/* The drawn power and the calculated one meet where one takes over from the other. */
static void power_has_no_step(void **state)
{
    WB_AUTO_JSON wb_json *out = topic_ask("power", "{\"effect_percent\":0.62,\"cv_percent\":1}");
    int64_t n = wb_json_int_or(out, "rounds_needed", 0);

    assert_true(n >= 41 && n <= 47);
    topic_near("power", topic_figure(out, "power_reached"), 0.8, 0.02);
}

/* ---- queue ---- */

static void queue_verdicts(void **state)
{
    static const struct {
        const char *in, *verdict;
    } cases[] = {
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.1}", "consistent"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.105}", "consistent"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.106}", "impossible"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.095}", "consistent"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.094}", "note"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.08}", "note"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.07}", "client-overhead"},
        {"{\"clients\":10,\"throughput_per_s\":100,\"mean_latency_s\":0.04,\"think_time_s\":0.06}",
         "consistent"},
        {"{\"clients\":8,\"throughput_per_s\":100,\"p99_ms\":100}", "consistent"},
        {"{\"clients\":8,\"throughput_per_s\":100,\"p99_ms\":70}", "impossible"},
        {"{\"clients\":8,\"throughput_per_s\":100,\"p50_ms\":200,\"p99_ms\":900}", "impossible"},
        {"{\"clients\":8,\"throughput_per_s\":100,\"p50_ms\":70}", ""},
        {"{\"clients\":8,\"throughput_per_s\":0,\"p99_ms\":70}", ""},
        {"{\"clients\":8,\"throughput_per_s\":100,\"p99_ms\":1,\"think_time_s\":0.1}",
         "impossible"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":990}", "valid"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":989}", "saturated"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":600,\"service_p99_ms\":2,"
         "\"response_p99_ms\":2.1,\"duration_s\":60}",
         "omission"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":600,\"service_p99_ms\":2,"
         "\"response_p99_ms\":2.1}",
         "omission"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":600,\"service_p99_ms\":2,"
         "\"response_p99_ms\":23700,\"duration_s\":60}",
         "saturated"},
        {"{\"target_per_s\":1000,\"achieved_per_s\":1000,\"service_p99_ms\":2,"
         "\"response_p99_ms\":2.5,\"duration_s\":60}",
         "valid"},
        {"{\"servers\":1,\"service_ms\":1,\"arrival_per_s\":1000}", "saturated"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *out = topic_ask("queue", cases[i].in);
        if (strcmp(wb_json_str_or(out, "verdict", ""), cases[i].verdict) != 0)
            fail_msg("%s: %s", cases[i].in, wb_json_str_or(out, "verdict", ""));
    }
}

static void queue_reference(void **state)
{
    /* servers, arrival a second, mean response in ms at a service of 1 ms; by textbook formulas */
    static const double known[][3] = {
        {1, 800, 5},        {1, 0, 1},
        {2, 1000, 4.0 / 3}, {4, 3200, 1.7455405897342633},
        {1, 999, 1000},     {10, 9000, 1.668731524107697},
    };
    WB_AUTO_JSON wb_json *one =
        topic_ask("queue", "{\"servers\":1,\"service_ms\":2,\"arrival_per_s\":400}");
    /* two servers, half used: the rates of service and of draining are the same */
    WB_AUTO_JSON wb_json *two =
        topic_ask("queue", "{\"servers\":2,\"service_ms\":1,\"arrival_per_s\":1000}");
    double t = topic_figure(two, "p99_response_ms"), waits = 1.0 / 3;

    for (size_t i = 0; i < WB_LEN(known); i++) {
        WB_AUTO_FREE char *in = wb_strf("{\"servers\":%g,\"service_ms\":1,\"arrival_per_s\":%g}",
                                        known[i][0], known[i][1]);
        WB_AUTO_JSON wb_json *out = topic_ask("queue", in);
        topic_near(in, topic_figure(out, "mean_response_ms"), known[i][2], 1e-9);
    }
    topic_near("utilisation", topic_figure(one, "utilisation"), 0.8, 1e-15);
    topic_near("p99", topic_figure(one, "p99_response_ms"), 10 * log(100), 1e-12);
    topic_near("waits", topic_figure(two, "probability_of_waiting"), waits, 1e-14);
    topic_near("p99", (1 - waits) * exp(-t) + waits * (1 + t) * exp(-t), 0.01, 1e-9);
}

/* ---- price and composite ---- */

static void price_by_hand(void **state)
{
    WB_AUTO_JSON wb_json *out = topic_ask(
        "price", "{\"items\":["
                 "{\"name\":\"a\",\"usd_per_hour\":3.6,\"throughput_per_s\":1000,\"p99_ms\":3,"
                 "\"throughput_ci95\":[500,2000]},"
                 "{\"name\":\"b\",\"usd_per_hour\":7.2,\"throughput_per_s\":4000,\"p99_ms\":9},"
                 "{\"name\":\"c\",\"usd_per_hour\":8,\"throughput_per_s\":900,\"p99_ms\":2},"
                 "{\"name\":\"d\",\"usd_per_hour\":8,\"throughput_per_s\":800,\"p99_ms\":4},"
                 "{\"name\":\"free\",\"usd_per_hour\":0,\"throughput_per_s\":10},"
                 "{\"name\":\"minus\",\"usd_per_hour\":-1,\"throughput_per_s\":10},"
                 "{\"name\":\"idle\",\"usd_per_hour\":1,\"throughput_per_s\":0},"
                 "{\"name\":\"unknown\",\"throughput_per_s\":10},"
                 "{\"name\":\"own\",\"purchase_usd\":26280,\"years\":3,\"power_w\":500,"
                 "\"usd_per_kwh\":0.4,\"throughput_per_s\":100}"
                 "],\"slo_p99_ms\":5}");
    const wb_json *items = wb_json_get(out, "items"), *a = wb_json_at(items, 0);
    WB_AUTO_JSON wb_json *pareto = topic_parsed("[\"a\",\"b\",\"own\"]");
    WB_AUTO_JSON wb_json *latency = topic_parsed("[\"a\",\"b\",\"c\"]");

    topic_near("cost", topic_figure(a, "usd_per_million_ops"), 1, 1e-14);
    topic_near("low", wb_json_number(wb_json_at(wb_json_get(a, "usd_per_million_ops_ci95"), 0), 0),
               0.5, 1e-14);
    topic_near("high", wb_json_number(wb_json_at(wb_json_get(a, "usd_per_million_ops_ci95"), 1), 0),
               2, 1e-14);
    topic_near("ops", topic_figure(a, "ops_per_usd"), 1e6, 1e-14);
    topic_near("month", topic_figure(a, "usd_per_month_per_1000_ops_s"), 3.6 * 730, 1e-14);
    topic_near("owned", topic_figure(wb_json_at(items, 8), "usd_per_hour"), 1.2, 1e-14);
    assert_string_equal(wb_json_str_or(out, "cheapest", ""), "b");
    assert_string_equal(wb_json_str_or(out, "cheapest_at_slo", ""), "a");
    for (size_t i = 4; i < 8; i++)
        if (wb_json_str_or(wb_json_at(items, i), "reason", NULL) == NULL)
            fail_msg("item %zu has a price", i);
    assert_int_equal(wb_json_int_or(out, "n", 0), 5);
    if (!wb_json_equal(wb_json_get(out, "pareto"), pareto) ||
        !wb_json_equal(wb_json_get(out, "pareto_latency"), latency))
        fail_msg("other choices");
}

static void price_without_choice(void **state)
{
    WB_AUTO_JSON wb_json *none = topic_ask("price", "{\"items\":[{\"name\":\"a\"}]}");
    WB_AUTO_JSON wb_json *slow =
        topic_ask("price", "{\"items\":[{\"name\":\"a\",\"usd_per_hour\":1,\"throughput_per_s\":1,"
                           "\"p99_ms\":9}],\"slo_p99_ms\":5}");
    WB_AUTO_JSON wb_json *owned = topic_ask(
        "price", "{\"purchase_usd\":8760,\"years\":1,\"power_w\":1000,\"usd_per_kwh\":0.5}");

    assert_true(strlen(wb_json_str_or(none, "cheapest_reason", "")) > 0);
    assert_int_equal(wb_json_len(wb_json_get(none, "pareto")), 0);
    assert_true(topic_warned(none, "no-slo"));
    assert_string_equal(wb_json_str_or(slow, "cheapest_at_slo_reason", ""),
                        "no item meets the SLO");
    topic_near("owned", topic_figure(owned, "usd_per_hour"), 1.5, 1e-15);
}

static void composite_by_hand(void **state)
{
    WB_AUTO_JSON wb_json *out =
        topic_ask("composite",
                  "{\"metrics\":[{\"name\":\"a\",\"base\":100,\"new\":400,\"better\":\"higher\"},"
                  "{\"name\":\"b\",\"base\":10,\"new\":10,\"better\":\"lower\"},"
                  "{\"name\":\"z\",\"base\":0,\"new\":10,\"better\":\"lower\"},"
                  "{\"name\":\"m\",\"base\":1,\"new\":null,\"better\":\"lower\"},"
                  "{\"name\":\"w\",\"base\":1,\"new\":2}]}");
    WB_AUTO_JSON wb_json *back =
        topic_ask("composite", "{\"metrics\":[{\"base\":10,\"new\":10,\"better\":\"lower\"},"
                               "{\"base\":[399,400,700],\"new\":100,\"better\":\"higher\"}]}");
    WB_AUTO_JSON wb_json *none = topic_ask("composite", "{\"metrics\":[{}]}");

    topic_near("mean", topic_figure(out, "geomean_ratio"), 2, 1e-14);
    topic_near("back", topic_figure(back, "geomean_ratio"), 0.5, 1e-14);
    assert_int_equal(wb_json_len(wb_json_get(out, "left_out")), 3);
    for (size_t i = 0; i < 3; i++)
        assert_non_null(
            wb_json_str_or(wb_json_at(wb_json_get(out, "left_out"), i), "reason", NULL));
    assert_true(isnan(topic_figure(none, "geomean_ratio")));
}

/* The published geometric mean is of ratios of times: goodness is its inverse. */
static void composite_of_published_rows(void **state)
{
    WB_AUTO_JSON wb_json *doc = NULL, *in = wb_json_object(), *out = NULL;
    wb_json *metrics;

    assert_int_equal(
        wb_json_read_file("tests/data/analysis/benchstat-geomean.json", 1 << 20, &doc, NULL), 0);
    metrics = wb_json_copy(wb_json_path(doc, "input.rows"));
    for (size_t i = 0; i < wb_json_len(metrics); i++)
        wb_json_set_str(wb_json_at(metrics, i), "better", "lower");
    wb_json_set(in, "metrics", metrics);
    out = topic_ask_json("composite", in);
    topic_near("geomean", 1 / topic_figure(out, "geomean_ratio"),
               topic_figure(doc, "expected.geomean_of_ratios"), 1e-9);
}

static void refuses_bad_input(void **state)
{
    static const struct {
        const char *topic, *in, *part;
    } cases[] = {
        {"spread", "{\"values\":[\"1\"]}", "/values/0: must be a number"},
        {"spread", "{\"values\":\"1\"}", "/values: must be a list"},
        {"variance", "{\"runs\":[[1],[true]]}", "/runs/1/0: must be a number"},
        {"variance", "{\"runs\":[[1]],\"cost_iteration_s\":0}", "/cost_iteration_s: must be"},
        {"power", "{\"effect_percent\":1}", "/cv_percent: is missing"},
        {"power", "{\"effect_percent\":1,\"cv_percent\":-1}", "/cv_percent: must be"},
        {"power", "{\"n\":2.5,\"m\":3}", "/n: must be a whole number"},
        {"power", "{\"n\":2}", "/m: is missing"},
        {"power", "{\"n\":2,\"m\":2,\"effect_percent\":1}", "/n: stands beside"},
        {"power", "{\"effect_percent\":1,\"cv_percent\":1,\"alpha\":0}", "/alpha: must be"},
        {"queue", "{}", "/clients: give one of"},
        {"queue", "{\"clients\":1,\"servers\":1}", "/servers: give one of"},
        {"queue", "{\"clients\":0,\"throughput_per_s\":1}", "/clients: must be"},
        {"queue", "{\"clients\":1,\"throughput_per_s\":-1}", "/throughput_per_s: must be"},
        {"queue", "{\"target_per_s\":1}", "/achieved_per_s: is missing"},
        {"queue", "{\"servers\":1.5,\"service_ms\":1,\"arrival_per_s\":1}", "/servers: must be a"},
        {"price", "{\"items\":[]}", "/items: must be a list"},
        {"price", "{\"items\":[1]}", "/items/0: must be an object"},
        {"price", "{\"items\":[{\"usd_per_hour\":\"1\"}]}", "/items/0/usd_per_hour: must be"},
        {"price", "{\"items\":[{\"throughput_ci95\":[2,1]}]}", "/items/0/throughput_ci95: must be"},
        {"price", "{\"purchase_usd\":1}", "/years: is missing"},
        {"price", "{\"purchase_usd\":1,\"years\":0}", "/years: must be"},
        {"composite", "{\"metrics\":[{\"better\":\"more\"}]}", "/metrics/0/better: must be"},
        {"composite", "{\"metrics\":[{\"base\":\"1\"}]}", "/metrics/0/base: must be"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        topic_refuses(cases[i].topic, cases[i].in, cases[i].part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_topic_is_complete),
        cmocka_unit_test(every_topic_survives_anything),
        cmocka_unit_test(reads_csv),
        cmocka_unit_test(refuses_csv_of_another_shape),
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(sums_lose_no_digits),
        cmocka_unit_test(spread_by_hand),
        cmocka_unit_test(spread_keeps_its_shape),
        cmocka_unit_test(spread_of_little),
        cmocka_unit_test(variance_by_hand),
        cmocka_unit_test(variance_keeps_its_shape),
        cmocka_unit_test(power_is_that_of_the_exact_test),
        cmocka_unit_test(power_needs),
        cmocka_unit_test(power_has_no_step),
        cmocka_unit_test(queue_verdicts),
        cmocka_unit_test(queue_reference),
        cmocka_unit_test(price_by_hand),
        cmocka_unit_test(price_without_choice),
        cmocka_unit_test(composite_by_hand),
        cmocka_unit_test(composite_of_published_rows),
        cmocka_unit_test(refuses_bad_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
