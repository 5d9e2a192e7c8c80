/*
 * Studies: what a good one is read as, and every message of the broken ones. Each file of
 * tests/data/studies says itself how it is read and what is expected: lines "#profile P",
 * "#-f PATH=VALUES" and "#rounds N" are options, "#! TEXT" is a problem without the file's name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/study/parts.h"

#define FOLDER "tests/data/studies/"
#define RECIPES "tests/data/recipes"

struct script {
    struct wb_study_options o;
    char *profile;
    struct wb_strv overrides;
    struct wb_buf expected; /* all "#! " lines, without the mark */
};

static void read_script(const char *path, struct script *s)
{
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    *s = (struct script){.expected = WB_BUF_INIT(1 << 20)};
    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, &err), 0);
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        if (strncmp(line, "#! ", 3) == 0) {
            wb_buf_add(&s->expected, line + 3, len - 3);
            wb_buf_addc(&s->expected, '\n');
        } else if (strncmp(line, "#profile ", 9) == 0)
            s->profile = wb_strndup(line + 9, len - 9);
        else if (strncmp(line, "#-f ", 4) == 0)
            wb_strv_addf(&s->overrides, "%.*s", (int)(len - 4), line + 4);
        else if (strncmp(line, "#rounds ", 8) == 0)
            s->o.rounds = strtol(line + 8, NULL, 10);
        line += len + (line[len] == '\n');
    }
    s->o.profile = s->profile;
    s->o.overrides = s->overrides.v;
    s->o.recipes_dir = RECIPES;
}

static void script_release(struct script *s)
{
    free(s->profile);
    wb_strv_release(&s->overrides);
    wb_buf_release(&s->expected);
}

static struct wb_study *read_good(const char *name)
{
    WB_AUTO_FREE char *path = wb_strf(FOLDER "%s", name);
    struct wb_problems p = {0};
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    struct wb_study *study;
    struct script s;

    read_script(path, &s);
    study = wb_study_read_file(path, &s.o, &p);
    wb_problems_text(&p, &text);
    assert_string_equal(wb_buf_str(&text), "");
    assert_non_null(study);
    assert_string_equal(study->source_file, path);
    wb_problems_release(&p);
    wb_buf_release(&text);
    script_release(&s);
    return study;
}

static void check_file(const char *path)
{
    struct wb_problems p = {.file = "outer"};
    struct wb_buf got = WB_BUF_INIT(1 << 20);
    struct wb_study *study;
    struct script s;

    read_script(path, &s);
    study = wb_study_read_file(path, &s.o, &p);
    assert_string_equal(p.file, "outer");
    for (size_t i = 0; i < p.n; i++) {
        const struct wb_problem *e = &p.v[i];

        assert_non_null(e->file);
        assert_true(*e->code != '\0');
        if (strcmp(e->file, path) != 0)
            wb_buf_addf(&got, "%s: ", e->file);
        else if (e->line > 0)
            wb_buf_addf(&got, "%d: ", e->line);
        if (*e->pointer)
            wb_buf_addf(&got, "%s: ", e->pointer);
        wb_buf_addf(&got, "%s\n", e->message);
    }
    if (strcmp(wb_buf_str(&got), wb_buf_str(&s.expected)) != 0)
        fail_msg("%s gave\n%swanted\n%s", path, wb_buf_str(&got), wb_buf_str(&s.expected));
    assert_true((study == NULL) == (p.n > 0));
    wb_study_free(study);
    wb_problems_release(&p);
    wb_buf_release(&got);
    script_release(&s);
}

static void test_all_files(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};
    size_t broken = 0, good = 0;

    assert_int_equal(wb_list_dir(FOLDER, &names, &err), 0);
    for (size_t i = 0; i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf(FOLDER "%s", names.v[i]);

        check_file(path);
        good += strncmp(names.v[i], "good-", 5) == 0;
        broken += strncmp(names.v[i], "good-", 5) != 0;
    }
    assert_true(good >= 3);
    assert_true(broken >= 15);
    wb_strv_release(&names);
}

