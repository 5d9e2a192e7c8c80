/* Which arms are compared with which, and what a contrast is about. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/study/parts.h"

/* The study of all tests here, with its factors and other keys as YAML. */
static struct wb_study *new_study(const char *factors, const char *more)
{
    static const char *const workload =
        "topology: sharded\n"
        "workload:\n"
        "  data: {rows: 1000, value: {size: 64B}}\n"
        "  phases:\n"
        "    - {name: load, op: insert, order: sequential, connections: 8}\n"
        "    - {name: max, op: get, connections: 8, for: 1s}\n"
        "    - {name: latency, op: get, connections: 8, rate: 60% of calibrated, for: 1s}\n";
    const struct wb_study_options o = {.recipes_dir = "tests/data/recipes"};
    WB_AUTO_FREE char *text =
        wb_strf("study: s\nrecipe: {name: toy, version: '3.9'}\nfactors: {%s}\n%s\n%s", factors,
                more ? more : "", workload);
    struct wb_buf said = WB_BUF_INIT(1 << 16);
    struct wb_problems p = {0};
    struct wb_node *tree = wb_yaml_check(text, strlen(text), &p);
    struct wb_study *s = tree ? wb_study_check(tree, NULL, &o, &p) : NULL;

    wb_problems_text(&p, &said);
    if (!s)
        fail_msg("%s\n%s", text, wb_buf_str(&said));
    wb_buf_release(&said);
    wb_problems_release(&p);
    return s;
}

/* The primary rows as "about: arm < against", one a line; counts all rows. */
static char *primaries(const struct wb_study *s, size_t *all)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    struct wb_contrast *v = NULL;
    struct wb_arm *arms = NULL;
    size_t narms = 0, n = 0;

    wb_arms_make(s, &arms, &narms);
    wb_contrasts_make(s, arms, narms, &v, &n);
    for (size_t i = 0; i < n; i++) {
        if (v[i].primary) {
            assert_string_equal(v[i].metric, "max.throughput");
            wb_buf_addf(&b, "%s: %s < %s\n", v[i].about, arms[v[i].arm].label,
                        arms[v[i].against].label);
        }
        free(v[i].name);
        free(v[i].about);
        free(v[i].metric);
    }
    free(v);
    wb_arms_free(arms, narms);
    *all = n;
    return b.data ? wb_buf_take(&b) : wb_strdup("");
}

static void test_default_contrasts(void **state)
{
    static const struct {
        const char *factors, *more, *want;
    } rows[] = {
        {"form: native x1", NULL, ""},
        {"form: [native x1, docker x1]", NULL, "container cost: docker x1 < native x1\n"},
        {"form: [docker x1, native x1]", NULL, "container cost: docker x1 < native x1\n"},
        {"form: [native x1, native x2, native x4, docker x1, docker x2, docker x4]", NULL,
         "container cost: docker x1 < native x1\n"
         "container cost: docker x2 < native x2\n"
         "container cost: docker x4 < native x4\n"
         "more instances: native x2 < native x1\n"
         "more instances: native x4 < native x1\n"},
        {"form: [native x1, native x4, docker x1, docker x2, docker x4]", NULL,
         "container cost: docker x1 < native x1\n"
         "container cost: docker x4 < native x4\n"
         "more instances: native x4 < native x1\n"
         "more instances: docker x2 < docker x1\n"},
        {"form: [docker x4, docker x1]", NULL, "more instances: docker x4 < docker x1\n"},
        {"form: [native x2, native x4]", NULL, ""},
        {"cpu_quota: [none, 0.85, 0.5]", NULL, "cpu_quota: 0.85 < none\ncpu_quota: 0.5 < none\n"},
        {"form: native x1", "copies: 3", "identical arms: b < a\nidentical arms: c < a\n"},
        {"form: [native x1, docker x1], cpu_quota: [none, 0.85]", NULL,
         "container cost: docker x1/none < native x1/none\n"
         "container cost: docker x1/0.85 < native x1/0.85\n"
         "cpu_quota: native x1/0.85 < native x1/none\n"
         "cpu_quota: docker x1/0.85 < docker x1/none\n"},
        {"cpu_quota: [none, 0.85]", "copies: 2",
         "cpu_quota: 0.85/a < none/a\nidentical arms: none/b < none/a\n"
         "identical arms: 0.85/b < 0.85/a\n"},
        /* Factors that are walked together are one thing. */
        {"form: [native x1, docker x1], zip: [{payload: [64B, 1KiB], depth: [16, 2]}]", NULL,
         "container cost: docker x1/64B/16 < native x1/64B/16\n"
         "container cost: docker x1/1KiB/2 < native x1/1KiB/2\n"
         "payload+depth: native x1/1KiB/2 < native x1/64B/16\n"
         "payload+depth: docker x1/1KiB/2 < docker x1/64B/16\n"},
        /* What is excluded is no partner. */
        {"form: [native x1, docker x1], payload: [64B, 1KiB]",
         "exclude: [{form: native x1, payload: 64B}]",
         "container cost: docker x1/1KiB < native x1/1KiB\n"
         "payload: docker x1/1KiB < docker x1/64B\n"},
        /* Native instances are measured once, on the host's network. */
        {"form: [native x1, docker x1], network: [host, published]", NULL,
         "container cost: docker x1/host < native x1/host\n"
         "network: docker x1/published < docker x1/host\n"},
        {"form: [native x1, docker x1], network: [published, routed]", NULL,
         "container cost: docker x1/published < native x1/host\n"
         "container cost: docker x1/routed < native x1/host\n"
         "network: docker x1/routed < docker x1/published\n"},
        {"form: [native x2, native x1], share: [host, instance]", NULL,
         "more instances: native x2/host < native x1/host\n"
         "more instances: native x2/instance < native x1/instance\n"
         "share: native x2/instance < native x2/host\n"
         "share: native x1/instance < native x1/host\n"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = new_study(rows[i].factors, rows[i].more);
        size_t all = 0, lines = 0;
        WB_AUTO_FREE char *got = primaries(s, &all);

        assert_string_equal(got, rows[i].want);
        for (const char *c = got; *c; c++)
            lines += *c == '\n';
        /* throughput, p50, p99, p99.9 of max; the same without throughput of the fixed rate. */
        assert_int_equal(all, lines * 7);
        wb_study_free(s);
    }
}

static void ask(struct wb_study *s, const char *arm, const char *against, const char *metric)
{
    s->contrasts = wb_realloc(s->contrasts, s->ncontrasts + 1, sizeof *s->contrasts);
    s->contrasts[s->ncontrasts++] =
        (struct wb_contrast_ask){NULL, wb_strdup(arm), wb_strdup(against), wb_strdup(metric)};
}

static void test_asked_contrasts(void **state)
{
    static const struct {
        const char *metric;
        bool primary, higher;
    } want[] = {
        {"latency.p99_ms", true, false},  {"latency.throughput", true, true},
        {"max.throughput", false, true},  {"max.p50_ms", false, false},
        {"max.p99_ms", false, false},     {"max.p99_9_ms", false, false},
        {"latency.p50_ms", false, false}, {"latency.p99_9_ms", false, false},
    };
    struct wb_study *s = new_study("form: [native x1, docker x1]", NULL);
    struct wb_contrast *v = NULL;
    struct wb_arm *arms = NULL;
    size_t narms = 0, n = 0;

    ask(s, "docker x1", "native x1", "latency.p99_ms");
    ask(s, "docker x1", "native x1", "latency.throughput");
    ask(s, "docker x1", "native x1", "latency.p99_ms");
    wb_arms_make(s, &arms, &narms);
    wb_contrasts_make(s, arms, narms, &v, &n);
    assert_int_equal(n, WB_LEN(want));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(v[i].name, "docker x1 against native x1");
        assert_string_equal(v[i].about, "container cost");
        assert_string_equal(v[i].metric, want[i].metric);
        assert_int_equal(v[i].primary, want[i].primary);
        assert_int_equal(v[i].higher_is_better, want[i].higher);
        assert_int_equal(v[i].arm, 1);
        assert_int_equal(v[i].against, 0);
        free(v[i].name);
        free(v[i].about);
        free(v[i].metric);
    }
    free(v);
    wb_arms_free(arms, narms);
    wb_study_free(s);
}

