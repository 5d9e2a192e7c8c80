/* Which arms are compared with which, also for counts of instances that no study may ask for yet.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/study/parts.h"

/* A study by hand: factors as "NAME: a, b", phases fixed. */
static void add_factor(struct wb_study *s, const char *name, const char *const *values)
{
    struct wb_factor *f = &s->factors[s->nfactors++];

    f->name = wb_strdup(name);
    for (; *values; values++) {
        wb_strv_add(&f->values, *values);
        wb_strv_add(&f->canonical, *values);
    }
}

static struct wb_study *new_study(int64_t copies)
{
    static const struct wb_phase phases[] = {
        {.load_only = true}, {.pace = WB_PACE_MAX}, {.pace = WB_PACE_CALIBRATED}};
    static const char *const names[] = {"load", "max", "latency"};
    struct wb_study *s = wb_calloc(1, sizeof *s);

    s->recipe = wb_calloc(1, sizeof *s->recipe);
    s->copies = copies;
    s->factors = wb_calloc(4, sizeof *s->factors);
    s->phases = wb_calloc(WB_LEN(phases), sizeof *s->phases);
    for (size_t i = 0; i < WB_LEN(phases); i++) {
        s->phases[i] = phases[i];
        s->phases[i].name = wb_strdup(names[i]);
        s->nphases++;
    }
    return s;
}

/* The primary rows as "arm < against", one a line; counts all rows. */
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
            wb_buf_addf(&b, "%s < %s\n", arms[v[i].arm].label, arms[v[i].against].label);
        }
        free(v[i].name);
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
        const char *form[8], *quota[4];
        int64_t copies;
        const char *want;
    } rows[] = {
        {{"native x1"}, {NULL}, 1, ""},
        {{"native x1", "docker x1"}, {NULL}, 1, "docker x1 < native x1\n"},
        {{"docker x1", "native x1"}, {NULL}, 1, "docker x1 < native x1\n"},
        {{"native x1", "native x4", "docker x1", "docker x2", "docker x4"},
         {NULL},
         1,
         "native x4 < native x1\ndocker x1 < native x1\ndocker x4 < native x4\n"},
        {{"docker x4", "docker x1"}, {NULL}, 1, ""},
        {{"native x2", "native x4"}, {NULL}, 1, ""},
        {{"native x1"}, {"none", "0.85", "0.5"}, 1, "0.85 < none\n0.5 < none\n"},
        {{"native x1"}, {NULL}, 3, "b < a\nc < a\n"},
        {{"native x1", "docker x1"},
         {"none", "0.85"},
         1,
         "docker x1/none < native x1/none\ndocker x1/0.85 < native x1/0.85\n"
         "native x1/0.85 < native x1/none\ndocker x1/0.85 < docker x1/none\n"},
        {{"native x1"}, {"none", "0.85"}, 2, "0.85/a < none/a\nnone/b < none/a\n0.85/b < 0.85/a\n"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = new_study(rows[i].copies);
        size_t all = 0, lines = 0;
        WB_AUTO_FREE char *got = NULL;

        add_factor(s, "form", rows[i].form);
        if (rows[i].quota[0])
            add_factor(s, "cpu_quota", rows[i].quota);
        got = primaries(s, &all);
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
    static const char *const forms[] = {"native x1", "docker x1", NULL};
    static const struct {
        const char *metric;
        bool primary, higher;
    } want[] = {
        {"latency.p99_ms", true, false},  {"latency.throughput", true, true},
        {"max.throughput", false, true},  {"max.p50_ms", false, false},
        {"max.p99_ms", false, false},     {"max.p99_9_ms", false, false},
        {"latency.p50_ms", false, false}, {"latency.p99_9_ms", false, false},
    };
    struct wb_study *s = new_study(1);
    struct wb_contrast *v = NULL;
    struct wb_arm *arms = NULL;
    size_t narms = 0, n = 0;

    add_factor(s, "form", forms);
    ask(s, "docker x1", "native x1", "latency.p99_ms");
    ask(s, "docker x1", "native x1", "latency.throughput");
    ask(s, "docker x1", "native x1", "latency.p99_ms");
    wb_arms_make(s, &arms, &narms);
    wb_contrasts_make(s, arms, narms, &v, &n);
    assert_int_equal(n, WB_LEN(want));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(v[i].name, "docker x1 against native x1");
        assert_string_equal(v[i].metric, want[i].metric);
        assert_int_equal(v[i].primary, want[i].primary);
        assert_int_equal(v[i].higher_is_better, want[i].higher);
        assert_int_equal(v[i].arm, 1);
        assert_int_equal(v[i].against, 0);
        free(v[i].name);
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
    struct wb_study *s = new_study(1);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const struct wb_phase *ph = wb_metric_phase(s, rows[i].metric);

        if (rows[i].phase)
            assert_string_equal(ph->name, rows[i].phase);
        else
            assert_null(ph);
    }
    s->phases[1].pace = WB_PACE_RATE;
    WB_AUTO_FREE char *metric = wb_metric_default(s);
    assert_string_equal(metric, "max.p99_ms");
    wb_study_free(s);
}

static void test_differ(void **state)
{
    static const char *const forms[] = {"native x1", "native x4", "docker x4", NULL};
    static const struct {
        int a, b;
        const char *in;
    } rows[] = {{0, 1, "instances "}, {1, 2, "form "}, {0, 2, "form instances "}, {2, 2, ""}};
    struct wb_study *s = new_study(1);
    struct wb_arm *arms = NULL;
    size_t narms = 0;

    add_factor(s, "form", forms);
    wb_arms_make(s, &arms, &narms);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf b = WB_BUF_INIT(256);
        struct wb_strv in = {0};

        wb_arms_differ(&arms[rows[i].a], &arms[rows[i].b], &in);
        for (size_t k = 0; k < in.n; k++)
            wb_buf_addf(&b, "%s ", in.v[k]);
        assert_string_equal(wb_buf_str(&b), rows[i].in);
        wb_strv_release(&in);
        wb_buf_release(&b);
    }
    wb_arms_free(arms, narms);
    wb_study_free(s);
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