static void test_defaults(void **state)
{
    struct wb_study *s = read_good("good-small.yaml");
    const struct wb_phase *load = &s->combinations[0].setup.phases[0],
                          *max = &s->combinations[0].setup.phases[1];

    assert_string_equal(s->name, "least");
    assert_string_equal(s->recipe->name, "toy");
    assert_string_equal(s->version->version, "3.10");
    assert_string_equal(s->pool, "local");
    assert_int_equal(s->database_hosts, 1);
    assert_int_equal(s->load_hosts, 1);
    assert_int_equal(s->nfactors, 1);
    assert_string_equal(s->factors[0].name, "form");
    assert_int_equal(s->factors[0].values.n, 1);
    assert_string_equal(s->factors[0].values.v[0], "native x1");
    assert_int_equal(s->copies, 1);
    assert_string_equal(s->combinations[0].setup.topology, "single");
    assert_int_equal(s->combinations[0].setup.share, WB_SHARE_HOST);
    assert_int_equal(s->combinations[0].setup.limits, WB_LIMITS_SAME);
    assert_int_equal(s->combinations[0].setup.network, WB_NETWORK_HOST);
    assert_int_equal(s->placement, WB_PLACEMENT_SAME_HOST);
    assert_int_equal(s->combinations[0].setup.memory_bytes, 1LL << 30);
    assert_int_equal(s->combinations[0].setup.rows, 1000);
    assert_int_equal(s->combinations[0].setup.key_bytes, 16);
    assert_int_equal(s->combinations[0].setup.value_bytes, 64);
    assert_int_equal(s->combinations[0].setup.nphases, 2);
    assert_true(load->load_only);
    assert_int_equal(load->connections, 1);
    assert_int_equal(load->depth, 1);
    assert_null(load->keys);
    assert_null(load->arrivals);
    assert_false(max->load_only);
    assert_true(max->get_percent == 100);
    assert_string_equal(max->keys, "uniform");
    assert_int_equal(max->pace, WB_PACE_MAX);
    assert_int_equal(max->threads, 1);
    assert_int_equal(max->depth, 1);
    assert_int_equal(max->warm_up_ns, WB_SEC);
    assert_int_equal(max->for_ns, WB_SEC);
    assert_int_equal(max->timeout_ns, 5 * WB_SEC);
    assert_null(max->arrivals);
    assert_int_equal(s->rounds, 8);
    assert_int_equal(s->seed, 0);
    assert_int_equal(s->ncontrasts, 0);
    assert_true(s->threshold_percent == 2);
    assert_false(s->accept_noisy);
    assert_true(s->validity.steal_noisy == 1);
    assert_true(s->validity.client_cpu_limited == 95);
    assert_true(s->validity.errors_fail == 1);
    wb_study_free(s);
}

static void test_during(void **state)
{
    struct wb_study *s = read_good("good-during.yaml");
    const struct wb_setup *setup = &s->combinations[0].setup;
    const struct wb_phase *ph = setup->phases;
    WB_AUTO_JSON wb_json *j = wb_during_json(&ph[1]);
    struct wb_buf text = WB_BUF_INIT(1024);

    assert_int_equal(ph[0].nduring, 0);
    assert_int_equal(ph[1].nduring, 3);
    assert_string_equal(ph[1].during[0].op->name, "grow");
    assert_int_equal(ph[1].during[0].at_ns, 5 * WB_SEC);
    assert_int_equal(wb_phase_op_instance(&ph[1].during[0], 3), 2);
    assert_int_equal(wb_phase_op_instance(&ph[1].during[1], 3), 0);
    assert_int_equal(wb_phase_op_instance(&ph[1].during[2], 3), 1);
    assert_int_equal(ph[2].nduring, 1);
    assert_false(wb_setup_holds_back(setup, 0, 3));
    assert_false(wb_setup_holds_back(setup, 1, 3));
    assert_true(wb_setup_holds_back(setup, 2, 3));
    wb_json_canonical(j, &text);
    assert_string_equal(wb_buf_str(&text),
                        "[{\"at_ns\":5000000000,\"do\":\"grow\",\"instance\":\"last\"},"
                        "{\"at_ns\":10000000000,\"do\":\"tidy\",\"instance\":0},"
                        "{\"at_ns\":10000000000,\"do\":\"bounce\",\"instance\":1}]");
    wb_buf_release(&text);
    wb_study_free(s);
}

