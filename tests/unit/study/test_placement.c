/* Who gets which CPUs and how much memory: roles of the host, and the parts of instances. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/study/plan.h"

#define MIB (1LL << 20)

static struct wb_study *new_study(const char *more)
{
    static const char *const workload =
        "workload:\n"
        "  data: {rows: 1000, value: {size: 64B}}\n"
        "  phases:\n"
        "    - {name: load, op: insert, order: sequential, connections: 64}\n"
        "    - {name: max, op: get, connections: 64, for: 1s}\n";
    const struct wb_study_options o = {.recipes_dir = "tests/data/recipes"};
    WB_AUTO_FREE char *text = wb_strf("study: s\nrecipe: {name: toy, version: '3.9'}\n"
                                      "topology: sharded\n%s\n%s",
                                      more, workload);
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

/* A host of fixed make: CPU i has the core and the node of its letter ("aabb" is two cores of two
 * threads each; "?" unknown). NULL: nothing is known. */
struct host {
    struct wb_host_facts f;
    int cpus[64], cores[64], nodes[64];
};

static void make_host(struct host *h, int ncpus, const char *cores, const char *nodes)
{
    *h = (struct host){.f = {.ncpus = ncpus, .memory_bytes = 16LL << 30}};
    for (int i = 0; i < ncpus; i++) {
        h->cpus[i] = i;
        h->cores[i] = cores && cores[i] != '?' ? cores[i] - 'a' : -1;
        h->nodes[i] = nodes && nodes[i] != '?' ? nodes[i] - 'a' : -1;
    }
    h->f.cpus = h->cpus;
    h->f.cores = cores ? h->cores : NULL;
    h->f.nodes = nodes ? h->nodes : NULL;
    h->f.mems = wb_strdup(nodes && strchr(nodes, 'b') ? "0-1" : "0");
    h->f.host_class = wb_strdup("test");
}

static void host_release(struct host *h)
{
    free(h->f.mems);
    free(h->f.host_class);
}

static void test_roles(void **state)
{
    static const struct {
        int ncpus;
        const char *cores, *nodes;
        const char *database, *load, *mems, *load_mems;
        bool split;
    } rows[] = {
        {2, NULL, NULL, "1", "0", "0", "0", false},
        {2, "ab", "aa", "1", "0", "0", "0", false},
        /* Two threads of one core: there is no other way, but it is said. */
        {2, "aa", "aa", "1", "0", "0", "0", true},
        /* Threads 0 and 2 are of one core: neighbours stay together. */
        {4, "abab", "aaaa", "1,3", "0,2", "0", "0", false},
        {4, "aabb", "aaaa", "2-3", "0-1", "0", "0", false},
        /* Three cores of two threads: the load gets one core less, not half of one. */
        {6, "aabbcc", "aaaaaa", "2-5", "0-1", "0", "0", false},
        {6, "abcabc", "aaaaaa", "1-2,4-5", "0,3", "0", "0", false},
        /* Two memory nodes: the database has one, the load the other. */
        {8, "abcdefgh", "aaaabbbb", "4-7", "0-3", "1", "0", false},
        {8, "abcdefgh", "abababab", "1,3,5,7", "0,2,4,6", "1", "0", false},
        {4, "????", "????", "2-3", "0-1", "0", "0", false},
    };
    struct wb_study *s = new_study("");

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {0};
        struct wb_plan *plan;
        const char *first;
        struct host h;
        wb_json *j;

        make_host(&h, rows[i].ncpus, rows[i].cores, rows[i].nodes);
        plan = wb_plan_make(s, &h.f, 1, &p);
        assert_non_null(plan);
        assert_string_equal(plan->placement.database_cpus, rows[i].database);
        assert_string_equal(plan->placement.load_cpus, rows[i].load);
        assert_string_equal(plan->placement.agent_cpus, rows[i].load);
        assert_string_equal(plan->placement.mems, rows[i].mems);
        assert_string_equal(plan->placement.load_mems, rows[i].load_mems);
        assert_int_equal(plan->placement.core_split, rows[i].split);
        j = wb_plan_json(plan);
        first = wb_json_str_or(wb_json_at(wb_json_get(j, "warnings"), 0), "code", "");
        assert_string_equal(first, rows[i].split ? "core-split" : "");
        wb_json_free(j);
        wb_plan_free(plan);
        host_release(&h);
    }
    wb_study_free(s);
}

