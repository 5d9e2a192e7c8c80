/* Plans: order, placement, series keys, contrasts, JSON and what people see. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/study/plan.h"

/* Overrides are separated by ';'. */
static struct wb_study *read_study(const char *path, const char *overrides)
{
    struct wb_study_options o = {.recipes_dir = "tests/data/recipes"};
    struct wb_problems p = {0};
    struct wb_strv list = {0};
    struct wb_study *s;

    for (const char *c = overrides; c && *c; c += strcspn(c, ";"), c += *c == ';')
        wb_strv_addf(&list, "%.*s", (int)strcspn(c, ";"), c);
    o.overrides = list.v;
    s = wb_study_read_file(path, &o, &p);
    if (!s)
        fail_msg("%s: %s", path, p.v[0].message);
    wb_strv_release(&list);
    return s;
}

static struct wb_study *small(const char *overrides)
{
    return read_study("tests/data/studies/good-small.yaml", overrides);
}

#define CPUS_MAX 64
struct fake_host {
    struct wb_host_facts f;
    int cpus[CPUS_MAX];
};

static void make_host(struct fake_host *h, int ncpus)
{
    *h = (struct fake_host){.f = {.ncpus = ncpus, .memory_bytes = 16LL << 30}};
    for (int i = 0; i < ncpus; i++)
        h->cpus[i] = i;
    h->f.cpus = h->cpus;
    h->f.mems = wb_strdup("0");
    h->f.host_class = wb_strdup("test CPU, 4 CPUs, 16 GiB");
}

static void host_release(struct fake_host *h)
{
    free(h->f.mems);
    free(h->f.host_class);
}

static struct wb_plan *plan_of(const struct wb_study *s, int ncpus, uint64_t seed)
{
    struct fake_host h;
    struct wb_problems p = {0};
    struct wb_plan *plan;

    make_host(&h, ncpus);
    plan = wb_plan_make(s, &h.f, seed, &p);
    host_release(&h);
    if (!plan)
        fail_msg("%s", p.v[0].message);
    return plan;
}

static void test_placement(void **state)
{
    static const struct {
        const char *cpus; /* allowed */
        const char *database, *load;
    } rows[] = {
        {"0-1", "1", "0"},     {"0-2", "1-2", "0"},       {"0-3", "2-3", "0-1"},
        {"0-4", "2-4", "0-1"}, {"2,5,7,9", "7,9", "2,5"}, {"0-15", "8-15", "0-7"},
    };
    struct wb_study *s = small(NULL);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {0};
        struct wb_host_facts f = {.memory_bytes = 4LL << 30};
        struct wb_plan *plan;

        assert_int_equal(wb_parse_cpulist(rows[i].cpus, &f.cpus, &f.ncpus, NULL), 0);
        f.mems = wb_strdup("0-1");
        f.host_class = wb_strdup("x");
        plan = wb_plan_make(s, &f, 1, &p);
        assert_non_null(plan);
        assert_string_equal(plan->placement.database_cpus, rows[i].database);
        assert_string_equal(plan->placement.load_cpus, rows[i].load);
        assert_string_equal(plan->placement.agent_cpus, rows[i].load);
        assert_string_equal(plan->placement.mems, "0-1");
        assert_false(plan->placement.shared);
        wb_plan_free(plan);
        wb_host_facts_release(&f);
    }
    wb_study_free(s);
}

static void test_one_cpu(void **state)
{
    struct fake_host h;
    struct wb_problems p = {0};
    struct wb_study *s = small(NULL);
    struct wb_plan *plan;

    make_host(&h, 1);
    assert_null(wb_plan_make(s, &h.f, 1, &p));
    assert_int_equal(p.n, 1);
    assert_string_equal(p.v[0].code, "capacity");
    assert_string_equal(p.v[0].message,
                        "placement same-host needs at least 2 CPUs, one for the database and one "
                        "for the load; this process may use 1. placement: shared runs both on it "
                        "and marks every result");
    wb_problems_release(&p);
    wb_study_free(s);
    s = small("placement=shared");
    plan = wb_plan_make(s, &h.f, 1, &p);
    assert_non_null(plan);
    assert_true(plan->placement.shared);
    assert_string_equal(plan->placement.database_cpus, "0");
    assert_string_equal(plan->placement.load_cpus, "0");
    wb_plan_free(plan);
    wb_study_free(s);
    host_release(&h);
}