static void test_every_key(void **state)
{
    struct wb_study *s = read_good("good-full.yaml");
    const struct wb_phase *ph = s->combinations[0].setup.phases;

    assert_string_equal(s->version->version, "3.9");
    assert_int_equal(s->nfactors, 3);
    assert_string_equal(s->factors[1].name, "setting.cache");
    assert_string_equal(s->factors[1].values.v[0], "0");
    assert_string_equal(s->factors[1].values.v[1], "64MiB");
    assert_string_equal(s->factors[1].values.v[2], "65537KiB");
    assert_string_equal(s->factors[1].canonical.v[1], "67108864");
    assert_string_equal(s->factors[2].values.v[0], "none");
    assert_int_equal(s->combinations[0].setup.share, WB_SHARE_INSTANCE);
    assert_int_equal(s->combinations[0].setup.limits, WB_LIMITS_NONE);
    assert_int_equal(s->placement, WB_PLACEMENT_SHARED);
    assert_int_equal(s->combinations[0].setup.memory_bytes, 128LL << 20);
    assert_int_equal(ph[0].timeout_ns, 10 * WB_SEC);
    assert_int_equal(ph[0].threads, 2);
    assert_true(ph[1].get_percent == 77);
    assert_string_equal(ph[1].keys, "zipf");
    assert_int_equal(ph[1].warm_up_ns, 0);
    assert_int_equal(ph[2].pace, WB_PACE_RATE);
    assert_true(ph[2].rate_per_s == 20000);
    assert_true(ph[2].get_percent == 0);
    assert_string_equal(ph[2].arrivals, "constant");
    assert_int_equal(ph[2].depth, 0);
    assert_int_equal(ph[2].timeout_ns, 100 * WB_MS);
    assert_int_equal(ph[3].pace, WB_PACE_CALIBRATED);
    assert_true(ph[3].calibrated_percent == 60);
    assert_string_equal(ph[3].arrivals, "poisson");
    assert_int_equal(s->seed, 42);
    assert_int_equal(s->ncontrasts, 2);
    assert_null(s->contrasts[0].name);
    assert_null(s->contrasts[0].metric);
    assert_string_equal(s->contrasts[1].metric, "rate.p99_9_ms");
    assert_true(s->threshold_percent == 5);
    assert_true(s->accept_noisy);
    assert_true(s->validity.steal_noisy == 0.5);
    assert_true(s->validity.steal_invalid == 2);
    assert_true(s->validity.foreign_invalid == 2);
    assert_true(s->validity.canary_noisy == 2);
    assert_true(s->validity.errors_noisy == 0.01);
    assert_true(s->validity.errors_fail == 2);
    wb_study_free(s);
}

static void test_profile_and_overrides(void **state)
{
    struct wb_study *s = read_good("good-profile.yaml");
    struct wb_buf text = WB_BUF_INIT(1 << 20);

    assert_int_equal(s->combinations[0].setup.rows, 10);
    assert_int_equal(s->rounds, 3);
    assert_int_equal(s->copies, 2);
    assert_int_equal(s->ncontrasts, 0);
    assert_int_equal(s->combinations[0].setup.phases[1].for_ns, 2 * WB_SEC);
    assert_int_equal(s->nfactors, 2);
    assert_int_equal(s->factors[0].values.n, 1);
    assert_string_equal(s->factors[1].values.v[1], "2MiB");
    wb_json_canonical(s->resolved, &text);
    assert_string_equal(
        wb_buf_str(&text),
        "{\"copies\":\"2\",\"factors\":{\"form\":\"native "
        "x1\",\"setting.cache\":[\"1MiB\",\"2MiB\"]},"
        "\"recipe\":{\"name\":\"toy\",\"version\":\"3.9\"},\"rounds\":\"3\",\"study\":\"changed\","
        "\"workload\":{\"data\":{\"rows\":\"10\",\"value\":{\"size\":\"64B\"}},\"phases\":["
        "{\"name\":\"load\",\"op\":\"insert\",\"order\":\"sequential\"},"
        "{\"for\":\"2s\",\"name\":\"max\",\"op\":\"get\"}]}}");
    wb_buf_release(&text);
    wb_study_free(s);
}