/* The parts of the last arm as "cpus@mems memory quota", one an instance. */
static char *parts_text(const struct wb_plan *plan)
{
    const struct wb_arm *a = &plan->arms[plan->narms - 1];
    struct wb_buf b = WB_BUF_INIT(1 << 16);

    for (int i = 0; i < a->form.count; i++)
        wb_buf_addf(&b, "%s@%s %lldK %g\n", a->parts[i].cpus, a->parts[i].mems,
                    (long long)(a->parts[i].memory_bytes >> 10), a->parts[i].cpu_quota);
    return wb_buf_take(&b);
}

static void test_parts(void **state)
{
    static const struct {
        const char *study;
        int ncpus;
        const char *cores, *nodes;
        const char *want; /* of the last arm */
        int each;         /* CPUs per instance */
    } rows[] = {
        {"factors: {form: native x1}", 2, NULL, NULL, "1@0 1048576K 0\n", 1},
        /* Together what native x1 gets. */
        {"factors: {form: native x2}", 2, NULL, NULL, "1@0 524288K 0\n1@0 524288K 0\n", 1},
        {"memory: 1GiB\nfactors: {form: docker x3, cpu_quota: 0.9}", 4, NULL, NULL,
         "2-3@0 349504K 0.3\n2-3@0 349504K 0.3\n2-3@0 349504K 0.3\n", 2},
        /* Each that much. */
        {"share: instance\nmemory: 1GiB\nfactors: {form: docker x2, cpu_quota: 0.9}", 4, NULL, NULL,
         "2-3@0 1048576K 0.9\n2-3@0 1048576K 0.9\n", 2},
        /* Not limited, but known. */
        {"limits: none\nfactors: {form: docker x2}", 4, NULL, NULL,
         "2-3@0 524288K 0\n2-3@0 524288K 0\n", 2},
        {"cpus: disjoint\nfactors: {form: native x2}", 4, NULL, NULL,
         "2@0 524288K 0\n3@0 524288K 0\n", 1},
        {"cpus: disjoint\nfactors: {form: native x2}", 8, "abcdabcd", "aaaaaaaa",
         "2,6@0 524288K 0\n3,7@0 524288K 0\n", 2},
        /* Each instance on the memory node of its CPUs. */
        {"cpus: disjoint\nplacement: shared\nfactors: {form: native x2}", 8, "abcdefgh", "aaaabbbb",
         "0-3@0 524288K 0\n4-7@1 524288K 0\n", 4},
        {"placement: shared\nfactors: {form: native x2}", 2, NULL, NULL,
         "0-1@0 524288K 0\n0-1@0 524288K 0\n", 2},
        {"cpus: disjoint\nplacement: shared\nfactors: {form: docker x2}", 2, NULL, NULL,
         "0@0 524288K 0\n1@0 524288K 0\n", 1},
        /* With share: instance the arm with the most instances decides for all of them. */
        {"cpus: disjoint\nshare: instance\nfactors: {form: [native x4, native x1]}", 16, NULL, NULL,
         "8-9@0 1048576K 0\n", 2},
        {"cpus: disjoint\nshare: instance\ncpus_per_instance: 3\nfactors: {form: native x2}", 16,
         NULL, NULL, "8-10@0 1048576K 0\n11-13@0 1048576K 0\n", 3},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = new_study(rows[i].study);
        struct wb_problems p = {0};
        struct wb_plan *plan;
        struct host h;

        make_host(&h, rows[i].ncpus, rows[i].cores, rows[i].nodes);
        plan = wb_plan_make(s, &h.f, 1, &p);
        if (!plan)
            fail_msg("%s: %s", rows[i].study, p.v[0].message);
        WB_AUTO_FREE char *got = parts_text(plan);
        assert_string_equal(got, rows[i].want);
        assert_int_equal(plan->arms[plan->narms - 1].cpus_per_instance, rows[i].each);
        wb_plan_free(plan);
        host_release(&h);
        wb_study_free(s);
    }
}