static void test_metrics(void **state)
{
    static const struct {
        const char *metric, *phase;
    } rows[] = {
        {"max.throughput", "max"},
        {"latency.p99_9_ms", "latency"},
        {"load.throughput", NULL},
        {"max", NULL},
        {"max.", NULL},
        {".p50_ms", NULL},
        {"ma.p50_ms", NULL},
        {"maxx.p50_ms", NULL},
        {"max.p95_ms", NULL},
        {"", NULL},
        {"max.throughput.x", NULL},
    };
    struct wb_study *s = new_study("form: native x1", NULL);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const struct wb_phase *ph = wb_metric_phase(s, rows[i].metric);

        if (rows[i].phase)
            assert_string_equal(ph->name, rows[i].phase);
        else
            assert_null(ph);
    }
    s->combinations[0].setup.phases[1].pace = WB_PACE_RATE;
    WB_AUTO_FREE char *metric = wb_metric_default(s);
    assert_string_equal(metric, "max.p99_ms");
    wb_study_free(s);
}

static void test_differ(void **state)
{
    static const struct {
        const char *factors;
        int a, b;
        const char *in;
    } rows[] = {
        {"form: [native x1, native x4, docker x4]", 0, 1, "instances "},
        {"form: [native x1, native x4, docker x4]", 1, 2, "form "},
        {"form: [native x1, native x4, docker x4]", 0, 2, "form instances "},
        {"form: [native x1, native x4, docker x4]", 2, 2, ""},
        {"limits: [same, none], share: [host, instance]", 0, 3, "limits share "},
        {"zip: [{limits: [same, none], share: [host, instance]}]", 0, 1, "limits+share "},
        {"zip: [{form: [native x1, docker x1], share: [host, instance]}]", 0, 1, "form+share "},
        {"form: [native x1, docker x1], network: [host, published]", 0, 1, "form "},
        {"form: [native x1, docker x1], network: [host, published]", 0, 2, "form network "},
        {"form: [native x1, docker x1], network: [published, routed]", 0, 2, "form "},
        {"form: [native x1, docker x1], network: [published, routed]", 1, 2, "network "},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = new_study(rows[i].factors, NULL);
        struct wb_buf b = WB_BUF_INIT(256);
        struct wb_strv in = {0};
        struct wb_arm *arms = NULL;
        size_t narms = 0;

        wb_arms_make(s, &arms, &narms);
        wb_arms_differ(s, &arms[rows[i].a], &arms[rows[i].b], &in);
        for (size_t k = 0; k < in.n; k++)
            wb_buf_addf(&b, "%s ", in.v[k]);
        assert_string_equal(wb_buf_str(&b), rows[i].in);
        wb_strv_release(&in);
        wb_buf_release(&b);
        wb_arms_free(arms, narms);
        wb_study_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_contrasts),
        cmocka_unit_test(test_asked_contrasts),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