static void test_memory(void **state)
{
    static const struct {
        const char *memory;
        int64_t host;
        const char *message;
    } rows[] = {
        {"memory=1GiB", (1LL << 30) + (512LL << 20), NULL},
        {"memory=1GiB", (1LL << 30) + (512LL << 20) - 1,
         "the database gets 1.0 GiB, but this host has 1.5 GiB and 512 MiB of it must stay for the "
         "load and the system; lower memory"},
        {"memory=64GiB", 16LL << 30,
         "the database gets 64.0 GiB, but this host has 16.0 GiB and 512 MiB of it must stay for "
         "the load and the system; lower memory"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = small(rows[i].memory);
        struct wb_problems p = {0};
        struct fake_host h;
        struct wb_plan *plan;

        make_host(&h, 2);
        h.f.memory_bytes = rows[i].host;
        plan = wb_plan_make(s, &h.f, 1, &p);
        if (rows[i].message) {
            assert_null(plan);
            assert_string_equal(p.v[0].message, rows[i].message);
        } else
            assert_non_null(plan);
        wb_plan_free(plan);
        wb_problems_release(&p);
        host_release(&h);
        wb_study_free(s);
    }
}

#define FORMS_AND_CACHE "form=native x1, docker x1;setting.cache=0, 64MiB, 128MiB;rounds=200"

/* Every round has every arm once; the order of rounds differs; the same seed gives it again. */
static void test_order(void **state)
{
    struct wb_study *s = small(FORMS_AND_CACHE);
    struct wb_plan *a = plan_of(s, 4, 99), *b = plan_of(s, 4, 99), *c = plan_of(s, 4, 100);
    size_t n = (size_t)a->rounds * a->narms;
    int first[6] = {0};

    assert_int_equal(a->narms, 6);
    assert_int_equal(a->rounds, 200);
    assert_int_equal(a->seed, 99);
    assert_memory_equal(a->order, b->order, n * sizeof *a->order);
    assert_true(memcmp(a->order, c->order, n * sizeof *a->order) != 0);
    assert_string_not_equal(a->campaign, b->campaign);
    for (int r = 0; r < a->rounds; r++) {
        unsigned seen = 0;

        for (size_t i = 0; i < 6; i++)
            seen |= 1u << a->order[(size_t)r * 6 + i];
        assert_int_equal(seen, 63);
        first[a->order[(size_t)r * 6]]++;
    }
    /* Each arm comes first in a sixth of 200 rounds; 5 sigma around 33.3. */
    for (size_t i = 0; i < 6; i++)
        assert_in_range(first[i], 8, 59);
    wb_plan_free(a);
    wb_plan_free(b);
    wb_plan_free(c);
    wb_study_free(s);
}

static void test_seed(void **state)
{
    struct wb_study *free_s = small(NULL), *fixed = small("seed=77");
    struct wb_plan *a = plan_of(free_s, 2, 0), *b = plan_of(free_s, 2, 0),
                   *c = plan_of(fixed, 2, 0), *d = plan_of(fixed, 2, 5);

    assert_true(a->seed != 0 && a->seed < 1ULL << 53);
    assert_true(a->seed != b->seed);
    assert_int_equal(c->seed, 77);
    assert_int_equal(d->seed, 5);
    wb_plan_free(a);
    wb_plan_free(b);
    wb_plan_free(c);
    wb_plan_free(d);
    wb_study_free(free_s);
    wb_study_free(fixed);
}

static void test_arms(void **state)
{
    static const char *const labels[] = {
        "native x1/0/a", "native x1/0/b", "native x1/64MiB/a", "native x1/64MiB/b",
        "docker x1/0/a", "docker x1/0/b", "docker x1/64MiB/a", "docker x1/64MiB/b"};
    struct wb_study *s = small(
        "form=native x1, docker x1;setting.cache=0, 64MiB;setting.hz=20;cpu_quota=0.5;copies=2");
    struct wb_plan *plan = plan_of(s, 2, 1);
    const struct wb_arm *last = &plan->arms[7];

    assert_int_equal(plan->narms, WB_LEN(labels));
    for (size_t i = 0; i < WB_LEN(labels); i++)
        assert_string_equal(plan->arms[i].label, labels[i]);
    assert_ptr_equal(last->form.ops, &wb_form_docker);
    assert_true(last->cpu_quota == 0.5);
    assert_int_equal(last->nvalues, 5);
    assert_string_equal(last->values[1].factor, "setting.cache");
    assert_string_equal(last->values[1].value, "64MiB");
    assert_string_equal(last->values[4].factor, "copy");
    assert_string_equal(last->values[4].value, "b");
    assert_int_equal(last->nsettings, 5);
    assert_string_equal(last->settings[0].name, "cache");
    assert_string_equal(last->settings[0].value, "67108864");
    assert_string_equal(last->settings[1].value, "lru");
    assert_string_equal(last->settings[2].value, "no");
    assert_string_equal(last->settings[3].value, "");
    assert_string_equal(last->settings[4].value, "20");
    wb_plan_free(plan);
    wb_study_free(s);
}

/* The key of the first arm with some overrides on a host. */
static void key_of(const char *override, int ncpus, const char *host_class, char out[17])
{
    struct wb_study *s = small(override);
    struct wb_problems p = {0};
    struct fake_host h;
    struct wb_plan *plan;

    make_host(&h, ncpus);
    free(h.f.host_class);
    h.f.host_class = wb_strdup(host_class);
    plan = wb_plan_make(s, &h.f, 1, &p);
    assert_non_null(plan);
    memcpy(out, plan->arms[0].series_key, 17);
    wb_plan_free(plan);
    host_release(&h);
    wb_study_free(s);
}

static void test_series_key(void **state)
{
    static const struct {
        const char *override;
        int ncpus;
        const char *host_class;
        bool same;
    } rows[] = {
        {"rounds=30", 2, "x", true},
        {"threshold=5%", 2, "x", true},
        {"study=other", 2, "x", true},
        {"seed=9", 2, "x", true},
        {"copies=2", 2, "x", true},
        {"recipe.version='3.9'", 2, "x", true},
        {"form=native x1, docker x1", 2, "x", true},
        {"form=docker x1", 2, "x", false},
        {"setting.cache=0", 2, "x", true},
        {"setting.cache=1MiB", 2, "x", false},
        {"cpu_quota=0.85", 2, "x", false},
        {"limits=none", 2, "x", false},
        {"page_cache=as-is", 2, "x", true},
        {"page_cache=dropped", 2, "x", false},
        {"reuse=none", 2, "x", true},
        {"memory=2GiB", 2, "x", false},
        {"workload.data.rows=1001", 2, "x", false},
        {"workload.phases.max.for=2s", 2, "x", false},
        {"workload.phases.max.keys=zipf", 2, "x", false},
        {NULL, 4, "x", false},
        {NULL, 2, "y", false},
    };
    char base[17], again[17], key[17];

    key_of(NULL, 2, "x", base);
    key_of(NULL, 2, "x", again);
    assert_string_equal(base, again);
    assert_int_equal(strspn(base, "0123456789abcdef"), 16);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        key_of(rows[i].override, rows[i].ncpus, rows[i].host_class, key);
        if ((strcmp(key, base) == 0) != rows[i].same)
            fail_msg("%s: %s against %s", rows[i].override, key, base);
    }
}