static void test_refused_with_numbers(void **state)
{
    static const struct {
        const char *study;
        int ncpus;
        int64_t memory;
        const char *message;
    } rows[] = {
        {"cpus: disjoint\nfactors: {form: native x2}", 2, 16LL << 30,
         "cpus: disjoint cannot cut the 1 CPU of the database into 2 equal parts for native x2; "
         "take a number of instances that divides 1, or cpus: shared"},
        {"cpus: disjoint\nfactors: {form: docker x3}", 8, 16LL << 30,
         "cpus: disjoint cannot cut the 4 CPUs of the database into 3 equal parts for docker x3; "
         "take a number of instances that divides 4, or cpus: shared"},
        {"cpus: disjoint\nshare: instance\nfactors: {form: [native x1, docker x8]}", 8, 16LL << 30,
         "cpus: disjoint gives each of the 1 instances of native x1 1 CPU, 1 in all, but the "
         "database has 4; take fewer instances or cpus: shared"},
        {"cpus: disjoint\nshare: instance\ncpus_per_instance: 3\nfactors: {form: docker x2}", 8,
         16LL << 30,
         "cpus: disjoint gives each of the 2 instances of docker x2 3 CPUs, 6 in all, but the "
         "database has 4; take fewer instances or cpus: shared"},
        {"memory: 1GiB\nshare: instance\nfactors: {form: [native x1, docker x4]}", 2,
         4LL * 1024 * MIB + 512 * MIB - 1,
         "the database gets 4.0 GiB, but this host has 4.5 GiB and 512 MiB of it must stay for "
         "the load and the system; lower memory"},
        {"factors: {memory: [1GiB, 3GiB]}", 2, 3LL * 1024 * MIB,
         "the database gets 3.0 GiB, but this host has 3.0 GiB and 512 MiB of it must stay for "
         "the load and the system; lower memory"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_study *s = new_study(rows[i].study);
        struct wb_problems p = {0};
        struct host h;

        make_host(&h, rows[i].ncpus, NULL, NULL);
        h.f.memory_bytes = rows[i].memory;
        assert_null(wb_plan_make(s, &h.f, 1, &p));
        assert_string_equal(p.v[0].code, "capacity");
        assert_string_equal(p.v[0].message, rows[i].message);
        wb_problems_release(&p);
        host_release(&h);
        wb_study_free(s);
    }
}

/* What one instance has is its series, not the words it came from. */
static void test_series_of_one_instance(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"factors: {form: native x1}", "share: instance\nfactors: {form: native x1}", true},
        {"factors: {form: native x1}", "cpus: disjoint\nfactors: {form: native x1}", true},
        {"factors: {form: native x1}", "network: published\nfactors: {form: native x1}", true},
        {"factors: {form: docker x1}", "network: published\nfactors: {form: docker x1}", false},
        {"factors: {form: native x1}", "limits: none\nfactors: {form: native x1}", false},
        {"factors: {form: native x2}", "share: instance\nfactors: {form: native x2}", false},
        {"factors: {form: native x2}", "cpus: disjoint\nfactors: {form: native x2}", false},
        {"factors: {payload: 64B}", "factors: {form: native x1}", true},
        {"factors: {payload: 65B}", "factors: {form: native x1}", false},
        {"factors: {form: native x1, depth: 1}", "factors: {form: native x1}", true},
        {"factors: {form: native x1, depth: 2}", "factors: {form: native x1}", false},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const char *const texts[] = {rows[i].a, rows[i].b};
        char keys[2][17];

        for (int k = 0; k < 2; k++) {
            struct wb_study *s = new_study(texts[k]);
            struct wb_problems p = {0};
            struct wb_plan *plan;
            struct host h;

            make_host(&h, 8, NULL, NULL);
            plan = wb_plan_make(s, &h.f, 1, &p);
            assert_non_null(plan);
            memcpy(keys[k], plan->arms[0].series_key, 17);
            wb_plan_free(plan);
            host_release(&h);
            wb_study_free(s);
        }
        if ((strcmp(keys[0], keys[1]) == 0) != rows[i].same)
            fail_msg("'%s' and '%s'", rows[i].a, rows[i].b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refused_with_numbers),
        cmocka_unit_test(test_series_of_one_instance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