/* What is stored with a run must read as the same study again. */
static void test_resolved_reads_again(void **state)
{
    static const char *const names[] = {"good-small.yaml", "good-full.yaml", "good-profile.yaml"};

    for (size_t i = 0; i < WB_LEN(names); i++) {
        struct wb_study *s = read_good(names[i]), *again;
        const struct wb_study_options o = {.recipes_dir = RECIPES};
        struct wb_err err = WB_ERR_INIT;
        struct wb_problems p = {0};
        struct wb_node *n = NULL;

        assert_int_equal(wb_node_from_json(s->resolved, &n, &err), 0);
        again = wb_study_check(n, NULL, &o, &p);
        assert_non_null(again);
        assert_int_equal(p.n, 0);
        assert_true(wb_json_equal(s->resolved, again->resolved));
        assert_int_equal(again->combinations[0].setup.rows, s->combinations[0].setup.rows);
        assert_int_equal(again->rounds, s->rounds);
        wb_study_free(again);
        wb_study_free(s);
    }
}

static void test_json_version(void **state)
{
    static const char *const doc =
        "{\"study\": \"j\", \"recipe\": {\"name\": \"toy\", \"version\": %s}, \"rounds\": 7,"
        " \"workload\": {\"data\": {\"rows\": 1000, \"value\": {\"size\": 64}}, \"phases\": ["
        "{\"name\": \"w\", \"op\": \"set\", \"rate\": 1000, \"for\": \"1s\"}]}}";
    static const struct {
        const char *version, *pointer, *hint;
    } rows[] = {
        {"\"3.10\"", NULL, NULL},
        {"3.10", "/recipe/version", "write the version as a string"},
        {"3", "/recipe/version", "write the version as a string"},
        {"null", "/recipe/version", "version has no value; it must be text"},
        {"\"3.1\"", "/recipe/version", "recipe toy has no version '3.1'; versions: 3.10 or 3.9"},
    };
    const struct wb_study_options o = {.recipes_dir = RECIPES};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_err err = WB_ERR_INIT;
        struct wb_problems p = {0};
        struct wb_node *n = NULL;
        wb_json *j = NULL;
        struct wb_buf text = WB_BUF_INIT(4096);
        struct wb_study *s;

        for (const char *c = doc; *c; c++) {
            if (*c == '%')
                wb_buf_adds(&text, (c++, rows[i].version));
            else
                wb_buf_addc(&text, *c);
        }
        assert_int_equal(wb_json_parse(text.data, text.len, &j, &err), 0);
        assert_int_equal(wb_node_from_json(j, &n, &err), 0);
        s = wb_study_check(n, NULL, &o, &p);
        if (rows[i].pointer) {
            assert_null(s);
            assert_int_equal(p.n, 1);
            assert_null(p.v[0].file);
            assert_string_equal(p.v[0].pointer, rows[i].pointer);
            assert_non_null(strstr(p.v[0].message, rows[i].hint));
        } else {
            assert_non_null(s);
            assert_string_equal(s->version->version, "3.10");
            assert_int_equal(s->rounds, 7);
            assert_true(s->combinations[0].setup.phases[0].rate_per_s == 1000);
        }
        wb_study_free(s);
        wb_problems_release(&p);
        wb_json_free(j);
        wb_buf_release(&text);
    }
}