/* What rounds repeat is in the plan, and another series than what they repeat otherwise. */
static void test_reuse(void **state)
{
    static const char *const rows[][2] = {
        {NULL, "deployment"}, {"reuse=none", "deployment"}, {"reuse=data", "restart"}};
    char keys[WB_LEN(rows)][17];

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = read_study("tests/data/studies/good-during.yaml", rows[i][0]);
        struct wb_plan *plan = plan_of(s, 4, 1);
        WB_AUTO_JSON wb_json *j = wb_plan_json(plan);

        assert_string_equal(wb_json_str_or(j, "repetition", ""), rows[i][1]);
        memcpy(keys[i], plan->arms[0].series_key, sizeof(keys[i]));
        wb_plan_free(plan);
        wb_study_free(s);
    }
    assert_string_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[0], keys[2]);
}

static bool has_warning(const wb_json *plan, const char *code)
{
    const wb_json *list = wb_json_get(plan, "warnings");

    for (size_t i = 0; i < wb_json_len(list); i++) {
        if (strcmp(wb_json_str_or(wb_json_at(list, i), "code", ""), code) == 0)
            return true;
    }
    return false;
}

/* Looks of `until: decided`: where they are, and what each may err. */
static void test_looks(void **state)
{
    static const struct {
        const char *rounds; /* overrides */
        int most, n;
        int looks[WB_LOOKS_MAX];
    } rows[] = {
        {"rounds=30", 30, 0, {0}},
        {"rounds={at_least: 8, at_most: 30, until: decided}", 30, 4, {8, 12, 19, 30}},
        /* 6 rounds cannot show anything at 1.25 %: 2^-5 is 3.1 %. */
        {"rounds={at_least: 6, at_most: 30, until: decided}", 30, 4, {8, 12, 19, 30}},
        {"rounds={at_most: 30, until: decided}", 30, 4, {8, 12, 19, 30}},
        {"rounds={at_least: 20, at_most: 30, until: decided}", 30, 4, {20, 23, 26, 30}},
        {"rounds={at_least: 8, at_most: 12, until: decided}", 12, 3, {8, 10, 12}},
        {"rounds={at_least: 8, at_most: 10, until: decided}", 10, 2, {8, 10}},
        {"rounds={at_least: 8, at_most: 8, until: decided}", 8, 1, {8}},
        {"rounds={at_most: 7, until: decided}", 7, 1, {7}},
        {"rounds={at_most: 1000, until: decided}", 1000, 4, {8, 40, 200, 1000}},
        /* Five contrasts: the least p is 5 times as much. */
        {"rounds={at_most: 30, until: decided};cpu_quota=none, 1, 0.9, 0.8, 0.7, 0.6",
         30,
         4,
         {10, 14, 21, 30}},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *all = wb_strf("copies=2;%s", rows[i].rounds);
        struct wb_study *s = small(strstr(rows[i].rounds, "quota") ? rows[i].rounds : all);
        struct wb_plan *plan = plan_of(s, 4, 1);
        WB_AUTO_JSON wb_json *j = wb_plan_json(plan);
        struct wb_buf b = WB_BUF_INIT(1 << 20);

        assert_int_equal(plan->rounds, rows[i].most);
        if (plan->nlooks != rows[i].n)
            fail_msg("%s: %d looks", rows[i].rounds, plan->nlooks);
        for (int k = 0; k < plan->nlooks; k++) {
            if (plan->looks[k].rounds != rows[i].looks[k])
                fail_msg("%s: look %d after %d", rows[i].rounds, k, plan->looks[k].rounds);
            assert_true(plan->looks[k].alpha == 0.05 / plan->nlooks);
        }
        assert_int_equal(wb_json_len(wb_json_get(j, "looks")), rows[i].n);
        assert_int_equal(has_warning(j, "one-look"), rows[i].n == 1);
        wb_plan_print(plan, 80, &b);
        assert_int_equal(strstr(b.data, "\nlooks      after round ") != NULL, rows[i].n > 0);
        wb_buf_release(&b);
        wb_plan_free(plan);
        wb_study_free(s);
    }
}

static void test_nothing_to_decide(void **state)
{
    struct wb_study *s = small("rounds={at_most: 30, until: decided}");
    struct wb_plan *plan = plan_of(s, 4, 1);
    WB_AUTO_JSON wb_json *j = wb_plan_json(plan);

    assert_int_equal(plan->nlooks, 0);
    assert_int_equal(plan->rounds, 30);
    assert_true(has_warning(j, "nothing-to-decide"));
    wb_plan_free(plan);
    wb_study_free(s);
}

static void test_json(void **state)
{
    static const char *const keys[] = {
        "campaign",
        "study",
        "recipe",
        "rounds",
        "seed",
        "arms",
        "contrasts",
        "order",
        "placement",
        "calibration_arm",
        "threshold_percent",
        "accept_noisy",
        "runs",
        "forecast_s",
        "warnings",
        "validity_limits",
        "memory_bytes",
        "host_class",
        "workload",
    };
    struct wb_study *s = read_study("tests/data/studies/good-full.yaml", NULL);
    struct wb_plan *plan = plan_of(s, 4, 0);
    wb_json *j = wb_plan_json(plan);
    const wb_json *arm = wb_json_at(wb_json_get(j, "arms"), 1);
    const wb_json *c = wb_json_get(j, "contrasts");

    for (size_t i = 0; i < WB_LEN(keys); i++)
        assert_non_null(wb_json_get(j, keys[i]));
    assert_string_equal(wb_json_str_or(j, "study", ""), "full");
    assert_int_equal(wb_json_int_or(j, "seed", 0), 42);
    assert_int_equal(wb_json_int_or(j, "runs", 0), 36);
    assert_int_equal(wb_json_len(wb_json_get(j, "order")), 6);
    assert_int_equal(wb_json_len(wb_json_at(wb_json_get(j, "order"), 5)), 6);
    assert_string_equal(wb_json_str_or(j, "calibration_arm", ""), "native x1/64MiB");
    assert_string_equal(wb_json_string(wb_json_path(j, "recipe.version")), "3.9");
    assert_string_equal(wb_json_str_or(arm, "label", ""), "native x1/64MiB");
    assert_string_equal(wb_json_str_or(arm, "form", ""), "native");
    assert_int_equal(wb_json_int_or(arm, "count", 0), 1);
    assert_string_equal(wb_json_str_or(wb_json_get(arm, "settings"), "cache", ""), "67108864");
    assert_string_equal(wb_json_str_or(wb_json_get(arm, "factors"), "setting.cache", ""), "64MiB");
    assert_int_equal(wb_json_type(wb_json_get(arm, "cpu_quota")), WB_JSON_NULL);
    assert_true(wb_json_bool_or(wb_json_get(j, "placement"), "shared", false));
    assert_string_equal(wb_json_str_or(wb_json_at(c, 0), "metric", ""), "max.throughput");
    assert_string_equal(wb_json_str_or(wb_json_at(c, 0), "better", ""), "higher");
    assert_string_equal(wb_json_str_or(wb_json_at(c, 1), "name", ""), "cache");
    assert_string_equal(wb_json_str_or(wb_json_at(c, 1), "against", ""), "native x1/0");
    assert_string_equal(wb_json_str_or(wb_json_at(c, 1), "better", ""), "lower");
    assert_true(has_warning(j, "shared-placement"));
    assert_true(has_warning(j, "no-contrast"));
    assert_false(has_warning(j, "few-rounds"));
    assert_true(wb_json_real_or(wb_json_path(j, "validity_limits.steal"), "invalid", 0) == 2);
    wb_json_free(j);
    wb_plan_free(plan);
    wb_study_free(s);
}