static void test_absent_file(void **state)
{
    const struct wb_study_options o = {.recipes_dir = RECIPES};
    struct wb_problems p = {0};

    assert_null(wb_study_read_file("tests/data/studies/none.yaml", &o, &p));
    assert_int_equal(p.n, 1);
    assert_string_equal(p.v[0].code, "not-found");
    assert_string_equal(p.v[0].file, "tests/data/studies/none.yaml");
    wb_problems_release(&p);
}

/* What `rounds` may be, and what is said when it is something else. */
static void test_rounds(void **state)
{
    static const struct {
        const char *rounds;
        int64_t least, most;
        const char *problem; /* NULL: none */
    } rows[] = {
        {"rounds={at_least: 9, at_most: 30, until: decided}", 9, 30, NULL},
        {"rounds={at_most: 7, until: decided}", 7, 7, NULL},
        {"rounds={at_least: 9, at_most: 30}", 0, 0, "until"},
        {"rounds={at_least: 9, until: decided}", 0, 0, "at_most"},
        {"rounds={at_most: 30, until: tired}", 0, 0, "decided"},
        {"rounds={at_least: 5, at_most: 30, until: decided}", 0, 0, "6 to 1000"},
        {"rounds={at_most: 1001, until: decided}", 0, 0, "6 to 1000"},
        {"rounds={at_most: 30, until: decided, looks: 3}", 0, 0, "looks"},
        {"rounds=[8, 9]", 0, 0, "rounds"},
        {"rounds={}", 0, 0, "until"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *text = wb_strdup(rows[i].rounds);
        char *overrides[] = {text, NULL};
        const struct wb_study_options o = {.overrides = overrides, .recipes_dir = RECIPES};
        struct wb_problems p = {0};
        struct wb_buf b = WB_BUF_INIT(1 << 16);
        struct wb_study *s = wb_study_read_file(FOLDER "good-small.yaml", &o, &p);

        wb_problems_text(&p, &b);
        if ((s == NULL) != (rows[i].problem != NULL) ||
            (rows[i].problem && !strstr(wb_buf_str(&b), rows[i].problem)))
            fail_msg("%s: %s", rows[i].rounds, wb_buf_str(&b));
        if (s) {
            assert_int_equal(s->rounds_least, rows[i].least);
            assert_int_equal(s->rounds, rows[i].most);
        }
        wb_study_free(s);
        wb_problems_release(&p);
        wb_buf_release(&b);
    }
}

/* The studies that come with recipes must always be good, with every profile. */
static void test_shipped_studies(void **state)
{
    static const struct {
        const char *path, *profile;
        int64_t rounds;
    } rows[] = {
        {"recipes/redis/studies/forms.yaml", NULL, 8},
        {"recipes/redis/studies/forms.yaml", "small", 8},
        {"recipes/redis/studies/forms.yaml", "counts", 6},
        {"recipes/redis/studies/slo.yaml", NULL, 8},
        {"recipes/redis/studies/slo.yaml", "small", 6},
        {"recipes/redis/studies/aa.yaml", NULL, 60},
        {"recipes/redis/studies/slowdown.yaml", NULL, 24},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const struct wb_study_options o = {.profile = rows[i].profile, .recipes_dir = "recipes"};
        struct wb_problems p = {0};
        struct wb_buf text = WB_BUF_INIT(1 << 20);
        struct wb_study *s = wb_study_read_file(rows[i].path, &o, &p);

        wb_problems_text(&p, &text);
        assert_string_equal(wb_buf_str(&text), "");
        assert_non_null(s);
        assert_int_equal(s->rounds, rows[i].rounds);
        wb_study_free(s);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_files),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_during),
        cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_profile_and_overrides),
        cmocka_unit_test(test_resolved_reads_again),
        cmocka_unit_test(test_json_version),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_absent_file),
        cmocka_unit_test(test_shipped_studies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