static void test_seed_in_json(void **state)
{
    static const struct {
        uint64_t seed;
        const char *text;
    } rows[] = {
        {1, "1"},
        {9007199254740992ULL, "9007199254740992"},
        {9007199254740993ULL, "\"9007199254740993\""},
        {UINT64_MAX, "\"18446744073709551615\""},
    };
    struct wb_study *s = small(NULL);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_plan *plan = plan_of(s, 2, rows[i].seed);
        wb_json *j = wb_plan_json(plan);
        struct wb_buf b = WB_BUF_INIT(64);

        wb_json_line(wb_json_get(j, "seed"), &b);
        assert_string_equal(wb_buf_str(&b), rows[i].text);
        wb_buf_release(&b);
        wb_json_free(j);
        wb_plan_free(plan);
    }
    wb_study_free(s);
}

static void test_warnings(void **state)
{
    struct wb_study *s = small("rounds=5;cpu_quota=none, 1");
    struct wb_plan *plan = plan_of(s, 2, 1);
    wb_json *j = wb_plan_json(plan);

    assert_true(has_warning(j, "few-rounds"));
    assert_true(has_warning(j, "quota-without-effect"));
    assert_false(has_warning(j, "shared-placement"));
    assert_false(has_warning(j, "no-contrast"));
    assert_int_equal(wb_json_type(wb_json_get(j, "calibration_arm")), WB_JSON_NULL);
    wb_json_free(j);
    wb_plan_free(plan);
    wb_study_free(s);
}

/* A list of rates is steps: phases of their own, shuffled in every round, the same in all arms. */
static void test_steps(void **state)
{
    static const char *const names[] = {"load",      "max",         "mixed@1k",      "mixed@1500",
                                        "mixed@0_5", "mixed@50pct", "mixed@12_5pct", "mixed@2000k"};
    struct wb_study *s = read_study("tests/data/studies/good-steps.yaml", "rounds=200");
    struct wb_plan *a = plan_of(s, 4, 7), *b = plan_of(s, 4, 7), *c = plan_of(s, 4, 8);
    const struct wb_setup *setup = wb_study_setup(s);
    int order[WB_LEN(names)], again[WB_LEN(names)], other[WB_LEN(names)];
    int first[WB_LEN(names)] = {0}, differ = 0;
    wb_json *j = wb_plan_json(a);

    assert_int_equal(setup->nphases, WB_LEN(names));
    for (size_t i = 0; i < WB_LEN(names); i++) {
        assert_string_equal(setup->phases[i].name, names[i]);
        if (i < 2)
            assert_null(setup->phases[i].steps_of);
        else
            assert_string_equal(setup->phases[i].steps_of, "mixed");
    }
    assert_true(setup->phases[3].rate_per_s == 1500);
    assert_true(setup->phases[6].calibrated_percent == 12.5);
    assert_int_equal(setup->phases[6].pace, WB_PACE_CALIBRATED);
    assert_string_equal(setup->phases[7].arrivals, "constant");
    for (int r = 1; r <= 200; r++) {
        unsigned seen = 0;

        wb_plan_phase_order(a, r, order);
        wb_plan_phase_order(b, r, again);
        wb_plan_phase_order(c, r, other);
        assert_memory_equal(order, again, sizeof order);
        differ += memcmp(order, other, sizeof order) != 0;
        assert_int_equal(order[0], 0);
        assert_int_equal(order[1], 1);
        for (size_t i = 0; i < WB_LEN(names); i++)
            seen |= 1u << order[i];
        assert_int_equal(seen, 255);
        first[order[2]]++;
    }
    assert_true(differ > 150);
    /* Each step comes first in a sixth of 200 rounds; 5 sigma around 33.3. */
    for (size_t i = 2; i < WB_LEN(names); i++)
        assert_in_range(first[i], 8, 59);
    assert_int_equal(wb_json_len(wb_json_get(j, "phase_order")), 200);
    wb_plan_phase_order(a, 200, order);
    for (size_t i = 0; i < WB_LEN(names); i++)
        assert_string_equal(
            wb_json_string(wb_json_at(wb_json_at(wb_json_get(j, "phase_order"), 199), i)),
            names[order[i]]);
    assert_string_equal(wb_metric_phase(s, "mixed@1500.p99_9_ms")->name, "mixed@1500");
    assert_null(wb_metric_phase(s, "mixed.p99_ms"));
    wb_json_free(j);
    wb_plan_free(a);
    wb_plan_free(b);
    wb_plan_free(c);
    wb_study_free(s);
}

/* A limit adds a search to a list of rates; searches are judged by what they find. */
static void test_slo(void **state)
{
    static const char *const names[] = {"load",     "max",       "mixed@2k",
                                        "mixed@1k", "mixed@slo", "highest"};
    struct wb_study *s = read_study("tests/data/studies/good-slo.yaml", NULL);
    struct wb_plan *plan = plan_of(s, 4, 7);
    const struct wb_setup *setup = wb_study_setup(s);
    const struct wb_phase *ph = setup->phases;
    wb_json *j = wb_plan_json(plan), *w = wb_json_get(j, "workload"), *p;
    struct wb_buf text = WB_BUF_INIT(65536);

    assert_int_equal(setup->nphases, WB_LEN(names));
    for (size_t i = 0; i < WB_LEN(names); i++)
        assert_string_equal(ph[i].name, names[i]);
    assert_string_equal(setup->slo.text, "p99.9<20ms");
    assert_string_equal(setup->slo.figure, "p99_9_ms");
    assert_true(setup->slo.limit_ms == 20);
    assert_int_equal(setup->value_bytes, 300);
    assert_string_equal(setup->value_size, "100B=75,900B=25");
    assert_string_equal(setup->value_content, "60%");
    assert_string_equal(ph[1].transactions, "login=get,10..100*get@derived; up=set,get");
    assert_string_equal(ph[1].txn_mix, "login=90,up=10");
    assert_true(ph[1].reads && ph[1].writes && ph[5].reads && !ph[5].writes);
    assert_int_equal(ph[4].pace, WB_PACE_SEARCH);
    assert_true(ph[4].rate_per_s == 1000 && ph[5].rate_per_s == 5000);
    assert_string_equal(ph[4].arrivals, "poisson");
    assert_true(ph[4].get_percent == 50);
    assert_true(wb_metric_phase(s, "highest.sustained") == &ph[5]);
    assert_null(wb_metric_phase(s, "max.sustained"));
    assert_true(wb_metric_higher_is_better("highest.sustained"));
    p = wb_json_at(wb_json_get(w, "phases"), 5);
    assert_string_equal(wb_json_str_or(p, "pace", ""), "search");
    assert_string_equal(wb_json_str_or(p, "limit", ""), "p99.9<20ms");
    assert_null(wb_json_get(wb_json_at(wb_json_get(w, "phases"), 3), "limit"));
    assert_string_equal(wb_json_str_or(w, "value_size", ""), "100B=75,900B=25");
    wb_plan_print(plan, 120, &text);
    assert_non_null(strstr(wb_buf_str(&text), "login, up"));
    assert_non_null(strstr(wb_buf_str(&text), "highest with p99.9<20ms"));
    wb_buf_release(&text);
    wb_json_free(j);
    wb_plan_free(plan);
    wb_study_free(s);
}

/* Arms of a path factor have a workload of their own. */
static void test_setups(void **state)
{
    struct wb_study *s = small("payload=64B, 1KiB;workload.phases.max.depth=1, 16;"
                               "factors.zip=[{memory: [1GiB, 2GiB], limits: [same, none]}]");
    struct wb_plan *plan = plan_of(s, 2, 1);
    wb_json *j = wb_plan_json(plan);
    const wb_json *arms = wb_json_get(j, "arms");

    assert_int_equal(plan->narms, 8);
    assert_string_equal(plan->arms[0].label, "64B/1/1GiB/same");
    assert_string_equal(plan->arms[7].label, "1KiB/16/2GiB/none");
    assert_int_equal(plan->arms[7].setup->value_bytes, 1024);
    assert_int_equal(plan->arms[7].setup->phases[1].depth, 16);
    assert_int_equal(plan->arms[7].setup->memory_bytes, 2LL << 30);
    assert_int_equal(plan->arms[7].setup->limits, WB_LIMITS_NONE);
    assert_int_equal(plan->arms[0].setup->value_bytes, 64);
    assert_int_equal(plan->arms[0].setup->phases[1].depth, 1);
    assert_null(wb_json_get(wb_json_at(arms, 0), "workload"));
    assert_int_equal(wb_json_int_or(wb_json_get(wb_json_at(arms, 7), "workload"), "value_bytes", 0),
                     1024);
    assert_string_equal(wb_json_str_or(wb_json_at(arms, 7), "limits", ""), "none");
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(plan->arms[i].series_key, plan->arms[k].series_key);
    wb_json_free(j);
    wb_plan_free(plan);
    wb_study_free(s);
}

static void test_sizes(void **state)
{
    static const struct {
        const char *size;
        int64_t rows;
    } rows[] = {{"80B", 1},
                {"1KiB", 12},
                {"50% of memory", (1LL << 29) / 80},
                {"150% of memory", 3 * (1LL << 29) / 80}};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *f = wb_strf("workload.data.rows=~;workload.data.size=%s", rows[i].size);
        struct wb_study *s = small(f);

        assert_int_equal(wb_study_setup(s)->rows, rows[i].rows);
        wb_study_free(s);
    }
}

static size_t count_points(const char *s, size_t n)
{
    size_t points = 0;

    for (size_t i = 0; i < n; i++)
        points += ((unsigned char)s[i] & 0xc0) != 0x80;
    return points;
}

static void test_print(void **state)
{
    static const int widths[] = {60, 80, 132};
    struct wb_study *s =
        small("form=native x1, docker x1;setting.cache=0, 64MiB, 128MiB, 512MiB;rounds=5;copies=2");
    struct wb_plan *plan = plan_of(s, 4, 1);

    for (size_t i = 0; i < WB_LEN(widths); i++) {
        struct wb_buf b = WB_BUF_INIT(1 << 20);

        wb_plan_print(plan, widths[i], &b);
        assert_false(b.failed);
        assert_true(b.data[b.len - 1] == '\n');
        for (const char *line = b.data; *line; line += strcspn(line, "\n") + 1) {
            if (count_points(line, strcspn(line, "\n")) > (size_t)widths[i])
                fail_msg("wider than %d: %.*s", widths[i], (int)strcspn(line, "\n"), line);
        }
        assert_non_null(strstr(b.data, "least: toy 3.10, 5 rounds of 16 arms, 80 runs\n"));
        assert_non_null(strstr(b.data, "docker x1/512MiB/b"));
        assert_non_null(strstr(b.data, "with seed 1\n"));
        assert_non_null(strstr(b.data, "database on CPU 2-3"));
        assert_non_null(strstr(b.data, "\nforecast   "));
        assert_non_null(strstr(b.data, "\nwarning    5 rounds: a verdict needs 6"));
        wb_buf_release(&b);
    }
    wb_plan_free(plan);
    wb_study_free(s);
}

static void test_ids(void **state)
{
    WB_AUTO_FREE char *a = wb_new_id("cmp_");
    WB_AUTO_FREE char *b = wb_new_id("cmp_");

    assert_int_equal(strlen(a), 30);
    assert_int_equal(strncmp(a, "cmp_", 4), 0);
    assert_int_equal(strspn(a + 4, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
    assert_string_not_equal(a, b);
    assert_true(strncmp(a, b, 14) <= 0); /* time leads, so that later ids sort behind */
}

static void test_this_machine(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_host_facts f;

    assert_int_equal(wb_host_facts_read(&f, &err), 0);
    assert_true(f.ncpus >= 1);
    for (int i = 1; i < f.ncpus; i++)
        assert_true(f.cpus[i - 1] < f.cpus[i]);
    assert_true(f.memory_bytes > 64LL << 20);
    assert_true(f.mems[0] >= '0' && f.mems[0] <= '9');
    assert_non_null(strstr(f.host_class, " GiB"));
    wb_host_facts_release(&f);
    assert_null(f.cpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_one_cpu),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_arms),
        cmocka_unit_test(test_series_key),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_nothing_to_decide),
        cmocka_unit_test(test_seed_in_json),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_slo),
        cmocka_unit_test(test_setups),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
